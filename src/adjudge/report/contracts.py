"""A run under a contract: its stamp, the checklist and the negative results, which no report may leave out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.report import numbers, view
from adjudge.runs.run import Run

_WORDS = {
    "VALID": "every rule of the contract held",
    "VALID WITH OPEN ITEMS": "no rule was violated, and these are not known",
    "INVALID": "the contract was violated, so there is no result",
}


def contracts(run: Run) -> list[dict[str, Any]]:
    """One block a contract, of the run or of each of its detectors; none for a protocol that stamps nothing."""
    return [_block(str(name), top) for name, top in view.stamped(run).items()]


def _block(name: str, top: Mapping[str, Any]) -> dict[str, Any]:
    violations = [{"code": item["code"], "reason": text} for item in top["violations"] for text in item["reasons"]]
    left_open = [f"{item['item']} ({item['why']})" for item in top.get("open_items") or ()]
    shown = "; ".join(left_open) if top["stamp"] == "VALID WITH OPEN ITEMS" else ""
    offline = ", judged offline: it sees whole flights" if top.get("offline") else ""
    return {
        "name": name,
        "stamp": top["stamp"],
        "valid": not violations,
        "sentence": f"{top['stamp']}{offline}: {_WORDS[top['stamp']]}{f': {shown}' if shown else ''}",
        "calibration": (top.get("calibration") or {}).get("not_carried_over") or "",
        "violations": violations,
        "checklist": [{"why": "", "closed_by": "", **line} for line in top["checklist"]],
        "negative": negative_lines(top),
    }


def negative_lines(top: Mapping[str, Any]) -> list[str]:
    """The negative results in words; empty where the numbers are withheld."""
    results = top.get("negative_results")
    if not isinstance(results, dict):
        return []
    lines = []
    smallest = results["min_detectable_magnitude"]
    if top.get("worst_attack") is not None:
        lines.append(f"Worst attack: {top['worst_attack']}; best: {top['best_attack']}.")
    poor = results["attacks_with_recall_below_half"]
    for row in poor:
        unit = smallest.get(row["attack"], {}).get("unit", "")
        size = "" if row.get("magnitude") is None else f" of {numbers.number(row['magnitude'], unit=unit)}"
        lines.append(f"Mostly missed: {row['attack']}{size}, recall {numbers.number(row['recall'], unit='%')}.")
    if not results.get("attacks_judged", 1):
        lines.append("No attack was judged, so nothing is known of what is missed.")
    elif not poor:
        lines.append("No attack, at no size that was tried, has a recall below 50 %.")
    for attack, sizes in smallest.items():
        half, most = (_size(sizes[key], sizes) for key in ("recall_0.5", "recall_0.9"))
        lines.append(f"Smallest detectable {attack}: {half} (recall 50 %), {most} (recall 90 %).")
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


def _size(value: float | None, sizes: Mapping[str, Any]) -> str:
    """A size with its unit; the smallest that was tried is only a bound."""
    tried, unit = sizes.get("tried") or (), sizes.get("unit", "")
    if value is None:
        most = f" (up to {numbers.number(max(tried), unit=unit)})" if tried else ""
        return f"none of those tried{most}"
    shown = numbers.number(value, unit=unit)
    return f"at most {shown} (smallest tried)" if tried and value <= min(tried) else shown
