"""Flight's ranges and consistency rules as a check file give flight's atoms, outcome by outcome."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from adjudge.engine.evaluate import Options, evaluate
from adjudge.protocols.base import protocol
from adjudge.protocols.check.example import rule_text
from adjudge.protocols.flight.baselines import predict
from adjudge.protocols.flight.generate import generate
from adjudge.protocols.flight.make_tasks import make_tasks
from adjudge.runs.run import Run

RULES = {
    "consistency.altitude": "cross_field_consistency.altitude_consistency",
    "consistency.speed": "cross_field_consistency.speed_consistency",
    "consistency.track": "cross_field_consistency.track_consistency",
}


def outcomes(run: Run) -> dict[tuple[str, str, str], tuple[int, int]]:
    """(outcome, severity) by sample, model and what the atom is about, in the words of flight."""
    found = {}
    for _, samples, evidence in run.batches():
        names, models = samples.column("sample").to_pylist(), samples.column("model").to_pylist()
        for position, place in enumerate(evidence.layout.positions):
            code, field = place.rule["code"], place.slot["field"]
            if code in {"range_sanity.out_of_range", "field.range"}:
                about = f"range of {field}"
            elif code in {*RULES, *RULES.values()}:
                about = RULES.get(code, code)
            elif code in {"protocol.json_parse", "answer.json"}:
                about = "answer"
            else:
                continue
            pairs = zip(evidence.outcome[position].tolist(), evidence.severity[position].tolist(), strict=True)
            found |= {(name, model, about): pair for name, model, pair in zip(names, models, pairs, strict=True)}
    return found


def both(folder: Path, outputs: list[str]) -> tuple[dict, dict]:
    (folder / "flight_s1.yaml").write_text(rule_text("flight_s1"))
    flight = evaluate(protocol("flight"), {"task": "S1", "outputs": outputs}, Options(out=folder / "flight"))
    config = {"outputs": outputs, "rule_file": str(folder / "flight_s1.yaml")}
    check = evaluate(protocol("check"), config, Options(out=folder / "check"))
    return outcomes(Run(flight)), outcomes(Run(check))


def test_on_ten_thousand_generated_answers(tmp_path):
    made = generate(tmp_path / "data", seed=5, task="S1", flights=40, seconds=54, force=True)
    ours, theirs = both(tmp_path, [str(path) for path in made.outputs.values()])
    assert len({key[:2] for key in ours}) >= 10_000
    assert ours == theirs
    kinds = Counter((about.split(" ")[0], *pair) for (_, _, about), pair in ours.items())
    assert {outcome for _, outcome, _ in kinds} == {0, 1, 2}  # passes, failures and atoms that do not apply
    assert {severity for _, outcome, severity in kinds if outcome == 1} == {1, 2}  # warnings and critical ones


@pytest.mark.realdata
def test_on_a_recorded_flight(tmp_path, shared_data):
    logs = sorted((shared_data / "flight_g3x").glob("*.csv"))
    make_tasks(logs, "S1", tmp_path / "tasks")
    outputs = []
    for baseline in ("persistence", "linear", "kinematic"):
        outputs.append(str(tmp_path / f"{baseline}.jsonl"))
        predict(tmp_path / "tasks" / "tasks.jsonl", baseline, Path(outputs[-1]))
    ours, theirs = both(tmp_path, outputs)
    assert len(ours) > 10_000
    assert ours == theirs
