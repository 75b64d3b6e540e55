"""The baseline of the speed table does the job it is timed on: the oracle finds the same."""

from __future__ import annotations

import json

import msgspec
import pytest
from benchmarks import flight_data, flight_objects, yardsticks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjudge.protocols.flight.fields import FIELDS

FEW = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def found(atoms):
    return sorted((a.rule, a.field or "", a.step, a.outcome, a.severity) for a in atoms)


def same(record, judged):
    assert (record.bucket, record.verdict) == (judged.bucket, judged.verdict)
    assert found(record.atoms) == found(judged.atoms)
    cited = [atom for atom in record.atoms if atom.id in set(record.citations)]
    assert len(cited) == len(record.citations)
    places = {(a.rule, a.field, a.step) for a in cited}
    assert places == {(a.rule, a.field, a.step) for a in (judged.atoms[i] for i in judged.citations)}
    scores = judged.scores
    for mine, theirs in zip(
        (record.availability, record.constraint, record.error, record.total, record.mae, record.rmse),
        (scores.availability, scores.constraint, scores.error, scores.total, judged.mae, judged.rmse),
        strict=True,
    ):
        assert mine == (None if theirs is None else pytest.approx(theirs))
    assert record.rubric == pytest.approx(judged.rubric.overall)


@FEW
@given(data=st.data())
def test_random_samples_are_judged_as_by_the_oracle(strategies, reference, data):
    case = data.draw(strategies.cases("S1"))
    shown = data.draw(st.none() | strategies.cruises(1).map(lambda states: states[0]))
    response = strategies.RESPONSES["unparsed"] if case.answer is None else json.dumps(case.answer)
    truth = {"id": "a", "current_state": shown, "next_second": case.gold}
    record = flight_objects.judge(
        flight_objects.Output("a", response, "m"),
        msgspec.json.decode(json.dumps(truth), type=flight_objects.Truth),
    )
    hint = "unparsed" if case.answer is None else "answered"
    same(record, reference.evaluate("S1", case.answer, shown, case.gold, bucket_hint=hint))
    assert len({atom.id for atom in record.atoms}) == len(record.atoms)


@pytest.mark.parametrize("digits", ["four", "all"])
def test_generated_files_run_through_and_are_mostly_eligible(digits, tmp_path):
    outputs, truths = flight_data.write("S1", 700, tmp_path, seed=3, digits=digits)
    records = tmp_path / "records.jsonl"
    figures = flight_objects.run(outputs, truths, records)
    assert yardsticks.json_loads(outputs, truths) == {"n": 700}
    judged = [json.loads(line) for line in records.read_text(encoding="utf-8").splitlines()]
    assert len({len(record["atoms"]) for record in judged}) == 1
    assert figures["passed"] + figures["failed"] + figures["unparsed"] == len(judged) == 700
    assert 0.75 < figures["passed"] / 700 < 0.99
    assert 5 <= figures["unparsed"] <= 35
    eligible = [record["total"] for record in judged if record["verdict"] == "eligible"]
    assert figures["total_score"] == pytest.approx(sum(eligible) / len(eligible))


@pytest.mark.parametrize("task", ["S1", "M3"])
def test_generated_truth_is_clean_and_seeded(reference, task, tmp_path):
    first = flight_data.write(task, 650, tmp_path / "a", seed=5)
    again = flight_data.write(task, 650, tmp_path / "b", seed=5)
    other = flight_data.write(task, 650, tmp_path / "c", seed=6)
    for one, two, three in zip(first, again, other, strict=True):
        assert one.read_bytes() == two.read_bytes() != three.read_bytes()
    for line in first[1].read_text().splitlines():
        truth = json.loads(line)
        gold = truth["next_second" if task == "S1" else "T+1"]
        shown = truth["current_state"] if task == "S1" else truth["current_state"][-1]
        assert set(gold) == set(shown) == set(FIELDS)
        judged = reference.evaluate(task, gold, shown, gold)
        assert [(a.rule, a.field, a.observed) for a in judged.atoms if a.outcome != "pass"] == []
