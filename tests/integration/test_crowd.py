"""test_crowd: ten thousand idle connections, and many busy clients at once whose every answer is checked."""
import os
import random
import threading
import unittest

from connection import Closed, Connection
from cured_daemon import SANITIZE, DaemonTest, main, raise_file_limit, wait_for
from cured_wire import (CALL, DEADLINE_EXCEEDED, DATA, END, FIRST_OPS, HELLO, INPUTS, SIZES, call_message, frame, hello_message,
                        reduce_message, stream_input)
from expected import array_of, expect_all, expect_tiled, plain

SEED = int(os.environ.get("CURED_TEST_SEED", "20260104"))


class Idle(DaemonTest):
    OPTIONS = {"hello_timeout_ms": 3600000, "stall_timeout_ms": 3600000, "slabs": 4}
    WANTED = 10000

    def setUp(self):
        hard = raise_file_limit()
        # Clients have three quarters of the files, and a lone user half of those; some are the test's own.
        self.count = min(self.WANTED, (hard - hard // 4) // 2 - 64)
        if self.count < self.WANTED:
            print("only %d connections: the limit on open files is %d" % (self.count, hard))
        if self.count < 100:
            self.skipTest("the limit on open files is %d" % hard)

    def crowd(self, sent):
        """count connections that each sent the bytes of sent(n) and wait. What a test before this one left is gone first."""
        wait_for("the others to be gone", lambda: self.daemon.gauges()["connections"] <= 1)
        conns = []
        self.addCleanup(lambda: [c.close() for c in conns])
        for n in range(self.count):
            c = Connection(self.daemon.address, hello=False)
            conns.append(c)
            data = sent(n)
            if data:
                c.send(data)
        wait_for("all to be accepted", lambda: self.daemon.gauges()["connections"] == self.count + 1)
        return conns

    def serves_beside(self):
        tile = plain("f32", 1 << 16)
        with self.daemon.connect() as c:
            for _ in range(20):
                self.assert_serves()
            self.assertEqual([expect_tiled("sum", "f32", tile, 30)], c.stream("f32", ["sum"], tile * 30).keys())
            f = self.file(tile * 30)
            self.assertEqual([expect_tiled("max", "f32", tile, 30)], c.descriptor("f32", ["max"], f.fileno()).keys())

    def test_greeted_and_idle(self):
        hello = frame(HELLO, payload=hello_message())
        before = self.daemon.rss_bytes()
        conns = self.crowd(lambda n: hello)
        for c in conns[::97]:
            c.greet()
        each = (self.daemon.rss_bytes() - before) / self.count
        print("%d idle connections: %.0f bytes of memory each" % (self.count, each))
        if not SANITIZE:
            self.assertLess(each, 1024, "an idle connection costs under 1 KiB")
        self.serves_beside()
        for c in conns[::101]:
            self.assertEqual(b"awake", c.ping(b"awake"))

    def test_silent_and_half_finished(self):
        """Nothing, half a header, half a CALL, an upload without its bytes, and DATA cut short."""
        hello = frame(HELLO, payload=hello_message())
        call = hello + frame(CALL, 1, call_message(reduce_message("f64", ["sum"], stream_input(80000))))
        kinds = [b"", hello[:7], hello, hello + call[:9], call[:-3], call, call + frame(DATA, 1, bytes(80000))[:5000],
                 call + frame(DATA, 1, bytes(15))]
        self.crowd(lambda n: kinds[n % len(kinds)])
        self.serves_beside()


class Busy(DaemonTest):
    OPTIONS = {"cpu_workers": 3, "slabs": 6}
    CLIENTS, CALLS = 10, 60

    def test_everything_at_once_is_right(self):
        errors = []

        def run(n):
            try:
                self.client(random.Random("%d %d" % (SEED, n)))
            except BaseException as e:  # noqa: B902 (shown below)
                errors.append((n, e))

        files = [(dtype, self.file(plain(dtype, 40000)), self.memfd(plain(dtype, 40000))) for dtype in INPUTS]
        self.files = {dtype: (f, m) for dtype, f, m in files}
        self.tiles = {dtype: plain(dtype, 20011, seed=9) for dtype in INPUTS}
        self.wanted_tiles = {dtype: [expect_tiled(op, dtype, self.tiles[dtype], 40) for op in FIRST_OPS] for dtype in INPUTS}
        self.wanted_files = {dtype: expect_all(FIRST_OPS, dtype, plain(dtype, 40000)) for dtype in INPUTS}
        threads = [threading.Thread(target=run, args=(n,)) for n in range(self.CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0][1]

    def client(self, r):
        """Calls of every kind, up to eight in flight, over a few connections in turn."""
        done = 0
        while done < self.CALLS:
            with Connection(self.daemon.address) as c:
                calls = []
                for _ in range(r.randint(1, 8)):
                    calls.append(self.one(r, c))
                done += len(calls)
                r.shuffle(calls)
                if r.random() < 0.15:
                    continue  # leaves without waiting
                for stream, wanted, hurried in calls:
                    answer = c.wait(stream)
                    if hurried and answer.status:
                        self.assertEqual(DEADLINE_EXCEEDED, answer.status.code, answer)
                        continue
                    self.assertIsNone(answer.status)
                    self.assertEqual(wanted, answer.keys())

    def one(self, r, c):
        """Starts one call; (stream, what it must answer, whether it may miss its deadline)."""
        dtype = r.choice(INPUTS)
        way = r.choice(["inline", "stream", "tiles", "file", "memfd"])
        options = {"timeout_ms": r.choice([1, 5, 50])} if r.random() < 0.2 else {}
        if way in ("inline", "stream"):
            raw = array_of(r, dtype)[:20000]
            raw = raw[:len(raw) // SIZES[dtype] * SIZES[dtype]]
            ops = r.sample(FIRST_OPS, r.randint(1, 11))
            wanted = expect_all(ops, dtype, raw)
            if way == "inline":
                return c.start_inline(dtype, ops, raw, **options), wanted, bool(options)
            stream = c.start_stream(dtype, ops, r.choice([None, len(raw)]), **options)
            c.send_array(stream, raw, (r.choice([1, 17, 4000]), r.choice([1000, 9999])))
            return stream, wanted, bool(options)
        if way == "tiles":
            raw = self.tiles[dtype] * 40
            stream = c.start_stream(dtype, FIRST_OPS, r.choice([None, len(raw)]), **options)
            c.send_array(stream, raw, (r.choice([100003, 1 << 20]),))
            return stream, self.wanted_tiles[dtype], bool(options)
        f = self.files[dtype][way == "memfd"]
        return c.start_descriptor(dtype, FIRST_OPS, f.fileno(), **options), self.wanted_files[dtype], bool(options)

    def test_connections_that_come_and_go(self):
        for n in range(1500):
            c = Connection(self.daemon.address, hello=n % 3 != 0)
            if n % 5 == 0:
                try:
                    c.start_inline("u8", ["sum"], b"123")
                except Closed:
                    pass
            c.close()
        self.assert_serves()


if __name__ == "__main__":
    print("seed", SEED)
    main()
