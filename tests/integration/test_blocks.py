"""Blocks of a larger array, by the daemon: types x ops x ways in which an array may come x boxes that cut arrays at random. Their partials
have the bits that this process makes, merge to the answers of the whole, and miss nothing; and every layout that lies is refused with a
sentence."""
import itertools
import random
import struct

from beside import WAYS, Beside, BesideTest
from cured_daemon import main
from cured_wire import (DATA, END, HELLO, INPUTS, INVALID_ARGUMENT, SIZES, UNIMPLEMENTED, beside_message, bytes_field, frame, hello_message,
                        layout_message, mask_message, stream_input, uint_field)
from expected import array_of, expect_all

OPS = ["digest", "argmin", "argmax", "min", "max", "sum", "count_nan", "count_inf", "sumsq"]


def cut(r, shape):
    """Boxes, as starts and extents, that tile the shape."""
    axes = []
    for n in shape:
        cuts = sorted({0, n, *(r.randrange(n + 1) for _ in range(r.randrange(3)))})
        axes.append(list(zip(cuts, cuts[1:])))
    return [(tuple(a for a, _ in box), tuple(b - a for a, b in box)) for box in itertools.product(*axes)]


def places(shape, start, extent):
    """The numbers in the array of the block's elements."""
    numbers = [0]
    for n, first, length in zip(shape, start, extent):
        numbers = [k * n + i for k in numbers for i in range(first, first + length)]
    return numbers


def gather(raw, size, shape, start, extent):
    return b"".join(raw[k * size:(k + 1) * size] for k in places(shape, start, extent))


class Blocks(BesideTest):
    def setUp(self):
        self.conn = self.connect()
        self.r = random.Random(32)

    def block(self, dtype, ops, raw, shape, start, extent, way="stream", **options):
        data = gather(raw, SIZES[dtype], shape, start, extent)
        return self.ask(dtype, ops, data, way, layout=layout_message(shape, start, extent), partial=True, **options)

    def check(self, dtype, raw, parts, ops):
        merged = self.conn.merge(ops, parts)
        self.assertIsNone(merged.status)
        self.assertEqual(expect_all(ops, dtype, raw), merged.keys(), dtype)

    def test_every_type_and_way(self):
        turn = itertools.cycle(WAYS)
        for dtype in INPUTS:
            for _ in range(4):
                shape = tuple(self.r.randrange(1, 8) for _ in range(self.r.randrange(5)))
                raw = array_of(self.r, dtype, len(places(shape, (0,) * len(shape), shape)))
                boxes, parts = cut(self.r, shape), []
                self.r.shuffle(boxes)
                for start, extent in boxes[:40]:
                    answer = self.block(dtype, OPS, raw, shape, start, extent, next(turn), pieces=self.r.choice((None, (1, 3, 7))))
                    self.assertIsNone(answer.status, (dtype, shape, start, extent))
                    self.assertEqual(([], b"CP\3"), (answer.results, answer.partial[:3]))
                    parts.append(answer.partial)
                if len(boxes) > 40:
                    continue
                self.check(dtype, raw, parts, OPS)
                if len(parts) > 1:
                    missing = self.conn.merge(["digest"], parts[1:])
                    self.assert_sentence(missing.status, INVALID_ARGUMENT, "missing, or there twice")
                if parts:
                    self.assert_sentence(self.conn.merge(["digest"], parts + parts[:1]).status, INVALID_ARGUMENT, "there twice")

    def test_large(self):
        """More than the loop folds, a slab and a claim, of short runs and long ones, in DATA, files and memory; a bfloat16 goes by words
        that elements share."""
        for dtype, shape in (("bf16", (777, 1999)), ("f64", (640, 1001))):
            size = SIZES[dtype]
            raw = self.r.randbytes(shape[0] * shape[1] * size)
            whole = self.ask(dtype, OPS, raw)
            for at, cuts in ((1, (0, 5, 996, shape[1])), (0, (0, 1, 400, shape[0]))):
                parts = []
                for (a, b), way in zip(zip(cuts, cuts[1:]), self.r.sample(WAYS, 3)):
                    start, extent = [0, 0], list(shape)
                    start[at], extent[at] = a, b - a
                    rows = [raw[k * size:(k + extent[1]) * size] for k in range(start[0] * shape[1] + start[1], (start[0] + extent[0]) * shape[1], shape[1])]
                    answer = self.ask(dtype, OPS, b"".join(rows), way, layout=layout_message(shape, start, extent), partial=True,
                                      pieces=self.r.choice(((1 << 20,), (100001,))))
                    self.assertIsNone(answer.status)
                    parts.append(answer.partial)
                merged = self.conn.merge(OPS, parts[::-1])
                self.assertEqual(whole.keys(), merged.keys())

    def test_nothing(self):
        for shape, start, extent in (((0, 4), (0, 1), (0, 2)), ((3, 4), (3, 0), (0, 4)), ((2**64 - 1, 0), (2**64 - 1, 0), (0, 0))):
            for way in WAYS:
                answer = self.ask("f32", ["digest", "count"], b"", way, layout=layout_message(shape, start, extent), partial=True)
                self.assertIsNone(answer.status)
                self.assertEqual((0, b"CP\3"), (answer.count, answer.partial[:3]))
        one = self.ask("f32", OPS, struct.pack("<f", 7), layout=b"", partial=True)  # of no axes
        self.check("f32", struct.pack("<f", 7), [one.partial], OPS)

    def test_hostile_layouts(self):
        top = 2**64 - 1
        for layout, *words in (
                (((4, 1, 4),), "along axis 0, 4 elements from 1 on lie outside the array's 4"),
                (((4, 5, 0),), "axis 0", "outside"),
                (((4, top, 1),), "axis 0", str(top)),
                (((4, 1, top),), "axis 0", str(top)),
                (((4, top, 2), (1, 0, 1)), "axis 0"),
                (((2**32, 0, 1), (2**32, 0, 4)), "2^60"),
                (((top, 0, 1), (top, 0, 4)), "2^60"),
                (((2**60 + 1, 0, 4),), "2^60"),
                (((5, 0, 5),), "the block has 5 elements, the input 4"),
                (((2**60, 0, 2**60),), "elements, the input 4"),
                (((1, 0, 1),) * 33, "33 axes, limit is 32"),
                (((1, 0, 1),) * 5000, "5000 axes, limit is 32")):
            said = layout_message(*zip(*layout))
            answer = self.ask("u8", ["sum"], b"abcd", layout=said, partial=True)
            self.assert_sentence(answer.status, INVALID_ARGUMENT, *words)
        good = layout_message((2**60,), (2**60 - 4,), (4,))
        for options, *words in (({"first": 1}, "first"), ({"unplaced": True}, "unplaced"), ({"partial": False}, "only a partial"),
                                ({"axis": (2, 2, 1)}, "partial"), ({"statuses": True}, "statuses"),
                                ({"statuses": True, "partial": False}, "statuses"), ({"dtype": "f32", "ops": ["prod"], "data": bytes(16)}, "prod"),
                                ({"ops": ["median"]}, "partial")):
            asked = {"dtype": "u8", "ops": ["sum"], "data": b"abcd", "partial": True, **options}
            self.assert_sentence(self.ask(layout=good, **asked).status, INVALID_ARGUMENT, *words)
        last = self.ask("u8", ["argmax", "digest"], b"abcd", layout=good, partial=True)
        self.assertEqual(2**60 - 1, struct.unpack("<Q", self.conn.merge(["argmax"], [last.partial]).results[0].value)[0])
        for way in ("unknown", "to_end", "descriptor", "memfd", "file"):
            for data in (b"abc", b"abcde"):
                answer = self.ask("u8", ["sum"], data, way, layout=good, partial=True)
                self.assert_sentence(answer.status, INVALID_ARGUMENT, "layout: the block")

    def test_not_with(self):
        layout = layout_message((9,), (3,), (4,))
        for beside, ops, words in ((Beside("mask", b"\1" * 4, lambda *at: mask_message(beside_message(4, *at))), ["sum"], "mask: what it leaves of a block has no position: leave layout away"),
                                   (Beside("second", b"abcd", lambda *at: beside_message(4, *at)), ["dot"], "second: not with layout")):
            answer = self.ask("u8", ops, b"abcd", beside=[beside], layout=layout, partial=True)
            self.assert_sentence(answer.status, INVALID_ARGUMENT, words)
        pieces = bytes_field(4, bytes_field(1, uint_field(1, 1) + uint_field(3, 4)))
        self.conn.register(1, self.memfd(b"abcd").fileno())
        stream = self.conn.open_stream()
        self.conn.send(self.conn.call_frame(stream, "u8", ["sum"], pieces, flags=END, layout=layout, partial=True))
        self.assert_sentence(self.conn.wait(stream).status, INVALID_ARGUMENT, "layout: not with several regions")
        self.conn.unregister(1)
        strided = layout_message((9,), (3,), (4,))[2:] + uint_field(4, 8)
        answer = self.ask("u8", ["sum"], b"abcd", layout=bytes_field(1, strided), partial=True)
        self.assert_sentence(answer.status, UNIMPLEMENTED, "ArrayAxis.stride")

    def test_leaves(self):
        """Clients that go while their blocks are folded, or have not come as a whole."""
        for _ in range(20):
            c = self.connect()
            stream = c.open_stream()
            c.send(c.call_frame(stream, "f32", ["digest", "argmax"], stream_input(1 << 22), layout=layout_message((4096, 512), (0, 7), (4096, 256)), partial=True))
            c.send(frame(DATA, stream, bytes(self.r.choice((1000, 200000)))))
            c.close()
        self.check("u8", b"ab", [self.block("u8", ["sum"], b"ab", (2,), (0,), (2,)).partial], ["sum"])

    def test_feature(self):
        c = self.connect(hello=False)
        c.send(frame(HELLO, 0, hello_message(features=("layout", "stride"))))
        self.assertEqual([b"layout"], [bytes(name) for name in c.greet()["features"]])


if __name__ == "__main__":
    main()
