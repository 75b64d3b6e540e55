"""Leaks in splits and columns: rules 1 and 4 of the contract over flights that are at hand; and the report of all leaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adjudge.evidence.rule import Floats
from adjudge.protocols.anomaly.attacks import ACCELERATION, GYRO, POSITION, VELOCITY
from adjudge.protocols.anomaly.checks import FAIL, NOT_APPLICABLE, PASS, Check
from adjudge.protocols.anomaly.code_files import CodeReport, code_check, scan_paths
from adjudge.protocols.anomaly.overlap import overlap
from adjudge.protocols.anomaly.rows import OVERLAP_BOUND, SPLITS, DataOptions, Flight, Splits, read_flights, read_splits
from adjudge.protocols.anomaly.words import TRAIN, banned

_RAW = frozenset({*POSITION, *VELOCITY, *ACCELERATION, *GYRO})
_ATTITUDE = ("roll", "pitch", "yaw")
_CONSTANT = 1e-12
_FEWEST_ROWS = 20
"""Rows with both values that a correlation needs."""
_WHOLE = 0.99


class Correlation(NamedTuple):
    """The correlation of two columns within flights, of its kind, over the rows that have both."""

    one: str
    other: str
    kind: str
    value: float
    n: int


class Content(NamedTuple):
    """What the rows of flights say of copies: (flight, other, share of its rows), and flights too coarse to tell."""

    pairs: Sequence[Sequence[Any]]
    coarse: Sequence[str]
    notes: Sequence[str]


def content_of(flights: Sequence[Flight], options: DataOptions) -> Content:
    """The rows that flights share, by content."""
    ignored = {name for name in (options.label_column, options.target_column) if name}
    measured = overlap(flights, ignored)
    pairs = [tuple(pair) for pair in measured.pairs]
    for one, other in combinations([flight for flight in flights if flight.id in measured.coarse], 2):
        names = sorted((set(one.columns) & set(other.columns)) - ignored - set(measured.ignored))
        pairs += _contained(one, other, names)
    notes = []
    if measured.ignored:
        notes.append(f"taken for clocks or counters, and not compared: {', '.join(measured.ignored)}")
    if measured.sampled:
        notes.append("rows were compared in blocks, a part of them, because there are very many")
    return Content(pairs, measured.coarse, notes)


def _contained(one: Flight, other: Flight, names: Sequence[str]) -> list[tuple[str, str, float]]:
    """Whether the whole shorter flight stands in the longer, row by row; for values that repeat too often to count."""
    short, long = sorted((one, other), key=lambda flight: flight.n)
    needle, hay = (np.ascontiguousarray(flight.matrix(names) + 0.0) for flight in (short, long))
    width = needle.shape[1] * 8
    if short.n < _FEWEST_ROWS or not width or len(np.unique(needle, axis=0)) < 2:
        return []
    place = hay.tobytes().find(needle.tobytes())
    if place < 0 or place % width:
        return []
    return [(short.id, long.id, 1.0), (long.id, short.id, short.n / long.n)]


def check_disjoint(
    splits: Splits, content: Content | None = None, *, bound: float = OVERLAP_BOUND, folds: bool = False
) -> Check:
    """`split.disjoint`: every flight in one split, by id and by content; no split empty; no flight twice in one.

    With `folds` every flight is test once, so a copy within train is a leak too.
    """
    check = Check("split.disjoint")
    for split in SPLITS:
        ids = splits.of(split)
        if not ids:
            check.fail(f"the split {split} is empty")
        listed = ((name, times) for name, times in Counter(ids).items() if times > 1)
        check.notes += [f"flight {name} is listed {times} times in {split}" for name, times in listed]
    for one, other in combinations(SPLITS, 2):
        for name in sorted(set(splits.of(one)) & set(splits.of(other))):
            check.fail(f"flight {name} is in {one} and in {other}")
    if content is None:
        return check
    where = {name: split for split in SPLITS for name in splits.of(split)}
    shares = {(a, b): float(share) for a, b, share in content.pairs if a in where and b in where}
    check.observed = max((share for (a, b), share in shares.items() if where[a] != where[b]), default=0.0)
    check.notes += content.notes
    for a, b in sorted({tuple(sorted(pair, key=lambda name: (SPLITS.index(where[name]), name))) for pair in shares}):
        text = _copied(a, b, where, shares.get((a, b), 0.0), shares.get((b, a), 0.0), bound)
        if text is not None and where[a] == where[b] == TRAIN and not folds:
            check.notes.append(text)
        elif text is not None:
            check.fail(text)
    coarse = [name for name in content.coarse if name in where]
    if coarse and check.outcome != FAIL:
        named = ", ".join(coarse[:3]) + (" …" if len(coarse) > 3 else "")
        why = f"the values of {len(coarse)} flights ({named}) repeat too often to tell a partial copy"
        return Check.unknown(check.code, why, check.notes)
    return check


def _copied(a: str, b: str, where: Mapping[str, str], of_a: float, of_b: float, bound: float) -> str | None:
    """What two flights share, in words, where it is more than the bound."""
    if max(of_a, of_b) <= bound:
        return None
    in_a, in_b = f"{a} ({where[a]})", f"{b} ({where[b]})"
    again = "; a flight counts once" if where[a] == where[b] else ""
    if min(of_a, of_b) >= _WHOLE:
        return f"flights {in_a} and {in_b} hold the same rows under two names{again}"
    if max(of_a, of_b) >= _WHOLE:
        inside, outside = (in_a, in_b) if of_a > of_b else (in_b, in_a)
        return f"flight {inside} is contained in flight {outside}{again}"
    return f"{100 * of_b:.3g} % of the rows of flight {in_b} stand in flight {in_a} too{again}"


def check_covers(splits: Splits, present: Sequence[str]) -> Check:
    """`split.covers`: every flight of the data is assigned, every assigned flight is in the data."""
    check = Check("split.covers")
    assigned = {name for split in SPLITS for name in splits.of(split)}
    for name in sorted(set(present) - assigned):
        check.fail(f"flight {name} is in the data and in no split")
    for name in sorted(assigned - set(present)):
        check.fail(f"flight {name} is in splits.json and not in the data")
    return check


def check_no_shuffle(times: Sequence[tuple[str, Floats]]) -> Check:
    """`split.no_shuffle`: time runs forward within each flight."""
    check = Check("split.no_shuffle")
    for name, time in times:
        if not np.isfinite(time).all():
            check.fail(f"flight {name} has a time that is no number at row {int(np.argmin(np.isfinite(time))) + 1}")
            continue
        back = np.flatnonzero(np.diff(time) <= 0)
        if back.size:
            first, second = time[back[0] : back[0] + 2]
            shown = f"({first:.15g} then {second:.15g}), {back.size} times in all"
            check.fail(f"flight {name}: time does not run forward at row {back[0] + 2} {shown}")
    return check


def check_banned(features: Sequence[str], sensors: Mapping[str, str] | None = None) -> Check:
    """`feature.banned`: no sensor that is fused, filtered, derived or a label; `sensors` says what a column is."""
    check = Check("feature.banned")
    for name in features:
        known_as = (sensors or {}).get(name)
        reason = banned(known_as or name)
        if reason is not None:
            check.fail(f"{name}{f' (declared as {known_as})' if known_as else ''}: {reason}")
    return check


def check_allowed(features: Sequence[str], options: DataOptions) -> Check:
    """`feature.allowed`: raw channels are safe; attitude only from the IMU; all else must name its source."""
    check = Check("feature.allowed", warning=True)
    for name in features:
        known_as = options.sensors.get(name, name)
        declared = name in options.sources or (known_as in _ATTITUDE and options.imu_only)
        if not declared and known_as not in _RAW and banned(known_as) is None:
            attitude = "attitude is allowed only with `imu_only: true`"
            check.fail(f"{name}: {attitude if known_as in _ATTITUDE else 'its source is not declared'}")
    return check


def circular(measured: Sequence[Sequence[Any]] | None, notes: Sequence[str], threshold: float) -> Check:
    """`feature.circular` from correlations that were measured: none above the threshold, every pair with enough rows."""
    code = "feature.circular"
    if measured is None:
        return Check.not_needed(code, "no target, no label and no independent groups to test against")
    pairs = [Correlation(*row) for row in measured]
    tested = [pair for pair in pairs if pair.n >= _FEWEST_ROWS]
    if not tested:
        return Check.unknown(code, "no pair of columns could be tested", notes)
    check = Check(code, notes=list(notes), observed=max(abs(pair.value) for pair in tested))
    for one, other, kind, value, n in tested:
        if abs(value) > threshold:
            measured_as = f"{kind} correlation {value:.3f} within flights"
            check.fail(f"{one} and {other}: {measured_as}, allowed {threshold:g} (n={n})")
    few = sorted({(pair.one, pair.other, pair.n) for pair in pairs if pair.n < _FEWEST_ROWS})
    if few and check.outcome != FAIL:
        one, other, n = few[0]
        why = f"{len(few)} pairs have too few rows with both values ({one} and {other}: {n}, needed {_FEWEST_ROWS})"
        return Check.unknown(code, why, notes)
    return check


def correlations(
    flights: Sequence[Flight], features: Sequence[str], options: DataOptions
) -> tuple[list[Correlation] | None, list[str]]:
    """Both correlations within flights of every pair to test, None where there is none; and notes."""
    columns = flights[0].columns if flights else {}
    against = [name for name in (options.target_column, options.label_column) if name and name in columns]
    gps, imu = ([name for name in features if name.startswith(group)] for group in ("gps_", "imu_"))
    pairs = [*product(features, against), *product(gps, imu)]
    if not pairs:
        return None, []
    notes: list[str] = []
    usable: dict[str, tuple[Floats, Floats] | None] = {}
    for name in sorted({name for pair in pairs for name in pair}):
        parts = [flight.columns[name] for flight in flights]
        blank = sum(int(np.isnan(part).sum()) for part in parts)
        if blank:
            notes.append(f"{name}: {blank} rows are no number; pairs are tested on the others")
            usable[name] = None
        elif _is_constant(centred := _centred(parts)):
            notes.append(f"{name}: not tested, it is constant within every flight")
        else:
            usable[name] = centred
    measured = []
    for one, other in (pair for pair in pairs if pair[0] in usable and pair[1] in usable):
        a, b = usable[one], usable[other]
        if a is None or b is None:
            shared = [np.isfinite(flight.matrix((one, other))).all(axis=1) for flight in flights]
            both = [(flight.columns, rows) for flight, rows in zip(flights, shared, strict=True) if rows.any()]
            a, b = (_centred([columns[name][rows] for columns, rows in both]) for name in (one, other))
            n = a[0].size
            if n < _FEWEST_ROWS:
                measured.append(Correlation(one, other, "Pearson", 0.0, n))
                continue
            if _is_constant(a) or _is_constant(b):
                notes.append(f"{one} and {other}: not tested, one is constant on the {n} rows that have both")
                continue
        for kind, x, y in zip(("Pearson", "Spearman"), a, b, strict=True):
            measured.append(Correlation(one, other, kind, float(np.corrcoef(x, y)[0, 1]), int(x.size)))
    return measured, notes


def _centred(parts: Sequence[Floats]) -> tuple[Floats, Floats]:
    """The values of a column and their ranks, flight after flight, each less its mean within the flight."""
    from scipy.stats import rankdata

    both = (parts, [rankdata(part) for part in parts])
    values, ranks = (np.concatenate([np.zeros(0), *(part - part.mean() for part in each)]) for each in both)
    return values, ranks


def _is_constant(centred: tuple[Floats, Floats]) -> bool:
    return bool(np.abs(centred[0]).max(initial=0.0) <= _CONSTANT)


def data_record(flights: Sequence[Flight], features: Sequence[str], options: DataOptions) -> dict[str, Any]:
    """What the checks of splits and columns need to know of flights, as a run keeps it."""
    measured, notes = correlations(flights, features, options)
    return {
        "features": list(features),
        "flights": {flight.id: flight.digest() for flight in flights},
        "shared_rows": content_of(flights, options)._asdict(),
        "correlations": measured,
        "correlation_notes": notes,
    }


def split_checks(
    splits: Splits, record: Mapping[str, Any], present: Sequence[str], options: DataOptions, *, folds: bool = False
) -> list[Check]:
    """`split.disjoint` and `split.covers`, of the flights that are present and the rows they share."""
    content = Content(**(record.get("shared_rows") or {"pairs": (), "coarse": (), "notes": ()}))
    disjoint = check_disjoint(splits, content, bound=options.overlap_bound, folds=folds)
    return [disjoint, check_covers(splits, present)]


def column_checks(record: Mapping[str, Any], options: DataOptions) -> list[Check]:
    """The checks `feature.…` of the columns of a record."""
    features = list(record.get("features") or ())
    notes = record.get("correlation_notes") or ()
    return [
        check_banned(features, options.sensors),
        check_allowed(features, options),
        circular(record.get("correlations"), notes, options.correlation_threshold),
    ]


def feature_names(flights: Sequence[Flight], options: DataOptions) -> list[str]:
    """The columns of the data that are neither flight, time, label nor target."""
    return [name for name in flights[0].columns if name not in options.special] if flights else []


_MARKS = {PASS: "ok", FAIL: "LEAK", NOT_APPLICABLE: "unknown"}
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
            warned = check.outcome == FAIL and check.warning
            mark = "n/a" if check.moot else "warn" if warned else _MARKS[check.outcome]
            shown += [f"{mark:<7} {check.code}", *(f"{_INDENT}{text}" for text in (*check.reasons, *check.notes))]
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
