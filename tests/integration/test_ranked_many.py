"""test_ranked_many: medians and quantiles by offsets and by key, by the daemon: of an array that comes by every way, beside offsets, keys and
masks that do; long segments that claims cut, and many short ones; beside other ops and written into regions. What is too long is refused, and what is
held is counted and given back. Held against the oracle."""
import itertools
import os
import random
import struct

from beside import BESIDE_WAYS, WAYS, Beside
from cured_daemon import main
from cured_wire import (CANCEL, DATA, END, HELLO, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, SIZES, beside_message, descriptor_input, frame, hello_message,
                        keys_message, segments_message, stream_input)
from expected import expect, plain
import oracle  # noqa: I100: expected finds it
from test_by_key import FORMATS as KEYS, keys_of
from test_masks import random_mask
from test_quantiles import METHODS, Asking, asked_of, of_tiles, parameter_message, with_nans
from test_segments import FORMATS, borders_of, offsets_of

SEED = int(os.environ.get("CURED_TEST_SEED", "33"))
LONGEST = 64 << 20  # bytes of a segment


class ManyTest(Asking):
    def setUp(self):
        self.conn = self.connect()
        self.r = random.Random(SEED)

    def ask_many(self, dtype, data, asked, beside, way="stream", mask=None, mask_way="stream", others=(), **options):
        first = [Beside("mask", mask.bytes, mask.message, mask_way)] if mask else []
        parameters = [parameter_message(i, share, METHODS.index(method)) for i, (share, method) in enumerate(asked)]
        return self.ask(dtype, ["quantile"] * len(asked) + list(others), data, way, first + [beside], parameters=parameters, statuses=True, **options)

    def check_cells(self, answer, dtype, data, asked, cells, mask=None, nan="propagate"):
        """cells: of each answer the numbers of its elements."""
        size = SIZES[dtype]
        self.assertIsNone(answer.status)
        values = [answer.array(op, 8, len(cells)) for op in range(len(asked))]
        for i, cell in enumerate(cells):
            some = b"".join(data[size * e:size * e + size] for e in cell if mask is None or mask.keeps[e])
            want = [bits.to_bytes(8, "little") for bits in oracle.quantiles(dtype, some, asked, nan)]
            self.assertEqual(want, [v[8 * i:8 * i + 8] for v in values], i)


class SegmentsTest(ManyTest):
    def cells(self, borders):
        return [range(a, b) for a, b in zip(borders, borders[1:])]

    def test_every_way_and_type(self):
        kinds, besides = itertools.cycle(FORMATS), itertools.cycle(itertools.product(BESIDE_WAYS, (None,) + BESIDE_WAYS))
        for (dtype, way), n in itertools.product(itertools.product(SIZES, WAYS), (0, 1, 701)):
            offsets_way, mask_way = next(besides)
            with self.subTest((dtype, way, n, offsets_way, mask_way)):
                data, asked, borders = with_nans(dtype, n, n), asked_of(self.r, self.r.choice((1, 3))), borders_of(self.r, n, 40)
                mask, nan = random_mask(self.r, n, (n % 2 == 0, 3, False)) if mask_way else None, ("propagate", "skip")[n % 2]
                answer = self.ask_many(dtype, data, asked, offsets_of(borders, next(kinds), offsets_way), way, mask, mask_way or "",
                                       pieces=(1, 3, 500) if n > 1 else None, nan=int(nan == "skip"))
                self.check_cells(answer, dtype, data, asked, self.cells(borders), mask, nan)
                self.assertEqual(borders[-1] - borders[0], answer.count)

    def test_large(self):
        """Segments that lie in several claims, slabs and windows, of which whoever claims their beginning answers; and as many empty ones."""
        tile, times = plain("f64", 4099), 200
        data, asked = tile * times, [(0.5, "linear"), (0.999, "nearest")]
        borders = [0] * 5 + [4099 * k for k in (1, 2, 3, 100, 101)] + [4099 * 101] * 90000 + [4099 * 199]
        known = {}
        for way, offsets_way in itertools.product(WAYS, ("stream", "sealed")):
            with self.subTest((way, offsets_way)):
                answer = self.ask_many("f64", data, asked, offsets_of(borders, "u32", offsets_way), way, others=("count", "max"))
                self.assertIsNone(answer.status)
                values, count = [answer.array(op, 8, len(borders) - 1) for op in range(4)], []
                for i, (a, b) in enumerate(zip(borders, borders[1:])):
                    found = [v[8 * i:8 * i + 8] for v in values]
                    tiles = (b - a) // 4099
                    if tiles not in known:
                        known[tiles] = [bits.to_bytes(8, "little") for bits in of_tiles("f64", tile, tiles, asked)] if tiles else [struct.pack("<Q", 0x7ff8 << 48)] * 2
                    self.assertEqual(known[tiles], found[:2], i)
                    count.append(struct.unpack("<Q", found[2])[0])
                    if tiles:
                        self.assertEqual(expect("max", "f64", tile)[3], found[3].hex())
                self.assertEqual([b - a for a, b in zip(borders, borders[1:])], count)

    def test_slow_readers(self):
        """More answers than wait for a client."""
        borders = list(range(0, 1500001, 2))
        data, offsets = bytes(i % 251 for i in range(1500001)), offsets_of(borders)
        stream = self.conn.open_stream()
        self.conn.send(self.conn.call_frame(stream, "u8", ["median"], stream_input(len(data)), segments=offsets.message("stream", 0)))
        self.conn.answers[stream].auto_credit = False
        self.conn.send_array(stream, offsets.data + data, (100000,))
        self.assertFalse(self.conn.answers[stream].over)
        self.conn.grant(stream, 100 << 20)
        answer = self.conn.wait(stream)
        self.assertIsNone(answer.status)
        want = [(data[i] + data[i + 1]) / 2 for i in borders[:-1]]
        self.assertEqual(want, list(struct.unpack("<%dd" % len(want), answer.array(0, 8, len(want)))))

    def test_written(self):
        data, out = plain("f64", 5000), self.memfd(bytes(8 * 5000))
        self.assertEqual(8 * 5000, self.conn.register(9, out.fileno(), writable=True))
        for way, offsets_way in itertools.product(("stream", "descriptor", "sealed"), BESIDE_WAYS):
            borders = borders_of(self.r, 5000, 100)
            count = len(borders) - 1
            answer = self.ask_many("f64", data, [(0.3, "linear")], offsets_of(borders, "i64", offsets_way), way, outputs=((0, 9, 0),))
            self.assertIsNone(answer.status)
            want = [oracle.quantiles("f64", data[8 * a:8 * b], [(0.3, "linear")])[0] for a, b in zip(borders, borders[1:])]
            self.assertEqual(struct.pack("<%dQ" % count, *want), os.pread(out.fileno(), 8 * count, 0))
        self.assertIsNone(self.conn.unregister(9))

    def test_too_long(self):
        """One worker answers a segment. The sentence comes before any element does."""
        n = LONGEST // 4 + 1
        for kind, borders, refused in (("i64", (0, n), 0), ("u32", (5, 5, 6, n + 6), 2), ("i32", (0,) + (9,) * 1000 + (n + 9,), 1000)):
            stream, offsets = self.conn.open_stream(), offsets_of(borders, kind)
            self.conn.send(self.conn.call_frame(stream, "f32", ["median"], stream_input(None), segments=offsets.message("stream", 0)))
            self.conn.send_array(stream, offsets.data + bytes(4))
            self.assert_sentence(self.conn.wait(stream).status, INVALID_ARGUMENT,
                                 "offsets: medians and quantiles need all of a segment at once, of 16777216 elements of this type at most, and segment "
                                 "%d has %d" % (refused, n), "embedded:")
        f = self.memfd(b"")
        os.truncate(f.fileno(), 2 * LONGEST + 1)
        answer = self.ask_file(f, "u8", struct.pack("<3q", 1, LONGEST + 1, 2 * LONGEST + 1))
        self.assertEqual(bytes(16), answer.array(0, 8, 2))
        self.assertIn("segment 1 has %d" % (LONGEST + 1), self.ask_file(f, "u8", struct.pack("<3q", 1, LONGEST, 2 * LONGEST + 1)).status.message)
        self.assertIsNone(self.ask_file(f, "u8", struct.pack("<3q", 1, LONGEST, 2 * LONGEST + 1), ("sum",)).status)

    def ask_file(self, f, dtype, offsets, ops=("median",)):
        stream = self.conn.open_stream()
        self.conn.send(self.conn.call_frame(stream, dtype, list(ops), descriptor_input(), descriptors=1,
                                            segments=segments_message(beside_message(len(offsets) // 8))), [f.fileno()])
        self.conn.send(frame(DATA, stream, offsets, END))
        return self.conn.wait(stream)

    def test_what_is_wrong(self):
        """As of other ops: also offsets that fit no memory, of an array whose length nobody knows."""
        for values, data, words in (((0, 3, 2), bytes(40), "offsets[2] is 2, below the 3 before it"), ((-1, 3), bytes(40), "offsets[0] is -1"),
                                    ((0, 11), bytes(40), "offsets: the last is 11, and 10 elements came"),
                                    ((2**62, 2**62 + 3), bytes(40), "offsets: the last is 4611686018427387907, and 10 elements came"),
                                    ((0, 2**62), bytes(40), "offsets: medians and quantiles need all of a segment")):
            stream, packed = self.conn.open_stream(), struct.pack("<%dq" % len(values), *values)
            self.conn.send(self.conn.call_frame(stream, "f32", ["median"], stream_input(None), segments=segments_message(beside_message(len(values)))))
            self.conn.send(frame(DATA, stream, packed + data, END))
            self.assert_sentence(self.conn.wait(stream).status, INVALID_ARGUMENT, words)

    def test_feature(self):
        c = self.connect(hello=False)
        c.send(frame(HELLO, 0, hello_message(features=("segments", "ranked_many"))))
        self.assertEqual([b"ranked_many", b"segments"], [bytes(name) for name in c.greet()["features"]])


class KeysTest(ManyTest):
    def cells(self, keys, groups, columns=1):
        return [[row * columns + column for row, key in enumerate(keys) if key == group] for group in range(groups) for column in range(columns)]

    def test_every_way_and_type(self):
        kinds, besides = itertools.cycle(KEYS), itertools.cycle(itertools.product(BESIDE_WAYS, (None,) + BESIDE_WAYS))
        for (dtype, way), (rows, columns) in itertools.product(itertools.product(SIZES, WAYS), ((0, 3), (1, 1), (701, 1), (150, 4))):
            keys_way, mask_way = next(besides)
            with self.subTest((dtype, way, rows, columns, keys_way, mask_way)):
                n, kind = rows * columns, next(kinds)
                drop, groups = rows % 2 == 0, 9
                keys = [self.r.randrange(-1 if drop and kind[0] == "i" else 0, groups + drop) for _ in range(rows)]
                data, asked = with_nans(dtype, n, n), asked_of(self.r, self.r.choice((1, 3)))
                mask, nan = random_mask(self.r, n, (n % 2 == 0, 3, False)) if mask_way else None, ("propagate", "skip")[n % 2]
                answer = self.ask_many(dtype, data, asked, keys_of(keys, groups, kind, keys_way, columns, drop), way, mask, mask_way or "",
                                       pieces=(1, 3, 500) if n > 1 else None, nan=int(nan == "skip"))
                self.check_cells(answer, dtype, data, asked, self.cells(keys, groups, columns), mask, nan)
                self.assertEqual(n, answer.count)

    def test_large(self):
        """Longer than slabs, windows and the parts in which a worker looks whether the call is over; beside other ops."""
        tile, times, groups = plain("f64", 4099), 300, 7
        data, asked = tile * times, [(0.5, "linear"), (0.999, "nearest")]
        keys = struct.pack("<%di" % (4099 * times), *(i // 4099 % groups for i in range(4099 * times)))
        beside = Beside("keys", keys, lambda source, at: keys_message(beside_message(4099 * times, source, at), groups + 1, "i32", 1, False), "sealed")
        for way in WAYS:
            with self.subTest(way):
                answer = self.ask_many("f64", data, asked, beside, way, others=("count", "max"))
                self.assertIsNone(answer.status)
                values = [answer.array(op, 8, groups + 1) for op in range(4)]
                for group in range(groups):
                    tiles = len(range(group, times, groups))
                    want = [bits.to_bytes(8, "little") for bits in of_tiles("f64", tile, tiles, asked)]
                    self.assertEqual(want + [struct.pack("<Q", 4099 * tiles)], [v[8 * group:8 * group + 8] for v in values[:3]], group)
                    self.assertEqual(expect("max", "f64", tile)[3], values[3][8 * group:8 * group + 8].hex())
                self.assertEqual([struct.pack("<Q", 0x7ff8 << 48)] * 2, [v[8 * groups:] for v in values[:2]])

    def test_written(self):
        data, out = plain("f64", 5000), self.memfd(bytes(8 * 5000))
        self.assertEqual(8 * 5000, self.conn.register(9, out.fileno(), writable=True))
        keys = [self.r.randrange(60) for _ in range(1000)]
        want = [oracle.quantiles("f64", b"".join(data[8 * e:8 * e + 8] for e in cell), [(0.3, "linear")])[0] for cell in self.cells(keys, 60, 5)]
        for way, keys_way in itertools.product(("stream", "descriptor", "sealed"), BESIDE_WAYS):
            answer = self.ask_many("f64", data, [(0.3, "linear")], keys_of(keys, 60, "i64", keys_way, 5), way, outputs=((0, 9, 0),))
            self.assertIsNone(answer.status)
            self.assertEqual(struct.pack("<300Q", *want), os.pread(out.fileno(), 8 * 300, 0))
        self.assertIsNone(self.conn.unregister(9))

    def test_what_is_wrong(self):
        """As of other ops; the first key outside is named, masked or not."""
        for values, groups, drop, words in (((0, 1, -1, 7), 2, False, "keys: number 2 is -1, not one of 0 to 1; drop"),
                                            ((0, 1, 2**31 - 1, 0), 2**27 + 1, False, "groups: the states of 134217729 groups"),
                                            ((0, 1, 2, 3), 2**26, False, "groups: the states of 67108864 groups"),
                                            ((0, 0, 0, 0), 2**25, True, "keys: medians and quantiles copy the array")):
            for mask in (None, random_mask(self.r, 4, (True, 0, True))):
                stream = self.conn.open_stream()
                said = {"mask": mask.message("stream", 0)} if mask else {}
                self.conn.send(self.conn.call_frame(stream, "f32", ["median"], stream_input(16), keys=keys_message(beside_message(4), groups, "i32", 1, drop),
                                                    **said))
                self.conn.send(frame(DATA, stream, (mask.bytes if mask else b"") + struct.pack("<4i", *values) + bytes(16), END))
                status = self.conn.wait(stream).status
                self.assertIn(words, status.message)


class LimitsTest(ManyTest):
    OPTIONS = {"cpu_workers": 1, "max_state_bytes_per_connection": 4 << 20, "max_state_bytes": 8 << 20}

    def test_what_is_kept_is_counted(self):
        """An array in DATA, and what is read of a file, of which segments are answered as a whole."""
        c, n = self.conn, 5 << 20
        stream = c.start_stream("u8", ["median"], n, segments=segments_message(beside_message(2)))
        c.send_array(stream, struct.pack("<2q", 0, 9) + bytes(n))
        self.assert_sentence(c.wait(stream).status, RESOURCE_EXHAUSTED, "max_state_bytes_per_connection", str(4 << 20))
        f = self.file(bytes(n))
        for till, good in ((n, False), (n // 2, True)):
            stream = c.open_stream()
            c.send(c.call_frame(stream, "u8", ["median"], descriptor_input(), descriptors=1, segments=segments_message(beside_message(2))), [f.fileno()])
            c.send(frame(DATA, stream, struct.pack("<2q", 0, till), END))
            answer = c.wait(stream)
            if good:
                self.assertEqual(bytes(8), answer.array(0, 8, 1))
            else:
                self.assert_sentence(answer.status, RESOURCE_EXHAUSTED, "max_state_bytes_per_connection")
        self.assertEqual(0, c.info()["counters"]["state_bytes"])
        c.close()
        self.daemon.check_returned(self)

    def test_copies_are_counted(self):
        """By key the elements are copied, which a call is refused for before any is."""
        c = self.conn
        for n, words in ((3 << 18, None), (1 << 20, "max_state_bytes_per_connection")):
            f = self.file(bytes(4 * n))
            stream = c.open_stream()
            c.send(c.call_frame(stream, "f32", ["median"], descriptor_input(), descriptors=1, keys=keys_message(beside_message(n), 3, "u8")), [f.fileno()])
            c.send_array(stream, bytes(n))
            status = c.wait(stream).status
            self.assert_sentence(status, INVALID_ARGUMENT, "keys: medians and quantiles copy the array: ", words) if words else self.assert_sentence(
                status, RESOURCE_EXHAUSTED, "max_state_bytes_per_connection")  # what is read and its copy are more together
        answer = self.ask_many("u8", bytes(1 << 20), [(0.5, "linear")], Beside("keys", bytes(1 << 20), lambda source, at: keys_message(
            beside_message(1 << 20, source, at), 1, "u8", 1, False), "stream"))
        self.assertEqual(bytes(8), answer.array(0, 8, 1))
        self.assertEqual(0, c.info()["counters"]["state_bytes"])
        c.close()
        self.daemon.check_returned(self)

    def test_too_long_by_key(self):
        """One worker would have it for seconds."""
        for dtype, n in (("u8", (64 << 20) + 1), ("f64", (8 << 20) + 1), ("f16", 1 << 40)):
            stream = self.conn.start_stream(dtype, ["median"], n, keys=keys_message(beside_message(n), 3, "u8"))
            size = {"u8": 1, "f16": 2, "f64": 8}[dtype]
            self.assert_sentence(self.conn.wait(stream).status, INVALID_ARGUMENT, "keys: medians and quantiles need all of an array at once, ",
                                 "of %d elements" % ((64 << 20) // size), "has %d" % n, "embedded:")
        stream = self.conn.start_stream("u8", ["median"], 64 << 20, keys=keys_message(beside_message(64 << 20), 3, "u8"))
        self.assert_sentence(self.conn.wait(stream).status, RESOURCE_EXHAUSTED, "max_state_bytes")  # the next limit

    def test_who_leaves(self):
        """Amid the offsets, the array, and the answers."""
        n = 1 << 19
        for (sent, how), keyed in itertools.product(itertools.product((0, 7, 16, 17, n, n + 15), ("cancel", "leave")), (False, True)):
            c = self.connect()
            said = {"keys": keys_message(beside_message(n), 3, "u8")} if keyed else {"segments": segments_message(beside_message(2))}
            stream = c.start_stream("u8", ["median"], n, **said)
            c.send_data(stream, (bytes(2 * n) if keyed else struct.pack("<2q", 0, n) + bytes(n))[:sent])
            if how == "cancel":
                c.send(frame(CANCEL, stream))
                c.wait(stream)
            c.close()
        self.assertIsNone(self.conn.inline("u8", ["count"], bytes(40)).status)
        self.conn.close()
        self.daemon.check_returned(self)


if __name__ == "__main__":
    main()
