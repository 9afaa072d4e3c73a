"""Inputs: everything that is an array without NumPy's help, stand-ins for pandas, pyarrow, torch and CuPy, and the sentences for
what is not reduced."""
import array
import ctypes
import gc
import itertools
import mmap
import sys
import types
import unittest

import numpy
from support import PACKAGE, Case, Exchanged, Tensor, bf16, cured


class Buffers(Case):
    def test_array_array(self):
        for code in "bBhHiIlLqQfd":
            a = array.array(code, [1, 2, 3])
            self.assertEqual((6, 3), (cured.sum(a), cured.max(a)), code)

    def test_bytes_and_their_kin(self):
        for kind in (bytes, bytearray, memoryview):
            self.assertEqual(294, cured.sum(kind(b"abc")))
        with mmap.mmap(-1, 4096) as m:
            m[:3] = b"\1\2\3"
            self.assertEqual(6, cured.sum(m))

    def test_memoryviews(self):
        m = memoryview(array.array("f", range(12)))
        self.assertEqual(66.0, cured.sum(m))
        self.assertEqual(30.0, cured.sum(m[::2]))
        self.assertEqual(0, cured.argmin(m[::1]))
        self.assertEqual(11, cured.argmin(m[::-1]))
        shaped = memoryview(bytes(range(12))).cast("B", (3, 4))
        self.assertEqual([6, 22, 38], numpy.asarray(cured.sum(shaped, axis=1)).tolist())
        self.assertEqual(7.0, cured.sum(memoryview(numpy.array([3, 4], "f2"))))

    def test_formats_of_another_size(self):
        """Whoever exports a buffer says both, and may be wrong."""
        class View(ctypes.Structure):
            _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
                        ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p),
                        ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]

        make = ctypes.pythonapi.PyMemoryView_FromBuffer
        make.restype, make.argtypes = ctypes.py_object, [ctypes.POINTER(View)]
        memory = ctypes.create_string_buffer(64)
        for code in b"?bBhHiIlLqQnNefd":
            for size in (1, 2, 4, 8, 16):
                shape, strides = (ctypes.c_ssize_t * 1)(64 // size), (ctypes.c_ssize_t * 1)(size)
                view = View(ctypes.addressof(memory), None, 64, size, 1, 1, bytes([code]), ctypes.addressof(shape),
                            ctypes.addressof(strides), None, None)
                array = make(ctypes.byref(view))
                if size == 16 or code in b"e?fd" and size != {"e": 2, "?": 1, "f": 4, "d": 8}[chr(code)]:
                    with self.assertRaises(TypeError, msg=(chr(code), size)):
                        cured.sum(array)
                else:
                    self.assertEqual(64 // size, cured.count(array), (chr(code), size))

    def test_ctypes(self):
        self.assertEqual(6, cured.sum((ctypes.c_int * 3)(1, 2, 3)))
        self.assertEqual(6.5, cured.sum((ctypes.c_double * 2)(2.5, 4)))
        self.assertEqual(10, cured.sum(((ctypes.c_uint8 * 2) * 2)((1, 2), (3, 4))))

    def test_big_endian_ctypes(self):
        a = (ctypes.c_uint32.__ctype_be__ * 3)(1, 2, 1 << 30)
        self.assertEqual((1 << 30) + 3, cured.sum(a))

    def test_numpy_scalars(self):
        for scalar in (numpy.float32(1.5), numpy.int8(-3), numpy.bool_(True), numpy.float16(2),
                       numpy.float64(1.5), numpy.int64(2)):
            self.assertEqual(scalar, cured.sum(scalar))

    def test_zero_dimensions(self):
        self.assertEqual(2.5, cured.max(numpy.array(2.5)))

    def test_released(self):
        b = bytearray(1000)
        cured.sum(b)
        b.extend(b"1")  # a buffer that is still exported could not grow
        with self.assertRaises(ValueError):
            cured.sum(b, nan="?")
        with self.assertRaises(ValueError):
            cured.sum(b, axis=4)
        b.extend(b"1")

    def test_any_byte_of_a_bool_is_true(self):
        a = numpy.frombuffer(b"\0\1\2\xff", "?")
        self.assertEqual((3, 3), (cured.sum(a), cured.count_nonzero(a)))

    def test_subclasses(self):
        class Mine(numpy.ndarray):
            pass

        self.assertEqual(10, cured.sum(numpy.arange(5).view(Mine)))
        self.assertEqual(10, cured.sum(numpy.matrix([[1, 2], [3, 4]])))
        self.assertEqual(6.0, cured.sum(numpy.memmap("/proc/self/exe", "u1", "r", shape=1) * 0 + 6.0))

    def test_field_of_a_structure(self):
        a = numpy.zeros(5, [("x", "f4"), ("y", "i8")])
        a["x"] = 2
        a["y"] = range(5)
        self.assertEqual((10.0, 10, 4), (cured.sum(a["x"]), cured.sum(a["y"]), cured.argmax(a["y"])))


class Refused(Case):
    def check(self, a, *words):
        with self.assertRaises(TypeError) as caught:
            cured.sum(a)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_lists(self):
        for a in ({1}, {1: 2}, 7, 1.5, None, "text", 1j):
            self.check(a, "numpy.asarray")

    def test_generators(self):
        self.check((x for x in ()), "an array is wanted")

    def test_complex_of_long_doubles(self):
        self.check(numpy.zeros(3, "G"), "complex128")

    def test_long_double(self):
        self.check(numpy.zeros(3, "g"), "float64")

    def test_objects(self):
        self.check(numpy.array([1, None]), "astype")

    def test_structures(self):
        self.check(numpy.zeros(3, [("x", "f4")]), "a['name']")

    def test_times(self):
        self.check(numpy.zeros(3, "M8[s]"), "int64")
        self.check(numpy.zeros(3, "m8[s]"), "int64")

    def test_text(self):
        self.check(numpy.array(["a"]), "text")
        self.check(numpy.array([b"a"]), "text")

    def test_void(self):
        self.check(numpy.zeros(3, "V3"), "V3")

    def test_formats_of_memory(self):
        self.check(memoryview(b"abc").cast("c"), "'c'")
        self.check((ctypes.c_char * 3)(), "c")

        class Pair(ctypes.Structure):
            _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_float)]

        self.check((Pair * 3)(), "T{")
        self.check((ctypes.c_void_p * 2)(), "P")

    def test_error_leaves_no_view(self):
        a = bytearray(8)
        m = memoryview(a).cast("c")
        self.check(m)
        m.release()
        a.append(1)


class Pandas(Case):
    """Objects with the faces that pandas' have; test_tables.py asks the real ones where they are."""

    @staticmethod
    def fake(name, **members):
        kind = type(name, (), members)
        kind.__module__ = "pandas.core.fake"
        return kind()

    def test_column_of_numpy(self):
        a = numpy.arange(5.0)
        s = self.fake("Series", dtype=a.dtype, ndim=1, to_numpy=lambda self, dtype=None: a)
        self.assertEqual((10.0, 4), (cured.sum(s), cured.argmax(s)))

    def test_column_as_a_mask(self):
        keeps = numpy.arange(5) % 2 == 0
        s = self.fake("Series", dtype=keeps.dtype, ndim=1, to_numpy=lambda self, dtype=None: keeps)
        self.assertEqual(6.0, cured.sum(numpy.arange(5.0), where=s))
        missing = self.nullable(True)[0]
        for mask, said in ((missing, "where: elements of it are missing: mask.fillna"), (7, "where: int: an array"), (object(), "where: a bool array is wanted, not")):
            with self.assertRaisesRegex(TypeError, said):
                cured.sum(numpy.arange(5.0), where=mask)

    def nullable(self, missing):
        class Int64:
            numpy_dtype = numpy.dtype("i8")

            def __str__(self):
                return "Int64"

        asked = []

        def to_numpy(_, dtype=None, na_value=None):
            asked.append((dtype, na_value))
            return numpy.arange(4)

        s = self.fake("Series", dtype=Int64(), ndim=1, to_numpy=to_numpy, isna=lambda self: numpy.array([False, missing, False, False]))
        return s, asked

    def test_nullable_without_missing_values(self):
        s, asked = self.nullable(False)
        self.assertEqual(6, cured.sum(s))
        self.assertEqual([(numpy.dtype("i8"), None)], asked)

    def test_nullable_with_missing_values(self):
        """They are left out, unless nulls= says that there must be none."""
        s, asked = self.nullable(True)
        self.assertEqual((5, 3), (cured.sum(s), cured.count(s)))
        self.assertEqual([(numpy.dtype("i8"), 0)] * 2, asked)
        with self.assertRaisesRegex(ValueError, r"nulls: the array has missing elements, the first at \[1\]"):
            cured.sum(s, nulls="error")

    def test_column_of_objects_and_times(self):
        for values in (numpy.array([1, "x"], object), numpy.zeros(2, "M8[ns]")):
            s = self.fake("Series", dtype=values.dtype, ndim=1, to_numpy=lambda self, dtype=None: values)
            with self.assertRaisesRegex(TypeError, "is not reduced"):
                cured.sum(s)

    def test_frames(self):
        frame = self.fake("DataFrame", ndim=2, to_numpy=lambda self: None)
        with self.assertRaisesRegex(TypeError, "one by one"):
            cured.sum(frame)


class Arrow(Case):
    @staticmethod
    def fake(type_name, values=None, nulls=0, **members):
        def to_numpy(_, zero_copy_only=False):
            assert zero_copy_only
            return values

        kind = type("Array", (), dict(members, null_count=nulls, type=type_name, to_numpy=to_numpy))
        kind.__module__ = "pyarrow.lib"
        return kind()

    def test_array(self):
        self.assertEqual(3, cured.sum(self.fake("int64", numpy.arange(3))))
        self.assertEqual(3.0, cured.sum(self.fake("float", numpy.arange(3, dtype="f4"))))

    def test_chunks(self):
        one = self.fake("uint8", numpy.arange(3, dtype="u1"))
        self.assertEqual(3, cured.sum(self.fake("uint8", num_chunks=1, chunk=lambda self, i: one)))
        with self.assertRaisesRegex(TypeError, "cured.merge"):
            cured.sum(self.fake("uint8", num_chunks=2))

    def test_nulls(self):
        with self.assertRaisesRegex(TypeError, "2 nulls.*drop_null"):
            cured.sum(self.fake("int64", nulls=2))

    def test_other_types(self):
        for name, word in (("bool", "cast"), ("timestamp[us]", "int64"), ("string", "plain type"), ("decimal128(3, 1)", "not reduced")):
            with self.assertRaisesRegex(TypeError, word):
                cured.sum(self.fake(name))


class Bfloats(Case):
    def test_array_of_ml_dtypes(self):
        """NumPy arrays whose dtype is named bfloat16 are viewed as u16: a stand-in has the same face."""
        words = numpy.array([0x3f80, 0x4000], "u2")  # 1, 2

        class Array:
            dtype = types.SimpleNamespace(kind="V", itemsize=2, __str__=None)

            def view(self, dtype):
                return words.view(dtype)

        class Dtype:
            kind, itemsize = "V", 2

            def __str__(self):
                return "bfloat16"

        Array.dtype = Dtype()
        self.assertEqual(3.0, cured.sum(Array()))


class DLPack(Case):
    def test_types(self):
        values = {"u8": (1, 8), "i8": (0, 8), "u16": (1, 16), "i16": (0, 16), "u32": (1, 32), "i32": (0, 32), "u64": (1, 64),
                  "i64": (0, 64), "f16": (2, 16), "f32": (2, 32), "f64": (2, 64), "bf16": (4, 16), "bool": (6, 8)}
        for dtype, (code, bits) in values.items():
            raw = bytes(range(1, 33))
            t = Tensor(raw, code, bits, (len(raw) * 8 // bits,))
            self.check_oracle(lambda: cured.max(t), "max", dtype, raw)
            self.check_oracle(lambda: cured.sum(t), "sum", dtype, raw)

    def test_deleter_is_called_once(self):
        t = bf16(bytes(64))
        cured.sum(t)
        self.assertEqual(1, t.deleted)
        with self.assertRaises(ValueError):
            cured.sum(t, axis=3)
        self.assertEqual(2, t.deleted)
        self.assertEqual([None, None], t.streams)

    def test_numpy_speaks_it_too(self):
        class Only:
            def __init__(self, a):
                self.a = a

            def __dlpack__(self, stream=None):
                return self.a.__dlpack__()

            def __dlpack_device__(self):
                return self.a.__dlpack_device__()

        a = numpy.arange(24, dtype="f4").reshape(4, 6)
        self.assertEqual(276.0, cured.sum(Only(a)))
        self.assert_arrays(cured.sum(Only(a.T), axis=0), a.sum(axis=1, dtype="f8"))
        self.assertEqual(5, cured.argmax(Only(a[1])))

    def test_offset_and_no_dimensions(self):
        self.assertEqual(2, cured.sum(Tensor(b"\1\2\3", 1, 8, (), offset=1)))
        self.assertEqual(5, cured.sum(Tensor(b"\1\2\3", 1, 8, (2,), offset=1)))

    def test_types_that_are_not_reduced(self):
        for code, bits in ((5, 64), (2, 128), (2, 8), (3, 64), (0, 4)):
            t = Tensor(bytes(64), code, bits, (2,))
            with self.assertRaisesRegex(TypeError, "DLPack code %d, %d bits" % (code, bits)):
                cured.sum(t)
            self.assertEqual(1, t.deleted)

    def test_other_devices(self):
        with self.assertRaisesRegex(TypeError, "device"):
            cured.sum(Tensor(bytes(8), 2, 32, (2,), device=(8, 0)))

    def test_refusals_of_the_tensor_come_through(self):
        class Grad:
            def __dlpack_device__(self):
                return (1, 0)

            def __dlpack__(self):
                raise RuntimeError("requires grad: use tensor.detach()")

        with self.assertRaisesRegex(RuntimeError, "detach"):
            cured.sum(Grad())

    def test_too_many_axes(self):
        with self.assertRaises(ValueError):
            cured.sum(Tensor(bytes(8), 1, 8, (1,) * 65))

    def test_another_device_than_it_said(self):
        class Liar(Tensor):
            def __dlpack_device__(self):
                return (1, 0)

        t = Liar(bytes(8), 1, 8, (8,), device=(2, 0))
        with self.assertRaisesRegex(ValueError, "another device"):
            cured.sum(t)
        self.assertEqual(1, t.deleted)

    def test_lengths_below_zero(self):
        for shape in ((-1,), (3, -2), (0, -1), (-(1 << 62), 4)):
            with self.assertRaises(ValueError):
                cured.sum(Tensor(bytes(8), 1, 8, shape))

    def test_a_capsule_that_was_used(self):
        class Once(Tensor):
            capsule = None

            def __dlpack__(self, stream=None):
                self.capsule = self.capsule or super().__dlpack__(stream)
                return self.capsule

        t = Once(b"\1\2", 1, 8, (2,))
        self.assertEqual(3, cured.sum(t))
        with self.assertRaisesRegex(TypeError, "dltensor"):
            cured.sum(t)
        self.assertEqual(1, t.deleted)


class Exchange(Case):
    """DLPack's functions in C, which a type names."""

    def test_what_it_says(self):
        kind = Exchanged.table()
        raw = bytes(range(1, 33))
        for dtype, (code, bits) in {"f32": (2, 32), "bf16": (4, 16), "i8": (0, 8)}.items():
            t = kind(raw, code, bits, (2, len(raw) * 4 // bits))
            self.check_oracle(lambda: cured.sum(t), "sum", dtype, raw)
            self.assertEqual(0, t.deleted, "nothing came by __dlpack__")
        self.assertEqual(3, kind.ends)
        t = kind(bytes([1, 2, 3, 4, 5, 6]), 1, 8, (3, 2), strides=(1, 3))
        self.assert_arrays(cured.sum(t, axis=0), numpy.array([6, 15], "u8"))
        with self.assertRaises(ValueError):
            cured.sum(t, axis=3)
        self.assertEqual((5, ()), (kind.ends, kind.streams_asked))

    def test_stream_of_cuda_memory(self):
        kind = Exchanged.table()
        t = kind(bytes(16), 2, 32, (4,), device=(2, 3))
        with self.assertRaises((RuntimeError, ConnectionError)):
            cured.Client("embedded:").sum(t)
        kind.stream_status = -1
        with self.assertRaisesRegex(RuntimeError, "which stream"):
            cured.Client("embedded:").sum(t)
        self.assertEqual((((2, 3),) * 2, 2), (kind.streams_asked, kind.ends))

    def test_refusals(self):
        kind = Exchanged.table()
        t = kind(bytes(8), 1, 8, (8,))
        t.refuses = True
        with self.assertRaisesRegex(TypeError, "gave no tensor"):
            cured.sum(t)
        with self.assertRaisesRegex(TypeError, "device"):
            cured.sum(kind(bytes(8), 1, 8, (8,), device=(8, 0)))
        with self.assertRaises(ValueError):
            cured.sum(kind(bytes(8), 1, 8, (-8,)))
        kind.given = (2, 0)
        with self.assertRaisesRegex(TypeError, "speaks DLPack 2, and 1 is read"):
            cured.sum(kind(bytes(8), 1, 8, (8,)))
        self.assertEqual(3, kind.ends)

    def test_tables_of_other_versions_and_names(self):
        for kind in (type("New", (Exchanged,), {"version": (2, 0)}).table(), Exchanged.table(b"other")):
            t = kind(b"\1\2", 1, 8, (2,))
            self.assertEqual(3, cured.sum(t))
            self.assertEqual((0, 1), (kind.ends, t.deleted), "by __dlpack__")


class Interface:
    """An object with __cuda_array_interface__ alone, of memory that is not there."""

    def __init__(self, shape=(4,), typestr="<f4", **more):
        self.__cuda_array_interface__ = dict({"shape": shape, "typestr": typestr, "data": (0x7f0000000000, False), "version": 3},
                                             **more)


class Cuda(Case):
    """No GPU is needed: what is refused, and that nothing is kept then. tests/python/gpu_tensors.py asks a real one."""

    def test_without_a_driver(self):
        t = Tensor(bytes(64), 2, 32, (16,), device=(2, 0))
        before = cured._cured._tensor_count()
        with self.assertRaisesRegex((cured.Error, ConnectionError), "CUDA|device|listen"):
            cured.sum(t)
        self.assertEqual([1], t.streams)  # it orders its work before the legacy default stream
        self.assertEqual(1, t.deleted)
        del t
        gc.collect()
        self.assertEqual(before, cured._cured._tensor_count())

    def test_array_interface(self):
        a = Interface()
        with self.assertRaisesRegex((cured.Error, ConnectionError), "CUDA|device|listen"):
            cured.sum(a)
        del a
        gc.collect()
        self.assertEqual(0, cured._cured._tensor_count())

    def test_gaps(self):
        with self.assertRaisesRegex(ValueError, "contiguous"):
            cured.sum(Interface((4,), strides=(8,)))
        with self.assertRaisesRegex(ValueError, "contiguous"):
            cured.argmax(Interface((4, 2), strides=(4, 16)))

    def test_malformed(self):
        for more in ({"shape": 3}, {"shape": None}, {"data": None}, {"data": (1,)}, {"strides": (1, 2)}, {"typestr": None},
                     {"shape": ("x",)}, {"strides": 7}, {"data": ("x", False)}, {"mask": object()}, {"shape": (-1,)}):
            with self.assertRaises((ValueError, TypeError, OverflowError), msg=str(more)):
                cured.sum(Interface(**more))
        with self.assertRaises(TypeError):
            cured.sum(Interface(typestr="<c8"))
        with self.assertRaisesRegex(TypeError, "big-endian"):
            cured.sum(Interface(typestr=">f4"))
        with self.assertRaises(TypeError):
            cured.sum(type("X", (), {"__cuda_array_interface__": 7})())

    def test_changes_while_it_is_read(self):
        class Type:
            @property
            def name(self):
                a.__cuda_array_interface__.clear()
                return "float32"

        a = Interface()
        a.__cuda_array_interface__.update(typestr=Type(), shape=tuple([2] * 3), data=(2**47 - 2**20, False))
        with self.assertRaisesRegex((cured.Error, ConnectionError), "CUDA|device|listen"):
            cured.sum(a)
        del a

    def test_no_elements_of_a_large_shape(self):
        self.assertEqual(0.0, cured.sum(Interface((0, 2**62, 2**62))))

    def test_masks(self):
        with self.assertRaises(TypeError):
            cured.sum(Interface(), where=numpy.ones(4, "?"))
        with self.assertRaises(TypeError):
            cured.sum(Interface(), initial=1.0)

    def test_without_weak_references(self):
        class Slots:
            __slots__ = ()

            @property
            def __cuda_array_interface__(self):
                return Interface().__cuda_array_interface__

        with self.assertRaisesRegex((TypeError, ConnectionError), "weakly|listen|libcured-cuda"):
            cured.sum(Slots())


class WithoutNumPy(Case):
    """A process in which NumPy cannot be imported."""

    def test_answers_are_memoryviews(self):
        import os
        import subprocess
        code = """
import sys
sys.modules["numpy"] = None
import array, cured
m = memoryview(array.array("i", range(6))).cast("B").cast("i", (2, 3))
x = cured.sum(m, axis=0)
assert isinstance(x, memoryview) and x.tolist() == [3, 5, 7] and x.format == "l", x
assert cured.mean(m, axis=1).tolist() == [1.0, 4.0]
assert cured.max(m, axis=0, keepdims=True).tolist() == [[3, 4, 5]]
e = cured.empty((2, 2), "f32")
e[1, 1] = 5.0
assert cured.sum(e) == 5.0 and isinstance(e, memoryview)
assert cured.sum(array.array("d", [1, 2])) == 3.0
print("fine")
"""
        run = subprocess.run([sys.executable, "-c", code], env=dict(os.environ, PYTHONPATH=PACKAGE), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        self.assertEqual((b"fine\n", b""), (run.stdout, run.stderr))


class Mistakes(Case):
    """Sentences that name the argument, and say what is wanted."""

    def refused(self, kind, said, call):
        with self.assertRaisesRegex(kind, said):
            call()

    def test_ops(self):
        a = numpy.arange(3)
        self.refused(ValueError, r"unknown op 'smu' \(did you mean sum\?\); there are sum mean", lambda: cured.reduce(a, ["smu"]))
        self.refused(ValueError, r"unknown op 'x'; there are", lambda: cured.reduce(a, "x"))
        self.refused(ValueError, "unknown op '%s'" % ("sum" * 50), lambda: cured.reduce(a, "sum" * 50))
        self.refused(TypeError, "ops: names are wanted, such as 'sum', not <class 'int'>", lambda: cured.reduce(a, [1]))
        self.assertEqual({"sum": 3, "max": 2}, dict(cured.reduce(a, " sum ,  max")))

    def test_numbers(self):
        a = numpy.arange(3.0)
        self.refused(TypeError, "ddof: a number is wanted, not <class .str.>", lambda: cured.var(a, ddof="1"))
        self.refused(TypeError, "axis: an integer or a tuple", lambda: cured.sum(a, axis=1.0))
        self.refused(TypeError, "axis: an integer or a tuple", lambda: cured.sum(a, axis=[0]))
        self.refused(TypeError, "initial: a number is wanted", lambda: cured.sum(a, initial="1"))
        nothing = numpy.zeros((0, 2))  # whose answers along the axis are none
        self.refused(TypeError, "initial: a number is wanted", lambda: cured.max(nothing, axis=1, initial=[1]))
        self.refused(TypeError, "initial: an integer is wanted for an array of integers", lambda: cured.max(nothing.astype("u1"), axis=1, initial=[1]))
        for some in (numpy.ones((2, 2)), nothing):
            for dtype, kind, said, value in (
                    ("u1", TypeError, "an integer is wanted for an array of integers", 1.5), ("i8", TypeError, "an integer is wanted for an array", numpy.ones(2, int)),
                    ("f4", ValueError, "0.1 is no value of f32", 0.1), ("f8", ValueError, "9007199254740993 is no value of f64", 2**53 + 1),
                    ("f8", ValueError, "no element of a float type is so large", 10**400), ("f8", TypeError, "", numpy.ones(2)), ("f2", TypeError, "", 1j)):
                for function, more in itertools.product((cured.sum, cured.max), ({}, {"axis": 1}, {"axis": 0, "where": some > 0})):
                    with self.subTest((some.shape, dtype, value, more)):
                        self.refused(kind, "^initial: " + said, lambda: function(some.astype(dtype), initial=value, **more))

    def test_addresses(self):
        self.refused(ValueError, "address: it has a NUL", lambda: cured.Client("unix:/a\0b"))
        self.refused(ConnectionError, "No such file", lambda: cured.Client("unix:/tmp/none/\udc80").sum(b"a"))

    def test_tensors(self):
        class Odd:
            def __init__(self, device, capsule):
                self.device, self.capsule = device, capsule

            def __dlpack_device__(self):
                return self.device

            def __dlpack__(self, **_):
                return self.capsule

        for device in ("x", 7, None, (1,), (1, 0, 0)):
            self.refused(TypeError, "a tuple of two integers", lambda: cured.sum(Odd(device, None)))
        for capsule in (None, "x", 3):
            self.refused(TypeError, "a capsule named 'dltensor'", lambda: cured.sum(Odd((1, 0), capsule)))
        self.refused(ValueError, "shape: axis 0 has -3 elements", lambda: cured.sum(Tensor(b"1234", 2, 32, (-3,))))

    def test_others(self):
        self.refused(ValueError, "parts is empty", lambda: cured.merge([]))

    def test_where_that_is_one_value(self):
        a = numpy.arange(6.0).reshape(2, 3)
        self.assertEqual((0.0, 15.0), (cured.sum(a, where=False), cured.sum(a, where=True)))
        self.assertEqual((0.0, 15.0), (cured.sum(a, where=numpy.False_), cured.sum(a, where=numpy.True_)))
        self.assert_arrays(cured.sum(a, axis=0, where=False), numpy.zeros(3))



if __name__ == "__main__":
    unittest.main()
