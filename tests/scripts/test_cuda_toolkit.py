"""What configuring says of a CUDA toolkit (cmake/cuda.cmake), with made-up compilers: one that is too old, one that is older than
the tested one, one that does not know a chip that is asked for. And the tested toolkit and the chips are the same everywhere they
are named."""
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))
OLD, NEW = "50 75 80 86 89 90", "75 80 86 89 90 100 103 110 120 121"
ALL = "80-real;90-real;100-real;120-real;90-virtual"


def text_of(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


class Toolkit(unittest.TestCase):
    def configure(self, release, knows, asked=""):
        with tempfile.TemporaryDirectory() as folder:
            nvcc, script = os.path.join(folder, "nvcc"), os.path.join(folder, "look.cmake")
            with open(nvcc, "w", encoding="utf-8") as f:
                f.write(f"#!/bin/sh\ncase $1 in\n--version) echo 'Cuda compilation tools, release {release}, V{release}.1' ;;\n"
                        f"*) for chip in {knows}; do echo sm_$chip; done ;;\nesac\n")
            os.chmod(nvcc, stat.S_IRWXU)
            with open(script, "w", encoding="utf-8") as f:
                f.write(f'cmake_minimum_required(VERSION 3.25)\ninclude({ROOT}/cmake/cuda.cmake)\ncured_cuda_look({nvcc})\ncured_cuda_choose(chips {asked})\n'
                        'cured_cuda_announce(${chips})\nmessage(STATUS "chips: ${chips}")\n')
            done = subprocess.run(["cmake", "-P", script], capture_output=True, text=True, check=False, timeout=60)
            return done.returncode, re.sub(r"\s+", " ", done.stdout + done.stderr)

    def test_the_tested_one(self):
        code, said = self.configure("13.0", NEW)
        self.assertEqual(0, code, said)
        self.assertIn("chips: " + ALL, said)
        self.assertNotIn("Warning", said)
        self.assertRegex(said, r"compiled for the chips 80-real 90-real 100-real 120-real 90-virtual: about \d+ minutes on \d+ cores")
        self.assertIn("-DCURED_CUDA=OFF", said)

    def test_one_without_the_newest_chips(self):
        code, said = self.configure("12.6", OLD)
        self.assertEqual(0, code, said)
        self.assertIn("chips: 80-real;90-real;90-virtual", said)
        for expected in ("is 12.6; 13.0 is the one that is tested", "does not compress", "no code for chip 100", "no code for chip 120"):
            self.assertIn(expected, said)

    def test_one_without_batched_copies(self):
        code, said = self.configure("12.9", NEW)
        self.assertEqual(0, code, said)
        self.assertIn("chips: " + ALL, said)
        self.assertIn("copied one by one", said)
        self.assertNotIn("compress", said)

    def test_too_old(self):
        code, said = self.configure("11.8", OLD)
        self.assertNotEqual(0, code)
        self.assertIn("the oldest that is taken is 12.0", said)

    def test_a_chip_that_it_does_not_know(self):
        code, said = self.configure("12.6", OLD, "90-real 120-real")
        self.assertNotEqual(0, code)
        self.assertIn("asks for 120-real, which CUDA 12.6 does not know; it knows 50 75 80 86 89 90", said)

    def test_what_was_asked_for(self):
        for asked in ("90-real", "native", "all-major", "90a-real", "75"):
            code, said = self.configure("13.0", NEW, asked)
            self.assertEqual(0, code, said)
            self.assertIn("chips: " + asked, said)

    def test_the_same_everywhere(self):
        tested = re.search(r"set\(CURED_CUDA_TESTED ([0-9.]+)\)", text_of("cmake", "cuda.cmake")).group(1)
        for path in (("Dockerfile",), ("deploy", "compose.yml"), ("docs", "INSTALL.md")):
            images = re.findall(r"nvidia/cuda:([0-9]+\.[0-9]+)", text_of(*path))
            self.assertEqual({tested}, set(images), path)
        install = text_of("docs", "INSTALL.md")
        for chip in re.findall(r"(\d+)-real", ALL):
            self.assertIn(f"sm_{chip}", install)


class ThisMachine(unittest.TestCase):
    """What scripts/test compiles for: native code of each GPU here, and the PTX that gpu_ptx runs by; scripts/quickstart wants no PTX."""

    def chosen(self, asked, capabilities, knows=NEW, query=True, gpus=True, environment=None, cache=None):
        with tempfile.TemporaryDirectory() as folder:
            programs = {"nvcc": f"for chip in {knows}; do echo sm_$chip; done",
                        "nvidia-smi": "[ \"$1\" != -L ] || exit %d\n%s" % (not gpus, "printf '%s\\n' " + capabilities if query else "echo Field is not valid; exit 2")}
            for name, body in programs.items():
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8") as f:
                    f.write("#!/bin/sh\n" + body + "\n")
                os.chmod(path, stat.S_IRWXU)
            env = {key: value for key, value in os.environ.items() if key != "CUDAARCHS"}
            env.update(environment or {}, PATH=folder + os.pathsep + os.environ["PATH"])
            done = subprocess.run(["bash", "-euc", ". %s/scripts/common.sh; for_this_machine %s; echo $preset_here ${CUDAARCHS-none}" % (ROOT, asked)],
                                  capture_output=True, text=True, check=False, timeout=60, env=env)
            self.assertEqual((0, ""), (done.returncode, done.stderr))
            return done.stdout.strip()

    def test_chips(self):
        for capabilities, knows, wanted in (("9.0", NEW, "90"), ("9.0 9.0", NEW, "90"), ("12.0", NEW, "120"), ("12.0 8.0 9.0", NEW, "80-real;90-real;120-real;80-virtual"),
                                            ("12.1", OLD, "native"), ("9.0 12.1", OLD, "native"), ("'[N/A]'", NEW, "native")):
            self.assertEqual("release " + wanted, self.chosen("tests", capabilities, knows), capabilities)
            if wanted != "native":  # cmake takes it
                code, said = Toolkit.configure(self, "13.0", NEW, wanted)
                self.assertEqual(0, code, said)
                self.assertIn("chips: " + wanted, said)

    def test_otherwise(self):
        self.assertEqual("release native", self.chosen("", "9.0"))
        self.assertEqual("release native", self.chosen("tests", "", query=False))
        self.assertEqual("cpu-only none", self.chosen("tests", "9.0", gpus=False))
        self.assertEqual("release 80-real", self.chosen("tests", "9.0", environment={"CUDAARCHS": "80-real"}))


if __name__ == "__main__":
    if not shutil.which("cmake"):
        print("skipped: no cmake")
        sys.exit(77)
    unittest.main()
