"""SQL over runs whose names differ only in case, and over what somebody else wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import adjudge
from adjudge.protocols.flight.generate import generate
from adjudge.runs.query import query


@pytest.fixture
def two_models(tmp_path: Path) -> adjudge.Run:
    """A flight run of the models `Login` and `login`."""
    data = generate(tmp_path / "data", seed=1, task="S1", flights=2, seconds=5)
    outputs = []
    for name, path in zip(("Login", "login"), data.outputs.values(), strict=False):
        rows = [json.loads(line) | {"model": name} for line in path.read_text(encoding="utf-8").splitlines()]
        outputs.append(tmp_path / f"{len(outputs)}.jsonl")
        outputs[-1].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = {"task": "S1", "outputs": list(map(str, outputs)), "reference": [str(data.reference)]}
    return adjudge.evaluate("flight", config, out=tmp_path / "run", report=False)


def test_models_that_differ_only_in_case(two_models: adjudge.Run) -> None:
    assert query(two_models, "select distinct model from samples order by 1")[1] == [("Login",), ("login",)]
    counted = query(two_models, "select model, count(*) from evidence group by 1 order by 1")[1]
    assert [model for model, _ in counted] == ["Login", "login"]
    names, rows = query(two_models, "select * from estimates")
    expected = two_models.metrics["estimates"]
    assert [dict(zip(names, row, strict=True)) for row in rows] == expected
    assert {row[names.index("slice")] for row in rows} >= {"model=Login", "model=login"}


def test_columns_that_differ_only_in_case(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {
            "id": f"s{number}",
            "model": "m",
            "label": "real",
            "prediction": "real",
            "confidence": 0.8,
            "meta": {"Login": "upper", "login": f"lower {number}"},
        }
        for number in range(4)
    ]
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = {"results": [[str(path)]], "slices": ["meta.Login", "meta.login"], "resamples": 200}
    run = adjudge.evaluate("triage", config, out=tmp_path / "run", report=False)
    adjudge.verify(run)
    assert {"meta.Login", "meta.login"} <= set(run.column_names)
    found = query(run, 'select "meta.Login", "meta.login_1" from samples order by all')[1]
    assert found == [("upper", f"lower {number}") for number in range(4)]


def test_rules_are_those_of_the_run(two_models: adjudge.Run) -> None:
    names, rows = query(two_models, "select * from rules")
    found = [dict(zip(names, row, strict=True)) for row in rows]
    for rule, expected in zip(found, two_models.layout.rules, strict=True):
        rule["slots"] = [{key: value for key, value in slot.items() if value is not None} for slot in rule["slots"]]
        slots = [{key: value for key, value in slot.items() if value is not None} for slot in expected["slots"]]
        assert rule == {**expected, "slots": slots}


def test_estimates_of_another_shape_are_an_error(two_models: adjudge.Run) -> None:
    two_models.metrics["estimates"][0]["value"] = "much"
    with pytest.raises(adjudge.RunError, match="the estimates of the run are not what adjudge writes"):
        query(two_models, "select 1")


def test_tables_that_are_not_readable_are_an_error(two_models: adjudge.Run) -> None:
    (two_models.path / "samples.parquet").write_bytes(b"no table")
    with pytest.raises(adjudge.ConfigError, match="the query failed"):
        query(two_models, "select 1")
