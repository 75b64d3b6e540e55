"""Negative results: what a detector misses, the smallest size it sees, false alarms where conditions are shifted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adjudge.errors import ProtocolViolation
from adjudge.protocols.anomaly.batch import ScoreTable
from adjudge.protocols.anomaly.config import PRIMARY
from adjudge.protocols.anomaly.judge import Decisions
from adjudge.protocols.anomaly.words import TEST
from adjudge.stats.detection import first_reaching

HALF = 0.5
_TARGETS = (HALF, 0.9)
_UNITS = {"_m": "m", "_mps": "m/s", "_mps2": "m/s²", "_radps": "rad/s", "_s": "s"}
_KEYS = ("attacks_judged", "attacks_with_recall_below_half", "min_detectable_magnitude", "shifted_condition")

Row = dict[str, Any]


def unit_of(parameter: str | None) -> str:
    """The unit of an attack's size, by the ending of the parameter that is its size."""
    endings = [unit for ending, unit in _UNITS.items() if parameter is not None and parameter.endswith(ending)]
    return endings[-1] if endings else ""


def negative_results(rows: Sequence[Row], smallest: Mapping[str, Row], shifted: Any) -> Row:
    """What a reviewer must see: attacks and sizes that are mostly missed, the smallest detectable size, shifts."""
    return {
        "attacks_judged": len({row["attack"] for row in rows}),
        "attacks_with_recall_below_half": [
            {"attack": row["attack"], "magnitude": row["magnitude"], "recall": row["recall"]} for row in _poor(rows)
        ],
        "min_detectable_magnitude": dict(smallest),
        "shifted_condition": shifted,
    }


def with_recall(rows: Sequence[Row]) -> list[Row]:
    """Rows about one size, or about an attack that has none, whose recall is a number."""
    sized = {row["attack"] for row in rows if row["magnitude"] is not None}
    single = (row for row in rows if row["magnitude"] is not None or row["attack"] not in sized)
    return [row for row in single if row["recall"] is not None]


def _poor(rows: Sequence[Row]) -> list[Row]:
    return [row for row in with_recall(rows) if row["recall"] < HALF]


def minimum_magnitudes(table: ScoreTable, decisions: Decisions, sizes: Mapping[str, str]) -> dict[str, Row]:
    """Per attack the smallest magnitude with recall of at least .5 and .9, by a monotone fit; null when none.

    Beside it stand the sizes that were tried: a smallest detectable size that is the smallest tried is a bound.
    `sizes` names the parameter that is an attack's size.
    """
    groups: dict[str, list[int]] = {}
    for index in table.of_split(TEST):
        item = table.sequences[index]
        if item.attack is not None and item.magnitude is not None:
            groups.setdefault(item.attack, []).append(index)
    smallest: dict[str, Row] = {}
    for attack, chosen in sorted(groups.items()):
        part = decisions.take(np.array(chosen, dtype=np.intp))
        tried = [abs(table.sequences[index].magnitude or 0.0) for index in chosen]
        smallest[attack] = {
            **{f"recall_{target:g}": first_reaching(tried, part.tp, part.tp + part.fn, target) for target in _TARGETS},
            "tried": sorted(set(tried)),
            "unit": unit_of(sizes.get(attack)),
        }
    return smallest


def hold_complete(top: Row, metrics: Row, per_attack: Sequence[Row]) -> None:
    """Refuse to write a report that leaves out a primary metric or an attack that is mostly missed."""
    missing = [name for name in PRIMARY if name not in metrics]
    if missing:
        raise ProtocolViolation(f"metrics.complete: the report lacks {', '.join(missing)}")
    section = top.get("negative_results") or {}
    listed = {(item["attack"], item["magnitude"]) for item in section.get("attacks_with_recall_below_half", ())}
    left_out = sorted({row["attack"] for row in _poor(per_attack) if (row["attack"], row["magnitude"]) not in listed})
    if left_out or any(key not in section for key in _KEYS):
        raise ProtocolViolation(
            f"metrics.complete: the negative results lack {', '.join(left_out) or 'a section'}; they cannot be left out"
        )
