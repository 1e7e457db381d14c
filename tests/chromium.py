"""Drive a headless Chromium through its DevTools protocol; the tests use it."""

import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from websocket import create_connection  # comes with Jupyter

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run
--disable-background-networking --disable-component-update --disable-sync
--disable-popup-blocking --hide-scrollbars --remote-debugging-port=0""".split()
NO_NETWORK = "--host-resolver-rules=MAP * ~NOTFOUND"  # no host name leads anywhere


class Chromium:
    """One page without a network; `requests` and `errors` are those since `open`."""

    def __init__(self, width, height):
        self.sent, self.requests, self.errors = 0, [], []
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        flags = [*FLAGS, NO_NETWORK, f"--user-data-dir={self.folder.name}"]
        self.process = subprocess.Popen([PROGRAM, *flags], stderr=subprocess.DEVNULL)
        port = Path(self.folder.name) / "DevToolsActivePort"
        wait(lambda: port.is_file() and port.read_text().strip(), "Chromium")
        listed = f"http://127.0.0.1:{port.read_text().split()[0]}/json/list"
        tabs = json.load(urllib.request.urlopen(listed))
        where = next(t for t in tabs if t["type"] == "page")["webSocketDebuggerUrl"]
        self.socket = create_connection(where, timeout=60, suppress_origin=True)
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.call("Emulation.setDeviceMetricsOverride", **size, mobile=False)

    def call(self, method, **params):
        """The result of one command of the protocol; notes the events before it."""
        self.sent += 1
        command = {"id": self.sent, "method": method, "params": params}
        self.socket.send(json.dumps(command))
        while (answer := json.loads(self.socket.recv())).get("id") != self.sent:
            event, data = answer.get("method"), answer.get("params", {})
            level = data.get("type") or data.get("entry", {}).get("level")
            if event == "Network.requestWillBeSent":
                self.requests.append(data["request"]["url"])
            elif event == "Runtime.exceptionThrown" or level in ("error", "assert"):
                self.errors.append(json.dumps(data))
        if "error" in answer or "exceptionDetails" in answer["result"]:
            raise RuntimeError(json.dumps(answer))
        return answer["result"]

    def open(self, address, ready="true"):
        """Go to a page and wait until the JavaScript expression `ready` is true."""
        self.call("Page.navigate", url="about:blank")
        self.requests, self.errors = [], []
        self.call("Page.navigate", url=address)
        done = f"document.readyState === 'complete' && !!({ready})"
        wait(lambda: self.evaluate(done), address)

    def evaluate(self, script):
        """The value of a JavaScript expression in the page; awaits a promise."""
        how = {"awaitPromise": True, "returnByValue": True, "userGesture": True}
        answer = self.call("Runtime.evaluate", expression=script, **how)
        return answer["result"].get("value")

    def close(self):
        """End the browser and remove its folder."""
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=60)
        self.folder.cleanup()


def wait(condition, what, seconds=60):
    """Return once condition() is true; TimeoutError if that takes too long."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} was not ready within {seconds} seconds.")
        time.sleep(0.05)
