"""test_gpu_axis: reductions along an axis of arrays in a GPU's memory, which its lane answers: right for every type and op, whatever becomes of
the client meanwhile, and in no more memory than was admitted.

It runs cured-fake-gpu (tests/fake), or, with CURED_TEST_REAL_GPU set, the daemon itself on the machine's GPU, without the faults.
"""
import functools
import os
import random
import shutil
import signal
import struct
import tempfile
import time
import unittest

import cuda_memory
import test_axis
from cured_daemon import CURED, SANITIZE, Daemon, DaemonTest, main, need_binary, wait_for
from cured_wire import (CANCEL, CANCELLED, DATA_LOSS, DEADLINE_EXCEEDED, INPUTS, INTERNAL, INVALID_ARGUMENT, OUT_OF_RANGE, RESOURCE_EXHAUSTED,
                        UNAVAILABLE, cuda_descriptor_region, frame)
from expected import array_of, oracle, plain

REAL = bool(os.environ.get("CURED_TEST_REAL_GPU"))
PROGRAM = CURED if REAL else os.path.join(os.environ.get("CURED_TEST_DIR", ""), "cured-fake-gpu")
OPTIONS = {"backend": "auto", "gpu_chunk_bytes": 1 << 20, "gpu_streams": 3, "slabs": 16, "cpu_workers": 1, "gpu_timeout_ms": 60000}
gpu = None


def setUpModule():
    global gpu
    need_binary(PROGRAM)
    if not REAL:
        return
    gpu = cuda_memory.Gpu()
    folder = tempfile.mkdtemp(prefix="cured-it-")
    try:
        Daemon(folder, program=PROGRAM, backend="cuda").stop()
    except AssertionError as error:
        raise unittest.SkipTest("no CUDA device: %s" % str(error).splitlines()[-1]) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Stand:
    """Memory of the stand-in: a file with a head."""

    def __init__(self, data):
        self.size = len(data)
        self.file = os.fdopen(os.memfd_create("device"), "w+b", buffering=0)
        view = memoryview(b"fake-vmm" + struct.pack("<QQQ", 0, 0, self.size) + bytes(32) + bytes(data))
        while view.nbytes:
            view = view[self.file.write(view):]
        self.descriptor = self.file.fileno()

    def source(self):
        return cuda_descriptor_region(self.size)

    def free(self):
        self.file.close()


def device_memory(data, form="descriptor"):
    return cuda_memory.FORMS[form](gpu, data) if REAL else Stand(data)


@functools.lru_cache(maxsize=None)
def large(shape):
    return test_axis.AxisTest.large(None, shape)


class AxisTest(DaemonTest):
    PROGRAM = PROGRAM
    OPTIONS = OPTIONS
    check = test_axis.AxisTest.check

    def large(self, shape):
        return large(shape)

    @classmethod
    def setUpClass(cls):
        """What is made for the first device memory stays."""
        super().setUpClass()
        memory = device_memory(bytes(4096))
        with cls.daemon.connect() as c:
            assert c.registered(c.start_register(1, memory.source(), memory.descriptor)) == 4096, cls.daemon.log()
        memory.free()
        cls.daemon.hold_from_now()

    def setUp(self):
        self.conn = self.connect()
        self.next = 1

    def put(self, data, conn=None, form="descriptor"):
        """The number of a region in device memory that holds data."""
        memory = device_memory(data, form)
        self.addCleanup(memory.free)
        self.next += 1
        conn = conn or self.conn
        self.assertEqual(len(data), conn.registered(conn.start_register(self.next, memory.source(), memory.descriptor)))
        return self.next

    def ask(self, dtype, ops, region, shape, at=0, **options):
        return self.conn.region(dtype, ops, region, at, shape[0] * shape[1] * shape[2], axis=shape, **options)


class Answers(AxisTest):
    def test_every_type_and_op(self):
        r = random.Random(21)
        for dtype in INPUTS:
            integer = dtype in oracle.INTS
            for shape in test_axis.SHAPES:
                count = shape[0] * shape[1] * shape[2]
                raw = array_of(r, dtype, count)
                ops = [op for op in test_axis.ops_of(dtype) if not (integer and op in test_axis.TOTALS)]
                cases = [(ops, raw)]
                if integer:
                    cases.append((list(test_axis.TOTALS), test_axis.small(r, dtype, count)))
                for ops, raw in cases:
                    at = r.choice((0, 0, 1, 3, 8))
                    region = self.put(b"?" * at + raw)
                    nan = r.randrange(2)
                    answer = self.ask(dtype, ops, region, shape, at, nan=nan)
                    self.check(answer, dtype, ops, raw, shape, nan=nan)
                    self.assertIsNone(self.conn.unregister(region))

    def test_long_wide_and_many(self):
        ops = ("sum", "max", "argmax")
        for number, shape in enumerate(((2, 270000, 1), (3, 50001, 3), (1, 5, 70001), (2, 3, 50000), (150000, 3, 1), (60001, 2, 3),
                                        (300000, 1, 1))):
            raw, want = self.large(shape)
            region = self.put(raw, form=("handle", "pool", "descriptor")[number % 3])
            before = self.daemon.counters()["gpu_bytes_total"]
            answer = self.ask("i32", ops, region, shape)
            self.assertIsNone(answer.status)
            for number, width in enumerate((8, 4, 8)):
                self.assertEqual(want[number], answer.array(number, width, shape[0] * shape[2]), (shape, ops[number]))
            self.assertEqual(len(raw), self.daemon.counters()["gpu_bytes_total"] - before)
            self.assertIsNone(self.conn.unregister(region))

    def test_many_calls_at_once(self):
        shape = (1000, 7, 3)
        raw, want = self.large(shape)
        region = self.put(raw)
        streams = [self.conn.start_region("i32", ("sum", "max", "argmax"), region, axis=shape) for _ in range(30)]
        whole = [self.conn.start_region("i32", ["count"], region) for _ in range(30)]
        for stream in reversed(streams):
            answer = self.conn.wait(stream)
            self.assertIsNone(answer.status)
            self.assertEqual(want[2], answer.array(2, 8, 3000))
        for stream in whole:
            self.assertEqual(21000, int.from_bytes(self.conn.wait(stream).results[0].value, "little"))

    def test_nothing(self):
        region = self.put(bytes(24))
        for shape in ((3, 0, 2), (70000, 0, 1)):
            answer = self.ask("i32", ["sum", "count"], region, shape)
            self.assertIsNone(answer.status)
            self.assertEqual(bytes(8 * shape[0] * shape[2]), answer.array(0, 8, shape[0] * shape[2]))
        for shape in ((0, 3, 2), (2, 3, 0)):
            answer = self.ask("i32", ["sum", "max"], region, shape)
            self.assertEqual((None, 0, []), (answer.status, answer.count, answer.parts))

    def test_sums_that_do_not_fit(self):
        """The same sentence as the CPU's, with the value."""
        r = random.Random(5)
        big, wide = 2**63 - 1, 2**64 - 1
        for dtype, shape, at, values, ops in (
                ("i64", (4, 2, 1), 2, {4: big, 5: 1}, ["max", "sum"]), ("i64", (1, 2, 3), 1, {1: big, 4: big}, ["sum", "min"]),
                ("i64", (300, 500, 2), 401, {200 * 1000 + 1: -big, 200 * 1000 + 901: -big - 1}, ["count", "sum"]),
                ("u64", (2, 90000, 1), 1, {90000: wide, 179999: wide}, ["norm1"]), ("i32", (1, 3, 2), 0, {0: -2**31, 2: -2**31, 4: -2**31}, ["sumsq"])):
            count = shape[0] * shape[1] * shape[2]
            elements = [0 if ops == ["norm1"] or ops == ["sumsq"] else r.randint(-9, 0) for _ in range(count)]
            for i, value in values.items():
                elements[i] = value
            raw = struct.pack("<%d%s" % (count, {"i64": "q", "u64": "Q", "i32": "i"}[dtype]), *elements)
            options = {"result_dtype": "u64"} if dtype == "i32" else {}
            region = self.put(b"1" + raw)
            got = self.ask(dtype, ops, region, shape, 1, **options)
            want = self.conn.stream(dtype, ops, raw, axis=shape, **options)
            if want.status is None:
                self.check(got, dtype, ops, raw, shape, **options)
                continue
            self.assert_sentence(got.status, OUT_OF_RANGE, "output %d:" % at)
            self.assertEqual(want.status.message, got.status.message)
            if ops != ["sumsq"]:
                self.assertIsNone(self.ask(dtype, [op for op in ops if op != "max"], region, shape, 1, result_dtype="i128").status)
        self.assert_serves()

    def test_what_has_no_kernel(self):
        """Products of floats, on the stand-in: the lane brings them to the host. Of rows, of long ones that it does piece by piece, of
        columns, and of whole small blocks; beside others, and with answers that outgrow what may wait."""
        for shape in ((10, 100, 1), (2, 300001, 1), (1, 70001, 5), (1, 40, 20011), (3000, 3, 4)):
            count = shape[0] * shape[1] * shape[2]
            raw = bytes(plain("f32", count))
            region = self.put(b"123" + raw)
            before = self.daemon.counters()["gpu_bytes_total"]
            streams = [self.conn.start_region("f32", ["sum", "prod", "argmin"], region, 3, count, axis=shape) for _ in range(3)]
            beside = self.conn.region("f32", ["sum"], region, 3, count)
            self.assertIsNone(beside.status)
            wanted = self.conn.stream("f32", ["sum", "prod", "argmin"], raw, axis=shape)
            for stream in streams:
                answer = self.conn.wait(stream)
                self.assertIsNone(answer.status)
                for number in range(3):
                    self.assertEqual(wanted.array(number, 8, shape[0] * shape[2]), answer.array(number, 8, shape[0] * shape[2]), shape)
            if not REAL:
                self.assertEqual(len(raw), self.daemon.counters()["gpu_bytes_total"] - before)
            self.assertIsNone(self.conn.unregister(region))

    def test_requests_that_make_no_sense(self):
        region = self.put(bytes(24))
        for shape in ((2, 2, 1), (2, 3, 2), (2**63, 2, 1), (1, 2**62, 1)):
            self.assert_sentence(self.conn.region("f32", ["sum"], region, axis=shape).status, INVALID_ARGUMENT)


class AnswersNobodyTakes(AxisTest):
    """1 byte in, 8 out: the answers outgrow the window, the slabs and the reply buffers."""
    COUNT = 12 << 20

    def setUp(self):
        super().setUp()
        self.raw = bytes(range(256)) * (self.COUNT // 256)

    def start(self, c, **more):
        return c.start_region("u8", ["sum"], self.put(self.raw, c), axis=(self.COUNT, 1, 1), **more)

    def test_without_credit_the_job_waits(self):
        before = self.daemon.rss_bytes()
        c = self.conn
        stream = self.start(c)
        answer = c.answers[stream]
        answer.auto_credit = False
        c.until(lambda: answer.window == 0)
        raw, want = self.large((1000, 7, 3))
        others = self.connect()
        region = self.put(raw, others)
        for _ in range(20):
            other = others.region("i32", ("sum", "max", "argmax"), region, axis=(1000, 7, 3))
            self.assertEqual(want[0], other.array(0, 8, 3000))
        time.sleep(0.2)  # nothing more may come, however long one waits
        c.receive()
        self.assertEqual(0, answer.window)
        if not REAL:  # where the driver's own memory is counted too
            self.assertLess(self.daemon.rss_bytes() - before, (512 if SANITIZE else 96) << 20)
        c.grant(stream, 24)
        c.until(lambda: answer.window == 0)
        answer.auto_credit = True
        c.give_credit()
        self.assertIsNone(c.wait(stream).status)
        want = b"".join(struct.pack("<Q", v) for v in range(256)) * (self.COUNT // 256)
        self.assertTrue(want == answer.array(0, 8, self.COUNT))

    def test_cancel_and_leave_in_the_middle(self):
        for how in ("cancel", "leave", "deadline", "unregister"):
            c = self.daemon.connect()
            stream = self.start(c, **({"timeout_ms": 300} if how == "deadline" else {}))
            answer = c.answers[stream]
            answer.auto_credit = False
            c.until(lambda: answer.window == 0 or answer.over)  # a slow machine may meet the deadline first
            if how == "unregister":  # waits for the job, which waits for the client
                leaving = c.start_unregister(self.next)
                c.ping()
                self.assertFalse(c.answers[leaving].over)
                answer.auto_credit = True
                c.give_credit()
                self.assertIsNone(c.wait(stream).status)
                self.assertIsNone(c.wait(leaving).status)
            elif how != "leave":
                if how == "cancel":
                    c.send(frame(CANCEL, stream))
                self.assertEqual(CANCELLED if how == "cancel" else DEADLINE_EXCEEDED, c.wait(stream).status.code)
            c.close()
        self.conn.close()
        self.daemon.check_returned(self)

    def test_many_clients_that_leave(self):
        for step in range(6):
            c = self.daemon.connect()
            for _ in range(2):
                stream = self.start(c)
                c.answers[stream].auto_credit = False
            if step % 2:
                c.ping()
            c.close()
        self.conn.close()
        self.daemon.check_returned(self)


class Limits(AxisTest):
    OPTIONS = dict(OPTIONS, max_state_bytes_per_connection=16 << 20, max_state_bytes=20 << 20)

    def test_answers_of_one_block(self):
        """They are all made at once, so they are what is admitted: or too many ever, or now."""
        data = bytes(3 << 20)
        region = self.put(data)
        self.assert_sentence(self.ask("u8", ["sum"], region, (1, 1, 3 << 20)).status, INVALID_ARGUMENT, "axis", "max_state_bytes")
        fits = (1, 4, 3 << 18)
        answer = self.ask("u8", ["sum"], region, fits)
        self.assertIsNone(answer.status)
        self.assertEqual(bytes(8 * fits[2]), answer.array(0, 8, fits[2]))
        stream = self.conn.start_region("u8", ["sum"], region, axis=fits)
        self.conn.answers[stream].auto_credit = False
        again = self.ask("u8", ["sum"], region, fits)
        self.assert_sentence(again.status, RESOURCE_EXHAUSTED, "max_state_bytes_per_connection")
        other = self.connect()
        status = other.region("u8", ["sum"], self.put(data, other), axis=fits).status
        self.assert_sentence(status, RESOURCE_EXHAUSTED, "max_state_bytes")
        self.conn.answers[stream].auto_credit = True
        self.conn.give_credit()
        self.assertIsNone(self.conn.wait(stream).status)
        self.assertIsNone(self.ask("u8", ["sum"], region, fits).status)

    def test_more_answers_than_any_memory(self):
        """Of many small blocks any number: they are made as they are taken."""
        region = self.put(bytes(2 << 20))
        self.assertIsNone(self.ask("u8", ["sum", "mean"], region, (2 << 20, 1, 1)).status)
        for shape in ((1, 1, 2**58), (2, 0, 2**57), (1, 2**20, 2**38)):
            status = self.ask("u8", ["sum", "max"] if shape[1] else ["max"], region, shape).status
            self.assert_sentence(status, INVALID_ARGUMENT)


class Host:
    """Arrays in the host's memory, by every way in: whole blocks are the GPU's too."""
    OPS = ("sum", "max", "argmax")
    LARGE = ((150000, 3, 1), (2000, 100, 1), (500, 40, 11), (20, 60001, 1), (9, 333, 90), (2, 270000, 1), (1, 5, 70001))
    WHOLE = LARGE[1:5]  # whose answers are few for their input, and which are claimed in whole blocks where they lie in memory
    CUT = LARGE[3:]     # but not as they come in a stream

    def ways(self, dtype, ops, raw, shape, **options):
        yield "inline", lambda: self.conn.inline(dtype, ops, raw, axis=shape, **options)
        yield "stream", lambda: self.conn.stream(dtype, ops, raw, axis=shape, **options)
        yield "unknown length", lambda: self.conn.stream(dtype, ops, raw, known=False, chunks=(77777,), axis=shape, **options)
        for name, make in (("file", self.file), ("memfd", self.memfd), ("sealed", self.sealed)):
            f = make(b"xy" + raw)
            yield name, lambda d=f.fileno(): self.conn.descriptor(dtype, ops, d, 2, axis=shape, **options)
            self.next += 1
            self.assertEqual(len(raw) + 2, self.conn.register(self.next, f.fileno()))
            yield name + " that is registered", lambda: self.ask(dtype, ops, self.next, shape, 2, **options)
            self.assertIsNone(self.conn.unregister(self.next))
            f.close()

    def by_gpu(self):
        return self.daemon.counters()["gpu_bytes_total"]

    def test_every_type_and_op(self):
        r = random.Random(31)
        for dtype in INPUTS:
            for shape in ((5, 4, 1), (3, 5, 4), (1000, 3, 2)):
                raw = (test_axis.small if dtype in oracle.INTS else array_of)(r, dtype, shape[0] * shape[1] * shape[2])
                ops = [op for op in test_axis.ops_of(dtype) if shape[0] < 1000 or op in ("sum", "argmax", "count_nan")]
                for name, call in self.ways(dtype, ops, raw, shape):
                    if shape[0] < 1000 or name in ("stream", "memfd"):
                        self.check(call(), dtype, ops, raw, shape)

    def test_large(self):
        for shape in self.LARGE:
            raw, want = self.large(shape)
            few = shape in (self.LARGE[0], self.LARGE[4], self.LARGE[6])
            for name, call in self.ways("i32", self.OPS, raw, shape):
                if name == "inline" or (few and name not in ("stream", "file")):
                    continue
                before = self.by_gpu()
                answer = call()
                self.assertIsNone(answer.status, (shape, name))
                for number, width in enumerate((8, 4, 8)):
                    self.assertEqual(want[number], answer.array(number, width, shape[0] * shape[2]), (shape, name, number))
                self.check_share(shape, name, self.by_gpu() - before, len(raw))

    def test_sums_that_do_not_fit(self):
        raw = struct.pack("<200q", *[1] * 101, 2**63 - 1, *[0] * 98) * 100
        sentences = set()
        for name, call in self.ways("i64", ["sum"], raw, (200, 100, 1)):
            status = call().status
            self.assert_sentence(status, OUT_OF_RANGE, str(2**63))
            sentences.add(status.message.split(":", 1)[1])
        self.assertEqual(1, len(sentences))

    def test_a_file_that_is_cut(self):
        f = self.file(bytes(8 << 20))
        self.assertIsInstance(self.conn.register(7, f.fileno()), int)
        shape = (1 << 10, 1 << 13, 1)
        self.assertIsNone(self.ask("u8", ["max"], 7, shape).status)
        os.ftruncate(f.fileno(), 1 << 20)
        self.assert_sentence(self.ask("u8", ["max"], 7, shape).status, DATA_LOSS, "cut")
        self.assertIsNone(self.conn.unregister(7))

    def test_answers_nobody_takes(self):
        count = 6 << 20
        raw = bytes(range(256)) * (count // 256)
        before = self.daemon.rss_bytes()
        streams = []
        for make in (self.file, self.memfd):
            for _ in range(2):
                stream = self.conn.start_descriptor("u8", ["sum"], make(raw).fileno(), axis=(count, 1, 1))
                self.conn.answers[stream].auto_credit = False
                streams.append(stream)
        upload = self.conn.start_stream("u8", ["sum"], count, axis=(count, 1, 1))
        self.conn.answers[upload].auto_credit = False
        self.conn.grant(upload, 8 * count)
        for stream in streams:
            self.conn.until(lambda s=stream: self.conn.answers[s].window == 0)
        self.assert_serves()
        if not REAL:
            self.assertLess(self.daemon.rss_bytes() - before, (512 if SANITIZE else 160) << 20)
        self.conn.send_array(upload, raw, chunks=(1 << 18,))
        want = b"".join(struct.pack("<Q", v) for v in range(256)) * (count // 256)
        self.assertIsNone(self.conn.wait(upload).status)
        self.assertTrue(want == self.conn.answers[upload].array(0, 8, count))
        for stream in streams[1:]:
            answer = self.conn.answers[stream]
            answer.auto_credit = True
            self.conn.give_credit()
            self.assertIsNone(self.conn.wait(stream).status)
            self.assertTrue(want == answer.array(0, 8, count))
        self.conn.close()
        self.daemon.check_returned(self)


class HostBoth(Host, AxisTest):
    """Both lanes at once."""
    OPTIONS = dict(OPTIONS, gpu_min_bytes=1, cpu_workers=2)

    def check_share(self, shape, name, by_gpu, size):
        self.assertLessEqual(by_gpu, size, (shape, name))
        if shape not in self.WHOLE:
            self.assertEqual(0, by_gpu, (shape, name))

    def test_both_take_part(self):
        """Also where rows are longer than what a worker would claim without a GPU beside it."""
        for shape in ((2000, 500, 1), (40, 30000, 1)):
            raw, want = self.large(shape)
            f = self.sealed(raw)
            self.next += 1
            self.assertEqual(len(raw), self.conn.register(self.next, f.fileno()))

            def shared():
                before = self.by_gpu()
                answer = self.ask("i32", self.OPS, self.next, shape)
                self.assertEqual(want[2], answer.array(2, 8, shape[0] * shape[2]))
                return 0 < self.by_gpu() - before < len(raw)
            wait_for("a job that both lanes claimed from", shared)


class HostAlone(Host, AxisTest):
    """backend cuda: the CPU does only what is not whole, or may be cut."""
    OPTIONS = dict(OPTIONS, backend="cuda")

    def check_share(self, shape, name, by_gpu, size):
        lies = name == "file" or name.endswith("registered")
        wanted = shape not in self.CUT or (shape in self.WHOLE and lies)
        self.assertEqual(size if wanted else 0, by_gpu, (shape, name))


@unittest.skipIf(REAL, "faults are for the stand-in device")
class Faults(unittest.TestCase):
    """One daemon a fault: reductions along an axis that are under way when it comes."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self, faults, **options):
        daemon = Daemon(self.folder, program=PROGRAM, env={"CURED_TEST_GPU": faults}, **dict(OPTIONS, **options))
        self.addCleanup(daemon.stop, signal.SIGKILL)
        return daemon

    def run_all(self, daemon, shape, raw, ops=("sum",)):
        """The statuses of some calls at once, and of one afterwards."""
        memory = Stand(raw)
        self.addCleanup(memory.free)
        with daemon.connect() as c:
            self.assertEqual(len(raw), c.registered(c.start_register(1, memory.source(), memory.descriptor)))
            streams = [c.start_region("i64", ops, 1, axis=shape) for _ in range(4)]
            first = [c.wait(stream).status for stream in streams]
            after = c.region("i64", ops, 1, axis=shape).status
            other = c.stream("i64", ops, raw, axis=shape).status
            return first, after, other

    def test_one_call_fails(self):
        for faults in ("fail_fold=2", "fail_fault=3,polls=4"):
            daemon = self.start(faults)
            first, after, other = self.run_all(daemon, (3000, 7, 1), bytes(8 * 21000))
            self.assertEqual(1, sum(status is not None for status in first), faults)
            self.assertEqual((None, None), (after, other))
            daemon.check_end(self, daemon.stop())

    def test_the_device_is_lost(self):
        for faults in ("lose_at=1", "lose_at=2", "lose_at=7,polls=5", "hang_at=1", "hang_at=3"):
            daemon = self.start(faults, gpu_timeout_ms=300 if "hang" in faults else 60000)
            first, after, other = self.run_all(daemon, (3000, 7, 1), bytes(8 * 21000))
            self.assertIn(UNAVAILABLE, [status and status.code for status in first], faults)
            self.assertEqual(UNAVAILABLE, after.code)
            self.assertIn("lost", after.message)
            self.assertIsNone(other)
            daemon.check_end(self, daemon.stop())

    def test_the_device_is_lost_while_the_client_takes_nothing(self):
        """The job waits for credit and nothing of it is under way: it ends when the client takes answers again."""
        count = 2 << 20
        memory = Stand(bytes(count))
        self.addCleanup(memory.free)
        daemon = self.start("lose_at=100", backend="cuda")
        with daemon.connect() as c:
            self.assertEqual(count, c.registered(c.start_register(1, memory.source(), memory.descriptor)))
            stream = c.start_region("u8", ["sum"], 1, axis=(count, 1, 1))
            answer = c.answers[stream]
            answer.auto_credit = False
            c.until(lambda: answer.window == 0)
            # As many as were sent wait: 8 bytes for one.
            wait_for("a job that pauses", lambda: daemon.counters()["gpu_bytes_total"] == 2 * (4 << 20) // 8)
            while not daemon.counters()["gpus_lost_total"]:
                self.assertIsNone(c.stream("i64", ["sum"], bytes(1 << 20)).status)
            self.assertFalse(answer.over)
            answer.auto_credit = True
            c.give_credit()
            self.assert_lost(c.wait(stream).status)
            self.assertIsNone(c.unregister(1))
        wait_for("everything given back", lambda: not any(
            count for name, count in daemon.busy_gauges().items() if name != "connections"))
        daemon.check_end(self, daemon.stop())

    def assert_lost(self, status):
        self.assertEqual(UNAVAILABLE, status.code)
        self.assertIn("lost", status.message)

    def test_host_memory(self):
        """Whatever becomes of the GPU: the CPU goes on, and no answer is sent twice or not at all."""
        r = random.Random(9)
        raw = r.randbytes(400 * 3000)
        want = b"".join(max(raw[400 * i:400 * i + 400]).to_bytes(1, "little") for i in range(3000))
        for faults in ("fail_copy=2", "fail_fold=2", "fail_fault=3", "lose_at=1", "lose_at=4", "lose_at=9,polls=3", "hang_at=2", "lacks=0xffffffff"):
            daemon = self.start(faults, backend="cuda", gpu_timeout_ms=300 if "hang" in faults else 60000)
            with daemon.connect() as c, tempfile.TemporaryFile(dir=self.folder) as f:
                f.write(raw)
                f.flush()
                for _ in range(2):
                    streams = [c.start_descriptor("u8", ["max"], f.fileno(), axis=(3000, 400, 1)) for _ in range(4)]
                    for stream in streams:
                        answer = c.wait(stream)
                        self.assertIsNone(answer.status, faults)
                        self.assertEqual(want, answer.array(0, 1, 3000), faults)
            daemon.check_end(self, daemon.stop())

    def test_while_an_integer_is_looked_at(self):
        """The sum that does not fit is fetched piece by piece, when the copy fails or the device goes."""
        raw = struct.pack("<q", 2**63 - 1) * 400000
        for faults in ("lose_at=3", "lose_at=5", "fail_fault=2", "fail_fault=3,polls=2"):
            daemon = self.start(faults)
            first, after, other = self.run_all(daemon, (1, 400000, 1), raw)
            codes = {status.code for status in first} - {OUT_OF_RANGE, INTERNAL}  # INTERNAL: the poll that fails
            self.assertEqual({UNAVAILABLE} if "lose" in faults else set(), codes, faults)
            self.assertEqual(UNAVAILABLE if "lose" in faults else OUT_OF_RANGE, after.code, faults)
            self.assertEqual(OUT_OF_RANGE, other.code)
            daemon.check_end(self, daemon.stop())

    def test_what_the_lane_folds_itself(self):
        """When the device is lost, when a copy fails, and when nobody wants it any more."""
        raw = struct.pack("<d", 1.25) * 900000
        shape = (3, 300000, 1)
        for faults in ("lose_at=3", "lose_at=6,polls=3", "fail_fault=4", "polls=30"):
            daemon = self.start(faults)
            memory = Stand(raw)
            self.addCleanup(memory.free)
            with daemon.connect() as c:
                self.assertEqual(len(raw), c.registered(c.start_register(1, memory.source(), memory.descriptor)))
                streams = [c.start_region("f64", ["prod"], 1, axis=shape) for _ in range(3)]
                if faults == "polls=30":
                    c.send(frame(CANCEL, streams[1]))
                codes = [status and status.code for status in (c.wait(stream).status for stream in streams)]
                if "lose" in faults:
                    self.assertEqual({UNAVAILABLE}, set(codes))
                elif "fail" in faults:
                    self.assertEqual([INTERNAL], [code for code in codes if code])
                else:
                    self.assertEqual([None, CANCELLED, None], codes)
            wait_for("everything given back", lambda d=daemon: not any(
                count for name, count in d.busy_gauges().items() if name != "connections"))
            daemon.check_end(self, daemon.stop())

    def test_events(self):
        """Jobs wait for their region's event, those of the lane's own too; one whose event fails is nobody else's matter."""
        raw = struct.pack("<d", 1.25) * 200000
        shape = (2, 100000, 1)
        daemon = self.start("polls=40")
        paths = [os.path.join(self.folder, name) for name in ("waits", "fails")]
        with daemon.connect() as c:
            memories = [Stand(raw) for _ in range(3)]
            for number, memory in enumerate(memories):
                self.addCleanup(memory.free)
                event = b""
                if number:
                    open(paths[number - 1], "wb").close()
                    event = paths[number - 1].encode().ljust(64, b"\0")
                source = cuda_descriptor_region(memory.size, event=event)
                self.assertEqual(len(raw), c.registered(c.start_register(number + 1, source, memory.descriptor)))
            os.unlink(paths[1])
            for op in ("prod", "sum"):
                waits = c.start_region("f64", [op], 2, axis=shape)
                for turn in range(6):
                    first = [c.start_region("f64", [op], 1, axis=shape) for _ in range(2)]
                    fails = c.start_region("f64", [op], 3, axis=shape)
                    plain_sum = c.start_region("f64", ["sum"], 1)
                    self.assertEqual(INVALID_ARGUMENT, c.wait(fails).status.code)
                    for stream in (*first, plain_sum):
                        self.assertIsNone(c.wait(stream).status)
                self.assertFalse(c.answers[waits].over)
                with open(paths[0], "wb") as f:
                    f.write(b"1")
                self.assertIsNone(c.wait(waits).status)
                open(paths[0], "wb").close()
        daemon.check_end(self, daemon.stop())

    def test_cancelled_while_an_integer_is_looked_at(self):
        raw = struct.pack("<q", 2**63 - 1) * 4000000
        daemon = self.start("polls=50")
        memory = Stand(raw)
        self.addCleanup(memory.free)
        with daemon.connect() as c:
            self.assertEqual(len(raw), c.registered(c.start_register(1, memory.source(), memory.descriptor)))
            for wait in (0, 0.01, 0.05):
                stream = c.start_region("i64", ["sum"], 1, axis=(1, 4000000, 1))
                time.sleep(wait)
                c.send(frame(CANCEL, stream))
                self.assertIn(c.wait(stream).status.code, (CANCELLED, OUT_OF_RANGE))
        wait_for("everything given back", lambda: not any(
            count for name, count in daemon.busy_gauges().items() if name != "connections"))
        daemon.check_end(self, daemon.stop())


if __name__ == "__main__":
    main()
