"""What leakage_report.json must say: checks made again from what the run holds, held against the recorded ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adjudge.protocols.anomaly.batch import ScoreTable
from adjudge.protocols.anomaly.checks import Check
from adjudge.protocols.anomaly.config import AnomalyConfig
from adjudge.protocols.anomaly.contract import check_scored_splits
from adjudge.protocols.anomaly.leakage import (
    Content,
    check_allowed,
    check_banned,
    check_covers,
    check_disjoint,
    circular,
)
from adjudge.protocols.anomaly.splits import Splits


def missing_reasons(
    recorded: Sequence[Check], record: Mapping[str, Any], table: ScoreTable, splits: Splits, settings: AnomalyConfig
) -> list[str]:
    """Every reason that follows from the run's splits, scores and record, and that the recorded check lacks."""
    reasons_of = {check.code: set(check.reasons) for check in recorded}
    return [
        f"{check.code} does not say: {reason}"
        for check in _again(record, table, splits, settings)
        for reason in check.reasons
        if reason not in reasons_of.get(check.code, set())
    ]


def _again(record: Mapping[str, Any], table: ScoreTable, splits: Splits, settings: AnomalyConfig) -> Iterator[Check]:
    if settings.scores is not None:
        yield from check_scored_splits(table, splits, settings.overlap_bound)
        return
    features = list(record.get("features") or ())
    flights: dict[str, str] = record.get("flights") or {}
    content = Content(**(record.get("shared_rows") or {"pairs": (), "coarse": (), "notes": ()}))
    yield check_disjoint(splits, content, bound=settings.overlap_bound, folds=settings.leave_one_flight_out)
    yield check_covers(splits, [*flights, *(item.flight for item in table.sequences)])
    yield check_banned(features, settings.sensors)
    yield check_allowed(features, settings.sources, imu_only=settings.imu_only, sensors=settings.sensors)
    yield circular(record.get("correlations"), record.get("correlation_notes") or (), settings.correlation_threshold)
