"""The leakage report: split, column and code checks in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adjudge.protocols.anomaly.checks import FAIL, NOT_APPLICABLE, PASS, Check
from adjudge.protocols.anomaly.code_files import CodeReport, code_check, scan_paths
from adjudge.protocols.anomaly.leakage import (
    check_disjoint,
    check_no_shuffle,
    column_checks,
    data_record,
    feature_names,
    split_checks,
)
from adjudge.protocols.anomaly.rows import DataOptions, Flight, read_flights, read_splits

_MARKS = {PASS: "ok     ", FAIL: "LEAK   ", NOT_APPLICABLE: "unknown"}
_INDENT = " " * 10


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


def look(*, splits: Path | None, data: Path | None, code: Sequence[Path], options: DataOptions) -> LeakageReport:
    """Make every check that the given files allow."""
    report = LeakageReport()
    flights: list[Flight] = []
    record: dict[str, Any] = {}
    if data is not None:
        read = read_flights(data, options)
        flights = read.flights
        report.notes += read.notes
        record = data_record(flights, feature_names(flights, options), options)
    if splits is not None:
        parted = read_splits(splits)
        report.notes += parted.notes
        present = [flight.id for flight in flights]
        report.checks += split_checks(parted, record, present, options) if flights else [check_disjoint(parted)]
    if flights:
        report.checks.append(check_no_shuffle([(flight.id, flight.time) for flight in flights]))
        report.checks += column_checks(record, options)
    if code:
        report.code = scan_paths(code)
        report.checks.append(code_check(report.code))
    return report
