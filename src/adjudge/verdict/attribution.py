"""Attribution: why samples failed, failures grouped by rule and field, the worst group first; over columns.

A group is worse where one of its atoms is CRITICAL, then by how far over its limit its worst atom is; ties stand in the
order of rule codes, then of fields.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.layout import Layout
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import CRITICAL, FAIL

_BOUNDS = ("low", "high", "span")
_NEAR = 1e6  # beyond it nothing has that many digits
_DIGITS = 9  # 0.004 over 0.002 and 0.6 over 0.3 are alike, whatever rounding made of them


@dataclass(frozen=True)
class Reasons:
    """The groups of a batch, sample by sample and rank by rank.

    `sample`, `worst` (the position of the worst atom) and `size` have one entry a group; `atoms` holds the positions of
    all groups, one group after the other.
    """

    sample: NDArray[np.int64]
    worst: NDArray[np.int16]
    size: NDArray[np.int16]
    atoms: NDArray[np.int16]


def reasons_of(evidence: Evidence, top: int) -> Reasons:
    """The `top` worst groups of every sample."""
    position, sample = np.nonzero(evidence.outcome == FAIL)
    layout = evidence.layout
    code, field = evidence.code[position, sample], layout.slot_field[position]
    critical = evidence.severity[position, sample] == CRITICAL
    over = _over_limit(evidence, position, sample)
    order = np.lexsort((position, -over, ~critical, field, code, sample))
    key = np.stack([sample, code, field])[:, order]
    first = np.ones(order.size, dtype=bool)
    first[1:] = (key[:, 1:] != key[:, :-1]).any(axis=0)
    group = np.cumsum(first) - 1
    worst = order[first]  # the worst atom of a group stands first in it
    highest = np.maximum.reduceat(over[order], np.flatnonzero(first)) if worst.size else over[:0]
    by_rank = np.lexsort(
        (
            _first_position(layout)[position[worst]],
            _alphabetical(layout)[code[worst]],
            -highest,
            ~critical[worst],
            sample[worst],
        )
    )
    ranked = sample[worst][by_rank]
    chosen = by_rank[np.arange(ranked.size) - np.searchsorted(ranked, ranked) < top]
    place = np.full(worst.size, -1)
    place[chosen] = np.arange(chosen.size)
    kept = order[place[group] >= 0]
    places = place[group][place[group] >= 0]
    return Reasons(
        sample=sample[worst][chosen],
        worst=position[worst][chosen].astype(np.int16),
        size=np.bincount(places, minlength=chosen.size).astype(np.int16),
        atoms=position[kept][np.lexsort((position[kept], places))].astype(np.int16),
    )


def _over_limit(evidence: Evidence, position: NDArray[np.intp], sample: NDArray[np.intp]) -> NDArray[np.float64]:
    """How far over the limit that decided it each atom is, as a multiple of the limit; infinite without a measurement.

    In spans of the range where the rule says so, or where the limit is 0 and has no multiples.
    """
    observed = evidence.observed[position, sample]
    bounds = _bounds(evidence, position, sample)
    low, high = bounds["low"], bounds["high"]
    with np.errstate(all="ignore"):
        limit = np.where(observed > high, high, low)
        inside = np.isnan(limit) | ((limit == high) & (observed <= limit)) | ((limit == low) & (observed >= limit))
        unit = np.where(np.isnan(bounds["span"]), np.abs(limit), bounds["span"])
        unit = np.where((unit == 0.0) & ~np.isnan(high - low), high - low, unit)
        excess = np.where(inside, 0.0, np.abs(observed - limit) / np.where(unit == 0.0, 1.0, unit))
        rounded = np.where(excess < _NEAR, np.round(excess, _DIGITS), excess)
    return np.where(np.isnan(observed), np.inf, rounded)


def _bounds(evidence: Evidence, position: NDArray[np.intp], sample: NDArray[np.intp]) -> dict[str, NDArray[np.float64]]:
    """The limits of every atom by name: those of its position, or of the case of the rule that its reason names."""
    places, reasons = evidence.layout.positions, evidence.reasons
    bounds = {name: np.array([float(place.slot.get(name, np.nan)) for place in places])[position] for name in _BOUNDS}
    if reasons.codes is None:
        return bounds
    for number, place in enumerate(places):
        for case in place.rule.get("cases", ()):
            if case["when"] not in reasons.texts:
                continue
            decided = (position == number) & (reasons.codes[position, sample] == reasons.texts.index(case["when"]))
            for name in _BOUNDS:
                bounds[name][decided] = case.get(name, np.nan)
    return bounds


def _alphabetical(layout: Layout) -> NDArray[np.int64]:
    """The place of every rule code among all of them in alphabetical order."""
    return np.argsort(np.argsort(np.array(layout.codes)))


def _first_position(layout: Layout) -> NDArray[np.int64]:
    """For every position, the first one that is about the same field."""
    _, first, number = np.unique(layout.slot_field, return_index=True, return_inverse=True)
    return first[number]
