"""Quantiles, keys and offsets crossed with the rest: {kinds of arrays} × where= × {axis, keepdims} or {keys, offsets} × out= × dtype= × {the
module, clients of one and of three threads, files}, each answer held against the oracle, or against the op of the gathered elements."""
import functools
import itertools
import os
import tempfile

from support import NUMPY, Case, cured, numpy as np, oracle, unittest

RANDOM = np.random.default_rng(33)
GROUPS = 5
LONG = 2_200_000  # f32 beyond 8 MiB: from there on the pool of a client folds
OPS = ("sum", "mean", "var", "std", "norm1", "norm2", "norminf", "sumsq", "min", "max", "ptp", "argmin", "argmax", "count", "count_nonzero",
       "count_nan", "count_inf", "any", "all")
ROUNDED = ("sum", "mean", "var", "ptp", "norm2")


def kinds(a, folder):
    """(name, array or file, which elements it has of its own)."""
    every, some = np.ones(a.shape, "?"), RANDOM.random(a.shape) < 0.7
    turned = a.astype(a.dtype.newbyteorder(">"))
    yield "C", a, every
    yield "Fortran", np.array(a, order="F"), every
    yield "every other", np.repeat(a, 2, -1)[..., ::2] if a.ndim else a, every
    yield "backwards", a[..., ::-1].copy()[..., ::-1] if a.ndim else a, every
    yield "big-endian", turned, every
    yield "big-endian Fortran", np.array(turned, order="F"), every
    yield "masked", np.ma.masked_array(a, mask=~some), some
    if a.size:
        shared = cured.empty(a.shape, a.dtype)
        shared[...] = a
        yield "shared", shared, every
    path = os.path.join(folder, "a.npy")
    np.save(path, np.array(a, order=RANDOM.choice(["C", "F"])))
    yield "file", cured.file(path), every


def array_of(dtype, shape):
    a = RANDOM.standard_normal(shape) * 100 * 10.0 ** RANDOM.integers(-3, 3, shape)
    a = np.asarray(np.abs(a) if dtype[0] == "u" else a).astype(NUMPY[dtype])
    if a.dtype.kind == "f" and a.size > 3:
        a.flat[1:3] = np.nan, np.inf
    return a


def rows_of(a, axis):
    """The elements that each answer is of, and the answers' shape with the axes as ones."""
    axes = tuple(range(a.ndim)) if axis is None else tuple(k % a.ndim for k in (axis if isinstance(axis, tuple) else (axis,)))
    kept = [k for k in range(a.ndim) if k not in axes]
    rows = a.transpose(kept + sorted(axes)).reshape([a.shape[k] for k in kept] + [int(np.prod([a.shape[k] for k in axes]))])
    shape = tuple(a.shape[k] for k in kept)
    return rows.reshape(int(np.prod(shape)), rows.shape[-1]), shape, tuple(1 if k in axes else a.shape[k] for k in range(a.ndim))


class Ways(Case):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.clients = [cured, cured.Client("embedded:"), cured.Client("embedded:", threads=3)]

    def ways(self, a, function):
        """The function of the module and of clients, and a file's own."""
        for client in self.clients:
            yield functools.partial(getattr(client, function), a)
        if isinstance(a, cured._cured.File):
            yield getattr(a, function)

    def masks(self, a, own):
        yield {}, own
        if not isinstance(a, np.ma.MaskedArray):
            for where in (RANDOM.random(own.shape) < 0.6, RANDOM.random(own.shape[:1] + (1,) * (own.ndim - 1)) < 0.8):
                yield {"where": where}, np.broadcast_to(where, own.shape)

    def same(self, wanted, got, what):
        wanted = np.asarray(wanted)
        self.assertEqual((wanted.shape, wanted.tobytes()), (np.shape(got), np.asarray(got).astype(wanted.dtype).tobytes()), what)

    def test_quantiles(self):
        cases = 0
        for dtype, shape in itertools.product(("f32", "i16", "f64", "u8", "i64"), ((), (0,), (7,), (0, 4), (3, 0), (2, 3, 4))):
            base = array_of(dtype, shape)
            for name, a, own in kinds(base, self.folder):
                for options, keep in self.masks(a, own):
                    axis = RANDOM.choice(len(shape) + 1)
                    axis = (0, 1 if name == "file" else -1) if axis == 2 else None if axis == len(shape) else int(axis)
                    keepdims, nan = bool(RANDOM.integers(2)), str(RANDOM.choice(["propagate", "skip"]))
                    for q, method in ((0.5, "linear"), ([0.25, 0.9], "nearest")):
                        (rows, few, whole), keeps = rows_of(base, axis), rows_of(keep, axis)[0]
                        items = [(share, method) for share in np.atleast_1d(q)]
                        bits = [oracle.quantiles(dtype, row[k].tobytes(), items, nan) for row, k in zip(rows, keeps)]
                        wanted = np.array(bits, "u8").view("f8").reshape(len(rows), np.size(q)).T.reshape(np.shape(q) + (whole if keepdims else few))
                        for way in self.ways(a, "quantile"):
                            what = (dtype, shape, name, list(options), axis, keepdims, nan, q)
                            asked = {"axis": axis, "keepdims": keepdims, "nan": nan, "method": method, **options}
                            self.same(wanted, way(q, **asked), what)
                            out = np.full(wanted.shape, 7.0)
                            self.assertIs(out, way(q, out=out, **asked), what)
                            self.same(wanted, out, what)
                            narrow = np.full(wanted.shape, 7, "f4")
                            way(q, out=narrow, **asked)
                            self.same(narrow, way(q, dtype="f4", **asked), what)
                            cases += 1
        self.assertGreater(cases, 1200)

    def gathered(self, op, a, indices, options):
        options = {name: options[name] for name in ("nan", "dtype") if name in options}
        answer = getattr(cured, op)(np.ascontiguousarray(a[indices]), **options)
        return indices[answer] if op.startswith("arg") else answer

    def check(self, op, a, parts, options, what):
        """parts: of each answer its column of base, and which of its elements count. what: ways, shape, name."""
        ways, shape, name = what
        try:
            wanted = [self.gathered(op, column, indices, options) for column, indices in parts]
        except (ValueError, OverflowError) as error:
            for way in ways:
                with self.assertRaises(type(error)):
                    way(**options)
            return
        for way in ways:
            got = way(**options)
            self.same(np.array(wanted, got.dtype).reshape(shape), got, name)
            turned = got.dtype.newbyteorder()
            for out in (np.empty_like(got), np.empty(shape, turned), np.empty(shape, got.dtype, order="F"), cured.empty(shape, got.dtype)):
                self.assertIs(out, way(out=out, **options), name)
                self.same(got, out, name)

    def options_of(self, op, a):
        options = {"nan": str(RANDOM.choice(["propagate", "skip"]))} if a.dtype.kind == "f" else {}
        if op in ROUNDED and RANDOM.random() < 0.3:
            options["dtype"] = "f4"
        return options

    def test_keys(self):
        for dtype, shape in itertools.product(("f32", "f64", "i16", "u64"), ((0, 3), (300,), (70, 3))):
            base = array_of(dtype, shape)
            flat = base.reshape(shape[0], int(np.prod(shape[1:])))
            for name, a, own in kinds(base, self.folder):
                for mask, keep in self.masks(a, own):
                    if mask and name == "file":
                        continue  # refused, and tested below
                    drop, op = bool(RANDOM.integers(2)), str(RANDOM.choice(OPS))
                    keys = RANDOM.integers(-2 * drop, GROUPS + 2 * drop, shape[0]).astype(RANDOM.choice(["i1", "i4", "i8"]))
                    keeps = keep.reshape(flat.shape)
                    parts = [(flat[:, c], np.flatnonzero((keys == g) & keeps[:, c])) for g in range(GROUPS) for c in range(flat.shape[1])]
                    options = {"keys": keys, "groups": GROUPS, "drop": drop, **self.options_of(op, base), **mask}
                    self.check(op, base, parts, options, (list(self.ways(a, op)), (GROUPS,) + shape[1:], (name, dtype, op)))

    def test_offsets(self):
        for dtype, n in itertools.product(("f32", "f64", "i16", "u64"), (0, 1, 300)):
            base = array_of(dtype, (n,))
            for name, a, own in kinds(base, self.folder):
                for mask, keep in self.masks(a, own):
                    op, offsets = str(RANDOM.choice(OPS)), np.sort(RANDOM.integers(0, n + 1, RANDOM.integers(1, 12)))
                    given = [offsets.tolist(), offsets.astype("i4"), offsets.astype(">i8"), offsets.astype("u8")][RANDOM.integers(4)]
                    parts = [(base[s:e], np.flatnonzero(keep[s:e])) for s, e in zip(offsets, offsets[1:])]
                    options = {"offsets": given, **self.options_of(op, base), **mask}
                    self.check(op, base, parts, options, (list(self.ways(a, op)), (len(parts),), (name, dtype, op)))

    def test_several_threads_under_masks(self):
        """Beyond what is folded without the pool: one set of bits, and that of the elements gathered."""
        a, mask = array_of("f32", (LONG,)), RANDOM.random(LONG) < 0.6
        keys, offsets = RANDOM.integers(0, 1000, LONG), np.append(np.arange(0, LONG, 3000), LONG)
        rows, row_keys = a.reshape(-1, 20), keys[:LONG // 20]
        finite = [op for op in OPS if not op.startswith("arg")]
        for array, where, way in ((a, mask, {"keys": keys}), (a, mask, {"offsets": offsets}), (rows, mask.reshape(rows.shape), {"keys": row_keys}),
                                  (np.asfortranarray(rows), mask.reshape(rows.shape), {"keys": row_keys}), (a, None, {"keys": keys % 3})):
            answers = [client.reduce(array, finite, where=where, **way) for client in self.clients]
            for op in finite:
                self.assertEqual(1, len({answer[op].tobytes() for answer in answers}), (op, list(way)))
        one = np.flatnonzero((keys == 17) & mask)
        self.assertEqual(cured.var(a[one]), self.clients[2].var(a, keys=keys, where=mask)[17])
        self.assertEqual(one[cured.argmax(a[one])], self.clients[2].argmax(a, keys=keys, where=mask)[17])
        segment = slice(offsets[40], offsets[41])
        self.assertEqual(cured.std(a[segment], where=mask[segment]), self.clients[2].std(a, offsets=offsets, where=mask)[40])

    def test_masks_of_files_in_fortran_order(self):
        a, m = array_of("f64", (6, 5)), RANDOM.random((6, 5)) < 0.5
        paths = [os.path.join(self.folder, name) for name in ("a.npy", "m.npy")]
        np.save(paths[0], a)
        np.save(paths[1], np.asfortranarray(m))
        for mask in (np.load(paths[1]), np.load(paths[1], mmap_mode="r")):
            self.assertFalse(mask.flags.c_contiguous)
            for array, axis, op in itertools.product((a, cured.file(paths[0])), (None, 0, 1), ("sum", "median", "ptp", "argmax")):
                self.same(getattr(cured, op)(a, axis, where=m), getattr(cured, op)(array, axis, where=mask), (axis, op))
            self.same(cured.sum(a, keys=np.arange(6) % 2, where=m), cured.sum(a, keys=np.arange(6) % 2, where=mask), "keys")
        with self.assertRaisesRegex(TypeError, "where: a file is the first array alone: pass numpy.load"):
            cured.sum(a, where=cured.file(paths[1]))
        with self.assertRaisesRegex(TypeError, "where: not with keys of a file: reduce numpy.load"):
            cured.file(paths[0]).sum(keys=np.arange(6) % 2, where=m)

    def test_each_of_mixed_types(self):
        arrays = [array_of(dtype, shape) for dtype, shape in (("f32", (5, 3)), ("i16", (4,)), ("f64", (0,)), ("u8", (2, 2, 2)))]
        for options in ({}, {"nan": "skip"}, {"dtype": "f4"}, {"axis": 0}, {"where": True}):
            for a, got in zip(arrays, cured.reduce_each(arrays, "median,sum,quantile", **options)):
                for op in ("median", "sum"):
                    self.same(getattr(cured, op)(a, **options), got[op], (op, options))
                self.same(cured.median(a, **options), got.quantile, options)


if __name__ == "__main__":
    unittest.main()
