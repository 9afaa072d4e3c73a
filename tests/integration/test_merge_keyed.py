"""test_merge_keyed: a daemon merges partials by key. Whatever the type, the ops, the cut, the order, masks and dropped keys, the merged partial is
that of one call of all rows, byte for byte, and its answers are the oracle's; what comes is bounded, counted and given back, and bytes of others
are refused by a sentence."""
import itertools
import os
import random
import struct

import test_by_key
from beside import Beside, BesideTest
from cured_daemon import DaemonTest, main, wait_for
from cured_wire import CANCEL, CANCELLED, DATA, DATA_BYTES, END, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, SIZES, UNIMPLEMENTED, frame
from expected import plain
from test_masks import Mask, random_mask

SEED = int(os.environ.get("CURED_TEST_SEED", "33"))
OPS = ["sum", "max", "count", "var"]


def record(raw):
    return struct.pack("<I", len(raw)) + raw


class Merging(BesideTest):
    check, ask_keys = test_by_key.ByKeyTest.check, test_by_key.ByKeyTest.ask_keys

    def setUp(self):
        self.conn = self.connect()
        self.r = random.Random(SEED)

    def part(self, dtype, ops, data, keys, groups, columns=1, mask=None, drop=False):
        beside = [] if mask is None else [Beside("mask", mask.bytes, mask.message, "stream")]
        answer = self.ask(dtype, ops, data, "stream", beside + [test_by_key.keys_of(keys, groups, "i32", "stream", columns, drop)], partial=True, unplaced=True)
        return self.partial_of(answer)

    def refuse(self, code, *words, ops=("sum",), data=b"", conn=None, **options):
        answer = (conn or self.conn).merge_bytes(list(ops), data, keyed=options.pop("keyed", True), **options)
        self.assert_sentence(answer.status, code, *words)


class MergeTest(Merging):
    def test_every_type_and_cut(self):
        """Parts of random lengths, some empty, in any order; the merged partial and the answers are those of one call."""
        for dtype, (n, columns, masked, drop) in itertools.product(SIZES, ((0, 1, False, False), (90, 3, False, True), (400, 1, True, False), (200, 2, True, True))):
            ops = ["count_nonzero", "any"] if dtype == "bool" else ["sum", "max", "norm1"] if not dtype.startswith(("f", "bf")) or dtype.startswith("f8") else OPS
            width = SIZES[dtype] * columns
            data = bytes(i % 3 == 0 for i in range(n * columns)) if dtype == "bool" else plain(dtype, n * columns, n)
            keys = [self.r.randrange(7 if drop else 5) for _ in range(n)]
            mask = random_mask(self.r, n * columns, (False, 3, False)) if masked else None
            cuts = sorted([0, n] + [self.r.randrange(n + 1) for _ in range(self.r.randrange(5))])
            parts = list(zip(cuts, cuts[1:]))
            with self.subTest((dtype, n, columns, masked, drop)):
                whole = self.part(dtype, ops, data, keys, 5, columns, mask, drop)
                raws = [self.part(dtype, ops, data[a * width:b * width], keys[a:b], 5, columns, None if mask is None else Mask(mask.keeps[a * columns:b * columns]), drop)
                        for a, b in parts]
                self.r.shuffle(raws)
                chunks = self.r.choice(((DATA_BYTES,), (1, 3, 7, 500), (37,)))
                merged = self.conn.merge(ops, raws, chunks, self.r.random() < 0.5, partial=True, keyed=True)
                self.assertEqual(whole, self.partial_of(merged))
                answer = self.conn.merge(ops, raws, chunks, keyed=True, statuses=True)
                count = 5 * columns
                counted = sum(1 for i in range(n * columns) if keys[i // columns] < 5 and (mask is None or mask.keeps[i]))
                self.assertEqual((counted, counted), (answer.count, merged.count))
                answer.count = n * columns  # the oracle's check is of a call of all rows
                self.check(answer, dtype, ops, data, keys, 5, columns, mask)

    def test_many_groups(self):
        """More answers than go into one message, of parts whose groups overlap in some places, in parts with statuses."""
        groups, ops = 70000, ["sum", "min"]
        parts = []
        for start in (0, 30000, 60000):
            keys = list(range(start, min(start + 40000, groups)))
            parts.append(self.part("f32", ops, struct.pack("<%df" % len(keys), *[float(k % 100) for k in keys]), keys, groups))
        answer = self.conn.merge(ops, parts[::-1], keyed=True)
        self.assertIsNone(answer.status)
        twice = set(range(30000, 40000)) | set(range(60000, 70000))
        wanted = struct.pack("<%dd" % groups, *[(k % 100) * (2.0 if k in twice else 1.0) for k in range(groups)])
        self.assertEqual(wanted, answer.array(0, 8, groups))
        self.assertEqual(struct.pack("<%df" % groups, *[float(k % 100) for k in range(groups)]), answer.array(1, 4, groups))

    def test_a_partial_beyond_the_first_credit(self):
        """More bytes than may be sent before the client grants some."""
        n = 1 << 16
        raw = self.part("f64", ["sum", "var"], struct.pack("<%dd" % n, *range(n)), list(range(n)), n)
        self.assertGreater(len(raw), 6 << 20)
        self.assertEqual(raw, self.partial_of(self.conn.merge(["sum", "var"], [raw], keyed=True, partial=True)))

    def test_options(self):
        raw = self.part("f32", ["mean", "var"], struct.pack("<3f", 1, 4, float("nan")), [0, 0, 1], 3)
        answer = self.conn.merge(["mean", "var"], [raw], keyed=True, nan=1, ddof=1)
        self.assertEqual(struct.pack("<2d", 2.5, 4.5), answer.array(0, 8, 3)[:8] + answer.array(1, 8, 3)[:8])
        answer = self.conn.merge(["mean"], [raw], keyed=True, result_dtype="f32")
        self.assertEqual(struct.pack("<f", 2.5), answer.array(0, 4, 3)[:4])

    def test_what_is_wrong(self):
        good, more = (self.part("f32", ["sum"], bytes(40), [i % g for i in range(10)], g) for g in (3, 4))
        other, wide = self.part("f64", ["sum"], bytes(80), [0] * 10, 3), self.part("f32", ["sum"], bytes(40), [0] * 5, 3, 2)
        lone = self.conn.inline("f32", ["sum"], bytes(40), partial=True).partial
        lacks = self.part("f32", ["sum", "min"], bytes(40), [0] * 10, 3)
        for words, parts in ((("groups", "3", "4"), (good, more)), (("one is of f32, another of f64",), (good, other)), (("columns",), (good, wide)),
                             (("different ops",), (good, lacks)), (("these bytes are not one by key",), (lone,)), (("these bytes are not one by key",), (good, lone)),
                             (("these bytes are not one by key",), (b"",)), (("these bytes are not one by key",), (b"C",)), (("cut short",), (good[:31],)),
                             (("cut short",), (good[:-1],)), (("cut short",), (good[:40],))):
            self.refuse(INVALID_ARGUMENT, *words, data=b"".join(map(record, parts)))
        self.refuse(UNIMPLEMENTED, "version", data=record(good[:2] + b"\7" + good[3:]))
        for at in range(len(good)):  # a changed byte may be as right as the one before, but for what shows
            answer = self.conn.merge(["sum"], [good[:at] + bytes([good[at] ^ 255]) + good[at + 1:], good], keyed=True)
            if answer.status:
                self.assertIn(answer.status.code, (INVALID_ARGUMENT, UNIMPLEMENTED, RESOURCE_EXHAUSTED), at)
        self.refuse(INVALID_ARGUMENT, "none to merge")
        self.refuse(INVALID_ARGUMENT, "END came in the middle", data=record(good) + b"\1")
        self.refuse(INVALID_ARGUMENT, "END came in the middle", data=record(good)[:-3])
        self.refuse(INVALID_ARGUMENT, "END came in the middle", data=record(good)[:20])
        self.refuse(INVALID_ARGUMENT, "it was not made for min", ops=["min"], data=record(good))
        self.refuse(INVALID_ARGUMENT, "argmax", ops=["argmax"], data=record(good))
        self.refuse(INVALID_ARGUMENT, "output 1: min of no elements has no value", ops=["min"], data=record(self.part("f32", ["min"], bytes(4), [0], 2)))
        self.refuse(INVALID_ARGUMENT, data=record(good), keyed=False)
        self.assertIsNone(self.conn.merge(["sum"], [good], keyed=True).status)

    def test_who_leaves(self):
        """Cancelled and left before the end, amid the merging and amid the answers, which wait for credit: all is given back, and others go on."""
        n = 1 << 16
        keys = list(range(n))
        raw = self.part("f64", ["sum", "var"], struct.pack("<%dd" % n, *range(n)), keys, n)
        data = record(raw) * 3
        for how, partial, sent in itertools.product(("cancel", "leave"), (False, True), (3, 40, len(data) // 2, len(data))):
            c = self.connect()
            stream = c.start_merge(["sum", "var"], len(data), partial=partial, keyed=True)
            c.answers[stream].auto_credit = False
            for at in range(0, sent, DATA_BYTES):
                c.send_data(stream, data[at:min(at + DATA_BYTES, sent)], at + DATA_BYTES >= len(data))
            if how == "cancel":
                c.send(frame(CANCEL, stream))
                answer = c.wait(stream)
                self.assertTrue(answer.status is None or answer.status.code == CANCELLED)
            self.assertIsNone(self.conn.inline("f32", ["count"], bytes(40)).status)
            c.close()
        self.conn.close()
        self.daemon.check_returned(self)


class Large(Merging):
    OPTIONS = {"cpu_workers": 1}

    def freed(self):
        wait_for("what calls held", lambda: self.daemon.counters()["state_bytes"] == 0)
        return self.daemon.counters()["bulk_freed_bytes_total"]

    def test_all_of_it_goes_back_in_steps(self):
        """The parts and what they are merged to: of an answer, of a partial, and of a call that is given up amid its answers."""
        n = 1 << 17
        raw = self.part("f64", ["sum", "var"], struct.pack("<%dd" % n, *range(n)), list(range(n)), n)
        self.assertGreater(len(raw), 8 << 20)
        for partial in (False, True):
            before = self.freed()
            self.assertIsNone(self.conn.merge(["sum", "var"], [raw, raw], keyed=True, partial=partial).status)
            self.assertGreaterEqual(self.freed() - before, 3 * len(raw), partial)
            before, c = self.freed(), self.connect()
            stream = c.start_merge(["sum", "var"], 2 * len(record(raw)), partial=partial, keyed=True)
            c.answers[stream].auto_credit = False
            data = record(raw) * 2
            for at in range(0, len(data), DATA_BYTES):
                c.send_data(stream, data[at:at + DATA_BYTES], at + DATA_BYTES >= len(data))
            c.send(frame(CANCEL, stream))
            c.close()
            self.assertGreaterEqual(self.freed() - before, 2 * len(raw), partial)


class Limits(Merging):
    OPTIONS = {"cpu_workers": 1, "max_state_bytes_per_connection": 1 << 20, "max_state_bytes": 8 << 20}

    def test_what_parts_may_take_is_counted(self):
        """Before a byte of a part's memory is taken: by its head."""
        n = 2000
        raw = self.part("f32", ["sum"], bytes(4 * n), list(range(n)), n)
        self.refuse(INVALID_ARGUMENT, "max_state_bytes_per_connection", "merge some at a time", data=record(raw) * 9)
        c = self.connect()
        stream = c.start_merge(["sum"], keyed=True)
        c.send(frame(DATA, stream, (record(raw) * 2)[:len(raw) + 40]))
        c.ping()
        state = c.info()["counters"]["state_bytes"]
        self.assertGreater(state, 2 * len(raw))
        self.assertLessEqual(state, 1 << 20)
        second = c.start_merge(["sum"], keyed=True)
        c.send(frame(DATA, second, (record(raw) * 4)[:3 * len(raw) + 60]))
        self.assert_sentence(c.wait(second).status, RESOURCE_EXHAUSTED, "max_state_bytes_per_connection")
        c.send(frame(DATA, stream, (record(raw) * 2)[len(raw) + 40:], END))
        self.assertEqual(bytes(8 * n), c.wait(stream).array(0, 8, n))
        self.assertEqual(0, c.info()["counters"]["state_bytes"])
        huge = raw[:8] + struct.pack("<QQQ", 1 << 26, 1, 0)
        self.refuse(INVALID_ARGUMENT, "max_state_bytes", data=record(huge))
        nothing = raw[:8] + struct.pack("<QQQ", 1, 1, 0)
        self.refuse(INVALID_ARGUMENT, "max_state_bytes_per_connection", data=record(nothing) * 9000)  # reading them takes more than they have


class Answers(Merging):
    OPTIONS = {"cpu_workers": 1, "max_answer_bytes": 4096}

    def test_answers_are_bounded(self):
        raw = self.part("f32", ["sum"], bytes(32), [i % 2 for i in range(8)], 1 << 10)
        self.refuse(INVALID_ARGUMENT, "max_answer_bytes, 4096", data=record(raw))
        self.assertEqual(raw, self.partial_of(self.conn.merge(["sum"], [raw], keyed=True, partial=True)))


if __name__ == "__main__":
    print("seed", SEED)
    main()
