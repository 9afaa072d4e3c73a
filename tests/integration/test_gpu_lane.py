"""test_gpu_lane: the lane of a GPU in the whole daemon: the same bits as the CPU's, alone and beside it, and nobody's answer or
memory lost when the GPU is.

It runs cured-fake-gpu, whose GPU is made of host memory and has faults to order (tests/fake), or, with CURED_TEST_REAL_GPU set,
the daemon itself on the machine's GPU, without the faults.
"""
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from connection import HANG_S
from cured_daemon import CURED, Daemon, DaemonTest, environment, main, need_binary, wait_for
from cured_wire import DATA_LOSS, INPUTS, INVALID_ARGUMENT, OPS, UNAVAILABLE, cuda_ipc_region
from expected import array_of, expect, expect_all, expect_tiled, plain

REAL = bool(os.environ.get("CURED_TEST_REAL_GPU"))
PROGRAM = CURED if REAL else os.path.join(os.environ.get("CURED_TEST_DIR", ""), "cured-fake-gpu")
BACKEND = "cuda" if REAL else "fake"
FLOATS = ("f8_e4m3", "f8_e5m2", "f16", "bf16", "f32", "f64")
TILED = ["sum", "mean", "min", "max", "argmin", "argmax", "count", "count_nonzero", "count_nan", "count_inf", "any", "all"]
SMALL = {"gpu_chunk_bytes": 1 << 20, "gpu_streams": 3, "slabs": 16, "gpu_timeout_ms": 60000}


def every_op(dtype):
    """The ops that have one answer whoever folds, and that the GPU may fold."""
    floats = dtype in FLOATS
    return [op for op in OPS if not (op == "prod" and floats) and not (op.startswith("bit_") and floats)]


def run_to_its_end(*flags, env=None):
    done = subprocess.run([PROGRAM, *flags], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG_S,
                          env=environment(**(env or {})))
    return done.returncode, done.stderr


def setUpModule():
    need_binary(PROGRAM)
    if REAL:
        folder = tempfile.mkdtemp(prefix="cured-it-")
        try:
            daemon = Daemon(folder, program=PROGRAM, backend="cuda")
            daemon.stop()
        except AssertionError as e:
            raise unittest.SkipTest("no CUDA device: %s" % str(e).splitlines()[-1]) from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class Answers:
    """Every way in, every type, every op, against the oracle."""
    PROGRAM = PROGRAM

    def setUp(self):
        self.conn = self.connect()

    def ways(self, dtype, ops, raw, **options):
        yield "stream", lambda: self.conn.stream(dtype, ops, raw, **options)
        yield "unknown length", lambda: self.conn.stream(dtype, ops, raw, known=False, chunks=(77777,), **options)
        for name, make in (("file", self.file), ("memfd", self.memfd)):
            f = make(b"x" + raw)
            yield name, lambda d=f.fileno(): self.conn.descriptor(dtype, ops, d, 1, **options)
            f.close()

    def test_every_op_and_type(self):
        r = random.Random(11)
        for dtype in INPUTS:
            raw = array_of(r, dtype, 20011)
            ops = every_op(dtype)
            wanted = expect_all(ops, dtype, raw)
            for name, call in self.ways(dtype, ops, raw):
                answer = call()
                self.assertIsNone(answer.status, (dtype, name))
                self.assertEqual(wanted, answer.keys(), (dtype, name))

    def test_large(self):
        for dtype, count, times in (("f32", 50021, 60), ("f64", 30011, 50), ("u8", 65521, 150), ("i64", 7001, 150)):
            tile = plain(dtype, count)
            wanted = [expect_tiled(op, dtype, tile, times) for op in TILED]
            for name, call in self.ways(dtype, TILED, bytes(tile) * times):
                answer = call()
                self.assertIsNone(answer.status, (dtype, name))
                self.assertEqual(wanted, answer.keys(), (dtype, name))

    def test_what_a_gpu_does_not_take(self):
        """A product of floats goes in order, beside other jobs."""
        raw = plain("f64", 300000)
        first = self.conn.start_stream("f64", ["prod", "sum"], len(raw))
        self.conn.send_array(first, raw)
        other = self.connect().stream("f64", ["sum"], raw)
        self.assertEqual([expect("sum", "f64", raw)], other.keys())
        self.assertEqual(expect("sum", "f64", raw), self.conn.wait(first).keys()[1])

    def test_empty_and_small(self):
        for dtype in ("f32", "i16"):
            for count in (0, 1, 5000, 9001):
                raw = plain(dtype, count) if count else b""
                for name, call in self.ways(dtype, ["sum", "count"], raw):
                    self.assertEqual(expect_all(["sum", "count"], dtype, raw), call().keys(), (dtype, count, name))

    def test_calls_that_are_dropped_give_everything_back(self):
        tile = plain("f32", 1 << 18)
        f = self.file(bytes(tile) * 16)
        for n in range(6):
            conn = self.daemon.connect()
            conn.start_descriptor("f32", ["sum"], f.fileno())
            stream = conn.start_stream("f32", ["sum"], None)
            conn.send_data(stream, tile[:1 << 20])
            conn.ping()
            conn.close()
        wait_for("everything given back", lambda: not any(
            count for name, count in self.daemon.busy_gauges().items() if name != "connections"))


class Both(Answers, DaemonTest):
    """Both lanes at once."""
    OPTIONS = dict(SMALL, backend="auto", gpu_min_bytes=1, cpu_workers=2)

    def test_both_take_part(self):
        tile = plain("i32", 1 << 18)
        f = self.memfd(bytes(tile) * 24)
        wanted = [expect_tiled(op, "i32", tile, 24) for op in TILED]

        def shared():
            before = self.daemon.counters()
            self.assertEqual(wanted, self.conn.descriptor("i32", TILED, f.fileno()).keys())
            after = self.daemon.counters()
            by_gpu = after["gpu_bytes_total"] - before["gpu_bytes_total"]
            return 0 < by_gpu < after["input_bytes_total"] - before["input_bytes_total"]
        wait_for("a job that both lanes claimed from", shared)


class Alone(Answers, DaemonTest):
    """backend cuda: the CPU folds only what the GPU cannot."""
    OPTIONS = dict(SMALL, backend="cuda")

    def test_the_cpu_has_no_part(self):
        tile = plain("u16", 1 << 18)
        for make in (self.file, self.memfd):
            f = make(bytes(tile) * 8)
            before = self.daemon.counters()
            answer = self.conn.descriptor("u16", TILED, f.fileno())
            self.assertEqual([expect_tiled(op, "u16", tile, 8) for op in TILED], answer.keys())
            after = self.daemon.counters()
            self.assertEqual(len(tile) * 8, after["gpu_bytes_total"] - before["gpu_bytes_total"])
        self.assertEqual(0, after["gpu_returned_total"])

    def test_info(self):
        info = self.conn.info()
        self.assertEqual(BACKEND, info["backend"])
        gpus = info["counters"]["gpus"]
        self.assertEqual(["cpu"] + gpus * [BACKEND], [lane["name"] for lane in info["lanes"]])
        if REAL:  # as many as there are
            self.assertGreaterEqual(gpus, 1)
        else:
            self.assertEqual(1, gpus)
        for name in ("gpu_pinned_bytes_per_second", "gpu_staged_bytes_per_second", "gpu_launch_ns"):
            self.assertGreater(info["counters"][name], 0, name)
        self.assertEqual(0, info["counters"]["gpus_lost_total"])


class DeviceTest(DaemonTest):
    """The first device memory of a client makes what then stays: a process that tries it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = os.path.join(cls.folder, "first")
        with open(path, "wb") as f:
            f.write(bytes(8))
        with cls.daemon.connect() as c:
            c.registered(c.start_register(1, cuda_ipc_region(8, bytes(16), path.encode().ljust(64, b"\0"))))
        cls.daemon.hold_from_now()


class Regions(DeviceTest):
    """Registered memory: pinned where it is mapped, so that it is copied from where it lies."""
    PROGRAM = PROGRAM
    OPTIONS = dict(SMALL, backend="cuda")

    def test_host_memory(self):
        tile = plain("f64", 1 << 15)
        for make in (self.file, self.memfd):
            with self.daemon.connect() as conn:
                f = make(bytes(tile) * 20)
                self.assertIsInstance(conn.register(7, f.fileno()), int)
                for _ in range(6):  # pinned meanwhile
                    answer = conn.region("f64", TILED, 7)
                    self.assertEqual([expect_tiled(op, "f64", tile, 20) for op in TILED], answer.keys())
                    part = conn.region("f64", ["sum", "argmin"], 7, 8 * 12345, 1 << 15)
                    self.assertEqual(expect_all(["sum", "argmin"], "f64", (bytes(tile) * 2)[8 * 12345:][:len(tile)]), part.keys())
                self.assertIsNone(conn.unregister(7))
                f.close()

    def test_a_pinned_file_that_is_cut_is_lost(self):
        with self.daemon.connect() as conn:
            f = self.file(bytes(8 << 20))
            self.assertIsInstance(conn.register(7, f.fileno()), int)
            self.assertIsNone(conn.region("u8", ["sum"], 7).status)
            os.ftruncate(f.fileno(), 1 << 20)
            self.assert_sentence(conn.region("u8", ["sum"], 7).status, DATA_LOSS, "cut")
        self.assert_serves()

    @unittest.skipIf(REAL, "the stand-in's handles are paths of files")
    def test_device_memory(self):
        """No byte moves; the GPU alone folds, products of floats among the rest."""
        tile = plain("f32", 1 << 15)
        path = os.path.join(self.folder, "device")
        with open(path, "wb") as f:
            f.write(b"1234" + bytes(tile) * 10)
        handle = path.encode().ljust(64, b"\0")
        before = self.daemon.counters()
        with self.daemon.connect() as conn:
            for device, size, words in ((b"\1" * 16, 4, "GPU-01010101"), (bytes(16), 1 << 30, "claimed")):
                stream = conn.start_register(3, cuda_ipc_region(size, device, handle))
                status = conn.registered(stream)
                self.assert_sentence(status, status.code, words)
            self.assertIsInstance(conn.registered(conn.start_register(4, cuda_ipc_region(10 * len(tile), bytes(16), handle, 4))), int)
            self.assertEqual([expect_tiled(op, "f32", tile, 10) for op in TILED], conn.region("f32", TILED, 4).keys())
            self.assertEqual([expect("sum", "f32", tile)], conn.region("f32", ["sum"], 4, len(tile), 1 << 15).keys())
            self.assertIsNone(conn.region("f32", ["prod"], 4).status)
            self.assertEqual(expect_all(["sum", "count"], "f32", b""), conn.region("f32", ["sum", "count"], 4, 8, 0).keys())
            self.assertIsNone(conn.unregister(4))
        after = self.daemon.counters()
        self.assertEqual(21 * len(tile), after["gpu_bytes_total"] - before["gpu_bytes_total"])


class Kernels(DeviceTest):
    """A kernel asked for by name: alone on the whole array, by every way in."""
    PROGRAM = PROGRAM
    OPTIONS = dict(SMALL, backend="auto", max_kernel_bytes=6 << 20)
    OPS = ["sum", "max", "min"]

    def test_every_way_in(self):
        raw = plain("i32", 1 << 20)
        wanted = expect_all(self.OPS, "i32", raw)
        conn = self.connect()
        self.assertEqual(wanted, conn.stream("i32", self.OPS, raw, kernel="v7_shuffle").keys())
        for make in (self.file, self.memfd):
            f = make(b"1234" + raw)
            answer = conn.descriptor("i32", self.OPS, f.fileno(), 4, kernel="v3_add_during_load")
            self.assertEqual((wanted, 1 << 20), (answer.keys(), answer.count))
            self.assertIsInstance(conn.register(1, f.fileno()), int)
            self.assertEqual(wanted, conn.region("i32", self.OPS, 1, 4, kernel="v0_baseline").keys())
            conn.unregister(1)
        for count in (1, 100, 5000):
            self.assertEqual(expect_all(self.OPS, "i32", raw[:4 * count]),
                             conn.stream("i32", self.OPS, raw[:4 * count], kernel="v7_shuffle").keys(), count)
        self.assertEqual(expect_all(self.OPS, "i32", b""), conn.stream("i32", self.OPS, b"", kernel="v7_shuffle").keys())
        floats = conn.stream("f32", ["prod", "sum"], plain("f32", 10001), kernel="v7_shuffle")
        self.assertIsNone(floats.status)

    def test_of_unknown_length_it_is_refused(self):
        conn = self.connect()
        answer = conn.stream("i32", ["sum"], bytes(3 << 20), known=False, kernel="v7_shuffle")
        self.assert_sentence(answer.status, INVALID_ARGUMENT, "length")

    def test_above_a_size_it_is_refused(self):
        conn, raw = self.connect(), bytes((6 << 20) + 4)
        f = self.file(raw)
        self.assertIsInstance(conn.register(1, f.fileno()), int)
        for answer in (conn.stream("i32", ["sum"], raw, kernel="v7_shuffle"),
                       conn.descriptor("i32", ["sum"], f.fileno(), kernel="v7_shuffle"),
                       conn.region("i32", ["sum"], 1, kernel="v7_shuffle")):
            self.assert_sentence(answer.status, INVALID_ARGUMENT, "max_kernel_bytes", str(6 << 20))
        self.assertIsNone(conn.region("i32", ["sum"], 1, 4, kernel="v7_shuffle").status)
        self.assertIsNone(conn.stream("i32", ["sum"], raw).status)

    def test_many_at_once_and_some_dropped(self):
        raw = plain("i64", 1 << 17)
        conn, other = self.connect(), self.daemon.connect()
        for n in range(3):  # these never end
            stream = other.start_stream("i64", ["sum"], len(raw), kernel="v7_shuffle")
            other.send_data(stream, raw[:1 << (17 + n)])
        streams = [conn.start_stream("i64", ["sum"], len(raw), kernel="v7_shuffle") for _ in range(6)]
        for stream in streams:
            conn.send_array(stream, raw)
        other.close()
        for stream in streams:
            self.assertEqual([expect("sum", "i64", raw)], conn.wait(stream).keys())

    @unittest.skipIf(REAL, "the stand-in's handles are paths of files")
    def test_device_memory(self):
        raw = plain("i32", 300000)
        path = os.path.join(self.folder, "device")
        with open(path, "wb") as f:
            f.write(raw)
        conn = self.connect()
        stream = conn.start_register(4, cuda_ipc_region(len(raw), bytes(16), path.encode().ljust(64, b"\0")))
        self.assertIsInstance(conn.registered(stream), int)
        self.assertEqual(expect_all(self.OPS, "i32", raw), conn.region("i32", self.OPS, 4, kernel="v7_shuffle").keys())


@unittest.skipIf(REAL, "the stand-in records ranges")
class Ranges(DaemonTest):
    """What a tool such as Nsight Systems sees: a range for each job that a GPU took, by its name, begun once and ended once."""
    PROGRAM = PROGRAM
    OPTIONS = dict(SMALL, backend="cuda")

    @classmethod
    def setUpClass(cls):
        cls.record = tempfile.NamedTemporaryFile(prefix="cured-ranges-", suffix=".txt")  # pylint: disable=consider-using-with
        cls.addClassCleanup(cls.record.close)
        cls.ENV = {"CURED_TEST_GPU_TRACES": cls.record.name}
        super().setUpClass()

    def ranges(self):
        """Names by number; those that have ended."""
        begun, ended = {}, set()
        with open(self.record.name, encoding="utf-8") as f:
            for line in f:
                what, number, *name = line.rstrip("\n").split(" ", 2)
                if what == "+":
                    self.assertNotIn(number, begun)
                    begun[number] = name[0]
                else:
                    self.assertIn(number, begun)
                    self.assertNotIn(number, ended)
                    ended.add(number)
        return begun, ended

    def test_every_job_by_name(self):
        raw = plain("i32", 1 << 18)
        before = len(self.ranges()[0])
        conn = self.connect()
        conn.stream("i32", ["sum", "argmax"], raw)
        conn.stream("i32", ["sum"], raw, kernel="v7_shuffle")
        self.assertIsNotNone(conn.stream("i32", ["sum"], raw, kernel="hybrid").status)  # it is not there, and its job fails
        conn.stream("f64", ["prod"], plain("f64", 100000))  # the CPU's
        f = self.memfd(raw)
        conn.descriptor("i32", ["min"], f.fileno())
        self.assertIsInstance(conn.register(7, f.fileno()), int)
        small = [conn.start_region("i32", ["mean", "max"], 7, 4 * n, 5000 + n) for n in range(40)]
        for stream in small:
            self.assertIsNone(conn.wait(stream).status)
        wanted = ["sum,argmax i32[262144]", "v7_shuffle sum i32[262144]", "hybrid sum i32[262144]", "min i32[262144]"]
        wanted += ["mean,max i32[%d]" % (5000 + n) for n in range(40)]
        begun, ended = self.ranges()
        self.assertEqual(set(begun), ended)
        self.assertEqual(sorted(wanted), sorted(name.split(": ")[1] for name in list(begun.values())[before:]))
        self.assertEqual(len(begun), len({name.split(":")[0] for name in begun.values()}), "numbers of jobs")


class Looking(DaemonTest):
    """Threads look for work before they sleep, for as long as spin_us if waits are short; then they do sleep."""
    PROGRAM = PROGRAM
    OPTIONS = dict(SMALL, backend="cuda", spin_us=1000)

    def cpu_seconds(self):
        with open("/proc/%d/stat" % self.daemon.process.pid, encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def test_answers_and_then_sleeps(self):
        conn = self.connect()
        for count in (1, 5000, 300000) * 5:
            raw = plain("i32", count)
            self.assertEqual(expect_all(["sum", "max"], "i32", raw), conn.stream("i32", ["sum", "max"], raw).keys())
        time.sleep(0.1)
        before = self.cpu_seconds()
        time.sleep(1)
        self.assertLess(self.cpu_seconds() - before, 0.5)


class Calibrated(DaemonTest):
    """Whoever is faster by what was measured at start."""
    PROGRAM = PROGRAM
    OPTIONS = {"backend": "auto"}

    def test_one_of_each(self):
        tile = plain("bf16", 1 << 16)
        wanted = [expect_tiled(op, "bf16", tile, 64) for op in TILED]
        conn = self.connect()
        self.assertEqual(wanted, conn.stream("bf16", TILED, bytes(tile) * 64).keys())
        for make in (self.file, self.memfd):
            self.assertEqual(wanted, conn.descriptor("bf16", TILED, make(bytes(tile) * 64).fileno()).keys())

    def test_rates_are_shown(self):
        self.assertGreater(self.daemon.counters()["cpu_bytes_per_second"], 0)


@unittest.skipIf(REAL, "faults are for the stand-in device")
class Faults(unittest.TestCase):
    """One daemon a fault."""
    SIZE = 6 << 20

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.tile = plain("f32", 1 << 16)
        self.times = self.SIZE // len(self.tile)
        self.data = bytes(self.tile) * self.times
        self.wanted = [expect_tiled(op, "f32", self.tile, self.times) for op in TILED]

    def start(self, faults, **options):
        options = {**SMALL, "backend": "cuda", **options}
        daemon = Daemon(self.folder, program=PROGRAM, env={"CURED_TEST_GPU": faults}, **options)
        self.addCleanup(daemon.stop, signal.SIGKILL)
        return daemon

    def file(self, data, disk=True):
        if disk:
            f = tempfile.TemporaryFile(dir=self.folder, buffering=0)
        else:
            f = os.fdopen(os.memfd_create("array"), "w+b", buffering=0)
        self.addCleanup(f.close)
        f.write(data)
        return f

    def right(self, conn):
        """One call by each way; all are answered, and rightly."""
        for disk in (True, False):
            f = self.file(self.data, disk)
            answer = conn.descriptor("f32", TILED, f.fileno())
            self.assertIsNone(answer.status)
            self.assertEqual(self.wanted, answer.keys(), "a file on disk" if disk else "a memfd")
            f.close()
        answer = conn.stream("f32", TILED, self.data)
        self.assertIsNone(answer.status)
        self.assertEqual(self.wanted, answer.keys(), "a stream")

    def check_end(self, daemon, status=0):
        wait_for("everything given back", lambda: not any(daemon.busy_gauges().values()))
        daemon.check_end(self, daemon.stop(), status)

    def test_one_call_fails(self):
        """A failed copy, fold or stream is that job's own business: the CPU takes it over, the GPU goes on with others."""
        for faults in ("fail_copy=2", "fail_fold=2", "fail_fault=3", "lies_at=2", "fail_copy=5,polls=3"):
            with self.subTest(faults):
                daemon = self.start(faults)
                with daemon.connect() as conn:
                    self.right(conn)
                    info = conn.info()
                    self.assertEqual("fake", info["backend"])
                    self.assertGreater(info["counters"]["gpu_returned_total"], 0)
                    before = info["counters"]["gpu_bytes_total"]
                    self.right(conn)
                    self.assertEqual(3 * len(self.data), conn.info()["counters"]["gpu_bytes_total"] - before)
                self.check_end(daemon)

    def test_an_op_it_lacks(self):
        daemon = self.start("lacks=0xffffffff")
        with daemon.connect() as conn:
            self.right(conn)
            self.assertEqual(0, conn.info()["counters"]["gpu_bytes_total"])
        self.check_end(daemon)

    def test_nothing_can_be_pinned(self):
        daemon = self.start("fail_pin=1")
        with daemon.connect() as conn:
            self.right(conn)
            self.assertEqual(3 * len(self.data), conn.info()["counters"]["gpu_bytes_total"])
        self.check_end(daemon)

    def lost(self, faults, **options):
        daemon = self.start(faults, **options)
        with daemon.connect() as conn:
            self.right(conn)
            info = conn.info()
            self.assertEqual("cpu", info["backend"])
            self.assertIn("lost", info["backend_reason"])
            self.assertIn("lost", info["lanes"][1]["device"])
            self.assertEqual((0, 1), (info["counters"]["gpus"], info["counters"]["gpus_lost_total"]))
            self.right(conn)
        self.check_end(daemon)
        self.assertIn("lost", daemon.log())

    def test_the_device_is_lost(self):
        """At any moment: in a copy, in a fold, in a poll."""
        for at in (1, 2, 3, 5, 8, 13, 21):
            with self.subTest(at):
                self.lost("lose_at=%d" % at)
        self.lost("lose_at=9,polls=2", gpu_streams=1)

    def test_device_memory_goes_with_its_device(self):
        path = os.path.join(self.folder, "device")
        with open(path, "wb") as f:
            f.write(self.data)
        for faults in ("lose_at=1", "hang_at=1", "fail_fold=1", "fail_fault=1"):
            daemon = self.start(faults, gpu_timeout_ms=2000 if "hang" in faults else 60000)
            with daemon.connect() as conn:
                handle = path.encode().ljust(64, b"\0")
                self.assertIsInstance(conn.registered(conn.start_register(4, cuda_ipc_region(len(self.data), bytes(16), handle))), int)
                first, again = conn.region("f32", ["sum"], 4).status, conn.region("f32", ["sum"], 4).status
                self.assertIsNotNone(first, faults)
                if "fail" in faults:
                    self.assertIsNone(again, faults)
                else:
                    self.assertEqual((UNAVAILABLE, UNAVAILABLE), (first.code, again.code), faults)
                    self.assertIn("lost", again.message)
                self.right(conn)
            self.check_end(daemon)

    def test_a_driver_that_answers_after_it_was_given_up(self):
        """What it then says goes nowhere: whoever asked has been told that the device is lost."""
        path = os.path.join(self.folder, "device")
        with open(path, "wb") as f:
            f.write(self.data)
        daemon = self.start("late_import=1", gpu_timeout_ms=50)
        with daemon.connect() as conn:
            handle = path.encode().ljust(64, b"\0")
            status = conn.registered(conn.start_register(4, cuda_ipc_region(len(self.data), bytes(16), handle)))
            self.assertEqual(UNAVAILABLE, status.code, status)
            time.sleep(1)  # the driver returns meanwhile
            self.right(conn)
        self.check_end(daemon)

    def test_a_driver_that_hangs_at_start(self):
        """The daemon starts without its GPU, and ends although a thread is left in the driver; who needs the GPU is told at once."""
        for faults, words in (("hang_count=1", "has not said within gpu_start_timeout_ms, 200 ms"),
                              ("hang_open=1", "gpu_start_timeout_ms, 200 ms")):
            daemon = self.start(faults, backend="auto", gpu_start_timeout_ms=200)
            with daemon.connect() as conn:
                self.right(conn)
                info = conn.info()
                self.assertEqual(("cpu", 0), (info["backend"], info["counters"]["gpus"]))
                self.assertIn(words, info["backend_reason"])
            self.check_end(daemon)
            self.assertIn(words, daemon.log())
            status, log = run_to_its_end("--listen", "unix:%s/none.sock" % self.folder, "--backend", "cuda",
                                         "--gpu-start-timeout-ms", "200", env={"CURED_TEST_GPU": faults})
            self.assertEqual(69, status, log)
            self.assertIn("backend: cuda is asked for, and", log)
            self.assertIn(words, log)
        daemon = self.start("stuck_pin=1", backend="auto", gpu_timeout_ms=200)
        with daemon.connect() as conn:
            self.right(conn)
            self.assertEqual("cpu", conn.info()["backend"])
        self.check_end(daemon)
        self.assertIn("a call of its driver has not returned", daemon.log())

    def test_the_first_of_two_hangs_at_start(self):
        """The other one pins the slabs."""
        daemon = self.start("devices=2,stuck_pin=1", gpu_timeout_ms=2000)
        with daemon.connect() as conn:
            self.right(conn)
            info = conn.info()
            self.assertEqual(("fake", 1), (info["backend"], info["counters"]["gpus"]))
        self.check_end(daemon)
        self.assertIn("a call of its driver has not returned", daemon.log())
        self.assertNotIn("the slabs are not pinned", daemon.log())

    def test_kernels_go_with_their_device(self):
        for faults in ("lose_at=1", "lose_at=4", "lose_at=9,polls=2", "fail_copy=2"):
            daemon = self.start(faults)
            with daemon.connect() as conn:
                status = conn.stream("f32", ["sum"], self.data, kernel="v7_shuffle").status
                self.assertIsNotNone(status, faults)
                again = conn.stream("f32", ["sum"], self.data, kernel="v7_shuffle").status
                if "lose" in faults:
                    self.assertEqual(UNAVAILABLE, status.code, status.message)
                    self.assertIsNotNone(again)
                else:
                    self.assertIsNone(again)
                self.right(conn)
            self.check_end(daemon)

    def test_the_device_does_not_answer(self):
        self.lost("hang_at=1", gpu_timeout_ms=200)
        self.lost("hang_at=3", gpu_timeout_ms=200)

    def test_one_of_two_devices_is_lost(self):
        daemon = self.start("devices=2,lose_at=6")
        with daemon.connect() as conn:
            self.right(conn)
            self.right(conn)
            info = conn.info()
            self.assertEqual("fake", info["backend"])
            self.assertEqual((1, 1), (info["counters"]["gpus"], info["counters"]["gpus_lost_total"]))
        self.check_end(daemon)

    def test_exit_when_lost(self):
        for faults, options in (("lose_at=4", {}), ("hang_at=1", {"gpu_timeout_ms": 200})):
            daemon = self.start(faults, on_gpu_fault="exit", **options)
            conn = daemon.connect()
            self.addCleanup(conn.close)
            conn.start_descriptor("f32", TILED, self.file(self.data).fileno())
            daemon.check_end(self, daemon.wait(), 70)
            self.assertIn("on_gpu_fault", daemon.log())

    def test_stopping_with_work_under_way(self):
        """A second signal stops at once, whatever the GPU does."""
        for faults in ("polls=1000", "hang_at=1"):
            daemon = self.start(faults, gpu_timeout_ms=500)
            conn = daemon.connect()
            self.addCleanup(conn.close)
            conn.start_descriptor("f32", TILED, self.file(self.data).fileno())
            conn.ping()
            daemon.process.send_signal(signal.SIGTERM)
            daemon.check_end(self, daemon.stop())

    def test_a_file_is_cut_while_it_is_read(self):
        daemon = self.start("polls=20")
        with daemon.connect() as conn:
            lost = 0
            for left in (0, 1, 4096, self.SIZE // 2, self.SIZE - 1):
                f = self.file(self.data)
                stream = conn.start_descriptor("f32", ["sum", "count"], f.fileno(), 0, self.SIZE // 4, progress_ms=10)
                os.ftruncate(f.fileno(), left)
                answer = conn.wait(stream)
                if answer.status:
                    lost += answer.status.code == DATA_LOSS
                else:
                    self.assertEqual(self.SIZE // 4, answer.count)
                f.close()
            self.right(conn)
        self.check_end(daemon)

    def test_backend_without_a_gpu(self):
        for faults, words in (("devices=0", "the plan has no GPU"), ("fail_open=1", "does not open")):
            path = "unix:" + os.path.join(self.folder, "none.sock")
            status, err = run_to_its_end("--backend", "cuda", "--listen", path, env={"CURED_TEST_GPU": faults})
            self.assertEqual(69, status, err)
            self.assertIn(words, err)
            daemon = Daemon(self.folder, program=PROGRAM, env={"CURED_TEST_GPU": faults}, backend="auto")
            self.addCleanup(daemon.stop, signal.SIGKILL)
            with daemon.connect() as conn:
                info = conn.info()
                self.assertEqual("cpu", info["backend"])
                self.assertIn(words, info["backend_reason"])
                self.right(conn)
            self.check_end(daemon)


if __name__ == "__main__":
    main()
