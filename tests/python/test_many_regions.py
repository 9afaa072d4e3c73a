"""More arrays than a daemon keeps regions of, in shared memory and on a stand-in GPU: all are answered, one after the other, in lists, and
by threads. The regions of arrays that were asked for before go."""
import gc
import unittest

import numpy

import test_gpu_out
from support import Case, cured
from cured_daemon import DaemonTest, wait_for


class Few(DaemonTest, Case):
    """Of each connection few; of all of a user more than its connections want at once."""
    OPTIONS = {"max_regions_per_connection": 3, "cpu_workers": 1, "slabs": 8}

    def arrays(self, count=20):
        made = []
        for i in range(count):
            made.append(cured.empty(100 + i, "f4"))
            made[-1][:] = numpy.random.default_rng(i).standard_normal(100 + i)
        return made

    def setUp(self):
        self.client = cured.Client(self.daemon.address)
        self.addCleanup(self.client.close)

    def test_one_after_the_other(self):
        arrays = self.arrays()
        for _ in range(2):
            for a in arrays:
                self.assert_same(cured.sum(a.copy()), self.client.sum(a))
                self.assertLessEqual(self.daemon.counters()["regions"], 3)

    def test_together(self):
        arrays = self.arrays()
        flat = numpy.concatenate(arrays)
        for ops in ("sum,argmax,std", "sum"):
            self.assertEqual(dict(cured.reduce(flat, ops)), dict(self.client.reduce(arrays, ops)))
            self.assertEqual(dict(cured.reduce(flat, ops)), dict(cured.reduce_parts(arrays, ops, client=self.client)))
        self.assertEqual([cured.max(a.copy()) for a in arrays], [r.max for r in cured.reduce_each(arrays, "max", client=self.client)])

    def test_where_answers_are_written(self):
        """The region of the answers is one more, and those of both are registered anew."""
        for a in self.arrays(8):
            rows = a[:100].reshape(10, 10)
            out = cured.empty(10, "f8")
            self.client.sum(rows, axis=1, out=out)
            self.assert_arrays(cured.sum(rows.copy(), axis=1), out)

    def test_slices(self):
        arrays = self.arrays(8)
        for a in arrays:
            self.assert_same(cured.sum(a.copy(), initial=2), self.client.sum(a, initial=2))


class OfAUser(Few):
    """The limit is the user's, so other connections of the client hold what this one lacks."""
    OPTIONS = {"max_regions_per_connection": 4, "max_regions_per_user": 3, "cpu_workers": 1, "slabs": 8}


class Device(test_gpu_out.Device):
    size = property(lambda self: self.host.size)


class OnAGpu(DaemonTest, Case):
    PROGRAM = test_gpu_out.PROGRAM
    OPTIONS = dict(test_gpu_out.Out.OPTIONS, max_regions_per_connection=3)
    @classmethod
    def setUpClass(cls):
        test_gpu_out.setUpModule()
        super().setUpClass()

    def test_tensors(self):
        with cured.Client(self.daemon.address) as client:
            arrays = [numpy.random.default_rng(i).standard_normal(1000 + i).astype("f4") for i in range(12)]
            tensors = [Device(a, self.folder) for a in arrays]
            flat = numpy.concatenate(arrays)
            self.assert_same(cured.norm2(flat), client.norm2(tensors))
            self.assert_same(cured.norm2(flat), cured.reduce_parts(tensors, "norm2", client=client).norm2)
            self.assertEqual([cured.sum(a) for a in arrays], [client.sum(t) for t in tensors])
            del tensors
            gc.collect()
            wait_for("the regions to go", lambda: client.sum(b"\1") == 1 and self.daemon.counters()["device_regions"] == 0)


if __name__ == "__main__":
    unittest.main()
