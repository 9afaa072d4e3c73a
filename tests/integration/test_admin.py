#!/usr/bin/env python3
"""test_admin: what operators ask by HTTP and what they are told: pages, health, who may see what."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import admin_client
from admin_client import HANG_S, Reader, Trickle, connect, exchange, get, request
from connection import Connection
from cured_daemon import CURED, Daemon, DaemonTest, environment, main, need_binary, wait_for

PATHS = ("/metrics", "/stats.json", "/healthz/live", "/healthz/ready")
ALWAYS = {"cache-control": "no-store", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
          "cross-origin-resource-policy": "same-origin"}


class AdminTest(DaemonTest):
    """A daemon with the door of operators on a Unix socket and on TCP."""

    ENV = {"CURED_ADMIN": "unix:admin.sock,tcp:127.0.0.1:0"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.unix, cls.tcp = windows(cls.daemon)


def windows(daemon):
    """The addresses for operators, Unix sockets with their whole paths."""
    found = re.findall(r"operators look in at (\S+)", daemon.log())
    return [a.replace("unix:", "unix:%s/" % daemon.folder) if a.startswith("unix:") else a for a in found]


class Pages(AdminTest):
    def test_pages_are_whole_and_carry_their_headers(self):
        for address in (self.unix, self.tcp):
            for path in PATHS:
                answer = get(address, path)
                self.assertEqual(200, answer.status, path)
                self.assertEqual("keep-alive", answer.headers["connection"])
                self.assertIn("default-src 'none'", answer.headers["content-security-policy"])
                self.assertEqual(ALWAYS, {name: answer.headers.get(name) for name in ALWAYS})
                self.assertTrue(answer.body.endswith(b"\n"))
        self.assertEqual({"live": True}, get(self.tcp, "/healthz/live").json())
        self.assertEqual({"ready": True}, get(self.tcp, "/healthz/ready").json())

    def test_head_answers_without_a_body(self):
        for path in PATHS + ("/nothing",):
            with connect(self.unix) as s:
                reader = Reader(s)
                s.sendall(request(path, "HEAD") + request("/healthz/live"))
                answer = reader.answer(head=True)
                self.assertGreater(int(answer.headers["content-length"]), 0)
                self.assertEqual({"live": True}, reader.answer().json())
                reader.close()

    def test_a_connection_serves_many_requests_and_old_clients(self):
        answers = exchange(self.tcp, request("/metrics") * 20 + request("/healthz/live", Connection="close"), 99)
        self.assertEqual([200] * 21, [a.status for a in answers])
        self.assertEqual("close", answers[-1].headers["connection"])
        old = exchange(self.tcp, request(version="1.0", host=None) * 2, 99)
        self.assertEqual([200], [a.status for a in old], "HTTP/1.0 ends the connection")
        old = exchange(self.tcp, request(version="1.0", Connection="keep-alive") * 2, 2)
        self.assertEqual([200, 200], [a.status for a in old])

    def test_the_query_and_a_proxys_form_mean_the_same_page(self):
        self.assertEqual(200, get(self.tcp, "/healthz/live?x=/y").status)
        self.assertEqual(200, get(self.tcp, "http://localhost/healthz/live").status)
        self.assertIn("text/html", get(self.tcp, "http://localhost").headers["content-type"])

    def test_the_page_runs_only_its_own_script(self):
        words = set()
        for _ in range(3):
            answer = get(self.tcp, "/")
            self.assertEqual("text/html; charset=utf-8", answer.headers["content-type"])
            policy = answer.headers["content-security-policy"]
            word = re.search(r"script-src 'nonce-([0-9a-f]{32})'", policy).group(1)
            self.assertIn("default-src 'none'", policy)
            self.assertEqual(2, answer.body.count(b'nonce="%s"' % word.encode()))
            self.assertNotIn(b'"NONCE"', answer.body)
            words.add(word)
        self.assertEqual(3, len(words), "the word is the same each time")

    def test_names_are_for_whom_the_daemon_trusts(self):
        mine = get(self.unix, "/stats.json").json()
        self.assertIn("uid %d" % os.geteuid(), [u["name"] for u in mine["users"]])
        self.assertIn("slow", mine)
        others = get(self.tcp, "/stats.json").json()
        self.assertEqual([], others["users"])
        self.assertNotIn("slow", others)
        self.assertEqual(set(mine) - {"slow"}, set(others))

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_another_user_sees_no_names(self):
        os.chmod(self.folder, 0o755)
        os.chmod(self.unix.partition(":")[2], 0o666)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setresgid(12345, 12345, 12345)
                os.setresuid(12345, 12345, 12345)
                os.write(write, get(self.unix, "/stats.json").body)
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as f:
            seen = json.load(f)
        os.waitpid(child, 0)
        self.assertEqual([], seen["users"])
        self.assertNotIn("slow", seen)

    def test_requests_count(self):
        def counted():
            # Any program of the machine may ask at the TCP address, so one that counts is asked until nobody came between.
            before = admin_client.metrics(self.unix)
            get(self.unix, "/healthz/live")
            self.assertEqual(405, exchange(self.unix, request(method="DELETE"))[0].status)
            after = admin_client.metrics(self.unix)
            seen = [after[name] - before[name] for name in ("cured_admin_requests_total", "cured_admin_requests_refused_total")]
            return seen == [3, 1]
        wait_for("three requests to be counted, and one of them as refused", counted)

    def test_data_and_operators_have_addresses_of_their_own(self):
        with connect(self.daemon.address) as s:
            s.sendall(request("/metrics"))
            said = s.makefile("rb").read()
        self.assertNotIn(b"HTTP/1.1", said)
        with connect(self.unix) as s:
            s.sendall(b"CR" + bytes(30))
            self.assertTrue(s.makefile("rb").read().startswith(b"HTTP/1.1 "))

    def test_web_pages_cannot_ask_by_a_name_of_theirs(self):
        port = self.tcp.rpartition(":")[2]
        for host in ("evil.example", "evil.example:" + port, "127.0.0.1.evil.example", "[::1", "localhost:x", "1.2.3",
                     "[fe80::1%eth0]", "localhost.", ""):
            answer = exchange(self.tcp, request(host=host) if host else b"GET / HTTP/1.1\r\nHost:\r\n\r\n")[0]
            self.assertEqual(421, answer.status, host)
        for host in ("localhost", "LOCALHOST:" + port, "127.0.0.1:" + port, "[::1]:" + port, "10.0.0.1"):
            self.assertEqual(200, get(self.tcp, "/healthz/live", host=host).status, host)
        self.assertEqual(421, get(self.tcp, "http://evil.example/healthz/live").status)
        # A Unix socket that ssh forwards is asked by the operator's browser, as root.
        self.assertEqual(421, get(self.unix, "/stats.json", host="evil.example:7738").status)
        self.assertEqual(421, get(self.unix, "http://evil.example/stats.json").status)
        self.assertEqual(200, get(self.unix, "/healthz/live", host="localhost:7738").status)


class Health(unittest.TestCase):
    def start(self, more=(), **options):
        need_binary(CURED)
        folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        daemon = Daemon(folder, ["unix:%s/cured.sock" % folder, *more], admin="unix:admin.sock", **options)
        self.addCleanup(lambda: daemon.check_end(self, daemon.stop()))
        return daemon, windows(daemon)[0]

    def unready(self, address, reason):
        answer = wait_for("not ready: " + reason, lambda: [a for a in [get(address, "/healthz/ready")] if a.status == 503])[0]
        self.assertEqual((False, reason), (answer.json()["ready"], answer.json()["reason"]))
        self.assertGreater(len(answer.json()["message"]), 8)

    def test_draining_is_not_ready_and_still_seen(self):
        daemon, address = self.start()
        with daemon.connect() as c:
            call = Trickle(c)
            wait_for("the call", lambda: admin_client.metrics(address)["cured_requests_in_flight"] == 1)
            self.assertEqual(200, get(address, "/healthz/ready").status)
            daemon.process.send_signal(signal.SIGTERM)
            self.unready(address, "draining")
            self.assertEqual(200, get(address, "/healthz/live").status)
            self.assertEqual("close", get(address, "/metrics").headers["connection"])
            self.assertEqual(1, call.end())
        self.assertEqual(0, daemon.wait())
        self.assertFalse(os.path.exists(address.partition(":")[2]), "the socket's file stayed")

    def starting(self, *flags, **env):
        """A daemon whose GPU's driver hangs at start, and its address for operators. The listeners come later."""
        program = os.path.join(os.environ.get("CURED_TEST_DIR", ""), "cured-fake-gpu")
        need_binary(program)
        folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        address = "unix:%s/admin.sock" % folder
        process = subprocess.Popen([program, "--listen", "unix:%s/s" % folder, "--admin", address, *flags], stdin=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, env=environment(CURED_TEST_GPU="hang_open=1", **env))
        self.addCleanup(process.stderr.close)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        wait_for("the address", lambda: process.poll() is not None or self.listens(address))
        return process, address

    def listens(self, address):
        """The socket's file is there before."""
        try:
            connect(address).close()
            return True
        except OSError:
            return False

    def test_warming_is_live_and_not_ready(self):
        process, address = self.starting("--gpu-start-timeout-ms", "3000")
        self.unready(address, "warming")
        self.assertEqual(200, get(address, "/healthz/live").status)
        for path in PATHS[:2]:
            self.assertEqual(200, get(address, path).status)
        wait_for("ready", lambda: get(address, "/healthz/ready").status == 200)
        process.terminate()
        said = process.stderr.read()
        self.assertEqual(0, process.wait(HANG_S), said)
        self.assertIn("listening on", said)

    def test_it_can_be_ended_while_it_starts(self):
        process, address = self.starting("--gpu-start-timeout-ms", "2000")
        self.unready(address, "warming")
        process.terminate()
        said = process.stderr.read()
        self.assertEqual(0, process.wait(HANG_S), said)
        self.assertNotIn("listening on", said)
        self.assertIn("draining 0 calls", said)
        self.assertFalse(os.path.exists(address.partition(":")[2]))

    def test_a_start_that_fails_leaves_no_socket(self):
        process, address = self.starting("--backend", "cuda", "--gpu-start-timeout-ms", "1000")
        said = process.stderr.read()
        self.assertEqual(69, process.wait(HANG_S), said)
        self.assertFalse(os.path.exists(address.partition(":")[2]), "the socket's file stayed")

    def test_full_is_not_ready(self):
        daemon, address = self.start(max_jobs=1)
        with daemon.connect() as c:
            stream = c.start_stream("u8", ["sum"], 2)
            c.send_data(stream, b"\1")
            self.unready(address, "full")
            c.send_data(stream, b"\2", end=True)
            c.wait(stream)
            wait_for("ready again", lambda: get(address, "/healthz/ready").status == 200)

    def test_operators_look_in_when_no_connection_more_is_taken(self):
        daemon, address = self.start(["tcp:127.0.0.1:0"], max_connections=2)  # of two users one each
        with daemon.connect(), Connection(daemon.addresses[1]):
            self.unready(address, "full")
            self.assertEqual(200, get(address, "/metrics").status)

    def test_an_address_that_cannot_be_had_is_named(self):
        folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        for address, said in (("unix:/nowhere/at/all", "admin: cannot make /nowhere"),
                              ("tcp:0.0.0.0:0", "admin: \"tcp:0.0.0.0:0\" may be reached from other machines"),
                              ("http://x", "admin")):
            program = subprocess.run([CURED, "--listen", "unix:%s/s" % folder, "--admin", address], capture_output=True,
                                     text=True, timeout=HANG_S, env=environment())
            self.assertIn(program.returncode, (64, 69))
            self.assertIn(said, program.stderr)


if __name__ == "__main__":
    main()
