#!/usr/bin/env python3
"""Containers that are read in blocks, of the real h5py, zarr, netCDF4, xarray and Dask: every op has the bits that it has of the whole
array in memory, along axes, under masks, by key, by offsets, in partials and lists. test_blocks_read.py has how blocks are read."""
import asyncio
import doctest
import itertools
import math
import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import dask.array
    import h5py
    import netCDF4
    import xarray
    import zarr
except ImportError as error:
    print("skipped: %s (scripts/bootstrap --tests installs it)" % error)
    sys.exit(77)
from support import OPS, ROOT, WHOLE, Case, cured, numpy  # noqa: E402

import cured.dask  # noqa: E402
import cured.xarray  # noqa: E402
from cured import _blocks  # noqa: E402

SEED = int(os.environ.get("CURED_TEST_SEED", "20261127"))
PAIRS = ("dot", "sqdist", "average")
FLOATS = [op for op in OPS if not op.startswith("bit_") and op not in PAIRS]
INTEGERS = [op for op in OPS if op not in PAIRS and op != "prod"]
SHAPE, CHUNKS = (30, 17, 8), (7, 5, 8)


class Small(Case):
    """With blocks of few chunks, so that small arrays have many."""
    def setUp(self):
        before = _blocks.BLOCK_BYTES, _blocks.MOST_BYTES
        _blocks.BLOCK_BYTES, _blocks.MOST_BYTES = 4096, 1 << 20
        self.addCleanup(lambda: setattr(_blocks, "BLOCK_BYTES", before[0]))
        self.addCleanup(lambda: setattr(_blocks, "MOST_BYTES", before[1]))
        self.random = numpy.random.default_rng(SEED)
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def floats(self, shape=SHAPE, dtype="f8"):
        a = (self.random.standard_normal(shape) * 10.0 ** self.random.integers(-9, 9, shape)).astype(dtype)
        if a.size:
            a.flat[self.random.integers(0, a.size, 4)] = [numpy.nan, numpy.inf, -0.0, 0.0]
        return a

    def integers(self, shape=SHAPE, dtype="i8"):
        return self.random.integers(0, 5, shape).astype(dtype)

    def h5(self, a, chunks=CHUNKS):
        f = h5py.File(os.path.join(self.folder, "%d.h5" % len(os.listdir(self.folder))), "w")
        self.addCleanup(f.close)
        fits = a.ndim == len(chunks) and all(c <= n for c, n in zip(chunks, a.shape))
        return f.create_dataset("x", data=a, chunks=chunks if fits else True if a.ndim and a.size else None)

    def zarr(self, a, chunks=CHUNKS):
        return zarr.array(a, chunks=chunks if a.ndim == len(chunks) else True)

    def netcdf(self, a, chunks=CHUNKS, **fill):
        d = netCDF4.Dataset(os.path.join(self.folder, "%d.nc" % len(os.listdir(self.folder))), "w")
        self.addCleanup(d.close)
        names = ["d%d" % k for k in range(a.ndim)]
        for name, n in zip(names, a.shape):
            d.createDimension(name, n)
        x = d.createVariable("x", a.dtype, names, chunksizes=chunks if a.ndim == len(chunks) else None,
                             endian="big" if a.dtype.str[0] == ">" else "native", **fill)
        x[...] = a
        x.set_auto_mask(bool(fill))
        return x

    def xarray(self, a, chunks=CHUNKS):
        path = os.path.join(self.folder, "%d.nc" % len(os.listdir(self.folder)))
        names = ["d%d" % k for k in range(a.ndim)]
        xarray.Dataset({"x": (names, a)}).to_netcdf(path, encoding={"x": {"chunksizes": chunks}} if a.ndim == len(chunks) else {})
        opened = xarray.open_dataset(path)
        self.addCleanup(opened.close)
        return opened["x"]

    def dask(self, a, chunks=CHUNKS):
        return dask.array.from_array(a, chunks=chunks if a.ndim == len(chunks) else "auto")

    def memmap(self, a, _=None):
        path = os.path.join(self.folder, "%d.bin" % len(os.listdir(self.folder)))
        if not a.size:
            return a  # there is no such map
        m = numpy.memmap(path, a.dtype, "w+", shape=a.shape)
        m[...] = a
        return m

    def all(self, a):
        """The array in each of the containers."""
        for make in (self.h5, self.zarr, self.netcdf, self.xarray, self.dask, self.memmap):
            yield make.__name__, make(a)

    def check(self, a, ops, x, what, **options):
        wanted, got = cured.reduce(a, ops, **options), cured.reduce(x, ops, **options)
        self.assertEqual(list(wanted), list(got), what)
        for op in ops:
            note = "%s of %s %s, seed %d" % (op, what, options, SEED)
            try:
                value = wanted[op]
            except (ValueError, OverflowError) as error:
                with self.assertRaises(type(error), msg=note):
                    got[op]
                continue
            if isinstance(value, numpy.ndarray):
                self.assert_arrays(value, got[op], note) if value.dtype.names is None else self.assertEqual(value.tolist(), got[op].tolist())
            else:
                self.assert_same(value, got[op], note)


class Whole(Small):
    def test_all_ops(self):
        for dtype in ("f8", ">f4"):
            a = self.floats(dtype=dtype)
            for name, x in self.all(a):
                self.check(a, FLOATS, x, name)
                self.check(a, [op for op in FLOATS if op not in WHOLE], x, name, nan="skip")
        for dtype in ("i8", "u2", "i1"):
            a = self.integers(dtype=dtype)
            for name, x in self.all(a):
                self.check(a, INTEGERS, x, name)
                self.check(a, ["prod"], x, name, overflow="wrap")
        a = self.integers(dtype="?")
        for x in (self.h5(a), self.zarr(a), self.dask(a)):  # NetCDF has no bool
            self.check(a, ["any", "all", "sum", "argmax", "median"], x, "bool")

    def test_the_sum_is_exact(self):
        from fractions import Fraction
        a = self.floats()
        a[~numpy.isfinite(a)] = 1
        exact = float(sum(map(Fraction, a.ravel().tolist())))
        for name, x in self.all(a):
            self.assertEqual(exact, cured.sum(x), name)

    def test_functions_and_their_options(self):
        a = self.floats()
        a[numpy.isnan(a)] = 3
        for name, x in self.all(a):
            self.assert_same(cured.std(a, ddof=2), cured.std(x, ddof=2), name)
            self.assert_same(cured.sum(a, dtype="f4"), cured.sum(x, dtype="f4"), name)
            self.assert_same(cured.nanmean(a), cured.nanmean(x), name)
            self.assertEqual(repr(cured.describe(a)), repr(cured.describe(x)), name)
            self.assertEqual(cured.minmax(a), cured.minmax(x), name)
            for op, first in (("sum", 1.5), ("prod", 2.0), ("min", -1e300), ("max", 1e300)):
                self.assert_same(getattr(cured, op)(a, initial=first), getattr(cured, op)(x, initial=first), (name, op))
            self.assertEqual(repr(cured.reduce(a, "median,max", dtype="f4")), repr(cured.reduce(x, "median,max", dtype="f4")), name)
        b = self.integers()
        for name, x in self.all(b):
            for op, first in (("sum", 2**70), ("prod", 0), ("min", -1), ("max", 99)):
                self.assert_same(getattr(cured, op)(b, initial=first), getattr(cured, op)(x, initial=first), (name, op))

    def test_empty_and_without_axes(self):
        for a in (numpy.zeros((0, 3)), numpy.zeros((0,), "i4"), numpy.float64(3.5).reshape(())):
            for name, x in self.all(a):
                ops = [op for op in FLOATS if op != "median" and op != "quantile" or a.size] if a.dtype.kind == "f" else ["sum", "min", "any"]
                self.check(a, ops, x, (name, a.shape))
        for op in ("sum", "prod", "max"):
            self.assert_same(getattr(cured, op)(numpy.zeros(0), initial=2.5), getattr(cured, op)(self.h5(numpy.zeros(0)), initial=2.5))
            self.assert_same(getattr(cured, op)(numpy.zeros(0, int), initial=2), getattr(cured, op)(self.h5(numpy.zeros(0, int)), initial=2))

    def test_quantiles(self):
        a = self.floats(dtype="f4")
        a[numpy.isnan(a)] = 3
        for name, x in self.all(a):
            self.assert_same(cured.median(a), cured.median(x), name)
            self.assert_same(cured.quantile(a, 0.3, method="lower"), cured.quantile(x, 0.3, method="lower"), name)
            for q in ([0.1, 0.5], [[0.2]], numpy.linspace(0, 1, 40)):
                self.assert_arrays(cured.quantile(a, q), cured.quantile(x, q), name)
                for axis, keepdims in ((0, False), ((0, 2), True), (None, True)):
                    self.assert_arrays(cured.quantile(a, q, axis, keepdims=keepdims, dtype="f4"),
                                       cured.quantile(x, q, axis, keepdims=keepdims, dtype="f4"), (name, axis))
            out = numpy.empty(2, "f4")
            self.assertIs(out, cured.quantile(x, [0.1, 0.5], out=out))
            self.assert_arrays(cured.quantile(a, [0.1, 0.5], out=numpy.empty(2, "f4")), out)
            self.assert_same(cured.percentile(a, 30), cured.percentile(x, 30), name)
            with self.assertRaisesRegex(TypeError, "initial"):
                cured.quantile(x, 0.5, initial=1)
            with self.assertRaises((TypeError, ValueError)):
                cured.quantile(x, 0.5, keys=[1])

    def test_in_a_block_of_its_own_type(self):
        """An integer beyond 64 bits, and a product that overflows."""
        a = numpy.full((40, 3), 2**63 - 1)
        for name, x in self.all(a):
            self.assertEqual(120 * (2**63 - 1), cured.sum(x), name)
            with self.assertRaises(OverflowError):
                cured.prod(x)
            with self.assertRaises(OverflowError):
                cured.sum(x, axis=0)
            with self.assertRaises(OverflowError):
                cured.sum(x, keepdims=True)


class Along(Small):
    AXES = (0, -1, 1, (0, 2), (1, 2), (), (0, 1, 2))

    def test_axes(self):
        a, b = self.floats(), self.integers()
        for (name, x), (_, y) in zip(self.all(a), self.all(b)):
            for axis, keepdims in itertools.product(self.AXES, (False, True)):
                ops = [op for op in FLOATS if op not in WHOLE and op not in ("median", "quantile")]
                self.check(a, ops, x, name, axis=axis, keepdims=keepdims)
                self.check(b, ["sum", "argmax", "bit_or", "var"], y, name, axis=axis, keepdims=keepdims)
            self.check(a, ["median", "sum"], x, name, axis=1)
            self.check(a, ["digest"], x, name, axis=1)
            self.check(a, ["sum", "digest", "argmin"], x, name, keepdims=True)

    def test_slices_longer_than_memory(self):
        """Each answer has a partial of its own then."""
        a, b = self.floats(), self.integers()
        _blocks.MOST_BYTES = 2048
        _blocks.BLOCK_BYTES = 1024
        for make in (self.h5, self.zarr, self.netcdf):
            x, y = make(a, (5, 4, 3)), make(b, (5, 4, 3))
            for axis, keepdims in itertools.product(((0,), (0, 2), (0, 1)), (False, True)):
                self.check(a, ["sum", "argmin", "min", "std", "count_nan"], x, make.__name__, axis=axis, keepdims=keepdims)
                self.check(a, ["argmax"], x, make.__name__, axis=axis, keepdims=keepdims, nan="skip")
                self.check(b, ["sum", "prod", "bit_xor"], y, make.__name__, axis=axis, keepdims=keepdims)
            self.check(a, ["sum", "argmax"], x, "masked", axis=(0, 1), where=a > 0)
            for op in ("prod", "digest", "median"):
                with self.assertRaisesRegex(ValueError, "axis: the blocks of whole slices along it have more than 2048 bytes"):
                    getattr(cured, op)(x, axis=(0, 1))
            self.check(a, ["argmin"], x, make.__name__, keys=numpy.zeros(30, int))  # some columns at a time
            for op in ("argmin", "argmax"):  # which have no partial by key
                with self.assertRaisesRegex(ValueError, "keys: the blocks of all rows have more than 2048 bytes, so %s by key" % op):
                    getattr(cured, op)(make(numpy.ones(300), (100,)), keys=numpy.zeros(300, int))

    def test_slices_of_no_elements(self):
        """No slice of them is too long, however many there are."""
        a, keys = numpy.zeros((3000, 0)), numpy.arange(3000) % 3
        _blocks.MOST_BYTES = 2048
        for x in (zarr.array(a, chunks=(1000, 1)), dask.array.from_array(a, chunks=(1000, 1))):
            for op in ("sum", "prod", "argmin", "median", "digest"):
                if op != "digest" and op != "prod":
                    self.assert_arrays(getattr(cured, op)(a, keys=keys), getattr(cured, op)(x, keys=keys), op)
                for options in ({}, {"keepdims": True}):
                    self.assert_arrays(getattr(cured, op)(a, axis=0, **options), getattr(cured, op)(x, axis=0, **options), op)
            self.assertEqual((2, 3, 0), cured.quantile(x, [0.1, 0.9], keys=keys).shape)
            self.assert_arrays(cured.sum(a, axis=0, initial=1.0), cured.sum(x, axis=0, initial=1.0))

    def test_rows_by_key_longer_than_memory(self):
        """Chunks are cut, and rows come in blocks whose partials are merged."""
        _blocks.MOST_BYTES, _blocks.BLOCK_BYTES = 2048, 1024
        ops, groups = ["sum", "mean", "min", "var", "count_nan", "norm2", "any"], {"groups": 5}
        for shape, chunks in (((600,), (600,)), ((300, 4), (300, 4)), ((90, 3, 5), (90, 3, 5)), ((4, 600), (4, 600)), ((30, 17, 8), CHUNKS)):
            a, b, keys = self.floats(shape), self.integers(shape), self.random.integers(0, 4, shape[0])
            for x, y in ((self.h5(a, chunks), self.h5(b, chunks)), (self.zarr(a, chunks), self.zarr(b, chunks))):
                for options in ({}, {"groups": 4}, {"groups": 3, "drop": True}, {"nan": "skip", "ddof": 1}, {"dtype": "f4"}, {"where": a > 0}):
                    some = ["sum", "mean", "var"] if "dtype" in options else ops
                    self.check(a, some, x, (shape, options), keys=keys, **options)
                self.check(b, ["sum", "max", "bit_or", "count"], y, shape, keys=keys)
                out = numpy.empty((4,) + shape[1:], "f4")
                self.assertIs(out, cured.sum(x, keys=keys, groups=4, out=out))
                self.assert_arrays(cured.sum(a, keys=keys, groups=4, dtype="f4"), out)
                self.assertRaises(ValueError, cured.max, y, keys=keys, **groups)
                for wrong in ({"keys": keys[1:]}, {"keys": keys, "axis": 1}, {"keys": keys, "groups": 2}, {"keys": keys, "keepdims": True}, {"keys": keys, "initial": 1.0}):
                    with self.assertRaises((TypeError, ValueError)) as of_array:
                        cured.sum(a, **wrong)
                    with self.assertRaisesRegex(type(of_array.exception), str(of_array.exception).partition(":")[0]):
                        cured.sum(x, **wrong)
                if math.prod(shape[1:]) * 8 <= 2048:
                    self.assertEqual(cured.partial(a, ops, keys=keys), cured.partial(x, ops, keys=keys))
                else:
                    with self.assertRaisesRegex(ValueError, "keys: a row has more than 2048 bytes"):
                        cured.partial(x, ops, keys=keys)

    def test_a_slice_without_an_answer(self):
        a = self.floats()
        a[3] = numpy.nan
        x = self.h5(a)
        found = cured.reduce(x, "min,sum", axis=(1, 2), nan="skip")
        self.assert_arrays(cured.sum(a, axis=(1, 2), nan="skip"), found.sum)
        with self.assertRaisesRegex(ValueError, r"in the block that begins at \["):
            found.min

    def test_keys_and_offsets(self):
        a, keys = self.floats(), self.random.integers(0, 4, SHAPE[0])
        ops = ["sum", "mean", "argmax", "count_nan", "norm2"]
        for name, x in self.all(a):
            for options in ({"groups": 4}, {"groups": 3, "drop": True}) + (() if name == "dask" else ({},)):
                self.check(a, ops, x, name, keys=keys, **options)
            for options in ({"keys": keys[1:], "groups": 4}, {"keys": keys, "groups": 4, "axis": 1}, {"groups": 3}, {"keys": keys, "groups": 2}):
                with self.assertRaises((TypeError, ValueError), msg=(name, options)):
                    cured.sum(x, **options)
        b = self.floats((4000,))
        offsets = numpy.sort(self.random.integers(0, 4001, 50))
        for name, x in self.all(b):
            self.check(b, [op for op in ops if op != "argmax"], x, name, offsets=offsets)
            self.check(b, ["sum"], x, name, offsets=[5, 5, 4000])
            self.check(b, ["sum"], x, name, offsets=numpy.array([0], "u8"))
            for wrong in ([3, 2], [0, 4001], [-1, 5], [], [[0, 1]]):
                for ask in (lambda: cured.sum(x, offsets=wrong), lambda: cured.dot(x, b, offsets=wrong)):  # of pairs, too
                    with self.assertRaisesRegex((TypeError, ValueError), r"^offsets\b", msg=(name, wrong)):
                        ask()
            for borders in ([0], [0, 5]):  # of no segments, too
                self.assert_arrays(numpy.zeros(len(borders) - 1), cured.dot(x, numpy.zeros(b.shape, "i4"), offsets=borders))
            for more in ({"axis": 0}, {"keepdims": True}, {"initial": 3.0}):
                with self.assertRaisesRegex(TypeError, "not with offsets"):
                    cured.sum(x, offsets=[0, 1], **more)
        with self.assertRaisesRegex(TypeError, "one axis"):
            cured.sum(self.h5(a), offsets=[0, 1])
        _blocks.MOST_BYTES = 512
        with self.assertRaisesRegex(ValueError, "offsets: segment 1 has more than 512 bytes"):
            cured.sum(self.h5(b, (100,)), offsets=[0, 10, 900])

    def test_out(self):
        a = self.floats()
        for name, x in self.all(a):
            out = numpy.empty(SHAPE[1:], "f4")
            self.assertIs(out, cured.sum(x, axis=0, out=out))
            self.assert_arrays(cured.sum(a, axis=0, dtype="f4"), out, name)
            one = numpy.empty(())
            cured.max(x, out=one)
            self.assert_arrays(numpy.array(cured.max(a)), one, name)
            r = cured.reduce(x, "sum,argmax", axis=2, out=(numpy.empty(SHAPE[:2]), numpy.empty(SHAPE[:2], "u8")))
            self.assert_arrays(cured.argmax(a, axis=2), r.argmax, name)
            with self.assertRaisesRegex(ValueError, "wrong number of dimensions|has the shape"):
                cured.sum(x, axis=0, out=numpy.empty(3))


class Beside(Small):
    def test_where(self):
        a, keep = self.floats(), self.random.random(SHAPE) < 0.6
        for name, x in self.all(a):
            for mask in (keep, keep[:1], keep[..., :1], keep[0, 0], False):
                if name == "dask" and mask is False:
                    continue
                self.check(a, [op for op in FLOATS if op != "digest"], x, name, where=mask)
                self.check(a, ["sum", "argmax", "mean"], x, name, where=mask, axis=(0, 2))
            with self.assertRaises((TypeError, ValueError)):
                cured.digest(x, where=keep)
            with self.assertRaisesRegex(TypeError, "where: a bool array"):
                cured.sum(x, where=keep.astype("i4"))
            with self.assertRaises(ValueError):
                cured.sum(x, where=keep[:3])
        self.check(a, ["sum", "prod"], self.h5(a), "a mask in a file", where=keep)
        self.assert_same(cured.sum(a, where=keep), cured.sum(self.h5(a), where=self.h5(keep)))

    def test_long_slices_of_no_elements(self):
        """Whole slices would be too long for memory, if the other axes had elements."""
        _blocks.MOST_BYTES = 64
        for shape, axis in (((5, 70, 0, 9), 1), ((0, 70, 3), 1), ((3, 0, 70), (0, 2))):
            a = numpy.zeros(shape, "i8")
            for name, x in (("h5", self.h5(a)), ("xarray", xarray.DataArray(a)), ("dask, by a client", dask.array.from_array(a, chunks=-1))):
                client = cured.Client("embedded:") if "client" in name else None
                self.assert_arrays(cured.std(a, axis), cured.std(x, axis, client=client), name)
                self.assert_arrays(cured.sum(a, axis, where=a == 0, keepdims=True), cured.sum(x, axis, where=a == 0, keepdims=True, client=client), name)

    def test_fractions_of_ddof_over_long_slices(self):
        _blocks.MOST_BYTES, _blocks.BLOCK_BYTES = 512, 256
        a = self.floats((90, 3))
        for name, x in self.all(a):
            for options in ({"ddof": 0.5}, {"ddof": -1, "nan": "skip"}, {"ddof": 1.5, "dtype": "f4", "keepdims": True}):
                self.assert_arrays(cured.std(a, 0, **options), cured.std(x, 0, **options), name)

    def test_pairs_by_key_in_parts(self):
        """Of rows that are too many for memory, as partials that are merged."""
        _blocks.MOST_BYTES, _blocks.BLOCK_BYTES = 512, 256
        a, b, keys = self.floats((40, 3)), self.floats((40, 3)), numpy.arange(40) % 3
        wanted = cured.reduce(a, "dot,average", second=b, keys=keys)
        for name, x in self.all(a):
            self.assertEqual(repr(wanted), repr(cured.reduce(x, "dot,average", second=b, keys=keys)), name)
            part = cured.partial(x, "dot,average", second=b, keys=keys, groups=3)
            self.assertEqual(wanted.dot.tobytes(), numpy.asarray(part.finish("dot").dot).tobytes(), name)

    def test_medians_by_offsets(self):
        a, offsets = self.floats((3000,)), [3, 3, 50, 51, 1600, 2990]
        for name, x in self.all(a):
            for options in ({}, {"nan": "skip", "where": a < 1}, {"dtype": "f4"}):
                self.assert_arrays(cured.median(a, offsets=offsets, **options), cured.median(x, offsets=offsets, **options), name)
                self.assert_arrays(cured.quantile(a, [[0.1, 0.5], [1, 0]], offsets=offsets, method="lower", **options),
                                   cured.quantile(x, [[0.1, 0.5], [1, 0]], offsets=offsets, method="lower", **options), name)
            self.assertEqual(repr(cured.reduce(a, "median,sum", offsets=offsets)), repr(cured.reduce(x, "median,sum", offsets=offsets)), name)

    def test_medians_by_key(self):
        a, keys = self.floats((300, 5)), numpy.arange(300) * 7 % 11
        for name, x in self.all(a):
            for options in ({}, {"nan": "skip", "where": a < 1}, {"dtype": "f4", "groups": 9, "drop": True}):
                self.assert_arrays(cured.median(a, keys=keys, **options), cured.median(x, keys=keys, **options), name)
                self.assert_arrays(cured.quantile(a, [[0.1, 0.5], [1, 0]], keys=keys, method="lower", **options),
                                   cured.quantile(x, [[0.1, 0.5], [1, 0]], keys=keys, method="lower", **options), name)
            self.assertEqual(repr(cured.reduce(a, "median,sum", keys=keys)), repr(cured.reduce(x, "median,sum", keys=keys)), name)
            for options in ({"groups": 2}, {"groups": "x"}, {"drop": True}):
                for ask in (cured.sum, cured.median, lambda x, **more: cured.quantile(x, 0.5, **more), lambda x, **more: cured.quantile(x, [0, 1], **more)):
                    with self.subTest((name, options)), self.assertRaisesRegex(TypeError, "^%s: only with keys$" % list(options)[0]):
                        ask(x, **options)
        _blocks.MOST_BYTES, _blocks.BLOCK_BYTES = 512, 256
        with self.assertRaisesRegex(ValueError, "so median by key is not answered: reduce parts of the columns$"):
            cured.median(self.h5(a), keys=keys)

    def test_two_arrays(self):
        a, b = self.floats(), self.floats()
        for name, x in self.all(a):
            for other in (b, self.h5(b)) if name != "memmap" else (b,):
                self.assert_same(cured.dot(a, b), cured.dot(x, other), name)
                self.assert_arrays(cured.sqdist(a, b, 1), cured.sqdist(x, other, 1), name)
                self.assertEqual(repr(cured.reduce(a, "dot,sqdist", second=b)), repr(cured.reduce(x, "dot,sqdist", second=other)))
            self.assert_same(cured.average(a, weights=b), cured.average(x, weights=b), name)
            self.assert_same(cured.dot(a, b, where=a > 0), cured.dot(x, b, where=a > 0), name)
            self.assertEqual(bytes(cured.partial(a, "dot", second=b, first=None)), bytes(cured.partial(x, "dot", second=b, first=None)))
            self.assert_same(cured.dot(b, a), cured.dot(b, x), name)
            for ask in (lambda s: cured.dot(x, s), lambda s: cured.reduce(x, "dot", second=s), lambda s: cured.partial(x, "dot", second=s)):
                self.assertEqual(repr(ask(b)), repr(ask(b.tolist())))
                with self.assertRaisesRegex(ValueError, "^second: the list is no array"):
                    ask([1.0, [2.0]])
            for what, ask in (("second", lambda f: cured.dot(x, f)), ("where", lambda f: cured.sum(x, where=f))):
                if name != "memmap":
                    with self.assertRaisesRegex(TypeError, "^%s: a file is the first array alone: pass numpy.load" % what):
                        ask(self.file(b > 0 if what == "where" else b))
            with self.assertRaises((ValueError, TypeError)):
                cured.dot(x, b[1:])
            self.assert_same(cured.dot(a, b.astype("f4").astype("f8")), cured.dot(x, b.astype("f4")))

    def file(self, a):
        path = os.path.join(self.folder, "file.npy")
        numpy.save(path, a)
        return cured.file(path)

    def by_key(self, name, a, x):
        """A container's partials by key are the array's, and so are the sentences."""
        keys, where = numpy.arange(len(a)) * 7 % 5, a > 0
        for options in ({}, {"groups": 9}, {"groups": 3, "drop": True}, {"groups": 5, "where": where}, {"axis": 0}):
            for ops in ("sum", "var,max,count_nan"):
                self.assertEqual(cured.partial(a, ops, keys=keys, **options), cured.partial(x, ops, keys=keys, **options), (name, ops, options))
        for op, wrong in (("sum", {"groups": 4}), ("sum", {"keys": keys[:-1]}), ("sum", {"keys": keys + 0.5}), ("sum", {"first": 3}), ("median", {}),
                          ("argmax", {}), ("sum", {"axis": 1}), ("sum", {"offsets": [0, 1]}), ("sum", {"shape": (40, 20, 8), "start": (0, 0, 0)}),
                          ("sum", {"ddof": 1}), ("sum", {"groups": -1})):
            wrong = {"keys": keys, **wrong}
            with self.assertRaises((TypeError, ValueError, OverflowError), msg=(op, wrong)) as of_array:
                cured.partial(a, op, **wrong)
            with self.assertRaises(type(of_array.exception), msg=(name, op, wrong)) as of_this:
                cured.partial(x, op, **wrong)
            self.assertEqual(str(of_array.exception), str(of_this.exception), name)

    def test_partials(self):
        a, b = self.floats(), self.floats((7, 8))
        ops = ["sum", "argmin", "digest", "count_nan"]
        for name, x in self.all(a):
            self.assertEqual(bytes(cured.partial(a, ops, first=40)), bytes(cured.partial(x, ops, first=40)), name)
            self.assertEqual(bytes(cured.partial(a, "prod,max")), bytes(cured.partial(x, "prod,max")), name)
            self.assertEqual(bytes(cured.partial(a, "sum,max", first=None)), bytes(cured.partial(x, "sum,max", first=None)), name)
            place = {"shape": (40, 20, 8), "start": (5, 3, 0)}
            self.assertEqual(bytes(cured.partial(a, ops, **place)), bytes(cured.partial(x, ops, **place)), name)
            self.assertEqual(cured.partial(a, "sum", where=a > 0), cured.partial(x, "sum", where=a > 0), name)
            for wrong in ({"shape": (40, 20), "start": (0, 0)}, {"shape": (20, 20, 8), "start": (0, 0, 0)}, {"first": -1}, {"shape": (40, 20, 8)},
                          {"first": 0, "where": a > 0}, {"axis": 0}):
                with self.assertRaises((TypeError, ValueError), msg=(name, wrong)):
                    cured.partial(x, "sum", **wrong)
            for wrong in ({"groups": 1}, {"drop": True}, {"offsets": [0, 1]}, {"ddof": 2}, {"overflow": "wrap"}):
                with self.assertRaises((TypeError, ValueError)) as of_array:
                    cured.partial(a, "sum", **wrong)
                with self.assertRaisesRegex(type(of_array.exception), "^%s$" % re.escape(str(of_array.exception)), msg=(name, wrong)):
                    cured.partial(x, "sum", **wrong)
            self.by_key(name, a, x)
            for both in ([x, b], [b, x], (x, x)):
                whole = numpy.concatenate([numpy.asarray(each).ravel() for each in both])
                for op in ("sum", "argmax", "median", "digest"):
                    self.assert_same(getattr(cured, op)(whole), getattr(cured, op)(both), (name, op))
            self.assert_same(cured.argmin(numpy.append(b, a)), cured.reduce_parts([b, x], "argmin").argmin, name)
            for wanted, got in zip((a, b), cured.reduce_each([x, b], "max", nan="skip")):
                self.assert_same(cured.max(wanted, nan="skip"), got.max, name)
            search = cured.Search("f8", 0.5, nan="skip")
            while search.asked:
                search.next(search.count(x))
            self.assert_same(cured.median(a, nan="skip"), search.answer, name)

    def test_clients(self):
        a = self.floats()
        with cured.Client("embedded:", threads=2) as client:
            for name, x in self.all(a):
                self.assert_same(cured.argmin(a), client.argmin(x), name)
                self.assert_arrays(cured.std(a, 0), client.std(x, 0), name)
                self.assert_same(cured.sum(a), cured.sum(x, client=client), name)
                self.assert_same(cured.quantile(a, 0.1, nan="skip"), client.quantile(x, 0.1, nan="skip"), name)

        async def ask(x):
            async with cured.AsyncClient("embedded:") as client:
                return await client.sum(x)
        for x in (self.h5(a), self.dask(a)):
            with self.assertRaisesRegex(TypeError, "AsyncClient takes no containers"):
                asyncio.run(ask(x))


class Libraries(Small):
    def test_missing_and_scaled(self):
        """What the variable itself gives is reduced: elements at the fill value are missing, others are scaled."""
        a = self.integers(dtype="i2")
        x = self.netcdf(a, fill_value=3)
        whole = x[...]
        self.assertTrue(whole.mask.any())
        for op in ("sum", "count", "argmax", "min", "median", "prod"):
            options = {"overflow": "wrap"} if op == "prod" else {}
            self.assert_same(getattr(cured, op)(whole, **options), getattr(cured, op)(x, **options), op)
        self.assert_arrays(cured.mean(whole, (0, 1)), cured.mean(x, (0, 1)))
        self.assert_same(cured.sum(whole.data, where=~whole.mask & (a > 1)), cured.sum(x, where=a > 1))
        x.scale_factor, x.add_offset = 0.01, -5.0
        scaled = x[...]
        self.assertEqual("f8", scaled.dtype.str[1:])
        for op in ("sum", "argmin", "std", "prod"):
            self.assert_same(getattr(cured, op)(scaled), getattr(cured, op)(x), op)
        x.set_auto_maskandscale(False)
        self.assert_same(cured.sum(a), cured.sum(x))
        with self.assertRaisesRegex(TypeError, "has no position"):
            cured.partial(self.netcdf(a, fill_value=3), "sum", first=0)

    def test_what_is_no_array(self):
        f = self.h5(self.floats()).file
        f.create_group("g")
        f["text"] = ["a", "b"]
        f["pairs"] = numpy.zeros(3, [("a", "i4"), ("b", "f4")])
        f["null"] = h5py.Empty("f4")
        d = self.netcdf(self.floats())
        d.group().createDimension("words", 2)
        words = d.group().createVariable("words", str, ("words",))
        words[:] = numpy.array(["a", "b"], object)
        frame = xarray.Dataset({"x": ("t", [1.0])})
        times = xarray.DataArray(numpy.array(["2020-01-01"], "M8[ns]"), dims="t")
        cases = ((f, "file\\['name'\\]"), (f["g"], "no array: name one"), (f["text"], "not reduced"), (f["pairs"], "fields one by one"),
                 (f["null"], "no shape"), (d.group(), "dataset\\['name'\\]"), (words, "text is no"),
                 (frame, "dataset\\['name'\\]"), (times, "count of units"), (zarr.group(), "group\\['name'\\]"))
        for x, words in cases:
            for ask in (cured.sum, cured.median, lambda x: cured.quantile(x, 0.5), lambda x: cured.partial(x, "sum")):
                with self.assertRaisesRegex((TypeError, ValueError), words):
                    ask(x)
        x = self.dask(numpy.arange(100.0))
        with self.assertRaisesRegex(ValueError, "compute_chunk_sizes"):
            cured.sum(x[x > 3])
        closed = self.h5(self.floats())
        closed.file.close()
        with self.assertRaises(ValueError):
            cured.sum(closed)

    def test_options_that_are_wrong(self):
        x = self.h5(self.floats())
        for ask, error in ((lambda: cured.sum(x, ddof=1), ValueError), (lambda: cured.sum(x, axis=3), numpy.AxisError), (lambda: cured.sum(x, axis=(0, 0)), ValueError),
                           (lambda: cured.sum(x, axis="time"), TypeError), (lambda: cured.sum(x, first=0), TypeError), (lambda: cured.bit_or(x), ValueError),
                           (lambda: cured.sum(x, nan="no"), ValueError), (lambda: cured.mean(x, initial=1), TypeError), (lambda: cured.sum(x, initial="1"), TypeError),
                           (lambda: cured.sum(x, initial=10**400), ValueError), (lambda: cured.max(x, axis=0, initial=2**53 + 1), ValueError),
                           (lambda: cured.mean(x, initial=1, keepdims=True), TypeError), (lambda: cured.any(x, axis=tuple(range(x.ndim)), initial=1), TypeError),
                           (lambda: cured.sum(x, shape=(1,), start=(0,)), TypeError), (lambda: cured.sum(x, what=1), TypeError),
                           (lambda: cured.reduce(x, "sum,some"), ValueError), (lambda: cured.max(x, dtype="f4"), ValueError)):
            with self.assertRaises(error):
                ask()

    def test_dask_with_what_it_has_not(self):
        """A first value, offsets and a client: by blocks, as other containers."""
        a = self.floats()
        masked = dask.array.ma.masked_array(self.dask(a), a < 0)
        self.assert_same(cured.sum(numpy.ma.masked_array(a, a < 0)), cured.sum(masked))
        self.assert_same(cured.sum(a, where=~(a < 0), initial=2.0), cured.sum(masked, initial=2.0))
        found = cured.reduce(self.dask(numpy.full((4, 2), numpy.nan)), "min,sum", axis=1, nan="skip")
        self.assertEqual([0, 0, 0, 0], found.sum.tolist())
        with self.assertRaises(ValueError):
            found.min

    def test_lists_of_masked_containers(self):
        """NumPy would make an array without their masks."""
        masked = dask.array.from_array(numpy.ma.masked_array([True] * 3, [1, 0, 0]), asarray=False)
        variable = netCDF4.Dataset("x", "w", diskless=True, persist=False)
        self.addCleanup(variable.close)
        variable.createDimension("d", 3)
        variable = variable.createVariable("x", "i1", ("d",), fill_value=2)
        variable[:] = [0, 2, 1]
        for a in (numpy.ones((1, 3)), self.h5(numpy.ones((1, 3)))):
            for options in ({"where": [masked]}, {"where": [xarray.DataArray(masked)]}, {"keys": [variable]}, {"keys": ([variable],)}):
                with self.assertRaisesRegex(TypeError, "^%s: a list has no masked arrays" % next(iter(options))):
                    cured.sum(a, **options)
            self.assertEqual(3.0, cured.sum(a, where=[self.h5(numpy.ones(3, bool))]))

    def test_xarray_on_dask(self):
        a = self.floats()
        x = self.xarray(a).chunk({"d0": 4})
        self.assert_same(cured.argmin(a), cured.argmin(x))
        self.assert_same(cured.argmin(a), cured.argmin(x.variable))
        self.assert_same(cured.sum(a), cured.sum(xarray.DataArray(a)))


class Complex(Small):
    """Complex numbers in containers, of which each part is read as a container of its own."""
    OPS = ("sum", "mean", "sumsq", "norm2", "var", "std", "count", "count_nonzero", "count_nan", "count_inf", "any", "all")

    def numbers(self, dtype="c16"):
        a = numpy.empty((7, 5, 4), dtype)
        a.real, a.imag = self.floats(a.shape), self.floats(a.shape)
        return a

    def containers(self, a):
        for make in (self.h5, self.zarr, self.dask):
            yield make.__name__, make(a, (3, 5, 4)[:a.ndim])
        yield "xarray", xarray.DataArray(a)
        yield "xarray on dask", xarray.DataArray(self.dask(a))

    def same(self, wanted, got, what):
        for op in wanted:
            self.assertEqual(numpy.asarray(wanted[op]).tobytes(), numpy.asarray(got[op]).tobytes(), (op, what))
            self.assertEqual(numpy.shape(wanted[op]), numpy.shape(got[op]), (op, what))

    def test_every_op_and_placement(self):
        for dtype in ("c16", ">c8"):
            a = self.numbers(dtype)
            keep = self.random.random(a.shape) < 0.6
            placements = [{}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"axis": (0, 2)}, {"axis": (0, 1, 2), "keepdims": True},
                          {"keys": self.random.integers(0, 3, 7), "groups": 4}]
            for (name, x), options, masked, nan in itertools.product(self.containers(a), placements, (False, True), ("propagate", "skip")):
                more = dict(options, nan=nan, **({"where": keep} if masked else {}))
                self.same(cured.reduce(a, self.OPS, **more), cured.reduce(x, self.OPS, **more), (name, dtype, options, masked, nan))
        for name, x in self.containers(a[0, 0]):
            self.same(cured.reduce(a[0, 0], self.OPS, offsets=[0, 2, 4]), cured.reduce(x, self.OPS, offsets=[0, 2, 4]), name)

    def test_what_stands_beside(self):
        a, b = self.numbers(), self.numbers()
        keep = self.random.random(a.shape) < 0.6
        for (name, x), (other, y) in itertools.product(self.containers(a), self.containers(b)):
            for op in ("dot", "sqdist"):
                one = getattr(cured, op)
                self.same({op: one(a, b, axis=1, where=keep)}, {op: one(x, y, axis=1, where=self.h5(keep, (3, 5, 4)))}, (name, other))
                self.same({op: one(a, b)}, {op: one(a, y)}, (name, other))
            self.same({"var": cured.var(a, axis=0, where=keep)}, {"var": cured.var(x, axis=0, where=self.zarr(keep))}, name)
            for option in ("where", "keys"):
                given = keep if option == "where" else numpy.arange(7) % 3
                self.same(cured.reduce(a, self.OPS, **{option: given}), cured.reduce(x, self.OPS, **{option: self.zarr(given)}), (name, option))

    def test_lists_clients_and_digests(self):
        a = self.numbers()
        with cured.Client("embedded:") as client:
            for name, x in self.containers(a):
                self.same(cured.reduce([a, a], self.OPS), cured.reduce([x, a], self.OPS), name)
                self.same(cured.reduce(a, self.OPS), client.reduce(x, self.OPS), name)
                self.assertEqual(cured.digest(a), cured.digest(x), name)
                out = numpy.zeros(5, "c8")
                self.assertIs(out, cured.sum(x, axis=(0, 2), out=out))
                self.assertEqual(cured.sum(a, axis=(0, 2), dtype="complex64").tobytes(), out.tobytes())

    def test_of_xarray(self):
        a = self.numbers()
        x = xarray.DataArray(a, dims=("time", "lat", "lon"))
        self.same({op: cured.reduce(a, self.OPS, 0, nan="skip")[op] for op in self.OPS}, x.cured.reduce(self.OPS, "time", skipna=True), "skipna")
        self.assertEqual(("lat", "lon"), x.cured.std("time").dims)
        with self.assertRaisesRegex(TypeError, "cured.reduce"):
            x.chunk(3).cured.sum("time")

    def test_what_is_refused(self):
        a = self.numbers()
        for name, x in self.containers(a):
            for words, ask in (("no order", lambda: cured.min(x)), ("no order", lambda: cured.median(x)), ("a.real and a.imag", lambda: cured.quantile(x, [0.5])),
                               ("a partial has no complex", lambda: cured.partial(x, "sum")), ("rounds each", lambda: cured.prod(x))):
                with self.assertRaisesRegex(TypeError, words):
                    ask()
        for ask in (lambda x: cured.dask.reduce(x, "sum"), lambda x: cured.dask.reduce(x, "norm2", axis=0), lambda x: cured.dask.quantile(x, 0.5)):
            with self.assertRaisesRegex(TypeError, r"x.real and x.imag .*cured.reduce\(x, ops\)"):
                ask(self.dask(a))
        large = self.zarr(numpy.zeros((300, 300), "c16"), (100, 100))
        self.assertEqual(0.0, cured.std(large))
        for op, ask in (("var", lambda: cured.var(large, axis=0)), ("second", lambda: cured.dot(large, large)), ("offsets", lambda: cured.norm2(self.zarr(numpy.zeros(90000, "c16"), (1000,)), offsets=[0, 2]))):
            with self.assertRaisesRegex(ValueError, r"%s: the container has 1440000 bytes, and 1048576 are read at most: pass numpy.asarray" % op):
                ask()


class Accessor(Small):
    def data(self):
        a = self.floats()
        return a, xarray.DataArray(a, {"time": numpy.arange(30), "lat": numpy.linspace(0, 1, 17), "both": (("time", "lon"), numpy.zeros((30, 8)))},
                                   ("time", "lat", "lon"), "heat", {"unit": "K"})

    def test_names_and_coordinates(self):
        a, x = self.data()
        for y in (x, x.chunk({"time": 7})):
            found = y.cured.sum("time", skipna=True)
            self.assertEqual(("heat", ("lat", "lon"), {"lat"}, {}), (found.name, found.dims, set(found.coords), found.attrs))
            self.assert_arrays(cured.sum(a, 0, nan="skip"), found.values)
            self.assertEqual(y.chunks is not None, found.chunks is not None)
            whole = y.cured.max(skipna=False, keep_attrs=True)
            self.assertEqual(((), {"unit": "K"}), (whole.dims, whole.attrs))
            self.assert_same(cured.max(a), whole.values.item())
            kept = y.cured.std(["time", "lon"], ddof=1, keepdims=True)
            self.assertEqual((("time", "lat", "lon"), (1, 17, 1)), (kept.dims, kept.shape))
            self.assert_arrays(cured.std(a, (0, 2), ddof=1, keepdims=True, nan="skip"), kept.values)
            where = xarray.DataArray(numpy.arange(17) % 2 == 0, dims="lat")
            self.assert_arrays(cured.mean(a, 0, where=where.values[:, None], nan="skip"), y.cured.mean("time", where=where).values)
            r = y.cured.reduce("argmin,count", "lon", skipna=False)
            self.assert_arrays(cured.argmin(a, 2), r.argmin.values)
            self.assertEqual({"time", "lat"}, set(r["count"].coords))
            self.assert_arrays(cured.count_nan(a, 1), y.cured.count_nan("lat").values)
            q = y.cured.quantile([0.1, 0.9], "time")
            self.assertEqual((("quantile", "lat", "lon"), [0.1, 0.9]), (q.dims, q["quantile"].values.tolist()))
            self.assert_arrays(cured.quantile(a, [0.1, 0.9], 0, nan="skip"), q.values)
            self.assert_same(cured.quantile(a, 0.25, nan="skip"), y.cured.quantile(0.25).values.item())
            self.assert_arrays(cured.median(a, 0, nan="skip"), y.cured.median("time").values)

    def test_integers_and_what_is_refused(self):
        x = xarray.DataArray(numpy.arange(6).reshape(2, 3), dims=("a", "b"))
        self.assertEqual([3, 12], x.cured.sum("b", skipna=True).values.tolist())
        for words, ask in (("none of the dimensions", lambda: x.cured.sum("c")), ("not by names", lambda: x.cured.sum("a", axis=0)),
                           ("no argument", lambda: x.cured.sum("a", wat=0)), ("a number or a list", lambda: x.cured.quantile([[0.5]]))):
            with self.assertRaisesRegex((TypeError, ValueError), words):
                ask()
        with self.assertRaises(AttributeError):
            x.cured.suum


class Page(Case):
    def test_examples(self):
        """docs/ARRAYS.md gives what it says."""
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                page = os.path.join(ROOT, "docs", "ARRAYS.md")
                with open(page, encoding="utf-8") as f:
                    text = re.sub("\n<!-- doctest: not run,.*?\n```\n", "\n", f.read(), flags=re.S).replace("\n```", "\n\n")  # a fence ends an answer
                test = doctest.DocTestParser().get_doctest(text, {}, "ARRAYS.md", page, 0)
                runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
                runner.run(test)
            finally:
                os.chdir(before)
        self.assertEqual(0, runner.failures)
        self.assertGreater(runner.tries, 8)


if __name__ == "__main__":
    print("seed", SEED)
    unittest.main()
