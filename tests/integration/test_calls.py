"""test_calls: the life of calls on a connection: many in flight, statuses, deadlines, CANCEL, PROGRESS, credit, PING, info."""
import os
import random

from cured_daemon import DaemonTest, main, wait_for
from cured_wire import (CALL, CANCEL, CANCELLED, CREDIT, CREDIT_BYTES, DATA, DATA_BYTES, DEADLINE_EXCEEDED, END, FIRST_OPS,
                        HELLO, INPUTS, INVALID_ARGUMENT, PONG, RESOURCE_EXHAUSTED, SIZES, bytes_field, call_message, frame,
                        hello_message, reduce_message, stream_input, uint_field)
from expected import array_of, expect_all, plain

SEED = int(os.environ.get("CURED_TEST_SEED", "20260102"))


class InFlight(DaemonTest):
    OPTIONS = {"cpu_workers": 2, "slabs": 8}

    def setUp(self):
        self.conn = self.connect()

    def test_answers_come_as_they_are_ready(self):
        """An upload that waits for its client holds up nobody."""
        waiting = self.conn.start_stream("f32", ["sum"], None)
        self.conn.send_data(waiting, plain("f32", 1000))
        for n in range(50):
            raw = plain("f32", 3 + n)
            self.assertEqual(expect_all(["sum"], "f32", raw), self.conn.inline("f32", ["sum"], raw).keys())
        large = plain("f64", 300000)
        self.assertEqual(300000, self.conn.stream("f64", ["count"], large).count)
        self.assertFalse(self.conn.answers[waiting].over)
        self.conn.send_data(waiting, b"", end=True)
        self.assertEqual(expect_all(["sum"], "f32", plain("f32", 1000)), self.conn.wait(waiting).keys())

    def test_many_kinds_interleaved(self):
        r = random.Random(SEED)
        f = self.file()
        wanted, uploads = {}, []
        for _ in range(120):
            dtype = r.choice(INPUTS)
            raw = array_of(r, dtype)[:60000]
            raw = raw[:len(raw) // SIZES[dtype] * SIZES[dtype]]
            ops = r.sample(FIRST_OPS, r.randint(1, len(FIRST_OPS)))
            way = r.choice(["inline", "known", "unknown", "descriptor"])
            if way == "inline":
                stream = self.conn.start_inline(dtype, ops, raw)
            elif way == "descriptor":
                offset = f.seek(0, os.SEEK_END)
                f.write(raw)
                stream = self.conn.start_descriptor(dtype, ops, f.fileno(), offset, len(raw) // SIZES[dtype])
            else:
                stream = self.conn.start_stream(dtype, ops, len(raw) if way == "known" else None)
                uploads.append([stream, raw, 0])
            wanted[stream] = expect_all(ops, dtype, raw)
            self.send_some(r, uploads, 2)
        while uploads:
            self.send_some(r, uploads, 1)
        for stream, keys in wanted.items():
            self.assertEqual(keys, self.conn.wait(stream).keys())

    def send_some(self, r, uploads, times):
        for _ in range(times):
            if not uploads:
                return
            upload = r.choice(uploads)
            stream, raw, at = upload
            size = r.choice([0, 1, 7, 1000, 40000])
            upload[2] = at + size
            self.conn.send_data(stream, raw[at:at + size], end=at + size >= len(raw))
            if at + size >= len(raw):
                uploads.remove(upload)

    def test_everything_in_one_write_before_welcome(self):
        conn = self.connect(hello=False)
        data = plain("i16", 500)
        out = frame(HELLO, payload=hello_message())
        streams = [conn.open_stream(s) for s in (1, 2, 7, 8, 1000, 4000000000, 2**32 - 1)]
        for stream in streams:
            out += conn.call_frame(stream, "i16", FIRST_OPS, stream_input(len(data))) + frame(DATA, stream, data, END)
        conn.send(out)
        for stream in streams:
            self.assertEqual(expect_all(FIRST_OPS, "i16", data), conn.wait(stream).keys())
        self.assertEqual(1, conn.welcome["version"])
        self.assertEqual([], conn.welcome["features"])
        self.assertTrue(conn.welcome["server"].startswith("cured/"))

    def test_bytes_one_at_a_time(self):
        """Frames may come in any pieces."""
        conn = self.connect(hello=False)
        data = plain("f32", 9)
        stream = conn.open_stream(1)
        out = (frame(HELLO, payload=hello_message()) + conn.call_frame(1, "f32", ["sum", "argmin"], stream_input(36)) +
               frame(DATA, 1, data[:17]) + frame(10, payload=b"between") + frame(DATA, 1, data[17:], END))
        for byte in out:
            conn.send(bytes([byte]))
        self.assertEqual(expect_all(["sum", "argmin"], "f32", data), conn.wait(stream).keys())
        self.assertEqual([b"between"], conn.pongs)


class Ends(DaemonTest):
    OPTIONS = {"cpu_workers": 1, "slabs": 8}

    def setUp(self):
        self.conn = self.connect()

    def endless(self):
        """A call that runs for as long as it is let: a huge hole is read as zeros."""
        f = self.memfd()
        os.ftruncate(f.fileno(), 1 << 42)
        return f.fileno()

    def test_deadline_while_nothing_comes(self):
        stream = self.conn.start_stream("f32", ["sum"], 400, timeout_ms=20)
        self.assert_sentence(self.conn.wait(stream).status, DEADLINE_EXCEEDED, "timeout_ms", "20")
        self.assert_serves()

    def test_deadline_in_the_middle_of_an_upload(self):
        stream = self.conn.start_stream("f64", ["sum"], 64 << 20, timeout_ms=60)
        self.conn.send_data(stream, bytes(300000))
        half = frame(DATA, stream, bytes(500000))
        self.conn.send(half[:250000])
        self.assert_sentence(self.conn.wait(stream).status, DEADLINE_EXCEEDED, "timeout_ms")
        self.conn.send(half[250000:] + frame(DATA, stream, bytes(100000)))  # under way: read and dropped
        self.assertEqual(b"still", self.conn.ping(b"still"))
        self.assertIsNone(self.conn.inline("u8", ["sum"], b"123").status)

    def test_deadline_while_lanes_work(self):
        stream = self.conn.start_descriptor("f64", ["sum"], self.endless(), timeout_ms=80)
        self.assert_sentence(self.conn.wait(stream).status, DEADLINE_EXCEEDED, "timeout_ms")
        self.assertIsNone(self.conn.stream("u8", ["sum"], bytes(1 << 20)).status)

    def test_timeout_limits(self):
        self.assertIsNone(self.conn.inline("u8", ["sum"], b"1", timeout_ms=86400000).status)
        for value in (86400001, 2**32 - 1):
            self.assert_sentence(self.conn.inline("u8", ["sum"], b"1", timeout_ms=value).status, INVALID_ARGUMENT, "timeout_ms")

    def test_cancel(self):
        for stream in (self.conn.start_stream("f32", ["sum"], None), self.conn.start_stream("f32", ["sum"], 1 << 30),
                       self.conn.start_descriptor("f32", ["sum"], self.endless())):
            self.conn.send(frame(CANCEL, stream))
            self.assert_sentence(self.conn.wait(stream).status, CANCELLED)
            self.conn.send(frame(CANCEL, stream) + frame(CANCEL, stream, flags=END))
        self.assertEqual(b"", self.conn.ping(b""))

    def test_cancel_after_much_data(self):
        stream = self.conn.start_stream("f32", ["sum"], None)
        for _ in range(6):
            self.conn.send_data(stream, bytes(DATA_BYTES))
        self.conn.send(frame(CANCEL, stream) + frame(DATA, stream, bytes(1000), END))
        self.assert_sentence(self.conn.wait(stream).status, CANCELLED)
        self.assertEqual(b"x", self.conn.ping(b"x"))

    def test_cancel_of_one_leaves_others(self):
        other = self.conn.start_stream("i32", ["sum"], 4000)
        gone = self.conn.start_stream("i32", ["sum"], 4000)
        self.conn.send(frame(CANCEL, gone))
        self.conn.send_data(other, bytes([1, 0, 0, 0]) * 1000, end=True)
        self.assertEqual(1000, int.from_bytes(self.conn.wait(other).results[0].value, "little"))
        self.assertEqual(CANCELLED, self.conn.wait(gone).status.code)

    def test_leaving_cancels(self):
        with self.daemon.connect() as c:
            c.start_descriptor("f64", ["sum"], self.endless())
            c.start_stream("f64", ["sum"], None)
            c.ping()
            self.assertGreater(self.daemon.gauges()["calls"], 1)
        wait_for("the calls to be cancelled", lambda: self.daemon.gauges()["calls"] == 0)
        wait_for("the jobs to be freed", lambda: self.daemon.gauges()["jobs"] == 0)

    def test_half_close_counts_as_leaving(self):
        import socket
        with self.daemon.connect() as c:
            c.start_stream("f64", ["sum"], None)
            c.ping()
            c.socket.shutdown(socket.SHUT_WR)
            wait_for("the call to be cancelled", lambda: self.daemon.gauges()["calls"] == 0)


class Talk(DaemonTest):
    OPTIONS = {"slabs": 4}

    def setUp(self):
        self.conn = self.connect()

    def test_progress(self):
        stream = self.conn.start_stream("f64", ["sum"], 16 << 20, progress_ms=5)
        for _ in range(8):
            self.conn.send_data(stream, bytes(DATA_BYTES))
        seen = self.conn.answers[stream].progress
        self.conn.until(lambda: seen and seen[-1][0] == 8 << 20)
        self.assertEqual(sorted(done for done, _ in seen), [done for done, _ in seen])
        self.assertLessEqual({total for _, total in seen}, {0, 16 << 20})
        self.assertEqual(16 << 20, seen[-1][1])
        self.conn.send_array(stream, bytes(8 << 20))
        self.assertIsNone(self.conn.wait(stream).status)  # the connection refuses PROGRESS after it

    def test_progress_of_a_descriptor(self):
        f = self.memfd()
        os.ftruncate(f.fileno(), 1 << 42)
        stream = self.conn.start_descriptor("u8", ["sum"], f.fileno(), progress_ms=1)
        seen = self.conn.answers[stream].progress
        self.conn.until(lambda: seen and seen[-1][0] > 0)
        self.assertEqual(1 << 42, seen[-1][1])
        self.conn.send(frame(CANCEL, stream))
        self.assertEqual(CANCELLED, self.conn.wait(stream).status.code)

    def test_ping(self):
        for payload in (b"", b"a", bytes(range(64))):
            self.assertEqual(payload, self.conn.ping(payload))
        for n in range(300):
            self.conn.send(frame(10, payload=b"%d" % n))
        self.conn.until(lambda: len(self.conn.pongs) == 303)
        self.assertEqual([b"%d" % n for n in range(300)], self.conn.pongs[3:])
        self.conn.send(frame(PONG, payload=b"nobody asked"))
        self.assertEqual(b"on", self.conn.ping(b"on"))

    def test_info(self):
        info = self.conn.info()
        self.assertEqual("cpu", info["backend"])
        self.assertGreater(len(info["backend_reason"]), 5)
        self.assertEqual(self.conn.greet()["limits"], info["limits"])
        self.assertEqual({"head_bytes": 65536, "data_bytes": 1 << 20, "ops": 32, "credit_bytes": 4 << 20,
                          "jobs_per_connection": 256, "input_bytes": 1 << 50,
                          "regions_per_connection": 256, "region_bytes": 1 << 42}, info["limits"])
        self.assertEqual("cured/" + info["version"], self.conn.welcome["server"])
        lane = info["lanes"][0]
        self.assertEqual("cpu", lane["name"])
        self.assertGreaterEqual(lane["workers"], 1)
        self.assertGreater(lane["bytes_per_second"], 1e6)
        before = info["counters"]
        self.conn.inline("u8", ["sum"], bytes(100))
        self.conn.stream("u8", ["sum"], bytes(100000))
        after = self.conn.info()["counters"]
        self.assertEqual(before["calls_ok"] + 3, after["calls_ok"])
        self.assertEqual(before["calls_inline"] + 1, after["calls_inline"])
        self.assertEqual(before["input_bytes_total"] + 100100, after["input_bytes_total"])

    def test_timing_is_plausible(self):
        answer = self.conn.stream("u8", ["sum"], bytes(8 << 20))
        queue, run, total = (answer.timing[n] for n in (1, 2, 3))
        self.assertGreater(run, 0)
        self.assertGreaterEqual(total, run)
        self.assertLess(queue, 60 * 10**9)

    def test_the_window_is_there_at_once_and_comes_back(self):
        """Four MiB before any CREDIT; after much more the whole window is open again, but for less than a step."""
        stream = self.conn.start_stream("u8", ["sum"], None)
        self.conn.credit[stream] = 0
        self.conn.send(b"".join(frame(DATA, stream, bytes(DATA_BYTES)) for _ in range(4)))
        self.conn.until(lambda: self.conn.credit[stream] >= 3 << 20)
        for _ in range(20):
            self.conn.send_data(stream, b"\x01" * 777777)
        self.conn.until(lambda: self.conn.credit[stream] > CREDIT_BYTES - (1 << 20))
        self.assertLessEqual(self.conn.credit[stream], CREDIT_BYTES)
        self.conn.send_data(stream, b"", end=True)
        self.assertEqual(20 * 777777, int.from_bytes(self.conn.wait(stream).results[0].value, "little"))

    def test_ignoring_credit_ends_the_connection_or_is_held_back(self):
        """A client that never waits: either it is told so, or the daemon just reads no faster than it folds."""
        conn = self.connect()
        stream = conn.start_stream("u8", ["sum"], None)
        one = frame(DATA, stream, bytes(DATA_BYTES))
        from connection import Closed
        try:
            for _ in range(40):
                conn.send(one)
            conn.send(frame(DATA, stream, b"", END))
            self.assertEqual(40 << 20, conn.wait(stream).count)
        except Closed as closed:
            self.assert_sentence(closed.status, RESOURCE_EXHAUSTED, "credit")
        self.assert_serves()

    def test_credit_from_the_client_is_ignored(self):
        stream = self.conn.start_stream("u8", ["sum"], None)
        self.conn.send(frame(CREDIT, stream, uint_field(1, 1 << 40)) + frame(CREDIT, stream, b""))
        self.conn.send_data(stream, b"abc", end=True)
        self.assertEqual(3, self.conn.wait(stream).count)
        self.conn.send(frame(CREDIT, stream, uint_field(1, 1)))
        self.assertEqual(b"on", self.conn.ping(b"on"))

    def test_unknown_fields_are_ignored(self):
        stream = self.conn.open_stream()
        extra = uint_field(77, 5) + bytes_field(78, b"later") + b"\x91\x05" + bytes(8)  # field 82, 64-bit
        reduce = reduce_message("u8", ["sum"], stream_input(3) + extra) + extra
        self.conn.send(frame(CALL, stream, bytes_field(3, reduce) + extra) + frame(DATA, stream, b"\1\2\3", END))
        self.assertEqual(6, int.from_bytes(self.conn.wait(stream).results[0].value, "little"))

    def test_ignorable_frames_are_skipped(self):
        for size in (0, 1, 70000, 1 << 20):
            self.conn.send(frame(200, 0, bytes(size), flags=2) + frame(199, 5, bytes(size), flags=3))
            self.assertEqual(b"on", self.conn.ping(b"on"))

    def test_info_with_and_without_end(self):
        for flags in (0, END):
            stream = self.conn.open_stream()
            self.conn.send(frame(CALL, stream, call_message(info=True), flags))
            self.conn.until(lambda: self.conn.answers[stream].over)
            self.assertIsNone(self.conn.answers[stream].status)


if __name__ == "__main__":
    print("seed", SEED)
    main()
