"""Masked arrays and where=: indices count the elements that are left out, answers go to out=, and partials have no position."""
import asyncio
import itertools

import numpy as np
from support import Case, cured, unittest
from cured_daemon import DaemonTest  # noqa: I100: support finds it

A = np.array([9, 1, 5, 0, 7])
MASK = np.array([1, 0, 0, 1, 0], "?")
M = np.ma.masked_array(A, mask=MASK)


def true_index(a, keep, least):
    """The index of the first extremum among the elements to keep, in C order."""
    kept = [(x if least else -x, i) for i, (x, k) in enumerate(zip(a.reshape(-1).tolist(), keep.reshape(-1).tolist())) if k]
    return min(kept)[1]


class Indices(Case):
    def test_of_a_masked_array(self):
        self.assertEqual((1, 4), (cured.argmin(M), cured.argmax(M)))
        self.assertEqual((1, 4), (cured.argmin(A, where=~MASK), cured.argmax(A, where=~MASK)))
        d = cured.describe(M)
        self.assertEqual((3, 1, 7, 1, 4), (d.count, d.min, d.max, d.argmin, d.argmax))
        self.assertEqual(dict(d), dict(cured.describe(A, where=~MASK)))
        r = cured.reduce(M, "argmax,sum,argmin")
        self.assertEqual((4, 13, 1), (r.argmax, r.sum, r.argmin))
        out = np.empty((), "i8")
        self.assertIs(out, cured.argmax(M, out=out))
        self.assertEqual(4, out)

    def test_of_nothing(self):
        for where in (False, np.array(False), np.zeros(5, "?")):
            for op in (cured.argmin, cured.argmax):
                with self.assertRaisesRegex(ValueError, "no elements"):
                    op(A, where=where)
        with self.assertRaisesRegex(ValueError, "no elements"):
            cured.argmin(np.ma.masked_all(3))
        with self.assertRaisesRegex(ValueError, "no elements"):
            cured.argmin(np.ma.masked_array(np.ones((2, 2)), mask=[[1, 1], [0, 0]]), axis=1)

    def test_of_nans(self):
        a = np.array([np.nan, 3, np.nan, 1, 2])
        keep = np.array([0, 1, 1, 1, 0], "?")
        self.assertEqual((2, 2), (cured.argmin(a, where=keep), cured.argmax(a, where=keep)))
        self.assertEqual((3, 1), (cured.argmin(a, where=keep, nan="skip"), cured.argmax(a, where=keep, nan="skip")))

    def test_random_shapes(self):
        """Every order, axis and mask: broadcast, reversed, Fortran, with steps."""
        random = np.random.default_rng(12)
        for case in range(150):
            shape = tuple(random.integers(1, 6, random.integers(1, 5)))
            a = random.integers(0, 5, shape).astype(random.choice(["f4", "i2", "u8"]))  # ties
            keep = random.random(tuple(n if random.random() < 0.7 else 1 for n in shape)) < 0.6
            for view in (a, np.asfortranarray(a), np.repeat(a, 2, -1)[..., ::2], np.flip(np.flip(a).copy())):
                full = np.broadcast_to(keep, shape)
                for n in range(len(shape) + 1):
                    for axis in itertools.combinations(range(len(shape)), n):
                        self.check(view, full, keep, axis)
                if full.any():
                    self.assertEqual(true_index(a, full, True), cured.argmin(view, where=keep))
                    self.assertEqual(true_index(a, full, False), cured.argmax(np.ma.masked_array(view, mask=~full)))

    def check(self, a, full, keep, axis):
        kept = [k for k in range(a.ndim) if k not in axis]
        order = kept + list(axis)
        shape = [1 if k in axis else a.shape[k] for k in range(a.ndim)]
        rows = a.transpose(order).reshape(int(np.prod([a.shape[k] for k in kept])), -1)
        keeps = full.transpose(order).reshape(rows.shape)
        for least, op in ((True, cured.argmin), (False, cured.argmax)):
            if not keeps.any(1).all():
                with self.assertRaises(ValueError):
                    op(a, axis=axis, where=keep, keepdims=True)
                continue
            wanted = np.array([true_index(x, k, least) for x, k in zip(rows, keeps)], "u8").reshape(shape)
            self.assert_arrays(op(a, axis=axis, where=keep, keepdims=True), wanted)
            self.assert_arrays(op(np.ma.masked_array(a, mask=~full), axis=axis, keepdims=True), wanted)

    def test_long(self):
        """More than is looked at once, and than is folded with the GIL."""
        a = np.arange(300_000, dtype="f4")
        keep = np.zeros(a.shape, "?")
        keep[[5, 4095, 4096, 4097, 123_456, 299_999]] = True
        for skip in range(6):
            place = keep.nonzero()[0][skip]
            self.assertEqual(place, cured.argmin(np.where(a == place, -1, a), where=keep))
        self.assertEqual(299_999, cured.argmax(a.reshape(300, 1000).T, where=keep.reshape(300, 1000).T))


class Places(Case):
    def test_products_go_by_places(self):
        """An element that is left out is a one, so parts of the tree stay where they are."""
        random = np.random.default_rng(5)
        a = random.uniform(0.9, 1.1, (3, 5000, 4))
        for view in (a, a[:, ::-1], np.asfortranarray(a), a.astype(">f8")):
            for keep in (random.random(a.shape) < 0.5, random.random((5000, 1)) < 0.5, np.zeros((1, 1), "?")):
                ones = np.where(keep, view, 1.0)
                self.assertEqual(cured.prod(ones), cured.prod(view, where=keep))
                for axis in (0, 1, 2, (0, 2)):
                    self.assert_arrays(cured.prod(view, axis=axis, where=keep), cured.prod(ones, axis=axis))

    def test_several_ops_into_out(self):
        """A mask, an axis and out= together, against a loop over slices."""
        random = np.random.default_rng(6)
        a = random.normal(size=(40, 300)).astype("f4")
        keep = random.random(a.shape) < 0.3
        for axis in (0, 1):
            out = (np.zeros(a.shape[1 - axis]), np.zeros(a.shape[1 - axis], "f4"), np.zeros(a.shape[1 - axis], "u8"))
            cured.reduce(a, ["sum", "max", "argmax"], axis=axis, where=keep, out=out)
            rows, keeps = (a.T, keep.T) if axis == 0 else (a, keep)
            for i, (row, kept) in enumerate(zip(rows, keeps)):
                self.assertEqual((cured.sum(row[kept]), row[kept].max(), np.where(kept, row, -np.inf).argmax()),
                                 (out[0][i], out[1][i], out[2][i]))


class Clients(DaemonTest):
    def test_every_client_counts_alike(self):
        async def later():
            async with cured.AsyncClient(self.daemon.address) as client:
                return await asyncio.gather(client.argmin(M), client.argmax(A, where=~MASK), client.describe(M))
        with self.client() as client, cured.Client("embedded:") as here:
            for who in (client, here):
                self.assertEqual((1, 4), (who.argmin(M), who.argmax(A, where=~MASK)))
                self.assertEqual(dict(cured.describe(M)), dict(who.describe(M)))
                self.assertEqual(cured.prod(np.array([3, 1, 7.5])), who.prod(np.array([3, 9, 7.5]), where=np.array([True, False, True])))
                self.assertEqual([1, 0], who.argmin(np.ma.masked_array([[9, 1], [2, 3]], mask=[[0, 0], [0, 1]]), axis=1).tolist())
        self.assertEqual([1, 4, dict(cured.describe(M))], [x if isinstance(x, int) else dict(x) for x in asyncio.run(later())])

    def client(self):
        return cured.Client(self.daemon.address)


class Out(Case):
    def test_a_masked_array_along_an_axis(self):
        a = np.ma.masked_array(np.ones((3, 4)), mask=np.eye(3, 4))
        out = np.zeros(3)
        self.assertIs(out, cured.sum(a, axis=1, out=out))
        self.assertEqual([3, 3, 3], out.tolist())
        outs = np.zeros(3), np.zeros(3, "u8"), cured.empty(3, "u8")
        r = cured.reduce(a, "mean,argmax,count", axis=1, out=outs)
        self.assertTrue(all(r[op] is each for op, each in zip(r, outs)))
        self.assertEqual([[1, 1, 1], [1, 0, 0], [3, 3, 3]], [each.tolist() for each in outs])
        with self.assertRaisesRegex(ValueError, "shape"):
            cured.sum(a, axis=1, out=np.zeros(4))

    def test_an_op_without_answers_leaves_the_others(self):
        a = np.array([[np.nan, np.nan], [1, 2]])
        for where in (None, np.ones(2, "?")):
            for dtype in ("f8", ">f8"):  # in place, and copied
                outs = np.empty(2, dtype), np.empty(2, dtype)
                r = cured.reduce(a, "min,sum", axis=1, nan="skip", where=where, out=outs)
                self.assertTrue(r.sum is outs[1] and outs[1].tolist() == [0, 3])
                with self.assertRaisesRegex(ValueError, "only NaNs"):
                    r.min

    def test_into_a_masked_array(self):
        for out in (np.ma.masked_array(np.zeros(3), mask=[0, 1, 0]), np.ma.masked_array(np.zeros(3), mask=np.zeros(3, "?"))):
            with self.assertRaisesRegex(TypeError, "out: .*mask.*out.data"):
                cured.sum(np.ones((3, 4)), axis=1, out=out)
        out = np.ma.masked_array(np.zeros(3))
        self.assertIs(out, cured.sum(np.ones((3, 4)), axis=1, out=out))
        self.assertEqual([4, 4, 4], out.tolist())


class Beside(DaemonTest, Case):
    """Arrays that go beside another, and have a mask of their own: no element under it is read as if it were there."""

    def test_refused(self):
        a = np.array([[5.0, 1, 2], [3, 7, 11]])
        keep = np.ma.masked_array(np.ones((2, 3), "?"), [[1, 0, 0], [0, 0, 0]])
        ends, groups = np.ma.masked_array([0, 2, 6], [0, 1, 0]), np.ma.masked_array([0, 1], [1, 0])
        with cured.Client(self.daemon.address) as daemon, cured.Client("embedded:") as here:
            for who in (cured, here, daemon):
                for words, call in (
                        ("where: .*missing", lambda: who.sum(a, where=keep)), ("where: .*missing", lambda: who.median(a, axis=1, where=keep)),
                        ("where: .*missing", lambda: who.var(a, axis=1, ddof=0.5, where=keep)), ("where: .*missing", lambda: who.sum(a, where=keep[0])),
                        ("where: .*missing", lambda: who.sum(a, keys=np.arange(2), where=keep)),
                        ("where: .*missing", lambda: who.sum(a, where=np.ma.masked_array(True, True))),
                        ("offsets: without a mask", lambda: who.sum(a.ravel(), offsets=ends)),
                        ("keys: without a mask", lambda: who.sum(a, keys=groups))):
                    with self.assertRaisesRegex((TypeError, ValueError), words):
                        call()

    def test_of_nothing_missing(self):
        """A mask that hides nothing is none."""
        a = np.ma.masked_array([[5.0, 1, 2], [3, 7, 11]], np.zeros((2, 3), "?"))
        for keep in (a > 2, np.ma.masked_array(a.data > 2), (a > 2)[:1], np.ma.masked_array(True)):
            plain = keep.data
            self.assertEqual(cured.sum(a.data, where=plain), cured.sum(a.data, where=keep))
            self.assert_arrays(cured.sum(a.data, axis=0, where=plain), cured.sum(a.data, axis=0, where=keep))
            self.assert_arrays(cured.std(a.data, axis=0, where=plain, ddof=0.5), cured.std(a.data, axis=0, where=keep, ddof=0.5))
        self.assert_arrays(np.array([6.0, 14]), cured.sum(np.arange(8.0)[:8], offsets=np.ma.masked_array([0, 4, 8], False)) - [0, 8])

    def test_vecdot_keeps_the_mask(self):
        """Of an array whose shape is broadcast, too."""
        x = np.ma.masked_array([[1.0, 2], [10, 20]], [[1, 0], [0, 0]])
        self.assertEqual([2.0, 30], cured.vecdot(x, np.ones(2)).tolist())
        self.assertEqual([2.0, 30], cured.vecdot(x, np.ones((2, 2))).tolist())
        self.assertEqual([20.0, 40], cured.vecdot(np.ma.masked_array([10.0, 20], [1, 0]), np.array([[1.0, 1], [2, 2]])).tolist())


class Partials(Case):
    """Of a part under a mask: without a position, whether or not something is left out of this one."""

    def test_they_merge(self):
        parts = [M, np.ma.masked_array(A + 10, mask=False), np.ma.masked_array(A + 20)]
        partials = [cured.partial(part, ["sum", "max", "std"]) for part in parts] + [cured.partial(A + 30, ["sum", "max", "std"], where=MASK)]
        whole = np.concatenate([A[~MASK], A + 10, A + 20, (A + 30)[MASK]])
        merged = cured.merge(partials[::-1])
        self.assertEqual(len(whole), merged.count)
        self.assertEqual(dict(cured.reduce(whole, ["sum", "max", "std"])), dict(merged.finish(["sum", "max", "std"])))
        parts = [M, A + 10, np.ma.masked_array(A + 20), (A + 30)[MASK]]
        self.assertEqual(dict(merged.finish(["sum", "max"])), dict(cured.reduce_parts(parts, ["sum", "max"], first=7)))
        self.assertEqual(bytes(cured.partial(A[~MASK], "sum", first=None)), bytes(cured.partial(M, "sum", first=None)))

    def test_what_is_refused(self):
        for part, options in ((M, {}), (np.ma.masked_array(A), {}), (A, {"where": MASK})):
            for op in ("argmin", "argmax"):
                with self.assertRaisesRegex(TypeError, "ops: a part under a mask has no position"):
                    cured.partial(part, op, **options)
            with self.assertRaisesRegex(TypeError, "ops: .*prod of floats"):
                cured.partial(part / 2, "prod", **options)
            with self.assertRaisesRegex(TypeError, "first: a part under a mask has no position"):
                cured.partial(part, "sum", first=0, **options)
            with self.assertRaisesRegex(TypeError, "shape, start: a part under a mask has no position, .*leave them away"):
                cured.partial(part, "sum", shape=(99,) * part.ndim, start=(0,) * part.ndim, **options)
            self.assertEqual(cured.prod(part, **options), cured.partial(part, "prod", **options).finish("prod").prod)
        for op in ("argmin", "argmax", "prod"):
            for call in (lambda: cured.reduce_parts([A / 2, M / 2], op), lambda: cured.reduce([A / 2, M / 2], op), lambda: cured.partial([A / 2, M / 2], op)):
                with self.assertRaisesRegex(ValueError, r"ops: %s goes by .* a list with masked arrays .*: ask for it of one array, such as "
                                                       r"cured.%s\(numpy.ma.concatenate\(list\)\)" % (op, op)):
                    call()
            self.assertEqual(getattr(cured, op)(np.ma.concatenate([A[:0], M])), getattr(cured, op)(M))
        with self.assertRaisesRegex(ValueError, "op digest is of all bytes, and takes no mask"):
            cured.digest([A, M])
        with self.assertRaisesRegex(ValueError, "position"):
            cured.merge([cured.partial(A, "sum"), cured.partial(M, "sum")])
        self.assertEqual(A.sum(), cured.partial(A, "sum", where=True, first=3).finish("sum").sum)


if __name__ == "__main__":
    unittest.main()
