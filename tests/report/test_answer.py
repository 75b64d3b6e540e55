"""The one sentence of a report."""

import pytest

from adjudge.report.answer import answer
from adjudge.report.data import failure_modes


@pytest.fixture
def sentence(demo):
    return lambda name: answer(demo[name], failure_modes(demo[name])["rows"])


def test_best_and_worst_of_several_and_who_is_not_told_apart(sentence, demo):
    run = demo["flight"]
    ranking = run.metrics["comparison"]["ranking"]
    text = sentence("flight")
    assert text.startswith(f"{ranking[0]['model']} is best by eligibility rate")
    assert f"and {ranking[-1]['model']} worst" in text
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


def test_nothing_failed(demo):
    assert answer(demo["gui"], []).endswith("; no rule failed.")
