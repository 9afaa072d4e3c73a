#!/usr/bin/env python3
"""python_out: f32 sums of rows of a kept region, by a daemon of one worker: answers through the socket, and answers written into
shared memory (out=), beside the same fold in this process with one thread. All take turns; a round gives a ratio. Prints tables for
docs/BENCHMARKS.md: of the time that passed, and of the CPU's time of both processes, which a busy machine disturbs less.

usage: PYTHONPATH=BUILD/python bench/python_out.py BUILD/bin/cured [MiB] [rounds]
"""
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import cured

WAYS = ("in this process", "through the socket", "into shared memory")


def cpu_ns(pid):
    """What all threads of a process have run, in nanoseconds, by the kernel's clock for it (clock_getcpuclockid). What /proc says
    of a thread moves only when the thread gives up its core."""
    return time.clock_gettime_ns(~pid << 3 | 2)


def connect(daemon, folder, *options):
    """A daemon, and a client of it."""
    address = "unix:%s/cured.sock" % folder
    process = subprocess.Popen([daemon, "--listen", address, *options], stderr=subprocess.DEVNULL)
    client = cured.Client(address)
    while True:
        try:
            client.sum(b"\1")
            return process, client
        except ConnectionError:
            time.sleep(0.01)


def measure(function, pids):
    cpu, begin = sum(map(cpu_ns, pids)), time.perf_counter_ns()
    function()
    passed = time.perf_counter_ns() - begin
    return passed, sum(map(cpu_ns, pids)) - cpu


def table(title, nbytes, rounds):
    """rounds: for each, nanoseconds by way."""
    print("\n| %s | GB/s | of the fold | middle half |\n| --- | --- | --- | --- |" % title)
    for i, way in enumerate(WAYS):
        ratios = statistics.quantiles([r[0] / r[i] for r in rounds], n=4)
        print("| %s | %.2f | %.2f | %.2f … %.2f |" % (way, nbytes / statistics.median(r[i] for r in rounds), ratios[1], ratios[0], ratios[2]))


def main():
    daemon = sys.argv[1]
    mib, count = (int(word) for word in sys.argv[2:4] + ["256", "15"][len(sys.argv) - 2:])
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        process, client = connect(daemon, folder, "--cpu-workers", "1")
        pids = (os.getpid(), process.pid)
        try:
            for n in (1024, 32):
                rows = (mib << 20) // 4 // n
                a = cured.empty((rows, n), numpy.float32)
                a[:] = numpy.random.default_rng(1).standard_normal((1, n), numpy.float32)
                heap, out = numpy.empty(rows), cured.empty(rows)
                here = cured.Client("embedded:", threads=1)
                ways = (lambda: here.sum(a, axis=1, out=heap), lambda: client.sum(a, axis=1), lambda: client.sum(a, axis=1, out=out))
                taken = [[measure(way, pids) for way in ways] for _ in range(count + 1)][1:]
                if not (heap == out).all() or heap[0] != cured.sum(a[0]):
                    sys.exit("python_out: an answer is wrong")
                print("\nrows of %d, %d MiB, %d rounds" % (n, mib, count))
                table("time", a.nbytes, [[passed for passed, _ in r] for r in taken])
                table("CPU", a.nbytes, [[cpu for _, cpu in r] for r in taken])
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
