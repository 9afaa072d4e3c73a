#!/usr/bin/env python3
"""cured-client stats, slowlog, health and top: what they print, how they end, and that top leaves the terminal as it was."""
import json
import os
import pty
import select
import signal
import subprocess
import tempfile
import termios
import time

from cured_daemon import CLIENT, DaemonTest, Daemon, environment, main, wait_for

ENTER, LEAVE = b"\033[?1049h", b"\033[?1049l"
HANG_S = 180


def run(address, *words, **more):
    return subprocess.run([CLIENT, *words, "--connect", address], capture_output=True, text=True, env=environment(),
                          timeout=HANG_S, **more)


def state_of(pid):
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rpartition(")")[2].split()[0]


class Screen:
    """cured-client top on a terminal of its own."""

    def __init__(self, address):
        self.main, self.end = pty.openpty()
        self.before = termios.tcgetattr(self.end)
        self.seen = b""
        self.process = subprocess.Popen([CLIENT, "top", "--connect", address], stdin=self.end, stdout=self.end,
                                        stderr=self.end, env=environment(TERM="xterm"), start_new_session=True)

    def read(self):
        while select.select([self.main], [], [], 0)[0]:
            self.seen += os.read(self.main, 65536)
        return self.seen

    def until(self, text):
        wait_for("%r on the screen" % text, lambda: text in self.read())

    def press(self, key):
        os.write(self.main, key)

    def over(self):
        limit = time.monotonic() + HANG_S
        while self.process.poll() is None:
            self.read()
            if time.monotonic() > limit:
                self.process.kill()
                raise AssertionError("top does not end")
            time.sleep(0.01)
        self.read()
        after = termios.tcgetattr(self.end)
        os.close(self.main)
        os.close(self.end)
        return self.process.returncode, after == self.before


class Top(DaemonTest):
    def shown(self):
        screen = Screen(self.daemon.address)
        screen.until(b"requests ")
        screen.until(b"lane ")
        return screen

    def check_left(self, screen, code):
        self.assertEqual((code, True), screen.over())
        self.assertEqual(1, screen.seen.count(ENTER))
        self.assertLess(screen.seen.index(ENTER), screen.seen.index(LEAVE))
        self.assertEqual(b"", screen.seen[screen.seen.index(LEAVE) + len(LEAVE):].strip())

    def test_q_ends_it(self):
        screen = self.shown()
        screen.press(b"x")
        screen.press(b"q")
        self.check_left(screen, 0)

    def test_signals_leave_the_terminal_as_it_was(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            screen = self.shown()
            screen.process.send_signal(number)
            self.check_left(screen, 128 + number)

    def test_stopped_and_continued(self):
        screen = self.shown()
        screen.process.send_signal(signal.SIGTSTP)
        screen.until(LEAVE)
        wait_for("it is stopped", lambda: state_of(screen.process.pid) == "T")  # one that is not yet would stop after SIGCONT
        screen.process.send_signal(signal.SIGCONT)
        wait_for("the picture again", lambda: screen.read().count(ENTER) == 2)
        screen.press(b"q")
        self.assertEqual((0, True), screen.over())

    def test_a_daemon_that_goes(self):
        daemon = Daemon(tempfile.mkdtemp(dir=self.daemon.folder))
        screen = Screen(daemon.address)
        screen.until(b"lane ")
        daemon.stop()
        code, same = screen.over()
        self.assertEqual((True, True), (code in (69, 75), same), code)
        self.assertIn(b"does not answer any more", screen.seen[screen.seen.index(LEAVE):])

    def test_once_is_plain(self):
        answer = run(self.daemon.address, "top", "--once")
        self.assertEqual((0, ""), (answer.returncode, answer.stderr))
        self.assertNotIn("\033", answer.stdout)
        for word in ("backend cpu", "in flight", "total", "cpu ", "uid %d" % os.getuid()):
            self.assertIn(word, answer.stdout)


class Figures(DaemonTest):
    def test_stats(self):
        with self.daemon.connect() as conn:
            conn.inline("u8", ("prod",), bytes(4096))
        text = run(self.daemon.address, "stats")
        self.assertEqual(0, text.returncode, text.stderr)
        for line in ("op prod 1", "bytes u8 4096"):
            self.assertIn(line + "\n", text.stdout)
        stats = json.loads(run(self.daemon.address, "stats", "--json").stdout)
        self.assertEqual(1, stats["ops"]["prod"])
        self.assertIn(("reduce", "inline", "OK"), [(r["method"], r["source"], r["code"]) for r in stats["requests"]])

    def test_slow_log(self):
        with self.daemon.connect() as conn:
            conn.stream("f64", ("max",), bytes(1 << 20))
            conn.inline("f32", ("bit_and",), bytes(4))
        self.assertIn("reduce max f64 stream 1.0 MB", run(self.daemon.address, "slowlog").stdout)
        failed = [line for line in run(self.daemon.address, "slowlog").stdout.splitlines() if "bit_and" in line]
        self.assertRegex(failed[0], r"^\S+ us reduce bit_and f32 stream \S+ B, INVALID_ARGUMENT, uid \d+ pid %d " % os.getpid())
        log = json.loads(run(self.daemon.address, "slowlog", "--json").stdout)["slow"]
        self.assertEqual(1, sum(call["ops"] == "max" and call["pid"] == os.getpid() for call in log))

    def test_nothing_is_counted_without_a_daemon(self):
        answer = run("embedded:", "stats")
        self.assertNotEqual(0, answer.returncode)
        self.assertIn("no daemon is asked", answer.stderr)


class Health(DaemonTest):
    def test_ready(self):
        self.assertEqual((0, "ready\n"), (run(self.daemon.address, "health").returncode,
                                          run(self.daemon.address, "health").stdout))
        self.assertEqual((0, ""), (run(self.daemon.address, "health", "--quiet").returncode,
                                   run(self.daemon.address, "health", "--quiet").stdout))
        self.assertEqual({"ready": True}, json.loads(run(self.daemon.address, "health", "--json").stdout))

    def test_nobody_listens(self):
        answer = run("unix:" + os.path.join(self.daemon.folder, "nobody.sock"), "health")
        self.assertEqual(69, answer.returncode, answer.stderr)

    def test_full(self):
        daemon = Daemon(tempfile.mkdtemp(dir=self.daemon.folder), max_jobs=1)
        self.addCleanup(daemon.stop)
        with daemon.connect() as conn:
            stream = conn.start_stream("f32", ("sum",), 1 << 20)
            conn.send_data(stream, bytes(1000))
            wait_for("the call", lambda: daemon.counters()["calls"] == 1)
            answer = run(daemon.address, "health", "--timeout", "30s")
            self.assertEqual(75, answer.returncode, answer.stderr)
            self.assertIn("RESOURCE_EXHAUSTED", answer.stderr)


if __name__ == "__main__":
    main()
