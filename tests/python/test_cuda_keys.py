"""Reductions of CUDA tensors by key, over the runtime double: types of elements and keys, groups few, many and empty, every order of keys, keys
outside, answers to host memory, to tensors and in a capture, partials, streams; what is refused, and what is wrong. Answers are those of the host."""
import ctypes
import fractions
import itertools
import unittest

import numpy
from support import Case, cured
from test_cuda_here import CUDA, OPS, Tensor, number, outcome, random
from test_cuda_pairs import part
from test_cuda_ways import new_stream, slow_write

FLOATS = ("f2", "f4", "f8")
SUMS = ("sum", "mean", "norm1", "sumsq", "norm2", "var", "std", "count_nan", "count_inf")
INTEGERS = "? u1 i1 u2 i2 u4 i4 u8 i8".split()
COUNTS = ("count", "count_nonzero", "any", "all")
N = 5000


def whole(dtype, n=N):
    a = random((n,), dtype)
    if a.dtype.kind == "f":
        a[[20, 90, 91, 700]] = numpy.nan, numpy.inf, -numpy.inf, -0.0
    return a


def orders(groups, n=N):
    draw = numpy.random.default_rng(groups)
    yield "random", draw.integers(0, groups, n)
    yield "sorted", numpy.sort(draw.integers(0, groups, n))
    yield "constant", numpy.full(n, groups - 1)
    yield "runs", numpy.arange(n) // 37 % groups
    yield "two", numpy.where(draw.random(n) < 0.5, 0, groups - 1)


class Keys(Case):
    def same(self, call, a, k, about=None):
        self.assertEqual(outcome(lambda: call(a, k)), outcome(lambda: call(Tensor(a), Tensor(k))), about)

    def test_types_and_orders(self):
        for dtype, groups in itertools.product(FLOATS, (1, 16, 9000)):
            a = whole(dtype)
            for turn, (order, keys) in enumerate(orders(groups)):
                k = keys.astype("i4" if turn % 2 else "i8")
                for more in ({}, {"nan": "skip"}):
                    self.same(lambda a, k: cured.reduce(a, ",".join(SUMS + COUNTS), keys=k, groups=groups, **more), a, k, (dtype, groups, order, more))

    def test_ops_alone(self):
        for dtype in FLOATS:
            a = whole(dtype)
            for turn, ((order, k), op) in enumerate(itertools.product(orders(50), SUMS + COUNTS)):
                kind = ("i4", "u4", "i8", "u8")[turn % 4]
                self.same(lambda a, k: getattr(cured, op)(a, keys=k, groups=60), a, k.astype(kind), (dtype, op, order, kind))
            k = next(orders(50))[1]
            for more in ({"ddof": 1}, {"ddof": 200, "dtype": "f4", "nan": "skip"}):
                self.same(lambda a, k: cured.reduce(a, "var,std,mean", keys=k, groups=50, **more), a, k, more)
            for more in ({"dtype": "f4"}, {"dtype": "f2"}, {"dtype": "f8", "nan": "skip"}):
                self.same(lambda a, k: cured.sum(a, keys=k, groups=50, **more), a, k, more)
                self.same(lambda a, k: cured.mean(a, keys=k, groups=50, **more), a, k, more)

    def test_integers(self):
        for number, (dtype, groups) in enumerate(itertools.product(INTEGERS, (20, 3000))):
            a, every = random((2000,), dtype), list(orders(groups, 2000))
            for turn, op in enumerate(COUNTS + ("sum", "mean", "norm1", "sum,mean,count,any")):
                order, k = every[(number + turn) % len(every)]
                self.same(lambda a, k: cured.reduce(a, op, keys=k, groups=groups), a, k, (dtype, op, order))
            self.same(lambda a, k: cured.sum(a, keys=k, groups=groups, dtype="f8"), a, k, dtype)
            self.same(lambda a, k: cured.mean(a, keys=k, groups=groups, dtype="f4"), a, k, dtype)

    def test_integers_that_do_not_fit(self):
        for dtype, value in (("i8", 2**62), ("i8", -2**62), ("u8", 2**63)):
            a, k = numpy.full(N, 5, dtype), numpy.arange(N) % 9
            a[[3, 12, 21, 30]] = value
            for ops in ("sum", "sum,mean", "count,sum,norm1"):
                self.same(lambda a, k: cured.reduce(a, ops, keys=k, groups=10), a, k, (dtype, ops))
            messages = []
            for x, y in ((a, k), (Tensor(a), Tensor(k))):
                with self.assertRaises((OverflowError, cured.Error)) as caught:
                    cured.sum(x, keys=y, groups=10)
                messages.append(str(caught.exception))
                self.assertRegex(messages[-1], "output 3: .*sum does not fit [iu]64")
            k[700] = -4  # a key outside comes first
            with self.assertRaisesRegex(ValueError, "keys: number 700 is -4"):
                cured.sum(Tensor(a), keys=Tensor(k), groups=10)

    def test_extrema(self):
        """Of groups that all have elements, and of some that have none, or only NaNs; to tensors by way of the host."""
        for number, dtype in enumerate(INTEGERS + list(FLOATS)):
            a = random((2000,), dtype)
            for turn, (order, k) in enumerate(orders(12, 2000)):
                groups = 12 if turn % 2 else 4000
                k = numpy.where(numpy.arange(2000) < groups, numpy.arange(2000) % groups, k) if groups == 12 else k
                if a.dtype.kind == "f" and (number + turn) % 3 == 0:
                    a[k == 5] = numpy.nan
                    a[[700, 800, 900]] = numpy.inf, -numpy.inf, -0.0
                for ops in ("min", "max", "norminf", "min,max,norminf,sum,count"):
                    for more in ({}, {"nan": "skip"}) if a.dtype.kind == "f" else ({},):
                        self.same(lambda a, k: cured.reduce(a, ops, keys=k, groups=groups, **more), a, k, (dtype, ops, order, more))
            out = Tensor(numpy.zeros(12, dtype))
            cured.max(Tensor(a), keys=Tensor(numpy.arange(2000) % 12), groups=12, out=out)
            self.assertEqual(cured.max(a, keys=numpy.arange(2000) % 12, groups=12).tobytes(), out.host().tobytes())
        with self.assertRaisesRegex(ValueError, "output 1: max of no elements has no value"):
            cured.max(Tensor(numpy.ones(3, "f4")), keys=Tensor(numpy.array([0, 2, 2])), groups=3)
        with self.assertRaisesRegex(ValueError, "keys: number 1 is 9"):
            cured.reduce(Tensor(numpy.ones(3, "f4")), "max,sum", keys=Tensor(numpy.array([0, 9, 2])), groups=4)

    def test_rows(self):
        """(n, d) to (N, d), and more axes."""
        for dtype, shape in itertools.product(("f2", "f4", "f8", "i4"), ((900, 5), (40, 64), (3, 1000), (700, 1), (50, 4, 9))):
            a = random(shape, dtype)
            every = list(orders(6, shape[0]))
            for turn, groups in enumerate((1, 6, 300)):
                k = every[turn][1] % groups
                self.same(lambda a, k: cured.reduce(a, "norm1,any,sum,mean,count", keys=k, groups=groups), a, k, (dtype, shape, groups))
            k[shape[0] // 2] = 300
            self.same(lambda a, k: cured.sum(a, keys=k, groups=300, drop=True), a, k.astype("i4"), (dtype, shape))
            with self.assertRaisesRegex(ValueError, "keys: number %d is 300" % (shape[0] // 2)):
                cured.sum(Tensor(a), keys=Tensor(k), groups=300)
            if a.dtype.kind != "f":
                continue
            out = Tensor(numpy.zeros((300, *shape[1:])))
            cured.sum(Tensor(a), keys=Tensor(k), groups=300, out=out)
            self.assertEqual(cured.sum(a, keys=k, groups=300, drop=True).tobytes(), out.host().tobytes(), (dtype, shape))

    def test_wide_data(self):
        """Exponents far apart, which no window holds; beside exact fractions."""
        draw = numpy.random.default_rng(3)
        for dtype, reach in (("f4", 40), ("f8", 300)):
            a = (draw.standard_normal(3000) * 10.0 ** draw.integers(-reach, reach // 2, 3000)).astype(dtype)
            for order, k in orders(7, 3000):
                self.same(lambda a, k: cured.reduce(a, "sum,mean,norm1,sumsq,norm2,var", keys=k, groups=8), a, k, (dtype, order))
                exact = [fractions.Fraction(0)] * 8
                for x, key in zip(a.tolist(), k.tolist()):
                    exact[key] += fractions.Fraction(x)
                self.assertEqual([x.numerator / x.denominator for x in exact], cured.sum(Tensor(a), keys=Tensor(k), groups=8).tolist(), (dtype, order))

    def test_groups(self):
        """Without groups= up to the greatest key; empty groups; no elements; more groups than elements."""
        a = whole("f4")
        for kind in ("i4", "i8", "u4"):
            k = (numpy.arange(N) * 7 % 91).astype(kind)
            self.same(lambda a, k: cured.sum(a, keys=k), a, k)
            self.same(lambda a, k: cured.reduce(a, "mean,count,any,all", keys=k, groups=20000), a, k)
        self.same(lambda a, k: cured.sum(a, keys=k), a, numpy.full(N, -3))
        none = numpy.zeros(0, "f4"), numpy.zeros(0, "i4")
        for more in ({"groups": 5}, {"groups": 0}, {}):
            self.same(lambda a, k: cured.reduce(a, "sum,mean,count,all", keys=k, **more), *none, more)
        self.same(lambda a, k: cured.sum(a, keys=k, groups=0), a, numpy.zeros(N, "i4"))
        self.same(lambda a, k: cured.sum(a, keys=k, groups=0, drop=True), a, numpy.zeros(N, "i4"))

    def test_views(self):
        for dtype, shift in itertools.product(FLOATS, range(1, 5)):
            a, k = random((N,), dtype), (numpy.arange(N) % 13).astype("i4")
            t, keys = Tensor(a), Tensor(k)
            for first in (0, shift):
                self.assertEqual(outcome(lambda: cured.sum(a[shift:4000 + shift], keys=k[first:4000 + first], groups=13)),
                                 outcome(lambda: cured.sum(part(t, shift, 4000), keys=part(keys, first, 4000), groups=13)), (dtype, shift, first))
            t.memory += 1  # at no multiple of the element
            odd = part(t, 0, 3000)
            host = numpy.frombuffer(a.tobytes()[1:], dtype, 3000)
            self.assertEqual(outcome(lambda: cured.sum(host, keys=k[:3000], groups=13)), outcome(lambda: cured.sum(odd, keys=part(keys, 0, 3000), groups=13)))
            t.memory -= 1

    def test_outside(self):
        a = random((N,), "f4")
        for groups, kind in itertools.product((16, 9000), ("i4", "i8")):
            for places, value in (((0,), groups), ((N - 1, 77, 78), -1), ((300,), 2**31 - 1), ((9,), -2**31)):
                k = (numpy.arange(N) % groups).astype(kind)
                k[list(places)] = value
                with self.assertRaises(ValueError) as cpu:
                    cured.sum(a, keys=k, groups=groups)
                for ops in ("sum", "sum,count,norm1"):
                    with self.assertRaises(ValueError) as gpu:
                        cured.reduce(Tensor(a), ops, keys=Tensor(k), groups=groups)
                    self.assertEqual(str(cpu.exception), str(gpu.exception))
                self.same(lambda a, k: cured.reduce(a, "sum,mean,count", keys=k, groups=groups, drop=True), a, k)
                out = Tensor(numpy.zeros(groups))  # nobody waits to be told: such an element is for no group
                cured.sum(Tensor(a), keys=Tensor(k), groups=groups, out=out)
                self.assertEqual(cured.sum(a, keys=k, groups=groups, drop=True).tobytes(), out.host().tobytes())

    def test_out(self):
        for dtype in FLOATS:
            a = random((N,), dtype)
            for groups, (op, result) in itertools.product((3, 700), (("sum", "f8"), ("mean", "f8"), ("count", "u8"), ("any", "?"))):
                k = (numpy.arange(N) * 5 % groups).astype("i4")
                wanted, out, host = getattr(cured, op)(a, keys=k, groups=groups), Tensor(numpy.zeros(groups, result)), numpy.zeros(groups, result)
                self.assertIs(out, getattr(cured, op)(Tensor(a), keys=Tensor(k), groups=groups, out=out))
                self.assertIs(host, getattr(cured, op)(Tensor(a), keys=Tensor(k), groups=groups, out=host))
                self.assertEqual((wanted.tobytes(), wanted.tobytes()), (out.host().tobytes(), host.tobytes()), (dtype, op))
        with self.assertRaisesRegex(ValueError, "out"):
            cured.sum(Tensor(a), keys=Tensor(k), groups=groups, out=Tensor(numpy.zeros(groups + 1)))

    def test_streams(self):
        """Keys that another stream still writes are waited for, by the device."""
        a, k = random((N,), "f4"), (numpy.arange(N) % 7).astype("i4")
        wanted = cured.sum(a, keys=k, groups=7)
        for out in (None, Tensor(numpy.zeros(7))):
            main, other = new_stream(), new_stream()
            t, keys = Tensor(a, stream=main.value), Tensor(numpy.zeros(N, "i4"), stream=other.value)
            slow_write(other, keys, k)
            got = cured.sum(t, keys=keys, groups=7, out=out)
            CUDA.cudaDeviceSynchronize()
            self.assertEqual(wanted.tobytes(), (got if out is None else out.host()).tobytes())

    def test_captures(self):
        a, k = random((N,), "f4"), (numpy.arange(N) % 7).astype("i4")
        stream, graph, made = new_stream(), ctypes.c_void_p(), ctypes.c_void_p()
        t, keys, out = Tensor(a, stream=stream.value), Tensor(k, stream=stream.value), Tensor(numpy.zeros(7), stream=stream.value)
        self.assertEqual(0, CUDA.cudaStreamBeginCapture(stream, 2))
        with self.assertRaisesRegex(cured.Error, "answers in device memory"):
            cured.sum(t, keys=keys, groups=7)
        cured.sum(t, keys=keys, groups=7, out=out)
        self.assertEqual(0, CUDA.cudaStreamEndCapture(stream, ctypes.byref(graph)))
        self.assertEqual(0, CUDA.cudaGraphInstantiate(ctypes.byref(made), graph, ctypes.c_ulonglong(0)))
        for i in range(3):
            t.copy_to_device(a * numpy.float32(i + 1))
            self.assertEqual(0, CUDA.cudaGraphLaunch(made, stream))
            self.assertEqual(cured.sum(a * numpy.float32(i + 1), keys=k, groups=7).tobytes(), out.host().tobytes())
        CUDA.cudaGraphExecDestroy(made)
        CUDA.cudaGraphDestroy(graph)

    def partials(self, a, k, ops, groups, mask=None, **more):
        """Of the CPU and of the GPU, which has the elements and the keys."""
        wanted, got = (cured.partial(each, ops, keys=keys, groups=groups, **more, **({} if mask is None else {"where": where}))
                       for each, keys, where in ((a, k, mask), (Tensor(a), Tensor(k), None if mask is None else Tensor(mask))))
        self.assertEqual(bytes(wanted), bytes(got), (a.dtype, a.shape, ops, groups, more))
        return got

    def test_partials(self):
        """Types x ops x orders of keys x rows x masks x dropped keys: the CPU's bytes; and cut anywhere and merged with parts of the CPU."""
        draw = numpy.random.default_rng(11)
        for turn, (dtype, rows) in enumerate(itertools.product(INTEGERS + list(FLOATS), ((1500,), (400, 3)))):
            a = whole(dtype, 1500) if len(rows) == 1 else random(rows, dtype)
            ops = [*COUNTS, "min", "max", "norminf", "ptp"]
            ops += SUMS if a.dtype.kind == "f" else ("sum", "mean", "norm1", "bit_and", "bit_or", "bit_xor")
            for way, (order, k) in enumerate(orders(7, len(a))):
                k = k.astype("i1 u2 i4 i8".split()[(turn + way) % 4])
                mask = draw.random(a.shape) < 0.6 if way % 2 else None
                groups, some = 7 if way % 3 else 3000, ",".join(draw.permutation(ops)[:1 + way * 2])
                got = self.partials(a, k, some, groups, mask)
                self.assertEqual(groups, got.groups)
                self.partials(a, k, ",".join(ops), 4, mask, drop=True)
                cut = int(draw.integers(0, len(a) + 1))
                first = cured.partial(Tensor(a[:cut]), some, keys=Tensor(k[:cut]), groups=groups, **({} if mask is None else {"where": Tensor(mask[:cut])}))
                rest = cured.partial(a[cut:], some, keys=k[cut:], groups=groups, **({} if mask is None else {"where": mask[cut:]}))
                self.assertEqual(got, cured.merge([rest, first]), (dtype, order, cut))
        self.assertEqual(self.partials(a, k, "sum", None).groups, int(k.max()) + 1)

    def test_partials_of_wide_and_special_data(self):
        """Exponents far apart; only NaNs; zeros of either sign; no elements, no groups; more cells than shared memory has."""
        draw = numpy.random.default_rng(4)
        k = draw.integers(0, 9, 3000)
        ops = "var,norm1,min,max,count_nonzero"
        for dtype, reach in (("f2", 4), ("f4", 40), ("f8", 300)):
            with numpy.errstate(over="ignore", under="ignore"):
                a = (draw.standard_normal(3000) * 10.0 ** draw.integers(-reach, reach // 2, 3000)).astype(dtype)
            self.partials(a, k, ops, 9)
            a[k == 2], a[k == 4], a[k == 5] = numpy.nan, -0.0, -numpy.inf
            a[k == 6] = draw.choice(numpy.array([numpy.nan, numpy.inf, -numpy.inf, 0, -0.0], dtype), (k == 6).sum())
            for some in (ops, "sumsq", "norm1", "count_inf", "count", "norminf", "sum"):
                self.partials(a, k, some, 10)
            self.partials(numpy.repeat(a[:, None], 40, 1), k, "mean,any", 900)
        for n, groups in ((0, 5), (0, 0), (0, None)):
            self.partials(numpy.zeros(n, "f4"), numpy.zeros(n, "i4"), "sum,count", groups)
        self.partials(numpy.zeros(9, "i4"), numpy.zeros(9, "i4"), "sum,count", 0, drop=True)

    def test_partials_outside_and_captured(self):
        a, k = random((N,), "f4"), (numpy.arange(N) % 16).astype("i4")
        k[[400, 700]] = 16, -1
        messages = []
        for each, keys in ((a, k), (Tensor(a), Tensor(k))):
            with self.assertRaises(ValueError) as caught:
                cured.partial(each, "var", keys=keys, groups=16)
            messages.append(str(caught.exception))
        self.assertEqual(*messages)
        stream, graph = new_stream(), ctypes.c_void_p()
        t, keys = Tensor(a, stream=stream.value), Tensor(k, stream=stream.value)
        self.assertEqual(0, CUDA.cudaStreamBeginCapture(stream, 2))
        with self.assertRaisesRegex(cured.Error, "it is captured"):
            cured.partial(t, "sum", keys=keys, groups=16)
        self.assertEqual(0, CUDA.cudaStreamEndCapture(stream, ctypes.byref(graph)))
        CUDA.cudaGraphDestroy(graph)
        main, other = new_stream(), new_stream()
        t, keys = Tensor(a, stream=main.value), Tensor(numpy.zeros(N, "i4"), stream=other.value)
        slow_write(other, keys, k)
        self.assertEqual(cured.partial(a, "sum", keys=k, groups=9, drop=True), cured.partial(t, "sum", keys=keys, groups=9, drop=True))

    def test_partials_refused(self):
        a, k = random((N,), "f4"), numpy.zeros(N, "i4")
        t, keys = Tensor(a), Tensor(k)
        both = (("without a position there is no argmax", lambda a, k: cured.partial(a, "argmax", keys=k)),
                ("op digest is of all bytes", lambda a, k: cured.partial(a, "digest", keys=k)),
                ("op prod of f32 goes by the places", lambda a, k: cured.partial(a, "prod", keys=k)),
                ("a partial by key has no position", lambda a, k: cured.partial(a, "sum", keys=k, first=4)),
                ("a list of arrays takes none", lambda a, k: cured.partial([a, a], "sum", keys=k)),
                ("axis 0|partial|axis", lambda a, k: cured.partial(a, "sum", offsets=[0, 3])))
        for words, call in both:
            for each in ((a, k), (t, keys)):
                with self.assertRaisesRegex((TypeError, ValueError, NotImplementedError, cured.Error), words):
                    call(*each)
        for words, call in (("partials of prod by key are the CPU's", lambda: cured.partial(keys, "sum,prod", keys=keys, groups=1)),
                            ("the GPU has no kernel for sumsq of i32 by key", lambda: cured.partial(keys, "sumsq", keys=keys, groups=1)),
                            ("leave out client=", lambda: cured.partial(t, "sum", keys=keys, client=cured.Client("embedded:"))),
                            ("median", lambda: cured.partial(t, "median", keys=keys)),
                            ("1720 bytes each, take more than 1073741824 bytes, the limit",
                             lambda: cured.partial(Tensor(a.astype("f8")), "var", keys=keys, groups=1 << 20))):
            with self.assertRaisesRegex((TypeError, ValueError, NotImplementedError, MemoryError, cured.Error), words):
                call()

    def test_what_is_refused(self):
        a, k = random((N,), "f4"), numpy.zeros(N, "i4")
        t, keys = Tensor(a), Tensor(k)
        for op in OPS:
            if op in SUMS + COUNTS + ("min", "max", "norminf", "argmin", "argmax", "ptp"):
                continue
            with self.assertRaisesRegex((NotImplementedError, TypeError, ValueError), "host memory|bit_|by key", msg=op):
                getattr(cured, op)(t, keys=keys, groups=1)
        for words, call in (("the GPU has no kernel for sumsq of i32 by key", lambda: cured.sumsq(Tensor(k), keys=keys, groups=1)),
                            ("it must be an integer's", lambda: cured.sum(t, keys=t, groups=1)),
                            ("are a tensor on the same GPU", lambda: cured.sum(t, keys=k, groups=1)),
                            ("an array in the memory of this process", lambda: cured.sum(a, keys=keys, groups=1)),
                            ("the array has 5000 rows", lambda: cured.sum(t, keys=Tensor(k[1:]), groups=1)),
                            ("leave out client=", lambda: cured.sum(t, keys=keys, groups=1, client=cured.Client("embedded:"))),
                            ("not with offsets", lambda: cured.sum(t, keys=keys, groups=1, offsets=[0, 3])),
                            ("axis 0", lambda: cured.sum(t, keys=keys, groups=1, axis=1)),
                            ("more than 1073741824 bytes, the limit", lambda: cured.sum(t, keys=keys, groups=20_000_000)),
                            ("more than 1073741824 bytes, the limit", lambda: cured.sum(t, keys=keys, groups=200_000_000))):
            with self.assertRaisesRegex((TypeError, ValueError, NotImplementedError, MemoryError, cured.Error), words):
                call()


if __name__ == "__main__":
    assert number(1).value == 1
    unittest.main()
