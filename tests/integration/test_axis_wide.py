#!/usr/bin/env python3
"""Reductions of more columns than have states within the limits: strip by strip, by every way of input, with the same bits."""
import os
import random
import struct
import subprocess
import unittest

from cured_daemon import BIN, SANITIZE, DaemonTest, environment, main
from cured_wire import INVALID_ARGUMENT, SIZES
from expected import array_of
from test_axis import want_array

SEED = int(os.environ.get("CURED_TEST_SEED", "1"))


def widened(raw, dtype, shape, times):
    """Every line of the array, repeated."""
    line = shape[2] * SIZES[dtype]
    return b"".join(raw[at:at + line] * times for at in range(0, len(raw), line))


class Wide(DaemonTest):
    def ways(self, c, dtype, ops, raw, shape, **options):
        """(name, answer) of every way of input."""
        options["axis"] = shape
        count = shape[0] * shape[1] * shape[2]
        yield "stream", c.stream(dtype, ops, raw, **options)
        yield "file", c.descriptor(dtype, ops, self.file(b"?" + raw).fileno(), 1, **options)
        if SANITIZE and len(raw) > 1 << 20:
            return
        sparse = self.file()
        sparse.truncate(len(raw) + (1 << 20))
        os.pwrite(sparse.fileno(), raw, 3)
        self.assertLess(os.fstat(sparse.fileno()).st_blocks * 512, len(raw) + (1 << 20))
        yield "stream of unknown length", c.stream(dtype, ops, raw, known=False, chunks=(99991, 5, 4096), **options)
        yield "sparse file", c.descriptor(dtype, ops, sparse.fileno(), 3, count, **options)
        yield "memory", c.descriptor(dtype, ops, self.memfd(raw).fileno(), **options)
        for name, memory in (("region", self.memfd(b"?" + raw)), ("sealed region", self.sealed(b"?" + raw)),
                             ("region of a file", self.file(b"?" + raw))):
            c.register(1, memory.fileno())
            yield name, c.region(dtype, ops, 1, 1, **options)
            c.unregister(1)

    def check(self, c, r, dtype, ops, tile, times, **options):
        raw = array_of(r, dtype, tile[0] * tile[1] * tile[2])
        want = {op: want_array(op, dtype, raw, tile, **options) for op in ops if op != "prod"}
        if "prod" in ops:
            alone = c.inline(dtype, ["prod"], raw, axis=tile, **options)
            want["prod"] = ("f64", alone.array(0, 8, tile[0] * tile[2]))
        shape = (tile[0], tile[1], tile[2] * times)
        for way, answer in self.ways(c, dtype, ops, widened(raw, dtype, tile, times), shape, **options):
            self.assertIsNone(answer.status, (way, shape))
            for number, op in enumerate(ops):
                kind, values = want[op]
                width = SIZES[kind]
                line = tile[2] * width
                wide = b"".join(values[at:at + line] * times for at in range(0, len(values), line))
                self.assertEqual(wide, answer.array(number, width, shape[0] * shape[2]), (way, op, dtype, shape, options))


class AtDefaults(Wide):
    OPTIONS = {"cpu_workers": 2}

    def test_wide_and_flat(self):
        """170,000 states of bit_xor are 1.1 GB, more than max_state_bytes_per_connection."""
        c = self.connect()
        r = random.Random(41)
        self.check(c, r, "i64", ("bit_xor", "max"), (1, 2, 37), 4600)

    @unittest.skipIf(SANITIZE, "a gigabyte of states, ten times as slow")
    def test_in_this_process(self):
        r = random.Random(42)
        tile, times = (1, 2, 37), 4700
        raw = array_of(r, "i64", 74)
        kind, values = want_array("bit_xor", "i64", raw, tile)
        wide = widened(raw, "i64", tile, times)
        where = os.path.join(self.folder, "wide.bin")
        with open(where, "wb") as f:
            f.write(wide)
        for name, data in ((where, None), ("-", wide)):
            out = subprocess.run([os.path.join(BIN, "cured-client"), "reduce", name, "--ops", "bit_xor", "--dtype", "i64", "--shape",
                                  "2,%d" % (37 * times), "--axis", "0", "--output", "-", "--connect", "embedded:"],
                                 input=data, stdout=subprocess.PIPE, check=True, env=environment())
            self.assertEqual(out.stdout[-len(values) * times:], values * times, name)
            self.assertEqual(kind, "i64")


class AtLimits(Wide):
    """Little room for states, so that strips are narrow, and arrays of a few thousand columns have many of them."""
    OPTIONS = {"cpu_workers": 2, "max_state_bytes_per_connection": 6 << 20, "slabs": 8}

    def test_every_kind_of_state(self):
        c = self.connect()
        r = random.Random("wide %d" % SEED)
        for dtype, ops in (("f64", ("var", "sum", "argmax", "count_nan")), ("i64", ("bit_xor", "var", "argmin")), ("f64", ("prod", "norm2", "min")),
                           ("f32", ("prod", "sum", "argmin")), ("f16", ("prod",))):
            for _ in range(1 if SANITIZE else 3):
                tile = (r.randint(1, 3), r.choice((1, 2, r.randint(3, 30))), r.randint(2, 31))
                self.check(c, r, dtype, ops, tile, r.randint(1500, 3000) // tile[2] + 1, nan=r.randrange(2))
        c.close()
        self.daemon.check_returned(self)

    def test_streams_that_end_early(self):
        c = self.connect()
        raw = bytes(8 * 2 * 3000)
        for sent, end in ((raw[:8 * 3000 + 3], True), (raw + b"?", True), (raw[:100], False)):
            stream = c.start_stream("i64", ["bit_xor"], None, axis=(1, 2, 3000))
            c.send_data(stream, sent, end=end)
            if end:
                self.assert_sentence(c.wait(stream).status, INVALID_ARGUMENT, "axis")
        c.close()
        with self.daemon.connect() as other:
            self.assertIsNone(other.stream("i64", ["bit_xor"], raw, axis=(1, 2, 3000)).status)
        self.daemon.check_returned(self)

    def test_what_does_not_fit(self):
        """A stream that is too long to be kept is refused with what to do; done, it works."""
        c = self.connect()
        raw = bytes(8 * 300 * 3000)
        self.assert_sentence(c.stream("i64", ["bit_xor"], raw, axis=(1, 300, 3000)).status, INVALID_ARGUMENT, "axis",
                             "max_state_bytes_per_connection", "pass a file or a region")
        answer = c.descriptor("i64", ["bit_xor"], self.memfd(raw).fileno(), axis=(1, 300, 3000))
        self.assertIsNone(answer.status)
        self.assertEqual(bytes(8 * 3000), answer.array(0, 8, 3000))

    def test_a_sum_that_does_not_fit(self):
        """The number in the sentence is the answer's in the array, not in the strip."""
        c = self.connect()
        inner = 5000
        lines = [[1] * inner for _ in range(4)]
        lines[2][4321] = 2**63 - 1
        raw = struct.pack("<%dq" % (4 * inner), *sum(lines, []))
        for way, answer in self.ways(c, "i64", ["sum", "bit_xor"], raw, (2, 2, inner)):
            self.assertIsNotNone(answer.status, way)
            self.assertIn("output %d:" % (inner + 4321), answer.status.message, way)


if __name__ == "__main__":
    print("seed", SEED)
    main()
