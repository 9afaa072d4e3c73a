#!/usr/bin/env python3
"""What the daemon says of its calls: counts, times and the slowest, by the native protocol and by gRPC."""
import contextlib
import os
import re
import tempfile
import unittest

import grpc_client

grpc_client.need("grpc", "numpy")
import grpc  # noqa: E402
import numpy as np  # noqa: E402

from cured_daemon import DaemonTest, main, wait_for  # noqa: E402

pb, services = grpc_client.stubs()
SOURCE = grpc_client.SOURCE
INVALID_ARGUMENT, CANCELLED, UNIMPLEMENTED = 3, 1, 12


def risen(before, after, name):
    """Rows of a dict of counts that became more, and by how much."""
    return {key: value - before[name].get(key, 0) for key, value in after[name].items()
            if value != before[name].get(key, 0)}


class StatsTest(DaemonTest):
    def setUp(self):
        self.watch = self.daemon.connect()
        self.addCleanup(self.watch.close)
        self.before = self.watch.stats()

    def rows(self, name):
        return risen(self.before, self.watch.stats(), name)

    def calls(self):
        """Counts of requests by label, without those of stats."""
        return {key: n for key, n in self.rows("counts").items() if key[0] != "stats"}

    def floats(self, n):
        return np.arange(n, dtype="f4").tobytes()


class Native(StatsTest):
    def test_a_small_array_is_inline(self):
        with self.daemon.connect() as conn:
            conn.inline("f32", ("sum", "max"), self.floats(1024))
        self.assertEqual({("reduce", "inline", 0): 1}, self.calls())
        self.assertEqual({"sum": 1, "max": 1}, self.rows("ops"))
        self.assertEqual({"f32": 4096}, self.rows("input_bytes"))
        after = self.watch.stats()
        self.assertEqual(4096, after["bytes"] - self.before["bytes"])
        for stage in ("queue", "run", "total"):
            self.assertGreater(after["stages"][stage]["count"], self.before["stages"][stage]["count"])
        self.assertEqual(after["stages"]["receive"], self.before["stages"]["receive"])
        self.assertEqual(after["lanes"]["cpu"]["bytes"], self.before["lanes"]["cpu"]["bytes"])

    def test_a_stream_goes_to_a_lane(self):
        with self.daemon.connect() as conn:
            conn.stream("f32", ("prod",), self.floats(1 << 20))  # in order, so a worker's
        self.assertEqual({("reduce", "stream", 0): 1}, self.calls())
        after = self.watch.stats()
        cpu, was = after["lanes"]["cpu"], self.before["lanes"]["cpu"]
        self.assertEqual(4 << 20, cpu["bytes"] - was["bytes"])
        self.assertGreater(cpu["launches"], was["launches"])
        self.assertGreater(cpu["busy_ns"], was["busy_ns"])
        for stage in ("receive", "queue", "run", "send", "total"):
            self.assertGreater(after["stages"][stage]["count"], self.before["stages"][stage]["count"], stage)

    def test_a_stream_that_is_alone_is_the_loops(self):
        for _ in range(50):  # on a busy machine a worker that is slow at the first slab may be given the rest
            self.before = self.watch.stats()
            with self.daemon.connect() as conn:
                conn.stream("f32", ("sum",), self.floats(1 << 20))
            self.assertEqual({("reduce", "stream", 0): 1}, self.calls())
            self.assertEqual({"f32": 4 << 20}, self.rows("input_bytes"))
            after = self.watch.stats()
            if after["lanes"]["cpu"]["bytes"] - self.before["lanes"]["cpu"]["bytes"] < 4 << 20:
                break
        self.assertLess(after["lanes"]["cpu"]["bytes"] - self.before["lanes"]["cpu"]["bytes"], 4 << 20)
        for stage in ("receive", "queue", "run", "send", "total"):
            self.assertGreater(after["stages"][stage]["count"], self.before["stages"][stage]["count"], stage)

    def test_descriptors_and_regions(self):
        with tempfile.TemporaryFile() as f, self.daemon.connect() as conn:
            f.write(self.floats(100000))
            f.flush()
            conn.descriptor("f32", ("mean",), f.fileno())
            conn.register(1, f.fileno())
            held = self.watch.stats()
            conn.region("f32", ("min",), 1)
            conn.unregister(1)
        self.assertEqual({("reduce", "descriptor", 0): 1, ("reduce", "region", 0): 1, ("register", "none", 0): 1,
                          ("unregister", "none", 0): 1}, self.calls())
        self.assertEqual({"f32": 800000}, self.rows("input_bytes"))
        self.assertEqual({"mean": 1, "min": 1}, self.rows("ops"))
        self.assertEqual(1, held["connections"]["native"] - self.before["connections"]["native"])

    def test_small_shared_memory_is_folded_on_the_loop(self):
        """As an inline array is, but counted as what it is. What is larger, or on a disk, goes to a lane."""
        with open("/proc/swaps") as f:
            kernel = tuple(int(n) for n in re.findall(r"\d+", os.uname().release)[:2])
            if len(f.readlines()) > 1 and kernel < (6, 5):
                self.skipTest("this host has swap, and its Linux cannot say what is in memory (cachestat)")
        memory = os.memfd_create("small")
        self.addCleanup(os.close, memory)
        os.write(memory, self.floats(5000))
        before = self.daemon.counters()["calls_inline"]
        with tempfile.TemporaryFile(dir="/var/tmp") as disk, self.daemon.connect() as conn:
            disk.write(self.floats(4096))
            disk.flush()
            conn.register(1, memory)
            for count in (4096, 4097):
                conn.descriptor("f32", ("sum",), memory, count=count)
                conn.region("f32", ("sum",), 1, count=count)
            conn.descriptor("f32", ("sum",), disk.fileno())
            self.assertEqual(2, self.daemon.counters()["calls_inline"] - before)
            self.assertEqual(2 * (4096 + 4097) * 4 + 16384, self.rows("input_bytes")["f32"])
        self.assertEqual({("reduce", "descriptor", 0): 3, ("reduce", "region", 0): 2, ("register", "none", 0): 1,
                          ("info", "none", 0): 2}, self.calls())

    def test_failures_count_by_status_and_reason(self):
        with self.daemon.connect() as conn:
            answer = conn.inline("f32", ("bit_and",), self.floats(4))
            self.assertEqual(INVALID_ARGUMENT, answer.status.code)
            stream = conn.start_stream("f32", ("sum",), 1 << 20)
            conn.send_data(stream, bytes(1000))
        wait_for("the call of a client that left", lambda: ("reduce", "stream", CANCELLED) in self.calls())
        calls = self.calls()
        self.assertEqual(1, sum(n for (method, _, code), n in calls.items() if code == INVALID_ARGUMENT))
        self.assertEqual({"request": 1}, self.rows("rejected"))
        after = self.watch.stats()
        self.assertEqual(2, after["failed"] - self.before["failed"])

    def test_a_merge_is_counted(self):
        with self.daemon.connect() as conn:
            part = conn.inline("f32", ("sum",), self.floats(10), partial=True).partial
            conn.merge(("sum",), [part, conn.inline("f32", ("sum",), self.floats(5), partial=True, first=10).partial])
        self.assertEqual(1, self.calls()[("merge", "stream", 0)])

    def test_the_slow_log_says_who_and_what(self):
        with self.daemon.connect() as conn:
            conn.stream("f64", ("sum", "min"), bytes(16 << 20))
        found = [c for c in self.watch.slow_log() if c["ops"] == "sum,min" and c["bytes"] == 16 << 20]
        self.assertEqual(1, len(found))
        call = found[0]
        self.assertEqual((os.getuid(), os.getpid()), (call["uid"], call["pid"]))
        self.assertEqual(("native", "unix", "reduce", "stream", "f64"),
                         tuple(call[k] for k in ("front", "transport", "method", "source", "dtype")))
        self.assertEqual("loop", call["lanes"].split(",")[0])  # which begins what is alone
        self.assertGreaterEqual(call["total_ns"], call["run_ns"])
        log = self.watch.slow_log()
        self.assertEqual(sorted((c["total_ns"] for c in log), reverse=True), [c["total_ns"] for c in log])

    def test_strangers_see_only_themselves(self):
        if os.getuid() != 0:
            self.skipTest("only root can ask as another user")
        with self.daemon.connect() as conn:
            conn.stream("f64", ("sum",), bytes(8 << 20))
        os.chmod(self.daemon.folder, 0o755)
        os.chmod(self.daemon.address[5:], 0o777)
        with as_user(65534):
            stranger = self.daemon.connect()
        with stranger:
            self.assertEqual([], stranger.slow_log())
            self.assertEqual(["uid 65534"], stranger.stats()["users"])
        self.assertIn("uid 65534", self.users_while(65534))

    def users_while(self, uid):
        with as_user(uid):
            stranger = self.daemon.connect()
        with stranger:
            return self.watch.stats()["users"]


class Grpc(StatsTest):
    def setUp(self):
        super().setUp()
        self.channel = grpc_client.channel(self.daemon.address)
        self.addCleanup(self.channel.close)
        self.cured = services.CuredStub(self.channel)

    def request(self, **fields):
        return pb.ReduceRequest(dtype=pb.DTYPE_F32, ops=[pb.OP_SUM], **fields)

    def test_methods_are_told_apart(self):
        self.cured.Reduce(self.request(data=self.floats(10)), timeout=60)
        self.cured.Reduce(self.request(data=self.floats(100000)), timeout=60)
        list(self.cured.ReduceStream(iter([pb.ReduceChunk(head=self.request()),
                                           pb.ReduceChunk(data=self.floats(100000))]), timeout=60))
        self.cured.Info(pb.InfoRequest(), timeout=60)
        with self.assertRaises(grpc.RpcError):
            self.cured.Reduce(pb.ReduceRequest(dtype=pb.DTYPE_F32, ops=[99], data=b"1234"), timeout=60)
        with self.assertRaises(grpc.RpcError):
            self.channel.unary_unary("/cured.v1.Cured/Nothing")(b"", timeout=60)
        self.assertEqual({("reduce", "inline", 0): 2, ("reduce_stream", "stream", 0): 1, ("info", "none", 0): 1,
                          ("reduce", "inline", UNIMPLEMENTED): 1, ("unknown", "none", UNIMPLEMENTED): 1}, self.calls())
        self.assertEqual(1, self.watch.stats()["connections"]["grpc"])

    def test_stats_over_grpc_are_the_same(self):
        self.cured.Reduce(self.request(data=self.floats(10)), timeout=60)
        stats = self.cured.Stats(pb.StatsRequest(), timeout=60)
        counts = {(row.method, row.source, row.code): row.count for row in stats.counts}
        native = self.watch.stats()
        self.assertEqual({k: n for k, n in native["counts"].items() if k[0] != "stats"},
                         {k: n for k, n in counts.items() if k[0] != "stats"})
        self.assertEqual({row.name: row.value for row in stats.ops}, native["ops"])
        self.assertEqual([lane.name for lane in stats.lanes], list(native["lanes"]))

    def test_the_slow_log_names_its_clients(self):
        data = bytes(3 << 20)
        self.cured.Reduce(self.request(data=data), timeout=60)
        log = self.cured.SlowLog(pb.SlowLogRequest(), timeout=60)
        found = [c for c in log.calls if c.front == "grpc" and c.bytes == len(data)]
        self.assertEqual(1, len(found))
        self.assertIn("grpc-python", found[0].client)
        self.assertEqual((os.getpid(), "inline"), (found[0].pid, found[0].source))


class Docs(unittest.TestCase):
    def test_operations_has_every_metric(self):
        """What /metrics has is explained; a row may leave out what names before it begin with."""
        with open(os.path.join(SOURCE, "docs", "OPERATIONS.md"), encoding="utf-8") as f:
            page = f.read()
        names = set()
        for path, pattern in (("base/metrics.def", r'CR_METRIC\(\w+, \w+, "(\w+)"'), ("server/stats/family.def", r'CR_FAMILY\(\w+, "(\w+)"')):
            with open(os.path.join(SOURCE, path), encoding="utf-8") as f:
                names.update(re.findall(pattern, f.read()))
        self.assertGreater(len(names), 40)
        short = {"cured_connections_refused_total": "`_refused_total`", "cured_connections_ended_total": "`_ended_total`"}
        self.assertEqual([], sorted(n for n in names if not re.search("`" + n + "[`{]", page) and short.get(n, n) not in page))


@contextlib.contextmanager
def as_user(uid):
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


if __name__ == "__main__":
    main()
