"""out=: answers in arrays of the caller's: the bits of those without it, whatever the array is like; by the daemon into shared memory;
and NumPy's words where NumPy refuses."""
import numpy as np

from support import OPS, WHOLE, cured, unittest
from cured_daemon import DaemonTest, wait_for  # noqa: I100: support finds it

RANDOM = np.random.default_rng(7)


def bits(array):
    return np.ascontiguousarray(array).tobytes()


class Out(unittest.TestCase):
    def same(self, op, a, out, function=None, **options):
        wanted = (function or getattr(cured, op))(a, **options)
        before = out.dtype
        got = (function or getattr(cured, op))(a, out=out, **options)
        self.assertIs(got, out)
        self.assertEqual((before, bits(np.asarray(wanted).astype(before))), (out.dtype, bits(out)), (op, options))

    def test_every_op_and_order(self):
        a = RANDOM.integers(0, 50, (4, 5, 6)).astype("f4")
        for op in OPS:
            if op.startswith("bit_"):
                continue
            for axis in (0, 1, 2, (0, 2), (1, 2)):
                like = getattr(cured, op)(a, axis=axis)
                shared = [] if op in WHOLE else [cured.empty(like.shape, like.dtype)]
                for out in (np.empty_like(like), np.empty(like.shape, like.dtype, "F"), np.empty(like.shape + (2,), like.dtype)[..., 0],
                            *shared, np.empty(like.shape, like.dtype.newbyteorder())):
                    self.same(op, a, out, axis=axis)
        for order in ("F", "K"):
            b = np.asfortranarray(a) if order == "F" else a.transpose(2, 0, 1)
            for axis in (0, 1, 2):
                self.same("sum", b, np.empty(cured.sum(b, axis=axis).shape), axis=axis)
        self.same("sum", a, np.empty((4, 1, 6)), axis=1, keepdims=True)
        self.same("max", a, np.empty((4, 6), "f4"), axis=1, where=a > 10, initial=3)
        self.same("sum", a[:, :0], np.ones((4, 6)), axis=1)
        self.same("sum", a[:0], np.ones((0, 6)), axis=1)

    def test_whole_arrays(self):
        a = np.arange(10, dtype="i4")
        for op, dtype in (("sum", "i8"), ("sum", "u1"), ("mean", "f8"), ("argmax", "i4"), ("any", "?"), ("max", "i4"), ("count", "u8")):
            out = np.empty((), dtype)
            self.assertIs(getattr(cured, op)(a, out=out), out)
            self.assertEqual(getattr(cured, op)(a), out[()])
        with self.assertRaisesRegex(OverflowError, "does not fit"):
            cured.sum(a * 100, out=np.empty((), "u1"))

    def test_the_type_is_that_of_out(self):
        """Rounded once, to the type of out: not to f64 first."""
        a = np.array([[1, 2**-24, 2**-60], [1, 2**-24, 0]])
        out = np.empty(2, "f4")
        self.assertIs(cured.sum(a, axis=1, out=out), out)
        self.assertEqual([np.float32(1) + np.float32(2**-23), 1], out.tolist())
        self.same("sum", np.arange(6, dtype="i4").reshape(2, 3), np.empty(2), axis=1)
        self.same("sum", np.arange(6, dtype="i4").reshape(2, 3), np.empty(2, "i2"), axis=1)
        with self.assertRaisesRegex(OverflowError, "do not fit"):
            cured.sum(np.full((2, 3), 99, "i4"), axis=1, out=np.empty(2, "i1"))

    def test_several(self):
        a = RANDOM.random((50, 7))
        outs = (np.empty(50), np.empty(50, "u8"), np.empty((50, 2))[:, 1])
        wanted = cured.reduce(a, "mean,argmax,std", axis=1)
        for out in (outs, list(outs), (outs[0], outs[1], np.empty(50)), (cured.empty(50), outs[1], outs[0])):
            got = cured.reduce(a, "mean,argmax,std", axis=1, out=out)
            for op, each in zip(("mean", "argmax", "std"), out):
                self.assertIs(got[op], each)
                self.assertEqual(bits(wanted[op]), bits(each))
        for out in (outs[:2], outs[0], None, "abc"):
            if out is None:
                self.assertEqual(bits(wanted.std), bits(cured.reduce(a, "mean,argmax,std", axis=1, out=out).std))
            else:
                with self.assertRaisesRegex(ValueError, "array for each of 3"):
                    cured.reduce(a, "mean,argmax,std", axis=1, out=out)

    def test_where_input_and_output_meet(self):
        for make in (np.empty, cured.empty):
            a = make((40, 40), "f8")
            for pick in (lambda a: a[0], lambda a: a[:, 3], lambda a: a.reshape(-1)[5:45], lambda a: a[::-1, 0]):
                a[:] = RANDOM.random((40, 40))
                wanted = cured.sum(a, axis=0)
                out = pick(a)
                self.assertIs(cured.sum(a, axis=0, out=out), out)
                self.assertEqual(bits(wanted), bits(out))
        both = np.zeros(40)
        got = cured.reduce(a, "min,max", axis=0, out=(both, both))
        self.assertIs(got.min, got.max)

    def test_what_numpy_refuses(self):
        a, fixed = np.ones((3, 4)), np.zeros(3)
        fixed.flags.writeable = False
        for out, error, words in ((np.zeros((3, 1)), ValueError, "wrong number of dimensions: Found 2 but expected 1"),
                                  (np.zeros(()), ValueError, "wrong number of dimensions: Found 0 but expected 1"),
                                  (np.zeros(4), ValueError, "operation sum has the shape"), (fixed, ValueError, "read-only"),
                                  (np.zeros(3, "i8"), TypeError, "Cannot cast .*same_kind"), ([1, 2, 3], TypeError, "output must be an array"),
                                  (7, TypeError, "output must be an array"), ((fixed, fixed), ValueError, "each of 1")):
            with self.assertRaisesRegex(error, words):
                cured.sum(a, axis=1, out=out)
        with self.assertRaisesRegex(ValueError, "read-only"):
            cured.sum(a, axis=1, out=memoryview(bytes(24)).cast("d"))
        with self.assertRaisesRegex(TypeError, "partial"):
            cured.partial(a, "sum", out=np.zeros(()))

    def test_buffers_and_tensors(self):
        a = np.arange(12.0).reshape(3, 4)
        memory = bytearray(24)
        out = memoryview(memory).cast("d")
        self.assertIs(cured.sum(a, axis=1, out=out), out)
        self.assertEqual([6, 22, 38], list(out))
        try:
            import torch
        except ImportError:
            return
        tensor = torch.zeros(3, dtype=torch.float64)
        self.assertIs(cured.sum(a, axis=1, out=tensor), tensor)
        self.assertEqual([6, 22, 38], tensor.tolist())

    def test_an_answer_without_a_value(self):
        a = np.full((2, 2), 2**63 - 1)
        with self.assertRaises(OverflowError):
            cured.sum(a, axis=1, out=np.empty(2, "i8"))
        with self.assertRaises(ValueError):
            cured.min(np.ones((2, 0)), axis=1, out=np.empty(2))


class ByDaemon(DaemonTest):
    """Into what cured.empty makes the daemon writes; into everything else it sends."""

    def client(self):
        client = cured.Client(self.daemon.address)
        self.addCleanup(client.close)
        return client

    def test_shared_memory(self):
        client = self.client()
        a = cured.empty((3000, 32), np.float32)
        a[:] = RANDOM.random(a.shape)
        heap = np.array(a)
        out, more = cured.empty(3000), cured.empty((2, 3000), np.float32)
        for source in (a, heap, heap.T.copy().T):
            wanted = cured.reduce(heap, "sum,max", axis=1)
            for _ in range(3):
                out[:] = more[:] = -1
                got = client.reduce(source, "sum,max", axis=1, out=(out, more[1]))
                self.assertEqual((bits(wanted.sum), bits(wanted.max)), (bits(out), bits(more[1])))
                self.assertIs(got.sum, out)
                self.assertTrue((more[0] == -1).all())
            self.assertIs(client.sum(source, axis=1, out=out), out)
            self.assertEqual(bits(wanted.sum), bits(out))
            plain = np.empty(3000)
            self.assertIs(client.sum(source, axis=1, out=plain), plain)
            self.assertEqual(bits(wanted.sum), bits(plain))
        one = np.empty(32)
        self.assertEqual(bits(cured.mean(heap, axis=0)), bits(client.mean(a, axis=0, out=one)))

    def test_it_is_the_daemon_that_writes(self):
        """It knows a region for what it reads, and one for what it writes; none for memory of the heap."""
        wait_for("regions of the tests before to be gone", lambda: not self.daemon.counters()["regions"])
        client = self.client()
        a, out = cured.empty((1 << 16, 8), np.uint8), cured.empty(1 << 16, np.uint64)
        a[:] = 1
        for target, regions in ((np.empty(1 << 16, "u8"), 1), (out, 2), (out, 2)):
            target[:] = 7
            self.assertIs(client.sum(a, axis=1, out=target), target)
            self.assertTrue((target == 8).all())
            self.assertEqual(regions, self.daemon.counters()["regions"])
        big = cured.empty((4, 2), np.int64)
        big[:] = 2**62
        with self.assertRaises(OverflowError):
            client.sum(big, axis=1, out=cured.empty(4, np.int64))


if __name__ == "__main__":
    unittest.main()
