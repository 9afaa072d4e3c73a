#!/usr/bin/env python3
"""cured-client started without one of its standard descriptors: what it opens next must not become its standard output."""
import os
import struct
import subprocess

from cli_daemon import CLIENT, ENVIRONMENT, HANG_S, CliTest, main, npy


class Streams(CliTest):
    def run_without(self, closed, *words):
        def close():
            for fd in closed:
                os.close(fd)
        return subprocess.run([CLIENT, *words], env=ENVIRONMENT, capture_output=True, timeout=HANG_S, preexec_fn=close)

    def commands(self):
        partial, keyed = self.dir + "/p.crp", self.dir + "/k.crp"
        keys = self.write("keys.npy", npy(bytes(100), "|u1", (100,)))
        self.client("sum", self.npy, "--partial", "--output", partial)
        self.client("sum", self.npy, "--keys", keys, "--partial", "--output", keyed)
        return [("sum", self.npy), ("sum", self.npy, "--json"), ("describe", self.npy, "--output", "table"), ("sum", self.npy, self.raw, "--total"),
                ("median", self.npy), ("sum", self.npy, "--axis", "0"), ("sum", self.npy, "--axis", "0", "--json"), ("sum", self.npy, "--partial"),
                ("sum", self.npy, "--axis", "0", "--output", "-"), ("merge", partial, "--ops", "sum"), ("merge", keyed, "--ops", "sum"),
                ("merge", partial, "--ops", "sum", "--local"), ("weights", self.npy), ("ping",), ("info", "--json"), ("stats",), ("slowlog", "--json"),
                ("top", "--once"), ("config", "show"), ("config", "show", "--json"), ("doctor",), ("token", "somebody"), ("help", "sum"), ("--help",),
                ("--version",)]

    def test_an_answer_that_cannot_be_written_is_no_success(self):
        for words in self.commands():
            for address in (self.unix, "embedded:"):
                if address == "embedded:" and words[0] not in ("sum", "merge", "median"):
                    continue
                more = ("--connect", address) if words[0] not in ("--help", "--version") else ()
                for closed in ((1,), (0, 1)):
                    done = self.run_without(closed, *words, *more)
                    self.assertEqual(74, done.returncode, (words, address, closed, done))
                    self.assertIn(b"cannot write to standard output", done.stderr, words)
                self.assertEqual(74, self.run_without((0, 1, 2), *words, *more).returncode, words)

    def test_full(self):
        for words in self.commands():
            more = ("--connect", self.unix) if words[0] not in ("--help", "--version") else ()
            with open("/dev/full", "wb") as full:
                done = subprocess.run([CLIENT, *words, *more], env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, timeout=HANG_S)
            self.assertEqual(74, done.returncode, (words, done))
            self.assertIn(b"cannot write to standard output", done.stderr, words)

    def test_what_is_not_asked_for_may_lack(self):
        """An answer goes to its file, and nothing else does."""
        name = self.dir + "/sum.npy"
        for address in (self.unix, "embedded:"):
            for closed in ((0,), (1,), (2,), (0, 1, 2)):
                done = self.run_without(closed, "sum", self.npy, "--axis", "1", "--output", name, "--timing", "--connect", address)
                self.assertEqual(0, done.returncode, done)
                with open(name, "rb") as file:
                    self.assertEqual(128 + 100 * 8, len(file.read()))
                os.unlink(name)
            for closed in ((0,), (2,), (0, 2)):
                done = self.run_without(closed, "count", self.npy, "--connect", address)
                self.assertEqual((0, b"30000\n"), (done.returncode, done.stdout))
            done = self.run_without((0,), "count", "-", "--connect", address)
            self.assertEqual(74, done.returncode, done)
            self.assertIn(b"cannot read standard input: Bad file descriptor", done.stderr)
            self.assertEqual(66, self.run_without((2,), "count", self.npy + "x", "--connect", address).returncode)
        self.assertEqual("%d\n" % 3, self.client("sum", self.write("b.bin", struct.pack("<2f", 1, 2))).out)  # the daemon is well


if __name__ == "__main__":
    main()
