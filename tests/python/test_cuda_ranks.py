"""Medians and quantiles of CUDA tensors in this process, over the runtime double: by every door that takes whole arrays they give the bits
of the same arrays of the host, or are refused by a sentence."""
import unittest

import numpy
from support import Case, cured
from test_cuda_here import TYPES, Tensor, outcome, random
from test_cuda_pairs import part
from test_cuda_ways import new_stream, slow_write

METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
SHARES = [0.5, 0, 1, 1 / 3, 0.9, 0.9, 0.01]


class Ranks(Case):
    def same(self, call, a, t, *about):
        self.assertEqual(outcome(lambda: call(a)), outcome(lambda: call(t)), about)

    def test_doors(self):
        draw = numpy.random.default_rng(11)
        for dtype in TYPES:
            for n in (0, 1, 2, 17, 300, 4099, 30001):
                a = random((n,), dtype, n)
                if a.dtype.kind == "f" and n > 16:
                    a[draw.integers(0, n, 3)] = numpy.nan, -numpy.nan, numpy.inf
                t = Tensor(a)
                method = METHODS[n % 5]
                for call in (cured.median, lambda x: cured.quantile(x, 0.3, method=method), lambda x: cured.quantile(x, SHARES, method=method),
                             lambda x: cured.reduce(x, "sum,median,count_nonzero"), lambda x: cured.median(x, keepdims=True),
                             lambda x: cured.quantile(x, [[0.1], [0.7]], axis=0), lambda x: cured.median(x, dtype="f4")):
                    self.same(call, a, t, dtype, n)
                if a.dtype.kind == "f":
                    for call in (cured.nanmedian, lambda x: cured.nanpercentile(x, [25, 75]), lambda x: cured.nanquantile(x, 0.5, method="lower")):
                        self.same(call, a, t, dtype, n)

    def test_wherever_they_lie(self):
        """Short arrays come to the host as they are, but what a search asks of them is counted on the GPU."""
        def search(x):
            one = cured.Search(cured_name(x), [0.5, 0.05, 0.7, 0.01, 0.99], nan="skip")
            while one.asked:
                one.next(one.count(x))
            return one.answer

        def cured_name(x):
            return cured.partial(x, "count").dtype

        for dtype in TYPES:
            t = Tensor(random((12000,), dtype))
            whole = t.host()
            for first in range(17):
                for n in (100 + first, 5000 - first, 11000 + 2 * first):
                    for call in (lambda x: cured.quantile(x, [0.5, 0.05]), search):
                        self.same(call, whole[first:first + n], part(t, first, n), dtype, first, n)
        a = random((30, 40), "f4")
        self.same(cured.median, a, Tensor(a))
        self.same(cured.median, a[:, 0], Tensor(a[:, 0].copy()))

    def test_data_that_is_alike(self):
        """One value, two in turn, runs and rising ones: each bin of one element after the other."""
        for dtype in ("u1", "f2", "i4", "f4", "f8"):
            n = 20000
            for a in (numpy.full(n, 3), numpy.arange(n) % 2, numpy.arange(n) // 700, numpy.arange(n), -numpy.arange(n)):
                a = a.astype(dtype)
                self.same(lambda x: cured.quantile(x, [0.25, 0.5, 0.999]), a, Tensor(a), dtype, a[:3])

    def test_lists(self):
        """Of tensors, and of tensors and arrays of the host: as one array."""
        parts = [random((n,), "f4", n) for n in (1000, 0, 37, 5000)]
        tensors = [Tensor(a) for a in parts]
        mixed = [tensors[0], parts[1], parts[2], tensors[3]]
        for call in (cured.median, lambda x: cured.quantile(x, [0.2, 0.8]), lambda x: cured.reduce(x, "sum,median")):
            want = outcome(lambda: call(parts))
            self.assertEqual(want, outcome(lambda: call(tensors)))
            self.assertEqual(want, outcome(lambda: call(mixed)))

    def test_searches(self):
        """A part of a search: the counts are those of the host's array; and what is no such search is refused."""
        a = random((3000,), "f4")
        t, search = Tensor(a), cured.Search("f4", [0.1, 0.5])
        while search.asked:
            counts = search.count(t)
            self.assertEqual(search.count(a).tolist(), counts.tolist())
            search.next(counts)
        self.assertEqual(cured.quantile(a, [0.1, 0.5]).tolist(), search.answer.tolist())
        with self.assertRaisesRegex(ValueError, "asked: it counts elements of f8|asked: it counts elements of f64"):
            cured.Search("f8", 0.5).count(t)
        with self.assertRaisesRegex(ValueError, "asked: these bytes are not what a read"):
            cured.median(t, _asked=b"what")

    def test_out(self):
        a = random((999,), "f4")
        for kind in ("f4", "f8"):
            want, out = numpy.zeros((), kind), Tensor(numpy.full((), 7, kind))
            cured.median(a, out=want)
            self.assertIs(out, cured.median(Tensor(a), out=out))
            self.assertEqual(want.tobytes(), out.host().tobytes())

    def test_order_of_the_stream(self):
        """A slow kernel of the program's own is ahead: its elements are what is counted."""
        for dtype in ("f4", "f8"):
            stream = new_stream()
            t = Tensor(numpy.zeros(4000, dtype), stream.value)
            a = random((4000,), dtype)
            slow_write(stream, t, a)
            self.assertEqual(cured.median(a), cured.median(t))

    def test_refused(self):
        a = random((30, 40), "f4")
        t = Tensor(a)
        mask = Tensor(a > 0)
        for word, call in (("op median of device memory is answered of a whole array alone", lambda: cured.median(t, axis=1)),
                           ("op quantile of device memory is answered of a whole array alone", lambda: cured.quantile(t, [0.1], axis=0)),
                           ("op median of device memory", lambda: cured.reduce_each([t, t], "sum,median")),
                           ("partial", lambda: cured.partial(t, "median")),
                           ("where: under a mask in device memory op median", lambda: cured.median(t, where=mask)),
                           ("op median of device memory", lambda: cured.median(Tensor(a[0]), offsets=numpy.array([0, 3]))),
                           ("op median of device memory", lambda: cured.median(Tensor(a[0]), keys=Tensor(numpy.zeros(40, "i4")), groups=1)),
                           ("range", lambda: cured.quantile(t, 1.5)),
                           ("method", lambda: cured.quantile(t, 0.5, method="best"))):
            with self.assertRaisesRegex((TypeError, ValueError, NotImplementedError), word):
                call()


if __name__ == "__main__":
    unittest.main()
