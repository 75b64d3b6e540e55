"""A user's package that imports `adjudge.extend` alone: listed, run, explained, compared and verified like our own."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent / "plugins" / "adjudge_exact"
SOURCE = PACKAGE / "src" / "adjudge_exact" / "__init__.py"


@pytest.fixture(scope="module")
def adjudge_command(tmp_path_factory):
    """The command line with the package on the path, as pip would leave it."""
    folder = tmp_path_factory.mktemp("site")
    info = folder / "adjudge_exact-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: adjudge-exact\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(
        "[adjudge.rules]\nexact = adjudge_exact:RULES\n\n[adjudge.protocols]\nexact = adjudge_exact:PROTOCOL\n"
    )
    (folder / "adjudge_exact").symlink_to(SOURCE.parent, target_is_directory=True)

    def command(*words, code=0, cwd=None):
        done = subprocess.run(
            [sys.executable, "-c", "from adjudge.cli.main import run; run()", *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "100"},
        )
        assert done.returncode == code, done.stderr
        return done

    return command


@pytest.fixture
def files(tmp_path, write_lines):
    gold = [{"id": f"q{i}", "answer": f"answer {i}"} for i in range(40)]
    answers = [
        {"id": f"q{i}", "model": model, "answer": f"answer {i}" if i % wrong else "something else"}
        for model, wrong in (("ant", 2), ("bee", 8))
        for i in range(39 if model == "ant" else 40)
    ]
    return write_lines(tmp_path / "answers.jsonl", answers), write_lines(tmp_path / "gold.jsonl", gold)


def test_it_imports_the_second_door_alone_and_is_short():
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    imported = {
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    } | {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {name for name in imported if name.startswith("adjudge")} == {"adjudge.extend"}
    assert len(SOURCE.read_text(encoding="utf-8").splitlines()) < 120


def test_help_lists_it(adjudge_command):
    lines = adjudge_command("--help").stdout.splitlines()
    assert "  exact        a protocol of an installed package" in lines
    assert "--answers" in adjudge_command("exact", "--help").stdout


def test_it_runs_like_our_own(adjudge_command, files, tmp_path):
    answers, gold = files
    run = tmp_path / "run"
    gate = ("--gate", "bee/exact_match >= 0.8")
    shown = adjudge_command("exact", "--answers", answers, "--gold", gold, "--out", run, "--workers", 2, *gate).stderr
    assert "exact match" in shown
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["buckets"]["ant"] == {
        **dict.fromkeys(("abstained", "unparsed", "errored"), 0),
        "passed": 19,
        "failed": 20,
        "missing": 1,
        "n": 40,
    }
    values = {item["slice"]: item["value"] for item in metrics["estimates"] if item["name"] == "exact_match"}
    assert values == {"model=ant": 19 / 40, "model=bee": 35 / 40}
    assert metrics["headline"] == ["exact_match"]
    assert "holds" in adjudge_command("verify", run).stdout + adjudge_command("verify", run).stderr
    assert "not so: it is the gold answer" in adjudge_command("explain", run, "q0", "--model", "ant").stdout
    compared = json.loads(adjudge_command("compare", f"{run}::ant", f"{run}::bee", "--json").stdout)
    assert compared["pairs"][0]["verdict"] == "better"


@pytest.mark.parametrize(
    "words, message",
    [
        (("--gold", "gold.jsonl"), "--answers is missing"),
        (("--answers", "answers.jsonl", "--gold", "gold.jsonl", "--set", "fold"), "not of the form KEY=VALUE"),
        (
            ("--answers", "answers.jsonl", "--gold", "gold.jsonl", "--set", "fold=1"),
            "exact has no setting 'fold'. Did you mean",
        ),
        (("--answers", "answers.jsonl", "answers.jsonl", "--gold", "gold.jsonl"), "stands there twice for"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_written(adjudge_command, files, tmp_path, words, message):
    done = adjudge_command("exact", *words, "--out", "run", code=2, cwd=tmp_path)
    assert message in done.stderr
    assert not (tmp_path / "run").exists()
