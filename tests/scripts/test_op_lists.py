#!/usr/bin/env python3
"""The public lists of ops are what op.def says, scripts/op-lists sees where they are not, and mends that."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FILES = ("kernels/core/op.def", "proto/cured.proto", "client/include/cured/cured.h", "client/python/cured/__init__.pyi", "client/node/index.d.ts")
DESCRIBE = ("kernels/core/describe.def", "client/node/index.js", "client/node/index.d.ts")


def lists(*arguments):
    return subprocess.run([sys.executable, os.path.join(ROOT, "scripts/op-lists"), *arguments], capture_output=True, text=True)


def plant(folder, number):
    """A copy of the table and of its lists, with one row more."""
    for name in {*FILES, *DESCRIBE}:
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        shutil.copy(os.path.join(ROOT, name), os.path.join(folder, name))
    with open(os.path.join(folder, FILES[0]), "a", encoding="utf-8") as table:
        table.write('CR_OP(NEW, %d, "new", SQUARE, COUNT, ROOT, FLOAT, NAN,\n      "help", "1", "u8", "\\\\1", "1")\n' % number)


class OpLists(unittest.TestCase):
    def test_the_tree_is_as_its_table(self):
        self.assertEqual(lists("--check").stdout, "")

    def test_a_row_that_is_new(self):
        with tempfile.TemporaryDirectory() as folder:
            plant(folder, 60)
            seen = lists("--check", folder)
            self.assertEqual(seen.returncode, 1)
            for name in FILES[1:]:
                self.assertIn(name, seen.stdout)
            self.assertEqual(lists(folder).returncode, 0)
            self.assertEqual(lists("--check", folder).returncode, 0)
            for name, line in ((FILES[1], "  OP_NEW = 60;\n"), (FILES[2], "    CURED_OP_NEW = 60\n"),
                               (FILES[3], "def new(a: Array, /, axis: Axis = None, *, dtype: Dtype = None, keepdims: bool"),
                               (FILES[4], "| 'new';\n"), (FILES[4], "    new: OneOp<number>;\n")):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    self.assertIn(line, file.read())

    def test_what_describe_gives(self):
        with tempfile.TemporaryDirectory() as folder:
            plant(folder, 60)
            self.assertEqual(lists(folder).returncode, 0)
            with open(os.path.join(folder, DESCRIBE[0]), "a", encoding="utf-8") as table:
                table.write("CR_DESCRIBE(MEDIAN)\n")
            seen = lists("--check", folder)
            self.assertEqual(seen.returncode, 1)
            for name in DESCRIBE[1:]:
                self.assertIn(name, seen.stdout)
            self.assertEqual(lists(folder).returncode, 0)
            for name, line in ((DESCRIBE[1], "'std', 'median',\n];"), (DESCRIBE[2], "| 'std' | 'median';\n\nexport type TypedArray")):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    self.assertIn(line, file.read())

    def test_two_ops_with_one_id(self):
        with tempfile.TemporaryDirectory() as folder:
            plant(folder, 1)
            seen = lists("--check", folder)
            self.assertNotEqual(seen.returncode, 0)
            self.assertIn("one id", seen.stderr)


if __name__ == "__main__":
    unittest.main()
