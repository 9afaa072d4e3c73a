#!/usr/bin/env python3
"""Who a client is and what it may do: every door is asked with no, wrong, expired, bounded and right tokens. Limits count by
principal, and an error tells nothing of another's."""
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

import grpc_client

grpc_client.need("grpc", "numpy")
import grpc  # noqa: E402
import numpy as np  # noqa: E402

from admin_client import HANG_S, Reader, get, request  # noqa: E402
from asking import OK, PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNAUTHENTICATED, Asking, new_line, until  # noqa: E402
from connection import Connection  # noqa: E402
from cured_daemon import CLIENT, CURED, Daemon, environment, main, need_binary, wait_for  # noqa: E402
from cured_wire import CANCEL, HELLO, bytes_field, frame, hello_message  # noqa: E402
from test_tls import new_token, pb, services  # noqa: E402


class Principals(Asking):
    OPTIONS = {"max_jobs_per_user": 2, "max_connections_per_user": 40, "admin": "tcp:0.0.0.0:0"}
    WHO = {"plain": ("", (OK, OK, OK)),
           "lasting": (until(86400), (OK, OK, OK)),
           "today": ("until=" + time.strftime("%Y-%m-%d", time.gmtime(time.time() + 600)), (OK, OK, OK)),
           "expired": (until(-5), (UNAUTHENTICATED,) * 3),
           "long-ago": ("until=2020-02-29 may=admin", (UNAUTHENTICATED,) * 3),
           "reducer": ("may=reduce", (OK, PERMISSION_DENIED, PERMISSION_DENIED)),
           "looker": ("may=info,stats", (PERMISSION_DENIED, OK, PERMISSION_DENIED)),
           "sharer": ("may=regions,info", (PERMISSION_DENIED, OK, OK)),
           "nothing": ("may=nothing", (PERMISSION_DENIED,) * 3),
           "boss": ("may=reduce,info,admin", (OK, OK, PERMISSION_DENIED))}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.token["wrong"] = cls.token["plain"][:-1] + ("0" if cls.token["plain"][-1] != "0" else "1")
        cls.figures = int(re.search(r"operators look in at tcp:0.0.0.0:(\d+)", cls.daemon.log()).group(1))

    def test_matrix(self):
        """Each door, each credential, each thing that may be asked."""
        for name, wanted in [(name, wanted) for name, (_, wanted) in self.WHO.items()] + [("wrong", (UNAUTHENTICATED,) * 3),
                                                                                         (None, (UNAUTHENTICATED,) * 3)]:
            for ask in (self.ask_native, self.ask_grpc):
                got = ask(name)
                self.check_answers((name, ask.__name__), wanted, got, set(self.WHO) - {"plain"})
                if name in ("expired", "long-ago"):
                    self.assertIn("its time is over", self.sentence(got[0]))

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
        for seconds in (3, 6, 12, 24, 48):  # a slow machine may come too late
            token, line = new_token("brief")
            self.token["brief"] = token
            self.rewrite(lambda before: before + line + " " + until(seconds) + "\n")
            c = self.native("brief")
            if not c.reason:
                break
            self.assertIn("its time is over", c.reason.message)
            self.doCleanups()
        wait_for("its end", lambda: c.inline("u8", ["sum"], b"\1").status is not None)
        status = c.inline("u8", ["sum"], b"\1").status
        self.assertEqual(UNAUTHENTICATED, status.code)
        self.assertIn("its time is over", status.message)

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


class Limits(Asking):
    """What a line limits, over both doors together."""

    OPTIONS = {"stall_timeout_ms": 1000}
    WHO = {"free": ("", (OK,) * 3), "two": ("calls=2", (OK,) * 3), "small": ("bytes=1MiB state_bytes=64KiB", (OK,) * 3),
           "one": ("connections=1 calls=7", (OK,) * 3)}

    def refused(self, status, *words):
        self.assertEqual(RESOURCE_EXHAUSTED, self.code(status), status)
        for word in words:
            self.assertIn(word, self.sentence(status))

    def own(self, c):
        return next(user for user in c.info()["users"] if user["own"])

    def test_calls(self):
        """Two at once, whichever doors they come by; SIGHUP makes it three; others have all there is."""
        first, second, free = self.native("two"), self.native("two"), self.native("free")
        held = [(c, c.start_stream("u8", ["sum"], None)) for c in (first, second)]
        others = [free.start_stream("u8", ["sum"], None) for _ in range(4)]
        for c in (first, second, free):
            c.ping()
        for got in (self.ask_grpc("two")[0], first.inline("u8", ["sum"], b"\1").status):
            if got:  # else its own call, which brought nothing for so long, made room
                self.refused(got, "calls: 1 more beside 2 of this user exceed 2 (calls= in its line of principals)", "wait for answers")
        self.assertEqual((2, 2), (self.own(first)["limit"]["calls"], self.own(self.native("two"))["limit"]["calls"]))
        wait_for("room by the end of a call of its own", lambda: not self.ask_grpc("two")[0])
        free.ping()
        self.assertEqual([], [s for s in others if free.answers[s].over], "calls of others ended for it")
        self.rewrite(lambda text: text.replace("calls=2", "calls=3"))
        self.assertEqual(3, self.own(first)["limit"]["calls"])
        for c, stream in held + [(free, stream) for stream in others]:
            c.send(frame(CANCEL, stream))

    def test_bytes(self):
        c = self.native("small")
        self.refused(self.declare(c, 2 << 20), "input: bytes: 2097152 more beside 0 of this user exceed 1048576 (bytes= in its line",
                     "ask for less")
        self.assertIsNone(self.declare(c, 1 << 20))
        self.assertIsNone(self.declare(self.native("free"), 2 << 20))
        with self.assertRaises(grpc.RpcError) as caught:
            self.channel().Reduce(pb.ReduceRequest(dtype=pb.DTYPE_U8, ops=[pb.OP_SUM], data=bytes(1 << 20) + b"\1"), timeout=60,
                                  metadata=[("authorization", "Bearer " + self.token["small"])])
        self.refused(caught.exception, "bytes= in its line")

    def declare(self, c, n):
        """A call of n bytes: None, or why it was refused. It is cancelled."""
        stream = c.start_stream("u8", ["sum"], n)
        c.ping()
        status = c.answers[stream].status
        c.send(frame(CANCEL, stream))
        c.ping()
        return status

    def test_memory(self):
        """Along an axis: what 64 KiB cannot hold."""
        array = np.ones((2, 100000), "u1")
        path = os.path.join(self.folder, "columns.npy")
        np.save(path, array)
        for patience in ("1", "10", "60"):  # the client asks again until then, and a busy machine may leave no time for an answer
            ran = self.run_client("sum", "--axis", "0", "--output", os.path.join(self.folder, "out.npy"), path, "--tls-ca",
                                  self.ca.certificate, "--timeout", patience, env={"CURED_CLIENT_TOKEN": self.token["small"]})
            if "no answer within" not in ran.stderr:
                break
        self.assertEqual(75, ran.returncode, ran.stderr)
        self.assertIn("state_bytes= in its line of principals); ask for less", ran.stderr)
        ran = self.run_client("sum", "--axis", "0", "--output", os.path.join(self.folder, "out.npy"), path, "--tls-ca",
                              self.ca.certificate, env={"CURED_CLIENT_TOKEN": self.token["free"]})
        self.assertEqual(0, ran.returncode, ran.stderr)

    def test_connections(self):
        c = self.native("one")
        self.assertTrue(c.welcome)
        self.refused(self.native("one").reason, "connections: 1 more beside 1 of this user exceed 1 (connections= in its line", "close some")
        c.close()
        wait_for("its place", lambda: self.native("one").welcome)

    def test_shown(self):
        ran = self.run_client("info", "--tls-ca", self.ca.certificate, env={"CURED_CLIENT_TOKEN": self.token["small"]})
        self.assertRegex(ran.stdout, r"(?m)^own, small bytes 0 of 1048576$")
        self.assertRegex(ran.stdout, r"(?m)^own, small state_bytes 0 of 65536$")

    def test_taken_back(self):
        """A connection that is open ends to be anybody's when its token's line is gone, or has a new secret."""
        for change in (lambda text: re.sub("(?m)^two .*\n", "", text),
                       lambda text: re.sub("(?m)^two (\\S+) .", lambda m: "two %s %s" % (m[1], "f" if m[0][-1] != "f" else "0"), text)):
            c = self.native("two")
            self.assertIsNone(self.ask_connection(c)[0])
            self.rewrite(change)
            status = self.ask_connection(c)[0]
            self.assertEqual(UNAUTHENTICATED, self.code(status), status)
            self.assertIn("it was taken back", self.sentence(status))
            self.doCleanups()
            self.assertIsNone(self.ask_native("two")[0])


class Doors(unittest.TestCase):
    def setUp(self):
        need_binary(CURED)
        self.folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def test_doors_without_tls(self):
        """Both doors, over Unix and TCP on loopback: with no token, a wrong one, one whose time is over, and good ones. What a token
        says counts over TCP; on a Unix socket the user's line does."""
        path = os.path.join(self.folder, "principals")
        lines = {name: new_line(name, rest) for name, rest in (("good", "may=reduce"), ("old", until(-5)), ("poor", "may=info"))}
        token = {name: token for name, (token, _) in lines.items()}
        token["wrong"] = token["good"].replace("good", "poor")
        with open(path, "w") as f:
            f.write("user=* calls=0\naddress=* may=info\n" + "".join(line for _, line in lines.values()))
        daemon = Daemon(self.folder, listen=["tcp:127.0.0.1:0", "unix:%s/cured.sock" % self.folder], principals=path)
        wanted = {None: (PERMISSION_DENIED, RESOURCE_EXHAUSTED), "wrong": (UNAUTHENTICATED,) * 2, "old": (UNAUTHENTICATED,) * 2,
                  "poor": (PERMISSION_DENIED, RESOURCE_EXHAUSTED), "good": (OK, RESOURCE_EXHAUSTED)}
        for name, codes in wanted.items():
            for address, code in zip(daemon.addresses, codes):
                with Connection(address, hello=False) as c:
                    c.send(frame(HELLO, payload=hello_message() + (bytes_field(5, token[name].encode()) if name else b"")))
                    c.until(lambda: c.welcome or c.reason)
                    status = c.reason or c.inline("u8", ["sum"], b"\1").status
                    self.assertEqual(code, status.code if status else OK, (name, address))
                with grpc_client.channel(address) as channel:
                    metadata = [("authorization", "Bearer " + token[name])] if name else []
                    self.assertEqual(code, Asking.code(Asking.ask_stub(services.CuredStub(channel), metadata)[0]), (name, address))
        daemon.check_end(self, daemon.stop())

    def test_a_wrong_token_where_none_is_wanted(self):
        """A daemon that knows no tokens at all: whoever shows one took it for another. All three doors say so."""
        daemon = Daemon(self.folder, listen=["tcp:127.0.0.1:0", "unix:%s/cured.sock" % self.folder], env={"CURED_ADMIN": "tcp:127.0.0.1:0"})
        metadata = [("authorization", "Bearer " + new_line("any", "")[0])]
        operators = re.search(r"operators look in at (\S+)", daemon.log()).group(1)
        for token, code, status in (([], OK, 200), (metadata, UNAUTHENTICATED, 401)):
            for address in daemon.addresses:
                with Connection(address, hello=False) as c:
                    c.send(frame(HELLO, payload=hello_message() + b"".join(bytes_field(5, t[7:].encode()) for _, t in token)))
                    c.until(lambda: c.welcome or c.reason)
                    self.assertEqual(code, c.reason.code if c.reason else OK, address)
                with grpc_client.channel(address) as channel:
                    self.assertEqual(code, Asking.code(Asking.ask_stub(services.CuredStub(channel), token)[0]), address)
            self.assertEqual(status, get(operators, "/healthz/ready", **dict(token)).status)
        daemon.check_end(self, daemon.stop())

    def test_a_token_that_may_nothing(self):
        """cured-client writes the word that the daemon knows, and that word alone."""
        def make(may):
            return subprocess.run([CLIENT, "token", "idle", "--may", may, "--json"], capture_output=True, text=True, env=environment())
        made = json.loads(make("nothing").stdout)
        self.assertRegex(made["line"], r"^idle [0-9a-f]+ [0-9a-f]+ may=nothing$")
        for wrong in ("nothing,info", "info,nothing", "", "noth"):
            self.assertEqual(64, make(wrong).returncode, wrong)
        path = os.path.join(self.folder, "principals")
        with open(path, "w") as f:
            f.write(made["line"] + "\n")
        daemon = Daemon(self.folder, listen=["tcp:127.0.0.1:0"], principals=path)
        with grpc_client.channel(daemon.address) as channel:
            for metadata, code in (([], OK), ([("authorization", "Bearer " + made["token"])], PERMISSION_DENIED)):
                self.assertEqual(code, Asking.code(Asking.ask_stub(services.CuredStub(channel), metadata)[0]))
        daemon.check_end(self, daemon.stop())

    def test_limits_that_a_line_may_have(self):
        """What cured-client writes the daemon takes: a line that it refuses would keep it from starting."""
        path = os.path.join(self.folder, "principals")
        for limits, good in (("calls=8,bytes=1GiB", True), ("bytes=15EiB,state_bytes=16383PiB", True), ("calls=18446744073709551615", True),
                             ("calls=0", True), ("calls=8,calls=9", False), ("bytes=1,calls=2,bytes=1", False), ("calls=18446744073709551616", False),
                             ("bytes=16EiB", False), ("bytes=18446744073709551615KiB", False), ("calls=8KiB", False), ("calls=8,", False)):
            made = subprocess.run([CLIENT, "token", "lap", "--limits", limits, "--json"], capture_output=True, text=True, env=environment())
            self.assertEqual(0 if good else 64, made.returncode, (limits, made.stderr))
            if not good:
                self.assertIn("--limits is '%s'" % limits, made.stderr)
                continue
            with open(path, "w") as f:
                f.write(json.loads(made.stdout)["line"] + "\n")
            checked = subprocess.run([CURED, "--listen", "unix:" + os.path.join(self.folder, "s"), "--principals", path, "--check-config"],
                                     capture_output=True, text=True, env=environment())
            self.assertEqual(0, checked.returncode, (limits, checked.stderr))


if __name__ == "__main__":
    main()
