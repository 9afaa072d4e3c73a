#!/usr/bin/env python3
"""The clients that docs/GRPC.md shows, as it shows them: its commands run, at a Unix socket, over TCP and over TLS.

A client whose tools are not here is skipped, with what is missing. Where CI is set none may be.
"""
import os
import struct
import subprocess
import tempfile
import unittest

from cured_daemon import Daemon, DaemonTest, main
from tls_files import Authority

SOURCE = os.path.abspath(os.environ.get("CURED_TEST_SOURCE") or os.path.join(os.path.dirname(__file__), "..", ".."))
SHOWN = "unix:/run/cured/cured.sock"
COUNT = 1000000  # 4 MB are sent in several pieces; the sum is exact in a double
WANTED = "small: sum 6.0 max 3.0\nrows: sum 6.0 15.0 max 3.0 6.0\nfile: sum 499999500000.0 max 999999.0\n"

# As the page has them; tests/scripts/test_docs.py sees that each line is here.
PYTHON = r"""
protoc -I proto --python_out=. --grpc_python_out=. \
    --plugin=protoc-gen-grpc_python="$(command -v grpc_python_plugin)" cured.proto
PYTHONPATH=. /usr/bin/python3 examples/grpc/reduce.py unix:/run/cured/cured.sock file.bin
"""
NODE = r"""
mkdir -p build/grpc-js
cp examples/grpc/package.json examples/grpc/reduce.js proto/cured.proto build/grpc-js
npm install --ignore-scripts --prefix build/grpc-js
node build/grpc-js/reduce.js unix:/run/cured/cured.sock file.bin
"""
CPP = r"""
mkdir -p build/grpc-cc
protoc -I proto --cpp_out=build/grpc-cc --grpc_out=build/grpc-cc \
    --plugin=protoc-gen-grpc="$(command -v grpc_cpp_plugin)" cured.proto
c++ -I build/grpc-cc examples/grpc/reduce.cc build/grpc-cc/*.cc \
    $(pkg-config --cflags --libs grpc++ protobuf) -o build/grpc-cc/reduce
build/grpc-cc/reduce unix:/run/cured/cured.sock file.bin
"""

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

    def shown(self, commands):
        """Runs them in a folder that has the source's proto and examples, and nothing else of it; the call
        thrice: at a Unix socket, over TCP, and over TLS."""
        *build, call = commands.strip().split("\n")
        self.assertIn(SHOWN, call)
        tcp = self.tcp.address[len("tcp:"):]
        ways = [call.replace(SHOWN, self.daemon.address), call.replace(SHOWN, tcp), call.replace(SHOWN, tcp) + " " + self.files]
        script = "\n".join(["{", *build, "} >build.log 2>&1 || { cat build.log >&2; exit 1; }", *ways])
        with tempfile.TemporaryDirectory(dir=self.folder) as work:
            for name in ("proto", "examples"):
                os.symlink(os.path.join(SOURCE, name), os.path.join(work, name))
            with open(os.path.join(work, "file.bin"), "wb") as f:
                f.write(struct.pack("<%df" % COUNT, *range(COUNT)))
            before = self.tcp.counters()["tls_handshakes_total"]
            ran = subprocess.run(["bash", "-euc", script], cwd=work, capture_output=True, text=True, timeout=200, check=False)
            self.assertEqual((0, WANTED * len(ways)), (ran.returncode, ran.stdout), ran.stderr)
            self.assertGreater(self.tcp.counters()["tls_handshakes_total"], before)

    def test_python(self):
        self.need("python")
        self.shown(PYTHON)

    def test_node(self):
        self.need("node")
        if not os.environ.get("CI") and not works(REGISTRY):
            self.missing("the registry of npm does not answer")
        self.shown(NODE)

    def test_cpp(self):
        self.need("cpp")
        self.shown(CPP)


if __name__ == "__main__":
    main()
