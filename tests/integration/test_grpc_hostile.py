#!/usr/bin/env python3
"""Clients of gRPC that mean harm, or are merely slow: what they cost, and that others are served meanwhile."""
import array
import os
import signal
import socket
import struct
import time

import grpc_client

grpc_client.need("h2")
from admin_client import Trickle  # noqa: E402
from cured_daemon import SANITIZE, Daemon, DaemonTest, main, wait_for  # noqa: E402
from http2 import (ACK, CANCEL, CONTINUATION, END_HEADERS, ENHANCE_YOUR_CALM, HEADERS, INFO, NO_ERROR, PING, PREFACE, PROTOCOL_ERROR, REDUCE,  # noqa: E402
                   REFLECTION, SETTINGS, STREAM, WATCH, Http2, data, data_chunk, field, frame, head_chunk, headers, message,
                   reduce_request, request_headers, reset, settings)
from cured_wire import RESOURCE_EXHAUSTED, UNAVAILABLE, bytes_field, first, parse  # noqa: E402

MIB = 1 << 20
SUM = message(reduce_request("u8", ["sum"], bytes([1, 2, 3])))


class Hostile(DaemonTest):
    def http2(self, **more):
        client = Http2(self.daemon.address, **more)
        self.addCleanup(client.close)
        return client

    def cpu_seconds(self):
        return self.daemon.ticks() / os.sysconf("SC_CLK_TCK")

    def rows(self, client, stream, n):
        """A call whose n answers are 8 bytes each."""
        client.send(headers(stream, request_headers(STREAM)))
        client.upload(stream, message(head_chunk("u8", ["sum"], axis=(n, 3, 1))) + message(data_chunk(bytes([1, 2, 3]) * n)))


class SlowReaders(Hostile):
    def test_a_window_of_nothing_costs_no_time(self):
        client = self.http2(window=0)
        self.rows(client, 1, 1000000)
        client.ping()
        self.daemon.come_to_rest()
        client.grant(1, 1 << 24)
        client.grant(0, 1 << 24)
        answer = client.answer(1)
        values = b"".join(first(parse(first(parse(m), 1, b"")), 3, b"") for m in answer.messages())
        self.assertEqual((6).to_bytes(8, "little") * 1000000, values)
        self.assertEqual(0, answer.status()[0])

    def test_a_byte_at_a_time(self):
        client = self.http2(window=1)
        self.rows(client, 1, 1000000)
        client.ping()
        self.daemon.come_to_rest()  # all is folded
        before = self.daemon.rss_bytes()
        for n in range(1, 200):
            client.until("byte %d" % n, lambda: len(client.streams[1].data) >= n)
            client.grant(1, 1)
        if not SANITIZE:  # whose own memory grows, too
            self.assertLess(self.daemon.rss_bytes() - before, 8 * MIB)  # which all of them would take
        client.send(reset(1))
        client.ping()

    def test_answers_that_nobody_reads_are_few(self):
        """Of 200 calls with 64 KiB of answers each, hardly more than 1 MiB wait in the door."""
        client, others = self.http2(window=0), self.http2()
        for stream in range(1, 401, 2):
            self.rows(client, stream, 8000)
        client.ping()
        # Most of them still wait in their calls, and count.
        wait_for("answers", lambda: self.daemon.gauges()["state_bytes"] > 100 * 64000)
        for stream in range(1, 401, 2):
            client.grant(stream, 1 << 20)
        client.grant(0, 1 << 26)
        for stream in range(1, 401, 2):
            values = b"".join(first(parse(first(parse(m), 1, b"")), 3, b"") for m in client.answer(stream).messages())
            self.assertEqual((6).to_bytes(8, "little") * 8000, values)
        others.ask(1, REDUCE, SUM)
        self.assertEqual(0, others.answer(1).status()[0])

    def test_one_that_asks_on_without_reading_is_refused(self):
        client = self.http2(window=0)
        ask = message(bytes_field(4, b"cured.v1.Cured"))
        for stream in range(1, 61, 2):
            client.send(headers(stream, request_headers(REFLECTION)) + data(stream, ask * 80))
        client.ping()
        refused = [s.status() for s in client.streams.values() if s.over]
        self.assertTrue(refused)  # not all of 30 times 80 answers are there
        self.assertEqual({RESOURCE_EXHAUSTED}, {code for code, _ in refused})


class Floods(Hostile):
    def ends(self, client, flood):
        """The flood ends its connection, or costs only itself; others are served."""
        for _ in range(100):
            if client.closed or client.goaway is not None:
                break
            client.send(flood)
        self.assert_serves()

    def test_pings_settings_resets(self):
        for what in (frame(PING, 0, 0, bytes(8)), settings(), headers(1, request_headers(REDUCE)) + reset(1)):
            client = self.http2()
            client.answers = False
            self.ends(client, what * 3000)
            client.close()

    def test_rapid_resets(self):
        client, stream = self.http2(), 1
        block = request_headers(REDUCE)
        while not client.closed and client.goaway is None and stream < 200000:
            client.send(b"".join(headers(s, block) + data(s, SUM) + reset(s) for s in range(stream, stream + 200, 2)))
            client.streams.clear()
            stream += 200
        self.assertLess(stream, 200000)
        self.assert_serves()

    def test_continuations(self):
        client = self.http2()
        client.send(frame(HEADERS, 0, 1, request_headers(REDUCE)) + frame(CONTINUATION, 0, 1, b"") * 100)
        client.end()
        self.assert_serves()

    def test_headers_that_unpack_to_much(self):
        """A byte of them can stand for 4 KiB. The daemon looks at 64 KiB, and says so for what is a little too long."""
        client = self.http2()
        client.ask(1, INFO, message(b""), *[("x-%d" % i, "v" * 100) for i in range(130)])
        self.assertEqual(RESOURCE_EXHAUSTED, client.answer(1).status()[0])
        self.assertIn("16384", client.answer(1).status()[1])
        self.assertNotIn("grpc-retry-pushback-ms", dict(client.answer(1).trailers or client.answer(1).headers))
        block = request_headers(INFO) + b"\x40" + field("x-a", "b" * 4000)[1:]
        block += b"\xbe" * (16384 - len(block))
        before = self.cpu_seconds()
        for stream in range(3, 43, 2):  # 2.6 MB that stand for 10 GB
            client.send(frame(HEADERS, 1, stream, block) + frame(CONTINUATION, 0, stream, b"\xbe" * 16384) * 6 +
                        frame(CONTINUATION, END_HEADERS, stream, b"\xbe" * 16384))
            self.assertIsNotNone(client.answer(stream).reset)
        self.assertLess(self.cpu_seconds() - before, 4)  # 20 took ten times as long

    def test_fields_in_single_bytes(self):
        """A thousand fields before an array, each byte in a frame of its own; and more than may come before one."""
        client = self.http2()
        request = reduce_request("u8", ["sum"], bytes([1, 2, 3]))
        body = message(request[:2] * 1000 + request)
        client.send(headers(1, request_headers(REDUCE)))
        client.upload(1, body, size=1)
        self.assertEqual(0, client.answer(1).status()[0])
        client.send(headers(3, request_headers(REDUCE)) + data(3, message(request[:2] * 2049 + request), True))
        self.assertIn("4096", client.answer(3).status()[1])

    def test_small_messages_end_with_the_turn(self):
        client = self.http2(window=1 << 24)
        client.grant(0, 1 << 24)
        client.send(headers(1, request_headers(STREAM)) + data(1, message(head_chunk("u8", ["sum"]))))
        client.upload(1, message(data_chunk(b"\x01")) * 20000)
        answer = client.answer(1)
        end = first(parse(answer.messages()[-1]), 3, b"")
        self.assertEqual(20000, first(parse(end), 2))


def lingering():
    """A socket whose last close blocks for 20 s."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    with listener:
        s = socket.socket()
        s.connect(listener.getsockname())
        other, _ = listener.accept()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 20))
    s.setblocking(False)
    try:
        while True:
            s.send(bytes(65536))
    except BlockingIOError:
        return s, other


def pass_on(client, payload, descriptor, count=1):
    client.sendmsg([payload], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * (count - 1) + [descriptor]))])


class Passed(Hostile):
    """Descriptors whose close blocks: it must not be the loop that closes them."""

    def pass_last(self, client, payload, passed, count=1, before=b""):
        """Passes a socket that nobody else has open any more."""
        s, other = passed
        self.daemon.process.send_signal(signal.SIGSTOP)
        if before:
            client.send(before)
        pass_on(client, payload, s.fileno(), count)
        s.close()
        return other

    def served_at_once(self, other):
        self.daemon.process.send_signal(signal.SIGCONT)
        began = time.monotonic()
        self.assert_serves()
        self.assertLess(time.monotonic() - began, 10)
        other.close()  # resets: the close ends

    def test_to_grpc(self):
        for count in (1, 200):
            client = self.http2()
            client.ping()
            self.served_at_once(self.pass_last(client.socket, frame(PING, 0, 0, bytes(8)), lingering(), count))
            self.assertEqual(PROTOCOL_ERROR, client.end())
            self.assertIn("native", client.goaway_text)

    def test_with_the_first_bytes(self):
        for first_bytes in (PREFACE + settings(), b"PR", b"C"):
            client = self.http2(greet=False)
            self.served_at_once(self.pass_last(client.socket, first_bytes, lingering(), 100))
            client.end()

    def test_unread_at_the_end(self):
        """In the queue of a connection that is closed, and among more than a reader wants."""
        for beginning in (b"X" * 9000, PREFACE + settings() + b"\xff" * 9000):
            client = socket.socket(socket.AF_UNIX)
            client.connect(self.daemon.address[5:])
            other = self.pass_last(client, b"x", lingering(), 30, beginning)
            client.close()
            self.served_at_once(other)


class Refused(Hostile):
    OPTIONS = {"max_connections": 6}  # half of them for one user

    def test_a_refused_client_is_told_and_not_counted(self):
        """Also one that passes descriptors: the count of those let in stays right."""
        watch = [self.daemon.watch, self.connect(), self.connect()]
        for connection in watch:
            connection.ping(b"in")
        for _ in range(5):
            client = self.http2(greet=False)
            with open("/dev/null") as null:
                pass_on(client.socket, PREFACE + settings(), null.fileno())
            self.assertIsNotNone(client.end())
            client = self.http2()
            self.assertEqual(ENHANCE_YOUR_CALM, client.end())
            self.assertIn("max_connections", client.goaway_text)
        watch[1].close()
        wait_for("a place", lambda: self.daemon.gauges()["connections"] == 2)
        with self.http2() as client:
            client.ask(1, REDUCE, SUM)
            self.assertEqual(0, client.answer(1).status()[0])
            with self.http2() as another:
                self.assertEqual(ENHANCE_YOUR_CALM, another.end())


class Patience(Hostile):
    OPTIONS = {"stall_timeout_ms": 2000, "hello_timeout_ms": 2000}  # a busy machine may leave the test no time for a second

    def test_those_that_stop_within_a_request_end(self):
        client = self.http2()
        for stream, sent in ((1, b""), (3, SUM[:3]), (5, SUM[:9])):
            client.send(headers(stream, request_headers(REDUCE)) + data(stream, sent))
        for stream in (1, 3, 5):
            self.assertEqual(CANCEL, client.answer(stream).reset)
        self.assertTrue(client.ping())

    def test_watching_takes_as_long_as_it_takes(self):
        client = self.http2()
        client.ask(1, WATCH, message(b""))
        client.until("the first word", lambda: 1 in client.streams and client.streams[1].data)
        for _ in range(2):  # each takes one limit
            self.connect(hello=False).read_rest()
        client.ping()
        self.assertIsNone(client.streams[1].reset)

    def test_silence(self):
        clients = [self.http2(greet=False) for _ in range(7)]
        for client, begun in zip(clients, (b"", b"P", b"PR", b"C", PREFACE[:20], PREFACE, PREFACE + frame(SETTINGS, 0, 0, b"", length=6))):
            if begun:
                client.socket.send(begun)
        for client in clients:
            client.socket.settimeout(60)
            while client.socket.recv(4096):  # whatever it says: it ends
                pass


class Requests(Hostile):
    """Requests that are no calls: nothing makes them end, and each takes memory."""

    MOST = (4 * 16 + 1024) // 2  # of one user, with 16 calls

    def hold(self, daemon, path, body):
        """Opens more than are free. The clients, and how many requests were let in."""
        clients, held = [], 0
        for _ in range(3):
            client = Http2(daemon.addresses[0])
            self.addCleanup(client.close)
            clients.append(client)
            for stream in range(1, 512, 2):
                client.send(headers(stream, request_headers(path)) + body(stream))
            client.ping()
            ended = [stream for stream in client.streams.values() if stream.over]
            for stream in ended:
                code, text = stream.status()
                self.assertEqual(RESOURCE_EXHAUSTED, code)
                self.assertIn("requests: %d of this user are open" % self.MOST, text)
            held += 256 - len(ended)
        return clients, held

    def test_one_user_holds_no_more_than_are_free(self):
        daemon = Daemon(self.folder, listen=["unix:%s/requests.sock" % self.folder, "tcp:127.0.0.1:0"], max_jobs=16)
        for path, body in ((WATCH, lambda stream: data(stream, message(b""), True)), (STREAM, lambda stream: b""),
                           (REFLECTION, lambda stream: data(stream, message(bytes_field(7, b""))))):
            clients, held = self.hold(daemon, path, body)
            self.assertEqual(self.MOST, held, path)
            with Http2(daemon.addresses[1]) as other:  # an address is another user
                other.ask(1, "/grpc.health.v1.Health/Check", message(b""))
                other.ask(3, REDUCE, SUM)
                self.assertEqual([0, 0], [other.answer(stream).status()[0] for stream in (1, 3)])
            for client in clients:
                client.close()
            wait_for("the clients' end", lambda: daemon.gauges()["connections"] == 1)
        daemon.check_end(self, daemon.stop())


class Draining(Hostile):
    def test_a_request_on_its_way_is_answered(self):
        """It was sent before its client heard that no calls are taken any more. A call of another's keeps the daemon there."""
        daemon = Daemon(self.folder, listen=["unix:%s/draining.sock" % self.folder])
        client = Http2(daemon.address)
        self.addCleanup(client.close)
        client.ping()
        client.answers = False
        with daemon.connect() as c:
            call = Trickle(c)
            wait_for("the call", lambda: daemon.gauges()["calls"] == 1)
            daemon.process.terminate()
            client.until("PING", lambda: client.asked)
            self.assertEqual((NO_ERROR, (1 << 31) - 1), (client.goaway, client.last_taken))
            client.ask(1, REDUCE, SUM)
            self.assertEqual(UNAVAILABLE, client.answer(1).status()[0])
            client.send(frame(PING, ACK, 0, client.asked[0]))
            client.end()
            self.assertEqual((1, "the server is shutting down"), (client.last_taken, client.goaway_text))
            self.assertEqual(1, call.end())
        daemon.check_end(self, daemon.wait())

    def test_a_call_that_stands_still_hears_why(self):
        """The daemon ends the call, not its connection: the client may have others, which go on."""
        daemon = Daemon(self.folder, listen=["unix:%s/draining.sock" % self.folder])
        client = Http2(daemon.address)
        self.addCleanup(client.close)
        client.send(headers(1, request_headers(STREAM)) + data(1, message(head_chunk("u8", ["sum"]))))
        client.ping()
        daemon.process.terminate()
        client.until("GOAWAY", lambda: client.goaway is not None)
        self.assertEqual(UNAVAILABLE, client.answer(1).status()[0])
        self.assertEqual(NO_ERROR, client.end())
        client.close()
        daemon.check_end(self, daemon.wait())


if __name__ == "__main__":
    main()
