"""test_loops: a daemon of several loops. Its clients see one: the same answers, limits, counts and end, wherever they are served."""
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from admin_client import get
from connection import Closed, Connection
from cured_daemon import CURED, Daemon, DaemonTest, environment, main, wait_for
from cured_wire import (CALL, CANCEL, DATA, DEADLINE_EXCEEDED, END, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, UNAVAILABLE, beside_message,
                        call_message, frame, mask_message, reduce_message, stream_input)
from expected import expect_all, plain

OPS = ["sum", "max", "mean"]
HOME = 2  # connections that stay in the first loop: whoever asks for metrics, and the test's that asks for counters
KEPT_S = 0.1  # a page of metrics is made anew by then
AWAY_S = 0.2  # a client that owes something for so long is served by the first loop


def number(answer):
    return int.from_bytes(answer.results[0].value, "little")


class Loops(DaemonTest):
    OPTIONS = {"loops": 4, "cpu_workers": 2, "log_calls": "off"}

    def guests(self, count=6):
        """Connections of which most are not the first loop's any more."""
        conns = [self.connect() for _ in range(count)]
        for _ in range(3):
            for c in conns:
                self.assertEqual(6, number(c.inline("u8", ["sum"], b"\1\2\3")))
        return conns


class Calls(Loops):
    def test_it_has_threads_for_them(self):
        daemon = Daemon(self.folder, listen=["unix:" + os.path.join(self.folder, "one.sock")], cpu_workers=2, loops=1)
        try:
            self.assertEqual(daemon.threads() + 3, self.daemon.threads())
        finally:
            daemon.check_end(self, daemon.stop())

    def test_every_way_there_is(self):
        """Each in the middle of small ones, by connections in any loop."""
        raw, large = plain("f32", 500), plain("f32", 30000)
        wanted, wanted_large = expect_all(OPS, "f32", raw), expect_all(OPS, "f32", large)
        f = self.memfd(large)

        def with_mask(c):
            stream = c.open_stream()
            call = c.call_frame(stream, "u8", ["sum"], stream_input(3), mask=mask_message(beside_message(3)))
            c.send(call + frame(DATA, stream, b"\1\0\1" + b"\1\2\3", END))
            return c.wait(stream).keys()
        ways = {
            "inline": (lambda c: c.inline("f32", OPS, raw).keys(), wanted),
            "pieces": (lambda c: c.stream("f32", OPS, raw, chunks=(7, 300)).keys(), wanted),
            "unknown": (lambda c: c.stream("f32", OPS, raw, known=False).keys(), wanted),
            "large": (lambda c: c.inline("f32", OPS, large).keys(), wanted_large),
            "upload": (lambda c: c.stream("f32", OPS, large, chunks=(50000,)).keys(), wanted_large),
            "descriptor": (lambda c: c.descriptor("f32", OPS, f.fileno()).keys(), wanted_large),
            "timeout": (lambda c: c.inline("f32", OPS, raw, timeout_ms=60000).keys(), wanted),
            "info": (lambda c: bool(c.info()["counters"]["calls"] >= 0), True),
            "stats": (lambda c: bool(c.stats()), True),
            "ping": (lambda c: c.ping(b"x"), b"x"),
            "region": (lambda c: (c.register(1, f.fileno()), c.region("f32", OPS, 1).keys(), c.unregister(1))[1], wanted_large),
            "mask": (with_mask, with_mask(self.connect())),
        }
        for name, (ask, right) in ways.items():
            for c in self.guests(4):
                self.assertEqual(right, ask(c), name)
                self.assertEqual(wanted, c.inline("f32", OPS, raw).keys(), name)

    def test_refusals(self):
        """A request that is wrong is refused in the same words by every loop."""
        for options, words in (({"dtype": "f32", "ops": ["sum"], "data": b"123"}, ("multiple of 4",)), ({"dtype": "u8", "ops": [], "data": b"1"}, ("ops",))):
            said = {c.inline(**options).status.message for c in self.guests()}
            self.assertEqual(1, len(said), said)
            for word in words:
                self.assertIn(word, said.pop())

    def test_frames_that_break_the_protocol(self):
        for c in self.guests(4):
            c.send(frame(DATA, 1000, b"x"))
            self.assert_sentence(c.read_rest(), INVALID_ARGUMENT, "stream 1000 has had no call")
        for c in self.guests(4):
            c.send(b"nonsense, and 16")
            self.assert_sentence(c.read_rest(), INVALID_ARGUMENT)
        self.assert_serves()

    def test_an_empty_array_by_call_alone(self):
        """Nothing comes behind it, so nothing is waited for."""
        for c in self.guests():
            begun = time.monotonic()
            for _ in range(20):
                stream = c.open_stream()
                c.send(c.call_frame(stream, "u8", ["sum"], stream_input(0), flags=END))
                self.assertEqual(0, number(c.wait(stream)))
            self.assertLess(time.monotonic() - begun, 20 * AWAY_S / 2)

    def test_a_client_that_pauses(self):
        """In a header, in a CALL, before its DATA, and in it: answered all the same, and cancelled all the same."""
        for cut in (5, 20, -20, -1):
            for c in self.guests(3):
                stream = c.open_stream()
                data = c.call_frame(stream, "u8", ["sum"], stream_input(3)) + frame(DATA, stream, b"\1\2\3", END)
                c.send(data[:cut])
                time.sleep(1.5 * AWAY_S)
                c.send(data[cut:])
                self.assertEqual(6, number(c.wait(stream)), cut)
        for c in self.guests(3):
            stream = c.start_stream("u8", ["sum"], 3)
            c.send(frame(CANCEL, stream))
            self.assertIsNotNone(c.wait(stream).status)
            self.assertEqual(6, number(c.inline("u8", ["sum"], b"\1\2\3")))

    def test_a_deadline_counts_from_the_call_on(self):
        for c in self.guests(3):
            stream = c.start_stream("u8", ["sum"], 3, timeout_ms=30)
            self.assertEqual(DEADLINE_EXCEEDED, c.wait(stream).status.code)

    def test_replies_that_nobody_reads(self):
        """Whoever reads nothing is served again once it reads."""
        for c in self.guests(3):
            call = call_message(reduce_message("u8", OPS, stream_input(3)))
            streams = [c.open_stream() for _ in range(400)]
            for stream in streams:
                c.send(frame(CALL, stream, call) + frame(DATA, stream, b"\1\2\3", END))
            time.sleep(1.5 * AWAY_S)
            for stream in streams:
                self.assertEqual(6, number(c.wait(stream)))

    def test_clients_that_leave_at_any_moment(self):
        call = call_message(reduce_message("u8", ["sum"], stream_input(3)))
        for n in range(300):
            c = Connection(self.daemon.address)
            try:
                c.inline("u8", ["sum"], b"123")
                data = frame(CALL, 2, call) + frame(DATA, 2, b"\1\2\3", END)
                c.send(data[:n % (len(data) + 1)])
            except Closed:
                pass
            c.close()
        self.assert_serves()
        self.daemon.check_returned(self)

    def test_descriptors_for_nothing(self):
        """They come home with their connection, and are closed with it."""
        f = self.memfd(bytes(8))
        for c in self.guests():
            c.send(b"C", [f.fileno()] * 3)
            time.sleep(0.01)
            c.close()
        self.daemon.check_returned(self)


class Counts(Loops):
    OPTIONS = {"loops": 3, "cpu_workers": 1, "log_calls": "off"}

    def test_every_call_once(self):
        before = self.daemon.counters()
        conns = self.guests(9)
        for _ in range(50):
            streams = [(c, c.start_inline("u8", ["sum"], b"123")) for c in conns]
            for c, stream in streams:
                c.wait(stream)
        after = self.daemon.counters()
        calls = 9 * 53
        for name, wanted in (("calls_ok", calls + 1), ("calls_inline", calls), ("input_bytes_total", 3 * calls)):  # and one that asked
            self.assertEqual(wanted, after[name] - before[name], name)
        self.assertEqual(before["calls"], after["calls"])

    def test_the_slowest_name_their_client(self):
        self.guests()
        self.assertTrue(all(call["user"] for call in self.connect().slow_log()))

    def test_whoever_asks_for_statistics_keeps_nobody(self):
        """Each answer has all loops stand still for a moment: its client's go is then over."""
        conns, asking, over = self.guests(4), self.connect(), threading.Event()

        def ask():
            while not over.is_set():
                streams = [asking.open_stream() for _ in range(64)]
                for stream in streams:
                    asking.send(frame(CALL, stream, call_message(stats=True), END))
                for stream in streams:
                    asking.over(stream)
        thread = threading.Thread(target=ask)
        thread.start()
        try:
            for _ in range(200):
                for c in conns:
                    self.assertEqual(6, number(c.inline("u8", ["sum"], b"\1\2\3")))
        finally:
            over.set()
            thread.join()


class Where(Loops):
    """In which loop connections are, as operators are told."""
    OPTIONS = {"loops": 3, "cpu_workers": 1, "log_calls": "off", "admin": "unix:admin.sock"}
    AGAIN = 256  # server/native/annex.c

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.admin = "unix:" + os.path.join(cls.folder, "admin.sock")

    def places(self):
        """Connections of each loop; the one that asks is the first loop's."""
        found = re.findall(r'^cured_loop_connections\{loop="(\d)"\} (\d+)$', get(self.admin, "/metrics").body.decode(), re.M)
        self.assertEqual(["0", "1", "2"], [loop for loop, _ in found])
        return [int(number) for _, number in found]

    def wait_for_places(self, *wanted):
        wait_for("%s" % (wanted,), lambda: self.places() == list(wanted), timeout=20)

    def small(self, c, count):
        for _ in range(count):
            self.assertEqual(6, number(c.inline("u8", ["sum"], b"\1\2\3")))

    def setUp(self):
        self.wait_for_places(HOME, 0, 0)

    def test_each_is_counted_where_it_is(self):
        conns = [self.connect() for _ in range(4)]
        for c in conns:
            c.greet()
        self.wait_for_places(HOME + 4, 0, 0)
        for c in conns:
            self.small(c, 1)
        self.wait_for_places(HOME, 2, 2)
        for c in conns:
            c.close()
        self.wait_for_places(HOME, 0, 0)

    def test_it_leaves_again(self):
        """Once it has asked for nothing but small arrays for a while."""
        c = self.connect()
        for _ in range(3):
            self.small(c, self.AGAIN)
            wait_for("it to leave", lambda: self.places()[0] == HOME, timeout=20)
            self.assertIsNone(c.stream("u8", ["sum"], bytes(20000)).status)
            self.wait_for_places(HOME + 1, 0, 0)
            self.small(c, self.AGAIN - 1)
            time.sleep(KEPT_S)
            self.assertEqual([HOME + 1, 0, 0], self.places())
            self.small(c, 1)

    def test_who_mixes_stays_at_home(self):
        """Each other request begins the count anew, by whichever way its array comes."""
        c, f = self.connect(), self.memfd(bytes(8))
        others = (lambda: c.stream("u8", ["sum"], bytes(20000)), lambda: c.descriptor("u8", ["sum"], f.fileno()),
                  lambda: c.stream("u8", ["sum"], bytes(9), chunks=(4,)), lambda: c.info(), lambda: c.inline("u8", [], b"1"))
        self.small(c, 1)
        for other in others * 2:
            other()
            self.small(c, self.AGAIN - 56)
            time.sleep(KEPT_S)
            self.wait_for_places(HOME + 1, 0, 0)


class AtTheLimit(Loops):
    OPTIONS = {"loops": 2, "cpu_workers": 1, "max_jobs_per_user": 3, "log_calls": "off"}

    @classmethod
    def start_daemon(cls):
        return Daemon(cls.folder, ["unix:" + os.path.join(cls.folder, "cured.sock"), "tcp:127.0.0.1:0"], **cls.OPTIONS)

    def test_a_user_with_no_calls_left(self):
        conns, hoarder = self.guests(4), self.connect()
        streams = [hoarder.start_stream("u8", ["sum"], None) for _ in range(3)]
        hoarder.ping()
        time.sleep(0.05)  # that the user has none left is news for the other loop
        for c in conns:
            self.assert_sentence(c.inline("u8", ["sum"], b"123").status, RESOURCE_EXHAUSTED, "max_jobs_per_user")
        for stream in streams:
            hoarder.send_data(stream, b"1", True)
            hoarder.wait(stream)
        for c in conns + self.guests(4):
            self.assertEqual(6, number(c.inline("u8", ["sum"], b"\1\2\3")))

    def test_one_user_takes_what_another_gives_back(self):
        """In one turn, so that all of them together hold as many as before."""
        def hold(c, count):
            streams = [c.start_stream("u8", ["sum"], None) for _ in range(count)]
            c.ping()
            return streams

        def end(c, stream):
            c.send_data(stream, b"1", True)
            return stream
        near, far = [self.connect() for _ in range(4)], [Connection(self.daemon.addresses[1]) for _ in range(4)]
        self.addCleanup(lambda: [c.close() for c in far])
        for c in near + far:
            for _ in range(3):
                self.assertEqual(6, number(c.inline("u8", ["sum"], b"\1\2\3")))
        one, other = self.connect(), Connection(self.daemon.addresses[1])
        self.addCleanup(other.close)
        some, others = hold(one, 3), hold(other, 2)
        time.sleep(0.05)
        os.kill(self.daemon.pid, signal.SIGSTOP)
        try:
            end(one, some[0])
            others.append(other.start_stream("u8", ["sum"], None))
        finally:
            os.kill(self.daemon.pid, signal.SIGCONT)
        one.wait(some.pop(0))
        other.ping()
        time.sleep(0.05)
        for c in near:
            self.assertEqual(6, number(c.inline("u8", ["sum"], b"\1\2\3")))
        for c in far:
            self.assert_sentence(c.inline("u8", ["sum"], b"123").status, RESOURCE_EXHAUSTED, "max_jobs_per_user")
        for c, streams in ((one, some), (other, others)):
            for stream in streams:
                c.wait(end(c, stream))

    def test_a_new_limit(self):
        """By a reload, while connections are in every loop: the limit of calls is read again by each."""
        conns = self.guests(4)
        for _ in range(20):
            self.daemon.process.send_signal(signal.SIGHUP)
            for c in conns:
                self.assertEqual(6, number(c.inline("u8", ["sum"], b"\1\2\3")))
        wait_for("the reloads", lambda: "options changed" in self.daemon.log())


class Ends(unittest.TestCase):
    def test_it_says_why_it_does_not_start(self):
        """Each loop takes some of the files that may be open. Then none is left to look for leaks with."""
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        ran = subprocess.run([CURED, "--loops", "64", "--listen", "tcp:127.0.0.1:0", "--backend", "cpu"], stderr=subprocess.PIPE, text=True,
                             env=environment(ASAN_OPTIONS="detect_leaks=0"), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (160, min(160, most))))
        self.assertEqual(69, ran.returncode, ran.stderr)
        self.assertIn("loops: cannot set up a further one: too many open files", ran.stderr)

    def test_sigterm_while_they_move(self):
        """Each call is answered, or refused because the daemon ends; none hangs, and the daemon ends by itself."""
        folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        for turn in range(8):
            daemon = Daemon(folder, loops=3, cpu_workers=1, log_calls="off")
            errors, ends = [], []

            def ask(n):
                try:
                    while True:
                        with Connection(daemon.address) as c:
                            for k in range(n + 2):
                                answer = c.inline("u8", ["sum"], b"\1\2\3" * (1 if k % 7 else 9000))
                                if answer.status:
                                    assert answer.status.code == UNAVAILABLE, answer.status
                                    ends.append(n)
                                    return
                                assert number(answer) == (6 if k % 7 else 54000)
                except (Closed, OSError):
                    ends.append(n)
                except BaseException as e:  # noqa: B902 (shown below)
                    errors.append(e)
            threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
            for thread in threads:
                thread.start()
            time.sleep(0.05 + 0.02 * turn)
            status = daemon.stop()
            for thread in threads:
                thread.join()
            daemon.check_end(self, status)
            self.assertEqual([], errors)
            self.assertEqual(8, len(ends))


if __name__ == "__main__":
    main()
