"""CUDA tensors that are answered in this process, over the runtime double of tests/double: every op, type, axis and out= gives the bits
of the same array of the host, in the order of the tensor's stream, or is refused by a sentence."""
import ctypes
import os
import subprocess
import sys
import unittest

import numpy

import cured
import support
from support import Case

PATH = os.environ.get("CURED_CUDA_LIBRARY", "")
OPS = ["sum", "mean", "min", "max", "argmin", "argmax", "count", "count_nonzero", "count_nan", "count_inf", "any", "all", "sumsq", "norm1", "norm2",
       "norminf", "var", "std", "prod", "bit_and", "bit_or", "bit_xor", "digest"]
TYPES = "? u1 i1 u2 i2 u4 i4 u8 i8 f2 f4 f8".split()
TO_DEVICE, TO_HOST = 1, 2


class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("device_syncs", "stream_syncs", "event_syncs", "queries")] + [("more", ctypes.c_uint64 * 40)]


def number(value):
    return ctypes.c_void_p(value)


class Tensor:
    """Memory of the double's device, as Numba shows its arrays."""

    def __init__(self, array, stream=None):
        self.shape, self.ndim, self.dtype, self.stream = array.shape, array.ndim, array.dtype, stream
        memory = ctypes.c_void_p()
        assert CUDA.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(max(array.nbytes, 1))) == 0
        self.memory, self.bytes = memory.value, array.nbytes
        assert CUDA.cudaMemcpy(number(self.memory), number(array.ctypes.data), ctypes.c_size_t(array.nbytes), TO_DEVICE) == 0
        CUDA.cudaDeviceSynchronize()

    def __del__(self):
        CUDA.cudaFree(number(self.memory))

    def copy_to_device(self, array):
        CUDA.cudaMemcpy(number(self.memory), number(array.ctypes.data), ctypes.c_size_t(array.nbytes), TO_DEVICE)
        CUDA.cudaDeviceSynchronize()  # streams that do not wait for the legacy one read it, too

    def host(self):
        array = numpy.empty(self.shape, self.dtype)
        CUDA.cudaDeviceSynchronize()
        CUDA.cudaMemcpy(number(array.ctypes.data), number(self.memory), ctypes.c_size_t(self.bytes), TO_HOST)
        return array

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.memory, False), "version": 3, "stream": self.stream}


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


class Borrowed(Tensor):
    """As torch's: its type has DLPack's exchange in C, by which lists are looked at. Its stream is the class's."""
    now = None

    def describe(self, to):
        code = {"b": 6, "u": 1, "i": 0, "f": 2}[self.dtype.kind]
        self.sizes = (ctypes.c_int64 * max(self.ndim, 1))(*self.shape)
        values = self.memory, 2, 0, self.ndim, code, 8 * self.dtype.itemsize, 1, self.sizes, None, 0
        for (name, _), value in zip(DLTensor._fields_, values):
            setattr(to, name, value)


class Eight(Borrowed):
    """Bytes that are floats, as torch hands on its float8 types: NumPy has none."""

    def __init__(self, array, code):
        super().__init__(array)
        self.code = code

    def describe(self, to):
        super().describe(to)
        to.code = self.code

    @property
    def __cuda_array_interface__(self):
        raise AttributeError("no such type")


def exchange():
    """Gives Borrowed its table, whose functions live as long."""
    def borrow(array, out):
        ctypes.cast(array, ctypes.py_object).value.describe(out[0])
        return 0

    def tensor_of(array, out):
        array = ctypes.cast(array, ctypes.py_object).value
        array.given = Versioned(1, 3, None, None, 0)
        array.describe(array.given.tensor)
        out[0] = ctypes.addressof(array.given)
        return 0

    def stream(kind, device, out):
        out[0] = Borrowed.now
        return 0

    pointer = ctypes.POINTER(ctypes.c_void_p)
    kinds = (ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, pointer), ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(DLTensor)),
             ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, pointer))

    class Table(ctypes.Structure):
        _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p), ("allocate", ctypes.c_void_p),
                    ("tensor_of", kinds[0]), ("object_of", ctypes.c_void_p), ("borrow", kinds[1]), ("stream", kinds[2])]

    Borrowed.table = Table(1, 3, None, None, kinds[0](tensor_of), None, kinds[1](borrow), kinds[2](stream))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    Borrowed.name = b"dlpack_exchange_api"
    Borrowed.__dlpack_c_exchange_api__ = new(ctypes.addressof(Borrowed.table), Borrowed.name, None)


def random(shape, dtype, seed=1):
    r = numpy.random.default_rng(seed)
    if dtype == "?":
        return r.random(shape) < 0.7
    return (r.standard_normal(shape) * 20).astype(dtype)


def outcome(call):
    """The answer as bytes with its type, or the type of the exception."""
    try:
        answer = call()
    except Exception as error:
        return type(error)
    if isinstance(answer, cured.Result):
        return {op: outcome(lambda op=op: answer[op]) for op in answer}
    if isinstance(answer, Tensor):
        answer = answer.host()
    array = numpy.asarray(answer)
    return str(array.dtype), array.shape, array.tobytes() if array.dtype != object else str(answer)


class Here(Case):
    def same(self, call, array, *more):
        """call(t) gives what call(array) gives."""
        self.assertEqual(outcome(lambda: call(array)), outcome(lambda: call(Tensor(array))), more)

    def digests(self, a):
        """What a digest is of and has no other op: rows of three words, and options that it refuses, on the GPU as on the host."""
        like = cured.digest(a, axis=0)
        for axis in (0, 1):
            mine = numpy.zeros(a.shape[1 - axis], like.dtype)
            self.assertIs(mine, cured.digest(Tensor(a), axis=axis, out=mine))
            self.assertEqual(cured.digest(a, axis=axis).tobytes(), mine.tobytes())
            for ops in ("digest,count", "sum,digest,max", "ptp,digest" if a.dtype.kind != "b" else "any,digest"):
                self.same(lambda x: cured.reduce(x, ops, axis=axis), a, ops)
            self.same(lambda x: cured.digest(x, axis=axis, where=None), a)
        self.same(lambda x: cured.digest(x, axis=0, out=numpy.zeros(3, like.dtype)), a)
        self.same(lambda x: cured.digest(x, axis=0, out=numpy.zeros(a.shape[1], "f8")), a)
        with self.assertRaisesRegex((TypeError, ValueError), "out|Cannot cast"):
            cured.digest(Tensor(a), axis=0, out=Tensor(numpy.zeros(a.shape[1])))
        self.same(lambda x: cured.digest(x, axis=(0, 1)), a)
        self.same(lambda x: cured.digest(x, dtype="f4"), a)
        if a.dtype.kind == "f":
            self.same(lambda x: cured.digest(x, nan="skip"), a)
        self.same(lambda x: cured.partial(x, "digest", first=None), a)
        self.same(lambda x: bytes(cured.partial(x, "digest,sum", first=77)), a)
        with self.assertRaises(TypeError):
            cured.digest(Tensor(a), where=a > 0)

    def test_every_op_and_type(self):
        for dtype in TYPES:
            a = random((60, 70), dtype)
            for op in OPS:
                one = getattr(cured, op)
                self.same(one, a, op, dtype)
                self.same(lambda x: one(x[()] if x is None else x), random((1,), dtype), op, dtype)
                if op == "digest":
                    self.digests(a)
                for axis in (0, 1, -1, (0, 1)):
                    self.same(lambda x: one(x, axis=axis), a, op, dtype, axis)
                self.same(lambda x: one(x, axis=0, keepdims=True), a, op, dtype, "keepdims")
                self.same(one, random((0,), dtype), op, dtype, "empty")
                self.same(lambda x: one(x, axis=1), random((3, 0), dtype), op, dtype, "empty rows")

    def test_three_axes_and_options(self):
        a = random((5, 6, 7), "f4")
        a[1, 2, 3], a[2, 2, 2] = numpy.nan, numpy.inf
        a[3] = numpy.nan
        for axis in (0, 1, 2, (0, 1), (1, 2), None):
            for options in ({}, {"nan": "skip"}):
                for op in ("sum", "max", "argmin", "std", "count_nonzero", "digest"):
                    self.same(lambda x: getattr(cured, op)(x, axis=axis, **options), a, axis, op, options)
        self.same(lambda x: cured.std(x, ddof=2), a)
        self.same(lambda x: cured.sum(x, dtype="f4"), random((999,), "f8"))
        self.same(lambda x: cured.prod(x, overflow="wrap"), random((99,), "i8"))
        self.same(lambda x: cured.sum(x, axis=0), numpy.full((3, 4), 2**62), "does not fit")
        self.same(cured.sum, numpy.full((3, 4), 2**62), "fits a wider one")
        self.same(lambda x: cured.reduce(x, "sum,max,argmax,std", axis=0), a)
        self.same(cured.describe, random((77, 3), "f8"))

    def test_partials_and_lists(self):
        a, b = random((4096,), "f4", 1), random((1234,), "f4", 2)
        self.assertEqual(cured.partial(a, "sum,max,prod", first=8192), cured.partial(Tensor(a), "sum,max,prod", first=8192))
        self.assertEqual(cured.partial(a, "sum", first=None), cured.partial(Tensor(a), "sum", first=None))
        both = numpy.concatenate([a, b])
        for op in OPS[:18]:
            self.assertEqual(outcome(lambda: getattr(cured, op)(both)), outcome(lambda: getattr(cured, op)([Tensor(a), Tensor(b)])), op)
            self.assertEqual(outcome(lambda: getattr(cured, op)(both)), outcome(lambda: getattr(cured, op)([Tensor(a), b])), op)
        each = cured.reduce_each([Tensor(a), Tensor(b)], "sum,max")
        self.assertEqual([cured.reduce(x, "sum,max")._answers for x in (a, b)], [r._answers for r in each])
        mixed = cured.reduce([Tensor(a), Tensor(b.astype("f8"))], "sum,norm2")
        self.assertEqual(cured.norm2(numpy.concatenate([a.astype("f8"), b])), mixed.norm2)

    def test_blocks(self):
        """Of a larger array: digests and indices are the array's, whatever word or byte a row of the block begins at."""
        def both(a, ops, **at):
            self.same(lambda x: bytes(cured.partial(x, ops, **at)), a, a.dtype, a.shape, ops, at)

        draw = numpy.random.default_rng(8)
        for dtype in TYPES:
            for shape in ((7,), (9000,), (60, 70), (5, 3, 1300), (4, 5, 6, 7), (3, 1, 2, 2, 90)):
                for _ in range(3):
                    start = [int(draw.integers(0, n)) for n in shape]
                    extent = [int(draw.integers(1, n - s + 1)) for n, s in zip(shape, start)]
                    a = random(extent, dtype)
                    ops = "digest", "digest,argmax,count", "min,argmin,count_nonzero", "sum,digest" if dtype != "?" else "any,digest"
                    both(a, ops[int(draw.integers(len(ops)))], shape=shape, start=start)
            whole = random((50, 33), dtype)
            parts = [cured.partial(Tensor(numpy.ascontiguousarray(whole[i:i + 7, j:j + 10])), "digest,argmin", shape=whole.shape, start=(i, j))
                     for i in range(0, 50, 7) for j in range(0, 33, 10)]
            draw.shuffle(parts)
            found = cured.merge(parts).finish("digest,argmin")
            self.assertEqual((cured.digest(whole), cured.argmin(whole)), (found.digest, found.argmin))
            both(random((0, 4), dtype), "digest,count", shape=(9, 9), start=(3, 3))
            both(numpy.asarray(random((), dtype)), "digest,count", shape=(), start=())
        a = random((3, 4), "f4")
        for words, call in (("lie outside", lambda x: cured.partial(x, "sum", shape=(3, 4), start=(0, 1))),
                            ("2 numbers", lambda x: cured.partial(x, "sum", shape=(3, 4, 1), start=(0, 0, 0))),
                            ("prod", lambda x: cured.partial(x, "prod", shape=(9, 9), start=(0, 0))),
                            ("first", lambda x: cured.partial(x, "sum", shape=(9, 9), start=(0, 0), first=0)),
                            ("under a mask|no mask", lambda x: cured.partial(x, "sum", shape=(9, 9), start=(0, 0), where=Tensor(a > 0) if x is not a else a > 0))):
            for x in (a, Tensor(a)):
                with self.assertRaisesRegex((TypeError, ValueError), words):
                    call(x)
        with self.assertRaisesRegex(TypeError, "leave out client="):
            cured.Client("embedded:").partial(Tensor(a), "sum", shape=(9, 9), start=(0, 0))

    def test_out(self):
        for dtype in ("f2", "f4", "f8", "i4", "u1"):
            a = random((300, 40), dtype)
            for op in ("sum", "max", "mean", "norm2", "argmax", "var"):
                for options in ({}, {"axis": 0}, {"axis": 1}, {"nan": "skip", "axis": 0}):
                    if "nan" in options and dtype[0] != "f":
                        continue
                    like = numpy.asarray(getattr(cured, op)(a, **options))
                    for kind in {like.dtype.str, "<f4" if like.dtype.kind == "f" else like.dtype.str}:
                        want = numpy.zeros(like.shape, kind)
                        getattr(cured, op)(a, out=want, **options)
                        out = Tensor(numpy.full(like.shape, 7, kind))
                        self.assertIs(out, getattr(cured, op)(Tensor(a), out=out, **options))
                        self.assertEqual(want.tobytes(), out.host().tobytes(), (dtype, op, options, kind))
                        mine = numpy.zeros(like.shape, kind)
                        getattr(cured, op)(Tensor(a), out=mine, **options)
                        self.assertEqual(want.tobytes(), mine.tobytes(), (dtype, op, options, kind))
        with self.assertRaisesRegex(ValueError, "out"):
            cured.sum(Tensor(random((3, 4), "f4")), axis=0, out=Tensor(numpy.zeros(3)))

    def test_refused(self):
        t = Tensor(random((3, 4), "f4"))
        for word, call in (("initial", lambda: cured.sum(t, initial=1)), ("where: the mask of a CUDA tensor is a bool tensor", lambda: cured.sum(t, where=numpy.ones((3, 4), "?"))),
                           ("first", lambda: cured.sum(t, first=3)), ("AsyncClient|list", lambda: cured.reduce([t], "sum", axis=0)),
                           ("overflow", lambda: cured.sum(t, overflow="wrap"))):
            with self.assertRaisesRegex((TypeError, ValueError, NotImplementedError), word):
                call()
        t.strides = None
        t.shape = (2, 2)
        gaps = type("Gaps", (), {"__cuda_array_interface__": dict(t.__cuda_array_interface__, strides=(16, 4), shape=(3, 2))})()
        with self.assertRaisesRegex(ValueError, "contiguous"):
            cured.sum(gaps)

    def test_masks(self):
        """Whole arrays and their masks at any alignment, under each op that takes one."""
        def part(tensor, first, n):
            told = dict(tensor.__cuda_array_interface__, shape=(n,), data=(tensor.memory + first * tensor.dtype.itemsize, False))
            return type("Part", (), {"__cuda_array_interface__": told, "whole": tensor})()

        draw = numpy.random.default_rng(5)
        ops = "sum mean norm1 sumsq norm2 var std count count_nonzero count_nan count_inf".split()
        for dtype in TYPES:
            for n in (0, 1, 5, 17, 300, 4099, 70001):
                a, m = random((n + 16,), dtype, n), draw.random(n + 16) < draw.choice([0, 0.01, 0.5, 0.99, 1])
                if a.dtype.kind == "f" and n > 16:
                    a[draw.integers(0, n, 3)] = [numpy.nan, numpy.inf, -0.0]
                t, mask = Tensor(a), Tensor(m)
                for first, begin in ((0, 0), (int(draw.integers(16)), int(draw.integers(16)))):
                    mine, kept = a[first:first + n], m[begin:begin + n]
                    for op in ops:
                        def answer(call):
                            try:
                                return repr(call())
                            except (ValueError, TypeError, OverflowError) as error:
                                return str(error)
                        want = answer(lambda: getattr(cured, op)(mine, where=kept))
                        self.assertEqual(want, answer(lambda: getattr(cured, op)(part(t, first, n), where=part(mask, begin, n))),
                                         (dtype, op, n, first, begin))
                want = cured.reduce(a, "sum,count_nonzero", where=m)
                self.assertEqual(repr(want), repr(cured.reduce(t, "sum,count_nonzero", where=mask)))

    def test_masks_cross(self):
        a, m = random((6, 50), "f4"), numpy.random.default_rng(3).random((6, 50)) < 0.5
        t, mask, out = Tensor(a), Tensor(m), Tensor(numpy.zeros((), "f8"))
        want = cured.sum(a, where=m, dtype="f8")
        self.assertEqual(want, cured.sum(t, where=mask, dtype="f8"))
        self.assertIs(out, cured.sum(t, where=mask, dtype="f8", out=out))
        self.assertEqual(want, out.host()[()])
        mine = numpy.zeros((), "f4")
        cured.sum(t, where=mask, out=mine)
        self.assertEqual(numpy.asarray(cured.sum(a, where=m, dtype="f4"), "f4"), mine[()])
        self.assertEqual(cured.var(a, where=m, ddof=2, nan="skip"), cured.var(t, where=mask, ddof=2, nan="skip"))
        self.assertEqual(repr(cured.reduce_each([a, a], "sum,mean", where=m)), repr(cured.reduce_each([t, t], "sum,mean", where=mask)))
        one = Tensor(m[0])
        stream = ctypes.c_void_p()
        CUDA.cudaStreamCreateWithFlags(ctypes.byref(stream), 1)
        for said, call in (("under a mask", lambda: cured.prod(t, where=mask)),
                           ("digest", lambda: cured.digest(t, where=mask)),
                           ("its shape and its strides", lambda: cured.sum(t, where=one)),
                           ("is a bool tensor", lambda: cured.sum(t, where=Tensor(a))),
                           ("two streams", lambda: cured.sum(t, where=Tensor(m, stream.value))),
                           ("where", lambda: cured.sum([t, t], where=mask)),
                           ("where|keys", lambda: cured.sum(t, where=mask, keys=numpy.zeros(300, "i4"), groups=1)),
                           ("GPU", lambda: cured.sum(a, where=mask))):
            with self.assertRaisesRegex((TypeError, ValueError, NotImplementedError), said, msg=said):
                call()

    def test_the_order_of_a_stream(self):
        """A slow writer ahead, a writer behind, and a reader of the answer."""
        for seed in range(6):
            CUDA.cr_double_seed(ctypes.c_uint64(seed))
            stream = ctypes.c_void_p()
            CUDA.cudaStreamCreateWithFlags(ctypes.byref(stream), seed % 2)
            true, false = random((5000,), "f8", seed), random((5000,), "f8", 99)
            t, out, read = Tensor(false, stream.value), Tensor(numpy.zeros(()), stream.value), Tensor(numpy.zeros(()), stream.value)
            other, waits = Tensor(false), Counts()
            CUDA.cr_double_slow_write(stream, number(t.memory), number(true.ctypes.data), ctypes.c_size_t(true.nbytes))
            before = waits.device_syncs, waits.stream_syncs, waits.event_syncs
            CUDA.cr_double_count(ctypes.byref(waits))
            before = waits.device_syncs, waits.stream_syncs, waits.event_syncs
            cured.sum(t, out=out)
            CUDA.cr_double_count(ctypes.byref(waits))
            self.assertEqual(before, (waits.device_syncs, waits.stream_syncs, waits.event_syncs), "out= waits for nothing")
            self.assertGreater(CUDA.cr_double_pending_in(stream), 0)
            CUDA.cr_double_copy_kernel(stream, number(read.memory), number(out.memory), ctypes.c_size_t(8))
            CUDA.cr_double_copy_kernel(stream, number(t.memory), number(other.memory), ctypes.c_size_t(true.nbytes))
            self.assertEqual(cured.max(false), cured.max(t), "behind the writer")
            self.assertEqual(cured.sum(true), float(read.host()))
            CUDA.cudaStreamSynchronize(stream)
            CUDA.cudaStreamDestroy(stream)
        CUDA.cr_double_seed(ctypes.c_uint64(0))

    def test_lists_that_are_looked_at_in_c(self):
        stream = ctypes.c_void_p()
        CUDA.cudaStreamCreateWithFlags(ctypes.byref(stream), 1)
        Borrowed.now = stream.value
        for dtype in ("f2", "f4", "f8", "i4", "u1"):
            arrays = [random(shape, dtype, k) for k, shape in enumerate([(3, 50), (0,), (4097,), (1,), (60, 70), (13,)])]
            flat, tensors = numpy.concatenate([a.reshape(-1) for a in arrays]), [Borrowed(a) for a in arrays]
            for op in OPS[:17]:
                one = getattr(cured, op)
                self.assertEqual(outcome(lambda: one(flat)), outcome(lambda: one(tensors)), (op, dtype))
                self.assertEqual(outcome(lambda: one(flat)), outcome(lambda: one(tuple(tensors))), (op, dtype))
            self.assertEqual(cured.partial(flat, "sum,max"), cured.partial(tensors, "sum,max"))
            self.assertEqual(cured.partial(flat, "sum,max", first=None), cured._cured._cuda_whole(tensors, ["sum", "max"]))
            self.assertEqual([repr(cured.partial(a, "sum,max,norm2", first=None).finish("sum,max,norm2")) for a in arrays],
                             [repr(r) for r in cured._cured._cuda_each(tensors, "sum,max,norm2", False)])
            with self.assertRaisesRegex(TypeError, "axis"):
                cured.sum(tensors, axis=0)
            for op in ("norm1", "norm2", "norminf"):
                for kind in ("f2", "f4", "f8"):
                    for given, whole in ((tensors, flat), (tensors[:1], arrays[0])):
                        out = Borrowed(numpy.zeros((), kind))
                        did = cured._cured._cuda_to(given, [op], out)
                        may = dtype == kind and len(given) == 1 if op == "norminf" else dtype[0] == "f" or len(given) == 1
                        self.assertEqual(did, may, (op, dtype, kind, len(given)))
                        if did:
                            CUDA.cudaStreamSynchronize(stream)
                            options = {} if op == "norminf" else {"dtype": kind}
                            wanted = numpy.asarray(getattr(cured, op)(whole, **options)).astype(kind)
                            self.assertEqual(outcome(lambda: wanted), outcome(lambda: out), (op, dtype, kind, len(given)))
        mixed = [Borrowed(random((99,), "f4")), Borrowed(random((77,), "f8"))]
        self.assertEqual(cured.norm2(numpy.concatenate([random((99,), "f4").astype("f8"), random((77,), "f8")])), cured.norm2(mixed))
        self.assertEqual([99, 77], [result.count for result in cured._cured._cuda_stats(mixed, "count,sum")])
        self.assertEqual([repr(cured.reduce(t, "sum")) for t in mixed], [repr(r) for r in cured._cured._cuda_each(mixed, "sum", True)])
        self.assertIsNone(cured._cured._cuda_each([*mixed, random((3,), "f4")], "sum", True))
        CUDA.cr_double_slow_write(stream, number(mixed[0].memory), number(numpy.ones(99, "f4").ctypes.data), ctypes.c_size_t(396))
        self.assertEqual(99.0, cured.sum([mixed[0]]), "after what its stream had queued")
        Borrowed.now = None
        CUDA.cudaStreamSynchronize(stream)
        CUDA.cudaStreamDestroy(stream)

    def test_floats_of_one_byte(self):
        shape, r = (60, 70), numpy.random.default_rng(8)
        for code, nan in ((10, 127), (12, 126)):
            for specials in (False, True):
                a = r.integers(0, 256, shape).astype("u1")
                a[(a & 127) > 122] = 3
                if specials:
                    a[7, 9] = nan
                host, t = support.Tensor(a.tobytes(), code, 8, shape), Eight(a, code)
                for op in OPS:
                    one = getattr(cured, op)
                    self.assertEqual(outcome(lambda: one(host)), outcome(lambda: one(t)), (op, code))
                    for axis in (0, 1):
                        if op != "digest":
                            self.assertEqual(outcome(lambda: one(host, axis=axis)), outcome(lambda: one(t, axis=axis)), (op, code, axis))
                for ops in ("sum,max,std,count_nonzero,norm1", "argmin,sum,argmax", "sum,min,max,mean,count_nan"):
                    self.assertEqual(outcome(lambda: cured.reduce(host, ops)), outcome(lambda: cured.reduce(t, ops)), (ops, code))
                    self.assertEqual(outcome(lambda: cured.reduce([host, host], ops)), outcome(lambda: cured.reduce([t, t], ops)), (ops, code))
                self.assertEqual(cured.partial(host, "sum,max"), cured.partial(t, "sum,max"))
                for given, whole in ([t], host), ([t, t], [host, host]):
                    out = Borrowed(numpy.zeros((), "f4"))
                    self.assertTrue(cured._cured._cuda_to(given, ["norm2"], out))
                    self.assertEqual(outcome(lambda: numpy.asarray(cured.norm2(whole, dtype="f4"), "f4")), outcome(lambda: out), code)
                out = Eight(numpy.zeros(60, "u1"), code)
                self.assertIs(cured.max(t, axis=1, out=out), out)
                self.assertEqual(cured.max(host, axis=1).tobytes(), cured.max(Eight(out.host().reshape(60, 1), code), axis=1).tobytes())

            least = numpy.full(2_200_000, 0xfe if code == 10 else 0xfb, "u1")  # its digits' carries reach the end of the sum's limbs
            self.assertEqual(cured.sum(support.Tensor(least.tobytes(), code, 8, least.shape)), cured.sum(Eight(least, code)), code)

    def test_options_of_a_list(self):
        """In C as array by array: of NaNs, a result's type, ddof."""
        a, b = random((300,), "f4", 1), random((77,), "f4", 2)
        a[5] = a[200] = numpy.nan
        flat, tensors = numpy.concatenate([a, b]), [Borrowed(a), Borrowed(b)]
        for op, options in (("sum", {}), ("sum", {"nan": "skip"}), ("max", {"nan": "skip"}), ("max", {}), ("argmin", {"nan": "skip"}),
                            ("mean", {"dtype": "f4", "nan": "skip"}), ("std", {"ddof": 3, "nan": "skip"}), ("norm2", {"dtype": "f2", "nan": "skip"}),
                            ("count", {"nan": "skip"}), ("sum", {"ddof": 1}), ("max", {"dtype": "f8"}), ("sum", {"overflow": "wrap"})):
            one = getattr(cured, op)
            self.assertEqual(outcome(lambda: one(flat, **options)), outcome(lambda: one(tensors, **options)), (op, options))
            self.assertEqual(outcome(lambda: cured.reduce(flat, [op], **options)), outcome(lambda: cured.reduce(tensors, [op], **options)), (op, options))
        self.assertEqual([cured.std(x, ddof=2, nan="skip") for x in (a, b)],
                         [r.std for r in cured.reduce_each(tensors, "std", ddof=2, nan="skip")])

    def test_tables_that_say_nonsense(self):
        for wrong in ({"shape": None}, {"ndim": -1}, {"ndim": 1000}, {"bits": 24}, {"lanes": 2}):
            t = Borrowed(random((40,), "f4"))
            whole = t.describe

            def describe(to, whole=whole, wrong=wrong):
                whole(to)
                for name, value in wrong.items():
                    setattr(to, name, value)
            t.describe = describe
            for call in (lambda: cured.sum([t]), lambda: cured.sum(t), lambda: cured.reduce_each([t, t], "sum")):
                with self.assertRaises((ValueError, TypeError), msg=wrong):
                    call()

    def test_streams_of_a_list(self):
        streams = [ctypes.c_void_p() for _ in range(2)]
        arrays = [random((3000,), "f4", k) for k in range(2)]
        for stream in streams:
            CUDA.cudaStreamCreateWithFlags(ctypes.byref(stream), 1)
        tensors = [Tensor(numpy.zeros(3000, "f4"), stream.value) for stream in streams]
        for t, a, stream in zip(tensors, arrays, streams):
            CUDA.cr_double_slow_write(stream, number(t.memory), number(a.ctypes.data), ctypes.c_size_t(a.nbytes))
        self.assertEqual(cured.sum(numpy.concatenate(arrays)), cured.sum(tensors))

    def test_without_the_library(self):
        program = ("import cured\nclass T:\n __cuda_array_interface__ = {'shape': (4,), 'typestr': '<f4', 'data': (4096, False), 'version': 3}\n"
                   "try: cured.sum(T())\nexcept Exception as error: print(error)\n")
        said = subprocess.run([sys.executable, "-c", program], env=dict(os.environ, CURED_CUDA_LIBRARY="/nowhere.so", PYTHONPATH=os.path.dirname(os.path.dirname(cured.__file__))), text=True,
                              stdout=subprocess.PIPE).stdout
        self.assertRegex(said, "libcured-cuda.*install it.*client=")


if not os.path.exists(PATH):
    print("skipped: CURED_CUDA_LIBRARY names no runtime double")
    sys.exit(77)
CUDA = ctypes.CDLL(os.environ.get("CURED_CUDA_RUNTIME", PATH))  # of a real GPU another library has what a program calls
CUDA.cr_double_pending_in.restype = ctypes.c_size_t
exchange()

if __name__ == "__main__":
    unittest.main()
