"""test_gpu_axis_faults: reductions along an axis that are under way on the stand-in GPU (tests/fake) when one of its calls fails, when it is lost, or
when their clients cancel; two of them; and events that are waited for.
"""
import os
import random
import shutil
import signal
import struct
import tempfile
import time
import unittest

from cured_daemon import Daemon, main, wait_for
from cured_wire import CANCEL, CANCELLED, INTERNAL, INVALID_ARGUMENT, OUT_OF_RANGE, UNAVAILABLE, cuda_descriptor_region, frame
from gpu_axis import OPTIONS, PROGRAM, REAL, Stand, setUpModule  # noqa: F401


@unittest.skipIf(REAL, "faults are for the stand-in device")
class Faults(unittest.TestCase):
    """One daemon a fault: reductions along an axis that are under way when it comes."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self, faults, **options):
        daemon = Daemon(self.folder, program=PROGRAM, env={"CURED_TEST_GPU": faults}, **dict(OPTIONS, **options))
        self.addCleanup(daemon.stop, signal.SIGKILL)
        return daemon

    def run_all(self, daemon, shape, raw, ops=("sum",)):
        """The statuses of some calls at once, and of one afterwards."""
        memory = Stand(raw)
        self.addCleanup(memory.free)
        with daemon.connect() as c:
            self.assertEqual(len(raw), c.registered(c.start_register(1, memory.source(), memory.descriptor)))
            streams = [c.start_region("i64", ops, 1, axis=shape) for _ in range(4)]
            first = [c.wait(stream).status for stream in streams]
            after = c.region("i64", ops, 1, axis=shape).status
            other = c.stream("i64", ops, raw, axis=shape).status
            return first, after, other

    def test_one_call_fails(self):
        for faults in ("fail_fold=2", "fail_fault=3,polls=4"):
            daemon = self.start(faults)
            first, after, other = self.run_all(daemon, (3000, 7, 1), bytes(8 * 21000))
            self.assertEqual(1, sum(status is not None for status in first), faults)
            self.assertEqual((None, None), (after, other))
            daemon.check_end(self, daemon.stop())

    def test_the_device_is_lost(self):
        for faults in ("lose_at=1", "lose_at=2", "lose_at=7,polls=5", "hang_at=1", "hang_at=3"):
            daemon = self.start(faults, gpu_timeout_ms=300 if "hang" in faults else 60000)
            first, after, other = self.run_all(daemon, (3000, 7, 1), bytes(8 * 21000))
            self.assertIn(UNAVAILABLE, [status and status.code for status in first], faults)
            self.assertEqual(UNAVAILABLE, after.code)
            self.assertIn("lost", after.message)
            self.assertIsNone(other)
            daemon.check_end(self, daemon.stop())

    def test_the_device_is_lost_while_the_client_takes_nothing(self):
        """The job waits for credit and nothing of it is under way: it ends when the client takes answers again."""
        count = 2 << 20
        memory = Stand(bytes(count))
        self.addCleanup(memory.free)
        daemon = self.start("lose_at=100", backend="cuda")
        with daemon.connect() as c:
            self.assertEqual(count, c.registered(c.start_register(1, memory.source(), memory.descriptor)))
            stream = c.start_region("u8", ["sum"], 1, axis=(count, 1, 1))
            answer = c.answers[stream]
            answer.auto_credit = False
            c.until(lambda: answer.window == 0)
            # As many as were sent wait: 8 bytes for one.
            wait_for("a job that pauses", lambda: daemon.counters()["gpu_bytes_total"] == 2 * (4 << 20) // 8)
            while not daemon.counters()["gpus_lost_total"]:
                self.assertIsNone(c.stream("i64", ["sum"], bytes(1 << 20)).status)
            self.assertFalse(answer.over)
            answer.auto_credit = True
            c.give_credit()
            self.assert_lost(c.wait(stream).status)
            self.assertIsNone(c.unregister(1))
        wait_for("everything given back", lambda: not any(
            count for name, count in daemon.busy_gauges().items() if name != "connections"))
        daemon.check_end(self, daemon.stop())

    def assert_lost(self, status):
        self.assertEqual(UNAVAILABLE, status.code)
        self.assertIn("lost", status.message)

    def test_host_memory(self):
        """Whatever becomes of the GPU: the CPU goes on, and no answer is sent twice or not at all."""
        r = random.Random(9)
        raw = r.randbytes(400 * 3000)
        want = b"".join(max(raw[400 * i:400 * i + 400]).to_bytes(1, "little") for i in range(3000))
        for faults in ("fail_copy=2", "fail_fold=2", "fail_fault=3", "lose_at=1", "lose_at=4", "lose_at=9,polls=3", "hang_at=2", "lacks=0xffffffff"):
            daemon = self.start(faults, backend="cuda", gpu_timeout_ms=300 if "hang" in faults else 60000)
            with daemon.connect() as c, tempfile.TemporaryFile(dir=self.folder) as f:
                f.write(raw)
                f.flush()
                for _ in range(2):
                    streams = [c.start_descriptor("u8", ["max"], f.fileno(), axis=(3000, 400, 1)) for _ in range(4)]
                    for stream in streams:
                        answer = c.wait(stream)
                        self.assertIsNone(answer.status, faults)
                        self.assertEqual(want, answer.array(0, 1, 3000), faults)
            daemon.check_end(self, daemon.stop())

    def test_others_register_while_an_integer_is_looked_at(self):
        """However long its column is: between two pieces of it the lane does what others wait for."""
        raw = struct.pack("<q", 2**63 - 1) * 4000000
        daemon = self.start("polls=5000")
        memory, small = Stand(raw), Stand(bytes(64))
        self.addCleanup(memory.free)
        self.addCleanup(small.free)
        with daemon.connect() as c:
            for number, m in ((1, memory), (2, small)):
                self.assertEqual(m.size, c.registered(c.start_register(number, m.source(), m.descriptor)))
            stream = c.start_region("i64", ["sum"], 1, axis=(1, 4000000, 1))
            for number in (3, 4, 5):  # one of them comes while it is looked at
                self.assertEqual(64, c.registered(c.start_register(number, small.source(), small.descriptor)))
            self.assertFalse(c.answers[stream].over)
            c.send(frame(CANCEL, stream))
            self.assertEqual(CANCELLED, c.wait(stream).status.code)
        daemon.check_end(self, daemon.stop())

    def test_stopping_while_others_wait_for_the_lane(self):
        """Something that never ends is under way, and a region is not opened before: the daemon ends without either."""
        daemon = self.start("hang_at=1", gpu_timeout_ms=3600000, drain_timeout_ms=1)
        memory = Stand(bytes(8000))
        self.addCleanup(memory.free)
        with daemon.connect() as c:
            self.assertEqual(8000, c.registered(c.start_register(1, memory.source(), memory.descriptor)))
            c.start_region("i64", ["sum"], 1, axis=(10, 100, 1))
            c.start_register(2, memory.source(), memory.descriptor)
            wait_for("two regions", lambda: daemon.counters()["regions"] == 2)
            daemon.process.send_signal(signal.SIGTERM)
            daemon.check_end(self, daemon.wait())

    def test_stopping_before_the_device_is_lost(self):
        """What is under way comes back when everything it would be given to has ended."""
        daemon = self.start("hang_at=1", gpu_timeout_ms=4000, drain_timeout_ms=1)
        memory = Stand(bytes(8000))
        self.addCleanup(memory.free)
        with daemon.connect() as c:
            self.assertEqual(8000, c.registered(c.start_register(1, memory.source(), memory.descriptor)))
            c.start_region("i64", ["sum"], 1, axis=(10, 100, 1))
            c.ping()
            daemon.process.send_signal(signal.SIGTERM)
            daemon.check_end(self, daemon.wait())

    def test_while_an_integer_is_looked_at(self):
        """The sum that does not fit is fetched piece by piece, when the copy fails or the device goes."""
        raw = struct.pack("<q", 2**63 - 1) * 400000
        for faults in ("lose_at=3", "lose_at=5", "fail_fault=2", "fail_fault=3,polls=2"):
            daemon = self.start(faults)
            first, after, other = self.run_all(daemon, (1, 400000, 1), raw)
            codes = {status.code for status in first} - {OUT_OF_RANGE, INTERNAL}  # INTERNAL: the poll that fails
            self.assertEqual({UNAVAILABLE} if "lose" in faults else set(), codes, faults)
            self.assertEqual(UNAVAILABLE if "lose" in faults else OUT_OF_RANGE, after.code, faults)
            self.assertEqual(OUT_OF_RANGE, other.code)
            daemon.check_end(self, daemon.stop())

    def test_what_the_lane_folds_itself(self):
        """When the device is lost, when a copy fails, and when nobody wants it any more."""
        raw = struct.pack("<d", 1.25) * 900000
        shape = (3, 300000, 1)
        for faults in ("lose_at=3", "lose_at=6,polls=3", "fail_fault=4", "polls=1000"):
            daemon = self.start(faults)
            memory = Stand(raw)
            self.addCleanup(memory.free)
            with daemon.connect() as c:
                self.assertEqual(len(raw), c.registered(c.start_register(1, memory.source(), memory.descriptor)))
                streams = [c.start_region("f64", ["prod"], 1, axis=shape) for _ in range(3)]
                if "polls=1000" in faults:
                    c.send(frame(CANCEL, streams[1]))
                codes = [status and status.code for status in (c.wait(stream).status for stream in streams)]
                if "lose" in faults:
                    self.assertEqual({UNAVAILABLE}, set(codes))
                elif "fail" in faults:
                    self.assertEqual([INTERNAL], [code for code in codes if code])
                else:
                    self.assertEqual([None, CANCELLED, None], codes)
            wait_for("everything given back", lambda d=daemon: not any(
                count for name, count in d.busy_gauges().items() if name != "connections"))
            daemon.check_end(self, daemon.stop())

    def test_two_devices(self):
        """Each answers of its own memory, with a kernel or without; both, and the CPU, of the host's."""
        daemon = self.start("devices=2", gpu_min_bytes=1)
        r = random.Random(3)
        with daemon.connect() as c:
            arrays = [r.randbytes(6 << 20) for _ in range(2)]
            want = [b"".join(max(raw[1000 * i:1000 * i + 1000]).to_bytes(1, "little") for i in range(6000)) for raw in arrays]
            for ordinal, raw in enumerate(arrays):
                memory = Stand(raw, ordinal)
                self.addCleanup(memory.free)
                self.assertEqual(len(raw), c.registered(c.start_register(ordinal + 1, memory.source(), memory.descriptor)))
            for _ in range(3):
                streams = [c.start_region("u8", ["max"], 1 + n % 2, 0, 6000000, axis=(6000, 1000, 1)) for n in range(6)]
                products = [c.start_region("f64", ["prod"], 1 + n % 2, 0, 700000, axis=(7, 100000, 1)) for n in range(2)]
                for number, stream in enumerate(streams):
                    answer = c.wait(stream)
                    self.assertIsNone(answer.status)
                    self.assertEqual(want[number % 2], answer.array(0, 1, 6000))
                for number, stream in enumerate(products):
                    answer = c.wait(stream)
                    self.assertIsNone(answer.status)
                    on_host = c.stream("f64", ["prod"], arrays[number][:5600000], axis=(7, 100000, 1))
                    self.assertEqual(on_host.array(0, 8, 7), answer.array(0, 8, 7))
            answer = c.stream("u8", ["max"], arrays[0][:6000000], axis=(6000, 1000, 1))
            self.assertEqual(want[0], answer.array(0, 1, 6000))
        daemon.check_end(self, daemon.stop())

    def test_events(self):
        """Jobs wait for their region's event, those of the lane's own too; one whose event fails is nobody else's matter."""
        raw = struct.pack("<d", 1.25) * 200000
        shape = (2, 100000, 1)
        daemon = self.start("polls=40")
        paths = [os.path.join(self.folder, name) for name in ("waits", "fails")]
        with daemon.connect() as c:
            memories = [Stand(raw) for _ in range(3)]
            for number, memory in enumerate(memories):
                self.addCleanup(memory.free)
                event = b""
                if number:
                    open(paths[number - 1], "wb").close()
                    event = paths[number - 1].encode().ljust(64, b"\0")
                source = cuda_descriptor_region(memory.size, event=event)
                self.assertEqual(len(raw), c.registered(c.start_register(number + 1, source, memory.descriptor)))
            os.unlink(paths[1])
            for op in ("prod", "sum"):
                waits = c.start_region("f64", [op], 2, axis=shape)
                for turn in range(6):
                    first = [c.start_region("f64", [op], 1, axis=shape) for _ in range(2)]
                    fails = c.start_region("f64", [op], 3, axis=shape)
                    plain_sum = c.start_region("f64", ["sum"], 1)
                    self.assertEqual(INVALID_ARGUMENT, c.wait(fails).status.code)
                    for stream in (*first, plain_sum):
                        self.assertIsNone(c.wait(stream).status)
                self.assertFalse(c.answers[waits].over)
                with open(paths[0], "wb") as f:
                    f.write(b"1")
                self.assertIsNone(c.wait(waits).status)
                open(paths[0], "wb").close()
        daemon.check_end(self, daemon.stop())

    def test_cancelled_while_an_integer_is_looked_at(self):
        raw = struct.pack("<q", 2**63 - 1) * 4000000
        daemon = self.start("polls=50")
        memory = Stand(raw)
        self.addCleanup(memory.free)
        with daemon.connect() as c:
            self.assertEqual(len(raw), c.registered(c.start_register(1, memory.source(), memory.descriptor)))
            for wait in (0, 0.01, 0.05):
                stream = c.start_region("i64", ["sum"], 1, axis=(1, 4000000, 1))
                time.sleep(wait)
                c.send(frame(CANCEL, stream))
                self.assertIn(c.wait(stream).status.code, (CANCELLED, OUT_OF_RANGE))
        wait_for("everything given back", lambda: not any(
            count for name, count in daemon.busy_gauges().items() if name != "connections"))
        daemon.check_end(self, daemon.stop())


if __name__ == "__main__":
    main()
