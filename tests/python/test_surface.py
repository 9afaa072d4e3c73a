"""NumPy's and the Array API's surface: a ddof that is no whole number, correction, AxisError, and cured.array_api. The oracle of variances
is made of Fractions, and rounds by itself."""
import math
import os
import tempfile
import unittest
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy
from support import Case, cured

import cured.array_api as xp


def variance(elements, ddof):
    """The exact variance; None: it is not a number."""
    elements = list(elements)
    if not all(map(math.isfinite, elements)) or len(elements) - Fraction(ddof) <= 0 or not elements:
        return None
    exact = list(map(Fraction, elements))
    mean = sum(exact) / len(exact)
    return sum((x - mean) ** 2 for x in exact) / (len(exact) - Fraction(ddof))


def nearest(exact, dtype, root):
    """The number of the type next to a Fraction, or to its root: of the two neighbours of an estimate, by exact distances."""
    if exact is None:
        return math.nan
    with localcontext() as context:
        context.prec = 2000
        value = Decimal(exact.numerator) / Decimal(exact.denominator)
        value = Fraction(value.sqrt()) if root else exact
    with numpy.errstate(over="ignore", under="ignore"):
        guess = numpy.dtype(dtype).type(float(value) if value < Fraction(2) ** 1023 else math.inf)
        candidates = [g for g in (numpy.nextafter(guess, numpy.dtype(dtype).type(0)), guess, numpy.nextafter(guess, guess.dtype.type(math.inf)))
                      if math.isfinite(g)]
    whole = {8: "u8", 4: "u4", 2: "u2"}[guess.dtype.itemsize]
    return float(min(candidates, key=lambda c: (abs(Fraction(float(c)) - value), int(c.view(whole)) & 1)))  # of two as near the even one


class Ddof(Case):
    def setUp(self):
        self.random = numpy.random.default_rng(20261127)

    def test_values(self):
        for dtype in ("f8", "f4", "f2", "i8", "u1", "?"):
            for n in (1, 2, 3, 50):
                for scale in (1, 1e-3):
                    a = (self.random.standard_normal(n) * 9 * scale).astype(dtype)
                    for ddof in (0.5, 1.5, -0.25, 0.1, 2.75, -1, -1.0, numpy.int8(-2)):
                        exact = variance(a.tolist(), float(ddof))
                        self.assert_same(nearest(exact, "f8", False), cured.var(a, ddof=ddof), (a, ddof))
                        self.assert_same(nearest(exact, "f8", True), cured.std(a, correction=ddof), (a, ddof))
                        for kind in ("f4", "f2"):
                            self.assert_same(nearest(exact, kind, True), cured.std(a, ddof=ddof, dtype=kind), (a, ddof, kind))

    def test_extreme_values(self):
        for a in (numpy.array([5e-324, 0]), numpy.array([1e-160, 3e-160]), numpy.array([1e150, -1e150])):
            for root in (False, True):
                exact = variance(a.tolist(), 0.5)
                op = cured.std if root else cured.var
                self.assert_same(nearest(exact, "f8", root), op(a, ddof=0.5))
        self.assertEqual(math.inf, cured.var(numpy.array([1e200, -1e200]), ddof=0.5))
        self.assertEqual(math.inf, cured.std(numpy.array([1e5, -1e5]), ddof=0.5, dtype="f2"))
        for special in (math.nan, math.inf, -math.inf):
            self.assertTrue(math.isnan(cured.var(numpy.array([1, 2, special]), ddof=0.5)))
        self.assertEqual(cured.var(numpy.array([1.0, 2]), ddof=0.5), cured.nanvar(numpy.array([1, 2, math.nan]), ddof=0.5))
        self.assertTrue(math.isnan(cured.var(numpy.zeros(0), ddof=0.5)))
        self.assertEqual(0.0, cured.std(numpy.ones(9), ddof=0.5))

    def test_whole_numbers_that_are_floats(self):
        a = self.random.standard_normal((4, 5))
        for ddof in (1.0, numpy.float32(2), numpy.int8(1)):
            self.assert_same(cured.var(a, ddof=int(ddof)), cured.var(a, ddof=ddof))
            self.assert_arrays(cured.std(a, 1, ddof=int(ddof)), cured.std(a, 1, correction=ddof))
        with cured.Client("embedded:") as client:
            self.assert_same(cured.var(a, ddof=1), client.var(a, correction=1.0))
            self.assert_same(cured.var(a, ddof=0.5), client.var(a, ddof=0.5))

    def test_along_axes_and_with_others(self):
        a, keep = self.random.standard_normal((4, 5, 3)), self.random.random((4, 5, 3)) < 0.7
        for axis in (0, -1, (0, 2), (0, 1, 2), ()):
            stay = [k for k in range(3) if k not in [i % 3 for i in (axis if isinstance(axis, tuple) else (axis,))]]
            for keepdims in (False, True):
                got = cured.var(a, axis, ddof=0.5, keepdims=keepdims)
                self.assertEqual(numpy.shape(a.var(axis, keepdims=keepdims)), numpy.shape(got))
                turned = numpy.moveaxis(a, stay, range(len(stay)))
                rows = turned.reshape(math.prod(turned.shape[:len(stay)]), -1)
                if axis != ():  # variances of one element are 0
                    self.assertEqual([nearest(variance(row.tolist(), 0.5), "f8", False) for row in rows], numpy.ravel(got).tolist())
        masked = numpy.ma.masked_array(a, ~keep)
        self.assert_same(nearest(variance(a[keep].tolist(), 0.5), "f8", False), cured.var(a, ddof=0.5, where=keep))
        self.assert_same(cured.var(a, ddof=0.5, where=keep), cured.var(masked, ddof=0.5))
        self.assert_arrays(cured.std(a, 1, ddof=0.5, where=keep), cured.std(masked, 1, ddof=0.5))
        out = numpy.empty(3, "f4")
        self.assertIs(out, cured.var(a, (0, 1), ddof=0.5, out=out))
        self.assert_arrays(cured.var(a, (0, 1), ddof=0.5, dtype="f4"), out)
        r = cured.reduce(a, "mean,var,std", axis=0, ddof=0.5)
        self.assertEqual(["mean", "var", "std"], list(r))
        self.assert_arrays(cured.mean(a, 0), r.mean)
        self.assert_same(cured.var(a, ddof=0.5), cured.var([a[:1], a[1:]], ddof=0.5))
        self.assertTrue(math.isnan(cured.var(a, ddof=0.5, min_count=61)))
        self.assert_same(cured.var(a, ddof=0.5), cured.var(a, ddof=0.5, min_count=60))

    def test_by_key(self):
        a, keys = self.random.standard_normal((60, 2)), self.random.integers(-1, 4, 60)
        keep = self.random.random((60, 2)) < 0.7
        a[keys == 2, 0] = math.nan

        def wanted(columns, dtype="f8", root=False):
            return numpy.array([[nearest(variance(x.tolist(), 1.5), dtype, root) for x in columns(k)] for k in range(6)], dtype)
        plain = wanted(lambda k: a[keys == k].T)
        asked = dict(keys=keys, groups=6, drop=True, ddof=1.5)  # groups 4 and 5 are empty
        self.assertEqual((1, 3), (numpy.isnan(plain[2]).sum(), numpy.isfinite(plain[:, 0]).sum()))
        self.assert_arrays(plain, cured.var(a, **asked))
        self.assert_arrays(wanted(lambda k: a[keys == k].T, "f4", True), cured.std(a, dtype="f4", **asked))
        masked = wanted(lambda k: [x[m] for x, m in zip(a[keys == k].T, keep[keys == k].T)])
        self.assert_arrays(masked, cured.var(a, where=keep, **asked))
        self.assert_arrays(masked, cured.var(numpy.ma.masked_array(a, ~keep), **asked))
        self.assert_arrays(wanted(lambda k: [x[~numpy.isnan(x)] for x in a[keys == k].T]), cured.var(a, nan="skip", **asked))
        out = numpy.empty((6, 2), "f4")
        self.assertIs(out, cured.var(a, out=out, **asked))
        self.assert_arrays(wanted(lambda k: a[keys == k].T, "f4"), out)
        found = cured.reduce(a, "count,std,var", **asked)
        self.assertEqual(["count", "std", "var"], list(found))
        self.assert_arrays(cured.count(a, keys=keys, groups=6, drop=True), found.count)
        self.assert_arrays(plain, found.var)
        with cured.Client("embedded:") as client:
            self.assert_arrays(plain, client.var(a, **asked))
        few = cured.var(a, min_count=14, **asked)
        count = cured.count(a, keys=keys, groups=6, drop=True)
        self.assert_arrays(numpy.where(count < 14, math.nan, plain), few)
        self.assert_arrays(cured.var(a[:3, 1], ddof=-1, keys=numpy.array([0, 0, 0])), cured.var(a[:3, 1], ddof=-1, keys=[0, 0, 0]))
        self.assert_arrays(numpy.zeros((2, 0)), cured.var(numpy.zeros((3, 0)), ddof=0.5, keys=[0, 0, 1]))

    def test_by_offsets(self):
        a, at = self.random.standard_normal(30).astype("f4"), [0, 1, 8, 8, 25]
        keep = self.random.random(30) < 0.6

        def wanted(of, dtype="f8"):
            return numpy.array([nearest(variance(of(i, j).tolist(), 0.5), dtype, False) for i, j in zip(at, at[1:])], dtype)
        plain = wanted(lambda i, j: a[i:j])
        for offsets in (at, numpy.array(at, "i4"), numpy.array(at, "u8"), numpy.array(at).astype(">i8")):
            self.assert_arrays(plain, cured.var(a, ddof=0.5, offsets=offsets))
        self.assert_arrays(wanted(lambda i, j: a[i:j][keep[i:j]]), cured.var(a, ddof=0.5, offsets=at, where=keep))
        self.assert_arrays(plain, cured.var(numpy.repeat(a, 2)[::2], correction=0.5, offsets=at))
        out = numpy.empty(4, "f2")
        cured.var(a, ddof=0.5, offsets=at, out=out)
        self.assert_arrays(wanted(lambda i, j: a[i:j], "f2"), out)
        b = a.copy()
        b[3] = math.nan
        self.assert_arrays(wanted(lambda i, j: numpy.delete(b[i:j], 3 - i) if i <= 3 < j else b[i:j]), cured.var(b, nan="skip", ddof=0.5, offsets=at))

    def test_what_is_refused(self):
        a = numpy.ones((3, 2))
        for words, ask in (("two names", lambda: cured.var(a, ddof=1, correction=1)), ("a number is wanted", lambda: cured.var(a, ddof="1")),
                           ("finite", lambda: cured.var(a, ddof=math.nan)), ("none of the ops", lambda: cured.sum(a, ddof=0.5)),
                           ("takes no ddof|ddof", lambda: cured.sum(a, ddof=2.0)), ("a partial takes a whole", lambda: cured.partial(a, "var", ddof=0.5)),
                           ("whole number", lambda: cured.partial(a, "var").finish("var", ddof=0.5)), ("initial: not with", lambda: cured.var(a, ddof=0.5, keys=[0, 1, 0], initial=1)),
                           ("keys: number 1 is 7", lambda: cured.var(a, ddof=0.5, keys=[0, 7, 0], groups=2)), ("axis", lambda: cured.var(a, 0, ddof=0.5, offsets=[0, 1])),
                           ("offsets.1. is 3", lambda: cured.var(a[0], ddof=0.5, offsets=[0, 3])), ("nulls: ", lambda: cured.var(numpy.ma.masked_array([1, 2], [0, 1]), ddof=0.5, offsets=[0, 2], nulls="error")),
                           ("drop|groups", lambda: cured.var(a, ddof=0.5, groups=2)), ("dtype", lambda: cured.var(a, ddof=0.5, dtype="i4"))):
            with self.assertRaisesRegex((TypeError, ValueError), words):
                ask()
        for error in (numpy.AxisError, ValueError, IndexError):
            for ask in (lambda: cured.var(a, 2, ddof=0.5), lambda: cured.sum(a, -3), lambda: cured.quantile(a, 0.5, axis=2), lambda: cured.reduce(a, "sum", (0, 4))):
                with self.assertRaises(error):
                    ask()
        with self.assertRaises(numpy.AxisError) as raised:
            cured.sum(a, -3)
        self.assertEqual((-3, 2), (raised.exception.axis, raised.exception.ndim))


class Words(Case):
    """Sentences name the arguments that Python has, whatever C calls them."""

    def test_arguments(self):
        a, i = numpy.arange(4.0), numpy.arange(4)
        block = {"shape": (8,), "start": (4,)}
        asks = [lambda: cured.max(a, dtype="f4"), lambda: cured.sum(a, dtype="i4"), lambda: cured.sum(a, dtype="f8_e4m3"), lambda: cured.prod(i, dtype="f4", overflow="wrap"),
                lambda: cured.sum(a, 0, dtype="i4", keepdims=True), lambda: cured.sum(a, keys=i, dtype="i4"), lambda: cured.median(a, dtype="i4"), lambda: cured.max([a, a], dtype="f4"),
                lambda: cured.Search("f8", 0.5, dtype="i4"), lambda: cured.partial(a, "max").finish("max", dtype="f4"), lambda: cured.partial(a, "max", keys=i).finish("max", dtype="f4"),
                lambda: cured.partial(i, "sum", keys=i, **block), lambda: cured.partial(i, "sum", shape=(8,), start=(5,)), lambda: cured.partial(a, "prod", **block),
                lambda: cured.partial(a, "sum", shape=(2**62,), start=(4,)), lambda: cured.partial(a, "dot", second=a, **block), lambda: cured.partial(a, "sum", first=None, **block)]
        with cured.Client("embedded:") as client:
            asks += [lambda: client.max(a, dtype="f4"), lambda: client.partial(a, "prod", **block)]
            for n, ask in enumerate(asks):
                with self.assertRaisesRegex((TypeError, ValueError), r"dtype|shape|start") as raised:
                    ask()
                self.assertNotRegex(str(raised.exception), r"result_dtype|layout|unplaced", n)
        with self.assertRaisesRegex(ValueError, "^op sum of f64 takes a dtype of f16, bf16, f32 or f64, not i32$"):
            cured.sum(a, dtype="i4")
        with self.assertRaisesRegex(ValueError, "^shape, start: along axis 0, 4 elements from 5 on lie outside the array's 8$"):
            cured.partial(i, "sum", shape=(8,), start=(5,))

    def test_a_path_stays_as_it_is(self):
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                for name in ("layout", "a result_dtype"):
                    with open(name, "wb") as f:
                        f.write(b"{}")
                    with self.assertRaisesRegex(ValueError, "^" + name + ": "):
                        cured.weights(name)
            finally:
                os.chdir(before)


class Sentences(Case):
    """Each is said once, and says what to do."""

    def test_an_axis_that_is_not_there(self):
        with self.assertRaisesRegex(numpy.AxisError, "^axis 1 is out of bounds for array of dimension 1$"):
            cured.sum(numpy.arange(3), 1)

    def test_integers_that_do_not_fit(self):
        large = numpy.full((2, 3), 2**62)
        for ask in (lambda **o: cured.sum(large, 1, **o), lambda **o: cured.dot(large, large, 1, **o), lambda **o: cured.sum(large, keys=[0, 0], **o),
                    lambda **o: cured.sum(large.ravel(), offsets=[0, 6], **o), lambda **o: cured.sum(large, 1, where=large > 0, **o), lambda **o: cured.prod(large[0, :2] * 2, 0, keepdims=True, **o)):
            with self.assertRaisesRegex(OverflowError, "does not fit i64.*; dtype='f8' rounds it$"):
                ask()
            ask(dtype="f8")

    def test_places_that_are_floats(self):
        for name in ("keys", "offsets"):
            with self.assertRaisesRegex(TypeError, "^%s: " % name):
                cured.sum(numpy.arange(2), **{name: [0.0, 1.0]})

    def test_bins_of_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            numpy.save(folder + "/a.npy", numpy.arange(3))
            for name, ask in (("x", cured.bincount), ("a", cured.histogram)):
                with self.assertRaisesRegex(TypeError, r"^%s: a file is no array here: pass numpy.load\(path, mmap_mode='r'\)$" % name):
                    ask(cured.file(folder + "/a.npy"))


class Names(Case):
    """NumPy's names take places as the ops do."""

    def test_by_key_and_by_offsets(self):
        a = numpy.array([1.0, numpy.nan, 3, 4, -2, 9])
        for places in ({"keys": [0, 1, 1, 2, 0, 1]}, {"keys": [0, 1, 1, 5, 0, 1], "groups": 2, "drop": True}, {"offsets": [0, 2, 6]}):
            for op in ("sum", "mean", "min", "max", "argmin", "argmax", "var", "std", "median"):
                self.assert_arrays(getattr(cured, op)(a, nan="skip", **places), getattr(cured, "nan" + op)(a, **places), op)
            self.assert_arrays(cured.quantile(a, 0.3, nan="skip", **places), cured.nanquantile(a, 0.3, **places))
            self.assert_arrays(cured.quantile(a, [0.3], **places), cured.percentile(a, [30], **places))
            self.assert_arrays(cured.quantile(a, 0.3, nan="skip", **places), cured.nanpercentile(a, 30, **places))
            for one, other in zip(cured.minmax(a, **places), (cured.min(a, **places), cured.max(a, **places))):
                self.assert_arrays(one, other)
        self.assert_arrays([1.0, 3.0], cured.nanprod([1.0, 3], offsets=[0, 1, 2]))


class DdofAsked(Case):
    """A fractional ddof is refused, masked and read as a whole one."""

    def test_as_whole_ones(self):
        masked = numpy.ma.masked_array([1.0, 2, 4, 8], [0, 1, 0, 0])
        a = numpy.arange(12.0).reshape(4, 3)
        for ddof in (0.5, 1):
            with self.assertRaisesRegex(ValueError, "nulls"):
                cured.var(masked, ddof=ddof, nulls="error")
            with self.assertRaisesRegex(TypeError, "where: a bool array"):
                cured.var(a, 0, ddof=ddof, where=numpy.array([1, 1, 0]))
            with self.assertRaisesRegex(TypeError, "axis: a list"):
                cured.var([a[0], a[1]], axis=0, ddof=ddof)
            with self.assertRaisesRegex(ValueError, "nulls"):
                cured.var(numpy.ma.masked_array(a, a == 4), 0, ddof=ddof, nulls="error")
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/a.npy"
            numpy.save(path, a)
            with self.assertRaisesRegex(TypeError, "ddof: along an axis of a file a whole number"):
                cured.file(path).var(0, ddof=0.5)
            self.assertEqual(cured.var(a, ddof=0.5), cured.file(path).var(ddof=0.5))

    def test_pairs_that_are_skipped(self):
        """Which of two arrays has the NaN does not tell how many pairs count."""
        a, b = numpy.array([1.0, 2, 3]), numpy.array([1.0, numpy.nan, 3])
        with self.assertRaisesRegex(TypeError, "min_count: not with nan='skip' and two arrays"):
            cured.dot(a, b, nan="skip", min_count=3)
        self.assertEqual(14.0, cured.dot(a, a, min_count=3))


class ArrayApi(Case):
    def setUp(self):
        self.random = numpy.random.default_rng(5)

    def test_types_and_shapes(self):
        """As the standard has them: floats stay, sums of integers have 64 bits."""
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "bool"):
            a = self.random.integers(0, 2, (3, 4, 2)).astype(name)
            wide = name if name[0] == "f" else "uint64" if name[0] == "u" else "int64"
            for axis, keepdims in ((None, False), (0, True), ((0, 2), False), (-1, False), (None, True)):
                shape = numpy.sum(a, axis, keepdims=keepdims).shape
                for op, dtype in (("sum", wide), ("prod", wide), ("min", name), ("max", name), ("any", "bool"), ("all", "bool"), ("count_nonzero", "int64")):
                    got = getattr(xp, op)(a, axis=axis, keepdims=keepdims)
                    self.assertIsInstance(got, numpy.ndarray)
                    self.assertEqual((shape, dtype), (got.shape, got.dtype.name), (op, name, axis))
                    wanted = getattr(numpy, op)(a, axis=axis, keepdims=keepdims)
                    self.assertEqual(numpy.asarray(wanted).tolist(), got.tolist(), (op, name, axis))
                for op in ("mean", "var", "std") if name[0] == "f" else ():
                    got = getattr(xp, op)(a, axis=axis, keepdims=keepdims)
                    self.assertEqual((shape, name), (got.shape, got.dtype.name))
                    self.assertTrue(numpy.allclose(getattr(numpy, op)(a, axis=axis, keepdims=keepdims), got, 1e-6))
            for op in ("argmin", "argmax"):
                for axis, keepdims in ((None, False), (1, False), (1, True)):
                    got = getattr(xp, op)(a, axis=axis, keepdims=keepdims)
                    self.assertEqual((getattr(numpy, op)(a, axis=axis, keepdims=keepdims).tolist(), "int64"), (got.tolist(), got.dtype.name))

    def test_correction_and_dtype(self):
        a = self.random.standard_normal((6, 5)).astype("f4")
        for correction in (0, 1, 1.5, 0.5, 2.0):
            self.assertEqual(nearest(variance(a.ravel().tolist(), correction), "f4", True), float(xp.std(a, correction=correction)))
            self.assertEqual(nearest(variance(a[:, 2].tolist(), correction), "f4", False), float(xp.var(a, correction=correction, axis=0)[2]))
        self.assertEqual("float64", xp.sum(a, dtype=numpy.float64).dtype.name)
        self.assertEqual("int16", xp.sum(numpy.arange(4), dtype=numpy.int16).dtype.name)
        self.assertEqual("float32", xp.prod(numpy.arange(1, 4), dtype=numpy.float32).dtype.name)

    def test_what_is_refused(self):
        for words, ask in (("floating-point", lambda: xp.mean(numpy.arange(3))), ("complex numbers", lambda: xp.prod(numpy.ones(2, complex))), ("floating-point", lambda: xp.var(numpy.ones(2, complex))),
                           ("does not fit int8", lambda: xp.sum(numpy.full(9, 100), dtype=numpy.int8)), ("float64 are not", lambda: xp.sum(numpy.ones(2), dtype=numpy.int64)),
                           ("complex64 are not", lambda: xp.sum(numpy.ones(2, "c8"), dtype=numpy.float64)), ("float64 are not", lambda: xp.sum(numpy.ones(2), dtype=numpy.complex64)),
                           ("positional", lambda: xp.sum(numpy.ones(2), 0)), ("positional-only|argument", lambda: xp.sum(x=numpy.ones(2)))):
            with self.assertRaisesRegex((TypeError, OverflowError), words):
                ask()
        self.assertEqual(12, len(xp.__all__))
        import inspect
        for name in xp.__all__:
            kinds = [p.kind for p in inspect.signature(getattr(xp, name)).parameters.values()]
            self.assertEqual([inspect.Parameter.POSITIONAL_ONLY] + [inspect.Parameter.KEYWORD_ONLY] * (len(kinds) - 1), kinds)

    def test_other_libraries(self):
        """The answer is an array of x's own namespace."""
        class Wrapped:
            def __init__(self, array):
                self.array, self.dtype = array, array.dtype

            def __array_namespace__(self):
                class Space:
                    asarray = staticmethod(Wrapped)
                return Space

            def __dlpack__(self, stream=None):
                return self.array.__dlpack__()

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()
        got = xp.sum(Wrapped(numpy.arange(6.0).reshape(2, 3)), axis=0)
        self.assertIsInstance(got, Wrapped)
        self.assertEqual([3, 5, 7], got.array.tolist())

    def test_bools_that_their_library_hands_on_to_nobody(self):
        class Bools:
            """As in numpy.array_api of NumPy 1.24: no buffer, and DLPack only for numbers."""
            def __init__(self, array):
                self.array, self.dtype = array, array.dtype

            def __dlpack__(self, stream=None):
                raise BufferError("DLPack only supports signed/unsigned integers, float and complex dtypes.")

            def __dlpack_device__(self):
                return (1, 0)

            def __array__(self, dtype=None):
                return self.array
        for shape in ((), (3,), (2, 3), (0, 2)):
            a = numpy.asarray(numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape) % 2 == 0)
            self.assertEqual((a.all(), a.any(), a.sum()), (cured.all(Bools(a)), cured.any(Bools(a)), cured.sum(Bools(a))))
            if shape:
                self.assertEqual(a.any(axis=0).tolist(), numpy.asarray(cured.any(Bools(a), axis=0)).tolist())
        with self.assertRaisesRegex(BufferError, "only supports"):
            cured.sum(Bools(numpy.zeros(3)))


if __name__ == "__main__":
    unittest.main()
