"""test_hostile_regions: what is no memory to share, ranges that do not fit, too many, other people's, and frames that carry
what they must not. Every one gets its status; nothing is left in the daemon."""
import ctypes
import fcntl
import os
import signal
import socket
import unittest

from connection import Closed
from cured_daemon import SANITIZE, Daemon, DaemonTest, main, wait_for
from cured_wire import (CALL, DATA, DEADLINE_EXCEEDED, END, FAILED_PRECONDITION, INVALID_ARGUMENT, NOT_FOUND,
                        PERMISSION_DENIED, PING, RESOURCE_EXHAUSTED, bytes_field, call_message, cuda_descriptor_region,
                        cuda_ipc_region, descriptor_region, frame, region_input, register_message, shm_region, uint_field)
from expected import expect_all, plain
from fuse_files import FuseFile, why_not


class Hostile(DaemonTest):
    OPTIONS = {"max_region_bytes": 1 << 42}

    def setUp(self):
        self.conn = self.connect()

    def tearDown(self):
        self.assertEqual(b"on", self.conn.ping(b"on"))
        self.assert_serves()

    def opened(self, path, flags):
        fd = os.open(path, flags | os.O_CLOEXEC)
        self.addCleanup(os.close, fd)
        return fd

    def refused(self, descriptor, codes, *words):
        status = self.conn.register(1, descriptor)
        self.assertIn(getattr(status, "code", None), codes, status)
        self.assert_sentence(status, status.code, *words)
        self.assertEqual(NOT_FOUND, self.conn.region("u8", ["sum"], 1).status.code)

    def test_what_is_no_memory(self):
        code = [INVALID_ARGUMENT]
        self.refused(self.opened(self.folder, os.O_RDONLY), code, "directory")
        fifo = os.path.join(self.folder, "fifo")
        os.mkfifo(fifo)
        self.refused(self.opened(fifo, os.O_RDWR), code, "FIFO")
        for device in ("/dev/zero", "/dev/null"):
            self.refused(self.opened(device, os.O_RDONLY), code, "device")
        a, b = socket.socketpair()
        with a, b:
            self.refused(a.fileno(), code, "socket")
        self.refused(self.conn.socket.fileno(), code, "socket")  # its own connection
        libc = ctypes.CDLL(None)
        for fd in (libc.eventfd(0, 0), libc.epoll_create1(0), os.pidfd_open(os.getpid())):
            self.addCleanup(os.close, fd)
            self.refused(fd, code, "descriptor")
        self.refused(self.opened("/proc/self/status", os.O_RDONLY), code, "size of 0")
        f = self.file(b"1234", name="rights")
        for flags, word in ((os.O_PATH, "O_PATH"), (os.O_WRONLY, "write-only"), (os.O_WRONLY | os.O_APPEND, "write-only"),
                            (os.O_ACCMODE, "write-only")):
            self.refused(self.opened(f.name, flags), code, word)
        self.refused(self.opened(self.folder, os.O_PATH), code, "O_PATH")
        steady = self.sealed(bytes(1 << 16))
        self.refused(self.opened("/proc/self/fd/%d" % steady.fileno(), os.O_ACCMODE), code, "write-only")

    def test_ranges(self):
        for number, f in enumerate((self.file(bytes(1000)), self.memfd(bytes(1000)), self.sealed(bytes(1000))), 1):
            self.conn.register(number, f.fileno())
            for dtype, offset, count, words in (
                    ("u8", 1001, None, ["offset", "1001", "1000"]), ("u8", 2**64 - 1, None, ["offset"]),
                    ("u8", 2**63, None, ["offset"]), ("u8", 1001, 0, ["offset"]), ("u8", 0, 1001, ["count", "1000"]),
                    ("u8", 1000, 1, ["count"]), ("u8", 999, 2, ["count"]), ("f64", 8, 125, ["count"]),
                    ("u8", 2**64 - 1, 1, []), ("u8", 1, 2**64 - 1, []), ("f64", 0, 2**61, []), ("f64", 0, 2**61 + 1, []),
                    ("f64", 8, 2**61 - 1, []), ("u16", 0, 2**63, []), ("u16", 500, 2**63 + 250, []), ("u32", 0, 2**62, []),
                    ("f64", 2**64 - 8, 1, []), ("f64", 2**64 - 8, 2**61, []), ("u8", 2**64 - 1000, 2000, [])):
                with self.subTest((number, dtype, offset, count)):
                    status = self.conn.region(dtype, ["sum"], number, offset, count).status
                    self.assert_sentence(status, INVALID_ARGUMENT, *words)

    def test_overlapping_regions(self):
        data = plain("i16", 40000)
        f = self.memfd(data)
        for number in range(1, 11):
            self.assertEqual(len(data), self.conn.register(number, f.fileno()))
        streams = [(first, self.conn.start_region("i16", ["sum", "min"], number, 2 * first, 20000))
                   for number in range(1, 11) for first in (0, 1, 19999, 20000)]
        wanted = {first: expect_all(["sum", "min"], "i16", data[2 * first:][:40000]) for first in (0, 1, 19999, 20000)}
        for first, stream in streams:
            self.assertEqual(wanted[first], self.conn.wait(stream).keys())

    def test_another_connections_region(self):
        secret = self.sealed(b"\7" * 100)
        with self.daemon.connect() as owner:
            for number in (1, 2, 2**64 - 1):
                owner.register(number, secret.fileno())
            for number in (1, 2, 3, 2**64 - 1):
                self.assert_sentence(self.conn.region("u8", ["sum"], number).status, NOT_FOUND, "connection")
                self.assert_sentence(self.conn.unregister(number), NOT_FOUND, "connection")
            own = self.sealed(b"\1" * 10)
            self.conn.register(1, own.fileno())
            self.assertEqual(10, int.from_bytes(self.conn.region("u8", ["sum"], 1).results[0].value, "little"))
            self.assertEqual(700, int.from_bytes(owner.region("u8", ["sum"], 1).results[0].value, "little"))

    def test_descriptors_where_none_belongs(self):
        f = self.sealed(bytes(8))
        self.conn.register(1, f.fileno())
        reduction = self.conn.call_frame
        for make in (lambda s, n: frame(CALL, s, call_message(unregister=1), END, n),
                     lambda s, n: reduction(s, "u8", ["sum"], region_input(1), flags=END, descriptors=n),
                     lambda s, n: frame(CALL, s, call_message(register=register_message(5, shm_region("/x"))), END, n),
                     lambda s, n: frame(CALL, s, call_message(register=register_message(5, cuda_ipc_region(1))), END, n)):
            for count in (1, 4):
                stream = self.conn.open_stream()
                self.conn.send(make(stream, count), [f.fileno()] * count)
                self.assert_sentence(self.conn.over(stream)[0], INVALID_ARGUMENT, "descriptors")
        for source, count in ((descriptor_region(), 0), (descriptor_region(), 2), (cuda_descriptor_region(8), 0)):
            stream = self.conn.open_stream()
            self.conn.send(frame(CALL, stream, call_message(register=register_message(5, source)), END, count),
                           [f.fileno()] * count)
            self.assert_sentence(self.conn.over(stream)[0], INVALID_ARGUMENT, "descriptors")
        self.assertEqual(8, self.conn.region("u8", ["sum"], 1).count)

    def ends(self, data, descriptors, code):
        with self.daemon.connect() as c:
            with self.assertRaises(Closed) as caught:
                c.send(data, descriptors)
                c.until(lambda: False)
            self.assert_sentence(caught.exception.status, code, "descriptors")

    def test_descriptors_that_end_the_connection(self):
        fd = self.sealed(bytes(8)).fileno()
        register = call_message(register=register_message(1, descriptor_region()))
        self.ends(frame(CALL, 1, register, END, 1), [fd] * 250, RESOURCE_EXHAUSTED)
        self.ends(frame(CALL, 1, register, END, 1), [fd] * 9, RESOURCE_EXHAUSTED)
        self.ends(frame(CALL, 1, register, END, 4), [fd] * 2, INVALID_ARGUMENT)
        self.ends(frame(DATA, 1, b"1", END, 1), [fd], INVALID_ARGUMENT)
        self.ends(frame(PING, 0, b"1", 0, 1), [fd], INVALID_ARGUMENT)

    def test_broken_requests(self):
        for payload, words in ((call_message(register=b""), ["region"]), (call_message(register=uint_field(1, 9)), ["source"]),
                               (call_message(unregister=0), ["region"]),
                               (call_message(register=register_message(9, shm_region(b"/" + b"n" * 255))), ["name", "255"]),
                               (call_message(register=register_message(9, shm_region("no-slash"))), ["name"]),
                               (call_message(register=register_message(9, shm_region("/../etc/passwd"))), ["name"]),
                               (call_message(register=register_message(9, shm_region("/.."))), ["name"]),
                               (call_message(register=register_message(9, cuda_ipc_region(8, device=bytes(15)))), ["device"]),
                               (call_message(register=register_message(9, cuda_ipc_region(8, handle=bytes(63)))), ["handle"]),
                               (call_message(register=register_message(9, cuda_ipc_region(8, handle=b""))), ["handle"]),
                               (call_message(register=register_message(9, cuda_ipc_region(8, event=bytes(1)))), ["event"]),
                               (call_message(register=register_message(9, cuda_ipc_region(0))), ["bytes"]),
                               (call_message(register=register_message(9, cuda_ipc_region(2, offset=2**64 - 1))), ["offset"]),
                               (bytes_field(6, b"\xff" * 9), [])):
            stream = self.conn.open_stream()
            self.conn.send(frame(CALL, stream, payload, END))
            self.assert_sentence(self.conn.over(stream)[0], INVALID_ARGUMENT, *words)

    def test_handles_that_are_garbage(self):
        """Where there is a GPU, its tests have more to say."""
        for handle in (bytes(64), b"\xff" * 64, os.urandom(64)):
            stream = self.conn.start_register(1, cuda_ipc_region(1 << 30, os.urandom(16), handle, event=handle))
            self.assert_sentence(self.conn.registered(stream), FAILED_PRECONDITION, "CUDA")

    def test_registered_memory_is_limited(self):
        f = self.memfd()
        os.ftruncate(f.fileno(), 1 << 41)
        self.assertEqual(1 << 41, self.conn.register(1, f.fileno()))
        self.assertEqual(1 << 41, self.conn.register(2, f.fileno()))
        self.assert_sentence(self.conn.register(3, f.fileno()), RESOURCE_EXHAUSTED, "max_region_bytes")
        self.assertIsNone(self.conn.unregister(1))
        self.assertEqual(1 << 41, self.conn.register(3, f.fileno()))
        with self.daemon.connect() as other:
            self.assertEqual(1 << 41, other.register(1, f.fileno()))

    def test_a_file_server_that_is_silent(self):
        reason = why_not()
        if reason:
            self.skipTest(reason)
        data = plain("u8", 5000)
        fuse = FuseFile(self.folder, data)
        self.addCleanup(fuse.abort)
        fd = fuse.open()
        self.assertEqual(5000, self.conn.register(1, fd))
        self.assertEqual(expect_all(["sum"], "u8", data), self.conn.region("u8", ["sum"], 1).keys())
        fuse.set(hang={"getattr", "read"})
        first = self.conn.start_register(2, descriptor_region(), fd, timeout_ms=200)
        waits = self.conn.start_region("u8", ["sum"], 2)
        reads = self.conn.start_region("u8", ["sum"], 1, timeout_ms=200)
        self.assertEqual(DEADLINE_EXCEEDED, self.conn.over(first)[0].code)
        self.assertTrue(self.conn.wait(waits).status)
        self.assertEqual(DEADLINE_EXCEEDED, self.conn.wait(reads).status.code)
        self.assert_serves()
        fuse.let_go()
        self.assertIsNone(self.conn.unregister(1))


class Many(DaemonTest):
    """More than there is room for."""
    OPTIONS = {"max_regions": 342, "max_regions_per_connection": 256}  # 300 for one user

    def test_a_hundred_thousand(self):
        """All of them answered, 256 let in, and the daemon holds no more than that."""
        count = 3000 if SANITIZE else 100000
        f = self.sealed(bytes(4096))
        before = self.daemon.start_holds["descriptors"]
        with self.daemon.connect() as c:
            sent, good, room = 0, 0, 0
            while sent < count:
                streams = []
                for _ in range(min(64, count - sent)):
                    sent += 1
                    streams.append(c.start_register(sent, descriptor_region(), f.fileno()))
                for stream in streams:
                    answer = c.registered(stream)
                    if answer == 4096:
                        good += 1
                    else:
                        self.assertEqual(RESOURCE_EXHAUSTED, answer.code)
                        room += 1
                    del c.answers[stream]
            self.assertEqual((256, count - 256), (good, room))
            wait_for("what was refused to be closed", lambda: self.daemon.descriptors() <= before + 256 + 1)
            self.assertEqual(4096, c.region("u8", ["sum"], 256).count)
            self.assert_serves()
            with self.daemon.connect() as other:  # the server's own limit
                got = [other.register(number, f.fileno()) for number in range(1, 60)]
                self.assertEqual(300 - 256, sum(1 for g in got if g == 4096))
                self.assert_sentence(got[-1], RESOURCE_EXHAUSTED, "max_regions")
        self.daemon.check_returned(self)

    def test_again_and_again(self):
        """Registering and unregistering without waiting for any answer: those that go are counted until they are gone."""
        f = self.file(bytes(4096))
        with self.daemon.connect() as c:
            for _ in range(40):
                pairs = []
                for number in range(1, 21):
                    pairs.append((c.start_register(number, descriptor_region(), f.fileno()), c.start_unregister(number)))
                for register, unregister in pairs:
                    self.assertIn(getattr(c.registered(register), "code", 4096), (4096, RESOURCE_EXHAUSTED))
                    status = c.over(unregister)[0]
                    self.assertIn(status.code if status else 0, (0, NOT_FOUND))
        self.daemon.check_returned(self)


def few_descriptors():
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400))


class FewDescriptors(DaemonTest):
    """A daemon that may open little keeps most of it for others than those who register."""
    LIMITS = few_descriptors

    @classmethod
    def setUpClass(cls):
        cls.LIMITS = staticmethod(few_descriptors)
        super().setUpClass()

    def test_regions_leave_room(self):
        f = self.sealed(bytes(64))
        clients = [self.connect() for _ in range(4)]
        got = []
        for c in clients:
            for number in range(1, 200):
                got.append(c.register(number, f.fileno()))
        self.assertEqual(100 - 100 // 8, sum(1 for g in got if g == 64))  # a quarter of 400, but for an eighth for other users
        for _ in range(50):
            self.connect()
        self.assert_serves()
        for c in clients:
            c.close()


class Names(DaemonTest):
    OPTIONS = {"shm_names": True}

    def setUp(self):
        if not os.path.isdir("/dev/shm"):
            self.skipTest("no /dev/shm here")
        self.conn = self.connect()
        self.name = "/cured-it-%d" % os.getpid()
        self.path = "/dev/shm" + self.name
        self.addCleanup(self.remove)

    def remove(self):
        if os.path.lexists(self.path):
            os.unlink(self.path)

    def register(self, name=None):
        return self.conn.registered(self.conn.start_register(1, shm_region(name or self.name)))

    def test_own_memory(self):
        data = plain("f32", 3000)
        with open(self.path, "wb") as f:
            f.write(data)
        self.assertEqual(len(data), self.register())
        self.assertEqual(expect_all(["sum", "max"], "f32", data), self.conn.region("f32", ["sum", "max"], 1).keys())
        os.unlink(self.path)
        self.assertEqual(expect_all(["sum"], "f32", data), self.conn.region("f32", ["sum"], 1).keys())
        self.assertIsNone(self.conn.unregister(1))
        self.assert_sentence(self.register(), NOT_FOUND, "name")

    def test_what_is_no_memory(self):
        os.mkfifo(self.path)
        self.assert_sentence(self.register(), INVALID_ARGUMENT, "shared memory")
        os.unlink(self.path)
        os.symlink("/etc/passwd", self.path)
        self.assert_sentence(self.register(), INVALID_ARGUMENT, "shared memory")
        os.unlink(self.path)
        os.mkdir(self.path)
        self.assert_sentence(self.register(), INVALID_ARGUMENT, "shared memory")
        os.rmdir(self.path)

    def test_a_lease_keeps_nobody_waiting(self):
        """To open what its owner holds a lease of takes until the owner gives it up, or 45 s."""
        with open(self.path, "wb") as f:
            f.write(bytes(4096))
        self.addCleanup(signal.signal, signal.SIGIO, signal.signal(signal.SIGIO, signal.SIG_IGN))
        with open(self.path, "r+b") as f:
            fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            self.assert_sentence(self.register(), PERMISSION_DENIED, "name", "unavailable")
        self.assertEqual(4096, self.register())

    def test_other_peoples_memory(self):
        if os.geteuid() != 0:
            self.skipTest("giving a file away needs root")
        with open(self.path, "wb") as f:
            f.write(b"secret")
        os.chmod(self.path, 0o666)
        for uid in (12345, 65534):
            os.chown(self.path, uid, uid)
            self.assert_sentence(self.register(), PERMISSION_DENIED, "belong")


class OverTcp(unittest.TestCase):
    def test_memory_is_not_shared(self):
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            daemon = Daemon(folder, listen=["tcp:127.0.0.1:0"], shm_names=True)
            try:
                with daemon.connect() as c:
                    for source in (shm_region("/any"), cuda_ipc_region(8)):
                        status = c.registered(c.start_register(1, source))
                        self.assertEqual(PERMISSION_DENIED, status.code)
                        self.assertIn("Unix", status.message)
            finally:
                self.assertEqual(0, daemon.stop())


if __name__ == "__main__":
    main()
