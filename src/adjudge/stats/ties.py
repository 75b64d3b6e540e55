"""A ranking that admits its ties: who is told apart from whom by the pairwise tests, as groups with letters."""

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


def tie_groups(
    names: Sequence[str],
    scores: Sequence[float],
    adjusted_p: Pairs | npt.ArrayLike,
    alpha: float = 0.05,
) -> list[TieGroup]:
    """The largest groups of names of which no two differ at `alpha`, ordered by their best member.

    Two names share a letter exactly when their adjusted p is above `alpha` or the pair was not tested: an untested
    pair is no evidence of a difference. (Compact letter display by insertion and absorption, Piepho 2004, J Comput
    Graph Stat 13:456-466.) `adjusted_p` is a symmetric matrix in the order of `names` (NaN: not
    tested), or a mapping from pairs.
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


def ranking(
    names: Sequence[str],
    scores: Sequence[float],
    adjusted_p: Pairs | npt.ArrayLike,
    alpha: float = 0.05,
) -> list[Ranked]:
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
    names: Sequence[str], scores: Sequence[float], adjusted_p: Pairs | npt.ArrayLike, alpha: float
) -> tuple[list[int], npt.NDArray[np.bool_]]:
    """The order by falling score (equal scores by name), and which places differ."""
    k = len(names)
    if len(set(names)) != k or len(scores) != k:
        raise StatsError(f"a ranking needs one score for each of its distinct names: {k} names, {len(scores)} scores")
    if not all(math.isfinite(score) for score in scores):
        raise StatsError("a score that does not exist cannot be ranked")
    if isinstance(adjusted_p, Mapping):
        p = np.full((k, k), np.nan)
        at = {name: i for i, name in enumerate(names)}
        for (first, second), value in adjusted_p.items():
            if first not in at or second not in at:
                raise StatsError(f"the pair ({first}, {second}) names something that is not ranked")
            if value is not None:
                p[at[first], at[second]] = p[at[second], at[first]] = value
    else:
        p = np.array(adjusted_p, dtype=np.float64)
        if p.shape != (k, k) or not np.array_equal(p, p.T, equal_nan=True):
            raise StatsError(f"adjusted p values must be a symmetric {k} by {k} matrix")
    np.fill_diagonal(p, np.nan)
    order = sorted(range(k), key=lambda i: (-scores[i], names[i]))
    return order, (p <= alpha)[np.ix_(order, order)]


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
