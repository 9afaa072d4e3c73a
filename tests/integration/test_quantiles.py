"""test_quantiles: medians and quantiles by the daemon, which reads arrays several times: of DATA that it keeps, of files and regions in place,
whole and along axes, under masks, beside other ops and written into regions; what is wrong with parameters is said, and what is held is
counted and given back. Held against the oracle."""
import itertools
import os
import random
import struct
import threading
from fractions import Fraction

from beside import WAYS, Beside, BesideTest
from cured_daemon import DaemonTest, main
from cured_wire import (CANCEL, DATA, END, HELLO, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, SIZES, UNIMPLEMENTED, bytes_field, descriptor_input, frame,
                        hello_message, keys_message, beside_message, parameter_message, region_input, stream_input, uint_field)
from expected import expect, plain
import oracle  # noqa: I100: expected finds it
from test_masks import random_mask

SEED = int(os.environ.get("CURED_TEST_SEED", "33"))
METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
SHARES = (0.0, 0.1, 0.5, 1 / 3, 1.0)


def asked_of(r, count):
    """As many (share, method)."""
    return [(r.choice(SHARES + (r.random(),)), r.choice(METHODS)) for _ in range(count)]


def with_nans(dtype, n, seed=1):
    """Elements, some of which are NaNs where there are any."""
    data, size = bytearray(plain(dtype, n, seed)), SIZES[dtype]
    if dtype == "bool":
        return bytes(b & 1 for b in data)
    if dtype in oracle.FLOATS:
        for i in range(3, n, 11):
            data[i * size:(i + 1) * size] = oracle.nan_bits(dtype).to_bytes(size, "little")
    return bytes(data)


def of_tiles(dtype, tile, times, asked):
    """The bits of the answers to as many copies of finite elements."""
    numbers, found = oracle.in_order(dtype, tile)[0], []
    for share, method in asked:
        low, high, weight = oracle.between(method, Fraction(share) * (len(numbers) * times - 1))
        found.append(oracle.rounded("f64", numbers[low // times][0] * (1 - weight) + numbers[high // times][0] * weight))
    return found


class Asking(BesideTest):
    def ask_quantiles(self, dtype, data, asked, way="stream", mask=None, mask_way="stream", others=(), **options):
        """The Answer to a quantile for each asked, and then to others."""
        beside = [Beside("mask", mask.bytes, mask.message, mask_way)] if mask else []
        parameters = [parameter_message(i, share, METHODS.index(method)) for i, (share, method) in enumerate(asked)]
        return self.ask(dtype, ["quantile"] * len(asked) + list(others), data, way, beside, parameters=parameters, **options)

    def check(self, answer, dtype, data, asked, keep=None, nan="propagate"):
        size = SIZES[dtype]
        self.assertIsNone(answer.status)
        if keep is not None:
            data = b"".join(data[i * size:(i + 1) * size] for i, k in enumerate(keep) if k)
        want = [bits.to_bytes(8, "little") for bits in oracle.quantiles(dtype, data, asked, nan)]
        self.assertEqual(want, [r.value for r in answer.results[:len(asked)]])
        self.assertEqual(["f64"] * len(asked), [r.dtype for r in answer.results[:len(asked)]])


class QuantilesTest(Asking):
    def setUp(self):
        self.conn = self.connect()
        self.r = random.Random(SEED)

    def test_every_way_and_type(self):
        for (dtype, way), masked in itertools.product(itertools.product(SIZES, WAYS), (False, True)):
            for n, nan in ((0, "propagate"), (1, "skip"), (701, "skip")):
                with self.subTest((dtype, way, masked, n)):
                    data, asked = with_nans(dtype, n, n), asked_of(self.r, self.r.choice((1, 3, 32)))
                    mask = random_mask(self.r, n, (n % 2 == 0, 3, False)) if masked else None
                    answer = self.ask_quantiles(dtype, data, asked, way, mask, pieces=(1, 3, 500) if n > 1 else None,
                                                nan=1 if nan == "skip" else 0)
                    self.check(answer, dtype, data, asked, mask and mask.keeps, nan)

    def test_large(self):
        """Longer than a slab, a window and the first memory; beside other ops, which are folded once."""
        tile = plain("f64", 4099)
        data = tile * 200  # 6.5 MB
        asked = [(0.5, "linear"), (0.25, "lower"), (1.0, "linear"), (0.999, "nearest")]
        want = [b.to_bytes(8, "little") for b in of_tiles("f64", tile, 200, asked)]
        for way, pieces in ((way, pieces) for way in WAYS for pieces in (((1 << 20,), (100001,)) if way in WAYS[:2] else (None,))):
            with self.subTest((way, pieces)):
                answer = self.ask_quantiles("f64", data, asked, way, others=("max", "count", "sum"), pieces=pieces)
                self.assertIsNone(answer.status)
                self.assertEqual(want, [r.value for r in answer.results[:4]])
                self.assertEqual(len(data) // 8, answer.count)
                self.assertEqual(expect("max", "f64", tile)[3], answer.results[4].value.hex())
                self.assertEqual(len(data) // 8, int.from_bytes(answer.results[5].value, "little"))
                if way in WAYS[2:]:  # nothing is waited for: the time is that of all reads
                    queue, run, total = (answer.timing[n] for n in (1, 2, 3))
                    self.assertLess(total, 2 * (queue + run))

    def test_median(self):
        """It wants no parameter, and neither does a quantile."""
        data = with_nans("f32", 500)
        for ops in (["median"], ["quantile"], ["sum", "median", "quantile", "max"]):
            for way in WAYS:
                answer = self.ask("f32", ops, data, way, nan=1)
                self.assertIsNone(answer.status)
                want = oracle.quantiles("f32", data, [(0.5, "linear")], "skip")[0].to_bytes(8, "little")
                for op, result in zip(ops, answer.results):
                    if op in ("median", "quantile"):
                        self.assertEqual((want, 0), (result.value, result.status))
                    else:
                        self.assertEqual(expect(op, "f32", data, nan=1)[3], result.value.hex())
        narrow = self.ask("f32", ["median"], data, nan=1, result_dtype="f16")
        self.assertEqual(oracle.quantiles("f32", data, [(0.5, "linear")], "skip", "f16")[0].to_bytes(2, "little"), narrow.results[0].value)

    def test_along_an_axis(self):
        for outer, n, inner in ((40, 7, 1), (3, 500, 1), (5, 9, 13), (1, 60, 70), (700, 1, 1), (2, 0, 3), (1, 70000, 4)):
            count = outer * n * inner
            data = with_nans("f32", min(count, 5000)) if count <= 5000 else plain("f32", 5000) * (count // 5000)
            data, known = data[:4 * count], {}
            few = asked_of(self.r, 2)
            for way, masked in itertools.product(WAYS, (False, True)):
                if count > 5000 and (masked or way == "to_end"):
                    continue
                with self.subTest((outer, n, inner, way, masked)):
                    asked = asked_of(self.r, 2) if masked else few
                    mask = random_mask(self.r, count, (True, 1, True)) if masked else None
                    answer = self.ask_quantiles("f32", data, asked, way, mask, others=("count",), axis=(outer, n, inner), statuses=True)
                    self.assertIsNone(answer.status)
                    values = [answer.array(op, 8, outer * inner) for op in range(2)]
                    for i in range(0, outer * inner, max(1, outer * inner // 50)):
                        at = range(i // inner * n * inner + i % inner, (i // inner + 1) * n * inner, inner) if n else ()
                        some = b"".join(data[4 * e:4 * e + 4] for e in at if not masked or mask.keeps[e])
                        want = known.get(i) if not masked else None
                        want = want or [b.to_bytes(8, "little") for b in oracle.quantiles("f32", some, asked)]
                        if not masked:
                            known[i] = want
                        self.assertEqual(want, [v[8 * i:8 * i + 8] for v in values], i)

    def test_written(self):
        data, out = plain("f64", 6000), self.memfd(bytes(8 * 60))
        self.assertEqual(8 * 60, self.conn.register(9, out.fileno(), writable=True))
        for way in ("stream", "descriptor", "sealed"):
            answer = self.ask_quantiles("f64", data, [(0.3, "linear")], way, axis=(60, 100, 1), outputs=((0, 9, 0),))
            self.assertIsNone(answer.status)
            want = [oracle.quantiles("f64", data[800 * i:800 * (i + 1)], [(0.3, "linear")])[0] for i in range(60)]
            self.assertEqual(struct.pack("<60Q", *want), os.pread(out.fileno(), 480, 0))
        self.assertIsNone(self.conn.unregister(9))

    def test_progress_counts_all_reads(self):
        f = self.memfd(bytes(64 << 20))
        answer = self.conn.descriptor("f64", ["median"], f.fileno(), progress_ms=1)
        self.assertIsNone(answer.status)
        for folded, total in answer.progress:
            self.assertIn(total, (0, 5 * 64 << 20))
            self.assertLessEqual(folded, 5 * 64 << 20)

    def test_feature(self):
        c = self.connect(hello=False)
        c.send(frame(HELLO, 0, hello_message(features=("parameters", "stride"))))
        self.assertEqual([b"parameters"], [bytes(name) for name in c.greet()["features"]])

    def refuse(self, code, *words, ops=("quantile",), dtype="f32", source=None, passed=(), **options):
        stream = self.conn.open_stream()
        self.conn.send(self.conn.call_frame(stream, dtype, list(ops), stream_input(40) if source is None else source, descriptors=len(passed),
                                            flags=END if passed else 0, **options), list(passed))
        self.assert_sentence(self.conn.wait(stream).status, code, *words)

    def test_refusals(self):
        nan, inf = float("nan"), float("inf")
        for share in (-0.001, 1.0000001, nan, inf, -inf, 1e300):
            self.refuse(INVALID_ARGUMENT, "parameters[0]", "0 to 1", parameters=[parameter_message(0, share)])
        self.refuse(INVALID_ARGUMENT, "parameters[0].op is 1, there are 1 ops", parameters=[parameter_message(1, 0.5)])
        self.refuse(INVALID_ARGUMENT, "parameters[1].op is 0, which came before", parameters=[parameter_message(0, 0.5)] * 2)
        self.refuse(INVALID_ARGUMENT, "parameters has 33 entries, limit is 32", parameters=[parameter_message(0, 0.5)] * 33)
        self.refuse(INVALID_ARGUMENT, "parameters: 5 is no method", parameters=[parameter_message(0, 0.5, 5)])
        self.refuse(INVALID_ARGUMENT, "parameters: op sum takes none", ops=["sum", "quantile"], parameters=[parameter_message(0, 0.5)])
        self.refuse(INVALID_ARGUMENT, "parameters: op median takes none", ops=["median"], parameters=[parameter_message(0, 0.5)])
        self.refuse(INVALID_ARGUMENT, "ops names op 1 twice", ops=["quantile", "sum", "sum"], parameters=[parameter_message(0, 0.5)])
        self.refuse(INVALID_ARGUMENT, "twice", ops=["quantile", "quantile"])
        self.refuse(UNIMPLEMENTED, "Parameter has field 4", parameters=[parameter_message(0, 0.5) + uint_field(4, 1)])
        for op in ("median", "quantile"):
            self.refuse(INVALID_ARGUMENT, "partial: op %s has none" % op, ops=[op], partial=True)
            self.refuse(INVALID_ARGUMENT, "partial: op %s has none" % op, ops=[op], keys=keys_message(beside_message(10), 3), partial=True, unplaced=True)
            self.refuse(UNIMPLEMENTED, op, ops=[op], kernel="v7_shuffle")
            answer = self.conn.merge([op], [self.conn.inline("f32", ["sum"], bytes(40), partial=True).partial])
            self.assertIn("op %s" % op, answer.status.message)
        f = self.memfd(bytes(40))
        self.conn.register(1, f.fileno())
        self.refuse(INVALID_ARGUMENT, "ops: medians", "several regions", source=bytes_field(4, bytes_field(1, uint_field(1, 1) + uint_field(3, 10))))
        self.conn.unregister(1)
        for axis in ((0, 1 << 40, 1), (0, 9 << 20, 8)):  # of none
            stream = self.conn.open_stream()
            self.conn.send(self.conn.call_frame(stream, "f64", ["median", "sum"], stream_input(0), flags=END, axis=axis))
            self.assertIsNone(self.conn.wait(stream).status, axis)
        n = (64 << 20) // 4 + 1
        self.refuse(INVALID_ARGUMENT, "axis: medians and quantiles need all of a block", ops=["median"], axis=(2, n, 1), source=stream_input(8 * n))

    def test_files_that_change(self):
        """Written and cut while they are read again: some answer, or the sentence of a file that was cut."""
        f, over = self.file(bytes(3 << 20)), threading.Event()

        def change():
            r = random.Random(SEED)
            while not over.is_set():
                os.pwrite(f.fileno(), r.randbytes(1 << 16), r.randrange(3 << 20))
                os.ftruncate(f.fileno(), r.choice((1 << 20, 3 << 20)))
        thread = threading.Thread(target=change)
        thread.start()
        for i in range(100):
            self.conn.descriptor("f64", ["median", "max"], f.fileno(), axis=(16, 1 << 10, 8) if i % 3 == 0 else None)
        over.set()
        thread.join()
        self.assertIsNone(self.conn.inline("f32", ["count"], bytes(40)).status)


class Limits(Asking):
    OPTIONS = {"cpu_workers": 1, "max_state_bytes_per_connection": 1 << 20, "max_state_bytes": 8 << 20}

    def test_what_is_kept_is_counted(self):
        self.conn = c = self.connect()
        n = 1 << 20
        for known in (True, False):
            stream = c.start_stream("u8", ["median"], n if known else None)
            c.send_array(stream, bytes(n))
            self.assert_sentence(c.wait(stream).status, RESOURCE_EXHAUSTED, "max_state_bytes_per_connection", str(1 << 20))
        f = self.memfd(bytes(range(256)) * (n >> 8))
        self.assertEqual(struct.pack("<d", 127.5), c.descriptor("u8", ["median"], f.fileno()).results[0].value)
        held = c.start_stream("u8", ["median"], n // 2)
        c.send_data(held, bytes(100))
        self.assertEqual(n // 2, c.info()["counters"]["state_bytes"])
        c.send_array(held, bytes(n // 2 - 100))
        self.assertEqual(bytes(8), c.wait(held).results[0].value)
        many = c.start_stream("u8", ["quantile"] * 8, 8, parameters=[parameter_message(i, i / 8) for i in range(8)])
        c.send_array(many, bytes(8))
        self.assert_sentence(c.wait(many).status, RESOURCE_EXHAUSTED, "max_state_bytes_per_connection")
        self.assertEqual(0, c.info()["counters"]["state_bytes"])
        c.close()
        self.daemon.check_returned(self)

    def test_who_leaves_holds_nothing(self):
        n = 1 << 19
        f = self.memfd(bytes(1 << 24))
        for sent in (0, 1, n - 1, n):
            for how in ("cancel", "leave"):
                for passed in ([], [f.fileno()]):
                    c = self.connect()
                    stream = c.open_stream()
                    c.send(c.call_frame(stream, "u8" if not passed else "f64", ["median"], descriptor_input() if passed else stream_input(n),
                                        descriptors=len(passed), flags=END if passed else 0), passed)
                    if sent and not passed:
                        c.send(frame(DATA, stream, bytes(sent)))
                    if how == "cancel":
                        c.send(frame(CANCEL, stream))
                        c.wait(stream)
                    c.close()
        c = self.connect()
        self.assertEqual(1 << 24, c.register(1, f.fileno()))
        for _ in range(20):
            stream = c.open_stream()
            c.send(c.call_frame(stream, "f64", ["median"], region_input(1), flags=END) + frame(CANCEL, stream))
            c.wait(stream)
        self.assertIsNone(c.unregister(1))
        c.close()
        self.daemon.check_returned(self)


if __name__ == "__main__":
    print("seed", SEED)
    main()
