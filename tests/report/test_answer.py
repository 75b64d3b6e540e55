"""The one sentence of a report."""

import pytest

import adjudge
from adjudge.report.data import answer, failure_modes


@pytest.fixture
def sentence(demo):
    return lambda name: answer(demo[name], failure_modes(demo[name])["rows"])


def test_best_and_worst_of_several_and_who_is_not_told_apart(sentence, demo):
    run = demo["flight"]
    ranking = run.metrics["comparison"]["ranking"]
    text = sentence("flight")
    assert text.startswith(f"{ranking[0]['model']} has the highest eligibility rate")
    assert f"and {ranking[-1]['model']} the lowest" in text
    tied = [place["model"] for place in ranking[1:] if set(place["tie_groups"]) & set(ranking[0]["tie_groups"])]
    assert ("not told apart from" in text) == bool(tied)


def test_one_system_is_told_by_what_passed(sentence, demo):
    rows = demo["gui"].samples.to_arrow().column("bucket").to_pylist()
    assert sentence("gui").startswith(f"{rows.count('passed')} of {len(rows)} samples passed; ")


@pytest.mark.parametrize("name", ["anomaly", "check", "consistency", "flight", "gui", "score", "stability", "triage"])
def test_what_failed_most_often_is_what_most_samples_fail(sentence, demo, name):
    counts = {}
    for mode in failure_modes(demo[name])["rows"]:
        counts[mode["title"]] = counts.get(mode["title"], 0) + mode["samples"]
    most = max(counts.values())
    assert any(f"“{title}”" in sentence(name) for title, count in counts.items() if count == most)


def test_intervals_that_overlap_are_said(tmp_path):
    rows = [f'{{"id": "q{place}", "model": "m{place % 2}", "score": {place in (0, 1, 2, 4):d}}}' for place in range(12)]
    (tmp_path / "s.jsonl").write_text("\n".join(rows))
    run = adjudge.evaluate("score", logs=[str(tmp_path / "s.jsonl")], out=tmp_path / "run", report=False)
    text = answer(run, failure_modes(run)["rows"])
    assert text.startswith("m0 has the highest mean score and m1 the lowest, but their intervals overlap; ")


def test_nothing_failed(demo):
    assert answer(demo["gui"], []).endswith("; no rule failed.")
