"""What a run keeps and what verification makes of it: no scores, forged findings, a forged reproduction."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import adjudge
from adjudge.cli.main import main
from adjudge.errors import VerificationFailed
from adjudge.provenance.canonical import file_digest


def forge(run, name, document):
    """Write a file of the run anew, with a manifest that fits."""
    data = (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()
    (run.path / name).write_bytes(data)
    manifest = json.loads((run.path / "manifest.json").read_bytes())
    for entry in manifest["files"]:
        if entry["path"] == name:
            entry["bytes"], entry["sha256"] = len(data), file_digest(run.path / name)
    (run.path / "manifest.json").write_text(json.dumps(manifest))
    return adjudge.load_run(run.path)


def test_without_scores_the_run_keeps_partials_and_verify_says_not_recomputable(made, rows):
    whole, run = made(rows), made(rows, out="small", no_scores=True)
    assert not (run.path / "scores.parquet").exists()
    assert run.metrics["metrics"] == whole.metrics["metrics"]
    partials = pq.read_table(run.path / "partials.parquet").to_pylist()
    assert sum(item["tp"] for item in partials) == run.metrics["metrics"]["tp"]
    assert sum(item["rows"] for item in partials) == len(rows["t"])
    first = np.array(rows["score"][:200], dtype="<f8")
    assert partials[0]["scores_sha256"] == hashlib.sha256(first.tobytes()).hexdigest()
    with pytest.raises(VerificationFailed, match="not recomputable") as caught:
        adjudge.verify(run)
    assert len(caught.value.problems) == 1


def test_removed_split_finding_is_found(made, rows):
    rows["score"][400:600] = rows["score"][0:200]
    run = made(rows)
    report = json.loads((run.path / "leakage_report.json").read_bytes())
    for check in (*report["checks"], *report["recorded"]):
        if check["code"] == "split.disjoint":
            check |= {"outcome": "pass", "reasons": [], "severity": "INFO"}
    with pytest.raises(VerificationFailed, match=r"split\.disjoint does not say: flights v1 \(val\) and a \(test\)"):
        adjudge.verify(forge(run, "leakage_report.json", report))


@pytest.mark.parametrize("name", ["per_attack.csv", "catalog.json", "calibration.json", "splits.json"])
def test_artifact_that_was_taken_out_is_missed(made, name):
    run = made()
    (run.path / name).unlink()
    manifest = json.loads((run.path / "manifest.json").read_bytes())
    manifest["files"] = [entry for entry in manifest["files"] if entry["path"] != name]
    (run.path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(VerificationFailed, match=name):
        adjudge.verify(adjudge.load_run(run.path))


def reproduced(run, *options):
    return CliRunner().invoke(main, ["anomaly", "reproduce", str(run.path), *options], standalone_mode=False)


def last_line(run):
    return adjudge.load_run(run.path).metrics["checklist"][-1]


def test_reproduction_fills_the_checklist_and_the_run_still_holds(made):
    run = made()
    before = last_line(run)
    assert (before["outcome"], before["closed_by"]) == ("unknown", "adjudge anomaly reproduce RUN")
    assert reproduced(run).return_value == 0
    assert last_line(run)["outcome"] == "pass"
    assert "evaluation alone" in last_line(run)["why"]
    adjudge.verify(adjudge.load_run(run.path))
    kept = json.loads((run.path / "reproduction.json").read_bytes())
    assert all(row["first"] == row["again"] for row in kept["differences"])


def test_reproduction_that_moved_fills_the_checklist_with_a_failure(made, rows):
    run = made(rows)
    made({**rows, "score": [x + 0.2 * y for x, y in zip(rows["score"], rows["label"], strict=True)]}, out="other")
    assert reproduced(run).return_value == 1
    assert last_line(run)["outcome"] == "fail"
    adjudge.verify(adjudge.load_run(run.path))
    kept = json.loads((run.path / "reproduction.json").read_bytes())
    for row in kept["differences"]:
        row["again"] = row["first"]
    with pytest.raises(VerificationFailed, match=r"checklist\[7\]\.outcome is \"fail\", recomputed \"pass\""):
        adjudge.verify(forge(run, "reproduction.json", kept))


def test_reproduction_redraws_the_report(made, tmp_path):
    made()
    files = ["--scores", str(tmp_path / "scores.parquet"), "--splits", str(tmp_path / "splits.json")]
    words = ["anomaly", *files, "--resamples", "500", "--out", str(tmp_path / "page"), "--quiet"]
    assert CliRunner().invoke(main, words, standalone_mode=False).return_value == 0
    run = adjudge.load_run(tmp_path / "page")
    assert reproduced(run, "--quiet").return_value == 0
    assert CliRunner().invoke(main, ["verify", str(run.path)], standalone_mode=False).return_value == 0
