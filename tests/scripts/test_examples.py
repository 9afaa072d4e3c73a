"""The programs in examples/ do what they say, with a daemon behind them. One of them is built as its first lines say,
against an installed libcured."""
import ast
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import reasons  # noqa: E402: tests/integration

SOURCE = os.path.abspath(os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(__file__), "..", "..")))
BIN = os.path.abspath(os.environ.get("CURED_TEST_BIN", "build/release/bin"))
EXAMPLES = os.path.join(SOURCE, "examples")
LIBRARY = os.path.join(os.path.dirname(BIN), "lib", "libcured.so.0")
SANITIZE = os.environ.get("CURED_TEST_SANITIZE", "")
HANG_S = 180
# As the first lines of the example show it.
BUILD = "cc shared_array.c $(pkg-config --cflags --libs cured) -o shared_array"
RUN = "./shared_array"
TRAIN = "python3 torch_training.py"


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="cured-examples-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.address = "unix:" + os.path.join(cls.folder, "s")
        cls.env = {k: v for k, v in os.environ.items() if not k.startswith("CURED_")}
        cls.env.update(CURED_CONNECT=cls.address)
        cls.log = open(os.path.join(cls.folder, "log"), "wb")
        cls.addClassCleanup(cls.log.close)
        cls.daemon = subprocess.Popen([os.path.join(BIN, "cured"), "--listen", cls.address], stderr=cls.log,
                                      env={k: v for k, v in cls.env.items() if k != "CURED_CONNECT"})
        cls.addClassCleanup(cls.end)
        limit = time.monotonic() + HANG_S
        while subprocess.run([os.path.join(BIN, "cured-client"), "ping"], env=cls.env, capture_output=True).returncode:
            if time.monotonic() > limit or cls.daemon.poll() is not None:
                raise AssertionError("the daemon does not start")
            time.sleep(0.02)

    @classmethod
    def end(cls):
        cls.daemon.terminate()
        code = cls.daemon.wait(HANG_S)
        if code != 0:
            raise AssertionError("the daemon ended with %d" % code)

    def run_program(self, *arguments, code=0, env=None, **more):
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=HANG_S, env=env or self.env, **more)
        self.assertEqual(code, done.returncode, done)
        return done

    def check_shared_array(self, out):
        lines = out.splitlines()
        self.assertEqual(4, len(lines))
        for turn, line in enumerate(lines, 1):
            std, first, last, most = re.fullmatch(
                r"std ([\d.]+), largest of channel 1: ([\d.]+), of channel (\d+): ([\d.]+)", line).groups()
            # Channel c is uniform in ±c·turn: the mean of c²/3 over 256 channels is 85.5².
            self.assertAlmostEqual(85.5 * turn, float(std), delta=2 * turn)
            self.assertEqual("256", last)
            self.assertTrue(0.9 * turn < float(first) <= turn, line)
            self.assertTrue(0.9 * 256 * turn < float(most) <= 256 * turn, line)

    def test_shared_array(self):
        program = os.path.join(BIN, "example_shared_array")
        self.check_shared_array(self.run_program(program).stdout)
        self.check_shared_array(self.run_program(program, self.address, env=dict(self.env, CURED_CONNECT="")).stdout)
        self.assertIn("UNAVAILABLE", self.run_program(program, "unix:/nowhere", code=1).stderr)

    def test_posix_shm(self):
        name = "/cured-example-%d" % os.getpid()
        program = os.path.join(BIN, "example_posix_shm")
        if not os.path.isdir("/dev/shm"):
            self.skipTest("no /dev/shm here")
        with open("/dev/shm" + name, "wb") as f:
            f.write(struct.pack("<1000h", *range(-500, 500)))
        try:
            self.assertEqual("2000 bytes\nsum -500\nargmax 999\n", self.run_program(program, name, "i16").stdout)
            self.assertEqual("2000 bytes\nsum -500\nargmax 999\n", self.run_program(program, name, "int16", self.address).stdout)
            self.assertIn("dtype", self.run_program(program, name, "i17", code=1).stderr)
        finally:
            os.unlink("/dev/shm" + name)
        self.run_program(program, name, "i16", code=1)
        self.run_program(program, code=64)

    def test_cuda_pointer(self):
        program = os.path.join(BIN, "example_cuda_pointer")
        if not os.path.exists(program):
            self.skipTest("built without CUDA")
        done = subprocess.run([program], capture_output=True, text=True, timeout=HANG_S, env=self.env)
        if done.returncode == 77:
            self.skipTest("no CUDA device")
        self.assertEqual(0, done.returncode, done)
        whole = sum(range(1024)) * 1024 - 777
        part = sum(i % 1024 for i in range(12345, 13345))
        self.assertEqual(["sum %d, largest at 777" % (whole + 5000 * turn) for turn in (1, 2, 3)] +
                         ["sum %d, largest at %d" % (part, 13311 - 12345), "the last row's sum 523776"], done.stdout.splitlines())

    def test_cuda_stream(self):
        """Here on a GPU; over the runtime double it is double_example."""
        program = os.path.join(BIN, "example_cuda_stream")
        library = os.path.join(os.path.dirname(BIN), "lib", "libcured-cuda.so.0")
        if not (os.path.exists(program) and os.path.exists(library)):
            self.skipTest("built without CUDA")
        done = subprocess.run([program], capture_output=True, text=True, timeout=HANG_S, env=dict(self.env, CURED_CUDA_LIBRARY=library))
        if done.returncode == 77:
            self.skipTest("no CUDA device")
        self.assertEqual(0, done.returncode, done)
        norm = math.sqrt(1024 * sum(i * i for i in range(1024)))
        first, host, device = done.stdout.splitlines()
        self.assertEqual("asked: nothing was waited for", first)
        for line in (host, device):
            total, found = re.search(r": sum (\d+), norm2 ([\d.]+)$", line).groups()
            self.assertEqual((1023 * 512 * 1024, norm), (int(total), float(found)))

    def test_numpy_memfd(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("no NumPy here")
        if SANITIZE or not os.path.exists(LIBRARY):
            self.skipTest("no libcured.so that Python could load")
        out = self.run_program(sys.executable, os.path.join(EXAMPLES, "numpy_memfd.py"),
                               env=dict(self.env, LIBCURED=LIBRARY)).stdout.splitlines()
        a = numpy.random.default_rng(1).normal(size=(1000, 1000)).astype("float32")
        for line in out[:3]:
            answers = ast.literal_eval(line)
            self.assertEqual((a.min(), a.max()), (numpy.float32(answers["min"]), numpy.float32(answers["max"])))
            wide = a.astype("float64")
            for op in ("sum", "mean", "std"):
                self.assertAlmostEqual(1, answers[op] / float(getattr(wide, op)()), 9)
            a *= 2
        row = ast.literal_eval(out[3].removeprefix("one row: "))
        self.assertEqual((a[500].argmax(), a[500].max()), (row["argmax"], numpy.float32(row["max"])))
        self.assertEqual("largest at (123, 456)", out[4])

    def test_torch_training(self):
        """On one rank and on three: the same norms and the same losses."""
        python, package = "/usr/bin/python3", os.path.join(os.path.dirname(BIN), "python")  # Debian's torch is for Debian's Python
        if SANITIZE or not os.path.isdir(package):
            self.skipTest("no Python package of this build that Python could load")
        if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode:
            self.skipTest("no torch here (package python3-torch: scripts/bootstrap --torch)")
        out = self.run_program("sh", "-c", TRAIN.replace("python3", python), cwd=EXAMPLES, env=dict(self.env, PYTHONPATH=package)).stdout
        one, three = ([line.partition(",")[2] for line in out.splitlines() if line.startswith("ranks %d," % ranks)] for ranks in (1, 3))
        self.assertEqual((9, one), (len(three), three))
        self.assertRegex(one[0], r"^ step 0: loss \d+\.\d+, norm 0x1\.[0-9a-f]+p\+\d$")

    def test_built_as_it_says(self):
        """With the installed library and pkg-config, as the example's first lines and the README have it."""
        if SANITIZE or not os.path.exists(LIBRARY):
            self.skipTest("a build with sanitizers is not installed")
        if not (shutil.which("pkg-config") and shutil.which("cc") and shutil.which("cmake")):
            self.skipTest("no compiler, pkg-config or cmake here")
        prefix = os.path.join(self.folder, "prefix")
        self.run_program("cmake", "--install", os.path.dirname(BIN), "--prefix", prefix)
        libs = [folder for folder, _, files in os.walk(prefix) if "cured.pc" in files]
        self.assertEqual(1, len(libs))
        shutil.copy(os.path.join(EXAMPLES, "shared_array.c"), self.folder)
        env = dict(self.env, PKG_CONFIG_PATH=libs[0], LD_LIBRARY_PATH=os.path.dirname(libs[0]))
        with open(os.path.join(EXAMPLES, "shared_array.c")) as f:
            self.assertIn(BUILD, f.read())
        self.run_program("sh", "-c", BUILD, env=env, cwd=self.folder)
        self.check_shared_array(self.run_program("sh", "-c", RUN, env=env, cwd=self.folder).stdout)


if __name__ == "__main__":
    reasons.main()
