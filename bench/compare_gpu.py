#!/usr/bin/env python3
"""compare_gpu: one of the ways to sum an array of float32 that lies in GPU memory, for scripts/compare, which keeps one process for each way.

For each line "BYTES SECONDS" it makes the array in GPU memory, calls for that long, and answers "MICROSECONDS ANSWER": the median of a
call, which ends with the sum in a Python float, and that sum.

usage: compare_gpu.py torch | cupy | cured ADDRESS
Exit status 2: the library is not here, or it finds no GPU.
"""
import statistics
import sys
import time


def tensors():
    import torch
    if not torch.cuda.is_available():
        sys.exit(2)

    def make(n):
        t = torch.full((n,), 0.1, dtype=torch.float32, device="cuda")
        t[0], t[-1] = 1e8, -1e8
        torch.cuda.synchronize()
        return t
    return make


def arrays():
    import cupy
    cupy.cuda.runtime.getDeviceCount()

    def make(n):
        a = cupy.full(n, 0.1, dtype="f4")
        a[0], a[-1] = 1e8, -1e8
        cupy.cuda.get_current_stream().synchronize()
        return a
    return make


def way(words):
    """(makes an array, sums it)"""
    if words[0] == "torch":
        return tensors(), lambda t: t.sum().item()
    if words[0] == "cupy":
        return arrays(), lambda a: a.sum().item()
    import cured
    return tensors(), cured.Client(words[1]).sum


def main(words):
    try:
        make, add = way(words)
    except Exception as error:  # of each library its own kind, where there is no GPU
        print("compare_gpu: %s: %s" % (words[0], error), file=sys.stderr)
        sys.exit(2)
    print("ready", flush=True)
    for line in sys.stdin:
        size, seconds = int(line.split()[0]), float(line.split()[1])
        array, times = make(size // 4), []
        for _ in range(20):
            answer = add(array)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < 10:
            start = time.perf_counter()
            answer = add(array)
            times.append(time.perf_counter() - start)
        print("%.2f %.17g" % (statistics.median(times) * 1e6, answer), flush=True)
        del array


if __name__ == "__main__":
    main(sys.argv[1:])
