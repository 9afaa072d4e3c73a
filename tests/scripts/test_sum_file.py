#!/usr/bin/env python3
"""test_sum_file: cured_sum.c, as scripts/sum-file writes it, compiles without a warning with gcc and clang, as C99 to C23 and C++11 to C++23,
at every level of optimisation; gives the same bits under options that other projects like; is refused under those that break it; and
brings no names but its own."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(__file__), "..", "..")))
STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
COMPILERS = {"gcc": "g++", "clang": "clang++"}
# As gcc 12 and clang 14 call them.
C_STANDARDS = ["c99", "c11", "c17", "c2x"]
CXX_STANDARDS = ["c++11", "c++14", "c++17", "c++20", "c++2b"]
PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include "cured_sum.h"
static double x[5003], y[5003];
static float f[5003];
int main(void) {
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < 5003; i++) {
        for (int k = 0; k < 3; k++) {
            seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17;
            uint64_t spread = (seed & 0x800fffffffffffffu) | (k == 1 ? (seed >> 40) % 1400 : 1000 + seed % 40) << 52;
            if (k == 0) memcpy(&x[i], &spread, 8);
            if (k == 1) memcpy(&y[i], &spread, 8);
            uint32_t narrow = (uint32_t)(seed >> 32);
            if ((narrow >> 23 & 255) == 255) narrow ^= 1u << 23;
            memcpy(&f[i], &narrow, 4);
        }
    }
    for (int op = 1; op <= 3; op++) {
        cured_sum s, t;
        double a = 0, b = 0;
        cured_sum_begin(&s, op, CURED_SUM_F64);
        cured_sum_begin(&t, op, CURED_SUM_F32);
        if (op == 3) {
            cured_sum_add_products_f64(&s, 5003, x, 1, x + 5002, -1);
            cured_sum_add_products_f64(&s, 5003, x, 1, y, 1);
            cured_sum_add_products_f32(&t, 5000, f, 1, f + 3, 1);
        } else {
            cured_sum_add_f64(&s, 5003, x, 1);
            cured_sum_add_f64(&s, 5003, y, 1);
            cured_sum_add_f32(&t, 5003, f, 1);
        }
        cured_sum_value(&s, &a);
        cured_sum_value(&t, &b);
        printf("%a %a\n", a, b);
    }
    /* Squares of like exponents, each number of whose packs counts. */
    uint64_t hash = 0;
    for (int round = 0; round < 50; round++) {
        int64_t pack[CURED_SUM_F64_PRODUCT_NUMBERS];
        double near[64];
        cured_sum s;
        for (int i = 0; i < 64; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            const uint64_t bits = (uint64_t)1023 << 52 | seed >> 12;
            memcpy(&near[i], &bits, 8);
        }
        cured_sum_begin(&s, CURED_SUM_SQUARES, CURED_SUM_F64);
        cured_sum_add_f64(&s, 64, near, 1);
        cured_sum_pack(&s, pack);
        for (int i = 0; i < CURED_SUM_F64_PRODUCT_NUMBERS; i++) hash = hash * 31 + (uint64_t)pack[i];
    }
    printf("%llx\n", (unsigned long long)hash);
    return 0;
}
"""


class SumFile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.here = [cc for cc in COMPILERS if shutil.which(cc)]
        if not cls.here:
            raise unittest.SkipTest("there is neither gcc nor clang")
        cls.folder = tempfile.mkdtemp(prefix="cured-sum-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        subprocess.run([sys.executable, os.path.join(SOURCE, "scripts/sum-file"), cls.folder, SOURCE], check=True)
        with open(os.path.join(cls.folder, "program.c"), "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        for cc in COMPILERS:
            if cc not in cls.here:
                print("skipped: there is no %s" % cc)

    def run_in_folder(self, *words):
        return subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=300)

    def compiles(self, *words):
        done = self.run_in_folder(*words)
        self.assertEqual((0, ""), (done.returncode, done.stderr), " ".join(words))

    def test_every_standard_of_c(self):
        for cc in self.here:
            for standard in C_STANDARDS:
                for file in ("cured_sum.c", "program.c"):
                    self.compiles(cc, "-std=" + standard, *STRICT, "-fsyntax-only", file)

    def test_every_standard_of_cxx(self):
        for cc in self.here:
            cxx = COMPILERS[cc]
            if not shutil.which(cxx):
                print("skipped: there is no %s" % cxx)
                continue
            for standard in CXX_STANDARDS:
                for file in ("cured_sum.c", "program.c"):
                    self.compiles(cxx, "-x", "c++", "-std=" + standard, *STRICT, "-fsyntax-only", file)

    def test_options_of_others_change_no_bit(self):
        ways = [("gcc", "-O2", "-march=native", "-ffp-contract=fast"), ("clang", "-O2", "-march=native", "-ffp-contract=fast"),
                ("gcc", "-O2", "-march=native", "-DCURED_SUM_MOST_ISA=0"), ("gcc", "-O1", "-DCURED_SUM_MOST_ISA=0"), ("clang", "-O1", "-DCURED_SUM_MOST_ISA=0")]
        answers = {}
        for cc, *options in ways:
            if cc not in self.here:
                continue
            self.compiles(cc, *options, "-std=c99", "-Wall", "-Wextra", "-Werror", "cured_sum.c", "program.c", "-o", "program")
            done = self.run_in_folder("./program")
            self.assertEqual(0, done.returncode)
            answers[(cc, *options)] = done.stdout
        self.assertEqual(1, len(set(answers.values())), answers)
        self.assertRegex(answers.popitem()[1], r"^(-?0x1\S* -?0x1\S*\n){3}[0-9a-f]+\n$")

    def test_what_breaks_it_is_refused(self):
        for cc in self.here:
            for option in ("-ffast-math", "-Ofast"):
                done = self.run_in_folder(cc, "-O2", option, "-fsyntax-only", "cured_sum.c")
                self.assertNotEqual(0, done.returncode, (cc, option))
                self.assertRegex(done.stderr, "exact sums need IEEE arithmetic: compile cured_sum.c without -ffast-math")

    def test_it_brings_no_names_but_its_own(self):
        self.compiles(self.here[0], "-O1", "-DCURED_SUM_MOST_ISA=1", "-c", "cured_sum.c", "-o", "cured_sum.o")
        listed = self.run_in_folder("nm", "-g", "--defined-only", "cured_sum.o").stdout
        names = re.findall(r" [A-Z] (\w+)$", listed, re.M)
        self.assertGreater(len(names), 10)
        self.assertEqual([], [name for name in names if not name.startswith("cured_sum_")])
        sections = dict(re.findall(r"^(\.\S+)\s+(\d+)", self.run_in_folder("size", "-A", "cured_sum.o").stdout, re.M))
        self.assertGreater(int(sections[".text"]), 0)
        self.assertEqual({"0"}, {size for name, size in sections.items() if re.match(r"\.t?(bss|data)(\.(?!rel\.ro)|$)", name)}, sections)


if __name__ == "__main__":
    unittest.main()
