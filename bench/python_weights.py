#!/usr/bin/env python3
"""python_weights: `cured-client weights` of a checkpoint in the page cache beside `cured-client describe` of the same bytes as one array:
whole processes, without a daemon and with one.

The checkpoint has bf16 tensors of the sizes that a transformer has, in one file. Before anything is timed, what weights answers of the
whole file is compared with what describe answers of it, and the digests of some tensors with cured.digest of their bytes. Ways take turns
in random order. Prints the machine, the command and a table: median ms, the least and the most, and the ratio to describe by the same door.

usage: PYTHONPATH=BUILD/python bench/python_weights.py BIN [--gib N, 4] [--tensors N, 300] [--rounds N, 7] [--dir DIR, /dev/shm] [--only TEXT]
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import cured


def checkpoint(path, gib, tensors):
    """Writes the file. Returns the names with their places, and where the data begins."""
    shares = numpy.resize([16, 16, 16, 16, 43, 43, 43, 0.01, 0.01], tensors)  # of a layer: attention, MLP, norms
    shares[0] = 4 * shares.max()  # the embedding
    counts = numpy.maximum((shares / shares.sum() * gib * (1 << 29)).astype("i8") // 8 * 8, 8)
    ends = numpy.cumsum(counts * 2).tolist()
    begins = [0] + ends[:-1]
    header = {"t%03d" % i: {"dtype": "BF16", "shape": [n], "data_offsets": [begin, end]}
              for i, (n, begin, end) in enumerate(zip(counts.tolist(), begins, ends))}
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    some = numpy.random.default_rng(1).normal(0, 0.02, (32 << 20) + 8).astype("f4").view("u4")
    block = ((some + 0x8000) >> 16).astype("u2")
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for at in range(0, ends[-1], 64 << 20):
            shift = at >> 26 & 7
            file.write(block[shift:shift + min(64 << 20, ends[-1] - at) // 2].tobytes())
    return [(name, t["data_offsets"]) for name, t in header.items()], 8 + len(text)


def run(words):
    begin = time.perf_counter()
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    took = time.perf_counter() - begin
    if done.returncode != 0:
        sys.exit("python_weights: %s: %s" % (" ".join(words), done.stderr.decode()))
    return took * 1e3, done.stdout.decode()


def check(weights, describe, path, places, data):
    """What one way says of all tensors, and the other of all bytes as one array."""
    rows = json.loads(run(weights + ["--json"])[1])["tensors"]
    whole = json.loads(run(describe + ["--json"])[1])["results"]
    if len(rows) != len(places):
        sys.exit("python_weights: %d rows of %d tensors" % (len(rows), len(places)))
    value = lambda row, op: row["results"][op]["value"]
    if min(value(r, "min") for r in rows) != whole["min"]["value"] or max(value(r, "max") for r in rows) != whole["max"]["value"]:
        sys.exit("python_weights: the extrema of the tensors are not those of the whole")
    content = numpy.memmap(path, "u1", "r")
    for name, (begin, end) in random.Random(1).sample(places, 5):
        true = cured.digest(content[data + begin:data + end])
        if str(true) != str(next(value(r, "digest") for r in rows if r["name"] == name)):
            sys.exit("python_weights: the digest of %s is wrong" % name)


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "?")
    return "%s, %d cores allowed, load %.1f" % (model, len(os.sched_getaffinity(0)), os.getloadavg()[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--gib", type=float, default=4)
    parser.add_argument("--tensors", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dir", default="/dev/shm")
    parser.add_argument("--only", default="", help="doors whose name contains this: alone, daemon")
    words = parser.parse_args()
    client = os.path.join(words.bin, "cured-client")
    print(machine())
    print("command: %s\n" % " ".join([os.path.basename(sys.executable)] + sys.argv))
    with tempfile.TemporaryDirectory(dir=words.dir) as folder:
        path, socket = os.path.join(folder, "model.safetensors"), os.path.join(folder, "cured.sock")
        places, data = checkpoint(path, words.gib, words.tensors)
        elements = places[-1][1][1] // 2
        print("%d tensors of bf16, %.2f GB" % (len(places), elements * 2 / 1e9))
        daemon = subprocess.Popen([os.path.join(words.bin, "cured"), "--listen", "unix:" + socket, "--log-level", "error"])
        try:
            while not os.path.exists(socket) and daemon.poll() is None:
                time.sleep(0.01)
            print("| way | ms | least … most | of describe's |\n| --- | --- | --- | --- |")
            for door, address in (("alone", "embedded:"), ("daemon", "unix:" + socket)):
                if words.only not in door:
                    continue
                end = ["--connect", address, "--no-progress"]
                weights = [client, "weights", path] + end
                one = [path, "--raw", "--offset", str(data), "--count", str(elements), "--dtype", "bf16"] + end
                describe = [client, "describe"] + one
                check(weights, describe, path, places, data)
                ways = {"describe": describe, "weights": weights, "weights, digest alone": weights + ["--ops", "digest"],
                        "weights, max alone": weights + ["--ops", "max"], "weights without digest": weights + [
                            "--ops", "count_nan,count_inf,min,max,mean,std,norm2"], "reduce, digest": [client, "reduce", "--ops", "digest"] + one,
                        "reduce, max": [client, "reduce", "--ops", "max"] + one}
                kept = {way: [] for way in ways}
                for _ in range(words.rounds):
                    for way in random.sample(list(ways), len(ways)):
                        kept[way].append(run(ways[way])[0])
                base = statistics.median(kept["describe"])
                for way, ms in kept.items():
                    print("| %s: %s | %.1f | %.1f … %.1f | %.2f |" % (door, way, statistics.median(ms), min(ms), max(ms),
                                                                     statistics.median(ms) / base), flush=True)
        finally:
            daemon.terminate()
            daemon.wait()


if __name__ == "__main__":
    main()
