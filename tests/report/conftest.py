"""Runs that the report tests read: the seeded flight example, judged once a session."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

import adjudge
from adjudge.protocols.base import protocol
from adjudge.protocols.flight.generate import generate
from adjudge.runs.run import Run


@pytest.fixture(scope="session")
def flight_data(tmp_path_factory):
    """Five models on simulated flights; one answer tries to be a script, one to move the cursor."""
    paths = generate(tmp_path_factory.mktemp("data"), seed=0, task="S1", force=True)
    hostile = next(iter(paths.outputs.values()))
    lines = hostile.read_text(encoding="utf-8").splitlines()
    ids = [line.split('"id":')[1].split('"')[1] for line in lines[:2]]
    name = hostile.stem.removeprefix("outputs_")
    texts = ("<script>document.title = 'owned'</script><img src=x onerror=alert(1)>", r"\u001b[2J\u001b]0;owned\u0007")
    for place, (sample, text) in enumerate(zip(ids, texts, strict=True)):
        lines[place] = f'{{"id": "{sample}", "model": "{name}", "response": "{text}"}}'
    hostile.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths, name, ids


@pytest.fixture(scope="session")
def config(flight_data):
    paths, _, _ = flight_data
    return {
        "task": "S1",
        "outputs": [str(path) for path in paths.outputs.values()],
        "reference": [str(paths.reference)],
        "resamples": 200,
    }


@pytest.fixture(scope="session")
def flight_run(flight_data, config, tmp_path_factory) -> Run:
    _, name, _ = flight_data
    gates = [f"{name}/eligibility_rate >= 0.1", f"{name}/mae_p95.high <= 0.001", f"{name}/nonsense > 1"]
    return adjudge.evaluate("flight", config, out=tmp_path_factory.mktemp("runs") / "run", gates=gates)


@pytest.fixture
def copy_of(tmp_path):
    """A run that a test may change."""

    def copy(run: Run) -> Path:
        target = tmp_path / "copy"
        shutil.copytree(run.path, target)
        return target

    return copy


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
        self._send("Emulation.setEmulatedMedia", features=[scheme])
        self._send("Page.navigate", url=path.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())

    def run(self, script: str) -> Any:
        answer = self._send("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, path: Path) -> None:
        shot = self._send("Page.captureScreenshot", captureBeyondViewport=True)
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


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip(
            "the page is tested in Chromium, and there is no `chromium` on this machine (Debian: apt install chromium)"
        )
    opened = Browser(program, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


HOSTILE = "<script>document.title = 'owned'</script><img src=x onerror=alert(1)>"


def _in_lines(path: Path, change: Any) -> None:
    """Change the records of a JSON Lines file in place."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    change(records)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def _hostile_flight(records: list[dict[str, Any]]) -> None:
    records[0]["response"] = HOSTILE


def _hostile_gui(records: list[dict[str, Any]]) -> None:
    records[0]["raw"] = HOSTILE


def _hostile_triage(records: list[dict[str, Any]]) -> None:
    for record in records:
        if record["error"]:  # the worst are shown, and these are among them
            record |= {"error": HOSTILE, "prediction": HOSTILE}


def _hostile_consistency(records: list[dict[str, Any]]) -> None:
    records[0] |= {"flags": {"provenance_violation": True, "constraints_mismatch": True}}
    records[0]["scholar"]["label"] = records[0]["auditor"]["label"] = "REJECT"
    records[0]["answer_json"] |= {"claim": HOSTILE, "citations": ["nowhere"]}


def _hostile_stability(records: list[dict[str, Any]]) -> None:
    for record in records:
        if record["qid"] == "s01":
            record["answer_json"]["claim"] = HOSTILE


def _hostile_score(path: Path) -> None:
    """The summaries of an Inspect log, in place."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    summaries = json.loads(members["summaries.json"])
    for summary in summaries:
        if "error" in summary:  # the worst are shown, and these are among them
            summary["error"] = HOSTILE
        for score in summary["scores"].values():
            score["answer"] = HOSTILE
    members["summaries.json"] = json.dumps(summaries).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


_CHANGES = {
    "flight": ("outputs_falcon-a.jsonl", _hostile_flight),
    "gui": ("predictions_off_target.jsonl", _hostile_gui),
    "triage": ("results_hawk-1.jsonl", _hostile_triage),
    "consistency": ("pairs.jsonl", _hostile_consistency),
    "stability": ("runs.jsonl", _hostile_stability),
}


@pytest.fixture(scope="session")
def demo(tmp_path_factory) -> dict[str, Run]:
    """Every protocol on the example that the demo judges, one answer of each replaced by one that tries to be a script."""
    folder = tmp_path_factory.mktemp("demo")
    found = {}
    for name in ("anomaly", "check", "consistency", "flight", "gui", "score", "stability", "triage"):
        data = folder / name
        data.mkdir()
        config = protocol(name).example(data, 0)
        if name in _CHANGES:
            file, change = _CHANGES[name]
            _in_lines(data / file, change)
        if name == "score":
            _hostile_score(data / "acme_small.eval")
        found[name] = adjudge.evaluate(name, config, out=folder / f"{name}-run")
    return found


@pytest.fixture(scope="session")
def hostile() -> str:
    return HOSTILE
