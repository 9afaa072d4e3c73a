#!/usr/bin/env python3
"""gpu_tensors: CUDA tensors of torch and CuPy, reduced where they lie by a daemon with a CUDA lane. Needs a GPU and one of the two.

Answers must be those of the same elements on the host, bit for bit. A region is kept while its tensor is referenced, and no longer.
"""
import gc
import os
import sys
import tempfile
import unittest

from support import Case, cured
import numpy
import reasons
from cured_daemon import Daemon, wait_for


def torch_makers():
    try:
        import torch
    except ImportError:
        return {}
    if not torch.cuda.is_available():
        return {}
    return {"torch": lambda a: torch.from_numpy(a).cuda()}


def cupy_makers():
    try:
        import cupy
        cupy.cuda.runtime.getDeviceCount()
    except Exception:
        return {}
    return {"cupy": cupy.asarray}


def on_host(t):
    return t.get() if hasattr(t, "get") else t.cpu().numpy()


MAKERS = dict(torch_makers(), **cupy_makers())


class Tensors(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.daemon = Daemon(cls.folder.name)
        cls.addClassCleanup(cls.daemon.stop)
        os.environ["CURED_CONNECT"] = cls.daemon.address

    def regions(self):
        return self.daemon.counters()["device_regions"]

    def each(self):
        for name, make in MAKERS.items():
            with self.subTest(name):
                yield make

    def test_same_bits_as_on_the_host(self):
        r = numpy.random.default_rng(1)
        for make in self.each():
            for dtype in ("f2", "f4", "f8", "i4", "i8", "u1", "?"):
                a = (r.standard_normal((300, 500)) * 50).astype(dtype)
                t = make(a)
                for op in ("sum", "mean", "std", "min", "argmax", "count_nonzero"):
                    self.assert_same(getattr(cured, op)(t), getattr(cured, op)(a), "%s %s" % (op, dtype))
                for axis in (0, 1):
                    self.assert_arrays(cured.sum(t, axis=axis), cured.sum(a, axis=axis))
                self.assert_same(cured.sum(t[7:9]), cured.sum(a[7:9]))
                self.assert_same(cured.sum(t.T), cured.sum(a))

    def test_bfloat16(self):
        if "torch" not in MAKERS:
            self.skipTest("there is no torch")
        import torch
        t = torch.arange(1000, dtype=torch.bfloat16)
        self.assert_same(cured.sum(t.cuda()), cured.sum(t))
        self.assert_same(cured.argmax(t.cuda()), cured.argmax(t))

    def test_regions_live_as_long_as_their_tensors(self):
        for make in self.each():
            before = self.regions()
            tensors = [make(numpy.ones(100_000, "f4")) for _ in range(4)]
            for _ in range(3):
                self.assertEqual([100_000.0] * 4, [cured.sum(t) for t in tensors])
            self.assertEqual(before + 4, self.regions())
            tensors.clear()
            gc.collect()
            wait_for("the regions to go", lambda: self.regions() == before)

    def test_what_its_stream_has_queued_is_there(self):
        if "torch" not in MAKERS:
            self.skipTest("there is no torch")
        import torch
        stream = torch.cuda.Stream()
        t = torch.zeros(20_000_000, device="cuda")
        for k in range(1, 20):
            with torch.cuda.stream(stream):
                t.add_(1)
                t.mul_(1)
                self.assertEqual(20_000_000.0 * k, cured.sum(t))

    def test_gaps(self):
        for make in self.each():
            with self.assertRaisesRegex(ValueError, "contiguous"):
                cured.sum(make(numpy.zeros((10, 10), "f4"))[:, ::2])

    def same(self, t, a, ops, out, axis=1, **options):
        """The answers in out are those of the array, rounded to the types of out."""
        wanted = cured.reduce(a, ops, axis=axis, **options)
        got = cured.reduce(t, ops, axis=axis, out=out, **options)
        for op, each in zip(ops, out):
            self.assertIs(got[op], each)
            self.assert_arrays(on_host(each), wanted[op].astype(on_host(each).dtype), op)

    def test_answers_into_tensors(self):
        """By the GPU, of which the daemon then knows a region for each."""
        r = numpy.random.default_rng(3)
        for make in self.each():
            for dtype in ("f2", "f4", "f8", "i4", "u1"):
                a = (r.standard_normal((3000, 40)) * 50).astype(dtype)
                t, ops = make(a), ["mean", "max", "argmin", "sum", "std"]
                like = cured.reduce(a, ops, axis=1)
                out = tuple(make(numpy.zeros_like(like[op])) for op in ops)
                gc.collect()
                wait_for("the regions of other tensors to go", lambda: self.regions() == 0)
                for _ in range(2):
                    self.same(t, a, ops, out)
                self.assertEqual(1 + len(ops), self.regions())
                self.same(t, a, ["max"], (make(numpy.zeros(40, dtype)),), axis=0)
                self.same(t, a, ["max"], (make(numpy.zeros((3000, 1), dtype)),), keepdims=True)
            a = r.standard_normal((100_000, 32)).astype("f4")
            t, out = make(a), make(numpy.zeros(100_000, "f4"))
            self.assertIs(cured.sum(t, axis=1, out=out), out)
            self.assert_arrays(on_host(out), cured.sum(a, axis=1, dtype="f4"), "rounded once")

    def test_answers_into_bfloat16(self):
        if "torch" not in MAKERS:
            self.skipTest("there is no torch")
        import torch
        t = torch.randn(500, 30, dtype=torch.bfloat16)
        out = torch.zeros(500, dtype=torch.bfloat16, device="cuda")
        self.assertIs(cured.sum(t.cuda(), axis=1, out=out), out)
        self.assert_arrays(out.float().cpu().numpy(), cured.sum(t, axis=1, dtype="bf16"))
        cured.max(t.cuda(), axis=1, out=out)
        self.assert_arrays(out.float().cpu().numpy(), cured.max(t, axis=1))

    def test_answers_that_are_copied(self):
        """Where order, type or memory do not let the GPU write them in place."""
        a = numpy.arange(12.0).reshape(3, 4)
        for make in self.each():
            t, wanted = make(a), cured.sum(a, axis=1)
            for out in (make(numpy.zeros((3, 2)))[:, 1], make(numpy.zeros(3, "f4")), make(numpy.zeros(3, "i8"))):
                if "int" in str(out.dtype):
                    with self.assertRaisesRegex(TypeError, "Cannot cast"):
                        cured.sum(t, axis=1, out=out)
                    continue
                self.assertIs(cured.sum(t, axis=1, out=out), out)
                self.assert_arrays(on_host(out), wanted.astype(on_host(out).dtype))
            out = make(numpy.zeros(3))
            self.assert_arrays(on_host(cured.sum(a, axis=1, out=out)), wanted)  # input of the host
            self.assert_arrays(cured.sum(t, axis=1, out=numpy.zeros(3)), wanted)  # an array of the host
            self.assertEqual(66, on_host(cured.sum(t, out=make(numpy.zeros(())))))
            own = make(a)
            cured.sum(own, axis=0, out=own[0])  # the input's own bytes
            self.assert_arrays(on_host(own)[0], cured.sum(a, axis=0))
            both = make(numpy.zeros(3))
            cured.reduce(t, "min,max", axis=1, out=(both, both))
            self.assert_arrays(on_host(both), a.max(1))
            cured.sum(t[:, :0], axis=1, out=out)
            self.assert_arrays(on_host(out), numpy.zeros(3))
            for wrong, words in ((make(numpy.zeros(4)), "has the shape"), (make(numpy.zeros((3, 1))), "number of dimensions")):
                with self.assertRaisesRegex(ValueError, words):
                    cured.sum(t, axis=1, out=wrong)
            with self.assertRaises(OverflowError):
                cured.sum(make(numpy.full((2, 2), 2**63 - 1)), axis=1, out=make(numpy.zeros(2, "i8")))

    def test_what_streams_do_with_out(self):
        """What is queued on it before is over when the GPU writes, and what follows sees the answers."""
        if "torch" not in MAKERS:
            self.skipTest("there is no torch")
        import torch
        stream = torch.cuda.Stream()
        t, out = torch.ones(2_000_000, 4, device="cuda"), torch.empty(2_000_000, device="cuda")
        for k in range(1, 20):
            with torch.cuda.stream(stream):
                t.fill_(k)
                for _ in range(10):
                    out.fill_(-1)
                cured.sum(t, axis=1, out=out)
            self.assertEqual(8_000_000.0 * k, out.double().sum().item())

    def test_asynchronous(self):
        import asyncio
        a = numpy.random.default_rng(2).standard_normal(100_000).astype("f4")

        async def main(t):
            async with cured.AsyncClient() as c:
                return await asyncio.gather(c.sum(t), c.max(t))

        for make in self.each():
            self.assertEqual([cured.sum(a), cured.max(a)], asyncio.run(main(make(a))))


if __name__ == "__main__":
    if not MAKERS:
        print("skipped: there is no GPU with torch or CuPy here")
        sys.exit(77)
    reasons.main()
