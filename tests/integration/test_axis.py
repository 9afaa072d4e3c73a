#!/usr/bin/env python3
"""Reductions along an axis: every answer equal to the oracle's on its own elements, by every way of input; answers that nobody
takes, calls that are ended in the middle, and requests that make no sense.
"""
import random
import struct
import time

from cured_daemon import SANITIZE, DaemonTest, main, wait_for
from cured_wire import CANCEL, CANCELLED, CREDIT, INPUTS, INVALID_ARGUMENT, OPS, OUT_OF_RANGE, SIZES, credit_message, frame
from expected import array_of, expect, ops_table, oracle

SHAPES = ((1, 1, 1), (1, 7, 1), (5, 4, 1), (1, 6, 9), (3, 5, 4), (2, 1, 6), (40, 3, 1), (1, 3, 70))
TOTALS = tuple(ops_table.EXACT)  # integers: as i64 or u64, which small elements keep within bounds
EXTREMA = ("min", "max", "argmin", "argmax", "ptp")


def ops_of(dtype):
    """Those that the oracle answers exactly."""
    if dtype in oracle.INTS:
        return list(OPS)
    return [op for op in OPS if op != "prod" and not op.startswith("bit_")]


def elements(raw, dtype, shape, o, i):
    outer, n, inner = shape
    size = SIZES[dtype]
    at = ((o * n + k) * inner + i for k in range(n))
    return b"".join(raw[a * size:a * size + size] for a in at)


def small(r, dtype, count):
    size, signed = oracle.INTS[dtype]
    low, high = (0, 1) if dtype == "bool" else (-9, 9) if signed else (0, 9)
    return b"".join(r.randint(low, high).to_bytes(size, "little", signed=signed) for _ in range(count))


def want_array(op, dtype, raw, shape, **options):
    """(dtype, bytes) of an op's answers."""
    answers = []
    for o in range(shape[0]):
        for i in range(shape[2]):
            piece = elements(raw, dtype, shape, o, i)
            key = expect(op, dtype, piece, **options)
            if key[1]:
                assert op in EXTREMA and options.get("nan") == 1, key  # of NaNs alone, skipped
                kind = "f64" if op == "ptp" else dtype
                nan = oracle.pack(kind, oracle.nan_bits(kind))
                answers.append(("u64", b"\xff" * 8) if op.startswith("arg") else (kind, nan))
            else:
                answers.append((key[2], bytes.fromhex(key[3])))
    kinds = {kind for kind, _ in answers}
    assert len(kinds) == 1, (op, kinds)
    return kinds.pop(), b"".join(value for _, value in answers)


class AxisTest(DaemonTest):
    OPTIONS = {"cpu_workers": 2, "slabs": 8, "max_answer_bytes": 1 << 62}

    def check(self, answer, dtype, ops, raw, shape, **options):
        self.assertIsNone(answer.status, (dtype, ops, shape, options))
        self.assertEqual([r.op for r in answer.results], list(ops))
        self.assertEqual(shape[0] * shape[1] * shape[2], answer.count)
        for number, op in enumerate(ops):
            result = answer.results[number]
            kind, values = want_array(op, dtype, raw, shape, **options)
            self.assertEqual((result.status, result.dtype, result.value), (0, kind, b""), (op, dtype))
            width = {"i128": 16, "digest": 24}.get(kind) or SIZES[kind]
            got = answer.array(number, width, shape[0] * shape[2])
            self.assertEqual(values.hex(), got.hex(), (op, dtype, shape, options))

    def test_every_type_and_op(self):
        c = self.connect()
        r = random.Random(11)
        for dtype in INPUTS:
            for shape in SHAPES:
                count = shape[0] * shape[1] * shape[2]
                integer = dtype in oracle.INTS
                raw = array_of(r, dtype, count)
                ops = [op for op in ops_of(dtype) if not (integer and op in TOTALS)]
                r.shuffle(ops)
                nan = r.randrange(2)
                if nan:
                    ops = [op for op in ops if op not in ops_table.WHOLE]
                way = r.randrange(3)
                if way == 0:
                    answer = c.inline(dtype, ops, raw, axis=shape, nan=nan)
                elif way == 1:
                    answer = c.stream(dtype, ops, raw, known=r.random() < 0.5, chunks=(r.randint(1, 99),), axis=shape, nan=nan)
                else:
                    answer = c.descriptor(dtype, ops, self.memfd(b"abc" + raw).fileno(), 3, count, axis=shape, nan=nan)
                self.check(answer, dtype, ops, raw, shape, nan=nan)
                if integer:
                    raw = small(r, dtype, count)
                    self.check(c.inline(dtype, TOTALS, raw, axis=shape), dtype, TOTALS, raw, shape)

    def test_options(self):
        c = self.connect()
        r = random.Random(12)
        shape = (3, 6, 5)
        for dtype in ("i8", "i64", "u64", "f16", "f64"):
            raw = array_of(r, dtype, 90)
            for op, options in (("sum", {"result_dtype": "f32"}), ("mean", {"result_dtype": "f16"}), ("var", {"ddof": 1}),
                                ("std", {"ddof": 6}), ("norm2", {"result_dtype": "bf16"})):
                self.check(c.inline(dtype, [op], raw, axis=shape, **options), dtype, [op], raw, shape, **options)
            if dtype in oracle.INTS:
                self.check(c.inline(dtype, ["sum"], raw, axis=shape, result_dtype="i128"), dtype, ["sum"], raw, shape,
                           result_dtype="i128")
                self.check(c.inline(dtype, ["prod"], raw, axis=shape, overflow=1), dtype, ["prod"], raw, shape, overflow=1)

    def test_rows_of_nans(self):
        c = self.connect()
        one, nan = struct.pack("<f", 1), struct.pack("<f", float("nan"))
        raw = nan * 3 + one + nan + one + one * 3 + nan * 3
        ops = [op for op in ops_of("f32") if op not in ops_table.WHOLE]
        for shape in ((4, 3, 1), (1, 3, 4)):
            for policy in (0, 1):
                self.check(c.inline("f32", ops, raw, axis=shape, nan=policy), "f32", ops, raw, shape, nan=policy)

    def test_nothing(self):
        c = self.connect()
        for dtype in ("i32", "u8", "f64"):
            ops = [op for op in ops_of(dtype) if op not in EXTREMA]
            for shape in ((3, 0, 2), (1, 0, 1), (70000, 0, 1)):
                answer = c.inline(dtype, ops, b"", axis=shape)
                self.assertIsNone(answer.status)
                for number, op in enumerate(ops):
                    value = bytes.fromhex(expect(op, dtype, b"")[3])
                    got = answer.array(number, len(value), shape[0] * shape[2])
                    self.assertEqual(value * (shape[0] * shape[2]), got, op)
            for op in EXTREMA:
                answer = c.inline(dtype, ["count", op], b"", axis=(3, 0, 2))
                self.assert_sentence(answer.status, INVALID_ARGUMENT, op)
                self.assertEqual([], answer.parts)
            for shape in ((0, 3, 2), (2, 3, 0), (0, 0, 0), (2**40, 2**40, 0)):
                answer = c.inline(dtype, list(EXTREMA) + ["sum"], b"", axis=shape)
                self.assertIsNone(answer.status, shape)
                self.assertEqual(([], len(EXTREMA) + 1, 0), (answer.parts, len(answer.results), answer.count))

    def large(self, shape):
        """i32 elements as bytes, and (sums, maxima, argmaxima) by plain Python."""
        outer, n, inner = shape
        r = random.Random(repr(shape))
        values = [r.randint(-2**31, 2**31 - 1) for _ in range(outer * n * inner)]
        sums, high, at = [], [], []
        for o in range(outer):
            for i in range(inner):
                row = values[o * n * inner + i:(o + 1) * n * inner:inner]
                sums.append(sum(row))
                high.append(max(row))
                at.append(row.index(high[-1]))
        count = outer * inner
        return struct.pack("<%di" % len(values), *values), [struct.pack("<%dq" % count, *sums),
                                                            struct.pack("<%di" % count, *high),
                                                            struct.pack("<%dQ" % count, *at)]

    def test_long_wide_and_many(self):
        c = self.connect()
        ops = ("sum", "max", "argmax")
        for shape in ((2, 300000, 1), (3, 100001, 3), (1, 5, 70001), (2, 3, 50000), (150000, 3, 1), (60001, 2, 3),
                      (300000, 1, 1), (7, 40000, 2)):
            raw, want = self.large(shape)
            for answer in (c.stream("i32", ops, raw, axis=shape), c.stream("i32", ops, raw, known=False, chunks=(99991, 4096),
                                                                           axis=shape),
                           c.descriptor("i32", ops, self.file(b"?" + raw).fileno(), 1, axis=shape)):
                self.assertIsNone(answer.status)
                for number, width in enumerate((8, 4, 8)):
                    self.assertEqual(want[number], answer.array(number, width, shape[0] * shape[2]), (shape, ops[number]))

    def test_many_calls_at_once(self):
        c = self.connect()
        raw, want = self.large((1000, 7, 3))
        streams = [c.start_inline("i32", ("sum", "max", "argmax"), raw, axis=(1000, 7, 3)) for _ in range(40)]
        for stream in reversed(streams):
            answer = c.wait(stream)
            self.assertIsNone(answer.status)
            self.assertEqual(want[2], answer.array(2, 8, 3000))

    def test_a_sum_that_does_not_fit(self):
        c = self.connect()
        big = struct.pack("<q", 2**63 - 1)
        one = struct.pack("<q", 1)
        for shape, raw, number in (((4, 2, 1), one * 4 + big + one + one * 2, 2), ((1, 2, 3), one + big + one * 4, 1)):
            for way in (lambda **o: c.inline("i64", ["max", "sum"], raw, axis=shape, **o),
                        lambda **o: c.descriptor("i64", ["max", "sum"], self.memfd(raw).fileno(), axis=shape, **o)):
                self.assert_sentence(way().status, OUT_OF_RANGE, "output %d" % number, str(2**63))
                self.assertIsNone(way(result_dtype="i128").status)
        self.assert_serves()

    def test_more_columns_than_any_memory(self):
        """The state of so many wraps around 2^64 to next to nothing, for strips of 64·k bytes. Its length is not said before."""
        c = self.connect()
        for k in range(300, 2500, 1):
            inner = 256 * ((1 << 64) // (64 * k) + 1)
            stream = c.start_stream("f64", ["sum"], None, axis=(1, 1, inner))
            c.send_data(stream, bytes(8))
            self.assert_sentence(c.wait(stream).status, INVALID_ARGUMENT, "axis", "max_state_bytes")
        self.assert_serves()

    def test_more_columns_than_any_memory_and_answers_beyond_2_to_64(self):
        """Both wrap: the state to next to nothing, and the answers' bytes, with what waits beside them."""
        c = self.connect()
        ops = [op for op in ops_of("f32") if op not in ("prod", "bit_and", "bit_or", "bit_xor")]  # 110 bytes of answers a column
        tried = 0
        for k in range(1000, 2500):
            for times in range(1, 64):
                inner = 256 * ((times << 64) // (64 * k) + 1)
                if (1 << 64) // 100 < inner <= 1 << 58:
                    stream = c.start_stream("f32", ops, None, axis=(1, 1, inner))
                    c.send_data(stream, bytes(8))
                    self.assert_sentence(c.wait(stream).status, INVALID_ARGUMENT, "axis", "max_answer_bytes")
                    tried += 1
                    break
        self.assertGreater(tried, 1000)
        self.assert_serves()

    def test_more_than_the_shape_has(self):
        """Told with the first byte too many, whether or not the length was said; also of shapes that have no elements."""
        c = self.connect()
        for shape, first in (((1, 4, 1), 16), ((2, 3, 5), 119), ((0, 1, 1), 0), ((1, 0, 1), 0), ((3, 0, 2), 0), ((0, 2**63, 2), 0),
                             ((0, 2**62, 3), 0), ((1, 0, 2**57), 0), ((0, 0, 0), 0), ((2**63, 2**63, 0), 0), ((0, 1 << 20, 1), 0)):
            for op in ("sum", "prod"):
                stream = c.start_stream("f32", [op], None, axis=shape)
                if first:
                    c.send_data(stream, bytes(first))
                for size in (4, 1 << 18):
                    c.send_data(stream, bytes(size))
                    if c.answers[stream].over:
                        break
                answer = c.wait(stream)
                self.assert_sentence(answer.status, INVALID_ARGUMENT, "axis", str(shape[0] * shape[1] * shape[2]))
                self.assertEqual([], answer.parts)
        self.assert_serves()

    def test_requests_that_make_no_sense(self):
        c = self.connect()
        raw = bytes(24)
        for shape, size in (((2, 2, 1), 24), ((2, 3, 2), 24), ((0, 1, 1), 24), ((1, 6, 1), 0)):
            answer = c.inline("f32", ["sum"], raw[:size], axis=shape)
            self.assert_sentence(answer.status, INVALID_ARGUMENT, "axis")
            answer = c.stream("f32", ["sum"], raw[:size], known=False, axis=shape)
            self.assert_sentence(answer.status, INVALID_ARGUMENT, "axis")
            answer = c.descriptor("f32", ["sum"], self.memfd(raw[:size]).fileno(), axis=shape)
            self.assert_sentence(answer.status, INVALID_ARGUMENT)
        for shape in ((2**63, 2, 1), (2**32, 1, 2**32), (1, 2**63, 1), (2**64 - 1, 2**64 - 1, 2**64 - 1)):
            self.assert_sentence(c.inline("f32", ["sum"], b"", axis=shape).status, INVALID_ARGUMENT, "large")
        self.assert_sentence(c.inline("f32", ["sum"], raw, axis=(2, 3, 1), first=1).status, INVALID_ARGUMENT, "first")
        self.assert_sentence(c.inline("f32", ["sum"], raw, axis=(2, 3, 1), partial=True).status, INVALID_ARGUMENT, "partial")
        self.assert_sentence(c.inline("f32", ["bit_or"], raw, axis=(2, 3, 1)).status, INVALID_ARGUMENT, "bit_or")
        self.assert_sentence(c.inline("i32", ["sum"], raw, axis=(2, 3, 1), result_dtype="int").status, INVALID_ARGUMENT)


class AnswersNobodyTakes(DaemonTest):
    """1 byte in, 8 out: the answers outgrow the window, the slabs and the reply buffers."""

    OPTIONS = {"cpu_workers": 2, "slabs": 6}
    COUNT = 12 << 20

    def start(self, c, **more):
        raw = bytes(range(256)) * (self.COUNT // 256)
        f = self.memfd(raw)
        return c.start_descriptor("u8", ["sum"], f.fileno(), axis=(self.COUNT, 1, 1), **more)

    def test_without_credit_the_job_waits(self):
        before = self.daemon.rss_bytes()
        c = self.connect()
        stream = self.start(c)
        answer = c.answers[stream]
        answer.auto_credit = False
        c.until(lambda: answer.window == 0)
        self.assert_serves()
        time.sleep(0.2)  # nothing more may come, however long one waits
        c.receive()
        self.assertEqual(0, answer.window)
        self.assertLess(self.daemon.rss_bytes() - before, (512 if SANITIZE else 64) << 20)
        c.grant(stream, 24)
        c.until(lambda: answer.window == 0)
        answer.auto_credit = True
        c.give_credit()
        self.assertIsNone(c.wait(stream).status)
        want = b"".join(struct.pack("<Q", v) for v in range(256)) * (self.COUNT // 256)
        self.assertTrue(want == answer.array(0, 8, self.COUNT))

    def test_a_client_that_reads_nothing(self):
        before = self.daemon.rss_bytes()
        c = self.connect()
        stream = self.start(c)
        for _ in range(3):  # more than a counter holds
            c.grant(stream, 2**64 - 1)
        wait_for("a job", lambda: self.daemon.counters()["jobs"] > 0)
        for _ in range(20):
            self.assert_serves()
        time.sleep(0.2)
        self.assert_serves()
        self.assertLess(self.daemon.rss_bytes() - before, (512 if SANITIZE else 64) << 20)
        c.close()
        self.daemon.check_returned(self)

    def test_cancel_and_leave_in_the_middle(self):
        for how in ("cancel", "leave", "deadline"):
            c = self.connect()
            stream = self.start(c, **({"timeout_ms": 300} if how == "deadline" else {}))
            answer = c.answers[stream]
            answer.auto_credit = False
            c.until(lambda: answer.window == 0 or answer.over)  # a slow machine may meet the deadline first
            if how == "leave":
                c.close()
            else:
                if how == "cancel":
                    c.send(frame(CANCEL, stream))
                self.assertEqual(CANCELLED if how == "cancel" else 4, c.wait(stream).status.code)
                c.send(frame(CREDIT, stream, credit_message(1 << 20)))  # late: dropped
                c.ping()
                c.close()
            self.daemon.check_returned(self)

    def test_credit_before_the_array(self):
        """All of it may be granted before the first DATA, so that no CREDIT has to wait behind DATA."""
        c = self.connect()
        n = 1 << 20
        stream = c.start_stream("u8", ["sum"], n, axis=(n, 1, 1))
        answer = c.answers[stream]
        answer.auto_credit = False
        c.grant(stream, 8 * n - (4 << 20))
        c.send_array(stream, bytes(n))
        self.assertIsNone(c.wait(stream).status)
        self.assertEqual(bytes(8 * n), answer.array(0, 8, n))

    def test_uploads_that_grow(self):
        """A client that uploads and takes answers at the same time, with everybody's slabs in play."""
        want = b"".join(struct.pack("<Q", v) for v in range(256)) * (self.COUNT // 256)
        connections = [self.connect() for _ in range(3)]
        raw = bytes(range(256)) * (self.COUNT // 256)
        for c in connections:
            stream = c.start_stream("u8", ["sum"], self.COUNT, axis=(self.COUNT, 1, 1))
            c.grant(stream, 8 * self.COUNT)
            c.answers[stream].auto_credit = False
            c.send_array(stream, raw, chunks=(1 << 18,))
            self.assertIsNone(c.wait(stream).status)
            self.assertTrue(want == c.answers[stream].array(0, 8, self.COUNT))

    def test_uploads_that_grow_with_late_credit(self):
        c = self.connect()
        raw = bytes(range(256)) * (self.COUNT // 256)
        answer = c.stream("u8", ["sum"], raw, chunks=(1 << 18,), axis=(self.COUNT, 1, 1))
        self.assertIsNone(answer.status)
        want = b"".join(struct.pack("<Q", v) for v in range(256)) * (self.COUNT // 256)
        self.assertTrue(want == answer.array(0, 8, self.COUNT))

    def stalled_upload(self, c):
        """(stream, bytes sent): the client has sent what it may, and taken what it must."""
        stream = c.start_stream("u8", ["sum"], self.COUNT, axis=(self.COUNT, 1, 1))
        answer = c.answers[stream]
        answer.auto_credit = False
        sent = 0
        while c.credit[stream] >= 1 << 18:
            c.send_data(stream, bytes(1 << 18))
            sent += 1 << 18
            if c.credit[stream] < 1 << 18:
                c.until(lambda: answer.window == 0)
                c.ping()
        return stream, sent

    def test_an_upload_that_takes_nothing_leaves_slabs(self):
        """Its job waits, and what it has sent keeps some slabs; others still upload."""
        c = self.connect()
        stream, sent = self.stalled_upload(c)
        self.assertLess(sent, 8 << 20)
        with self.daemon.connect() as other:
            for _ in range(3):
                reply = other.stream("u8", ["sum"], bytes([1]) * (5 << 20))
                self.assertEqual((5 << 20).to_bytes(8, "little"), reply.results[0].value)
        answer = c.answers[stream]
        answer.auto_credit = True
        while sent < self.COUNT:
            c.send_data(stream, bytes(1 << 18), end=sent + (1 << 18) == self.COUNT)
            sent += 1 << 18
        self.assertIsNone(c.wait(stream).status)
        self.assertEqual(bytes(8 * self.COUNT), answer.array(0, 8, self.COUNT))

    def test_stalled_answers_hold_no_slab(self):
        """A slab never waits for a client: neither files nor uploads in small pieces keep one while answers are not taken."""
        c = self.connect()
        for _ in range(2):
            stream = self.start(c)
            c.answers[stream].auto_credit = False
            c.until(lambda: c.answers[stream].window == 0)
        stream, _ = self.stalled_upload(c)
        up = c.start_stream("u8", ["sum"], self.COUNT, axis=(self.COUNT, 1, 1))
        c.answers[up].auto_credit = False
        for _ in range(24):
            c.send_data(up, bytes(1 << 17))
            time.sleep(0.015)  # longer than a slab may idle
        wait_for("all slabs free", lambda: self.daemon.gauges()["slabs_used"] == 0)
        self.assert_serves()
        c.close()
        self.daemon.check_returned(self)

    def test_an_answer_taken_in_part_holds_no_slab(self):
        """What was sent of an output does not count before all of it is: what comes then waits outside of slabs."""
        c = self.connect()
        stream = c.start_stream("u8", ["sum"], self.COUNT, axis=(self.COUNT, 1, 1))
        answer = c.answers[stream]
        answer.auto_credit = False
        c.grant(stream, 200000)  # the window ends within an output
        window, sent = answer.window, 0
        while sent < (window + (4 << 20)) // 8:  # 4 MiB of answers may wait
            now = min((window + (4 << 20)) // 8 - sent, 1 << 15)
            c.send_data(stream, bytes(now))
            sent += now
            c.until(lambda: answer.window == max(0, window - 8 * sent))
        wait_for("all slabs free", lambda: self.daemon.gauges()["slabs_used"] == 0)
        c.close()
        self.daemon.check_returned(self)

    def test_a_stalled_upload_ends(self):
        for how in ("leave", "cancel"):
            c = self.connect()
            stream, _ = self.stalled_upload(c)
            if how == "cancel":
                c.send(frame(CANCEL, stream))
                self.assertEqual(CANCELLED, c.wait(stream).status.code)
            c.close()
            self.daemon.check_returned(self)
        self.assert_serves()


if __name__ == "__main__":
    main()
