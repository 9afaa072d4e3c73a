"""several: a daemon with several users, whoever runs the test: its own user on the Unix socket, and others by tokens over TCP."""
import os
import subprocess
import tempfile

from connection import Connection
from cured_daemon import CLIENT, Daemon, DaemonTest, environment, main, need_binary, wait_for  # noqa: F401
from cured_wire import HELLO, bytes_field, frame, hello_message


def make_token(name):
    """(token, line of principals)."""
    said = subprocess.run([CLIENT, "token", name], capture_output=True, text=True, check=True, env=environment()).stdout
    return [line.partition(": ")[2] for line in said.splitlines()]


class SeveralUsers(DaemonTest):
    USERS = ()
    LISTEN = ("tcp:127.0.0.1:0",)  # beside the Unix socket

    @classmethod
    def setUpClass(cls):
        need_binary(CLIENT)
        cls.tokens, lines = {}, []
        for name in cls.USERS:
            cls.tokens[name], line = make_token(name)
            lines.append(line + "\n")
        with tempfile.NamedTemporaryFile("w", prefix="cured-it-", delete=False) as f:
            f.writelines(lines)
        cls.addClassCleanup(os.unlink, f.name)
        cls.OPTIONS = {**cls.OPTIONS, "principals": f.name}
        super().setUpClass()

    @classmethod
    def start_daemon(cls):
        listen = ["unix:" + os.path.join(cls.folder, "cured.sock"), *cls.LISTEN]
        return Daemon(cls.folder, listen, cls.LIMITS, cls.ENV, cls.PROGRAM, **cls.OPTIONS)

    def as_user(self, name, waits=True):
        """A connection of that user, which the daemon has welcomed or refused (.reason), if the test waits for that."""
        c = Connection(self.daemon.addresses[1], hello=False)
        self.addCleanup(c.close)
        c.send(frame(HELLO, payload=hello_message() + bytes_field(5, self.tokens[name].encode())))
        if waits:
            c.until(lambda: c.welcome or c.reason, ended_is_fine=True)
        return c

    def be_alone(self, c):
        """Waits until the user of c, who may hold no call yet, is the only one."""
        if self.daemon.watch:
            self.daemon.watch.close()
            self.daemon.watch = None
        lone = 4096 - 64 - (4096 - 64) // 8
        wait_for("the others to be gone", lambda: c.info()["users"][0]["limit"]["calls"] == lone)

    def assert_answers(self, c):
        self.assertIsNone(c.reason)
        answer = c.inline("u8", ["sum"], bytes([1, 2, 3]))
        self.assertIsNone(answer.status)
        self.assertEqual((6).to_bytes(8, "little"), answer.results[0].value)
