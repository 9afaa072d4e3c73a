"""test_gone_peers: clients that are gone without the end of their stream being seen. Their connections end all the same."""
import array
import resource
import socket
import struct
import unittest

from connection import Closed
from cured_daemon import Daemon, DaemonTest, main, wait_for
from cured_wire import END, HELLO, PING, RESOURCE_EXHAUSTED, descriptor_input, frame, hello_message


class OwnEnd(DaemonTest):
    OPTIONS = {"stall_timeout_ms": 2000}

    def test_a_client_that_passes_its_own_socket(self):
        """The daemon holds the client's end open itself, so the end of the stream never comes."""
        held = self.daemon.descriptors()
        for passed in (1, 3):
            client = socket.socket(socket.AF_UNIX)
            client.connect(self.daemon.address.split(":", 1)[1])
            client.sendall(frame(HELLO, payload=hello_message()))
            own = array.array("i", [client.fileno()] * passed)
            client.sendmsg([frame(PING, payload=b"x")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, own)])
            client.close()
        wait_for("the connections to end", lambda: self.daemon.gauges()["connections"] == 1)
        wait_for("the descriptors to be closed", lambda: self.daemon.descriptors() == held)
        self.assert_serves()

    def test_descriptors_that_are_taken_are_not_owed(self):
        """A connection that waits between frames stays, when its descriptors went with their call."""
        with self.connect() as good, self.daemon.connect(hello=False) as owing:
            file = self.memfd(b"\1" * 8)
            stream = good.start_descriptor("u8", ["sum"], file.fileno())
            self.assertEqual(8, int.from_bytes(good.wait(stream).results[0].value, "little"))
            owing.send(frame(HELLO, payload=hello_message()) + frame(PING, payload=b"x")[:5])
            owing.read_rest()  # one limit later
            self.assertEqual(b"on", good.ping(b"on"))


class Parked(DaemonTest):
    """Descriptors that no frame takes are few in all, or one client could fill the daemon's table and others would lose theirs."""
    LIMITS = staticmethod(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)))
    OPTIONS = {"stall_timeout_ms": 3600000}

    def park(self, count):
        """A connection with so many descriptors that no frame takes."""
        client = self.connect()
        with open("/dev/null", "rb") as null:
            passed = array.array("i", [null.fileno()] * count)
            client.socket.sendmsg([frame(PING, payload=b"x")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)])
        client.until(lambda: client.pongs == [b"x"])
        return client

    def is_open(self, client):
        try:
            return client.ping(b"y") == b"y"
        except Closed:
            self.assert_sentence(client.reason, RESOURCE_EXHAUSTED, "descriptors")
            client.close()
            return False

    def setUp(self):
        """What the last test left is closed: descriptors are counted here."""
        wait_for("an idle daemon", lambda: not any(self.daemon.busy_gauges().values()))

    def test_no_client_fills_the_table(self):
        victim = self.connect()
        victim.greet()
        held = self.daemon.descriptors()
        came = []
        for _ in range(40):  # closing may block, so others do it; those of one user that wait for that count, too
            came.append(self.park(7))
            wait_for("what was lost to be closed", lambda: self.daemon.descriptors() <= held + len(came) + 14)
        parked = [client for client in came if self.is_open(client)]
        self.assertEqual(2, len(parked))
        wait_for("the others' descriptors to be closed", lambda: self.daemon.descriptors() == held + 2 + 14)
        stream = victim.start_descriptor("u8", ["sum"], self.memfd(b"\1" * 8).fileno())
        self.assertEqual(8, int.from_bytes(victim.wait(stream).results[0].value, "little"))
        for client in parked:
            client.close()

    def test_the_one_that_leaves_most_ends(self):
        """A frame may come in pieces. Whoever sends one while others have left all that may wait is not the one to end."""
        for left in (7, 7), (1,) * 14:  # 16 may wait, 14 of one user
            ended = self.daemon.counters()["connections_ended"]
            victim = self.connect()
            victim.greet()
            parked = [self.park(count) for count in left]
            stream, file = victim.open_stream(), self.memfd(b"\1" * 8)
            call = victim.call_frame(stream, "u8", ["sum"], descriptor_input(0, None), flags=END, descriptors=1)
            passed = array.array("i", [file.fileno()])
            victim.socket.sendmsg([call[:20]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)])
            wait_for("a connection to end", lambda: self.daemon.counters()["connections_ended"] == ended + 1)
            victim.send(call[20:])
            self.assertEqual(8, int.from_bytes(victim.wait(stream).results[0].value, "little"))
            self.assertEqual([False] + [True] * (len(left) - 1), [self.is_open(client) for client in parked])
            for client in parked:
                client.close()
            wait_for("the rest to be gone", lambda: self.daemon.gauges()["connections"] == 2)
            victim.close()

    def test_those_sent_after_the_end_are_closed(self):
        """A connection that has failed reads on, so that its client learns why. What it is passed then waits for no frame."""
        held, ended = self.daemon.descriptors(), []
        with open("/dev/null", "rb") as null:
            passed = array.array("i", [null.fileno()] * 12)
            for _ in range(3):
                client = self.connect()
                client.send(b"no frame at all, but more than a header")
                client.until(lambda: client.reason, ended_is_fine=True)
                client.socket.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)])
                ended.append(client)
        with self.park(1) as client:
            self.assertTrue(self.is_open(client))
        for client in ended:
            client.close()
        wait_for("the descriptors to be closed", lambda: self.daemon.descriptors() == held)
        self.assert_serves()


class Keepalive(unittest.TestCase):
    def test_the_kernel_asks_whether_a_quiet_tcp_peer_lives(self):
        """/proc/net/tcp: timer 02 is the keepalive's. Without it a host without power would keep its connection for ever."""
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            daemon = Daemon(folder, listen=["tcp:127.0.0.1:0"])
            try:
                with daemon.connect() as client:
                    self.assertEqual(b"on", client.ping(b"on"))
                    host, port = client.socket.getpeername()
                    local = "%08X:%04X" % (struct.unpack("=I", socket.inet_aton(host))[0], port)
                    remote = "%08X:%04X" % (struct.unpack("=I", socket.inet_aton(host))[0], client.socket.getsockname()[1])

                    def timer():
                        with open("/proc/net/tcp") as table:
                            for line in table:
                                words = line.split()
                                if words[1:3] == [local, remote]:
                                    return words[5].split(":")[0]
                        return None
                    wait_for("the keepalive timer", lambda: timer() == "02")
            finally:
                daemon.stop()


if __name__ == "__main__":
    main()
