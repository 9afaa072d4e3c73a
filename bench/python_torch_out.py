#!/usr/bin/env python3
"""python_torch_out: f32 sums of rows of a CUDA tensor of torch, by a daemon: answers into a tensor (out=), answers as an array of NumPy,
and torch's own sum into a tensor. All take turns; a round gives a ratio. Prints a table for docs/BENCHMARKS-GPU.md. cured-bench
floors --only placed has the bare kernel beside it.

usage: PYTHONPATH=BUILD/python bench/python_torch_out.py BUILD/bin/cured [MiB] [rounds]
"""
import statistics
import subprocess
import sys
import tempfile
import time

import torch

import cured

WAYS = ("torch.sum, into a tensor of f32", "cured, into a tensor of f64", "cured, into a tensor of f32", "cured, an array")


def connect(daemon, folder):
    address = "unix:%s/cured.sock" % folder
    process = subprocess.Popen([daemon, "--listen", address], stderr=subprocess.DEVNULL)
    client = cured.Client(address)
    while True:
        try:
            client.sum(b"\1")
            return process, client
        except ConnectionError:
            time.sleep(0.01)


def measure(function):
    torch.cuda.synchronize()
    begin = time.perf_counter_ns()
    function()
    torch.cuda.synchronize()
    return time.perf_counter_ns() - begin


def main():
    mib, count = (int(word) for word in sys.argv[2:4] + ["1024", "30"][len(sys.argv) - 2:])
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    with tempfile.TemporaryDirectory() as folder:
        process, client = connect(sys.argv[1], folder)
        try:
            for n in (1024, 32):
                rows = (mib << 20) // 4 // n
                a = torch.randn(rows, n, device="cuda")
                own, wide, same = (torch.empty(rows, dtype=t, device="cuda") for t in (torch.float32, torch.float64, torch.float32))
                arrays = []
                ways = (lambda: torch.sum(a, 1, out=own), lambda: client.sum(a, axis=1, out=wide), lambda: client.sum(a, axis=1, out=same),
                        lambda: arrays.append(client.sum(a, axis=1)))
                taken = []
                for _ in range(count + 2):
                    arrays.clear()
                    taken.append([measure(way) for way in ways])
                taken = taken[2:]
                exact = torch.from_numpy(arrays[0])
                host = a[:1000].cpu().numpy()
                if not torch.equal(wide.cpu(), exact) or not torch.equal(same.cpu(), exact.to(torch.float32)):
                    sys.exit("python_torch_out: an answer is wrong")
                if not (cured.sum(host, axis=1) == arrays[0][:1000]).all():
                    sys.exit("python_torch_out: an answer is not the host's")
                print("\nrows of %d, %d MiB, %d rounds\n\n| way | us | GB/s | times torch's speed | middle half |\n| --- | --- | --- | --- | --- |"
                      % (n, mib, count))
                for i, way in enumerate(WAYS):
                    us = statistics.median(t[i] for t in taken) / 1e3
                    ratios = statistics.quantiles([t[0] / t[i] for t in taken], n=4)
                    print("| %s | %.0f | %.0f | %.2f | %.2f … %.2f |" % (way, us, (mib << 20) / us / 1e3, ratios[1], ratios[0], ratios[2]))
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
