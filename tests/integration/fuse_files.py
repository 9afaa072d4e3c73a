"""fuse_files: a file system of one file whose server can stop answering, straight on /dev/fuse (root only, no library).

FuseFile(folder, data) mounts it. A process of its own answers, so that none that uses the file can keep its server from ending: however
a test ends, the server goes with it, and then every request on the file fails instead of hanging. set(hang={…}) names the requests that
stay unanswered ("getattr", "read", "flush", "release", "statfs"); let_go() answers what waits and all that follows; abort() ends it.
"""
import ctypes
import errno
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from multiprocessing import Pipe
from multiprocessing.connection import Connection

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, INTERRUPT, BATCH_FORGET = (1, 2, 3, 14, 15, 17, 18, 25, 26,
                                                                                            36, 42)
NAMES = {GETATTR: "getattr", READ: "read", FLUSH: "flush", RELEASE: "release", STATFS: "statfs"}
DIRECT_IO, NONSEEKABLE = 1, 4
PR_SET_PDEATHSIG = 1
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 16384, 1 << 18
HANG_S = 180


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


def send_from_overlay(channel, lower):
    """Of a child: mounts in a namespace of its own, as any user may in a user namespace, and sends the open file."""
    c = libc()
    if c.unshare(CLONE_NEWNS) or c.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
        return
    c.mount(b"none", b"/mnt", b"tmpfs", 0, None)
    os.mkdir("/mnt/empty")
    os.mkdir("/mnt/both")
    if c.mount(b"overlay", b"/mnt/both", b"overlay", 0, b"lowerdir=/mnt/empty:" + lower.encode()) == 0:
        socket.send_fds(channel, [b"!"], [os.open("/mnt/both/array", os.O_RDONLY)])


class FuseFile:
    """The side of the test."""
    def __init__(self, folder, data, size=None):
        self.mountpoint = os.path.join(folder, "fuse-%x" % id(self))
        self.opened = []
        os.mkdir(self.mountpoint)
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % device
        if libc().mount(b"cured-test", self.mountpoint.encode(), b"fuse", 0, options.encode()) != 0:
            e = ctypes.get_errno()
            os.close(device)
            os.rmdir(self.mountpoint)
            raise OSError(e, os.strerror(e))
        self.control, far = Pipe()
        self.server = subprocess.Popen([sys.executable, __file__, str(os.getpid()), str(device), str(far.fileno())],
                                       pass_fds=(device, far.fileno()))
        os.close(device)
        far.close()
        self.set(data=data, size=len(data) if size is None else size)

    def open(self, flags=os.O_RDONLY):
        """A descriptor that abort() closes: closing it earlier may wait for the server."""
        self.opened.append(os.open(os.path.join(self.mountpoint, "array"), flags))
        return self.opened[-1]

    def open_under_overlay(self):
        """A descriptor of the file in an overlay above it, mounted where nobody else sees it; None: no overlay here."""
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            try:
                send_from_overlay(theirs, self.mountpoint)
            finally:
                os._exit(0)
        theirs.close()
        with ours:
            descriptors = socket.recv_fds(ours, 1, 1)[1]
        os.waitpid(child, 0)
        self.opened += descriptors
        return descriptors[0] if descriptors else None

    def ask(self, what, argument=None):
        self.control.send((what, argument))
        if not self.control.poll(HANG_S):
            raise AssertionError("the FUSE server does not answer")
        return self.control.recv()

    def set(self, **settings):
        self.ask("set", settings)

    def let_go(self):
        self.ask("let_go")

    def hangs(self, what=None):
        """How many requests (of a kind) wait for an answer."""
        return self.ask("hangs", what)

    def seen(self):
        """The kinds of request that came."""
        return self.ask("seen")

    def abort(self):
        """Every request, waiting or to come, fails; the descriptors and the mount go."""
        if self.server.returncode is not None:
            return
        self.server.kill()
        self.server.wait(HANG_S)
        self.control.close()
        for fd in self.opened:
            try:
                os.close(fd)
            except OSError:
                pass  # its server is gone
        libc().umount2(self.mountpoint.encode(), 2)  # MNT_DETACH
        for _ in range(100):
            try:
                os.rmdir(self.mountpoint)
                return
            except OSError:
                time.sleep(0.01)


class Server:
    """The side that answers, in its own process."""
    def __init__(self, device, control):
        self.device, self.control = device, control
        self.data, self.size = b"", 0
        self.hang, self.waiting, self.kinds = set(), [], []
        self.read_error, self.short, self.open_flags = 0, None, DIRECT_IO

    def attributes(self, node):
        mode, size = (0o40755, 0) if node == 1 else (0o100644, self.size)
        return struct.pack("<6Q10I", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def reply(self, unique, payload=b"", error=0):
        try:
            os.write(self.device, struct.pack("<IiQ", 16 + len(payload), -error, unique) + payload)
        except OSError:
            pass  # interrupted meanwhile

    def serve(self):
        while True:
            ready = select.select([self.device, self.control], [], [])[0]
            if self.control in ready:
                self.command(*self.control.recv())
            if self.device in ready:
                self.request()

    def command(self, what, argument):
        answer = None
        if what == "set":
            vars(self).update(argument)
        elif what == "let_go":
            self.hang = set()
            waiting, self.waiting = self.waiting, []
            for request in waiting:
                self.answer(*request)
        elif what == "hangs":
            answer = sum(1 for opcode, *_ in self.waiting if argument in (None, NAMES[opcode]))
        elif what == "seen":
            answer = self.kinds
        self.control.send(answer)

    def request(self):
        try:
            request = os.read(self.device, 1 << 17)
        except OSError as e:
            if e.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                return
            raise
        _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
        self.kinds.append(NAMES.get(opcode, opcode))
        if NAMES.get(opcode) in self.hang and node != 1:
            self.waiting.append((opcode, unique, node, request[40:]))
        else:
            self.answer(opcode, unique, node, request[40:])

    def answer(self, opcode, unique, node, body):
        if opcode == INIT:
            self.reply(unique, struct.pack("<IIIIHHIIHHI7I", 7, 31, 65536, 0, 64, 48, 1 << 16, 1, 32, 0, 0, *[0] * 7))
        elif opcode == LOOKUP:
            self.reply(unique, struct.pack("<QQQQII", 2, 0, 0, 0, 0, 0) + self.attributes(2))
        elif opcode == GETATTR:
            self.reply(unique, struct.pack("<QII", 0, 0, 0) + self.attributes(node))
        elif opcode == OPEN:
            self.reply(unique, struct.pack("<QII", 1, self.open_flags, 0))
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


def main(parent, device, control):
    # Dead with the thread that started it: that one's exit may itself wait for an answer from here.
    libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    try:
        Server(device, Connection(control)).serve()
    except EOFError:
        pass


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
