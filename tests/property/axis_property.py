#!/usr/bin/env python3
"""Property run of reductions along an axis: random arrays of random shapes, under random masks or none, by blocks and by states of
columns, on every instruction set, checked bit by bit against the oracle, output by output.

    axis_property.py DRIVER                        the run for CI
    axis_property.py DRIVER --cases 1000000        a longer one; --seed N starts elsewhere, --jobs N processes
    axis_property.py DRIVER --seed N --replay K    one case again, with what it held
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
from property import DTYPE_IDS, ONLY, OP_IDS  # noqa: E402

OPS = list(OP_IDS)
BATCH = 50
INT_SUMS = ops_table.EXACT_SUMS
EXTREMA = ("min", "max", "argmin", "argmax", "ptp")


def make_shape(r):
    """(outer, n, inner), some thousands of elements at most."""
    n = r.choice([1, 2, 3, 5, 8, 9, 16, 17, 31, 32, 33, 47, 48, 49, 64, 100, 129, 500, 1500, r.randint(1, 300)])
    inner = r.choice([1, 1, 1, 1, 2, 3, 5, 7, 8, 16, 31, 64, 100, 127, 128, 129, 255, 257, 300, r.randint(1, 600)])
    outer = r.choice([1, 1, 2, 3, 7, 70, 300])
    while outer * n * inner > 5000 and outer > 1:
        outer //= 2
    while n * inner > 5000:
        inner = max(1, inner // 2)
    if r.random() < 0.02:  # beyond the blocks in which products of floats are taken
        outer, n, inner = 1, r.choice([4095, 4096, 4097, 8193, 12289, 20000]), r.choice([1, 1, 2, 3])
    if r.random() < 0.01:
        n = 0
    return outer, n, inner


def fill(r, dtype, count):
    """count elements: pieces of one or a few distributions, so that neighbours differ."""
    size, raw, names = oracle.SIZES[dtype], b"", []
    while len(raw) < count * size:
        name, more = arrays.make(r, dtype)
        if len(more) == 0:
            continue
        names.append(name)
        if r.random() < 0.6:  # the same distribution everywhere
            more = (more * (count * size // len(more) + 1))
        raw += more
    return "+".join(names[:3]), raw[:count * size]


def make_mask(r, count):
    """Which elements count, in runs or one by one."""
    share, run = r.choice([0, 0.1, 0.5, 0.5, 0.9, 1]), r.choice([1, 1, 7, 100, 1000])
    return [kept for _ in range(0, count, run) for kept in [r.random() < share] * run][:count]


def make_case(seed, number):
    r = random.Random("axis/%d/%d" % (seed, number))
    dtype = r.choice(ONLY or oracle.DTYPES + ["f32", "f64", "f32", "f64"])
    is_float = dtype in oracle.FLOATS
    outer, n, inner = make_shape(r)
    name, raw = fill(r, dtype, outer * n * inner)
    ops = [op for op in OPS if not (is_float and op.startswith("bit_"))]
    result = None
    if r.random() < 0.3:
        result = r.choice(["f16", "bf16", "f32", "f64"])
        ops = [op for op in ops if op in ops_table.EXACT + ops_table.FLOAT]
        if not is_float and r.random() < 0.5:
            result = r.choice(["i128", "i64", "u64", "i32"])
            ops = [op for op in ops if op in INT_SUMS]
    if n == 0:
        ops = [op for op in ops if op not in EXTREMA]
    ddof = 0
    ops = r.sample(ops, r.randint(1, min(3, len(ops))))
    if r.random() < 0.5 and result not in ("i128", "i64", "u64", "i32"):
        ops = [r.choice(["sum", "mean", "norm1"])]
    if all(op in ("var", "std") for op in ops):
        ddof = r.choice([0, 1, 2])
    mask = make_mask(r, outer * n * inner) if r.random() < 0.4 and not set(ops) & set(ops_table.WHOLE) else None
    return {"mask": mask, "mask_kind": 0 if mask is None else r.choice([1, 2]), "leaves_out": r.random() < 0.3, "first": r.randint(0, 70),
            "dtype": dtype, "name": name, "raw": raw, "shape": (outer, n, inner), "ops": ops, "result": result,
            "nan": "propagate" if set(ops) & set(ops_table.WHOLE) else r.choice(["propagate", "skip"]), "ddof": ddof, "misalign": r.choice([0, 1, 3, 8, 31]),
            "order": r.getrandbits(63)}


def pack_mask(c):
    if c["mask_kind"] == 0:
        return b""
    marks = [True] * c["first"] + [m != c["leaves_out"] for m in c["mask"]]
    if c["mask_kind"] == 1:
        return bytes(0x20 if m else 0 for m in marks)
    marks += [True] * (-len(marks) % 8)
    return bytes(sum(marks[at + i] << i for i in range(8)) for at in range(0, len(marks), 8))


def pack_case(c):
    return b"".join([
        struct.pack("<8I6Q", 0x61786973, DTYPE_IDS[c["dtype"]], len(c["ops"]), int(c["nan"] == "skip"),
                    DTYPE_IDS[c["result"]] if c["result"] else 0, c["misalign"], c["mask_kind"], c["leaves_out"], c["first"], *c["shape"],
                    c["ddof"], c["order"]),
        struct.pack("<%dI" % len(c["ops"]), *[OP_IDS[op] for op in c["ops"]]), c["raw"], pack_mask(c)])


def expected(c, op, column):
    """One output's bytes, or its bounds (a product of floats), or None where the job fails."""
    dtype, result = c["dtype"], c["result"]
    if dtype in oracle.INTS and op in ops_table.EXACT and result is None:
        result = "i64" if oracle.INTS[dtype][1] else "u64"
    want = oracle.answer(op, dtype, column, c["nan"], result, c["ddof"])
    if want[0] == "value":
        return want[2]
    if want[0] == "between":
        return want[1:]
    if want[1] == "INVALID_ARGUMENT" and len(column):  # nothing but NaNs, which are skipped
        return nan_of(op, dtype, result)
    return None


def nan_of(op, dtype, result):
    """What stands where all elements are NaNs, which are skipped."""
    dtype = (result or "f64") if op == "ptp" else dtype
    return b"\xff" * 8 if op.startswith("arg") else oracle.pack(dtype, oracle.nan_bits(dtype))


def agrees(got, want):
    """Whether one output is the wanted bytes, or lies within the wanted bounds."""
    if isinstance(want, bytes):
        return got == want
    dtype, low, high = want
    return low <= oracle.order(dtype, int.from_bytes(got, "little")) <= high


def outputs(c, op):
    outer, n, inner = c["shape"]
    size, raw = oracle.SIZES[c["dtype"]], c["raw"]
    block = n * inner * size
    for o in range(outer):
        for i in range(inner):
            start = o * block + i * size
            places = range(start, (o + 1) * block, inner * size) if n else []
            kept = [k for k, at in enumerate(places) if c["mask"] is None or c["mask"][at // size]]
            want = expected(c, op, b"".join(raw[places[k]:places[k] + size] for k in kept))
            if op.startswith("arg") and want not in (None, b"\xff" * 8):
                want = kept[int.from_bytes(want, "little")].to_bytes(8, "little")
            yield want


def check(c, lines):
    wrong = [line for line in lines if line.startswith("!")]
    lines = [line for line in lines if not line.startswith("!")]
    if lines and lines[0] == "refused UNIMPLEMENTED":
        return None
    wants = [list(outputs(c, op)) for op in c["ops"]]
    if any(w is None for want in wants for w in want):
        why = ("OUT_OF_RANGE output ",) if c["mask"] is None else ("OUT_OF_RANGE output ", "INVALID_ARGUMENT output ")
        if not lines or not lines[0].startswith(why):
            wrong.append("got %s, want %s" % (lines[:1], why))
        return wrong
    if not lines or not lines[0].startswith("OK") or len(lines) != 1 + len(c["ops"]):
        return wrong + ["got %s" % lines[:1]]
    for op, line, want in zip(c["ops"], lines[1:], wants):
        got = bytes.fromhex(line)
        size = 0 if not want else len(want[0]) if isinstance(want[0], bytes) else oracle.SIZES[want[0][0]]
        if len(got) != size * len(want):
            wrong.append("%s: %d bytes, not %d" % (op, len(got), size * len(want)))
        for at, w in enumerate(want):
            if not agrees(got[at * size:(at + 1) * size], w):
                wrong.append("%s: output %d is %s, not %s" % (op, at, got[at * size:(at + 1) * size].hex(), w))
                break
    return wrong


def describe(c):
    return "%s %s %s ops=%s result=%s nan=%s mask=%d" % (c["dtype"], c["name"], c["shape"], c["ops"], c["result"], c["nan"], c["mask_kind"])


if __name__ == "__main__":
    cases.main("axis property", __name__, 4000)
