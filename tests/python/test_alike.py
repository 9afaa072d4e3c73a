"""Two arrays of unlike types, and second arrays of which elements are missing: the answer is that of the type that holds both, or a sentence
says why there is none. The oracle is made of Fractions."""
import asyncio
import itertools
import os
import tempfile
from fractions import Fraction

import numpy as np
from support import Case, cured, unittest

RANDOM = np.random.default_rng(331)
TYPES = ("?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8")


def array_of(kind, shape):
    if np.dtype(kind).kind == "f":
        return (RANDOM.standard_normal(shape) * 7).astype(kind)
    return RANDOM.integers(0, 2 if kind == "?" else 100, shape).astype(kind)


def exact(op, a, b):
    pairs = [(Fraction(x.item()), Fraction(y.item())) for x, y in zip(a, b)]
    if op == "sqdist":
        return sum((x - y) ** 2 for x, y in pairs)
    total = sum((x * y for x, y in pairs), Fraction(0))
    return total if op == "dot" else total / sum(y for _, y in pairs)


class Types(Case):
    def test_every_two_types(self):
        for (x, y), op in itertools.product(itertools.product(TYPES, TYPES), ("dot", "sqdist", "average")):
            a, b = array_of(x, (4, 6)), abs(array_of(y, (4, 6))) + (np.dtype(y).type(1) if y != "?" else True)
            function, what = getattr(cured._cured, op), (x, y, op)
            want = exact(op, a.ravel(), b.ravel())
            got = function(a, b)
            self.assertEqual(want if isinstance(got, int) else float(want), got, what)
            rows = function(a, b, 1)
            self.assertEqual([float(exact(op, p, q)) for p, q in zip(a, b)], rows.tolist(), what)
            kind = np.promote_types(x, y).kind
            self.assertEqual("f8" if op == "average" or kind == "f" else "u8" if kind in "ub" else "i8", rows.dtype.str[1:], what)

    def test_what_stands_beside(self):
        a, b, keep = array_of("f4", 60), array_of("i4", 60), RANDOM.random(60) < 0.6
        wide, keys, at = b.astype("f8"), RANDOM.integers(0, 4, 60), [0, 7, 7, 60]
        for op in ("dot", "sqdist"):
            ask = getattr(cured, op)
            for options in ({"where": keep}, {"keys": keys}, {"offsets": at}, {"keys": keys, "where": keep}, {"nan": "skip"}, {"min_count": 3}, {"dtype": "f4"},
                            {"keepdims": True}, {"offsets": at, "where": keep}):
                want = ask(a.astype("f8"), wide, **options)
                self.assert_arrays(want, ask(a, b, **options), (op, options))
                self.assert_arrays(want, ask(a, b.tolist(), **options), (op, options))
                with cured.Client("embedded:") as client:
                    self.assert_arrays(want, getattr(client, op)(a, b, **options), (op, options))
            self.assert_same(ask(a.astype("f8"), wide, where=keep), ask(np.ma.masked_array(a, ~keep), b))
        out = np.empty((), "f4")
        self.assertIs(out, cured.dot(a, b, out=out))
        whole = cured.dot(a, b)
        self.assert_same(whole, cured.reduce(a, "dot,sqdist", second=b).dot)
        parts = [cured.partial(a[s], "dot", second=b[s], first=s.start) for s in (slice(0, 20), slice(20, 60))]
        self.assert_same(whole, cured.merge(parts).finish("dot").dot)

    def test_everyday_averages(self):
        self.assertEqual(2.3, cured.average([1, 2, 3], weights=[0.2, 0.3, 0.5]))
        f4 = np.array([0.5, 1.5, 4], "f4")
        for weights in ([1, 2, 3], [0.25, 0.5, 0.25], np.arange(3), np.arange(3, dtype="u1"), np.ones(3), (1, 2, 2)):
            self.assertEqual(float(exact("average", f4, np.asarray(weights))), cured.average(f4, weights=weights))
            self.assert_arrays(np.full(2, float(exact("average", f4, np.asarray(weights)))), cured.average(np.stack([f4, f4]), axis=1, weights=weights))
            got = cured.average(np.stack([f4, f4], 1), weights=weights, keys=[0, 0, 0])
            self.assert_arrays([[float(exact("average", f4, np.asarray(weights)))] * 2], got)
        self.assertTrue(np.isnan(cured.average([1, 2], weights=[np.nan, 1])))
        z = np.array([1 + 2j, 3, 5j], "c8")
        self.assertEqual(cured.average(z.astype("c16"), weights=[0.5, 0.5, 1]), cured.average(z, weights=[0.5, 0.5, 1]))

    def test_complex(self):
        z, w, x = np.array([1 + 2j, 3.5, -1j]), np.array([2 - 1j, 1j, 3], "c8"), np.arange(3, dtype="i4")
        for a, b in ((z, w), (w, z), (z, x), (x, z), (w, x), (x, w)):
            self.assertEqual(np.sum(a * b), cured.dot(a, b))
            self.assertEqual(float(np.sum(abs(a - b) ** 2).round(12)), round(cured.sqdist(a, b), 12))

    def test_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("there is no pandas (package python3-pandas)")
        counts = pandas.Series([1, 2, None, 4], dtype="Int64")
        self.assertEqual(float(exact("average", np.array([1, 2, 4]), np.array([0.5, 0.25, 2]))), cured.average(counts, weights=pandas.Series([0.5, 0.25, 9, 2])))

    def test_large_integers(self):
        """Where no type holds the elements of both, a sentence says so. Where their values are held all the same, nothing is lost."""
        large, odd = np.array([2**53 + 1, 3]), np.array([1.5, 2])
        self.assertEqual(float(Fraction(2**53 + 1) * 2 + 9), cured.dot(large, np.array([2.0, 3.0])))  # both are integers
        self.assertEqual(np.float64, cured.dot(large, np.array([2.0, 3.0]), 0, keepdims=True).dtype)
        self.assertEqual(float(Fraction(2**60) * 3 / 2 + 6), cured.dot(np.array([2**60, 3]), odd))  # 2^60 is a float64
        for a, b in ((large, odd), (odd, large), (odd.astype("f4"), large), (large.astype("u8"), odd), (np.array([2**64 - 1, 1], "u8"), np.array([-1, 3]))):
            for ask in (cured.dot, cured.sqdist, lambda x, y: cured.reduce(x, "dot", second=y), lambda x, y: cured.dot(x.reshape(1, 2), y.reshape(1, 2), 1)):
                with self.assertRaisesRegex(TypeError, r"^second: it is of \w+, the array of \w+, and neither type, nor f64, holds .*: cast one"):
                    ask(a, b)
        with self.assertRaisesRegex(TypeError, "^weights: they are of i64, the array of f64"):
            cured.average(odd, weights=large)
        self.assertEqual(2.0**64 - 1, cured.dot(np.array([2**64 - 1, 1], "u8"), np.array([1, 0])))
        self.assertEqual(-1.0 * 2**63 - 1, cured.dot(np.array([1, 2**63], "u8"), np.array([-1, -1])))

    def test_the_sign_of_zero(self):
        """A float's -0 is no integer."""
        self.assert_same(cured.dot(np.array([2.0**53 + 2]), np.array([-0.0])), cured.dot(np.array([2**53 + 2]), np.array([-0.0])))

    def test_files(self):
        a = array_of("f4", (3, 5))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.npy")
            np.save(path, a)
            file = cured.file(path)
            ones = np.arange(15).reshape(3, 5)
            self.assert_same(cured.dot(a, ones), file.dot(ones))
            self.assert_same(cured.average(a, weights=ones), cured.average(file, weights=ones))
            with self.assertRaisesRegex(TypeError, r"numpy.load\(path, mmap_mode='r'\)"):
                file.dot(np.full((3, 5), 0.1))

    def test_async(self):
        a, b = array_of("f4", (3, 5)), array_of("i8", (3, 5))

        async def ask():
            async with cured.AsyncClient("embedded:") as client:
                self.assert_same(cured.dot(a, b), await client.dot(a, b))
                self.assert_arrays(cured.sqdist(a, b, 1), await client.sqdist(a, b, 1))
                self.assert_same(cured.dot(a, b), (await client.reduce(a, "dot", second=b)).dot)
                self.assert_same(cured.dot(a, b), (await client.partial(a, "dot", second=b)).finish("dot").dot)
                self.assert_same(cured.dot(a, np.ma.masked_less(b, 50)), await client.dot(a, np.ma.masked_less(b, 50)))
        asyncio.run(ask())

    def test_containers(self):
        try:
            import zarr
        except ImportError:
            self.skipTest("there is no zarr (package python3-zarr)")
        a, b = array_of("f4", (30, 5)), array_of("i4", (30, 5))
        held = zarr.array(a, chunks=(7, 5))
        for second in (b, zarr.array(b, chunks=(9, 2))):
            self.assert_same(cured.dot(a, b), cured.dot(held, second))
            self.assert_arrays(cured.dot(a, b, 1), cured.dot(held, second, 1))
        self.assert_same(cured.dot(a, b), cured.dot(a, zarr.array(b)))
        with self.assertRaisesRegex(TypeError, "cast one"):
            cured.dot(zarr.array(np.array([2**53 + 1, 3])), np.array([1.5, 2]))
        b = np.ma.masked_less(b, 40)
        self.assert_same(cured.dot(a, b), cured.dot(held, b))
        self.assert_arrays(cured.sqdist(a, b, 1), cured.sqdist(held, b, 1))


class Missing(Case):
    """A pair counts where neither of its elements is missing."""

    def test_masked_seconds(self):
        a, b = array_of("f8", (6, 5)), array_of("f8", (6, 5))
        p, q, keep = np.ma.masked_array(a, a < -3), np.ma.masked_array(b, b > 5), RANDOM.random((6, 5)) < 0.8
        for x, y in ((a, q), (p, q), (p, b), (p.astype("f4"), q)):
            both = ~(np.ma.getmaskarray(x) | np.ma.getmaskarray(y))
            x_of, y_of = np.ma.getdata(x), np.ma.getdata(y)
            for op, where in itertools.product(("dot", "sqdist", "average"), (None, keep)):
                ask, m = getattr(cured._cured, op), both if where is None else both & where
                self.assert_same(ask(x_of, y_of, where=m), ask(x, y, where=where), op)
                self.assert_arrays(ask(x_of, y_of, 1, where=m), ask(x, y, 1, where=where), op)
                keys = [0, 1, 0, 2, 1, 0]
                self.assert_arrays(ask(x_of, y_of, keys=keys, where=m), ask(x, y, keys=keys, where=where), op)
                self.assert_same(getattr(cured.partial(x_of, op, second=y_of, where=m).finish(op), op),
                                 getattr(cured.partial(x, op, second=y, where=where, first=None).finish(op), op))
            self.assertTrue(np.isnan(cured.dot(x, y, min_count=int(both.sum()) + 1)))
            self.assertFalse(np.isnan(cured.dot(x, y, min_count=int(both.sum()))))
        np.testing.assert_allclose(cured.dot(p, q), np.ma.sum(p * q))
        with self.assertRaisesRegex(ValueError, "nulls: "):
            cured.dot(a, q, nulls="error")

    def test_masked_weights(self):
        a, w = array_of("f8", (6, 5)), np.ma.masked_array([1.0, 2, 3, 4, 5], [0, 0, 1, 0, 0])
        for got, want in zip(cured.average(a, 1, w, returned=True), np.ma.average(np.ma.masked_array(a), 1, w, returned=True)):
            np.testing.assert_allclose(got, want)
        full = np.ma.masked_array(np.abs(a) + 1, a > 4)
        for got, want in zip(cured.average(a, weights=full, returned=True), np.ma.average(np.ma.masked_array(a), weights=full, returned=True)):
            np.testing.assert_allclose(got, want)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.npy")
            np.save(path, a)
            self.assert_same(cured.average(a, weights=full), cured.average(cured.file(path), weights=full))


class Kept(Case):
    def test_more_than_are_kept(self):
        """The extension keeps what it knows of some types, and asks Python of each further one: what a call raised stays raised."""
        for k in range(300):
            a = np.zeros(3).view(type("Array%d" % k, (np.ndarray,), {}))
            with self.assertRaisesRegex(ValueError, "^second: its shape is not the array's"):
                cured.dot(a, np.zeros(4))


if __name__ == "__main__":
    unittest.main()
