"""Matching the outputs and reference of one partition by id, into batches of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.base import Partition
from adjudge.protocols.flight import references as reference_columns
from adjudge.protocols.flight.batch import VALID, FlightBatch
from adjudge.protocols.flight.facts import Facts, facts_of, rare_of
from adjudge.protocols.flight.fields import FIELDS, Task
from adjudge.readers.rows import in_order

NO_OUTPUT = "this model has no output for the sample"
Index = NDArray[np.int64]
_TWO_WORDS = 16  # bytes


@dataclass
class ReadBatch:
    """A batch as columns, with what stands beside the numbers: responses and facts of every sample.

    `repairs` are those of the few rows that have any. `rows` are answer, shown state and gold once more, sample by
    sample, as they are stored.
    """

    batch: FlightBatch
    samples: pa.StringArray
    model_codes: NDArray[np.int32]
    groups: tuple[str, ...]
    flights: pa.StringArray
    responses: pa.StringArray
    facts: Facts
    repairs: Mapping[int, str]
    completeness: NDArray[np.float64]
    has_reference: NDArray[np.bool_]
    rows: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]

    @property
    def names(self) -> Sequence[str]:
        """The id of every row."""
        return _Lazy(self.samples)

    @property
    def models(self) -> Sequence[str]:
        """The model of every row."""
        return _Lazy(pa.DictionaryArray.from_arrays(self.model_codes, list(self.groups)))


class _Lazy(Sequence[str]):
    """The texts of a column, made when somebody looks."""

    def __init__(self, column: pa.Array) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return _Lazy(self._column[index]) if isinstance(index, slice) else self._column[index].as_py()


class FlightReader:
    """Turns one partition into batches."""

    def __init__(self, task: Task, *, batch_rows: int) -> None:
        self.task, self.batch_rows = task, batch_rows

    def read(self, partition: Partition) -> Iterator[ReadBatch]:
        """Batches in the order of (id, model)."""
        outputs = partition.tables["outputs"]
        references = partition.tables.get("reference", reference_columns.schema(self.task).empty_table())
        codes = pc.index_in(outputs.column("group"), pa.array(partition.groups, pa.string())).to_numpy()
        outputs, codes = _in_order(outputs, codes, partition, "model")
        references, _ = _in_order(references, np.zeros(references.num_rows, dtype=np.int32), partition, "")
        names = _names(outputs.column("key"), None if partition.limited else references.column("key"))
        groups = partition.groups
        given = _rows_of(names, outputs, codes, len(groups))
        known = _rows_of(names, references, np.zeros(references.num_rows, dtype=np.int32), 1)
        if len(groups) > 1:
            known = np.repeat(known, len(groups))
            names = names.take(pa.array(np.repeat(np.arange(len(names)), len(groups))))
        step = max(1, self.batch_rows // len(groups)) * len(groups)
        for start in range(0, len(names), step):
            some = slice(start, start + step)
            yield self._batch(
                names[some], given[some], _take(outputs, given[some]), _take(references, known[some]), groups
            )

    def _batch(
        self, names: pa.StringArray, given: Index, own: pa.Table, truth: pa.Table, groups: tuple[str, ...]
    ) -> ReadBatch:
        """One batch of samples: the output of each, if `given` is not −1, and what is known of it."""
        n = len(given)
        cells = self.task.steps * len(FIELDS)
        facts = facts_of(own.column("facts").combine_chunks())
        notes = dict.fromkeys(np.flatnonzero(given < 0).tolist(), NO_OUTPUT)
        answer, gold = _numbers(own.column("answer"), cells), _numbers(truth.column("gold"), cells)
        shown = _numbers(truth.column("shown"), len(FIELDS))
        validity = np.full((cells, n), VALID, dtype=np.uint8)
        details, repairs = {}, {}
        for row, rare in rare_of(own.column("rare").combine_chunks()):
            if rare.note is not None:
                notes[row] = rare.note
            if rare.repairs is not None:
                repairs[row] = rare.repairs
            if rare.shown is not None:
                shown = shown if shown.flags.writeable else shown.copy()
                shown[row] = np.frombuffer(rare.shown)
            if rare.validity is not None:
                validity[:, row] = np.frombuffer(rare.validity, dtype=np.uint8)
            for step, position, text in rare.details:
                details[step * len(FIELDS) + position, row] = text
        batch = FlightBatch(
            task=self.task,
            status=facts["status"].copy(),
            answer=_by_cell(answer).reshape(self.task.steps, len(FIELDS), n),
            validity=validity,
            shown=_by_cell(shown),
            gold=_by_cell(gold).reshape(self.task.steps, len(FIELDS), n),
            notes=notes,
            details=details,
        )
        return ReadBatch(
            batch=batch,
            samples=names,
            model_codes=np.tile(np.arange(len(groups), dtype=np.int32), n // len(groups)),
            groups=groups,
            flights=truth.column("flight"),
            responses=own.column("response").combine_chunks(),
            facts=facts,
            repairs=repairs,
            completeness=facts["completeness"].copy(),
            has_reference=truth.column("gold").is_valid().to_numpy(zero_copy_only=False),
            rows=(answer, shown, gold),
        )


def _in_order(
    table: pa.Table, codes: NDArray[np.int32], partition: Partition, what: str
) -> tuple[pa.Table, NDArray[np.int32]]:
    """The rows by (key, code); what stands there twice is refused."""
    keys = table.column("key").combine_chunks()
    order = _order(keys)
    if codes.any():
        ranks = pc.rank(keys, tiebreaker="dense").to_numpy()
        order = np.lexsort([codes, ranks])
    table, codes = in_order(table, order), codes[order]
    keys = table.column("key").combine_chunks()
    if len(keys) > 1:
        same = pc.equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False) & (codes[1:] == codes[:-1])
        if same.any():
            _refuse_twice(table, int(np.flatnonzero(same)[0]), partition, what)
    return table, codes


def _order(keys: pa.StringArray) -> Index:
    """The rows by key, those with the same one as they stand."""
    offsets = np.frombuffer(keys.buffers()[1], dtype=np.int32)[keys.offset : keys.offset + len(keys) + 1]
    sizes = np.diff(offsets)
    size = int(sizes.max(initial=0))
    if not 0 < size <= _TWO_WORDS or (sizes != size).any():
        found: Index = pc.array_sort_indices(keys).to_numpy()
        return found
    # Texts of one length stand in the order of their bytes as large numbers.
    letters = np.zeros((len(keys), _TWO_WORDS), dtype=np.uint8)
    letters[:, :size] = np.frombuffer(keys.buffers()[2], dtype=np.uint8)[offsets[0] : offsets[-1]].reshape(-1, size)
    high, low = letters.view(">u8").T.astype(np.uint64)
    return np.lexsort([low, high])


def _refuse_twice(table: pa.Table, row: int, partition: Partition, what: str) -> None:
    both = table.slice(row, 2).select(["key", "line"]).to_pylist()
    for place, file in zip(both, _files(table.slice(row, 2)), strict=True):
        place["file"] = file
    first, second = sorted(both, key=lambda place: (place["file"], place["line"]))
    of_model = f"of model {table.column('group')[row].as_py()!r} stands here" if what else "stands in the reference"
    raise InputError(
        f"id {first['key']!r} {of_model} a second time; first at {partition.files[first['file']]}:{first['line']}."
        + (" Each model answers a sample once." if what else ""),
        file=partition.files[second["file"]],
        line=second["line"],
    )


def _files(table: pa.Table) -> list[int]:
    """The number of the file of every row."""
    if "file" in table.column_names:
        return list(table.column("file").to_pylist())
    return list(facts_of(table.column("facts").combine_chunks())["file"].tolist())


def _names(given: pa.ChunkedArray, known: pa.ChunkedArray | None) -> pa.StringArray:
    """All keys, sorted, each once."""
    if known is not None and given.equals(known):
        return given.combine_chunks()
    keys = given if known is None else pa.chunked_array([*given.chunks, *known.chunks], pa.string())
    found = pc.unique(keys)
    return found.take(pc.array_sort_indices(found))


def _rows_of(names: pa.StringArray, table: pa.Table, codes: NDArray[np.int32], groups: int) -> Index:
    """The row of the table for every name and group, −1 for none; the table is in the order of (key, code)."""
    keys = table.column("key").combine_chunks()
    if groups == 1 and keys.equals(names):
        return np.arange(len(names))
    found = np.full((len(names), groups), -1, dtype=np.int64)
    place = pc.index_in(keys, names)
    there = place.is_valid().to_numpy(zero_copy_only=False)
    found[place.drop_null().to_numpy(), codes[there]] = np.flatnonzero(there)
    return found.ravel()


def _take(table: pa.Table, rows: Index) -> pa.Table:
    """Rows of a table, null for −1; no copy where they stand together in order."""
    if rows.size and rows[0] >= 0 and rows[-1] - rows[0] == rows.size - 1 and (np.diff(rows) == 1).all():
        return table.slice(rows[0], rows.size).combine_chunks()
    return table.take(pa.array(rows, mask=rows < 0)).combine_chunks()


def _numbers(column: pa.ChunkedArray, width: int) -> NDArray[np.float64]:
    """Packed doubles as (n, width), not to be written to; NaN where there are none."""
    packed = column.combine_chunks()
    if not len(packed):
        return np.empty((0, width))
    size = 8 * width
    buffer = packed.buffers()[1]
    found = np.frombuffer(buffer, dtype=np.float64, count=len(packed) * width, offset=packed.offset * size)
    numbers = found.reshape(len(packed), width)
    if packed.null_count:
        numbers = numbers.copy()
        numbers[packed.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return numbers


def _by_cell(rows: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(rows.T)
