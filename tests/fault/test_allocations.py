"""test_allocations: every allocation, mapping and new descriptor of every kind of call fails once. The answer is right or a status,
the next call is served, and everything is given back.
"""
import unittest

from orders import FaultTest, main
from connection import Closed
from entries import ENTRIES, outcome, prepare
from cured_wire import RESOURCE_EXHAUSTED, UNAVAILABLE

MOST_SITES = 2000
EXPECTED = (RESOURCE_EXHAUSTED, UNAVAILABLE)


class EverySite(FaultTest):
    OPTIONS = {"slabs": 8, "cpu_workers": 2, "backend": "cpu"}

    def setUp(self):
        super().setUp()
        prepare(self)

    def check(self, entry, right, where):
        kind, what = outcome(self, entry)
        if kind == "right":
            self.assertEqual(right, what, where)
        elif what is not None:
            self.assertIn(what.code, EXPECTED, "%s: %r" % (where, what))
            self.assertGreater(len(what.message), 8)
        return kind

    def every_site(self, kind, lasting=False):
        total, refused = 0, 0
        for entry in ENTRIES:
            first, right = outcome(self, entry)
            self.assertEqual("right", first, "%s: %r" % (entry.__name__, right))
            self.daemon.check_returned(self)
            sites = 0
            for n in range(1, MOST_SITES):
                where = "%s, with %s %d failing" % (entry.__name__, kind, n)
                self.orders.arm(kind, n, lasting)
                how = self.check(entry, right, where)
                if not self.orders.disarm(kind):
                    break
                sites += 1
                refused += how == "refused"
                self.assertTrue(self.daemon.alive(), "%s: the daemon ended\n%s" % (where, self.daemon.log()[-4000:]))
                self.assertEqual("right", self.check(entry, right, "the call after " + where))
                self.daemon.check_returned(self)
            total += sites
            print("%s: %d sites of %s" % (entry.__name__, sites, kind))
        print("%d sites of %s failed%s, %d calls were refused" % (total, kind, " and all behind them" if lasting else "", refused))
        self.assertGreater(total, 0)

    def test_allocation(self):
        self.every_site("allocation")

    def test_mapping(self):
        self.every_site("mapping")

    def test_descriptor(self):
        self.every_site("descriptor")

    def test_no_memory_at_all_for_a_while(self):
        self.every_site("allocation", lasting=True)


class Table(FaultTest):
    """libuv ends the process when its table of descriptors cannot grow."""
    OPTIONS = {"slabs": 4, "cpu_workers": 1, "backend": "cpu"}

    def test_it_never_grows(self):
        opened, refused = [], 0
        self.addCleanup(lambda: [c.close() for c in opened])
        for _ in range(600):
            self.orders.arm("allocation", 4)  # behind the arrival, the connection and its first bytes
            c = self.daemon.connect()
            try:
                c.greet()
                opened.append(c)
            except Closed:
                refused += 1
                c.close()
            self.orders.disarm("allocation")
            self.assert_serves()
        self.assertTrue(self.daemon.alive())
        self.assertGreater(len(opened), 500)
        print("%d connections, %d refused" % (len(opened), refused))


if __name__ == "__main__":
    main()
