from __future__ import annotations

import itertools
import statistics

import pytest

from adjudge.protocols.stability.text import canonical, edit_distance_median, exact_agreement, jaccard_mean


@pytest.mark.parametrize(
    "text,folded",
    [
        ("It lasts  30 days.", "it lasts 30 days"),
        ("It\tlasts,\n30—days!", "it lasts 30 days"),
        ("STRASSE straße", "strasse strasse"),
        ("ﬁne\u00a0print", "fine print"),
        ("¿Qué? «Sí»", "qué sí"),
        ("$5 + 3", "$5 + 3"),
        ("", ""),
    ],
)
def test_canonical_form(text, folded):
    assert canonical(text) == folded


def levenshtein(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


@pytest.mark.parametrize("claims", [["abc", "abd", "xyz", "abc"], ["a", "a"], ["kitten", "sitting", "kitten", "", "k"]])
def test_median_distance_equals_all_pairs_by_hand(claims):
    pairs = [levenshtein(a, b) / max(len(a), len(b), 1) for a, b in itertools.combinations(claims, 2)]
    assert edit_distance_median(claims) == pytest.approx(statistics.median(pairs))


def test_pairwise_measures_by_hand():
    assert jaccard_mean([{"a", "b"}, {"a"}, {"a", "b"}]) == pytest.approx((0.5 + 1 + 0.5) / 3)
    assert jaccard_mean([set(), set()]) == 1.0
    assert exact_agreement(["Yes.", "yes", "no"]) == pytest.approx(1 / 3)
    for measure in (jaccard_mean, exact_agreement, edit_distance_median):
        assert measure([]) is None
        assert measure([""]) is None
