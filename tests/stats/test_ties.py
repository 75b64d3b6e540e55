"""Tie groups: letters shared exactly by the pairs that no test told apart."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.errors import StatsError
from adjudge.stats.ties import Ranked, TieGroup, ranking, tie_groups


def by_pair(names, p):
    return {(names[i], names[j]): p[i][j] for i, j in combinations(range(len(names)), 2)}


def test_overlapping_groups_get_letters():
    p = {("A", "B"): 0.20, ("B", "C"): 0.30, ("A", "C"): 0.01}
    assert tie_groups(["C", "A", "B"], [0.7, 0.9, 0.8], p) == [
        TieGroup(letter="a", names=("A", "B")),
        TieGroup(letter="b", names=("B", "C")),
    ]
    assert ranking(["C", "A", "B"], [0.7, 0.9, 0.8], p) == [
        Ranked(rank=1, name="A", score=0.9, letters=("a",)),
        Ranked(rank=1, name="B", score=0.8, letters=("a", "b")),
        Ranked(rank=3, name="C", score=0.7, letters=("b",)),
    ]


def test_ranks_follow_tie_groups():
    """Who stands in a better group first counts, so ranks 1, 1, 3, 3, 5 for the groups a, a, b, bc, c."""
    names = ["A", "B", "C", "D", "E"]
    tied = {("A", "B"), ("C", "D"), ("D", "E")}
    p = {pair: 0.5 if pair in tied else 0.001 for pair in combinations(names, 2)}
    ranked = ranking(names, [5.0, 4.0, 3.0, 2.0, 1.0], p)
    assert ["".join(row.letters) for row in ranked] == ["a", "a", "b", "bc", "c"]
    assert [row.rank for row in ranked] == [1, 1, 3, 3, 5]


def test_all_different_and_all_tied():
    names, scores = ["x", "y", "z"], [3.0, 2.0, 1.0]
    different = by_pair(names, np.full((3, 3), 0.001))
    assert [group.names for group in tie_groups(names, scores, different)] == [("x",), ("y",), ("z",)]
    assert [row.rank for row in ranking(names, scores, different)] == [1, 2, 3]
    assert [group.names for group in tie_groups(names, scores, by_pair(names, np.full((3, 3), 0.5)))] == [
        ("x", "y", "z")
    ]


def test_an_untested_pair_is_no_evidence_of_a_difference():
    assert len(tie_groups(["x", "y"], [1, 0], {})) == 1
    assert len(tie_groups(["x", "y"], [1, 0], {("x", "y"): None})) == 1
    assert len(tie_groups(["x", "y"], [1, 0], {("y", "x"): 0.05})) == 2


@st.composite
def tournaments(draw):
    k = draw(st.integers(1, 7))
    p = np.ones((k, k))
    for i, j in combinations(range(k), 2):
        p[i, j] = p[j, i] = draw(st.sampled_from([0.01, 0.5]))
    return [f"m{i}" for i in range(k)], draw(st.lists(st.integers(0, 5), min_size=k, max_size=k)), p


@given(tournaments())
@settings(max_examples=100, deadline=None)
def test_names_share_a_letter_exactly_when_not_told_apart(case):
    names, scores, p = case
    groups = tie_groups(names, scores, by_pair(names, p))
    for i, j in combinations(range(len(names)), 2):
        share = any(names[i] in group.names and names[j] in group.names for group in groups)
        assert share == (p[i, j] > 0.05)
    assert all(not set(a.names) <= set(b.names) for a in groups for b in groups if a is not b)


@given(tournaments(), st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_row_order_changes_nothing(case, random):
    names, scores, p = case
    order = list(range(len(names)))
    random.shuffle(order)
    pairs = by_pair(names, p)
    assert ranking([names[i] for i in order], [scores[i] for i in order], pairs) == ranking(names, scores, pairs)


def test_letters_go_on_past_z():
    names = [f"m{i:02d}" for i in range(28)]
    groups = tie_groups(names, list(range(28)), by_pair(names, np.zeros((28, 28))))
    assert [group.letter for group in groups][25:] == ["z", "aa", "ab"]


@pytest.mark.parametrize(
    "names, scores, p",
    [
        (["a", "a"], [1, 2], {}),
        (["a", "b"], [1], {}),
        (["a", "b"], [1, float("nan")], {}),
        (["a", "b"], [1, 2], {("a", "c"): 0.5}),
    ],
)
def test_bad_rankings_are_refused(names, scores, p):
    with pytest.raises(StatsError):
        tie_groups(names, scores, p)
