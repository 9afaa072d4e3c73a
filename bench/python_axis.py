#!/usr/bin/env python3
"""python_axis: f32 sums along axis 0 beside NumPy, by shape, in one process and one thread: medians of calls that take turns, and
the middle half of the ratios. Prints a table for docs/BENCHMARKS.md.

usage: PYTHONPATH=BUILD/python bench/python_axis.py [rounds]
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
from python_heap import number  # noqa: E402

SHAPES = ((4096, 4096), (65536, 256), (16384, 1024), (1024, 16384), (256, 65536), (1000000, 16), (1000000, 3),
          (20, 1000000), (1000, 1000), (512, 512), (1024, 256), (256, 1024), (64, 4096), (32, 8192), (16, 65536), (64, 64), (1000, 10))


def took(function, count):
    begin = time.perf_counter()
    for _ in range(count):
        function()
    return (time.perf_counter() - begin) / count * 1e6


def main():
    gc.disable()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 21
    print("| shape | NumPy, µs | cured, µs | × | middle half |\n| --- | --- | --- | --- | --- |")
    for shape in SHAPES:
        a = numpy.random.default_rng(1).standard_normal(shape).astype("f4")
        functions = (lambda: numpy.sum(a, axis=0), lambda: cured.sum(a, axis=0))
        if functions[1]()[1] != math.fsum(a[:, 1]):
            sys.exit("python_axis: the sum of %s is wrong" % (shape,))
        count = max(1, int(2000 / took(functions[0], 3)))
        times = [[took(f, count) for f in functions] for _ in range(rounds)]
        ratios = statistics.quantiles([x / y for x, y in times], n=4)
        other, own = (statistics.median(column) for column in zip(*times))
        print("| {:,} × {:,} | {} | {} | {:.2f} | {:.2f} … {:.2f} |".format(
            *shape, number(other), number(own), other / own, ratios[0], ratios[2]), flush=True)


if __name__ == "__main__":
    main()
