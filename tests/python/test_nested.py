"""What Python code of the caller's may do from inside a call: call cured again, which ends in RecursionError and never in a signal. And
tensors like torch's, played where there is no torch: negated, of bools as a mask, of bfloat16 as out=."""
import subprocess
import sys
import types
from unittest import mock

import numpy as np
from support import PACKAGE, Case, Exchanged, Tensor, bf16, cured, unittest

HOOKS = r'''
import sys
sys.path.insert(0, %r)
import numpy as np
import cured

A = np.ones((2, 3))
P = cured.partial(A, "sum,var")


class Typed:
    """Of a type whose only hook is the one that is named."""
    def __new__(cls, call, hook):
        kind = type("Typed", (), {hook: property(lambda self: call(self)) if not hook.startswith("__") else lambda self, *_, **__: call(self)})
        return kind()


CALLS = {
    "axis": lambda x: cured.sum(A, axis=x), "axes": lambda x: cured.sum(A, axis=(x,)), "keepdims": lambda x: cured.sum(A, keepdims=x),
    "ddof": lambda x: cured.std(A, ddof=x), "initial": lambda x: cured.sum(A, initial=x), "ops": lambda x: cured.reduce(A, x),
    "dtype": lambda x: cured.sum(A, dtype=x), "array": lambda x: cured.sum(x), "where": lambda x: cured.sum(A, where=x),
    "out": lambda x: cured.sum(A, axis=0, out=x), "first": lambda x: cured.partial(A, "sum", first=x), "describe": lambda x: cured.describe(x),
    "finish": lambda x: P.finish("var", ddof=x), "finish ops": lambda x: P.finish(x), "merge": lambda x: cured.merge(x),
    "file": lambda x: cured.file(x), "empty": lambda x: cured.empty(x), "empty type": lambda x: cured.empty(1, x),
    "parts": lambda x: cured.reduce_parts([x], "sum"), "threads": lambda x: cured.Client("embedded:", threads=x),
    "client": lambda x: CLIENT.sum(A, axis=x),
}
CLIENT = cured.Client("embedded:")
''' % PACKAGE

TRIES = r'''
for hook in ("__index__", "__float__", "__bool__", "__len__", "__iter__", "__fspath__", "__dlpack__", "__dlpack_device__", "mask",
             "is_neg", "device", "dtype", "name", "__cuda_array_interface__"):
    for name, call in CALLS.items():
        x = Typed(call, hook)
        try:
            call(x)
        except RecursionError:
            print("recursion", name)
        except Exception as error:
            print("other", name, hook, type(error).__name__)
print(cured.sum(A), "and on")
'''


class Nested(Case):
    def test_every_hook(self):
        done = subprocess.run([sys.executable, "-c", HOOKS + TRIES], capture_output=True, text=True, timeout=300)
        self.assertEqual(0, done.returncode, done.stderr[-2000:])
        self.assertTrue(done.stdout.endswith("6.0 and on\n"), done.stdout)
        recursions = {line.partition(" ")[2] for line in done.stdout.splitlines() if line.startswith("recursion")}
        for name in ("axis", "axes", "keepdims", "ddof", "initial", "ops", "array", "where", "first", "describe", "finish", "client"):
            self.assertIn(name, recursions)

    def test_some_depth_is_allowed(self):
        class Index:
            def __init__(self, depth):
                self.depth = depth

            def __index__(self):
                return int(cured.sum(np.zeros((1, 1)), axis=(0, Index(self.depth - 1)))) + 1 if self.depth else 1
        self.assertEqual(0.0, cured.sum(np.zeros((1, 1)), axis=(0, Index(20))))
        with self.assertRaisesRegex(RecursionError, "32 deep"):
            cured.sum(np.zeros((1, 1)), axis=(0, Index(40)))
        self.assertEqual(0.0, cured.sum(np.zeros((1, 1)), axis=(0, Index(20))))


class Negated(Tensor):
    negated = True

    def is_neg(self):
        return self.negated


class Tensors(Case):
    def test_negated(self):
        raw = np.arange(6, dtype="f4").tobytes()
        t = Negated(raw, 2, 32, (6,))
        for call in (lambda: cured.sum(t), lambda: cured.max(t, axis=0), lambda: cured.partial(t, "sum")):
            with self.assertRaisesRegex(TypeError, "is_neg.*resolve_neg"):
                call()
        t.negated = False
        self.assertEqual(15.0, cured.sum(t))
        exchanged = Exchanged.table()
        exchanged.is_neg = lambda self: True
        with self.assertRaisesRegex(TypeError, "resolve_neg"):
            cured.sum(exchanged(raw, 2, 32, (6,)))
        self.assertEqual(15.0, cured.sum(Exchanged.table()(raw, 2, 32, (6,))))
        asked, exchanged = [], Exchanged.table()
        exchanged.is_neg = lambda self: asked.append(1) and False
        for code, bits, times in ((2, 32, 1), (2, 64, 1), (2, 16, 1), (4, 16, 0), (0, 32, 0), (1, 8, 0), (6, 8, 0)):
            del asked[:]
            cured.sum(exchanged(bytes(bits // 8 * 6), code, bits, (6,)))
            self.assertEqual(times, len(asked), "of complex numbers there are parts of three types")

    def test_a_mask(self):
        a = np.arange(6.0).reshape(2, 3)
        keep = np.array([[1, 0, 1], [0, 1, 0]], "?")
        mask = Tensor(keep.tobytes(), 6, 8, (2, 3))
        self.assertEqual((6.0, 4), (cured.sum(a, where=mask), cured.argmax(a, where=mask)))
        self.assert_arrays(cured.sum(a, axis=1, where=mask), np.array([2.0, 4.0]))
        self.assertEqual(2 * 2 + 2 * 0, cured.sum(a[:, ::2], axis=0, where=Tensor(keep.tobytes(), 6, 8, (2,), (2,)))[1] - 3)
        self.assertEqual(mask.deleted, len(mask.streams), "all were given back")
        for bad, error in ((Tensor(keep.tobytes(), 1, 8, (2, 3)), TypeError), (Tensor(keep.tobytes(), 6, 8, (3, 2)), ValueError),
                           (Tensor(keep.tobytes(), 6, 8, (2, 3), device=(2, 0)), TypeError), (1, TypeError), ("x", TypeError)):
            with self.assertRaisesRegex(error, "where: "):
                cured.sum(a, where=bad)

    def test_out_of_bfloat16(self):
        class Bfloats:
            """torch's, as far as cured asks."""
            def __init__(self, shape):
                self.values, self.shape, self.ndim = np.zeros(shape, "f4"), shape, len(shape)
                self.dtype, self.device = "torch.bfloat16", types.SimpleNamespace(type="cpu")

            def copy_(self, other):
                assert (other.view("u4") & 0xffff == 0).all(), "of a bfloat16 each"
                self.values[...] = other
        # Also where another test has imported the real one.
        stand_in = mock.patch.dict(sys.modules, torch=types.SimpleNamespace(from_numpy=lambda array: array))
        stand_in.start()
        self.addCleanup(stand_in.stop)
        a = np.array([[1, 2.0**-8, 2.0**-60], [1, 2.0**-8, 0]])  # 1 + 2^-8 is a tie, and what comes behind decides
        out = Bfloats((2,))
        self.assertIs(out, cured.sum(a, axis=1, out=out))
        self.assertEqual([1 + 2.0**-7, 1], out.values.tolist())
        out = Bfloats(())
        self.assertIs(out, cured.sum(a[0], out=out))
        self.assertEqual(1 + 2.0**-7, out.values)
        outs = Bfloats((2,)), np.zeros(2, "u8")
        r = cured.reduce(a.astype("i4"), "max,argmax", axis=1, out=outs)
        self.assertTrue(r.max is outs[0] and r.argmax is outs[1])
        self.assertEqual([[1, 1], [0, 0]], [outs[0].values.tolist(), outs[1].tolist()])
        with self.assertRaisesRegex(ValueError, "shape"):
            cured.sum(a, axis=0, out=Bfloats((2,)))
        self.assertEqual(0.0, cured.sum(bf16(b"\0\0")))


if __name__ == "__main__":
    unittest.main()
