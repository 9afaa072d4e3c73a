"""What the kernels by key answer beside keys of CUDA tensors, over the runtime double: a mask with keys, offsets and axes, keys of every width,
segments of ops and types that kernels by offsets have not, extrema of what a mask leaves. Sources, masks, types, ops, NaNs skipped, answers to
host memory, to tensors and in a capture are crossed. Answers are those of the host."""
import ctypes
import itertools
import unittest

import numpy
from support import Case, cured
from test_cuda_here import CUDA, Tensor, outcome, random
from test_cuda_pairs import part
from test_cuda_ways import new_stream

FLOATS, INTEGERS = ("f2", "f4", "f8"), "? u1 i1 u2 i2 u4 i4 u8 i8".split()
EXTREMA, COUNTS, SUMS = "min,max,norminf", "count,count_nonzero,any,all", "sum,mean,norm1"
INDICES, BITS = "argmin,argmax,ptp", "bit_and,bit_or,bit_xor"
OF_FLOATS = (EXTREMA + "," + INDICES, COUNTS + ",count_nan,count_inf", SUMS, "sumsq,norm2,var,std", "sum,max,var,count", "argmax,sum,count")
OF_INTEGERS = (EXTREMA + "," + INDICES, COUNTS, SUMS, "sum,max,count", BITS + ",count", "argmin,bit_or,prod,sum")
N = 3000
OFFSETS = numpy.sort(numpy.random.default_rng(5).integers(7, N - 5, 60))


def array(dtype, shape=(N,)):
    a = random(shape, dtype)
    if a.dtype.kind == "f":
        flat = a.reshape(-1)
        flat[[20, 90, 91, 700, 1400]] = numpy.nan, numpy.inf, -numpy.inf, -0.0, numpy.nan
    return a


def masks(shape, seed=1):
    draw = numpy.random.default_rng(seed)
    yield "half", draw.random(shape) < 0.5
    yield "few", draw.random(shape) < 0.01
    yield "most", draw.random(shape) < 0.99
    yield "none", numpy.zeros(shape, bool)


class Buffered(Tensor, ctypes.c_longdouble):
    """As CuPy's arrays: they have a buffer, too, from which nothing is taken."""


def there(more):
    """Arrays among the arguments, on the GPU."""
    return {name: Tensor(value) if isinstance(value, numpy.ndarray) else value for name, value in more.items()}


class Cells(Case):
    def same(self, a, ops, about=None, **more):
        self.assertEqual(outcome(lambda: cured.reduce(a, ops, **more)), outcome(lambda: cured.reduce(Tensor(a), ops, **there(more))), (a.dtype, ops, about))

    def turns(self, *more):
        """(number, dtype, ops, nan): each type with each list of ops, in turns of what else there is."""
        number = 0
        for dtype in list(FLOATS) + INTEGERS:
            for ops in OF_FLOATS if dtype in FLOATS else OF_INTEGERS:
                number += 1
                yield number, dtype, ops, {"nan": "skip"} if dtype in FLOATS and number % 3 == 0 else {}

    def test_segments_of_every_op(self):
        """Ops that kernels by offsets have not, and integers; offsets of every type, in host memory and on the device."""
        kinds = itertools.cycle(("i4", "u4", "i8", "u8"))
        for number, dtype, ops, more in self.turns():
            a, own = array(dtype), OFFSETS.astype(next(kinds))
            self.same(a, ops, offsets=own, **more)
            self.assertEqual(outcome(lambda: cured.reduce(a, ops, offsets=own, **more)), outcome(lambda: cured.reduce(Tensor(a), ops, offsets=own, **more)))
        for borders in ([0, N], [0, 0, N], [5], [5, 5, 5], [N, N], list(range(0, N + 1, 3)), [0] * 50 + [N] * 50):
            for dtype, ops in (("f4", "min,count"), ("i2", "sum,max"), ("u8", "mean"), ("f8", "sum,norminf")):
                self.same(array(dtype), ops, borders, offsets=numpy.array(borders))
        self.same(numpy.zeros(0, "i4"), "sum,count", offsets=numpy.zeros(5, "i4"))

    def test_masked_segments(self):
        for number, dtype, ops, more in self.turns():
            a = array(dtype)
            for about, m in itertools.islice(masks(N, number), number % 2, None, 2):
                self.same(a, ops, about, offsets=OFFSETS, where=m, **more)

    def test_masked_keys(self):
        kinds = itertools.cycle(("i4", "u4", "i8", "u8", "i1", "u1", "i2", "u2"))
        for number, dtype, ops, more in self.turns():
            a, groups = array(dtype), 3 if number % 2 else 100
            keys = numpy.random.default_rng(number).integers(0, groups, N).astype(next(kinds))
            for about, m in itertools.islice(masks(N, number), number % 2, None, 2):
                self.same(a, ops, about, keys=keys, groups=groups, where=m, **more)

    def test_narrow_keys(self):
        """Keys of one and two bytes, of which negative ones are outside; of rows, too."""
        for kind, dtype in itertools.product(("i1", "u1", "i2", "u2"), ("f4", "f8", "i8", "u1")):
            keys = numpy.random.default_rng(4).integers(0, 120, N).astype(kind)
            self.same(array(dtype), "sum,min,count", kind, keys=keys, groups=130)
            self.same(array(dtype), "sum,max", kind, keys=keys)
            self.same(array(dtype, (N // 10, 10)), "sum,count", kind, keys=keys[:N // 10], groups=130)
            keys[77] = 125 if kind[0] == "u" else -3
            self.same(array(dtype), "sum,count", kind, keys=keys, groups=124, drop=True)
            with self.assertRaisesRegex(ValueError, "keys: number 77 is %d" % keys[77]):
                cured.sum(Tensor(array(dtype)), keys=Tensor(keys), groups=124)

    def test_masked_rows(self):
        for dtype, shape in itertools.product(("f4", "f8", "i4"), ((300, 7), (40, 64), (60, 4, 9))):
            a, keys = array(dtype, shape), numpy.random.default_rng(8).integers(0, 5, shape[0])
            for about, m in masks(shape):
                for ops in (EXTREMA, SUMS + "," + COUNTS):
                    self.same(a, ops, about, keys=keys, groups=5, where=m)
        keys[3] = 9  # what is outside, where the mask leaves it out and where it does not
        for m in (numpy.zeros(shape, bool), numpy.ones(shape, bool)):
            self.same(a, "sum", keys=keys, groups=5, where=m)
            self.same(a, "sum", keys=keys, groups=5, where=m, drop=True)

    def test_masked_axes(self):
        shapes = itertools.cycle((((50, 60), 0), ((50, 60), 1), ((10, 6, 50), 1), ((10, 6, 50), (0, 1)), ((10, 6, 50), (1, 2)), ((3000, 1), 0), ((1, 3000), 0)))
        for number, dtype, ops, more in self.turns():
            shape, axis = next(shapes)
            a = array(dtype, shape)
            for about, m in itertools.islice(masks(shape, number), number % 2, None, 2):
                self.same(a, ops, (about, shape, axis), axis=axis, where=m, **more)
                self.same(a, ops, (about, shape, axis), axis=axis, where=m, keepdims=True, **more)
        self.same(numpy.zeros((0, 4), "f4"), "sum,mean,count", axis=0, where=numpy.zeros((0, 4), bool))
        self.same(numpy.zeros((4, 0), "f4"), "sum,mean,count", axis=0, where=numpy.zeros((4, 0), bool))

    def test_squares_of_integers_under_masks(self):
        """Cells have none, so swaths have them of any size; these arrays are of several swaths of the double's."""
        for dtype, (shape, axis), ddof in itertools.product(INTEGERS, (((60, 70), 1), ((60, 70), 0), ((9, 8, 70), 1)), (0, 1)):
            a = array(dtype, shape)
            for about, m in masks(shape):
                self.same(a, "var,std", (about, shape, axis), axis=axis, where=m, ddof=ddof)
                self.same(a, "norm2,sum", (about, shape, axis), axis=axis, where=m)
                out = Tensor(numpy.full(numpy.delete(shape, axis), 7.0))
                self.assertIs(out, cured.std(Tensor(a), axis=axis, where=Tensor(m), ddof=ddof, out=out))
                numpy.testing.assert_array_equal(out.host(), cured.std(a, axis=axis, where=m, ddof=ddof))

    def test_extrema_of_some_elements_along_an_axis(self):
        """Beside the mask, or by swaths: what is left out becomes the worst element, or a NaN where those are skipped. All types, axes, rows that end
        within a vector, masks of bytes and bits."""
        draw = numpy.random.default_rng(11)
        for dtype, (shape, axis) in itertools.product(("?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"),
                                                      (((70, 96), 0), ((70, 96), 1), ((70, 99), 1), ((61, 17), 1), ((5, 40, 33), 1))):
            a = random(shape, dtype, 3)
            kept = draw.random(shape) < 0.5
            if axis == 0:
                kept[:, 7] = False
                kept[:, 9] = numpy.arange(70) == 69
            policies = ({},)
            if dtype[0] == "f":
                policies = ({}, {"nan": "skip"})
                a.ravel()[::97] = numpy.nan
                a[..., 5] = -numpy.inf
                a[..., 6] = numpy.inf
                a[:, 8] = numpy.nan
            elif dtype != "?":
                info = numpy.iinfo(dtype)
                a[..., 5], a[..., 6] = info.min, info.max
            for op, more in itertools.product(("min", "max", "norminf"), policies):
                for m in (kept, kept | True):
                    self.same(a, op, (dtype, shape, axis, op, more), axis=axis, where=m, **more)
            self.same(a, "min,max,norminf,sum,argmax,count", (dtype, shape, axis), axis=axis, where=kept | (numpy.arange(shape[-1]) == 7), **policies[-1])
            for op in ("min", "max") if axis == 0 else ():
                with self.assertRaisesRegex(ValueError, "output 7: %s of no elements has no value" % op):
                    getattr(cured, op)(Tensor(a), axis=0, where=Tensor(kept))

    def test_what_does_not_fit_in_a_later_swath(self):
        a, m = numpy.ones((40, 200), "i8"), numpy.ones((40, 200), bool)
        a[33] = a[37] = 2**62
        for op in ("sum", "sumsq"):
            self.same(a, op, axis=1, where=m)
            with self.assertRaisesRegex(OverflowError, "output 33: "):
                getattr(cured, op)(Tensor(a), axis=1, where=Tensor(m))
        m[33] = m[37, 1:] = False
        self.same(a, "sum", axis=1, where=m)

    def test_extrema_of_what_a_mask_leaves(self):
        for dtype in list(FLOATS) + INTEGERS:
            for n in (0, 1, 31, 3000):
                a = random((n,), dtype)
                for about, m in masks(n, n):
                    for ops in ("min", EXTREMA + ",sum,count", "argmax", INDICES + ",mean") + (() if dtype in FLOATS else (BITS + ",prod,sum",)):
                        self.same(a, ops, (about, n), where=m)
                        self.same(a, ops, (about, n), where=m, axis=0, keepdims=True)
                        if dtype in FLOATS:
                            self.same(a, ops, (about, n), where=m, nan="skip")
        a = numpy.full(50, numpy.nan, "f4")
        for more in ({}, {"nan": "skip"}):
            for ops in ("min,max,norminf,sum", INDICES):
                self.same(a, ops, where=numpy.arange(50) % 2 == 0, **more)
                self.same(a, ops, offsets=numpy.array([0, 20, 50]), **more)

    def test_options_of_some_ops(self):
        """Options that one op takes, beside an op that has no value somewhere: the others have their answers, digests, too. What a digest
        does not take refuses the call."""
        hole, m = numpy.array([0, 50, 50, N]), numpy.arange(N) % 9 != 1
        ways = ({"offsets": hole}, {"keys": numpy.zeros(N, "i4"), "groups": 2}, {"offsets": hole, "where": m}, {"keys": numpy.zeros(N, "i4"), "groups": 2, "where": m})
        for dtype, more in itertools.product(("f4", "i4"), ways):
            self.same(array(dtype), "count,max,mean" + ("" if len(more) > 1 else ",digest"), dtype="f4", **more)
        a, none = array("f4", (50, 60)), numpy.arange(N).reshape(50, 60) % 60 != 1
        for more in ({"dtype": "f8"}, {"ddof": 3}, {"ddof": 1, "nan": "skip", "dtype": "f4"}):
            self.same(a, "var,norminf,argmin,ptp,count", axis=0, where=none, **more)
            self.same(a, "var,norminf,argmin,ptp,count", axis=(0, 1), where=none & False, **more)
        for more in ({}, {"axis": 0}, {"axis": 1}, {"axis": 0, "keepdims": True}):  # a mask of no elements is one, too
            for ops in ("digest", "digest,sum", "sum,count"):
                self.same(numpy.zeros((5, 0), "f4"), ops, where=numpy.zeros((5, 0), bool), **more)
        for ops in ("digest", "sum,count"):
            self.assertEqual([5, 5], cured.sum(Tensor(numpy.zeros((0, 2))), axis=0, where=Tensor(numpy.zeros((0, 2), bool)), initial=5.0).tolist())
            self.same(numpy.zeros(0, "i8"), ops, where=numpy.zeros(0, bool), offsets=numpy.zeros(4, "i4"))
        a[:, 7] = numpy.nan
        self.same(a, "std,ptp,max,count", axis=0, nan="skip", ddof=2)
        for more in ({"where": none}, {"nan": "skip"}, {"ddof": 1}, {"dtype": "f4"}):
            for x, each in ((a, more), (Tensor(a), there(more))):
                with self.assertRaises((TypeError, ValueError), msg=more):
                    cured.reduce(x, "digest,any", axis=1, **each)

    def test_out(self):
        """Sums and counts go straight to tensors; extrema, which may lack a value, by way of the host."""
        a, m = array("f4", (50, 60)), next(masks((50, 60)))[1]
        flat, mask, keys = a.reshape(-1), m.reshape(-1), numpy.arange(N) % 9
        for op, dtype in (("sum", "f8"), ("mean", "f8"), ("count", "u8"), ("max", "f4"), ("var", "f8"), ("argmin", "u8"), ("ptp", "f8")):
            call = getattr(cured, op)
            for x, more in ((a, {"axis": 0, "where": m}), (a, {"axis": 1, "where": m}), (flat, {"offsets": OFFSETS, "where": mask}),
                            (flat, {"keys": keys, "groups": 9, "where": mask}), (flat, {"where": mask})) + (((a, {"axis": 1}), (flat, {})) if op == "ptp" else ()):
                want = numpy.asarray(call(x, **more), dtype)
                for out in (Tensor(numpy.zeros(want.shape, dtype)), numpy.zeros(want.shape, dtype)):
                    self.assertIs(out, call(Tensor(x), out=out, **there(more)))
                    got = out.host() if isinstance(out, Tensor) else out
                    self.assertEqual(want.tobytes(), got.tobytes(), (op, list(more)))
        with self.assertRaisesRegex(ValueError, "output 1: min of no elements has no value"):
            cured.min(Tensor(a), axis=0, where=Tensor(numpy.arange(3000).reshape(50, 60) % 60 != 1), out=Tensor(numpy.zeros(60, "f4")))

    def test_other_names(self):
        """Functions that ask for several ops, and lists, under a mask; what they ask that no kernel has is refused."""
        a, m = array("f4", (50, 60)), next(masks((50, 60)))[1]
        for call in (lambda x, where: cured.minmax(x, where=where), lambda x, where: cured.nanmax(x, where=where),
                     lambda x, where: cured.describe(x, where=where), lambda x, where: cured.describe(x, axis=0, where=where),
                     lambda x, where: cured.describe(x, axis=(0, 1), where=where), lambda x, where: cured.ptp(x, where=where),
                     lambda x, where: cured.nanargmin(x, axis=1, where=where), lambda x, where: cured.argmax(x, where=where),
                     lambda x, where: cured.reduce_each([x, x], "max,sum", where=where)[1]):
            self.assertEqual(outcome(lambda: call(a, m)), outcome(lambda: call(Tensor(a), Tensor(m))))
        none, out = numpy.zeros(0, "f4"), Tensor(numpy.full((), 9.0))
        cured.sum(Tensor(none), where=Tensor(none > 0), out=out)
        self.assertEqual(0.0, out.host()[()])

    def test_indices(self):
        """The first of equals, of NaNs and of zeros of each sign; counted in the array, the segment, the rows of a key, along the axis."""
        draw = numpy.random.default_rng(31)
        for dtype in list(FLOATS) + "? i1 u2 i4 u8".split():
            for values in [[1], [0, 1], [3, 7, 7, 3]] + ([[0.0, -0.0], [numpy.nan, 1, 2], [numpy.nan], [-numpy.nan, -numpy.inf, numpy.inf]] if dtype in FLOATS else []):
                a = draw.choice(numpy.array(values, dtype), N)
                for nan in ("propagate", "skip") if dtype in FLOATS else ("propagate",):
                    for more in ({"offsets": OFFSETS}, {"keys": draw.integers(0, 40, N), "groups": 41}, {"keys": numpy.arange(N) // 400, "groups": 8}, {"where": draw.random(N) < 0.1}):
                        self.same(a, "argmin,argmax", (values, list(more)), nan=nan, **more)
                    for axis in (0, 1, 2)[len(values) - 1:]:
                        self.same(a.reshape(10, 6, 50), INDICES, (values, axis), axis=axis, where=draw.random((10, 6, 50)) < 0.4, nan=nan)
        rows = draw.choice(numpy.array([1, 2, 3], "i2"), (300, 10))
        self.same(rows, "argmin,argmax,max", keys=draw.integers(0, 4, 300), groups=4)

    def test_ranges(self):
        """The greatest less the least, rounded once, of exponents that lie near and far."""
        draw = numpy.random.default_rng(32)
        for dtype in FLOATS:
            a = array(dtype)
            a[:2000] = random((2000,), dtype) * numpy.exp2(draw.integers(-14 if dtype == "f2" else -40, 1 if dtype == "f2" else 40, 2000)).astype(dtype)
            for more in ({"offsets": OFFSETS}, {"offsets": numpy.arange(0, N + 1, 2)}, {"keys": draw.integers(0, 900, N), "groups": 900}):
                for result in ({}, {"result_dtype": "f2"}, {"result_dtype": "f4"}):
                    self.same(a, "ptp", (dtype, list(more)), **result, **more)
            self.same(a.reshape(50, 60), "ptp,sum", axis=0)
            self.same(a.reshape(50, 60), "ptp", axis=1, nan="skip")
            self.same(numpy.array([1, 3 - 2**-9, -2**-14 * 3, 2**-24, numpy.inf, numpy.inf, -numpy.inf], dtype), "ptp", offsets=[0, 2, 3, 4, 6, 7, 7], nan="skip")
        for dtype in INTEGERS:
            for result in ({}, {"result_dtype": "i128"}, {"result_dtype": "f4"}):
                self.same(array(dtype), "ptp", dtype, keys=numpy.arange(N) % 70, groups=70, **result)
                self.same(array(dtype).reshape(50, 60), "ptp", dtype, axis=1, **result)

    def test_products(self):
        """Of integers: those that fit, those that do not, zeros that decide, and modulo 2^64."""
        draw = numpy.random.default_rng(33)
        for dtype in "? i1 u2 i4 u8 i8".split():
            for values in [[1], [0, 1], [1, 1, 1, 1, 2], [0, 5, 7, 101]] + ([[-1, 1], [-1, 1, 1, -2], [-3, 5]] if dtype[0] == "i" else []):
                a = draw.choice(numpy.array(values).astype(dtype), N)
                for wrap in ({}, {"overflow": "wrap"}):
                    for more in ({"offsets": OFFSETS}, {"offsets": numpy.arange(0, N + 1, 20)}, {"keys": draw.integers(0, 60, N), "groups": 61},
                                 {"where": draw.random(N) < 0.02}, {"where": draw.random(N) < 0.5}):
                        self.same(a, "prod", (values, list(more), wrap), **wrap, **more)
        a = numpy.array([-2**62, 2, -2**63, 1, 2**62, 2, 0, 2**62, 4, 3, 5], "i8")
        for borders in ([0, 2], [2, 4], [4, 6], [4, 7], [7, 9], [9, 11], [0, 2, 2, 4, 7]):
            self.same(a, "prod", borders, offsets=numpy.array(borders))
        self.same(a, "prod", where=a > 2**40, result_dtype="u8")
        for result in ("i4", "u1", "i8"):
            self.same(a, "prod", result, where=numpy.arange(11) > 8, result_dtype=result)

    def test_partials(self):
        """Of whole arrays under masks: the CPU's bytes, of any cut; what is refused is refused alike."""
        for turn, (dtype, (kind, m)) in enumerate(itertools.product(list(FLOATS) + INTEGERS, masks((40, 70)))):
            a = array(dtype, (40, 70))
            ops = (",".join((EXTREMA, COUNTS, SUMS, "ptp", "sumsq,var,count_inf" if dtype in FLOATS else "sumsq," + BITS)), "min", "count", "sum,norminf", "any,var")
            for some in (ops[0], ops[1 + turn % 4]):
                wanted, got = (cured.partial(x, some, where=where) for x, where in ((a, m), (Tensor(a), Tensor(m))))
                self.assertEqual(bytes(wanted), bytes(got), (dtype, kind, some))
            cut = turn % 41
            parts = [cured.partial(Tensor(x), some, where=Tensor(y)) for x, y in ((a[:cut], m[:cut]), (a[cut:], m[cut:]))]
            self.assertEqual(wanted, cured.merge(parts), (dtype, kind, some))
        only = numpy.where(m, numpy.nan, 1).astype("f4")
        self.assertEqual(cured.partial(only, "min,sum", where=m), cured.partial(Tensor(only), "min,sum", where=Tensor(m)))
        for words, ops, more in (("no position", "argmin", {}), ("takes no mask|no position", "digest", {}), ("first: a part under a mask", "sum", {"first": 3}),
                                 ("median", "median", {}), ("no position", "prod", {})):
            for x, y in ((only, m), (Tensor(only), Tensor(m))):
                with self.assertRaisesRegex((TypeError, ValueError, NotImplementedError, cured.Error), words, msg=(ops, more)):
                    cured.partial(x, ops, where=y, **more)

    def test_masks_that_have_a_buffer_too(self):
        a, keep, keys = array("f4"), numpy.arange(N) % 3 == 0, numpy.arange(N, dtype="i4") % 7
        of = {"": {}, "keys": {"keys": keys}, "offsets": {"offsets": OFFSETS}}
        for what, more in of.items():
            wanted = outcome(lambda: cured.reduce(a, "sum,max", where=keep, **more))
            self.assertEqual(wanted, outcome(lambda: cured.reduce(Tensor(a), "sum,max", where=Buffered(keep), **there(more))), what)
        self.assertEqual(bytes(cured.partial(a, "sum", keys=keys, where=keep)), bytes(cured.partial(Tensor(a), "sum", keys=Tensor(keys), where=Buffered(keep))))
        for mask in (keep, keep.tobytes(), memoryview(keep)):
            with self.assertRaisesRegex(TypeError, "where: .*bool tensor on the same GPU"):
                cured.sum(Tensor(a), where=mask)

    def test_views(self):
        a, m = array("f4"), next(masks(N))[1]
        t, mask = Tensor(a), Tensor(m)
        for first in range(5):
            x, y = a[first:2000 + first], m[2 * first:2000 + 2 * first]
            for more in ({}, {"offsets": numpy.array([0, 40, 1999])}):
                self.assertEqual(outcome(lambda: cured.reduce(x, "min,sum", where=y, **more)),
                                 outcome(lambda: cured.reduce(part(t, first, 2000), "min,sum", where=part(mask, 2 * first, 2000), **more)))

    def test_captures(self):
        """Offsets and a mask in device memory may be replayed; offsets of the host may not."""
        a, m = random((N,), "f4"), next(masks(N))[1]
        stream, graph, made = new_stream(), ctypes.c_void_p(), ctypes.c_void_p()
        t, mask, borders = (Tensor(x, stream=stream.value) for x in (a, m, OFFSETS))
        out = Tensor(numpy.zeros(59), stream=stream.value)
        self.assertEqual(0, CUDA.cudaStreamBeginCapture(stream, 2))
        with self.assertRaisesRegex(cured.Error, "put them in device memory"):
            cured.sum(t, offsets=OFFSETS, where=mask, out=out)
        cured.sum(t, offsets=borders, where=mask, out=out)
        self.assertEqual(0, CUDA.cudaStreamEndCapture(stream, ctypes.byref(graph)))
        self.assertEqual(0, CUDA.cudaGraphInstantiate(ctypes.byref(made), graph, ctypes.c_ulonglong(0)))
        for i in range(3):
            t.copy_to_device(a + numpy.float32(i))
            self.assertEqual(0, CUDA.cudaGraphLaunch(made, stream))
            self.assertEqual(cured.sum(a + numpy.float32(i), offsets=OFFSETS, where=m).tobytes(), out.host().tobytes())
        CUDA.cudaGraphExecDestroy(made)
        CUDA.cudaGraphDestroy(graph)

    def test_what_is_wrong(self):
        a, m = Tensor(random((100,), "i4")), Tensor(numpy.ones(100, bool))
        for borders, words in (([0, 50, 40, 100], "offsets"), ([0, 101], "offsets"), ([-1, 4], "offsets")):
            wrong = numpy.array(borders)
            for own, op, more in itertools.product((wrong, Tensor(wrong)), ("sum", "max"), ({}, {"where": m})):
                with self.assertRaisesRegex(ValueError, words):
                    getattr(cured, op)(a, offsets=own, **more)
        f = Tensor(random((100,), "f4"))
        for words, call in (("no kernel for prod of f32 by offsets", lambda: cured.prod(f, offsets=[0, 100])),
                            ("no kernel for prod of f32 under a mask", lambda: cured.prod(f, where=m)),
                            ("no kernel for sumsq of i32 by key", lambda: cured.sumsq(a, keys=Tensor(numpy.zeros(100, "i1")), groups=1, where=m)),
                            ("partials of prod under a mask", lambda: cured.partial(a, "sum,prod", where=m)),
                            ("median.*select the elements", lambda: cured.median(f, where=m)),
                            ("digest", lambda: cured.digest(f, where=m))):
            with self.assertRaisesRegex((TypeError, ValueError, NotImplementedError, cured.Error), words, msg=words):
                call()


if __name__ == "__main__":
    unittest.main()
