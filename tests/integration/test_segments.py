"""test_segments: reductions by offsets, which come beside the array by every way in which either may: each segment answers as it does by
itself, under masks too, as parts and written into regions; what is wrong with offsets is said, and what they hold is counted and given
back. Held against the oracle."""
import itertools
import os
import random
import struct
import threading

from beside import BESIDE_WAYS, WAYS, Beside, BesideTest, LibraryProgram
from cured_daemon import DaemonTest, main
from cured_wire import (CANCEL, DATA, DATA_LOSS, END, HELLO, INVALID_ARGUMENT, NOT_FOUND, OUT_OF_RANGE, RESOURCE_EXHAUSTED, SIZES, UNIMPLEMENTED,
                        beside_message, bytes_field, descriptor_input, frame, hello_message, mask_message, region_input, segments_message,
                        stream_input, uint_field)
from expected import expect, plain
from test_masks import random_mask

SEED = int(os.environ.get("CURED_TEST_SEED", "33"))
OPS = ["sum", "max", "argmin", "count", "norm2"]
FORMATS = {"i32": "i", "u32": "I", "i64": "q", "u64": "Q"}
WIDTHS = {"sum": 8, "argmin": 8, "count": 8, "norm2": 8}


def borders_of(r, n, most=60):
    """Rising offsets within n elements, some of them alike, with elements before and behind."""
    count = r.randrange(1, most)
    return sorted(r.randrange(n + 1) for _ in range(count)) if n else [0] * count


def offsets_of(borders, dtype="i64", way="stream", count=None):
    data = struct.pack("<%d%s" % (len(borders), FORMATS[dtype]), *borders)
    said = len(borders) if count is None else count
    return Beside("segments", data, lambda source, at: segments_message(beside_message(said, source, at), dtype), way)


class SegmentsTest(BesideTest):
    def setUp(self):
        self.conn = self.connect()
        self.r = random.Random(SEED)

    def ask_segments(self, dtype, ops, data, borders, way="stream", offsets_way="stream", kind="i64", mask=None, mask_way="stream", **options):
        beside = [] if mask is None else [Beside("mask", mask.bytes, mask.message, mask_way)]
        return self.ask(dtype, ops, data, way, beside + [offsets_of(borders, kind, offsets_way)], statuses=True, **options)

    def check(self, answer, dtype, ops, data, borders, mask=None):
        """Every answer is the oracle's to its segment alone."""
        size, count = SIZES[dtype], len(borders) - 1
        self.assertIsNone(answer.status)
        self.assertEqual(borders[-1] - borders[0], answer.count)
        for op, name in enumerate(ops):
            width = WIDTHS.get(name, size)
            values, statuses = answer.array(op, width, count), answer.statuses_of(op, count)
            for i, (begin, end) in enumerate(zip(borders, borders[1:])):
                kept = [e for e in range(begin, end) if mask is None or mask.keeps[e]]
                key = expect(name, dtype, b"".join(data[e * size:(e + 1) * size] for e in kept))
                if key[1] or len(key[3]) > 2 * width:  # a sum of integers that no 64 bits hold
                    self.assertEqual(key[1] or OUT_OF_RANGE, statuses[i], (name, i))
                    continue
                wanted = bytes.fromhex(key[3])
                if name == "argmin":  # whose index is the segment's, masked or not
                    wanted = struct.pack("<Q", kept[int.from_bytes(wanted, "little")] - begin)
                self.assertEqual((0, wanted), (statuses[i], values[i * width:(i + 1) * width]), (name, i))

    def test_every_way(self):
        kinds = itertools.cycle(FORMATS)
        for way, offsets_way, mask_way in itertools.product(WAYS, BESIDE_WAYS, (None,) + BESIDE_WAYS):
            for n in (0, 1, 700):
                with self.subTest((way, offsets_way, mask_way, n)):
                    data, borders = plain("f32", n, n), borders_of(self.r, n)
                    mask = random_mask(self.r, n, (n % 2 == 0, 3, False)) if mask_way else None
                    pieces = (1, 3, 7, 500) if n == 700 else None
                    answer = self.ask_segments("f32", OPS, data, borders, way, offsets_way, next(kinds), mask, mask_way or "", pieces=pieces)
                    self.check(answer, "f32", OPS, data, borders, mask)

    def test_all_empty(self):
        """Segments that are all empty, within an array that is not: each answers once, wherever they lie in it."""
        data = plain("f32", 5)
        for way, offsets_way, at in itertools.product(WAYS, BESIDE_WAYS, (0, 1, 5)):
            for mask in (None, random_mask(self.r, 5, (True, 3, False))):
                with self.subTest((way, offsets_way, at, mask is not None)):
                    answer = self.ask_segments("f32", OPS, data, [at] * 3, way, offsets_way, mask=mask)
                    self.check(answer, "f32", OPS, data, [at] * 3, mask)

    def test_every_type(self):
        for dtype in SIZES:
            ops = ["count_nonzero", "any"] if dtype == "bool" else ["sum", "max", "norm1"]
            if dtype == "bool":
                WIDTHS.update(count_nonzero=8, any=1)
            WIDTHS["norm1"] = 8
            data = bytes(i % 3 == 0 for i in range(1500)) if dtype == "bool" else plain(dtype, 1500)
            for way in self.r.sample(WAYS, 3):
                with self.subTest((dtype, way)):
                    borders = borders_of(self.r, 1500, 200)
                    answer = self.ask_segments(dtype, ops, data, borders, way, self.r.choice(BESIDE_WAYS))
                    self.check(answer, dtype, ops, data, borders)

    def test_large(self):
        """Longer than the credit, slabs and claims; long segments that claims cut, short ones, and many empty ones in one place."""
        n, tile = 3 << 20, plain("f32", 1 << 12)
        data = tile * (n >> 12)
        total = int.from_bytes(bytes.fromhex(expect("count", "f32", tile)[3]), "little")
        one = bytes.fromhex(expect("sum", "f32", tile)[3])
        for borders in ([i << 12 for i in range(100, 701)], [0, 1 << 12] + [1 << 20] * 300000 + [n - 4096, n]):
            for way, offsets_way in itertools.product(("stream", "unknown", "descriptor", "sealed"), ("stream", "descriptor", "sealed")):
                with self.subTest((len(borders), way, offsets_way)):
                    answer = self.ask_segments("f32", ["sum", "count"], data, borders, way, offsets_way, "u32")
                    self.assertIsNone(answer.status)
                    sums = answer.array(0, 8, len(borders) - 1)
                    counts = struct.unpack("<%dQ" % (len(borders) - 1), answer.array(1, 8, len(borders) - 1))
                    self.assertEqual([b - a for a, b in zip(borders, borders[1:])], list(counts))
                    self.assertEqual([one] * counts.count(total), [sums[8 * i:8 * i + 8] for i, c in enumerate(counts) if c == total])

    def test_slow_readers(self):
        """More answers than wait for a client: the array comes no further than its answers are taken, and all arrive."""
        borders = list(range(0, 2000001, 2)) + [2000001] * 500000 + [2000002]
        data = bytes(i % 251 for i in range(2000002))
        offsets = offsets_of(borders)
        c = self.conn
        for way in ("stream", "sealed"):
            if way == "sealed":
                c.register(1, self.sealed(data).fileno())
            stream = c.open_stream()
            c.send(c.call_frame(stream, "u8", ["sum", "count"], stream_input(len(data)) if way == "stream" else region_input(1),
                                segments=offsets.message("stream", 0)))
            c.answers[stream].auto_credit = False
            for at in range(0, len(offsets.data), 1 << 20):
                piece = offsets.data[at:at + (1 << 20)]
                self.assertTrue(c.send_data(stream, piece, way == "sealed" and at + len(piece) == len(offsets.data)))
            if way == "stream":
                c.answers[stream].auto_credit = True
                c.send_array(stream, data, (100000,))
            self.assertFalse(c.answers[stream].over)
            c.grant(stream, 100 << 20)
            answer = c.wait(stream)
            self.assertIsNone(answer.status)
            sums = struct.unpack("<%dQ" % (len(borders) - 1), answer.array(0, 8, len(borders) - 1))
            self.assertEqual([sum(data[a:b]) for a, b in zip(borders, borders[1:])], list(sums))
        self.assertIsNone(c.unregister(1))

    def test_written(self):
        """Answers go to a region, and statuses beside them."""
        data, out = plain("f64", 5000), self.memfd(bytes(8 * 5000))
        self.assertEqual(8 * 5000, self.conn.register(9, out.fileno(), writable=True))
        for way, offsets_way in itertools.product(("stream", "descriptor", "sealed"), BESIDE_WAYS):
            borders = borders_of(self.r, 5000, 400)
            count = len(borders) - 1
            answer = self.ask_segments("f64", ["sum", "max"], data, borders, way, offsets_way, outputs=((0, 9, 0), (1, 9, 8 * count)))
            self.assertIsNone(answer.status)
            self.assertEqual(16 * count, answer.written)
            values = os.pread(out.fileno(), 16 * count, 0)
            for i, (begin, end) in enumerate(zip(borders, borders[1:])):
                for op, name in enumerate(("sum", "max")):
                    key = expect(name, "f64", data[8 * begin:8 * end])
                    at = 8 * (op * count + i)
                    if key[1]:
                        self.assertEqual(key[1], answer.statuses_of(op, count)[i])
                    else:
                        self.assertEqual(key[3], values[at:at + 8].hex())
        self.assertIsNone(self.conn.unregister(9))

    def test_products_in_order(self):
        data = plain("f32", 20000)
        for way in ("stream", "descriptor", "sealed"):
            borders = [0, 5, 9000, 9000, 19999]
            answer = self.ask_segments("f32", ["prod"], data, borders, way)
            values = answer.array(0, 8, 4)
            for i, (begin, end) in enumerate(zip(borders, borders[1:])):
                alone = self.conn.inline("f32", ["prod"], data[4 * begin:4 * end])
                self.assertEqual(alone.results[0].value, values[8 * i:8 * i + 8])

    def test_feature(self):
        c = self.connect(hello=False)
        c.send(frame(HELLO, 0, hello_message(features=("segments", "mask", "stride"))))
        self.assertEqual([b"mask", b"segments"], [bytes(name) for name in c.greet()["features"]])

    def refuse(self, code, *words, segments, source=None, dtype="f32", ops=("sum",), passed=(), flags=0, data=None, **options):
        stream = self.conn.open_stream()
        source = stream_input(40) if source is None else source
        self.conn.send(self.conn.call_frame(stream, dtype, ops, source, flags=flags, descriptors=len(passed), segments=segments, **options),
                       list(passed))
        if data is not None:
            self.conn.send(frame(DATA, stream, data, END))
        self.assert_sentence(self.conn.wait(stream).status, code, *words)

    def test_what_is_wrong_with_the_message(self):
        good = beside_message(3)
        for said in (b"", uint_field(5, 3), good + uint_field(2, 1)):
            self.refuse(INVALID_ARGUMENT, "Segments", "one of stream", segments=said + uint_field(6, 9))
        self.refuse(INVALID_ARGUMENT, "Segments.offset", segments=segments_message(beside_message(3, "stream", 8)))
        for dtype in (0, 1, 2, 12, 13, 14, 99, 2**31 - 1):
            self.refuse(INVALID_ARGUMENT, "offsets: their dtype", segments=good + uint_field(6, dtype))
        self.refuse(INVALID_ARGUMENT, "at least 1", segments=segments_message(beside_message(0)))
        for count in (2**64 - 1, 2**63, 2**61, 2**58 + 1):
            self.refuse(INVALID_ARGUMENT, "offsets", "2^58", segments=segments_message(beside_message(count), "i32"))
        self.refuse(INVALID_ARGUMENT, "max_answer_bytes", segments=segments_message(beside_message(2**57), "i32"))
        self.refuse(RESOURCE_EXHAUSTED, "max_state_bytes", segments=segments_message(beside_message(2**30), "i64"))
        self.refuse(UNIMPLEMENTED, "Segments has field 7", segments=segments_message(good) + uint_field(7, 1))

    def test_what_is_wrong_with_offsets(self):
        for kind, values, words in (("i32", (0, 3, 2), ("offsets[2] is 2, below the 3 before it",)),
                                    ("i64", (-1, 3), ("offsets[0] is -1, must not be negative",)),
                                    ("u32", (0, 2**32 - 1), ("offsets[1]", "beyond element 10")),
                                    ("u64", (0, 2**64 - 1), ("offsets[1]", "beyond element 10")),
                                    ("i64", (0, 11), ("offsets[1] is 11, beyond element 10, where the input ends",)),
                                    ("i32", tuple(range(1000)), ("offsets[11]", "beyond element 10")),
                                    ("i64", (5, 2) + (10,) * 1000, ("offsets[1] is 2",))):
            data = struct.pack("<%d%s" % (len(values), FORMATS[kind]), *values)
            said = segments_message(beside_message(len(values)), kind)
            self.refuse(INVALID_ARGUMENT, *words, segments=said, data=data + bytes(40))
            f, a = self.file(b"1" + data), self.memfd(bytes(40))
            said = segments_message(beside_message(len(values), "file_descriptor", 1), kind)
            self.refuse(INVALID_ARGUMENT, *words, segments=said, passed=[f.fileno()], data=bytes(40))
            self.refuse(INVALID_ARGUMENT, *words, segments=said, source=descriptor_input(0, 10), passed=[a.fileno(), f.fileno()], flags=END)
        said = segments_message(beside_message(2))
        late = struct.pack("<2q", 0, 11)
        self.refuse(INVALID_ARGUMENT, "offsets: the last is 11, and 10 elements came", segments=said, source=stream_input(None), data=late + bytes(40))
        a = self.memfd(bytes(40))
        self.refuse(INVALID_ARGUMENT, "offsets: the last is 11, and the input has 10 elements", segments=said, source=descriptor_input(),
                    passed=[a.fileno()], data=late)
        self.conn.register(1, a.fileno())
        self.refuse(INVALID_ARGUMENT, "offsets: the last is 11, and the input has 10 elements", segments=said, source=region_input(1), data=late)
        self.refuse(INVALID_ARGUMENT, "end beyond", segments=said, source=region_input(1, 0, 20), data=late)
        self.conn.unregister(1)
        empty = struct.pack("<4q", 0, 4, 4, 10)
        self.refuse(INVALID_ARGUMENT, "output 1: min of no elements has no value", segments=segments_message(beside_message(4)), ops=["min"],
                    data=empty + bytes(40))

    def test_data(self):
        said = segments_message(beside_message(2))
        for data in (b"", bytes(15)):
            self.refuse(DATA_LOSS, "offsets", "16", str(len(data)), segments=said, data=data)
        f = self.memfd(bytes(40))
        self.refuse(INVALID_ARGUMENT, "more came", segments=said, source=descriptor_input(), passed=[f.fileno()], data=bytes(17))
        self.refuse(INVALID_ARGUMENT, "descriptors: 0 came", segments=segments_message(beside_message(2, "file_descriptor")))
        self.refuse(NOT_FOUND, "offsets", "region 5", segments=segments_message(beside_message(2, 5)))
        self.refuse(INVALID_ARGUMENT, "offsets", "end beyond", segments=segments_message(beside_message(9, "file_descriptor")), passed=[f.fileno()])

    def test_what_goes_with_no_offsets(self):
        said = segments_message(beside_message(2))
        for words, options in ((("axis",), {"axis": (2, 5, 1)}), (("partial",), {"partial": True}), (("first",), {"first": 4}),
                               (("kernel", "offsets"), {"kernel": "v7_shuffle"})):
            self.refuse(INVALID_ARGUMENT, *words, segments=said, **options)
        f = self.memfd(bytes(40))
        self.conn.register(1, f.fileno())
        self.refuse(INVALID_ARGUMENT, "offsets", "several regions", segments=said, source=bytes_field(4, bytes_field(1, uint_field(1, 1) + uint_field(3, 10))))
        self.conn.unregister(1)


class LibraryTest(LibraryProgram, DaemonTest):
    OF_LIBRARY = "test_client_offsets"


class Limits(DaemonTest):
    OPTIONS = {"cpu_workers": 1, "max_state_bytes_per_connection": 1 << 20, "max_state_bytes": 8 << 20, "max_bytes_in_flight": 64 << 20}

    def test_what_offsets_hold_is_counted(self):
        c = self.connect()
        for count, kind in (((1 << 18) + 1, "u32"), ((1 << 17) + 1, "i64")):
            stream = c.start_stream("u8", ["sum"], 8, segments=segments_message(beside_message(count), kind))
            self.assert_sentence(c.wait(stream).status, RESOURCE_EXHAUSTED, "max_state_bytes_per_connection", str(1 << 20))
        n = 1 << 16
        held = c.start_stream("u8", ["sum"], 8, segments=segments_message(beside_message(n), "u32"))
        self.assertEqual(4 * n, c.info()["counters"]["state_bytes"])
        own, = (user for user in c.info()["users"] if user["own"])
        self.assertEqual((4 * n, 4 * n + 8), (own["used"]["state_bytes"], own["used"]["bytes"]))
        c.send_array(held, struct.pack("<%dI" % n, *([0] * (n - 1) + [8])) + bytes(range(8)))
        answer = c.wait(held)
        self.assertEqual(28, int.from_bytes(answer.array(0, 8, n - 1)[-8:], "little"))
        self.assertEqual(0, c.info()["counters"]["state_bytes"])

    def test_answers_that_wait_are_counted(self):
        """All of them may wait, because no claim says how many it brings; written ones wait for nobody."""
        c, n = self.connect(), 40000
        data = struct.pack("<%dI" % n, *range(n))
        ops = ["sum", "count", "norm2", "mean", "var"]
        stream = c.start_stream("u8", ops, n, segments=segments_message(beside_message(n), "u32"))
        c.send_array(stream, data + bytes(n))
        self.assert_sentence(c.wait(stream).status, INVALID_ARGUMENT, "offsets: ", "max_state_bytes_per_connection")

    def test_who_leaves_holds_nothing(self):
        n = 1 << 15
        said = segments_message(beside_message(n), "u64")
        f = self.memfd(bytes(n))
        for sent in (0, 1, 8 * n - 1, 8 * n, 8 * n + 1):
            for how in ("cancel", "leave"):
                for passed in ([], [f.fileno()]):
                    c = self.connect()
                    stream = c.open_stream()
                    c.send(c.call_frame(stream, "u8", ["sum"], descriptor_input() if passed else stream_input(n), segments=said,
                                        descriptors=len(passed)), passed)
                    if sent and not (passed and sent > 8 * n):
                        c.send(frame(DATA, stream, bytes(sent)))
                    if how == "cancel":
                        c.send(frame(CANCEL, stream))
                        c.wait(stream)
                    c.close()
        self.daemon.check_returned(self)

    def test_offsets_that_change(self):
        """A client writes its region all the time: any answer or INVALID_ARGUMENT, and the daemon stands."""
        n, c, over = 1 << 14, self.connect(), threading.Event()
        good = struct.pack("<%dI" % (n + 1), *range(0, 4 * (n + 1), 4))
        f, a = self.sealed(good), self.sealed(bytes(4 * n))
        c.register(1, f.fileno())
        c.register(2, a.fileno())

        def change():
            r = random.Random(SEED)
            while not over.is_set():
                at = 4 * r.randrange(n + 1)
                os.pwrite(f.fileno(), struct.pack("<I", r.choice((0, 2**32 - 1, 4 * n, 7))), at)
                os.pwrite(f.fileno(), good[at:at + 4], at)
        thread = threading.Thread(target=change)
        thread.start()
        seen = set()
        for _ in range(300):
            stream = c.start_region("u8", ["sum"], 2, segments=segments_message(beside_message(n + 1, 1), "u32"))
            status = c.wait(stream).status
            seen.add(status.code if status else 0)
        over.set()
        thread.join()
        self.assertLessEqual(seen, {0, INVALID_ARGUMENT})
        self.assertIn(0, seen)


if __name__ == "__main__":
    print("seed", SEED)
    main()
