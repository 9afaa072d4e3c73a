#!/usr/bin/env python3
"""python_torch: tensors in GPU memory, reduced by torch itself and by daemons, from one Python program: medians of calls in turns.

A daemon that never looks for work before it sleeps (spin_us 0), one as it comes, and one that looks for a millisecond take turns
with torch. Each has some calls in a row, because the GPU takes a while to go from one process to another. Answers are checked
before anything is timed. Prints tables for docs/BENCHMARKS.md.

usage: PYTHONPATH=BUILD/python bench/python_torch.py DAEMON [seconds a row]
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import cured

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
DAEMONS = [("spin_us 0", ["--spin-us", "0"]), ("default", []), ("spin_us 1000", ["--spin-us", "1000"])]
SIZES = [4 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB, 256 * MIB, GIB, 4 * GIB]
SETS = [["sum"], ["var"], ["max"], ["count_nonzero"], ["mean", "var"], ["mean", "var", "min", "max"], ["sum", "max"],
        ["norm2", "max"], ["max", "count_nan"]]


def name_of(size):
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return "%d %s" % (size // unit, name)
    return "%d B" % size


class Daemons:
    def __init__(self, program, folder):
        self.clients, self.processes = [], []
        for number, (_, options) in enumerate(DAEMONS):
            address = "unix:%s/%d.sock" % (folder, number)
            self.processes.append(subprocess.Popen([program, "--listen", address, "--log-level", "warn"] + options))
            while not os.path.exists(address[5:]) and self.processes[-1].poll() is None:
                time.sleep(0.05)
            self.clients.append(cured.Client(address))

    def stop(self):
        for process in self.processes:
            process.terminate()
            process.wait()


def in_turns(functions, seconds, least=5):
    """Median, least and most µs a call of the turns of each function; the first calls of a turn are not counted."""
    times = [[] for _ in functions]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < least:
        for function, kept in zip(functions, times):
            for _ in range(10):
                function()
            calls, begin = [], time.perf_counter()
            while time.perf_counter() - begin < 0.03 or len(calls) < 10:
                start = time.perf_counter()
                function()
                calls.append(time.perf_counter() - start)
            kept.append(statistics.median(calls) * 1e6)
    return [(statistics.median(kept), min(kept), max(kept)) for kept in times]


def main():
    program, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as folder:
        daemons = Daemons(program, folder)
        try:
            measure(daemons.clients, seconds)
        finally:
            daemons.stop()


def measure(clients, seconds):
    print("torch %s, %s, %d cores\n" % (torch.__version__, torch.cuda.get_device_name(), os.cpu_count()))
    print("| sum of f32 | torch, µs | %s |" % " | ".join("%s, µs (least … most), × torch" % name for name, _ in DAEMONS))
    print("| --- | --- |%s" % (" --- |" * len(DAEMONS)))
    for size in SIZES:
        t = torch.randint(-1000, 1000, (size // 4,), device="cuda", dtype=torch.int32).to(torch.float32)
        torch.cuda.synchronize()
        exact = int(t.to(torch.float64).sum().item()) if size <= GIB else None
        for client in clients:
            answer = client.sum(t)
            if exact is not None and answer != exact:
                sys.exit("python_torch: the sum of %s is %r, %r is right" % (name_of(size), answer, exact))
        rows = in_turns([lambda: t.sum().item()] + [lambda c=c: c.sum(t) for c in clients], seconds)
        own = rows[0][0]
        print("| %s | %.1f (%.1f … %.1f) | %s |" % ((name_of(size),) + rows[0] + (
            " | ".join("%.1f (%.1f … %.1f), %.2f" % (m, low, high, m / own) for m, low, high in rows[1:]),)), flush=True)
    print("\n| sets of ops, 4 GiB of f32, default | µs (least … most) |\n| --- | --- |")
    client = clients[1]
    rows = in_turns([lambda ops=ops: client.reduce(t, ops) for ops in SETS], seconds)
    for ops, row in zip(SETS, rows):
        print("| %s | %.1f (%.1f … %.1f) |" % (("+".join(ops),) + row))


if __name__ == "__main__":
    main()
