"""test_masks: masks beside arrays, by every way in which either comes: DATA, a descriptor, a region; whole and along an axis, as values,
as partials, and written into regions. Held against the oracle's answers to the elements that count."""
import itertools
import os
import random
import struct

from beside import LibraryProgram
from cured_daemon import DaemonTest, main
from cured_wire import (CALL, CANCEL, DATA, DATA_LOSS, DEADLINE_EXCEEDED, END, HELLO, INVALID_ARGUMENT, NOT_FOUND, OK, RESOURCE_EXHAUSTED,
                        SIZES, UNIMPLEMENTED, beside_message, bytes_field, call_message, descriptor_input, descriptor_region, frame, hello_message,
                        mask_message, region_input, register_message, stream_input, uint_field)
from expected import expect, expect_all, plain

SEED = int(os.environ.get("CURED_TEST_SEED", "33"))
OPS = ["sum", "min", "max", "count", "norm2"]
FORMS = [(bits, first, out) for bits in (False, True) for first in (0, 3, 13) for out in (False, True)]


class Mask:
    """Which of n elements count: its bytes, and what a request says of it."""

    def __init__(self, keeps, bits=False, first=0, leaves_out=False):
        self.keeps, self.bits, self.first, self.leaves_out = list(keeps), bits, first, leaves_out
        flags = [True] * first + [k != leaves_out for k in self.keeps]
        if bits:
            flags += [True] * (-len(flags) % 8)
            self.bytes = bytes(sum(f << i for i, f in enumerate(flags[at:at + 8])) for at in range(0, len(flags), 8))
        else:
            self.bytes = bytes(f * (1 + i % 255) for i, f in enumerate(flags))

    def message(self, source="stream", offset=0, count=None):
        beside = beside_message(len(self.keeps) if count is None else count, source, offset)
        return mask_message(beside, self.bits, self.first, self.leaves_out)

    def of(self, raw, size):
        return b"".join(raw[i * size:(i + 1) * size] for i, k in enumerate(self.keeps) if k)


def random_mask(r, n, form, kind=None):
    kind = kind or r.choice(("half", "few", "all", "none", "runs"))
    if kind == "runs":
        keeps, k = [], True
        while len(keeps) < n:
            keeps += [k] * r.randrange(1, 200)
            k = not k
        return Mask(keeps[:n], *form)
    share = {"half": 0.5, "few": 0.01, "all": 1, "none": 0}[kind]
    return Mask([r.random() < share for _ in range(n)], *form)


class MasksTest(DaemonTest):
    OPTIONS = {"cpu_workers": 2, "shm_names": True}

    def setUp(self):
        self.conn = self.connect()
        self.r = random.Random(SEED)

    def ask(self, dtype, ops, data, mask, way, mask_way, pause=False, **options):
        """The Answer to ops of data under mask. way, mask_way: how each comes."""
        c, passed, flags = self.conn, [], 0
        size = SIZES[dtype]
        if way == "stream":
            source = stream_input(len(data))
        elif way == "unknown":
            source = stream_input(None)
        elif way == "descriptor":
            passed.append(self.memfd(b"12345" + data).fileno())
            source = descriptor_input(5, len(data) // size)
        elif way == "to_end":
            passed.append(self.file(data).fileno())
            source = descriptor_input()
        else:
            self.assertEqual(len(data) + 7, c.register(1, getattr(self, way)(b"1234567" + data).fileno()))
            source = region_input(1, 7)
        at = 3
        if mask_way == "stream":
            message = mask.message()
        elif mask_way == "descriptor":
            passed.append(self.file(b"123" + mask.bytes).fileno())
            message = mask.message("file_descriptor", at)
        else:
            self.assertEqual(len(mask.bytes) + 4, c.register(2, getattr(self, mask_way)(b"123" + mask.bytes + b"4").fileno()))
            message = mask.message(2, at)
        streams = way in ("stream", "unknown")
        if not streams and mask_way != "stream":
            flags = END
        stream = c.open_stream()
        batch = c.call_frame(stream, dtype, ops, source, flags=flags, descriptors=len(passed), mask=message, **options)
        if not flags and len(mask.bytes) + len(data) <= 1 << 18 and not pause:  # all at once, cut anywhere
            together = (mask.bytes if mask_way == "stream" else b"") + (data if streams else b"")
            cuts = sorted(self.r.sample(range(len(together) + 1), min(2, len(together) + 1)))
            pieces = [together[a:b] for a, b in zip([0] + cuts, cuts + [len(together)])]
            for i, piece in enumerate(pieces):
                batch += frame(DATA, stream, piece, END if i + 1 == len(pieces) else 0)
            c.credit[stream] -= len(together)
            c.send(batch, passed)
        else:
            c.send(batch, passed)
            if mask_way == "stream":
                c.send_array(stream, mask.bytes, (50000,)) if not streams else self.send_part(stream, mask.bytes)
            if streams:
                c.send_array(stream, data, (1 << 18,))
        answer = c.wait(stream)
        for number in ([1] if way in ("memfd", "sealed", "file") else []) + ([2] if mask_way in ("memfd", "sealed", "file") else []):
            self.assertIsNone(c.unregister(number))
        return answer

    def send_part(self, stream, data):
        for at in range(0, len(data), 100000):
            self.conn.send_data(stream, data[at:at + 100000])

    WAYS = ("stream", "unknown", "descriptor", "to_end", "memfd", "sealed", "file")
    MASK_WAYS = ("stream", "descriptor", "memfd", "sealed", "file")

    def test_every_way(self):
        turn = itertools.cycle(FORMS)
        for way, mask_way in itertools.product(self.WAYS, self.MASK_WAYS):
            for n in (0, 1, 777, 40001):
                with self.subTest((way, mask_way, n)):
                    data = plain("f32", n, n)
                    mask = random_mask(self.r, n, next(turn))
                    answer = self.ask("f32", OPS, data, mask, way, mask_way, pause=n == 777)
                    self.assertIsNone(answer.status)
                    self.assertEqual(expect_all(OPS, "f32", mask.of(data, 4)), answer.keys())
                    self.assertEqual(sum(mask.keeps), answer.count)

    def test_every_type(self):
        for dtype, size in SIZES.items():
            ops = ["count_nonzero", "any"] if dtype == "bool" else ["sum", "max", "norm1"]
            data = bytes(i % 3 == 0 for i in range(3001)) if dtype == "bool" else plain(dtype, 3001)
            for form in FORMS:
                with self.subTest((dtype, form)):
                    mask = random_mask(self.r, 3001, form, "half")
                    got = self.ask(dtype, ops, data, mask, self.r.choice(self.WAYS), self.r.choice(self.MASK_WAYS))
                    self.assertEqual(expect_all(ops, dtype, mask.of(data, size)), got.keys())

    def test_indices_are_the_array_s(self):
        data = plain("i32", 5000)
        values = struct.unpack("<5000i", data)
        mask = random_mask(self.r, 5000, (True, 5, False), "half")
        best = max((i for i in range(5000) if mask.keeps[i]), key=lambda i: (values[i], -i))
        for way in self.WAYS:
            answer = self.ask("i32", ["argmax"], data, mask, way, "stream", first=100)
            self.assertEqual(100 + best, int.from_bytes(answer.results[0].value, "little"))
            self.assertEqual(struct.pack("<i", values[best]), answer.results[0].at)

    def test_large(self):
        """Longer than the credit, than a slab and than what the loop folds."""
        n = 3 << 20
        tile = plain("f32", 1 << 12)
        data = tile * (n >> 12)
        mask = Mask([(i >> 12) % 2 == 0 for i in range(n)], True, 9)
        once = Mask([True] * (n >> 1))
        wanted = expect_all(["sum", "max"], "f32", tile)[1]
        for way, mask_way in itertools.product(("stream", "unknown", "descriptor", "sealed"), self.MASK_WAYS):
            with self.subTest((way, mask_way)):
                answer = self.ask("f32", ["sum", "max"], data, mask, way, mask_way)
                total = self.conn.stream("f32", ["sum"], data[:2 * n])
                self.assertEqual(len(once.keeps), answer.count)
                self.assertEqual([total.keys()[0], wanted], answer.keys())

    def test_along_axes(self):
        for shape in ((30, 50, 1), (1, 40, 37), (7, 11, 13), (2, 0, 5), (3, 1, 4), (1, 5, 20000)):
            outer, n, inner = shape
            count = outer * n * inner
            data = plain("f64", count)
            for form in self.r.sample(FORMS, 3):
                mask = random_mask(self.r, count, form)
                kept = [[outer_ * n * inner + k * inner + i for k in range(n) if mask.keeps[outer_ * n * inner + k * inner + i]]
                        for outer_ in range(outer) for i in range(inner)]
                rows = [b"".join(data[8 * e:8 * e + 8] for e in elements) for elements in kept]
                for way in self.r.sample(self.WAYS, 2):
                    with self.subTest((shape, form, way)):
                        ops = ["sum", "count", "max"]
                        answer = self.ask("f64", ops, data, mask, way, self.r.choice(self.MASK_WAYS), axis=shape, statuses=True)
                        self.assertIsNone(answer.status)
                        self.assertEqual(count, answer.count)
                        wanted = [expect_all(ops, "f64", row) for row in rows] if count < 5000 else None
                        for op in range(3):
                            values = answer.array(op, 8, outer * inner)
                            if not wanted:
                                continue
                            statuses = answer.statuses_of(op, outer * inner)
                            for i, row in enumerate(wanted):
                                if row[op][1]:
                                    self.assertEqual(row[op][1], statuses[i])
                                else:
                                    self.assertEqual(row[op][3], values[8 * i:8 * i + 8].hex())

    def test_partials(self):
        data = plain("f32", 9000)
        mask = random_mask(self.r, 9000, (True, 1, False), "half")
        halves = [self.ask("f32", ["sum", "max"], data[4 * at:4 * at + 18000], Mask(mask.keeps[at:at + 4500], *form), way, "stream",
                           partial=True, unplaced=True).partial
                  for at, form, way in ((0, (False, 0, True), "descriptor"), (4500, (True, 7, False), "stream"))]
        self.assertEqual(expect_all(["sum", "max"], "f32", mask.of(data, 4)), self.conn.merge(["sum", "max"], halves).keys())
        placed = self.ask("f32", ["sum"], data, mask, "stream", "stream", partial=True)
        self.assert_sentence(placed.status, INVALID_ARGUMENT, "mask", "unplaced")

    def test_written(self):
        """The answers go to a region, and the statuses beside them."""
        data = plain("f32", 60 * 100)
        mask = Mask([i >= 300 and i % 7 < 3 for i in range(6000)])
        out = self.memfd(bytes(480))
        self.assertEqual(480, self.conn.register(9, out.fileno(), writable=True))
        for way in ("descriptor", "sealed", "stream"):
            answer = self.ask("f32", ["sum"], data, mask, way, "memfd", axis=(60, 100, 1), outputs=((0, 9, 0),))
            self.assertIsNone(answer.status)
            wanted = b"".join(bytes.fromhex(expect("sum", "f32", Mask(mask.keeps[i:i + 100]).of(data[4 * i:4 * i + 400], 4))[3])
                              for i in range(0, 6000, 100))
            self.assertEqual(wanted, os.pread(out.fileno(), 480, 0))

    def test_a_region_that_opens(self):
        """Its mask comes before it is open: all in one write."""
        data = plain("f32", 5000)
        for form in FORMS:
            mask = random_mask(self.r, 5000, form)
            f = self.memfd(data)
            with self.daemon.connect() as c:
                opening, stream = c.open_stream(), c.open_stream()
                c.send(frame(CALL, opening, call_message(register=register_message(3, descriptor_region())), END, 1) +
                       c.call_frame(stream, "f32", OPS, region_input(3), mask=mask.message()) +
                       frame(DATA, stream, mask.bytes[:99]) + frame(DATA, stream, mask.bytes[99:]) + frame(DATA, stream, b"", END), [f.fileno()])
                self.assertEqual(20000, c.registered(opening))
                answer = c.wait(stream)
                self.assertIsNone(answer.status)
                self.assertEqual(expect_all(OPS, "f32", mask.of(data, 4)), answer.keys())

    def test_feature(self):
        c = self.connect(hello=False)
        c.send(frame(HELLO, 0, hello_message(features=("mask", "stride"))))
        self.assertEqual([b"mask"], [bytes(name) for name in c.greet()["features"]])
        c.close()


class Refusals(MasksTest):
    def refuse(self, code, *words, mask, source=None, dtype="f32", passed=(), flags=0, data=None, **options):
        stream = self.conn.open_stream()
        source = stream_input(40) if source is None else source
        batch = self.conn.call_frame(stream, dtype, ["sum"], source, flags=flags, descriptors=len(passed), mask=mask, **options)
        self.conn.send(batch, list(passed))
        if data is not None:
            self.conn.send(frame(DATA, stream, data, END))
        self.assert_sentence(self.conn.wait(stream).status, code, *words)

    def test_what_is_wrong_with_the_message(self):
        good = beside_message(10)
        for mask in (b"", uint_field(5, 10), uint_field(1, 0) + uint_field(5, 10), beside_message(10, 0),
                     good + uint_field(2, 1), good + uint_field(3, 1), uint_field(2, 1) + uint_field(3, 1)):
            self.refuse(INVALID_ARGUMENT, "Mask", "one of stream, file_descriptor and region", mask=mask)
        self.refuse(INVALID_ARGUMENT, "offset", mask=mask_message(beside_message(10, "stream", 4)))
        for count, first in ((2**64 - 1, 0), (10, 2**64 - 10), (2**63, 2**63), (2**64 - 8, 1), (2**64 - 1, 2**64 - 1)):
            for bits in (False, True):
                self.refuse(INVALID_ARGUMENT, "2^64", mask=mask_message(beside_message(count), bits, first))
        for count in (2**63, 2**62, 2**61):
            self.refuse(INVALID_ARGUMENT, "more than any input", mask=mask_message(beside_message(count)))
            self.refuse(INVALID_ARGUMENT, "more than any input", mask=mask_message(beside_message(count)), source=stream_input(None))
        self.refuse(UNIMPLEMENTED, "Mask has field 9", mask=mask_message(good) + uint_field(9, 1))
        self.refuse(INVALID_ARGUMENT, "max_input_bytes", mask=mask_message(beside_message(10), False, 2**51))

    def test_lengths(self):
        for count in (0, 9, 11, 2**40):
            self.refuse(INVALID_ARGUMENT, "mask", str(count), "10", mask=mask_message(beside_message(count)))
            self.refuse(INVALID_ARGUMENT, "mask", str(count), mask=mask_message(beside_message(count)), axis=(2, 5, 1))
        mask = mask_message(beside_message(10))
        for size in (0, 36, 41, 44):
            self.refuse(INVALID_ARGUMENT, "mask", "10", mask=mask, source=stream_input(None), data=bytes(10 + size))
        f = self.memfd(bytes(44))
        for ways in ({"source": descriptor_input(), "passed": [f.fileno()]}, {"source": region_input(1)}):
            if "passed" not in ways:
                self.conn.register(1, f.fileno())
            self.refuse(INVALID_ARGUMENT, "mask", "10", "11", mask=mask, data=bytes(10), **ways)
        self.conn.unregister(1)

    def test_data(self):
        mask = mask_message(beside_message(10))
        for data in (b"", bytes(9)):
            self.refuse(DATA_LOSS, "mask", "10", str(len(data)), mask=mask, data=data)
        self.refuse(DATA_LOSS, "40 were declared", mask=mask, data=bytes(49))
        self.refuse(DATA_LOSS, "mask", mask=mask, flags=END)
        f = self.memfd(bytes(40))
        self.refuse(DATA_LOSS, "mask", mask=mask, source=descriptor_input(), passed=[f.fileno()], data=bytes(9))
        self.refuse(INVALID_ARGUMENT, "more came", mask=mask, source=descriptor_input(), passed=[f.fileno()], data=bytes(11))
        self.refuse(INVALID_ARGUMENT, "more bytes came", mask=mask, data=bytes(51))

    def test_passed(self):
        f, small = self.memfd(bytes(40)), self.memfd(bytes(9))
        mask = mask_message(beside_message(10, "file_descriptor"))
        self.refuse(INVALID_ARGUMENT, "descriptors: 0 came", "takes 1", mask=mask)
        self.refuse(INVALID_ARGUMENT, "descriptors: 2 came", "takes 1", mask=mask, passed=[f.fileno()] * 2)
        self.refuse(INVALID_ARGUMENT, "descriptors: 1 came", "takes 2", mask=mask, passed=[f.fileno()], source=descriptor_input())
        self.refuse(INVALID_ARGUMENT, "mask", "end beyond", mask=mask, passed=[small.fileno()])
        self.refuse(INVALID_ARGUMENT, "mask", "beyond", mask=mask_message(beside_message(10, "file_descriptor", 2**63)), passed=[f.fileno()])
        for what in ("/", "/dev/null"):
            d = os.open(what, os.O_RDONLY)
            self.refuse(INVALID_ARGUMENT, "descriptor", mask=mask, passed=[d])
            os.close(d)
        self.refuse(NOT_FOUND, "mask", "region 5", mask=mask_message(beside_message(10, 5)))
        self.conn.register(5, small.fileno())
        self.refuse(INVALID_ARGUMENT, "mask", "end beyond", mask=mask_message(beside_message(10, 5)))
        self.refuse(INVALID_ARGUMENT, "mask", "beyond", mask=mask_message(beside_message(1, 5, 2**64 - 1)), source=stream_input(4))
        self.conn.unregister(5)

    def test_what_goes_with_no_mask(self):
        mask = mask_message(beside_message(10))
        self.refuse(INVALID_ARGUMENT, "kernel", "mask", mask=mask, kernel="v7_shuffle")
        f = self.memfd(bytes(40))
        self.conn.register(1, f.fileno())
        pieces = bytes_field(4, bytes_field(1, uint_field(1, 1) + uint_field(3, 10)))
        self.refuse(INVALID_ARGUMENT, "mask", "several regions", mask=mask, source=pieces)
        self.conn.unregister(1)
        stream = self.conn.open_stream()
        self.conn.send(self.conn.call_frame(stream, "f32", ["digest"], stream_input(40), mask=mask))
        self.assert_sentence(self.conn.wait(stream).status, INVALID_ARGUMENT, "digest", "mask")

    test_every_way = test_every_type = test_indices_are_the_array_s = test_large = test_along_axes = None
    test_partials = test_written = test_feature = test_a_region_that_opens = None


class LibraryTest(LibraryProgram, DaemonTest):
    OF_LIBRARY = "test_client_masked"


class Limits(DaemonTest):
    OPTIONS = {"cpu_workers": 1, "max_state_bytes_per_connection": 1 << 20, "max_state_bytes": 8 << 20, "max_bytes_in_flight": 64 << 20}

    def test_what_a_mask_holds_is_counted(self):
        c = self.connect()
        n = (1 << 20) + 1
        stream = c.start_stream("u8", ["sum"], n, mask=mask_message(beside_message(n)))
        self.assert_sentence(c.wait(stream).status, RESOURCE_EXHAUSTED, "max_state_bytes_per_connection", str(n), str(1 << 20))
        n = 1 << 20
        held = c.start_stream("u8", ["sum"], n, mask=mask_message(beside_message(n)))
        other = c.start_stream("u8", ["sum"], 8, mask=mask_message(beside_message(8)))
        self.assert_sentence(c.wait(other).status, RESOURCE_EXHAUSTED, "max_state_bytes_per_connection")
        info = c.info()
        self.assertEqual(n, info["counters"]["state_bytes"])
        own, = (user for user in info["users"] if user["own"])
        self.assertEqual((n, 2 * n), (own["used"]["state_bytes"], own["used"]["bytes"]))
        c.send_array(held, bytes([1, 0] * (n // 2)) + bytes([3]) * n)
        self.assertEqual(3 * n // 2, int.from_bytes(c.wait(held).results[0].value, "little"))
        self.assertEqual(0, c.info()["counters"]["state_bytes"])

    def test_who_leaves_holds_nothing(self):
        """At any moment: cancelled, out of time, or gone."""
        n = 1 << 19
        mask = mask_message(beside_message(n))
        f = self.memfd(bytes(n))
        for sent in (0, 1, n - 1, n, n + 1):
            for how in ("cancel", "timeout", "leave"):
                for passed in ([], [f.fileno()]):
                    c = self.connect()
                    stream = c.open_stream()
                    source = descriptor_input() if passed else stream_input(n)
                    c.send(c.call_frame(stream, "u8", ["sum"], source, mask=mask, descriptors=len(passed),
                                        timeout_ms=20 if how == "timeout" else 0), passed)
                    done = sent > n - (len(passed) > 0)
                    if sent and not (passed and sent > n):
                        c.send(frame(DATA, stream, bytes(sent)))
                    if how == "cancel":
                        c.send(frame(CANCEL, stream))
                    if how == "leave":
                        c.close()
                        continue
                    status = c.wait(stream).status
                    if not (done and status is None):
                        self.assertIn(status.code, (1, DEADLINE_EXCEEDED))
                    c.close()
        self.daemon.check_returned(self)

    def test_files_that_are_cut(self):
        c = self.connect()
        n = 1 << 19
        for way in ("memfd", "file"):
            f = getattr(self, way)(bytes(n))
            c.register(1, f.fileno())
            os.ftruncate(f.fileno(), n - 1)
            stream = c.start_stream("u8", ["sum"], n, mask=mask_message(beside_message(n, 1)))
            self.assert_sentence(c.wait(stream).status, DATA_LOSS, "mask")
            self.assertIsNone(c.unregister(1))


if __name__ == "__main__":
    print("seed", SEED)
    main()
