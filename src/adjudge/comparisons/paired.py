"""One outcome of two systems on the same samples: difference, interval, tests, what n could show, the verdict.

Differences are second − first. A yes-or-no outcome of independent samples is tested by McNemar and has Newcombe's
paired interval; a mean, and any outcome whose samples come in clusters, is tested by flipping signs and has a paired
bootstrap interval, both by cluster; a ratio (F1, precision) is tested by swapping the two systems in samples or clusters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from adjudge.comparisons.outcomes import Floats, Outcome
from adjudge.errors import ConfigError
from adjudge.stats import equivalence, power
from adjudge.stats.bootstrap import Drawing
from adjudge.stats.estimate import Estimate
from adjudge.stats.paired import (
    PValue,
    mcnemar_chi2,
    mcnemar_exact,
    mcnemar_midp,
    paired_difference,
    paired_mean_difference,
    sign_flip,
)
from adjudge.stats.proportions import newcombe_paired_difference
from adjudge.stats.swaps import swap_test

POWER = 0.8


@dataclass(frozen=True)
class Settings:
    """What a comparison was asked for; it stands in the result."""

    alpha: float = 0.05
    margin: float | None = None
    margins: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    resamples: int = 2000

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha < POWER:
            raise ConfigError(f"alpha is {self.alpha}, expected a number above 0 and below {POWER}")
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}, expected 0 or more")
        if self.resamples < 100:
            raise ConfigError(f"resamples is {self.resamples}, expected 100 or more")
        for margin in (*([] if self.margin is None else [self.margin]), *self.margins.values()):
            if not 0.0 < margin < float("inf"):
                raise ConfigError(f"margin is {margin}, expected a number above 0")

    def margin_of(self, outcome: Outcome) -> float | None:
        """The margin of one outcome: its own, or the plain one as a share of its range; None where neither applies."""
        if outcome.name in self.margins:
            return self.margins[outcome.name]
        span = 1.0 if outcome.kind in {"binary", "ratio"} else outcome.span
        return None if self.margin is None or span is None else self.margin * span


class Discordant(msgspec.Struct, frozen=True, kw_only=True):
    """The four counts of a yes-or-no outcome on pairs."""

    both: int
    only_a: int
    only_b: int
    neither: int


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """About how many samples would find a difference of `to_find` with 80 % power."""

    n: int
    to_find: float


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One outcome compared: every number, and the verdict on the second system."""

    name: str
    title: str
    slice: str
    kind: str
    unit: str
    higher_is_better: bool
    n: int
    left_out: int
    clusters: int | None
    a: float | None
    b: float | None
    difference: Estimate
    discordant: Discordant | None
    tests: list[PValue]
    test: str
    p: float | None
    log10_p: float | None
    p_holm: float | None
    p_bh: float | None
    margin: float | None
    detectable: Estimate
    verdict: equivalence.Outcome
    why: str | None
    needs: Needs | None
    phrases: dict[str, str]


@dataclass(frozen=True)
class Paired:
    """One outcome on the pairs that have it. `units` are the clusters' codes, None where samples are independent."""

    outcome: Outcome
    slice: str
    first: Floats
    second: Floats
    units: NDArray[np.intp] | None
    left_out: int
    settings: Settings
    stream: str
    difference: Estimate
    tests: list[PValue]
    discordant: Discordant | None

    def settle(self, *, p_holm: float | None, p_bh: float | None, tests: int, identical: bool) -> Compared:
        """The verdict, once the corrected p is known. Powers are at alpha / tests, the first step of Holm."""
        margin = self.settings.margin_of(self.outcome)
        verdict, why = self._verdict(p_holm, margin, identical=identical)
        alpha = self.settings.alpha / max(tests, 1)
        primary = self.tests[0]
        return Compared(
            name=self.outcome.name,
            title=self.outcome.words,
            slice=self.slice,
            kind=self.outcome.kind,
            unit=self.outcome.unit,
            higher_is_better=self.outcome.higher_is_better,
            n=len(self.first),
            left_out=self.left_out,
            clusters=None if self.units is None else int(self.units.max(initial=-1)) + 1,
            a=self.outcome.whole(self.first),
            b=self.outcome.whole(self.second),
            difference=self.difference,
            discordant=self.discordant,
            tests=self.tests,
            test=primary.method,
            p=primary.p,
            log10_p=primary.log10_p,
            p_holm=p_holm,
            p_bh=p_bh,
            margin=margin,
            detectable=self._detectable(alpha),
            verdict=verdict,
            why=why,
            needs=self._needs(alpha, margin) if verdict == "inconclusive" else None,
            phrases=self.outcome.phrases,
        )

    def _verdict(
        self, p_holm: float | None, margin: float | None, *, identical: bool
    ) -> tuple[equivalence.Outcome, str | None]:
        gap = self.difference
        if identical:
            return "equivalent", "the two hold the same answers and the same results"
        if gap.value is None:
            return "inconclusive", gap.why
        if gap.low is None or gap.high is None:
            return "inconclusive", gap.warnings[-1] if gap.warnings else "there is no interval"
        if gap.low == gap.high:
            return "inconclusive", "no pair differs from another, so an interval of no width says nothing of the unseen"
        if margin is not None and self._inside(margin):
            return "equivalent", None
        if p_holm is not None and p_holm <= self.settings.alpha and gap.value != 0.0:
            return ("better" if (gap.value > 0.0) == self.outcome.higher_is_better else "worse"), None
        return "inconclusive", None

    def _inside(self, margin: float) -> bool:
        """Whether the interval lies inside the margin; by clusters two one-sided t tests over them must agree."""
        if not equivalence.inside_margin(self.difference, margin):
            return False
        if self.units is None:
            return True
        p = equivalence.tost_mean(self._units(), margin).p
        return p is not None and p <= self.settings.alpha

    def _units(self) -> Floats:
        """What each independent unit adds to the difference: their mean is the difference, their spread its error.

        Of a ratio, to first order: (hits − R·base) / mean base, second − first (Cochran 1977, Sampling Techniques, §6.3).
        """
        if self.outcome.kind != "ratio":
            sums = _by_unit(self.second - self.first, self.units)
            return sums * (sums.size / len(self.first)) if sums.size else sums
        parts = []
        for side in (self.second, self.first):
            hits, base = (_by_unit(column, self.units) for column in side.T)
            if not base.sum():
                return np.zeros(0)
            ratio = hits.sum() / base.sum()
            parts.append(ratio + (hits - ratio * base) / base.mean())
        difference: Floats = parts[0] - parts[1]
        return difference

    def _detectable(self, alpha: float) -> Estimate:
        n, changed = len(self.first), self._changed()
        if changed is not None:
            return power.detectable_paired_proportions(n, changed, alpha=alpha, power=POWER)
        units, spread = self._units_and_spread()
        if spread == 0.0:
            return Estimate.null("the differences have no spread to learn from", n=n)
        return msgspec.structs.replace(power.detectable_mean(units, spread, alpha=alpha, power=POWER), n=n)

    def _needs(self, alpha: float, margin: float | None) -> Needs | None:
        """The n that would find a difference as large as the margin; where n is that already, the observed one."""
        if self.difference.value is None:
            return None
        observed = abs(self.difference.value)
        for to_find in (max(observed, margin or 0.0), observed):
            needed = self._needed(to_find, alpha)
            if needed is not None and needed > len(self.first):
                return Needs(n=needed, to_find=to_find)
        return None

    def _needed(self, to_find: float, alpha: float) -> int | None:
        if to_find == 0.0:
            return None
        changed = self._changed()
        if changed is not None:
            needed = power.pairs_needed(to_find, min(max(changed, to_find), 1.0), alpha=alpha, power=POWER).value
            return None if needed is None else int(needed)
        units, spread = self._units_and_spread()
        if spread == 0.0:
            return None
        needed = power.rows_needed_mean(to_find, spread, alpha=alpha, power=POWER).value
        return None if needed is None else math.ceil(needed * len(self.first) / units)

    def _changed(self) -> float | None:
        """The share of discordant pairs, where McNemar's test decides."""
        if self.discordant is None or self.units is not None:
            return None
        return (self.discordant.only_a + self.discordant.only_b) / max(len(self.first), 1)

    def _units_and_spread(self) -> tuple[int, float]:
        """How many independent units there are, and the standard deviation of what they add to the difference."""
        units = self._units()
        return units.size, float(np.std(units, ddof=1)) if units.size > 1 else 0.0


def pair(
    outcome: Outcome,
    slice_name: str,
    first: Floats,
    second: Floats,
    clusters: NDArray[np.intp] | None,
    *,
    left_out: int,
    settings: Settings,
    stream: str,
) -> Paired:
    """Estimate the difference and run the tests; the first of the tests is the one that decides."""
    if clusters is not None:
        clusters = np.unique(clusters, return_inverse=True)[1]
        if clusters.size == 0 or int(clusters.max()) + 1 == clusters.size:
            clusters = None
    level = 1.0 - settings.alpha
    drawing: Drawing = {"seed": settings.seed, "stream": stream, "resamples": settings.resamples}
    discordant = None
    tests: list[PValue] = []
    if outcome.kind == "binary":
        yes, also = first > 0.5, second > 0.5
        discordant = Discordant(
            both=int((yes & also).sum()),
            only_a=int((yes & ~also).sum()),
            only_b=int((~yes & also).sum()),
            neither=int((~yes & ~also).sum()),
        )
        tests = [test(discordant.only_a, discordant.only_b) for test in (mcnemar_exact, mcnemar_midp, mcnemar_chi2)]
        if first.size == 0:
            tests = [PValue(p=None, why="no pairs", method=test.method) for test in tests]
    if outcome.kind == "ratio":
        a, b = (np.stack([_by_unit(column, clusters) for column in side.T], axis=1) for side in (first, second))
        unit = "row" if clusters is None else "cluster"
        difference = paired_difference(b, a, _ratio, n=len(first), unit=unit, level=level, **drawing)
        swapped = "" if clusters is None else unit
        tests = [swap_test(a, b, _ratio, seed=settings.seed, stream=f"{stream}/swaps", unit=swapped)]
    elif discordant is not None and clusters is None:
        d = discordant
        difference = newcombe_paired_difference(d.both, d.only_b, d.only_a, d.neither, level=level)
    else:
        if first.size == 0:
            difference = Estimate.null("no pairs", level=level)
        else:
            difference = paired_mean_difference(second, first, clusters=clusters, level=level, **drawing)
        flips = sign_flip(second - first, seed=settings.seed, stream=f"{stream}/signs", clusters=clusters)
        tests = [flips, *tests]
    return Paired(
        outcome, slice_name, first, second, clusters, left_out, settings, stream, difference, tests, discordant
    )


def _by_unit(values: Floats, units: NDArray[np.intp] | None) -> Floats:
    """Sums over independent units."""
    return values if units is None else np.bincount(units, weights=values).astype(np.float64)


def _ratio(sums: Floats) -> Floats:
    """Hits over base, NaN where there is no base."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio: Floats = np.where(sums[:, 1] > 0.0, sums[:, 0] / sums[:, 1], np.nan)
    return ratio
