"""The same input gives the same bytes, whatever the environment says of hashes, language and time."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from adjudge.protocols.base import protocol

ENVIRONMENTS = (
    {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "UTC"},
    {"PYTHONHASHSEED": "77", "LC_ALL": "C.UTF-8", "TZ": "Asia/Kathmandu", "LANGUAGE": "tr_TR"},
)
FLAGS = {
    "flight": ("task", "outputs", "reference"),
    "triage": ("results", "manifest"),
    "consistency": ("pairs", "policy"),
    "gui": ("episodes", "predictions", "outcomes", "space", "bbox"),
}


def content(folder: Path) -> dict[str, bytes]:
    """Numbers, charts, samples and evidence of a run; raw outputs say at which line they stand."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "manifest.json" and path.parent.name != "outputs"
    }


@pytest.mark.parametrize("name", FLAGS)
def test_another_hash_seed_locale_time_zone_and_order_change_no_byte(name, tmp_path):
    config = protocol(name).example(tmp_path / "data", 2)
    words: list[str] = []
    for flag in FLAGS[name]:
        value = config[flag][0] if name == "triage" and flag == "results" else config[flag]
        words += [f"--{flag}", *(value if isinstance(value, list) else [value])]
    runs = []
    for number, environment in enumerate(ENVIRONMENTS):
        out = tmp_path / f"run{number}"
        command = [sys.executable, "-c", "from adjudge.cli.main import run; run()", name, *words]
        done = subprocess.run(
            [*command, "--out", str(out), "--no-report", "--quiet"],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in {0, 1}, done.stderr
        runs.append(content(out))
        for word in words:  # the second time in another order
            if word.endswith(".jsonl"):
                lines = Path(word).read_text(encoding="utf-8").splitlines(keepends=True)
                random.Random(5).shuffle(lines)  # noqa: S311 -- no secret
                Path(word).write_text("".join(lines), encoding="utf-8")
    first, second = runs
    assert first == second
