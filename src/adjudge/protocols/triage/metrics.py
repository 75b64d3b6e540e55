"""The declared metrics of a triage run, and the rates by the cells that they count."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

from adjudge.protocols.triage.batch import ABSTAINED, ANSWERS, ERRORED, MISSING, NEGATIVE, POSITIVE, UNPARSED
from adjudge.protocols.triage.counts import CELLS
from adjudge.protocols.triage.words import Classes
from adjudge.stats.estimate import Metric, share

_WILSON = "Wilson; with the design effect of the samples where there are several trials"
_BOOTSTRAP = "bootstrap over samples"
_NONE = "without records"
_NOT_ANSWERED = "nothing was answered"
_NO_CLASS = "no sample has the class as its label"
_ANSWERED_CLASS = "no answered sample has the class as its label"
_NO_CONFIDENCE = "no answer has a confidence"
_IN_POSITIVE, _IN_NEGATIVE = "samples of the positive class", "samples of the negative class"
_OF_CLASS = "all of the class"


def _rate(name: str, formula: str, null: str, interval: str = _WILSON, **more: Any) -> Metric:
    return share(name, formula=formula, interval=interval, null=null, **more)


_lower_rate = partial(_rate, better="lower")


def _score(name: str, formula: str, null: str, interval: str = _BOOTSTRAP, title: str = "", low: float = 0.0) -> Metric:
    return Metric(name, title, "", low, 1.0, "higher", False, formula, interval, null)


def _confidence(name: str, formula: str, *, high: float | None = 1.0, headline: bool = False) -> Metric:
    return Metric(name, "", "", 0.0, high, "lower", headline, formula, _BOOTSTRAP, _NO_CONFIDENCE)


def _seconds(name: str, formula: str, interval: str) -> Metric:
    return Metric(name, "", "s", 0.0, None, "lower", False, formula, interval, "no answer was timed")


METRICS = (
    _rate("accuracy", "right answers ÷ all samples; no answer is not right", _NONE, headline=True),
    _rate("accuracy_answered", "right answers ÷ answered samples", _NOT_ANSWERED, headline=True),
    _rate("coverage", "answered samples ÷ all samples", _NONE, headline=True),
    _rate("*_catch_rate", f"{_IN_POSITIVE} called so ÷ {_OF_CLASS}", _NO_CLASS, headline=True),
    _lower_rate("*_slip_rate", f"{_IN_POSITIVE} called the other ÷ {_OF_CLASS}", _NO_CLASS, headline=True),
    _lower_rate("*_false_flag_rate", f"{_IN_NEGATIVE} called the positive ÷ {_OF_CLASS}", _NO_CLASS, headline=True),
    _rate("*_pass_rate", f"{_IN_NEGATIVE} called so ÷ {_OF_CLASS}", _NO_CLASS),
    _rate("precision_*", "answers of the class that are right ÷ answers of the class", "the class was never answered"),
    _rate("recall_*", "answered samples of the class called so ÷ answered samples of the class", _ANSWERED_CLASS),
    _rate("coverage_*", f"answered samples of the class ÷ {_OF_CLASS}", _NO_CLASS),
    _lower_rate("abstain_rate_*", f"abstentions on the class ÷ {_OF_CLASS}", _NO_CLASS),
    _lower_rate("abstain_rate", "abstentions ÷ all samples", _NONE),
    _lower_rate("error_rate", "samples on which the system failed ÷ all samples", _NONE),
    _lower_rate("unparsed_rate", "verdicts that are no declared word ÷ all samples", _NONE),
    _lower_rate("missing_rate", "samples without a record ÷ all samples", _NONE),
    _score(
        "f1_*",
        "2·TP ÷ (2·TP + FP + FN) of the class over answered samples",
        "no answered sample has the class as its label or its answer",
    ),
    _rate("balanced_accuracy", "mean of the recalls over answered samples", _ANSWERED_CLASS, _BOOTSTRAP),
    _rate("balanced_accuracy_all", f"mean over the classes of right answers ÷ {_OF_CLASS}", _NO_CLASS, _BOOTSTRAP),
    _score(
        "mcc",
        "Matthews' correlation of label and answer over answered samples",
        "label or answer is constant",
        title="MCC",
        low=-1.0,
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
    _score(
        "auroc_confidence",
        "share of (right, wrong) pairs in which the right answer has the higher confidence; ties count half",
        "all answers are right, or all wrong, or none has a confidence",
        "none",
    ),
    _lower_rate(
        "flip_rate",
        "samples whose answers differ between trials ÷ samples with several trials",
        "no sample has several trials",
        "Wilson",
    ),
)


def cell(label: int, answer: int) -> int:
    """Where a label and an answer are counted."""
    return label * ANSWERS + answer


TP, FN = cell(POSITIVE, POSITIVE), cell(POSITIVE, NEGATIVE)
FP, TN = cell(NEGATIVE, POSITIVE), cell(NEGATIVE, NEGATIVE)
_POSITIVES = tuple(range(ANSWERS))
_NEGATIVES = tuple(range(ANSWERS, CELLS))
_ALL = tuple(range(CELLS))
_ANSWERED = (TP, FN, FP, TN)


CELLS_OF = {
    "passed": (TP, TN),
    "failed": (FN, FP),
    "abstained": (cell(POSITIVE, ABSTAINED), cell(NEGATIVE, ABSTAINED)),
    "errored": (cell(POSITIVE, ERRORED), cell(NEGATIVE, ERRORED)),
    "unparsed": (cell(POSITIVE, UNPARSED), cell(NEGATIVE, UNPARSED)),
    "missing": (cell(POSITIVE, MISSING), cell(NEGATIVE, MISSING)),
}
"""The cells of every bucket, whatever the label."""


class Rate(NamedTuple):
    """Hits over a base, both as cells, and what is said where the base is empty."""

    hits: tuple[int, ...]
    base: tuple[int, ...]
    why: str


@lru_cache(maxsize=4)
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
    buckets = {"abstain": "abstained", "error": "errored", "unparsed": "unparsed", "missing": "missing"}
    for name, bucket in buckets.items():
        by_name[f"{name}_rate"] = Rate(CELLS_OF[bucket], _ALL, nobody)
    return by_name


def aliases(classes: Classes) -> dict[str, str]:
    """Second names of rates that are over the answered alone."""
    by_class = (f"{kind}_{label}" for label in classes for kind in ("precision", "recall", "f1"))
    return {f"{name}_answered": name for name in (*by_class, "balanced_accuracy")}
