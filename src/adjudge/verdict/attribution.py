"""Attribution: why a sample failed, grouped by rule and field, the worst first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.evidence.atoms import Atom


@dataclass(frozen=True)
class Reason:
    """One group of failures."""

    rank: int
    reason: str
    rule: str
    field: str | None
    severity: str
    count: int
    evidence_ids: tuple[str, ...]


def attribute(found: Sequence[Atom], top: int) -> list[Reason]:
    """The top groups: criticals first, then by how far over the limit; ties by rule code and the order of fields."""
    groups: dict[tuple[str, str | None], list[Atom]] = {}
    for atom in found:
        if atom.failed:
            groups.setdefault((atom.rule, atom.field), []).append(atom)
    order: dict[str | None, int] = {}
    for atom in found:
        order.setdefault(atom.field, atom.position)
    ranked = sorted(groups.values(), key=lambda group: _rank(group, order))[:top]
    return [
        Reason(
            rank=rank,
            reason=_worst(group).message,
            rule=group[0].rule,
            field=group[0].field,
            severity="CRITICAL" if any(atom.severity == "CRITICAL" for atom in group) else "WARNING",
            count=len(group),
            evidence_ids=tuple(atom.id for atom in group),
        )
        for rank, group in enumerate(ranked, 1)
    ]


def excess(atom: Atom) -> float:
    """How far over its limit a failed atom is, as a multiple of the limit; infinite where there is nothing to measure.

    In spans of the range where the rule says so, or where the limit is 0 and has no multiples.
    """
    if atom.observed is None:
        return math.inf
    low, high = atom.limits.get("low"), atom.limits.get("high")
    limit = high if high is not None and atom.observed > high else low
    if limit is None or (limit == high and atom.observed <= limit) or (limit == low and atom.observed >= limit):
        return 0.0
    unit = atom.limits.get("span", abs(limit))
    if unit == 0.0 and low is not None and high is not None:
        unit = high - low
    return abs(atom.observed - limit) / (unit or 1.0)


def _over(atom: Atom) -> float:
    """The excess without its last digits: 0.004 over 0.002 and 0.6 over 0.3 are alike, whatever rounding made of them."""
    return round(excess(atom), 9)


def _worst(group: Sequence[Atom]) -> Atom:
    return max(group, key=lambda atom: (atom.severity == "CRITICAL", _over(atom), -atom.position))


def _rank(group: Sequence[Atom], order: dict[str | None, int]) -> tuple[int, float, str, int]:
    critical = any(atom.severity == "CRITICAL" for atom in group)
    return (0 if critical else 1, -max(map(_over, group)), group[0].rule, order[group[0].field])
