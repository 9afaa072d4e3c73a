#!/usr/bin/env python3
"""test_service: the daemon and its service manager: what it tells by NOTIFY_SOCKET, the watchdog, sockets that are passed to it,
and options read again while files hang."""
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from connection import HANG_S, Connection
from cured_daemon import CLIENT, CURED, Daemon, environment, main, need_binary, wait_for
from cured_wire import CALL, CANCEL, END, bytes_field, frame
from for_others import for_others
from fuse_files import FuseFile, why_not
from tls_files import Authority


class ServiceTest(unittest.TestCase):
    def setUp(self):
        need_binary(CURED)
        self.folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.path = os.path.join(self.folder, "cured.json")
        self.write({})

    def write(self, options):
        with open(self.path + ".new", "w") as f:
            json.dump(options, f)
        os.rename(self.path + ".new", self.path)

    def start(self, **more):
        daemon = Daemon(self.folder, **dict({"config": self.path}, **more))
        self.addCleanup(lambda: daemon.alive() and daemon.stop())
        return daemon

    def end(self, daemon):
        daemon.check_end(self, daemon.stop())

    def serves(self, address):
        with Connection(address) as c:
            self.assertIsNone(c.inline("u8", ["sum"], bytes([1, 2, 3])).status)


class Notify(ServiceTest):
    def manager(self, name):
        """A socket as a service manager has one, and its name for the environment."""
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(s.close)
        s.bind(name.replace("@", "\0", 1))
        s.settimeout(HANG_S)
        return s

    def hear(self, s, first):
        """The next message but for those of the watchdog, which must begin so: as a dict."""
        while True:
            text = s.recv(4096).decode()
            if text != "WATCHDOG=1":
                self.assertTrue(text.startswith(first), text)
                return dict(line.split("=", 1) for line in text.splitlines())

    def test_from_start_to_end(self):
        for name in (os.path.join(self.folder, "notify"), "@cured-test-%d" % os.getpid()):
            s = self.manager(name)
            daemon = self.start(env={"NOTIFY_SOCKET": name})
            self.hear(s, "READY=1")
            self.serves(daemon.address)  # ready is ready
            before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
            daemon.process.send_signal(signal.SIGHUP)
            stamp = int(self.hear(s, "RELOADING=1")["MONOTONIC_USEC"])
            self.assertTrue(before <= stamp <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000, stamp)
            self.hear(s, "READY=1")
            self.write({"slabs": 0})
            daemon.process.send_signal(signal.SIGHUP)
            self.hear(s, "RELOADING=1")
            self.hear(s, "READY=1")  # with what it had
            self.write({})
            daemon.process.send_signal(signal.SIGTERM)
            self.hear(s, "STOPPING=1")
            self.end(daemon)

    def test_watchdog(self):
        """The loop tells it, so a loop that stands still does not."""
        name = os.path.join(self.folder, "notify")
        s = self.manager(name)
        daemon = self.start(env={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "40000"})
        self.hear(s, "READY=1")
        for _ in range(3):
            self.assertEqual(b"WATCHDOG=1", s.recv(4096))
        os.kill(daemon.pid, signal.SIGSTOP)
        s.setblocking(False)
        time.sleep(0.1)
        try:
            while s.recv(4096):
                pass
        except BlockingIOError:
            pass
        time.sleep(0.1)
        self.assertRaises(BlockingIOError, s.recv, 4096)
        os.kill(daemon.pid, signal.SIGCONT)
        s.settimeout(HANG_S)
        self.assertEqual(b"WATCHDOG=1", s.recv(4096))
        self.end(daemon)

    def test_nobody_listens(self):
        """A manager that is gone, is full, or has an address that cured does not know, changes nothing for clients."""
        name = os.path.join(self.folder, "notify")
        full = self.manager(name)
        for value in (name, name + "-not", "relative", "@", "vsock:2:1234", "/" + "x" * 200, "", "@" + "y" * 107):
            daemon = self.start(env={"NOTIFY_SOCKET": value, "WATCHDOG_USEC": "2000"})
            if value == name:
                time.sleep(0.3)  # more messages than its queue takes
            self.serves(daemon.address)
            self.end(daemon)
        full.close()

    def test_watchdog_of_another(self):
        name = os.path.join(self.folder, "notify")
        s = self.manager(name)
        daemon = self.start(env={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "2000", "WATCHDOG_PID": "1"})
        self.assertEqual(b"READY=1", s.recv(4096))
        s.settimeout(0.2)
        self.assertRaises(socket.timeout, s.recv, 4096)
        self.end(daemon)


class Passed(ServiceTest):
    """A parent that listens for the daemon, and passes the sockets on, as systemd does."""

    def listener(self, kind, address, listens=True):
        s = socket.socket(kind, socket.SOCK_STREAM)
        self.addCleanup(s.close)
        s.bind(address)
        if listens:
            s.listen(64)
        return s

    def launch(self, sockets, *flags, env=None, pid="$$"):
        """The daemon's process, to which sockets are passed from descriptor 3 on."""
        for n, s in enumerate(sockets):  # above them first, so that none is written over
            os.dup2(s.fileno(), 200 + n)
        shell = "".join("exec %d<&%d %d<&-; " % (3 + n, 200 + n, 200 + n) for n in range(len(sockets)))
        shell += 'LISTEN_PID=%s LISTEN_FDS=%d exec "$0" "$@"' % (pid, len(sockets))
        keep = tuple(200 + n for n in range(len(sockets)))
        process = subprocess.Popen(["bash", "-c", shell, CURED, "--config", self.path, *flags], pass_fds=keep,
                                   stderr=subprocess.PIPE, text=True, env=environment(**(env or {})))
        for fd in keep:
            os.close(fd)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=HANG_S)[1]
        self.assertEqual(0, process.returncode, said)
        self.assertNotRegex(said, "Sanitizer|runtime error")
        return said

    def test_passed_sockets(self):
        """They serve, before the daemon is there too, and stay when it ends: the next one goes on with them."""
        path = os.path.join(self.folder, "passed.sock")
        unix, tcp = self.listener(socket.AF_UNIX, path), self.listener(socket.AF_INET, ("127.0.0.1", 0))
        addresses = ["unix:" + path, "tcp:127.0.0.1:%d" % tcp.getsockname()[1]]
        env = {"CURED_LISTEN": addresses[0]}  # the same once more: it is not bound again
        for round_ in range(2):
            early = socket.socket(socket.AF_UNIX)
            early.connect(path)  # accepted once there is a daemon
            process = self.launch([unix, tcp], env=env if round_ else None)
            for address in addresses:
                self.serves(address)
            early.close()
            said = self.stop(process)
            self.assertEqual(2, said.count("passed by the service manager"), said)
            self.assertEqual(2, said.count("listening on"), said)
            self.assertTrue(os.path.exists(path), "the socket's file is the manager's")
            self.assertFalse(os.path.exists(path + ".lock"))

    def test_beside_others(self):
        path, other = os.path.join(self.folder, "passed.sock"), os.path.join(self.folder, "own.sock")
        process = self.launch([self.listener(socket.AF_UNIX, path)], "--listen", "unix:" + other)
        wait_for("the other socket", lambda: os.path.exists(other))
        self.serves("unix:" + path)
        self.serves("unix:" + other)
        self.stop(process)
        self.assertTrue(os.path.exists(path))
        self.assertFalse(os.path.exists(other), "its own socket's file goes")

    def test_reload_without_an_address(self):
        path = os.path.join(self.folder, "passed.sock")
        process = self.launch([self.listener(socket.AF_UNIX, path)], env={"XDG_RUNTIME_DIR": ""})
        self.serves("unix:" + path)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGHUP)
        self.serves("unix:" + path)
        time.sleep(0.2)
        self.assertNotIn("stays as it was", self.stop(process))

    def plain_file(self):
        f = open(self.path)
        self.addCleanup(f.close)
        return f

    def refused(self, word, sockets, *flags, **more):
        process = self.launch(sockets, *flags, **more)
        said = process.communicate(timeout=HANG_S)[1]
        self.assertNotEqual(0, process.returncode)
        self.assertIn(word, said)

    def test_what_is_refused(self):
        unix = self.listener(socket.AF_UNIX, os.path.join(self.folder, "a.sock"))
        self.refused("descriptor 4 is no listening", [unix, self.plain_file()])
        self.refused("no listening", [self.listener(socket.AF_UNIX, os.path.join(self.folder, "b.sock"), listens=False)])
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(datagrams.close)
        self.refused("no listening", [datagrams])
        self.refused("from 0 to 8", [unix] * 9)
        self.refused("may be reached from other machines", [self.listener(socket.AF_INET, ("0.0.0.0", 0))])
        self.refused("may be reached from other machines", [self.listener(socket.AF_INET6, ("::", 0))])

    def test_those_of_another_process(self):
        """LISTEN_PID names somebody else: they are not looked at."""
        process = self.launch([self.plain_file()], "--listen", "unix:" + os.path.join(self.folder, "own.sock"), pid="1")
        wait_for("its own socket", lambda: os.path.exists(os.path.join(self.folder, "own.sock")))
        self.assertNotIn("passed", self.stop(process))

    def test_a_folder_that_is_missing(self):
        ran = subprocess.run([CURED, "--listen", "unix:%s/no/cured.sock" % self.folder], capture_output=True, text=True,
                             env=environment(), timeout=HANG_S)
        self.assertIn("install -d", ran.stderr)


class Reload(ServiceTest):
    def hang_up(self, daemon, word):
        before = len(daemon.lines)
        daemon.process.send_signal(signal.SIGHUP)
        wait_for("word of it", lambda: any(word in line for line in daemon.lines[before:]))

    def test_all_or_nothing(self):
        """A file of tokens with a mistake keeps the options beside it from changing, too."""
        tokens = os.path.join(self.folder, "tokens")
        with open(tokens, "w") as f:
            f.write("# none\n")
        self.write({"principals": [tokens], "max_jobs": 4})
        daemon = self.start()
        with open(tokens, "w") as f:
            f.write("not a line\n")
        self.write({"principals": [tokens], "max_jobs": 5, "slabs": 5})
        self.hang_up(daemon, "everything stays as it was")
        self.assertNotIn("max_jobs: reloaded", daemon.log())
        os.remove(tokens)
        os.mkfifo(tokens)  # nobody writes to it
        self.hang_up(daemon, "everything stays as it was")
        self.write({"max_jobs": 5, "slabs": 5})
        self.hang_up(daemon, "1 more take a restart")
        self.assertIn("max_jobs: reloaded", daemon.log())
        self.assertIn("principals: reloaded", daemon.log())
        self.end(daemon)

    def client(self, daemon, *words, program=CLIENT, **more):
        return subprocess.run([program, "--connect", daemon.address, "config", *words], capture_output=True, text=True,
                              timeout=HANG_S, env=environment(), **more)

    def test_by_cured_client(self):
        """The answer says what changed, or what is wrong."""
        self.write({"max_jobs": 4})
        daemon = self.start()
        ran = self.client(daemon, "reload")
        self.assertEqual((0, "nothing has changed\n"), (ran.returncode, ran.stdout), ran.stderr)
        self.write({"max_jobs": "5", "slabs": 5})
        ran = self.client(daemon, "reload", "--json")
        self.assertEqual({"changed": ["max_jobs"], "restart": ["slabs"]}, json.loads(ran.stdout), ran.stderr)
        self.write({"max_jobs": "5MiB"})
        ran = self.client(daemon, "reload")
        self.assertNotEqual(0, ran.returncode)
        self.assertIn('key "max_jobs"', ran.stderr)
        self.assertIn("everything stays as it was", ran.stderr)
        ran = self.client(daemon, "rewind")
        self.assertEqual(64, ran.returncode)
        self.end(daemon)

    def test_what_is_in_force(self):
        """Each option with its value, where it came from, and what a reload cannot do."""
        self.write({"max_jobs": 4, "slabs": 6})
        daemon = self.start(log_level="info", env={"CURED_SLOW_MS": "2s"})

        def shown():
            ran = self.client(daemon, "show", "--json")
            return {row.pop("key"): tuple(row.values()) for row in json.loads(ran.stdout)["config"]}

        first = shown()
        self.assertEqual(("4", "file", True, False), first["max_jobs"])
        self.assertEqual(("6", "file", False, False), first["slabs"])
        self.assertEqual(("2000", "environment", True, False), first["slow_ms"])
        self.assertEqual(("info", "flag", True, False), first["log_level"])
        self.assertEqual(("cpu", "default", True, False), first["on_gpu_fault"])
        with open(os.path.join(os.environ["CURED_TEST_SOURCE"], "config", "cured.json")) as f:
            self.assertEqual(set(json.load(f)) - {"$schema"}, set(first), "every option is there")
        self.write({"slow_ms": "3s", "slabs": 7})
        self.client(daemon, "reload")
        second = shown()
        changed = {key: second[key] for key in second if second[key] != first[key]}
        self.assertEqual({"max_jobs": ("4096", "default", True, False), "slabs": ("6", "file", False, True)}, changed)
        lines = self.client(daemon, "show").stdout.splitlines()
        self.assertIn("slabs                    6  (file; another value waits for a restart)", lines)
        self.assertIn("gpu_streams              4  (default; takes a restart)", lines)
        self.assertIn("slow_ms                  2000  (environment)", lines)
        self.write({"slabs": 6})
        self.client(daemon, "reload")
        self.assertEqual(first["slabs"], shown()["slabs"], "nothing waits any more")
        self.end(daemon)

    def test_others_may_not(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to become somebody else")
        daemon = self.start(socket_mode="0666")
        os.chmod(self.folder, 0o755)
        nobody = {"program": for_others(CLIENT), "user": 65534, "group": 65534, "extra_groups": []}
        for word in ("reload", "show"):
            ran = self.client(daemon, word, **nobody)
            self.assertEqual((77, ""), (ran.returncode, ran.stdout))
            self.assertIn('"admin"', ran.stderr)
        self.end(daemon)

    def test_clients_that_leave(self):
        """Between its request and the answer a client goes: nothing is told to it, and others go on."""
        daemon = self.start()
        for _ in range(20):
            with Connection(daemon.address) as c:
                for _ in range(3):
                    c.send(frame(CALL, c.open_stream(), bytes_field(10, b""), END))
        with Connection(daemon.address) as c:
            stream = c.open_stream()
            c.send(frame(CALL, stream, bytes_field(10, b""), END))
            c.send(frame(CANCEL, stream))
            c.until(lambda: c.answers[stream].over)
        self.serves(daemon.address)
        self.end(daemon)

    def test_ends_while_it_reads(self):
        """OpenSSL tidies up as the process ends: the thread that reads a key must not be within it then."""
        if shutil.which("openssl") is None:
            self.skipTest("no openssl to make a certificate with")
        ca = Authority(self.folder)
        certificate, key = ca.sign("server")
        for _ in range(15):
            daemon = self.start(listen=["tcp:127.0.0.1:0"], tls_certificate=certificate, tls_key=key)
            daemon.process.send_signal(signal.SIGHUP)
            wait_for("its start", lambda: "reading the options again" in daemon.log())
            self.end(daemon)

    def test_many_at_once(self):
        """However often it is asked for while one goes on: the last word of the file counts."""
        daemon = self.start()
        for i in range(1, 30):
            self.write({"max_input_bytes": "%dKiB" % i})
            daemon.process.send_signal(signal.SIGHUP)
        with Connection(daemon.address) as c:
            wait_for("the last of them", lambda: c.inline("u8", ["sum"], bytes(29 << 10)).status is None)
        self.end(daemon)

    def test_a_file_that_hangs(self):
        """The loop serves others meanwhile, and reloads again once the file answers."""
        reason = why_not()
        if reason:
            self.skipTest(reason)
        try:
            hung = FuseFile(self.folder, b'{"max_jobs": 7}')
        except OSError as e:
            self.skipTest("cannot mount FUSE here: %s" % e.strerror)
        self.addCleanup(hung.abort)
        path = os.path.join(hung.mountpoint, "array")
        daemon = self.start(config=path)
        hung.set(hang={"read"})
        daemon.process.send_signal(signal.SIGHUP)
        wait_for("a hung look", lambda: hung.hangs() > 0)
        for _ in range(20):
            self.serves(daemon.address)
        hung.let_go()
        wait_for("the end of it", lambda: "take a restart" in daemon.log())
        hung.set(hang={"read"})
        daemon.process.send_signal(signal.SIGHUP)
        wait_for("a hung look", lambda: hung.hangs() > 0)
        daemon.process.send_signal(signal.SIGTERM)
        wait_for("its end", lambda: any("stopping" in line for line in list(daemon.lines)))
        hung.abort()  # the kernel keeps a process whose thread waits for FUSE
        daemon.check_end(self, daemon.wait())


if __name__ == "__main__":
    main()
