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
    unittest.main()
