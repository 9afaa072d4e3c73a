"""test_gpu_outputs: answers along an axis that a GPU writes into a client's memory of the same GPU: the bits of those that are sent, and not a
byte beside them; and what hostile clients make of it. On the stand-in GPU, or a real one: see gpu_axis.
"""
import os
import random
import shutil
import signal
import struct
import tempfile
import unittest

import test_axis
import test_axis_statuses
from cured_daemon import SANITIZE, Daemon, main, wait_for
from cured_wire import (CANCEL, CANCELLED, DEADLINE_EXCEEDED, INPUTS, INTERNAL, INVALID_ARGUMENT, NOT_FOUND, OUT_OF_RANGE, SIZES, UNAVAILABLE,
                        UNIMPLEMENTED, frame)
from expected import any_nan, array_of, oracle, plain
from gpu_axis import OPTIONS, PROGRAM, REAL, AxisTest, Stand, content, device_memory, setUpModule  # noqa: F401

SEED = int(os.environ.get("CURED_TEST_SEED", "1"))
SHAPES = ((1, 1, 1), (1, 7, 1), (5, 4, 1), (1, 6, 9), (3, 5, 4), (40, 3, 1), (1, 3, 70), (3, 5, 0), (0, 5, 3), (2, 2000, 7), (3000, 32, 1),
          (3, 9000, 1), (1, 40, 1500))
GUARD = 0xa5


def align(at, width):
    return (at + width - 1) // width * width


class OutputsTest(AxisTest):
    def target(self, size, number=900, conn=None, form="descriptor", offset=0, event=b""):
        """Writable device memory, all guards, registered from offset on."""
        memory = device_memory(bytes([GUARD]) * size, form)
        self.addCleanup(memory.free)
        conn = conn or self.conn
        stream = conn.start_register(number, memory.source(None, offset, event), memory.descriptor, writable=True)
        self.assertEqual(size - offset, conn.registered(stream))
        return memory


class Answers(OutputsTest):
    def check_both(self, r, dtype, ops, raw, shape, **options):
        """Asks twice, for answers that are sent and for answers that are written: bits and types are the same."""
        c, answers, start = self.conn, shape[0] * shape[2], r.choice((0, 0, 16, 256))
        at = r.choice((0, 0, 1, 3, 8))
        region = self.put(b"?" * at + raw + b"?")
        sent = self.ask(dtype, ops, region, shape, at, **options)
        self.assertIsNone(sent.status, (dtype, ops, shape))
        widths = [{"i128": 16, "digest": 24}.get(result.dtype) or SIZES[result.dtype] for result in sent.results]
        places, end = [], r.randrange(70)
        for width in widths:  # in an order of their own, with bytes between them
            places.append(align(end, width & -width))  # a digest is three words
            end = places[-1] + width * answers + r.randrange(9)
        memory = self.target(start + end + 64, form=r.choice(("handle", "pool", "descriptor")), offset=start)
        outputs = [(number, 900, place) for number, place in enumerate(places)]
        r.shuffle(outputs)
        written = self.ask(dtype, ops, region, shape, at, outputs=outputs, **options)
        self.assertIsNone(written.status, (written.status, dtype, ops, shape))
        self.assertFalse(any(values for _, _, values in written.parts))
        for number, result in enumerate(sent.results):
            self.assertEqual(sent.statuses_of(number, answers), written.statuses_of(number, answers), (dtype, ops, shape))
            self.assertEqual((result.status, result.message), (written.results[number].status, written.results[number].message))
        self.assertEqual([written.results[op].status != 0 for op, _, _ in written.parts], [True] * len(written.parts))
        self.assertEqual((sent.keys(), sent.count, answers * sum(widths)), (written.keys(), written.count, written.written))
        wanted = bytearray([GUARD]) * memory.size
        for number, (place, width) in enumerate(zip(places, widths)):
            wanted[start + place:start + place + width * answers] = sent.array(number, width, answers)
        self.assertTrue(bytes(wanted) == content(memory), (dtype, ops, shape, options))
        for number in (900, region):
            self.assertIsNone(c.unregister(number))
        memory.free()

    def test_the_bits_of_what_is_sent(self):
        """prod of floats has no kernel in the stand-in: the lane answers on the host, and puts that into the device's memory."""
        r = random.Random("outputs %d" % SEED)
        for dtype in INPUTS:
            for shape in r.sample(SHAPES, 3 if SANITIZE else 8):
                count = shape[0] * shape[1] * shape[2]
                integer = dtype in oracle.INTS
                raw = test_axis.small(r, dtype, count) if integer else array_of(r, dtype, count)
                ops = [op for op in test_axis.ops_of(dtype) if not integer or op != "prod" or shape[1] < 8]
                ops = r.sample(ops, r.randint(1, min(len(ops), 9)))
                narrow = {} if integer or not {"sum", "mean", "var", "prod"} & set(ops) else {"result_dtype": r.choice(("f32", "f64", "bf16", "f16"))}
                self.check_both(r, dtype, ops, raw, shape, nan=0 if integer else any_nan(r, ops), **narrow)
        self.check_both(r, "i32", ["sum", "var"], test_axis.small(r, "i32", 35), (5, 7, 1), result_dtype="f64")
        self.check_both(r, "i32", ["sum", "sumsq"], test_axis.small(r, "i32", 35), (5, 7, 1), result_dtype="i128")

    def test_statuses(self):
        """The kernels write none: where an answer may have no value the lane answers on the host."""
        r = random.Random("statuses of outputs %d" % SEED)
        for dtype in ("i64", "f32", "u32"):
            for shape in ((1, 7, 1), (40, 3, 1), (3, 5, 4), (2, 2000, 7), (3000, 2, 1)):
                ops = r.sample([op for op in test_axis.ops_of(dtype) if op != "prod" or shape[1] < 100], 5)
                ops += [op for op in ("sum", "max") if op not in ops]
                self.check_both(r, dtype, ops, test_axis_statuses.drawn(r, dtype, shape), shape, nan=any_nan(r, ops), statuses=True)
        self.check_both(r, "f32", ["sum", "mean"], bytes(plain("f32", 6000)), (3000, 2, 1), statuses=True)

    def test_statuses_beside_the_hosts_memory(self):
        r = random.Random(SEED)
        for dtype, shape in (("f32", (3000, 2, 1)), ("i64", (40, 3, 1)), ("f64", (3, 5, 4))):
            answers, ops = shape[0] * shape[2], ["max", "argmin", "sum"]
            region = self.put(test_axis_statuses.drawn(r, dtype, shape))
            host = self.sealed(bytes([GUARD]) * (24 * answers))
            self.assertEqual(24 * answers, self.conn.register(5, host.fileno(), writable=True))
            sent = self.ask(dtype, ops, region, shape, nan=1, statuses=True)
            written = self.ask(dtype, ops, region, shape, nan=1, statuses=True, outputs=[(n, 5, 8 * answers * n) for n in range(3)])
            self.assertEqual((None, None, sent.keys()), (sent.status, written.status, written.keys()))
            for number, result in enumerate(sent.results):
                width = SIZES[result.dtype]
                self.assertEqual(sent.statuses_of(number, answers), written.statuses_of(number, answers))
                self.assertEqual(sent.array(number, width, answers), os.pread(host.fileno(), width * answers, 8 * answers * number))
            for number in (5, region):
                self.assertIsNone(self.conn.unregister(number))

    def test_every_op_at_once(self):
        """Each into a region of its own."""
        raw, shape, ops = test_axis.small(random.Random(3), "i16", 600), (10, 6, 10), [op for op in test_axis.ops_of("i16") if op != "prod"]
        region = self.put(raw)
        sent = self.ask("i16", ops, region, shape)
        memories = [self.target(24 * 100 + 8 * number, 100 + number) for number in range(len(ops))]
        written = self.ask("i16", ops, region, shape, outputs=[(n, 100 + n, 8 * n) for n in range(len(ops))])
        self.assertEqual(sent.keys(), written.keys())
        for number, (memory, result) in enumerate(zip(memories, sent.results)):
            width = {"digest": 24}.get(result.dtype) or SIZES[result.dtype]
            self.assertEqual(sent.array(number, width, 100), content(memory)[8 * number:8 * number + 100 * width])

    def test_more_than_a_claim(self):
        """Many short rows, of which no answer comes to the host; and long and wide ones, and what the lane answers on the host piece by piece."""
        for shape, dtype, ops in (((2500000, 2, 1), "u8", ["sum", "max"]), ((700000, 3, 1), "f32", ["sum", "var"]),
                                  ((2, 3, 300000), "f32", ["sum", "max"]), ((1, 2, 400000), "f32", ["prod"]), ((100000, 3, 1), "f32", ["prod"])):
            count, answers = shape[0] * shape[1] * shape[2], shape[0] * shape[2]
            raw = bytes(plain(dtype, count))
            region, memory = self.put(raw), self.target(16 * answers)
            sent = self.ask(dtype, ops, region, shape)
            written = self.ask(dtype, ops, region, shape, outputs=[(n, 900, 8 * answers * n) for n in range(len(ops))])
            self.assertEqual((None, sent.keys()), (written.status, written.keys()))
            got = content(memory)
            for number, result in enumerate(sent.results):
                width = SIZES[result.dtype]
                self.assertTrue(sent.array(number, width, answers) == got[8 * answers * number:][:width * answers], (shape, ops[number]))
            for number in (900, region):
                self.assertIsNone(self.conn.unregister(number))

    def test_more_answers_of_a_block_than_state(self):
        """They are no state of the daemon's, because they never come to it."""
        raw = bytes(plain("u8", 3 << 20))
        region, memory = self.put(raw), self.target(3 << 20)
        daemon = Daemon(tempfile.mkdtemp(prefix="cured-it-", dir=self.folder), program=PROGRAM, max_state_bytes_per_connection=16 << 20,
                        max_state_bytes=20 << 20, **OPTIONS)
        self.addCleanup(daemon.stop, signal.SIGKILL)
        with daemon.connect() as c:
            source = device_memory(raw)
            self.addCleanup(source.free)
            c.registered(c.start_register(1, source.source(), source.descriptor))
            memory = self.target(8 * (3 << 20), 2, c)
            self.assert_sentence(c.region("u8", ["sum"], 1, axis=(1, 1, 3 << 20)).status, INVALID_ARGUMENT, "max_state_bytes")
            self.assertIsNone(c.region("u8", ["sum"], 1, axis=(1, 1, 3 << 20), outputs=[(0, 2, 0)]).status)
            self.assertTrue(b"".join(bytes([value]) + bytes(7) for value in raw) == content(memory))
        daemon.check_end(self, daemon.stop())


class Refusals(OutputsTest):
    def setUp(self):
        super().setUp()
        self.data = bytes(range(64))
        self.region = self.put(self.data)

    def refused(self, code, *words, ops=("sum",), axis=(2, 4, 1), **options):
        answer = self.conn.region("u8", list(ops), self.region, 0, axis[0] * axis[1] * axis[2], axis=axis, **options)
        self.assert_sentence(answer.status, code, *words)

    def test_bounds_and_alignment(self):
        memory = self.target(1000)
        for offset in (985, 1000, 1001, 2**32, 2**63, 2**64 - 16, 2**64 - 8, 2**64 - 1):
            self.refused(INVALID_ARGUMENT, "outputs[0]", "16 bytes", "1000", outputs=[(0, 900, offset)])
        for offset in (1, 2, 4, 7, 977, 983):
            self.refused(INVALID_ARGUMENT, "outputs[0]", "multiple of 8", outputs=[(0, 900, offset)])
        self.assertEqual(996, self.conn.registered(self.conn.start_register(3, memory.source(None, 4), memory.descriptor, writable=True)))
        self.refused(INVALID_ARGUMENT, "multiple of 8", outputs=[(0, 3, 0)])
        self.refused(INVALID_ARGUMENT, "multiple of 16", result_dtype="i128", outputs=[(0, 900, 8)])
        self.assertEqual(bytes([GUARD]) * 1000, content(memory))
        self.assertIsNone(self.conn.region("u8", ["sum"], self.region, 0, 8, axis=(2, 4, 1), outputs=[(0, 900, 984)]).status)
        self.assertEqual(bytes([GUARD]) * 984 + struct.pack("<2Q", 6, 22), content(memory))
        self.refused(INVALID_ARGUMENT, "outputs[1]", "outputs[0]", ops=("sum", "mean"), outputs=[(0, 900, 0), (1, 900, 8)])

    def test_input_and_output_in_one_memory(self):
        memory = self.target(1000)
        for offset, good in ((0, False), (8, True)):
            answer = self.conn.region("u8", ["sum"], 900, 0, 8, axis=(2, 4, 1), outputs=[(0, 900, offset)])
            self.assertEqual(None if good else INVALID_ARGUMENT, getattr(answer.status, "code", None), offset)
        self.assertEqual(bytes([GUARD]) * 8 + struct.pack("<2Q", 4 * GUARD, 4 * GUARD), content(memory)[:24])

    def test_of_two_numbers(self):
        """The driver opens one handle at one address, whoever registers it: so two regions of it are known to share bytes."""
        if not REAL:
            self.skipTest("the stand-in opens a copy each time")
        memory = self.target(1000, form="handle")
        self.assertEqual(1000, self.conn.registered(self.conn.start_register(901, memory.source(), memory.descriptor, writable=True)))
        answer = self.conn.region("u8", ["sum"], 901, 0, 8, axis=(2, 4, 1), outputs=[(0, 900, 0)])
        self.assert_sentence(answer.status, INVALID_ARGUMENT, "outputs[0]", "input")
        self.refused(INVALID_ARGUMENT, "outputs[1]", "outputs[0]", ops=("sum", "mean"), outputs=[(0, 900, 0), (1, 901, 8)])

    def test_only_where_the_input_lies(self):
        """Input of the host, and answers to the host's memory and a GPU's in one call."""
        memory, words = self.target(1000), ("outputs", "same GPU")
        host = self.sealed(bytes(1000))
        self.assertEqual(1000, self.conn.register(5, host.fileno(), writable=True))
        for answer in (self.conn.inline("u8", ["sum"], bytes(8), axis=(2, 4, 1), outputs=[(0, 900, 0)]),
                       self.conn.stream("u8", ["sum"], bytes(8), axis=(2, 4, 1), outputs=[(0, 900, 0)]),
                       self.conn.descriptor("u8", ["sum"], self.memfd(bytes(8)).fileno(), axis=(2, 4, 1), outputs=[(0, 900, 0)]),
                       self.conn.region("u8", ["sum"], 5, 0, 8, axis=(2, 4, 1), outputs=[(0, 900, 0)])):
            self.assert_sentence(answer.status, INVALID_ARGUMENT, *words)
        self.refused(INVALID_ARGUMENT, "outputs[1]", "same memory", ops=("sum", "max"), outputs=[(0, 900, 0), (1, 5, 0)])
        self.refused(UNIMPLEMENTED, "without elements", axis=(2, 0, 1), outputs=[(0, 900, 0)])
        self.assertEqual(bytes([GUARD]) * 1000, content(memory))

    def test_what_may_not_be_named(self):
        memory = self.target(1000)
        self.refused(INVALID_ARGUMENT, "not registered writable", outputs=[(0, self.region, 32)])
        other = self.connect()
        region = self.put(self.data, other)
        answer = other.region("u8", ["sum"], region, 0, 8, axis=(2, 4, 1), outputs=[(0, 900, 0)])
        self.assert_sentence(answer.status, NOT_FOUND, "outputs[0]", "this connection")
        self.assertEqual(bytes([GUARD]) * 1000, content(memory))
        self.assertIsNone(self.conn.unregister(900))
        self.refused(NOT_FOUND, "outputs[0]", outputs=[(0, 900, 0)])

    def test_an_answer_that_does_not_fit(self):
        memory = self.target(64)
        region = self.put(struct.pack("<4q", 2**62, 1, 2**62, 1))
        answer = self.conn.region("i64", ["sum"], region, axis=(1, 2, 2), outputs=[(0, 900, 8)])
        self.assert_sentence(answer.status, OUT_OF_RANGE, "output 0", str(2**63))
        got = content(memory)
        self.assertEqual(bytes([GUARD]) * 48, got[:8] + got[24:])


class Meanwhile(OutputsTest):
    ROWS = 1 << 20

    def start(self, number, conn=None, **more):
        conn = conn or self.conn
        return conn.start_region("u8", ["sum"], number, axis=(self.ROWS, 4, 1), outputs=[(0, 900, 0)], **more)

    def test_unregistered_cancelled_and_left(self):
        """UnregisterResponse says that nothing writes there any more."""
        for how in ("unregister", "cancel", "deadline", "leave"):
            c = self.daemon.connect()
            region, memory = self.put(b"\1" * (4 * self.ROWS), c), self.target(8 * self.ROWS, conn=c)
            streams = [self.start(region, c, **({"timeout_ms": 1} if how == "deadline" else {})) for _ in range(4)]
            if how == "leave":
                c.close()
                continue
            gone = c.start_unregister(900)
            if how == "cancel":
                for stream in streams:
                    c.send(frame(CANCEL, stream))
            for stream in streams:
                allowed = {"unregister": (None,), "cancel": (None, CANCELLED), "deadline": (None, DEADLINE_EXCEEDED)}[how]
                self.assertIn(getattr(c.wait(stream).status, "code", None), allowed, how)
            self.assertEqual((None, b""), c.over(gone))
            if how == "unregister":
                self.assertTrue((4).to_bytes(8, "little") * self.ROWS == content(memory))
            c.close()
        self.conn.close()
        self.daemon.check_returned(self)
        wait_for("all device memory given back", lambda: self.daemon.counters()["device_regions"] == 0)

    @unittest.skipIf(REAL, "events of the stand-in are files")
    def test_jobs_wait_for_events_of_outputs(self):
        """Each output may have one, and the input, too: more in all than are looked at in a turn."""
        paths = []

        def event(name):
            paths.append(os.path.join(self.folder, name))
            open(paths[-1], "wb").close()
            return paths[-1].encode().ljust(64, b"\0")

        ops = ["sum", "min", "max", "argmin", "argmax", "count", "mean", "any", "all", "norm1", "sumsq", "var"]
        raw = bytes(plain("u8", 400))
        source = device_memory(raw)
        self.addCleanup(source.free)
        self.assertEqual(400, self.conn.registered(self.conn.start_register(1, source.source(None, 0, event("input")), source.descriptor)))
        memories = [self.target(800, 100 + n, event=event("out%d" % n)) for n in range(len(ops))]
        streams = [self.conn.start_region("u8", ops, 1, axis=(100, 4, 1), outputs=[(n, 100 + n, 0) for n in range(len(ops))]) for _ in range(3)]
        streams += [self.conn.start_region("u8", ["sum"], 1, axis=(100, 4, 1)) for _ in range(12)]
        order = paths[1:]
        random.Random(SEED).shuffle(order)
        for path in [paths[0]] + order:
            self.assertFalse(any(self.conn.answers[s].over for s in streams[:3]))
            self.assertTrue(all(content(memory) == bytes([GUARD]) * 800 for memory in memories))
            with open(path, "wb") as f:
                f.write(b"1")
            for stream in streams[3:]:  # they wait for the input alone
                self.assertIsNone(self.conn.wait(stream).status)
        sent = self.conn.region("u8", ops, 1, axis=(100, 4, 1))
        for stream in streams[:3]:
            self.assertIsNone(self.conn.wait(stream).status)
        for number, (memory, result) in enumerate(zip(memories, sent.results)):
            width = {"digest": 24}.get(result.dtype) or SIZES[result.dtype]
            self.assertEqual(sent.array(number, width, 100), content(memory)[:width * 100])
        os.unlink(paths[3])
        stream = self.conn.start_region("u8", ops, 1, axis=(100, 4, 1), outputs=[(n, 100 + n, 0) for n in range(len(ops))])
        self.assert_sentence(self.conn.wait(stream).status, INVALID_ARGUMENT, "event")


@unittest.skipIf(REAL, "faults are for the stand-in device")
class Faults(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_all(self, faults, dtype="i64", op="sum", shape=(3000, 7, 1), **options):
        """The statuses of some calls, and of the unregistering of their outputs."""
        daemon = Daemon(self.folder, program=PROGRAM, env={"CURED_TEST_GPU": faults}, **dict(OPTIONS, **options))
        self.addCleanup(daemon.stop, signal.SIGKILL)
        raw, out = Stand(bytes(8 * 21000)), Stand(bytes(8 * 3000))
        self.addCleanup(raw.free)
        self.addCleanup(out.free)
        with daemon.connect() as c:
            self.assertEqual(raw.size, c.registered(c.start_register(1, raw.source(), raw.descriptor)))
            self.assertEqual(out.size, c.registered(c.start_register(2, out.source(), out.descriptor, writable=True)))
            ask = lambda: c.start_region(dtype, [op], 1, axis=shape, outputs=[(0, 2, 0)])
            statuses = [c.wait(stream).status for stream in [ask() for _ in range(4)]] + [c.wait(ask()).status]
            self.assertIsNone(c.unregister(2))
        daemon.check_end(self, daemon.stop())
        return [status and status.code for status in statuses]

    def test_of_two_gpus(self):
        """Each writes into its own memory alone."""
        daemon = Daemon(self.folder, program=PROGRAM, env={"CURED_TEST_GPU": "devices=2"}, **OPTIONS)
        self.addCleanup(daemon.stop, signal.SIGKILL)
        with daemon.connect() as c:
            for number in range(4):
                memory = Stand(bytes(range(16)) if number < 2 else bytes(64), number % 2)
                self.addCleanup(memory.free)
                self.assertEqual(memory.size, c.registered(c.start_register(1 + number, memory.source(), memory.descriptor, writable=True)))
            ask = lambda source, *targets: c.region("u8", ["sum", "max"][:len(targets)], source, 0, 16, axis=(4, 4, 1),
                                                    outputs=[(n, target, 32 * n) for n, target in enumerate(targets)]).status
            for good in (ask(1, 3), ask(2, 4), ask(1, 3, 3)):
                self.assertIsNone(good)
            for bad, words in ((ask(1, 4), "same GPU"), (ask(2, 3), "same GPU"), (ask(1, 3, 4), "one GPU's"), (ask(2, 4, 3), "one GPU's")):
                self.assertEqual(INVALID_ARGUMENT, bad.code)
                self.assertIn(words, bad.message)
        daemon.check_end(self, daemon.stop())

    def test_one_call_fails(self):
        for faults in ("fail_fold=2", "fail_fault=3,polls=4"):
            codes = self.run_all(faults)
            self.assertEqual(4, codes.count(None), (faults, codes))
            self.assertTrue(set(codes) <= {None, INTERNAL, INVALID_ARGUMENT}, (faults, codes))

    def test_the_device_is_lost(self):
        """Also while the lane puts there what it has answered on the host."""
        for faults in ("lose_at=1", "lose_at=2", "lose_at=7,polls=5", "hang_at=1", "hang_at=3"):
            codes = self.run_all(faults, gpu_timeout_ms=300 if "hang" in faults else 60000)
            self.assertEqual(UNAVAILABLE, codes[-1], faults)
        for number in range(1, 8):
            codes = self.run_all("lose_at=%d" % number, "f64", "prod")
            self.assertEqual(UNAVAILABLE, codes[-1], number)
            self.assertTrue(set(codes) <= {None, UNAVAILABLE}, codes)

    def test_a_put_that_never_returns(self):
        """Of rows, and of columns, whose state the lane's thread holds meanwhile."""
        for number, shape in ((1, (3000, 7, 1)), (1, (1, 10, 2100)), (2, (1, 10, 2100))):
            codes = self.run_all("stuck_put=%d" % number, "f64", "prod", shape, gpu_timeout_ms=1500)
            self.assertEqual(UNAVAILABLE, codes[-1])
            self.assertTrue(set(codes) <= {None, UNAVAILABLE}, codes)


if __name__ == "__main__":
    print("seed", SEED)
    main()
