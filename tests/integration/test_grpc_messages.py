#!/usr/bin/env python3
"""gRPC's messages on HTTP/2, byte by byte: cut anywhere, empty, too many, in the wrong order; and the forms of grpc-timeout."""
import random
import struct
import time

import grpc_client

grpc_client.need("h2")
from beside import in_turn  # noqa: E402
from cured_daemon import DaemonTest, main, wait_for  # noqa: E402
from cured_wire import (DATA_LOSS, DEADLINE_EXCEEDED, INTERNAL, INVALID_ARGUMENT, UNIMPLEMENTED, beside_message, bytes_field,  # noqa: E402
                        first, keys_message, layout_message, mask_message, parameter_message, parse, reduce_message, segments_message, stream_input, uint_field)
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

    def test_masks_cut_at_every_byte(self):
        """Beside the array, before it in data, and in pieces of a stream."""
        mask, bits, kept = mask_message(beside_message(3)), mask_message(beside_message(3), True, 2), b"\1\0\7"
        one = reduce_message("u8", ["sum", "max"], None, mask=mask)
        two = reduce_message("u8", ["sum", "max"], None, mask=bits)
        head = message(bytes_field(1, two))
        for path, body in ((REDUCE, message(one + bytes_field(63, kept) + bytes_field(100, ARRAY))),
                           (REDUCE, message(two + bytes_field(63, b"\x14") + bytes_field(100, ARRAY))),
                           (REDUCE, message(one + bytes_field(100, kept + ARRAY))),
                           (STREAM, head + message(data_chunk(b"\x14" + ARRAY[:1])) + message(data_chunk(ARRAY[1:]))),
                           (STREAM, head + message(data_chunk(b"\x14")) + message(data_chunk(ARRAY)))):
            for cut in range(len(body) + 1):
                stream = self.next(path)
                self.client.send(data(stream, body[:cut]))
                if random.random() < 0.3:
                    self.client.ping()
                self.client.send(data(stream, body[cut:], True))
                self.right(stream, path, (4, 3))

    def test_long_masks(self):
        """Longer than what is gathered, than a slab, and than a window."""
        array = bytes(range(200)) * 20000
        keeps = b"\1\0" * (len(array) // 2)
        want = (sum(array[::2]), 198)
        mask = mask_message(beside_message(len(array)))
        for path, body in ((REDUCE, message(reduce_message("u8", ["sum", "max"], None, mask=mask) + bytes_field(63, keeps) + bytes_field(100, array))),
                           (STREAM, message(bytes_field(1, reduce_message("u8", ["sum", "max"], None, mask=mask))) + message(data_chunk(keeps + array)))):
            stream = self.next(path)
            self.client.upload(stream, body)
            self.right(stream, path, want)

    def test_masks_that_are_wrong(self):
        mask = mask_message(beside_message(3))
        one = reduce_message("u8", ["sum"], None, mask=mask)
        for body, code, *words in (
                (one + bytes_field(100, ARRAY), INVALID_ARGUMENT, "mask: its bytes are missing; put the 3 bytes"),
                (one, INVALID_ARGUMENT, "mask: its bytes are missing"),
                (one + bytes_field(63, b"") + bytes_field(100, ARRAY), INVALID_ARGUMENT, "beside: it has 0 bytes, and what"),
                (one + bytes_field(100, b"\1\1\1\1\1"), INVALID_ARGUMENT, "mask: its bytes are missing"),
                (one + bytes_field(63, b"\1\1\1") + bytes_field(100, ARRAY + b"\1"), INVALID_ARGUMENT, "mask", "3 elements"),
                (one + bytes_field(63, b"\1\1\1\1") + bytes_field(100, ARRAY), INVALID_ARGUMENT, "beside: it has 4 bytes, and what the request names there takes 3"),
                (one + bytes_field(63, b"\1\1\1"), INVALID_ARGUMENT, "mask", "0 bytes"),
                (one + bytes_field(100, ARRAY) + bytes_field(63, b"\1\1\1"), INVALID_ARGUMENT, "last field"),
                (one + bytes_field(63, b"\1\1\1") * 2 + bytes_field(100, ARRAY), INVALID_ARGUMENT, "last field"),
                (REQUEST[:-6] + bytes_field(63, b"\1") + bytes_field(100, ARRAY), INVALID_ARGUMENT, "beside"),
                (reduce_message("u8", ["sum"], None, mask=mask_message(beside_message(3, 7))) + bytes_field(100, ARRAY), INVALID_ARGUMENT, "native"),
                (reduce_message("u8", ["sum"], None, mask=b"") + bytes_field(100, ARRAY), INVALID_ARGUMENT, "Mask")):
            stream = self.next(REDUCE)
            self.client.send(data(stream, message(body), True))
            got, text = self.client.answer(stream).status()
            self.assertIn(got, (code, INVALID_ARGUMENT), text)
            self.assertTrue(any(part in text for word in words for part in word.split("|")), text)
        self.wrong(STREAM, message(bytes_field(1, one + bytes_field(63, b"\1"))), INVALID_ARGUMENT, "beside", "ReduceChunk.data")
        self.wrong(STREAM, message(bytes_field(1, one)) + message(data_chunk(b"\1\1")), DATA_LOSS, "mask", "END came after 2")

    def test_segments(self):
        """Offsets beside the array, alone and behind a mask, cut at every byte; what is wrong with them."""
        said, borders = segments_message(beside_message(3), "i32"), struct.pack("<3i", 0, 1, 3)
        plain_one = reduce_message("u8", ["sum", "max"], None, segments=said)
        masked = reduce_message("u8", ["sum", "max"], None, segments=said, mask=mask_message(beside_message(3)))
        for asked, beside, sums, most in ((plain_one, borders, (1, 5), (1, 3)), (masked, b"\1\1\0" + borders, (1, 2), (1, 2))):
            body = message(asked + bytes_field(63, beside) + bytes_field(100, ARRAY))
            for cut in range(len(body) + 1):
                stream = self.next(REDUCE)
                self.client.send(data(stream, body[:cut]))
                self.client.send(data(stream, body[cut:], True))
                self.right(stream, REDUCE, (sums[0] + (sums[1] << 64), most[0] + (most[1] << 8)))
            stream = self.next(STREAM)
            self.client.send(data(stream, message(bytes_field(1, asked)) + message(data_chunk(beside + ARRAY[:1])) + message(data_chunk(ARRAY[1:])), True))
            answer = self.client.answer(stream)
            self.assertEqual((0, ""), answer.status())
            parts = [parse(first(parse(part), 1, b"")) for part in answer.messages()[:-1]]
            self.assertEqual({0: struct.pack("<2Q", *sums), 1: bytes(most)}, {first(p, 1): bytes(first(p, 3)) for p in parts})
        for beside, code, *words in ((borders[:11], INVALID_ARGUMENT, "beside: it has 11 bytes, and what the request names there takes 12"),
                                     (borders + b"\0", INVALID_ARGUMENT, "beside"),
                                     (struct.pack("<3i", 0, 2, 1), INVALID_ARGUMENT, "offsets[2] is 1, below the 2 before it"),
                                     (struct.pack("<3i", 0, 2, 4), INVALID_ARGUMENT, "offsets: the last is 4, and 3 elements came")):
            stream = self.next(REDUCE)
            self.client.send(data(stream, message(plain_one + bytes_field(63, beside) + bytes_field(100, ARRAY)), True))
            got, text = self.client.answer(stream).status()
            self.assertEqual(code, got)
            self.assertIn(words[0], text)
        named = reduce_message("u8", ["sum"], None, segments=segments_message(beside_message(3, 7), "i32"))
        self.wrong(REDUCE, message(named + bytes_field(100, ARRAY)), INVALID_ARGUMENT, "offsets", "native")
        many = reduce_message("u8", ["sum"], None, segments=segments_message(beside_message(200000), "i32"))
        self.wrong(REDUCE, message(many + bytes_field(100, ARRAY)), INVALID_ARGUMENT, "offsets: they ask", "ReduceStream")

    def test_pairs(self):
        """The second array in turn with the first, cut at every byte, and in several blocks."""
        asked = reduce_message("u8", ["dot", "sqdist"], None, second=beside_message(3))
        other, head = bytes([5, 0, 7]), message(bytes_field(1, asked))
        for path, body in ((REDUCE, message(asked + bytes_field(100, ARRAY + other))),
                           (STREAM, head + message(data_chunk(ARRAY[:1])) + message(data_chunk(ARRAY[1:] + other[:1])) + message(data_chunk(other[1:])))):
            for cut in range(len(body) + 1):
                stream = self.next(path)
                self.client.send(data(stream, body[:cut]))
                self.client.send(data(stream, body[cut:], True))
                self.right(stream, path, (26, 36))
        x, y = bytes(range(200)) * 5000, bytes(range(100, 200)) * 10000
        asked = reduce_message("u8", ["dot", "sqdist"], None, second=beside_message(len(x)))
        want = (sum(a * b for a, b in zip(x, y)), sum((a - b) ** 2 for a, b in zip(x, y)))
        for path, body in ((REDUCE, message(asked + bytes_field(100, in_turn(x, y)))),
                           (STREAM, message(bytes_field(1, asked)) + message(data_chunk(in_turn(x, y))))):
            stream = self.next(path)
            self.client.upload(stream, body)
            self.right(stream, path, want)
        short = reduce_message("u8", ["dot"], None, second=beside_message(3))
        self.wrong(REDUCE, message(short + bytes_field(100, ARRAY + b"12")), INVALID_ARGUMENT, "second: data ends 1 bytes before it does; put both arrays into data", "in turn, 262144 bytes")
        for body in (b"", bytes_field(100, b""), bytes_field(100, ARRAY)):  # all of it is left out
            self.wrong(REDUCE, message(short + body), INVALID_ARGUMENT, "second: data ends 3 bytes before it does")
        masked = reduce_message("u8", ["dot"], None, second=beside_message(3), mask=mask_message(beside_message(3)))
        self.wrong(REDUCE, message(masked + bytes_field(63, b"\1\1\1") + bytes_field(100, ARRAY)), INVALID_ARGUMENT, "second: data ends 3 bytes")
        self.wrong(REDUCE, message(masked + bytes_field(63, b"\1\1\1")), INVALID_ARGUMENT, "second: data ends 3 bytes")
        self.wrong(REDUCE, message(masked + bytes_field(100, ARRAY + ARRAY)), INVALID_ARGUMENT, "mask: its bytes are missing; put the 3 bytes")
        self.wrong(REDUCE, message(short + bytes_field(100, ARRAY + b"1234")), INVALID_ARGUMENT, "second: it has 3 elements, more bytes came")
        self.wrong(REDUCE, message(short + bytes_field(63, b"123") + bytes_field(100, ARRAY)), INVALID_ARGUMENT, "beside: it has 3 bytes")
        self.wrong(REDUCE, message(reduce_message("u8", ["dot"], None, second=beside_message(3, 7)) + bytes_field(100, ARRAY)), INVALID_ARGUMENT, "second", "native")
        self.wrong(REDUCE, message(reduce_message("u8", ["dot"], None) + bytes_field(100, ARRAY)), INVALID_ARGUMENT, "second: op dot is of two arrays")
        self.wrong(REDUCE, message(reduce_message("u8", ["sum"], None, second=beside_message(3)) + bytes_field(100, ARRAY + ARRAY)), INVALID_ARGUMENT, "second: op sum")

    def test_quantiles(self):
        """In one message and as a stream, cut at every byte; of an array whose length only its end says."""
        asked = reduce_message("u8", ["quantile", "median", "sum"], None, parameters=[parameter_message(0, 1.0, 1)])
        head = message(bytes_field(1, asked))
        floats = [int.from_bytes(struct.pack("<d", v), "little") for v in (3, 2)]
        for path, body in ((REDUCE, message(asked + bytes_field(100, ARRAY))),
                           (STREAM, head + message(data_chunk(ARRAY[:1])) + message(data_chunk(ARRAY[1:])))):
            for cut in range(len(body) + 1):
                stream = self.next(path)
                self.client.send(data(stream, body[:cut]))
                self.client.send(data(stream, body[cut:], True))
                self.right(stream, path, floats + [6])
        long = bytes(range(100)) * 30000
        for path, body in ((REDUCE, message(asked + bytes_field(100, long))), (STREAM, head + message(data_chunk(long)))):
            stream = self.next(path)
            self.client.upload(stream, body)
            self.right(stream, path, [int.from_bytes(struct.pack("<d", v), "little") for v in (99, 49.5)] + [sum(long)])
        self.wrong(REDUCE, message(reduce_message("u8", ["quantile"], None, parameters=[parameter_message(0, 1.5)]) + bytes_field(100, ARRAY)),
                   INVALID_ARGUMENT, "parameters[0] is 1.5")
        self.wrong(REDUCE, message(reduce_message("u8", ["quantile"], None, parameters=[parameter_message(3, 1)]) + bytes_field(100, ARRAY)),
                   INVALID_ARGUMENT, "parameters[0].op is 3")
        self.wrong(REDUCE, message(reduce_message("u8", ["sum", "sum"], None, parameters=[parameter_message(0, 1)]) + bytes_field(100, ARRAY)),
                   INVALID_ARGUMENT, "twice")

    def test_blocks(self):
        """Columns of an array of (3, 2), in one message and as a stream, cut at every byte, have the partials that the native door gives;
        what is wrong with a layout is said."""
        native = self.connect()
        for start in ((0, 0), (0, 1)):
            options = {"partial": True, "layout": layout_message((3, 2), start, (3, 1))}
            asked = reduce_message("u8", ["digest", "argmax"], None, **options)
            want = native.inline("u8", ["digest", "argmax"], ARRAY, **options).partial
            self.assertEqual(b"CP\3", want[:3])
            for path, body in ((REDUCE, message(asked + bytes_field(100, ARRAY))),
                               (STREAM, message(bytes_field(1, asked)) + message(data_chunk(ARRAY[:1])) + message(data_chunk(ARRAY[1:])))):
                for cut in range(len(body) + 1):
                    stream = self.next(path)
                    self.client.send(data(stream, body[:cut]))
                    self.client.send(data(stream, body[cut:], True))
                    answer = self.client.answer(stream)
                    self.assertEqual((0, ""), answer.status())
                    last = answer.messages()[-1]
                    self.assertEqual(want, bytes(first(parse(first(parse(last), 3, b"") if path == STREAM else last), 4)))
        for axes, partial, words in (((((3, 4), (0, 0), (3, 1))), False, "only a partial"), (((3, 4), (0, 4), (3, 1)), True, "axis 1, 1 elements from 4"),
                                     (((2**60, 4), (0, 0), (3, 1)), True, "2^60"), (((3, 4), (0, 0), (2, 1)), True, "the block has 2 elements"),
                                     (((1,) * 33, (0,) * 33, (1,) * 33), True, "33 axes")):
            asked = reduce_message("u8", ["sum"], None, partial=partial, layout=layout_message(*axes))
            self.wrong(REDUCE, message(asked + bytes_field(100, ARRAY)), INVALID_ARGUMENT, words)
            self.wrong(STREAM, message(bytes_field(1, asked)) + message(data_chunk(ARRAY)), INVALID_ARGUMENT, words)

    def test_keys(self):
        said, keys = keys_message(beside_message(3), 2, "u16"), struct.pack("<3H", 1, 0, 1)
        asked = reduce_message("u8", ["sum", "max"], None, keys=said)
        body = message(asked + bytes_field(63, keys) + bytes_field(100, ARRAY))
        for cut in range(len(body) + 1):
            stream = self.next(REDUCE)
            self.client.send(data(stream, body[:cut]))
            self.client.send(data(stream, body[cut:], True))
            self.right(stream, REDUCE, (2 + (4 << 64), 2 + (3 << 8)))
        stream = self.next(STREAM)
        self.client.send(data(stream, message(bytes_field(1, asked)) + message(data_chunk(keys + ARRAY)), True))
        parts = [parse(first(parse(part), 1, b"")) for part in self.client.answer(stream).messages()[:-1]]
        self.assertEqual({0: struct.pack("<2Q", 2, 4), 1: b"\2\3"}, {first(p, 1): bytes(first(p, 3)) for p in parts})
        keyed = reduce_message("u8", ["sum", "max"], None, keys=said, partial=True, unplaced=True)
        self.wrong(REDUCE, message(keyed + bytes_field(63, keys) + bytes_field(100, ARRAY)), INVALID_ARGUMENT, "partial", "ReduceStream")
        one = keys_message(beside_message(3), 1, "u16", drop=True)
        masked = {"mask": mask_message(beside_message(3))}
        for asks, beside, groups, cells in ((said, {}, 2, 2), (one, {}, 1, 1), (said, masked, 2, 1), (one, masked, 1, 0)):
            keyed = reduce_message("u8", ["sum", "max"], None, keys=asks, partial=True, unplaced=True, **beside)
            stream = self.next(STREAM)
            body = (b"\1\0\0" if beside else b"") + keys + ARRAY  # under the mask the first element is left, of group 1
            self.client.send(data(stream, message(bytes_field(1, keyed)) + message(data_chunk(body)), True))
            *parts, last = [parse(part) for part in self.client.answer(stream).messages()]
            raw = b"".join(bytes(first(parse(first(part, 1)), 3)) for part in parts)
            self.assertEqual((b"CK", groups, cells), struct.unpack_from("<2s6xQ8xQ", raw))
            self.assertEqual(3, first(parse(first(last, 3)), 2))
        self.wrong(REDUCE, message(asked + bytes_field(63, struct.pack("<3H", 0, 1, 2)) + bytes_field(100, ARRAY)), INVALID_ARGUMENT, "keys: number 2 is 2")
        self.wrong(REDUCE, message(asked + bytes_field(63, keys) + bytes_field(100, ARRAY + b"4")), INVALID_ARGUMENT, "keys: the input of their rows has 3")
        named = reduce_message("u8", ["sum"], None, keys=keys_message(beside_message(3, 7), 2, "u16"))
        self.wrong(REDUCE, message(named + bytes_field(100, ARRAY)), INVALID_ARGUMENT, "keys", "native")
        many = reduce_message("u8", ["sum"], None, keys=keys_message(beside_message(3), 200000, "u16"))
        self.wrong(REDUCE, message(many + bytes_field(63, keys) + bytes_field(100, ARRAY)), INVALID_ARGUMENT, "keys: they ask", "ReduceStream")

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

    def test_a_second_message_that_waits(self):
        """The turn of a connection may end between the messages, and the first be answered before the next turn: others go then."""
        other, empty = Http2(self.daemon.address), message(bytes_field(2, b""))
        self.addCleanup(other.close)
        crowd, busy, array = 1, self.next(STREAM), message(reduce_request("u8", ["sum"], bytes(1 << 20)))
        self.client.send(data(busy, message(head_chunk("u8", ["sum"]))))
        for empties in (*range(245, 257), *[255] * 30):  # a turn is 256 frames and messages
            other.send(headers(crowd, request_headers(STREAM)) + data(crowd, message(head_chunk("u8", ["sum"]))))
            stream = self.next(REDUCE)
            self.client.upload(stream, array[:-4000], end=False)
            self.assertTrue(self.client.ping())
            other.send(data(crowd, empty * 2000) * 3)
            self.client.send(data(busy, empty * empties) + data(stream, array[-4000:] + SUM, True))
            answer = self.client.answer(stream)
            self.assertEqual(([], INVALID_ARGUMENT), (answer.messages(), answer.status()[0]), empties)
            other.send(reset(crowd, CANCEL))
            crowd += 2

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
