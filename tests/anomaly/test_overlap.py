"""Rows that two flights share: every way of hiding them, the clean twin, and random leaks."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tests.anomaly.leaks import Leak, clean_flights, leaking_flights, splits_of

from adjudge.cli.main import main
from adjudge.protocols.anomaly.example import simulate
from adjudge.protocols.anomaly.leakage import check_disjoint, content_of
from adjudge.protocols.anomaly.rows import DataOptions, Flight, Splits

NAMES = ("a", "b", "c", "d")
SPLITS = Splits(("a", "b"), ("c",), ("d",))


@pytest.fixture(scope="module")
def flights() -> list[Flight]:
    """Four short simulated flights."""
    return [simulate(name, seed=4, seconds=20.0, rate=20.0) for name in NAMES]


def rows_of(flight: Flight, rows) -> dict[str, np.ndarray]:
    return {name: values[rows].copy() for name, values in flight.columns.items()}


def noisy(columns, size=1e-9):
    random = np.random.default_rng(0)
    return {name: values + random.normal(0, size, values.size) for name, values in columns.items()}


def with_half(train: Flight, test: Flight):
    half = test.n // 2
    return {name: np.concatenate([train.columns[name][:half], test.columns[name][half:]]) for name in test.columns}


HIDDEN = {
    "half of it": with_half,
    "every second row": lambda train, _: rows_of(train, slice(None, None, 2)),
    "every fifth row": lambda train, _: rows_of(train, slice(None, None, 5)),
    "with noise": lambda train, _: noisy(train.columns),
    "rounded to six decimals": lambda train, _: {k: np.round(v, 6) for k, v in train.columns.items()},
    "columns renamed": lambda train, _: {f"sensor_{k}": v for k, v in enumerate(train.columns.values())},
    "columns exchanged": lambda train, _: dict(zip(train.columns, reversed(train.columns.values()), strict=True)),
    "a counter added": lambda train, _: {**train.columns, "row": np.arange(train.n) + 7.0},
    "a label added": lambda train, _: {**train.columns, "label": np.arange(train.n) % 2.0},
    "with blanks": lambda train, _: {
        k: np.where(np.arange(train.n) % 9 == 4, np.nan, v) for k, v in train.columns.items()
    },
    "backwards": lambda train, _: {k: v[::-1] for k, v in train.columns.items()},
    "on another clock": lambda train, _: train.columns,
}


def outcome(flights, columns, clock=None):
    n = next(iter(columns.values())).size
    time = np.arange(n) * 0.07 + 500.0 if clock is None else clock
    return check_disjoint(SPLITS, content_of([*flights[:3], Flight("d", time, dict(columns))], DataOptions()))


@pytest.mark.parametrize("hidden", HIDDEN)
def test_hidden_copy_of_a_train_flight_is_a_leak(flights, hidden):
    check = outcome(flights, HIDDEN[hidden](flights[0], flights[3]))
    assert check.outcome == "fail"
    assert all("(train)" in reason and "d (test)" in reason for reason in check.reasons)
    assert check.observed > 0.4


@pytest.mark.parametrize("hidden", HIDDEN)
def test_same_change_of_a_flight_of_its_own_is_none(flights, hidden):
    other = simulate("e", seed=5, seconds=20.0, rate=20.0)
    check = outcome(flights, HIDDEN[hidden](other, flights[3]))
    assert (check.outcome, check.reasons) == ("pass", [])
    assert check.observed == 0.0


def test_share_is_counted_and_held_against_the_bound(flights):
    train, test = flights[0], flights[3]
    columns = {k: np.concatenate([train.columns[k][:20], v[20:]]) for k, v in test.columns.items()}
    content = content_of([*flights[:3], Flight("d", test.time, columns)], DataOptions())
    check = check_disjoint(SPLITS, content)
    assert check.reasons == ["5 % of the rows of flight d (test) stand in flight a (train) too"]
    assert check_disjoint(SPLITS, content, bound=0.06).outcome == "pass"


def test_copy_within_a_split_is_refused_in_test_and_in_folds(flights):
    twin = Flight("e", flights[3].time, noisy(flights[3].columns))
    content = content_of([*flights, twin], DataOptions())
    within = check_disjoint(Splits(("a", "b"), ("c",), ("d", "e")), content)
    assert within.reasons == ["flights d (test) and e (test) hold the same rows under two names; a flight counts once"]
    train = Splits(("d", "e"), ("c",), ("a", "b"))
    assert check_disjoint(train, content).outcome == "pass"
    assert check_disjoint(train, content, folds=True).outcome == "fail"


def test_values_that_repeat_too_often_are_unknown_not_passed():
    random = np.random.default_rng(0)
    coarse = [Flight(n, np.arange(300.0), {"x": random.integers(0, 3, 300) * 1.0}) for n in NAMES]
    check = check_disjoint(SPLITS, content_of(coarse, DataOptions()))
    assert check.outcome == "not_applicable"
    assert "repeat too often to tell a partial copy" in check.reasons[0]
    copied = [*coarse[:3], Flight("d", coarse[0].time, coarse[0].columns)]
    assert check_disjoint(SPLITS, content_of(copied, DataOptions())).outcome == "fail"


def test_no_clean_data_set_is_called_leaky():
    wrong = []
    for seed in range(200):
        flights = clean_flights(seed)
        check = check_disjoint(splits_of(flights), content_of(flights, DataOptions()))
        wrong += [(seed, check.reasons)] if check.outcome == "fail" else []
    assert wrong == []


def test_random_leaks_of_five_percent_or_more_are_found():
    missed = []
    for seed in range(200):
        leak = Leak.random(seed)
        flights, splits = leaking_flights(seed, leak)
        check = check_disjoint(splits, content_of(flights, DataOptions()))
        missed += [(seed, leak)] if check.outcome != "fail" else []
    assert len(missed) <= 0.05 * 200, missed


def test_command_finds_half_a_flight(flights, tmp_path):
    columns = with_half(flights[0], flights[3])
    parts = [*flights[:3], Flight("d", flights[3].time, columns)]
    table = {"flight": np.repeat(NAMES, [part.n for part in parts]), "t": np.concatenate([p.time for p in parts])}
    table |= {name: np.concatenate([part.columns[name] for part in parts]) for name in columns}
    pq.write_table(pa.table(table), tmp_path / "f.parquet")
    (tmp_path / "s.json").write_text(json.dumps({"train": ["a", "b"], "val": ["c"], "test": ["d"]}))
    words = ["leakage", "--splits", str(tmp_path / "s.json"), "--data", str(tmp_path / "f.parquet")]
    result = CliRunner().invoke(main, words, standalone_mode=False)
    assert result.return_value == 3
    assert "50 % of the rows of flight d (test) stand in flight a (train) too" in result.stderr
    assert CliRunner().invoke(main, [*words, "--overlap-bound", "0.6"], standalone_mode=False).return_value == 0
