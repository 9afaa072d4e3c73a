#!/usr/bin/env python3
"""cured-client as a program: arrays of answers (--axis) as text, JSON and .npy, and partials, merged by the daemon and here.

Values are small integers, whose answers need no rounding: what is tested here is where each one lands.
"""
import ast
import itertools
import json
import os
import struct

from cli_daemon import CliTest, main, npy


def read_npy(path):
    """(descr, fortran, shape, bytes) of a version 1.0 file."""
    with open(path, "rb") as f:
        data = f.read()
    assert data[:8] == b"\x93NUMPY\1\0", data[:8]
    length = struct.unpack_from("<H", data, 8)[0]
    assert (10 + length) % 64 == 0 and data[9 + length:10 + length] == b"\n"
    head = ast.literal_eval(data[10:10 + length].decode("ascii"))
    assert set(head) == {"descr", "fortran_order", "shape"}
    return head["descr"], head["fortran_order"], head["shape"], data[10 + length:]


def indices(shape):
    return itertools.product(*map(range, shape))


def in_order(shape, fortran):
    """The indices in the order of the memory."""
    if not fortran:
        return list(indices(shape))
    return [tuple(reversed(i)) for i in indices(tuple(reversed(shape)))]


def without(index, axis, keep=False):
    return index[:axis] + ((0,) if keep else ()) + index[axis + 1:]


class Arrays(CliTest):
    def array(self, shape, fortran):
        """A .npy file of i4 whose element at index i is a function of i; the values by index."""
        values = {index: (sum((k + 1) * 7 ** d for d, k in enumerate(index)) % 101) - 50 for index in indices(shape)}
        raw = struct.pack("<%di" % len(values), *[values[i] for i in in_order(shape, fortran)])
        return self.write("x.npy", npy(raw, "<i4", shape, fortran)), values

    @staticmethod
    def sums(values, shape, axis, keep=False):
        out = {i: 0 for i in indices(without(shape, axis)) } if not keep else \
              {i: 0 for i in indices(shape[:axis] + (1,) + shape[axis + 1:])}
        for index, value in values.items():
            out[without(index, axis, keep)] += value
        return out

    def test_blocks(self):
        """--within and --start: boxes of an array in either order, as .npy and raw, by a daemon and here, merge to the whole's answers; what
        is no such box is said."""
        shape, ops = (4, 5, 6), ("--ops", "digest,argmax,sum")
        values = self.array(shape, False)[1]
        whole = self.client("reduce", os.path.join(self.dir, "x.npy"), *ops).out
        within, parts = ("--within", "4,5,6", "--partial"), []
        for k, (start, extent) in enumerate((((0, 0, 0), (4, 2, 6)), ((0, 2, 0), (4, 3, 1)), ((0, 2, 1), (3, 3, 5)), ((3, 2, 1), (1, 3, 5)))):
            place = ("--start", ",".join(map(str, start)))
            inside = {i: values[tuple(a + b for a, b in zip(start, i))] for i in indices(extent)}
            partials = []
            for fortran, raw in ((False, False), (True, False), (False, True)):
                data = struct.pack("<%di" % len(inside), *[inside[i] for i in in_order(extent, fortran)])
                name = self.write("part.i32" if raw else "part.npy", data if raw else npy(data, "<i4", extent, fortran))
                how = ("--shape", ",".join(map(str, extent)), "--dtype", "i32") if raw else ()
                for more in ((), ("--connect", "embedded:")):
                    path = os.path.join(self.dir, "part%d.crp" % k)
                    if more:
                        result = self.run_static("reduce", name, *ops, *within, *place, *how, "--output", path, *more)
                        self.assertEqual(0, result.code, result)
                    else:
                        self.client("reduce", name, *ops, *within, *(place if k else ()), *how, "--output", path)
                    with open(path, "rb") as f:
                        partials.append(f.read())
            self.assertEqual(1, len(set(partials)), (start, extent))
            parts.append(path)
        self.assertEqual(whole, self.client("merge", *parts[::-1], *ops).out)
        self.fails(65, "missing, or there twice", "merge", *parts[1:], "--ops", "digest")
        box = self.write("part.npy", npy(bytes(24), "<i4", (2, 3)))
        for code, words, asked in ((64, "wants --partial", ("--within", "2,3")), (64, "wants --within", ("--start", "0,0")),
                                   (65, "2 dimensions, --within 1", ("--within", "6", "--partial")),
                                   (65, "along dimension 1 it has 3 elements from 1 on, of 3", ("--within", "2,3", "--start", "0,1", "--partial")),
                                   (65, "from 18446744073709551615 on", ("--within", "2,3", "--start", "18446744073709551615,0", "--partial")),
                                   (65, "2^60", ("--within", "4294967296,4294967296", "--partial")),
                                   (64, "--within is '2,18446744073709551616'", ("--within", "2,18446744073709551616", "--partial")),
                                   (64, "up to 32 dimensions", ("--within", ",".join("1" * 33), "--partial")),
                                   (64, "number 1 is missing or none", ("--within", "2,3", "--start", "0,-1", "--partial")),
                                   (64, "more places", ("--within", "2,3", "--start", "0,0:0,0", "--partial")),
                                   (64, "more places", ("--within", "2,3", "--start", "0,0:", "--partial")),
                                   (64, "more places", ("--within", "2,3", "--start", "0,0:x", "--partial")),
                                   (64, "without --first", ("--within", "2,3", "--partial", "--first", "1")),
                                   (64, "--axis goes with neither --partial", ("--within", "2,3", "--partial", "--axis", "1"))):
            self.fails(code, words, "sum", box, *asked)
        self.fails(64, "wants --shape", "sum", self.write("part.i32", bytes(24)), "--within", "2,3", "--partial")
        self.fails(64, "reductions of files", "merge", parts[0], "--ops", "sum", "--within", "4,5,6")

    def test_digests(self):
        """A structure each: its words are the text's."""
        path, values = self.array((3, 4), False)
        printed = self.client("digest", path, "--axis", "0").out.split()
        target = self.write("digests.npy", b"")
        self.client("digest", path, "--axis", "0", "--output", target)
        descr, fortran, shape, raw = read_npy(target)
        self.assertEqual(([("h1", "<u8"), ("h2", "<u8"), ("bytes", "<u8")], False, (4,)), (descr, fortran, shape))
        self.assertEqual(printed, ["cd1-%016x%016x-%d" % words for words in struct.iter_unpack("<3Q", raw)])
        column = struct.pack("<3i", *[values[k, 0] for k in range(3)])
        self.assertEqual(printed[0], self.client("digest", self.write("column.bin", column), "--dtype", "u8").out.strip())

    def test_fortran_order_counts_in_c_order(self):
        """The first of equals, where the two orders find another one; and what stays as it lies."""
        path, values = self.array((3, 4, 2), True)
        raw = [values[i] for i in in_order((3, 4, 2), False)]
        self.assertEqual(self.client("argmax", path).out, "%d\n" % raw.index(max(raw)))
        self.assertEqual(self.client("argmin", path).out, "%d\n" % raw.index(min(raw)))
        equal = self.write("equal.npy", npy(struct.pack("<4i", 0, 7, 7, 0), "<i4", (2, 2), True))  # [[0, 7], [7, 0]]
        self.assertEqual(self.client("argmax", equal).out, "1\n")
        data = struct.pack("<8d", *[1 + k / 7 for k in range(8)])
        floats = self.write("floats.npy", npy(data, "<f8", (2, 4), True))
        turned = b"".join(data[8 * (r + 2 * c):][:8] for r in range(2) for c in range(4))
        self.assertEqual(self.client("prod", floats).out,
                         self.client("prod", self.write("c.npy", npy(turned, "<f8", (2, 4), False))).out)
        self.assertEqual(self.client("argmax", floats, "--count", "3").out, "2\n")
        self.fails(65, "Fortran order", "argmax", floats, "--via", "descriptor")

    def test_every_axis_and_order(self):
        for shape in ((5,), (3, 4), (2, 3, 4), (4, 1, 3, 2), (1, 1), (3, 0, 2)):
            for fortran, axis, keep in itertools.product((False, True), range(len(shape)), (False, True)):
                path, values = self.array(shape, fortran)
                want = self.sums(values, shape, axis, keep)
                result = shape[:axis] + ((1,) if keep else ()) + shape[axis + 1:]
                options = ["--keepdims"] if keep else []
                number = str(axis if (axis + len(shape)) % 2 else axis - len(shape))
                # text: rows of the last dimension, in C order
                last = result[-1] if result else 1
                flat = [want[i] for i in indices(result)]
                lines = [" ".join(map(str, flat[at:at + last])) for at in range(0, len(flat), max(last, 1))]
                self.assertEqual(self.client("sum", path, "--axis", number, *options).out.splitlines(), lines)
                answer = json.loads(self.client("sum", path, "--axis=" + number, "--json", *options).out)
                self.assertEqual(answer["results"]["sum"], {"dtype": "i64", "shape": list(result), "values": flat})
                self.assertEqual(answer["count"], len(values))
                # .npy: the input's order in memory
                out = os.path.join(self.dir, "out.npy")
                self.assertEqual(self.client("sum", path, "--axis", number, "--output", out, *options).out, "")
                descr, order, got_shape, raw = read_npy(out)
                self.assertEqual((descr, got_shape), ("<i8", result))
                self.assertEqual(order, fortran and len(result) > 1)
                wanted = [want[i] for i in in_order(result, fortran)]
                self.assertEqual(list(struct.unpack("<%dq" % len(wanted), raw)), wanted)

    def test_ways_and_several_ops(self):
        raw = self.write("raw.i4", struct.pack("<24i", *range(24)))
        arguments = ("--dtype", "i32", "--shape", "2,3,4", "--axis", "1", "--ops", "sum,argmax,mean")
        want = "# sum\n12 15 18 21\n48 51 54 57\n# argmax\n2 2 2 2\n2 2 2 2\n# mean\n4 5 6 7\n16 17 18 19\n"
        self.assertEqual(self.client("reduce", raw, *arguments).out, want)
        self.assertEqual(self.client("reduce", raw, *arguments, "--via", "stream").out, want)
        self.assertEqual(self.client("reduce", raw, *arguments, tcp=True).out, want)
        with open(raw, "rb") as f:
            data = f.read()
        self.assertEqual(self.client("reduce", "-", *arguments, data=data).out, want)
        shifted = self.write("shifted.i4", b"abc" + data)
        self.assertEqual(self.client("reduce", shifted, "--offset", "3", *arguments).out, want)
        self.client("reduce", raw, *arguments, "--output", os.path.join(self.dir, "r-{op}.npy"))
        for op, descr in (("sum", "<i8"), ("argmax", "<u8"), ("mean", "<f8")):
            self.assertEqual(read_npy(os.path.join(self.dir, "r-%s.npy" % op))[:3], (descr, False, (2, 4)))
        # what was written is read again
        self.assertEqual(self.client("sum", os.path.join(self.dir, "r-sum.npy")).out, "276\n")
        self.assertEqual(self.client("max", raw, "--dtype", "i32", "--axis", "0").out, "23\n")
        self.assertEqual(self.client("count", raw, "--dtype", "i32", "--count", "4", "--axis", "-1").out, "4\n")
        self.assertEqual(len(self.client("describe", self.npy, "--axis", "0").out.splitlines()), 18)

    def test_result_types(self):
        def one(descr, raw, *arguments):
            out = os.path.join(self.dir, "t.npy")
            self.client(*arguments, self.write("in.npy", npy(raw, descr, (2, 2))), "--axis", "1", "--output", out)
            return read_npy(out)
        self.assertEqual(one("|b1", b"\1\0\0\0", "any")[0::3], ("|b1", b"\1\0"))
        self.assertEqual(one("|u1", b"\1\2\3\4", "max")[0::3], ("|u1", b"\2\4"))
        self.assertEqual(one("<f2", struct.pack("<4e", 1, 2, 3, 4), "min")[0::3], ("<f2", struct.pack("<2e", 1, 3)))
        self.assertEqual(one("<f8", struct.pack("<4d", 1, 2, 3, 4), "sum", "--result-dtype", "f32")[0::3],
                         ("<f4", struct.pack("<2f", 3, 7)))
        half = struct.pack("<4H", 0x3f80, 0x4000, 0x4040, 0x4080)
        self.assertEqual(one("<V2", half, "max", "--dtype", "bf16")[0::3], ("<V2", half[2:4] + half[6:8]))
        file = self.write("i.npy", npy(struct.pack("<4q", 2**63 - 1, 1, -2**63, -1), "<i8", (2, 2)))
        self.assertEqual(self.client("sum", file, "--axis", "1", "--result-dtype", "i128").out,
                         "%d %d\n" % (2**63, -2**63 - 1))
        self.fails(64, "128-bit", "sum", file, "--axis", "1", "--result-dtype", "i128", "--output", self.dir + "/no.npy")
        result = self.fails(65, "output 0", "sum", file, "--axis", "1")
        self.assertEqual(result.out, "- -\n")
        values = json.loads(self.client("sum", file, "--axis", "1", "--result-dtype", "i128", "--json").out)
        self.assertEqual(values["results"]["sum"]["values"], [str(2**63), str(-2**63 - 1)])

    def test_answers_without_a_value(self):
        """They are "-", and null; the others stand, also those of the same op. Exit status 65 says that some are lacking."""
        path = self.write("big.npy", npy(struct.pack("<6q", 2**62, 2**62, 1, 2, 3, 4), "<i8", (3, 2), False))
        says = "sum: output 0: the sum does not fit i64; 1 of 3 answers have no value"
        for connect in ((), ("--connect", "embedded:")):
            r = self.client("reduce", path, "--ops", "sum,max", "--axis", "1", *connect, code=65)
            self.assertEqual("# sum\n- 3 7\n# max\n%d 2 4\n" % 2**62, r.out)
            self.assertIn(says, r.err)
            r = self.client("reduce", path, "--ops", "sum,max", "--axis", "1", "--json", *connect, code=65)
            results = json.loads(r.out)["results"]
            self.assertEqual([None, 3, 7], results["sum"]["values"])
            self.assertEqual(("OUT_OF_RANGE", says[5:]), (results["sum"]["status"], results["sum"]["error"]))
            self.assertEqual({"dtype", "shape", "values"}, set(results["max"]))
            self.client("reduce", path, "--ops", "sum,max", "--axis", "1", "--output", os.path.join(self.dir, "{op}.npy"), *connect,
                        code=65)
            self.assertFalse(os.path.exists(os.path.join(self.dir, "sum.npy")))
            self.assertEqual(struct.pack("<3q", 2**62, 2, 4), read_npy(os.path.join(self.dir, "max.npy"))[3])
            self.assertEqual("- 3 7\n", self.client("sum", path, "--axis", "1", *connect, code=65).out)
        nans = self.write("nans.npy", npy(struct.pack("<4f", float("nan"), float("nan"), 1, 2), "<f4", (2, 2), False))
        self.assertEqual("- 1\n", self.client("argmax", nans, "--axis", "1", "--nan", "skip", code=65).out)
        r = self.client("reduce", nans, "--ops", "min,sum", "--axis", "1", "--nan", "skip", code=65)
        self.assertEqual("# min\n- 1\n# sum\n0 3\n", r.out)
        self.assertIn("output 0: min of only NaNs has no value; 1 of 2 answers have none", r.err)
        none = self.write("none.npy", npy(b"", "<f4", (2, 0), False))
        r = self.client("reduce", none, "--ops", "sum,min", "--axis", "1", code=65)
        self.assertEqual("# sum\n0 0\n# min\n- -\n", r.out)

    def test_keys(self):
        """An answer for each group, by a daemon and in this process."""
        daemon = self.unix
        for self.unix in (daemon, "embedded:"):
            self.check_keys()
        self.unix = daemon

    def check_keys(self):
        path = self.write("six.npy", npy(struct.pack("<6i", *range(1, 7)), "<i4", (6,)))
        for code, descr in (("b", "|i1"), ("H", "<u2"), ("i", "<i4"), ("Q", "<u8")):
            for order in "<>":
                keys = self.write("k.npy", npy(struct.pack(order + "6" + code, 0, 2, 0, 1, 2, 0), (order if code != "b" else "|") + descr[1:], (6,)))
                self.assertEqual("10 4 7\n", self.client("sum", path, "--keys", keys).out)
        r = self.client("reduce", path, "--ops", "count,argmax", "--keys", keys, "--groups", "4", code=65)
        self.assertEqual("# count\n3 1 2 0\n# argmax\n5 3 4 -\n", r.out)
        for fortran in (False, True):
            rows = npy(struct.pack("<6h", *((1, 3, 5, 2, 4, 6) if fortran else range(1, 7))), "<i2", (3, 2), fortran)
            two = self.write("two.npy", npy(struct.pack("<3i", 1, 0, 1), "<i4", (3,)))
            self.assertEqual("3 4\n6 8\n", self.client("sum", self.write("rows.npy", rows), "--keys", two).out)
        answer = json.loads(self.client("count", path, "--keys", keys, "--json").out)
        self.assertEqual(([3], [3, 1, 2]), (answer["results"]["count"]["shape"], answer["results"]["count"]["values"]))
        self.fails(65, "keys: number 1 is 2, not one of 0 to 1", "sum", path, "--keys", keys, "--groups", "2")
        self.assertEqual("10 4\n", self.client("sum", path, "--keys", keys, "--groups", "2", "--drop").out)
        self.fails(65, "has 3 keys", "sum", path, "--keys", two)
        self.fails(65, "must have integers", "sum", path, "--keys", self.write("f.npy", npy(bytes(8), "<f8", (1,))))
        self.fails(64, "--keys goes without --axis", "sum", path, "--keys", keys, "--axis", "0")
        self.fails(64, "belong to --keys", "sum", path, "--groups", "2")

    def test_partials_by_key(self):
        """Parts of rows, merged in any order, are finished as the call of all rows; by a daemon, too."""
        values, keys = [k * 0.1 for k in range(3000)], [k * k % 1777 for k in range(1500)]
        ops, arguments = ("--ops", "sum,count,max"), ("--groups", "2500")
        whole = self.write("rows.npy", npy(struct.pack("<3000d", *values), "<f8", (1500, 2)))
        wanted = self.client("reduce", whole, *ops, "--keys", self.write("all.npy", npy(struct.pack("<1500i", *keys), "<i4", (1500,))), *arguments,
                             code=65).out  # groups without rows have no max
        parts = []
        for first, last in ((700, 1500), (0, 700), (700, 700)):
            n, part = last - first, os.path.join(self.dir, "%d-%d.crp" % (first, last))
            rows = self.write("part.npy", npy(struct.pack("<%dd" % (2 * n), *values[2 * first:2 * last]), "<f8", (n, 2)))
            of_rows = self.write("keys.npy", npy(struct.pack("<%di" % n, *keys[first:last]), "<i4", (n,)))
            daemon, self.unix = self.unix, "embedded:"
            self.client("reduce", rows, *ops, "--keys", of_rows, *arguments, "--partial", "--output", part)
            self.unix = daemon
            parts.append(part)
        merged = os.path.join(self.dir, "merged.crp")
        self.client("merge", *parts, *ops, "--partial", "--output", merged)
        self.assertGreater(os.path.getsize(merged), 65536)
        for files in (parts, [merged], [merged, parts[2]]):
            self.assertEqual(wanted, self.client("merge", *files, *ops, code=65).out)
        with open(merged, "rb") as f:
            self.assertEqual(wanted, self.client("merge", "-", *ops, "--local", code=65, data=f.read()).out)
        answer = json.loads(self.client("merge", merged, "--ops", "sum", "--json").out)
        self.assertEqual(("f64", 3000, [2500, 2]), (answer["dtype"], answer["count"], answer["results"]["sum"]["shape"]))
        out = os.path.join(self.dir, "sum.npy")
        self.client("merge", merged, "--ops", "sum", "--output", out)
        self.assertEqual(128 + 2500 * 2 * 8, os.path.getsize(out))
        again = os.path.join(self.dir, "again.crp")
        self.client("reduce", rows, *ops, "--keys", of_rows, *arguments, "--partial", "--output", again)  # by the daemon
        with open(again, "rb") as f, open(part, "rb") as g:
            self.assertEqual(g.read(), f.read())
        self.fails(65, "not made for var", "merge", merged, "--ops", "var")
        self.fails(64, "must hold {op}", "merge", merged, *ops, "--output", out)
        self.fails(64, "--keys goes without --first", "reduce", rows, *ops, "--keys", of_rows, "--first", "4", "--partial")
        self.fails(65, "these bytes are not one by key", "merge", merged, whole, *ops)
        self.fails(65, "see cured-client merge", "sum", merged)

    def test_two_arrays(self):
        """By a daemon and in this process, from a file that is passed and from its bytes."""
        x, y, keep = [5, -2, 7, 0, 3, 1], [2, 4, -1, 9, 1, 1], [1, 0, 1, 1, 1, 0]
        a = self.write("a.npy", npy(struct.pack("<6i", *x), "<i4", (2, 3)))
        b = self.write("b.npy", npy(struct.pack(">6i", *y), ">i4", (2, 3)))
        raw, mask = self.write("b.bin", struct.pack("<6i", *y)), self.write("m.npy", npy(bytes(keep), "|b1", (2, 3)))
        daemon = self.unix
        for self.unix, second, way in itertools.product((daemon, "embedded:"), (b, raw), ((), ("--via", "stream"))):
            self.assertEqual("-1\n", self.client("dot", a, "--second", second, *way).out)
            self.assertEqual("%d\n" % sum((p - q) ** 2 for p, q in zip(x, y)), self.client("sqdist", a, "--second", second).out)
            self.assertEqual("-5 4\n", self.client("dot", a, "--second", second, "--axis", "1", *way).out)
            self.assertEqual("6\n", self.client("dot", a, "--second", second, "--where", mask, *way).out)
        part = self.dir + "/part.crp"
        for self.unix in (daemon, "embedded:"):
            self.client("reduce", a, "--ops", "dot,average", "--second", b, "--partial", "--output", part)
            self.assertEqual("dot -1\naverage -0.0625\n", self.client("merge", part, "--ops", "dot,average", "--local").out)
        self.unix = daemon
        self.assertEqual("dot -1\n", self.client("merge", part, "--ops", "dot").out)
        for self.unix, (words, *command) in itertools.product((daemon, "embedded:"), (
                ("op sum is of one array", "reduce", a, "--ops", "dot,sum", "--second", b),
                ("the shape of", "dot", a, "--second", self.write("t.npy", npy(bytes(24), "<i4", (3, 2)))),
                ("Fortran order", "dot", a, "--second", self.write("f.npy", npy(bytes(24), "<i4", (2, 3), True))),
                ("it is of f32, the input of i32", "dot", a, "--second", self.write("g.npy", npy(bytes(24), "<f4", (2, 3)))),
                ("it has 1 elements, the input 6", "dot", a, "--second", self.write("s.bin", bytes(4))),
                ("no whole elements of i32", "dot", a, "--second", self.write("u.bin", bytes(25))))):
            self.fails(65, words, *command)
        self.unix = daemon
        self.fails(66, "cannot open", "dot", a, "--second", self.dir + "/nowhere.npy")
        self.fails(64, "dot is of two arrays: give the other as --second FILE", "dot", a)
        self.fails(64, "--second: none of the ops takes it", "sum", a, "--second", b)
        self.fails(64, "--second is for reductions of one file", "dot", a, a, "--second", b)

    def test_where(self):
        """By the daemon and in this process, by descriptor, by a pipe, whole, along an axis, as a partial."""
        daemon = self.unix
        values, keeps = list(range(1, 13)), [i % 3 != 1 for i in range(12)]
        total = sum(v for v, k in zip(values, keeps) if k)
        path = self.write("a.npy", npy(struct.pack("<12f", *values), "<f4", (3, 4)))
        raw = self.write("a.bin", struct.pack("<12f", *values))
        masks = [self.write("m.npy", npy(bytes(keeps), "|b1", (3, 4))), "bytes:" + self.write("m.bytes", bytes(keeps)),
                 "bits:" + self.write("m.bits", sum(k << i for i, k in enumerate(keeps)).to_bytes(2, "little"))]
        for self.unix in (daemon, "embedded:"):
            for mask in masks:
                for via in ("auto", "descriptor", "stream"):
                    for name in (path, raw):
                        self.assertEqual("%d\n" % total, self.client("sum", name, "--where", mask, "--via", via).out)
                self.assertEqual("11\n", self.client("argmax", path, "--where", mask).out)
                columns = [sum(values[4 * k + i] for k in range(3) if keeps[4 * k + i]) for i in range(4)]
                self.assertEqual("%d %d %d %d\n" % tuple(columns), self.client("sum", path, "--where", mask, "--axis", "0").out)
                piped = ("sum", "-", "--where", mask, "--count", "12")
                self.assertEqual("%d\n" % total, self.client(*piped, data=struct.pack("<12f", *values)).out)
                part = os.path.join(self.dir, "part")
                self.client("sum", path, "--where", mask, "--partial", "--output", part)
                self.assertEqual("sum %d\n" % total, self.client("merge", part, "--ops", "sum", "--local").out)
            for words, *arguments in (
                    ("no .npy file", raw, "--where", raw), ("holds f32, not bool", path, "--where", path),
                    ("speaks of 12 elements, and 11 of", raw, "--count", "11", "--where", masks[0]),
                    ("bits of 7 elements take 1", raw, "--count", "7", "--where", masks[2]),
                    ("the shape of", path, "--where", self.write("t.npy", npy(bytes(12), "|b1", (4, 3)))),
                    ("Fortran order", path, "--where", self.write("f.npy", npy(bytes(12), "|b1", (3, 4), True))),
                    ("has not the 12 elements", path, "--where", self.write("cut.npy", npy(bytes(11), "|b1", (12,))))):
                r = self.client("sum", *arguments, code=65)
                self.assertTrue(any(word in r.err for word in words.split("|")), r.err)
            self.fails(66, "cannot open", "sum", path, "--where", self.dir + "/nowhere.npy")
            self.fails(64, "--where is for reductions of one file", "sum", path, path, "--where", masks[0])
            self.fails(64, "--where bits: wants --count", "sum", "-", "--where", masks[2], data=b"")
        self.unix = daemon

    def test_offsets(self):
        """An answer for each segment, printed and written as those of an axis are, by a daemon and in this process."""
        daemon = self.unix
        for self.unix in (daemon, "embedded:"):
            self.check_offsets()
        self.unix = daemon

    def check_offsets(self):
        path = self.write("ten.npy", npy(struct.pack("<10i", *range(10)), "<i4", (10,)))
        for code, descr in (("i", "<i4"), ("q", "<i8"), ("I", "<u4"), ("Q", "<u8")):
            for order in "<>":
                offsets = self.write("o.npy", npy(struct.pack(order + "4" + code, 0, 3, 3, 10), order + descr[1:], (4,)))
                self.assertEqual("3 0 42\n", self.client("sum", path, "--offsets", offsets).out)
        r = self.client("reduce", path, "--ops", "sum,max", "--offsets", offsets, code=65)
        self.assertEqual("# sum\n3 0 42\n# max\n2 - 9\n", r.out)
        self.assertIn("max: output 1: max of no elements has no value; 1 of 3 answers have none", r.err)
        answer = json.loads(self.client("count", path, "--offsets", offsets, "--json").out)
        self.assertEqual(([3], [3, 0, 7]), (answer["results"]["count"]["shape"], answer["results"]["count"]["values"]))
        target = os.path.join(self.dir, "sums.npy")
        self.client("sum", path, "--offsets", offsets, "--output", target)
        self.assertEqual(("<i8", False, (3,), struct.pack("<3q", 3, 0, 42)), read_npy(target))
        falls = self.write("falls.npy", npy(struct.pack("<3i", 0, 5, 4), "<i4", (3,)))
        self.fails(65, "offsets[2] is 4, below the 5 before it", "sum", path, "--offsets", falls)
        self.fails(65, "must have one dimension of i32", "sum", path, "--offsets", self.write("f.npy", npy(bytes(8), "<f8", (1,))))
        self.fails(65, "is no .npy file", "sum", path, "--offsets", self.write("o.bin", bytes(16)))
        self.fails(65, "not the 4 elements", "sum", path, "--offsets", self.write("cut.npy", npy(bytes(12), "<i4", (4,))))
        self.fails(66, "cannot open", "sum", path, "--offsets", self.dir + "/nowhere.npy")
        two = self.write("two.npy", npy(bytes(40), "<i4", (2, 5)))
        self.fails(65, "an array of one dimension", "sum", two, "--offsets", offsets)
        self.fails(64, "--offsets goes without --axis", "sum", path, "--offsets", offsets, "--axis", "0")
        self.fails(64, "--offsets goes with neither", "sum", path, "--offsets", offsets, "--first", "3")

    def test_axis_refusals(self):
        raw = self.write("six.bin", bytes(24))
        self.fails(65, "2 dimensions", "sum", self.npy, "--axis", "2")
        self.fails(65, "2 dimensions", "sum", self.npy, "--axis", "-3")
        scalar = self.write("0.npy", npy(bytes(4), "<f4", ()))
        self.fails(65, "0 dimensions", "sum", scalar, "--axis", "0")
        self.fails(65, "no elements", "max", self.write("e.npy", npy(b"", "<f4", (2, 0))), "--axis", "1")
        self.fails(65, "--shape wants 28", "sum", raw, "--shape", "7", "--axis", "0")
        self.fails(65, "--shape wants 24 behind --offset", "sum", raw, "--shape", "6", "--offset", "4")
        self.fails(65, "more bytes", "sum", "-", "--shape", "5", data=bytes(24))
        self.fails(65, "ends after", "sum", "-", "--shape", "7", data=bytes(24))
        self.fails(64, "--shape", "sum", "-", "--axis", "0", data=bytes(24))
        self.fails(64, "raw files", "sum", self.npy, "--shape", "30000")
        self.fails(64, "--count", "sum", raw, "--shape", "6", "--count", "6")
        self.fails(64, "whole array", "sum", self.npy, "--axis", "0", "--count", "6")
        for arguments in (("--axis", "x"), ("--axis", "--1"), ("--shape", "2,,3"), ("--shape", "2,-3"), ("--shape", ""),
                          ("--shape", "2,"), ("--shape", ",".join(["1"] * 65)), ("--keepdims",), ("--output", "x"),
                          ("--shape", "%d,%d" % (2**40, 2**40)), ("--axis", "0", "--first", "1"), ("--local",),
                          ("--axis", "0", "--partial"), ("--partial", "--json"), ("--first", "-1"),
                          ("--axis", "0", "--json", "--output", "x")):
            self.client("sum", raw, *arguments, code=64)
        self.fails(64, "{op}", "reduce", raw, "--ops", "sum,max", "--axis", "0", "--output", "x.npy")
        self.client("ping", "--axis", "0", code=64)
        self.fails(74, "cannot", "sum", raw, "--axis", "0", "--output", self.dir + "/none/x.npy")
        self.fails(74, "No space", "sum", raw, "--axis", "0", "--output", "/dev/full")

    def test_partials(self):
        values = [((i * 7919) % 1000) / 8 - 40 for i in range(1000)]
        whole = self.write("whole.bin", struct.pack("<1000d", *values))
        ops = ("--dtype", "f64", "--ops", "sum,argmin,std,count_nonzero")
        want = self.client("reduce", whole, *ops).out
        parts = []
        for at, size in ((0, 10), (10, 500), (510, 489), (999, 1)):
            part = self.write("p%d.bin" % at, struct.pack("<%dd" % size, *values[at:at + size]))
            out = os.path.join(self.dir, "p%d.crp" % at)
            self.assertEqual(self.client("reduce", part, *ops, "--partial", "--first", str(at), "--output", out).out, "")
            parts.insert(at % 2, out)
        for local in ((), ("--local",)):
            arguments = ("--ops", ops[3], *local)
            self.assertEqual(self.client("merge", *parts, *arguments).out, want)
            some, rest = os.path.join(self.dir, "some.crp"), os.path.join(self.dir, "rest.crp")
            self.client("merge", parts[1], parts[3], *arguments, "--partial", "--output", some)
            self.client("merge", parts[2], parts[0], *arguments, "--partial", "--output", rest)
            self.assertEqual(self.client("merge", some, rest, *arguments).out, want)
            merged = os.path.join(self.dir, "merged.crp")
            self.client("merge", some, rest, *arguments, "--partial", "--output", merged)
            self.client("reduce", whole, *ops, "--partial", "--output", some)
            with open(some, "rb") as a, open(merged, "rb") as b:
                self.assertEqual(a.read(), b.read())
            answer = json.loads(self.client("merge", merged, *arguments, "--json").out)
            self.assertEqual((answer["dtype"], answer["count"]), ("f64", 1000))
            self.assertEqual(answer["results"]["argmin"]["value"], values.index(min(values)))
            # what does not fit
            self.fails(65, "in two of them", "merge", parts[0], parts[0], *arguments)
            other = os.path.join(self.dir, "other.crp")
            self.client("reduce", whole, "--dtype", "f32", "--ops", ops[3], "--partial", "--first", "5000", "--output", other)
            self.fails(65, "f32", "merge", parts[0], other, *arguments)
            self.client("reduce", whole, "--dtype", "f64", "--ops", "sum", "--partial", "--first", "5000", "--output", other)
            self.fails(65, "different ops", "merge", parts[0], other, *arguments)
            self.fails(65, whole + ": ", "merge", parts[0], whole, *arguments)
            self.fails(65, "not made for", "merge", other, "--ops", "max", *local)
            self.fails(65, "not one", "merge", whole, *arguments)
            for op in ("median", "quantile"):
                self.fails(64, "merge: partials: op %s has none, because it takes several reads" % op, "merge", other, "--ops", op, *local)
            self.fails(65, "not a partial", "merge", self.write("long", bytes(65537)), *arguments)
            self.fails(65, "", "merge", self.write("empty", b""), *arguments)
            self.fails(66, "No such file", "merge", self.dir + "/none", *arguments)
            os.makedirs(os.path.join(self.dir, "nothing"), exist_ok=True)
            self.fails(66, "the folder", "merge", os.path.join(self.dir, "nothing"), *arguments)
            with open(merged, "rb") as f:
                data = f.read()
            newer = self.write("newer", data[:2] + b"\4" + data[3:])
            self.fails(65, "version is 4", "merge", newer, *arguments)
            self.assertEqual(self.client("merge", "-", *arguments, data=data).out, want)
        # without a daemon
        result = self.run_static("merge", merged, "--ops", "sum", "--local", "--connect", "unix:" + self.dir + "/none")
        self.assertEqual(result.code, 0, result)
        for arguments in (("--dtype", "f32"), ("--axis", "0"), ("--offset", "1"), ("--count", "1"), ("--first", "1")):
            self.client("merge", merged, "--ops", "sum", *arguments, code=64)
        self.client("merge", merged, code=64)
        self.client("merge", "--ops", "sum", code=64)


if __name__ == "__main__":
    main()
