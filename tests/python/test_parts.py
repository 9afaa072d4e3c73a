"""Partials: arrays cut at random and merged in any order give the bits of the whole; partials travel as bytes and by pickle."""
import os
import pickle
import random
import tempfile
import unittest

import numpy
from support import OPS, WHOLE, Case, array_of, arrays, cured, oracle


class Cuts(Case):
    pass


def add(dtype):
    def test(self):
        r = random.Random(dtype)
        size = oracle.SIZES[dtype]
        ops = [op for op in OPS if not (dtype in oracle.FLOATS and (op == "prod" or op.startswith("bit_")))]
        for _ in range(4):
            raw = arrays.make(r, dtype)[1]
            n = len(raw) // size
            cuts = sorted(r.randint(0, n) for _ in range(r.randint(0, 6)))
            parts = [cured.partial(array_of(dtype, raw[a * size:b * size]), ops, first=a)
                     for a, b in zip([0] + cuts, cuts + [n])]
            r.shuffle(parts)
            merged = cured.merge(parts)
            self.assertEqual((n, dtype), (merged.count, merged.dtype))
            self.assertEqual(bytes(cured.partial(array_of(dtype, raw), ops)), bytes(merged))
            self.assert_answers(cured.reduce(array_of(dtype, raw), ops), merged.finish(ops), ops)

    setattr(Cuts, "test_%s" % dtype, test)


for dtype in oracle.DTYPES:
    add(dtype)


class Together(Case):
    """reduce_parts: arrays in any memory, as one."""

    def test_parts_are_one_array(self):
        r = random.Random(5)
        for dtype in ("f4", "<i8", "u1"):
            a = numpy.array([r.randrange(100) for _ in range(5000)], dtype)
            cuts = sorted(r.randint(0, 5000) for _ in range(5))
            parts = numpy.split(a, cuts)
            parts[1] = bytes(parts[1]) if dtype == "u1" else parts[1]
            ops = ["sum", "argmax", "min", "std", "count"]
            self.assertEqual(dict(cured.reduce(a, ops)), dict(cured.reduce_parts(parts, ops)))
            with cured.Client("embedded:") as client:
                self.assertEqual(cured.std(a, ddof=1), cured.reduce_parts(parts, ["std"], ddof=1, client=client).std)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.npy")
            numpy.save(path, numpy.arange(12.0).reshape(3, 4))
            got = cured.reduce_parts([cured.file(path), numpy.array([99.0]), cured.file(path)], "sum,argmax")
            self.assertEqual({"sum": 231.0, "argmax": 12}, dict(got))
        self.assertEqual(3.0, cured.reduce_parts([numpy.ones(1), numpy.ones(2)], "sum", first=None).sum)
        with self.assertRaises(ValueError):
            cured.reduce_parts([], "sum")
        with self.assertRaises(ValueError):
            cured.reduce_parts([numpy.ones(1, "f4"), numpy.ones(1, "f8")], "sum")


class Many(Case):
    """More parts than a partial may have gaps (1,024), in an order that would leave most of them."""

    def test_every_other_part_first(self):
        a = numpy.arange(5000.0)
        parts = [cured.partial(a[i:i + 1], "sum,argmax", first=i) for i in range(5000)]
        wanted = cured.partial(a, "sum,argmax")
        for some in (parts[::2] + parts[1::2], random.Random(3).sample(parts, 5000)):
            self.assertEqual(wanted, cured.merge(some))
        with self.assertRaisesRegex(cured.Error, "more than 1024 gaps"):
            cured.merge(parts[::2])
        with self.assertRaisesRegex(ValueError, r"partials\[1\]: elements from 7 on are in two of them"):
            cured.merge([cured.partial(a[:9], "sum"), cured.partial(a[:3], "sum", first=7)])
        with self.assertRaisesRegex(ValueError, r"partials\[0\]: elements from 7 on are in two of them"):
            cured.merge([cured.partial(a[:3], "sum", first=7), cured.partial(a[:9], "sum")])

    def test_products(self):
        """Of blocks of 4,096, of which 128 nodes may lie apart."""
        a = numpy.random.default_rng(3).uniform(0.99, 1.01, (300, 4096))
        parts = [cured.partial(row, "prod", first=4096 * i) for i, row in enumerate(a)]
        self.assertEqual(cured.prod(a), cured.merge(parts[::2] + parts[1::2]).finish("prod").prod)


class Unplaced(Case):
    """Partials without a position: shuffled chunks of every type give the bits of the whole."""


def add_unplaced(dtype):
    def test(self):
        r = random.Random("unplaced " + dtype)
        size = oracle.SIZES[dtype]
        ops = [op for op in OPS if not op.startswith("arg") and op not in WHOLE and not
               (dtype in oracle.FLOATS and (op == "prod" or op.startswith("bit_")))]
        for _ in range(3):
            raw = arrays.make(r, dtype)[1]
            n = len(raw) // size
            elements = [raw[i * size:(i + 1) * size] for i in range(n)]
            r.shuffle(elements)
            cuts = sorted(r.randint(0, n) for _ in range(r.randint(0, 5)))
            parts = [cured.partial(array_of(dtype, b"".join(elements[a:b])), ops, first=None)
                     for a, b in zip([0] + cuts, cuts + [n])]
            merged = cured.merge(parts)
            self.assertEqual(bytes(cured.partial(array_of(dtype, raw), ops, first=None)), bytes(merged))
            self.assertEqual(2, bytes(merged)[2])
            self.assert_answers(cured.reduce(array_of(dtype, raw), ops), merged.finish(ops), ops)

    setattr(Unplaced, "test_%s" % dtype, test)


for dtype in oracle.DTYPES:
    add_unplaced(dtype)


class UnplacedRules(Case):
    def test_constant_size(self):
        p = cured.partial(b"\1", ["sum", "max"], first=None)
        merged = cured.merge([p] * 5000)
        self.assertEqual((5000, len(bytes(p))), (merged.count, len(bytes(merged))))
        self.assertEqual((5000, 1), tuple(merged.finish("sum,max").values()))
        self.assertEqual(p, cured.Partial(bytes(p)))

    def test_refused(self):
        unplaced, placed = (cured.partial(b"12", "min,max", first=first) for first in (None, 0))
        floats = numpy.ones(3)
        for call in (lambda: cured.merge([unplaced, placed]), lambda: cured.merge([placed, unplaced]),
                     lambda: unplaced.finish("argmin"), lambda: cured.partial(b"12", "argmax", first=None),
                     lambda: cured.partial(floats, "prod", first=None), lambda: unplaced.finish("sum")):
            with self.assertRaises(ValueError):
                call()
        self.assertEqual(6, cured.partial(b"\2\3", "prod", first=None).finish("prod").prod)

    def test_hostile_bytes(self):
        p = bytes(cured.partial(numpy.array([3, float("nan"), 5], "f4"), ["max", "count", "sum"], first=None))
        for at in range(len(p)):
            for bit in range(8):
                changed = bytearray(p)
                changed[at] ^= 1 << bit
                try:
                    q = cured.Partial(changed)
                except (ValueError, NotImplementedError):
                    continue
                self.assertEqual(bytes(changed), bytes(q))


class Partials(Case):
    def test_pickle(self):
        p = cured.partial(b"\1\2\3", ["sum", "max"])
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            q = pickle.loads(pickle.dumps(p, protocol))
            self.assertEqual((p, hash(p), 6), (q, hash(q), q.finish(["sum"]).sum))
        self.assertEqual(p, cured.Partial(bytes(p)))
        self.assertNotEqual(p, cured.partial(b"\1\2\4", ["sum", "max"]))
        self.assertIn("3 elements of u8", repr(p))

    def test_order_of_a_transposed_array(self):
        a = numpy.random.default_rng(2).standard_normal((64, 50))
        ops = ["sum", "argmax", "prod"]
        self.assertEqual(bytes(cured.partial(numpy.asfortranarray(a), ops)), bytes(cured.partial(a, ops)))

    def test_options_that_are_the_arrays(self):
        """Each is refused by its name where parts are finished: none is passed over."""
        a = numpy.arange(10, dtype="f4")
        given = {"axis": 0, "keepdims": True, "where": a > 3, "initial": 1.0, "out": numpy.zeros(()), "keys": numpy.zeros(10, "i4"), "groups": 2,
                 "drop": True, "offsets": [0, 5], "second": a, "shape": (10,), "start": (0,), "nulls": "error", "min_count": 100}
        for option, value in given.items():
            for what, call in (("finish", cured.partial(a, "sum").finish), ("reduce_parts", lambda ops, **o: cured.reduce_parts([a, a], ops, **o))):
                with self.subTest((option, what)), self.assertRaisesRegex(TypeError, "^%s: a partial is finished with dtype, ddof, nan and " % option):
                    call("sum", **{option: value})
        with self.assertRaisesRegex(TypeError, r"^second: a partial is finished with .* merge cured.partial\(a, ops, second=b\) of each part"):
            cured.reduce_parts([a, a], "dot", second=[a, a])
        for nothing in ({"axis": None}, {"keys": None}, {"nulls": "skip"}, {"min_count": 0}, {"drop": False}):
            self.assertEqual(45, cured.partial(a, "sum").finish("sum", **nothing)["sum"])

    def test_options_of_finish(self):
        p = cured.partial(numpy.array([1.0, float("nan"), 3.0]), ["sum", "var"])
        self.assertEqual(4.0, p.finish("sum", nan="skip").sum)
        self.assertEqual(2.0, p.finish(["var"], nan="skip", ddof=1).var)
        self.assertEqual(float(numpy.float32(0.1)), cured.partial(numpy.array([0.1]), "sum").finish("sum", dtype="f32").sum)

    def test_refused(self):
        a = cured.partial(b"12", "sum")
        b = cured.partial(b"12", "sum", first=1)
        for call, error in ((lambda: cured.merge([a, b]), ValueError), (lambda: cured.merge([]), ValueError),
                            (lambda: cured.merge([a, 1]), TypeError), (lambda: cured.merge(7), TypeError),
                            (lambda: a.finish("max"), ValueError), (lambda: a.finish(), TypeError),
                            (lambda: a.finish("sum", axis=0), TypeError), (lambda: a.finish("sum", first=0), TypeError),
                            (lambda: cured.Partial(b"CP"), ValueError), (lambda: cured.Partial("x"), TypeError),
                            (lambda: cured.Partial(bytes(a)[:-1]), ValueError),
                            (lambda: cured.partial(b"12", "sum", first=-1), ValueError),
                            (lambda: cured.partial(b"12", "sum", first=2**63), ValueError),
                            (lambda: cured.partial(b"12", "sum", axis=0, keepdims=True), TypeError),
                            (lambda: cured.merge([a, cured.partial(b"12", "max", first=7)]), ValueError)):
            with self.assertRaises(error):
                call()


if __name__ == "__main__":
    unittest.main()
