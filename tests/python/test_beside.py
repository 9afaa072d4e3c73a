"""What stands beside an array: masks, keys, offsets and second arrays of kinds that the first array may be, in every door. test_containers.py has
those of h5py and the others."""
import array
import asyncio
import itertools
import os
import tempfile
import unittest

import numpy as np
from arrow_producer import Node, OfArray, OfStream
from cured_daemon import DaemonTest  # noqa: I100: support finds it
from support import Case, Tensor, cured


def stream(a, missing=None):
    """Comes once, in two pieces."""
    cut = len(a) // 2
    return OfStream([Node(part, mask) for part, mask in ((a[:cut], None if missing is None else missing[:cut]),
                                                         (a[cut:], None if missing is None else missing[cut:]))])


class Once(OfStream):
    """A producer that hands its stream out once, as the standard allows."""

    def __arrow_c_stream__(self, requested_schema=None):
        if self.asked:
            raise RuntimeError("it has been read")
        return super().__arrow_c_stream__(requested_schema)


def once(a):
    return Once([Node(a)])


class Beside(DaemonTest, Case):
    A = np.array([5.0, -2.0, 7.0, 1.5, 0.25])
    KEYS, OFFSETS, KEEP = np.array([1, 0, 1, 1, 0]), np.array([0, 2, 5]), np.array([True, False, True, True, False])

    def doors(self):
        yield cured
        for address in ("embedded:", self.daemon.address):
            yield self.enterContext(cured.Client(address))

    def test_lists(self):
        """Of Python's numbers, as NumPy's functions take them: beside every kind of array, at every door."""
        a = self.A
        with tempfile.TemporaryDirectory() as folder:
            np.save(os.path.join(folder, "a.npy"), a)
            kinds = {"numpy": a, "masked": np.ma.masked_array(a, [False] * 5), "gaps": np.repeat(a, 2)[::2], "buffer": array.array("d", a), "column": OfArray(Node(a)),
                     "dlpack": Tensor(a.tobytes(), 2, 64, (5,)), "file": cured.file(os.path.join(folder, "a.npy")), "stored": self.stored(a)}
            kinds = {kind: x for kind, x in kinds.items() if x is not None}
            for who in self.doors():
                for (kind, x), make in itertools.product(kinds.items(), (list, tuple)):
                    for name, beside, ops in (("keys", self.KEYS, "sum,max"), ("offsets", self.OFFSETS, "sum,argmax"), ("where", self.KEEP, "sum,count"),
                                              ("keys", np.arange(5), "mean"), ("offsets", np.arange(6), "mean")):
                        if kind == "file" and name == "where" and who is not cured:
                            continue
                        with self.subTest((who, kind, name, make)):
                            wanted = cured.reduce(a, ops, **{name: beside})
                            for given in (make(beside.tolist()),) + ((range(len(beside)),) if beside.size > 5 or ops == "mean" and name == "keys" else ()):
                                got = self.told(lambda: who.reduce(x, ops, **{name: given}))
                                like = self.told(lambda: who.reduce(x, ops, **{name: beside}))
                                self.assertEqual(like, got)
                                if not isinstance(got, str):
                                    self.assertEqual(self.told(lambda: wanted), got)
        self.assertEqual(cured.partial(a, "sum", keys=self.KEYS), cured.partial(a, "sum", keys=self.KEYS.tolist()))
        self.assert_same(cured.average(a, weights=a, where=self.KEEP), cured.average(a, weights=a, where=self.KEEP.tolist()))
        self.assert_arrays(cured.quantile(a, [0.5, 1], where=self.KEEP), cured.quantile(a, [0.5, 1], where=self.KEEP.tolist()))
        self.assert_arrays(cured.sum(a, keys=self.KEYS, min_count=3), cured.sum(a, keys=self.KEYS.tolist(), min_count=3))
        self.assert_same(cured.var(a, ddof=0.5, where=self.KEEP), cured.var(a, ddof=0.5, where=self.KEEP.tolist()))
        self.assertEqual((2, 0), cured.sum(np.zeros((3, 0)), keys=[0, 1, 1]).shape)
        self.assertEqual([0, 0], cured.sum(a[:0], keys=[], groups=2).tolist())
        self.assertEqual(0, cured.sum(a[:0], where=[]))

        async def awaited():
            async with cured.AsyncClient("embedded:") as client:
                return [await client.sum(a, **{name: beside.tolist()}) for name, beside in (("keys", self.KEYS), ("offsets", self.OFFSETS), ("where", self.KEEP))]
        by_key, by_offsets, kept = asyncio.run(awaited())
        self.assert_arrays(cured.sum(a, keys=self.KEYS), by_key)
        self.assert_arrays(cured.sum(a, offsets=self.OFFSETS), by_offsets)
        self.assert_same(cured.sum(a, where=self.KEEP), kept)

    @staticmethod
    def stored(a):
        """A container that is read in blocks, where there is a library of such."""
        try:
            import zarr
        except ImportError:
            return None
        return zarr.array(a, chunks=2)

    @staticmethod
    def told(call):
        """The answers' bytes, or the error's sentence."""
        try:
            return {op: np.asarray(answer).tobytes() for op, answer in dict(call()).items()}
        except (TypeError, ValueError, NotImplementedError) as error:
            return str(error)

    def test_lists_of_masked_arrays(self):
        """NumPy would make an array without their masks, or raise what names no argument."""
        a, masked = np.ones((2, 1, 3)), np.ma.masked_array([True] * 3, [1, 0, 0])
        for option, value in (("where", [masked, [True] * 3]), ("where", (masked, masked)), ("keys", [np.ma.masked_array(0), np.ma.masked]),
                              ("offsets", [np.ma.masked_array(0), np.ma.masked_array(3, True)]), ("where", [[masked], [masked]]), ("where", ([[True] * 3], (masked,))),
                              ("keys", [[np.ma.masked_array([0, 1])]])):
            with self.subTest(option), self.assertRaisesRegex(TypeError, "^%s: a list has no masked arrays: " % option):
                cured.sum(a, **{option: value})

    def test_lists_that_are_none(self):
        class Gone:
            def __array__(self, dtype=None):
                raise RuntimeError("it is gone")

        class Far(Gone):
            def __array__(self, dtype=None):
                raise TypeError("it is far")

        endless = []
        endless.append(endless)
        for name, given, words in (("keys", [0.5, 1, 1, 0, 0], "their type is f64"), ("keys", [True] * 5, "their type is bool"), ("keys", [0, 1], "2 of them"),
                                   ("keys", [[0], [1]], "one axis"), ("keys", [0, [1]], "the list is no array"), ("keys", list("abcde"), "text is not a number"),
                                   ("keys", [2**64, 0, 0, 0, 0], "dtype object"), ("keys", {0: 1}, "dict: an array is wanted"), ("offsets", [], "there are none"),
                                   ("offsets", [0, 1.5], "integers"), ("offsets", [0, [1]], "the list is no array"), ("keys", [Gone()], r"the list is no array \(it is gone"), ("offsets", [Far()], r"the list is no array \(it is far"),
                                   ("where", [[Gone()]], "the list is no array"), ("where", endless, "the list is no array"), ("where", [1, 0, 1, 1, 0], "a bool array is wanted"),
                                   ("where", [True, False], "broadcast"), ("where", [True, [False]], "the list is no array"), ("second", [1.0, [2]], "the list is no array")):
            op = cured.dot if name == "second" else cured.sum
            with self.subTest((name, given)), self.assertRaisesRegex((TypeError, ValueError), "^%s: .*%s" % (name, words)):
                op(self.A, **{name: given})

    def test_columns(self):
        a, b = self.A, self.A[::-1].copy()
        for who in self.doors():
            for make in (stream, lambda x: OfArray(Node(x))):
                self.assert_same(cured.sum(a, where=self.KEEP), who.sum(a, where=make(self.KEEP)))
                self.assert_same(cured.median(a, where=self.KEEP), who.median(a, where=make(self.KEEP)))
                self.assert_arrays(cured.std(a, keys=self.KEYS), who.std(a, keys=make(self.KEYS)))
                self.assert_arrays(cured.max(a, offsets=self.OFFSETS), who.max(a, offsets=make(self.OFFSETS)))
                self.assert_same(cured.dot(a, b), who.dot(a, make(b)))
                self.assert_arrays(cured.sum(OfArray(Node(a)), keys=self.KEYS), who.sum(OfArray(Node(a)), keys=make(self.KEYS)))
                self.assertEqual(cured.partial(a, "sum", keys=self.KEYS), who.partial(a, "sum", keys=make(self.KEYS)))

    def test_what_comes_once(self):
        """Calls that are made of several others look at it more than once."""
        a, b, keep = self.A, self.A[::-1].copy(), self.KEEP
        for who in self.doors():
            self.assert_same(cured.sum(a, where=keep, initial=1.0, min_count=2), who.sum(a, where=once(keep), initial=1.0, min_count=2))
            self.assert_same(cured.dot(a, b, min_count=2, where=keep), who.dot(a, once(b), min_count=2, where=once(keep)))
            self.assert_same(cured.var(a, ddof=0.5, where=keep), who.var(a, ddof=0.5, where=once(keep)))
            self.assert_arrays(cured.var(a[None], 1, ddof=0.5, where=keep), who.var(a[None], 1, ddof=0.5, where=once(keep)))
            shares = np.linspace(0, 1, 100)
            self.assert_arrays(cured.quantile(a, shares, where=keep), who.quantile(a, shares, where=once(keep)))
        self.assertEqual([{"sum": 13.5}, {"sum": 13.5}], [dict(r) for r in cured.reduce_each([a, a], "sum", where=once(keep))])

    def test_what_is_missing(self):
        a, missing = self.A, np.array([False, True, False, False, False])
        self.assert_same(cured.sum(a, where=self.KEEP & ~missing), cured.sum(a, where=stream(self.KEEP, missing)))
        for name, array, of in (("keys", self.KEYS, a), ("offsets", self.OFFSETS, a)):
            with self.assertRaisesRegex((TypeError, ValueError), "^%s: .*(without a mask|missing)" % name):
                cured.sum(of, **{name: stream(array, missing[:len(array)])})
        with self.assertRaisesRegex(ValueError, "^keys: the container has 40 bytes, and beside an array in memory 32 are read at most"):
            from cured import _blocks
            before, _blocks.MOST_BYTES = _blocks.MOST_BYTES, 32
            self.addCleanup(setattr, _blocks, "MOST_BYTES", before)
            cured.sum(a, keys=stream(self.KEYS))
        for call in (lambda pieces: cured.count(np.zeros(50), where=pieces), lambda pieces: cured.count(np.zeros(50), where=pieces, initial=None, min_count=1),
                     lambda pieces: cured.sum(np.zeros(50), where=pieces, initial=1.0, min_count=1)):
            pieces = OfStream([Node(np.ones(10, bool))] * 5)
            with self.assertRaisesRegex(ValueError, r"^where: the container has 40 bytes, .* 32 are read at most \(of its first 4 pieces\)"):
                call(pieces)
            self.assertEqual((4, 1), (len(pieces.given), pieces.released))
            self.assertEqual(4, pieces.nodes[0].released["array"])

    def test_a_mask_beside_the_arrays_own(self):
        """One that NumPy does not read never stands in its place."""
        a = np.ma.masked_array(self.A, [True, False, False, False, True])
        keep = Tensor(self.KEEP.tobytes(), 6, 8, (5,))
        try:
            wanted = cured.sum(a, where=np.from_dlpack(keep))
        except RuntimeError:  # before NumPy 1.25
            with self.assertRaisesRegex(TypeError, "^where: "):
                cured.sum(a, where=keep)
        else:
            self.assert_same(wanted, cured.sum(a, where=keep))
        self.assert_same(cured.sum(self.A, where=self.KEEP), cured.sum(self.A, where=keep))

    def test_average(self):
        a, weights = self.A, np.array([1.0, 2.0, 0.0, 1.0, 4.0])
        self.assert_same(cured.average(a, weights=weights), cured.average(once(a), weights=once(weights)))
        self.assert_arrays(cured.reduce(a, "average", second=weights, offsets=self.OFFSETS).average,
                           cured.average(a, weights=weights, offsets=self.OFFSETS))
        self.assert_same(float("nan"), cured.average(a, weights=weights, min_count=6))
        self.assert_arrays(cured.mean(a, offsets=self.OFFSETS, min_count=3), cured.average(a, offsets=self.OFFSETS, min_count=3))
        with self.assertRaisesRegex(ValueError, "^nulls: "):
            cured.average(np.ma.masked_array(a, a > 2), weights=weights, nulls="error")

    def test_products_with_a_first_value(self):
        """What fits 64 bits with the first value alone is answered."""
        large = np.full(30, 2**31, "u4")
        for who in self.doors():
            for a, first, wanted in ((large, 0, 0), (np.array([2**62, 2]), -1, -2**63), (np.full(3, 2**62), 0, 0)):
                self.assert_same(wanted, who.prod(a, initial=first))
                self.assert_same(wanted, who.prod(OfArray(Node(a)), initial=first))
                self.assertEqual([wanted], who.prod(a[None], 1, initial=first).tolist())
            with self.assertRaisesRegex(OverflowError, "prod"):
                who.prod(large, initial=1)
            for a, first, said in ((np.array([2**63], "u8"), -1, "is -9223372036854775808, which does not fit uint64"),
                                   (np.array([2**62]), 2, "is 9223372036854775808, which does not fit int64")):
                for given in (a, OfArray(Node(a))):
                    with self.assertRaisesRegex(OverflowError, "^the product with initial %s; overflow='wrap' wraps it" % said):
                        who.prod(given, initial=first)

    def test_nulls_beside_the_segments(self):
        """Those of elements that no segment has count, too."""
        missing = np.array([True, False, False, False, True])
        for array in (np.ma.masked_array(self.A, missing), OfArray(Node(self.A, missing))):
            self.assertEqual([-2.0, 8.5], cured.sum(array, offsets=[1, 2, 4]).tolist())
            with self.assertRaisesRegex(ValueError, r"^nulls: the array has missing elements, the first at \[0\]"):
                cured.sum(array, offsets=[1, 2, 4], nulls="error")

    def test_no_segments_of_pairs(self):
        a = OfArray(Node(self.A))
        self.assertEqual((0,), cured.reduce(a, "dot", second=self.A, offsets=[3]).dot.shape)


    def test_pairs_by_key_of_no_elements(self):
        a, keys = np.zeros((3, 0, 2)), np.array([0, 2, 0])
        for who in self.doors():
            self.assertEqual((3, 0, 2), who.dot(a, a, keys=keys).shape)
            self.assertEqual((3, 0, 2), who.reduce(a, "average", second=a, keys=keys, where=a == 0).average.shape)
            with self.assertRaisesRegex(ValueError, "^second: "):
                who.dot(a, np.zeros((3, 0)), keys=keys)
            self.assertEqual((3, 0, 2), who.dot(a, np.zeros((3, 0, 2), "f4"), keys=keys).shape)


class Awaited(DaemonTest, Case):
    def test_min_count(self):
        a, b = np.array([[5.0, np.nan, 1.0], [np.nan, np.nan, 4.0]]), np.ones((2, 3))
        whole = np.arange(6).reshape(2, 3)

        async def ask(address):
            async with cured.AsyncClient(address) as client:
                for options in ({"min_count": 3}, {"min_count": 4, "nan": "skip"}, {"min_count": 2, "axis": 1, "nan": "skip"},
                                {"min_count": 2, "keys": np.array([0, 0])}, {"min_count": 1, "where": a > 2}):
                    for op in ("sum", "mean", "max", "count"):
                        self.same(lambda: getattr(cured, op)(a, **options), await self.answered(getattr(client, op)(a, **options)))
                    self.same(lambda: cured.reduce(a, "sum,count,min", **options), await self.answered(client.reduce(a, "sum,count,min", **options)))
                for least in (6, 7):
                    self.same(lambda: cured.sum(whole, min_count=least), await self.answered(client.sum(whole, min_count=least)))
                    self.same(lambda: cured.dot(b, b, min_count=least), await self.answered(client.dot(b, b, min_count=least)))
                for least in (2, 7):
                    for op in ("describe", "median"):
                        self.same(lambda: getattr(cured, op)(whole, min_count=least), await self.answered(getattr(client, op)(whole, min_count=least)))
                for least in (-1, 2**64, "2"):
                    self.same(lambda: cured.sum(whole, min_count=least), await self.answered(client.sum(whole, min_count=least)))
                with self.assertRaisesRegex(TypeError, "^min_count: a partial takes none"):
                    await client.partial(a, "sum", min_count=1)
                with self.assertRaisesRegex(TypeError, "^AsyncClient takes no initial"):
                    await client.sum(a, min_count=1, initial=2.0)

        for address in ("embedded:", self.daemon.address):
            asyncio.run(ask(address))

    def test_arguments_that_are_wrong(self):
        """With min_count they are refused by the sentences without it."""
        a = np.arange(6.0).reshape(2, 3)
        calls = [("var", (a, 0, 1), {}), ("sum", (a, 0, "junk", 7), {}), ("reduce", (a,), {}), ("reduce", (a, "sum", 0, 1), {}),
                 ("reduce", (a,), {"ops": "sum"}), ("reduce", (a, []), {}), ("dot", (a,), {}), ("dot", (a, a, 0, 1), {}), ("dot", (a, a), {"second": a}),
                 ("average", (a, None), {"second": a}), ("sum", (a,), {"junk": 3}), ("median", (a, 0, 1), {})]

        async def ask(address):
            async with cured.AsyncClient(address) as client:
                for name, args, options in calls:
                    function = getattr(client, name)
                    plain = await self.answered(function(*args, **options))
                    counted = await self.answered(function(*args, **options, min_count=1))
                    self.assertIsInstance(plain, (TypeError, ValueError), (name, args))
                    self.assertEqual((type(plain), str(plain)), (type(counted), str(counted)), (name, args, options))

        for address in ("embedded:", self.daemon.address):
            asyncio.run(ask(address))

    async def answered(self, coming):
        try:
            return await coming
        except (TypeError, ValueError) as error:
            return error

    def same(self, wanted, got):
        try:
            wanted = wanted()
        except (TypeError, ValueError) as error:
            wanted = error
        self.assertEqual((type(wanted), repr(wanted)), (type(got), repr(got)))

    def test_rows_of_no_elements_by_key(self):
        a, keys = np.zeros((3, 0, 2)), np.array([0, 2, 0])

        async def ask(address):
            async with cured.AsyncClient(address) as client:
                self.assert_arrays(cured.sum(a, keys=keys), await client.sum(a, keys=keys))
                found = await client.reduce(a, "argmax,count", keys=keys, groups=7, min_count=1)
                self.assertEqual([(7, 0, 2)] * 2, [found.argmax.shape, found.count.shape])
                with self.assertRaisesRegex(TypeError, "AsyncClient takes no out"):
                    await client.sum(a, keys=keys, out=np.empty((3, 0, 2)))
                with self.assertRaisesRegex(ValueError, "keys: 2 of them, the array has 3 rows"):
                    await client.sum(a, keys=keys[:2])

        for address in ("embedded:", self.daemon.address):
            asyncio.run(ask(address))


if __name__ == "__main__":
    unittest.main()
