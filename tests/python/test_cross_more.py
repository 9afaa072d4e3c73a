"""What cross_property.py does not draw, at random against fractions: complex numbers, weights of an axis, bincount and histogram; and arrays that the
thread pool folds, by offsets and keys, under masks, of pairs and quantiles."""
import asyncio
import itertools
import math
import unittest
from fractions import Fraction

import numpy as np
from support import Case, cured

SHAPE = (4, 3, 5)
REAL = ("f2", "f4", "f8", "i1", "i4", "u2", "?")


def exactly(values):
    return [Fraction(v) for v in np.asarray(values).tolist()]


def rows_of(a, axis):
    """(shape of the answers, for each answer the positions of its elements in C order)."""
    axes = tuple(range(a.ndim)) if axis is None else tuple(k % a.ndim for k in (axis if isinstance(axis, tuple) else (axis,)))
    stay = [k for k in range(a.ndim) if k not in axes]
    at = np.arange(a.size).reshape(a.shape).transpose(stay + sorted(axes))
    return tuple(a.shape[k] for k in stay), at.reshape(math.prod(a.shape[k] for k in stay), -1)


def placed(r, shape):
    """(options, shape of the answers, the positions of each)."""
    a, kind = np.empty(shape), r.choice(["whole", "axis", "axis", "keys", "offsets"])
    if kind == "keys":
        keys = r.integers(0, 3, shape[0])
        columns = np.arange(a.size).reshape(shape[0], -1)
        return {"keys": keys, "groups": 3}, (3,) + shape[1:], [columns[keys == g, c] for g in range(3) for c in range(columns.shape[1])]
    if kind == "offsets" and len(shape) == 1:
        cuts = np.sort(r.integers(0, a.size + 1, 4))
        return {"offsets": cuts}, (3,), [np.arange(i, j) for i, j in zip(cuts, cuts[1:])]
    axes = [None] if kind == "whole" else [0, -1, *([(0, 1), (0, 2), (1, 2)] if len(shape) == 3 else [])]
    axis = axes[r.integers(len(axes))]
    return ({} if axis is None else {"axis": axis}), *rows_of(a, axis)


class Small(Case):
    def setUp(self):
        self.random = np.random.default_rng(3311)
        self.client = self.enterContext(cured.Client("embedded:", threads=2))

    def numbers(self, kind, shape):
        r = self.random
        if np.dtype(kind).kind == "f":
            reach = {"f2": 2, "f4": 20, "f8": 100}[kind]
            return (r.standard_normal(shape) * 10.0 ** r.integers(-reach, reach, shape)).astype(kind) if r.random() < 0.6 else r.integers(-4, 5, shape).astype(kind)
        return r.integers(0, 2, shape).astype("?") if kind == "?" else r.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind, endpoint=True)

    def lies(self, a):
        return [lambda: a, lambda: np.asfortranarray(a), lambda: np.repeat(a, 2, -1)[..., ::2], lambda: a.astype(a.dtype.newbyteorder())][self.random.integers(4)]()

    def doors(self, name, *given, **options):
        """What each door answers."""
        yield getattr(cured, name)(*given, **options)
        yield getattr(self.client, name)(*given, **options)
        if "where" not in options or not {"axis", "keepdims"} & set(options):
            async def ask():
                async with cured.AsyncClient("embedded:") as client:
                    return await getattr(client, name)(*given, **options)
            yield asyncio.run(ask())

    def mask(self, options, shape):
        """Which elements count; where= among the options, perhaps."""
        if self.random.random() < 0.5:
            return np.ones(shape, bool).ravel()
        options["where"] = self.random.random(shape) < 0.7
        return options["where"].ravel()

    def same(self, want, got, what):
        self.assertEqual(len(want), np.size(got), what)
        for x, y in zip(want, np.ravel(got).tolist()):
            self.assertTrue(x == y or (x != x and y != y), "%r is not %r: %s" % (y, x, what))

    def rounded(self, fraction):
        try:
            return float(fraction)
        except OverflowError:
            return math.copysign(math.inf, fraction)

    def test_complex(self):
        for turn in range(220):
            kind = ("c8", "c16")[turn % 2]
            shape = SHAPE if turn % 3 else (23,)
            part = {"c8": "f4", "c16": "f8"}[kind]
            a, b = (np.ascontiguousarray(self.numbers(part, shape) + 1j * self.numbers(part, shape).astype("c16")).astype(kind) for _ in range(2))
            options, lead, places = placed(self.random, shape)
            keep = self.mask(options, shape)
            op = ("sum", "mean", "dot", "sumsq", "sqdist", "count_nonzero", "count", "average")[turn // 2 % 8]
            x, y, w = a.ravel(), b.ravel(), abs(self.numbers("f4", shape)) + np.float32(1)
            want = []
            for at in places:
                at = [k for k in at if keep[k]]
                p, q = ([(Fraction(z.real), Fraction(z.imag)) for z in m[at].tolist()] for m in (x, y))
                n, total = len(at), (lambda some: sum(some, Fraction(0)))
                if op in ("sum", "mean", "average", "dot"):
                    weights = [Fraction(v) for v in w.ravel()[at].tolist()] if op == "average" else [1] * n
                    pairs = [(u * s - v * t, u * t + v * s) for (u, v), (s, t) in zip(p, q)] if op == "dot" else [(u * k, v * k) for (u, v), k in zip(p, weights)]
                    by = 1 if op in ("sum", "dot") else total(weights)
                    want.append(complex(math.nan, math.nan) if by == 0 else complex(*(self.rounded(total(z[k] for z in pairs) / by) for k in (0, 1))))
                elif op in ("sumsq", "sqdist"):
                    some = p if op == "sumsq" else [(u - s, v - t) for (u, v), (s, t) in zip(p, q)]
                    want.append(self.rounded(total(u * u + v * v for u, v in some)))
                else:
                    want.append(n if op == "count" else sum(1 for z in p if z != (0, 0)))
            given = (self.lies(a),) + ((self.lies(b),) if op in ("dot", "sqdist") else ())
            for got in self.doors(op, *given, **options, **({"weights": w} if op == "average" else {})):
                self.same(want, got, (turn, op, kind, options))
                self.assertEqual(lead, np.shape(got))

    def test_weights_of_an_axis(self):
        for turn in range(200):
            kind, other = self.random.choice(REAL), self.random.choice(["f4", "f8", "i4", "u1"])
            a, axis = self.numbers(kind, SHAPE), [0, 1, 2, -1, (0, 2), (2, 1)][self.random.integers(6)]
            axes = tuple(k % 3 for k in (axis if isinstance(axis, tuple) else (axis,)))
            w = self.random.integers(1, 9, tuple(SHAPE[k] for k in axes)).astype(other)
            by_key = axis == 0 and turn % 2
            options = {"keys": self.random.integers(0, 2, SHAPE[0]), "groups": 2} if by_key else {"axis": axis}
            wide = np.broadcast_to(np.transpose(w, np.argsort(axes)).reshape([n if k in axes else 1 for k, n in enumerate(SHAPE)]), SHAPE).ravel()
            keep = self.mask(options, SHAPE)
            columns = np.arange(a.size).reshape(SHAPE[0], -1)
            places = [columns[options["keys"] == g, c] for g in range(2) for c in range(columns.shape[1])] if by_key else rows_of(a, axis)[1]
            want = []
            for at in places:
                at = [k for k in at if keep[k]]
                x, y = exactly(a.ravel()[at]), exactly(wide[at])
                want.append(self.rounded(sum(p * q for p, q in zip(x, y)) / sum(y)) if at else math.nan)
            for got in self.doors("average", self.lies(a), weights=w if turn % 3 else w.tolist(), **options):
                self.same(want, got, (turn, kind, other, options))

    def test_bins(self):
        for turn in range(150):
            kind = self.random.choice(["i1", "u1", "i4", "u8", "i8"])
            n = int(self.random.choice([0, 1, 7, 60]))
            x, weights = self.random.integers(0, 9, n).astype(kind), self.numbers(self.random.choice(REAL), n)
            least = int(self.random.integers(0, 12))
            groups = max(least, max(x.tolist(), default=-1) + 1)
            self.same([(x == g).sum() for g in range(groups)], cured.bincount(x, minlength=least, client=[None, self.client][turn % 2]), turn)
            sums = [sum(exactly(weights[x == g]), Fraction(0)) for g in range(groups)]
            self.same([self.rounded(s) if weights.dtype.kind == "f" else int(s) for s in sums], cured.bincount(x, weights, least), (turn, weights.dtype))

    def test_histograms(self):
        for turn in range(150):
            a = self.numbers(self.random.choice(["f4", "f8", "i4", "u2", "i8"]), (int(self.random.choice([1, 7, 60])),))
            edges = np.sort(self.numbers(self.random.choice(["f4", "f8", "i4"]), (5,)))
            keep, options = np.ones(a.size, bool), {}
            if turn % 2:
                keep = options["where"] = self.random.random(a.size) < 0.7
            x, e = exactly(a), exactly(edges)
            inside = [[k for k, v in enumerate(x) if keep[k] and (low <= v < high or v == high and i == 3)] for i, (low, high) in enumerate(zip(e, e[1:]))]
            weights = self.numbers("i4", a.shape)
            counts, mine = cured.histogram(a, edges, **options)
            self.assert_arrays(edges, mine)
            self.same([len(some) for some in inside], counts, (turn, a, edges))
            self.same([int(weights[some].astype("i8").sum()) for some in inside], cured.histogram(a, edges, weights=weights, **options)[0], turn)
            total = sum(map(len, inside))
            if total and all(low < high for low, high in zip(e, e[1:])):
                self.same([self.rounded(Fraction(len(some), total) / (high - low)) for some, low, high in zip(inside, e, e[1:])],
                          cured.histogram(a, edges, density=True, **options)[0], turn)


class Large(Case):
    """From 1 MiB on the pool folds. Elements are whole numbers over a power of two, so that sums of int64 are the truth, which is rounded here."""

    def draw(self, kind, n):
        dtype = np.dtype(kind)
        bits = {"f2": 10, "f4": 23, "f8": 42}.get(kind) or min(8 * dtype.itemsize - 1, 40)
        whole = self.random.integers(0 if dtype.kind == "u" else -(1 << bits), 1 << bits, n)
        scale = {"f2": 4, "f4": 12, "f8": 40}.get(kind, 0)
        made = np.ldexp(whole.astype("f8"), -scale).astype(kind) if scale else whole.astype(kind)
        self.assertTrue((np.ldexp(made.astype("f8"), scale) == whole).all())
        return made, whole, scale

    def setUp(self):
        self.random = np.random.default_rng(3312)
        self.doors = [cured, self.enterContext(cured.Client("embedded:", threads=3))]

    def places(self, n):
        cuts = np.sort(self.random.integers(0, n + 1, 40))
        keys = self.random.integers(0, 37, n).astype("u2")
        order = np.argsort(keys, kind="stable")
        ends = np.searchsorted(keys[order], np.arange(38))
        return (({"offsets": cuts}, [np.arange(i, j) for i, j in zip(cuts, cuts[1:])]), ({"keys": keys, "groups": 37}, [order[i:j] for i, j in zip(ends, ends[1:])]))

    def check(self, want, ask, what):
        for door in self.doors:
            got = ask(door)
            self.assertEqual(want, np.asarray(got).tolist(), what)

    def test_sums_and_extrema(self):
        for kind in ("f2", "f4", "f8", "i2", "u4", "i8"):
            n = (1 << 20) // np.dtype(kind).itemsize + 1001
            a, whole, scale = self.draw(kind, n)
            keep = self.random.random(n) < 0.8
            for (options, places), mask in itertools.product(self.places(n), (None, keep)):
                some = [at if mask is None else at[mask[at]] for at in places]
                more = options if mask is None else {**options, "where": mask}
                sums = [int(whole[at].sum()) for at in some]
                self.check([float(Fraction(s, 1 << scale)) for s in sums] if scale else sums, lambda d: d.sum(a, **more), (kind, list(more)))
                self.check([float(Fraction(s, at.size << scale)) if at.size else math.nan for s, at in zip(sums, some)], lambda d: d.mean(a, **more), (kind, list(more)))
                if all(at.size for at in some):
                    self.check([a[at].max().item() for at in some], lambda d: d.max(a, **more), (kind, list(more)))

    def test_quantiles(self):
        for kind in ("f4", "i4", "f8"):
            n = (1 << 20) // np.dtype(kind).itemsize + 777
            a, _, _ = self.draw(kind, n)
            keep = self.random.random(n) < 0.8
            for (options, places), mask in itertools.product(self.places(n), (None, keep)):
                more, want = options if mask is None else {**options, "where": mask}, []
                for at in places:
                    x = np.sort(a[at if mask is None else at[mask[at]]])
                    if x.size == 0:
                        want.append(math.nan)
                        continue
                    place = Fraction(3, 4) * (x.size - 1)
                    low = math.floor(place)
                    one, two = Fraction(x[low].item()), Fraction(x[min(low + 1, x.size - 1)].item())
                    want.append(float(one + (two - one) * (place - low)))
                want = [w if w == w else None for w in want]
                for door in self.doors:
                    got = door.quantile(a, 0.75, **more).tolist()
                    self.assertEqual(want, [g if g == g else None for g in got], (kind, list(more)))

    def test_pairs(self):
        for kind, other in (("f4", "f4"), ("f8", "f4"), ("i4", "i2"), ("f4", "i4")):
            n = (1 << 20) // np.dtype(kind).itemsize + 333
            (a, x, e), (b, y, f) = self.draw(kind, n), self.draw(other, n)
            if kind == "f8":  # so that products fit
                x, e = self.random.integers(-2**20, 2**20, n), 3
            x, y = np.clip(x, -2**20, 2**20), np.clip(y, -2**20, 2**20)
            a, b = np.ldexp(x.astype("f8"), -e).astype(kind), np.ldexp(y.astype("f8"), -f).astype(other)
            keep = self.random.random(n) < 0.8
            for (options, places), mask in itertools.product(self.places(n), (None, keep)):
                more = options if mask is None else {**options, "where": mask}
                sums = [int((x[at] * y[at]).sum()) for at in (p if mask is None else p[mask[p]] for p in places)]
                self.check([float(Fraction(s, 1 << (e + f))) for s in sums] if "f" in kind + other else sums, lambda d: d.dot(a, b, **more), (kind, other, list(more)))


if __name__ == "__main__":
    unittest.main()
