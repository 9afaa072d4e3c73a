#!/usr/bin/env python3
"""The default sockets, where nobody names an address: who finds which daemon, in what order, and what is said where there
is none. Runs itself in a mount namespace of its own, with an empty /run, so that the machine's own daemon plays no part."""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import cli_daemon
from cli_daemon import ENVIRONMENT, HANG_S, for_others, main

SYSTEM = "unix:/run/cured/cured.sock"
USER = 12345  # nobody in particular
INSIDE = os.environ.get("CURED_TEST_INSIDE")
CLIENT, DAEMON = map(for_others if INSIDE else str, (cli_daemon.CLIENT, cli_daemon.DAEMON))


def environment(runtime=None, **more):
    env = {k: v for k, v in ENVIRONMENT.items() if k != "XDG_RUNTIME_DIR"}
    if runtime:
        env["XDG_RUNTIME_DIR"] = runtime
    return dict(env, **more)


def run(*arguments, runtime=None, user=None, group=None, **more):
    ids = {"user": user, "group": group if group is not None else user, "extra_groups": []} if user else {}
    return subprocess.run([CLIENT, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG_S,
                          env=environment(runtime, **more), **ids)


class Default(unittest.TestCase):
    def setUp(self):
        self.daemons = []
        self.dir = tempfile.mkdtemp(prefix="cured-default-")
        os.chmod(self.dir, 0o755)
        self.own = os.path.join(self.dir, "user")
        os.mkdir(self.own)
        os.chown(self.own, USER, USER)

    def tearDown(self):
        for daemon in self.daemons:
            daemon.send_signal(signal.SIGTERM)
            self.assertEqual(0, daemon.wait(HANG_S))
        shutil.rmtree(self.dir)
        shutil.rmtree("/run/cured", ignore_errors=True)

    def start(self, address, *arguments, **ids):
        daemon = subprocess.Popen([DAEMON, *arguments], env=environment(self.own), stderr=subprocess.DEVNULL, umask=0o077,
                                  **ids)
        self.daemons.append(daemon)
        end = time.monotonic() + HANG_S
        while run("ping", "--connect", address).returncode != 0:
            self.assertLess(time.monotonic(), end, "the daemon does not listen on " + address)
            self.assertIsNone(daemon.poll())
            time.sleep(0.02)

    def found(self, **who):
        result = run("doctor", "--json", **who)
        socket = next(f for f in json.loads(result.stdout) if f["check"] == "socket")
        self.assertEqual("ok", socket["level"], socket)
        self.assertEqual(0, run("ping", **who).returncode)
        return socket["detail"].split(": ")[0]

    def test_root_needs_no_folder(self):
        self.start(SYSTEM)
        self.assertEqual(0o755, os.stat("/run/cured").st_mode & 0o7777)
        self.assertEqual(0o660, os.stat("/run/cured/cured.sock").st_mode & 0o7777)
        self.assertEqual(SYSTEM, self.found())

    def test_a_member_of_the_group_finds_the_systems(self):
        self.start(SYSTEM)
        os.chown("/run/cured/cured.sock", 0, 777)
        self.assertEqual(SYSTEM, self.found(user=USER, group=777))
        self.assertEqual(SYSTEM, self.found(user=USER, group=777, runtime=self.own))
        denied = run("ping", user=USER, runtime=self.own)
        self.assertEqual(77, denied.returncode, denied)
        for word in ("Permission denied", "/run/cured/cured.sock", "usermod -aG cured", "cured-client doctor"):
            self.assertIn(word, denied.stderr)
        self.assertEqual(1, denied.stderr.count("\n"))
        detail = json.loads(run("doctor", "--json", user=USER, runtime=self.own).stdout)[0]["detail"]
        self.assertIn("may not connect", detail)

    def test_ones_own_comes_first(self):
        own = "unix:" + self.own + "/cured.sock"
        self.start(own, user=USER, group=USER, extra_groups=[])
        self.assertEqual(own, self.found(user=USER, runtime=self.own))
        self.start(SYSTEM, "--socket-mode", "0666")
        self.assertEqual(own, self.found(user=USER, runtime=self.own))
        self.assertEqual(SYSTEM, self.found(user=USER))
        self.assertEqual(SYSTEM, self.found())
        other = run("ping", user=USER, CURED_CONNECT="unix:/run/none")
        self.assertEqual(69, other.returncode, other)
        self.assertIn("--listen unix:/run/none", other.stderr)

    def test_roots_own_is_second(self):
        os.chown(self.own, 0, 0)
        own = "unix:" + self.own + "/cured.sock"
        self.start(own, "--listen", own)
        self.assertEqual(own, self.found(runtime=self.own))
        os.chown(self.own, USER, USER)  # sudo kept another user's variable: that daemon gets no files of root's
        self.assertEqual(69, run("ping", runtime=self.own).returncode)

    def sample(self):
        path = os.path.join(self.dir, "sample.bin")
        with open(path, "wb") as f:
            f.write(struct.pack("<4f", 1e8, 0.5, 0.25, -1e8))
        return path

    def test_reductions_need_no_daemon(self):
        path = self.sample()
        for arguments in (["sum", path], ["sum", path, "--connect", "auto:"], ["sum", path, "--connect", "embedded:"]):
            result = run(*arguments, user=USER, runtime=self.own)
            self.assertEqual((0, "0.75\n", ""), (result.returncode, result.stdout, result.stderr))
        self.assertEqual("0.75\n", run("sum", path, CURED_CONNECT="auto:").stdout)
        given = run("sum", path, CURED_CONNECT="unix:/run/none")  # an address that was given is not replaced
        self.assertEqual((69, ""), (given.returncode, given.stdout))
        self.assertEqual(69, run("sum", path, "--connect", "auto:", CURED_CONNECT="unix:/run/none").returncode)
        kernel = run("sum", path, "--kernel", "v0_baseline")
        self.assertEqual(69, kernel.returncode)
        self.assertIn("daemon", kernel.stderr)

    def test_a_terminal_is_told_who_answers(self):
        main_end, end = os.openpty()
        for arguments in ([], ["--quiet"]):
            result = subprocess.run([CLIENT, "sum", self.sample(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=end, timeout=HANG_S, env=environment(self.own))
            self.assertEqual((0, b"0.75\n"), (result.returncode, result.stdout))
        os.close(end)
        told = b""
        while not told.endswith(b"\n"):  # a terminal hands over piece by piece
            told += os.read(main_end, 4096)
        self.assertEqual(b"cured-client: no daemon listens: answering in this process\r\n", told)
        os.close(main_end)

    def test_who_may_not_connect_is_answered_and_told(self):
        self.start(SYSTEM)
        path = self.sample()
        result = run("sum", path, user=USER)
        self.assertEqual((0, "0.75\n"), (result.returncode, result.stdout))
        self.assertIn("usermod -aG cured", result.stderr)
        self.assertEqual(1, result.stderr.count("\n"))
        self.assertEqual("", run("sum", path, "--quiet", user=USER).stderr)
        self.assertEqual("", run("sum", path).stderr)  # root's call goes to the daemon
        self.assertIn("cured/", run("ping").stdout)

    def test_nobody_listens(self):
        result = run("ping", user=USER, runtime=self.own)
        self.assertEqual(69, result.returncode, result)
        for word in (self.own + "/cured.sock", "/run/cured/cured.sock", "cured &", "cured-client doctor"):
            self.assertIn(word, result.stderr)
        self.assertEqual(1, result.stderr.count("\n"))
        self.assertEqual(69, run("ping").returncode)


if __name__ == "__main__":
    if INSIDE:
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
        main()
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        print("skipped: needs root and a mount namespace, to be several users with an empty /run")
        sys.exit(77)
    os.execvpe("unshare", ["unshare", "-m", sys.executable, *sys.argv], dict(os.environ, CURED_TEST_INSIDE="1"))
