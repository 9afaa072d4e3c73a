"""CUDA tensors in this process, over the runtime double: streams that meet in one call, two GPUs, captures, tensors that are freed behind a
call, DLPack's ways of saying what a tensor is, lists, and what clients say of them."""
import asyncio
import ctypes
import itertools
import unittest

import numpy
from arrow_producer import Node, OfArray
from support import Case, Exchanged, cured
from test_cuda_here import CUDA, OPS, Borrowed, Counts, Tensor, number, outcome, random

asarray = numpy.asarray  # as CuPy has it
CODES = {"f": 2, "i": 0, "u": 1, "b": 6}


def new_stream(flags=1):
    stream = ctypes.c_void_p()
    assert CUDA.cudaStreamCreateWithFlags(ctypes.byref(stream), flags) == 0
    return stream


def waits():
    counts = Counts()
    CUDA.cr_double_count(ctypes.byref(counts))
    return counts.device_syncs, counts.stream_syncs, counts.event_syncs


def slow_write(stream, t, array):
    assert CUDA.cr_double_slow_write(stream, number(t.memory), number(array.ctypes.data), ctypes.c_size_t(array.nbytes)) == 0


def copy(stream, to, of):
    assert CUDA.cr_double_copy_kernel(stream, number(to.memory), number(of.memory), ctypes.c_size_t(of.bytes)) == 0


class View(Tensor):
    """The same memory with other strides."""

    def __init__(self, array, stream=None):
        base = array if array.flags.c_contiguous else array.T
        super().__init__(numpy.ascontiguousarray(base), stream)
        self.shape, self.strides = array.shape, array.strides

    @property
    def __cuda_array_interface__(self):
        return dict(super().__cuda_array_interface__, strides=self.strides)


class Streams(Case):
    def setUp(self):
        self.streams = [new_stream(), new_stream(0)]
        self.addCleanup(CUDA.cr_double_seed, ctypes.c_uint64(0))

    def tearDown(self):
        CUDA.cudaDeviceSynchronize()
        for stream in self.streams:
            CUDA.cudaStreamDestroy(stream)

    def test_out_of_another_stream(self):
        """What its stream did before is over when the answer is written, and what it does later finds the answer; nobody waits."""
        for seed, (one, other) in itertools.product(range(4), (self.streams, self.streams[::-1])):
            CUDA.cr_double_seed(ctypes.c_uint64(seed))
            array, wrong = random((3000, 3), "f8", seed), numpy.full((), -1.0)
            for options in ({}, {"axis": 0}):
                answer = numpy.asarray(cured.sum(array, **options))
                t, before = Tensor(numpy.zeros_like(array), one.value), numpy.full_like(answer, -1)
                out, read = Tensor(numpy.zeros_like(answer), other.value), Tensor(numpy.zeros_like(answer), other.value)
                old = Tensor(numpy.zeros_like(answer), other.value)
                cured.sum(t, out=out, **options)  # which makes the workspace, and may wait for that
                slow_write(one, t, array)
                slow_write(other, out, before)
                copy(other, old, out)
                counts = waits()
                self.assertIs(out, cured.sum(t, out=out, **options))
                self.assertEqual(counts, waits())
                copy(other, read, out)
                slow_write(other, out, numpy.full_like(answer, wrong))
                CUDA.cudaStreamSynchronize(other)
                self.assertEqual((before.tobytes(), answer.tobytes()), (old.host().tobytes(), read.host().tobytes()), (seed, options))

    def test_several_outs(self):
        array = random((3000,), "f8")
        t, outs = Tensor(array, self.streams[0].value), [Tensor(numpy.zeros(()), stream.value) for stream in self.streams]
        got = cured.reduce(t, "sum,norm2", out=outs)
        for op, out, stream in zip(("sum", "norm2"), outs, self.streams):
            self.assertIs(out, got[op])
            CUDA.cudaStreamSynchronize(stream)
            self.assertEqual(getattr(cured, op)(array), float(out.host()))

    def test_lists_of_several_streams(self):
        for seed in range(4):
            CUDA.cr_double_seed(ctypes.c_uint64(seed))
            arrays = [random((700 + k,), "f4", k) for k in range(6)]
            tensors = [Tensor(numpy.zeros_like(a), self.streams[k % 2].value) for k, a in enumerate(arrays)]
            for k, (t, a) in enumerate(zip(tensors, arrays)):
                slow_write(self.streams[k % 2], t, a)
            whole = numpy.concatenate(arrays)
            self.assertEqual(outcome(lambda: cured.reduce(whole, OPS[:17])), outcome(lambda: cured.reduce(tensors, OPS[:17])))
            for k, (t, a) in enumerate(zip(tensors, arrays)):
                slow_write(self.streams[k % 2], t, a[::-1].copy())
            self.assertEqual([cured.argmax(a[::-1]) for a in arrays], [r.argmax for r in cured.reduce_each(tensors, "argmax")])

    def test_freed_behind_the_call(self):
        """As a pool takes memory back in the order of the stream, and gives it to the next tensor."""
        class Pooled(Tensor):
            def __init__(self, array, stream):
                self.shape, self.ndim, self.dtype, self.stream, self.bytes = array.shape, array.ndim, array.dtype, stream.value, array.nbytes
                memory = ctypes.c_void_p()
                assert CUDA.cudaMallocAsync(ctypes.byref(memory), ctypes.c_size_t(array.nbytes), stream) == 0
                self.memory = memory.value
                slow_write(stream, self, array)

            def __del__(self):
                CUDA.cudaFreeAsync(number(self.memory), number(self.stream))

        for seed in range(3):
            CUDA.cr_double_seed(ctypes.c_uint64(seed))
            stream, arrays = self.streams[0], [random((2000,), "f4", k) for k in range(10)]
            outs = [Tensor(numpy.zeros(()), stream.value) for _ in arrays]
            for a, out in zip(arrays, outs):
                cured.norm2(Pooled(a, stream), out=out)
            CUDA.cudaStreamSynchronize(stream)
            self.assertEqual([cured.norm2(a) for a in arrays], [float(out.host()) for out in outs])

    def test_captured(self):
        """Only answers in device memory; the graph is replayed beside calls on its stream."""
        stream, arrays = self.streams[0], [random((5000,), "f4", k) for k in range(3)]
        t, out, late = Tensor(arrays[0], stream.value), Tensor(numpy.zeros(()), stream.value), Tensor(numpy.zeros((), "i8"), stream.value)
        cured.sum(t)
        graph, made = ctypes.c_void_p(), ctypes.c_void_p()
        self.assertEqual(0, CUDA.cudaStreamBeginCapture(stream, 2))
        cured.sum(t, out=out)
        for call in (lambda: cured.sum(t), lambda: cured.sum([t, t]), lambda: cured.reduce_each([t], "max"), lambda: cured.partial(t, "sum"),
                     lambda: cured.sum(t, out=numpy.zeros(())), lambda: cured.count(t, out=late) and cured.sum(t, dtype="f4", out=out)):
            with self.assertRaisesRegex(cured.Error, "captured"):
                call()
        self.assertEqual(0, CUDA.cudaStreamEndCapture(stream, ctypes.byref(graph)))
        self.assertEqual(0, CUDA.cudaGraphInstantiate(ctypes.byref(made), graph, ctypes.c_ulonglong(0)))
        for a in arrays:
            slow_write(stream, t, a)
            self.assertEqual(0, CUDA.cudaGraphLaunch(made, stream))
            self.assertEqual(cured.std(a), cured.std(t))
            self.assertEqual(cured.sum(a), float(out.host()))
        CUDA.cudaGraphExecDestroy(made)
        CUDA.cudaGraphDestroy(graph)


class Lists(Case):
    def test_stats(self):
        """By one call, and the answers of each by itself; many, so that slots and packs are used again."""
        shapes = ((5, "f4"), (0, "f8"), (3000, "u1"), (200000, "f4"), (7, "f4"))
        arrays = [random((n,), dtype, n) for n, dtype in shapes]
        arrays += [random((9000 + k,), "f2", k) for k in range(70)] + [numpy.float32([numpy.inf, -numpy.inf, numpy.nan, numpy.inf])]
        for ops, others in (("sum", {"nan": "skip"}), ("count,count_nan,count_inf,min,max,norm2,std", {"nan": "skip", "ddof": 1})):
            for options in ({}, others):
                made = cured._cured._cuda_stats([Tensor(a) for a in arrays], ops, **options)
                for array, answers in zip(arrays, made):
                    is_float = array.dtype.kind == "f"
                    own = {k: v for k, v in options.items() if is_float or k != "nan"}
                    wanted = cured.partial(array, ops, first=None).finish(ops, **own)
                    self.assertEqual(repr(wanted), repr(answers), (array.dtype, len(array)))
        with self.assertRaisesRegex(ValueError, "argmax"):
            cured._cured._cuda_stats([Tensor(arrays[0])], "argmax")

    def test_dense_tensors_in_another_order(self):
        """As by themselves: an op that needs no order takes them, and one that does refuses them."""
        a, b = random((30, 50), "f4", 1).T, random((40,), "f4", 2)
        for op in ("sum", "max", "norm2", "std", "count_nonzero"):
            one, wanted = getattr(cured, op), getattr(cured, op)([a, b])
            self.assert_same(wanted, one([View(a), Tensor(b)]), op)
            self.assert_same(one(a), one(View(a)), op)
            self.assert_same(one(a), cured.reduce_each([View(a), Tensor(b)], op)[0][op], op)
        for ddof in (0.5, -1, 1):  # the first two are divided by Python's integers
            self.assertEqual([cured.var(b, ddof=ddof)] * 2, [r.var for r in cured.reduce_each([Tensor(b)] * 2, "var", ddof=ddof)], ddof)
        for call in (lambda: cured.argmax([View(a)]), lambda: cured.argmax(View(a)), lambda: cured.reduce_each([View(a)], "sum,prod")):
            with self.assertRaisesRegex(ValueError, "contiguous"):
                call()

    def test_every_cut(self):
        r = numpy.random.default_rng(8)
        for dtype in "? u1 i4 u8 f2 f4 f8".split():
            a = random((4000,), dtype)
            parts = numpy.split(a, numpy.sort(r.integers(0, len(a) + 1, 5)))
            ops = [op for op in OPS if not (dtype[0] == "f" and (op == "prod" or op.startswith("bit")))]
            for mixed in ([Tensor(p) for p in parts], [p if k % 3 == 1 else Tensor(p) for k, p in enumerate(parts)]):
                self.assertEqual(outcome(lambda: cured.reduce(a, ops)), outcome(lambda: cured.reduce(mixed, ops)), dtype)
                self.assertEqual(cured.partial(a, ops, first=5), cured.partial(mixed, ops, first=5), dtype)
                self.assertEqual([outcome(lambda: cured.reduce(p, ops)) for p in parts],
                                 [outcome(lambda: each) for each in cured.reduce_each(mixed, ops)], dtype)
        for nan in ("skip", "propagate"):
            parts = [numpy.array([1, numpy.nan], "f4"), numpy.array([numpy.nan] * 3, "f4"), numpy.ones(0, "f4")]
            tensors = [Tensor(p) for p in parts]
            self.assertEqual(outcome(lambda: cured.reduce(parts, "min,sum,argmax", nan=nan)),
                             outcome(lambda: cured.reduce(tensors, "min,sum,argmax", nan=nan)))
            self.assertEqual([outcome(lambda: r) for r in cured.reduce_each(parts, "min,std", nan=nan, ddof=1)],
                             [outcome(lambda: r) for r in cured.reduce_each(tensors, "min,std", nan=nan, ddof=1)])

    def test_several_types(self):
        parts = [random((500,), dtype, k) for k, dtype in enumerate(("f4", "f8", "f2", "f4"))]
        ops = [op for op in OPS[:17] if not op.startswith("arg")]
        self.assertEqual(outcome(lambda: cured.reduce(parts, ops)), outcome(lambda: cured.reduce([Tensor(p) for p in parts], ops)))
        self.assertEqual([outcome(lambda: cured.reduce(p, "max,sum")) for p in parts],
                         [outcome(lambda: r) for r in cured.reduce_each([Tensor(p) for p in parts], "max,sum")])
        masked = numpy.ma.masked_array(parts[0], parts[0] > 0)
        self.assertEqual(cured.sum([masked, parts[3]]), cured.sum([masked, Tensor(parts[3])]))
        for wrong, words in (((Tensor(parts[0]), Tensor(numpy.ones(2, "i4"))), "floats and integers"), ((Tensor(parts[0]), 3), "an array is wanted")):
            with self.assertRaisesRegex(TypeError, words):
                cured.sum(wrong)

    def test_products(self):
        a = random((10000,), "f8")
        self.assert_same(cured.prod(a), cured.prod([Tensor(a[:4096]), Tensor(a[4096:8192]), Tensor(a[8192:])]))
        with self.assertRaisesRegex(ValueError, "4096"):
            cured.prod([Tensor(a[:5]), Tensor(a[5:])])
        self.assertEqual(cured.prod(numpy.arange(1, 9)), cured.prod([Tensor(numpy.arange(1, 4)), Tensor(numpy.arange(4, 9))]))


class OnGpu(Tensor):
    """A tensor of one of two GPUs."""
    device = None

    def __init__(self, array, device):
        CUDA.cudaSetDevice(device)
        super().__init__(array)
        CUDA.cudaSetDevice(0)
        self.device = type("Device", (), {"id": device})()


class Options(Case):
    """What counts elements, divides by a fraction or asks for nulls, as of the same array of the host."""

    def test_as_of_the_host(self):
        a = random((30, 8), "f4")
        for name, ask in {
            "min_count": lambda put: cured.sum(put(a), min_count=3), "too few": lambda put: cured.sum(put(a), min_count=999),
            "along an axis": lambda put: cured.sum(put(a), axis=0, min_count=3), "nulls": lambda put: cured.max(put(a), nulls="error"),
            "under a mask": lambda put: cured.sum(put(a), where=put(a > 0), min_count=3), "fraction": lambda put: cured.var(put(a), ddof=0.5),
            "fraction of a list": lambda put: cured.std([put(a), put(a)], correction=1.5),
        }.items():
            self.assertEqual(outcome(lambda: ask(asarray)), outcome(lambda: ask(Tensor)), name)
        for ask in (lambda out: cured.sum(Tensor(a), min_count=3, out=out), lambda out: cured.var(Tensor(a), ddof=0.5, out=out)):
            out = Tensor(numpy.zeros(()))
            self.assertIs(out, ask(out))
        self.assertEqual(cured.var(a, ddof=0.5), float(out.host()))
        for options in ({"keepdims": True}, {"axis": tuple(range(a.ndim))}, {"axis": tuple(range(a.ndim)), "keepdims": True}):
            self.assertEqual(outcome(lambda: cured.var(a, ddof=0.5, **options)), outcome(lambda: cured.var(Tensor(a), ddof=0.5, **options)))
        with self.assertRaisesRegex(TypeError, r"ddof: along an axis of a CUDA tensor .* \(a.cpu\(\) or a.get\(\)\)"):
            cured.var(Tensor(a), 0, ddof=0.5)

    def test_bincount(self):
        """By the tensor's GPU; the host is told of a wrong bin."""
        for dtype in ("i4", "u1", "i8"):
            x = numpy.array([0, 1, 1, 3, 1], dtype)
            self.assertEqual(numpy.bincount(x, minlength=6).tolist(), cured.bincount(Tensor(x), minlength=6).tolist())
            weights = numpy.array([0.5, 1, 2, 4, 8])
            self.assertEqual(numpy.bincount(x, weights).tolist(), numpy.asarray(cured.bincount(Tensor(x), Tensor(weights))).tolist())
        self.assertEqual([0, 0], cured.bincount(Tensor(numpy.zeros(0, "i4")), minlength=2).tolist())
        for words, ask in (("x: -1 is no number of a bin", lambda: cured.bincount(Tensor(numpy.array([1, -1])))), ("x: integers are wanted, not f64", lambda: cured.bincount(Tensor(numpy.ones(2)))),
                           ("x: an array of one axis", lambda: cured.bincount(Tensor(numpy.ones((2, 2), "i4")))), ("weights: those of a CUDA", lambda: cured.bincount(Tensor(numpy.arange(2)), [1.0, 2.0]))):
            with self.assertRaisesRegex((TypeError, ValueError), words):
                ask()

    def test_where_the_host_reads(self):
        """Of what the host alone reads, a tensor is refused by its name."""
        a, keys = numpy.arange(6.0), numpy.arange(6) % 3
        column = OfArray(Node(a))
        for name, call in (("keys", lambda: cured.partial(column, "sum", keys=Tensor(keys))),
                           ("weights", lambda: cured.bincount(keys, Tensor(a))), ("a", lambda: cured.histogram(Tensor(a))),
                           ("second", lambda: cured.dot(column, Tensor(a)))):
            with self.assertRaisesRegex(TypeError, r"^%s: it lies on a GPU: pass a copy in host memory \(a.cpu\(\) or a.get\(\)\)" % name):
                call()


class Gpus(Case):
    def test_grouped(self):
        arrays = [random((300 + k,), "f4", k) for k in range(6)]
        tensors, whole = [OnGpu(a, k % 2) for k, a in enumerate(arrays)], numpy.concatenate(arrays)
        self.assertEqual(outcome(lambda: cured.reduce(whole, OPS[:17])), outcome(lambda: cured.reduce(tensors, OPS[:17])))
        each = cured.reduce_each(tensors, "sum,argmax")
        self.assertEqual([(cured.sum(a), cured.argmax(a)) for a in arrays], [(r.sum, r.argmax) for r in each])
        now = ctypes.c_int()
        CUDA.cudaGetDevice(ctypes.byref(now))
        self.assertEqual(0, now.value)

    def test_out_of_another(self):
        """No stream of the other GPU would wait for the answer."""
        t, line = OnGpu(random((30, 40), "f4"), 1), OnGpu(random((1200,), "f4"), 1)
        for shape, call in (((), lambda out: cured.sum(t, out=out)), ((), lambda out: cured.norm2(t, out=out)),
                            ((), lambda out: cured.dot(t, t, out=out)), ((30,), lambda out: cured.sum(t, axis=1, out=out)),
                            ((2,), lambda out: cured.sum(line, offsets=numpy.array([0, 7, 1200]), out=out))):
            call(OnGpu(numpy.zeros(shape, "f8"), 1))
            with self.assertRaisesRegex(ValueError, "out: on GPU 0, and the array is on GPU 1"):
                call(OnGpu(numpy.zeros(shape, "f8"), 0))

    def test_one_call_for_each_gpu(self):
        tensors, calls, before = [OnGpu(numpy.full(3, k, "f4"), k % 2) for k in range(5)], [], cured._cured._cuda_each
        mixed = [*tensors[:3], numpy.full(4, 9.0), *tensors[3:]]
        cured._cured._cuda_each = lambda arrays, ops, alike, **options: calls.append(len(arrays)) or before(arrays, ops, alike, **options)
        self.addCleanup(setattr, cured._cured, "_cuda_each", before)
        self.assertEqual([0, 3, 6, 36, 9, 12], [r.sum for r in cured.reduce_each(mixed, "sum")])
        self.assertEqual([2, 3], sorted(calls))


class Numba:
    """What Numba's device arrays show, and no more: strides are None in C order, the stream where the array has one."""

    def __init__(self, array, stream=None, **more):
        self.memory = Tensor(numpy.ascontiguousarray(array))
        self.shape, self.strides, self.dtype, self.ndim, self.size = array.shape, array.strides, array.dtype, array.ndim, array.size
        self.stream, self.more, self.nbytes = stream, more, array.nbytes

    @property
    def __cuda_array_interface__(self):
        in_order = numpy.empty(self.shape, self.dtype).strides
        return dict({"shape": tuple(self.shape), "strides": None if in_order == self.strides else tuple(self.strides),
                     "data": (self.memory.memory if self.size else 0, False), "typestr": self.dtype.str, "stream": self.stream, "version": 3}, **self.more)


class Numbas(Case):
    def streams(self):
        """What an array may say of its stream, and on which stream its values are written: 0 and 1 are the default one, and so is none."""
        own = new_stream()
        self.addCleanup(CUDA.cudaStreamDestroy, own)
        return ((None, number(None)), (0, number(None)), (1, number(None)), (1, number(1)), (2, number(2)), (own.value, own))

    def test_types_and_shapes(self):
        for dtype in "? u1 i1 u2 i2 u4 i4 u8 i8 f2 f4 f8".split():
            for shape in ((), (1,), (700,), (30, 40), (3, 4, 5), (0,), (3, 0)):
                a = random(shape, dtype)
                for call in (cured.sum, cured.max, lambda x: cured.mean(x, axis=-1), lambda x: cured.count_nonzero(x, axis=0, keepdims=True),
                             lambda x: cured.reduce([x, x], "sum,min").sum, lambda x: bytes(cured.partial(x, "sum"))):
                    self.assertEqual(outcome(lambda: call(a)), outcome(lambda: call(Numba(a))), (dtype, shape))

    def test_order_of_the_stream(self):
        for said, stream in self.streams():
            for seed in range(3):
                CUDA.cr_double_seed(ctypes.c_uint64(seed))
                a = random((3000,), "f4", seed)
                t, out, more = Numba(numpy.zeros_like(a), said), Numba(numpy.zeros(()), said), Numba(numpy.zeros_like(a), said)
                copied = Tensor(numpy.zeros(()))
                for call in (cured.sum, cured.argmax, lambda x: cured.sum([x, more]), lambda x: cured.reduce_each([x, more], "norm2")[0].norm2):
                    slow_write(stream, t.memory, a)
                    self.assertEqual(float(call(t)), float(call(a) if call in (cured.sum, cured.argmax) else call(Numba(a))), (said, seed))
                    slow_write(stream, t.memory, numpy.zeros_like(a))
                slow_write(stream, t.memory, a)
                slow_write(stream, out.memory, numpy.array(-1.0))
                counts = waits()
                self.assertIs(out, cured.sum(t, out=out))
                self.assertEqual(counts, waits())
                copy(stream, copied, out.memory)
                CUDA.cudaStreamSynchronize(stream)
                self.assertEqual(cured.sum(a), float(copied.host()), (said, seed))
        CUDA.cr_double_seed(ctypes.c_uint64(0))

    def test_one_default_stream(self):
        """By whatever number: so nothing is ordered behind an event."""
        t, kind = Numba(random((300,), "f4")), Borrowed
        outs = [Numba(numpy.zeros(()), said) for said in (None, 0, 1)] + [kind(numpy.zeros(()))]
        for of in (t, kind(random((300,), "f4"))):
            for out in outs:
                before = CUDA.cr_double_calls(b"cudaStreamWaitEvent")
                cured.sum(of, out=out)
                self.assertEqual(before, CUDA.cr_double_calls(b"cudaStreamWaitEvent"))

    def test_refused(self):
        a = random((6, 4), "f4")
        for words, t in (("mask.*where=", Numba(a, mask=Numba(a > 0))), ("big-endian", Numba(a.astype(">f4"))), ("gaps", Numba(a[:, ::2])),
                         ("shape and strides", Numba(a, strides=(4,))), ("malformed", Numba(a, data=None)), ("malformed", Numba(a, shape=None))):
            with self.assertRaisesRegex((TypeError, ValueError), words, msg=words):
                cured.sum(t)
        self.assertEqual(cured.sum(a), cured.sum(Numba(a, mask=None)))
        self.assertEqual(cured.sum(a, where=a > 0), cured.sum(Numba(a), where=Numba(a > 0)))


class Speaking(Case):
    """DLPack's ways."""

    def told(self, kind, array, memory, strides=None):
        t = kind(b"\0" * max(array.nbytes, 1), CODES[array.dtype.kind], 8 * array.dtype.itemsize, array.shape, strides=strides, device=(2, 0))
        t.raw, t.memory = (ctypes.c_char * max(array.nbytes, 1)).from_address(memory.memory), memory
        return t

    def test_both(self):
        import support
        for dtype in ("f4", "f8", "i4", "u1", "?"):
            a = random((40, 30), dtype)
            memory, kind = Tensor(a), Exchanged.table()
            for t in (self.told(support.Tensor, a, memory), self.told(kind, a, memory)):
                for call in (cured.sum, lambda x: cured.max(x, axis=0), cured.argmin, cured.describe, lambda x: cured.sum([x, x]),
                             lambda x: cured.partial(x, "sum").count, lambda x: cured.reduce_each([x, x], "max")[1]):
                    self.assertEqual(outcome(lambda: call(a)), outcome(lambda: call(t)), dtype)
                if not isinstance(t, kind):
                    self.assertEqual({1}, set(t.streams), "the legacy stream, where nothing says which")
            self.assertGreater(kind.ends, 0)
            turned = self.told(kind, a.T, memory, strides=(1, 30))
            self.assertEqual(outcome(lambda: cured.sum(a.T, axis=0)), outcome(lambda: cured.sum(turned, axis=0)))

    def test_out(self):
        a, kind = random((40, 30), "f4"), Exchanged.table()
        like = numpy.zeros(40, "f8")
        place = Tensor(like)
        out = self.told(kind, like, place)
        out.ndim, out.dtype = 1, like.dtype
        self.assertIs(out, cured.sum(self.told(kind, a, Tensor(a)), axis=1, out=out))
        self.assertEqual(cured.sum(a, axis=1).tobytes(), place.host().tobytes())


class Clients(Case):
    """A client answers by what it is connected to, or says that it cannot."""

    def test_embedded(self):
        t = Tensor(random((50,), "f4"))
        with cured.Client("embedded:") as client:
            for call in (lambda: client.sum(t), lambda: cured.sum(t, client=client), lambda: client.sum([t]), lambda: cured.reduce_each([t], "sum", client=client)):
                with self.assertRaisesRegex(Exception, "embedded:|daemon|no CUDA driver"):
                    call()

    def test_coroutines(self):
        async def ask():
            async with cured.AsyncClient("embedded:") as client:
                return await client.sum(Tensor(random((50,), "f4")))
        with self.assertRaisesRegex(Exception, "embedded:|daemon|no CUDA driver"):
            asyncio.run(ask())


class Refused(Case):
    def test_sentences(self):
        a = random((4, 5, 6), "f4")
        t, text = Tensor(a), Tensor(a)
        text.dtype = numpy.dtype(">f4")
        for words, call in (("axis: .*neighbours", lambda: cured.sum(t, axis=(0, 2))), ("axis", lambda: cured.sum(t, axis=3)),
                            ("axis.*partial|partial.*axis", lambda: cured.partial(t, "sum", axis=0)), ("big-endian", lambda: cured.sum(text)),
                            ("where: ", lambda: cured.max(t, axis=0, where=a > 0)), ("initial: ", lambda: cured.sum(t, axis=0, initial=1.0)),
                            ("first", lambda: cured.reduce(t, "sum", first=0)),
                            ("each of 2", lambda: cured.reduce(t, "sum,max", out=(Tensor(numpy.zeros(())),))),
                            ("dimensions", lambda: cured.sum(t, out=Tensor(numpy.zeros(1)))), ("Cannot cast", lambda: cured.sum(t, out=Tensor(numpy.zeros((), "i4"))))):
            with self.assertRaisesRegex((TypeError, ValueError), words, msg=words):
                call()
        self.assertEqual(cured.sum(a, keepdims=True).tobytes(), cured.sum(t, keepdims=True).tobytes())

    def test_memory_of_nobody(self):
        a = numpy.ones(4)
        stray = type("Stray", (), {"__cuda_array_interface__": {"shape": (4,), "typestr": "<f8", "data": (a.ctypes.data, False), "version": 3}})()
        with self.assertRaisesRegex(ValueError, "no memory that a GPU reads"):
            cured.sum(stray)


if __name__ == "__main__":
    unittest.main()
