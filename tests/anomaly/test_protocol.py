"""The protocol over scores: the contract, the stamp, the numbers, verification."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import adjudge
from adjudge.cli.main import main
from adjudge.errors import ConfigError, InputError, ProtocolViolation, VerificationFailed
from adjudge.protocols.anomaly.config import PRIMARY
from adjudge.provenance.canonical import file_digest


def failed(run) -> set[str]:
    return {item["code"] for item in run.metrics["violations"]}


def test_valid_run_has_every_primary_metric_and_every_file(made):
    run = made()
    assert (run.metrics["valid"], run.metrics["stamp"]) == (True, "VALID WITH OPEN ITEMS")
    assert set(PRIMARY) <= set(run.metrics["metrics"])
    assert set(run.metrics["metrics"]["detection_latency_ms"]) == {
        "median",
        "p95",
        "restricted_mean",
        "detected_fraction",
    }
    present = {path.name for path in run.path.iterdir()}
    assert {
        "splits.json",
        "catalog.json",
        "metrics.json",
        "calibration.json",
        "leakage_report.json",
        "per_attack.csv",
        "scores.parquet",
    } <= present
    assert run.metrics["worst_attack"] == "drift"
    assert run.metrics["best_attack"] == "bias"
    assert run.metrics["buckets"]["all"]["n"] == 12


def test_numbers_against_plain_loops(made, rows):
    run = made(rows)
    threshold = run.metrics["calibration"]["threshold"]
    tp = fp = fn = tn = 0
    hits, latencies = 0, []
    n = 200
    for start in range(2 * n, len(rows["score"]), n):
        score, label = rows["score"][start : start + n], rows["label"][start : start + n]
        length = 0
        for value, truth in zip(score, label, strict=True):
            length = length + 1 if value > threshold else 0
            called = length >= 5
            tp, fp = tp + (called and truth), fp + (called and not truth)
            fn, tn = fn + (not called and truth), tn + (not called and not truth)
        if any(label):
            length = 0
            for row in range(100, 150):
                length = length + 1 if score[row] > threshold else 0
                if length == 5:
                    hits += 1
                    latencies.append((row - 100) * 100)
                    break
    metrics = run.metrics["metrics"]
    assert [metrics[name] for name in ("tp", "fp", "fn", "tn")] == [tp, fp, fn, tn]
    assert metrics["recall"] == tp / (tp + fn)
    assert metrics["detection_latency_ms"]["detected_fraction"] == hits / 9
    assert metrics["detection_latency_ms"]["median"] == pytest.approx(np.median(latencies))


def test_threshold_is_a_validation_score_with_at_most_one_percent_above(made, rows):
    calibration = made(rows).metrics["calibration"]
    clean = np.array(rows["score"][:400])
    assert calibration["threshold"] in clean
    assert (clean > calibration["threshold"]).sum() == 4
    assert calibration["linear_percentile"] == pytest.approx(np.percentile(clean, 99))


# Cases that must come out right


def test_one_class_only_gives_no_auroc_and_the_reason(made, rows):
    rows["label"] = [0] * len(rows["label"])
    rows["attack"] = [None] * len(rows["label"])
    rows["flight"] = [f"{f}" for f in rows["flight"]]
    keep = [i for i in range(len(rows["t"])) if i < 600]
    few = {key: [column[i] for i in keep] for key, column in rows.items()}
    run = made(few, {"train_flights": ["t1"], "val_flights": ["v1", "v2"], "test_flights": ["a"]})
    estimate = run.estimates["auroc", ""]
    assert estimate.value is None
    assert "only one class" in estimate.why
    assert run.metrics["metrics"]["auroc"] is None


def test_20_clean_validation_samples_for_one_percent_fail_and_need_100(made, rows):
    keep = [i for i in range(len(rows["t"])) if not 20 <= i < 400]
    run = made(
        {key: [column[i] for i in keep] for key, column in rows.items()},
        {"train": ["t1"], "val": ["v1"], "test": ["a", "b", "c"]},
    )
    assert failed(run) == {"threshold.clean_val_only"}
    assert run.metrics["violations"][0]["reasons"] == ["20 clean validation samples; a target of 1 % needs 100"]


def test_binary_scores_with_ten_percent_false_positives_recall_nothing_at_one_percent(made):
    rows = {name: [] for name in ("flight", "t", "score", "label")}
    for flight in ("v1", "a", "b"):
        label = [0] * 100 + [1] * 100 if flight != "v1" else [0] * 200
        score = [1.0] * 10 + [0.0] * 90 + [1.0] * 80 + [0.0] * 20
        rows["flight"] += [flight] * 200
        rows["t"] += list(range(200))
        rows["score"] += score if flight != "v1" else [0.1] * 200
        rows["label"] += label
    run = made(rows, {"train": ["t1"], "val": ["v1"], "test": ["a", "b"]})
    assert run.metrics["metrics"]["recall_at_1pct_fpr"] == 0.0


def test_flight_1_in_train_and_text_1_in_test_makes_the_run_invalid(made):
    run = made(splits={"train_flights": [1], "val_flights": ["v1", "v2"], "test_flights": ["a", "b", "c", "1"]})
    assert "split.disjoint" in failed(run)


def test_same_rows_under_two_names_make_the_run_invalid(made, rows):
    rows["score"][400:600] = rows["score"][0:200]
    run = made(rows)
    assert failed(run) == {"split.disjoint"}


def test_run_of_3_at_the_end_and_2_at_the_start_of_the_next_flight_is_no_alarm(made, rows):
    clean = {"flight": ["v1"] * 100, "t": list(range(100)), "score": [0.1] * 100, "label": [0] * 100}
    for flight, high in (("a", range(97, 100)), ("b", range(2))):
        clean["flight"] += [flight] * 100
        clean["t"] += list(range(100))
        clean["score"] += [1.0 if row in high else 0.0 for row in range(100)]
        clean["label"] += [0] * 100
    run = made(clean, {"train": ["t1"], "val": ["v1"], "test": ["a", "b"]}, n_consecutive=5)
    assert run.samples.column("events").to_pylist() == [0, 0]
    assert made(clean, {"train": ["t1"], "val": ["v1"], "test": ["a", "b"]}, n_consecutive=2).samples.column(
        "events"
    ).to_pylist() == [1, 1]


def test_missed_attack_is_censored_and_not_in_the_latency(made):
    run = made()
    samples = run.samples.to_pylist()
    misses = [row for row in samples if row["attacked"] and not row["detected"]]
    hits = [row for row in samples if row["detected"]]
    assert (len(misses), len(hits)) == (6, 3)
    assert {round(row["latency_ms"]) for row in misses} == {4900}
    latency = run.metrics["metrics"]["detection_latency_ms"]
    assert latency["p95"] == max(row["latency_ms"] for row in hits) < 1000
    assert latency["detected_fraction"] == 3 / 9
    assert latency["restricted_mean"] > latency["p95"]


def test_two_test_flights_warn_of_three_distinct_resamples(made, rows):
    keep = [i for i, flight in enumerate(rows["flight"]) if flight != "c"]
    run = made(
        {key: [column[i] for i in keep] for key, column in rows.items()},
        {"train": ["t1"], "val": ["v1", "v2"], "test": ["a", "b"]},
    )
    assert any("2 test flights" in note and "3 distinct resamples" in note for note in run.metrics["notes"])
    assert "all 3 distinct resamples" in run.estimates["recall", ""].method


@pytest.mark.parametrize("flights, method", [(9, "all 24310 distinct resamples"), (10, "500 resamples")])
def test_below_ten_test_flights_all_distinct_resamples_are_enumerated(made, flights, method):
    random = np.random.default_rng(1)
    names = ["v1", *(f"a{k}" for k in range(flights))]
    rows = {
        "flight": np.repeat(names, 100),
        "t": np.tile(np.arange(100.0), len(names)),
        "score": random.random(100 * len(names)),
        "label": np.tile(np.arange(100) >= 60, len(names)) & (np.arange(100 * len(names)) >= 100),
    }
    run = made(rows, {"train": ["t1"], "val": ["v1"], "test": names[1:]})
    for name in ("auroc", "recall_at_1pct_fpr", "fpr"):
        assert method in run.estimates[name, ""].method
    assert any(f"only {flights} test flights" in note for note in run.metrics["notes"]) is (flights < 10)


def test_threshold_from_outside_is_invalid_and_shown_only_watermarked(made):
    hidden = made(threshold=0.5)
    assert failed(hidden) == {"threshold.clean_val_only"}
    assert (hidden.metrics["metrics"], hidden.metrics["estimates"], hidden.charts) == ({}, [], [])
    shown = made(threshold=0.5, show_invalid=True)
    assert shown.metrics["metrics"]["tp"] > 0
    assert shown.metrics["watermark"].startswith("INVALID")
    assert all("INVALID" in chart["spec"]["title"]["subtitle"] for chart in shown.charts)
    assert (shown.path / "per_attack.csv").read_text().startswith("# INVALID")


# A leaking fixture for each rule, caught by that rule and no other

CATALOG = {
    "bias": {"parameters": {"position_bias_m": [1.0, 5.0]}, "seed": 7},
    "drift": {"parameters": {"position_drift_rate_mps": 1.0}, "seed": 7},
}


def leaking(rule, rows):
    splits = {"train_flights": ["t1"], "val_flights": ["v1", "v2"], "test_flights": ["a", "b", "c"]}
    options = {}
    if rule == "split.disjoint":
        splits["train_flights"] = ["t1", "a"]
    elif rule == "split.covers":
        splits["test_flights"] = ["a", "b", "c", "d"]
    elif rule == "split.no_shuffle":
        rows["t"][500], rows["t"][501] = rows["t"][501], rows["t"][500]
    elif rule == "threshold.clean_val_only":
        options["threshold"] = 0.9
    elif rule == "decision.n_consecutive":
        options["n_consecutive"] = [3, 5, 10]
    elif rule == "attack.test_only":
        rows["label"][250] = 1
    elif rule == "metrics.complete":
        options["metrics"] = ["auroc", "f1"]
    elif rule == "ci.bootstrap":
        options["resamples"] = 100
    elif rule == "artifacts.complete":
        options["catalog"] = {"bias": {**CATALOG["bias"], "parameters": {"position_bias_m": [1.0, 3.0]}}} | {
            "drift": CATALOG["drift"]
        }
    elif rule == "seeds.recorded":
        options["catalog"] = CATALOG | {"drift": {**CATALOG["drift"], "seed": 8}}
    return splits, options


@pytest.mark.parametrize(
    "rule",
    [
        "split.disjoint",
        "split.covers",
        "split.no_shuffle",
        "threshold.clean_val_only",
        "decision.n_consecutive",
        "attack.test_only",
        "metrics.complete",
        "ci.bootstrap",
        "artifacts.complete",
        "seeds.recorded",
    ],
)
def test_leak_is_caught_by_its_rule_and_no_other(made, rows, rule):
    splits, options = leaking(rule, rows)
    run = made(rows, splits, **options)
    assert failed(run) == {rule}
    atoms = run.atoms(run.samples.to_pylist()[0])
    assert {atom.rule for atom in atoms if atom.failed and atom.scope == "RUN"} == {rule}
    assert set(run.samples.column("verdict").to_pylist()) == {"invalid"}


def test_scores_under_the_catalog_they_were_made_with_are_valid(made):
    run = made(catalog=CATALOG)
    assert failed(run) == set()
    assert json.loads((run.path / "catalog.json").read_bytes()) == CATALOG


def test_attack_of_the_catalog_that_was_not_judged_is_caught(made):
    run = made(catalog=CATALOG | {"noise": {"parameters": {"position_noise_std_m": 1.0}, "seed": 7}})
    assert run.metrics["violations"] == [
        {"code": "metrics.complete", "reasons": ["attack noise of the catalog was not judged"]}
    ]


def test_attack_without_its_seed_is_caught(made, rows):
    rows["seed"] = [
        None if attack == "drift" else seed for attack, seed in zip(rows["attack"], rows["seed"], strict=True)
    ]
    run = made(rows)
    assert run.metrics["violations"] == [
        {"code": "seeds.recorded", "reasons": ["attack drift was injected without a recorded seed"]}
    ]


def test_scores_that_name_no_seed_are_not_held_against_them(made, rows):
    del rows["seed"]
    run = made(rows)
    assert failed(run) == set()
    assert {atom.rule: atom.outcome for atom in run.atoms(run.samples.to_pylist()[0])}["seeds.recorded"] == (
        "not_applicable"
    )


def test_code_leak_is_caught(made, tmp_path):
    (tmp_path / "train.py").write_text("scaler.fit(X_test)\n")
    run = made(code=[str(tmp_path / "train.py")])
    assert failed(run) == {"code.clean"}
    assert run.metrics["checklist"][0]["outcome"] == "fail"


def test_what_scores_cannot_show_is_not_applicable(made):
    run = made()
    atoms = {atom.rule: atom.outcome for atom in run.atoms(run.samples.to_pylist()[0])}
    assert {code for code, outcome in atoms.items() if outcome == "not_applicable"} >= {
        "scaler.train_normal_only",
        "feature.banned",
        "feature.circular",
    }


# Negative results


def test_poor_attack_is_among_the_negative_results(made):
    found = made().metrics["negative_results"]
    missed = [(item["attack"], item["magnitude"]) for item in found["attacks_with_recall_below_half"]]
    assert missed == [("bias", 1.0), ("drift", 1.0)]
    assert found["min_detectable_magnitude"]["bias"]["recall_0.5"] == 5.0
    drift = {"recall_0.5": None, "recall_0.9": None, "tried": [1.0], "unit": ""}
    assert found["min_detectable_magnitude"]["drift"] == drift
    assert found["shifted_condition"] == "unknown: no shifted condition in the data"


def test_report_without_its_negative_results_cannot_be_written(made, monkeypatch, tmp_path):
    from adjudge.protocols.anomaly import results

    def without(rows, smallest, shifted):
        return {
            "attacks_judged": 2,
            "attacks_with_recall_below_half": rows[:0],
            "min_detectable_magnitude": smallest,
            "shifted_condition": "",
        }

    monkeypatch.setattr(results, "negative_results", without)
    with pytest.raises(ProtocolViolation, match="lack bias, drift"):
        made(out="never")
    assert not (tmp_path / "never").exists()


# Verification


def test_verify_holds(made):
    adjudge.verify(made())
    adjudge.verify(made(threshold=0.5))


def forge(run, name, data):
    (run.path / name).write_bytes(data)
    manifest = json.loads((run.path / "manifest.json").read_bytes())
    for entry in manifest["files"]:
        if entry["path"] == name:
            entry["bytes"], entry["sha256"] = len(data), file_digest(run.path / name)
    (run.path / "manifest.json").write_text(json.dumps(manifest))


def test_altered_number_is_found_though_digests_fit(made):
    run = made()
    document = json.loads((run.path / "metrics.json").read_bytes())
    document["metrics"]["auroc"] = 0.99
    forge(run, "metrics.json", (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode())
    with pytest.raises(VerificationFailed, match=r"metrics.auroc is 0.99"):
        adjudge.verify(adjudge.load_run(run.path))


def test_altered_scores_are_found_though_digests_fit(made, tmp_path):
    run = made()
    table = pq.read_table(run.path / "scores.parquet")
    score = table.column("score").to_numpy().copy()
    score[table.column("label").to_numpy() == 1] += 5
    table = table.set_column(table.schema.get_field_index("score"), "score", pa.array(score))
    pq.write_table(table, tmp_path / "new.parquet")
    forge(run, "scores.parquet", (tmp_path / "new.parquet").read_bytes())
    with pytest.raises(VerificationFailed, match=r"is not what scores\.parquet gives"):
        adjudge.verify(adjudge.load_run(run.path))


def test_removed_stamp_is_found(made):
    run = made(threshold=0.5, show_invalid=True)
    document = json.loads((run.path / "metrics.json").read_bytes())
    document |= {"valid": True, "stamp": "VALID", "violations": []}
    forge(run, "metrics.json", (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode())
    with pytest.raises(VerificationFailed, match="stamp"):
        adjudge.verify(adjudge.load_run(run.path))


def test_order_of_the_rows_of_sequences_changes_nothing(made, rows):
    one = (made(rows).path / "metrics.json").read_bytes()
    n = 200
    order = np.concatenate([np.arange(start, start + n) for start in reversed(range(0, len(rows["t"]), n))])
    turned = {key: [column[i] for i in order] for key, column in rows.items()}
    assert (made(turned, out="other").path / "metrics.json").read_bytes() == one


# Bad input


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda rows: rows.pop("score"), "has no column 'score'"),
        (lambda rows: rows["score"].__setitem__(3, float("nan")), "scores are no number, first of flight v1"),
        (lambda rows: rows["label"].__setitem__(3, 2), "label is 2, expected 0 or 1"),
    ],
)
def test_bad_scores(made, rows, change, message):
    change(rows)
    with pytest.raises(InputError, match=message):
        made(rows)


def test_unknown_option(made):
    with pytest.raises(ConfigError, match="colour"):
        made(colour=1)


def test_command_exits_3_when_invalid_and_0_when_valid(made, tmp_path):
    made()
    files = [
        "--scores",
        str(tmp_path / "scores.parquet"),
        "--splits",
        str(tmp_path / "splits.json"),
        "--resamples",
        "500",
    ]
    good = CliRunner().invoke(main, ["anomaly", *files, "--out", str(tmp_path / "x"), "--quiet"], standalone_mode=False)
    assert good.return_value == 0
    bad = CliRunner().invoke(
        main, ["anomaly", *files, "--threshold", "0.5", "--out", str(tmp_path / "y"), "--quiet"], standalone_mode=False
    )
    assert bad.return_value == 3
    assert "INVALID by threshold.clean_val_only: the threshold 0.5 was given from outside" in bad.stderr


# Real data

DATA = Path(os.environ.get("ADJUDGE_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.mark.realdata
def test_nab_counts_are_the_published_ones(tmp_path):
    folder = DATA / "anomaly_nab"
    if not folder.is_dir():
        pytest.skip(f"the public data is not at {folder}")
    from sklearn.metrics import roc_auc_score

    windows = json.loads((folder / "labels" / "combined_windows.json").read_text())

    def series(name):
        path = folder / "results" / "numenta" / "realKnownCause" / f"numenta_{name}.csv"
        table = {key: [] for key in ("timestamp", "score", "label")}
        spans = [[datetime.fromisoformat(edge) for edge in span] for span in windows[f"realKnownCause/{name}.csv"]]
        for line in path.read_text().splitlines()[1:]:
            stamp, _, score, *_ = line.split(",")
            when = datetime.fromisoformat(stamp)
            table["timestamp"].append(stamp)
            table["score"].append(float(score))
            table["label"].append(int(any(a <= when <= b for a, b in spans)))
        probation = min(int(0.15 * len(table["score"])), 750)
        return {key: column[probation:] for key, column in table.items()}

    test, val = series("cpu_utilization_asg_misconfiguration"), series("ambient_temperature_system_failure")
    clean = val["label"].index(1)
    rows = ["flight,timestamp,score,label"]
    rows += [f"val,{t},{s!r},0" for t, s in zip(val["timestamp"][:clean], val["score"], strict=False)]
    rows += [f"cpu,{t},{s!r},{y}" for t, s, y in zip(test["timestamp"], test["score"], test["label"], strict=True)]
    (tmp_path / "scores.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "splits.json").write_text(
        json.dumps({"train_flights": ["none"], "val_flights": ["val"], "test_flights": ["cpu"]})
    )
    result = CliRunner().invoke(
        main,
        [
            *("anomaly", "--scores", str(tmp_path / "scores.csv"), "--splits", str(tmp_path / "splits.json")),
            *(
                "--time-column",
                "timestamp",
                "--threshold",
                "0.5421876907348634",
                "--n-consecutive",
                "1",
                "--show-invalid",
            ),
            *("--out", str(tmp_path / "run"), "--json"),
        ],
        standalone_mode=False,
    )
    assert result.return_value == 3
    document = msgspec.json.decode(result.stdout)
    assert [item["code"] for item in document["violations"]] == ["threshold.clean_val_only"]
    assert [document["metrics"][name] for name in ("tp", "tn", "fp", "fn")] == [20, 15790, 11, 1479]
    assert document["watermark"].startswith("INVALID")
    assert document["metrics"]["auroc"] == pytest.approx(roc_auc_score(test["label"], test["score"]), abs=1e-12)
