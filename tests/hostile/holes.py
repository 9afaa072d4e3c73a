"""holes: shared memory whose holes a client wants the daemon to fill, and pay for. The measure is what the file has (st_blocks):
it does not grow through the daemon.

Each test runs in two daemons: one that may use userfaultfd, and one that Linux refuses it, as in most containers.
"""
import ctypes
import os
import platform
import struct
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))

from cured_daemon import SANITIZE, DaemonTest, main  # noqa: E402,F401
from cured_wire import DATA_LOSS, FAILED_PRECONDITION, INVALID_ARGUMENT, descriptor_region, parse  # noqa: E402,F401

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
KEEP_SIZE, PUNCH_HOLE = 1, 2
PAGE = os.sysconf("SC_PAGESIZE")
MIB = 1 << 20

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2
NUMBERS = {"x86_64": (323, 16), "aarch64": (282, 29)}  # of userfaultfd and ioctl
NEW_BY_DEVICE = 0xaa00  # USERFAULTFD_IOC_NEW
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, EPERM = 0x7fff0000, 0x00050001


def make_filter():
    """Of seccomp: no userfaultfd, by its call or its device."""
    call, ioctl = NUMBERS.get(platform.machine(), (0, 0))
    lines = [(LOAD, 0, 0, 0), (JUMP_EQUAL, 4, 0, call), (JUMP_EQUAL, 0, 2, ioctl), (LOAD, 0, 0, 24), (JUMP_EQUAL, 1, 0, NEW_BY_DEVICE),
             (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, EPERM)]
    return b"".join(struct.pack("HBBI", *line) for line in lines), len(lines)


CODE, LINES = make_filter()
CODE_AT = ctypes.create_string_buffer(CODE, len(CODE))
PROGRAM = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", LINES, ctypes.addressof(CODE_AT)), 16)


def refuse_userfaultfd():
    """Between a fork and its exec: for this process and those that it becomes."""
    if LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or LIBC.prctl(PR_SET_SECCOMP, MODE_FILTER, PROGRAM, 0, 0) != 0:
        os._exit(99)


class Holes(DaemonTest):
    """Of a daemon that may use userfaultfd, unless a class says otherwise."""
    OPTIONS = {"cpu_workers": 2, "slabs": 8, "shm_names": True}
    REFUSED = False

    @classmethod
    def setUpClass(cls):
        if cls is Holes:
            raise unittest.SkipTest("it has no tests of its own")
        if cls.REFUSED and platform.machine() not in NUMBERS:
            raise unittest.SkipTest("the numbers of this machine's system calls are not known here")
        if cls.REFUSED:
            cls.LIMITS = staticmethod(refuse_userfaultfd)
        super().setUpClass()
        if cls.REFUSED and cls.watched():
            raise AssertionError("userfaultfd is not refused")
        if not cls.REFUSED and not cls.watched():
            raise unittest.SkipTest("Linux refuses userfaultfd here")

    @classmethod
    def watched(cls):
        return bool(cls.daemon.counters()["memory_watched"])

    def setUp(self):
        self.conn = self.connect()

    def tearDown(self):
        self.assertEqual(b"on", self.conn.ping(b"on"))
        self.assert_serves()

    # ---- memory ----

    def memory(self, size):
        """A memfd that is one hole."""
        fd = os.memfd_create("holes", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        self.addCleanup(os.close, fd)
        os.ftruncate(fd, size)
        return fd

    def looks_full(self, size):
        """The same, with as many blocks behind its end as it lacks before it."""
        fd = self.memory(size)
        self.fallocate(fd, KEEP_SIZE, size, size)
        self.assertGreaterEqual(self.bytes_of(fd), size)
        return fd

    def fallocate(self, fd, mode, offset, size):
        if LIBC.fallocate(fd, mode, offset, size) != 0:
            raise unittest.SkipTest("fallocate: %s" % os.strerror(ctypes.get_errno()))

    def punch(self, fd, offset, size):
        self.fallocate(fd, PUNCH_HOLE | KEEP_SIZE, offset, size)

    @staticmethod
    def bytes_of(fd):
        return os.fstat(fd).st_blocks * 512

    # ---- answers ----

    def sum_of(self, answer):
        self.assertIsNone(answer.status)
        return int.from_bytes(answer.results[0].value, "little")

    def check_lost_or(self, answer, *sums):
        """It is lost, or one of these."""
        if answer.status is not None:
            self.assert_sentence(answer.status, DATA_LOSS)
        else:
            self.assertIn(self.sum_of(answer), sums)

    def check_not_written(self, answer):
        """No answer went into the holes, and the sentence says why."""
        self.assertIsNotNone(answer.status)
        if self.REFUSED:
            self.assert_sentence(answer.status, FAILED_PRECONDITION, "outputs", "userfaultfd")
        else:
            self.assertIn(answer.status.code, (DATA_LOSS, INVALID_ARGUMENT), answer.status)
            self.assertIn("holes", answer.status.message)


class Meanwhile:
    """Does something over and over in a thread of its own, while the block runs."""

    def __init__(self, action):
        self.action, self.over = action, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.rounds = 0

    def run(self):
        while not self.over.is_set():
            self.action()
            self.rounds += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
