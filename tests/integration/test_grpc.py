#!/usr/bin/env python3
"""gRPC on the daemon's sockets, by grpcio: every method, over Unix and TCP, beside the native protocol."""
import random
import threading
import time
import unittest

import grpc_client

grpc_client.need("grpc", "numpy")
import grpc  # noqa: E402
import numpy as np  # noqa: E402

from admin_client import get  # noqa: E402
from cured_daemon import DaemonTest, Daemon, main, wait_for  # noqa: E402

pb, services = grpc_client.stubs()
TYPES = {"u8": "u1", "i16": "i2", "i64": "i8", "f32": "f4", "f64": "f8"}
PLAIN = [("grpc.max_receive_message_length", 4 << 20)]  # grpcio's default, which answers must keep to


def request(array, ops=("sum",), **fields):
    kind = {v: k for k, v in TYPES.items()}[array.dtype.str[1:]]
    return pb.ReduceRequest(dtype=pb.Dtype.Value("DTYPE_" + kind.upper()),
                            ops=[pb.Op.Value("OP_" + op.upper()) for op in ops], **fields)


def unary(array, ops=("sum",), **fields):
    return request(array, ops, data=array.tobytes(), **fields)


def chunks(array, size, ops=("sum",), progress_ms=0, **fields):
    yield pb.ReduceChunk(head=request(array, ops, **fields), progress_ms=progress_ms)
    data = array.tobytes()
    for at in range(0, len(data), size):
        yield pb.ReduceChunk(data=data[at:at + size])


def value(result):
    kinds = {pb.DTYPE_F64: "f8", pb.DTYPE_F32: "f4", pb.DTYPE_I64: "i8", pb.DTYPE_U64: "u8"}
    return np.frombuffer(result.value, kinds[result.dtype])[0]


class GrpcTest(DaemonTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.rng = np.random.default_rng(random.getrandbits(32))

    def setUp(self):
        self.channel = grpc_client.channel(self.daemon.address, *PLAIN)
        self.addCleanup(self.channel.close)
        self.cured = services.CuredStub(self.channel)

    def failure(self, code, call, *words):
        with self.assertRaises(grpc.RpcError) as caught:
            answer = call()
            if hasattr(answer, "__next__"):
                list(answer)
        self.assertEqual(code, caught.exception.code(), caught.exception.details())
        for word in words:
            self.assertIn(word, caught.exception.details())
        return caught.exception


class Methods(GrpcTest):
    def test_reduce(self):
        """Arrays of any length in one message: folded on the loop, gathered from two frames, and streamed to the lanes."""
        for kind in TYPES.values():
            for n in [0, 1, 63, 2048, 4096, 4097, 5000] + [int(self.rng.integers(0, 400000)) for _ in range(4)]:
                array = self.rng.integers(0, 100, n).astype(kind)
                answer = self.cured.Reduce(unary(array, ("sum", "count")), timeout=60)
                self.assertEqual(n, answer.count)
                self.assertEqual(int(array.astype("i8").sum()), value(answer.results[0]))
                self.assertEqual(n, value(answer.results[1]))

    def test_an_op_without_a_value_fails_alone(self):
        answer = self.cured.Reduce(unary(np.zeros(0, "f4"), ("sum", "max")), timeout=60)
        self.assertEqual([0, grpc.StatusCode.INVALID_ARGUMENT.value[0]], [answer.results[0].status, answer.results[1].status])
        self.assertIn("no elements", answer.results[1].message)

    def test_reduce_says_how_long_data_is(self):
        array = np.arange(10, dtype="f4")
        self.assertEqual(45, value(self.cured.Reduce(unary(array, input=pb.Input(inline=40)), timeout=60).results[0]))
        self.failure(grpc.StatusCode.INVALID_ARGUMENT,
                     lambda: self.cured.Reduce(unary(array, input=pb.Input(inline=44)), timeout=60), "44", "40")

    def test_reduce_stream(self):
        array = self.rng.integers(0, 100, 700001).astype("f4")
        for size in (1, 4099, 65536, 1 << 20, 3 << 20):
            part = array[:3000] if size == 1 else array
            answers = list(self.cured.ReduceStream(chunks(part, size), timeout=60))
            self.assertEqual(1, len(answers))
            self.assertEqual(part.astype("f8").sum(), value(answers[0].end.results[0]))
        empty = list(self.cured.ReduceStream(chunks(array[:0], 1), timeout=60))
        self.assertEqual(0, value(empty[0].end.results[0]))

    def test_answers_along_an_axis_come_in_parts(self):
        for outer, n, inner in ((300000, 3, 1), (1, 7, 200000), (12, 50, 999)):
            array = self.rng.integers(0, 100, outer * n * inner).astype("f4")
            want = array.reshape(outer, n, inner).astype("f8").sum(1).ravel()
            got, parts, end = np.full(outer * inner, np.nan), 0, None
            for answer in self.cured.ReduceStream(chunks(array, 1 << 20, axis=pb.Axis(outer=outer, n=n, inner=inner)), timeout=120):
                self.assertIsNone(end)
                if answer.HasField("end"):
                    end = answer.end
                    continue
                values = np.frombuffer(answer.part.values, "f8")
                got[answer.part.first:answer.part.first + len(values)] = values
                parts += 1
            self.assertTrue((got == want).all())
            self.assertEqual(len(array), end.count)
            self.assertGreater(parts, 0)

    def test_answers_along_an_axis_in_one_message(self):
        """Reduce's, which is one message whatever the shape and the ops."""
        for outer, n, inner in ((30000, 3, 1), (1, 7, 20000), (12, 50, 999), (1, 1, 1), (5, 0, 4), (0, 3, 2), (3, 2, 0)):
            array = self.rng.integers(0, 100, outer * n * inner).astype("f4")
            ops = ("sum", "count", "argmax", "max") if n else ("sum", "count")
            cube = array.reshape(outer, n, inner)
            answer = self.cured.Reduce(unary(array, ops, axis=pb.Axis(outer=outer, n=n, inner=inner)), timeout=60)
            got = [np.frombuffer(r.value, {pb.DTYPE_F64: "f8", pb.DTYPE_U64: "u8", pb.DTYPE_F32: "f4"}[r.dtype]) for r in answer.results]
            want = [cube.astype("f8").sum(1), np.full((outer, inner), n)] + ([cube.argmax(1), cube.max(1)] if n and cube.size else [])
            self.assertEqual([0] * len(ops), [r.status for r in answer.results])
            for g, w in zip(got, want):
                self.assertTrue((g == w.ravel()).all() and g.size == outer * inner, (outer, n, inner))
            self.assertEqual(len(array), answer.count)

    def test_one_message_of_answers_has_its_limit(self):
        """A million bytes of them; beyond, the sentence names the way that has none."""
        row = self.rng.integers(0, 100, 125001).astype("u1")
        for count in (1, 124999, 125000):
            answer = self.cured.Reduce(unary(row[:count], axis=pb.Axis(outer=count, n=1, inner=1)), timeout=60)
            self.assertTrue((np.frombuffer(answer.results[0].value, "u8") == row[:count]).all())
            self.assertLess(answer.ByteSize(), 1 << 20)
        ops = [op for op in pb.Op.keys() if op not in ("OP_UNSPECIFIED", "OP_BIT_AND", "OP_BIT_OR", "OP_BIT_XOR", "OP_PROD", "OP_QUANTILE", "OP_MEDIAN",
                                                         "OP_DOT", "OP_SQDIST", "OP_AVERAGE")]
        for fields in ({"ops": ("sum",)}, {"ops": ("sum", "count"), "outer": 62501}, {"ops": ("max",), "outer": 500001, "statuses": True},
                       {"ops": [op[3:].lower() for op in ops], "outer": 10000}):
            outer = fields.pop("outer", 125001)
            array = np.zeros(outer, "u1")
            self.failure(grpc.StatusCode.INVALID_ARGUMENT,
                         lambda: self.cured.Reduce(unary(array, axis=pb.Axis(outer=outer, n=1, inner=1), **fields), timeout=60),
                         "ReduceStream", "1000000", str(outer))
            self.assertGreater(len(list(self.cured.ReduceStream(chunks(array, 1 << 20, axis=pb.Axis(outer=outer, n=1, inner=1), **fields)))), 1)

    def test_one_message_has_statuses(self):
        array = self.rng.integers(0, 100, (20000, 2)).astype("i8")
        array[::3] = 2**62
        axis = pb.Axis(outer=len(array), n=2, inner=1)
        answer = self.cured.Reduce(unary(array, ("max", "sum"), axis=axis, statuses=True), timeout=60)
        lacking = np.arange(len(array)) % 3 == 0
        out_of_range = grpc.StatusCode.OUT_OF_RANGE.value[0]
        self.assertEqual([0, out_of_range], [r.status for r in answer.results])
        self.assertEqual(b"", answer.results[0].statuses)
        self.assertTrue((np.frombuffer(answer.results[1].statuses, "u1") == lacking * out_of_range).all())
        self.assertTrue((np.frombuffer(answer.results[1].value, "i8") == array.sum(1) * ~lacking).all())
        self.assertTrue((np.frombuffer(answer.results[0].value, "i8") == array.max(1)).all())
        self.failure(grpc.StatusCode.OUT_OF_RANGE, lambda: self.cured.Reduce(unary(array, axis=axis), timeout=60), str(2**63))

    def test_answers_without_a_value_have_a_status(self):
        array = self.rng.integers(0, 100, (200000, 2)).astype("i8")
        array[::3] = 2**62
        axis = pb.Axis(outer=len(array), n=2, inner=1)
        got, statuses = np.zeros(len(array), "i8"), np.zeros(len(array), "u1")
        for answer in self.cured.ReduceStream(chunks(array, 1 << 20, axis=axis, statuses=True), timeout=60):
            values = np.frombuffer(answer.part.values, "i8")
            at = slice(answer.part.first, answer.part.first + len(values))
            got[at] = values
            if answer.part.statuses:
                statuses[at] = np.frombuffer(answer.part.statuses, "u1")
        result = answer.end.results[0]
        self.assertEqual((grpc.StatusCode.OUT_OF_RANGE.value[0], pb.DTYPE_I64), (result.status, result.dtype))
        lacking = np.arange(len(array)) % 3 == 0
        self.assertTrue((statuses == lacking * result.status).all())
        self.assertTrue((got == array.sum(1) * ~lacking).all())
        self.failure(grpc.StatusCode.OUT_OF_RANGE, lambda: self.cured.ReduceStream(chunks(array, 1 << 20, axis=axis), timeout=60),
                     str(2**63))

    def test_a_reader_that_takes_its_time_gets_all(self):
        array = self.rng.integers(0, 100, 3000000).astype("u1")
        seen = 0
        for i, answer in enumerate(self.cured.ReduceStream(chunks(array, 1 << 20, axis=pb.Axis(outer=1000000, n=3, inner=1)), timeout=120)):
            if i < 20:
                time.sleep(0.01)
            seen += len(answer.part.values)
        self.assertEqual(8 * 1000000, seen)

    def test_partials_merge(self):
        array = self.rng.standard_normal(200000).astype("f4")
        whole = self.cured.Reduce(unary(array, ("sum", "max", "argmax")), timeout=60)
        cuts = sorted(self.rng.integers(0, len(array), 9))
        parts = []
        for first, last in zip([0] + cuts, cuts + [len(array)]):
            answer = self.cured.Reduce(unary(array[first:last], ("sum", "max", "argmax"), partial=True, first=int(first)), timeout=60)
            parts.append(answer.partial)
        random.shuffle(parts)
        ops = [pb.OP_SUM, pb.OP_MAX, pb.OP_ARGMAX]
        merged = self.cured.Merge(pb.MergeRequest(ops=ops, partials=parts), timeout=60)
        self.assertEqual([r.value for r in whole.results], [r.value for r in merged.results])
        once = self.cured.Merge(pb.MergeRequest(ops=ops, partials=parts[:5], partial=True), timeout=60).partial
        again = self.cured.Merge(pb.MergeRequest(ops=ops, partials=[once] + parts[5:]), timeout=60)
        self.assertEqual([r.value for r in whole.results], [r.value for r in again.results])

    def keyed(self, array, keys, groups, ops, **fields):
        """The answers by key of each op, or the partial's bytes; and the last message."""
        said = pb.Keys(stream=True, count=len(keys), dtype=pb.DTYPE_I32, groups=groups)
        head = request(array, ops, keys=said, input=pb.Input(stream=pb.StreamInput(bytes=array.nbytes)), **fields)
        body = [pb.ReduceChunk(head=head), pb.ReduceChunk(data=keys.astype("i4").tobytes() + array.tobytes())]
        return self.parts_of(self.cured.ReduceStream(iter(body), timeout=60), len(ops))

    def parts_of(self, answers, count):
        got, end = [b""] * count, None
        for answer in answers:
            if answer.WhichOneof("answer") == "end":
                end = answer.end
            else:
                got[answer.part.op] += answer.part.values
        return got, end

    def test_partials_by_key_merge(self):
        """By MergeStream: the answers, and the partial, of one call of all rows; many of them, and beside those that are not by key."""
        array, keys = self.rng.standard_normal(90000).astype("f4"), self.rng.integers(0, 20000, 90000)
        ops, groups = ("sum", "count"), 20000
        numbers = [pb.Op.Value("OP_" + op.upper()) for op in ops]
        wanted, last = self.keyed(array, keys, groups, ops)
        whole, _ = self.keyed(array, keys, groups, ops, partial=True, unplaced=True)
        parts = [self.keyed(array[a:a + 30000], keys[a:a + 30000], groups, ops, partial=True, unplaced=True)[0][0] for a in (60000, 0, 30000)]
        merged, end = self.parts_of(self.cured.MergeStream(pb.MergeRequest(ops=numbers, keyed=True, partial=True, partials=parts), timeout=60), 2)
        self.assertEqual((whole[0], 90000), (merged[0], end.count))
        got, end = self.parts_of(self.cured.MergeStream(pb.MergeRequest(ops=numbers, keyed=True, partials=parts), timeout=60), 2)
        self.assertEqual((wanted, last.count, [r.dtype for r in last.results]), (got, end.count, [r.dtype for r in end.results]))
        plain = self.cured.Reduce(unary(array, ops, partial=True, unplaced=True), timeout=60).partial
        alone = list(self.cured.MergeStream(pb.MergeRequest(ops=numbers, partials=[plain] * 2), timeout=60))
        self.assertEqual([180000], [answer.end.count for answer in alone])
        for words, method, more in ((("keyed", "MergeStream"), self.cured.Merge, {"partials": parts, "keyed": True}), (("partial",), self.cured.Merge, {"partials": parts}),
                                    (("not one by key",), self.cured.MergeStream, {"partials": [plain], "keyed": True}),
                                    (("none to merge",), self.cured.MergeStream, {"keyed": True})):
            self.failure(grpc.StatusCode.INVALID_ARGUMENT, lambda: method(pb.MergeRequest(ops=numbers, **more), timeout=60), *words)

    def test_many_partials_merge_in_turns(self):
        part = self.cured.Reduce(unary(np.ones(7, "i8"), partial=True, unplaced=True), timeout=60).partial
        merged = self.cured.Merge(pb.MergeRequest(ops=[pb.OP_SUM], partials=[part] * 20000), timeout=60)
        self.assertEqual(140000, value(merged.results[0]))

    def test_info(self):
        info = self.cured.Info(pb.InfoRequest(), timeout=60)
        self.assertEqual("cpu", info.backend)
        self.assertTrue(any(c.name == "calls" for c in info.counters))
        self.assertTrue(info.users[0].own)

    def test_native_and_grpc_side_by_side(self):
        native = self.connect()
        for n in range(200):
            self.assertEqual(3 * n, value(self.cured.Reduce(unary(np.full(3, n, "i8")), timeout=60).results[0]))
            self.assertIsNone(native.inline("u8", ["sum"], bytes([1, 2, 3])).status)

    def test_many_calls_at_once(self):
        arrays = [self.rng.integers(0, 100, int(n)).astype("f4") for n in self.rng.integers(0, 60000, 200)]
        futures = [self.cured.Reduce.future(unary(a), timeout=60) for a in arrays]
        for array, future in zip(arrays, futures):
            self.assertEqual(array.astype("f8").sum(), value(future.result().results[0]))


class Refusals(GrpcTest):
    OPTIONS = {"max_input_bytes": 1 << 24}

    def test_bad_requests_are_named(self):
        array, invalid = np.zeros(3, "f4"), grpc.StatusCode.INVALID_ARGUMENT
        bad = [(unary(array, ()), "ops"), (pb.ReduceRequest(dtype=12, ops=[1], data=b"abc"), "multiple of 4"),
               (request(array, input=pb.Input(file_descriptor=pb.DescriptorInput(to_end=True))), "native"),
               (request(array, input=pb.Input(region=pb.RegionInput(region=1, to_end=True))), "native"),
               (request(array, input=pb.Input(stream=pb.StreamInput(bytes=12))), "ReduceStream"),
               (request(array, axis=pb.Axis(outer=3, n=1, inner=1), outputs=[pb.Output(region=1)]), "outputs"),
               (pb.ReduceRequest(dtype=2, ops=[1], data=bytes((1 << 24) + 1)), "max_input_bytes")]
        for message, word in bad:
            self.failure(invalid, lambda: self.cured.Reduce(message, timeout=60), word)
        self.failure(grpc.StatusCode.UNIMPLEMENTED,
                     lambda: self.cured.Reduce(pb.ReduceRequest(dtype=77, ops=[1], data=b"abcd"), timeout=60), "dtype")
        self.assert_serves()

    def test_bad_streams_are_named(self):
        head, data, invalid = pb.ReduceChunk(head=request(np.zeros(1, "f4"))), pb.ReduceChunk(data=b"abcd"), grpc.StatusCode.INVALID_ARGUMENT
        inline = pb.ReduceChunk(head=unary(np.zeros(1, "f4")))
        for messages, word in (([data], "before the head"), ([head, data, head], "second head"), ([], "before a head"),
                               ([head, pb.ReduceChunk(data=b"abc")], "multiple of 4"), ([pb.ReduceChunk()], "neither"),
                               ([inline], "ReduceChunk.data")):
            self.failure(invalid, lambda: self.cured.ReduceStream(iter(messages), timeout=60), word)
        self.assert_serves()

    def test_unknown_methods(self):
        call = self.channel.unary_unary("/cured.v1.Cured/Guess", lambda x: x, lambda x: x)
        self.failure(grpc.StatusCode.UNIMPLEMENTED, lambda: call(b"", timeout=60), "Reduce, ReduceStream")

    def test_compressed_messages(self):
        self.failure(grpc.StatusCode.UNIMPLEMENTED,
                     lambda: self.cured.Reduce(unary(np.zeros(300, "f4")), timeout=60, compression=grpc.Compression.Gzip), "compressed")

    def test_bad_partials(self):
        for parts in ([b"abc"], [b""], [bytes(30000)]):
            self.failure(grpc.StatusCode.INVALID_ARGUMENT,
                         lambda: self.cured.Merge(pb.MergeRequest(ops=[pb.OP_SUM], partials=parts), timeout=60))
        self.failure(grpc.StatusCode.INVALID_ARGUMENT, lambda: self.cured.Merge(pb.MergeRequest(ops=[pb.OP_SUM]), timeout=60))


class Ends(GrpcTest):
    def slow(self, sent):
        """A stream that never ends."""
        yield from chunks(np.zeros(100, "f4"), 400)
        sent.set()
        threading.Event().wait(60)

    def test_deadline(self):
        sent = threading.Event()
        began = time.monotonic()
        self.failure(grpc.StatusCode.DEADLINE_EXCEEDED, lambda: self.cured.ReduceStream(self.slow(sent), timeout=0.5))
        self.assertLess(time.monotonic() - began, 30)

    def test_cancel(self):
        before = self.daemon.counters()["calls"]
        sent = threading.Event()
        call = self.cured.ReduceStream(self.slow(sent), timeout=60)
        sent.wait(30)
        wait_for("the call", lambda: self.daemon.counters()["calls"] > before)
        call.cancel()
        wait_for("its end", lambda: self.daemon.counters()["calls"] == before)
        self.assertEqual(6, value(self.cured.Reduce(unary(np.array([1, 2, 3], "i8")), timeout=60).results[0]))

    def test_a_client_that_goes(self):
        before = self.daemon.counters()["calls"]
        sent = threading.Event()
        call = self.cured.ReduceStream(self.slow(sent), timeout=60)
        sent.wait(30)
        wait_for("the call", lambda: self.daemon.counters()["calls"] > before)
        self.channel.close()
        self.failure(grpc.StatusCode.CANCELLED, lambda: call)
        wait_for("its end", lambda: self.daemon.counters()["calls"] == before)


class OwnServices(GrpcTest):
    """grpc.health.v1 and grpc.reflection, by messages that protoc made from gRPC's own protos."""

    def test_health(self):
        health = grpc_client.messages_of("grpc/health/v1/health.proto")
        ask, told = health["HealthCheckRequest"], health["HealthCheckResponse"]
        check = self.channel.unary_unary("/grpc.health.v1.Health/Check", ask.SerializeToString, told.FromString)
        for name in ("", "cured.v1.Cured"):
            self.assertEqual(1, check(ask(service=name), timeout=60).status)
        self.failure(grpc.StatusCode.NOT_FOUND, lambda: check(ask(service="other"), timeout=60))
        watch = self.channel.unary_stream("/grpc.health.v1.Health/Watch", ask.SerializeToString, told.FromString)
        unknown = watch(ask(service="other"), timeout=60)
        self.assertEqual(3, next(unknown).status)
        unknown.cancel()

    def test_health_says_what_ready_says(self):
        """One rule: while the daemon is full neither lets balancers send calls. Watchers hear both changes, and each of them once."""
        health = grpc_client.messages_of("grpc/health/v1/health.proto")
        ask, told = health["HealthCheckRequest"], health["HealthCheckResponse"]
        daemon = Daemon(self.folder, listen=["unix:%s/full.sock" % self.folder], max_jobs=1, admin="unix:%s/full.admin" % self.folder)
        with grpc_client.channel(daemon.address) as channel, daemon.connect() as c:
            check = channel.unary_unary("/grpc.health.v1.Health/Check", ask.SerializeToString, told.FromString)
            watch = channel.unary_stream("/grpc.health.v1.Health/Watch", ask.SerializeToString, told.FromString)(ask(), timeout=60)
            self.assertEqual(1, next(watch).status)
            for _ in range(2):
                stream = c.start_stream("u8", ["sum"], 2)
                c.send_data(stream, b"\1")
                wait_for("a full daemon", lambda: get("unix:%s/full.admin" % self.folder, "/healthz/ready").status == 503)
                self.assertEqual([2, 2], [check(ask(), timeout=60).status, next(watch).status])
                c.send_data(stream, b"\2", end=True)
                c.wait(stream)
                wait_for("a ready daemon", lambda: get("unix:%s/full.admin" % self.folder, "/healthz/ready").status == 200)
                self.assertEqual([1, 1], [check(ask(), timeout=60).status, next(watch).status])
            watch.cancel()
        daemon.check_end(self, daemon.stop())

    def test_watchers_hear_of_the_end(self):
        health = grpc_client.messages_of("grpc/health/v1/health.proto")
        ask, told = health["HealthCheckRequest"], health["HealthCheckResponse"]
        daemon = Daemon(self.folder, listen=["unix:%s/draining.sock" % self.folder])
        with grpc_client.channel(daemon.address) as channel:
            watch = channel.unary_stream("/grpc.health.v1.Health/Watch", ask.SerializeToString, told.FromString)(ask(), timeout=60)
            self.assertEqual(1, next(watch).status)
            sent = threading.Event()
            cured = services.CuredStub(channel)
            running = cured.ReduceStream(self.slow(sent), timeout=60)  # keeps the daemon draining
            sent.wait(30)
            daemon.process.terminate()
            self.assertEqual(2, next(watch).status)
            self.failure(grpc.StatusCode.UNAVAILABLE, lambda: running)
        daemon.check_end(self, daemon.wait())

    slow = Ends.slow

    def test_reflection(self):
        from google.protobuf import descriptor_pb2
        for version in ("v1", "v1alpha"):
            types = grpc_client.messages_of("grpc/reflection/%s/reflection.proto" % version)
            ask, told = types["ServerReflectionRequest"], types["ServerReflectionResponse"]
            path = "/grpc.reflection.%s.ServerReflection/ServerReflectionInfo" % version
            call = self.channel.stream_stream(path, ask.SerializeToString, told.FromString)
            asked = [ask(list_services=""), ask(file_containing_symbol="cured.v1.Cured"), ask(file_by_filename="cured.proto"),
                     ask(file_containing_symbol="cured.v1.Cured.ReduceStream"), ask(file_containing_symbol="cured.v1.Axis"),
                     ask(file_containing_symbol="cured.v1.Nothing"), ask(file_containing_symbol="cured.v1."), ask(host="here")]
            answers = list(call(iter(asked), timeout=60))
            self.assertEqual([a.SerializeToString() for a in asked], [a.original_request.SerializeToString() for a in answers])
            names = [s.name for s in answers[0].list_services_response.service]
            self.assertEqual(["cured.v1.Cured", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
                              "grpc.reflection.v1alpha.ServerReflection"], sorted(names))
            for answer in answers[1:5]:
                files = [descriptor_pb2.FileDescriptorProto.FromString(f)
                         for f in answer.file_descriptor_response.file_descriptor_proto]
                self.assertEqual(["cured.proto"], [f.name for f in files])
                self.assertEqual(["Reduce", "ReduceStream", "Merge", "MergeStream", "Info", "Stats", "SlowLog"], [m.name for m in files[0].service[0].method])
            for answer in answers[5:]:
                self.assertEqual(5, answer.error_response.error_code)


class Tcp(GrpcTest):
    """The same listener speaks both over TCP."""

    def test_over_tcp(self):
        daemon = Daemon(self.folder, listen=["tcp:127.0.0.1:0"])
        with grpc_client.channel(daemon.address) as channel:
            cured = services.CuredStub(channel)
            array = self.rng.integers(0, 100, 3000000).astype("f4")
            self.assertEqual(array.astype("f8").sum(), value(cured.Reduce(unary(array), timeout=60).results[0]))
            with daemon.connect() as native:
                self.assertIsNone(native.inline("u8", ["sum"], bytes([1, 2, 3])).status)
        daemon.check_end(self, daemon.stop())


if __name__ == "__main__":
    main()
