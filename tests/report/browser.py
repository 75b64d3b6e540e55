"""A headless Chromium, driven over its debugging pipe: pages are opened, run, looked at and photographed."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import time
from pathlib import Path
from typing import Any


class Browser:
    """A headless Chromium, driven over its debugging pipe."""

    def __init__(self, program: str, profile: Path) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        flags = [
            f"--{flag}"
            for flag in (
                "headless",
                "no-sandbox",
                "disable-gpu",
                "disable-quic",
                "no-first-run",
                "disable-background-networking",
                "disable-component-update",
                "disable-sync",
                "hide-scrollbars",
                "remote-debugging-pipe",
            )
        ]
        self._process = subprocess.Popen(
            [
                "sh",
                "-c",
                f'exec "$@" 3</proc/self/fd/{theirs_in} 4>/proc/self/fd/{theirs_out}',
                "sh",
                program,
                *flags,
                f"--user-data-dir={profile}",
            ],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._number, self._rest = 0, b""
        self.events: list[dict[str, Any]] = []
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        self._session: str | None = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._send(f"{domain}.enable")

    _session = None

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select.select([self._in], [], [], 60)[0], "chromium does not answer"
            piece = os.read(self._in, 1 << 20)
            assert piece, "chromium went away"
            self._rest += piece
        first, _, self._rest = self._rest.partition(b"\0")
        return json.loads(first)

    def open(self, path: Path, *, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        self.events.clear()
        self._send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._send("Emulation.setEmulatedMedia", media="", features=[scheme])
        self._send("Page.navigate", url=path.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())

    def on_paper(self) -> None:
        """Show the page as it is printed, until another is opened."""
        self._send("Emulation.setEmulatedMedia", media="print")

    def run(self, script: str) -> Any:
        answer = self._send("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def ready(self, path: Path, **options: Any) -> None:
        """Open a page and wait until its explorer is up."""
        self.open(path, **options)
        end = time.monotonic() + 60
        while self.run("document.getElementById('explorer')?.dataset.ready") != "true":
            assert time.monotonic() < end, "the explorer does not come up"
            time.sleep(0.02)
        self.run("document.documentElement.style.scrollBehavior = 'auto'")

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """What is in sight, or the whole page."""
        shot = self._send("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """Console messages, exceptions and log entries, such as a refusal by the page's policy."""
        kinds = {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}
        return [json.dumps(event["params"])[:400] for event in self.events if event.get("method") in kinds]

    def requests(self) -> list[str]:
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def close(self) -> None:
        self._session = None
        self._send("Browser.close")
        self._process.wait(30)
        os.close(self._in)
        os.close(self._out)
