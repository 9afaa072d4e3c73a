"""Layouts: arrays of any strides answer as their contiguous copies do, whole and along every axis; ties are in C order whatever
the memory's order is."""
import itertools
import random
import unittest

import numpy
from support import NUMPY, Case, bf16, cured

AXIS_OPS = ["sum", "mean", "min", "max", "argmin", "argmax", "count_nonzero", "var", "prod", "norm2"]


def sample(dtype, shape, seed=1):
    """Small values with ties, and NaNs among floats."""
    r = numpy.random.default_rng(seed)
    a = r.integers(0 if dtype[0] in "ub" else -3, 2 if dtype == "bool" else 4, shape).astype(NUMPY[dtype])
    if dtype[0] == "f":
        a = a + r.choice(numpy.array([0, 0.25, 1e-3], NUMPY[dtype]), shape)
        if a.size > 20:
            a.reshape(-1)[7] = numpy.nan
        a = a.astype(NUMPY[dtype])
    return a


def layouts(a):
    """Views with the elements and shape of a: one a name."""
    yield "C", a
    yield "Fortran", numpy.asfortranarray(a)
    wide = numpy.zeros([2 * n + 1 for n in a.shape], a.dtype)
    view = wide[tuple(slice(1, None, 2) for _ in a.shape)]
    view = view[tuple(slice(0, n) for n in a.shape)]
    view[...] = a
    yield "every second", view
    back = numpy.ascontiguousarray(a[tuple(slice(None, None, -1) for _ in a.shape)])
    yield "backwards", back[tuple(slice(None, None, -1) for _ in a.shape)]
    yield "big-endian", a.astype(a.dtype.newbyteorder(">"))
    yield "big-endian backwards", back.astype(a.dtype.newbyteorder(">"))[tuple(slice(None, None, -1) for _ in a.shape)]
    if a.ndim > 1:
        order = list(range(1, a.ndim)) + [0]
        yield "rolled", numpy.ascontiguousarray(a.transpose(order)).transpose(numpy.argsort(order))
    odd = numpy.zeros(a.nbytes + 1, "u1")[1:].view(a.dtype).reshape(a.shape)
    odd[...] = a
    yield "unaligned", odd
    fixed = a.copy()
    fixed.flags.writeable = False
    yield "read-only", fixed


class Whole(Case):
    pass


class Axes(Case):
    pass


def add(dtype, name, shape):
    def whole(self):
        a = sample(dtype, shape)
        view = dict(layouts(a))[name]
        ops = AXIS_OPS + (["bit_xor"] if dtype[0] != "f" else [])
        wanted, got = cured.reduce(a, ops), cured.reduce(view, ops)
        for op in ops:
            self.assert_same(got[op], wanted[op], op)
        if not numpy.isnan(a.astype("f8")).any():
            self.assertEqual(a.argmin(), got.argmin)

    def axes(self):
        a = sample(dtype, shape)
        view = dict(layouts(a))[name]
        for n in range(1, a.ndim + 1):
            for axis in itertools.combinations(range(a.ndim), n):
                for op in AXIS_OPS:
                    wanted = slices(a, op, axis)
                    got = getattr(cured, op)(view, axis=axis, keepdims=True)
                    self.assert_arrays(got, wanted, "%s axis %s" % (op, axis))

    label = "%s_%s_%d" % (dtype, name.replace(" ", "_").replace("-", "_"), len(shape))
    setattr(Whole, "test_" + label, whole)
    setattr(Axes, "test_" + label, axes)


def slices(a, op, axis):
    """The answers of every slice by itself, with the reduced axes kept."""
    kept = [k for k in range(a.ndim) if k not in axis]
    moved = a.transpose(kept + list(axis))
    rows = numpy.ascontiguousarray(moved).reshape(int(numpy.prod([a.shape[k] for k in kept])), -1)
    values = [getattr(cured, op)(row) for row in rows]
    dtype = a.dtype if op in ("min", "max") else "u8" if op.startswith(("arg", "count")) else \
        "f8" if op in ("mean", "var", "norm2") or a.dtype.kind == "f" else "i8" if a.dtype.kind == "i" else "u8"
    return numpy.array(values, dtype).reshape([1 if k in axis else a.shape[k] for k in range(a.ndim)])


for dtype, shape in [("f32", (5, 7)), ("i64", (3, 4, 5)), ("u8", (40,)), ("f64", (2, 3, 2, 3)), ("bool", (6, 5)), ("f16", (9, 4))]:
    for name, _ in layouts(sample(dtype, shape)):
        add(dtype, name, shape)


class Blocks(Case):
    """Arrays larger than a block of the walk."""

    def test_large_transposed(self):
        a = numpy.random.default_rng(5).standard_normal((700, 1100)).astype("f4")
        t = numpy.asfortranarray(a)
        for op in ("sum", "argmin", "argmax", "prod", "std", "norm1"):
            self.assert_same(getattr(cured, op)(t), getattr(cured, op)(a), op)
            for axis in (0, 1):
                self.assert_arrays(getattr(cured, op)(t, axis=axis), getattr(cured, op)(a, axis=axis), op)

    def test_large_slices(self):
        a = numpy.random.default_rng(6).integers(-9, 9, (300, 400, 7)).astype("i2")
        for view in (a[::2, 1::3], a[::-1, :, ::-1], a.transpose(2, 0, 1)[1:6], a[:, 5], a.swapaxes(1, 2)[:, :, ::5]):
            copy = numpy.ascontiguousarray(view)
            for op in ("sum", "argmin", "argmax", "var"):
                self.assert_same(getattr(cured, op)(view), getattr(cured, op)(copy), op)
                for axis in range(view.ndim):
                    self.assert_arrays(getattr(cured, op)(view, axis=axis), getattr(cured, op)(copy, axis=axis), op)

    def test_every_length(self):
        """What is copied some elements at a time, and what is left then; the array's memory ends with the last element."""
        for dtype in ("u1", "<i2", ">i2", "<f4", ">f4", "<i8", ">i8"):
            whole = numpy.random.default_rng(9).integers(1, 100, 300).astype(dtype)
            for step, n in itertools.product((1, 2, 3, -1, -2), range(1, 71)):
                view = whole[:(n - 1) * abs(step) + 1].copy()[::step]
                self.assertEqual((sum(view.tolist()), view.tolist().index(max(view.tolist()))), (cured.sum(view), cured.argmax(view)))
            for shape in ((33, 70), (64, 32), (31, 5)):  # tiles, and parts of them
                a = numpy.random.default_rng(10).integers(0, 100, shape).astype(dtype)
                self.assertEqual((a.T.argmax(), a.sum(dtype="i8")), (cured.argmax(a.T), cured.sum(a.T[::-1])))
                self.assert_same(cured.prod(a.T / 7), cured.prod(numpy.ascontiguousarray(a.T / 7)))

    def test_broadcast(self):
        a = numpy.broadcast_to(numpy.arange(5, dtype="f4"), (1000, 3, 5))
        self.assertEqual(30000.0, cured.sum(a))
        self.assertEqual(4, cured.argmax(a))
        self.assert_arrays(cured.sum(a, axis=0), numpy.full((3, 5), 1.0) * numpy.arange(5) * 1000)
        self.assertEqual(0, cured.argmin(numpy.broadcast_to(numpy.float32(1), (3, 4))))

    def test_too_many_elements(self):
        a = numpy.lib.stride_tricks.as_strided(numpy.zeros(1, "u1"), (2**40, 2**21), (0, 0))
        with self.assertRaises(OverflowError):
            cured.sum(a)

    def test_random_views(self):
        r = random.Random(11)
        for _ in range(150):
            shape = [r.randint(1, 6) for _ in range(r.randint(1, 5))]
            a = sample(r.choice(["i32", "f64", "u8"]), shape, r.randint(0, 99))
            view = a.transpose(r.sample(range(a.ndim), a.ndim))
            view = view[tuple(slice(r.randint(0, 1), None, r.choice([1, 2, -1])) for _ in shape)]
            copy = numpy.ascontiguousarray(view)
            axis = tuple(r.sample(range(a.ndim), r.randint(0, a.ndim)))
            for op in ("sum", "argmax"):
                if view.size == 0 and op == "argmax":
                    continue
                got = getattr(cured, op)(view, axis=axis, keepdims=True)
                self.assert_arrays(got, getattr(cured, op)(copy, axis=axis, keepdims=True), "%s %s %s" % (op, shape, axis))
                if op == "sum" and a.dtype.kind != "f":
                    self.assert_arrays(got, view.sum(axis=axis, keepdims=True))

    def test_first_of_equals_in_c_order(self):
        a = numpy.zeros((4, 5), "f4", order="F")
        a[0, 3] = a[1, 0] = 9
        self.assertEqual((3, 0), (cured.argmax(a), cured.argmin(a)))
        self.assertEqual(a.argmax(), cured.argmax(a))
        self.assertEqual(1, cured.argmax(a.T))
        a[:] = numpy.nan
        self.assertEqual(0, cured.argmax(a[::-1, ::-1]))

    def test_float_products_are_of_c_order(self):
        """The tree rounds so late that its order shows only where the product lies between two floats: those are looked for."""
        k = numpy.random.default_rng(3).integers(-3, 4, (60000, 6, 7))
        k = numpy.where(k > 0, 2 * k, k)  # 1 + k·2^-53 is a float
        total = k.sum((1, 2))
        a = 1 + k[(total % 2 != 0) & (total * total == (k * k).sum((1, 2)))] * 2.0**-53  # (1 + half a unit)(1 + less than 2^-106)
        t = numpy.ascontiguousarray(a.transpose(0, 2, 1))
        wanted, other = [cured.prod(x) for x in a], [cured.prod(x) for x in t]
        self.assertNotEqual(wanted, other, "an array is needed whose product depends on the order")
        self.assertEqual(wanted, [cured.prod(numpy.asfortranarray(x)) for x in a])
        self.assertEqual(wanted, [cured.prod(x.T) for x in t])
        self.assertEqual(wanted, [cured.prod(x[::-1, ::-1]) for x in numpy.ascontiguousarray(a[:, ::-1, ::-1])])
        for order in itertools.permutations(range(3)):
            view = numpy.ascontiguousarray(a.transpose(order)).transpose(numpy.argsort(order))
            self.assertEqual(wanted, cured.prod(view, axis=(1, 2)).tolist())

    def test_strided_tensor(self):
        raw = numpy.arange(24, dtype="f4").view("u4")
        t = bf16((raw >> 16).astype("u2").tobytes(), (4, 3), (1, 4))
        self.assertEqual(66.0, cured.sum(bf16((raw >> 16).astype("u2").tobytes(), (12,))))
        self.assert_arrays(cured.sum(t, axis=1), numpy.arange(12.0).reshape(3, 4).sum(0))
        self.assert_arrays(cured.max(t, axis=0), numpy.array([3, 7, 11], "f4"))


class AxisRules(Case):
    def test_shapes(self):
        a = numpy.arange(120, dtype="i4").reshape(2, 3, 4, 5)
        for axis in (0, -1, (0, 2), (1, 2), (-1, 0), (0, 1, 2, 3), (3, 1), ()):
            for keepdims in (False, True):
                got, wanted = cured.sum(a, axis=axis, keepdims=keepdims), a.sum(axis=axis, keepdims=keepdims)
                if wanted.shape == ():
                    self.assertEqual(int(wanted), got)
                else:
                    self.assert_arrays(got, wanted, str(axis))

    def test_whole_with_keepdims(self):
        self.assert_arrays(cured.sum(numpy.ones((2, 3), "i2"), keepdims=True), numpy.array([[6]]))

    def test_ops_that_a_type_has_not(self):
        """As of the whole array, whatever the answers are for."""
        for how in ({}, {"axis": 0}, {"keys": numpy.zeros(3, int)}, {"offsets": [0, 3]}):
            with self.assertRaisesRegex(ValueError, "^op bit_or has no meaning for dtype f32$"):
                cured.reduce(numpy.ones(3, "f4"), ["sum", "bit_or"], **how)

    def test_bad_axes(self):
        a = numpy.zeros((2, 3))
        for axis in (2, -3, (0, 0), (0, -2), (5,)):
            with self.assertRaises(ValueError):
                cured.sum(a, axis=axis)
        for axis in ("0", 1.0, [0]):
            with self.assertRaises(TypeError):
                cured.sum(a, axis=axis)

    def test_no_dimensions(self):
        a = numpy.array(7, "i2")
        self.assertEqual((7, 7, 0), (cured.sum(a), cured.max(a), cured.argmax(a)))
        self.assertEqual(7, cured.sum(a, axis=()))
        with self.assertRaises(ValueError):
            cured.sum(a, axis=0)

    def test_no_elements(self):
        for shape in ((0,), (0, 3), (3, 0), (2, 0, 4)):
            a = numpy.zeros(shape, "f4")
            self.assertEqual(0.0, cured.sum(a))
            for axis in range(a.ndim):
                self.assert_arrays(cured.sum(a, axis=axis, keepdims=True), a.sum(axis=axis, keepdims=True, dtype="f8"))
            with self.assertRaises(ValueError):
                cured.max(a)
        with self.assertRaises(ValueError):
            cured.max(numpy.zeros((3, 0)), axis=1)
        self.assertEqual((0,), cured.max(numpy.zeros((3, 0)), axis=0).shape)

    def test_integers_that_do_not_fit(self):
        a = numpy.full((3, 2), 2**63 - 1, "i8")
        self.assertEqual(6 * (2**63 - 1), cured.sum(a))
        with self.assertRaises(OverflowError):
            cured.sum(a, axis=0)
        self.assert_arrays(cured.sum(a, axis=0, dtype="f8"), numpy.full(2, 3 * 2.0**63))
        with self.assertRaises(OverflowError):
            cured.prod(a, axis=1)
        self.assert_arrays(cured.prod(a, axis=1, overflow="wrap"), a.prod(axis=1))

    def test_one_op_without_answers_leaves_the_others(self):
        a = numpy.full((3, 2), 2**62, "i8")
        a[0] = 1
        r = cured.reduce(a, ["max", "prod", "min"], axis=1)
        for _ in range(2):
            with self.assertRaisesRegex(OverflowError, "the prod does not fit i64; 2 of 3"):
                r.prod
        self.assertIn("prod=<", repr(r))
        self.assert_arrays(r.max, a.max(axis=1))
        self.assert_arrays(r["min"], a.min(axis=1))
        where = numpy.array([[True, True], [False, False], [True, True]])
        r = cured.reduce(a, ["sum", "min"], axis=1, where=where)
        self.assert_arrays(cured.reduce(a, ["min", "count"], axis=1, where=where)["count"], where.sum(axis=1).astype("u8"))
        with self.assertRaises(ValueError):
            r.min
        with self.assertRaises(OverflowError):
            r.sum
        r = cured.reduce(numpy.zeros((2, 0)), ["min", "sum"], axis=1)
        self.assert_arrays(r.sum, numpy.zeros(2))
        with self.assertRaisesRegex(ValueError, "no elements"):
            r.min
        nans = numpy.array([[numpy.nan, numpy.nan], [1, 2]])
        r = cured.reduce(nans, ["min", "argmax", "sum"], axis=1, nan="skip")
        for op in ("min", "argmax"):
            with self.assertRaisesRegex(ValueError, "output 0: %s of only NaNs has no value; 1 of 2" % op):
                r[op]
        self.assert_arrays(r.sum, numpy.array([0.0, 3]))

    def test_types(self):
        for dtype in NUMPY:
            a = sample(dtype, (3, 4))
            self.assertEqual("f8", cured.mean(a, axis=0).dtype)
            self.assertEqual("u8", cured.argmax(a, axis=0).dtype)
            self.assertEqual(a.dtype, cured.min(a, axis=1).dtype)
            self.assertEqual("?", cured.any(a, axis=1).dtype)
            self.assertEqual("f4", cured.sum(a, axis=1, dtype="f32").dtype)

    def test_reduce_along_an_axis(self):
        a = sample("i32", (4, 6))
        r = cured.reduce(a, ["mean", "max"], axis=1, keepdims=True)
        self.assert_arrays(r.max, a.max(axis=1, keepdims=True))
        self.assertEqual((4, 1), r["mean"].shape)

    def test_answers_can_be_written(self):
        x = cured.sum(numpy.ones((2, 3)), axis=0)
        x += 1
        self.assertEqual([3, 3, 3], list(x))


class Masks(Case):
    def check(self, a, where, **options):
        where = numpy.broadcast_to(where, a.shape)
        for op in ("sum", "mean", "count", "any", "prod", "norm2"):
            self.assert_same(getattr(cured, op)(a, where=where, **options), getattr(cured, op)(a[where], **options), op)
        for axis in range(a.ndim):
            got = cured.sum(a, axis=axis, where=where, **options)
            wanted = [cured.sum(numpy.moveaxis(a, axis, -1)[i][numpy.moveaxis(where, axis, -1)[i]], **options)
                      for i in numpy.ndindex(*[n for k, n in enumerate(a.shape) if k != axis])]
            self.assertEqual(wanted, got.reshape(-1).tolist() if a.ndim > 1 else [got])

    def test_where(self):
        r = numpy.random.default_rng(4)
        for dtype in ("f32", "i16", "u8", "bool"):
            for shape in ((50,), (6, 7), (3, 4, 5)):
                a = sample(dtype, shape)
                self.check(numpy.nan_to_num(a) if dtype == "f32" else a, r.random(shape) < 0.4)

    def test_where_broadcasts(self):
        a = sample("i32", (4, 6))
        self.check(a, numpy.array([1, 0, 1, 1, 0, 0], "?"))
        self.check(a, numpy.array([[1], [0], [1], [1]], "?"))
        self.check(a.T, numpy.array([[1], [0], [1], [1]], "?").T)
        self.check(a[::-1, ::2], numpy.array(True))

    def test_where_true_and_none(self):
        self.assertEqual(6, cured.sum(b"\1\2\3", where=True))
        self.assertEqual(6, cured.sum(b"\1\2\3", where=None))

    def test_where_of_nothing(self):
        a = sample("f32", (5, 4))
        self.assertEqual(0.0, cured.sum(a, where=numpy.zeros((5, 4), "?")))
        with self.assertRaises(ValueError):
            cured.max(a, where=numpy.zeros((5, 4), "?"))

    def test_large_where(self):
        a = numpy.random.default_rng(8).standard_normal((900, 800))
        where = a > 1
        self.assert_same(cured.sum(a, where=where), cured.sum(a[where]))
        self.assert_same(cured.sum(a.T, where=where.T), cured.sum(a[where]))
        self.assert_same(cured.sum(a, where=a > 1e9), 0.0)

    def test_slices_of_only_nan(self):
        """They are as a whole array of NaNs: without an extremum, by whatever way the answers come."""
        a = numpy.array([[numpy.nan, numpy.nan], [1, 2]])
        for dtype in ("f2", "f4", "f8", ">f8"):
            b = a.astype(dtype)
            big = numpy.tile(b, (1, 9000))
            for op in (cured.min, cured.max, cured.argmin, cured.argmax):
                for options in ({}, {"where": numpy.ones((1, 1), "?")}, {"out": numpy.empty(2)}, {"out": cured.empty(2)}, {"keepdims": True},
                                {"client": cured.Client("embedded:")}):
                    for array in (b, big, numpy.asfortranarray(b), numpy.ma.masked_array(b, mask=[[0, 1], [0, 1]])):
                        if options.keys() & {"where"} and array is not b:
                            continue
                        with self.assertRaisesRegex(ValueError, "only NaNs"):
                            op(array, axis=1, nan="skip", **options)
                with self.assertRaisesRegex(ValueError, "only NaNs"):
                    op(b[0], nan="skip")
                with self.assertRaisesRegex(ValueError, "no elements"):
                    op(b, axis=1, nan="skip", where=numpy.zeros((1, 1), "?"))
                self.assertTrue(numpy.array_equal(op(b, axis=0, nan="skip"), op(b[1:], axis=0) + (op in (cured.argmin, cured.argmax))))
            self.assert_arrays(cured.norminf(b, axis=1, nan="skip"), numpy.array([0, 2], b.dtype.newbyteorder("=")))

    def test_bad_where(self):
        a = numpy.zeros((2, 3))
        for where in (numpy.zeros((2, 3)), 1, "x", numpy.zeros((2, 3), "u1")):
            with self.assertRaises(TypeError):
                cured.sum(a, where=where)
        with self.assertRaises(ValueError):
            cured.sum(a, where=numpy.zeros((3, 2), "?"))
        with self.assertRaises(ValueError):
            cured.sum(a, where=numpy.zeros((1, 2, 3), "?"))

    def test_masked_arrays(self):
        a = numpy.ma.masked_array([1, 2, 15, 4], mask=[0, 0, 1, 0], dtype="f4")
        self.assertEqual((7.0, 3, 4.0), (cured.sum(a), cured.count(a), cured.max(a)))
        b = numpy.ma.masked_array(numpy.arange(6, dtype="i4").reshape(2, 3), mask=[[0, 1, 0], [0, 0, 1]])
        self.assertEqual(b.sum(axis=0).tolist(), cured.sum(b, axis=0).tolist())
        self.assertEqual(b.sum(axis=1).tolist(), cured.sum(b, axis=1).tolist())
        self.assertEqual(b.T.sum(), cured.sum(b.T))
        plain = numpy.ma.masked_array([1, 2, 3])
        self.assertEqual((6, 2), (cured.sum(plain), cured.argmax(plain)))
        self.assertEqual(5.0, cured.sum(a, where=numpy.array([1, 0, 1, 1], "?")))

    def test_masked_array_of_another_type(self):
        """A masked array of ml_dtypes' bfloat16, played by one of two bytes of nothing."""
        class Bfloats(numpy.ndarray):
            dtype = type("Dtype", (), {"__str__": lambda self: "bfloat16"})()

            def view(self, dtype):
                return numpy.frombuffer(self.tobytes(), dtype)

        class Masked:
            data = numpy.array([0x3f80] * 4, "u2").view("V2").view(Bfloats)
            mask = numpy.array([1, 1, 1, 0], "?")
            compressed = None

        self.assertEqual((1.0, 1), (cured.sum(Masked()), cured.count(Masked())))


class Initial(Case):
    def test_whole(self):
        a = numpy.arange(5, dtype="u1")
        self.assertEqual((1010, -90), (cured.sum(a, initial=1000), cured.sum(a, initial=-100)))
        self.assertEqual((0, 4, 9, -7), (cured.min(a, initial=9), cured.max(a, initial=-1), cured.max(a, initial=9),
                                         cured.min(a, initial=-7)))
        self.assertEqual(48, cured.prod(a[1:], initial=2))
        self.assertEqual(12.5, cured.sum(a.astype("f4"), initial=2.5))
        self.assertEqual(3.0, cured.max(a[:2].astype("f8"), initial=3))
        self.assertEqual(72.0, cured.prod(a[1:].astype("f2"), initial=3))

    def test_of_nothing(self):
        for dtype in ("i4", "f4"):
            a = numpy.zeros(0, dtype)
            self.assertEqual((5, 5, 5, 5), tuple(op(a, initial=5) for op in (cured.sum, cured.prod, cured.min, cured.max)))

    def test_bools(self):
        """A bool counts as 0 or 1, and is a bool only where the array has bools."""
        for dtype in ("u1", "i8", "?"):
            for n in (0, 2):
                a = numpy.ones(n, dtype)
                for initial in (True, False, numpy.True_, 1):
                    for op in ("sum", "prod", "min", "max"):
                        wanted = getattr(numpy, op)(a, initial=initial)
                        wanted = wanted.item() if op in ("min", "max") else int(wanted)
                        for asked in (a, a.reshape(1, n)[:, ::-1], [numpy.ma.masked_array(a, False)][0]):
                            got = getattr(cured, op)(asked, initial=initial)
                            self.assertEqual((type(wanted), wanted), (type(got), got), (op, dtype, n, initial))
        self.assertIs(True, cured.min(numpy.zeros(0, "?"), initial=7))

    def test_exact(self):
        a = numpy.array([1e16, 1])
        self.assert_same(cured.sum(a, initial=-1e16), 1.0)
        self.assertEqual(2**64 + 10, cured.sum(numpy.arange(5), initial=2**64))

    def test_along_an_axis(self):
        a = sample("i16", (3, 5))
        for axis in (0, 1):
            for op in ("sum", "min", "max", "prod"):
                wanted = getattr(a, op)(axis=axis, initial=2)
                self.assertEqual(wanted.tolist(), getattr(cured, op)(a, axis=axis, initial=2).tolist(), op)
                wanted = abs(a.astype("f8"))
                self.assert_arrays(getattr(cured, op)(wanted, axis=axis, initial=2), getattr(wanted, op)(axis=axis, initial=2))
        with self.assertRaises(OverflowError):
            cured.sum(numpy.ones((2, 2), "i8"), axis=0, initial=2**63)
        with self.assertRaises(OverflowError):
            cured.max(numpy.ones((2, 2), "u1"), axis=0, initial=300)

    def test_with_where(self):
        a = numpy.arange(6.0).reshape(2, 3)
        where = numpy.array([[1, 0, 1], [0, 0, 0]], "?")
        self.assert_arrays(cured.max(a, axis=1, where=where, initial=-1), a.max(axis=1, where=where, initial=-1))
        self.assertEqual(12.0, cured.sum(a, where=where, initial=10))

    def test_wrapping(self):
        a = numpy.array([2**62], "i8")
        with self.assertRaises(OverflowError):
            cured.prod(a, initial=2)
        self.assertEqual(-2**63, cured.prod(a, initial=2, overflow="wrap"))

    def test_of_narrow_floats(self):
        for x in (0.0, -0.0, 1.5, 65504.0, 2.0**-24, 2.0**-14, 1023 * 2.0**-24, -3.25, float("inf")):
            self.assert_same(cured.max(numpy.zeros(0, "f2"), initial=x), x)
        for x in (0.1, 65536.0, 2.0**-25, 2049.0):
            with self.assertRaises(ValueError):
                cured.max(numpy.zeros(0, "f2"), initial=x)
        with self.assertRaises(ValueError):
            cured.sum(numpy.zeros(3, "f4"), initial=0.1)
        self.assert_same(cured.max(bf16(b""), initial=1.5), 1.5)
        with self.assertRaises(ValueError):
            cured.max(bf16(b""), initial=1.001)

    def test_refused(self):
        for call in (lambda: cured.mean(b"12", initial=1), lambda: cured.reduce(b"12", ["sum"], initial=1),
                     lambda: cured.sum(b"12", initial=1.5), lambda: cured.sum(b"12", initial="1"),
                     lambda: cured.sum(numpy.zeros(3), initial="1")):
            with self.assertRaises(TypeError):
                call()
        with self.assertRaises(ValueError):
            cured.sum(b"12", initial=1, dtype="f32")


if __name__ == "__main__":
    unittest.main()
