"""The native protocol, a door of cross_property.py: frames of tests/integration, which were written from proto/PROTOCOL.md. An array and what is
beside it come in DATA, in passed files, in registered memory, or in pieces of several regions; answers go to DATA or to a region."""
import fcntl
import os

import cross_request
import numpy as np
import oracle
from connection import Connection
from cross_draw import NotHere
from cross_request import WHOLE, Found, name_of
from cured_daemon import F_ADD_SEALS, F_SEAL_GROW, F_SEAL_SHRINK, F_SEAL_WRITE
from cured_wire import (END, beside_message, bytes_field, descriptor_input, descriptor_region, first, keys_message, layout_message, mask_message,
                        parameter_message, parse, region_input, segments_message, stream_input, uint_field)

CHUNKS = ((1,), (7, 100), (4096,), (1 << 20,))


class Native:
    """A connection to each address of a daemon."""

    def __init__(self, addresses):
        self.conns = {address: Connection(address) for address in addresses}

    def end(self):
        for conn in self.conns.values():
            conn.close()

    def ask(self, r, ask):
        asked = cross_request.of_case(r, ask.case)
        skips = "nan" in ask.case.options  # and an extremum of nothing but NaNs is NaN where no statuses say that there is none
        asked.statuses = asked.answers is not None and (skips or r.random() < 0.5)
        return cross_request.answer(ask, asked, Call(self, r, asked).results())

    def partial(self, r, asked):
        return Call(self, r, asked).partial()

    def merge(self, r, ops, partials, options, keyed, partial=False):
        """Partial bytes, or the results."""
        conn = r.choice(list(self.conns.values()))
        answer = conn.merge(ops, partials, chunks=r.choice(CHUNKS), known=r.random() < 0.5, keyed=keyed, partial=partial, **finishing(options))
        if answer.status:
            raise cross_request.exception(answer.status.code, answer.status.message)
        parts = {op: b"".join(values for number, _, values in sorted(answer.parts) if number == op) for op, _, _ in answer.parts}
        if partial:
            return parts.get(0) or answer.partial
        return [Found(result.dtype, parts.get(k) or result.value, b"", result.status, result.message) for k, result in enumerate(answer.results)]


def finishing(options):
    """The fields of a request and of a merge that say how an answer is made."""
    return {"nan": int("nan" in options), "overflow": int("overflow" in options), "ddof": options.get("ddof", 0),
            "result_dtype": options.get("dtype", 0)}


class Call:
    """One request, and the files and regions that it needs."""

    def __init__(self, owner, r, asked):
        self.r, self.asked, self.passed, self.regions, self.streamed, self.files = r, asked, [], [], [], []
        self.address = r.choice(list(owner.conns))
        self.conn, self.local = owner.conns[self.address], self.address.startswith("unix:")

    # ---- Where bytes are ----

    def file(self, data, kind):
        """A descriptor of memory, or of a file, that holds the bytes."""
        fd = os.open("/tmp", os.O_TMPFILE | os.O_RDWR) if kind == "file" else os.memfd_create("array", os.MFD_ALLOW_SEALING)
        self.files.append(fd)
        if os.write(fd, data) != len(data):
            raise OSError("a file of the test was not written")
        if kind == "sealed":
            fcntl.fcntl(fd, F_ADD_SEALS, self.r.choice([F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE]))
        return fd

    def kind(self):
        return self.r.choice(["memfd", "sealed", "file"])

    def register(self, data, writable=False):
        """The number of a region that holds the bytes; None: it was to be writable, and is not."""
        number, fd = len(self.regions) + 1, self.file(data, "memfd" if writable else self.kind())
        status, payload = self.conn.over(self.conn.start_register(number, descriptor_region(), fd, writable=writable))
        if status:
            raise cross_request.exception(status.code, status.message)
        self.regions.append((number, fd))
        return None if first(parse(payload), 2) else number

    def junk(self):
        return self.r.randbytes(self.r.choice([0, 0, 1, 3, 8, 64]))

    def place(self, data, count):
        """The message of an input beside the array, which says where it is."""
        way = self.r.choice(["stream", "file_descriptor", "region"]) if self.local else "stream"
        if way == "stream":
            self.streamed.append(data)
            return beside_message(count)
        before, behind = self.junk(), self.junk()
        if way == "region":
            return beside_message(count, self.register(before + data + behind), len(before))
        self.passed.append(self.file(before + data + behind, self.kind()))
        return beside_message(count, way, len(before))

    def source(self):
        """The message of the array, and whether it comes in DATA."""
        r, asked, data = self.r, self.asked, self.asked.data
        way = r.choice(["stream", "descriptor", "region", "regions"]) if self.local else "stream"
        whole = asked.axis is None and asked.answers is None and asked.keep is None and asked.second is None and asked.layout is None
        if way == "regions" and not (whole and asked.keys is None and not (asked.ops == ["prod"] and asked.dtype in oracle.FLOATS)):
            way = "region"
        if way == "stream":
            return stream_input(r.choice([len(data), None])), True
        before, to_end = self.junk(), r.random() < 0.3
        after, count = (b"", None) if to_end else (self.junk(), asked.count)
        if way == "regions":
            return self.pieces(), False
        if way == "region":
            return region_input(self.register(before + data + after), len(before), count), False
        self.passed.append(self.file(before + data + after, self.kind()))
        return descriptor_input(len(before), count), False

    def pieces(self):
        r, data, size = self.r, self.asked.data, oracle.SIZES[self.asked.dtype]
        cuts = [0, *sorted(r.randint(0, self.asked.count) for _ in range(r.randint(0, 3))), self.asked.count]
        made = b""
        for a, b in zip(cuts, cuts[1:]):
            before = self.junk()
            made += bytes_field(1, parse(region_input(self.register(before + data[a * size:b * size] + self.junk()), len(before), b - a))[3][0])
        return bytes_field(4, made)

    # ---- The call ----

    def beside(self):
        """The fields of what is beside the array, in the order of DATA."""
        r, asked, fields = self.r, self.asked, {}
        if asked.keep is not None:
            bits, out, ahead = r.random() < 0.5, r.random() < 0.5, r.choice([0, 0, 1, 5, 8])
            some = np.concatenate([np.array([r.random() < 0.5 for _ in range(ahead)], bool), asked.keep ^ out])
            data = np.packbits(some, bitorder="little").tobytes() if bits else some.tobytes()
            fields["mask"] = mask_message(self.place(data, asked.keep.size), bits, ahead, out)
        if asked.offsets is not None:
            fields["segments"] = segments_message(self.place(asked.offsets.tobytes(), asked.offsets.size), name_of(asked.offsets))
        if asked.keys is not None:
            fields["keys"] = keys_message(self.place(asked.keys.tobytes(), asked.keys.size), asked.groups, name_of(asked.keys), asked.columns,
                                          asked.drop)
        return fields

    def options(self):
        asked = self.asked
        more = {"partial": asked.partial, "unplaced": asked.unplaced, "statuses": getattr(asked, "statuses", False), "first": asked.first or 0}
        more["parameters"] = [parameter_message(op, share, cross_request.METHODS.index(method)) for op, share, method in asked.parameters]
        if asked.layout:
            more["layout"] = layout_message(*asked.layout)
        return dict(more, **finishing(asked.options), **({"axis": asked.axis} if asked.axis else {}))

    def call(self, outputs=()):
        asked, (source, in_data) = self.asked, self.source()
        fields = self.beside()
        sent = asked.data if in_data else b""
        if asked.second is not None:
            if in_data:
                fields["second"] = beside_message(asked.count)
                sent += asked.second  # less than a block of each
            else:
                fields["second"] = self.place(asked.second, asked.count)
        streams = in_data or bool(self.streamed)
        sent, conn = b"".join(self.streamed) + sent, self.conn
        stream = conn.open_stream()
        conn.answers[stream].takes_parts = asked.answers is not None or asked.keys is not None
        conn.send(conn.call_frame(stream, asked.dtype, asked.ops, source, flags=0 if streams else END, descriptors=len(self.passed), outputs=outputs,
                                  **fields, **self.options()), self.passed)
        if streams:
            conn.send_array(stream, sent, self.r.choice(CHUNKS))
        answer = conn.wait(stream)
        if answer.status:
            raise cross_request.exception(answer.status.code, answer.status.message)
        return answer

    def done(self):
        for number, _ in self.regions:
            status = self.conn.unregister(number)
            if status:
                raise AssertionError("unregistering: %r" % status)
        for fd in self.files:
            os.close(fd)

    def partial(self):
        try:
            answer = self.call()
            return b"".join(values for _, _, values in sorted(answer.parts)) or answer.partial
        finally:
            self.done()

    def outputs(self):
        """A region of answers, with its length for each op; or nothing."""
        asked = self.asked
        if not self.local or not asked.answers or self.r.random() < 0.6 or "digest" in asked.ops:
            return None, ()
        number = self.register(b"\xee" * (32 + 16 * asked.answers * len(asked.ops)), writable=True)
        if number is None:
            return None, ()
        return self.regions[-1][1], [(k, number, 5 + 16 * asked.answers * k) for k in range(len(asked.ops))]

    def results(self):
        asked, n = self.asked, self.asked.answers
        try:
            into, outputs = self.outputs()
            answer = self.call(outputs)
            found = []
            for k, result in enumerate(answer.results):
                value, statuses = result.value, b""
                if n is not None:
                    statuses = answer.statuses_of(k, n)
                    size = WHOLE[result.dtype]
                    if into is None:
                        value = answer.array(k, size, n)
                    else:
                        value = os.pread(into, size * n, outputs[k][2])
                        self.untouched(into, outputs[k][2] + size * n)
                found.append(Found(result.dtype, value, statuses, result.status, result.message))
            return found
        finally:
            self.done()

    def untouched(self, into, at):
        """Nothing is written beside the answers."""
        if os.pread(into, 5, 0) != b"\xee" * 5 or os.pread(into, 1, at) != b"\xee":
            raise AssertionError("bytes beside the answers were written")


