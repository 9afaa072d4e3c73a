"""out= tensors for answers that may lack a value, over the runtime double: they stay on the GPU, and 8 bytes of status come to the host. By key, by
offsets, along axes and under masks; what lacks a value is said as of answers in host memory; captures, the order of streams, and what is left behind."""
import ctypes
import itertools
import unittest

import numpy
from support import Case, cured
from test_cuda_here import CUDA, Counts, Tensor, outcome, random
from test_cuda_ways import copy, new_stream, slow_write

CUDA.cr_double_calls.restype = CUDA.cr_double_device_bytes.restype = ctypes.c_uint64
GROUPS, N = 9, 3000
FLOATS, INTEGERS = ("f2", "f4", "f8"), ("i1", "u2", "i4", "u8", "i8")


def counts():
    found = Counts()
    CUDA.cr_double_count(ctypes.byref(found))
    return found


def calls(name):
    return CUDA.cr_double_calls(name.encode())


def ways(a, k):
    """(name, the options, the host's options, how the answers are shaped)."""
    mask = numpy.random.default_rng(3).random(a.shape) < 0.7
    borders = numpy.linspace(0, a.size, GROUPS + 1).astype("i8")
    rows, keep = a.reshape(30, 100), mask.reshape(30, 100)
    yield "keys", a, {"keys": k, "groups": GROUPS}
    yield "keys, where", a, {"keys": k, "groups": GROUPS, "where": mask}
    yield "offsets", a, {"offsets": borders}
    yield "offsets, where", a, {"offsets": borders, "where": mask}
    yield "axis 0", rows, {"axis": 0}
    yield "axis 1", rows, {"axis": 1}
    yield "axis, where", rows, {"axis": 1, "where": keep}


def on_gpu(options, stream=None):
    return {name: Tensor(value, stream=stream) if isinstance(value, numpy.ndarray) else value for name, value in options.items()}


class Placed(Case):
    def setUp(self):
        self.k = numpy.random.default_rng(5).integers(0, GROUPS, N).astype("i4")
        self.k[:GROUPS] = range(GROUPS)

    def tearDown(self):
        CUDA.cr_double_seed(ctypes.c_uint64(0))

    def live(self):
        """Bytes of device memory."""
        return CUDA.cr_double_device_bytes()

    def to_tensor(self, op, a, options, wanted, what):
        """The answers, and that they never were in host memory."""
        t, given, out = Tensor(a), on_gpu(options), Tensor(numpy.zeros(wanted.shape, wanted.dtype))
        before = counts()
        copies = calls("cudaMemcpy"), calls("cudaMemcpyAsync")
        self.assertIs(out, getattr(cured, op)(t, out=out, **given), what)
        self.assertEqual((copies[0], before.stream_syncs), (calls("cudaMemcpy"), counts().stream_syncs), what)
        self.assertLessEqual(calls("cudaMemcpyAsync"), copies[1] + 2, what)  # the status; of NaNs that are skipped how many there are
        self.assertEqual(wanted.tobytes(), out.host().tobytes(), what)

    def test_they_stay(self):
        for dtype in FLOATS + INTEGERS:
            a = random((N,), dtype)
            if a.dtype.kind == "f":
                a[[50, 70]] = numpy.nan, numpy.inf
            ops = ("min", "max", "argmin", "argmax", "norminf", "ptp") + (() if a.dtype.kind == "f" else ("sum", "norm1", "count"))
            if a.dtype.itemsize == 8 and a.dtype.kind != "f":
                a = a // a.dtype.type(1 << 40)
            for (name, x, options), op in itertools.product(ways(a, self.k), ops):
                for nan in ({}, {"nan": "skip"})[:1 + (a.dtype.kind == "f" and op != "ptp")]:
                    self.to_tensor(op, x, {**options, **nan}, getattr(cured, op)(x, **options, **nan), (dtype, name, op, nan))

    def test_signed_tensors(self):
        """Indices and counts lie in int64 as in uint64; sums do not."""
        a = random((N,), "f4")
        for (name, x, options), op, nan in itertools.product(ways(a, self.k), ("argmin", "argmax", "count", "count_nonzero", "count_nan"), (None, "skip")):
            more = {**options, **({"nan": nan} if nan and op != "count_nan" else {})}
            self.to_tensor(op, x, more, getattr(cured, op)(x, **more).astype("i8"), (name, op, nan))
        u, out = random((N,), "u8") // numpy.uint64(2 * N), Tensor(numpy.zeros(GROUPS, "i8"))
        self.assertIs(out, cured.sum(Tensor(u), keys=Tensor(self.k), groups=GROUPS, out=out))  # by the host, which looks whether they fit
        self.assertEqual(cured.sum(u, keys=self.k, groups=GROUPS).tolist(), out.host().tolist())
        nans = a.copy()
        nans[self.k == 4] = numpy.nan
        with self.assertRaisesRegex(ValueError, "output 4: argmax"):
            cured.argmax(Tensor(nans), keys=Tensor(self.k), groups=GROUPS, nan="skip", out=out)

    def test_several(self):
        a = random((N,), "i4")
        for name, x, options in ways(a, self.k):
            ops = "sum,min,argmax,mean"
            wanted = cured.reduce(x, ops, **options)
            outs = tuple(Tensor(numpy.zeros(wanted[op].shape, wanted[op].dtype)) for op in wanted)
            t, given = Tensor(x), on_gpu(options)
            copies = calls("cudaMemcpy")
            got = cured.reduce(t, ops, out=outs, **given)
            self.assertEqual(copies, calls("cudaMemcpy"), name)
            for op, out in zip(wanted, outs):
                self.assertIs(out, got[op])
                self.assertEqual(wanted[op].tobytes(), out.host().tobytes(), (name, op))

    def test_what_lacks_a_value_is_said(self):
        """As of answers in host memory: the same error and sentence; of several ops the others are there."""
        a, big = random((N,), "f4"), numpy.full(N, 2**62, "i8")
        nans, rows = a.copy(), numpy.zeros((30, 100), "f4")
        nans[self.k == 4] = numpy.nan
        rows[7] = numpy.nan
        few = numpy.where(self.k == 3, 2, self.k)
        gap = numpy.array([0, 5, 5, N])
        cases = [(a, {"keys": few, "groups": GROUPS}, op) for op in ("min", "argmax", "ptp", "max,sum,argmin")]
        cases += [(a, {"offsets": gap}, op) for op in ("max", "argmin", "min,mean")]
        cases += [(nans, {"keys": self.k, "groups": GROUPS, "nan": "skip"}, op) for op in ("min", "argmax", "ptp", "max,count,argmin")]
        cases += [(rows, {"axis": 1, "nan": "skip"}, op) for op in ("max", "argmin", "ptp", "sum,argmax")]
        cases += [(big, {"keys": self.k, "groups": GROUPS}, op) for op in ("sum", "sum,count,max")]
        cases += [(big.reshape(30, 100), {"axis": 0}, op) for op in ("sum", "norm1,min", "prod")]
        for x, options, ops in cases:
            with self.subTest((options.keys(), ops)):
                wanted = cured.reduce(Tensor(x), ops, **on_gpu(options))
                like = {op: outcome(lambda op=op: wanted[op]) for op in wanted}
                shape = (GROUPS,) if "keys" in options else (3,) if "offsets" in options else (100 if options["axis"] == 0 else 30,)
                types = {op: getattr(cured, op)(x[:1] if x.ndim == 1 else x[:1, :1], keepdims=True, axis=0).dtype for op in wanted}
                outs = tuple(Tensor(numpy.zeros(shape, types[op])) for op in wanted)
                try:
                    got = cured.reduce(Tensor(x), ops, out=outs, **on_gpu(options))
                except (ValueError, OverflowError) as error:
                    got = {op: error for op in wanted}
                for op, out in zip(wanted, outs):
                    self.assertEqual(like[op], outcome(lambda op=op: got[op]) if not isinstance(got, dict) else type(got[op]), op)
                if len(outs) == 1:
                    said = []
                    for more in ({}, {"out": outs[0]}):
                        with self.assertRaises((ValueError, OverflowError)) as caught:
                            getattr(cured, ops)(Tensor(x), **on_gpu(options), **more)
                        said.append((type(caught.exception), str(caught.exception)))
                    self.assertEqual(*said)

    def test_it_is_found_by_one_fold(self):
        """What lacks a value costs the kernels of the same call whose answers all have one; of NaNs a few more look through the answers."""
        a, big = random((N,), "f4"), numpy.full(N, 2**62, "i8")
        few, gap, nans, rows = numpy.where(self.k == 3, 2, self.k), numpy.array([0, 5, 5, N]), a.copy(), a.reshape(30, 100).copy()
        nans[self.k == 4] = numpy.nan
        rows[7] = numpy.nan
        by_key, skip = {"keys": self.k, "groups": GROUPS}, {"nan": "skip"}
        for op, good, bad, same, other in (
                ("min", a, a, by_key, {"keys": few}), ("argmax", a, a, by_key, {"keys": few}), ("sum", big // 2**40, big, by_key, {}),
                ("max", a, a, {"offsets": numpy.array([0, 5, 9, N])}, {"offsets": gap}), ("sum", big // 2**40, big, {"offsets": gap}, {}),
                ("sum", (big // 2**40).reshape(30, 100), big.reshape(30, 100), {"axis": 0}, {}),
                ("min", a, nans, {**by_key, **skip}, {}), ("argmax", a.reshape(30, 100), rows, {"axis": 1, **skip}, {})):
            like = getattr(cured, op)(good, **same)
            for out in ({}, {"out": Tensor(numpy.zeros(like.shape, like.dtype))}):
                launches = []
                for array, options in ((good, same), (bad, {**same, **other})):
                    t, given, before = Tensor(array), on_gpu(options), calls("launch")
                    try:
                        getattr(cured, op)(t, **given, **out)
                        self.assertIs(array, good)
                    except (ValueError, OverflowError):
                        self.assertIs(array, bad)
                    launches.append(calls("launch") - before)
                    before = calls("launch")
                looks = 0
                if out and "nan" in same:
                    cured.max(out["out"])
                    looks = calls("launch") - before + 1
                self.assertLessEqual(launches[1], launches[0] + looks, (op, same, out))

    def test_keys_and_offsets_that_are_wrong(self):
        a, out = Tensor(random((N,), "f4")), Tensor(numpy.zeros(GROUPS, "f4"))
        wrong = self.k.copy()
        wrong[77] = GROUPS
        with self.assertRaisesRegex(ValueError, "keys: number 77 is 9"):
            cured.min(a, keys=Tensor(wrong), groups=GROUPS, out=out)
        with self.assertRaisesRegex(ValueError, r"offsets\[2\]"):
            cured.min(a, offsets=Tensor(numpy.array([0, 9, 5, N])), out=Tensor(numpy.zeros(3, "f4")))

    def test_captures(self):
        """A graph has nobody who is told: refused, and the capture goes on."""
        a, stream, graph, made = random((N,), "f4"), new_stream(), ctypes.c_void_p(), ctypes.c_void_p()
        t, keys = Tensor(a, stream=stream.value), Tensor(self.k, stream=stream.value)
        least, sums = (Tensor(numpy.zeros(GROUPS, d), stream=stream.value) for d in ("f4", "f8"))
        places = Tensor(numpy.zeros(2, "u8"), stream=stream.value)
        cured.min(t, keys=keys, groups=GROUPS, out=least)
        self.assertEqual(0, CUDA.cudaStreamBeginCapture(stream, 2))
        for call in (lambda: cured.min(t, keys=keys, groups=GROUPS, out=least), lambda: cured.argmax(t, offsets=[0, 5, N], out=places)):
            with self.assertRaisesRegex(cured.Error, "captured"):
                call()
        cured.sum(t, keys=keys, groups=GROUPS, out=sums)
        self.assertEqual(0, CUDA.cudaStreamEndCapture(stream, ctypes.byref(graph)))
        self.assertEqual(0, CUDA.cudaGraphInstantiate(ctypes.byref(made), graph, ctypes.c_ulonglong(0)))
        for i in range(3):
            b = a * numpy.float32(i + 1)
            t.copy_to_device(b)
            self.assertEqual(0, CUDA.cudaGraphLaunch(made, stream))
            cured.min(t, keys=keys, groups=GROUPS, out=least)
            self.assertEqual(cured.sum(b, keys=self.k, groups=GROUPS).tobytes(), sums.host().tobytes())
            self.assertEqual(cured.min(b, keys=self.k, groups=GROUPS).tobytes(), least.host().tobytes())
        CUDA.cudaGraphExecDestroy(made)
        CUDA.cudaGraphDestroy(graph)

    def test_streams(self):
        """Behind a slow writer of the array and of the keys; before a writer behind the call; to a tensor of another stream, whose earlier reader and
        later reader have what they should."""
        for seed in range(6):
            CUDA.cr_double_seed(ctypes.c_uint64(seed))
            main, other, third = new_stream(seed % 2), new_stream(), new_stream()
            true, false = random((N,), "i4", seed), random((N,), "i4", 99)
            t, keys = Tensor(false, stream=main.value), Tensor(numpy.zeros(N, "i4"), stream=third.value)
            old = numpy.arange(GROUPS, dtype="i4")
            out, before, after = (Tensor(old, stream=other.value) for _ in range(3))
            spoil = Tensor(false, stream=main.value)
            slow_write(main, t, true)
            slow_write(third, keys, self.k)
            copy(other, before, out)
            cured.max(t, keys=keys, groups=GROUPS, out=out)
            copy(other, after, out)
            copy(main, t, spoil)
            CUDA.cudaDeviceSynchronize()
            self.assertEqual(old.tobytes(), before.host().tobytes())
            self.assertEqual(cured.max(true, keys=self.k, groups=GROUPS).tobytes(), after.host().tobytes())
            self.assertEqual(false.tobytes(), t.host().tobytes())

    def test_nothing_is_left(self):
        """Of calls that answer, of those that lack a value, and of those that fail at any call of the runtime."""
        a, out, least = Tensor(random((N,), "i4")), Tensor(numpy.zeros(GROUPS, "i4")), numpy.where(self.k == 3, 2, self.k)
        keys, fewer = Tensor(self.k), Tensor(least)
        wanted = cured.min(a.host(), keys=self.k, groups=GROUPS)
        CUDA.cr_double_fail.argtypes = [ctypes.c_char_p, ctypes.c_uint, ctypes.c_int]

        def attempt():
            cured.min(a, keys=keys, groups=GROUPS, out=out)
            with self.assertRaises(ValueError):
                cured.min(a, keys=fewer, groups=GROUPS, out=out)
        attempt()
        CUDA.cudaDeviceSynchronize()
        before = self.live()
        attempt()
        failed = 0
        for name in ("cudaMallocAsync", "cudaMemsetAsync", "cudaMemcpyAsync", "cudaEventRecord", "cudaFreeAsync", "launch"):
            for nth in range(1, 12):
                CUDA.cr_double_fail(name.encode(), nth, 2)
                try:
                    cured.min(a, keys=keys, groups=GROUPS, out=out)
                except (cured.Error, MemoryError):
                    failed += 1
                CUDA.cr_double_fail(None, 0, 0)
        self.assertGreater(failed, 6)
        CUDA.cudaDeviceSynchronize()
        out.copy_to_device(numpy.zeros(GROUPS, "i4"))
        attempt()
        cured.min(a, keys=keys, groups=GROUPS, out=out)
        self.assertEqual(wanted.tobytes(), out.host().tobytes())
        self.assertLessEqual(self.live(), before + 4096)  # where cudaFreeAsync failed, a word and no more


if __name__ == "__main__":
    unittest.main()
