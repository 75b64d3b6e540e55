"""What is by flight anywhere in a run is by flight everywhere; without flights everything is by sample, with a note."""

import json

import pytest

import adjudge
from adjudge.protocols.flight.fields import FIELDS, ROLL
from adjudge.protocols.flight.generate import generate

STATE = dict(
    zip(
        FIELDS,
        [47.5, 8.5, 3500.0, 90.0, 88.0, 51.4, 0.0, 0.0, 99.9, 0.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 95.0, 3450.0, 3500.0],
        strict=True,
    )
)
BROKEN = json.dumps({**STATE, ROLL: 45.0})


@pytest.fixture
def two_flights(tmp_path, write_lines):
    """Two models on two flights, of which the second model fails one entirely."""

    def run(*, flights=True, samples=80):
        names = [f"s{k:03d}" for k in range(samples)]
        outputs = [
            {"id": name, "model": model, "response": BROKEN if model == "b" and k % 2 else json.dumps(STATE)}
            for k, name in enumerate(names)
            for model in "ab"
        ]
        truth = [
            {
                "id": name,
                "next_second": STATE,
                "current_state": STATE,
                **({"flight_id": f"F{k % 2}"} if flights else {}),
            }
            for k, name in enumerate(names)
        ]
        config = {
            "task": "S1",
            "outputs": [write_lines(tmp_path / "o.jsonl", outputs)],
            "reference": [write_lines(tmp_path / "r.jsonl", truth)],
            "resamples": 200,
        }
        return adjudge.evaluate("flight", config, report=False, out=tmp_path / f"run{flights}")

    return run


def test_one_failed_flight_of_two_does_not_tell_models_apart(two_flights):
    run = two_flights()
    (pair,) = run.metrics["comparison"]["pairs"]
    assert (pair["eligible_only_a"], pair["eligible_only_b"]) == (40, 0)
    assert pair["p"] == 1.0
    assert "clusters" in pair["test"]
    assert [item["tie_groups"] for item in run.metrics["comparison"]["ranking"]] == [["a"], ["a"]]


def test_without_flights_the_same_samples_are_independent(two_flights):
    run = two_flights(flights=False)
    (pair,) = run.metrics["comparison"]["pairs"]
    assert pair["p"] < 1e-9
    assert pair["test"] == "mcnemar exact"
    assert pair["total_difference_all"]["low"] > 0
    assert any("names no flights" in note for note in run.manifest.notes)
    for name in ("availability_rate", "normalised_mae", "total_score_all", "mae", "eligibility_rate"):
        estimate = run.estimates[name, "model=b"]
        assert estimate.low is not None, name
        assert estimate.high is not None, name


def test_every_interval_of_a_run_with_flights_is_by_flight(tmp_path):
    made = generate(tmp_path / "data", seed=3, flights=12, seconds=8)
    outputs = [str(made.outputs[name]) for name in ("falcon-a", "owl-c")]
    config = {"task": "S1", "outputs": outputs, "reference": [str(made.reference)], "resamples": 100}
    run = adjudge.evaluate("flight", config, report=False, out=tmp_path / "run")
    plain = [
        (name, where, item.method)
        for (name, where), item in run.estimates.items()
        if item.value is not None
        and item.method != "counted"
        and "flight" not in item.method
        and "cluster" not in item.method
    ]
    assert plain == []


def test_the_data_itself_is_judged_and_its_rules_named(tmp_path):
    made = generate(tmp_path / "data", seed=3, flights=6, seconds=8)
    config = {
        "task": "S1",
        "outputs": [str(made.outputs["falcon-a"])],
        "reference": [str(made.reference)],
        "resamples": 100,
    }
    strict = adjudge.evaluate("flight", config, report=False, out=tmp_path / "strict")
    fitting = adjudge.evaluate(
        "flight", {**config, "library": str(made.library)}, report=False, out=tmp_path / "fitting"
    )
    assert fitting.estimates["data_eligibility_rate", ""].value == 1.0
    ceiling = strict.estimates["data_eligibility_rate", ""]
    assert ceiling.value < 0.9
    section = next(item for item in strict.metrics["sections"] if item["name"] == "ceiling")
    named = {row[0]: row[3] for row in section["rows"]}
    assert named["cross_field_consistency.altitude_consistency"] == "relative_to_shown"
    (note,) = [text for text in strict.manifest.notes if "true states" in text]
    assert "relative_to_shown" in note
    # Gold fed back as the answer has exactly that eligibility.
    lines = [json.loads(line) for line in made.reference.read_text().splitlines()]
    answers = "".join(
        json.dumps({"id": row["id"], "model": "gold", "response": json.dumps(row["next_second"])}) + "\n"
        for row in lines
    )
    (tmp_path / "gold.jsonl").write_text(answers)
    gold = {**config, "outputs": [str(tmp_path / "gold.jsonl")]}
    fed = adjudge.evaluate("flight", gold, report=False, out=tmp_path / "fed")
    assert fed.estimates["eligibility_rate", "model=gold"].value == ceiling.value
    assert fed.estimates["data_eligibility_rate", ""] == ceiling


def test_panels_that_are_compared_share_a_scale(tmp_path):
    made = generate(tmp_path / "data", seed=3, flights=6, seconds=8)
    config = {
        "task": "S1",
        "outputs": [str(made.outputs["magpie-h"])],
        "reference": [str(made.reference)],
        "resamples": 100,
    }
    run = adjudge.evaluate("flight", config, report=False, out=tmp_path / "run")
    names = [chart["name"] for chart in run.charts]
    assert names == ["violations", "field_errors", "tail_risk", "error_scores", "rubric"]
    assert all("independent" not in json.dumps(chart["spec"]) for chart in run.charts)
