"""NumPy: arrays that the extension reads by their fields give what their buffers give, and where the fields are not what the
samples say, buffers are read."""
import subprocess
import sys
import unittest

import numpy
from support import NUMPY, PACKAGE, Case, cured

SPOILT = """
import sys; sys.path.insert(0, %r)
import numpy, cured
from cured import _adapt
good = _adapt.samples
class Mine(numpy.ndarray): pass
_adapt.samples = %s
a = numpy.arange(12, dtype="f4").reshape(3, 4)
assert cured.sum(a) == 66 and cured.argmin(a[::-1]) == 8 and list(cured.max(a, axis=0)) == [8, 9, 10, 11]
assert cured.sum(a.astype(">i2").T) == 66
print(cured._cured._numpy_known())
"""


def layouts(a):
    yield a
    yield a.T
    yield a[::-1, 1:, ::2]
    yield a[:, ::-3]
    yield numpy.broadcast_to(a[:1], a.shape)
    yield a[0, 1, 2:3]
    yield a[:0]
    yield numpy.array(a[1, 2, 3])
    b = a.copy()
    b.flags.writeable = False
    yield b
    shifted = numpy.zeros(a.nbytes + 1, "u1")[1:].view(a.dtype)  # of addresses that are no multiples of the size
    shifted[:] = a.ravel()
    yield shifted


class Fields(Case):
    def test_learnt(self):
        cured.sum(numpy.arange(3))
        self.assertTrue(cured._cured._numpy_known())

    def test_fields_are_buffers(self):
        base = numpy.arange(210).reshape(5, 6, 7) % 100
        for name, code in NUMPY.items():
            for order in "<>":
                a = base.astype(code).astype(order + code.lstrip("<"))
                for view in layouts(a):
                    for op in ("sum", "count_nonzero", "argmax" if view.size else "any"):
                        # A memoryview goes by the buffer. NumPy gives none that is big-endian and bool.
                        self.assert_same(getattr(cured, op)(view), getattr(cured, op)(memoryview(view)),
                                         "%s of %s%s %s %s" % (op, order, name, view.shape, view.strides))
                    if view.ndim:
                        self.assert_arrays(cured.sum(view, axis=0), cured.sum(memoryview(view), axis=0), name)

    def test_other_integers(self):
        for code in "bBhHiIlLqQ":  # two of them are of the same size
            self.assertEqual(6, cured.sum(numpy.array([1, 2, 3], code)), code)

    def test_types_behind_the_table(self):
        for a in (numpy.zeros(3, "G"), numpy.zeros(3, "O"), numpy.zeros(3, "M8[s]"), numpy.zeros(3, "m8[s]"),
                  numpy.zeros(3, "S4"), numpy.zeros(3, "U4"), numpy.zeros(3, "V4"), numpy.zeros(3, "g"),
                  numpy.zeros(3, [("x", "f4")])):
            with self.assertRaises(TypeError, msg=a.dtype):
                cured.sum(a)

    def test_array_is_kept(self):
        a = numpy.ones(1000)
        before = sys.getrefcount(a)
        for _ in range(10):
            cured.sum(a)
            cured.sum(a, axis=0)
            with self.assertRaises(ValueError):
                cured.sum(a, axis=7)
        self.assertEqual(before, sys.getrefcount(a))


class Doubts(Case):
    """Where the samples do not agree, or there are none, NumPy's arrays go by their buffers."""

    def known(self, samples):
        run = subprocess.run([sys.executable, "-c", SPOILT % (PACKAGE, samples)], stdout=subprocess.PIPE, text=True, check=True)
        return run.stdout.strip()

    def test_as_they_are(self):
        self.assertEqual("True", self.known("good"))

    def test_none(self):
        self.assertEqual("False", self.known("lambda kind: []"))
        self.assertEqual("False", self.known("lambda kind: None"))

    def test_others(self):
        self.assertEqual("False", self.known("lambda kind: good(kind) + [numpy.zeros(3).view(Mine)]"))
        self.assertEqual("False", self.known("lambda kind: good(kind) + [numpy.zeros(3, 'F')]"))

    def test_exception(self):
        self.assertEqual("False", self.known("lambda kind: 1 / 0"))


if __name__ == "__main__":
    unittest.main()
