"""cured-bench kernels where there is nothing to measure: it says which, and ends with 69; a wrong option ends with 64. Where there
is a GPU, a short run gives a file that plot-bench takes, with no wrong answer of cured's in it."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import reasons  # noqa: E402: tests/integration

BENCH = os.path.join(os.environ["CURED_TEST_BIN"], "cured-bench")
PLOT = os.path.join(os.environ["CURED_TEST_SOURCE"], "scripts", "plot-bench")


def run(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=200)


class BenchKernels(unittest.TestCase):
    def test_short_run_or_the_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.json")
            done = run(BENCH, "kernels", "--sizes", "4K,1M", "--rounds", "5", "--json", out)
            if done.returncode == 69:
                self.assertRegex(done.stderr, "no CUDA device|this build has no CUDA")
                self.assertEqual(1, done.stderr.count("\n"), done.stderr)
                self.assertFalse(os.path.exists(out))
                return
            self.assertEqual(0, done.returncode, done.stderr)
            with open(out, encoding="utf-8") as f:
                told = json.load(f)
            self.assertEqual(0, told["wrong"])
            for row in told["rows"]:  # what CUB promises of a sum's bits it keeps, or it lacks the promise and says so
                if row["kernel"] in ("gpu_to_gpu", "not_guaranteed"):
                    self.assertEqual(told["cccl"] < 3002000, row["gb_per_s"] is None, row)
                    self.assertRegex(row["answer"], "^none: CCCL" if row["gb_per_s"] is None else "^(exact|within bound)")
            self.assertEqual(0, run(sys.executable, PLOT, out, "--out", folder).returncode)

    def test_usage(self):
        if "this build has no CUDA" in run(BENCH, "kernels", "--help").stderr:
            self.skipTest("this build has no CUDA")
        for arguments in (("--sizes", "x"), ("--sizes", "4K,,1M"), ("--types", "f31"), ("--ops", "nope"), ("--kernels", "v9"),
                          ("--rounds", "4"), ("--data", "odd"), ("--frobnicate",), ("more",)):
            self.assertEqual(64, run(BENCH, "kernels", *arguments).returncode, arguments)
        self.assertIn("--sizes", run(BENCH, "kernels", "--help").stdout)


if __name__ == "__main__":
    reasons.main()
