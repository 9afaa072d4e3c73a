#!/usr/bin/env python3
"""HTTP/2 as RFC 9113 wants it from a server that pushes nothing: what breaks a rule ends its stream or its connection, and no other."""
import random
import struct

import grpc_client

grpc_client.need("h2")
import h2.connection  # noqa: E402
import h2.config  # noqa: E402
import h2.events  # noqa: E402

import cured_wire  # noqa: E402
from cured_daemon import DaemonTest, main  # noqa: E402
from cured_wire import INVALID_ARGUMENT, UNIMPLEMENTED  # noqa: E402
from http2 import (ACK, COMPRESSION_ERROR, CONTINUATION, DATA, ENABLE_PUSH, END_HEADERS, END_STREAM, FLOW_CONTROL_ERROR, FRAME_SIZE,  # noqa: E402
                   FRAME_SIZE_ERROR, GOAWAY, HEADERS, INFO, NO_ERROR, PADDED, PING, PREFACE, PRIORITIZED, PRIORITY, PROTOCOL_ERROR,
                   PUSH_PROMISE, REDUCE, REFUSED_STREAM, RST_STREAM, SETTINGS, STREAM, STREAM_CLOSED, STREAMS, WINDOW, WINDOW_UPDATE, Http2,
                   data, data_chunk, field, frame, head_chunk, headers, message, reduce_request, request_headers, reset, settings,
                   window_update)

ARRAY = bytes([1, 2, 3])
SUM = message(reduce_request("u8", ["sum"], ARRAY))
BLOCK = request_headers(REDUCE)


class Http2Test(DaemonTest):
    def http2(self, **more):
        client = Http2(self.daemon.address, **more)
        self.addCleanup(client.close)
        return client

    def begun(self, stream=1):
        """A connection with a request under way on the stream."""
        client = self.http2()
        client.send(headers(stream, BLOCK))
        client.ping()
        return client

    def served(self, client, stream):
        client.ask(stream, REDUCE, SUM)
        self.assertEqual((0, ""), client.answer(stream).status())

    def broken(self, client, what, *codes):
        """what ends the connection, by one of the codes."""
        client.send(what)
        self.assertIn(client.end(), codes, client.goaway_text)
        client.close()
        self.assert_serves()

    def reset(self, client, stream, what, *codes):
        """what ends the stream, by one of the codes; the connection goes on."""
        client.send(what)
        at = client.answer(stream)
        self.assertIn(at.reset, codes)
        self.served(client, stream + 20)


class Connections(Http2Test):
    def test_prefaces(self):
        for wrong in (PREFACE.replace(b"SM", b"SN"), PREFACE[:4] + b"x" * 20, b"PRI * HTTP/1.1\r\n\r\nSM\r\n\r\n", PREFACE[:-1] + b"\r"):
            client = self.http2(greet=False)
            client.send(wrong + settings())
            client.end()
            self.assert_serves()
        client = self.http2(greet=False)
        client.send(PREFACE + frame(PING, 0, 0, bytes(8)))  # SETTINGS must be first
        self.assertEqual(PROTOCOL_ERROR, client.end())

    def test_a_preface_in_pieces(self):
        whole = PREFACE + settings() + headers(1, BLOCK) + data(1, SUM, True)
        for cut in list(range(1, 32)) + [random.randrange(32, len(whole)) for _ in range(8)]:
            client = self.http2(greet=False)
            client.answers = False  # between the pieces
            client.send(whole[:cut])
            client.take(0.002)
            client.send(whole[cut:])
            self.assertEqual((0, ""), client.answer(1).status())
            client.close()
        client = self.http2(greet=False)
        client.send(whole, piece=1)
        self.assertEqual((0, ""), client.answer(1).status())

    def test_other_languages(self):
        for first in (b"GET / HTTP/1.1\r\nHost: cured\r\n\r\n", b"PING\r\n\r\n" * 4, b"\x16\x03\x01\x02\x00\x01" + bytes(30), b"\0" * 40,
                      b"PRX * HTTP/2.0\r\n\r\nSM\r\n\r\n", random.randbytes(64)):
            client = self.http2(greet=False)
            client.socket.send(first)
            client.socket.settimeout(60)
            answer = client.socket.recv(4096)
            self.assertEqual(b"CR", answer[:2] or b"CR")  # the native protocol says what is wrong
            self.assert_serves()
        with self.daemon.connect(hello=False) as native:
            for byte in cured_wire.frame(cured_wire.HELLO, payload=cured_wire.hello_message()):
                native.socket.send(bytes([byte]))
            self.assertIsNone(native.inline("u8", ["sum"], ARRAY).status)

    def test_what_the_daemon_announces(self):
        client = self.http2()
        self.assertTrue(client.until("a window", lambda: client.sent_window == 16 << 20))
        client.ping()
        self.assertEqual(1, client.acks)
        self.assertEqual({STREAMS: 256, WINDOW: 4 << 20, 6: 16384}, client.settings)
        self.assertEqual(16 << 20, client.sent_window)

    def test_a_client_of_another_make(self):
        """python3-h2 keeps state of its own, and raises at what a server may not send."""
        client = self.http2(greet=False)
        peer = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        peer.initiate_connection()
        ended, got = set(), {}
        for stream in range(1, 41, 2):
            peer.send_headers(stream, [(":method", "POST"), (":scheme", "http"), (":path", STREAM), (":authority", "x"),
                                       ("content-type", "application/grpc"), ("te", "trailers")])
            body = message(head_chunk("u8", ["sum"])) + message(data_chunk(bytes([stream]) * 3000))
            peer.send_data(stream, body, end_stream=True)
        client.socket.setblocking(True)
        client.socket.settimeout(60)
        client.socket.sendall(peer.data_to_send())
        while len(ended) < 20:
            for event in peer.receive_data(client.socket.recv(65536)):
                if isinstance(event, h2.events.DataReceived):
                    got[event.stream_id] = got.get(event.stream_id, b"") + event.data
                elif isinstance(event, h2.events.TrailersReceived):
                    self.assertEqual("0", dict((k.decode() if isinstance(k, bytes) else k, v.decode() if isinstance(v, bytes) else v)
                                               for k, v in event.headers)["grpc-status"])
                elif isinstance(event, h2.events.StreamEnded):
                    ended.add(event.stream_id)
            client.socket.sendall(peer.data_to_send())
        for stream, body in got.items():
            self.assertIn((3000 * stream).to_bytes(8, "little"), body)

    def test_goaway_from_the_client(self):
        client = self.begun()
        client.send(frame(GOAWAY, 0, 0, struct.pack(">II", 0, NO_ERROR)) + data(1, SUM, True))
        self.assertEqual((0, ""), client.answer(1).status())


class Frames(Http2Test):
    def test_frames_that_end_the_connection(self):
        ping, push = frame(PING, 0, 0, bytes(8)), frame(PUSH_PROMISE, END_HEADERS, 1, struct.pack(">I", 2) + BLOCK)
        for name, what, *codes in (
                ("too long", frame(DATA, 0, 1, bytes(16385)), FRAME_SIZE_ERROR),
                ("too long, unknown", frame(77, 0, 0, bytes(16385)), FRAME_SIZE_ERROR),
                ("ping on 1", frame(PING, 0, 1, bytes(8)), PROTOCOL_ERROR),
                ("ping of 7", frame(PING, 0, 0, bytes(7)), FRAME_SIZE_ERROR),
                ("ping of 9", frame(PING, 0, 0, bytes(9)), FRAME_SIZE_ERROR),
                ("settings on 1", frame(SETTINGS, 0, 1), PROTOCOL_ERROR),
                ("settings of 5", frame(SETTINGS, 0, 0, bytes(5)), FRAME_SIZE_ERROR),
                ("ack of 6", frame(SETTINGS, ACK, 0, bytes(6)), FRAME_SIZE_ERROR),
                ("push 2", settings((ENABLE_PUSH, 2)), PROTOCOL_ERROR),
                ("window", settings((WINDOW, 1 << 31)), FLOW_CONTROL_ERROR),
                ("frame 16383", settings((FRAME_SIZE, 16383)), PROTOCOL_ERROR),
                ("frame 16777216", settings((FRAME_SIZE, 1 << 24)), PROTOCOL_ERROR),
                ("goaway on 1", frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL_ERROR),
                ("goaway of 7", frame(GOAWAY, 0, 0, bytes(7)), FRAME_SIZE_ERROR),
                ("reset on 0", reset(0), PROTOCOL_ERROR),
                ("reset of idle", reset(5), PROTOCOL_ERROR),
                ("reset of 3", frame(RST_STREAM, 0, 1, bytes(3)), FRAME_SIZE_ERROR),
                ("window 0", window_update(0, 0), PROTOCOL_ERROR),
                ("window of 3", frame(WINDOW_UPDATE, 0, 0, bytes(3)), FRAME_SIZE_ERROR),
                ("window of idle", window_update(7, 1), PROTOCOL_ERROR),
                ("window beyond", window_update(0, 0x7fffffff), FLOW_CONTROL_ERROR),
                ("data on 0", data(0, b"1"), PROTOCOL_ERROR),
                ("data of idle", data(9, b"1"), PROTOCOL_ERROR, STREAM_CLOSED),
                ("padding", frame(DATA, PADDED, 1, b"\x05abcd"), PROTOCOL_ERROR),
                ("headers on 0", headers(0, BLOCK), PROTOCOL_ERROR),
                ("headers on 2", headers(2, BLOCK), PROTOCOL_ERROR),
                ("headers padded", headers(3, b"\xff" + BLOCK, flags=PADDED), PROTOCOL_ERROR, FRAME_SIZE_ERROR),
                ("headers cut", headers(3, b"\0\0", flags=PRIORITIZED), FRAME_SIZE_ERROR, PROTOCOL_ERROR),
                ("headers, then another", frame(HEADERS, 0, 3, BLOCK) + ping, PROTOCOL_ERROR),
                ("headers, then another's", frame(HEADERS, 0, 3, BLOCK) + frame(CONTINUATION, END_HEADERS, 5), PROTOCOL_ERROR),
                ("headers, unknown", frame(HEADERS, 0, 3, BLOCK) + frame(77, 0, 3), PROTOCOL_ERROR),
                ("continuation", frame(CONTINUATION, END_HEADERS, 1, BLOCK), PROTOCOL_ERROR),
                ("continuation on 0", frame(HEADERS, 0, 3, BLOCK) + frame(CONTINUATION, END_HEADERS, 0), PROTOCOL_ERROR),
                ("push", push, PROTOCOL_ERROR),
                ("index", headers(3, BLOCK + b"\xff\xff\x03"), COMPRESSION_ERROR),
                ("string", headers(3, BLOCK + b"\x10\x7f\xff\xff\xff\xff\xff\x0f"), COMPRESSION_ERROR),
                ("table", headers(3, b"\x3f\xff\xff\xff\x0f" + BLOCK), COMPRESSION_ERROR)):
            with self.subTest(name):
                self.broken(self.begun(), what, *codes)

    def test_an_older_number(self):
        client = self.http2()
        self.served(client, 5)
        client.send(headers(3, BLOCK) + data(3, SUM, True))
        client.ping()
        self.assertFalse(3 in client.streams and client.streams[3].headers)
        self.assert_serves()

    def test_frames_that_end_the_stream(self):
        for name, what, *codes in (
                ("window 0", window_update(1, 0), PROTOCOL_ERROR),
                ("window beyond", window_update(1, 0x7fffffff), FLOW_CONTROL_ERROR),
                ("second headers", headers(1, BLOCK), PROTOCOL_ERROR)):
            with self.subTest(name):
                try:
                    self.reset(self.begun(), 1, what, *codes)
                except AssertionError:  # the RFC lets it end the connection as well
                    self.broken(self.begun(), what, *codes)

    def test_frames_that_are_let_pass(self):
        client = self.begun()
        client.send(frame(77, 255, 1, b"new") + frame(PRIORITY, 0, 1, struct.pack(">IB", 0, 3)) + settings((99, 1), (ENABLE_PUSH, 0)) +
                    frame(DATA, PADDED, 1, b"\x03" + SUM[:2] + b"\0\0\0") + frame(DATA, PADDED, 1, b"\x00") + data(1) +
                    frame(DATA, PADDED | END_STREAM, 1, b"\x00" + SUM[2:]))
        self.assertEqual((0, ""), client.answer(1).status())
        client.send(window_update(1, 5) + reset(1))  # of a stream that is closed
        self.served(client, 3)

    def test_headers_in_pieces(self):
        for cut in range(0, len(BLOCK), 9):
            client = self.http2()
            client.send(frame(HEADERS, PADDED | PRIORITIZED, 1, b"\x04" + struct.pack(">IB", 0, 9) + BLOCK[:cut] + bytes(4)) +
                        frame(CONTINUATION, 0, 1) + frame(CONTINUATION, END_HEADERS, 1, BLOCK[cut:]) + data(1, SUM, True))
            self.assertEqual((0, ""), client.answer(1).status())

    def test_data_after_the_end(self):
        client = self.http2()
        client.ask(1, REDUCE, SUM)
        self.assertEqual((0, ""), client.answer(1).status())
        client.send(data(1, b"more", True))
        client.until("an answer", lambda: client.goaway is not None or client.ping())
        self.assertIn(client.goaway, (None, STREAM_CLOSED, PROTOCOL_ERROR))
        self.assert_serves()

    def test_more_than_the_window(self):
        client = self.begun()
        client.ping()
        flood = frame(DATA, 0, 1, bytes(16384)) * (client.sent_window // 16384 + 200)  # of zeros: empty messages of ReduceStream
        client.send(flood)
        client.until("its end", lambda: client.goaway is not None or client.streams[1].over or client.streams[1].reset is not None)
        self.assert_serves()


class Headers(Http2Test):
    OPTIONS = {"max_jobs_per_connection": 1000}  # all that test_many_at_once sends may be open at once, where the daemon reads late

    def test_headers_that_break_a_rule(self):
        good = [(":method", "POST"), (":scheme", "http"), (":path", REDUCE), ("content-type", "application/grpc")]
        for name, fields in (
                ("no method", good[1:]), ("no scheme", good[:1] + good[2:]), ("no path", good[:2] + good[3:]),
                ("empty path", good[:2] + [(":path", "")] + good[3:]),
                ("twice", good[:1] + good), ("unknown", [(":new", "1")] + good), ("status", [(":status", "200")] + good),
                ("late", good[:3] + [("x", "y"), (":authority", "z")]), ("capitals", good + [("X-Y", "z")]),
                ("connection", good + [("connection", "close")]), ("te", good + [("te", "gzip")]),
                ("line", good + [("x", "a\r\nb")]), ("zero", good + [("x", "a\0b")])):
            with self.subTest(name):
                self.reset(self.http2(), 1, headers(1, b"".join(field(*f) for f in fields)), PROTOCOL_ERROR)

    def test_content_length(self):
        for length, good in ((len(SUM), True), (len(SUM) - 1, False), (len(SUM) + 1, False)):
            client = self.http2()
            client.ask(1, REDUCE, SUM, ("content-length", str(length)))
            answer = client.answer(1)
            self.assertEqual((True, None) if good else (False, PROTOCOL_ERROR), (answer.over, answer.reset))

    def test_many_at_once(self):
        """The end of a request may be read in the turn after its answer: nobody is told to stop sending then."""
        client, many = self.http2(), range(1, 1001, 2)
        client.send(b"".join(headers(i, BLOCK) + data(i, SUM, True) for i in many))
        for i in many:
            answer = client.answer(i)
            self.assertEqual(((0, ""), None), (answer.status(), answer.reset))
        client.ping()
        self.assertEqual([], [i for i in many if client.streams[i].reset is not None])

    def test_trailers(self):
        client = self.begun()
        client.send(data(1, SUM) + headers(1, field("x-checksum", "1"), end=True))
        self.assertEqual((0, ""), client.answer(1).status())
        for wrong in (headers(3, field("x", "y")), headers(3, field(":path", "/"), end=True)):
            self.reset(self.begun(3), 3, wrong, PROTOCOL_ERROR)

    def test_methods_and_types(self):
        client, stream = self.http2(), 1
        for fields, http, code in ((dict(method="GET"), 405, INVALID_ARGUMENT), (dict(method="PUT"), 405, INVALID_ARGUMENT),
                                   (dict(content_type="application/json"), 415, INVALID_ARGUMENT),
                                   (dict(content_type="application/grpc-web"), 415, INVALID_ARGUMENT),
                                   (dict(without=("content-type",)), 415, INVALID_ARGUMENT),
                                   (dict(content_type="application/grpc+proto"), 200, 0), (dict(without=("te",)), 200, 0)):
            client.send(headers(stream, request_headers(REDUCE, **fields)) + data(stream, SUM, True))
            answer = client.answer(stream)
            self.assertEqual((http, code), (int(dict(answer.headers)[":status"]), answer.status()[0]), fields)
            stream += 2
        for path in ("/", "/cured.v1.Cured", REDUCE + "/", REDUCE + "\xff", "/" * 8000):
            client.ask(stream, path, SUM)
            self.assertEqual(UNIMPLEMENTED, client.answer(stream).status()[0])
            stream += 2


class Streams(Http2Test):
    OPTIONS = {"max_jobs_per_connection": 4}

    def test_more_than_announced(self):
        """Those beyond the limit are refused before the daemon's SETTINGS are known, and break a rule afterwards."""
        client = self.http2(greet=False)
        client.answers = False
        client.send(PREFACE + settings() + b"".join(headers(s, BLOCK) for s in range(1, 15, 2)))
        for stream in (9, 11, 13):
            self.assertEqual(REFUSED_STREAM, client.answer(stream).reset)
        for stream in (1, 3, 5, 7):
            client.send(data(stream, SUM, True))
            self.assertEqual((0, ""), client.answer(stream).status())
        client.answers = True
        client.send(frame(SETTINGS, ACK))
        self.broken(client, b"".join(headers(s, BLOCK) for s in range(15, 25, 2)), PROTOCOL_ERROR)

    def test_again_and_again(self):
        client = self.http2()
        client.grant(0, 1 << 24)
        for stream in range(1, 201, 2):
            client.ask(stream, INFO if stream % 3 else REDUCE, message(b"") if stream % 3 else SUM)
            self.assertEqual((0, ""), client.answer(stream).status())

    def test_resets_in_every_state(self):
        """Whatever a stream was doing when it was reset, its slot is free again."""
        chunks = message(head_chunk("u8", ["sum"], axis=(60000, 3, 1))) + message(data_chunk(bytes(5))) + message(data_chunk(bytes(9000)))
        for cut in [0, 1, 5, 40] + [random.randrange(len(chunks)) for _ in range(8)]:
            client = self.http2(window=random.choice((0, 100, 1 << 20)))
            for stream in range(1, 41, 2):
                client.send(headers(stream, request_headers(STREAM)) + data(stream, chunks[:cut]) + reset(stream))
            self.assertTrue(client.ping())
            self.served(self.http2(), 1)
            client.close()


if __name__ == "__main__":
    main()
