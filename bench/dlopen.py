#!/usr/bin/env python3
"""dlopen: what loading a library costs a process that has its dependencies already: medians of loads that take turns.

usage: bench/dlopen.py LIBRARY...      such as build/cpu-only/lib/libcured.so and one built with -DCURED_EMBEDDED=OFF
"""
import _ctypes
import os
import statistics
import sys
import time

ROUNDS = 201


def load(library):
    begin = time.perf_counter()
    handle = _ctypes.dlopen(library, os.RTLD_NOW | os.RTLD_LOCAL)
    us = (time.perf_counter() - begin) * 1e6
    _ctypes.dlclose(handle)
    return us


def main():
    libraries = [os.path.abspath(path) for path in sys.argv[1:]]
    if not libraries:
        sys.exit(__doc__.strip().split("\n")[-1])
    _ctypes.dlopen("libm.so.6", os.RTLD_NOW)
    times = {library: [] for library in libraries}
    for _ in range(ROUNDS):
        for library in libraries:
            times[library].append(load(library))
    for library in libraries:
        cuts = statistics.quantiles(times[library], n=10)
        print("%s: %.1f µs (%.1f to %.1f)" % (os.path.relpath(library), cuts[4], cuts[0], cuts[8]))


if __name__ == "__main__":
    main()
