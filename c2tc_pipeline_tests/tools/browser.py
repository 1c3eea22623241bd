"""Headless Chromium for tests, driven over its DevTools pipe.

The pipe needs no package, driver or port, and Chromium ends with it, even if the tests are killed. The protocol is at
https://chromedevtools.github.io/devtools-protocol/.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    # The sandbox does not start as root nor in many containers.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    # Requests of Chromium itself would be counted as the page's.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
)
TIMEOUT_SECONDS = 60.0


class Page:
    """An open page of a running Chromium, whose stdin and stdout are its DevTools pipe."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._unread = b""
        self._last_id = 0
        self._session: str | None = None
        self._events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def open(self, url: str) -> None:
        """Open an address and wait until the page and its images are loaded."""
        self._events.clear()
        answer = self.call("Page.navigate", url=url)
        if error := answer.get("errorText"):
            raise AssertionError(f"{url} does not open: {error}")
        deadline = time.monotonic() + TIMEOUT_SECONDS
        # Events of the previous page may still arrive.
        while not any(
            event["name"] == "load" and event["loaderId"] == answer["loaderId"]
            for event in self._seen("Page.lifecycleEvent")
        ):
            self._events.append(self._receive(deadline))

    def look(self, *, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Set the window size and the preferred colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression; promises are awaited."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if problem := found.get("exceptionDetails"):
            raise AssertionError(_thrown(problem))
        return found["result"].get("value")

    def wait_until(self, condition: str, seconds: float = TIMEOUT_SECONDS) -> None:
        """Wait until a JavaScript expression is true."""
        held = self.evaluate(
            "new Promise(resolve => {"
            f"  const end = Date.now() + {1000 * seconds};"
            f"  const check = () => ({condition}) ? resolve(true) : Date.now() > end ? resolve(false)"
            "    : setTimeout(check, 50);"
            "  check();"
            "})"
        )
        assert held, f"In {seconds:g} s this did not become true: {condition}; the page says: {self.text[:2000]}"

    @property
    def text(self) -> str:
        """The visible text."""
        return str(self.evaluate("document.body.innerText"))

    @property
    def console_errors(self) -> list[str]:
        """Errors since the page was opened: thrown, logged, or reported by the browser."""
        self._drain()
        errors = [_thrown(event["exceptionDetails"]) for event in self._seen("Runtime.exceptionThrown")]
        for event in self._seen("Runtime.consoleAPICalled"):
            if event["type"] in ("error", "assert"):
                errors.append(" ".join(str(part.get("value", part.get("description"))) for part in event["args"]))
        for event in self._seen("Log.entryAdded"):
            if event["entry"]["level"] == "error":
                errors.append(f"{event['entry']['text']} {event['entry'].get('url', '')}".strip())
        return errors

    @property
    def requests(self) -> list[str]:
        """Requested addresses since the page was opened, its own first, without ``data:``."""
        self._drain()
        addresses = [event["request"]["url"] for event in self._seen("Network.requestWillBeSent")]
        return [address for address in addresses if not address.startswith("data:")]

    @property
    def dialogs(self) -> list[str]:
        """Messages of dialogs since the page was opened."""
        self._drain()
        return [event["message"] for event in self._seen("Page.javascriptDialogOpening")]

    def _drain(self) -> None:
        # An answer comes after all earlier events.
        self.evaluate("0")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol and return its answer."""
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\0")
        self._process.stdin.flush()
        deadline = time.monotonic() + TIMEOUT_SECONDS + 5
        while (received := self._receive(deadline)).get("id") != self._last_id:
            self._events.append(received)
        if "error" in received:
            raise AssertionError(f"{method}: {received['error']['message']}")
        result: dict[str, Any] = received["result"]
        return result

    def _seen(self, method: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self._events if event.get("method") == method]

    def _receive(self, deadline: float) -> dict[str, Any]:
        """Return the next message."""
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        while b"\0" not in self._unread:
            ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError("The browser does not answer.")
            if not (piece := os.read(pipe, 1 << 20)):
                raise AssertionError("The browser ended on its own.")
            self._unread += piece
        message, _, self._unread = self._unread.partition(b"\0")
        parsed: dict[str, Any] = json.loads(message)
        return parsed


@contextmanager
def open_page(url: str = "about:blank", *, width: int = 1200, height: int = 900, dark: bool = False) -> Iterator[Page]:
    """Open an address in a new browser; skip the test where there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("there is no Chromium on this machine (Debian: apt install chromium)")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # Chromium reads commands from file 3 and answers on file 4.
        on_pipe = ["sh", "-c", 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null', "sh"]
        process = subprocess.Popen(
            [*on_pipe, program, *FLAGS, f"--user-data-dir={profile}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        try:
            page = Page(process)
            page.look(width=width, height=height, dark=dark)
            page.open(url)
            yield page
        finally:
            process.kill()
            process.communicate()


def _thrown(details: dict[str, Any]) -> str:
    return str(details.get("exception", {}).get("description") or details["text"])
