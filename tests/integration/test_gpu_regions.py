"""test_gpu_regions: regions in the memory of a GPU, against the stand-in device (tests/fake): descriptors of memory and of pools,
events that jobs wait for, who lies about them, and that all is given back. What a real driver says is in test_gpu_shared."""
import os
import shutil
import signal
import struct
import tempfile
import unittest

from cured_daemon import Daemon, DaemonTest, main, wait_for
from cured_wire import (CANCELLED, DEADLINE_EXCEEDED, INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE, cuda_descriptor_region, cuda_ipc_region,
                        frame)
from expected import as_key, expect_all, expect_tiled, ops_table, oracle, plain
from fuse_files import FuseFile, why_not

PROGRAM = os.path.join(os.environ.get("CURED_TEST_DIR", ""), "cured-fake-gpu")
OPS = ["sum", "min", "argmax"]
CANCEL = 5


def head(magic, size, offset=0, ordinal=0):
    return magic + struct.pack("<QQQ", ordinal, offset, size) + bytes(32)


class GpuRegions(DaemonTest):
    PROGRAM = PROGRAM
    OPTIONS = {"backend": "auto", "gpu_chunk_bytes": 1 << 20, "gpu_streams": 2, "slabs": 16, "cpu_workers": 1,
               "gpu_timeout_ms": 60000}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with cls.daemon.connect() as c, tempfile.TemporaryFile() as f:  # what is made for the first of its kind, and stays
            f.write(head(b"fake-vmm", 8) + bytes(8))
            f.flush()
            assert c.registered(c.start_register(1, cuda_descriptor_region(8), f.fileno())) == 8, cls.daemon.log()
        cls.daemon.hold_from_now()

    def setUp(self):
        self.conn = self.connect()
        self.data = bytes(plain("f32", 50000))

    def tearDown(self):
        self.assertEqual(b"on", self.conn.ping(b"on"))
        self.assert_serves()

    def memory(self, data=None, ordinal=0, size=None):
        data = self.data if data is None else data
        return self.memfd(head(b"fake-vmm", len(data) if size is None else size, ordinal=ordinal) + data)

    def pool(self, data=None):
        data = self.data if data is None else data
        return self.memfd(head(b"fake-mem", len(data)) + data)

    def event(self, name, fired=False):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(b"1" if fired else b"")
        return path, path.encode().ljust(64, b"\0")

    def fire(self, path):
        with open(path, "wb") as f:
            f.write(b"1")

    def register(self, number, source, *descriptors):
        return self.conn.registered(self.conn.start_register(number, source, *descriptors))

    def held(self):
        return self.daemon.counters()["device_regions"]


class Descriptors(GpuRegions):
    def test_every_op(self):
        """Of an array in the GPU's memory, a small one and one of some claims: by kernels, or fetched where there is none."""
        data = bytes(plain("f32", 2000))
        many = data * 100
        self.register(1, cuda_descriptor_region(len(many)), self.memory(many).fileno())
        exact = [op for op in ops_table.IDS if op not in ops_table.BITS + ["prod"]]
        for ops in (exact, *([op] for op in exact)):
            self.assertEqual(expect_all(ops, "f32", data), self.conn.region("f32", ops, 1, 0, 2000).keys())
            self.assertEqual(expect_all(ops, "i16", data), self.conn.region("i16", ops, 1, 0, 4000).keys())
        whole = [op for op in ops_table.EXACT if op in oracle.SUMS]
        for op in whole:
            answer = oracle.float_result(None, oracle.rounded("f64", oracle.exact(op, "f32", data) * 100))
            self.assertEqual([as_key(op, answer)], self.conn.region("f32", [op], 1).keys())
        self.assertIsNone(self.conn.unregister(1))

    def test_memory_and_pools(self):
        """The descriptor may be closed as soon as the region is open, and no byte goes through the host."""
        before = self.daemon.counters()["gpu_bytes_total"]
        memory, pool = self.memory(), self.pool(b"some" + self.data)
        self.assertEqual(len(self.data) - 4, self.register(1, cuda_descriptor_region(len(self.data) - 4, offset=4), memory.fileno()))
        pointer = head(b"fake-ptr", len(self.data), 4)
        self.assertEqual(len(self.data), self.register(2, cuda_descriptor_region(len(self.data), pointer=pointer), pool.fileno()))
        memory.close()
        pool.close()
        self.assertEqual(2, self.held())
        for number, data in ((1, self.data[4:]), (2, self.data)):
            self.assertEqual(expect_all(OPS, "f32", data), self.conn.region("f32", OPS, number).keys())
            self.assertEqual(expect_all(OPS, "f32", data[400:800]), self.conn.region("f32", OPS, number, 400, 100).keys())
            self.assert_sentence(self.conn.region("f32", OPS, number, 0, 50001).status, INVALID_ARGUMENT, "count")
        self.assertEqual(2 * len(self.data) - 4 + 800, self.daemon.counters()["gpu_bytes_total"] - before)
        self.assertIsNone(self.conn.unregister(1))
        self.assertIsNone(self.conn.unregister(2))
        self.assertEqual(0, self.held())

    def test_what_is_something_else(self):
        n = len(self.data)
        point = head(b"fake-ptr", n)
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        self.addCleanup(os.close, writing)
        cases = [("a memfd", self.memfd(self.data), cuda_descriptor_region(n), ["descriptor"]),
                 ("an empty memfd", self.memfd(), cuda_descriptor_region(n), ["descriptor"]),
                 ("a file", self.file(self.data), cuda_descriptor_region(n), ["descriptor"]),
                 ("a pool without a pointer", self.pool(), cuda_descriptor_region(n), ["descriptor"]),
                 ("memory with a pointer", self.memory(), cuda_descriptor_region(n, pointer=point), ["descriptor"]),
                 ("a garbage pointer", self.pool(), cuda_descriptor_region(n, pointer=os.urandom(64)), ["pointer"]),
                 ("a pointer beyond its pool", self.pool(), cuda_descriptor_region(n, pointer=head(b"fake-ptr", n, 1)), ["pointer"]),
                 ("more than its pointer has", self.pool(), cuda_descriptor_region(n + 1, pointer=point), ["claimed"]),
                 ("more than there is", self.memory(), cuda_descriptor_region(n, offset=1), ["claimed", str(n + 1), str(n)]),
                 ("far more", self.memory(), cuda_descriptor_region(1 << 62), ["claimed"]),
                 ("almost 2^64", self.memory(), cuda_descriptor_region(1, offset=2**64 - 2), ["claimed"]),
                 ("another GPU's memory", self.memory(ordinal=1), cuda_descriptor_region(n), ["GPU"]),
                 ("a directory", os.open(self.folder, os.O_RDONLY), cuda_descriptor_region(n), ["descriptor"]),
                 ("a pipe", reading, cuda_descriptor_region(n), ["descriptor"]),
                 ("its own connection", self.conn.socket, cuda_descriptor_region(n), ["descriptor"]),
                 ("a path only", os.open(self.folder, os.O_PATH), cuda_descriptor_region(n), ["descriptor"])]
        for what, descriptor, source, words in cases:
            with self.subTest(what):
                fd = descriptor if isinstance(descriptor, int) else descriptor.fileno()
                self.assert_sentence(self.register(9, source, fd), INVALID_ARGUMENT, *words)
                self.assert_sentence(self.conn.region("u8", ["sum"], 9).status, NOT_FOUND, "region")
                if isinstance(descriptor, int) and fd not in (reading, writing):
                    os.close(fd)
        self.assert_sentence(self.register(9, cuda_descriptor_region(n, device=b"\7" * 16), self.memory().fileno()), NOT_FOUND, "GPU-07070707")
        self.assertEqual(0, self.held())

    def test_many_of_one_memory(self):
        memory = self.memory()
        for number in range(1, 41):
            self.assertEqual(4000, self.register(number, cuda_descriptor_region(4000, offset=4 * number), memory.fileno()))
        streams = [(number, self.conn.start_region("f32", OPS, number)) for number in range(1, 41)]
        for number, stream in streams:
            self.assertEqual(expect_all(OPS, "f32", self.data[4 * number:][:4000]), self.conn.wait(stream).keys())
        self.assertEqual(40, self.held())

    def test_clients_that_leave(self):
        """At once, after registering, in the middle of jobs."""
        memory = self.memory()
        for step in range(12):
            with self.daemon.connect() as other:
                stream = other.start_register(1, cuda_descriptor_region(len(self.data)), memory.fileno())
                if step % 3:
                    other.registered(stream)
                if step % 3 == 2:
                    for _ in range(4):
                        other.start_region("f32", ["sum"], 1)
        self.conn.close()
        self.daemon.check_returned(self)
        wait_for("no device memory held", lambda: self.held() == 0)
        self.conn = self.connect()


class Events(GpuRegions):
    def test_jobs_wait_for_it(self):
        path, event = self.event("one")
        _, done = self.event("two", fired=True)
        memory = self.memory()
        for number, source in ((1, cuda_descriptor_region(len(self.data), event=event)),
                               (2, cuda_descriptor_region(len(self.data), event=done)), (3, cuda_descriptor_region(len(self.data)))):
            self.assertEqual(len(self.data), self.register(number, source, memory.fileno()))
        wanted = expect_all(OPS, "f32", self.data)
        waiting = [self.conn.start_region("f32", OPS, 1) for _ in range(20)]
        for number in (2, 3, 2):
            self.assertEqual(wanted, self.conn.region("f32", OPS, number).keys(), "others wait with it")
        tile = bytes(4 << 20)
        self.assertIsNone(self.conn.stream("u8", ["sum"], tile).status)
        self.assertFalse([s for s in waiting if self.conn.answers[s].over], "they did not wait")
        self.fire(path)
        for stream in waiting:
            self.assertEqual(wanted, self.conn.wait(stream).keys())
        self.assertEqual(wanted, self.conn.region("f32", OPS, 1).keys())

    def test_of_an_ipc_handle(self):
        path, event = self.event("ipc")
        name = os.path.join(self.folder, "device")
        with open(name, "wb") as f:
            f.write(self.data)
        source = cuda_ipc_region(len(self.data), bytes(16), name.encode().ljust(64, b"\0"), event=event)
        self.assertEqual(len(self.data), self.register(1, source))
        stream = self.conn.start_region("f32", OPS, 1)
        self.conn.ping()
        self.assertFalse(self.conn.answers[stream].over)
        self.fire(path)
        self.assertEqual(expect_all(OPS, "f32", self.data), self.conn.wait(stream).keys())

    def test_one_that_never_fires(self):
        """It costs its own jobs their deadline, and nobody anything else: not its region's end, nor the daemon's."""
        _, event = self.event("never")
        memory = self.memory()
        self.register(1, cuda_descriptor_region(len(self.data), event=event), memory.fileno())
        late = [self.conn.start_region("f32", OPS, 1, timeout_ms=50) for _ in range(30)]
        for stream in late:
            self.assert_sentence(self.conn.wait(stream).status, DEADLINE_EXCEEDED, "timeout_ms")
        stays = self.conn.start_region("f32", OPS, 1)
        gone = self.conn.start_unregister(1)
        self.register(2, cuda_descriptor_region(len(self.data)), memory.fileno())  # the lane is asked while a job waits
        self.assertEqual(expect_all(OPS, "f32", self.data), self.conn.region("f32", OPS, 2).keys())
        self.assertFalse(self.conn.answers[gone].over)
        self.conn.send(frame(CANCEL, stays))
        self.assertEqual(CANCELLED, self.conn.wait(stays).status.code)
        self.assertEqual((None, b""), self.conn.over(gone))
        self.assertEqual(1, self.daemon.counters()["gpus"])
        with self.daemon.connect() as other:  # leaves with jobs that wait
            other.registered(other.start_register(1, cuda_descriptor_region(len(self.data), event=event), memory.fileno()))
            for _ in range(10):
                other.start_region("f32", OPS, 1)
            other.ping()
        wait_for("its region to go", lambda: self.held() == 1)

    def test_garbage(self):
        memory = self.memory()
        for event in (bytes(64), os.urandom(64), b"\xff" * 64, b"/nowhere".ljust(64, b"\0")):
            source = cuda_descriptor_region(len(self.data), event=event)
            self.assert_sentence(self.register(1, source, memory.fileno()), INVALID_ARGUMENT, "event")
        self.assertEqual(0, self.held())

    def test_one_that_goes_away(self):
        """The job that finds out fails, alone."""
        path, event = self.event("gone")
        memory = self.memory()
        self.register(1, cuda_descriptor_region(len(self.data), event=event), memory.fileno())
        self.register(2, cuda_descriptor_region(len(self.data)), memory.fileno())
        stream = self.conn.start_region("f32", OPS, 1)
        self.conn.ping()
        os.unlink(path)
        self.assert_sentence(self.conn.wait(stream).status, INVALID_ARGUMENT, "event")
        self.assertEqual(expect_all(OPS, "f32", self.data), self.conn.region("f32", OPS, 2).keys())

    def test_more_than_are_asked_at_once(self):
        """Many that wait, of which one fires: it gets its turn."""
        memory = self.memory()
        paths = []
        for number in range(1, 31):
            path, event = self.event("many%d" % number)
            paths.append(path)
            self.register(number, cuda_descriptor_region(len(self.data), event=event), memory.fileno())
        streams = [self.conn.start_region("f32", ["sum"], number) for number in range(1, 31)]
        for chosen in (29, 3, 17):
            self.fire(paths[chosen])
            self.assertIsNone(self.conn.wait(streams[chosen]).status)
        self.assertEqual(27, sum(not self.conn.answers[s].over for s in streams))
        for path in paths:
            self.fire(path)
        for stream in streams:
            self.assertIsNone(self.conn.wait(stream).status)


class Dangers(GpuRegions):
    """What makes the driver fail in the process that opens it, or the GPU that reads it: a process beside the daemon tries first."""
    OPTIONS = dict(GpuRegions.OPTIONS, gpu_timeout_ms=5000)  # a busy machine takes its time to start the process

    def children(self, pid):
        found = set()
        for task in os.listdir("/proc/%s/task" % pid):
            with open("/proc/%s/task/%s/children" % (pid, task)) as f:
                found.update(f.read().split())
        return found

    def probes(self):
        """Processes that the daemon's keeper has started, by their ids."""
        keeper, = self.children(self.daemon.pid)
        return self.children(keeper)

    def test_what_ends_a_process(self):
        good = self.memory()
        self.register(1, cuda_descriptor_region(len(self.data)), good.fileno())
        wanted = expect_all(OPS, "f32", self.data)
        path, event = self.event("deadly")
        for what in (b"killing!", b"poisoned", b"hanging!"):
            with self.subTest(what):
                source = cuda_descriptor_region(4096)
                self.assert_sentence(self.register(2, source, self.memory(what + bytes(5000)).fileno()), INVALID_ARGUMENT, "driver")
                self.assertEqual(wanted, self.conn.region("f32", OPS, 1).keys())
                with open(path, "wb") as f:
                    f.write(what)
                if what == b"poisoned":
                    continue
                source = cuda_descriptor_region(len(self.data), event=event)
                self.assert_sentence(self.register(2, source, good.fileno()), INVALID_ARGUMENT, "driver")
        self.assertEqual(len(self.data), self.register(3, cuda_descriptor_region(len(self.data)), good.fileno()))
        self.assertEqual(wanted, self.conn.region("f32", OPS, 3).keys())
        self.assertEqual(1, self.daemon.counters()["gpus"])

    def test_only_one_and_again_after_its_end(self):
        good = self.memory()
        for number in (1, 2, 3):
            self.register(number, cuda_descriptor_region(64), good.fileno())
        first = self.probes()
        self.assertEqual(1, len(first))
        os.kill(int(*first), signal.SIGKILL)
        wait_for("its end", lambda: not self.probes())
        self.assertEqual(64, self.register(4, cuda_descriptor_region(64), good.fileno()))
        second = self.probes()
        self.assertEqual(1, len(second))
        self.assertNotEqual(first, second)


    def test_it_starts_beside_files_that_do_not_answer(self):
        """A client's file whose server is silent when it is closed, open in the daemon while the probe must be started."""
        reason = why_not()
        if reason:
            self.skipTest(reason)
        good = self.memory()
        for probe in self.probes():
            os.kill(int(probe), signal.SIGKILL)
        wait_for("its end", lambda: not self.probes())
        try:
            silent = FuseFile(self.folder, bytes(1 << 20))
        except OSError as e:
            self.skipTest("cannot mount FUSE here: %s" % e.strerror)
        self.addCleanup(silent.abort)
        fd = silent.open()
        silent.set(hang={"read", "flush"})
        stream = self.conn.start_descriptor("u8", ["sum"], fd)
        wait_for("a read that hangs", lambda: silent.hangs("read"))
        other = self.connect()
        self.assertEqual(64, other.registered(other.start_register(1, cuda_descriptor_region(64), good.fileno())))
        self.assertEqual(0, silent.hangs("flush"))
        silent.let_go()
        self.assertIsNone(self.conn.wait(stream).status)


class Strangers(GpuRegions):
    """Clients of another user: what is only 64 bytes is not opened for them, a descriptor is."""
    OPTIONS = dict(GpuRegions.OPTIONS, socket_mode="0666")

    def test_handles_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("being another user needs root")
        os.chmod(self.folder, 0o755)
        _, event = self.event("theirs", fired=True)
        memory, pool = self.memory(), self.pool()
        n = len(self.data)
        os.seteuid(12345)
        try:
            other = self.connect()
        finally:
            os.seteuid(0)
        for source, descriptor in ((cuda_ipc_region(n), None), (cuda_descriptor_region(n, event=event), memory.fileno()),
                                   (cuda_descriptor_region(n, pointer=head(b"fake-ptr", n)), pool.fileno())):
            status = other.registered(other.start_register(1, source, descriptor))
            self.assert_sentence(status, PERMISSION_DENIED, "device_handles")
        self.assertEqual(n, other.registered(other.start_register(1, cuda_descriptor_region(n), memory.fileno())))
        self.assertEqual(expect_all(OPS, "f32", self.data), other.region("f32", OPS, 1).keys())


class Stuck(unittest.TestCase):
    """A call of the driver that never returns: the loop notices, everybody is answered, and the daemon can end."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        tile = bytes(plain("f32", 1 << 14))
        self.data = tile * 64
        self.wanted = [expect_tiled(op, "f32", tile, 64) for op in OPS]

    def start(self, faults, env=(), **options):
        daemon = Daemon(self.folder, program=PROGRAM, env=dict(env, CURED_TEST_GPU=faults), **dict(GpuRegions.OPTIONS, gpu_timeout_ms=2000, **options))
        self.addCleanup(daemon.stop, signal.SIGKILL)
        return daemon

    def check_lost(self, daemon, conn):
        for _ in range(2):
            self.assertEqual(self.wanted, conn.stream("f32", OPS, self.data).keys())
        info = conn.info()
        self.assertEqual("cpu", info["backend"])
        self.assertIn("has not returned", info["backend_reason"])
        self.assertEqual((0, 1), (info["counters"]["gpus"], info["counters"]["gpus_lost_total"]))

    def lost_by_another(self, conn):
        """Whether the GPU is lost after one array more: with auto the CPU may have taken all those before."""
        self.assertEqual(self.wanted, conn.stream("f32", OPS, self.data).keys())
        return conn.info()["counters"]["gpus_lost_total"]

    def test_in_a_fold(self):
        """Its claims are folded by the CPU; a region in its memory, and a kernel by name, are UNAVAILABLE."""
        for backend in ("cuda", "auto"):
            daemon = self.start("stuck_at=2", backend=backend, gpu_min_bytes=1)
            with daemon.connect() as conn, tempfile.TemporaryFile() as f:
                f.write(head(b"fake-vmm", 4096) + bytes(4096))
                f.flush()
                self.assertEqual(4096, conn.registered(conn.start_register(1, cuda_descriptor_region(4096), f.fileno())))
                streams = [conn.start_stream("f32", OPS, len(self.data)) for _ in range(4)]
                for stream in streams:
                    conn.send_array(stream, self.data)
                for stream in streams:
                    self.assertEqual(self.wanted, conn.wait(stream).keys())
                wait_for("a GPU lost", lambda: self.lost_by_another(conn))
                self.check_lost(daemon, conn)
                self.assertEqual(UNAVAILABLE, conn.region("u8", ["sum"], 1).status.code)
                self.assertEqual(UNAVAILABLE, conn.registered(conn.start_register(2, cuda_descriptor_region(4096), f.fileno())).code)
                self.assertIsNone(conn.unregister(1))
            daemon.check_end(self, daemon.stop())

    def test_in_what_others_wait_for(self):
        """A region that is being pinned: whoever waits is let go."""
        daemon = self.start("stuck_pin=2")
        with daemon.connect() as conn, tempfile.TemporaryFile(dir=self.folder) as f:
            f.write(self.data)
            f.flush()
            self.assertEqual(len(self.data), conn.register(1, f.fileno()))
            self.assertEqual(self.wanted, conn.region("f32", OPS, 1).keys())
            wait_for("a GPU lost", lambda: conn.info()["counters"]["gpus_lost_total"])
            self.assertEqual(self.wanted, conn.region("f32", OPS, 1).keys())
            self.assertIsNone(conn.unregister(1))
            self.check_lost(daemon, conn)
        daemon.check_end(self, daemon.stop())

    def test_stopping(self):
        """In a fold, and in the unpinning that is a part of it: the loop has ended by then and looks no more, so whoever waits for the lane does."""
        ranges = os.path.join(self.folder, "ranges")
        daemon = self.start("stuck_at=1", {"CURED_TEST_GPU_TRACES": ranges}, backend="cuda", drain_timeout_ms=1)
        conn = daemon.connect()
        self.addCleanup(conn.close)
        conn.send_array(conn.start_stream("f32", OPS, len(self.data)), self.data)
        wait_for("a claim of the GPU's", lambda: os.path.exists(ranges) and os.path.getsize(ranges))
        daemon.process.send_signal(signal.SIGTERM)
        daemon.check_end(self, daemon.wait())
        daemon = self.start("stuck_unpin=1")
        daemon.check_end(self, daemon.stop())
        self.assertIn("has not returned", daemon.log())

    def test_exit(self):
        daemon = self.start("stuck_at=1", on_gpu_fault="exit", backend="cuda")
        conn = daemon.connect()
        self.addCleanup(conn.close)
        conn.send_array(conn.start_stream("f32", OPS, len(self.data)), self.data)
        daemon.check_end(self, daemon.wait(), 70)
        self.assertIn("has not returned", daemon.log())


if __name__ == "__main__":
    main()
