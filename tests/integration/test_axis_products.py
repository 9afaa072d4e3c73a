#!/usr/bin/env python3
"""Products of floats along an axis, of blocks far larger than a claim: by every way of input and any cut, the bits of the
product of each row or column sent as an array of its own.
"""
import random

from cured_daemon import SANITIZE, DaemonTest, main
from cured_wire import SIZES
from expected import arrays, oracle

FLOATS = ("f16", "bf16", "f32", "f64", "f8_e4m3", "f8_e5m2")
# (outer, n, inner): rows and columns; n around the tree's blocks of 4,096 and its rows of 256; wide and narrow.
SHAPES = ((1, 300000, 1), (3, 40001, 1), (2, 8193, 5), (1, 4096, 20), (2, 4095, 9), (1, 255, 400), (3, 257, 150), (1, 40000, 2),
          (2, 3, 25000))


def numbers(r, dtype, count):
    """Around one, of both signs; here and there a denormal, a large one, and in few places what is no plain number."""
    kit = arrays.Kit(r, dtype)
    tile = [kit.around(3) for _ in range(997)]
    bits = (tile * (count // len(tile) + 1))[:count]
    for _ in range(count // 3000):
        bits[r.randrange(count)] = kit.number(0, 0)
        bits[r.randrange(count)] = kit.number(kit.top - 1, kit.top - 1)
    for _ in range(r.choice([0, 0, 2])):
        bits[r.randrange(count)] = kit.special()
    return arrays.pack(dtype, bits)


class Products(DaemonTest):
    OPTIONS = {"cpu_workers": 3, "slabs": 8}

    def column(self, raw, dtype, shape, o, i):
        _, n, inner = shape
        size = SIZES[dtype]
        block = raw[o * n * inner * size:(o + 1) * n * inner * size]
        if inner == 1:
            return block
        view = memoryview(block).cast(oracle.CODES[size])
        return view[i::inner].tobytes()

    def want(self, c, raw, dtype, shape, nan):
        """The products of the rows or columns, each an array of its own; of many columns some."""
        places = [(o, i) for o in range(shape[0]) for i in range(shape[2])]
        if len(places) > 24:
            places = random.Random(3).sample(places, 20) + [places[0], places[-1]]
        streams = {}
        for o, i in places:
            data = self.column(raw, dtype, shape, o, i)
            stream = c.start_stream(dtype, ["prod"], len(data), nan=nan)
            c.send_array(stream, data)
            streams[o * shape[2] + i] = stream
        return {place: c.wait(stream).results[0].value for place, stream in streams.items()}

    def check(self, answer, want, count, number=0):
        self.assertIsNone(answer.status)
        got = answer.array(number, 8, count)
        self.assertEqual(8 * count, len(got))
        for place, value in want.items():
            self.assertEqual(value.hex(), got[8 * place:8 * place + 8].hex(), place)

    def test_every_way_and_cut(self):
        c = self.connect()
        r = random.Random(5)
        for dtype in FLOATS:
            for shape in SHAPES[::2] if SANITIZE else SHAPES:
                elements, count, nan = shape[0] * shape[1] * shape[2], shape[0] * shape[2], r.randrange(2)
                raw = numbers(r, dtype, elements)
                want = self.want(c, raw, dtype, shape, nan)
                chunks = (r.randint(1, 99999), 4096, r.randint(60000, 200000))
                self.check(c.stream(dtype, ["prod"], raw, chunks=chunks, axis=shape, nan=nan), want, count)
                self.check(c.descriptor(dtype, ["prod"], self.file(b"?" + raw).fileno(), 1, axis=shape, nan=nan), want, count)
                self.check(c.descriptor(dtype, ["prod"], self.memfd(raw).fileno(), axis=shape, nan=nan), want, count)
                c.register(1, self.sealed(b"123" + raw).fileno())
                self.check(c.region(dtype, ["prod"], 1, 3, elements, axis=shape, nan=nan), want, count)
                c.unregister(1)

    def test_beside_other_ops(self):
        c = self.connect()
        r = random.Random(6)
        ops = ["max", "prod", "sum", "argmin", "norm2", "count_nonzero"]
        for dtype, shape in (("f32", (2, 30001, 1)), ("f64", (2, 5000, 7)), ("f16", (1, 400, 300))):
            raw = numbers(r, dtype, shape[0] * shape[1] * shape[2])
            want = self.want(c, raw, dtype, shape, 0)
            answer = c.stream(dtype, ops, raw, known=False, chunks=(77777,), axis=shape)
            self.check(answer, want, shape[0] * shape[2], 1)
            for place in sorted(want)[:3]:
                column = self.column(raw, dtype, shape, place // shape[2], place % shape[2])
                for number, op in enumerate(ops):
                    if op == "prod":
                        continue
                    value = oracle.answer(op, dtype, column)[2]
                    width = len(value)
                    got = answer.array(number, width, shape[0] * shape[2])[width * place:width * place + width]
                    self.assertEqual(value.hex(), got.hex(), (op, dtype, place))

    def test_many_at_once_and_ends_in_the_middle(self):
        c = self.connect()
        shape = (5, 30000, 1)
        raw = numbers(random.Random(7), "f32", 150000)
        want = self.want(c, raw, "f32", shape, 1)
        f = self.memfd(raw)
        streams = [c.start_descriptor("f32", ["prod"], f.fileno(), axis=shape, nan=1) for _ in range(20)]
        for way in range(3):
            with self.daemon.connect() as other:
                stream = other.start_stream("f32", ["prod"], len(raw), axis=shape)
                other.send_data(stream, raw[:200000 + 1000 * way])
        for stream in streams:
            self.check(c.wait(stream), want, 5)
        c.close()
        self.daemon.check_returned(self)


if __name__ == "__main__":
    main()
