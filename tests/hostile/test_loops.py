"""test_loops: a daemon of four loops whose clients do their worst in every loop, all at once, while its options are read again: frames byte by byte
and half frames at the bounds of what an annex answers, cancels without end, descriptors that nothing takes, connections at the limit. Who asks
for small arrays meanwhile is answered, each call is answered once, and everything is given back."""
import itertools
import signal
import threading
import time

from several import SeveralUsers, main, wait_for
from connection import Closed
from cured_wire import (CALL, CANCEL, CANCELLED, DATA, DEADLINE_EXCEEDED, END, RESOURCE_EXHAUSTED, UNIMPLEMENTED, bytes_field, call_message, frame, reduce_message,
                        stream_input)

AWAY_S = 0.2           # server/native/conn.c
MOST_CALL_BYTES = 4096  # server/native/annex_takes.c
INLINE_BYTES = 16384    # server/call/front.h
SMALL = b"\1\2\3"


def call_of(size, bytes_in_all=0):
    """A CALL's payload; so long as is said, by a field that nobody knows."""
    call = call_message(reduce_message("u8", ["sum"], stream_input(size)))
    left = bytes_in_all - len(call)
    return call + (bytes_field(1000, bytes(left - 4)) if left > 0 else b"")


def frames(stream, data, call_bytes=0):
    return frame(CALL, stream, call_of(len(data), call_bytes)) + frame(DATA, stream, data, END)


class AllAtOnce(SeveralUsers):
    USERS = ("slow", "cancels", "comes")
    OPTIONS = {"loops": 4, "cpu_workers": 2, "max_connections_per_user": 24, "max_jobs_per_connection": 64, "log_calls": "off"}
    ROUNDS = 6
    mine = threading.local()  # .conns: connections of a thread's round

    def right(self, c, stream, data):
        got = c.wait(stream)
        self.assertIsNone(got.status)
        self.assertEqual(sum(data), int.from_bytes(got.results[0].value, "little"), (stream, len(data)))

    def guest(self, user=None):
        """A connection that has left the first loop, if another has fewer."""
        c = self.as_user(user) if user else self.connect()
        self.mine.conns.append(c)
        for _ in range(2):
            self.right(c, c.start_inline("u8", ["sum"], SMALL), SMALL)
        return c

    # ---- What they do: a round each ----

    def bounds(self, turn):
        """Arrays and requests as long as an annex takes, and a byte more, cut anywhere. Those that are refused have their DATA, too."""
        for user, size, call_bytes in itertools.product((None, "slow"), (INLINE_BYTES - 1, INLINE_BYTES, INLINE_BYTES + 1),
                                                        (0, MOST_CALL_BYTES, MOST_CALL_BYTES + 5)):
            data = bytes([turn + 1]) * size
            length = len(frames(3, data, call_bytes))
            for cut in ((3 + 7 * turn) % 16, length - size - 16 - turn, length - size, length - 1):
                with self.guest(user) as c:
                    stream = c.open_stream()
                    whole = frames(stream, data, call_bytes)
                    c.send(whole[:cut])
                    if turn == 0 and call_bytes == 0 and size == INLINE_BYTES:
                        time.sleep(1.5 * AWAY_S)
                    c.send(whole[cut:])
                    if call_bytes:
                        self.assertEqual(UNIMPLEMENTED, c.wait(stream).status.code)
                    else:
                        self.right(c, stream, data)
                    self.right(c, c.start_inline("u8", ["sum"], SMALL), SMALL)

    def bytes_one_by_one(self, turn):
        c = self.guest("slow")
        stream = c.open_stream()
        for byte in frames(stream, SMALL * (turn + 1)):
            c.send(bytes([byte]))
        self.right(c, stream, SMALL * (turn + 1))

    def cancels(self, turn):
        """Of calls that are over, under way, and not begun; each has one answer."""
        c = self.guest("cancels")
        asked, data = [], b""
        for k in range(60):
            stream = c.open_stream()
            parts = [frame(CALL, stream, call_of(3)), frame(DATA, stream, SMALL, END), frame(CANCEL, stream)]
            if (k + turn) % 3 == 0:
                parts = [parts[0], parts[2], parts[1]]
            elif (k + turn) % 3 == 1:
                parts = [parts[0], parts[1], parts[2] * 5]
            data += b"".join(parts)
            asked.append(stream)
        for at in range(0, len(data), 331 + turn):
            c.send(data[at:at + 331 + turn])
        for stream in asked:
            got = c.wait(stream)
            if got.status:
                self.assertEqual(CANCELLED, got.status.code, got.status)
            else:
                self.assertEqual(6, int.from_bytes(got.results[0].value, "little"))

    def descriptors(self, turn):
        """More than their frame takes, in the middle of one, and a file of a call that is home's."""
        f = self.memfd(SMALL)
        c = self.guest()
        stream = c.open_stream()
        whole = frames(stream, SMALL)
        c.send(whole[:9 + turn], [f.fileno()] * (turn % 3))
        c.send(whole[9 + turn:], [f.fileno()])
        self.right(c, stream, SMALL)
        for _ in range(3):
            stream = c.start_descriptor("u8", ["sum"], f.fileno())
            self.assertIsNotNone(c.wait(stream))

    def comes_and_goes(self, turn):
        """Up to the limit of its user, and beyond."""
        conns = [self.as_user("comes") for _ in range(28)]
        refused = [c for c in conns if c.reason]
        for c in refused:
            self.assertEqual(RESOURCE_EXHAUSTED, c.reason.code)
        self.assertGreaterEqual(len(refused), 4)
        for c in conns:
            if not c.reason:
                self.right(c, c.start_inline("u8", ["sum"], SMALL), SMALL)
        for c in conns:
            c.close()

    def asks(self, turn):
        """Nothing but small arrays."""
        c = self.guest()
        for _ in range(300):
            self.right(c, c.start_inline("u8", ["sum"], SMALL), SMALL)

    # ---- All of it ----

    def test_all_at_once(self):
        errors, over = [], threading.Event()

        def run(what):
            try:
                for turn in range(self.ROUNDS):
                    self.mine.conns = []
                    what(turn)
                    for c in self.mine.conns:
                        c.close()
            except BaseException as error:  # noqa: B902 (shown below)
                errors.append((what.__name__, error))
                raise

        def reloads():
            while not over.wait(0.02):
                self.daemon.process.send_signal(signal.SIGHUP)
                self.daemon.counters()
        threads = [threading.Thread(target=run, args=(what,)) for what in (
            self.bounds, self.bytes_one_by_one, self.cancels, self.cancels, self.descriptors, self.comes_and_goes, self.asks, self.asks, self.asks)]
        reloader = threading.Thread(target=reloads)
        for thread in [reloader, *threads]:
            thread.start()
        for thread in threads:
            thread.join()
        over.set()
        reloader.join()
        self.assertEqual([], errors)
        self.doCleanups()
        wait_for("all to be gone", lambda: self.daemon.gauges()["connections"] == 1)
        self.daemon.check_returned(self)


class Timeouts(SeveralUsers):
    """A client that owes something is told so in time, wherever it began to."""
    OPTIONS = {"loops": 4, "cpu_workers": 1, "stall_timeout_ms": 600, "hello_timeout_ms": 400, "log_calls": "off"}

    def test_each_is_told(self):
        silent = [self.daemon.connect(hello=False) for _ in range(4)]
        stalled = []
        for cut in (5, 20, -20, -1):
            for _ in range(4):
                c = self.connect()
                for _ in range(2):
                    self.assert_answers(c)
                stream = c.open_stream()
                c.send(frames(stream, SMALL)[:cut])
                stalled.append(c)
        asked = self.connect()
        while not all(c.at_end for c in stalled):
            self.assert_answers(asked)
            for c in stalled:
                if c.poll(1, 0):
                    c.receive()
        for c in stalled:
            self.assert_sentence(c.reason, DEADLINE_EXCEEDED, "a frame stayed unfinished", "600 ms")
        for c in silent:
            try:
                c.read_rest()
            except Closed:
                pass
            c.close()
        self.assert_answers(asked)


if __name__ == "__main__":
    main()
