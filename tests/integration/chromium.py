"""chromium: a headless Chromium for tests, driven over its DevTools pipe (file descriptors 3 and 4, a NUL after each message)."""
import base64
import json
import os
import select
import shutil
import subprocess
import time

HANG_S = 180  # only catches hangs: nothing here waits that long


def find():
    """The program's path; None where there is none."""
    return next((path for path in map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser")) if path), None)


class Chromium:
    """One browser with one page. folder: where it may write."""

    def __init__(self, folder, width=1280, height=900):
        to_browser, from_browser = os.pipe(), os.pipe()

        def place():  # the two ends of the browser become 3 and 4, whatever they are
            low, high = os.dup(to_browser[0]), os.dup(from_browser[1])
            low, high = os.dup2(low, 100), os.dup2(high, 101)
            os.dup2(low, 3, inheritable=True)
            os.dup2(high, 4, inheritable=True)

        flags = [find(), "--headless", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--hide-scrollbars",
                 "--disable-dev-shm-usage", "--user-data-dir=" + os.path.join(folder, "chromium"), "--no-sandbox",
                 "--window-size=%d,%d" % (width, height), "about:blank"]
        self.process = subprocess.Popen(flags, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=place, close_fds=False, env=dict(os.environ, HOME=folder))
        os.close(to_browser[0])
        os.close(from_browser[1])
        self.write_end, self.read_end = to_browser[1], from_browser[0]
        self.buffer, self.last, self.session, self.complaints = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    def message(self):
        limit = time.monotonic() + HANG_S
        while b"\0" not in self.buffer:
            if not select.select([self.read_end], [], [], max(0, limit - time.monotonic()))[0]:
                raise AssertionError("Chromium says nothing")
            piece = os.read(self.read_end, 1 << 20)
            if not piece:
                raise AssertionError("Chromium has ended")
            self.buffer += piece
        text, _, self.buffer = self.buffer.partition(b"\0")
        message = json.loads(text)
        if message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(message["params"]["exceptionDetails"])[:500])
        if message.get("method") == "Log.entryAdded":
            self.complaints.append(message["params"]["entry"]["text"])
        return message

    def call(self, method, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise AssertionError("%s: %s" % (method, answer["error"]))
                return answer["result"]

    def run(self, script):
        """The value of an expression of JavaScript."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError("%s: %s" % (script, result["exceptionDetails"]))
        return result["result"].get("value")

    def wait(self, script, timeout=HANG_S):
        """Until the expression is true; its value."""
        limit = time.monotonic() + timeout
        while True:
            value = self.run(script)
            if value:
                return value
            if time.monotonic() > limit:
                raise AssertionError("not within %g s: %s; the page says: %s" % (timeout, script, self.run("document.body.innerText")))
            time.sleep(0.05)

    def go(self, url):
        self.call("Page.navigate", url=url)
        self.wait("location.href == %s && document.readyState == 'complete'" % json.dumps(url))

    def size(self, width, height, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def press(self, key, code):
        text = {"Enter": "\r"}.get(key)
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    def screenshot(self, path, format="png", **more):
        data = self.call("Page.captureScreenshot", format=format, **more)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def close(self):
        os.close(self.write_end)
        os.close(self.read_end)
        self.process.terminate()
        try:
            self.process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
