#!/usr/bin/env python3
"""Partials: an array cut at random points, its pieces reduced apart and merged in random order, by the daemon and by
cured-client alone, gives the bits of the whole. And what cannot be merged is refused with a sentence.
"""
import os
import random
import struct
import subprocess

from cured_daemon import CLIENT, HANG_S, DaemonTest, environment, main, need_binary
from cured_wire import INPUTS, INVALID_ARGUMENT, OPS, RESOURCE_EXHAUSTED, SIZES, UNIMPLEMENTED
from expected import any_nan, array_of, expect_all, ops_table, oracle

HEAD_BYTES = 24  # docs/PARTIALS.md: before the ranges


def ops_of(dtype):
    """Those that the oracle answers exactly."""
    if dtype in oracle.INTS:
        return list(OPS)
    return [op for op in OPS if op != "prod" and not op.startswith("bit_")]


def cuts_of(r, count, pieces):
    cuts = sorted(r.randint(0, count) for _ in range(pieces - 1))
    return list(zip([0] + cuts, cuts + [count]))


class Partials(DaemonTest):
    OPTIONS = {"cpu_workers": 2, "slabs": 8}

    def partial(self, c, dtype, ops, raw, first=0, way=0):
        if way == 0:
            answer = c.inline(dtype, ops, raw, partial=True, first=first)
        elif way == 1:
            answer = c.stream(dtype, ops, raw, chunks=(4097, 300), partial=True, first=first)
        else:
            answer = c.descriptor(dtype, ops, self.memfd(b"-" + raw).fileno(), 1, partial=True, first=first)
        self.assertIsNone(answer.status)
        self.assertEqual([], answer.results)
        self.assertEqual(len(raw) // SIZES[dtype], answer.count)
        self.assertTrue(answer.partial.startswith(b"CP\1"))
        return answer.partial

    def local(self, ops, records, *arguments):
        """cured-client merge --local over files; its output, or the sentence it failed with."""
        need_binary(CLIENT)
        names = []
        for i, record in enumerate(records):
            names.append(os.path.join(self.folder, "%d.crp" % i))
            with open(names[-1], "wb") as f:
                f.write(record)
        result = subprocess.run([CLIENT, "merge", *names, "--local", "--ops", ",".join(ops), *arguments], timeout=HANG_S,
                                env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertIn(result.returncode, (0, 65, 75), result.stderr)
        return result.stdout if result.returncode == 0 else result.stderr.decode()

    def test_cut_and_merged_like_the_whole(self):
        c = self.connect()
        r = random.Random(21)
        for dtype in INPUTS:
            for turn in range(3):
                count = (0, r.randint(1, 40), r.randint(300, 3000))[turn]
                raw = array_of(r, dtype, count) if count else b""
                ops = r.sample(ops_of(dtype), r.randint(1, len(ops_of(dtype)))) if turn else ops_of(dtype)
                size = SIZES[dtype]
                whole = self.partial(c, dtype, ops, raw, way=r.randrange(3))
                pieces = [self.partial(c, dtype, ops, raw[a * size:b * size], a, r.randrange(3))
                          for a, b in cuts_of(r, count, r.randint(2, 9))]
                r.shuffle(pieces)
                options = {"nan": any_nan(r, ops)}
                merged = c.merge(ops, pieces, chunks=(r.randint(1, 3000),), known=r.random() < 0.5, **options)
                self.assertIsNone(merged.status, (dtype, ops))
                self.assertEqual(expect_all(ops, dtype, raw, **options), merged.keys(), (dtype, options))
                self.assertEqual(count, merged.count)
                self.assertEqual(whole, c.merge(ops, pieces, partial=True).partial)
                self.assertEqual(whole, self.local(ops, pieces, "--partial"))
                # in two steps, by both
                k = r.randint(1, len(pieces))
                some, rest = pieces[:k], pieces[k:]
                self.assertEqual(whole, c.merge(ops, rest + [self.local(ops, some, "--partial")], partial=True).partial)
                self.assertEqual(whole, c.merge(ops, [whole], partial=True).partial)

    def test_a_digest_is_of_a_whole_array(self):
        """Parts that do not begin with its first element, or leave a gap, have none: the daemon says so at the end of a merge. As a
        partial they go on."""
        c = self.connect()
        raw, ops = bytes(range(1, 91)), ("digest", "sum")
        part = [self.partial(c, "u8", ops, raw[i:i + 30], i, way) for way, i in enumerate((0, 30, 60))]
        for some, words in (([1], "element 0"), ([2, 1], "element 0"), ([0, 2], "element 30")):
            records = [part[k] for k in some]
            self.refused(c, ["digest"], records, INVALID_ARGUMENT, "whole array", words)
            self.assertIsNone(c.merge(["sum"], records).status)
            joined = c.merge(ops, records, partial=True)
            self.assertIsNone(joined.status)
            rest = [part[k] for k in range(3) if k not in some]
            self.assertEqual(expect_all(ops, "u8", raw), c.merge(ops, rest + [joined.partial]).keys())
        self.assertEqual(expect_all(ops, "u8", raw[:30]), c.merge(ops, part[:1]).keys())
        self.refused(c, ["digest"], [part[0], part[0]], INVALID_ARGUMENT, "in two of them")
        for options in ({"first": 30}, {"nan": 1}, {"result_dtype": "f32"}):
            self.assert_sentence(c.inline("u8", ["digest"], raw, **options).status, INVALID_ARGUMENT)
        self.assert_sentence(c.inline("u8", ["digest"], raw, partial=True, unplaced=True).status, INVALID_ARGUMENT, "position")

    def test_anywhere_in_a_larger_array(self):
        c = self.connect()
        raw = struct.pack("<6i", 5, -7, 9, 9, -7, 0)
        ops = ("sum", "argmin", "argmax")
        base = 2**63 - 7
        left, right = self.partial(c, "i32", ops, raw[:12], base), self.partial(c, "i32", ops, raw[12:], base + 3)
        answer = c.merge(ops, [right, left])
        self.assertEqual([9, base + 1, base + 2], [struct.unpack("<Q", x.value)[0] for x in answer.results])
        self.assertEqual(self.partial(c, "i32", ops, raw, base), c.merge(ops, [right, left], partial=True).partial)
        # indices count from first without a partial, too
        answer = c.inline("i32", ops, raw, first=1000)
        self.assertEqual([9, 1001, 1002], [struct.unpack("<Q", x.value)[0] for x in answer.results])
        for first in (2**63 - 5, 2**63 - 1, 2**63, 2**64 - 1):
            self.assert_sentence(c.inline("i32", ops, raw, first=first, partial=True).status, INVALID_ARGUMENT, "2^63")

    def test_gaps(self):
        """Parts need not touch; what lies between may come later."""
        c = self.connect()
        raw = bytes(range(1, 31))
        ops = ("sum", "argmax")
        part = [self.partial(c, "u8", ops, raw[i:i + 3], i) for i in range(0, 30, 3)]
        odd, even = c.merge(ops, part[1::2], partial=True).partial, c.merge(ops, part[::2], partial=True).partial
        self.assertEqual(sum(sum(raw[i:i + 3]) for i in range(3, 30, 6)),
                         int.from_bytes(c.merge(ops, [odd]).results[0].value, "little"))
        self.assertEqual(self.partial(c, "u8", ops, raw), c.merge(ops, [odd, even], partial=True).partial)
        self.assertGreater(len(odd), len(part[0]))
        # more gaps than the form holds
        apart = [self.partial(c, "u8", ["count"], b"x", 2 * i) for i in range(1025)]
        self.assertIsNone(c.merge(["count"], apart[:1024]).status)
        self.assert_sentence(c.merge(["count"], apart).status, RESOURCE_EXHAUSTED, "gaps")
        self.assertIn("gaps", self.local(["count"], apart))

    def test_options_apply_at_the_end(self):
        c = self.connect()
        r = random.Random(22)
        raw = array_of(r, "f32", 500)
        ops = ("var", "sum")
        pieces = [self.partial(c, "f32", ops, raw[a * 4:b * 4], a) for a, b in cuts_of(r, 500, 4)]
        answer = c.merge(ops, pieces, ddof=2, nan=1, result_dtype="f16")
        self.assertEqual(expect_all(["var"], "f32", raw, ddof=2, nan=1, result_dtype="f16") +
                         expect_all(["sum"], "f32", raw, nan=1, result_dtype="f16"), answer.keys())
        self.assert_sentence(c.merge(["sum"], pieces, ddof=1).status, INVALID_ARGUMENT, "ddof")
        self.assert_sentence(c.merge(["sum"], pieces, nan=7).status, INVALID_ARGUMENT, "nan")

    def refused(self, c, ops, records, code, *words):
        status = c.merge(ops, records).status
        self.assert_sentence(status, code, *words)
        here = self.local(ops, records)
        for word in words:
            self.assertIn(word.lower(), here.lower())

    def test_without_a_position(self):
        """Chunks in any order, given by every way, merge to the bits of the whole; indices and float products are refused."""
        c = self.connect()
        r = random.Random(22)
        for dtype in INPUTS:
            ops = [op for op in ops_of(dtype) if not op.startswith("arg") and op not in ops_table.WHOLE]
            raw = array_of(r, dtype, 700)
            cut = len(raw) // SIZES[dtype] // 2 * SIZES[dtype]
            parts = [c.inline(dtype, ops, raw[cut:], partial=True, unplaced=True).partial,
                     c.stream(dtype, ops, raw[:cut], partial=True, unplaced=True).partial]
            self.assertTrue(all(part.startswith(b"CP\2") for part in parts))
            answer = c.merge(ops, parts)
            self.assertEqual(expect_all(ops, dtype, raw), answer.keys())
        for ops, dtype in ((["argmin"], "u8"), (["sum", "argmax"], "f32"), (["prod"], "f64")):
            status = c.inline(dtype, ops, bytes(64), partial=True, unplaced=True).status
            self.assert_sentence(status, INVALID_ARGUMENT, "without a position")
        self.assert_sentence(c.inline("u8", ["sum"], b"12", unplaced=True).status, INVALID_ARGUMENT, "unplaced")
        self.assert_sentence(c.inline("u8", ["sum"], b"12", partial=True, unplaced=True, first=1).status, INVALID_ARGUMENT,
                             "first")
        unplaced, placed = (c.inline("u8", ["max"], b"12", partial=True, unplaced=x).partial for x in (True, False))
        self.refused(c, ["max"], [unplaced, placed], INVALID_ARGUMENT, "position")
        self.refused(c, ["argmax"], [unplaced], INVALID_ARGUMENT, "without a position")
        self.assert_serves()

    def test_what_does_not_fit(self):
        c = self.connect()
        ops = ("sum", "max")
        a = self.partial(c, "f32", ops, bytes(40), 0)
        b = self.partial(c, "f32", ops, bytes(40), 9)
        self.refused(c, ops, [a, b], INVALID_ARGUMENT, "from 9 on", "two of them")
        self.refused(c, ops, [a, a], INVALID_ARGUMENT, "two of them")
        self.refused(c, ops, [a, self.partial(c, "i32", ops, bytes(40), 10)], INVALID_ARGUMENT, "f32", "i32")
        self.refused(c, ops, [a, self.partial(c, "f32", ["sum"], bytes(40), 10)], INVALID_ARGUMENT, "different ops")
        self.refused(c, ["var"], [a], INVALID_ARGUMENT, "not made for")
        self.refused(c, ["bit_or"], [a], INVALID_ARGUMENT, "bit_or")
        self.refused(c, ops, [a[:2] + b"\4" + a[3:]], UNIMPLEMENTED, "version")
        self.refused(c, ops, [b"not a partial at all....."], INVALID_ARGUMENT, "not one")
        self.refused(c, ops, [b""], INVALID_ARGUMENT)
        for cut in range(len(a)):
            self.assert_sentence(c.merge(ops, [a[:cut]]).status, INVALID_ARGUMENT, "partial")
        self.refused(c, ops, [a + b"\0"], INVALID_ARGUMENT, "follow")
        # the records themselves
        self.assert_sentence(c.merge(ops, []).status, INVALID_ARGUMENT, "none")
        record = struct.pack("<I", len(a)) + a
        for cut in (1, 3, 4, 5, len(record) - 1):
            self.assert_sentence(c.merge_bytes(ops, record[:cut]).status, INVALID_ARGUMENT, "partial")
        self.assert_sentence(c.merge_bytes(ops, struct.pack("<I", 65537)).status, INVALID_ARGUMENT, "limit is 65536")
        self.assert_sentence(c.merge_bytes(ops, b"\xff" * 5000).status, INVALID_ARGUMENT, "limit is 65536")
        self.assert_serves()

    def test_hostile_bytes(self):
        """Changed in every place: refused, or something that merges to a canonical form again. Never a broken daemon."""
        c = self.connect()
        r = random.Random(23)
        for dtype in ("u8", "i64", "f16", "f64"):
            ops = [op for op in ops_of(dtype)]
            good = self.partial(c, dtype, ops, array_of(r, dtype, 30), 5)
            taken = 0
            for _ in range(250):
                bad = bytearray(good)
                for _ in range(r.randint(1, 3)):
                    at = r.randrange(len(bad))
                    bad[at] = r.choice((0, 1, 0x7f, 0x80, 0xff, bad[at] ^ 1 << r.randrange(8)))
                answer = c.merge(ops, [bytes(bad)], partial=True)
                if answer.status:
                    self.assertIn(answer.status.code, (INVALID_ARGUMENT, UNIMPLEMENTED))
                    continue
                taken += 1
                self.assertEqual(bytes(bad), answer.partial)
                self.assertIsNone(c.merge([op for op in ops if op not in ops_table.WHOLE], [bytes(bad)]).status)
            self.assertLess(taken, 250)
        self.assert_serves()


if __name__ == "__main__":
    main()
