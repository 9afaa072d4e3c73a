"""test_regions: registered memory: every kind and way gives the right answers, many jobs share one region, and a region
goes when its client says so, and only when the last job is done."""
import os
import threading

from cured_daemon import DaemonTest, main, wait_for
from cured_wire import (ALREADY_EXISTS, CALL, CANCELLED, DATA, DEADLINE_EXCEEDED, END, FAILED_PRECONDITION,
                        INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, SIZES, call_message, cuda_descriptor_region,
                        cuda_ipc_region, descriptor_region, frame, region_input, register_message, shm_region)
from expected import expect_all, expect_tiled, plain

OPS = ["sum", "min", "argmax", "count_nonzero"]


class Regions(DaemonTest):
    def setUp(self):
        self.conn = self.connect()

    def holders(self, data):
        """(what it is, file) for every way in which a region is read."""
        yield "sealed", self.sealed(data)
        yield "memfd", self.memfd(data)
        yield "file", self.file(data)
        sparse = self.file(data)
        os.ftruncate(sparse.fileno(), len(data) + (1 << 20))
        yield "sparse file", sparse
        holes = self.memfd(data)
        os.ftruncate(holes.fileno(), len(data) + (1 << 20))
        yield "memfd with holes", holes

    def test_every_way_and_type(self):
        for dtype, size in SIZES.items():
            ops = ["count", "count_nonzero"] if dtype == "bool" else OPS
            data = plain(dtype, 3001) if dtype != "bool" else bytes(i % 3 == 0 for i in range(3001))
            wanted = expect_all(ops, dtype, data)
            for number, (what, f) in enumerate(self.holders(b"12345" + data), 1):
                with self.subTest((dtype, what)):
                    self.assertEqual(os.fstat(f.fileno()).st_size, self.conn.register(number, f.fileno()))
                    for _ in range(2):
                        self.assertEqual(wanted, self.conn.region(dtype, ops, number, 5, 3001).keys())
                    part = expect_all(ops, dtype, data[1000 * size:1010 * size])
                    self.assertEqual(part, self.conn.region(dtype, ops, number, 5 + 1000 * size, 10).keys())
                    self.assertIsNone(self.conn.unregister(number))

    def test_to_end_empty_axis_partial(self):
        data = plain("i32", 6000)
        for number, (what, f) in enumerate(list(self.holders(data))[:3], 1):
            with self.subTest(what):
                self.conn.register(number, f.fileno())
                self.assertEqual(expect_all(OPS, "i32", data[400:]), self.conn.region("i32", OPS, number, 400).keys())
                self.assertEqual(0, self.conn.region("i32", ["count"], number, len(data)).count)
                self.assertEqual(0, self.conn.region("i32", ["count"], number, 0, 0).count)
                self.assert_sentence(self.conn.region("i32", ["sum"], number, 1).status, INVALID_ARGUMENT, "multiple")
                rows = self.conn.region("i32", ["max"], number, axis=(60, 100, 1)).array(0, 4, 60)
                wanted = b"".join(bytes.fromhex(expect_all(["max"], "i32", data[i:i + 400])[0][3])
                                  for i in range(0, len(data), 400))
                self.assertEqual(wanted, rows)
                self.assert_sentence(self.conn.region("i32", ["max"], number, axis=(61, 100, 1)).status,
                                     INVALID_ARGUMENT, "axis")
                halves = [self.conn.region("i32", OPS, number, at * 4, 3000, partial=True, first=at).partial
                          for at in (3000, 0)]
                self.assertEqual(expect_all(OPS, "i32", data), self.conn.merge(OPS, halves).keys())

    def test_an_empty_file(self):
        for number, f in enumerate((self.file(), self.memfd(), self.sealed(b"")), 1):
            self.assertEqual(0, self.conn.register(number, f.fileno()))
            self.assertEqual(0, self.conn.region("f64", ["count"], number).count)
            self.assert_sentence(self.conn.region("f64", ["sum"], number, 0, 1).status, INVALID_ARGUMENT, "count")

    def test_large_and_at_once(self):
        """Overlapping ranges of one region, many jobs in flight, from a mapping and from windows."""
        tile = plain("f32", 1 << 14) * 16
        for number, f in enumerate((self.sealed(tile * 20), self.memfd(tile * 20), self.file(tile * 20)), 1):
            self.conn.register(number, f.fileno())
            streams = [(times, self.conn.start_region("f32", OPS, number, len(tile) * first, times << 18))
                       for first, times in ((0, 20), (1, 7), (3, 17), (19, 1), (0, 1), (5, 15)) for _ in range(4)]
            wanted = {times: [expect_tiled(op, "f32", tile[:1 << 16], 16 * times) for op in OPS] for times, _ in streams}
            for times, stream in streams:
                self.assertEqual(wanted[times], self.conn.wait(stream).keys())

    def test_bytes_are_read_anew(self):
        f = self.sealed(bytes(100))
        self.conn.register(1, f.fileno())
        for value in (1, 2, 3):
            os.pwrite(f.fileno(), bytes([value]) * 100, 0)
            self.assertEqual(100 * value, int.from_bytes(self.conn.region("u8", ["sum"], 1).results[0].value, "little"))

    def test_a_file_that_grows_keeps_its_size(self):
        f = self.memfd(b"\1" * 1000)
        self.assertEqual(1000, self.conn.register(1, f.fileno()))
        f.write(b"\1" * 1000)
        self.assertEqual(1000, self.conn.region("u8", ["sum"], 1).count)
        self.assert_sentence(self.conn.region("u8", ["sum"], 1, 0, 1001).status, INVALID_ARGUMENT, "count", "1000")

    def test_one_write_for_everything(self):
        """Register, reductions and Unregister need no answer between them."""
        data = plain("u32", 50000)
        for f in (self.sealed(data), self.file(data)):
            with self.daemon.connect() as c:
                first = c.open_stream()
                reductions = [c.open_stream() for _ in range(3)]
                last, late = c.open_stream(), c.open_stream()
                batch = frame(CALL, first, call_message(register=register_message(2**63, descriptor_region())), END, 1)
                for stream in reductions + [late]:
                    if stream == late:
                        batch += frame(CALL, last, call_message(unregister=2**63), END)
                    batch += c.call_frame(stream, "u32", OPS, region_input(2**63), flags=END)
                c.send(batch, [f.fileno()])
                self.assertEqual(len(data), c.registered(first))
                for stream in reductions:
                    self.assertEqual(expect_all(OPS, "u32", data), c.wait(stream).keys())
                self.assertEqual((None, b""), c.over(last))
                self.assert_sentence(c.wait(late).status, NOT_FOUND, "region")

    def test_numbers(self):
        f = self.sealed(bytes(8))
        for number in (1, 65, 129, 2**32, 2**64 - 1):  # some share a bucket
            self.assertEqual(8, self.conn.register(number, f.fileno()))
        self.assert_sentence(self.conn.register(65, f.fileno()), ALREADY_EXISTS, "65")
        self.assert_sentence(self.conn.unregister(2), NOT_FOUND, "2")
        self.assert_sentence(self.conn.register(0, f.fileno()), INVALID_ARGUMENT, "region")
        self.assertIsNone(self.conn.unregister(65))
        self.assert_sentence(self.conn.unregister(65), NOT_FOUND, "65")
        self.assertEqual(8, self.conn.region("u8", ["sum"], 129).count)
        self.assertEqual(8, self.conn.register(65, f.fileno()))

    def paused(self, number, size):
        """A job that stays: its answers are not taken."""
        stream = self.conn.start_region("u8", ["sum"], number, axis=(size // 8, 8, 1))
        answer = self.conn.answers[stream]
        answer.auto_credit = False
        self.conn.until(lambda: answer.window < 1 << 16)
        return stream

    def test_unregister_waits_for_the_last_job(self):
        size = 32 << 20
        for f in (self.sealed(bytes(size)), self.file(bytes(size))):
            self.assertEqual(size, self.conn.register(9, f.fileno()))
            job = self.paused(9, size)
            gone = self.conn.start_unregister(9)
            self.assert_sentence(self.conn.region("u8", ["sum"], 9).status, NOT_FOUND, "9")
            self.assertEqual(b"turn", self.conn.ping(b"turn"))
            self.assertFalse(self.conn.answers[gone].over, "acknowledged while a job reads the region")
            self.assertEqual(size, self.daemon.gauges()["region_bytes"])
            self.conn.send(frame(5, job))  # CANCEL
            self.assertEqual((None, b""), self.conn.over(gone))
            self.assertEqual(CANCELLED, self.conn.wait(job).status.code)
            self.assertEqual(0, self.daemon.gauges()["region_bytes"])

    def test_a_connection_takes_its_regions_along(self):
        """Also in the middle of jobs, and those that were unregistered already."""
        size = 32 << 20
        for f in (self.sealed(bytes(size)), self.file(bytes(size)), self.memfd(bytes(size))):
            self.conn.close()
            self.conn = self.connect()
            self.conn.register(1, f.fileno())
            self.conn.register(2, f.fileno())
            self.paused(1, size)
            self.paused(2, size)
            self.conn.start_unregister(2)
            self.conn.ping()
            self.conn.close()
            self.daemon.check_returned(self)

    def test_register_that_is_given_up(self):
        f = self.file(bytes(100))
        for _ in range(20):
            stream = self.conn.start_register(3, descriptor_region(), f.fileno())
            self.conn.send(frame(5, stream))  # CANCEL: before or after it is open
            status, _ = self.conn.over(stream)
            if status is None:
                self.assertIsNone(self.conn.unregister(3))
            else:
                self.assertEqual(CANCELLED, status.code)
                self.assert_sentence(self.conn.unregister(3), NOT_FOUND, "3")

    def test_a_deadline_of_unregister(self):
        size = 32 << 20
        self.conn.register(1, self.sealed(bytes(size)).fileno())
        job = self.paused(1, size)
        status, _ = self.conn.over(self.conn.start_unregister(1, timeout_ms=20))
        self.assert_sentence(status, DEADLINE_EXCEEDED, "timeout_ms")
        self.conn.send(frame(5, job))
        wait_for("the region is let go of", lambda: self.daemon.gauges()["region_bytes"] == 0)

    def test_data_on_calls_that_take_none(self):
        f = self.sealed(bytes(32 << 20))
        self.conn.register(1, f.fileno())
        self.paused(1, 32 << 20)
        waiting = self.conn.start_unregister(1)
        self.conn.send(frame(DATA, waiting, b"x"))
        self.assert_sentence(self.conn.over(waiting)[0], INVALID_ARGUMENT, "DATA")

    def test_device_memory_without_a_device(self):
        f = self.memfd(bytes(4096))
        for source, descriptor in ((cuda_ipc_region(4096), None), (cuda_ipc_region(4096, event=bytes(64)), None),
                                   (cuda_descriptor_region(4096), f.fileno()),
                                   (cuda_descriptor_region(4096, pointer=bytes(64)), f.fileno())):
            stream = self.conn.start_register(1, source, descriptor)
            self.assert_sentence(self.conn.registered(stream), FAILED_PRECONDITION, "this daemon has no CUDA device")
            self.assert_sentence(self.conn.region("u8", ["sum"], 1).status, NOT_FOUND, "region")

    def test_names_are_off(self):
        self.assert_sentence(self.conn.registered(self.conn.start_register(1, shm_region("/any"))), PERMISSION_DENIED,
                             "shm_names")

    def test_many_clients_each_with_its_own(self):
        failures = []

        def client(seed):
            try:
                data = plain("i64", 5000, seed)
                wanted = expect_all(OPS, "i64", data)
                with self.daemon.connect() as c:
                    f = self.sealed(data) if seed % 2 else self.file(data)
                    c.register(1, f.fileno())
                    for _ in range(10):
                        if c.region("i64", OPS, 1).keys() != wanted:
                            failures.append("client %d: a wrong answer" % seed)
                    if c.unregister(1) is not None:
                        failures.append("client %d: not unregistered" % seed)
            except Exception as e:  # any: the thread's failure is the test's
                failures.append("client %d: %r" % (seed, e))

        threads = [threading.Thread(target=client, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], failures)


if __name__ == "__main__":
    main()
