#!/usr/bin/env python3
"""test_admin_hostile: clients of the door for operators that are slow, greedy or wrong: each ends, and others are answered."""
import array
import os
import random
import select
import socket
import time
import unittest

from admin_client import Reader, connect, exchange, get, request
from cured_daemon import SANITIZE, main, raise_file_limit, wait_for
from test_admin import AdminTest

SEED = int(os.environ.get("CURED_TEST_SEED", "1"))
LIVE = request("/healthz/live")

# Requests that are refused, and how.
WRONG = [
    (400, b"\0\0\0\0"), (400, b"\x16\x03\x01\x02\x00"), (400, b"GET\r\n\r\n"), (400, b"GET / HTTP/1.1\r\n\r\n"),
    (400, b"get / HTTP/1.1\r\nHost: localhost\r\n\r\n"), (505, b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n"),
    (505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), (505, b"GET / HTTP/1.9\r\nHost: localhost\r\n\r\n"),
    (505, b"GET / HTTP/0.9\r\nHost: localhost\r\n\r\n"),
    (400, b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"),
    (400, b"GET * HTTP/1.1\r\nHost: localhost\r\n\r\n"), (400, b"GET localhost HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    (405, request(method="POST", Content_Length="0")), (405, request(method="DELETE")), (405, request(method="OPTIONS")),
    (405, b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    # A body, and two ways to say how long it is: what request smuggling is made of.
    (400, request(Content_Length="3", Transfer_Encoding="chunked") + b"0\r\n\r\n"),
    (400, request(Transfer_Encoding="chunked", Content_Length="3") + b"0\r\n\r\n"),
    (413, request(Transfer_Encoding="chunked") + b"0\r\n\r\n"), (413, request(Content_Length="3") + b"abc"),
    (400, b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n"),
    (400, request(Content_Length="-1")), (400, request(Content_Length="99999999999999999999")),
    (400, request(Transfer_Encoding="chunked, identity")), (400, request(X="a\0b")), (400, request(X="a\rb")),
    (431, request(X="a" * 9000)), (431, b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 2000 + b"\r\n"), (431, request(Authorization="Bearer " + "x" * 600)),
    (414, request("/" + "a" * 1024)), (414, b"GET /" + b"a" * 100000), (400, request(host="a" * 300)),
]


class Wrong(AdminTest):
    def test_wrong_requests_are_told_so_and_end(self):
        for status, data in WRONG:
            answers = exchange(self.tcp, data, 9, end=True)
            self.assertEqual([status], [a.status for a in answers], data[:60])
            self.assertEqual("close", answers[0].headers["connection"])
            self.assertGreater(len(answers[0].body), 8)

    def test_what_is_behind_a_wrong_request_is_not_read(self):
        for status, data in WRONG:
            answers = exchange(self.unix, LIVE + data + LIVE, 9, end=True)
            self.assertIn(len(answers), (1, 2))  # a body may be taken for the rest of the head before
            self.assertEqual(200, answers[0].status)
            self.assertNotEqual(200, answers[-1].status, data[:60])

    def test_requests_cut_anywhere_mean_the_same(self):
        data = request("/healthz/live", User_Agent="test") + request("/nothing", Connection="close")
        for cut in range(1, len(data)):
            with connect(self.unix) as s:
                reader = Reader(s)
                s.sendall(data[:cut])
                if cut % 7 == 0:
                    time.sleep(0.001)
                s.sendall(data[cut:])
                self.assertEqual([200, 404], [reader.answer().status, reader.answer().status], cut)
                self.assertIsNone(reader.answer())
                reader.close()

    def test_noise(self):
        chance = random.Random(SEED)
        for _ in range(200):
            data = bytearray(request("/metrics", User_Agent="x", Accept="*/*") * 2)
            for _ in range(chance.randrange(1, 6)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            exchange(self.unix, bytes(data), 3, end=True)
        self.assertEqual(200, get(self.unix, "/healthz/live").status)

    def test_descriptors_are_refused_and_closed(self):
        before = self.daemon.descriptors()
        for _ in range(3):
            with connect(self.unix) as s, open("/dev/null") as f:
                s.sendmsg([LIVE], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [f.fileno()] * 20))])
                answer = Reader(s).answer()
                self.assertEqual(400, answer.status)
                self.assertIn(b"descriptors", answer.body)
        wait_for("descriptors to be closed", lambda: self.daemon.descriptors() <= before)

    def test_a_thousand_requests_in_one_go(self):
        with connect(self.unix) as s:
            reader = Reader(s)
            s.setblocking(False)
            left, answers = LIVE * 1000, 0
            while left:
                select.select([], [s], [])
                left = left[s.send(left):]
            s.settimeout(60)
            for _ in range(1000):
                answers += reader.answer().status == 200
            self.assertEqual(1000, answers)
            reader.close()


class Slow(AdminTest):
    OPTIONS = {"hello_timeout_ms": 2000, "stall_timeout_ms": 2000}

    def test_a_request_that_comes_byte_by_byte_ends(self):
        slow = [connect(address) for address in (self.unix, self.tcp) for _ in range(10)]
        ended, started = set(), time.monotonic()
        while len(ended) < len(slow) and time.monotonic() < started + 60:
            for s in slow:
                try:
                    s.send(b"G" if s not in ended else b"")
                    if select.select([s], [], [], 0)[0] and not s.recv(4096):
                        ended.add(s)
                except OSError:
                    ended.add(s)
            self.assertEqual(200, get(self.unix, "/healthz/live").status)
            time.sleep(0.02)
        self.assertEqual(len(slow), len(ended))
        for s in slow:
            s.close()

    def test_who_says_nothing_ends(self):
        with connect(self.tcp) as s:
            self.assertEqual(b"", s.recv(1))

    def test_who_reads_nothing_ends(self):
        with connect(self.unix) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.setblocking(False)
            try:
                for _ in range(10000):
                    s.send(request("/metrics") * 20)
            except BlockingIOError:
                pass
            held = self.daemon.rss_bytes()
            s.settimeout(60)
            with self.assertRaises(OSError):
                while True:  # until it is closed
                    s.send(b"x")
            self.assertLess(held, 1 << 30)


class Crowd(AdminTest):
    OPTIONS = {"hello_timeout_ms": 3600000}

    def test_thousands_of_connections_leave_room(self):
        most = min(2000, raise_file_limit() - 200)
        if SANITIZE:
            most = min(most, 500)
        held = []
        for i in range(most):
            s = connect(self.unix if i % 2 else self.tcp)
            s.sendall(LIVE[:20])
            held.append(s)
            if i % 250 == 0:
                self.assertEqual(200, get(self.tcp, "/healthz/live").status)
        self.assertEqual(200, get(self.unix, "/healthz/live").status)
        self.assert_serves()
        wait_for("the oldest to end", lambda: self.daemon.counters()["connections"] <= 64 + 2)
        for s in held:
            s.close()

    def test_a_crowd_of_one_user_ends_its_own(self):
        with connect(self.unix) as quiet:  # root's, or this user's; the crowd comes from an address
            reader = Reader(quiet)
            quiet.sendall(LIVE)
            reader.answer()
            crowd = [connect(self.tcp) for _ in range(200)]
            self.assertEqual(200, get(self.tcp, "/healthz/live").status)
            quiet.sendall(LIVE)
            self.assertEqual(200, reader.answer().status)
            reader.close()
            for s in crowd:
                s.close()

    def test_a_flood_leaves_others_their_turns(self):
        flood = [connect(self.unix) for _ in range(8)]
        for s in flood:
            s.setblocking(False)
        data = request("/metrics") * 40
        for _ in range(100):
            for s in flood:
                try:
                    s.send(data)
                except BlockingIOError:
                    pass
                try:
                    s.recv(1 << 20)
                except BlockingIOError:
                    pass
            self.assert_serves()
        for s in flood:
            s.close()


if __name__ == "__main__":
    main()
