#!/usr/bin/env python3
"""cured-client --output table: what is printed, letter for letter: of one array, of several files with and without errors among them, along
axes, by key, of checkpoints; in pipes, and on terminals that are wide and narrow. And what ends 64."""
import fcntl
import os
import pty
import struct
import subprocess
import termios

from cli_daemon import CLIENT, ENVIRONMENT, HANG_S, CliTest, main, npy

DESCRIBED = """\
op                     value
count                     24
count_nan                  0
min                        0
max                       23
argmin                     0
argmax                    23
sum                      276
mean                    11.5
std        6.922186552431729
"""
SEVERAL = """\
file        sum  mean
a.npy       276  11.5
none.npy      -     -
empty.npy     0   nan
b.npy      -1.5  -0.5
"""
TOTAL = """\
file   min  sum
a.npy    0  276
a.npy    0  276
total    0  552
"""
AXES = """\
i0  mean  argmax
 0   7.5       7
 1  11.5       7
 2  15.5       7
"""
GROUPS = """\
group  i1  i2  sum
    0   0   0    0
    0   0   1    1
    0   0   2    2
    0   0   3    3
    0   1   0    4
    0   1   1    5
    0   1   2    6
    0   1   3    7
    0   2   0    8
    0   2   1    9
    0   2   2   10
    0   2   3   11
    1   0   0   12
    1   0   1   13
    1   0   2   14
    1   0   3   15
    1   1   0   16
    1   1   1   17
    1   1   2   18
    1   1   3   19
    1   2   0   20
    1   2   1   21
    1   2   2   22
    1   2   3   23
"""
SEGMENTS = """\
segment  min  max
      0    0    1
      1    -    -
      2    2    4
"""
BLOCKS = """\
file  a.npy
sum    276
mean  11.5

file  none.npy
sum      -
mean     -

file  b.npy
sum   -1.5
mean  -0.5
"""


class Table(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.a = cls.write("a.npy", npy(struct.pack("<24f", *range(24)), "<f4", (2, 3, 4)))
        cls.b = cls.write("b.npy", npy(struct.pack("<3f", -1, -0.5, 0), "<f4", (3,)))
        cls.five = cls.write("five.npy", npy(struct.pack("<5i", *range(5)), "<i4", (5,)))
        cls.empty = cls.write("empty.npy", npy(b"", "<f4", (0,)))
        cls.none = os.path.join(cls.dir, "none.npy")

    def table(self, *arguments, **more):
        return self.client(*arguments, "--output", "table", **more)

    def here(self, *arguments, code=0, connect=None):
        """Where the files lie, so that their names are short."""
        run = subprocess.run([CLIENT, *arguments, "--output", "table", "--connect", connect or self.unix], env=ENVIRONMENT, cwd=self.dir,
                             capture_output=True, timeout=HANG_S, check=False)
        self.assertEqual(code, run.returncode, run)
        return run.stdout.decode(), run.stderr.decode()

    def on_terminal(self, columns, *arguments, folder=None):
        """The exit status and all that a terminal of so many columns shows: answers and errors."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
        run = subprocess.Popen([CLIENT, *arguments, "--connect", self.unix], env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=theirs,
                               stderr=theirs, cwd=folder)
        os.close(theirs)
        text = b""
        try:
            while more := os.read(ours, 65536):
                text += more
        except OSError:  # how a pty ends
            pass
        os.close(ours)
        return run.wait(HANG_S), text.decode().replace("\r\n", "\n")

    def test_one_array(self):
        for tcp in (False, True):
            self.assertEqual(DESCRIBED, self.table("describe", self.a, tcp=tcp).out)
        self.assertEqual("op   value\nsum    276\n", self.table("sum", self.a).out)
        self.assertEqual(DESCRIBED, self.run_static("describe", self.a, "--output", "table", "--connect", "embedded:").out)
        lacking = self.table("reduce", self.empty, "--ops", "min,sum", code=65)
        self.assertEqual(("op   value\nmin      -\nsum      0\n", "cured-client: min: min of no elements has no value\n"),
                         (lacking.out, lacking.err))
        self.assertEqual("op            value\nquantile_0        0\nquantile_0.5   11.5\n",
                         self.run_static("quantile", self.a, "--q", "0,0.5", "--output", "table", "--connect", "embedded:").out)
        self.assertEqual(self.client("sum", self.a, "--json").out.partition("timing")[0],
                         self.client("sum", self.a, "--output", "json").out.partition("timing")[0])

    def test_several_files(self):
        self.assertEqual((SEVERAL, "cured-client: cannot open none.npy: No such file or directory\n"),
                         self.here("reduce", "a.npy", "none.npy", "empty.npy", "b.npy", "--ops", "sum,mean", code=66))
        self.assertEqual((TOTAL, ""), self.here("reduce", "a.npy", "a.npy", "--total", "--ops", "min,sum"))
        self.assertEqual(("file   median\na.npy    11.5\na.npy    11.5\ntotal    11.5\n", ""),
                         self.here("median", "a.npy", "a.npy", "--total", connect="embedded:"))
        got = self.here("sum", "a.npy", "five.npy", "--total", code=65)
        self.assertEqual("file      sum\na.npy     276\nfive.npy   10\n", got[0])
        names = ["\u00e4\u00e4.npy", "\u6570\u6570.npy", "e\u0301.npy", "x\x1b[2J.npy"]  # as wide as they look
        for name in names:
            self.write(name, npy(struct.pack("<f", 1), "<f4", (1,)))
        self.assertEqual(["file          sum", "\u00e4\u00e4.npy          1", "\u6570\u6570.npy        1", "e\u0301.npy           1",
                          "x\\x1b[2J.npy    1"], self.here("sum", *names)[0].splitlines())

    def test_several_texts(self):
        """Columns of numbers that are written out: integers and reals, with and without a total, and errors among them."""
        for name, text in (("i.txt", b"n\n3\n4\n"), ("r.txt", b"n\n0.5\n-2\n"), ("bad.txt", b"n\n1\nx\n"), ("none.txt", b"n\n")):
            self.write(name, text)
        asked = ("reduce", "--text", "--header", "--ops", "sum,min")

        def table(*arguments, **more):
            """The rows, which are as wide as each other, and the errors."""
            out, err = self.here(*asked, *arguments, **more)
            self.assertEqual(1, len({len(line) for line in out.splitlines()}), out)
            return [line.split() for line in out.splitlines()][1:], err
        i, r = ["i.txt", "7", "3"], ["r.txt", "-1.5", "-2"]
        for place in (None, self.tcp, "embedded:"):
            self.assertEqual(([i, r, ["none.txt", "0", "-"]], "cured-client: none.txt: min: min of no elements has no value\n"),
                             table("i.txt", "r.txt", "none.txt", code=65, connect=place))
            self.assertEqual(([i, i, ["total", "14", "3"]], ""), table("i.txt", "i.txt", "--total", connect=place))
            rows, err = table("i.txt", "bad.txt", "r.txt", code=65, connect=place)
            self.assertEqual([i, ["bad.txt", "-", "-"], r], rows)
            self.assertIn("cured-client: bad.txt: line 3: 'x' is no number", err)
            rows, err = table("i.txt", "r.txt", "--total", code=65, connect=place)
            self.assertEqual([i, r], rows)
            self.assertIn("r.txt holds f64, the files before it i64", err)
            self.assertEqual(([i, r, ["total", "5.5", "-2"]], ""), table("i.txt", "r.txt", "--total", "--dtype", "f64", connect=place))
        code, text = self.on_terminal(12, *asked, "i.txt", "r.txt", "--output", "table", folder=self.dir)
        self.assertEqual((0, "file  i.txt\nsum      7\nmin      3\n\nfile  r.txt\nsum   -1.5\nmin     -2\n"), (code, text))

    def test_axes_keys_and_segments(self):
        self.assertEqual(AXES, self.table("reduce", self.a, "--ops", "mean,argmax", "--axis", "0,2").out)
        self.assertEqual("sum\n276\n", self.table("sum", self.a, "--axis", "0,1,2").out)
        keys = self.write("keys.npy", npy(struct.pack("<2q", 0, 1), "<i8", (2,)))
        self.assertEqual(GROUPS, self.table("sum", self.a, "--keys", keys).out)
        offsets = self.write("offsets.npy", npy(struct.pack("<4i", 0, 2, 2, 5), "<i4", (4,)))
        self.assertEqual(SEGMENTS, self.here("reduce", "five.npy", "--ops", "min,max", "--offsets", offsets, code=65)[0])
        part = os.path.join(self.dir, "keyed.crp")
        self.assertEqual(0, self.run_static("sum", self.a, "--keys", keys, "--partial", "--output", part, "--connect", "embedded:").code)
        rows = [[line.split()[0], line.split()[-1]] for line in GROUPS.splitlines()]
        self.assertEqual(rows, [line.split()[::2] for line in self.table("merge", part, "--ops", "sum").out.splitlines()])

    def test_terminals(self):
        """A row a line where it fits, else a block; errors are lines of their own."""
        code, text = self.on_terminal(100, "describe", "a.npy", "none.npy", "b.npy", "--output", "table", folder=self.dir)
        lines = text.splitlines()
        self.assertEqual((66, 5), (code, len(lines)), text)
        self.assertEqual("cured-client: cannot open none.npy: No such file or directory", lines[0])
        self.assertEqual(4, len({len(line) for line in lines[1:]} | {0, 1, 2}), text)
        asked = ("reduce", "a.npy", "none.npy", "b.npy", "--ops", "sum,mean", "--output", "table")
        code, text = self.on_terminal(19, *asked, folder=self.dir)
        self.assertEqual("cured-client: cannot open none.npy: No such file or directory\n" + BLOCKS, text)
        code, text = self.on_terminal(20, *asked, folder=self.dir)
        self.assertEqual("file       sum  mean", text.splitlines()[1])
        code, text = self.on_terminal(5, "sum", "a.npy", "--output", "table", folder=self.dir)
        self.assertEqual("op     sum\nvalue  276\n", text)
        code, text = self.on_terminal(80, "sum", "empty.npy", "a.npy", folder=self.dir)  # not a table
        self.assertEqual("0 empty.npy\n276 a.npy\n", text)

    def test_errors_tear_no_row(self):
        code, text = self.on_terminal(200, "describe", "empty.npy", "a.npy", folder=self.dir)
        lines = text.splitlines()
        self.assertEqual(65, code)
        self.assertEqual("0 0 - - - - 0 nan nan empty.npy", lines[1])
        self.assertEqual(["cured-client: empty.npy: %s: %s of no elements has no value" % (op, op) for op in ("min", "max", "argmin", "argmax")],
                         lines[2:6])
        self.assertTrue(lines[6].endswith(" a.npy"))

    def test_weights(self):
        plain = self.run_static("weights", self.a, "--connect", "embedded:").out
        self.assertEqual(plain, self.run_static("weights", self.a, "--output", "table", "--connect", "embedded:").out)
        code, text = self.on_terminal(60, "weights", "a.npy", "--output", "table", folder=self.dir)
        self.assertEqual(0, code, text)
        self.assertEqual(["# name", "type", "shape", "count_nan", "count_inf", "zeros", "min", "max", "mean", "std", "norm2", "digest"],
                         [line[:9].strip() for line in text.splitlines()[:12]])
        self.assertIn("norm2        65.7571\n", text)
        self.assertIn("total: tensors 1, ", text)
        self.fails(64, "--output table is of one checkpoint", "weights", self.a, self.b, "--output", "table")
        self.fails(64, "weights takes none of", "weights", self.a, "--output", "file")

    def test_what_ends_64(self):
        for more in (("--json",), ("--partial",)):
            self.fails(64, "--output table goes with neither", "sum", self.a, "--output", "table", *more)
        self.fails(64, "has no table", "token", "x", "--output", "table")
        self.fails(64, "ping takes no --output", "ping", "--output", "table")
        keys = self.write("keys.npy", npy(struct.pack("<2q", 0, 1), "<i8", (2,)))
        for option, *arguments in (("--ddof", "sum", self.a, "--ddof", "0"), ("--overflow", "sum", self.a, "--overflow", "error"),
                                   ("--overflow", "describe", self.a, "--overflow", "wrap"), ("--q", "describe", self.a, "--q", "0.5"),
                                   ("--second", "describe", self.a, "--second", self.a), ("--second", "sum", self.a, "--second", self.a),
                                   ("--second", "dot", self.a), ("--nan", "digest", self.a, "--nan", "skip"),
                                   ("--where", "digest", self.a, "--where", self.a), ("--first", "digest", self.a, "--first", "3"),
                                   ("--result-dtype", "argmin", self.a, "--result-dtype", "f64"),
                                   ("--partial", "median", self.a, "--partial"), ("--keys", "digest", self.a, "--keys", keys)):
            self.fails(64, option, *arguments)

    def test_errors_name_the_file(self):
        huge = self.write("huge.npy", npy(struct.pack("<3Q", *[1 << 63] * 3), "<u8", (3,)))
        err = self.here("prod", huge, huge, "--total", code=65)[1]
        self.assertEqual(2, err.count("cured-client: %s: prod: " % huge))
        self.assertIn("cured-client: total: prod: ", err)
        parts = []
        for name, file, more in (("a", self.a, ()), ("b", self.five, ()), ("ka", self.a, ("--keys", self.write("k2.npy", npy(struct.pack("<2q", 0, 1), "<i8", (2,))))),
                                 ("kb", self.five, ("--keys", self.five))):
            parts.append(os.path.join(self.dir, name + ".crp"))
            self.assertEqual(0, self.run_static("sum", file, *more, "--partial", "--output", parts[-1], "--connect", "embedded:").code)
        a, b, ka, kb = parts
        for where, files, more in ((b, (a, b), ()), (b, (a, b), ("--local",)), (self.a, (a, self.a), ()), (kb, (ka, kb), ()), (a, (ka, a), ())):
            got = self.client("merge", *files, "--ops", "sum", *more, code=65)
            self.assertIn("cured-client: %s: partial: " % where, got.err)
        for file, more in ((a, ()), (a, ("--local",)), (ka, ())):
            self.assertIn("cured-client: %s: partial: it was not made for max" % file, self.client("merge", file, "--ops", "max", *more, code=65).err)


if __name__ == "__main__":
    main()
