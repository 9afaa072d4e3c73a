"""Files: .npy, members of .npz archives, raw elements, in every order; files that are cut, damaged, or made to deceive."""
import asyncio
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

import numpy
from support import PACKAGE, Case, cured
from cured_daemon import Daemon


class Files(Case):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, data=None, name="f"):
        path = os.path.join(self.folder.name, name)
        if data is not None:
            with open(path, "wb") as f:
                f.write(data)
        return path


class Plain(Files):
    def test_raw(self):
        path = self.path(b"xx" + numpy.arange(10, dtype="<i4").tobytes())
        f = cured.file(path, dtype="i32", offset=2)
        self.assertEqual(((10,), "i32", 45, 9), (f.shape, f.dtype, f.sum(), f.argmax()))
        self.assertEqual(15.0, cured.norm2(cured.file(self.path(b"\x09\x0c", "g"), dtype="u8")))
        self.assertEqual({"sum": 45, "max": 9}, dict(f.reduce(["sum", "max"])))
        self.assertEqual(45, f.partial("sum").finish("sum").sum)
        self.assertEqual(10, f.describe().count)

    def test_path_objects(self):
        import pathlib
        self.assertEqual(97, cured.file(pathlib.Path(self.path(b"a")), dtype="u8").sum())

    def test_numbers_written_out(self):
        """Text is no raw elements, whatever dtype says: raw=True says so, a name in .bin, or an offset."""
        text = b"".join(b"%d\n" % i for i in range(8000))
        for data in (b"1\n2\n3\n4\n", text):
            for dtype in ("u8", "f32", ">i2"):
                with self.assertRaisesRegex(ValueError, "is text, not raw elements.*raw=True"):
                    cured.file(self.path(data[:len(data) // 4 * 4]), dtype=dtype)
            self.assertEqual(sum(data), cured.file(self.path(data), dtype="u8", raw=True).sum())
            self.assertEqual(sum(data), cured.file(self.path(data, "f.bin"), dtype="u8").sum())
            self.assertEqual(sum(data[4:]), cured.file(self.path(data), dtype="u8", offset=4).sum())
        self.assertEqual(8 * 49, cured.file(self.path(b"1" * 8), dtype="u8").sum())

    def test_refused(self):
        for call, error in ((lambda: cured.file(self.path(None, "none")), FileNotFoundError),
                            (lambda: cured.file(self.folder.name), ValueError),
                            (lambda: cured.file(self.path(b"abc")), ValueError),
                            (lambda: cured.file(self.path(b"")), ValueError),
                            (lambda: cured.file(self.path(b"abc"), dtype="f32"), ValueError),
                            (lambda: cured.file(self.path(b"abc"), dtype="u8", offset=4), ValueError),
                            (lambda: cured.file(self.path(b"abc"), dtype="u8", offset=2**64), ValueError),
                            (lambda: cured.file(self.path(b"abc"), dtype="u8", offset=-1), ValueError),
                            (lambda: cured.file(self.path(b"abc"), dtype="no"), TypeError),
                            (lambda: cured.file(7), TypeError), (lambda: cured.File(), TypeError),
                            (lambda: cured.file(self.path(b"\x93NUMPY\1\0\x10\0{'descr': '<f4'")), ValueError)):
            with self.assertRaises(error):
                call()
        with self.assertRaisesRegex(ValueError, "broadcast"):
            cured.file(self.path(b"abc"), dtype="u8").sum(where=numpy.ones(4, "?"))

    def test_under_a_mask(self):
        """Files of every kind: by descriptor, and in blocks; by the daemon and here."""
        r = numpy.random.default_rng(5)
        a = r.standard_normal((300, 7, 40)).astype("f4")
        m = r.random(a.shape) < 0.4
        paths = [self.path(name=name) for name in ("c.npy", "f.npy", "b.npy", "z.npz")]
        numpy.save(paths[0], a)
        numpy.save(paths[1], numpy.asfortranarray(a))
        numpy.save(paths[2], a.astype(">f4"))
        numpy.savez_compressed(paths[3], x=a)
        paths[3] += ":x"
        for path in paths:
            f = cured.file(path)
            for axis in (None, 0, (0, 1), -1):
                for where in (m, m[:1], numpy.asfortranarray(m)):
                    with self.subTest((path, axis, where.strides)):
                        self.assert_arrays(f.sum(axis=axis, where=where), cured.sum(a, axis=axis, where=where))
            self.assertEqual(cured.argmax(a, where=m), f.argmax(where=m))
            self.assertEqual(bytes(cured.partial(a, "sum,max", where=m)), bytes(f.partial("sum,max", where=m)))

    def test_cut_file(self):
        path = self.path(name="cut.npy")
        numpy.save(path, numpy.zeros(100))
        os.truncate(path, 500)
        with self.assertRaisesRegex(ValueError, "500 bytes"):
            cured.file(path)

    def test_no_elements_of_a_large_shape(self):
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (0, %d, %d), }" % (2**62, 2**62)
        f = cured.file(self.path(b"\x93NUMPY\1\0" + bytes([len(header), 0]) + header))
        self.assertEqual(((0, 2**62, 2**62), 0.0), (f.shape, f.sum()))

    def test_big_endian(self):
        """Read in blocks, in C and Fortran order, whole and along an axis, also where elements of a block are no whole rows."""
        path = self.path(name="b.npy")
        for dtype, shape in ((">f4", (300, 701)), (">i2", (1000, 3, 50)), (">u8", (7,)), (">f8", (0, 3)), (">f2", ())):
            a = numpy.array(numpy.random.default_rng(2).integers(0, 99, shape), dtype)
            for order in "CF":
                numpy.save(path, numpy.array(a, order=order))
                f = cured.file(path)
                self.assertEqual((shape, cured.sum(a)), (f.shape, f.sum()))
                for axis in range(a.ndim):
                    self.assert_arrays(f.sum(axis=axis), cured.sum(a, axis=axis))
            numpy.save(path, a)
            if a.size:
                self.assertEqual(cured.argmax(a), cured.file(path).argmax())
        with cured.Client("embedded:", threads=2) as c:
            numpy.save(path, numpy.arange(3_000_000, dtype=">i4"))
            self.assertEqual(2_999_999 * 1_500_000, c.sum(cured.file(path)))

    def test_big_endian_raw(self):
        path = self.path(b"x" + numpy.arange(10, dtype=">i4").tobytes())
        for dtype in (">i4", numpy.dtype(">i4")):
            f = cured.file(path, dtype=dtype, offset=1)
            self.assertEqual(("i32", 45, 9), (f.dtype, f.sum(), f.argmax()))
        self.assertEqual(10.0, cured.sum(numpy.arange(5), dtype=numpy.dtype(">f4")))

    def test_big_endian_that_is_cut(self):
        path = self.path(name="b.npy")
        numpy.save(path, numpy.zeros(1000, ">f4"))
        f = cured.file(path)
        os.truncate(path, 1000)
        with self.assertRaisesRegex(cured.Error, "cut"):
            f.sum()

    def test_what_is_no_array(self):
        with self.assertRaisesRegex(ValueError, "its size is said to be 0, but it holds bytes"):
            cured.file("/proc/self/status", dtype="u8")
        of_sys = "/sys/devices/system/cpu/online"
        if os.path.exists(of_sys) and os.stat(of_sys).st_size == 4096:
            with self.assertRaisesRegex(ValueError, "it has fewer bytes than its size says, as in /sys: read them"):
                cured.file(of_sys, dtype="u8", raw=True)
        with self.assertRaises(OSError):
            cured.file("/proc/self/mem", dtype="u8")  # of 0 bytes, of which none can be read
        self.assertEqual(0, cured.file(self.path(b""), dtype="u8").sum())
        path = self.path(name="a.npz")
        numpy.savez(path, x=numpy.zeros(3), y=numpy.zeros(3))
        with self.assertRaisesRegex(ValueError, r"behind a colon \(it holds x, y\)"):
            cured.file(path)
        self.assertEqual("<cured.File of f64, shape (3,)>", repr(cured.file(path + ":x")))

    def test_members_of_archives(self):
        path = self.path(name="a.npz")
        a = numpy.arange(12, dtype="f4").reshape(3, 4)
        numpy.savez(path, a, fortran=numpy.asfortranarray(a), big=a.astype(">f8"))
        for name in ("arr_0", "arr_0.npy", "fortran", "big"):
            f = cured.file(path + ":" + name)
            self.assertEqual(((3, 4), 66.0), (f.shape, f.sum()), name)
            self.assert_arrays(f.sum(axis=0), cured.sum(a, axis=0))
        self.assertEqual(7, cured.file(path + ":arr_0", dtype="u8").argmin(), "the bytes of the member itself")
        with self.assertRaisesRegex(FileNotFoundError, "fortran, big, arr_0"):
            cured.file(path + ":other")
        with self.assertRaises(FileNotFoundError):
            cured.file(path + "x:arr_0")
        with open(path, "r+b") as f:
            f.write(b"PK\3\5")
        with self.assertRaisesRegex(ValueError, "damaged"):
            cured.file(path + ":fortran")  # the first one


def npy(shape, descr="<f4", order=False):
    """The header of a .npy file."""
    text = repr({"descr": descr, "fortran_order": order, "shape": shape}).encode()
    text += b" " * (63 - (len(text) + 10) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text


class Deflated(Files):
    """Members of archives that numpy.savez_compressed has made, and of others that lie."""

    def archive(self, data, claimed=None, checksum=None):
        """An archive with x.npy, whose directory may say another length and checksum."""
        path = self.path(name="lie.npz")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
            z.writestr("x.npy", data)
        with open(path, "rb") as f:
            whole = bytearray(f.read())
        at = whole.rindex(b"PK\1\2")
        if claimed is not None:
            whole[at + 24:at + 28] = struct.pack("<I", claimed)
        if checksum is not None:
            whole[at + 16:at + 20] = struct.pack("<I", checksum)
        return self.path(bytes(whole), "lie.npz") + ":x"

    def test_answers(self):
        path = self.path(name="a.npz")
        a = numpy.random.default_rng(3).standard_normal((60, 70, 41)).astype("f4")  # of several blocks
        numpy.savez_compressed(path, a, f=numpy.asfortranarray(a), big=a.astype(">f4"))
        for name in ("arr_0", "f", "big"):
            f = cured.file(path + ":" + name)
            self.assertEqual((a.shape, "f32"), (f.shape, f.dtype))
            self.assert_same(cured.sum(a), f.sum())
            for axis in (0, 1, 2, (0, 1)):
                self.assert_arrays(cured.sum(a, axis=axis), f.sum(axis=axis), name)
            if name != "f":
                self.assertEqual(dict(cured.describe(a)), dict(f.describe()))
                self.assertEqual(bytes(cured.partial(a, "sum,argmin", first=7)), bytes(f.partial("sum,argmin", first=7)))
        with self.assertRaisesRegex(ValueError, "deflated and in Fortran order.*numpy.load"):
            cured.file(path + ":f").argmax()
        with self.assertRaisesRegex(ValueError, "deflated and in Fortran order"):
            cured.file(path + ":f").argmax(keepdims=True)
        self.assertEqual(7, cured.file(path + ":arr_0", dtype="u8").argmin(), "the bytes of the member itself")

    def test_few_elements(self):
        path = self.path(name="a.npz")
        numpy.savez_compressed(path, none=numpy.zeros((0, 3)), zero=numpy.array(2.5), one=numpy.ones((1, 1), "?"))
        none = cured.file(path + ":none")
        self.assertEqual((0.0, [0, 0, 0]), (none.sum(), none.sum(axis=0).tolist()))
        self.assertEqual((2.5, 1), (cured.file(path + ":zero").max(), cured.file(path + ":one").sum()))

    def test_bytes_from_an_offset(self):
        data = npy((300000,)) + numpy.arange(300000, dtype="<f4").tobytes()
        path = self.archive(data)
        for offset in (0, 128, 128 + 4 * 270000):
            self.assertEqual(sum(data[offset:]), cured.file(path, dtype="u8", offset=offset).sum())
        with self.assertRaisesRegex(ValueError, "no whole elements"):
            cured.file(path, dtype="u8", offset=len(data) + 1)

    def test_async(self):
        path = self.archive(npy((100000,)) + numpy.arange(100000, dtype="<f4").tobytes())

        async def main():
            async with cured.AsyncClient("embedded:") as c:
                return await asyncio.gather(c.argmax(cured.file(path)), c.max(cured.file(path)), c.sum(b"a"))
        self.assertEqual([99999, 99999.0, 97], asyncio.run(main()))

    def test_lies(self):
        head = npy((1000,))
        for data, claimed, checksum, said in (
                (head + bytes(4000), len(head) + 4 * 10**8, None, "has 400000128 bytes, its header and shape want 4128"),
                (npy((10**8,)) + bytes(4000), 128 + 4 * 10**8, None, "fewer bytes than the directory says"),
                (head + bytes(8000), len(head) + 4000, None, "more bytes than the directory says"),
                *((head + bytes(4000), claimed, None, "more bytes than the directory says") for claimed in (0, 5, 6, 8, 10, 127)),
                (head + bytes(8000), None, None, "has 8128 bytes, its header and shape want 4128"),
                (head + bytes(4000), None, 7, "checksum"),
                (npy((0,)), None, 7, "checksum"),
                (npy((2**62,)) + bytes(100), None, None, "shape has more than"),
                (head[:50], None, None, "ends before its .npy header"),
                (b"no header" * 100, None, None, "npy"),
                (b"", None, None, "ends before its .npy header")):
            with self.assertRaisesRegex(ValueError, said):
                cured.file(self.archive(data, claimed, checksum)).sum()

    def test_damaged(self):
        noise = numpy.random.default_rng(4).integers(0, 256, 40000, "u1").tobytes()
        with open(self.archive(npy((10000,)) + noise)[:-2], "rb") as f:
            whole = f.read()
        for at in (60, 5000, 39000):
            spoilt = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:]
            with self.assertRaisesRegex(ValueError, "the archive is damaged"):
                cured.file(self.path(spoilt, "b.npz") + ":x").sum()

    def test_cut_while_it_is_open(self):
        noise = numpy.random.default_rng(4).integers(0, 256, 400000, "u1").tobytes()
        path = self.archive(npy((100000,)) + noise)
        f = cured.file(path)
        os.truncate(path[:-2], 200000)
        with self.assertRaisesRegex(cured.Error, "DATA_LOSS: .*cut"):
            f.sum()

    @unittest.skipIf("address" in os.environ.get("CURED_TEST_SANITIZE", ""), "AddressSanitizer wants all addresses")
    def test_memory_is_bounded(self):
        """1,000 times as much comes out as lies in the file, and the process may not have a quarter of it."""
        path = self.path(name="bomb.npz")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
            with z.open("x.npy", "w") as out:
                out.write(npy((1 << 26,)))
                for _ in range(256):
                    out.write(bytes(1 << 20))
        code = """
import re, resource, sys
sys.path.insert(0, %r)
import cured
f = cured.file(%r)
now = int(re.search(r"VmSize:\\s*(\\d+)", open("/proc/self/status").read()).group(1)) << 10
resource.setrlimit(resource.RLIMIT_AS, (now + (64 << 20), now + (64 << 20)))
print(f.sum(), f.argmax(), f.sum(axis=0))
""" % (PACKAGE, path + ":x")
        run = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual("0.0 0 0.0\n", run.stdout)


class Orders(Files):
    """Files in Fortran order, whose indices and products of floats count in C order all the same."""

    def test_fortran(self):
        rng = numpy.random.default_rng(5)
        path = self.path(name="f.npy")
        for dtype, shape in (("f4", (30, 100)), (">f8", (7, 11, 13)), ("u1", (3, 1, 5, 2)), ("<i2", (1000, 501)), ("f2", (4, 0, 3)),
                             (">f4", (1,)), ("f8", ())):
            a = numpy.array(rng.integers(0, 50, shape), dtype)
            with open(path, "wb") as f:  # numpy.save writes what is both as C order
                f.write(npy(shape, numpy.dtype(dtype).newbyteorder(dtype[0] if dtype[0] in "<>" else "<").str, True))
                f.write(numpy.array(a.T, order="C").tobytes())
            f = cured.file(path)
            self.assertEqual(dict(cured.reduce(a, "count,sum,sumsq")), dict(f.reduce("count,sum,sumsq")))
            for op in ("argmin", "argmax", "min") if a.size else ():
                self.assert_same(getattr(cured, op)(a), getattr(f, op)(), "%s %s" % (op, dtype))
            if dtype[-2] == "f":
                numpy.save(self.path(name="p.npy"), numpy.asfortranarray(a + a.dtype.type(0.5)))
                self.assert_same(cured.prod(a + a.dtype.type(0.5)), cured.file(self.path(name="p.npy")).prod())
            if a.size:
                self.assertEqual(bytes(cured.partial(a, "sum,argmax")), bytes(f.partial("sum,argmax")))
            for axis in range(a.ndim) if a.size else ():
                self.assert_arrays(cured.argmax(a, axis=axis), f.argmax(axis=axis))

    def test_member(self):
        path = self.path(name="a.npz")
        a = numpy.arange(24, dtype="i4").reshape(2, 3, 4) % 23
        numpy.savez(path, f=numpy.asfortranarray(a))
        self.assertEqual(22, cured.file(path + ":f").argmax())

    def test_axes_that_are_no_neighbours(self):
        path = self.path(name="c.npy")
        a = numpy.arange(24.0).reshape(2, 3, 4)
        for order in "CF":
            numpy.save(path, numpy.array(a, order=order))
            f = cured.file(path)
            self.assert_arrays(cured.sum(a, axis=(0, 1)), f.sum(axis=(0, 1)))
            with self.assertRaisesRegex(ValueError, "neighbours.*mmap_mode"):
                f.sum(axis=(0, 2))

    def test_what_lies_behind_the_array(self):
        path = self.path(npy((2,)) + bytes(8) + b"more")
        with self.assertRaisesRegex(ValueError, "has 140 bytes, its header and shape want 136"):
            cured.file(path)


class OverTcp(Files):
    """A daemon that no descriptor reaches is sent the bytes."""

    def test_every_kind(self):
        daemon = Daemon(self.folder.name, listen=["tcp:127.0.0.1:0"])
        self.addCleanup(daemon.stop)
        client = cured.Client(daemon.address)
        self.addCleanup(client.close)
        for shape in ((5, 7, 3), (300, 70, 40), (0, 3, 2), ()):
            for dtype in ("<f4", ">i8", "?"):
                a = (numpy.random.default_rng(3).standard_normal(shape) * 9).astype(dtype)
                a = numpy.asarray(a)
                for name, save in (("c.npy", lambda f: numpy.save(f, a)), ("f.npy", lambda f: numpy.save(f, a.T)), ("s.npz", lambda f: numpy.savez(f, x=a)),
                                   ("z.npz", lambda f: numpy.savez_compressed(f, x=a))):
                    path = self.path(None, name)
                    save(path)
                    f, b = cured.file(path + ":x" if name.endswith("z") else path), a.T if name == "f.npy" else a
                    for ask in (lambda x, **o: cured.sum(x, **o), lambda x, **o: cured.digest(x, **o), lambda x, **o: cured.argmax(x, **o), lambda x, **o: cured.median(x, **o),
                                lambda x, **o: cured.mean(x, axis=0, **o), lambda x, **o: cured.max(x, axis=-1, keepdims=True, **o), lambda x, **o: cured.count(x, min_count=1, **o),
                                lambda x, **o: cured.partial(x, "sum,argmin,count", **o), lambda x, **o: cured.sum(x, keys=numpy.zeros(b.shape[:1], int), groups=2, **o),
                                lambda x, **o: cured.sum(x, where=numpy.ones(b.shape, bool), **o)):
                        wanted, got = self.outcome(lambda: ask(b)), self.outcome(lambda: ask(f, client=client))
                        if isinstance(got, str) and "not with keys of a file" not in got:
                            self.assertEqual(type(wanted), type(got), (got, name, shape, dtype))
                        elif not isinstance(got, str):
                            (self.assertEqual if isinstance(wanted, cured.Partial) else self.assert_arrays)(wanted, got)
        x = numpy.arange(700000, dtype="f8")
        path = self.path(x.tobytes(), "raw.bin")
        f = cured.file(path, dtype="f64")
        self.assertEqual(x.sum(), client.sum(f))
        self.assert_arrays(cured.sum(x, offsets=[0, 9, 700000]), client.sum(f, offsets=[0, 9, 700000]))

        async def ask():
            async with cured.AsyncClient(daemon.address) as c:
                return await c.reduce(f, "sum,max")
        self.assertEqual({"sum": x.sum(), "max": 699999.0}, dict(asyncio.run(ask())))
        os.truncate(path, 8000)
        with self.assertRaisesRegex(cured.Error, "it was cut while it was read"):
            client.sum(f)
        self.assertEqual(6, client.sum(b"\1\2\3"))

    def outcome(self, call):
        try:
            return call()
        except (TypeError, ValueError) as error:
            return str(error)


if __name__ == "__main__":
    unittest.main()
