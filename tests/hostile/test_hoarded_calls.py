"""test_hoarded_calls: a user who is alone begins 17 x 256 streamed calls and keeps them alive by 64 KiB each. The daemon's own user and a
second user are served all the same, and nothing of the first is ended for it."""
import unittest

from several import SeveralUsers, main
from cured_wire import RESOURCE_EXHAUSTED


class HoardedCalls(SeveralUsers):
    USERS = ("hoarder", "other")
    # No window of stall_timeout_ms ends here, so that no call ends for bringing little.
    OPTIONS = {"stall_timeout_ms": 3600000}
    CONNECTIONS, EACH, MOST = 17, 256, 3528  # (4,096 - 64) less an eighth
    TRICKLE = 64 * 1024

    def test_others_are_served(self):
        conns, streams = [self.as_user("hoarder") for _ in range(self.CONNECTIONS)], []
        self.be_alone(conns[0])
        for c in conns:
            streams += [(c, c.start_stream("u8", ["sum"], None)) for _ in range(self.EACH)]
            c.ping()
        held = [(c, stream) for c, stream in streams if not c.answers[stream].over]
        self.assertEqual(self.MOST, len(held))
        refused = next(c.answers[stream].status for c, stream in streams if c.answers[stream].over)
        self.assert_sentence(refused, RESOURCE_EXHAUSTED, "%d, all that one user may hold of max_jobs, 4096" % self.MOST)
        for c, stream in held:
            c.send_data(stream, b"\1" * self.TRICKLE)

        own, other = self.connect(), self.as_user("other")
        for _ in range(20):
            self.assert_answers(own)
            self.assert_answers(other)
        # Each of them may have many: half of what is left. The last 64 calls are for the daemon's own user.
        theirs = [other.start_stream("u8", ["sum"], None) for _ in range((4096 - 64 - self.MOST) // 2 + 1)]
        other.ping()
        self.assertEqual([False] * (len(theirs) - 1) + [True], [other.answers[stream].over for stream in theirs])
        self.assert_sentence(other.answers[theirs[-1]].status, RESOURCE_EXHAUSTED, "half of what others leave free of max_jobs")
        mine = [own.start_stream("u8", ["sum"], None) for _ in range(64)]
        own.ping()
        self.assertFalse(any(own.answers[stream].over for stream in mine))

        self.assertEqual(0, self.daemon.counters()["calls_impatient_total"])
        for c, stream in held:
            c.send_data(stream, b"", end=True)
            answer = c.wait(stream)
            self.assertIsNone(answer.status)
            self.assertEqual(self.TRICKLE.to_bytes(8, "little"), answer.results[0].value)
        for c in conns + [own, other]:
            c.close()


if __name__ == "__main__":
    main()
