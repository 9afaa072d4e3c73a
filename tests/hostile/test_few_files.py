#!/usr/bin/env python3
"""test_few_files: a daemon that may open hardly any files ends with a sentence, or serves. It never ends by a signal."""
import resource
import shutil
import subprocess
import tempfile
import unittest

from connection import HANG_S
from cured_daemon import CURED, REPORT, Daemon, environment, main, need_binary

LOADER = 3  # standard input, output and error: with these alone not even the program's libraries can be opened


class FewFiles(unittest.TestCase):
    def setUp(self):
        need_binary(CURED)
        self.folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self, most, *flags):
        """(exit status, what it says) of a daemon that may open most files; None: it goes on."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        process = subprocess.Popen([CURED, "--listen", "unix:few.sock", *flags], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, env=environment(), preexec_fn=limit, cwd=self.folder)
        said = []
        for line in process.stderr:
            said.append(line)
            if "listening on" in line:
                process.terminate()
        process.stderr.close()
        return process.wait(HANG_S), "".join(said)

    def test_too_few_are_said_so(self):
        for most in list(range(LOADER + 1, 32)) + [40, 63]:
            status, said = self.start(most)
            self.assertEqual(69, status, (most, said))
            self.assertIn("RLIMIT_NOFILE: this process may open %d files" % most, said)
            self.assertIsNone(REPORT.search(said), said)

    def test_the_least_is_enough(self):
        status, said = self.start(64, "--admin", "unix:admin.sock")
        self.assertEqual(0, status, said)
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        daemon = Daemon(self.folder, limits=limit)
        with daemon.connect() as c:
            self.assertEqual((3).to_bytes(8, "little"), c.inline("u8", ["sum"], b"\1\2").results[0].value)
        daemon.check_end(self, daemon.stop())


if __name__ == "__main__":
    main()
