"""test_answers: every op on every type, by every way in, equals the oracle bit for bit."""
import os
import random
import tempfile

from cured_daemon import DaemonTest, main
from cured_wire import FIRST_OPS, INPUTS, INVALID_ARGUMENT, OPS, OUT_OF_RANGE, PAIRS, SIZES, UNIMPLEMENTED
from expected import array_of, expect, expect_all, expect_tiled, oracle, plain
from reasons import skip_part

SEED = int(os.environ.get("CURED_TEST_SEED", "20260101"))


class Inline(DaemonTest):
    def check(self, dtype, raw, ops=FIRST_OPS, **options):
        answer = self.conn.inline(dtype, ops, raw, **options)
        self.assertIsNone(answer.status, "%s, %d bytes" % (dtype, len(raw)))
        self.assertEqual(len(raw) // SIZES[dtype], answer.count)
        self.assertEqual(expect_all(ops, dtype, raw, **options), answer.keys(), "%s %s" % (dtype, raw[:64].hex()))

    def setUp(self):
        self.conn = self.connect()

    def test_every_type_on_many_arrays(self):
        r = random.Random(SEED)
        for dtype in INPUTS:
            for _ in range(25):
                self.check(dtype, array_of(r, dtype)[:200000], nan=r.randint(0, 1))

    def test_empty_and_one_element(self):
        r = random.Random(SEED + 1)
        for dtype in INPUTS:
            self.check(dtype, b"")
            for _ in range(5):
                self.check(dtype, r.randbytes(SIZES[dtype]), nan=r.randint(0, 1))

    def test_ops_one_at_a_time_and_in_any_order(self):
        r = random.Random(SEED + 2)
        for dtype in INPUTS:
            raw = array_of(r, dtype, 300)
            for op in FIRST_OPS:
                self.check(dtype, raw, [op])
            mixed = FIRST_OPS[:]
            r.shuffle(mixed)
            self.check(dtype, raw, mixed)

    def test_later_ops_are_right_or_refused_by_name(self):
        for dtype in INPUTS:
            raw = plain(dtype, 200)
            for op in list(OPS)[11:]:
                answer = self.conn.inline(dtype, [op], raw)
                if answer.status:
                    self.assertIn(answer.status.code, (UNIMPLEMENTED, INVALID_ARGUMENT))
                    self.assert_sentence(answer.status, answer.status.code, op, dtype)
                elif not (op == "prod" and dtype in oracle.FLOATS):  # a tree, not an exact value
                    self.assertEqual([expect(op, dtype, raw)], answer.keys(), "%s %s" % (op, dtype))

    def test_ops_of_two_arrays_are_refused(self):
        for name, number in PAIRS.items():
            for ops in ([number], ["sum", number]):
                answer = self.conn.inline("f32", ops, b"\0" * 12)
                self.assertEqual(INVALID_ARGUMENT, answer.status.code)
                self.assertIn("op %s is of two arrays, and only one is given" % name, answer.status.message)

    def test_result_types(self):
        r = random.Random(SEED + 3)
        for dtype in INPUTS:
            floats = dtype in oracle.FLOATS
            for wanted in ("f16", "bf16", "f32", "f64") if floats else ("f16", "bf16", "f32", "f64", "i64", "u64", "i128", "i32"):
                for _ in range(3):
                    ops = ["sum"] if not wanted.startswith("f") and wanted != "bf16" else ["sum", "mean"]
                    self.check(dtype, array_of(r, dtype)[:40000], ops, result_dtype=wanted)

    def test_an_op_without_a_value_leaves_the_others(self):
        answer = self.conn.inline("f32", ["min", "sum", "argmax", "count"], b"")
        self.assertEqual([INVALID_ARGUMENT, 0, INVALID_ARGUMENT, 0], [r.status for r in answer.results])
        self.assertIn("min", answer.results[0].message)
        big = b"\xff" * 8 * 3
        answer = self.conn.inline("u64", ["sum", "max"], big, result_dtype="u64")
        if answer.status is None:
            self.assertEqual([OUT_OF_RANGE, 0], [r.status for r in answer.results])
            self.assertIn(str(3 * (2**64 - 1)), answer.results[0].message)

    def test_sums_beyond_64_bits(self):
        for dtype, raw in (("u64", b"\xff" * 80), ("i64", (b"\0" * 7 + b"\x80") * 10), ("i64", (b"\xff" * 7 + b"\x7f") * 9)):
            self.check(dtype, raw)


class Streamed(DaemonTest):
    def setUp(self):
        self.conn = self.connect()

    def check(self, dtype, tile, times, **options):
        raw = bytes(tile) * times
        answer = self.conn.stream(dtype, FIRST_OPS, raw, **options)
        self.assertIsNone(answer.status)
        self.assertEqual([expect_tiled(op, dtype, tile, times) for op in FIRST_OPS], answer.keys(), "%s %r" % (dtype, options))
        self.assertEqual(len(raw) // SIZES[dtype], answer.count)

    def test_every_type_known_and_unknown_length(self):
        for dtype in INPUTS:
            tile = plain(dtype, 5000)
            for known in (True, False):
                self.check(dtype, tile, 50, known=known)

    def test_odd_chunks_cut_elements(self):
        for dtype in INPUTS:
            tile = plain(dtype, 700, seed=2)
            for chunks in ((1,), (3, 1, 2), (13,), (4097, 1, 65537)):
                times = 1 if max(chunks) < 100 else 60
                self.check(dtype, tile, times, chunks=chunks, known=chunks[0] != 13)

    def test_empty_frames_between(self):
        stream = self.conn.start_stream("f64", ["sum", "count"], None)
        tile = plain("f64", 4000)
        for at in range(0, len(tile), 7777):
            self.conn.send_data(stream, b"")
            self.conn.send_data(stream, tile[at:at + 7777])
        self.conn.send_data(stream, b"", end=True)
        self.assertEqual(expect_all(["sum", "count"], "f64", tile), self.conn.wait(stream).keys())

    def test_pauses_seal_slabs_in_the_middle_of_elements(self):
        """The daemon hands a slab over when its client pauses; the elements cut by that must come out whole."""
        tile = plain("f64", 1001)
        streams = [self.conn.start_stream("f64", FIRST_OPS, len(tile)) for _ in range(8)]
        cuts = [1, 9, 77, 2003, 2004, 4099, 8000]
        for a, b in zip([0] + cuts, cuts + [len(tile)]):
            for stream in streams:
                self.conn.send_data(stream, tile[a:b], end=b == len(tile))
            if b != len(tile):
                self.wait_until_sealed()
        for stream in streams:
            self.assertEqual(expect_all(FIRST_OPS, "f64", tile), self.conn.wait(stream).keys())

    def wait_until_sealed(self):
        from cured_daemon import wait_for
        wait_for("the slabs to be sealed", lambda: self.daemon.gauges()["slabs_used"] == 0)

    def test_large(self):
        tile = plain("f32", 1 << 14)
        self.check("f32", tile, 400)  # 26 MiB
        self.check("u8", plain("u8", 65521), 300, chunks=(1 << 20, 999999))

    def test_special_values_over_slab_borders(self):
        r = random.Random(SEED + 4)
        for dtype in oracle.FLOATS:
            raw = array_of(r, dtype, 12000)
            for nan in (0, 1):
                answer = self.conn.stream(dtype, FIRST_OPS, raw, chunks=(9999,), nan=nan)
                self.assertEqual(expect_all(FIRST_OPS, dtype, raw, nan=nan), answer.keys())

    def test_empty_array_by_every_form(self):
        wanted = expect_all(FIRST_OPS, "f32", b"")
        for known in (True, False):
            self.assertEqual(wanted, self.conn.stream("f32", FIRST_OPS, b"", known=known).keys())
            stream = self.conn.start_stream("f32", FIRST_OPS, 0 if known else None, flags=1)  # END on CALL
            self.assertEqual(wanted, self.conn.wait(stream).keys())


class Descriptors(DaemonTest):
    OPTIONS = {"slabs": 8}

    def setUp(self):
        self.conn = self.connect()

    def holders(self, data):
        """The same bytes as a file on disk, a memfd and a file on tmpfs."""
        yield "file", self.file(data)
        yield "memfd", self.memfd(data)
        f = self.on_tmpfs(data)
        if f:
            yield "tmpfs", f

    def on_tmpfs(self, data):
        """None where it does not fit, which is said: a container's /dev/shm has 64 MiB. Half is left to the tests beside this."""
        if not os.path.isdir("/dev/shm"):
            return None
        room = os.statvfs("/dev/shm")
        if len(data) > room.f_bavail * room.f_frsize // 2:
            skip_part(self, "on tmpfs: %d bytes do not fit into half of what is free in /dev/shm" % len(data))
            return None
        f = tempfile.TemporaryFile(dir="/dev/shm", buffering=0)
        self.addCleanup(f.close)
        view = memoryview(data)
        while view.nbytes:
            view = view[f.write(view):]
        return f

    def test_every_type_at_any_offset(self):
        r = random.Random(SEED + 5)
        for dtype in INPUTS:
            raw = array_of(r, dtype, 3000)
            size = SIZES[dtype]
            for offset in (0, 1, 7, 128, 4095, 4096, 8191):
                for kind, f in self.holders(bytes(offset) + raw + b"tail!"):
                    count = 2990
                    answer = self.conn.descriptor(dtype, FIRST_OPS, f.fileno(), offset, count)
                    self.assertEqual(expect_all(FIRST_OPS, dtype, raw[:count * size]), answer.keys(), (dtype, kind, offset))
                    os.ftruncate(f.fileno(), offset + len(raw))
                    answer = self.conn.descriptor(dtype, ["sum", "count"], f.fileno(), offset)
                    self.assertEqual(expect_all(["sum", "count"], dtype, raw), answer.keys(), (dtype, kind, offset))
                    f.close()

    def test_large_at_odd_offsets(self):
        """Several windows (64 MiB) and slabs, cut anywhere."""
        for dtype, count, times in (("f32", 50000, 450), ("u16", 77777, 100), ("f64", 30011, 40)):
            tile = plain(dtype, count)
            wanted = [expect_tiled(op, dtype, tile, times) for op in FIRST_OPS]
            for kind, f in self.holders(b"x" * 13 + tile * times):
                answer = self.conn.descriptor(dtype, FIRST_OPS, f.fileno(), 13)
                self.assertIsNone(answer.status)
                self.assertEqual(wanted, answer.keys(), (dtype, kind))
                f.close()

    def test_empty_file_and_empty_range(self):
        wanted = expect_all(FIRST_OPS, "i32", b"")
        for kind, f in self.holders(b""):
            self.assertEqual(wanted, self.conn.descriptor("i32", FIRST_OPS, f.fileno()).keys(), kind)
            self.assertEqual(wanted, self.conn.descriptor("i32", FIRST_OPS, f.fileno(), 0, 0).keys(), kind)
        for kind, f in self.holders(b"12345678"):
            self.assertEqual(wanted, self.conn.descriptor("i32", FIRST_OPS, f.fileno(), 8).keys(), kind)
            self.assertEqual(wanted, self.conn.descriptor("i32", FIRST_OPS, f.fileno(), 3, 0).keys(), kind)

    def test_sparse_files_read_as_zeros_and_stay_sparse(self):
        for make in (self.file, self.memfd):
            f = make()
            os.ftruncate(f.fileno(), 32 << 20)
            os.pwrite(f.fileno(), b"\x01\0\0\0", 16 << 20)
            answer = self.conn.descriptor("u32", ["sum", "count_nonzero", "argmax"], f.fileno())
            self.assertEqual([1, 1, 4 << 20], [int.from_bytes(r.value, "little") for r in answer.results])
            self.assertLess(os.fstat(f.fileno()).st_blocks * 512, 1 << 20)

    def test_position_and_flags_are_left_alone(self):
        f = self.file(bytes(100000))
        os.lseek(f.fileno(), 4321, os.SEEK_SET)
        import fcntl
        flags = fcntl.fcntl(f.fileno(), fcntl.F_GETFL)
        self.assertIsNone(self.conn.descriptor("u8", ["sum"], f.fileno(), 5).status)
        self.assertEqual(4321, os.lseek(f.fileno(), 0, os.SEEK_CUR))
        self.assertEqual(flags, fcntl.fcntl(f.fileno(), fcntl.F_GETFL))

    def test_read_only_and_read_write_descriptors(self):
        f = self.file(bytes([5]) * 1000, name="both")
        for mode in (os.O_RDONLY, os.O_RDWR):
            d = os.open(f.name, mode)
            answer = self.conn.descriptor("u8", ["sum"], d)
            os.close(d)
            self.assertEqual(5000, int.from_bytes(answer.results[0].value, "little"))


class OtherInstructionSets(DaemonTest):
    """The portable fold gives the same bits (the others were taken above, by auto)."""
    OPTIONS = {"cpu_isa": "portable", "cpu_workers": 3}

    def test_every_type(self):
        r = random.Random(SEED + 6)
        conn = self.connect()
        for dtype in INPUTS:
            raw = array_of(r, dtype, 20000 // SIZES[dtype] * 3)
            self.assertEqual(expect_all(FIRST_OPS, dtype, raw), conn.stream(dtype, FIRST_OPS, raw, chunks=(7777,)).keys())


if __name__ == "__main__":
    print("seed", SEED)
    main()
