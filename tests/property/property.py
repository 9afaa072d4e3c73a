#!/usr/bin/env python3
"""Property run: random arrays through the product's folds on every instruction set, checked bit by bit against the oracle.

    property.py DRIVER                        the run for CI: 10,000 cases and more
    property.py DRIVER --cases 1000000        a longer one; --seed N starts elsewhere, --jobs N processes
    property.py DRIVER --seed N --replay K    one case again, with what it held

A failing case prints the line that replays it.
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

DTYPE_IDS = {"bool": 1, "u8": 2, "i8": 3, "u16": 4, "i16": 5, "u32": 6, "i32": 7, "u64": 8, "i64": 9, "f16": 10,
             "bf16": 11, "f32": 12, "f64": 13, "i128": 14, "int": 15, "f8_e4m3": 16, "f8_e5m2": 17, "digest": 20}
OP_IDS = ops_table.IDS
OPS = [op for op in OP_IDS if op not in ops_table.BITS]
BATCH = 100
ONLY = [word for word in os.environ.get("CURED_TEST_TYPES", "").split(",") if word]  # other types are not drawn


def ops_of(dtype):
    return OPS + (ops_table.BITS if dtype in oracle.INTS else [])


def options(r, dtype):
    """Ops and the options that all of them take."""
    is_float = dtype in oracle.FLOATS
    every = ops_of(dtype)
    o = {"nan": r.choice(["propagate", "propagate", "skip"]), "result": None, "ddof": 0, "overflow": "error"}
    kind = r.random()
    if kind < 0.30:  # a result type: for the ops that take one
        follow, float_only = list(ops_table.EXACT), list(ops_table.FLOAT)
        o["result"] = r.choice(["f16", "bf16", "f32", "f64"])
        ops = follow + float_only
        if not is_float and r.random() < 0.5:
            o["result"] = r.choice(["bool", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "i128"])
            ops = follow
    elif kind < 0.35:
        ops = [r.choice(["var", "std"])] if is_float or r.random() < 0.7 else ["prod"]
        if ops == ["prod"]:
            o["overflow"] = "wrap"
            o["result"] = r.choice([None, "i64", "u64"])
        else:
            o["ddof"] = r.choice([0, 1, 1, 2, 7, 100000, 2 ** 64 - 1])
    elif kind < 0.45:  # one op alone: its family runs without tiles
        ops = [r.choice(every)]
    else:
        ops = r.sample(every, r.randint(2, len(every)))
    if set(ops) & set(ops_table.WHOLE):
        o["nan"] = "propagate"
    return ops, o


def make_case(seed, number):
    r = random.Random("%d/%d" % (seed, number))
    dtype = r.choice(ONLY or oracle.DTYPES)
    name, raw = arrays.make(r, dtype)
    n = len(raw) // oracle.SIZES[dtype]
    ops, o = options(r, dtype)
    if n > 8000:  # the oracle is slow
        ops = r.sample(ops, min(len(ops), 3))
        if name == "window":
            ops = [r.choice(["var", "std"] if o["ddof"] else ["sum", "sum", "sumsq", "sumsq", "norm1", "mean", "var"])]
            if dtype in ("f32", "f64") and not o["ddof"] and not o["result"] and r.random() < 0.5:  # folded together
                ops = r.choice([["var"], ["sum", "count_nan"], ["mean", "max"], ["var", "argmin", "count_nonzero"]])
    pieces = r.choice([1, 1, 2, 3, 5, 9])
    ends = sorted(r.randint(0, n) for _ in range(pieces - 1)) + [n]
    if "prod" in ops and dtype in oracle.FLOATS:  # cut between blocks
        ends = sorted(end // 4096 * 4096 for end in ends[:-1]) + [n]
    return {"dtype": dtype, "name": name, "raw": raw, "n": n, "ops": ops, "opts": o, "ends": ends,
            "misalign": r.choice([0, 0, 1, 2, 3, 4, 7, 8, 13, 31, 63]), "order": r.getrandbits(63)}


def pack_case(c):
    o = c["opts"]
    return b"".join([
        struct.pack("<8I3Q", 0x63757265, DTYPE_IDS[c["dtype"]], len(c["ops"]), int(o["nan"] == "skip"),
                    int(o["overflow"] == "wrap"), DTYPE_IDS[o["result"]] if o["result"] else 0, c["misalign"],
                    len(c["ends"]), c["n"], o["ddof"], c["order"]),
        struct.pack("<%dI" % len(c["ops"]), *[OP_IDS[op] for op in c["ops"]]),
        struct.pack("<%dQ" % len(c["ends"]), *c["ends"]), c["raw"]])


def hexed(b):
    return b.hex() or "-"


def check(c, lines):
    """The complaints about one case."""
    wrong = [line for line in lines if line.startswith("!")]
    sums = [line for line in lines if line.startswith("=")]
    lines = [line for line in lines if line[0] not in "!="]
    for line in sums:
        if line.startswith("= prod"):
            if c["n"] <= 2000 or c["order"] % 8 == 0:  # the slow way, one product after the other
                want = "= prod " + oracle.prod_tree(c["dtype"], c["raw"])
                if line != want:
                    wrong.append("state %s\n      want  %s" % (line, want))
            continue
        _, name, grid, digits = line.split()
        want = oracle.exact(name, c["dtype"], c["raw"])
        if want != int(digits, 16) * oracle.power(int(grid)):
            wrong.append("state %s\n      want %s" % (line, want))
    if len(lines) != len(c["ops"]):
        return wrong + ["%d answers for %d ops" % (len(lines), len(c["ops"]))]
    o = c["opts"]
    for op, line in zip(c["ops"], lines):
        got = line.split(" ", 5)
        want = oracle.answer(op, c["dtype"], c["raw"], o["nan"], o["result"], o["ddof"], o["overflow"])
        if want[0] == "value":
            expected = [op, "OK", want[1], hexed(want[2]), hexed(want[3])]
            good = got[:5] == expected
        elif want[0] == "between":
            expected = [op, "OK", want[1], "from %d to %d" % want[2:]]
            bits = int.from_bytes(bytes.fromhex(got[3]), "little") if got[3] != "-" else 0
            good = got[:3] == expected[:3] and got[4] == "-" and want[2] <= oracle.order(want[1], bits) <= want[3]
        else:
            expected = [op, want[1], want[2]]
            good = got[:2] == expected[:2] and want[2] in got[5]
        if not good:
            wrong.append("got  %s\n      want %s" % (line, " ".join(expected)))
    return wrong


def describe(c):
    return "%s %s n=%d pieces=%d %s" % (c["dtype"], c["name"], c["n"], len(c["ends"]), c["opts"])


if __name__ == "__main__":
    cases.main("property", __name__, 20000)
