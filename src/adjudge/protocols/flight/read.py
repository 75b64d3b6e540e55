"""Reading flight inputs: outputs and reference of one partition, matched by id, into batches of columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from adjudge.errors import InputError
from adjudge.protocols.base import Partition, SourceRow
from adjudge.protocols.flight.batch import (
    ABSTAINED,
    ANSWERED,
    ERRORED,
    MISSING,
    UNPARSED,
    VALID,
    FlightBatch,
)
from adjudge.protocols.flight.fields import FIELDS, Task
from adjudge.protocols.flight.values import (
    NAN,
    State,
    StateList,
    StateTriple,
    answer_decoder,
    gold_values,
    judge_values,
    shown,
    state_values,
)
from adjudge.readers.extract import Extraction, Extractor

TEXT_LIMIT = 65_536
_API_ERROR = re.compile(
    r"rate.?limit|too many requests|time[ds]?.?out|bad request|service unavailable|internal server error|bad gateway"
    r"|overloaded|connection (?:error|reset|refused|aborted)|api (?:error|connection)|quota (?:exceeded|reached)"
    r"|(?:http|status|error)(?: code)?:? ?[45][0-9][0-9]\b|unauthorized|invalid api key",
    re.IGNORECASE,
)
_ABSTAIN = re.compile(r'\{\s*"abstain"\s*:\s*true\s*[,}]')


class OutputKey(msgspec.Struct, gc=False):
    """What the split reads of an output line."""

    id: str | int
    model: str | None = None


class ReferenceKey(msgspec.Struct, gc=False):
    """What the split reads of a reference line."""

    id: str | int | None = None
    sample_id: str | int | None = None


class _Output(msgspec.Struct, gc=False):
    id: str | int | None = None
    response: str | None = None
    model: str | None = None
    error: str | None = None
    current_state: msgspec.Raw | None = None


_output_key = msgspec.json.Decoder(OutputKey)
_reference_key = msgspec.json.Decoder(ReferenceKey)
_output = msgspec.json.Decoder(_Output)


def output_key(path: str, line: int, text: bytes) -> tuple[str, str]:
    """The key of an output line: its id and model; a line without a model belongs to the file's name."""
    del line
    key = _output_key.decode(text)
    return str(key.id), key.model or Path(path).stem


def output_line_key(path: str, line: int, text: bytes) -> tuple[str, str]:
    """The key under `--match line`: the line number."""
    found = msgspec.json.decode(text, type=_Output)
    return str(line), found.model or Path(path).stem


def reference_key(path: str, line: int, text: bytes) -> tuple[str, None]:
    """The key of a reference line."""
    key = _reference_key.decode(text)
    found = key.sample_id if key.id is None else key.id
    if found is None:
        raise InputError("has neither `id` nor `sample_id`", file=path, line=line)
    return str(found), None


def reference_line_key(path: str, line: int, text: bytes) -> tuple[str, None]:
    """The key of a reference line under `--match line`."""
    del path
    msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    return str(line), None


class Reference(NamedTuple):
    """What is known of one sample besides the outputs: gold values by step, the last shown state, the flight."""

    gold: list[Any] | None
    shown: Any | None
    flight: str | None
    place: str


@dataclass
class Rows:
    """One batch of samples before they are columns."""

    samples: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    outputs: list[SourceRow | None] = field(default_factory=list)


@dataclass
class ReadBatch:
    """A batch as columns, with what stands beside the numbers."""

    batch: FlightBatch
    samples: list[str]
    models: list[str]
    flights: list[str | None]
    texts: list[str | None]
    found: list[Extraction | None]
    extra_keys: list[int]
    completeness: np.ndarray[Any, np.dtype[np.float64]]
    has_reference: np.ndarray[Any, np.dtype[np.bool_]]


class FlightReader:
    """Turns one partition into batches; everything that does not change from batch to batch is made once."""

    def __init__(self, task: Task, *, repairs: bool, match: str, batch_rows: int) -> None:
        self.task, self.match, self.batch_rows = task, match, batch_rows
        self.extractor = Extractor(FIELDS, decoder=answer_decoder(task), repairs=repairs)
        self._reference = msgspec.json.Decoder(_reference_type(task), strict=False)
        self._shown = msgspec.json.Decoder(
            State if task.shown == 1 else tuple[(msgspec.Raw,) * (task.shown - 1) + (State,)],  # type: ignore[misc]
            strict=False,
        )

    def read(self, partition: Partition) -> Iterator[ReadBatch]:
        """Batches in the order of (id, model)."""
        references = self._references(partition)
        outputs = self._outputs(partition)
        samples = set(outputs) if partition.limited else outputs.keys() | references.keys()
        rows = Rows()
        for sample in sorted(samples):
            found = outputs.get(sample, {})
            for model in partition.groups:
                rows.samples.append(sample)
                rows.models.append(model)
                rows.outputs.append(found.get(model))
            if len(rows.samples) >= self.batch_rows:
                yield self._columns(rows, references, partition)
                rows = Rows()
        if rows.samples:
            yield self._columns(rows, references, partition)

    def _outputs(self, partition: Partition) -> dict[str, dict[str, SourceRow]]:
        by_sample: dict[str, dict[str, SourceRow]] = {}
        key = output_key if self.match == "id" else output_line_key
        for row in partition.rows["outputs"]:
            path = partition.files[row.file]
            sample, model = key(path, row.line, row.text)
            own = by_sample.setdefault(sample, {})
            if model in own:
                first = own[model]
                raise InputError(
                    f"id {sample!r} of model {model!r} stands here a second time; first at "
                    f"{partition.files[first.file]}:{first.line}. Each model answers a sample once.",
                    file=path,
                    line=row.line,
                )
            own[model] = row
        return by_sample

    def _references(self, partition: Partition) -> dict[str, Reference]:
        references: dict[str, Reference] = {}
        by_line = self.match == "line"
        for row in partition.rows.get("reference", ()):
            path = partition.files[row.file]
            gold: list[Any] | None
            try:
                typed = self._reference.decode(row.text)
                gold, state, flight = _typed_reference(typed, self.task)
                key = typed.sample_id if typed.id is None else typed.id
            except msgspec.ValidationError:
                data = msgspec.json.decode(row.text)
                key = data.get("sample_id") if data.get("id") is None else data.get("id")
                gold, state, flight = self._loose_reference(data)
            sample = str(row.line) if by_line else str(key)
            if sample in references:
                raise InputError(
                    f"id {sample!r} stands in the reference a second time; first at {references[sample].place}",
                    file=path,
                    line=row.line,
                )
            references[sample] = Reference(gold, state, None if flight is None else str(flight), f"{path}:{row.line}")
        return references

    def _loose_reference(self, data: dict[str, Any]) -> tuple[list[Any] | None, Any | None, Any]:
        gold = (
            gold_values(data, self.task) if data.get("T+1") is not None or data.get("next_second") is not None else None
        )
        state = data.get("current_state")
        last = state[-1] if isinstance(state, list) and state else state
        return gold, None if last is None else state_values(last), data.get("flight_id")

    def _columns(self, rows: Rows, references: dict[str, Reference], partition: Partition) -> ReadBatch:
        reader = _Columns(self, len(rows.samples))
        for index, (sample, row) in enumerate(zip(rows.samples, rows.outputs, strict=True)):
            reference = references.get(sample)
            if reference is not None:
                reader.refer(index, reference)
            if row is None:
                reader.refuse(index, MISSING, "this model has no output for the sample")
            else:
                reader.add(index, self._decode(row, partition))
        flights = [None if (known := references.get(sample)) is None else known.flight for sample in rows.samples]
        return reader.finish(rows.samples, rows.models, flights)

    def _decode(self, row: SourceRow, partition: Partition) -> _Output:
        try:
            return _output.decode(row.text)
        except msgspec.ValidationError as error:
            data = msgspec.json.decode(row.text)
            response = data.get("response")
            if isinstance(response, dict | list):
                data["response"] = msgspec.json.encode(response).decode()
                if isinstance(data.get("error"), dict):
                    data["error"] = shown(data["error"], 300)
                return _output.decode(msgspec.json.encode(data))
            raise InputError(
                f"{error}; `response` is the model's raw text", file=partition.files[row.file], line=row.line
            ) from None

    def shown_state(self, raw: msgspec.Raw) -> tuple[float, ...] | list[float] | None:
        """The last shown state of an output line."""
        try:
            typed = self._shown.decode(raw)
            return msgspec.structs.astuple(typed[-1] if isinstance(typed, tuple) else typed)
        except msgspec.ValidationError:
            state = msgspec.json.decode(raw)
            last = state[-1] if isinstance(state, list) and state else state
            return state_values(last) if isinstance(last, dict) else None


class _Columns:
    """The arrays of one batch while they are filled: typed rows together, odd ones one by one."""

    def __init__(self, reader: FlightReader, n: int) -> None:
        task = reader.task
        self.reader, self.task, self.n = reader, task, n
        self.status = np.full(n, ANSWERED, dtype=np.uint8)
        self.answer = np.full((n, task.steps, len(FIELDS)), NAN)
        self.validity = np.full((n, task.steps, len(FIELDS)), VALID, dtype=np.uint8)
        self.completeness = np.ones(n)
        self.notes: dict[int, str] = {}
        self.details: dict[tuple[int, int], str] = {}
        self.texts: list[str | None] = [None] * n
        self.found: list[Extraction | None] = [None] * n
        self.extra_keys = [0] * n
        self._typed: tuple[list[int], list[Any]] = ([], [])
        self._shown: tuple[list[int], list[Any]] = ([], [])
        self._gold: tuple[list[int], list[Any]] = ([], [])

    def refer(self, index: int, reference: Reference) -> None:
        if reference.gold is not None:
            self._gold[0].append(index)
            self._gold[1].append(reference.gold)
        if reference.shown is not None:
            self._shown[0].append(index)
            self._shown[1].append(reference.shown)

    def refuse(self, index: int, status: int, note: str) -> None:
        self.status[index] = status
        self.notes[index] = note
        self.completeness[index] = 0.0

    def add(self, index: int, output: _Output) -> None:
        if output.current_state is not None:
            state = self.reader.shown_state(output.current_state)
            if state is not None:
                # What this model was shown goes before what the reference says; later rows win below.
                self._shown[0].append(index)
                self._shown[1].append(state)
        text = output.response
        self.texts[index] = text
        if text is None:
            if output.error:
                self.refuse(index, ERRORED, shown(output.error, 200))
            else:
                self.refuse(index, MISSING, "the output line has no response")
            return
        found = self.reader.extractor.extract(text)
        self.found[index] = found
        if found.typed:
            self._typed[0].append(index)
            self._typed[1].append(msgspec.structs.astuple(found.value))
        elif found.value is not None:
            self._loose(index, found.value)
        else:
            self._unread(index, text, found, output.error)

    def _loose(self, index: int, answer: dict[str, Any]) -> None:
        numbers, codes, details = judge_values(answer, self.task)
        self.answer[index], self.validity[index] = numbers, codes
        for (step, position), detail in details.items():
            self.details[step * len(FIELDS) + position, index] = detail
        present = sum(name in answer for name in FIELDS)
        self.completeness[index] = present / len(FIELDS)
        self.extra_keys[index] = len(answer) - present

    def _unread(self, index: int, text: str, found: Extraction, error: str | None) -> None:
        match = _API_ERROR.search(text[:4000])
        if not text.strip() and not error:
            self.refuse(index, ABSTAINED, "the response is empty")
        elif _ABSTAIN.search(text[:4000]):
            self.refuse(index, ABSTAINED, 'the response says {"abstain": true}')
        elif error:
            self.refuse(index, ERRORED, shown(error, 200))
        elif match is not None:
            self.refuse(index, ERRORED, f"the text names one: {shown(match[0])}")
        else:
            self.refuse(index, UNPARSED, found.error)

    def finish(self, samples: list[str], models: list[str], flights: list[str | None]) -> ReadBatch:
        indices, values = self._typed
        if indices:
            typed = np.array(values)
            self.answer[indices] = typed.transpose(0, 2, 1) if self.task.arrays else typed[:, None, :]
        shown_state = np.full((self.n, len(FIELDS)), NAN)
        _fill(shown_state, *self._shown)
        gold = np.full((self.n, self.task.steps, len(FIELDS)), NAN)
        _fill(gold, *self._gold)
        has_reference = np.zeros(self.n, dtype=bool)
        has_reference[self._gold[0]] = True
        batch = FlightBatch(
            task=self.task,
            status=self.status,
            answer=np.ascontiguousarray(self.answer.transpose(1, 2, 0)),
            validity=np.ascontiguousarray(self.validity.reshape(self.n, -1).T),
            shown=np.ascontiguousarray(shown_state.T),
            gold=np.ascontiguousarray(gold.transpose(1, 2, 0)),
            notes=self.notes,
            details=self.details,
        )
        return ReadBatch(
            batch, samples, models, flights, self.texts, self.found, self.extra_keys, self.completeness, has_reference
        )


def _fill(target: np.ndarray[Any, np.dtype[np.float64]], indices: list[int], values: list[Any]) -> None:
    """Write rows; where an index stands twice, the later wins. Non-finite numbers are no values."""
    if indices:
        rows = np.array(values, dtype=float)
        target[indices] = np.where(np.isfinite(rows), rows, NAN)


def _reference_type(task: Task) -> Any:
    kind = {"S1": State, "M1": StateList, "M3": StateTriple}[task.name]
    states: Any = State if task.shown == 1 else tuple[(msgspec.Raw,) * (task.shown - 1) + (State,)]  # type: ignore[misc]
    return msgspec.defstruct(
        f"Reference{task.name}",
        [
            ("gold", kind),
            ("id", str | int | None, None),
            ("sample_id", str | int | None, None),
            ("flight_id", str | int | None, None),
            ("current_state", states | None, None),
        ],
        rename={"gold": "next_second" if task.name == "S1" else "T+1"},
        gc=False,
    )


def _typed_reference(typed: Any, task: Task) -> tuple[list[Any], Any | None, Any]:
    values = msgspec.structs.astuple(typed.gold)
    if task.name == "S1":
        gold: list[Any] = [values]
    elif task.name == "M1":
        gold = [tuple(value[0] if value else NAN for value in values)]
    else:
        gold = list(zip(*values, strict=True))
    state = typed.current_state
    last = state[-1] if isinstance(state, tuple) else state
    return gold, None if last is None else msgspec.structs.astuple(last), typed.flight_id
