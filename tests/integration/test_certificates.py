#!/usr/bin/env python3
"""What clients' certificates may do: every door is asked with none, one of a stranger, one whose time is over, and good ones with
and without each right, beside tokens and without."""
import os
import re
import socket
import ssl
import subprocess

import grpc_client

grpc_client.need("grpc", "numpy")
import grpc  # noqa: E402

from admin_client import HANG_S, Reader, request  # noqa: E402
from asking import OK, PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNAUTHENTICATED, Asking  # noqa: E402
from connection import Connection  # noqa: E402
from cured_daemon import CLIENT, environment, main, wait_for  # noqa: E402
from tls_files import HOST  # noqa: E402

NAMES = b"DNS:localhost,IP:127.0.0.1"


class Rights(Asking):
    """Each certificate goes by the first line that has one of its names."""

    OPTIONS = {"admin": "tcp:0.0.0.0:0"}
    LINES = """
CN=reducer may=reduce calls=1
CN=looker may=info,stats
"CN=Jane Doe" may=info,regions
DNS=Node-7.example may=reduce,regions
URI=spiffe://cured.test/job may=reduce,info
CN=boss may=reduce,info,admin
CN=over until=2020-01-01
certificate=* may=nothing
"""
    WHO = {"token": ("may=info", (PERMISSION_DENIED, OK, PERMISSION_DENIED))}
    # name: its subject and other names, and what each of METHODS gives
    SHOWN = {"reducer": ("/CN=reducer", "", (OK, PERMISSION_DENIED, PERMISSION_DENIED)),
             "looker": ("/O=anybody/CN=looker", "", (PERMISSION_DENIED, OK, PERMISSION_DENIED)),
             "jane": ("/CN=Jane Doe", "", (PERMISSION_DENIED, OK, OK)),
             "node": ("/CN=node-7", "DNS:NODE-7.example", (OK, PERMISSION_DENIED, OK)),
             "job": ("/O=cured", "URI:spiffe://cured.test/job", (OK, OK, PERMISSION_DENIED)),
             "both": ("/CN=boss", "DNS:node-7.example", (OK, PERMISSION_DENIED, OK)),
             "boss": ("/CN=boss", "", (OK, OK, PERMISSION_DENIED)),
             "over": ("/CN=over", "", (UNAUTHENTICATED,) * 3),
             "token": ("/CN=token", "", (PERMISSION_DENIED,) * 3),
             "other": ("/CN=other", "DNS:reducer", (PERMISSION_DENIED,) * 3),
             "nameless": ("/O=reducer", "", (PERMISSION_DENIED,) * 3)}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shown = {name: cls.ca.sign("c-" + name, names=NAMES + ("," + more if more else "").encode(), subject=subject)
                     for name, (subject, more, _) in cls.SHOWN.items()}

    def test_matrix(self):
        for name, (_, _, wanted) in self.SHOWN.items():
            for ask in (self.ask_native, self.ask_grpc):
                got = ask(client=self.shown[name])
                self.check_answers((name, ask.__name__), wanted, got, set(self.SHOWN) - {"over", "token", "node", "other", "job"})
        for ask in (self.ask_native, self.ask_grpc):
            self.check_answers("nobody", (UNAUTHENTICATED,) * 3, ask())

    def test_beside_a_token(self):
        """The token says who it is, and a certificate adds nothing to it."""
        for ask in (self.ask_native, self.ask_grpc):
            self.check_answers(ask.__name__, self.WHO["token"][1], ask("token", self.shown["boss"]))

    def test_figures(self):
        """The door of operators: a certificate that may."""
        figures = int(re.search(r"operators look in at tcp:0.0.0.0:(\d+)", self.daemon.log()).group(1))
        for name, wanted in ((None, 401), ("looker", 200), ("reducer", 403), ("other", 403), ("nameless", 403), ("over", 401)):
            with socket.create_connection(("127.0.0.1", figures), HANG_S) as raw:
                context = self.ca.context(self.shown[name] if name else None)
                with context.wrap_socket(raw, server_hostname="localhost") as sealed:
                    sealed.sendall(request("/metrics"))
                    got = Reader(sealed).answer()
                    self.assertEqual(wanted, got.status, (name, got.body))

    def test_who_it_is(self):
        """A user is called by the name that has the line."""
        for name, called in (("job", "URI=spiffe://cured.test/job"), ("jane", "CN=Jane Doe"), ("boss", "CN=boss")):
            users = {user["name"]: user for user in self.native(client=self.shown[name]).info()["users"]}
            self.assertTrue(users[called]["own"])

    def test_strangers_and_old_ones_end_at_the_handshake(self):
        for client in (self.stranger, self.ca.sign("c-past", days=-1, subject="/CN=reducer")):
            with self.assertRaises(grpc.RpcError) as caught:
                self.channel(client, waits=False).Info(grpc_client.stubs()[0].InfoRequest(), timeout=30)
            self.assertEqual(grpc.StatusCode.UNAVAILABLE, caught.exception.code())
            ran = self.run_client("info", "--tls-ca", self.ca.certificate, "--tls-certificate", client[0], "--tls-key", client[1])
            self.assertIn(ran.returncode, (69, 77), ran.stderr)
            self.assertIn("TLS", ran.stderr)

    def test_an_open_connection_ends_with_its_certificate(self):
        """A call after the certificate's time is refused, on connections that were let in before."""
        client = self.ca.sign("c-brief", seconds=4, names=NAMES, subject="/CN=boss")
        try:
            c, stub = self.native(client=client), self.channel(client, waits=False)
        except (ssl.SSLError, OSError, AssertionError):
            return  # a slow machine: it was over before
        if not c.welcome:
            return
        wait_for("its end", lambda: self.ask_connection(c)[0] is not None)
        self.check_answers("native", (UNAUTHENTICATED,) * 2, self.ask_connection(c)[:2])
        self.assertIn("certificate's time is over", self.sentence(self.ask_connection(c)[0]))
        self.assertIn(self.code(self.ask_stub(stub)[0]), (UNAUTHENTICATED, 14))  # its channel may have come too late

    def test_rights_and_limits_change_under_open_connections(self):
        """SIGHUP: what a line says holds for connections that are open; one that is gone leaves what all certificates may."""
        c, stub = self.native(client=self.shown["boss"]), self.channel(self.shown["boss"])
        self.check_answers("before", (OK, OK, PERMISSION_DENIED), self.ask_connection(c))
        self.rewrite(lambda text: text.replace("CN=boss may=reduce,info,admin", "CN=boss may=regions calls=0"))
        self.check_answers("changed", (PERMISSION_DENIED, PERMISSION_DENIED, OK),
                           self.ask_connection(c)[:2] + [None])
        self.assertEqual([PERMISSION_DENIED] * 2, [self.code(status) for status in self.ask_stub(stub)])
        self.rewrite(lambda text: text.replace("CN=boss may=regions calls=0", "CN=boss may=reduce,info calls=0"))
        self.assertEqual(RESOURCE_EXHAUSTED, self.code(self.ask_connection(c)[0]))
        self.assertIn("calls= in its line", self.sentence(self.ask_stub(stub)[0]))
        self.rewrite(lambda text: text.replace("CN=boss may=reduce,info calls=0\n", ""))
        self.assertEqual([PERMISSION_DENIED] * 2, [self.code(status) for status in self.ask_connection(c)[:2]])
        self.rewrite(lambda text: text.replace("certificate=* may=nothing", "CN=boss may=reduce\ncertificate=* may=nothing"))
        self.assertEqual([OK, PERMISSION_DENIED], [self.code(status) for status in self.ask_connection(c)[:2]])

    def test_the_library(self):
        """cured-client, by a certificate that may and one that may not."""
        path = os.path.join(self.folder, "three.bin")
        with open(path, "wb") as f:
            f.write(bytes([1, 2, 3]))
        for name, code in (("reducer", 0), ("looker", 77)):
            certificate, key = self.shown[name]
            ran = subprocess.run([CLIENT, "sum", "--dtype", "u8", path, "--connect", "tls:%s:%d" % (HOST, self.port),
                                  "--tls-ca", self.ca.certificate, "--tls-certificate", certificate, "--tls-key", key],
                                 capture_output=True, text=True, timeout=120, env=environment())
            self.assertEqual(code, ran.returncode, ran.stderr)


class Names(Asking):
    """tls_client_names: who may connect."""

    OPTIONS = {"tls_client_names": "somebody"}

    def test_names(self):
        """A certificate of the CA whose name is not listed is refused; one that is listed is a user of that name."""
        other = self.ca.sign("somebody-else")
        self.assertEqual(PERMISSION_DENIED, self.code(self.ask_grpc(client=other)[0]))
        with Connection(self.tunnel(other).address) as c:
            c.until(lambda: c.reason)
            self.assertEqual(PERMISSION_DENIED, c.reason.code)
        c = self.native(client=self.client)
        self.assertIn("CN=somebody", {user["name"] for user in c.info()["users"]})
        self.assertEqual([OK, OK], [self.code(status) for status in self.ask_grpc(client=self.client)])


if __name__ == "__main__":
    main()
