"""More than two systems by each metric, best first, with the groups that the paired tests do not tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from adjudge.comparisons.outcomes import Outcome
from adjudge.comparisons.sums import summed
from adjudge.comparisons.systems import System
from adjudge.stats.ties import ranking


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a ranking; names that share a letter were not told apart."""

    rank: int
    name: str
    value: float
    tie_groups: list[str]


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """The systems by one metric, best first."""

    metric: str
    title: str
    kind: str
    unit: str
    higher_is_better: bool
    places: list[Place]


def rankings(
    systems: Sequence[System],
    outcomes: Sequence[Outcome],
    p_values: Mapping[str, Mapping[tuple[str, str], float | None]],
    keys: Sequence[str],
    alpha: float,
) -> list[Ranking]:
    """The systems by each metric, over the samples on which all have it; ties by the corrected pairwise tests."""
    listed = []
    names = [system.name for system in systems]
    for outcome in outcomes:
        tables = [system.table(sorted(outcome.columns()), keys) for system in systems]
        wholes = _wholes(outcome, tables)
        known = [value for value in wholes if value is not None]
        if len(known) < len(systems):
            continue
        up = 1.0 if outcome.higher_is_better else -1.0
        scores = [up * value for value in known]
        listed.append(
            Ranking(
                metric=outcome.name,
                title=outcome.words,
                kind=outcome.kind,
                unit=outcome.unit,
                higher_is_better=outcome.higher_is_better,
                places=[
                    Place(rank=item.rank, name=item.name, value=up * item.score, tie_groups=list(item.letters))
                    for item in ranking(names, scores, dict(p_values.get(outcome.name, {})), alpha)
                ],
            )
        )
    return listed


class Folded(msgspec.Struct, frozen=True, kw_only=True):
    """A system that is not held against the others, because too many are better; `value` is its first metric."""

    name: str
    value: float | None


def foremost(
    systems: Sequence[System], outcome: Outcome, keys: Sequence[str], most: int
) -> tuple[list[System], list[Folded]]:
    """The best systems by an outcome in the order given, the first of all always among them; and the others, best first."""
    wholes = _wholes(outcome, [system.table(sorted(outcome.columns()), keys) for system in systems])
    values = [None if whole is None or np.isnan(whole) else float(whole) for whole in wholes]
    up = 1.0 if outcome.higher_is_better else -1.0
    badness = [np.inf if value is None else -up * value for value in values]
    best_first = sorted(range(1, len(systems)), key=lambda place: badness[place])
    kept = sorted([0, *best_first[: most - 1]])
    folded = [Folded(name=systems[place].name, value=values[place]) for place in best_first[most - 1 :]]
    return [systems[place] for place in kept], folded


def _wholes(outcome: Outcome, tables: Sequence[pa.Table]) -> list[float | None]:
    """The outcome of each system over the samples on which all have it."""
    use = np.all([outcome.inside(table) for table in tables], axis=0)
    if outcome.is_summed:
        return [summed(outcome, table, table, use).values()[0] for table in tables]
    values = np.stack([outcome.values(table) for table in tables])
    use &= ~np.isnan(values).any(axis=0)
    return [outcome.whole(row[use]) for row in values]
