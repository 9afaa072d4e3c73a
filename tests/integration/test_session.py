"""test_session: a session that was recorded once still gets the answers that it got then.

session.jsonl has a step a line: what the client sends (pieces "HEX*TIMES"), the bytes of the file that it passes, and the
frames that came back (of long ones a hash), but for what no two runs share: the times of an answer, and in info the uptime, what users hold and the
counters' values. `test_session.py --record` writes it anew, with the daemon in CURED_TEST_BIN; only a wanted change of the protocol
is a reason to.
"""
import hashlib
import json
import os
import sys
import tempfile
import unittest

from connection import Connection
from cured_daemon import Daemon, DaemonTest, main
from cured_wire import (CALL, CANCEL, CREDIT, DATA, END, HELLO, IGNORABLE, INPUTS, OPS, PING, PONG, PROGRESS, RESULT, SIZES,
                        STATUS, WELCOME, bytes_field, call_message, credit_message, descriptor_input, descriptor_region, frame,
                        hello_message, merge_message, parse, read_varint, reduce_message, region_input, register_message,
                        shm_region, stream_input)

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "session.jsonl")
OPTIONS = {"backend": "cpu", "cpu_workers": 2, "slabs": 8}


def without(payload, *numbers):
    """A message without some of its fields."""
    out, at = b"", 0
    while at < len(payload):
        start = at
        key, at = read_varint(payload, at)
        if key & 7 == 2:
            size, at = read_varint(payload, at)
            at += size
        elif key & 7 == 0:
            _, at = read_varint(payload, at)
        else:
            at += 8 if key & 7 == 1 else 4
        if key >> 3 not in numbers:
            out += payload[start:at]
    return out


def plain_info(payload):
    fields = parse(payload)
    counters = b"".join(bytes_field(6, without(c, 2)) for c in fields.get(6, []))
    return without(payload, 1, 4, 5, 6, 8) + counters


class Recorder(Connection):
    """A connection that keeps the frames that came, without what differs from run to run."""

    def __init__(self, address):
        self.frames, self.parts, self.infos, self.progress = [], {}, set(), set()
        super().__init__(address, hello=False)

    def handle(self, f):
        payload = f.payload
        if f.kind == WELCOME:
            payload = without(payload, 3)
        elif f.kind == RESULT and f.stream in self.infos:
            payload = plain_info(payload)
        elif f.kind == RESULT and f.flags & END:
            payload = without(payload, 3)
        elif f.kind == RESULT:  # an ArrayPart: cuts and order mean nothing
            fields = parse(payload)
            key = (f.stream, fields.get(1, [0])[0])
            self.parts.setdefault(key, {})[fields.get(2, [0])[0]] = fields.get(3, [b""])[0]
            return
        seen = (f.kind, f.flags, f.stream, payload.hex())
        if f.kind == PROGRESS:  # how often it comes, and in which step, is a matter of time
            if seen in self.progress:
                return
            self.progress.add(seen)
        self.frames.append(seen)

    def take(self):
        """All of the step, parts of arrays put together."""
        arrays = [(RESULT, 0, stream, op, b"".join(v for _, v in sorted(parts.items())).hex())
                  for (stream, op), parts in sorted(self.parts.items())]
        frames, self.frames, self.parts = self.frames, [], {}
        return [list(x[:-1]) + [x[-1] if len(x[-1]) <= 1024 else hashlib.sha256(x[-1].encode()).hexdigest()] for x in frames + arrays]


class Session:
    """The steps, as they are recorded."""

    def __init__(self):
        self.stream = 0
        self.steps = []

    def step(self, name, pieces, file=None, ends=1, info=False, new=False):
        """ends: how many frames end what was asked for (END, PONG, WELCOME); 0: the server closes."""
        sent = [p if isinstance(p, str) else p.hex() + "*1" for p in pieces]
        self.steps.append({"step": name, "new": new, "send": sent, "file": None if file is None else file.hex(), "ends": ends,
                           "info": [self.stream] if info else []})

    def call(self, message, flags=0, descriptors=0):
        self.stream += 1
        return frame(CALL, self.stream, message, flags, descriptors)

    def data(self, payload, end=True):
        return frame(DATA, self.stream, payload, END if end else 0)

    def reduce(self, dtype, ops, source, flags=0, descriptors=0, timeout_ms=0, progress_ms=0, **options):
        return self.call(call_message(reduce_message(dtype, ops, source, **options), timeout_ms=timeout_ms, progress_ms=progress_ms),
                         flags, descriptors)

    def greeting(self, name="hello"):
        self.stream = 0
        self.step(name, [frame(HELLO, payload=hello_message(features=["axis"]))], new=True)

    def inline(self, name, dtype, ops, data, **options):
        self.step(name, [self.reduce(dtype, ops, stream_input(len(data)), **options), self.data(data)])

    def small_calls(self):
        raw = bytes(range(1, 65)) * 4
        for dtype in INPUTS:
            data = bytes(64 // SIZES[dtype] * SIZES[dtype]) if dtype == "bool" else raw[:16 * SIZES[dtype]]
            for op in OPS:
                self.inline("%s of %s" % (op, dtype), dtype, [op], data)
        for name, options in (("ddof", {"ddof": 1}), ("nan", {"nan": 1}), ("type", {"result_dtype": "f32"}), ("bad nan", {"nan": 9}),
                              ("wrap", {"overflow": 1}), ("first", {"first": 4096}), ("kernel", {"kernel": "v0_baseline"}),
                              ("no kernel", {"kernel": "none"})):
            self.inline(name, "f64", ["var"], raw, **options)
            self.inline(name + ", sum", "i64", ["sum", "mean"], raw, **options)
        self.inline("nothing", "f32", ["sum", "count"], b"")
        self.inline("the least of nothing", "f32", ["min"], b"")
        self.inline("no type", 99, ["sum"], raw)
        self.inline("not whole", "u32", ["sum"], raw[:-1])
        self.step("END on CALL", [self.reduce("u8", ["count"], stream_input(0), END)])
        self.step("a broken message", [self.call(b"\xff\xff\xff")])
        self.step("three at once", [self.reduce("u8", ["sum"], stream_input(3)), self.data(b"abc"), self.reduce("i8", ["max"], stream_input(3)),
                                    self.data(b"abc"), frame(PING, payload=b"!"), self.reduce("u16", ["sum"], stream_input(2)),
                                    self.data(b"ab")], ends=4)

    def uploads(self):
        mib = b"\x01\x02\x03\x04"
        for name, size in (("known", 6 << 20), ("unknown", None)):
            call = self.reduce("u32", ["sum", "max", "argmax"], stream_input(size))
            parts = ["%s*1" % call.hex()]
            for n in range(6):
                head = frame(DATA, self.stream, b"", END if n == 5 else 0, length=1 << 20)
                parts += [head.hex() + "*1", "%s*%d" % (mib.hex(), 1 << 18)]
                if n == 1:
                    self.step("upload, " + name, parts, ends=0)
                    self.steps[-1]["frames"] = 2  # a CREDIT for each
                    parts = []
            self.step("its rest, " + name, parts)
        self.step("too few", [self.reduce("u32", ["sum"], stream_input(8)), self.data(b"1234")])
        self.step("too many", [self.reduce("u32", ["sum"], stream_input(8)), self.data(b"123412341234")])
        self.step("a partial, and its merging", [self.reduce("f32", ["sum", "min"], stream_input(8), partial=True), self.data(bytes(8))])
        self.step("a bad partial", [self.call(call_message(merge=merge_message(["sum"], None))), self.data(b"\x04\x00\x00\x00abcd")])
        self.step("no partial", [self.call(call_message(merge=merge_message(["sum"], None))), self.data(b"")])
        self.step("DATA of a call that is over", [self.data(b"abc", False), frame(PING, payload=b"after")])

    def arrays(self):
        raw = bytes(range(240))
        for shape in ((2, 3, 5), (30, 1, 1), (1, 30, 1), (1, 1, 30), (3, 0, 5)):
            size = 8 * shape[0] * shape[1] * shape[2]
            for ops in (["sum", "count"], ["max", "argmin"]):
                self.inline("axis %r" % (shape,), "i64", ops, raw[:size], axis=shape)
        self.step("an array with credit", [self.reduce("u8", ["sum"], stream_input(1 << 20), axis=(1 << 20, 1, 1)),
                                           frame(CREDIT, self.stream, credit_message(1 << 30)),
                                           frame(DATA, self.stream, b"", END, length=1 << 20), "07*%d" % (1 << 20)])
        self.inline("a wrong shape", "i64", ["sum"], raw, axis=(2, 3, 4))
        self.inline("too large a shape", "i64", ["sum"], raw, axis=(1 << 60, 1 << 60, 4))
        self.inline("no least of none", "i64", ["min"], b"", axis=(2, 0, 4))

    def files(self):
        for count in (None, 5, 5000):
            self.step("a file", [self.reduce("u16", ["sum", "count"], descriptor_input(2, count), END, 1)], file=bytes(range(256)))
        self.step("registered", [self.call(call_message(register=register_message(7, descriptor_region())), END, 1)],
                  file=bytes(range(256)) * 64)
        self.step("again", [self.call(call_message(register=register_message(7, descriptor_region())), END, 1)], file=b"1")
        for count in (None, 5, 5000):
            self.step("of the region", [self.reduce("u16", ["sum", "count"], region_input(7, 2, count), END)])
        self.step("along an axis", [self.reduce("u8", ["sum"], region_input(7, 0, 1000), END, axis=(10, 10, 10))])
        self.step("unregistered", [self.call(call_message(unregister=7), END)])
        self.step("not there", [self.call(call_message(unregister=7), END)])
        self.step("not there either", [self.reduce("u16", ["sum"], region_input(7), END)])
        self.step("without its descriptor", [self.call(call_message(register=register_message(8, descriptor_region())), END)])
        self.step("by name", [self.call(call_message(register=register_message(8, shm_region("/x"))), END)])
        self.step("a descriptor too many", [self.call(call_message(reduce_message("u8", ["sum"], stream_input(1))), 0, 1)], file=b"1")

    def control(self):
        self.step("ping", [frame(PING, payload=b"12345678")])
        self.step("pong", [frame(PONG, payload=b"12345678"), frame(PING)])
        self.step("ignorable", [frame(77, 0, b"what", IGNORABLE), frame(PING)])
        self.step("info", [self.call(call_message(info=True), END)], info=True)
        self.step("progress", [self.reduce("u8", ["sum"], stream_input(9), progress_ms=10)], ends=0)
        self.steps[-1]["frames"] = 1
        self.step("cancelled", [frame(CANCEL, self.stream)])
        self.step("cancelled again", [frame(CANCEL, self.stream), frame(PING)])
        self.step("too late", [self.reduce("u8", ["sum"], stream_input(9), timeout_ms=1)])

    def ends(self):
        for name, bytes_ in (("not HELLO", frame(PING)), ("no frame", b"GET / HTTP/1.1\r\n\r\n"),
                             ("no version", frame(HELLO, payload=hello_message(7, 9)))):
            self.step(name, [bytes_], ends=0, new=True)
        for name, pieces in (("HELLO twice", [frame(HELLO, payload=hello_message())]), ("no CALL", [frame(CANCEL, 5)]),
                             ("falling", [frame(CALL, 2, call_message(info=True), END), frame(CALL, 1, call_message(info=True), END)]),
                             ("a bad credit", [frame(CALL, 1, call_message(reduce_message("u8", ["sum"], stream_input(3)))),
                                               frame(CREDIT, 1, b"\xff")]),
                             ("no descriptor", [self.call(call_message(reduce_message("u8", ["sum"], descriptor_input())), END, 1)])):
            self.greeting()
            self.step(name, pieces, ends=0)
            self.steps[-1]["info"] = [2] if name == "falling" else []

    def all(self):
        self.greeting()
        for steps in (self.control, self.small_calls, self.uploads, self.arrays, self.files, self.ends):
            steps()
        return self.steps


def bytes_of(pieces):
    out = b""
    for piece in pieces:
        what, _, times = piece.partition("*")
        out += bytes.fromhex(what) * int(times)
    return out


def ended(frames):
    return sum(1 for kind, flags, *_ in frames if flags & END or kind in (PONG, WELCOME))


def run(connection, step):
    """Sends a step and returns what came back."""
    connection.infos.update(step["info"])
    with tempfile.TemporaryFile() as f:
        f.write(bytes.fromhex(step["file"] or ""))
        f.flush()
        connection.send(bytes_of(step["send"]), [] if step["file"] is None else [f.fileno()])
    if step["ends"]:
        connection.until(lambda: ended(connection.frames) >= step["ends"])
    elif "frames" in step:
        connection.until(lambda: len(connection.frames) >= step["frames"])
    else:
        connection.until(lambda: False, ended_is_fine=True)
    return connection.take()


def run_all(address, steps):
    connection = None
    for step in steps:
        if step["new"]:
            if connection:
                connection.close()
            connection = Recorder(address)
        yield step, run(connection, step)
    connection.close()


class SessionTest(DaemonTest):
    OPTIONS = OPTIONS

    def test_answers_are_those_recorded(self):
        with open(FILE) as f:
            steps = [json.loads(line) for line in f]
        self.assertGreater(len(steps), 100)
        for step, came in run_all(self.daemon.address, steps):
            with self.subTest(step=step["step"]):
                self.assertEqual(step["receive"], came)

    def test_every_kind_of_frame_is_in_it(self):
        sent, received = set(), set()
        with open(FILE) as f:
            for step in map(json.loads, f):
                received.update(kind for kind, *_ in step["receive"])
                for piece in step["send"]:
                    raw = bytes.fromhex(piece.partition("*")[0])
                    if raw[:2] == b"CR":
                        sent.add(raw[3])
        self.assertLessEqual({HELLO, CALL, DATA, CANCEL, CREDIT, PING, PONG}, sent)
        self.assertLessEqual({WELCOME, PROGRESS, RESULT, STATUS, CREDIT, PONG}, received)


def record():
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(folder, **OPTIONS)
        steps = []
        for step, came in run_all(daemon.address, Session().all()):
            steps.append(dict(step, receive=came))
        daemon.stop()
    with open(FILE, "w") as f:
        for step in steps:
            f.write(json.dumps(step) + "\n")
    print("%d steps" % len(steps))


if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        record()
    else:
        main()
