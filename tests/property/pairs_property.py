#!/usr/bin/env python3
"""Property run of ops of two arrays: random arrays of any shape, with and without a mask, by the folds of every instruction set, with
and without the fast way, by states and partials in pieces, by offsets, and by libcured, checked bit by bit against the oracle.

    pairs_property.py DRIVER                        the run for CI
    pairs_property.py DRIVER --cases 100000         a longer one; --seed N starts elsewhere, --jobs N processes
    pairs_property.py DRIVER --seed N --replay K    one case again, with what it held
"""

import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
import arrays  # noqa: E402
import cases  # noqa: E402
import ops as ops_table  # noqa: E402
import oracle  # noqa: E402
import pairs  # noqa: E402
from axis_property import fill, make_shape  # noqa: E402
from property import DTYPE_IDS, ONLY  # noqa: E402

BATCH = 50
OPS = list(ops_table.PAIRS)
STATUSES = {"OUT_OF_RANGE": 11}  # proto/status.def


def elements(dtype, raw):
    size = oracle.SIZES[dtype]
    return [raw[i:i + size] for i in range(0, len(raw), size)]


def near(r, dtype, raw):
    """The array again, with some last bits and signs turned, so that differences are small and products cancel."""
    sign = 0x80 if dtype in oracle.FLOATS else 0
    rate = r.choice([0, 0.01, 0.5])
    out = []
    for e in elements(dtype, raw):
        if dtype != "bool" and r.random() < rate:
            e = bytes([e[0] ^ r.choice([1, 3])]) + e[1:]
        if sign and r.random() < rate / 2:
            e = e[:-1] + bytes([e[-1] ^ sign])
        out.append(e)
    return b"".join(out)


def make_case(seed, number):
    r = random.Random("pairs/%d/%d" % (seed, number))
    dtype = r.choice(ONLY or oracle.DTYPES + ["f32", "f64", "f32", "f64", "f64"])
    if r.random() < 0.5:
        name, raw = arrays.make(r, dtype)
        outer, n, inner = 1, len(raw) // oracle.SIZES[dtype], 1
    else:
        outer, n, inner = make_shape(r)
        name, raw = fill(r, dtype, outer * n * inner)
    count = outer * n * inner
    if r.random() < 0.3:
        second, other = "near", near(r, dtype, raw)
    else:
        second, other = fill(r, dtype, count)
    is_float = dtype in oracle.FLOATS
    ops = r.sample(OPS, r.randint(1, len(OPS)))
    result = None
    if r.random() < 0.3:
        result = r.choice(["f16", "bf16", "f32", "f64"])
        if not is_float and "average" not in ops and r.random() < 0.5:
            result = r.choice(["i128", "i64", "u64", "i32"])
    mask = None
    if r.random() < 0.3:
        often = r.choice([0.1, 0.5, 0.95])
        mask = bytes(int(r.random() < often) for _ in range(count))
    return {"dtype": dtype, "name": name, "second": second, "raw": raw, "other": other, "shape": (outer, n, inner), "ops": ops,
            "result": result, "nan": r.choice(["propagate", "skip"]) if is_float else "propagate", "mask": mask,
            "misalign": r.choice([0, 1, 3, 8, 31]), "order": r.getrandbits(63)}


def pack_case(c):
    head = struct.pack("<8I4Q", 0x72696170, DTYPE_IDS[c["dtype"]], len(c["ops"]), int(c["nan"] == "skip"),
                       DTYPE_IDS[c["result"]] if c["result"] else 0, c["misalign"], int(c["mask"] is not None), 0, *c["shape"],
                       c["order"])
    return b"".join([head, struct.pack("<%dI" % len(c["ops"]), *[ops_table.PAIRS[op] for op in c["ops"]]), c["raw"], c["other"],
                     c["mask"] or b""])


def expected(c, op, x, y, o, i):
    """(status, bytes) of one answer."""
    _, n, inner = c["shape"]
    dtype, result = c["dtype"], c["result"]
    places = [(o * n + k) * inner + i for k in range(n)]
    if c["mask"]:
        places = [p for p in places if c["mask"][p]]
    if dtype in oracle.INTS and op != "average" and result is None:
        result = "i64" if oracle.INTS[dtype][1] else "u64"
    want = pairs.answer(op, dtype, b"".join(x[p] for p in places), b"".join(y[p] for p in places), c["nan"], result)
    return (STATUSES[want[1]], None) if want[0] == "error" else (0, want[2])


def check(c, lines):
    wrong = [line for line in lines if line.startswith("!")]
    lines = [line for line in lines if not line.startswith("!")]
    if not lines or not lines[0].startswith("OK") or len(lines) != 1 + 2 * len(c["ops"]):
        return wrong + ["got %s" % lines[:1]]
    outer, _, inner = c["shape"]
    x, y = elements(c["dtype"], c["raw"]), elements(c["dtype"], c["other"])
    for k, op in enumerate(c["ops"]):
        got, statuses = bytes.fromhex(lines[1 + 2 * k]), bytes.fromhex(lines[2 + 2 * k])
        size = len(got) // (outer * inner)
        for at in range(outer * inner):
            status, want = expected(c, op, x, y, at // inner, at % inner)
            answer = got[at * size:(at + 1) * size]
            if statuses[at] != status or (want is not None and answer != want):
                wrong.append("%s: answer %d is %s with status %d, not %s with %d" % (
                    op, at, answer.hex(), statuses[at], want and want.hex(), status))
                break
    return wrong


def describe(c):
    return "%s %s with %s, shape=%s ops=%s result=%s nan=%s mask=%s" % (
        c["dtype"], c["name"], c["second"], c["shape"], c["ops"], c["result"], c["nan"], c["mask"] is not None)


if __name__ == "__main__":
    cases.main("pairs property", __name__, 4000)
