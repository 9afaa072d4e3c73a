#!/usr/bin/env python3
"""Property run of reductions by key: random arrays of values and of rows, pairs of such arrays, random keys and masks, whole, in pieces, shuffled, by
limbs and by partials, on every instruction set, checked bit by bit against the oracle, group by group.

    keys_property.py DRIVER                        the run for CI
    keys_property.py DRIVER --cases 1000000        a longer one; --seed N starts elsewhere, --jobs N processes
    keys_property.py DRIVER --seed N --replay K    one case again, with what it held
"""

import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
import cases  # noqa: E402
import ops as ops_table  # noqa: E402
import oracle  # noqa: E402
import pairs  # noqa: E402
from axis_property import INT_SUMS, agrees, fill, nan_of  # noqa: E402
from pairs_property import near  # noqa: E402
from property import DTYPE_IDS, ONLY, OP_IDS  # noqa: E402

BATCH = 50
PAIRS = list(ops_table.PAIRS)
KEY_DTYPES = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]
STATUS = {"INVALID_ARGUMENT": 3, "OUT_OF_RANGE": 11}


def make_keys(r, dtype, rows, groups, outside):
    """Keys in some order; a few, on request, are no group's."""
    size, signed = oracle.INTS[dtype]
    least, most = (-(1 << 8 * size - 1), (1 << 8 * size - 1) - 1) if signed else (0, (1 << 8 * size) - 1)
    reach = min(groups, most + 1)
    kind = r.choice(["random", "random", "sorted", "one", "runs", "few"])
    if reach == 0:
        keys = []
    elif kind == "one":
        keys = [r.randrange(reach)] * rows
    elif kind == "few":
        some = [r.randrange(reach) for _ in range(3)]
        keys = [r.choice(some) for _ in range(rows)]
    else:
        keys = [r.randrange(reach) for _ in range(rows)]
        if kind == "sorted":
            keys.sort()
        elif kind == "runs":
            keys = [keys[i // 70] for i in range(rows)]
    if reach == 0 or outside:
        strange = [x for x in (least, -1, groups, groups + 1, most, most // 2) if least <= x <= most and not 0 <= x < groups]
        if reach == 0:
            keys = [r.choice(strange) for _ in range(rows)]
        elif strange:
            for _ in range(r.choice([1, 2, rows])):
                keys[r.randrange(rows)] = r.choice(strange)
    return keys


def make_case(seed, number):
    r = random.Random("keys/%d/%d" % (seed, number))
    dtype = r.choice(ONLY or oracle.DTYPES + ["f32", "f64", "f32", "f64"])
    is_float = dtype in oracle.FLOATS
    columns = r.choice([1, 1, 1, 2, 3, 7, 8, 64, 300, 600, r.randint(1, 40)])
    rows = r.choice([1, 2, 7, 8, 63, 64, 65, 511, 512, 513, 1500, r.randint(1, 300)])
    if r.random() < 0.02:
        rows = 0
    while rows * columns > 4000:
        rows, columns = (rows + 1) // 2, (columns + 1) // 2
    groups = r.choice([1, 2, 3, 16, 100, 300, r.randint(1, 50)])
    if r.random() < 0.02:
        groups = 0
    while groups * columns > 3000:
        groups //= 2
    name, raw = fill(r, dtype, rows * columns)
    ops = [op for op in OP_IDS if op != "digest" and not (is_float and (op.startswith("bit_") or op == "prod"))]
    result, overflow = None, "error"
    if r.random() < 0.3:
        result = r.choice(["f16", "bf16", "f32", "f64"])
        ops = [op for op in ops if op in ops_table.EXACT + ops_table.FLOAT]
        if not is_float and r.random() < 0.5:
            result = r.choice(["i128", "i64", "u64", "i32"])
            ops = [op for op in ops if op in INT_SUMS or op == "prod"]
    ops = r.sample(ops, r.randint(1, min(4, len(ops))))
    if r.random() < 0.4 and result not in ("i128", "i64", "u64", "i32"):
        ops = r.sample(["sum", "mean", "norm1", "var"], 2)
    if "prod" in ops and not is_float and result in (None, "i64", "u64"):
        overflow = r.choice(["error", "wrap"])
    second, other = "none", b""
    if r.random() < 0.4:
        second, other = ("near", near(r, dtype, raw)) if r.random() < 0.3 else fill(r, dtype, rows * columns)
        ops, overflow = r.sample(PAIRS, r.randint(1, len(PAIRS))), "error"
        if result in ("i128", "i64", "u64", "i32"):
            ops = [op for op in ops if op != "average"] or ["dot"]
    ddof = r.choice([0, 1, 2]) if all(op in ("var", "std") for op in ops) else 0
    key_dtype = r.choice(KEY_DTYPES)
    drop = r.random() < 0.5
    keys = make_keys(r, key_dtype, rows, groups, r.random() < 0.3 and rows > 0)
    mask = None
    if r.random() < 0.4:
        share = r.choice([0, 0.1, 0.5, 0.9, 1])
        mask = [r.random() < share for _ in range(rows * columns)]
    return {"dtype": dtype, "name": name, "second": second, "raw": raw, "other": other, "rows": rows, "columns": columns, "groups": groups, "ops": ops,
            "result": result, "overflow": overflow, "nan": r.choice(["propagate", "skip"]), "ddof": ddof, "drop": drop,
            "keys": keys, "key_dtype": key_dtype, "mask": mask, "mask_kind": 0 if mask is None else r.choice([1, 2]),
            "misalign": r.choice([0, 1, 3, 8, 31]), "order": r.getrandbits(63)}


def pack_mask(c):
    if c["mask_kind"] == 0:
        return b""
    if c["mask_kind"] == 1:
        return bytes(0xff if m else 0 for m in c["mask"])
    bits = c["mask"] + [True] * (-len(c["mask"]) % 8)
    return bytes(sum(bits[at + i] << i for i in range(8)) for at in range(0, len(bits), 8))


def pack_case(c):
    size, signed = oracle.INTS[c["key_dtype"]]
    return b"".join([
        struct.pack("<12I5Q", 0x6b657973, DTYPE_IDS[c["dtype"]], len(c["ops"]), int(c["nan"] == "skip"),
                    DTYPE_IDS[c["result"]] if c["result"] else 0, c["misalign"], DTYPE_IDS[c["key_dtype"]],
                    c["mask_kind"], int(c["drop"]), int(c["overflow"] == "wrap"),
                    int(c["second"] != "none"), 0, c["rows"], c["columns"], c["groups"],
                    c["ddof"], c["order"]),
        struct.pack("<%dI" % len(c["ops"]), *[ops_table.PAIRS.get(op) or OP_IDS[op] for op in c["ops"]]), c["raw"], c["other"],
        b"".join(k.to_bytes(size, "little", signed=signed) for k in c["keys"]), pack_mask(c)])


def expected(c, op, elements):
    """A cell's bytes and status. elements: of each a row's number, its bytes, and those of the other array's."""
    dtype, result = c["dtype"], c["result"]
    if dtype in oracle.INTS and op in ops_table.EXACT and result is None:
        result = "i64" if oracle.INTS[dtype][1] else "u64"
    raw = b"".join(x for _, x, _ in elements)
    if op in PAIRS:
        if dtype in oracle.INTS and op != "average":
            result = result or ("i64" if oracle.INTS[dtype][1] else "u64")
        want = pairs.answer(op, dtype, raw, b"".join(y for _, _, y in elements), c["nan"], result)
        return (None, STATUS[want[1]]) if want[0] == "error" else (want[2], 0)
    overflow = c["overflow"] if dtype in oracle.INTS and op == "prod" else "error"
    want = oracle.answer(op, dtype, raw, c["nan"], result, c["ddof"], overflow)
    if want[0] == "between":
        return want[1:], 0
    if want[0] == "value":
        if op.startswith("arg"):
            return elements[int.from_bytes(want[2], "little")][0].to_bytes(8, "little"), 0
        return want[2], 0
    if want[1] == "INVALID_ARGUMENT" and elements:  # nothing but NaNs, which are skipped: as along an axis
        return nan_of(op, dtype, result), STATUS["INVALID_ARGUMENT"]
    return None, STATUS[want[1]]


def cells(c):
    size, columns = oracle.SIZES[c["dtype"]], c["columns"]
    of = [[] for _ in range(c["groups"] * columns)]
    for row, key in enumerate(c["keys"]):
        if not 0 <= key < c["groups"]:
            continue
        for column in range(columns):
            at = row * columns + column
            if c["mask"] is None or c["mask"][at]:
                of[key * columns + column].append((row, c["raw"][at * size:(at + 1) * size], c["other"][at * size:(at + 1) * size]))
    return of


def check(c, lines):
    wrong = [line for line in lines if line.startswith("!")]
    lines = [line for line in lines if not line.startswith("!")]
    outside = [i for i, key in enumerate(c["keys"]) if not 0 <= key < c["groups"]]
    if outside and not c["drop"]:
        start = "INVALID_ARGUMENT keys: number %d is %d, " % (outside[0], c["keys"][outside[0]])
        return wrong if lines and lines[0].startswith(start) else wrong + ["got %s, want %s" % (lines[:1], start)]
    if not lines or not lines[0].startswith("OK") or len(lines) != 1 + 2 * len(c["ops"]):
        return wrong + ["got %s" % lines[:1]]
    of = cells(c)
    for k, op in enumerate(c["ops"]):
        got, statuses = bytes.fromhex(lines[1 + k]), bytes.fromhex(lines[1 + len(c["ops"]) + k])
        size = len(got) // len(of) if of else 0
        for at, elements in enumerate(of):
            want, status = expected(c, op, elements)
            here = got[at * size:(at + 1) * size]
            if statuses[at] != status or (not agrees(here, want) if want is not None else here != bytes(size)):
                wrong.append("%s: cell %d of %d elements is %s with status %d, not %s with %d" % (
                    op, at, len(elements), here.hex(), statuses[at], want if not isinstance(want, bytes) else want.hex(),
                    status))
                break
    return wrong


def describe(c):
    return "%s %s with %s (%d, %d) keys=%s groups=%d ops=%s result=%s nan=%s mask=%d drop=%s" % (
        c["dtype"], c["name"], c["second"], c["rows"], c["columns"], c["key_dtype"], c["groups"], c["ops"], c["result"], c["nan"],
        c["mask_kind"], c["drop"])


if __name__ == "__main__":
    cases.main("keys property", __name__, 4000)
