"""test_gpu_shared: device memory of another process, on a real GPU. This program holds the memory (through the driver's API), the daemon opens
it by a CUDA IPC handle, a descriptor, or a pointer in a pool, and folds it where it lies, bit for bit as the oracle says. Whoever
lies about memory or ends with it harms nobody else.

Exit status 77: skipped, there is no CUDA device, or the daemon has none.
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

from cuda_memory import FORMS, ByHandle, Event, Gpu, InPool
from cured_daemon import CURED, HANG_S, Daemon, DaemonTest, main, need_binary, wait_for
from cured_wire import CANCELLED, DEADLINE_EXCEEDED, INVALID_ARGUMENT, NOT_FOUND, cuda_descriptor_region, cuda_ipc_region, frame
from expected import expect, expect_all, expect_tiled, plain

OPS = ["sum", "mean", "min", "max", "argmin", "argmax", "count", "count_nonzero", "count_nan", "count_inf", "any", "all"]
CANCEL = 5


def setUpModule():
    global gpu
    need_binary(CURED)
    gpu = Gpu()
    folder = tempfile.mkdtemp(prefix="cured-it-")
    try:
        Daemon(folder, backend="cuda").stop()
    except AssertionError as error:
        raise unittest.SkipTest("no CUDA device: %s" % str(error).splitlines()[-1]) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class SharedTest(DaemonTest):
    OPTIONS = {"backend": "auto"}

    @classmethod
    def setUpClass(cls):
        """What the driver makes for the first of each kind, and the process that tries them, stay."""
        super().setUpClass()
        event = Event(gpu)
        with cls.daemon.connect() as c:
            for number, form in enumerate(FORMS, 1):
                memory = FORMS[form](gpu, bytes(4096))
                status = c.registered(c.start_register(number, memory.source(event=event.handle), memory.descriptor))
                assert status == 4096, (form, status, cls.daemon.log())
                assert c.region("u8", ["sum"], number).status is None
                assert c.unregister(number) is None
                memory.free()
        event.free()
        cls.daemon.hold_from_now()

    def setUp(self):
        self.conn = self.connect()

    def tearDown(self):
        self.conn.close()
        self.daemon.check_returned(self)
        counters = self.daemon.counters()
        self.assertGreaterEqual(counters["gpus"], 1, self.daemon.log())  # all that there are
        self.assertEqual(0, counters["gpus_lost_total"], self.daemon.log())
        self.assert_serves()

    def made(self, form, data):
        memory = FORMS[form](gpu, data)
        self.addCleanup(memory.free)
        return memory

    def register(self, region, memory, size=None, offset=0, event=b""):
        stream = self.conn.start_register(region, memory.source(size, offset, event), memory.descriptor)
        return self.conn.registered(stream)

    def held(self):
        return self.daemon.counters()["device_regions"]


class Shared(SharedTest):
    TILES = 640  # of 128 KiB: 80 MiB

    def test_folds_in_place(self):
        for form in FORMS:
            for region, dtype in enumerate(("f32", "f64", "i32", "u8", "f16"), 1):
                with self.subTest((form, dtype)):
                    tile = plain(dtype, (1 << 17) // {"f64": 8, "u8": 1, "f16": 2}.get(dtype, 4))
                    memory = self.made(form, bytes(tile) * self.TILES)
                    self.assertEqual(memory.size, self.register(region, memory))
                    before = self.daemon.counters()["gpu_bytes_total"]
                    self.assertEqual([expect_tiled(op, dtype, tile, self.TILES) for op in OPS],
                                     self.conn.region(dtype, OPS, region).keys())
                    self.assertGreaterEqual(self.daemon.counters()["gpu_bytes_total"] - before, memory.size)
                    self.assertIsNone(self.conn.unregister(region))
                    memory.free()
        self.assertEqual(0, self.held())

    def test_ranges_and_starts(self):
        data = plain("f32", 100000)
        for form in FORMS:
            memory = self.made(form, data)
            self.assertEqual(len(data), self.register(9, memory))
            self.assertEqual(len(data) - 4096, self.register(10, memory, None, 4096))
            self.assertEqual(5, self.register(11, memory, 5, 77))
            for offset, count in ((0, 1), (4, 99999), (3, 4000), (1021 * 4, 30001), (len(data), 0)):
                part = bytes(data)[offset:offset + 4 * count]
                self.assertEqual([expect("sum", "f32", part), expect("count", "f32", part)],
                                 self.conn.region("f32", ["sum", "count"], 9, offset, count).keys(), form)
            self.assertEqual(expect_all(OPS, "f32", bytes(data)[4096:]), self.conn.region("f32", OPS, 10).keys(), form)
            self.assertEqual(expect_all(["sum"], "u8", bytes(data)[77:82]), self.conn.region("u8", ["sum"], 11).keys(), form)
            for region in (9, 10, 11):
                self.assertIsNone(self.conn.unregister(region))

    def test_many_jobs_at_once(self):
        tile = bytes(plain("f64", 1 << 14))
        data = tile * 64
        wanted = [expect_tiled(op, "f64", tile, 64) for op in ("sum", "max")]
        for region, form in enumerate(FORMS, 1):
            self.assertEqual(len(data), self.register(region, self.made(form, data)))
        streams = [self.conn.start_region("f64", ["sum", "max"], region) for region in (1, 2, 3) * 16]
        for stream in streams:
            self.assertEqual(wanted, self.conn.wait(stream).keys())
        for region in (1, 2, 3):
            self.assertIsNone(self.conn.unregister(region))

    def test_two_in_one_pool(self):
        first, second = plain("i32", 1000), plain("i32", 3 << 20, 2)
        a = self.made("pool", first)
        b = InPool(gpu, second, a.pool)
        self.addCleanup(b.free)
        for region, memory in ((1, a), (2, b), (3, b)):
            self.assertEqual(memory.size, self.register(region, memory))
        self.assertIsNone(self.conn.unregister(2))
        for region, data in ((1, first), (3, second)):
            self.assertEqual(expect_all(["sum", "max"], "i32", data), self.conn.region("i32", ["sum", "max"], region).keys())
            self.assertIsNone(self.conn.unregister(region))

    def test_bytes_are_read_anew(self):
        for form in FORMS:
            memory = self.made(form, bytes(1000))
            self.register(1, memory)
            for value in (1, 2, 3):
                gpu.write(memory.pointer, bytes([value]) * 1000)
                gpu.call("cuCtxSynchronize")
                self.assertEqual(1000 * value, int.from_bytes(self.conn.region("u8", ["sum"], 1).results[0].value, "little"), form)
            self.assertIsNone(self.conn.unregister(1))

    def test_clients_that_leave(self):
        """Regions go with their connection, also in the middle of a job."""
        self.conn.close()
        data = bytes(plain("f32", 1 << 14)) * 256
        memories = [self.made(form, data) for form in FORMS]
        for turn in range(21):
            memory = memories[turn % 3]
            with self.daemon.connect() as other:
                other.registered(other.start_register(1, memory.source(), memory.descriptor))
                other.start_region("f32", ["sum"], 1)
        self.daemon.check_returned(self)
        wait_for("all device memory given back", lambda: self.held() == 0)


class Events(SharedTest):
    def test_jobs_wait_for_it(self):
        data = plain("f32", 20000)
        wanted = expect_all(OPS, "f32", data)
        for form in FORMS:
            memory, event = self.made(form, bytes(len(data))), Event(gpu)
            self.addCleanup(event.free)
            self.assertEqual(len(data), self.register(1, memory, event=event.handle))
            self.assertIsNone(self.conn.region("f32", ["sum"], 1).status, "an event that was never recorded has fired")
            for _ in range(3):
                event.record()
                stream = self.conn.start_region("f32", OPS, 1)
                self.conn.ping()
                self.assertIsNone(self.conn.stream("u8", ["sum"], bytes(32 << 20)).status)
                self.assertFalse(self.conn.answers[stream].over, "it did not wait: %s" % form)
                gpu.write(memory.pointer, data)
                event.fire()
                self.assertEqual(wanted, self.conn.wait(stream).keys(), form)
            self.assertIsNone(self.conn.unregister(1))

    def test_one_that_does_not_fire(self):
        data = plain("f32", 1000)
        memory, event = self.made("handle", data), Event(gpu)
        self.addCleanup(event.free)
        self.register(1, memory, event=event.handle)
        event.record()
        status = self.conn.region("f32", ["sum"], 1, timeout_ms=100).status
        self.assert_sentence(status, DEADLINE_EXCEEDED, "timeout_ms")
        stays = self.conn.start_region("f32", OPS, 1)
        self.register(2, self.made("descriptor", data))
        self.assertEqual(expect_all(OPS, "f32", data), self.conn.region("f32", OPS, 2).keys())
        self.conn.send(frame(CANCEL, stays))
        self.assertEqual(CANCELLED, self.conn.wait(stays).status.code)
        self.assertIsNone(self.conn.unregister(1))

    def test_garbage(self):
        memory, event = self.made("handle", bytes(4096)), Event(gpu)
        self.addCleanup(event.free)
        r = random.Random(5)
        for turn in range(16):
            handle = bytearray(event.handle)
            for _ in range(1 + turn % 4):
                handle[r.randrange(64)] = r.randrange(256)
            handle = bytes(64) if turn == 0 else os.urandom(64) if turn < 6 else bytes(handle)
            status = self.register(1, memory, event=handle)
            if status == 4096:
                self.conn.region("u8", ["sum"], 1, timeout_ms=1000)
                self.assertIsNone(self.conn.unregister(1))
            else:
                self.assert_sentence(status, INVALID_ARGUMENT, "event")


class Liars(SharedTest):
    def test_more_than_there_is(self):
        for form in FORMS:
            memory = self.made(form, bytes(4 << 20))
            room = getattr(memory, "room", memory.size)
            for size, offset in ((room + 1, 0), (1 << 40, 0), (1 << 62, 0), (1, room), (room, 1), (1, 2**64 - 2)):
                self.assert_sentence(self.register(6, memory, size, offset), INVALID_ARGUMENT, "device memory")
        self.assertEqual(0, self.held())

    def test_what_is_something_else(self):
        garbage = os.urandom(64)
        data = bytes(4096)
        vmm, pool = self.made("descriptor", data), self.made("pool", data)
        nul = os.open("/dev/null", os.O_RDWR)
        self.addCleanup(os.close, nul)
        nvidia = [os.open(path, os.O_RDWR) for path in ("/dev/nvidiactl", "/dev/nvidia0") if os.path.exists(path)]
        for fd in nvidia:
            self.addCleanup(os.close, fd)
        for what, source, fd in (("garbage", cuda_ipc_region(4096, gpu.uuid, garbage), None),
                                 ("zeros", cuda_ipc_region(4096, gpu.uuid, bytes(64)), None),
                                 ("a memfd", cuda_descriptor_region(4096, gpu.uuid), self.memfd(data).fileno()),
                                 ("a file", cuda_descriptor_region(4096, gpu.uuid), self.file(data).fileno()),
                                 ("a device", cuda_descriptor_region(4096, gpu.uuid), nul),
                                 ("its own connection", cuda_descriptor_region(4096, gpu.uuid), self.conn.socket.fileno()),
                                 ("a memfd for a pool", cuda_descriptor_region(4096, gpu.uuid, 0, pool.export), self.memfd().fileno()),
                                 ("a garbage pointer", cuda_descriptor_region(4096, gpu.uuid, 0, garbage), pool.descriptor),
                                 ("memory for a pool", cuda_descriptor_region(4096, gpu.uuid, 0, pool.export), vmm.descriptor),
                                 ("a pool for memory", cuda_descriptor_region(4096, gpu.uuid), pool.descriptor),
                                 *(("the driver's own", cuda_descriptor_region(4096, gpu.uuid), fd) for fd in nvidia)):
            with self.subTest(what):
                status = self.conn.registered(self.conn.start_register(7, source, fd))
                self.assert_sentence(status, INVALID_ARGUMENT)
        status = self.conn.registered(self.conn.start_register(7, cuda_ipc_region(4096, bytes(range(16)), garbage)))
        self.assert_sentence(status, NOT_FOUND, "GPU-")
        self.assertEqual(0, self.held())

    def test_stale_handles(self):
        memory = ByHandle(gpu, bytes(4096))
        memory.free()
        status = self.register(8, memory)
        self.assertTrue(status == 4096 or status.code == INVALID_ARGUMENT, status)  # freed memory may be kept by its owner's driver
        if status == 4096:
            self.assertIsNone(self.conn.unregister(8))

    def test_freed_under_the_daemons_hands(self):
        """What the daemon has open is read to the end: garbage, but nobody else's trouble."""
        for form in FORMS:
            with self.subTest(form):
                memory = self.made(form, bytes(plain("f32", 1 << 14)) * 256)
                self.register(8, memory)
                streams = [self.conn.start_region("f32", ["sum"], 8) for _ in range(50)]
                memory.free()
                streams += [self.conn.start_region("f32", ["sum"], 8) for _ in range(50)]
                for stream in streams:
                    self.conn.wait(stream)
                self.assertIsNone(self.conn.unregister(8))


class Fuzz(SharedTest):
    """Handles and exports with some bytes changed: refused, or something else of that client's own; the daemon goes on."""

    def fuzz(self, memory, valid, make, turns=40):
        r = random.Random(7)
        taken = 0
        for _ in range(turns):
            changed = bytearray(valid)
            for _ in range(r.choice((1, 1, 1, 2, 4, 8))):
                changed[r.randrange(len(changed))] = r.choice((0, 255, r.randrange(256)))
            status = self.conn.registered(self.conn.start_register(1, make(bytes(changed)), memory.descriptor))
            if isinstance(status, int):
                taken += 1
                self.conn.region("u8", ["sum"], 1)
                self.assertIsNone(self.conn.unregister(1))
            else:
                self.assertEqual(INVALID_ARGUMENT, status.code, status.message)
        print("%s: %d of %d changed ones were opened" % (type(memory).__name__, taken, turns))

    def test_handles(self):
        memory = self.made("handle", bytes(1 << 20))
        self.fuzz(memory, memory.handle, lambda handle: cuda_ipc_region(1 << 20, gpu.uuid, handle))

    def test_pointers(self):
        memory = self.made("pool", bytes(1 << 20))
        self.fuzz(memory, memory.export, lambda export: cuda_descriptor_region(1 << 20, gpu.uuid, 0, export))


class Deaths(SharedTest):
    """Clients that are killed with reductions of their memory under way. The driver keeps a page of /dev/shm mapped for each process whose
    event it has opened, until the daemon ends: that is not counted."""

    def test_in_the_middle_of_jobs(self):
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cuda_memory.py")
        memory = self.made("handle", bytes(plain("f32", 1 << 14)) * 64)
        self.register(1, memory)
        wanted = self.conn.region("f32", OPS, 1).keys()
        for form in FORMS:
            for waits in ("waits", "-", "-", "-"):
                done = subprocess.run([sys.executable, program, form, self.daemon.address, waits], capture_output=True, text=True,
                                      timeout=HANG_S)
                self.assertEqual(-9, done.returncode, done.stderr)
                self.assertEqual(wanted, self.conn.region("f32", OPS, 1).keys(), form)
        self.assertIsNone(self.conn.unregister(1))
        wait_for("all device memory given back", lambda: self.held() == 0)


if __name__ == "__main__":
    main()
