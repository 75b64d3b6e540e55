"""The estimates of one block of triage records: every rate in both readings, calibration and selective risk.

Over several trials the samples are clusters. Where there are very many configurations most have their estimates without
resampling: shares with their intervals, everything else by its value alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from adjudge.protocols.triage.batch import ABSTAINED, ANSWERS, ERRORED, MISSING, NEGATIVE, POSITIVE
from adjudge.protocols.triage.counts import CELLS, Ints, Pattern, Scores
from adjudge.protocols.triage.metrics import FN, FP, TN, TP, Rate, rates
from adjudge.protocols.triage.words import Classes
from adjudge.stats import calibration, confusion, ranking, selective
from adjudge.stats.estimate import Estimate
from adjudge.stats.proportions import cluster_wilson, wilson
from adjudge.stats.ranking import ONE_CLASS

_MOST_DRAWS = 100_000_000  # samples × resamples; above it there are fewer resamples, and the method says so
_MOST_CLUSTERS = 50_000  # above it confidence measures over several trials have no interval; each trial has its own
_NO_CONFIDENCE = "no answer has a usable confidence"
_VALUE_ALONE = "value, no interval"
_OTHER_BINS: dict[str, dict[str, Any]] = {
    "ece_right_closed": {"closed": "right"},
    "ece_equal_mass": {"scheme": "equal_mass"},
}
_CONFIDENCE_MEASURES = ("ece", *_OTHER_BINS, "brier", "log_loss", "aurc", "e_aurc", "auroc_confidence")
_COLUMNS = (POSITIVE, NEGATIVE, ABSTAINED, ERRORED, MISSING)
"""Where the columns of `stats.confusion` begin: an unparsed verdict is an error there, which no measure over it tells apart."""


@dataclass(frozen=True)
class Draw:
    """How intervals are resampled: the seed, the resamples, and a name that keeps streams apart."""

    seed: int
    resamples: int
    stream: str

    def over(self, samples: int) -> int:
        """Resamples for a bootstrap over so many samples."""
        return max(200, min(self.resamples, _MOST_DRAWS // max(samples, 1)))


class Numbers:
    """Every estimate of a block. Over several trials the samples are clusters, given by the `patterns` of their cells."""

    def __init__(
        self,
        counts: Ints,
        scores: Scores,
        classes: Classes,
        draw: Draw,
        *,
        patterns: Mapping[Pattern, int] | None = None,
        bins: int = 10,
    ) -> None:
        self.counts, self.scores, self.classes, self.draw, self.bins = counts, scores, classes, draw, bins
        self.clusters = None if patterns is None else _clusters(patterns)

    def measure(self, *, resampled: bool = True) -> dict[str, Estimate]:
        """All estimates by name; where they are not `resampled`, all but the shares are values alone."""
        cells = self.counts.tolist()
        shares = {name: self._rate(rate, cells) for name, rate in rates(self.classes).items()}
        if resampled:
            return shares | self._of_table() | self._of_confidences()
        return shares | self._values_of_table() | self._values_of_confidences()

    def _rate(self, rate: Rate, cells: list[int]) -> Estimate:
        """A share of the records, by Wilson; with the design effect of the samples over several trials."""
        base = sum(cells[cell] for cell in rate.base)
        if self.clusters is None or not base:
            return share_of(sum(cells[cell] for cell in rate.hits), base, rate.why)
        of, among = (self.clusters[:, list(chosen)].sum(axis=1) for chosen in (rate.hits, rate.base))
        return cluster_wilson(of[among > 0], among[among > 0])

    def _of_table(self) -> dict[str, Estimate]:
        """Measures of the table of labels and answers."""
        draw, stream, clusters = self.draw, self.draw.stream, self.clusters
        table = confusion.Confusion(
            tuple(self.classes), _columns(self.counts), None if clusters is None else _columns(clusters)
        )
        resamples = draw.resamples if clusters is None else draw.over(len(clusters))
        drawing: dict[str, Any] = {"seed": draw.seed, "resamples": resamples}
        return {
            **{
                f"f1_{label}": confusion.f1(table, label, stream=f"{stream}/f1_{label}", **drawing)
                for label in table.labels
            },
            "balanced_accuracy": confusion.balanced_accuracy(table, stream=f"{stream}/balanced_accuracy", **drawing),
            "balanced_accuracy_all": confusion.balanced_accuracy(
                table, over="all", stream=f"{stream}/balanced_accuracy_all", **drawing
            ),
            "mcc": confusion.mcc(table, stream=f"{stream}/mcc", **drawing),
        }

    def _values_of_table(self) -> dict[str, Estimate]:
        p, n = self.classes
        tp, fn, fp, tn = (int(self.counts[cell]) for cell in (TP, FN, FP, TN))
        of_p, of_n = (int(half.sum()) for half in np.split(self.counts, 2))
        answered, samples = tp + fn + fp + tn, of_p + of_n
        spread = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
        cross = (tp * tn - fp * fn) / math.sqrt(spread) if spread else None
        constant = "truth or answer is the same on every row among the answered"
        recalls = _mean(_quotient(tp, tp + fn), _quotient(tn, tn + fp))
        recalls_of_all = _mean(_quotient(tp, of_p), _quotient(tn, of_n))
        return {
            f"f1_{p}": value_alone(_quotient(2 * tp, 2 * tp + fp + fn), answered, f"nothing is or was called {p!r}"),
            f"f1_{n}": value_alone(_quotient(2 * tn, 2 * tn + fp + fn), answered, f"nothing is or was called {n!r}"),
            "balanced_accuracy": value_alone(recalls, answered, "a class has no answered row"),
            "balanced_accuracy_all": value_alone(recalls_of_all, samples, "a class has no row"),
            "mcc": value_alone(cross, answered, constant),
        }

    def _of_confidences(self) -> dict[str, Estimate]:
        """Measures of the confidences; over very many samples of several trials their values alone."""
        scores, draw = self.scores, self.draw
        if not scores.confidence.size:
            return dict.fromkeys(_CONFIDENCE_MEASURES, Estimate.null(_NO_CONFIDENCE, method="bootstrap"))
        clusters = None if self.clusters is None else np.unique(scores.sample, return_inverse=True)[1]
        samples = 0 if clusters is None else int(clusters.max()) + 1
        if samples > _MOST_CLUSTERS:
            values = self._values_of_confidences()
            del values["log_loss"]
            why = "see each trial: too many samples for clusters"
            return {**values, "log_loss": Estimate.null(why, n=scores.confidence.size)}
        c, right, tally, stream = scores.confidence, scores.correct, scores.tally, draw.stream
        resamples = draw.resamples if clusters is None else draw.over(samples)
        drawing: dict[str, Any] = {"seed": draw.seed, "resamples": resamples}
        by_sample = {"clusters": clusters, **drawing}
        if clusters is None:
            brier, log_loss = calibration.brier_and_log_loss(tally, stream=f"{stream}/brier", **drawing)
            auroc = ranking.auroc(tally.confidence, tally.correct, counts=tally.counts)
        else:
            brier = calibration.brier(c, right, stream=f"{stream}/brier", **by_sample)
            log_loss = calibration.log_loss(c, right, stream=f"{stream}/log_loss", **by_sample)
            auroc = value_alone(ranking.auroc_value(c, right), c.size, ONE_CLASS)
        aurc, e_aurc = selective.selective_areas(
            c, right, ("aurc", "e_aurc"), stream=f"{stream}/aurc", blocks=scores.blocks, **by_sample
        )
        return {
            **{name: value_alone(self._ece(**way), c.size) for name, way in _OTHER_BINS.items()},
            "ece": calibration.ece(c, right, bins=self.bins, stream=f"{stream}/ece", tally=tally, **by_sample),
            "brier": brier,
            "log_loss": log_loss,
            "aurc": aurc,
            "e_aurc": e_aurc,
            "auroc_confidence": auroc,
        }

    def _values_of_confidences(self) -> dict[str, Estimate]:
        c, right = self.scores.confidence, self.scores.correct
        if not c.size:
            return dict.fromkeys(_CONFIDENCE_MEASURES, Estimate.null(_NO_CONFIDENCE, method=_VALUE_ALONE))
        areas = self.scores.blocks.finish()
        values = {
            **{name: self._ece(**way) for name, way in _OTHER_BINS.items()},
            "ece": self._ece(),
            "brier": calibration.brier_value(c, right),
            "log_loss": calibration.log_loss_value(c, right),
            "aurc": None if areas is None else areas.aurc,
            "e_aurc": None if areas is None else areas.e_aurc,
            "auroc_confidence": ranking.auroc_value(c, right),
        }
        why = {"log_loss": "infinite: rows were wrong at full confidence"}
        return {name: value_alone(value, c.size, why.get(name, ONE_CLASS)) for name, value in values.items()}

    def _ece(self, **way: Any) -> float | None:
        scores = self.scores
        return calibration.ece_value(scores.confidence, scores.correct, bins=self.bins, tally=scores.tally, **way)


@lru_cache(maxsize=1 << 14)
def share_of(hits: int, base: int, why: str) -> Estimate:
    """A share by Wilson, null where the base is empty; those of many small blocks are mostly the same few."""
    return wilson(hits, base) if base else Estimate.null(why, method="wilson")


def value_alone(value: float | None, n: int, why: str = "no rows with a confidence") -> Estimate:
    """An estimate without an interval."""
    return Estimate.null(why, n=n) if value is None else Estimate(value=value, n=n, method=_VALUE_ALONE)


def _clusters(patterns: Mapping[Pattern, int]) -> Ints:
    """(samples, CELLS): how often each sample is in each cell over the trials; samples of one pattern stand together."""
    order = sorted(patterns)
    table = np.zeros((len(order), CELLS), dtype=np.int64)
    for row, pattern in enumerate(order):
        for _, place in pattern:
            table[row, place] += 1
    return np.repeat(table, [patterns[pattern] for pattern in order], axis=0)


def _columns(cells: Ints) -> Ints:
    """Counts of cells as tables of `stats.confusion`."""
    tables: Ints = np.add.reduceat(cells.reshape(*cells.shape[:-1], 2, ANSWERS), _COLUMNS, axis=-1)
    return tables


def _quotient(hits: int, base: int) -> float | None:
    return hits / base if base else None


def _mean(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else (a + b) / 2
