#!/usr/bin/env python3
"""test_killed: clients with many calls in flight, and a daemon that is killed (SIGKILL) and started again under them. Every call ends,
with the right bits or with a status, and the last daemon gives everything back.

  test_killed.py [--calls N] [--kills N] [--clients N] [--seed N]     1,000,000 calls and 50 kills: --calls 1000000 --kills 50
"""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from cured_daemon import BIN, CURED, Daemon, environment, main, need_binary, wait_for  # noqa: E402

CLIENT = os.path.join(os.path.dirname(BIN), "tests", "killed_client")
HANG_S = 600


class Clients:
    def __init__(self, address, calls, clients, seed):
        each = [calls // clients + (i < calls % clients) for i in range(clients)]
        self.processes = [subprocess.Popen([CLIENT, address, str(n), str(seed + i)], stdin=subprocess.DEVNULL, env=environment(),
                                           stdout=subprocess.PIPE) for i, n in enumerate(each)]
        for p in self.processes:
            os.set_blocking(p.stdout.fileno(), False)
        self.done, self.text = [0] * clients, [""] * clients

    def progress(self):
        for i, p in enumerate(self.processes):
            self.text[i] += (p.stdout.read() or b"").decode()
            found = re.findall(r"done (\d+)\n", self.text[i])
            self.done[i] = int(found[-1]) if found else 0
        return sum(self.done)

    def ended(self):
        return all(p.poll() is not None for p in self.processes)

    def stop(self):
        for p in self.processes:
            p.kill()
            p.wait()
            p.stdout.close()

    def sums(self):
        """Of what they print at their end."""
        self.progress()
        sums = {}
        for i, p in enumerate(self.processes):
            if p.returncode:
                raise AssertionError("a client ended with %d: %s" % (p.returncode, self.text[i][-500:]))
            for name, count in re.findall(r"(\w+) (\d+)", self.text[i].splitlines()[-1]):
                sums[name] = sums.get(name, 0) + int(count)
        return sums


def run(test, calls, kills, clients, seed):
    r = random.Random(seed)
    folder = tempfile.mkdtemp(prefix="cured-killed-")
    address = "unix:" + os.path.join(folder, "s")
    start = time.monotonic()
    daemon = Daemon(folder, listen=[address], log_level="info", slabs=16)
    crowd = Clients(address, calls, clients, seed)
    try:
        killed = 0
        while killed < kills:
            killed += 1
            due = calls * killed // (kills + 1)
            wait_for("%d calls" % due, lambda: crowd.progress() >= due or crowd.ended(), HANG_S)
            daemon.process.kill()
            daemon.wait()
            time.sleep(r.choice((0, 0.01, 0.05, 0.2)))
            daemon = Daemon(folder, listen=[address], log_level="info", slabs=16)
        wait_for("the clients' end", crowd.ended, HANG_S)
        sums = crowd.sums()
        test.assertEqual(calls, sum(sums.values()), sums)
        test.assertGreater(sums["right"], calls // 2)
        daemon.warm_up()
        daemon.check_returned(test)
        daemon.check_end(test, daemon.stop())
        print("%d calls of %d clients, %d kills: %s; %.0f s" % (calls, clients, killed, ", ".join(
            "%d %s" % (count, name) for name, count in sums.items()), time.monotonic() - start))
    finally:
        crowd.stop()
        if daemon.alive():
            daemon.stop(9)
        shutil.rmtree(folder, ignore_errors=True)


class Killed(unittest.TestCase):
    CALLS, KILLS, CLIENTS, SEED = 6000, 3, 2, 5

    def test_every_call_ends(self):
        need_binary(CURED)
        run(self, self.CALLS, self.KILLS, self.CLIENTS, self.SEED)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("calls", "kills", "clients", "seed"):
        parser.add_argument("--" + name, type=int, default=getattr(Killed, name.upper()))
    for name, value in vars(parser.parse_args()).items():
        setattr(Killed, name.upper(), value)
    del sys.argv[1:]
    main()
