"""`verify` holds for an honest run and names what was changed, even when every digest is rewritten to fit."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adjudge
from adjudge.provenance.canonical import file_digest


@pytest.fixture(scope="module")
def honest(config, tmp_path_factory):
    return adjudge.evaluate("flight", config, report=False, out=tmp_path_factory.mktemp("verify") / "run").path


@pytest.fixture
def run(honest, tmp_path):
    return shutil.copytree(honest, tmp_path / "run")


def problems(path):
    with pytest.raises(adjudge.VerificationFailed) as caught:
        adjudge.verify(path)
    return caught.value.problems


def rewrite_digests(path):
    """What a careful forger does: every digest in the manifest fits the files again."""
    manifest = json.loads((path / "manifest.json").read_text())
    for entry in manifest["files"]:
        file = path / entry["path"]
        entry |= {"bytes": file.stat().st_size, "sha256": file_digest(file)}
    (path / "manifest.json").write_text(json.dumps(manifest))


def change_evidence(path, change):
    file = next(iter(sorted((path / "evidence").iterdir())))
    table = pq.read_table(file)
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    change(columns)
    pq.write_table(pa.table(columns, schema=table.schema), file, row_group_size=table.num_rows)
    rewrite_digests(path)


def test_an_honest_run_holds(honest):
    adjudge.verify(honest)


def test_one_byte_of_the_evidence_is_noticed_and_the_file_named(run):
    file = run / "evidence" / "part-00000.parquet"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))
    assert "evidence/part-00000.parquet: its content is not the one in the manifest" in problems(run)


def test_one_value_of_the_metrics_is_noticed_and_the_number_named_even_with_new_digests(run):
    file = run / "metrics.json"
    metrics = json.loads(file.read_text())
    metrics["estimates"][0]["value"] += 0.01
    file.write_text(json.dumps(metrics, indent=2))
    rewrite_digests(run)
    (problem,) = problems(run)
    assert problem.startswith("metrics.json: estimates[eligibility_rate, model=")
    assert "recomputed" in problem


def first(columns, outcome):
    return columns["outcome"].index(outcome)


def flip_outcome(columns):
    at = next(
        k
        for k, (o, r) in enumerate(zip(columns["outcome"], columns["rule"], strict=True))
        if o == "fail" and r.startswith(("range", "jump", "cross", "safety"))
    )
    columns["outcome"][at], columns["severity"][at] = "pass", "INFO"


def soften(columns):
    at = next(k for k, s in enumerate(columns["severity"]) if s == "CRITICAL")
    columns["severity"][at] = "WARNING"


def shift_observed(columns):
    at = next(
        k
        for k, (v, r) in enumerate(zip(columns["observed"], columns["rule"], strict=True))
        if v is not None and r.startswith("range")
    )
    columns["observed"][at] = float(np.nextafter(columns["observed"][at], 1e9))


def rename_rule(columns):
    at = next(
        k
        for k, (r, o) in enumerate(zip(columns["rule"], columns["outcome"], strict=True))
        if r == "numeric_validity.missing_field" and o == "fail"
    )
    columns["rule"][at] = "numeric_validity.invalid_value"


def not_applicable(columns):
    at = first(columns, "fail")
    columns["outcome"][at], columns["severity"][at] = "not_applicable", "INFO"


@pytest.mark.parametrize("change", [flip_outcome, soften, shift_observed, rename_rule, not_applicable])
def test_altered_evidence_fails_even_when_every_digest_and_the_manifest_fit(run, change):
    change_evidence(run, change)
    found = problems(run)
    assert any("evidence/part-00000.parquet" in text or "metrics.json" in text for text in found), found
    assert not any("not the one in the manifest" in text for text in found)


def test_an_altered_sample_fails_even_when_every_digest_fits(run):
    file = run / "samples.parquet"
    table = pq.read_table(file)
    groups = [pq.ParquetFile(file).metadata.row_group(k).num_rows for k in range(pq.ParquetFile(file).num_row_groups)]
    verdicts = table.column("verdict").to_pylist()
    verdicts[verdicts.index("ineligible")] = "eligible"
    column = pa.array(verdicts).dictionary_encode().cast(table.schema.field("verdict").type)
    table = table.set_column(table.column_names.index("verdict"), table.schema.field("verdict"), column)
    with pq.ParquetWriter(file, table.schema) as writer:
        start = 0
        for rows in groups:
            writer.write_table(table.slice(start, rows))
            start += rows
    rewrite_digests(run)
    assert "samples.parquet: verdict is not what the evidence gives" in problems(run)


def test_an_altered_limit_in_the_configuration_fails(run):
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["config"]["library"]["fields"]["Roll (deg)"]["jump"] = 19.0
    (run / "manifest.json").write_text(json.dumps(manifest))
    found = problems(run)
    assert any(text.startswith("rules.json") for text in found)
    assert any(
        "digest constraint_library" in text or "metrics.json: digests.constraint_library" in text for text in found
    )


def test_missing_and_foreign_files_are_named(run):
    (run / "charts.json").unlink()
    (run / "notes.txt").write_text("hello")
    found = problems(run)
    assert "charts.json: is missing" in found
    assert "notes.txt: is not listed in the manifest" in found


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(adjudge.RunError, match="is not a run"):
        adjudge.verify(tmp_path)
    with pytest.raises(adjudge.RunError, match="there is no such folder"):
        adjudge.load_run(tmp_path / "nowhere")
