#!/usr/bin/env python3
"""test_gpu_tests: what scripts/gpu-tests makes of folds by PTX, with programs in place of the tests that do as a driver would."""
import os
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
# Native code runs unless it is forbidden; PTX is made into code unless that is forbidden; else no kernel can be had.
PROGRAM = """#!/bin/sh
force=${CUDA_FORCE_PTX_JIT:-0} disable=${CUDA_DISABLE_PTX_JIT:-0}
%s
[ "$force" = 1 ] || { echo "native: all right"; exit 0; }
[ "$disable" = 0 ] || { echo "failed: no kernel image is available for execution on the device"; exit 1; }
%s
"""
GOOD = 'echo "by PTX: all right"'


class ByPtx(unittest.TestCase):
    def run_it(self, first="", last=GOOD, words=("--ptx",), name="test_gpu_folds"):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "tests"))
            path = os.path.join(folder, "tests", name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(PROGRAM % (first, last))
            os.chmod(path, stat.S_IRWXU)
            env = {key: value for key, value in os.environ.items() if not key.startswith("CUDA_")}
            done = subprocess.run([os.path.join(ROOT, "scripts", "gpu-tests"), *words, folder], capture_output=True, text=True, check=False,
                                  timeout=60, env=env)
            return done.returncode, done.stdout

    def test_answers_by_ptx(self):
        code, said = self.run_it()
        self.assertEqual(0, code, said)
        self.assertIn("passed   test_gpu_folds by PTX: by PTX: all right", said)
        self.assertIn("1 passed, 0 failed, 0 skipped", said)

    def test_wrong_answers_by_ptx(self):
        code, said = self.run_it(last='echo "sum f32: wrong"; exit 1')
        self.assertEqual(1, code, said)
        self.assertIn("FAILED   test_gpu_folds by PTX", said)
        self.assertIn("sum f32: wrong", said)

    def test_a_driver_that_does_not_heed_it(self):
        code, said = self.run_it(first="force=0")
        self.assertEqual(1, code, said)
        self.assertIn("native code runs in spite of CUDA_FORCE_PTX_JIT", said)

    def test_a_build_without_ptx(self):
        code, said = self.run_it(last='echo "failed: no kernel image is available"; exit 1')
        self.assertEqual(77, code, said)
        self.assertIn("SKIPPED  test_gpu_folds by PTX: no PTX here", said)

    def test_no_device(self):
        code, said = self.run_it(first='echo "skipped: no CUDA device"; exit 77')
        self.assertEqual(77, code, said)
        self.assertIn("SKIPPED  test_gpu_folds by PTX: skipped: no CUDA device", said)

    def test_beside_native_code(self):
        code, said = self.run_it(words=("--no-sanitizer",))
        self.assertEqual(0, code, said)
        self.assertIn("passed   test_gpu_folds: native: all right", said)
        self.assertIn("2 passed, 0 failed, 0 skipped", said)

    def test_programs_of_other_topics(self):
        code, said = self.run_it(name="test_gpu_pack")
        self.assertEqual(77, code, said)
        self.assertIn("0 passed, 0 failed, 0 skipped", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
