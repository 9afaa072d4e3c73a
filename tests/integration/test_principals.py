#!/usr/bin/env python3
"""Who a client is and what it may do: every door is asked with no, wrong, expired, bounded and right tokens. Limits count by
principal, and an error tells nothing of another's."""
import grp
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import grpc_client

grpc_client.need("grpc", "numpy")
import grpc  # noqa: E402

from admin_client import HANG_S, Reader, request  # noqa: E402
from connection import Connection  # noqa: E402
from cured_daemon import CLIENT, CURED, Daemon, environment, main, need_binary, wait_for  # noqa: E402
from cured_wire import (CALL, CANCEL, END, HELLO, PERMISSION_DENIED, RESOURCE_EXHAUSTED, bytes_field, frame,  # noqa: E402
                        hello_message)
from test_tls import TlsTest, new_token, pb  # noqa: E402

OK, UNAUTHENTICATED = 0, 16


def until(seconds):
    return "until=" + time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


class Principals(TlsTest):
    FAR = True
    OPTIONS = {"max_jobs_per_user": 2, "max_connections_per_user": 40, "admin": "tcp:0.0.0.0:0"}
    # name: the rest of its line, then what each of METHODS gives
    WHO = {"plain": ("", (OK, OK, OK)),
           "lasting": (until(86400), (OK, OK, OK)),
           "today": ("until=" + time.strftime("%Y-%m-%d", time.gmtime(time.time() + 600)), (OK, OK, OK)),
           "expired": (until(-5), (UNAUTHENTICATED,) * 3),
           "long-ago": ("until=2020-02-29 may=admin", (UNAUTHENTICATED,) * 3),
           "reducer": ("may=reduce", (OK, PERMISSION_DENIED, PERMISSION_DENIED)),
           "looker": ("may=info,stats", (PERMISSION_DENIED, OK, PERMISSION_DENIED)),
           "sharer": ("may=regions,info", (PERMISSION_DENIED, OK, OK)),
           "boss": ("may=reduce,info,admin", (OK, OK, PERMISSION_DENIED))}
    METHODS = ("reduce", "info", "regions")

    @classmethod
    def setUpClass(cls):
        need_binary(CLIENT)
        cls.token, lines = {}, []
        for name, (rest, _) in cls.WHO.items():
            cls.token[name], line = new_token(name)
            lines.append("%s %s\n" % (line, rest))
        cls.token["wrong"] = cls.token["plain"][:-1] + ("0" if cls.token["plain"][-1] != "0" else "1")
        cls.TOKENS = "".join(lines)
        super().setUpClass()
        cls.figures = int(re.search(r"operators look in at tcp:0.0.0.0:(\d+)", cls.daemon.log()).group(1))

    def native(self, name):
        """A connection over TLS with that token."""
        c = Connection(self.tunnel().address, hello=False)
        self.addCleanup(c.close)
        payload = hello_message() + (bytes_field(5, self.token[name].encode()) if name else b"")
        c.send(frame(HELLO, payload=payload))
        c.until(lambda: c.welcome or c.reason)
        return c

    def ask_native(self, name):
        c = self.native(name)
        if c.reason:
            return [c.reason] * 3
        got = [c.inline("u8", ["sum"], bytes([1, 2, 3])).status, self.call(c, bytes_field(4, b""))]
        shm = self.call(c, bytes_field(6, b"\x08\x01" + bytes_field(3, bytes_field(1, b"/cured-none"))))
        return got + [None if "over Unix sockets only" in shm.message else shm]  # the next word to whoever may

    def call(self, c, request):
        stream = c.open_stream()
        c.send(frame(CALL, stream, request, END))
        c.until(lambda: c.answers[stream].over)
        return c.answers[stream].status

    def ask_grpc(self, name):
        metadata = [("authorization", "Bearer " + self.token[name])] if name else []
        stub, got = self.channel(), []
        for method, message in ((stub.Reduce, pb.ReduceRequest(dtype=pb.DTYPE_U8, ops=[pb.OP_SUM], data=b"\1\2")),
                                (stub.Info, pb.InfoRequest())):
            try:
                method(message, timeout=60, metadata=metadata)
                got.append(None)
            except grpc.RpcError as error:
                got.append(error)
        return got

    @staticmethod
    def code(status):
        if status is None:
            return OK
        return status.code if not isinstance(status, grpc.RpcError) else status.code().value[0]

    @staticmethod
    def sentence(status):
        return status.message if not isinstance(status, grpc.RpcError) else status.details()

    def test_matrix(self):
        """Each door, each credential, each thing that may be asked."""
        for name, wanted in [(name, wanted) for name, (_, wanted) in self.WHO.items()] + [("wrong", (UNAUTHENTICATED,) * 3),
                                                                                         (None, (UNAUTHENTICATED,) * 3)]:
            for ask in (self.ask_native, self.ask_grpc):
                got = ask(name)
                for method, code, status in zip(self.METHODS, wanted, got):
                    said = (name, ask.__name__, method, status)
                    self.assertEqual(code, self.code(status), said)
                    if code == UNAUTHENTICATED and name in ("expired", "long-ago"):
                        self.assertIn("its time is over", self.sentence(status))
                    if code == PERMISSION_DENIED:
                        self.assertIn('"%s"' % method, self.sentence(status))
                    if code:  # nothing of another's: names, numbers, addresses
                        self.assertNotRegex(self.sentence(status), "|".join(set(self.WHO) - {"plain"}) + r"|0x|\d{4,}")

    def test_limits_count_by_principal(self):
        """Two at one address have two calls each; the calls of one over both doors count together."""
        first, second, third = self.native("plain"), self.native("plain"), self.native("lasting")
        held = [(c, c.start_stream("u8", ["sum"], None)) for c in (first, second)]
        for c in (first, second):
            c.ping()
        status = self.ask_grpc("plain")[0]
        self.assertEqual(RESOURCE_EXHAUSTED, self.code(status), status)
        self.assertIn("max_jobs_per_user", self.sentence(status))
        self.assertIsNone(self.ask_grpc("lasting")[0])
        self.assertIsNone(third.inline("u8", ["sum"], bytes([1])).status)
        for c, stream in held:
            c.send(frame(CANCEL, stream))
        wait_for("room again", lambda: self.ask_grpc("plain")[0] is None)

    def test_only_admins_see_others(self):
        other = self.native("lasting")
        names = {}
        for name in ("plain", "boss"):
            info = self.native(name).info()
            names[name] = {user["name"] for user in info["users"]}
        self.assertEqual({"plain"}, names["plain"])
        self.assertLessEqual({"boss", "lasting"}, names["boss"])
        metadata = [("authorization", "Bearer " + self.token["boss"])]
        over = {user.name for user in self.channel().Info(pb.InfoRequest(), timeout=60, metadata=metadata).users}
        self.assertLessEqual({"boss", "lasting"}, over)
        other.close()

    def test_many_on_one_connection(self):
        """A gateway: each call of a channel goes by its own token, up to a limit."""
        stub = self.channel()
        for _ in range(3):
            for name, (_, wanted) in self.WHO.items():
                try:
                    stub.Reduce(pb.ReduceRequest(dtype=pb.DTYPE_U8, ops=[pb.OP_SUM], data=b"\1"), timeout=60,
                                metadata=[("authorization", "Bearer " + self.token[name])])
                    code = OK
                except grpc.RpcError as error:
                    code = self.code(error)
                self.assertEqual(wanted[0], code, name)

    def test_an_open_connection_ends_with_its_token(self):
        """A call after its time is refused, on a connection that was let in before."""
        path = self.ca.path("tokens")
        with open(path) as f:
            before = f.read()
        self.addCleanup(self.reload, path, before)
        token, line = new_token("brief")
        self.token["brief"] = token
        self.reload(path, before + line + " " + until(3) + "\n")
        wait_for("the new token", lambda: not self.native("brief").reason)
        c = self.native("brief")
        if c.reason:  # a slow machine
            self.assertIn("its time is over", c.reason.message)
            return
        wait_for("its end", lambda: c.inline("u8", ["sum"], b"\1").status is not None)
        status = c.inline("u8", ["sum"], b"\1").status
        self.assertEqual(UNAUTHENTICATED, status.code)
        self.assertIn("its time is over", status.message)

    def reload(self, path, text):
        with open(path, "w") as f:
            f.write(text)
        lines = len(self.daemon.lines)
        self.daemon.process.send_signal(signal.SIGHUP)
        wait_for("the reload", lambda: any("take a restart" in line for line in self.daemon.lines[lines:]))

    def test_figures(self):
        """The door of operators: a token that is good, and may."""
        for name, wanted in (("plain", 200), ("looker", 200), ("expired", 401), ("wrong", 401), ("reducer", 403), (None, 401)):
            with socket.create_connection(("127.0.0.1", self.figures), HANG_S) as raw:
                with self.ca.context().wrap_socket(raw, server_hostname="localhost") as sealed:
                    headers = {"authorization": "Bearer " + self.token[name]} if name else {}
                    sealed.sendall(request("/metrics", **headers))
                    got = Reader(sealed).answer()
                    self.assertEqual(wanted, got.status, (name, got.body))

    def test_everything_is_given_back(self):
        with Connection(self.unix) as c:
            def users():
                return {user["name"] for user in c.info()["users"]}
            self.native("plain").close()
            self.ask_grpc("lasting")
            self.doCleanups()
            wait_for("all gone", lambda: not users() & set(self.WHO))


class Users(unittest.TestCase):
    """Over Unix sockets the kernel says who it is: lists of users and groups."""

    def setUp(self):
        need_binary(CURED)
        if os.geteuid() != 0:
            self.skipTest("needs root, to become somebody else")
        self.folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.chmod(self.folder, 0o755)

    def asked_by(self, daemon, uid, gid, groups=(), request=bytes_field(4, b"")):
        """The code that such a process is answered with."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setgroups(list(groups))
                os.setgid(gid)
                os.setuid(uid)
                with Connection(daemon.address) as c:
                    c.until(lambda: c.welcome or c.reason)
                    if not c.reason:
                        stream = c.open_stream()
                        c.send(frame(CALL, stream, request, END))
                        c.until(lambda: c.answers[stream].over)
                    status = c.reason or c.answers[stream].status
                os.write(write, b"%d" % (status.code if status else 0))
            finally:
                os._exit(0)
        os.close(write)
        os.waitpid(child, 0)
        with open(read, "rb") as f:
            return int(f.read() or -1)

    def start(self, **options):
        daemon = Daemon(self.folder, socket_mode="0666", **options)
        self.addCleanup(lambda: daemon.alive() and daemon.stop())
        return daemon

    def test_lists(self):
        daemon = self.start(allow_users="4001", allow_groups="daemon", admin_users="4003")
        daemon_group = grp.getgrnam("daemon").gr_gid
        for who, wanted in (((4001, 4001), OK), ((4002, 4002), PERMISSION_DENIED), ((4002, daemon_group), OK),
                            ((4002, 4002, (5, 6, daemon_group, 7)), OK), ((4002, 4002, range(5000, 5100)), PERMISSION_DENIED),
                            ((4003, 4003), OK), ((0, 0), OK)):
            self.assertEqual(wanted, self.asked_by(daemon, *who), who)
        reload = bytes_field(10, b"")
        self.assertEqual(PERMISSION_DENIED, self.asked_by(daemon, 4001, 4001, request=reload))
        self.assertEqual(OK, self.asked_by(daemon, 4003, 4003, request=reload))
        daemon.check_end(self, daemon.stop())

    def test_no_lists(self):
        daemon = self.start()
        self.assertEqual(OK, self.asked_by(daemon, 4002, 4002))
        daemon.check_end(self, daemon.stop())

    def test_unknown_names(self):
        ran = subprocess.run([CURED, "--check-config", "--listen", "unix:/tmp/x", "--allow-groups", "no-such-group"],
                             capture_output=True, text=True, env=environment(), timeout=HANG_S)
        self.assertEqual(64, ran.returncode)
        self.assertIn('allow_groups: this machine knows no group "no-such-group"', ran.stderr)


class Certificates(TlsTest):
    FAR = True
    OPTIONS = {"tls_client_names": "somebody"}

    def ask(self, client):
        try:
            stub = self.channel(client)
            stub.Reduce(pb.ReduceRequest(dtype=pb.DTYPE_U8, ops=[pb.OP_SUM], data=b"\1"), timeout=60)
            return OK, stub
        except grpc.RpcError as error:
            return error.code().value[0], error

    def test_names(self):
        """A certificate of the CA whose name is not listed is refused; one that is listed is a user of that name."""
        other = self.ca.sign("somebody-else")
        self.assertEqual(PERMISSION_DENIED, self.ask(other)[0])
        with Connection(self.tunnel(other).address) as c:
            c.until(lambda: c.reason)
            self.assertEqual(PERMISSION_DENIED, c.reason.code)
        code, stub = self.ask(self.client)
        self.assertEqual(OK, code, stub)
        self.assertIn("CN=somebody", {user.name for user in stub.Info(pb.InfoRequest(), timeout=60).users})


if __name__ == "__main__":
    main()
