"""Every way of asking crossed with every other: {plain, masked array, where=, initial=} × axis × out= × keepdims × op × who answers, held
against NumPy where it has the op, and against exact fractions where it has not. What is refused is refused by a sentence."""
import fractions
import itertools
import math

import numpy as np
from support import Case, cured, unittest
from cured_daemon import DaemonTest  # noqa: I100: support finds it

RANDOM = np.random.default_rng(29)
# Small integers as floats: NumPy's sums and products of them are exact too.
A = RANDOM.integers(-3, 4, (3, 4, 2)).astype("f8")
KEEP = RANDOM.random(A.shape) < 0.7
KEEP[0, 0], KEEP[:, 1, :] = True, True  # something is kept along every axis
AXES = (None, 0, 1, -1, (0, 2), (-2, 0), (0, 1, 2))
OPS = ("sum", "mean", "var", "min", "max", "argmin", "argmax", "count", "any", "all", "prod", "norm2")
FIRST = {"sum": 7.0, "prod": -2.0, "min": -9.0, "max": 9.0}


def exact(op, x):
    """Of a slice's elements, by fractions."""
    x = [fractions.Fraction(v) for v in x]
    n, total, squares = len(x), sum(x), sum(v * v for v in x)
    if op == "mean":
        return float(total / n)
    if op == "var":
        return float((squares - total * total / n) / n)
    root = fractions.Fraction(math.isqrt(int(squares) << 200)) / 2**100  # of an integer; more digits than an f64 has
    return float(root)


def oracle(op, a, keep, axis, keepdims, initial):
    axes = tuple(range(a.ndim)) if axis is None else tuple(k % a.ndim for k in (axis if isinstance(axis, tuple) else (axis,)))
    kept = [k for k in range(a.ndim) if k not in axes]
    order = kept + sorted(axes)
    rows = a.transpose(order).reshape([a.shape[k] for k in kept] + [-1])
    keeps = keep.transpose(order).reshape(rows.shape)
    shape = [1 if k in axes else a.shape[k] for k in range(a.ndim)] if keepdims else [a.shape[k] for k in kept]
    masked = np.ma.masked_array(rows, mask=~keeps)
    first = {} if initial is None else {"initial": initial}
    if op in ("sum", "prod", "any", "all"):
        answer = getattr(np, op)(rows, axis=-1, where=keeps, **first)
    elif op in ("min", "max"):
        answer = getattr(np, op)(rows, axis=-1, where=keeps, initial=initial if initial is not None else math.inf if op == "min" else -math.inf)
    elif op in ("argmin", "argmax"):
        answer = getattr(masked, op)(axis=-1, fill_value=math.inf if op == "argmin" else -math.inf).astype("u8")
    elif op == "count":
        answer = masked.count(axis=-1)
        answer = np.asarray(answer, "u8")
    else:
        answer = np.array([exact(op, row[k]) for row, k in zip(rows.reshape(-1, rows.shape[-1]), keeps.reshape(-1, rows.shape[-1]))])
    return np.asarray(answer).reshape(shape)


def lacks(keep, axis):
    """Whether nothing counts in some slice."""
    return not keep.any(axis=axis).all()


def asked():
    """(name, array, options, which elements count, first value)."""
    every = np.ones(A.shape, "?")
    yield "plain", A, {}, every
    yield "Fortran", np.asfortranarray(A), {}, every
    yield "masked", np.ma.masked_array(A, mask=~KEEP), {}, KEEP
    yield "nomask", np.ma.masked_array(A), {}, every
    yield "where", A, {"where": KEEP}, KEEP
    yield "broadcast", A, {"where": KEEP[:1, :, :1]}, np.broadcast_to(KEEP[:1, :, :1], A.shape)


class Crossed(DaemonTest, Case):
    def clients(self):
        daemon, here = (self.enterContext(cured.Client(address)) for address in (self.daemon.address, "embedded:"))
        return ("here", cured), ("embedded", here), ("daemon", daemon)

    def equal(self, got, wanted, what):
        got = np.asarray(got)
        self.assertEqual(wanted.shape, got.shape, what)
        self.assertEqual(np.asarray(wanted, "f8").tobytes(), np.asarray(got + 0.0, "f8").tobytes(), what)

    def check(self, call, wanted, what):
        """The answers by themselves and in arrays of the caller's, right and wrong ones."""
        self.equal(call(), wanted + 0.0, what)
        dtype = np.asarray(call()).dtype
        for out in (np.empty(wanted.shape, dtype), np.empty(wanted.shape, dtype.newbyteorder()), np.empty(wanted.shape + (2,), dtype)[..., 0],
                    cured.empty(wanted.shape, dtype)):
            self.assertIs(out, call(out=out), what)
            self.equal(out, wanted + 0.0, what)
        for shape in (wanted.shape + (1,), (5,) + wanted.shape[1:]):
            if shape != wanted.shape:
                with self.assertRaisesRegex(ValueError, "output parameter for reduction operation .* (shape|dimensions)", msg=what):
                    call(out=np.empty(shape, dtype))
        if dtype != "?":
            with self.assertRaisesRegex(TypeError, "Cannot cast", msg=what):
                call(out=np.empty(wanted.shape, "?"))

    def test_one_op(self):
        cases = 0
        for (who, client), (name, a, options, keep) in itertools.product(self.clients(), asked()):
            for op, axis, keepdims, first in itertools.product(OPS, AXES, (False, True), (False, True)):
                more, initial = dict(options), FIRST.get(op)
                if first:
                    more["initial"] = initial if initial is not None else 1.0
                    if initial is None:
                        with self.assertRaisesRegex(TypeError, "initial: only sum, prod, min and max take it"):
                            getattr(client, op)(a, axis=axis, **more)
                        continue
                if lacks(keep, axis):
                    if op.startswith("arg"):
                        with self.assertRaisesRegex(ValueError, op + " of no elements"):
                            getattr(client, op)(a, axis=axis, **more)
                    continue
                wanted = oracle(op, A, keep, axis, keepdims, initial if first else None)
                what = "%s of %s axis %s keepdims %s %s by %s" % (op, name, axis, keepdims, more.keys(), who)
                cases += 1
                self.check(lambda **out: getattr(client, op)(a, axis=axis, keepdims=keepdims, **more, **out), wanted, what)
        self.assertGreater(cases, 3000)

    def test_several_ops(self):
        for (who, client), (name, a, options, keep) in itertools.product(self.clients(), asked()):
            for axis, keepdims in itertools.product(AXES, (False, True)):
                if lacks(keep, axis):
                    continue
                what = "%s axis %s keepdims %s by %s" % (name, axis, keepdims, who)
                wanted = {op: oracle(op, A, keep, axis, keepdims, None) for op in OPS}
                got = client.reduce(a, OPS, axis=axis, keepdims=keepdims, **options)
                outs = tuple(np.empty_like(np.asarray(got[op])) for op in OPS)
                stored = client.reduce(a, OPS, axis=axis, keepdims=keepdims, out=outs, **options)
                described = client.describe(a, axis=axis, keepdims=keepdims, **options)
                for op, out in zip(OPS, outs):
                    self.assertIs(out, stored[op])
                    for answer in (got[op], out) + ((described[op],) if op in described else ()):
                        self.equal(answer, wanted[op] + 0.0, op + " of " + what)
                with self.assertRaisesRegex(ValueError, "array for each of %d" % len(OPS)):
                    client.reduce(a, OPS, axis=axis, keepdims=keepdims, out=outs[1:], **options)
                with self.assertRaisesRegex(TypeError, "initial: only"):
                    client.reduce(a, OPS, axis=axis, initial=1.0, **options)

    def test_what_has_two_masks(self):
        """An element counts where neither leaves it out, whichever of the two broadcasts."""
        other = np.random.default_rng(5).random(A.shape) < 0.6
        masked, both = np.ma.masked_array(A, mask=~KEEP), KEEP & other
        for _, client in self.clients():
            for axis, op in ((None, "max"), (None, "argmin"), *itertools.product((None, 0, (0, 2)), ("sum", "mean", "count", "std", "median"))):
                for where in (other, np.asfortranarray(other), np.ma.masked_array(other | ~KEEP, ~KEEP & other)):
                    self.assert_arrays(getattr(client, op)(A, axis=axis, where=KEEP & np.ma.filled(where, False)), getattr(client, op)(masked, axis=axis, where=where))
            self.assertEqual(A[KEEP & (A[:1] > 0)].sum(), client.sum(masked, where=A[:1] > 0))
            self.assertEqual(0.0, client.sum(masked, where=False))
            self.assertEqual(cured.partial(A, "sum", where=both), client.partial(masked, "sum", where=other))
            self.assertEqual(cured.sum(A, where=both, initial=2.0), client.sum(masked, where=other, initial=2.0))
            keys = np.arange(len(A)) % 2
            self.assert_arrays(client.sum(A, keys=keys, where=both), client.sum(masked, keys=keys, where=other))
            self.assertEqual(A[KEEP].sum(), client.sum(np.ma.masked_array(A), where=KEEP))
            for where, error in ((KEEP[:, :-1], ValueError), (KEEP.astype("i4"), TypeError), (7, TypeError), ("no", TypeError)):
                with self.assertRaises(error) as plain:
                    client.sum(A, where=where)
                with self.assertRaises(error) as own:
                    client.sum(masked, where=where)
                self.assertEqual(str(plain.exception), str(own.exception))


if __name__ == "__main__":
    unittest.main()
