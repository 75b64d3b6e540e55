"""The terminal summary, and one sample explained."""

import re

import pytest

import adjudge
from adjudge.errors import RunError
from adjudge.report.explain import explain
from adjudge.report.numbers import line, short_lines, table, terminal
from adjudge.report.text import summary


def test_summary_fits_the_page_and_says_what_counts(flight_run):
    text = summary(flight_run)
    assert max(len(row) for row in text.splitlines() if not row.startswith(("Run ", "Explain", "Verify"))) <= 100
    for row in ("flight S1 ·", "Where every sample ended", "Ranking (paired", "Gates: not every gate passed"):
        assert row in text
    assert re.search(r"PASS +\S+/eligibility_rate >= 0\.1", text)
    assert re.search(r"FAIL +\S+/mae_p95\.high <= 0\.001", text)
    assert re.search(r"UNKNOWN +\S+/nonsense > 1 +\(there is no estimate", text)
    assert f"adjudge verify {flight_run.path}" in text
    assert f"adjudge explain {flight_run.path} " in text


def test_buckets_in_the_summary_add_up(flight_run):
    block = summary(flight_run).split("Where every sample ended\n")[1].split("\n\n")[0].splitlines()
    rows = {words[0]: [int(word.replace(",", "")) for word in words[1:]] for words in map(str.split, block[2:])}
    assert set(rows) == {*flight_run.metrics["buckets"]}
    for counts in rows.values():
        assert sum(counts[:-1]) == counts[-1]
    assert sum(rows[name][-1] for name in rows if name != "all") == rows["all"][-1]


def test_summary_shows_every_headline_estimate_of_the_metrics(flight_run):
    text = summary(flight_run)
    for name in flight_run.metrics["headline"]:
        assert flight_run.metric(name).title in text
    assert flight_run.metrics["headline"][0] == "eligibility_rate"


def test_a_failed_sample_is_explained_with_its_failed_atoms_first(flight_run):
    row = next(row for row in flight_run.samples.to_pylist() if row["bucket"] == "failed")
    text = explain(flight_run, row["sample"], row["model"])
    failed = [atom for atom in flight_run.atoms(row) if atom.failed]
    flat = " ".join(text.split())
    assert "Verdict: INELIGIBLE (bucket: failed)" in flat
    for atom in failed:
        assert " ".join(atom.message.split()) in flat
    assert text.index("What failed") < text.index("What passed")
    assert f"{len(failed)} failed" in text
    assert max(map(len, text.split("Row ")[0].splitlines())) <= 100


def test_all_lists_every_atom(flight_run):
    row = next(row for row in flight_run.samples.to_pylist() if row["bucket"] == "passed")
    short = explain(flight_run, row["sample"], row["model"])
    flat = " ".join(explain(flight_run, row["sample"], row["model"], everything=True).split())
    for atom in flight_run.atoms(row):
        assert atom.rule in flat
        assert " ".join(atom.message.split()) in flat
    assert "--all" in short
    assert "jump dynamics 19" in short


def test_the_extracted_span_is_marked(flight_run):
    row = next(row for row in flight_run.samples.to_pylist() if row["start"] and row["start"] > 0)
    text = explain(flight_run, row["sample"], row["model"], everything=True)
    inside = text.split("│", 1)[1].split("⟦")[1].split("⟧")[0]
    response = flight_run.output(row["part"], row["row"])["response"]
    squeezed = re.sub(r"[\s│]", "", inside)
    assert squeezed == re.sub(r"\s", "", response[row["start"] : row["end"]])


def test_several_models_are_listed_with_how_to_choose(flight_run):
    sample = flight_run.samples.column("sample")[0].as_py()
    text = explain(flight_run, sample)
    assert all(model in text for model in flight_run.metrics["buckets"] if model != "all")
    assert "--model" in text


def test_an_answer_cannot_drive_the_terminal(flight_run, flight_data):
    _, model, ids = flight_data
    text = explain(flight_run, ids[1], model)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\\x1b[2J\\x1b]0;owned\\x07" in text


def test_an_unknown_sample_is_an_error_with_a_suggestion(flight_run):
    sample = flight_run.samples.column("sample")[0].as_py()
    with pytest.raises(RunError, match="Did you mean"):
        explain(flight_run, sample + "x")


@pytest.mark.parametrize(
    "given, shown",
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\u202eb", "a\\u202eb"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("crlf\r\nend", "crlf\nend"),
        ("bell\x07 csi\x9b2J", "bell\\x07 csi\\x9b2J"),
        ("höhe ✓ 高度", "höhe ✓ 高度"),
    ],
)
def test_control_characters_are_written_out(given, shown):
    assert terminal(given) == shown


def test_a_line_is_one_line_and_cut():
    assert line("a\n b\x1b") == "a b\\x1b"
    assert line("abcdef", 4) == "abc…"


def test_names_that_begin_alike_stay_apart_when_they_are_cut():
    assert short_lines(["abcdef", "b\n c"], 4) == ["abc…", "b c"]
    names = [f"meta-llama/Llama-3.1-8B-Instruct-tuned-checkpoint-{step}" for step in (1000, 2000, 1000)]
    first, second, again = short_lines(names, 32)
    assert max(len(first), len(second)) <= 32
    assert (first[-4:], second[-4:], again) == ("1000", "2000", first)


def test_models_of_long_names_are_told_apart_in_every_table(tmp_path):
    models = [f"meta-llama/Llama-3.1-8B-Instruct-tuned-checkpoint-{step}" for step in (1000, 2000)]
    rows = [{"id": n, "model": model, "score": n % 2} for n in range(10) for model in models]
    text = summary(adjudge.evaluate("score", logs=rows, out=tmp_path / "run", report=False))
    tables = text.partition("Read these")[0]
    assert tables.count("-checkpoint-1000") == tables.count("-checkpoint-2000") == 4


def test_a_wide_table_is_split_into_blocks_with_the_first_column_again():
    text = table(["", "aaaa", "bbbb", "cccc"], [["row", "1", "2", "3"]], width=16)
    blocks = text.split("\n\n")
    assert [block.splitlines()[0].split() for block in blocks] == [["aaaa", "bbbb"], ["cccc"]]
    assert all(block.splitlines()[2].startswith("row") for block in blocks)


def test_the_command_that_explains_one_can_be_pasted(tmp_path):
    rows = [{"id": "q", "model": model, "score": 1} for model in ("a b", "c")]
    text = explain(adjudge.evaluate("score", logs=rows, out=tmp_path / "run", report=False), "q")
    assert text.endswith("run q --model 'a b'")
