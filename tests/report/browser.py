# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by the DevTools protocol over two pipes. It has no network: every
host name resolves to nothing, so that only files open."""
import base64
import contextlib
import json
import os
import select
import subprocess
import tempfile
import time

PROGRAM = os.environ.get("CACHEWARM_CHROMIUM") or "/usr/bin/chromium-headless-shell"
ARGUMENTS = ("--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--hide-scrollbars", "--no-first-run", "--disable-extensions",
             "--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking")
REPLY_SECONDS = 60


class Browser:
    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.to_write = os.pipe()
        self.from_read, from_write = os.pipe()
        # Chromium reads from descriptor 3 and writes to descriptor 4.
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", 'exec "$@" 3<&"$0" 4>&"$FROM"', str(to_read), PROGRAM, *ARGUMENTS,
             f"--user-data-dir={self.profile.name}", "about:blank"],
            env={**os.environ, "FROM": str(from_write)}, pass_fds=(to_read, from_write),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.pending = b""
        self.number = 0
        self.events = []

    def close(self):
        with contextlib.suppress(OSError):
            os.close(self.to_write)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.from_read)
        self.profile.cleanup()

    def receive(self, deadline):
        """Returns the next message."""
        while b"\0" not in self.pending:
            wait = deadline - time.monotonic()
            if wait <= 0 or not select.select([self.from_read], [], [], wait)[0]:
                raise TimeoutError("the browser does not answer")
            chunk = os.read(self.from_read, 1 << 20)
            if not chunk:
                raise EOFError(f"{PROGRAM} ended with {self.process.wait()}")
            self.pending += chunk
        message, _, self.pending = self.pending.partition(b"\0")
        return json.loads(message)

    def call(self, method, session=None, **params):
        """Returns the result of one call; keeps the events that arrive meanwhile."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_write, data):]
        deadline = time.monotonic() + REPLY_SECONDS
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method):
        deadline = time.monotonic() + REPLY_SECONDS
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.receive(deadline))

    def open(self, path, width, scheme):
        return Page(self, path, width, scheme)


class Page:
    """A file, open in a window of this width, in the colour scheme "light" or "dark"."""

    def __init__(self, browser, path, width, scheme):
        self.browser = browser
        browser.events.clear()
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = browser.call("Target.attachToTarget", targetId=target,
                                    flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        browser.wait_for("Page.loadEventFired")

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def complaints(self):
        """Messages of the console and of the browser's log, and exceptions."""
        names = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event for event in self.browser.events if event.get("method") in names]

    def requests(self):
        """The addresses that the page asked for, the file itself first."""
        return [event["params"]["request"]["url"] for event in self.browser.events
                if event.get("method") == "Network.requestWillBeSent"]

    def screenshot(self, path, height=None):
        """Writes the whole page, or its first `height` pixels, as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": height or size["height"],
                "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", clip=clip,
                         captureBeyondViewport=True)["data"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(data))
