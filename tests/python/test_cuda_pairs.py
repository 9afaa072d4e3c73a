"""Pairs of CUDA tensors in this process, over the runtime double: dot, sqdist and average give the bits of the same arrays of the host, by
every door, wherever the two lie, or are refused by a sentence."""
import ctypes
import unittest

import numpy
from support import Case, cured
from test_cuda_here import CUDA, Tensor, outcome, random
from test_cuda_ways import View, copy, new_stream, slow_write, waits

OPS = "dot", "sqdist", "average"
TYPES = "f2", "f4", "f8"


def part(tensor, first, n):
    told = dict(tensor.__cuda_array_interface__, shape=(n,), data=(tensor.memory + first * tensor.dtype.itemsize, False))
    return type("Part", (), {"__cuda_array_interface__": told, "whole": tensor, "shape": (n,)})()


def function(op):
    return (lambda a, b, **options: cured.average(a, weights=b, **options)) if op == "average" else getattr(cured, op)


def arrays(dtype, shape, seed=1):
    a, b = random(shape, dtype, seed), random(shape, dtype, seed + 50)
    return a / 20, b / 20


class Pairs(Case):
    def test_doors(self):
        """Functions, methods of several ops, partials and options, of arrays with and without what is no number."""
        draw = numpy.random.default_rng(4)
        for dtype in TYPES:
            for n in (1, 2, 17, 300, 4099, 70001):
                a, b = (x.astype(dtype) for x in arrays(dtype, (n,), n))
                if n == 300:
                    a[draw.integers(0, n, 5)] = numpy.nan
                    b[3], b[70] = numpy.inf, numpy.nan
                s, t = Tensor(a), Tensor(b)
                for op in OPS:
                    one = function(op)
                    for options in ({}, {"nan": "skip"}, {"dtype": "f4"}, {"dtype": "f8"}):
                        want = outcome(lambda: one(a, b, **options))
                        self.assertEqual(want, outcome(lambda: one(s, t, **options)), (op, dtype, n, options))
                    self.assertEqual(outcome(lambda: one(a, b)), outcome(lambda: cured.reduce(s, op, second=t)[op]), (op, dtype, n))
                self.assertEqual(outcome(lambda: cured.reduce(a, OPS, second=b)), outcome(lambda: cured.reduce(s, OPS, second=t)))
                for first in (None, 0, 77):
                    self.assertEqual(cured.partial(a, OPS, second=b, first=first), cured.partial(s, OPS, second=t, first=first))
        for op in OPS:
            none = random((0,), "f4")
            self.assertEqual(outcome(lambda: function(op)(none, none)), outcome(lambda: function(op)(Tensor(none), Tensor(none))))

    def test_axes_of_one_answer(self):
        """keepdims=, and the axis of an array that has no other, of pairs and under masks: as wholes, with their axes."""
        for dtype in TYPES:
            a, b = (x.astype(dtype) for x in arrays(dtype, (3001,)))
            m = numpy.arange(3001) % 3 == 0
            s, t, mask = Tensor(a), Tensor(b), Tensor(m)
            for op in OPS:
                for options in ({"keepdims": True}, {"axis": 0}, {"axis": 0, "keepdims": True, "dtype": "f4"}):
                    self.assertEqual(outcome(lambda: function(op)(a, b, **options)), outcome(lambda: function(op)(s, t, **options)), (op, dtype, options))
            for op in ("sum", "mean", "norm2", "std", "count_nonzero"):
                for options in ({"keepdims": True}, {"axis": 0}):
                    self.assertEqual(outcome(lambda: getattr(cured, op)(a, where=m, **options)),
                                     outcome(lambda: getattr(cured, op)(s, where=mask, **options)), (op, dtype, options))
            self.assertEqual(outcome(lambda: cured.reduce(a, "sum,median,max", keepdims=True)), outcome(lambda: cured.reduce(s, "sum,median,max", keepdims=True)))
        whole = Tensor(numpy.ones((4, 5), "f4"))
        for call in (lambda: cured.dot(whole, whole, axis=1), lambda: cured.reduce(whole, "sum,median", axis=0)):
            with self.assertRaisesRegex((NotImplementedError, TypeError), "second: in device memory|op median of device memory"):
                call()

    def test_wherever_they_lie(self):
        """Each of the two at an element of its own within 16 bytes; two axes; both in another order."""
        for dtype in TYPES:
            a, b = arrays(dtype, (5000,))
            s, t = Tensor(a.astype(dtype)), Tensor(b.astype(dtype))
            for first in range(0, 9, 2):
                for begin in range(9):
                    mine, other = s.host()[first:first + 4500 + begin], t.host()[begin:begin + 4500 + begin]
                    for op in OPS:
                        self.assert_same(function(op)(mine, other),
                                         function(op)(part(s, first, 4500 + begin), part(t, begin, 4500 + begin)), (op, dtype, first, begin))
        a, b = arrays("f4", (40, 50))
        a, b = a.astype("f4"), b.astype("f4")
        self.assert_same(cured.dot(a, b), cured.dot(Tensor(a), Tensor(b)))
        self.assert_same(cured.dot(a.T, b.T), cured.dot(View(a.T), View(b.T)))
        with self.assertRaisesRegex(ValueError, "second: its strides are not the array's"):
            cured.dot(Tensor(a), View(numpy.asfortranarray(b)))

    def test_out(self):
        for dtype in TYPES:
            a, b = (x.astype(dtype) for x in arrays(dtype, (3000,)))
            s, t = Tensor(a), Tensor(b)
            for op in OPS:
                for kind in ("f4", "f8"):
                    want = numpy.zeros((), kind)
                    function(op)(a, b, out=want)
                    out, mine = Tensor(numpy.full((), 7, kind)), numpy.zeros((), kind)
                    self.assertIs(out, function(op)(s, t, out=out))
                    function(op)(s, t, out=mine)
                    self.assertEqual([want.tobytes()] * 2, [out.host().tobytes(), mine.tobytes()], (op, dtype, kind))
            outs = [Tensor(numpy.zeros(())) for _ in OPS]
            cured.reduce(s, OPS, second=t, out=outs)
            self.assertEqual([function(op)(a, b, dtype="f8") for op in OPS], [out.host()[()] for out in outs])
        nan = numpy.float32([numpy.nan, 1, 2]), numpy.float32([1, 0, 0])
        for options in ({}, {"nan": "skip"}):  # an average of weights that are zeros, and one of a NaN
            want, out = cured.average(nan[0], weights=nan[1], **options), Tensor(numpy.zeros(()))
            cured.average(Tensor(nan[0]), weights=Tensor(nan[1]), out=out, **options)
            self.assertEqual(repr(float(want)), repr(float(out.host())))

    def test_streams(self):
        """The second's stream is another: what it did before is over when it is read, and it is not written until then. Nobody waits."""
        self.addCleanup(CUDA.cr_double_seed, ctypes.c_uint64(0))
        streams = [new_stream(), new_stream(0)]
        for seed in range(4):
            CUDA.cr_double_seed(ctypes.c_uint64(seed))
            one, other = streams[seed % 2], streams[1 - seed % 2]
            a, b = (x.astype("f8") for x in arrays("f8", (3000,), seed))
            s, t = Tensor(numpy.zeros_like(a), one.value), Tensor(numpy.zeros_like(b), other.value)
            out, read = Tensor(numpy.zeros(()), one.value), Tensor(numpy.zeros(()), one.value)
            cured.dot(s, t, out=out)
            slow_write(one, s, a)
            slow_write(other, t, b)
            before = waits()
            cured.dot(s, t, out=out)
            self.assertEqual(before, waits(), "out= waits for nothing")
            copy(one, read, out)
            slow_write(other, t, a)
            CUDA.cudaDeviceSynchronize()
            self.assertEqual(cured.dot(a, b), float(read.host()))
            slow_write(other, t, b)
            self.assertEqual(cured.sqdist(a, b), cured.sqdist(s, t))
        for stream in streams:
            CUDA.cudaStreamDestroy(stream)

    def test_captured(self):
        stream, pairs = new_stream(), [[x.astype("f4") for x in arrays("f4", (5000,), k)] for k in range(3)]
        s, t = (Tensor(x, stream.value) for x in pairs[0])
        outs = [Tensor(numpy.zeros(()), stream.value) for _ in OPS]
        graph, made = ctypes.c_void_p(), ctypes.c_void_p()
        self.assertEqual(0, CUDA.cudaStreamBeginCapture(stream, 2))
        cured.reduce(s, OPS, second=t, out=outs)
        with self.assertRaisesRegex(cured.Error, "captured"):
            cured.dot(s, t)
        self.assertEqual(0, CUDA.cudaStreamEndCapture(stream, ctypes.byref(graph)))
        self.assertEqual(0, CUDA.cudaGraphInstantiate(ctypes.byref(made), graph, ctypes.c_ulonglong(0)))
        for a, b in pairs:
            slow_write(stream, s, a)
            slow_write(stream, t, b)
            self.assertEqual(0, CUDA.cudaGraphLaunch(made, stream))
            self.assertEqual(cured.dot(a, b), cured.dot(s, t))
            self.assertEqual([function(op)(a, b, dtype="f8") for op in OPS], [float(out.host()) for out in outs])
        CUDA.cudaGraphExecDestroy(made)
        CUDA.cudaGraphDestroy(graph)
        CUDA.cudaStreamDestroy(stream)

    def test_refused(self):
        a, b = (x.astype("f4") for x in arrays("f4", (3, 4)))
        s, t, ints = Tensor(a), Tensor(b), Tensor(numpy.ones((3, 4), "i4"))
        for word, call in (("whole arrays are answered, without mask, axis or offsets", lambda: cured.dot(s, t, axis=0)),
                           ("whole arrays are answered, without mask, axis or offsets", lambda: cured.dot(s, t, axis=0, out=Tensor(numpy.zeros(4)))),
                           ("whole arrays are answered, without mask", lambda: cured.dot(s, t, where=Tensor(a > 0))),
                           ("select the elements of both", lambda: cured.dot(s, t, where=Tensor(a > 0))),
                           ("both have one shape", lambda: cured.average(s, axis=1, weights=Tensor(b[0]))),
                           ("both have one shape", lambda: cured.vecdot(s, Tensor(b[0]))),
                           ("without a client", lambda: cured.dot(s, t, client=cured.Client("embedded:"))),
                           ("pairs of i32 are not reduced in device memory", lambda: cured.dot(ints, ints)),
                           ("pairs of i32 are not reduced in device memory", lambda: cured.sqdist(ints, ints, out=Tensor(numpy.zeros((), "i8")))),
                           ("second: a tensor on the array's GPU is wanted", lambda: cured.dot(s, b)),
                           ("second: an array in the memory of this process is wanted", lambda: cured.dot(a, t)),
                           ("second: it is of int32|second: it is of i32", lambda: cured.dot(s, ints)),
                           ("its shape is not the array's", lambda: cured.dot(s, Tensor(b[0]))),
                           ("is of two arrays", lambda: cured.reduce(s, "dot")),
                           ("is of one array", lambda: cured.reduce(s, "dot,sum", second=t)),
                           ("a list of arrays has no pairs", lambda: cured.dot([s], t))):
            with self.assertRaisesRegex((TypeError, ValueError, NotImplementedError), word, msg=word):
                call()

    def test_lists(self):
        """A list of numbers beside a tensor, and lists of tensors: each door says what it takes."""
        a = numpy.array([1.5, 2, 3], "f4")
        s, t, on_its_gpu, here = Tensor(a), Tensor(a), "(second|weights): a tensor on the array's GPU is wanted", "(second|weights): an array in the memory of this process"
        for op in OPS:
            one = function(op)
            for given in ([1.5, 2.0, 3.0], (1.5, 2.0, 3.0), range(3), [1, 2, 3], [True, False, True]):
                for word, call in ((on_its_gpu, lambda: one(s, given)), (on_its_gpu, lambda: one(s, given, out=Tensor(numpy.zeros((), "f4")))), (here, lambda: one(given, t)),
                                   (on_its_gpu, lambda: cured.reduce(s, op, second=given)), (on_its_gpu, lambda: cured.reduce_each([s, t], op, second=given)[1]),
                                   (on_its_gpu, lambda: cured.partial(s, op, second=given))):
                    with self.assertRaisesRegex((TypeError, ValueError), word, msg=(op, given)):
                        call()
            for word, call in (("dtype object .* the list has a Tensor, which is no bool, int, float or complex number", lambda: one(s, [t])), ("a list of arrays has no pairs|list: an array is wanted", lambda: one([s], [t])),
                               ("the list has a Tensor, which is no bool, int, float or complex number", lambda: cured.reduce_each([s, t], op, second=[t, s])[0]), ("the list has a Tensor", lambda: one(a, [t, t])),
                               ("second: a list of arrays takes none", lambda: cured.partial([s, t], op, second=[t, s])),
                               ("second: a partial is finished with .* merge cured.partial", lambda: cured.reduce_parts([s, t], op, second=[t, s]))):
                with self.assertRaisesRegex(TypeError, word, msg=op):
                    call()
            both = [outcome(lambda: cured.reduce_each(list_of, op, second=second)[1][op]) for list_of, second in (([a, a], a), ([s, t], t))]
            self.assertEqual(*both)
        with self.assertRaisesRegex(ValueError, on_its_gpu):
            cured.vecdot(s, [1.5, 2.0, 3.0])
        with self.assertRaisesRegex(TypeError, "weights: it lies on a GPU"):
            cured.bincount([0, 1, 1], weights=t)


if __name__ == "__main__":
    unittest.main()
