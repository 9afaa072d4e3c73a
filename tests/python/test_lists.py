"""Lists of arrays are one array: the bits of the whole for all ops, types and cuts; arrays of several types are one of the widest; and
what is refused, with each option."""
import mmap
import os
import tempfile
import unittest
from array import array

import numpy
from support import NUMPY, OPS, Case, Tensor, bf16, cured, oracle, same

SUMS = ["sum", "mean", "sumsq", "norm1", "norm2", "var", "std"]
JOINED = SUMS + ["count", "count_nan", "count_inf", "count_nonzero", "any", "all", "min", "max", "norminf", "argmin", "argmax"]  # of several types
FLOAT_OPS = [op for op in OPS if not op.startswith("bit_") and op != "prod"]
BF16_VALUES = [0.0, -0.0, 1.5, -2.0, 2.0**-133, -(2.0**127), 3.140625]


def bf16_of(values):
    return bf16((numpy.array(values, "<f4").view("<u4") >> 16).astype("<u2").tobytes())


def answers(result):
    return {op: value if not isinstance(value, Exception) else type(value) for op, value in result._answers.items()}


def elements(random, dtype, n):
    """Of every size that the type has, both zeros, and some that are not finite."""
    kind = numpy.dtype(dtype)
    raw = random.integers(0, 256, n * kind.itemsize, "u1").tobytes()
    if kind == bool:
        return random.integers(0, 2, n).astype(bool)
    a = numpy.frombuffer(raw, kind).copy()
    if kind.kind == "f":
        a[~numpy.isfinite(a)] = -0.0
        a[:: 7] = 0
    return a


class Case(Case):
    def assert_answers(self, wanted, got, what=""):
        wanted, got = answers(wanted), answers(got)
        self.assertEqual(list(wanted), list(got))
        for op in wanted:
            self.assertTrue(same(wanted[op], got[op]), "%s: %r is not %r %s" % (op, got[op], wanted[op], what))

    def refused(self, error, words, call):
        with self.assertRaisesRegex(error, words):
            call()


class OneType(Case):
    def test_cuts(self):
        """Of all types and ops, with indices and products: the bits of the whole."""
        random = numpy.random.default_rng(1)
        for dtype in NUMPY.values():
            a = elements(random, dtype, 3000)
            ops = FLOAT_OPS if a.dtype.kind == "f" else OPS
            for special in ([], [numpy.nan], [numpy.inf, numpy.nan]) if a.dtype.kind == "f" else ([],):
                a[random.integers(0, len(a), len(special))] = special
                parts = numpy.split(a, numpy.sort(random.integers(0, len(a) + 1, 6)))
                for listed in (parts, tuple(parts)):
                    wrap = {} if a.dtype.kind == "f" else {"overflow": "wrap"}
                    self.assert_answers(cured.reduce(a, ops, **wrap), cured.reduce(listed, ops, **wrap), dtype)

    def test_each_op_and_method(self):
        a = numpy.arange(20.0)
        parts = [a[:7], a[7:7], a[7:]]
        for op in FLOAT_OPS:
            self.assertTrue(same(getattr(cured, op)(a), getattr(cured, op)(parts)), op)
        self.assertEqual(dict(cured.describe(a)), dict(cured.describe(parts)))
        with cured.Client("embedded:") as client:
            self.assertEqual((190.0, 19), (client.sum(parts), client.argmax(parts)))
            self.assertEqual(190.0, cured.reduce(parts, "sum", client=client).sum)
            self.assertEqual(20, client.partial(parts, "sum").count)

    def test_options(self):
        parts = [numpy.array([1.0, numpy.nan]), numpy.array([4.0])]
        self.assertEqual((5.0, 4.5), (cured.sum(parts, nan="skip"), cured.reduce(parts, "var", nan="skip", ddof=1).var))
        self.assertEqual(float(numpy.float32(0.1)), cured.sum([numpy.array([0.1])], dtype="f32"))
        big = [numpy.array([2**40]), numpy.array([2**40])]
        self.refused(OverflowError, "", lambda: cured.prod(big))
        self.assertEqual(0, cured.prod(big, overflow="wrap") % 2**32)
        nothing = dict(axis=None, keepdims=False, where=True, out=None, client=None)
        self.assertEqual(5.0, cured.sum([numpy.array([5.0])], initial=None, **nothing))

    def test_no_answer(self):
        result = cured.reduce([numpy.ones(0), numpy.ones(0)], "sum,min")
        self.assertEqual(0.0, result.sum)
        self.refused(ValueError, "min of no elements", lambda: result.min)
        self.refused(ValueError, "min of no elements", lambda: cured.min([numpy.ones(0)]))

    def test_products_of_floats(self):
        a = numpy.random.default_rng(2).normal(size=10000)
        self.assert_same(cured.prod(a), cured.prod([a[:4096], a[4096:8192], a[8192:]]))
        self.refused(ValueError, "prod: of floats in a list", lambda: cured.prod([a[:5], a[5:]]))
        self.assertEqual(6, cured.prod([numpy.array([2]), numpy.array([3])]))

    def test_many(self):
        a = numpy.arange(20000, dtype="f4")
        parts = numpy.split(a, 4000)
        self.assert_answers(cured.reduce(a, "sum,argmax,std"), cured.reduce(parts, "sum,argmax,std"))


class Inputs(Case):
    def test_kinds_of_arrays(self):
        """In one list: of NumPy with strides and turned bytes, memory, tensors, files, columns under a mask."""
        a = numpy.arange(60.0).reshape(6, 10)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.npy")
            numpy.save(path, a)
            tensor = Tensor(a.tobytes(), 2, 64, (60,))
            parts = [a.T[::2], a.astype(">f8"), memoryview(a), array("d", range(5)), tensor, cured.file(path), numpy.float64(2)[...]]
            whole = numpy.concatenate([p.ravel() for p in (a.T[::2], a, a, numpy.arange(5.0), a, a, numpy.full(1, 2.0))])
            self.assert_answers(cured.reduce(whole, FLOAT_OPS), cured.reduce(parts, FLOAT_OPS))
        self.assertEqual(294 + 1, cured.sum([b"abc", mmap.mmap(-1, 10), bytearray(b"\1")]))
        shared = cured.empty(3, "f8")
        shared[:] = 2
        with cured.Client("embedded:") as client:
            self.assertEqual(8.0, client.sum([shared, numpy.full(1, 2.0)]))

    def test_masked(self):
        m = numpy.ma.masked_array([1.0, 5.0, 2.0], [0, 1, 0])
        parts = [m, numpy.ones(2)]
        self.assertEqual((5.0, 2.0, 4), tuple(cured.reduce(parts, "sum,max,count").values()))
        self.assertEqual(4, cured.partial(parts, "sum").count)
        self.refused(ValueError, "argmin", lambda: cured.argmin([numpy.ones(2), m]))
        self.refused(TypeError, "prod of floats needs", lambda: cured.prod([m, numpy.ones(1)]))
        self.refused(TypeError, "first: a list with masked arrays", lambda: cured.partial(parts, "sum", first=3))
        self.assertEqual(4, cured.prod([numpy.ma.masked_array([2, 9], [0, 1]), numpy.array([2])]))

    def test_no_arrays(self):
        """What was a TypeError is the same one."""
        for wrong, name in (([], "list"), ((), "tuple"), ([1, 2], "list"), ((1.5,), "tuple"), ([numpy.ones(1), 3], "list"), ([[1.0]], "list"),
                            (["abc"], "list"), ([None], "list"), ([(1, 2), numpy.ones(2)], "list")):
            for call in (lambda: cured.sum(wrong), lambda: cured.reduce(wrong, "sum,max"), lambda: cured.partial(wrong, "sum"),
                         lambda: cured.reduce_each(wrong, "sum")):
                self.refused(TypeError, "%s: an array is wanted: .*; numpy.asarray" % name, call)
        self.refused(TypeError, "complex128", lambda: cured.sum([numpy.ones(2), numpy.ones(2, complex)]))

    def test_refused_options(self):
        parts = [numpy.ones((2, 2)), numpy.ones((2, 2))]
        for call, words in ((lambda **o: cured.sum(parts, **o), dict(axis=0)), (lambda **o: cured.sum(parts, **o), dict(keepdims=True)),
                            (lambda **o: cured.sum(parts, **o), dict(where=numpy.ones((2, 2), bool))),
                            (lambda **o: cured.reduce(parts, "sum", **o), dict(where=False)),
                            (lambda **o: cured.sum(parts, **o), dict(initial=0)), (lambda **o: cured.sum(parts, **o), dict(out=numpy.empty(()))),
                            (lambda **o: cured.reduce(parts, "sum", **o), dict(axis=(0, 1))), (lambda **o: cured.describe(parts, **o), dict(axis=1)),
                            (lambda **o: cured.partial(parts, "sum", **o), dict(axis=0)), (lambda **o: cured.reduce_each(parts, "sum", **o), dict(out=(numpy.empty(()),)))):
            self.refused(TypeError, "^%s: " % next(iter(words)), lambda: call(**words))
        self.refused(TypeError, "^axis: ", lambda: cured.sum(parts, 0))
        self.refused(TypeError, "^axis: ", lambda: cured.reduce(parts, "sum", 0))
        self.refused(TypeError, "no argument 'axes'", lambda: cured.sum(parts, axes=0))
        self.refused(ValueError, "unknown op", lambda: cured.reduce(parts, "summ"))
        self.refused(TypeError, "first: only a partial", lambda: cured.reduce(parts, "sum", first=0))

    def test_coroutines(self):
        import asyncio

        async def ask():
            async with cured.AsyncClient("embedded:") as client:
                return await client.sum([numpy.ones(3)])
        self.refused(TypeError, "AsyncClient takes no lists", lambda: asyncio.run(ask()))

    def test_calls_from_inside(self):
        inner = []
        inner.append(inner)
        self.refused(TypeError, "an array is wanted", lambda: cured.sum(inner))


class Partials(Case):
    def test_positions(self):
        a = numpy.arange(50, dtype="f4")
        parts = [a[:20], a[20:20], a[20:30]]
        self.assertEqual(cured.partial(a[:30], "sum,argmax"), cured.partial(parts, "sum,argmax"))
        self.assertEqual(cured.partial(a[:30], "sum,argmax", first=7), cured.partial(parts, "sum,argmax", first=7))
        self.assertEqual(cured.partial(a[:30], "sum", first=None), cured.partial(parts, "sum", first=None))
        rest = cured.partial([a[30:]], "sum,argmax", first=30)
        self.assertEqual({"sum": 1225.0, "argmax": 49}, dict(cured.merge([rest, cured.partial(parts, "sum,argmax")]).finish("sum,argmax")))
        for first in (-1, 2**63, 1.5, "x"):
            with self.assertRaises((ValueError, TypeError)):
                cured.partial(parts, "sum", first=first)

    def test_several_types(self):
        parts = [numpy.ones(2, "f4"), numpy.ones(3, "f8")]
        made = cured.partial(parts, "sum,max")
        self.assertEqual(("f64", 5), (made.dtype, made.count))
        self.assertEqual(made, cured.partial(numpy.ones(5), "sum,max"))
        for first in (None, 0, 7):
            self.assertEqual(cured.partial(numpy.ones(5), "sum,max", first=first), cured.partial(parts, "sum,max", first=first))
        self.refused(TypeError, "first: a list with masked arrays", lambda: cured.partial([numpy.ma.masked_array([1.0], [0])], "sum", first=0))


class SeveralTypes(Case):
    def test_floats(self):
        """The bits of the widest type, to which each element goes exactly."""
        random = numpy.random.default_rng(3)
        for kinds in ("f2 f4", "f4 f8", "f2 f8", "f8 f2 f4 f8 f2"):
            for special in ([], [numpy.nan], [numpy.inf], [numpy.inf, -numpy.inf]):
                parts = [elements(random, kind, 300) for kind in kinds.split()]
                parts[0][100:100 + len(special)] = special
                whole = numpy.concatenate([part.astype("f8") for part in parts])
                for nan in ("propagate", "skip"):
                    self.assert_answers(cured.reduce(whole, JOINED, nan=nan), cured.reduce(parts, JOINED, nan=nan), kinds)

    def test_bfloat16(self):
        wide = numpy.array(BF16_VALUES)
        for other in ("f2", "f4", "f8"):
            a = elements(numpy.random.default_rng(4), other, 50)
            whole = numpy.concatenate([wide, a.astype("f8")])
            self.assert_answers(cured.reduce(whole, JOINED), cured.reduce([bf16_of(BF16_VALUES), a], JOINED), other)
        self.assertEqual("f32", cured.partial([bf16_of([1.0]), numpy.ones(1, "f2")], "sum").dtype)

    def test_every_element_of_f16(self):
        a = numpy.arange(2**16, dtype="u2").view("f2")
        a = a[numpy.isfinite(a)]
        for chunk in numpy.array_split(a, 40):
            for wide in ("f4", "f8"):
                self.assert_answers(cured.reduce(chunk.astype(wide), JOINED), cured.reduce([chunk, numpy.ones(0, wide)], JOINED))

    def test_integers(self):
        random = numpy.random.default_rng(5)
        for kinds in ("? u1", "i1 i2", "u1 i1", "u2 i4", "u4 i8 i1", "? u8 u2", "i8 i1 u1 ? i4"):
            parts = [elements(random, kind, 300) for kind in kinds.split()]
            wide = numpy.result_type(*parts)
            whole = numpy.concatenate([part.astype(wide) for part in parts])
            ops = [op for op in JOINED if op != "count_nan"] + ["bit_and", "bit_or", "bit_xor", "prod"]
            self.assert_answers(cured.reduce(whole, ops, overflow="wrap"), cured.reduce(parts, ops, overflow="wrap"), kinds)
            self.assertEqual(cured.partial(whole, ops), cured.partial(parts, ops))

    def test_refused(self):
        floats, doubles = numpy.ones(4096, "f4"), numpy.ones(2)
        self.refused(TypeError, "i32, f64: floats and integers are not one array", lambda: cured.sum([doubles, numpy.ones(2, "i4")]))
        self.refused(TypeError, "bool, f64: floats and integers", lambda: cured.sum([doubles, numpy.ones(2, "?")]))
        self.refused(TypeError, "i32, u64: .* no type holds all", lambda: cured.sum([numpy.ones(2, "u8"), numpy.ones(2, "i4")]))
        self.refused(ValueError, "prod: of floats of one type, .* cast the arrays to f64", lambda: cured.prod([floats, doubles]))

    def test_oracle(self):
        """Not by cured's own whole alone."""
        a, b = numpy.array([1e-40, 3.4e38, -0.1], "f4"), numpy.array([1e-300, -1e300, 0.1])
        raw = numpy.concatenate([a.astype("f8"), b]).tobytes()
        for op in JOINED:
            self.check_oracle(lambda: getattr(cured, op)([a, b]), op, "f64", raw)
        self.assertEqual("f64", oracle.answer("sum", "f64", raw)[1])


class Each(Case):
    def test_each(self):
        parts = [numpy.arange(5), numpy.array([1.5, numpy.nan]), b"abc"]
        got = cured.reduce_each(parts, ["sum", "max"])
        self.assertEqual([10, 294], [got[0].sum, got[2].sum])
        self.assertEqual(str([dict(cured.reduce(p, "sum,max")) for p in parts]), str([dict(r) for r in got]))
        self.assertEqual([3.0], [r.sum for r in cured.reduce_each((numpy.array([3, numpy.nan]),), "sum", nan="skip")])
        rows = cured.reduce_each([numpy.ones((2, 3)), numpy.ones((4, 3))], "sum", axis=1)
        self.assertEqual([(2,), (4,)], [r.sum.shape for r in rows])

    def test_no_answer(self):
        self.refused(ValueError, "min of no", lambda: cured.reduce_each([numpy.ones(0)], "min")[0].min)


class Gpus(Case):
    """Which arrays go to the extension's fold of several CUDA tensors, which here is a stand-in."""

    class Array:
        def __init__(self, values, device):
            self.values, self.is_cuda = numpy.array(values), True
            self.dtype = self.values.dtype
            self.device = type("Device", (), {"index": device})()

    def setUp(self):
        self.asked = []

        def fold(arrays, ops, first):
            self.asked.append(([a.device.index for a in arrays], first))
            return cured.partial([a.values for a in arrays], ops, first=first)
        before = getattr(cured._cured, "_cuda_partial", None)
        cured._cured._cuda_partial = fold
        self.addCleanup(lambda: setattr(cured._cured, "_cuda_partial", before) if before else delattr(cured._cured, "_cuda_partial"))

    def test_grouped(self):
        parts = [self.Array([1.0, 2.0], 0), numpy.array([9.0]), self.Array([3.0], 1), self.Array([4.0], 0)]
        self.assertEqual(19.0, cured.sum(parts))
        self.assertEqual([([0, 0], None), ([1], None)], self.asked)

    def test_in_order(self):
        parts = [self.Array([1.0, 2.0], 0), self.Array([3.0], 0), numpy.array([9.0]), self.Array([4.0], 0)]
        self.assertEqual(3, cured.argmax(parts))
        self.assertEqual([([0, 0], 0), ([0], 4)], self.asked)

    def test_types_apart(self):
        parts = [self.Array(numpy.ones(2, "f4"), 0), self.Array(numpy.ones(1), 0), self.Array(numpy.ones(4, "f4"), 0)]
        self.assertEqual(7.0, cured.sum(parts))
        self.assertEqual([([0, 0], None), ([0], None)], self.asked)


if __name__ == "__main__":
    unittest.main()
