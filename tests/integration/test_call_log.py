#!/usr/bin/env python3
"""The log's lines about calls: which get one, what they say, that clients cannot forge or flood them, and SIGUSR1."""
import json
import os
import signal
import tempfile

from cured_daemon import DaemonTest, Daemon, main, wait_for
from connection import Connection
from cured_wire import hello_message, HELLO, frame

FLOATS = bytes(4096)


class LogTest(DaemonTest):
    """A daemon for each test, whose log it reads."""

    def start(self, **options):
        folder = tempfile.mkdtemp(dir=self.daemon.folder)
        daemon = Daemon(folder, **options)
        self.addCleanup(daemon.stop)
        return daemon

    def lines(self, daemon, *words):
        return [line for line in daemon.lines if all(word in line for word in words)]

    def wait_line(self, daemon, *words):
        return wait_for("a line with %r" % (words,), lambda: self.lines(daemon, *words))[0]

    def barrier(self, daemon):
        """All that calls have written until now is there afterwards."""
        seen = len(self.lines(daemon, " stats uptime_ms="))
        os.kill(daemon.pid, signal.SIGUSR1)
        wait_for("the stats", lambda: len(self.lines(daemon, " stats uptime_ms=")) > seen)


class Lines(LogTest):
    def test_failed_calls_have_a_line_unless_told_otherwise(self):
        daemon = self.start()
        with daemon.connect() as conn:
            conn.inline("f32", ("sum",), FLOATS)
            conn.inline("f32", ("bit_and",), FLOATS)
        line = self.wait_line(daemon, "INFO call failed", "status=INVALID_ARGUMENT")
        for part in ("conn=", 'user="uid %d"' % os.getuid(), "pid=%d" % os.getpid(), "front=native", "transport=unix",
                     "method=reduce", "ops=bit_and", "dtype=f32", "total_us=", 'why="op bit_and'):
            self.assertIn(part, line)
        self.assertEqual(1, len(self.lines(daemon, "method=")))

    def test_off_all_and_slow(self):
        daemon = self.start(log_calls="off")
        with daemon.connect() as conn:
            conn.inline("f32", ("bit_and",), FLOATS)
        self.barrier(daemon)
        self.assertEqual([], self.lines(daemon, "call failed"))
        daemon = self.start(log_calls="all")
        with daemon.connect() as conn:
            conn.inline("f32", ("sum", "mean"), FLOATS)
        line = self.wait_line(daemon, "INFO call ", "ops=sum,mean")
        for part in ("source=inline", "bytes=4096", "status=OK", "lanes=loop", "queue_us=", "run_us=", "bytes_per_s="):
            self.assertIn(part, line)
        daemon = self.start(log_calls="slow", slow_ms=0)
        with daemon.connect() as conn:
            conn.inline("f32", ("sum",), FLOATS)
        self.wait_line(daemon, "INFO slow call", "ops=sum")

    def test_options_change_at_hangup(self):
        folder = tempfile.mkdtemp(dir=self.daemon.folder)
        path = os.path.join(folder, "cured.json")
        write(path, {"log_calls": "off"})
        daemon = self.start(config=path)
        with daemon.connect() as conn:
            conn.inline("f32", ("sum",), FLOATS)
            write(path, {"log_calls": "all", "log_format": "json"})
            os.kill(daemon.pid, signal.SIGHUP)
            self.wait_line(daemon, "log_format")
            conn.inline("f32", ("max",), FLOATS)
        line = json.loads(self.wait_line(daemon, '"ops":"max"'))
        self.assertEqual(("info", "call", "f32", 4096, "OK", os.getpid()),
                         tuple(line[k] for k in ("level", "message", "dtype", "bytes", "status", "pid")))
        self.assertEqual([], self.lines(daemon, "ops=sum"))

    def test_a_client_cannot_forge_a_line(self):
        daemon = self.start(log_calls="all")
        with Connection(daemon.address, hello=False) as conn:
            conn.send(frame(HELLO, 0, hello_message(client='x" status=OK\n2026 INFO forged')))
            conn.greet()
            conn.inline("f32", ("sum",), FLOATS)
        line = self.wait_line(daemon, "ops=sum")
        self.assertIn('client="x\\" status=OK?2026 INFO forged"', line)
        self.assertEqual(1, len(self.lines(daemon, "forged")))


class Floods(LogTest):
    def test_failures_without_end_have_few_lines(self):
        daemon = self.start()
        with daemon.connect() as conn:
            for _ in range(2000):
                conn.inline("f32", ("bit_and",), b"")
        self.barrier(daemon)
        written = self.lines(daemon, "call failed")
        self.assertGreaterEqual(len(written), 10)
        self.assertLess(len(written), 200)  # 10 at once, and one a second
        wait_for("word of all calls", lambda: self.accounted(daemon) >= 2000)
        self.assertEqual(2000, self.accounted(daemon))

    def accounted(self, daemon):
        told = sum(int(line.rsplit("left_out=", 1)[1].split()[0]) for line in self.lines(daemon, "left_out="))
        rest = sum(int(line.rsplit("count=", 1)[1]) for line in self.lines(daemon, "calls without a line of their own"))
        return len(self.lines(daemon, "call failed")) + told + rest

    def test_the_last_failures_are_counted_at_the_end(self):
        """Those of a daemon that ends meanwhile, in each of its loops."""
        for loops in (1, 3):
            daemon = self.start(loops=loops, cpu_workers=1)
            conns = [daemon.connect() for _ in range(4)]
            for conn in conns:
                conn.inline("u8", ("sum",), b"123")
                for _ in range(100):
                    self.assertIsNotNone(conn.inline("f32", ("sum",), b"123").status)
            daemon.check_end(self, daemon.stop())
            for conn in conns:
                conn.close()
            self.assertEqual(400, self.accounted(daemon), loops)

    def test_one_user_does_not_silence_others(self):
        if os.getuid() != 0:
            self.skipTest("only root can ask as another user")
        daemon = self.start()
        os.chmod(self.daemon.folder, 0o755)
        os.chmod(daemon.folder, 0o755)
        os.chmod(daemon.address[5:], 0o777)
        with daemon.connect() as conn:
            for _ in range(500):
                conn.inline("f32", ("bit_and",), b"")
        os.seteuid(65534)
        try:
            stranger = daemon.connect()
        finally:
            os.seteuid(0)
        with stranger:
            stranger.inline("f32", ("bit_or",), b"")
        self.wait_line(daemon, "call failed", 'user="uid 65534"', "ops=bit_or")


class Signals(LogTest):
    def test_usr1_writes_stats_and_the_slowest(self):
        daemon = self.start()
        with daemon.connect() as conn:
            conn.stream("f64", ("prod",), bytes(1 << 20))  # products are always a worker's
            os.kill(daemon.pid, signal.SIGUSR1)
            line = self.wait_line(daemon, " slow call ", "ops=prod")
        for part in ("bytes=1048576", "run_us=", "total_us=", "lanes=cpu", 'user="uid %d"' % os.getuid()):
            self.assertIn(part, line)
        self.assertIn("requests=1", self.wait_line(daemon, " stats uptime_ms="))
        self.wait_line(daemon, " stats requests", "method=reduce", "source=stream", "status=OK", "count=1")
        self.wait_line(daemon, " stats stage", "stage=total")
        self.wait_line(daemon, " stats lane", "lane=cpu", "bytes=1048576")


def write(path, options):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(options, f)


if __name__ == "__main__":
    main()
