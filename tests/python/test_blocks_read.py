"""How containers are read: each chunk once, in bounded memory, the next block while one is folded, and what ends a call. By a stand-in for
zarr's arrays; test_containers.py has the real libraries."""
import itertools
import math
import os
import signal
import threading
import unittest

import numpy
from support import Case, cured

from cured import _blocks


class Stored:
    """A container that notes what is read of it."""
    chunks = None

    def __init__(self, array, chunks, before=None):
        self.array, self.shape, self.dtype, self.chunks, self.before = array, array.shape, array.dtype, chunks, before
        self.boxes, self.threads = [], set()

    def __getitem__(self, box):
        self.boxes.append(box)
        self.threads.add(threading.current_thread())
        if self.before is not None:
            self.before(len(self.boxes))
        return self.array[box].copy()

    read, masked = __getitem__, False  # as a Store has them

    def reads_of_chunks(self):
        """How often each chunk is read."""
        reads = {}
        for box in self.boxes:
            touched = [range(cut.start // c, -(-cut.stop // c)) for cut, c in zip(box, self.chunks)]
            for chunk in itertools.product(*touched):
                reads[chunk] = reads.get(chunk, 0) + 1
        return reads


Stored.__module__ = "zarr.stand_in"


class Small(Case):
    def setUp(self):
        before = _blocks.BLOCK_BYTES
        _blocks.BLOCK_BYTES = 4096
        self.addCleanup(lambda: setattr(_blocks, "BLOCK_BYTES", before))


class Crossed(Small):
    def test_a_fractional_ddof_by_blocks(self):
        a = numpy.random.default_rng(6).standard_normal((60, 50, 9))
        for options in ({}, {"axis": 0}, {"axis": (1, 2)}, {"axis": 1, "keepdims": True}, {"axis": 0, "where": a > 0}):
            x = Stored(a, (7, 5, 3))
            for op in (cured.var, cured.std):
                self.assert_arrays(numpy.asarray(op(a, ddof=0.5, **options)), numpy.asarray(op(x, ddof=0.5, **options)), options)
            self.assertLess(1, len(x.boxes), "it was read whole")

    def test_a_mask_with_missing_elements_that_is_broadcast(self):
        """What is missing in where= is left out, also where the mask is repeated."""
        a = numpy.arange(12.0).reshape(4, 3)
        keep = numpy.ma.masked_array([True, True, True], [False, True, False])
        wanted = cured.sum(a, where=numpy.array([True, False, True]))
        self.assertEqual(wanted, cured.sum(Stored(a, (1, 3)), where=keep))
        self.assertEqual(wanted, cured.sum(Stored(a, (1, 3)), where=numpy.ma.masked_array(numpy.ones(a.shape, bool), numpy.broadcast_to(keep.mask, a.shape))))

    def test_linear_forms(self):
        a = numpy.random.default_rng(7).standard_normal((60, 50))
        out, maxima = numpy.zeros(len(cured.linear(a, "sum,max")), "i8"), numpy.zeros(4, "i8")
        cured.linear(Stored(a, (7, 5)), "sum,max", out=out, maxima=maxima)
        self.assertEqual((cured.sum(a), cured.max(a)), tuple(cured.from_linear(out, "f8", "sum,max", maxima).finish("sum,max")._answers.values()))

    def test_big_endian_without_axes(self):
        """NumPy makes a native number of an element without axes."""
        class Numbers(Stored):
            def __getitem__(self, box):
                return super().__getitem__(box)[()]
        Numbers.__module__ = "zarr.stand_in"
        self.assertEqual(3.5, cured.sum(Numbers(numpy.array(3.5, ">f8"), None)))


class Reads(Small):
    def test_each_chunk_once_in_blocks_of_a_bounded_size(self):
        a = numpy.random.default_rng(5).standard_normal((60, 50, 9))
        for chunks in ((7, 5, 3), (1, 50, 9), (60, 1, 1), (8, 8, 8), (1, 1, 9)):
            for options in ({}, {"axis": 0}, {"axis": (1, 2)}, {"where": a > 0}):
                x = Stored(a, chunks)
                got, wanted = cured.sum(x, **options), cured.sum(a, **options)
                self.assert_arrays(numpy.asarray(wanted), numpy.asarray(got), (chunks, options))
                self.assertEqual({1}, set(x.reads_of_chunks().values()), (chunks, options))
                if "axis" not in options:
                    bytes_read = [math.prod(_blocks.extent_of(box)) * 8 for box in x.boxes]
                    self.assertLessEqual(max(bytes_read), max(4096, math.prod(chunks) * 8), chunks)
                    self.assertGreater(len(x.boxes), 1)

    def test_elements_in_order_are_read_once(self):
        a = numpy.random.default_rng(6).uniform(0.5, 2, (40, 6, 50))
        for chunks in ((4, 6, 50), (3, 2, 50), (40, 6, 50)):
            x = Stored(a, chunks)
            self.assert_same(cured.prod(a), cured.prod(x))
            self.assertEqual({1}, set(x.reads_of_chunks().values()), chunks)
            self.assertEqual(sorted(x.boxes, key=_blocks.start_of), x.boxes)
            self.assertEqual(cured.partial(a, "argmax,prod", first=8192), cured.partial(Stored(a, chunks), "argmax,prod", first=8192))

    def test_a_chunk_that_is_too_large_is_cut(self):
        before = _blocks.MOST_BYTES
        self.addCleanup(lambda: setattr(_blocks, "MOST_BYTES", before))
        _blocks.MOST_BYTES = 8192
        a = numpy.arange(100 * 100.0).reshape(100, 100)
        x = Stored(a, (100, 100))
        self.assertEqual(a.sum(), cured.sum(x))
        self.assertLessEqual(max(math.prod(_blocks.extent_of(box)) for box in x.boxes) * 8, 8192)

    def test_a_chunk_that_is_too_large_is_cut_beside_whole_slices(self):
        before = _blocks.MOST_BYTES
        self.addCleanup(lambda: setattr(_blocks, "MOST_BYTES", before))
        _blocks.MOST_BYTES = 8192
        a, keys = numpy.arange(100 * 100.0).reshape(100, 100), numpy.arange(100) % 3
        for ask in (lambda x: cured.sum(x, axis=0), lambda x: cured.sum(x, axis=1), lambda x: cured.sum(x, keys=keys), lambda x: cured.partial(x, "sum", keys=keys).finish("sum").sum):
            x = Stored(a, (100, 100))
            self.assert_arrays(ask(a), ask(x))
            self.assertLessEqual(max(math.prod(_blocks.extent_of(box)) for box in x.boxes) * 8, 8192)
            self.assertEqual(a.size, sum(math.prod(_blocks.extent_of(box)) for box in x.boxes))

    def test_what_goes_with_keys_is_refused_without(self):
        before = _blocks.MOST_BYTES
        self.addCleanup(lambda: setattr(_blocks, "MOST_BYTES", before))
        _blocks.MOST_BYTES = 8192
        for options, name in (({"groups": 2}, "groups"), ({"drop": True}, "drop")):
            for shape in ((100, 100), (10, 10)):
                with self.assertRaisesRegex((TypeError, ValueError), "^%s: " % name):
                    cured.norm1(Stored(numpy.ones(shape), shape), **options)

    def test_a_search_reads_as_often_as_it_asks(self):
        a = numpy.random.default_rng(7).standard_normal(5000)
        x = Stored(a, (500,))
        self.assert_same(cured.quantile(a, 0.9), cured.quantile(x, 0.9))
        self.assertEqual(1, len(set(x.reads_of_chunks().values())))
        self.assertLessEqual(set(x.reads_of_chunks().values()).pop(), 5)

    def test_the_next_block_is_read_beside(self):
        """While the caller has a block, the next comes: here it is waited for before the first is given back."""
        begun = [threading.Event() for _ in range(9)]
        x = Stored(numpy.arange(2000.0), (500,), lambda n: begun[n].set())
        read = _blocks.reader(x, None, None, False)
        cuts = _blocks.boxes(x.shape, (500,))
        with _blocks.ahead(read, cuts) as some:
            for n, (box, (block, _)) in enumerate(some, 1):
                self.assertTrue(n == 4 or begun[n + 1].wait(60), "block %d" % (n + 1))
                self.assertFalse(begun[n + 2].is_set(), "no more than one is read ahead")
                self.assertEqual(x.array[box].tolist(), block.tolist())
        self.assertNotIn(threading.current_thread(), x.threads)

    def test_one_block_takes_no_thread(self):
        x = Stored(numpy.arange(20.0), (20,))
        self.assertEqual(190.0, cured.sum(x))
        self.assertEqual({threading.current_thread()}, x.threads)


class Ends(Small):
    def quiet(self):
        self.assertEqual([], [t.name for t in threading.enumerate() if t.name.startswith("cured-read")])

    def test_interrupt(self):
        """Ctrl-C ends the call, and nothing reads the container any more."""
        def before(n):
            if n == 3:
                os.kill(os.getpid(), signal.SIGINT)
        for op, options in (("sum", {}), ("median", {}), ("prod", {}), ("sum", {"axis": 1}), ("argmax", {"where": numpy.ones(9, bool)})):
            x = Stored(numpy.ones((5000, 9)), (100, 9), before)
            with self.assertRaises(KeyboardInterrupt):
                getattr(cured, op)(x, **options)
            self.assertLess(len(x.boxes), 10, op)
            self.quiet()

    def test_an_error_of_the_container(self):
        def before(n):
            if n == 3:
                raise OSError("the disk is gone")
        for ask in (cured.sum, cured.prod, cured.median, lambda x: cured.sum(x, 0), lambda x: cured.partial(x, "sum"),
                    lambda x: cured.sum(x, keys=numpy.zeros(5000, int)), lambda x: cured.quantile(x, [0.5])):
            x = Stored(numpy.ones((5000, 900)), (100, 9), before)
            with self.assertRaisesRegex(OSError, "the disk is gone"):
                ask(x)
            self.quiet()

    def test_a_container_that_lies(self):
        a = numpy.ones((500, 9))

        class Short(Stored):
            def __getitem__(self, box):
                return super().__getitem__(box)[1:]

        class Other(Stored):
            def __getitem__(self, box):
                return super().__getitem__(box).astype("f4")
        for kind, words in ((Short, "gave a block of the shape"), (Other, "gave elements of float32")):
            for ask in (cured.sum, cured.prod, cured.median, lambda x: cured.sum(x, 1)):
                with self.assertRaisesRegex((ValueError, TypeError), words):
                    ask(kind(a, (100, 9)))
            self.quiet()


if __name__ == "__main__":
    unittest.main()
