#!/usr/bin/env python3
"""test_long_headers: header blocks of gRPC that are too long, in every form that HPACK has. Such a request is refused or reset. The
connection, its other requests and the table that both ends keep of header fields go on. A block of more than 128 KiB ends it."""
import os
import random

import grpc_client

grpc_client.need("h2")
from cured_daemon import DaemonTest, main  # noqa: E402
from cured_wire import RESOURCE_EXHAUSTED, first, parse  # noqa: E402
from http2 import (CONTINUATION, END_HEADERS, ENHANCE_YOUR_CALM, HEADERS, INFO, PADDED, PRIORITIZED, REDUCE, STREAM, Http2, data,  # noqa: E402
                   data_chunk, field, frame, head_chunk, headers, message, reduce_request, request_headers)

SEED = int(os.environ.get("CURED_TEST_SEED", "1"))
SUM = message(reduce_request("u8", ["sum"], bytes([1, 2, 3])))
TABLE = 62  # the newest entry of the dynamic table


def integer(value, bits, first_bits, zeros=0):
    """RFC 7541, 5.1; zeros: so many bytes of nothing behind it."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first_bits | value])
    out, value = [first_bits | most], value - most
    while value > 127 or zeros:
        if value <= 127:
            zeros -= 1
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + [value])


def text(content, huffman=False, zeros=0):
    content = content.encode() if isinstance(content, str) else content
    return integer(len(content), 7, 128 if huffman else 0, zeros) + content


def literal(kind, name, value, **more):
    """kind: 0x40 goes into the table, 0x00 does not, 0x10 never may. name: text, or the number of an entry that has it."""
    bits = 6 if kind == 0x40 else 4
    if isinstance(name, int):
        return integer(name, bits, kind) + text(value, **more)
    return bytes([kind]) + text(name, **more) + text(value, **more)


def indexed(number):
    return integer(number, 7, 128)


def block_frames(stream, block, cuts=(), flags=0, before=b"", behind=b""):
    """HEADERS and as many CONTINUATIONs as it takes; cuts: further places where a frame ends."""
    ends = sorted({*cuts, *range(16000, len(block), 16000), len(block)})
    pieces = [block[a:b] for a, b in zip([0] + ends, ends)]
    out = frame(HEADERS, flags | (END_HEADERS if len(pieces) == 1 else 0), stream, before + pieces[0] + behind)
    for i, piece in enumerate(pieces[1:], 2):
        out += frame(CONTINUATION, END_HEADERS if i == len(pieces) else 0, stream, piece)
    return out


class LongHeaders(DaemonTest):
    def client(self):
        client = Http2(self.daemon.address)
        self.addCleanup(client.close)
        return client

    def served(self, client, stream, block):
        """A request of that block is answered."""
        client.send(headers(stream, block) + data(stream, SUM, True))
        answer = client.answer(stream)
        self.assertEqual((0, ""), answer.status())
        self.assertEqual(3, first(parse(answer.messages()[0]), 2))

    def test_one_long_field_costs_its_request_alone(self):
        """By the way it is written, its length and where frames end in it. The path of later requests lies in the table."""
        chance = random.Random(SEED)
        rest = request_headers(REDUCE, without=(":path",))
        put = literal(0x40, 4, REDUCE.encode())  # the 4th of the static table has the name :path
        long = chance.randrange(65537, 90000)
        forms = []
        for kind in (0x40, 0x00, 0x10):
            for length in (65537, 65536 + 127, long, 90000):
                forms.append((kind, literal(kind, "x-long", b"v" * length)))
            forms += [(kind, literal(kind, b"n" * long, b"")), (kind, literal(kind, b"n" * long, b"value")),
                      (kind, literal(kind, b"n" * 66000, b"v" * 20000)), (kind, literal(kind, 58, b"v" * long)),
                      (kind, literal(kind, 58, bytes(length // 5 * 5), huffman=True)),
                      (kind, literal(kind, "x-long", b"v" * long, zeros=1))]
        for i, (kind, form) in enumerate(forms):
            client, stream = self.client(), 5
            running = message(head_chunk("u8", ["sum"])) + message(data_chunk(b"\1\2"))
            client.send(headers(1, request_headers(STREAM)) + data(1, running))
            self.served(client, 3, put + rest)
            # What is unpacked before and behind the long field changes the table too.
            block = rest + literal(0x40, "x-before", b"1") + form + literal(0x40, "x-behind", b"2")
            at = len(rest) + len(literal(0x40, "x-before", b"1"))
            cuts = [at + chance.randrange(1, 9) for _ in range(i % 3)] + ([len(block) - chance.randrange(1, 9)] if i % 4 == 0 else [])
            client.send(block_frames(stream, block, cuts), piece=chance.choice((0, 0, 1013)))
            answer = client.answer(stream)
            self.assertIsNotNone(answer.reset, form[:12])
            # In the table are now "x-behind", "x-before" and the path, but for what a field longer than the table has driven out.
            if kind == 0x40:
                self.served(client, stream + 2, put + rest)
                self.served(client, stream + 4, indexed(TABLE) + rest)
                self.served(client, stream + 6, indexed(TABLE) + rest + indexed(TABLE + 1))
            else:
                self.served(client, stream + 2, indexed(TABLE + 2) + rest + indexed(TABLE + 1) + indexed(TABLE))
            client.send(data(1, message(data_chunk(b"\3")), True))
            end = first(parse(client.answer(1).messages()[-1]), 3)
            self.assertEqual(3, first(parse(end), 2), "the request before it goes on")
            if kind == 0x40:  # nothing stands behind those two
                client.send(headers(stream + 8, indexed(TABLE) + rest + indexed(TABLE + 2)))
                self.assertIsNotNone(client.end(), form[:12])
            client.close()
        self.assert_serves()

    def test_padding_and_priority_are_no_part_of_it(self):
        client = self.client()
        put, rest = literal(0x40, 4, REDUCE.encode()), request_headers(REDUCE, without=(":path",))
        self.served(client, 1, put + rest)
        block = rest + literal(0x00, "x-long", b"v" * 70000)
        client.send(block_frames(3, block, (100,), PADDED | PRIORITIZED, b"\x07" + b"\0\0\0\0\x10", b"\x7f" * 7))
        self.assertIsNotNone(client.answer(3).reset)
        self.served(client, 5, indexed(TABLE) + rest)

    def test_trailers_too(self):
        client = self.client()
        client.send(headers(1, request_headers(STREAM)) + data(1, message(head_chunk("u8", ["sum"]))))
        client.send(block_frames(1, literal(0x40, "x-long", b"v" * 80000), flags=1))
        self.assertIsNotNone(client.answer(1).reset)
        self.served(client, 3, request_headers(REDUCE))

    def test_more_than_a_block_may_have_ends_the_connection(self):
        rest = request_headers(REDUCE)
        for block, cuts in ((rest + literal(0x00, "x", b"v" * 140000), ()), (rest + field("x", "v" * 10000) * 14, ()),
                            (rest, range(1, 12)), (literal(0x00, "x", b"v" * (1 << 22))[:60000], ())):
            client = self.client()
            self.served(client, 1, rest)
            client.send(block_frames(3, block, cuts))
            self.assertEqual(ENHANCE_YOUR_CALM, client.end(), len(block))
            self.assertIn("128 KiB", client.goaway_text)
        self.assert_serves()

    def test_a_little_too_long_says_so_and_not_to_try_again(self):
        client = self.client()
        client.send(block_frames(3, request_headers(INFO, ("x-much", "v" * 20480))) + data(3, message(b""), True))
        answer = client.answer(3)
        self.assertEqual(RESOURCE_EXHAUSTED, answer.status()[0])
        self.assertIn("16384", answer.status()[1])
        self.assertNotIn("grpc-retry-pushback-ms", dict(answer.trailers or answer.headers))


if __name__ == "__main__":
    main()
