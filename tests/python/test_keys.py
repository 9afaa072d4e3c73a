"""Reductions by key from Python: ops × layouts × masks × dropped keys × out= × types of keys, each group held against the same op of its
elements gathered; bincount and histogram against NumPy's; and what is refused."""
import asyncio
import itertools
import os
import pickle
import re
import tempfile

import numpy as np
from support import Case, cured, unittest
from cured_daemon import DaemonTest  # noqa: I100: support finds it

RANDOM = np.random.default_rng(41)
ROWS, GROUPS = 400, 7
OPS = ("sum", "mean", "var", "std", "norm1", "norm2", "norminf", "sumsq", "min", "max", "argmin", "argmax", "count", "count_nonzero",
       "count_nan", "count_inf", "any", "all")
INTEGER_OPS = ("bit_and", "bit_or", "bit_xor", "prod")


def layouts(a):
    yield "C", a
    yield "Fortran", np.asfortranarray(a)
    yield "every other", np.repeat(a, 2, axis=0)[::2]
    yield "backwards", a[::-1].copy()[::-1]
    yield "big-endian", a.astype(a.dtype.newbyteorder(">"))


def gathered(op, a, keep, rows, **options):
    """The answer of one column of some rows."""
    kept = rows[keep[rows]]
    if op in ("argmin", "argmax"):
        return kept[getattr(cured, op)(a[kept], **options)]
    return getattr(cured, op)(a[kept], **options)


def example():
    """
    >>> a, keys = np.array([1.5, 2, 4, -1]), np.array([2, 0, 2, 2])
    >>> parts = [cured.partial(a[i:i + 2], "sum,count", keys=keys[i:i + 2], groups=4) for i in (0, 2)]
    >>> cured.merge(parts).finish("sum,count")
    Result(sum=array([2. , 0. , 4.5, 0. ]), count=array([1, 0, 3, 0], dtype=uint64))
    """


class Keys(DaemonTest, Case):
    def test_example(self):
        self.assert_example(example, 3)

    def check(self, op, a, keys, got, keep, what, **options):
        flat, kept = np.asarray(a).reshape(len(a), -1), keep.reshape(len(a), -1)
        got = np.asarray(got).reshape(GROUPS, -1)
        for group, column in itertools.product(range(GROUPS), range(flat.shape[1])):
            wanted = gathered(op, flat[:, column].astype(flat.dtype.newbyteorder("=")), kept[:, column],
                              np.flatnonzero(keys == group), **options)
            self.assertEqual(np.asarray(wanted, got.dtype).tobytes(), got[group, column].tobytes(), (what, op, group, column))

    def test_every_op(self):
        for dtype, shape, of_keys in (("f8", (ROWS,), "i8"), ("f4", (ROWS, 3), "u1"), ("f2", (ROWS, 2, 2), "i4"),
                                      ("i4", (ROWS, 2), "u8"), ("u8", (ROWS,), "i2"), ("?", (ROWS,), "u4")):
            a = RANDOM.standard_normal(shape) * 100
            a = (np.abs(a) if dtype == "u8" else a).astype(dtype)
            keys = RANDOM.integers(0, GROUPS, ROWS).astype(of_keys)
            keep = RANDOM.random(shape) < 0.8
            every = np.ones(shape, "?")
            for op in OPS + (() if a.dtype.kind == "f" else INTEGER_OPS):
                options = {"overflow": "wrap"} if op == "prod" else {}
                function = getattr(cured, op)
                self.check(op, a, keys, function(a, keys=keys, groups=GROUPS, **options), every, "plain", **options)
                self.check(op, a, keys, function(a, keys=keys, where=keep, **options), keep, "where", **options)
                masked = np.ma.masked_array(a, mask=~keep)
                self.check(op, a, keys, function(masked, keys=keys, **options), keep, "masked", **options)

    def test_layouts(self):
        a = RANDOM.standard_normal((ROWS, 3))
        keys = RANDOM.integers(0, GROUPS, ROWS)
        keep = RANDOM.random(a.shape) < 0.5
        for (name, b), op in itertools.product(layouts(a), ("sum", "argmax", "var")):
            self.check(op, a, keys, getattr(cured, op)(b, keys=keys, axis=0), np.ones(a.shape, "?"), name)
            self.check(op, a, keys, getattr(cured, op)(b, keys=keys, where=keep), keep, name)

    def test_drop(self):
        a = RANDOM.standard_normal(ROWS)
        keys = RANDOM.integers(-2, GROUPS + 3, ROWS)
        self.check("mean", a, keys, cured.mean(a, keys=keys, groups=GROUPS, drop=True), np.ones(ROWS, "?"), "drop")
        first = int(np.flatnonzero((keys < 0) | (keys >= GROUPS))[0])
        with self.assertRaisesRegex(ValueError, "keys: number %d is %d, not one of 0 to 6" % (first, keys[first])):
            cured.mean(a, keys=keys, groups=GROUPS)

    def test_several_and_out(self):
        a = RANDOM.standard_normal((ROWS, 2)).astype("f4")
        keys = RANDOM.integers(0, GROUPS, ROWS)
        every = np.ones(a.shape, "?")
        several = cured.reduce(a, ["sum", "max", "count"], keys=keys)
        for op in ("sum", "max", "count"):
            self.check(op, a, keys, several[op], every, "reduce")
        out = np.zeros((GROUPS, 2))
        self.assertIs(cured.sum(a, keys=keys, out=out), out)
        self.check("sum", a, keys, out, every, "out")
        narrow = np.zeros((GROUPS, 2), "f4")
        cured.sum(a, keys=keys, dtype="f4", out=narrow)
        self.check("sum", a, keys, narrow, every, "narrow", dtype="f4")
        with self.assertRaises(ValueError):
            cured.sum(a, keys=keys, out=np.zeros((GROUPS + 1, 2)))

    def test_no_elements(self):
        a, keys = np.array([1.0, 2.0, np.nan]), np.array([0, 3, 2])
        self.assertEqual([1, 0, 0, 2], cured.sum(a, keys=keys, nan="skip").tolist())
        self.assertEqual("nan", str(cured.mean(a, keys=keys)[1]))
        with self.assertRaisesRegex(ValueError, "output 1: min of no elements"):
            cured.min(a, keys=keys)
        result = cured.reduce(a, ["sum", "min"], keys=keys)
        self.assertEqual(4, len(result["sum"]))
        with self.assertRaises(ValueError):
            result["min"]
        self.assertEqual((2, 3), cured.sum(np.zeros((0, 3)), keys=np.zeros(0, "i4"), groups=2).shape)
        self.assertEqual((0,), cured.sum(np.zeros(0), keys=np.zeros(0, "i4")).shape)

    def test_rows_of_no_elements(self):
        """Each group has its row of no answers; what is wrong is said as of other rows."""
        ops, folder = "sum,mean,min,argmax,count,any", self.enterContext(tempfile.TemporaryDirectory())
        client = self.enterContext(cured.Client("embedded:"))
        for dtype, shape in itertools.product(("f4", "<i8", ">u2", "?"), ((3, 0), (0, 0), (3, 2, 0), (3, 0, 2))):
            a, keys = np.zeros(shape, dtype), np.array([0, 2, 0])[:shape[0]]
            np.save(folder + "/a.npy", a)
            one = cured.reduce(np.ones((1, 1), dtype), ops, keys=np.zeros(1, int))
            for asked in (a, np.asfortranarray(a), np.ma.masked_array(a), cured.file(folder + "/a.npy")):
                for options in ({"groups": 4}, {}, {"groups": 1, "drop": True}, {"groups": 4, "client": client}):
                    made, groups = cured.reduce(asked, ops, keys=keys, **options), options.get("groups", 3 if shape[0] else 0)
                    for op in made:
                        self.assertEqual(((groups,) + shape[1:], one[op].dtype), (made[op].shape, made[op].dtype), (op, dtype, shape))
            out = np.empty((4,) + shape[1:], "f4")
            self.assertIs(out, cured.mean(a, keys=keys, groups=4, out=out))
            self.assertEqual(out.shape, cured.mean(a, keys=keys, groups=4, where=np.ones(shape, bool), min_count=1).shape)
        a, keys = np.zeros((3, 0)), np.array([0, 2, 0])
        for wrong in ({"groups": 2}, {"groups": -1}, {"axis": 1}, {"keepdims": True}, {"initial": 1.0}, {"dtype": "i4"}, {"ddof": 1}, {"offsets": [0, 1]}, {"out": np.empty(3)},
                      {"where": np.ones(2, bool)}, {"second": a}, {"keys": keys[1:]}, {"keys": keys * 1.0}):
            options = {"keys": keys, **wrong}
            with self.assertRaises((TypeError, ValueError)) as of_one:
                cured.sum(np.zeros((3, 1)), **(options if "where" not in wrong and "second" not in wrong else {**options, **{name: np.ones((5, 7), bool) for name in wrong}}))
            with self.assertRaises(type(of_one.exception)) as of_none:
                cured.sum(a, **options)
            self.assertEqual(str(of_one.exception).partition(":")[0], str(of_none.exception).partition(":")[0], wrong)
        self.assertEqual((3, 0), cured.median(a, keys=keys).shape)
        for op in ("digest", "dot"):
            with self.assertRaises((TypeError, ValueError, NotImplementedError)):
                getattr(cured, op)(a, keys=keys)
        with self.assertRaisesRegex(ValueError, "keys: 3 of them, the array has %d rows" % 2**40):  # for which nothing is allocated
            cured.sum(np.lib.stride_tricks.as_strided(a, (2**40, 0)), keys=keys)
        with self.assertRaisesRegex(ValueError, "rows have no elements"):
            cured.partial(a, "sum", keys=keys)

    def test_quantiles_of_no_elements(self):
        """Each share has a row of no answers for each group, by every door."""
        folder, there = self.enterContext(tempfile.TemporaryDirectory()), self.enterContext(cured.Client(self.daemon.address))

        async def awaited(array, *args, **options):
            async with cured.AsyncClient("embedded:") as client:
                return await client.quantile(array, *args, **options)

        def at_once(array, *args, **options):
            return asyncio.run(awaited(array, *args, **options))

        def of_client(array, *args, **options):
            return cured.quantile(array, *args, client=there, **options)

        kinds, shares = (("f4", (3, 0)), (">i2", (3, 2, 0)), ("?", (0, 0)), ("f8", (3, 0, 2))), (0.25, [0.1, 0.9], [[0.5]] * 40, [])
        for (dtype, shape), q in (*zip(kinds, shares), *zip(kinds, reversed(shares))):
            a, keys = np.zeros(shape, dtype), np.array([0, 2, 0])[:shape[0]]
            np.save(folder + "/a.npy", a)
            file = cured.file(folder + "/a.npy")
            for (array, door), more in itertools.product(
                    itertools.product((a, np.asfortranarray(a), np.ma.masked_array(a), file), (cured.quantile, there.quantile, of_client, at_once)),
                    ({}, {"axis": 0}, {"method": "lower", "dtype": "f4"}, {"nan": "skip"})):
                wanted = np.shape(q) + (4,) + shape[1:], np.dtype(more.get("dtype", "f8"))
                what = door, array, q, more
                behind = ((q, 0), {}) if "axis" in more else ((), {"q": q, **more})
                for args, options in (((q,), more), behind):
                    made = door(array, *args, keys=keys, groups=4, **options)
                    self.assertEqual(wanted, (made.shape, made.dtype), what)
                if door is at_once:
                    with self.assertRaisesRegex(TypeError, "AsyncClient takes no out"):
                        door(array, q, keys=keys, groups=4, out=made)
                    continue
                for out in (np.empty(wanted[0]), np.empty(wanted[0], "f4")):
                    self.assertIs(out, door(array, q, keys=keys, groups=4, out=out, **more), what)
            self.assertEqual(np.shape(q) + (4,) + shape[1:], file.quantile(q, keys=keys, groups=4).shape)
        a, keys = np.zeros((3, 0)), np.array([0, 2, 0])
        for options, sentence in (({"axis": 1}, "axis: by key"), ({"groups": 2}, "keys: number 1 is 2"), ({"method": "none"}, 'method: "none"'), ({"dtype": "i4"}, "dtype"),
                                  ({"out": np.empty(3)}, "output parameter for reduction operation quantile"), ({"min_count": 1}, "^min_count: a quantile takes none")):
            for q in (0.5, [0.5]):
                with self.assertRaisesRegex((TypeError, ValueError), sentence):
                    cured.quantile(a, q, keys=keys, **options)
        for q in (0.5, [0.5, 1]):
            for refused in (lambda: cured.median(np.ones(3), min_count=9), lambda: there.median(np.ones((3, 2)), 0, min_count=1), lambda: file.median(min_count=1),
                            lambda: cured.reduce(np.ones(3), "sum,median", min_count=1), lambda: cured.median([np.ones(3)], min_count=1), lambda: cured.median(np.ones(3), keys=[0, 0, 1], min_count=2),
                            lambda: cured.quantile(np.ones(3), q, min_count=1), lambda: cured.quantile(np.ones(3), q=q, min_count=1), lambda: at_once(np.ones(3), q, min_count=1),
                            lambda: there.quantile(np.ones(3), q, 0, min_count=1), lambda: cured.quantile([np.ones(3)], q, min_count=1), lambda: file.quantile(q, min_count=1)):
                with self.assertRaisesRegex(TypeError, "^min_count: a quantile takes none"):
                    refused()

    def test_refused(self):
        a, keys = np.ones((4, 2)), np.array([0, 1, 0, 1])
        for options, sentence in (({"axis": 1}, "axis: by key"), ({"keys": keys[:3]}, "keys: 3 of them, the array has 4 rows"),
                                  ({"keepdims": True}, "keepdims"), ({"initial": 1.0}, "initial"),
                                  ({"keys": {0, 1}}, "keys: set: an array is wanted"),
                                  ({"keys": np.array([0, 1, 2**63, 2], "u8")}, "groups: the states of 9223372036854775809 groups"),
                                  ({"keys": keys.astype("f8")}, "keys: their type is f64"), ({"keys": keys.reshape(2, 2)}, "one axis"),
                                  ({"groups": 2**40}, "groups: "), ({"groups": -1}, "groups: ")):
            with self.assertRaisesRegex((TypeError, ValueError, cured.Error), sentence):
                cured.sum(a, **{"keys": keys, **options})
        for copied in (np.repeat(keys, 2)[::2], keys.astype(">i8"), keys.astype(">u2"), np.ma.masked_array(keys), np.ma.masked_array(keys, keys > 1)):
            self.assertEqual([[2, 2], [2, 2]], cured.sum(a, keys=copied).tolist())
        with self.assertRaisesRegex(TypeError, "groups: only with keys"):
            cured.sum(a, groups=2)
        with self.assertRaisesRegex(TypeError, "drop: only with keys"):
            cured.sum(a, drop=True)
        for op in ("digest", "prod"):
            with self.assertRaisesRegex(ValueError, "by key"):
                getattr(cured, op)(a, keys=keys)
        daemon = self.enterContext(cured.Client(self.daemon.address))
        with self.assertRaisesRegex(ValueError, "keys: number 1 is 1, not one of 0 to 0; drop leaves such elements out"):
            daemon.sum(a, keys=keys, groups=1)
        with self.assertRaisesRegex(cured.Error, "groups: "):
            daemon.sum(a, keys=keys, groups=2**27)

    def same(self, wanted, got, ops, what):
        """Bits of arrays, or the sentences of ops that lack answers. A partial does not know of elements that are left out."""
        for op in ops:
            try:
                answer = wanted[op]
            except (ValueError, OverflowError) as error:
                with self.assertRaises(type(error)) as raised:
                    got[op]
                said, finished = (str(e).replace(" or only NaNs", "") for e in (error, raised.exception))
                self.assertEqual(said, finished, (what, op))
                continue
            self.assertEqual((answer.dtype, answer.tobytes()), (got[op].dtype, got[op].tobytes()), (what, op))

    def test_partials(self):
        """Types × ops × masks × dropped keys × rows × empty groups: cut anywhere and merged in any order, the bytes of the whole's partial,
        and the answers of the whole."""
        cases = 0
        for (dtype, shape), groups, masked, drop in itertools.product(
                (("f8", (ROWS,)), ("f4", (ROWS, 3)), ("f2", (ROWS, 2, 2)), ("i1", (ROWS,)), ("i4", (ROWS, 2)), ("u8", (ROWS,)), ("?", (ROWS,)),
                 ("f8", (0,)), ("f4", (1, 5))), (GROUPS, 3 * GROUPS), (False, True), (False, True)):
            a = (RANDOM.standard_normal(shape) * 10.0 ** RANDOM.integers(-3, 4, shape)).astype(dtype)
            if a.dtype.kind == "f":
                a[RANDOM.random(shape) < 0.01] = np.nan
            rows, keep = shape[0], RANDOM.random(shape) < 0.7
            keys = RANDOM.integers(-2 if drop else 0, GROUPS + (30 if drop else 0), rows).astype("i2")
            ops = [op for op in OPS if not op.startswith("arg")] + ["ptp"] + (list(INTEGER_OPS) if a.dtype.kind != "f" else [])
            options = {"overflow": "wrap"} if "prod" in ops else {}

            def part(cut, a=a, keys=keys, keep=keep, masked=masked, ops=ops, groups=groups, drop=drop):
                where = {"where": keep[cut]} if masked else {}
                return cured.partial(a[cut], ops, keys=keys[cut], groups=groups, drop=drop, **where)

            whole = cured.reduce(a, ops, keys=keys, groups=groups, drop=drop, **({"where": keep} if masked else {}), **options)
            order = RANDOM.permutation(rows)
            cuts = np.sort(RANDOM.integers(0, rows + 1, RANDOM.integers(0, 5)))
            parts = [part(cut) for cut in np.split(order, cuts)]
            merged = cured.merge([parts[i] for i in RANDOM.permutation(len(parts))])
            self.assertEqual(part(slice(None)), merged)
            self.assertEqual(groups, merged.groups)
            self.assertEqual(int((keep if masked else np.ones(shape, "?"))[(keys >= 0) & (keys < groups)].sum()), merged.count)
            for nan in ("propagate", "skip"):
                wanted = cured.reduce(a, ops, keys=keys, groups=groups, drop=drop, nan=nan, **({"where": keep} if masked else {}), **options)
                self.same(wanted, pickle.loads(pickle.dumps(merged)).finish(ops, nan=nan, **options), ops, (dtype, shape, nan))
            self.same(whole, cured.merge([cured.merge(parts[:1]), *parts[1:]]).finish(ops, **options), ops, (dtype, shape))
            cases += len(ops)
        self.assertGreater(cases, 500)

    def test_partials_finished_otherwise(self):
        a, keys = RANDOM.standard_normal((ROWS, 2)), RANDOM.integers(0, GROUPS, ROWS)
        part = cured.partial(np.asfortranarray(a), "var,sum,max", keys=keys)
        for options in ({"dtype": "f4"}, {"dtype": "f2", "ddof": 1}, {"ddof": 2}):
            self.same(cured.reduce(a, "var,sum,max", keys=keys, **options), part.finish("var,sum,max", **options), ["var", "sum", "max"], options)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.npy")
            np.save(path, a)
            self.assertEqual(part, cured.partial(cured.file(path), "var,sum,max", keys=keys))
        self.assertIn("by key of 800 elements of f64, 7 groups", repr(part))
        self.assertIsNone(cured.partial(a, "sum").groups)

    def test_partials_refused(self):
        a, keys = np.arange(6.0), np.array([0, 1, 0, 1, 3, 1])
        part, whole = cured.partial(a, "sum,max", keys=keys), cured.partial(a, "sum,max")
        narrow = cured.partial(a.astype("f4"), "sum,max", keys=keys)
        raw = bytes(part)
        swapped = bytearray(raw)
        swapped[32:40] = (9).to_bytes(8, "little")
        for sentence, f in (("without a position there is no argmax of f64", lambda: cured.partial(a, "argmax", keys=keys)),
                            ("op digest is of all bytes", lambda: cured.partial(a, "digest", keys=keys)),
                            ("op prod of f64 goes by the places", lambda: cured.partial(a, "prod", keys=keys)),
                            ("partial: op median has none", lambda: cured.partial(a, "median", keys=keys)),
                            ("partial: it was not made for var", lambda: part.finish("var")),
                            ("there is no argmin of f64", lambda: part.finish("argmin")),
                            ("ddof: none of the ops takes it", lambda: part.finish("sum", ddof=1)),
                            ("it is by key", part.linear), (r"partials\[1\]: it is by key", lambda: cured.merge([whole, part])),
                            (r"partials\[1\]: these bytes are not one by key", lambda: cured.merge([part, whole])),
                            (r"partials\[1\]: one is of f64, another of f32", lambda: cured.merge([part, narrow])),
                            (r"partials\[1\]: they were made for different ops", lambda: cured.merge([part, cured.partial(a, "sum", keys=keys)])),
                            (r"partials\[2\]: one has 4 groups, another 9: say groups",
                             lambda: cured.merge([part, part, cured.partial(a, "sum,max", keys=keys, groups=9)])),
                            ("rows of 1 columns, another of 2", lambda: cured.merge(
                                [part, cured.partial(np.ones((3, 2)), "sum,max", keys=keys[:3], groups=4)])),
                            ("shape, start: a partial by key is of no block", lambda: cured.partial(a, "sum", keys=keys, shape=(9,), start=(0,))),
                            ("it is cut short", lambda: cured.Partial(raw[:-1])), ("bytes follow its end", lambda: cured.Partial(raw + b"0")),
                            ("a cell is beyond its groups", lambda: cured.Partial(bytes(swapped))),
                            ("more than a call by key has", lambda: cured.Partial(raw[:8] + b"\xff" * 7 + raw[15:]))):
            with self.assertRaisesRegex(ValueError, sentence):
                f()
        with self.assertRaisesRegex(TypeError, "first: a partial by key has no position"):
            cured.partial(a, "sum", keys=keys, first=3)
        daemon = self.enterContext(cured.Client(self.daemon.address))
        for sentence, op in (("without a position there is no argmax of f64", "argmax"), ("op digest is of all bytes", "digest"),
                             ("op prod of f64 goes by the places", "prod"), ("partial: op median has none", "median")):
            with self.assertRaisesRegex(ValueError, sentence):
                daemon.partial(a, op, keys=keys)
        with self.assertRaisesRegex(ValueError, "keys: number 2 is 0, not one of 0 to -1|there are no groups"):
            daemon.partial(a, "sum", keys=keys, groups=0)

    def test_partials_by_a_daemon(self):
        """Types, layouts, masks, dropped keys, kinds of input and no elements: the bytes that this process makes; parts of both merge."""
        client, cases = self.enterContext(cured.Client(self.daemon.address)), 0
        with tempfile.TemporaryDirectory() as folder:
            for dtype, shape, of_keys in (("f8", (ROWS,), "i8"), ("f4", (ROWS, 3), "u1"), ("f2", (ROWS, 2, 2), "i4"), ("i4", (ROWS, 2), "u8"),
                                          ("?", (ROWS,), "u4"), ("f8", (0,), "i4"), ("u1", (0, 3), "i4")):
                a = (RANDOM.standard_normal(shape) * 100).astype(dtype)
                keys, keep = RANDOM.integers(0, GROUPS + 2, len(a)).astype(of_keys), RANDOM.random(shape) < 0.8
                shared = cured.empty(a.shape, a.dtype)
                shared[...] = a
                path = os.path.join(folder, "a%d.npy" % cases)
                np.save(path, a)
                for ops in ("sum", "mean,max", "var,count_nonzero", "prod" if a.dtype.kind != "f" else "norm1"):
                    if ops[0] == "v" and dtype == "?":
                        continue
                    for options in ({"groups": GROUPS + 2}, {"groups": GROUPS, "drop": True}, {"groups": GROUPS + 2, "where": keep}):
                        wanted = cured.partial(a, ops, keys=keys, **options)
                        for name, b in [*layouts(a), ("shared", shared)] + ([] if "where" in options else [("file", cured.file(path))]):
                            self.assertEqual(wanted, client.partial(b, ops, keys=keys, **options), (name, dtype, shape, ops, options))
                            cases += 1
        self.assertGreater(cases, 300)
        large, keys = RANDOM.standard_normal(300000), RANDOM.integers(0, 90000, 300000)
        parts = [(client if k % 2 else cured).partial(large[k::3], "sum,var", keys=keys[k::3].copy(), groups=90000) for k in range(3)]
        self.assertGreater(len(bytes(parts[1])), 6 << 20)  # beyond the credit that a call begins with
        wanted, got = cured.reduce(large, "sum,var", keys=keys, groups=90000), cured.merge(parts).finish("sum,var")
        self.same(wanted, got, ["sum", "var"], "merged")

    def test_a_daemon(self):
        """Ops, layouts, masks, dropped keys, out= and kinds of input, by a daemon: the bits that this process answers."""
        client = self.enterContext(cured.Client(self.daemon.address))
        cases = 0
        for dtype, shape, of_keys in (("f8", (ROWS,), "i8"), ("f4", (ROWS, 3), "u1"), ("f2", (ROWS, 2, 2), "i4"), ("i4", (ROWS, 2), "u8"),
                                      ("?", (ROWS,), "u4")):
            a = (RANDOM.standard_normal(shape) * 100).astype(dtype)
            keys = RANDOM.integers(0, GROUPS + 2, ROWS).astype(of_keys)
            keep = RANDOM.random(shape) < 0.8
            shared = cured.empty(a.shape, a.dtype)
            shared[...] = a
            for op in OPS + (() if a.dtype.kind == "f" else INTEGER_OPS):
                options = {"keys": keys, "groups": GROUPS + 2, **({"overflow": "wrap"} if op == "prod" else {})}
                wanted = getattr(cured, op)(a, **options)
                out = cured.empty(wanted.shape, wanted.dtype)
                for name, b in [*layouts(a), ("shared", shared), ("list", np.array(a.tolist(), a.dtype))]:
                    self.assertEqual(wanted.tobytes(), getattr(client, op)(b, **options).tobytes(), (name, op))
                    getattr(client, op)(b, out=out, **options)
                    self.assertEqual(wanted.tobytes(), out.tobytes(), (name, op))
                    cases += 1
                dropped = dict(options, groups=GROUPS, drop=True)
                self.assertEqual(getattr(cured, op)(a, **dropped).tobytes(), getattr(client, op)(a, **dropped).tobytes(), op)
                self.assertEqual(getattr(cured, op)(a, where=keep, **options).tobytes(), getattr(client, op)(a, where=keep, **options).tobytes(), op)
        self.assertGreater(cases, 500)

    def test_a_daemon_s_files(self):
        client = self.enterContext(cured.Client(self.daemon.address))
        large = RANDOM.standard_normal((200000, 2))
        keys = RANDOM.integers(0, 1000, 200000)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.npy")
            np.save(path, large)
            wanted = cured.reduce(large, ["sum", "argmax"], keys=keys)
            for given in (large, cured.file(path)):
                got = client.reduce(given, ["sum", "argmax"], keys=keys)
                for op in ("sum", "argmax"):
                    self.assertEqual(wanted[op].tobytes(), got[op].tobytes())

    def test_async(self):
        async def main():
            for address in ("embedded:", self.daemon.address):
                async with cured.AsyncClient(address) as client:
                    answers = await asyncio.gather(*(client.sum(np.arange(6.0).reshape(3, 2) + k, keys=np.array([1, 0, 1]), groups=3) for k in range(20)))
                    for k, answer in enumerate(answers):
                        self.assertEqual([[2 + k, 3 + k], [4 + 2 * k, 6 + 2 * k], [0, 0]], answer.tolist())
                    making = client.partial(np.arange(3.0), "sum", keys=np.array([1, 0, 1]), groups=3)
                    self.assertEqual([1, 2, 0], (await making).finish("sum").sum.tolist())
                    with self.assertRaisesRegex(ValueError, "keys: number 2 is 7"):
                        await client.sum(np.arange(3.0), keys=np.array([0, 1, 7]), groups=3)
        asyncio.run(main())

    def test_shuffled(self):
        a = RANDOM.standard_normal(5000) * 10.0 ** RANDOM.integers(-150, 150, 5000)
        keys = RANDOM.integers(0, 50, 5000)
        wanted = cured.reduce(a, ["sum", "var", "min"], keys=keys)
        for _ in range(50):
            order = RANDOM.permutation(len(a))
            got = cured.reduce(a[order], ["sum", "var", "min"], keys=keys[order])
            for op in ("sum", "var", "min"):
                self.assertEqual(wanted[op].tobytes(), got[op].tobytes())

    def test_bincount(self):
        x = RANDOM.integers(0, 40, 3000)
        weights = RANDOM.integers(-9, 9, 3000) / 8
        for some, least in itertools.product((x, x.astype("u1"), x[:1], x[:0]), (0, 3, 100)):
            self.assertEqual(np.bincount(some, minlength=least).tolist(), cured.bincount(some, minlength=least).tolist())
        self.assertEqual(np.bincount(x, weights).tolist(), cured.bincount(x, weights).tolist())
        self.assertEqual([2, 1], cured.bincount([False, True, False]).tolist())
        with self.assertRaisesRegex(ValueError, "weights: their shape is"):
            cured.bincount(x, weights[1:])
        for wrong in (np.array([1, -1]), np.ones((2, 2), int), np.ones(3)):
            with self.assertRaises((TypeError, ValueError)):
                cured.bincount(wrong)

    def test_histogram(self):
        a = RANDOM.standard_normal(5000)
        for x, bins in itertools.product((a, (a * 50).astype("i4"), a.astype("f4"), a[:0]),
                                         (10, [-1, 0, 0.5, 2], np.linspace(-100, 100, 38), [0.0, 0.0, 1.0])):
            wanted, edges = np.histogram(x, bins)
            got, mine = cured.histogram(x, bins)
            self.assertEqual((wanted.tolist(), edges.tolist()), (got.tolist(), mine.tolist()))
        weights = RANDOM.integers(0, 9, 5000) / 4
        self.assertEqual(np.histogram(a, 5, (-1, 1), weights=weights)[0].tolist(), cured.histogram(a, 5, (-1, 1), weights)[0].tolist())
        for dtype, edges in itertools.product(("i1", "u2", "i8", "f4"), ([0, 1, 3, np.inf], [-np.inf, 0, 2], [-np.inf, -1.5, 0.5, np.inf],
                                                                           [-np.inf, np.inf], [np.inf, np.inf])):
            x = np.array([0, 0, 1, 2, 3, 100]).astype(dtype)
            self.assertEqual(np.histogram(x, edges)[0].tolist(), cured.histogram(x, edges)[0].tolist(), (dtype, edges))
        for words, options in (("same shape as", {"weights": np.ones(4)}), ("same shape as", {"weights": np.ones((5000, 1))})):
            with self.assertRaisesRegex(ValueError, words):
                cured.histogram(a, **options)
        for bins in ([1, np.nan, 3], [np.nan, 1], [3, 2, 1], np.array([0.0, 2, 1])):
            with self.assertRaisesRegex(ValueError, "bins: |monotonically"):
                cured.histogram(a, bins)
        keep = a > -0.5
        self.assertEqual(np.histogram(a[keep], 7)[0].tolist(), cured.histogram(a, 7, where=keep)[0].tolist())
        self.assertEqual(np.histogram(a[keep], 7, weights=weights[keep])[0].tolist(), cured.histogram(a, 7, weights=weights, where=keep)[0].tolist())
        self.assertEqual(0, cured.histogram(a, 3, (0, 1), where=False)[0].sum())
        with self.assertRaisesRegex(TypeError, "where: a bool array"):
            cured.histogram(a, 3, where=a)
        for bins in (7, [-2, 0, 0.5, 2]):
            for more in ({}, {"weights": (weights * 4).astype(int)}):
                np.testing.assert_allclose(np.histogram(a, bins, density=True, **more)[0], cured.histogram(a, bins, density=True, **more)[0], rtol=1e-14)
        with self.assertRaisesRegex(TypeError, "density: not with weights of float64"):
            cured.histogram(a, density=True, weights=weights)
        with cured.Client("embedded:") as client:
            self.assertEqual(cured.histogram(a)[0].tolist(), cured.histogram(a, client=client)[0].tolist())
            self.assertEqual([1, 2], cured.bincount([0, 1, 1], client=client).tolist())
        with self.assertRaisesRegex(TypeError, "'str' object cannot be interpreted"):
            cured.bincount([1], minlength="1")
        for x, bins in ((np.array([2**62]), 1), (np.array([1e300, 1e300]), 10), (np.array([1.0, np.nextafter(1.0, 2)]), 9)):
            with self.assertRaisesRegex(ValueError, "bins: %d of one width are too many: .* the same" % bins):  # which would lose elements
                cured.histogram(x, bins)
        with tempfile.TemporaryDirectory() as folder:
            np.save(folder + "/a.npy", a)
            for ask in (cured.histogram, cured.bincount):
                with self.assertRaisesRegex(TypeError, "^[ax]: a file is no array here: pass numpy.load"):
                    ask(cured.file(folder + "/a.npy"))
        large = np.array([2**53, 2**53 + 1, 2**53 + 2])  # which NumPy compares as f64
        self.assertEqual([2, 1], cured.histogram(large, np.array([2.0**53, 2.0**53 + 2, 2.0**53 + 4]))[0].tolist())
        self.assertEqual([0, 3], cured.histogram(np.array([5, 6, 7], "u1"), [-1e300, -5.5, 1e300])[0].tolist())

    def test_bins_of_what_is_there(self):
        """Elements under a mask, of the array or of its weights, are in no bin, and the edges do not know them."""
        x, weights, off = RANDOM.integers(0, 40, 3000), RANDOM.integers(-9, 9, 3000) / 8, RANDOM.random(3000) < 0.3
        hidden = np.where(off, 10**9, x)
        masked, more = np.ma.masked_array(hidden, off), np.ma.masked_array(weights, np.roll(off, 7))
        both = ~(off | np.roll(off, 7))
        self.assertEqual(np.bincount(x[~off]).tolist(), cured.bincount(masked).tolist())
        self.assertEqual(np.bincount(x[both], weights[both]).tolist(), cured.bincount(masked, more).tolist())
        self.assertEqual(np.bincount(x[~off], weights[~off]).tolist(), cured.bincount(masked, weights).tolist())
        for bins in (10, [0, 3, 50]):
            wanted, edges = np.histogram(x[~off], bins)
            for a in (masked, masked.reshape(30, 100)):
                got, mine = cured.histogram(a, bins)
                self.assertEqual((wanted.tolist(), edges.tolist()), (got.tolist(), mine.tolist()))
            self.assertEqual(np.histogram(x[both], bins, weights=weights[both])[0].tolist(), cured.histogram(masked, bins, weights=more)[0].tolist())
        self.assertEqual([], cured.bincount(np.ma.masked_array([1, 2], True)).tolist())
        self.assertEqual([0, 2], cured.bincount(np.ma.masked_array([1, 1])).tolist())


if __name__ == "__main__":
    unittest.main()
