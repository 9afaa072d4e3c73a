"""test_gpu_axis_host: reductions along an axis of arrays in the host's memory, by every way in, where a GPU takes part: with the CPU, and with
backend cuda. On the stand-in GPU, or a real one: see gpu_axis.
"""
import os
import random
import struct

import test_axis
from cured_daemon import SANITIZE, main, wait_for
from cured_wire import DATA_LOSS, INPUTS, OUT_OF_RANGE
from expected import array_of, oracle
from gpu_axis import OPTIONS, REAL, AxisTest, setUpModule  # noqa: F401


class Host:
    """Arrays in the host's memory, by every way in: whole blocks are the GPU's too."""
    OPS = ("sum", "max", "argmax")
    LARGE = ((150000, 3, 1), (2000, 100, 1), (500, 40, 11), (20, 60001, 1), (9, 333, 90), (2, 270000, 1), (1, 5, 70001))
    WHOLE = LARGE[1:5]  # whose answers are few for their input, and which are claimed in whole blocks where they lie in memory
    CUT = LARGE[3:]     # but not as they come in a stream

    def ways(self, dtype, ops, raw, shape, **options):
        yield "inline", lambda: self.conn.inline(dtype, ops, raw, axis=shape, **options)
        yield "stream", lambda: self.conn.stream(dtype, ops, raw, axis=shape, **options)
        yield "unknown length", lambda: self.conn.stream(dtype, ops, raw, known=False, chunks=(77777,), axis=shape, **options)
        for name, make in (("file", self.file), ("memfd", self.memfd), ("sealed", self.sealed)):
            f = make(b"xy" + raw)
            yield name, lambda d=f.fileno(): self.conn.descriptor(dtype, ops, d, 2, axis=shape, **options)
            self.next += 1
            self.assertEqual(len(raw) + 2, self.conn.register(self.next, f.fileno()))
            yield name + " that is registered", lambda: self.ask(dtype, ops, self.next, shape, 2, **options)
            self.assertIsNone(self.conn.unregister(self.next))
            f.close()

    def by_gpu(self):
        return self.daemon.counters()["gpu_bytes_total"]

    def test_every_type_and_op(self):
        r = random.Random(31)
        for dtype in INPUTS:
            for shape in ((5, 4, 1), (3, 5, 4), (1000, 3, 2)):
                raw = (test_axis.small if dtype in oracle.INTS else array_of)(r, dtype, shape[0] * shape[1] * shape[2])
                ops = [op for op in test_axis.ops_of(dtype) if shape[0] < 1000 or op in ("sum", "argmax", "count_nan")]
                for name, call in self.ways(dtype, ops, raw, shape):
                    if shape[0] < 1000 or name in ("stream", "memfd"):
                        self.check(call(), dtype, ops, raw, shape)

    def test_large(self):
        for shape in self.LARGE:
            raw, want = self.large(shape)
            few = shape in (self.LARGE[0], self.LARGE[4], self.LARGE[6])
            for name, call in self.ways("i32", self.OPS, raw, shape):
                if name == "inline" or (few and name not in ("stream", "file")):
                    continue
                before = self.by_gpu()
                answer = call()
                self.assertIsNone(answer.status, (shape, name))
                for number, width in enumerate((8, 4, 8)):
                    self.assertEqual(want[number], answer.array(number, width, shape[0] * shape[2]), (shape, name, number))
                self.check_share(shape, name, self.by_gpu() - before, len(raw))

    def test_sums_that_do_not_fit(self):
        raw = struct.pack("<200q", *[1] * 101, 2**63 - 1, *[0] * 98) * 100
        sentences = set()
        for name, call in self.ways("i64", ["sum"], raw, (200, 100, 1)):
            status = call().status
            self.assert_sentence(status, OUT_OF_RANGE, str(2**63))
            sentences.add(status.message.split(":", 1)[1])
        self.assertEqual(1, len(sentences))

    def test_a_file_that_is_cut(self):
        f = self.file(bytes(8 << 20))
        self.assertIsInstance(self.conn.register(7, f.fileno()), int)
        shape = (1 << 10, 1 << 13, 1)
        self.assertIsNone(self.ask("u8", ["max"], 7, shape).status)
        os.ftruncate(f.fileno(), 1 << 20)
        self.assert_sentence(self.ask("u8", ["max"], 7, shape).status, DATA_LOSS, "cut")
        self.assertIsNone(self.conn.unregister(7))

    def test_answers_nobody_takes(self):
        count = 6 << 20
        raw = bytes(range(256)) * (count // 256)
        before = self.daemon.rss_bytes()
        streams = []
        for make in (self.file, self.memfd):
            for _ in range(2):
                stream = self.conn.start_descriptor("u8", ["sum"], make(raw).fileno(), axis=(count, 1, 1))
                self.conn.answers[stream].auto_credit = False
                streams.append(stream)
        upload = self.conn.start_stream("u8", ["sum"], count, axis=(count, 1, 1))
        self.conn.answers[upload].auto_credit = False
        self.conn.grant(upload, 8 * count)
        for stream in streams:
            self.conn.until(lambda s=stream: self.conn.answers[s].window == 0)
        self.assert_serves()
        if not REAL:
            self.assertLess(self.daemon.rss_bytes() - before, (512 if SANITIZE else 160) << 20)
        self.conn.send_array(upload, raw, chunks=(1 << 18,))
        want = b"".join(struct.pack("<Q", v) for v in range(256)) * (count // 256)
        self.assertIsNone(self.conn.wait(upload).status)
        self.assertTrue(want == self.conn.answers[upload].array(0, 8, count))
        for stream in streams[1:]:
            answer = self.conn.answers[stream]
            answer.auto_credit = True
            self.conn.give_credit()
            self.assertIsNone(self.conn.wait(stream).status)
            self.assertTrue(want == answer.array(0, 8, count))
        self.conn.close()
        self.daemon.check_returned(self)


class HostBoth(Host, AxisTest):
    """Both lanes at once."""
    OPTIONS = dict(OPTIONS, gpu_min_bytes=1, cpu_workers=2)

    def check_share(self, shape, name, by_gpu, size):
        self.assertLessEqual(by_gpu, size, (shape, name))
        if shape not in self.WHOLE:
            self.assertEqual(0, by_gpu, (shape, name))

    def test_both_take_part(self):
        """Also where rows are longer than what a worker would claim without a GPU beside it."""
        for shape in ((2000, 500, 1), (40, 30000, 1)):
            raw, want = self.large(shape)
            f = self.sealed(raw)
            self.next += 1
            self.assertEqual(len(raw), self.conn.register(self.next, f.fileno()))

            def shared():
                before = self.by_gpu()
                answer = self.ask("i32", self.OPS, self.next, shape)
                self.assertEqual(want[2], answer.array(2, 8, shape[0] * shape[2]))
                return 0 < self.by_gpu() - before < len(raw)
            wait_for("a job that both lanes claimed from", shared)


class HostAlone(Host, AxisTest):
    """backend cuda: the CPU does only what is not whole, or may be cut."""
    OPTIONS = dict(OPTIONS, backend="cuda")

    def check_share(self, shape, name, by_gpu, size):
        lies = name == "file" or name.endswith("registered")
        wanted = shape not in self.CUT or (shape in self.WHOLE and lies)
        self.assertEqual(size if wanted else 0, by_gpu, (shape, name))


if __name__ == "__main__":
    main()
