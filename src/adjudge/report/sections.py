"""The sections of a run as rendered tables: what a terminal, a page, Markdown and LaTeX show of them alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adjudge.report import numbers
from adjudge.runs.run import Run
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
                {"title": title, "numeric": numeric} for title, numeric in zip(self.head, self.numeric, strict=True)
            ],
            "rows": [
                [{"text": text, "value": value} for text, value in zip(texts, values, strict=True)]
                for texts, values in zip(self.rows, self.values, strict=True)
            ],
        }


def sections(run: Run, place: str | None = None) -> list[Shown]:
    """The run's sections in the order the protocol gave them, all or those of one place."""
    stored = run.metrics.get("sections") or ()
    return [_shown(section) for section in stored if place in {None, section["place"]}]


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
