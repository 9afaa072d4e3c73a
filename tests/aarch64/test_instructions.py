#!/usr/bin/env python3
"""How many instructions the folds execute an element on aarch64, against those of the same source without vectors. The figures of that are
written here, because to compile it costs half a minute; scripts/aarch64 --table measures both.

    test_instructions.py PLUGIN FOLDS            fails where a fold takes more than its share
    test_instructions.py PLUGIN FOLDS SCALAR     prints a table of both
"""
import os
import subprocess
import sys

# Type, family: instructions an element of the scalar build (gcc 12.2, 65,536 elements), and how many times as few it has to be here.
# Registers hold two lanes of 64 bits, so less can be had of those; they have no minimum or product of such, either.
LEAST = {
    ("f64", "sum"): (27.9, 4), ("f64", "sumsq"): (46.6, 4), ("f64", "min_max"): (14.3, 3), ("f64", "counts"): (9.5, 2),
    ("f64", "describe"): (60.9, 4), ("f32", "sum"): (25.6, 8), ("f32", "sumsq"): (32.6, 6), ("f32", "min_max"): (21.1, 10),
    ("f32", "counts"): (12.8, 5), ("f32", "describe"): (45.0, 6), ("f16", "sum"): (19.3, 10), ("f16", "sumsq"): (25.5, 5),
    ("f16", "min_max"): (21.2, 15), ("f16", "counts"): (12.0, 10), ("f16", "describe"): (58.1, 7), ("bf16", "sum"): (25.4, 15),
    ("bf16", "sumsq"): (29.2, 4), ("bf16", "min_max"): (21.2, 15), ("bf16", "counts"): (12.0, 10), ("bf16", "describe"): (67.6, 7),
    ("i64", "sum"): (8.5, 3), ("i64", "sumsq"): (18.5, 2.5), ("i64", "min_max"): (6.3, 1.6), ("i64", "counts"): (7.5, 3),
    ("i64", "describe"): (33.9, 2), ("i32", "sum"): (6.3, 6), ("i32", "sumsq"): (13.8, 3), ("i32", "min_max"): (12.4, 8),
    ("i32", "counts"): (7.3, 6), ("i32", "describe"): (20.8, 3.5), ("u8", "sum"): (2.1, 4), ("u8", "sumsq"): (4.9, 3),
    ("u8", "min_max"): (19.0, 30), ("u8", "counts"): (4.6, 12), ("u8", "describe"): (25.8, 12),
}


def counted(plugin, program):
    """Instructions an element, by type and family."""
    emulator = os.environ["CURED_TEST_EMULATOR"].split()
    run = subprocess.run(emulator + ["-plugin", plugin, program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
    folds = [line.split() for line in run.stdout.splitlines()]
    counts = [int(word) for word in run.stderr.split()]  # before a fold, and of it
    assert len(counts) == 2 * len(folds) and len(folds) == len(LEAST), run.stderr
    return {(dtype, family): count / int(n) for (dtype, family, n), count in zip(folds, counts[1::2])}


def main():
    here = counted(*sys.argv[1:3])
    scalar = counted(sys.argv[1], sys.argv[3]) if len(sys.argv) > 3 else {fold: figure for fold, (figure, _) in LEAST.items()}
    failed = 0
    for fold, (_, least) in LEAST.items():
        ratio = scalar[fold] / here[fold]
        failed += ratio < least
        print("%-5s %-9s scalar %5.1f  here %5.2f  %4.1f times as few%s" % (
            *fold, scalar[fold], here[fold], ratio, "" if ratio >= least else ", %g wanted" % least))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
