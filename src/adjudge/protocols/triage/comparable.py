"""What of a triage run `adjudge compare` may pair, and which columns are the data set's own."""

from __future__ import annotations

from typing import Any

from adjudge.protocols.triage.words import Classes

DATASET_COLUMNS = ("label",)


def comparable(classes: Classes) -> list[dict[str, Any]]:
    """Catching, passing, coverage and accuracy over all records: an abstention, an error, a missing answer is no success."""
    positive, negative = classes
    passed = {"column": "bucket", "equals": "passed", "kind": "binary", "higher_is_better": True, "cluster": "sample"}
    return [
        {
            **passed,
            "name": f"{positive}_catch_rate",
            "where": {"label": positive},
            "phrases": {"better": f"catches more {positive}s", "worse": f"catches fewer {positive}s"},
        },
        {
            **passed,
            "name": f"{negative}_pass_rate",
            "where": {"label": negative},
            "phrases": {"better": f"passes more {negative} samples", "worse": f"passes fewer {negative} samples"},
        },
        {**passed, "name": "coverage", "equals": ["passed", "failed"]},
        {**passed, "name": "accuracy", "phrases": {"better": "is right more often", "worse": "is right less often"}},
        *_among_the_answered(classes),
    ]


def _among_the_answered(classes: Classes) -> list[dict[str, Any]]:
    """Ratios whose base is another set of samples in each run; F1 is 2·TP / (2·TP + FP + FN)."""
    answered = list(classes)
    right = [_cells(label, label) for label in classes]
    found = [_ratio("accuracy_answered", right, [{"where": {"answer": answered}}])]
    found[0]["phrases"] = {
        "better": "is right more often where it answers",
        "worse": "is right less often where it answers",
    }
    for own, other in (classes, classes[::-1]):
        hit, alarm, miss = _cells(own, own), _cells(other, own), _cells(own, other)
        twice = {**hit, "weight": 2.0}
        found += [
            _ratio(f"f1_{own}", [twice], [twice, alarm, miss], on_request=own != classes.positive),
            _ratio(f"precision_{own}", [hit], [hit, alarm], on_request=True),
            _ratio(f"recall_{own}", [hit], [hit, miss], on_request=True),
        ]
    return found


def _cells(label: str, answer: str) -> dict[str, Any]:
    return {"where": {"label": label, "answer": answer}}


def _ratio(name: str, hits: list[Any], base: list[Any], *, on_request: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "title": name.replace("f1_", "F1 of ").replace("_", " "),
        "kind": "ratio",
        "hits": hits,
        "base": base,
        "higher_is_better": True,
        "cluster": "sample",
        "on_request": on_request,
    }
