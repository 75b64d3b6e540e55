"""Panel: what a page shows of one opened sample, drawn by its kind from columns that the run holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

if TYPE_CHECKING:
    from adjudge.runs.run import Run

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
        return {
            "kind": self.kind,
            "title": self.title,
            "columns": dict(self.columns),
            "options": dict(self.options),
            "note": self.note,
            "missing": self.missing,
        }
