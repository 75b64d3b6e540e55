"""Many tests at once: adjusted p values, and a ranking that admits its ties, as groups with letters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError

Pairs = Mapping[tuple[str, str], float | None]


class TieGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Names that no test told apart, best first; groups may overlap."""

    letter: str
    names: tuple[str, ...]


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the ranking: `rank` is 1 + the number of names whose first tie group is better than its own."""

    rank: int
    name: str
    score: float
    letters: tuple[str, ...]


def tie_groups(names: Sequence[str], scores: Sequence[float], adjusted_p: Pairs, alpha: float = 0.05) -> list[TieGroup]:
    """The largest groups of names of which no two differ at `alpha`, ordered by their best member.

    Two names share a letter exactly when their adjusted p is above `alpha` or the pair was not tested: an untested
    pair is no evidence of a difference. (Compact letter display by insertion and absorption, Piepho 2004, J Comput
    Graph Stat 13:456-466.)
    """
    order, differs = _told_apart(names, scores, adjusted_p, alpha)
    groups = [frozenset(range(len(order)))] if order else []
    for first, second in zip(*np.nonzero(np.triu(differs)), strict=True):
        split: list[frozenset[int]] = []
        for group in groups:
            split += [group - {first}, group - {second}] if first in group and second in group else [group]
        groups = _absorb(split)
    ordered = sorted(sorted(group) for group in groups)
    return [
        TieGroup(letter=_letter(i), names=tuple(names[order[member]] for member in group))
        for i, group in enumerate(ordered)
    ]


def ranking(names: Sequence[str], scores: Sequence[float], adjusted_p: Pairs, alpha: float = 0.05) -> list[Ranked]:
    """Names by falling score, each with its rank and the letters of its tie groups (see `tie_groups`)."""
    order, _ = _told_apart(names, scores, adjusted_p, alpha)
    groups = tie_groups(names, scores, adjusted_p, alpha)
    first = {name: place for place, group in reversed(list(enumerate(groups))) for name in group.names}
    return [
        Ranked(
            rank=1 + sum(other < first[names[at]] for other in first.values()),
            name=names[at],
            score=float(scores[at]),
            letters=tuple(group.letter for group in groups if names[at] in group.names),
        )
        for at in order
    ]


def _told_apart(
    names: Sequence[str], scores: Sequence[float], adjusted_p: Pairs, alpha: float
) -> tuple[list[int], npt.NDArray[np.bool_]]:
    """The order by falling score (equal scores by name), and which places differ."""
    k = len(names)
    if len(set(names)) != k or len(scores) != k:
        raise StatsError(f"a ranking needs one score for each of its distinct names: {k} names, {len(scores)} scores")
    if not all(math.isfinite(score) for score in scores):
        raise StatsError("a score that does not exist cannot be ranked")
    order = sorted(range(k), key=lambda i: (-scores[i], names[i]))
    place = {names[i]: at for at, i in enumerate(order)}
    differs = np.zeros((k, k), dtype=bool)
    for (first, second), p in adjusted_p.items():
        if first not in place or second not in place:
            raise StatsError(f"the pair ({first}, {second}) names something that is not ranked")
        differs[place[first], place[second]] = differs[place[second], place[first]] = p is not None and p <= alpha
    return order, differs


def _absorb(groups: list[frozenset[int]]) -> list[frozenset[int]]:
    distinct = set(groups)
    return [group for group in distinct if not any(group < other for other in distinct)]


def _letter(i: int) -> str:
    text = ""
    i += 1
    while i:
        i, digit = divmod(i - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


def holm(p_values: Sequence[float | None], *, untested: int = 0) -> list[float | None]:
    """Holm's step-down adjusted p values, in the order given; a null stays null and is not counted as a test.

    adjusted₍ᵢ₎ = max over j ≤ i of min(1, (m−j+1)·p₍ⱼ₎) (Holm 1979, Scand J Statist 6:65-70). Rejecting where
    adjusted ≤ α keeps the chance of any false rejection at or below α, whatever the dependence between the tests.
    `untested` hypotheses of the family, those that the data chose not to test, count as tests with p = 1.
    """
    tested, p, order = _sorted(p_values)
    scale = np.arange(p.size, 0, -1) + untested
    adjusted = np.minimum(np.maximum.accumulate(p * scale), 1.0)
    return _restore(len(p_values), tested, order, adjusted)


def benjamini_hochberg(p_values: Sequence[float | None], *, untested: int = 0) -> list[float | None]:
    """Benjamini–Hochberg step-up adjusted p values, in the order given; a null stays null and is not counted as a test.

    adjusted₍ᵢ₎ = min over j ≥ i of min(1, m·p₍ⱼ₎/j) (Benjamini & Hochberg 1995, J R Statist Soc B 57:289-300).
    Rejecting where adjusted ≤ α keeps the expected share of false rejections at or below α for independent tests.
    `untested` hypotheses count as tests with p = 1.
    """
    tested, p, order = _sorted(p_values)
    # p / (rank/m), not p·m/rank: the last factor is then exactly 1, and the largest p stays itself.
    scale = np.arange(1, p.size + 1) / (p.size + untested)
    adjusted = np.minimum(np.minimum.accumulate((p / scale)[::-1])[::-1], 1.0)
    return _restore(len(p_values), tested, order, adjusted)


def _sorted(p_values: Sequence[float | None]) -> tuple[list[int], npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    tested = [i for i, p in enumerate(p_values) if p is not None]
    p = np.array([p for p in p_values if p is not None], dtype=np.float64)
    if not ((p >= 0.0) & (p <= 1.0)).all():
        raise StatsError(f"p values lie between 0 and 1, not {p[~((p >= 0.0) & (p <= 1.0))][0]}")
    order = np.argsort(p, kind="stable")
    return tested, p[order], order


def _restore(
    size: int, tested: list[int], order: npt.NDArray[np.intp], adjusted: npt.NDArray[np.float64]
) -> list[float | None]:
    result: list[float | None] = [None] * size
    for rank, position in enumerate(order.tolist()):
        result[tested[position]] = float(adjusted[rank])
    return result
