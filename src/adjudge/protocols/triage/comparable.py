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
    name: str, equals: dict[str, Any], label: str | None, better: str = "", worse: str = "", *, on_request: bool = False
) -> Outcome:
    """The share of records, or of those with one label, whose column holds some word."""
    ((column, words),) = equals.items()
    return {
        "name": name,
        "kind": "binary",
        "column": column,
        "equals": words,
        "where": {} if label is None else {"label": label},
        "cluster": "sample",
        "phrases": {"better": better, "worse": worse} if better else {},
        "on_request": on_request,
    }


def _among_the_answered(classes: Classes) -> list[Outcome]:
    """Metrics over the answered samples, which are not the same in every run; F1 is 2·TP / (2·TP + FP + FN)."""
    p, n = classes
    answered = _where(answer=[p, n])
    right = [_where(label=label, answer=label) for label in classes]
    phrases = {"better": "is right more often where it answers", "worse": "is right less often where it answers"}
    outcomes = [{**_ratio("accuracy_answered", right, [answered]), "phrases": phrases}]
    for label, other in (classes, classes[::-1]):
        hit, alarm, miss = (_where(label=a, answer=b) for a, b in ((label, label), (other, label), (label, other)))
        twice = {**hit, "weight": 2.0}
        outcomes += [
            {**_ratio(f"f1_{label}", [twice], [twice, alarm, miss]), "title": f"F1 of {label}"},
            {**_ratio(f"precision_{label}", [hit], [hit, alarm]), "on_request": True},
            {**_ratio(f"recall_{label}", [hit], [hit, miss]), "on_request": True},
        ]
    balanced = {"kind": "balanced", "unit": "%", "span": 1.0, "cluster": "sample"}
    of_answered = [cell for hit in right for cell in (hit, _where(label=hit["where"]["label"], answer=[p, n]))]
    of_all = [cell for hit in right for cell in (hit, _where(label=hit["where"]["label"]))]
    table = [_where(label=label, answer=answer) for label in classes for answer in classes]
    return [
        *outcomes,
        {**balanced, "name": "balanced_accuracy", "cells": of_answered},
        {**balanced, "name": "balanced_accuracy_all", "cells": of_all, "on_request": True},
        {"name": "mcc", "title": "MCC", "kind": "mcc", "span": 2.0, "cluster": "sample", "cells": table},
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
    abstained = {"bucket": "abstained"}
    shares: list[tuple[str, dict[str, Any], str | None]] = [
        ("abstain_rate", abstained, None),
        ("error_rate", {"bucket": "errored"}, None),
        ("unparsed_rate", {"bucket": "unparsed"}, None),
        ("missing_rate", {"bucket": "missing"}, None),
    ]
    for label in classes:
        shares += [(f"coverage_{label}", {"answer": list(classes)}, label), (f"abstain_rate_{label}", abstained, label)]
    return [_rate(name, equals, label, on_request=True) for name, equals, label in shares]


def _of_cells(name: str, rate: Rate, classes: Classes) -> Outcome:
    """A rate by the cells that it counts, each a label with a class that was answered or a bucket without an answer."""
    ends = {code: {"answer": name} for code, name in enumerate(classes)}
    ends |= {code: {"bucket": bucket} for code, bucket in _BUCKETS.items()}
    hits, base = (
        [_where(label=classes[cell // ANSWERS], **ends[cell % ANSWERS]) for cell in cells]
        for cells in (rate.hits, rate.base)
    )
    return {**_ratio(name, hits, base), "on_request": True}


def _where(**words: Any) -> dict[str, Any]:
    """Rows whose columns hold these words."""
    return {"where": words}


def _ratio(name: str, hits: list[Any], base: list[Any]) -> Outcome:
    return {"name": name, "kind": "ratio", "hits": hits, "base": base, "cluster": "sample"}
