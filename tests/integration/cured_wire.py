"""cured_wire: the native protocol of cured, written from proto/PROTOCOL.md and proto/cured.proto alone.

Frames and messages as plain Python, with a minimal protobuf of its own; nothing here comes from cured's own sources, so
that a mistake there cannot hide here. connection.py builds a client on it.
"""
import os
import re
import struct

MAGIC = b"CR"
HELLO, WELCOME, CALL, DATA, CANCEL, PROGRESS, RESULT, STATUS, CREDIT, PING, PONG = range(1, 12)
TYPE_NAMES = dict(enumerate("- HELLO WELCOME CALL DATA CANCEL PROGRESS RESULT STATUS CREDIT PING PONG".split()))
END, IGNORABLE = 1, 2
HEAD_BYTES, DATA_BYTES, CREDIT_BYTES = 65536, 1 << 20, 4 << 20

DTYPES = {"bool": 1, "u8": 2, "i8": 3, "u16": 4, "i16": 5, "u32": 6, "i32": 7, "u64": 8, "i64": 9, "f16": 10, "bf16": 11,
          "f32": 12, "f64": 13, "i128": 14, "int": 15, "f8_e4m3": 16, "f8_e5m2": 17, "digest": 20}
DTYPE_NAMES = {number: name for name, number in DTYPES.items()}
SIZES = {"bool": 1, "u8": 1, "i8": 1, "u16": 2, "i16": 2, "u32": 4, "i32": 4, "u64": 8, "i64": 8, "f16": 2, "bf16": 2,
         "f32": 4, "f64": 8, "f8_e4m3": 1, "f8_e5m2": 1}
INPUTS = list(SIZES)
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "proto", "cured.proto"), encoding="utf-8") as proto:
    OPS = {name.lower(): int(number) for name, number in re.findall(r"^  OP_(\w+) = ([1-9]\d*);", proto.read(), re.M)}
OP_NAMES = {number: name for name, number in OPS.items()}
EVERY_OP = dict(OPS)
PAIRS = {name: OPS.pop(name) for name in ("dot", "sqdist", "average")}  # which want a second array
RANKED = {name: OPS.pop(name) for name in ("quantile", "median")}  # which take several reads
FIRST_OPS = list(OPS)[:11]  # those that the first version answers

(OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED,
 RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS) = range(16)


class WireError(Exception):
    """The server sent something that the protocol does not allow."""


# ---- frames ----


def frame(kind, stream=0, payload=b"", flags=0, descriptors=0, magic=MAGIC, version=1, reserved=0, length=None):
    """One frame's bytes; every field can be set wrong on purpose."""
    size = len(payload) if length is None else length
    return magic + struct.pack("<BBHBBII", version, kind, flags, descriptors, reserved, stream, size) + payload


class Frame:
    """A received frame."""

    def __init__(self, kind, flags, stream, payload):
        self.kind, self.flags, self.stream, self.payload = kind, flags, stream, payload

    def __repr__(self):
        return "%s(stream %d, flags %d, %d bytes)" % (TYPE_NAMES.get(self.kind, self.kind), self.stream, self.flags,
                                                      len(self.payload))


def take_frame(buffer):
    """(Frame, bytes used) from the front of a bytearray; None when it is not whole. Checks what a server may send."""
    if len(buffer) < 16:
        return None
    version, kind, flags, descriptors, reserved, stream, length = struct.unpack_from("<BBHBBII", buffer, 2)
    if buffer[:2] != MAGIC or version != 1 or reserved or descriptors or flags & ~3:
        raise WireError("a broken header came: %s" % bytes(buffer[:16]).hex())
    if kind not in (WELCOME, PROGRESS, RESULT, STATUS, CREDIT, PING, PONG):
        raise WireError("the server sent frame type %d" % kind)
    longest = {RESULT: DATA_BYTES, PING: 64, PONG: 64}.get(kind, HEAD_BYTES)
    if length > longest:
        raise WireError("%s of %d bytes" % (TYPE_NAMES[kind], length))
    if (stream == 0) != (kind in (WELCOME, PING, PONG)) and kind != STATUS:
        raise WireError("%s on stream %d" % (TYPE_NAMES[kind], stream))
    if len(buffer) < 16 + length:
        return None
    return Frame(kind, flags, stream, bytes(buffer[16:16 + length])), 16 + length


# ---- protobuf: varints, 64-bit, bytes ----


def varint(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def uint_field(number, value):
    return varint(number << 3) + varint(value)


def bytes_field(number, value):
    return varint(number << 3 | 2) + varint(len(value)) + value


def read_varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise WireError("a varint without end")
        value |= (data[at] & 0x7f) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
        shift += 7


def parse(data):
    """{field number: [values]} of one message: ints for varints, bytes for the other wire types."""
    fields, at = {}, 0
    while at < len(data):
        key, at = read_varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = read_varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = data[at:at + size], at + size
        elif wire == 2:
            size, at = read_varint(data, at)
            value, at = data[at:at + size], at + size
            if len(value) != size:
                raise WireError("a field is cut short")
        else:
            raise WireError("wire type %d" % wire)
        fields.setdefault(key >> 3, []).append(value)
    return fields


def first(fields, number, default=0):
    return fields.get(number, [default])[-1]


def text(fields, number):
    return first(fields, number, b"").decode("utf-8")


# ---- messages ----


def hello_message(lowest=1, highest=1, features=(), client="integration"):
    return (uint_field(1, lowest) + uint_field(2, highest) + b"".join(bytes_field(3, f.encode()) for f in features) +
            bytes_field(4, client.encode()))


def stream_input(size=None):
    """An input that follows in DATA: so many bytes, or None: until END."""
    return bytes_field(1, uint_field(2, 1) if size is None else uint_field(1, size))


def descriptor_input(offset=0, count=None):
    """An input in a passed file: count elements, or None: to its end."""
    return bytes_field(2, uint_field(1, offset) + (uint_field(3, 1) if count is None else uint_field(2, count)))


def region_input(region, offset=0, count=None):
    """An input in a registered region: count elements, or None: to its end."""
    return bytes_field(3, uint_field(1, region) + uint_field(2, offset) +
                       (uint_field(4, 1) if count is None else uint_field(3, count)))


def register_message(region, source=None, writable=False):
    """source: one of the functions below; None leaves it out."""
    return uint_field(1, region) + (source or b"") + (uint_field(6, 1) if writable else b"")


def descriptor_region():
    return bytes_field(2, b"")


def shm_region(name):
    return bytes_field(3, bytes_field(1, name if isinstance(name, bytes) else name.encode()))


def cuda_ipc_region(size, device=bytes(16), handle=bytes(64), offset=0, event=b""):
    return bytes_field(4, bytes_field(1, device) + bytes_field(2, handle) + uint_field(3, offset) + uint_field(4, size) +
                       bytes_field(5, event))


def cuda_descriptor_region(size, device=bytes(16), offset=0, pointer=b"", event=b""):
    return bytes_field(5, bytes_field(1, device) + uint_field(2, offset) + uint_field(3, size) + bytes_field(4, pointer) +
                       bytes_field(5, event))


def number_of(names, value):
    return names[value] if isinstance(value, str) else value


def axis_message(outer, n, inner):
    return uint_field(1, outer) + uint_field(2, n) + uint_field(3, inner)


def beside_message(count, source="stream", offset=0):
    """Where a further input of count elements is. source: "stream", "file_descriptor", or a region's number."""
    names = ("stream", "file_descriptor")
    where = uint_field(names.index(source) + 1, 1) if source in names else uint_field(3, source)
    return where + (uint_field(4, offset) if offset else b"") + uint_field(5, count)


def mask_message(beside, bits=False, first=0, leaves_out=False):
    return (beside + (uint_field(6, 1) if bits else b"") + (uint_field(7, first) if first else b"") +
            (uint_field(8, 1) if leaves_out else b""))


def segments_message(beside, dtype="i64"):
    return beside + uint_field(6, number_of(DTYPES, dtype))


def parameter_message(op, share, method=0):
    return (uint_field(1, op) if op else b"") + (varint(2 << 3 | 1) + struct.pack("<d", share) if share else b"") + (uint_field(3, method) if method else b"")


def keys_message(beside, groups, dtype="i64", columns=0, drop=False):
    return (beside + uint_field(6, number_of(DTYPES, dtype)) + uint_field(7, groups) + (uint_field(8, 1) if drop else b"") +
            (uint_field(9, columns) if columns else b""))


def layout_message(shape, start, extent):
    return b"".join(bytes_field(1, uint_field(1, a) + uint_field(2, b) + uint_field(3, c)) for a, b, c in zip(shape, start, extent))


def reduce_message(dtype, ops, source, nan=0, result_dtype=0, ddof=0, overflow=0, axis=None, partial=False, first=0,
                   kernel="", unplaced=False, statuses=False, outputs=(), mask=None, segments=None, keys=None, second=None, parameters=(),
                   layout=None):
    """outputs: (op, region, offset) of each, where its answers along the axis go. mask, segments, keys, second: messages of mask_message and so on;
    parameters: those of ops. layout: that of layout_message."""
    packed = b"".join(varint(number_of(EVERY_OP, op)) for op in ops)
    out = uint_field(1, number_of(DTYPES, dtype)) + bytes_field(2, packed)
    out += bytes_field(3, source) if source is not None else b""
    for number, value in ((4, nan), (5, number_of(DTYPES, result_dtype)), (6, ddof), (7, overflow)):
        out += uint_field(number, value) if value else b""
    out += bytes_field(8, axis_message(*axis)) if axis is not None else b""
    out += uint_field(9, 1) if partial else b""
    out += uint_field(10, first) if first else b""
    out += bytes_field(11, kernel.encode()) if kernel else b""
    out += b"".join(bytes_field(12, p) for p in parameters)
    out += bytes_field(13, second) if second is not None else b""
    out += bytes_field(14, mask) if mask is not None else b""
    out += bytes_field(15, segments) if segments is not None else b""
    out += bytes_field(16, layout) if layout is not None else b""
    for op, region, offset in outputs:
        out += bytes_field(17, uint_field(1, op) + uint_field(2, region) + uint_field(3, offset))
    out += uint_field(18, 1) if statuses else b""
    out += uint_field(19, 1) if unplaced else b""
    return out + (bytes_field(20, keys) if keys is not None else b"")


def merge_message(ops, size=None, nan=0, result_dtype=0, ddof=0, overflow=0, partial=False, keyed=False, statuses=False):
    out = bytes_field(1, b"".join(varint(number_of(EVERY_OP, op)) for op in ops))
    out += bytes_field(2, uint_field(2, 1) if size is None else uint_field(1, size))
    for number, value in ((3, nan), (4, number_of(DTYPES, result_dtype)), (5, ddof), (6, overflow), (7, int(partial)), (8, int(keyed)),
                          (9, int(statuses))):
        out += uint_field(number, value) if value else b""
    return out


def credit_message(size):
    return uint_field(1, size)


def call_message(reduce=None, info=False, timeout_ms=0, progress_ms=0, merge=None, register=None, unregister=None,
                 stats=False, slow_log=False):
    out = uint_field(1, timeout_ms) if timeout_ms else b""
    out += uint_field(2, progress_ms) if progress_ms else b""
    out += bytes_field(3, reduce) if reduce is not None else b""
    out += bytes_field(5, merge) if merge is not None else b""
    out += bytes_field(6, register) if register is not None else b""
    out += bytes_field(7, uint_field(1, unregister)) if unregister is not None else b""
    out += bytes_field(8, b"") if stats else b""
    out += bytes_field(9, b"") if slow_log else b""
    return out + (bytes_field(4, b"") if info else b"")


class OpResult:
    def __init__(self, data):
        f = parse(data)
        self.op = OP_NAMES.get(first(f, 1), first(f, 1))
        self.status, self.message = first(f, 2), text(f, 3)
        self.dtype = DTYPE_NAMES.get(first(f, 4), first(f, 4))
        self.value, self.at = bytes(first(f, 5, b"")), bytes(first(f, 6, b""))

    def key(self):
        """What an oracle can foresee: everything but the sentence."""
        if self.status:
            return (self.op, self.status)
        return (self.op, 0, self.dtype, self.value.hex(), self.at.hex())

    def __repr__(self):
        return repr(self.key() + ((self.message,) if self.status else ()))


class Status:
    def __init__(self, data):
        f = parse(data)
        self.code, self.message, self.retry_after_ms = first(f, 1), text(f, 2), first(f, 3)

    def __repr__(self):
        return "status %d: %s" % (self.code, self.message)


class Answer:
    """How a call ended: .status (None when it worked), or .results and .count; and what was seen on the way."""

    def __init__(self):
        self.over, self.status, self.payload = False, None, None
        self.results, self.count, self.timing = [], 0, {}
        self.written = 0
        self.progress = []
        self.partial = b""
        self.takes_parts = self.auto_credit = False
        self.parts = []  # of arrays: (position of the op, number of the first answer, bytes)
        self.statuses = []  # likewise, of the parts that have some
        self.window, self.owed = CREDIT_BYTES, 0  # value bytes the server may still send; taken and not granted again

    def take_part(self, payload):
        """From an ArrayPart."""
        f = parse(payload)
        values = first(f, 3, b"")
        self.window -= len(values)
        if self.window < 0:
            raise WireError("parts beyond the credit")
        self.owed += len(values)
        self.parts.append((first(f, 1), first(f, 2), values))
        if 4 in f:
            self.statuses.append((first(f, 1), first(f, 2), bytes(first(f, 4))))

    def array(self, op, width, count):
        """The op's answers, each of which must have come exactly once."""
        parts = sorted((start, values) for number, start, values in self.parts if number == op and values)
        at = 0
        for start, values in parts:
            if start != at or len(values) % width:
                raise WireError("a part of %d bytes at %d, not at %d" % (len(values), start, at))
            at += len(values) // width
        if at != count:
            raise WireError("%d answers of %d came" % (at, count))
        return b"".join(values for _, values in parts)

    def statuses_of(self, op, count):
        """The status of each of the op's answers."""
        all_of = bytearray(count)
        for number, start, statuses in self.statuses:
            if number == op:
                all_of[start:start + len(statuses)] = statuses
        return bytes(all_of)

    def fill(self, payload):
        """From a ReduceResponse."""
        f = parse(payload)
        self.payload = payload
        self.results = [OpResult(r) for r in f.get(1, [])]
        self.count = first(f, 2)
        self.partial = bytes(first(f, 4, b""))
        self.written = first(f, 5)
        self.timing = {number: first(parse(first(f, 3, b"")), number) for number in (1, 2, 3)}

    def keys(self):
        return [r.key() for r in self.results]

    def __repr__(self):
        return repr(self.status) if self.status else "results %r, count %d" % (self.results, self.count)


def parse_limits(data):
    names = ("head_bytes", "data_bytes", "ops", "credit_bytes", "jobs_per_connection", "input_bytes",
             "regions_per_connection", "region_bytes")
    f = parse(data)
    return {name: first(f, number) for number, name in enumerate(names, 1)}


STAGES = ("receive", "queue", "run", "send", "total")


def parse_rows(rows):
    return {text(parse(row), 1): first(parse(row), 2) for row in rows}


def parse_stats(data):
    """StatsResponse as a dict."""
    f = parse(data)
    names = {5: "in_flight", 6: "queue_depth", 7: "requests", 8: "failed", 9: "bytes"}
    stats = {name: first(f, number) for number, name in names.items()}
    window = parse(first(f, 10, b""))
    stats["window"] = {name: first(window, n) for n, name in enumerate(("ms", "requests", "failed", "bytes"), 1)}
    stats["stages"] = {text(g, 1): {"count": first(g, 2), "sum_ns": first(g, 3), "p50_ns": first(g, 4), "p99_ns": first(g, 6)}
                       for g in map(parse, f.get(11, []))}
    stats["counts"] = {(text(g, 1), text(g, 2), first(g, 3)): first(g, 4) for g in map(parse, f.get(12, []))}
    for number, name in ((13, "ops"), (14, "input_bytes"), (15, "rejected"), (16, "connections")):
        stats[name] = parse_rows(f.get(number, []))
    stats["lanes"] = {text(g, 1): {"bytes": first(g, 5), "launches": first(g, 6), "busy_ns": first(g, 7), "errors": first(g, 12),
                                   "temperature_c": first(g, 10, None), "utilization_percent": first(g, 11, None)}
                      for g in map(parse, f.get(17, []))}
    stats["pools"] = {text(g, 1): (first(g, 2), first(g, 3)) for g in map(parse, f.get(18, []))}
    stats["users"] = [text(parse(user), 1) for user in f.get(19, [])]
    return stats


def parse_slow_log(data):
    """SlowLogResponse as a list of dicts, the slowest first."""
    numbers = {1: "age_ms", 2: "connection", 4: "uid", 5: "pid", 15: "code", 16: "bytes"}
    numbers.update({17 + i: stage + "_ns" for i, stage in enumerate(STAGES)})
    words = ("client", "user", "front", "transport", "method", "source", "dtype", "ops", "lanes")
    log = []
    for call in parse(data).get(1, []):
        g = parse(call)
        log.append({name: first(g, number) for number, name in numbers.items()})
        log[-1].update({name: text(g, number) for number, name in enumerate(words, 6)})
    return log


def parse_info(data):
    """InfoResponse as a dict; .counters a dict, .lanes a list of dicts."""
    f = parse(data)
    info = {"version": text(f, 1), "backend": text(f, 2), "backend_reason": text(f, 3), "uptime_ms": first(f, 4),
            "limits": parse_limits(first(f, 7, b"")), "lanes": [], "counters": {}, "users": []}
    for user in f.get(8, []):
        g = parse(user)
        held = ("connections", "calls", "bytes", "state_bytes", "regions", "region_bytes", "descriptors")
        used, limit = ({name: first(parse(first(g, n, b"")), k) for k, name in enumerate(held, 1)} for n in (3, 4))
        info["users"].append({"name": text(g, 1), "own": bool(first(g, 2)), "used": used, "limit": limit})
    for lane in f.get(5, []):
        g = parse(lane)
        info["lanes"].append({"name": text(g, 1), "device": text(g, 2), "workers": first(g, 3),
                              "bytes_per_second": struct.unpack("<d", first(g, 4, bytes(8)))[0]})
    for counter in f.get(6, []):
        g = parse(counter)
        info["counters"][text(g, 1)] = first(g, 2)
    return info
