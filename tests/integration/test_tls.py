#!/usr/bin/env python3
"""TLS on the daemon's TCP addresses: both languages, certificates of clients, what is refused, and a new certificate while
clients are at it."""
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

import grpc_client

grpc_client.need("grpc", "numpy")
import grpc  # noqa: E402
import numpy as np  # noqa: E402

from cured_daemon import CLIENT, Daemon, environment, main, need_binary, wait_for, CURED  # noqa: E402
from connection import Connection  # noqa: E402
from tls_files import HOST, Authority, Tunnel  # noqa: E402

pb, services = grpc_client.stubs()


def reduce_request(array):
    return pb.ReduceRequest(dtype=pb.DTYPE_I64, ops=[pb.OP_SUM], data=array.astype("i8").tobytes())


def answer(response):
    return int.from_bytes(response.results[0].value, "little", signed=True)


class TlsTest(unittest.TestCase):
    """One daemon with a certificate. FAR: its address counts as reachable from other machines."""

    FAR = False
    OPTIONS = {}
    TOKENS = None  # the text of the daemon's file of tokens

    @classmethod
    def setUpClass(cls):
        need_binary(CURED)
        cls.folder = tempfile.mkdtemp(prefix="cured-it-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.ca = Authority(cls.folder)
        cls.client = cls.ca.sign("somebody")
        cls.stranger = Authority(cls.folder, "other").sign("stranger")
        certificate, key = cls.ca.sign("server")
        cls.certificate, cls.key = cls.ca.path("live.pem"), cls.ca.path("live.key")
        shutil.copy(certificate, cls.certificate)
        shutil.copy(key, cls.key)
        more = dict(cls.OPTIONS)
        if cls.TOKENS is not None:
            more["principals"] = cls.ca.path("principals")
            with open(more["principals"], "w") as f:
                f.write(cls.TOKENS)
        listen = ["tcp:0.0.0.0:0" if cls.FAR else "tcp:127.0.0.1:0", "unix:%s/cured.sock" % cls.folder]
        cls.daemon = Daemon(cls.folder, listen=listen, tls_certificate=cls.certificate, tls_key=cls.key,
                            tls_client_ca=cls.ca.certificate, **more)
        tcp = [a for a in cls.daemon.addresses if a.startswith("tcp")][0]
        cls.port = int(tcp.rpartition(":")[2])
        cls.unix = [a for a in cls.daemon.addresses if a.startswith("unix")][0]
        cls.addClassCleanup(cls.end)

    @classmethod
    def end(cls):
        cls.daemon.check_end(unittest.TestCase(), cls.daemon.stop())

    def counters(self):
        with Connection(self.unix) as c:
            return c.info()["counters"]

    def tunnel(self, client=None):
        tunnel = Tunnel(self.ca.context(client), self.port)
        self.addCleanup(tunnel.close)
        return tunnel

    def channel(self, client=None, waits=True):
        files = [pathlib.Path(path).read_bytes() for path in (self.ca.certificate,) + (client or ())]
        credentials = grpc.ssl_channel_credentials(files[0], files[2] if client else None, files[1] if client else None)
        channel = grpc_client.channel("%s:%d" % (HOST, self.port), credentials=credentials, waits=waits)
        self.addCleanup(channel.close)
        return services.CuredStub(channel)


    def run_client(self, *arguments, address=None, env=None):
        address = address or "tls:%s:%d" % (HOST, self.port)
        return subprocess.run([CLIENT, *arguments, "--connect", address], capture_output=True, text=True, timeout=120,
                              env=environment(**(env or {})))


class Loopback(TlsTest):
    def test_grpc(self):
        stub = self.channel()
        for n in (3, 5000, 3000000):
            array = np.arange(n) % 1000
            self.assertEqual(int(array.sum()), answer(stub.Reduce(reduce_request(array), timeout=60)))

    def test_native(self):
        """All that a client does: small arrays, long ones, answers along an axis, several at once."""
        tunnel = self.tunnel()
        rng = np.random.default_rng(random.getrandbits(32))
        with Connection(tunnel.address) as c:
            for n in (1, 100, 4096, 300000, 5000000):
                array = rng.integers(0, 255, n).astype("u1")
                got = c.stream("u8", ["sum"], array.tobytes())
                self.assertEqual(int(array.sum(dtype="u8")), int.from_bytes(got.results[0].value, "little"))
        path = os.path.join(self.folder, "array.npy")
        array = rng.integers(0, 1000, (2000, 3000)).astype("f4")
        np.save(path, array)
        out = os.path.join(self.folder, "sums.npy")
        ran = subprocess.run([CLIENT, "--connect", tunnel.address, "sum", "--axis", "1", "--output", out, path], capture_output=True,
                             text=True, env=environment(), timeout=120)
        self.assertEqual(0, ran.returncode, ran.stderr)
        self.assertTrue((np.load(out) == array.astype("f8").sum(1)).all())

    def test_cured_client(self):
        """The library's own TLS: by options and by the environment, by name and by number, whatever the size."""
        rng = np.random.default_rng(random.getrandbits(32))
        for n in (0, 3, 70000, 9000000):
            array = rng.integers(0, 255, n).astype("u1")
            path = os.path.join(self.folder, "array.bin")
            array.tofile(path)
            for more in (dict(), dict(address="tls:127.0.0.1:%d" % self.port)):
                ran = self.run_client("sum", "--dtype", "u8", path, env={"CURED_TLS_CA": self.ca.certificate}, **more)
                self.assertEqual((0, "%d\n" % array.sum(dtype="u8")), (ran.returncode, ran.stdout), ran.stderr)
        path = os.path.join(self.folder, "rows.npy")
        array = rng.integers(0, 1000, (300000, 7)).astype("f4")  # long answers come while the array still goes
        np.save(path, array)
        out = os.path.join(self.folder, "rows-sums.npy")
        ran = self.run_client("sum", "--axis", "1", "--output", out, path, "--tls-ca", self.ca.certificate)
        self.assertEqual(0, ran.returncode, ran.stderr)
        self.assertTrue((np.load(out) == array.astype("f8").sum(1)).all())

    def test_partials_by_key(self):
        """In many parts, which come while rows still go: by the library's TLS, through a tunnel and by gRPC the bytes of a call in the process."""
        rng = np.random.default_rng(random.getrandbits(32))
        rows, groups = rng.standard_normal((200000, 2)), 60000
        keys = rng.integers(0, groups, len(rows)).astype("u4")
        paths = [os.path.join(self.folder, name) for name in ("rows.npy", "keys.npy", "part.crp")]
        np.save(paths[0], rows)
        np.save(paths[1], keys)

        def written(address):
            ran = self.run_client("reduce", paths[0], "--ops", "sum,count_nan", "--keys", paths[1], "--groups", str(groups), "--partial", "--output", paths[2],
                                  address=address, env={"CURED_TLS_CA": self.ca.certificate})
            self.assertEqual((0, ""), (ran.returncode, ran.stdout), ran.stderr)
            with open(paths[2], "rb") as f:
                return f.read()
        wanted = written("embedded:")
        self.assertGreater(len(wanted), 1 << 22)
        self.assertTrue(wanted.startswith(b"CK"))
        for address in (None, "tls:127.0.0.1:%d" % self.port, self.tunnel().address, self.unix):
            self.assertTrue(wanted == written(address), address)

        def chunks():
            yield pb.ReduceChunk(head=pb.ReduceRequest(dtype=pb.DTYPE_F64, ops=[pb.OP_SUM, pb.OP_COUNT_NAN], partial=True, unplaced=True, keys=pb.Keys(
                stream=True, count=len(keys), dtype=pb.DTYPE_U32, groups=groups, columns=2)))
            for data in (keys.tobytes(), rows.tobytes()):
                for at in range(0, len(data), 1 << 20):
                    yield pb.ReduceChunk(data=data[at:at + (1 << 20)])
        parts = [answer.part for answer in self.channel().ReduceStream(chunks(), timeout=60) if answer.WhichOneof("answer") == "part"]
        self.assertGreater(len(parts), 1)
        self.assertTrue(wanted == b"".join(part.values for part in parts))

    def test_cured_client_trusts_nobody_else(self):
        other = Authority(self.folder, "third").certificate
        for more, word in ((("--tls-ca", other), "not trusted"), ((), "not trusted")):
            ran = self.run_client("info", *more)
            self.assertEqual(77, ran.returncode, ran.stderr)
            self.assertIn(word, ran.stderr)
        ran = self.run_client("info", "--tls-ca", "/nowhere")
        self.assertEqual(64, ran.returncode, ran.stderr)
        self.assertIn("tls_ca", ran.stderr)
        ran = self.run_client("info", "--tls-ca", self.ca.certificate, "--tls-key", self.key)
        self.assertEqual(64, ran.returncode, ran.stderr)
        certificate, key = self.ca.sign("elsewhere", names=b"DNS:elsewhere.example")
        daemon = Daemon(self.folder, listen=["tcp:127.0.0.1:0"], tls_certificate=certificate, tls_key=key)
        ran = self.run_client("info", "--tls-ca", self.ca.certificate, address=daemon.address.replace("tcp:", "tls:"))
        self.assertEqual(77, ran.returncode, ran.stderr)
        self.assertIn("IP address mismatch", ran.stderr)
        daemon.check_end(self, daemon.stop())

    def test_cured_client_meets_a_daemon_without_tls(self):
        daemon = Daemon(self.folder, listen=["tcp:127.0.0.1:0"])
        ran = self.run_client("info", "--tls-ca", self.ca.certificate, address=daemon.address.replace("tcp:", "tls:"))
        self.assertEqual(77, ran.returncode, ran.stderr)
        self.assertIn("TLS", ran.stderr)
        daemon.check_end(self, daemon.stop())

    def test_without_tls_beside_it(self):
        with Connection("tcp:127.0.0.1:%d" % self.port) as c:
            self.assertIsNone(c.inline("u8", ["sum"], bytes([1, 2, 3])).status)
        with grpc_client.channel("127.0.0.1:%d" % self.port) as channel:
            self.assertEqual(6, answer(services.CuredStub(channel).Reduce(reduce_request(np.array([1, 2, 3])), timeout=60)))

    def test_versions_before_1_3_are_refused(self):
        context = self.ca.context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        before = self.counters()["tls_handshakes_failed_total"]
        with socket.create_connection(("127.0.0.1", self.port)) as raw, self.assertRaises(ssl.SSLError):
            context.wrap_socket(raw, server_hostname="localhost")
        wait_for("the count", lambda: self.counters()["tls_handshakes_failed_total"] > before)

    def test_a_stranger_certificate_is_refused(self):
        context = self.ca.context(self.stranger)
        with socket.create_connection(("127.0.0.1", self.port)) as raw, self.assertRaises((ssl.SSLError, ConnectionError)):
            with context.wrap_socket(raw, server_hostname="localhost") as sealed:
                sealed.sendall(b"CR")
                sealed.recv(1)

    def test_a_chain_of_many_certificates_is_refused(self):
        chain = self.ca.path("chain.pem")
        for more, taken in ((3, True), (30, False)):
            pathlib.Path(chain).write_text("".join(pathlib.Path(path).read_text()
                                                   for path in [self.client[0]] + [self.ca.certificate] * more))
            before = self.counters()["tls_handshakes_failed_total"]
            tunnel = self.tunnel((chain, self.client[1]))
            with Connection(tunnel.address, hello=taken) as c:
                if taken:
                    self.assertIsNone(c.inline("u8", ["sum"], b"123").status)
                else:
                    wait_for("the count", lambda: self.counters()["tls_handshakes_failed_total"] > before)

    def test_alpn(self):
        for offered, chosen in ((["h2"], "h2"), (["grpc-exp", "h2"], "h2"), (["cured"], "cured"), (["http/1.1"], None)):
            context = self.ca.context()
            context.set_alpn_protocols(offered)
            with socket.create_connection(("127.0.0.1", self.port)) as raw:
                with context.wrap_socket(raw, server_hostname="localhost") as sealed:
                    self.assertEqual(chosen, sealed.selected_alpn_protocol())

    def test_bytes_that_are_no_tls(self):
        for n in (1, 5, 4096, 70000):
            with socket.create_connection(("127.0.0.1", self.port)) as raw:
                raw.settimeout(60)
                try:
                    raw.sendall(b"\x16" + random.randbytes(n))
                    raw.shutdown(socket.SHUT_WR)
                    while raw.recv(4096):
                        pass
                except OSError:
                    pass  # it may be refused before all was sent
        with Connection(self.unix) as c:
            self.assertIsNone(c.inline("u8", ["sum"], bytes([1])).status)

    def test_a_hello_in_single_bytes(self):
        """The handshake, and then the frames, byte by byte."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        sealed = self.ca.context().wrap_bio(incoming, outgoing, server_hostname="localhost")

        def step(raw, action):
            while True:
                try:
                    return action()
                except ssl.SSLWantReadError:
                    for byte in outgoing.read():
                        raw.sendall(bytes([byte]))
                    incoming.write(raw.recv(65536))

        with socket.create_connection(("127.0.0.1", self.port)) as raw:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.settimeout(60)
            step(raw, sealed.do_handshake)
            sealed.write(b"not a frame at all")
            reply = step(raw, lambda: sealed.read(100))
            self.assertIn(b"CR", reply)

    def test_handshakes_that_come_at_once_are_all_done(self):
        """More of them in one turn than the loop takes: none of them says anything again until it is answered."""
        shakes = []
        os.kill(self.daemon.pid, signal.SIGSTOP)
        try:
            for _ in range(60):
                raw = socket.create_connection(("127.0.0.1", self.port))
                self.addCleanup(raw.close)
                raw.settimeout(30)
                incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                sealed = self.ca.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
                with self.assertRaises(ssl.SSLWantReadError):
                    sealed.do_handshake()
                raw.sendall(outgoing.read())
                shakes.append((raw, sealed, incoming, outgoing))
        finally:
            os.kill(self.daemon.pid, signal.SIGCONT)
        for raw, sealed, incoming, outgoing in shakes:
            done = False
            while not done:
                came = raw.recv(65536)
                self.assertTrue(came, "the daemon gave a handshake up")
                incoming.write(came)
                try:
                    sealed.do_handshake()
                    done = True
                except ssl.SSLWantReadError:
                    pass
            raw.sendall(outgoing.read())

    def test_everything_is_given_back(self):
        with Connection(self.unix) as c:
            def held():
                counters = c.info()["counters"]
                return counters["connections"], counters["tls_handshakes"], len(os.listdir("/proc/%d/fd" % self.daemon.pid))
            start = wait_for("quiet", lambda: held()[0] == 1 and held())
            for i in range(60):
                with socket.create_connection(("127.0.0.1", self.port)) as raw:
                    if i % 3 == 0:
                        raw.sendall(b"\x16\x03\x01")
                    elif i % 3 == 1:
                        self.ca.context().wrap_socket(raw, server_hostname="localhost").close()
                    else:
                        with self.ca.context().wrap_socket(raw, server_hostname="localhost") as sealed:
                            sealed.sendall(b"CR")
            wait_for("all given back", lambda: held() == start)

    def test_a_new_certificate_under_load(self):
        """Calls go on over SIGHUP, new connections see the new certificate, and a broken file changes nothing."""
        stop, errors, calls = threading.Event(), [], [0]

        def work():
            while not stop.is_set():
                try:
                    stub = self.channel()
                    for _ in range(20):
                        calls[0] += answer(stub.Reduce(reduce_request(np.array([1, 2, 3])), timeout=60)) == 6
                except grpc.RpcError as error:
                    errors.append(error)

        def serial():
            pem = ssl.get_server_certificate(("127.0.0.1", self.port))
            return pem

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        seen = {serial()}
        for i in range(5):
            certificate, key = self.ca.sign("server%d" % i)
            shutil.copy(certificate, self.certificate)
            shutil.copy(key, self.key)
            self.daemon.process.send_signal(signal.SIGHUP)
            seen.add(wait_for("the new certificate", lambda: serial() not in seen and serial()))
            time.sleep(0.1)
        before = serial()
        with open(self.certificate, "w") as f:
            f.write("nothing of use")
        self.daemon.process.send_signal(signal.SIGHUP)
        wait_for("its refusal", lambda: any("stays as it was" in line for line in list(self.daemon.lines)))
        self.assertEqual(before, serial())
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual([], errors)
        self.assertGreater(calls[0], 0)


class Far(TlsTest):
    """An address beyond loopback: TLS with a certificate of the CA, or nothing."""

    FAR = True

    def test_with_a_certificate(self):
        self.assertEqual(6, answer(self.channel(self.client).Reduce(reduce_request(np.array([1, 2, 3])), timeout=60)))
        with Connection(self.tunnel(self.client).address) as c:
            self.assertIsNone(c.inline("u8", ["sum"], bytes([1, 2, 3])).status)

    def test_cured_client(self):
        path = os.path.join(self.folder, "small.bin")
        with open(path, "wb") as f:
            f.write(bytes([1, 2, 3]))
        shown = ("--tls-certificate", self.client[0], "--tls-key", self.client[1])
        ran = self.run_client("sum", "--dtype", "u8", path, "--tls-ca", self.ca.certificate, *shown)
        self.assertEqual((0, "6\n"), (ran.returncode, ran.stdout), ran.stderr)
        ran = self.run_client("sum", "--dtype", "u8", path, "--tls-ca", self.ca.certificate)
        self.assertEqual(77, ran.returncode, ran.stderr)
        self.assertIn("client certificate", ran.stderr)

    def test_without_one(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.channel().Reduce(reduce_request(np.array([1])), timeout=30)
        self.assertEqual(grpc.StatusCode.UNAUTHENTICATED, caught.exception.code())
        self.assertIn("client certificate", caught.exception.details())
        reason = self.reason(self.tunnel().address)
        self.assertEqual(16, reason.code)
        self.assertIn("client certificate", reason.message)

    def test_without_tls(self):
        reason = self.reason("tcp:127.0.0.1:%d" % self.port)
        self.assertEqual(16, reason.code)
        self.assertIn("TLS only", reason.message)

    def test_silence_is_no_way_in(self):
        """Whoever says nothing until its time is nearly over is not let in by that."""
        with Connection("tcp:127.0.0.1:%d" % self.port, hello=False) as c:
            wait_for("its end", lambda: c.reason or not c.receive())
            self.assertEqual(16, c.reason.code)

    OPTIONS = {"hello_timeout_ms": 4000}  # handshakes take their time on a busy machine

    def reason(self, address):
        with Connection(address) as c:
            wait_for("its end", lambda: c.reason or not c.receive())
            return c.reason


def new_token(name):
    """(token, the daemon's line), as cured-client makes them."""
    said = subprocess.run([CLIENT, "token", name], capture_output=True, text=True, check=True, env=environment()).stdout
    lines = [line.partition(": ")[2] for line in said.splitlines()]
    return lines[0], lines[1]


class TokensTest(TlsTest):
    """A daemon with tokens, at an address beyond loopback."""

    FAR = True

    @classmethod
    def setUpClass(cls):
        need_binary(CLIENT)
        (cls.token, line), (cls.other, _) = new_token("job-7"), new_token("job-7")
        cls.TOKENS = "# who may\n\n" + line + "\n"
        super().setUpClass()

    def ask_grpc(self, client=None, token=None):
        """6, or the status."""
        metadata = [("authorization", "Bearer " + token)] if token else []
        try:
            return answer(self.channel(client).Reduce(reduce_request(np.array([1, 2, 3])), timeout=30, metadata=metadata))
        except grpc.RpcError as error:
            return error.code().value[0]

    def ask_native(self, client=None, token=None):
        path = os.path.join(self.folder, "three.bin")
        with open(path, "wb") as f:
            f.write(bytes([1, 2, 3]))
        shown = ["--tls-certificate", client[0], "--tls-key", client[1]] if client else []
        ran = self.run_client("sum", "--dtype", "u8", path, "--tls-ca", self.ca.certificate, *shown,
                              env={"CURED_CLIENT_TOKEN": token} if token else None)
        if ran.returncode == 77:
            self.assertRegex(ran.stderr, "token|certificate")
            return 16
        self.assertEqual(0, ran.returncode, ran.stderr)
        return int(ran.stdout)


class Tokens(TokensTest):
    """Every door with no, wrong, expired and right credentials."""

    def test_matrix(self):
        wrong = [self.other, self.token[:-1] + ("0" if self.token[-1] != "0" else "1"), "nobody." + self.token.partition(".")[2],
                 "job-7.", "job-7", self.token + "0", self.token.upper()]
        for ask in (self.ask_grpc, self.ask_native):
            self.assertEqual(6, ask(token=self.token))
            self.assertEqual(16, ask())
            self.assertEqual(6, ask(client=self.client))
            self.assertEqual(16, ask(client=self.client, token=self.other), "a wrong token beside a right certificate")
            for token in wrong:
                self.assertEqual(16, ask(token=token), token)

    def test_tokens_are_read_anew(self):
        path = self.ca.path("principals")
        with open(path) as f:
            before = f.read()
        self.addCleanup(self.reload, path, before)
        token, line = new_token("another")
        self.reload(path, line + "\n")
        wait_for("the new token", lambda: self.ask_native(token=token) == 6)
        self.assertEqual([16, 16], [self.ask_native(token=self.token), self.ask_grpc(token=self.token)])
        self.reload(path, "not a line\n")
        wait_for("its refusal", lambda: any("line 1" in line for line in list(self.daemon.lines)))
        self.assertEqual(6, self.ask_native(token=token))

    def reload(self, path, text):
        with open(path, "w") as f:
            f.write(text)
        self.daemon.process.send_signal(signal.SIGHUP)

    def test_a_token_in_a_file(self):
        path = os.path.join(self.folder, "secret")
        with open(path, "w") as f:
            f.write(self.token + "\n")
        for mode, code in ((0o600, 0), (0o640, 64), (0o604, 64)):
            os.chmod(path, mode)
            for how in ({"arguments": ("--token-file", path)}, {"env": {"CURED_CLIENT_TOKEN_FILE": path}}):
                ran = self.run_client("ping", "--tls-ca", self.ca.certificate, *how.get("arguments", ()), env=how.get("env"))
                self.assertEqual(code, ran.returncode, ran.stderr)
                self.assertIn("chmod 600" if code else "", ran.stderr)
        for text in ("", "\n", "x" * 1000):
            with open(path, "w") as f:
                f.write(text)
            os.chmod(path, 0o600)
            ran = self.run_client("ping", "--tls-ca", self.ca.certificate, "--token-file", path)
            self.assertEqual(64, ran.returncode, ran.stderr)
            self.assertIn("token", ran.stderr)
        ran = self.run_client("ping", "--tls-ca", self.ca.certificate, "--token-file", "/nowhere")
        self.assertIn("cannot open /nowhere", ran.stderr)

    def test_a_token_into_a_file(self):
        path = os.path.join(self.folder, "new.token")
        said = self.run_client("token", "new", "--output", path)
        self.assertEqual((0, ""), (said.returncode, said.stderr))
        self.assertRegex(said.stdout, r"^new [0-9a-f]{32} [0-9a-f]{64}\n$")  # as the daemon's file wants it
        self.assertEqual(0o600, os.stat(path).st_mode & 0o777)
        path_of_lines = self.ca.path("principals")
        with open(path_of_lines) as f:
            before = f.read()
        self.addCleanup(self.reload, path_of_lines, before)
        self.reload(path_of_lines, before + said.stdout)
        wait_for("the new token", lambda: self.run_client("ping", "--tls-ca", self.ca.certificate, "--token-file", path).returncode == 0)
        again = self.run_client("token", "new", "--output", path)
        self.assertEqual(74, again.returncode)
        self.assertIn("File exists", again.stderr)
        said = json.loads(self.run_client("token", "new", "--may", "info", "--json").stdout)
        self.assertRegex(said["token"], r"^new\.[0-9a-f]{64}$")
        self.assertRegex(said["line"], r"^new [0-9a-f]{32} [0-9a-f]{64} may=info$")

    def test_a_lacking_argument_is_named(self):
        for command, wanted in (("token", "NAME"), ("config", "reload|show"), ("sum", "a file, or - for standard input")):
            said = self.run_client(command)
            self.assertEqual((64, "cured-client: %s wants %s\n" % (command, wanted)), (said.returncode, said.stderr))

    def test_options_of_other_commands_are_refused(self):
        for command, option, *value in (("token", "--axis", "1", "new"), ("ping", "--ddof", "1"), ("top", "--nan", "skip"),
                                        ("describe", "--once", "/dev/null")):
            said = self.run_client(command, option, *value)
            self.assertEqual((64, "cured-client: %s takes no %s; see cured-client help %s\n" % (command, option, command)),
                             (said.returncode, said.stderr))

    def test_a_token_goes_nowhere_in_the_clear(self):
        ran = self.run_client("ping", address="tcp:192.0.2.1:7737", env={"CURED_CLIENT_TOKEN": self.token})
        self.assertEqual(64, ran.returncode, ran.stderr)
        self.assertIn("without TLS", ran.stderr)

    def test_without_tls_a_token_is_no_way_in(self):
        with Connection("tcp:127.0.0.1:%d" % self.port) as c:
            wait_for("its end", lambda: c.reason or not c.receive())
            self.assertEqual(16, c.reason.code)


class Strangers(TokensTest):
    """Whoever has no good credential is counted, and named in the log."""

    def rejected(self):
        counts = self.channel(self.client).Stats(pb.StatsRequest(), timeout=30).rejected
        return sum(c.value for c in counts if c.name == "credential")

    def test_each_has_a_line(self):
        old = self.ca.sign("old", days=-1)
        bad = self.token[:-1] + ("0" if self.token[-1] != "0" else "1")
        for why, ask in (("this address wants one", lambda: self.ask_native()),
                         ("none of this daemon's", lambda: self.ask_native(token=bad)),
                         ("none of this daemon's", lambda: self.ask_grpc(token=bad)),
                         ("speaks TLS only", lambda: self.run_client("ping", address="tcp:127.0.0.1:%d" % self.port)),
                         ("certificate", lambda: self.run_client("ping", "--tls-ca", self.ca.certificate, "--tls-certificate",
                                                                 self.stranger[0], "--tls-key", self.stranger[1])),
                         ("certificate", lambda: self.run_client("ping", "--tls-ca", self.ca.certificate, "--tls-certificate",
                                                                 old[0], "--tls-key", old[1]))):
            before, seen = self.rejected(), len(self.daemon.lines)
            ask()
            line = wait_for("a line that names the client: " + why, lambda: [
                line for line in self.daemon.lines[seen:] if "UNAUTHENTICATED" in line and why in line])[0]
            self.assertIn('user="tcp 127.0.0.1"', line)
            self.assertNotIn(bad, line)
            self.assertEqual(before + 1, self.rejected(), line)


class Options(unittest.TestCase):
    def refused(self, *words, **options):
        folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        flags = [CURED] + [f for name, value in options.items() for f in ("--" + name.replace("_", "-"), value)]
        ran = subprocess.run(flags, capture_output=True, text=True, env=environment(), timeout=60)
        self.assertEqual(64, ran.returncode, ran.stderr)
        for word in words:
            self.assertIn(word, ran.stderr)

    def test_what_belongs_together(self):
        self.refused("tls_key", listen="tcp:127.0.0.1:0", tls_certificate="/dev/null")
        self.refused("tls_client_ca", listen="tcp:127.0.0.1:0", tls_client_ca="/dev/null")
        self.refused("tls_certificate", "/dev/null", listen="tcp:127.0.0.1:0", tls_certificate="/dev/null", tls_key="/dev/null")
        self.refused("--tls-client-ca", "--insecure", listen="tcp:0.0.0.0:0")
        self.refused("--principals", "--insecure", listen="tcp:0.0.0.0:0", principals="/dev/null")  # tokens want TLS

    def test_files_of_tokens(self):
        _, line = new_token("one")
        folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        path = os.path.join(folder, "tokens")
        for text, word in (("one\n", "NAME SALT HASH"), (line + "\n" + line + "\n", "line 2"), (line + "0\n", "HASH"),
                           ("a b " + "0" * 64 + "\n", "SALT"), ("é " + line[4:] + "\n", "letters"), ("x" * 600 + "\n", "510")):
            with open(path, "w") as f:
                f.write(text)
            self.refused("principals", word, listen="tcp:127.0.0.1:0", principals=path)
        os.chmod(path, 0o666)
        self.refused("chmod", listen="tcp:127.0.0.1:0", principals=path)
        self.refused("/nowhere", listen="tcp:127.0.0.1:0", principals="/nowhere")


if __name__ == "__main__":
    main()
