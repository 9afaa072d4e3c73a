"""test_large_beside: what is large beside an array (a mask, a second array, keys, offsets), or kept of one that is read several times, goes
back to the system on threads for files and not on the loop: all of it, however the call ends."""
import struct
from array import array

from beside import Beside, BesideTest
from cured_daemon import main, wait_for, whole_of
from cured_wire import (CANCEL, END, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, beside_message, descriptor_input, frame, keys_message, mask_message,
                        parameter_message, segments_message, stream_input)

N = 5 << 20  # bytes of each; what is smaller than 4 MiB is freed where it is
WAYS = (("stream", "stream"), ("unknown", "descriptor"), ("descriptor", "memfd"), ("sealed", "stream"))


def message_of(count, rest=lambda m: m):
    return lambda source, offset: rest(beside_message(count, source, offset))


class LargeBesideTest(BesideTest):
    OPTIONS = {"cpu_workers": 2, "shm_names": True, "max_state_bytes": whole_of(3 * N)}

    def setUp(self):
        self.conn = self.connect()
        self.let_go()  # by the test before
        self.before = self.freed()

    def let_go(self):
        wait_for("what calls held", lambda: self.daemon.counters()["state_bytes"] == 0)

    def freed(self):
        return self.daemon.counters()["bulk_freed_bytes_total"]

    def check_freed(self, bytes_):
        """The answer is here: so many bytes went back since it was asked, or do so now, and nothing is held then. The values of a long
        answer are let go when it has been sent."""
        self.let_go()
        before, self.before = self.before, self.freed()
        self.assertEqual(bytes_, self.before - before)

    def check(self, beside, ops, data, dtype="u8", bytes_=N, ways=WAYS, **options):
        for way, beside.way in ways:
            with self.subTest((beside.field, way, beside.way)):
                answer = self.ask(dtype, ops, data, way, [beside], **options)
                self.assertIsNone(answer.status)
                self.check_freed(bytes_)

    def test_masks(self):
        ones = b"\1" * N
        beside = Beside("mask", ones, message_of(N, mask_message))
        self.check(beside, ["sum"], ones)
        self.check(beside, ["sum"], ones, axis=(5, N // 5, 1))
        self.check(beside, ["sum"], ones, partial=True, unplaced=True)
        self.check(beside, ["median"], ones, ways=WAYS[1:2], bytes_=2 * N)  # of an array that was sent: the array, too

    def test_second_arrays(self):
        ones = b"\1" * N
        self.check(Beside("second", ones, message_of(N)), ["dot"], ones, ways=WAYS[2:])

    def test_keys(self):
        keys = bytes(N)
        beside = Beside("keys", keys, message_of(N // 8, lambda m: keys_message(m, 3)))
        self.check(beside, ["sum"], bytes(N // 8))
        for way, beside.way in WAYS:  # which fails
            beside.data = keys[:-8] + struct.pack("<q", 3)
            self.assert_sentence(self.ask("u8", ["sum"], bytes(N // 8), way, [beside]).status, INVALID_ARGUMENT, "keys")
            self.wait_until_held(0)
            self.check_freed(N)

    def test_offsets(self):
        borders = array("q", range(N // 8))
        borders[7] = 6
        beside = Beside("segments", borders.tobytes(), message_of(N // 8, segments_message))
        ones = b"\1" * (N // 8 - 1)
        self.check(beside, ["sum"], ones)
        for way, beside.way in WAYS:  # of the first without a value the answer says how many elements the offsets give it
            answer = self.ask("u8", ["max", "sum"], ones, way, [beside], statuses=True)
            self.assertIn("output 6: max of no elements has no value; 1 of", answer.results[0].message)
            self.check_freed(N)
        beside.data = bytes(N)
        self.check(beside, ["sum"], b"", ways=(("stream", "stream"), ("descriptor", "memfd")))

    def test_arrays_that_are_read_several_times(self):
        for ops, options in ((["median"], {}), (["quantile", "sum"], {"parameters": [parameter_message(0, 0.25)]})):
            for pieces in (None, (1 << 18,)):
                self.assertIsNone(self.ask("u8", ops, bytes(N), "stream", pieces=pieces, **options).status)
                self.check_freed(N)

    def test_calls_that_end_before(self):
        mask = mask_message(beside_message(N))
        f = self.memfd(b"\1" * N)
        for sent in (1, N - 1, N, N + 1, 2 * N - 1):
            for how in ("cancel", "leave"):
                c = self.daemon.connect()
                stream = c.open_stream()
                c.send(c.call_frame(stream, "u8", ["sum"], stream_input(N), mask=mask))
                self.send(c, stream, sent)
                self.wait_until_held(N)
                if how == "cancel":
                    c.send(frame(CANCEL, stream))
                    self.assertIsNotNone(c.wait(stream).status)
                c.close()
                self.wait_until_held(0)
                self.check_freed(N)
        for wait in (False, True):  # a mask that is being read, or was
            c = self.daemon.connect()
            stream = c.open_stream()
            c.send(c.call_frame(stream, "u8", ["sum"], stream_input(N), mask=mask_message(beside_message(N, "file_descriptor")), descriptors=1),
                   [f.fileno()])
            self.wait_until_held(N)
            if wait:
                self.send(c, stream, 1)
                wait_for("the mask", lambda: self.daemon.counters()["regions"] == 0)
            c.close()
            self.wait_until_held(0)
            self.check_freed(N)

    def wait_until_held(self, bytes_):
        wait_for("the call", lambda: self.daemon.counters()["state_bytes"] == bytes_)

    def send(self, c, stream, bytes_):
        for at in range(0, bytes_, 1 << 18):
            c.send_data(stream, bytes(min(1 << 18, bytes_ - at)))

    def test_one_call_after_another_at_the_limit(self):
        """Each takes more than half of what its user may hold, and the next is asked as soon as one is answered: none is refused."""
        ones = b"\1" * (2 * N)
        mask = self.memfd(ones)
        message = mask_message(beside_message(2 * N, "file_descriptor"))
        for _ in range(8):
            stream = self.conn.open_stream()
            self.conn.send(self.conn.call_frame(stream, "u8", ["sum"], descriptor_input(0, 2 * N), mask=message, descriptors=2, flags=END),
                           [mask.fileno(), mask.fileno()])
            self.assertIsNone(self.conn.wait(stream).status)
        self.check_freed(16 * N)
        held = self.conn.start_stream("u8", ["sum"], 2 * N, mask=mask_message(beside_message(2 * N)))
        other = self.conn.start_stream("u8", ["sum"], 2 * N, mask=mask_message(beside_message(2 * N)))
        self.assert_sentence(self.conn.wait(other).status, RESOURCE_EXHAUSTED, "max_state_bytes")
        self.conn.send(frame(CANCEL, held))
        self.conn.wait(held)


if __name__ == "__main__":
    main()
