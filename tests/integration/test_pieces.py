"""test_pieces: one array in pieces that lie in several regions, of the host and of two stand-in GPUs: the bits of the whole, errors
that name the piece, and nothing left behind, however the call ends."""
import os
import random
import tempfile

import test_gpu_regions
from cured_daemon import Daemon, DaemonTest, main, wait_for
from cured_wire import (CANCELLED, DEADLINE_EXCEEDED, END, INVALID_ARGUMENT, NOT_FOUND, UNAVAILABLE, bytes_field, cuda_descriptor_region,
                        descriptor_region, frame, uint_field)
from expected import expect_all, plain

SEED = int(os.environ.get("CURED_TEST_SEED", "20260105"))
OPS = ["sum", "min", "argmin", "argmax", "count_nonzero", "std"]
CANCEL = 5


def piece(region, offset=0, count=None):
    return uint_field(1, region) + uint_field(2, offset) + (uint_field(4, 1) if count is None else uint_field(3, count))


def pieces_input(*pieces):
    return bytes_field(4, b"".join(bytes_field(1, piece(*p)) for p in pieces))


def together(conn, dtype, ops, *pieces, **options):
    stream = conn.open_stream()
    conn.send(conn.call_frame(stream, dtype, ops, pieces_input(*pieces), flags=END, **options))
    return stream


def ask(conn, dtype, ops, *pieces, **options):
    return conn.wait(together(conn, dtype, ops, *pieces, **options))


class Pieces(DaemonTest):
    def setUp(self):
        self.conn = self.connect()
        self.random = random.Random(SEED)

    def test_any_cut_of_any_memory(self):
        for dtype, size in (("f32", 4), ("i8", 1), ("u64", 8), ("f64", 8)):
            data = bytes(plain(dtype, 20000))
            cuts = sorted(self.random.randint(0, 20000) for _ in range(self.random.randint(1, 15)))
            bounds = list(zip([0] + cuts, cuts + [20000]))
            makers = [self.sealed, self.memfd, self.file]
            for number, (a, b) in enumerate(bounds, 1):
                self.conn.register(number, self.random.choice(makers)(b"xyz" + data[a * size:b * size]).fileno())
            parts = [(number, 3, b - a) for number, (a, b) in enumerate(bounds, 1)]
            wanted = expect_all(OPS, dtype, data)
            self.assertEqual(wanted, ask(self.conn, dtype, OPS, *parts).keys(), "seed %d" % SEED)
            self.assertEqual(wanted, ask(self.conn, dtype, OPS, *parts[:-1], parts[-1][:2]).keys())
            whole = self.conn.inline(dtype, OPS, data, partial=True, first=8192).partial
            self.assertEqual(whole, ask(self.conn, dtype, OPS, *parts, partial=True, first=8192).partial)
            for number, _ in enumerate(bounds, 1):
                self.assertIsNone(self.conn.unregister(number))

    def test_one_region_in_pieces_before_it_is_open(self):
        """Calls may follow Register in one write; pieces may overlap, and come in any order."""
        data = bytes(plain("f32", 5000))
        held = self.memfd(data)
        self.conn.start_register(1, descriptor_region(), held.fileno())
        wanted = expect_all(OPS, "f32", data[8000:] + data[:12000])
        self.assertEqual(wanted, ask(self.conn, "f32", OPS, (1, 8000, 3000), (1, 0, 3000)).keys())
        self.assertEqual(expect_all(["sum", "count"], "f32", b""), ask(self.conn, "f32", ["sum", "count"], (1, 4, 0), (1, 0, 0)).keys())

    def test_products_at_their_blocks(self):
        data = bytes(plain("f64", 8192 + 100))
        self.conn.register(1, self.memfd(data[:65536]).fileno())
        self.conn.register(2, self.memfd(data[65536:]).fileno())
        self.assertEqual(self.conn.inline("f64", ["prod"], data).keys(), ask(self.conn, "f64", ["prod"], (1, 0, 8192), (2,)).keys())
        answer = ask(self.conn, "f64", ["prod"], (1, 0, 5000), (2,))
        self.assert_sentence(answer.status, INVALID_ARGUMENT, "regions[1]", "first", "4096")

    def test_what_is_refused(self):
        data = bytes(plain("f32", 1000))
        self.conn.register(1, self.memfd(data).fileno())
        cases = [([(1, 0, 10), (9, 0, 10), (1, 0, 10)], {}, NOT_FOUND, ["regions[1]", "9"]),
                 ([(1, 0, 10), (1, 0, 1001)], {}, INVALID_ARGUMENT, ["regions[1]", "count"]),
                 ([(1, 0), (1, 0, 10)], {}, INVALID_ARGUMENT, ["pieces[0]", "to_end", "count"]),
                 ([], {}, INVALID_ARGUMENT, ["pieces has 0", "1 to 16"]),
                 ([(1, 0, 1)] * 17, {}, INVALID_ARGUMENT, ["pieces has 17", "1 to 16"]),
                 ([(1, 0, 500), (1, 0, 500)], {"axis": (10, 100, 1)}, INVALID_ARGUMENT, ["axis"]),
                 ([(1, 0, 500)], {"kernel": "v7_shuffle"}, 0, ["kernel"]),
                 ([(1, 0, 2**62), (1, 0, 2**62), (1, 0, 1)], {}, INVALID_ARGUMENT, ["regions[1]"]),
                 ([(1, 0, 5)], {"first": 2**63 - 1}, INVALID_ARGUMENT, ["2^63"])]
        for parts, options, code, words in cases:
            with self.subTest(words):
                status = ask(self.conn, "f32", ["sum"], *parts, **options).status
                self.assert_sentence(status, code or status.code, *words)
        self.assertEqual(expect_all(["sum"], "f32", data * 16), ask(self.conn, "f32", ["sum"], *[(1, 0, 1000)] * 16).keys())
        unplaced = ask(self.conn, "f32", ["sum"], (1, 0, 10), (1, 40, 10), partial=True, unplaced=True)
        self.assertEqual(self.conn.inline("f32", ["sum"], data[:80], partial=True, unplaced=True).partial, unplaced.partial)

    def test_the_opening_that_fails(self):
        self.conn.register(1, self.memfd(bytes(4000)).fileno())
        reading, writing = os.pipe()
        try:
            self.conn.start_register(2, descriptor_region(), reading)
            answer = ask(self.conn, "f32", ["sum"], (1, 0, 1000), (2, 0, 10))
            self.assertIsNotNone(answer.status)
            self.assertIn("regions[1]", answer.status.message)
        finally:
            os.close(reading)
            os.close(writing)

    def test_over_tcp_there_are_none(self):
        daemon = Daemon(self.folder, ["tcp:127.0.0.1:0"])
        try:
            with daemon.connect() as conn:
                self.assert_sentence(ask(conn, "f32", ["sum"], (1, 0, 1)).status, NOT_FOUND, "regions[0]")
        finally:
            daemon.check_end(self, daemon.stop())

    def test_calls_that_end_early(self):
        """CANCEL, a deadline, and a connection that goes, while the pieces are under way: everything comes back."""
        for end in ("cancel", "deadline", "gone", "answer"):
            conn = self.daemon.connect()
            held = self.sealed(bytes(64 << 20))
            for number in (1, 2, 3):
                conn.register(number, held.fileno())
            parts = [(number, 0, 16 << 20) for number in (1, 2, 3)] * 5
            stream = together(conn, "f32", ["sum"], *parts, timeout_ms=1 if end == "deadline" else 0)
            if end == "cancel":
                conn.send(frame(CANCEL, stream))
            if end != "gone":
                answer = conn.wait(stream)
                if answer.status:
                    self.assertIn(answer.status.code, (CANCELLED, DEADLINE_EXCEEDED))
                else:
                    self.assertEqual(15 << 24, answer.count)
            conn.close()
            held.close()
            wait_for("calls, jobs and regions given back",
                     lambda: not any(self.daemon.gauges()[name] for name in ("calls", "jobs", "regions", "region_bytes")))

    def test_it_counts_as_one_call(self):
        """In metrics, stats, the slow log and the log, whatever becomes of it, with the bytes of all pieces."""
        daemon = Daemon(tempfile.mkdtemp(dir=self.daemon.folder), log_calls="all")
        self.addCleanup(daemon.stop)
        conn, watch = daemon.connect(), daemon.connect()
        self.addCleanup(conn.close)
        self.addCleanup(watch.close)
        held = self.sealed(bytes(4 << 20))
        for number in (1, 2, 3):
            conn.register(number, held.fileno())
        before = watch.stats()
        self.assertIsNone(ask(conn, "f32", ["sum", "max"], *[(number, 0, 1 << 19) for number in (1, 2, 3)]).status)
        self.assertEqual(NOT_FOUND, ask(conn, "f32", ["sum"], (1, 0, 1), (9, 0, 1), (2, 0, 1)).status.code)
        after = watch.stats()
        counts = {key: n - before["counts"].get(key, 0) for key, n in after["counts"].items() if key[0] != "stats"}
        self.assertEqual({("reduce", "region", 0): 1, ("reduce", "region", NOT_FOUND): 1}, {k: n for k, n in counts.items() if n})
        self.assertEqual({"sum": 1, "max": 1}, after["ops"])
        self.assertEqual({"f32": 3 << 21}, after["input_bytes"])
        self.assertEqual(1, after["stages"]["queue"]["count"] - before["stages"]["queue"]["count"])
        self.assertEqual(0, after["in_flight"])
        slow = [call for call in watch.slow_log() if call["source"] == "region"]
        self.assertEqual([3 << 21], [call["bytes"] for call in slow if not call["code"]])
        self.assertIn("cpu", [call["lanes"] for call in slow if not call["code"]][0])
        wait_for("both lines", lambda: sum("source=region" in line for line in daemon.lines) >= 2)
        daemon.stop()
        lines = [line for line in daemon.lines if "source=region" in line]
        self.assertEqual(2, len(lines), lines)
        self.assertIn("bytes=%d" % (3 << 21), lines[0])
        self.assertIn("regions[1]", lines[1])

    def test_progress_of_all(self):
        held = self.sealed(bytes(64 << 20))
        self.conn.register(1, held.fileno())
        answer = ask(self.conn, "f32", ["std"], *[(1, 0, 16 << 20)] * 16, progress_ms=10)
        self.assertIsNone(answer.status)
        self.assertEqual(16 << 24, answer.count)


class TwoGpus(test_gpu_regions.GpuRegions):
    """Pieces in the memory of two stand-in GPUs and of the host."""

    ENV = {"CURED_TEST_GPU": "devices=2"}

    def fill(self, conn):
        data = bytes(plain("f32", 90000))
        for ordinal in (0, 1):
            part = data[ordinal * 160000:(ordinal + 1) * 160000]
            held = self.memory(part, ordinal=ordinal)
            uuid = bytes(15) + bytes([ordinal])
            self.assertEqual(len(part), conn.registered(conn.start_register(ordinal + 1, cuda_descriptor_region(len(part), device=uuid), held.fileno())))
        conn.register(3, self.memfd(data[320000:]).fileno())
        return data

    def test_both_and_the_host(self):
        data = self.fill(self.conn)
        self.assertEqual(expect_all(OPS, "f32", data), ask(self.conn, "f32", OPS, (1, 0, 40000), (2, 0, 40000), (3,)).keys())
        swapped = data[160000:320000] + data[:160000]
        self.assertEqual(expect_all(OPS, "f32", swapped), ask(self.conn, "f32", OPS, (2, 0, 40000), (1,)).keys())

    def test_a_lost_gpu_leaves_the_other(self):
        """Its piece fails the call, which says so; the other's region, and the host's, go on."""
        daemon = Daemon(self.folder, ["unix:" + os.path.join(self.folder, "lost.sock")], program=self.PROGRAM,
                        env={"CURED_TEST_GPU": "devices=2,lose_at=1"}, **self.OPTIONS)
        try:
            with daemon.connect() as conn:
                data = self.fill(conn)
                status = ask(conn, "f32", OPS, (1, 0, 40000), (2, 0, 40000), (3,)).status
                self.assert_sentence(status, UNAVAILABLE, "regions[")
                lost = int(status.message.split("[")[1][0]) + 1
                other = 3 - lost
                self.assert_sentence(conn.region("f32", OPS, lost).status, UNAVAILABLE)
                part = data[(other - 1) * 160000:other * 160000]
                self.assertEqual(expect_all(OPS, "f32", part + data[320000:]),
                                 ask(conn, "f32", OPS, (other, 0, 40000), (3,)).keys())
        finally:
            daemon.check_end(self, daemon.stop())


if __name__ == "__main__":
    print("seed", SEED)
    main()
