"""Tables: columns of the real pandas and pyarrow, and bfloat16 arrays of ml_dtypes, where they are installed; test_inputs.py has
stand-ins for machines without them."""
import importlib
import re
import unittest

import numpy
from support import Case, cured


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


pandas, pyarrow, ml_dtypes = module("pandas"), module("pyarrow"), module("ml_dtypes")


@unittest.skipUnless(pandas, "there is no pandas")
class Pandas(Case):
    def test_columns(self):
        frame = pandas.DataFrame({"a": numpy.arange(5), "b": numpy.arange(5) / 2, "c": [True, False, True, True, False]})
        self.assertEqual((10, 5.0, 3), (cured.sum(frame["a"]), cured.sum(frame["b"]), cured.count_nonzero(frame["c"])))
        self.assertEqual(4, cured.argmax(frame["b"]))
        self.assertEqual(10, cured.sum(frame.index))

    def test_column_of_a_block(self):
        """Columns of one frame lie side by side: a column has strides."""
        frame = pandas.DataFrame(numpy.arange(20.0).reshape(5, 4))
        self.assertEqual(45.0, cured.sum(frame[1]))

    def test_nullable(self):
        for dtype in ("Int64", "UInt8", "Float32", "boolean"):
            s = pandas.Series([1, 0, 1], dtype=dtype)
            self.assertEqual(2, cured.sum(s))
            s[1] = pandas.NA
            self.assertEqual((2, 2, 0), (cured.sum(s), cured.count(s), cured.argmax(s)))
            self.assertEqual(2, cured.sum([s.iloc[:2], s.iloc[2:]]))
            self.assertEqual(cured.sum(s, axis=0), cured.sum(s.array))
            with self.assertRaisesRegex(ValueError, r"nulls: the array has missing elements, the first at \[1\]"):
                cured.sum(s, nulls="error")
            with self.assertRaisesRegex(TypeError, "where: elements of it are missing" if dtype == "boolean" else "where: "):
                cured.sum(numpy.arange(3), where=s)

    def test_array_of_numpys_type(self):
        """Its NaNs are numbers as others: nothing is missing from it."""
        for values in ([1.0, numpy.nan, 2.0], [1.0, 5.0, 2.0]):
            a, array = numpy.array(values), pandas.Series(values).array
            self.assert_same(cured.sum(a), cured.sum(array))
            self.assert_same(cured.dot(a, a), cured.dot(a, array))
            self.assertEqual(3, cured.count(array, nulls="error"))

    def test_refused(self):
        times = pandas.Series(pandas.to_datetime(["2020-01-01"]))
        for s in (pandas.Series(["x"]), times, times.dt.tz_localize("UTC"), pandas.Series([1, "x"]),
                  pandas.Series(["a"], dtype="category"), pandas.DataFrame({"a": [1]})):
            with self.assertRaises(TypeError):
                cured.sum(s)

    def test_advice_that_works(self):
        """What a refusal says is done here, and gives an answer."""
        times = pandas.Series(pandas.to_datetime(["2020-01-01", "1970-01-01T00:00:01"])).dt.tz_localize("UTC")
        with self.assertRaisesRegex(TypeError, r"datetime64\[ns, UTC\] is not reduced: a.astype\('int64'\)"):
            cured.min(times)
        self.assertEqual(10**9, cured.min(times.astype("int64")))
        kinds = pandas.Series([3, 5, 3], dtype="category")
        with self.assertRaisesRegex(TypeError, r"a.cat.codes are its numbers .*; a.astype\(a.cat.categories.dtype\)"):
            cured.sum(kinds)
        self.assertEqual((1, 11), (cured.sum(kinds.cat.codes), cured.sum(kinds.astype(kinds.cat.categories.dtype))))
        for whole in (kinds.array, pandas.CategoricalIndex(kinds)):  # not a Series
            with self.assertRaisesRegex(TypeError, r": a.codes are its numbers .*; a.astype\(a.categories.dtype\)"):
                cured.sum(whole)
            self.assertEqual((1, 11), (cured.sum(whole.codes), cured.sum(whole.astype(whole.categories.dtype))))
        days = pandas.Series(pandas.period_range("1970-01-03", periods=2, freq="D"))
        for whole in (days, days.array, pandas.PeriodIndex(days)):
            with self.assertRaisesRegex(TypeError, r"period\[D\] is not reduced: a.astype\('int64'\)"):
                cured.max(whole)
            self.assertEqual(3, cured.max(whole.astype("int64")))
        spans = pandas.Series(pandas.interval_range(0, 3))
        with self.assertRaisesRegex(TypeError, "a.array.left and a.array.right"):
            cured.max(spans)
        with self.assertRaisesRegex(TypeError, "its ends, a.left and a.right"):
            cured.max(spans.array)
        self.assertEqual((2, 6), (cured.max(spans.array.left), cured.sum(spans.array.right)))
        naive = times.dt.tz_localize(None)
        with self.assertRaisesRegex(TypeError, r"a.view\('int64'\)"):
            cured.min(naive)
        self.assertEqual(10**9, cured.min(naive.view("int64")))


    def test_advice_for_objects(self):
        """The expressions that refusals name are computed here: each gives an array that is reduced, and its largest element is known."""
        import datetime
        try:
            import xarray
        except ImportError:
            xarray = None
        zone, at = datetime.timezone.utc, datetime.datetime(1970, 1, 1, 0, 0, 5)
        stamps = [pandas.NaT, pandas.Timestamp(2, tz="UTC"), pandas.Timestamp(5, tz="Asia/Tokyo"), None]
        words = pandas.Series(["b", "a", "c"], dtype="category")
        cases = [(self.objects(stamps), 5), (pandas.Series(stamps[1:]), 5), (self.objects(stamps).reshape(2, 2), 5),
                 (pandas.Series(pandas.date_range("1970", periods=3, tz="UTC", freq="N")).to_numpy(), 2),
                 (self.objects([pandas.Timedelta(7)]), 7), (pandas.period_range("1970-01-03", periods=2, freq="D").to_numpy(), 3),
                 (pandas.interval_range(0, 3).to_numpy(), 2), (self.objects([at]), 5 * 10**6), (self.objects([at.replace(tzinfo=zone)]), 5),
                 (self.objects([at.date() + datetime.timedelta(9), None]), 9), (self.objects([datetime.timedelta(0, 1)]), 10**6),
                 (words, 2), (words.array, 2), (words.astype(words.cat.categories.dtype), 2), (words.to_numpy(), 2),
                 (words.astype("string"), 2), (pandas.Series([None, "a", "b"], dtype="string"), 2), (numpy.array(["x", "y"]), 1), (numpy.array(["2", "3"]), 3),
                 (numpy.array([b"x"]), 0), (self.objects(["2.5"]), 2.5), (self.objects([1, None]), None), (self.objects([2, 3]), 3),
                 (numpy.array([4], "M8[s]"), 4), (pandas.Series(numpy.array([4], "M8[ns]")), 4)]
        if xarray is not None:
            cases += [(xarray.DataArray(numpy.array([4, 3], kind)), 4) for kind in ("M8[ns]", "m8[ns]")]
            cases += [(xarray.DataArray(numpy.array(["x", "y"], kind)), 1) for kind in ("U", "O")]
            cases += [(xarray.DataArray(self.objects(stamps[1:3])), 5)]
        for a, largest in cases:
            with self.subTest(str(a)):
                with self.assertRaises(TypeError) as caught:
                    cured.max(a)
                said = re.fullmatch(r"dtype .+? is not reduced: (?:they are objects: |text is not a number: |make it a plain type: |reduce the ends, )*(.*?)"
                                    r"(?: (?:is|are|has|have|says|and) .*|; .*)?", str(caught.exception)).group(1)
                answer = cured.max(eval(said, {"a": a, "numpy": numpy, "pandas": pandas}))
                if largest is not None:
                    self.assertEqual(largest, answer, said)
        for a, what in ((self.objects([{}]), "objects of the type dict"), (self.objects([cured]), "objects of the type module")):
            with self.assertRaisesRegex(TypeError, what + ", which is no number"):
                cured.max(a)
        with self.assertRaisesRegex(TypeError, "a.cat.codes are its numbers .-1: missing.$"):  # its texts are no numbers
            cured.sum(words)
        with self.assertRaisesRegex(TypeError, r"a.astype\('complex128'\)"):
            cured.sum(self.objects([1j]))

    @staticmethod
    def objects(given):
        a = numpy.empty(len(given), object)
        a[:] = given
        return a


@unittest.skipUnless(pyarrow, "there is no pyarrow")
class Arrow(Case):
    def test_arrays(self):
        for dtype in ("int8", "uint16", "int64", "float", "double", "halffloat"):
            values = numpy.arange(5, dtype="f2") if dtype == "halffloat" else range(5)
            a = pyarrow.array(values, type=getattr(pyarrow, {"float": "float32", "double": "float64",
                                                             "halffloat": "float16"}.get(dtype, dtype))())
            self.assertEqual((10, 4), (cured.sum(a), cured.argmax(a)))
            self.assertEqual(5, cured.sum(a[2:4]))

    def test_column_of_a_table(self):
        table = pyarrow.table({"x": [1.5, 2.5]})
        self.assertEqual(4.0, cured.sum(table["x"]))
        if not hasattr(pyarrow.Array, "__arrow_c_array__"):  # before version 14
            with self.assertRaisesRegex(TypeError, "cured.merge"):
                cured.sum(pyarrow.concat_tables([table, table])["x"])
            return
        self.assertEqual(8.0, cured.sum(pyarrow.concat_tables([table, table])["x"]))
        self.assertEqual(4.0, cured.sum(cured.column(table, "x")))
        self.assertEqual((1, 1, 0), (cured.sum(pyarrow.array([1, None])), cured.sum(pyarrow.array([True])), cured.argmax(pyarrow.array([1, None]))))

    def test_refused(self):
        for a in (pyarrow.array(["x"]), pyarrow.array([[1]]), pyarrow.array([0], type=pyarrow.timestamp("s"))):
            with self.assertRaises(TypeError):
                cured.sum(a)


@unittest.skipUnless(ml_dtypes, "there is no ml_dtypes")
class Bfloats(Case):
    def test_arrays(self):
        a = numpy.arange(12).astype(ml_dtypes.bfloat16)
        self.assertEqual((66.0, 11), (cured.sum(a), cured.argmax(a)))
        self.assert_arrays(cured.max(a.reshape(3, 4).T, axis=0), numpy.array([3, 7, 11], "f4"))
        with self.assertRaises(TypeError):
            cured.sum(a.astype(ml_dtypes.float8_e4m3))

    def test_of_a_byte(self):
        for kind in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
            a = numpy.arange(12).astype(kind)
            self.assertEqual((float(a.astype("f8").sum()), 11), (cured.sum(a), cured.argmax(a.astype("f4"))))
            self.assert_arrays(cured.max(a.reshape(3, 4).T, axis=0), a.astype("f4").reshape(3, 4).max(axis=1))


if __name__ == "__main__":
    unittest.main()
