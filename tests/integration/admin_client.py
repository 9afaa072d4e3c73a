"""admin_client: a client of the daemon's door for operators, for tests: HTTP/1.1 in raw bytes, and sloppy where a test wants it."""
import json
import os
import re
import socket
import threading

HANG_S = 180  # only catches hangs: nothing here waits that long


class Answer:
    """One answer: status, headers (names in small letters), body."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


def connect(address, wrap=None):
    """A socket to "unix:PATH" or "tcp:HOST:PORT"; wrap: what makes it one of TLS."""
    kind, _, rest = address.partition(":")
    if kind == "unix":
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(HANG_S)
        s.connect(rest)
        return s
    host, _, port = rest.rpartition(":")
    s = socket.create_connection((host, int(port)), HANG_S)
    return wrap(s) if wrap else s


def request(path="/healthz/live", method="GET", host="localhost", version="1.1", **headers):
    lines = ["%s %s HTTP/%s" % (method, path, version)] + (["Host: " + host] if host else [])
    lines += ["%s: %s" % (name.replace("_", "-"), value) for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class Reader:
    """Answers from a socket, one after the other."""

    def __init__(self, s):
        self.file = s.makefile("rb")

    def answer(self, head=False):
        """The next one; None at the end of the connection. head: it answers HEAD."""
        line = self.file.readline()
        if not line:
            return None
        status = int(re.fullmatch(rb"HTTP/1\.1 (\d{3}) [A-Za-z ]+\r\n", line).group(1))
        headers = {}
        while True:
            line = self.file.readline()
            if line == b"\r\n":
                break
            name, _, value = line.decode("ascii").rstrip("\r\n").partition(": ")
            if name.lower() in headers:
                raise AssertionError("%s is given twice" % name)
            headers[name.lower()] = value
        body = b"" if head else self.file.read(int(headers["content-length"]))
        return Answer(status, headers, body)

    def close(self):
        self.file.close()


def exchange(address, data, count=1, end=False, wrap=None):
    """Sends data and reads so many answers, fewer where the connection ends. end: says that nothing more comes."""
    with connect(address, wrap) as s:
        reader = Reader(s)
        try:
            s.sendall(data)
            if end:
                s.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it was answered before it was sent
        answers = []
        try:
            while len(answers) < count:
                one = reader.answer()
                if one is None:
                    break
                answers.append(one)
        finally:
            reader.close()
        return answers


def get(address, path, wrap=None, **headers):
    answers = exchange(address, request(path, **headers), wrap=wrap)
    if not answers:
        raise ConnectionError("%s was not answered: the connection ended" % path)
    return answers[0]


def hurry(task):
    """A thread or a process that must do something every second, on a busy machine too."""
    try:
        os.setpriority(os.PRIO_PROCESS, task, -10)
    except PermissionError:
        pass


class Trickle:
    """A call that stays in flight, a byte at a time: a draining daemon ends calls that stand still for a second."""

    def __init__(self, connection):
        self.connection, self.sent, self.over = connection, 0, threading.Event()
        self.lock = threading.Lock()  # of who uses the connection
        self.stream = connection.start_stream("u8", ["sum"])
        self.thread = threading.Thread(target=self.go)
        self.thread.start()

    def go(self):
        hurry(threading.get_native_id())
        while not self.over.wait(0.05):
            with self.lock:
                self.connection.send_data(self.stream, b"\1")
            self.sent += 1

    def end(self):
        """The sum, once the call is over."""
        self.over.set()
        self.thread.join()
        self.connection.send_data(self.stream, b"\1", end=True)
        return int.from_bytes(self.connection.wait(self.stream).results[0].value, "little") - self.sent


def metrics(address):
    """Every series of /metrics by its name with labels."""
    values = {}
    for line in get(address, "/metrics").body.decode().splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            if name in values:
                raise AssertionError("%s is there twice" % name)
            values[name] = float(value)
    return values
