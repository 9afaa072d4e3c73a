"""test_fuse: files of a FUSE server that answers, answers wrongly, or stops answering while others must be served."""
import errno
import os
import resource
import signal
import socket
import subprocess
import sys
import unittest

from connection import HANG_S, Closed
from cured_daemon import Daemon, DaemonTest, main, wait_for
from cured_wire import (DATA_LOSS, DEADLINE_EXCEEDED, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, UNAVAILABLE,
                        descriptor_region)
from expected import expect_all, expect_tiled, plain
from fuse_files import DIRECT_IO, NONSEEKABLE, FuseFile, why_not

OPS = ["sum", "max", "argmin", "count"]


class Fuse(DaemonTest):
    OPTIONS = {"foreign_files_threads": 3, "files_threads": 2, "slabs": 4, "max_jobs": 64}

    @classmethod
    def setUpClass(cls):
        reason = why_not()
        if reason:
            raise unittest.SkipTest(reason)
        super().setUpClass()

    def fuse(self, data, size=None):
        try:
            f = FuseFile(self.folder, data, size)
        except OSError as e:
            self.skipTest("cannot mount FUSE here: %s" % e.strerror)
        self.addCleanup(f.abort)
        return f

    def others_are_served(self):
        """By every way in, while a file server is silent."""
        tile = plain("f32", 1 << 16)
        conn = self.connect()
        self.assertEqual(expect_all(OPS, "f32", tile[:4000]), conn.inline("f32", OPS, tile[:4000]).keys())
        wanted = [expect_tiled(op, "f32", tile, 20) for op in OPS]
        self.assertEqual(wanted, conn.stream("f32", OPS, tile * 20).keys())
        for f in (self.file(tile * 20), self.memfd(tile * 20)):
            for _ in range(4):
                self.assertEqual(wanted, conn.descriptor("f32", OPS, f.fileno()).keys())


class Answering(Fuse):
    def test_right_answers(self):
        data = plain("f64", 200001)
        fuse = self.fuse(b"12345" + data)
        fd = fuse.open()
        conn = self.connect()
        self.assertEqual(expect_all(OPS, "f64", data), conn.descriptor("f64", OPS, fd, 5).keys())
        self.assertEqual(expect_all(OPS, "f64", data[8000:16000]), conn.descriptor("f64", OPS, fd, 8005, 1000).keys())
        self.assertIn("read", fuse.seen())

    def test_reads_that_fail(self):
        fuse = self.fuse(plain("f32", 300000))
        fd = fuse.open()
        conn = self.connect()
        fuse.set(read_error=errno.EIO)
        self.assert_sentence(conn.descriptor("f32", OPS, fd).status, DATA_LOSS, "descriptor")
        fuse.set(read_error=0, short=700000)
        self.assert_sentence(conn.descriptor("f32", OPS, fd).status, DATA_LOSS, "descriptor", "ended")
        fuse.set(short=None)
        self.assertIsNone(conn.descriptor("f32", OPS, fd).status)

    def test_a_size_that_lies(self):
        """More than 2^60 bytes are announced, few are there."""
        fuse = self.fuse(bytes(5000), size=1 << 62)
        fd = fuse.open()
        conn = self.connect()
        self.assert_sentence(conn.descriptor("u8", ["sum"], fd).status, INVALID_ARGUMENT, "max_input_bytes")
        self.assert_sentence(conn.descriptor("u8", ["sum"], fd, 0, 1 << 40).status, DATA_LOSS, "ended")


    def test_a_size_of_0(self):
        """It may have bytes all the same; a file that has none is an array of no elements."""
        conn = self.connect()
        unknown, empty = self.fuse(bytes(5000), size=0).open(), self.fuse(b"").open()
        for options in ({}, {"count": 100}, {"count": 0}):
            self.assert_sentence(conn.descriptor("u8", ["sum"], unknown, **options).status, INVALID_ARGUMENT, "size of 0")
        self.assert_sentence(conn.register(1, unknown), INVALID_ARGUMENT, "size of 0")
        self.assertEqual(0, conn.descriptor("u8", ["sum"], empty).count)
        self.assertEqual(0, conn.register(1, empty))

    def test_a_file_without_positions(self):
        fuse = self.fuse(bytes(5000))
        fuse.set(open_flags=DIRECT_IO | NONSEEKABLE)
        conn, fd = self.connect(), fuse.open()
        self.assert_sentence(conn.descriptor("u8", ["sum"], fd).status, INVALID_ARGUMENT, "offset", "stream it")
        self.assert_sentence(conn.register(1, fd), INVALID_ARGUMENT, "offset", "stream it")


class Unclosable(Fuse):
    """Files whose close waits for their server: their descriptors stay the daemon's until it answers."""
    def few_files(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))

    def test_they_leave_room_for_others(self):
        fuse = self.fuse(plain("u8", 4096))
        fd = fuse.open()
        daemon = Daemon(self.folder, ["unix:" + os.path.join(self.folder, "small.sock")], self.few_files)
        self.addCleanup(lambda: daemon.check_end(self, daemon.stop()))
        fuse.set(hang={"flush"})
        refused = 0
        for _ in range(60):  # 1,920 descriptors
            conn = daemon.connect()
            try:
                for _ in range(32):
                    conn.start_descriptor("u8", ["sum"], fd)
                conn.ping()
            except (Closed, OSError):
                refused += 1
            conn.close()
        for first in (b"x", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):  # and where nobody takes any
            for _ in range(20):
                with socket.socket(socket.AF_UNIX) as s:
                    s.connect(daemon.address.partition(":")[2])
                    try:
                        for _ in range(6):
                            socket.send_fds(s, [first], [fd] * 40)
                    except OSError:
                        continue
        wait_for("their places", lambda: daemon.gauges()["connections"] == 1)
        self.assertLess(daemon.descriptors(), 512)
        self.assertGreater(refused, 20)
        conn = daemon.connect()
        self.assertEqual(expect_all(OPS, "u8", b"123"), conn.inline("u8", OPS, b"123").keys())
        fuse.let_go()
        wait_for("what was passed to be closed", lambda: not daemon.gauges()["file_tasks"])
        self.assertEqual(expect_all(OPS, "u8", plain("u8", 4096)), conn.descriptor("u8", OPS, fd).keys())


class Places(Fuse):
    OPTIONS = dict(Fuse.OPTIONS, files_threads=1)

    def test_calls_on_silent_files_leave_places(self):
        """A user who is alone may not take all of max_jobs by them, as files or regions: nobody can end such calls."""
        fuse = self.fuse(bytes(1 << 20))
        fd = fuse.open()
        conn = self.connect()
        self.assertEqual(1 << 20, conn.register(1, fd))
        fuse.set(hang={"getattr"})
        streams = [conn.start_descriptor("u8", OPS, fd) for _ in range(40)]
        wait_for("their places", lambda: self.daemon.gauges()["calls"] == 40)
        wait_for("a request that hangs", lambda: fuse.hangs("getattr"))
        # One thread looks what their files are, and counts them, in the order in which they came: all are, when this is answered.
        self.assertIsNone(conn.descriptor("u8", ["sum"], self.file(b"123").fileno(), 0, 3).status)
        streams += [conn.start_region("u8", OPS, 1) for _ in range(8)]
        for refused in (lambda: conn.start_region("u8", OPS, 1), lambda: conn.start_descriptor("u8", OPS, fd)):
            for _ in range(5):
                self.assert_sentence(conn.wait(refused()).status, RESOURCE_EXHAUSTED, "files that may hang", "48")
        self.assertEqual(48, self.daemon.gauges()["calls"])
        self.others_are_served()
        fuse.let_go()
        for stream in streams:
            self.assertIsNone(conn.wait(stream).status)


class Silent(Fuse):
    def hang_calls(self, fuse, what, count, **options):
        """count calls that hang in a request, over several connections; [(connection, stream)]."""
        fuse.set(hang={what})
        fd = fuse.open()
        conns = [self.connect() for _ in range(4)]
        calls = [(c, c.start_descriptor("u8", OPS, fd, **options)) for c in conns for _ in range(count // 4)]
        wait_for("requests that hang", lambda: fuse.hangs(what) >= 2)  # of five threads: one process may not have more
        return calls

    def test_others_are_served(self):
        """More silent files than threads for them, at each point where they may fall silent."""
        data = plain("u8", 1 << 20)
        for what in ("getattr", "statfs", "read"):
            with self.subTest(what):
                fuse = self.fuse(data)
                calls = self.hang_calls(fuse, what, 12)
                self.others_are_served()
                fuse.let_go()
                wanted = expect_all(OPS, "u8", data)
                for conn, stream in calls:
                    self.assertEqual(wanted, conn.wait(stream).keys())

    def test_an_overlay_above_it(self):
        """Its file system is a local one by its type, and would wait for the FUSE server below it: it is refused without a read."""
        data = plain("u8", 8 << 20)
        fuse = self.fuse(data)
        fuse.set(open_flags=0)  # it can be mapped
        fd = fuse.open_under_overlay()
        if fd is None:
            self.skipTest("an overlay cannot be mounted here")
        conn = self.connect()
        fuse.set(hang={"read"})
        for _ in range(4):
            self.assert_sentence(conn.descriptor("u8", OPS, fd).status, INVALID_ARGUMENT, "overlay", "stream it")
        self.assertFalse(fuse.hangs("read"))
        self.others_are_served()

    def test_other_processes_files_are_read(self):
        """Files of the same kind of file system, of a client that has none that is silent."""
        data = plain("u8", 1 << 20)
        # It starts while nothing of FUSE is open here: a new process closes what it inherits, which would wait for this one, which waits for it.
        program = ("import socket, sys; sys.path.insert(0, sys.argv[1]); from connection import Connection; "
                   "fd = socket.recv_fds(socket.socket(fileno=0), 1, 1)[1][0]; "
                   "a = Connection(sys.argv[2]).descriptor('u8', ['sum'], fd); print(int.from_bytes(a.results[0].value, 'little'))")
        ours, theirs = socket.socketpair()
        with ours, theirs, subprocess.Popen(
                [sys.executable, "-c", program, os.path.dirname(os.path.abspath(__file__)), self.daemon.address],
                stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as other:
            try:
                silent, good = self.fuse(data), self.fuse(data[:5000])
                calls = self.hang_calls(silent, "read", 40)
                socket.send_fds(ours, [b"!"], [good.open()])
                out, err = other.communicate(timeout=HANG_S)
            finally:
                other.kill()  # leaving the block waits for it
        self.assertEqual((0, "%d\n" % sum(data[:5000])), (other.returncode, out), err)
        self.assertFalse([s for c, s in calls if c.answers[s].over])
        silent.let_go()
        for conn, stream in calls:
            self.assertIsNone(conn.wait(stream).status)

    def test_deadlines_and_leaving(self):
        fuse = self.fuse(bytes(1 << 20))
        calls = self.hang_calls(fuse, "read", 8, timeout_ms=50)
        for conn, stream in calls:
            self.assert_sentence(conn.wait(stream).status, DEADLINE_EXCEEDED, "timeout_ms")
        for conn, _ in calls:
            conn.close()
        wait_for("the connections to end", lambda: self.daemon.gauges()["connections"] == 1)
        self.assertEqual(0, self.daemon.gauges()["calls"])
        self.others_are_served()
        fuse.let_go()

    def test_abandoned_calls_still_count(self):
        """Answered at the deadline, but their descriptors are held: they fill max_jobs like any other, and come back."""
        fuse = self.fuse(bytes(1 << 20))
        fuse.set(hang={"getattr"})
        fd = fuse.open()
        conn = self.connect()
        codes = []
        for _ in range(100):
            stream = conn.start_descriptor("u8", OPS, fd, timeout_ms=1)
            codes.append(conn.wait(stream).status.code)
        gauges = self.daemon.gauges()
        self.assertLessEqual(gauges["jobs"], 64, "jobs beyond max_jobs")
        self.assertLessEqual(gauges["regions"], 64, "descriptors held beyond max_jobs")
        self.assertEqual({DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED}, set(codes))
        fuse.let_go()
        wait_for("room", lambda: conn.inline("u8", ["sum"], b"1").status is None)

    def test_closing_hangs(self):
        """A server that answers everything but the close."""
        for what in ("flush", "release"):
            data = plain("u8", 300000)
            fuse = self.fuse(data)
            fd = fuse.open()
            conn = self.connect()
            fuse.set(hang={what})
            if what == "release":
                stream = conn.start_descriptor("u8", OPS, fd, timeout_ms=20000)
                self.assertEqual(expect_all(OPS, "u8", data), conn.wait(stream).keys())
            else:
                for _ in range(4):
                    stream = conn.start_descriptor("u8", OPS, fd, timeout_ms=100)
                    answer = conn.wait(stream)
                    self.assertTrue(answer.status is None or answer.status.code == DEADLINE_EXCEEDED, answer)
            self.others_are_served()
            fuse.let_go()

    def test_refused_ones_are_closed_where_it_may_hang(self):
        """Descriptors that no call takes hang in close; the loop must not."""
        fuse = self.fuse(bytes(1000))
        fuse.set(hang={"flush"})
        fd = fuse.open()
        from cured_wire import CALL, END, call_message, frame
        conn = self.connect()
        for _ in range(4):
            stream = conn.open_stream()
            conn.send(frame(CALL, stream, call_message(info=True), END, 2), [fd, fd])
            self.assertEqual(INVALID_ARGUMENT, conn.wait(stream).status.code)
        self.others_are_served()
        fuse.let_go()

    def test_those_that_cannot_be_read_are_closed_where_it_may_hang(self):
        """Neither their size nor their close is waited for."""
        for flags, words in ((os.O_WRONLY, "write-only"), (os.O_PATH, "O_PATH")):
            fuse = self.fuse(bytes(1000))
            fd = fuse.open(flags)
            fuse.set(hang={"getattr", "flush"})
            conn = self.connect()
            for count in (None, 4):
                stream = conn.start_descriptor("u8", OPS, fd, 0, count)
                self.assert_sentence(conn.wait(stream).status, INVALID_ARGUMENT, words)
            self.others_are_served()
            fuse.let_go()


class Ending(Fuse):
    def test_abort_while_all_is_silent(self):
        """What ends every test here, whatever it has left hanging: it waits for nobody, and leaves nothing open."""
        fuse = self.fuse(bytes(1 << 20))
        fd = fuse.open()
        fuse.set(hang={"getattr", "statfs", "read", "flush", "release"})
        conn = self.connect()
        stream = conn.start_descriptor("u8", OPS, fd)
        wait_for("a request that hangs", fuse.hangs)
        fuse.abort()
        self.assertIn(conn.wait(stream).status.code, (DATA_LOSS, INVALID_ARGUMENT))
        self.assertRaises(OSError, os.fstat, fd)
        self.assertFalse(os.path.exists(fuse.mountpoint))

    def test_ends_with_silent_files(self):
        """SIGTERM while a file server is silent: calls get their deadline, the daemon says what it leaves, and goes."""
        fuse = self.fuse(bytes(1 << 20))
        fuse.set(hang={"read"})
        fd = fuse.open()
        conn = self.connect()
        stream = conn.start_descriptor("u8", OPS, fd, timeout_ms=300)
        wait_for("a read that hangs", lambda: fuse.hangs("read"))
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(DEADLINE_EXCEEDED, conn.wait(stream).status.code)
        wait_for("the daemon to say so", lambda: "does not answer" in self.daemon.log())
        fuse.abort()
        self.assertEqual(0, self.daemon.wait())


class EndingRegions(Fuse):
    def test_calls_that_wait_for_a_region_end_with_it(self):
        """SIGTERM while Register waits for a silent file server, and calls wait for the region: all of them are answered."""
        fuse = self.fuse(bytes(1 << 20))
        fuse.set(hang={"getattr"})
        conn = self.connect()
        register = conn.start_register(1, descriptor_region(), fuse.open())
        waiting = [conn.start_region("u8", ["sum"], 1) for _ in range(3)]
        wait_for("a request that hangs", lambda: fuse.hangs("getattr"))
        self.assertEqual(b"on", conn.ping(b"on"))
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(UNAVAILABLE, conn.over(register)[0].code)
        for stream in waiting:
            self.assert_sentence(conn.wait(stream).status, UNAVAILABLE, "region: 1", "shutting down")
        fuse.abort()
        self.assertEqual(0, self.daemon.wait())


if __name__ == "__main__":
    main()
