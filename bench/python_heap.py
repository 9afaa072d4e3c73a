#!/usr/bin/env python3
"""python_heap: cured beside NumPy on arrays of the heap, in one process and one thread: medians of calls that take turns.

Answers are checked before anything is timed: cured's sum must be that of math.fsum. Prints a table for docs/BENCHMARKS.md.

usage: PYTHONPATH=BUILD/python bench/python_heap.py
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

KIB, MIB = 1024, 1024 * 1024


def take_turns(functions, seconds=1.5, least=7):
    """Median µs a call of each function, measured in turns so that a slow minute of the machine is everybody's."""
    repeats = []
    for function in functions:
        begin = time.perf_counter()
        function()
        repeats.append(max(1, int(0.002 / max(time.perf_counter() - begin, 1e-7))))
    times = [[] for _ in functions]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < least:
        for function, count, kept in zip(functions, repeats, times):
            begin = time.perf_counter()
            for _ in range(count):
                function()
            kept.append((time.perf_counter() - begin) / count * 1e6)
    return [statistics.median(kept) for kept in times]


def number(us):
    return "%.2f" % us if us < 10 else "%.1f" % us if us < 100 else "{:,.0f}".format(us)


def row(name, other, own):
    print("| %s | %s | %s | %.1f |" % (name, number(other), number(own), other / own), flush=True)


def numpy_describe(a):
    return (a.min(), a.max(), a.argmin(), a.argmax(), a.sum(), a.mean(), a.std(), numpy.count_nonzero(a),
            numpy.count_nonzero(numpy.isnan(a)))


def main():
    gc.disable()
    rng = numpy.random.default_rng(1)
    print("cured %s beside NumPy %s, Python %s, one thread\n" % (cured.__version__, numpy.__version__, sys.version.split()[0]))
    print("| f32 | NumPy, µs | cured, µs | × |\n| --- | --- | --- | --- |")
    for size, name in ((4 * KIB, "4 KiB"), (64 * KIB, "64 KiB"), (MIB, "1 MiB"), (64 * MIB, "64 MiB")):
        a = rng.standard_normal(size // 4).astype("f4")
        if cured.sum(a) != math.fsum(a):
            sys.exit("python_heap: the sum of %s is wrong" % name)
        row("sum of " + name, *take_turns([lambda: numpy.sum(a), lambda: cured.sum(a)]))
    wanted, got = numpy_describe(a), cured.describe(a)
    if (got.min, got.max, got.argmin, got.argmax, got.count_nan) != (*wanted[:4], wanted[8]) or got.sum != math.fsum(a):
        sys.exit("python_heap: describe is wrong")
    row("describe of 64 MiB", *take_turns([lambda: numpy_describe(a), lambda: cured.describe(a)], 3))
    m = a.reshape(4096, 4096)
    if cured.sum(m, axis=0)[7] != math.fsum(m[:, 7]):
        sys.exit("python_heap: the sum along axis 0 is wrong")
    row("sum of 64 MiB, axis 0", *take_turns([lambda: numpy.sum(m, axis=0), lambda: cured.sum(m, axis=0)]))
    row("sum of 64 MiB, axis 1", *take_turns([lambda: numpy.sum(m, axis=1), lambda: cured.sum(m, axis=1)]))
    row("sum of 64 MiB, transposed", *take_turns([lambda: numpy.sum(m.T), lambda: cured.sum(m.T)]))
    row("argmax of 64 MiB, transposed", *take_turns([lambda: numpy.argmax(m.T), lambda: cured.argmax(m.T)]))
    half = m[:, ::2]
    row("sum of every second of 64 MiB", *take_turns([lambda: numpy.sum(half), lambda: cured.sum(half)]))


if __name__ == "__main__":
    main()
