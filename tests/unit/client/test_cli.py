#!/usr/bin/env python3
"""cured-client as a program, with a daemon behind it: answers, ways of input, .npy files, JSON, sentences, exit codes.

Expected values come from Python's integers and fractions. The .npy files are made by hand, so that NumPy is not needed.
"""
import fractions
import json
import math
import os
import re
import socket
import struct
import subprocess
import threading

from cli_daemon import CLIENT, ENVIRONMENT, HANG_S, CliTest, for_others, main, npy


class Cli(CliTest):
    def exact_sum(self, values=None):
        return float(sum(map(fractions.Fraction, self.values if values is None else values)))

    # ---- answers and ways ----

    def test_every_way_gives_the_same_digits(self):
        want = repr(self.exact_sum())
        for arguments in ((), ("--via", "descriptor"), ("--via", "stream")):
            for path in (self.raw, self.npy):
                self.assertEqual(self.client("sum", path, *arguments).out.strip(), want)
        self.assertEqual(self.client("sum", self.raw, tcp=True).out.strip(), want)
        self.assertEqual(self.client("sum", self.npy, tcp=True).out.strip(), want)
        for path in (self.raw, self.npy):
            with open(path, "rb") as f:
                self.assertEqual(self.client("sum", "-", stdin=f).out.strip(), want)
            with open(path, "rb") as f:
                self.assertEqual(self.client("sum", "-", data=f.read()).out.strip(), want)

    def test_fifo(self):
        path = os.path.join(self.dir, "fifo")
        os.mkfifo(path)
        with open(self.raw, "rb") as f:
            data = f.read()

        def feed():
            with open(path, "wb") as out:
                out.write(data)
        thread = threading.Thread(target=feed)
        thread.start()
        self.assertEqual(self.client("max", path).out.strip(), "%.8g" % max(self.values))
        thread.join()

    def test_a_file_without_a_size(self):
        """/proc says 0 and has bytes: they are streamed, and the daemon, who might read others, refuses the descriptor."""
        path = "/proc/version"
        with open(path, "rb") as f:
            data = f.read()
        self.assertEqual(self.client("sum", path, "--dtype", "u8").out, "%d\n" % sum(data))
        self.assertEqual(self.client("sum", path, "--dtype=u8", "--offset=3", "--count=5").out, "%d\n" % sum(data[3:8]))
        self.fails(65, "size of 0", "sum", path, "--dtype", "u8", "--via", "descriptor")
        self.assertEqual(self.client("count", self.write("empty.bin", b"")).out, "0\n")

    def test_offset_and_count(self):
        want = repr(self.exact_sum(self.values[5:105]))
        arguments = ("--offset", "20", "--count", "100")
        for path in (self.raw, self.npy):
            self.assertEqual(self.client("sum", path, *arguments).out.strip(), want)
            self.assertEqual(self.client("sum", path, *arguments, "--via", "stream").out.strip(), want)
            with open(path, "rb") as f:
                self.assertEqual(self.client("sum", "-", *arguments, data=f.read()).out.strip(), want)
        odd = self.write("odd.bin", b"x" + struct.pack("<3f", 1, 2, 3) + b"yz")
        self.assertEqual(self.client("sum", odd, "--offset=1", "--count=3").out, "6\n")
        self.fails(65, "multiple of 4", "sum", odd)
        self.fails(65, "multiple of 4", "sum", odd, "--offset", "1")
        self.fails(65, "multiple of 4", "sum", "-", data=b"12345")
        self.fails(65, "holds 3 elements", "sum", odd, "--count", "4")
        self.fails(65, "15 bytes", "sum", odd, "--offset", "16")
        self.fails(65, "ends after", "sum", "-", "--count", "4", data=b"\0" * 12)
        self.fails(65, "before the array begins", "sum", "-", "--offset", "13", data=b"\0" * 12)
        self.fails(65, "--count", "sum", self.npy, "--count", "30001")
        self.fails(65, "multiple of 4", "sum", self.npy, "--offset", "2")
        self.fails(64, "limit", "sum", self.raw, "--count", str(2**62))
        self.assertEqual(self.client("count", odd, "--offset=15").out, "0\n")

    def test_every_input_type(self):
        cases = {"u8": ("B", "|u1"), "i8": ("b", "|i1"), "u16": ("H", "<u2"), "i16": ("h", "<i2"), "u32": ("I", "<u4"),
                 "i32": ("i", "<i4"), "u64": ("Q", "<u8"), "i64": ("q", "<i8"), "f16": ("e", "<f2"), "f64": ("d", "<f8")}
        for name, (code, descr) in cases.items():
            values = [1, 2, 3, 100] if code in "BHIQ" else [-1, 2, 3, 100]
            data = struct.pack("<4" + code, *values)
            raw, file = self.write("t.bin", data), self.write("t.npy", npy(data, descr, (2, 2), True))
            self.assertEqual(self.client("sum", raw, "--dtype", name).out, "%d\n" % sum(values), name)
            for version in (1, 2, 3):
                file = self.write("t.npy", npy(data, descr, (2, 2), version == 2, version))
                self.assertEqual(self.client("sum", file).out, "%d\n" % sum(values), name)
        self.assertEqual(self.client("sum", self.write("b.npy", npy(b"\1\0\1", "|b1", (3,)))).out, "2\n")
        self.assertEqual(self.client("any", self.write("b.npy", npy(b"\1\0\1", "|b1", (3,)))).out, "true\n")
        half = self.write("bf.npy", npy(struct.pack("<2H", 0x3f80, 0x4000), "<V2", (2,)))
        self.assertEqual(self.client("sum", half, "--dtype", "bf16").out, "3\n")
        self.fails(65, "--dtype bf16", "sum", half)

    def test_big_integers_keep_their_digits(self):
        file = self.write("i.npy", npy(struct.pack("<3q", 2**63 - 1, 2**63 - 1, 5), "<i8", (3,)))
        self.assertEqual(self.client("sum", file).out, "%d\n" % (2 * (2**63 - 1) + 5))
        answer = json.loads(self.client("reduce", file, "--ops", "sum,max,min,count", "--json").out)["results"]
        self.assertEqual(answer["sum"]["value"], str(2 * (2**63 - 1) + 5))
        self.assertEqual(answer["max"]["value"], str(2**63 - 1))
        self.assertEqual(answer["min"]["value"], 5)
        self.assertEqual(answer["count"]["value"], 3)

    def test_reduce_and_describe(self):
        out = self.client("reduce", self.npy, "--ops", "max,sum,argmin").out.splitlines()
        self.assertEqual([line.split()[0] for line in out], ["max", "sum", "argmin"])
        self.assertEqual(out[2], "argmin %d" % self.values.index(min(self.values)))
        out = dict(line.split() for line in self.client("describe", self.npy).out.splitlines())
        self.assertEqual(list(out)[:8], "count count_nan min max argmin argmax sum mean".split())
        self.assertEqual(float(out["mean"]), float(sum(map(fractions.Fraction, self.values)) / len(self.values)))

    def test_quantiles(self):
        """By rank, whatever --q asks; a name that is nearly median is not taken for mean. By a daemon and in this process."""
        for connect in ("embedded:", self.unix):
            self.check_quantiles(connect)

    def check_quantiles(self, connect):
        def answer(*words):
            return self.run_static(*words, "-", "--dtype", "u8", "--connect", connect, data=bytes([9, 2, 7, 1, 2, 3])).out
        self.assertEqual(answer("median"), "2.5\n")
        self.assertEqual(answer("quantile", "--q", "0,0.5,1"), "1\n2.5\n9\n")
        self.assertEqual(answer("quantile", "--q", "0.5", "--method", "higher"), "3\n")
        self.assertEqual(answer("reduce", "--ops", "sum,quantile,ptp", "--q", "0.25,1"),
                         "sum 24\nquantile_0.25 2\nquantile_1 9\nptp 8\n")
        self.assertEqual(answer("quantile", "--shape", "2,3", "--axis", "1", "--q", "0.5,1"), "7 2\n9 3\n")
        results = json.loads(answer("quantile", "--q", "0.5,1", "--json"))["results"]
        self.assertEqual([(name, one["value"]) for name, one in results.items()], [("quantile_0.5", 2.5), ("quantile_1", 9)])
        for wrong in ("medain", "mediam", "meadian", "medan", "medians"):
            self.fails(64, "did you mean median?", wrong, self.raw)
        for wrong in ("quantile --q 1.5", "quantile --q 0.5,", "quantile --q nan", "quantile --method hazen", "sum --q 0.5",
                      "sum --method lower"):
            self.client(*wrong.split(), self.raw, code=64)

    def test_empty(self):
        empty = self.write("e.npy", npy(b"", "<f4", (0, 5)))
        self.assertEqual(self.client("sum", empty).out, "0\n")
        self.assertEqual(self.client("mean", empty).out, "nan\n")
        result = self.fails(65, "min", "min", empty)
        self.assertEqual(result.out, "")
        result = self.run_static("describe", empty, "--connect", self.unix)
        self.assertEqual(result.code, 65)
        self.assertIn("min -\n", result.out)
        self.assertIn("cured-client: min: ", result.err)
        result = self.run_static("reduce", empty, "--ops", "min,sum", "--json", "--connect", self.unix)
        self.assertEqual(result.code, 65, result)
        answer = json.loads(result.out)
        self.assertIn("error", answer["results"]["min"])
        self.assertNotIn("value", answer["results"]["min"])
        self.assertEqual(answer["results"]["sum"]["value"], 0)

    def test_json(self):
        answer = json.loads(self.client("reduce", self.raw, "--ops", "sum,min,argmax,any", "--json").out)
        self.assertEqual(list(answer), ["dtype", "count", "results", "timing"])
        self.assertEqual((answer["dtype"], answer["count"]), ("f32", 30000))
        results = answer["results"]
        self.assertEqual(results["sum"]["dtype"], "f64")
        self.assertEqual(results["sum"]["value"], self.exact_sum())
        self.assertEqual(float.fromhex(results["sum"]["bits"]), self.exact_sum())
        self.assertEqual(float.fromhex(results["min"]["bits"]), min(self.values))
        self.assertEqual(results["argmax"]["value"], self.values.index(max(self.values)))
        self.assertNotIn("bits", results["argmax"])
        self.assertIs(results["any"]["value"], True)
        self.assertLessEqual({"queue_ns", "run_ns", "total_ns"}, set(answer["timing"]))
        special = self.write("s.bin", struct.pack("<2f", math.inf, 1))
        self.assertEqual(json.loads(self.client("sum", special, "--json").out)["results"]["sum"]["value"], "inf")
        special = self.write("s.bin", struct.pack("<2f", math.nan, -math.inf))
        results = json.loads(self.client("reduce", special, "--ops", "sum,min", "--nan", "skip", "--json").out)["results"]
        self.assertEqual(results["sum"]["value"], "-inf")
        self.assertEqual(json.loads(self.client("sum", special, "--json").out)["results"]["sum"]["value"], "nan")
        special = self.write("s.bin", struct.pack("<2f", 0, -0.0))
        least = json.loads(self.client("min", special, "--json").out)["results"]["min"]["value"]
        self.assertEqual(-1, math.copysign(1, least))  # Python reads -0 as the integer 0

    def test_timing_goes_to_stderr(self):
        result = self.client("sum", self.raw, "--timing")
        self.assertEqual(result.out.strip(), repr(self.exact_sum()))
        self.assertIn("ms", result.err)

    def test_ping_info_version_help(self):
        self.assertIn("answers in", self.client("ping").out)
        self.assertGreater(json.loads(self.client("ping", "--json").out)["elapsed_ns"], 0)
        self.assertIn("backend ", self.client("info").out)
        info = json.loads(self.client("info", "--json", tcp=True).out)
        self.assertGreaterEqual(len(info["lanes"]), 1)
        self.assertGreater(info["counters"]["connections_total"], 0)
        self.assertRegex(self.run_static("--version").out, r"\Acured-client \d+\.\d+\.\d+\n\Z")
        text = self.run_static("--help").out
        for word in ("sum", "count_nonzero", "describe", "--via", "--result-dtype", "CURED_CONNECT"):
            self.assertIn(word, text)

    def test_help_of_commands(self):
        program = self.run_static("--help").out
        for command in ("sum", "reduce", "describe", "merge", "ping", "doctor", "info", "token", "help"):
            text = self.run_static("help", command).out
            self.assertTrue(text.startswith(f"Usage: cured-client {command} "), text)
            self.assertEqual(self.run_static(command, "--help").out, text)
            examples = re.findall(r"^    cured-client (.*)$", text, flags=re.M)
            self.assertTrue(examples, text)
            own = set(re.findall(r"^  (--[\w-]+)", text, flags=re.M))
            self.assertLess(own, set(re.findall(r"^  (--[\w-]+)", program, flags=re.M)))
            for option in re.findall(r"(--[\w-]+)", " ".join(examples)):
                self.assertIn(option, own, f"an example of {command} uses an option that is not listed")
        self.assertNotIn("--axis", self.run_static("help", "merge").out)
        self.assertEqual(self.run_static("help").out, program)
        self.fails(64, "did you mean merge?", "help", "merg")

    def test_environment(self):
        env = dict(ENVIRONMENT, CURED_CONNECT=self.unix)
        self.assertEqual(self.run_static("ping", env=env).code, 0)
        env["CURED_CONNECT"] = "unix:" + self.dir + "/none"
        result = self.run_static("ping", env=env)
        self.assertEqual(result.code, 69, result)

    # ---- what goes wrong ----

    def test_files(self):
        self.fails(66, "No such file", "sum", self.dir + "/none")
        os.makedirs(os.path.join(self.dir, "nothing"))
        self.fails(66, "the folder", "sum", os.path.join(self.dir, "nothing"))

    def test_denied(self):
        """Exit status 77: a file, or the daemon's socket, that this user may not open."""
        path = self.write("secret", b"\0" * 4)
        os.chmod(path, 0)
        os.chmod(self.dir, 0o755)
        root = os.geteuid() == 0
        client = for_others(CLIENT)
        for word, arguments in (("ermission", ["sum", path]), ("ermission", ["sum", path, "--connect", self.tcp])):
            done = subprocess.run([client, *arguments, *([] if "--connect" in arguments else ["--connect", self.unix])], env=ENVIRONMENT,
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG_S, **({"user": 12345} if root else {}))
            self.assertEqual(77, done.returncode, done)
            self.assertIn(word, done.stderr.decode())

    def test_npy_files(self):
        four = struct.pack("<4f", 1, 2, 3, 4)
        self.fails(65, "complex", "sum", self.write("w.npy", npy(four, "<c8", (2,))))
        self.fails(65, "objects", "sum", self.write("w.npy", npy(four, "|O", (2,))))
        self.fails(65, "structures", "sum", self.write("w.npy", npy(four, "[('a', '<f4')]", (4,))))
        self.fails(65, "shape want", "sum", self.write("w.npy", npy(four, "<f4", (5,))))
        self.fails(65, "shape want", "sum", self.write("w.npy", npy(four, "<f4", (3,))))
        self.fails(65, "elements", "sum", self.write("w.npy", npy(four, "<f8", (2**40, 2**40))))
        self.fails(65, "does not begin", "sum", self.write("w.npy", four))
        self.fails(65, "middle of its .npy header", "sum", self.write("w.npy", npy(four, "<f4", (4,))[:50]))
        self.fails(65, "middle of its .npy header", "sum", self.write("w.npy", b""))
        self.fails(65, "--dtype says f64", "sum", self.write("w.npy", npy(four, "<f4", (4,))), "--dtype", "f64")
        self.fails(65, "limit", "sum", self.write("w.npy", b"\x93NUMPY\2\0\xff\xff\xff\xff" + b" " * 70000))
        whole = npy(four, "<f4", (4,))
        self.fails(65, "more bytes", "sum", "-", data=whole + b"\0")
        self.fails(65, "ends after", "sum", "-", data=whole[:-1])
        # the magic alone decides without a name, unless the bytes are said to be raw
        self.assertEqual(self.client("sum", self.write("noname", whole)).out, "10\n")
        self.assertEqual(self.client("count", self.write("noname", whole), "--dtype", "u8").out, "%d\n" % len(whole))

    def test_what_is_no_array(self):
        """Refused by the first bytes, from a file and from standard input; --raw, --offset and --dtype are believed."""
        gz = b"\x1f\x8b\x08\0" + bytes(36)
        zipped = self.write("a.npz", b"PK\3\4" + bytes(36))
        plain = self.write("a.bin", gz)
        numbers = self.write("numbers", b"1\n2\n3\n4\n")
        for command in ("sum", "describe"):
            self.fails(65, "a ZIP archive", command, zipped)
            self.fails(65, "unpack it first", command, plain)
            self.fails(65, "--raw", command, "-", data=gz)
            self.fails(65, "text", command, numbers)
        self.fails(65, "gzip", "sum", plain, tcp=True)
        self.fails(65, "gzip", "sum", plain, "--shape", "5,2", "--axis", "0")
        self.assertEqual(self.client("count", plain, "--raw").out, "10\n")
        self.assertEqual(self.client("count", "-", "--raw", data=gz).out, "10\n")
        self.assertEqual(self.client("count", plain, "--offset", "0").out, "10\n")
        self.assertEqual(self.client("count", plain, "--dtype", "f64").out, "5\n")
        self.assertEqual(self.client("count", "-", "--dtype", "u8", data=gz).out, "40\n")
        self.fails(65, "a ZIP archive", "sum", zipped, "--dtype", "f64")
        self.assertEqual(self.client("count", zipped, "--dtype", "f64", "--raw").out, "5\n")
        # a .npy file too is bytes with --raw, and streams longer than what is looked at lose nothing
        self.assertEqual(self.client("count", self.npy, "--raw").out, "%d\n" % (os.path.getsize(self.npy) // 4))
        data = struct.pack("<30000f", *self.values)
        self.assertEqual(self.client("sum", "-", data=data).out.strip(), repr(self.exact_sum()))

    def test_usage(self):
        for arguments in ((), ("frobnicate", self.raw), ("sum",), ("sum", self.raw, self.raw, "--axis", "0"), ("ping", "x"), ("ping", "--total"),
                          ("merge", self.raw, "--ops", "sum", "--total"), ("sum", self.raw, "--total", "--partial"),
                          ("reduce", self.raw), ("reduce", self.raw, "--ops", ""), ("reduce", self.raw, "--ops", "sum,"),
                          ("reduce", self.raw, "--ops", "sum,sum"), ("reduce", self.raw, "--ops", "sum,nope"),
                          ("sum", self.raw, "--ops", "sum"), ("sum", self.raw, "--nope"), ("sum", self.raw, "-x"),
                          ("sum", self.raw, "--dtype", "f31"), ("sum", self.raw, "--dtype", "complex64"),
                          ("sum", self.raw, "--dtype"), ("sum", self.raw, "--json=1"), ("sum", self.raw, "--count", "-1"),
                          ("sum", self.raw, "--offset", "1k"), ("sum", self.raw, "--count", "99999999999999999999"),
                          ("sum", self.raw, "--timeout", "0"), ("sum", self.raw, "--timeout", "soon"),
                          ("sum", self.raw, "--timeout", "nan"), ("sum", self.raw, "--timeout", "25h"),
                          ("sum", self.raw, "--timeout", "2m"), ("sum", self.raw, "--timeout", "1441min"),
                          ("sum", self.raw, "--via", "magic"), ("sum", self.raw, "--nan", "drop"),
                          ("sum", self.raw, "--ddof", "-1"), ("sum", "-", "--via", "descriptor"),
                          ("sum", self.raw, "--kernel", ""), ("ping", "--kernel", "v7_shuffle")):
            self.client(*arguments, code=64)
        self.fails(65, "limit is 64", "sum", self.raw, "--kernel", "k" * 65)
        self.client("sum", self.raw, "--via", "descriptor", code=64, tcp=True)
        for address in ("tcp:x", "unix:", "tcp:h:0"):
            self.assertEqual(self.run_static("ping", "--connect", address).code, 64)

    def test_what_only_a_daemon_has(self):
        for words, status in (("config show", 69), ("config reload", 69), ("stats", 65), ("slowlog", 65), ("top --once", 65)):
            result = self.run_static(*words.split(), "--connect", "embedded:")
            self.assertEqual((status, ""), (result.code, result.out), words)
            self.assertRegex(result.err, "^cured-client: embedded: (there is no daemon|no daemon is asked)", words)

    def test_nobody_there(self):
        with socket.socket() as deaf:  # it has a port, and does not listen
            deaf.bind(("127.0.0.1", 0))
            for address in ("unix:" + self.dir + "/none", "tcp:127.0.0.1:%d" % deaf.getsockname()[1]):
                result = self.run_static("sum", self.raw, "--connect", address)
                self.assertEqual(result.code, 69, result)
                self.assertIn("cannot connect", result.err)

    def test_a_server_that_is_not_cured(self):
        path = os.path.join(self.dir, "other")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(1)

            def answer():
                peer = listener.accept()[0]
                with peer:
                    peer.recv(16)
                    peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    while peer.recv(65536):
                        pass
            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            result = self.run_static("ping", "--connect", "unix:" + path)
            self.assertEqual(result.code, 76, result)
            thread.join(HANG_S)

    def test_timeout(self):
        path = os.path.join(self.dir, "silent")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(1)
            result = self.run_static("ping", "--connect", "unix:" + path, "--timeout", "20ms")
        self.assertEqual(result.code, 75, result)
        self.assertIn("DEADLINE_EXCEEDED", result.err)

    def test_full_output(self):
        with open("/dev/full", "wb") as full:
            process = subprocess.run([CLIENT, "sum", self.raw, "--connect", self.unix], stdout=full,
                                     stderr=subprocess.PIPE, timeout=HANG_S, env=ENVIRONMENT)
        self.assertEqual(process.returncode, 74)


if __name__ == "__main__":
    main()
