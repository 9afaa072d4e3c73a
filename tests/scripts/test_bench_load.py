"""cured-bench load: a mix over two addresses in open and closed loop is answered right and counted; a wrong answer, a status and a
load that is too much are told apart; wrong options end with 64."""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from xml.etree import ElementTree

sys.path.insert(0, os.path.join(os.environ["CURED_TEST_SOURCE"], "tests", "integration"))
from cured_daemon import Daemon  # noqa: E402  pylint: disable=wrong-import-position

BENCH = os.path.join(os.environ["CURED_TEST_BIN"], "cured-bench")
MIX = "sum+max:f32:4K,describe:f64:100003:memfd:2,prod:i32:64K:region,std:bf16:100K,min:f16:8K,any:bool:5,sum:u8:7:file"


def load(*arguments):
    return subprocess.run((BENCH, "load") + arguments, capture_output=True, text=True, check=False, timeout=200)


def change_memory_of(pid):
    """Whether it was there to be changed."""
    folder, changed = "/proc/%d/fd" % pid, False
    try:
        for name in os.listdir(folder):
            if os.readlink(os.path.join(folder, name)).startswith("/memfd:"):
                with open(os.path.join(folder, name), "r+b") as f:
                    f.write(b"changed!")
                changed = True
    except FileNotFoundError:  # the program has ended
        return False
    return changed


class Load(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def daemon(self, **options):
        """Its address."""
        daemon = Daemon(self.folder, **options)
        self.addCleanup(daemon.stop)
        return daemon.address

    def measure(self, *arguments):
        """For 0.3 s, and for longer where a busy machine answers nothing in that time."""
        out = os.path.join(self.folder, "out.json")
        for seconds in ("0.3", "1", "5"):
            done = load("--warm-up", "0.05", "--seconds", seconds, "--json", out, "--dir", self.folder, *arguments)
            self.assertEqual(0, done.returncode, done.stdout + done.stderr)
            with open(out, encoding="utf-8") as f:
                said = json.load(f)
            if all(row["all"]["calls"] for row in said["rows"]):
                break
        return said

    def test_a_mix_is_answered_right(self):
        plot = os.path.join(self.folder, "plot.svg")
        address = self.daemon()
        said = self.measure("--connect", "%s,%s" % (address, address), "--connections", "5", "--threads", "2", "--mix", MIX,
                            "--rates", "200,0.4K", "--concurrency", "7", "--plot", plot)
        self.assertEqual(["memfd", "file"], [said["mix"][1]["input"], said["mix"][6]["input"]])
        self.assertEqual([200, 400, None], [row.get("rate") for row in said["rows"]])
        for row in said["rows"]:
            self.assertGreater(row["all"]["calls"], 0)
            self.assertEqual((0, {}), (row["all"]["wrong"], row["all"]["failed"]))
            self.assertEqual(row["all"]["calls"], sum(kind["calls"] for kind in row["kinds"]))
            times = row["all"]["latency_ns"]
            self.assertEqual(sorted(times.values()), [times[k] for k in ("p50", "p90", "p99", "p99.9", "longest")])
        ElementTree.parse(plot)

    def test_calls_that_are_turned_away_are_counted_by_status(self):
        said = self.measure("--connect", self.daemon(max_jobs_per_connection=2), "--concurrency", "64", "--mix", "prod:f64:1M")
        failed = said["rows"][0]["all"]["failed"]
        self.assertEqual(["RESOURCE_EXHAUSTED"], list(failed))

    def test_what_finds_no_room_is_said(self):
        said = self.measure("--connect", self.daemon(), "--rates", "1M", "--mix", "describe:f64:256K")
        self.assertGreater(said["rows"][0]["all"]["not_begun"], 0)

    def test_in_this_process(self):
        self.assertGreater(self.measure("--connect", "embedded:", "--concurrency", "3")["rows"][0]["all"]["calls"], 0)

    def test_a_wrong_answer_ends_it_with_1(self):
        """The array changes behind its back: the daemon reads other bytes than this process did."""
        address = self.daemon()
        for seconds in ("2", "10", "30"):  # on a busy machine it may be over before the array changes
            with subprocess.Popen([BENCH, "load", "--connect", address, "--mix", "sum:u64:64K:memfd", "--warm-up", "0", "--seconds", seconds],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as bench:
                said, changed = [], None  # when it changed
                for line in bench.stdout:
                    said.append(line)
                    if changed is None and line.startswith("| ---") and change_memory_of(bench.pid):
                        changed = time.monotonic()
            if changed is not None and time.monotonic() - changed > 1:  # it asked on for long enough to see the change
                break
        else:
            self.fail("the load ended before its memory changed, or within 1 s of it: %r" % said)
        self.assertEqual(1, bench.returncode, said)
        self.assertIn("WRONG", "".join(said))

    def test_wrong_options(self):
        for arguments, sentence in ((("--mix", "sum:f31:4K"), "f31"), (("--mix", "sun:f32:4K"), "sun"),
                                    (("--mix", "sum:f32"), "OPS:DTYPE:BYTES"), (("--mix", "sum:f32:4K:disk"), "region"),
                                    (("--mix", "sum:f32:4K:file:0"), "WEIGHT"), (("--mix", "sum:f32:3"), "element"),
                                    (("--rates", "none"), "rates"), (("--concurrency", "0.5"), "concurrency"),
                                    (("--threads", "2"), "connection")):
            done = load(*arguments)
            self.assertEqual(64, done.returncode, arguments)
            self.assertIn(sentence, done.stderr, arguments)

    def test_nobody_listens(self):
        done = load("--connect", "unix:" + os.path.join(self.folder, "none.sock"))
        self.assertEqual(69, done.returncode)
        self.assertIn("none.sock", done.stderr)


if __name__ == "__main__":
    unittest.main()
