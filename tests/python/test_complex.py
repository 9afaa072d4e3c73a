"""Complex arrays: every op, held against Fractions, which round once; every door, axis, mask, key, segment and type crossed with every op; and
what is refused, by which sentence."""
import asyncio
import itertools
import math
import os
import pickle
import struct
import tempfile
import unittest
from fractions import Fraction

import numpy as np
from support import Case, cured, oracle, python_value, same
from cured_daemon import DaemonTest  # noqa: I100: support finds it

import cured.array_api as xp

RANDOM = np.random.default_rng(int(os.environ.get("CURED_TEST_SEED", "20261129")))
COMPLEX = ("sum", "mean")
REAL = ("sumsq", "norm2", "var", "std")
COUNTS = ("count", "count_nonzero", "count_nan", "count_inf", "any", "all")
OPS = COMPLEX + REAL + COUNTS
SHAPE = (4, 3, 5)
KINDS = {"c8": "f32", "c16": "f64"}
INF, NAN = math.inf, math.nan
SPECIALS = (0.0, -0.0, 1.0, -1.0, 0.1, 1e-45, -1e-45, 1e-310, 1e30, -1e30, 3e38, -3e38, 16777217.0, INF, -INF, NAN)


# ---- The oracle: of a list of complex numbers, in Fractions and in tests/oracle's integers ----

def spread(op, z, result, ddof):
    """The variance of both parts together, or its root: one division, one rounding."""
    values = [x for number in z.tolist() for x in (number.real, number.imag)]
    if not all(map(math.isfinite, values)) or len(z) == 0 or len(z) - Fraction(ddof) <= 0:
        return NAN
    total = Fraction(0)
    for part in (values[::2], values[1::2]):
        exact = list(map(Fraction, part))
        middle = sum(exact) / len(exact)
        total += sum((x - middle) ** 2 for x in exact)
    total /= len(z) - Fraction(ddof)
    bits = (oracle.rounded_root if op == "std" else oracle.rounded)(result, total)
    return python_value(result, bits.to_bytes(8 if result == "f64" else 4, "little"))


def wanted(op, z, nan="propagate", result="f64", ddof=0):
    """cured's answer of an array of one axis: of a complex, a float, an int or a bool."""
    z = np.ascontiguousarray(z, z.dtype.newbyteorder("<"))
    nans = np.array([x.real != x.real or x.imag != x.imag for x in z.tolist()], bool)
    if op == "count_nan":
        return int(nans.sum())
    if nan == "skip":
        z = z[~nans]
    kind, numbers = KINDS[z.dtype.str[1:]], z.tolist()
    nonzero = sum(not (x.real == 0 and x.imag == 0) for x in numbers)
    plain = {"count": len(z), "count_nonzero": nonzero, "any": nonzero > 0, "all": nonzero == len(z),
             "count_inf": sum(math.isinf(x.real) or math.isinf(x.imag) for x in numbers)}
    if op in plain:
        return plain[op]
    if op in ("var", "std"):
        return spread(op, z, result, ddof)
    raws = (z.real.tobytes(), z.imag.tobytes()) if op in COMPLEX else (z.tobytes(),)
    found = [oracle.answer(op, kind, raw, result=result) for raw in raws]
    values = [python_value(answer[1], answer[2]) for answer in found]
    return complex(*values) if op in COMPLEX else values[0]


def bits(x):
    """What two answers that are equal have the same of. NaNs are."""
    if isinstance(x, complex):
        return tuple(map(bits, (x.real, x.imag)))
    return struct.pack("<d", NAN if x != x else x) if isinstance(x, float) else x


def array_of(kind, shape, specials=False, scale=3):
    parts = [RANDOM.standard_normal(shape) * 10.0 ** RANDOM.integers(-scale, scale + 1, shape) for _ in range(2)]
    if specials:
        for part in parts:
            part[...] = np.where(RANDOM.random(shape) < 0.5, RANDOM.choice(SPECIALS, shape), part)
    made = np.empty(shape, kind)
    with np.errstate(over="ignore", under="ignore"):
        made.real, made.imag = parts
    return made


# ---- Placements: options, and of each answer the numbers that it is of ----

def slices(a, axes, keepdims=False):
    axes = tuple(k % a.ndim for k in axes)
    stay = [k for k in range(a.ndim) if k not in axes]
    rows = a.transpose(*stay, *axes).reshape([a.shape[k] for k in stay] + [-1])
    shape = [1 if k in axes else n for k, n in enumerate(a.shape) if keepdims or k not in axes]
    return shape, rows.reshape(math.prod(shape), -1)


def placements(a):
    """(options, the shape of the answers or None, lists of places in a.ravel())."""
    at = np.arange(a.size).reshape(a.shape)
    yield {}, None, [at.ravel()]
    for axis in range(-a.ndim, a.ndim):
        shape, rows = slices(at, (axis,))
        yield {"axis": axis}, shape or None, rows
    for axes in ((0, 1), (-1, 0), (0, 1, 2), ()):
        if len(axes) <= a.ndim and a.ndim == 3:
            keep = {"keepdims": True}
            yield {"axis": axes, **keep}, *slices(at, axes, True)
            shape, rows = slices(at, axes)
            yield {"axis": axes}, (None if len(axes) == a.ndim else shape), rows
    yield {"keepdims": True}, *slices(at, range(a.ndim), True)
    keys = RANDOM.integers(0, 3, len(a))
    rows = at.reshape(len(a), -1)
    yield ({"keys": keys, "groups": 4}, [4, *a.shape[1:]], [rows[keys == k, j] for k in range(4) for j in range(rows.shape[1])])
    lost = np.where(keys == 2, -1, keys)
    yield ({"keys": lost, "groups": 2, "drop": True}, [2, *a.shape[1:]], [rows[keys == k, j] for k in range(2) for j in range(rows.shape[1])])
    if a.ndim == 1:
        borders = [0, 2, 2, len(a) - 1]
        yield {"offsets": borders}, [3], [at[i:j] for i, j in zip(borders, borders[1:])]


def layouts(a):
    yield "C", a
    yield "Fortran", np.asfortranarray(a)
    yield "transposed", np.ascontiguousarray(a.T).T
    yield "backwards", a[::-1].copy()[::-1]
    yield "with gaps", np.repeat(a, 3, axis=-1)[..., ::3]
    yield "backwards with gaps", np.repeat(a[::-1], 2, axis=0)[::-2]
    yield "big-endian", a.astype(a.dtype.newbyteorder(">"))
    yield "masked, nothing of it", np.ma.masked_array(a, np.zeros(a.shape, bool))
    field = np.zeros(a.shape, [("before", "u1"), ("z", a.dtype)])
    field["z"] = a
    yield "a field, unaligned", field["z"]
    yield "read-only", np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape)


class Complex(DaemonTest, Case):
    def equal(self, op, got, want, what, dtype="f64"):
        """got: a number of Python; or an array, whose type says that of the answers."""
        self.assertEqual(bits(want), bits(got), (op, what, want, got))

    def answers(self, op, got, shape, lists, what, dtype="f64"):
        """Each answer of got is that of a list of numbers."""
        if shape is None:
            self.assertIs(type(lists[0]), type(got), (op, what))
            return self.equal(op, got, lists[0], what)
        self.assertEqual(tuple(shape), got.shape, (op, what))
        kind = {"c": "c", "f": "f"}.get(got.dtype.kind)
        if kind:
            self.assertEqual((8 if dtype == "f64" else 4) * (2 if kind == "c" else 1), got.dtype.itemsize, (op, what))
        self.assertEqual(op in COMPLEX, got.dtype.kind == "c", (op, what))
        for number, want in zip(got.ravel().tolist(), lists, strict=True):
            self.equal(op, number, want, what)

    def test_random_and_special_numbers(self):
        for kind, specials in itertools.product(KINDS, (False, True)):
            for n in [0, 1, 2, 3, 5, 17] + [40] * 8:
                a = array_of(kind, n, specials, scale=30 if kind == "c16" else 8)
                for nan, result, ddof in itertools.product(("propagate", "skip"), ("f64", "f32"), (0, 1, 0.5)):
                    for op in OPS:
                        options = {"nan": nan} if op != "count_nan" else {}
                        if op in COMPLEX + REAL and result == "f32":
                            options["dtype"] = "complex64" if op in COMPLEX else "f32"
                        if op in ("var", "std"):
                            options["ddof"] = ddof
                        elif ddof:
                            continue
                        got, want = getattr(cured, op)(a, **options), wanted(op, a, nan, result, ddof)
                        self.assertIs(type(want), type(got), (op, options))
                        self.equal(op, got, want, (a, options))

    def test_what_cancels(self):
        big, least = 1.7e308, 5e-324
        a = np.array([complex(big, -big), complex(big, -big), complex(least, -least), complex(-big, big), complex(-big, big)])
        self.assert_complex(complex(least, -least), cured.sum(a))
        self.assert_complex(complex(0.0, -0.0), cured.mean(a))
        self.assertEqual(0j, cured.sum(np.zeros(0, complex)))
        self.assertTrue(all(map(math.isnan, (cured.mean(a[:0]).real, cured.mean(a[:0]).imag, cured.var(a[:0])))))
        # Both parts' variances are rounded down alone: their rounded sum would lie a unit below the true one's.
        u = 2.0**-53
        z = np.array([complex(1 + 2 * u, 0), complex(-1 - 2 * u, 0), 1j * (2 * math.sqrt(u)), -1j * (2 * math.sqrt(u))])
        self.assert_same(wanted("var", z), cured.var(z))
        # The root of a sum of squares that overflows.
        self.assert_same(math.ldexp(5, 1000), cured.norm2(np.array([complex(math.ldexp(3, 1000), math.ldexp(4, 1000))])))
        self.assert_same(INF, cured.sumsq(np.array([complex(1e200, 0)])))
        self.assert_same(5.0, cured.norm2(np.array(3 + 4j)))

    def assert_complex(self, want, got):
        self.assertTrue(type(got) is complex and same(want.real, got.real) and same(want.imag, got.imag), (want, got))

    def test_one_rounding_of_both_parts(self):
        """Of 300 draws the parts' rounded variances often add up to another number than the true value rounded once."""
        differ = 0
        for _ in range(300):
            z = array_of("c16", 5, scale=1)
            got = cured.var(z)
            self.assert_same(wanted("var", z), got)
            differ += got != cured.var(z.real) + cured.var(z.imag)
        self.assertGreater(differ, 20)

    def test_every_placement(self):
        """Op by placement by mask by NaNs by type by layout: each answer by the oracle."""
        for kind, shape in itertools.product(KINDS, (SHAPE, (17,))):
            a = array_of(kind, shape, True)
            keep = RANDOM.random(shape) < 0.7
            for options, form, places in placements(a):
                for where, nan, result in ((False, "propagate", "f64"), (True, "propagate", "f64"), (True, "skip", "f32"), (False, "skip", "f64")):
                    more = dict(options, **({"where": keep} if where else {}), nan=nan)
                    chosen = [at[keep.ravel()[at]] if where else at for at in places]
                    typed = {} if result == "f64" else {"dtype": np.complex64}
                    found = cured.reduce(a, OPS, **more, **typed)
                    for op in OPS:
                        lists = [wanted(op, a.ravel()[at], nan, result) for at in chosen]
                        self.answers(op, found[op], form, lists, (kind, more), result)
                        alone = getattr(cured, op)(a, **{name: value for name, value in more.items() if (op, name) != ("count_nan", "nan")},
                                                   **(typed if op in COMPLEX + REAL else {}))
                        self.answers(op, alone, form, lists, (kind, more), result)

    def test_every_layout(self):
        for kind, shape in (("c8", (17,)), ("c16", SHAPE)):
            a = array_of(kind, shape, True)
            asked = [(options, form, {op: [wanted(op, a.ravel()[at]) for at in places] for op in OPS}) for options, form, places in placements(a)]
            for what, b in layouts(a):
                self.assertTrue((np.isnan(a) | (np.asarray(b) == a)).all(), what)
                for options, form, lists in asked:
                    found = cured.reduce(b, OPS, **options)
                    for op in OPS:
                        self.answers(op, found[op], form, lists[op], (kind, what, options))

    def test_kinds_of_arrays(self):
        a = array_of("c16", 20)
        for what, b in (("memoryview", memoryview(a)), ("its c8", memoryview(a.astype("c8"))), ("scalar", a[3]), ("c8 scalar", np.complex64(1 + 2j)),
                        ("no axis", np.array(2 - 1j))):
            z = np.asarray(b).ravel()
            for op in OPS:
                self.equal(op, getattr(cured, op)(b), wanted(op, z), what)
        with self.assertRaisesRegex(TypeError, "numpy.asarray"):
            cured.sum(1j)
        for given in ([1j, 2, 0.5], (1 - 1j, 2j), [[1j], [2.0]], [True, 1j], [1j]):
            z = np.array(given)
            for op in OPS:
                self.equal(op, getattr(cured, op)(given), wanted(op, z.ravel()), given)
        self.assertEqual([-1 + 1j, 1j], [cured.dot([1j], [1 + 1j]), cured.average([1j, 3j], weights=[3, 1.0]) * 2 / 3])
        self.assertEqual([1 + 0j, 2.0], [cured.vecdot([1j], [1j]), cured.sqdist([1j], [1 + 2j])])
        with self.assertRaisesRegex(TypeError, "complex128"):
            cured.sum(np.zeros(3, "G"))

    def test_missing_elements(self):
        a = array_of("c16", SHAPE, True)
        missing = RANDOM.random(SHAPE) < 0.4
        keep = RANDOM.random(SHAPE) < 0.7
        m = np.ma.masked_array(a, missing)
        for options in ({}, {"axis": 1}, {"axis": (0, 2), "keepdims": True}, {"keys": [1, 0, 2, 1]}):
            for nan, both in itertools.product(("propagate", "skip"), (False, True)):
                counts = ~missing & keep if both else ~missing
                want = cured.reduce(a, OPS, where=counts, nan=nan, **options)
                got = cured.reduce(m, OPS, nan=nan, **options, **({"where": keep} if both else {}))
                for op in OPS:
                    self.assertEqual(np.asarray(want[op]).tobytes(), np.asarray(got[op]).tobytes(), (op, options, nan, both))
        for op, nan in itertools.product(OPS, ("propagate", "skip")):
            more = {} if op == "count_nan" else {"nan": nan}
            with self.assertRaisesRegex(ValueError, "nulls: the array has missing elements"):
                getattr(cured, op)(m, nulls="error", **more)
            self.assertEqual(bits(getattr(cured, op)(a, **more)), bits(getattr(cured, op)(np.ma.masked_array(a), nulls="error", **more)))

    def test_numpys_names(self):
        a = array_of("c16", SHAPE, True)
        for name in ("nansum", "nanmean", "nanvar", "nanstd"):
            op = name[3:]
            for axis in (None, 0, (1, 2)):
                shape, rows = (None, [a.ravel()]) if axis is None else slices(a, np.atleast_1d(axis))
                self.answers(op, getattr(cured, name)(a, axis), shape, [wanted(op, row, "skip") for row in rows], name)
        b = array_of("c16", 9)
        self.assert_same(wanted("std", b, ddof=1.5), cured.nanstd(b, ddof=1.5))

    def test_first_values_and_counts(self):
        a = array_of("c16", 9)
        for first in (1, 2.5, 1 - 3j, np.complex64(2j), True):
            self.equal("sum", cured.sum(a, initial=first), wanted("sum", np.append(a, first)), first)
        b = array_of("c8", (3, 4))
        got = cured.sum(b, axis=0, initial=1j)
        self.answers("sum", got, [4], [wanted("sum", np.append(column, np.complex64(1j))) for column in b.T], "initial")
        for error, words, ask in ((ValueError, "initial: 0.1 is no value of f32", lambda: cured.sum(b, initial=0.1j)), (TypeError, "initial: a number", lambda: cured.sum(b, initial="1j")),
                                  (TypeError, "initial: only sum", lambda: cured.mean(b, initial=1)), (TypeError, "initial: only sum", lambda: cured.reduce(b, "sum", initial=1))):
            with self.assertRaisesRegex(error, words):
                ask()
        self.equal("sum", cured.sum(a, min_count=9), wanted("sum", a), "enough")
        self.assert_complex(complex(NAN, NAN), cured.sum(a, min_count=10))
        self.assertTrue(np.isnan(cured.std(a, min_count=10)))
        few = cured.sum(b, axis=1, where=[[True] * 4, [True] * 3 + [False], [True] * 4], min_count=4, dtype="complex64")
        self.assertEqual(([False, True, False], "complex64"), (np.isnan(few).tolist(), few.dtype.name))
        self.assertTrue(np.isnan(few[1].imag))

    def test_types_of_answers(self):
        a = array_of("c8", (4, 3))
        for name in ("complex64", "<c8", np.complex64, np.dtype("c8"), np.dtype(">c8"), "f32", np.float32, "csingle"):
            for op, kind in (("sum", "c8"), ("mean", "c8"), ("std", "f4"), ("norm2", "f4")):
                got = getattr(cured, op)(a, axis=0, dtype=name)
                self.answers(op, got, [3], [wanted(op, column, result="f32") for column in a.T], name, "f32")
                self.assertEqual(kind, got.dtype.str[1:])
        for name in ("complex128", complex, np.complex128, "f64", float):
            self.assertEqual("complex128", cured.sum(a, axis=0, dtype=name).dtype.name)
        for name in ("f33", "c16", "i64", object):
            with self.assertRaises((TypeError, ValueError)):
                cured.sum(a, dtype=name)
        with self.assertRaisesRegex(TypeError, "complex64"):
            cured.sum(a.real, dtype="complex64")
        with self.assertRaisesRegex(ValueError, "none of the ops takes it"):
            cured.count(a, dtype="complex64")
        with self.assertRaisesRegex(TypeError, "two names"):
            cured.var(a, ddof=1, dtype="complex64", correction=2)
        self.assertEqual(cured.var(a, correction=1), cured.var(a, ddof=1, dtype=complex))

    def test_out(self):
        a = array_of("c16", (6, 5))
        for op in COMPLEX + REAL:
            types = ("c16", "c8", ">c16") if op in COMPLEX else ("f8", "f4", "c16")
            for kind in types:
                for out in (np.zeros(5, kind), np.zeros(10, kind)[::2]):
                    got = getattr(cured, op)(a, axis=0, out=out)
                    self.assertIs(out, got)
                    result = "f32" if kind in ("c8", "f4") else "f64"
                    for number, column in zip(out.tolist(), a.T, strict=True):
                        self.equal(op, number, complex(wanted(op, column, result=result)) if out.dtype.kind == "c" else wanted(op, column, result=result), kind)
            self.assertEqual(bits(wanted(op, a.ravel())), bits(getattr(cured, op)(a, out=np.zeros((), types[0])).item()))
        outs = np.zeros(5, "c16"), np.zeros(5), np.zeros(5, "i8")
        found = cured.reduce(a, "mean,std,count", axis=0, out=outs)
        self.assertTrue(found.mean is outs[0] and found.std is outs[1] and found.count is outs[2] and (outs[2] == 6).all())
        self.assertEqual(bits(wanted("std", a[:, 4])), bits(outs[1][4].item()))
        for error, words, ask in ((TypeError, "Cannot cast", lambda: cured.sum(a, axis=0, out=np.zeros(5))), (ValueError, "has the shape", lambda: cured.sum(a, axis=0, out=np.zeros(6, "c16")))):
            with self.assertRaisesRegex(error, words):
                ask()

    def test_lists(self):
        a, b = array_of("c16", (3, 4), True), array_of("c8", 7, True)
        whole = np.concatenate([a.ravel(), b.astype("c16")])
        for pair in ([a, b], (a.T, b[::-1]), [np.ma.masked_array(a, False), b]):
            found = cured.reduce(pair, OPS)
            for op in OPS:
                self.equal(op, found[op], wanted(op, whole), "list")
                if op != "count_nan":
                    self.equal(op, getattr(cured, op)(pair, nan="skip"), wanted(op, whole, "skip"), "list")
        self.equal("std", cured.std([a, b], ddof=0.5, nan="skip"), wanted("std", whole, "skip", ddof=0.5), "list")
        self.assertEqual(cured.digest(whole[:12]), cured.digest([a]))
        each = cured.reduce_each([a, b], "sum,std,count")
        self.assertEqual([bits(wanted(op, z)) for z in (a.ravel(), b) for op in ("sum", "std", "count")], [bits(r[op]) for r in each for op in ("sum", "std", "count")])
        self.assertEqual(repr(each), repr(pickle.loads(pickle.dumps(each))))
        for words, ask in (("has no others", lambda: cured.sum([a, a.real])), ("has no others", lambda: cured.norm2([b.real, b])), ("axis: a list", lambda: cured.sumsq([a], axis=0)),
                           ("where: a list", lambda: cured.sum([a], where=a == a)), ("axis: a list", lambda: cured.std([a], axis=0)), ("no pairs", lambda: cured.dot([a], [a]))):
            with self.assertRaisesRegex(TypeError, words):
                ask()

    def test_digests(self):
        a = array_of("c16", (4, 6), True)
        self.assertEqual(cured.digest(a.view("f8")), cured.digest(a))
        self.assertEqual(cured.digest(np.ascontiguousarray(a.T).view("f8")), cured.digest(a.T))
        self.assertTrue((cured.digest(a.view("f8"), axis=1) == cured.digest(a, axis=1)).all())
        self.assertTrue((cured.digest(a[1].view("f8"), offsets=[0, 4, 10]) == cured.digest(a[1], offsets=[0, 2, 5])).all())
        with self.assertRaisesRegex(ValueError, "takes no mask"):
            cured.digest(a, where=a == a)

    def pairs_of(self, op, x, y):
        """The oracle of dot and sqdist: products in Fractions."""
        x, y = ([(Fraction(z.real), Fraction(z.imag)) for z in row.tolist()] for row in (x, y))
        number = lambda total: python_value("f64", oracle.rounded("f64", total).to_bytes(8, "little"))  # noqa: E731
        if op == "sqdist":
            return number(sum(((a - c) ** 2 + (b - d) ** 2 for (a, b), (c, d) in zip(x, y)), Fraction(0)))
        return complex(number(sum((a * c - b * d for (a, b), (c, d) in zip(x, y)), Fraction(0))),
                       number(sum((a * d + b * c for (a, b), (c, d) in zip(x, y)), Fraction(0))))

    def test_two_arrays(self):
        for kind, shape in itertools.product(KINDS, (SHAPE, (17,))):
            a, b, keep = array_of(kind, shape), array_of(kind, shape), RANDOM.random(shape) < 0.7
            for options, form, places in placements(a):
                for op, where in itertools.product(("dot", "sqdist"), (False, True)):
                    chosen = [at[keep.ravel()[at]] if where else at for at in places]
                    lists = [self.pairs_of(op, a.ravel()[at], b.ravel()[at]) for at in chosen]
                    more = dict(options, **({"where": keep} if where else {}))
                    got = getattr(cured, op)(a, b, **more)
                    self.assertEqual(op == "dot", isinstance(got, complex) if form is None else got.dtype.kind == "c")
                    for number, want in zip([got] if form is None else got.ravel().tolist(), lists, strict=True):
                        self.equal(op, number, want, (kind, more))
            self.equal("dot", cured.dot(a.T, b.T, dtype="complex64"), complex(np.complex64(cured.dot(a, b))) if kind == "c16" else cured.dot(a, b, dtype="f32"), "T")
        x, y = array_of("c16", (3, 4)), array_of("c16", 4)
        for number, row in zip(cured.vecdot(x, y).tolist(), x, strict=True):
            self.equal("dot", number, self.pairs_of("dot", row.conj(), y), "vecdot conjugates the first")
        self.assertEqual(bits(self.pairs_of("dot", y, y)), bits(cured.reduce(y, "dot,sqdist", second=y).dot))
        big = np.array([1e200 + 1j, -1e200 + 1j])
        self.assertEqual(complex(-2, 2e200), cured.dot(big, np.array([1e200 + 1j, 1e200 + 1j])))
        weights = [1.0, 2.0, 3.0, 0.5]
        for given in (weights, np.array(weights)):
            got = cured.average(x, axis=1, weights=given)
            for number, row in zip(got.tolist(), x, strict=True):
                self.assertEqual((cured.average(row.real, weights=weights), cured.average(row.imag, weights=weights)), (number.real, number.imag))
        self.assertEqual(cured.mean(x), cured.average(x))
        for error, words, ask in ((ValueError, "second: it is .*\\(3,\\)", lambda: cured.sqdist(y, y[:3])),
                                  (TypeError, "weights are real", lambda: cured.average(y, weights=y)), (ValueError, "of one array", lambda: cured.reduce(y, "sum", second=y)),
                                  (TypeError, "weights of complex", lambda: cured.reduce(y, "dot,average", second=y))):
            with self.assertRaisesRegex(error, words):
                ask()

    def test_who_answers(self):
        """By a daemon, by libcured here and without waiting: the same bits."""
        a, keep = array_of("c16", SHAPE, True), RANDOM.random(SHAPE) < 0.6
        asked = [({}, OPS), ({"axis": 1}, OPS), ({"where": keep, "axis": (0, 2)}, OPS), ({"keys": [0, 1, 1, 2]}, OPS), ({"nan": "skip"}, OPS)]
        for client in (cured.Client(self.daemon.address), cured.Client("embedded:", threads=2)):
            for options, ops in asked:
                want, got, more = cured.reduce(a, ops, **options), client.reduce(a, ops, **options), cured.reduce(a, ops, client=client, **options)
                for op in ops:
                    self.assertTrue(np.asarray(want[op]).tobytes() == np.asarray(got[op]).tobytes() == np.asarray(more[op]).tobytes(), (op, options))
            self.assertEqual(bits(cured.dot(a[0], a[1])), bits(client.dot(a[0], a[1])))
            self.assertEqual(bits(cured.std(a, nan="skip", ddof=1)), bits(client.std(a, nan="skip", ddof=1, dtype="complex128")))

        async def ask():
            async with cured.AsyncClient(self.daemon.address) as client:
                for options, ops in asked:
                    want, got = cured.reduce(a, ops, **options), await client.reduce(a, ops, **options)
                    for op in ops:
                        self.assertEqual(np.asarray(want[op]).tobytes(), np.asarray(got[op]).tobytes(), (op, options))
                self.assertEqual([bits(cured.nansum(a)), bits(cured.dot(a[0], a[1])), cured.digest(a)], [bits(x) if not isinstance(x, str) else x for x in await asyncio.gather(
                    client.nansum(a), client.dot(a[0], a[1]), client.digest(a))])
                self.assertTrue(np.isnan(await client.sum(a[0, 0], min_count=100)))
                for words, call in (("takes a whole number", lambda z: client.var(z, ddof=0.5)), ("takes a whole number", lambda z: client.std(z, ddof=-1)), ("no order", client.min), ("takes no out", lambda z: client.sum(z, out=np.zeros((), complex))),
                                    ("takes no initial", lambda z: client.sum(z, initial=1)), ("takes no lists", lambda z: client.sum([z]))):
                    with self.assertRaisesRegex(TypeError, words):
                        await call(a)
        asyncio.run(ask())

    def test_array_api(self):
        a = array_of("c8", (4, 3))
        for op in COMPLEX:
            got = getattr(xp, op)(a, axis=0)
            self.answers(op, got, [3], [wanted(op, column, result="f32") for column in a.T], "array_api", "f32")
        self.assertEqual("complex128", xp.sum(a, dtype=np.complex128).dtype.name)
        self.assertEqual([True, True, 12], [bool(xp.any(a)), bool(xp.all(a)), int(xp.count_nonzero(a))])
        for words, ask in (("floating-point type", lambda: xp.var(a)), ("no order", lambda: xp.max(a)), ("rounds each", lambda: xp.prod(a)), ("not added up", lambda: xp.sum(a, dtype=np.float32))):
            with self.assertRaisesRegex(TypeError, words):
                ask()

    def test_refused(self):
        """Each op that complex numbers have not, by every function, says what to do."""
        a = array_of("c16", (3, 4))
        order = ("min", "max", "argmin", "argmax", "ptp", "median")
        for op in order + ("quantile",):
            ask = (lambda: cured.quantile(a, 0.5), lambda: cured.quantile(a, [0.1, 0.5], axis=0)) if op == "quantile" else (
                lambda: getattr(cured, op)(a), lambda: getattr(cured, op)(a, axis=0), lambda: cured.reduce(a, ["sum", op]), lambda: getattr(cured, op)([a]))
            for call in ask:
                with self.assertRaisesRegex(TypeError, "%s: complex numbers have no order: reduce a.real and a.imag" % op):
                    call()
        for op, words in (("prod", "numpy.prod"), ("norm1", r"numpy.abs\(a\)"), ("norminf", r"numpy.abs\(a\)"), ("bit_and", "no bits"), ("bit_or", "no bits"), ("bit_xor", "no bits")):
            with self.assertRaisesRegex(TypeError, "^%s: .*%s" % (op, words)):
                getattr(cured, op)(a)
        for call in (lambda: cured.describe(a), lambda: cured.minmax(a), lambda: cured.nanmax(a), lambda: cured.nanmedian(a), lambda: cured.percentile(a, 50), lambda: cured.histogram(a)):
            with self.assertRaisesRegex(TypeError, "complex numbers have no order"):
                call()
        for call in (lambda: cured.partial(a, "sum"), lambda: cured.partial([a], "sum"), lambda: cured.partial(a[0], "sum", keys=[0, 0, 0, 0]), lambda: cured.reduce_parts([a], "sum"),
                     lambda: cured.linear(a, "sum")):
            with self.assertRaisesRegex(TypeError, "a partial has no complex numbers: ask for those of a.real and a.imag"):
                call()
        class OnGpu:  # as CuPy's
            dtype, shape, __cuda_array_interface__ = np.dtype("c16"), (3,), {"shape": (3,), "typestr": "<c16", "data": (4096, False), "version": 3}
        with self.assertRaisesRegex(TypeError, r"complex numbers on a GPU .*torch.view_as_real\(t\)"):
            cured.sum(OnGpu())
        self.assertEqual([0j, 3 + 3j], cured.bincount([1, 1], weights=np.array([1 + 1j, 2 + 2j])).tolist())

    def test_files(self):
        """cured.file has none, and says what takes them: all that is said is right."""
        with tempfile.TemporaryDirectory() as folder:
            a, path = array_of("c16", (3, 4)), os.path.join(folder, "a.npy")
            for b in (a, np.asfortranarray(a), a.astype(">c16"), a.astype("c8")):
                np.save(path, b)
                np.savez(path + ".npz", x=b)
                for name in (path, path + ".npz:x"):
                    with self.assertRaisesRegex(NotImplementedError, r"complex numbers .*: in Python cured.sum\(numpy.load\(path, mmap_mode='r'\)\) does"):
                        cured.file(name)
                self.equal("sum", cured.sum(np.load(path, mmap_mode="r")), wanted("sum", b.ravel()), b.dtype)
                self.equal("std", cured.std(np.load(path, mmap_mode="r"), ddof=0.5), wanted("std", b.ravel(), ddof=0.5), b.dtype)
                with self.assertRaisesRegex(NotImplementedError, "complex numbers"):
                    cured.dot(a, cured.file(path))
            np.save(path, a.astype(np.clongdouble))  # which nobody takes
            with self.assertRaisesRegex(NotImplementedError, "complex numbers .*, which cured does not reduce$"):
                cured.file(path)
            with self.assertRaisesRegex(TypeError, "is not reduced"):
                cured.sum(np.load(path))

    def test_wrong_arguments(self):
        """What is wrong with a call of a real array is said of a complex one, too."""
        a = array_of("c16", (3, 4))
        for options in ({"axis": 7}, {"axis": (0, 0)}, {"axis": 1.5}, {"nan": "no"}, {"nulls": "no"}, {"where": 3}, {"where": np.ones(9, bool)}, {"where": a.real}, {"keys": [0]}, {"keys": [0, 0, 9], "groups": 2},
                        {"groups": 3}, {"drop": True}, {"keys": [0, 0, 0], "axis": 1}, {"offsets": [0, 1]}, {"overflow": "wrap"}, {"ddof": 1}, {"client": 3}, {"foo": 1}, {"first": 0}, {"shape": (3,)},
                        {"initial": "x"}, {"out": np.zeros((2, 2), "c16")}, {"keys": [0, 0, 0], "offsets": [0, 1]}):
            for op in ("sum", "sumsq", "var", "count_nonzero"):
                if ("initial" in options and op != "sum") or ("ddof" in options and op == "var"):
                    continue
                errors = []
                for array in (a, a.real):
                    with self.assertRaises(Exception, msg=(op, options, array.dtype)) as caught:
                        getattr(cured, op)(array, **options)
                    errors.append(caught.exception)
                self.assertTrue(issubclass(type(errors[0]), (TypeError, ValueError)) and type(errors[0]) is type(errors[1]), (op, options, errors))
        for options in ({"offsets": [0, 9]}, {"offsets": [2, 1]}, {"offsets": [0.5, 1]}, {"offsets": [0, 2], "axis": 0}):
            for op in OPS:
                with self.assertRaises((TypeError, ValueError)) as caught:
                    getattr(cured, op)(a[0], **options)
                with self.assertRaises((TypeError, ValueError)) as real:
                    getattr(cured, op)(a[0].real, **options)
                self.assertEqual(str(real.exception), str(caught.exception), (op, options))
        with self.assertRaisesRegex(TypeError, "without their names"):
            cured.sum(a, 0, 1)

    def test_no_elements(self):
        for shape in ((0,), (0, 3), (3, 0), (2, 0, 3)):
            a = np.zeros(shape, "c16")
            for options in ({}, {"axis": 0}, {"axis": -1}, {"keepdims": True}, {"keys": np.zeros(shape[0], int), "groups": 2}):
                want, got = cured.reduce(a.real, OPS, **options), cured.reduce(a, OPS, **options)
                for op in OPS:
                    self.assertEqual((np.shape(want[op]), bits(want[op]) if not options else 0), (np.shape(got[op]), bits(got[op] + 0 if op not in COMPLEX else got[op].real) if not options else 0), (op, shape, options))


if __name__ == "__main__":
    unittest.main()
