"""test_by_key: reductions by key, whose keys come beside the array by every way in which either may: each group and column answers as its
elements do by themselves, under masks too, as parts and written into regions; what is wrong with keys is said, and what is held of
groups is counted, bounded and given back. Held against the oracle."""
import itertools
import os
import random
import struct
import threading

from beside import BESIDE_WAYS, WAYS, Beside, BesideTest, LibraryProgram
from cured_daemon import DaemonTest, main
from cured_wire import (CANCEL, CANCELLED, DATA, DATA_LOSS, END, HELLO, INVALID_ARGUMENT, NOT_FOUND, OUT_OF_RANGE, RESOURCE_EXHAUSTED, SIZES,
                        UNIMPLEMENTED, beside_message, bytes_field, descriptor_input, frame, hello_message, keys_message, layout_message, region_input,
                        segments_message, stream_input, uint_field)
from expected import expect, plain
from test_masks import random_mask

SEED = int(os.environ.get("CURED_TEST_SEED", "33"))
OPS = ["sum", "max", "argmin", "count", "var"]
FORMATS = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q"}
WIDTHS = {"sum": 8, "argmin": 8, "count": 8, "var": 8, "count_nonzero": 8, "any": 1, "norm1": 8}


def keys_of(keys, groups, dtype="i32", way="stream", columns=0, drop=False, count=None):
    data = struct.pack("<%d%s" % (len(keys), FORMATS[dtype]), *keys)
    said = len(keys) if count is None else count
    return Beside("keys", data, lambda source, at: keys_message(beside_message(said, source, at), groups, dtype, columns, drop), way)


class ByKeyTest(BesideTest):
    def setUp(self):
        self.conn = self.connect()
        self.r = random.Random(SEED)

    def ask_keys(self, dtype, ops, data, keys, groups, way="stream", keys_way="stream", kind="i32", mask=None, mask_way="stream", columns=0,
                 drop=False, **options):
        beside = [] if mask is None else [Beside("mask", mask.bytes, mask.message, mask_way)]
        return self.ask(dtype, ops, data, way, beside + [keys_of(keys, groups, kind, keys_way, columns, drop)], statuses=True, **options)

    def check(self, answer, dtype, ops, data, keys, groups, columns=1, mask=None):
        """Every answer is the oracle's to the elements of its group and column."""
        size, count = SIZES[dtype], groups * columns
        self.assertIsNone(answer.status)
        self.assertEqual(len(keys) * columns, answer.count)
        for op, name in enumerate(ops):
            width = WIDTHS.get(name, size)
            values, statuses = answer.array(op, width, count), answer.statuses_of(op, count)
            for cell in range(count):
                group, column = divmod(cell, columns)
                rows = [i for i, key in enumerate(keys) if key == group and (mask is None or mask.keeps[i * columns + column])]
                key = expect(name, dtype, b"".join(data[(i * columns + column) * size:][:size] for i in rows))
                if key[1] or len(key[3]) > 2 * width:
                    self.assertEqual(key[1] or OUT_OF_RANGE, statuses[cell], (name, cell))
                    continue
                wanted = bytes.fromhex(key[3])
                if name == "argmin":  # whose index is the row's
                    wanted = struct.pack("<Q", rows[int.from_bytes(wanted, "little")])
                self.assertEqual((0, wanted), (statuses[cell], values[cell * width:(cell + 1) * width]), (name, cell))

    def test_every_way(self):
        kinds = itertools.cycle(FORMATS)
        for way, keys_way, mask_way in itertools.product(WAYS, BESIDE_WAYS, (None,) + BESIDE_WAYS):
            for n, columns, drop in ((0, 0, False), (1, 1, True), (120, 3, False), (400, 0, True)):
                with self.subTest((way, keys_way, mask_way, n)):
                    width = columns or 1
                    data = plain("f32", n * width, n)
                    keys = [self.r.randrange(0, 7 if drop else 5) for _ in range(n)]
                    mask = random_mask(self.r, n * width, (n % 40 == 0, 3, False)) if mask_way else None
                    answer = self.ask_keys("f32", OPS, data, keys, 5, way, keys_way, next(kinds), mask, mask_way or "", columns, drop,
                                           pieces=(1, 3, 7, 500) if n == 120 else None)
                    self.check(answer, "f32", OPS, data, keys, 5, width, mask)

    def test_every_type(self):
        for dtype in SIZES:
            ops = ["count_nonzero", "any"] if dtype == "bool" else ["sum", "max", "norm1"]
            data = bytes(i % 3 == 0 for i in range(1500)) if dtype == "bool" else plain(dtype, 1500)
            for way in self.r.sample(WAYS, 3):
                with self.subTest((dtype, way)):
                    keys = [self.r.randrange(30) for _ in range(500)]
                    answer = self.ask_keys(dtype, ops, data, keys, 31, way, self.r.choice(BESIDE_WAYS), columns=3)
                    self.check(answer, dtype, ops, data, keys, 31, 3)

    def test_large(self):
        """Longer than the credit, slabs and claims, folded by several workers; few groups and as many as rows."""
        n = 3 << 20
        data = struct.pack("<1024f", *[(i % 64) * 2.0 ** (i % 16 - 8) for i in range(1024)]) * (n >> 10)
        for groups in (3, n):
            tile = [(i * 7919) % groups for i in range(n)]
            keys = struct.pack("<%dI" % n, *tile)
            floats = struct.unpack("<%df" % n, data)
            want = [0.0] * groups  # exact: every element is a multiple of 2^-8 and small
            for key, x in zip(tile, floats):
                want[key] += x
            beside = Beside("keys", keys, lambda source, at: keys_message(beside_message(n, source, at), groups, "u32"))
            for way, keys_way in (("stream", "stream"), ("unknown", "sealed"), ("descriptor", "descriptor"), ("sealed", "stream")):
                with self.subTest((groups, way, keys_way)):
                    beside.way = keys_way
                    answer = self.ask("f32", ["sum"], data, way, [beside])
                    self.assertIsNone(answer.status)
                    self.assertEqual(struct.pack("<%dd" % groups, *want), answer.array(0, 8, groups))

    def test_written(self):
        data, out = plain("f64", 3000), self.memfd(bytes(16 * 200))
        self.assertEqual(16 * 200, self.conn.register(9, out.fileno(), writable=True))
        for way, keys_way in itertools.product(("stream", "descriptor", "sealed"), BESIDE_WAYS):
            keys = [self.r.randrange(90) for _ in range(1500)]
            answer = self.ask_keys("f64", ["sum", "max"], data, keys, 100, way, keys_way, "u8", columns=2, outputs=((0, 9, 0), (1, 9, 1600)))
            self.assertIsNone(answer.status)
            self.assertEqual(3200, answer.written)
            values = os.pread(out.fileno(), 3200, 0)
            for op, name in enumerate(("sum", "max")):
                for cell in range(200):
                    rows = [i for i, key in enumerate(keys) if key == cell // 2]
                    key = expect(name, "f64", b"".join(data[8 * (2 * i + cell % 2):][:8] for i in rows))
                    at = 1600 * op + 8 * cell
                    if key[1]:
                        self.assertEqual(key[1], answer.statuses_of(op, 200)[cell])
                    else:
                        self.assertEqual(key[3], values[at:at + 8].hex())
        self.assertIsNone(self.conn.unregister(9))

    def test_feature(self):
        c = self.connect(hello=False)
        c.send(frame(HELLO, 0, hello_message(features=("keys", "stride"))))
        self.assertEqual([b"keys"], [bytes(name) for name in c.greet()["features"]])

    def refuse(self, code, *words, keys, source=None, dtype="f32", ops=("sum",), passed=(), flags=0, data=None, **options):
        stream = self.conn.open_stream()
        source = stream_input(40) if source is None else source
        self.conn.send(self.conn.call_frame(stream, dtype, ops, source, flags=flags, descriptors=len(passed), keys=keys, **options), list(passed))
        if data is not None:
            self.conn.send(frame(DATA, stream, data, END))
        self.assert_sentence(self.conn.wait(stream).status, code, *words)

    def test_what_is_wrong_with_the_message(self):
        good = beside_message(10)
        for said in (b"", uint_field(5, 10), good + uint_field(3, 1)):
            self.refuse(INVALID_ARGUMENT, "Keys", "one of stream", keys=said + uint_field(6, 7))
        for dtype in (0, 1, 12, 13, 14, 99, 2**31 - 1):
            self.refuse(INVALID_ARGUMENT, "keys: their type", keys=good + uint_field(6, dtype) + uint_field(7, 3))
        for count, columns in ((9, 1), (11, 0), (5, 3), (10, 2), (2**40, 1), (0, 1)):
            self.refuse(INVALID_ARGUMENT, "keys: the input of their rows has %d elements, the input 10" % (count * (columns or 1)),
                        keys=keys_message(beside_message(count), 3, "i32", columns))
        for count, columns in ((2**64 - 1, 1), (2**62, 1), (1, 2**62), (2**40, 2**40), (2**63, 2)):
            self.refuse(INVALID_ARGUMENT, "keys", "too many", keys=keys_message(beside_message(count), 3, "i32", columns))
        for groups in (2**64 - 1, 2**40, 2**27 + 1):
            self.refuse(RESOURCE_EXHAUSTED, "groups: the states", keys=keys_message(good, groups, "i32"))
        self.refuse(INVALID_ARGUMENT, "groups:", "max_state_bytes_per_connection", keys=keys_message(good, 31000000, "i32"), ops=["max"],
                    data=bytes(80))
        self.refuse(UNIMPLEMENTED, "Keys has field 10", keys=keys_message(good, 3) + uint_field(10, 1))

    def test_what_is_wrong_with_keys(self):
        for kind, values, groups, words in (("i32", (0, 1, -1, 0), 2, "keys: number 2 is -1, not one of 0 to 1; drop leaves such elements out"),
                                            ("u64", (0, 2**64 - 1, 9, 0), 2, "keys: number 1 is 18446744073709551615, not one of 0 to 1"),
                                            ("i8", (0, 1, 0, 5), 5, "keys: number 3 is 5, not one of 0 to 4"),
                                            ("i64", (0, 0, 0, 0), 0, "there are no groups")):
            data = struct.pack("<4%s" % FORMATS[kind], *values)
            self.refuse(INVALID_ARGUMENT, words, keys=keys_message(beside_message(4), groups, kind), source=stream_input(16), data=data + bytes(16))
            f, a = self.file(b"1" + data), self.memfd(bytes(16))
            said = keys_message(beside_message(4, "file_descriptor", 1), groups, kind)
            self.refuse(INVALID_ARGUMENT, words, keys=said, source=descriptor_input(), passed=[a.fileno(), f.fileno()], flags=END)
        said, keys = keys_message(beside_message(10), 3, "i32"), bytes(40)
        for size in (0, 36, 44):
            self.refuse(INVALID_ARGUMENT, "keys: the input of their rows has 10 elements", keys=said, source=stream_input(None), data=keys + bytes(size))
        a = self.memfd(bytes(44))
        self.conn.register(1, a.fileno())
        self.refuse(INVALID_ARGUMENT, "has 10 elements, the input 11", keys=said, source=region_input(1), data=keys)
        self.conn.unregister(1)
        for op, dtype in (("digest", "f32"), ("prod", "f32")):
            self.refuse(INVALID_ARGUMENT, op, "by key", keys=said, ops=[op], dtype=dtype)
        self.refuse(INVALID_ARGUMENT, "output 1: min of no elements has no value", keys=said, ops=["min"], data=keys + bytes(40))
        self.refuse(DATA_LOSS, "keys: 40 bytes were declared, END came after 39", keys=said, data=bytes(39))
        self.refuse(NOT_FOUND, "keys", "region 5", keys=keys_message(beside_message(10, 5), 3))

    def test_which_answer_is_named(self):
        """That of the first group, whichever op lacks it: the sum of group 3 does not fit, and group 1 has no least element."""
        data = struct.pack("<4i", 0, 3, 3, 2) + struct.pack("<4q", 1, 1 << 62, 1 << 62, 5)
        for ops in (("sum", "min"), ("min", "sum"), ("var", "sum", "min")):
            self.refuse(INVALID_ARGUMENT, "output 1: min", keys=keys_message(beside_message(4), 4, "i32"), source=stream_input(32), dtype="i64", ops=ops,
                        data=data)

    def test_what_goes_with_no_keys(self):
        said = keys_message(beside_message(10), 3)
        keyed = {"partial": True, "unplaced": True}
        for words, options in ((("axis",), {"axis": (2, 5, 1)}), (("keys: a partial by key has no position",), {"partial": True}), (("first",), {"first": 4}),
                               (("statuses", "partial"), dict(keyed, statuses=True)), (("first", "no meaning"), dict(keyed, first=4)),
                               (("outputs: a partial is not written",), dict(keyed, outputs=((0, 9, 0),))), (("axis",), dict(keyed, axis=(2, 5, 1))),
                               (("argmax",), dict(keyed, ops=("argmax",))), (("several reads",), dict(keyed, ops=("median",))),
                               (("layout", "no block"), dict(keyed, layout=layout_message((20,), (0,), (10,)))),
                               (("kernel", "keys"), {"kernel": "v7_shuffle"}), (("offsets",), {"segments": segments_message(beside_message(2))})):
            self.refuse(INVALID_ARGUMENT, *words, keys=said, **options)
        f = self.memfd(bytes(40))
        self.conn.register(1, f.fileno())
        self.refuse(INVALID_ARGUMENT, "keys", "several regions", keys=said, source=bytes_field(4, bytes_field(1, uint_field(1, 1) + uint_field(3, 10))))
        self.conn.unregister(1)


    def test_partials(self):
        """In parts, whatever way the input comes; of the head's fields each is right, and each cell is a partial that merges as any other."""
        ops = ["sum", "count_nonzero"]
        for way, keys_way in itertools.product(WAYS, BESIDE_WAYS):
            for n in (0, 1, 500):
                data, keys = plain("f64", 2 * n, n), [self.r.randrange(7) for _ in range(n)]
                answer = self.ask("f64", ops, data, way, [keys_of(keys, 9, "i32", keys_way, 2)], partial=True, unplaced=True)
                raw = self.partial_of(answer)
                self.assertEqual(2 * n, answer.count)
                magic, version, dtype, _, groups, columns, cells = struct.unpack_from("<2sBBIQQQ", raw)
                self.assertEqual((b"CK", 1, 9, 2), (magic, version, groups, columns), (way, keys_way, n))
                self.assertEqual(len(set(keys)) * 2, cells)
                at, last = 32, -1
                for _ in range(cells):
                    cell, length = struct.unpack_from("<QI", raw, at)
                    self.assertLess(last, cell)
                    share, last, at = raw[at + 12:at + 12 + length], cell, at + 12 + length
                    rows = b"".join(data[8 * (2 * i + cell % 2):][:8] for i in range(n) if keys[i] == cell // 2)
                    merged = self.conn.merge(ops, [share])
                    self.assertEqual([expect(op, "f64", rows) for op in ops], merged.keys())
                self.assertEqual(len(raw), at)

    def start_partial(self, c, n=1 << 16, groups=1 << 16):
        stream = c.open_stream()
        c.send(c.call_frame(stream, "f32", ["sum", "var"], stream_input(4 * n), keys=keys_message(beside_message(n), groups, "u32"), partial=True,
                            unplaced=True))
        c.answers[stream].auto_credit = False
        c.send_array(stream, struct.pack("<%dI" % n, *[i % groups for i in range(n)]) + struct.pack("<f", 1.5) * n)
        return stream

    def test_partials_wait_for_credit(self):
        """No more comes than the client takes, whoever leaves or cancels meanwhile; others go on, and all is given back."""
        for how in ("take", "cancel", "leave", "take"):
            c, other = self.connect(), self.connect()
            stream = self.start_partial(c)
            c.until(lambda: c.answers[stream].window < 1 << 18)
            self.assertFalse(c.answers[stream].over)
            self.assertIsNone(other.inline("f32", ["count"], bytes(40)).status)
            if how == "take":
                c.answers[stream].auto_credit = True
                c.give_credit()
                raw = self.partial_of(c.wait(stream))
                self.assertEqual((1 << 16,), struct.unpack_from("<Q", raw, 24))
            elif how == "cancel":
                c.send(frame(CANCEL, stream))
                self.assertEqual(CANCELLED, c.wait(stream).status.code)
            c.close()
            other.close()
        self.conn.close()
        self.daemon.check_returned(self)


class LibraryTest(LibraryProgram, DaemonTest):
    OF_LIBRARY = "test_client_by_key"


class Answers(DaemonTest):
    OPTIONS = {"cpu_workers": 1, "max_answer_bytes": 4096}

    def test_a_partial_is_bounded_by_its_elements(self):
        """Groups without elements take no bytes of it, as answers do."""
        c = self.connect()
        for n, groups, good in ((8, 2, True), (8, 1 << 12, True), (1 << 12, 2, True), (1 << 12, 1 << 12, False)):
            stream = c.start_stream("f32", ["sum"], 4 * n, keys=keys_message(beside_message(n), groups, "u32"), partial=True, unplaced=True)
            c.send_array(stream, struct.pack("<%dI" % n, *[i % groups for i in range(n)]) + bytes(4 * n))
            answer = c.wait(stream)
            if good:
                self.assertIsNone(answer.status)
                self.assertLess(32, sum(len(values) for _, _, values in answer.parts))
            else:
                self.assert_sentence(answer.status, INVALID_ARGUMENT, "keys: their partial may come to have", "max_answer_bytes, 4096", "drop")


class Limits(DaemonTest):
    OPTIONS = {"cpu_workers": 2, "max_state_bytes_per_connection": 1 << 20, "max_state_bytes": 8 << 20, "max_bytes_in_flight": 64 << 20}

    def start(self, c, groups, n=8, ops=("sum",)):
        stream = c.start_stream("f32", list(ops), 4 * n, keys=keys_message(beside_message(n), groups, "u32"))
        c.send_data(stream, struct.pack("<%dI" % n, *[i % groups for i in range(n)]) + bytes(4 * n - 4))
        return stream

    def test_what_groups_hold_is_counted(self):
        """States and answers are admitted before any of it is made; what a state may come to have is reserved for it."""
        c = self.connect()
        stream = self.start(c, 1 << 16)
        self.assert_sentence(c.wait(stream).status, INVALID_ARGUMENT, "groups: ", "max_state_bytes_per_connection")
        held = self.start(c, 1 << 12)
        state = c.info()["counters"]["state_bytes"]
        self.assertGreater(state, 16 << 12)
        self.assertLessEqual(state, 1 << 20)
        other = self.start(c, 1 << 14)
        self.assert_sentence(c.wait(other).status, RESOURCE_EXHAUSTED, "max_state_bytes_per_connection")
        c.send_data(held, bytes(4), True)
        self.assertEqual(bytes(8 << 12), c.wait(held).array(0, 8, 1 << 12))
        self.assertEqual(0, c.info()["counters"]["state_bytes"])

    def test_what_a_partial_may_take_is_counted(self):
        c, n = self.connect(), 8
        for groups, good in ((1 << 12, True), (1 << 20, False)):  # eight elements are in eight cells, of whatever groups; but states are of all
            stream = c.start_stream("f32", ["sum"], 4 * n, keys=keys_message(beside_message(n), groups, "u32"), partial=True, unplaced=True)
            c.send_data(stream, struct.pack("<8I", *range(8)) + bytes(4 * n), True)
            status = c.wait(stream).status
            if good:
                self.assertIsNone(status)
            else:
                self.assert_sentence(status, INVALID_ARGUMENT, "groups: ", "max_state_bytes_per_connection")
        n = 1 << 13  # elements, each of a group of its own: 8,192 states fit, and a partial of so many cells does not
        stream = c.start_stream("f32", ["sum", "var"], 4 * n, keys=keys_message(beside_message(n), n, "u32"), partial=True, unplaced=True)
        c.send_array(stream, struct.pack("<%dI" % n, *range(n)) + bytes(4 * n))
        self.assert_sentence(c.wait(stream).status, INVALID_ARGUMENT, "groups: ", "of answers exceed what max_state_bytes_per_connection")
        self.assertEqual(0, c.info()["counters"]["state_bytes"])

    def test_states_that_would_grow_too_far(self):
        """Exponents that lie far apart want more state than the connection may hold: a sentence, and no more memory."""
        c, groups = self.connect(), 10000
        r = random.Random(SEED)
        data = struct.pack("<%df" % (2 * groups), *[r.choice((1, -1)) * 2.0 ** r.randrange(-140, 120) for _ in range(2 * groups)])
        keys = struct.pack("<%dI" % (2 * groups), *[i % groups for i in range(2 * groups)])
        stream = c.start_stream("f32", ["sum", "var"], len(data), keys=keys_message(beside_message(2 * groups), groups, "u32"))
        c.send_array(stream, keys + data)
        self.assert_sentence(c.wait(stream).status, RESOURCE_EXHAUSTED, "groups: the states of 10000 groups", "the limit")
        self.assertIsNone(c.inline("f32", ["count"], bytes(40)).status)

    def test_who_leaves_holds_nothing(self):
        n = 1 << 12
        said = keys_message(beside_message(n), 50, "u64")
        f = self.memfd(bytes(4 * n))
        for sent in (0, 1, 8 * n - 1, 8 * n, 8 * n + 4):
            for how in ("cancel", "leave"):
                for passed in ([], [f.fileno()]):
                    c = self.connect()
                    stream = c.open_stream()
                    c.send(c.call_frame(stream, "f32", ["var"], descriptor_input() if passed else stream_input(4 * n), keys=said,
                                        descriptors=len(passed)), passed)
                    if sent and not (passed and sent > 8 * n):
                        c.send(frame(DATA, stream, bytes(sent)))
                    if how == "cancel":
                        c.send(frame(CANCEL, stream))
                        c.wait(stream)
                    c.close()
        self.daemon.check_returned(self)

    def test_keys_that_change(self):
        n, c, over = 1 << 14, self.connect(), threading.Event()
        good = struct.pack("<%dI" % n, *[i % 100 for i in range(n)])
        f, a = self.sealed(good), self.sealed(bytes(4 * n))
        c.register(1, f.fileno())
        c.register(2, a.fileno())

        def change():
            r = random.Random(SEED)
            while not over.is_set():
                at = 4 * r.randrange(n)
                os.pwrite(f.fileno(), struct.pack("<I", r.choice((0, 2**32 - 1, 99, 100))), at)
                os.pwrite(f.fileno(), good[at:at + 4], at)
        thread = threading.Thread(target=change)
        thread.start()
        seen = set()
        for _ in range(300):
            stream = c.start_region("f32", ["sum", "var"], 2, keys=keys_message(beside_message(n, 1), 100, "u32"))
            status = c.wait(stream).status
            seen.add(status.code if status else 0)
        over.set()
        thread.join()
        self.assertLessEqual(seen, {0, INVALID_ARGUMENT})
        self.assertIn(0, seen)


if __name__ == "__main__":
    print("seed", SEED)
    main()
