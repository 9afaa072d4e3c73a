#!/usr/bin/env python3
"""cured-client with several files: a line for each, and --total for the array that they are together. The total has the bits of
the whole, whatever lies in which file."""
import fractions
import json
import os
import struct
import zipfile

from cli_daemon import ENVIRONMENT, CliTest, main, npy


class Many(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        v = cls.values
        cls.parts = [v[:7], v[7:20000], [], v[20000:]]
        cls.names = [cls.write("part %d.bin" % i, struct.pack("<%df" % len(p), *p)) for i, p in enumerate(cls.parts)]
        cls.names[1] = cls.write("b.npy", npy(struct.pack("<%df" % len(cls.parts[1]), *cls.parts[1]), "<f4", (len(cls.parts[1]),)))

    @staticmethod
    def read(path):
        with open(path, "rb") as f:
            return f.read()

    def exact(self, values):
        return float(sum(map(fractions.Fraction, values)))

    def test_a_line_for_each(self):
        lines = self.client("sum", *self.names).out.splitlines()
        self.assertEqual(["%s %s" % (("%r" % self.exact(p)) if p else "0", n) for p, n in zip(self.parts, self.names)], lines)
        out = self.client("reduce", self.names[0], self.names[3], "--ops", "count,max").out.splitlines()
        self.assertEqual(["# count max", "7 %.8g %s" % (max(self.parts[0]), self.names[0])], out[:2])
        out = self.client("describe", *self.names[:2]).out.splitlines()
        self.assertEqual(3, len(out))
        self.assertEqual("# count count_nan min max argmin argmax sum mean std", out[0])
        self.assertEqual(self.client("sum", *self.names).out, self.client("sum", *self.names, tcp=True).out)

    def test_the_total_is_that_of_the_whole(self):
        for ops in ("sum", "mean,std,min,max", "argmin,argmax,count_nonzero,norm2,any"):
            whole = self.client("reduce", self.raw, "--ops", ops).out.split()[1::2]
            full = [self.names[i] for i in (0, 1, 3)]
            for tcp in (False, True):
                lines = self.client("reduce", *full, "--ops", ops, "--total", tcp=tcp).out.splitlines()
                self.assertEqual(["#", *ops.split(",")], lines[0].split())
                self.assertEqual([*whole, "total"], lines[-1].split())
                self.assertEqual(5, len(lines))
        one = self.client("sum", self.raw, "--total").out.splitlines()
        self.assertEqual(["%r %s" % (self.exact(self.values), self.raw), "%r total" % self.exact(self.values)], one)
        # indices count through all files, with --total for each of them too
        lines = self.client("argmax", self.names[0], self.names[3], "--total").out.splitlines()
        last = self.parts[3].index(max(self.parts[3])) + 7
        self.assertEqual("%d %s" % (last, self.names[3]), lines[1])
        # options of the answer count for the total too
        lines = self.client("reduce", *self.names, "--ops", "var", "--ddof", "1", "--result-dtype", "f32", "--total").out.splitlines()
        self.assertEqual(self.client("var", self.raw, "--ddof", "1", "--result-dtype", "f32").out.strip(), lines[-1].split()[0])

    def test_digests(self):
        """A digest's line is that of its file, its total that of all files as one array, whatever stands beside it."""
        own = [self.client("digest", n, "--dtype", "f32").out.strip() for n in self.names]
        whole = self.client("digest", self.raw).out.strip()
        odd = [self.write("odd%d" % k, bytes(range(k, k + n))) for k, n in enumerate((5, 3, 0, 6))]
        together = self.write("odd", b"".join(map(self.read, odd)))
        for tcp in (False, True):
            self.assertEqual(["%s %s" % pair for pair in zip(own + [whole], self.names + ["total"])],
                             self.client("digest", *self.names, "--total", tcp=tcp).out.splitlines())
            lines = self.client("digest", *odd, "--total", "--dtype", "u8", tcp=tcp).out.splitlines()
            self.assertEqual([self.client("digest", n, "--dtype", "u8").out.strip() for n in (*odd, together)], [line.split()[0] for line in lines])
            full = [self.names[i] for i in (0, 1, 3)]
            for ops in ("sum,digest,argmax", "digest,argmax", "argmax,digest"):
                at = ops.split(",").index("digest")
                lines = self.client("reduce", *full, "--ops", ops, "--total", tcp=tcp).out.splitlines()
                self.assertEqual([own[0], own[1], own[3], whole], [line.split()[at] for line in lines[1:]])
                others = self.client("reduce", *full, "--ops", ops.replace("digest,", "").replace(",digest", ""), "--total", tcp=tcp).out.splitlines()
                self.assertEqual([line.split() for line in others[1:]], [[w for k, w in enumerate(line.split()) if k != at] for line in lines[1:]])
            rows = [json.loads(line) for line in self.client("digest", *full, "--total", "--json", tcp=tcp).out.splitlines()]
            self.assertEqual([own[0], own[1], own[3], whole], [row["results"]["digest"]["value"] for row in rows])
        # what cannot be read twice
        pipe = os.path.join(self.dir, "pipe")
        os.mkfifo(pipe)
        for name in (pipe, "-"):
            says = "%s is read twice for a digest with --total, and can be read once: give it first" % ("standard input" if name == "-" else pipe)
            self.fails(64, says, "digest", self.names[0], name, "--total", "--dtype", "f32", data=b"")
        lines = self.client("digest", "-", self.names[3], "--total", "--dtype", "f32", data=self.read(self.names[0])).out.splitlines()
        self.assertEqual([own[0], own[3]], [line.split()[0] for line in lines[:2]])

    def test_names_that_stand_for_several(self):
        folder = os.path.join(self.dir, "folder")
        os.makedirs(os.path.join(folder, "inner"))
        def put(name, values):
            self.write(os.path.join("folder", name), npy(struct.pack("<%dd" % len(values), *values), "<f8", (len(values),)))
        put("b.npy", [1, 2])
        put("a.npy", [4])
        put(".hidden.npy", [100])
        put("inner/c.npy", [100])
        put("what[1].npy", [8])
        put("what1.npy", [16])
        with zipfile.ZipFile(os.path.join(folder, "z.npz"), "w", zipfile.ZIP_DEFLATED) as z:
            for name, value in (("x.npy", 32), ("y/1.npy", 64), ("readme", 0), ("xx.npy", 128)):
                z.writestr(name, npy(struct.pack("<d", value), "<f8", (1,)))
        in_z = ["32 z.npz:x", "64 z.npz:y/1", "128 z.npz:xx"]
        plain = ["4 a.npy", "3 b.npy", "16 what1.npy", "8 what[1].npy"]
        for name, wanted in (("", sorted(plain, key=lambda x: x.split()[1]) + in_z), ("/*.npy", plain), ("/[ab].npy", plain[:2]), ("/z.npz:*", in_z),
                             ("/z.npz:x*", [in_z[0], in_z[2]]), ("/*.npz:y*", None), ("/what[1].npy", None), ("/?.npz:x", None)):
            lines = self.client("sum", folder + name).out.splitlines()
            self.assertEqual(wanted or [{"/*.npz:y*": "64", "/what[1].npy": "8", "/?.npz:x": "32"}[name]],
                             [x.replace(folder + "/", "") for x in lines], name)
        lines = self.client("sum", folder + "/", folder + "/b.npy", "--total").out.splitlines()
        self.assertEqual(["3 %s/b.npy" % folder, "258 total"], lines[-2:])
        self.assertEqual(lines[:-2], self.client("sum", folder).out.splitlines())
        for name, says in (("/*.none", "no file matches"), ("/z.npz:q*", "has no array that matches 'q*'"), ("/none.npz:*", "No such file"),
                           ("/inner/none", "No such file"), ("/b.npy:*", "no file matches")):
            self.fails(66, says, "sum", folder + name)
        others = os.path.join(folder, "inner", "others")
        os.makedirs(others)
        self.fails(66, "has no files", "sum", others, "--dtype", "f64")
        self.write("folder/inner/others/a.bin", struct.pack("<2d", 1, 2))
        self.write("folder/inner/others/b", struct.pack("<2d", 3, 4))
        self.fails(66, "has no .npy and no .npz files", "sum", others)
        self.assertEqual("10 total", self.client("sum", others, "--dtype", "f64", "--total").out.splitlines()[-1])
        self.fails(65, "bad.npz: ", "sum", self.write("bad.npz", b"no archive") + ":*")
        self.fails(64, "one file at a time", "sum", folder, "--axis", "0")
        parts = [os.path.join(folder, "inner", "%d.crp" % i) for i in range(2)]
        for part, name, first in zip(parts, ("a.npy", "b.npy"), "01"):
            self.client("sum", os.path.join(folder, name), "--partial", "--first", first, "--output", part)
        self.assertEqual("sum 7\n", self.client("merge", os.path.join(folder, "inner", "*.crp"), "--ops", "sum").out)

    def test_json(self):
        lines = [json.loads(x) for x in self.client("sum", *self.names, "--total", "--json").out.splitlines()]
        self.assertEqual(self.names, [x["file"] for x in lines[:-1]])
        self.assertEqual((4, 30000, "f32"), (lines[-1]["files"], lines[-1]["count"], lines[-1]["dtype"]))
        self.assertEqual(self.exact(self.values), lines[-1]["results"]["sum"]["value"])

    def test_what_goes_wrong_leaves_the_others(self):
        missing = os.path.join(self.dir, "none")
        for more in ((), ("--total",)):
            result = self.run_static("sum", self.names[0], missing, self.names[3], *more, "--connect", self.unix)
            self.assertEqual(66, result.code, result)
            self.assertEqual([self.names[0], self.names[3]], [x.split(" ", 1)[1] for x in result.out.splitlines()])
            self.assertIn("none: No such file", result.err)
            self.assertEqual(bool(more), "no total: 1 of 3" in result.err)
        # no minimum of nothing: that line says so, and the total has one all the same
        result = self.run_static("min", *self.names, "--total", "--connect", self.unix)
        self.assertEqual(65, result.code, result)
        lines = result.out.splitlines()
        self.assertEqual("- " + self.names[2], lines[2])
        self.assertEqual("%.6g total" % min(self.values), "%.6g total" % float(lines[4].split()[0]))
        self.assertIn(self.names[2] + ": min: ", result.err)
        whole = self.write("whole.npy", npy(struct.pack("<2i", 1, 2), "<i4", (2,)))
        result = self.run_static("sum", self.names[0], whole, "--total", "--connect", self.unix)
        self.assertEqual(65, result.code, result)
        self.assertIn("whole.npy", result.err)
        self.assertNotIn("total\n", result.out)

    def ranked(self, *arguments):
        return self.run_static(*arguments, "--connect", "embedded:")

    def test_medians_of_all_files(self):
        """Found by reads of all files, they have the bits of the whole, whatever lies in which file and how."""
        turned = self.write("turned.npy", npy(struct.pack(">%df" % len(self.parts[1]), *self.parts[1]), ">f4", (len(self.parts[1]),)))
        for asked in (("median",), ("reduce", "--ops", "median,quantile", "--q", "0,0.1,0.77,1"), ("quantile", "--q", "0.3", "--method", "nearest"),
                      ("median", "--result-dtype", "f16", "--nan", "skip")):
            whole = self.ranked(asked[0], self.raw, *asked[1:])
            for names in (self.names, self.names[::-1], [self.names[3], turned, self.names[0]]):
                result = self.ranked(asked[0], *names, *asked[1:], "--total")
                self.assertEqual(0, result.code, result)
                self.assertEqual([x.split()[-1] for x in whole.out.splitlines()] + ["total"], result.out.splitlines()[-1].split())
                self.assertEqual(len(names) + 1 + (asked[0] == "reduce"), len(result.out.splitlines()))
        last = json.loads(self.ranked("median", *self.names, "--total", "--json").out.splitlines()[-1])
        self.assertEqual((4, 30000, "f32"), (last["files"], last["count"], last["dtype"]))

    def test_medians_that_are_refused(self):
        other = self.write("other.npy", npy(struct.pack("<2i", 1, 2), "<i4", (2,)))
        missing = os.path.join(self.dir, "none")
        for code, words, arguments in ((64, "several reads, sum by one", ("reduce", *self.names, "--ops", "median,sum")),
                                       (64, "standard input is read once", ("median", "-", self.names[0])),
                                       (65, "holds i32, the files before it f32", ("median", self.names[0], other)),
                                       (66, "none: No such file", ("median", missing, self.names[0]))):
            result = self.ranked(*arguments, "--total")
            self.assertEqual(code, result.code, result)
            self.assertIn(words, result.err)
            self.assertNotIn("total\n", result.out)
        self.assertIn("no total", result.err)
        self.assertIn(self.names[0], result.out)  # the line of the file that is there

    def test_medians_that_a_daemon_does_not_find(self):
        """It counts for no search; the files are not read first to say so in the end."""
        for address in (self.unix, self.tcp):
            for more in ((), ("--output", "table")):
                result = self.run_static("median", *self.names, "--total", *more, "--connect", address)
                self.assertEqual(64, result.code, result)
                self.assertIn("--total: median of several files is found in this process: give --connect embedded:", result.err)
                self.assertEqual("", result.out)
        result = self.run_static("median", *self.names, "--total", env=dict(ENVIRONMENT, CURED_CONNECT=self.unix))
        self.assertEqual(64, result.code, result)

    def test_nobody_there(self):
        result = self.run_static("sum", *self.names, "--connect", "unix:/nowhere/s")
        self.assertEqual(69, result.code)
        self.assertEqual(1, result.err.count("\n"), result)


if __name__ == "__main__":
    main()
