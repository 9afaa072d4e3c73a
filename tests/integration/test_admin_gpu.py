#!/usr/bin/env python3
"""test_admin_gpu: what operators are told of GPUs: figures of NVML, errors by kind, and a daemon that ends because one is lost."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import admin_client
from admin_client import HANG_S, Trickle, get
from cured_daemon import CLIENT, Daemon, main, need_binary, wait_for
from cured_wire import UNAVAILABLE
from test_admin import windows

NVML = os.path.join(os.path.abspath(os.environ.get("CURED_TEST_DIR", "")), "nvml")
SMALL = {"gpu_chunk_bytes": 1 << 20, "gpu_streams": 3, "slabs": 16, "gpu_timeout_ms": 60000}
KINDS = ("sticky", "timeout", "hang", "memory", "call", "pin")


class GpuTest(unittest.TestCase):
    def start(self, status=0, env=None, **options):
        program = os.path.join(os.environ.get("CURED_TEST_DIR", ""), "cured-fake-gpu")
        need_binary(program)
        folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        daemon = Daemon(folder, program=program, admin="unix:admin.sock", env=env or {}, **{"backend": "cuda", **options})
        self.addCleanup(lambda: daemon.check_end(self, daemon.stop(), status))
        return daemon, windows(daemon)[0]

    def work(self, conn, size=6 << 20):
        """A call that the GPU takes part in."""
        with tempfile.TemporaryFile() as f:
            f.write(bytes(size))
            f.flush()
            return conn.descriptor("u8", ["sum", "count"], f.fileno())


class Nvml(GpuTest):
    """What NVML says, by a library of the tests' beside a GPU of host memory."""

    def test_the_gpus_figures_are_exposed(self):
        daemon, address = self.start(env={"LD_LIBRARY_PATH": NVML})
        wanted = {"cured_gpu_temperature_celsius{gpu=\"fake0\"}": 61, "cured_gpu_utilization_ratio{gpu=\"fake0\"}": 0.37,
                  "cured_gpu_memory_bytes{gpu=\"fake0\",state=\"used\"}": 3 << 30,
                  "cured_gpu_memory_bytes{gpu=\"fake0\",state=\"free\"}": 5 << 30}
        # The reading may come while a page is made, and a page is kept for a moment.
        seen = wait_for("a reading", lambda: [m for m in [admin_client.metrics(address)] if set(wanted) <= set(m)])[0]
        self.assertEqual(wanted, {name: seen[name] for name in wanted})
        self.assertEqual(1, seen['cured_gpu_healthy{gpu="fake0"}'])
        lane = get(address, "/stats.json").json()["lanes"][1]
        told = {"memory_used": 3 << 30, "memory_bytes": 8 << 30, "temperature_c": 61, "utilization_percent": 37, "errors": 0}
        self.assertEqual(told, {name: lane[name] for name in told})
        self.assertNotIn("temperature_c", get(address, "/stats.json").json()["lanes"][0], "the CPU has none")
        with daemon.connect() as conn:
            lanes = conn.stats()["lanes"]
        self.assertEqual((61, 37), (lanes["fake0"]["temperature_c"], lanes["fake0"]["utilization_percent"]))
        self.assertEqual((None, None), (lanes["cpu"]["temperature_c"], lanes["cpu"]["utilization_percent"]))
        for words in (("top", "--once"), ("stats",)):
            text = subprocess.run([CLIENT, "--connect", daemon.address, *words], capture_output=True, text=True, timeout=HANG_S)
            self.assertIn(", 61 C, 37% in use by all, 3.2 GB of 8.6 GB\n", text.stdout)

    def test_a_library_that_hangs_or_fails_holds_nobody_up(self):
        for order in ("hang", "broken"):
            daemon, address = self.start(env={"LD_LIBRARY_PATH": NVML, "FAKE_NVML": order})
            for _ in range(20):
                self.assertFalse([n for n in admin_client.metrics(address) if "celsius" in n])
            self.assertEqual(0, daemon.stop())

    def test_no_library_is_said_once(self):
        daemon, address = self.start()
        admin_client.metrics(address)
        if os.path.exists("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"):
            self.skipTest("this machine has NVML")
        wait_for("a word in the log", lambda: "libnvidia-ml.so.1 cannot be used" in daemon.log())
        admin_client.metrics(address)
        self.assertEqual(1, daemon.log().count("libnvidia-ml"))


class Errors(GpuTest):
    """Errors are counted by kind, and shown wherever lanes are."""

    def counted(self, faults, **options):
        daemon, address = self.start(env={"CURED_TEST_GPU": faults}, **{**SMALL, **options})
        with daemon.connect() as conn:
            self.assertIsNone(self.work(conn).status, faults)
            metrics = admin_client.metrics(address)
            errors = {kind: metrics['cured_gpu_errors_total{gpu="fake0",kind="%s"}' % kind] for kind in KINDS}
            self.assertEqual(sum(errors.values()), conn.stats()["lanes"]["fake0"]["errors"])
        self.assertEqual(sum(errors.values()), get(address, "/stats.json").json()["lanes"][1]["errors"])
        return {kind: n for kind, n in errors.items() if n}

    def test_none(self):
        self.assertEqual({}, self.counted("devices=1"))

    def test_a_call_that_fails(self):
        self.assertEqual({"call": 1}, self.counted("fail_fault=1"))
        self.assertEqual({"memory": 1}, self.counted("fail_copy=1"))

    def test_an_op_it_lacks_is_no_error(self):
        self.assertEqual({}, self.counted("lacks=0xffffffff"))

    def test_nothing_can_be_pinned(self):
        self.assertEqual({"pin"}, set(self.counted("fail_pin=1")))

    def test_it_is_lost(self):
        self.assertEqual({"sticky": 1}, self.counted("lose_at=4"))
        # A busy machine keeps the lane's thread away for less than that, or it would be counted as a hang.
        self.assertEqual({"timeout": 1}, self.counted("hang_at=1", gpu_timeout_ms=2000))
        self.assertEqual({"hang": 1}, self.counted("stuck_at=1", gpu_timeout_ms=2000))


class Lost(GpuTest):
    """With on_gpu_fault exit the daemon that loses a GPU ends, and says why: calls that others can fold are answered."""

    def unready(self, address, reason, *words):
        answer = wait_for("not ready", lambda: [a for a in [get(address, "/healthz/ready")] if a.status == 503])[0]
        self.assertEqual((False, reason), (answer.json()["ready"], answer.json()["reason"]))
        for word in words:
            self.assertIn(word, answer.json()["message"])

    def test_it_ends_by_draining(self):
        for faults, options, words in (("lose_at=4", {}, "every GPU is lost"), ("devices=2,lose_at=6", {}, "a GPU is lost"),
                                       ("hang_at=1", {"gpu_timeout_ms": 200}, "every GPU is lost")):
            # The GPU folds bytes of the slow call, too: on a busy machine it may be lost by them, before the other call begins.
            self.assertIn(True, (self.answers_and_ends(faults, options, words) for _ in range(10)), faults)

    def answers_and_ends(self, faults, options, words):
        """Whether the call that loses the GPU began before the daemon drained: then it is answered."""
        daemon, address = self.start(70, {"CURED_TEST_GPU": faults}, on_gpu_fault="exit", **{**SMALL, **options})
        with daemon.connect() as slow, daemon.connect() as conn:
            call = Trickle(slow)
            answer = self.work(conn)
            if answer.status is None:
                self.assertEqual(6 << 20, answer.count)
            else:
                self.assertEqual((UNAVAILABLE, "the server is shutting down"), (answer.status.code, answer.status.message))
            self.unready(address, "gpu_lost", words, "on_gpu_fault")
            self.assertEqual(200, get(address, "/healthz/live").status)
            self.assertEqual(1, call.end())
        self.assertEqual(70, daemon.wait(), faults)
        self.assertIn("on_gpu_fault is exit", daemon.log())
        return answer.status is None

    def test_going_on_is_ready_until_the_option_says_otherwise(self):
        folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        path = os.path.join(folder, "cured.json")
        with open(path, "w") as f:
            json.dump({"on_gpu_fault": "cpu"}, f)
        daemon, address = self.start(env={"CURED_TEST_GPU": "lose_at=4"}, config=path, **SMALL)
        with daemon.connect() as conn:
            self.assertIsNone(self.work(conn).status)
            wait_for("the loss", lambda: admin_client.metrics(address)["cured_gpus_lost_total"] == 1)
            self.assertEqual(200, get(address, "/healthz/ready").status)
            with open(path, "w") as f:
                json.dump({"on_gpu_fault": "exit"}, f)
            daemon.process.send_signal(signal.SIGHUP)
            self.unready(address, "gpu_lost", "every GPU is lost")
            self.assertIsNone(self.work(conn).status, "it ends when a GPU is lost from now on")


if __name__ == "__main__":
    main()
