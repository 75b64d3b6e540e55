"""Runs that the report tests read: the seeded flight example, judged once a session."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.report.browser import Browser

import adjudge
from adjudge.protocols.base import protocol
from adjudge.protocols.flight.generate import generate
from adjudge.report import html
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


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """The pages of the examples, each made when it is asked for."""
    made = {}

    def page(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            run = adjudge.evaluate(name, protocol(name).example(folder, 0), out=folder / "run", report=False)
            (run.path / "page.html").write_bytes(html.render(run))
            made[name] = run
        return made[name]

    return page
