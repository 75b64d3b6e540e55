"""The sections of a run as rendered tables: what a terminal, a page, Markdown and LaTeX show of them alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adjudge.report import numbers
from adjudge.runs.run import Run
from adjudge.runs.section import Column, Section
from adjudge.stats.estimate import Estimate
from adjudge.stats.metric import SHARE


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
