"""Ops of two arrays: every type, axis, layout, mask and out= held against the oracle, and against NumPy where that is exact; NumPy's average
and vecdot; partials; who answers them, and what is refused by whom."""
import asyncio
import decimal
import itertools
import os
import pickle
import tempfile
import warnings

import numpy as np
import pairs
from support import NUMPY, Case, cured, unittest
from cured_daemon import DaemonTest  # noqa: I100: support finds it

RANDOM = np.random.default_rng(33)
OPS = ("dot", "sqdist", "average")
SHAPE = (5, 12, 7)


def array_of(dtype, shape=SHAPE):
    kind = np.dtype(NUMPY[dtype]).kind
    if kind == "b":
        return RANDOM.random(shape) < 0.5
    if kind == "f":
        return (RANDOM.standard_normal(shape) * 10.0 ** RANDOM.integers(-2, 3, shape)).astype(NUMPY[dtype])
    limits = np.iinfo(NUMPY[dtype])
    return RANDOM.integers(limits.min, limits.max, shape, NUMPY[dtype], endpoint=True)


def by_oracle(op, dtype, a, b, nan="propagate", result=None):
    want = pairs.answer(op, dtype, np.ascontiguousarray(a).tobytes(), np.ascontiguousarray(b).tobytes(), nan, result)
    name, raw = want[1], want[2]
    return int.from_bytes(raw, "little", signed=name != "u64") if name in ("i64", "u64", "int") else np.frombuffer(raw, NUMPY[name])[0]


def slices(a, b, axis, keep):
    """Of each answer along axis its pairs, in C order."""
    x, y, k = (np.moveaxis(m, axis, -1).reshape(-1, m.shape[axis]) for m in (a, b, keep))
    return [(p[m], q[m]) for p, q, m in zip(x, y, k)]


class Pairs(DaemonTest, Case):
    def same(self, got, want, what):
        if want != want:
            self.assertTrue(got != got, what)
        else:
            self.assertEqual(want, got, what)

    def test_every_type_whole_and_along_axes(self):
        for dtype, op, masked in itertools.product(NUMPY, OPS, (False, True)):
            a, b = array_of(dtype), array_of(dtype)
            keep = RANDOM.random(SHAPE) < 0.6 if masked else np.ones(SHAPE, bool)
            where = keep if masked else None
            what = (dtype, op, masked)
            self.same(getattr(cured._cured, op)(a, b, where=where), by_oracle(op, dtype, a[keep], b[keep]), what)
            for axis in range(3):
                result = None if np.dtype(NUMPY[dtype]).kind == "f" or op == "average" else "i128"
                if result:  # sums of integers of 64 bits are wider than an answer along an axis
                    continue
                got = getattr(cured._cured, op)(a, b, axis, where=where)
                self.assertEqual(SHAPE[:axis] + SHAPE[axis + 1:], got.shape)
                for x, (p, q) in zip(got.ravel(), slices(a, b, axis, keep)):
                    self.same(x, by_oracle(op, dtype, p, q), what + (axis,))

    def test_small_integers_along_axes(self):
        for dtype in ("u8", "i8", "u16", "i16"):
            a, b = array_of(dtype), array_of(dtype)
            for axis in (None, 0, 1, 2, (0, 1), (0, 2), (1, 2), (0, 1, 2)):
                x, y = a.astype(object), b.astype(object)
                self.assertTrue(np.all(cured.dot(a, b, axis) == (x * y).sum(axis)))
                self.assertTrue(np.all(cured.sqdist(a, b, axis) == ((x - y) ** 2).sum(axis)))

    def test_layouts(self):
        a, b = array_of("f64"), array_of("f64")
        want = [cured.dot(a, b, axis) for axis in (0, 1, 2)]
        for x, y in ((np.asfortranarray(a), b), (a, np.asfortranarray(b)), (a[::-1][::-1], b.astype(">f8")), (a.astype(">f8"), b)):
            for axis in range(3):
                self.assertEqual(want[axis].tobytes(), cured.dot(x, y, axis).tobytes())
        for axis in range(3):
            self.assertEqual(want[axis].T.tobytes(), cured.dot(a.T, b.T, 2 - axis).tobytes())
            self.assertEqual(cured.dot(np.flip(a, axis), np.flip(b, axis), axis).tobytes(), want[axis].tobytes())
        self.assertEqual(cured.dot(a[:, ::2], b[:, ::2]), cured.dot(a[:, ::2].copy(), b[:, ::2].copy()))
        self.assertEqual((5, 1, 7), cured.dot(a, b, 1, keepdims=True).shape)

    def test_out_and_dtype(self):
        a, b = array_of("f32"), array_of("f32")
        want = cured.sqdist(a, b, 1)
        for out in (np.empty((5, 7)), np.empty((7, 5)).T):
            self.assertIs(out, cured.sqdist(a, b, 1, out=out))
            self.assertTrue((out == want).all())
        narrow = cured.dot(a, b, 0, dtype="f32")
        self.assertEqual((np.float32, (12, 7)), (narrow.dtype, narrow.shape))
        self.same(cured.dot(a, b, dtype="f16"), by_oracle("dot", "f32", a, b, result="f16"), "f16")

    def test_special_elements(self):
        inf, nan = float("inf"), float("nan")
        for a, b in itertools.product((0.0, -0.0, 1.0, -2.0, inf, -inf, nan, 5e-324, 1e308), repeat=2):
            for more, op, rule in itertools.product(([], [(1.0, 1.0)], [(inf, 1.0)], [(2.0, -1.0)]), OPS, ("propagate", "skip")):
                x, y = (np.array(v) for v in zip((a, b), *more))
                got = getattr(cured._cured, op)(x, y, nan=rule)
                self.same(got, by_oracle(op, "f64", x, y, rule), (op, rule, x, y))

    def test_products_outside_the_range(self):
        for scale in (1e-200, 1e-160, 1e160, 1e300, 5e-324):
            a, b = array_of("f64") * scale, array_of("f64") * scale
            for op in OPS:
                self.same(getattr(cured._cured, op)(a, b), by_oracle(op, "f64", a, b), (op, scale))

    def test_cuts_and_orders_give_the_same_bits(self):
        a, b = array_of("f64", 5000), array_of("f64", 5000)
        order = RANDOM.permutation(5000)
        for op in OPS:
            self.assertEqual(getattr(cured._cured, op)(a, b), getattr(cured._cured, op)(a[order], b[order]))
        parts = [cured.partial(a[i:i + 1000], OPS, first=i, second=b[i:i + 1000]) for i in range(0, 5000, 1000)]
        for some in (parts, parts[::-1], [pickle.loads(pickle.dumps(p)) for p in parts[2:] + parts[:2]]):
            whole = cured.merge(some)
            for op in OPS:
                self.assertEqual(getattr(cured._cured, op)(a, b), whole.finish(op)[op])
        total = sum(part.linear() for part in (cured.partial(a, OPS, first=None, second=b), cured.partial(b, OPS, first=None, second=a)))
        both = cured.from_linear(total, "f64", OPS).finish("dot")
        self.assertEqual(cured.dot(np.concatenate([a, b]), np.concatenate([b, a])), both.dot)
        with self.assertRaisesRegex(ValueError, "was not made for sum"):
            whole.finish("sum")

    def test_by_offsets(self):
        a, b, borders = array_of("f32", 900), array_of("f32", 900), [3, 3, 10, 500, 501, 890]
        for op in OPS:
            got = getattr(cured._cured, op)(a, b, offsets=borders)
            want = [getattr(cured._cured, op)(a[i:j], b[i:j]) for i, j in zip(borders, borders[1:])]
            np.testing.assert_array_equal(want, got)

    def test_average_is_numpys(self):
        a = RANDOM.integers(-99, 99, SHAPE).astype("f8")
        for axis, shape in ((None, SHAPE), (0, 5), (1, 12), (-1, 7), ((0, 2), (5, 7)), ((2, 0), (7, 5)), ((0, 1, 2), SHAPE)):
            w = RANDOM.integers(1, 9, shape).astype("f8")
            try:
                want = np.average(a, axis, w)
            except (TypeError, ValueError):  # before NumPy 2 weights were of one axis, or of all
                wide = np.transpose(w, np.argsort([k % 3 for k in axis]))
                want = np.average(a, axis, np.broadcast_to(wide.reshape([n if k in [x % 3 for x in axis] else 1 for k, n in enumerate(SHAPE)]), SHAPE))
            np.testing.assert_allclose(cured.average(a, axis, w), want, rtol=1e-14)
            got, weights = cured.average(a, axis, w, returned=True)
            np.testing.assert_array_equal(weights, np.broadcast_to(w.sum(), np.shape(weights)))
            self.assertEqual(np.shape(want), np.shape(got))
        self.assertEqual(cured.mean(a), cured.average(a))
        self.assertEqual((cured.mean(a), a.size), cured.average(a, returned=True))
        self.assertEqual(2, cured.average(np.array([1, 2, 3, 4]), weights=[4, 3, 2, 1]))
        self.assertEqual([1.25, 1.25], [cured.average(given, weights=range(1, 4, 2)) for given in ([0.5, 1.5], np.array([0.5, 1.5]))])
        self.assertEqual([1.25, 0.5], cured.average(np.array([[0.5, 0.5], [1.5, 0.5]]), axis=0, weights=range(1, 4, 2)).tolist())
        self.assertTrue(np.isnan(cured.average([0.5, 1.5], weights=[np.nan, 1])))
        for two, given in ((np.array([1, 2]), [np.nan, 1]), ([1, 2], [1, np.inf]), (np.array([True, False]), [np.nan, 1])):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.assertTrue(np.isnan(cured.average(two, weights=given)))
        for given, words in (([1j, 1], "weights.* real"), ([2**53 + 1, 1], "weights: they are of i64"), ([2**53 + 1, 0.5], "weights: the integer 9007199254740993 stands among floats"),
                             ([1.0, None], "weights: dtype object is not reduced: the list has a NoneType"),
                             ([1.0, decimal.Decimal(2)], "weights: dtype object is not reduced: the list has a Decimal, which is no bool, int, float or complex number"), ([2**64, 1], "weights: the list's integers have no type"), (["1", "2"], "weights: ")):
            for two in (np.array([0.5, 1.5]), np.array([0.5j, 1.5])):
                with self.assertRaisesRegex(TypeError, words, msg=given):
                    cured.average(two, weights=given)
        self.assertTrue(np.isnan(cured.average(a, weights=np.zeros(SHAPE))))
        b = RANDOM.integers(1, 9, SHAPE).astype("f8")
        masked = np.ma.masked_array(a, b > 6)  # the weights of what is missing do not count
        for axis, w in ((None, b), (0, b), (1, b), (2, np.arange(1.0, SHAPE[2] + 1))):
            for got, want in zip(cured.average(masked, axis, w, returned=True), np.ma.average(masked, axis, w, returned=True)):
                np.testing.assert_allclose(got, want.filled(np.nan) if np.ma.isMaskedArray(want) else want, rtol=1e-14)
        self.assertEqual(1.5, cured.average(np.array([1, 2]), weights=[0.5, 0.5]))
        with self.assertRaisesRegex(TypeError, "no axis is given"):
            cured.average(a, weights=np.ones(5))
        for axis in (1, 3, (0, 1)):
            with self.assertRaisesRegex(ValueError, "weights: their shape is"):
                cured.average(a, axis, np.ones(5))

    def test_average_by_every_door(self):
        """A client's method, a file's and what is awaited take what cured.average takes."""
        a = RANDOM.integers(-99, 99, (4, 3)).astype("f8")
        w, rows, columns, keep, keys = np.abs(a) + 1, np.arange(1.0, 5), [1.0, 2, 4], a > -50, [0, 1, 1, 0]
        calls = [((), {}), ((), {"weights": w}), ((), {"axis": 1}), ((1, columns), {}), ((), {"weights": columns, "axis": 1}), ((0, rows), {"keepdims": True}), ((1, w, True), {}),
                 ((), {"returned": True}), ((), {"weights": w, "where": keep}), ((), {"weights": rows, "keys": keys}), ((), {"keys": keys, "groups": 3, "weights": w, "drop": True}),
                 ((), {"weights": w, "min_count": 2, "dtype": "f4"}), ((), {"weights": w, "nan": "skip"}), ((1,), {"weights": columns, "where": keep, "returned": True})]
        flat = [((), {"weights": w.ravel(), "offsets": [0, 5, 12]}), ((), {"offsets": [0, 5, 12]})]

        async def ask(array, given, options):
            async with cured.AsyncClient(self.daemon.address) as client:
                return await client.average(array, *given, **options)
        with tempfile.TemporaryDirectory() as folder, cured.Client("embedded:") as here, cured.Client(self.daemon.address) as there:
            for array, some in ((a, calls), (a.ravel(), flat)):
                np.save(os.path.join(folder, "a.npy"), array)
                file = cured.file(os.path.join(folder, "a.npy"))
                for given, options in some:
                    want, what = cured.average(array, *given, **options), (given, options)
                    doors = [lambda: here.average(array, *given, **options), lambda: there.average(array, *given, **options), lambda: here.average(a=array, **dict(zip(("axis", "weights", "returned"), given)), **options)]
                    doors += [] if "where" in options and "axis" in options or given and "where" in options else [lambda: asyncio.run(ask(array, given, options))]
                    doors += [] if {"where", "keys"} <= set(options) else [lambda: file.average(*given, **options), lambda: cured.average(file, *given, **options)]
                    for n, door in enumerate(doors):
                        self.assertEqual(repr(want), repr(door()), (n, what))
                        self.assertIs(type(want), type(door()))

    def test_other_names_by_every_door(self):
        """vecdot, minmax, percentile and the nan-functions are methods, too."""
        a = RANDOM.standard_normal((4, 3))
        a[1, 1] = np.nan
        calls = {"vecdot": ((a,), (a[0],)), "percentile": ((50,), ([10, 90], 1)), "nanquantile": ((0.5,),), "nanpercentile": ((50, 0),)}
        names = ["vecdot", "percentile", *(name for name in cured.__all__ if name.startswith("nan") or name == "minmax")]

        async def ask(name, given):
            async with cured.AsyncClient(self.daemon.address) as client:
                return await getattr(client, name)(a, *given)
        with tempfile.TemporaryDirectory() as folder, cured.Client(self.daemon.address) as client:
            np.save(os.path.join(folder, "a.npy"), a)
            file = cured.file(os.path.join(folder, "a.npy"))
            for name in names:
                for given in calls.get(name, ((), (1,))):
                    want = repr(getattr(cured, name)(a, *given))
                    for got in (getattr(client, name)(a, *given), getattr(file, name)(*given), asyncio.run(ask(name, given))):
                        self.assertEqual(want, repr(got), (name, given))
        self.assertEqual(15, len(names))
        with self.assertRaisesRegex(TypeError, "axis: .* not an array: the second one goes as average"):
            cured.Client("embedded:").average(a, a)

    def test_vecdot(self):
        a, b = RANDOM.integers(-99, 99, SHAPE), RANDOM.integers(-99, 99, SHAPE)
        np.testing.assert_array_equal((a * b).sum(-1), cured.vecdot(a, b))
        np.testing.assert_array_equal((a * b).sum(0), cured.vecdot(a, b, axis=0))
        np.testing.assert_array_equal((a * b[0]).sum(-1), cured.vecdot(a, b[0]))

    def test_files(self):
        a, b = array_of("f64"), array_of("f64")
        with tempfile.TemporaryDirectory() as folder:
            for order in (a, np.asfortranarray(a)):
                np.save(os.path.join(folder, "a.npy"), order)
                file = cured.file(os.path.join(folder, "a.npy"))
                self.assertEqual(cured.dot(a, b), file.dot(b))
                self.assertEqual(cured.dot(a, b, 0).tobytes(), cured.dot(file, b, 0).tobytes())
                with self.assertRaisesRegex(TypeError, "second: a file is the first array alone"):
                    cured.dot(b, file)

    def test_who_answers(self):
        a, b = array_of("f32"), array_of("f32")
        with cured.Client("embedded:") as here:
            self.assertEqual(cured.dot(a, b), here.dot(a, b))
        with cured.Client(self.daemon.address) as client:
            self.same_by(client)

    def same_by(self, client):
        big = RANDOM.integers(-99, 99, (3, 200003)).astype("f4")
        for a, b in ((array_of("f32"), array_of("f32")), (big, big[::-1])):
            for axis, where in itertools.product((None, 0, 1), (None, a > 0)):
                for op in OPS:
                    want = np.asarray(getattr(cured._cured, op)(a, b, axis, where=where)).tobytes()
                    got = np.asarray(client.average(a, axis, b, where=where) if op == "average" else getattr(client, op)(a, b, axis, where=where)).tobytes()
                    self.assertEqual(want, got, (op, axis))
            last = tuple(range(1, a.ndim))
            self.assertEqual(cured.dot(a.T, b.T), client.dot(a.T, b.T))
            self.assertEqual(cured.average(a, last, b[0]).tobytes(), cured.average(a, last, b[0], client=client).tobytes())
            self.assertEqual(cured.vecdot(a, b).tobytes(), cured.vecdot(a, b, client=client).tobytes())
            flat, borders = a.ravel(), [0, 5, 5, 900, a.size - 1] if a.size > 1000 else [0, 3, 400]
            self.assertEqual(cured.dot(flat, b.ravel(), offsets=borders).tobytes(), client.dot(flat, b.ravel(), offsets=borders).tobytes())
            part = client.partial(a, OPS, second=b)
            whole, again = cured.reduce(a, OPS, second=b), part.finish(OPS)
            self.assertEqual([getattr(whole, op) for op in OPS], [getattr(again, op) for op in OPS])

    def test_by_key_at_random(self):
        """Exponents near and far, any bits, zeros and infinities; few groups and many; blocks that are full and not; by one thread and three,
        masked, sorted and cut: each group has the bits of its pairs alone, which go another way."""
        clients, cases = [cured.Client("embedded:", threads=threads) for threads in (1, 3)], 0
        for turn in range(120):
            dtype, n, groups = RANDOM.choice(["f2", "f4", "f4", "f8"]), int(RANDOM.choice([1, 7, 511, 512, 513, 3000, 20000])), int(RANDOM.choice([1, 3, 17, 90]))
            a, b = (self.any_floats(dtype, n, RANDOM.choice(["near", "wide", "bits", "ints"])) for _ in range(2))
            keys = RANDOM.integers(0, groups, n).astype(RANDOM.choice(["i4", "u2", "i8"]))
            keys = np.sort(keys) if turn % 3 == 0 else keys
            where = RANDOM.random(n) < 0.7 if turn % 4 == 1 else np.ones(n, bool)
            options = {"nan": ("propagate", "skip")[turn % 2], **({"where": where} if turn % 4 == 1 else {})}
            got = clients[turn // 2 % 2].reduce(a, OPS, second=b, keys=keys, groups=groups, **options)
            alone = clients[0].dot(a, b, keys=keys, groups=groups, **options)
            self.assertEqual(got.dot.tobytes(), alone.tobytes())
            for op, group in itertools.product(OPS, range(groups)):
                m = (keys == group) & where
                want = getattr(cured._cured, op)(a[m], b[m], nan=options["nan"])
                self.assertEqual(np.float64(want).tobytes(), got[op][group].tobytes(), (turn, dtype, n, op))
                cases += 1
            cut, whole = int(RANDOM.integers(0, n + 1)), clients[0].partial(a, OPS, second=b, keys=keys, groups=groups)
            parts = [clients[1].partial(a[s], OPS, second=b[s], keys=keys[s], groups=groups) for s in (slice(cut, n), slice(0, cut))]
            self.assertEqual(bytes(whole), bytes(cured.merge(parts)), (turn, dtype, n))
        self.assertGreater(cases, 1000)

    def any_floats(self, dtype, n, kind):
        if kind == "bits":
            return np.frombuffer(RANDOM.bytes(n * np.dtype(dtype).itemsize), dtype)
        reach = {"f2": 4, "f4": 37, "f8": 150}[dtype] if kind == "wide" else 1
        with np.errstate(all="ignore"):
            a = (RANDOM.standard_normal(n) * 10.0 ** RANDOM.integers(-reach, reach + 1, n)).astype(dtype)
        a = RANDOM.integers(-5, 6, n).astype(dtype) if kind == "ints" else a
        a[RANDOM.integers(0, n, RANDOM.integers(0, 3))] = RANDOM.choice(np.array([np.nan, np.inf, -np.inf, 0, -0.0], dtype))
        return a

    def test_async(self):
        a, b = array_of("f32"), array_of("f32")
        big = RANDOM.integers(-99, 99, (3, 200003)).astype("f4")

        async def ask():
            async with cured.AsyncClient(self.daemon.address) as client:
                whole, rows, many = await asyncio.gather(client.dot(a, b), client.sqdist(a, b, 1), client.average(big, weights=big.copy() + 1))
                self.assertEqual((cured.dot(a, b), cured._cured.average(big, big + 1)), (whole, many))
                self.assertEqual(cured.sqdist(a, b, 1).tobytes(), rows.tobytes())
                masked = await client.dot(a, b, where=a > 0)
                self.assertEqual(cured.dot(a, b, where=a > 0), masked)
                part = await client.partial(a, "dot", second=b)
                self.assertEqual(cured.dot(a, b), part.finish("dot").dot)
                with self.assertRaisesRegex(ValueError, "its shape is not"):
                    await client.dot(a, b[0])
        asyncio.run(ask())

    def test_refusals(self):
        a, b = array_of("f32"), array_of("f32")
        for error, text, ask in (
                (TypeError, "the second is missing", lambda: cured.dot(a)),
                (TypeError, "given twice", lambda: cured.dot(a, b, second=b)),
                (ValueError, "second: its shape is not the array's", lambda: cured.dot(a, b[0])),
                (ValueError, "op sum is of one array", lambda: cured.sum(a, second=b)),
                (ValueError, "op sum is of one array", lambda: cured.reduce(a, "dot,sum", second=b)),
                (ValueError, "op dot is of two arrays, and only one is given", lambda: cured.reduce(a, "dot")),
                (TypeError, "a list of arrays has no pairs", lambda: cured.dot([a], b)),
                (ValueError, "its shape is not the array's", lambda: cured.dot(a[:, 0], b[0], keys=np.zeros(5, int))),
                (TypeError, "initial: only sum", lambda: cured.dot(a, b, initial=1)),
                (TypeError, "first: a part under a mask", lambda: cured.partial(a, "dot", second=b, first=0, where=a > 0)),
                (TypeError, "returned: not with nan='skip'", lambda: cured.average(a, weights=b, returned=True, nan="skip"))):
            with self.assertRaisesRegex(error, text):
                ask()


if __name__ == "__main__":
    unittest.main()
