"""A thread that takes denormals for zero and rounds toward zero, as a library built with fast-math leaves it: answers have the bits that
they have elsewhere, and the thread stays as it was."""
import asyncio
import ctypes
import platform

import numpy as np
from support import OPS, WHOLE, Case, bf16, cured, unittest
from cured_daemon import DaemonTest  # noqa: I100: support finds it

# In glibc's fenv_t, where the control register lies, and its bits for zeros instead of denormals and for rounding toward zero.
PLACES = {"x86_64": (28, 0xe040), "aarch64": (0, 3 << 22 | 1 << 24)}
FLOAT_OPS = [op for op in OPS if not op.startswith("bit_")]


class Strange:
    """A context in which the thread is in that state."""

    def __init__(self):
        self.libm = ctypes.CDLL("libm.so.6")
        self.before, self.inside = (ctypes.c_ubyte * 64)(), (ctypes.c_ubyte * 64)()
        self.place, self.bits = PLACES[platform.machine()]

    def control(self):
        self.libm.fegetenv(self.inside)
        return ctypes.c_uint32.from_buffer(self.inside, self.place)

    def __enter__(self):
        self.libm.fegetenv(self.before)
        self.control().value |= self.bits
        self.libm.fesetenv(self.inside)

    def __exit__(self, *_):
        self.stayed = self.control().value & self.bits == self.bits
        self.libm.fesetenv(self.before)


def denormals(dtype, n=240):
    """Denormals and numbers around 1, of both signs."""
    random = np.random.default_rng(3)
    bits = {"f2": 10, "f4": 23, "f8": 52}[dtype]
    word = "u" + dtype[1]
    x = random.integers(1, 2**bits, n, "u8")
    x[1::2] |= (2 ** (8 * int(dtype[1]) - bits - 2) - 1) << bits
    x[random.random(n) < 0.5] |= 1 << (8 * int(dtype[1]) - 1)
    return x.astype(word).view(dtype)


def bits_of(answer):
    return np.asarray(answer).tobytes()


@unittest.skipUnless(platform.machine() in PLACES, "where the control register lies in fenv_t is not known here")
class Bits(DaemonTest, Case):
    def check(self, call, what=""):
        strange = Strange()
        wanted = bits_of(call())
        with strange:
            got = call()
        self.assertTrue(strange.stayed, what)
        self.assertEqual(wanted, bits_of(got), what)

    def test_the_state_is_strange(self):
        tiny = np.array([5e-324])
        with Strange():
            zero = bits_of(tiny + tiny)
        self.assertEqual(bits_of(0.0), zero, "this machine has no such state, or the test does not set it")

    def test_every_op(self):
        for dtype in ("f2", "f4", "f8"):
            a = denormals(dtype).reshape(4, 6, 10)
            keep = (np.arange(240) % 7 != 1).reshape(a.shape)
            for op in FLOAT_OPS:
                function = getattr(cured, op)
                for axis in (None, 0, 1, 2, (0, 2)):
                    self.check(lambda: function(a, axis=axis), "%s of %s along %s" % (op, dtype, axis))
                    if op not in WHOLE:
                        self.check(lambda: function(a.astype(">" + dtype), axis=axis, where=keep), "%s of %s masked" % (op, dtype))

    def test_bfloat16(self):
        raw = (denormals("f4").view("u4") >> 16).astype("u2").tobytes()
        for op in FLOAT_OPS:
            self.check(lambda: getattr(cured, op)(bf16(raw)), op)
            self.check(lambda: getattr(cured, op)(bf16(raw, (24, 10)), axis=1), op)

    def test_results_partials_and_files(self):
        a = denormals("f4")
        self.check(lambda: repr(cured.describe(a)))
        self.check(lambda: repr(cured.partial(a, FLOAT_OPS).finish(FLOAT_OPS)))
        self.check(lambda: repr(cured.merge([cured.partial(a[:9], ["min", "sum"]), cured.partial(a[9:], ["min", "sum"], first=9)])
                                .finish("min,sum")))
        self.check(lambda: repr(cured.reduce_parts([a[:9], a[9:]], "min,max,norminf")))
        np.save(self.folder + "/a.npy", a)
        self.check(lambda: repr(cured.file(self.folder + "/a.npy").reduce("min,max,mean")))

    def test_out_and_initial(self):
        a = denormals("f4").reshape(24, 10)
        for op in ("min", "max", "sum", "norminf"):
            for axis in (None, 1):
                for dtype in ("f4", "f8", ">f8"):
                    self.check(lambda: getattr(cured, op)(a, axis=axis, out=np.zeros(() if axis is None else 24, dtype)), (op, axis, dtype))
        for dtype in ("f4", "f8"):
            for initial in (1e-40, 3e-310):
                first = float(np.array(initial, dtype))
                self.check(lambda: cured.max(-np.ones(5, dtype), initial=-first), (dtype, first))
                self.check(lambda: cured.sum(np.ones((5, 2), dtype) * 0, axis=0, initial=first), (dtype, first))

    def test_by_a_daemon(self):
        a = denormals("f4").reshape(24, 10)

        async def later():
            async with cured.AsyncClient(self.daemon.address) as client:
                return repr(await client.describe(a))
        with cured.Client(self.daemon.address) as client, cured.Client("embedded:", threads=2) as here:
            for who in (client, here):
                self.check(lambda: repr(who.reduce(a, FLOAT_OPS)))
                for op in FLOAT_OPS:
                    self.check(lambda: getattr(who, op)(a, axis=0), op)
        self.check(lambda: asyncio.run(later()))


if __name__ == "__main__":
    unittest.main()
