"""What must not slip through: labels, flags and gates that look checked and are not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from adjudge.engine.verify import verify
from adjudge.errors import ConfigError, InputError
from adjudge.report.markdown import markdown
from adjudge.report.text import summary
from adjudge.runs.run import Run

CLEAN = {"flags": {"provenance_violation": False, "constraints_mismatch": False}}


def samples(path):
    return {row["sample"]: row for row in pq.read_table(path / "samples.parquet").to_pylist()}


def test_an_unknown_label_never_advises_to_switch_the_policy_off(write, pair, run, cli):
    path = write("pairs.jsonl", [pair(i, flags={"provenance_violation": True}) for i in range(20)] + [pair("x", "OK")])
    with pytest.raises(InputError) as error:
        run({"pairs": [path]})
    assert "--map OK=…" in str(error.value)
    assert "--labels" not in str(error.value)
    refused = cli("consistency", "--pairs", path, "--labels", "VALID,OK", "--policy", "strict", "--out", "never")
    assert isinstance(refused.exception, ConfigError)
    result = cli("consistency", "--pairs", path, "--map", "OK=VALID", "--out", "mapped", "--json")
    metrics = json.loads(result.stdout)
    assert metrics["finals_by_why"]["hard_flag"] == 20
    assert metrics["finals_by_why"]["auditor_ok"] == 1


@pytest.mark.parametrize("word, label", [("OK", "VALID"), ("a=b", "REJECT"), ("valid", "VALID")])
def test_words_are_mapped_to_labels_and_votes_too(write, pair, run, word, label):
    rows = [pair("q", word, "VALID", **CLEAN), pair("v", "VALID", "VALID", **CLEAN)]
    rows[1]["scholar"] = {"votes": [word, word, "ABSTAIN"]}
    path, _ = run({"pairs": [write("pairs.jsonl", rows)], "map": {word: label}})
    assert {row["scholar"] for row in samples(path).values()} == {label}
    assert verify(Run(path)).problems == []


@pytest.mark.parametrize("value", [True, False])
def test_a_misspelled_flag_is_refused_with_the_nearest(write, pair, run, value):
    path = write("pairs.jsonl", [pair(1), pair(2, flags={"provenance_violations": value})])
    expected = r"pairs.jsonl:2: flag 'provenance_violations' is not one of .*Did you mean 'provenance_violation'\?"
    with pytest.raises(InputError, match=expected):
        run({"pairs": [path]})
    _, metrics = run({"pairs": [path], "on_bad_row": "skip"})
    assert metrics["finals_by_why"]["auditor_ok"] == 1
    assert metrics["bad_rows"]["count"] == 1


def test_a_declared_flag_rejects_as_the_others_do(write, pair, run):
    rows = [pair(name, flags={"toxic": raised}) for name, raised in (("bad", True), ("good", False))]
    path, metrics = run({"pairs": [write("pairs.jsonl", rows)], "flag": ["toxic"]})
    assert {name: row["why"] for name, row in samples(path).items()} == {"bad": "hard_flag", "good": "auditor_ok"}
    assert samples(path)["bad"]["toxic"] is True
    assert metrics["hygiene"]["red_flag.toxic"]["fail"] == 1
    assert metrics["gates"]["red_flags"]["outcome"] == "pass"
    assert verify(Run(path)).problems == []


def test_few_joined_items_do_not_pass(write, run):
    scholar = write("s.jsonl", [{"qid": i, "label": "VALID" if i % 2 else "REJECT"} for i in range(1000)])
    auditor = write("a.jsonl", [{"qid": i, "label": "VALID" if i % 2 else "REJECT"} for i in range(990, 1000)])
    path, metrics = run({"scholar": [scholar], "auditor": [auditor]})
    assert metrics["n"] == 10
    assert metrics["metrics"]["paired_share"] == 0.01
    assert metrics["gates"]["paired"]["outcome"] == "fail"
    assert metrics["pass"] is False
    _, loose = run({"scholar": [scholar], "auditor": [auditor], "paired_gate": 0.01})
    assert loose["gates"]["paired"]["outcome"] == "pass"
    assert "paired share ≥ 99 %" in summary(Run(path))


def test_pairs_without_a_flag_on_any_item_are_unknown_which_fails(write, pair, run):
    rows = [pair(i, *(("VALID", "VALID") if i % 2 else ("REJECT", "REJECT"))) for i in range(40)]
    path, metrics = run({"pairs": [write("pairs.jsonl", rows)]})
    gate = metrics["gates"]["red_flags"]
    assert (gate["outcome"], gate["observed"]) == ("unknown", None)
    assert "no item carries a flag" in gate["why"]
    assert metrics["pass"] is False
    assert "no item carries a flag" in summary(Run(path))
    rows[0] |= CLEAN
    _, one = run({"pairs": [write("pairs.jsonl", rows)]})
    assert one["gates"]["red_flags"]["outcome"] == "pass"


def test_answers_without_flags_are_unknown_and_labels_alone_say_that_flags_are_not_checked(write, run):
    labels = [{"qid": i, "label": "VALID" if i % 2 else "REJECT"} for i in range(40)]
    files = {"scholar": [write("s.jsonl", labels)], "auditor": [write("a.jsonl", labels)]}
    answers = write("x.jsonl", [{"qid": i, "answer_json": {"claim": "c"}} for i in range(40)])
    _, with_answers = run({**files, "answers": [answers]})
    assert with_answers["gates"]["red_flags"]["outcome"] == "unknown"
    path, alone = run(files)
    assert "red_flags" not in alone["gates"]
    assert alone["pass"] is True
    assert "every gate passed; flags not checked" in summary(Run(path))
    assert "flags not checked" in markdown(Run(path))


@pytest.mark.parametrize(
    "constraints, echo, echoed",
    [
        (["a", "b"], ["b", "a"], True),
        (["a", "b"], ["b", "a", "a"], True),
        (["a", "b"], ["a"], False),
        ({"k": ["x", "y"]}, {"k": ["y", "x"]}, True),
        ({"k": [{"a": 1}, 2]}, {"k": [2, {"a": 1}]}, True),
        ([1], ["1"], False),
        (["a"], None, False),
    ],
)
def test_constraints_are_compared_as_sets(write, pair, run, constraints, echo, echoed):
    row = pair("q", constraints=constraints, answer_json={"claim": "c", "constraints_echo": echo})
    path, _ = run({"pairs": [write("pairs.jsonl", [row])]})
    assert samples(path)["q"]["constraints_echoed"] is echoed


def test_a_table_with_pairs_as_columns(tmp_path, run):
    table = tmp_path / "pairs.csv"
    table.write_text(
        "qid,scholar,auditor,scholar_reason,claim,citations,retrieved_ids,provenance_violation,constraints_mismatch\n"
        "1,VALID,VALID,fine,It lasts.,d1;d2,d1|d2|d3,false,\n"
        '2,VALID,VALID,,It lasts.,"[""d1"", ""d9""]",d1,false,\n'
        "3,VALID,VALID,,,,,true,\n"
        "4,NOT_IN_CONTEXT,REJECT,silent,not in context,,,0,1\n",
        encoding="utf-8",
    )
    path, metrics = run({"pairs": [str(table)]})
    rows = samples(path)
    assert {name: row["why"] for name, row in rows.items()} == {
        "1": "auditor_ok",
        "2": "citation_out_of_scope",
        "3": "hard_flag",
        "4": "hard_flag",
    }
    assert rows["4"]["scholar_reason"] == "silent"
    assert rows["1"]["constraints_mismatch"] is None
    assert rows["4"]["claim"] == "refusal_token"
    assert not [note for note in metrics["notes"] if "nothing reads" in note]


def test_a_table_with_dots_for_nested_keys(tmp_path, run):
    table = tmp_path / "pairs.csv"
    table.write_text(
        "qid,scholar.label,scholar.temperature,scholar.model,auditor.label,flags.provenance_violation\n"
        "1,VALID,0,m,VALID,true\n2,VALID,0.7,m,REJECT,\n",
        encoding="utf-8",
    )
    path, _ = run({"pairs": [str(table)]})
    rows = samples(path)
    assert (rows["1"]["why"], rows["2"]["why"]) == ("hard_flag", "auditor_veto")
    assert (rows["1"]["scholar_seeding"], rows["2"]["scholar_seeding"]) == ("stable", "unstable")


def test_the_first_screen_says_what_ships(write, pair, run):
    answer = {"answer_json": {"claim": "c", "citations": ["d9"]}, "retrieved_ids": ["d1"]}
    rows = [
        pair("cited", **CLEAN, **answer),
        pair("flagged", flags={"provenance_violation": True}),
        pair("recall", "NOT_IN_CONTEXT", "VALID", **CLEAN),
        pair("plain", "VALID", "REJECT", **CLEAN),
        pair("both", "VALID", "REJECT", flags={"constraints_mismatch": True}),
        *(pair(f"q{i}", **CLEAN) for i in range(5)),
    ]
    rows[3]["auditor"]["reason"] = "ask jo.doe@example.org about it"
    path, metrics = run({"pairs": [write("pairs.jsonl", rows)]})
    ships, dangerous, differ, hygiene = metrics["sections"]
    assert ships["title"] == "What ships: 6 of 10 items"
    assert sum(row[3] for row in ships["rows"]) == 10
    decided = [(row[0], row[1], row[3]) for row in ships["rows"]]
    assert decided[:2] == [("VALID", "auditor_ok", 6), ("REJECT", "hard_flag", 2)]
    assert {row[1]: row[5] for row in ships["rows"]}["hard_flag"] == 1  # of the two, one that both call VALID
    assert [row[:2] for row in dangerous["rows"]] == [["flagged", "hard_flag"], ["cited", "citation_out_of_scope"]]
    assert dangerous["rows"][0][2] == "red_flag.provenance_violation"
    assert [(row[0], row[1]) for row in differ["rows"]] == [
        ("hard flags", "both"),
        ("retriever recall", "recall"),
        ("labels", "plain"),
    ]
    assert differ["rows"][2][-1] == "ask [e-mail] about it"
    assert [row[1:4] for row in hygiene["rows"] if row[1] == "reason.personal_data"] == [
        ["reason.personal_data", 1, 20]
    ]
    text = summary(Run(path))
    assert text.index("What ships") < text.index("Both say VALID") < text.index("Gates")
    assert "percent agreement ≥ 90 %" in text
    page = markdown(Run(path))
    assert page.index("What ships") < page.index("must hold")
    assert verify(Run(path)).problems == []


def test_the_recipe_for_a_plain_shell_works_under_bash_e(write, pair, run, tmp_path):
    path, _ = run({"pairs": [write("pairs.jsonl", [pair(i, **CLEAN) for i in range(5)])]})
    page = (Path(__file__).parents[2] / "docs" / "ci.md").read_text(encoding="utf-8")
    recipe = page[page.index("## Plain shell") :].split("```sh\n")[1].split("```")[0]
    (tmp_path / "gates.yaml").write_text("gates:\n  - percent_agreement >= 2\n")
    recipe = recipe.replace("gate run", f"gate {path}").replace(" --baseline baseline.json", "")
    command = f"adjudge() {{ {sys.executable} -c 'from adjudge.cli.main import run; run()' \"$@\"; }}\n{recipe}"
    done = subprocess.run(["bash", "-e", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "worse, or a gate failed"), done.stderr


def test_query_prints_one_json_document_or_lines(write, pair, run, cli):
    path, _ = run({"pairs": [write("pairs.jsonl", [pair("a", **CLEAN), pair("b", **CLEAN)])]})
    sql = "select sample, why from samples order by sample"
    expected = [{"sample": name, "why": "auditor_ok"} for name in "ab"]
    assert json.loads(cli("query", str(path), sql, "--format", "json").stdout) == expected
    assert json.loads(cli("query", str(path), f"{sql} limit 0", "--format", "json").stdout) == []
    lines = cli("query", str(path), sql, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == expected
