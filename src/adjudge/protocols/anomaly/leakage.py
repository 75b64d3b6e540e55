"""Leaks in splits and columns: rules 1 and 4 of the contract over flights that are at hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.protocols.anomaly.flights import Columns, Flight, Floats
from adjudge.protocols.anomaly.splits import SPLITS, Splits
from adjudge.protocols.anomaly.words import banned

PASS, FAIL, NOT_APPLICABLE = "pass", "fail", "not_applicable"
_RAW = tuple(f"gps_{axis}" for axis in ("x", "y", "z", "vx", "vy", "vz")) + tuple(
    f"imu_{axis}" for axis in ("ax", "ay", "az", "wx", "wy", "wz")
)
_ATTITUDE = ("roll", "pitch", "yaw")
_CONSTANT = 1e-12


@dataclass
class Check:
    """What one rule of the contract found: an outcome, every reason, and whether a failure is only a warning."""

    code: str
    outcome: str = PASS
    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warning: bool = False
    observed: float | None = None

    def fail(self, reason: str) -> None:
        """Add a reason to fail."""
        self.outcome = FAIL
        self.reasons.append(reason)

    @property
    def leak(self) -> bool:
        """Whether the rule failed and is not only a warning."""
        return self.outcome == FAIL and not self.warning

    def to_dict(self) -> dict[str, Any]:
        """Plain data for leakage_report.json."""
        return {
            "code": self.code,
            "outcome": self.outcome,
            "severity": "WARNING" if self.warning else "CRITICAL" if self.outcome == FAIL else "INFO",
            "reasons": self.reasons,
            "notes": self.notes,
            "observed": self.observed,
        }


def merged(checks: Sequence[Check]) -> dict[str, Check]:
    """One check a code: a failure wins over a pass, a pass over what could not be checked; all reasons are kept."""
    found: dict[str, Check] = {}
    for check in checks:
        known = found.get(check.code)
        if known is None or (known.outcome == NOT_APPLICABLE and check.outcome != NOT_APPLICABLE):
            found[check.code] = check
        elif check.outcome != NOT_APPLICABLE:
            found[check.code] = Check(
                check.code,
                FAIL if FAIL in {known.outcome, check.outcome} else PASS,
                known.reasons + check.reasons,
                known.notes + check.notes,
                known.warning or check.warning,
                check.observed if known.observed is None else known.observed,
            )
    return found


def not_applicable(code: str, reason: str) -> Check:
    """A rule that could not be checked, and why."""
    return Check(code, NOT_APPLICABLE, [reason])


def check_disjoint(splits: Splits, flights: Sequence[Flight] = (), columns: Columns | None = None) -> Check:
    """`split.disjoint`: every flight in one split, by id and by content, and no split empty."""
    check = Check("split.disjoint")
    for split in SPLITS:
        ids = splits.of(split)
        if not ids:
            check.fail(f"the split {split} is empty")
        for name, times in Counter(ids).items():
            if times > 1:
                check.notes.append(f"flight {name} is listed {times} times in {split}")
    for one, other in combinations(SPLITS, 2):
        for name in sorted(set(splits.of(one)) & set(splits.of(other))):
            check.fail(f"flight {name} is in {one} and in {other}")
    if flights:
        for text in _same_content(splits, flights, columns or Columns()):
            check.fail(text)
    return check


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
            row = int(back[0])
            check.fail(
                f"flight {name}: time does not run forward at row {row + 2} ({time[row]:g} then {time[row + 1]:g}), "
                f"{back.size} times in all"
            )
    return check


def check_banned(features: Sequence[str]) -> Check:
    """`feature.banned`: no sensor that is fused, filtered, derived or a label."""
    check = Check("feature.banned")
    for name in features:
        reason = banned(name)
        if reason is not None:
            check.fail(f"{name}: {reason}")
    return check


def check_allowed(features: Sequence[str], sources: dict[str, str], *, imu_only: bool = False) -> Check:
    """`feature.allowed`: raw channels are safe; attitude only from the IMU; all else must name its source."""
    check = Check("feature.allowed", warning=True)
    for name in features:
        if name in _RAW or banned(name) is not None or name in sources or (name in _ATTITUDE and imu_only):
            continue
        if name in _ATTITUDE:
            check.fail(f"{name}: attitude is allowed only with `imu_only: true`")
        else:
            check.fail(f"{name}: its source is not declared")
    return check


def check_circular(flights: Sequence[Flight], features: Sequence[str], columns: Columns, threshold: float) -> Check:
    """`feature.circular`: |correlation| within flights of a feature with target or label, and of gps with imu."""
    return circular(*correlations(flights, features, columns), threshold)


def circular(found: Sequence[Sequence[Any]] | None, notes: Sequence[str], threshold: float) -> Check:
    """`feature.circular` from correlations that were measured."""
    if found is None:
        return not_applicable("feature.circular", "no target, no label and no independent groups to test against")
    if not found:
        return Check("feature.circular", NOT_APPLICABLE, ["no pair of columns could be tested"], list(notes))
    check = Check("feature.circular", notes=list(notes), observed=max(abs(value) for *_, value in found))
    for one, other, kind, value in found:
        if abs(value) > threshold:
            check.fail(f"{one} and {other}: {kind} correlation {value:.3f} within flights, allowed {threshold:g}")
    return check


def correlations(
    flights: Sequence[Flight], features: Sequence[str], columns: Columns
) -> tuple[list[tuple[str, str, str, float]] | None, list[str]]:
    """(one, other, kind, correlation within flights) of every pair to test, None where there is none; and notes."""
    against = [name for name in (columns.target, columns.label) if name and flights and name in flights[0].columns]
    gps = [name for name in features if name.startswith("gps_")]
    imu = [name for name in features if name.startswith("imu_")]
    pairs = [*product(features, against), *product(gps, imu)]
    if not pairs:
        return None, []
    notes = []
    usable: dict[str, tuple[Floats, Floats]] = {}
    for name in sorted({name for pair in pairs for name in pair}):
        values = [flight.columns[name] for flight in flights]
        if any(np.isnan(part).any() for part in values):
            rows = sum(int(np.isnan(part).sum()) for part in values)
            notes.append(f"{name}: not tested, {rows} rows are no number")
            continue
        centred = np.concatenate([part - part.mean() for part in values])
        if float(np.abs(centred).max(initial=0.0)) <= _CONSTANT:
            notes.append(f"{name}: not tested, it is constant within every flight")
            continue
        usable[name] = (centred, np.concatenate([_ranks(part) for part in values]))
    found = [
        (one, other, kind, float(np.corrcoef(usable[one][index], usable[other][index])[0, 1]))
        for one, other in pairs
        if one in usable and other in usable
        for index, kind in enumerate(("Pearson", "Spearman"))
    ]
    return found, notes


def feature_names(flights: Sequence[Flight], columns: Columns) -> list[str]:
    """The columns of the data that are neither flight, time, label nor target."""
    return [name for name in flights[0].columns if name not in columns.special()] if flights else []


def _ranks(values: Floats) -> Floats:
    from scipy.stats import rankdata

    ranks: Floats = np.asarray(rankdata(values), dtype=np.float64)
    ranks -= ranks.mean()
    return ranks


def _same_content(splits: Splits, flights: Sequence[Flight], columns: Columns) -> list[str]:
    by_id = {flight.id: flight for flight in flights}
    features = [name for name in feature_names(flights, columns) if name != columns.label]
    hashed: dict[str, NDArray[np.uint64]] = {}
    for flight in flights:
        hashed[flight.id] = _row_hashes(flight.matrix(features))
    where = [(split, name) for split in SPLITS for name in dict.fromkeys(splits.of(split)) if name in by_id]
    found = []
    for (split_a, a), (split_b, b) in combinations(where, 2):
        if split_a == split_b or a == b:
            continue
        short, long = sorted((a, b), key=lambda name: hashed[name].size)
        if hashed[short].size < 2 or not _contained(hashed[short], hashed[long]):
            continue
        if hashed[short].size == hashed[long].size:
            found.append(f"flights {a} ({split_a}) and {b} ({split_b}) hold the same rows under two names")
        else:
            inside, outside = (split_a, split_b) if short == a else (split_b, split_a)
            found.append(f"flight {short} ({inside}) is contained in flight {long} ({outside})")
    return found


def _row_hashes(matrix: Floats) -> NDArray[np.uint64]:
    # A polynomial in the bits of the values, with odd multipliers; -0.0 and 0.0 are one value.
    bits = np.ascontiguousarray(matrix + 0.0).view(np.uint64)
    total = np.full(matrix.shape[0], 1469598103934665603, dtype=np.uint64)
    for column in bits.T:
        mixed = (column ^ (column >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        total = (total ^ mixed) * np.uint64(1099511628211)
        total ^= total >> np.uint64(32)
    return total


def _contained(short: NDArray[np.uint64], long: NDArray[np.uint64]) -> bool:
    needle, hay = short.tobytes(), long.tobytes()
    place = hay.find(needle)
    while place >= 0 and place % 8:
        place = hay.find(needle, place + 1)
    return place >= 0
