"""Lists of Python's numbers: each call answers as of the array that NumPy makes of the list, by every door; no integer is rounded on the way."""
import asyncio
import os
import subprocess
import sys

from support import PACKAGE, Case, cured, numpy, unittest

WHOLE = {
    "one": [3, 1, 2], "tuple": (3, 1, 2), "range": range(5, -7, -3), "floats": [0.1] * 10 + [float("nan"), -0.0], "mixed": [1, 2.5, True], "bools": [True, False],
    "rows": [[1, 2, 3], [4, 5, 6]], "tuples": ((1.5, 2), [3, 4]), "deep": [[[1], [2]], [[3], [4]]], "empty": [], "no rows": [[], []], "scalars": [numpy.float64(1), 2],
    "largest": [2**64 - 1, 0], "least": [-2**63, 2**63 - 1], "above": [2**63, 1], "beside": [2**53, 0.5],
}
OPS = ("sum", "mean", "max", "argmin", "sumsq", "norm2", "std", "count_nonzero", "all", "prod", "digest", "median")


def array_of(given):
    """NumPy's, which makes floats of integers beside one of 2^63 or more."""
    return numpy.asarray(given, "u8" if given in (WHOLE["largest"], WHOLE["above"]) else None)


class Numbers(Case):
    def same(self, wanted, call):
        """Whether two calls answer alike, or are refused by the same sentence."""
        try:
            expected = wanted()
        except Exception as error:
            with self.assertRaises(type(error)) as caught:
                call()
            self.assertEqual(str(error), str(caught.exception))
            return
        got = call()
        self.assertEqual(type(expected), type(got))
        self.assertEqual(repr(expected), repr(got))

    def test_every_op(self):
        for name, given in WHOLE.items():
            for op in OPS:
                with self.subTest((name, op)):
                    function, array = getattr(cured, op), array_of(given)
                    self.same(lambda: function(array), lambda: function(given))
                    self.same(lambda: function(array, axis=0), lambda: function(given, axis=0))

    def test_every_option(self):
        rows, array = WHOLE["rows"], array_of(WHOLE["rows"])
        for options in (dict(axis=1), dict(axis=(0, 1)), dict(keepdims=True), dict(axis=0, keepdims=True), dict(where=[[True, False, True]] * 2), dict(dtype="f32"),
                        dict(axis=0, where=[True, False, True]), dict(keys=[1, 0], groups=2), dict(offsets=[0, 1, 2]), dict(initial=7), dict(min_count=9), dict(axis=5), dict(nulls="error")):
            with self.subTest(options):
                self.same(lambda: cured.sum(array, **options), lambda: cured.sum(rows, **options))
        for options in (dict(ddof=1), dict(ddof=0.5), dict(axis=0, ddof=1)):
            self.same(lambda: cured.var(array, **options), lambda: cured.var(rows, **options))
        out = numpy.empty(2, "i8")
        self.assertIs(out, cured.sum(rows, axis=1, out=out))
        self.assertEqual([6, 15], out.tolist())
        self.assertEqual(numpy.float64(2.0), cured.mean([1.0, float("nan"), 3.0], nan="skip"))

    def test_every_door(self):
        rows, array = WHOLE["rows"], array_of(WHOLE["rows"])
        with cured.Client("embedded:") as client:
            for who in (cured, client):
                for ask in (lambda a: who.reduce(a, "sum,max"), who.describe, lambda a: bytes(who.partial(a, "sum,max")), lambda a: who.quantile(a, 0.3),
                            lambda a: who.quantile(a, [0.1, 0.9], axis=0), lambda a: who.dot(a, a), lambda a: who.sqdist(a, a), lambda a: who.median(a, axis=1)):
                    self.same(lambda: ask(array), lambda: ask(rows))
        for ask in (cured.minmax, cured.ptp, cured.nanmean, lambda a: cured.percentile(a, 30), lambda a: cured.linear(a, "sum").tolist(), lambda a: cured.average(a, weights=a),
                    lambda a: cured.average(a, 1, [1, 2, 3]), lambda a: cured.vecdot(a, a), lambda a: cured.vecdot(a, [1, 2, 3]), lambda a: cured.nanmedian(a, axis=0),
                    lambda a: cured.merge([cured.partial(a, "sum"), cured.partial(a, "sum", first=6)]).finish(["sum"])):
            self.same(lambda: ask(array), lambda: ask(rows))
        self.assertEqual(32, cured.dot(numpy.array([1, 2, 3]), [4, 5, 6]))
        self.assertEqual([1, 3], cured.bincount([0, 1, 1, 1]).tolist())

        async def ask():
            async with cured.AsyncClient("embedded:") as client:
                calls = [client.sum([float(k)] * 1000) for k in range(50)]  # whose arrays nobody else holds
                return [await call for call in calls] + [await client.median([3, 1, 2]), await client.sum(rows, axis=0)]
        *sums, median, columns = asyncio.run(ask())
        self.assertEqual([1000.0 * k for k in range(50)], sums)
        self.assertEqual((2.0, [5, 7, 9]), (median, columns.tolist()))

    def test_refused(self):
        big = 2**53 + 1
        endless = []
        endless.append(endless)
        for given, kind, words in (([1.0, big], TypeError, "^a: the integer 9007199254740993 stands among floats, and no float has its value"),
                                   ([[0.5], [-big]], TypeError, "^a: the integer -9007199254740993 stands"), ([0.5, 2**1024], TypeError, "object|stands among floats"),
                                   ([2**64], TypeError, "^a: the list's integers have no type of 64 bits"), ([2**63, -1], TypeError, "no type of 64 bits"),
                                   ([[1, 2], [3]], ValueError, "^a: the list is no array"), ([1.0, numpy.ones(2)], ValueError, "^a: the list is no array"),
                                   ([1.0, None], TypeError, "^a: dtype object is not reduced: the list has a NoneType, which is no bool, int, float or complex number"), ([1.0, "a"], TypeError, "text is not a number"),
                                   ([1.0, numpy.ma.masked], TypeError, "^a: a list has no masked arrays"),
                                   ([[1.0], numpy.ma.masked_array([2.0], [1])], TypeError, "^a: a list has no masked arrays"), (endless, TypeError, "an array is wanted")):
            with self.subTest(repr(given)[:40]):
                for call in (cured.sum, lambda a: cured.reduce(a, "sum,max"), lambda a: cured.partial(a, "sum"), lambda a: cured.quantile(a, [0.5])):
                    with self.assertRaisesRegex(kind, words):
                        call(given)
        with self.assertRaisesRegex(TypeError, "^second: the integer 9007199254740993 stands among floats"):
            cured.dot(numpy.ones(2), [1.0, big])
        for given in ([numpy.ones(2), 3], [None], ["abc"]):
            with self.assertRaisesRegex(TypeError, "list: an array is wanted"):
                cured.sum(given)
        self.assertEqual(10.0, cured.sum([[1.0, 2.0], numpy.array([3.0, 4.0])]))
        with self.assertRaisesRegex(TypeError, "an array is wanted"):  # each would be an array
            cured.reduce_each([1, 2], "sum")

    def test_arrays_are_parts(self):
        """A list whose first is an array is one array in parts, as ever."""
        parts = [numpy.ones(2), numpy.ones(3)]
        self.assertEqual(5.0, cured.sum(parts))
        for call in (lambda: cured.average(parts, weights=[1, 2]), lambda: cured.vecdot(parts, parts)):
            with self.assertRaisesRegex(TypeError, "list: an array is wanted"):
                call()
        self.assertEqual(3.0, cured.sum([numpy.float32(1), numpy.float32(2)]))

    def test_nothing_is_held(self):
        given = [1.0, 2.0]
        before = sys.getrefcount(given)
        for _ in range(100):
            cured.sum(given)
            for wrong in (lambda: cured.sum(given, axis=3), lambda: cured.reduce(given, "summ"), lambda: cured.sum(given, odd=1), lambda: cured.quantile(given, 2)):
                with self.assertRaises((TypeError, ValueError, IndexError)):
                    wrong()
        self.assertEqual(before, sys.getrefcount(given))

    def test_without_numpy(self):
        code = """
import sys
sys.modules["numpy"] = None
import cured
assert cured.sum([0.1] * 10) == 1.0 and cured.sum([1, 2]) == 3 and cured.sum(range(4)) == 6 and cured.sum([]) == 0.0
assert cured.sum([2**64 - 1]) == 2**64 - 1 and cured.any([False, True]) is True and cured.max([-5, 2.5]) == 2.5
for wrong in ([1.0, 2**53 + 1], [2**63, -1], [2**64], [[1.0]], [1.0, "a"], [1j], [1.0, None]):
    try:
        cured.sum(wrong)
    except TypeError as error:
        print(error)
"""
        run = subprocess.run([sys.executable, "-c", code], env=dict(os.environ, PYTHONPATH=PACKAGE), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual("", run.stderr)
        self.assertEqual(["a: an integer stands among floats, and no float has its value"] + ["a: the list's integers have no type of 64 bits"] * 2 +
                         ["a: a list of Python's numbers is wanted; one of other things is an array where NumPy is installed"] * 4, run.stdout.splitlines())


if __name__ == "__main__":
    unittest.main()
