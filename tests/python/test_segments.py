"""Reductions by offsets: every array crossed with every op, type of offsets, mask, out= and who answers, each segment held against the
same op of its slice alone, and a sample against the oracle; shims for NumPy's reduceat and for lengths; what is refused."""
import asyncio
import itertools
import os
import tempfile
import threading

import numpy as np
from support import DLPACK, NUMPY, OPS, WHOLE, Case, Tensor, cured, ops_table, unittest
from cured_daemon import DaemonTest  # noqa: I100: support finds it

RANDOM = np.random.default_rng(33)
COUNT = 700
LENGTHS = np.array([0, 3, 3, 1, 40, 0, 0, 17, 64, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2, 300, 5, 0])
BORDERS = np.concatenate([[11], 11 + np.cumsum(LENGTHS)])
LACKING = ("min", "max", "argmin", "argmax", "ptp")


def array_of(dtype):
    kind = np.dtype(NUMPY[dtype]).kind
    if kind == "b":
        return RANDOM.random(COUNT) < 0.5
    if kind == "f":
        a = (RANDOM.standard_normal(COUNT) * 10.0 ** RANDOM.integers(-2, 3, COUNT)).astype(NUMPY[dtype])
        a[RANDOM.integers(0, COUNT, 5)] = np.nan
        return a
    limits = np.iinfo(NUMPY[dtype])
    return RANDOM.integers(limits.min, limits.max, COUNT, NUMPY[dtype], endpoint=True)


def takes(op, dtype):
    return not (op in ops_table.BITS and "f" in NUMPY[dtype])


def by_slices(op, a, borders, keep=None, **options):
    """Of each slice the answer, or None where there is none."""
    for begin, end in zip(borders[:-1], borders[1:]):
        more = {} if keep is None else {"where": keep[begin:end]}
        try:
            answer = getattr(cured, op)(a[begin:end], **more, **options)
            low = -2 ** 63 if a.dtype.kind == "i" else 0
            yield None if type(answer) is int and not low <= answer < low + 2 ** 64 else answer
        except (ValueError, OverflowError):
            yield None


class Segments(DaemonTest, Case):
    def same_bits(self, got, wanted, what):
        for i, (x, y) in enumerate(zip(got, wanted)):
            if isinstance(y, str):  # a digest
                self.assertEqual(y, "cd1-%016x%016x-%d" % tuple(x), what)
            elif y != y:
                self.assertTrue(x != x, "%s: segment %d" % (what, i))
            else:
                self.assertEqual(np.asarray(y, np.asarray(x).dtype).tobytes(), x.tobytes(), "%s: segment %d" % (what, i))

    def check(self, who, op, a, offsets, keep, what, **options):
        wanted = list(by_slices(op, a, BORDERS, keep, **options))
        more = dict(options, **({} if keep is None else {"where": keep}))
        if None in wanted:
            with self.assertRaisesRegex((ValueError, OverflowError), "output %d: " % wanted.index(None), msg=what):
                getattr(who, op)(a, offsets=offsets, **more)
            full = np.flatnonzero(np.diff(BORDERS) > 0)
            if op not in LACKING or keep is not None:
                return 0
            offsets, wanted = np.unique(BORDERS).astype(offsets.dtype), [wanted[i] for i in full]
            if None in wanted:
                return 0
        got = getattr(who, op)(a, offsets=offsets, **more)
        self.assertEqual((len(wanted),), got.shape, what)
        self.same_bits(got, wanted, what)
        for out in (np.empty(got.shape, got.dtype), np.empty(2 * len(got), got.dtype)[::2]):
            self.assertIs(out, getattr(who, op)(a, offsets=offsets, out=out, **more), what)
            self.assertEqual(got.tobytes(), out.tobytes(), what)
        return 1

    def test_crossed(self):
        cases = 0
        here = self.enterContext(cured.Client("embedded:", threads=2))
        daemon = self.enterContext(cured.Client(self.daemon.address))
        keep = RANDOM.random(COUNT) < 0.5
        for dtype, op in itertools.product(NUMPY, OPS):
            if not takes(op, dtype):
                continue
            a = array_of(dtype)
            for (name, who), kind, mask in itertools.product((("here", cured), ("embedded", here), ("daemon", daemon)), ("i4", "i8", "u4", "u8"), (None, keep)):
                if (mask is not None and op in WHOLE) or (kind, name) not in (("i4", "here"), ("i8", "here"), ("u4", "embedded"), ("u8", "embedded"),
                                                                              ("i4", "daemon"), ("u8", "daemon")):
                    continue
                what = "%s of %s, %s offsets, mask %s, %s" % (op, dtype, kind, mask is not None, name)
                options = [{}] if op in WHOLE + ops_table.BITS or op.startswith("count") else [{}, {"nan": "skip"}]
                for more in options if "f" in NUMPY[dtype] else [{}]:
                    cases += self.check(who, op, a, BORDERS.astype(kind), mask, what, **more)
        self.assertGreater(cases, 1100)

    def test_options(self):
        a = array_of("i16")
        for dtype in ("f16", "f32", "i128"):
            if dtype != "i128":
                self.check(cured, "mean", a, BORDERS, None, dtype, dtype=dtype)
                self.check(cured, "sum", a, BORDERS, None, dtype, dtype=dtype)
        self.check(cured, "var", array_of("f32"), BORDERS, None, "ddof", ddof=1)
        self.check(cured, "prod", array_of("i64"), BORDERS, None, "wrap", overflow="wrap")

    def test_types_that_numpy_has_not(self):
        raw = bytes(RANDOM.integers(0, 100, 400, "u1"))
        for dtype, (code, bits) in DLPACK.items():
            size = bits // 8
            borders = np.array([0, 3, 3, 100, 400 // size])
            whole = Tensor(raw, code, bits, [400 // size])
            for op in ("sum", "mean", "count_nonzero", "norm2"):
                got = getattr(cured, op)(whole, offsets=borders)
                for i, (begin, end) in enumerate(zip(borders[:-1], borders[1:])):
                    alone = getattr(cured, op)(Tensor(raw[begin * size:end * size], code, bits, [int(end - begin)]))
                    self.assertTrue(alone == got[i] or alone != alone, "%s of %s" % (op, dtype))

    def test_against_the_oracle(self):
        for dtype, op in itertools.product(NUMPY, OPS):
            if not takes(op, dtype) or op in ("prod", "digest"):
                continue
            a = array_of(dtype)
            borders = np.unique(BORDERS)
            try:
                got = getattr(cured, op)(a, offsets=borders)
            except OverflowError:
                continue
            for i in (0, 3, 6):
                raw = a[borders[i]:borders[i + 1]].tobytes()
                if op in LACKING or op in ops_table.FLOAT or op.startswith("count"):
                    self.check_oracle(lambda: got[i].item(), op, dtype, raw)

    def test_several_ops(self):
        a = array_of("f32")
        ops = [op for op in OPS if takes(op, "f32")]
        got = cured.reduce(a, ops, offsets=BORDERS)
        for op in ops:
            if op in LACKING:
                with self.assertRaisesRegex(ValueError, "output 0: %s of no elements has no value; 4 of 22 answers have none" % op):
                    got[op]
            else:
                self.same_bits(got[op], by_slices(op, a, BORDERS), op)
        described = cured.describe(a, offsets=np.unique(BORDERS))
        for op in described:
            self.same_bits(described[op], by_slices(op, a, np.unique(BORDERS)), op)

    def test_arrays(self):
        a = array_of("f64")
        wide = np.repeat(a, 3)
        turned = a[::-1].copy()
        masked = np.ma.masked_array(a, mask=RANDOM.random(COUNT) < 0.4)
        wanted = cured.reduce(a, ("sum", "prod"), offsets=BORDERS)
        for what, other in (("strided", wide[::3]), ("reversed", turned[::-1]), ("big-endian", a.astype(">f8")),
                            ("memoryview", memoryview(a)), ("read-only", np.frombuffer(a.tobytes()))):
            got = cured.reduce(other, ("sum", "prod"), offsets=BORDERS)
            for op in got:
                self.assertEqual(wanted[op].tobytes(), got[op].tobytes(), what)
        self.same_bits(cured.mean(masked, offsets=BORDERS), by_slices("mean", a, BORDERS, ~masked.mask), "masked")
        for offsets in (list(map(int, BORDERS)), tuple(map(int, BORDERS)), BORDERS.astype(">i8"), np.repeat(BORDERS, 2)[::2], BORDERS.astype("i2"),
                        BORDERS.astype("u2"), memoryview(BORDERS)):
            self.assertEqual(wanted.sum.tobytes(), cured.sum(a, offsets=offsets).tobytes())
        self.assertEqual((0,), cured.sum(a, offsets=[5]).shape)
        self.assertEqual([0.0, 0.0], list(cured.sum(a[:0], offsets=[0, 0, 0])))

    def test_files(self):
        a = array_of("f32")
        wanted = cured.sum(a, offsets=BORDERS)
        with tempfile.TemporaryDirectory() as folder:
            np.save(os.path.join(folder, "a.npy"), a)
            np.savez_compressed(os.path.join(folder, "a.npz"), a=a)
            self.assertEqual(wanted.tobytes(), cured.file(os.path.join(folder, "a.npy")).sum(offsets=BORDERS).tobytes())
            self.assertEqual(wanted.tobytes(), cured.file(os.path.join(folder, "a.npz:a")).sum(offsets=BORDERS).tobytes())
            large = np.arange(3 << 20, dtype="f4")
            np.save(os.path.join(folder, "large.npy"), large)
            borders = np.arange(5, len(large), 1237)
            self.assertEqual(cured.sum(large, offsets=borders).tobytes(), cured.file(os.path.join(folder, "large.npy")).sum(offsets=borders).tobytes())

    def test_large(self):
        """What several threads fold, with segments that claims cut."""
        a = RANDOM.standard_normal(5 << 20).astype("f4")
        of = (np.array([3, 4 << 20, 4 << 20, 5 << 20]), np.arange(0, len(a), 31), np.array([0, len(a) // 2] + list(range(len(a) // 2 + 3, len(a), 3))))
        for address, borders in itertools.product(("embedded:", self.daemon.address), of):
            here = self.enterContext(cured.Client(address, threads=3))
            got = here.reduce(a, ("sum", "argmax", "prod") if len(borders) > 9 else ("sum", "count", "prod"), offsets=borders)
            for i in list(range(0, len(borders) - 1, max(1, len(borders) // 50))) + [0, len(borders) - 2]:
                alone = cured.reduce(a[borders[i]:borders[i + 1]], tuple(got))
                for op in got:
                    self.same_bits(got[op][i:i + 1], [alone[op]], op)

    def test_refused(self):
        a = np.arange(10.0)
        for error, text, options in (
                (ValueError, r"offsets\[2\] is 2, below the 3 before it", {"offsets": [0, 3, 2]}),
                (ValueError, r"offsets\[1\] is 11, beyond element 10, where the input ends", {"offsets": [0, 11]}),
                (ValueError, r"offsets\[0\] is -1, must not be negative", {"offsets": [-1, 3]}),
                (ValueError, "offsets: there are none", {"offsets": []}),
                (TypeError, "offsets: an array of integers with one axis is wanted", {"offsets": [0.5]}),
                (TypeError, "offsets: an array of integers with one axis is wanted", {"offsets": [[0, 3]]}),
                (TypeError, "axis: not with offsets", {"offsets": [0, 3], "axis": 0}),
                (TypeError, "keepdims: not with offsets", {"offsets": [0, 3], "keepdims": True}),
                (TypeError, "initial: not with offsets", {"offsets": [0, 3], "initial": 1.0})):
            with self.assertRaisesRegex(error, text):
                cured.sum(a, **options)
        with self.assertRaisesRegex(TypeError, r"offsets: they name segments of an array of one axis: a.ravel\(\) has one"):
            cured.sum(a.reshape(2, 5), offsets=[0, 3])
        with self.assertRaisesRegex(TypeError, "offsets: a partial is of a whole array"):
            cured.partial(a, ["sum"], offsets=[0, 3])
        with self.assertRaisesRegex(TypeError, "offsets: a list of arrays takes none"):
            cured.sum([a, a], offsets=[0, 3])
        client = self.enterContext(cured.Client(self.daemon.address))
        for error, text, offsets in ((ValueError, r"offsets\[2\] is 2, below the 3 before it", [0, 3, 2]),
                                     (ValueError, r"offsets\[1\] is 11, beyond element 10, where the input ends", [0, 11])):
            with self.assertRaisesRegex(error, text):
                client.sum(a, offsets=offsets)

    def test_async(self):
        async def main():
            for address in ("embedded:", self.daemon.address):
                async with cured.AsyncClient(address) as client:
                    answers = await asyncio.gather(*(client.sum(np.arange(10.0 + k), offsets=np.array([0, 4, 10])) for k in range(20)))
                    self.assertEqual([[6.0, 39.0]] * 20, [list(answer) for answer in answers])
        asyncio.run(main())

    def test_a_daemon_s_inputs(self):
        """Memory that is sent, memory that the daemon shares, and files, with and without out=."""
        client = self.enterContext(cured.Client(self.daemon.address))
        large = RANDOM.standard_normal(3 << 18)
        for a, borders in ((array_of("f64"), BORDERS), (large, np.arange(5, len(large), 1237)), (large, np.arange(0, len(large), 2))):
            wanted = cured.reduce(a, ("sum", "mean"), offsets=borders)
            shared = cured.empty(a.shape, a.dtype)
            shared[...] = a
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "a.npy")
                np.save(path, a)
                for what, given in (("sent", a), ("strided", np.repeat(a, 2)[::2]), ("shared", shared), ("part of it", shared[:]), ("file", cured.file(path))):
                    out = cured.empty(len(borders) - 1, "f8")
                    got = client.reduce(given, ("sum", "mean"), offsets=borders)
                    client.sum(given, offsets=borders, out=out)
                    for op in wanted:
                        self.assertEqual(wanted[op].tobytes(), got[op].tobytes(), what)
                    self.assertEqual(wanted["sum"].tobytes(), out.tobytes(), what)

    def test_offsets_that_change(self):
        a, borders, over = np.ones(3 << 20, "f4"), np.arange(0, 3 << 20, 7), threading.Event()
        good = borders.copy()

        def change():
            while not over.is_set():
                borders[RANDOM.integers(0, len(borders), 50)] = RANDOM.choice([-1, 1 << 62, 5])
                borders[:] = good
        thread = threading.Thread(target=change)
        thread.start()
        try:
            for _ in range(20):
                try:
                    cured.sum(a, offsets=borders)
                except ValueError as error:
                    self.assertRegex(str(error), "offsets")
        finally:
            over.set()
            thread.join()


class Shims(Case):
    def test_reduceat(self):
        """As NumPy's for starts in any order: where they do not rise, the answer is the element alone."""
        def reduceat(op, a, starts):
            ends = np.maximum(np.append(starts[1:], len(a)), np.asarray(starts) + 1)
            parts = np.concatenate([a[begin:end] for begin, end in zip(starts, ends)])
            return getattr(cured, op)(parts, offsets=np.concatenate([[0], np.cumsum(ends - starts)]))
        for _ in range(200):
            a = RANDOM.integers(-9, 9, RANDOM.integers(1, 300)).astype(RANDOM.choice(["f8", "i8", "i4"]))
            starts = RANDOM.integers(0, len(a), RANDOM.integers(1, 40))
            for op, ufunc in (("sum", np.add), ("min", np.minimum), ("max", np.maximum)):
                self.assertEqual(list(ufunc.reduceat(a, starts)), list(reduceat(op, a, starts)))


if __name__ == "__main__":
    unittest.main()
