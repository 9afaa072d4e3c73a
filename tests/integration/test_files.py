"""test_files: passed descriptors that are no arrays, ranges that do not fit, and files that change under the read."""
import ctypes
import os
import socket
import stat

from cured_daemon import DaemonTest, main, whole_of
from cured_wire import DATA_LOSS, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, SIZES
from expected import expect, expect_all, plain


class Refused(DaemonTest):
    def setUp(self):
        self.conn = self.connect()

    def tearDown(self):
        self.assertEqual(b"on", self.conn.ping(b"on"))
        self.assert_serves()

    def refused(self, descriptor, codes, *words, **options):
        status = self.conn.descriptor("u8", ["sum"], descriptor, **options).status
        self.assertIn(status.code if status else None, codes, status)
        self.assert_sentence(status, status.code, *words)

    def opened(self, path, flags):
        fd = os.open(path, flags | os.O_CLOEXEC)
        self.addCleanup(os.close, fd)
        return fd

    def test_what_is_not_a_file(self):
        code = [INVALID_ARGUMENT]
        self.refused(self.opened(self.folder, os.O_RDONLY), code, "directory")
        fifo = os.path.join(self.folder, "fifo")
        os.mkfifo(fifo)
        self.refused(self.opened(fifo, os.O_RDWR), code, "FIFO")
        self.refused(self.opened(fifo, os.O_RDONLY | os.O_NONBLOCK), code, "FIFO")
        ends = os.pipe()
        self.addCleanup(os.close, ends[0])
        self.addCleanup(os.close, ends[1])
        self.refused(ends[0], code, "pipe")
        self.refused(ends[1], code)
        for device in ("/dev/zero", "/dev/null"):
            self.refused(self.opened(device, os.O_RDONLY), code, "device")
        a, b = socket.socketpair()
        with a, b:
            self.refused(a.fileno(), code, "socket")
        with socket.socket() as tcp:
            self.refused(tcp.fileno(), code, "socket")
        self.refused(self.conn.socket.fileno(), code, "socket")  # its own connection

    def test_anonymous_inodes(self):
        libc = ctypes.CDLL(None)
        for fd in (libc.eventfd(0, 0), libc.epoll_create1(0), libc.timerfd_create(1, 0), os.pidfd_open(os.getpid())):
            self.addCleanup(os.close, fd)
            self.refused(fd, [INVALID_ARGUMENT], "descriptor")

    def test_descriptors_without_the_right_to_read(self):
        f = self.file(b"1234", name="rights")
        codes = [INVALID_ARGUMENT]
        self.refused(self.opened(f.name, os.O_PATH), codes, "O_PATH")
        self.refused(self.opened(self.folder, os.O_PATH), codes, "O_PATH")
        self.refused(self.opened(f.name, os.O_WRONLY), codes, "write-only")
        self.refused(self.opened(f.name, os.O_WRONLY | os.O_APPEND), codes, "write-only")

    def test_ranges(self):
        f = self.file(bytes(1000))
        for dtype, offset, count, words in (
                ("u8", 1001, None, ["offset", "1001", "1000"]), ("u8", 2**64 - 1, None, ["offset"]),
                ("u8", 2**63, None, ["offset"]), ("u8", 1001, 0, ["offset"]), ("u8", 0, 1001, ["count", "1000"]),
                ("u8", 1000, 1, ["count"]), ("u8", 999, 2, ["count"]), ("f64", 8, 125, ["count"]),
                ("u8", 2**64 - 1, 1, []), ("u8", 1, 2**64 - 1, []), ("f64", 0, 2**61, []), ("f64", 0, 2**61 + 1, []),
                ("f64", 8, 2**61 - 1, []), ("u16", 0, 2**63, []), ("u16", 500, 2**63 + 250, []), ("u32", 0, 2**62, [])):
            with self.subTest((dtype, offset, count)):
                status = self.conn.descriptor(dtype, ["sum"], f.fileno(), offset, count).status
                self.assert_sentence(status, INVALID_ARGUMENT, *words)

    def test_sizes_that_are_no_multiple(self):
        for dtype, size in SIZES.items():
            for rest in range(1, size):
                f = self.file(bytes(80 + rest))
                status = self.conn.descriptor(dtype, ["sum"], f.fileno()).status
                self.assert_sentence(status, INVALID_ARGUMENT, "multiple", dtype)
                self.assertIsNone(self.conn.descriptor(dtype, ["sum"], f.fileno(), rest).status)
                self.assertIsNone(self.conn.descriptor(dtype, ["sum"], f.fileno(), 0, 80 // size).status)
                f.close()

    def test_files_of_the_kernel(self):
        """Their sizes do not say what can be read."""
        for path in ("/sys/devices/system/cpu/online", "/proc/cpuinfo", "/proc/self/maps"):
            if not os.path.exists(path):
                continue
            fd = self.opened(path, os.O_RDONLY)
            for options in ({}, {"count": 1}, {"count": 0}, {"offset": 1}):
                if os.fstat(fd).st_size == 0:
                    self.refused(fd, [INVALID_ARGUMENT], "size of 0", **options)
            if os.fstat(fd).st_size:
                self.refused(fd, [DATA_LOSS], "descriptor")


    def test_secret_memory(self):
        """The kernel gives its bytes to those who map it, and to no read."""
        fd = ctypes.CDLL(None, use_errno=True).syscall(447, 0)
        if fd < 0:
            self.skipTest("memfd_secret: %s" % os.strerror(ctypes.get_errno()))
        self.addCleanup(os.close, fd)
        os.ftruncate(fd, 8192)
        self.refused(fd, [INVALID_ARGUMENT], "memfd_secret")
        self.refused(fd, [INVALID_ARGUMENT], "memfd_secret", offset=0, count=0)
        self.assert_sentence(self.conn.register(1, fd), INVALID_ARGUMENT, "memfd_secret")


class Changing(DaemonTest):
    """Files that are cut, punched or removed while they are read."""
    OPTIONS = {"cpu_workers": 1, "slabs": 4}
    SIZE = 256 << 20

    def setUp(self):
        self.conn = self.connect()

    def allocated(self):
        """A file with all its blocks and no data: it is mapped, and costs no time to make."""
        f = self.file()
        try:
            os.posix_fallocate(f.fileno(), 0, self.SIZE)
        except OSError as e:
            self.skipTest("no fallocate here: %s" % e.strerror)
        if os.fstat(f.fileno()).st_blocks * 512 < self.SIZE:
            self.skipTest("fallocate gives no blocks here")
        return f

    def running(self, f, ops=("sum", "max"), dtype="f16"):
        """A call that is known to be in the middle of its file; or over, on a fast day."""
        stream = self.conn.start_descriptor(dtype, ops, f.fileno(), progress_ms=1)
        answer = self.conn.answers[stream]
        self.conn.until(lambda: answer.over or (answer.progress and answer.progress[-1][0] > 0))
        return stream

    def test_mapped_file_is_cut(self):
        lost = 0
        for left in (0, 1, 4096, 100000, self.SIZE // 2, self.SIZE - 4096, self.SIZE - 1):
            f = self.allocated()
            stream = self.running(f)
            os.ftruncate(f.fileno(), left)
            answer = self.conn.wait(stream)
            if answer.status:
                self.assert_sentence(answer.status, DATA_LOSS, "cut")
                lost += 1
            else:
                self.assertEqual(self.SIZE // 2, answer.count)
            f.close()
        self.assertGreater(lost, 0, "no call was in the middle of its file when it was cut: nothing was tested")
        self.assert_serves()

    def test_many_cuts_at_any_moment(self):
        """Cut at once after the call is sent: before, while and after it is inspected, mapped and folded."""
        tile = b"\1" * (8 << 20)
        for n in range(25):
            f = self.file(tile)
            stream = self.conn.start_descriptor("u8", ["sum"], f.fileno(), 0, len(tile))
            for _ in range(n * 20):
                pass
            os.ftruncate(f.fileno(), len(tile) >> n % 8 + 1)
            answer = self.conn.wait(stream)
            if answer.status:
                self.assertIn(answer.status.code, (DATA_LOSS, INVALID_ARGUMENT))
            else:
                self.assertEqual(len(tile), int.from_bytes(answer.results[0].value, "little"))
            f.close()

    def test_read_files_are_cut(self):
        """Sparse files and memfds go by another way."""
        for make in (self.file, self.memfd):
            f = make()
            os.ftruncate(f.fileno(), 1 << 42)
            stream = self.running(f)
            os.ftruncate(f.fileno(), 1 << 20)
            self.assert_sentence(self.conn.wait(stream).status, DATA_LOSS, "ended")
        self.assert_serves()

    def test_holes_are_punched(self):
        libc = ctypes.CDLL(None, use_errno=True)
        data = b"\1" * (32 << 20)
        for make in (self.file, self.memfd):
            f = make(data)
            stream = self.running(f, ("sum", "count"), "u8")
            done = libc.fallocate(f.fileno(), 3, ctypes.c_long(4096), ctypes.c_long(len(data) - 8192))
            answer = self.conn.wait(stream)
            if done != 0:
                self.skipTest("no hole punching here: %s" % os.strerror(ctypes.get_errno()))
            self.assertIsNone(answer.status)
            self.assertEqual(len(data), answer.count)
            self.assertLessEqual(int.from_bytes(answer.results[0].value, "little"), len(data))
            again = self.conn.descriptor("u8", ["sum"], f.fileno())
            self.assertEqual(8192, int.from_bytes(again.results[0].value, "little"))

    def test_a_file_that_grows_and_one_that_is_removed(self):
        data = plain("i32", 500000)
        f = self.file(data, name="removed")
        os.unlink(f.name)
        stream = self.conn.start_descriptor("i32", ["sum", "argmax"], f.fileno(), 0, 500000)
        f.seek(0, os.SEEK_END)
        f.write(bytes(10001))
        self.assertEqual(expect_all(["sum", "argmax"], "i32", data), self.conn.wait(stream).keys())

    def test_bytes_that_change_are_read_in_either_state(self):
        f = self.memfd(bytes(16 << 20))
        stream = self.running(f, ("count_nonzero", "count"), "u8")
        os.pwrite(f.fileno(), b"\xff" * (16 << 20), 0)
        answer = self.conn.wait(stream)
        self.assertIsNone(answer.status)
        self.assertLessEqual(int.from_bytes(answer.results[0].value, "little"), 16 << 20)

    def test_sealed_and_direct(self):
        import fcntl
        data = plain("u16", 300000)
        wanted = [expect("sum", "u16", data)]
        sealed = os.memfd_create("sealed", os.MFD_ALLOW_SEALING)
        self.addCleanup(os.close, sealed)
        os.write(sealed, data)
        fcntl.fcntl(sealed, 1033, 2 | 4 | 8)  # F_ADD_SEALS: shrink, grow, write
        self.assertEqual(wanted, self.conn.descriptor("u16", ["sum"], sealed).keys())
        f = self.file(b"x" + data, name="direct")
        f.close()
        try:
            direct = os.open(f.name, os.O_RDONLY | os.O_DIRECT)
        except OSError:
            self.skipTest("no O_DIRECT here")
        self.addCleanup(os.close, direct)
        self.assertEqual(wanted, self.conn.descriptor("u16", ["sum"], direct, 1).keys())
        # The same with a hole, which would be read by pread, which O_DIRECT forbids at odd places.
        with open(f.name, "r+b") as again:
            again.truncate(1 << 20)
        size = len(data) + 1 + (len(data) + 1) % 2
        answer = self.conn.descriptor("u16", ["sum", "count"], direct, 1, (size - 1) // 2)
        self.assertIsNone(answer.status)
        self.assertEqual(wanted[0], answer.keys()[0])

    def test_more_elements_than_31_bits_count(self):
        """2^31 + 1 elements, nearly all of them holes, which take no memory."""
        n = (1 << 31) + 1
        f = self.memfd(b"\1")
        os.ftruncate(f.fileno(), n)
        os.pwrite(f.fileno(), b"\xc8\xc9", n - 2)
        answer = self.conn.descriptor("u8", ["sum", "argmax", "argmin", "count"], f.fileno())
        self.assertIsNone(answer.status)
        self.assertEqual(n, answer.count)
        self.assertEqual([1 + 200 + 201, n - 1, 1, n],
                         [int.from_bytes(result.value, "little") for result in answer.results])
        # Beyond 2^31 from the start on: indices count from the range's own beginning.
        answer = self.conn.descriptor("u8", ["sum", "argmin"], f.fileno(), n - 2, 2)
        self.assertEqual([401, 0], [int.from_bytes(result.value, "little") for result in answer.results])

    def test_mode_of_the_file_does_not_matter(self):
        """The right to read came with the descriptor."""
        f = self.file(b"\7" * 100, name="closed-to-others")
        os.chmod(f.name, 0)
        self.assertEqual(0, stat.S_IMODE(os.stat(f.name).st_mode))
        self.assertEqual(700, int.from_bytes(self.conn.descriptor("u8", ["sum"], f.fileno()).results[0].value, "little"))


class InFlight(DaemonTest):
    """What a call takes of the bytes in flight, also when only the file says how much it is. Of 8 parts one is left for others."""
    OPTIONS = {"max_bytes_in_flight": whole_of(1 << 20)}

    def test_to_end_is_counted(self):
        conn = self.connect()
        for make in (self.file, self.memfd, lambda data: self.sealed(data)):
            large, small = make(bytes((1 << 20) + 1)), make(bytes(1 << 20))
            for _ in range(3):
                self.assert_sentence(conn.descriptor("u8", ["sum"], large.fileno()).status, RESOURCE_EXHAUSTED, "max_bytes_in_flight")
                self.assertEqual(1 << 20, conn.descriptor("u8", ["sum"], large.fileno(), 1).count)
                self.assertEqual(1 << 20, conn.descriptor("u8", ["sum"], small.fileno()).count)
            self.assertEqual((1 << 20) + 1, conn.register(1, large.fileno()))
            self.assert_sentence(conn.region("u8", ["sum"], 1).status, RESOURCE_EXHAUSTED, "max_bytes_in_flight")
            self.assert_sentence(conn.region("u8", ["max"], 1, axis=(1 << 20 | 1, 1, 1)).status, RESOURCE_EXHAUSTED, "max_bytes_in_flight")
            self.assertEqual(1 << 20, conn.region("u8", ["sum"], 1, 1).count)
            self.assertIsNone(conn.unregister(1))

    def test_while_another_is_there(self):
        """A call that stays has its bytes; it gives them back when it goes."""
        conn, data = self.connect(), bytes(1 << 19)
        f, g = self.file(data), self.file(bytes((1 << 19) + 1))
        stays = conn.start_stream("u8", ["sum"], 1 << 19)
        self.assertEqual(1 << 19, conn.descriptor("u8", ["sum"], f.fileno()).count)
        self.assertEqual(RESOURCE_EXHAUSTED, conn.descriptor("u8", ["sum"], g.fileno()).status.code)
        conn.send_array(stays, data)
        self.assertIsNone(conn.wait(stays).status)
        self.assertEqual((1 << 19) + 1, conn.descriptor("u8", ["sum"], g.fileno()).count)


if __name__ == "__main__":
    main()
