"""test_loops: every allocation and new descriptor fails once while a connection moves to another loop and home again. The answers are
right, or the connection ends with a reason, and everything is given back.
"""
from orders import FaultTest, main
from connection import Closed
from cured_wire import RESOURCE_EXHAUSTED, UNAVAILABLE

MOST_SITES = 500
LARGE = bytes(range(250)) * 80  # 20,000 bytes


class Moves(FaultTest):
    OPTIONS = {"loops": 2, "slabs": 8, "cpu_workers": 1, "backend": "cpu"}

    def there_and_back(self):
        """Answers of a connection that leaves with its first, asks there for more than a few at once, and comes home with the large one."""
        with self.daemon.connect() as c:
            streams = [c.start_inline("u8", ["sum"], b"\1\2\3")]
            c.wait(streams[0])
            streams += [c.start_inline("u8", ["max"], b"\1\2\3") for _ in range(20)]
            c.wait(streams[-1])
            streams.append(c.start_inline("u8", ["sum"], LARGE))
            c.wait(streams[-1])
            streams.append(c.start_inline("u8", ["sum"], b"\1\2\3"))
            return [c.wait(stream) for stream in streams]

    def right(self):
        return [6] + [3] * 20 + [sum(LARGE), 6]

    def every_site(self, kind, lasting=False):
        refused = 0
        for n in range(1, MOST_SITES):
            where = "with %s %d failing" % (kind, n)
            self.orders.arm(kind, n, lasting)
            try:
                for answer, right in zip(self.there_and_back(), self.right()):
                    if answer.status is None:
                        self.assertEqual(right, int.from_bytes(answer.results[0].value, "little"), where)
                    else:
                        self.assertIn(answer.status.code, (RESOURCE_EXHAUSTED, UNAVAILABLE), where)
            except Closed as closed:
                refused += 1
                if closed.status is not None:
                    self.assertIn(closed.status.code, (RESOURCE_EXHAUSTED, UNAVAILABLE), where)
            fired = self.orders.disarm(kind)
            self.assertTrue(self.daemon.alive(), "%s: the daemon ended\n%s" % (where, self.daemon.log()[-4000:]))
            self.assertEqual(self.right(), [int.from_bytes(answer.results[0].value, "little") for answer in self.there_and_back()])
            self.daemon.check_returned(self)
            if not fired:
                break
        print("%d sites of %s, %d connections ended" % (n - 1, kind, refused))
        self.assertGreater(n, 3)

    def test_allocation(self):
        self.every_site("allocation")

    def test_no_memory_for_a_while(self):
        self.every_site("allocation", lasting=True)


if __name__ == "__main__":
    main()
