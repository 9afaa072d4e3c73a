#!/usr/bin/env python3
"""Property run of quantiles: random arrays, whole, along an axis, by offsets and by key, plain and under masks, with several shares at once, read by every
instruction set, in pieces that are merged, from memory, streams and files, checked bit by bit against the oracle.

    order_property.py DRIVER                        the run for CI
    order_property.py DRIVER --cases 1000000        a longer one; --seed N starts elsewhere, --jobs N processes
    order_property.py DRIVER --seed N --replay K    one case again, with what it held
"""

import math
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
import arrays  # noqa: E402
import cases  # noqa: E402
import oracle  # noqa: E402
from axis_property import fill, make_shape  # noqa: E402
from offsets_property import make_borders  # noqa: E402
from property import DTYPE_IDS, ONLY  # noqa: E402

METHODS = ["linear", "lower", "higher", "nearest", "midpoint"]
BATCH = 100


def share(r, n):
    kind = r.random()
    if kind < 0.25:
        return r.choice([0.0, 0.5, 1.0, 0.25, 0.75, 0.1, 0.9, 1 / 3, 2 / 3, 0.99])
    if kind < 0.5 and n > 1:  # at a rank, or a bit beside it
        at = r.randrange(n) / (n - 1)
        return min(1.0, max(0.0, r.choice([at, math.nextafter(at, 0), math.nextafter(at, 1)])))
    if kind < 0.6:
        return r.choice([5e-324, 2.0 ** -1022, 2.0 ** -60, math.nextafter(1.0, 0), 1 - 2.0 ** -30, 1e-300])
    return r.random()


def make_case(seed, number):
    r = random.Random("order/%d/%d" % (seed, number))
    dtype = r.choice(ONLY or oracle.DTYPES)
    along, borders, keys, columns, groups, drop = r.random() < 0.35, [], [], 0, 0, False
    if not along and r.random() < 0.3:
        columns, groups, shape = r.choice([1, 1, 1, 2, 3, 17]), r.choice([1, 2, 3, 10, 100, 700]), (0, 0, 0)
        rows, drop = r.choice([0, 1, 7, 300, 3000, r.randint(1, 1000)]) // columns, r.random() < 0.5
        low, high = (-2, groups + 2) if drop else (0, groups - 1)
        keys = [r.randint(low, high) if r.random() < 0.7 else min(2, high) for _ in range(rows)]
        keys = sorted(keys) if r.random() < 0.2 else keys
        n = rows * columns
        name, raw = fill(r, dtype, n)
    elif not along and r.random() < 0.4:
        borders, shape = make_borders(r), (0, 0, 0)
        borders += [borders[-1] + r.choice([0, 30, 2048, 2049, 5000])] if r.random() < 0.2 else []  # some beyond what is copied
        n = borders[-1] + r.choice([0, 0, r.randint(0, 9)])
        name, raw = fill(r, dtype, n)
    elif along:
        shape = make_shape(r)
        n = shape[0] * shape[1] * shape[2]
        name, raw = fill(r, dtype, n)
    else:
        shape = (0, 0, 0)
        name, raw = arrays.make(r, dtype)
        n = len(raw) // oracle.SIZES[dtype]
        if r.random() < 0.2 and n:  # few values, often
            size, few = oracle.SIZES[dtype], r.randint(1, 4)
            some = [raw[at * size:(at + 1) * size] for at in (r.randrange(n) for _ in range(few))]
            raw = b"".join(r.choice(some) for _ in range(n))
        if r.random() < 0.1:
            raw = b"".join(sorted(raw[at:at + oracle.SIZES[dtype]] for at in range(0, len(raw), oracle.SIZES[dtype])))
    count = r.choice([1, 1, 1, 2, 3, 5, 32])
    method = r.choice(METHODS)
    of = shape[1] if along else max(b - a for a, b in zip(borders, borders[1:])) if len(borders) > 1 else n // max(1, groups)
    asked = [(share(r, of), method if r.random() < 0.97 else r.choice(METHODS)) for _ in range(count)]
    mask, keep, first, leaves_out = 0, None, 0, False
    if r.random() < 0.4:
        mask, leaves_out = r.choice([1, 2]), r.random() < 0.3
        first = r.randrange(20)
        odds = r.choice([0, 0.02, 0.5, 0.98, 1])
        keep = [r.random() < odds for _ in range(n)]
    return {"dtype": dtype, "name": name, "raw": raw, "n": n, "shape": shape, "along": along, "borders": borders, "keys": keys, "columns": columns, "groups": groups,
            "drop": drop, "asked": asked,
            "nan": r.choice(["propagate", "skip"]), "result": r.choice([None, None, None, "f16", "bf16", "f32"]),
            "misalign": r.choice([0, 1, 3, 8, 31]), "order": r.getrandbits(63), "mask": mask, "keep": keep,
            "first": first, "leaves_out": leaves_out}


def mask_bytes(c):
    if not c["mask"]:
        return b""
    flags = [0] * c["first"] + [int(k != c["leaves_out"]) for k in c["keep"]]
    if c["mask"] == 1:
        return bytes(7 * f for f in flags)
    return bytes(sum(f << i for i, f in enumerate(flags[at:at + 8])) for at in range(0, len(flags), 8))


def pack_case(c):
    mask = mask_bytes(c)
    return b"".join([
        struct.pack("<8I11Q", 0x6f726472, DTYPE_IDS[c["dtype"]], len(c["asked"]), int(c["nan"] == "skip"),
                    DTYPE_IDS[c["result"]] if c["result"] else 0, c["misalign"], c["mask"], int(c["leaves_out"]),
                    c["n"], c["order"], c["first"], len(mask), *c["shape"], len(c["borders"]), c["columns"], c["groups"], c["drop"]),
        b"".join(struct.pack("<dQ", q, METHODS.index(method)) for q, method in c["asked"]),
        struct.pack("<%dQ" % len(c["borders"]), *c["borders"]), struct.pack("<%di" % len(c["keys"]), *c["keys"]), mask, c["raw"]])


def expected(c):
    """Of each item its answers' bytes."""
    size, raw, keep = oracle.SIZES[c["dtype"]], c["raw"], c["keep"]
    if c["along"]:
        outer, n, inner = c["shape"]
        blocks = [[(o * n + k) * inner + i for k in range(n)] for o in range(outer) for i in range(inner)]
    elif c["borders"]:
        blocks = [range(a, b) for a, b in zip(c["borders"], c["borders"][1:])]
    elif c["columns"]:
        d = c["columns"]
        blocks = [[row * d + column for row, key in enumerate(c["keys"]) if key == group] for group in range(c["groups"]) for column in range(d)]
    else:
        blocks = [range(c["n"])]
    result = c["result"] or "f64"
    found = []
    for block in blocks:
        of = raw if keep is None and len(block) == c["n"] else \
            b"".join(raw[at * size:(at + 1) * size] for at in block if keep is None or keep[at])
        found.append([oracle.pack(result, bits)
                      for bits in oracle.quantiles(c["dtype"], of, c["asked"], c["nan"], c["result"])])
    return [b"".join(answers[i] for answers in found) for i in range(len(c["asked"]))]


def check(c, lines):
    wrong = [line for line in lines if line.startswith("!")]
    lines = [line for line in lines if not line.startswith("!")]
    wants = expected(c)
    if len(lines) != len(wants):
        return wrong + ["%d answers for %d items" % (len(lines), len(wants))]
    for item, line, want in zip(c["asked"], lines, wants):
        if line != want.hex():
            wrong.append("%s: got %s\n      want %s" % (item, line[:200], want.hex()[:200]))
    return wrong


def describe(c):
    return "%s %s n=%d shape=%s borders=%s keys=%s of %d columns nan=%s result=%s mask=%d asked=%s" % (
        c["dtype"], c["name"], c["n"], c["shape"], c["borders"][:9], c["keys"][:9], c["columns"], c["nan"], c["result"], c["mask"], c["asked"][:3])


if __name__ == "__main__":
    cases.main("order property", __name__, 4000)
