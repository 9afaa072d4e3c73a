"""Segments by offsets of CUDA tensors, over the runtime double: every op and type with offsets on the host and on the device, answers to host
memory and to tensors, in a capture; what is refused, and what is wrong. Answers are those of the host, bit for bit, and sums those of exact
fractions."""
import ctypes
import fractions
import itertools
import struct
import unittest

import numpy
from support import Case, cured
from test_cuda_here import CUDA, OPS, Tensor, number, outcome, random
from test_cuda_ways import new_stream, slow_write

TYPES = ("f2", "f4", "f8")
BUILT = ("sum", "mean", "sumsq", "norm1", "norm2", "var", "std")
ELSEWHERE = ("digest", "min", "max", "argmin", "argmax", "ptp", "norminf", "count", "count_nonzero", "count_nan", "count_inf", "any", "all")  # see test_cuda_cells
LENGTHS = numpy.array([0, 3, 3, 1, 40, 0, 0, 17, 64, 3, 1500, 2, 300, 5, 0, 2000, 0])
BORDERS = numpy.concatenate([[11], 11 + numpy.cumsum(LENGTHS)])
COUNT = int(BORDERS[-1]) + 9


def whole(dtype):
    a = random(COUNT, dtype)
    a[[20, 900]] = numpy.nan, numpy.inf
    return a


def nearest(x):
    """The float64 nearest to a fraction, by its integers alone."""
    return x.numerator / x.denominator if x else 0.0


class Segments(Case):
    def each(self, borders=BORDERS):
        """(what, the offsets of the host, those of the call)."""
        for kind in ("i4", "i8", "u4", "u8"):
            own = borders.astype(kind)
            yield kind + " host", own, own
            yield kind + " device", own, Tensor(own)
        yield "list", borders, borders.tolist()

    def test_every_op_and_type(self):
        for dtype in TYPES:
            a = whole(dtype)
            t = Tensor(a)
            for op, (what, own, given) in itertools.product(BUILT, self.each()):
                one = getattr(cured, op)
                for more in ({}, {"nan": "skip"}):
                    self.assertEqual(outcome(lambda: one(a, offsets=own, **more)), outcome(lambda: one(t, offsets=given, **more)), (dtype, op, what, more))
        a = random(COUNT, "f4")
        self.assertEqual(outcome(lambda: cured.reduce(a, ",".join(BUILT), offsets=BORDERS)),
                         outcome(lambda: cured.reduce(Tensor(a), ",".join(BUILT), offsets=Tensor(BORDERS))))
        for more in ({"ddof": 1}, {"dtype": "f4"}, {"dtype": "f2", "ddof": 3}):
            self.assertEqual(outcome(lambda: cured.var(a, offsets=BORDERS, **more)), outcome(lambda: cured.var(Tensor(a), offsets=BORDERS, **more)), more)

    def test_squares_of_integers(self):
        for dtype, op in itertools.product(("?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"), ("sumsq", "norm2", "var", "std")):
            a, one = random(COUNT, dtype) >> {"8": 40, "4": 8}.get(dtype[1:], 0), getattr(cured, op)
            for what, own, given in self.each():
                for more in ({}, {"ddof": 3}, {"dtype": "f4"})[:1 if op == "sumsq" else 2 + (op == "norm2")]:
                    if op == "norm2" and "ddof" in more:
                        continue
                    self.assertEqual(outcome(lambda: one(a, offsets=own, **more)), outcome(lambda: one(Tensor(a), offsets=given, **more)), (dtype, op, what, more))
            wanted = one(a, offsets=BORDERS)
            out = Tensor(numpy.zeros(len(LENGTHS), wanted.dtype))
            self.assertIs(out, one(Tensor(a), offsets=Tensor(BORDERS), out=out))
            self.assertEqual(wanted.tobytes(), out.host().tobytes(), (dtype, op))
        for dtype, op in itertools.product(("i4", "u8", "i8", "f8"), ("sum", "sumsq")):  # with others, and what does not fit its type
            a, ops = random(COUNT, dtype), "max,argmin,count_nonzero,norm1,var,mean," + op
            for borders in (BORDERS, numpy.array([0, 5, 1000, COUNT])):
                self.assertEqual(outcome(lambda: cured.reduce(a, ops, offsets=borders)), outcome(lambda: cured.reduce(Tensor(a), ops, offsets=Tensor(borders))), (dtype, op))
        for dtype, wraps in itertools.product(("?", "i2", "u4", "i8"), ({}, {"overflow": "wrap"})):  # with ops that go by key
            a, ops = random(COUNT, dtype) >> {"8": 40, "4": 8}.get(dtype[1:], 0), "sumsq,prod,max,digest,var,bit_xor"
            full = BORDERS[[0, 2, 3, 4, 8, 9, 16]]
            for borders, bad in ((full, None), (BORDERS, None), (full, COUNT + 1)):
                own = borders.astype("i4")
                own[2] = own[2] if bad is None else bad
                for given in (own, Tensor(own)):
                    self.assertEqual(outcome(lambda: cured.reduce(a, ops, offsets=own, **wraps)), outcome(lambda: cured.reduce(Tensor(a), ops, offsets=given, **wraps)), (dtype, wraps, bad))

    def test_digests(self):
        """Of every type, of offsets at any element: words begin anew with each segment."""
        for dtype in ("?", "u1", "i2", "f2", "i4", "f4", "u8", "f8"):
            a = random(COUNT, dtype)
            t, like = Tensor(a), cured.digest(a, offsets=BORDERS)
            for what, own, given in self.each():
                self.assertEqual(outcome(lambda: like), outcome(lambda: cured.digest(t, offsets=given)), (dtype, what))
                self.assertEqual(outcome(lambda: cured.reduce(a, "digest,sum,max", offsets=own)),
                                 outcome(lambda: cured.reduce(t, "digest,sum,max", offsets=given)), (dtype, what))
            mine = numpy.zeros(len(LENGTHS), like.dtype)
            self.assertIs(mine, cured.digest(t, offsets=Tensor(BORDERS), out=mine))
            self.assertEqual(like.tobytes(), mine.tobytes())
            for more in ({"nan": "skip"}, {"dtype": "f4"}):
                self.assertIs(outcome(lambda: cured.digest(a, offsets=BORDERS, **more)), outcome(lambda: cured.digest(t, offsets=BORDERS, **more)), more)
            self.assertIs(outcome(lambda: cured.digest(a, offsets=BORDERS, where=a > 0)), outcome(lambda: cured.digest(t, offsets=BORDERS, where=Tensor(a > 0))))

    def test_fractions(self):
        for dtype in TYPES:
            a = (random(COUNT, "f8") * 10.0 ** numpy.random.default_rng(7).integers(-3, 3, COUNT)).astype(dtype)
            exact = [fractions.Fraction(float(x)) for x in a]
            sums = [nearest(sum(exact[b:e], fractions.Fraction())) for b, e in zip(BORDERS[:-1], BORDERS[1:])]
            squares = [nearest(sum((x * x for x in exact[b:e]), fractions.Fraction())) for b, e in zip(BORDERS[:-1], BORDERS[1:])]
            for what, own, given in self.each():
                self.assertEqual([struct.pack("d", x) for x in sums], [struct.pack("d", x) for x in cured.sum(Tensor(a), offsets=given)], (dtype, what))
            self.assertEqual(squares, cured.sumsq(Tensor(a), offsets=Tensor(BORDERS)).tolist())

    def test_out(self):
        for dtype in TYPES:
            a = random(COUNT, dtype)
            for op, (what, own, given) in itertools.product(("sum", "mean", "var"), self.each()):
                one, wanted = getattr(cured, op), getattr(cured, op)(a, offsets=own)
                out = Tensor(numpy.zeros(len(LENGTHS)))
                self.assertIs(out, one(Tensor(a), offsets=given, out=out), what)
                self.assertEqual(wanted.tobytes(), out.host().tobytes(), (dtype, op, what))
                host = numpy.zeros(len(LENGTHS))
                self.assertIs(host, one(Tensor(a), offsets=given, out=host), what)
                self.assertEqual(wanted.tobytes(), host.tobytes(), (dtype, op, what))
        out = Tensor(numpy.zeros(3))
        with self.assertRaisesRegex(ValueError, "out"):
            cured.sum(Tensor(a), offsets=BORDERS, out=out)

    def test_shapes(self):
        a = random(3000, "f4")
        for borders in ([0], [5], [0, 0], [3, 3, 3], [0, 3000], [2999, 3000], list(range(3001)), [0] * 900 + [3000] * 900, [7, 2000]):
            borders = numpy.array(borders)
            for what, own, given in self.each(borders):
                for op in ("sum", "mean", "std", "digest"):
                    self.assertEqual(outcome(lambda: getattr(cured, op)(a, offsets=own)), outcome(lambda: getattr(cured, op)(Tensor(a), offsets=given)),
                                     (borders[:9], what, op))
        for what, own, given in self.each(numpy.zeros(5, "i8")):
            for op in BUILT:
                none = numpy.zeros(0, "f4")
                self.assertEqual(outcome(lambda: getattr(cured, op)(none, offsets=own)), outcome(lambda: getattr(cured, op)(Tensor(none), offsets=given)), what)

    def test_views(self):
        for dtype, shift in itertools.product(TYPES, range(1, 5)):
            a, view = random(COUNT, dtype), Tensor(random(COUNT, dtype))
            view.copy_to_device(a)
            view.memory += shift * a.itemsize
            view.shape = (COUNT - shift,)
            borders = BORDERS - 11
            for one in (cured.sum, cured.digest):
                self.assertEqual(outcome(lambda: one(a[shift:], offsets=borders)), outcome(lambda: one(view, offsets=borders)), (dtype, shift))
            view.memory -= shift * a.itemsize

    def test_wrong_ones(self):
        a = random(COUNT, "f4")
        for at, value in ((0, COUNT + 1), (0, -1), (5, 13), (5, COUNT + 4), (16, COUNT + 1), (17, -7), (9, 2**31 - 1)):
            borders = BORDERS.astype("i4")
            borders[at] = value
            with self.assertRaises(ValueError) as cpu:
                cured.sum(a, offsets=borders)
            for given in (borders, Tensor(borders), borders.astype("i8"), Tensor(borders.astype("i8")), borders.tolist()):
                for op in ("sum", "var", "digest"):
                    with self.assertRaises(ValueError) as gpu:
                        getattr(cured, op)(Tensor(a), offsets=given)
                    self.assertEqual(str(cpu.exception), str(gpu.exception))
            with self.assertRaises(ValueError) as gpu:
                cured.sum(Tensor(a), offsets=borders, out=Tensor(numpy.zeros(len(LENGTHS))))
            self.assertEqual(str(cpu.exception), str(gpu.exception))
            out = Tensor(numpy.zeros(len(LENGTHS)))  # nobody waits to be told: there are no numbers
            cured.sum(Tensor(a), offsets=Tensor(borders), out=out)
            self.assertTrue(numpy.isnan(out.host()).all(), (at, value))
            self.assertEqual(cured.sum(a, offsets=BORDERS).tobytes(), cured.sum(Tensor(a), offsets=BORDERS).tobytes(), "right ones behind")

    def test_what_is_refused(self):
        a = random(COUNT, "f4")
        t, borders = Tensor(a), Tensor(BORDERS)
        for op in OPS:
            if op in BUILT or op in ELSEWHERE:
                continue
            with self.assertRaisesRegex((NotImplementedError, TypeError, ValueError), "host memory|bit_", msg=op):
                getattr(cured, op)(t, offsets=borders)
        for dtype in ("?", "i4", "u8"):  # by key there are no such squares
            with self.assertRaisesRegex(NotImplementedError, "reduce a copy in host memory"):
                cured.sumsq(Tensor(random(COUNT, dtype)), offsets=BORDERS, where=Tensor(numpy.ones(COUNT, "?")))
        for words, call in (("axis: not with offsets", lambda: cured.sum(t, offsets=borders, axis=0)),
                            ("keepdims: not with offsets", lambda: cured.sum(t, offsets=borders, keepdims=True)),
                            ("initial: not with offsets", lambda: cured.sum(t, offsets=borders, initial=1)),
                            ("a bool tensor on the same GPU", lambda: cured.sum(t, offsets=borders, where=a > 0)),
                            ("a partial is of a whole array", lambda: cured.partial(t, "sum", offsets=borders)),
                            ("leave out client=", lambda: cured.sum(t, offsets=borders, client=cured.Client("embedded:"))),
                            ("of one axis", lambda: cured.sum(Tensor(random((3, 4), "f4")), offsets=[0, 3])),
                            ("pass offsets.cpu", lambda: cured.sum(a, offsets=borders)),
                            ("pass offsets.cpu", lambda: cured.sum(t, offsets=Tensor(BORDERS.astype("i2")))),
                            ("pass offsets.cpu", lambda: cured.sum(t, offsets=Tensor(BORDERS.astype("f4")))),
                            ("there are none", lambda: cured.sum(t, offsets=[])),
                            ("there are none", lambda: cured.sum(t, offsets=Tensor(numpy.zeros(0, "i4"))))):
            with self.assertRaisesRegex((TypeError, ValueError), words):
                call()

    def test_streams(self):
        """Offsets that another stream still writes are waited for, by the device."""
        a = random(COUNT, "f4")
        wanted = cured.sum(a, offsets=BORDERS)
        for out in (None, Tensor(numpy.zeros(len(LENGTHS)))):
            main, other = new_stream(), new_stream()
            t = Tensor(a, stream=main.value)
            borders = Tensor(numpy.zeros(len(BORDERS), "i8"), stream=other.value)
            slow_write(other, borders, BORDERS.astype("i8"))
            got = cured.sum(t, offsets=borders, out=out)
            CUDA.cudaDeviceSynchronize()
            self.assertEqual(wanted.tobytes(), (got if out is None else out.host()).tobytes())

    def test_captures(self):
        a = random(COUNT, "f4")
        stream, graph, made = new_stream(), ctypes.c_void_p(), ctypes.c_void_p()
        t, borders = Tensor(a, stream=stream.value), Tensor(BORDERS, stream=stream.value)
        out = Tensor(numpy.zeros(len(LENGTHS)), stream=stream.value)
        self.assertEqual(0, CUDA.cudaStreamBeginCapture(stream, 2))
        with self.assertRaisesRegex(cured.Error, "put them in device memory"):
            cured.sum(t, offsets=BORDERS, out=out)
        with self.assertRaisesRegex(cured.Error, "answers in device memory"):
            cured.sum(t, offsets=borders)
        cured.sum(t, offsets=borders, out=out)
        self.assertEqual(0, CUDA.cudaStreamEndCapture(stream, ctypes.byref(graph)))
        self.assertEqual(0, CUDA.cudaGraphInstantiate(ctypes.byref(made), graph, ctypes.c_ulonglong(0)))
        for k in range(3):
            t.copy_to_device(a * numpy.float32(k + 1))
            self.assertEqual(0, CUDA.cudaGraphLaunch(made, stream))
            self.assertEqual(cured.sum(a * numpy.float32(k + 1), offsets=BORDERS).tobytes(), out.host().tobytes())
        CUDA.cudaGraphExecDestroy(made)
        CUDA.cudaGraphDestroy(graph)


if __name__ == "__main__":
    assert number(1).value == 1
    unittest.main()
