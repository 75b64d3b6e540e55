"""Do nominal 95 % intervals cover? Wilson by exact enumeration, cluster intervals by simulation.

Clusters have a normal or a beta random effect with intra-class correlation .3. `python -m benchmarks coverage` prints
the Markdown table of docs/statistics-coverage.md, and exits with 1 when an interval that should hold covers less than
93 % or more than 97 %, or when the row bootstrap, which should fail, does not.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from adjudge.stats import bootstrap
from adjudge.stats.bootstrap import multinomial_cells
from adjudge.stats.estimate import Estimate, FloatArray
from adjudge.stats.paired import paired_test
from adjudge.stats.pass_k import pass_at_k, pass_hat_k
from adjudge.stats.prevalence import ppi_mean
from adjudge.stats.proportions import clopper_pearson, cluster_wilson, jeffreys, wilson
from adjudge.stats.resampling import Method

CLUSTERS = 30
CORRELATION = 0.3
SHARE = 0.3
NOMINAL = (0.93, 0.97)
DEFAULT = "cluster bootstrap, expanded percentile (default)"
ROWS = "row bootstrap (wrong for clustered rows)"
PROMISES = {DEFAULT: "covers", ROWS: "fails", "Wilson, cluster design effect": "covers"}
METHODS: dict[str, Method] = {
    DEFAULT: "expanded",
    "cluster bootstrap, percentile": "percentile",
    "cluster bootstrap, BCa": "bca",
}


@dataclass(frozen=True)
class Line:
    """One interval under one design; `promise` says whether it must cover, must fail, or only stands for comparison."""

    interval: str
    design: str
    coverage: float
    width: float
    error: float
    promise: str = ""

    @property
    def kept(self) -> bool:
        """Whether the promise is kept."""
        if self.promise == "covers":
            return NOMINAL[0] <= self.coverage <= NOMINAL[1]
        return self.promise != "fails" or self.coverage < NOMINAL[0]

    def __str__(self) -> str:
        error = "exact" if self.error == 0 else f"± {100 * self.error:.2f}"
        verdict = {"": "", "covers": "93–97 %", "fails": "must fail"}[self.promise] + ("" if self.kept else " MISSED")
        return (
            f"| {self.interval} | {self.design} | {100 * self.coverage:.2f} | {error} | {self.width:.4f} | {verdict} |"
        )


def enumerated(name: str, interval: Callable[[int, int], Estimate], n: int, p: float, promise: str = "") -> Line:
    """Coverage as the sum of the binomial probabilities of the counts whose interval holds p."""
    hits = np.arange(n + 1.0)
    log_ways = gammaln(n + 1) - gammaln(hits + 1) - gammaln(n - hits + 1)
    probability = np.exp(log_ways + hits * np.log(p) + (n - hits) * np.log1p(-p))
    assert abs(probability.sum() - 1) < 1e-9
    ends = [interval(k, n) for k in range(n + 1)]
    low, high = np.array([float(e.low or 0.0) for e in ends]), np.array([float(e.high or 0.0) for e in ends])
    inside = (low <= p) & (p <= high)
    return Line(
        name, f"n = {n}, p = {p:g}", float(probability[inside].sum()), float(probability @ (high - low)), 0.0, promise
    )


def sizes_of(random: np.random.Generator, kind: str) -> FloatArray:
    """Rows of each cluster: 20 each, or between 2 and 100 with a long tail."""
    if kind == "equal":
        return np.full(CLUSTERS, 20.0)
    return np.clip(np.round(random.lognormal(np.log(14.0), 0.8, CLUSTERS)), 2.0, 100.0)


def values_of(random: np.random.Generator, sizes: FloatArray, kind: str) -> tuple[FloatArray, FloatArray, float]:
    """The sums of each cluster's rows, the rows, and the true mean."""
    place = np.repeat(np.arange(CLUSTERS), sizes.astype(np.int64))
    if kind == "normal":
        effect = random.normal(0.0, np.sqrt(CORRELATION), CLUSTERS)
        rows = effect[place] + random.normal(0.0, np.sqrt(1.0 - CORRELATION), place.size)
        truth = 0.0
    else:
        both = (1.0 - CORRELATION) / CORRELATION
        chance = random.beta(SHARE * both, (1.0 - SHARE) * both, CLUSTERS)
        rows = (random.random(place.size) < chance[place]).astype(np.float64)
        truth = SHARE
    return np.asarray(np.bincount(place, weights=rows), dtype=np.float64), rows, truth


def simulated(replicates: int, resamples: int) -> list[Line]:
    """Coverage of the mean of clustered rows, every interval on the same data."""
    lines = []
    for design in ("equal", "unequal"):
        for kind in ("normal", "binary"):
            random = np.random.default_rng([2024, len(design), len(kind)])
            inside: dict[str, int] = {}
            width: dict[str, float] = {}
            for replicate in range(replicates):
                sizes = sizes_of(random, design)
                sums, rows, truth = values_of(random, sizes, kind)
                for name, estimate in intervals(
                    sums, sizes, rows, replicate, resamples, binary=kind == "binary"
                ).items():
                    low, high = float(estimate.low or 0.0), float(estimate.high or 0.0)
                    inside[name] = inside.get(name, 0) + (low <= truth <= high)
                    width[name] = width.get(name, 0.0) + (high - low)
            label = f"{CLUSTERS} clusters, {design} sizes, {kind} rows"
            for name, hits in inside.items():
                share = hits / replicates
                error = float(np.sqrt(share * (1.0 - share) / replicates))
                lines.append(Line(name, label, share, width[name] / replicates, error, PROMISES.get(name, "")))
    return lines


def intervals(
    sums: FloatArray, sizes: FloatArray, rows: FloatArray, seed: int, resamples: int, *, binary: bool
) -> dict[str, Estimate]:
    """Every interval of the study for one simulated data set."""
    found = {
        name: bootstrap.ratio_of_sums(sums, sizes, seed=seed, stream="coverage", resamples=resamples, method=method)
        for name, method in METHODS.items()
    }
    if binary:
        found[ROWS] = multinomial_cells(
            [int(rows.sum()), int(rows.size - rows.sum())],
            lambda cells: np.asarray(cells[:, 0] / cells.sum(axis=1)),
            seed=seed,
            stream="rows",
            resamples=resamples,
        )
        found["Wilson, cluster design effect"] = cluster_wilson(sums, sizes)
    else:
        found[ROWS] = bootstrap.mean(rows, seed=seed, stream="rows", resamples=min(resamples, 400))
    return found


def attempts(replicates: int) -> Iterator[Line]:
    """pass@k and pass^k over items whose chance of passing varies, with few and with many items."""
    for items, tries, k in ((50, 5, 3), (200, 5, 3), (100, 10, 5)):
        for spread in (1.0, 4.0):
            random = np.random.default_rng([2025, items, tries, int(spread)])
            inside, width = {"pass@k": 0, "pass^k": 0}, {"pass@k": 0.0, "pass^k": 0.0}
            # Of a Beta(a, b) chance p, E p^k = Π (a+i) / (a+b+i).
            a, b = 0.6 * spread, 0.4 * spread
            all_pass = float(np.prod([(a + i) / (a + b + i) for i in range(k)]))
            none_pass = float(np.prod([(b + i) / (a + b + i) for i in range(k)]))
            for _ in range(replicates):
                passed = random.binomial(tries, random.beta(a, b, items))
                counts = np.full(items, tries)
                for name, way, truth in (("pass@k", pass_at_k, 1.0 - none_pass), ("pass^k", pass_hat_k, all_pass)):
                    estimate = way(passed, counts, k)
                    low, high = float(estimate.low or 0.0), float(estimate.high or 0.0)
                    inside[name] += low <= truth <= high
                    width[name] += high - low
            label = f"{items} items × {tries} attempts, k = {k}, Beta({a:g}, {b:g})"
            for name, hits in inside.items():
                yield _line(f"{name}, Wilson by item", label, hits, width[name], replicates)


def labelled(replicates: int) -> Iterator[Line]:
    """PPI++ of a share, with judges of different skill and few or many labels."""
    for labels, others in ((50, 1000), (200, 1000), (100, 10_000)):
        for skill in (0.6, 0.9):
            random = np.random.default_rng([2026, labels, others, int(100 * skill)])
            inside, width, total = 0, 0.0, labels + others
            for _ in range(replicates):
                truth = (random.random(total) < 0.7).astype(np.float64)
                verdict = np.where(random.random(total) < skill, truth, 1.0 - truth)
                estimate = ppi_mean(truth[:labels], verdict[:labels], verdict[labels:])
                low, high = float(estimate.low or 0.0), float(estimate.high or 0.0)
                inside += low <= 0.7 <= high
                width += high - low
            label = f"{labels} labels, {others} others, judge right on {100 * skill:.0f} %"
            yield _line("PPI++", label, inside, width, replicates)


def labelled_items(replicates: int, tries: int = 5) -> Iterator[Line]:
    """PPI++ where items were tried several times and some of them are labelled, by item."""
    for labels, others in ((40, 200), (100, 1000)):
        random = np.random.default_rng([2028, labels, others])
        inside, width, items = 0, 0.0, np.repeat(np.arange(labels + others), tries)
        for _ in range(replicates):
            truth = (random.random(items.size) < random.beta(1.4, 0.6, labels + others)[items]).astype(np.float64)
            verdict = np.where(random.random(items.size) < 0.8, truth, 1.0 - truth)
            n = labels * tries
            estimate = ppi_mean(truth[:n], verdict[:n], verdict[n:], clusters=items)
            low, high = float(estimate.low or 0.0), float(estimate.high or 0.0)
            inside += low <= 0.7 <= high
            width += high - low
        label = f"{labels} labelled items, {others} others, {tries} attempts each, judge right on 80 %"
        yield _line("PPI++ by item", label, inside, width, replicates)


def _line(interval: str, design: str, hits: int, width: float, replicates: int) -> Line:
    share = hits / replicates
    error = float(np.sqrt(share * (1.0 - share) / replicates))
    return Line(interval, design, share, width / replicates, error, "covers")


@dataclass(frozen=True)
class Alarms:
    """How often the sequential test decides against a candidate within some looks."""

    design: str
    pairs: int
    looks: int
    decided: float
    error: float
    alpha: float | None

    @property
    def kept(self) -> bool:
        """Whether false alarms stay under α."""
        return self.alpha is None or self.decided <= self.alpha

    def __str__(self) -> str:
        promise = "" if self.alpha is None else f"at most {100 * self.alpha:g} %" + ("" if self.kept else " MISSED")
        return f"| {self.design} | {self.pairs} | {self.looks} | {100 * self.decided:.2f} | ± {100 * self.error:.2f} | {promise} |"


def looked_at(replicates: int, looks: int = 40, size: int = 25) -> Iterator[Alarms]:
    """40 looks after 25 more discordant pairs each: a candidate as good, and ones that lose more pairs."""
    for lost, alpha in ((0.5, 0.05), (0.55, None), (0.6, None), (0.7, None)):
        random = np.random.default_rng([2027, int(100 * lost)])
        alarms = 0
        for _ in range(replicates):
            losses = np.cumsum(random.binomial(size, lost, looks))
            seen = size * np.arange(1, looks + 1)
            alarms += any(paired_test(int(n - c), int(c)).outcome == "worse" for n, c in zip(seen, losses, strict=True))
        share = alarms / replicates
        error = float(np.sqrt(share * (1.0 - share) / replicates))
        design = (
            "the candidate is as good" if alpha else f"the candidate loses {100 * lost:.0f} % of the discordant pairs"
        )
        yield Alarms(design, looks * size, looks, share, error, alpha)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks coverage", description=__doc__)
    parser.add_argument("--replicates", type=int, default=4000, help="simulated data sets for each design")
    parser.add_argument("--resamples", type=int, default=bootstrap.RESAMPLES)
    options = parser.parse_args(argv)
    print("| interval | design | coverage % | standard error | mean width | promise |")
    print("|---|---|---|---|---|---|")
    lines = [enumerated("Wilson", wilson, n, p, "covers") for n in (20, 200) for p in (0.02, 0.5, 0.98)]
    lines += [enumerated("Clopper–Pearson", clopper_pearson, n, p) for n in (20, 200) for p in (0.02, 0.5)]
    lines += [enumerated("Jeffreys", jeffreys, n, p) for n in (20, 200) for p in (0.02, 0.5)]
    for line in lines:
        print(line, flush=True)
    for line in (*attempts(options.replicates), *labelled(options.replicates), *labelled_items(options.replicates)):
        print(line, flush=True)
        lines.append(line)
    for line in simulated(options.replicates, options.resamples):
        print(line, flush=True)
        lines.append(line)
    kept = all(line.kept for line in lines)
    print("\n| anytime-valid paired test | pairs | looks | decided % | standard error | promise |")
    print("|---|---|---|---|---|---|")
    for alarm in looked_at(options.replicates):
        print(alarm, flush=True)
        kept = kept and alarm.kept
    return 0 if kept else 1
