"""What a plugin's agent answers is checked, stored and never asked for again."""

import json

import pyarrow.parquet as pq
import pytest

import adjudge
from adjudge.report.explain import explain


def asked(run):
    return [row for part, _ in run.parts() for row in run.side_table("agent", part).to_pylist()]


def value(run, name):
    return run.estimates[name, ""].value


@pytest.mark.parametrize(
    "agent, reason", [("uncited", "no_citation"), ("wrongly-cited", "unsupported"), ("beyond", "unknown_atom")]
)
def test_a_refused_answer_leaves_the_rules_verdict_and_is_counted(judged, agent, reason):
    run, rules = judged(agent), judged("rules", name="rules")
    assert run.samples.column("verdict").to_pylist() == rules.samples.column("verdict").to_pylist()
    assert run.metrics["buckets"] == rules.metrics["buckets"]
    rows = [row for row in asked(run) if row["decided_by"] != "not asked"]
    assert rows
    assert all(row["decided_by"] == "rules" and reason in row["refused"] for row in rows)
    assert value(run, "agent_refused") == len(rows)
    assert value(run, f"agent_refused.{reason}") == sum(row["refused"].count(reason) for row in rows)
    assert run.estimates["agent_kappa", ""].value is None
    assert any("left no transcripts" in text for text in adjudge.verify(run).not_checked)


def test_an_untrue_story_reaches_no_reader(judged):
    run = judged("beyond")
    row = run.samples.to_pylist()[0]
    text = explain(run, row["sample"], row["model"])
    assert "tired" not in text
    assert "EVID_999" not in text
    assert "tired" not in json.dumps(run.record(row["sample"], row["model"]))


def test_an_empty_checklist_is_refused_before_anything_is_judged(judged, tmp_path):
    with pytest.raises(adjudge.CitationRefused, match="checklist of agent 'no-checklist' is empty"):
        judged("no-checklist")
    assert not (tmp_path / "run").exists()


def test_an_agent_may_be_stricter_in_its_own_words_and_a_quote_must_stand_in_the_answer(judged):
    run, rules = judged("strict", limit=None), judged("rules", name="rules", limit=None)
    adjudge.verify(run)
    before = dict(zip(rules.samples.column("row").to_pylist(), rules.samples.to_pylist(), strict=True))
    stricter = [
        row for row in run.samples.to_pylist() if row["verdict"] == "ineligible" != before[row["row"]]["verdict"]
    ]
    assert stricter
    assert value(run, "agent_stricter") == pytest.approx(len(stricter) / run.estimates["agent_stricter", ""].n)
    assert all(row["bucket"] == "failed" and row["total"] is None for row in stricter)
    record = run.record(stricter[0]["sample"], stricter[0]["model"])["agent_output"]
    first, second = record["attribution"]
    assert first["words"] == "this is not flown"
    assert first["quote_verified"]
    assert second["quote_verified"] is False
    assert "words" not in second
    assert [quote["verified"] for quote in record["quotes"]] == [True, False]
    assert record["decided_by"] == "agent"
    text = explain(run, stricter[0]["sample"], stricter[0]["model"])
    assert "this is not flown" in text
    assert "the tower said so" not in text


def test_a_second_answer_counts_after_a_refusal(judged):
    run = judged("strict", limit=None)
    again = [row for row in asked(run) if row["refused"]]
    assert again
    assert all(row["refused"] == ["no_citation"] and row["decided_by"] == "agent" for row in again)


@pytest.mark.parametrize("change", ["status", "reason_words", "quotes_verified", "decided_by"])
def test_verify_finds_what_was_altered_in_the_table(judged, change):
    run = judged("strict", limit=None)
    path = run.path / "agent" / "part-00000.parquet"
    rows = pq.read_table(path)
    values = rows.column(change).to_pylist()
    place = next(index for index, row in enumerate(values) if row and (change != "status" or row))
    if change == "status":
        values[place] = values[place] + b"\x00"
    elif change == "quotes_verified":
        values[place] = [not flag for flag in values[place]]
    elif change == "reason_words":
        values[place] = ["the tower said so"] * len(values[place])
    else:
        values[place] = "not asked"
    field = rows.schema.field(change)
    kind = field.type if change != "status" else "binary"
    import pyarrow as pa

    changed = pa.array(values, pa.binary() if kind == "binary" else field.type)
    pq.write_table(rows.set_column(rows.column_names.index(change), change, changed), path)
    with pytest.raises(adjudge.VerificationFailed):
        adjudge.verify(adjudge.load_run(run.path))
