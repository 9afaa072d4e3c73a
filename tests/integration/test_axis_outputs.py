#!/usr/bin/env python3
"""Answers along an axis that are written into a client's region: the bits of those that are sent, by every way of input, in every
layout, and not a byte beside them; and what hostile clients make of it."""
import fcntl
import os
import random
import signal
import struct
import tempfile

from cured_daemon import SANITIZE, Daemon, DaemonTest, main, wait_for
from cured_wire import (CALL, CANCEL, CANCELLED, DATA_LOSS, END, HELLO, INPUTS, INVALID_ARGUMENT, NOT_FOUND, OUT_OF_RANGE, SIZES,
                        call_message, descriptor_region, frame, hello_message, register_message,
                        region_input, shm_region)
from expected import any_nan, array_of, oracle
from test_axis import EXTREMA, TOTALS, ops_of, small
from test_axis_statuses import drawn

SEED = int(os.environ.get("CURED_TEST_SEED", "1"))
SHAPES = ((1, 1, 1), (1, 7, 1), (5, 4, 1), (1, 6, 9), (3, 5, 4), (40, 3, 1), (1, 3, 70), (2, 0, 3), (3, 5, 0), (2, 2000, 7),
          (3000, 32, 1), (3, 9000, 1), (1, 40, 1500))
GUARD = 0xa5
F_SEAL_SHRINK, F_SEAL_WRITE, F_SEAL_FUTURE_WRITE = 2, 8, 16


class Outputs(DaemonTest):
    OPTIONS = {"cpu_workers": 2, "slabs": 8, "shm_names": True}

    def setUp(self):
        self.conn = self.connect()

    def target(self, size, number=1, conn=None, sealed=True):
        f = (self.sealed if sealed else self.memfd)(bytes([GUARD]) * size)
        self.assertEqual(size, (conn or self.conn).register(number, f.fileno(), writable=True))
        return f

    def ways(self, c, r, dtype, ops, raw, shape, **options):
        count = len(raw) // SIZES[dtype]
        region = lambda f: (c.register(99, f.fileno()), c.region(dtype, ops, 99, 3, count, axis=shape, **options),
                            c.unregister(99))[1]
        return {"inline": lambda: c.inline(dtype, ops, raw, axis=shape, **options),
                "stream": lambda: c.stream(dtype, ops, raw, known=False, chunks=(r.randint(99, 9999),), axis=shape, **options),
                "descriptor": lambda: c.descriptor(dtype, ops, self.memfd(b"abc" + raw).fileno(), 3, count, axis=shape, **options),
                "file": lambda: c.descriptor(dtype, ops, self.file(b"abc" + raw).fileno(), 3, count, axis=shape, **options),
                "sealed": lambda: region(self.sealed(b"abc" + raw)), "holed": lambda: region(self.memfd(b"abc" + raw))}

    def check_both(self, r, dtype, ops, raw, shape, **options):
        """Asks twice, for answers that are sent and for answers that are written: bits and types are the same."""
        c, answers = self.conn, shape[0] * shape[2]
        way = r.choice(sorted(self.ways(c, r, dtype, ops, raw, shape)))
        sent = self.ways(c, r, dtype, ops, raw, shape, **options)[way]()
        self.assertIsNone(sent.status, (dtype, ops, shape))
        self.assertEqual(0, sent.written)
        widths = [{"i128": 16, "digest": 24}.get(result.dtype) or SIZES[result.dtype] for result in sent.results]
        places, at = [], r.randint(1, 70)
        for width in widths:  # in an order of their own, with bytes between them
            places.append(at)
            at += width * answers + r.randint(0, 9)
        f = self.target(at + 64, number=7)
        outputs = [(number, 7, place) for number, place in enumerate(places)]
        r.shuffle(outputs)
        written = self.ways(c, r, dtype, ops, raw, shape, outputs=outputs, **options)[way]()
        self.assertIsNone(written.status, (written.status, dtype, ops, shape, way))
        self.assertEqual([], written.parts)
        self.assertEqual((sent.keys(), sent.count, answers * sum(widths)), (written.keys(), written.count, written.written))
        wanted = bytearray([GUARD]) * (at + 64)
        for number, (place, width) in enumerate(zip(places, widths)):
            wanted[place:place + width * answers] = sent.array(number, width, answers)
        self.assertEqual(bytes(wanted).hex(), os.pread(f.fileno(), at + 65, 0).hex(), (dtype, ops, shape, way))
        self.assertIsNone(c.unregister(7))
        f.close()

    def test_the_bits_of_what_is_sent(self):
        r = random.Random("outputs %d" % SEED)
        for dtype in INPUTS:
            for shape in SHAPES if not SANITIZE else r.sample(SHAPES, 4):
                count = shape[0] * shape[1] * shape[2]
                integer = dtype in oracle.INTS
                raw = small(r, dtype, count) if integer else array_of(r, dtype, count)
                ops = [op for op in ops_of(dtype) if shape[1] or op not in EXTREMA]
                ops = [op for op in ops if not integer or op != "prod" or shape[1] < 8]
                some = r.sample(ops, r.randint(1, min(len(ops), 9)))
                self.check_both(r, dtype, some, raw, shape, nan=any_nan(r, some))
        self.check_both(r, "i32", ["sum", "mean"], small(r, "i32", 35), (5, 7, 1), result_dtype="f64")

    def test_every_op_at_once(self):
        """Each into a region of its own, of memory that can be cut."""
        r = random.Random(3)
        c = self.conn
        raw, shape, ops = small(r, "i16", 600), (10, 6, 10), [op for op in ops_of("i16") if op != "prod"]
        sent = c.inline("i16", ops, raw, axis=shape)
        files = [self.target(24 * 100 + number, number + 1, sealed=False) for number in range(len(ops))]
        written = c.inline("i16", ops, raw, axis=shape, outputs=[(n, n + 1, n) for n in range(len(ops))])
        self.assertEqual(sent.keys(), written.keys())
        for number, (f, result) in enumerate(zip(files, sent.results)):
            width = {"digest": 24}.get(result.dtype) or SIZES[result.dtype]
            self.assertEqual(sent.array(number, width, 100), os.pread(f.fileno(), 100 * width, number))

    def check_statuses(self, sent, written, ops, answers, f):
        """The same as of answers that are sent: statuses, what is said of each op, and the bytes of answers without a value."""
        self.assertIsNone(sent.status, ops)
        self.assertIsNone(written.status, ops)
        widths = [{"i128": 16, "digest": 24}.get(result.dtype) or SIZES[result.dtype] for result in sent.results]
        self.assertEqual((sent.keys(), sent.count, answers * sum(widths)), (written.keys(), written.count, written.written))
        self.assertFalse(any(values for _, _, values in written.parts))
        lacking = 0
        for number, width in enumerate(widths):
            statuses = sent.statuses_of(number, answers)
            self.assertEqual(statuses, written.statuses_of(number, answers), ops[number])
            self.assertEqual((sent.results[number].status, sent.results[number].message),
                             (written.results[number].status, written.results[number].message))
            self.assertTrue(sent.array(number, width, answers) == os.pread(f.fileno(), width * answers, 24 * answers * number), ops[number])
            self.assertTrue(any(statuses) or all(op != number for op, _, _ in written.statuses))  # nothing is said of what has values
            lacking += answers - statuses.count(0)
        return lacking

    def test_statuses(self):
        r = random.Random("statuses of outputs %d" % SEED)
        c, lacking = self.conn, 0
        for dtype in ("i64", "u64", "i32", "f32", "f16"):
            shapes = ((1, 7, 1), (40, 3, 1), (3, 5, 4), (1, 3, 70), (2, 2000, 7), (2, 0, 3), (3000, 2, 1))
            for shape in r.sample(shapes, 2) if SANITIZE else shapes:
                raw, answers = drawn(r, dtype, shape), shape[0] * shape[2]
                ops = r.sample([op for op in ops_of(dtype) if op != "prod" or shape[1] < 100], 6)
                ops += [op for op in ("sum", "max") if op not in ops]
                options = dict(nan=any_nan(r, ops), statuses=True)
                way = r.choice(sorted(self.ways(c, r, dtype, ops, raw, shape)))
                f = self.target(24 * answers * len(ops), number=7)
                sent = self.ways(c, r, dtype, ops, raw, shape, **options)[way]()
                outputs = [(number, 7, 24 * answers * number) for number in range(len(ops))]
                written = self.ways(c, r, dtype, ops, raw, shape, outputs=outputs, **options)[way]()
                lacking += self.check_statuses(sent, written, ops, answers, f)
                self.assertIsNone(c.unregister(7))
                f.close()
        self.assertGreater(lacking, 0)

    def test_many_statuses_that_nobody_reads(self):
        """The job does not wait for its client, and what waits for it is counted as state."""
        rows, ops = 1 << 15 if SANITIZE else 9 << 18, ["sum", "norm1"]
        raw = struct.pack("<2q", 2**62, 2**62) * (rows - 1) + struct.pack("<2q", 1, 2)
        f, source = self.target(8 * rows * len(ops)), self.sealed(raw)
        outputs, last = [(n, 1, 8 * rows * n) for n in range(len(ops))], struct.pack("<q", 3)
        self.assertEqual(len(raw), self.conn.register(2, source.fileno()))
        stream = self.conn.start_region("i64", ops, 2, axis=(rows, 2, 1), outputs=outputs, statuses=True)
        wait_for("the last answer", lambda: os.pread(f.fileno(), 8, 8 * rows - 8) == last)
        answer = self.conn.wait(stream)
        self.assertEqual((None, 8 * rows * len(ops)), (answer.status, answer.written))
        for number in range(len(ops)):
            self.assertTrue(bytes([OUT_OF_RANGE]) * (rows - 1) + b"\0" == answer.statuses_of(number, rows))
        self.assertTrue(bytes(8 * rows - 8) + last == os.pread(f.fileno(), 8 * rows, 0))
        for turn in range(2):  # left and cancelled
            c = self.connect()
            c.register(1, f.fileno(), writable=True)
            c.register(2, source.fileno())
            stream = c.start_region("i64", ops, 2, axis=(rows, 2, 1), outputs=outputs, statuses=True)
            if turn:
                c.send(frame(CANCEL, stream))
                self.assertIn(getattr(c.wait(stream).status, "code", None), (None, CANCELLED))
            c.close()

    def test_statuses_are_state(self):
        count = 6 << 20
        narrow = Daemon(tempfile.mkdtemp(dir=self.daemon.folder), max_state_bytes_per_connection=8 << 20)
        self.addCleanup(narrow.stop, signal.SIGKILL)
        with narrow.connect() as c:
            memory = self.memfd(b"")
            os.posix_fallocate(memory.fileno(), 0, 9 * count)
            c.register(1, memory.fileno(), writable=True)
            ask = lambda op, n: c.region("u8", [op], 1, 8 * count, n, axis=(n, 1, 1), outputs=[(0, 1, 0)], statuses=True)
            self.assert_sentence(ask("sum", count).status, INVALID_ARGUMENT, "max_state_bytes_per_connection")
            for op, n in (("sum", 1 << 18), ("mean", 1 << 18 if SANITIZE else count)):  # a mean always has a value
                answer = ask(op, n)
                self.assertEqual((None, []), (answer.status, answer.parts))
        narrow.check_end(self, narrow.stop())

    def test_statuses_of_axes_without_elements(self):
        count = 1 << 17 if SANITIZE else 1 << 20
        f = self.target(9 * count)
        answer = self.conn.inline("u8", ["min", "sum", "argmax"], b"", axis=(count // 2, 0, 1), statuses=True,
                                  outputs=[(0, 1, 0), (1, 1, count), (2, 1, 5 * count)])
        self.assertEqual((None, 17 * count // 2), (answer.status, answer.written))
        self.assertEqual([INVALID_ARGUMENT, 0, INVALID_ARGUMENT], [result.status for result in answer.results])
        for number, status in enumerate((INVALID_ARGUMENT, 0, INVALID_ARGUMENT)):
            self.assertTrue(bytes([status]) * (count // 2) == answer.statuses_of(number, count // 2))
        self.assertTrue(bytes(count // 2) == os.pread(f.fileno(), count // 2, 0))
        for _ in range(5):
            stream = self.conn.start_inline("u8", ["min"], b"", axis=(count, 0, 1), outputs=[(0, 1, 0)], statuses=True)
            self.conn.send(frame(CANCEL, stream))
            self.assertIn(getattr(self.conn.wait(stream).status, "code", None), (None, CANCELLED))

    def test_in_strips(self):
        c = self.connect()
        inner = 300000
        raw = struct.pack("<%dI" % (3 * inner), *range(3 * inner))
        f = self.target(8 * inner, conn=c)
        for ask in (lambda: c.stream("u32", ["sum"], raw, axis=(1, 3, inner), outputs=[(0, 1, 0)]),
                    lambda: c.descriptor("u32", ["sum"], self.file(raw).fileno(), axis=(1, 3, inner), outputs=[(0, 1, 0)])):
            self.assertIsNone(ask().status)
            self.assertTrue(struct.pack("<%dQ" % inner, *range(3 * inner, 6 * inner, 3)) == os.pread(f.fileno(), 8 * inner, 0))
            os.pwrite(f.fileno(), bytes(8 * inner), 0)

    def test_much_that_nobody_reads(self):
        """More than may wait for a client: nothing of it does. Input and answers may lie in one region."""
        rows = 2 << 20
        f = self.sealed(b"\1" * (rows * 8) + bytes(rows * 8))
        self.assertEqual(rows * 16, self.conn.register(1, f.fileno(), writable=True))
        answer = self.conn.region("u8", ["sum"], 1, 0, rows * 8, axis=(rows, 8, 1), outputs=[(0, 1, rows * 8)])
        self.assertEqual((None, rows * 8, []), (answer.status, answer.written, answer.parts))
        self.assertTrue((8).to_bytes(8, "little") * rows == os.pread(f.fileno(), rows * 8, rows * 8))
        stream = self.conn.start_stream("u8", ["max"], axis=(rows * 8, 1, 1), outputs=[(0, 1, 0)])
        self.conn.send_array(stream, b"\2" * (rows * 8))
        self.assertIsNone(self.conn.wait(stream).status)
        self.assertTrue(b"\2" * (rows * 8) == os.pread(f.fileno(), rows * 8, 0))

    def test_axes_without_elements(self):
        f = self.target(8 << 20)
        for number, op, value in ((1 << 20, "sum", 0), (1 << 20, "prod", 1)):
            answer = self.conn.inline("u8", [op], b"", axis=(number, 0, 1), outputs=[(0, 1, 0)])
            self.assertEqual((None, 8 * number), (answer.status, answer.written))
            self.assertTrue(value.to_bytes(8, "little") * number == os.pread(f.fileno(), 8 * number, 0))
        self.assert_sentence(self.conn.inline("u8", ["min"], b"", axis=(5, 0, 1), outputs=[(0, 1, 0)]).status, INVALID_ARGUMENT, "min")
        for _ in range(10):  # ended while they are written
            stream = self.conn.start_inline("u8", ["sum"], b"", axis=(1 << 20, 0, 1), outputs=[(0, 1, 0)])
            self.conn.send(frame(CANCEL, stream))
            self.assertIn(getattr(self.conn.wait(stream).status, "code", None), (None, CANCELLED))
        answer = self.conn.inline("u8", ["sum"], b"", axis=(0, 5, 1), outputs=[(0, 1, 8 << 20)])
        self.assertEqual((None, 0), (answer.status, answer.written))
        empty = self.sealed(b"")
        self.assertEqual(0, self.conn.register(2, empty.fileno(), writable=True))
        self.assertIsNone(self.conn.inline("u8", ["sum"], b"", axis=(0, 5, 1), outputs=[(0, 2, 0)]).status)

    def refused(self, code, *words, ops=("sum",), axis=(2, 4, 1), **options):
        answer = self.conn.inline("u8", list(ops), bytes(8), axis=axis, **options)
        self.assert_sentence(answer.status, code, *words)

    def test_bounds(self):
        f = self.target(1000)
        for offset in (985, 984 + 1, 1000, 1001, 2**32, 2**63, 2**64 - 16, 2**64 - 8, 2**64 - 1):
            self.refused(INVALID_ARGUMENT, "outputs[0]", "16 bytes", "1000", outputs=[(0, 1, offset)])
        self.assertIsNone(self.conn.inline("u8", ["sum"], bytes(8), axis=(2, 4, 1), outputs=[(0, 1, 984)]).status)
        self.assertEqual(bytes([GUARD]) * 984 + bytes(16), os.pread(f.fileno(), 2000, 0))
        self.refused(INVALID_ARGUMENT, "outputs[1]", "outputs[0]", ops=("sum", "mean"), outputs=[(0, 1, 0), (1, 1, 15)])
        self.refused(INVALID_ARGUMENT, "outputs[1]", ops=("max", "mean"), outputs=[(0, 1, 15), (1, 1, 0)])
        for offset, status in ((0, INVALID_ARGUMENT), (7, INVALID_ARGUMENT), (8, None)):
            answer = self.conn.region("u8", ["sum"], 1, 0, 8, axis=(2, 4, 1), outputs=[(0, 1, offset)])
            self.assertEqual(status, getattr(answer.status, "code", None), offset)
        for offset, status in ((99, INVALID_ARGUMENT), (85, INVALID_ARGUMENT), (84, None), (108, None), (107, INVALID_ARGUMENT)):
            answer = self.conn.region("u8", ["sum"], 1, 100, 8, axis=(2, 4, 1), outputs=[(0, 1, offset)])
            self.assertEqual(status, getattr(answer.status, "code", None), offset)

    def test_requests_that_make_no_sense(self):
        self.target(1000)
        self.refused(INVALID_ARGUMENT, "outputs", "axis", axis=None, outputs=[(0, 1, 0)])
        self.refused(INVALID_ARGUMENT, "outputs has 1 entries", ops=("sum", "max"), outputs=[(0, 1, 0)])
        self.refused(INVALID_ARGUMENT, "outputs has 3 entries", ops=("sum", "max"), outputs=[(0, 1, 0)] * 3)
        self.refused(INVALID_ARGUMENT, "outputs[1].op is 0", ops=("sum", "max"), outputs=[(0, 1, 0)] * 2)
        self.refused(INVALID_ARGUMENT, "outputs[0].op is 32", outputs=[(32, 1, 0)])
        self.refused(INVALID_ARGUMENT, "outputs[0].region is 0", outputs=[(0, 0, 0)])
        self.refused(NOT_FOUND, "outputs[0]", "region 2", outputs=[(0, 2, 0)])
        self.refused(INVALID_ARGUMENT, "outputs has 300 entries", outputs=[(0, 1, 0)] * 300)
        self.conn.register(3, self.memfd(bytes(100)).fileno())
        self.refused(INVALID_ARGUMENT, "not registered writable", outputs=[(0, 3, 0)])

    def test_a_region_that_is_not_open_yet(self):
        """Of outputs the registration must have been answered; the sentence says so."""
        c, f = self.connect(), self.sealed(bytes(100))
        first, call = c.open_stream(), c.open_stream()
        batch = frame(CALL, first, call_message(register=register_message(5, descriptor_region(), True)), END, 1)
        c.send(batch + c.call_frame(call, "u8", ["sum"], region_input(5, 50, 8), flags=END, axis=(2, 4, 1), outputs=[(0, 5, 0)]), [f.fileno()])
        self.assert_sentence(c.wait(call).status, NOT_FOUND, "not answered yet")
        self.assertEqual(100, c.registered(first))
        self.assertIsNone(c.region("u8", ["sum"], 5, 50, 8, axis=(2, 4, 1), outputs=[(0, 5, 0)]).status)

    def test_only_its_owner_may_name_it(self):
        f = self.target(1000)
        other = self.connect()
        for outputs in ([(0, 1, 0)], [(0, 2**64 - 1, 0)]):
            answer = other.inline("u8", ["sum"], bytes(8), axis=(2, 4, 1), outputs=outputs)
            self.assert_sentence(answer.status, NOT_FOUND, "outputs[0]", "this connection")
        self.assertEqual(bytes([GUARD]) * 1000, os.pread(f.fileno(), 1000, 0))

    def opened(self, path, flags):
        fd = os.open(path, flags | os.O_CLOEXEC)
        self.addCleanup(os.close, fd)
        return fd

    def test_what_cannot_be_written(self):
        steady = self.sealed(bytes(8192))
        path = "/proc/self/fd/%d" % steady.fileno()
        holes = self.memfd(bytes(100))
        os.ftruncate(holes.fileno(), 1 << 30)
        for fd, words in ((self.opened(path, os.O_RDONLY), ("writable", "O_RDWR")), (self.opened(path, os.O_WRONLY), ("writable", "O_RDWR")),
                          (self.opened(path, os.O_PATH), ("writable",)), (self.file(bytes(100)).fileno(), ("writable", "shared memory")),
                          (self.opened("/dev/zero", os.O_RDWR), ("writable", "shared memory")),
                          (self.sealed(bytes(100), F_SEAL_SHRINK | F_SEAL_WRITE).fileno(), ("writable", "F_SEAL_WRITE")),
                          (self.sealed(bytes(100), F_SEAL_FUTURE_WRITE).fileno(), ("writable", "F_SEAL_WRITE")),
                          (holes.fileno(), ("writable", "holes", "posix_fallocate"))):
            self.assert_sentence(self.conn.register(1, fd, writable=True), INVALID_ARGUMENT, *words)
        self.assertEqual(8192, self.conn.register(1, self.opened(path, os.O_RDWR), writable=True))

    def test_names_of_shared_memory(self):
        name = "/cured-test-%d" % os.getpid()
        fd = os.open("/dev/shm" + name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        self.addCleanup(os.close, fd)
        self.addCleanup(os.unlink, "/dev/shm" + name)
        os.write(fd, bytes(64))
        self.assertEqual(64, self.conn.registered(self.conn.start_register(1, shm_region(name), writable=True)))
        self.assertIsNone(self.conn.inline("u8", ["sum"], b"\1" * 8, axis=(2, 4, 1), outputs=[(0, 1, 48)]).status)
        self.assertEqual(bytes(48) + struct.pack("<2Q", 4, 4), os.pread(fd, 64, 0))
        os.fchmod(fd, 0o400)
        self.assertIn("written", self.conn.registered(self.conn.start_register(2, shm_region(name), writable=True)).message)

    def test_an_owner_that_appends(self):
        """The state of its descriptor changes nothing: neither where answers go, nor how long the memory is."""
        f = self.target(1000, sealed=False)
        fcntl.fcntl(f, fcntl.F_SETFL, os.O_APPEND)
        self.assertIsNone(self.conn.inline("u8", ["sum"], b"\1" * 8, axis=(2, 4, 1), outputs=[(0, 1, 8)]).status)
        self.assertEqual(bytes([GUARD]) * 8 + struct.pack("<2Q", 4, 4) + bytes([GUARD]) * 976, os.pread(f.fileno(), 2000, 0))

    def test_punched_after_it_was_registered(self):
        f = self.target(1 << 16, sealed=False)
        os.ftruncate(f.fileno(), 1 << 20)  # longer, and mostly a hole: the daemon fills none
        self.refused(INVALID_ARGUMENT, "holes", outputs=[(0, 1, 0)])
        self.assertLess(os.fstat(f.fileno()).st_blocks * 512, 1 << 19)

    def test_an_answer_that_does_not_fit(self):
        f = self.target(64)
        raw = struct.pack("<4q", 2**62, 1, 2**62, 1)
        answer = self.conn.inline("i64", ["sum"], raw, axis=(1, 2, 2), outputs=[(0, 1, 8)])
        self.assert_sentence(answer.status, OUT_OF_RANGE, "output 0", str(2**63))
        content = os.pread(f.fileno(), 64, 0)
        self.assertEqual(bytes([GUARD]) * 48, content[:8] + content[24:])

    def long_call(self, outputs, **options):
        """A stream that has answered some rows, and waits for more."""
        stream = self.conn.start_stream("u8", ["sum"], axis=(1 << 20, 8, 1), outputs=outputs, **options)
        self.conn.send_data(stream, b"\1" * (1 << 20))
        return stream

    def test_unregistered_and_cancelled_meanwhile(self):
        f = self.target(8 << 20)
        stream = self.long_call([(0, 1, 0)])
        gone = self.conn.start_unregister(1)
        self.refused(NOT_FOUND, "region 1", outputs=[(0, 1, 0)])
        self.assertFalse(self.conn.answers[gone].over)
        self.conn.send_array(stream, b"\1" * (7 << 20))
        answer = self.conn.wait(stream)
        self.assertEqual((None, 8 << 20), (answer.status, answer.written))
        self.assertEqual((None, b""), self.conn.over(gone))
        self.assertTrue((8).to_bytes(8, "little") * (1 << 20) == os.pread(f.fileno(), 8 << 20, 0))
        self.target(8 << 20)
        stream = self.long_call([(0, 1, 0)])
        gone = self.conn.start_unregister(1)
        self.conn.send(frame(CANCEL, stream))
        self.assert_sentence(self.conn.wait(stream).status, CANCELLED)
        self.assertEqual((None, b""), self.conn.over(gone))
        self.target(8 << 20)
        self.long_call([(0, 1, 0)])
        self.conn.close()  # with everything under way; the end of the test counts what is left
        self.assert_serves()

    def test_cut_at_any_moment(self):
        r = random.Random("cut %d" % SEED)
        size = 4 << 20
        data = self.sealed(b"\1" * size)
        self.conn.register(2, data.fileno())
        lost = 0
        for n in range(8 if SANITIZE else 40):
            f = self.target(size, sealed=False)
            streams = [self.conn.start_region("u8", ["sum"], 2, 0, size // 2, axis=(size // 16, 8, 1), outputs=[(0, 1, 0)]) for _ in range(2)]
            streams += [self.conn.start_region("u8", ["sum"], 1, size // 2, size // 2, axis=(size // 8, 4, 1)) for _ in range(n % 2)]
            for _ in range(r.randint(0, 3000)):
                pass
            os.ftruncate(f.fileno(), r.choice((0, 1, 4096, size // 8, size // 4 + 1, size - 1)))
            for stream in streams:
                answer = self.conn.wait(stream)
                if answer.status:
                    self.assert_sentence(answer.status, DATA_LOSS)
                    lost += 1
            self.refused(DATA_LOSS, "cut", outputs=[(0, 1, size - 16)])
            self.assertLess(os.fstat(f.fileno()).st_size, size)  # nobody made it longer again
            self.assertIsNone(self.conn.unregister(1))
            f.close()
        print("%d calls lost their region" % lost)

    def test_feature(self):
        """Granted to whoever offers it, and to nobody else."""
        for offered, granted in (((), []), (("outputs",), [b"outputs"]), (("outputs", "statuses"), [b"statuses", b"outputs"])):
            c = self.connect(hello=False)
            c.send(frame(HELLO, 0, hello_message(features=offered)))
            self.assertEqual(granted, [bytes(name) for name in c.greet()["features"]])
            c.close()


class Strips(Outputs):
    """The same where the states of all columns do not fit, and one worker folds."""
    OPTIONS = {"cpu_workers": 1, "slabs": 8, "shm_names": True, "max_state_bytes_per_connection": 12 << 20}


if __name__ == "__main__":
    print("seed", SEED)
    main()
