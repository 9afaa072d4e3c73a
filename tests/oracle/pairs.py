"""What ops of two arrays answer, by integers and fractions only, as docs/NUMERICS.md ("Two arrays") says it.

    answer(op, dtype, x, y, nan="propagate", result=None)

takes both arrays' bytes and returns what oracle.answer does.
"""

from fractions import Fraction

import oracle


def numbers(dtype, raw):
    """The elements: integers and fractions as (kind, value in units)."""
    if dtype in oracle.INTS:
        return [("num", v) for v in oracle.integers(dtype, raw)], Fraction(1)
    f = oracle.Floats(dtype, raw)
    return list(zip(f.kind, f.unit)), oracle.power(f.grid)


def sign(element):
    kind, value = element
    return -1 if kind == "-inf" or value < 0 else 1 if kind == "+inf" or value > 0 else 0


def product(x, y):
    """x·y, in units of both; as IEEE 754 has it where one is no number."""
    if "nan" in (x[0], y[0]):
        return "nan", 0
    if x[0] == y[0] == "num":
        return "num", x[1] * y[1]
    return {0: "nan", 1: "+inf", -1: "-inf"}[sign(x) * sign(y)], 0


def squared_difference(x, y):
    if "nan" in (x[0], y[0]) or (x[0] != "num" and x[0] == y[0]):
        return "nan", 0
    if x[0] != "num" or y[0] != "num":
        return "+inf", 0
    return "num", (x[1] - y[1]) ** 2


def total(terms, nan):
    """The sum of terms, as one of them; without those that are no numbers, if they are skipped."""
    kinds = {kind for kind, _ in terms}
    if ("nan" in kinds and nan == "propagate") or {"+inf", "-inf"} <= kinds:
        return "nan", 0
    if "+inf" in kinds or "-inf" in kinds:
        return "+inf" if "+inf" in kinds else "-inf", 0
    return "num", sum(value for kind, value in terms if kind == "num")


def closed(dtype, result, number, unit):
    """A sum of floats, rounded."""
    kind, value = number
    result = result or "f64"
    if kind == "nan":
        return oracle.float_result(result, oracle.nan_bits(result))
    if kind != "num":
        return oracle.float_result(result, oracle.inf_bits(result, kind == "-inf"))
    return oracle.float_result(result, oracle.rounded(result, value * unit))


def average(x, y, nan):
    """The quotient of both sums, in units; a pair whose product is no number is in neither, if it is skipped."""
    pairs = [(product(a, b), b) for a, b in zip(x, y)]
    above = total([p for p, _ in pairs], nan)
    below = total([b for p, b in pairs if p[0] != "nan"], nan)
    if above[0] == "nan" or below[0] != "num" or below[1] == 0:
        return "nan", 0
    if above[0] != "num":
        return ("+inf" if sign(above) * sign(below) > 0 else "-inf"), 0
    return "num", Fraction(above[1], below[1])


def answer(op, dtype, x, y, nan="propagate", result=None):
    (a, unit), (b, _) = numbers(dtype, x), numbers(dtype, y)
    if op == "average":
        return closed(dtype, result, average(a, b, nan), unit)
    terms = [(product if op == "dot" else squared_difference)(p, q) for p, q in zip(a, b)]
    if dtype in oracle.INTS:
        return oracle.integer_result(op, dtype, sum(value for _, value in terms), result)
    return closed(dtype, result, total(terms, nan), unit * unit)
