"""Labels by people for some of the samples, and how numbers and trials are read from a user's own file."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa

from adjudge.errors import InputError
from adjudge.protocols.score.groups import id_name, item_name
from adjudge.readers.blocks import Block
from adjudge.readers.logs.record import Score, score_of

EXPECTED = (
    "a label is a JSON object with `id`, `label` (true, false, 0 or 1), and where it matters `model`, `task`, `trial`"
)


class Label(msgspec.Struct, gc=False):
    """What a person says of one attempt."""

    id: str | int | float
    label: bool | int | float | str
    model: str | int | None = None
    task: str | None = None
    trial: int | str | None = None


_LABELS = msgspec.json.Decoder(Label)


def read_truth(block: Block, task: str) -> pa.Table:
    """Labels as columns; `model` and `trial` are empty where a label is about every one. `task` is that of labels without."""
    rows = block.decode(_LABELS, EXPECTED)
    lines = block.lines.tolist()
    labels = [number_of(row.label, block, line, "label") for row, line in zip(rows, lines, strict=True)]
    for row, line, label in zip(rows, lines, labels, strict=True):
        if label.value not in {0.0, 1.0}:
            what = f"label {str(row.label)[:40]!r} is neither right (true, 1) nor wrong (false, 0)"
            raise InputError(what, file=block.path, line=line)
    trials = [trial_of(row.trial, block, line, None) for row, line in zip(rows, lines, strict=True)]
    return pa.table(
        {
            "key": pa.array([item_name(row.task or task, id_name(row.id)) for row in rows], pa.string()),
            "file": pa.array([block.file] * len(rows), pa.int32()),
            "line": pa.array(block.lines),
            "label": pa.array([score.value for score in labels], pa.float64()),
            "model": pa.array([None if row.model is None else str(row.model) for row in rows], pa.string()),
            "trial": pa.array(trials, pa.int32()),
        }
    )


def number_of(value: Any, block: Block, line: int, name: str) -> Score:
    """A score, or an error that names file, line and key."""
    score = score_of(value)
    if score is None:
        raise InputError(
            f"{name} {str(value)[:80]!r} is no number, true, false, C, I, P or N", file=block.path, line=line
        )
    return score


def trial_of(value: int | str | None, block: Block, line: int, default: int | None) -> int | None:
    """The number of an attempt, from 1."""
    if value is None or value == "":
        return default
    try:
        number = int(value)
    except ValueError:
        number = 0
    if not 1 <= number < 1 << 31:
        raise InputError(f"trial {str(value)[:40]!r} is no whole number from 1", file=block.path, line=line)
    return number
