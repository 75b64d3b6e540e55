"""What a run under a contract must show: its stamp, the checklist, and the negative results, which cannot be left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.report import numbers
from adjudge.runs.run import Run


def contracts(run: Run) -> list[dict[str, Any]]:
    """One block a contract, of the run or of each of its detectors; none for a protocol that stamps nothing."""
    metrics = run.metrics
    several = metrics.get("detectors")
    if isinstance(several, dict):
        return [_block(str(name), top) for name, top in several.items()]
    return [_block("", metrics)] if isinstance(metrics.get("stamp"), str) else []


def _block(name: str, top: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "stamp": top["stamp"],
        "violations": [
            {"code": item["code"], "reason": reason} for item in top["violations"] for reason in item["reasons"]
        ],
        "checklist": top["checklist"],
        "negative": negative_lines(top),
        "folds": _fold_lines(top.get("leave_one_flight_out")),
    }


def negative_lines(top: Mapping[str, Any]) -> list[str]:
    """The negative results in words; empty where the numbers are withheld."""
    results = top.get("negative_results")
    if not isinstance(results, dict):
        return []
    lines = []
    if top.get("worst_attack") is not None:
        lines.append(f"Worst attack: {top['worst_attack']}; best: {top['best_attack']}.")
    poor = results["attacks_with_recall_below_half"]
    lines += [f"Mostly missed: {row['attack']}, recall {numbers.number(row['recall'], unit='%')}." for row in poor]
    if not poor:
        lines.append("No attack has a recall below 50 %.")
    for attack, sizes in results["min_detectable_magnitude"].items():
        half, most = (sizes[key] for key in ("recall_0.5", "recall_0.9"))
        lines.append(f"Smallest detectable {attack}: {_size(half)} (recall 50 %), {_size(most)} (recall 90 %).")
    shifted = results["shifted_condition"]
    if isinstance(shifted, str):
        lines.append(f"False alarms under a shifted condition: {shifted}.")
    else:
        for row in shifted["conditions"]:
            kind = "shifted" if row["shifted"] else "as calibrated"
            lines.append(
                f"False alarms where {shifted['column']} is {row['condition']} ({kind}): "
                f"{numbers.number(row['fpr'], unit='%')} of rows, "
                f"{numbers.number(row['false_alarms_per_hour'])} an hour."
            )
    lines += [
        f"Control {item['name']}: {item['outcome']}, {item['why']}."
        for item in top.get("controls") or ()
        if item["outcome"] == "fail"
    ]
    return lines


def _fold_lines(found: Mapping[str, Any] | None) -> list[str]:
    if not found:
        return []
    return [
        f"{name}: mean {numbers.number(row['mean'])}, variance {numbers.number(row['variance'])} over {row['folds']} folds"
        for name, row in found["over_folds"].items()
    ]


def _size(value: float | None) -> str:
    return "none of those tried" if value is None else numbers.number(value)
