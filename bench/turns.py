#!/usr/bin/env python3
"""turns: how long the daemon's loop stays away from its sockets while clients ask for what costs it most.

Each load is a few processes that send the same bytes again and again and read what comes: INFO, merges of 1,024 ranges, calls of 18
ops, answers without end. The daemon counts its turns (cured_loop_turn_seconds); the difference over the load is shown, beside the
round trip of a neighbour's 4 KiB, which is checked. Turns are of wall time: on a busy machine the loop's thread may be away in one.

usage: turns.py BIN [--seconds N] [--processes N] [--rounds N]      BIN has cured
"""
import argparse
import multiprocessing
import os
import re
import select
import socket
import statistics
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))
import cured_wire as wire  # noqa: E402
from admin_client import metrics  # noqa: E402
from connection import Connection  # noqa: E402
from cured_daemon import Daemon  # noqa: E402

OPS = list(wire.OPS)[:18]
DEPTH = 64  # calls that a client sends at a time


def calls(message, data=b""):
    """DEPTH calls and a credit without end for each, so that nothing waits for this client; a function of the first one's stream."""
    def at(first):
        out = bytearray()
        for stream in range(first, first + DEPTH):
            out += wire.frame(wire.CALL, stream, message, flags=0 if data else wire.END)
            out += wire.frame(wire.DATA, stream, data, flags=wire.END) if data else b""
            out += wire.frame(wire.CREDIT, stream, wire.credit_message(1 << 40))
        return bytes(out)
    return at


def ranges(connection, first):
    """A record of 512 ranges, none beside another."""
    parts = [connection.stream("u8", ["count"], b"\1", partial=True, first=at).partial for at in range(first, first + 2048, 4)]
    partial = connection.merge(["count"], parts, partial=True).partial
    return len(partial).to_bytes(4, "little") + partial


def loads(address):
    """Names, and what each process sends at a time; None: nothing."""
    with Connection(address) as c:
        records = ranges(c, 0) + ranges(c, 2)
    many = wire.reduce_message("i32", OPS, wire.stream_input(1024))
    rows = wire.reduce_message("u8", ["any"], wire.stream_input(65536), axis=(65536, 1, 1))
    return [("nothing", None),
            ("INFO", calls(wire.call_message(info=True))),
            ("merges of 1,024 ranges", calls(wire.call_message(merge=wire.merge_message(["count"], len(records))), records)),
            ("%d ops of 1 KiB" % len(OPS), calls(wire.call_message(reduce=many), bytes(1024))),
            ("65,536 answers each", calls(wire.call_message(reduce=rows), bytes(65536)))]


def ends_in(came):
    """Streams that end in these bytes, and how many bytes those frames have."""
    at = ends = 0
    while len(came) - at >= 16:
        length = int.from_bytes(came[at + 12:at + 16], "little")
        if len(came) - at < 16 + length:
            break
        kind, flags = came[at + 3], came[at + 4]
        if kind == wire.STATUS:
            sys.exit("turns: %r" % wire.Status(bytes(came[at + 16:at + 16 + length])))
        ends += bool(kind == wire.RESULT and flags & wire.END)
        at += 16 + length
    return ends, at


def flood(path, make, seconds, done):
    """Sends and reads without a pause; done gets the number of calls that were answered."""
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    s.setblocking(False)
    out, came, stream, over, calls_made = wire.frame(wire.HELLO, payload=wire.hello_message()), bytearray(), 1, DEPTH, 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if over == DEPTH:
            out, over, stream = out + make(stream), 0, stream + DEPTH
        readable, writable, _ = select.select([s], [s] if out else [], [], 0.1)
        if writable:
            out = out[s.send(out[:1 << 20]):]
        if readable:
            got = s.recv(1 << 20)
            if not got:
                sys.exit("turns: the daemon ended the connection")
            came += got
            ends, used = ends_in(came)
            del came[:used]
            over, calls_made = over + ends, calls_made + ends
    done.put(calls_made)


def turns(admin):
    """Turns by the upper edge of their bucket in seconds, not summed up."""
    found = sorted((float(match[1]), value) for match, value in
                   ((re.fullmatch(r'cured_loop_turn_seconds_bucket\{le="(.+)"\}', name), value) for name, value in metrics(admin).items())
                   if match)
    return {edge: count - (found[i - 1][1] if i else 0) for i, (edge, count) in enumerate(found)}


def quantile(counts, share):
    """The upper edge of the bucket in which it lies; 1 of all counts: the longest."""
    left = share * sum(counts.values())
    for edge, count in sorted(counts.items()):
        left -= count
        if count and left <= 1e-9:
            return edge
    return 0.0


def measure(daemon, admin, make, arguments):
    """Turns of the loop, a neighbour's round trips and the calls of a load."""
    queue, array = multiprocessing.Queue(), bytes(range(256)) * 16
    path = daemon.address.split(":", 1)[1]
    floods = [multiprocessing.Process(target=flood, args=(path, make, arguments.seconds, queue)) for _ in range(arguments.processes)]
    before, took = turns(admin), []
    for process in floods if make else ():
        process.start()
    until = time.monotonic() + arguments.seconds
    with Connection(daemon.address) as c:
        while time.monotonic() < until:
            began = time.perf_counter()
            answer = c.inline("u8", ["sum"], array)
            took.append(time.perf_counter() - began)
            if int.from_bytes(answer.results[0].value, "little") != sum(array):
                sys.exit("turns: the neighbour's answer is wrong")
            time.sleep(0.001)
    made = sum(queue.get() for _ in floods) if make else 0
    for process in floods if make else ():
        process.join()
    after = turns(admin)
    return {edge: after[edge] - before[edge] for edge in after}, sorted(took), made


def edge(seconds):
    return "more" if seconds == float("inf") else "%.3g" % (seconds * 1e3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bin", help="has cured")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(folder, program=os.path.abspath(os.path.join(arguments.bin, "cured")), admin="unix:admin.sock")
        admin, seen = "unix:%s/admin.sock" % folder, {}
        for _ in range(arguments.rounds):
            for name, make in loads(daemon.address):
                seen.setdefault(name, []).append(measure(daemon, admin, make, arguments))
        daemon.stop()
    print("turns.py %s; %d cores, load %.1f" % (" ".join(sys.argv[1:]), os.cpu_count(), os.getloadavg()[0]))
    print("%d processes, %d rounds of %g s; turns in ms: the upper edges of buckets; the neighbour's round trips in ms: medians of rounds" %
          (arguments.processes, arguments.rounds, arguments.seconds))
    print("%-24s %10s %10s %8s %8s %8s   %s" % ("load", "calls/s", "turns", "p50", "p99.9", "longest", "neighbour p50, p99"))
    for name, rounds in seen.items():
        counts = {e: sum(r[0][e] for r in rounds) for e in rounds[0][0]}
        near = [statistics.median(r[1][int(share * (len(r[1]) - 1))] for r in rounds) * 1e3 for share in (0.5, 0.99)]
        print("%-24s %10.0f %10.0f %8s %8s %8s   %.3f, %.3f" % (name, statistics.median(r[2] for r in rounds) / arguments.seconds,
              sum(counts.values()), edge(quantile(counts, 0.5)), edge(quantile(counts, 0.999)), edge(quantile(counts, 1)), *near))


if __name__ == "__main__":
    main()
