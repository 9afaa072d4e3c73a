"""test_storms: calls of the kernel that are interrupted, come back empty or move a few bytes; clocks that jump; a tmpfs that is
full. Every answer is right, where bytes can be had at all.
"""
import ctypes
import os
import shutil
import signal
import tempfile
import unittest

from orders import FaultTest, main
from entries import ENTRIES, connect, inline, outcome, prepare, stream
from connection import Closed
from cured_daemon import wait_for
from cured_wire import DATA_LOSS, DEADLINE_EXCEEDED, END, RESOURCE_EXHAUSTED, DATA, HELLO, PING, frame, hello_message
from tls_files import Authority

HOUR_NS = 3600 * 10 ** 9
OPTIONS = {"slabs": 8, "cpu_workers": 2, "backend": "cpu"}


class Storms(FaultTest):
    OPTIONS = OPTIONS
    STORMS = ({"eintr_every": 2}, {"eintr_every": 3, "eagain_every": 2}, {"eagain_every": 3}, {"most_bytes": 4099},
              {"eintr_every": 3, "eagain_every": 4, "most_bytes": 65537})

    def test_every_entry_in_every_storm(self):
        prepare(self)
        rights = {entry: outcome(self, entry) for entry in ENTRIES}
        for storm in self.STORMS:
            for name, value in storm.items():
                self.orders[name] = value
            for entry in ENTRIES:
                self.assertEqual(rights[entry], outcome(self, entry), "%s in %r" % (entry.__name__, storm))
            self.orders.calm()
            self.daemon.check_returned(self)
        self.sites()

    def test_byte_by_byte(self):
        """What is small, a byte at a time."""
        rights = {entry: outcome(self, entry) for entry in (connect, inline)}
        self.orders["most_bytes"] = 1
        for entry, right in rights.items():
            self.assertEqual(right, outcome(self, entry), entry.__name__)
        self.sites("shorts")

    def sites(self, *names):
        counts = {name: self.orders[name] for name in names or ("eintrs", "eagains", "shorts")}
        print("of %d calls: %r" % (self.orders["calls"], counts))
        for name, count in counts.items():
            self.assertGreater(count, 100, name)


class Clocks(FaultTest):
    OPTIONS = OPTIONS

    def test_the_wall_clock_jumps(self):
        """Nothing depends on it, back or forth."""
        prepare(self)
        sites = 0
        for jump in (HOUR_NS, -HOUR_NS, 100 * 365 * 24 * HOUR_NS):
            with self.daemon.connect() as c:
                begun = c.start_stream("u8", ["sum"], 8, timeout_ms=600000)
                c.ping()
                self.orders["realtime_ns"] = jump
                self.assert_serves()
                c.send(frame(DATA, begun, b"\1" * 8, END))
                self.assertEqual(8, int.from_bytes(c.wait(begun).results[0].value, "little"))
                self.assertEqual("right", outcome(self, stream)[0])
                sites += 1
        print("%d jumps of the wall clock" % sites)
        self.assertGreater(sites, 0)

    def test_the_monotonic_clock_jumps_forward(self):
        """As after a machine was stopped: deadlines that are over end, owed frames end their connections, and all else goes on."""
        ended = 0
        with self.daemon.connect() as idle, self.daemon.connect() as timed, self.daemon.connect() as owing:
            idle.greet()
            begun = timed.start_stream("u8", ["sum"], 8, timeout_ms=600000)
            patient = timed.start_stream("u8", ["sum"], 8)
            timed.ping()
            owing.ping()
            owing.send(frame(PING, payload=b"x")[:9])
            for _ in range(3):
                owing_before = self.daemon.counters()["connections_ended"]
                self.orders["monotonic_ns"] += HOUR_NS
                self.daemon.counters()  # the loop turns
                ended += self.daemon.counters()["connections_ended"] - owing_before
            status = timed.wait(begun).status
            self.assertEqual(DEADLINE_EXCEEDED, status.code)
            with self.assertRaises(Closed) as closed:
                owing.until(lambda: False)
            self.assertEqual(DEADLINE_EXCEEDED, closed.exception.status.code)
            self.assertEqual(b"on", idle.ping(b"on"))
            timed.send(frame(DATA, patient, b"\1" * 8, END))
            self.assertEqual(8, int.from_bytes(timed.wait(patient).results[0].value, "little"))
        self.assert_serves()
        print("3 jumps of an hour, and %d connection ended" % ended)


    def meanwhile(self, send):
        """Stops the daemon for an hour, in which its clients send."""
        self.daemon.counters()  # what came before is read
        os.kill(self.daemon.pid, signal.SIGSTOP)
        try:
            wait_for("the daemon's stop", self.is_stopped)
            send()
            self.orders["monotonic_ns"] += HOUR_NS
        finally:
            os.kill(self.daemon.pid, signal.SIGCONT)

    def is_stopped(self):
        with open("/proc/%d/stat" % self.daemon.pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "T"

    def test_what_came_while_the_daemon_was_away_came_in_time(self):
        hello, data = frame(HELLO, payload=hello_message()), frame(DATA, 1, b"\1" * 20000, END)
        for cut in (8, 16, 1000):  # within the header, and the array
            with self.daemon.connect() as client:
                upload = client.start_stream("u8", ["sum"], 20000)
                client.ping()
                client.send(data[:cut])
                self.meanwhile(lambda: client.send(data[cut:]))
                self.assertEqual(20000, int.from_bytes(client.wait(upload).results[0].value, "little"))
        for cut in (0, 1, 20):
            with self.daemon.connect(hello=False) as client:
                client.send(hello[:cut])
                self.meanwhile(lambda: client.send(hello[cut:]))
                self.assertEqual(1, client.greet()["version"])


class Days(FaultTest):
    """A daemon that runs for longer than its certificate is good."""

    @classmethod
    def setUpClass(cls):
        if shutil.which("openssl") is None:
            raise unittest.SkipTest("no openssl here, which makes the certificate")
        folder = tempfile.mkdtemp(prefix="cured-it-")
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        certificate, key = Authority(folder).sign("server", days=20)
        cls.OPTIONS = dict(OPTIONS, tls_certificate=certificate, tls_key=key)
        super().setUpClass()

    def test_the_log_warns_each_day(self):
        def warned():
            self.daemon.counters()  # the loop turns
            return [line for line in self.daemon.lines if "TLS: the certificate is" in line and "WARN" in line]
        for day in (0, 5, *range(7, 25)):
            before = len(warned())
            self.orders["realtime_ns"] = self.orders["monotonic_ns"] = day * 25 * HOUR_NS
            if day > 5:  # fewer than 14 of 20 days are left
                wait_for("a warning on day %d" % day, lambda: len(warned()) == before + 1)
            else:
                self.assertEqual([], warned())
        self.assertIn("is out of date since", warned()[-1])


class FullFileSystem(FaultTest):
    """Reading a hole of a tmpfs by a mapping takes a page: where there is none, that is SIGBUS."""
    OPTIONS = OPTIONS

    def setUp(self):
        super().setUp()
        self.place = tempfile.mkdtemp(prefix="cured-full-")
        self.addCleanup(os.rmdir, self.place)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"none", self.place.encode(), b"tmpfs", 0, b"size=256k") != 0:
            self.skipTest("no tmpfs can be mounted here: %s" % os.strerror(ctypes.get_errno()))
        self.addCleanup(libc.umount2, self.place.encode(), 2)

    def full(self, name, size):
        """A file with a hole at its start, on a file system without room."""
        f = open(os.path.join(self.place, name), "w+b", buffering=0)
        self.addCleanup(f.close)
        f.truncate(size)
        os.pwrite(f.fileno(), b"\5" * 4096, size - 4096)
        with open(os.path.join(self.place, "rest"), "ab", buffering=0) as rest:
            try:
                while rest.write(bytes(4096)):
                    pass
            except OSError:
                pass
        return f

    def test_holes_are_read_all_the_same(self):
        size, sites = 1 << 20, 0
        f = self.full("a", size)
        for ops, shape in ((["sum"], None), (["sum"], (256, 4096, 1)), (["max"], (1, 256, 4096))):
            with self.daemon.connect() as c:
                options = {"axis": shape} if shape else {}
                self.assertEqual(size, c.register(1, f.fileno()))
                for answer in (c.descriptor("u8", ops, f.fileno(), **options), c.region("u8", ops, 1, **options)):
                    sites += 1
                    if answer.status is not None:
                        self.assertIn(answer.status.code, (DATA_LOSS, RESOURCE_EXHAUSTED))
                    elif not shape:
                        self.assertEqual(5 * 4096, int.from_bytes(answer.results[0].value, "little"))
                    print("%s %s: %r" % (ops, shape, answer.status or "right"))
            self.assert_serves()
        self.assertGreater(sites, 0)


if __name__ == "__main__":
    main()
