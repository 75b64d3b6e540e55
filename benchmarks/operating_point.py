"""The promise of the operating point, tested: how often is the true error above the target, over calibration files.

Confidences take the values .500 … 1.000 with a known error at each, so that the true error above any threshold is known
exactly. A test file of a million rows is drawn beside it. "no correction" takes the lowest threshold whose own exact
bound is below the target, and "observed" the lowest one whose observed error is: what the guarantee saves from.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr

from adjudge.stats.operating_point import decimal_thresholds, operating_point

Array = npt.NDArray[np.float64]
LEVELS = np.arange(500, 1001) / 1000
TARGET = 0.05
TEST_ROWS = 1_000_000
SCENARIOS: dict[str, tuple[Array, Callable[[Array], Array]]] = {
    "well ordered, half confident": (np.ones(LEVELS.size), lambda c: 0.9 * (1 - c)),
    "crowded near 1": (np.exp(12 * (LEVELS - 1)), lambda c: 0.6 * (1 - c) + 0.01),
    "error at the target everywhere": (np.ones(LEVELS.size), lambda c: np.full(c.size, TARGET * 1.0000001)),
    "overconfident at the top": (np.ones(LEVELS.size), lambda c: np.where(c > 0.97, 0.12, 0.3 * (1 - c) + 0.02)),
    "just above the target below .8": (np.ones(LEVELS.size), lambda c: np.where(c >= 0.8, 0.03, 0.085)),
}


def true_error(mass: Array, error: Array, threshold: float | None) -> float | None:
    inside = (2.0 if threshold is None else threshold) <= LEVELS
    return float((mass * error)[inside].sum() / mass[inside].sum()) if inside.any() else None


def uncorrected(c: Array, wrong: npt.NDArray[np.bool_], *, bound: bool) -> float | None:
    """The lowest threshold that looks good on its own: by its exact bound, or by its observed error."""
    grid = decimal_thresholds()
    rows = c.size - np.searchsorted(np.sort(c), grid)
    errors = wrong.sum() - np.searchsorted(np.sort(c[wrong]), grid)
    good = (rows > 0) & ((bdtr(errors, np.maximum(rows, 1), TARGET) <= 0.05) if bound else (errors <= TARGET * rows))
    return float(grid[good].min()) if good.any() else None


def scenario(name: str, pairs: int, rows: int, seed: int) -> dict[str, float | str]:
    rng = np.random.Generator(np.random.PCG64(seed))
    mass, function = SCENARIOS[name]
    mass, error = mass / mass.sum(), function(LEVELS)
    bad = {"guaranteed": 0, "test file": 0, "no correction": 0, "observed": 0}
    found, coverage = 0, 0.0
    for _ in range(pairs):
        place = rng.choice(LEVELS.size, size=rows, p=mass)
        c, wrong = LEVELS[place], rng.random(rows) < error[place]
        point = operating_point(c, wrong, target=TARGET)
        picks = {
            "guaranteed": point.threshold,
            "no correction": uncorrected(c, wrong, bound=True),
            "observed": uncorrected(c, wrong, bound=False),
        }
        for key, threshold in picks.items():
            risk = true_error(mass, error, threshold)
            bad[key] += risk is not None and risk > TARGET
        if point.threshold is not None:
            found += 1
            share = float(mass[point.threshold <= LEVELS].sum())
            coverage += share
            answered = rng.binomial(TEST_ROWS, share)
            risk = true_error(mass, error, point.threshold) or 0.0
            bad["test file"] += rng.binomial(answered, risk) > TARGET * answered
    result: dict[str, float | str] = {"scenario": name, "found": found / pairs}
    result["coverage"] = coverage / max(found, 1)
    return result | {key: count / pairs for key, count in bad.items()}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=20240)
    args = parser.parse_args(argv)
    allowed = 0.05 + 3 * (0.05 * 0.95 / args.pairs) ** 0.5
    print(f"{args.pairs} calibration files of {args.rows} rows, target {TARGET:.0%} at 95 %; with noise {allowed:.1%}")
    print("| scenario | found | coverage | guaranteed | test file | no correction | observed |")
    print("|---|---|---|---|---|---|---|")
    worst = 0.0
    for name in SCENARIOS:
        row = scenario(name, args.pairs, args.rows, args.seed)
        keys = ("found", "coverage", "guaranteed", "test file", "no correction", "observed")
        print(f"| {name} | " + " | ".join(f"{float(row[key]):.1%}" for key in keys) + " |")
        worst = max(worst, float(row["guaranteed"]))
    print("the guarantee", "holds" if worst <= allowed else "FAILS")
    return 0 if worst <= allowed else 1


if __name__ == "__main__":
    sys.exit(main())
