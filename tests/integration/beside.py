"""beside: calls with an array and what is beside it, each by any way in which it may come: DATA, a descriptor, a region."""
import os
import subprocess

from cured_daemon import BIN, DaemonTest, environment, need_binary
from cured_wire import DATA, END, SIZES, descriptor_input, frame, region_input, stream_input

WAYS = ("stream", "unknown", "descriptor", "to_end", "memfd", "sealed", "file")  # of an array
BESIDE_WAYS = ("stream", "descriptor", "memfd", "sealed", "file")
REGIONS = ("memfd", "sealed", "file")
PAIR_BLOCK = 256 << 10


class Beside:
    """One further input: the field's name, its bytes, what the message says of it by where(source, offset), and how it comes."""

    def __init__(self, field, data, message, way="stream"):
        self.field, self.data, self.message, self.way = field, data, message, way


def in_turn(data, second):
    """What DATA has of an array and its second: a block of each in turn."""
    return b"".join(part[at:at + PAIR_BLOCK] for at in range(0, max(len(data), len(second)), PAIR_BLOCK) for part in (data, second))


class LibraryProgram:
    """A program of tests/unit/client whose connections are the daemon's, in place of those that this process answers."""
    OPTIONS = {"cpu_workers": 2}

    def test_libcured(self):
        program = os.path.join(BIN, "..", "tests", self.OF_LIBRARY)
        need_binary(program)
        done = subprocess.run([program], env=environment(CURED_TEST_ADDRESS=self.daemon.address, CK_DEFAULT_TIMEOUT="300"), text=True,
                              capture_output=True)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)


class BesideTest(DaemonTest):
    OPTIONS = {"cpu_workers": 2, "shm_names": True}

    def partial_of(self, answer):
        """The bytes of a partial by key, whose parts must come one behind the other."""
        self.assertIsNone(answer.status)
        self.assertEqual(([], b""), (answer.results, answer.partial))
        at = 0
        for op, start, values in answer.parts:
            self.assertEqual((0, at), (op, start))
            at += len(values)
        return b"".join(values for _, _, values in answer.parts)

    def source_of(self, dtype, data, way, passed):
        """The Input message of an array that comes so."""
        if way in ("stream", "unknown"):
            return stream_input(len(data) if way == "stream" else None)
        if way == "descriptor":
            passed.append(self.memfd(b"12345" + data).fileno())
            return descriptor_input(5, len(data) // SIZES[dtype])
        if way == "to_end":
            passed.append(self.file(data).fileno())
            return descriptor_input()
        self.assertEqual(len(data) + 7, self.conn.register(1, getattr(self, way)(b"1234567" + data).fileno()))
        return region_input(1, 7)

    def place(self, number, beside, passed):
        """The message of a further input, whose bytes lie from the third of their source on unless they are sent."""
        if beside.way == "stream":
            return beside.message("stream", 0)
        if beside.way == "descriptor":
            passed.append(self.file(b"123" + beside.data).fileno())
            return beside.message("file_descriptor", 3)
        self.assertEqual(len(beside.data) + 4, self.conn.register(number, getattr(self, beside.way)(b"123" + beside.data + b"4").fileno()))
        return beside.message(number, 3)

    def ask(self, dtype, ops, data, way="stream", beside=(), pieces=None, **options):
        """The Answer. pieces: sizes of DATA, in turn; None: all at once, behind the CALL in one write."""
        c, passed = self.conn, []
        source = self.source_of(dtype, data, way, passed)
        messages = {b.field: self.place(2 + i, b, passed) for i, b in enumerate(beside)}
        streamed = {b.field: b.data for b in beside if b.way == "stream"}
        if way in WAYS[:2]:
            data = in_turn(data, streamed.pop("second", b""))
        sent = b"".join(streamed.values()) + (data if way in WAYS[:2] else b"")
        streams = way in WAYS[:2] or any(b.way == "stream" for b in beside)
        stream = c.open_stream()
        call = c.call_frame(stream, dtype, ops, source, flags=0 if streams else END, descriptors=len(passed), **messages, **options)
        if streams and pieces is None and len(sent) <= 1 << 20:
            c.credit[stream] -= len(sent)
            c.send(call + frame(DATA, stream, sent, END), passed)
        else:
            c.send(call, passed)
            if streams:
                c.send_array(stream, sent, pieces or (1 << 20,))
        answer = c.wait(stream)
        for number in [1] * (way in REGIONS) + [2 + i for i, b in enumerate(beside) if b.way in REGIONS]:
            self.assertIsNone(c.unregister(number))
        return answer
