#!/usr/bin/env python3
"""Property run of reductions by offsets: random arrays in random segments, with and without a mask, by the folds of every instruction
set, by states of segments in pieces, and by libcured, checked bit by bit against the oracle, segment by segment.

    offsets_property.py DRIVER                        the run for CI
    offsets_property.py DRIVER --cases 100000         a longer one; --seed N starts elsewhere, --jobs N processes
    offsets_property.py DRIVER --seed N --replay K    one case again, with what it held
"""

import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
import cases  # noqa: E402
import ops as ops_table  # noqa: E402
import oracle  # noqa: E402
from axis_property import INT_SUMS, fill  # noqa: E402
from property import DTYPE_IDS, ONLY, OP_IDS  # noqa: E402

BATCH = 50
STATUSES = {"INVALID_ARGUMENT": 3, "OUT_OF_RANGE": 11}  # proto/status.def
TYPES = {"i32": "i", "i64": "q", "u32": "I", "u64": "Q"}
ONES = {"f16": "003c", "bf16": "803f", "f32": "0000803f", "f64": "000000000000f03f", "f8_e4m3": "38", "f8_e5m2": "3c"}


def make_borders(r):
    """Borders of segments with some hundred elements: alike, mixed, mostly empty, one long."""
    kind, borders = r.randrange(6), [r.choice([0, 0, r.randint(0, 9)])]
    alike = r.choice([1, 2, 3, 7, 8, 16, 17, 32, 64])
    budget = r.choice([5, 60, 300, 900])
    while borders[-1] < budget and len(borders) < 200 and r.random() < 0.995:
        n = (alike if kind < 2 else r.randint(0, 2 * alike) if kind == 2 else r.choice([0, 0, 0, 1, 5]) if kind == 3
             else r.choice([3, 3, 3, 3, 3, 3, 3, 200]) if kind == 4 else 1 << r.randrange(8))
        borders.append(borders[-1] + n)
    if r.random() < 0.01:  # beyond the rows, and the blocks of products of floats
        borders.append(borders[-1] + r.choice([4095, 4097, 8200, 16385]))
    return borders


def choose(r, dtype):
    """Ops, and options that all of them take."""
    is_float = dtype in oracle.FLOATS
    c = {"result": None, "ddof": 0, "overflow": "error", "nan": r.choice(["propagate", "skip"])}
    ops = [op for op in OP_IDS if not (is_float and op in ops_table.BITS)]
    if r.random() < 0.3:
        c["result"] = r.choice(["f16", "bf16", "f32", "f64"])
        ops = ops_table.EXACT + ops_table.FLOAT
        if not is_float and r.random() < 0.5:
            c["result"] = r.choice(["i128", "i64", "u64", "i32"])
            ops = INT_SUMS
    ops = r.sample(ops, r.randint(1, min(3, len(ops))))
    if all(op in ("var", "std") for op in ops):
        c["ddof"] = r.choice([0, 1, 2])
    if not is_float and ops == ["prod"] and c["result"] in (None, "i64", "u64") and r.random() < 0.5:
        c["overflow"] = "wrap"
    if set(ops) & set(ops_table.WHOLE):
        c["nan"] = "propagate"
    return dict(c, ops=ops)


def make_case(seed, number):
    r = random.Random("offsets/%d/%d" % (seed, number))
    dtype = r.choice(ONLY or oracle.DTYPES + ["f32", "f64", "f32", "f64"])
    borders = make_borders(r)
    count = borders[-1] + r.choice([0, 0, r.randint(0, 9)])
    name, raw = fill(r, dtype, count)
    c = choose(r, dtype)
    mask = None
    if r.random() < 0.3 and not set(c["ops"]) & set(ops_table.WHOLE):
        often = r.choice([0.1, 0.5, 0.95])
        mask = bytes(int(r.random() < often) for _ in range(count))
    return dict(c, dtype=dtype, name=name, raw=raw, count=count, borders=borders, type=r.choice(list(TYPES)), mask=mask,
                misalign=r.choice([0, 1, 3, 8, 31]), order=r.getrandbits(63))


def pack_case(c):
    head = struct.pack("<10I4Q", 0x6f666673, DTYPE_IDS[c["dtype"]], len(c["ops"]), int(c["nan"] == "skip"),
                       int(c["overflow"] == "wrap"), DTYPE_IDS[c["result"]] if c["result"] else 0, c["misalign"],
                       DTYPE_IDS[c["type"]], int(c["mask"] is not None), 0, c["count"], len(c["borders"]), c["ddof"], c["order"])
    return b"".join([head, struct.pack("<%dI" % len(c["ops"]), *[OP_IDS[op] for op in c["ops"]]), c["raw"],
                     struct.pack("<%d%s" % (len(c["borders"]), TYPES[c["type"]]), *c["borders"]), c["mask"] or b""])


def expected(c, op, begin, end):
    """(status, bytes or bounds) of one answer."""
    dtype, result, size = c["dtype"], c["result"], oracle.SIZES[c["dtype"]]
    raw, places = c["raw"][begin * size:end * size], list(range(end - begin))
    if c["mask"]:
        places = [i for i in places if c["mask"][begin + i]]
        one = bytes.fromhex(ONES[dtype]) if op == "prod" and dtype in ONES else None  # at its place in the tree
        cut = [raw[i * size:(i + 1) * size] for i in range(end - begin)]
        raw = b"".join(cut[i] for i in places) if one is None else b"".join(
            cut[i] if c["mask"][begin + i] else one for i in range(end - begin))
    if dtype in oracle.INTS and op in ops_table.EXACT and result is None:
        result = "i64" if oracle.INTS[dtype][1] else "u64"
    want = oracle.answer(op, dtype, raw, c["nan"], result, c["ddof"], c["overflow"] if op == "prod" else "error")
    if want[0] == "error":
        return STATUSES[want[1]], None
    if want[0] == "between":
        return 0, want[1:]
    if op.startswith("arg"):
        return 0, struct.pack("<Q", places[struct.unpack("<Q", want[2])[0]])
    return 0, want[2]


def agrees(got, want):
    if isinstance(want, bytes):
        return got == want
    dtype, low, high = want
    return low <= oracle.order(dtype, int.from_bytes(got, "little")) <= high


def check(c, lines):
    wrong = [line for line in lines if line.startswith("!")]
    lines = [line for line in lines if not line.startswith("!")]
    if lines and lines[0] == "refused UNIMPLEMENTED":
        return None
    if not lines or not lines[0].startswith("OK") or len(lines) != 1 + 2 * len(c["ops"]):
        return wrong + ["got %s" % lines[:1]]
    segments = len(c["borders"]) - 1
    for k, op in enumerate(c["ops"]):
        got, statuses = bytes.fromhex(lines[1 + 2 * k]), bytes.fromhex(lines[2 + 2 * k])
        size = len(got) // segments if segments else 0
        if len(statuses) != segments or len(got) != size * segments:
            wrong.append("%s: %d bytes, %d statuses of %d" % (op, len(got), len(statuses), segments))
            continue
        for i in range(segments):
            status, want = expected(c, op, *c["borders"][i:i + 2])
            answer = got[i * size:(i + 1) * size]
            if statuses[i] != status or (want is not None and not agrees(answer, want)):
                wrong.append("%s: segment %d (%d) is %s with status %d, not %s with %d" % (
                    op, i, c["borders"][i + 1] - c["borders"][i], answer.hex(), statuses[i], want, status))
                break
    return wrong


def describe(c):
    return "%s %s %d segments ops=%s result=%s nan=%s mask=%s" % (
        c["dtype"], c["name"], len(c["borders"]) - 1, c["ops"], c["result"], c["nan"], c["mask"] is not None)


if __name__ == "__main__":
    cases.main("offsets property", __name__, 4000)
