"""An answer is not what the model was shown: of several objects in a text, one equal to the shown state loses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.protocols.flight.batch import ANSWERED, ARRAY_SHAPE
from adjudge.protocols.flight.cells import Floats, from_lists, valid
from adjudge.protocols.flight.fields import FIELDS, Task
from adjudge.protocols.flight.values import number

if TYPE_CHECKING:
    from adjudge.protocols.flight.rows import OutputReader


def without_echoes(outputs: pa.Table, shown: Floats, task: Task, reader: OutputReader) -> pa.Table:
    """The outputs, those that were read as an echo of the shown state read again without it."""
    rows = _suspects(outputs, shown, task)
    if not rows.size:
        return outputs
    read_again = outputs.take(pa.array(rows))
    texts = read_again.column("response").to_pylist()
    extract = reader.extractors[task.name].extract
    extractions = [extract(text, is_state(shown[row])) for text, row in zip(texts, rows.tolist(), strict=True)]
    for name, column in reader.judged(texts, [None] * len(texts), extractions, task).items():
        read_again = read_again.set_column(read_again.column_names.index(name), name, pa.array(column))
    places = np.arange(outputs.num_rows)
    places[rows] = outputs.num_rows + np.arange(rows.size)
    together = pa.concat_tables([outputs, read_again], promote_options="permissive")
    return together.take(pa.array(places)).combine_chunks()


def _suspects(outputs: pa.Table, shown: Floats, task: Task) -> NDArray[np.intp]:
    """Answers that may be an echo: the text has other objects, and this one has the shown numbers, or no arrays where they are due."""
    several = np.asarray(outputs.column("candidates").fill_null(0)) > 1
    answered = np.asarray(outputs.column("status").fill_null(ANSWERED + 1)) == ANSWERED
    rows = np.flatnonzero(several & answered)
    if not rows.size:
        return rows
    some = outputs.take(pa.array(rows))
    if not task.arrays:
        answer = from_lists(some.column("answer"))[:, : len(FIELDS)]
        echoes: NDArray[np.intp] = rows[(answer == shown[rows]).all(axis=1)]
        return echoes
    judged = some.column("validity")
    flat = np.zeros(rows.size, dtype=bool)
    if judged.null_count < rows.size:
        flat[valid(judged)] = (from_lists(judged.drop_null()) == ARRAY_SHAPE).all(axis=1)
    return rows[flat]


def is_state(state: Floats) -> Callable[[dict[str, Any]], bool]:
    """Whether an object has exactly the numbers of a state."""
    expected = [None if np.isnan(value) else float(value) for value in state]

    def same(value: dict[str, Any]) -> bool:
        return all(number(value.get(name)) == one for name, one in zip(FIELDS, expected, strict=True))

    return same
