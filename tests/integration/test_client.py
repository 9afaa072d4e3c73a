"""test_client: cured-client against the daemon, for every op and type, by file, pipe and TCP, equal to the oracle.

What cured-client prints for itself (usage, every .npy header, retries) is tested beside its source; here is the whole way.
"""
import json
import math
import os
import random
import shutil
import struct
import subprocess
import tempfile
import threading
import unittest

from admin_client import hurry
from connection import HANG_S
from cured_daemon import CLIENT, Daemon, DaemonTest, environment, main, need_binary, wait_for, whole_of
from cured_wire import FIRST_OPS, INPUTS, SIZES
from expected import array_of, expect, oracle, plain

try:
    import numpy
except ImportError:
    numpy = None

SEED = int(os.environ.get("CURED_TEST_SEED", "20260105"))
NUMPY = {"bool": "?", "u8": "<u1", "i8": "<i1", "u16": "<u2", "i16": "<i2", "u32": "<u4", "i32": "<i4", "u64": "<u8",
         "i64": "<i8", "f16": "<f2", "f32": "<f4", "f64": "<f8"}
FORMATS = {"f16": "<e", "f32": "<f", "f64": "<d"}


def number(dtype, value):
    """The Python number behind result bytes."""
    if dtype == "bf16":
        return struct.unpack("<f", b"\0\0" + value)[0]
    if dtype == "f8_e5m2":
        return struct.unpack("<e", b"\0" + value)[0]
    if dtype == "f8_e4m3":
        floats = oracle.Floats(dtype, value)
        return math.nan if floats.kind[0] == "nan" else math.copysign(math.ldexp(floats.unit[0], floats.grid), -(value[0] >> 7) or 1)
    if dtype in FORMATS:
        return struct.unpack(FORMATS[dtype], value)[0]
    if dtype == "bool":
        return value[0] != 0
    return int.from_bytes(value, "little", signed=dtype.startswith("i"))


def packed(dtype, value):
    """A printed float back in its type's bytes: what "digits that read back to the same value" means."""
    if dtype == "bf16" and value:
        unit = math.ldexp(1, max(math.frexp(value)[1] - 8, -133))  # 8 bits, and none below the least value above 0
        value = round(value / unit) * unit
    if dtype == "bf16":
        return struct.pack("<f", value)[2:]
    if dtype in ("f8_e4m3", "f8_e5m2"):  # the nearest: of two that are as near the even one
        return min((abs(number(dtype, bytes([b])) - value), b & 1, b) for b in range(256)
                   if (math.copysign(1, value) < 0) == (b > 127) and math.isfinite(number(dtype, bytes([b]))))[2].to_bytes(1, "little")
    return struct.pack(FORMATS[dtype], value)


def parsed(text):
    """JSON; "-0" keeps its sign, which Python's reader would lose."""
    return json.loads(text, parse_int=lambda digits: -0.0 if digits == "-0" else int(digits))


class ClientTest(DaemonTest):
    ADDRESS = None  # the daemon's

    @classmethod
    def setUpClass(cls):
        need_binary(CLIENT)
        super().setUpClass()

    def run_client(self, *arguments, stdin=b"", address=None, env=None):
        """(exit status, stdout, stderr)"""
        address = ["--connect", address or self.ADDRESS or self.daemon.address] if address != "" else []
        done = subprocess.run([CLIENT, *arguments, *address], input=stdin, capture_output=True, timeout=HANG_S,
                              env=environment(**(env or {})), cwd=self.folder)
        self.assertNotIn(b"Sanitizer", done.stderr)
        self.assertGreaterEqual(done.returncode, 0, done.stderr)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def answer(self, *arguments, **options):
        status, out, err = self.run_client(*arguments, **options)
        self.assertEqual((0, ""), (status, err), arguments)
        return out

    def path(self, data, name="array.bin"):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def check_json(self, text, dtype, raw, ops, **options):
        """The whole document against the oracle."""
        got = parsed(text)
        self.assertEqual(1, text.count("\n"))
        self.assertEqual(dtype, got["dtype"])
        self.assertEqual(len(raw) // SIZES[dtype], got["count"])
        self.assertIn("timing", got)
        self.assertEqual(list(ops), list(got["results"]))
        for op in ops:
            self.check_result(op, got["results"][op], expect(op, dtype, raw, **options))

    def check_result(self, op, got, wanted):
        if wanted[1]:
            self.assertIn("error", got, op)
            self.assertNotIn("value", got)
            return
        dtype, value = wanted[2], bytes.fromhex(wanted[3])
        true = number(dtype, value)
        self.assertNotIn("error", got)
        if dtype in oracle.FLOATS:
            self.assertEqual(dtype, got["dtype"])
            if math.isnan(true):
                self.assertEqual("nan", got["value"])
            elif math.isinf(true):
                self.assertEqual("inf" if true > 0 else "-inf", got["value"])
            else:
                self.assertEqual(value, packed(dtype, got["value"]), (op, got))
                self.assertEqual(struct.pack("<d", true), struct.pack("<d", float.fromhex(got["bits"])), (op, got))
        elif dtype == "bool":
            self.assertEqual(("bool", true), (got["dtype"], bool(got["value"])))
        else:
            shown = got["value"]
            if abs(true) > 2**53:
                self.assertIsInstance(shown, str, "JSON readers would round %d" % true)
            self.assertEqual(true, int(shown), op)


class Answers(ClientTest):
    def test_every_op_and_type_from_raw_files(self):
        r = random.Random(SEED)
        for dtype in INPUTS:
            for n in range(3):
                raw = array_of(r, dtype)[:100000] if n else plain(dtype, 1000)
                raw = raw[:len(raw) // SIZES[dtype] * SIZES[dtype]] or plain(dtype, 1)  # nothing has no min
                path = self.path(raw)
                for way in ("descriptor", "stream"):
                    out = self.answer("reduce", path, "--ops", ",".join(FIRST_OPS), "--dtype", dtype, "--json", "--via", way)
                    self.check_json(out, dtype, raw, FIRST_OPS)

    def test_the_answer_alone_goes_to_stdout(self):
        for dtype in INPUTS:
            raw = plain(dtype, 300)
            path = self.path(raw)
            for op in FIRST_OPS:
                out = self.answer(op, path, "--dtype", dtype)
                self.assertEqual(1, out.count("\n"), (op, out))
                _, _, kind, value, _ = expect(op, dtype, raw)
                self.check_text(out.strip(), kind, bytes.fromhex(value), op)

    def check_text(self, text, dtype, value, op):
        if dtype in oracle.FLOATS:
            self.assertEqual(value, packed(dtype, float(text)), (op, text))
        elif dtype == "bool":
            self.assertIn(text, ("true", "false", "1", "0"))
            self.assertEqual(value != b"\0", text in ("true", "1"))
        else:
            self.assertEqual(number(dtype, value), int(text), op)

    def test_special_values(self):
        for words, op, shown in (([0x7f800000], "sum", "inf"), ([0xff800000], "min", "-inf"), ([0x7f800000, 0xff800000], "sum", "nan"),
                                 ([0x7fc12345], "max", "nan"), ([0x80000000], "max", "-0")):
            path = self.path(struct.pack("<%dI" % len(words), *words))
            text = self.answer(op, path).strip()
            self.assertEqual(float(shown) if shown != "nan" else "nan", float(text) if shown != "nan" else text)
            self.assertEqual(shown.startswith("-"), text.startswith("-"))
        path = self.path(b"\xff" * 8 * 10)
        self.assertEqual(str(10 * (2**64 - 1)), self.answer("sum", path, "--dtype", "u64").strip())

    def test_options(self):
        raw = plain("f64", 500)
        path = self.path(b"junk!" + raw)
        out = self.answer("reduce", path, "--ops", "sum,count", "--dtype", "f64", "--offset", "5", "--count", "100", "--json")
        self.check_json(out, "f64", raw[:800], ["sum", "count"])
        path = self.path(struct.pack("<3f", 1, float("nan"), 2))
        self.assertEqual("nan", self.answer("sum", path).strip())
        self.assertEqual(3.0, float(self.answer("sum", path, "--nan", "skip")))
        self.check_json(self.answer("reduce", path, "--ops", "sum", "--nan", "skip", "--json", "--result-dtype", "bf16"), "f32",
                        struct.pack("<3f", 1, float("nan"), 2), ["sum"], nan=1, result_dtype="bf16")

    def test_a_divisor_of_zero_is_explained(self):
        few, nans = self.path(struct.pack("<2f", 1, 2), "few"), self.path(struct.pack("<4f", 1, 2, math.nan, math.nan), "nans")
        infinite = self.path(struct.pack("<4f", 1, 2, 3, math.inf), "infinite")
        self.assertIn("--ddof 2 is not below the 2 elements", self.run_client("var", few, "--ddof", "2")[2])
        for op in ("var", "std"):
            status, out, err = self.run_client(op, nans, "--ddof", "2", "--nan", "skip")
            self.assertEqual((0, "nan\n"), (status, out))
            self.assertIn("--ddof 2 is not below the elements that --nan skip leaves, or one of them is infinite", err)
        self.assertEqual("0.5\n", self.answer("var", nans, "--ddof", "1", "--nan", "skip"))
        self.assertEqual("nan\n", self.answer("var", nans, "--ddof", "2"))  # a NaN counts: no word of ddof
        self.assertEqual("nan\n", self.answer("var", infinite, "--ddof", "2"))

    def test_standard_input(self):
        raw = plain("i32", 70000)
        for way in ((), ("--via", "stream")):
            out = self.answer("reduce", "-", "--ops", ",".join(FIRST_OPS), "--dtype", "i32", "--json", *way, stdin=raw)
            self.check_json(out, "i32", raw, FIRST_OPS)
        self.assertEqual("0", self.answer("count", "-", stdin=b"").strip())
        with open(self.path(raw), "rb") as f:  # a file as standard input
            done = subprocess.run([CLIENT, "sum", "-", "--dtype", "i32", "--connect", self.daemon.address], stdin=f,
                                  capture_output=True, timeout=HANG_S, env=environment(), cwd=self.folder)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(number("i64", bytes.fromhex(expect("sum", "i32", raw)[3])), int(done.stdout))

    def test_files_whose_size_says_nothing(self):
        """Those of /proc have 0 bytes by their size, those of /sys 4,096: both are read until they end."""
        for path in ("/proc/version", "/sys/devices/system/cpu/online"):
            if os.path.exists(path):
                with open(path, "rb") as f:
                    wanted = sum(f.read())
                self.assertEqual(wanted, int(self.answer("sum", path, "--dtype", "u8", "--raw")), path)
        path = self.path(bytes(range(256)) * 16)  # a file of as many bytes that has them
        self.assertEqual(4096 * 255 // 2, int(self.answer("sum", path, "--dtype", "u8", "--raw")))

    def test_describe(self):
        ops = ["count", "count_nan", "min", "max", "argmin", "argmax", "sum", "mean"]
        raw = plain("f32", 5000)
        out = self.answer("describe", self.path(raw), "--json")
        got = parsed(out)
        self.assertEqual(ops, [op for op in got["results"] if op in ops])
        for op in ops:
            self.check_result(op, got["results"][op], expect(op, "f32", raw))
        lines = self.answer("describe", self.path(raw))
        for op in ops:
            self.assertRegex(lines, r"(?m)^\s*%s\b" % op)
        # Of nothing: what has no value is said, and the others stand.
        status, out, _ = self.run_client("describe", self.path(b""), "--json")
        self.assertEqual(65, status)
        self.assertIn("error", json.loads(out)["results"]["min"])

    def test_large_file(self):
        tile = plain("f32", 1 << 15)
        path = self.path(tile * 200)
        from expected import expect_tiled
        for way in ("descriptor", "stream"):
            got = parsed(self.answer("reduce", path, "--ops", ",".join(FIRST_OPS), "--json", "--via", way))
            for op in FIRST_OPS:
                self.check_result(op, got["results"][op], expect_tiled(op, "f32", tile, 200))

    def test_ping_and_info(self):
        self.run_ok("ping")
        out = self.answer("info")
        self.assertIn("cpu", out)
        self.answer("info", "--json") and json.loads(self.answer("info", "--json"))

    def run_ok(self, *arguments):
        status, _, err = self.run_client(*arguments)
        self.assertEqual(0, status, err)

    def test_connect_from_the_environment(self):
        path = self.path(struct.pack("<2f", 1, 2))
        self.assertEqual(3.0, float(self.answer("sum", path, address="", env={"CURED_CONNECT": self.daemon.address})))


@unittest.skipUnless(numpy, "NumPy is not installed: .npy files are made by hand in tests/unit/client")
class Npy(ClientTest):
    def test_every_type_in_both_orders(self):
        r = random.Random(SEED)
        for dtype, code in NUMPY.items():
            raw = array_of(r, dtype, 600) if dtype != "bool" else bytes(r.randrange(2) for _ in range(600))
            flat = numpy.frombuffer(raw, dtype=code)
            for shape in ((600,), (20, 30), (5, 4, 30), (600, 1), ()):
                array = flat[:1].reshape(()) if shape == () else flat.reshape(shape)
                for order in ("C", "F"):
                    path = os.path.join(self.folder, "array.npy")
                    numpy.save(path, numpy.array(array, order=order))
                    stored = array.tobytes(order)
                    for way in ("descriptor", "stream"):
                        out = self.answer("reduce", path, "--ops", "sum,max,mean,count,any", "--json", "--via", way)
                        self.check_json(out, dtype, stored, ["sum", "max", "mean", "count", "any"])

    def test_partials_of_both_orders_are_one(self):
        """Extrema keep their places, for which a partial may be finished whatever it was made for."""
        array = numpy.random.default_rng(SEED).permutation(6 * 7 * 4).astype("<i2").reshape(6, 7, 4) - 50
        array.flat[0] = array.flat[-1] = 3  # so that neither order has an extremum at its ends
        for ops in ("max", "min", "norminf", "ptp", "sum", "var,max", "bit_or"):
            for connect in ("embedded:", self.daemon.address):
                made = []
                for order in "CF":
                    numpy.save(os.path.join(self.folder, "array.npy"), numpy.array(array, order=order))
                    numpy.save(os.path.join(self.folder, "turned.npy"), numpy.array(array, ">i2", order=order))
                    for name in ("array.npy", "turned.npy"):
                        self.answer("reduce", name, "--ops", ops, "--partial", "--first", "3", "--output", "p.crp", address=connect)
                        with open(os.path.join(self.folder, "p.crp"), "rb") as f:
                            made.append(f.read())
                self.assertEqual([made[0]] * 4, made, (ops, connect))
                if ops == "max":
                    self.assertEqual("argmax %d\n" % (3 + array.argmax()), self.answer("merge", "p.crp", "--ops", "argmax", address=connect))
        numpy.savez_compressed(os.path.join(self.folder, "a.npz"), x=numpy.asfortranarray(array))
        self.assertEqual("%d total" % array.max(), self.answer("max", "a.npz:x", "--total").splitlines()[-1])
        status, _, err = self.run_client("max", "a.npz:x", "--partial")
        self.assertEqual(65, status)
        self.assertIn("Fortran order", err)

    def test_empty_and_large(self):
        path = os.path.join(self.folder, "array.npy")
        for shape in ((0,), (3, 0, 5)):
            numpy.save(path, numpy.zeros(shape, "<f8"))
            self.check_json(self.answer("reduce", path, "--ops", "sum,count,all", "--json"), "f64", b"", ["sum", "count", "all"])
        data = numpy.arange(1 << 20, dtype="<i4").reshape(1024, 1024)
        numpy.save(path, data)
        self.assertEqual(str(int(data.sum(dtype=numpy.int64))), self.answer("sum", path).strip())

    def test_offset_and_count_are_of_the_array(self):
        path = os.path.join(self.folder, "array.npy")
        data = numpy.arange(100, dtype="<i2")
        numpy.save(path, data)
        self.assertEqual(str(sum(range(10, 15))), self.answer("sum", path, "--offset", "20", "--count", "5").strip())

    def test_refused_by_name(self):
        path = os.path.join(self.folder, "array.npy")
        for array, word in ((numpy.zeros(3, "c16"), "complex"), (numpy.array(["a", "b"]), ""), (numpy.zeros(3, [("a", "<f4"), ("b", "<i4")]), "")):
            numpy.save(path, array)
            status, out, err = self.run_client("sum", path)
            self.assertEqual((65, ""), (status, out), err)
            self.assertIn(word, err)

    def test_cut_short(self):
        path = os.path.join(self.folder, "array.npy")
        numpy.save(path, numpy.arange(1000, dtype="<f8"))
        with open(path, "rb") as f:
            whole = f.read()
        for size in (0, 5, 9, 60, 127, 128, 129, 4000, len(whole) - 1):
            self.path(whole[:size], "array.npy")
            for way in ("descriptor", "stream"):
                status, out, err = self.run_client("sum", path, "--via", way)
                self.assertIn(status, (65, 66), (size, way, err))
                self.assertEqual("", out)
                self.assertGreater(len(err), 10)


class ExitCodes(ClientTest):
    OPTIONS = {"max_jobs_per_connection": 64, "max_bytes_in_flight": whole_of(1 << 20)}

    def fails(self, code, *arguments, words=(), **options):
        status, out, err = self.run_client(*arguments, **options)
        self.assertEqual((code, ""), (status, out), err)
        for word in words:
            self.assertIn(word, err)
        self.assertGreater(len(err), 10)
        return err

    def test_usage(self):
        path = self.path(bytes(8))
        for arguments in ((), ("frobnicate", path), ("sum",), ("sum", path, "--nonsense"), ("reduce", path), ("sum", path, path, "--axis", "0"),
                          ("reduce", path, "--ops", "sum,nothing"), ("sum", path, "--dtype", "f128"), ("sum", path, "--count", "-1"),
                          ("sum", path, "--via", "pigeon"), ("sum", path, "--timeout", "soon")):
            self.fails(64, *arguments)
        self.fails(64, "sum", path, address="tcp:127.0.0.1:99999")

    def test_bad_data(self):
        self.fails(65, "sum", self.path(bytes(7)), words=["7"])
        self.fails(65, "sum", self.path(bytes(7)), "--via", "stream")
        self.fails(65, "sum", self.path(bytes(8)), "--offset", "9")
        self.fails(65, "sum", self.path(bytes(8)), "--count", "3")
        self.fails(65, "min", self.path(b""), words=["min"])
        self.fails(65, "min", self.path(b""), "--quiet", words=["min"])
        self.fails(65, "sum", "-", stdin=bytes(5))
        self.fails(65, "sum", self.path(b"\xff" * 16), "--dtype", "u64", "--result-dtype", "u64", words=[str(2 * (2**64 - 1))])

    def test_numbers_written_out_are_no_elements(self):
        """`seq 8 | cured-client sum - --dtype f32` would sum the digits' bytes. --raw says that they are meant, a name in .bin too."""
        texts = [b"".join(b"%d\n" % i for i in range(1, 9)), b"1.5,-2e3;+4\r\n5E-7 6", b"7\n", b"12345678 " * 4000 + b"\n", b"1\n" * 100000,
                 b"123,456\n" * 512 + b"name\n"]
        for text in texts:
            for dtype in ("u8", "f32", ">f8", "i16"):
                whole = text[:len(text) // 8 * 8] if dtype != "u8" and len(text) > 8 else text
                path = self.path(whole, "array")
                for arguments in (["sum", path], ["sum", path, "--via", "stream"], ["sum", "-"]):
                    status, _, err = self.run_client(*arguments, "--dtype", dtype, stdin=whole)
                    if b"\n" in whole[:4096]:
                        self.assertEqual(65, status, (whole[:20], arguments, err))
                        self.assertIn("is text, not raw elements", err)
                        self.assertIn("--raw", err)
                    elif len(whole) > 4096:
                        self.assertEqual(0, status, err)  # no line in what is looked at
        text = texts[0]
        total = "%d\n" % sum(text)
        self.assertEqual(total, self.answer("sum", self.path(text, "array.bin"), "--dtype", "u8"))
        self.assertEqual(total, self.answer("sum", self.path(text, "array"), "--dtype", "u8", "--raw"))
        self.assertEqual(total, self.answer("sum", "-", "--dtype", "u8", "--raw", stdin=text))
        for other in (b"12345678", b"\n" * 8, b"1\n2\n\0\0\0\0"):  # bytes that may be elements
            self.assertEqual("%d\n" % sum(other), self.answer("sum", self.path(other, "array"), "--dtype", "u8"))

    def test_op_by_name_without_a_value_among_others(self):
        status, out, err = self.run_client("reduce", self.path(b""), "--ops", "sum,min", "--json")
        self.assertEqual(65, status, err)
        got = json.loads(out)["results"]
        self.assertIn("error", got["min"])
        self.assertEqual(0, got["sum"]["value"])

    def test_no_input(self):
        self.fails(66, "sum", os.path.join(self.folder, "missing"), words=["missing"])
        self.fails(66, "sum", self.folder)

    def test_no_daemon(self):
        path = self.path(bytes(8))
        self.fails(69, "sum", path, address="unix:%s/none.sock" % self.folder)
        self.fails(69, "sum", path, "--timeout", "20", address="tcp:127.0.0.1:1")
        self.fails(69, "ping", address="unix:%s/none.sock" % self.folder)

    def test_try_again_later(self):
        """Longer than may be in flight while another upload holds the room, and out of patience."""
        with self.daemon.connect() as c:
            held = c.start_stream("u8", ["sum"], 1 << 20)
            c.ping()
            self.fails(75, "sum", self.path(bytes(800000)), "--via", "stream", "--timeout", "0.3")
            c.send_array(held, bytes(1 << 20))
            self.assertIsNone(c.wait(held).status)

    def test_not_the_protocol(self):
        import socket
        server = socket.socket(socket.AF_UNIX)
        path = os.path.join(self.folder, "other.sock")
        server.bind(path)
        server.listen()

        def other():
            s, _ = server.accept()
            with s:
                s.sendall(b"220 mail.example ESMTP ready, what a nice day for numbers\r\n")
                s.recv(1 << 16)

        thread = threading.Thread(target=other)
        thread.start()
        try:
            self.fails(76, "sum", self.path(bytes(8)), "--timeout", "20", address="unix:" + path)
        finally:
            thread.join()
            server.close()

    def test_output_that_cannot_be_written(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w") as full:
            done = subprocess.run([CLIENT, "sum", self.path(bytes(8)), "--connect", self.daemon.address], stdout=full,
                                  stderr=subprocess.PIPE, timeout=HANG_S, env=environment())
        self.assertEqual(74, done.returncode, done.stderr)


class Tcp(ClientTest):
    """A daemon without a Unix socket: files are streamed of themselves."""

    @classmethod
    def setUpClass(cls):
        need_binary(CLIENT)
        cls.folder = tempfile.mkdtemp(prefix="cured-it-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.daemon = Daemon(cls.folder, listen=["tcp:127.0.0.1:0"])
        cls.addClassCleanup(cls.end)

    @classmethod
    def end(cls):
        cls.daemon.check_end(unittest.TestCase(), cls.daemon.stop())

    def test_files_and_standard_input(self):
        for dtype in INPUTS:
            raw = plain(dtype, 60000)
            for source, stdin in ((self.path(raw), b""), ("-", raw)):
                out = self.answer("reduce", source, "--ops", ",".join(FIRST_OPS), "--dtype", dtype, "--json", stdin=stdin)
                self.check_json(out, dtype, raw, FIRST_OPS)

    def test_descriptors_are_refused_with_a_reason(self):
        status, out, err = self.run_client("sum", self.path(bytes(8)), "--via", "descriptor")
        self.assertNotEqual(0, status)
        self.assertEqual("", out)
        self.assertRegex(err, "(?i)unix|descriptor")


class Draining(ClientTest):
    def test_a_daemon_that_goes(self):
        """The upload under way is answered; the next client is told to come again, or finds nobody."""
        client = subprocess.Popen([CLIENT, "sum", "-", "--dtype", "u8", "--connect", self.daemon.address],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        client.stdin.write(b"\1" * 500000)
        client.stdin.flush()
        wait_for("the upload to begin", lambda: self.daemon.gauges()["calls"] == 1)
        over, sent = threading.Event(), [500000]

        def trickle():
            """An upload that stands still for a second would be ended."""
            hurry(threading.get_native_id())
            while not over.wait(0.05):
                sent[0] += os.write(client.stdin.fileno(), b"\1" * 100)
        hurry(client.pid)
        thread = threading.Thread(target=trickle)
        thread.start()
        self.daemon.process.terminate()
        wait_for("draining", lambda: "draining" in self.daemon.log())
        status, out, err = self.run_client("sum", self.path(bytes(8)), "--timeout", "0.2")
        over.set()
        thread.join()
        self.assertIn(status, (69, 75), err)
        self.assertEqual("", out)
        out, err = client.communicate(b"\1" * 500000, timeout=HANG_S)
        self.assertEqual((0, b"%d" % (sent[0] + 500000)), (client.returncode, out.strip()), err)
        self.assertEqual(0, self.daemon.wait())


if __name__ == "__main__":
    print("seed", SEED)
    main()
