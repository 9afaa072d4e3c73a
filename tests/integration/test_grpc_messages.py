#!/usr/bin/env python3
"""gRPC's messages on HTTP/2, byte by byte: cut anywhere, empty, too many, in the wrong order; and the forms of grpc-timeout."""
import random
import struct
import time

import grpc_client

grpc_client.need("h2")
from cured_daemon import DaemonTest, main, wait_for  # noqa: E402
from cured_wire import (DEADLINE_EXCEEDED, INTERNAL, INVALID_ARGUMENT, UNIMPLEMENTED, bytes_field, first, parse, reduce_message,  # noqa: E402
                        stream_input, uint_field)
from http2 import (CANCEL, INFO, MERGE, REDUCE, STREAM, Http2, data, data_chunk, field, head_chunk, headers, merge_request,  # noqa: E402
                   message, reduce_request, request_headers, reset)

ARRAY = bytes([1, 2, 3])
REQUEST = reduce_request("u8", ["sum", "max"], ARRAY)
SUM = message(REQUEST)


class Messages(DaemonTest):
    def setUp(self):
        self.client, self.stream = Http2(self.daemon.address), -1
        self.addCleanup(self.client.close)

    def next(self, path, *more):
        self.stream += 2
        self.client.send(headers(self.stream, request_headers(path, *more)))
        return self.stream

    def sums(self, response):
        return [int.from_bytes(first(parse(r), 5, b""), "little") for r in parse(response).get(1, [])]

    def right(self, stream, path=REDUCE, want=(6, 3)):
        answer = self.client.answer(stream)
        self.assertEqual((0, ""), answer.status())
        last = answer.messages()[-1]
        self.assertEqual(list(want), self.sums(first(parse(last), 3, b"") if path == STREAM else last))

    def wrong(self, path, sent, code, *words, end=True, more=()):
        stream = self.next(path, *more)
        self.client.send(data(stream, sent, end))
        answer = self.client.answer(stream)
        self.assertEqual(code, answer.status()[0], answer.status()[1])
        for word in words:
            self.assertIn(word, answer.status()[1])

    def test_cut_at_every_byte(self):
        chunks = message(head_chunk("u8", ["sum", "max"])) + message(data_chunk(ARRAY[:1])) + message(data_chunk(ARRAY[1:]))
        for path, body in ((REDUCE, SUM), (STREAM, chunks)):
            for cut in range(len(body) + 1):
                stream = self.next(path)
                self.client.send(data(stream, body[:cut]))
                if random.random() < 0.3:
                    self.client.ping()  # the beginning has been looked at by itself
                self.client.send(data(stream, body[cut:], True))
                self.right(stream, path)
            stream = self.next(path)
            self.client.send(b"".join(data(stream, body[i:i + 1]) for i in range(len(body))) + data(stream, b"", True))
            self.right(stream, path)

    def test_partials_cut_at_every_byte(self):
        stream = self.next(REDUCE)
        self.client.send(data(stream, message(reduce_request("u8", ["sum"], ARRAY, partial=True, unplaced=True)), True))
        part = bytes(first(parse(self.client.answer(stream).messages()[0]), 4))
        body = message(merge_request([1], [part, part, part]))
        for cut in range(len(body) + 1):
            stream = self.next(MERGE)
            self.client.send(data(stream, body[:cut]) + data(stream, body[cut:], True))
            self.right(stream, want=[18])
        for n in (1, 3, 7):
            stream = self.next(MERGE)
            self.client.send(b"".join(data(stream, body[i:i + n]) for i in range(0, len(body), n)) + data(stream, b"", True))
            self.right(stream, want=[18])
        self.wrong(MERGE, message(merge_request([1], [part]) + uint_field(5, 1)), INVALID_ARGUMENT, "last fields")
        self.wrong(MERGE, message(merge_request([1], [part[:-1]])), INVALID_ARGUMENT)
        self.wrong(MERGE, message(merge_request([1], [part]))[:-1], INVALID_ARGUMENT, "within a message")

    def test_streams_that_end_within_a_message(self):
        for end in range(len(SUM)):
            self.wrong(REDUCE, SUM[:end], INVALID_ARGUMENT, "within a message" if end else "no message")

    def test_answers_wait_for_the_clients_end(self):
        """A second message could come behind the first, and would make the request a bad one."""
        stream = self.next(REDUCE)
        self.client.send(data(stream, SUM))
        for _ in range(3):
            self.assertTrue(self.client.ping())
        self.assertNotIn(stream, [s for s, answer in self.client.streams.items() if answer.headers])
        self.client.send(data(stream, b"", True))
        self.right(stream)

    def test_refusals_come_before_the_clients_end(self):
        stream = self.next(REDUCE)
        self.client.send(data(stream, message(b"")))
        self.assertEqual(INVALID_ARGUMENT, self.client.answer(stream).status()[0])
        self.client.until("a reset", lambda: self.client.streams[stream].reset is not None)
        self.assertEqual(0, self.client.streams[stream].reset)

    def test_messages_too_many_and_empty(self):
        self.wrong(REDUCE, message(b""), INVALID_ARGUMENT, "ops")
        self.wrong(REDUCE, message(reduce_message("u8", ["sum"], None, axis=(1, 1, 1))) * 2, INVALID_ARGUMENT)
        self.wrong(STREAM, message(head_chunk("u8", ["sum"])) + message(b""), INVALID_ARGUMENT, "neither head nor data")
        self.wrong(INFO, message(b"\x12"), INVALID_ARGUMENT)
        stream = self.next(STREAM)
        empty = message(bytes_field(2, b""))
        self.client.send(data(stream, message(head_chunk("u8", ["sum", "max"])) + empty * 300 + message(data_chunk(ARRAY)) + empty, True))
        self.right(stream, STREAM)

    def test_a_second_message(self):
        """In a request that is one message it is an error, whatever either's length, and however they come."""
        part = bytes(first(parse(self.ask(REDUCE, reduce_request("u8", ["sum"], ARRAY, partial=True, unplaced=True)).messages()[0]), 4))
        empty = message(b"")
        once = {REDUCE: [SUM, message(reduce_request("u8", ["sum"], bytes(20000))), message(reduce_request("u8", ["sum"], bytes(1 << 20))),
                         message(reduce_request("u8", ["sum"], bytes(6), axis=(2, 3, 1)))],
                MERGE: [message(merge_request([1], [part]))], INFO: [empty], "/cured.v1.Cured/Stats": [empty],
                "/cured.v1.Cured/SlowLog": [empty], "/grpc.health.v1.Health/Check": [empty], "/grpc.health.v1.Health/Watch": [empty]}
        for path, messages in once.items():
            for m in messages:
                for behind in (m, empty, b"\0", SUM[:7]):
                    for apart in (False, True):
                        stream = self.next(path)
                        self.client.upload(stream, m if apart else m + behind, end=not apart)
                        if apart:  # the first has been looked at, and may be answered
                            self.assertTrue(self.client.ping())
                            self.client.upload(stream, behind)
                        answer = self.client.answer(stream)
                        self.assertEqual([], answer.messages(), path)
                        code, text = answer.status()
                        self.assertEqual((INVALID_ARGUMENT, True), (code, "a second came" in text), (path, len(m), len(behind), apart, text))
        self.assertTrue(self.client.ping())

    def ask(self, path, request):
        stream = self.next(path)
        self.client.upload(stream, message(request))
        return self.client.answer(stream)

    def test_fields_in_the_wrong_order(self):
        self.wrong(REDUCE, message(bytes_field(100, ARRAY) + reduce_message("u8", ["sum"], None)), INVALID_ARGUMENT, "last field")
        self.wrong(REDUCE, message(REQUEST + bytes_field(100, ARRAY)), INVALID_ARGUMENT, "last field")
        self.wrong(REDUCE, message(REQUEST + uint_field(6, 1)), INVALID_ARGUMENT, "last field")
        self.wrong(REDUCE, message(reduce_message("u8", ["sum"], stream_input(3))), INVALID_ARGUMENT, "ReduceStream")
        self.wrong(STREAM, message(data_chunk(ARRAY)), INVALID_ARGUMENT, "before the head")
        self.wrong(STREAM, message(head_chunk("u8", ["sum"]) + data_chunk(ARRAY)), INVALID_ARGUMENT)

    def test_lengths_that_lie(self):
        self.wrong(REDUCE, struct.pack(">BI", 0, len(REQUEST) - 1) + REQUEST, INVALID_ARGUMENT)
        self.wrong(REDUCE, struct.pack(">BI", 0, len(REQUEST) + 1) + REQUEST, INVALID_ARGUMENT)
        self.wrong(REDUCE, struct.pack(">BI", 0, 0xffffffff) + REQUEST, INVALID_ARGUMENT)
        self.wrong(STREAM, message(head_chunk("u8", ["sum"])) + message(b"\x12\x05abc"), INVALID_ARGUMENT)

    def test_compressed(self):
        self.wrong(REDUCE, message(REQUEST, 1), UNIMPLEMENTED, "compressed")
        self.wrong(REDUCE, message(REQUEST, 7), INTERNAL, "7")
        self.wrong(REDUCE, SUM, UNIMPLEMENTED, "grpc-encoding", more=[("grpc-encoding", "gzip")])
        stream = self.next(REDUCE, ("grpc-encoding", "identity"), ("grpc-accept-encoding", "gzip"))
        self.client.send(data(stream, SUM, True))
        self.right(stream)

    def test_timeouts(self):
        for good in ("1H", "5M", "60S", "60000m", "99999999u", "99999999H", "00000009S", "99999999M", "5124096H", "10248192H"):
            stream = self.next(REDUCE, ("grpc-timeout", good))
            self.client.send(data(stream, SUM, True))
            self.right(stream)
        for bad in ("", "1", "S", "1s", "-1S", "1.5S", "100000000S", "1 S", "1SS", "0x1S", "+1S"):
            self.wrong(REDUCE, SUM, INVALID_ARGUMENT, "grpc-timeout", more=[("grpc-timeout", bad)])
        for short in ("0S", "0n"):
            self.wrong(REDUCE, SUM, DEADLINE_EXCEEDED, "grpc-timeout", more=[("grpc-timeout", short)])
        self.wrong(STREAM, message(head_chunk("u8", ["sum"])), DEADLINE_EXCEEDED, end=False, more=[("grpc-timeout", "80m")])

    def test_errors_in_the_middle(self):
        """The rest that the client sends is dropped, and its windows are not lost to others."""
        for _ in range(6):
            stream = self.next(REDUCE)
            self.client.upload(stream, message(reduce_request("f32", ["sum"], bytes(3 << 20), ddof=0)[:-1] + b"x") + b"\x07", end=False)
            self.client.send(reset(stream))
        for _ in range(6):
            stream = self.next(STREAM)
            self.client.upload(stream, message(head_chunk("u8", [77])) + bytes(3 << 20), end=False)
            self.assertNotEqual(0, self.client.answer(stream).status()[0])
        stream = self.next(REDUCE)
        self.client.upload(stream, message(reduce_request("u8", ["sum", "max"], ARRAY * 7000000)))
        self.right(stream, want=(42000000, 3))


class Senders(DaemonTest):
    OPTIONS = {"slabs": 4}

    def test_many_that_send_faster_than_slabs_come(self):
        """Each call is folded from the few slabs that there are, whatever the order; a reset of one leaves the others theirs."""
        clients = [Http2(self.daemon.address) for _ in range(6)]
        for client in clients:
            self.addCleanup(client.close)
            for stream in (1, 3, 5):
                client.send(headers(stream, request_headers(STREAM)) + data(stream, message(head_chunk("u8", ["sum"]))))
        part = message(data_chunk(bytes([1]) * 300000))
        for _ in range(4):
            for client in clients:
                for stream in (1, 3, 5):
                    client.upload(stream, part, end=False)
        for client in clients[:3]:
            client.send(reset(3))
        for client in clients:
            for stream in (1, 5):
                client.upload(stream, message(data_chunk(bytes([1]) * 5)))
        for client in clients:
            for stream in (1, 5):
                end = first(parse(client.answer(stream).messages()[-1]), 3, b"")
                self.assertEqual(1200005, first(parse(end), 2))
        for client in clients[3:]:
            client.close()  # with a call under way
        wait_for("the end of all calls", lambda: self.daemon.gauges()["calls"] == 0)


if __name__ == "__main__":
    main()
