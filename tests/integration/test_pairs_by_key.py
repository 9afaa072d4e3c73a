"""test_pairs_by_key: ops of two arrays in groups. Keys, a mask and the second array come beside the first by every way in which each may; each group
and column answers as its pairs do by themselves, written into regions and as partials that merge, too; what is wrong is said, and what is held
is given back. Held against the oracle."""
import itertools
import os
import random
import struct

from beside import BESIDE_WAYS, PAIR_BLOCK, Beside, BesideTest
from cured_daemon import main
from cured_wire import CANCEL, DATA, DATA_LOSS, END, HELLO, INVALID_ARGUMENT, OUT_OF_RANGE, SIZES, beside_message, descriptor_input, frame, hello_message, keys_message, \
    stream_input
from expected import plain
import pairs  # noqa: I100: expected finds it
from test_by_key import FORMATS, keys_of
from test_masks import random_mask
from test_pairs import OPS, second_of, small, ways

SEED = int(os.environ.get("CURED_TEST_SEED", "33"))


def rows_of(keys, group, columns, column, mask):
    """Where the elements of a cell lie that count."""
    return [i * columns + column for i, key in enumerate(keys) if key == group and (mask is None or mask.keeps[i * columns + column])]


class Asking(BesideTest):
    def ask_pairs(self, dtype, ops, x, y, keys, groups, way="stream", second_way="stream", keys_way="stream", kind="i32", mask=None, mask_way="stream",
                  columns=0, drop=False, **options):
        beside = [] if mask is None else [Beside("mask", mask.bytes, mask.message, mask_way)]
        beside += [keys_of(keys, groups, kind, keys_way, columns, drop), second_of(y, len(x) // SIZES[dtype], second_way)]
        return self.ask(dtype, ops, x, way, beside, **options)

    def check(self, answer, dtype, x, y, keys, groups, columns=1, mask=None, nan="propagate", ops=OPS):
        size = SIZES[dtype]
        self.assertIsNone(answer.status)
        for op, name in enumerate(ops):
            values = answer.array(op, 8, groups * columns)
            for cell in range(groups * columns):
                at = rows_of(keys, cell // columns, columns, cell % columns, mask)
                a, b = (b"".join(data[i * size:(i + 1) * size] for i in at) for data in (x, y))
                self.assertEqual(pairs.answer(name, dtype, a, b, nan)[2], values[8 * cell:8 * cell + 8], (name, cell))


class PairsByKeyTest(Asking):
    def setUp(self):
        self.conn = self.connect()
        self.r = random.Random(SEED)

    def keys(self, n, groups):
        return [self.r.randrange(groups) for _ in range(n)]

    def test_every_way(self):
        kinds = itertools.cycle(FORMATS)
        for (way, second_way), masked in itertools.product(ways(), (False, True)):
            for n, columns, drop in ((0, 0, False), (1, 1, True), (90, 3, False), (300, 0, True)):
                keys_way, mask_way = self.r.choice(BESIDE_WAYS), self.r.choice(BESIDE_WAYS)
                with self.subTest((way, second_way, keys_way, masked, n)):
                    width = columns or 1
                    x, y = plain("f32", n * width, n), plain("f32", n * width, n + 1)
                    keys, mask = self.keys(n, 7 if drop else 5), random_mask(self.r, n * width, (n % 2 == 0, 3, False)) if masked else None
                    answer = self.ask_pairs("f32", OPS, x, y, keys, 5, way, second_way, keys_way, next(kinds), mask, mask_way, columns, drop,
                                            pieces=(1, 3, 7, 500) if n == 90 else None)
                    self.check(answer, "f32", x, y, keys, 5, width, mask)

    def test_floats(self):
        """NaNs, infinities and zeros of both arrays, whose products are of every kind."""
        for dtype, nan in itertools.product(("f16", "bf16", "f32", "f64", "f8_e4m3", "f8_e5m2"), (0, 1)):
            x, y = plain(dtype, 600), plain(dtype, 600, 3)
            zeros = bytes(20 * SIZES[dtype])
            x, y = zeros + x[len(zeros):], y[:-len(zeros)] + zeros
            keys = self.keys(600, 40)
            for way, second_way in self.r.sample(ways(), 2):
                with self.subTest((dtype, nan, way)):
                    answer = self.ask_pairs(dtype, OPS, x, y, keys, 40, way, second_way, nan=nan)
                    self.check(answer, dtype, x, y, keys, 40, nan="skip" if nan else "propagate")

    def test_integers(self):
        x, y = small(self.r, 900), small(self.r, 900)
        keys = self.keys(900, 30)
        for way, second_way in self.r.sample(ways(), 4):
            answer = self.ask_pairs("i32", ["dot", "sqdist"], x, y, keys, 30, way, second_way)
            numbers = [struct.unpack("<900i", data) for data in (x, y)]
            for op, term in enumerate((lambda a, b: a * b, lambda a, b: (a - b) ** 2)):
                want = [sum(term(a, b) for a, b, key in zip(*numbers, keys) if key == group) for group in range(30)]
                self.assertEqual(want, list(struct.unpack("<30%s" % "qQ"[op], answer.array(op, 8, 30))))
        wide = struct.pack("<3q", 2**62, 4, 1)
        answer = self.ask_pairs("i64", ["dot"], wide, wide, [1, 0, 2], 3, statuses=True)
        self.assertEqual([0, OUT_OF_RANGE, 0], list(answer.statuses_of(0, 3)))
        self.assertEqual((16, 1), struct.unpack("<q8xq", answer.array(0, 8, 3)))

    def test_blocks(self):
        """Lengths about those of a block, cut anywhere: keys, then both arrays in turn."""
        block = PAIR_BLOCK // 4
        for n in (block - 1, block, 2 * block + 1, 9 * block + 77):
            tile = small(self.r, 4096)
            x = (tile * (n // 4096 + 1))[:4 * n]
            keys = (self.keys(4096, 100) * (n // 4096 + 1))[:n]
            want = [0] * 100
            for element, key in zip(struct.unpack("<%di" % n, x), keys):
                want[key] += element * element
            for way, second_way, pieces in (("stream", "stream", (PAIR_BLOCK - 3,)), ("unknown", "stream", (100003, 1, 5, 300000)), ("file", "stream", None),
                                            ("memfd", "descriptor", None)):
                with self.subTest((n, way, pieces)):
                    answer = self.ask_pairs("i32", ["dot"], x, x, keys, 100, way, second_way, pieces=pieces)
                    self.assertIsNone(answer.status)
                    self.assertEqual((n, want), (answer.count, list(struct.unpack("<100q", answer.array(0, 8, 100)))))

    def test_written(self):
        x, y, keys, out = plain("f64", 600), plain("f64", 600, 2), self.keys(300, 9), self.memfd(bytes(8 * 18))
        self.conn.register(9, out.fileno(), writable=True)
        for way, second_way in (("stream", "stream"), ("descriptor", "file"), ("sealed", "descriptor")):
            answer = self.ask_pairs("f64", ["sqdist"], x, y, keys, 9, way, second_way, columns=2, outputs=((0, 9, 0),))
            self.assertIsNone(answer.status)
            for cell in range(18):
                at = rows_of(keys, cell // 2, 2, cell % 2, None)
                a, b = (b"".join(data[8 * i:8 * i + 8] for i in at) for data in (x, y))
                self.assertEqual(pairs.answer("sqdist", "f64", a, b)[2], os.pread(out.fileno(), 8, 8 * cell))
        self.assertIsNone(self.conn.unregister(9))

    def part(self, *args, **options):
        """The bytes of a partial by key."""
        answer = self.ask_pairs(*args, partial=True, unplaced=True, **options)
        self.assertIsNone(answer.status)
        return b"".join(values for _, _, values in answer.parts)

    def test_partials(self):
        """Of parts of the rows in any order they merge to the partial of all, and finish to its answers."""
        x, y, keys = plain("f32", 900), plain("f32", 900, 2), self.keys(300, 12)
        for way, second_way in (("stream", "stream"), ("memfd", "file")):
            whole = self.part("f32", OPS, x, y, keys, 12, way, second_way, columns=3)
            parts = [self.part("f32", OPS, x[12 * a:12 * b], y[12 * a:12 * b], keys[a:b], 12, way, second_way, columns=3)
                     for a, b in ((200, 300), (0, 1), (1, 200))]
            merged = self.conn.merge(OPS, parts, keyed=True, partial=True)
            self.assertEqual(whole, b"".join(values for _, _, values in merged.parts))
            answers = self.conn.merge(OPS, parts, keyed=True)
            self.check(answers, "f32", x, y, keys, 12, 3)
        single = self.ask("f32", ["sum"], x, "stream", [keys_of(keys, 12, columns=3)], partial=True, unplaced=True)
        other = b"".join(values for _, _, values in single.parts)
        self.assert_sentence(self.conn.merge(["dot"], [whole, other], keyed=True).status, INVALID_ARGUMENT, "different ops")

    def test_feature(self):
        c = self.connect(hello=False)
        c.send(frame(HELLO, 0, hello_message(features=("keyed_pairs", "second"))))
        self.assertEqual([b"keyed_pairs", b"second"], [bytes(name) for name in c.greet()["features"]])

    def test_what_is_wrong(self):
        keys, ten = keys_message(beside_message(10), 3, "u8"), stream_input(40)
        for said, data, code, words in ((beside_message(9), b"", INVALID_ARGUMENT, "second: it has 9 elements, the input 10"),
                                        (beside_message(10), bytes(10) + bytes(79), DATA_LOSS, "second: 40 bytes were declared, END came after 39"),
                                        (beside_message(10), bytes(10) + bytes(40), DATA_LOSS, "second: 40 bytes were declared, END came after 0"),
                                        (beside_message(10), b"\3" * 10 + bytes(80), INVALID_ARGUMENT, "keys: number 0 is 3, not one of 0 to 2")):
            stream = self.conn.open_stream()
            self.conn.send(self.conn.call_frame(stream, "f32", ["dot"], ten, keys=keys, second=said))
            self.conn.send(frame(DATA, stream, data, END) if data else b"")
            self.assert_sentence(self.conn.wait(stream).status, code, words)

    def test_who_leaves(self):
        """Amid the keys, and amid either array."""
        n = 1 << 17
        for sent, passed in itertools.product((0, n - 1, n + 5, n + PAIR_BLOCK + 9, n + 8 * n), ([], [self.memfd(bytes(4 * n)).fileno()])):
            c = self.connect()
            stream = c.open_stream()
            source = descriptor_input() if passed else stream_input(4 * n)
            c.send(c.call_frame(stream, "f32", ["dot"], source, descriptors=len(passed), keys=keys_message(beside_message(n), 3, "u8"),
                                second=beside_message(n)), passed)
            c.send_data(stream, bytes(min(sent, n + 4 * n if passed else sent)))
            if sent % 2:
                c.send(frame(CANCEL, stream))
                c.wait(stream)
            c.close()
        self.assertIsNone(self.conn.inline("f32", ["count"], bytes(40)).status)
        self.conn.close()
        self.daemon.check_returned(self)



if __name__ == "__main__":
    main()
