"""test_slow_peers: a client that stops at every byte of a session, and TCP peers that are gone without a word. The limits in time
end what owes bytes and nothing else, and others are served meanwhile.
"""
import ctypes
import os
import socket
import struct
import tempfile
import time
import unittest

from orders import DaemonTest
from cured_daemon import Daemon, main, wait_for
from cured_wire import (CALL, CANCEL, CREDIT, DATA, DEADLINE_EXCEEDED, END, HELLO, PING, call_message, credit_message, frame,
                        hello_message, merge_message, reduce_message, stream_input)
from connection import Closed, Connection

LIMIT_MS = 2000  # a busy machine may leave the test no time for a second
MOST_S = 240  # and all limits together are over by then


def session():
    """The frames that a client sends, of every type."""
    reduce = reduce_message("u8", ["sum", "max"], stream_input(64))
    rows = reduce_message("u8", ["sum"], stream_input(64), axis=(4, 16, 1))
    return [frame(HELLO, payload=hello_message()), frame(CALL, 1, call_message(reduce)), frame(DATA, 1, bytes(30)),
            frame(DATA, 1, bytes(34), END), frame(PING, payload=b"12345678"), frame(CALL, 2, call_message(rows)),
            frame(CREDIT, 2, credit_message(100)), frame(CANCEL, 2), frame(CALL, 3, call_message(info=True), END),
            frame(CALL, 4, call_message(merge=merge_message(["sum"], 8))), frame(DATA, 4, bytes(8), END)]


class EveryByte(DaemonTest):
    OPTIONS = {"hello_timeout_ms": LIMIT_MS, "stall_timeout_ms": LIMIT_MS, "slabs": 4}

    def test_stopping_there(self):
        frames = session()
        whole, ends, at = b"".join(frames), set(), 0
        for f in frames:
            at += len(f)
            ends.add(at)
        held = {}
        for n in range(len(whole) + 1):
            held[n] = c = self.connect(hello=False)
            for _ in range(4):
                c.answers[c.open_stream()].takes_parts = True
            c.send(whole[:n])
        stay = {n for n in held if n in ends}
        served, until = 0, time.monotonic() + MOST_S
        while (left := self.daemon.gauges()["connections"]) != len(stay) + 1:
            self.assert_serves()
            served += 1
            self.assertLess(time.monotonic(), until, "%d connections are left, %d stopped between frames" % (left - 1, len(stay)))
            time.sleep(0.01)
        for n, c in held.items():
            if n in stay:
                c.send(frame(PING, payload=b"still"))
                c.until(lambda: b"still" in c.pongs)
                continue
            with self.assertRaises(Closed, msg="stopped after byte %d" % n) as closed:
                c.until(lambda: False)
            self.assert_sentence(closed.exception.status, DEADLINE_EXCEEDED, "ms")
        print("%d places to stop: %d connections ended, %d stay; %d others served meanwhile" %
              (len(held), len(held) - len(stay), len(stay), served))
        self.assertGreater(served, 0)


class Vanished(unittest.TestCase):
    """TCP peers from which nothing comes any more, no acknowledgement either: their sockets drop what arrives."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.daemon = Daemon(folder.name, listen=["unix:" + os.path.join(folder.name, "s"), "tcp:127.0.0.1:0"],
                             stall_timeout_ms=LIMIT_MS, slabs=4)
        self.addCleanup(lambda: self.daemon.check_end(self, self.daemon.stop()))

    def vanish(self, c):
        drop = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))  # one instruction: return 0
        try:
            c.socket.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HxxxxxxP", 1, ctypes.addressof(drop)))  # SO_ATTACH_FILTER
        except PermissionError as error:
            self.skipTest("this user may not make a socket drop what arrives (SO_ATTACH_FILTER): %s" % error.strerror)

    def peer(self):
        c = Connection([a for a in self.daemon.addresses if a.startswith("tcp")][0])
        self.addCleanup(c.close)
        c.greet()
        return c

    def test_what_they_owe_ends_them(self):
        self.daemon.warm_up()
        size = 4 << 20
        half, unread, idle = self.peer(), self.peer(), self.peer()
        half.send(frame(PING, payload=b"12345678")[:20])
        tile = bytes(range(256)) * (size // 256)
        rows = unread.start_stream("u8", ["max"], size, axis=(size // 2, 2, 1))
        with self.daemon.connect() as c:
            self.assertIsNone(c.stream("u8", ["sum"], tile).status)
        unread.send_data(rows, tile[:1 << 20])
        for c in (half, unread, idle):
            self.vanish(c)
        try:  # without its last byte: how much comes without an acknowledgement is TCP's affair, but it is not the whole frame
            unread.send(frame(DATA, rows, tile[:1 << 20])[:-1])
        except TimeoutError:
            pass
        served, until = 0, time.monotonic() + MOST_S
        while (left := self.daemon.gauges()["connections"]) > 2:
            with self.daemon.connect() as c:
                self.assertEqual(6, int.from_bytes(c.inline("u8", ["sum"], b"\1\2\3").results[0].value, "little"))
            served += 1
            self.assertLess(time.monotonic(), until, "%d connections are left" % left)
            time.sleep(0.01)
        print("2 vanished peers ended, 1 that owes nothing stays; %d others served meanwhile" % served)
        self.assertGreater(served, 0)
        # The kernel's keepalive asks after the idle one (test_gone_peers). Here its host comes back, and knows nothing of it.
        idle.socket.setsockopt(socket.SOL_SOCKET, 27, 0)  # SO_DETACH_FILTER
        idle.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        idle.close()
        wait_for("the idle one to be gone", lambda: self.daemon.gauges()["connections"] == 1)
        self.daemon.check_returned(self)


if __name__ == "__main__":
    main()
