"""What a reviewer must see: negative results, and controls that can fail.

Negative results are what a detector misses, the smallest size it sees, and false alarms where conditions are shifted.
Controls show whether it follows the attack or something that goes with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adjudge.errors import ProtocolViolation
from adjudge.protocols.anomaly.batch import ATTACKED, LEFT_OUT
from adjudge.protocols.anomaly.checks import FAIL, NOT_APPLICABLE, PASS
from adjudge.protocols.anomaly.config import PRIMARY
from adjudge.protocols.anomaly.metrics import Measures
from adjudge.stats import ranking
from adjudge.stats.detection import first_reaching
from adjudge.stats.estimate import Estimate
from adjudge.stats.resampling import generator

HALF = 0.5
_TARGETS = (HALF, 0.9)
_MOST_ROWS = 5_000_000
"""Rows beyond which random scores are not drawn."""
_UNITS = {"m": "m", "mps": "m/s", "mps2": "m/s²", "radps": "rad/s", "s": "s"}
_KEYS = ("attacks_judged", "attacks_with_recall_below_half", "min_detectable_magnitude", "shifted_condition")

Row = dict[str, Any]


def unit_of(parameter: str | None) -> str:
    """The unit of an attack's size, by the last word of the parameter that is its size."""
    return _UNITS.get((parameter or "").rpartition("_")[2], "")


def negative_results(rows: Sequence[Row], smallest: Mapping[str, Row], shifted: Any) -> Row:
    """What a reviewer must see: attacks and sizes that are mostly missed, the smallest detectable size, shifts."""
    return {
        "attacks_judged": len({row["attack"] for row in rows}),
        "attacks_with_recall_below_half": [
            {name: row[name] for name in ("attack", "magnitude", "recall")} for row in _poor(rows)
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


def minimum_magnitudes(measures: Measures, sizes: Mapping[str, str]) -> dict[str, Row]:
    """Per attack the smallest magnitude with recall of at least .5 and .9, by a monotone fit; null when none.

    Beside it stand the sizes that were tried: a smallest detectable size that is the smallest tried is a bound.
    `sizes` names the parameter that is an attack's size.
    """
    groups: dict[str, dict[int, float]] = {}
    for index in measures.test.tolist():
        item = measures.table.sequences[index]
        if item.attack is not None and item.magnitude is not None:
            groups.setdefault(item.attack, {})[index] = abs(item.magnitude)
    smallest: dict[str, Row] = {}
    for attack, magnitudes in sorted(groups.items()):
        part = measures.decisions.take(np.array([*magnitudes], dtype=np.intp))
        tried = [*magnitudes.values()]
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
        lacking = f"the negative results lack {', '.join(left_out) or 'a section'}"
        raise ProtocolViolation(f"metrics.complete: {lacking}; they cannot be left out")


def controls(measures: Measures, auroc: Estimate) -> list[Row]:
    """Each control with its outcome, the estimate behind it, and the reason."""
    why = "the detector sees no labels, so exchanged attack windows cannot change what it learns"
    permuted = _control("permuted_windows", NOT_APPLICABLE, why)
    return [permuted, _shifted(measures, auroc), _random(measures)]


def _control(name: str, outcome: str, why: str, auroc: Estimate | None = None) -> Row:
    return {"name": name, "outcome": outcome, "auroc": None if auroc is None else auroc.to_dict(), "why": why}


def _shifted(measures: Measures, auroc: Estimate) -> Row:
    """Windows moved by half a flight under the same scores: a detector that knows only the flight keeps its AUROC.

    It fails when it keeps more than half of what it had above chance.
    """
    name = "shifted_windows"
    if auroc.value is None or auroc.low is None or auroc.low <= 0.5:
        return _control(name, NOT_APPLICABLE, "the detector is not above chance")
    attacked = measures.table.attacked
    parts = [attacked[measures.table.rows(int(index))] for index in measures.test]
    label = np.concatenate([np.roll(part, part.size // 2) for part in parts])[measures.sorted.order]
    moved = ranking.cluster_auroc(measures.sorted.slice(measures.test, label), stream=name, **measures.options)
    kept = moved.value is not None and moved.value - 0.5 > (auroc.value - 0.5) / 2
    why = "the AUROC falls when the windows are moved, as it must"
    if kept:
        why = "the AUROC stays when the windows are moved: the scores follow the flight, not the attack"
    return _control(name, FAIL if kept else PASS, why, moved)


def _random(measures: Measures) -> Row:
    name, table, test = "random_detector", measures.table, measures.test
    sizes = np.diff(table.edges)[test]
    if sizes.sum() > _MOST_ROWS:
        return _control(name, NOT_APPLICABLE, f"more than {_MOST_ROWS:,} rows")
    label = np.concatenate([table.label[:0], *(table.label[table.rows(index)] for index in test.tolist())])
    clusters = np.repeat(measures.sorted.flights[test].astype(np.int64), sizes)
    scores = generator(measures.options["seed"], name).random(label.size)
    judged = label != LEFT_OUT
    random_auroc = ranking.auroc_by_cluster(
        scores[judged], label[judged] == ATTACKED, clusters[judged], stream=name, **measures.options
    )
    if random_auroc.value is None or random_auroc.low is None or random_auroc.high is None:
        return _control(name, NOT_APPLICABLE, random_auroc.why or "there is no interval", random_auroc)
    holds = random_auroc.low <= 0.5 <= random_auroc.high
    why = "the interval of random scores contains .5" if holds else "the interval of random scores does not contain .5"
    return _control(name, PASS if holds else FAIL, why, random_auroc)
