"""cuda_memory: device memory of this process in every form that can be shared, through the driver's API: cuMemAlloc with its IPC handle,
cuMemCreate with its descriptor, a memory pool with its descriptor and a pointer's export; and events. Each form is an object with
`source(size, offset, event)`, the message that registers it, and `descriptor` (None for IPC).

Called as a program it is a client that shares memory, has it reduced and is killed: see `doomed`.
"""
import ctypes
import os
import sys
import unittest
from ctypes import byref, c_char, c_int, c_size_t, c_uint64, c_ubyte, c_ushort, c_void_p

from cured_wire import cuda_descriptor_region, cuda_ipc_region

POSIX_DESCRIPTOR, DEVICE, PINNED = 1, 1, 1
EVENT_DISABLE_TIMING, EVENT_INTERPROCESS = 2, 4
NON_BLOCKING = 1


class Handle(ctypes.Structure):
    _fields_ = [("bytes", c_char * 64)]


class Location(ctypes.Structure):
    _fields_ = [("type", c_int), ("id", c_int)]


class AllocationProp(ctypes.Structure):
    _fields_ = [("type", c_int), ("handles", c_int), ("location", Location), ("security", c_void_p), ("compression", c_ubyte),
                ("rdma", c_ubyte), ("usage", c_ushort), ("reserved", c_ubyte * 4)]


class PoolProps(ctypes.Structure):
    _fields_ = [("type", c_int), ("handles", c_int), ("location", Location), ("security", c_void_p), ("most", c_size_t),
                ("usage", c_ushort), ("reserved", c_ubyte * 54)]


class AccessDesc(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", c_int)]


class Gpu:
    """Device 0, as far as a client needs it."""

    def __init__(self):
        try:
            self.driver = ctypes.CDLL("libcuda.so.1")
            self.call("cuInit", 0)
        except (OSError, RuntimeError) as error:
            raise unittest.SkipTest("no CUDA device: %s" % error) from None
        device, context = c_int(), c_void_p()
        self.call("cuDeviceGet", byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", byref(context), device)
        self.call("cuCtxSetCurrent", context)
        raw = (c_char * 16)()
        self.call("cuDeviceGetUuid", raw, device)
        self.uuid = bytes(raw)

    def call(self, name, *arguments):
        result = getattr(self.driver, name)(*arguments)
        if result != 0:
            raise RuntimeError("%s: CUDA error %d" % (name, result))

    def write(self, pointer, data):
        self.call("cuMemcpyHtoD_v2", c_uint64(pointer), bytes(data), c_size_t(len(data)))

    def read(self, pointer, size):
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", data, c_uint64(pointer), c_size_t(size))
        return data.raw


class ByHandle:
    """cuMemAlloc and its IPC handle."""

    descriptor = None

    def __init__(self, gpu, data):
        self.gpu, self.size, self.freed = gpu, len(data), False
        pointer, handle = c_uint64(), Handle()
        gpu.call("cuMemAlloc_v2", byref(pointer), c_size_t(len(data)))
        self.pointer = pointer.value
        gpu.write(self.pointer, data)
        gpu.call("cuIpcGetMemHandle", byref(handle), pointer)
        self.handle = ctypes.string_at(byref(handle), 64)

    def source(self, size=None, offset=0, event=b""):
        return cuda_ipc_region(self.size - offset if size is None else size, self.gpu.uuid, self.handle, offset, event)

    def free(self):
        if not self.freed:
            self.gpu.call("cuMemFree_v2", c_uint64(self.pointer))
        self.freed = True


class ByDescriptor:
    """cuMemCreate, mapped here, and its descriptor. room: bytes of the allocation, in whole grains."""

    def __init__(self, gpu, data):
        self.gpu, self.size, self.freed = gpu, len(data), False
        prop, grain = AllocationProp(PINNED, POSIX_DESCRIPTOR, Location(DEVICE, 0)), c_size_t()
        handle, pointer, descriptor = c_uint64(), c_uint64(), c_int(-1)
        gpu.call("cuMemGetAllocationGranularity", byref(grain), byref(prop), 0)
        self.room = (len(data) + grain.value - 1) // grain.value * grain.value
        gpu.call("cuMemCreate", byref(handle), c_size_t(self.room), byref(prop), c_uint64(0))
        gpu.call("cuMemAddressReserve", byref(pointer), c_size_t(self.room), c_size_t(0), c_uint64(0), c_uint64(0))
        gpu.call("cuMemMap", pointer, c_size_t(self.room), c_size_t(0), handle, c_uint64(0))
        access = AccessDesc(Location(DEVICE, 0), 3)
        gpu.call("cuMemSetAccess", pointer, c_size_t(self.room), byref(access), c_size_t(1))
        gpu.call("cuMemExportToShareableHandle", byref(descriptor), handle, POSIX_DESCRIPTOR, c_uint64(0))
        self.pointer, self.handle, self.descriptor = pointer.value, handle, descriptor.value
        gpu.write(self.pointer, data)

    def source(self, size=None, offset=0, event=b""):
        return cuda_descriptor_region(self.size - offset if size is None else size, self.gpu.uuid, offset, event=event)

    def free(self):
        if self.freed:
            return
        self.freed = True
        os.close(self.descriptor)
        self.gpu.call("cuMemUnmap", c_uint64(self.pointer), c_size_t(self.room))
        self.gpu.call("cuMemAddressFree", c_uint64(self.pointer), c_size_t(self.room))
        self.gpu.call("cuMemRelease", self.handle)


class InPool:
    """A pointer in a memory pool, the pool's descriptor and the pointer's export."""

    def __init__(self, gpu, data, pool=None):
        self.gpu, self.size, self.freed = gpu, len(data), False
        pointer, descriptor, export = c_uint64(), c_int(-1), Handle()
        self.pool = pool or c_void_p()
        if pool is None:
            props = PoolProps(PINNED, POSIX_DESCRIPTOR, Location(DEVICE, 0))
            gpu.call("cuMemPoolCreate", byref(self.pool), byref(props))
        gpu.call("cuMemAllocFromPoolAsync", byref(pointer), c_size_t(len(data)), self.pool, None)
        gpu.call("cuStreamSynchronize", None)
        self.pointer = pointer.value
        gpu.write(self.pointer, data)
        gpu.call("cuMemPoolExportToShareableHandle", byref(descriptor), self.pool, POSIX_DESCRIPTOR, c_uint64(0))
        gpu.call("cuMemPoolExportPointer", byref(export), pointer)
        self.descriptor, self.export = descriptor.value, ctypes.string_at(byref(export), 64)

    def source(self, size=None, offset=0, event=b""):
        return cuda_descriptor_region(self.size - offset if size is None else size, self.gpu.uuid, offset, self.export, event)

    def free(self):
        if self.freed:
            return
        self.freed = True
        os.close(self.descriptor)
        self.gpu.call("cuMemFreeAsync", c_uint64(self.pointer), None)
        self.gpu.call("cuStreamSynchronize", None)


FORMS = {"handle": ByHandle, "descriptor": ByDescriptor, "pool": InPool}


class Event:
    """An event behind work that ends when `fire` is called; and its IPC handle."""

    def __init__(self, gpu):
        self.gpu, self.stream, self.event = gpu, c_void_p(), c_void_p()
        flag, device, handle = c_void_p(), c_uint64(), Handle()
        gpu.call("cuStreamCreate", byref(self.stream), NON_BLOCKING)
        gpu.call("cuEventCreate", byref(self.event), EVENT_DISABLE_TIMING | EVENT_INTERPROCESS)
        gpu.call("cuMemHostAlloc", byref(flag), c_size_t(4096), 2)
        gpu.call("cuMemHostGetDevicePointer_v2", byref(device), flag, 0)
        self.device, self.flag = device, ctypes.cast(flag, ctypes.POINTER(ctypes.c_uint32))
        self.flag[0], self.count = 0, 0
        gpu.call("cuIpcGetEventHandle", byref(handle), self.event)
        self.handle = ctypes.string_at(byref(handle), 64)

    def record(self):
        self.count += 1
        self.gpu.call("cuStreamWaitValue32_v2", self.stream, self.device, ctypes.c_uint32(self.count), 0)
        self.gpu.call("cuEventRecord", self.event, self.stream)

    def fire(self):
        self.flag[0] = self.count

    def free(self):
        self.fire()
        self.gpu.call("cuStreamSynchronize", self.stream)
        self.gpu.call("cuEventDestroy_v2", self.event)


def doomed(form, address, waits):
    """Registers memory, has it reduced many times, and ends by a signal while that goes on. Never returns. waits: with an event that never
    fires."""
    from connection import Connection
    from expected import plain
    gpu = Gpu()
    memory = FORMS[form](gpu, bytes(plain("f32", 1 << 14)) * 256)
    event = Event(gpu) if waits else None
    if event:
        event.record()
    conn = Connection(address)
    number = conn.registered(conn.start_register(1, memory.source(event=event.handle if event else b""), memory.descriptor))
    assert number == memory.size, number
    for _ in range(100):
        conn.start_region("f32", ["sum", "max"], 1)
    os.kill(os.getpid(), 9)


if __name__ == "__main__":
    doomed(sys.argv[1], sys.argv[2], sys.argv[3] == "waits")
