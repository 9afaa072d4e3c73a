"""test_gpu_library: the GPU's kernels are libcured-cuda's, which the daemon loads: answers by that of the runtime double (tests/double), and
what is said where it is missing or of another version, or not wanted."""
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

os.environ["CURED_TEST_REAL_GPU"] = "1"  # test_gpu_lane asks the daemon itself, of which no faults are ordered

import test_gpu_lane  # noqa: E402
from cured_daemon import CURED, HANG_S, Daemon, environment, main, need_binary  # noqa: E402
from expected import expect, plain  # noqa: E402

DOUBLE, OTHER = os.environ.get("CURED_CUDA_LIBRARY", ""), os.environ.get("CURED_OTHER_VERSION", "")
RAW = plain("i32", 1000)


class OverTheDouble(test_gpu_lane.Alone):
    """All types, ops and ways in, by kernels that are nowhere in the daemon."""

    @classmethod
    def setUpClass(cls):
        if not os.path.exists(DOUBLE):
            raise unittest.SkipTest("CURED_CUDA_LIBRARY names no runtime double")
        super().setUpClass()


class Library(unittest.TestCase):
    def setUp(self):
        need_binary(CURED)
        self.folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self, library, **options):
        daemon = Daemon(self.folder, env=environment(CURED_CUDA_LIBRARY=library), **options)
        self.addCleanup(daemon.stop, signal.SIGKILL)
        return daemon

    def maps(self, daemon):
        with open("/proc/%d/maps" % daemon.pid) as f:
            return {line.split()[-1] for line in f if ".so" in line}

    def on_the_cpu(self, library, *words, warns=False):
        daemon = self.start(library)
        with daemon.connect() as conn:
            info = conn.info()
            self.assertEqual("cpu", info["backend"])
            for word in words:
                self.assertIn(word, info["backend_reason"])
                self.assertIn(word, daemon.log())
            self.assertEqual(warns, any("WARN" in line and words[0] in line for line in daemon.lines))
            self.assertEqual([expect("sum", "i32", RAW)], conn.stream("i32", ["sum"], RAW).keys())
        self.assertEqual(0, daemon.stop())
        done = subprocess.run([CURED, "--backend", "cuda", "--listen", "unix:%s/s" % self.folder], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=HANG_S, env=environment(CURED_CUDA_LIBRARY=library))
        self.assertNotEqual(0, done.returncode)
        self.assertRegex(done.stderr, "backend: cuda is asked for, and .*%s" % words[0])

    def test_it_may_be_missing(self):
        self.on_the_cpu("/nowhere/libcured-cuda.so.0", "which has the kernels of GPUs, is not here", "/nowhere/libcured-cuda.so.0")

    def test_it_may_be_something_else(self):
        self.on_the_cpu("libm.so.6", "libm.so.6 is no libcured-cuda", warns=True)

    def test_it_may_be_of_another_version(self):
        if not os.path.exists(OTHER):
            self.skipTest("CURED_OTHER_VERSION names no library")
        self.on_the_cpu(OTHER, "is of cured 0.0.7", "install one version of both", warns=True)

    def test_it_is_loaded_where_it_is_wanted(self):
        if not os.path.exists(DOUBLE):
            self.skipTest("CURED_CUDA_LIBRARY names no runtime double")
        for backend, wanted in (("cpu", False), ("auto", True), ("cuda", True)):
            daemon = self.start(DOUBLE, backend=backend)
            self.assertEqual(wanted, os.path.realpath(DOUBLE) in self.maps(daemon), backend)
            self.assertNotIn("CURED_CUDA_LIBRARY", daemon.log())
            self.assertEqual(0, daemon.stop())


if __name__ == "__main__":
    main()
