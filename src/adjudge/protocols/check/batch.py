"""The matched columns of samples as rules read them, and what the expressions of the rule file give over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.protocols.base import Partition
from adjudge.protocols.check.compiled import WHOLE, Compiled
from adjudge.protocols.check.rows import ANSWERED, MISSING, NO_METHOD
from adjudge.protocols.check.rulefile import Field
from adjudge.protocols.check.sandbox import Column, Sandbox, Validated
from adjudge.protocols.check.values import place_name
from adjudge.protocols.common.columns import numbered, rows_at, taken, texts_by_row

BATCH_ROWS = 32_768
NO_OUTPUT = "this model has no output for the sample"
Mask = NDArray[np.bool_]
Places = NDArray[np.int64]
_WITHOUT_OUTPUT = {"status": MISSING, "method": NO_METHOD, "start": -1, "end": -1}


@dataclass
class CheckBatch:
    """Columns over n samples. `columns` holds every internal column by its name; null is missing or mistyped.

    `outputs` say what is mistyped. `mistyped` are the rows where a field (or a place of it) has a value of another type,
    `details` why, by (name, row).
    """

    compiled: Compiled
    sandbox: Sandbox
    status: NDArray[np.uint8]
    columns: dict[str, pa.ChunkedArray]
    outputs: InitVar[pa.Table]
    notes: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self, outputs: pa.Table) -> None:
        self.n = len(self.status)
        self.mistyped, self.details = _mistyped_rows(outputs)

    def column(self, each: Field) -> pa.ChunkedArray:
        """The values of a field."""
        return self.columns[self.compiled.names.known[(each.name,)].column]

    def labels(self, source: str) -> list[str | None]:
        """The labels of a slice or cluster as text."""
        return list(self.columns[self.compiled.label(source).column].cast(pa.string()).to_pylist())

    def present(self, each: Field) -> Mask:
        """Where a field has a value, of whatever type."""
        present: Mask = pc.is_valid(self.column(each)).to_numpy()
        return present | self.is_mistyped(each.name)

    def is_mistyped(self, name: str) -> Mask:
        """Where a field, or one place of it, has a value of another type."""
        mask = np.zeros(self.n, dtype=bool)
        if name in self.mistyped:
            mask[self.mistyped[name]] = True
        return mask

    def bad_type(self, each: Field) -> Mask:
        """Where a field or any place of it has a value of another type."""
        mask = self.is_mistyped(each.name)
        for name in self.mistyped:
            if each.path.many and name.startswith(f"{each.name}["):
                mask |= self.is_mistyped(name)
        return mask

    def place(self, each: Field, place: int) -> pa.ChunkedArray:
        """The values at one place of a list, null where it has fewer."""
        one = pc.list_slice(self.column(each), place, place + 1, return_fixed_size_list=True)
        return pc.list_element(one, 0)

    def lengths(self, each: Field) -> NDArray[np.int64]:
        """How many places a list has; 0 where there is none."""
        return np.asarray(pc.fill_null(pc.list_value_length(self.column(each)), 0)).astype(np.int64)

    @property
    def answered(self) -> Mask:
        """Where there is an answer at all."""
        return np.equal(self.status, ANSWERED)

    @cached_property
    def results(self) -> list[Column]:
        """What every expression gives on every sample."""
        compiled = self.compiled
        if not compiled.expressions:
            return []
        read = compiled.read
        table = pa.table({name.column: self.columns[name.column] for name in read})
        return self.sandbox.evaluate(table, [(name.column, name.sql) for name in read], compiled.expressions)

    @cached_property
    def validated(self) -> Validated:
        """What every assertion of the schema says of every sample."""
        return self.sandbox.validate(self.columns[WHOLE], [each.request() for each in self.compiled.file.schema])

    def truth(self, place: int) -> tuple[Mask, Mask]:
        """Where an expression is true, and where it has a value."""
        values = self.results[place].values
        known: Mask = pc.is_valid(values).to_numpy()
        true: Mask = pc.fill_null(values, False).to_numpy()
        return true, known

    def raised(self, *places: int) -> Mask:
        """Where one of some expressions raised or was stopped; −1 is none."""
        mask = np.zeros(self.n, dtype=bool)
        for place in places:
            for rows, _ in self.results[place].errors if place >= 0 else ():
                mask[rows] = True
        return mask

    def number(self, place: int) -> NDArray[np.float64]:
        """The numbers that an expression gives; NaN for none and for what is not finite."""
        values = pc.fill_null(self.results[place].values, np.nan).to_numpy()
        return np.where(np.isfinite(values), values, np.nan)


def read(partition: Partition, compiled: Compiled, sandbox: Sandbox) -> Iterator[tuple[CheckBatch, pa.Table]]:
    """Outputs matched with the reference by id, in batches in the order of (id, model), and the output behind every row."""
    groups = partition.groups
    outputs = partition.tables["outputs"].combine_chunks()
    reference = partition.tables.get("reference", _no_reference(compiled))
    if partition.limited:
        reference = reference.filter(pc.is_in(reference.column("key"), outputs.column("key")))
    reference = reference.combine_chunks()
    names, places = numbered([outputs.column("key"), reference.column("key")])
    models = pc.index_in(outputs.column("group"), pa.array(groups, pa.string())).to_numpy()
    cells = places[: outputs.num_rows] * len(groups) + models
    output_rows = rows_at(cells, len(names) * len(groups), outputs, partition.files)
    sample = np.repeat(np.arange(len(names)), len(groups))
    gold_rows = rows_at(places[outputs.num_rows :], len(names), reference, partition.files)[sample]
    reader = _Reader(compiled, sandbox, groups, outputs, reference)
    before = reader.before(names, sample, output_rows, gold_rows)
    step = max(1, BATCH_ROWS // len(groups)) * len(groups)
    for start in range(0, len(sample), step):
        rows = slice(start, start + step)
        ids = names.take(pa.array(sample[rows]))
        yield reader.batch(ids, output_rows[rows], gold_rows[rows], None if before is None else before[rows])


def _no_reference(compiled: Compiled) -> pa.Table:
    """The columns of a reference without a row."""
    types = {name.column: name.arrow for name in compiled.names.known.values() if len(name.written) == 2}
    return pa.schema({"key": pa.string(), **types}).empty_table()


@dataclass
class _Reader:
    compiled: Compiled
    sandbox: Sandbox
    groups: tuple[str, ...]
    outputs: pa.Table
    reference: pa.Table

    def batch(
        self, samples: pa.Array, output_rows: Places, gold_rows: Places, previous: Places | None
    ) -> tuple[CheckBatch, pa.Table]:
        """One batch: the output of every sample, its gold values, and the sample before it."""
        outputs, gold = taken(self.outputs, output_rows), taken(self.reference, gold_rows)
        answers = self.outputs.select(self.compiled.answer_columns)
        before = answers if previous is None else taken(answers, previous)
        columns = {name: outputs.column(name) for name in self.compiled.answer_columns}
        for (block, *keys), name in self.compiled.names.known.items():
            if block == "gold" and keys:
                columns[name.column] = gold.column(name.column)
            elif block == "previous" and keys:
                columns[name.column] = before.column(self.compiled.names.known[tuple(keys)].column)
            elif keys:
                columns[name.column] = pc.coalesce(outputs.column(name.column), gold.column(name.column))
        columns["id"] = pa.chunked_array([samples])
        model = np.tile(np.arange(len(self.groups)), len(samples) // len(self.groups))
        columns["model"] = pa.chunked_array([pa.array(self.groups, pa.string()).take(pa.array(model))])
        absent = np.flatnonzero(output_rows < 0)
        notes = dict.fromkeys(absent.tolist(), NO_OUTPUT) | texts_by_row(outputs.column("note"))
        for name_, value in _WITHOUT_OUTPUT.items():
            at = outputs.column_names.index(name_)
            outputs = outputs.set_column(at, name_, outputs.column(at).fill_null(value))
        status = np.asarray(outputs.column("status"))
        batch = CheckBatch(self.compiled, self.sandbox, status, columns, outputs, notes)
        return batch, outputs.append_column("has_gold", pa.array(gold_rows >= 0))

    def before(self, names: pa.Array, sample: Places, output_rows: Places, gold_rows: Places) -> Places | None:
        """The output row of the sample before each in its sequence, of the same model; −1 for none."""
        if not self.compiled.file.sequence:
            return None
        labels = [self._label(source, names, sample, output_rows, gold_rows) for source in ("sequence", "order")]
        models = np.tile(np.arange(len(self.groups)), len(names))
        table = pa.table({"model": models, "sequence": labels[0], "order": labels[1], "sample": sample})
        order = pc.sort_indices(table, [(name, "ascending") for name in table.column_names]).to_numpy()
        sequence = pc.fill_null(pc.rank(labels[0], tiebreaker="dense"), 0).to_numpy()
        known = pc.and_(pc.is_valid(labels[0]), pc.is_valid(labels[1])).to_numpy(zero_copy_only=False)
        before = np.full(len(sample), -1, dtype=np.int64)
        here, earlier = order[1:], order[:-1]
        same = (models[here] == models[earlier]) & (sequence[here] == sequence[earlier]) & known[here] & known[earlier]
        before[here[same]] = output_rows[earlier[same]]
        return before

    def _label(self, source: str, names: pa.Array, sample: Places, output_rows: Places, gold_rows: Places) -> pa.Array:
        written = getattr(self.compiled.file, source)
        if written == "id":
            return names.take(pa.array(sample))
        column = self.compiled.label(written).column
        tables = [(self.outputs, output_rows), (self.reference, gold_rows)]
        labels = [taken(table.select([column]), rows) for table, rows in tables if column in table.column_names]
        return pc.coalesce(*(table.column(0).combine_chunks() for table in labels))


def _mistyped_rows(outputs: pa.Table) -> tuple[dict[str, NDArray[np.intp]], dict[tuple[str, int], str]]:
    """Rows by the name of a field or place that is mistyped, and why each is."""
    rows: dict[str, list[int]] = {}
    details: dict[tuple[str, int], str] = {}
    names = outputs.column("mistyped")
    for row in np.flatnonzero(pc.is_valid(names).to_numpy()).tolist():
        words = names[row].as_py()
        for name in words:
            rows.setdefault(name, []).append(row)
        if "details" in outputs.column_names:  # which a run does not store
            details |= {(name, row): why for name, why in zip(words, outputs["details"][row].as_py(), strict=True)}
    return {name: np.array(each, dtype=np.intp) for name, each in rows.items()}, details


def place_names(each: Field) -> list[str]:
    """The names of the places of a field that have atoms of their own, and of the rest."""
    return [*(place_name(each, place) for place in range(each.places)), f"{each.name}[{each.places}…]"]
