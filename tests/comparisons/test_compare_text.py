"""The comparison on a terminal: its parts, from the JSON of real comparisons."""

from __future__ import annotations

import json

import numpy as np
import pytest

from adjudge.comparisons.comparison import compare
from adjudge.provenance.canonical import pretty
from adjudge.report.comparison import text
from adjudge.report.numbers import WIDTH
from adjudge.report.sentence import sentence


def shown(comparison):
    return text(json.loads(pretty(comparison.to_dict())))


def test_two_systems(make_run, pairs):
    first, second = pairs(300, 12, 40, 48)
    a, b = make_run("a", {"old": first}), make_run("b", {"new": second})
    comparison = compare(a, b, evidence=3)
    lines = shown(comparison).splitlines()
    assert lines[0] == "COMPARABLE · quiz"
    assert sentence(comparison.to_dict()) in " ".join(lines)
    (row,) = [line for line in lines if line.startswith("pass_rate") and "better" in line]
    assert row.split() == [
        "pass_rate",
        "better",
        "78",
        "%",
        "85",
        "%",
        "+7.0",
        "points",
        "[3.5,",
        "10.6]",
        "1.3e-04",
        "1.3e-04",
        "1.3e-04",
        "400",
    ]
    assert "Tests on pass_rate: only old 12, only new 40; mcnemar exact 1.3e-04, mcnemar mid-p" in " ".join(lines)
    assert "Flipped on pass_rate: 12 lost and 40 gained by new" in lines
    assert "  lost    q000300  passed → failed  quiz.answer: the answer is wrong" in lines
    assert "  lost    q000303  passed → failed  evidence not read (--evidence N)" in lines
    assert "  … and 42 more (--json has all)" in lines
    assert max(map(len, lines)) <= WIDTH


def test_three_systems_are_a_ranking_and_a_row_for_every_pair(make_run):
    right = np.zeros((3, 200), dtype=bool)
    right[0, :150], right[1, :147], right[2, :60] = True, True, True
    found = shown(compare(make_run("r", {"best": right[0], "near": right[1], "far": right[2]})))
    assert [line.split() for line in found.splitlines() if line[:1].isdigit()][1:] == [
        ["1", "best", "75", "%", "a"],
        ["1", "near", "73.5", "%", "a"],
        ["3", "far", "30", "%", "b"],
    ]
    (head,) = [line for line in found.splitlines() if line.startswith("metric ")]
    assert head.count(" − ") == 3
    (row,) = [line for line in found.splitlines() if line.startswith("pass_rate, points")]
    assert [row.count(word) for word in ("worse", "inconclusive", "better")] == [1, 1, 1]
    assert sum(" − " in line for line in found.splitlines()) == 4


def test_many_metrics_are_one_table_and_a_short_sentence(make_run, pairs):
    first, second = pairs(300, 12, 40, 48)
    outcome = {"column": "bucket", "equals": "passed", "kind": "binary"}
    top = {"comparable": [{**outcome, "name": f"metric_{n}"} for n in range(9)]}
    a, b = make_run("a", {"old": first}, top=top), make_run("b", {"new": second}, top=top)
    lines = shown(compare(a, b)).splitlines()
    said = " ".join(lines[2 : lines.index("", 2)])
    assert said.startswith("new against old, on 400 samples: new is better on 9 of 9 metrics (metric 0 +7.0 points ")
    assert said.endswith("and 6 more).")
    assert sum(line.startswith("metric_") for line in lines) == 9
    assert not any(line.startswith("Tests on") for line in lines)


def test_what_was_left_out_is_a_note(make_run):
    top = {"comparable": [{"name": "score", "column": "score", "kind": "mean"}]}
    a = make_run("a", {"old": [True] * 4}, columns={"score": {"old": [1.0, 2.0, None, 4.0]}}, top=top)
    b = make_run("b", {"new": [True] * 4}, columns={"score": {"new": [1.5, 2.0, 3.0, 4.5]}}, top=top)
    assert "score: 1 samples are left out, where one of the two has no value" in shown(compare(a, b))


@pytest.mark.parametrize("hostile", ["\x1b[2J", "a\nb", "\u202e"])
def test_names_from_outside_stay_on_their_line(make_run, hostile):
    a, b = make_run("a", {f"m{hostile}": [True, False]}), make_run("b", {"n": [True, True]})
    found = shown(compare(a, b))
    assert "\x1b" not in found
    assert "\u202e" not in found
    assert "a\nb" not in found
