#!/usr/bin/env python3
"""daemons: what several daemons on one machine answer together, each with a loop of its own, beside one: the most that several loops in one
daemon could bring.

Each row has so many daemons, each at a socket of its own, and so many processes of `cured-bench load` that share connections and calls
among them; each asks all daemons. "apart" gives each daemon cores of its own and the load the others; "shared" gives everybody all. Every
answer is checked. Rows take turns in random order. Beside the answers stand how busy the busiest thread of a daemon and of the load was, in
per cent of a core, so that one sees who is the bound. Prints the machine, the command and a table.

usage: bench/daemons.py BIN [--daemons 1,2,4] [--connections 50,800] [--layouts shared,apart] [--generators 4x2,1x4] [--rounds N, 5]
       [--seconds S, 0.6] [--mix sum:f32:4K]      (generators: PROCESSESxTHREADS)
"""
import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TICKS = os.sysconf("SC_CLK_TCK")
FAILED = "daemons: a generator ended with status %d: %s"


def busy(pids):
    """Seconds of CPU of each thread."""
    out = {}
    for pid in pids:
        for task in os.listdir("/proc/%d/task" % pid):
            try:
                with open("/proc/%d/task/%s/stat" % (pid, task), encoding="utf-8") as file:
                    words = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            out[task] = (int(words[11]) + int(words[12])) / TICKS
    return out


def busiest(before, after, seconds):
    return max([after[task] - before.get(task, 0) for task in after] or [0]) / seconds * 100


class Daemons:
    """So many daemons, until stopped. Cores: those of the i-th, or None for all."""

    def __init__(self, words, folder, count, cores):
        self.addresses, self.processes = [], []
        for i in range(count):
            path = os.path.join(folder, "%d-%d.sock" % (count, i))
            allowed = cores[i] if cores else os.sched_getaffinity(0)
            self.processes.append(subprocess.Popen([os.path.join(words.bin, "cured"), "--listen", "unix:" + path, "--log-level", "error", "--backend",
                                                    "cpu"], preexec_fn=lambda own=allowed: os.sched_setaffinity(0, own)))
            self.addresses.append("unix:" + path)
        for process, address in zip(self.processes, self.addresses):
            while not os.path.exists(address[5:]) and process.poll() is None:
                time.sleep(0.01)

    def pids(self):
        return [process.pid for process in self.processes]

    def stop(self):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.wait()


def measure(words, folder, daemons, connections, generators, cores):
    """Right answers a second of all, the p99 in µs of the slowest generator, and how busy the busiest threads were."""
    processes, threads = generators
    shares = [connections // processes + (i < connections % processes) for i in range(processes)]
    bench, started = os.path.join(words.bin, "cured-bench"), []
    for i, share in enumerate(shares):
        command = [bench, "load", "--connections", str(share), "--concurrency", str(share), "--threads", str(min(threads, share)), "--seconds",
                   str(words.seconds), "--warm-up", "0.3", "--mix", words.mix, "--json", os.path.join(folder, "%d.json" % i)]
        for k in range(len(daemons.addresses)):  # each generator begins with another daemon
            command += ["--connect", daemons.addresses[(k + i) % len(daemons.addresses)]]
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        preexec_fn=lambda: os.sched_setaffinity(0, cores)))
    time.sleep(0.35)
    before, begin = (busy(daemons.pids()), busy([p.pid for p in started])), time.perf_counter()
    time.sleep(words.seconds * 0.8)
    seconds = time.perf_counter() - begin
    after = busy(daemons.pids()), busy([p.pid for p in started])
    for process in started:
        error = process.communicate()[1]
        if process.returncode != 0:
            sys.exit(FAILED % (process.returncode, error.decode()))
    answers, p99 = 0, 0
    for i in range(processes):
        with open(os.path.join(folder, "%d.json" % i), encoding="utf-8") as file:
            row = json.load(file)["rows"][0]
        answers += row["all"]["per_s"]
        p99 = max(p99, row["all"]["latency_ns"]["p99"] / 1e3)
    return answers, p99, busiest(before[0], after[0], seconds), busiest(before[1], after[1], seconds)


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "?")
    return "%s, %d cores allowed, load %.1f" % (model, len(os.sched_getaffinity(0)), os.getloadavg()[0])


def numbers(text):
    return [int(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--daemons", type=numbers, default=[1, 2, 4])
    parser.add_argument("--connections", type=numbers, default=[50, 800])
    parser.add_argument("--layouts", default="shared,apart")
    parser.add_argument("--generators", default="4x2,1x4")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.6)
    parser.add_argument("--mix", default="sum:f32:4K")
    words = parser.parse_args()
    print(machine())
    print("command: %s\n" % " ".join([os.path.basename(sys.executable)] + sys.argv))
    all_cores = sorted(os.sched_getaffinity(0))
    rows = [(count, layout, connections, tuple(numbers(generators.replace("x", ",")))) for count in words.daemons
            for layout in words.layouts.split(",") for connections in words.connections for generators in words.generators.split(",")]
    each = max(len(all_cores) // 2 // max(words.daemons), 1)
    if "apart" in words.layouts and len(all_cores) < 2 * max(words.daemons):
        sys.exit("daemons: --layouts apart with %d daemons takes %d cores, and %d are allowed" % (
            max(words.daemons), 2 * max(words.daemons), len(all_cores)))
    kept = {row: [] for row in rows}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(words.rounds):
            for count, layout in random.sample(sorted({row[:2] for row in rows}), len({row[:2] for row in rows})):
                own = [set(all_cores[i * each:(i + 1) * each]) for i in range(count)] if layout == "apart" else None
                left = set(all_cores) - set().union(*own) if own else set(all_cores)
                daemons = Daemons(words, folder, count, own)
                for row in rows:
                    if row[:2] == (count, layout):
                        kept[row].append(measure(words, folder, daemons, row[2], row[3], left))
                daemons.stop()
    print("| connections | daemons | cores | generators | answers/s | least … most | of one daemon's best | p99, µs | busiest thread of a daemon | "
          "of the load |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    best = {c: max([statistics.median(f[0] for f in kept[row]) for row in rows if row[0] == 1 and row[2] == c] or [0]) for c in words.connections}
    for row in sorted(rows, key=lambda r: (r[2], r[0], r[1], r[3])):
        figures = list(zip(*kept[row]))
        middle = statistics.median(figures[0])
        print("| %d | %d | %s | %d × %d threads | %s | %s … %s | %s | %.0f | %.0f %% | %.0f %% |" % (
            row[2], row[0], row[1], *row[3], "{:,.0f}".format(middle), "{:,.0f}".format(min(figures[0])), "{:,.0f}".format(max(figures[0])),
            "%.2f" % (middle / best[row[2]]) if best[row[2]] else "", *(statistics.median(f) for f in figures[1:])))


if __name__ == "__main__":
    main()
