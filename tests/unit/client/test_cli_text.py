#!/usr/bin/env python3
"""cured-client --text: columns of numbers that are written out. Each is rounded as Python's float() rounds it, integers stay integers,
and from there on the answers are those of the same values in binary."""
import json
import math
import os
import random
import struct
import subprocess
import sys
import threading

from cli_daemon import CLIENT, ENVIRONMENT, HANG_S, CliTest, main

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "oracle"))
import ops  # noqa: E402: tests/oracle

ENDS = ("9223372036854775807", "-9223372036854775808")


class Text(CliTest):
    def sum(self, text, *options, code=0):
        """What cured-client says of a text on standard input, in this process."""
        data = text.encode() if isinstance(text, str) else text
        result = self.run_static("sum", "--text", "-", *options, "--connect", "embedded:", data=data)
        self.assertEqual(code, result.code, (text[:200], options, result))
        return result.err.rstrip("\n").split(": ", 1)[1] if code else result.out.rstrip("\n")

    def test_what_a_field_may_be(self):
        for text, answer in (("1\n2\n", "3"), ("1\n2", "3"), ("1\r\n2\r\n", "3"), ("\n 1\n\n\t2 \n\n", "3"), ("", "0"), ("\n\r\n", "0"),
                             ("+1\n-0\n007", "8"), ("1.\n.5\n1e1\n-2.5E-1", "11.25"), ("\ufeff1\n2", "3"), ("\ufeff", "0"),
                             ("inf\n-5", "inf"), ("-Infinity", "-inf"), ("nan\n1", "nan"), ("1\x0b\n2\x0c\n", "3"),
                             ("1e400", "inf"), ("1e-400\n1", "1"), (ENDS[0] + "\n1", "9223372036854775808"), (ENDS[1], ENDS[1]),
                             ("9007199254740993\n", "9007199254740993"), ("9007199254740993\n0.0", "9007199254740992"),
                             ("9007199254740993.0", "9007199254740992"), ("18446744073709551616\n0.5", "1.8446744073709552e+19"),
                             ("0.5\n18446744073709551616", "1.8446744073709552e+19"), ("0.1\n" * 10, "1")):
            self.assertEqual(answer, self.sum(text), text)
        for text in ("1,5", "0x10", "1_000", "1 000 x", "one", "1e", "e5", ".", "+", "--1", "1.2.3", "1e5.", "NA", "infinit", "1\0", '"1"'):
            self.assertRegex(self.sum(text + "\n", code=65), r"^standard input: line 1: ('.*' is no number|there are 3 fields)", text)
        self.assertIn("line 3: '1,5' is no number", self.sum("1\r\n\r\n1,5\n2", code=65))
        self.assertIn("line 2: 'a?[31m' is no number", self.sum("1\na\x1b[31m\n", code=65))
        self.assertIn("line 2: a number has more than 4096 bytes", self.sum("1\n" + "1" * 5000 + "\n", code=65))
        self.assertIn("UTF-16", self.sum("1\n".encode("utf-16"), code=65))
        self.assertIn("line 2: the integer does not fit into i64", self.sum("1\n9223372036854775808\n2\n", code=65))

    def test_types(self):
        self.assertEqual("1.8446744073709552e+19", self.sum("1\n18446744073709551616", "--dtype", "f64"))
        self.assertEqual("3", self.sum("1\n2", "--dtype", "i64"))
        self.assertIn("line 2: '2.0' is no integer", self.sum("1\n2.0", "--dtype", "i64", code=65))
        self.assertIn("line 2: the integer does not fit", self.sum("1\n9223372036854775808\n0.5", "--dtype", "i64", code=65))
        # bits are of integers alone, so only what the column turns out to be counts
        for text, code in (("7\n5\n", 0), ("7\n5.0\n", 65), ("0.5\n", 65)):
            for tcp in (False, True):
                result = self.client("bit_and", "--text", "-", data=text.encode(), code=code, tcp=tcp)
                self.assertEqual("" if code else "5\n", result.out)

    def test_columns(self):
        text = "x,price,\"a \"\"b\"\"\"\r\n1,0.5,7\r\n\"2\",\"1.5\",8,more\r\n\r\n3, 2.5 ,9"
        for column, answer in (("1", "6"), ("x", "6"), ("price", "4.5"), ("2", "4.5"), ('a "b"', "24")):
            self.assertEqual(answer, self.sum(text, "--header", "--delimiter", ",", "--column", column), column)
        for delimiter, d in (("\\t", "\t"), ("tab", "\t"), ("\t", "\t"), (";", ";"), (" ", " "), ("|", "|")):
            rows = "".join("%s%s%d%sz\n" % ("a" * (i % 3), d, i, d) for i in range(10))
            self.assertEqual("45", self.sum(rows, "--delimiter", delimiter, "--column", "2"), delimiter)
        self.assertEqual("6", self.sum("a 1\n  b\t2 c\nd   3\n", "--column", "2"))
        self.assertEqual("3", self.sum("n\n1\n2\n", "--header"))
        self.assertEqual("3", self.sum("\n\nn m\n1 5\n2 5\n", "--header", "--column", "n"))
        # quotes hold delimiters and lines
        self.assertEqual("3", self.sum('"a,b\n\n""c",1\n"",2\n', "--delimiter", ",", "--column", "2"))
        self.assertIn("line 4: '1,5' is no number", self.sum('"a\n\n",1\n"x","1,5"\n', "--delimiter", ",", "--column", "2", code=65))
        self.assertIn("line 2: a quote of this row is never closed", self.sum('1\n"2\n3\n', "--delimiter", ",", code=65))
        # what is missing is NaN
        for text in ("1,\n2,5\n", "1,\"\"\n2,5\n", "1,  \r\n2,5\n"):
            self.assertEqual(("nan", "5"), (self.sum(text, "--delimiter", ",", "--column", "2"),
                                            self.sum(text, "--delimiter", ",", "--column", "2", "--nan", "skip")))
        self.assertEqual("nan", self.sum('1\n""\n', "--delimiter", ","))
        self.assertIn("line 2: there are 1 fields, and column 2 counts", self.sum("1 2\n3\n", "--column", "2", code=65))
        self.assertIn("line 1: there are 2 fields: --column says", self.sum("1 2\n", code=65))
        self.assertIn("line 2: there are 3 fields: --column says", self.sum("1\n1,,\n", "--delimiter", ",", code=65))
        self.assertIn("columns 1 and 3 have this name", self.sum("a,b,a\n", "--header", "--column", "a", "--delimiter", ",", code=65))
        self.assertIn("no column is named 'q'", self.sum("a,b,a\n", "--header", "--column", "q", "--delimiter", ",", code=65))
        self.assertIn("no column is named 'q'", self.sum("", "--header", "--column", "q", code=65))
        self.assertIn("--header passes over", self.sum("price\n1\n", code=65))

    def test_how_often_it_is_sent(self):
        """Of a file one call has all numbers, of a pipe two until a decimal comes. A decimal behind many integers turns both to f64."""
        def requests():
            return sum(int(row["count"]) for row in json.loads(self.client("stats", "--json").out)["requests"] if row["method"] == "reduce")
        integers = b"".join(b"%d\n" % (2**53 + 1) for _ in range(60000))  # of several blocks
        for text, answer, sent in ((integers, str(60000 * (2**53 + 1)), 1), (integers + b"0.5\n", repr(float(60000 * 2**53) + 0.5), 2),
                                   (b"0.5\n" + integers, repr(float(60000 * 2**53) + 0.5), 1), (b"1\n2\n", "3", 1), (b"", "0", 1)):
            file = self.write("often.txt", text)
            before = requests()
            self.assertEqual(answer + "\n", self.client("sum", "--text", file).out)
            self.assertEqual(sent, requests() - before, text[:9])
            self.assertEqual(answer + "\n", self.client("sum", "--text", "-", data=text).out)
        for more in (("--dtype", "i64"), ()):  # an error behind the first blocks names its line in both readings
            result = self.client("sum", "--text", self.write("bad.txt", integers + b"0.5\nx\n"), *more, code=65)
            self.assertIn("line 60001: '0.5' is no integer" if more else "line 60002: 'x' is no number", result.err)
        rest = self.write("rest.txt", b"header\n" + integers + b"0.5\n")  # standard input that is a file, from where it stands
        with open(rest, "rb", buffering=0) as file:
            file.seek(7)
            run = subprocess.run([CLIENT, "sum", "--text", "-", "--connect", self.unix], stdin=file, capture_output=True, env=ENVIRONMENT, check=False)
        self.assertEqual((repr(float(60000 * 2**53) + 0.5) + "\n").encode(), run.stdout, run.stderr)
        self.assertEqual(str((2**53 + 1) & 0) + "\n", self.client("bit_xor", "--text", self.write("x.txt", integers)).out)
        self.client("bit_xor", "--text", self.write("x.txt", integers + b"0.5\n"), code=65)

    def test_lines_of_any_length(self):
        long = "y" * 3000000
        self.assertEqual("7", self.sum("%s,1,%s\n%s,2\n\"%s\n\"\"%s\",%s4 \n" % (long, long, long, long, long, " " * 1000000),
                                       "--delimiter", ",", "--column", "2"))
        self.assertEqual("3", self.sum("1 %s\n%s\n2" % (long, " " * 1000000), "--column", "1"))
        self.assertEqual("3", self.sum("%s a\n1 2\n2 3\n" % long, "--header", "--column", "1"))
        self.assertIn("line 2: a quote of this row is never closed", self.sum('1\n"' + long, "--delimiter", ",", code=65))

    def test_bounded_memory(self):
        most = []
        for length in (1, 60000000):
            process = subprocess.Popen([CLIENT, "sum", "--text", "--column", "2", "-", "--connect", "embedded:"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, env=ENVIRONMENT)
            process.stdin.write(b"x" * length + b" 7 " + b"y" * length + b"\n")
            process.stdin.close()
            self.assertEqual(b"7\n", process.stdout.read())
            process.stdout.close()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status
            self.assertEqual(0, status)
            most.append(usage.ru_maxrss)
        self.assertLess(most[1] - most[0], 8192, most)  # KiB

    def test_the_answers_are_those_of_the_values(self):
        rnd = random.Random(5)
        integers = [rnd.getrandbits(63) - 2**62 for _ in range(20000)]
        reals = [struct.unpack("<d", struct.pack("<Q", rnd.randrange(1000, 1040) << 52 | rnd.getrandbits(52)))[0] for _ in range(20000)]
        late = integers + [0.5]
        for name, values, dtype in (("i", integers, "i64"), ("r", reals, "f64"), ("late", late, "f64")):
            text = self.write(name + ".txt", "".join("%r\n" % v for v in values).encode())
            kind = "q" if dtype == "i64" else "d"
            raw = self.write(name + ".bin", struct.pack("<%d%s" % (len(values), kind), *values))
            single = [op for op in ops.IDS if op not in ops.WHOLE and op not in (ops.BITS if dtype == "f64" else ("prod",))]
            for asked in (single[:12], single[12:], list(ops.RANKED)):
                for place in (("--connect", "embedded:"), ("--connect", self.unix), ("--connect", self.tcp)):
                    if asked == list(ops.RANKED) and place[1] != "embedded:":
                        continue
                    wanted = self.run_static("reduce", raw, "--dtype", dtype, "--ops", ",".join(asked), *place)
                    found = self.run_static("reduce", text, "--text", "--ops", ",".join(asked), *place)
                    self.assertEqual((wanted.code, wanted.out), (found.code, found.out), (name, place, found.err))
            said = json.loads(self.client("digest", text, "--text", "--json").out)
            self.assertEqual((dtype, len(values)), (said["dtype"], said["count"]))
            self.assertEqual(self.client("describe", raw, "--dtype", dtype).out, self.client("describe", text, "--text").out)
        self.assertEqual(repr(math.fsum(reals)), self.client("sum", "--text", os.path.join(self.dir, "r.txt")).out.strip())
        self.assertEqual("%d\n" % sum(integers), self.client("sum", "--text", os.path.join(self.dir, "i.txt")).out)

    def test_without_a_daemon_and_from_a_pipe_in_pieces(self):
        numbers = ["%.3f" % (i / 7) for i in range(5000)]
        text = "\n".join(numbers).encode()
        process = subprocess.Popen([CLIENT, "argmax", "--text", "-", "--connect", "embedded:"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT)
        def feed():
            rnd, at = random.Random(1), 0
            while at < len(text):
                n = rnd.choice((1, 2, 50, 3000))
                process.stdin.write(text[at:at + n])
                process.stdin.flush()
                at += n
            process.stdin.close()
        thread = threading.Thread(target=feed)
        thread.start()
        self.assertEqual(b"4999\n", process.stdout.read())
        thread.join(HANG_S)
        self.assertEqual(0, process.wait(HANG_S))
        process.stdout.close()

    def test_several_files(self):
        a, b, c = (self.write(n, t) for n, t in (("a.csv", b"v,w\n1,2\n3,4\n"), ("b.csv", b"w,v\n10,5\n"), ("c.csv", b"v\n0.5\n")))
        column = ("--text", "--header", "--column", "v", "--delimiter", ",")
        self.assertEqual(["4 " + a, "5 " + b, "9 total"], self.client("sum", a, b, *column, "--total").out.splitlines())
        self.assertEqual(["1 " + a, "2 " + b, "2 total"], self.client("argmax", a, b, *column, "--total").out.splitlines())
        ranked = self.run_static("median", a, b, *column, "--total")  # without an address in this process
        self.assertEqual(["2 " + a, "5 " + b, "3 total"], ranked.out.splitlines(), ranked)
        self.assertEqual(["4 " + a, "0.5 " + c], self.client("sum", a, c, *column).out.splitlines())
        for op in ("sum", "median"):
            result = self.run_static(op, a, c, *column, "--total")
            self.assertEqual(65, result.code, result)
            self.assertIn("c.csv holds f64, the files before it i64", result.err)
        self.assertEqual(["4 " + a, "0.5 " + c, "4.5 total"], self.client("sum", a, c, *column, "--total", "--dtype", "f64").out.splitlines())
        part = os.path.join(self.dir, "c.crp")
        self.client("sum", c, *column, "--partial", "--output", part)
        self.assertEqual("0.5\n", self.client("merge", part, "--ops", "sum").out.split(" ")[-1])

    def test_what_does_not_go(self):
        a = self.write("a.txt", b"1\n")
        for more in (("--shape", "1"), ("--axis", "0"), ("--where", a), ("--second", a), ("--keys", a), ("--offsets", a), ("--raw",),
                     ("--offset", "0"), ("--count", "1"), ("--via", "descriptor"), ("--dtype", "f32"), ("--dtype", ">f8"),
                     ("--kernel", "v7_shuffle")):
            self.fails(64, "--text g", "sum", a, "--text", *more)
        for more in (("--header",), ("--column", "1"), ("--delimiter", ",")):
            self.fails(64, more[0] + " belongs to --text", "sum", a, *more)
        for delimiter in ("", ",,", "5", "e", "-", ".", '"', "\u00e9"):
            self.fails(64, "--delimiter is", "sum", a, "--text", "--delimiter", delimiter)
        self.fails(64, "must be a name, or a number from 1", "sum", a, "--text", "--column", "0")
        self.fails(64, "--header says", "sum", a, "--text", "--column", "price")
        self.fails(64, "merge takes no --text", "merge", a, "--ops", "sum", "--text")
        self.fails(66, "cannot open", "sum", os.path.join(self.dir, "s", "a.txt"), "--text")
        self.fails(66, "No such file", "sum", a + "x", "--text")
        self.fails(65, "is a gzip file, not text: unpack it first", "sum", "--text", self.write("a.gz", b"\x1f\x8b\x08\0\0\0"))
        self.fails(65, "give --text, and cured-client reads a column", "sum", self.write("n.csv", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"))
        error = json.loads(self.run_static("sum", "--text", "--json", self.write("bad.txt", b"1\n2\nx\n"), "--connect", "embedded:").out)
        self.assertEqual(65, error["exit"])
        self.assertIn("bad.txt: line 3: 'x' is no number", error["error"])


if __name__ == "__main__":
    main()
