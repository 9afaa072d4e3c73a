"""test_hostile_memory: registered memory that is cut, punched or rewritten while it is read, clients that die with it, and
memory on a file system that is full. The daemon answers with a status or with a state the bytes had, and goes on."""
import ctypes
import mmap
import os
import random
import signal
import subprocess
import sys
import threading
import unittest

from cured_daemon import F_SEAL_SHRINK, F_SEAL_WRITE, SANITIZE, DaemonTest, main, wait_for
from cured_wire import CREDIT_BYTES, DATA_LOSS, INVALID_ARGUMENT, NOT_FOUND
from expected import expect_all, plain

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
PUNCH_HOLE, KEEP_SIZE = 2, 1
SIZE = 20 << 20  # more than a paused job has taken: 4 MiB of answers sent, 4 waiting, and a claim of 4 for each worker


def punch(f, offset, size):
    if LIBC.fallocate(f.fileno(), PUNCH_HOLE | KEEP_SIZE, offset, size) != 0:
        raise unittest.SkipTest("no hole punching here: %s" % os.strerror(ctypes.get_errno()))


class Memory(DaemonTest):
    OPTIONS = {"cpu_workers": 2, "slabs": 8}

    def setUp(self):
        self.conn = self.connect()

    def tearDown(self):
        self.assertEqual(b"on", self.conn.ping(b"on"))
        self.assert_serves()

    def paused(self, number, size=SIZE):
        """A job that is known to be in the middle of its region: it made as many answers as the client has room for. The
        answers are the region's own bytes."""
        stream = self.conn.start_region("u64", ["max"], number, axis=(size // 8, 1, 1))
        answer = self.conn.answers[stream]
        answer.auto_credit = False
        self.conn.until(lambda: answer.window < 1 << 16 or answer.over)
        self.assertFalse(answer.over, answer)
        return stream

    def resumed(self, stream):
        self.conn.grant(stream, SIZE * 16)
        return self.conn.wait(stream)

    def disk_file(self, data):
        f = self.file(data)
        os.fsync(f.fileno())  # so that it has its blocks
        return f

    def cut(self, make, left):
        """A file of which left bytes stay while a job is in the middle of it. Whether reading it faulted: a job may also have come to
        the end of what it had mapped, and then it is told by the file's size."""
        faults = self.daemon.counters()["faults_total"]
        f = make(b"\1" * SIZE)
        self.conn.register(1, f.fileno())
        job = self.paused(1)
        os.ftruncate(f.fileno(), left)
        self.assert_sentence(self.resumed(job).status, DATA_LOSS, "cut")
        faulted = self.daemon.counters()["faults_total"] > faults
        self.assert_sentence(self.conn.region("u8", ["sum"], 1).status, DATA_LOSS, "region")
        os.ftruncate(f.fileno(), SIZE)
        if faulted:
            self.assert_sentence(self.conn.region("u8", ["sum"], 1).status, DATA_LOSS, "register it anew")
        self.assertIsNone(self.conn.unregister(1))
        self.conn.register(1, f.fileno())
        again = self.conn.region("u8", ["sum", "count"], 1)
        self.assertEqual([left, SIZE], [int.from_bytes(r.value, "little") for r in again.results])
        self.assertIsNone(self.conn.unregister(1))
        f.close()
        return faulted

    def test_cut_in_the_middle(self):
        """What was mapped is not there any more: no signal ends the daemon, and the region is lost for good."""
        for make in (self.memfd, self.disk_file):
            for left in (0, 12345) if SANITIZE else (0, 1, 4096, 12345):
                self.assertTrue(any(self.cut(make, left) for _ in range(5)), "nothing was tested")

    def test_cut_and_grown_between_jobs(self):
        f = self.memfd(b"\1" * 100000)
        self.conn.register(1, f.fileno())
        os.ftruncate(f.fileno(), 50000)
        self.assert_sentence(self.conn.region("u8", ["sum"], 1).status, DATA_LOSS, "100000", "50000")
        self.assertEqual(50000, self.conn.region("u8", ["sum"], 1, 0, 50000).count)
        os.ftruncate(f.fileno(), 200000)
        answer = self.conn.region("u8", ["sum", "count"], 1)
        self.assertEqual([50000, 100000], [int.from_bytes(r.value, "little") for r in answer.results])

    def test_other_jobs_of_a_lost_region(self):
        """All that read at the time are told, whoever of them met the missing page first; other regions stand."""
        f, other = self.memfd(b"\1" * SIZE), self.memfd(b"\1" * SIZE)
        self.conn.register(1, f.fileno())
        self.conn.register(2, other.fileno())
        jobs = [self.paused(1) for _ in range(2 if SANITIZE else 4)]
        stays = self.paused(2)
        os.ftruncate(f.fileno(), 8192)
        os.ftruncate(f.fileno(), SIZE)
        for job in jobs:
            answer = self.resumed(job)
            if answer.status:
                self.assert_sentence(answer.status, DATA_LOSS)
        answer = self.resumed(stays)
        self.assertIsNone(answer.status)
        self.assertEqual(b"\1" * SIZE, answer.array(0, 8, SIZE // 8))

    def test_sealed_cannot_be_cut(self):
        f = self.sealed(b"\1" * SIZE)
        self.conn.register(1, f.fileno())
        job = self.paused(1)
        with self.assertRaises(PermissionError):
            os.ftruncate(f.fileno(), 0)
        answer = self.resumed(job)
        self.assertEqual(b"\1" * SIZE, answer.array(0, 8, SIZE // 8))

    def test_holes_stay_holes(self):
        """Memory that was whole when it was registered, and is punched afterwards: it is not allocated anew at the daemon's cost."""
        for make in (self.sealed, self.memfd):
            f = make(b"\1" * SIZE)
            self.conn.register(1, f.fileno())
            self.assertEqual(SIZE, int.from_bytes(self.conn.region("u8", ["sum"], 1).results[0].value, "little"))
            punch(f, 4096, SIZE - 8192)
            for _ in range(3):
                self.assertEqual(8192, int.from_bytes(self.conn.region("u8", ["sum"], 1).results[0].value, "little"))
            self.assertLessEqual(os.fstat(f.fileno()).st_blocks * 512, SIZE // 4, "the holes were filled")
            os.pwrite(f.fileno(), b"\2" * SIZE, 0)  # whole again
            self.assertEqual(2 * SIZE, int.from_bytes(self.conn.region("u8", ["sum"], 1).results[0].value, "little"))
            self.assertIsNone(self.conn.unregister(1))

    def test_holes_are_punched(self):
        """While a job is in the middle of it: a file is answered, and shared memory is lost, because a touch would fill its holes."""
        for make in (self.sealed, self.disk_file) if SANITIZE else (self.memfd, self.sealed, self.disk_file):
            f = make(b"\1" * SIZE)
            self.conn.register(1, f.fileno())
            job = self.paused(1)
            punch(f, 4096, SIZE - 8192)
            answer = self.resumed(job)
            if make != self.disk_file and self.daemon.counters()["memory_watched"]:
                self.assert_sentence(answer.status, DATA_LOSS, "holes")
                self.assert_sentence(self.conn.region("u8", ["sum"], 1).status, DATA_LOSS, "register it anew")
                self.assertIsNone(self.conn.unregister(1))
                self.conn.register(1, f.fileno())
                self.assertEqual(8192, int.from_bytes(self.conn.region("u8", ["sum"], 1).results[0].value, "little"))
                self.assertIsNone(self.conn.unregister(1))
                continue
            self.assertIsNone(answer.status)
            seen = answer.array(0, 8, SIZE // 8)
            self.assertEqual(b"", seen.strip(b"\0\1"))
            self.assertEqual(b"\1" * 4096, seen[-4096:])
            self.assertEqual(bytes(4096), seen[-8192:-4096])
            self.assertEqual(8192, int.from_bytes(self.conn.region("u8", ["sum"], 1).results[0].value, "little"))
            self.assertIsNone(self.conn.unregister(1))

    def test_cut_at_any_moment(self):
        rounds = 10 if SANITIZE else 60
        r = random.Random(1)
        for n in range(rounds):
            f = (self.memfd, self.disk_file)[n % 2](b"\1" * (2 << 20))
            self.conn.register(1, f.fileno())
            streams = [self.conn.start_region("u8", ["sum"], 1) for _ in range(3)]
            for _ in range(n * 50):
                pass
            left = r.choice((0, 1, 4096, 1 << 20, (2 << 20) - 1))
            os.ftruncate(f.fileno(), left)
            for stream in streams:
                answer = self.conn.wait(stream)
                if answer.status:
                    self.assert_sentence(answer.status, DATA_LOSS)
                else:
                    self.assertEqual(2 << 20, answer.count)
                    self.assertLessEqual(int.from_bytes(answer.results[0].value, "little"), 2 << 20)
            self.assertIsNone(self.conn.unregister(1))
            f.close()

    def test_passed_memory_changes_at_any_moment(self):
        """Cut, grown and punched all the time, while the loop reads a little of it, and workers much, where it was never mapped."""
        size = 2 << 20
        f = self.memfd(b"\1" * size)
        over = threading.Event()

        def change():
            r = random.Random(2)
            while not over.is_set():
                os.ftruncate(f.fileno(), r.choice((0, 1, 4096, 8191, 1 << 20, size - 1)))
                os.ftruncate(f.fileno(), size)
                LIBC.fallocate(f.fileno(), PUNCH_HOLE | KEEP_SIZE, r.randrange(size), r.randrange(1, size))
                os.pwrite(f.fileno(), b"\1" * 65536, r.randrange(size - 65536))

        changer = threading.Thread(target=change)
        changer.start()
        self.addCleanup(changer.join)
        self.addCleanup(over.set)
        for _ in range(20 if SANITIZE else 100):
            ranges = [(0, None), (0, 4096), (size - 4096, 4096), (4096, size - 4096)]
            streams = [(count or size - offset, self.conn.start_descriptor("u8", ["sum"], f.fileno(), offset, count))
                       for offset, count in ranges]
            for count, stream in streams:
                answer = self.conn.wait(stream)
                if answer.status:
                    self.assertIn(answer.status.code, (DATA_LOSS, INVALID_ARGUMENT), answer.status)
                else:
                    self.assertLessEqual(answer.count, count)
                    self.assertLessEqual(int.from_bytes(answer.results[0].value, "little"), answer.count)
        over.set()
        changer.join()
        os.pwrite(f.fileno(), b"\1" * size, 0)
        self.assertEqual(size, int.from_bytes(self.conn.descriptor("u8", ["sum"], f.fileno()).results[0].value, "little"))

    def test_rewritten_under_the_read(self):
        f = self.sealed(bytes(SIZE))
        self.conn.register(1, f.fileno())
        job = self.paused(1)
        os.pwrite(f.fileno(), b"\xff" * SIZE, 0)
        seen = self.resumed(job).array(0, 8, SIZE // 8)
        self.assertEqual(0xff, seen[-1])

    def test_sealed_against_writing(self):
        data = plain("f64", 5000)
        f = self.sealed(data, F_SEAL_SHRINK | F_SEAL_WRITE)
        self.conn.register(1, f.fileno())
        self.assertEqual(expect_all(["sum", "max"], "f64", data), self.conn.region("f64", ["sum", "max"], 1).keys())

    def test_a_full_file_system(self):
        """Holes in shared memory, and no room to fill them: reading one through a map would be a SIGBUS."""
        folder = os.path.join(self.folder, "full")
        os.mkdir(folder)
        if os.geteuid() != 0 or LIBC.mount(b"full", folder.encode(), b"tmpfs", 0, b"size=16m") != 0:
            self.skipTest("mounting a tmpfs needs root")
        self.addCleanup(LIBC.umount2, folder.encode(), 2)
        size = 8 << 20
        with open(os.path.join(folder, "array"), "w+b", buffering=0) as f, \
                open(os.path.join(folder, "rest"), "wb", buffering=0) as rest:
            f.write(b"\1" * size)
            self.conn.register(1, f.fileno())
            self.conn.register(2, os.open(os.path.join(folder, "array"), os.O_RDONLY))
            jobs = [self.paused(number, size) for number in (1, 2)]
            punch(f, 0, size)
            try:
                while True:
                    rest.write(bytes(1 << 16))
            except OSError:
                pass  # full
            for job in jobs:
                answer = self.resumed(job)  # mapped when it began: either it meets a hole that cannot be filled, or it does not
                if answer.status:
                    self.assert_sentence(answer.status, DATA_LOSS)
            os.ftruncate(f.fileno(), 1 << 40)
            self.assertEqual(1 << 40, self.conn.register(3, f.fileno()))
            answer = self.conn.region("u8", ["sum", "count"], 3, (1 << 40) - (4 << 20))
            self.assertEqual([0, 4 << 20], [int.from_bytes(r.value, "little") for r in answer.results])
            for number in (1, 2, 3):
                self.assertIsNone(self.conn.unregister(number))

    def test_huge_pages(self):
        """Zeros cannot be laid over a part of one: such memory is not mapped."""
        with open("/proc/meminfo") as f:
            info = dict(line.split(":") for line in f)
        page = 1024 * int(info["Hugepagesize"].split()[0])
        size = (SIZE + page - 1) // page * page
        if int(info.get("HugePages_Free", "0")) * page < size:
            self.skipTest("no huge pages are set aside here")
        fd = os.memfd_create("huge", os.MFD_HUGETLB | os.MFD_ALLOW_SEALING)
        self.addCleanup(os.close, fd)
        os.ftruncate(fd, size)
        with mmap.mmap(fd, size) as m:
            m[:] = b"\1" * size
        self.assertEqual(size, self.conn.register(1, fd))
        self.assertEqual(size, int.from_bytes(self.conn.region("u8", ["sum"], 1).results[0].value, "little"))
        job = self.paused(1, size)
        os.ftruncate(fd, 0)
        self.assert_sentence(self.resumed(job).status, DATA_LOSS)
        self.assert_sentence(self.conn.region("u8", ["sum"], 1).status, DATA_LOSS)
        self.assertIsNone(self.conn.unregister(1))

    def test_reads_of_holes_fill_none(self):
        """A sparse memfd of 1 TiB costs the daemon nothing to keep, nor to read a part of."""
        f = self.memfd()
        os.ftruncate(f.fileno(), 1 << 40)
        before = os.fstat(f.fileno()).st_blocks
        self.conn.register(1, f.fileno())
        self.assertEqual(16 << 20, self.conn.region("u8", ["sum"], 1, 1 << 39, 16 << 20).count)
        self.assertEqual(before, os.fstat(f.fileno()).st_blocks)


CLIENT = """
import os, sys
sys.path.insert(0, sys.argv[1])
from connection import Connection
c = Connection(sys.argv[2])
f = os.memfd_create("mine")
os.ftruncate(f, 0)
os.write(f, b"\\1" * (16 << 20))
for number in range(1, 9):
    c.register(number, f)
if sys.argv[3] == "job":
    for number in range(1, 9):
        for _ in range(4):
            c.start_region("u8", ["sum"], number, axis=(2 << 20, 8, 1))
    c.start_unregister(1)
    c.ping()
if sys.argv[3] == "passed":
    os.ftruncate(f, 1 << 33)  # reading all of it 16 times takes a second at least
    for _ in range(16):
        c.start_descriptor("u8", ["sum"], f)
    c.ping()
print("ready", flush=True)
if sys.argv[3] != "exit":
    sys.stdin.read()
"""


class Deaths(DaemonTest):
    OPTIONS = {"cpu_workers": 2}

    def client(self, how):
        process = subprocess.Popen([sys.executable, "-c", CLIENT, os.path.dirname(os.path.abspath(__file__)),
                                    self.daemon.address, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.kill)
        self.assertEqual(b"ready\n", process.stdout.readline())
        return process

    def end(self, process):
        process.wait(60)
        process.stdin.close()
        process.stdout.close()
        self.daemon.check_returned(self)
        self.assert_serves()

    def test_registers_and_exits(self):
        self.end(self.client("exit"))

    def test_dies_with_regions(self):
        process = self.client("stay")
        self.assertEqual(8, self.daemon.gauges()["regions"])
        process.kill()
        self.end(process)

    def test_dies_in_the_middle_of_jobs(self):
        processes = [self.client("job") for _ in range(2)]
        self.assertGreater(self.daemon.gauges()["jobs"], 0)
        for process in processes:
            process.send_signal(signal.SIGKILL)
        for process in processes:
            self.end(process)

    def test_dies_while_workers_read_what_it_passed(self):
        process = self.client("passed")
        wait_for("a worker that reads", lambda: self.daemon.gauges()["jobs"] > 0)
        process.kill()
        self.end(process)

    def test_its_memory_outlives_its_file(self):
        """Whoever else has the descriptor goes on; the daemon's hold on it ends."""
        f = self.memfd(b"\1" * 4096)
        with self.daemon.connect() as c, self.daemon.connect() as d:
            c.register(1, f.fileno())
            d.register(1, f.fileno())
            c.close()
            wait_for("the one region to go", lambda: self.daemon.gauges()["regions"] == 1)
            self.assertEqual(4096, int.from_bytes(d.region("u8", ["sum"], 1).results[0].value, "little"))
            self.assertEqual(NOT_FOUND, d.region("u8", ["sum"], 2).status.code)

    def test_the_daemon_ends_with_regions(self):
        """SIGTERM in the middle of it all: no hang, no report of a sanitizer."""
        from cured_daemon import Daemon
        folder = os.path.join(self.folder, "other")
        os.mkdir(folder)
        daemon = Daemon(folder, drain_timeout_ms=0)
        f = self.memfd(b"\1" * SIZE)
        with daemon.connect() as c:
            for number in range(1, 5):
                c.register(number, f.fileno())
                stream = c.start_region("u8", ["sum"], number, axis=(SIZE // 8, 8, 1))
                c.answers[stream].auto_credit = False
            c.until(lambda: c.answers[stream].window < CREDIT_BYTES)
            daemon.check_end(self, daemon.stop())


if __name__ == "__main__":
    main()
