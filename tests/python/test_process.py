"""The process around it: threads, fork, Ctrl-C, the GIL, and that nothing is lost after thousands of calls of every kind."""
import gc
import os
import signal
import subprocess
import sys
import threading
import tracemalloc
import unittest
import weakref

import numpy
from support import PACKAGE, Case, Tensor, bf16, cured

ENDLESS = numpy.broadcast_to(numpy.zeros(1, ">f4"), (1 << 48,))  # days of work

TYPES = {"Nan", "Nulls", "Overflow", "Method", "Ops", "Axis", "Dtype", "Array", "Weights"}  # of the stubs alone


class Threads(Case):
    def test_many_threads(self):
        arrays = [numpy.random.default_rng(k).standard_normal(3000 + k) for k in range(8)]
        wanted = [cured.sum(a) for a in arrays]
        wrong = []

        def work(k):
            for _ in range(200):
                if cured.sum(arrays[k]) != wanted[k] or cured.sum(arrays[k][::2]) != cured.sum(arrays[k][::2].copy()):
                    wrong.append(k)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual([], wrong)

    def test_more_threads_of_a_client(self):
        with cured.Client("embedded:", threads=3) as c:
            a = numpy.random.default_rng(1).standard_normal(3_000_000)
            self.assert_same(c.sum(a), cured.sum(a))
            self.assert_same(c.std(a[::2]), cured.std(a[::2]))
            self.assert_arrays(c.mean(a.reshape(300, -1), axis=0), cured.mean(a.reshape(300, -1), axis=0))
            self.assertRegex(c.server, "embedded")

    def test_no_thread_is_started(self):
        before = len(os.listdir("/proc/self/task"))
        cured.sum(numpy.zeros(100_000))
        cured.Client("embedded:", threads=1).sum(numpy.zeros(5_000_000))
        self.assertEqual(before, len(os.listdir("/proc/self/task")))


    def test_an_event_loops_client_is_its_own(self):
        """Another thread is refused while the loop's thread works without the GIL."""
        link = cured._cured._Link("embedded:")
        a = numpy.ones((3000, 3000), "f4").T[::-1]
        refused, over = [], []

        def intrude():
            while not over and not refused:
                try:
                    link.watch()
                except RuntimeError as error:
                    refused.append(str(error))

        thread = threading.Thread(target=intrude)
        thread.start()
        calls = 0
        while calls < 100 and not refused:  # on a busy machine the other thread may sleep through some
            call, done, calls = link.sum(a), [], calls + 1
            while not done:
                done = link.process()
            self.assertEqual(([call], 9e6), (done, call.result()))
        over.append(1)
        thread.join()
        self.assertRegex(refused[0], "another thread")
        link.close()


class Signals(Case):
    def interrupted(self, call):
        """A signal's handler raises while a call that does not end by itself is under way."""
        def handler(*_):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.03)
            with self.assertRaises(KeyboardInterrupt):
                call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        self.assertEqual(6, cured.sum(b"\1\2\3"))

    def test_whole(self):
        self.interrupted(lambda: cured.sum(ENDLESS))

    def test_along_an_axis(self):
        self.interrupted(lambda: cured.sum(ENDLESS.reshape(1 << 47, 2), axis=0))

    def test_where(self):
        self.interrupted(lambda: cured.sum(ENDLESS, where=numpy.broadcast_to(numpy.zeros(1, "?"), ENDLESS.shape)))

    def test_between_slices(self):
        """A handler leaves nothing of the slices that are still to come."""
        where = numpy.ones((1 << 15, 1), "?")
        before = signal.signal(signal.SIGALRM, lambda *_: where.fill(False))
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.003)
            sums = cured.sum(where, axis=1, where=where, initial=0)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        self.assertEqual((1, 0), (sums[0], sums[-1]))

    def test_with_a_client(self):
        with cured.Client("embedded:", threads=2) as c:
            self.interrupted(lambda: c.sum(ENDLESS))

    def test_handlers_that_return(self):
        """A handler that raises nothing lets the call go on."""
        seen = []
        before = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
            a = numpy.ones((2000, 2000), "f4")
            while len(seen) < 5:
                self.assertEqual(4e6, cured.sum(a.T[::-1, ::-1]))
                self.assertEqual(4e6, cured.sum(a.astype(">f4")))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def test_other_threads_run_meanwhile(self):
        """A thread counts while the main thread folds, and then interrupts it: without the GIL it could do neither."""
        def handler(*_):
            raise KeyboardInterrupt

        def count():
            for _ in range(10000):
                counted.append(1)
            os.kill(os.getpid(), signal.SIGALRM)

        counted = []
        before = signal.signal(signal.SIGALRM, handler)
        thread = threading.Thread(target=count)
        try:
            with self.assertRaises(KeyboardInterrupt):
                thread.start()
                cured.sum(ENDLESS)
        finally:
            thread.join()
            signal.signal(signal.SIGALRM, before)
        self.assertEqual(10000, len(counted))


@unittest.skipIf("address" in os.environ.get("CURED_TEST_SANITIZE", ""), "AddressSanitizer's locks do not survive a fork beside threads")
class Fork(Case):
    def in_child(self, check):
        pid = os.fork()
        if pid == 0:
            try:
                os._exit(0 if check() else 1)
            finally:
                os._exit(2)
        self.assertEqual(0, os.waitpid(pid, 0)[1])

    def test_after_a_call(self):
        a = numpy.arange(100000, dtype="f8")
        wanted = cured.sum(a)
        self.in_child(lambda: cured.sum(a) == wanted and cured.sum(a[::-2]) == float(a[::-2].sum()))
        self.assertEqual(wanted, cured.sum(a))

    def test_while_other_threads_fold(self):
        a = numpy.arange(300000, dtype="f8")
        wanted, stop = cured.sum(a), []

        def work():
            while not stop:
                cured.sum(a)

        threads = [threading.Thread(target=work) for _ in range(3)]
        [t.start() for t in threads]
        try:
            for _ in range(5):
                self.in_child(lambda: cured.sum(a) == wanted)
        finally:
            stop.append(1)
            [t.join() for t in threads]

    def test_with_threads_of_a_client(self):
        with cured.Client("embedded:", threads=2) as c:
            a = numpy.ones(3_000_000)
            self.assertEqual(3e6, c.sum(a))
            self.in_child(lambda: c.sum(a) == 3e6)
            self.assertEqual(3e6, c.sum(a))

    def test_multiprocessing(self):
        import multiprocessing
        parts = [(k * 1000, numpy.arange(k * 1000, k * 1000 + 1000, dtype="f4")) for k in range(8)]
        with multiprocessing.get_context("fork").Pool(2) as pool:
            partials = pool.map(part, parts)
        self.assertEqual((31996000.0, 7999), tuple(cured.merge(partials).finish(["sum", "argmax"]).values()))


def part(arguments):
    first, a = arguments
    return cured.partial(a, ["sum", "argmax"], first=first)


def everything():
    """A little of all."""
    a = numpy.arange(60, dtype="f4").reshape(5, 12)
    cured.sum(a), cured.sum(a.T), cured.argmax(a.T), cured.sum(a[::2, ::3], axis=0), cured.reduce(a, "min,std", axis=(0, 1))
    cured.mean(a, axis=1, keepdims=True), cured.describe(a), cured.sum(a.astype(">f4")), cured.max(bf16(bytes(64)))
    cured.sum(a, where=a > 3), cured.sum(a, axis=0, where=a > 3, initial=1), cured.sum(numpy.arange(5), initial=2**80)
    cured.max(bf16(bytes(64), (8, 4)), axis=1), cured.sum(numpy.ma.masked_array(a, a > 4), axis=1)
    p = cured.merge([cured.partial(a, "sum,max"), cured.partial(a.T, "sum,max", first=60)])
    p.finish(["sum", "max"]), hash(p), repr(p), bytes(p)
    e = cured.empty((3, 4), "i4")
    cured.sum(e), cured.sum(e[1:]), cured.sum(e.T, axis=1)
    f = cured.file(__file__, dtype="u8")
    f.sum(), f.shape
    z = a[:2, :3].astype("c8")
    cured.sum(z), cured.reduce(z, "mean,norm2,any", axis=0), cured.std(z[0]), cured.dot(z, z), cured.sumsq(z[0], offsets=[0, 2])
    c = cured.Client("embedded:")
    c.sum(a), c.sum(a.T[1:]), c.sum(z)
    c.close()
    for number, bad in enumerate((lambda: cured.sum({1}), lambda: cured.sum(a, axis=7), lambda: cured.min(b""), lambda: cured.sum(a, nan="x"),
                lambda: cured.min(a.astype("c8")), lambda: cured.reduce(a, ["x"]), lambda: cured.sum(a, depth=3),
                lambda: cured.sum(Tensor(bytes(8), 5, 64, (1,))), lambda: cured.sum(numpy.full((2, 2), 2**63 - 1), axis=0),
                lambda: cured.prod(numpy.full(3, 2**62)), lambda: cured.sum(a, where=numpy.ones(3)), lambda: cured.Partial(b"x"),
                lambda: cured.merge([p, p]), lambda: p.finish("prod"), lambda: cured.empty(-1), lambda: cured.file("/none"),
                lambda: cured.sum(a, dtype="i32"), lambda: cured.sum(a, client=1), lambda: cured.Client("unix:/none").sum(a),
                lambda: cured.sum(a, initial=0.1), lambda: cured.sum(numpy.array([None])), lambda: cured.describe(b"").min)):
        try:
            bad()
        except Exception:
            continue
        raise AssertionError("number %d was to be refused" % number)


def rss_bytes():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


class Leaks(Case):
    @unittest.skipIf("address" in os.environ.get("CURED_TEST_SANITIZE", ""), "AddressSanitizer keeps what was freed for a while")
    def test_memory_and_descriptors(self):
        tracemalloc.start()
        try:
            for _ in range(200):  # Python's own lists of free objects fill
                everything()
            gc.collect()
            descriptors, rss = len(os.listdir("/proc/self/fd")), rss_bytes()
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(1500):  # so many that what other tests left in those lists does not count
                everything()
            gc.collect()
            grown = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        self.assertLess(grown, 1500 * 16, "bytes of Python's allocators after 1,500 rounds: less than an object each")
        self.assertEqual(descriptors, len(os.listdir("/proc/self/fd")))
        self.assertLess(rss_bytes() - rss, 1500 * 4096, "resident bytes after 1,500 rounds: less than a page each")

    def test_links_that_nobody_closes(self):
        """A Link goes with its calls, also with those whose answers nobody took."""
        def drop(process):
            link = cured._cured._Link("embedded:")
            a = numpy.ones((300, 300), "f4")
            calls = [link.sum(a), link.sum(a.T[::-1]), link.argmax(a)]
            if process:
                link.process()
            return weakref.ref(a), calls[0] if process else None

        for process in (False, True):
            kept = [drop(process) for _ in range(20)]
            kept = [array for array, call in kept]
            gc.collect()
            self.assertEqual(0, sum(array() is not None for array in kept))

    def test_references(self):
        objects = [numpy.arange(6, dtype="f4"), bytearray(10), "f32", ["sum"], (0,), bf16(bytes(8)), numpy.ones(6, "?")]
        a, b, dtype, ops, axis, t, where = objects
        cured.sum(t)  # its callback refers to it
        counts = [sys.getrefcount(x) for x in objects]
        for _ in range(100):
            cured.sum(a, dtype=dtype), cured.sum(b), cured.reduce(a, ops), cured.sum(a, axis=axis), cured.sum(t)
            cured.sum(a, where=where), cured.sum(a[::2]), cured.sum(a, keepdims=True)
            for bad in (lambda: cured.sum(a, axis=9), lambda: cured.reduce(b, axis), lambda: cured.sum(t, where=where)):
                try:
                    bad()
                except (ValueError, TypeError):
                    pass
        gc.collect()
        self.assertEqual(counts, [sys.getrefcount(x) for x in objects])

    def test_types_and_none(self):
        counts = sys.getrefcount(cured.Partial), sys.getrefcount(cured.Client), sys.getrefcount(cured.File)
        for _ in range(100):
            cured.Partial(bytes(cured.partial(b"1", "sum")))
            cured.Client("embedded:").sum(b"1")
            cured.file(__file__, dtype="u8")
        gc.collect()
        self.assertEqual(counts, (sys.getrefcount(cured.Partial), sys.getrefcount(cured.Client), sys.getrefcount(cured.File)))

    def test_memory_of_answers_goes(self):
        a = numpy.zeros((2, 200_000))
        gc.collect()
        tracemalloc.start()
        try:
            cured.sum(a, axis=0)
            before = tracemalloc.get_traced_memory()[0]
            kept = [cured.sum(a, axis=0) for _ in range(4)]
            self.assertGreater(tracemalloc.get_traced_memory()[0] - before, 4 * 8 * 200_000 - 1)
            del kept
            gc.collect()
            self.assertLess(tracemalloc.get_traced_memory()[0] - before, 100_000)
        finally:
            tracemalloc.stop()

    def test_walks_copy_nothing_whole(self):
        a = numpy.zeros((4000, 4000), "f4")
        tracemalloc.start()
        try:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            cured.argmax(a.T[::2]), cured.sum(a[::2, ::2]), cured.sum(a.view(">f4")), cured.sum(a[::2], axis=1)
            self.assertLess(tracemalloc.get_traced_memory()[1] - before, a.nbytes // 50)
        finally:
            tracemalloc.stop()


class Imports(Case):
    def test_nothing_large_is_loaded(self):
        code = """
import array, sys, cured
for a in array.array("f", [1, 2]), memoryview(b"12"), b"12", bytearray(b"12"), [array.array("f", [3])]:
    cured.sum(a)
print('asyncio' in sys.modules, 'numpy' in sys.modules)"""
        run = subprocess.run([sys.executable, "-c", code], env=dict(os.environ, PYTHONPATH=PACKAGE), stdout=subprocess.PIPE)
        self.assertEqual(b"False False\n", run.stdout)

    def test_other_interpreters(self):
        """A second interpreter in the process gets an error that says why, before and after the first has the module."""
        code = """
import _xxsubinterpreters as i
import sys
def refused():
    try:
        i.run_string(i.create(), "import cured; cured.sum(b'12')")
    except i.RunFailedError as error:
        assert "main interpreter" in str(error), error
    else:
        raise AssertionError("it was imported")
if len(sys.argv) > 1:
    refused()
import cured
refused()
print(cured.sum(b"\\1"))
"""
        for order in ([], ["refused first"]):
            run = subprocess.run([sys.executable, "-c", code, *order], env=dict(os.environ, PYTHONPATH=PACKAGE),
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if b"No module named '_xxsubinterpreters'" in run.stderr:
                self.skipTest("this Python has other names for interpreters")
            self.assertEqual((0, b"1\n"), (run.returncode, run.stdout), run.stderr)

    def test_imported_anew(self):
        """What was made before goes on, also with what is made afterwards."""
        code = """
import sys, cured
part, client = cured.partial(b"12", "sum"), cured.Client("embedded:")
for name in [name for name in sys.modules if name.startswith("cured")]:
    del sys.modules[name]
before = cured
import cured
assert cured is not before and cured.Error is before.Error
print(cured.merge([part, cured.partial(b"3", "sum", first=2)]).finish("sum").sum, cured.sum(b"12", client=client))
"""
        run = subprocess.run([sys.executable, "-c", code], env=dict(os.environ, PYTHONPATH=PACKAGE), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        self.assertEqual((0, b"150 99\n"), (run.returncode, run.stdout), run.stderr)

    def test_names(self):
        """dir() has what is loaded later, too; a star shadows no builtin; each name that is listed is there."""
        self.assertLessEqual({"sum", "AsyncClient", "Search", "count_part", "column", "array_api", "quantile", "Client"}, set(dir(cured)))
        import builtins
        names = {}
        exec("from cured import *", names)
        del names["__builtins__"]
        self.assertEqual(set(), {name for name in names if hasattr(builtins, name)})
        self.assertLessEqual({"mean", "AsyncClient", "nansum", "reduce"}, set(names))
        self.assertEqual([], [name for name in dir(cured) if not hasattr(cured, name)])
        with self.assertRaisesRegex(AttributeError, "no attribute 'suum'"):
            cured.suum

    def test_stubs_name_everything(self):
        import ast
        folder = os.path.dirname(cured.__file__)
        with open(os.path.join(folder, "__init__.pyi")) as f:
            named = {node.name if hasattr(node, "name") else node.target.id for node in ast.parse(f.read()).body
                     if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AnnAssign))}
        public = {name for name in dir(cured) if not name.startswith("_") and not isinstance(getattr(cured, name), type(os))} | {"__version__"}
        self.assertEqual(set(), public - named)
        self.assertEqual(set(), {name for name in named if not name.startswith("_")} - public - TYPES)
        self.assertTrue(os.path.exists(os.path.join(folder, "py.typed")))


if __name__ == "__main__":
    unittest.main()
