#!/usr/bin/env python3
"""gpu_tensors: CUDA tensors of torch and CuPy, reduced where they lie: in this process, and by a daemon with a CUDA lane. Needs a GPU and
one of the two libraries; in this process libcured-cuda.so.0 besides, which CURED_CUDA_LIBRARY names.

Answers must be those of the same elements on the host, bit for bit. A daemon's region is kept while its tensor is referenced, and no longer.
"""
import gc
import itertools
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


def setUpModule():
    global daemon, client
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    daemon = Daemon(folder.name)
    unittest.addModuleCleanup(daemon.stop)
    os.environ["CURED_CONNECT"] = daemon.address
    client = cured.Client(daemon.address)
    unittest.addModuleCleanup(client.close)


class Either(Case):
    """What both ways of answering have."""

    def each(self):
        for name, make in MAKERS.items():
            with self.subTest(name):
                yield make

    def ways(self):
        """(cured or a client, make)."""
        for make in self.each():
            for by in (cured, client):
                with self.subTest(by=by):
                    yield by, make

    def torch(self):
        if "torch" not in MAKERS:
            self.skipTest("there is no torch")
        import torch
        return torch


class Tensors(Either):
    def regions(self):
        return daemon.counters()["device_regions"]

    def test_same_bits_as_on_the_host(self):
        r = numpy.random.default_rng(1)
        for by, make in self.ways():
            for dtype in ("f2", "f4", "f8", "i4", "i8", "u1", "?"):
                a = (r.standard_normal((300, 500)) * 50).astype(dtype)
                t = make(a)
                for op in ("sum", "mean", "std", "min", "argmax", "count_nonzero"):
                    self.assert_same(getattr(by, op)(t), getattr(cured, op)(a), "%s %s" % (op, dtype))
                for axis in (0, 1):
                    self.assert_arrays(by.sum(t, axis=axis), cured.sum(a, axis=axis))
                self.assert_same(by.sum(t[7:9]), cured.sum(a[7:9]))
                self.assert_same(by.sum(t.T), cured.sum(a))
                self.assert_same(by.sum([t, t[3:5], t.T]), cured.sum([a, a[3:5], a]))

    def test_digests(self):
        """Of rows, columns and segments, long and short, and of blocks of a larger tensor."""
        r = numpy.random.default_rng(2)
        for make in self.each():
            for dtype in ("f2", "f4", "f8", "i4", "i8", "u1", "?"):
                for shape in ((300, 501), (7, 70001), (5000, 3), (1, 300_001)):
                    a = (r.standard_normal(shape) * 50).astype(dtype)
                    t = make(a)
                    for axis in (0, 1):
                        want = cured.digest(a, axis=axis).tobytes()
                        self.assertEqual([want] * 2, [by.digest(t, axis=axis).tobytes() for by in (cured, client)], (dtype, shape, axis))
                    place = {"shape": (shape[0] + 3, shape[1] + 5), "start": (1, 5)}
                    self.assertEqual(bytes(cured.partial(a, "digest,argmax", **place)), bytes(cured.partial(t, "digest,argmax", **place)), (dtype, shape))
                flat = a.reshape(-1)
                borders = numpy.sort(r.integers(0, len(flat), 2000))
                self.assertEqual(cured.digest(flat, offsets=borders).tobytes(), cured.digest(make(flat), offsets=borders).tobytes(), dtype)
                borders = numpy.unique(borders)  # max of no elements has no value, which is told otherwise
                self.assertEqual(repr(cured.reduce(flat, "digest,max", offsets=borders)), repr(cured.reduce(make(flat), "digest,max", offsets=borders)), dtype)

    def test_bfloat16(self):
        torch = self.torch()
        t = torch.arange(1000, dtype=torch.bfloat16)
        for by in (cured, client):
            self.assert_same(by.sum(t.cuda()), cured.sum(t))
            self.assert_same(by.argmax(t.cuda()), cured.argmax(t))

    def test_float8(self):
        torch = self.torch()
        for kind in (torch.float8_e4m3fn, torch.float8_e5m2):
            t = (torch.randn(300, 70) * 20).to(kind)
            for by in (cured, client):
                for op in ("sum", "norm2", "std", "max", "argmin", "count_nan", "count_inf", "digest"):
                    one = getattr(by, op)
                    self.assert_same(one(t.cuda()), getattr(cured, op)(t), "%s %s" % (op, kind))
                for axis in (0, 1):
                    for op in ("mean", "min", "argmax", "norm1"):
                        self.assert_arrays(getattr(by, op)(t.cuda(), axis=axis), getattr(cured, op)(t, axis=axis), "%s %s" % (op, kind))
                self.assert_same(by.sum([t.cuda(), t[3:9].cuda(), t[:1].cuda()]), cured.sum([t, t[3:9], t[:1]]))
            out = torch.zeros(300, dtype=torch.float32, device="cuda")
            self.assertIs(cured.sum(t.cuda(), axis=1, out=out), out)
            self.assert_arrays(out.cpu().numpy(), cured.sum(t, axis=1, dtype="f4"))
            out = torch.zeros(300, dtype=kind, device="cuda")
            self.assertIs(cured.max(t.cuda(), axis=1, out=out), out)
            self.assert_arrays(out.float().cpu().numpy(), cured.max(t, axis=1))
            whole = torch.zeros((), dtype=torch.float64, device="cuda")
            self.assertIs(cured.norm2(t.cuda(), out=whole), whole)
            self.assertEqual(whole.item(), cured.norm2(t))
            from cured import torch as of_models
            stats = of_models.stats({"a": t.cuda(), "b": t[:7].cuda()})
            self.assertEqual([cured.max(t), cured.max(t[:7])], [stats["a"].max, stats["b"].max])
            self.assertEqual(cured.digest(t), of_models.digest(t.cuda()))

    def test_regions_live_as_long_as_their_tensors(self):
        for make in self.each():
            gc.collect()
            wait_for("the regions of other tensors to go", lambda: self.regions() == 0)
            before = self.regions()
            tensors = [make(numpy.ones(100_000, "f4")) for _ in range(4)]
            self.assertEqual([100_000.0] * 4, [cured.sum(t) for t in tensors])
            self.assertEqual(before, self.regions(), "in this process there are none")
            for _ in range(3):
                self.assertEqual([100_000.0] * 4, [client.sum(t) for t in tensors])
            self.assertEqual(before + 4, self.regions())
            tensors.clear()
            gc.collect()
            wait_for("the regions to go", lambda: self.regions() == before)

    def test_what_its_stream_has_queued_is_there(self):
        torch = self.torch()
        stream = torch.cuda.Stream()
        for by in (cured, client):
            t = torch.zeros(20_000_000, device="cuda")
            stream.wait_stream(torch.cuda.current_stream())
            for k in range(1, 20):
                with torch.cuda.stream(stream):
                    t.add_(1)
                    t.mul_(1)
                    self.assertEqual(20_000_000.0 * k, by.sum(t))
            stream.synchronize()

    def test_gaps(self):
        for by, make in self.ways():
            with self.assertRaisesRegex(ValueError, "contiguous"):
                by.sum(make(numpy.zeros((10, 10), "f4"))[:, ::2])

    def same(self, by, t, a, ops, out, axis=1, **options):
        """The answers in out are those of the array, rounded to the types of out."""
        wanted = cured.reduce(a, ops, axis=axis, **options)
        got = by.reduce(t, ops, axis=axis, out=out, **options)
        for op, each in zip(ops, out):
            self.assertIs(got[op], each)
            self.assert_arrays(on_host(each), wanted[op].astype(on_host(each).dtype), op)

    def test_answers_into_tensors(self):
        """By the GPU, of which a daemon then knows a region for each."""
        r = numpy.random.default_rng(3)
        for by, make in self.ways():
            for dtype in ("f2", "f4", "f8", "i4", "u1"):
                a = (r.standard_normal((3000, 40)) * 50).astype(dtype)
                t, ops = make(a), ["mean", "max", "argmin", "sum", "std"]
                like = cured.reduce(a, ops, axis=1)
                out = tuple(make(numpy.zeros_like(like[op])) for op in ops)
                gc.collect()
                wait_for("the regions of other tensors to go", lambda: self.regions() == 0)
                for _ in range(2):
                    self.same(by, t, a, ops, out)
                self.assertEqual(1 + len(ops) if by is client else 0, self.regions())
                self.same(by, t, a, ["max"], (make(numpy.zeros(40, dtype)),), axis=0)
                self.same(by, t, a, ["max"], (make(numpy.zeros((3000, 1), dtype)),), keepdims=True)
            a = r.standard_normal((100_000, 32)).astype("f4")
            t, out = make(a), make(numpy.zeros(100_000, "f4"))
            self.assertIs(by.sum(t, axis=1, out=out), out)
            self.assert_arrays(on_host(out), cured.sum(a, axis=1, dtype="f4"), "rounded once")

    def test_answers_into_bfloat16(self):
        torch = self.torch()
        t = torch.randn(500, 30, dtype=torch.bfloat16)
        out = torch.zeros(500, dtype=torch.bfloat16, device="cuda")
        for by in (cured, client):
            self.assertIs(by.sum(t.cuda(), axis=1, out=out), out)
            self.assert_arrays(out.float().cpu().numpy(), cured.sum(t, axis=1, dtype="bf16"))
            by.max(t.cuda(), axis=1, out=out)
            self.assert_arrays(out.float().cpu().numpy(), cured.max(t, axis=1))

    def test_answers_that_are_copied(self):
        """Where order, type or memory do not let the GPU write them in place."""
        a = numpy.arange(12.0).reshape(3, 4)
        for by, make in self.ways():
            t, wanted = make(a), cured.sum(a, axis=1)
            for out in (make(numpy.zeros((3, 2)))[:, 1], make(numpy.zeros(3, "f4")), make(numpy.zeros(3, "i8"))):
                if "int" in str(out.dtype):
                    with self.assertRaisesRegex(TypeError, "Cannot cast"):
                        by.sum(t, axis=1, out=out)
                    continue
                self.assertIs(by.sum(t, axis=1, out=out), out)
                self.assert_arrays(on_host(out), wanted.astype(on_host(out).dtype))
            out = make(numpy.zeros(3))
            self.assert_arrays(on_host(by.sum(a, axis=1, out=out)), wanted)  # input of the host
            self.assert_arrays(by.sum(t, axis=1, out=numpy.zeros(3)), wanted)  # an array of the host
            self.assertEqual(66, on_host(by.sum(t, out=make(numpy.zeros(())))))
            own = make(a)
            by.sum(own, axis=0, out=own[0])  # the input's own bytes
            self.assert_arrays(on_host(own)[0], cured.sum(a, axis=0))
            both = make(numpy.zeros(3))
            by.reduce(t, "min,max", axis=1, out=(both, both))
            self.assert_arrays(on_host(both), a.max(1))
            by.sum(t[:, :0], axis=1, out=out)
            self.assert_arrays(on_host(out), numpy.zeros(3))
            for wrong, words in ((make(numpy.zeros(4)), "has the shape"), (make(numpy.zeros((3, 1))), "number of dimensions")):
                with self.assertRaisesRegex(ValueError, words):
                    by.sum(t, axis=1, out=wrong)
            with self.assertRaises(OverflowError):
                by.sum(make(numpy.full((2, 2), 2**63 - 1)), axis=1, out=make(numpy.zeros(2, "i8")))

    def test_what_streams_do_with_out(self):
        """What is queued on it before is over when the GPU writes, and what follows sees the answers."""
        torch = self.torch()
        stream = torch.cuda.Stream()
        t, out = torch.ones(2_000_000, 4, device="cuda"), torch.empty(2_000_000, device="cuda")
        torch.cuda.synchronize()
        for by in (cured, client):
            for k in range(1, 20):
                with torch.cuda.stream(stream):
                    t.fill_(k)
                    for _ in range(10):
                        out.fill_(-1)
                    by.sum(t, axis=1, out=out)
                    self.assertEqual(8_000_000.0 * k, out.double().sum().item())

    def test_asynchronous(self):
        import asyncio
        a = numpy.random.default_rng(2).standard_normal(100_000).astype("f4")

        async def main(t):
            async with cured.AsyncClient(daemon.address) as c:
                return await asyncio.gather(c.sum(t), c.max(t))

        for make in self.each():
            self.assertEqual([cured.sum(a), cured.max(a)], asyncio.run(main(make(a))))


class Here(Either):
    """In this process, with torch: its streams, graphs and allocator."""

    def test_other_streams_are_no_matter(self):
        """A call neither waits for other streams nor reads their work: a long kernel on one of them does not delay it."""
        torch = self.torch()
        busy, t = torch.cuda.Stream(), torch.ones(1000, device="cuda")
        self.assertEqual(1000.0, cured.sum(t))
        torch.cuda.synchronize()
        with torch.cuda.stream(busy):
            torch.cuda._sleep(2_000_000_000)
            done = torch.cuda.Event()
            done.record()
        self.assertEqual(1000.0, cured.sum(t))
        self.assertFalse(done.query(), "it waited for the other stream")
        torch.cuda.synchronize()

    def test_out_waits_for_nothing(self):
        torch = self.torch()
        stream = torch.cuda.Stream()
        t, out = torch.ones(100_000, device="cuda"), torch.zeros((), device="cuda", dtype=torch.float64)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            cured.sum(t, out=out)
            stream.synchronize()
            torch.cuda._sleep(2_000_000_000)
            t.fill_(3)
            cured.sum(t, out=out)
            t.fill_(5)
            self.assertFalse(stream.query(), "the host waited")
            self.assertEqual(300_000.0, out.item())

    def test_captured(self):
        """The graph is replayed beside calls of its stream, and of another."""
        torch = self.torch()
        t, out = torch.zeros(300_000, device="cuda"), torch.zeros((), device="cuda", dtype=torch.float64)
        rows = torch.zeros(3000, device="cuda")
        cured.sum(t, out=out)
        graph, other = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            t.add_(1)
            cured.sum(t, out=out)
            cured.sum(t.view(3000, 100), axis=1, out=rows)
        elsewhere = torch.full((300_000,), 0.5, device="cuda")
        other.wait_stream(torch.cuda.current_stream())
        start = t[0].item()
        for k in range(1, 20):
            graph.replay()
            with torch.cuda.stream(other):
                self.assertEqual(150_000.0, cured.sum(elsewhere))
            self.assertEqual(300_000.0 * (start + k), cured.sum(t))
            self.assertEqual(300_000.0 * (start + k), out.item())
            self.assertEqual(100.0 * (start + k), rows[7].item())

    def test_what_a_capture_refuses(self):
        torch = self.torch()
        t = torch.ones(1000, device="cuda")
        cured.sum(t)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            u = t * 2
            with self.assertRaisesRegex(cured.Error, "captured"):
                cured.sum(t)
        graph.replay()
        self.assertEqual(2000.0, cured.sum(u))

    def test_lists(self):
        torch = self.torch()
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            flat = torch.randn(300 * 700, device="cuda").to(dtype)
            parts, at = [], 0
            for k in range(300):
                parts.append(flat[at:at + 400 + 2 * k])
                at += 400 + 2 * k
            whole = flat[:at]
            for op in ("norm2", "sum", "mean", "max", "std", "argmax"):
                self.assert_same(getattr(cured, op)(whole), getattr(cured, op)(parts), op)
                self.assert_same(getattr(cured, op)(whole.cpu()), getattr(cured, op)(parts), op)
            each = cured.reduce_each(parts, "norm2,min")
            self.assertEqual([dict(cured.reduce(part.cpu(), "norm2,min")) for part in parts], [dict(r) for r in each])

    def test_pairs(self):
        r = numpy.random.default_rng(5)
        for make in self.each():
            for dtype in ("f2", "f4", "f8"):
                a, b = (abs(r.standard_normal(70_001)).astype(dtype) for _ in range(2))
                s, t = make(a), make(b)
                for op in ("dot", "sqdist"):
                    for k in (slice(None), slice(3, 5000), slice(0, 0)):
                        self.assert_same(getattr(cured, op)(s[k], t[k]), getattr(cured, op)(a[k], b[k]), "%s %s" % (op, dtype))
                self.assert_same(cured.average(s, weights=t), cured.average(a, weights=b), dtype)
                out = make(numpy.zeros(()))
                self.assertIs(cured.dot(s, t, out=out), out)
                self.assertEqual(cured.dot(a, b), on_host(out))
                with self.assertRaisesRegex(TypeError, "reduced in this process"):
                    client.dot(s, t)

    def test_arrow_columns(self):
        """Behind the event of their producer, whose stream the legacy one does not wait for; with nulls, at any bit."""
        torch = self.torch()
        from arrow_producer import Node, OfArray, OfDevice, OfDevices

        class There(Node):
            def array(self):
                array = super().array()
                if not hasattr(self, "there"):
                    self.there = [None if buffer is None else torch.from_numpy(buffer.copy()).cuda() for buffer in self.buffers]
                for i, tensor in enumerate(self.there):
                    array.addresses[i] = None if tensor is None else tensor.data_ptr()
                return array
        r = numpy.random.default_rng(8)
        plain, under = "sum,mean,min,argmax,count,std,digest,median", "sum,mean,norm1,min,max,argmin,argmax,count,count_nonzero"
        for dtype in ("f2", "f4", "f8", "i4", "i8", "u1"):
            a, mask = (r.standard_normal(30_000) * 50).astype(dtype), r.random(30_000) < 0.3
            for missing, ops, offset in ((None, plain, 0), (None, plain, 7), (mask, under, 0), (mask, under, 13)):
                wanted, got = (cured.reduce(x, ops) for x in (OfArray(Node(a, missing, offset)), OfDevice(There(a, missing, offset), 2)))
                for op in ops.split(","):
                    self.assert_same(wanted[op], got[op], (op, dtype, offset))
                self.assert_same(cured.sum(OfArray(Node(a, missing))), cured.sum(OfDevices([There(a[:999], None if missing is None else missing[:999]),
                                                                                           There(a[999:], None if missing is None else missing[999:])])))
        true, side, event = torch.arange(1_000_000, device="cuda", dtype=torch.float64), torch.cuda.Stream(), torch.cuda.Event()
        node = There(numpy.zeros(1_000_000))
        node.array()
        self.assertEqual(0.0, cured.sum(OfDevice(node, 2)))
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(500_000_000)
            node.there[1].copy_(true)
            event.record()
        self.assertEqual(499_999_500_000.0, cured.sum(OfDevice(node, 2, event.cuda_event)))
        torch.cuda.synchronize()

    def test_by_key(self):
        r = numpy.random.default_rng(6)
        floats, ints = "sum,mean,norm1,norm2,var,std,min,max,norminf,count_nonzero", "sum,mean,norm1,min,max,norminf,count"
        for make in self.each():
            for (dtype, ops), groups in itertools.product((("f2", floats), ("f4", floats), ("f8", floats), ("i4", ints)), (3, 700)):
                a = (r.standard_normal((30_000, 2)) * 50).astype(dtype)
                k = r.integers(0, groups, len(a)).astype("i4" if groups == 3 else "i8")
                k[:groups] = numpy.arange(groups)
                for values in (a, a[:, 0].copy()):
                    wanted, got = (cured.reduce(each, ops, keys=keys, groups=groups) for each, keys in ((values, k), (make(values), make(k))))
                    for op in ops.split(","):
                        self.assert_arrays(got[op], wanted[op], "%s %s %d" % (op, dtype, groups))
                    for keep in (None, values > 0):
                        wanted, got = (cured.partial(each, ops, keys=keys, **({} if keep is None else {"where": where}))
                                       for each, keys, where in ((values, k, keep), (make(values), make(k), None if keep is None else make(keep))))
                        self.assertEqual(bytes(wanted), bytes(got), "partial of %s by %d keys" % (dtype, groups))
                    self.assertEqual(cured.partial(values, ops, where=keep), cured.partial(make(values), ops, where=make(keep)), dtype)
                    half = len(k) // 2
                    parts = cured.partial(make(values[:half]), ops, keys=make(k[:half]), groups=groups), cured.partial(values[half:], ops, keys=k[half:], groups=groups)
                    self.assertEqual(cured.partial(values, ops, keys=k, groups=groups), cured.merge(parts), dtype)
                k[7] = groups
                with self.assertRaisesRegex(ValueError, "keys"):
                    cured.sum(make(a), keys=make(k), groups=groups)
                wanted = cured.sum(a, keys=k, groups=groups, drop=True)
                if dtype != "i4":  # nobody waits to be told of the key outside, whose row is for no group
                    out = make(numpy.zeros(wanted.shape))
                    self.assertIs(cured.sum(make(a), keys=make(k), groups=groups, out=out), out)
                    self.assert_arrays(on_host(out), wanted)

    def test_norms_and_stats(self):
        torch = self.torch()
        import cured.torch
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(300, 200), torch.nn.LayerNorm(200), torch.nn.Linear(200, 7))
        twin = torch.nn.Sequential(torch.nn.Linear(300, 200), torch.nn.LayerNorm(200), torch.nn.Linear(200, 7))
        twin.load_state_dict(model.state_dict())
        twin.cuda()
        for p, q in zip(model.parameters(), twin.parameters()):
            p.grad = torch.randn_like(p)
            q.grad = p.grad.cuda()
        ours, theirs = [[p.grad for p in m.parameters()] for m in (model, twin)]
        for order in (1, 2, float("inf")):
            for dtype in (None, torch.float64, torch.bfloat16):
                wanted, got = (cured.torch.total_norm(g, order, dtype) for g in (ours, theirs))
                self.assertTrue(got.is_cuda)
                self.assertEqual((wanted.dtype, wanted.item()), (got.dtype, got.item()), order)
        wanted, got = cured.torch.clip_grad_norm_(model.parameters(), 1.0), cured.torch.clip_grad_norm_(twin.parameters(), 1.0)
        self.assertEqual(wanted.item(), got.item())
        for p, q in zip(model.parameters(), twin.parameters()):
            self.assertTrue(torch.equal(p.grad, q.grad.cpu()))
        wide = torch.randn(6, 8, 10, device="cuda")
        for tensors in ([wide[..., ::2]], [wide[:, :3], wide.permute(2, 0, 1)], [torch.ones(1, device="cuda").expand(1000)]):
            self.assertEqual(cured.torch.total_norm([t.cpu() for t in tensors]).item(), cured.torch.total_norm(tensors).item())
        q.grad = torch.randn(7, 2, device="cuda")[:, 0]
        p.grad = q.grad.cpu()
        self.assertEqual(cured.torch.clip_grad_norm_([p], 0.5).item(), cured.torch.clip_grad_norm_([q], 0.5).item())
        self.assertTrue(torch.equal(p.grad, q.grad.cpu()))
        mine = dict(model.state_dict(), flags=torch.tensor([True, False]), whole=torch.arange(9), gone=torch.zeros(0),
                    odd=torch.tensor([1.0, float("nan"), float("inf")], dtype=torch.bfloat16), meta=torch.zeros(1, dtype=torch.complex64))
        for options in ({}, {"nan": "propagate", "ddof": 1}):
            a = cured.torch.stats(mine, **options)
            b = cured.torch.stats({name: t.cuda() for name, t in mine.items()}, **options)
            self.assertEqual(list(a), list(b))
            self.assertEqual({name: repr(r) for name, r in a.items()}, {name: repr(r) for name, r in b.items()})

    def test_freed_while_their_call_is_under_way(self):
        """Their memory goes to the next tensor of the stream, which comes behind the call."""
        torch = self.torch()
        stream, outs = torch.cuda.Stream(), [torch.zeros((), device="cuda", dtype=torch.float64) for _ in range(200)]
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)
            for k, out in enumerate(outs):
                cured.sum(torch.full((100_000,), float(k), device="cuda"), out=out)
            self.assertEqual([100_000.0 * k for k in range(200)], [out.item() for out in outs])

    def test_threads_and_streams(self):
        torch = self.torch()
        import threading
        import time
        until, wrong, calls = time.monotonic() + 4, [], []

        def work(number):
            try:
                stream, made = torch.cuda.Stream(), 0
                with torch.cuda.stream(stream):
                    while time.monotonic() < until:
                        n = 1000 + 37 * (made % 50)
                        t = torch.full((n, 8), float(number + made % 5), device="cuda")
                        out, rows = torch.zeros((), device="cuda", dtype=torch.float64), torch.zeros(n, device="cuda")
                        cured.sum(t, out=out)
                        cured.sum(t, axis=1, out=rows)
                        value = float(number + made % 5)
                        got = cured.max(t), cured.sum([t, rows]), out.item(), rows[n - 1].item()
                        if got != (value, 16 * n * value, 8 * n * value, 8 * value):
                            wrong.append((number, made, got))
                        made += 1
                calls.append(made)
            except Exception as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], wrong[:3])
        self.assertEqual(8, len(calls))


if __name__ == "__main__":
    if not MAKERS:
        print("skipped: there is no GPU with torch or CuPy here")
        sys.exit(77)
    reasons.main()
