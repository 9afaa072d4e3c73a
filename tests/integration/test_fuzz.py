"""test_fuzz: valid conversations, broken at random: the daemon stays alive, answers in whole frames, and gives all back. Once without a GPU, once
with the stand-in (tests/fake) and regions in its memory.

CURED_TEST_SEED repeats a run, CURED_TEST_FUZZ_SECONDS makes it longer.
"""
import array
import os
import random
import select
import socket
import struct
import tempfile
import time

from cured_daemon import DaemonTest, main
from cured_wire import (CALL, CANCEL, CREDIT, DATA, END, FIRST_OPS, HELLO, INPUTS, OPS, PING, PONG, SIZES, call_message,
                        credit_message, cuda_descriptor_region, cuda_ipc_region, descriptor_input, descriptor_region, frame,
                        hello_message, reduce_message, region_input, register_message, shm_region, stream_input, take_frame,
                        uint_field)

SEED = int(os.environ.get("CURED_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
SECONDS = float(os.environ.get("CURED_TEST_FUZZ_SECONDS", "12")) / 2  # for each class
BIG = 3 << 20  # bytes of the largest array that a descriptor brings
DEVICE = 400000  # of one in a GPU's memory
EDGES = (0, 1, 2, 3, 7, 8, 15, 16, 0x7f, 0x80, 0xff, 0xffff, 0x10000, 0x10001, 0x100000, 0x100001, 0x7fffffff, 0xffffffff)


def shape(r, count):
    """(outer, n, inner): mostly of count elements; None: no axis."""
    if r.random() < 0.4:
        return None
    if r.random() < 0.1:
        return tuple(r.choice([0, 1, 2, 3, 100, 1 << 31, 1 << 40, 1 << 57, 1 << 63, (1 << 64) - 1]) for _ in range(3))
    inner = r.choice([d for d in (1, 1, 1, 2, 3, 5, 16, 100, 1000, count) if d and count % d == 0])
    n = r.choice([d for d in (1, 2, 4, 7, 50, 1000, 4096, count // inner) if d and count // inner % d == 0])
    return count // inner // n if count else 0, n, inner


def credits(r, stream):
    """What a client that takes answers says now and then; sometimes far too much, or nothing at all."""
    for _ in range(r.choice([0, 0, 1, 1, 2, 5])):
        size = r.choice([0, 1, 8, 1000, 1 << 16, 1 << 20, 1 << 30, 1 << 63, (1 << 64) - 1])
        yield frame(CREDIT, stream, credit_message(size)), 0


def shared(r, on_device):
    """(source of a region, descriptors it needs)"""
    sources = [(descriptor_region(), 1)] * 6 + [(shm_region("/cured-fuzz"), 0), (cuda_ipc_region(64), 0), (cuda_descriptor_region(64), 1)]
    if on_device:
        sources += [(cuda_descriptor_region(r.choice([DEVICE, DEVICE, 50000, 64, 0, DEVICE + 1]), offset=r.choice([0, 0, 0, 1, 8, 1 << 63])), 1)] * 30
    return r.choice(sources)


def conversation(r, on_device=False):
    """Frames of a client that does everything right: a list of (bytes, descriptors it needs)."""
    out = [(frame(HELLO, payload=hello_message(1, r.randint(1, 3), ["x"] * r.randint(0, 2), "f" * r.randint(0, 64))), 0)]
    stream = 0
    if on_device and r.random() < 0.7:
        stream += 1
        out.append((frame(CALL, stream, call_message(register=register_message(1, cuda_descriptor_region(DEVICE))), END, 1), 1))
    for _ in range(r.randint(1, 8)):
        stream += r.choice([1, 1, 2, 1000])
        dtype = r.choice(INPUTS)
        ops = r.sample(FIRST_OPS, r.randint(1, 5)) if r.random() < 0.6 else r.sample(sorted(OPS), r.randint(1, 5))
        times = {"timeout_ms": r.choice([0, 0, 1, 50]), "progress_ms": r.choice([0, 0, 1])}
        kind = r.choice(["inline", "known", "unknown", "descriptor", "info", "register", "register", "region", "region",
                         "unregister"] + ["region"] * 6 * on_device)
        if kind == "info":
            out.append((frame(CALL, stream, call_message(info=True), r.choice([0, END])), 0))
        elif kind == "register":
            source, needs = shared(r, on_device)
            message = call_message(register=register_message(r.choice([1, 2, 3, 65]), source), **times)
            out.append((frame(CALL, stream, message, END, needs), needs))
        elif kind == "region":
            most = DEVICE if on_device else BIG
            count = r.choice([None, 0, 1, 100, 1 << 61, 50000 // SIZES[dtype], most // SIZES[dtype]])
            source = region_input(r.choice([1, 1, 2, 3, 65]), r.choice([0, 0, 0, 0, 8, 4096, 1 << 40]), count)
            axis = shape(r, count if count is not None else r.choice([50000, most]) // SIZES[dtype])
            out.append((frame(CALL, stream, call_message(reduce_message(dtype, ops, source, axis=axis), **times), END), 0))
            out += credits(r, stream)
        elif kind == "unregister":
            out.append((frame(CALL, stream, call_message(unregister=r.choice([1, 2, 3, 65])), END), 0))
        elif kind == "descriptor":
            count = r.choice([None, 0, 1, 100, 1 << 61, BIG // SIZES[dtype]])
            source = descriptor_input(r.choice([0, 0, 8, 4096, 1 << 40]), count)
            axis = shape(r, count if count is not None else r.choice([50000, BIG]) // SIZES[dtype])
            out.append((frame(CALL, stream, call_message(reduce_message(dtype, ops, source, axis=axis), **times), END, 1), 1))
            out += credits(r, stream)
        else:
            size = r.choice([0, 8, 64, 4000, 16384, 16392, 100000])
            source = stream_input(size if kind != "unknown" else None)
            axis = shape(r, size // SIZES[dtype])
            message = reduce_message(dtype, ops, source, nan=r.randint(0, 1), axis=axis)
            out.append((frame(CALL, stream, call_message(message, **times)), 0))
            if r.random() < 0.5:
                out += credits(r, stream)
            out += [(f, 0) for f in data_frames(r, stream, size, kind == "inline")]
            out += credits(r, stream)
        if r.random() < 0.3:
            out.append((r.choice([frame(CANCEL, stream), frame(PING, payload=bytes(r.randint(0, 64))), frame(PONG),
                                  frame(CREDIT, stream, uint_field(1, 1000)), frame(77, 0, bytes(r.randint(0, 99)), 2)]), 0))
    return out


def data_frames(r, stream, size, whole):
    cuts = [] if whole else sorted(r.randrange(size + 1) for _ in range(r.randint(0, 4)))
    edges = [0] + cuts + [size]
    for a, b in zip(edges, edges[1:]):
        yield frame(DATA, stream, r.randbytes(b - a), END if b == size and a == edges[-2] else 0)


def broken(r, frames):
    """The same with a few things wrong; sometimes none."""
    frames = frames[:]
    for _ in range(r.choice([0, 1, 1, 1, 2, 3, 8])):
        n = r.randrange(len(frames))
        data, needs = frames[n]
        way = r.randrange(10)
        if way == 0:
            frames.pop(n)
            if not frames:
                return frames
        elif way == 1:
            frames.insert(r.randrange(len(frames) + 1), frames[n])
        elif way == 2:
            m = r.randrange(len(frames))
            frames[n], frames[m] = frames[m], frames[n]
        elif way == 3:  # a header field
            at, size = r.choice([(0, 1), (2, 1), (3, 1), (4, 2), (6, 1), (7, 1), (8, 4), (12, 4)])
            value = r.choice(EDGES) & ((1 << 8 * size) - 1)
            frames[n] = (data[:at] + value.to_bytes(size, "little") + data[at + size:], needs)
        elif way == 4:  # cut, with or without saying so
            keep = r.randrange(len(data) + 1)
            frames[n] = (data[:keep], needs)
        elif way == 5:  # cut, and the header says so
            body = data[16:16 + r.randrange(max(1, len(data) - 15))]
            frames[n] = (data[:12] + struct.pack("<I", len(body)) + body, needs)
        elif way == 6:
            frames[n] = (data, r.choice([0, 1, 2, 4, 5, 9, 30]))
        elif way == 7:  # another op or type, deep in the message
            frames[n] = (data.replace(bytes([OPS["sum"]]), bytes([r.randrange(40)])), needs)
        else:  # bytes
            changed = bytearray(data)
            for _ in range(r.choice([1, 1, 2, 10])):
                if changed:
                    changed[r.randrange(len(changed))] = r.choice([0, 1, 0x7f, 0x80, 0xff, r.randrange(256)])
            frames[n] = (bytes(changed), needs)
    return frames


class Fuzz(DaemonTest):
    OPTIONS = {"hello_timeout_ms": 500, "stall_timeout_ms": 500, "slabs": 4, "cpu_workers": 2, "max_jobs_per_connection": 6,
               "max_input_bytes": 1 << 30, "max_regions_per_connection": 2, "shm_names": True}

    ON_DEVICE = False
    PATIENCE = [0, 0, 0.001, 0.002]

    def holders(self):
        return [self.file(os.urandom(50000)), self.memfd(os.urandom(50000)), self.file(b""), self.sealed(os.urandom(50000)),
                self.memfd(bytes(BIG)), self.sealed(os.urandom(BIG))]

    def test_broken_conversations(self):
        print("seed %d: CURED_TEST_SEED=%d repeats it" % (SEED, SEED))
        holders = self.holders()
        self.descriptors = [f.fileno() for f in holders] + [os.open(self.folder, os.O_PATH), os.open("/dev/null", os.O_WRONLY)]
        for fd in self.descriptors[len(holders):]:
            self.addCleanup(os.close, fd)
        limit = time.monotonic() + SECONDS
        n, replies = 0, 0
        while time.monotonic() < limit:
            replies += self.converse(random.Random("%d %d" % (SEED, n)), n)
            n += 1
            if n % 100 == 0:
                self.assertTrue(self.daemon.alive(), "conversation %d of seed %d" % (n, SEED))
                self.assert_serves()
        print("%d conversations, %d frames came back" % (n, replies))
        self.assertGreater(replies, n // 4)
        if self.ON_DEVICE:
            self.assertGreater(self.daemon.counters()["gpu_launches_total"], 0)

    def converse(self, r, n):
        """One connection; returns how many whole frames the daemon answered."""
        frames = conversation(r, self.ON_DEVICE)
        if not self.ON_DEVICE or r.random() < 0.5:
            frames = broken(r, frames)
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.daemon.address[5:])
            s.setblocking(False)
            got = bytearray()
            out, marks = b"", {}
            for data, needs in frames:
                if needs and data:
                    marks[len(out)] = needs
                out += data
            self.send_all(r, s, out, marks, got)
            patience = r.choice(self.PATIENCE) if r.random() < 0.97 else r.choice([0.02, 0.02, 0.7])  # until a limit ends it
            limit = time.monotonic() + patience
            while patience and time.monotonic() < limit and self.read(s, got, limit - time.monotonic()):
                pass
        return self.count_frames(got, n)

    def send_all(self, r, s, out, marks, got):
        """Sends out in pieces, with descriptors at marks; gives up where the daemon closed or does not read."""
        at = 0
        edges = sorted(set(marks) | {r.randrange(len(out) + 1) for _ in range(r.choice([0, 0, 1, 5]))} | {len(out)})
        for edge in edges:
            while at < edge:
                needs = marks.pop(at, 0)
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", r.choices(self.descriptors, k=needs)))]
                try:
                    at += s.sendmsg([out[at:edge]], rights if needs else [], socket.MSG_NOSIGNAL)
                except BlockingIOError:
                    self.read(s, got, 0.005)
                    if r.random() < 0.1:
                        return
                except OSError:
                    return
            if r.random() < 0.2:
                self.read(s, got, 0)

    def read(self, s, got, timeout):
        """False at the connection's end."""
        if not select.select([s], [], [], max(0, timeout))[0]:
            return True
        try:
            data = s.recv(1 << 16)
        except OSError:
            return False
        got += data
        return bool(data)

    def count_frames(self, got, n):
        count, view = 0, memoryview(bytes(got))
        while True:
            taken = take_frame(view)  # raises on anything that a server may not send
            if not taken:
                return count
            count += 1
            view = view[taken[1]:]


class GpuFuzz(Fuzz):
    """Most regions are in the memory of a GPU, which takes its part of the host's as well."""
    PROGRAM = os.path.join(os.environ.get("CURED_TEST_DIR", ""), "cured-fake-gpu")
    OPTIONS = dict(Fuzz.OPTIONS, gpu_min_bytes=1, gpu_streams=2, gpu_chunk_bytes=1 << 20, gpu_timeout_ms=60000)
    ENV = {"CURED_TEST_GPU": "polls=2"}
    ON_DEVICE = True
    PATIENCE = [0, 0.005, 0.02, 0.05]  # its memory is tried in a process of its own first

    @classmethod
    def setUpClass(cls):
        """What is made for the first device memory stays."""
        super().setUpClass()
        with cls.daemon.connect() as c, tempfile.TemporaryFile() as f:
            f.write(b"fake-vmm" + struct.pack("<QQQ", 0, 0, 64) + bytes(32 + 64))
            f.flush()
            assert c.registered(c.start_register(1, cuda_descriptor_region(64), f.fileno())) == 64, cls.daemon.log()
        cls.daemon.hold_from_now()

    def holders(self):
        """Memory of the stand-in: a file with a head."""
        memory = [self.memfd(b"fake-vmm" + struct.pack("<QQQ", 0, 0, len(data)) + bytes(32) + data)
                  for data in (os.urandom(DEVICE), bytes(DEVICE), os.urandom(50000))]
        return super().holders()[-1:] + memory + memory[:2] * 6


if __name__ == "__main__":
    main()
