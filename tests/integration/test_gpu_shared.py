"""test_gpu_shared: device memory of another process, on a real GPU. This program holds the memory (through the driver's API),
the daemon opens it by its CUDA IPC handle and folds it where it lies, bit for bit as the oracle says.

Exit status 77: skipped, there is no CUDA device, or the daemon has none.
"""
import ctypes
import os
import shutil
import tempfile
import unittest

from cured_daemon import CURED, Daemon, DaemonTest, main, need_binary
from cured_wire import INVALID_ARGUMENT, cuda_ipc_region
from expected import expect, expect_tiled, plain

OPS = ["sum", "mean", "min", "max", "argmin", "argmax", "count", "count_nonzero", "count_nan", "any", "all"]


class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 64)]


class Gpu:
    """Device 0, as far as a client needs it."""

    def __init__(self):
        try:
            self.driver = ctypes.CDLL("libcuda.so.1")
            self.check(self.driver.cuInit(0), "cuInit")
        except (OSError, RuntimeError) as error:
            raise unittest.SkipTest("no CUDA device: %s" % error) from None
        self.device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.check(self.driver.cuDeviceGet(ctypes.byref(self.device), 0), "cuDeviceGet")
        self.check(self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), self.device), "cuDevicePrimaryCtxRetain")
        self.check(self.driver.cuCtxSetCurrent(self.context), "cuCtxSetCurrent")
        raw = (ctypes.c_char * 16)()
        self.check(self.driver.cuDeviceGetUuid(raw, self.device), "cuDeviceGetUuid")
        self.uuid = bytes(raw)

    @staticmethod
    def check(result, what):
        if result != 0:
            raise RuntimeError("%s: CUDA error %d" % (what, result))

    def array(self, data):
        """(pointer, IPC handle of 64 bytes) of new device memory that holds data."""
        pointer, handle = ctypes.c_uint64(), Handle()
        self.check(self.driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(len(data))), "cuMemAlloc")
        self.check(self.driver.cuMemcpyHtoD_v2(pointer, bytes(data), ctypes.c_size_t(len(data))), "cuMemcpyHtoD")
        self.check(self.driver.cuIpcGetMemHandle(ctypes.byref(handle), pointer), "cuIpcGetMemHandle")
        return pointer, ctypes.string_at(ctypes.byref(handle), 64)

    def free(self, pointer):
        self.check(self.driver.cuMemFree_v2(pointer), "cuMemFree")


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


class Shared(DaemonTest):
    OPTIONS = {"backend": "auto"}
    TILES = 640  # of 128 KiB: 80 MiB

    def setUp(self):
        self.conn = self.connect()

    def share(self, region, data, size=None, offset=0):
        pointer, handle = gpu.array(data)
        self.addCleanup(gpu.free, pointer)
        return self.conn.registered(self.conn.start_register(region, cuda_ipc_region(size or len(data), gpu.uuid, handle, offset)))

    def test_folds_in_place(self):
        for region, dtype in enumerate(("f32", "f64", "i32", "u8", "f16"), 1):
            tile = plain(dtype, (1 << 17) // {"f64": 8, "u8": 1, "f16": 2}.get(dtype, 4))
            self.assertIsInstance(self.share(region, bytes(tile) * self.TILES), int)
            before = self.daemon.counters()["gpu_bytes_total"]
            self.assertEqual([expect_tiled(op, dtype, tile, self.TILES) for op in OPS], self.conn.region(dtype, OPS, region).keys())
            self.assertGreaterEqual(self.daemon.counters()["gpu_bytes_total"] - before, len(tile) * self.TILES)
            self.assertIsNone(self.conn.unregister(region))

    def test_ranges_and_starts(self):
        data = plain("f32", 300000)
        self.assertIsInstance(self.share(9, data), int)
        for offset, count in ((0, 1), (4, 299999), (3, 4000), (1021 * 4, 70001), (len(data), 0)):
            part = bytes(data)[offset:offset + 4 * count]
            self.assertEqual([expect("sum", "f32", part), expect("count", "f32", part)],
                             self.conn.region("f32", ["sum", "count"], 9, offset, count).keys())
        self.assertIsNone(self.conn.unregister(9))

    def test_many_jobs_at_once(self):
        data = plain("f64", 1 << 20)
        self.assertIsInstance(self.share(5, data), int)
        wanted = [expect("sum", "f64", data), expect("max", "f64", data)]
        streams = [self.conn.start_region("f64", ["sum", "max"], 5) for _ in range(32)]
        for stream in streams:
            self.assertEqual(wanted, self.conn.wait(stream).keys())
        self.assertIsNone(self.conn.unregister(5))

    def test_what_is_not_there(self):
        data = plain("f32", 1 << 20)
        status = self.share(6, data, size=1 << 40)
        self.assert_sentence(status, INVALID_ARGUMENT, "allocation")
        garbage = os.urandom(64)
        status = self.conn.registered(self.conn.start_register(7, cuda_ipc_region(4096, gpu.uuid, garbage)))
        self.assert_sentence(status, INVALID_ARGUMENT, "handle")
        status = self.conn.registered(self.conn.start_register(7, cuda_ipc_region(4096, bytes(range(16)), garbage)))
        self.assert_sentence(status, status.code, "GPU-")
        self.assert_serves()

    def test_clients_that_leave(self):
        """Regions go with their connection, also in the middle of a job."""
        self.conn.close()
        data = plain("f32", 1 << 22)
        for _ in range(20):
            with self.daemon.connect() as other:
                pointer, handle = gpu.array(data)
                self.addCleanup(gpu.free, pointer)
                self.assertIsInstance(other.registered(other.start_register(1, cuda_ipc_region(len(data), gpu.uuid, handle))), int)
                other.start_region("f32", ["sum"], 1)
        self.daemon.check_returned(self)
        self.assert_serves()


if __name__ == "__main__":
    main()
