"""gpu_axis: what the tests of reductions along an axis on a GPU share: a daemon with the stand-in GPU (tests/fake), or, with CURED_TEST_REAL_GPU
set, the daemon itself on the machine's GPU; arrays in that device's memory.
"""
import functools
import os
import shutil
import struct
import tempfile
import unittest

import cuda_memory
import test_axis
from cured_daemon import CURED, Daemon, DaemonTest, need_binary
from cured_wire import cuda_descriptor_region

REAL = bool(os.environ.get("CURED_TEST_REAL_GPU"))
PROGRAM = CURED if REAL else os.path.join(os.environ.get("CURED_TEST_DIR", ""), "cured-fake-gpu")
OPTIONS = {"backend": "auto", "gpu_chunk_bytes": 1 << 20, "gpu_streams": 3, "slabs": 16, "cpu_workers": 1, "gpu_timeout_ms": 60000}
gpu = None


def setUpModule():
    global gpu
    need_binary(PROGRAM)
    if not REAL:
        return
    gpu = cuda_memory.Gpu()
    folder = tempfile.mkdtemp(prefix="cured-it-")
    try:
        Daemon(folder, program=PROGRAM, backend="cuda").stop()
    except AssertionError as error:
        raise unittest.SkipTest("no CUDA device: %s" % str(error).splitlines()[-1]) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Stand:
    """Memory of the stand-in: a file with a head."""

    def __init__(self, data, ordinal=0):
        self.size, self.ordinal = len(data), ordinal
        self.file = os.fdopen(os.memfd_create("device"), "w+b", buffering=0)
        view = memoryview(b"fake-vmm" + struct.pack("<QQQ", ordinal, 0, self.size) + bytes(32) + bytes(data))
        while view.nbytes:
            view = view[self.file.write(view):]
        self.descriptor = self.file.fileno()

    def source(self, size=None, offset=0, event=b""):
        size = self.size - offset if size is None else size
        return cuda_descriptor_region(size, bytes(15) + bytes([self.ordinal]), offset, event=event)

    def read(self):
        return os.pread(self.descriptor, self.size, 64)

    def free(self):
        self.file.close()


def device_memory(data, form="descriptor"):
    return cuda_memory.FORMS[form](gpu, data) if REAL else Stand(data)


def content(memory):
    return gpu.read(memory.pointer, memory.size) if REAL else memory.read()


@functools.lru_cache(maxsize=None)
def large(shape):
    return test_axis.AxisTest.large(None, shape)


class AxisTest(DaemonTest):
    PROGRAM = PROGRAM
    OPTIONS = OPTIONS
    check = test_axis.AxisTest.check

    def large(self, shape):
        return large(shape)

    @classmethod
    def setUpClass(cls):
        """What is made for the first device memory stays."""
        super().setUpClass()
        memory = device_memory(bytes(4096))
        with cls.daemon.connect() as c:
            assert c.registered(c.start_register(1, memory.source(), memory.descriptor)) == 4096, cls.daemon.log()
        memory.free()
        cls.daemon.hold_from_now()

    def setUp(self):
        self.conn = self.connect()
        self.next = 1

    def put(self, data, conn=None, form="descriptor"):
        """The number of a region in device memory that holds data."""
        memory = device_memory(data, form)
        self.addCleanup(memory.free)
        self.next += 1
        conn = conn or self.conn
        self.assertEqual(len(data), conn.registered(conn.start_register(self.next, memory.source(), memory.descriptor)))
        return self.next

    def ask(self, dtype, ops, region, shape, at=0, **options):
        return self.conn.region(dtype, ops, region, at, shape[0] * shape[1] * shape[2], axis=shape, **options)
