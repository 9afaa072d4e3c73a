#!/usr/bin/env python3
"""Who a client is and what it may do: every door is asked with no, wrong, expired, bounded and right tokens. Limits count by
principal, and an error tells nothing of another's."""
import grp
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import traceback
import unittest

import grpc_client

grpc_client.need("grpc", "numpy")
import grpc  # noqa: E402
import numpy as np  # noqa: E402

from admin_client import HANG_S, Reader, request  # noqa: E402
from asking import OK, PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNAUTHENTICATED, Asking, new_line, until  # noqa: E402
from connection import Connection  # noqa: E402
from cured_daemon import CURED, Daemon, environment, main, need_binary, wait_for  # noqa: E402
from cured_wire import CALL, CANCEL, END, HELLO, bytes_field, frame, hello_message  # noqa: E402
from test_tls import new_token, pb, services  # noqa: E402
from tls_files import Authority  # noqa: E402

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
        token, line = new_token("brief")
        self.token["brief"] = token
        self.rewrite(lambda before: before + line + " " + until(3) + "\n")
        wait_for("the new token", lambda: not self.native("brief").reason)
        c = self.native("brief")
        if c.reason:  # a slow machine
            self.assertIn("its time is over", c.reason.message)
            return
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
        ran = self.run_client("sum", "--axis", "0", "--output", os.path.join(self.folder, "out.npy"), path, "--tls-ca",
                              self.ca.certificate, "--timeout", "1", env={"CURED_CLIENT_TOKEN": self.token["small"]})
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
            except BaseException:  # nobody else would say why
                traceback.print_exc()
            finally:
                os._exit(0)
        os.close(write)
        ended = os.waitpid(child, 0)[1]
        with open(read, "rb") as f:
            said = f.read()
        self.assertTrue(said, "the process of %d ended with %d and said nothing" % (uid, ended))
        return int(said)

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
        config = bytes_field(11, b"")
        self.assertEqual(PERMISSION_DENIED, self.asked_by(daemon, 4001, 4001, request=config))
        self.assertEqual(OK, self.asked_by(daemon, 4003, 4003, request=config))
        daemon.check_end(self, daemon.stop())

    def test_no_lists(self):
        daemon = self.start()
        self.assertEqual(OK, self.asked_by(daemon, 4002, 4002))
        daemon.check_end(self, daemon.stop())

    def test_lines(self):
        """Users and groups go by the first line that fits, root may all whatever is written."""
        path = os.path.join(self.folder, "principals")
        with open(path, "w") as f:
            f.write("user=4001 may=info,admin\nuser=4004 calls=0\ngroup=daemon may=nothing\nuser=4002 may=info\n"
                    "group=6001 may=reduce\nuser=* may=reduce calls=0\nuser=0 may=nothing\n")
        daemon_group = grp.getgrnam("daemon").gr_gid
        daemon = self.start(principals=path)
        info, stats, reload = bytes_field(4, b""), bytes_field(8, b""), bytes_field(10, b"")
        for who, asked, wanted in (((4001, 4001), info, OK), ((4001, daemon_group), info, OK), ((4001, 4001), reload, OK),
                                     ((4001, 4001), stats, PERMISSION_DENIED), ((4002, 4002), info, OK),
                                     ((4002, 4002, (5, daemon_group)), info, PERMISSION_DENIED),
                                     ((4003, 4003), info, PERMISSION_DENIED), ((4004, 4004), info, OK), ((0, 0), info, OK),
                                     ((0, 0), reload, OK)):
            self.assertEqual(wanted, self.asked_by(daemon, *who, request=asked), (who, asked))
        with Connection(daemon.address) as c:
            status = c.inline("u8", ["sum"], b"\1").status  # root's own, by user=*
            self.assertIn("calls= in its line of principals", status.message)
        with open(path, "w") as f:
            f.write("user=* may=info\n")
        self.assertEqual(OK, self.asked_by(daemon, 0, 0, request=reload))
        with Connection(daemon.address) as c:
            self.assertIsNone(c.inline("u8", ["sum"], b"\1").status)
        self.assertEqual(OK, self.asked_by(daemon, 4003, 4003))
        daemon.check_end(self, daemon.stop())

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
                with grpc.insecure_channel(address.replace("tcp:", "")) as channel:
                    metadata = [("authorization", "Bearer " + token[name])] if name else []
                    self.assertEqual(code, Asking.code(Asking.ask_stub(services.CuredStub(channel), metadata)[0]), (name, address))
        daemon.check_end(self, daemon.stop())

    def test_addresses(self):
        """Over TCP on loopback without a credential; Unix sockets are not meant."""
        path = os.path.join(self.folder, "principals")
        with open(path, "w") as f:
            f.write("address=* may=info calls=3\n")
        daemon = Daemon(self.folder, listen=["tcp:127.0.0.1:0", "unix:%s/cured.sock" % self.folder], principals=path)
        for address, wanted in zip(daemon.addresses, (PERMISSION_DENIED, OK)):
            with Connection(address) as c:
                status = c.inline("u8", ["sum"], b"\1").status
                self.assertEqual(wanted, status.code if status else OK, address)
                own = next(user for user in c.info()["users"] if user["own"])
                self.assertEqual(wanted != OK, own["limit"]["calls"] == 3)
        daemon.check_end(self, daemon.stop())

    def test_files(self):
        """What is wrong with a line is said, with its number."""
        path = os.path.join(self.folder, "principals")
        for line, said in (("CN=", "must have a name"), ("CN=*", "certificate=*, user=* and address=* are for all"),
                           ("certificate=web", "'*' behind it"), ("user=no-such-user", 'knows no user "no-such-user"'),
                           ("group=no-such-group", 'knows no group "no-such-group"'), ('"CN=a b', "quotes must hold"),
                           ("user=1 calls=x", "calls= must be a whole number"), ("user=1 bytes=1MB", "bytes= must be a size"),
                           ("user=1 speed=1", "speed= is no word"), ("user=1 calls=1 calls=2", "calls= stands in it twice"),
                           ("user=1 calls", "has no '='"), ("user=0\nuser=root", "line 2: its name stands in it twice"),
                           ("user=1 may=all", "may= must be of"), ("user=1 until=soon", "until= must be a day"),
                           ("user=1 until=2026-13-01", "until= must be a day"), ("user=1 until=2026-06-31", "until= must be a day"),
                           ("user=1\0 may=nothing", "line 1: it holds a NUL byte"), ("#\0" + 600 * "x", "NUL"),
                           ("# " + 510 * "x", "line 1: it is longer than 510 bytes"), (5000000 * "\n", "larger than 4194304 bytes"),
                           ("URI=" + 70 * "x", "may have 64 bytes"), ("Käse a b", "or begin with CN=")):
            with open(path, "w") as f:
                f.write(line + "\n")
            ran = subprocess.run([CURED, "--check-config", "--listen", "unix:/tmp/x", "--principals", path],
                                 capture_output=True, text=True, env=environment(), timeout=HANG_S)
            self.assertEqual(64, ran.returncode, line)
            self.assertIn("principals: " + path, ran.stderr)
            self.assertIn(said, ran.stderr)

    def test_files_that_are_none(self):
        """What cannot be read whole is refused at once, and no part of it counts."""
        path = os.path.join(self.folder, "other")
        os.mkfifo(path)
        sparse = os.path.join(self.folder, "sparse")
        with open(sparse, "w") as f:
            f.truncate(1 << 43)  # its NULs have no end
        ca = Authority(self.folder)
        pair = ca.sign("server")
        for file, said in ((path, "regular file"), (sparse, "larger than"), ("/dev/zero", "regular file"), (self.folder, "regular file"),
                           ("/proc/self/mem", "cannot read it"), ("/nowhere", "No such file")):
            good = {"--tls-certificate": pair[0], "--tls-key": pair[1], "--tls-client-ca": ca.certificate}
            for option in ("--principals", *good):
                flags = [CURED, "--check-config", "--listen", "unix:/tmp/x"]
                for name, value in {**good, option: file}.items():
                    flags += [name, value]
                ran = subprocess.run(flags, capture_output=True, text=True, env=environment(), timeout=HANG_S)
                self.assertEqual(64, ran.returncode, (option, file))
                self.assertIn("%s: %s" % (option[2:].replace("-", "_"), file), ran.stderr)
                self.assertIn(said, ran.stderr)

    def test_unknown_names(self):
        ran = subprocess.run([CURED, "--check-config", "--listen", "unix:/tmp/x", "--allow-groups", "no-such-group"],
                             capture_output=True, text=True, env=environment(), timeout=HANG_S)
        self.assertEqual(64, ran.returncode)
        self.assertIn('allow_groups: this machine knows no group "no-such-group"', ran.stderr)


if __name__ == "__main__":
    main()
