#!/usr/bin/env python3
"""python_mixed: sums of floats whose exponents differ beside NumPy, in one process and one thread: medians of calls that take
turns, and the middle half of the ratios. Prints a table for docs/BENCHMARKS.md.

usage: PYTHONPATH=BUILD/python bench/python_mixed.py [rounds]
"""
import gc
import math
import os
import statistics
import sys

os.environ.setdefault("CURED_NUM_THREADS", "1")  # NumPy has one thread, too: python_cores.py has all
import numpy  # noqa: E402
import cured  # noqa: E402
from python_axis import took  # noqa: E402
from python_heap import number  # noqa: E402

BYTES = (1 << 20, 64 << 20)


def normal(rng, n, dtype):
    return rng.standard_normal(n).astype(dtype)


def orders(rng, n, dtype):
    return (rng.standard_normal(n) * 10 ** rng.uniform(-10, 10, n)).astype(dtype)


def finite(rng, n, dtype):
    """Every finite exponent as often as any other."""
    lanes = {"f4": "u4", "f8": "u8"}[dtype]
    a = rng.integers(0, numpy.iinfo(lanes).max, n, lanes, True).view(dtype)
    a[~numpy.isfinite(a)] = 1
    return a


DATA = (("normal", normal), ("20 orders", orders), ("any exponent", finite))


def main():
    gc.disable()
    numpy.seterr(all="ignore")
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    print("| type | MiB | data | NumPy, µs | cured, µs | × | middle half |\n| --- | --- | --- | --- | --- | --- | --- |")
    for dtype in ("f4", "f8"):
        for size in BYTES:
            for name, draw in DATA:
                a = draw(numpy.random.default_rng(1), size // int(dtype[1]), dtype)
                if name != "any exponent" and size == BYTES[0] and cured.sum(a) != math.fsum(a):
                    sys.exit("python_mixed: the sum of %s %s is wrong" % (dtype, name))
                functions = (lambda: numpy.sum(a), lambda: cured.sum(a))
                count = max(1, int(2000 / took(functions[0], 3)))
                times = [[took(f, count) for f in functions] for _ in range(rounds)]
                ratios = statistics.quantiles([x / y for x, y in times], n=4)
                other, own = (statistics.median(column) for column in zip(*times))
                print("| {} | {} | {} | {} | {} | {:.2f} | {:.2f} … {:.2f} |".format(
                    dtype, size >> 20, name, number(other), number(own), other / own, ratios[0], ratios[2]), flush=True)


if __name__ == "__main__":
    main()
