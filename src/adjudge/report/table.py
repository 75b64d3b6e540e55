"""Plain text tables: aligned columns, split into blocks that fit the page."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH = 100
_GAP = "  "


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, width: int = WIDTH) -> str:
    """A table whose first `left` columns are words and the rest numbers, set to the right.

    Columns that do not fit the width go into further blocks below, each with the first column again.
    """
    widths = [max(len(line[index]) for line in (head, *rows)) for index in range(len(head))]
    blocks: list[list[int]] = []
    for index in range(1, len(head)):
        used = widths[0] + sum(len(_GAP) + widths[column] for column in (blocks[-1] if blocks else ()))
        if not blocks or used + len(_GAP) + widths[index] > width:
            blocks.append([])
        blocks[-1].append(index)
    return "\n\n".join(_block(head, rows, [0, *block], widths, left) for block in blocks or [[]])


def _block(
    head: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[int], widths: Sequence[int], left: int
) -> str:
    def line(cells: Sequence[str]) -> str:
        return _GAP.join(
            cells[index].ljust(widths[index]) if index < left else cells[index].rjust(widths[index])
            for index in columns
        ).rstrip()

    rule = _GAP.join("─" * widths[index] for index in columns)
    return "\n".join([line(head), rule, *(line(row) for row in rows)])
