"""Leaks and numbers that once got through: each is caught, and its clean twin passes."""

from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import adjudge
from adjudge.cli.main import main
from adjudge.errors import ConfigError, InputError
from adjudge.protocols.anomaly.catalog import parse_catalog
from adjudge.protocols.anomaly.example import write_example
from adjudge.report.contracts import contracts, negative_lines
from adjudge.report.text import summary

CATALOG = {"bias": {"parameters": {"position_bias_m": 5.0}, "duration": 10.0, "seed": 1}}


def failed(run) -> dict[str, list[str]]:
    return {item["code"]: item["reasons"] for item in run.metrics["violations"]}


def invoke(*words):
    return CliRunner().invoke(main, list(words), standalone_mode=False)


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Eight short flights, two of them test."""
    folder = tmp_path_factory.mktemp("example")
    config = write_example(folder, seed=3, flights=8, seconds=30.0, rate=10.0)
    return config | {"catalog": CATALOG, "resamples": 500, "target_fpr": 0.02}


def changed(example, tmp_path, change, name="flights.parquet"):
    """The example with columns changed in place."""
    table = pq.read_table(example["data"])
    columns = {name: table.column(name).to_numpy().copy() for name in table.column_names}
    change(columns)
    pq.write_table(pa.table(columns), tmp_path / name)
    return {**example, "data": str(tmp_path / name)}


def label_rows(columns, flight, *spans):
    columns.setdefault("label", np.zeros(columns["t"].size))
    rows = np.flatnonzero(columns["flight"].astype(str) == flight)
    for start, end in spans:
        columns["label"][rows[start:end]] = 1


DETECTORS = """
import numpy as np

class Row:
    def fit(self, X_train, X_val=None):
        self.centre = np.concatenate(X_train).mean(axis=0)
    def score(self, X):
        return np.abs(X - self.centre).mean(axis=1)

class Before(Row):
    # Looks back: causal.
    def score(self, X):
        score = super().score(X)
        return np.cumsum(score) / np.arange(1, len(score) + 1)

class OnTheFlight(Row):
    def score(self, X):
        return np.abs((X - X.mean(0)) / (X.std(0) + 1e-9)).mean(axis=1)

class Ahead(Row):
    def score(self, X):
        score = super().score(X)
        return np.maximum(score, np.append(score[1:], score[-1]))

class Offline(Ahead):
    causal = False

class FromValidation(Row):
    def fit(self, X_train, X_val=None):
        rows = list(X_train) + list(X_val or [])
        self.centre = np.concatenate(rows).mean(axis=0)

class Stopped(FromValidation):
    early_stopping = True
"""


@pytest.fixture
def detectors(tmp_path, monkeypatch):
    (tmp_path / "my_detectors.py").write_text(DETECTORS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_detectors", raising=False)


# A detector that looks ahead, scales on the flight it scores, or learns from validation


@pytest.mark.parametrize(
    "kind, rule, why",
    [
        ("Row", None, ""),
        ("Before", None, ""),
        ("OnTheFlight", "detector.causal", "it looks ahead, or scales on the flight it scores"),
        ("Ahead", "detector.causal", "it looks ahead, or scales on the flight it scores"),
        ("Offline", None, ""),
        ("FromValidation", "detector.train_only", "learns from validation"),
        ("Stopped", None, ""),
    ],
)
@pytest.mark.usefixtures("detectors")
def test_what_a_detector_looks_at(example, tmp_path, kind, rule, why):
    run = adjudge.evaluate("anomaly", {**example, "detector": f"my_detectors:{kind}"}, out=tmp_path / "r", report=False)
    assert set(failed(run)) == ({rule} if rule else set())
    assert all(why in reason for reasons in failed(run).values() for reason in reasons)
    assert run.metrics["offline"] is (kind == "Offline")
    if kind == "Offline":
        assert "judged offline" in summary(run).split("\n\n")[1]
    if kind == "Stopped":
        report = json.loads((run.path / "leakage_report.json").read_bytes())
        notes = [
            note for check in report["checks"] if check["code"] == "detector.train_only" for note in check["notes"]
        ]
        assert "declares early stopping" in notes[0]
    adjudge.verify(run)


# Labels of the data in attacked copies


def test_labelled_rows_are_no_negatives_in_attacked_copies(example, tmp_path):
    config = changed(example, tmp_path, lambda c: label_rows(c, "f07", (10, 40)))
    run = adjudge.evaluate("anomaly", config, out=tmp_path / "r", report=False)
    rows = {row["sample"]: row for row in run.samples.to_pylist()}
    own, attacked = rows["f07|labelled"], rows["f07|bias:5#1"]
    assert own["tp"] + own["fn"] == 30
    counted = sum(attacked[name] for name in ("tp", "fp", "fn", "tn"))
    covered = pq.read_table(run.path / "scores.parquet").filter(
        (pa.compute.field("flight") == "f07") & (pa.compute.field("attack") == "bias")
    )
    left_out = int((covered.column("label").to_numpy() == 2).sum())
    assert 0 < left_out <= 30
    assert counted == 300 - left_out
    assert {row["attack"] for row in run.metrics["per_attack"]} == {"bias", "labelled"}
    assert any("30 rows of 1 test flights are labelled in the data" in note for note in run.metrics["notes"])
    plain = adjudge.evaluate("anomaly", example, out=tmp_path / "plain", report=False)
    clean = {row["sample"]: row for row in plain.samples.to_pylist()}["f07|bias:5#1"]
    assert sum(clean[name] for name in ("tp", "fp", "fn", "tn")) == 300


# Several labelled windows in one sequence


def windows(alarms, labels):
    """Scores of one validation and one test flight with 200 rows; alarms and labels are spans of the test flight."""
    rows = {name: [] for name in ("flight", "t", "score", "label")}
    for flight in ("v", "a"):
        score, label = np.zeros(200), np.zeros(200, dtype=int)
        score += np.linspace(0, 0.1, 200)
        for start, end in alarms if flight == "a" else ():
            score[start:end] = 5.0
        for start, end in labels if flight == "a" else ():
            label[start:end] = 1
        rows["flight"] += [flight] * 200
        rows["t"] += (np.arange(200) / 10).tolist()
        rows["score"] += score.tolist()
        rows["label"] += label.tolist()
    return rows


WINDOW_SPLITS = {"train": ["t"], "val": ["v"], "test": ["a"]}


@pytest.mark.parametrize(
    "alarms, recall, verdict",
    [([(80, 95)], 0.0, "missed"), ([(52, 58)], 0.5, "partly_detected"), ([(52, 58), (120, 130)], 1.0, "detected")],
)
def test_each_labelled_window_is_an_event_of_its_own(made, alarms, recall, verdict):
    run = made(windows(alarms, [(50, 60), (120, 140)]), WINDOW_SPLITS)
    assert run.estimates["event_recall", ""].value == recall
    (row,) = run.samples.to_pylist()
    assert (row["verdict"], row["windows"], row["windows_detected"]) == (verdict, 2, 2 * recall)
    latency = run.metrics["metrics"]["detection_latency_ms"]
    assert latency["detected_fraction"] == recall
    if recall == 1.0:
        assert latency["median"] == pytest.approx(400.0)
        assert row["latency_ms"] == pytest.approx(600.0)


# A blank cell in the leakage check


@pytest.fixture
def label_copy(tmp_path):
    """Flights with a feature that copies the label in a share of the rows, blank in the others."""

    def write(share, *, copies=True):
        random = np.random.default_rng(0)
        n = 400
        label = (np.arange(n) % 100 >= 60).astype(float)
        copied = label * 3 + random.normal(0, 0.01, n) if copies else random.normal(size=n)
        copied[random.random(n) >= share] = np.nan
        columns = {"flight": np.repeat(["a", "b", "c", "d"], n // 4), "t": np.tile(np.arange(n // 4) / 10, 4)}
        columns |= {"gps_x": random.normal(size=n), "clue": copied, "label": label}
        pq.write_table(pa.table(columns), tmp_path / "f.parquet")
        return invoke("leakage", "--data", str(tmp_path / "f.parquet"), "--declare", "clue=pitot")

    return write


@pytest.mark.parametrize("share", [1.0, 0.997, 0.9, 0.5, 0.2])
def test_blank_cells_do_not_hide_a_copy_of_the_label(label_copy, share):
    result = label_copy(share)
    assert result.return_value == 3
    assert "clue and label: Pearson correlation 1.000 within flights" in result.stderr
    result = label_copy(share, copies=False)
    assert (result.return_value, "no leak found" in result.stderr) == (0, True)


def test_too_few_rows_are_unknown_not_passed(label_copy):
    result = label_copy(0.02)
    assert result.return_value == 0
    assert "unknown feature.circular" in result.stderr
    assert "too few rows with both values" in result.stderr


# Negative results


def test_misses_are_listed_by_attack_and_magnitude(made):
    found = made().metrics["negative_results"]["attacks_with_recall_below_half"]
    assert {(item["attack"], item["magnitude"]) for item in found} == {("bias", 1.0), ("drift", 1.0)}


def test_nothing_judged_is_said_and_its_line_is_unknown(made, rows):
    few = {key: column[:600] for key, column in rows.items()}
    run = made(few, {"train": ["t1"], "val": ["v1", "v2"], "test": ["a"]})
    (block,) = contracts(run)
    assert "No attack was judged, so nothing is known of what is missed." in block["negative"]
    line = next(item for item in block["checklist"] if item["line"] == "worst-case attack disclosed")
    assert (line["outcome"], line["why"]) == ("unknown", "no attack was judged")


def test_smallest_size_that_was_tried_is_a_bound_with_its_unit():
    top = {"worst_attack": None, "negative_results": {"attacks_judged": 1, "attacks_with_recall_below_half": []}}
    sizes = {"recall_0.5": 3.0, "recall_0.9": 5.0, "tried": [3.0, 5.0], "unit": "m"}
    top["negative_results"] |= {"min_detectable_magnitude": {"noise": sizes}, "shifted_condition": "unknown"}
    text = "Smallest detectable noise: at most 3 m (smallest tried) (recall 50 %), 5 m (recall 90 %)."
    assert text in negative_lines(top)


# Reproduction


@pytest.fixture
def project(example, tmp_path, detectors):
    """A folder with data, detector and a run made inside it, by relative paths."""
    folder = tmp_path / "project"
    folder.mkdir()
    shutil.copy(example["data"], folder / "flights.parquet")
    shutil.copy(tmp_path / "my_detectors.py", folder / "own_detector.py")
    shutil.copy(example["splits"], folder / "splits.json")
    (folder / "catalog.json").write_text(json.dumps(CATALOG))
    return folder


def judge_there(project, monkeypatch, *words):
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend(str(project))
    monkeypatch.delitem(sys.modules, "own_detector", raising=False)
    files = ["--data", "flights.parquet", "--splits", "splits.json", "--catalog", "catalog.json"]
    options = ["--detector", "own_detector:Row", "--resamples", "500", "--target-fpr", "0.02", "--quiet", "--no-report"]
    return invoke("anomaly", *files, *options, "--out", "run", *words)


def reproduce(run, *words):
    sys.modules.pop("own_detector", None)
    return invoke("anomaly", "reproduce", str(run), "--trust-code", *words)


def test_reproduction_from_another_folder(project, tmp_path, monkeypatch):
    assert judge_there(project, monkeypatch).return_value == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    result = reproduce(project / "run")
    assert result.return_value == 0, result.stderr
    run = adjudge.load_run(project / "run")
    assert run.metrics["checklist"][-1]["outcome"] == "pass"
    assert [item["item"] for item in run.metrics["open_items"]] == ["code leakage check passes"]
    adjudge.verify(run)


def test_reproduction_with_the_paths_of_another_machine(project, tmp_path, monkeypatch):
    assert judge_there(project, monkeypatch).return_value == 0
    moved, run = tmp_path / "moved", tmp_path / "only-the-run"
    shutil.move(project / "run", run)
    project.rename(moved)
    manifest = json.loads((run / "manifest.json").read_bytes())
    manifest["config"]["data"] = "/home/somebody/project/flights.parquet"
    (run / "manifest.json").write_text(json.dumps(manifest))
    monkeypatch.chdir(tmp_path)
    missing = reproduce(run)
    assert isinstance(missing.exception, ConfigError)
    assert "--root" in str(missing.exception)
    assert reproduce(run, "--root", str(moved)).return_value == 0


def test_altered_data_and_detector_are_named(project, monkeypatch):
    assert judge_there(project, monkeypatch).return_value == 0
    table = pq.read_table(project / "flights.parquet")
    values = table.column("gps_x").to_numpy().copy()
    values[-1] += 1e-3
    table = table.set_column(table.schema.get_field_index("gps_x"), "gps_x", pa.array(values))
    pq.write_table(table, project / "flights.parquet")
    source = (project / "own_detector.py").read_text()
    (project / "own_detector.py").write_text(source + "\n# changed\n")
    result = reproduce(project / "run")
    assert result.return_value == 1
    assert "FAIL data: flight f07 is not the one that was judged" in result.stderr
    assert "FAIL detector: source own_detector.py is not what it was" in result.stderr
    assert adjudge.load_run(project / "run").metrics["checklist"][-1]["outcome"] == "fail"


def test_invalid_run_cannot_be_reproduced(made):
    run = made(threshold=0.5)
    result = invoke("anomaly", "reproduce", str(run.path))
    assert isinstance(result.exception, ConfigError)
    assert "it has no result" in str(result.exception)


def test_scores_reproduce_the_evaluation_only_and_say_so(made):
    run = made()
    result = invoke("anomaly", "reproduce", str(run.path))
    assert result.return_value == 0
    assert "this reproduces the evaluation only" in result.stderr
    assert "evaluation alone" in adjudge.load_run(run.path).metrics["checklist"][-1]["why"]


# The code check


def test_no_code_is_unknown_and_a_file_that_cannot_be_parsed_fails(tmp_path):
    (tmp_path / "empty").mkdir()
    result = invoke("leakage", "--check-code", str(tmp_path / "empty"))
    assert result.return_value == 0
    assert "unknown code.clean" in result.stderr
    (tmp_path / "bad.py").write_text("def broken(:\n")
    result = invoke("leakage", "--check-code", str(tmp_path))
    assert result.return_value == 3
    assert "bad.py: cannot be parsed" in result.stderr
    (tmp_path / "bad.py").write_text("print('fine')\n")
    assert "ok      code.clean" in invoke("leakage", "--check-code", str(tmp_path)).stderr


@pytest.mark.parametrize(
    "line, waived",
    [
        ("scaler.fit(X_test)  # adjudge: allow code.fit_on_test a test of the scaler itself", True),
        ("# adjudge: allow code.fit_on_test a test of the scaler itself\nscaler.fit(X_test)", True),
        ("scaler.fit(X_test)  # adjudge: allow code.fit_on_test", False),
        ("scaler.fit(X_test)  # adjudge: allow code.banned_column another rule", False),
    ],
)
def test_waivers_need_their_rule_and_a_reason_and_are_shown(tmp_path, line, waived):
    (tmp_path / "a.py").write_text(line + "\n")
    result = invoke("leakage", "--check-code", str(tmp_path))
    assert result.return_value == (0 if waived else 3)
    assert ("code.fit_on_test is waived: a test of the scaler itself" in result.stderr) is waived


def test_the_three_checks_alone_and_together(example, tmp_path):
    (tmp_path / "train.py").write_text("scaler.fit(X_test)\n")
    splits, data, code = ["--splits", example["splits"]], ["--data", example["data"]], ["--check-code", str(tmp_path)]
    limit = ["--correlation-threshold", "0.9"]
    for words, exit_code, checks in (
        (splits, 0, {"split.disjoint"}),
        ([*data, *limit], 0, {"split.no_shuffle", "feature.banned", "feature.allowed", "feature.circular"}),
        (code, 3, {"code.clean"}),
        ([*splits, *data, *limit, *code], 3, {"split.disjoint", "split.covers", "feature.circular", "code.clean"}),
    ):
        result = invoke("leakage", *words, "--json")
        assert result.return_value == exit_code
        assert checks <= {check["code"] for check in json.loads(result.stdout)["checks"]}


def test_columns_of_ones_own_names(example, tmp_path):
    config = changed(example, tmp_path, lambda c: c.update(alt_b=np.random.default_rng(0).normal(size=c["t"].size)))
    words = ["leakage", "--data", config["data"], "--declare", "alt_b=own"]
    assert invoke(*words).return_value == 0
    (tmp_path / "sensors.yaml").write_text("alt_b: baro_alt\n")
    result = invoke(*words, "--sensors", str(tmp_path / "sensors.yaml"))
    assert result.return_value == 3
    assert "alt_b (declared as baro_alt): barometric altitude is fused" in result.stderr


# Seeds


@pytest.mark.parametrize(
    "entry, caught",
    [
        ({"parameters": {"position_bias_m": 5.0}}, True),
        ({"parameters": {"position_bias_m": 5.0}, "seed": 4}, False),
        ({"parameters": {"position_bias_m": 5.0}, "onset_fraction": 0.4}, False),
        ({"parameters": {"position_bias_m": 5.0, "direction": "random"}, "onset_fraction": 0.4}, True),
    ],
)
def test_random_attack_without_a_seed_fails_the_line(example, tmp_path, entry, caught):
    run = adjudge.evaluate("anomaly", {**example, "catalog": {"bias": entry}}, out=tmp_path / "r", report=False)
    assert set(failed(run)) == ({"seeds.recorded"} if caught else set())


# An attack that is named on attacked rows alone


def test_flight_that_names_its_attack_on_attacked_rows_is_one_sequence(made, rows):
    keep = [i for i in range(len(rows["t"])) if i < 400 or rows["magnitude"][i] == 5.0]
    few = {key: [column[i] for i in keep] for key, column in rows.items()}
    whole = made(few)
    sparse = dict(few)
    for name in ("attack", "magnitude", "seed"):
        sparse[name] = [value if label else None for value, label in zip(few[name], few["label"], strict=True)]
    run = made(sparse, out="sparse")
    assert run.metrics["buckets"]["all"]["n"] == 3
    assert run.metrics["metrics"] == whole.metrics["metrics"]
    assert [item["outcome"] for item in run.metrics["controls"]] == [i["outcome"] for i in whole.metrics["controls"]]
    assert any("read as one sequence" in note for note in run.metrics["notes"])


def test_two_attacks_on_one_flight_are_judged_each_by_itself(made):
    rows = windows([(50, 60)], [(50, 60), (120, 140)])
    rows["attack"] = [None] * 200 + [
        "bias" if 50 <= k < 60 else "drift" if 120 <= k < 140 else None for k in range(200)
    ]
    run = made(rows, WINDOW_SPLITS)
    table = {row["sample"]: row for row in run.samples.to_pylist()}
    assert {name: row["verdict"] for name, row in table.items()} == {"a|bias": "detected", "a|drift": "missed"}
    assert [sum(table["a|bias"][k] for k in ("tp", "fp", "fn", "tn")), table["a|bias"]["fp"]] == [180, 0]


# Stamps


def test_stamp_names_what_is_open(made, tmp_path):
    run = made()
    assert run.metrics["stamp"] == "VALID WITH OPEN ITEMS"
    first = summary(run).split("\n\n")[1].replace("\n    ", " ")
    for item in run.metrics["open_items"]:
        assert item["item"] in first


def test_stamp_is_valid_once_nothing_is_open(example, tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("scaler.fit(X_train)\n")
    run = adjudge.evaluate(
        "anomaly", {**example, "code": [str(tmp_path / "train.py")]}, out=tmp_path / "r", report=False
    )
    assert [item["item"] for item in run.metrics["open_items"]] == ["one-command reproduction tested"]
    assert invoke("anomaly", "reproduce", str(run.path), "--quiet").return_value == 0
    done = adjudge.load_run(run.path)
    assert (done.metrics["stamp"], done.metrics["open_items"]) == ("VALID", [])
    adjudge.verify(done)


def test_one_command_for_the_whole_checklist(example, tmp_path):
    (tmp_path / "train.py").write_text("scaler.fit(X_train)\n")
    (tmp_path / "eval.yaml").write_text(json.dumps(example))
    words = ["anomaly", "checklist", "--config", str(tmp_path / "eval.yaml"), "--out", str(tmp_path / "r")]
    result = invoke(*words, "--check-code", str(tmp_path / "train.py"))
    assert result.return_value == 0, result.stderr
    assert [line[:4] for line in result.stdout.splitlines()] == ["pass"] * 8 + ["VALI"]
    opened = invoke(*words, "--force")
    assert opened.return_value == 1
    assert "unknown code leakage check passes (adjudge anomaly … --check-code SRC)" in opened.stdout


# Calibration


def test_calibration_that_did_not_carry_over_is_said_on_top(made, rows):
    moved = [s + (0.6 if f in "abc" else 0.0) for s, f in zip(rows["score"], rows["flight"], strict=True)]
    run = made({**rows, "score": moved})
    text = run.metrics["calibration"]["not_carried_over"]
    assert text.startswith("the calibration did not carry over: 59.5 % of clean")
    assert "the target is 1 %" in text
    assert text[:40] in summary(run).split("\n\n")[1]
    assert made(rows, out="good").metrics["calibration"]["not_carried_over"] is None


# Reading


def test_limit_is_refused(made, tmp_path):
    made()
    files = ["--scores", str(tmp_path / "scores.parquet"), "--splits", str(tmp_path / "splits.json")]
    result = invoke("anomaly", *files, "--limit", "10", "--out", str(tmp_path / "x"))
    assert isinstance(result.exception, ConfigError)
    assert not (tmp_path / "x").exists()


def test_catalog_as_its_authors_write_it():
    parameters = {"position_bias_m": [1.0, 2.0], "velocity_bias_mps": [0.1, 0.2]}
    entry = {"description": "constant", "parameters": parameters, "onset": "random_uniform", "onset_range": [0.2, 0.5]}
    fixed = {"parameters": {"position_noise_std_m": 1.0}, "onset": "fixed", "onset_fraction": 0.2, "duration": 5}
    timed = {"parameters": {"replay_duration_s": 5}, "injection_time": "random", "seeds": [1, 2]}
    document = {"version": "1.0.0", "description": "…", "seed": 42, "evaluation": {"metrics": ["auroc"]}}
    attacks = {"bias": {**entry, "seeds": [42, 43]}, "noise": fixed, "replay": timed}
    catalog = parse_catalog({**document, "attacks": attacks})
    unfolded = {}
    for attack in catalog.attacks:
        unfolded.setdefault(attack.name, []).append(attack)
    assert {name: len(items) for name, items in unfolded.items()} == {"bias": 8, "noise": 1, "replay": 2}
    assert unfolded["bias"][0].onset_range == (0.2, 0.5)
    assert (unfolded["noise"][0].onset_range, unfolded["noise"][0].seed) == ((0.2, 0.2), 42)
    assert catalog.notes == ("the catalog's description, evaluation, version describe it and change no attack",)
    many = parse_catalog({"bias": {"parameters": {"position_bias_m": list(range(1, 601))}, "seed": 1}})
    assert many.notes == ("the catalog unfolds to 600 attacks on each test flight",)


def csv_of(columns, delimiter=",", decimal="."):
    names = list(columns)
    lines = [delimiter.join(names)]
    rows = zip(*columns.values(), strict=True)
    lines += [delimiter.join(str(value).replace(".", decimal) for value in row) for row in rows]
    return "\n".join(lines) + "\n"


def faults(tmp_path, *, name="faults.csv", write=csv_of, **renamed):
    """Eight flights of two channels, without GPS, the last two with labelled faults."""
    random = np.random.default_rng(0)
    columns = {key: [] for key in ("flight", "t", "current", "speed", "label")}
    for index in range(8):
        n = 300
        label = np.zeros(n, dtype=int)
        if index >= 6:
            label[100:140] = 1
        columns["flight"] += [f"f{index}"] * n
        columns["t"] += [k / 10 for k in range(n)]
        columns["current"] += (random.normal(size=n) + 4 * label).round(4).tolist()
        columns["speed"] += random.normal(size=n).round(4).tolist()
        columns["label"] += label.tolist()
    (tmp_path / name).write_text(write({renamed.get(key, key): values for key, values in columns.items()}))
    splits = {"train": ["f0", "f1", "f2"], "val": ["f3", "f4", "f5"], "test": ["f6", "f7"]}
    (tmp_path / "splits.json").write_text(json.dumps(splits))
    return ["anomaly", "--data", str(tmp_path / name), "--splits", str(tmp_path / "splits.json"), "--quiet"]


def judged(tmp_path, words, *more):
    options = [
        "--detector",
        "sklearn:IsolationForest",
        "--resamples",
        "500",
        "--no-report",
        "--out",
        str(tmp_path / "r"),
    ]
    result = invoke(*words, *options, *more)
    return result, (adjudge.load_run(tmp_path / "r") if (tmp_path / "r").exists() else None)


def test_labelled_faults_without_a_catalog_or_gps(tmp_path):
    pytest.importorskip("sklearn")
    result, run = judged(tmp_path, faults(tmp_path), "--leave-one-flight-out")
    assert result.return_value == 0, result.stderr
    assert [row["attack"] for row in run.metrics["per_attack"]] == ["labelled"]
    assert len(run.metrics["leave_one_flight_out"]["folds"]) == 8
    assert run.metrics["leave_one_flight_out"]["over_folds"]["auroc"]["folds"] == 2


def test_other_columns_delimiter_and_milliseconds(tmp_path):
    pytest.importorskip("sklearn")
    words = faults(tmp_path, write=lambda c: csv_of(c, ";", ","), current="Strom", label="Fehler")
    names = ["--column", "current=Strom", "--column", "label=Fehler"]
    result, run = judged(tmp_path, words, *names)
    assert result.return_value == 0, result.stderr
    assert any("delimiter semicolon and a decimal comma" in note for note in run.metrics["notes"])
    plain, other = judged(tmp_path, faults(tmp_path), "--force")
    assert plain.return_value == 0
    assert other.metrics["metrics"] == run.metrics["metrics"]


def test_forward_fill_is_counted_and_blanks_are_refused_without_it(tmp_path):
    pytest.importorskip("sklearn")

    def holes(columns):
        columns["speed"][50:53] = [""] * 3
        return csv_of(columns)

    words = faults(tmp_path, write=holes)
    result, _ = judged(tmp_path, words)
    assert isinstance(result.exception, InputError)
    assert "flight f0: speed is no number at row 51 (3 rows in all). --fill forward" in str(result.exception)
    result, run = judged(tmp_path, words, "--fill", "forward")
    assert result.return_value == 0
    assert "3 blank cells were filled with the value before them (--fill forward)" in run.metrics["notes"]


@pytest.mark.parametrize(
    "unit, factor, note", [(None, 1000, True), ("ms", 1000, False), ("s", 1, False), (None, 1, False)]
)
def test_time_in_milliseconds(tmp_path, unit, factor, note):
    from pathlib import Path

    from adjudge.protocols.anomaly.rows import DataOptions, read_flights

    times = [str(round(k * 0.1 * factor, 6)) if factor == 1 else str(k * 100) for k in range(400)]
    (tmp_path / "a.csv").write_text("t,x\n" + "".join(f"{t},{k % 7}\n" for k, t in enumerate(times)))
    read = read_flights(Path(tmp_path / "a.csv").parent, DataOptions(time_unit=unit))
    assert np.diff(read.flights[0].time) == pytest.approx(0.1)
    assert bool(read.notes) is note


@pytest.mark.parametrize(
    "files, message",
    [
        ({"a.csv": "t,x,x\n0,1,2\n"}, "a.csv: has the column 'x' more than once"),
        ({"one/f.csv": "t,x\n0,1\n", "two/f.csv": "t,x\n0,1\n"}, "would both be flight 'f'"),
        ({"a.csv": "t,x\n0,yes\n"}, "column 'x' is string, expected numbers"),
        ({"notes.md": "hello"}, "hold no .csv or .parquet file"),
    ],
)
def test_messages_name_file_and_column(tmp_path, files, message):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    result = invoke("leakage", "--data", str(tmp_path))
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


def test_sub_folders_are_read(tmp_path):
    for folder, name in (("one", "f1"), ("two", "f2")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.csv").write_text("t,gps_x\n0,1\n1,2\n2,1\n")
    assert invoke("leakage", "--data", str(tmp_path)).return_value == 0
