"""The numbers of an anomaly run: all of it over test, per attack, and per attack and magnitude."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.errors import ProtocolViolation
from adjudge.protocols.anomaly.decide import Decisions
from adjudge.protocols.anomaly.sorted_rows import SortedRows
from adjudge.protocols.anomaly.table import ScoreTable
from adjudge.protocols.anomaly.words import TEST, VAL
from adjudge.protocols.base import Named
from adjudge.stats import bootstrap, latency, ranked
from adjudge.stats.error_measures import quantile
from adjudge.stats.estimate import Estimate
from adjudge.stats.ranking_bootstrap import Curve, RankedRows
from adjudge.stats.resampling import ENUMERATE_UP_TO
from adjudge.stats.thresholds import first_reaching

PRIMARY = (
    "auroc",
    "recall_at_1pct_fpr",
    "recall_at_5pct_fpr",
    "recall",
    "precision",
    "f1",
    "fpr",
    "detection_latency_ms",
)
_LATENCY = ("median", "p95", "restricted_mean", "detected_fraction")
_AREA_PASSES = 200_000_000
NO_SHIFT = "unknown: no shifted condition in the data"
NO_THRESHOLD = "there is no threshold: no clean validation scores"


class Measures:
    """One slice after the other, over the sequences of test, whose rows are sorted by score once."""

    def __init__(
        self,
        table: ScoreTable,
        decisions: Decisions,
        *,
        threshold: float | None,
        seed: int,
        resamples: int,
        level: float,
    ) -> None:
        self.table, self.decisions = table, decisions
        self.threshold, self.seed, self.resamples, self.level = threshold, seed, resamples, level
        self.test = np.array(table.of(TEST), dtype=np.intp)
        self.flights = np.array([item.flight for item in table.sequences])
        self.sorted = SortedRows.of(table, self.test)

    def slice(self, where: str, chosen: NDArray[np.intp]) -> list[Named]:
        """Every measure over some sequences of test."""
        options: dict[str, Any] = {"seed": self.seed, "resamples": self.resamples, "level": self.level}
        found = [*self._ranked(where, chosen, options), *self._decided(where, chosen, options)]
        return [Named(name, where, estimate) for name, estimate in found]

    def shifted(self, column: str | None, suffix: str) -> tuple[Any, list[Named]]:
        """False alarms on clean test flights by condition; shifted are those that no validation flight has."""
        items = self.table.sequences
        if column is None or all(item.condition is None for item in items):
            return NO_SHIFT, []
        calibrated = sorted({str(items[index].condition) for index in self.table.of(VAL)})
        clean = [index for index in self.test if items[index].attack is None]
        tested = sorted({str(items[index].condition) for index in clean})
        if not set(tested) - set(calibrated):
            return f"unknown: every {column} of test is in validation too ({', '.join(tested)})", []
        options: dict[str, Any] = {"seed": self.seed, "resamples": self.resamples, "level": self.level}
        rows, estimates = [], []
        for condition in tested:
            chosen = np.array([i for i in clean if str(items[i].condition) == condition], dtype=np.intp)
            where = f"{column}={condition}{suffix}"
            found = {
                name: estimate
                for name, estimate in self._decided(where, chosen, options)
                if name in {"fpr", "false_alarms_per_hour"}
            }
            estimates += [Named(name, where, estimate) for name, estimate in found.items()]
            rows.append(
                {"condition": condition, "shifted": condition not in calibrated, "flights": int(chosen.size)}
                | {name: estimate.value for name, estimate in found.items()}
            )
        return {"column": column, "calibrated_on": calibrated, "conditions": rows}, estimates

    def _ranked(self, where: str, chosen: NDArray[np.intp], options: dict[str, Any]) -> list[tuple[str, Estimate]]:
        rows = self.sorted.slice(chosen)
        n = int(rows.code.size)
        found = [("auroc", ranked.auroc(rows, stream=f"auroc/{where}", **options))]
        curve = None
        if not rows.one_class:
            whole = chosen.size == self.test.size
            curve = self.sorted.curve if whole else Curve.of(*rows.falling, rows.m)
        for name, target in (("recall_at_1pct_fpr", 0.01), ("recall_at_5pct_fpr", 0.05)):
            estimate = (
                Estimate.null(ranked.ONE_CLASS, n=n, level=self.level)
                if curve is None
                else ranked.recall_at_fpr(curve, target, stream=f"{name}/{where}", **options)
            )
            found.append((name, estimate))
        del curve
        found.append(("average_precision", self._area(where, chosen, rows, options)))
        best = ranked.best_f1(rows)
        oracle = (
            Estimate.null("no positives", n=n, level=self.level)
            if best is None
            else Estimate(
                value=best[0],
                level=self.level,
                n=n,
                method="best threshold in hindsight",
                warnings=(f"chosen on test ({best[1]:g}); not a result",),
            )
        )
        found.append(("oracle_f1", oracle))
        return found

    def _area(self, where: str, chosen: NDArray[np.intp], rows: RankedRows, options: dict[str, Any]) -> Estimate:
        n = int(rows.code.size)
        resamples = comb(2 * rows.m - 1, rows.m) if rows.m <= ENUMERATE_UP_TO else self.resamples
        if chosen.size == self.test.size and n * resamples <= _AREA_PASSES:
            return ranked.average_precision(rows, stream=f"ap/{where}", **options)
        falling, _ = rows.falling
        if not rows.sizes[:, 1].any():
            return Estimate.null("no positives", n=n, level=self.level)
        why = f"no interval for slices, nor where {resamples:,} resamples would pass over {n:,} rows"
        return Estimate(value=falling.average_precision(), level=self.level, n=n, method="no interval", warnings=(why,))

    def _decided(self, where: str, chosen: NDArray[np.intp], options: dict[str, Any]) -> list[tuple[str, Estimate]]:
        names = ("recall", "precision", "fpr", "f1", "event_recall", "event_precision", "false_alarms_per_hour")
        times = tuple(f"detection_latency_ms.{name}" for name in _LATENCY)
        if self.threshold is None:
            return [(name, Estimate.null(NO_THRESHOLD, level=self.level)) for name in (*names, *times)]
        part = self.decisions.take(chosen)
        _, code = np.unique(self.flights[chosen], return_inverse=True)
        m = int(code.max(initial=-1)) + 1

        def total(values: NDArray[Any], mask: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
            weights = values.astype(np.float64) if mask is None else np.where(mask, values, 0).astype(np.float64)
            return np.asarray(np.bincount(code, weights=weights, minlength=m), dtype=np.float64)

        def ratio(name: str, top: NDArray[np.float64], bottom: NDArray[np.float64]) -> tuple[str, Estimate]:
            if not bottom.sum():
                return name, Estimate.null(f"nothing to divide by: {_EMPTY[name]}", level=self.level)
            n = int(bottom.sum()) if name != "false_alarms_per_hour" else m
            return name, bootstrap.ratio_of_sums(top, bottom, n=n, unit="flight", stream=f"{name}/{where}", **options)

        tp, fp, fn, tn = (total(values) for values in (part.tp, part.fp, part.fn, part.tn))
        clean = ~part.attacked
        ones = np.ones(part.attacked.size)
        found = [
            ratio("recall", tp, tp + fn),
            ratio("precision", tp, tp + fp),
            ratio("fpr", fp, fp + tn),
            (
                "f1",
                bootstrap.statistic_of_counts(
                    np.column_stack([tp, fp, fn]),
                    _f1,
                    n=int((tp + fn).sum()),
                    unit="flight",
                    why_null="no attacked row and no alarm",
                    stream=f"f1/{where}",
                    **options,
                )
                if m
                else Estimate.null("no sequences", level=self.level),
            ),
            ratio("event_recall", total(part.detected), total(ones, part.attacked)),
            ratio("event_precision", total(part.true_events), total(part.events)),
            ratio("false_alarms_per_hour", total(part.events, clean), total(part.hours, clean)),
        ]
        return found + self._latency(where, part, code, options)

    def _latency(
        self, where: str, part: Decisions, code: NDArray[np.intp], options: dict[str, Any]
    ) -> list[tuple[str, Estimate]]:
        prefix = "detection_latency_ms."
        hit, under = part.detected, part.attacked
        n = int(under.sum())
        if not n:
            why = "no attacked sequence"
            return [(prefix + name, Estimate.null(why, level=self.level)) for name in _LATENCY]
        times = part.latency_ms[under]
        if hit.any():
            found = [
                (prefix + name, quantile(part.latency_ms[hit], q, level=self.level))
                for name, q in (("median", 0.5), ("p95", 0.95))
            ]
        else:
            why = f"none of {n} attacks is detected"
            found = [(prefix + name, Estimate.null(why, n=n, level=self.level)) for name in ("median", "p95")]
        if times.max() > 0:
            mean = latency.restricted_mean(
                times, hit[under], clusters=code[under], stream=f"restricted_mean/{where}", **options
            )
        else:
            mean = Estimate(value=0.0, level=self.level, n=n, method="every attack is decided in its first row")
        share = bootstrap.ratio_of_sums(
            np.bincount(code, weights=hit, minlength=int(code.max()) + 1),
            np.bincount(code, weights=under, minlength=int(code.max()) + 1),
            n=n,
            unit="flight",
            stream=f"detected_fraction/{where}",
            **options,
        )
        return [*found, (prefix + "restricted_mean", mean), (prefix + "detected_fraction", share)]


_EMPTY = {
    "recall": "no attacked row",
    "precision": "no alarm",
    "fpr": "no clean row",
    "event_recall": "no attacked sequence",
    "event_precision": "no alarm",
    "false_alarms_per_hour": "no clean test flight",
}


def _f1(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    bottom = 2 * sums[:, 0] + sums[:, 1] + sums[:, 2]
    result: NDArray[np.float64] = np.divide(2 * sums[:, 0], bottom, out=np.full(len(sums), np.nan), where=bottom > 0)
    return result


def slices(table: ScoreTable) -> list[tuple[str, str, float | None, NDArray[np.intp]]]:
    """(slice, attack, magnitude, sequences) per attack and per magnitude; clean test flights belong to each."""
    test = table.of(TEST)
    clean = [index for index in test if table.sequences[index].attack is None]
    found: list[tuple[str, str, float | None, NDArray[np.intp]]] = []
    for attack in sorted({item.attack for i in test if (item := table.sequences[i]).attack is not None}, key=str):
        own = [index for index in test if table.sequences[index].attack == attack]
        found.append((f"attack={attack}", str(attack), None, np.array([*clean, *own], dtype=np.intp)))
        sizes = sorted({item.magnitude for i in own if (item := table.sequences[i]).magnitude is not None})
        for size in sizes:
            some = [index for index in own if table.sequences[index].magnitude == size]
            name = f"attack={attack}, magnitude={size:g}"
            found.append((name, str(attack), size, np.array([*clean, *some], dtype=np.intp)))
    return found


def negative_results(
    rows: Sequence[dict[str, Any]], smallest: dict[str, dict[str, float | None]], shifted: Any = NO_SHIFT
) -> dict[str, Any]:
    """What a reviewer must see: attacks that are mostly missed, the smallest detectable size, shifted conditions."""
    return {
        "attacks_with_recall_below_half": [
            {"attack": row["attack"], "recall": row["recall"]}
            for row in rows
            if row["magnitude"] is None and row["recall"] is not None and row["recall"] < 0.5
        ],
        "min_detectable_magnitude": smallest,
        "shifted_condition": shifted,
    }


def minimum_magnitudes(table: ScoreTable, decisions: Decisions) -> dict[str, dict[str, float | None]]:
    """Per attack the smallest magnitude with recall of at least .5 and .9, by a monotone fit; null when none."""
    found: dict[str, dict[str, float | None]] = {}
    groups: dict[str, list[int]] = {}
    for index in table.of(TEST):
        item = table.sequences[index]
        if item.attack is not None and item.magnitude is not None:
            groups.setdefault(item.attack, []).append(index)
    for attack, chosen in sorted(groups.items()):
        part = decisions.take(np.array(chosen, dtype=np.intp))
        sizes = [abs(table.sequences[index].magnitude or 0.0) for index in chosen]
        found[attack] = {
            f"recall_{target:g}": first_reaching(sizes, part.tp, part.tp + part.fn, target) for target in (0.5, 0.9)
        }
    return found


def hold_complete(top: dict[str, Any], metrics: dict[str, Any], per_attack: Sequence[dict[str, Any]]) -> None:
    """Refuse to write a report that leaves out a primary metric or an attack that is mostly missed."""
    missing = [name for name in PRIMARY if name not in metrics]
    if missing:
        raise ProtocolViolation(f"metrics.complete: the report lacks {', '.join(missing)}")
    section = top.get("negative_results") or {}
    listed = {item["attack"] for item in section.get("attacks_with_recall_below_half", ())}
    poor = {
        row["attack"]
        for row in per_attack
        if row["magnitude"] is None and row["recall"] is not None and row["recall"] < 0.5
    }
    if poor - listed or "min_detectable_magnitude" not in section or "shifted_condition" not in section:
        raise ProtocolViolation(
            f"metrics.complete: the negative results lack {', '.join(sorted(poor - listed)) or 'a section'}; "
            "they cannot be left out"
        )
