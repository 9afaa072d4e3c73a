#!/usr/bin/env python3
"""test_headers: requests of HTTP whose headers two programs may read differently, at the door of operators: each is refused, once, and
the connection ends. They are what request smuggling and cache poisoning are made of."""
import unittest

from admin_client import exchange, request
from cured_daemon import main
from test_admin import AdminTest

LINE, HOST = b"GET /healthz/live HTTP/1.1\r\n", b"Host: localhost\r\n"
LIVE = request("/healthz/live")

REFUSED = {  # by what is wrong: status, and what stands in place of the headers
    "no name": (400, HOST + b": x\r\n"),
    "no name, first": (400, b": x\r\n" + HOST),
    "a space in a name": (400, HOST + b"X Y: z\r\n"),
    "a space behind a name": (400, b"Host : localhost\r\n"),
    "a space for a name": (400, HOST + b" : z\r\n"),
    "a tab in a name": (400, HOST + b"X\tY: z\r\n"),
    "a bracket in a name": (400, HOST + b"X(Y): z\r\n"),
    "a byte of UTF-8 in a name": (400, HOST + b"X\xc3\xa4: z\r\n"),
    "NUL in a name": (400, HOST + b"X\0: z\r\n"),
    "NUL in a value": (400, HOST + b"X: a\0b\r\n"),
    "a control byte in a value": (400, HOST + b"X: a\x01b\r\n"),
    "no colon": (400, HOST + b"Xyz\r\n"),
    "a folded line": (400, HOST + b"X: a\r\n b\r\n"),
    "a line folded by a tab": (400, HOST + b"X: a\r\n\tb\r\n"),
    "a folded Host": (400, b"Host: local\r\n host\r\n"),
    "a folded blank line": (400, HOST + b"X: a\r\n \r\n"),
    "a folded first line": (400, b" " + HOST),
    "CR alone in a value": (400, HOST + b"X: a\rb\r\n"),
    "CR alone before the end": (400, HOST + b"X: a\r\r\n"),
    "CR alone in a name": (400, HOST + b"X\r: a\r\n"),
    "LF alone": (400, HOST + b"X: y\n"),
    "Content-Length twice": (400, HOST + b"Content-Length: 0\r\nContent-Length: 0\r\n"),
    "two lengths": (400, HOST + b"Content-Length: 0\r\nContent-Length: 5\r\n"),
    "a list of lengths": (400, HOST + b"Content-Length: 0, 0\r\n"),
    "a length with a sign": (400, HOST + b"Content-Length: +0\r\n"),
    "a length in hexadecimal": (400, HOST + b"Content-Length: 0x0\r\n"),
    "a length of none": (400, HOST + b"Content-Length: \r\n"),
    "a length of two numbers": (400, HOST + b"Content-Length: 0 0\r\n"),
    "Host twice": (400, HOST + HOST),
    "another Host": (400, HOST + b"Host: example.org\r\n"),
    "Host missing": (400, b"X: y\r\n"),
    "a list of hosts": (421, b"Host: localhost, localhost\r\n"),
    "an empty Host": (421, b"Host: \r\n"),
    "Authorization twice": (400, HOST + b"Authorization: Bearer a.b\r\nAuthorization: Bearer c.d\r\n"),
    "a length and an encoding": (400, HOST + b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"),
    "an encoding and a length": (400, HOST + b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n"),
    "two encodings": (400, HOST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
    "an encoding of none": (413, HOST + b"Transfer-Encoding:\r\n"),
    "the encoding identity": (413, HOST + b"Transfer-Encoding: identity\r\n"),
    "an unknown encoding": (413, HOST + b"Transfer-Encoding: xchunked\r\n"),
}
TARGETS = (b"/healthz/live x", b"/heal\tthz/live", b"/healthz/live\x01", b"/healthz/live\xff", b"/healthz\0/live", b" /healthz/live\x7f")


class Headers(AdminTest):
    def refused(self, status, data, what):
        answers = exchange(self.unix, LIVE + data + LIVE, 9, end=True)
        self.assertEqual([200, status], [a.status for a in answers], what)
        self.assertEqual("close", answers[-1].headers["connection"], what)
        self.assertGreater(len(answers[-1].body), 8, what)

    def test_each_is_refused_and_what_follows_is_not_read(self):
        for what, (status, headers) in REFUSED.items():
            self.refused(status, LINE + headers + b"\r\n", what)

    def test_targets(self):
        for target in TARGETS:
            self.refused(400, b"GET %s HTTP/1.1\r\n" % target + HOST + b"\r\n", target)

    def test_cut_anywhere_they_are_refused(self):
        """The reader sees a fold, and an empty name, also where a packet ends within."""
        from admin_client import Reader, connect
        for what in ("a folded line", "no name", "a space in a name", "an encoding of none", "Authorization twice"):
            status, headers = REFUSED[what]
            data = LINE + headers + b"\r\n"
            for cut in range(len(LINE), len(data)):
                with connect(self.tcp) as s:
                    reader = Reader(s)
                    s.sendall(data[:cut])
                    try:
                        s.sendall(data[cut:])
                    except OSError:
                        pass  # it was answered before
                    self.assertEqual(status, reader.answer().status, (what, cut))
                    reader.close()

    def test_what_only_looks_odd_is_answered(self):
        for headers in (b"X:\r\n", b"X: \t y \t\r\n", b"X!#$%&'*+-.^_`|~9: y\r\n", b"X: \xc3\xa4\r\n", b"Content-Length: 0\r\n",
                        b"Connection: keep-alive\r\n"):
            answers = exchange(self.unix, LINE + HOST + headers + b"\r\n" + LIVE, 2, end=True)
            self.assertEqual([200, 200], [a.status for a in answers], headers)


if __name__ == "__main__":
    main()
