"""From a block of records to columns: what is plainly written by compiled loops, the rest one by one, the same table."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.errors import InputError
from adjudge.protocols.gui import scanned, tables
from adjudge.protocols.gui.boxes import to_corners, upside_down
from adjudge.readers.blocks import Block


class BlockReader:
    """Reads the records of every role, and refuses those that are wrong in themselves."""

    def __init__(self, types: tuple[str, ...], *, space: str, bbox: str) -> None:
        self.types, self.space, self.bbox = types, space, bbox

    def episodes(self, block: Block) -> pa.Table:
        """A row a recorded step, its type as a place in `types` (`kind`), its boxes as left, top, right, bottom."""
        table, owner, odd = scanned.episodes(block)
        rows = np.flatnonzero(odd)
        if rows.size:
            rest, others = tables.episodes(block, rows.tolist(), self.space, self.bbox)
            order = np.argsort(np.concatenate([owner, np.array(others, dtype=np.int64)]), kind="stable")
            table = pa.concat_tables([table, rest]).take(order)
        table = table.combine_chunks()
        self._check_screens(block, table)
        at = table.column_names.index("type")
        return self._in_corners(block, table.set_column(at, "kind", self._kinds(block, table)))

    def predictions(self, block: Block) -> pa.Table:
        """A row a prediction, texts parsed."""
        table, odd = scanned.predictions(block, self.types)
        rows = np.flatnonzero(odd)
        if rows.size:
            rest = tables.predictions(block, rows.tolist(), self.types)
            order = np.argsort(np.concatenate([np.flatnonzero(~odd), rows]), kind="stable")
            table = pa.concat_tables([table, rest]).take(order)
        return table

    def outcomes(self, block: Block) -> pa.Table:
        """A row an outcome."""
        return tables.outcomes(block)

    def _kinds(self, block: Block, table: pa.Table) -> pa.Array:
        found = pc.index_in(table.column("type"), value_set=pa.array(self.types, pa.string())).combine_chunks()
        if found.null_count:
            row = table.slice(pc.index(pc.is_null(found), True).as_py(), 1).to_pylist()[0]
            what = f"episode {row['key']!r}, step {row['step']}: action type"
            raise unknown_type(row["type"], what, self.types, block.path, row["line"])
        return found.cast(pa.int16())

    def _check_screens(self, block: Block, table: pa.Table) -> None:
        width, height = (table.column(name).combine_chunks().to_numpy() for name in ("width", "height"))
        bad = (width <= 0) | (height <= 0)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            what = f"episode {table.column('key')[row].as_py()!r} has a screen of {width[row]:g} × {height[row]:g}"
            raise InputError(what, file=block.path, line=table.column("line")[row].as_py())

    def _in_corners(self, block: Block, table: pa.Table) -> pa.Table:
        boxes = table.column("boxes").combine_chunks()
        given = boxes.flatten().to_numpy().reshape(-1, 4)
        corners, bad = to_corners(given, self.bbox)
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            row = int(np.repeat(np.arange(len(boxes)), box_counts(boxes))[first])
            what = f"episode {table.column('key')[row].as_py()!r}, step {table.column('step')[row].as_py()}: "
            text = what + upside_down(given[first], self.bbox)
            raise InputError(text, file=block.path, line=table.column("line")[row].as_py())
        if self.bbox == "xyxy":
            return table
        values = pa.array(corners.ravel())
        kept = pa.ListArray.from_arrays(_offsets(boxes), values, mask=boxes.is_null())
        return table.set_column(table.column_names.index("boxes"), "boxes", kept)


def unknown_type(kind: str, what: str, types: Sequence[str], path: str, line: int) -> InputError:
    """An action type of a recording that is not in the list."""
    close = difflib.get_close_matches(kind, types, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else f"Known are {', '.join(types)}."
    return InputError(f"{what} {kind!r} is unknown (--types {kind} accepts it).", file=path, line=line, hint=hint)


def box_counts(boxes: pa.ListArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """How many boxes each row has."""
    counts: np.ndarray[tuple[int], np.dtype[np.int64]] = (
        boxes.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64) // 4
    )
    return counts


def _offsets(boxes: pa.ListArray) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(box_counts(boxes))]).astype(np.int32) * 4)
