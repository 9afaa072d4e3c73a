#!/usr/bin/env python3
"""Who a client is over Unix sockets and on loopback: users, groups and addresses; and files of principals that are wrong.

Tests with grpcio are in test_principals: here processes fork, which grpcio does not bear.
"""
import grp
import os
import re
import shutil
import subprocess
import tempfile
import traceback
import unittest

from connection import HANG_S, Connection
from cured_daemon import CLIENT, CURED, Daemon, environment, main, need_binary
from for_others import for_others
from cured_wire import CALL, END, bytes_field, frame
from tls_files import Authority

OK, PERMISSION_DENIED = 0, 7


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


class Hints(unittest.TestCase):
    """What a user without a folder at $XDG_RUNTIME_DIR, as after `su`, is told to start: it works when it is copied."""

    def test_a_daemon_for_this_user(self):
        if os.path.exists("/run/cured/cured.sock"):
            self.skipTest("a daemon listens here already")
        folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        os.mkdir(os.path.join(folder, "bin"))
        for program in (CURED, CLIENT):
            os.symlink(for_others(program), os.path.join(folder, "bin", os.path.basename(program)))
        somebody = {}
        if os.geteuid() == 0:
            somebody = {"user": 65534, "group": 65534, "extra_groups": []}
            os.chown(folder, 65534, 65534)
        env = environment(HOME=folder, PATH=os.path.join(folder, "bin") + os.pathsep + os.environ["PATH"])
        env.pop("XDG_RUNTIME_DIR", None)

        def run(script):
            return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, env=env, cwd=folder, check=False, **somebody)
        ran = run("cured-client ping")
        self.assertEqual(69, ran.returncode, ran.stderr)
        hint, = re.findall(r"\(start a daemon: (.* &); cured-client doctor says more\)$", ran.stderr.strip())
        ran = run("%s\nuntil cured-client ping 2>/dev/null; do kill -0 $! || exit 9; sleep 0.1; done; kill $!; wait $!" % hint)
        self.assertEqual(0, ran.returncode, (hint, ran.stderr))
        self.assertIn("answers in", ran.stdout)
        ran = run("cured")
        self.assertEqual(64, ran.returncode)
        self.assertIn("use --listen, such as --listen unix:$HOME/cured.sock", ran.stderr)


if __name__ == "__main__":
    main()
