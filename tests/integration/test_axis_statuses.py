#!/usr/bin/env python3
"""Answers along an axis with a status each: what has no value fails neither the other answers nor the other ops, by every way of
input; and a client that does not ask for statuses gets what it always got."""
import os
import random
import struct

from cured_daemon import DaemonTest, main
from cured_wire import HELLO, INVALID_ARGUMENT, OUT_OF_RANGE, SIZES, frame, hello_message
from expected import any_nan, array_of, expect, oracle
from test_axis import elements, ops_of

SEED = int(os.environ.get("CURED_TEST_SEED", "1"))
EXTREMA = ("min", "max", "argmin", "argmax", "ptp")


def drawn(r, dtype, shape):
    """Slices of which some lack answers: large integers, and nothing but NaNs."""
    size = SIZES[dtype]
    raw = bytearray(array_of(r, dtype, shape[0] * shape[1] * shape[2]))
    for o in range(shape[0]):
        for i in range(shape[2]):
            if r.random() < 0.5:
                continue
            for k in range(shape[1]):
                at = ((o * shape[1] + k) * shape[2] + i) * size
                if dtype in oracle.INTS:
                    raw[at:at + size] = r.choice((0, 1, 1)).to_bytes(size, "little")
                else:
                    raw[at:at + size] = oracle.pack(dtype, oracle.nan_bits(dtype))
    return bytes(raw)


class AxisStatuses(DaemonTest):
    OPTIONS = {"cpu_workers": 2, "max_state_bytes_per_connection": 12 << 20}

    def check(self, answer, dtype, ops, raw, shape, **options):
        self.assertIsNone(answer.status, (dtype, ops, shape, options))
        count = shape[0] * shape[2]
        lacking = 0
        for number, op in enumerate(ops):
            result = answer.results[number]
            width = {"i128": 16, "digest": 24}.get(result.dtype) or SIZES[result.dtype]
            values, statuses = answer.array(number, width, count), answer.statuses_of(number, count)
            wanted = []
            for o in range(shape[0]):
                for i in range(shape[2]):
                    piece = elements(raw, dtype, shape, o, i)
                    key = expect(op, dtype, piece, **options)
                    if key[1] == 0 and key[2] == "int":  # along an axis it has to fit the type
                        key = (op, OUT_OF_RANGE)
                    at = o * shape[2] + i
                    self.assertEqual(key[1], statuses[at], (op, dtype, shape, at, options))
                    value = values[at * width:at * width + width]
                    if not key[1]:
                        self.assertEqual(key[3], value.hex(), (op, dtype, shape, at))
                        self.assertEqual(key[2], result.dtype)
                    elif shape[1] and op in EXTREMA and key[1] == INVALID_ARGUMENT:
                        kind = "f64" if op == "ptp" else dtype
                        nan = oracle.pack(kind, oracle.nan_bits(kind))
                        self.assertEqual(b"\xff" * 8 if op.startswith("arg") else nan, value)
                    else:
                        self.assertEqual(bytes(width), value)
                    if key[1]:
                        wanted.append(at)
            lacking += len(wanted)
            self.assertEqual(statuses[wanted[0]] if wanted else 0, result.status)
            if wanted:
                for word in ("output %d:" % wanted[0], "%d of %d" % (len(wanted), count)):
                    self.assertIn(word, result.message)
        return lacking

    def test_every_answer_has_its_own(self):
        c = self.connect()
        r = random.Random("statuses %d" % SEED)
        lacking = 0
        for dtype in ("i64", "u64", "i32", "f32", "f64", "f16"):
            for shape in ((1, 7, 1), (40, 3, 1), (3, 5, 4), (1, 3, 70), (1, 2, 300), (2, 2000, 7), (3, 9000, 1), (2, 0, 3)):
                raw = drawn(r, dtype, shape)
                ops = r.sample([op for op in ops_of(dtype) if op != "prod" or shape[1] < 100], 8)
                ops += [op for op in ("sum", "max") if op not in ops]
                nan = any_nan(r, ops, (0, 1, 1))
                ways = (lambda: c.inline(dtype, ops, raw, axis=shape, nan=nan, statuses=True),
                        lambda: c.stream(dtype, ops, raw, known=False, chunks=(r.randint(99, 9999),), axis=shape, nan=nan, statuses=True),
                        lambda: c.descriptor(dtype, ops, self.memfd(b"abc" + raw).fileno(), 3, len(raw) // SIZES[dtype], axis=shape,
                                             nan=nan, statuses=True))
                lacking += self.check(r.choice(ways)(), dtype, ops, raw, shape, nan=nan)
        self.assertGreater(lacking, 100)

    def test_in_strips(self):
        c = self.connect()
        inner = 5000
        lines = [[3 * 2**61 if k % 7 == 0 else k for k in range(inner)] for _ in range(3)]
        raw = struct.pack("<%dq" % (3 * inner), *sum(lines, []))
        for answer in (c.stream("i64", ["sum", "bit_xor", "max"], raw, axis=(1, 3, inner), statuses=True),
                       c.descriptor("i64", ["sum", "bit_xor", "max"], self.file(raw).fileno(), axis=(1, 3, inner), statuses=True)):
            self.assertIsNone(answer.status)
            self.assertEqual(bytes(OUT_OF_RANGE * (k % 7 == 0) for k in range(inner)), answer.statuses_of(0, inner))
            self.assertEqual([0 if k % 7 == 0 else 3 * k for k in range(inner)],
                             list(struct.unpack("<%dq" % inner, answer.array(0, 8, inner))))
            self.assertEqual([OUT_OF_RANGE, 0, 0], [result.status for result in answer.results])

    def test_who_does_not_ask_is_told_as_before(self):
        c = self.connect()
        raw = struct.pack("<4q", 2**62, 1, 2**62, 1)
        answer = c.inline("i64", ["sum", "max"], raw, axis=(1, 2, 2))
        self.assert_sentence(answer.status, OUT_OF_RANGE, "output 0", str(2**63))
        answer = c.inline("f32", ["min"], b"", axis=(1, 0, 2))
        self.assert_sentence(answer.status, INVALID_ARGUMENT, "min along an axis of no elements has no value")
        self.assert_sentence(c.inline("f32", ["sum"], b"", statuses=True).status, INVALID_ARGUMENT, "statuses", "axis")

    def test_feature(self):
        """Granted to whoever offers it, and to nobody else."""
        for offered, granted in (((), []), (("stride",), []), (("stride", "statuses", "new"), [b"statuses"])):
            c = self.connect(hello=False)
            c.send(frame(HELLO, 0, hello_message(features=offered)))
            self.assertEqual(granted, [bytes(name) for name in c.greet()["features"]])
            c.close()


if __name__ == "__main__":
    print("seed", SEED)
    main()
