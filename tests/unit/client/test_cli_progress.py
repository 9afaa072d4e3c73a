#!/usr/bin/env python3
"""cured-client's progress bar: there on a terminal once a call takes its time, gone before the answer, and nowhere else."""
import os
import pty
import subprocess
import time

from cli_daemon import CLIENT, ENVIRONMENT, HANG_S, CliTest, main

CHUNK = bytes(1 << 16)


class Progress(CliTest):
    def run_slowly(self, *arguments, seen=lambda text, sent: b"B/s" in text, terminal=True, term="xterm"):
        """Feeds standard input until what came on standard error is enough. Returns the answer and all of standard error."""
        ours, theirs = pty.openpty() if terminal else os.pipe()
        env = dict(ENVIRONMENT, TERM=term)
        run = subprocess.Popen([CLIENT, "sum", "-", "--dtype", "u8", "--connect", self.unix, *arguments], env=env,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        os.set_blocking(ours, False)
        text, sent, end = b"", 0, time.monotonic() + HANG_S
        while not seen(text, sent):
            self.assertLess(time.monotonic(), end, text)
            run.stdin.write(CHUNK)
            run.stdin.flush()
            sent += 1
            time.sleep(0.01)
            try:
                text += os.read(ours, 65536)
            except BlockingIOError:
                pass
        run.stdin.close()
        answer = run.stdout.read()
        self.assertEqual(0, run.wait(HANG_S))
        os.set_blocking(ours, True)
        try:
            while more := os.read(ours, 65536):
                text += more
        except OSError:  # how a pty ends
            pass
        os.close(ours)
        return answer, text

    def test_there_and_gone(self):
        answer, text = self.run_slowly()
        self.assertEqual(b"0\n", answer)
        self.assertIn(b"standard input ", text)
        self.assertTrue(text.endswith(b"\r\033[K"), text)
        self.assertNotIn(b"\033[3", text)  # no colours

    def test_nowhere_else(self):
        second = time.monotonic
        for arguments, more in (((), {"terminal": False}), (("--quiet",), {}), (("--no-progress",), {}), ((), {"term": "dumb"})):
            # longer than a bar takes to appear
            start = second()
            answer, text = self.run_slowly(*arguments, seen=lambda text, sent: second() - start > 0.8, **more)
            self.assertEqual((b"0\n", b""), (answer, text), (arguments, more))


if __name__ == "__main__":
    main()
