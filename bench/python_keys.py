#!/usr/bin/env python3
"""python_keys: sums by key beside numpy.bincount with weights, in one process and one thread: medians of calls that take turns, by the
processor's time, and the middle half of the ratios. Prints a table for docs/BENCHMARKS.md.

usage: PYTHONPATH=BUILD/python bench/python_keys.py [rounds]
"""
import gc
import math
import os
import statistics
import sys
import time

os.environ.setdefault("CURED_NUM_THREADS", "1")  # NumPy has one thread, too: python_cores.py has all
import numpy  # noqa: E402
import cured  # noqa: E402

CASES = ((16, 1 << 24), (1024, 1 << 24), (1 << 20, 1 << 26))  # groups, elements


def took(function):
    begin = time.process_time()
    function()
    return time.process_time() - begin


def main():
    gc.disable()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    random = numpy.random.default_rng(1)
    print("| values, keys | groups | order | bincount, ns | cured, ns | × | middle half |\n| --- | --- | --- | --- | --- | --- | --- |")
    for value, key in (("f8", "i8"), ("f8", "i4"), ("f4", "i8"), ("f4", "i4")):
        for groups, count in CASES:
            for order in ("random", "sorted"):
                keys = random.integers(0, groups, count).astype(key)
                if order == "sorted":
                    keys.sort()
                a = random.standard_normal(count).astype(value)
                functions = (lambda: numpy.bincount(keys, weights=a, minlength=groups), lambda: cured.sum(a, keys=keys, groups=groups))
                if functions[1]()[1] != math.fsum(a[keys == 1]):
                    sys.exit("python_keys: the sum of a group is wrong")
                times = [[took(f) / count * 1e9 for f in functions] for _ in range(rounds)]
                ratios = statistics.quantiles([x / y for x, y in times], n=4)
                other, own = (statistics.median(column) for column in zip(*times))
                print("| {}, {} | {:,} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} … {:.2f} |".format(
                    value, key, groups, order, other, own, other / own, ratios[0], ratios[2]), flush=True)


if __name__ == "__main__":
    main()
