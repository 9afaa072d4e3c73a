"""connection: a client of the native protocol for tests, on cured_wire: blocking calls, or many in flight.

It checks what a server owes any client: one answer a call, nothing on a stream that is over, credit for what was sent.
Raw bytes can be sent at any point, so that hostile clients are written with it as well.
"""
import array
import select
import socket
import struct
import time

from cured_wire import *  # noqa: F403 (tests take the protocol's names from here)
from cured_wire import (CALL, CREDIT, CREDIT_BYTES, DATA, DATA_BYTES, END, HELLO, PONG, PROGRESS, RESULT, STATUS, WELCOME,
                        Answer, Status, WireError, call_message, credit_message, descriptor_input, descriptor_region, first, frame,
                        hello_message, merge_message, parse, parse_info, parse_limits, parse_slow_log, parse_stats, reduce_message, region_input, register_message,
                        stream_input, take_frame, text)

HANG_S = 180  # only catches hangs: nothing here waits that long


class Closed(Exception):
    """The server ended the connection; .status is its reason, None when it gave none."""

    def __init__(self, status):
        super().__init__(repr(status))
        self.status = status


class Connection:
    def __init__(self, address, hello=True):
        kind, _, where = address.partition(":")
        if kind == "unix":
            self.socket = socket.socket(socket.AF_UNIX)
            target = where
        else:
            host, _, port = where.rpartition(":")
            self.socket = socket.socket(socket.AF_INET)
            target = (host, int(port))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Blocking: with a full backlog, a Unix socket that does not block would refuse instead of wait. And without a limit: then
        # the kernel goes on with it after a stop of this process.
        self.socket.connect(target)
        self.socket.setblocking(False)
        self.buffer = bytearray()
        self.next_stream = 1
        self.answers, self.credit = {}, {}
        self.pongs, self.welcome, self.reason = [], None, None
        self.at_end = False
        if hello:
            try:
                self.send(frame(HELLO, payload=hello_message()))
            except Closed:
                pass  # refused before HELLO was out: whoever uses the connection is told, with the reason

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- bytes ----

    def send(self, data, descriptors=()):
        """Sends everything, reading what comes meanwhile. Descriptors travel with the first byte."""
        view = memoryview(data)
        limit = time.monotonic() + HANG_S
        while view.nbytes:
            try:
                if descriptors:
                    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
                    sent = self.socket.sendmsg([view], rights, socket.MSG_NOSIGNAL)
                    descriptors = ()
                else:
                    sent = self.socket.send(view, socket.MSG_NOSIGNAL)
                view = view[sent:]
            except BlockingIOError:
                if time.monotonic() > limit:
                    raise TimeoutError("the server does not read") from None
                if self.poll(select.POLLIN | select.POLLOUT, HANG_S) & ~select.POLLOUT:
                    self.receive()
            except (BrokenPipeError, ConnectionResetError):
                self.read_rest()
                raise Closed(self.reason) from None

    def poll(self, events, seconds):
        """What is possible now, of events; 0 after so many seconds. (select() takes no descriptor above 1023.)"""
        poller = select.poll()
        poller.register(self.socket, events)
        ready = poller.poll(seconds * 1000)
        return ready[0][1] if ready else 0

    def receive(self):
        """Takes what is there now; returns False at the connection's end."""
        try:
            data = self.socket.recv(1 << 18)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            data = b""
        if not data:
            self.at_end = True
            return False
        self.buffer += data
        used = 0
        while True:
            taken = take_frame(memoryview(self.buffer)[used:used + (1 << 20) + 16])
            if not taken:
                break
            used += taken[1]
            self.handle(taken[0])
        del self.buffer[:used]
        return True

    def read_rest(self):
        """Reads until the server closes; the reason then stands in .reason."""
        self.until(lambda: False, ended_is_fine=True)
        return self.reason

    def until(self, done, ended_is_fine=False, timeout=HANG_S):
        """Reads until done() is true."""
        limit = time.monotonic() + timeout
        while not done():
            self.give_credit()
            if self.at_end:
                if ended_is_fine:
                    return
                raise Closed(self.reason)
            left = limit - time.monotonic()
            if left <= 0 or not self.poll(select.POLLIN, left):
                raise TimeoutError("nothing came from the server for %g s" % timeout)
            self.receive()

    def give_credit(self):
        """Grants again what was taken in of arrays of answers, in steps of a MiB, unless a test does it itself."""
        for stream, answer in list(self.answers.items()):
            if answer.auto_credit and not answer.over and answer.owed >= 1 << 20:
                self.grant(stream, answer.owed)

    def grant(self, stream, size):
        answer = self.answers[stream]
        answer.window += size
        answer.owed = max(0, answer.owed - size)
        self.send(frame(CREDIT, stream, credit_message(size)))

    # ---- frames ----

    def handle(self, f):
        if f.kind == WELCOME:
            if self.welcome is not None:
                raise WireError("WELCOME came twice")
            fields = parse(f.payload)
            self.welcome = {"version": first(fields, 1), "features": fields.get(2, []), "server": text(fields, 3),
                            "limits": parse_limits(first(fields, 4, b""))}
            return
        if f.kind == PONG:
            self.pongs.append(f.payload)
            return
        if f.kind == STATUS and f.stream == 0:
            self.reason = Status(f.payload)
            return
        answer = self.answers.get(f.stream)
        if answer is None or answer.over:
            raise WireError("%r for a stream that is %s" % (f, "over" if answer else "unknown"))
        if f.kind == CREDIT:
            self.credit[f.stream] += first(parse(f.payload), 1)
        elif f.kind == PROGRESS:
            fields = parse(f.payload)
            answer.progress.append((first(fields, 1), first(fields, 2)))
        elif f.kind in (RESULT, STATUS):
            if f.kind == RESULT and not f.flags & END and answer.takes_parts:
                answer.take_part(f.payload)
                return
            if not f.flags & END:
                raise WireError("%r without END" % f)
            answer.over = True
            if f.kind == STATUS:
                answer.status = Status(f.payload)
                if answer.status.code == 0:
                    raise WireError("a STATUS of OK came")
            else:
                answer.payload = f.payload
        else:
            raise WireError("%r is not for clients" % f)

    def open_stream(self, stream=None):
        """The next stream id, ready to be answered."""
        if stream is None:
            stream = self.next_stream
        self.next_stream = max(self.next_stream, stream + 1)
        self.answers[stream] = Answer()
        self.credit[stream] = CREDIT_BYTES
        return stream

    def greet(self):
        self.until(lambda: self.welcome is not None)
        return self.welcome

    # ---- calls ----

    def call_frame(self, stream, dtype, ops, source, timeout_ms=0, progress_ms=0, flags=0, descriptors=0, **options):
        if options.get("axis") or options.get("segments") is not None or options.get("keys") is not None:
            self.answers[stream].takes_parts = self.answers[stream].auto_credit = True
        payload = call_message(reduce_message(dtype, ops, source, **options), timeout_ms=timeout_ms, progress_ms=progress_ms)
        return frame(CALL, stream, payload, flags, descriptors)

    def start_inline(self, dtype, ops, data, **options):
        """CALL and its one DATA in one write; returns the stream."""
        stream = self.open_stream()
        self.send(self.call_frame(stream, dtype, ops, stream_input(len(data)), **options) +
                  frame(DATA, stream, bytes(data), END))
        self.credit[stream] -= len(data)
        return stream

    def start_stream(self, dtype, ops, size=None, **options):
        """CALL alone: the array's bytes (size of them; None: unknown) follow by send_data."""
        stream = self.open_stream()
        self.send(self.call_frame(stream, dtype, ops, stream_input(size), **options))
        return stream

    def send_data(self, stream, data, end=False):
        """One DATA within the credit; False when the call was answered before."""
        self.until(lambda: self.credit[stream] >= len(data) or self.answers[stream].over)
        if self.answers[stream].over:
            return False
        self.credit[stream] -= len(data)
        self.send(frame(DATA, stream, bytes(data), END if end else 0))
        return True

    def send_array(self, stream, data, chunks=(DATA_BYTES,)):
        """Everything, in DATA of the sizes in chunks (which repeat), the last with END."""
        at, turn = 0, 0
        view = memoryview(data)
        while True:
            size = chunks[turn % len(chunks)]
            end = at + size >= len(view)
            if not self.send_data(stream, view[at:at + size], end) or end:
                return
            at, turn = at + size, turn + 1

    def start_descriptor(self, dtype, ops, descriptor, offset=0, count=None, **options):
        stream = self.open_stream()
        self.send(self.call_frame(stream, dtype, ops, descriptor_input(offset, count), flags=END, descriptors=1, **options),
                  [descriptor])
        return stream

    def start_register(self, region, source, descriptor=None, timeout_ms=0, writable=False):
        """source: a message of cured_wire's …_region functions."""
        stream = self.open_stream()
        payload = call_message(register=register_message(region, source, writable), timeout_ms=timeout_ms)
        passed = [] if descriptor is None else [descriptor]
        self.send(frame(CALL, stream, payload, END, len(passed)), passed)
        return stream

    def start_unregister(self, region, timeout_ms=0):
        stream = self.open_stream()
        self.send(frame(CALL, stream, call_message(unregister=region, timeout_ms=timeout_ms), END))
        return stream

    def start_region(self, dtype, ops, region, offset=0, count=None, **options):
        stream = self.open_stream()
        self.send(self.call_frame(stream, dtype, ops, region_input(region, offset, count), flags=END, **options))
        return stream

    def wait(self, stream, timeout=HANG_S):
        """The call's Answer."""
        answer = self.answers[stream]
        self.until(lambda: answer.over, timeout=timeout)
        if answer.payload is not None and not answer.results:
            answer.fill(answer.payload)
        return answer

    def inline(self, dtype, ops, data, **options):
        return self.wait(self.start_inline(dtype, ops, data, **options))

    def stream(self, dtype, ops, data, known=True, chunks=(DATA_BYTES,), **options):
        stream = self.start_stream(dtype, ops, len(data) if known else None, **options)
        self.send_array(stream, data, chunks)
        return self.wait(stream)

    def descriptor(self, dtype, ops, descriptor, offset=0, count=None, **options):
        return self.wait(self.start_descriptor(dtype, ops, descriptor, offset, count, **options))

    def over(self, stream, timeout=HANG_S):
        """The end of a call that is no reduction: its Status (None: it worked), and the payload of its RESULT."""
        answer = self.answers[stream]
        self.until(lambda: answer.over, timeout=timeout)
        return answer.status, answer.payload

    def register(self, region, descriptor, writable=False):
        """Registers a memfd or file: its size in bytes, or the Status that refused it."""
        return self.registered(self.start_register(region, descriptor_region(), descriptor, writable=writable))

    def registered(self, stream):
        status, payload = self.over(stream)
        return status if status else first(parse(payload), 1)

    def unregister(self, region):
        """None, or the Status that refused it."""
        status, payload = self.over(self.start_unregister(region))
        if payload:
            raise WireError("UnregisterResponse has no fields")
        return status

    def region(self, dtype, ops, region, offset=0, count=None, **options):
        return self.wait(self.start_region(dtype, ops, region, offset, count, **options))

    def merge(self, ops, records, chunks=(DATA_BYTES,), known=True, **options):
        """records: the partials; each goes behind its length."""
        data = b"".join(struct.pack("<I", len(r)) + r for r in records)
        return self.merge_bytes(ops, data, chunks, known, **options)

    def merge_bytes(self, ops, data, chunks=(DATA_BYTES,), known=True, **options):
        stream = self.start_merge(ops, len(data) if known else None, **options)
        self.send_array(stream, data, chunks)
        return self.wait(stream)

    def start_merge(self, ops, size=None, **options):
        """CALL alone, as start_stream."""
        stream = self.open_stream()
        self.answers[stream].takes_parts = self.answers[stream].auto_credit = options.get("keyed", False)
        self.send(frame(CALL, stream, call_message(merge=merge_message(ops, size, **options))))
        return stream

    def ping(self, payload=b"?"):
        before = len(self.pongs)
        self.send(frame(10, payload=payload))
        self.until(lambda: len(self.pongs) > before)
        return self.pongs[before]

    def ask(self, **what):
        """The payload of the answer to a request about the daemon."""
        stream = self.open_stream()
        self.send(frame(CALL, stream, call_message(**what), END))
        self.until(lambda: self.answers[stream].over)
        if self.answers[stream].status:
            raise AssertionError("%r was refused: %r" % (what, self.answers[stream].status))
        return self.answers[stream].payload

    def info(self):
        return parse_info(self.ask(info=True))

    def stats(self):
        return parse_stats(self.ask(stats=True))

    def slow_log(self):
        return parse_slow_log(self.ask(slow_log=True))
