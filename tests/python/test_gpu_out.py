"""out= of a GPU's arrays, by a daemon with the stand-in GPU: which answers the GPU writes in place, which are copied, and what is refused. Device
memory is a file that is mapped here; tests/python/gpu_tensors.py asks a real GPU for torch's tensors and CuPy's arrays."""
import ctypes
import gc
import itertools
import mmap
import os

import numpy as np

from support import Case, Exchanged, cured, unittest
from cured_daemon import DaemonTest, wait_for

FOLDER = os.environ.get("CURED_TEST_DIR", "")
PROGRAM, DRIVER = os.path.join(FOLDER, "cured-fake-gpu"), os.path.join(FOLDER, "cuda", "libcuda.so.1")
RANDOM = np.random.default_rng(5)
asarray = np.asarray  # as CuPy has it


def setUpModule():
    global driver
    for path in (PROGRAM, DRIVER):
        if not os.path.exists(path):
            raise unittest.SkipTest("%s is not built" % os.path.basename(path))
    driver = ctypes.CDLL(DRIVER)


class Where(tuple):
    """A device as DLPack and as torch have it."""
    type = "cuda"


class Device:
    """An array of the GPU, as CuPy's: the file is the device's memory."""
    numbers = itertools.count()

    def __init__(self, array, folder, at=0, order="C"):
        array = np.asarray(array)
        name = os.path.join(folder, "d%d" % next(self.numbers))
        size = at + max(array.nbytes, 1) + 64
        with open(name, "w+b") as f:
            f.truncate(size)
            self.map = mmap.mmap(f.fileno(), size)
        self.host = np.ndarray(array.shape, array.dtype, self.map, at, order=order)
        self.host[...] = array
        self.bytes = np.frombuffer(self.map, "u1")
        self.address = self.bytes.ctypes.data
        if driver.fake_cuda_share(ctypes.c_ulonglong(self.address), ctypes.c_size_t(size), name.encode()):
            raise RuntimeError("too many shared files")

    shape = property(lambda self: self.host.shape)
    ndim = property(lambda self: self.host.ndim)
    dtype = property(lambda self: self.host.dtype)

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.host.shape, "typestr": self.host.dtype.str, "data": (self.host.ctypes.data, False), "version": 3,
                "strides": None if self.host.flags.c_contiguous else self.host.strides, "stream": 1}

    def __setitem__(self, where, values):
        self.host[where] = values
        self.copied = True

    copied = False


class Out(DaemonTest, Case):
    PROGRAM = PROGRAM
    OPTIONS = {"backend": "auto", "gpu_streams": 2, "cpu_workers": 1, "slabs": 16, "gpu_timeout_ms": 60000}

    def setUp(self):
        self.client = cured.Client(self.daemon.address)
        self.addCleanup(self.client.close)

    def put(self, array, **more):
        return Device(array, self.folder, **more)

    def check(self, a, ops, outs, direct, **options):
        """outs have the answers of the array, in their own types."""
        wanted = cured.reduce(a, ops, axis=1, **options)
        got = self.client.reduce(self.put(a), ops, axis=1, out=outs, **options)
        for op, out in zip(ops.split(","), outs):
            self.assertIs(got[op], out)
            self.assert_arrays(out.host, np.asarray(wanted[op]).astype(out.dtype), op)
            self.assertEqual(direct, not out.copied, op)

    def test_in_place(self):
        for dtype in ("f4", "f8", "f2", "i4", "u1"):
            a = RANDOM.integers(0, 100, (3000, 8)).astype(dtype)
            like = cured.reduce(a, "mean,max,argmin", axis=1)
            for at in (0, 8, 64):
                self.check(a, "mean,max,argmin", [self.put(np.zeros_like(each), at=at) for each in (like.mean, like.max, like.argmin)], True)
        self.check(a, "max", (self.put(np.zeros((3000, 1), "u1")),), True, keepdims=True)
        out = self.put(np.zeros(3000, "f4"))
        waits, contexts = (ctypes.c_int.in_dll(driver, "fake_cuda_" + name) for name in ("waits", "contexts"))
        before = waits.value
        self.assertIs(self.client.sum(self.put(RANDOM.random((3000, 9))), axis=1, out=out), out)
        self.assertEqual((before + 2, 0), (waits.value, contexts.value), "the streams of both are waited for")

    def test_the_type_is_that_of_out(self):
        """Rounded once, to the type of out: not to f64 first."""
        a = np.array([[1, 2**-24, 2**-60], [1, 2**-24, 0]])
        out = self.put(np.zeros(2, "f4"))
        self.assertIs(self.client.sum(self.put(a), axis=1, out=out), out)
        self.assertEqual(([np.float32(1) + np.float32(2**-23), 1], False), (out.host.tolist(), out.copied))

    def test_slices_of_only_nans(self):
        """A GPU writes no statuses, so these come from the daemon's host: a slice without an extremum raises."""
        a = RANDOM.random((3000, 8))
        self.check(a, "min,argmax", [self.put(np.zeros(3000)), self.put(np.zeros(3000, "u8"))], True, nan="skip")
        a[7] = np.nan
        for op, out in (("min", np.zeros(3000)), ("argmax", np.zeros(3000, "u8"))):
            with self.assertRaisesRegex(ValueError, "output 7: %s of only NaNs has no value; 1 of 3000" % op):
                getattr(self.client, op)(self.put(a), axis=1, nan="skip", out=self.put(out))
        r = self.client.reduce(self.put(a), "max,sum", axis=1, nan="skip", out=(self.put(np.zeros(3000)), self.put(np.zeros(3000))))
        self.assert_arrays(r.sum.host, cured.sum(a, axis=1, nan="skip"))
        with self.assertRaisesRegex(ValueError, "only NaNs"):
            r.max

    def exchanged(self, array):
        """As a tensor of torch: its type has functions in C, and what is asked by attributes is noted."""
        device, kind = self.put(array), Exchanged.table()
        t = kind(b"", {"f": 2, "i": 0}[device.dtype.kind], 8 * device.dtype.itemsize, device.shape, device=Where((2, 0)))
        t.raw, t.array, t.asked = (ctypes.c_char * device.host.nbytes).from_address(device.address), device, []
        kind.dtype = property(lambda t: t.asked.append("dtype") or t.array.dtype)
        kind.ndim = property(lambda t: t.asked.append("ndim") or t.array.ndim)
        kind.copy_to_device = lambda t, values: t.array.__setitem__(..., values)
        return t

    def test_tensors_whose_type_is_asked_in_c(self):
        a = RANDOM.random((300, 40)).astype("f4")
        for dtype in ("f4", "f8"):
            t, out = self.exchanged(a), self.exchanged(np.zeros(300, dtype))
            for ops in ("sum", "max"):
                wanted = getattr(cured, ops)(a, axis=1, **({"dtype": dtype} if ops == "sum" else {}))
                self.assertIs(getattr(self.client, ops)(t, axis=1, out=out), out)
                self.assert_arrays(out.array.host, wanted.astype(dtype), ops)
            # Maxima of f32 are not f64, which is found out in Python.
            self.assertEqual((dtype == "f8", dtype == "f8"), (out.array.copied, "dtype" in out.asked))
        shaped = self.exchanged(np.zeros(299, "f4"))
        with self.assertRaisesRegex(ValueError, "has the shape"):
            self.client.sum(t, axis=1, out=shaped)
        self.assertEqual(shaped.deleted, 0)
        whole = self.exchanged(np.zeros((), "f8"))
        self.assertIs(self.client.sum(t, out=whole), whole)
        self.assertEqual(cured.sum(a), whole.array.host[()])

    def test_regions_are_kept(self):
        """One for what is read and one for what is written, as long as the arrays live."""
        held = lambda: self.daemon.counters()["device_regions"]
        gc.collect()
        wait_for("the regions of other clients to go", lambda: held() == 0)
        a, out = self.put(np.ones((50, 4))), self.put(np.zeros(50))
        for _ in range(3):
            self.client.sum(a, axis=1, out=out)
            self.assertEqual(2, held())
        self.client.sum(out, axis=0)  # the same array as input
        self.assertEqual(3, held())
        del a, out
        gc.collect()
        wait_for("the regions to go", lambda: self.client.sum(b"\1") == 1 and held() == 0)

    def test_copied(self):
        """Other types and orders, shared bytes, and input that lies elsewhere."""
        a = RANDOM.random((40, 5)).astype("f4")
        self.check(a, "sum,max", (self.put(np.zeros(40)), self.put(np.zeros(40))), False)
        self.check(a, "sum", (self.put(np.zeros((40)), at=3),), False)
        for out in (self.put(np.zeros((40, 1, 5)), order="F"), self.put(np.zeros((40, 1, 5)))):
            b = RANDOM.random((40, 6, 5))
            self.client.sum(self.put(b), axis=1, keepdims=True, out=out)
            self.assert_arrays(out.host, cured.sum(b, axis=1, keepdims=True))
            self.assertEqual(out.host.flags.c_contiguous, not out.copied)
        out, heap = self.put(np.zeros(40)), np.zeros(40)
        self.assertIs(self.client.sum(a, axis=1, out=out), out)
        self.assert_arrays(out.host, cured.sum(a, axis=1))
        self.assertIs(self.client.sum(self.put(a), axis=1, out=heap), heap)
        self.assert_arrays(heap, cured.sum(a, axis=1))
        self.client.reduce(self.put(a), "sum,mean", axis=1, out=(out, heap))
        self.assert_arrays(heap, cured.mean(a, axis=1))
        self.client.sum(self.put(a[:, :0]), axis=1, out=out)
        self.assertEqual(0, out.host.sum())
        single = self.put(np.zeros(()))
        self.assertIs(self.client.sum(self.put(a), out=single), single)
        self.assertEqual(cured.sum(a), single.host[()])
        both = self.put(np.zeros(40, "f4"))
        self.client.reduce(self.put(a), "min,max", axis=1, out=(both, both))
        self.assert_arrays(both.host, a.max(1))

    def test_where_input_and_output_meet(self):
        a = RANDOM.random((6, 6))
        whole, wanted = self.put(a), cured.sum(a, axis=0)

        class Row(Device):
            def __init__(self):
                self.host = whole.host[2]

        row = Row()
        self.assertIs(self.client.sum(whole, axis=0, out=row), row)
        self.assertTrue(row.copied)
        self.assert_arrays(whole.host[2], wanted)

    def test_refusals(self):
        a = self.put(np.ones((3, 4)))
        for out, error, words in ((self.put(np.zeros((3, 1))), ValueError, "wrong number of dimensions: Found 2 but expected 1"),
                                  (self.put(np.zeros(4)), ValueError, "has the shape"), (self.put(np.zeros(3, "i8")), TypeError, "Cannot cast"),
                                  ((self.put(np.zeros(3)),) * 2, ValueError, "each of 1"), (object(), TypeError, "output must be an array")):
            with self.assertRaisesRegex(error, words):
                self.client.sum(a, axis=1, out=out)
        with self.assertRaises(OverflowError):
            self.client.sum(self.put(np.full((2, 2), 2**63 - 1)), axis=1, out=self.put(np.zeros(2, "i8")))
        with cured.Client("embedded:") as here, self.assertRaisesRegex(Exception, "embedded:"):
            here.sum(self.put(np.ones((3, 4))), axis=1, out=self.put(np.zeros(3)))
        elsewhere = type("Elsewhere", (), {"device": type("D", (), {"type": "mps"})()})()
        with self.assertRaisesRegex(TypeError, "CUDA device"):
            self.client.sum(a, axis=1, out=elsewhere)


if __name__ == "__main__":
    unittest.main()
