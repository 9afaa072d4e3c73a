"""test_lanes: a lane that fails, lies still, is slow or is lost at every step of a fixed load, on the stand-in GPU (tests/fake). Each
call ends with the right bits or a status, and the daemon goes on with the CPU.
"""
import os
import shutil
import tempfile
import unittest

from orders import DaemonTest  # noqa: F401 (sets the path of modules)
from cured_daemon import Daemon, main, need_binary
from cured_wire import UNAVAILABLE
from expected import expect_tiled, plain
from gpu_axis import PROGRAM

OPTIONS = {"gpu_chunk_bytes": 1 << 20, "gpu_streams": 2, "slabs": 8, "cpu_workers": 1, "gpu_min_bytes": 1}
STEPS = 2
# What goes wrong at the n-th step; {} is n. A lane that does not come back is found after gpu_timeout_ms.
FAULTS = ("fail_copy={}", "fail_fold={}", "fail_fault={},polls=3", "lose_at={}", "lose_at={},polls=3", "hang_at={}", "stuck_at={}",
          "fail_pin={}", "polls={}0")
TILE = plain("i32", 1 << 16)


class EveryStep(unittest.TestCase):
    def load(self, daemon):
        """How many calls of each way got a status; the others are right."""
        refused = 0
        with tempfile.TemporaryFile(dir=daemon.folder) as f, daemon.connect() as c:
            f.write(bytes(TILE) * 12)
            f.flush()
            self.assertEqual(12 * len(TILE), c.register(1, f.fileno()))
            streams = [c.start_region("i32", ["sum", "max"], 1), c.start_descriptor("i32", ["sum", "max"], f.fileno())]
            streams.append(c.start_stream("i32", ["sum", "max"], 12 * len(TILE)))
            c.send_array(streams[-1], bytes(TILE) * 12)
            for s in streams:
                answer = c.wait(s)
                if answer.status is None:
                    self.assertEqual([expect_tiled(op, "i32", TILE, 12) for op in ("sum", "max")], answer.keys())
                else:
                    self.assertEqual(UNAVAILABLE, answer.status.code, answer)
                    refused += 1
        return refused

    def one(self, faults):
        """Calls refused, GPUs lost."""
        folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        still = "hang" in faults or "stuck" in faults
        daemon = Daemon(folder, program=PROGRAM, env={"CURED_TEST_GPU": faults}, backend="cuda",
                        gpu_timeout_ms=200 if still else 60000, **OPTIONS)
        refused = self.load(daemon)
        self.assertEqual(0, self.load(daemon), "after %s" % faults)
        counters = daemon.counters()
        for name in ("calls", "jobs", "state_bytes"):
            self.assertEqual(0, counters[name], name)
        status = daemon.stop()
        if "stuck" not in faults:  # whose thread is left behind
            daemon.check_end(self, status)
        return refused, counters["gpus_lost_total"]

    def test_of_each_lane(self):
        need_binary(PROGRAM)
        sites = refused = lost = 0
        for fault in FAULTS:
            for step in range(1, STEPS + 1):
                if "stuck" in fault and step > 1:
                    continue  # the daemon's end waits for the lane's thread, each time
                sites += 1
                refused_now, lost_now = self.one(fault.format(step))
                refused += refused_now
                lost += lost_now
        print("%d faults of lanes: %d calls refused, %d GPUs lost" % (sites, refused, lost))
        self.assertGreater(lost, 0)


if __name__ == "__main__":
    main()
