#!/usr/bin/env python3
"""The clients that docs/GRPC.md shows, by its commands, at a Unix socket, over TCP and over TLS.

A client whose tools are not here is skipped, with what is missing. Where CI is set none may be.
"""
import os
import re
import socket
import struct
import subprocess
import tempfile
import unittest

from cured_daemon import Daemon, DaemonTest, main
from tls_files import Authority

SOURCE = os.path.abspath(os.environ.get("CURED_TEST_SOURCE") or os.path.join(os.path.dirname(__file__), "..", ".."))
SHOWN = '"$CURED_CONNECT" build/file.bin'  # the README's daemon and file
COUNT = 1000000  # 4 MB are sent in several pieces; the sum is exact in a double
WANTED = "small: sum 6.0 max 3.0\nrows: sum 6.0 15.0 max 3.0 6.0\nfile: sum 499999500000.0 max 999999.0\n"

def blocks():
    """The commands of the page's console blocks; tests/scripts/test_docs.py runs them as they stand there."""
    with open(os.path.join(SOURCE, "docs", "GRPC.md"), encoding="utf-8") as f:
        for block in re.findall(r"^```console\n(.*?)^```", f.read(), flags=re.S | re.M):
            yield "\n".join(line[2:] for line in block.splitlines() if line.startswith(("$ ", "> ")))


# What each client needs: a command that succeeds where it can be built and run.
NEEDS = {
    "python": ("type protoc grpc_python_plugin && /usr/bin/python3 -c 'import grpc, google.protobuf'", "--tests"),
    "node": ("type node npm", "--clients"),
    "cpp": ("type protoc grpc_cpp_plugin c++ && pkg-config --exists grpc++ protobuf", "--clients"),
}
REGISTRY = "npm view @grpc/grpc-js@1.14.7 version"


def works(command):
    return subprocess.run(["bash", "-c", command], capture_output=True, check=False).returncode == 0


class Examples(DaemonTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        ca = Authority(cls.folder)
        certificate, key = ca.sign("server")
        cls.tcp = Daemon(cls.folder, listen=["tcp:127.0.0.1:0"], tls_certificate=certificate, tls_key=key,
                         tls_client_ca=ca.certificate)
        cls.files = " ".join([ca.certificate, *ca.sign("somebody")])
        cls.addClassCleanup(lambda: cls.tcp.check_end(unittest.TestCase(), cls.tcp.stop()))

    def missing(self, why):
        if os.environ.get("CI"):
            self.fail(why + "; where CI is set every client must run")
        self.skipTest(why)

    def need(self, client):
        command, option = NEEDS[client]
        if not works(command):
            self.missing("not all here: %s (scripts/bootstrap %s installs them)" % (command, option))

    def shown(self, program):
        """Runs the page's commands that end with a call of this program, in a folder that has the source's proto and
        examples, and nothing else of it; the call at a Unix socket, over TCP, over TLS, and before the daemon is there."""
        commands, = (commands for commands in blocks() if program in commands)
        *build, call = commands.split("\n")
        self.assertIn(SHOWN, call)
        tcp = self.tcp.address[len("tcp:"):]
        late = "unix:%s/late-%s.sock" % (self.folder, program)
        ways = [call.replace(SHOWN, where) for where in (self.daemon.address + " file.bin", tcp + " file.bin",
                                                         tcp + " file.bin " + self.files, late + " file.bin")]
        script = "\n".join(["{", *build, "} >build.log 2>&1 || { cat build.log >&2; exit 1; }", *ways])
        with tempfile.TemporaryDirectory(dir=self.folder) as work:
            for name in ("proto", "examples"):
                os.symlink(os.path.join(SOURCE, name), os.path.join(work, name))
            with open(os.path.join(work, "file.bin"), "wb") as f:
                f.write(struct.pack("<%df" % COUNT, *range(COUNT)))
            before = self.tcp.counters()["tls_handshakes_total"]
            with subprocess.Popen(["bash", "-euc", script], cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
                self.start_late(late, ran)
                out, err = ran.communicate(timeout=250)
            self.assertEqual((0, WANTED * len(ways)), (ran.returncode, out), err)
            self.assertGreater(self.tcp.counters()["tls_handshakes_total"], before)

    def start_late(self, address, ran):
        """Starts a daemon at this address once a first connection has come there and was closed, while this process runs."""
        path = address[len("unix:"):]
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            listener.settimeout(0.5)
            while ran.poll() is None:
                try:
                    listener.accept()[0].close()
                    break
                except TimeoutError:
                    pass
        os.unlink(path)
        daemon = Daemon(self.folder, listen=[address])
        self.addCleanup(lambda: daemon.check_end(self, daemon.stop()))

    def test_python(self):
        self.need("python")
        self.shown("reduce.py")

    def test_node(self):
        self.need("node")
        if not os.environ.get("CI") and not works(REGISTRY):
            self.missing("the registry of npm does not answer")
        self.shown("reduce.js")

    def test_cpp(self):
        self.need("cpp")
        self.shown("reduce.cc")


if __name__ == "__main__":
    main()
