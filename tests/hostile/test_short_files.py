#!/usr/bin/env python3
"""test_short_files: under a limit on the length of files (RLIMIT_FSIZE) a daemon lives on without the lines that its log cannot take,
and counts them. cured-client says that it cannot write, with status 74. Nobody ends by SIGXFSZ."""
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import unittest

from connection import HANG_S, Connection
from cured_daemon import CLIENT, CURED, environment, main, need_binary, wait_for

MOST = 4096


def short():
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST, MOST))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it, and what it starts would too


class ShortFiles(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def test_a_log_that_is_full_ends_no_daemon(self):
        need_binary(CURED)
        log, socket = (os.path.join(self.folder, name) for name in ("log", "cured.sock"))
        with open(log, "wb") as f:
            process = subprocess.Popen([CURED, "--listen", "unix:" + socket, "--log-level", "debug", "--log-calls", "all"],
                                       stdin=subprocess.DEVNULL, stderr=f, env=environment(), preexec_fn=short)
        try:
            wait_for("the socket", lambda: os.path.exists(socket) or process.poll() is not None)
            with Connection("unix:" + socket) as c:
                for _ in range(200):
                    c.inline("u8", ["sum"], b"\1\2")
                wait_for("a full log", lambda: process.poll() is not None or c.info()["counters"]["log_lost_total"] > 0)
                self.assertEqual((3).to_bytes(8, "little"), c.inline("u8", ["sum"], b"\1\2").results[0].value)
            self.assertLessEqual(os.path.getsize(log), MOST)
        finally:
            process.terminate()
            status = process.wait(HANG_S)
        self.assertEqual(0, status)

    def client(self, *arguments, stdout=subprocess.PIPE):
        return subprocess.run([CLIENT, *arguments, "--connect", "embedded:"], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
                              text=True, timeout=HANG_S, env=environment(), cwd=self.folder, preexec_fn=short)

    def test_an_output_that_is_full_is_said_so(self):
        need_binary(CLIENT)
        data, out = (os.path.join(self.folder, name) for name in ("data.bin", "out.npy"))
        with open(data, "wb") as f:
            f.write(bytes(4 * 4 * MOST))
        axis = ["sum", data, "--shape", "%d,4" % MOST, "--axis", "1"]
        program = self.client(*axis, "--output", out)
        self.assertEqual(74, program.returncode, program.stderr)
        self.assertIn("cannot write to %s: File too large" % out, program.stderr)
        self.assertFalse(os.path.exists(out), "a file that is half written is not left behind")
        with open(os.path.join(self.folder, "standard"), "wb") as standard:
            program = self.client(*axis, stdout=standard)
        self.assertEqual(74, program.returncode, program.stderr)
        partial = self.client("sum,max,prod,norm2", data, "--partial", "--output", os.path.join(self.folder, "part.crp"))
        self.assertIn(partial.returncode, (0, 64, 74), partial.stderr)  # it may fit


if __name__ == "__main__":
    main()
