"""Clients of a daemon: heap arrays, shared memory, files, asyncio with reconnects, errors; and who answers where none is named."""
import asyncio
import contextlib
import ctypes
import gc
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import numpy
from support import PACKAGE, Case, cured
from cured_daemon import Daemon, DaemonTest, wait_for
from for_others import for_others


def sample(n=100_000):
    return numpy.random.default_rng(n).standard_normal(n).astype("f4")


class Client(DaemonTest, Case):
    OPTIONS = {"cpu_workers": 2, "slabs": 8}

    def client(self, **options):
        c = cured.Client(self.daemon.address, **options)
        self.addCleanup(c.close)
        return c

    def test_digests(self):
        """By a daemon as here: views, axes, files, partials; and what a digest or a daemon does not take is refused by a sentence."""
        c, a = self.client(), sample(6000).reshape(20, 30, 10)
        for view in (a, a.T, a[::2, :, ::-1], numpy.asfortranarray(a), a.astype(">f4"), a[:0], a.view("u1")):
            self.assertEqual(cured.digest(view), c.digest(view))
            for axis in (0, 1, -1, (0, 2)):
                self.assertEqual(cured.digest(view, axis=axis).tolist(), c.digest(view, axis=axis).tolist(), axis)
        shared = cured.empty(a.shape, "f4")
        shared[...] = a
        self.assertEqual(cured.digest(a), c.digest(shared))
        with tempfile.NamedTemporaryFile(suffix=".npy") as f:
            numpy.save(f, numpy.asfortranarray(a))
            f.flush()
            self.assertEqual(cured.digest(a), cured.file(f.name).digest(client=c))
        flat = a.ravel()
        parts = [c.partial(flat[k:], "digest,sum", first=k) if k else c.partial(flat[:777], "digest,sum") for k in (777, 0)]
        self.assertEqual(cured.digest(a), cured.merge(parts).finish("digest").digest)
        with self.assertRaisesRegex(ValueError, "has element 0"):
            parts[0].finish("digest")
        self.assertEqual(c.digest(flat[:777]), parts[1].finish("digest").digest)  # a whole array, of fewer bytes
        for error, words, call in ((ValueError, "no NaN can be skipped", lambda: c.digest(a, nan="skip")),
                                   (ValueError, "takes no mask", lambda: cured.digest(a, where=a > 0)),
                                   (ValueError, "says first|say first", lambda: c.partial(flat, "digest", first=None))):
            with self.assertRaisesRegex(error, words):
                call()

    def test_same_bits_as_here(self):
        c, a = self.client(), sample()
        ops = ["sum", "mean", "std", "argmax", "norm2", "prod"]
        for view in (a, a[::3], a[::-1], a.reshape(1000, 100).T, a.astype(">f4"), a[:5], a[:0]):
            got, wanted = c.reduce(view, ops[:3]), cured.reduce(view, ops[:3])
            for op in got:
                self.assert_same(got[op], wanted[op], op)
            if view.size:
                self.assert_same(c.argmax(view), cured.argmax(view))
        m = a.reshape(1000, 100)
        self.assert_arrays(c.mean(m, axis=0), cured.mean(m, axis=0))
        self.assert_arrays(cured.mean(m.T, axis=0, client=c), cured.mean(m, axis=1))
        self.assert_same(c.sum(a, where=a > 0), cured.sum(a[a > 0]))
        self.assertEqual(bytes(c.partial(a, ops, first=8192)), bytes(cured.partial(a, ops, first=8192)))

    def test_under_a_mask(self):
        """Heap arrays, shared memory and files, each beside its mask: the bits of this process."""
        c, a = self.client(), sample(280_000).reshape(40, 100, 70)
        shared = cured.empty(a.shape, "f4")
        shared[...] = a
        m = numpy.random.default_rng(3).random(a.shape) < 0.5
        few = numpy.zeros(a.shape, "?")
        few[4, ::7] = True
        with tempfile.NamedTemporaryFile(suffix=".npy") as f:
            numpy.save(f, a)
            f.flush()
            for x in (a, shared, a[::2], a.transpose(1, 2, 0), cured.file(f.name)):
                shape = x.shape if x is not a[::2] else a[::2].shape
                for where in (m, few, m[:1, :, :1]):
                    if shape != a.shape:
                        where = where[::2] if shape == (20, 100, 70) and len(where) > 1 else where if len(where) == 1 else where.transpose(1, 2, 0)
                    if shape == (100, 70, 40) and where.shape == (1, 100, 1):
                        where = where.reshape(100, 1, 1)
                    for axis in (None, 0, (1, 2), -1):
                        wanted = cured.reduce(x, "sum,count,prod,norm2", axis=axis, where=where, client=cured.Client("embedded:"))
                        got = c.reduce(x, "sum,count,prod,norm2", axis=axis, where=where)
                        for op in got:
                            self.assert_arrays(got[op], wanted[op])
                    self.assertEqual(cured.argmax(x, where=where), c.argmax(x, where=where))
        self.assertEqual(bytes(cured.partial(a, "sum,max", where=m)), bytes(c.partial(a, "sum,max", where=m)))

        async def ask():
            async with cured.AsyncClient(self.daemon.address) as client:
                return [await client.sum(x, axis=axis, where=m) for x in (a, shared) for axis in (None, 0, (1, 2))]
        for answer, wanted in zip(asyncio.run(ask()), [cured.sum(a, axis=axis, where=m) for axis in (None, 0, (1, 2))] * 2):
            self.assert_arrays(answer, wanted)

    def test_server(self):
        self.assertRegex(self.client().server, r"^cured/\d")

    def test_close(self):
        with self.client() as c:
            self.assertEqual(6, c.sum(b"\1\2\3"))
        with self.assertRaises(ValueError):
            c.sum(b"\1")
        c.close()
        self.assertIn("closed", repr(c))

    def test_bad_arguments(self):
        for options in ({"threads": 0}, {"threads": 2000}, {"timeout": 0}, {"timeout": -1}, {"timeout": 1e9}):
            with self.assertRaises(ValueError):
                cured.Client(self.daemon.address, **options)
        for arguments in ((7,), (b"x",)):
            with self.assertRaises(TypeError):
                cured.Client(*arguments)

    def test_nobody_listens(self):
        with self.assertRaises(ConnectionError):
            cured.Client("unix:" + os.path.join(self.folder, "nobody")).sum(b"\1")

    def test_shared_memory_is_not_copied(self):
        c = self.client()
        a = cured.empty((300, 400), "f4")
        self.assertEqual(0.0, c.sum(a))
        a[:] = numpy.arange(120000, dtype="f4").reshape(300, 400)
        regions = lambda: self.daemon.counters()["regions"]
        self.assertEqual(float(sum(range(120000))), c.sum(a))
        self.assertEqual(1, regions())
        self.assertEqual(119999, c.argmax(a))
        self.assertEqual(float(sum(range(400, 2000))), c.sum(a[1:5]))
        self.assert_arrays(c.sum(a.T, axis=0), a.sum(axis=1, dtype="f8"))
        self.assert_same(c.sum(a[:, ::2]), cured.sum(a[:, ::2].copy()))
        self.assertEqual(1, regions())
        del a
        gc.collect()
        wait_for("the region to go", lambda: regions() == 0)

    def test_shared_memory_with_a_first_value(self):
        c = self.client()
        a = cured.empty((10, 100))
        a[:] = 1
        self.assertEqual((1005.0, 7.0), (c.sum(a, initial=5), c.max(a, initial=7)))
        self.assertEqual([105.0] * 10, c.sum(a, axis=1, initial=5).tolist())
        self.assertEqual(1005.0, c.sum(a, initial=5, where=numpy.ones((1, 1), "?")))

    def test_shared_memory_outlives_its_client(self):
        a = cured.empty(10, "i4")
        a[:] = 3
        with self.client() as c:
            self.assertEqual(30, c.sum(a))
        with self.client() as c:
            self.assertEqual(30, c.sum(a))
        del c
        self.assertEqual(30, a.sum())

    def test_files(self):
        c, a = self.client(), sample(3000).reshape(30, 100)
        path = os.path.join(self.folder, "a.npy")
        for order in "CF":
            numpy.save(path, numpy.asarray(a, order=order))
            f = cured.file(path)
            self.assertEqual(((30, 100), "f32"), (f.shape, f.dtype))
            self.assert_same(f.sum(client=c), cured.sum(a))
            self.assert_same(c.max(f), cured.max(a))
            for axis in (0, 1):
                self.assert_arrays(f.argmax(axis=axis, client=c), cured.argmax(a, axis=axis))
        self.assertEqual(cured.argmax(a), f.argmax(client=c))

    def test_deadline(self):
        c, said = self.client(timeout=2), None
        for _ in range(30):  # a busy machine takes its time for the first call, too
            with contextlib.suppress(TimeoutError):
                said = c.sum(b"\1")
                break
        self.assertEqual(1, said, "no answer in 30 calls of 2 s")
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            with self.assertRaises(TimeoutError):
                c.sum(sample())
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)

    def test_signals_end_a_call_that_waits(self):
        c = self.client()
        c.sum(b"\1")

        def handler(*_):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, handler)
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with self.assertRaises(KeyboardInterrupt):
                c.sum(sample())
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with self.assertRaises(KeyboardInterrupt):
                self.client().server
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            self.daemon.process.send_signal(signal.SIGCONT)
        self.assertEqual(6, c.sum(b"\1\2\3"))

    def test_fork(self):
        c, a = self.client(), sample()
        shared = cured.empty(1000, "f8")
        shared[:] = 2
        wanted = c.sum(a), c.sum(shared)
        pid = os.fork()
        if pid == 0:
            os._exit(0 if (c.sum(a), c.sum(shared)) == wanted else 1)
        self.assertEqual(0, os.waitpid(pid, 0)[1])
        self.assertEqual(wanted, (c.sum(a), c.sum(shared)))

    def test_threads_share_a_client(self):
        import threading
        c, a = self.client(), sample()
        shared = cured.empty(1000, "f8")
        shared[:] = 2
        wanted, wrong = c.sum(a), []

        def work():
            for _ in range(20):
                if c.sum(a) != wanted or c.sum(shared) != 2000 or c.sum(cured.empty(10)) != 0:
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(6)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual([], wrong)
        del shared
        gc.collect()

    def test_looking_for_answers(self):
        """As on a machine of many cores: answers are right, and each thread gives its seat back, also where a call fails."""
        import threading
        seats = cured._cured._look_seats
        before, wrong = seats(None), []
        self.addCleanup(seats, 1)  # nobody looks, as before on most machines that run tests
        self.assertEqual(7, seats(8))
        c = self.client()
        a, b = cured.empty(1000, "f4"), cured.empty(4_000_000, "f4")  # b: its end is foreseen, and slept for
        a[:] = 1
        b[:] = 1

        def call():
            for k in range(300):
                if c.sum(a) != 1000 or (k % 20 < 4 and c.sum(b) != 4_000_000):
                    wrong.append(k)
                if k % 50 == 0:
                    try:
                        c.sum(numpy.array([2**63, 2**63], "u8"), axis=0, dtype="u8")
                    except OverflowError:
                        continue
                    wrong.append("no overflow")

        threads = [threading.Thread(target=call) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(([], 7), (wrong, seats(None)), before)

    def test_reconnects(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        first = Daemon(folder)
        c, a = cured.Client(first.address), sample()
        shared = cured.empty(10, "i4")
        self.assertEqual(0, c.sum(shared))
        first.stop()
        second = Daemon(folder)
        try:
            self.assert_same(c.sum(a), cured.sum(a))
            self.assertEqual(0, c.sum(shared))
        finally:
            c.close()
            self.assertEqual(0, second.stop())

    def default(self, code):
        """Runs code where this daemon is the one that NULL finds."""
        run = subprocess.run([sys.executable, "-c", "import cured, numpy\n" + code], stdout=subprocess.PIPE, timeout=60,
                             env=dict(os.environ, PYTHONPATH=PACKAGE, CURED_CONNECT=self.daemon.address))
        self.assertEqual(0, run.returncode)
        return run.stdout.decode()

    def test_where_it_is_folded(self):
        path = os.path.join(self.folder, "w.npy")
        numpy.save(path, numpy.ones(1000))
        seen = lambda: self.daemon.counters()["input_bytes_total"]
        before = seen()
        self.assertEqual("150\n", self.default("print(cured.sum(b'123'))"))
        self.assertEqual(before, seen(), "heap arrays are folded in their process, whoever listens")
        self.assertEqual("1000.0\n", self.default("print(cured.file(%r).sum())" % path))
        self.assertEqual(before + 8000, seen(), "files are read by the daemon")
        self.assertEqual("8.0\n", self.default("a = cured.empty(8, 'f4'); a[:] = 1; print(cured.sum(a))"))
        self.assertEqual(before + 8032, seen(), "shared memory is read by the daemon")
        self.assertEqual("3.0\n", self.default("print(cured.sum(numpy.ones(3), client=cured.Client()))"))
        self.assertEqual(before + 8056, seen(), "a client that is named decides")


    def test_a_daemon_that_may_not_be_used(self):
        """Shared memory is then reduced in the process, with a warning."""
        if os.geteuid() != 0:
            self.skipTest("only root can become somebody else")

        def become_nobody():
            os.setgid(65534)
            os.setuid(65534)

        os.chmod(self.folder, 0o755)
        os.chmod(self.daemon.address.partition(":")[2], 0o600)
        environment = dict(os.environ, PYTHONPATH=for_others(PACKAGE), XDG_RUNTIME_DIR=self.folder)
        environment.pop("CURED_CONNECT", None)
        run = subprocess.run([sys.executable, "-c", "import cured; a = cured.empty(4); a[2] = 5; print(cured.sum(a))"], cwd="/",
                             env=environment, preexec_fn=become_nobody, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual("5.0\n", run.stdout, run.stderr)
        self.assertIn("RuntimeWarning: answered in this process", run.stderr)


class Async(DaemonTest, Case):
    OPTIONS = {"cpu_workers": 2, "slabs": 8}

    def run_async(self, test):
        async def main():
            async with cured.AsyncClient(self.daemon.address) as c:
                await test(c)

        asyncio.run(asyncio.wait_for(main(), 60))

    def test_every_kind_of_input(self):
        a = sample()
        m = a.reshape(1000, 100)
        shared = cured.empty(1000, "f8")
        shared[:] = 1.5
        path = os.path.join(self.folder, "async.npy")
        numpy.save(path, m)

        async def test(c):
            got = await asyncio.gather(c.sum(a), c.argmax(m.T), c.mean(m.T, axis=1), c.reduce(a[::2], "min,max"), c.sum(shared),
                                       c.sum(cured.file(path)), c.sum(a, where=a > 0), c.partial(a, "sum"), c.describe(b"12"))
            self.assert_same(got[0], cured.sum(a))
            self.assertEqual(got[1], m.T.argmax())
            self.assert_arrays(got[2], cured.mean(m, axis=0))
            self.assertEqual(dict(got[3]), dict(cured.reduce(a[::2], "min,max")))
            self.assertEqual((1500.0, cured.sum(a), cured.sum(a[a > 0])), (got[4], got[5], got[6]))
            self.assertEqual(got[7], cured.partial(a, "sum"))
            self.assertEqual(2, got[8].count)
            self.assertRegex(c.server, "cured/")

        self.run_async(test)

    def test_numpys_names(self):
        """nansum and the others, minmax and percentile, as methods and by client=."""
        a = numpy.array([[4.0, numpy.nan, 1.5], [2.0, -3.0, numpy.nan]])
        ranked = ("nanmedian", "nanquantile", "nanpercentile", "percentile")

        async def test(c, names):
            for name in names:
                more = (0.25,) if name == "nanquantile" else (25.0,) if name.endswith("percentile") else ()
                for options in ({}, {"axis": 1}, {"axis": 0, "keepdims": True}):
                    want = getattr(cured, name)(a, *more, **options)
                    for got in (await getattr(c, name)(a, *more, **options), await getattr(cured, name)(a, *more, client=c, **options)):
                        self.assertEqual(numpy.asarray(want).tobytes(), numpy.asarray(got).tobytes(), (name, options))
            with self.assertRaisesRegex(TypeError, "AsyncClient takes no out"):
                await c.nansum(a, axis=1, out=numpy.empty(2))

        async def here():
            async with cured.AsyncClient("embedded:") as c:
                await test(c, ranked)

        from cured import _nan
        self.run_async(lambda c: test(c, [name for name in _nan.ASYNC if name not in ranked]))
        asyncio.run(here())

    def test_many_at_once(self):
        arrays = [numpy.full(k * 37, k, "i4") for k in range(200)]

        async def test(c):
            got = await asyncio.gather(*[c.sum(a) for a in arrays])
            self.assertEqual([k * k * 37 for k in range(200)], got)

        self.run_async(test)

    def test_errors(self):
        async def test(c):
            for call, error in ((lambda: c.min(b""), ValueError), (lambda: c.sum({1}), TypeError),
                                (lambda: c.sum(b"1", axis=4), ValueError), (lambda: c.sum(b"1", initial=1), TypeError),
                                (lambda: c.sum(b"1", client=cured.Client()), TypeError),
                                (lambda: c.sum(numpy.ones((2, 2)), axis=0, initial=1), TypeError),
                                (lambda: c.sum(numpy.full((2, 2), 2**63 - 1), axis=0), OverflowError)):
                with self.assertRaises(error):
                    await call()
            self.assertEqual(1, await c.sum(b"\1"))

        self.run_async(test)

    def test_cancel(self):
        big = numpy.zeros(20_000_000)

        async def test(c):
            await c.sum(b"1")
            task = asyncio.create_task(c.sum(big))
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual(0.0, await c.sum(big))

        self.run_async(test)

    def test_the_loop_goes_on(self):
        """While the daemon stands still, other tasks run; then the answer comes."""
        async def test(c):
            await c.sum(b"1")
            self.daemon.process.send_signal(signal.SIGSTOP)
            try:
                task = asyncio.create_task(c.sum(sample()))
                for _ in range(20):
                    await asyncio.sleep(0.001)
                self.assertFalse(task.done())
            finally:
                self.daemon.process.send_signal(signal.SIGCONT)
            self.assert_same(await task, cured.sum(sample()))

        self.run_async(test)

    def test_no_thread_is_started(self):
        script = """
import asyncio, os, array, cured
async def main():
    async with cured.AsyncClient(%r) as c:
        await asyncio.gather(*[c.sum(array.array("f", [1.0]) * 100000) for _ in range(8)])
        print(len(os.listdir("/proc/self/task")))
asyncio.run(main())
""" % self.daemon.address
        run = subprocess.run([sys.executable, "-c", script], env=dict(os.environ, PYTHONPATH=PACKAGE), stdout=subprocess.PIPE,
                             timeout=60)
        self.assertEqual(b"1\n", run.stdout)

    def test_reconnects(self):
        folder = tempfile.mkdtemp(dir=self.folder)

        async def main():
            first = Daemon(folder)
            async with cured.AsyncClient(first.address) as c:
                self.assertEqual(1, await c.sum(b"\1"))
                for _ in range(3):
                    first.stop()
                    first = Daemon(folder)
                    a = sample()
                    got = await asyncio.gather(c.sum(a), c.sum(a[::2]), c.sum(b"\1\2"))
                    self.assertEqual([cured.sum(a), cured.sum(a[::2]), 3], got)
            self.assertEqual(0, first.stop())

        asyncio.run(asyncio.wait_for(main(), 60))

    def test_reconnects_while_it_writes(self):
        """The event loop waits to read and to write, and libcured has closed the descriptor."""
        address, away = os.path.join(self.folder, "either.sock"), os.path.join(self.folder, "away.sock")
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(away)
        listener.listen()
        os.symlink(away, address)

        async def main():
            async with cured.AsyncClient("unix:" + address) as c:
                peer, _ = listener.accept()
                task = asyncio.create_task(c.sum(numpy.ones(1_000_000)))  # more than the socket takes
                while c._watched[2] != select.POLLIN | select.POLLOUT:
                    await asyncio.sleep(0.001)
                os.unlink(address)
                os.symlink(self.daemon.address.partition(":")[2], address)
                peer.close()
                self.assertEqual(1, await c.sum(b"\1"))  # which finds the end before the event loop has looked
                self.assertEqual(1_000_000, await task)

        asyncio.run(asyncio.wait_for(main(), 60))

    def test_one_loop_after_another(self):
        c = cured.AsyncClient(self.daemon.address)
        for k in range(3):
            self.assertEqual(k, asyncio.run(c.sum(bytes([k]))))
        c.close()

    def test_close_with_calls_under_way(self):
        async def main():
            c = cured.AsyncClient(self.daemon.address)
            task = asyncio.create_task(c.sum(numpy.zeros(10_000_000)))
            await asyncio.sleep(0)
            c.close()
            with self.assertRaises(asyncio.CancelledError):
                await task
            with self.assertRaises(ValueError):
                await c.sum(b"1")

        asyncio.run(main())

    def test_close_ends_the_connection(self):
        c = cured.AsyncClient(self.daemon.address)
        asyncio.run(c.sum(b"1"))
        before = self.daemon.counters()["connections"]
        c.close()
        wait_for("the connection to end", lambda: self.daemon.counters()["connections"] == before - 1)

    def test_dropping_ends_the_connection(self):
        """Of a client that nobody closed, and of a Link with calls whose answers nobody took."""
        async def leave():
            c = cured.AsyncClient(self.daemon.address)
            await c.sum(b"1")
            asyncio.ensure_future(c.sum(sample()))
            await asyncio.sleep(0)

        gc.collect()
        before = self.daemon.counters()["connections"]
        asyncio.run(leave())
        link = cured._cured._Link(self.daemon.address)
        link.sum(sample())
        link.process()
        del link
        gc.collect()
        wait_for("the connections to end", lambda: self.daemon.counters()["connections"] <= before)

    def test_nobody_listens(self):
        with self.assertRaises(ConnectionError):
            cured.AsyncClient("unix:" + os.path.join(self.folder, "nobody"))


class Empty(Case):
    def test_shapes_and_types(self):
        for shape in (0, 5, (2, 3), (), (0, 4), [2, 2]):
            for dtype in ("?", "u1", "i2", "f2", "f4", "f8", "u8"):
                a = cured.empty(shape, numpy.dtype(dtype))
                self.assertEqual((numpy.zeros(shape).shape, numpy.dtype(dtype)), (a.shape, a.dtype))
                self.assertFalse(a.any())
        self.assertEqual("f8", cured.empty(3).dtype)

    def test_refused(self):
        for call, error in ((lambda: cured.empty(-1), ValueError), (lambda: cured.empty("x"), TypeError),
                            (lambda: cured.empty(3, "bf16"), TypeError), (lambda: cured.empty(3, "c8"), TypeError),
                            (lambda: cured.empty((2**40, 2**40)), MemoryError),
                            (lambda: cured.empty((0, 2**40, 2**40)), ValueError), (lambda: cured.empty((1,) * 65), ValueError)):
            with self.assertRaises(error):
                call()

    def test_order_of_the_buffer(self):
        """Memory in C order refuses those who want Fortran order."""
        get, give_back = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
        view = ctypes.create_string_buffer(200)  # more than a Py_buffer
        strides, c_order, fortran, any_order = 0x18, 0x38, 0x58, 0x98
        for shape, is_fortran in (((3, 4), False), ((2, 1, 2), False), ((5,), True), ((1, 6, 1), True), ((), True), ((0, 3, 4), True)):
            memory = cured.empty(shape, "f4")
            while not isinstance(memory, memoryview):
                memory = memory.base
            for flags in (strides, c_order, fortran, any_order):
                if flags == fortran and not is_fortran:
                    with self.assertRaisesRegex(BufferError, "C order"):
                        get(ctypes.py_object(memory.obj), view, flags)
                else:
                    get(ctypes.py_object(memory.obj), view, flags)
                    give_back(view)

    def test_sums_without_a_daemon(self):
        a = cured.empty((3, 4), "i8")
        a[:] = 2
        self.assertEqual((24, 8), (cured.sum(a), cured.sum(a[1])))


if __name__ == "__main__":
    unittest.main()
