"""The sections of a run as rendered tables: what a terminal, a page, Markdown and LaTeX show of them alike.

A run under a contract must show its stamp, the checklist and the negative results, which cannot be left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.report import numbers
from adjudge.runs.run import Run
from adjudge.runs.section import Column, Section
from adjudge.stats.estimate import SHARE, Estimate


@dataclass(frozen=True)
class Shown:
    """One section, rendered: texts of its cells beside the values they sort by; `left` first columns are words."""

    name: str
    title: str
    note: str
    place: str
    terminal: int
    empty: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    values: tuple[tuple[float | None, ...], ...]
    numeric: tuple[bool, ...]

    @property
    def left(self) -> int:
        """How many columns come before the first of numbers."""
        return next((index for index, numeric in enumerate(self.numeric) if numeric), len(self.head))

    def block(self) -> dict[str, Any]:
        """The section as the page embeds it."""
        return {
            "name": self.name,
            "title": self.title,
            "note": self.note,
            "place": self.place,
            "empty": self.empty,
            "columns": [
                {"title": title, "numeric": numeric or {row[index] for row in self.rows} == {"–"}}
                for index, (title, numeric) in enumerate(zip(self.head, self.numeric, strict=True))
            ],
            "rows": [
                [{"text": text, "value": value} for text, value in zip(texts, values, strict=True)]
                for texts, values in zip(self.rows, self.values, strict=True)
            ],
        }


def sections(run: Run, place: str | None = None) -> list[Shown]:
    """The run's sections in the order the protocol gave them, all or those of one place."""
    stored = [*(run.metrics.get("sections") or ()), *(section.to_dict() for section in _validation(run))]
    return [_shown(section) for section in stored if place in {None, section["place"]}]


def _validation(run: Run) -> list[Section]:
    """How far the judge of the run agrees with rules and people, where it was validated."""
    validation = run.validation
    if validation is None:
        return []
    rows: list[list[Any]] = []
    for against in ("people", "rules"):
        counted = validation[against]
        if counted is not None:
            (both, stricter), (laxer, neither) = counted["confusion"]
            estimates = [Estimate.from_dict(counted[name]) for name in ("percent_agreement", "kappa")]
            rows.append([against, counted["n"], *estimates, both, stricter, laxer, neither])
    flip_text = (
        ""
        if validation["flip_rate"] is None
        else numbers.estimate(Estimate.from_dict(validation["flip_rate"]), unit=SHARE)
    )
    flips = "" if validation["flip_rate"] is None else f" Votes differed on {flip_text} of the samples."
    return [
        Section(
            "judge_validation",
            f"Is the judge any good? {validation['agent']}, validated",
            [
                "against",
                "n",
                Column("agreement", "%"),
                "κ",
                "both eligible",
                "only they",
                "only the judge",
                "both ineligible",
            ],
            rows,
            note=f"Gates on its verdicts are held where κ has a low end of at least 0.6.{flips}",
        )
    ]


def _shown(section: dict[str, Any]) -> Shown:
    units = [column["unit"] for column in section["columns"]]
    rows = section["rows"]
    numeric = tuple(
        any(row[index] is not None for row in rows) and not any(isinstance(row[index], str) for row in rows)
        for index in range(len(units))
    )
    return Shown(
        name=section["name"],
        title=section["title"],
        note=section["note"],
        place=section["place"],
        terminal=section["terminal"],
        empty=section["empty"],
        head=tuple(column["title"] for column in section["columns"]),
        rows=tuple(tuple(_text(cell, unit) for cell, unit in zip(row, units, strict=True)) for row in rows),
        values=tuple(tuple(map(_value, row)) for row in rows),
        numeric=numeric,
    )


def _text(cell: Any, unit: str) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, dict):
        return numbers.estimate(Estimate.from_dict(cell), unit=unit)
    if isinstance(cell, int) and unit != SHARE:
        return numbers.count(cell) + (f" {unit}" if unit else "")
    return numbers.number(cell, unit=unit)


def _value(cell: Any) -> float | None:
    value = cell.get("value") if isinstance(cell, dict) else cell
    return None if isinstance(value, str) else value


_WORDS = {
    "VALID": "every rule of the contract held",
    "VALID WITH OPEN ITEMS": "no rule was violated, and these are not known",
    "INVALID": "the contract was violated, so there is no result",
}


def contracts(run: Run) -> list[dict[str, Any]]:
    """One block a contract, of the run or of each of its detectors; none for a protocol that stamps nothing."""
    metrics = run.metrics
    several = metrics.get("detectors")
    if isinstance(several, dict):
        return [_block(str(name), top) for name, top in several.items()]
    return [_block("", metrics)] if isinstance(metrics.get("stamp"), str) else []


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
