"""The leakage report: split, column and code checks in one place."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adjudge.protocols.anomaly.code_files import CodeReport, scan_paths
from adjudge.protocols.anomaly.flights import Columns, read_flights
from adjudge.protocols.anomaly.leakage import (
    Check,
    check_allowed,
    check_banned,
    check_circular,
    check_covers,
    check_disjoint,
    check_no_shuffle,
    feature_names,
)
from adjudge.protocols.anomaly.splits import read_splits

_MARKS = {"pass": "ok  ", "fail": "LEAK", "not_applicable": "n/a "}


@dataclass
class LeakageReport:
    """Every check that was made, and the code that was read."""

    checks: list[Check] = field(default_factory=list)
    code: CodeReport | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def leaks(self) -> int:
        """How many leaks were found."""
        found = sum(len(check.reasons) for check in self.checks if check.leak)
        return found + (len(self.code.leaks) if self.code is not None else 0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for leakage_report.json and --json."""
        code = None
        if self.code is not None:
            code = {
                "files": self.code.files,
                "skipped_unit_tests": self.code.skipped,
                "unread": self.code.unread,
                "leaks": [leak._asdict() for leak in self.code.leaks],
            }
        return {
            "leaks": self.leaks,
            "checks": [check.to_dict() for check in self.checks],
            "code": code,
            "notes": self.notes,
        }

    def lines(self) -> list[str]:
        """The report for people."""
        shown = []
        for check in self.checks:
            mark = "warn" if check.outcome == "fail" and check.warning else _MARKS[check.outcome]
            shown.append(f"{mark} {check.code}")
            shown += [f"       {text}" for text in (*check.reasons, *check.notes)]
        if self.code is not None:
            mark = _MARKS["fail" if self.code.leaks else "pass"]
            skipped = f", {self.code.skipped} unit tests left out" if self.code.skipped else ""
            shown.append(f"{mark} code ({self.code.files} files{skipped})")
            shown += [f"       {leak.place}: {leak.code}: {leak.why}" for leak in self.code.leaks]
            shown += [f"       {text}" for text in self.code.unread]
        shown += [f"note {text}" for text in self.notes]
        shown.append(f"{self.leaks} leak{'' if self.leaks == 1 else 's'} found" if self.leaks else "no leak found")
        return shown


def look(
    *,
    splits: Path | None,
    data: Path | None,
    code: list[Path],
    columns: Columns,
    threshold: float,
    sources: dict[str, str] | None = None,
    imu_only: bool = False,
) -> LeakageReport:
    """Make every check that the given files allow."""
    report = LeakageReport()
    flights = read_flights(data, columns) if data is not None else []
    if splits is not None:
        parted = read_splits(splits)
        report.notes += parted.notes
        report.checks.append(check_disjoint(parted, flights, columns))
        if flights:
            report.checks.append(check_covers(parted, [flight.id for flight in flights]))
    if flights:
        features = feature_names(flights, columns)
        report.checks += [
            check_no_shuffle([(flight.id, flight.time) for flight in flights]),
            check_banned(features),
            check_allowed(features, sources or {}, imu_only=imu_only),
            check_circular(flights, features, columns, threshold),
        ]
    if code:
        report.code = scan_paths(code)
    return report
