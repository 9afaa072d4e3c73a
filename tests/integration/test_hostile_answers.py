#!/usr/bin/env python3
"""Answers along an axis that nobody takes, and states that are large: the memory they hold is admitted like all else. Who asks
for too much of it is told which limit it is; others go on.
"""
import struct

from cured_daemon import SANITIZE, DaemonTest, main, wait_for
from cured_wire import INVALID_ARGUMENT, RESOURCE_EXHAUSTED

MIB = 1 << 20


class AxisMemory(DaemonTest):
    COUNT = 12 * MIB  # of u8: their sums outgrow every buffer on the way

    def stall(self, c, f, calls):
        """Starts calls of which c takes no answer; the statuses of those that are over."""
        streams = [c.start_descriptor("u8", ["sum"], f.fileno(), axis=(self.COUNT, 1, 1)) for _ in range(calls)]
        for stream in streams:
            c.answers[stream].auto_credit = False
        answers = [c.answers[s] for s in streams]
        c.until(lambda: all(a.over or a.window < 1 << 16 for a in answers))
        return [a.status for a in answers if a.over]

    def assert_reduces(self, c):
        """A long row, columns, and millions of answers that are taken."""
        ones = struct.pack("<d", 1) * 50000
        answer = c.inline("f64", ["sum"], ones, axis=(1, 50000, 1))
        self.assertEqual(struct.pack("<d", 50000), answer.array(0, 8, 1))
        answer = c.inline("f64", ["mean", "prod"], ones, axis=(1, 100, 500))
        self.assertEqual(struct.pack("<d", 1) * 500, answer.array(1, 8, 500))
        answer = c.stream("u8", ["max"], bytes(6 * MIB), axis=(6 * MIB, 1, 1))
        self.assertEqual(bytes(6 * MIB), answer.array(0, 1, 6 * MIB))


class Stalled(AxisMemory):
    OPTIONS = {"cpu_workers": 2, "slabs": 6, "max_state_bytes": 128 * MIB, "max_state_bytes_per_connection": 48 * MIB}

    def test_one_connection(self):
        before = self.daemon.rss_bytes()
        f = self.memfd(bytes(self.COUNT))
        c = self.connect()
        refused = self.stall(c, f, 40)
        self.daemon.come_to_rest()
        self.assertGreater(len(refused), 30)
        for status in refused:
            self.assert_sentence(status, RESOURCE_EXHAUSTED, "max_state_bytes_per_connection", str(48 * MIB))
        self.assertLess(self.daemon.rss_bytes() - before, (600 if SANITIZE else 120) * MIB)
        small = c.inline("u8", ["sum"], b"\1\2", axis=(2, 1, 1))  # what takes next to nothing is still done
        self.assertEqual(b"\1" + bytes(7) + b"\2" + bytes(7), small.array(0, 8, 2))
        with self.daemon.connect() as other:
            self.assert_reduces(other)
        c.close()
        self.daemon.check_returned(self)

    def test_all_connections(self):
        f = self.memfd(bytes(self.COUNT))
        hostile = [self.connect() for _ in range(4)]
        refused = [self.stall(c, f, 8) for c in hostile]
        self.assert_sentence(refused[3][-1], RESOURCE_EXHAUSTED, "max_state_bytes, %d" % (128 * MIB))
        self.assert_serves()
        for c in hostile:
            c.close()
        self.daemon.check_returned(self)
        with self.daemon.connect() as other:
            self.assert_reduces(other)

    def test_uploads(self):
        """The same by DATA: what they sent waits in memory of the daemon."""
        c = self.connect()
        before = self.daemon.rss_bytes()
        streams = []
        for _ in range(40):
            stream = c.start_stream("u8", ["sum"], self.COUNT, axis=(self.COUNT, 1, 1))
            c.answers[stream].auto_credit = False
            c.send_data(stream, bytes(4 * MIB // 16))
            streams.append(stream)
        c.ping()
        refused = [c.answers[s].status for s in streams if c.answers[s].over]
        self.assertGreater(len(refused), 30)
        self.assert_sentence(refused[0], RESOURCE_EXHAUSTED, "max_state_bytes_per_connection")
        for stream in streams:
            while not c.answers[stream].over and c.credit[stream] >= 1 << 18:
                c.send_data(stream, bytes(1 << 18))
                c.receive()
        self.assertLess(self.daemon.rss_bytes() - before, (600 if SANITIZE else 120) * MIB)
        with self.daemon.connect() as other:
            self.assert_reduces(other)
        c.close()
        self.daemon.check_returned(self)

    def test_many_answers_for_a_byte(self):
        """A claim is no larger than what its answers may take: 21 ops make over a hundred bytes of one."""
        ops = ["sum", "mean", "min", "max", "argmin", "argmax", "count", "count_nonzero", "count_nan", "any", "all", "sumsq", "norm1",
               "norm2", "norminf", "var", "std", "prod", "bit_and", "bit_or", "bit_xor"]
        f = self.memfd(bytes(self.COUNT))
        before = self.daemon.rss_bytes()
        c = self.connect()
        stream = c.start_descriptor("u8", ops, f.fileno(), axis=(self.COUNT, 1, 1))
        c.answers[stream].auto_credit = False
        c.until(lambda: c.answers[stream].window < 1 << 16)
        self.daemon.come_to_rest()
        self.assertLess(self.daemon.rss_bytes() - before, (300 if SANITIZE else 60) * MIB)
        c.close()
        self.daemon.check_returned(self)

    def test_wide_states(self):
        """States that fit for fewer workers than there are: fewer work. Where not one fits columns are folded strip by strip, and of
        a stream that is too long for that the limit is said."""
        c = self.connect()
        for columns in (20000, 60000, 110000):
            raw = struct.pack("<2d", 1e300, -1e-300) * (columns // 2 * 40)
            for answer in (c.stream("f64", ["sum"], raw, axis=(1, 40, columns)),
                           c.descriptor("f64", ["sum"], self.memfd(raw).fileno(), axis=(1, 40, columns))):
                self.assertIsNone(answer.status)
                self.assertEqual(struct.pack("<2d", 40 * 1e300, -40 * 1e-300) * (columns // 2), answer.array(0, 8, columns))
        raw = bytes(8 * 2 * 200000)
        answer = c.stream("f64", ["sum"], raw, axis=(1, 2, 200000))
        self.assertIsNone(answer.status)
        self.assertEqual(bytes(8 * 200000), answer.array(0, 8, 200000))
        self.assert_sentence(c.stream("f32", ["prod"], bytes(4 * 650 * 20000), axis=(1, 650, 20000)).status, INVALID_ARGUMENT,
                             "axis", "max_state_bytes_per_connection", "pass a file or a region")
        self.assert_reduces(c)

    def test_given_back_while_it_still_works(self):
        """A call that is over may have a job that is not: its memory is in use until the job is done."""
        f = self.memfd(bytes(self.COUNT))
        for _ in range(30):
            c = self.connect()
            for _ in range(3):
                c.start_descriptor("u8", ["sum"], f.fileno(), axis=(self.COUNT, 1, 1))
            c.close()
        wait_for("the memory to be given back", lambda: self.daemon.gauges()["state_bytes"] == 0)
        self.daemon.check_returned(self)


if __name__ == "__main__":
    main()
