"""Is the judge any good? Its agreement with rules and people, and the gates that are refused without it."""

import json
import subprocess
import sys

import pytest
from sklearn.metrics import cohen_kappa_score

import adjudge
from adjudge.report.html import render
from adjudge.report.text import summary

ADJUDGE = [sys.executable, "-c", "from adjudge.cli.start import run; run()"]
GATE = "falcon-a/eligibility_rate >= 0.01"


def command(*words):
    return subprocess.run([*ADJUDGE, *map(str, words)], capture_output=True, text=True, check=False)


def labels(run, path, *, wrong=0):
    rows = [row for row in run.samples.to_pylist() if row["status"] == "answered"]
    lines = []
    for place, row in enumerate(rows):
        other = {"eligible": "ineligible", "ineligible": "eligible"}[row["verdict"]]
        verdict = other if place < wrong else row["verdict"]
        lines.append(json.dumps({"id": row["sample"], "model": row["model"], "verdict": verdict}))
    path.write_text("\n".join(lines))
    return path


def test_a_gate_is_refused_without_a_validation_and_held_with_it(by_judge, tmp_path):
    run = by_judge("faithful", limit=None, votes=3)
    done = command("gate", run.path, "--gate", GATE)
    assert done.returncode == 2
    assert "refused without a validation" in done.stderr
    done = command(
        "agent",
        "validate",
        run.path,
        "--reference",
        labels(run, tmp_path / "l.jsonl", wrong=3),
        "-o",
        tmp_path / "v.json",
    )
    assert done.returncode == 0, done.stderr
    assert "llm:faithful against people" in done.stderr
    done = command("gate", run.path, "--gate", GATE)
    assert done.returncode == 0, done.stderr
    assert "llm:faithful is validated against people: κ 0.9" in done.stderr
    done = command("gate", run.path, "--gate", GATE, "--min-kappa", "0.9999")
    assert done.returncode == 2
    adjudge.verify(run.path)
    validation = json.loads((run.path / "validation.json").read_text())
    assert validation == json.loads((tmp_path / "v.json").read_text())
    assert validation["people"]["confusion"][0][1] + validation["people"]["confusion"][1][0] == 3
    fresh = adjudge.load_run(run.path)
    assert "Is the judge any good? llm:faithful, validated" in summary(fresh)
    assert "Is the judge any good?" in render(fresh).decode()
    gated = by_judge("faithful", name="gated", limit=None, gates=[GATE], votes=3, validation=str(tmp_path / "v.json"))
    assert gated.passed


def test_kappa_against_people_is_that_of_an_independent_computation(by_judge, tmp_path):
    run = by_judge("faithful", limit=None)
    command("agent", "validate", run.path, "--reference", labels(run, tmp_path / "l.jsonl", wrong=17))
    validation = json.loads((run.path / "validation.json").read_text())
    (a, b), (c, d) = validation["people"]["confusion"]
    people = ["e"] * (a + b) + ["i"] * (c + d)
    judge = ["e"] * a + ["i"] * b + ["e"] * c + ["i"] * d
    assert validation["people"]["kappa"]["value"] == pytest.approx(cohen_kappa_score(people, judge), abs=1e-12)
    assert validation["people"]["n"] == a + b + c + d


def test_gates_at_evaluation_are_refused_before_anybody_is_asked(by_judge, tmp_path):
    with pytest.raises(adjudge.ConfigError, match="refused without a validation"):
        by_judge("faithful", gates=[GATE])
    assert not (tmp_path / "cache").exists()
    assert not (tmp_path / "run").exists()


def test_a_validation_of_another_judge_does_not_count(by_judge, tmp_path):
    run = by_judge("faithful", limit=None)
    command("agent", "validate", run.path, "-o", tmp_path / "v.json")
    with pytest.raises(adjudge.ConfigError, match="about another model"):
        by_judge("strict", name="other", gates=[GATE], validation=str(tmp_path / "v.json"))


def test_an_altered_validation_is_found(by_judge, tmp_path):
    run = by_judge("faithful", limit=None)
    command("agent", "validate", run.path)
    from adjudge.runs.writer import add_to_run

    validation = json.loads((run.path / "validation.json").read_text())
    validation["rules"]["kappa"]["low"] = 0.99
    add_to_run(run.path, {"validation.json": json.dumps(validation).encode()}, adjudge.load_run(run.path).manifest)
    with pytest.raises(adjudge.VerificationFailed, match=r"validation\.json"):
        adjudge.verify(run.path)


@pytest.mark.parametrize(
    "line, words",
    [
        ("{", "is no label"),
        ('{"id": "x", "verdict": "fine"}', "expected one of eligible, ineligible"),
        ("", "is empty"),
    ],
)
def test_labels_that_are_none(by_judge, tmp_path, line, words):
    run = by_judge("faithful", limit=3)
    (tmp_path / "l.jsonl").write_text(line)
    done = command("agent", "validate", run.path, "--reference", tmp_path / "l.jsonl")
    assert done.returncode == 2
    assert words in done.stderr
    assert not (run.path / "validation.json").exists()


def test_a_run_by_rules_has_nobody_to_validate(judged):
    run = judged("rules", limit=3)
    done = command("agent", "validate", run.path)
    assert done.returncode == 2
    assert "the rules judged this run" in done.stderr
