#!/usr/bin/env python3
"""cured.dask on two worker processes: the bits of cured.reduce over the whole, under five chunkings, with NaN, -0, infinities, ties
and empty chunks; indices; products; along axes. And docs/CLUSTER.md's examples of Dask, Spark and Ray, which need no cluster."""
import asyncio
import doctest
import functools
import itertools
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import dask
    import dask.array
    import distributed
except ImportError as error:
    print("skipped: %s (packages python3-dask and python3-distributed)" % error)
    sys.exit(77)
from support import NUMPY, OPS, PACKAGE, ROOT, WHOLE, Case, cured, numpy, oracle, python_value, same  # noqa: E402

import cured.dask  # noqa: E402
from cured import _blocks  # noqa: E402

SEED = int(os.environ.get("CURED_TEST_SEED", "20260105"))
FLOAT_OPS = [op for op in OPS if not op.startswith("bit_")]
INTEGER_OPS = [op for op in OPS if op != "prod"]
# Of a (30, 40, 7) array: one chunk, rows, blocks, slivers of every dimension, and some that are empty.
CHUNKINGS = [(30, 40, 7), (4, 40, 7), (7, 11, 3), (30, 1, 7), ((0, 13, 0, 17), (40, 0), (0, 7))]


def floats(random, shape, special):
    a = random.standard_normal(shape) * 10.0 ** random.integers(-200, 100, shape)
    if special:
        places = random.integers(0, a.size, 4)
        a.flat[places] = random.choice([numpy.nan, numpy.inf, -0.0, 0.0], 4)
    return a


class Dask(Case):
    @classmethod
    def setUpClass(cls):
        os.environ["PYTHONPATH"] = os.pathsep.join([PACKAGE] + ([os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []))
        cls.cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
        cls.addClassCleanup(cls.cluster.close)
        cls.client = distributed.Client(cls.cluster)
        cls.addClassCleanup(cls.client.close)
        cls.random = numpy.random.default_rng(SEED)

    def check(self, a, ops, chunks, **options):
        wanted = cured.reduce(a, ops, **options)
        got = cured.dask.reduce(dask.array.from_array(a, chunks=chunks), ops, **options).compute()
        self.assertEqual(list(wanted), list(got))
        self.assert_answers(wanted, got, ops, " in %s, seed %d" % (chunks, SEED))

    def test_digest(self):
        """By blocks, for chunks of any shape."""
        a = numpy.arange(8400.0).reshape(40, 30, 7)
        for chunks in ((7, 11, 3), (40, 30, 7), (1, 30, 7), (40, 1, 7)):
            got = cured.dask.reduce(dask.array.from_array(a, chunks=chunks), ["digest", "argmax", "sum"]).compute(scheduler="sync")
            self.assertEqual((cured.digest(a), 8399, a.sum()), (got.digest, got.argmax, got.sum))

    def test_the_workers_are_two_processes(self):
        pids = set(self.client.run(os.getpid).values()) | {os.getpid()}
        self.assertEqual(3, len(pids))

    def test_floats_under_five_chunkings(self):
        for special, chunks in zip((False, True, True, True, True), CHUNKINGS):
            a = floats(self.random, (30, 40, 7), special)
            self.check(a, FLOAT_OPS, chunks)
            self.check(a.astype("f4"), ["sum", "argmin", "std", "count_nan"], chunks, nan="skip")

    def test_one_array_five_times(self):
        a = floats(self.random, (30, 40, 7), True)
        results = [cured.dask.reduce(dask.array.from_array(a, chunks=chunks), FLOAT_OPS) for chunks in CHUNKINGS]
        self.assertEqual(1, len({repr(result) for result in dask.compute(*results)}), "seed %d" % SEED)

    def test_integers_and_bools(self):
        for dtype in ("i8", "u4", ">i2", "?"):
            a = self.random.integers(0, 2 if dtype == "?" else 5, (50, 23)).astype(dtype)  # ties
            ops = [op for op in INTEGER_OPS if dtype != "?" or not op.startswith("bit_")]
            self.check(a, ops, (7, 23 if dtype == "i8" else 5))
        self.check(numpy.full(4000, 2**63 - 1), ["sum"], (999,))

    def test_nothing_and_nan_alone(self):
        self.check(numpy.zeros((0, 3)), ["sum", "count", "any", "min", "argmin"], (1, 2))
        for shape in ((0, 3), (7, 0), (2, 0, 5)):
            self.check(numpy.zeros(shape), ["prod", "sum"], (1,) * len(shape))
        self.check(numpy.full((40,), numpy.nan), ["min", "argmax", "argmin"], (7,))
        self.check(numpy.full((40,), numpy.nan), ["min", "argmax"], (7,), nan="skip")
        self.check(numpy.float64(3.5).reshape(()), ["sum", "argmax"], ())

    def test_a_long_array_in_many_chunks(self):
        """More chunks than a partial with a position may have gaps, and products, whose chunks are moved to multiples of 4,096."""
        a = floats(self.random, (2500,), False)
        self.check(a, ["sum", "argmin", "var"], (1,) if SEED == 0 else (2,))
        b = self.random.uniform(0.5, 2, (3, 9001))
        self.check(b, ["prod", "sum", "argmax"], (2, 1700))

    def test_along_axes(self):
        a = floats(self.random, (30, 40, 7), True)
        for axis in (0, -1, (0, 2)):
            ops = ["sum", "max", "std"] + (["argmin"] if isinstance(axis, int) else [])
            wanted = cured.reduce(a, ops, axis=axis)
            for chunks in CHUNKINGS[1:4:2]:
                got = cured.dask.reduce(dask.array.from_array(a, chunks=chunks), ops, axis=axis)
                self.assertEqual(wanted["sum"].shape, got["sum"].shape)
                for op, value in zip(ops, dask.compute(*(got[op] for op in ops))):
                    self.assert_arrays(wanted[op], value, "%s along %s" % (op, axis))
        keep = cured.dask.reduce(dask.array.from_array(a, chunks=(7, 11, 3)), "max", axis=1, keepdims=True).max
        self.assertEqual((30, 1, 7), keep.shape)
        self.assert_arrays(cured.max(a, axis=1, keepdims=True), keep.compute())

    def test_options_and_an_address(self):
        a = floats(self.random, (5000,), False)
        self.check(a, ["std", "var"], (600,), ddof=3)
        self.check(a.astype("f4"), ["sum"], (600,), dtype="f32")
        x = dask.array.from_array(a, chunks=700)
        self.assertEqual(cured.sum(a), cured.dask.reduce(x, "sum", address="embedded:").compute().sum)

    def test_what_is_refused(self):
        x = dask.array.from_array(numpy.arange(100.0), chunks=7)
        with self.assertRaisesRegex(ValueError, "compute_chunk_sizes"):
            cured.dask.reduce(x[x > 3], "sum")
        with self.assertRaisesRegex(ValueError, "split_every"):
            cured.dask.reduce(x, "sum", split_every=1)
        square = x.reshape(10, 10)
        for axis in (2, -3, (0, 5)):
            for error in (ValueError, IndexError, numpy.AxisError):
                with self.assertRaisesRegex(error, "out of bounds for array of dimension 2"):
                    cured.dask.reduce(square, "sum", axis=axis)
        for axis, error in ((1.0, TypeError), ("0", TypeError), ([0], TypeError), ((0, -2), ValueError)):
            with self.assertRaises(error):
                cured.dask.reduce(square, "sum", axis=axis)
        for ops, options in (("some", {}), ("sum,bit_and", {}), ("sum", {"ddof": 1}), ("max", {"dtype": "f4"}), ("sum", {"nan": "no"})):
            for axis in (None, 0):
                with self.assertRaises((ValueError, TypeError, NotImplementedError)):
                    cured.dask.reduce(square, ops, axis=axis, **options)  # before anything is computed

    def test_masked(self):
        a = numpy.ma.masked_array(self.random.integers(0, 9, (12, 10)).astype("f8"), mask=self.random.random((12, 10)) < 0.4)
        a[3] = numpy.ma.masked
        ops = [op for op in FLOAT_OPS if op != "prod" and op not in WHOLE]
        for chunks in ((12, 10), (5, 3), (1, 10)):
            x = dask.array.from_array(a, chunks=chunks)
            wanted, got = cured.reduce(a, ops), cured.dask.reduce(x, ops).compute(scheduler="synchronous")
            for op in ops:
                self.assertTrue(same(wanted[op], got[op]), "%s: %r is not %r" % (op, got[op], wanted[op]))
            wanted, got = cured.reduce(a, ops, axis=0), cured.dask.reduce(x, ops, axis=0)
            for op in ops:
                self.assert_arrays(wanted[op], got[op].compute(scheduler="synchronous"), op)
            got = cured.dask.reduce(x, "min,sum", axis=1)  # row 3 has no minimum
            self.assert_arrays(cured.sum(a, axis=1), got.sum.compute(scheduler="synchronous"))
            with self.assertRaisesRegex(ValueError, "no value"):
                got.min.compute(scheduler="synchronous")
            with self.assertRaisesRegex(TypeError, "prod of floats needs the place"):
                cured.dask.reduce(x, "prod")
            for axis in (None, 0, (0, 1)):
                with self.assertRaisesRegex(ValueError, "digest is of all bytes, and takes no mask"):
                    cured.dask.reduce(x, "digest,sum", axis=axis)
        blocks = x.map_blocks(numpy.asarray).map_blocks(numpy.ma.masked_greater, 5, meta=numpy.empty((0, 0)))  # nobody knows before
        self.assertEqual(cured.sum(numpy.ma.masked_greater(a.data, 5)), cured.dask.reduce(blocks, "sum").compute(scheduler="synchronous").sum)
        for missing, answer in ((False, 3.0), (True, None)):  # one without axes is masked, and its type does not say so
            x = dask.array.from_array(numpy.ma.masked_array(3.0, missing), asarray=False)
            if answer is not None:
                self.assertEqual(answer, cured.dask.reduce(x, "prod").compute(scheduler="synchronous").prod)
                self.assertEqual(answer, cured.prod(x))
            else:
                with self.assertRaisesRegex(TypeError, "prod of floats needs the place"):
                    cured.dask.reduce(x, "prod").compute(scheduler="synchronous")

    def test_quantiles(self):
        """By counts that the tree adds up: on two processes, and, as searches travel between them, with every number of reads."""
        for dtype, chunks in zip(("f8", "f4", ">f4", "i2", "u1"), CHUNKINGS):
            a = floats(self.random, (30, 40, 7), False) if dtype[-2] == "f" else self.random.integers(0, 200, (30, 40, 7))
            a = numpy.clip(a, -1e38, 1e38).astype(dtype)
            x = dask.array.from_array(a, chunks=chunks)
            self.check(a, ["median", "sum", "quantile"], chunks)
            self.assert_arrays(cured.quantile(a, [[0.1, 0.9]], method="nearest"), cured.dask.quantile(x, [[0.1, 0.9]], method="nearest").compute())
        self.assertEqual(cured.quantile(a, 0.3), cured.dask.quantile(x, 0.3, split_every=2).compute())
        local = {"scheduler": "synchronous"}
        self.assert_arrays(cured.quantile(a, numpy.linspace(0, 1, 70)), cured.dask.quantile(x, numpy.linspace(0, 1, 70)).compute(**local))
        for axis, keepdims in ((0, False), (-1, True), ((0, 2), False), (None, True)):
            for q in (0.25, [0.25, 0.75], [[0.5]]):
                wanted, got = (f(y, q, axis, keepdims=keepdims, dtype="f4") for f, y in ((cured.quantile, a), (cured.dask.quantile, x)))
                self.assertEqual(wanted.shape, got.shape)
                self.assert_arrays(wanted, got.compute(**local))
        nan = dask.array.from_array(numpy.array([3, numpy.nan, 1, 2]), chunks=1)
        self.assertTrue(numpy.isnan(cured.dask.median(nan).compute(**local)) and numpy.isnan(cured.dask.median(nan[:0]).compute(**local)))
        self.assertEqual(2.0, cured.dask.median(nan, nan="skip").compute(**local))
        wanted = {"median": cured.median(a, dtype="f4"), "max": cured.max(a)}
        self.assertEqual(wanted, dict(cured.dask.reduce(x, "median,max", dtype="f4").compute(**local)))

    def test_masks(self):
        a, keep = floats(self.random, (30, 40, 7), True), self.random.random((30, 40, 7)) < 0.6
        for chunks in CHUNKINGS[1:4]:
            x = dask.array.from_array(a, chunks=chunks)
            for where in (keep, dask.array.from_array(keep, chunks=9), keep[:1, :, :1]):
                mask = numpy.broadcast_to(numpy.asarray(where), a.shape)
                ops = ["sum", "var", "argmax", "median", "count"]
                wanted, got = cured.reduce(a, ops, where=mask), cured.dask.reduce(x, ops, where=where).compute(scheduler="synchronous")
                for op in ops:
                    self.assertTrue(same(wanted[op], got[op]), op)
                got = cured.dask.reduce(x, ["mean", "quantile"], axis=1, where=where)
                for op in got:
                    self.assert_arrays(getattr(cured, op)(a, **({"q": 0.5} if op == "quantile" else {}), axis=1, where=mask),
                                       got[op].compute(scheduler="synchronous"), op)
        hidden = numpy.ma.masked_array(keep, ~keep | (self.random.random(keep.shape) < 0.5))  # what it hides does not count
        for where in (hidden, dask.array.from_array(hidden, chunks=7, asarray=False)):
            self.assert_same(cured.sum(a, where=hidden.filled(False)), cured.dask.reduce(x, "sum", where=where).compute(scheduler="synchronous").sum)
        with self.assertRaisesRegex(ValueError, "keys: without a mask"):
            cured.dask.sum(x, keys=numpy.ma.masked_array(numpy.zeros(len(a), "i4"), numpy.arange(len(a)) == 1), groups=1)
        own = self.random.random(keep.shape) < 0.5
        for op in ("sum", "argmax", "median", "count"):
            for axis in (None, 0):
                got = cured.dask.reduce(dask.array.ma.masked_array(x, own), op, axis, where=keep)
                got = (got[op] if axis is not None else got).compute(scheduler="synchronous")
                self.assert_arrays(getattr(cured, op)(a, axis=axis, where=keep & ~own), got if axis is not None else got[op], op)
        with self.assertRaisesRegex(TypeError, "a bool array"):
            cured.dask.sum(x, where=1)

    def test_squares_by_column(self):
        """Of each type that has columns of squares: by op, ddof, the array's own mask and another, in chunks of rows, of columns and of both."""
        ops, shape = ["var", "std", "sumsq", "norm2"], (130, 37)
        for kind, most in (("f8", None), ("f4", None), ("i8", 1 << 27), ("i4", 1 << 28), ("u2", 1 << 16), ("i1", 127), ("?", 2)):
            a = self.random.integers(0 if kind in "u2?" else -most, most, shape).astype(kind) if most else (
                self.random.standard_normal(shape) * 2.0 ** self.random.integers(-60, 60, shape)).astype(kind)
            keep, own = self.random.random(shape) < 0.7, self.random.random(shape) < 0.3
            cases = itertools.product((a, numpy.ma.masked_array(a, own)), (None, keep), (0, 1, 3))
            for (array, where, ddof), chunks in zip(cases, itertools.cycle(((29, 37), (130, 8), (11, 20)))):
                counts = numpy.ones(shape, bool) if where is None else keep
                counts = counts if array is a else counts & ~own
                x, more = dask.array.from_array(array, chunks=chunks, asarray=False), {} if where is None else {"where": where}
                wanted = cured.reduce(a, ops, 0, ddof=ddof, where=counts)
                with dask.config.set(scheduler="synchronous"):
                    lazy, blocks = cured.dask.reduce(x, ops, 0, ddof=ddof, **more), cured.reduce(x, ops, 0, ddof=ddof, **more)
                    found = dask.compute(*(lazy[op] for op in ops))
                for op, got in zip(ops, found):
                    self.assertEqual(self.oracle_of(op, a[counts[:, 5], 5], ddof), wanted[op][5].item(), (kind, op))
                    self.assert_arrays(wanted[op], got, (kind, op))
                    self.assert_arrays(wanted[op], blocks[op], (kind, op))

    @staticmethod
    def oracle_of(op, column, ddof):
        name = next(name for name, code in NUMPY.items() if numpy.dtype(code) == column.dtype)
        result = None if op != "sumsq" or name[0] == "f" else "i64" if name[0] == "i" else "u64"
        return python_value(*oracle.answer(op, name, column.tobytes(), result=result, ddof=ddof)[1:3])

    def test_keys(self):
        """Groups whose rows lie in any chunks, of rows of several columns, under masks, with keys that are dropped."""
        local, ops = {"scheduler": "synchronous"}, ["sum", "mean", "var", "norm2", "min", "argmax", "count", "count_nan", "any"]
        for shape, chunks in (((400,), 37), ((60, 9), (7, 4)), ((30, 4, 7), ((0, 13, 0, 17), (4, 0), (3, 4)))):
            a, keys = floats(self.random, shape, True), self.random.integers(0, 5, shape[0])
            keep = self.random.random(shape) < 0.8
            x = dask.array.from_array(a, chunks=chunks)
            for options, more in (({}, {}), ({"where": keep}, {}), ({"nan": "skip", "ddof": 1}, {"split_every": 2}), ({"groups": 4, "drop": True}, {})):
                options = {"groups": 5, **options}
                wanted = cured.reduce(a, ops, keys=keys, **options)
                got = cured.dask.reduce(x, ops, keys=dask.array.from_array(keys, chunks=11), **options, **more)
                for op in ops:
                    if isinstance(wanted._answers[op], Exception):  # a group may have nothing but NaNs in a column
                        self.assertRaises(type(wanted._answers[op]), got[op].compute, **local)
                        continue
                    self.assertEqual(wanted[op].shape, got[op].shape)
                    self.assert_arrays(wanted[op], got[op].compute(**local), (op, shape, options))
        self.assert_arrays(wanted["sum"], got["sum"].compute())  # on two processes
        i = self.random.integers(-9, 9, (50, 3))
        keys = self.random.integers(0, 4, 50)
        x = dask.array.from_array(i, chunks=(8, 2))
        for op in ("sum", "prod", "bit_and", "max"):
            options = {"keys": keys, "groups": 6, **({"overflow": "wrap"} if op == "prod" else {})}
            if op == "max":  # of no elements
                with self.assertRaisesRegex(ValueError, "max by key: max of no elements"):
                    cured.dask.max(x, **options).compute(**local)
                options["groups"] = 4
            self.assert_arrays(getattr(cured, op)(i, **options), getattr(cured.dask, op)(x, **options).compute(**local), op)
        with self.assertRaisesRegex(OverflowError, "sum by key"):
            cured.dask.sum(dask.array.full(4, 2**63 - 1, chunks=2), keys=numpy.zeros(4, int), groups=1).compute(**local)
        with self.assertRaisesRegex(ValueError, r"keys: number \d+ is 3, not one of 0 to 2; drop"):
            cured.dask.sum(x, keys=keys, groups=3).compute(**local)
        for words, options in (("how many there are", {"keys": dask.array.from_array(keys, chunks=9)}), ("an integer for each row", {"keys": keys[1:], "groups": 4}),
                               ("an integer for each row", {"keys": keys * 1.0, "groups": 4}), ("not with axis", {"keys": keys, "groups": 4, "axis": 1}),
                               ("groups: only with keys", {"groups": 4}), ("drop: only with keys", {"drop": True})):
            with self.assertRaisesRegex((TypeError, ValueError), words):
                cured.dask.sum(x, **options)
        with self.assertRaisesRegex(ValueError, "by key"):
            cured.dask.digest(x, keys=keys, groups=4)
        with self.assertRaisesRegex(NotImplementedError, r"^ops: op median has no partial by key, so no chunk has a part of it: cured.median\(x, keys="):
            cured.dask.median(x, keys=keys, groups=4)
        self.assert_arrays(cured.median(i, keys=keys, groups=4), cured.median(x, keys=keys, groups=4))
        with self.assertRaises(AttributeError):
            cured.dask.describe

    def test_too_many_groups(self):
        """They are refused before anything is computed, and no index is looked for in each."""
        keys = numpy.zeros(7, "i8")
        for shape, op, groups in itertools.product(((7,), (7, 0, 9), (7, 2)), ("argmin", "sum"), (2**70, 2**63, -1)):
            with self.assertRaisesRegex(ValueError, r"^groups: must be 0 to 2\^63 - 1"):
                getattr(cured.dask, op)(dask.array.ones(shape, chunks=3), keys=keys, groups=groups)
        for groups in ("2", 1.5):
            with self.assertRaisesRegex(TypeError, "^groups: an integer is wanted, not <class"):
                cured.dask.sum(dask.array.ones(7, chunks=3), keys=keys, groups=groups)
        with self.assertRaisesRegex(ValueError, "^groups: 1099511627776 of 2 columns are more than 134217728 answers of argmax"):
            cured.dask.argmax(dask.array.ones((7, 2), chunks=3), keys=keys, groups=2**40)
        self.assertEqual((2**40, 0), cured.dask.argmin(dask.array.ones((7, 0), chunks=(3, 1)), keys=keys, groups=2**40).compute(scheduler="synchronous").shape)

    def test_keys_without_groups(self):
        """As of NumPy's arrays: up to the greatest key, where the keys are at hand, and of what is computed at once."""
        a, local = floats(self.random, (60, 3), True), {"scheduler": "synchronous"}
        x, none = dask.array.from_array(a, chunks=(7, 2)), numpy.zeros(0, int)
        with dask.config.set(**local):
            for keys in (self.random.integers(0, 5, 60), self.random.integers(-3, 4, 60), numpy.full(60, -2), self.random.integers(0, 9, 60).astype("u1")):
                for drop in (False, True):
                    for ask, y in ((cured.reduce, a), (cured.reduce, x), (cured.dask.reduce, x)):
                        for given in (keys, dask.array.from_array(keys, chunks=11))[:1 + (ask is cured.reduce and y is x)]:
                            if not drop and (keys < 0).any():
                                with self.assertRaisesRegex(ValueError, r"keys: number %d is -\d+, (not one of 0|and there are no groups)" % numpy.argmax(keys < 0)):
                                    made = ask(y, "sum,argmax", keys=given)
                                    self.assertIs(ask, cured.dask.reduce)
                                    made.sum.compute()
                                continue
                            got = ask(y, "sum,argmax,count", keys=given, drop=drop)
                            wanted = cured.reduce(a, "sum,argmax,count", keys=keys, drop=drop)
                            for op in ("sum", "argmax", "count"):
                                if isinstance(wanted._answers[op], Exception):
                                    self.assertRaises(ValueError, lambda: got[op].compute())
                                else:
                                    self.assert_arrays(wanted[op], numpy.asarray(got[op]), (op, drop, keys))
            self.assertEqual((0,), cured.sum(x[:0, 0], keys=none).shape)
            self.assertEqual((0,), cured.dask.sum(x[:0, 0], keys=none).compute().shape)

    def test_keys_stay_in_their_chunks(self):
        """Beside a Dask array. Where its call is not Dask's, they are read whole, up to a bound."""
        a, keys = floats(self.random, (60, 3), True), self.random.integers(0, 5, 60)
        x, k = dask.array.from_array(a, chunks=(7, 2)), dask.array.from_array(keys, chunks=11)
        before = _blocks.MOST_BYTES
        self.addCleanup(setattr, _blocks, "MOST_BYTES", before)
        with dask.config.set(scheduler="synchronous"):
            for most in (before, 64):
                _blocks.MOST_BYTES = most
                for options in ({}, {"groups": 5}, {"where": a > 0, "groups": 7}):
                    self.assert_arrays(cured.sum(a, keys=keys, **options), cured.sum(x, keys=k, **options), options)
            for call in (lambda: cured.sum(x, keys=k, nulls="error"), lambda: cured.partial(x, "sum", keys=k), lambda: cured.sum(a, keys=k)):
                with self.assertRaisesRegex(ValueError, "^keys: the container has 480 bytes, .* 64 are read at most, as of keys and offsets beside a container: reduce"):
                    call()
            _blocks.MOST_BYTES = before
            self.assert_arrays(cured.sum(a, keys=keys), cured.sum(x, keys=k, nulls="error"))
            self.assert_arrays(cured.partial(a, "sum", keys=keys).finish("sum").sum, cured.partial(x, "sum", keys=k).finish("sum").sum)
            masked = numpy.ma.masked_array(keys, False)
            self.assert_arrays(cured.sum(a, keys=keys), cured.sum(x, keys=dask.array.from_array(masked, chunks=11, asarray=False)))

    def test_what_is_beside_an_array_is_read_once(self):
        """By calls that are made of several, too."""
        a, b, read = floats(self.random, (8,), False), floats(self.random, (8,), False), []

        def counted(block):
            read.append(len(block))
            return block

        def lazy(values):
            return dask.array.from_array(values, chunks=4).map_blocks(counted, meta=numpy.empty(0, values.dtype))

        keep, shares, rows = a > a.min(), numpy.linspace(0, 1, 100), numpy.stack([a, b])
        calls = {"initial, min_count": lambda where: cured.sum(a, where=where, initial=1.0, min_count=2), "two": lambda where: cured.dot(a, b, where=where, min_count=2),
                 "each": lambda where: [dict(r) for r in cured.reduce_each([a, b, a, b, a], "sum,max", where=where)], "shares": lambda where: cured.quantile(a, shares, where=where).tolist(),
                 "ddof": lambda where: cured.var(rows, axis=1, ddof=0.5, where=where).tolist(), "average": lambda where: cured.average(a, where=where, returned=True)}

        async def awaited(where, call):
            async with cured.AsyncClient("embedded:") as client:
                return await call(client, where)
        for name, call in (("awaited two", lambda c, where: c.dot(a, b, where=where, min_count=2)), ("awaited shares", lambda c, where: c.quantile(a, list(shares), where=where))):
            calls[name] = lambda where, call=call: numpy.asarray(asyncio.run(awaited(where, call))).tolist()
        with dask.config.set(scheduler="synchronous"):
            for name, call in calls.items():
                wanted = call(keep)
                read.clear()
                self.assertEqual(wanted, call(lazy(keep)), name)
                self.assertEqual([4, 4], read, name)

    def test_min_count(self):
        """As of NumPy's arrays, under every chunking: whole, along axes and by key."""
        a = floats(self.random, (12, 5), False)
        a[self.random.random(a.shape) < 0.4] = numpy.nan
        keys = self.random.integers(0, 3, 12)
        for values in (a, numpy.nan_to_num(a, nan=3).clip(-9, 9).astype(int)):
            x = dask.array.from_array(values, chunks=(5, 2))
            for options in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}, {"keepdims": True}, {"keys": keys, "groups": 3}, {"where": values > 0}):
                for least in (0, 3, 4, 13, 1000):
                    for ops in ("sum,mean,count,any", "count_nonzero"):
                        options = {**options, "nan": "skip", "min_count": least}
                        got, wanted = cured.dask.reduce(x, ops, **options), cured.reduce(values, ops, **options)
                        got = got.compute(scheduler="synchronous") if hasattr(got, "compute") else got
                        for op in ops.split(","):
                            if isinstance(wanted._answers[op], Exception):
                                with self.assertRaisesRegex(ValueError, "min_count"):
                                    dask.compute(got[op], scheduler="synchronous")
                            else:
                                made = dask.compute(got[op], scheduler="synchronous")[0]
                                self.assertIs(type(wanted[op]), type(made))
                                self.assert_arrays(wanted[op], made, (op, options))
                        self.assertEqual(ops.split(","), list(got))
        for error, least in ((TypeError, 1.5), (TypeError, "1"), (TypeError, 0.0), (ValueError, -1)):
            with self.assertRaisesRegex(error, "min_count"):
                cured.dask.sum(x, min_count=least)
        with self.assertRaisesRegex(ValueError, "sum: 60 elements count, fewer than min_count, 61"):
            cured.dask.sum(x, min_count=61).compute(scheduler="synchronous")
        self.assertEqual(cured.sum(numpy.ones(3), min_count=None), cured.dask.sum(dask.array.ones(3), min_count=None).compute(scheduler="synchronous"))

    def test_axes_as_numpy_has_them(self):
        a = self.random.integers(0, 9, (6, 5, 4)).astype("f8")
        x = dask.array.from_array(a, chunks=(2, 3, 4))
        for axis in (numpy.int64(1), (), (numpy.int8(-1), 0), (0, 1, 2), (2, 0)):
            for keepdims in (False, True):
                for op in ("sum", "max", "argmin"):
                    wanted = getattr(cured, op)(a, axis=axis, keepdims=keepdims)
                    got = cured.dask.reduce(x, op, axis=axis, keepdims=keepdims)[op].compute(scheduler="synchronous")
                    self.assertEqual(numpy.shape(wanted), got.shape)
                    self.assertEqual(numpy.asarray(wanted).tolist(), got.tolist())
        got = cured.dask.reduce(x, "sum,argmax,any,mean", keepdims=True)
        for op in got:
            self.assert_arrays(getattr(cured, op)(a, keepdims=True), got[op].compute(scheduler="synchronous"), op)
        with self.assertRaisesRegex(OverflowError, "sum does not fit"):
            cured.dask.reduce(dask.array.full(4, 2**63 - 1, chunks=2), "sum", keepdims=True).sum.compute(scheduler="synchronous")

    def test_slices_of_only_nans(self):
        a = numpy.array([[numpy.nan, numpy.nan], [1, 2]])
        got = cured.dask.reduce(dask.array.from_array(a, chunks=1), "min,argmax,sum", axis=1, nan="skip")
        self.assertEqual([0, 3], got.sum.compute(scheduler="synchronous").tolist())
        for op in ("min", "argmax"):
            with self.assertRaisesRegex(ValueError, "only NaNs"):
                got[op].compute(scheduler="synchronous")

    def test_an_answer_without_a_value_is_found_by_one_read(self):
        """Of one op, also with out=."""
        read = []

        def seen(block):
            if block.size:
                read.append(block.shape)
            return block

        big = dask.array.from_array(numpy.full((4, 6), 2**62), chunks=(2, 6)).map_blocks(seen, dtype="i8", meta=numpy.empty((0, 0), "i8"))
        nans = dask.array.from_array(numpy.full((4, 6), numpy.nan), chunks=(2, 6)).map_blocks(seen, dtype="f8", meta=numpy.empty((0, 0)))
        for function, x, error, options in ((cured.sum, big, OverflowError, {"axis": 0}), (cured.max, nans, ValueError, {"axis": 0, "nan": "skip"}),
                                            (cured.min, nans, ValueError, {"keys": numpy.array([0, 1, 1, 0]), "groups": 3})):
            shape = (3, 6) if "keys" in options else (6,)
            for out in ({}, {"out": numpy.empty(shape, "i8" if x is big else "f8")}):
                read.clear()
                with dask.config.set(scheduler="sync"), self.assertRaisesRegex(error, "no value"):
                    function(x, **options, **out)
                self.assertEqual([(2, 6)] * 2, read)

    def test_the_page(self):
        page = os.path.join(ROOT, "docs", "CLUSTER.md")
        with open(page, encoding="utf-8") as f:
            text = f.read().replace("\n```", "\n\n")
        test = doctest.DocTestParser().get_doctest(text, {}, "CLUSTER.md", page, 0)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        runner.run(test)
        self.assertEqual(0, runner.failures)
        self.assertGreater(runner.tries, 8)



class Pairs(Case):
    """Ops of two arrays: the blocks of both meet, whatever their chunks are."""

    def setUp(self):
        self.random = numpy.random.default_rng(SEED + 4)

    def got(self, found):
        return found.compute(scheduler="synchronous")

    def test_whole_and_along_axes_and_by_key(self):
        a, b = floats(self.random, (12, 10, 7), False), floats(self.random, (12, 10, 7), False)
        keep, keys = self.random.random(a.shape) < 0.7, self.random.integers(0, 4, 12)
        for chunks, others in (((12, 10, 7), (5, 3, 7)), ((5, 4, 2), (5, 4, 2)), ((1, 10, 7), (12, 1, 3)), (((0, 5, 0, 7), (10, 0), (0, 7)), (4, 4, 4))):
            x, y = dask.array.from_array(a, chunks=chunks), dask.array.from_array(b, chunks=others)
            for op in ("dot", "sqdist", "average"):
                ask = functools.partial(cured.dask.average, x, weights=y) if op == "average" else functools.partial(getattr(cured.dask, op), x, y)
                plain = getattr(cured._cured, op)
                for options in ({}, {"axis": 1}, {"axis": (0, 2)}, {"keys": keys, "groups": 5}, {"where": keep}, {"where": keep, "axis": 0}, {"keepdims": True},
                                {"nan": "skip"}, {"min_count": 800}, {"min_count": 900, "where": keep}, {"keys": keys, "where": keep}, {"dtype": "f4"}):
                    self.assert_arrays(plain(a, b, **options), self.got(ask(**options)), (op, options))
            both = self.got(cured.dask.reduce(x, "dot,sqdist", second=y))
            self.assert_same(cured.dot(a, b), both.dot)
            self.assert_same(cured.dot(a, b), self.got(cured.dask.dot(x, second=b)))
            self.assert_same(cured.sumsq(a), self.got(cured.dask.dot(x, x)))
            self.assert_arrays(cured.vecdot(a, b[0]), self.got(cured.dask.vecdot(x, b[0])))

    def test_types_masks_and_weights(self):
        a, b = self.random.standard_normal((12, 10)).astype("f4"), self.random.integers(-9, 9, (12, 10))
        x, y = dask.array.from_array(a, chunks=5), dask.array.from_array(b, chunks=(4, 10))
        self.assert_same(cured.dot(a, b), self.got(cured.dask.dot(x, y)))
        masked = numpy.ma.masked_less(b, -5)
        z = dask.array.from_array(masked, chunks=(3, 5), asarray=False)
        for where in (None, a > 0):
            self.assert_same(cured.dot(a, masked, where=where), self.got(cured.dask.dot(x, z, where=where)))
            self.assert_arrays(cured.sqdist(a, masked, 1, where=where), self.got(cured.dask.sqdist(x, z, 1, where=where)))
        self.assert_same(cured.dot(masked, a), self.got(cured.dask.dot(z, x)))
        for axis, w in ((0, numpy.arange(12)), (1, numpy.arange(10.0)), (-1, list(range(10)))):
            self.assert_arrays(cured.average(a, axis, w), self.got(cured.dask.average(x, axis, w)))
        self.assert_arrays(cured.average(a, weights=numpy.arange(12.0), keys=[0, 1] * 6), self.got(cured.dask.average(x, weights=numpy.arange(12.0), keys=[0, 1] * 6)))
        self.assert_same(cured.mean(a), self.got(cured.dask.average(x)))
        large = dask.array.from_array(numpy.array([2**53 + 1, 3]), chunks=1)
        with self.assertRaisesRegex(TypeError, "cast one"):
            self.got(cured.dask.dot(large, numpy.array([1.5, 2])))

    def test_names_of_numpy(self):
        a = self.random.standard_normal((12, 10))
        a[3, 4] = numpy.nan
        x = dask.array.from_array(a, chunks=(5, 4))
        for name in [name for name in cured.__all__ if name.startswith("nan")] + ["percentile", "minmax"]:
            q = (0.5,) if "quantile" in name else (50,) if "percentile" in name else ()
            for axis in (None, 1):
                want, found = getattr(cured, name)(a, *q, axis), getattr(cured.dask, name)(x, *q, axis)
                for one, other in zip(want, found) if name == "minmax" else [(want, found)]:
                    self.assert_arrays(one, self.got(other), name)

    def test_what_is_refused(self):
        x = dask.array.from_array(numpy.arange(12.0).reshape(4, 3), chunks=2)
        for words, ask in (("dot: it is of two arrays, and the second is missing: cured.dask.dot\\(x, b\\)", lambda: cured.dask.dot(x)),
                           ("of two arrays, and only one", lambda: cured.dask.reduce(x, "dot")), ("second: its shape is \\(3,\\)", lambda: cured.dask.dot(x, numpy.arange(3.0))),
                           ("weights: their shape is", lambda: cured.dask.average(x, 0, [1, 2])), ("no axis is given", lambda: cured.dask.average(x, weights=[1, 2, 3])),
                           ("keys: quantiles have no partials, .* cured.quantile", lambda: cured.dask.quantile(x, 0.5, keys=[0, 1, 1, 0])),
                           ("keys: quantiles have no partials", lambda: cured.dask.percentile(x, 50, keys=[0, 1, 1, 0])),
                           ("offsets: quantiles have no", lambda: cured.dask.quantile(x, 0.5, offsets=[0, 1])), ("offsets: not of chunks: cured.reduce", lambda: cured.dask.sum(x, offsets=[0, 1])),
                           ("there is no argument 'wher'", lambda: cured.dask.sum(x, wher=1)), ("of one array", lambda: cured.dask.sum(x, second=x)),
                           ("min_count: not with nan='skip'", lambda: cured.dask.dot(x, x, nan="skip", min_count=1)), ("min_count: a quantile takes none", lambda: cured.dask.median(x, min_count=1))):
            with self.assertRaisesRegex((TypeError, ValueError), words):
                ask()
        with self.assertRaises(AttributeError):
            cured.dask.partial


if __name__ == "__main__":
    print("seed", SEED)
    unittest.main()
