"""The charts of a consistency run, as Vega-Lite specifications; rendering them is the report's work."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from adjudge.protocols.base import Named
from adjudge.protocols.common.plan import Spec, chart


def confusion(matrix: Any, labels: Sequence[str], first: str, second: str) -> Spec:
    """How often each pair of labels was given; the diagonal is agreement."""
    total = int(matrix.sum())
    rows = [
        {"first": one, "second": two, "items": items, "share": items / total if total else None, "agree": one == two}
        for one, row in zip(labels, matrix.tolist(), strict=True)
        for two, items in zip(labels, row, strict=True)
    ]
    most = max(int(matrix.max(initial=0)), 1)
    return chart(
        __package__,
        "heat",
        "confusion",
        title=f"Labels of the {first} and the {second}",
        description="Items by both labels; agreement stands on the diagonal.",
        rows=rows,
        labels=list(labels),
        first=first,
        second=second,
        angle=0,
        width=92,
        value="items",
        format=",d",
        scale={"scheme": "blues", "type": "symlog", "domain": [0, most]},
        dark=f"datum.items > {most**0.6}",
    )


def raters(names: Sequence[str], cells: Mapping[tuple[str, str], float | None], measure: str) -> Spec:
    """A rater-by-rater matrix of one measure."""
    rows = [
        {"first": one, "second": two, "value": 1.0 if one == two else cells.get((one, two))}
        for one in names
        for two in names
    ]
    return chart(
        __package__,
        "heat",
        "raters",
        title=f"Rater by rater: {measure}",
        description="Pairwise agreement beyond chance of all raters; empty where it is undefined.",
        rows=rows,
        labels=list(names),
        first=None,
        second=None,
        angle=-35,
        width=64,
        value="value",
        format=".2f",
        scale={"scheme": "tealblues", "domain": [0, 1], "clamp": True},
        dark="datum.value > 0.6",
    )


def by_label(named: Sequence[Named], labels: Sequence[str]) -> Spec:
    """Specific agreement of each label with its interval."""
    estimates = {where.partition("=")[2]: e for name, where, e in named if name == "label_agreement"}
    rows = [
        {"label": label, "agreement": e.value, "low": e.low, "high": e.high, "mentions": e.n}
        for label, e in estimates.items()
        if e.value is not None
    ]
    return chart(__package__, "label_agreement", rows=rows, labels=list(labels))


def by_reason(finals: Mapping[str, int], ships: Collection[str]) -> Spec:
    """How many items each row of the policy decided."""
    rows = [
        {"why": why, "items": count, "result": "ships" if why in ships else "rejected"} for why, count in finals.items()
    ]
    return chart(__package__, "finals_by_why", rows=rows, reasons=list(finals))
