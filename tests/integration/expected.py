"""expected: what the daemon must answer, in the form of OpResult.key(), from the oracle in tests/oracle.

Large arrays are given as a tile and how often it is repeated, so that exact expectations stay cheap.
"""
import os
import random
import sys
from fractions import Fraction

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
import arrays  # noqa: E402
import ops as ops_table  # noqa: E402
import oracle  # noqa: E402

CODES = {"INVALID_ARGUMENT": 3, "OUT_OF_RANGE": 11}
NAN = {0: "propagate", 1: "skip"}


def any_nan(r, ops, policies=(0, 1)):
    """A policy that all of the ops take."""
    return 0 if set(ops) & set(ops_table.WHOLE) else r.choice(policies)


def as_key(op, answer):
    if answer[0] == "error":
        return (op, CODES[answer[1]])
    return (op, 0, answer[1], answer[2].hex(), answer[3].hex())


def expect(op, dtype, raw, nan=0, result_dtype=None, ddof=0, overflow=0):
    return as_key(op, oracle.answer(op, dtype, bytes(raw), NAN[nan], result_dtype or None, ddof,
                                    "wrap" if overflow else "error"))


def expect_all(ops, dtype, raw, **options):
    return [expect(op, dtype, raw, **options) for op in ops]


def sum_or_mean(op, dtype, tile, times):
    count = len(tile) // oracle.SIZES[dtype] * times
    if dtype in oracle.INTS:
        total = sum(oracle.integers(dtype, tile)) * times
        if op == "sum":
            return oracle.integer_result("sum", dtype, total, None)
        return oracle.float_result(None, oracle.rounded("f64", Fraction(total, count)))
    f = oracle.Floats(dtype, tile)
    if "nan" in f.kind or "+inf" in f.kind or "-inf" in f.kind:
        return oracle.answer("sum", dtype, tile)  # repetition changes nothing
    total = sum(f.unit) * oracle.power(f.grid) * times
    return oracle.float_result(None, oracle.rounded("f64", total if op == "sum" else total / count))


def expect_tiled(op, dtype, tile, times):
    """For tile repeated times times (at least once), of the ops that repetition leaves simple."""
    tile = bytes(tile)
    if op in ("sum", "mean"):
        return as_key(op, sum_or_mean(op, dtype, tile, times))
    kind, name, value, at = oracle.answer(op, dtype, tile)
    if op in ("count", "count_nonzero", "count_nan", "count_inf"):
        value = (int.from_bytes(value, "little") * times).to_bytes(8, "little")
    return as_key(op, (kind, name, value, at))


def array_of(r, dtype, count=None):
    """Random array bytes from the oracle's distributions; with count: exactly so many elements."""
    if count is None:
        return arrays.make(r, dtype)[1]
    size = oracle.SIZES[dtype]
    raw = b""
    while len(raw) < count * size:
        raw += arrays.make(r, dtype)[1]
    return raw[:count * size]


def plain(dtype, count, seed=1):
    """count elements without NaN or infinity, spread over positive and negative."""
    r = random.Random("%s %d %d" % (dtype, count, seed))
    if dtype in oracle.INTS:
        return r.randbytes(count * oracle.SIZES[dtype])
    kit = arrays.Kit(r, dtype)
    return arrays.pack(dtype, [kit.around(8) for _ in range(count)])
