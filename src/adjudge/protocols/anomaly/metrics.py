"""The metrics of an anomaly run, over test, per attack, and per attack and magnitude.

A row is one sample of a sequence, an event one run of alarms.
"""

from __future__ import annotations

from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.rule import Floats
from adjudge.protocols.anomaly.batch import ScoreTable, SortedRows
from adjudge.protocols.anomaly.judge import Decisions
from adjudge.protocols.anomaly.words import TEST, VAL
from adjudge.protocols.base import Named
from adjudge.stats import bootstrap, detection, ranking
from adjudge.stats.estimate import Estimate, Metric, share
from adjudge.stats.proportions import quantile
from adjudge.stats.ranking_bootstrap import Curve, RankedRows
from adjudge.stats.resampling import ENUMERATE_UP_TO

LATENCY = "detection_latency_ms."
_LATENCIES = ("median", "p95", "restricted_mean", "detected_fraction")
_AREA_PASSES = 200_000_000
NO_SHIFT = "unknown: no shifted condition in the data"
NO_THRESHOLD = "there is no threshold: no clean validation scores"
EXCEEDED = "clean_exceedance"
"""The share of clean test rows over the threshold, before the N rule."""
_NO_CLEAN = "no clean test flight"
_BOOTSTRAP, _ORDER = "bootstrap over flights", "order statistics"
_RECALL_AT = "largest recall among thresholds with a false positive rate of at most {} %"
_ONE_CLASS = "only one class is there"
_NO_ATTACK = "no attacked row"
_NO_ALARM = "no alarm"
_NO_SEQUENCE = "no attacked sequence"
_UNDETECTED = "no attack is detected"


def _rank(name: str, title: str, formula: str, *, null: str = _ONE_CLASS, **more: Any) -> Metric:
    return Metric(name, title, "", 0.0, 1.0, "higher", formula=formula, null=null, **{"interval": _BOOTSTRAP, **more})


def _rate(name: str, formula: str, null: str, **more: Any) -> Metric:
    return share(name, formula=formula, interval=_BOOTSTRAP, null=null, **more)


def _time(name: str, formula: str, interval: str, null: str, *, headline: bool = False) -> Metric:
    return Metric(LATENCY + name, "", "ms", 0.0, None, "lower", headline, formula, interval, null)


METRICS = (
    _rank(
        "auroc", "auroc", "share of (attacked, clean) pairs of rows in which the attacked scores higher", headline=True
    ),
    *(
        _rate(f"recall_at_{percent}pct_fpr", _RECALL_AT.format(percent), _ONE_CLASS, headline=True)
        for percent in (1, 5)
    ),
    _rate("recall", "attacked rows under alarm ÷ attacked rows", _NO_ATTACK, headline=True),
    _rate("precision", "attacked rows under alarm ÷ rows under alarm", _NO_ALARM, headline=True),
    _rate("f1", "2·TP ÷ (2·TP + FP + FN) over rows", "no attacked row and no alarm", headline=True),
    _rate("fpr", "clean rows under alarm ÷ clean rows", "no clean row", better="lower", headline=True),
    _time("median", "median time from onset to alarm of the detected attacks", _ORDER, _UNDETECTED, headline=True),
    _time("p95", "95th percentile of the same times", _ORDER, _UNDETECTED),
    _time(
        "restricted_mean",
        "mean time until the alarm or the end of the window, misses censored (Kaplan–Meier)",
        _BOOTSTRAP,
        _NO_SEQUENCE,
    ),
    _rate(LATENCY + "detected_fraction", "attacked stretches with an alarm ÷ attacked stretches", _NO_SEQUENCE),
    _rank(
        "average_precision",
        "",
        "Σ (recall gained) · precision over the distinct thresholds",
        null="no positives",
        interval="bootstrap over flights; none for slices",
    ),
    _rank(
        "oracle_f1",
        "",
        "F1 at the best threshold in hindsight, chosen on test: not a result",
        null="no positives",
        interval="none",
    ),
    _rate("event_recall", "attacked stretches of rows detected ÷ attacked stretches", _NO_SEQUENCE),
    _rate("event_precision", "alarm events on attacks ÷ alarm events", _NO_ALARM),
    Metric(
        "false_alarms_per_hour",
        unit="/h",
        low=0.0,
        better="lower",
        formula="alarm events on clean test flights ÷ their hours",
        interval=_BOOTSTRAP,
        null=_NO_CLEAN,
    ),
    _rate(
        EXCEEDED, "clean test rows over the threshold, before the N rule ÷ clean test rows", _NO_CLEAN, better="lower"
    ),
)

_NULL = {metric.name: metric.null for metric in METRICS}
_FALSE_ALARMS = frozenset({"fpr", "false_alarms_per_hour"})
_DECIDED = ("recall", "precision", "fpr", "f1", "event_recall", "event_precision", "false_alarms_per_hour")

Estimates = list[tuple[str, Estimate]]


class Slice(NamedTuple):
    """Some sequences of test: those of one attack, perhaps of one size, and the clean ones."""

    name: str
    attack: str
    magnitude: float | None
    chosen: NDArray[np.intp]


class Measures:
    """One slice after the other, over the sequences of test, whose rows are sorted by score once."""

    def __init__(
        self, table: ScoreTable, decisions: Decisions, threshold: float | None, options: dict[str, Any]
    ) -> None:
        """`options` are seed, resamples and level of every interval."""
        self.table, self.decisions, self.threshold, self.options = table, decisions, threshold, options
        self.level: float = options["level"]
        self.test = np.array(table.of_split(TEST), dtype=np.intp)
        self.flights = np.array([item.flight for item in table.sequences])
        self.sorted = SortedRows.of(table, self.test)

    def slice(self, where: str, chosen: NDArray[np.intp]) -> list[Named]:
        """Every measure over some sequences of test."""
        estimates = [*self._ranked(where, chosen), *self._decided(where, chosen)]
        return [Named(name, where, estimate) for name, estimate in estimates]

    def shifted(self, column: str | None, suffix: str) -> tuple[Any, list[Named]]:
        """False alarms on clean test flights by condition; shifted are those that no validation flight has."""
        items = self.table.sequences
        if column is None or all(item.condition is None for item in items):
            return NO_SHIFT, []
        calibrated = sorted({str(items[index].condition) for index in self.table.of_split(VAL)})
        clean = self.table.clean(TEST)
        tested = sorted({str(items[index].condition) for index in clean})
        if not set(tested) - set(calibrated):
            return f"unknown: every {column} of test is in validation too ({', '.join(tested)})", []
        rows, estimates = [], []
        for condition in tested:
            chosen = np.array([i for i in clean if str(items[i].condition) == condition], dtype=np.intp)
            where = f"{column}={condition}{suffix}"
            alarms = {name: each for name, each in self._decided(where, chosen) if name in _FALSE_ALARMS}
            estimates += [Named(name, where, estimate) for name, estimate in alarms.items()]
            row = {"condition": condition, "shifted": condition not in calibrated, "flights": int(chosen.size)}
            rows.append(row | {name: estimate.value for name, estimate in alarms.items()})
        return {"column": column, "calibrated_on": calibrated, "conditions": rows}, estimates

    def exceedance(self, where: str) -> Named:
        """How often clean test rows exceed the threshold, to hold against the target that validation was set to."""
        clean = np.array(self.table.clean(TEST), dtype=np.intp)
        if self.threshold is None:
            return Named(EXCEEDED, where, Estimate.null(NO_THRESHOLD, level=self.level))
        over = [int((self.table.score[self.table.rows(int(i))] > self.threshold).sum()) for i in clean]
        _, code = np.unique(self.flights[clean], return_inverse=True)
        rows = np.diff(self.table.edges)[clean]
        top, bottom = (np.bincount(code, weights=values).astype(np.float64) for values in (np.array(over), rows))
        return Named(EXCEEDED, where, self._ratio(EXCEEDED, where, top, bottom)[1])

    def _ranked(self, where: str, chosen: NDArray[np.intp]) -> Estimates:
        rows = self.sorted.slice(chosen)
        n = int(rows.code.size)
        estimates = [("auroc", ranking.cluster_auroc(rows, stream=f"auroc/{where}", **self.options))]
        curve = None
        if not rows.one_class:
            whole = chosen.size == self.test.size
            curve = self.sorted.curve if whole else Curve.of(*rows.falling, rows.m)
        for name, target in (("recall_at_1pct_fpr", 0.01), ("recall_at_5pct_fpr", 0.05)):
            estimate = Estimate.null(ranking.ONE_CLASS, n=n, level=self.level)
            if curve is not None:
                estimate = ranking.recall_at_fpr(curve, target, stream=f"{name}/{where}", **self.options)
            estimates.append((name, estimate))
        del curve
        estimates.append(("average_precision", self._area(where, chosen, rows)))
        best, oracle = ranking.best_f1(rows), Estimate.null("no positives", n=n, level=self.level)
        if best is not None:
            method, warning = "best threshold in hindsight", f"chosen on test ({best[1]:g}); not a result"
            oracle = Estimate(value=best[0], level=self.level, n=n, method=method, warnings=(warning,))
        return [*estimates, ("oracle_f1", oracle)]

    def _area(self, where: str, chosen: NDArray[np.intp], rows: RankedRows) -> Estimate:
        n = int(rows.code.size)
        resamples = comb(2 * rows.m - 1, rows.m) if rows.m <= ENUMERATE_UP_TO else self.options["resamples"]
        if chosen.size == self.test.size and n * resamples <= _AREA_PASSES:
            return ranking.average_precision(rows, stream=f"ap/{where}", **self.options)
        falling, _ = rows.falling
        if not rows.sizes[:, 1].any():
            return Estimate.null("no positives", n=n, level=self.level)
        why = f"no interval for slices, nor where {resamples:,} resamples would pass over {n:,} rows"
        return Estimate(value=falling.average_precision(), level=self.level, n=n, method="no interval", warnings=(why,))

    def _ratio(self, name: str, where: str, top: Floats, bottom: Floats) -> tuple[str, Estimate]:
        if not bottom.sum():
            return name, Estimate.null(f"nothing to divide by: {_NULL[name]}", level=self.level)
        n = int(bottom.sum()) if name != "false_alarms_per_hour" else top.size
        stream = f"{name}/{where}"
        return name, bootstrap.ratio_of_sums(top, bottom, n=n, unit="flight", stream=stream, **self.options)

    def _decided(self, where: str, chosen: NDArray[np.intp]) -> Estimates:
        if self.threshold is None:
            names = (*_DECIDED, *(LATENCY + name for name in _LATENCIES))
            return [(name, Estimate.null(NO_THRESHOLD, level=self.level)) for name in names]
        part = self.decisions.take(chosen)
        _, code = np.unique(self.flights[chosen], return_inverse=True)
        m = int(code.max(initial=-1)) + 1

        def total(values: NDArray[Any]) -> Floats:
            return np.asarray(np.bincount(code, weights=values.astype(np.float64), minlength=m), dtype=np.float64)

        tp, fp, fn, tn = (total(values) for values in (part.tp, part.fp, part.fn, part.tn))
        clean = ~part.attacked
        f1 = Estimate.null("no sequences", level=self.level)
        if m:
            named: dict[str, Any] = {"unit": "flight", "why_null": _NULL["f1"], "stream": f"f1/{where}", **self.options}
            f1 = bootstrap.statistic_of_counts(np.column_stack([tp, fp, fn]), _f1, n=int((tp + fn).sum()), **named)
        return [
            self._ratio("recall", where, tp, tp + fn),
            self._ratio("precision", where, tp, tp + fp),
            self._ratio("fpr", where, fp, fp + tn),
            ("f1", f1),
            self._ratio("event_recall", where, total(part.windows_detected), total(part.windows)),
            self._ratio("event_precision", where, total(part.true_events), total(part.events)),
            self._ratio("false_alarms_per_hour", where, total(part.events * clean), total(part.hours * clean)),
            *self._latency(where, part, code),
        ]

    def _latency(self, where: str, part: Decisions, code: NDArray[np.intp]) -> Estimates:
        windows, clusters = part.stretches, code[part.stretches.sequence]
        n = int(windows.detected.size)
        if not n:
            return [(LATENCY + name, Estimate.null(_NO_SEQUENCE, level=self.level)) for name in _LATENCIES]
        times = windows.latency_ms[windows.detected]
        missed = Estimate.null(f"none of {n} attacks is detected", n=n, level=self.level)
        median, p95 = (quantile(times, q, level=self.level) if times.size else missed for q in (0.5, 0.95))
        if windows.latency_ms.max() > 0:
            stream = f"restricted_mean/{where}"
            mean = detection.restricted_mean(
                windows.latency_ms, windows.detected, clusters=clusters, stream=stream, **self.options
            )
        else:
            mean = Estimate(value=0.0, level=self.level, n=n, method="every attack is decided in its first row")
        m = int(code.max()) + 1
        hits, all_windows = (np.bincount(clusters, weights=w, minlength=m) for w in (windows.detected, np.ones(n)))
        stream = f"detected_fraction/{where}"
        share = bootstrap.ratio_of_sums(hits, all_windows, n=n, unit="flight", stream=stream, **self.options)
        return [(LATENCY + name, each) for name, each in zip(_LATENCIES, (median, p95, mean, share), strict=True)]


def _f1(sums: Floats) -> Floats:
    bottom = 2 * sums[:, 0] + sums[:, 1] + sums[:, 2]
    result: Floats = np.divide(2 * sums[:, 0], bottom, out=np.full(len(sums), np.nan), where=bottom > 0)
    return result


def slices(table: ScoreTable) -> list[Slice]:
    """Every attack, then each of its sizes; clean test flights belong to each slice."""
    clean = table.clean(TEST)
    groups: dict[str, dict[float | None, list[int]]] = {}
    for index in table.of_split(TEST):
        item = table.sequences[index]
        if item.attack is not None:
            groups.setdefault(item.attack, {}).setdefault(item.magnitude, []).append(index)
    listed = []
    for attack, sizes in sorted(groups.items()):
        every = sorted(index for members in sizes.values() for index in members)
        listed.append(Slice(f"attack={attack}", attack, None, np.array([*clean, *every], dtype=np.intp)))
        for size in sorted(size for size in sizes if size is not None):
            name = f"attack={attack}, magnitude={size:g}"
            listed.append(Slice(name, attack, size, np.array([*clean, *sizes[size]], dtype=np.intp)))
    return listed
