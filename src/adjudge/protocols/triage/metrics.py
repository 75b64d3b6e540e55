"""The numbers of one block of triage records: every rate in both readings, calibration and selective risk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjudge.protocols.triage.batch import ABSTAINED, ANSWERS, ERRORED, MISSING, NEGATIVE, POSITIVE, UNPARSED
from adjudge.protocols.triage.counts import CELLS, Ints, Pattern, Scores
from adjudge.protocols.triage.words import Classes
from adjudge.stats import calibration, confusion, ranking, selective
from adjudge.stats.estimate import Estimate, Metric, share
from adjudge.stats.proportions import cluster_wilson, wilson
from adjudge.stats.ranking import ONE_CLASS

_WILSON = "Wilson; with the design effect of the samples where there are several trials"
_BOOTSTRAP = "bootstrap over samples"
_NONE = "without records"
_NOT_ANSWERED = "nothing was answered"
_NO_CLASS = "no sample has the class as its label"
_ANSWERED_CLASS = "no answered sample has the class as its label"
_NO_CONFIDENCE = "no answer has a confidence"


def _rate(name: str, formula: str, null: str, **more: Any) -> Metric:
    return share(name, formula=formula, null=null, **{"interval": _WILSON, **more})


def _confidence(name: str, formula: str, *, high: float | None = 1.0, headline: bool = False) -> Metric:
    return Metric(name, "", "", 0.0, high, "lower", headline, formula, _BOOTSTRAP, _NO_CONFIDENCE)


def _seconds(name: str, formula: str, interval: str) -> Metric:
    return Metric(name, "", "s", 0.0, None, "lower", False, formula, interval, "no answer was timed")


METRICS = (
    _rate("accuracy", "right answers ÷ all samples; no answer is not right", _NONE, headline=True),
    _rate("accuracy_answered", "right answers ÷ answered samples", _NOT_ANSWERED, headline=True),
    _rate("coverage", "answered samples ÷ all samples", _NONE, headline=True),
    _rate("*_catch_rate", "samples of the positive class called so ÷ all of the class", _NO_CLASS, headline=True),
    _rate(
        "*_slip_rate",
        "samples of the positive class called the other ÷ all of the class",
        _NO_CLASS,
        better="lower",
        headline=True,
    ),
    _rate(
        "*_false_flag_rate",
        "samples of the negative class called the positive ÷ all of the class",
        _NO_CLASS,
        better="lower",
        headline=True,
    ),
    _rate("*_pass_rate", "samples of the negative class called so ÷ all of the class", _NO_CLASS),
    _rate("precision_*", "answers of the class that are right ÷ answers of the class", "the class was never answered"),
    _rate("recall_*", "answered samples of the class called so ÷ answered samples of the class", _ANSWERED_CLASS),
    _rate("coverage_*", "answered samples of the class ÷ all of the class", _NO_CLASS),
    _rate("abstain_rate_*", "abstentions on the class ÷ all of the class", _NO_CLASS, better="lower"),
    _rate("abstain_rate", "abstentions ÷ all samples", _NONE, better="lower"),
    _rate("error_rate", "samples on which the system failed ÷ all samples", _NONE, better="lower"),
    _rate("unparsed_rate", "verdicts that are no declared word ÷ all samples", _NONE, better="lower"),
    _rate("missing_rate", "samples without a record ÷ all samples", _NONE, better="lower"),
    Metric(
        "f1_*",
        low=0.0,
        high=1.0,
        better="higher",
        formula="2·TP ÷ (2·TP + FP + FN) of the class over answered samples",
        interval=_BOOTSTRAP,
        null="no answered sample has the class as its label or its answer",
    ),
    _rate("balanced_accuracy", "mean of the recalls over answered samples", _ANSWERED_CLASS, interval=_BOOTSTRAP),
    _rate(
        "balanced_accuracy_all",
        "mean over the classes of right answers ÷ all of the class",
        _NO_CLASS,
        interval=_BOOTSTRAP,
    ),
    Metric(
        "mcc",
        "MCC",
        low=-1.0,
        high=1.0,
        better="higher",
        formula="Matthews' correlation of label and answer over answered samples",
        interval=_BOOTSTRAP,
        null="label or answer is constant",
    ),
    _seconds(
        "latency_mean",
        "mean seconds to an answer, `latency_seconds` or else the total, in one cache state; errors are left out",
        "bootstrap, by sample over several trials",
    ),
    _seconds(
        "latency_p*",
        "the smallest time that this share of the answers did not exceed (quantile type 1)",
        "order statistics, at the design effect of the samples over several trials",
    ),
    _confidence("ece", "Σ over equal-width bins of (share of answers) · |accuracy − mean confidence|", headline=True),
    _confidence("ece_right_closed", "the same with bins closed at the right"),
    _confidence("ece_equal_mass", "the same with bins of equally many answers"),
    _confidence("brier", "mean of (confidence − right)² over answers"),
    _confidence("log_loss", "mean of −ln(confidence in what came out) over answers, clipped", high=None),
    _confidence(
        "aurc", "area under risk by coverage when the least confident answers are left out first", headline=True
    ),
    _confidence("e_aurc", "AURC − that of the best possible order"),
    Metric(
        "auroc_confidence",
        low=0.0,
        high=1.0,
        better="higher",
        formula="share of (right, wrong) pairs in which the right answer has the higher confidence; ties count half",
        interval="none",
        null="all answers are right, or all wrong, or none has a confidence",
    ),
    _rate(
        "flip_rate",
        "samples whose answers differ between trials ÷ samples with several trials",
        "no sample has several trials",
        better="lower",
        interval="Wilson",
    ),
)

_MOST_DRAWS = 100_000_000  # samples × resamples; above it there are fewer resamples, and the method says so
_MOST_CLUSTERS = 50_000  # above it confidence measures over several trials have no interval; each trial has its own


def cell(label: int, answer: int) -> int:
    """Where a label and an answer are counted."""
    return label * ANSWERS + answer


TP, FN = cell(POSITIVE, POSITIVE), cell(POSITIVE, NEGATIVE)
FP, TN = cell(NEGATIVE, POSITIVE), cell(NEGATIVE, NEGATIVE)
_POSITIVES = tuple(range(ANSWERS))
_NEGATIVES = tuple(range(ANSWERS, CELLS))
_ALL = tuple(range(CELLS))
_ANSWERED = (TP, FN, FP, TN)


def both(answer: int) -> tuple[int, int]:
    """The cells of an answer, whatever the label."""
    return cell(POSITIVE, answer), cell(NEGATIVE, answer)


@dataclass(frozen=True)
class Rate:
    """Hits over a base, both as cells, and what is said where the base is empty."""

    hits: tuple[int, ...]
    base: tuple[int, ...]
    why: str


def rates(classes: Classes) -> dict[str, Rate]:
    """Every rate by name. Bases with all cells of a class read abstentions, errors and missing as no answer."""
    p, n = classes
    nobody = "there are no records"
    none = "nothing was answered"
    no_p, no_n = f"no sample is labelled {p!r}", f"no sample is labelled {n!r}"
    by_name = {
        "accuracy": Rate((TP, TN), _ALL, nobody),
        "accuracy_answered": Rate((TP, TN), _ANSWERED, none),
        "coverage": Rate(_ANSWERED, _ALL, nobody),
        f"precision_{p}": Rate((TP,), (TP, FP), f"nothing was answered {p!r}"),
        f"recall_{p}": Rate((TP,), (TP, FN), f"no sample labelled {p!r} was answered"),
        f"precision_{n}": Rate((TN,), (TN, FN), f"nothing was answered {n!r}"),
        f"recall_{n}": Rate((TN,), (TN, FP), f"no sample labelled {n!r} was answered"),
        f"{p}_slip_rate": Rate((FN,), _POSITIVES, no_p),
        f"{p}_catch_rate": Rate((TP,), _POSITIVES, no_p),
        f"{n}_false_flag_rate": Rate((FP,), _NEGATIVES, no_n),
        f"{n}_pass_rate": Rate((TN,), _NEGATIVES, no_n),
        f"coverage_{p}": Rate((TP, FN), _POSITIVES, no_p),
        f"coverage_{n}": Rate((TN, FP), _NEGATIVES, no_n),
        f"abstain_rate_{p}": Rate((cell(POSITIVE, ABSTAINED),), _POSITIVES, no_p),
        f"abstain_rate_{n}": Rate((cell(NEGATIVE, ABSTAINED),), _NEGATIVES, no_n),
    }
    for name, answer in (("abstain", ABSTAINED), ("error", ERRORED), ("unparsed", UNPARSED), ("missing", MISSING)):
        by_name[f"{name}_rate"] = Rate(both(answer), _ALL, nobody)
    return by_name


def aliases(classes: Classes) -> dict[str, str]:
    """Second names of rates that are over the answered alone."""
    return {
        f"{name}_answered": name
        for name in (
            *(f"{kind}_{label}" for label in classes for kind in ("precision", "recall", "f1")),
            "balanced_accuracy",
        )
    }


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
        self.estimates: dict[str, Estimate] = {}

    def total(self, cells: tuple[int, ...]) -> int:
        """Records in some cells."""
        return int(self.counts[list(cells)].sum())

    def measure(self) -> dict[str, Estimate]:
        """All estimates by name."""
        for name, rate in rates(self.classes).items():
            self.estimates[name] = self.rate(rate)
        self._tables()
        self._calibration()
        return self.estimates

    def rate(self, rate: Rate) -> Estimate:
        """A share of the records, by Wilson; with the design effect of the samples over several trials."""
        hits, base = self.total(rate.hits), self.total(rate.base)
        if not base:
            return Estimate.null(rate.why, method="wilson")
        if self.clusters is None:
            return wilson(hits, base)
        of, among = (self.clusters[:, list(cells)].sum(axis=1) for cells in (rate.hits, rate.base))
        return cluster_wilson(of[among > 0], among[among > 0])

    def _tables(self) -> None:
        p, n = self.classes
        estimates, draw = self.estimates, self.draw
        table = _confusion(self.counts, self.clusters, self.classes)
        resamples = draw.resamples if self.clusters is None else draw.over(len(self.clusters))
        for name, label in ((f"f1_{p}", p), (f"f1_{n}", n)):
            estimates[name] = confusion.f1(
                table, label, seed=draw.seed, stream=f"{draw.stream}/{name}", resamples=resamples
            )
        ways: tuple[tuple[str, Callable[..., Estimate], confusion.Over], ...] = (
            ("balanced_accuracy", confusion.balanced_accuracy, "answered"),
            ("balanced_accuracy_all", confusion.balanced_accuracy, "all"),
            ("mcc", confusion.mcc, "answered"),
        )
        for name, way, over in ways:
            estimates[name] = way(table, over=over, seed=draw.seed, stream=f"{draw.stream}/{name}", resamples=resamples)

    def _calibration(self) -> None:
        scores, draw, estimates = self.scores, self.draw, self.estimates
        if not scores.confidence.size:
            for name in CONFIDENCE_MEASURES:
                estimates[name] = Estimate.null(NO_CONFIDENCE, method="bootstrap")
            return
        c, right, bins, tally = scores.confidence, scores.correct, self.bins, scores.tally
        for name, way in OTHER_BINS.items():
            estimates[name] = value_alone(calibration.ece_value(c, right, bins=bins, tally=tally, **way), c.size)
        clusters = None
        if self.clusters is not None:
            _, clusters = np.unique(scores.sample, return_inverse=True)
            if int(clusters.max()) >= _MOST_CLUSTERS:
                self._values_alone()
                return
        common: dict[str, Any] = {
            "clusters": clusters,
            "seed": draw.seed,
            "resamples": draw.resamples if clusters is None else draw.over(int(clusters.max()) + 1),
        }
        stream, blocks = draw.stream, scores.blocks
        estimates["ece"] = calibration.ece(c, right, bins=bins, stream=f"{stream}/ece", tally=tally, **common)
        if clusters is None:
            estimates["brier"], estimates["log_loss"] = calibration.brier_and_log_loss(
                tally, seed=draw.seed, stream=f"{stream}/brier", resamples=draw.resamples
            )
        else:
            estimates["brier"] = calibration.brier(c, right, stream=f"{stream}/brier", **common)
            estimates["log_loss"] = calibration.log_loss(c, right, stream=f"{stream}/log_loss", **common)
        estimates["aurc"], estimates["e_aurc"] = selective.selective_areas(
            c, right, ("aurc", "e_aurc"), stream=f"{stream}/aurc", blocks=blocks, **common
        )
        estimates["auroc_confidence"] = (
            value_alone(ranking.auroc_value(c, right), c.size, ONE_CLASS)
            if clusters is not None
            else ranking.auroc(tally.confidence, tally.correct, counts=tally.counts)
        )

    def _values_alone(self) -> None:
        c, right = self.scores.confidence, self.scores.correct
        areas = self.scores.blocks.finish()
        values = {
            "ece": calibration.ece_value(c, right, bins=self.bins, tally=self.scores.tally),
            "brier": calibration.brier_value(c, right),
            "aurc": None if areas is None else areas.aurc,
            "e_aurc": None if areas is None else areas.e_aurc,
            "auroc_confidence": ranking.auroc_value(c, right),
        }
        for name, value in values.items():
            self.estimates[name] = value_alone(value, c.size, ONE_CLASS)
        self.estimates["log_loss"] = Estimate.null("see each trial: too many samples for clusters", n=c.size)


NO_CONFIDENCE = "no answer has a usable confidence"
OTHER_BINS: dict[str, dict[str, Any]] = {
    "ece_right_closed": {"closed": "right"},
    "ece_equal_mass": {"scheme": "equal_mass"},
}
CONFIDENCE_MEASURES = (
    "ece",
    "ece_right_closed",
    "ece_equal_mass",
    "brier",
    "log_loss",
    "aurc",
    "e_aurc",
    "auroc_confidence",
)


def value_alone(value: float | None, n: int, why: str = "no rows with a confidence") -> Estimate:
    """An estimate without an interval."""
    if value is None:
        return Estimate.null(why, n=n)
    return Estimate(value=value, n=n, method="value, no interval")


def _clusters(patterns: Mapping[Pattern, int]) -> Ints:
    """(samples, CELLS): how often each sample is in each cell over the trials; samples of one pattern stand together."""
    order = sorted(patterns)
    table = np.zeros((len(order), CELLS), dtype=np.int64)
    for row, pattern in enumerate(order):
        for _, place in pattern:
            table[row, place] += 1
    return np.repeat(table, [patterns[pattern] for pattern in order], axis=0)


def _confusion(counts: Ints, clusters: Ints | None, classes: Classes) -> confusion.Confusion:
    """The table of `stats.confusion`; an unparsed verdict is an error there, which no measure over it tells apart."""
    shape = (2, 5)
    move = np.zeros((CELLS, 10), dtype=np.int64)
    for label in (POSITIVE, NEGATIVE):
        for answer, column in ((POSITIVE, 0), (NEGATIVE, 1), (ABSTAINED, 2), (ERRORED, 3), (UNPARSED, 3), (MISSING, 4)):
            move[cell(label, answer), label * 5 + column] = 1
    return confusion.Confusion(
        tuple(classes),
        (counts @ move).reshape(shape),
        None if clusters is None else (clusters @ move).reshape(-1, *shape),
    )
