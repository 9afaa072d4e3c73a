#!/usr/bin/env python3
"""Files whose file system hides that they lie in memory: an overlay whose upper layer is a tmpfs, and a ramfs of a client's own,
which Linux fills when it is read."""
import array
import os
import socket
import subprocess
import sys

from holes import INVALID_ARGUMENT, KEEP_SIZE, LIBC, MIB, Holes, main

SIZE = 64 * MIB

# In a user and a mount namespace of its own, where it is root: makes a sparse file, and passes it on.
OWNER = """
import array, ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
top, size, to, layers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "layers"
if libc.mount(b"mine", top.encode(), b"ramfs", 0, None) != 0:
    sys.exit(77)
for name in ("lower", "other", "seen"):
    os.mkdir(top + "/" + name)
fd = os.open(top + "/lower/array", os.O_RDWR | os.O_CREAT, 0o666)
os.ftruncate(fd, size)
options = ("lowerdir=%s/lower:%s/other" % (top, top)).encode()
if layers and libc.mount(b"overlay", (top + "/seen").encode(), b"overlay", 0, options) != 0:
    sys.exit(77)
if layers:
    fd = os.open(top + "/seen/array", os.O_RDONLY)
with socket.socket(fileno=to) as s:
    s.sendmsg([b"1"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
"""


def unevictable():
    """Bytes of the machine: a ramfs says of no file what it has."""
    with open("/proc/meminfo") as f:
        info = dict(line.split(":") for line in f)
    return 1024 * int(info["Unevictable"].split()[0])


class Watched(Holes):
    def test_overlay_on_tmpfs(self):
        folder = os.path.join(self.folder, "layers")
        os.mkdir(folder)
        if os.geteuid() != 0 or LIBC.mount(b"layers", folder.encode(), b"tmpfs", 0, None) != 0:
            self.skipTest("mounting a tmpfs needs root")
        self.addCleanup(LIBC.umount2, folder.encode(), 2)
        names = [os.path.join(folder, name) for name in ("lower", "upper", "work", "seen")]
        for name in names:
            os.mkdir(name)
        options = "lowerdir=%s,upperdir=%s,workdir=%s" % tuple(names[:3])
        if LIBC.mount(b"overlay", names[3].encode(), b"overlay", 0, options.encode()) != 0:
            self.skipTest("no overlay can be mounted here")
        self.addCleanup(LIBC.umount2, names[3].encode(), 2)
        with open(os.path.join(names[3], "array"), "w+b", buffering=0) as f:
            f.truncate(SIZE)
            self.fallocate(f.fileno(), KEEP_SIZE, SIZE, SIZE)
            before = self.bytes_of(f.fileno())
            self.assertEqual(0, self.sum_of(self.conn.descriptor("u8", ["sum"], f.fileno())))
            self.assertEqual(SIZE, self.conn.register(1, f.fileno()))
            self.assertEqual(0, self.sum_of(self.conn.region("u8", ["sum"], 1)))
            self.assertIsNone(self.conn.unregister(1))
            self.assertEqual(before, self.bytes_of(f.fileno()), "the daemon filled holes")

    def refused(self, *how):
        folder = os.path.join(self.folder, "ramfs")
        os.makedirs(folder, exist_ok=True)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            owner = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", OWNER, folder, str(SIZE),
                                    str(theirs.fileno()), *how], pass_fds=[theirs.fileno()], stderr=subprocess.DEVNULL)
            if owner.returncode != 0:
                self.skipTest("no user namespace with such mounts can be made here")
            _, ancillary, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(4))
        fd = array.array("i", ancillary[0][2])[0]
        self.addCleanup(os.close, fd)
        before = unevictable()
        answer = self.conn.descriptor("u8", ["sum"], fd)
        self.assertLess(unevictable() - before, SIZE // 2, "the daemon filled holes")
        self.assert_sentence(answer.status, INVALID_ARGUMENT, "ramfs")
        self.assert_sentence(self.conn.register(1, fd), INVALID_ARGUMENT, "ramfs")

    def test_ramfs_of_a_client(self):
        self.refused("plain")

    def test_overlay_on_ramfs_of_a_client(self):
        self.refused("layers")


class Refused(Watched):
    REFUSED = True


if __name__ == "__main__":
    main()
