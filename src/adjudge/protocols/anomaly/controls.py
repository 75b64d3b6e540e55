"""Controls that can fail: they show whether a detector follows the attack or something that goes with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjudge.protocols.anomaly.batch import ATTACKED, LEFT_OUT, ScoreTable
from adjudge.protocols.anomaly.checks import FAIL, NOT_APPLICABLE, PASS
from adjudge.protocols.anomaly.metrics import Measures
from adjudge.protocols.anomaly.words import TEST
from adjudge.stats import ranking
from adjudge.stats.estimate import Estimate
from adjudge.stats.resampling import generator

_MOST_ROWS = 5_000_000


def controls(measures: Measures, auroc: Estimate) -> list[dict[str, Any]]:
    """Each control with its outcome, the estimate behind it, and the reason."""
    why = "the detector sees no labels, so exchanged attack windows cannot change what it learns"
    permuted = _control("permuted_windows", NOT_APPLICABLE, why)
    return [permuted, _shifted(measures, auroc), _random(measures.table, measures.options)]


def _control(name: str, outcome: str, why: str, auroc: Estimate | None = None) -> dict[str, Any]:
    return {"name": name, "outcome": outcome, "auroc": None if auroc is None else auroc.to_dict(), "why": why}


def _shifted(measures: Measures, auroc: Estimate) -> dict[str, Any]:
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
    why = (
        "the AUROC stays when the windows are moved: the scores follow the flight, not the attack"
        if kept
        else "the AUROC falls when the windows are moved, as it must"
    )
    return _control(name, FAIL if kept else PASS, why, moved)


def _random(table: ScoreTable, options: dict[str, Any]) -> dict[str, Any]:
    name = "random_detector"
    test = table.of_split(TEST)
    rows = int(np.diff(table.edges)[test].sum())
    if rows > _MOST_ROWS:
        return _control(name, NOT_APPLICABLE, f"more than {_MOST_ROWS:,} rows")
    label = table.label[int(table.edges[test[0]]) : int(table.edges[test[-1] + 1])] if test else table.label[:0]
    _, code = np.unique([table.sequences[index].flight for index in test], return_inverse=True)
    clusters = np.repeat(code.astype(np.int64), np.diff(table.edges)[test])
    scores = generator(options["seed"], name).random(rows)
    judged = label != LEFT_OUT
    random_auroc = ranking.auroc_by_cluster(
        scores[judged], label[judged] == ATTACKED, clusters[judged], stream=name, **options
    )
    if random_auroc.value is None or random_auroc.low is None or random_auroc.high is None:
        return _control(name, NOT_APPLICABLE, random_auroc.why or "there is no interval", random_auroc)
    holds = random_auroc.low <= 0.5 <= random_auroc.high
    why = "the interval of random scores contains .5" if holds else "the interval of random scores does not contain .5"
    return _control(name, PASS if holds else FAIL, why, random_auroc)
