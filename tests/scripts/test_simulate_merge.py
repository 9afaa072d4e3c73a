"""simulate-merge, small: without noise it gives what can be counted by hand; the same seed gives the same rows; lateness and
narrow trees cost time."""
import json
import os
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SEED = os.environ.get("CURED_TEST_SEED", "7")


def rows(*arguments):
    run = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "simulate-merge"), "--json", "--rounds", "20", *arguments],
                         capture_output=True, text=True, check=True)
    return json.loads(run.stdout)["rows"]


def close(a, b):
    assert abs(a - b) <= 1e-9 * max(abs(a), abs(b)) + 1e-6, (a, b)


quiet = ["--spread", "0", "--late", "0", "--bytes", "1e9", "--rate", "1e9"]
# 1 node: 1 s. A root with 3 children: a message's latency, then each is taken (0.1 us for 1,000 bytes) and merged, in 2 us.
one, four = rows(*quiet, "--nodes", "1,4", "--fan", "3", "--latency-us", "10", "--merge-us", "2", "--partial", "1000", "--bandwidth", "1e10")
close(one["total_ms"], 1000)
close(one["merge_beyond_us"], 0)
close(four["slowest_fold_ms"], 250)
close(four["merge_beyond_us"], 10 + 0.1 + 3 * 2)
# Two levels: the three leaves of a child come to it first, 10 us on the way, then its own partial has 10 us to go.
deep, = rows(*quiet, "--nodes", "5", "--fan", "1", "--latency-us", "10", "--merge-us", "2", "--partial", "0")
close(deep["merge_beyond_us"], 4 * 12)
noisy = ["--bytes", "1e12", "--nodes", "50", "--seed", SEED]
first, again = rows(*noisy), rows(*noisy)
assert first == again, "one seed, two answers"
assert first != rows("--bytes", "1e12", "--nodes", "50", "--seed", SEED + "1"), "two seeds, one answer"
late, = rows(*noisy, "--late", "1", "--late-times", "3")
assert late["total_ms"] > 2 * rows(*noisy, "--late", "0")[0]["total_ms"]
bad = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "simulate-merge"), "--fan", "0"], capture_output=True)
assert bad.returncode == 2 and b"--fan" in bad.stderr
# The tables of docs/SCALING.md are what its commands print.
with open(os.path.join(ROOT, "docs", "SCALING.md"), encoding="utf-8") as f:
    page = f.read()
for line in ("scripts/simulate-merge --bytes 10e12 --rate 4336e9",
             "scripts/simulate-merge --bytes 10e12 --rate 138e9",
             "scripts/simulate-merge --bytes 10e12 --rate 5e9",
             "scripts/simulate-merge --bytes 10e12 --rate 138e9 --start-ms 320"):
    run = subprocess.run([sys.executable, *line.split()], cwd=ROOT, capture_output=True, text=True, check=True)
    assert line + "\n" in page and run.stdout in page, (line, run.stdout)
print("simulate-merge: as counted by hand; seed", SEED)
