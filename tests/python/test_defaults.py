#!/usr/bin/env python3
"""An option that says nothing is as one that is not there: of every kind of array and for every kind of call, spelled as Python and as NumPy
spell it. Options that are one and the same object are told apart by their names, and what goes beside an array lies as that does."""
import itertools
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import dask.array
    import h5py
    import netCDF4
    import pandas
    import xarray
    import zarr
except ImportError as error:
    print("skipped: %s (scripts/bootstrap --tests installs it)" % error)
    sys.exit(77)
import arrow_producer as arrow  # noqa: E402
from support import Case, bf16, cured, numpy  # noqa: E402

import cured.xarray  # noqa: E402

A = numpy.arange(12.0).reshape(4, 3)
NOTHING = {"axis": [None], "keepdims": [False, 0, numpy.False_], "where": [None, True], "drop": [False, 0, numpy.False_], "nan": ["propagate"],
           "nulls": ["skip"], "overflow": ["error"], "ddof": [0], "client": [None], "out": [None], "initial": [None], "offsets": [None],
           "keys": [None], "groups": [None], "second": [None], "dtype": [None], "min_count": [None, 0, False, numpy.int64(0)], "shape": [None],
           "start": [None]}
CALLS = {
    "sum": lambda x, **o: cured.sum(x, **o), "var": lambda x, **o: cured.var(x, **o), "argmax": lambda x, **o: cured.argmax(x, **o),
    "prod": lambda x, **o: cured.prod(x, **o), "median": lambda x, **o: cured.median(x, **o), "digest": lambda x, **o: cured.digest(x, **o),
    "several": lambda x, **o: cured.reduce(x, "sum,max,var,median", **o), "describe": lambda x, **o: cured.describe(x, **o),
    "partial": lambda x, **o: bytes(cured.partial(x, "sum,max", **o)), "counted": lambda x, **o: cured.reduce(x, "sum,var", **{"min_count": 1, **o}),
    "fraction": lambda x, **o: cured.var(x, **{"ddof": 0.5, **o}), "each": lambda x, **o: list(cured.reduce_each([x], "sum,var", **o)),
    "quantile": lambda x, **o: cured.quantile(x, 0.5, **o), "quantiles": lambda x, **o: cured.quantile(x, [0.5, 0.25], **o),
}


def outcome(call):
    """The answer, or what the exception says."""
    try:
        return repr(call())
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)


class Defaults(Case):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        numpy.save(os.path.join(folder, "a.npy"), A)
        self.file = self.enterContext(h5py.File(os.path.join(folder, "a.h5"), "w"))
        self.data = self.file.create_dataset("a", data=A, chunks=(2, 2))
        self.kinds = {
            "array": lambda: A, "masked": lambda: numpy.ma.masked_array(A, A == 5), "list": lambda: [A[:2], A[2:]], "h5py": lambda: self.data,
            "zarr": lambda: zarr.array(A, chunks=(3, 2)), "dask": lambda: dask.array.from_array(A, chunks=2), "xarray": lambda: xarray.DataArray(A),
            "arrow": lambda: arrow.OfArray(arrow.Node(A[0], A[0] == 1)), "stream": lambda: arrow.OfStream([arrow.Node(A[0]), arrow.Node(A[1])]),
            "file": lambda: cured.file(os.path.join(folder, "a.npy"))}

    def test_what_says_nothing(self):
        cases = 0
        for what, call in CALLS.items():
            for kind, make in self.kinds.items():
                if what == "each" and kind == "list":
                    continue
                plain = outcome(lambda: call(make()))
                for name, values in NOTHING.items():
                    for value in values:
                        if (what, name) == ("fraction", "ddof"):
                            continue
                        self.assertEqual(plain, outcome(lambda: call(make(), **{name: value})), (what, kind, name, value))
                        cases += 1
        self.assertGreater(cases, 3500)

    def test_it_does_so_along_an_axis(self):
        """Of containers, whose answers come block by block."""
        for kind in ("h5py", "zarr", "dask", "xarray"):
            for options in ({"axis": 0}, {"axis": 1, "keepdims": True}, {"keepdims": True}):
                for op in ("var", "median", "argmin", "quantile"):
                    more = (0.25,) if op == "quantile" else ()
                    wanted = getattr(cured, op)(A, *more, **options)
                    for nothing in ({"min_count": 0}, {"drop": numpy.False_}, {"overflow": "error"}, {"ddof": 0}):
                        got = getattr(cured, op)(self.kinds[kind](), *more, **options, **nothing)
                        self.assert_arrays(wanted, got, (kind, op, options, nothing))

    def test_no_share(self):
        """The answers' shape stays."""
        for kind in ("array", "masked", "h5py", "zarr", "dask", "xarray", "file"):
            for options, shape in (({}, ()), ({"axis": 0}, (3,)), ({"axis": 1, "keepdims": True}, (4, 1)), ({"keepdims": True}, (1, 1))):
                got = cured.quantile(self.kinds[kind](), [], **options)
                self.assertEqual(((0,) + shape, "float64"), (got.shape, got.dtype.name), (kind, options))

    def test_refusals_of_a_quantile(self):
        """What none of the ops takes is refused by its name, wherever the elements lie."""
        for kind in ("array", "list", "h5py", "dask", "stream"):
            for options, said in (({"ddof": 1}, "ddof: none of the ops takes it"), ({"overflow": "wrap"}, "overflow: ")):
                for q in (0.5, [0.5]):
                    with self.assertRaisesRegex(ValueError, said, msg=(kind, options)):
                        cured.quantile(self.kinds[kind](), q, **options)
        masked = dask.array.ma.masked_array(self.kinds["dask"](), A > 3)
        with self.assertRaisesRegex(ValueError, "digest is of all bytes, and takes no mask"):
            cured.digest(masked)

    def test_one_object_twice(self):
        """Small integers are one object of Python's: a share is told from an axis by its name."""
        for kind in ("array", "masked", "h5py", "dask", "file"):
            for q in (0, 1):
                wanted = numpy.quantile(A if kind != "masked" else self.kinds[kind]().filled(A[1, 0]), q, axis=q)
                if kind != "masked":
                    self.assertEqual(wanted.tolist(), numpy.asarray(cured.quantile(self.kinds[kind](), q=q, axis=q)).tolist(), (kind, q))
                self.assert_arrays(cured.quantile(self.kinds[kind](), q, q), cured.quantile(self.kinds[kind](), q=q, axis=q), (kind, q))
        self.assertEqual((1, 1), cured.quantile(A, q=True, keepdims=True).shape)
        self.assertTrue(numpy.isnan(cured.quantile(numpy.array([numpy.nan, 1]), q=0, keepdims=0)))

    def test_fractions_of_tensors(self):
        """A tensor that NumPy cannot read has them as a whole; along an axis the refusal says what to do."""
        tensor = bf16(numpy.array([[1, 2], [3, 5]], "f4").view("u2")[:, 1::2].tobytes(), (2, 2))
        self.assertEqual(cured.var(numpy.array([1.0, 2, 3, 5]), ddof=0.5), cured.var(tensor, ddof=0.5))
        with self.assertRaisesRegex(TypeError, "ddof: along an axis .* cast them to f32"):
            cured.var(tensor, axis=0, ddof=0.5)


class Together(Case):
    def test_options_of_some_of_the_ops(self):
        """An option that one op takes goes with ops that do not take it, whoever reads the elements."""
        for a in (numpy.array([1.5, 2, numpy.nan, 4]), numpy.array([1, 2, 3, 4])):
            kinds = {"zarr": lambda: zarr.array(a, chunks=2), "dask": lambda: dask.array.from_array(a, chunks=2), "list": lambda: [a[:4]],
                     "stream": lambda: arrow.OfStream([arrow.Node(a[:2]), arrow.Node(a[2:])])}
            for ops in itertools.combinations(("sum", "count", "argmin", "var", "prod", "median", "digest"), 3):
                for options in ({"ddof": 1}, {"dtype": "f4"}, {"overflow": "wrap"}, {"nan": "skip"}, {"ddof": 1, "dtype": "f4"}, {"ddof": 0.5},
                                {"ddof": 0.5, "dtype": "f4"}, {"ddof": 0.5, "nan": "skip"}):
                    wanted = outcome(lambda: cured.reduce(a, ops, **options))
                    for kind, make in kinds.items():
                        self.assertEqual(wanted, outcome(lambda: cured.reduce(make(), ops, **options)), (kind, a.dtype, ops, options))

    def test_a_fraction_beside_ops_without_a_type(self):
        """The type is that of var's answer, as with a whole number."""
        a = numpy.array([[1.5, 2, 8], [1, 3, 4]])
        for make in (lambda: a, lambda: zarr.array(a, chunks=2), lambda: dask.array.from_array(a, chunks=2)):
            for ops, axis in itertools.product(("count,var", "argmax,count_nan,std", "var,min"), (None, 0)):
                whole, fraction = (cured.reduce(make(), ops, axis, ddof=ddof, dtype="f4") for ddof in (1, 0.5))
                for op in ops.split(","):
                    if op not in ("var", "std"):
                        self.assertEqual(numpy.asarray(whole[op]).tolist(), numpy.asarray(fraction[op]).tolist(), (ops, axis))
                    else:
                        wanted = getattr(cured, op)(a, axis, ddof=0.5, dtype="f4")
                        self.assertEqual(numpy.asarray(wanted).tolist(), numpy.asarray(fraction[op]).tolist(), (ops, axis))

    def test_a_mask_of_dask_and_where(self):
        """An element counts where neither leaves it out, as in other containers."""
        off, keep, keys = A % 3 == 1, A > 4, numpy.array([0, 1, 1, 0])
        x = dask.array.from_array(numpy.ma.masked_array(A, off), chunks=2, asarray=False)
        for options in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}, {"keys": keys, "groups": 2}):
            for where in (keep, dask.array.from_array(keep, chunks=3)):
                got = cured.reduce(x, "sum,count,var", where=where, **options)
                wanted = cured.reduce(A, "sum,count,var", where=keep & ~off, **options)
                self.assertEqual(repr(wanted), repr(got), options)
            if "keys" not in options:
                self.assertEqual(repr(cured.quantile(A, 0.5, where=keep & ~off, **options)), repr(cured.quantile(x, 0.5, where=keep, **options)), options)

    def test_pairs_without_axes_and_elements(self):
        """The shape of a second array stays."""
        for shape in ((), (0,), (0, 3), (2, 2)):
            x = numpy.full(shape, 3.0)
            for a in (zarr.array(x), dask.array.from_array(x)):
                for b in (x, a, *([arrow.OfArray(arrow.Node(x))] if x.ndim == 1 else [])):
                    self.assertEqual(9.0 * x.size, cured.dot(a, b), (shape, type(a), type(b)))


class Bins(Case):
    def test_of_containers(self):
        """What is missing from a column or a variable is in no bin."""
        x, off = numpy.array([3, 1, 1, 7, 0]), numpy.array([0, 0, 1, 1, 0], "?")
        d = self.enterContext(netCDF4.Dataset("x.nc", "w", diskless=True))
        d.createDimension("n", 5)
        variable = d.createVariable("x", "i8", ("n",), fill_value=7)
        variable[...] = numpy.where(off, 7, x)
        masked = numpy.ma.masked_array(x, off)
        for a in (variable, arrow.OfArray(arrow.Node(x, off)), dask.array.from_array(masked, chunks=2, asarray=False),
                  pandas.Series(pandas.array(masked.tolist(), dtype="Int64"))):
            self.assertEqual([1, 1, 0, 1], cured.bincount(a).tolist(), type(a))
            self.assertEqual([2, 1], cured.histogram(a, 2)[0].tolist(), type(a))
        for a in (zarr.array(x), arrow.OfStream([arrow.Node(x[:2]), arrow.Node(x[2:])]), xarray.DataArray(x), x.tolist(), tuple(x)):
            self.assertEqual([1, 2, 0, 1, 0, 0, 0, 1], cured.bincount(a).tolist(), type(a))

    def test_parts_that_miss_elements(self):
        """They have no position, wherever their elements lie, and need none for sums, extrema and products of integers."""
        x, off = numpy.arange(1, 6), numpy.array([0, 1, 0, 0, 1], "?")
        masked, plain = numpy.ma.masked_array(x, off), numpy.array([7, 9])
        for make in (lambda: masked, lambda: pandas.Series(pandas.array(masked.tolist(), dtype="Int64")), lambda: arrow.OfArray(arrow.Node(x, off)),
                     lambda: arrow.OfStream([arrow.Node(x[:2], off[:2]), arrow.Node(x[2:], off[2:])]),
                     lambda: dask.array.from_array(masked, chunks=2, asarray=False)):
            wanted = cured.reduce([x[~off], plain], "sum,max,prod")
            for parts in (lambda: [make(), plain], lambda: [plain, make()]):
                self.assertEqual(wanted, cured.reduce(parts(), "sum,max,prod"))
                self.assertEqual(wanted, cured.reduce_parts(parts(), "sum,max,prod"))
                self.assertEqual(wanted, cured.partial(parts(), "sum,max,prod").finish("sum,max,prod"))
        for make in (lambda: zarr.array(x), lambda: arrow.OfArray(arrow.Node(x)), lambda: pandas.Series(x), lambda: pandas.Series(pandas.array(x, dtype="Int64"))):
            self.assertEqual(2, cured.argmin([plain, make()]))
            self.assertEqual(2, cured.reduce_parts([plain, make()], "argmin").argmin)
        self.assertEqual(3.0, cured.reduce_parts([bf16(numpy.array([1, 2], "f4").view("u2")[1::2].tobytes())], "sum").sum)

    def test_a_second_array_that_misses_elements(self):
        """They have no pairs."""
        x = numpy.arange(4.0)
        masked = numpy.ma.masked_array(x, [0, 1, 0, 0])
        for second in (masked, dask.array.from_array(masked, chunks=2, asarray=False), arrow.OfArray(arrow.Node(x, masked.mask))):
            for first in (zarr.array(x, chunks=2), dask.array.from_array(x, chunks=2)):
                self.assertEqual(13.0, cured.dot(first, second))
                self.assertEqual([13.0], cured.dot(first, second, 0, keepdims=True).tolist())
                self.assertTrue(numpy.isnan(cured.dot(first, second, min_count=4)))
                with self.assertRaisesRegex(ValueError, "nulls: "):
                    cured.dot(first, second, nulls="error")
            self.assertEqual(13.0, cured.dot(x, second))
        self.assertEqual(14.0, cured.dot(zarr.array(x, chunks=2), numpy.ma.masked_array(x)))
        column = pandas.Series(pandas.array([0, 1, None, 3], dtype="Float64"))
        self.assertEqual(14.0, cured.dot(zarr.array(x, chunks=2), column.fillna(2)))
        self.assertEqual(10.0, cured.dot(zarr.array(x, chunks=2), column))

    def test_weights_of_elements_that_are_missing(self):
        """They do not count, in the average and in their own sum."""
        x, weights, off = numpy.arange(4.0), numpy.array([1.0, 2, 4, 8]), numpy.array([0, 1, 0, 0], "?")
        masked = numpy.ma.masked_array(x, off)
        for make in (lambda: masked, lambda: dask.array.from_array(masked, chunks=2, asarray=False),
                     lambda: pandas.Series(pandas.array(masked.tolist(), dtype="Float64"))):
            self.assertEqual((32 / 13, 13.0), cured.average(make(), weights=weights, returned=True))
            self.assertEqual((5 / 3, 3), cured.average(make(), returned=True))
        x = dask.array.from_array(masked, chunks=2, asarray=False)
        for keep in (weights < 5, dask.array.from_array(weights < 5, chunks=3)):
            self.assertEqual((8 / 5, 5.0), cured.average(x, weights=weights, returned=True, where=keep))

    def test_a_container_beside_an_array(self):
        """It is read whole, and answered as the array that it holds."""
        x = numpy.arange(4.0)
        for make in (zarr.array, dask.array.from_array, xarray.DataArray):
            self.assertEqual(cured.dot(x, x), cured.dot(x, make(x)))
            self.assertEqual(cured.average(x, weights=x), cured.average(x, weights=make(x)))
            self.assert_arrays(cured.sum(x, keys=x.astype("i4")), cured.sum(x, keys=make(x.astype("i4"))))
            self.assert_arrays(cured.max(x, offsets=[0, 2, 4]), cured.max(x, offsets=make(numpy.array([0, 2, 4]))))
            self.assertEqual(cured.sum(x, where=x > 1), cured.sum(x, where=make(x > 1)))


class Labels(Case):
    def test_masks_of_xarray_go_by_their_labels(self):
        """As in xarray's own where(): whatever order they are in, and whatever else they have."""
        random = numpy.random.default_rng(5)
        a = xarray.DataArray(random.standard_normal((6, 5)), {"lat": [60, 50, 40, 30, 20, 10], "lon": list("abcde")}, ("lat", "lon"))
        where = xarray.DataArray(random.random((9, 5)) < 0.5, {"lat": range(5, 95, 10), "lon": list("edcba")}, ("lat", "lon"))
        where = where.assign_coords(lat=where.lat + 5)
        for keep in (where, where.T, where.isel(lon=0, drop=True), where.isel(lat=0, drop=True), where.sel(lat=a.lat, lon=a.lon)):
            for x in (a, a.chunk(2)):
                for mask in (keep, keep.chunk(2)):
                    wanted = a.where(keep.reindex({name: a[name] for name in keep.dims}))
                    self.assertEqual(int(wanted.count()), int(x.cured.count(where=mask)))
                    numpy.testing.assert_array_equal(wanted.max("lon").values, numpy.asarray(x.cured.quantile(1, "lon", where=mask)))
                    numpy.testing.assert_array_equal(wanted.count("lat").values, numpy.asarray(x.cured.count("lat", where=mask)))
        plain = xarray.DataArray(where.values[:6], dims=("lat", "lon"))
        self.assertEqual(int(plain.sum()), int(a.cured.count(where=plain)))
        for wrong, words in ((where.isel(lat=slice(3)), "along 'lat' it has not one element for each label"),
                             (xarray.concat([where, where], "lat"), "along 'lat' it has not one element for each label"),
                             (where.rename(lat="height"), "where: 'height' is none of the dimensions")):
            with self.assertRaisesRegex(ValueError, words):
                a.cured.sum(where=wrong)


if __name__ == "__main__":
    unittest.main()
