"""How fast the statistics are: CPU seconds against the best common alternative, and whether both give the same numbers.

Every row is timed in one process, after one call that compiles and warms up; an alternative that would take minutes is
timed on a few resamples and scaled, and marked so; `--quick` takes a tenth of the rows. `python -m benchmarks stats` exits with 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import functools
import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from adjudge import loops
from adjudge.stats import agreement, bootstrap, calibration, confusion, ranking, ranking_bootstrap, sequences
from adjudge.stats._checks import BoolArray, FloatArray, IntArray

RESAMPLES = 2000
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Row:
    """One line of the table; the target is a ratio, or CPU seconds where `limit` is given."""

    what: str
    ours: float
    other: str
    theirs: float
    equal: bool
    rows: int
    ratio: float | None = None
    limit: float | None = None

    @property
    def met(self) -> bool:
        """Whether the numbers agree and the target is reached."""
        fast_enough = self.ratio is None or self.theirs / self.ours >= self.ratio
        return self.equal and fast_enough and (self.limit is None or self.ours <= self.limit)

    def __str__(self) -> str:
        target = f"{self.ratio:,.0f}×" if self.limit is None else f"{self.limit:g} s"
        ratio = self.theirs / self.ours
        times = f"{ratio:,.0f}×" if ratio >= 100 else f"{ratio:.1f}×"
        equal, met = ("yes" if good else "NO" for good in (self.equal, self.met))
        cells = (self.what, f"{self.ours:.4f}", self.other, f"{self.theirs:.4g}", times, target, equal, met)
        return f"| {' | '.join(cells)} |"


def cpu(call: Callable[[], Any], times: int = 9) -> tuple[float, Any]:
    """The least CPU seconds of some calls, and the result."""
    best = float("inf")
    result: Any = None
    for _ in range(times):
        start = time.process_time()
        result = call()
        best = min(best, time.process_time() - start)
    return best, result


def close(a: npt.ArrayLike, b: npt.ArrayLike) -> bool:
    """Equal to the tolerance of the oracle tests."""
    return bool(np.allclose(a, b, rtol=0.0, atol=TOLERANCE))


def sort_once_loop(place: IntArray, positive: FloatArray, starts: BoolArray, drawn: FloatArray) -> FloatArray:
    """AUROC of every resample by one pass over rows sorted once: what a careful loop in Numba does."""
    result = np.empty(drawn.shape[0])
    for b in range(drawn.shape[0]):
        below = 0.0
        down = 0.0
        up = 0.0
        positives = 0.0
        wins = 0.0
        for k in range(place.size):
            if starts[k]:
                wins += up * (below + 0.5 * down)
                below += down
                positives += up
                down = 0.0
                up = 0.0
            weight = drawn[b, place[k]]
            up += weight * positive[k]
            down += weight * (1.0 - positive[k])
        wins += up * (below + 0.5 * down)
        below += down
        positives += up
        result[b] = wins / (positives * below)
    return result


def clustered_scores(n: int = 1_000_000, m: int = 100) -> tuple[FloatArray, BoolArray, IntArray]:
    """Scores of m flights of unequal length, each with its own level."""
    random = np.random.default_rng(20240601)
    share = random.lognormal(0.0, 0.5, m)
    place = random.choice(m, size=n, p=share / share.sum()).astype(np.int64)
    positive = random.random(n) < 0.3
    scores = random.normal(size=n) + positive + 0.3 * random.normal(size=m)[place]
    return scores, positive, place


def rows_of(place: IntArray, drawn: FloatArray) -> npt.NDArray[np.intp]:
    """The rows of a resample, cluster by cluster, as a loop would gather them."""
    return np.repeat(np.arange(place.size), drawn[place].astype(np.int64))


def power(n: int) -> str:
    """2,000,000 as 2e6."""
    return f"{n:.0e}".replace("e+0", "e")


def ranking_rows(n: int = 1_000_000) -> list[Row]:
    from sklearn import metrics

    scores, positive, place = clustered_scores(n)
    m = int(place.max()) + 1
    drawn = np.concatenate(list(bootstrap.weights(m, RESAMPLES, 1, "auroc")))
    order = np.argsort(scores)[::-1]

    def ours() -> Any:
        return ranking.auroc(scores, positive, clusters=place, seed=1, stream="auroc")

    ours()
    fast, _ = cpu(ours)
    replicates = ranking_bootstrap.PairCounts.of(scores, positive, place, m).replicate(drawn)

    def sklearn_auroc(k: int) -> float:
        rows = rows_of(place, drawn[k])
        return float(metrics.roc_auc_score(positive[rows], scores[rows]))

    few = 4
    loop, theirs = cpu(lambda: [sklearn_auroc(k) for k in range(few)], 1)
    what = f"AUROC, cluster bootstrap, 2,000 resamples, {power(n)} scores, 100 clusters"
    label = f"scikit-learn loop (scaled from {few} resamples)"
    table = [Row(what, fast, label, loop * RESAMPLES / few, close(theirs, replicates[:few]), n, ratio=1000)]
    if loops.available():
        import numba

        compiled: Any = numba.njit(sort_once_loop)

        def numba_loop(weights: FloatArray) -> FloatArray:
            rising = np.argsort(scores)
            starts = np.append(True, np.diff(scores[rising]) > 0)
            return np.asarray(compiled(place[rising], positive[rising].astype(np.float64), starts, weights))

        numba_loop(drawn[:1])
        loop, theirs = cpu(lambda: numba_loop(drawn), 1)
        table.append(Row(what, fast, "Numba loop over rows sorted once", loop, close(theirs, replicates), n, ratio=20))

    target = 0.01

    def recall() -> Any:
        return ranking.recall_at_fpr(scores, positive, target, clusters=place, seed=1, stream="auroc")

    recall()
    fast, _ = cpu(recall)
    ranked = ranking_bootstrap.Ranked.of(scores, positive, order)
    recalls = ranking_bootstrap.Curve.of(ranked, place[order], m).recall_at(drawn[:few], target)

    def sklearn_recall(k: int) -> float:
        rows = rows_of(place, drawn[k])
        fpr, tpr, _ = metrics.roc_curve(positive[rows], scores[rows], drop_intermediate=False)
        return float(tpr[fpr <= target].max())

    loop, theirs = cpu(lambda: [sklearn_recall(k) for k in range(few)], 1)
    what = f"Recall@FPR 1 %, cluster bootstrap, 2,000 resamples, {power(n)} scores, 100 clusters"
    table.append(Row(what, fast, label, loop * RESAMPLES / few, close(theirs, recalls), n, ratio=1000))
    return table


def point_rows(n: int = 2_000_000) -> list[Row]:
    from sklearn import metrics

    random = np.random.default_rng(7)
    positive = random.random(n) < 0.4
    scores = random.normal(size=n) + positive
    theirs_cpu, theirs = cpu(lambda: metrics.roc_auc_score(positive, scores), 2)
    table = []
    ways: list[tuple[str, bool, float]] = [("NumPy alone", False, 8)]
    if loops.available():
        ways.insert(0, ("fast extra", True, 10))
    for name, fast, ratio in ways:
        ranking.auroc_value(scores, positive, fast=fast)
        ours_cpu, value = cpu(functools.partial(ranking.auroc_value, scores, positive, fast=fast))
        what = f"AUROC, value, {power(n)} rows, {name}"
        table.append(Row(what, ours_cpu, "scikit-learn", theirs_cpu, close(value, theirs), n, ratio=ratio))
    first = random.integers(0, 5, n)
    second = np.where(random.random(n) < 0.7, first, random.integers(0, 5, n))

    def kappa() -> float | None:
        return agreement.cohen_kappa(agreement.pair_counts(first, second, 5)).value

    kappa()
    ours_cpu, value = cpu(kappa)
    theirs_cpu, theirs = cpu(lambda: metrics.cohen_kappa_score(first, second), 2)
    table.append(
        Row(f"Cohen's κ, {power(n)} rows", ours_cpu, "scikit-learn", theirs_cpu, close(value, theirs), n, ratio=10)
    )
    confidence = random.random(n)
    correct = random.random(n) < confidence
    calibration.brier_value(confidence, correct)
    ours_cpu, value = cpu(lambda: calibration.brier_value(confidence, correct))
    theirs_cpu, theirs = cpu(lambda: metrics.brier_score_loss(correct, confidence), 2)
    table.append(
        Row(f"Brier, {power(n)} rows", ours_cpu, "scikit-learn", theirs_cpu, close(value, theirs), n, ratio=10)
    )
    return table


def f1_rows(resamples: int = 100_000) -> list[Row]:
    from sklearn import metrics

    random = np.random.default_rng(3)
    truth = (random.random(1000) < 0.4).astype(np.int64)
    answer = np.where(random.random(1000) < 0.8, truth, 1 - truth)

    def ours() -> Any:
        table = confusion.table(truth, answer, ("no", "yes"))
        return confusion.f1(table, "yes", seed=1, stream="f1", resamples=resamples)

    ours()
    ours_cpu, estimate = cpu(ours)
    few = 1000

    def loop() -> list[float]:
        drawn = random.integers(0, 1000, (few, 1000))
        return [float(metrics.f1_score(truth[rows], answer[rows])) for rows in drawn]

    loop_cpu, replicates = cpu(loop, 1)
    # The ends of 1,000 resampled rows have a standard error near 0.002.
    ends = np.quantile(replicates, [0.025, 0.975])
    equal = close(estimate.value, metrics.f1_score(truth, answer)) and bool(
        np.allclose([estimate.low, estimate.high], ends, atol=0.01)
    )
    label = f"scikit-learn loop (scaled from {few:,} resamples)"
    theirs = loop_cpu * resamples / few
    what = f"F1, bootstrap, {resamples:,} resamples, n = 1,000"
    return [Row(what, ours_cpu, label, theirs, equal, resamples, limit=0.1)]


def run_rows(n: int = 10_000_000, length: int = 5) -> list[Row]:
    random = np.random.default_rng(5)
    over = random.random(n) < 0.4
    starts = np.zeros(n, dtype=bool)
    starts[::10_000] = True

    def loop() -> list[bool]:
        standing, run = [], 0
        for exceeds, start in zip(over.tolist(), starts.tolist(), strict=True):
            if start:
                run = 0
            run = run + 1 if exceeds else 0
            standing.append(run >= length)
        return standing

    ours_cpu, ours = cpu(lambda: sequences.runs(over, starts, length))
    theirs_cpu, theirs = cpu(loop, 1)
    equal = bool((ours == np.array(theirs)).all())
    what = f"5 consecutive exceedances, {power(n)} samples, NumPy alone"
    return [Row(what, ours_cpu, "Python loop", theirs_cpu, equal, n, ratio=20)]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks stats", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    given = parser.parse_args(argv)
    share = 10 if given.quick else 1
    print("| what | CPU s | against | CPU s | ratio | target | equal | met |")
    print("|---|---|---|---|---|---|---|---|")
    table: list[Row] = []
    parts: tuple[tuple[Callable[[int], list[Row]], int], ...] = (
        (ranking_rows, 1_000_000),
        (point_rows, 2_000_000),
        (f1_rows, 100_000),
        (run_rows, 10_000_000),
    )
    for rows, n in parts:
        for row in rows(n // share):
            print(row, flush=True)
            table.append(row)
    if given.json is not None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)
        document = {"rows": [asdict(row) | {"met": row.met} for row in table], "peak_mb": peak}
        given.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0 if all(row.met for row in table) else 1
