"""test_gpu_axis: reductions along an axis of arrays in a GPU's memory, which its lane answers: right for every type and op, whatever becomes of
the client meanwhile, and in no more memory than was admitted. On the stand-in GPU, or a real one: see gpu_axis.
"""
import os
import random
import struct
import time

import test_axis
from cured_daemon import SANITIZE, main
from cured_wire import CANCEL, CANCELLED, DEADLINE_EXCEEDED, INPUTS, INVALID_ARGUMENT, OUT_OF_RANGE, RESOURCE_EXHAUSTED, SIZES, frame
from expected import any_nan, array_of, oracle, plain
from gpu_axis import OPTIONS, REAL, AxisTest, setUpModule  # noqa: F401


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
                    nan = any_nan(r, ops)
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
                ("i64", (4, 2, 1), 2, {4: big, 5: 1}, ["digest", "max", "sum"]), ("i64", (1, 2, 3), 1, {1: big, 4: big}, ["sum", "min"]),
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

    def test_a_status_for_each(self):
        """The CPU's answers and statuses: sums that may lack values are folded on the host, extrema of only NaNs on the GPU."""
        nan, big = float("nan"), 2**62
        for dtype, ops, shape, values in (
                ("i64", ["sum", "max"], (300, 2, 1), [big if k % 6 < 2 else k for k in range(600)]),
                ("i64", ["sum", "sumsq"], (1, 2, 300), [big if k % 7 == 0 else k for k in range(600)]),
                ("f32", ["min", "argmax", "sum"], (200, 3, 1), [nan if k % 9 < 3 else k for k in range(600)])):
            raw = struct.pack("<600%s" % {"i64": "q", "f32": "f"}[dtype], *values)
            region = self.put(raw)
            got = self.ask(dtype, ops, region, shape, nan=int(dtype == "f32"), statuses=True)
            want = self.conn.stream(dtype, ops, raw, axis=shape, nan=int(dtype == "f32"), statuses=True)
            self.assertIsNone(got.status)
            count = shape[0] * shape[2]
            self.assertTrue(any(result.status for result in want.results))
            for number in range(len(ops)):
                width = 4 if ops[number] == "min" else 8
                self.assertEqual(want.array(number, width, count), got.array(number, width, count))
                self.assertEqual(want.statuses_of(number, count), got.statuses_of(number, count))
                self.assertEqual((want.results[number].status, want.results[number].message),
                                 (got.results[number].status, got.results[number].message))

    def test_answers_into_shared_memory(self):
        """Of device memory, answered by the GPU and by the host: the lane's thread writes them into memory of the host."""
        for dtype, ops, shape in (("f32", ["sum", "argmax"], (3000, 40, 1)), ("f32", ["prod", "max"], (10, 100, 3)),
                                  ("i32", ["min", "mean"], (2, 300, 700)), ("f32", ["sum", "min"], (400000, 3, 1))):
            count, answers = shape[0] * shape[1] * shape[2], shape[0] * shape[2]
            raw = bytes(plain(dtype, count))
            region = self.put(raw)
            target = self.sealed(bytes(16 * answers + 1))
            self.conn.register(999, target.fileno(), writable=True)
            want = self.conn.stream(dtype, ops, raw, axis=shape)
            got = self.ask(dtype, ops, region, shape, outputs=[(0, 999, 8 * answers + 1), (1, 999, 0)])
            self.assertIsNone(got.status)
            self.assertEqual((want.keys(), []), (got.keys(), got.parts))
            for number, at in ((0, 8 * answers + 1), (1, 0)):
                width = SIZES[want.results[number].dtype]
                self.assertTrue(want.array(number, width, answers) == os.pread(target.fileno(), width * answers, at), (ops, number))
            self.assertIsNone(self.conn.unregister(999))
            self.assertIsNone(self.conn.unregister(region))

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
        for _ in range(20):  # what is answered is given back before the client knows
            self.assertIsNone(self.ask("u8", ["sum"], region, fits).status)

    def test_more_answers_than_any_memory(self):
        """Of many small blocks any number: they are made as they are taken."""
        region = self.put(bytes(2 << 20))
        self.assertIsNone(self.ask("u8", ["sum", "mean"], region, (2 << 20, 1, 1)).status)
        for shape in ((1, 1, 2**58), (2, 0, 2**57), (1, 2**20, 2**38)):
            status = self.ask("u8", ["sum", "max"] if shape[1] else ["max"], region, shape).status
            self.assert_sentence(status, INVALID_ARGUMENT)


if __name__ == "__main__":
    main()
