"""Every row of "Cases that must come out right"."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from adjudge.errors import InputError, OutputError
from adjudge.protocols.consistency.policy import LABELS

V, N, R, A = LABELS
ANSWER = {"claim": "It lasts 30 days.", "citations": ["d1"], "constraints_echo": {}}


def test_agreed_valid_with_provenance_violation_is_rejected_and_not_shipped(write, pair, run):
    flagged = pair("bad", answer_json=ANSWER, retrieved_ids=["d1"], flags={"provenance_violation": True})
    rows = [flagged] + [pair(f"q{i}", R if i % 2 else V, R if i % 2 else V) for i in range(20)]
    path, metrics = run({"pairs": [write("pairs.jsonl", rows)]})
    assert metrics["finals_by_why"]["hard_flag"] == 1
    assert metrics["agreed_valid"]["rejected_by_red_flag"] == 1
    assert metrics["agreed_valid"]["examples"] == ["bad"]
    assert metrics["gates"]["red_flags"]["outcome"] == "pass"
    assert metrics["gates"]["red_flags"]["observed"] == 0
    samples = pq.read_table(path / "samples.parquet").to_pylist()
    row = next(row for row in samples if row["sample"] == "bad")
    assert (row["verdict"], row["why"], row["bucket"]) == (R, "hard_flag", "failed")


def test_full_agreement_on_valid_has_no_kappa_but_ac1_of_one(write, pair, run):
    _, metrics = run({"pairs": [write("pairs.jsonl", [pair(i) for i in range(50)])]})
    assert metrics["percent_agreement"] == 1.0
    assert metrics["kappa"] is None
    assert metrics["metrics"]["ac1"] == 1.0
    gate = metrics["gates"]["kappa"]
    assert gate["outcome"] == "unknown"
    assert "1 − Pe = 0" in gate["why"]
    assert metrics["pass"] is False


def test_an_undefined_kappa_passes_only_when_asked_and_never_without_items(write, pair, run):
    agreed = write("agreed.jsonl", [pair(i, flags={"provenance_violation": False}) for i in range(50)])
    _, metrics = run({"pairs": [agreed], "kappa_undefined": "pass"})
    assert metrics["gates"]["kappa"]["outcome"] == "pass"
    assert metrics["pass"] is True
    scholar, auditor = write("s.jsonl", [{"qid": 1, "label": V}]), write("a.jsonl", [{"qid": 2, "label": V}])
    _, none = run({"scholar": [scholar], "auditor": [auditor], "kappa_undefined": "pass"})
    assert none["n"] == 0
    assert none["percent_agreement"] is None
    assert none["gates"]["kappa"]["outcome"] == "unknown"


def test_auditor_that_always_abstains_has_abstain_rate_one(write, pair, run):
    _, metrics = run({"pairs": [write("pairs.jsonl", [pair(i, auditor=A) for i in range(9)])]})
    assert metrics["abstain_rate"] == 1.0
    assert metrics["metrics"]["scholar_abstain_rate"] == 0.0
    assert metrics["metrics"]["auditor_abstain_rate"] == 1.0


@pytest.mark.parametrize("label", ["valid", "VALID ", "Valid", "\tVALID"])
@pytest.mark.parametrize("agent", ["scholar", "auditor"])
def test_near_miss_label_is_an_error_with_line_and_suggestion(write, pair, run, label, agent):
    path = write("pairs.jsonl", [pair(1), pair(2), pair(3, **{agent: label})])
    with pytest.raises(InputError, match=r"pairs.jsonl:3: " + agent + r" label .*Did you mean 'VALID'\?"):
        run({"pairs": [path]})


@pytest.mark.parametrize("flags", [{}, {"flags": None}, {"flags": {}}, {"flags": {"provenance_violation": None}}])
@pytest.mark.parametrize("qid", ["q", 7, -1])
def test_null_flags_absent_flags_and_integer_qids_are_fine(write, pair, run, flags, qid):
    path, metrics = run({"pairs": [write("pairs.jsonl", [pair(qid, **flags)])]})
    assert metrics["finals_by_why"]["auditor_ok"] == 1
    assert pq.read_table(path / "samples.parquet").column("sample").to_pylist() == [str(qid)]


def test_three_qids_in_each_file_two_shared(write, run):
    scholar = write("s.jsonl", [{"qid": q, "label": V, "reason": "r"} for q in ("a", "b", "c")])
    auditor = write("a.jsonl", [{"qid": q, "label": V, "reason": "r"} for q in ("d", "c", "b")])
    answers = write("x.jsonl", [{"qid": "b", "flags": {"provenance_violation": True}}, {"qid": "z"}])
    _, metrics = run({"scholar": [scholar], "auditor": [auditor], "answers": [answers]})
    assert metrics["n"] == 2
    assert metrics["unmatched"]["scholar"] == {"count": 1, "listed": ["a"], "not_listed": 0}
    assert metrics["unmatched"]["auditor"] == {"count": 1, "listed": ["d"], "not_listed": 0}
    assert metrics["unmatched"]["answers"] == {"count": 1, "listed": ["z"], "not_listed": 0}
    assert metrics["finals_by_why"]["hard_flag"] == 1
    assert metrics["buckets"]["all"] | {"n": 5} == metrics["buckets"]["all"]


def test_without_answers_the_report_says_so_loudly_and_the_rules_are_not_applicable(write, run):
    scholar = write("s.jsonl", [{"qid": 1, "label": V}])
    auditor = write("a.jsonl", [{"qid": 1, "label": V}])
    _, metrics = run({"scholar": [scholar], "auditor": [auditor]})
    assert any("NONE OF THE ITEMS HAS AN ANSWER OR FLAGS" in note for note in metrics["notes"])
    for rule in ("red_flag.provenance_violation", "red_flag.constraints_mismatch", "citation.out_of_scope"):
        assert metrics["hygiene"][rule]["not_applicable"] == 1


def test_no_runs_folder_is_created(cli, write, pair, tmp_path):
    path = write("pairs.jsonl", [pair(1)])
    result = cli("consistency", "--pairs", path, "--quiet")
    assert result.return_value == 1
    assert [run.name.startswith("consistency-") for run in (tmp_path / "runs").iterdir()] == [True]


@pytest.mark.skipif(
    os.geteuid() == 0, reason="root may write everywhere; the next test covers it with a file in the way"
)
def test_read_only_folder_is_a_clear_error(run, write, pair, tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OutputError, match="cannot write to"):
            run({"pairs": ["nowhere.jsonl"]})
    finally:
        tmp_path.chmod(0o700)


def test_an_output_folder_that_cannot_be_made_is_refused_before_the_work_starts(cli, tmp_path):
    (tmp_path / "blocked").write_text("a file, no folder")
    # The input does not exist: were it looked at first, the error would be about it.
    result = cli("consistency", "--pairs", "absent.jsonl", "--out", "blocked/run", "--quiet")
    assert isinstance(result.exception, OutputError)
    assert "cannot write to blocked" in str(result.exception)
    result = cli("consistency", "--pairs", "absent.jsonl", "--tsv", "blocked/x.tsv", "--quiet")
    assert isinstance(result.exception, OutputError)


def test_every_combination_of_labels_flags_and_citation_scope(write, run):
    scopes = {
        "none": {"answer_json": {"claim": "c", "citations": []}, "retrieved_ids": ["d1"]},
        "inside": {"answer_json": {"claim": "c", "citations": ["d1"]}, "retrieved_ids": ["d1", "d2"]},
        "outside": {"answer_json": {"claim": "c", "citations": ["d1", "d9"]}, "retrieved_ids": ["d1"]},
        "unverifiable": {"answer_json": {"claim": "c", "citations": ["d1"]}},
    }
    flags = [(False, False), (True, False), (False, True), (True, True)]
    rows, expected = [], {}
    for s, a, (p, c), (scope, more) in itertools.product(LABELS, LABELS, flags, scopes.items()):
        qid = f"{s}|{a}|{p}|{c}|{scope}"
        rows.append(
            {
                "qid": qid,
                "scholar": {"label": s, "reason": "one"},
                "auditor": {"label": a, "reason": "two"},
                "flags": {"provenance_violation": p, "constraints_mismatch": c},
                **more,
            }
        )
        if p or c:
            expected[qid] = (R, "hard_flag")
        elif scope == "outside":
            expected[qid] = (R, "citation_out_of_scope")
        elif scope == "unverifiable":
            expected[qid] = (R, "citations_unverifiable")
        elif a != V:
            expected[qid] = (R, "auditor_veto")
        elif s in {V, N}:
            expected[qid] = (V, "auditor_ok")
        else:
            expected[qid] = (R, "incoherent_pair")
    path, metrics = run({"pairs": [write("pairs.jsonl", rows)]})
    samples = pq.read_table(path / "samples.parquet").to_pylist()
    assert {row["sample"]: (row["verdict"], row["why"]) for row in samples} == expected
    assert sum(metrics["finals_by_why"].values()) == metrics["n"] == 256
    assert all(row["cites"].strip(b"\x00") for row in samples)


def test_exit_code_and_json_agree_in_a_real_process(write, pair, tmp_path):
    clean = {"flags": {"provenance_violation": False, "constraints_mismatch": False}}
    rows = [pair(i, V if i % 3 else R, V if i % 3 else R, **clean) for i in range(60)]
    failing = write("failing.jsonl", [*rows, *(pair(f"x{i}", V, R) for i in range(30))])
    passing = write("passing.jsonl", rows)
    for path, code in ((failing, 1), (passing, 0)):
        words = [
            sys.executable,
            "-c",
            "from adjudge.cli.main import run; run()",
            "consistency",
            "--pairs",
            path,
            "--json",
            "--out",
        ]
        done = subprocess.run([*words, str(tmp_path / f"run{code}")], capture_output=True, check=False)
        assert done.returncode == code, done.stderr
        assert json.loads(done.stdout)["pass"] is (code == 0)
        assert done.stdout == (tmp_path / f"run{code}" / "metrics.json").read_bytes()
        lines = [line for line in done.stderr.decode().splitlines() if line.startswith("gate ")]
        failed = [name for name, gate in json.loads(done.stdout)["gates"].items() if gate["outcome"] != "pass"]
        assert [line.split()[1].rstrip(":") for line in lines] == failed
        assert all("≥" in line for line in lines)
