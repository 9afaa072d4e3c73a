"""test_gpu_beside: segments and groups of arrays in a GPU's memory, which its lane brings to the host: the bits of those that are sent, with
masks and without, sent back and written into host memory and into the GPU's. On the stand-in GPU, or a real one: see gpu_axis.
"""
import random
import struct

from cured_daemon import main
from cured_wire import (DATA, END, INVALID_ARGUMENT, UNIMPLEMENTED, beside_message, frame, keys_message, layout_message, mask_message, region_input,
                        segments_message, stream_input)
from expected import plain
from gpu_axis import AxisTest, content, device_memory, setUpModule  # noqa: F401

OPS = ["sum", "max", "argmin", "count"]
WIDTHS = (8, 4, 8, 8)


class Beside(AxisTest):
    def both(self, raw, sent, answers, ops=OPS, **options):
        """Answers to raw from the GPU's memory, and as a stream."""
        c, region, pairs = self.conn, self.put(b"123" + raw), []
        for source, array in ((region_input(region, 3), b""), (stream_input(len(raw)), raw)):
            stream = c.open_stream()
            c.send(c.call_frame(stream, "f32", ops, source, statuses=True, **options))
            c.send_array(stream, sent + array)
            answer = c.wait(stream)
            self.assertIsNone(answer.status)
            pairs.append([(answer.array(i, w, answers), answer.statuses_of(i, answers)) for i, w in zip(range(len(ops)), WIDTHS)] + [answer.count])
        self.assertIsNone(c.unregister(region))
        self.assertEqual(pairs[1], pairs[0])
        return pairs[0]

    def test_segments_and_groups(self):
        r = random.Random(7)
        for n in (1, 1000, 400003):
            raw = bytes(plain("f32", n))
            mask = bytes(r.choice((0, 1, 2)) for _ in range(n))
            borders = sorted(r.randrange(n + 1) for _ in range(50))
            offsets = struct.pack("<50I", *borders)
            keys = bytes(r.randrange(6) for _ in range(n))
            for said, sent, count in (({"segments": segments_message(beside_message(50), "u32")}, offsets, 49),
                                      ({"keys": keys_message(beside_message(n), 6, "u8")}, keys, 6)):
                self.both(raw, sent, count, **said)
                self.both(raw, mask + sent, count, mask=mask_message(beside_message(n)), **said)

    def test_partials_by_key(self):
        """Of an array in the GPU's memory and of one that is sent: the same bytes; and merged, as one of all rows."""
        r, c, ops = random.Random(8), self.conn, ["sum", "max", "count"]
        for n, groups in ((0, 3), (1, 1), (5000, 40), (400003, 7)):
            raw, keys = bytes(plain("f32", n)), bytes(r.randrange(groups) for _ in range(n))
            mask = bytes(r.choice((0, 1, 2)) for _ in range(n))
            for sent, more in ((keys, {}), (mask + keys, {"mask": mask_message(beside_message(n))})):
                partials, region = [], self.put(b"123" + raw)
                for source, array in ((region_input(region, 3), b""), (stream_input(len(raw)), raw)):
                    stream = c.open_stream()
                    c.send(c.call_frame(stream, "f32", ops, source, partial=True, unplaced=True, keys=keys_message(beside_message(n), groups, "u8"), **more))
                    c.send_array(stream, sent + array)
                    answer = c.wait(stream)
                    self.assertIsNone(answer.status)
                    partials.append(b"".join(values for _, _, values in answer.parts))
                self.assertIsNone(c.unregister(region))
                self.assertEqual(b"CK\1", partials[0][:3])
                self.assertEqual(*partials)

    def test_products_in_order(self):
        raw = bytes(plain("f32", 70001))
        self.both(raw, struct.pack("<4I", 0, 5, 60000, 70001), 3, ["prod"], segments=segments_message(beside_message(4), "u32"))

    def test_blocks(self):
        """Columns of an array, in the GPU's memory."""
        ops, rows = ["digest", "argmax", "sum"], 40001
        for columns, start, extent in ((3, 0, 2), (3, 2, 1), (20, 5, 10)):
            raw, partials, c = bytes(plain("f32", rows * extent)), [], self.conn
            region = self.put(b"123" + raw)
            for source, array in ((region_input(region, 3), b""), (stream_input(len(raw)), raw)):
                stream = c.open_stream()
                c.send(c.call_frame(stream, "f32", ops, source, partial=True, layout=layout_message((rows, columns), (0, start), (rows, extent)), flags=0 if array else END))
                if array:
                    c.send_array(stream, array)
                answer = c.wait(stream)
                self.assertIsNone(answer.status)
                partials.append(answer.partial)
            self.assertIsNone(c.unregister(region))
            self.assertEqual(b"CP\3", partials[0][:3])
            self.assertEqual(*partials)

    def test_written(self):
        """Into shared memory, and into the memory of the same GPU."""
        n, c = 3000, self.conn
        raw = bytes(plain("f32", n))
        offsets = struct.pack("<4I", 0, 10, 10, n)
        said = segments_message(beside_message(4), "u32")
        wanted = self.both(raw, offsets, 3, ["sum"], segments=said)[0][0]
        region = self.put(raw)
        host, device = self.memfd(bytes(64)), device_memory(bytes(64))
        self.addCleanup(device.free)
        self.assertEqual(64, c.register(900, host.fileno(), writable=True))
        self.assertEqual(64, c.registered(c.start_register(901, device.source(), device.descriptor, writable=True)))
        for number, read in ((900, lambda: host.seek(0) or host.read(64)), (901, lambda: content(device))):
            stream = c.open_stream()
            c.send(c.call_frame(stream, "f32", ["sum"], region_input(region), segments=said, outputs=((0, number, 8),)))
            c.send_array(stream, offsets)
            answer = c.wait(stream)
            self.assertIsNone(answer.status)
            self.assertEqual((24, bytes(8) + wanted + bytes(32)), (answer.written, read()))
        self.written_refusals(region, raw)

    def written_refusals(self, region, raw):
        """What is sent does not go to a GPU's memory, nor do answers to no elements; and no offsets are read there."""
        c = self.conn
        said = segments_message(beside_message(2), "u32")
        for source, sent, code, words in ((stream_input(len(raw)), struct.pack("<2I", 0, 5) + raw, INVALID_ARGUMENT, "memory of the same GPU"),
                                          (region_input(region), struct.pack("<2I", 7, 7), UNIMPLEMENTED, "segments without elements")):
            stream = c.open_stream()
            c.send(c.call_frame(stream, "f32", ["sum"], source, segments=said, outputs=((0, 901, 0),)))
            c.send(frame(DATA, stream, sent, END))
            self.assert_sentence(c.wait(stream).status, code, words)
        for field, message in (("segments", segments_message(beside_message(2, region), "u32")),
                               ("keys", keys_message(beside_message(3000, region), 2, "u8"))):
            stream = c.open_stream()
            c.send(c.call_frame(stream, "f32", ["sum"], region_input(region), **{field: message}))
            self.assert_sentence(c.wait(stream).status, UNIMPLEMENTED, "what lies in a GPU's memory is not read")


if __name__ == "__main__":
    main()
