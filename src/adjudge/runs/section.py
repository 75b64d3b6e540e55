"""Section: a titled table that a protocol shows beside its estimates, kept in metrics.json and shown by every report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from adjudge.stats.estimate import Estimate

Cell = str | int | float | None | Estimate
"""A text, a count, a number, nothing, or an estimate with its interval."""


@dataclass(frozen=True)
class Column:
    """A column by its title; `unit` is that of its numbers, and "%" shows shares of 1 in percent."""

    title: str
    unit: str = ""


@dataclass(frozen=True)
class Section:
    """A table with a title, one sentence on how to read it, and rows of cells.

    `place` says where a page shows it: `first` before all other numbers, `results` beside the headline estimates, `more`
    folded below. A terminal shows its first `terminal` rows, none of a section with 0; `empty` is said where it has no row.
    """

    name: str
    title: str
    columns: Sequence[Column | str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    place: Literal["first", "results", "more"] = "results"
    terminal: int = 12
    empty: str = ""

    def __post_init__(self) -> None:
        wrong = [index for index, row in enumerate(self.rows) if len(row) != len(self.columns)]
        if wrong:
            raise ValueError(f"section {self.name}: row {wrong[0]} has not as many cells as there are columns")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data, full precision."""
        columns = [Column(column) if isinstance(column, str) else column for column in self.columns]
        return {
            "name": self.name,
            "title": self.title,
            "note": self.note,
            "place": self.place,
            "terminal": self.terminal,
            "empty": self.empty,
            "columns": [{"title": column.title, "unit": column.unit} for column in columns],
            "rows": [[cell.to_dict() if isinstance(cell, Estimate) else cell for cell in row] for row in self.rows],
        }
