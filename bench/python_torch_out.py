#!/usr/bin/env python3
"""python_torch_out: f32 sums of rows of a CUDA tensor of torch, by a daemon: answers into a tensor (out=), answers as an array of NumPy,
and torch's own sum into a tensor. In a round each way has its turn: some calls in a row, of which the first brings the GPU from one
process to the other and is counted by itself ("after torch's work"). Prints tables for docs/BENCHMARKS-GPU.md; a round gives a ratio.
cured-bench floors --only placed has the bare kernel.

usage: PYTHONPATH=BUILD/python bench/python_torch_out.py BUILD/bin/cured [MiB] [rounds]
"""
import statistics
import sys
import tempfile
import time

import torch

import cured
from python_out import connect

CALLS = 6
WAYS = ("torch.sum, into a tensor of f32", "cured, into a tensor of f64", "cured, into a tensor of f32", "cured, an array")


def measure(function, waits):
    begin = time.perf_counter_ns()
    function()
    if waits:  # torch's functions return before the GPU is done
        torch.cuda.synchronize()
    return time.perf_counter_ns() - begin


def turn(function, own):
    """Nanoseconds of the first call after work of torch's, and of those that follow."""
    own()
    torch.cuda.synchronize()
    taken = [measure(function, function is own) for _ in range(CALLS)]
    return taken[0], statistics.median(taken[1:])


def main():
    mib, count = (int(word) for word in sys.argv[2:4] + ["1024", "30"][len(sys.argv) - 2:])
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    with tempfile.TemporaryDirectory() as folder:
        process, client = connect(sys.argv[1], folder)
        try:
            for n in (1024, 256, 32):
                rows = (mib << 20) // 4 // n
                a = torch.randn(rows, n, device="cuda")
                own, wide, same = (torch.empty(rows, dtype=t, device="cuda") for t in (torch.float32, torch.float64, torch.float32))
                arrays = []
                ways = (lambda: torch.sum(a, 1, out=own), lambda: client.sum(a, axis=1, out=wide), lambda: client.sum(a, axis=1, out=same),
                        lambda: arrays.append(client.sum(a, axis=1)))
                taken = []
                for _ in range(count + 1):
                    wide.zero_()
                    same.zero_()
                    arrays.clear()
                    taken.append([turn(way, ways[0]) for way in ways])
                taken = taken[1:]
                exact = torch.from_numpy(arrays[0])
                host = a[:1000].cpu().numpy()
                if not torch.equal(wide.cpu(), exact) or not torch.equal(same.cpu(), exact.to(torch.float32)):
                    sys.exit("python_torch_out: an answer is wrong")
                if not (cured.sum(host, axis=1) == arrays[0][:1000]).all():
                    sys.exit("python_torch_out: an answer is not the host's")
                print("\nrows of %d, %d MiB, %d rounds\n\n| way | us | GB/s | times torch's speed | middle half | us after torch's work |\n"
                      "| --- | --- | --- | --- | --- | --- |" % (n, mib, count))
                for i, way in enumerate(WAYS):
                    first, us = (statistics.median(t[i][k] for t in taken) / 1e3 for k in (0, 1))
                    ratios = statistics.quantiles([t[0][1] / t[i][1] for t in taken], n=4)
                    print("| %s | %.0f | %.0f | %.2f | %.2f … %.2f | %.0f |" % (way, us, (mib << 20) / us / 1e3, ratios[1], ratios[0], ratios[2], first))
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
