"""The charts of a consistency run, as Vega-Lite specifications; rendering them is the report's work."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from adjudge.protocols.base import Named
from adjudge.protocols.common.charts import Spec, chart, intervals, layer, number, tooltip, words
from adjudge.protocols.consistency.policy import LABELS

_GREEN, _RED, _BLUE = "#2a9d8f", "#c0392b", "#2b6ca3"


def pair_charts(matrix: Any, finals: Mapping[str, int], ships: Collection[str], named: Sequence[Named]) -> list[Spec]:
    """Confusion, agreement by label, finals by reason."""
    return [confusion(matrix, LABELS, "scholar", "auditor"), by_label(named, LABELS), by_reason(finals, ships)]


def confusion(matrix: Any, labels: Sequence[str], first: str, second: str) -> Spec:
    """How often each pair of labels was given; the diagonal is agreement."""
    total = int(matrix.sum())
    rows = [
        {
            "first": one,
            "second": two,
            "items": int(matrix[i, j]),
            "share": int(matrix[i, j]) / total if total else None,
            "agree": i == j,
        }
        for i, one in enumerate(labels)
        for j, two in enumerate(labels)
    ]
    most = max(int(matrix.max(initial=0)), 1)
    return _heat(
        "confusion",
        f"Labels of the {first} and the {second}",
        "Items by both labels; agreement stands on the diagonal.",
        rows,
        labels,
        titles=(first, second),
        value="items",
        text=number("items", format=",d"),
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
    return _heat(
        "raters",
        f"Rater by rater: {measure}",
        "Pairwise agreement beyond chance of all raters; empty where it is undefined.",
        rows,
        names,
        value="value",
        text=number("value", format=".2f"),
        scale={"scheme": "tealblues", "domain": [0, 1], "clamp": True},
        dark="datum.value > 0.6",
    )


def _heat(
    name: str,
    title: str,
    description: str,
    rows: list[dict[str, Any]],
    labels: Sequence[str],
    *,
    value: str,
    text: Spec,
    scale: Spec,
    dark: str,
    titles: tuple[str, str] | None = None,
) -> Spec:
    def axis(field: str, place: int, angle: int) -> Spec:
        return words(
            field,
            sort=list(labels),
            title=titles[place] if titles else None,
            axis={"labelAngle": angle, "labelLimit": 160},
        )

    colour = number(value, scale=scale, legend=None)
    text_colour = {"condition": {"test": dark, "value": "white"}, "value": "#1b1b1b"}
    return chart(
        name,
        title,
        description=description,
        width={"step": 92 if titles else 64},
        height={"step": 44},
        data={"values": rows},
        encoding={"y": axis("first", 0, 0), "x": axis("second", 1, 0 if titles else -35)},
        layer=[
            layer("rect", {"color": colour}, stroke="white"),
            layer("text", {"text": text, "color": text_colour}, fontSize=13),
        ],
    )


def by_label(named: Sequence[Named], labels: Sequence[str]) -> Spec:
    """Specific agreement of each label with its interval."""
    estimates = {where.partition("=")[2]: e for name, where, e in named if name == "label_agreement"}
    rows = [
        {"label": label, "agreement": e.value, "low": e.low, "high": e.high, "mentions": e.n}
        for label, e in estimates.items()
        if e.value is not None
    ]
    y = words("label", sort=list(labels), title=None, axis={"labelLimit": 160})
    axis = {
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {"format": ".0%"},
        "title": "agreement on the label",
    }
    shown = tooltip("label", "agreement", "low", "high", "mentions")
    return chart(
        "label_agreement",
        "Agreement by label",
        description="Of all mentions of a label, the share that the other rater matches, with 95 % intervals.",
        width=420,
        height={"step": 34},
        data={"values": rows},
        encoding={"y": y},
        layer=intervals(axis, "agreement", _BLUE, tooltip=shown),
    )


def by_reason(finals: Mapping[str, int], ships: Collection[str]) -> Spec:
    """How many items each row of the policy decided."""
    rows = [
        {"why": why, "items": count, "result": "ships" if why in ships else "rejected"} for why, count in finals.items()
    ]
    y = words("why", sort=list(finals), title=None, axis={"labelLimit": 200})
    scale = {"domain": ["ships", "rejected"], "range": [_GREEN, _RED]}
    colour = words("result", scale=scale, title=None)
    count = number("items", format=",d")
    return chart(
        "finals_by_why",
        "Finals by reason",
        description="Every item is decided by one row of the policy; the bars add up to all items.",
        width=420,
        height={"step": 28},
        data={"values": rows},
        encoding={"y": y, "x": number("items", title="items")},
        layer=[{"mark": "bar", "encoding": {"color": colour}}, layer("text", {"text": count}, align="left", dx=4)],
    )
