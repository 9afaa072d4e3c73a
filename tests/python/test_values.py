"""Values: every op of every type, against the oracle of fractions: whole arrays, NaN rules, result types, ddof, overflow; alone
and in one pass with others."""
import random
import unittest

from support import OPS, WHOLE, Case, array_of, arrays, cured, oracle, python_value, same


def cases(seed, dtype, count):
    r = random.Random("%s %s" % (seed, dtype))
    for _ in range(count):
        name, raw = arrays.make(r, dtype)
        yield name, raw[:2000 * oracle.SIZES[dtype]]
    yield "nothing", b""
    yield "one", raw[:oracle.SIZES[dtype]] or bytes(oracle.SIZES[dtype])


def has(op, dtype):
    return not (op.startswith("bit_") and dtype in oracle.FLOATS)


class Values(Case):
    pass


def add(op, dtype):
    def test(self):
        for name, raw in cases(op, dtype, 4):
            a = array_of(dtype, raw)
            self.check_oracle(lambda: getattr(cured, op)(a), op, dtype, raw, name)
            if dtype in oracle.FLOATS and op not in WHOLE:
                self.check_oracle(lambda: getattr(cured, op)(a, nan="skip"), op, dtype, raw, name, nan="skip")
            if op in ("var", "std"):
                self.check_oracle(lambda: getattr(cured, op)(a, ddof=1), op, dtype, raw, name, ddof=1)
            if op == "prod" and dtype in oracle.INTS:
                self.check_oracle(lambda: cured.prod(a, overflow="wrap"), op, dtype, raw, name, overflow="wrap")

    def refusal(self):
        with self.assertRaises(ValueError):
            getattr(cured, op)(array_of(dtype, bytes(16)))

    setattr(Values, "test_%s_of_%s" % (op, dtype), test if has(op, dtype) else refusal)


for op in OPS:
    for dtype in oracle.DTYPES:
        add(op, dtype)


class Together(Case):
    """All ops in one pass give what each gives alone."""


def add_together(dtype):
    def test(self):
        ops = [op for op in OPS if has(op, dtype)]
        for name, raw in cases("together", dtype, 3):
            a = array_of(dtype, raw)
            result = cured.reduce(a, ops)
            self.assertEqual(ops, list(result))
            for op in ops:
                try:
                    alone = getattr(cured, op)(a)
                except (ValueError, OverflowError) as error:
                    with self.assertRaises(type(error)):
                        getattr(result, op)
                else:
                    self.assert_same(result[op], alone, "%s of %s %s" % (op, dtype, name))

    setattr(Together, "test_%s" % dtype, test)


for dtype in oracle.DTYPES:
    add_together(dtype)


class ResultTypes(Case):
    def test_floats_round_once(self):
        for dtype in ("f16", "bf16", "f32", "f64"):
            for name, raw in cases("types", dtype, 3):
                for result in ("f16", "bf16", "f32", "f64"):
                    for op in ("sum", "mean", "norm2"):
                        self.check_oracle(lambda: getattr(cured, op)(array_of(dtype, raw), dtype=result), op, dtype, raw, name,
                                          result=result)

    def test_integers_to_any_type(self):
        for dtype in oracle.INTS:
            for name, raw in cases("types", dtype, 2):
                for result in ("i8", "u16", "i64", "u64", "f16", "f32"):
                    self.check_oracle(lambda: cured.sum(array_of(dtype, raw), dtype=result), "sum", dtype, raw, name,
                                      result=result)

    def test_sum_never_wraps(self):
        import numpy
        a = numpy.full(1000, 2**64 - 1, "u8")
        self.assertEqual(1000 * (2**64 - 1), cured.sum(a))
        self.assertEqual(-1000 * 2**63, cured.sum(numpy.full(1000, -2**63, "i8")))

    def test_names_of_types(self):
        import numpy
        a = numpy.array([1, 2, 2**30], "i4")
        for given in ("f32", "float32", "<f4", "single", numpy.float32, numpy.dtype("f4")):
            self.assertEqual(2.0**30 + 0, cured.sum(a, dtype=given))
        self.assertEqual(2**30 + 3, cured.sum(a, dtype=float))
        self.assertEqual(2**30 + 3, cured.sum(a, dtype=int))

    def test_unknown_types(self):
        for given in ("f33", "complex64", object, 7):
            with self.assertRaises(TypeError):
                cured.sum(b"123", dtype=given)

    def test_integer_type_of_a_float(self):
        import numpy
        with self.assertRaises(ValueError):
            cured.sum(numpy.ones(3), dtype="i64")

    def test_python_types(self):
        import numpy
        r = cured.reduce(numpy.array([1.5, 2.5], "f4"), ["sum", "min", "argmax", "count", "any"])
        self.assertEqual([float, float, int, int, bool], [type(x) for x in r.values()])
        self.assertEqual([int, int, float], [type(x) for x in cured.reduce(b"12", ["sum", "min", "mean"]).values()])


class Results(Case):
    def test_describe(self):
        import numpy
        a = numpy.array([3, 1, float("nan"), 2], "f8")
        d = cured.describe(a, nan="skip")
        self.assertEqual("count count_nan min max argmin argmax sum mean std".split(), list(d))
        self.assertEqual((3, 1, 1.0, 3.0, 1, 0, 6.0, 2.0), tuple(d.values())[:8])

    def test_describe_of_nothing(self):
        d = cured.describe(b"")
        self.assertEqual((0, 0), (d.count, d.sum))
        for name in ("min", "argmax"):
            with self.assertRaises(ValueError):
                getattr(d, name)
            with self.assertRaises(ValueError):
                d[name]
        self.assertIn("min=<", repr(d))

    def test_result_is_a_mapping(self):
        import pickle
        r = cured.reduce(b"\1\2", "sum,max")
        self.assertEqual({"sum": 3, "max": 2}, dict(r))
        self.assertEqual(r, pickle.loads(pickle.dumps(r)))
        with self.assertRaises(AttributeError):
            r.min
        with self.assertRaises(KeyError):
            r["min"]
        self.assertEqual(["sum", "max"], dir(r) and list(r))

    def test_answers_by_name(self):
        """Each op is a property of the type, which is quick, and says so where it was not asked for; no other name is one."""
        for op in OPS:
            r = cured.Result({op: op + "!"})
            self.assertEqual((op + "!", [op], True), (getattr(r, op), dir(r), isinstance(getattr(cured.Result, op), property)))
            other = cured.Result({"another": 1, op: ValueError("none", 3)})
            self.assertEqual((1, False), (other.another, hasattr(other, "_x")))
            with self.assertRaisesRegex(AttributeError, "^op '%s' was not asked for$" % op):
                getattr(cured.Result({}), op)
            with self.assertRaises(ValueError) as raised:
                getattr(other, op)
            self.assertEqual(("none", 3), raised.exception.args)
            with self.assertRaises(AttributeError):
                setattr(r, op, 1)
        with self.assertRaisesRegex(AttributeError, "^op 'keepdims' was not asked for$"):
            r.keepdims

    def test_bad_ops(self):
        for ops in ([], ["summ"], ["sum", "sum"], "sum,", [1], 7, ["sum"] * 40):
            with self.assertRaises((ValueError, TypeError)):
                cured.reduce(b"12", ops)

    def test_bad_arguments(self):
        for call in (lambda: cured.sum(), lambda: cured.sum(b"", 0, 1), lambda: cured.sum(b"", depth=1),
                     lambda: cured.reduce(b""), lambda: cured.describe(b"", 0), lambda: cured.sum(b"", client=3),
                     lambda: cured.partial(b"", "sum", 0), lambda: cured.sum(b"", first=0)):
            with self.assertRaises(TypeError):
                call()
        for call in (lambda: cured.sum(b"", nan="no"), lambda: cured.prod(b"", overflow="?"), lambda: cured.sum(b"", ddof=1),
                     lambda: cured.sum(b"", overflow="wrap")):
            with self.assertRaises(ValueError):
                call()

    def test_values_of_the_oracle_are_understood(self):
        self.assertTrue(same(python_value("f16", b"\0\x80"), -0.0))
        self.assertFalse(same(0.0, -0.0))


if __name__ == "__main__":
    unittest.main()
