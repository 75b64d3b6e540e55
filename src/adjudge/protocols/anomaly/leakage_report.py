"""The leakage report: split, column and code checks in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adjudge.protocols.anomaly.checks import FAIL, NOT_APPLICABLE, PASS, Check
from adjudge.protocols.anomaly.code_files import CodeReport, code_check, scan_paths
from adjudge.protocols.anomaly.leakage import (
    check_allowed,
    check_banned,
    check_covers,
    check_disjoint,
    check_no_shuffle,
    circular,
    content_of,
    correlations,
    feature_names,
)
from adjudge.protocols.anomaly.overlap import BOUND
from adjudge.protocols.anomaly.rows import Columns, Flight, read_flights, read_splits

_MARKS = {PASS: "ok     ", FAIL: "LEAK   ", NOT_APPLICABLE: "unknown"}
_INDENT = " " * 10


@dataclass(frozen=True)
class Limits:
    """What is allowed: correlation, shared rows, and what the columns are declared to be."""

    correlation: float = 0.9
    overlap: float = BOUND
    sources: Mapping[str, str] = field(default_factory=dict)
    sensors: Mapping[str, str] = field(default_factory=dict)
    imu_only: bool = False


@dataclass
class LeakageReport:
    """Every check that was made, and the code that was read."""

    checks: list[Check] = field(default_factory=list)
    code: CodeReport | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def leaks(self) -> int:
        """How many leaks were found."""
        return sum(len(check.reasons) for check in self.checks if check.leak)

    @property
    def unknown(self) -> list[str]:
        """The rules that could not be told."""
        return [check.code for check in self.checks if check.outcome == NOT_APPLICABLE and not check.moot]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for leakage_report.json and --json."""
        return {
            "leaks": self.leaks,
            "unknown": self.unknown,
            "checks": [check.to_dict() for check in self.checks],
            "code": None if self.code is None else self.code.to_dict(),
            "notes": self.notes,
        }

    def lines(self) -> list[str]:
        """The report for people."""
        shown = []
        for check in self.checks:
            mark = "warn   " if check.outcome == FAIL and check.warning else _MARKS[check.outcome]
            if check.moot:
                mark = "n/a    "
            shown.append(f"{mark} {check.code}")
            shown += [f"{_INDENT}{text}" for text in (*check.reasons, *check.notes)]
        shown += [f"note    {text}" for text in self.notes]
        counted = f"{self.leaks} leak{'' if self.leaks == 1 else 's'} found" if self.leaks else "no leak found"
        unknown = f"; unknown: {', '.join(self.unknown)}" if self.unknown else ""
        return [*shown, counted + unknown]


def look(
    *, splits: Path | None, data: Path | None, code: Sequence[Path], columns: Columns, limits: Limits
) -> LeakageReport:
    """Make every check that the given files allow."""
    report = LeakageReport()
    flights: list[Flight] = []
    if data is not None:
        read = read_flights(data, columns)
        flights = read.flights
        report.notes += read.notes
    if splits is not None:
        parted = read_splits(splits)
        report.notes += parted.notes
        content = content_of(flights, columns) if flights else None
        report.checks.append(check_disjoint(parted, content, bound=limits.overlap))
        if flights:
            report.checks.append(check_covers(parted, [flight.id for flight in flights]))
    if flights:
        features = feature_names(flights, columns)
        measured, notes = correlations(flights, features, columns)
        report.checks += [
            check_no_shuffle([(flight.id, flight.time) for flight in flights]),
            check_banned(features, limits.sensors),
            check_allowed(features, limits.sources, imu_only=limits.imu_only, sensors=limits.sensors),
            circular(measured, notes, limits.correlation),
        ]
    if code:
        report.code = scan_paths(code)
        report.checks.append(code_check(report.code))
    return report
