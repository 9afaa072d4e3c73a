"""asking: a daemon beyond loopback, and clients that ask it over both doors with a token, a certificate, both or none."""
import re
import signal
import subprocess
import time

import grpc_client

grpc_client.need("grpc", "numpy")
import grpc  # noqa: E402

from connection import Connection  # noqa: E402
from cured_daemon import CLIENT, environment, need_binary, wait_for  # noqa: E402
from cured_wire import CALL, END, HELLO, bytes_field, frame, hello_message  # noqa: E402
from test_tls import TlsTest, pb  # noqa: E402

OK, PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNAUTHENTICATED = 0, 7, 8, 16


def until(seconds):
    return "until=" + time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def new_line(name, rest):
    """(token, line): those of cured-client, which gets what it has options for, and words that it has none for."""
    limits = ",".join(word for word in rest.split() if not word.startswith(("until=", "may=")))
    flags = ["--limits", limits] if limits else []
    said = subprocess.run([CLIENT, "token", name, *flags], capture_output=True, text=True, check=True, env=environment()).stdout
    token, line = [line.partition(": ")[2] for line in said.splitlines()]
    return token, " ".join([line] + [word for word in rest.split() if word.startswith(("until=", "may="))]) + "\n"


class Asking(TlsTest):
    FAR = True
    WHO = {}    # of tokens: the rest of its line, then what each of METHODS gives
    LINES = ""  # the others of the file of principals
    METHODS = ("reduce", "info", "regions")

    @classmethod
    def setUpClass(cls):
        need_binary(CLIENT)
        cls.token, lines = {}, []
        for name, (rest, _) in cls.WHO.items():
            cls.token[name], line = new_line(name, rest)
            lines.append(line)
        cls.TOKENS = "".join(lines) + cls.LINES
        super().setUpClass()

    def native(self, name=None, client=None):
        """A connection over TLS with that token and certificate."""
        c = Connection(self.tunnel(client).address, hello=False)
        self.addCleanup(c.close)
        payload = hello_message() + (bytes_field(5, self.token[name].encode()) if name else b"")
        c.send(frame(HELLO, payload=payload))
        c.until(lambda: c.welcome or c.reason)
        return c

    def ask_native(self, name=None, client=None):
        return self.ask_connection(self.native(name, client))

    def ask_connection(self, c):
        """What each of METHODS gives: None or a status."""
        if c.reason:
            return [c.reason] * 3
        got = [c.inline("u8", ["sum"], bytes([1, 2, 3])).status, self.call(c, bytes_field(4, b""))]
        shm = self.call(c, bytes_field(6, b"\x08\x01" + bytes_field(3, bytes_field(1, b"/cured-none"))))
        return got + [None if "over Unix sockets only" in shm.message else shm]  # the next word to whoever may

    def call(self, c, request):
        stream = c.open_stream()
        c.send(frame(CALL, stream, request, END))
        c.until(lambda: c.answers[stream].over)
        return c.answers[stream].status

    def ask_grpc(self, name=None, client=None):
        """The first two of METHODS, which gRPC has."""
        return self.ask_stub(self.channel(client), [("authorization", "Bearer " + self.token[name])] if name else [])

    @staticmethod
    def ask_stub(stub, metadata=()):
        got = []
        for method, message in ((stub.Reduce, pb.ReduceRequest(dtype=pb.DTYPE_U8, ops=[pb.OP_SUM], data=b"\1\2")),
                                (stub.Info, pb.InfoRequest())):
            try:
                method(message, timeout=60, metadata=list(metadata))
                got.append(None)
            except grpc.RpcError as error:
                got.append(error)
        return got

    @staticmethod
    def code(status):
        if status is None:
            return OK
        return status.code if not isinstance(status, grpc.RpcError) else status.code().value[0]

    @staticmethod
    def sentence(status):
        return status.message if not isinstance(status, grpc.RpcError) else status.details()

    def check_answers(self, said, wanted, got, private=()):
        """Each of METHODS gave its code, with a sentence that has none of the words that are another's."""
        for method, code, status in zip(self.METHODS, wanted, got):
            self.assertEqual(code, self.code(status), (said, method, status))
            if code == PERMISSION_DENIED:
                self.assertIn('"%s"' % method, self.sentence(status))
            if code:  # nothing of another's: names, numbers, addresses
                self.assertNotRegex(self.sentence(status), "|".join([*private, r"0x", r"\d{4,}"]))

    def rewrite(self, change):
        """The file of principals becomes change(its text), and again what it was when the test is over."""
        path = self.ca.path("principals")
        with open(path) as f:
            before = f.read()
        self.addCleanup(self.reload, path, before)
        self.reload(path, change(before))

    def reload(self, path, text):
        with open(path, "w") as f:
            f.write(text)
        lines = len(self.daemon.lines)
        self.daemon.process.send_signal(signal.SIGHUP)
        wait_for("the reload", lambda: any(re.search("take a restart|stays as it was", line) for line in self.daemon.lines[lines:]))
