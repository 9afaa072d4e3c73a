"""Partials: arrays cut at random and merged in any order give the bits of the whole; partials travel as bytes and by pickle."""
import pickle
import random
import unittest

import numpy
from support import OPS, Case, array_of, arrays, cured, oracle, same


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
            got, wanted = merged.finish(ops), cured.reduce(array_of(dtype, raw), ops)
            for op in ops:
                try:
                    value = wanted[op]
                except (ValueError, OverflowError) as error:
                    with self.assertRaises(type(error)):
                        got[op]
                else:
                    self.assertTrue(same(got[op], value), op)

    setattr(Cuts, "test_%s" % dtype, test)


for dtype in oracle.DTYPES:
    add(dtype)


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

    def test_masked(self):
        with self.assertRaises(TypeError):
            cured.partial(b"12", "sum", where=numpy.ones(2, "?"))


if __name__ == "__main__":
    unittest.main()
