"""The run: the table of disagreements, gates, order and workers, verification."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adjudge.engine import split
from adjudge.engine.verify import verify
from adjudge.protocols.consistency.example import generate
from adjudge.protocols.consistency.record import panels
from adjudge.provenance.canonical import file_digest
from adjudge.runs.run import Run

HEADER = "qid\tscholar\tauditor\tfinal\twhy\tscholar_reason\tauditor_reason\n"


@pytest.fixture
def example(tmp_path):
    return str(generate(tmp_path / "data", seed=3, items=300))


def test_the_table_is_escaped_and_sorted_and_always_there(write, pair, run):
    row = pair("b\t1", "VALID", "REJECT")
    row["scholar"]["reason"] = "a\tb\nc\\d"
    path, metrics = run({"pairs": [write("p.jsonl", [row, pair("a", "REJECT", "VALID"), pair("c")])]})
    text = (path / "consistency_disagreements.tsv").read_text()
    assert text == (
        HEADER + "a\tREJECT\tVALID\tREJECT\tincoherent_pair\tstands in the source\tpolicy holds\n"
        "b\\t1\tVALID\tREJECT\tREJECT\tauditor_veto\ta\\tb\\nc\\\\d\tpolicy holds\n"
    )
    assert metrics["disagreements"] == 2
    empty, _ = run({"pairs": [write("q.jsonl", [pair("a")])]})
    assert (empty / "consistency_disagreements.tsv").read_text() == HEADER


def test_tsv_flag_makes_folders_and_replaces_a_stale_file(cli, write, pair, tmp_path):
    stale = tmp_path / "deep" / "er" / "x.tsv"
    path = write("p.jsonl", [pair("a", "VALID", "REJECT")])
    cli("consistency", "--pairs", path, "--quiet", "--out", "r1", "--tsv", str(stale))
    assert stale.read_text().count("\n") == 2
    cli("consistency", "--pairs", write("q.jsonl", [pair("a")]), "--quiet", "--out", "r2", "--tsv", str(stale))
    assert stale.read_text() == HEADER


def test_documented_keys_stand_flat_at_the_top(example, run):
    _, metrics = run({"pairs": [example]})
    for key in ("n", "percent_agreement", "kappa", "abstain_rate", "disagreements", "gates", "pass", "finals_by_why",
                "confusion", "unmatched"):  # fmt: skip
        assert key in metrics
    assert metrics["disagreements"] == round((1 - metrics["percent_agreement"]) * metrics["n"])
    assert sum(metrics["finals_by_why"].values()) == metrics["n"] == 300
    assert sum(count for row in metrics["confusion"].values() for count in row.values()) == 300


def test_kappa_equals_scikit_learn(example, run):
    from sklearn.metrics import cohen_kappa_score

    path, metrics = run({"pairs": [example]})
    samples = pq.read_table(path / "samples.parquet").to_pylist()
    oracle = cohen_kappa_score([row["scholar"] for row in samples], [row["auditor"] for row in samples])
    assert metrics["kappa"] == pytest.approx(oracle, abs=1e-12)


def test_gates_are_adjustable_under_both_spellings(cli, example):
    for flag, gate in (("--pa-gate", "pa"), ("--kappa_gate", "kappa"), ("--abstain_gate", "abstain")):
        result = cli(
            "consistency", "--pairs", example, "--json", "--out", gate, flag, "0.999" if gate != "abstain" else "0"
        )
        metrics = json.loads(result.stdout)
        assert metrics["gates"][gate]["outcome"] == "fail"
        assert metrics["pass"] is False
        assert result.return_value == 1
    loose = ("--pa_gate", "0.5", "--kappa-gate", "0.5", "--abstain-gate", "0.5")
    result = cli("consistency", "--pairs", example, "--json", "--out", "loose", *loose)
    assert result.return_value == 0
    assert set(json.loads(result.stdout)["gates"]) == {"pa", "kappa", "abstain", "paired", "red_flags"}


def test_a_policy_that_ships_a_red_flag_fails_its_gate(write, pair, run, tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_text("policy: lax\nrows:\n  - {final: VALID, why: ship_it}\n")
    path = write("p.jsonl", [pair("a", flags={"provenance_violation": True}), pair("b", "REJECT", "REJECT")])
    _, metrics = run({"pairs": [path], "policy": str(mine)})
    assert metrics["finals_by_why"] == {"ship_it": 2}
    assert metrics["gates"]["red_flags"]["outcome"] == "fail"
    assert metrics["gates"]["red_flags"]["observed"] == 1


def test_the_fix_list_is_ordered(write, pair, run):
    bad_token = pair("t", "NOT_IN_CONTEXT", "NOT_IN_CONTEXT", answer_json={"claim": "nope"})
    outside = pair("o", answer_json={"claim": "c", "citations": ["x"]}, retrieved_ids=[])
    rows = [outside, bad_token, pair("f", flags={"constraints_mismatch": True})]
    _, metrics = run({"pairs": [write("p.jsonl", rows)]})
    assert [(entry["kind"], entry["examples"]) for entry in metrics["fix_list"]] == [
        ("hard_flags", ["f"]),
        ("template_or_schema_drift", ["t"]),
        ("retriever_recall", ["o"]),
    ]


def test_row_order_files_and_workers_change_nothing_to_the_byte(tmp_path, run, monkeypatch):
    monkeypatch.setattr(split, "ROWS_A_PARTITION", 6_000)
    source = generate(tmp_path / "data", seed=1, items=8_000)
    lines = source.read_text().splitlines(keepends=True)
    random.Random(0).shuffle(lines)  # noqa: S311 -- an order, no secret
    (tmp_path / "a").mkdir()
    one, two = tmp_path / "a" / "one.jsonl", tmp_path / "a" / "two.jsonl"
    one.write_text("".join(lines[:1500]))
    two.write_text("".join(lines[1500:]))
    first, _ = run({"pairs": [str(source)]})
    second, _ = run({"pairs": [str(one), str(two)]}, workers=2)
    names = sorted(p.relative_to(first).as_posix() for p in first.rglob("*") if p.is_file())
    assert len([name for name in names if name.startswith("evidence/")]) == 2
    for name in names:
        if name != "manifest.json":
            assert (first / name).read_bytes() == (second / name).read_bytes(), name


def rewrite_manifest(path):
    manifest = json.loads((path / "manifest.json").read_text())
    for entry in manifest["files"]:
        file = path / entry["path"]
        entry["bytes"], entry["sha256"] = file.stat().st_size, file_digest(file)
    (path / "manifest.json").write_text(json.dumps(manifest))


def tamper_label(path):
    file = pq.ParquetFile(path / "samples.parquet")
    table = file.read()
    labels = table.column("auditor").to_pylist()
    labels[0] = "REJECT" if labels[0] == "VALID" else "VALID"
    column = pa.array(labels).dictionary_encode().cast(table.schema.field("auditor").type)
    table = table.set_column(table.schema.get_field_index("auditor"), "auditor", column)
    pq.write_table(table, path / "samples.parquet", row_group_size=max(1, table.num_rows))


def tamper_evidence(path):
    file = next((path / "evidence").iterdir())
    table = pq.read_table(file)
    outcomes = table.column("outcome").to_pylist()
    outcomes[-1] = "fail"
    column = pa.array(outcomes).dictionary_encode().cast(table.schema.field("outcome").type)
    table = table.set_column(table.schema.get_field_index("outcome"), "outcome", column)
    pq.write_table(table, file, row_group_size=table.num_rows)


def tamper_tsv(path):
    file = path / "consistency_disagreements.tsv"
    file.write_text(file.read_text().replace("auditor_veto", "auditor_ok"))


def tamper_metrics(path):
    file = path / "metrics.json"
    file.write_text(
        file.read_text().replace('"pass": false', '"pass": true').replace('"disagreements": ', '"disagreements": 1')
    )


@pytest.mark.parametrize("tamper", [tamper_label, tamper_evidence, tamper_tsv, tamper_metrics])
def test_verify_holds_and_fails_after_tampering_though_every_digest_fits(example, run, tamper):
    path, _ = run({"pairs": [example]})
    assert verify(Run(path)).problems == []
    tamper(path)
    assert verify(Run(path)).problems != []
    rewrite_manifest(path)
    assert verify(Run(path)).problems != []


def test_limit_cuts_the_pairs(cli, example):
    result = cli("consistency", "--pairs", example, "--json", "--out", "few", "--limit", "10")
    assert json.loads(result.stdout)["n"] == 10


def test_a_long_query_prints_no_progress_on_standard_output(example, run):
    path, _ = run({"pairs": [example]})
    # DuckDB takes `python -c` for an interactive session, in which it shows a bar on standard output.
    program = (
        "import sys; from pathlib import Path; from adjudge.runs.query import query; from adjudge.runs.run import Run; "
        "print(query(Run(Path(sys.argv[1])), \"select current_setting('enable_progress_bar')\")[1][0][0])"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_declared_flag_stands_on_the_page_of_a_sample(run, write, pair):
    folder, _ = run({"pairs": [write("p.jsonl", [pair("a", flags={"toxic": True})])], "flag": ["toxic"]})
    _, facts = panels(Run(folder))
    assert facts.columns["flag toxic"] == "toxic"
    assert Run(folder).columns(["toxic"]).column(0).to_pylist() == [True]
