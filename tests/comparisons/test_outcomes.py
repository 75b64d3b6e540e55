"""What a protocol may declare as comparable, and the values it gives."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from adjudge.comparisons.outcomes import Outcome, chosen, declared, equal_rows
from adjudge.errors import ConfigError, RunError

RIGHT = [True, False, True]


@pytest.mark.parametrize(
    "outcome, column, values",
    [
        pytest.param({"kind": "binary", "equals": "passed"}, ["passed", "failed", None], [1, 0, math.nan], id="a word"),
        pytest.param(
            {"kind": "binary", "equals": ["passed", "failed"]}, ["passed", "failed", "abstained"], [1, 1, 0], id="words"
        ),
        pytest.param({"kind": "binary"}, [True, None, False], [1, math.nan, 0], id="booleans"),
        pytest.param({"kind": "binary", "null": 0.0}, [True, None, False], [1, 0, 0], id="null is no"),
        pytest.param({"kind": "mean"}, [1.5, None, 2.0], [1.5, math.nan, 2.0], id="numbers"),
        pytest.param({"kind": "mean", "null": 0.0}, [1.5, None, math.nan], [1.5, 0, 0], id="null is 0"),
    ],
)
def test_values(outcome, column, values):
    found = Outcome(name="x", column="x", **outcome).values(pa.table({"x": pa.array(column)}))
    assert found.tolist() == pytest.approx(values, nan_ok=True)


@pytest.mark.parametrize(
    "kind, column, said",
    [
        ("mean", ["a", "b"], "holds no numbers"),
        ("binary", [0.5, 1.0], "holds more than yes and no"),
    ],
)
def test_columns_that_do_not_fit(kind, column, said):
    with pytest.raises(RunError, match=said):
        Outcome(name="x", column="x", kind=kind).values(pa.table({"x": pa.array(column)}))


def test_without_a_list_passing_is_the_outcome_by_cluster_where_there_is_one(make_run):
    assert declared(make_run("a", {"m": RIGHT})) == [
        Outcome(name="pass_rate", column="bucket", kind="binary", equals="passed")
    ]
    clustered = make_run("b", {"m": RIGHT}, columns={"flight": {"m": ["f", "f", "g"]}})
    assert declared(clustered)[0].cluster == "flight"


@pytest.mark.parametrize(
    "listed, said",
    [
        ([{"name": "x", "column": "bucket"}], "missing required field `kind`"),
        ([{"name": "x", "column": "bucket", "kind": "ordinal"}], "ordinal"),
        ([{"name": "x", "column": "nowhere", "kind": "mean"}], "reads nowhere, which samples.parquet does not have"),
    ],
)
def test_a_wrong_list_is_an_error_that_names_the_run(make_run, listed, said):
    with pytest.raises(RunError, match=said):
        declared(make_run("a", {"m": RIGHT}, top={"comparable": listed}))


def test_only_what_all_declare_alike_is_compared(make_run):
    passing = {"name": "accuracy", "column": "bucket", "kind": "binary", "equals": "passed"}
    other = {"name": "coverage", "column": "bucket", "kind": "binary", "equals": ["passed", "failed"]}
    a = make_run("a", {"m": RIGHT}, top={"comparable": [passing, other]})
    b = make_run("b", {"m": RIGHT}, top={"comparable": [passing]})
    found, notes = chosen([a, b], ())
    assert [outcome.name for outcome in found] == ["accuracy"]
    assert notes == ["coverage is not compared: the runs do not declare it alike"]
    with pytest.raises(ConfigError, match="there is no metric 'coverage' to compare; these runs have accuracy"):
        chosen([a, b], ("coverage",))


def test_equal_rows_know_null_nan_and_lists():
    nan = math.nan
    numbers = equal_rows(pa.chunked_array([[1.0, nan, None]]), pa.chunked_array([[1.0, nan, 2.0]]))
    assert numbers.tolist() == [True, True, False]
    fixed = pa.list_(pa.float64(), 2)
    lists = equal_rows(
        pa.chunked_array([[[1.0, nan], [1.0, 2.0]]], fixed), pa.chunked_array([[[1.0, nan], [1.0, 3.0]]], fixed)
    )
    assert lists.tolist() == [True, False]
    free = pa.list_(pa.float64())
    assert equal_rows(pa.chunked_array([[[nan], None]], free), pa.chunked_array([[[nan], []]], free)).tolist() == [
        True,
        False,
    ]
