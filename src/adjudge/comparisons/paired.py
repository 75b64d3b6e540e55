"""One outcome of two systems on the same samples: difference, interval, tests, what n could show, the verdict.

Differences are second − first. A yes-or-no outcome of independent samples is tested by McNemar and has Newcombe's
paired interval; a mean, and any outcome whose samples come in clusters, is tested by flipping signs and has a paired
bootstrap interval, both by cluster; a statistic of sums (F1, MCC, ECE, AURC) has a paired bootstrap interval and is tested by
swapping the two systems in samples or clusters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from adjudge.comparisons.outcomes import Floats, Outcome
from adjudge.comparisons.sums import influence
from adjudge.errors import ConfigError
from adjudge.stats import power
from adjudge.stats.bootstrap import Drawing, Statistic, mean
from adjudge.stats.estimate import Estimate
from adjudge.stats.paired import (
    PValue,
    Verdict,
    inside_margin,
    mcnemar_chi2,
    mcnemar_exact,
    mcnemar_midp,
    paired_difference,
    sign_flip,
    swap_test,
    tost_mean,
)
from adjudge.stats.proportions import newcombe_paired_difference

POWER = 0.8
SWAPS, FEWEST_SWAPS = 20_000, 2_000
_MOST_SWAPPED = 4_000_000_000  # swaps × units × columns; above it fewer swaps are drawn, and the method says so


@dataclass(frozen=True)
class Settings:
    """What a comparison was asked for; it stands in the result."""

    alpha: float = 0.05
    margin: float | None = None
    margins: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    resamples: int = 2000
    slices: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha < POWER:
            raise ConfigError(f"alpha is {self.alpha}, expected a number above 0 and below {POWER}")
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}, expected 0 or more")
        if self.resamples < 100:
            raise ConfigError(f"resamples is {self.resamples}, expected 100 or more")
        if self.margin is not None and self.margin >= 1.0:
            raise ConfigError(f"margin is {self.margin}, expected a share below 1: 0.02 is 2 points, or 2 % of a range")
        for margin in (*([] if self.margin is None else [self.margin]), *self.margins.values()):
            if not 0.0 < margin < float("inf"):
                raise ConfigError(f"margin is {margin}, expected a number above 0")

    def margin_of(self, outcome: Outcome) -> float | None:
        """The margin of one outcome: its own, or the plain one as a share of its range; None where neither applies."""
        span = 1.0 if outcome.kind in {"binary", "ratio"} else outcome.span
        if outcome.name in self.margins:
            margin = self.margins[outcome.name]
            if span is not None and margin >= span:
                raise ConfigError(f"margin of {outcome.name} is {margin}, as wide as all there can be: {span:g}")
            return margin
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
    verdict: Verdict
    why: str | None
    needs: Needs | None
    phrases: dict[str, str]


@dataclass(frozen=True)
class Pairs:
    """One outcome on the samples that both systems have: a number a sample, or columns to be summed (`statistic` says what of).

    `units` are the codes of the clusters that samples come in, None where they are independent; `values` those of the whole.
    """

    outcome: Outcome
    slice: str
    first: Floats
    second: Floats
    units: NDArray[np.intp] | None
    left_out: int
    values: tuple[float | None, float | None]
    statistic: Statistic | None = None

    @property
    def stream(self) -> str:
        """The name of its random draws."""
        return f"compare/{self.outcome.name}/{self.slice}"


@dataclass(frozen=True)
class Paired:
    """One outcome, compared; the verdict waits for the other tests."""

    pairs: Pairs
    settings: Settings
    difference: Estimate
    tests: list[PValue]
    discordant: Discordant | None

    def settle(self, *, p_holm: float | None, p_bh: float | None, tests: int, identical: bool) -> Compared:
        """The verdict, once the corrected p is known. Powers are at alpha / tests, the first step of Holm."""
        margin = self.settings.margin_of(self.pairs.outcome)
        verdict, why = self._verdict(p_holm, margin, identical=identical)
        alpha = self.settings.alpha / max(tests, 1)
        primary = self.tests[0]
        return Compared(
            name=self.pairs.outcome.name,
            title=self.pairs.outcome.words,
            slice=self.pairs.slice,
            kind=self.pairs.outcome.kind,
            unit=self.pairs.outcome.unit,
            higher_is_better=self.pairs.outcome.higher_is_better,
            n=len(self.pairs.first),
            left_out=self.pairs.left_out,
            clusters=None if self.pairs.units is None else int(self.pairs.units.max(initial=-1)) + 1,
            a=self.pairs.values[0],
            b=self.pairs.values[1],
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
            phrases=self.pairs.outcome.phrases,
        )

    def _verdict(self, p_holm: float | None, margin: float | None, *, identical: bool) -> tuple[Verdict, str | None]:
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
            return ("better" if (gap.value > 0.0) == self.pairs.outcome.higher_is_better else "worse"), None
        return "inconclusive", None

    def _inside(self, margin: float) -> bool:
        """Whether the interval lies inside the margin; by clusters two one-sided t tests over them must agree."""
        if not inside_margin(self.difference, margin):
            return False
        if self.pairs.units is None:
            return True
        p = tost_mean(self._units(), margin).p
        return p is not None and p <= self.settings.alpha

    def _units(self) -> Floats:
        """What each independent unit adds to the difference: their mean is the difference, their spread its error."""
        pairs = self.pairs
        if pairs.statistic is None:
            sums = _by_unit(pairs.second - pairs.first, pairs.units)
            return sums * (sums.size / len(pairs.first)) if sums.size else sums
        sides = [_by_unit(side, pairs.units) for side in (pairs.second, pairs.first)]
        if None in pairs.values or not len(sides[0]):
            return np.zeros(0)
        return influence(pairs.statistic, sides[0]) - influence(pairs.statistic, sides[1])

    def _detectable(self, alpha: float) -> Estimate:
        n, changed = len(self.pairs.first), self._changed()
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
            if needed is not None and needed > len(self.pairs.first):
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
        return None if needed is None else math.ceil(needed * len(self.pairs.first) / units)

    def _changed(self) -> float | None:
        """The share of discordant pairs, where McNemar's test decides."""
        if self.discordant is None or self.pairs.units is not None:
            return None
        return (self.discordant.only_a + self.discordant.only_b) / max(len(self.pairs.first), 1)

    def _units_and_spread(self) -> tuple[int, float]:
        """How many independent units there are, and the standard deviation of what they add to the difference."""
        units = self._units()
        return units.size, float(np.std(units, ddof=1)) if units.size > 1 else 0.0


def pair(pairs: Pairs, settings: Settings) -> Paired:
    """Estimate the difference and run the tests; the first of the tests is the one that decides."""
    first, second, clusters, stream = pairs.first, pairs.second, pairs.units, pairs.stream
    if clusters is not None:
        clusters = np.unique(clusters, return_inverse=True)[1]
        if clusters.size == 0 or int(clusters.max()) + 1 == clusters.size:
            clusters = None
        pairs = replace(pairs, units=clusters)
    level = 1.0 - settings.alpha
    drawing: Drawing = {"seed": settings.seed, "stream": stream, "resamples": settings.resamples, "level": level}
    if pairs.statistic is not None:
        return Paired(pairs, settings, *_of_sums(pairs, pairs.statistic, settings, drawing), None)
    discordant = None
    tests: list[PValue] = []
    if pairs.outcome.kind == "binary":
        yes, also = first > 0.5, second > 0.5
        neither, only_b, only_a, both = np.bincount(2 * yes + also, minlength=4).tolist()
        discordant = Discordant(both=both, only_a=only_a, only_b=only_b, neither=neither)
        tests = [test(discordant.only_a, discordant.only_b) for test in (mcnemar_exact, mcnemar_midp, mcnemar_chi2)]
        if first.size == 0:
            tests = [PValue(p=None, why="no pairs", method=test.method) for test in tests]
    if discordant is not None and clusters is None:
        d = discordant
        difference = newcombe_paired_difference(d.both, d.only_b, d.only_a, d.neither, level=level)
    else:
        if first.size == 0:
            difference = Estimate.null("no pairs", level=level)
        else:
            difference = mean(second - first, clusters=clusters, **drawing)
        flips = sign_flip(second - first, seed=settings.seed, stream=f"{stream}/signs", clusters=clusters)
        tests = [flips, *tests]
    return Paired(pairs, settings, difference, tests, discordant)


def _of_sums(pairs: Pairs, statistic: Statistic, settings: Settings, drawing: Drawing) -> tuple[Estimate, list[PValue]]:
    """Difference and test of a statistic of sums, both by whole samples or clusters."""
    a, b = (_by_unit(side, pairs.units) for side in (pairs.first, pairs.second))
    unit = "row" if pairs.units is None else "cluster"
    difference = paired_difference(b, a, statistic, n=len(pairs.first), unit=unit, **drawing)
    before, after = pairs.values
    if difference.value is not None and before is not None and after is not None:
        # Confidences that are put together in blocks move the value a little; the interval moves with it.
        by = (after - before) - difference.value
        difference = difference.mapped(lambda value: value + by)
    swaps = int(min(SWAPS, max(FEWEST_SWAPS, _MOST_SWAPPED // max(a.size, 1))))
    swapped = "" if pairs.units is None else unit
    stream = f"{pairs.stream}/swaps"
    test = swap_test(a, b, statistic, seed=settings.seed, stream=stream, resamples=swaps, unit=swapped)
    return difference, [test]


def _by_unit(values: Floats, units: NDArray[np.intp] | None) -> Floats:
    """Sums over independent units, of a column or of several."""
    if units is None:
        return values
    if values.ndim == 1:
        return np.bincount(units, weights=values).astype(np.float64)
    return np.stack([np.bincount(units, weights=column) for column in values.T], axis=1).astype(np.float64)
