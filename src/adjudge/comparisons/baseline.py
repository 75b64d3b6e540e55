"""A baseline: a small file to commit, and whether a run is worse than it beyond noise and margin.

The file holds the headline estimates with their intervals and the digests that say what was measured and how. A run is
held against it only where protocol, data, configuration and rules are the same.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from adjudge.comparisons.guard import INSTRUMENT
from adjudge.errors import ConfigError, NotComparable
from adjudge.runs.run import Run
from adjudge.stats.estimate import Estimate

SCHEMA = "adjudge-baseline/1"
T = TypeVar("T", bound=Any)
_NAMED_SLICES = 5
_COMPARED = ("dataset", "config", "constraint_library", "rules", "schema", "conditions")


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One estimate to hold; `better` says which way is better, `margin` how much worse is tolerated.

    Where no direction is declared, `better` is `same`: a change either way counts as worse.
    """

    name: str
    slice: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    better: Literal["higher", "lower", "same"] = "higher"
    margin: float | None = None


class Baseline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file."""

    schema: str = SCHEMA
    protocol: str
    protocol_version: str
    digests: dict[str, str]
    estimates: list[Entry]


class Regression(msgspec.Struct, frozen=True, kw_only=True):
    """One estimate held against the baseline; `difference` is now − baseline."""

    name: str
    slice: str
    better: str
    margin: float
    before: Estimate
    now: Estimate
    difference: Estimate
    outcome: Literal["pass", "fail", "unknown"]
    why: str


def baseline_of(run: Run, names: Sequence[str] = ()) -> Baseline:
    """The baseline of a run: the estimates named, otherwise the headline ones, otherwise the first eight.

    What has no value cannot be held and is left out; a baseline of nothing is refused.
    """
    estimates = run.estimates
    known = list(dict.fromkeys(name for name, _ in estimates))
    for name in names:
        if name not in known:
            raise ConfigError(f"there is no estimate {name!r}; the run has {', '.join(known)}")
    wanted = list(names) or [str(name) for name in run.metrics.get("headline") or known[:8]]
    if all(item.value is None for (name, _), item in estimates.items() if name in wanted):
        raise ConfigError(f"{run.path}: none of {', '.join(wanted)} has a value, so there is nothing to hold")
    return Baseline(
        protocol=run.manifest.protocol,
        protocol_version=run.manifest.protocol_version,
        digests={name: run.manifest.digests[name] for name in _COMPARED if name in run.manifest.digests},
        estimates=[
            Entry(
                name=name,
                slice=where,
                value=item.value,
                low=item.low,
                high=item.high,
                n=item.n,
                better=run.metric(name).better or "same",
            )
            for (name, where), item in estimates.items()
            if name in wanted and item.value is not None
        ],
    )


def write(stored: msgspec.Struct) -> bytes:
    """The bytes of a baseline, or of a sequential gate's state, readable in a diff."""
    return msgspec.json.format(msgspec.json.encode(stored), indent=1) + b"\n"


def read(path: Path) -> Baseline:
    """A baseline file; a wrong one is a ConfigError."""
    return stored(path, Baseline, SCHEMA, "is no baseline: {} (adjudge gate RUN --write-baseline FILE writes one)")


def stored(path: Path, kind: type[T], schema: str, wrong: str) -> T:
    """What `write` wrote of a kind that has a `schema`; of any other file `wrong` says what it is not."""
    try:
        value: T = msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path}: {wrong.format(error)}") from None
    if value.schema != schema:
        raise ConfigError(f"{path}: has schema {value.schema!r}, expected {schema!r}")
    return value


def hold(run: Run, baseline: Baseline, margins: Mapping[str, float] | None = None) -> list[Regression]:
    """Every estimate of the baseline against the run; raises NotComparable, with every reason, where they may not be.

    `margins` are by the name of the estimate, "" for all others; a margin in the file stands below them.
    """
    margins = margins or {}
    known = {entry.name for entry in baseline.estimates}
    for name, margin in margins.items():
        if margin < 0.0 or not math.isfinite(margin):
            raise ConfigError(f"margin {margin} is not a number of 0 or more")
        if name and name not in known:
            raise ConfigError(
                f"the baseline has no estimate {name!r} to give a margin; it has {', '.join(sorted(known))}"
            )
    reasons = list(_reasons(run, baseline))
    if reasons:
        raise NotComparable(reasons)
    estimates = run.estimates
    regressions = []
    for entry in baseline.estimates:
        stored = margins.get("", 0.0) if entry.margin is None else entry.margin
        regressions.append(_held(entry, estimates[entry.name, entry.slice], margins.get(entry.name, stored)))
    return regressions


def _reasons(run: Run, baseline: Baseline) -> Iterable[str]:
    manifest = run.manifest
    for what, now, before in (
        ("protocol", manifest.protocol, baseline.protocol),
        ("protocol version", manifest.protocol_version, baseline.protocol_version),
    ):
        if now != before:
            yield f"the {what} is {now!r}, in the baseline {before!r}"
    words = {"dataset": "data set", **INSTRUMENT}
    for name, before in baseline.digests.items():
        digest = manifest.digests.get(name)
        if digest != before:
            yield f"the {words.get(name, name)} is another one ({(digest or 'none')[:16]}, in the baseline {before[:16]})"
    absent: dict[str, list[str]] = {}
    for entry in baseline.estimates:
        if (entry.name, entry.slice) not in run.estimates:
            absent.setdefault(entry.slice, []).append(entry.name)
    slices = {where for _, where in run.estimates}
    unknown = [where for where in absent if where not in slices]
    if unknown:
        yield f"the baseline is of {_models_of(unknown)}, the run of {_models_of(slices)}"
    for where, names in absent.items():
        if where in slices:
            yield f"the run has no {', '.join(names)} for {where or 'the whole'}"


def _models_of(slices: Collection[str]) -> str:
    """The models among some slices, or the slices where none is one; a few of many."""
    models = sorted(where.removeprefix("model=") for where in slices if where.startswith("model="))
    names = models or sorted(filter(None, slices)) or ["no model"]
    return ", ".join(names[:_NAMED_SLICES]) + (f" and {len(names) - _NAMED_SLICES} more" * (len(names) > _NAMED_SLICES))


def _held(entry: Entry, now: Estimate, margin: float) -> Regression:
    why = None if entry.value is not None else "the baseline has no value"
    before = Estimate(value=entry.value, low=entry.low, high=entry.high, n=entry.n, why=why)
    difference = difference_of(now, before)
    outcome, why = _decide(difference, margin, entry.better)
    return Regression(
        name=entry.name,
        slice=entry.slice,
        better=entry.better,
        margin=margin,
        before=before,
        now=now,
        difference=difference,
        outcome=outcome,
        why=why,
    )


def difference_of(now: Estimate, before: Estimate) -> Estimate:
    """The difference, now − before, with the interval that the two intervals give (MOVER).

    Zou and Donner 2008, Stat Med 27:1693-1702: low = d − √((x₁ − l₁)² + (u₂ − x₂)²), high = d + √((u₁ − x₁)² + (x₂ − l₂)²).
    It takes the two as independent; on the same samples they rarely are, and the interval is then wider than needed.
    """
    if now.value is None or before.value is None:
        why = now.why if now.value is None else before.why
        return Estimate.null(why or "there is no value", n=now.n, method="MOVER")
    gap = now.value - before.value
    if now.low is None or now.high is None or before.low is None or before.high is None:
        return Estimate(value=gap, n=now.n, method="difference, no interval")
    return Estimate(
        value=gap,
        low=gap - math.hypot(now.value - now.low, before.high - before.value),
        high=gap + math.hypot(now.high - now.value, before.value - before.low),
        level=now.level,
        n=now.n,
        method="MOVER",
    )


def _decide(difference: Estimate, margin: float, better: str) -> tuple[Literal["pass", "fail", "unknown"], str]:
    if difference.value is None:
        return "unknown", difference.why or "there is no value"
    downwards = better == "higher" or (better == "same" and difference.value < 0.0)
    word = "changed" if better == "same" else "worse"
    worse = -difference.value if downwards else difference.value
    if worse <= margin:
        return "pass", f"not {word}" if worse <= 0.0 else f"{word}, but within the margin"
    if difference.low is None or difference.high is None:
        return "fail", f"{word} beyond the margin; without an interval the margin alone decides"
    least = -difference.high if downwards else difference.low
    if least > margin:
        return "fail", f"{word} beyond noise and margin"
    return "pass", f"{word}, but within the noise"
