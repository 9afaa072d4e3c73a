#!/usr/bin/env python3
"""Blocks behind the end of memory that is one hole: by their number the memory looks whole."""
import fcntl
import os

from holes import MIB, PAGE, Holes, descriptor_region, main, parse

SIZE = 64 * MIB
F_SEAL_SHRINK = 2


class Watched(Holes):
    def read(self, make):
        fd = make()
        before = self.bytes_of(fd)
        self.assertEqual(SIZE, self.conn.register(1, fd))
        for _ in range(2):
            self.check_lost_or(self.conn.region("u8", ["sum"], 1), 0)
            self.check_lost_or(self.conn.region("u8", ["sum"], 1, SIZE // 2 + 1, PAGE), 0)
            self.check_lost_or(self.conn.region("u8", ["sum"], 1, axis=(SIZE // 4096, 4096, 1)), 0)
        self.assertIsNone(self.conn.unregister(1))
        self.check_lost_or(self.conn.descriptor("u8", ["sum"], fd), 0)
        self.assertEqual(before, self.bytes_of(fd), "the daemon filled holes")

    def test_read(self):
        self.read(lambda: self.looks_full(SIZE))

    def test_read_sealed(self):
        def make():
            fd = self.looks_full(SIZE)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, F_SEAL_SHRINK)
            return fd
        self.read(make)

    def test_read_only_descriptor(self):
        def make():
            fd = os.open("/proc/self/fd/%d" % self.looks_full(SIZE), os.O_RDONLY)
            self.addCleanup(os.close, fd)
            return fd
        self.read(make)

    def test_a_sparse_file_is_answered(self):
        """Such memory may be honest: its holes are zeros."""
        fd = self.looks_full(SIZE)
        os.pwrite(fd, b"\1" * PAGE, SIZE // 2)
        before = self.bytes_of(fd)
        self.assertEqual(SIZE, self.conn.register(1, fd))
        self.assertEqual(PAGE, self.sum_of(self.conn.region("u8", ["sum"], 1)))
        self.assertIsNone(self.conn.unregister(1))
        self.assertEqual(before, self.bytes_of(fd), "the daemon filled holes")

    def test_write(self):
        fd = self.looks_full(SIZE)
        before = self.bytes_of(fd)
        self.assertEqual(SIZE, self.conn.register(1, fd, writable=True))
        source = self.memfd(b"\1" * (4 * MIB))
        for offset in (0, SIZE // 2):
            self.check_not_written(self.conn.descriptor("u8", ["sum"], source.fileno(), axis=(4 * MIB, 1, 1), outputs=[(0, 1, offset)]))
        self.assertIsNone(self.conn.unregister(1))
        self.assertEqual(before, self.bytes_of(fd), "the daemon filled holes")


class Refused(Watched):
    REFUSED = True

    def test_it_says_that_it_does_not_write(self):
        """Memory without a hole as well, so that libcured has the answers sent. Reading it works."""
        fd = self.memfd(b"\1" * 4096).fileno()
        for writable in (False, True):
            stream = self.conn.start_register(1 + writable, descriptor_region(), fd, writable=writable)
            status, payload = self.conn.over(stream)
            self.assertIsNone(status)
            self.assertEqual({1: [4096], 2: [1]} if writable else {1: [4096]}, {n: list(v) for n, v in parse(payload).items()})
            self.assertEqual(4096, self.sum_of(self.conn.region("u8", ["sum"], 1 + writable)))
            self.assertIsNone(self.conn.unregister(1 + writable))


if __name__ == "__main__":
    main()
