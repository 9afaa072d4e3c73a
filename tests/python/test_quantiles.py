#!/usr/bin/env python3
"""Quantiles, ranges and NumPy's nan... names from Python: every type by every way in, along axes and under masks, with out= and
keepdims=, against the oracle; shapes as NumPy's; and what is refused."""
import asyncio
import os
import tempfile

from support import NUMPY, Case, cured, numpy as np, oracle, unittest
from cured_daemon import DaemonTest  # noqa: I100: support finds it

RANDOM = np.random.default_rng(7)
SHARES = [0.0, 0.1, 0.5, 1 / 3, 1.0]
METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


def array_of(dtype, shape):
    count = int(np.prod(shape))
    raw = RANDOM.bytes(count * oracle.SIZES[dtype])
    if dtype == "bool":
        raw = bytes(b & 1 for b in raw)
    a = np.frombuffer(raw, NUMPY[dtype]).reshape(shape).copy()
    if a.dtype.kind == "f":
        a[np.isnan(a)] = 1
        a.flat[::17] = np.nan
    return a


def wanted(dtype, elements, method="linear", nan="skip", shares=SHARES):
    bits = oracle.quantiles(dtype, np.ascontiguousarray(elements).tobytes(), [(q, method) for q in shares], nan)
    return np.array(bits, "u8").view("f8")


class Quantiles(DaemonTest, Case):
    def same(self, got, want):
        got, want = np.asarray(got, "f8"), np.asarray(want, "f8")
        self.assertEqual(want.shape, got.shape)
        self.assertEqual(want.tobytes(), got.tobytes())

    def doors(self, folder, a):
        path = os.path.join(folder, "a.npy")
        np.save(path, a)
        yield lambda *args, **options: cured.quantile(a, *args, **options)
        for threads in (1, 3):
            client = cured.Client("embedded:", threads=threads)
            yield lambda *args, **options: client.quantile(a, *args, **options)
        yield cured.file(path).quantile

        with cured.Client(self.daemon.address) as client:
            yield lambda *args, **options: client.quantile(a, *args, **options)
            yield lambda *args, **options: cured.file(path).quantile(*args, client=client, **options)
            shared = cured.empty(a.shape, a.dtype) if a.dtype.kind != "V" else None
            if shared is not None:
                np.asarray(shared)[...] = a
                yield lambda *args, **options: client.quantile(shared, *args, **options)

        def awaited(*args, **options):
            async def ask():
                async with cured.AsyncClient(address) as client:
                    return await client.quantile(a, *args, **options)
            return asyncio.run(ask())
        for address in ("embedded:", self.daemon.address):
            yield awaited

    def test_every_type_by_every_way(self):
        with tempfile.TemporaryDirectory() as folder:
            for k, dtype in enumerate(NUMPY):
                a, method = array_of(dtype, (6, 35)), METHODS[k % len(METHODS)]
                for door in self.doors(folder, a):
                    self.same(door(SHARES, method=method, nan="skip"), wanted(dtype, a, method))
                    self.same(door(0.3, nan="skip"), wanted(dtype, a, shares=[0.3])[0])
                    rows = np.stack([wanted(dtype, row, method) for row in a], 1)
                    self.same(door(SHARES, axis=1, method=method, nan="skip"), rows)
                    self.same(door(0.5, axis=0, nan="skip"), [wanted(dtype, column, shares=[0.5])[0] for column in a.T])

    def test_masks_outputs_and_views(self):
        for dtype in ("f32", "i16", "u64", "f64"):
            a = array_of(dtype, (7, 60))
            mask = RANDOM.random(a.shape) < 0.6
            self.same(cured.quantile(a, SHARES, where=mask, nan="skip"), wanted(dtype, a[mask]))
            want = np.stack([wanted(dtype, row[keep]) for row, keep in zip(a, mask)], 1)
            self.same(cured.quantile(a, SHARES, 1, where=mask, nan="skip"), want)
            self.same(cured.quantile(a[::2, ::-3], SHARES, nan="skip"), wanted(dtype, a[::2, ::-3]))
            with cured.Client(self.daemon.address) as client:
                self.same(client.quantile(a, SHARES, where=mask, nan="skip"), wanted(dtype, a[mask]))
                self.same(client.quantile(a, SHARES, 1, where=mask, nan="skip"), want)
                self.same(cured.nanpercentile(a[::2, ::-3], 25, 0, client=client), cured.nanpercentile(a[::2, ::-3], 25, 0))
                self.same(cured.nanmedian(a, client=client), cured.nanmedian(a))
            self.same(cured.median(a.T, axis=1, nan="skip"), [wanted(dtype, column, shares=[0.5])[0] for column in a.T])
            out = np.empty((len(SHARES), 7))
            self.assertIs(out, cured.quantile(a, SHARES, 1, nan="skip", out=out))
            self.same(out, np.stack([wanted(dtype, row) for row in a], 1))
            out = np.empty(7)
            self.assertIs(out, cured.nanmedian(a, 1, out))
            self.same(out, [wanted(dtype, row, shares=[0.5])[0] for row in a])

    def test_types_of_several_shares(self):
        """Answers to a list of shares are of the type asked for, and rounded once to that of out, as the answer to one is."""
        a, q = np.array([1, 1 + 2.0**-23], "f4"), 0.5 + 2.0**-53  # the answer lies a little above the middle of two f32
        for of, axis in ((a, None), (a.reshape(2, 1), 0)):
            for dtype in ("f2", "f4", "f8"):
                got = cured.quantile(of, [q], axis, dtype=dtype)
                self.assertEqual(dtype, got.dtype)
                self.assertEqual(cured.quantile(of, q, axis, dtype=dtype), got[0])
                out = np.zeros(got.shape, dtype)
                self.assertIs(out, cured.quantile(of, [q], axis, out=out))
                self.assertEqual(got.tobytes(), out.tobytes(), dtype)
        self.assertEqual(np.float32(1 + 2.0**-23), cured.quantile(a, [q], dtype="f4")[0])
        for q in (np.float32(0.5), np.array(0.5), np.int64(1)):  # no numbers of Python
            out = np.zeros(())
            self.assertIs(out, cured.quantile(a, q, out=out))
            self.assertEqual(cured.quantile(a, float(q)), out)

    def test_shapes_are_numpys(self):
        a = RANDOM.standard_normal((4, 5, 6))
        for q in (0.3, [0.3], [[0.1, 0.2, 0.5]], [], np.zeros((2, 0)), np.linspace(0, 1, 70)):
            for axis in (None, 0, -1, (0, 2)):
                for keepdims in (False, True):
                    want = np.quantile(a, q, axis=axis, keepdims=keepdims)
                    got = cured.quantile(a, q, axis=axis, keepdims=keepdims)
                    self.assertEqual(np.shape(want), np.shape(got))
                    self.assertTrue(np.allclose(want, got, rtol=1e-11, atol=1e-12))
                    self.same(cured.percentile(a, np.multiply(q, 100), axis, keepdims=keepdims),
                              cured.quantile(a, np.multiply(q, 100) / 100, axis, keepdims=keepdims))
        self.assertEqual((2, 0), cured.quantile(a[:, :, :0], [0.1, 0.2], axis=(0, 1)).shape)
        self.assertTrue(np.isnan(cured.median(a[:0])) and np.isnan(cured.quantile(a[:0], [0.5])).all())

    def test_numpys_names(self):
        a = array_of("f64", (9, 11))
        a[np.abs(a) > 1e3] = 2.5
        for name in ("nansum", "nanmean", "nanmin", "nanmax", "nanargmin", "nanargmax", "nanvar", "nanstd", "nanprod", "nanmedian"):
            for axis in (None, 0, 1):
                got, want = getattr(cured, name)(a, axis), getattr(np, name)(a, axis)
                self.assertEqual(np.shape(want), np.shape(got), name)
                self.assertTrue(np.allclose(want, got, rtol=1e-12), name)
        self.same(cured.nanquantile(a, SHARES, 0), cured.quantile(a, SHARES, 0, nan="skip"))
        self.same(cured.nanpercentile(a, 50), cured.nanmedian(a))
        self.assertEqual((cured.min(a, nan="skip"), cured.max(a, nan="skip")), cured.minmax(a, nan="skip"))
        self.assertEqual(cured.max(a, nan="skip") - cured.min(a, nan="skip"), cured.ptp(a, nan="skip"))
        self.assertEqual(255, cured.ptp(np.array([-128, 127], "i1")))
        self.assertEqual(2**64 - 1, cured.ptp(np.array([-2**63, 2**63 - 1])))

    def test_what_is_refused(self):
        a = np.arange(10.0)
        for error, words, call in (
                (ValueError, "range", lambda: cured.quantile(a, 1.5)), (ValueError, "range", lambda: cured.quantile(a, [0.5, np.nan])),
                (TypeError, "q is missing", lambda: cured.quantile(a)), (ValueError, "method", lambda: cured.quantile(a, 0.5, method="hazen")),
                (TypeError, "method: a name is wanted", lambda: cured.quantile(a, 0.5, method=None)),
                (TypeError, "method", lambda: cured.median(a, method="lower")), (ValueError, "range", lambda: cured.percentile(a, 101)),
                (ValueError, "partial", lambda: cured.partial(a, "median")),
                (TypeError, "overwrite_input", lambda: cured.percentile(a, 5, interpolation="lower"))):
            with self.assertRaisesRegex(error, words):
                call()


if __name__ == "__main__":
    unittest.main()
