#!/usr/bin/env python3
"""Property run of cured_sum.c: random arrays, cut over random ranks, on every instruction set and in every float state, checked bit by bit
against the oracle, and against libcured's answer for the whole.

    sum_property.py DRIVER                        the run for CI
    sum_property.py DRIVER --cases 100000         a longer one; --seed N starts elsewhere, --jobs N processes
    sum_property.py DRIVER --seed N --replay K    one case again, with what it held
"""

import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
import arrays  # noqa: E402
import cases  # noqa: E402
import oracle  # noqa: E402
import pairs  # noqa: E402
from axis_property import fill  # noqa: E402
from pairs_property import near  # noqa: E402

BATCH = 100
OPS = {"sum": 1, "sumsq": 2, "dot": 3}  # cured_sum_op
TYPES = {"f32": 12, "f64": 13}  # cured_sum_type


def make_case(seed, number):
    r = random.Random("sum/%d/%d" % (seed, number))
    dtype, op = r.choice(["f32", "f64", "f64"]), r.choice(["sum", "sum", "sumsq", "dot"])
    name, raw = arrays.make(r, dtype)
    if r.random() < 0.02:  # several blocks
        name, raw = fill(r, dtype, r.randint(4000, 20000))
    count = len(raw) // oracle.SIZES[dtype]
    second, other = ("near", near(r, dtype, raw)) if r.random() < 0.3 or count == 0 else fill(r, dtype, count)
    return {"dtype": dtype, "name": name, "second": second, "raw": raw, "other": other, "op": op, "count": count,
            "order": r.getrandbits(63)}


def pack_case(c):
    head = struct.pack("<4I2Q", 0x6d757363, OPS[c["op"]], TYPES[c["dtype"]], 0, c["count"], c["order"])
    return head + c["raw"] + c["other"]


def check(c, lines):
    wrong = [line for line in lines if line.startswith("!")]
    lines = [line for line in lines if not line.startswith("!")]
    if c["op"] == "dot":
        want = pairs.answer("dot", c["dtype"], c["raw"], c["other"])
    else:
        want = oracle.answer(c["op"], c["dtype"], c["raw"])
    bits = "%016x" % struct.unpack("<Q", want[2])
    if lines != [bits]:
        wrong.append("got %s, not %s" % (lines, bits))
    return wrong


def describe(c):
    return "%s of %d %s %s, with %s" % (c["op"], c["count"], c["dtype"], c["name"], c["second"])


if __name__ == "__main__":
    cases.main("sum property", __name__, 4000)
