#!/usr/bin/env python3
"""What lies beside an array of cured-client, of types that NumPy has not and beside a part of a file: second arrays, masks, keys."""
import struct

from cli_daemon import CliTest, main, npy


def bf16(*values):
    return b"".join(struct.pack("<f", value)[2:] for value in values)


class Types(CliTest):
    """The second array of a type that NumPy writes as void is of the type that --dtype says."""

    def test_second_arrays_without_a_type(self):
        pair = bf16(1, 2, 3, 4), bf16(5, 6, 7, 8)
        small = bytes([0x38, 0x40, 0x44, 0x48]), bytes([0x38, 0x38, 0x38, 0x40])  # 1 2 3 4, and 1 1 1 2
        for dtype, descr, (a, b), dot in (("bf16", "<V2", pair, "70"), ("bf16", "|V2", pair, "70"), ("f8_e4m3", "|V1", small, "14")):
            first, second = self.write("first.npy", npy(a, descr, (4,))), self.write("second.npy", npy(b, descr, (4,)))
            raw = self.write("first.bin", a)
            for tcp in (False, True):
                self.assertEqual(dot + "\n", self.client("dot", first, "--dtype", dtype, "--second", second, tcp=tcp).out)
                self.assertEqual(dot + "\n", self.client("dot", raw, "--raw", "--dtype", dtype, "--second", second, tcp=tcp).out)
            two = self.write("two.npy", npy(b, descr, (2, 2)))
            first = self.write("first.npy", npy(a, descr, (2, 2)))
            along = self.client("dot", first, "--dtype", dtype, "--second", two, "--axis", "1").out.split()
            self.assertEqual(float(dot), sum(map(float, along)))
            self.fails(65, "the shape of %s is not that of" % second, "dot", first, "--dtype", dtype, "--second", second)

    def test_of_another_type_it_is_refused(self):
        second = self.write("second.npy", npy(bf16(1, 2), "<V2", (2,)))
        for dtype in ("f32", "f8_e4m3", "i16"):
            first = self.write("first.bin", bytes(8 if dtype == "f32" else 4 if dtype == "i16" else 2))
            self.fails(65, "second.npy holds raw elements (dtype 'V2', as bf16 is written), and", "dot", first, "--raw", "--dtype", dtype, "--second", second)
        for option in ("keys", "offsets", "where"):
            self.fails(65, "--%s: %s holds raw elements (dtype 'V2')" % (option, second), "sum", self.npy, "--" + option, second)


class Parts(CliTest):
    """--offset and --count take a part of a .npy file, which is an array of one dimension: what lies beside has the part's elements."""

    def setUp(self):
        self.line = self.write("line.npy", npy(struct.pack("<10i", *range(10)), "<i4", (10,)))
        self.box = self.write("box.npy", npy(struct.pack("<12i", *range(12)), "<i4", (3, 4)))
        self.part = "--offset", "8", "--count", "4"  # 2 3 4 5
        self.mask = self.write("mask.npy", npy(bytes([1, 0, 1, 1]), "|b1", (4,)))
        self.second = self.write("second.npy", npy(struct.pack("<4i", 1, 10, 100, 1000), "<i4", (4,)))
        self.keys = self.write("keys.npy", npy(bytes([1, 0, 1, 1]), "|u1", (4,)))

    def test_masks_and_second_arrays(self):
        for name in (self.line, self.box):
            for tcp in (False, True):
                self.assertEqual("11\n", self.client("sum", name, "--where", self.mask, *self.part, tcp=tcp).out)
                self.assertEqual("5432\n", self.client("dot", name, "--second", self.second, *self.part, tcp=tcp).out)
                both = self.client("dot", name, "--second", self.second, "--where", self.mask, *self.part, tcp=tcp)
                self.assertEqual("5402\n", both.out)
        raw = self.write("raw.bin", struct.pack("<10i", *range(10)))
        self.assertEqual("11\n", self.client("sum", raw, "--dtype", "i32", "--raw", "--where", self.mask, *self.part).out)

    def test_keys(self):
        for tcp in (False, True):
            self.assertEqual("3 11\n", self.client("sum", self.line, "--keys", self.keys, *self.part, tcp=tcp).out)
            masked = self.client("reduce", self.line, "--ops", "sum,count", "--keys", self.keys, "--where", self.mask, *self.part, tcp=tcp)
            self.assertEqual("# sum\n0 11\n# count\n0 3\n", masked.out)
        self.assertEqual("3 11\n", self.client("sum", self.line, "--keys", self.keys, "--count", "4", "--offset", "8", "--via", "stream").out)
        self.fails(65, "keys.npy has 4 keys, %s has 3 rows" % self.line, "sum", self.line, "--keys", self.keys, "--count", "3")

    def test_parts_of_masks(self):
        """--where-first: a mask of the whole goes with a part of the array, bit by bit too."""
        keep = [1, 0, 1, 1, 0, 0, 1, 0, 1, 1]
        bits = [sum(b << i for i, b in enumerate(keep[k:k + 8])) for k in (0, 8)]
        forms = [self.write("whole.npy", npy(bytes(keep), "|b1", (10,))), "bytes:" + self.write("whole.bytes", bytes(keep)), "bits:" + self.write("whole.bits", bytes(bits))]
        raw = self.write("raw.bin", struct.pack("<10i", *range(10)))
        for mask, tcp, first in ((m, t, f) for m in forms for t in (False, True) for f in (0, 1, 2, 5, 8)):
            count = min(4, 10 - first)
            part, want = ("--offset", str(4 * first), "--count", str(count)), sum(k for k in range(first, first + count) if keep[k])
            for name in ((self.line,), (raw, "--dtype", "i32", "--raw")):
                asked = ("sum", *name, "--where", mask, "--where-first", str(first), *part)
                self.assertEqual("%d\n" % want, self.client(*asked, tcp=tcp).out, asked)
        for mask in forms:
            with open(self.line, "rb") as f:
                piped = self.client("sum", "-", "--where", mask, "--where-first", "0", *(("--count", "10") if mask == forms[2] else ()), data=f.read())
            self.assertEqual("28\n", piped.out, (mask, piped))
            self.fails(65, "--where-first: %s speaks of %d elements, and 4 are wanted from 13 on" % (mask.partition(":")[2] or mask, 16 if mask == forms[2] else 10),
                       "sum", self.line, "--where", mask, "--where-first", "13", "--count", "4")
        self.fails(65, "take 1; of a part --where-first says where in the mask it begins", "sum", self.line, "--where", forms[2], "--offset", "8", "--count", "4")
        self.fails(64, "--where-first belongs to --where", "sum", self.line, "--where-first", "1")
        self.fails(64, "--where-first is 'x', must be a number of elements", "sum", self.line, "--where", self.mask, "--where-first", "x")

    def test_what_is_no_part(self):
        """Rows of several dimensions are cut by no number of elements."""
        keys = self.write("rows.npy", npy(bytes([1, 0, 1]), "|u1", (3,)))
        for more in (("--count", "8"), ("--offset", "16"), ("--count", "12")):
            self.fails(64, "--keys takes all rows of %s: leave out --offset and --count" % self.box, "sum", self.box, "--keys", keys, *more)
        self.fails(65, "mask.npy speaks of 4 elements, and 3 of %s are taken; of a part --where-first says where" % self.line, "sum", self.line, "--where", self.mask, "--count", "3")
        self.fails(65, "second: it has 4 elements, the input 3", "dot", self.line, "--second", self.second, "--count", "3")
        square = self.write("square.npy", npy(bytes([1, 0, 1, 1]), "|b1", (2, 2)))
        self.fails(65, "the shape of %s is not that of" % square, "sum", self.line, "--where", square, "--count", "4")
        turned = self.write("turned.npy", npy(struct.pack("<12i", *range(12)), "<i4", (3, 4), fortran=True))
        for beside in (("sum", "--where", self.mask), ("dot", "--second", self.second)):
            self.fails(65, "is in Fortran order", beside[0], turned, *beside[1:], *self.part)


class Pipes(CliTest):
    """Raw bytes of standard input have no length of their own: it is that of what lies beside them, whoever answers."""

    def ask(self, code, op, data, *words):
        """The same from a daemon, by either socket, and from this process."""
        said = set()
        for address in (self.unix, self.tcp, "embedded:"):
            result = self.run_static(op, "-", *words, "--connect", address, data=data)
            self.assertEqual(code, result.code, result)
            said.add(result.err if code else result.out)
        self.assertEqual(1, len(said), said)
        return said.pop()

    def test_raw_bytes_are_as_long_as_what_lies_beside(self):
        data = struct.pack("<4f", 1, 2, 3, 4)
        mask, raw = self.write("mask.npy", npy(bytes([1, 0, 1, 1]), "|b1", (4,))), self.write("mask", bytes([1, 0, 1, 1]))
        second = self.write("second.npy", npy(struct.pack("<4f", 1, 10, 100, 1000), "<f4", (4,)))
        other = self.write("second", struct.pack("<4f", 1, 10, 100, 1000))
        for where in (mask, "bytes:" + raw):
            self.assertEqual("8\n", self.ask(0, "sum", data, "--where", where))
            self.assertEqual("3\n", self.ask(0, "median", data, "--where", where))
            self.assertEqual("4301\n", self.ask(0, "dot", data, "--second", second, "--where", where))
        for name in (second, other):
            self.assertEqual("4321\n", self.ask(0, "dot", data, "--second", name))
            self.assertIn("standard input ends after 12 of 16 bytes", self.ask(65, "dot", data[:12], "--second", name))
            self.assertIn("standard input has more bytes than the 4 elements", self.ask(65, "dot", data + data, "--second", name))
        self.assertIn("standard input ends after 15 of 16 bytes", self.ask(65, "sum", data[:15], "--where", mask))
        self.assertIn("standard input has more bytes than the 4 elements", self.ask(65, "sum", data + bytes(1), "--where", mask))
        self.assertEqual("0\n", self.ask(0, "dot", b"", "--second", self.write("none", b"")))
        self.assertIn("--where bits: wants --count", self.ask(64, "sum", data, "--where", "bits:" + raw))
        self.assertEqual("2\n", self.ask(0, "sum", data, "--where", "bits:" + self.write("bits", bytes([2])), "--count", "4"))


class Weights(CliTest):
    """--second of average as NumPy's weights: one for each element, of an axis, or by key of the rows."""

    def test_of_one_axis(self):
        values = [[1, 2, 6], [4, 8, 1]]
        a = self.write("a.npy", npy(struct.pack("<6d", *sum(values, [])), "<f8", (2, 3)))
        columns, rows = struct.pack("<3d", 1, 2, 1), struct.pack("<2d", 3, 1)
        of_columns, of_rows = self.write("columns.npy", npy(columns, "<f8", (3,))), self.write("rows.npy", npy(rows, "<f8", (2,)))
        keys = self.write("keys.npy", npy(bytes([0, 0]), "|u1", (2,)))
        by_columns, by_rows = ["2.75", "5.25"], ["1.75", "3.5", "4.75"]
        for tcp in (False, True):
            for axis in ("1", "-1"):
                for weights in (of_columns, self.write("columns.bin", columns)):
                    self.assertEqual(by_columns, self.client("average", a, "--second", weights, "--axis", axis, tcp=tcp).out.split())
            self.assertEqual(by_rows, self.client("average", a, "--second", of_rows, "--axis", "0", tcp=tcp).out.split())
            self.assertEqual(by_rows, self.client("reduce", a, "--ops", "average", "--second", of_rows, "--keys", keys, tcp=tcp).out.split()[-3:])
        self.fails(65, "second: it has 3 elements, the input 6", "average", a, "--second", of_columns, "--axis", "0")
        self.fails(65, "second: it has 3 elements, the input 6", "dot", a, "--second", of_columns, "--axis", "1")
        self.fails(65, "second: it has 3 elements, the input 6", "average", a, "--second", of_columns)


class Standard(CliTest):
    """- is standard input for what lies beside an array, where the array is a file."""

    def test_beside(self):
        line = self.write("line.npy", npy(struct.pack("<4i", 1, 2, 4, 8), "<i4", (4,)))
        mask, same = npy(bytes([1, 0, 1, 1]), "|b1", (4,)), npy(struct.pack("<4i", 1, 2, 4, 8), "<i4", (4,))
        cases = {("sum", "--where", "-"): (mask, "13"), ("sum", "--where", "bits:-"): (bytes([13]), "13"), ("dot", "--second", "-"): (same, "85"),
                 ("sum", "--offsets", "-"): (npy(struct.pack("<3i", 0, 1, 4), "<i4", (3,)), "1 14"), ("sum", "--keys", "-"): (npy(bytes([1, 0, 1, 1]), "|u1", (4,)), "2 13")}
        for (op, *option), (given, want) in cases.items():
            self.assertEqual(want.split(), self.client(op, line, *option, data=given).out.split(), option)
            self.fails(64, "standard input is read once, and - stands for it 2 times: give files for the others", op, "-", *option)
        self.fails(64, "stands for it 2 times", "dot", line, "--second", "-", "--where", "bytes:-")


class Words(CliTest):
    """What is wrong is said in the command line's words."""

    def test_sentences(self):
        large = self.write("large.npy", npy(struct.pack("<4q", *[2**62] * 4), "<i8", (2, 2)))
        keys = self.write("keys.npy", npy(bytes([0, 3]), "|u1", (2,)))
        self.fails(65, "not one of 0 to 1; --drop leaves such elements out", "sum", large, "--keys", keys, "--groups", "2")
        one = self.write("one.npy", npy(bytes([1, 1]), "|u1", (2,)))
        for more in (("--axis", "1"), ("--keys", one)):
            self.fails(65, "does not fit i64; ", "sum", large, *more)
            self.assertIn("have no value; --result-dtype f64 rounds it\n" if more[0] == "--axis" else "--result-dtype f64 rounds it\n", self.client("sum", large, *more, code=65).err)
            self.assertIn("9.223372036854776e+18", self.client("sum", large, *more, "--result-dtype", "f64").out)

    def test_names_of_other_programs(self):
        for word, meant in (("minmax", "reduce FILE --ops min,max"), ("nansum", "sum FILE --nan skip"), ("nanmax", "max FILE --nan skip"), ("bincount", "count FILE --keys FILE"),
                            ("percentile", "quantile FILE --q 0.95"), ("nanpercentile", "quantile FILE --q 0.95 --nan skip"), ("histogram", "count FILE --keys FILE, with")):
            self.fails(64, "unknown command '%s' (did you mean %s" % (word, meant), word, self.npy)


if __name__ == "__main__":
    main()
