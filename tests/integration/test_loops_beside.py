#!/usr/bin/env python3
"""test_loops_beside: a daemon of several loops, of which all is asked at once: small arrays in every loop, the same over TLS and over TCP, gRPC,
figures by HTTP, reloads, connections that come and go. Each client has its right answers, each call counts once, and the daemon ends while
they go on."""
import os
import re
import shutil
import signal
import threading
import unittest

import grpc_client

grpc_client.need("grpc", "numpy")
import grpc  # noqa: E402
import numpy as np  # noqa: E402

from admin_client import get  # noqa: E402
from connection import Closed, Connection  # noqa: E402
from cured_daemon import main, wait_for  # noqa: E402
from cured_wire import INVALID_ARGUMENT, UNAVAILABLE  # noqa: E402
from test_tls import TlsTest, answer, pb, reduce_request  # noqa: E402

LOOPS = 4
ROUNDS = 40
SMALL, LARGE = b"\1\2\3", bytes(range(250)) * 80  # 20,000 bytes: the first loop's
NUMBERS = np.arange(3000)


def number(got):
    return int.from_bytes(got.results[0].value, "little")


class Beside(TlsTest):
    OPTIONS = {"loops": LOOPS, "cpu_workers": 2, "log_calls": "off", "admin": "unix:admin.sock"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.admin = "unix:%s/admin.sock" % cls.folder
        cls.plain = "tcp:127.0.0.1:%d" % cls.port

    # ---- Clients: each gives how many calls it made that were answered ----

    def small(self, address, goes_on):
        calls = 0
        with Connection(address) as c:
            while goes_on():
                streams = [c.start_inline("u8", ["sum"], SMALL) for _ in range(8)]
                for stream in streams:
                    got = c.wait(stream)
                    if got.status:
                        self.assertEqual(UNAVAILABLE, got.status.code, got.status)
                        return calls
                    self.assertEqual(6, number(got))
                    calls += 1
        return calls

    def mixed(self, address, goes_on):
        """Small ones, large ones, and such as fail: home and back."""
        calls = 0
        with Connection(address) as c:
            while goes_on():
                for data in (SMALL, LARGE):
                    got = c.inline("u8", ["sum"], data)
                    if got.status:
                        self.assertEqual(UNAVAILABLE, got.status.code, got.status)
                        return calls
                    self.assertEqual(sum(data), number(got))
                    calls += 1
                self.assertIn(c.inline("f32", ["sum"], SMALL).status.code, (INVALID_ARGUMENT, UNAVAILABLE))
        return calls

    def short(self, address, goes_on):
        """Connections of few calls, half of which end in the middle of one."""
        calls = 0
        while goes_on():
            with Connection(address) as c:
                for _ in range(2):
                    got = c.inline("u8", ["sum"], SMALL)
                    if got.status:
                        self.assertEqual(UNAVAILABLE, got.status.code, got.status)
                        return calls
                    self.assertEqual(6, number(got))
                    calls += 1
                c.start_stream("u8", ["sum"], 3)
        return calls

    def grpc(self, stub, goes_on):
        calls = 0
        while goes_on():
            self.assertEqual(int(NUMBERS.sum()), answer(stub.Reduce(reduce_request(NUMBERS), timeout=120)))
            calls += 1
        return calls

    def figures(self, _, goes_on):
        while goes_on():
            for path in ("/metrics", "/stats.json", "/healthz/live"):
                self.assertEqual(200, get(self.admin, path).status, path)
        return 0

    def reloads(self, _, goes_on):
        while goes_on():
            shutil.copy(self.certificate, self.certificate + ".new")
            os.replace(self.certificate + ".new", self.certificate)
            self.daemon.process.send_signal(signal.SIGHUP)
            with Connection(self.unix) as c:
                for ask in (c.info, c.stats):
                    try:
                        ask()
                    except AssertionError as refusal:
                        self.assertIn("status %d: the server is shutting down" % UNAVAILABLE, str(refusal))
                        return 0
        return 0

    def clients(self):
        """(function, whom it asks)."""
        sealed = self.tunnel(self.client).address
        return [(self.small, self.unix)] * 4 + [(self.small, self.plain), (self.small, sealed), (self.mixed, self.unix), (self.mixed, sealed),
                                               (self.short, self.unix), (self.short, sealed), (self.grpc, self.channel(self.client)), (self.figures, None),
                                               (self.reloads, None)]

    def run_all(self, goes_on, ends=()):
        """Threads of all clients, and their calls; ends: what may end one."""
        calls, errors = [], []

        def run(function, whom):
            try:
                calls.append(function(whom, goes_on()))
            except ends:
                pass
            except BaseException as error:  # noqa: B902 (shown by the test)
                errors.append((function.__name__, whom, error))
        threads = [threading.Thread(target=run, args=one) for one in self.clients()]
        for thread in threads:
            thread.start()
        return threads, calls, errors

    # ---- Tests ----

    def test_all_at_once(self):
        def rounds():
            left = iter(range(ROUNDS))
            return lambda: next(left, None) is not None
        threads, calls, errors = self.run_all(rounds)
        for thread in threads:
            thread.join()
        self.assertEqual([], errors)
        samples = get(self.admin, "/metrics").body.decode()
        found = re.findall(r'^cured_requests_total\{method="reduce",source="(?:inline|stream)",code="OK"\} (\d+)$', samples, re.M)
        self.assertEqual(sum(calls), sum(map(int, found)))
        self.assertGreater(sum(calls), 10 * ROUNDS)

    def test_its_end(self):
        threads, _, errors = self.run_all(lambda: lambda: True, (Closed, OSError, grpc.RpcError))
        wait_for("reloads", lambda: self.daemon.log().count("TLS: the certificate is good") > 3)
        self.daemon.check_end(self, self.daemon.stop())
        for thread in threads:
            thread.join()
        self.assertEqual([], errors)


if __name__ == "__main__":
    main()
