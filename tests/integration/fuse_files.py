"""fuse_files: a file system of one file whose server can stop answering, straight on /dev/fuse (root only, no library).

FuseFile(folder, data) mounts it and answers from a thread. hang names the requests it leaves unanswered ("getattr",
"read", "flush", "release", "statfs"); let_go() answers what waits and all that follows; abort() ends the connection, after
which every request fails.
"""
import ctypes
import errno
import os
import select
import struct
import threading
import time

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, INTERRUPT, BATCH_FORGET = (1, 2, 3, 14, 15, 17, 18, 25, 26,
                                                                                            36, 42)
NAMES = {GETATTR: "getattr", READ: "read", FLUSH: "flush", RELEASE: "release", STATFS: "statfs"}
DIRECT_IO = 1


def libc():
    return ctypes.CDLL(None, use_errno=True)


def why_not():
    """A reason why no FUSE file can be made here; None when it can."""
    if os.geteuid() != 0:
        return "mounting FUSE needs root"
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as e:
        return "no /dev/fuse: %s" % e.strerror
    return None


class FuseFile:
    def __init__(self, folder, data, size=None):
        self.data, self.size = data, len(data) if size is None else size
        self.hang, self.waiting, self.seen = set(), [], []
        self.read_error, self.short = 0, None
        self.lock = threading.Lock()
        self.mountpoint = os.path.join(folder, "fuse-%x" % id(self))
        os.mkdir(self.mountpoint)
        self.device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % self.device
        if libc().mount(b"cured-test", self.mountpoint.encode(), b"fuse", 0, options.encode()) != 0:
            e = ctypes.get_errno()
            os.close(self.device)
            os.rmdir(self.mountpoint)
            raise OSError(e, os.strerror(e))
        self.stop, self.wake = os.pipe()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def open(self):
        return os.open(os.path.join(self.mountpoint, "array"), os.O_RDONLY)

    def attributes(self, node):
        mode, size = (0o40755, 0) if node == 1 else (0o100644, self.size)
        return struct.pack("<6Q10I", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def reply(self, unique, payload=b"", error=0):
        try:
            os.write(self.device, struct.pack("<IiQ", 16 + len(payload), -error, unique) + payload)
        except OSError:
            pass  # interrupted or aborted meanwhile

    def serve(self):
        while True:
            ready = select.select([self.device, self.stop], [], [])[0]
            if self.stop in ready:
                return
            try:
                request = os.read(self.device, 1 << 17)
            except OSError as e:
                if e.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                    continue
                return
            _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
            with self.lock:
                self.seen.append(NAMES.get(opcode, opcode))
                if NAMES.get(opcode) in self.hang and node != 1:
                    self.waiting.append((opcode, unique, node, request[40:]))
                    continue
            self.answer(opcode, unique, node, request[40:])

    def answer(self, opcode, unique, node, body):
        if opcode == INIT:
            self.reply(unique, struct.pack("<IIIIHHIIHHI7I", 7, 31, 65536, 0, 64, 48, 1 << 16, 1, 32, 0, 0, *[0] * 7))
        elif opcode == LOOKUP:
            self.reply(unique, struct.pack("<QQQQII", 2, 0, 0, 0, 0, 0) + self.attributes(2))
        elif opcode == GETATTR:
            self.reply(unique, struct.pack("<QII", 0, 0, 0) + self.attributes(node))
        elif opcode == OPEN:
            self.reply(unique, struct.pack("<QII", 1, DIRECT_IO, 0))
        elif opcode == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            if self.short is not None:
                size = max(0, min(size, self.short - offset))
            self.reply(unique, b"" if self.read_error else self.data[offset:offset + size], self.read_error)
        elif opcode == STATFS:
            self.reply(unique, bytes(80))
        elif opcode in (FLUSH, RELEASE):
            self.reply(unique)
        elif opcode not in (FORGET, BATCH_FORGET, INTERRUPT):
            self.reply(unique, error=errno.ENOSYS)

    def hangs(self, what):
        """How many requests of a kind wait for an answer."""
        code = {name: number for number, name in NAMES.items()}[what]
        with self.lock:
            return sum(1 for opcode, *_ in self.waiting if opcode == code)

    def let_go(self):
        with self.lock:
            self.hang = set()
            waiting, self.waiting = self.waiting, []
        for request in waiting:
            self.answer(*request)

    def abort(self):
        """Every request, waiting or to come, fails; the mount goes."""
        if self.device is None:
            return
        os.write(self.wake, b"!")
        self.thread.join(10)
        os.close(self.device)
        self.device = None
        libc().umount2(self.mountpoint.encode(), 2)  # MNT_DETACH
        for fd in (self.stop, self.wake):
            os.close(fd)
        for _ in range(100):
            try:
                os.rmdir(self.mountpoint)
                return
            except OSError:
                time.sleep(0.01)
