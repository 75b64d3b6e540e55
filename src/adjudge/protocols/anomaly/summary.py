"""The results of all detectors as one run: metrics, stamp, notes, and the tables of the reviewer's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.protocols.anomaly.judge import Judgement
from adjudge.protocols.anomaly.results import Result
from adjudge.protocols.anomaly.reviewer import reviewer_sections
from adjudge.protocols.anomaly.stamp import combined
from adjudge.protocols.base import Measured

Results = Sequence[tuple[Judgement, Result]]


def measured_of(results: Results, sizes: Mapping[str, str], *, several: bool, notes: Sequence[str]) -> Measured:
    """All numbers of a run; of several detectors every name carries its own."""
    counts = {judged.name: judged.buckets() for judged, _ in results}
    total = {key: sum(each[key] for each in counts.values()) for key in next(iter(counts.values()))}
    listed = [f"{judged.name}: {text}" if several else text for judged, each in results for text in each.notes]
    metrics: dict[str, Any] = {}
    for judged, each in results:
        metrics |= {f"{judged.name}/{name}" if several else name: value for name, value in each.metrics.items()}
    return Measured(
        [estimate for _, each in results for estimate in each.estimates],
        {**counts, "all": total},
        metrics,
        _top(results, several=several),
        [chart for _, each in results for chart in each.charts],
        list(dict.fromkeys([*listed, *notes])),
        reviewer_sections(results, sizes, several=several),
    )


def _top(results: Results, *, several: bool) -> dict[str, Any]:
    if not several:
        return results[0][1].top
    tops = {judged.name: each.top for judged, each in results}
    violations = [{"model": name, **item} for name, top in tops.items() for item in top["violations"]]
    return {"violations": violations, "detectors": tops, **combined(list(tops.values()))}
