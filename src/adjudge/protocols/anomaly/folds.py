"""Leave-one-flight-out: every flight is test once, with scaler and threshold fitted again; mean and variance over folds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from adjudge.protocols.anomaly.batch import LEFT_OUT, ScoreTable
from adjudge.protocols.anomaly.contract import calibrate
from adjudge.protocols.anomaly.judge import decide
from adjudge.protocols.anomaly.rows import Flight
from adjudge.protocols.anomaly.words import TEST, TRAIN, VAL
from adjudge.stats.ranking import auroc_value


def folds_of(flights: Sequence[Flight], val: int) -> Iterator[tuple[str, dict[str, list[Flight]]]]:
    """The flights by id stand in a circle: each is test once, the next `val` calibrate, the others train."""
    n = len(flights)
    val = min(val, n - 2)
    if val < 1:
        return
    for k, flight in enumerate(flights):
        others = [flights[(k + step) % n] for step in range(1, n)]
        yield flight.id, {TEST: [flight], VAL: others[:val], TRAIN: others[val:]}


def summary(folds: Sequence[tuple[str, ScoreTable]], target: float, consecutive: int) -> dict[str, Any]:
    """Every fold with its threshold and numbers; the mean and the variance (n − 1) of those that are defined."""
    measured = {flight: _fold(table, target, consecutive) for flight, table in folds}
    over: dict[str, Any] = {}
    for name in next(iter(measured.values())):
        values = np.array([row[name] for row in measured.values() if row[name] is not None], dtype=np.float64)
        over[name] = {
            "folds": int(values.size),
            "mean": float(values.mean()) if values.size else None,
            "variance": float(values.var(ddof=1)) if values.size > 1 else None,
        }
    return {"folds": [{"flight": flight, **row} for flight, row in measured.items()], "over_folds": over}


def _fold(table: ScoreTable, target: float, consecutive: int) -> dict[str, float | None]:
    threshold = calibrate(table, target, None).threshold
    test = np.array(table.of_split(TEST), dtype=np.intp)
    part = decide(table, threshold, consecutive).take(test)
    rows = np.concatenate([np.arange(table.edges[i], table.edges[i + 1]) for i in test])
    rows = rows[table.label[rows] != LEFT_OUT]
    tp, fp, fn, tn = (int(getattr(part, name).sum()) for name in ("tp", "fp", "fn", "tn"))
    return {
        "auroc": auroc_value(table.score[rows], table.attacked[rows]),
        "recall": _share(tp, tp + fn),
        "precision": _share(tp, tp + fp),
        "f1": _share(2 * tp, 2 * tp + fp + fn),
        "fpr": _share(fp, fp + tn),
        "detected_fraction": _share(int(part.windows_detected.sum()), int(part.windows.sum())),
        "threshold": threshold,
    }


def _share(top: int, bottom: int) -> float | None:
    return top / bottom if bottom else None
