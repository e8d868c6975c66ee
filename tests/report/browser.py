"""A headless Chromium, driven over its debugging pipe: what a page did, drew and looks like.

The pipe (two file descriptors, JSON messages that end with a zero byte) needs no library and no
port. Left out: everything that a page without script does not need.

Source: the Chrome DevTools Protocol, https://chromedevtools.github.io/devtools-protocol/.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--remote-debugging-pipe",
)
LAUNCHER = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 20) for end in sys.argv[1:3]]
for place, end in enumerate(ends, start=3):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The browser expects its pipe at descriptors 3 and 4; shells differ in what they can move."""
ANSWER_S_MAX = 60.0
Scheme = Literal["light", "dark"]


class Browser:
    """One browser with one page, without network."""

    def __init__(self, width: int = 1100, height: int = 1000) -> None:
        self.events: list[dict[str, Any]] = []
        self._size = (width, height)
        self._profile = tempfile.mkdtemp(prefix="iolab-chromium-")
        program = next(path for name in NAMES if (path := shutil.which(name)))
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                LAUNCHER,
                str(to_read),
                str(to_write),
                program,
                *FLAGS,
                f"--user-data-dir={self._profile}",
                "about:blank",
            ],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer = b""
        self._last_id = 0
        self._session: str | None = None

    def __enter__(self) -> Self:
        """Attach to the only page and cut it off from the network."""
        try:
            self._attach()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _attach(self) -> None:
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=0,
            uploadThroughput=0,
        )
        self._resize(self._size[1])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the browser and remove its profile."""
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send one command and wait for its answer; events met on the way are kept."""
        self._last_id += 1
        message: dict[str, object] = {"id": self._last_id, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last_id:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 20)
            assert part, "the browser is gone"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path, scheme: Scheme = "light") -> None:
        """Load a file and wait until it is laid out."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", media="screen", features=[feature])
        self.call("Page.navigate", url=path.absolute().as_uri())
        ends = time.monotonic() + ANSWER_S_MAX
        while self.evaluate("document.readyState + location.protocol") != "completefile:":
            assert time.monotonic() < ends, f"{path} does not load"
            time.sleep(0.05)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def complaints(self) -> list[str]:
        """Return everything the console or the log said, and every exception."""
        found: list[str] = []
        for event in self.events:
            kind, told = event.get("method"), event.get("params", {})
            if kind == "Log.entryAdded":
                found.append(told["entry"]["text"])
            elif kind == "Runtime.exceptionThrown":
                found.append(told["exceptionDetails"]["text"])
            elif kind == "Runtime.consoleAPICalled":
                found.append(str(told["args"]))
        return found

    def requests(self) -> list[str]:
        """Return the addresses that were asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def screenshot(self, path: Path, top: int = 0, height: int | None = None) -> None:
        """Save what is to be seen from `top` on."""
        clip = {"x": 0, "y": top, "width": self._size[0], "height": height or self._size[1]}
        answer = self.call(
            "Page.captureScreenshot", clip={**clip, "scale": 1}, captureBeyondViewport=True
        )
        path.write_bytes(base64.b64decode(answer["data"]))

    def print_pdf(self, path: Path) -> None:
        """Print to A4, with the style for paper."""
        self.call("Emulation.setEmulatedMedia", media="print")
        answer = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def _resize(self, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=self._size[0],
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
