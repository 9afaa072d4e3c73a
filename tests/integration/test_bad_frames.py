"""test_bad_frames: broken frames, frame orders, requests and descriptors: each gets its status, and the next client its answer."""
import os
import random

from connection import Closed, Connection
from cured_daemon import DaemonTest, main, wait_for
from cured_wire import (CALL, CANCEL, CREDIT, DATA, DATA_BYTES, DEADLINE_EXCEEDED, END, FAILED_PRECONDITION, HELLO,
                        INVALID_ARGUMENT, NOT_FOUND, PING, PONG, PROGRESS, RESOURCE_EXHAUSTED, RESULT, STATUS, UNIMPLEMENTED, WELCOME, bytes_field, call_message,
                        descriptor_input, frame, hello_message, reduce_message, stream_input, uint_field, varint)

GREETING = frame(HELLO, payload=hello_message())


class Hostile(DaemonTest):
    OPTIONS = {"slabs": 4}

    def ended(self, data, code, *words, hello=True, descriptors=()):
        """Sending data ends the connection with a sentence; others are served."""
        with self.daemon.connect(hello=False) as c:
            for stream in (1, 2, 3, 5, 9):  # whatever it may have opened
                c.open_stream(stream)
            try:
                c.send((GREETING if hello else b"") + data, descriptors)
                c.read_rest()
            except Closed:
                pass
            self.assert_sentence(c.reason, code, *words)
        self.assert_serves()


class Frames(Hostile):
    def test_headers_that_break_a_rule(self):
        call = call_message(info=True)
        for name, data, words, *code in (
                ("magic", frame(CALL, 1, call, magic=b"HT"), ["magic"]),
                ("http", b"GET / HTTP/1.1\r\nHost: cured\r\n\r\n", ["magic"]),
                ("version 0", frame(CALL, 1, call, version=0), ["version"], UNIMPLEMENTED),
                ("version 2", frame(CALL, 1, call, version=2), ["version"], UNIMPLEMENTED),
                ("reserved", frame(CALL, 1, call, reserved=1), ["byte 7"]),
                ("flags", frame(CALL, 1, call, flags=4), ["flags"]),
                ("flags high", frame(CALL, 1, call, flags=0x8001), ["flags"]),
                ("type 0", frame(0, 1, call), ["type"]),
                ("type 12", frame(12, 1, call), ["type"]),
                ("type 255", frame(255, 0), ["type"]),
                ("call on 0", frame(CALL, 0, call), ["stream"]),
                ("data on 0", frame(DATA, 0, b"1"), ["stream"]),
                ("cancel on 0", frame(CANCEL, 0), ["stream"]),
                ("ping on 1", frame(PING, 1), ["stream"]),
                ("cancel with payload", frame(CANCEL, 1, b"x"), ["CANCEL"]),
                ("long call", frame(CALL, 1, call, length=65537), ["CALL", "65536"]),
                ("longest call", frame(CALL, 1, call, length=2**32 - 1), ["CALL"]),
                ("long data", frame(DATA, 1, b"", length=DATA_BYTES + 1), ["DATA", "1048576"]),
                ("longest data", frame(DATA, 1, b"", length=2**32 - 1), ["DATA"]),
                ("long ping", frame(PING, 0, bytes(65)), ["PING", "64"]),
                ("long credit", frame(CREDIT, 1, b"", length=70000), ["CREDIT"]),
                ("long ignorable", frame(200, 1, b"", flags=2, length=DATA_BYTES + 1), ["1048576"]),
                ("five descriptors", frame(CALL, 1, call, descriptors=5), ["descriptors"]),
                ("descriptors on DATA", frame(DATA, 1, b"1", descriptors=1), ["descriptors"]),
                ("descriptors on PING", frame(PING, 0, b"1", descriptors=1), ["descriptors"]),
                ("descriptors on ignorable", frame(200, 0, b"1", flags=2, descriptors=1), ["descriptors"])):
            with self.subTest(name):
                self.ended(data, *(code or [INVALID_ARGUMENT]), *words)

    def test_types_that_only_servers_send(self):
        for kind, stream in ((WELCOME, 0), (PROGRESS, 1), (RESULT, 1), (STATUS, 0), (STATUS, 1)):
            with self.subTest(kind):
                self.ended(frame(kind, stream, b"\x08\x01"), INVALID_ARGUMENT)

    def test_first_frame(self):
        for data in (frame(PING), frame(CALL, 1, call_message(info=True))):
            self.ended(data, INVALID_ARGUMENT, "HELLO", hello=False)
        for data in (frame(DATA, 1, b"123", END), frame(DATA, 1, bytes(9000)), frame(CANCEL, 1), frame(CREDIT, 1)):
            self.ended(data, INVALID_ARGUMENT, hello=False)
        self.ended(GREETING, INVALID_ARGUMENT, "HELLO", "twice")

    def test_ignorable_frames_before_hello(self):
        """HELLO comes first, whatever else may be ignored; with payload in this read, in later ones, and none."""
        for size, sent in ((0, 0), (100, 100), (100, 40), (3000, 3000), (1 << 20, 5000), (1 << 20, 1 << 20)):
            self.ended(frame(200, 0, bytes(size), flags=2)[:16 + sent] + b"\xff" * 40, INVALID_ARGUMENT, "HELLO", hello=False)
            with self.daemon.connect(hello=False) as c:
                whole = frame(200, 0, b"\xff" * size, flags=2)[:16 + sent]
                try:
                    c.send(whole[:16])
                    c.send(whole[16:])
                    c.send(b"\xff" * 70000)
                except Closed:
                    pass
                self.assertEqual(INVALID_ARGUMENT, c.read_rest().code)
        self.assert_serves()

    def test_hello_contents(self):
        for lowest, highest, code in ((2, 3, UNIMPLEMENTED), (2**31, 2**32 - 1, UNIMPLEMENTED), (0, 1, INVALID_ARGUMENT),
                                      (2, 1, INVALID_ARGUMENT), (0, 0, INVALID_ARGUMENT)):
            self.ended(frame(HELLO, payload=hello_message(lowest, highest)), code, "HELLO", "version", hello=False)
        for payload in (b"\xff" * 20, b"\x08", hello_message(client="x" * 65), hello_message()[:-1], b"\x22\xff\xff\xff\xff\x0f"):
            self.ended(frame(HELLO, payload=payload), INVALID_ARGUMENT, "HELLO", hello=False)
        for payload in (hello_message(1, 2**32 - 1), hello_message(1, 7, ["axis", "zstd"] * 20, "x" * 64),
                        hello_message(client="\x1b[31m\n\"quote"), hello_message() + bytes_field(99, b"more")):
            with self.daemon.connect(hello=False) as c:
                c.send(frame(HELLO, payload=payload))
                self.assertEqual(1, c.greet()["version"])

    def test_stream_numbers(self):
        info = call_message(info=True)
        self.ended(frame(CALL, 5, info) + frame(CALL, 5, info), INVALID_ARGUMENT, "stream 5")
        self.ended(frame(CALL, 5, info) + frame(CALL, 3, info), INVALID_ARGUMENT, "stream 3")
        for kind, payload in ((DATA, b"123"), (DATA, b""), (CANCEL, b""), (CREDIT, uint_field(1, 5))):
            self.ended(frame(kind, 9, payload), INVALID_ARGUMENT, "stream 9")
            self.ended(frame(CALL, 5, info) + frame(kind, 9, payload), INVALID_ARGUMENT, "stream 9")

    def test_data_for_streams_that_are_over(self):
        with self.daemon.connect() as c:
            c.next_stream = 50
            over = c.start_inline("u8", ["sum"], b"12")
            c.wait(over)
            for size in (0, 1, 30000, DATA_BYTES):
                for stream in (over, over - 1, 1):  # answered, and never used but below the highest
                    c.send(frame(DATA, stream, bytes(size), END if size % 2 else 0))
            c.send(frame(CANCEL, over) + frame(CREDIT, over, uint_field(1, 9)) + frame(CREDIT, 2))
            for _ in range(10):
                c.send(frame(DATA, over, bytes(DATA_BYTES)))  # beyond any window: not counted
            self.assertEqual(b"on", c.ping(b"on"))


class Silence(Hostile):
    OPTIONS = {"hello_timeout_ms": 2000, "stall_timeout_ms": 2000, "slabs": 4}  # a busy machine may leave the test no time for a second

    def test_no_hello(self):
        clients = [self.connect(hello=False) for _ in range(5)]
        for c, sent in zip(clients, (b"", GREETING[:1], GREETING[:15], GREETING[:16], GREETING[:-1])):
            c.send(sent)
        for c in clients:
            self.assert_sentence(c.read_rest(), DEADLINE_EXCEEDED, "HELLO", "2000")

    def test_half_a_frame(self):
        call = call_message(reduce_message("u8", ["sum"], stream_input(100000)))
        start = frame(CALL, 1, call)
        halves = (start[:1], start[:15], start[:16], start[:-1], start + frame(DATA, 1, bytes(1000))[:8],
                  start + frame(DATA, 1, bytes(1000))[:16], start + frame(DATA, 1, bytes(50000))[:-1],
                  start + frame(DATA, 1, bytes(1000), END)[:500], frame(200, 0, bytes(100), flags=2)[:50])
        clients = [self.connect() for _ in halves]
        for c, sent in zip(clients, halves):
            c.open_stream(1)
            c.send(sent)
        for c in clients:
            self.assert_sentence(c.read_rest(), DEADLINE_EXCEEDED, "unfinished", "2000")
        self.assert_serves()

    def test_waiting_between_frames_is_no_stall(self):
        """Longer than both limits, with a call open: an idle client is a good client."""
        with self.daemon.connect() as c, self.daemon.connect(hello=False) as silent:
            stream = c.start_stream("u8", ["sum"], 3)
            c.send_data(stream, b"\1")
            silent.read_rest()  # one limit later …
            with self.daemon.connect(hello=False) as again:
                again.read_rest()  # … and another
            c.send_data(stream, b"\2\3", end=True)
            self.assertEqual(6, int.from_bytes(c.wait(stream).results[0].value, "little"))

    def test_replies_left_unread(self):
        """Reads nothing, asks on and on: it is not read from any more, then ended; memory and others are safe."""
        import socket
        before = self.daemon.counters()["connections_ended"]
        with self.daemon.connect() as c:
            c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            ask = b"".join(frame(PING, payload=bytes(64)) for _ in range(1000))
            sent = 0
            try:
                while sent < 200 << 20:
                    sent += c.socket.send(ask, socket.MSG_NOSIGNAL)
            except BlockingIOError:
                pass
            self.assertLess(sent, 64 << 20, "the daemon reads on though nobody takes its replies")
            self.assert_serves()
            wait_for("the connection to be ended", lambda: self.daemon.gauges()["connections"] == 1)
            self.assertEqual(before + 1, self.daemon.counters()["connections_ended"])


class Requests(Hostile):
    def setUp(self):
        self.conn = self.connect()

    def refused(self, payload, code, *words, flags=0):
        stream = self.conn.open_stream()
        self.conn.send(frame(CALL, stream, payload, flags))
        self.assert_sentence(self.conn.wait(stream).status, code, *words)

    def refused_reduce(self, code, *words, dtype="f32", ops=("sum",), source=None, **options):
        source = stream_input(8) if source is None else source
        self.refused(call_message(reduce_message(dtype, ops, source, **options)), code, *words)

    def tearDown(self):
        self.assertEqual(b"on", self.conn.ping(b"on"), "a refused call must leave its connection")
        self.assert_serves()

    def test_types_and_ops(self):
        # numbers of no enum, those of results, those to come
        for dtype, code in ((0, INVALID_ARGUMENT), (14, INVALID_ARGUMENT), (15, INVALID_ARGUMENT), (2**31, INVALID_ARGUMENT),
                            (2**32 + 12, INVALID_ARGUMENT), (18, UNIMPLEMENTED), (99, UNIMPLEMENTED)):
            stream = self.conn.start_stream(dtype, ["sum"], 8)
            self.assert_sentence(self.conn.wait(stream).status, code, "dtype")
        for op, code in ((0, INVALID_ARGUMENT), (2**31, INVALID_ARGUMENT), (2**32 + 1, INVALID_ARGUMENT), (30, UNIMPLEMENTED),
                         (99, UNIMPLEMENTED)):
            status = self.conn.wait(self.conn.start_stream("f32", ["sum", op], 8)).status
            self.assert_sentence(status, code, "op")
        self.refused_reduce(INVALID_ARGUMENT, "ops", ops=())
        self.refused_reduce(INVALID_ARGUMENT, "op", "twice", ops=("sum", "max", "sum"))
        self.refused_reduce(INVALID_ARGUMENT, "ops", "32", ops=["sum"] * 33)
        self.refused_reduce(INVALID_ARGUMENT, ops=["sum"] * 20000)
        for name in ("nan", "overflow", "result_dtype"):
            self.refused_reduce(INVALID_ARGUMENT, name, **{name: 77})
        self.refused_reduce(INVALID_ARGUMENT, "result_dtype", dtype="f32", result_dtype="i64")

    def test_kernels(self):
        """What a request that names a kernel may ask; the last word is that there is no device here."""
        self.refused_reduce(NOT_FOUND, "kernel", "'v9_magic'", kernel="v9_magic")
        self.refused_reduce(INVALID_ARGUMENT, "kernel", "65", "64", kernel="v" * 65)
        self.refused_reduce(UNIMPLEMENTED, "kernel", "mean", kernel="v7_shuffle", ops=("sum", "mean"))
        self.refused_reduce(UNIMPLEMENTED, "kernel", "u8", kernel="v7_shuffle", dtype="u8")
        for name, value in (("nan", 1), ("result_dtype", "f32"), ("first", 4), ("partial", True), ("axis", (1, 2, 1))):
            self.refused_reduce(INVALID_ARGUMENT, "kernel", name, kernel="v7_shuffle", **{name: value})
        for name in ("v0_baseline", "v7_shuffle", "block_host", "streams"):
            self.refused_reduce(FAILED_PRECONDITION, name, "CUDA device", kernel=name, ops=("sum", "max", "all"))

    def test_lengths(self):
        for dtype, size in (("u16", 1), ("f32", 6), ("f64", 2**49 + 4), ("i64", 2**49 - 1)):
            self.refused_reduce(INVALID_ARGUMENT, "bytes", dtype, dtype=dtype, source=stream_input(size))
        for size in (2**50 + 8, 2**63, 2**64 - 8):
            self.refused_reduce(INVALID_ARGUMENT, "max_input_bytes", dtype="f64", source=stream_input(size))

    def test_missing_parts(self):
        self.refused(b"", INVALID_ARGUMENT)
        self.refused(uint_field(1, 1000), INVALID_ARGUMENT)
        self.refused(bytes_field(3, b""), INVALID_ARGUMENT)
        for source in (b"", bytes_field(1, b""), bytes_field(1, uint_field(2, 0))):
            self.refused_reduce(INVALID_ARGUMENT, source=source)
        self.refused(call_message(reduce_message("f32", ["sum"], None)), INVALID_ARGUMENT, "input")

    def test_what_new_clients_will_send(self):
        """Fields that would change the answer are refused by name; hints are passed over, and the call is answered."""
        array = stream_input(8)
        for number, name in ((63, "beside"), (100, "data")):
            payload = call_message(reduce_message("f32", ["sum"], array) + bytes_field(number, b"new"))
            self.refused(payload, UNIMPLEMENTED, "ReduceRequest." + name)
        self.refused_reduce(UNIMPLEMENTED, "Input.inline", source=bytes_field(5, b"new"))
        self.refused_reduce(UNIMPLEMENTED, "field 57", source=array + uint_field(57, 1))
        self.refused_reduce(UNIMPLEMENTED, "DescriptorInput.index", source=bytes_field(2, uint_field(3, 1) + uint_field(4, 1)))
        strided = call_message(reduce_message("f32", ["sum"], array, partial=True, layout=bytes_field(1, uint_field(4, 8))))
        self.refused(strided, UNIMPLEMENTED, "ArrayAxis.stride")
        big = call_message(reduce_message("f32", ["sum"], array) + bytes_field(100, bytes(60000)))
        self.refused(big, UNIMPLEMENTED, "ReduceRequest.data")
        stream = self.conn.open_stream()
        hinted = call_message(reduce_message("u8", ["sum"], stream_input(3)) + bytes_field(64, b"hint")) + uint_field(99, 1)
        self.conn.send(frame(CALL, stream, hinted))
        self.conn.send(frame(DATA, stream, b"\1\2\3", END))
        self.assertEqual(6, int.from_bytes(self.conn.wait(stream).results[0].value, "little"))

    def test_garbage(self):
        r = random.Random(3)
        good = call_message(reduce_message("f32", ["sum", "max"], stream_input(8)), timeout_ms=1000)
        for payload in (b"\xff" * 100, b"\x1a\x80", b"\x1a\xff\xff\xff\xff\x0f", good[:-1], good + b"\x1a", b"\x0b" * 60000,
                        bytes_field(3, b"\xff" * 30), varint(3 << 3 | 2) + varint(2**64 - 1), r.randbytes(65536)):
            self.refused(payload, INVALID_ARGUMENT, "protobuf")

    def test_nested_and_wrong_wire_types(self):
        deep = b""
        for _ in range(3000):
            deep = bytes_field(1, deep)[:60000]
        for payload in (bytes_field(3, deep), bytes_field(1, b"timeout"), uint_field(3, 7),
                        bytes_field(3, bytes_field(1, b"f32"))):
            stream = self.conn.open_stream()
            self.conn.send(frame(CALL, stream, payload))
            self.assertIsNotNone(self.conn.wait(stream).status)


class Descriptors(Hostile):
    def setUp(self):
        self.conn = self.connect()
        self.before = self.daemon.start_holds["descriptors"] + 1
        self.data = self.file(bytes([1]) * 100)

    def call(self, stream, source=None, descriptors=1, flags=END):
        source = descriptor_input() if source is None else source
        return frame(CALL, stream, call_message(reduce_message("u8", ["sum"], source)), flags, descriptors)

    def back(self):
        wait_for("the descriptors to be closed", lambda: self.daemon.descriptors() == self.before)

    def test_wrong_numbers_fail_the_call(self):
        fd = self.data.fileno()
        for source, count, words in ((descriptor_input(), 0, ["descriptor"]), (descriptor_input(), 2, ["descriptor"]),
                                     (descriptor_input(), 4, ["descriptor"]), (stream_input(3), 1, ["descriptor"]),
                                     (stream_input(3), 3, ["descriptor"])):
            stream = self.conn.open_stream()
            self.conn.send(self.call(stream, source, count), [fd] * count)
            self.assert_sentence(self.conn.wait(stream).status, INVALID_ARGUMENT, *words)
            self.back()
        stream = self.conn.open_stream()
        self.conn.send(frame(CALL, stream, call_message(info=True), END, 1), [fd])
        self.assert_sentence(self.conn.wait(stream).status, INVALID_ARGUMENT, "descriptor")
        stream = self.conn.open_stream()
        self.conn.send(frame(CALL, stream, b"\xff\xff", END, 2), [fd, fd])
        self.assert_sentence(self.conn.wait(stream).status, INVALID_ARGUMENT)
        self.back()

    def test_wrong_numbers_end_the_connection(self):
        fd = self.data.fileno()
        self.ended(self.call(1, descriptors=1), INVALID_ARGUMENT, "descriptor")
        self.ended(self.call(1, descriptors=2), INVALID_ARGUMENT, "descriptor", descriptors=[fd])
        self.ended(b"C", RESOURCE_EXHAUSTED, "descriptors", "8", descriptors=[fd] * 9)
        self.ended(self.call(1, descriptors=4), RESOURCE_EXHAUSTED, "descriptors", descriptors=[fd] * 250)
        self.ended(frame(PING, payload=b"1"), RESOURCE_EXHAUSTED, "descriptors", descriptors=[fd] * 253)
        self.back()

    def test_nine_one_by_one(self):
        fd = self.data.fileno()
        with self.assertRaises(Closed) as caught, self.daemon.connect() as c:
            for n in range(9):
                c.send(frame(PING, payload=b"%d" % n), [fd])
                c.until(lambda: len(c.pongs) == n + 1)
        self.assert_sentence(caught.exception.status, RESOURCE_EXHAUSTED, "descriptors", "8")
        self.back()

    def test_eight_may_wait_and_are_taken_in_order(self):
        """Descriptors that came with earlier frames belong to the next calls, oldest first."""
        files = [self.file(bytes([1]) * n) for n in range(1, 9)]
        for n, f in enumerate(files):
            self.conn.send(frame(PING, payload=b"%d" % n), [f.fileno()])
        for n in range(1, 9):
            stream = self.conn.open_stream()
            self.conn.send(self.call(stream))
            self.assertEqual(n, int.from_bytes(self.conn.wait(stream).results[0].value, "little"))

    def test_waiting_descriptors_are_closed_with_the_connection(self):
        with self.daemon.connect() as c:
            c.send(frame(PING), [self.data.fileno()] * 8)
            c.until(lambda: c.pongs)
            wait_for("them to wait", lambda: self.daemon.descriptors() == self.before + 9)
        self.back()

    def test_two_calls_with_descriptors_in_separate_writes(self):
        other = self.file(bytes([2]) * 50)
        a, b = self.conn.open_stream(), self.conn.open_stream()
        whole = self.call(b)
        self.conn.send(self.call(a), [self.data.fileno()])
        self.conn.send(whole[:1], [other.fileno()])
        self.conn.send(whole[1:20])
        self.conn.send(whole[20:])
        self.assertEqual([100, 100], [int.from_bytes(self.conn.wait(s).results[0].value, "little") for s in (a, b)])

    def test_one_for_a_running_upload_frame_is_kept_apart(self):
        """A descriptor in the middle of array bytes does not disturb them."""
        stream = self.conn.start_stream("u8", ["sum"], 60000)
        data = frame(DATA, stream, bytes([1]) * 60000, END)
        self.conn.send(data[:30000])
        self.conn.send(data[30000:], [self.data.fileno()])
        self.assertEqual(60000, int.from_bytes(self.conn.wait(stream).results[0].value, "little"))
        late = self.conn.open_stream()
        self.conn.send(self.call(late))
        self.assertEqual(100, self.conn.wait(late).count)


class Disconnects(Hostile):
    """A client that leaves at every byte of a call."""
    OPTIONS = {"slabs": 4}

    def each_prefix(self, data, lengths, descriptor=None):
        for length in lengths:
            with Connection(self.daemon.address, hello=False) as c:
                c.open_stream(1)
                if length:
                    c.send(data[:length], [descriptor] if descriptor is not None else ())
        self.assert_serves()
        self.daemon.check_returned(self)

    def test_inline(self):
        data = (GREETING + frame(CALL, 1, call_message(reduce_message("f32", ["sum", "max"], stream_input(32)))) +
                frame(DATA, 1, bytes(32), END))
        self.each_prefix(data, range(len(data) + 1))

    def test_streamed(self):
        data = (GREETING + frame(CALL, 1, call_message(reduce_message("f64", ["sum", "max"], stream_input(None)))) +
                frame(DATA, 1, bytes(11)) + frame(DATA, 1, bytes(70)) + frame(DATA, 1, bytes(47), END))
        self.each_prefix(data, range(len(data) + 1))

    def test_streamed_large(self):
        start = GREETING + frame(CALL, 1, call_message(reduce_message("f64", ["sum"], stream_input(3 << 20))))
        data = start + frame(DATA, 1, bytes(1 << 20)) + frame(DATA, 1, bytes(1 << 20)) + frame(DATA, 1, bytes(1 << 20), END)
        r = random.Random(4)
        second = len(start) + 16 + (1 << 20)
        lengths = [len(start) + n for n in range(20)] + [second + n for n in range(-3, 20)]
        self.each_prefix(data, lengths + [r.randrange(len(data)) for _ in range(40)] + [len(data) - 1, len(data)])

    def test_descriptor(self):
        f = self.file(bytes(100000))
        data = frame(CALL, 1, call_message(reduce_message("u8", ["sum"], descriptor_input())), END, 1) + frame(PING)
        for length in range(1, len(data) + 1):
            with Connection(self.daemon.address) as c:
                c.send(data[:length], [f.fileno()])
        self.assert_serves()
        self.daemon.check_returned(self)

    def test_descriptor_with_hello(self):
        """The descriptor came with HELLO's first byte, and waits for its frame."""
        f = self.file(bytes(1000))
        data = GREETING + frame(CALL, 1, call_message(reduce_message("u8", ["sum"], descriptor_input())), END, 1)
        self.each_prefix(data, range(len(data) + 1), f.fileno())


if __name__ == "__main__":
    main()
