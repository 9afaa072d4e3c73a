#!/usr/bin/env python3
"""test_admin_tls: operators from other machines: TLS, and a certificate or a token; nothing else is told anything."""
import shutil
import subprocess
import tempfile
import time
import unittest

from admin_client import Reader, connect, exchange, get, request
from cured_daemon import CLIENT, CURED, Daemon, environment, main, need_binary, wait_for
from test_admin import windows
from tls_files import Authority


class Far(unittest.TestCase):
    """The daemon's address for operators is one that other machines reach: it is asked through loopback here."""

    @classmethod
    def setUpClass(cls):
        need_binary(CURED)
        cls.folder = tempfile.mkdtemp(prefix="cured-it-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.ca = Authority(cls.folder)
        cls.client = cls.ca.sign("operator")
        certificate, key = cls.ca.sign("server")
        said = subprocess.run([CLIENT, "token", "prometheus"], capture_output=True, text=True, check=True, env=environment()).stdout
        cls.token, line = [row.partition(": ")[2] for row in said.splitlines()]
        with open(cls.ca.path("principals"), "w") as f:
            f.write(line + "\n")
        cls.daemon = Daemon(cls.folder, tls_certificate=certificate, tls_key=key, tls_client_ca=cls.ca.certificate,
                            principals=cls.ca.path("principals"), admin="tcp:0.0.0.0:0", hello_timeout_ms=4000)
        cls.address = windows(cls.daemon)[0].replace("0.0.0.0", "127.0.0.1")
        cls.addClassCleanup(lambda: cls.daemon.check_end(unittest.TestCase(), cls.daemon.stop()))

    def wrap(self, client=None):
        context = self.ca.context(client)
        return lambda s: context.wrap_socket(s, server_hostname="localhost")

    def test_a_token_opens_the_door(self):
        answer = get(self.address, "/metrics", wrap=self.wrap(), Authorization="Bearer " + self.token)
        self.assertEqual(200, answer.status)
        self.assertIn(b"cured_build_info", answer.body)
        live = request(Authorization="Bearer " + self.token)
        self.assertEqual([200] * 5, [a.status for a in exchange(self.address, live * 5, 5, wrap=self.wrap())])

    def test_so_does_a_certificate(self):
        self.assertEqual(200, get(self.address, "/stats.json", wrap=self.wrap(self.client)).status)

    def test_names_are_for_nobody_from_outside(self):
        seen = get(self.address, "/stats.json", wrap=self.wrap(self.client)).json()
        self.assertEqual(([], False), (seen["users"], "slow" in seen))

    def test_without_either_nothing_is_told(self):
        wrong = self.token[:-1] + ("0" if self.token[-1] != "0" else "1")
        for headers in ({}, {"Authorization": "Bearer " + wrong}, {"Authorization": "Bearer"}, {"Authorization": "Basic " + self.token}):
            for path in ("/", "/metrics", "/healthz/live", "/nothing"):
                answer = get(self.address, path, wrap=self.wrap(), **headers)
                self.assertEqual((401, "Bearer", "close"),
                                 (answer.status, answer.headers["www-authenticate"], answer.headers["connection"]), (path, headers))
                self.assertIn(b"token", answer.body)

    def test_a_token_counts_for_its_request_only(self):
        data = request(Authorization="Bearer " + self.token) + request()
        self.assertEqual([200, 401], [a.status for a in exchange(self.address, data, 2, wrap=self.wrap())])

    def test_without_tls_nothing_is_told(self):
        for data in (request(), request(Authorization="Bearer " + self.token)):
            (answer,) = exchange(self.address, data, 2)
            self.assertEqual((403, b"this address speaks TLS only\n"), (answer.status, answer.body))

    def test_the_silent_and_the_strange_end(self):
        quiet = [connect(self.address) for _ in range(50)]
        for i, s in enumerate(quiet):
            s.send([b"", b"\x16", b"\x16\x03\x01\x02\x00\x01", b"G"][i % 4])
        for s in quiet:
            try:
                while s.recv(4096):
                    pass
            except ConnectionError:
                pass
            s.close()
        wait_for("all to be gone", lambda: self.daemon.counters()["connections"] == 1)
        self.assertEqual(200, get(self.address, "/healthz/ready", wrap=self.wrap(self.client)).status)

    def test_a_large_answer_comes_whole_to_a_slow_reader(self):
        with connect(self.address, self.wrap(self.client)) as s:
            s.sendall(request("/metrics") * 10)
            reader = Reader(s)
            for _ in range(10):
                time.sleep(0.02)
                self.assertIn(b"cured_uptime_seconds", reader.answer().body)
            reader.close()


if __name__ == "__main__":
    main()
