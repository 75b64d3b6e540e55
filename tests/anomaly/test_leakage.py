"""Leaks in splits and columns, and the command that looks for them."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from adjudge.cli.main import main
from adjudge.errors import InputError
from adjudge.protocols.anomaly.leakage import (
    check_allowed,
    check_banned,
    check_covers,
    check_disjoint,
    check_no_shuffle,
    circular,
    content_of,
    correlations,
)
from adjudge.protocols.anomaly.rows import DataOptions, Flight, Splits, parse_splits, read_flights

COLUMNS = DataOptions()


def check_content(splits, flights):
    return check_disjoint(splits, content_of(flights, COLUMNS))


def check_circular(flights, features, threshold):
    return circular(*correlations(flights, features, COLUMNS), threshold)


def flight(name: str, seed: int, n: int = 50, **columns) -> Flight:
    random = np.random.default_rng(seed)
    values = {"gps_x": random.normal(size=n), "imu_ax": random.normal(size=n), **columns}
    return Flight(name, np.arange(n) / 10, values)


def test_flight_1_in_train_and_text_1_in_test_is_no_disjoint_split():
    splits = parse_splits({"train_flights": [1, 2], "val_flights": [3], "test_flights": ["1", 4.0]}, "s")
    check = check_disjoint(splits)
    assert (check.outcome, check.reasons) == ("fail", ["flight 1 is in train and in test"])


def test_same_rows_under_two_names_are_no_disjoint_split():
    one, val = flight("a", 1), flight("b", 2)
    check = check_content(Splits(("a",), ("b",), ("c",)), [one, val, Flight("c", one.time + 100, one.columns)])
    assert check.reasons == ["flights a (train) and c (test) hold the same rows under two names"]


def test_flight_contained_in_another():
    one, val = flight("a", 1), flight("b", 2)
    part = Flight("c", one.time[10:30], {key: column[10:30] for key, column in one.columns.items()})
    check = check_content(Splits(("a",), ("b",), ("c",)), [one, val, part])
    assert check.reasons == ["flight c (test) is contained in flight a (train)"]


def test_same_content_within_train_is_noted_and_within_test_refused():
    one = flight("a", 1)
    twin = Flight("d", one.time, one.columns)
    splits = Splits(("a", "d"), ("b",), ("c",))
    train = check_content(splits, [one, twin, flight("b", 2), flight("c", 3)])
    text = "flights a ({0}) and d ({0}) hold the same rows under two names; a flight counts once"
    assert (train.outcome, train.notes) == ("pass", [text.format("train")])
    test = check_content(Splits(("c",), ("b",), ("a", "d")), [one, twin, flight("b", 2), flight("c", 3)])
    assert test.reasons == [text.format("test")]


def test_empty_split():
    assert check_disjoint(Splits(("a",), (), ("c",))).reasons == ["the split val is empty"]


def test_covers_both_ways():
    check = check_covers(Splits(("a",), ("b",), ("c",)), ["a", "b", "d"])
    assert check.reasons == [
        "flight d is in the data and in no split",
        "flight c is in splits.json and not in the data",
    ]


def test_time_must_run_forward():
    check = check_no_shuffle([("a", np.array([0.0, 1, 1, 3])), ("b", np.array([0.0, 1]))])
    assert check.reasons == ["flight a: time does not run forward at row 3 (1 then 1), 1 times in all"]


@pytest.mark.parametrize(
    "name, caught",
    [
        ("baro_alt", True),
        ("baro_alt_m", True),
        ("baroAlt", True),
        ("magnetic_heading", True),
        ("derived_speed", True),
        ("ekf_vx", True),
        ("imu_filtered_ax", True),
        ("position_ground_truth", True),
        ("gt_x", True),
        ("magnitude", False),
        ("unfiltered_ax", False),
        ("gps_x", False),
        ("alt_baroque", False),
    ],
)
def test_banned_names(name, caught):
    assert (check_banned([name]).outcome == "fail") is caught


def test_undeclared_feature_is_a_warning_and_no_leak():
    check = check_allowed(["gps_x", "roll", "airspeed", "wind"], DataOptions(sources={"wind": "pitot"}))
    assert check.reasons == [
        "roll: attitude is allowed only with `imu_only: true`",
        "airspeed: its source is not declared",
    ]
    assert not check.leak
    assert check_allowed(["roll"], DataOptions(imu_only=True)).outcome == "pass"


def test_circular_feature_and_groups():
    base = flight("a", 1)
    label = np.repeat([0.0, 1.0], 25)
    leaking = Flight(
        "a", base.time, {**base.columns, "x": label * 2 + 1, "label": label, "imu_ay": base.columns["gps_x"] ** 3}
    )
    check = check_circular([leaking], ["gps_x", "imu_ax", "x", "imu_ay"], 0.95)
    assert check.reasons == [
        "x and label: Pearson correlation 1.000 within flights, allowed 0.95 (n=50)",
        "x and label: Spearman correlation 1.000 within flights, allowed 0.95 (n=50)",
        "gps_x and imu_ay: Spearman correlation 1.000 within flights, allowed 0.95 (n=50)",
    ]


def test_correlation_between_flights_is_none_within():
    flights = [
        Flight(
            name,
            np.arange(50.0),
            {
                "gps_x": np.random.default_rng(seed).normal(size=50) + 100 * seed,
                "imu_ax": np.random.default_rng(seed + 9).normal(size=50) + 100 * seed,
            },
        )
        for seed, name in enumerate("abcd")
    ]
    assert check_circular(flights, ["gps_x", "imu_ax"], 0.9).outcome == "pass"


def test_constant_and_nan_columns_are_reported_not_passed():
    nan = np.full(50, np.nan)
    given = flight("a", 1, label=np.repeat([0.0, 1.0], 25), still=np.ones(50), holes=nan)
    check = check_circular([given], ["still", "holes"], 0.9)
    assert check.outcome == "not_applicable"
    assert check.notes == [
        "holes: 50 rows are no number; pairs are tested on the others",
        "still: not tested, it is constant within every flight",
    ]


@pytest.mark.parametrize(
    "data, message",
    [
        ({"train": [1], "val_ids": [2]}, "has no key 'test_flights'"),
        ({"train": [1], "train_flights": [1], "val": [], "test": []}, "has both 'train_flights' and 'train'"),
        ({"train": "a", "val": [], "test": []}, "'train' is no list of flight ids"),
        ([], "expected an object"),
    ],
)
def test_bad_splits(data, message):
    with pytest.raises(InputError, match=message):
        parse_splits(data, "splits.json")


def test_aliases_are_accepted_with_a_note():
    splits = parse_splits({"train": [1], "val_ids": [2], "test_flights": [3]}, "s")
    assert splits.notes == ("'train' was read as 'train_flights'", "'val_ids' was read as 'val_flights'")


def write(tmp_path, **columns):
    ids = np.repeat(["1", "2", "3"], 20)
    random = np.random.default_rng(0)
    table = {
        "flight": ids,
        "t": np.tile(np.arange(20.0), 3),
        "gps_x": random.normal(size=60),
        "imu_ax": random.normal(size=60),
    }
    pq.write_table(pa.table({**table, **columns}), tmp_path / "f.parquet")
    (tmp_path / "s.json").write_text(json.dumps({"train_flights": [1], "val_flights": [2], "test_flights": [3]}))
    return ["--splits", str(tmp_path / "s.json"), "--data", str(tmp_path / "f.parquet")]


def run(*arguments):
    return CliRunner().invoke(main, ["leakage", *arguments], standalone_mode=False)


def test_command_without_a_leak(tmp_path):
    result = run(*write(tmp_path))
    assert result.return_value == 0
    assert "no leak found" in result.stderr


def test_command_with_a_banned_column(tmp_path):
    result = run(*write(tmp_path, baro_alt_m=np.random.default_rng(4).normal(size=60)))
    assert result.return_value == 3
    assert "baro_alt_m: barometric altitude is fused with GPS" in result.stderr


def test_command_with_leaking_code_says_where(tmp_path):
    (tmp_path / "a.py").write_text("both = np.vstack((X_train,\n  X_test))\nscaler.fit_transform(\n  both)\n")
    result = run("--check-code", str(tmp_path), "--json")
    assert result.return_value == 3
    (leak,) = json.loads(result.stdout)["code"]["leaks"]
    assert (leak["line"], leak["code"]) == (3, "code.fit_on_test")


def test_command_without_arguments_is_a_usage_error():
    import click

    assert isinstance(run().exception, click.UsageError)


def test_command_with_a_missing_file(tmp_path):
    assert isinstance(run("--data", str(tmp_path / "no.csv")).exception, InputError)


def test_reader_names_a_missing_column(tmp_path):
    (tmp_path / "a.csv").write_text("a,t\n1,2\n")
    with pytest.raises(InputError, match="has no column 'flight'"):
        read_flights(tmp_path / "a.csv", COLUMNS)


def test_folder_of_files_takes_the_flight_from_the_name(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("t,gps_x\n0,1\n1,2\n")
    assert [item.id for item in read_flights(tmp_path, COLUMNS).flights] == ["a", "b"]
