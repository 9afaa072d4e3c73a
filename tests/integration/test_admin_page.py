#!/usr/bin/env python3
"""test_admin_page: the page of operators in a headless Chromium: it is live, holds in the width of a phone and in the dark, is used by
keyboard, and shows names to whom the daemon trusts. With --screenshot docs/page.webp it only makes that picture."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import chromium
from cured_daemon import CLIENT, CURED, Daemon, environment, main, need_binary
from cured_wire import CANCEL, CANCELLED, HELLO, frame, hello_message
from test_admin import windows

SECTIONS = ["Input folded", "Requests", "Lanes and GPUs", "Where the time of a request goes, last minute", "Refused, or ended to make room",
            "Requests since the start", "Memory", "Users", "Slowest requests of the last hour"]
# Of the sections that stand beside each other: those that are blank from their middle on, and how much of the two columns is filled.
BLANKS = """(() => {
  const box = e => e.getBoundingClientRect();
  const stack = box($('stages').closest('main > div')), all = ['stages', 'lanes', 'rejected', 'requests', 'pools'].map(id => $(id).closest('section'));
  const left = all.filter(s => 2 * (box(s.lastElementChild).bottom + 18 - box(s).top) < box(s).height).map(s => s.firstElementChild.textContent);
  const heights = side => all.filter(s => (box(s).left < stack.left + stack.width / 2) === side).map(s => box(s).height).reduce((a, b) => a + b, 0);
  return [left, Math.min(heights(true), heights(false)) / stack.height];
})()"""
# What is read beside each other, and must be told apart: contrast of at least 4.5 (WCAG 2.1, AA).
CONTRAST = """(() => {
  const style = getComputedStyle(document.documentElement);
  const light = name => {
    const hex = style.getPropertyValue("--" + name).trim().replace(/^#(.)(.)(.)$/, "#$1$1$2$2$3$3");
    const [r, g, b] = [1, 3, 5].map(i => parseInt(hex.substr(i, 2), 16) / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const pairs = ["text", "soft", "good", "warn", "bad"].flatMap(a => ["card", "back"].map(b => [a, b]));
  return pairs.filter(([a, b]) => { const [x, y] = [light(a), light(b)].sort((m, n) => n - m); return (x + .05) / (y + .05) < 4.5; }).join(" ");
})()"""


class Bridge:
    """TCP on a port of this machine to a Unix socket, as ssh -L makes it."""

    def __init__(self, path):
        self.path = path
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://localhost:%d/" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self.path)
            except OSError:
                return
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.pass_on, args=(a, b), daemon=True).start()

    @staticmethod
    def pass_on(a, b):
        try:
            while True:
                data = a.recv(65536)
                b.sendall(data) if data else b.shutdown(socket.SHUT_WR)
                if not data:
                    return
        except OSError:
            pass
        finally:
            a.close()

    def close(self):
        self.listener.close()


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_binary(CURED)
        if not chromium.find():
            raise unittest.SkipTest("there is no Chromium: scripts/bootstrap --clients installs it")
        cls.folder = tempfile.mkdtemp(prefix="cured-it-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.browser = chromium.Chromium(cls.folder)
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.daemon = Daemon(self.folder, env={"CURED_ADMIN": "unix:admin.sock,tcp:127.0.0.1:0"}, backend="cpu", max_jobs=8)
        self.addCleanup(lambda: self.daemon.check_end(self, self.daemon.stop()))
        unix, tcp = windows(self.daemon)
        self.url = "http://localhost:%s/" % tcp.rpartition(":")[2]
        self.bridge = Bridge(unix.partition(":")[2])
        self.addCleanup(self.bridge.close)
        self.browser.go("about:blank")  # the page of the last test asks a daemon that is gone
        self.browser.complaints.clear()
        self.browser.scheme("light")
        self.browser.size(1280, 900)

    def open(self, url=None):
        self.browser.go(url or self.url)
        self.browser.wait("document.getElementById('state').textContent == 'ready'")

    def quiet(self):
        self.assertEqual([], self.browser.complaints, "the browser complained")

    def test_it_is_live(self):
        self.open()
        with self.daemon.connect() as c:
            stream = c.start_stream("u8", ["sum"], 2)
            c.send_data(stream, b"\1")
            self.browser.wait("/In flight\\n1\\n/.test(document.getElementById('cards').innerText)")
            c.send_data(stream, b"\2", end=True)
            c.wait(stream)
        self.browser.wait("/In flight\\n0\\n/.test(document.getElementById('cards').innerText)")
        self.browser.wait("document.querySelector('#bytes-chart .curve').getAttribute('d').includes('L')")
        self.quiet()

    def test_it_shows_what_a_gpu_says(self):
        folder = os.environ.get("CURED_TEST_DIR", "")
        program = os.path.join(folder, "cured-fake-gpu")
        need_binary(program)
        own = tempfile.mkdtemp(dir=self.folder)
        daemon = Daemon(own, program=program, backend="cuda", admin="tcp:127.0.0.1:0",
                        env={"LD_LIBRARY_PATH": os.path.join(os.path.abspath(folder), "nvml"), "CURED_TEST_GPU": "fail_pin=1"})
        self.addCleanup(lambda: daemon.check_end(self, daemon.stop()))
        self.open("http://localhost:%s/" % windows(daemon)[0].rpartition(":")[2])
        for words in ("61 °C", "37 % in use by all", "1 error"):
            self.browser.wait("document.getElementById('lanes').innerText.includes(%s)" % json.dumps(words))
        self.quiet()

    def test_it_says_why_the_daemon_is_not_ready_and_when_it_is_gone(self):
        self.open()
        with self.daemon.connect() as c, tempfile.TemporaryFile(dir=self.folder) as holes:
            holes.truncate(1 << 40)  # the daemon goes on by itself, however late this process is, until the call is cancelled
            call = c.start_descriptor("u8", ["sum"], holes.fileno())
            c.ping()  # which is answered behind the call: a daemon that has not read the call yet ends at once
            self.daemon.process.terminate()
            self.browser.wait("document.getElementById('state').textContent == 'draining'")
            self.assertIn("running calls finish", self.browser.run("document.getElementById('state').title"))
            c.send(frame(CANCEL, call))
            self.assertEqual(CANCELLED, c.wait(call).status.code)
        self.assertEqual(0, self.daemon.wait())
        self.browser.wait("document.getElementById('state').textContent == 'no answer'")
        self.assertTrue(self.browser.run("document.title.startsWith('(no answer)')"))

    def test_names_are_for_whom_the_daemon_trusts(self):
        self.open()
        self.assertFalse(self.browser.run("document.getElementById('names').hidden"))
        self.assertTrue(self.browser.run("document.getElementById('who').hidden && document.getElementById('slowest').hidden"))
        self.open(self.bridge.url)
        name = "<img src=x onerror=alert(1)>"
        with self.daemon.connect(hello=False) as c:
            c.send(frame(HELLO, 0, hello_message(client=name)))
            c.greet()
            self.assertIsNone(c.stream("u8", ["sum"], bytes(1 << 20)).status)
            self.browser.wait("document.getElementById('slow').innerText.includes(%s)" % json.dumps(name))
        self.browser.wait("document.getElementById('users').innerText.includes('uid %d')" % os.geteuid())
        self.assertTrue(self.browser.run("document.getElementById('names').hidden"))
        self.quiet()

    def test_no_section_is_half_blank_beside_another(self):
        with self.daemon.connect() as c:
            self.assertIsNone(c.stream("u8", ["sum"], b"12").status)
        self.open()
        self.browser.run("paused = true")
        lane = "{name: 'gpu', device: 'H200', workers: 4, bytes: 1e9, busy_ns: 0, memory_bytes: 1e11, memory_used: 1e9}"
        for lanes, refused in ((1, 0), (9, 0), (2, 3), (1, 6)):
            self.browser.run("draw({...last, lanes: [...last.lanes, ...Array(%d).fill(%s)], rejected: Object.fromEntries([...Array(%d).keys()].map(i => ['r' + i, 2]))}, last)"
                             % (lanes - 1, lane, refused))
            blank, filled = self.browser.run(BLANKS)
            self.assertEqual([], blank, (lanes, refused))
            self.assertGreater(filled, 0.5, (lanes, refused))

    def test_its_captions_are_true(self):
        self.open()
        self.browser.run("paused = true")
        self.browser.run("draw({...last, rejected: {calls: 2, evicted: 3}}, last)")
        self.assertIn("5 refused or ended in all", self.browser.run("$('cards').innerText"))
        self.assertEqual(["45 s", "89 s", "119 s", "2 min", "5 min", "1 h 1 min", "2 d 3 h"],
                         self.browser.run("[45, 89, 119, 120, 299, 3660, 183600].map(s => span(1000 * s))"))
        self.browser.run("past.length = 0; for (const at of [0, 89000]) past.push({at, bytes: 1, requests: 1}); chart('bytes', 'bytes', rate)")
        self.assertEqual("last 89 s", self.browser.run("$('bytes-span').textContent"))

    def test_it_holds_in_a_phones_width(self):
        self.browser.size(360, 740, mobile=True)
        self.open(self.bridge.url)
        self.assertLessEqual(self.browser.run("document.scrollingElement.scrollWidth"), 360)
        self.assertGreaterEqual(self.browser.run("parseFloat(getComputedStyle(document.body).fontSize)"), 14)
        self.quiet()

    def test_it_can_be_read_in_light_and_dark(self):
        backs = []
        for scheme in ("light", "dark"):
            self.browser.scheme(scheme)
            self.open()
            backs.append(self.browser.run("getComputedStyle(document.body).backgroundColor"))
            self.assertEqual("", self.browser.run(CONTRAST), "too little contrast, " + scheme)
        self.assertEqual(["rgb(246, 247, 249)", "rgb(18, 21, 26)"], backs)

    def test_it_is_used_by_keyboard(self):
        self.open()
        focused = []
        for _ in range(3):
            self.browser.press("Tab", 9)
            focused.append(self.browser.run("document.activeElement.id || document.activeElement.className"))
        self.assertEqual(["skip", "pause", "stages"], focused)
        self.browser.run("document.getElementById('pause').focus()")
        self.browser.press("Enter", 13)
        self.assertEqual(["true", "Go on"], self.browser.run("[$('pause').getAttribute('aria-pressed'), $('pause').textContent]"))
        self.browser.press("Enter", 13)
        self.assertEqual("false", self.browser.run("$('pause').getAttribute('aria-pressed')"))

    def test_it_is_named_for_who_cannot_see_it(self):
        self.open(self.bridge.url)
        self.assertEqual("en", self.browser.run("document.documentElement.lang"))
        self.assertEqual(SECTIONS, self.browser.run("[...document.querySelectorAll('h2')].map(h => h.textContent)"))
        self.assertEqual(0, self.browser.run("[...document.querySelectorAll('[role=img], [role=region]')].filter(e => !e.getAttribute('aria-label')).length"))
        self.assertEqual(0, self.browser.run("[...document.querySelectorAll('th')].filter(e => !e.scope).length"))
        self.assertEqual("status", self.browser.run("$('state').getAttribute('role')"))
        self.assertEqual(0, self.browser.run("document.querySelectorAll('[src], link[href^=http], script[src]').length"), "an outside asset")


def picture(path):
    """The page of a daemon at work, for the documents."""
    folder = tempfile.mkdtemp(prefix="cured-it-")
    daemon = Daemon(folder, admin="unix:admin.sock")
    bridge = Bridge(os.path.join(folder, "admin.sock"))
    browser = chromium.Chromium(folder)
    over = threading.Event()
    with open(os.path.join(folder, "a.bin"), "wb") as f:
        f.truncate(32 << 20)

    def work(arguments, pause):
        while not over.is_set():
            subprocess.run([CLIENT, "--connect", daemon.address] + arguments + [f.name], env=environment(), capture_output=True)
            over.wait(pause)

    def small():
        with daemon.connect() as c:
            while not over.is_set():
                for _ in range(20):
                    c.inline("f32", ["sum", "max"], bytes(4096))
                over.wait(0.02 + 0.02 * (int(time.monotonic()) % 5))
    threads = [threading.Thread(target=work, args=a) for a in ((["sum"], 0.05), (["describe"], 0.3), (["reduce", "--ops", "bit_and", "--dtype", "u32"], 1))]
    threads.append(threading.Thread(target=small))
    for t in threads:
        t.start()
    browser.size(1160, 1000)
    browser.go(bridge.url)
    browser.wait("past.length > 32", timeout=200)
    browser.size(1160, browser.run("document.documentElement.scrollHeight"))
    time.sleep(2.5)
    browser.screenshot(path, format="webp", quality=80)
    over.set()
    for t in threads:
        t.join()
    browser.close()
    bridge.close()
    daemon.stop()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--screenshot"]:
        picture(sys.argv[2])
    else:
        main()
