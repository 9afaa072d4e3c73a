"""test_lifecycle: start and end of the daemon: sockets, locks, addresses, options, draining, and what a kill leaves behind."""
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
import unittest

from admin_client import Trickle
from connection import HANG_S, Closed, Connection
from cured_daemon import CURED, Daemon, environment, main, need_binary, wait_for
from cured_wire import (CALL, END, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, UNAVAILABLE, beside_message, call_message, descriptor_input,
                        frame, mask_message, reduce_message, stream_input)
from expected import expect_all, plain


class Lifecycle(unittest.TestCase):
    def setUp(self):
        need_binary(CURED)
        self.folder = tempfile.mkdtemp(prefix="cured-it-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.path = os.path.join(self.folder, "cured.sock")

    def start(self, **options):
        daemon = Daemon(self.folder, **options)
        self.addCleanup(daemon.stop, signal.SIGKILL)
        return daemon

    def run_cured(self, *flags, env=None):
        """(exit status, stdout, stderr) of a daemon that ends by itself."""
        done = subprocess.run([CURED, *flags], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG_S,
                              env=environment(**(env or {})), cwd=self.folder)
        return done.returncode, done.stdout, done.stderr

    def refused(self, *flags, words=(), env=None):
        status, out, err = self.run_cured(*flags, env=env)
        self.assertNotIn(status, (0, -signal.SIGABRT, -signal.SIGSEGV), err)
        for word in words:
            self.assertIn(word, out + err)
        self.assertNotIn("Sanitizer", err)
        return status

    def serves(self, address):
        with Connection(address) as c:
            self.assertEqual(expect_all(["sum"], "f32", plain("f32", 10)), c.inline("f32", ["sum"], plain("f32", 10)).keys())


class Sockets(Lifecycle):
    def test_mode(self):
        for option, wanted in ((None, 0o660), ("0600", 0o600), ("0666", 0o666)):
            daemon = self.start(**({"socket_mode": option} if option else {}))
            self.assertEqual(wanted, stat.S_IMODE(os.stat(self.path).st_mode))
            daemon.check_end(self, daemon.stop())
            self.assertFalse(os.path.exists(self.path), "the socket's file outlives the daemon")

    def test_an_address_in_use_is_named(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "tcp:127.0.0.1:%d" % taken.getsockname()[1]
            self.refused("--listen", address, words=["listen: cannot bind %s: Address already in use" % address])

    def test_second_daemon_is_refused(self):
        first = self.start()
        self.refused("--listen", "unix:" + self.path, words=[self.path, "live"])
        self.serves(first.address)
        first.check_end(self, first.stop())

    def test_second_daemon_without_the_lock_file_is_refused(self):
        """Somebody removed the lock file: the socket still answers, so it is not taken."""
        first = self.start()
        os.unlink(self.path + ".lock")
        self.refused("--listen", "unix:" + self.path, words=[self.path])
        self.serves(first.address)
        first.check_end(self, first.stop())

    def test_starting_at_once_leaves_one(self):
        flags = [CURED, "--listen", "unix:" + self.path]
        all_of_them = [subprocess.Popen(flags, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, env=environment()) for _ in range(5)]
        lines = []
        try:
            lines = [self.first_word(p) for p in all_of_them]
            self.assertEqual(1, sum("listening" in line for line in lines), lines)
            self.serves("unix:" + self.path)
        finally:
            for process in all_of_them:
                process.terminate()
            for process in all_of_them:
                process.communicate(timeout=HANG_S)
        self.assertEqual(1, sum(p.returncode == 0 for p in all_of_them))

    def first_word(self, process):
        """The line by which a daemon says that it listens or why it does not."""
        for line in process.stderr:
            if b"listening" in line or b"ERROR" in line:
                return line.decode()
        return "nothing"

    def test_stale_socket_is_replaced(self):
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(self.path)
        stale.close()
        daemon = self.start()
        self.serves(daemon.address)
        daemon.check_end(self, daemon.stop())

    def test_other_files_are_left_alone(self):
        for make in (lambda: open(self.path, "w").close(), lambda: os.mkdir(self.path), lambda: os.mkfifo(self.path),
                     lambda: os.symlink("/etc/passwd", self.path)):
            make()
            before = os.lstat(self.path)
            self.refused("--listen", "unix:" + self.path, words=[self.path])
            self.assertEqual(before.st_ino, os.lstat(self.path).st_ino)
            os.rmdir(self.path) if os.path.isdir(self.path) and not os.path.islink(self.path) else os.unlink(self.path)

    def test_lock_file_may_not_be_a_link(self):
        target = os.path.join(self.folder, "victim")
        os.symlink(target, self.path + ".lock")
        self.refused("--listen", "unix:" + self.path)
        self.assertFalse(os.path.exists(target))

    def test_folder_missing_and_path_too_long(self):
        self.refused("--listen", "unix:%s/none/cured.sock" % self.folder, words=["none/cured.sock"])
        self.refused("--listen", "unix:/tmp/" + "x" * 200, words=["listen"])

    def test_killed_then_started_again(self):
        daemon = self.start()
        with daemon.connect() as c:
            c.start_stream("f32", ["sum"], None)
            c.ping()
            daemon.stop(signal.SIGKILL)
            with self.assertRaises(Closed):
                c.until(lambda: False)
        self.assertTrue(os.path.exists(self.path), "a killed daemon leaves its socket")
        again = self.start()
        self.serves(again.address)
        again.check_end(self, again.stop())

    def test_tcp(self):
        daemon = self.start(listen=["tcp:127.0.0.1:0", "unix:" + self.path])
        self.assertRegex(daemon.addresses[0], r"^tcp:127\.0\.0\.1:[1-9]\d*$")
        for address in daemon.addresses:
            self.serves(address)
            with Connection(address) as c:
                data = plain("f64", 200000)
                self.assertEqual(expect_all(["sum", "max"], "f64", data), c.stream("f64", ["sum", "max"], data).keys())
        self.refused("--listen", daemon.addresses[0], words=["listen"])
        daemon.check_end(self, daemon.stop())

    def test_tcp_takes_no_descriptors(self):
        daemon = self.start(listen=["tcp:127.0.0.1:0"])
        with daemon.connect() as c:
            stream = c.open_stream()
            c.send(c.call_frame(stream, "u8", ["sum"], b"\x12\x02\x18\x01", flags=END, descriptors=1))
            self.assertIn("descriptor", c.read_rest().message)
        with daemon.connect() as c:
            stream = c.open_stream()
            c.send(c.call_frame(stream, "u8", ["sum"], b"\x12\x02\x18\x01", flags=END))
            self.assertIn("descriptor", c.wait(stream).status.message)
        daemon.check_end(self, daemon.stop())

    def test_tcp_beyond_loopback_needs_insecure(self):
        for address in ("tcp:0.0.0.0:0", "tcp:[::]:0", "tcp:192.0.2.1:7000"):
            self.refused("--listen", address, words=["--insecure"])
        daemon = self.start(listen=["tcp:0.0.0.0:0"], insecure=True)
        self.serves("tcp:127.0.0.1:" + daemon.address.rsplit(":", 1)[1])
        daemon.check_end(self, daemon.stop())


class Options(Lifecycle):
    def test_help_and_version(self):
        status, out, _ = self.run_cured("--version")
        self.assertEqual(0, status)
        self.assertRegex(out, r"^cured \d+\.\d+\.\d+\n$")
        status, out, _ = self.run_cured("--help")
        self.assertEqual(0, status)
        for word in ("--listen", "--slabs", "--insecure", "--backend"):
            self.assertIn(word, out)

    def test_what_cannot_be_printed_is_no_success(self):
        for flag in ("--help", "--version", "--print-config", "--print-schema", "--check-config"):
            for out in ("/dev/full", None):  # None: there is no standard output
                with open(out or os.devnull, "wb") as file:
                    done = subprocess.run([CURED, "--listen", "unix:" + self.path, flag], stdout=file, stderr=subprocess.PIPE, timeout=HANG_S, env=environment(), cwd=self.folder,
                                          preexec_fn=None if out else lambda: os.close(1))
                self.assertEqual((74, b"cured: cannot write to standard output\n"), (done.returncode, done.stderr), flag)

    def test_without_standard_descriptors(self):
        """None of a client's sockets becomes the one that the log is written to."""
        process = subprocess.Popen([CURED, "--listen", "unix:" + self.path, "--log-level", "debug"], env=environment(),
                                   preexec_fn=lambda: [os.close(fd) for fd in range(3)])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_for("the socket", lambda: os.path.exists(self.path))
        for _ in range(4):
            self.serves("unix:" + self.path)
        self.assertEqual({"/dev/null"}, {os.readlink("/proc/%d/fd/%d" % (process.pid, fd)) for fd in range(3)})

    def config(self, text):
        path = os.path.join(self.folder, "cured.json")
        with open(path, "w") as f:
            f.write(text if isinstance(text, str) else json.dumps(text))
        return path

    def test_print_config_names_origins(self):
        path = self.config({"slabs": 7, "max_jobs": 99})
        status, out, err = self.run_cured("--config", path, "--print-config", "--max-jobs", "55", "--listen", "unix:/tmp/x",
                                          env={"CURED_LOG_LEVEL": "warn"})
        self.assertEqual(0, status, err)
        lines = {line.split()[0].strip('":='): line for line in out.splitlines() if line.strip()}
        for key, value, origin in (("slabs", "7", "file"), ("max_jobs", "55", "flag"), ("log_level", "warn", "environment"),
                                   ("stall_timeout_ms", "30000", "default")):
            self.assertIn(value, lines[key])
            self.assertIn(origin, lines[key])

    def test_check_config(self):
        self.assertEqual(0, self.run_cured("--config", self.config({"slabs": 8}), "--check-config", "--listen", "unix:/x")[0])
        for bad, words in (({"slobs": 8}, ["slobs", "cured.json"]), ({"slabs": 3}, ["slabs", "4"]),
                           ({"slabs": "many"}, ["slabs"]), ('{"slabs": 8, "slabs": 9}', ["slabs"]), ("{", ["cured.json"]),
                           ({"socket_mode": "0999"}, ["socket_mode"]), ({"backend": "tpu"}, ["backend", "tpu"])):
            self.refused("--config", self.config(bad), "--check-config", "--listen", "unix:/tmp/x", words=words)

    def test_bad_flags(self):
        for flags, words in ((["--nonsense"], ["nonsense"]), (["--slabs"], ["slabs"]), (["--slabs", "-1"], ["slabs"]),
                             (["--slabs", "8", "--slabs", "9"], ["slabs"]), (["--listen", "carrier-pigeon"], ["listen"]),
                             (["loose"], ["loose"]), (["--config", "/nonexistent.json"], ["nonexistent"])):
            self.assertEqual(64, self.refused(*flags, words=words), flags)

    def test_cuda_asked_for_and_not_there(self):
        status, _, err = self.run_cured("--backend", "cuda", "--listen", "unix:" + self.path)
        if status == 0:
            self.skipTest("this build has CUDA")
        self.assertIn("cuda", err)
        self.assertFalse(os.path.exists(self.path))

    def test_environment_configures(self):
        daemon = self.start(env={"CURED_MAX_JOBS_PER_CONNECTION": "3"})
        with daemon.connect() as c:
            self.assertEqual(3, c.greet()["limits"]["jobs_per_connection"])
        daemon.check_end(self, daemon.stop())


class Draining(Lifecycle):
    def test_running_calls_finish_and_new_ones_do_not_start(self):
        daemon = self.start()
        with daemon.connect() as c, daemon.connect() as idle:
            call = Trickle(c)
            wait_for("the call", lambda: idle.info()["counters"]["calls"] == 1)
            daemon.process.send_signal(signal.SIGTERM)
            wait_for("draining", lambda: any("draining" in line for line in daemon.lines))
            for conn in (c, idle):
                with call.lock:
                    refused = conn.inline("u8", ["sum"], b"1")
                self.assertEqual(UNAVAILABLE, refused.status.code)
                self.assertGreater(refused.status.retry_after_ms, 0)
            with self.assertRaises(OSError):
                daemon.connect(hello=False)
            self.assertTrue(daemon.alive())
            self.assertEqual(1, call.end())
            daemon.check_end(self, daemon.wait())
            idle.read_rest()

    def test_idle_daemon_ends_at_once(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            daemon = self.start()
            with daemon.connect() as c:
                c.ping()
                daemon.check_end(self, daemon.stop(number))

    def test_second_signal_ends_it_with_calls_running(self):
        daemon = self.start()
        memfd = os.memfd_create("endless")
        self.addCleanup(os.close, memfd)
        os.ftruncate(memfd, 1 << 42)
        path = os.path.join(self.folder, "large")
        with open(path, "wb") as f:
            for _ in range(96):
                f.write(bytes(1 << 20))
        file = os.open(path, os.O_RDONLY)
        self.addCleanup(os.close, file)
        with daemon.connect() as c:
            c.start_descriptor("f64", ["sum"], memfd)
            upload = c.start_stream("f64", ["sum"], None)
            c.send_data(upload, bytes(1 << 20))
            c.start_descriptor("f16", ["sum", "min"], file)
            c.ping()
            daemon.process.send_signal(signal.SIGTERM)
            wait_for("draining", lambda: any("draining" in line for line in daemon.lines))
            self.assertTrue(daemon.alive())
            daemon.check_end(self, daemon.stop())

    def test_signals_to_the_very_end(self):
        """However many more come, and however late: it ends as it was going to."""
        for _ in range(5):
            daemon = self.start()
            while daemon.alive():
                daemon.process.send_signal(signal.SIGTERM)
                daemon.process.send_signal(signal.SIGHUP)
                time.sleep(0.0005)
            daemon.check_end(self, daemon.wait())

    def test_drain_timeout(self):
        daemon = self.start(drain_timeout_ms=50)
        with daemon.connect() as c:
            c.start_stream("f64", ["sum"], None)
            c.ping()
            daemon.check_end(self, daemon.stop())
        self.assertIn("drain_timeout_ms", daemon.log())

    def test_what_stands_still_does_not_keep_it(self):
        """Calls that wait for DATA, and for a client to take their answers."""
        daemon = self.start(drain_timeout_ms=3600000, stall_timeout_ms=3600000)
        with daemon.connect() as c, daemon.connect() as deaf:
            silent = c.start_stream("f64", ["sum"], None)
            half = c.start_stream("f64", ["sum"], 8000)
            c.send_data(half, bytes(4000))
            c.ping()
            shape = reduce_message("u8", ["any"], stream_input(0), axis=(1 << 30, 0, 1))
            deaf.send(frame(CALL, deaf.open_stream(), call_message(shape), END))
            daemon.process.send_signal(signal.SIGTERM)
            for stream in (silent, half):
                status = c.wait(stream).status
                self.assertEqual(UNAVAILABLE, status.code)
                self.assertIn("no progress", status.message)
            daemon.check_end(self, daemon.wait())
        self.assertNotIn("drain_timeout_ms", daemon.log())

    def test_sighup_does_not_end_it(self):
        daemon = self.start()
        daemon.process.send_signal(signal.SIGHUP)
        wait_for("word of SIGHUP", lambda: "reading the options again" in daemon.log())
        self.serves(daemon.address)
        daemon.check_end(self, daemon.stop())

    def test_sighup_with_a_fifo(self):
        """Nobody writes to it: a loop that waits for a writer serves nobody."""
        path = os.path.join(self.folder, "cured.json")
        with open(path, "w") as f:
            f.write("{}")
        daemon = self.start(config=path)
        os.remove(path)
        os.mkfifo(path)
        daemon.process.send_signal(signal.SIGHUP)
        wait_for("the refusal", lambda: "everything stays as it was" in daemon.log())
        self.assertIn("it must be a regular file", daemon.log())
        self.serves(daemon.address)
        daemon.check_end(self, daemon.stop())

    def test_sighup_with_fewer_descriptors_than_wait(self):
        """Calls whose arrays wait for their masks have their places: nobody ends for them."""
        path = os.path.join(self.folder, "cured.json")
        with open(path, "w") as f:
            f.write('{"max_waiting_descriptors_per_user": 3}')
        daemon = self.start(config=path)
        with daemon.connect() as c, os.fdopen(os.memfd_create("eight"), "w+b", buffering=0) as file:
            file.write(bytes(range(8)))

            def call():
                stream = c.open_stream()
                c.send(c.call_frame(stream, "u8", ["sum"], descriptor_input(0, 8), flags=0, descriptors=1, mask=mask_message(beside_message(8))),
                       [file.fileno()])
                return stream
            streams = [call() for _ in range(3)]
            c.ping()
            with open(path, "w") as f:
                f.write('{"max_waiting_descriptors_per_user": 1}')
            daemon.process.send_signal(signal.SIGHUP)
            wait_for("the reload", lambda: "reading the options again" in daemon.log())
            c.ping()
            for stream in streams:
                c.send_data(stream, b"\1" * 8, True)
                self.assertEqual(28, int.from_bytes(c.wait(stream).results[0].value, "little"))
            daemon.check_end(self, daemon.stop())

    def test_sighup_reloads(self):
        """Limits and the level of the log change at once; what is built in at start, and a broken file, do not."""
        path = os.path.join(self.folder, "cured.json")

        def write(text):
            with open(path, "w") as f:
                f.write(text)

        def hang_up(word):
            before = len(daemon.lines)
            daemon.process.send_signal(signal.SIGHUP)
            wait_for("word of SIGHUP", lambda: any(word in line for line in daemon.lines[before:]))

        write('{"max_input_bytes": 1000, "max_jobs": 4, "log_level": "info", "slabs": 8}')
        daemon = self.start(config=path, hello_timeout_ms=4000)
        with daemon.connect() as c:
            self.assertEqual(INVALID_ARGUMENT, c.inline("u8", ["sum"], bytes(1001)).status.code)
            write('{"max_input_bytes": 2000, "max_jobs": 4, "hello_timeout_ms": 20, "slabs": 9}')
            hang_up("max_input_bytes: reloaded")
            self.assertIsNone(c.inline("u8", ["sum"], bytes(1001)).status)
            self.assertEqual(INVALID_ARGUMENT, c.inline("u8", ["sum"], bytes(2001)).status.code)
            wait_for("word of slabs", lambda: "slabs: it was changed" in daemon.log())
            self.assertNotIn("hello_timeout_ms", daemon.log(), "a flag weighs more than the file")
            write('{"max_input_bytes": 5000, "nonsense": 1}')
            hang_up("everything stays as it was")
            self.assertEqual(INVALID_ARGUMENT, c.inline("u8", ["sum"], bytes(2001)).status.code)
            write('{"max_input_bytes": 5000, "log_level": "error", "slabs": 8}')
            hang_up("max_input_bytes: reloaded")
            wait_for("the last of it", lambda: "max_jobs: reloaded" in daemon.log())
            self.assertIsNone(c.inline("u8", ["sum"], bytes(5000)).status)
        lines = len(daemon.lines)
        daemon.check_end(self, daemon.stop())
        self.assertEqual(lines, len(daemon.lines), "the log goes on below its level")

    def test_ends_while_crowded(self):
        """A signal in the middle of much traffic: it drains, nobody hangs, nothing leaks."""
        daemon = self.start(slabs=4)
        conns = [daemon.connect() for _ in range(8)]
        self.addCleanup(lambda: [c.close() for c in conns])
        for n, c in enumerate(conns):
            stream = c.start_stream("f32", ["sum"], None if n % 2 else 8 << 20, timeout_ms=300)
            c.send_data(stream, bytes(1 << 20))
            c.send_data(stream, bytes((1 << 20) - 3))
        daemon.check_end(self, daemon.stop())


class Logs(Lifecycle):
    def start_logging_to(self, log):
        """A daemon that lets one connection in, and warns of every other; its standard error is the pipe log. And that connection."""
        process = subprocess.Popen([CURED, "--listen", "unix:" + self.path, "--max-connections", "1"], stderr=log,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment())
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.close(log)
        first = wait_for("a listening daemon", self.try_to_connect)
        self.addCleanup(first.close)
        first.greet()
        return process, first

    def try_to_connect(self):
        """A connection; None: nobody listens yet, though the socket's file may be there."""
        try:
            return Connection("unix:" + self.path)
        except OSError:
            return None

    def serves_and_ends(self, process, first):
        for _ in range(3):
            with Connection("unix:" + self.path) as refused:
                self.assertEqual(RESOURCE_EXHAUSTED, refused.read_rest().code)
        self.assertEqual(b"!", first.ping(b"!"))
        process.terminate()
        self.assertEqual(0, process.wait(HANG_S))

    def test_a_reader_that_is_gone(self):
        read, write = os.pipe()
        process, first = self.start_logging_to(write)
        os.close(read)
        self.serves_and_ends(process, first)

    def test_a_reader_that_reads_no_more(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        mine = os.dup(write)
        self.addCleanup(os.close, mine)
        process, first = self.start_logging_to(write)
        os.set_blocking(mine, False)  # the daemon's too, until the line after the next
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(mine, b"-")
        os.set_blocking(mine, True)
        self.serves_and_ends(process, first)


class Limits(Lifecycle):
    def test_connections(self):
        daemon = self.start(max_connections=6)  # half of them for one user
        conns = [daemon.connect() for _ in range(3)]
        for c in conns:
            c.ping()
        with daemon.connect() as c:
            reason = c.read_rest()
            self.assertEqual(RESOURCE_EXHAUSTED, reason.code)
            self.assertIn("max_connections", reason.message)
            self.assertGreater(reason.retry_after_ms, 0)
        conns.pop().close()
        wait_for("room", lambda: self.can_ping(daemon))
        for c in conns:
            c.ping()
            c.close()
        daemon.check_end(self, daemon.stop())

    def can_ping(self, daemon):
        with daemon.connect() as c:
            try:
                return c.ping() == b"?"
            except Closed:
                return False

    def test_no_descriptors_left(self):
        """The process's own limit: connections beyond it are refused, those there go on, and it recovers."""
        import resource
        daemon = self.start(limits=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        conns = []
        for _ in range(80):
            conns.append(Connection(daemon.address))
        answered = 0
        for c in conns:
            try:
                c.ping()
                answered += 1
            except Closed:
                pass
        self.assertGreater(answered, 20)
        self.assertLess(answered, 64)
        for c in conns:
            c.close()
        wait_for("room", lambda: self.can_ping(daemon))
        daemon.check_end(self, daemon.stop())

    def test_calls(self):
        daemon = self.start(max_jobs=6, max_jobs_per_connection=3, max_bytes_in_flight=1 << 20, max_input_bytes=1 << 21)
        with daemon.connect() as a, daemon.connect() as b:
            held = [a.start_stream("u8", ["sum"], 10) for _ in range(3)]
            refused = a.inline("u8", ["sum"], b"1").status
            self.assertEqual((RESOURCE_EXHAUSTED, True), (refused.code, "max_jobs_per_connection" in refused.message), refused)
            self.assertGreater(refused.retry_after_ms, 0)
            more = [b.start_stream("u8", ["sum"], 10) for _ in range(2)]
            refused = b.inline("u8", ["sum"], b"1").status
            self.assertEqual((RESOURCE_EXHAUSTED, True), (refused.code, "max_jobs" in refused.message), refused)
            for conn, streams in ((a, held), (b, more)):
                for stream in streams:
                    conn.send_data(stream, bytes(10), end=True)
                    self.assertIsNone(conn.wait(stream).status)
            self.check_bytes(a)
            self.check_info_counts(a, b)
        daemon.check_end(self, daemon.stop())

    def check_bytes(self, conn):
        held = conn.start_stream("u8", ["sum"], 600000)
        refused = conn.inline("u8", ["sum"], bytes(500000)).status
        self.assertEqual((RESOURCE_EXHAUSTED, True), (refused.code, "max_bytes_in_flight" in refused.message), refused)
        self.assertGreater(refused.retry_after_ms, 0)
        growing = conn.start_stream("u8", ["sum"], None)
        conn.send_data(growing, bytes(300000))
        self.assertFalse(conn.answers[growing].over)
        conn.send_data(growing, bytes(300000))
        refused = conn.wait(growing).status
        self.assertEqual((RESOURCE_EXHAUSTED, True), (refused.code, "max_bytes_in_flight" in refused.message), refused)
        conn.send_array(held, bytes(600000))
        self.assertIsNone(conn.wait(held).status)
        # Too large ever is not a matter of waiting.
        refused = conn.wait(conn.start_stream("u8", ["sum"], (1 << 21) + 1)).status
        self.assertEqual((3, True), (refused.code, "max_input_bytes" in refused.message), refused)

    def check_info_counts(self, a, b):
        """info is a call too, and must stay possible when calls are few."""
        self.assertEqual(0, a.info()["counters"]["calls"])
        stream = b.open_stream()
        b.send(frame(CALL, stream, call_message(info=True), END))
        b.until(lambda: b.answers[stream].over)


if __name__ == "__main__":
    main()
