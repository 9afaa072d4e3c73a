"""Partials in linear form: vectors of int64 that add up, whatever the cut, and what is refused."""
import math

import numpy as np
from support import Case, cured, unittest

OPS = ["sum", "mean", "sumsq", "norm1", "norm2", "var", "std", "count", "count_nan", "count_inf", "count_nonzero", "any", "all"]
TYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]


def parts(a, count, random):
    cuts = np.sort(random.integers(0, len(a) + 1, count - 1))
    return np.split(a, cuts)


class Linear(Case):
    def test_ranks_of_any_number(self):
        """One to seven ranks, random cuts: one set of bits, which is that of the whole."""
        random = np.random.default_rng(3)
        for dtype in TYPES:
            a = (random.normal(size=2000) * 10.0 ** random.integers(-3, 4, 2000)).astype(dtype)
            if a.dtype.kind == "f":
                a[::500] = np.nan
            whole = cured.reduce(a, OPS + ["min", "max"], nan="skip")
            for ranks in range(1, 8):
                made = [cured.partial(p, OPS + ["min", "max"], first=None) for p in parts(a, ranks, random)]
                sums = np.sum([p.linear() for p in made], axis=0)
                maxima = np.max([p.linear_max() for p in made], axis=0)
                self.assertEqual("i8", sums.dtype)
                merged = cured.from_linear(sums, a.dtype, OPS + ["min", "max"], maxima)
                self.assertEqual(dict(whole), dict(merged.finish(OPS + ["min", "max"], nan="skip")))
                self.assertEqual(cured.merge(made), merged)

    def test_is_fsum(self):
        a = np.random.default_rng(4).normal(size=1000) * 2.0 ** np.random.default_rng(5).integers(-900, 900, 1000)
        sums = sum(cured.partial(p, "sum").linear() for p in np.split(a, 10))
        self.assertEqual(math.fsum(a), cured.from_linear(sums, "f8", "sum").finish("sum").sum)

    def test_sizes(self):
        for dtype, sums, squares in (("f2", 4, 5), ("f4", 11, 20), ("f8", 68, 134)):
            self.assertEqual(1 + sums + 3, len(cured.partial(np.ones(2, dtype), "sum").linear()))
            self.assertEqual(1 + squares + 3, len(cured.partial(np.ones(2, dtype), "sumsq").linear()))
        self.assertEqual((1, 4), tuple(map(len, (cured.partial(np.ones(2), "min").linear(), cured.partial(np.ones(2), "min").linear_max()))))
        self.assertEqual(0, len(cured.partial(np.ones(2), "sum").linear_max()))

    def test_infinities_and_nothing(self):
        for values, answer in (([np.inf, 1], np.inf), ([np.inf, -np.inf], np.nan), ([], 0.0), ([-np.inf], -np.inf)):
            a = np.array(values)
            p = cured.partial(a, ["sum", "max"], first=None)
            got = cured.from_linear(p.linear(), "f8", ["sum", "max"], p.linear_max()).finish("sum").sum
            self.assertEqual(str(answer), str(got))

    def test_refused(self):
        a = np.ones(3)
        for ops, words in (("prod", "products have no linear form"), ("argmin", "without a position"), ("bit_or", "bits have no linear form")):
            with self.assertRaisesRegex(ValueError, words):
                cured.from_linear(np.zeros(72, "i8"), "i4" if ops == "bit_or" else "f8", ops)
        with self.assertRaisesRegex(ValueError, "products have no linear form"):
            cured.partial(a, "prod").linear()
        with self.assertRaisesRegex(ValueError, "sums: 5 numbers, must be 72"):
            cured.from_linear(np.zeros(5, "i8"), "f8", "sum")
        with self.assertRaisesRegex(ValueError, "maxima: 0 numbers, must be 4"):
            cured.from_linear(np.zeros(1, "i8"), "f8", "max")
        with self.assertRaisesRegex(ValueError, "elements"):
            cured.from_linear(np.full(72, -1), "f8", "sum")
        for wrong in (np.zeros(72), np.zeros((72, 1), "i8"), np.zeros(144, "i8")[::2], np.zeros(72, ">i8")):
            with self.assertRaisesRegex(TypeError, "array: a contiguous array of int64"):
                cured.from_linear(wrong, "f8", "sum")


def example():
    """
>>> import numpy as np, cured
>>> v = cured.partial(np.array([1.5, -2], "f4"), "sum").linear()
>>> v.tolist()
[2, 0, 0, 0, 0, 4293918720, 4294967295, 4294967295, 4294967295, 4294967295, 4294967295, -1, 0, 0, 0]
>>> cured.from_linear(v + v, "f4", "sum").finish("sum").sum
-1.0
    """


class Page(Case):
    def test_example(self):
        """That of docs/PARTIALS.md."""
        self.assert_example(example, 3 + 1)


if __name__ == "__main__":
    unittest.main()
