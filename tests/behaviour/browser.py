# SPDX-License-Identifier: BSD-3-Clause
"""Chromium without a window, driven by its DevTools protocol through a pipe."""
import base64
import json
import os
import select
import shutil
import subprocess
import time

from conftest import SLOWER

CHROMIUM = shutil.which("chromium")
# Of a machine with nothing to draw on; a browser of root has no sandbox.
WORDS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe"]


class Browser:
    """One page. `complaints` are errors that scripts threw, that they or the browser wrote to the console, in order."""

    def __init__(self, directory):
        command, self.answers = os.pipe()[::-1], None
        to_browser, self.commands = command[1], command[0]
        self.answers, from_browser = os.pipe()
        # the protocol wants its pipes as descriptors 3 and 4
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}', CHROMIUM, *WORDS,
             f"--user-data-dir={directory}"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, pass_fds=(to_browser, from_browser))
        os.close(to_browser)
        os.close(from_browser)
        self.bytes, self.number, self.session, self.complaints = b"", 0, None, []
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.do(f"{domain}.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.commands)
        os.close(self.answers)

    def next(self, deadline):
        """The next thing that the browser says."""
        while b"\0" not in self.bytes:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.answers], [], [], left)[0], "the browser does not answer"
            more = os.read(self.answers, 1 << 20)
            assert more, f"the browser ended, code {self.process.wait()}"
            self.bytes += more
        line, self.bytes = self.bytes.split(b"\0", 1)
        return json.loads(line)

    def hear(self, said):
        """What is no answer."""
        what, about = said.get("method"), said.get("params", {})
        if what == "Runtime.exceptionThrown":
            self.complaints.append(about["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        elif what == "Runtime.consoleAPICalled":
            self.complaints.append(f"{about['type']}: {about['args']}")
        elif what == "Log.entryAdded":
            self.complaints.append(f"{about['entry']['level']}: {about['entry']['text']}")

    def do(self, method, **about):
        self.number += 1
        asked = {"id": self.number, "method": method, "params": about}
        if self.session:
            asked["sessionId"] = self.session
        os.write(self.commands, json.dumps(asked).encode() + b"\0")
        deadline = time.monotonic() + 60 * SLOWER
        while (said := self.next(deadline)).get("id") != self.number:
            self.hear(said)
        assert "error" not in said, (method, said["error"])
        return said["result"]

    def value(self, script):
        """What an expression comes to."""
        result = self.do("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, (script, result["exceptionDetails"])
        return result["result"].get("value")

    def until(self, script, timeout=30):
        """Waits until it is true; returns it."""
        deadline = time.monotonic() + timeout * SLOWER
        while not (value := self.value(script)):
            assert time.monotonic() < deadline, f"waited in vain: {script}\n{self.complaints}\n" + self.value(
                "document.body.innerText")
        return value

    def size(self, width, height, dark=False):
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.do("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, url):
        self.do("Page.navigate", url=url)

    def picture(self, path):
        """All of the page, as a PNG."""
        taken = self.do("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))
