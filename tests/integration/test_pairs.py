"""test_pairs: ops of two arrays, the second of which comes in turn with the first or beside it, by every way in which either may: whole,
along an axis, by offsets, under masks, as partials and written into regions; what is wrong with a second array is said, and what it
holds is counted and given back. Held against the oracle."""
import itertools
import os
import random
import struct

from beside import BESIDE_WAYS, PAIR_BLOCK, WAYS, Beside, BesideTest, LibraryProgram, in_turn
from cured_daemon import DaemonTest, main
from cured_wire import (CANCEL, DATA, DATA_LOSS, END, HELLO, INVALID_ARGUMENT, NOT_FOUND, RESOURCE_EXHAUSTED, SIZES, UNIMPLEMENTED, beside_message,
                        bytes_field, descriptor_input, frame, hello_message, keys_message, region_input, stream_input, uint_field)
from expected import plain
import pairs  # noqa: I100: expected finds it
from test_masks import random_mask
from test_segments import borders_of, offsets_of

SEED = int(os.environ.get("CURED_TEST_SEED", "33"))
OPS = ["dot", "sqdist", "average"]
STREAMED = WAYS[:2]


def second_of(data, count, way="stream"):
    return Beside("second", data, lambda source, at: beside_message(count, source, at), way)


def ways():
    """Of an array and its second: both in DATA, or an array that is passed and any way of the second."""
    return [(way, "stream") for way in STREAMED] + list(itertools.product(WAYS[2:], BESIDE_WAYS))


def small(r, n):
    """i32 whose products stay within 64 bits, however many there are."""
    return struct.pack("<%di" % n, *[r.randrange(-3000, 3000) for _ in range(n)])


class PairsTest(BesideTest):
    def setUp(self):
        self.conn = self.connect()
        self.r = random.Random(SEED)

    def ask_pairs(self, dtype, ops, x, y, way="stream", second_way="stream", mask=None, mask_way="stream", borders=None, **options):
        beside = [] if mask is None else [Beside("mask", mask.bytes, mask.message, mask_way)]
        beside += [] if borders is None else [offsets_of(borders)]
        return self.ask(dtype, ops, x, way, beside + [second_of(y, len(x) // SIZES[dtype], second_way)], **options)

    def check(self, answer, dtype, x, y, keep=None, ops=OPS):
        """Every answer is the oracle's to the pairs that are kept."""
        size = SIZES[dtype]
        self.assertIsNone(answer.status)
        if keep is not None:
            x, y = (b"".join(a[i * size:(i + 1) * size] for i, k in enumerate(keep) if k) for a in (x, y))
        for op, got in zip(ops, answer.results):
            self.assertEqual((0, pairs.answer(op, dtype, x, y)[2]), (got.status, got.value), op)

    def check_slices(self, answer, dtype, x, y, slices, ops=OPS):
        """Answer i is that to the elements slices[i]."""
        size = SIZES[dtype]
        self.assertIsNone(answer.status)
        for number, op in enumerate(ops):
            values = answer.array(number, 8, len(slices))
            for i, elements in enumerate(slices):
                a, b = (b"".join(data[e * size:(e + 1) * size] for e in elements) for data in (x, y))
                self.assertEqual(pairs.answer(op, dtype, a, b)[2], values[8 * i:8 * i + 8], (op, i))

    def test_every_way(self):
        for (way, second_way), masked, n in itertools.product(ways(), (False, True), (0, 1, 700)):
            with self.subTest((way, second_way, masked, n)):
                x, y = plain("f32", n, n), plain("f32", n, n + 1)
                mask = random_mask(self.r, n, (n % 2 == 0, 3, False)) if masked else None
                pieces = (1, 3, 7, 500) if n == 700 else None
                answer = self.ask_pairs("f32", OPS, x, y, way, second_way, mask, self.r.choice(BESIDE_WAYS), pieces=pieces)
                self.check(answer, "f32", x, y, mask and mask.keeps)

    def test_every_type(self):
        for dtype in SIZES:
            x, y = (bytes(i % k == 0 for i in range(900)) if dtype == "bool" else plain(dtype, 900, k) for k in (2, 3))
            for way, second_way in [("stream", "stream")] + self.r.sample(ways(), 2):
                with self.subTest((dtype, way, second_way)):
                    self.check(self.ask_pairs(dtype, OPS, x, y, way, second_way), dtype, x, y)

    def test_blocks(self):
        """Lengths about those of a block, a slab and the credit, cut anywhere: what both arrays have meets."""
        one, other = small(self.r, 1 << 12), small(self.r, 1 << 12)
        block, tile = PAIR_BLOCK // 4, 1 << 12
        sums = {}
        for n in (block - 1, block, block + 1, 2 * block - 1, 2 * block, 2 * block + 1, 4 * block + 5, 8 * block, 24 * block + 77):
            x, y = ((data * (n // tile + 1))[:4 * n] for data in (one, other))
            whole, rest = divmod(n, tile)
            for k in {tile, rest} - set(sums):
                sums[k] = sum(a * b for a, b in zip(struct.unpack("<%di" % k, one[:4 * k]), struct.unpack("<%di" % k, other[:4 * k])))
            want = whole * sums[tile] + (sums[rest] if rest else 0)
            for pieces in ((1 << 20,), (PAIR_BLOCK,), (PAIR_BLOCK - 3,), (100003, 1, 5, 300000)):
                for way, second_way in (("stream", "stream"), ("unknown", "stream"), ("file", "stream"), ("descriptor", "descriptor")):
                    with self.subTest((n, pieces, way, second_way)):
                        answer = self.ask_pairs("i32", ["dot"], x, y, way, second_way, pieces=pieces)
                        self.assertIsNone(answer.status)
                        self.assertEqual((n, want), (answer.count, int.from_bytes(answer.results[0].value, "little", signed=True)))

    def test_along_an_axis(self):
        """Short rows, rows that claims cut, columns, and blocks whose ends fall within those of the wire."""
        for outer, n, inner in ((500, 7, 1), (3, 40000, 1), (11, 9, 13), (1, 300, 250), (70000, 1, 1), (2, 50000, 2), (9, 5000, 3)):
            count = outer * n * inner
            x, y = small(self.r, count), small(self.r, count)
            a, b = (struct.unpack("<%di" % count, data) for data in (x, y))
            for way, second_way in (("stream", "stream"), ("unknown", "stream"), ("descriptor", "stream"), ("sealed", "file")):
                with self.subTest((outer, n, inner, way, second_way)):
                    answer = self.ask_pairs("i32", ["dot", "sqdist"], x, y, way, second_way, axis=(outer, n, inner), pieces=(200003, 77))
                    self.assertIsNone(answer.status)
                    dots, apart = (struct.unpack("<%dq" % (outer * inner), answer.array(op, 8, outer * inner)) for op in (0, 1))
                    for i in range(0, outer * inner, max(1, outer * inner // 500)):
                        at = range(i // inner * n * inner + i % inner, (i // inner + 1) * n * inner, inner)
                        self.assertEqual(sum(a[e] * b[e] for e in at), dots[i], i)
                        self.assertEqual(sum((a[e] - b[e]) ** 2 for e in at), apart[i], i)

    def test_by_offsets_and_under_masks(self):
        for (way, second_way), masked in itertools.product(ways(), (False, True)):
            with self.subTest((way, second_way, masked)):
                x, y, borders = plain("f64", 600), plain("f64", 600, 5), borders_of(self.r, 600)
                mask = random_mask(self.r, 600, (True, 1, True)) if masked else None
                answer = self.ask_pairs("f64", OPS, x, y, way, second_way, mask, borders=borders, statuses=True)
                slices = [[e for e in range(a, b) if not mask or mask.keeps[e]] for a, b in zip(borders, borders[1:])]
                self.check_slices(answer, "f64", x, y, slices)
                axis = self.ask_pairs("f64", OPS, x, y, way, second_way, mask, axis=(4, 30, 5))
                at = [range(i // 5 * 150 + i % 5, (i // 5 + 1) * 150, 5) for i in range(20)]
                self.check_slices(axis, "f64", x, y, [[e for e in some if not mask or mask.keeps[e]] for some in at])

    def test_written_and_slow(self):
        """Answers go to a region, or to a client that takes them late: the arrays come no further than answers are taken."""
        n, c = 3 << 20, self.conn
        x, y = (bytes(self.r.randrange(256) for _ in range(1 << 12)) * (n >> 12) for _ in range(2))
        want = struct.pack("<%dQ" % (1 << 11), *[x[i] * y[i] + x[i + 1] * y[i + 1] for i in range(0, 1 << 12, 2)]) * (n >> 12)
        out = self.memfd(bytes(4 * n))
        self.assertEqual(4 * n, c.register(9, out.fileno(), writable=True))
        for way, second_way in (("stream", "stream"), ("sealed", "descriptor")):
            answer = self.ask_pairs("u8", ["dot"], x, y, way, second_way, axis=(n // 2, 2, 1), outputs=((0, 9, 0),))
            self.assertIsNone(answer.status)
            self.assertEqual(want, os.pread(out.fileno(), 4 * n, 0))
        self.assertIsNone(c.unregister(9))
        stream = c.open_stream()
        c.send(c.call_frame(stream, "u8", ["dot"], stream_input(n), axis=(n // 2, 2, 1), second=beside_message(n)))
        c.answers[stream].auto_credit = True
        c.send_array(stream, in_turn(x, y), (100000,))
        self.assertEqual(want, c.wait(stream).array(0, 8, n // 2))

    def test_partials(self):
        x, y = plain("f64", 3000), plain("f64", 3000, 8)
        parts = []
        for k in range(3):
            a, b = x[8000 * k:8000 * (k + 1)], y[8000 * k:8000 * (k + 1)]
            way, second_way = ways()[k]
            answer = self.ask_pairs("f64", OPS, a, b, way, second_way, partial=True, first=1000 * k)
            self.assertIsNone(answer.status)
            parts.append(answer.partial)
        self.check(self.conn.merge(OPS, parts[::-1]), "f64", x, y)

    def test_feature(self):
        c = self.connect(hello=False)
        c.send(frame(HELLO, 0, hello_message(features=("second", "mask", "stride"))))
        self.assertEqual([b"mask", b"second"], [bytes(name) for name in c.greet()["features"]])

    def refuse(self, code, *words, second, source=None, dtype="f32", ops=("dot",), passed=(), flags=0, data=None, **options):
        stream = self.conn.open_stream()
        source = stream_input(40) if source is None else source
        self.conn.send(self.conn.call_frame(stream, dtype, list(ops), source, flags=flags, descriptors=len(passed), second=second, **options),
                       list(passed))
        if data is not None:
            self.conn.send(frame(DATA, stream, data, END))
        self.assert_sentence(self.conn.wait(stream).status, code, *words)

    def test_what_is_wrong_with_the_message(self):
        good = beside_message(10)
        for said in (b"", uint_field(5, 10), good + uint_field(2, 1)):
            self.refuse(INVALID_ARGUMENT, "Second", "one of stream", second=said)
        self.refuse(INVALID_ARGUMENT, "Second.offset", second=beside_message(10, "stream", 8))
        self.refuse(UNIMPLEMENTED, "Second has field 6", second=good + uint_field(6, 1))
        for count in (0, 9, 11):
            self.refuse(INVALID_ARGUMENT, "second: it has %d elements, the input 10" % count, second=beside_message(count))
            code, words = (INVALID_ARGUMENT, "it has %d elements" % count) if count < 10 else (DATA_LOSS, "44 bytes were declared")
            self.refuse(code, "second: " + words, second=beside_message(count), source=stream_input(None), data=bytes(80))
            self.refuse(INVALID_ARGUMENT, "second: it has %d elements, the input 10" % count, second=beside_message(count), axis=(2, 5, 1))
        for count in (2**64 - 1, 2**62, 2**61):
            self.refuse(INVALID_ARGUMENT, "second", "more than any input", second=beside_message(count), source=stream_input(None))
        self.refuse(INVALID_ARGUMENT, "max_input_bytes", second=beside_message(2**58), source=stream_input(None), data=bytes(80))

    def test_what_is_wrong_with_ops(self):
        good = beside_message(10)
        for op in ("sum", "max", "digest", "count", "prod"):
            self.refuse(INVALID_ARGUMENT, "second: op %s is of one array" % op, second=good, ops=[op])
            self.refuse(INVALID_ARGUMENT, "second: op %s is of one array" % op, second=good, ops=["dot", op])
        for op in OPS:
            self.refuse(INVALID_ARGUMENT, "second: op %s is of two arrays, and only one is given" % op, second=None, ops=[op])
        self.refuse(INVALID_ARGUMENT, "second: op sum is of one array", second=good, ops=["sum"], keys=keys_message(beside_message(10), 3))
        self.refuse(UNIMPLEMENTED, "dot", second=good, kernel="v7_shuffle")
        f = self.memfd(bytes(40))
        self.conn.register(1, f.fileno())
        self.refuse(INVALID_ARGUMENT, "second", "several regions", second=good, source=bytes_field(4, bytes_field(1, uint_field(1, 1) + uint_field(3, 10))))
        self.refuse(INVALID_ARGUMENT, "second: the input comes in DATA, so its second array comes there, too", second=beside_message(10, 1))
        self.refuse(NOT_FOUND, "second", "region 5", second=beside_message(10, 5), source=region_input(1))
        self.refuse(INVALID_ARGUMENT, "second", "end beyond", second=beside_message(11, 1), source=region_input(1, 0, 11))
        self.refuse(INVALID_ARGUMENT, "descriptors: 0 came", second=beside_message(10, "file_descriptor"), source=region_input(1), flags=END)
        self.conn.unregister(1)

    def test_data(self):
        """Lengths that lie."""
        good, f = beside_message(10), self.memfd(bytes(40))
        for size in (40, 41, 79):
            self.refuse(DATA_LOSS, "second: 40 bytes were declared, END came after %d" % (size - 40), second=good, data=bytes(size))
            self.refuse(DATA_LOSS, "second: 40 bytes were declared", second=good, source=stream_input(None), data=bytes(size))
        for size in (0, 39):
            self.refuse(DATA_LOSS, "bytes: 40 were declared, END came after %d" % size, second=good, data=bytes(size))
            self.refuse(INVALID_ARGUMENT, "second: it has 10 elements of 4 bytes, %d bytes came" % size, second=good, source=stream_input(None), data=bytes(size))
        self.refuse(INVALID_ARGUMENT, "second: it has 10 elements, more bytes came", second=good, data=bytes(81))
        for size in (0, 39):
            self.refuse(DATA_LOSS, "second: 40 bytes were declared, END came after %d" % size, second=good, source=descriptor_input(),
                        passed=[f.fileno()], data=bytes(size))
        self.refuse(INVALID_ARGUMENT, "more came", second=good, source=descriptor_input(), passed=[f.fileno()], data=bytes(41))
        short = self.memfd(bytes(36))
        self.refuse(INVALID_ARGUMENT, "second: it has 10 elements", second=good, source=descriptor_input(), passed=[short.fileno()], data=bytes(40))
        big = 2 * PAIR_BLOCK
        for sent in (PAIR_BLOCK, PAIR_BLOCK + 1, 2 * PAIR_BLOCK, 3 * PAIR_BLOCK, 4 * PAIR_BLOCK - 1):
            stream = self.conn.start_stream("u8", ["dot"], big, second=beside_message(big))
            self.conn.send_array(stream, bytes(sent))
            self.assert_sentence(self.conn.wait(stream).status, DATA_LOSS, "declared")


class LibraryTest(LibraryProgram, DaemonTest):
    OF_LIBRARY = "test_client_pairs"


class Limits(DaemonTest):
    OPTIONS = {"cpu_workers": 1, "max_state_bytes_per_connection": 1 << 20, "max_state_bytes": 8 << 20, "max_bytes_in_flight": 64 << 20, "slabs": 8}

    def test_what_a_second_holds_is_counted(self):
        """Beside an array that is passed all of it is held; in turn with one in DATA it is input alone."""
        c, n = self.connect(), (1 << 20) + 1
        f = self.memfd(bytes(n))
        c.register(1, f.fileno())
        stream = c.open_stream()
        c.send(c.call_frame(stream, "u8", ["dot"], region_input(1), second=beside_message(n)))
        self.assert_sentence(c.wait(stream).status, RESOURCE_EXHAUSTED, "max_state_bytes_per_connection", str(1 << 20))
        held = c.start_stream("u8", ["dot"], n, second=beside_message(n))
        c.send_data(held, bytes([2]) * PAIR_BLOCK)
        own, = (user for user in c.info()["users"] if user["own"])
        self.assertEqual((0, 2 * n), (own["used"]["state_bytes"], own["used"]["bytes"]))
        c.send_array(held, in_turn(bytes([2]) * n, bytes([3]) * n)[PAIR_BLOCK:])
        self.assertEqual(6 * n, int.from_bytes(c.wait(held).results[0].value, "little"))
        stream = c.start_stream("u8", ["dot"], 40 << 20, second=beside_message(40 << 20))
        self.assert_sentence(c.wait(stream).status, RESOURCE_EXHAUSTED, "max_bytes_in_flight")
        self.assertIsNone(c.unregister(1))
        c.close()
        self.daemon.check_returned(self)

    def test_many_uploads(self):
        """More calls than there are slabs, each in another place of its blocks: none waits for one that waits for it."""
        n, calls = 3 * PAIR_BLOCK, 24  # 36 MiB of both
        conns = [self.connect() for _ in range(4)]
        both = in_turn(bytes([5]) * n, bytes([7]) * n)
        streams = [(c, c.start_stream("u8", ["dot"], n, second=beside_message(n))) for c in conns for _ in range(calls // 4)]
        at = [0] * calls
        r = random.Random(SEED)
        while any(done < len(both) for done in at):
            for k, (c, stream) in enumerate(streams):
                step = min(r.choice((1, 4000, 65536, PAIR_BLOCK)), len(both) - at[k])
                if step:
                    c.send_data(stream, both[at[k]:at[k] + step], at[k] + step == len(both))
                    at[k] += step
        for c, stream in streams:
            answer = c.wait(stream)
            self.assertIsNone(answer.status)
            self.assertEqual(35 * n, int.from_bytes(answer.results[0].value, "little"))
        for c in conns:
            c.close()
        self.daemon.check_returned(self)

    def test_who_leaves_holds_nothing(self):
        n = 2 * PAIR_BLOCK
        f = self.memfd(bytes(n))
        for sent in (0, 1, PAIR_BLOCK, PAIR_BLOCK + 1, n, 2 * n):
            for how in ("cancel", "leave"):
                for passed in ([], [f.fileno()]):
                    c = self.connect()
                    stream = c.open_stream()
                    c.send(c.call_frame(stream, "u8", ["dot"], descriptor_input() if passed else stream_input(n), second=beside_message(n),
                                        descriptors=len(passed)), passed)
                    if sent and not (passed and sent > n):
                        c.send(frame(DATA, stream, bytes(min(sent, 1 << 20))))
                    if how == "cancel":
                        c.send(frame(CANCEL, stream))
                        c.wait(stream)
                    c.close()
        self.daemon.check_returned(self)


class Strips(BesideTest):
    """Columns whose states do not fit, those of float64s: both arrays are kept, and folded strip by strip."""
    OPTIONS = {"cpu_workers": 2, "max_state_bytes_per_connection": 8 << 20, "shm_names": True}

    def test_strips(self):
        r, self.conn = random.Random(SEED), self.connect()
        for outer, n, inner in ((1, 5, 3000), (3, 40, 2500)):
            count = outer * n * inner
            a, b = (struct.unpack("<%di" % count, small(r, count)) for _ in range(2))
            x, y = (struct.pack("<%dd" % count, *data) for data in (a, b))
            mask = random_mask(r, count, (False, 0, False))
            for way, second_way, masked in itertools.product(("stream", "unknown", "sealed"), ("stream", "file"), (False, True)):
                if way != "sealed" and second_way != "stream":
                    continue
                with self.subTest((outer, n, inner, way, second_way, masked)):
                    beside = [Beside("mask", mask.bytes, mask.message)] if masked else []
                    answer = self.ask("f64", ["dot", "sqdist"], x, way, beside + [second_of(y, count, second_way)], axis=(outer, n, inner),
                                      pieces=(90001, 77))
                    self.assertIsNone(answer.status)
                    dots, apart = (struct.unpack("<%dd" % (outer * inner), answer.array(op, 8, outer * inner)) for op in (0, 1))
                    for i in range(0, outer * inner, 7):
                        at = [e for e in range(i // inner * n * inner + i % inner, (i // inner + 1) * n * inner, inner) if not masked or mask.keeps[e]]
                        self.assertEqual(sum(a[e] * b[e] for e in at), dots[i], i)
                        self.assertEqual(sum((a[e] - b[e]) ** 2 for e in at), apart[i], i)
        big = 1 << 19
        stream = self.conn.start_stream("f64", ["dot"], 8 * big, axis=(1, big >> 13, 1 << 13), second=beside_message(big))
        self.conn.send_array(stream, bytes(16 * big))
        self.assert_sentence(self.conn.wait(stream).status, RESOURCE_EXHAUSTED, "max_state_bytes_per_connection")
        self.conn.close()
        self.daemon.check_returned(self)


if __name__ == "__main__":
    print("seed", SEED)
    main()
