#!/usr/bin/env python3
"""cured-client's words: other spellings of types and lists, mistakes that name what was meant, errors as JSON, notes and what
silences them, exit codes that are not those of success."""
import json
import os
import socket
import struct
import subprocess

from cli_daemon import CLIENT, ENVIRONMENT, HANG_S, CliTest, main, npy


class Words(CliTest):
    def test_types_have_many_names(self):
        four = self.write("four.bin", struct.pack("<4d", 1, 2, 3, 4))
        for name in ("f64", "float64", "double", "f8", "<f8", "=f8"):
            self.assertEqual("10\n", self.client("sum", four, "--dtype", name).out, name)
        whole = self.write("whole.bin", struct.pack("<4q", 1, 2, 3, 2**40))
        for name in ("i64", "int64", "<i8"):
            self.assertEqual("%d\n" % (6 + 2**40), self.client("sum", whole, "--dtype", name).out, name)
        for name, count in (("i8", 32), ("u8", 32), ("|u1", 32), (">i1", 32), ("<u8", 4), ("half", 16), ("single", 8), ("f4", 8)):
            self.assertEqual("%d\n" % count, self.client("count", whole, "--dtype", name).out, name)
        self.assertEqual("10\n", self.client("sum", self.write("big.bin", struct.pack(">4d", 1, 2, 3, 4)), "--dtype", ">f8").out)
        self.fails(64, "unknown dtype", "sum", four, "--dtype", ">f9")
        self.fails(64, "f32 or f64", "sum", four, "--dtype", "float")

    def test_lists_may_have_spaces(self):
        lines = self.client("reduce", self.raw, "--ops", " sum, max ,min ").out.splitlines()
        self.assertEqual(["sum", "max", "min"], [line.split()[0] for line in lines])
        self.assertEqual(100, len(self.client("max", self.raw, "--shape", "100, 300", "--axis", "1").out.split()))
        for ops in ("sum max", "sum,, max", "sum, ", ","):
            self.fails(64, "--ops", "reduce", self.raw, "--ops", ops)
        for shape in ("100 300", "100,,300", "100, ", " "):
            self.fails(64, "--shape", "max", self.raw, "--axis", "0", "--shape", shape)

    def test_what_was_meant(self):
        for word, meant in (("smu", "sum"), ("averge", "average"), ("stddev", "std"), ("argmx", "argmax"),
                            ("reduec", "reduce"), ("doctr", "doctor"), ("xyzzy", None)):
            result = self.fails(64, "unknown command '%s'" % word, word, self.raw)
            self.assertEqual(meant is not None, "did you mean" in result.err, result.err)
            self.assertIn("did you mean %s?" % meant if meant else "count_nonzero", result.err)
        self.fails(64, "did you mean mean?", "reduce", self.raw, "--ops", "sum,maen")
        self.fails(64, "bit_xor", "reduce", self.raw, "--ops", "frobnicate")
        self.fails(64, "did you mean --dtype?", "sum", self.raw, "--dtyp", "f32")
        self.assertNotIn("did you mean", self.fails(64, "unknown option", "sum", self.raw, "--zzz").err)

    def test_types_and_options_that_are_none(self):
        self.fails(64, "did you mean f32?", "sum", self.raw, "--dtype", "f3x")
        for wrong, meant in (("flaot32", "float32"), ("float23", "float32"), ("unit8", "uint8"), ("bfloat61", "bfloat16")):
            self.fails(64, "did you mean %s?" % meant, "sum", self.raw, "--dtype", wrong)
        self.fails(64, "--dtype: int is 4 bytes in C and 8 in NumPy: say i32 or i64", "sum", self.raw, "--dtype", "int")
        for name, says in (("uint", "say u32 or u64"), ("float128", "not offered yet"), ("float8_e4m3", "not offered yet")):
            self.assertNotIn("did you mean", self.fails(64, says, "sum", self.raw, "--dtype", name).err)
        self.fails(64, "only answers are of i128; an array is of i64", "sum", self.raw, "--dtype", "i128")
        self.fails(64, "did you mean bf16?", "sum", self.raw, "--result-dtype", "bf61")
        self.assertNotIn("did you mean", self.fails(64, "unknown dtype", "sum", self.raw, "--dtype", "quux").err)
        for op, more in (("sum", ("--ddof", "1")), ("sum", ("--overflow", "wrap")), ("min", ("--result-dtype", "f64")), ("sum", ("--q", "0.5"))):
            self.fails(64, more[0] + ": none of the ops takes it", op, self.raw, *more)
        self.client("reduce", self.raw, "--ops", "sum,var", "--ddof", "1")

    def test_a_second_list_of_ops_adds(self):
        out = self.client("reduce", self.raw, "--ops", "sum", "--ops", "max,min").out
        self.assertEqual(self.client("reduce", self.raw, "--ops", "sum,max,min").out, out)
        self.fails(64, "--ops names sum twice", "reduce", self.raw, "--ops", "sum", "--ops", "max,sum")
        self.fails(64, "average is of two arrays: give the other as --second FILE", "reduce", self.raw, "--ops", "sum,average")

    def test_a_second_axis_adds(self):
        cube = ("sum", self.raw, "--shape", "10,100,30")
        whole, both = self.client(*cube, "--axis", "0,2").out, self.client(*cube, "--axis", "0", "--axis=-1").out
        self.assertEqual((100, whole), (len(whole.split()), both))
        self.fails(64, "--axis names dimension 2 of", *cube, "--axis", "2", "--axis=-1")

    def test_what_is_no_path(self):
        for name, says in (("http://host/a.npy", "is a URL, not a path"), ("s3://a/b", "is a URL, not a path"),
                           ("HTTP://x", "is a URL, not a path"), ("git+ssh://x", "is a URL, not a path"), ("TCP:host:5", "goes behind --connect: tcp:host:5"),
                           ("tcp:host:5", "goes behind --connect: tcp:host:5"), ("tpc:host:5", "goes behind --connect: tcp:host:5"),
                           ("unxi:/s", "goes behind --connect: unix:/s")):
            self.fails(66, says, "sum", name)
        self.assertNotIn("--connect", self.fails(66, "No such file", "sum", "c:a.bin").err)
        there = self.write("tcp:a", struct.pack("<2f", 1, 2))
        run = subprocess.run([os.path.abspath(CLIENT), "sum", "tcp:a", "--connect", self.unix], cwd=self.dir, env=ENVIRONMENT, capture_output=True, timeout=HANG_S)
        self.assertEqual((0, b"3\n"), (run.returncode, run.stdout), there)
        for address in ("tpc:localhost:5", "http://x", "HTTP://x", "TCP:x:1", "udp:x:1"):
            result = self.run_static("ping", "--connect", address)
            self.assertEqual(64, result.code, result)
            self.assertIn("begins with none of unix:, tcp:, tls:", result.err)

    def test_where_nobody_listens(self):
        """What is advised is what a daemon takes."""
        for address, listens in (("nowhere", "unix:nowhere &"), ("unix:nowhere", "unix:nowhere &"), ("tcp:127.0.0.1:1", "tcp:127.0.0.1:1 &"),
                                 ("tls:127.0.0.1:1", "tcp:127.0.0.1:1 --tls-certificate FILE --tls-key FILE,")):
            result = self.run_static("ping", "--connect", address)
            self.assertEqual(69, result.code, result)
            self.assertIn("cured --listen " + listens, result.err)

    def test_a_file_is_no_command(self):
        self.assertIn("is no command but a file", self.fails(64, "cured-client describe FILE", self.raw).err)

    def test_a_file_that_looks_like_an_option(self):
        self.write("-x.bin", struct.pack("<2f", 1, 2))
        self.fails(64, "./-x.bin", "sum", "-x.bin")
        for name in ("./-x.bin", "--"):
            arguments = ("sum", name) if name != "--" else ("sum", "--connect", self.unix, "--", "-x.bin")
            run = subprocess.run([os.path.abspath(CLIENT), *arguments, *(("--connect", self.unix) if name != "--" else ())],
                                 cwd=self.dir, env=ENVIRONMENT, capture_output=True, timeout=HANG_S)
            self.assertEqual(b"3\n", run.stdout, run)

    def test_timeout_in_its_own_words(self):
        path = os.path.join(self.dir, "silent")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(1)
            result = self.run_static("sum", self.raw, "--connect", "unix:" + path, "--timeout", "20ms")
        self.assertEqual(75, result.code, result)
        self.assertIn("raw.bin: no answer within --timeout 20ms (DEADLINE_EXCEEDED)", result.err)

    def test_names_that_are_not_utf8(self):
        """JSON is UTF-8, and names of files are bytes. In a sentence that is cut a character may be cut, too."""
        folder = os.fsencode(self.dir)
        for name, shown in ((b"b\xffd.npy", "b\ufffdd.npy"), (b"\xc3\xa9.npy", "\u00e9.npy"), (b"\xe2\x82x.npy", "\ufffd\ufffdx.npy"),
                            (b'q"\\\n.npy', 'q"\\\n.npy'), (b"\xed\xa0\x80.npy", "\ufffd" * 3 + ".npy")):
            path = folder + b"/" + name
            with open(path, "wb") as file:
                file.write(npy(struct.pack("<2f", 1, 2), "<f4", (2,)))
            for words in ((path, self.npy), (path + b"x",)):
                done = subprocess.run([CLIENT, "sum", *words, "--json", "--connect", self.unix], env=ENVIRONMENT, capture_output=True, timeout=HANG_S)
                first = json.loads(done.stdout.split(b"\n")[0].decode())  # which is strict
                self.assertIn(shown, first["file"] if len(words) == 2 else first["error"])
            os.unlink(path)
        for length in range(900, 1010):
            done = subprocess.run([CLIENT, "sum", "\u20ac" * (length // 3) + "a" * (length % 3), "--json"], env=ENVIRONMENT, capture_output=True, timeout=HANG_S)
            self.assertIn("\u20ac", json.loads(done.stdout.decode())["error"])

    def test_errors_as_json(self):
        def error(code, *arguments, **more):
            result = self.run_static(*arguments, **more)
            self.assertEqual(code, result.code, result)
            self.assertEqual(1, result.out.count("\n"), result)
            answer = json.loads(result.out)
            self.assertEqual(code, answer["exit"])
            self.assertIn(answer["error"], result.err)
            return answer
        there = ("--connect", self.unix)
        self.assertIn("No such file", error(66, "sum", self.dir + "/none", "--json", *there)["error"])
        self.assertNotIn("status", error(64, "--json", "smu", self.raw))
        error(64, "sum", self.raw, "--nope", "--json")
        error(69, "ping", "--json", "--connect", "unix:/nowhere/s")
        refused = error(65, "bit_and", self.raw, "--json", *there)
        self.assertEqual("INVALID_ARGUMENT", refused["status"])
        self.assertNotIn("(INVALID_ARGUMENT)", refused["error"])
        # answers stay what they are, and so does what doctor finds
        self.assertIn("results", json.loads(self.run_static("sum", self.raw, "--json", *there).out))
        self.assertIsInstance(json.loads(self.run_static("doctor", "--json", "--connect", "unix:/nowhere/s").out), list)

    def test_nothing_has_one_exit_status(self):
        empty = self.write("empty.npy", npy(b"", "<f4", (0,)))
        described = self.run_static("describe", empty, "--connect", self.unix)
        reduced = self.run_static("reduce", empty, "--ops", "count,min", "--connect", self.unix)
        self.assertEqual((65, 65), (described.code, reduced.code))
        self.assertIn("count 0\n", described.out)
        self.assertIn("min -\n", described.out)

    def test_notes(self):
        three = self.write("three.bin", struct.pack("<3f", 1, 2, 3))
        result = self.client("var", three, "--ddof", "3")
        self.assertEqual("nan\n", result.out)
        self.assertIn("--ddof 3 is not below the 3 elements", result.err)
        self.assertEqual("", self.client("var", three, "--ddof", "3", "--quiet").err)
        self.assertEqual("", self.client("var", three, "--ddof", "2").err)
        self.fails(66, "No such file", "sum", self.dir + "/none", "--quiet")

    def test_a_kernel_without_a_gpu(self):
        if "backend cuda" in self.client("info").out:
            self.skipTest("this daemon has a GPU")
        self.fails(69, "CUDA device", "sum", self.raw, "--kernel", "v7_shuffle")


if __name__ == "__main__":
    main()
