"""Evaluations of damaged files: a run or a message, never another exception, within seconds and memory that are stated.

`python tests/fuzzing/evaluations.py 50000` takes more seeds; what one of them broke stands in `test_once_broken`.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from adjudge.cli.main import main
from adjudge.errors import AdjudgeError
from fuzzing import bounded, evaluations
from fuzzing.corpus import CASES, corpus

DEEP = "[" * 5000


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    return folder, corpus(folder)


@pytest.mark.parametrize("name", sorted(CASES))
def test_what_is_damaged_is_judged_while_it_is_whole(commands, tmp_path, monkeypatch, name):
    folder, words = commands
    monkeypatch.chdir(folder / name)
    arguments = [*words[name], "--out", str(tmp_path / "run"), "--no-report", "--quiet"]
    done = CliRunner().invoke(main, arguments, standalone_mode=False)
    assert done.exception is None, done.exception
    assert (tmp_path / "run" / "manifest.json").is_file()


def test_a_hundred_evaluations_of_damaged_files():
    script = Path(__file__).parent / "evaluations.py"
    done = subprocess.run([sys.executable, script, "100", "1"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "evaluations from seed 1: 100 (" in done.stdout
    assert ": 0 failures, at most" in done.stdout


ONCE_BROKEN = {
    "a policy that is nested too deeply": ("consistency-policy", "policy.yaml", DEEP),
    "a policy that rejects what nothing speaks against": (
        "consistency-policy",
        "policy.yaml",
        "policy: mine\nrows: [{when: {auditor: {not: VALID}}, final: REJECT, why: veto}, {final: REJECT, why: no}]",
    ),
    "splits that are no characters": ("anomaly-csv", "splits.json", b"\xf6{}"),
    "splits that are nested too deeply": ("anomaly-csv", "splits.json", DEEP),
    "scores without a test flight": ("anomaly-csv", "scores.csv", "flight,t,score,label\nf0,0,0.5,0\n"),
    "a header of scores that is no characters": ("anomaly-csv", "scores.csv", b"\xa2light,t,score,label\nf0,0,0.5,0\n"),
    "an attack whose type is a table": ("anomaly-detector", "catalog.json", '{"bias": {"type": {}}}'),
    "an attack whose onset is a table": ("anomaly-detector", "catalog.json", '{"bias": {"onset": {}}}'),
    "an onset range of one end": ("anomaly-detector", "catalog.json", '{"bias": {"onset_range": [0.5]}}'),
    "parameters that are no table": ("anomaly-detector", "catalog.json", '{"bias": {"parameters": [1]}}'),
    "priors that are nested too deeply": ("flight-settings", "confidence_S1.json", DEEP),
    "a library that is nested too deeply": ("flight-settings", "library.yaml", DEEP),
    "gates that are nothing": ("flight-config", "settings.yaml", "task: S1\noutputs: [x]\ngates:\n"),
    "gates that are a number": ("flight-config", "settings.yaml", "task: S1\ngates: 3\n"),
    "a rule file with another line break": (
        "check-schema",
        "rules.yaml",
        "adjudge: 1\x85fields: {n: number}\x85unknown: 3",
    ),
    "a slice by a key of meta that is not declared": (
        "check-invoices",
        "invoices.yaml",
        "adjudge: 1\nfields: {total: number}\nmeta: {vendor: text}\nslices: [meta.vendo]\nrules: {R1: total > 0}\n",
    ),
    "a seed beyond 64 bits": (
        "anomaly-detector",
        "catalog.json",
        '{"noise": {"seed": 1000000000000000000000000000000}}',
    ),
    "metrics of a HELM run that are numbers": (
        "score-helm",
        "run_spec.json",
        '{"name": "x", "metric_specs": [{"args": 3}]}',
    ),
}


@pytest.mark.parametrize("what", ONCE_BROKEN)
def test_once_broken(commands, tmp_path, monkeypatch, what):
    folder, words = commands
    name, file, content = ONCE_BROKEN[what]
    for path in (folder / name).rglob("*"):
        if path.is_file():
            target = tmp_path / path.relative_to(folder / name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    (place,) = tmp_path.rglob(file)
    place.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, [*words[name], "--out", "run", "--no-report", "--quiet"], standalone_mode=False)
    assert isinstance(done.exception, AdjudgeError) or done.exit_code == 2, done.exception
    assert not (tmp_path / "run").exists()


def _spin(seed):
    while True:
        time.process_time()


def _eat(seed):
    held = bytearray(4 << 30)
    return f"ate {len(held)}", ""


def _die(seed):
    if seed == 1:
        os._exit(3)
    return "lived", ""


def test_what_hangs_eats_memory_or_dies_is_told_by_its_seed(monkeypatch):
    monkeypatch.setattr(bounded, "SECONDS", 0.2)
    (hang,) = bounded.outcomes(_spin, [7])
    assert (hang.seed, hang.word, hang.failed) == (7, "HANG", True)
    (eaten,) = bounded.outcomes(_eat, [8])
    assert (eaten.seed, eaten.word) == (8, "MEMORY")
    words = [outcome.word for outcome in bounded.outcomes(_die, [0, 1, 2])]
    assert words == ["lived", "DIED with 3", "lived"]


def test_a_traceback_is_told(commands, tmp_path, monkeypatch):
    folder, words = commands

    def broken(*_, **__):
        raise KeyError("x")

    monkeypatch.setattr("adjudge.engine.evaluate.evaluate", broken)
    attempt = evaluations.attempt_on({"triage-plain": words["triage-plain"]}, folder, tmp_path)
    monkeypatch.setattr(evaluations, "damage", lambda *_: "nothing")
    word, _ = attempt(0)
    assert word.startswith("TRACEBACK KeyError")
