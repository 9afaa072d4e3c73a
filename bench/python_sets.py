#!/usr/bin/env python3
"""python_sets: several ops in one pass on the CPU, as multiples of their slowest member asked for alone: 64 MiB of the heap, one
thread, medians of turns. Prints a table for docs/BENCHMARKS.md.

usage: PYTHONPATH=BUILD/python bench/python_sets.py [rounds]
"""
import statistics
import sys
import time

import numpy
import cured

BYTES = 64 << 20
SETS = [["mean", "var"], ["mean", "var", "min", "max"], ["sum", "max"], ["sumsq", "max"], ["max", "count_nonzero"],
        ["sumsq", "count_nonzero"], ["sum", "argmax", "count_nonzero"], ["norm1", "max"]]
FAMILIES = {"mean": "sum", "var": "sumsq", "min": "max"}  # what such an op is finished from
TYPES = ("f4", "f8", "f2", "i4")


def take_turns(functions, rounds):
    times = [[] for _ in functions]
    for _ in range(rounds):
        for function, kept in zip(functions, times):
            begin = time.perf_counter()
            function()
            kept.append(time.perf_counter() - begin)
    return [statistics.median(kept) for kept in times]


def shares(dtype, rounds):
    rng, n = numpy.random.default_rng(1), BYTES // numpy.dtype(dtype).itemsize
    a = rng.integers(-10**9, 10**9, n).astype(dtype) if dtype == "i4" else rng.standard_normal(n).astype(dtype)
    alone = sorted({FAMILIES.get(op, op) for ops in SETS for op in ops})
    took = take_turns([lambda ops=ops: cured.reduce(a, ops) for ops in [[op] for op in alone] + SETS], rounds)
    slowest = dict(zip(alone, took))
    return [time_of / max(slowest[FAMILIES.get(op, op)] for op in ops) for ops, time_of in zip(SETS, took[len(alone):])]


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    columns = [shares(dtype, rounds) for dtype in TYPES]
    print("| | %s |\n| --- |%s" % (" | ".join(TYPES), " --- |" * len(TYPES)))
    for number, ops in enumerate(SETS):
        print("| %s | %s |" % ("+".join(ops), " | ".join("%.2f" % column[number] for column in columns)))


if __name__ == "__main__":
    main()
