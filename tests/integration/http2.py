"""http2: a client of HTTP/2 and gRPC for tests, in raw frames, written from RFC 9113 and gRPC's PROTOCOL-HTTP2.md.

It sends whatever a test wants sent, in pieces of any length, and checks what a server owes any client: frames no longer than 16 KiB,
nothing beyond the windows it was given, nothing on a stream that is over. Headers are packed without compression; what comes is
unpacked by python3-hpack, which belongs to python3-h2.
"""
import collections
import select
import socket
import struct
import time

import hpack

from cured_wire import bytes_field, reduce_message, varint

HANG_S = 180  # only catches hangs: nothing here waits that long
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM = ACK = 1
END_HEADERS, PADDED, PRIORITIZED = 4, 8, 32
(NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, SETTINGS_TIMEOUT, STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL,
 COMPRESSION_ERROR, CONNECT_ERROR, ENHANCE_YOUR_CALM) = range(12)
TABLE_SIZE, ENABLE_PUSH, STREAMS, WINDOW, FRAME_SIZE, HEADER_LIST = range(1, 7)
REDUCE, STREAM, MERGE, INFO = ("/cured.v1.Cured/" + name for name in ("Reduce", "ReduceStream", "Merge", "Info"))
WATCH, REFLECTION = "/grpc.health.v1.Health/Watch", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"


def frame(kind, flags=0, stream=0, payload=b"", length=None):
    """One frame's bytes; its length can be set wrong on purpose."""
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings(*pairs):
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", name, value) for name, value in pairs))


def window_update(stream, n):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", n))


def reset(stream, code=CANCEL):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def field(name, value):
    """A header, never indexed, without Huffman's code."""
    def text(data):
        data = data.encode() if isinstance(data, str) else data
        n, out = len(data), bytearray()
        if n < 127:
            return bytes([n]) + data
        out.append(127)
        n -= 127
        while n > 127:
            out.append(n & 127 | 128)
            n >>= 7
        out.append(n)
        return bytes(out) + data
    return b"\x10" + text(name) + text(value)


def request_headers(path, *more, method="POST", content_type="application/grpc", without=()):
    fields = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "cured"), ("te", "trailers"),
              ("content-type", content_type)]
    return b"".join(field(*f) for f in fields + list(more) if f[0] not in without)


def headers(stream, block, end=False, flags=0):
    return frame(HEADERS, END_HEADERS | flags | (END_STREAM if end else 0), stream, block)


def data(stream, payload=b"", end=False):
    return frame(DATA, END_STREAM if end else 0, stream, payload)


def message(payload, compressed=0):
    return struct.pack(">BI", compressed, len(payload)) + payload


def reduce_request(dtype, ops, array, **more):
    """A ReduceRequest with its array."""
    return reduce_message(dtype, ops, None, **more) + (bytes_field(100, array) if array else b"")


def head_chunk(dtype, ops, **more):
    return bytes_field(1, reduce_message(dtype, ops, None, **more))


def data_chunk(array):
    return bytes_field(2, array)


def merge_request(ops, partials):
    return bytes_field(1, bytes(ops)) + b"".join(varint(100 << 3 | 2) + varint(len(p)) + p for p in partials)


class Stream:
    """What came on a stream."""

    def __init__(self):
        self.headers, self.trailers, self.data = None, None, bytearray()
        self.over, self.reset = False, None
        self.window = 0  # what may still be sent, less the connection's initial window

    def messages(self):
        found, at = [], 0
        while at < len(self.data):
            flag, n = struct.unpack_from(">BI", self.data, at)
            assert flag == 0 and at + 5 + n <= len(self.data), "a message is cut short"
            found.append(bytes(self.data[at + 5:at + 5 + n]))
            at += 5 + n
        return found

    def status(self):
        """(grpc-status, grpc-message), as the last headers say."""
        last = dict(self.trailers or self.headers or [])
        return int(last.get("grpc-status", -1)), last.get("grpc-message", "")


class Http2:
    """One connection. window: how much the daemon may send on each stream, before window_update."""

    def __init__(self, address, preface=PREFACE, window=1 << 20, greet=True):
        kind, _, where = address.partition(":")
        self.socket = socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET)
        host, _, port = where.rpartition(":")
        self.socket.connect(where if kind == "unix" else (host, int(port)))
        self.socket.setblocking(False)
        self.buffer, self.streams = bytearray(), collections.defaultdict(Stream)  # asked for before anything came on them, too
        self.closed, self.goaway, self.goaway_text = False, None, ""
        self.settings, self.acks, self.pongs, self.asked = {}, 0, [], []
        self.answers = True  # SETTINGS and PING
        self.sending, self.later = False, bytearray()
        self.sent_window, self.window = 65535, 65535
        self.own_window, self.own_windows, self.stream_window = 65535, {}, window
        self.decoder = hpack.Decoder()
        if greet:
            self.send(preface + settings((WINDOW, window)))

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    # ---- sending ----

    def send(self, data, piece=0):
        """Sends all of it, and takes what comes meanwhile; piece: so many bytes at a time."""
        if self.sending:  # from within take: behind what is under way
            self.later += data
            return
        self.sending = True
        self.send_all(data, piece)
        while self.later and not self.closed:
            data, self.later = bytes(self.later), bytearray()
            self.send_all(data, 0)
        self.sending = False

    def send_all(self, data, piece):
        view, limit = memoryview(data), time.monotonic() + HANG_S
        while view and not self.closed:
            try:
                view = view[self.socket.send(view[:piece] if piece else view):]
                continue
            except BlockingIOError:
                pass
            except (BrokenPipeError, ConnectionResetError):
                self.take()
                self.closed = True
                return
            assert time.monotonic() < limit, "the daemon does not read"
            select.select([self.socket], [self.socket], [], 1)
            self.take()

    def ask(self, stream, path, body=None, *more):
        """A whole request."""
        self.send(headers(stream, request_headers(path, *more), end=body is None) + (data(stream, body, True) if body is not None else b""))

    def upload(self, stream, body, end=True, size=16384):
        """DATA as the windows allow."""
        view, limit = memoryview(body), time.monotonic() + HANG_S
        at = self.streams[stream]
        while view and not self.closed and not at.over and at.reset is None:
            n = min(len(view), size, self.sent_window, self.settings.get(WINDOW, 65535) + at.window)
            if n <= 0:
                assert time.monotonic() < limit, "no window"
                self.take(0.5)
                continue
            self.sent_window -= n
            at.window -= n
            self.send(data(stream, view[:n], end and n == len(view)))
            view = view[n:]
            self.take()

    def grant(self, stream, n):
        self.own_window += n if stream == 0 else 0
        if stream:
            self.own_windows[stream] = self.own_windows.get(stream, self.stream_window) + n
        self.send(window_update(stream, n))

    # ---- what comes ----

    def take(self, wait=0):
        """Takes what is there. False: nothing came."""
        if self.closed or (wait and not select.select([self.socket], [], [], wait)[0]):
            return False
        try:
            got = self.socket.recv(1 << 18)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            got = b""
        if not got:
            self.closed = True
            return False
        self.buffer += got
        while len(self.buffer) >= 9:
            n = int.from_bytes(self.buffer[:3], "big")
            assert n <= 16384, "a frame of %d bytes" % n
            if len(self.buffer) < 9 + n:
                break
            kind, flags, stream = struct.unpack(">BBI", self.buffer[3:9])
            payload = bytes(self.buffer[9:9 + n])
            del self.buffer[:9 + n]
            self.take_frame(kind, flags, stream, payload)
        return True

    def take_frame(self, kind, flags, stream, payload):
        at = self.streams[stream] if stream else None
        if at and kind in (HEADERS, DATA):
            assert not at.over and at.reset is None, "frame %d on stream %d, which is over" % (kind, stream)
            at.over = bool(flags & END_STREAM)
        if kind == HEADERS:
            assert flags & END_HEADERS and not flags & (PADDED | PRIORITIZED)
            fields = self.decoder.decode(payload)
            if at.headers is None:
                at.headers = fields
            else:
                at.trailers = fields
        elif kind == DATA:
            at.data += payload
            self.own_window -= len(payload)
            left = self.own_windows[stream] = self.own_windows.get(stream, self.stream_window) - len(payload)
            assert not payload or (self.own_window >= 0 and left >= 0), "DATA beyond the window"
        elif kind == RST_STREAM:
            at.reset = struct.unpack(">I", payload)[0]
        elif kind == SETTINGS and flags & ACK:
            self.acks += 1
        elif kind == SETTINGS:
            self.settings.update(struct.iter_unpack(">HI", payload))
            if self.answers:
                self.send(frame(SETTINGS, ACK))
        elif kind == PING and flags & ACK:
            self.pongs.append(payload)
        elif kind == PING:
            self.asked.append(payload)
            if self.answers:
                self.send(frame(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE:
            n = struct.unpack(">I", payload)[0]
            self.sent_window += 0 if stream else n
            if at:
                at.window += n
        elif kind == GOAWAY:
            self.goaway, self.goaway_text = struct.unpack(">I", payload[4:8])[0], payload[8:].decode()
            self.last_taken = struct.unpack(">I", payload[:4])[0]

    def until(self, what, condition):
        limit = time.monotonic() + HANG_S
        while not condition():
            if self.closed:
                return False
            assert time.monotonic() < limit, "%s: not within %d s" % (what, HANG_S)
            self.take(0.5)
        return True

    def answer(self, stream):
        """The stream, once it is over or the connection is."""
        at = self.streams[stream]
        self.until("the answer on stream %d" % stream, lambda: at.over or at.reset is not None)
        return at

    def ping(self):
        """Whether the connection still answers; all that was sent before has been looked at then."""
        before = len(self.pongs)
        self.send(frame(PING, 0, 0, b"are you?"))
        return self.until("a PING's answer", lambda: len(self.pongs) > before)

    def end(self):
        """Reads until the daemon closes. The error of its GOAWAY; None: it sent none."""
        self.until("the end of the connection", lambda: False)
        return self.goaway
