"""Simulator, detectors and the harness that holds the data."""

from __future__ import annotations

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import adjudge
from adjudge.cli.main import main
from adjudge.errors import ConfigError, InputError, VerificationFailed
from adjudge.protocols.anomaly.attacks import ACCELERATION, POSITION, VELOCITY
from adjudge.protocols.anomaly.config import PRIMARY
from adjudge.protocols.anomaly.example import GRAVITY, simulate, write_example
from adjudge.protocols.anomaly.rows import DataOptions, read_flights

CATALOG = {
    "bias": {"parameters": {"position_bias_m": 5.0}, "duration": 10.0, "seed": 1},
    "drift": {"parameters": {"position_drift_rate_mps": 0.5}, "onset_fraction": 0.4, "seed": 2},
}


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Twelve short flights."""
    folder = tmp_path_factory.mktemp("example")
    return write_example(folder, seed=3, flights=14, seconds=40.0, rate=20.0) | {"catalog": CATALOG, "resamples": 500}


@pytest.fixture(scope="module")
def residual(example, tmp_path_factory):
    """The residual detector judged on them."""
    return adjudge.evaluate("anomaly", example, out=tmp_path_factory.mktemp("runs") / "residual", report=False)


def test_integrated_imu_reproduces_gps_to_a_centimetre():
    flight = simulate("a", seed=5, seconds=60.0, noise=False)
    force = flight.matrix(ACCELERATION) - [0, 0, GRAVITY]
    gps, speed = flight.matrix(POSITION), flight.matrix(VELOCITY)
    dt = 0.01
    velocity = speed[0] + np.vstack([np.zeros(3), np.cumsum((force[1:] + force[:-1]) / 2 * dt, axis=0)])
    position = gps[0] + np.vstack([np.zeros(3), np.cumsum((velocity[1:] + velocity[:-1]) / 2 * dt, axis=0)])
    assert flight.n == 6000
    assert np.abs(position - gps).max() < 0.01
    assert np.ptp(gps[:, 0]) > 10


def test_simulator_is_seeded():
    assert simulate("a", seed=5, seconds=2).digest() == simulate("a", seed=5, seconds=2).digest()
    assert simulate("a", seed=5, seconds=2).digest() != simulate("a", seed=6, seconds=2).digest()


def test_residual_detector_sees_bias_and_drift(residual):
    assert residual.metrics["stamp"] == "VALID WITH OPEN ITEMS"
    assert [item["item"] for item in residual.metrics["open_items"]] == [
        "code leakage check passes",
        "one-command reproduction tested",
    ]
    rows = {row["attack"]: row["auroc"] for row in residual.metrics["per_attack"] if row["magnitude"] is None}
    assert rows["bias"] >= 0.9
    assert rows["drift"] >= 0.9
    adjudge.verify(residual)


def test_attacks_that_differ_in_another_parameter_are_sequences_of_their_own(example, tmp_path):
    parameters = {"position_bias_m": 5.0, "acceleration_bias_mps2": 1.0, "correlation_factor": [0.1, 0.9]}
    catalog = {"coordinated": {"parameters": parameters, "duration": 10.0, "seed": 1}}
    run = adjudge.evaluate(
        "anomaly", {**example, "catalog": catalog, "detector": "random"}, out=tmp_path / "r", report=False
    )
    names = run.samples.column("sample").to_pylist()
    assert len(set(names)) == len(names) == 15
    assert {name.partition("|")[2] for name in names} == {"", "coordinated:5#1", "coordinated:5#1~1"}
    adjudge.verify(run)


@pytest.mark.parametrize("name", ["residual", "random", "sklearn:IsolationForest"])
def test_unknown_option_of_a_detector_is_a_wrong_configuration(example, tmp_path, name):
    with pytest.raises(ConfigError, match="does not take these options"):
        adjudge.evaluate(
            "anomaly",
            {**example, "detector": name, "detector_options": {"colour": 1}},
            out=tmp_path / "r",
            report=False,
        )


def test_several_detectors_by_flag(example, tmp_path):
    (tmp_path / "catalog.json").write_text(json.dumps(CATALOG))
    (tmp_path / "eval.yaml").write_text("detector: residual\ndetector_options: {gate: 2.0}\nresamples: 500\n")
    files = ["--data", example["data"], "--splits", example["splits"], "--catalog", str(tmp_path / "catalog.json")]
    words = ["--config", str(tmp_path / "eval.yaml"), *files, "--detector", "random", "--detector", "residual"]
    result = invoke(*words, "--out", str(tmp_path / "r"), "--no-report", "--quiet")
    assert result.return_value == 0
    assert list(adjudge.load_run(tmp_path / "r").metrics["detectors"]) == ["random", "residual"]
    assert invoke("reproduce", str(tmp_path / "r"), "--quiet").return_value == 0


def test_headline_intervals_come_from_flights(residual):
    estimate = residual.estimates["auroc", ""]
    assert "bootstrap" in estimate.method
    assert estimate.low < estimate.value < estimate.high


def test_random_detector_contains_one_half(example, tmp_path):
    run = adjudge.evaluate("anomaly", {**example, "detector": "random"}, out=tmp_path / "r", report=False)
    estimate = run.estimates["auroc", ""]
    assert estimate.low < 0.5 < estimate.high


@pytest.mark.parametrize("name", ["sklearn:IsolationForest", "pyod:ECOD"])
def test_library_detectors_by_name(example, tmp_path, name):
    pytest.importorskip(name.partition(":")[0])
    options = {"n_estimators": 10} if "Forest" in name else {}
    run = adjudge.evaluate(
        "anomaly", {**example, "detector": name, "detector_options": options}, out=tmp_path / "r", report=False
    )
    assert run.metrics["metrics"]["auroc"] is not None


def test_scaler_saw_the_normal_rows_of_train_alone(residual, example):
    record = json.loads((residual.path / "leakage_report.json").read_bytes())["record"]
    splits = json.loads((residual.path / "splits.json").read_bytes())
    assert record["scaler"]["rows"] == 800 * len(splits["train_flights"])
    assert len(record["injections"]) == 2 * len(splits["test_flights"])
    assert {item["flight"] for item in record["injections"]} == set(splits["test_flights"])


def altered(example, tmp_path, change):
    table = pq.read_table(example["data"])
    columns = {name: table.column(name).to_numpy().copy() for name in table.column_names}
    change(columns)
    pq.write_table(pa.table(columns), tmp_path / "flights.parquet")
    return {**example, "data": str(tmp_path / "flights.parquet")}


def broken_rules(run):
    """The rules that the run and the atoms of its first sequence name."""
    atoms = run.atoms(run.samples.to_pylist()[0])
    named = {item["code"] for item in run.metrics["violations"]}
    assert {atom.rule for atom in atoms if atom.failed and atom.scope == "RUN" and atom.severity == "CRITICAL"} == named
    return named


def with_copied_flight(columns):
    """Train flight f01 under the name of test flight f10."""
    name = columns["flight"].astype(str)
    for key, values in columns.items():
        if key not in {"flight", "t"}:
            values[name == "f10"] = values[name == "f01"]


def with_backward_time(columns):
    rows = np.flatnonzero(columns["flight"].astype(str) == "f12")
    columns["t"][rows[5]], columns["t"][rows[6]] = columns["t"][rows[6]], columns["t"][rows[5]]


def with_labelled_train(columns):
    columns["label"] = np.zeros(columns["t"].size)
    columns["label"][np.flatnonzero(columns["flight"].astype(str) == "f02")[100:200]] = 1


LEAKING_DATA = {
    "split.disjoint": with_copied_flight,
    "split.no_shuffle": with_backward_time,
    "attack.test_only": with_labelled_train,
    "feature.banned": lambda c: c.update(baro_alt=np.random.default_rng(0).normal(size=c["t"].size)),
    "feature.circular": lambda c: c.update(imu_wx=c["gps_vx"] * 2),
    "split.covers": lambda c: c.update(
        flight=np.where(c["flight"].astype(str) == "f13", "f99", c["flight"].astype(str))
    ),
}


@pytest.mark.parametrize("rule", sorted(LEAKING_DATA))
def test_leaking_data_is_caught_by_its_rule_and_no_other(example, tmp_path, rule):
    config = altered(example, tmp_path, LEAKING_DATA[rule])
    run = adjudge.evaluate("anomaly", config, out=tmp_path / "r", report=False)
    assert broken_rules(run) == {rule}
    if rule in {"split.no_shuffle", "attack.test_only"}:  # the first is made again from the scores, the second is not
        return
    report = json.loads((run.path / "leakage_report.json").read_bytes())
    for check in (*report["checks"], *report["recorded"]):
        check |= {"outcome": "pass", "reasons": [], "severity": "INFO"}
    (run.path / "leakage_report.json").write_text(json.dumps(report))
    with pytest.raises(VerificationFailed, match=f"leakage_report.json: {rule} does not say"):
        adjudge.verify(adjudge.load_run(run.path))


@pytest.mark.parametrize(
    "kind, rule", [("Adapts", "scaler.train_normal_only"), ("Unseeded", "seeds.recorded"), ("Crash", "detector.scores")]
)
@pytest.mark.usefixtures("own_detectors")
def test_leaking_detector_is_caught_by_its_rule_and_no_other(example, tmp_path, kind, rule):
    run = adjudge.evaluate(
        "anomaly", {**example, "detector": f"own_detectors:{kind}"}, out=tmp_path / "r", report=False
    )
    assert broken_rules(run) == {rule}


@pytest.mark.usefixtures("own_detectors")
def test_detector_with_the_seed_of_the_run_is_valid(example, tmp_path):
    run = adjudge.evaluate("anomaly", {**example, "detector": "own_detectors:Seeded"}, out=tmp_path / "r", report=False)
    assert broken_rules(run) == set()


def test_undeclared_feature_warns_and_stays_valid(example, tmp_path):
    noise = np.random.default_rng(0)
    config = altered(example, tmp_path, lambda c: c.update(airspeed=noise.normal(size=c["t"].size)))
    run = adjudge.evaluate("anomaly", config, out=tmp_path / "r", report=False)
    assert run.metrics["valid"]
    assert {atom.severity for atom in run.atoms(run.samples.to_pylist()[0]) if atom.rule == "feature.allowed"} == {
        "WARNING"
    }


def test_nan_in_a_feature_names_flight_and_column(example, tmp_path):
    config = altered(example, tmp_path, lambda c: c["gps_x"].__setitem__(10, np.nan))
    with pytest.raises(InputError, match="flight f00: gps_x is no number at row 11"):
        adjudge.evaluate("anomaly", config, out=tmp_path / "r", report=False)


BROKEN = """
import numpy as np

class Base:
    def fit(self, X_train, X_val=None):
        for rows in X_train:
            rows[:] = 0.0  # only its own copies

class Shape(Base):
    def score(self, X):
        return np.zeros(3)

class NotANumber(Base):
    def score(self, X):
        return np.full(len(X), np.nan)

class Crash(Base):
    def score(self, X):
        raise RuntimeError("boom")

class Later(Base):
    calls = 0
    def score(self, X):
        self.calls += 1
        if self.calls == 14:
            raise ValueError("drift")
        return np.abs(X).mean(axis=1)

class Fit(Base):
    def fit(self, X_train, X_val=None):
        raise RuntimeError("no")

class Mean(Base):
    def score(self, X):
        return np.abs(X).mean(axis=1)

class Adapts(Base):
    # Fits its scaler again on everything it scores.
    def fit(self, X_train, X_val=None):
        self.rows = list(X_train)
    def score(self, X):
        self.rows.append(X)
        return np.abs(X - np.concatenate(self.rows).mean(axis=0)).mean(axis=1)

class Unseeded(Base):
    # Draws from a seed that nobody records.
    def fit(self, X_train, X_val=None):
        self.weights = np.random.default_rng().random(X_train[0].shape[1])
    def score(self, X):
        return np.abs(X) @ self.weights

class Seeded(Unseeded):
    def __init__(self, seed):
        self.seed = seed
    def fit(self, X_train, X_val=None):
        self.weights = np.random.default_rng(self.seed).random(X_train[0].shape[1])
"""


@pytest.fixture
def own_detectors(tmp_path, monkeypatch):
    """A module of detectors on the path."""
    (tmp_path / "own_detectors.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_detectors", raising=False)


@pytest.mark.parametrize(
    "kind, message",
    [
        ("Shape", "gave shape (3,) for flight f07, expected (800,)"),
        ("NotANumber", "gave 800 scores that are no number for flight f07, first row 1"),
        ("Crash", "failed on flight f07: RuntimeError: boom"),
        ("Later", "failed on flight f09|drift:0.5#2: ValueError: drift"),
        ("Fit", "failed in fit on f00, f01, f02, f03, f04, f05, f06: RuntimeError: no"),
    ],
)
@pytest.mark.usefixtures("own_detectors")
def test_broken_detector_ends_errored_and_names_the_flight(example, tmp_path, kind, message):
    name = f"own_detectors:{kind}"
    run = adjudge.evaluate("anomaly", {**example, "detector": name}, out=tmp_path / "r", report=False)
    assert run.metrics["violations"] == [{"code": "detector.scores", "reasons": [f"{name} {message}"]}]
    assert (run.metrics["stamp"], run.metrics["metrics"], run.metrics["estimates"]) == ("INVALID", {}, [])
    counts = run.metrics["buckets"]["all"]
    assert counts["errored"] == counts["n"] == 15
    assert set(run.samples.column("verdict").to_pylist()) == {"errored"}
    atoms = {atom.rule: atom for atom in run.atoms(run.samples.to_pylist()[0])}
    assert message in atoms["detector.scores"].message
    assert atoms["detection.false_alarm"].outcome == "not_applicable"
    adjudge.verify(run)


@pytest.mark.usefixtures("own_detectors")
def test_detector_that_cannot_be_made_is_a_wrong_configuration(example, tmp_path):
    with pytest.raises(ConfigError, match="cannot be loaded"):
        adjudge.evaluate("anomaly", {**example, "detector": "own_detectors:Missing"}, out=tmp_path / "r", report=False)
    assert not (tmp_path / "r").exists()


@pytest.mark.usefixtures("own_detectors")
def test_of_several_detectors_one_crashes_and_the_others_go_on(example, residual, tmp_path):
    config = {key: value for key, value in example.items() if key != "detector"}
    listed = ["residual", "own_detectors:Crash", {"detector": "own_detectors:Mean", "name": "mean"}]
    run = adjudge.evaluate("anomaly", {**config, "detectors": listed}, out=tmp_path / "r", report=False)
    tops = run.metrics["detectors"]
    assert {name: top["stamp"] for name, top in tops.items()} == {
        "residual": "VALID WITH OPEN ITEMS",
        "own_detectors:Crash": "INVALID",
        "mean": "VALID WITH OPEN ITEMS",
    }
    assert [(item["model"], item["code"]) for item in run.metrics["violations"]] == [
        ("own_detectors:Crash", "detector.scores")
    ]
    alone = residual.metrics["metrics"]
    assert {name: run.metrics["metrics"][f"residual/{name}"] for name in alone} == alone
    assert "mean/auroc" in run.metrics["metrics"]
    assert not any("Crash" in name for name in run.metrics["metrics"])
    assert run.metrics["buckets"]["own_detectors:Crash"]["errored"] == 15
    assert run.metrics["buckets"]["all"]["n"] == 45
    assert run.samples.column("model").to_pylist()[:3] == ["residual", "own_detectors:Crash", "mean"]
    assert {line.split(",")[0] for line in (run.path / "per_attack.csv").read_text().splitlines()[1:]} == {
        "residual",
        "mean",
    }
    adjudge.verify(run)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"detectors": ["random", "random"]}, "random is there twice"),
        ({"detectors": [], "detector": None}, "detectors is empty"),
        ({"detectors": ["random"], "detector": "residual"}, "give detector or detectors"),
        ({"detectors": [{"detector": "random", "colour": 1}]}, "colour"),
    ],
)
def test_wrong_lists_of_detectors(example, tmp_path, options, message):
    config = {key: value for key, value in example.items() if key != "detector"}
    with pytest.raises(ConfigError, match=message):
        adjudge.evaluate("anomaly", {**config, **options}, out=tmp_path / "r", report=False)


@pytest.mark.usefixtures("own_detectors")
def test_own_detector_works_on_copies(example, tmp_path):
    run = adjudge.evaluate("anomaly", {**example, "detector": "own_detectors:Mean"}, out=tmp_path / "r", report=False)
    assert run.metrics["valid"]


def invoke(*arguments):
    return CliRunner().invoke(main, ["anomaly", *arguments], standalone_mode=False)


def test_reproduce_differs_by_exactly_nothing(residual):
    result = invoke("reproduce", str(residual.path), "--tolerance", "0")
    assert result.return_value == 0
    names = ["valid", *(name for name in PRIMARY if name != "detection_latency_ms")]
    names += [f"detection_latency_ms.{name}" for name in ("median", "p95", "restricted_mean", "detected_fraction")]
    lines = result.stderr.splitlines()
    assert sorted(line.split(":")[0] for line in lines) == sorted(f"ok   {name}" for name in names)
    assert all(line.endswith("difference 0") for line in lines)


def test_reproduce_names_the_metric_that_moved(example, tmp_path):
    config = altered(example, tmp_path, dict)
    run = adjudge.evaluate("anomaly", config, out=tmp_path / "r", report=False)

    def jump(columns):
        rows = np.flatnonzero(columns["flight"].astype(str) == "f10")
        columns["gps_x"][rows[20:97]] += 30.0

    altered(config, tmp_path, jump)
    again = adjudge.evaluate("anomaly", config, out=tmp_path / "again", report=False)
    before, after = (each.metrics["metrics"]["auroc"] for each in (run, again))
    assert (before - after) / before == pytest.approx(0.03, abs=0.003)
    result = invoke("reproduce", str(run.path))
    assert result.return_value == 1
    assert f"FAIL auroc: {before:.6g} then {after:.6g}" in result.stderr
    assert "ok   valid" in result.stderr
    assert "FAIL data: flight f10 is not the one that was judged" in result.stderr


def test_init_writes_a_configuration_that_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert invoke("init", "--out", "e", "--flights", "14", "--seconds", "40", "--rate", "10").return_value == 0
    result = invoke("--config", "e/eval.yaml", "--resamples", "500", "--out", "run", "--quiet")
    assert result.return_value == 0
    adjudge.verify("run")


def test_inject_and_catalog_commands(example, tmp_path):
    (tmp_path / "c.json").write_text(json.dumps(CATALOG))
    assert invoke("catalog", "check", str(tmp_path / "c.json")).stdout.endswith(
        "2 attacks, 2 with all parameters and seeds\n"
    )
    assert "bias: position_bias_m=5.0; seed 1; 10 s" in invoke("catalog", "show", str(tmp_path / "c.json")).stdout
    result = invoke(
        *("inject", "--data", example["data"], "--splits", example["splits"]),
        *("--catalog", str(tmp_path / "c.json"), "-o", str(tmp_path / "a.parquet")),
    )
    assert result.return_value == 0
    table = pq.read_table(tmp_path / "a.parquet")
    assert set(table.column("attack").to_pylist()) == {"bias", "drift"}
    bias = table.filter(pa.compute.equal(table.column("attack"), "bias")).column("label").to_numpy()
    assert bias.sum() == 200 * len(set(table.column("flight").to_pylist()))


def test_reproduce_imports_code_only_when_told_and_names_the_file(tmp_path, monkeypatch):
    from adjudge.protocols.base import protocol

    monkeypatch.chdir(tmp_path)
    config = protocol("anomaly").example(tmp_path / "data", 1)
    run = adjudge.evaluate("anomaly", {**config, "resamples": 500}, out=tmp_path / "run", report=False).path
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["config"]["detector"] = "planted_detector:Detector"
    (run / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "planted_detector.py").write_text("open('imported', 'w').close()\n")
    with pytest.raises(ConfigError, match=r"imported from .*planted_detector\.py; read it, then --trust-code"):
        CliRunner().invoke(main, ["anomaly", "reproduce", str(run)], standalone_mode=False, catch_exceptions=False)
    assert not (tmp_path / "imported").exists()
    CliRunner().invoke(main, ["anomaly", "reproduce", str(run), "--trust-code"], standalone_mode=False)
    assert (tmp_path / "imported").exists()


def test_a_damaged_page_of_words_is_refused(tmp_path):
    path = tmp_path / "flights.parquet"
    table = pa.table({"flight": ["a", "b", "c"] * 40, "t": np.arange(120.0), "x": np.arange(120.0)})
    pq.write_table(table, path, compression="none", use_dictionary=["flight"])
    data = path.read_bytes()
    refused = 0
    for place in range(4, 400):
        path.write_bytes(data[:place] + bytes([data[place] ^ 64]) + data[place + 1 :])
        try:
            damaged = pq.read_table(path, read_dictionary=["flight"]).column("flight").combine_chunks()
        except (pa.ArrowException, OSError):
            continue
        if damaged.null_count == 0 and max(damaged.indices.to_pylist()) >= len(damaged.dictionary):
            with pytest.raises(InputError, match="neither readable CSV nor Parquet"):
                read_flights(path, DataOptions())
            refused += 1
    assert refused
