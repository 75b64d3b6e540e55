"""What of a triage run `adjudge compare` may pair, and which columns are the data set's own.

Directions are those of the metrics' declarations. What stands first matters most; what is `on_request` is tested where somebody
names it, or asks for all.
"""

from __future__ import annotations

from typing import Any

from adjudge.protocols.triage.batch import ABSTAINED, ANSWERS, ERRORED, MISSING, UNPARSED
from adjudge.protocols.triage.metrics import Rate, rates
from adjudge.protocols.triage.words import Classes

DATASET_COLUMNS = ("label",)
_BUCKETS = {ABSTAINED: "abstained", ERRORED: "errored", UNPARSED: "unparsed", MISSING: "missing"}
Outcome = dict[str, Any]


def comparable(classes: Classes, bins: int) -> list[Outcome]:
    """How `compare` computes every metric of a configuration from its records; rates that are not written here follow from their cells."""
    outcomes = [
        *_over_all(classes),
        *_among_the_answered(classes),
        *_of_confidences(classes, bins),
        *_shares_on_request(classes),
    ]
    names = {outcome["name"] for outcome in outcomes}
    return outcomes + [_of_cells(name, rate, classes) for name, rate in rates(classes).items() if name not in names]


def _over_all(classes: Classes) -> list[Outcome]:
    """Rates over all records: an abstention, an error, a missing answer is no success, and no slip either."""
    p, n = classes
    return [
        _rate(f"{p}_catch_rate", {"answer": p}, p, f"catches more {p}s", f"catches fewer {p}s"),
        _rate(f"{p}_slip_rate", {"answer": n}, p, f"lets fewer {p}s slip", f"lets more {p}s slip"),
        _rate(f"{n}_pass_rate", {"answer": n}, n, f"passes more {n} samples", f"passes fewer {n} samples"),
        _rate(f"{n}_false_flag_rate", {"answer": p}, n, f"flags fewer {n} samples", f"flags more {n} samples"),
        _rate("coverage", {"answer": [p, n]}, None),
        _rate("accuracy", {"bucket": "passed"}, None, "is right more often", "is right less often"),
    ]


def _rate(
    name: str,
    equals: dict[str, Any],
    label: str | None,
    better: str = "",
    worse: str = "",
    *,
    on_request: bool = False,
) -> Outcome:
    """The share of records, or of those with one label, whose column holds some word."""
    ((column, words),) = equals.items()
    phrases = {"better": better, "worse": worse} if better else {}
    return {
        "name": name,
        "kind": "binary",
        "column": column,
        "equals": words,
        "where": {} if label is None else {"label": label},
        "cluster": "sample",
        "phrases": phrases,
        "on_request": on_request,
    }


def _among_the_answered(classes: Classes) -> list[Outcome]:
    """Metrics over the answered samples, which are not the same in every run; F1 is 2·TP / (2·TP + FP + FN)."""
    p, n = classes
    answered = {"where": {"answer": [p, n]}}
    everywhere = [{"where": {"label": label}} for label in classes]
    right = [_cell(label, label) for label in classes]
    by_label = [{"where": {"label": label, "answer": [p, n]}} for label in classes]
    outcomes = [
        {
            **_ratio("accuracy_answered", right, [answered]),
            "phrases": {
                "better": "is right more often where it answers",
                "worse": "is right less often where it answers",
            },
        },
    ]
    for label, other in (classes, classes[::-1]):
        hit, alarm, miss = _cell(label, label), _cell(other, label), _cell(label, other)
        twice = {**hit, "weight": 2.0}
        outcomes += [
            {**_ratio(f"f1_{label}", [twice], [twice, alarm, miss]), "title": f"F1 of {label}"},
            {**_ratio(f"precision_{label}", [hit], [hit, alarm]), "on_request": True},
            {**_ratio(f"recall_{label}", [hit], [hit, miss]), "on_request": True},
        ]
    balanced = {"kind": "balanced", "unit": "%", "span": 1.0, "cluster": "sample"}
    return [
        *outcomes,
        {**balanced, "name": "balanced_accuracy", "cells": [right[0], by_label[0], right[1], by_label[1]]},
        {
            **balanced,
            "name": "balanced_accuracy_all",
            "cells": [right[0], everywhere[0], right[1], everywhere[1]],
            "on_request": True,
        },
        {
            "name": "mcc",
            "title": "MCC",
            "kind": "mcc",
            "span": 2.0,
            "cluster": "sample",
            "cells": [_cell(p, p), _cell(p, n), _cell(n, p), _cell(n, n)],
        },
    ]


def _of_confidences(classes: Classes, bins: int) -> list[Outcome]:
    """Calibration and selective risk, over the answered with a usable confidence."""
    base = {
        "column": "confidence",
        "usable": {"answer": list(classes), "confidence_state": "given"},
        "right": {"bucket": "passed"},
        "span": 1.0,
        "cluster": "sample",
    }
    return [
        {**base, "name": "ece", "title": "ECE", "kind": "ece", "bins": bins},
        {**base, "name": "brier", "title": "Brier score", "kind": "brier"},
        {**base, "name": "aurc", "title": "AURC", "kind": "aurc"},
        {**base, "name": "e_aurc", "title": "E-AURC", "kind": "e_aurc", "on_request": True},
        {**base, "name": "auroc_confidence", "title": "AUROC of confidence", "kind": "auroc", "on_request": True},
        {**base, "name": "log_loss", "kind": "log_loss", "span": None, "on_request": True},
    ]


def _shares_on_request(classes: Classes) -> list[Outcome]:
    """Where the records without an answer ended, and coverage by class."""
    buckets = {
        "abstain_rate": "abstained",
        "error_rate": "errored",
        "unparsed_rate": "unparsed",
        "missing_rate": "missing",
    }
    by_class = [
        _rate(f"{kind}_{label}", words, label, on_request=True)
        for label in classes
        for kind, words in (("coverage", {"answer": list(classes)}), ("abstain_rate", {"bucket": "abstained"}))
    ]
    return [*(_rate(name, {"bucket": bucket}, None, on_request=True) for name, bucket in buckets.items()), *by_class]


def _of_cells(name: str, rate: Rate, classes: Classes) -> Outcome:
    """A rate by the cells that it counts, each a label with a class that was answered or a bucket without an answer."""

    def words(cells: tuple[int, ...]) -> list[Any]:
        pairs = ((classes[cell // ANSWERS], cell % ANSWERS) for cell in cells)
        return [
            {"where": {"label": label, "bucket": _BUCKETS[answer]}}
            if answer in _BUCKETS
            else _cell(label, classes[answer])
            for label, answer in pairs
        ]

    return {**_ratio(name, words(rate.hits), words(rate.base)), "on_request": True}


def _cell(label: str, answer: str) -> dict[str, Any]:
    return {"where": {"label": label, "answer": answer}}


def _ratio(name: str, hits: list[Any], base: list[Any]) -> Outcome:
    return {"name": name, "kind": "ratio", "hits": hits, "base": base, "cluster": "sample"}
