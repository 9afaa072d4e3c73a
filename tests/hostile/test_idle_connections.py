"""test_idle_connections: a user who opens more connections than the daemon may open files, and lets them lie. Others get in: first into
what is left to them, then in the place of the oldest idle connection of whoever has most. A connection with a call or a region stays, and
no request is lost."""
import os
import resource
import signal
import unittest

from several import SeveralUsers, main, wait_for
from cured_wire import RESOURCE_EXHAUSTED, UNAVAILABLE

try:
    from http2 import Http2, NO_ERROR
except ImportError:
    Http2 = None


class Refused:
    def __init__(self, reason):
        self.reason = reason


def limit_files(most):
    return staticmethod(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))


class FromOutside(SeveralUsers):
    """One user has them, alone."""
    USERS = ("hoarder", "other")
    OPTIONS = {"hello_timeout_ms": 3600000, "stall_timeout_ms": 3600000}
    LIMITS = limit_files(1024)

    def test_753_of_1024(self):
        first = self.as_user("hoarder")
        self.be_alone(first)
        conns = [first] + [self.as_user("hoarder") for _ in range(752)]
        refused = [c for c in conns if c.reason]
        self.assertGreaterEqual(len(refused), 753 - 368)  # half of 768 less 32
        for c in refused:
            self.assert_sentence(c.reason, RESOURCE_EXHAUSTED, "connections")
            c.close()  # until then they count by their address, which the other user's is, too
        wait_for("those to be gone", lambda: self.daemon.gauges()["connections"] <= 368 + 1)
        ended = self.daemon.counters()["connections_idle_ended_total"]
        for _ in range(10):
            self.assert_answers(self.connect())
            self.assert_answers(self.as_user("other"))
        self.assertEqual(ended, self.daemon.counters()["connections_idle_ended_total"])
        for c in conns:
            c.close()


class FewFiles(SeveralUsers):
    """Half of them are taken, and a number that is low enough is free once an idle connection has ended."""
    USERS = "abcde"
    OPTIONS = FromOutside.OPTIONS
    LIMITS = limit_files(64)

    def test_others_get_in(self):
        hoard = []
        while not hoard or not hoard[-1].reason:
            hoard.append(self.connect())
            hoard[-1].until(lambda: hoard[-1].welcome or hoard[-1].reason, ended_is_fine=True)
        self.assert_sentence(hoard[-1].reason, RESOURCE_EXHAUSTED, "three quarters of the open files")
        for user in self.USERS:
            for _ in range(3):
                self.assert_answers(self.as_user(user))
        self.daemon.watch.close()  # the oldest: it may be over
        self.daemon.watch = None
        self.assertGreater(self.daemon.counters()["connections_idle_ended_total"], 0)


class Full(SeveralUsers):
    """All places are taken: of 48 all but 6, which are for the daemon's own user, who has 24 here."""
    HELD = {"a": 9, "b": 5, "c": 2, "d": 1, "e": 1}  # of each user half of what is left
    USERS = (*HELD, "late")
    OPTIONS = dict(FromOutside.OPTIONS, max_connections=48)

    def setUp(self):
        self.daemon.counters()
        self.watch = self.daemon.watch  # the oldest: a call keeps it
        self.call = self.watch.start_stream("u8", ["sum"], None)
        self.own = []
        while not self.own or not self.own[-1].reason:
            self.own.append(self.begin())
        self.own.pop()
        self.assertEqual(23, len(self.own))
        for user, held in self.HELD.items():
            self.assertEqual([None] * held, [self.as_user(user).reason for _ in range(held)])
        self.ended = self.count()

    def begin(self):
        c = self.connect()
        c.until(lambda: c.welcome or c.reason, ended_is_fine=True)
        return c

    def count(self):
        return self.daemon.counters()["connections_idle_ended_total"]

    def tearDown(self):
        self.doCleanups()
        self.watch.send_data(self.call, b"", end=True)
        self.watch.wait(self.call)
        wait_for("all to be gone", lambda: self.daemon.gauges()["connections"] == 1)

    def is_over(self, c):
        try:
            return c.ping(b"?") != b"?"
        except Exception:  # noqa: B902 (it is closed, or was)
            self.assert_sentence(c.reason, UNAVAILABLE, "this connection was idle", "connect again")
            return True

    def test_the_oldest_idle_one_ends(self):
        """Not one with a call, nor one with a region."""
        region, call = self.own[:2]
        self.assertEqual(8, region.register(1, self.memfd(bytes(8)).fileno()))
        stream = call.start_stream("u8", ["sum"], None)
        call.ping()
        late = self.as_user("late")
        self.assert_answers(late)
        self.assertEqual(self.ended + 1, self.count())
        self.assertEqual([False, False, True, False], [self.is_over(c) for c in self.own[:4]])
        call.send_data(stream, b"\3", end=True)
        self.assertEqual(b"\3", call.wait(stream).results[0].value[:1])
        self.assertEqual(8, region.region("u8", ["sum"], 1).count)

    def test_a_request_on_its_way_is_answered(self):
        """The daemon does not look at anything while all of them ask, and while another user comes."""
        asked = self.own[:-1]
        os.kill(self.daemon.pid, signal.SIGSTOP)
        try:
            streams = [(c, c.start_inline("u8", ["sum"], b"\5")) for c in asked]
            late = self.late()
        finally:
            os.kill(self.daemon.pid, signal.SIGCONT)
        late.until(lambda: late.welcome or late.reason, ended_is_fine=True)
        self.assert_answers(late)
        for c, stream in streams:
            self.assertEqual(b"\5", c.wait(stream).results[0].value[:1])

    def test_no_request_is_lost_where_all_ask(self):
        """Each is answered, or its client is told that its connection has ended, and may ask again."""
        os.kill(self.daemon.pid, signal.SIGSTOP)
        try:
            streams = [(c, c.start_inline("u8", ["sum"], b"\5")) for c in self.own]
            late = self.late()
        finally:
            os.kill(self.daemon.pid, signal.SIGCONT)
        late.until(lambda: late.welcome or late.reason, ended_is_fine=True)
        over = 0
        for c, stream in streams:
            c.until(lambda: c.answers[stream].over, ended_is_fine=True)
            if not c.answers[stream].over:
                self.assert_sentence(c.reason, UNAVAILABLE, "connect again")
                over += 1
        ended = self.count() - self.ended  # one that was answered just before may be among them
        self.assertTrue(over <= ended and 1 <= ended <= 2, (over, ended))

    def late(self):
        """A user that is new, as far as the kernel takes it while the daemon stands still."""
        return self.as_user("late", waits=False)


@unittest.skipUnless(Http2, "python3-h2 is not installed")
class FullOfGrpc(Full):
    """The same, where the daemon's own user speaks gRPC."""

    def begin(self):
        try:
            c = Http2(self.daemon.addresses[0])
            self.addCleanup(c.close)
            c.ping()
            c.reason = c.goaway
            return c
        except Exception as refused:  # noqa: B902 (in a language that it does not speak, where it has said nothing yet)
            return Refused(refused)

    def test_the_oldest_idle_one_ends(self):
        late = self.as_user("late")
        self.assert_answers(late)
        self.assertEqual(self.ended + 1, self.count())
        first = self.own[0]
        self.assertEqual(NO_ERROR, first.end())
        self.assertEqual((0, True), (first.last_taken, "was idle" in first.goaway_text))
        self.own[1].ping()

    test_a_request_on_its_way_is_answered = test_no_request_is_lost_where_all_ask = None


if __name__ == "__main__":
    main()
