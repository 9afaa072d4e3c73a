"""support: what the tests of the Python extension share: the package from the build, the oracle's answers as Python values,
and NumPy's types.

Answers are equal when their bits are: floats are compared with their sign, so that -0 is not 0, and NaN equals NaN.
"""
import collections.abc
import copy
import doctest
import math
import operator
import os
import pickle
import re
import struct
import sys
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.dirname(os.path.abspath(os.environ.get("CURED_TEST_BIN", os.path.join(ROOT, "build", "cpu-only", "bin"))))
PACKAGE = os.path.join(BUILD, "python")
sys.path[:0] = [PACKAGE, os.path.join(ROOT, "tests", "oracle")]
sys.path.append(os.path.join(ROOT, "tests", "integration"))

try:
    import numpy
except ImportError:
    print("skipped: this Python has no NumPy (package python3-numpy)")
    sys.exit(77)
try:
    import cured
except ImportError as error:
    print("skipped: the extension is not built here (%s)" % error)
    sys.exit(77)
import arrays  # noqa: E402: tests/oracle
import ops as ops_table  # noqa: E402: tests/oracle
import oracle  # noqa: E402: tests/oracle

WHOLE = ops_table.WHOLE
OPS = [name for name in dir(cured._cured) if name in ops_table.IDS]
NUMPY = {"bool": "?", "u8": "u1", "i8": "i1", "u16": "<u2", "i16": "<i2", "u32": "<u4", "i32": "<i4", "u64": "<u8",
         "i64": "<i8", "f16": "<f2", "f32": "<f4", "f64": "<f8"}  # bf16 and f8 have no type there
DLPACK = {"bf16": (4, 16), "f8_e4m3": (10, 8), "f8_e5m2": (12, 8)}
ERRORS = {"INVALID_ARGUMENT": ValueError, "OUT_OF_RANGE": OverflowError}


def python_value(dtype, raw):
    """An element's bytes as the int, float or bool that cured answers."""
    if dtype == "digest":
        return "cd1-%016x%016x-%d" % struct.unpack("<3Q", raw)
    if dtype == "bool":
        return raw != b"\0"
    if dtype in oracle.FLOATS:
        if dtype == "bf16":
            raw = b"\0\0" + raw
        if dtype == "f8_e4m3":
            exponent, mantissa = raw[0] >> 3 & 15, raw[0] & 7
            value = math.nan if raw[0] & 127 == 127 else math.ldexp(mantissa + 8 * (exponent > 0), max(exponent, 1) - 10)
            return -value if raw[0] >> 7 else value
        if dtype == "f8_e5m2":
            raw = b"\0" + raw
        return struct.unpack("<" + {2: "e", 4: "f", 8: "d"}[len(raw)], raw)[0]
    return int.from_bytes(raw, "little", signed=dtype not in ("u8", "u16", "u32", "u64"))


def same(a, b):
    """Whether two answers are of one type and have one value, bit for bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return a == b


def order(x):
    return (x, math.copysign(1, x))


class Case(unittest.TestCase):
    def assert_example(self, function, commands):
        """The commands in a function's text, which a page shows: all are run, and answer what stands there."""
        runner = doctest.DocTestRunner(verbose=False)
        for test in doctest.DocTestFinder().find(function, "example"):
            runner.run(test)
        self.assertEqual((0, commands), (runner.failures, runner.tries))

    def assert_answers(self, wanted, got, ops, what=""):
        """Two Results have the same answers to the ops, or none for the same reason."""
        for op in ops:
            try:
                value = wanted[op]
            except (ValueError, OverflowError) as error:
                with self.assertRaises(type(error)):
                    got[op]
            else:
                self.assertTrue(same(value, got[op]), "%s%s: %r is not %r" % (op, what, got[op], value))

    def assert_sequence(self, got, wanted, what=""):
        """What cured.reduce_each gave is to its user the list of those Results, but that it cannot be changed."""
        n, made = len(wanted), list(got)
        self.assertIs(type(got), cured.Results)
        self.assertIsInstance(got, collections.abc.Sequence)
        self.assertEqual((repr(wanted), n, n != 0), (repr(got), len(got), bool(got)), what)
        self.assertEqual([id(r) for r in made], [id(got[k]) for k in range(n)], what)
        self.assertEqual([id(r) for r in made], [id(got[k - n]) for k in range(n)], what)
        self.assertEqual([id(r) for r in made[::-1]], [id(r) for r in reversed(got)], what)
        for part in (slice(None), slice(1, -1), slice(None, None, -2), slice(5, 2), slice(-3, 99), slice(99, None)):
            self.assertIs(type(got[part]), list)
            self.assertEqual([id(r) for r in made[part]], [id(r) for r in got[part]], (what, part))
        for copied in (got.copy(), copy.copy(got), copy.deepcopy(got), pickle.loads(pickle.dumps(got)), got + [], [] + got, got[:]):
            self.assertIs(type(copied), list)
            self.assertEqual(repr(wanted), repr(copied), what)
        self.assertTrue(got == made and made == got and got == got and not got != made and got != tuple(made) and got != made[1:] and got <= made)
        self.assertEqual([got + got, got + made, made + got], [made + made] * 3, what)
        if n != 0 and not re.search("nan|<", repr(wanted)):  # others are equal to nothing, or raise
            self.assertTrue(got == wanted and wanted == got, what)
            self.assertTrue(wanted[-1] in got and {} not in got)
            self.assertEqual((wanted.index(wanted[-1]), wanted.count(wanted[0]), n - 1), (got.index(wanted[-1]), got.count(wanted[0]), got.index(made[-1], n - 1)))
            with self.assertRaisesRegex(ValueError, "is not in list"):
                got.index({})
        for kind, said, call in ((IndexError, "results", lambda: got[n]), (IndexError, "results", lambda: got[-n - 1]), (IndexError, "", lambda: got[2**70]),
                                 (TypeError, "an integer or a slice is wanted, not <class 'str'>", lambda: got["sum"]), (TypeError, "unhashable", lambda: hash(got)),
                                 (TypeError, "", lambda: got + ()), (TypeError, "", lambda: operator.setitem(got, 0, None)), (AttributeError, "", lambda: got.append)):
            with self.assertRaisesRegex(kind, said, msg=what):
                call()

    def assert_same(self, a, b, what=""):
        self.assertTrue(same(a, b), "%r is not %r %s" % (a, b, what))

    def assert_arrays(self, a, b, what=""):
        """Of one shape and type, with the same bits, but for NaNs."""
        a, b = numpy.asarray(a), numpy.asarray(b)
        self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype), what)
        nan = (a != a) & (b != b)
        equal = nan | ((a == b) & (numpy.signbit(a) == numpy.signbit(b) if a.dtype.kind == "f" else True))
        self.assertTrue(equal.all(), "%r is not %r %s" % (a, b, what))

    def check_oracle(self, got, op, dtype, raw, what="", **options):
        """got(): cured's answer, or its exception."""
        wanted = oracle.answer(op, dtype, raw, **options)
        what = "%s of %s %s" % (op, dtype, what)
        if wanted[0] == "error":
            with self.assertRaises(ERRORS[wanted[1]], msg=what):
                got()
        elif wanted[0] == "between":
            low, high = wanted[2:]
            bits = struct.unpack("<q", struct.pack("<d", got()))[0]
            self.assertTrue(low <= oracle.order("f64", bits % 2**64) <= high, what)
        else:
            self.assert_same(got(), python_value(wanted[1], wanted[2]), what)


class Tensor:
    """A CPU tensor that speaks DLPack and nothing else, made by hand: for types that NumPy has not (bf16)."""

    def __init__(self, raw, code, bits, shape, strides=None, device=(1, 0), offset=0):
        import ctypes as c
        self.raw = c.create_string_buffer(raw, len(raw))
        self.code, self.bits, self.shape, self.strides, self.device, self.offset = code, bits, shape, strides, device, offset
        self.deleted = 0
        self.streams = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        import ctypes as c
        self.streams.append(stream)
        delete_type = c.CFUNCTYPE(None, c.c_void_p)

        class Managed(c.Structure):
            _fields_ = [("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32), ("ndim", c.c_int32),
                        ("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16),
                        ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)), ("offset", c.c_uint64),
                        ("context", c.c_void_p), ("deleter", delete_type)]

        def delete(_):
            self.deleted += 1

        n = len(self.shape)
        self.keep = (c.c_int64 * max(n, 1))(*self.shape), (c.c_int64 * max(n, 1))(*(self.strides or [0] * n)), delete_type(delete)
        self.managed = Managed(c.addressof(self.raw), self.device[0], self.device[1], n, self.code, self.bits, 1, self.keep[0],
                               self.keep[1] if self.strides else None, self.offset, None, self.keep[2])
        new = c.pythonapi.PyCapsule_New
        new.restype, new.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]
        return new(c.addressof(self.managed), b"dltensor", None)


class Exchanged(Tensor):
    """A tensor whose type has DLPack's exchange in C besides. Not made at module level: ctypes is for those who ask."""
    version, given, ends, streams_asked = (1, 3), (1, 3), 0, ()
    stream_status = 0

    @classmethod
    def table(cls, name=b"dlpack_exchange_api"):
        """A class of its own with a table, and the capsule of it."""
        import ctypes as c

        class Own(cls):
            pass

        ends = c.CFUNCTYPE(None, c.c_void_p)

        class Versioned(c.Structure):
            _fields_ = [("major", c.c_uint32), ("minor", c.c_uint32), ("context", c.c_void_p), ("deleter", ends), ("flags", c.c_uint64),
                        ("tensor", c.c_ubyte * 48)]

        def tensor_of(array, out):
            array = c.cast(array, c.py_object).value
            if array.refuses:
                return -1
            Tensor.__dlpack__(array)
            array.given_out = Versioned(*Own.given, None, Own.keep_ends, 0)
            c.memmove(array.given_out.tensor, c.addressof(array.managed), 48)
            out[0] = c.addressof(array.given_out)
            return 0

        def deleter(_):
            Own.ends += 1

        def stream(kind, number, out):
            Own.streams_asked += (kind, number),
            out[0] = 0
            return Own.stream_status

        tensor_type = c.PYFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(c.c_void_p))
        stream_type = c.PYFUNCTYPE(c.c_int, c.c_int, c.c_int32, c.POINTER(c.c_void_p))

        class Table(c.Structure):
            _fields_ = [("major", c.c_uint32), ("minor", c.c_uint32), ("previous", c.c_void_p), ("allocate", c.c_void_p),
                        ("tensor_of", tensor_type), ("object_of", c.c_void_p), ("borrow", c.c_void_p), ("stream", stream_type)]

        Own.keep_ends = ends(deleter)
        Own.keep_table = Table(*cls.version, None, None, tensor_type(tensor_of), None, None, stream_type(stream))
        new = c.pythonapi.PyCapsule_New
        new.restype, new.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]
        Own.keep_name = name
        Own.__dlpack_c_exchange_api__ = new(c.addressof(Own.keep_table), name, None)
        return Own

    refuses = False


def bf16(raw, shape=None, strides=None):
    return Tensor(raw, 4, 16, shape if shape is not None else (len(raw) // 2,), strides)


def array_of(dtype, raw, shape=None):
    """The elements as something that cured takes."""
    if dtype in DLPACK:
        return Tensor(raw, *DLPACK[dtype], shape if shape is not None else (len(raw) // oracle.SIZES[dtype],), None)
    a = numpy.frombuffer(raw, NUMPY[dtype])
    return a if shape is None else a.reshape(shape)
