#!/usr/bin/env python3
"""tls_paced: what an upload costs the daemon when its client is no faster than the network: one that writes records of 16 KiB at
a steady rate, as the loop of an idle machine sees them.

Daemons take turns. Counted is the CPU time of all threads and, where perf may be used, calls of the kernel; latency is from the
last byte to the answer, which is checked.

usage: tls_paced.py BIN... [--plain] [--rate MB/S] [--kib N] [--calls N] [--rounds N]      BIN has cured
"""
import argparse
import os
import re
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))
import cured_wire as wire  # noqa: E402
import tls_files  # noqa: E402

PIECE, FRAME = 16 * 1024, 1024 * 1024
EVENTS = ["syscalls:sys_enter_epoll_wait", "syscalls:sys_enter_recvfrom", "syscalls:sys_enter_recvmsg", "syscalls:sys_enter_setsockopt",
          "syscalls:sys_enter_futex", "context-switches"]


class Client:
    def __init__(self, port, authority):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if authority:
            self.socket = ssl.create_default_context(cafile=authority).wrap_socket(self.socket, server_hostname="localhost")
        self.buffer, self.stream = bytearray(), 1
        self.socket.sendall(wire.frame(wire.HELLO, payload=wire.hello_message()))
        self.answer(wire.WELCOME)

    def answer(self, kind):
        while True:
            came = wire.take_frame(self.buffer)
            if not came:
                got = self.socket.recv(65536)
                if not got:
                    sys.exit("tls_paced: the daemon ended the connection")
                self.buffer += got
                continue
            del self.buffer[:came[1]]
            if came[0].kind == wire.STATUS:
                sys.exit("tls_paced: %r" % wire.Status(came[0].payload))
            if came[0].kind == kind:
                return came[0].payload

    def upload(self, size, rate):
        """Seconds from the last byte to the answer."""
        head = wire.call_message(reduce=wire.reduce_message("u8", ["sum"], wire.stream_input(size)))
        self.socket.sendall(wire.frame(wire.CALL, self.stream, head))
        began, sent = time.perf_counter(), 0
        for at in range(0, size, FRAME):
            n = min(FRAME, size - at)
            data = memoryview(wire.frame(wire.DATA, self.stream, b"\1" * n, flags=wire.END if at + n == size else 0))
            for i in range(0, len(data), PIECE):
                sent += len(data[i:i + PIECE])
                while rate and time.perf_counter() < began + sent / rate:
                    pass
                self.socket.sendall(data[i:i + PIECE])
        ended = time.perf_counter()
        answer = wire.Answer()
        answer.fill(self.answer(wire.RESULT))
        took = time.perf_counter() - ended
        if int.from_bytes(answer.results[0].value, "little") != size:
            sys.exit("tls_paced: the sum of %d ones is wrong" % size)
        self.stream += 2
        return took


def measure(folder, certificate, key, authority, a):
    """{what: figure} of one daemon."""
    command = [os.path.join(folder, "cured"), "--listen", "tcp:127.0.0.1:0", "--tls-certificate", certificate, "--tls-key", key]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as daemon:
        port = next(int(m.group(1)) for m in (re.search(r"listening on tcp:.*:(\d+)", line) for line in daemon.stderr) if m)
        client = Client(port, None if a.plain else authority)
        counting = subprocess.Popen(["perf", "stat", "-x,", "-e", ",".join(EVENTS), "-p", str(daemon.pid)], stderr=subprocess.PIPE, text=True)
        time.sleep(0.5)
        before = time.clock_gettime(~daemon.pid << 3 | 2)
        took = [client.upload(a.kib << 10, a.rate * 1e6) for _ in range(a.calls)]
        cpu = time.clock_gettime(~daemon.pid << 3 | 2) - before
        counting.send_signal(signal.SIGINT)
        said = counting.communicate()[1]
        daemon.terminate()
    mib = a.kib * a.calls / 1024
    figures = {"CPU ms a MiB": cpu * 1e3 / mib, "answer after, us": statistics.median(took) * 1e6}
    for line in said.splitlines():
        fields = line.split(",")
        if len(fields) > 3 and fields[0].isdigit():
            figures[fields[2].replace("syscalls:sys_enter_", "") + " a MiB"] = int(fields[0]) / mib
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("bins", nargs="+")
    parser.add_argument("--plain", action="store_true", help="TCP without TLS")
    parser.add_argument("--rate", type=float, default=0, help="MB/s; 0: as fast as the client can")
    parser.add_argument("--kib", type=int, default=64 * 1024, help="of one upload")
    parser.add_argument("--calls", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    a = parser.parse_args()
    print("tls_paced.py %s; %d cores, load %.1f" % (" ".join(sys.argv[1:]), os.cpu_count(), os.getloadavg()[0]))
    with tempfile.TemporaryDirectory() as folder:
        authority = tls_files.Authority(folder)
        certificate, key = authority.sign("server")
        rounds = [[measure(b, certificate, key, authority.certificate, a) for b in a.bins] for _ in range(a.rounds)]
    for i, b in enumerate(a.bins):
        print(b)
        for what in rounds[0][i]:
            values = [r[i][what] for r in rounds]
            print("  %-22s %9.2f (%.2f ... %.2f)" % (what, statistics.median(values), min(values), max(values)))


if __name__ == "__main__":
    main()
