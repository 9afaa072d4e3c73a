#!/usr/bin/env python3
"""Holes in memory of huge pages: a single byte of one would take 2 MiB or more."""
import fcntl
import os
import unittest

from holes import KEEP_SIZE, LIBC, MIB, Holes, main

F_SEAL_SHRINK, F_SEAL_WRITE = 2, 8


def free_pages():
    with open("/proc/meminfo") as f:
        info = dict(line.split(":") for line in f)
    return int(info.get("HugePages_Free", "0")), 1024 * int(info.get("Hugepagesize", "0 kB").split()[0])


class Watched(Holes):
    def huge(self, size):
        try:
            fd = os.memfd_create("huge", os.MFD_HUGETLB | os.MFD_ALLOW_SEALING)
        except OSError as e:
            raise unittest.SkipTest("no memory of huge pages here: %s" % e)
        self.addCleanup(os.close, fd)
        os.ftruncate(fd, size)
        return fd

    def test_holes(self):
        page = free_pages()[1] or 2 * MIB
        fd = self.huge(8 * page)
        for seals in (0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_WRITE):
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
            self.assertEqual(8 * page, self.conn.register(1, fd))
            self.assertEqual(0, self.sum_of(self.conn.region("u8", ["sum"], 1)))
            self.assertIsNone(self.conn.unregister(1))
            self.assertEqual(0, self.sum_of(self.conn.descriptor("u8", ["sum"], fd)))
            self.assertEqual(0, self.bytes_of(fd), "the daemon filled holes")

    def test_whole(self):
        """What is there is read, and never mapped."""
        free, page = free_pages()
        if free < 1:
            self.skipTest("no huge pages are set aside here")
        fd = self.huge(page)
        self.fallocate(fd, 0, 0, page)
        self.assertEqual(page, self.conn.register(1, fd))
        self.assertFalse(any("/memfd:huge" in path for path in self.daemon.mapped_files()))
        self.assertEqual(0, self.sum_of(self.conn.region("u8", ["sum"], 1)))
        self.assertIsNone(self.conn.unregister(1))


class Refused(Watched):
    REFUSED = True


class Transparent(Holes):
    """A tmpfs of transparent huge pages, where one byte fills 2 MiB."""
    def test_holes(self):
        folder = os.path.join(self.folder, "thp")
        os.mkdir(folder)
        if os.geteuid() != 0 or LIBC.mount(b"thp", folder.encode(), b"tmpfs", 0, b"huge=always") != 0:
            self.skipTest("mounting a tmpfs of huge pages needs root, and a Linux that has them")
        self.addCleanup(LIBC.umount2, folder.encode(), 2)
        size = 32 * MIB
        with open(os.path.join(folder, "array"), "w+b", buffering=0) as f:
            f.truncate(size)
            self.fallocate(f.fileno(), KEEP_SIZE, size, size)
            before = self.bytes_of(f.fileno())
            for writable in (False, True):
                self.assertEqual(size, self.conn.register(1, f.fileno(), writable=writable))
                self.check_lost_or(self.conn.region("u8", ["sum"], 1), 0)
                self.assertIsNone(self.conn.unregister(1))
            self.assertEqual(before, self.bytes_of(f.fileno()), "the daemon filled holes")


if __name__ == "__main__":
    main()
