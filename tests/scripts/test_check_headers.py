#!/usr/bin/env python3
"""scripts/check-headers finds what it looks for: each fault is planted in a small tree."""
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest

CHECK = os.path.join(os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(__file__), "../..")), "scripts/check-headers")
GOOD = "#include <stddef.h>\nstatic inline size_t one(void) { return 1; }\n"
EMULATED = platform.machine() == "x86_64" and shutil.which("c++")


@unittest.skipUnless(shutil.which("cc"), "no C compiler")
class CheckHeaders(unittest.TestCase):
    def run_on(self, files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {"base/good.h": GOOD, **files}.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            done = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout

    def expect_fault(self, path, text):
        status, said = self.run_on({path: text})
        self.assertEqual((status, said.split("\n")[0]), (1, f"{path}: does not compile alone"), said)

    def test_clean(self):
        self.assertEqual(self.run_on({"base/a.h": '#include "base/good.h"\nstatic const size_t two = 2;\n', "base/part.inc": "size_t x;\n"}),
                         (0, "check-headers: 2 headers compile alone\n"))

    def test_faults(self):
        self.expect_fault("base/a.h", "size_t one(void);\n")
        self.expect_fault("base/a.h", "static inline int two(void) { return one(); }\n")  # no error to gcc 12 by itself
        self.expect_fault("base/a.h", "int of(const struct thing *x);\n")
        self.expect_fault("base/a.h", '#include "server/good.h"\n')

    def test_packages(self):
        status, said = self.run_on({"base/a.h": "#include <nowhere/nothing.h>\n"})
        self.assertEqual((status, said.split("\n")[0]), (0, "skipped: base/a.h: there is no <nowhere/nothing.h>"), said)

    @unittest.skipUnless(EMULATED, "no C++ compiler, or not x86_64")
    def test_cuda(self):
        self.assertEqual(self.run_on({"base/a.cuh": "static __device__ int x(uint32_t a) { return a + threadIdx.x; }\n"})[0], 0)
        self.expect_fault("base/a.cuh", "static __device__ int x() { return one(); }\n")


if __name__ == "__main__":
    unittest.main()
