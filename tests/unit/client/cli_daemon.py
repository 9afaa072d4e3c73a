"""cli_daemon: a daemon for tests of cured-client as a program, and ways to run the latter."""
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "integration"))
import reasons  # noqa: E402: tests/integration
from for_others import for_others  # noqa: E402,F401: there too

BIN = os.environ.get("CURED_TEST_BIN", "build/dev/bin")
CLIENT, DAEMON = os.path.join(BIN, "cured-client"), os.path.join(BIN, "cured")
HANG_S = 180  # only catches hangs
# The daemon and the client read CURED_*: the tests' own variables are not for them.
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("CURED_")}


def npy(array_bytes, descr, shape, fortran=False, version=1):
    text = "{'descr': %s, 'fortran_order': %s, 'shape': %s, }" % (
        descr if descr.startswith("[") else repr(descr), fortran, repr(tuple(shape)))
    prefix = 10 if version == 1 else 12
    text += " " * (-(prefix + len(text) + 1) % 64) + "\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + array_bytes


class Result:
    def __init__(self, process, out, err):
        self.code, self.out, self.err = process.returncode, out.decode(), err.decode()

    def __repr__(self):
        return "exit %d, out %r, err %r" % (self.code, self.out, self.err)


class CliTest(unittest.TestCase):
    """One daemon a class; cured-client against it."""

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="cured-cli-")
        cls.unix = "unix:" + os.path.join(cls.dir, "s")
        cls.log = open(os.path.join(cls.dir, "log"), "wb")
        cls.daemon = subprocess.Popen([DAEMON, "--listen", cls.unix, "--listen", "tcp:127.0.0.1:0"], stderr=cls.log,
                                      stdout=cls.log, env=ENVIRONMENT)
        end = time.monotonic() + HANG_S
        while cls.run_static("ping", "--connect", cls.unix).code != 0:
            if time.monotonic() > end or cls.daemon.poll() is not None:
                raise RuntimeError("the daemon does not start")
            time.sleep(0.02)
        with open(os.path.join(cls.dir, "log")) as f:
            cls.tcp = re.search(r"listening on (tcp:127\.0\.0\.1:\d+)", f.read()).group(1)
        rnd = random.Random(7)
        cls.values = [struct.unpack("<f", struct.pack("<f", rnd.gauss(0, 1)))[0] for _ in range(30000)]
        cls.raw = cls.write("raw.bin", struct.pack("<30000f", *cls.values))
        cls.npy = cls.write("a.npy", npy(struct.pack("<30000f", *cls.values), "<f4", (100, 300)))

    @classmethod
    def tearDownClass(cls):
        cls.daemon.send_signal(signal.SIGTERM)
        code = cls.daemon.wait(HANG_S)
        cls.log.close()
        with open(os.path.join(cls.dir, "log"), errors="replace") as f:
            text = f.read()
        shutil.rmtree(cls.dir)
        assert code == 0, "the daemon ended with %d:\n%s" % (code, text)

    @classmethod
    def write(cls, name, data):
        path = os.path.join(cls.dir, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    @staticmethod
    def run_static(*arguments, stdin=subprocess.DEVNULL, data=None, env=None):
        process = subprocess.Popen([CLIENT, *arguments], stdin=subprocess.PIPE if data is not None else stdin,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env or ENVIRONMENT)
        out, err = process.communicate(data, timeout=HANG_S)
        return Result(process, out, err)

    def client(self, *arguments, code=0, tcp=False, **more):
        result = self.run_static(*arguments, "--connect", self.tcp if tcp else self.unix, **more)
        self.assertEqual(result.code, code, result)
        if code:
            self.assertRegex(result.err, r"\Acured-client: .+\n\Z")
        return result

    def fails(self, code, says, *arguments, **more):
        result = self.client(*arguments, code=code, **more)
        self.assertIn(says, result.err)
        self.assertNotIn("\x1b", result.err)
        return result


def main():
    if not os.path.exists(DAEMON):
        print("skipped: there is no daemon at", DAEMON)
        sys.exit(77)
    reasons.main()
