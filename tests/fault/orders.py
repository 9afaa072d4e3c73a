"""orders: what a test orders of tests/fault/fault.c in a daemon of its own, and the daemon's test class.

The layout of the page is fault.h's.
"""
import mmap
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from cured_daemon import BIN, SANITIZE, DaemonTest, main  # noqa: E402, F401

PROGRAM = os.path.join(os.path.dirname(BIN), "tests", "cured-faulty")
KINDS = ("allocation", "mapping", "descriptor", "space")
FIELDS = (tuple((what, kind) for what in ("armed", "seen", "fired") for kind in KINDS) +
          ("lasting", "eintr_every", "eagain_every", "most_bytes", "calls", "eintrs", "eagains", "shorts", "realtime_ns",
           "monotonic_ns"))
PAGE = 4096


class Orders:
    """The page that the daemon and the test share. Indexed by a field's name, or by ("armed", "allocation")."""

    def __init__(self, path):
        with open(path, "w+b") as f:
            f.truncate(PAGE)
            self.page = mmap.mmap(f.fileno(), PAGE)
        self.path = path
        self.places = {name: 8 * i for i, name in enumerate(FIELDS)}

    def __getitem__(self, name):
        return struct.unpack_from("<q", self.page, self.places[name])[0]

    def __setitem__(self, name, value):
        struct.pack_into("<q", self.page, self.places[name], value)

    def arm(self, kind, n, lasting=False):
        """The n-th call of the kind from now on fails, or all from there on."""
        self["armed", kind] = 0
        self["fired", kind], self["lasting"] = 0, int(lasting)
        self["armed", kind] = n

    def disarm(self, kind):
        """How many failed."""
        self["armed", kind] = 0
        return self["fired", kind]

    def calm(self):
        """No storm, true clocks."""
        for name in ("eintr_every", "eagain_every", "most_bytes", "realtime_ns", "monotonic_ns"):
            self[name] = 0


class FaultTest(DaemonTest):
    """A daemon that fails as self.orders says."""

    PROGRAM = PROGRAM
    DEVICES = "devices=0"

    @classmethod
    def setUpClass(cls):
        cls.orders = Orders(os.path.join(os.environ.get("TMPDIR", "/tmp"), "cured-orders-%d-%s" % (os.getpid(), cls.__name__)))
        cls.addClassCleanup(os.unlink, cls.orders.path)
        cls.ENV = {"CURED_TEST_FAULTS": cls.orders.path, "CURED_TEST_GPU": cls.DEVICES,
                   # an allocation that fails is the test's, and no bug
                   "ASAN_OPTIONS": "abort_on_error=0:detect_leaks=1:strict_string_checks=1:allocator_may_return_null=1"}
        super().setUpClass()

    def setUp(self):
        self.addCleanup(self.orders.calm)
