"""Do nominal 95 % intervals cover? Wilson by exact enumeration, cluster intervals by simulation.

Clusters have a normal or a beta random effect with intra-class correlation .3. `python -m benchmarks coverage` prints
the Markdown table of docs/statistics-coverage.md, and exits with 1 when an interval that should hold covers less than
93 % or more than 97 %, or when the row bootstrap, which should fail, does not.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from adjudge.stats import bootstrap
from adjudge.stats._checks import FloatArray
from adjudge.stats.cells import multinomial_cells
from adjudge.stats.estimate import Estimate
from adjudge.stats.proportions import clopper_pearson, cluster_wilson, jeffreys, wilson

CLUSTERS = 30
CORRELATION = 0.3
SHARE = 0.3
NOMINAL = (0.93, 0.97)
DEFAULT = "cluster bootstrap, expanded percentile (default)"
ROWS = "row bootstrap (wrong for clustered rows)"
PROMISES = {DEFAULT: "covers", ROWS: "fails", "Wilson, cluster design effect": "covers"}
METHODS: dict[str, bootstrap.Method] = {
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
    for line in simulated(options.replicates, options.resamples):
        print(line, flush=True)
        lines.append(line)
    return 0 if all(line.kept for line in lines) else 1
