"""What a protocol shows beside its estimates: a Section is a titled table in metrics.json, a Panel part of an opened sample.

A package publishes JSON Schemas as files in its folder json_schemas; that of manifest.json is made here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import pyarrow as pa

from adjudge.provenance.manifest import Manifest
from adjudge.stats.estimate import Estimate

if TYPE_CHECKING:
    from adjudge.runs.run import Run


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
            **{key: getattr(self, key) for key in ("name", "title", "note", "place", "terminal", "empty")},
            "columns": [{"title": column.title, "unit": column.unit} for column in columns],
            "rows": [[cell.to_dict() if isinstance(cell, Estimate) else cell for cell in row] for row in self.rows],
        }


Kind = Literal["pairs", "texts", "table", "picture", "drawing", "series"]
Values = Callable[["Run", pa.Table, pa.Table | None], Mapping[str, Sequence[Any]]]


@dataclass(frozen=True)
class Panel:
    """One part of an opened sample; `columns` names, by label, columns of the run's samples or outputs.

    | kind | shows | options |
    |---|---|---|
    | pairs | every label with its value | – |
    | texts | texts side by side | `badges`: by label, a column whose word stands beside the label |
    | table | a row for each of `rows`, a column for each label, and what the checks say of the row | `rows`; `error`: the labels of the predicted and the true value; `angles`: rows whose error goes around at 360; `limit`: the family of the rule whose limit is shown |
    | picture | the file that a column names, where it lies beside the input | – |
    | drawing | boxes and points on a screen | `size`: columns of its width and height; `extent`: its size in the coordinates' unit; `boxes`, `points`: lists of label, columns and class; `behind`: the column that names a picture |
    | series | a line over time with spans and marks, from `values` | – |

    A column of a table is a list with a value for every row (and step), or a name with `{}` for the row. `values` gives
    further columns of a batch of samples (and of its outputs), by name, as plain data. `missing` is said where the run
    holds nothing for the panel; without it such a panel is left out.
    """

    kind: Kind
    title: str
    columns: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    missing: str = ""
    values: Values | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data, without what computes it."""
        data = {**vars(self), "columns": dict(self.columns), "options": dict(self.options)}
        del data["values"]
        return data


DRAFT = "https://json-schema.org/draft/2020-12/schema"


def published(package: str) -> dict[str, dict[str, Any]]:
    """The schemas of a package by name; none where it has no such folder."""
    folder = files(package) / "json_schemas"
    names = sorted(file.name.removesuffix(".json") for file in folder.iterdir()) if folder.is_dir() else []
    return {name: schema(package, name) for name in names}


def schema(package: str, name: str) -> dict[str, Any]:
    """One schema of a package."""
    text = (files(package) / "json_schemas" / f"{name}.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, Any])


def of_struct(kind: type, **more: Any) -> dict[str, Any]:
    """The schema of a declared struct."""
    return {"$schema": DRAFT, **more, **msgspec.json.schema(kind)}


def schemas() -> dict[str, dict[str, Any]]:
    """The schemas that all protocols share, by name."""
    return {"manifest": of_struct(Manifest, title="manifest.json of a run"), **published(__package__)}
