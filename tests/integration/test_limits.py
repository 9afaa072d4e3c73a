"""test_limits: limits by user: what one user may hold beside another, who ends when calls are short, and who sees whose use."""
import ctypes
import json
import os
import select
import subprocess
import tempfile
import time
import traceback
import unittest

from connection import HANG_S, Connection
from cured_daemon import CLIENT, SANITIZE, Daemon, DaemonTest, environment, main, wait_for
from cured_wire import (CANCEL, DATA, END, HELLO, RESOURCE_EXHAUSTED, beside_message, descriptor_input, frame, hello_message, mask_message,
                        region_input, stream_input)

STRANGER = 12345  # a user id that is nobody's


def can_be_another():
    """Whether this process may become another user."""
    return os.geteuid() == 0


class Limits(DaemonTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.chmod(cls.folder, 0o755)

    def as_stranger(self, work):
        """What work(connection) returns, a text, run by a process of another user."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(read)
                ctypes.CDLL(None).prctl(1, 9)
                os.setgroups([])
                os.setresgid(STRANGER, STRANGER, STRANGER)
                os.setresuid(STRANGER, STRANGER, STRANGER)
                with self.daemon.connect() as c:
                    os.write(write, work(c).encode())
                status = 0
            except BaseException:  # noqa: B902 (shown by the parent)
                os.write(write, traceback.format_exc().encode())
            finally:
                os._exit(status)
        os.close(write)
        with os.fdopen(read) as f:
            text = f.read()
        _, status = os.waitpid(child, 0)
        self.assertEqual(0, status, text)
        return text

    def setUp(self):
        if not can_be_another():
            self.skipTest("only root can become another user")


def inline(c):
    return c.inline("u8", ["sum"], b"123")


def until_admitted(c, ask=inline):
    """Asks until the call is answered. Refusals before that."""
    refused, limit = 0, time.monotonic() + HANG_S
    while True:
        answer = ask(c)
        if answer.status is None:
            return refused
        if answer.status.code != RESOURCE_EXHAUSTED or time.monotonic() > limit:
            raise AssertionError(answer.status)
        refused += 1
        time.sleep(answer.status.retry_after_ms / 1000)


class Calls(Limits):
    OPTIONS = {"stall_timeout_ms": 2000, "socket_mode": "0666"}
    CONNECTIONS, EACH = 14, 256  # seven eighths of 4,096
    LEFT = (512 - 64) // 2       # for the next user, but for the last 64

    def test_hoarders_do_not_keep_another_out(self):
        """Fourteen connections that send nothing hold all calls that one user may. Another finds room at once, and more when what
        there is left is taken, and a slow pipe lives."""
        pipe_stream, pipe, conns = None, None, []
        for _ in range(self.CONNECTIONS):
            conns.append(self.connect())
        for c in conns:
            streams = [c.start_stream("f32", ["sum"], None) for _ in range(self.EACH)]
            if pipe is None:
                pipe, pipe_stream = c, streams[7]
            c.ping()
        self.assertEqual(self.CONNECTIONS * self.EACH, self.daemon.counters()["calls"])
        sent = [0]

        def trickle():
            pipe.send_data(pipe_stream, bytes(4000))
            sent[0] += 4000
            time.sleep(0.02)

        alone = conns[1].inline("u8", ["sum"], b"1")  # there is a limit on the connection, too
        self.assert_sentence(alone.status, RESOURCE_EXHAUSTED, "max_jobs_per_connection")
        pid = os.fork()
        if pid == 0:
            try:
                def ask(c):
                    for _ in range(self.LEFT):
                        c.start_stream("u8", ["sum"], None)
                    assert all(not answer.over for answer in c.answers.values())
                    return str(until_admitted(c))

                refused = self.as_stranger(ask)
                os._exit(0 if int(refused) else 1)
            except BaseException:  # noqa: B902
                traceback.print_exc()
                os._exit(1)
        limit = time.monotonic() + HANG_S
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            self.assertLess(time.monotonic(), limit, "the other user was never let in")
            trickle()
        self.assertGreater(self.daemon.counters()["calls_impatient_total"], 0)
        pipe.send_data(pipe_stream, b"", end=True)
        answer = pipe.wait(pipe_stream)
        self.assertIsNone(answer.status)
        self.assertEqual(sent[0] // 4, answer.count)

    def test_nothing_new_before_the_rule_holds(self):
        """Beside another user nobody begins more calls than are free."""
        hoards = [self.connect() for _ in range(12)]
        for c in hoards:
            for _ in range(self.EACH):
                c.start_stream("f32", ["sum"], None)
            c.ping()

        def ask(c):
            for _ in range(200):  # 12 * 256 of 4,096 are held by the first: 1,024 are free
                c.start_stream("u8", ["sum"], None)
            return "%d" % until_admitted(c)

        self.assertEqual("0", self.as_stranger(ask))
        # This process is the only user again once the stranger is gone: then it may have all.
        late = self.connect()
        wait_for("room for one who is alone", lambda: late.inline("u8", ["sum"], b"1").status is None)


class Takers(Limits):
    OPTIONS = {"stall_timeout_ms": 1000, "socket_mode": "0666", "max_jobs": 9}  # of one user 8

    def test_who_gives_no_credit_does_not_keep_another_out(self):
        """Answers along an axis that nobody takes: of calls without input, and of calls that pause with input left."""
        for rows in 0, 1 << 21:
            wait_for("what the calls before held", lambda: not any(self.daemon.busy_gauges().values()))
            ended = self.daemon.counters()["calls_impatient_total"]
            with self.connect() as hoarder:
                for _ in range(8):
                    stream = hoarder.open_stream()
                    call = hoarder.call_frame(stream, "u8", ["sum"], stream_input(rows), axis=(rows or 1 << 20, int(rows > 0), 1))
                    hoarder.answers[stream].auto_credit = False
                    half = frame(DATA, stream, bytes(rows // 2))
                    hoarder.send(call + half + frame(DATA, stream, bytes(rows // 2), END))
                hoarder.until(lambda: not any(answer.window for answer in hoarder.answers.values()))
                self.as_stranger(lambda c: str(until_admitted(c)))
                self.assertGreater(self.daemon.counters()["calls_impatient_total"], ended)

    def test_who_announces_all_bytes_does_not_keep_another_out(self):
        """Four calls would announce 2^50 bytes each, all of max_bytes_in_flight: the fourth is refused."""
        with self.connect() as hoarder:
            for _ in range(3):
                hoarder.start_stream("u8", ["sum"], 1 << 50)
            fourth = hoarder.wait(hoarder.start_stream("u8", ["sum"], 1 << 50))
            self.assert_sentence(fourth.status, RESOURCE_EXHAUSTED, "max_bytes_in_flight", "all that one user may hold")
            self.assertEqual("0", self.as_stranger(lambda c: str(until_admitted(c))))


class States(Limits):
    OPTIONS = {"stall_timeout_ms": 1000, "socket_mode": "0666", "max_state_bytes": 64 << 20, "cpu_workers": 2}

    def test_who_gives_no_credit_does_not_keep_memory_from_another(self):
        """Answers along an axis hold max_state_bytes. Calls that hold none of it do not hide them."""
        rows = 1 << 20

        def ask(c, takes=True):
            stream = c.open_stream()
            call = c.call_frame(stream, "u8", ["sum"], stream_input(rows), axis=(rows, 1, 1))
            c.answers[stream].auto_credit = takes
            c.send(call + frame(DATA, stream, bytes(rows), END))
            return stream

        with self.connect() as hoarder, self.connect() as cover:
            for _ in range(100):
                cover.start_stream("u8", ["sum"], None)
            cover.ping()
            held = 0
            while True:
                stream = ask(hoarder, takes=False)
                hoarder.until(lambda: hoarder.answers[stream].over or not hoarder.answers[stream].window)
                if hoarder.answers[stream].over:
                    break
                held += 1
            self.assert_sentence(hoarder.answers[stream].status, RESOURCE_EXHAUSTED, "max_state_bytes")
            self.assertGreater(held, 1)
            refused = self.as_stranger(lambda c: str(until_admitted(c, lambda c: c.wait(ask(c)))))
            self.assertGreater(int(refused), 0)
            self.assertGreater(self.daemon.counters()["calls_impatient_total"], 0)


class Bytes(Limits):
    OPTIONS = {"stall_timeout_ms": 1000, "socket_mode": "0666", "max_bytes_in_flight": (4 << 20) * 8 // 7 + 1}  # of one user 4 MiB

    def test_uploads_of_unknown_length_make_room_as_they_grow(self):
        with self.connect() as hoarder:
            for _ in range(4):
                hoarder.send_data(hoarder.start_stream("u8", ["sum"], None), bytes(1 << 20))
            hoarder.ping()

            def ask(c):
                stream = c.start_stream("u8", ["sum"], None)
                c.send_data(stream, bytes(400000), end=True)
                return c.wait(stream)

            refused = self.as_stranger(lambda c: str(until_admitted(c, ask)))
            self.assertGreater(int(refused), 0)
            self.assertGreater(self.daemon.counters()["calls_impatient_total"], 0)


class Regions(Limits):
    OPTIONS = {"max_regions": 8, "max_regions_per_user": 6, "socket_mode": "0666", "max_waiting_descriptors_per_user": 4}

    def test_regions_go_by_user(self):
        mine = self.connect()
        f = self.memfd(bytes(4096))
        for region in range(1, 7):
            self.assertEqual(4096, mine.register(region, f.fileno()))
        self.assert_sentence(mine.register(7, f.fileno()), RESOURCE_EXHAUSTED, "max_regions_per_user, 6", "unregister some")

        def theirs(c):
            with tempfile.TemporaryFile(dir="/tmp") as own:
                own.write(bytes(100))
                own.flush()
                first, second = c.register(1, own.fileno()), c.register(2, own.fileno())
            return "%s; %s" % (first, second.message)

        first, second = self.as_stranger(theirs).split("; ", 1)
        self.assertEqual("100", first)
        self.assertIn("free of max_regions, 8", second)
        for region in range(1, 7):
            mine.unregister(region)

    def test_info_shows_ones_own_use(self):
        mine = self.connect()
        f = self.memfd(bytes(4096))
        self.assertEqual(4096, mine.register(9, f.fileno()))

        def theirs(c):
            c.start_stream("u8", ["sum"], None)
            return json.dumps(c.info()["users"])

        own = mine.info()["users"]
        self.assertEqual([True], [user["own"] for user in own])
        self.assertEqual("uid 0", own[0]["name"])
        self.assertEqual((1, 4096), (own[0]["used"]["regions"], own[0]["used"]["region_bytes"]))
        self.assertEqual(6, own[0]["limit"]["regions"])
        self.assertEqual(3584, own[0]["limit"]["calls"])
        seen = json.loads(self.as_stranger(theirs))
        self.assertEqual([("uid %d" % STRANGER, True)], [(user["name"], user["own"]) for user in seen])
        self.assertEqual((1, 1), (seen[0]["used"]["connections"], seen[0]["used"]["calls"]))
        self.assertLessEqual(seen[0]["limit"]["calls"], 2048)
        mine.unregister(9)

    def test_root_sees_everybody(self):
        """Over TCP an address is a user, which sees itself only."""
        daemon = Daemon(self.folder, listen=["unix:" + os.path.join(self.folder, "both.sock"), "tcp:127.0.0.1:0"], max_connections=600)
        self.addCleanup(daemon.stop)
        with daemon.connect() as mine, Connection(daemon.addresses[1]) as other:
            mine.start_stream("u8", ["sum"], None)
            mine.ping()
            other.start_stream("u8", ["sum"], None)
            seen = other.info()["users"]
            self.assertEqual([("tcp 127.0.0.1", True)], [(user["name"], user["own"]) for user in seen])
            seen = mine.info()["users"]
            self.assertEqual([("uid 0", True), ("tcp 127.0.0.1", False)], [(user["name"], user["own"]) for user in seen])
            self.assertEqual((1, 1), (seen[1]["used"]["connections"], seen[1]["used"]["calls"]))
            env = {**environment(), "CURED_CONNECT": daemon.address}
            text = subprocess.run([CLIENT, "info"], env=env, stdout=subprocess.PIPE, check=True).stdout.decode()
            self.assertIn("own, uid 0 calls 1 of 2048\n", text)
            self.assertIn("\ntcp 127.0.0.1 connections 1 of 283\n", text)
            whole = subprocess.run([CLIENT, "info", "--json"], env=env, stdout=subprocess.PIPE, check=True).stdout
            users = json.loads(whole)["users"]
            self.assertEqual([True, False], [user["own"] for user in users])
            self.assertEqual(1, users[0]["used"]["calls"])

    def test_descriptors_that_wait_go_by_user(self):
        """Beyond the option the connection that leaves most of them ends."""
        f = self.memfd(bytes(8))
        c = self.connect()
        c.send(b"C", [f.fileno()] * 5)
        status = c.read_rest()
        self.assert_sentence(status, RESOURCE_EXHAUSTED, "max_waiting_descriptors_per_user is 4")
        self.assert_serves()

    def test_descriptors_that_wait_for_masks(self):
        """Their client alone could end that: the fifth call is refused, and what comes, is cancelled or leaves makes room."""
        f, mask = self.memfd(bytes(range(8))), {"mask": mask_message(beside_message(8))}

        def call(c):
            stream = c.open_stream()
            c.send(c.call_frame(stream, "u8", ["sum"], descriptor_input(0, 8), flags=0, descriptors=1, **mask), [f.fileno()])
            return stream
        first, second = self.connect(), self.connect()
        before = self.daemon.descriptors()
        streams = [call(first) for _ in range(4)]
        wait_for("four to wait", lambda: self.daemon.descriptors() >= before + 4)
        self.assert_sentence(second.wait(call(second)).status, RESOURCE_EXHAUSTED, "max_waiting_descriptors_per_user is 4")
        self.assertEqual(28, int.from_bytes(second.descriptor("u8", ["sum"], f.fileno()).results[0].value, "little"), "without a mask nothing waits")
        first.send_data(streams[0], b"\1" * 8, True)
        self.assertEqual(28, int.from_bytes(first.wait(streams[0]).results[0].value, "little"))
        first.send(frame(CANCEL, streams[1]))
        first.wait(streams[1])
        more = [call(second) for _ in range(2)]
        self.assert_sentence(second.wait(call(second)).status, RESOURCE_EXHAUSTED, "max_waiting_descriptors_per_user is 4")
        first.close()
        wait_for("room", lambda: self.daemon.descriptors() <= before + 3)
        for stream in more + [call(second)]:
            second.send_data(stream, b"\1" * 8, True)
            self.assertEqual(28, int.from_bytes(second.wait(stream).results[0].value, "little"))
        self.assert_serves()


class Forks(Limits):
    OPTIONS = {"cpu_workers": 1, "socket_mode": "0666"}
    PROCESSES, THEIRS, OWN, JOB_BYTES = 4, 40, 20, (1 if SANITIZE else 4) << 20
    SLOW = ["sum", "sumsq", "prod", "var", "norm1"]

    def start(self, c, count):
        return [c.start_descriptor("f32", self.SLOW, self.large.fileno()) for _ in range(count)]

    def fork(self):
        """A process with jobs in line, and the pipe by which it says so. It ends when all are answered."""
        ready, said = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                with Connection(self.daemon.address) as c:
                    streams = self.start(c, self.THEIRS)
                    os.write(said, b".")
                    os._exit(int(any(c.wait(stream).status is not None for stream in streams)))
            finally:
                os._exit(2)
        os.close(said)
        self.addCleanup(os.close, ready)
        return pid, ready

    def folded_meanwhile(self):
        """Bytes folded in all from when a user asks for jobs, in one write, until that user sees their answers."""
        processes = [self.fork() for _ in range(self.PROCESSES)]
        self.assertEqual([b"."] * self.PROCESSES, [os.read(ready, 1) for _, ready in processes])

        def ask(c):
            self.assertEqual(self.JOB_BYTES, c.register(1, self.large.fileno()))
            before = c.info()["counters"]["input_bytes_total"]
            streams = [c.open_stream() for _ in range(self.OWN)]
            batch = b"".join(c.call_frame(stream, "f32", self.SLOW, region_input(1), flags=END) for stream in streams)
            c.send(batch)
            for stream in streams:
                c.wait(stream)
            return str(c.info()["counters"]["input_bytes_total"] - before)

        folded = int(self.as_stranger(ask))
        self.assertEqual([0] * self.PROCESSES, [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid, _ in processes])
        return folded

    def test_a_user_who_forks_gets_no_more(self):
        """While another user's jobs are folded, four processes together get about as much as that user's one. Of several tries the
        best counts, because a busy machine may give that user no time for a while."""
        self.large, own, tries = self.file(bytes(self.JOB_BYTES)), self.OWN * self.JOB_BYTES, []
        while len(tries) < 5 and min(tries, default=3 * own) >= 3 * own:
            tries.append(self.folded_meanwhile())
        print("%s MiB folded until %d were" % ([folded >> 20 for folded in tries], own >> 20))
        self.assertLess(min(tries), 3 * own)


class Refused(DaemonTest):
    OPTIONS = {"max_connections_per_user": 2}

    def test_descriptors_of_refused_connections_are_closed(self):
        f = self.memfd(bytes(8))
        with self.connect() as only:  # beside the one that asks for counters
            only.ping()
            before, refused = self.daemon.descriptors(), self.daemon.counters()["connections_refused"]
            for first_bytes in (frame(HELLO, 0, hello_message()), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
                for _ in range(10):
                    with Connection(self.daemon.address, hello=False) as c:
                        c.send(first_bytes, [f.fileno()] * 3)
                        c.poll(select.POLLIN, HANG_S)
                wait_for("what was passed to be closed", lambda: self.daemon.descriptors() <= before)
            self.assertEqual(refused + 20, self.daemon.counters()["connections_refused"])


class Memory(DaemonTest):
    """What a burst took comes back to the kernel."""

    CONNECTIONS, EACH = 16, 250

    def test_memory_returns_after_a_burst(self):
        if SANITIZE:
            self.skipTest("a sanitizer keeps memory of its own")
        with self.daemon.connect() as c:
            c.stream("f64", ["sum", "prod", "var"], bytes(64 << 20))  # what is made once is there
        before = self.daemon.rss_bytes()
        conns = [self.connect() for _ in range(self.CONNECTIONS)]
        for c in conns:
            for _ in range(self.EACH):
                c.send_data(c.start_stream("f64", ["sum", "prod", "var"], 1 << 20), bytes(60001))
            c.ping()
        burst = self.daemon.rss_bytes()
        self.assertGreater(burst, 1.5 * before, "the burst is too small to show anything")
        for c in conns:
            c.close()
        wait_for("memory to come back", lambda: self.daemon.rss_bytes() <= 1.2 * before)
        print("before %d MiB, then %d, then %d" % (before >> 20, burst >> 20, self.daemon.rss_bytes() >> 20))


if __name__ == "__main__":
    main()
