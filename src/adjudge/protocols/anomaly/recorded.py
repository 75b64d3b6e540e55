"""What leakage_report.json must say: checks made again from what the run holds, held against the recorded ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from adjudge.protocols.anomaly.contract import check_scored_splits
from adjudge.protocols.anomaly.leakage import Check, check_allowed, check_banned, check_covers, check_disjoint, circular
from adjudge.protocols.anomaly.settings import AnomalyConfig
from adjudge.protocols.anomaly.splits import SPLITS, Splits
from adjudge.protocols.anomaly.table import ScoreTable


def missing_reasons(
    recorded: Sequence[Check], record: Mapping[str, Any], table: ScoreTable, splits: Splits, settings: AnomalyConfig
) -> list[str]:
    """Every reason that follows from the run's splits, scores and record, and that the recorded check lacks."""
    said = {check.code: set(check.reasons) for check in recorded}
    return [
        f"{check.code} does not say: {reason}"
        for check in _again(record, table, splits, settings)
        for reason in check.reasons
        if reason not in said.get(check.code, set())
    ]


def _again(record: Mapping[str, Any], table: ScoreTable, splits: Splits, settings: AnomalyConfig) -> Iterator[Check]:
    if settings.scores is not None:
        yield from check_scored_splits(table, splits)
        return
    features = list(record.get("features") or ())
    flights: dict[str, str] = record.get("flights") or {}
    disjoint = check_disjoint(splits)
    for text in _same_digest(splits, flights):
        disjoint.fail(text)
    yield disjoint
    yield check_covers(splits, [*flights, *(item.flight for item in table.sequences)])
    yield check_banned(features)
    yield check_allowed(features, settings.sources, imu_only=settings.imu_only)
    yield circular(record.get("correlations"), record.get("correlation_notes") or (), settings.correlation_threshold)


def _same_digest(splits: Splits, flights: Mapping[str, str]) -> Iterator[str]:
    """Flights of two splits with equal rows, by the digests that the run recorded of all flights."""
    where = [(split, name) for split in SPLITS for name in dict.fromkeys(splits.of(split)) if name in flights]
    for (split_a, a), (split_b, b) in combinations(where, 2):
        if split_a != split_b and a != b and flights[a] == flights[b]:
            yield f"flights {a} ({split_a}) and {b} ({split_b}) hold the same rows under two names"
