"""cured_daemon: starts the daemon for a test, watches what it holds, and stops it.

DaemonTest is the base of the test classes: one daemon a class on a private Unix socket; after the last test the counts of
connections, calls, jobs, slabs, regions, windows, file tasks, descriptors and file mappings must be what they were at the
start, and the daemon must end by itself with status 0 and without a sanitizer's report.
"""
import fcntl
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from connection import HANG_S, Connection
from reasons import main  # noqa: F401: for the tests

BIN = os.path.abspath(os.environ["CURED_TEST_BIN"]) if os.environ.get("CURED_TEST_BIN") else ""
CURED = os.path.join(BIN, "cured")
CLIENT = os.path.join(BIN, "cured-client")
SANITIZE = os.environ.get("CURED_TEST_SANITIZE", "")
F_ADD_SEALS, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE = 1033, 1, 2, 4, 8
GAUGES = ("connections", "calls", "jobs", "state_bytes", "slabs_used", "regions", "region_bytes", "windows", "file_tasks")
REPORT = re.compile(r"ERROR: \w*Sanitizer|WARNING: ThreadSanitizer|SUMMARY: \w*Sanitizer|runtime error:|Assertion .* failed")
SAFE_ENVIRONMENT = {
    "ASAN_OPTIONS": "abort_on_error=0:detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}


def environment(**more):
    """The caller's, without what would configure cured or its malloc, and with the sanitizers strict. CURED_CUDA_LIBRARY says which GPU there is,
    CURED_TEST_LOOPS how many loops a daemon has that is not told."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("CURED_") or k == "CURED_CUDA_LIBRARY"}
    env.pop("GLIBC_TUNABLES", None)
    for name, value in SAFE_ENVIRONMENT.items():
        env.setdefault(name, value)
    if os.environ.get("CURED_TEST_LOOPS"):
        env["CURED_LOOPS"] = os.environ["CURED_TEST_LOOPS"]
    env.update(more)
    return env


def wait_for(what, condition, timeout=HANG_S):
    """Polls condition() until it is true; for states that nobody announces."""
    limit = time.monotonic() + timeout
    pause = 0.0005
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > limit:
            raise AssertionError("%s: not within %g s" % (what, timeout))
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


class Daemon:
    """One cured process. options: flags as a dict (slabs=4) beside a list of --listen addresses."""

    def __init__(self, folder, listen=None, limits=None, env=None, program=CURED, **options):
        self.folder = folder
        self.listen = listen or ["unix:" + os.path.join(folder, "cured.sock")]
        flags = [program]
        for address in self.listen:
            flags += ["--listen", address]
        for name, value in options.items():
            flags += ["--" + name.replace("_", "-")] + ([] if value is True else [str(value)])
        self.lines, self.addresses, self.watch = [], [], None
        self.ready = threading.Event()

        # A daemon does not outlive its test. Only limits run between a fork and its exec: handlers of a fork, such as grpcio's,
        # may end a process with threads, and none of them runs where nothing does.
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *flags], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, env=environment(**(env or {})), preexec_fn=limits, cwd=folder)
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()
        if not self.ready.wait(HANG_S) or len(self.addresses) < len(self.listen):
            self.process.kill()
            self.process.wait()
            raise AssertionError("the daemon did not start:\n" + self.log())

    def read_log(self):
        for raw in self.process.stderr:
            line = raw.decode("utf-8", "replace").rstrip("\n")
            self.lines.append(line)
            found = re.search(r"listening on (\S+)", line)
            if found:
                self.addresses.append(found.group(1))
                if len(self.addresses) == len(self.listen):
                    self.ready.set()
        self.ready.set()  # at the end, whatever came

    def log(self):
        return "\n".join(self.lines)

    @property
    def pid(self):
        return self.process.pid

    @property
    def address(self):
        return self.addresses[0]

    def connect(self, hello=True):
        return Connection(self.address, hello)

    def counters(self):
        """By one connection that stays, so that asking changes nothing."""
        if self.watch is None:
            self.watch = self.connect()
        return self.watch.info()["counters"]

    # ---- what it holds ----

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def mapped_files(self):
        """Paths of files mapped now; what a client passed would be among them."""
        with open("/proc/%d/maps" % self.pid) as f:
            return {line.split(None, 5)[5].strip() for line in f if line.count(" ") > 4 and len(line.split(None, 5)) > 5}

    def threads(self):
        return len(os.listdir("/proc/%d/task" % self.pid))

    def rss_bytes(self):
        with open("/proc/%d/statm" % self.pid) as f:
            return int(f.read().split()[1]) * resource.getpagesize()

    def gauges(self):
        counters = self.counters()
        return {name: counters[name] for name in GAUGES}

    def holds(self):
        """Everything that must come back to what it was."""
        held = self.gauges()
        held["descriptors"] = self.descriptors()
        held["client files mapped"] = sum(1 for path in self.mapped_files()
                                          if path.startswith((self.folder, "/memfd:", "/dev/shm", "/tmp"))
                                          and not path.startswith("/dev/shm/cuda.shm"))  # see test_gpu_shared.Deaths
        return held

    def warm_up(self):
        """Takes every way once, so that what is made at first use counts as held from the start."""
        with self.connect() as c, tempfile.TemporaryFile(dir=self.folder) as f:
            f.write(bytes(1 << 16))
            f.flush()
            c.inline("f32", ["sum"], bytes(64))
            c.stream("f32", ["sum"], bytes(1 << 20))
            c.descriptor("f32", ["sum"], f.fileno())
            c.register(1, f.fileno())
            c.region("f32", ["sum"], 1)
        self.hold_from_now()

    def hold_from_now(self):
        """What it holds now is what it has to come back to."""
        wait_for("an idle daemon", lambda: not any(self.busy_gauges().values()))
        self.start_holds = self.holds()

    def busy_gauges(self):
        gauges = self.gauges()
        gauges["connections"] -= 1  # the one that asks
        return gauges

    def check_returned(self, test, timeout=HANG_S):
        """Fails test unless everything is back to what warm_up saw."""
        try:
            wait_for("all given back", lambda: self.holds() == self.start_holds, timeout)
        except AssertionError:
            test.assertEqual(self.start_holds, self.holds(), "the daemon did not give everything back")

    def ticks(self):
        """The CPU time it has used, in units of the kernel's."""
        with open("/proc/%d/stat" % self.pid) as f:
            fields = f.read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def come_to_rest(self):
        """Waits until it does nothing: what it makes without being asked, it has made."""
        def rests():
            before = self.ticks()
            time.sleep(0.4)
            return self.ticks() == before
        wait_for("a daemon at rest", rests)

    # ---- its end ----

    def alive(self):
        return self.process.poll() is None

    def wait(self, timeout=HANG_S):
        self.process.wait(timeout)
        self.reader.join(timeout)
        self.process.stderr.close()
        if self.watch:
            self.watch.close()
        return self.process.returncode

    def stop(self, number=signal.SIGTERM):
        """Exit status after a signal. Ends it by force, and says so, when it does not go."""
        if self.alive():
            self.process.send_signal(number)
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.wait()
            return "it did not end by itself"

    def check_end(self, test, status, wanted=0):
        report = REPORT.search(self.log())
        test.assertIsNone(report, "a sanitizer or an assertion spoke:\n" + self.log()[-8000:])
        test.assertEqual(wanted, status, "the daemon's exit status; its log:\n" + self.log()[-4000:])


def whole_of(share):
    """The limit of which a user who is alone may hold share: an eighth is left for others (server/admit/admission.h)."""
    return next(most for most in range(share, 2 * share) if most - most // 8 == share)


class DaemonTest(unittest.TestCase):
    """A class of tests that share a daemon. OPTIONS: its flags; ENV: added to its environment."""

    PROGRAM = CURED
    OPTIONS = {}
    ENV = None
    LIMITS = None
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        need_binary(cls.PROGRAM)
        cls.folder = tempfile.mkdtemp(prefix="cured-it-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.daemon = cls.start_daemon()
        cls.addClassCleanup(cls.final_check)
        cls.daemon.warm_up()

    @classmethod
    def start_daemon(cls):
        return Daemon(cls.folder, limits=cls.LIMITS, env=cls.ENV, program=cls.PROGRAM, **cls.OPTIONS)

    @classmethod
    def final_check(cls):
        test = unittest.TestCase()
        try:
            if cls.daemon.alive() and hasattr(cls.daemon, "start_holds"):
                cls.daemon.check_returned(test)
        finally:
            cls.daemon.check_end(test, cls.daemon.stop())

    def connect(self, hello=True):
        """A connection that is closed after the test."""
        connection = self.daemon.connect(hello)
        self.addCleanup(connection.close)
        return connection

    def file(self, data=b"", name=None):
        """A file on disk, open for reading and writing, holding data."""
        if name:
            f = open(os.path.join(self.folder, name), "w+b", buffering=0)
        else:
            f = tempfile.TemporaryFile(dir=self.folder, buffering=0)
        self.addCleanup(f.close)
        view = memoryview(data)
        while view.nbytes:
            view = view[f.write(view):]
        return f

    def memfd(self, data=b""):
        f = os.fdopen(os.memfd_create("array"), "w+b", buffering=0)
        self.addCleanup(f.close)
        view = memoryview(data)
        while view.nbytes:
            view = view[f.write(view):]
        return f

    def sealed(self, data, seals=F_SEAL_SHRINK):
        """A memfd that holds data and cannot be cut; as cured_array_alloc() makes them."""
        f = os.fdopen(os.memfd_create("array", os.MFD_ALLOW_SEALING), "w+b", buffering=0)
        self.addCleanup(f.close)
        view = memoryview(data)
        while view.nbytes:
            view = view[f.write(view):]
        fcntl.fcntl(f, F_ADD_SEALS, seals)
        return f

    def assert_serves(self):
        """Another client gets a right answer."""
        with self.daemon.connect() as c:
            answer = c.inline("u8", ["sum"], bytes([1, 2, 3]))
            self.assertIsNone(answer.status)
            self.assertEqual((6).to_bytes(8, "little"), answer.results[0].value)

    def assert_sentence(self, status, code, *words):
        """status is code, with a sentence that holds the words and betrays nothing of the daemon's inside."""
        self.assertIsNotNone(status, "no status came, one of %d was due" % code)
        self.assertEqual(code, status.code, status.message)
        for word in words:
            self.assertIn(word.lower(), status.message.lower())
        self.assertGreater(len(status.message), 8)
        self.assertNotRegex(status.message, r"0x[0-9a-f]{7,}|\.c:\d|/home/|/build/|%[sdzu]|\(null\)")


def need_binary(path):
    if not BIN:
        raise AssertionError("set CURED_TEST_BIN to the folder of the binaries under test")
    if not os.path.exists(path):
        raise unittest.SkipTest("%s is not built" % os.path.basename(path))


def raise_file_limit():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
