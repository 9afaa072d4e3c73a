#!/usr/bin/env python3
"""python_ways: ops under a mask beside the same op without, sums by offsets beside the plain sum and numpy.add.reduceat, and dot beside
numpy.dot and a read of both arrays: one process and one thread, medians of calls that take turns, by the processor's time, and the
middle half of the ratios. Prints tables for docs/BENCHMARKS-RAGGED.md. A share counts the bytes of the mask, but not those of offsets.

usage: OPENBLAS_NUM_THREADS=1 PYTHONPATH=BUILD/python bench/python_ways.py [rounds]
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

SIZES = (("1 MiB", 1 << 20, 20), ("64 MiB", 1 << 26, 1))  # of a call, and calls of a round


def turns(functions, rounds, calls=1):
    """Seconds of each function, a row a round; the first round warms up."""
    times = []
    for _ in range(rounds + 1):
        row = []
        for function in functions:
            begin = time.process_time()
            for _ in range(calls):
                function()
            row.append((time.process_time() - begin) / calls)
        times.append(row)
    return times[1:]


def ratio(times, top, bottom, factor=1.0):
    quarters = statistics.quantiles([factor * row[top] / row[bottom] for row in times], n=4)
    return "{:.2f} ({:.2f} … {:.2f})".format(quarters[1], quarters[0], quarters[2])


def rate(times, column, count):
    return count / statistics.median(row[column] for row in times) / 1e9


def check(good, what):
    if not good:
        sys.exit("python_ways: %s is wrong" % what)


def draw(random, dtype, count):
    return random.standard_normal(count).astype(dtype) if dtype[0] == "f" else random.integers(-1000, 1000, count).astype(dtype)


def masks(random, rounds):
    print("| type | size | op | masked, GB/s | share of the plain op |\n| --- | --- | --- | --- | --- |")
    for dtype in ("f4", "f8", "f2", "i4"):
        size = int(dtype[1])
        for name, nbytes, calls in SIZES:
            a, mask = draw(random, dtype, nbytes // size), random.random(nbytes // size) < 0.5
            for op in (cured.sum, cured.max, cured.sumsq):
                check(op(a, where=mask) == op(a[mask]), "%s under a mask" % op.__name__)
                times = turns((lambda: op(a), lambda: op(a, where=mask)), rounds, calls)
                print("| {} | {} | {} | {:.1f} | {} |".format(dtype, name, op.__name__, rate(times, 1, nbytes + mask.size),
                                                            ratio(times, 0, 1, (size + 1) / size)), flush=True)


def segments(random, rounds):
    print("\n| type | segments of | share of the plain sum | × reduceat |\n| --- | --- | --- | --- |")
    for dtype in ("f4", "f8"):
        a = draw(random, dtype, SIZES[1][1] // int(dtype[1]))
        for length in (32, 256, 1024):
            offsets = numpy.arange(0, a.size + 1, length)
            out = numpy.empty(a.size // length)
            cured.sum(a, offsets=offsets, out=out)
            check(out[7] == math.fsum(a[7 * length:8 * length]), "a sum by offsets")
            times = turns((lambda: cured.sum(a), lambda: cured.sum(a, offsets=offsets, out=out),
                           lambda: numpy.add.reduceat(a, offsets[:-1])), rounds)
            print("| {} | {:,} | {} | {} |".format(dtype, length, ratio(times, 0, 1), ratio(times, 2, 1)), flush=True)


def pairs(random, rounds):
    print("\n| type | dot, GB/s | share of reading both | × np.dot |\n| --- | --- | --- | --- |")
    for dtype in ("f4", "f8"):
        a, b = (draw(random, dtype, SIZES[1][1] // int(dtype[1])) for _ in range(2))
        if dtype == "f4":
            check(cured.dot(a, b) == cured.sum(a.astype("f8") * b), "dot")
        times = turns((lambda: cured.dot(a, b), lambda: numpy.dot(a, b), lambda: (cured.max(a), cured.max(b))), rounds)
        print("| {} | {:.1f} | {} | {} |".format(dtype, rate(times, 0, 2 * a.nbytes), ratio(times, 2, 0), ratio(times, 1, 0)), flush=True)


def main():
    gc.disable()
    rounds, random = int(sys.argv[1]) if len(sys.argv) > 1 else 11, numpy.random.default_rng(1)
    print("%s, numpy %s, cured %s, load %s" % (os.uname().machine, numpy.__version__, cured.__version__, os.getloadavg()))
    for part in (masks, segments, pairs):
        part(random, rounds)


if __name__ == "__main__":
    main()
