"""`adjudge describe` and the user's own keys: what a file is, who reads it, and that nobody has to rewrite it."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROWS = [{"question_id": k, "who": "m", "answer": {"text": "x"}, "Extra": 1.5 if k else None} for k in range(3)]


@pytest.fixture
def folder(tmp_path, write_lines):
    write_lines(tmp_path / "rows.jsonl", ROWS)
    (tmp_path / "rows.json").write_text(json.dumps(ROWS))
    (tmp_path / "inside.json").write_text(json.dumps({"run": 7, "details": ROWS}, indent=1))
    (tmp_path / "rows.csv").write_text("question_id;who\n1;m\n2;n\n")
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress((tmp_path / "rows.jsonl").read_bytes()))
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    return tmp_path


@pytest.mark.parametrize(
    "name, words",
    [
        ("rows.jsonl", "JSON Lines, 3 records"),
        ("rows.json", "a JSON list, 3 records"),
        ("inside.json", "one JSON document, 1 records"),
        ("rows.csv", "CSV, 2 records"),
        ("rows.jsonl.gz", "JSON Lines (compressed), 3 records"),
        ("rows.parquet", "Parquet, 3 records"),
    ],
)
def test_what_a_file_is(adjudge_cli, folder, name, words):
    done = adjudge_cli("describe", folder / name)
    assert (done.returncode, done.stderr) == (0, "")
    assert words in done.stdout


def test_keys_with_types_shares_and_examples(adjudge_cli, folder):
    (document,) = json.loads(adjudge_cli("describe", folder / "rows.jsonl", "--json").stdout)
    keys = {key["key"]: (key["records"], key["types"], key["example"]) for key in document["keys"]}
    assert keys == {
        "question_id": (3, {"whole number": 3}, "0"),
        "who": (3, {"text": 3}, '"m"'),
        "answer": (3, {"object": 3}, '{"text":"x"}'),
        "answer.text": (3, {"text": 3}, '"x"'),
        "Extra": (3, {"null": 1, "number": 2}, "1.5"),
    }
    assert (document["records"], document["read_by"]) == (3, [])


def test_the_command_that_reads_it_and_what_it_would_ignore(adjudge_cli, folder):
    done = adjudge_cli("describe", folder / "rows.jsonl", "--column", "id=question_id", "--column", "response=answer")
    assert f"Read by  adjudge flight --task S1 --outputs {folder / 'rows.jsonl'}" in done.stdout
    assert "ignored: Extra (66.7 %), who (100 %)" in done.stdout
    without = adjudge_cli("describe", folder / "rows.jsonl").stdout
    assert "No command reads this as it is" in without
    assert "Rules of your own can judge it: adjudge check init " in without


def test_records_inside_one_object_are_pointed_at(adjudge_cli, folder):
    done = adjudge_cli("describe", folder / "inside.json")
    assert "3 objects stand under details: --json-path '$.details' reads them as records" in done.stdout
    assert "3 records" in adjudge_cli("describe", folder / "inside.json", "--json-path", "$.details").stdout


@pytest.mark.parametrize(
    "words, message",
    [
        (["missing.jsonl"], "missing.jsonl: there is no such file."),
        (["empty.jsonl"], "empty.jsonl: is empty; expected one record a line"),
        (["rows.jsonl", "--column", "id"], "--column 'id' is not OURS=THEIRS, such as id=question_id"),
        (["rows.jsonl", "--column", "id=nr"], "--column id=nr: no record of "),
        (["rows.jsonl", "--column", "id=a", "--column", "id=b"], "--column 'id' is given twice"),
        (
            ["inside.json", "--json-path", "$.rows"],
            "has no 'rows' on the way $.rows (--json-path); it has run, details",
        ),
    ],
)
def test_what_cannot_be_described_is_one_sentence(adjudge_cli, folder, words, message):
    (folder / "empty.jsonl").write_bytes(b"")
    done = adjudge_cli("describe", folder / words[0], *words[1:])
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_users_own_keys_judge_as_ours_would(adjudge_cli, tmp_path, write_lines):
    records = [
        {"id": f"s{k}", "label": "fake" if k % 2 else "real", "prediction": "fake", "confidence": 0.8} for k in range(8)
    ]
    theirs = [
        {"key": row["id"], "truth": {"class": row["label"]}, "says": row["prediction"], "p": row["confidence"]}
        for row in records
    ]
    write_lines(tmp_path / "ours.jsonl", records)
    (tmp_path / "theirs.json").write_text(json.dumps({"details": theirs}))
    first = adjudge_cli(
        "triage", "--results", tmp_path / "ours.jsonl", "--no-report", "--json", "--out", tmp_path / "a"
    )
    columns = ("id=key", "label=truth.class", "prediction=says", "confidence=p")
    flags = [word for column in columns for word in ("--column", column)]
    second = adjudge_cli(
        *("triage", "--results", tmp_path / "theirs.json", "--json-path", "$.details", *flags),
        *("--no-report", "--json", "--out", tmp_path / "b"),
    )
    assert (second.returncode, second.stderr) == (0, "")
    ours, other = json.loads(first.stdout), json.loads(second.stdout)
    assert other["estimates"] == ours["estimates"]
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    assert manifest["config"]["columns"] == dict(column.split("=") for column in columns)
    assert manifest["config"]["json_path"] == "$.details"
    assert manifest["notes"] == other["notes"]  # every key was read
    wrong = adjudge_cli("triage", "--results", tmp_path / "ours.jsonl", "--column", "id=nr", "--out", tmp_path / "c")
    assert wrong.returncode == 2
    assert "--column id=nr: no record has a key 'nr'" in wrong.stderr
    assert not (tmp_path / "c").exists()


def test_lines_of_text_are_no_records(adjudge_cli, tmp_path):
    (tmp_path / "notes.txt").write_text("licence=MIT\nrepo=elsewhere\n")
    done = adjudge_cli("describe", tmp_path / "notes.txt")
    assert done.returncode == 0
    assert "notes.txt: text, 2 lines" in done.stdout
    assert "No command reads this: a record is" in done.stdout
    assert "misses" not in done.stdout


def test_records_that_are_no_objects_are_counted(adjudge_cli, tmp_path):
    (tmp_path / "mixed.jsonl").write_text('{"id": 1, "score": 1}\n\noops\n[1]\n')
    done = adjudge_cli("describe", tmp_path / "mixed.jsonl")
    assert "2 of them are no JSON objects, the first on line 3: oops" in done.stdout


def test_a_key_that_has_the_word_is_proposed(adjudge_cli, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("question_id,score\n1,0\n2,1\n")
    done = adjudge_cli("describe", path)
    assert f"adjudge score (scores) misses id; perhaps adjudge score {path} --column id=question_id\n" in done.stdout


def test_keys_of_others_are_proposed_as_a_whole_command(adjudge_cli, tmp_path):
    path = tmp_path / "results.csv"
    path.write_text("question,correct,llm\nq1,1,a\nq2,0,a\n")
    flags = "--column id=question --column score=correct"
    assert f"misses id, score or scores; perhaps adjudge score {path} {flags}\n" in adjudge_cli("describe", path).stdout
    refused = adjudge_cli("score", path, "--no-report", "--out", tmp_path / "run")
    what = "none of the first 2 records has an `id`; they have correct, llm, question."
    assert refused.stderr == f"adjudge: {path}:2: {what} {flags} say which keys these are.\n"
    judged = adjudge_cli("score", path, "--no-report", "--out", tmp_path / "run", *flags.split())
    assert judged.returncode == 0


def test_of_two_keys_that_may_be_meant_none_is_proposed(adjudge_cli, tmp_path):
    path = tmp_path / "results.csv"
    path.write_text("question,item,correct\nq1,i,1\n")
    refused = adjudge_cli("score", path, "--no-report", "--out", tmp_path / "run").stderr
    assert "--column id=NAME --column score=correct say which keys these are." in refused
