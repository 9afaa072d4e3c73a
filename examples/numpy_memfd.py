"""numpy_memfd: a NumPy array in a memfd, reduced by cured where it lies: ctypes on libcured, no copy, no extension module.

    python3 numpy_memfd.py [ADDRESS]      LIBCURED names the library where it is not installed

Array() is what a program would keep of this: it makes a sealed array, shows it to NumPy, and registers it once.
"""
import ctypes
import os
import sys

import numpy

DTYPES = {"bool": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "uint32": 6, "int32": 7, "uint64": 8, "int64": 9,
          "float16": 10, "float32": 12, "float64": 13}
OPS = {name: number for number, name in enumerate(
    "sum mean min max argmin argmax count count_nonzero count_nan any all sumsq norm1 norm2 norminf var std prod".split(), 1)}
TO_END = ctypes.c_uint64(2**64 - 1)
P = ctypes.c_void_p


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("retry_after_ms", ctypes.c_uint32), ("text", ctypes.c_char * 240)]


class CuredError(Exception):
    pass


def load():
    lib = ctypes.CDLL(os.environ.get("LIBCURED", "libcured.so.0"))
    for name in ("cured_array_data", "cured_call_value"):
        getattr(lib, name).restype = P
    return lib


class Connection:
    """The functions of cured.h return a status and fill an error: here they raise it."""

    def __init__(self, address=None):
        self.lib = load()
        self.handle = P()
        self.check("cured_connect", address.encode() if address else None, None, ctypes.byref(self.handle))

    def check(self, function, *arguments):
        error = Error()
        if getattr(self.lib, function)(*arguments, ctypes.byref(error)) != 0:
            raise CuredError("%s: %s" % (function, error.text.decode()))

    def close(self):
        self.lib.cured_close(self.handle)


class Array:
    """A NumPy array (.numpy) that the daemon reads in place. Write into it; ask again; it is never copied."""

    def __init__(self, conn, shape, dtype):
        self.conn, self.lib, self.dtype = conn, conn.lib, numpy.dtype(dtype)
        self.memory, self.region = P(), P()
        count = int(numpy.prod(shape))
        conn.check("cured_array_alloc", DTYPES[self.dtype.name], ctypes.c_uint64(count), ctypes.byref(self.memory))
        at = self.lib.cured_array_data(self.memory)
        raw = (ctypes.c_char * (count * self.dtype.itemsize)).from_address(at)
        self.numpy = numpy.frombuffer(raw, self.dtype).reshape(shape)
        conn.check("cured_region_fd", conn.handle, self.lib.cured_array_fd(self.memory), ctypes.byref(self.region))

    def reduce(self, *ops, first=0, count=None):
        """{op: value} of count elements from `first` on; of all without."""
        call = P()
        numbers = (ctypes.c_int * len(ops))(*[OPS[op] for op in ops])
        self.conn.check("cured_region_reduce", self.region, DTYPES[self.dtype.name], numbers, ctypes.c_size_t(len(ops)),
                        ctypes.c_uint64(first * self.dtype.itemsize), TO_END if count is None else ctypes.c_uint64(count),
                        None, ctypes.byref(call))
        try:
            self.conn.check("cured_wait", call)
            return {op: self.value(call, index) for index, op in enumerate(ops)}
        finally:
            self.lib.cured_call_free(call)

    def value(self, call, index):
        value = P(self.lib.cured_call_value(call, ctypes.c_size_t(index)))
        text = ctypes.create_string_buffer(96)
        self.conn.check("cured_value_status", value)
        self.lib.cured_value_text(value, text, ctypes.c_size_t(96))
        word = text.value.decode()
        if word in ("true", "false"):
            return word == "true"
        return int(word) if word.lstrip("-").isdigit() else float(word)

    def free(self):
        self.numpy = None  # the memory goes: nothing may look at it any more
        self.lib.cured_region_free(self.region)
        self.lib.cured_array_free(self.memory)


def main():
    conn = Connection(sys.argv[1] if len(sys.argv) > 1 else None)
    a = Array(conn, (1000, 1000), "float32")
    a.numpy[:] = numpy.random.default_rng(1).normal(size=a.numpy.shape)
    for _ in range(3):
        print(a.reduce("sum", "mean", "min", "max", "std"))
        a.numpy *= 2
    print("one row:", a.reduce("argmax", "max", first=500 * 1000, count=1000))
    a.numpy[123, 456] = 1e6
    print("largest at", divmod(a.reduce("argmax")["argmax"], 1000))
    a.free()
    conn.close()


if __name__ == "__main__":
    main()
