#!/usr/bin/env python3
"""Memory that is whole when it is registered, and when each call is checked, and punched while the call reads it. Blocks behind its
end stand for what was punched."""
import fcntl
import mmap

from holes import KEEP_SIZE, LIBC, MIB, PAGE, PUNCH_HOLE, Holes, Meanwhile, SANITIZE, main

SIZE, LESS = 32 * MIB, 8 * MIB
ROUNDS = 15 if SANITIZE else 60
F_SEAL_SHRINK, F_SEAL_FUTURE_WRITE = 2, 16


class Watched(Holes):
    def whole(self):
        fd = self.memory(SIZE)
        self.fallocate(fd, 0, 0, SIZE)
        return fd

    def test_between_two_calls(self):
        fd = self.whole()
        self.assertEqual(SIZE, self.conn.register(1, fd))
        self.assertEqual(0, self.sum_of(self.conn.region("u8", ["sum"], 1)))
        self.punch(fd, PAGE, SIZE - PAGE)
        left = self.bytes_of(fd)
        self.fallocate(fd, KEEP_SIZE, SIZE, SIZE)
        for _ in range(3):
            self.check_lost_or(self.conn.region("u8", ["sum"], 1), 0)
        self.assertIsNone(self.conn.unregister(1))
        self.punch(fd, SIZE, SIZE)
        self.assertEqual(left, self.bytes_of(fd), "the daemon filled holes")

    def race(self, ask):
        """Fills and punches all the time, and looks after each punch at what there is: what the daemon filled since."""
        fd = self.memory(LESS)
        self.fallocate(fd, KEEP_SIZE, LESS, LESS)
        behind, filled = self.bytes_of(fd), []

        def change():
            self.fallocate(fd, 0, 0, LESS)
            self.punch(fd, 0, LESS)
            filled.extend(self.bytes_of(fd) for _ in range(300))

        with Meanwhile(change):
            for _ in range(ROUNDS):
                ask(fd)
        self.assertEqual(behind, max(filled), "the daemon filled holes")

    def read(self, fd):
        self.assertEqual(LESS, self.conn.register(1, fd))
        streams = [self.conn.start_region("u8", ["sum"], 1), self.conn.start_region("u8", ["min"], 1, 1, LESS - PAGE),
                   self.conn.start_region("u8", ["sum"], 1, axis=(LESS // 4096, 4096, 1))]
        for stream in streams:
            self.check_lost_or(self.conn.wait(stream), 0)
        self.assertIsNone(self.conn.unregister(1))

    def test_while_it_is_read(self):
        self.race(self.read)

    def test_while_it_is_read_and_sealed_against_cuts(self):
        def ask(fd):
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, F_SEAL_SHRINK)
            self.read(fd)

        self.race(ask)

    def test_while_it_is_written(self):
        source = self.memfd(bytes(LESS // 8))

        def ask(fd):
            if self.conn.register(1, fd, writable=True) != LESS:
                return  # it had holes already
            answer = self.conn.descriptor("u8", ["sum"], source.fileno(), axis=(LESS // 8, 1, 1), outputs=[(0, 1, 0)])
            if answer.status is not None:
                self.check_not_written(answer)
            self.assertIsNone(self.conn.unregister(1))

        self.race(ask)

    def test_sealed_for_good(self):
        """What nobody can punch any more is read where it lies, by both daemons; a mapping of before may still change it."""
        fd = self.memory(SIZE)
        with mmap.mmap(fd, SIZE) as m:
            m[:] = b"\1" * SIZE
            try:
                fcntl.fcntl(fd, fcntl.F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE)
            except OSError:
                self.skipTest("this Linux has no F_SEAL_FUTURE_WRITE")
            self.assertNotEqual(0, LIBC.fallocate(fd, PUNCH_HOLE | KEEP_SIZE, 0, PAGE))
            with self.assertRaises(PermissionError):
                m.madvise(9)  # MADV_REMOVE
            self.assertEqual(SIZE, self.conn.register(1, fd))
            self.assertTrue(any("/memfd:holes" in path for path in self.daemon.mapped_files()), "it was not mapped")
            self.assertEqual(SIZE, self.sum_of(self.conn.region("u8", ["sum"], 1)))
            m[5] = 3
            self.assertEqual(SIZE + 2, self.sum_of(self.conn.region("u8", ["sum"], 1)))
            self.assertIsNone(self.conn.unregister(1))

    def test_sealed_with_holes(self):
        """Seals alone do not make memory whole."""
        fd = self.memory(SIZE)
        self.fallocate(fd, KEEP_SIZE, SIZE, SIZE)
        before = self.bytes_of(fd)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE)
        self.assertEqual(SIZE, self.conn.register(1, fd))
        self.assertEqual(0, self.sum_of(self.conn.region("u8", ["sum"], 1)))
        self.assertIsNone(self.conn.unregister(1))
        self.assertEqual(before, self.bytes_of(fd), "the daemon filled holes")


class Refused(Watched):
    REFUSED = True


if __name__ == "__main__":
    main()
