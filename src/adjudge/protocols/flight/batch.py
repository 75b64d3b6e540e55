"""FlightBatch: outputs and reference of a partition matched by id, as the columns that the rules read.

A rule leaves its atoms in slots: one a field and step, or one a step over several fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.evidence.rule import Condition, Limits, Rule, Slot
from adjudge.evidence.vocabulary import Scope
from adjudge.protocols.base import Partition
from adjudge.protocols.common.columns import numbered, rows_at, taken, texts_by_row
from adjudge.protocols.flight import references as reference_columns
from adjudge.protocols.flight.fields import (
    ANGLES,
    ANSWERED,
    ARRAY_SHAPE,
    FIELDS,
    INDEX,
    INVALID_VALUE,
    MISSING,
    VALID,
    Floats,
    Task,
    from_lists,
    valid,
)
from adjudge.protocols.flight.references import SOURCES, fill_from_questions
from adjudge.protocols.flight.rows import NO_METHOD, OutputReader, without_echoes

ANGLE_ROWS = np.array([INDEX[name] for name in FIELDS if name in ANGLES])
KNOTS = 1.943844


def arc(a: Floats, b: Floats) -> Floats:
    """The shortest way round between two directions, in degrees, 0..180."""
    with np.errstate(all="ignore"):
        apart = np.abs(a - b)
        huge = np.isinf(apart)
        if huge.any():
            apart = np.where(huge, np.abs(a % 360.0 - b % 360.0), apart)
        turned = apart % 360.0 if (apart >= 360.0).any() else apart
    return np.minimum(turned, 360.0 - turned)


@dataclass
class FlightBatch:
    """Samples as columns: answers and gold shaped (steps, 19, n), the last shown state (19, n); NaN is no value.

    The answers of all `models` to a sample stand together. `completeness` is the share of the fields that an answer has.
    """

    task: Task
    status: NDArray[np.uint8]
    answer: Floats
    validity: NDArray[np.uint8]
    shown: Floats
    gold: Floats
    completeness: Floats
    has_reference: NDArray[np.bool_]
    models: int = 1
    notes: Mapping[int, str] = field(default_factory=dict)
    details: Mapping[tuple[int, int], str] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Samples in the batch."""
        return int(self.status.shape[0])

    def value(self, name: str) -> Floats:
        """The answered values of one field, (steps, n)."""
        column: Floats = self.answer[:, INDEX[name]]
        return column

    def shown_value(self, name: str) -> Floats:
        """The last shown value of one field, (n,)."""
        column: Floats = self.shown[INDEX[name]]
        return column

    @cached_property
    def before(self) -> Floats:
        """For every step the state before it: the last shown one, then the answer's own."""
        return np.concatenate([self.shown[None], self.answer[:-1]])

    @cached_property
    def steps(self) -> Floats:
        """The absolute change of every value against the state before it; angles by shortest arc."""
        return difference(self.answer, self.before)

    @cached_property
    def vector_speed(self) -> Floats:
        """The speed of the E/N velocity in knots, (steps, n)."""
        east, north = self.value("GPS Velocity E (m/s)"), self.value("GPS Velocity N (m/s)")
        return np.asarray(KNOTS * np.sqrt(east * east + north * north))

    @cached_property
    def errors(self) -> Floats:
        """|answer − gold| where both exist, otherwise NaN; angles by shortest arc; (steps, 19, n)."""
        return difference(self.answer, self.gold)

    def gold_as_answer(self) -> tuple[NDArray[np.intp], FlightBatch]:
        """The samples with a reference, by a row of theirs, and a batch in which each answers with its gold.

        What a model was shown may stand in the output of another one alone, so the first row with a state is taken.
        """
        first = np.arange(0, self.n, self.models)
        if self.models > 1:
            has_state = ~np.isnan(self.shown).all(axis=0)
            first = first + has_state.reshape(-1, self.models).argmax(axis=1)
        rows = first[self.has_reference[first]]
        gold = self.gold[:, :, rows]
        absent = np.isnan(gold).reshape(gold.shape[0] * gold.shape[1], rows.size)
        batch = FlightBatch(
            task=self.task,
            status=np.full(rows.size, ANSWERED, dtype=np.uint8),
            answer=gold,
            validity=np.where(absent, np.uint8(INVALID_VALUE), np.uint8(VALID)),
            shown=self.shown[:, rows],
            gold=gold,
            completeness=np.ones(rows.size),
            has_reference=np.ones(rows.size, dtype=bool),
        )
        return rows, batch

    @cached_property
    def persistence_errors(self) -> Floats:
        """What repeating the last shown state would have cost, on the cells where the answer's error exists."""
        return np.where(np.isnan(self.errors), np.nan, difference(self.shown[None], self.gold))


def difference(values: Floats, gold: Floats) -> Floats:
    """Absolute differences, angles by shortest arc, fields along the second axis."""
    with np.errstate(over="ignore"):
        apart = values - gold
    np.abs(apart, out=apart)
    apart[:, ANGLE_ROWS] = arc(values[:, ANGLE_ROWS], gold[:, ANGLE_ROWS])
    return apart


NEEDS = ("numeric_validity",)
"""What every rule but those on the answer's form needs to have passed."""


def moment(task: Task, step: int) -> str:
    """Which second a step is about, as people say it; the only one of a task needs no name."""
    return f"t+{step + 1}" if task.arrays else ""


def field_slots(task: Task, *, first: int = 0, before: bool = False) -> tuple[Slot, ...]:
    """One slot a field and step; with `before`, reading the step before as well."""
    return tuple(
        Slot(
            name,
            step,
            ((name, step), (name, step - 1)) if before and step else ((name, step),),
            moment(task, step),
        )
        for step in range(first, task.steps)
        for name in FIELDS
    )


def step_slots(task: Task, *names: str, before: tuple[str, ...] = ()) -> tuple[Slot, ...]:
    """One slot a step, reading fields of that step, and `before` of the one before it; about a field if it reads one alone."""
    field = names[0] if len(names) == 1 and not before else None
    return tuple(
        Slot(
            field,
            step,
            tuple((name, step) for name in names) + tuple((name, step - 1) for name in before if step),
            moment(task, step),
        )
        for step in range(task.steps)
    )


@dataclass(frozen=True)
class StepRule:
    """A rule with one atom a step, a quantity and constant limits; `observed` says what was measured."""

    code: str
    title: str
    reads: tuple[str, ...]
    quantity: Callable[[FlightBatch], Floats]
    limits: Limits
    observed: str
    unit: str
    before: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()

    def rule(self, task: Task) -> Rule:
        """The rule for a task."""
        slots = step_slots(task, *self.reads, before=self.before)
        allowed = self._allowed()
        return Rule(
            code=self.code,
            title=self.title,
            scope=Scope.CROSS_FIELD if slots[0].field is None else Scope.FIELD,
            slots=slots,
            needs=NEEDS,
            unit=self.unit,
            passed=f"{self.observed}, {allowed}",
            failed=f"{self.observed}; allowed is {allowed} {self.unit}",
            quantity=self.quantity,
            limits=self.limits,
            conditions=self.conditions,
        )

    def _allowed(self) -> str:
        bounds = self.limits.at(0)
        if "low" not in bounds:
            return f"at most {bounds['high']:g}"
        return (
            f"between {bounds['low']:g} and {bounds['high']:g}" if "high" in bounds else f"not under {bounds['low']:g}"
        )


NO_OUTPUT = "this model has no output for the sample"
# What stands in the columns of a sample for which the model has no output.
_WITHOUT_OUTPUT = {
    "status": MISSING,
    "completeness": 0.0,
    "method": NO_METHOD,
    "start": -1,
    "end": -1,
    "candidates": 0,
    "extra_keys": 0,
}
Index = NDArray[np.int64]


@dataclass
class ReadBatch:
    """A batch as columns, with what stands beside the numbers.

    `outputs` are the columns of the output of every sample; `rows` are answer, shown state and gold once more, sample
    by sample, as they are stored.
    """

    batch: FlightBatch
    samples: pa.StringArray
    groups: tuple[str, ...]
    flights: pa.ChunkedArray
    outputs: pa.Table
    faults: pa.ChunkedArray
    shown_from: NDArray[np.int8]
    rows: tuple[Floats, Floats, Floats]

    @property
    def names(self) -> list[str]:
        """The id of every row."""
        return list(self.samples.to_pylist())

    @property
    def models(self) -> list[str]:
        """The model of every row."""
        return list(self.groups) * (len(self.samples) // len(self.groups))


class FlightReader:
    """Turns one partition into batches of one task; in a run of several, its keys and groups begin with the task."""

    def __init__(self, task: Task, reader: OutputReader, *, batch_rows: int) -> None:
        self.task, self.reader, self.batch_rows = task, reader, batch_rows

    def read(self, partition: Partition) -> Iterator[ReadBatch]:
        """Batches in the order of (id, model)."""
        outputs = partition.tables["outputs"]
        references = partition.tables.get("reference", reference_columns.schema(self.reader.tasks).empty_table())
        groups = partition.groups
        if self.reader.several:
            prefix = f"{self.task.name}/"
            groups = tuple(group for group in groups if group.startswith(prefix))
            outputs, references = (
                table.filter(pc.starts_with(table.column("key"), prefix)) for table in (outputs, references)
            )
        if not groups:
            return
        outputs = outputs.combine_chunks()
        if partition.limited or self.reader.by_line:  # matched by line, a reference may go on where the outputs end
            references = references.filter(pc.is_in(references.column("key"), outputs.column("key")))
        references = references.combine_chunks()
        names, places = numbered([outputs.column("key"), references.column("key")])
        models = pc.index_in(outputs.column("group"), pa.array(groups, pa.string())).to_numpy()
        cells = places[: outputs.num_rows] * len(groups) + models
        output_rows = rows_at(cells, len(names) * len(groups), outputs, partition.files)
        reference_rows = rows_at(places[outputs.num_rows :], len(names), references, partition.files)
        sample = np.repeat(np.arange(len(names)), len(groups))
        step = max(1, self.batch_rows // len(groups)) * len(groups)
        named = tuple(group.partition("/")[2] for group in groups) if self.reader.several else groups
        for start in range(0, len(sample), step):
            rows = slice(start, start + step)
            yield self._batch(
                names.take(pa.array(sample[rows])),
                taken(outputs, output_rows[rows]),
                taken(references, reference_rows[sample[rows]]),
                named,
            )

    def _batch(self, names: pa.StringArray, outputs: pa.Table, truth: pa.Table, groups: tuple[str, ...]) -> ReadBatch:
        """One batch of samples: the output of each, and what is known of it."""
        n, cells = len(names), self.task.steps * len(FIELDS)
        shown, shown_from = _shown(outputs, truth)
        outputs = without_echoes(outputs, shown, self.task, self.reader)
        answer, gold = (
            from_lists(table.column(name))[:, :cells] for table, name in ((outputs, "answer"), (truth, "gold"))
        )
        validity = np.full((n, cells), VALID, dtype=np.uint8)
        details: dict[tuple[int, int], str] = {}
        odd = outputs.column("validity")
        if odd.null_count < n:
            validity[valid(odd)] = from_lists(odd.drop_null())[:, :cells]
            rows, places = np.nonzero(validity >= ARRAY_SHAPE)
            texts = outputs.column("details").combine_chunks().flatten().to_pylist()
            details = dict(zip(zip(places.tolist(), rows.tolist(), strict=True), texts, strict=True))
        absent = np.flatnonzero(~valid(outputs.column("key")))
        notes = dict.fromkeys(absent.tolist(), NO_OUTPUT) | texts_by_row(outputs.column("note"))
        if absent.size:
            for name, value in _WITHOUT_OUTPUT.items():
                at = outputs.column_names.index(name)
                outputs = outputs.set_column(at, name, outputs.column(at).fill_null(value))
        batch = FlightBatch(
            task=self.task,
            status=np.asarray(outputs.column("status")),
            answer=_by_cell(answer).reshape(self.task.steps, len(FIELDS), n),
            validity=_by_cell(validity),
            shown=_by_cell(shown),
            gold=_by_cell(gold).reshape(self.task.steps, len(FIELDS), n),
            completeness=np.asarray(outputs.column("completeness")),
            has_reference=valid(truth.column("gold")),
            models=len(groups),
            notes=notes,
            details=details,
        )
        faults = truth.column("fault")
        return ReadBatch(
            batch, names, groups, truth.column("flight"), outputs, faults, shown_from, (answer, shown, gold)
        )


def _shown(outputs: pa.Table, truth: pa.Table) -> tuple[Floats, NDArray[np.int8]]:
    """The state that every model was shown, and where it was found.

    What its own line says goes before what the reference does, and both before the question that was asked.
    """
    columns = ((truth.column("shown"), "reference"), (outputs.column("shown"), "output"))
    shown, source = np.full((outputs.num_rows, len(FIELDS)), np.nan), np.full(outputs.num_rows, -1, dtype=np.int8)
    for column, name in columns:
        if column.null_count == len(column):
            continue
        told = valid(column)
        shown = from_lists(column) if told.all() else np.where(told[:, None], from_lists(column), shown)
        source[told] = SOURCES.index(name)
    return fill_from_questions(shown, source, [outputs.column("question"), truth.column("question")]), source


def _by_cell(rows: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(rows.T)
