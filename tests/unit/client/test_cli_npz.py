#!/usr/bin/env python3
"""cured-client and arrays that do not lie in memory's order of bytes: members of .npz archives, stored and deflated, and
big-endian elements; archives that are damaged, or made to deceive.

The archives are made by hand, so that every field of them can be wrong.
"""
import math
import os
import struct
import subprocess
import zlib

from cli_daemon import CLIENT, ENVIRONMENT, HANG_S, CliTest, main, npy

MOST32 = 2**32 - 1


class Entry:
    """One member; its fields as the archive will have them."""

    def __init__(self, name, data, deflated=False, packed=None, **changes):
        packer = zlib.compressobj(wbits=-15)
        self.name, self.method = name.encode(), 8 if deflated else 0
        self.data = packed or (packer.compress(data) + packer.flush() if deflated else data)
        self.bytes, self.stored, self.crc, self.flags, self.extra = len(data), len(self.data), zlib.crc32(data), 0, b""
        self.local, self.offset = b"PK\3\4", None
        self.__dict__.update(changes)

    def head(self):
        return self.local + struct.pack("<HHHHHIIIHH", 45, self.flags, self.method, 0, 0, self.crc, self.stored & MOST32,
                                        self.bytes & MOST32, len(self.name), 3) + self.name + b"xyz"

    def central(self, offset, zip64):
        sizes, extra = (self.stored, self.bytes, offset), self.extra
        if zip64:
            extra = struct.pack("<HHI", 7, 4, 0) + struct.pack("<HHQQQ", 1, 24, self.bytes, self.stored, offset)
            sizes = (MOST32,) * 3
        return b"PK\1\2" + struct.pack("<HHHHHHIIIHHHHHII", 45, 45, self.flags, self.method, 0, 0, self.crc, sizes[0], sizes[1],
                                       len(self.name), len(extra), 2, 0, 0, 0, sizes[2]) + self.name + extra + b"hm"


def archive(*entries, zip64=False, comment=b"", **changes):
    out, central = b"", b""
    for e in entries:
        central += e.central(len(out) if e.offset is None else e.offset, zip64)
        out += e.head() + e.data
    numbers = dict(dict(members=len(entries), size=len(central), at=len(out)), **changes)
    end = out + central
    if zip64:
        end += b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, numbers["members"], numbers["members"], numbers["size"],
                                       numbers["at"])
        end += b"PK\6\7" + struct.pack("<IQI", 0, len(out) + len(central), 1)
        numbers = dict(members=65535, size=MOST32, at=MOST32)
    return end + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, numbers["members"], numbers["members"], numbers["size"], numbers["at"],
                                         len(comment)) + comment


def floats(*values, descr="<f4"):
    return npy(struct.pack("%s%d%s" % (descr[0], len(values), {"f4": "f", "f8": "d", "i2": "h"}[descr[1:]]), *values), descr,
               (len(values),))


class Npz(CliTest):
    def test_every_way(self):
        x, y = floats(*self.values), floats(*self.values[:7], descr=">f8")
        for zip64 in (False, True):
            for deflated in (False, True):
                for comment in (b"", b"PK\5\6 is no end", bytes(65535)):
                    path = self.write("a.npz", archive(Entry("y.npy", y, not deflated), Entry("x.npy", x, deflated), zip64=zip64,
                                                       comment=comment))
                    for arguments in ((), ("--via", "stream"), ("--connect", "embedded:")):
                        run = self.client if "--connect" not in arguments else self.run_static
                        self.assertEqual(self.client("sum", self.raw).out, run("sum", path + ":x", *arguments).out)
                        self.assertEqual(repr(max(self.values[:7])) + "\n", run("max", path + ":y.npy", *arguments).out)
                    self.assertEqual(self.client("sum", self.raw).out, self.client("sum", path + ":x", tcp=True).out)
        self.assertEqual(repr(self.values[3]) + "\n", self.client("sum", path + ":x", "--offset", "12", "--count", "1").out)
        self.fails(64, "is not deflated", "sum", path + ":x", "--via", "descriptor")
        self.client("sum", path + ":y", "--via", "descriptor", code=64)

    def test_names(self):
        path = self.write("n.npz", archive(Entry("arr_0.npy", floats(1, 2)), Entry("../../etc/a:b.npy", floats(4)),
                                           Entry("plain", floats(8)), Entry("a\x1b[31m.npy", floats(16)), Entry("b" * 300, b"")))
        for name, value in (("arr_0", 3), ("arr_0.npy", 3), ("../../etc/a:b", 4), ("plain", 8), ("a\x1b[31m", 16)):
            self.assertEqual("%d\n" % value, self.client("sum", path + ":" + name).out)
        for name in ("arr", "plain.npy", "b" * 300, "x"):
            error = self.fails(66, "there is no array", "sum", path + ":" + name).err
            self.assertIn("arr_0, ../../etc/a:b, plain and 2 more", error)
        self.fails(65, "holds arr_0", "sum", path)
        self.fails(65, "name one of its arrays behind a colon", "describe", path)
        self.fails(66, "No such file", "sum", path + ":")
        self.fails(66, "No such file", "sum", path + "x.npz:arr_0")
        self.fails(66, "holds nothing", "sum", self.write("e.npz", archive()) + ":x")
        both = self.write("n.npz:arr_0", struct.pack("<2f", 32, 32))
        self.assertEqual("64\n", self.client("sum", both).out)
        os.unlink(both)
        fifo = os.path.join(self.dir, "fifo.npz")
        os.mkfifo(fifo)
        writer = os.open(fifo, os.O_RDWR)
        self.fails(65, "no regular file", "sum", fifo + ":x")
        os.close(writer)

    def test_several_and_total(self):
        path = self.write("t.npz", archive(Entry("x.npy", floats(1, 2)), Entry("y.npy", floats(3, 9), True)))
        lines = self.client("argmax", path + ":x", path + ":y", "--total").out.splitlines()
        self.assertEqual(["1", "3", "3"], [line.split()[0] for line in lines])

    def test_members_that_are_no_arrays(self):
        path = self.write("m.npz", archive(Entry("t", b"hello"), Entry("d.bin", struct.pack("<4f", 1, 2, 3, 4), True)))
        self.fails(65, "does not begin as a .npy file", "sum", path + ":d.bin")
        self.fails(65, "ends in the middle", "sum", path + ":t")
        self.assertEqual("10\n", self.client("sum", path + ":d.bin", "--raw").out)

    def test_deceitful(self):
        x = floats(*range(100))
        cases = {
            "encrypted": [Entry("x.npy", x, flags=1)], "method 12": [Entry("x.npy", x, method=12)],
            "two arrays": [Entry("x.npy", x), Entry("x.npy", x)], "two arrays of": [Entry("x.npy", x), Entry("x", x)],
            "two sizes": [Entry("x.npy", x, stored=len(x) - 1)], "checksum": [Entry("x.npy", x, True, crc=1)],
            "more bytes than the directory": [Entry("x.npy", x + bytes(9), True, bytes=len(x))],
            "fewer bytes than the directory": [Entry("x.npy", x[:-1], True, bytes=len(x))],
            "shape want": [Entry("x.npy", x + b"1")], "its .npy header and shape want": [Entry("x.npy", x + b"1", True)],
            "cannot be unpacked": [Entry("x.npy", x, True, packed=b"\xff" * 500)],
            "in the middle": [Entry("x.npy", x, True, stored=40)],
            "does not begin where": [Entry("x.npy", x, local=b"PK\3\5")],
            "before the directory": [Entry("x.npy", x, stored=10**6, bytes=10**6)],
            "behind its end": [Entry("x.npy", x, offset=2**32 - 2)],
            "ZIP64 field is too short": [Entry("x.npy", x, bytes=MOST32, extra=struct.pack("<HH", 1, 0))],
            "longer than its entry": [Entry("x.npy", x, extra=struct.pack("<HH", 7, 9))],
        }
        for says, entries in cases.items():
            path = self.write("d.npz", archive(*entries))
            for via in ("auto", "stream"):
                self.fails(65, says, "sum", path + ":x", "--via", via)
        for says, changes in (("before its end record", {"at": 10**9}), ("before its end record", {"size": 10**9}),
                              ("malformed", {"members": 2}), ("malformed", {"at": 1}), ("longer than its directory", {"size": 50}),
                              ("members, the limit is", {"members": 2**40, "zip64": True}),
                              ("before its end record", {"at": 2**63, "zip64": True}),
                              ("before its end record", {"size": 2**64 - 1, "zip64": True})):
            self.fails(65, says, "sum", self.write("d.npz", archive(Entry("x.npy", x), **changes)) + ":x")
        self.fails(65, "end record is missing", "sum", self.write("d.npz", b"no archive") + ":x")
        self.fails(65, "ZIP64 record is missing", "sum", self.write("d.npz", archive(Entry("x.npy", x), at=MOST32)) + ":x")

    def test_small_ones_that_become_large(self):
        """A kilobyte that unpacks to a million is read no further than its directory says."""
        bomb = npy(b"", "<f4", (250_000_000,)) + bytes(1_000_000)
        for promised in (len(bomb), 10**9 + 128):
            path = self.write("b.npz", archive(Entry("x.npy", bomb, True, bytes=promised)))
            self.client("sum", path + ":x", code=65)

    def test_cut_anywhere(self):
        """In this process: no daemon is asked, so that 500 runs are cheap."""
        whole = archive(Entry("x.npy", floats(1, 2, 3), True), Entry("y.npy", floats(4)), zip64=True)
        path = os.path.join(self.dir, "c.npz")
        for size in range(0, len(whole), 3):
            self.write("c.npz", whole[:size])
            run = subprocess.run([CLIENT, "sum", path + ":x", "--connect", "embedded:"], env=ENVIRONMENT, capture_output=True,
                                 timeout=HANG_S)
            self.assertIn(run.returncode, (65, 66), (size, run))
            self.assertRegex(run.stderr.decode(), r"\Acured-client: .+\n\Z")


class BigEndian(CliTest):
    def test_npy(self):
        for descr, values in ((">f4", (1.5, -2, 8)), (">f8", (1e300, 1, -1e300)), (">i2", (-300, 7, 2))):
            data = floats(*values, descr=descr)
            path = self.write("b.npy", data)
            for arguments in ((), ("--via", "stream"), ("--connect", "embedded:")):
                run = self.client if "--connect" not in arguments else self.run_static
                out = run("reduce", path, "--ops", "sum,argmin,max", *arguments).out.split()
                self.assertEqual([math.fsum(values), values.index(min(values)), max(values)], [float(word) for word in out[1::2]])
            self.assertEqual(self.client("sum", path).out, self.client("sum", "-", data=data).out)
            self.assertEqual(self.client("sum", path).out, self.client("sum", path, tcp=True).out)
        self.fails(64, "big-endian", "sum", path, "--via", "descriptor")
        self.fails(65, "ends after", "sum", "-", data=data[:-1])
        self.fails(65, "more bytes", "sum", "-", data=data + b"1")
        self.assertEqual("7\n2\n", self.client("max", self.write("b.npy", npy(struct.pack(">4h", 7, -1, 2, 1), ">i2", (2, 2))),
                                               "--axis", "1").out.replace(" ", "\n"))

    def test_raw(self):
        data = struct.pack(">30000f", *self.values)
        path = self.write("raw.be", b"xyz" + data)
        want = self.client("sum", self.raw).out
        self.assertEqual(want, self.client("sum", path, "--dtype", ">f4", "--offset", "3").out)
        self.assertEqual(want, self.client("sum", "-", "--dtype", ">f4", "--offset", "3", data=b"xyz" + data).out)
        self.fails(65, "multiple of 4", "sum", "-", "--dtype", ">f4", data=data[:-1])
        self.assertEqual("0\n", self.client("sum", "-", "--dtype", ">f4", data=b"").out)
        last = self.client("sum", path, "--dtype", ">f4", "--dtype", "u1").out  # the last word counts
        self.assertEqual("%d\n" % sum(b"xyz" + data), last)

    def test_pieces_that_cut_elements(self):
        """A pipe whose writes end within elements."""
        reader, writer = os.pipe()
        run = subprocess.Popen([CLIENT, "sum", "-", "--dtype", ">i8", "--connect", self.unix], stdin=reader, env=ENVIRONMENT,
                               stdout=subprocess.PIPE)
        os.close(reader)
        data = struct.pack(">500q", *range(500))
        at = 0
        for step in [1, 2, 3, 7, 13, 64] * 100:
            at += os.write(writer, data[at:at + step]) if at < len(data) else 0
        self.assertEqual(len(data), at)
        os.close(writer)
        self.assertEqual(b"%d\n" % sum(range(500)), run.communicate(timeout=HANG_S)[0])


if __name__ == "__main__":
    main()
