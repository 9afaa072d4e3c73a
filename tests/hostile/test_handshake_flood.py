"""test_handshake_flood: one address begins more TLS handshakes than the daemon keeps under way, and ends none. Handshakes of another address
go on, those that began before and those that begin meanwhile: the flood ends its own, the oldest first."""
import shutil
import socket
import ssl
import tempfile
import unittest

from several import Daemon, DaemonTest, main, wait_for
from cured_daemon import HANG_S, raise_file_limit
from cured_wire import HELLO, frame, hello_message
from tls_files import Authority

MOST = 512  # under way


class Handshake:
    """The client's part, step by step."""

    def __init__(self, address, context):
        self.socket = socket.create_connection(address, HANG_S)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        self.hello()

    def hello(self):
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            self.socket.sendall(self.outgoing.read())

    def receive(self):
        came = self.socket.recv(1 << 16)
        if not came:
            raise ConnectionError("the daemon gave it up")
        self.incoming.write(came)

    def finish(self):
        while True:
            try:
                self.tls.do_handshake()
                self.socket.sendall(self.outgoing.read())
                return
            except ssl.SSLWantReadError:
                self.receive()

    def ping(self):
        """What the daemon answers to HELLO, within TLS."""
        self.tls.write(frame(HELLO, payload=hello_message()))
        self.socket.sendall(self.outgoing.read())
        while True:
            try:
                return self.tls.read(4)
            except ssl.SSLWantReadError:
                self.receive()


class Flood(DaemonTest):
    OPTIONS = {"hello_timeout_ms": 3600000}  # none ends for its time
    STARTS = MOST + 200

    @classmethod
    def setUpClass(cls):
        if raise_file_limit() < 8 * MOST:
            raise unittest.SkipTest("fewer than %d files may be open here" % (8 * MOST))
        if not shutil.which("openssl"):
            raise unittest.SkipTest("no openssl to make a certificate with")
        try:
            with socket.socket(socket.AF_INET6) as s:
                s.bind(("::1", 0))
        except OSError:
            raise unittest.SkipTest("no second address: 127.0.0.0/8 counts as one, and there is no ::1") from None
        cls.keys = tempfile.mkdtemp(prefix="cured-it-")
        cls.addClassCleanup(shutil.rmtree, cls.keys, ignore_errors=True)
        cls.ca = Authority(cls.keys)
        certificate, key = cls.ca.sign("server")
        cls.OPTIONS = {**cls.OPTIONS, "tls_certificate": certificate, "tls_key": key}
        super().setUpClass()

    @classmethod
    def start_daemon(cls):
        listen = ["unix:%s/cured.sock" % cls.folder, "tcp:127.0.0.1:0", "tcp:[::1]:0"]
        return Daemon(cls.folder, listen, cls.LIMITS, cls.ENV, cls.PROGRAM, **cls.OPTIONS)

    def begin(self, address):
        host = "::1" if "::1" in address else "127.0.0.1"
        h = Handshake((host, int(address.rpartition(":")[2])), self.context)
        self.addCleanup(h.socket.close)
        return h

    def test_others_are_let_in(self):
        _, flooded, other = self.daemon.addresses
        self.context = self.ca.context()
        counters = self.daemon.counters
        before = counters()["tls_handshakes_ended_total"]
        honest = [self.begin(other) for _ in range(3)]
        wait_for("the honest ones", lambda: counters()["tls_handshakes"] == 3)
        flood = [self.begin(flooded) for _ in range(self.STARTS)]
        wait_for("the flood", lambda: counters()["tls_handshakes_ended_total"] - before == 3 + self.STARTS - MOST)
        self.assertEqual(MOST, counters()["tls_handshakes"])
        late = self.begin(other)
        for h in honest + [late]:
            h.finish()
            self.assertEqual(b"CR", h.ping()[:2])
        ended = [self.is_over(h) for h in flood[:3]]
        self.assertEqual([True] * 3, ended)
        self.assertEqual(0, counters()["connections_refused"])

    @staticmethod
    def is_over(h):
        try:
            while True:
                h.receive()
        except ConnectionError:
            return True


if __name__ == "__main__":
    main()
