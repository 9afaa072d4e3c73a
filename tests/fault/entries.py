"""entries: every way to ask the daemon for something, each as a function of a test and a connection. What comes back is what an
answer must be the same in, bit for bit.
"""
import os
import struct

from beside import in_turn
from connection import Closed
from cured_wire import (CANCEL, END, Status, beside_message, bytes_field, descriptor_input, frame, keys_message, mask_message, parameter_message, region_input, segments_message,
                        stream_input, uint_field)

BYTES = bytes(range(256)) * 12  # 3,072 bytes
MIB = 1 << 20
LONG = bytes(range(251)) * (3 * MIB // 251)  # more than two slabs, and a bit
FLOATS = struct.pack("<1000f", *[(-1) ** i * 1.5 ** (i % 60) for i in range(1000)])


class Refused(Exception):
    """A status instead of an answer."""

    def __init__(self, status):
        super().__init__(repr(status))
        self.status = status


def good(answer):
    if answer.status is not None:
        raise Refused(answer.status)
    return answer.keys(), answer.count, answer.partial


def good_array(answer, width, count):
    if answer.status is not None:
        raise Refused(answer.status)
    return answer.array(0, width, count)


def value(registered):
    if isinstance(registered, Status):
        raise Refused(registered)
    return registered


def connect(test, c):
    return c.greet()["server"], c.ping(b"here")


def inline(test, c):
    return good(c.inline("u8", ["sum", "argmax", "var"], BYTES))


def inline_axis(test, c):
    return good_array(c.inline("u8", ["sum"], BYTES, axis=(12, 256, 1)), 8, 12)


def stream(test, c):
    return good(c.stream("u8", ["sum", "max"], LONG))


def stream_in_crumbs(test, c):
    """Of unknown length, in pieces that cut elements."""
    return good(c.stream("f32", ["sum", "count"], FLOATS * 20, known=False, chunks=(1, 30001, 4094)))


def stream_columns(test, c):
    """Columns keep states."""
    return good_array(c.stream("u8", ["sum"], LONG[:2 * MIB], axis=(1, 2048, 1024)), 8, 1024)


def stream_rows(test, c):
    """More answers than bytes of input."""
    return good_array(c.stream("u8", ["max"], LONG[:MIB], axis=(MIB // 2, 2, 1)), 1, MIB // 2)


def stream_products(test, c):
    return good(c.stream("f32", ["prod"], FLOATS * 100))


def partial(test, c):
    return good(c.inline("f32", ["sum", "min"], FLOATS, partial=True))


def merge(test, c):
    part = good(c.inline("f32", ["sum"], FLOATS, partial=True, first=0))[2]
    other = good(c.inline("f32", ["sum"], FLOATS, partial=True, first=1000))[2]
    return good(c.merge(["sum"], [part, other]))


def of_file(test, c):
    return good(c.descriptor("u8", ["sum"], test.disk.fileno()))


def of_memory(test, c):
    return good(c.descriptor("u8", ["sum"], test.memory.fileno(), 5, 70000))


def of_sparse(test, c):
    return good(c.descriptor("u8", ["sum", "count"], test.sparse.fileno()))


def of_foreign(test, c):
    """A file of a file system that is not known as local: read into memory of the feed's own."""
    return good(c.descriptor("u8", ["count"], test.foreign.fileno()))


def file_columns(test, c):
    return good_array(c.descriptor("u8", ["sum"], test.disk.fileno(), 0, 2 * MIB, axis=(1, 2048, 1024)), 8, 1024)


def region(test, c):
    bytes_ = value(c.register(7, test.memory.fileno()))
    answers = good(c.region("u8", ["sum"], 7)), good(c.region("u8", ["max"], 7, 9, 100))
    gone = c.unregister(7)
    if gone is not None:
        raise Refused(gone)
    return bytes_, answers


def beside(test, c):
    """A mask and offsets, each by every way: DATA, a descriptor, a region; and keys."""
    mask, borders = test.sealed(bytes([1, 0, 1]) * 1000), test.file(struct.pack("<4I", 0, 5, 2000, 3000))
    value(c.register(4, mask.fileno()))
    answers = []
    for where in ("stream", "file_descriptor", 4):
        kept = mask_message(beside_message(3000, where))
        passed = [mask.fileno()] * (where == "file_descriptor") + [borders.fileno()]
        stream = c.open_stream()
        c.send(c.call_frame(stream, "u8", ["sum"], stream_input(3000), descriptors=len(passed), mask=kept,
                            segments=segments_message(beside_message(4, "file_descriptor"), "u32")), passed)
        c.send_array(stream, (bytes([1, 0, 1]) * 1000 if where == "stream" else b"") + BYTES[:3000])
        answers.append(good_array(c.wait(stream), 8, 3))
    stream = c.start_stream("u8", ["max"], MIB, segments=segments_message(beside_message(MIB // 4 + 1), "u32"))
    c.send_array(stream, struct.pack("<%dI" % (MIB // 4 + 1), *range(0, MIB + 1, 4)) + LONG[:MIB])
    answers.append(good_array(c.wait(stream), 1, MIB // 4))
    grouped = c.start_stream("f32", ["sum", "argmin"], len(FLOATS), keys=keys_message(beside_message(1000), 300, "u32", drop=True))
    c.send_array(grouped, struct.pack("<1000I", *[i % 301 for i in range(1000)]) + FLOATS)
    answers.append(good_array(c.wait(grouped), 8, 300))
    value(c.register(8, test.memory.fileno()))
    kept = c.open_stream()
    c.send(c.call_frame(kept, "u8", ["dot"], region_input(8, 0, 3000), second=beside_message(3000)))
    c.send_array(kept, BYTES[:3000])
    both = c.start_stream("u8", ["dot", "average"], MIB, second=beside_message(MIB))
    c.send_array(both, in_turn(LONG[:MIB], LONG[1:MIB + 1]))
    answers += [good(c.wait(kept)), good(c.wait(both))]
    gone = c.unregister(8)
    if gone is not None:
        raise Refused(gone)
    gone = c.unregister(4)
    if gone is not None:
        raise Refused(gone)
    return answers


def large_beside(test, c):
    """Masks whose memory a thread for files gives back: of a call that is answered, and of one that is cancelled before its array."""
    n, long = 5 * MIB, test.long.fileno()
    kept = mask_message(beside_message(n, "file_descriptor"), leaves_out=True)
    stream = c.open_stream()
    c.send(c.call_frame(stream, "u8", ["sum", "count"], descriptor_input(0, n), descriptors=2, mask=kept, flags=END), [long, long])
    answer = good(c.wait(stream))
    stream = c.open_stream()
    c.send(c.call_frame(stream, "u8", ["sum"], stream_input(n), descriptors=1, mask=kept), [long])
    c.send(frame(CANCEL, stream))
    c.wait(stream)
    return answer


def ranked(test, c):
    """Quantiles of an array in DATA, of a descriptor, of a region, and along an axis."""
    value(c.register(9, test.memory.fileno()))
    asked = [parameter_message(0, 0.25), parameter_message(1, 1)]
    answers = [good(c.stream("u8", ["quantile", "quantile", "sum"], LONG[:MIB + 1], parameters=asked, known=known)) for known in (True, False)]
    answers.append(good(c.descriptor("u8", ["median", "max"], test.memory.fileno())))
    answers.append(good(c.region("u8", ["median"], 9)))
    answers.append(good_array(c.stream("u8", ["median"], BYTES[:3000], axis=(30, 100, 1)), 8, 30))
    answers.append(good_array(c.region("u8", ["median"], 9, 0, 3000, axis=(3, 100, 10)), 8, 30))
    gone = c.unregister(9)
    if gone is not None:
        raise Refused(gone)
    return answers


def pieces(test, c):
    """One array in three pieces of two regions."""
    bytes_ = value(c.register(5, test.memory.fileno())), value(c.register(6, test.sealed_memory.fileno()))
    parts = b"".join(bytes_field(1, uint_field(1, number) + uint_field(2, offset) + uint_field(3, count))
                     for number, offset, count in ((5, 0, 50000), (6, 7, 90000), (5, 100, 200)))
    stream = c.open_stream()
    c.send(c.call_frame(stream, "u8", ["sum", "argmax"], bytes_field(4, parts), flags=END))
    return bytes_, good(c.wait(stream))


def sealed_region(test, c):
    bytes_ = value(c.register(1, test.sealed_memory.fileno()))
    return bytes_, good(c.region("u8", ["sum"], 1)), good_array(c.region("u8", ["sum"], 1, 0, 1 << 20, axis=(1024, 1024, 1)), 8, 1024)


def written(test, c):
    """Answers of two ops, in regions; small ones, and those that no call may keep."""
    target = test.sealed(bytes(3 * MIB))
    value(c.register(3, target.fileno(), writable=True))
    for rows in (12, MIB // 4):
        answer = c.stream("u8", ["sum", "max"], LONG[:rows * 4], axis=(rows, 4, 1), outputs=[(0, 3, 1), (1, 3, 1 + 8 * rows)])
        if answer.status is not None:
            raise Refused(answer.status)
    gone = c.unregister(3)
    if gone is not None:
        raise Refused(gone)
    return answer.written, os.pread(target.fileno(), 3 * MIB, 0)


def file_region(test, c):
    return value(c.register(2, test.sparse.fileno())), good(c.region("u8", ["sum"], 2))


def stats(test, c):
    return list(c.stats()["lanes"]), isinstance(c.slow_log(), list)


def info(test, c):
    return c.info()["version"]


def many(test, c):
    """Pipelined, so that the tables of a connection grow."""
    streams = [c.start_stream("u8", ["sum"], 40000) for _ in range(20)]
    for s in streams:
        c.send_array(s, LONG[:40000])
    return [good(c.wait(s)) for s in streams]


def cancelled(test, c):
    """Calls that end before they are done; the connection goes on."""
    s = c.start_stream("u8", ["sum"], 10 * MIB)
    c.send_data(s, LONG[:MIB])
    c.send(frame(CANCEL, s))
    try:
        c.until(lambda: c.answers[s].over)
    except Closed as e:
        raise Refused(e.status) from None
    return inline(test, c)


def left(test, c):
    """A client that goes in the middle of a call."""
    s = c.start_stream("u8", ["sum"], 10 * MIB)
    c.send_data(s, LONG[:MIB])
    c.close()


ENTRIES = (connect, inline, inline_axis, stream, stream_in_crumbs, stream_columns, stream_rows, stream_products, partial, merge,
           of_file, of_memory, of_sparse, of_foreign, file_columns, region, beside, large_beside, ranked, pieces, sealed_region, written, file_region, info, stats, many, cancelled, left)


def prepare(test):
    """The files that the entries read."""
    disk = test.file(LONG, "long")
    sparse = test.file(b"", "sparse")
    os.ftruncate(sparse.fileno(), 2 * MIB)
    os.pwrite(sparse.fileno(), b"\7" * 5000, MIB)
    test.disk, test.sparse = disk, sparse
    test.long = test.sealed(b"")
    os.ftruncate(test.long.fileno(), 5 * MIB)
    test.memory, test.sealed_memory = test.memfd(LONG), test.sealed(LONG)
    test.foreign = open("/sys/kernel/notes", "rb") if os.path.exists("/sys/kernel/notes") else disk
    test.addCleanup(test.foreign.close)


def outcome(test, entry):
    """("right", what came) or ("refused", status or None) of an entry on a connection of its own."""
    try:
        with test.daemon.connect() as c:
            return "right", entry(test, c)
    except Refused as e:
        return "refused", e.status
    except Closed as e:
        return "refused", e.status
