"""What a page shows of an opened sequence: its score over time, the threshold, the attack and the alarms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.evidence.rule import Floats
from adjudge.protocols.anomaly.batch import ATTACKED, LEFT_OUT, ScoreTable
from adjudge.protocols.anomaly.judge import alarm_rows
from adjudge.protocols.anomaly.samples import SCORES, load_scores
from adjudge.runs.run import Run
from adjudge.runs.section import Panel

_POINTS, _ALL_POINTS, _SPANS = 400, 1_000_000, 60
"""Points of one sequence and of all, and spans of a kind, beyond which a drawing says no more."""


def panels(run: Run) -> list[Panel]:
    """The series, and the counts at the threshold."""
    kept = (run.path / SCORES).is_file()
    return [
        Panel(
            "series",
            "Score over time",
            columns={"series": "@series"},
            options={"unit": "s"},
            note=f"Where there are more than {_POINTS} rows, the band spans the lowest and highest score around each point.",
            missing="The scores were not kept in the run (--no-scores).",
            values=_series if kept else None,
        ),
        Panel(
            "pairs",
            "At the threshold",
            columns={
                "attack": "attack",
                "magnitude": "magnitude",
                "attacked stretches": "windows",
                "of these detected": "windows_detected",
                "alarms raised": "response",
                "alarms in an attack": "true_events",
                "latency, ms": "latency_ms",
                "attacked rows with alarm": "tp",
                "attacked rows without": "fn",
                "normal rows with alarm": "fp",
                "normal rows without": "tn",
            },
        ),
    ]


def _series(run: Run, samples: pa.Table, outputs: pa.Table | None) -> Mapping[str, Sequence[Any]]:
    """Of every sequence the score by time, thinned, with its threshold and spans."""
    del outputs
    by_model = load_scores(run.path / SCORES)
    tables = {model: parts[None] for model, parts in by_model.items() if None in parts}
    places = {
        (model, item.id): place
        for model, table in tables.items()
        for place, item in enumerate(table.sequences)
        if item.split == "test"
    }
    most = max(20, min(_POINTS, _ALL_POINTS // max(1, samples.num_rows)))
    keys = zip(samples.column("model").to_pylist(), samples.column("sample").to_pylist(), strict=True)
    return {
        "series": [
            None if (model, name) not in places else _drawn(run, model, tables[model], places[model, name], most)
            for model, name in keys
        ]
    }


def _drawn(run: Run, model: str, table: ScoreTable, place: int, most: int) -> dict[str, Any]:
    rows = table.rows(place)
    time, score, label = table.time[rows], table.score[rows], table.label[rows]
    numbers = run.metrics["detectors"][model] if "detectors" in run.metrics else run.metrics
    known = numbers["calibration"]
    marked = {"attack": label == ATTACKED, "alarm": alarm_rows(score, known["threshold"], known["n_consecutive"])}
    if (label == LEFT_OUT).any():
        marked["left out"] = label == LEFT_OUT
    at, low, high = _thinned(time, score, most)
    return {
        "t": at,
        "low": low,
        "high": high,
        "threshold": known["threshold"],
        "spans": [
            {"label": name, "kind": name.replace(" ", "-"), "at": _spans(time, mask)} for name, mask in marked.items()
        ],
    }


def _thinned(time: Floats, score: Floats, most: int) -> tuple[list[float], list[float], list[float]]:
    """At most so many places in time, each with the lowest and the highest score up to the next."""
    edges = np.unique(np.linspace(0, time.size, min(most, time.size) + 1).astype(np.int64))[:-1]
    at = time[edges]
    return _short(at), _short(np.minimum.reduceat(score, edges)), _short(np.maximum.reduceat(score, edges))


def _short(values: Floats) -> list[float]:
    return [float(f"{value:.5g}") for value in np.nan_to_num(values).tolist()]


def _spans(time: Floats, mask: NDArray[np.bool_]) -> list[list[float]]:
    """From and to of every stretch that is marked."""
    edges = np.diff(np.concatenate([[0], mask.astype(np.int8), [0]]))
    begin, end = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    return [_short(time[[first, last]]) for first, last in zip(begin[:_SPANS], end[:_SPANS], strict=True)]
