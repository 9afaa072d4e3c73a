"""test_uploads: uploads that lie about their length, stop, or are more than there are slabs; others are served all the while."""
import os
import random
import signal
import threading

from connection import Closed, Connection
from cured_daemon import DaemonTest, main, wait_for
from cured_wire import (DATA, DATA_BYTES, DATA_LOSS, DEADLINE_EXCEEDED, END, FIRST_OPS, INPUTS, INVALID_ARGUMENT, SIZES,
                        frame)
from expected import expect_all, expect_tiled, plain

SEED = int(os.environ.get("CURED_TEST_SEED", "20260103"))


class Lengths(DaemonTest):
    OPTIONS = {"slabs": 4, "max_input_bytes": 3 << 20}

    def setUp(self):
        self.conn = self.connect()

    def tearDown(self):
        self.assertEqual(b"on", self.conn.ping(b"on"))
        self.assert_serves()

    def upload(self, size, pieces, dtype="u32", end=True):
        """The status of an upload in these pieces; sent without looking whether the call is over."""
        stream = self.conn.start_stream(dtype, ["sum"], size)
        for n, piece in enumerate(pieces):
            self.conn.send(frame(DATA, stream, bytes(piece), END if end and n == len(pieces) - 1 else 0))
        return self.conn.wait(stream).status

    def test_more_than_declared(self):
        for size, pieces in ((0, [4]), (4, [8]), (100, [96, 8]), (100000, [99999, 2]), (1 << 20, [1 << 20, 1]),
                             (1 << 21, [1 << 20, 1 << 20, 1 << 20]), (8, [8, 1])):
            for end in (True, False):
                status = self.upload(size, pieces, end=end)
                self.assert_sentence(status, INVALID_ARGUMENT, "bytes", str(size))

    def test_more_in_empty_pieces_is_fine(self):
        self.assertIsNone(self.upload(8, [0, 8, 0, 0]))

    def test_end_too_early(self):
        for size, pieces in ((4, [0]), (8, [4]), (8, [7]), (100000, [50000, 49999]), (1 << 21, [1 << 20, 0])):
            self.assert_sentence(self.upload(size, pieces), DATA_LOSS, str(size), str(sum(pieces)))
        stream = self.conn.start_stream("u32", ["sum"], 8, flags=END)
        self.assert_sentence(self.conn.wait(stream).status, DATA_LOSS, "8")

    def test_unknown_length_that_cuts_an_element(self):
        for dtype in INPUTS:
            for extra in range(1, SIZES[dtype]):
                for whole in (0, 4096, 1 << 20):
                    pieces = [whole, extra] if whole else [extra]
                    self.assert_sentence(self.upload(None, pieces, dtype), INVALID_ARGUMENT, dtype, str(SIZES[dtype]))

    def test_too_long_for_the_server(self):
        self.assert_sentence(self.upload((3 << 20) + 4, [4]), INVALID_ARGUMENT, "max_input_bytes")
        self.assert_sentence(self.upload(None, [1 << 20] * 3 + [1]), INVALID_ARGUMENT, "max_input_bytes", str(3 << 20))
        self.assertIsNone(self.upload(None, [1 << 20] * 3))
        self.assertIsNone(self.upload(3 << 20, [1 << 20] * 3))

    def test_data_after_end(self):
        for size in (None, 100000):
            stream = self.conn.start_stream("u8", ["sum"], size)
            self.conn.send(frame(DATA, stream, bytes(100000), END) + frame(DATA, stream, bytes(10)) +
                           frame(DATA, stream, bytes(10), END))
            status = self.conn.wait(stream).status
            if status:  # the answer may have gone out before
                self.assert_sentence(status, INVALID_ARGUMENT, "DATA")

    def test_data_for_calls_that_take_none(self):
        f = self.memfd()
        os.ftruncate(f.fileno(), 1 << 20)
        stream = self.conn.start_descriptor("u8", ["sum"], f.fileno(), 0, 1 << 20)
        self.conn.send(frame(DATA, stream, b"1"))
        status = self.conn.wait(stream).status
        if status:
            self.assert_sentence(status, INVALID_ARGUMENT, "DATA")
        os.ftruncate(f.fileno(), 1 << 42)
        for data in (b"", b"1", bytes(100000)):
            stream = self.conn.start_descriptor("u8", ["sum"], f.fileno())
            self.conn.send(frame(DATA, stream, data, END if data == b"1" else 0))
            # it would be read up to max_input_bytes; the size alone refuses it, or the DATA
            self.assert_sentence(self.conn.wait(stream).status, INVALID_ARGUMENT)

    def test_failed_uploads_take_no_more_memory(self):
        wait_for("the slabs of calls before", lambda: not self.daemon.gauges()["slabs_used"])
        stream = self.conn.start_stream("u32", ["sum"], 8)
        self.conn.send(frame(DATA, stream, bytes(12)))
        self.assertEqual(INVALID_ARGUMENT, self.conn.wait(stream).status.code)
        for _ in range(16):
            self.conn.send(frame(DATA, stream, bytes(DATA_BYTES)))
        self.conn.ping()  # all of it has been read
        wait_for("its slabs", lambda: not self.daemon.gauges()["slabs_used"])


class Crowded(DaemonTest):
    OPTIONS = {"slabs": 4, "cpu_workers": 2, "stall_timeout_ms": 600000}

    def test_half_finished_uploads_hold_no_slab(self):
        """Thirty times as many unfinished uploads as slabs, in the middle of elements and of frames."""
        data = plain("f64", 1000)
        held = []
        for n in range(120):
            c = self.connect()
            stream = c.start_stream("f64", ["sum", "argmin"], len(data))
            cut = 1 + n * 37 % (len(data) - 1)
            rest = frame(DATA, stream, data, END)
            c.send(rest[:16 + cut])  # the frame itself is unfinished
            held.append((c, stream, rest[16 + cut:]))
        other = self.connect()
        big = plain("f32", 1 << 19)
        for _ in range(3):
            self.assertEqual(expect_tiled("sum", "f32", big, 4), other.stream("f32", ["sum"], big * 4).keys()[0])
        f = self.memfd(big * 4)
        self.assertEqual(expect_tiled("max", "f32", big, 4), other.descriptor("f32", ["max"], f.fileno()).keys()[0])
        wait_for("the slabs to come back", lambda: self.daemon.gauges()["slabs_used"] == 0)
        wanted = expect_all(["sum", "argmin"], "f64", data)
        for c, stream, rest in held:
            c.send(rest)
        for c, stream, rest in held:
            self.assertEqual(wanted, c.wait(stream).keys())

    def test_long_descriptor_calls_leave_slabs_to_others(self):
        """Calls that read a memfd for ever, more of them than slabs: uploads and other files go on beside them."""
        endless = self.memfd()
        os.ftruncate(endless.fileno(), 1 << 42)
        c = self.connect()
        for _ in range(6):
            c.start_descriptor("f64", ["sum"], endless.fileno())
        other = self.connect()
        tile = plain("f32", 1 << 18)
        small = self.memfd(tile)
        for _ in range(3):
            self.assertEqual([expect_tiled("sum", "f32", tile, 8)], other.stream("f32", ["sum"], tile * 8).keys())
            self.assertEqual([expect_tiled("max", "f32", tile, 1)], other.descriptor("f32", ["max"], small.fileno()).keys())

    def test_many_unfinished_uploads_on_one_connection(self):
        c = self.connect()
        tile = plain("i32", 3333)
        streams = [c.start_stream("i32", ["sum", "max"], len(tile)) for _ in range(100)]
        for at in range(0, len(tile), 1111):
            for stream in streams:
                c.send_data(stream, tile[at:at + 1111], end=at + 1111 >= len(tile))
        wanted = expect_all(["sum", "max"], "i32", tile)
        for stream in streams:
            self.assertEqual(wanted, c.wait(stream).keys())

    def test_deadlines_while_waiting_for_slabs(self):
        """All at once, far more than there is room for, with little time: each is answered or refused, none hangs."""
        conns = [self.connect() for _ in range(12)]
        tile = plain("u16", 1 << 19)
        results = []

        def work(c):
            for _ in range(6):
                stream = c.start_stream("u16", ["sum"], len(tile) * 4, timeout_ms=15)
                c.send_array(stream, tile * 4)
                results.append(c.wait(stream))

        self.in_threads(work, conns)
        wanted = expect_tiled("sum", "u16", tile, 4)
        for answer in results:
            if answer.status:
                self.assertEqual(DEADLINE_EXCEEDED, answer.status.code, answer)
            else:
                self.assertEqual([wanted], answer.keys())
        self.assertEqual(72, len(results))
        self.daemon_is_quiet()

    def in_threads(self, work, arguments):
        errors = []

        def run(argument):
            try:
                work(argument)
            except BaseException as e:  # noqa: B902 (shown below)
                errors.append(e)

        threads = [threading.Thread(target=run, args=(a,)) for a in arguments]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def daemon_is_quiet(self):
        wait_for("everything to come back",
                 lambda: all(self.daemon.gauges()[g] == 0 for g in ("calls", "jobs", "slabs_used", "file_tasks")))

    def test_large_uploads_at_once_are_right(self):
        def work(n):
            dtype = INPUTS[n % len(INPUTS)]
            tile = plain(dtype, 70001, seed=n)
            times = max(1, (12 << 20) // len(tile))
            with Connection(self.daemon.address) as c:
                answer = c.stream(dtype, FIRST_OPS, tile * times, known=n % 2 == 0, chunks=(DATA_BYTES, 1, 65537))
                self.assertIsNone(answer.status)
                self.assertEqual([expect_tiled(op, dtype, tile, times) for op in FIRST_OPS], answer.keys())

        self.in_threads(work, range(13))
        self.daemon_is_quiet()

    def test_clients_that_leave_in_the_middle(self):
        r = random.Random(SEED)

        def work(n):
            for _ in range(8):
                with Connection(self.daemon.address) as c:
                    stream = c.start_stream("f32", ["sum"], 16 << 20)
                    for _ in range(r.randrange(8)):
                        c.send_data(stream, bytes(DATA_BYTES))
                    c.send(frame(DATA, stream, bytes(DATA_BYTES))[:r.randrange(DATA_BYTES)])

        self.in_threads(work, range(8))
        self.daemon_is_quiet()
        self.assert_serves()

    def test_killed_clients(self):
        """kill -9 in the middle of uploads, descriptors and waits."""
        f = self.memfd()
        os.ftruncate(f.fileno(), 1 << 42)
        children = []
        for n in range(6):
            ready, tell = os.pipe()
            child = os.fork()
            if child == 0:
                self.be_killed(n, f.fileno(), tell)
            os.close(tell)
            children.append((child, ready))
        for child, ready in children:
            told = os.read(ready, 1)
            os.close(ready)
            self.assertEqual(b"!", told, "a client's calls did not begin")
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        self.daemon_is_quiet()
        self.assert_serves()

    def be_killed(self, n, descriptor, tell):
        """A client's life: busy until the kill comes."""
        try:
            c = Connection(self.daemon.address)
            c.start_descriptor("f64", ["sum"], descriptor)
            waiting = c.start_stream("f64", ["sum"], None)
            stream = c.start_stream("f64", ["sum"], 1 << 40)
            c.send_data(waiting, bytes(77777))
            c.send_data(stream, bytes(DATA_BYTES))
            os.write(tell, b"!")
            while True:
                c.send_data(stream, bytes(DATA_BYTES - n))
        except (Closed, OSError):
            pass
        finally:
            os._exit(1)


if __name__ == "__main__":
    print("seed", SEED)
    main()
