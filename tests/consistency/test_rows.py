"""Rows as people write them, and what is broken in them: read, mended, named or set aside."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from adjudge.engine.verify import verify
from adjudge.errors import ConfigError, InputError
from adjudge.protocols.consistency.policy import LABELS
from adjudge.protocols.consistency.reasons import QUOTED, look_into, mask
from adjudge.runs.run import Run

BOM = b"\xef\xbb\xbf"


def samples(path):
    return {row["sample"]: row for row in pq.read_table(path / "samples.parquet").to_pylist()}


def notes(path):
    return json.loads((path / "manifest.json").read_bytes())["notes"]


@pytest.mark.parametrize(
    "row,expected",
    [
        ({"scholar": {"label": "VALID"}, "auditor": {"label": "ABSTAIN", "model": "m", "temperature": 0.5}},
         {"scholar": "VALID", "auditor": "ABSTAIN", "auditor_seeding": "unstable", "scholar_seeding": "not_a_model"}),
        ({"scholar": {"label": "VALID", "seed": 0}, "auditor": {"label": "VALID", "temperature": -0.0}},
         {"scholar_seeding": "stable", "auditor_seeding": "stable"}),
        ({"scholar": {"label": "VALID", "reason": None}, "auditor": {"label": "VALID", "reason": "ünï"}},
         {"scholar_reason_length": None, "auditor_reason_length": 3}),
        ({"answer_json": {"citations": ["d1", 7, "-3"]}, "retrieved_ids": ["7", -3, "d1"]},
         {"citations": "in_scope", "citations_out_of_scope": 0, "answered": True, "claim": "none"}),
        ({"answer_json": {"citations": ["d1", 2**64]}, "retrieved_ids": [str(2**64)]},
         {"citations": "out_of_scope", "citations_out_of_scope": 1}),
        ({"answer_json": {"citations": [f"d{k}" for k in range(3001)]}, "retrieved_ids": [f"d{k}" for k in range(3000)]},
         {"citations": "out_of_scope", "citations_out_of_scope": 1}),
        ({"answer_json": {"citations": ["d1"]}}, {"citations": "unverifiable", "citations_out_of_scope": 1}),
        ({"answer_json": None, "flags": None, "retrieved_ids": None}, {"citations": "none", "answered": False}),
        ({"answer_json": {"claim": "not in context"}}, {"claim": "refusal_token"}),
        ({"flags": {"provenance_violation": True, "constraints_mismatch": None}},
         {"provenance_violation": True, "constraints_mismatch": None, "answered": True}),
        ({"constraints": {"a": [1], "b": 2}, "answer_json": {"constraints_echo": {"b": 2, "a": [1]}}},
         {"constraints_echoed": True}),
        ({"constraints": {"a": 1}}, {"constraints_echoed": False}),
        ({"constraints": None, "answer_json": {"constraints_echo": 1}}, {"constraints_echoed": None}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ascii_only", [True, False])
def test_rows_as_people_write_them(write, pair, run, row, expected, ascii_only):
    line = json.dumps({**pair("é"), **row}, ensure_ascii=ascii_only)
    path, _ = run({"pairs": [write("pairs.jsonl", [line])]})
    stored = samples(path)["é"]
    assert {name: stored[name] for name in expected} == expected


BROKEN = {
    "lone surrogate": (b"a \\ud800 b", "a \N{REPLACEMENT CHARACTER} b", "lone surrogates"),
    "not UTF-8": (b"a \xff b", "a \N{REPLACEMENT CHARACTER} b", "bytes that are not UTF-8"),
    "NUL": (b"a \x00 b", "a \x00 b", "control characters"),
}


@pytest.mark.parametrize("written,read,note", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_a_broken_character_costs_itself_and_is_named(tmp_path, pair, run, written, read, note, line_end):
    constraints = {"constraints": {"k": "HERE"}, "answer_json": {"claim": "HERE", "constraints_echo": {"k": "HERE"}}}
    rows = [json.dumps(pair("first")), "", json.dumps(pair("q", "VALID", "REJECT", **constraints)), "  "]
    text = line_end.join(row.encode() for row in rows).replace(b"stands in the source", b"HERE")
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_bytes(BOM + text.replace(b"HERE", written) + line_end)
    path, metrics = run({"pairs": [str(pairs)]})
    assert metrics["n"] == 2
    assert samples(path)["q"]["scholar_reason"] == read
    assert samples(path)["q"]["constraints_echoed"] is True
    named = [text for text in notes(path) if note in text]
    assert named
    assert "pairs.jsonl:1, pairs.jsonl:3" in named[0]
    assert verify(Run(path)).problems == []


@pytest.mark.parametrize("written", [written for written, _, _ in BROKEN.values()], ids=BROKEN)
def test_a_broken_character_beside_a_wrong_label_leaves_the_label_named(tmp_path, pair, run, written):
    line = json.dumps(pair("q", "valid")).encode().replace(b"policy holds", written)
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_bytes(line + b"\n")
    with pytest.raises(InputError, match=r"pairs.jsonl:1: "):
        run({"pairs": [str(pairs)]})
    _, metrics = run({"pairs": [str(pairs)], "on_bad_row": "skip"})
    assert [entry["at"] for entry in metrics["bad_rows"]["listed"]] == ["pairs.jsonl:1"]


def test_the_first_bad_row_is_named_whatever_is_wrong_with_the_next(write, pair, run):
    rows = [pair("a"), pair("b") | {"auditor": {"reason": "no label"}}, '{"qid": ', pair("c", "valid")]
    path = write("pairs.jsonl", rows)
    with pytest.raises(InputError, match=r"pairs.jsonl:2: auditor has no label; .*--on-bad-row skip"):
        run({"pairs": [path]})
    with pytest.raises(InputError, match=r"pairs.jsonl:2: is not JSON: .*--on-bad-row skip"):
        run({"pairs": [write("pairs.jsonl", [rows[0], *rows[2:]])]})
    _, metrics = run({"pairs": [write("pairs.jsonl", rows)], "on_bad_row": "skip"})
    assert [entry["at"] for entry in metrics["bad_rows"]["listed"]] == [f"pairs.jsonl:{line}" for line in (2, 3, 4)]


def test_rows_nested_too_deep_are_set_aside(write, pair, run):
    deep = json.dumps(pair("d", constraints="DEEP")).replace('"DEEP"', "[" * 5000 + "]" * 5000)
    path = write("pairs.jsonl", [pair("a"), deep])
    with pytest.raises(InputError, match=r"pairs.jsonl:2: is nested too deep"):
        run({"pairs": [path]})
    _, metrics = run({"pairs": [path], "on_bad_row": "skip"})
    assert (metrics["n"], metrics["bad_rows"]["count"]) == (1, 1)


def test_keys_that_nothing_reads_are_named(write, pair, run):
    row = pair("q", extra=1, answer_json={"claim": "c", "tone": "dry"})
    row["scholar"]["mood"] = "fine"
    path, _ = run({"pairs": [write("pairs.jsonl", [row])]})
    assert (
        "pairs: keys that nothing reads: `answer_json.tone` (100 %), `extra` (100 %), `scholar.mood` (100 %)"
        in notes(path)[-1]
    )
    raters = [write(f"{name}.jsonl", [{"item": 1, "label": "a", "why": "so"}]) for name in ("one", "two")]
    path, _ = run({"raters": raters, "labels": ["a", "b"]})
    assert "raters: keys that nothing reads: `why` (100 %)" in notes(path)[-1]


def test_names_that_differ_only_in_case_are_different(write, pair, run):
    path, metrics = run({"pairs": [write("pairs.jsonl", [pair("q"), pair("Q", "REJECT", "VALID")])]})
    assert metrics["n"] == 2
    assert {name: row["scholar"] for name, row in samples(path).items()} == {"q": "VALID", "Q": "REJECT"}
    raters = [
        write(f"{name}.jsonl", [{"item": item, "label": label} for item, label in zip("xX", labels, strict=True)])
        for name, labels in (("ann", "aA"), ("Ann", "aa"), ("ANN", "AA"))
    ]
    path, metrics = run({"raters": raters, "labels": ["a", "A"]})
    assert metrics["raters"] == ["ANN", "Ann", "ann"]
    assert metrics["label_counts"]["ann"] == {"a": 1, "A": 1}
    assert [samples(path)["X"][f"rating:{name}"] for name in metrics["raters"]] == ["A", "a", "A"]
    assert verify(Run(path)).problems == []


def test_more_labels_than_a_code_holds_are_refused(run):
    with pytest.raises(ConfigError, match="labels are 128; a label space has at most 127"):
        run({"raters": ["a", "b"], "labels": [str(number) for number in range(128)]})


reasons = st.none() | st.sampled_from(
    ["", "short", "a reason that is long enough to be quoted", "jo@example.org", "call 212-555-0142", "says REJECT",
     "INVALID", "VALID", "the Auditor says VALID", "ünï NOT_IN_CONTEXT", "éVALID", "1234567", "😀 ABSTAIN", "12 34 56 7"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(reasons, reasons, st.booleans()), min_size=1, max_size=8), st.integers(0, 2))
def test_reasons_are_looked_into_as_one_by_one(rows, skipped):
    """Also in a slice of a column."""
    sides = [
        [one for one, _, _ in rows],
        [f"they say {one} too" if quote and one else two for one, two, quote in rows],
    ]
    codes = np.arange(len(rows), dtype=np.int8)
    both = (codes % 4, codes % 3)
    found = look_into([pa.array(side, pa.string())[skipped:] for side in sides], (both[0][skipped:], both[1][skipped:]))
    for side, other, role in ((0, 1, "auditor"), (1, 0, "scholar")):
        for row in range(skipped, len(rows)):
            text, quoted, at = sides[side][row], sides[other][row], row - skipped
            assert found.texts[side][at].as_py() == (None if text is None else mask(text)[0])
            assert found.personal[side, at] == (0 if text is None else mask(text)[1])
            label = LABELS[both[other][row]]
            words = "".join(sign if sign.isalnum() or sign == "_" else " " for sign in text or "").split()
            names = label in words and (
                both[side][row] != both[other][row] or role in [word.casefold() for word in words]
            )
            holds = text is not None and quoted is not None and len(quoted) >= QUOTED and quoted in text
            assert found.quotes[side, at] == (names or holds)


@pytest.mark.parametrize(
    "row,message",
    [
        ({"scholar": {"label": "VALID", "reason": 5}}, "`scholar.reason` is a whole number, expected text"),
        ({"answer_json": {"claim": ["c"]}}, "`answer_json.claim` is a list, expected text"),
    ],
)
def test_a_text_of_another_kind_sets_its_row_aside(write, pair, run, row, message):
    file = write("pairs.jsonl", [json.dumps(line) for line in (pair("a"), {**pair("b"), **row}, pair("c"))])
    with pytest.raises(InputError, match=f"pairs.jsonl:2: {message}; a pair has"):
        run({"pairs": [file]})
    path, _ = run({"pairs": [file], "on_bad_row": "skip"})
    assert [name for name, sample in samples(path).items() if sample["note"] is None] == ["a", "c"]


@pytest.mark.parametrize(
    "cited,stored",
    [
        ([], None),
        (["ü", 7], '["ü",7]'),
        (list(range(65)), json.dumps(list(range(64)), separators=(",", ":"))),
        (["d" * 5000], json.dumps(["d" * 60])),
    ],
)
def test_the_first_citations_of_an_answer_are_kept(write, pair, run, cited, stored):
    rows = [{**pair("a"), "answer_json": {"citations": cited}, "retrieved_ids": cited}, pair("b")]
    path, _ = run({"pairs": [write("pairs.jsonl", [json.dumps(row) for row in rows])]})
    table = pq.read_table(path / "outputs")
    assert table.column("cited").to_pylist()[samples(path)["a"]["row"]] == stored
