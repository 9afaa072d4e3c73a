#!/usr/bin/env python3
"""python_cores: sums of float32 on the heap by all cores and by one, beside torch and NumPy where they are there: back to back, and after
pauses of 10 ms, in which threads that look for work go to sleep.

Answers are checked before anything is timed: both sums of cured must be that of math.fsum. Functions take turns in random order, a batch each. Prints the
machine, the command and a table for docs/BENCHMARKS.md: median µs and, in brackets, the middle half; then cured over torch.

usage: PYTHONPATH=BUILD/python bench/python_cores.py [SECONDS a row, 2]
"""
import gc
import math
import os
import platform
import random
import statistics
import sys
import time

import numpy
import cured

try:
    import torch
except ImportError:
    torch = None

KIB, MIB = 1024, 1024 * 1024
SIZES = ((64 * KIB, "64 KiB"), (MIB, "1 MiB"), (4 * MIB, "4 MiB"), (64 * MIB, "64 MiB"), (1024 * MIB, "1 GiB"))
PAUSE_S = 0.01
BATCH_S = 0.004  # so long a function has its turn, back to back


def call_times(function, pause, count):
    times = []
    for _ in range(count):
        if pause:
            time.sleep(PAUSE_S)
        begin = time.perf_counter()
        function()
        times.append((time.perf_counter() - begin) * 1e6)
    return times


def take_turns(functions, pause, seconds):
    """Times of each function's calls. After another's turn its first two calls count for nothing, where there are no pauses."""
    begin = time.perf_counter()
    [function() for function in functions]
    one = (time.perf_counter() - begin) / len(functions)
    count = 1 if pause else max(3, int(BATCH_S / one))
    kept = [[] for _ in functions]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(kept[0]) < 5:
        for function, times in random.sample(list(zip(functions, kept)), len(functions)):
            times += call_times(function, pause, count) if pause else call_times(function, pause, count + 2)[2:]
    return kept


def number(us):
    return "%.1f" % us if us < 100 else "{:,.0f}".format(us)


def cell(times):
    low, middle, high = statistics.quantiles(times, n=4)
    return "%s (%s to %s)" % (number(middle), number(low), number(high))


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())
    names = ["%s=%s" % (n, os.environ[n]) for n in ("CURED_NUM_THREADS", "OMP_NUM_THREADS") if n in os.environ]
    return "%s, %d cores allowed, load %.1f%s" % (model, len(os.sched_getaffinity(0)), os.getloadavg()[0],
                                                  "".join(", " + name for name in names))


def main():
    gc.disable()
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2
    one = cured.Client("embedded:", threads=1)
    print(machine())
    print("command: %s" % " ".join([os.path.basename(sys.executable)] + sys.argv))
    print("cured %s, NumPy %s, torch %s\n" % (cured.__version__, numpy.__version__,
                                              "%s with %d threads" % (torch.__version__, torch.get_num_threads()) if torch else "none"))
    print("| sum of f32 | calls | cured, µs | cured, one thread | torch | NumPy | cured / torch | one thread / cured |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for size, name in SIZES:
        part = numpy.random.default_rng(1).standard_normal(min(size, 64 * MIB) // 4, dtype="f4")
        a = numpy.tile(part, size // part.nbytes)  # a power of two, which rounds as one does
        if not cured.sum(a) == one.sum(a) == math.fsum(part) * (size // part.nbytes):
            sys.exit("python_cores: the sum of %s is wrong" % name)
        functions = [lambda: cured.sum(a), lambda: one.sum(a), lambda: numpy.sum(a)]
        if torch:
            t = torch.from_numpy(a)
            functions.append(lambda: torch.sum(t))
        for pause in (False, True):
            times = take_turns(functions, pause, seconds)
            middles = [statistics.median(kept) for kept in times]
            print("| %s | %s | %s | %s | %s | %s | %s | %.2f |" % (
                name, "after 10 ms" if pause else "back to back", cell(times[0]), cell(times[1]),
                cell(times[3]) if torch else "", cell(times[2]), "%.2f" % (middles[0] / middles[3]) if torch else "",
                middles[1] / middles[0]), flush=True)
    print("\nthreads of this process: %d" % len(os.listdir("/proc/self/task")))


if __name__ == "__main__":
    main()
