"""Lists of arrays are one array: the bits of the whole for all ops, types and cuts; arrays of several types are one of the widest; and
what is refused, with each option."""
import mmap
import os
import pickle
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

    def test_options_of_a_partial(self):
        """An option that no op takes is refused as of one array, and any other is checked and says nothing of the state."""
        for a in (numpy.arange(6.0), numpy.arange(6), numpy.arange(6, dtype="f4")):
            for ops in ("sum", "var", "prod", "var,prod", "max"):
                for options in ({"ddof": 1}, {"correction": 2}, {"overflow": "wrap"}, {"dtype": "f4"}, {"dtype": "i2"}, {"dtype": "f4", "overflow": "wrap"}, {"nan": "skip"},
                                {"ddof": 0}, {"nan": "no"}, {"overflow": "no"}, {"dtype": "no"}, {"ddof": 0.5}, {"ddof": "1"}):
                    made = []
                    for asked in (a, [a], [a[:0], a]):
                        try:
                            made.append(cured.partial(asked, ops, **options))
                        except (TypeError, ValueError) as error:
                            made.append((type(error), str(error)))
                    self.assertEqual([made[0]] * 3, made, (a.dtype, ops, options))
        for part in (numpy.ones(3), bf16_of([1.0, 2.0])):
            self.assertEqual(cured.partial(part, "digest,var", first=5, ddof=1), cured.partial([part], "digest,var", first=5, ddof=1))
            self.refused(ValueError, "dtype: none of the ops takes it", lambda: cured.partial([part], "max", dtype="f4"))
        self.refused(ValueError, "ddof: none of the ops takes it", lambda: cured.partial([numpy.ones(2, "i2"), numpy.ones(2)[:0].astype("i4")], "sum", ddof=1))

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
        whole = numpy.ma.masked_array([1, 5, 2], [0, 1, 0])
        for ask in (lambda ops: cured.reduce([numpy.ones(2, int), whole], ops), lambda ops: cured.reduce_parts([numpy.ones(2, int), whole], ops)):
            self.refused(ValueError, "^ops: argmin goes by the places", lambda: ask("prod,argmin"))
            self.refused(ValueError, "^op digest is of all", lambda: ask("prod,digest"))
            self.assertEqual(2, ask("prod,count").prod)
        self.refused(TypeError, "first: a list with masked arrays", lambda: cured.partial(parts, "sum", first=3))
        self.assertEqual(4, cured.prod([numpy.ma.masked_array([2, 9], [0, 1]), numpy.array([2])]))

    def test_no_arrays(self):
        """By the first a list is one of numbers (test_numbers.py) or of arrays. Each of reduce_each is an array."""
        for wrong, name in (([numpy.ones(1), 3], "list"), (["abc"], "list"), ((None,), "tuple"), ([numpy.ones(2), (1, 2)], "list")):
            for call in (lambda: cured.sum(wrong), lambda: cured.reduce(wrong, "sum,max"), lambda: cured.partial(wrong, "sum")):
                self.refused(TypeError, "%s: an array is wanted: .*; numpy.asarray" % name, call)
        for wrong, name in (([], "list"), ((), "tuple"), ([1, 2], "list"), ((1.5,), "tuple"), ([[1.0]], "list"), ([numpy.ones(1), 3], "list")):
            self.refused(TypeError, "%s: an array is wanted: .*; numpy.asarray" % name, lambda: cured.reduce_each(wrong, "sum"))
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
        of_rows = dict(keys=numpy.zeros(2, int), groups=1, drop=True, offsets=numpy.array([0, 2]))
        for name, value in of_rows.items():
            for call in (cured.sum, cured.describe, lambda p, **o: cured.reduce(p, "sum", **o), lambda p, **o: cured.partial(p, "sum", **o)):
                self.refused(TypeError, "^%s: a list of arrays takes none" % name, lambda: call(parts, **{name: value}))
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

    def test_sequence(self):
        """As the list of the Results. tests/python/test_cuda_lists.py has those of a GPU."""
        self.assert_sequence(cured.reduce_each([numpy.arange(k, k + 3) for k in range(7)], "sum,max"),
                             [cured.reduce(numpy.arange(k, k + 3), "sum,max") for k in range(7)])
        self.refused(TypeError, "cannot create", type(cured.reduce_each([b"a"], "sum")))
        self.refused(TypeError, "list of Results", lambda: cured._cured._results(()))

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


def example():
    """What docs/PARTIALS.md shows.

    >>> import numpy as np, cured
    >>> parts = np.array_split(np.arange(10.0), 3)
    >>> search = cured.Search("f8", [0.5, 0.9])
    >>> while search.asked:
    ...     search.next(sum(search.count(part) for part in parts))
    >>> search.answer
    array([4.5, 8.1])
    """


class Searches(Case):
    """Medians and quantiles of lists: by counts of every array, which are added."""

    def parts(self):
        r = numpy.random.default_rng(11)
        a = r.standard_normal((60, 5)).astype("f4")
        a.flat[7] = numpy.inf
        yield a, a
        yield numpy.asfortranarray(a)[::2], a[::2]
        yield a.astype(">f4"), a
        yield numpy.zeros(0, "f4"), numpy.zeros(0, "f4")
        yield numpy.array(5, "f4"), numpy.array(5, "f4")
        mask = r.random(a.shape) < 0.4
        yield numpy.ma.masked_array(a, mask), a[~mask]
        b = r.standard_normal(3_000_000).astype("f4")  # beyond what is folded without the pool
        yield b, b
        numpy.save(self.path, b[:5000].reshape(50, 100).T.astype(">f4"))
        yield cured.file(self.path), b[:5000]

    def test_are_those_of_the_whole(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.path = os.path.join(folder, "a.npy")
        pairs = list(self.parts())
        arrays, whole = [pair[0] for pair in pairs], numpy.concatenate([numpy.ravel(pair[1]) for pair in pairs])
        many = numpy.linspace(0, 1, 70)
        for client in (cured, cured.Client("embedded:"), cured.Client("embedded:", threads=3)):
            self.assertEqual(cured.median(whole), client.median(arrays))
            self.assertEqual(cured.median(whole), client.median(tuple(arrays[::-1])))
            self.assertEqual(cured.quantile(whole, many, method="nearest").tobytes(), client.quantile(arrays, many, method="nearest").tobytes())
        self.assertEqual(cured.quantile(whole, 0.3, dtype="f4"), cured.quantile(arrays, 0.3, dtype="f4"))
        self.assertEqual(cured.quantile(whole, [[0.3]], dtype="f2").tobytes(), cured.quantile(arrays, [[0.3]], dtype="f2").tobytes())
        self.assertEqual(cured.percentile(whole, 99), cured.percentile(arrays, 99))
        self.assertEqual(cured.nanmedian([whole, numpy.full(3, numpy.nan, "f4")]), cured.median(whole))
        self.assertTrue(numpy.isnan(cured.median([whole, numpy.full(3, numpy.nan, "f4")])))
        wanted, got = (dict(cured.reduce(x, "sum,median,count,quantile")) for x in (whole, arrays))
        self.assertEqual(wanted, got)
        self.assertEqual({"median": cured.median(whole, dtype="f4"), "min": cured.min(whole)}, dict(cured.reduce(arrays, "median,min", dtype="f4")))
        self.assertTrue(numpy.isnan(cured.median([whole[:0], whole[:0]])))

    def test_of_several_types(self):
        a, b, c = numpy.array([[1e300, 3.5]]), numpy.array([2, 4], "f2"), numpy.array([5], ">f4")
        self.assertEqual(cured.median(numpy.array([1e300, 3.5, 2, 4, 5])), cured.median([a, b, c]))
        i, u = numpy.array([-5, 7], "i2"), numpy.arange(250, 255, dtype="u1")
        self.assertEqual(251.0, cured.median([i, u, u[:0]]))
        masked = numpy.ma.masked_array(b, [True, False])
        self.assertEqual(4.0, cured.median([masked, numpy.array([3.0, 5])]))
        with self.assertRaisesRegex(TypeError, "floats and integers are not one array"):
            cured.median([a, i])
        with self.assertRaisesRegex(TypeError, "takes NumPy's: cast the elements of array to f64"):
            cured.median([a, array("f", [1])])

    def test_refused(self):
        a = numpy.ones(4)
        for error, words, call in ((TypeError, "axis: a list of arrays", lambda: cured.quantile([a, a], 0.5, 0)),
                                   (TypeError, "out: a list", lambda: cured.quantile([a], [0.5], out=numpy.empty(1))),
                                   (TypeError, "where: a list", lambda: cured.median([a, a], where=a > 0)),
                                   (ValueError, "ddof: none of the ops takes it", lambda: cured.median([a], ddof=1)),
                                   (TypeError, "q is missing", lambda: cured.quantile([a])),
                                   (TypeError, "numpy.asarray", lambda: cured.quantile([a, 2], 0.5)),
                                   (ValueError, "partial: op median has none", lambda: cured.partial([a], "median"))):
            with self.assertRaisesRegex(error, words):
                call()

    def test_search(self):
        """Counts of parts, made anywhere, add up in any order; a search can be sent between its reads."""
        r = numpy.random.default_rng(3)
        for dtype in ("f2", "f4", "f8", "i1", "u4", "i8"):
            a = (r.standard_normal(5000) * 50).astype(dtype)
            search, reads = cured.Search(a.dtype, [[0.1, 0.5, 1 / 3]], method="lower"), 0
            while search.asked:
                asked, reads = pickle.loads(pickle.dumps(search.asked)), reads + 1
                parts = [a[:7], a[7:4000].reshape(-1, 3), a[4000:][::-1]]
                search.next(sum(cured.count_part(asked, part) for part in parts))
                search = pickle.loads(pickle.dumps(search))
            self.assertEqual({1: 1, 2: 2, 4: 3, 8: 5}[a.itemsize], reads)
            self.assertEqual(cured.quantile(a, [[0.1, 0.5, 1 / 3]], method="lower").tolist(), search.answer.tolist())
        self.assert_example(example, 5)
        search = cured.Search("f4", nan="skip")
        while search.asked:
            search.next(search.count(numpy.array([3, numpy.nan, 1, 2], "f4"), where=numpy.array([True, True, True, False])))
        self.assertEqual(2.0, search.answer)
        a, search = numpy.ones(3, "f4"), cured.Search("f4")
        odd = numpy.zeros(8 * 2051 + 1, "u1")[1:].view("u8")  # as arrays lie that were sent
        odd[:] = search.count(a)
        search.next(odd)
        while search.asked:
            search.next(search.count(a))
        self.assertEqual(1.0, search.answer)
        for error, words, call in ((ValueError, "the search is over", lambda: search.count(a)), (ValueError, "0 numbers|must be 0", lambda: search.next([])),
                                   (cured.Error, "it is not over", lambda: cured.Search("f4").answer), (ValueError, "limit of a search is 32", lambda: cured.Search("f4", [0.5] * 33)),
                                   (ValueError, "counts elements of f4|counts elements of f32", lambda: cured.Search("f4").count(a.astype("f8"))),
                                   (ValueError, "not what a read of quantiles counts", lambda: cured.count_part(b"CQ", a)),
                                   (ValueError, "must be 2051", lambda: cured.Search("f4").next(a)), (ValueError, "nan", lambda: cured.Search("f4", nan=1)),
                                   (TypeError, "_asked", lambda: cured.median(a, _asked="x"))):
            with self.assertRaisesRegex(error, words):
                call()


if __name__ == "__main__":
    unittest.main()
