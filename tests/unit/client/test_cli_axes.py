#!/usr/bin/env python3
"""cured-client along several axes: by a daemon, passed and sent, and in this process; from files of every kind; as text, JSON, a table and
.npy; with masks and second arrays. The answers are those of a loop over the indices."""
import io
import itertools
import json
import struct
import zipfile

from cli_daemon import CliTest, main, npy

SHAPE = (2, 3, 4)
AXES = {"0": (0,), "0,1": (0, 1), "1,2": (1, 2), "0,2": (0, 2), "2, 0": (0, 2), "-3,-1": (0, 2), "2,1": (1, 2), "0,1,2": (0, 1, 2)}
OPS = ("sum", "argmax", "max", "count_nonzero")


def indices(shape):
    return list(itertools.product(*map(range, shape)))


def nested(flat, shape):
    """What JSON would be, flat: values in C order."""
    return [flat[i] for i in indices(shape)]


class Axes(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.of = {i: (7 * k * k + 3 * k) % 23 - 11 for k, i in enumerate(indices(SHAPE))}
        c_order = [cls.of[i] for i in indices(SHAPE)]
        fortran = [cls.of[tuple(reversed(i))] for i in indices(SHAPE[::-1])]
        raw, turned = struct.pack("<24i", *c_order), struct.pack("<24i", *fortran)
        cls.bytes = {"c": npy(raw, "<i4", SHAPE), "f": npy(turned, "<i4", SHAPE, True),
                     "big": npy(struct.pack(">24i", *c_order), ">i4", SHAPE),
                     "bigf": npy(struct.pack(">24i", *fortran), ">i4", SHAPE, True), "raw": raw}
        shape = ("--dtype", "i32", "--shape", "2,3,4")
        cls.inputs = {name: ((cls.write(name + ".npy", data),), None) for name, data in cls.bytes.items() if name != "raw"}
        cls.inputs["raw"] = ((cls.write("raw24.bin", raw), *shape), None)
        cls.inputs["pipe"] = (("-", *shape), raw)
        cls.inputs["npy pipe"] = (("-",), cls.bytes["f"])
        for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
            file = io.BytesIO()
            with zipfile.ZipFile(file, "w", method) as archive:
                archive.writestr("x.npy", cls.bytes["c"])
            cls.inputs[name] = ((cls.write(name + ".npz", file.getvalue()) + ":x",), None)
        cls.doors = {"passed": ("--connect", cls.unix), "sent": ("--connect", cls.unix, "--via", "stream"),
                     "tcp": ("--connect", cls.tcp), "embedded": ("--connect", "embedded:")}

    @classmethod
    def answers(cls, axes, keep=None, keepdims=False):
        """Of each op its flat answers in C order, and their shape. keep: the indices that count."""
        shape = [1 if d in axes else n for d, n in enumerate(SHAPE)]
        sums = {i: [] for i in indices(shape)}
        for i in indices(SHAPE):
            if keep is None or i in keep:
                sums[tuple(0 if d in axes else k for d, k in enumerate(i))].append((i, cls.of[i]))
        flat = []
        for of in sums.values():
            values = [v for _, v in of]
            place = 0
            for k, i in enumerate(itertools.product(*(range(SHAPE[d]) for d in sorted(axes)))):
                if of and i == tuple(of[values.index(max(values))][0][d] for d in sorted(axes)):
                    place = k
            flat.append((sum(values), place, max(values, default=None), sum(v != 0 for v in values)))
        kept = [n for d, n in enumerate(shape) if keepdims or d not in axes]
        return dict(zip(OPS, map(list, zip(*flat)))), kept

    def run_one(self, door, source, *arguments, code=0):
        files, data = self.inputs[source]
        result = self.run_static(*arguments[:1], *files, *arguments[1:], *self.doors[door], data=data)
        self.assertEqual(code, result.code, (door, source, arguments, result))
        return result

    def test_every_door_and_file(self):
        for i, (text, axes) in enumerate([one for one in AXES.items() if one[0] not in ("0", "2,1")]):
            wanted, shape = self.answers(axes)
            for (j, door), (k, source) in itertools.product(enumerate(self.doors), enumerate(self.inputs)):
                if (i + j + k) % 4:  # each pair of axes, door and file comes, not each three of them
                    continue
                got = json.loads(self.run_one(door, source, "reduce", "--ops", ",".join(OPS), "--axis", text, "--output", "json").out)
                where = (text, door, source)
                self.assertEqual(24, got["count"], where)
                for op in OPS:
                    self.assertEqual((shape, wanted[op]), (got["results"][op]["shape"], got["results"][op]["values"]), (op, where))

    def test_every_output(self):
        for i, (text, axes) in enumerate(AXES.items()):
            source, keep = ("c", "f", "deflated")[i % 3], i % 2 == 0 and text != "0,1,2"
            wanted, shape = self.answers(axes, keepdims=keep)
            more = ("--axis", text, *(("--keepdims",) if keep else ()))
            got = self.run_one("passed", source, "sum", *more).out
            self.assertEqual(wanted["sum"], [int(word) for word in got.split()])
            rows = 1
            for n in shape[:-1]:
                rows *= n
            self.assertEqual(rows, got.count("\n"))
            table = self.run_one("passed", source, "reduce", "--ops", "sum,argmax", *more, "--output", "table").out.splitlines()
            self.assertEqual(["i%d" % d for d in range(len(shape))] + ["sum", "argmax"], table[0].split())
            self.assertEqual([[*i, s, a] for i, s, a in zip(indices(shape), wanted["sum"], wanted["argmax"])],
                             [[int(word) for word in line.split()] for line in table[1:]])
            self.assertEqual(1, len({len(line) for line in table}))
            path = self.dir + "/sum.npy"
            self.run_one("passed", source, "sum", *more, "--output", path)
            got = self.client("reduce", path, "--ops", "sum,count").out
            self.assertEqual("sum %d\ncount %d\n" % (sum(wanted["sum"]), len(wanted["sum"])), got)
            if shape:  # the .npy file has the shape: along its last axis there are as many answers as rows
                along = self.client("sum", path, "--axis", "0").out.split()
                self.assertEqual(len(wanted["sum"]) // shape[0], len(along))

    def test_masks(self):
        keep = {i for k, i in enumerate(indices(SHAPE)) if k % 5 != 1}
        marks = bytes(i in keep for i in indices(SHAPE))
        mask = self.write("mask.npy", npy(marks, "|b1", SHAPE))
        masks = (mask, "bytes:" + self.write("mask.bin", marks))
        for (i, (text, axes)), (j, door) in itertools.product(enumerate(AXES.items()), enumerate(self.doors)):
            if (i + j) % 2:
                continue
            where = masks[i // 2 % 2]
            wanted, _ = self.answers(axes, keep)
            got = json.loads(self.run_one(door, "c", "reduce", "--ops", "sum,argmax", "--axis", text, "--where", where, "--json").out)
            for op in ("sum", "argmax"):
                self.assertEqual(wanted[op], got["results"][op]["values"], (op, text, door, where))
        for door in self.doors:  # as along one axis
            self.assertIn("Fortran order", self.run_one(door, "f", "sum", "--axis", "0,2", "--where", mask, code=65).err)

    def test_pairs_and_medians(self):
        """In this process alone."""
        for i, (text, axes) in enumerate(AXES.items()):
            source = ("c", "big", "stored")[i % 3]
            shape = [1 if d in axes else n for d, n in enumerate(SHAPE)]
            products = {i: 0 for i in indices(shape)}
            for i in indices(SHAPE):
                products[tuple(0 if d in axes else k for d, k in enumerate(i))] += self.of[i] ** 2
            second = self.inputs["c"][0][0]
            got = self.run_one("embedded", source, "dot", "--axis", text, "--second", second).out
            self.assertEqual(list(products.values()), [int(word) for word in got.split()], (text, source))
        got = self.run_one("embedded", "f", "median", "--axis", "0,2").out.split()
        groups = [sorted(self.of[i] for i in indices(SHAPE) if i[1] == k) for k in range(3)]
        self.assertEqual([(g[3] + g[4]) / 2 for g in groups], [float(word) for word in got])

    def test_products_of_floats_are_those_of_a_copy(self):
        """Their bits depend on the order, which is C order whatever the order in the file."""
        values = [1 + k / 7 for k in range(24)]
        of = dict(zip(indices(SHAPE), values))
        c = self.write("pc.npy", npy(struct.pack("<24d", *values), "<f8", SHAPE))
        f = self.write("pf.npy", npy(struct.pack("<24d", *[of[tuple(reversed(i))] for i in indices(SHAPE[::-1])]), "<f8", SHAPE, True))
        for text, axes in list(AXES.items())[1:6:2] + [("0,1,2", (0, 1, 2)), ("1,2", (1, 2))]:
            rows = [i for i in itertools.product(*(range(n) for d, n in enumerate(SHAPE) if d not in axes))]
            copies = []
            for row in rows:
                kept = iter(row)
                place = [None if d in axes else next(kept) for d in range(3)]
                copies += [of[i] for i in indices(SHAPE) if all(p in (None, k) for p, k in zip(place, i))]
            flat = self.write("copy.bin", struct.pack("<24d", *copies))
            wanted = self.client("prod", flat, "--dtype", "f64", "--shape", "%d,%d" % (len(rows), 24 // len(rows)), "--axis", "1").out.split()
            for file, door in ((c, "passed"), (f, "embedded")):
                got = self.run_static("prod", file, "--axis", text, *self.doors[door]).out.split()
                self.assertEqual(wanted, got, (text, file, door))

    def test_lengths_of_one_and_none(self):
        """What lies side by side but for dimensions of one element, and arrays without elements."""
        one = self.write("one.npy", npy(struct.pack("<6i", *range(6)), "<i4", (2, 1, 3, 1)))
        for door in ("passed", "embedded"):
            for axis, wanted in (("0,2", "15\n"), ("0,3", "3 5 7\n"), ("1,3", "0 1 2\n3 4 5\n"), ("0,1,2,3", "15\n"), ("1", "0\n1\n2\n3\n4\n5\n")):
                got = self.run_static("sum", one, "--axis", axis, *self.doors[door])
                self.assertEqual((0, wanted), (got.code, got.out), (axis, got))
            for shape, axis, wanted in (((2, 0, 3), "0,2", ""), ((2, 0, 3), "1", "0 0 0\n0 0 0\n"), ((0, 3, 0), "0,2", "0 0 0\n"),
                                        ((2, 0, 3), "0,1,2", "0\n")):
                for fortran in (False, True):
                    path = self.write("empty.npy", npy(b"", "<i4", shape, fortran))
                    got = self.run_static("sum", path, "--axis", axis, *self.doors[door])
                    self.assertEqual((0, wanted), (got.code, got.out), (shape, axis, got))

    def test_what_is_refused(self):
        c, raw = self.inputs["c"][0][0], self.inputs["raw"][0][0]
        text = self.write("t.txt", b"1 2\n3 4\n")
        for axis in ("", ",", "0,", ",1", "0,,1", "0;1", "0 1", "1.5", "x", "--1", "4294967296", ",".join("0" * 65)):
            self.fails(64, "--axis is", "sum", c, "--axis=" + axis)
        for axis in ("0,0", "0,-3", "1,2,1"):
            self.fails(64, "twice", "sum", c, "--axis", axis)
        self.fails(65, "--axis is 3, ", "sum", c, "--axis", "0,3")
        self.fails(65, "--axis is -4, ", "sum", c, "--axis", "0,-4")
        for words, *more in (("--text g", text, "--text"), ("--total", c, "--total"), ("one file at a time", c, c), ("--partial", c, "--partial"),
                             ("--first", c, "--first", "3"), ("--offsets goes", c, "--offsets", c), ("--keys goes", c, "--keys", c),
                             ("no --via descriptor", c, "--via", "descriptor"), ("--offset and --count", c, "--count", "3")):
            self.fails(64, words, "sum", *more, "--axis", "0,2")
        self.assertEqual(self.client("sum", c, "--axis", "1,2").out, self.client("sum", c, "--axis", "1,2", "--via", "descriptor").out)
        self.fails(65, "1 dimension", "sum", raw, "--dtype", "i32", "--axis", "0,2")
        cut = self.run_static("sum", "-", "--dtype", "i32", "--shape", "2,3,4", "--axis", "0,2", *self.doors["passed"], data=bytes(40))
        self.assertEqual(65, cut.code, cut)
        self.assertIn("standard input ends after 40 of 96 bytes", cut.err)
        long = self.run_static("sum", "-", "--dtype", "i32", "--shape", "2,3,4", "--axis", "0,2", *self.doors["passed"], data=bytes(100))
        self.assertEqual(65, long.code, long)
        self.assertIn("more bytes than its shape wants", long.err)


if __name__ == "__main__":
    main()
