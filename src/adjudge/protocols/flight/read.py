"""Reading flight inputs: outputs and reference of one partition, matched by id, into batches of columns."""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.base import Partition
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
# What a text says when the call failed and there is no answer; compared in lower case.
_API_ERRORS = (
    *("rate limit", "rate_limit", "ratelimit", "too many requests", "timeout", "timed out", "time-out", "bad request"),
    *("service unavailable", "internal server error", "bad gateway", "gateway error", "overloaded", "api error"),
    *("connection error", "connection reset", "connection refused", "connection aborted", "apiconnectionerror"),
    *("quota exceeded", "insufficient_quota", "unauthorized", "invalid api key", "permission denied", "server error"),
)
_STATUS = re.compile(r"(?:http|status|error)(?: code)?:? ?[45][0-9][0-9]\b")
_ABSTAIN = re.compile(r'\{\s*"abstain"\s*:\s*true\s*[,}]')


class OutputKey(msgspec.Struct, gc=False):
    """What the split reads of an output line."""

    id: str | int
    model: str | None = None


class ReferenceKey(msgspec.Struct, gc=False):
    """What the split reads of a reference line."""

    id: str | int | None = None
    sample_id: str | int | None = None


_ABSENT = msgspec.Raw(b"")


class _Output(msgspec.Struct, gc=False):
    id: str | int | None = None
    response: str | None = None
    model: str | None = None
    error: str | None = None
    current_state: msgspec.Raw = _ABSENT


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


class Reference(msgspec.Struct, gc=False):
    """What is known of one sample besides the outputs: gold and last shown state as packed doubles, flight, place."""

    gold: bytes | None = None
    shown: bytes | None = None
    flight: str | None = None
    file: int = -1
    line: int = -1


class Given(msgspec.Struct, gc=False):
    """An output line and its place."""

    output: _Output
    file: int
    line: int


_NO_REFERENCE = Reference()


@dataclass
class ReadBatch:
    """A batch as columns, with what stands beside the numbers. `odd` holds (repairs, extra keys) where there are any.

    `rows` are answer, shown state and gold once more, sample by sample, as they are stored.
    """

    batch: FlightBatch
    samples: list[str]
    model_codes: NDArray[np.int32]
    groups: tuple[str, ...]
    flights: list[str | None]
    texts: list[str | None]
    methods: list[str | None]
    starts: list[int]
    ends: list[int]
    candidates: list[int]
    odd: dict[int, tuple[str | None, int]]
    completeness: NDArray[np.float64]
    has_reference: NDArray[np.bool_]
    rows: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]

    @property
    def models(self) -> list[str]:
        """The model of every row."""
        return [self.groups[code] for code in self.model_codes.tolist()]


class FlightReader:
    """Turns one partition into batches; everything that does not change from batch to batch is made once."""

    def __init__(self, task: Task, *, repairs: bool, match: str, batch_rows: int) -> None:
        self.task, self.match, self.batch_rows = task, match, batch_rows
        self.extractor = Extractor(FIELDS, decoder=answer_decoder(task), repairs=repairs)
        self._reference = msgspec.json.Decoder(_reference_type(task), strict=False)
        self._shown = msgspec.json.Decoder(_shown_type(task), strict=False)
        self.pack_state = struct.Struct(f"{len(FIELDS)}d").pack
        # Cells of an answer are packed as JSON has them: field by field, the steps of a field together.
        self.pack_cells = struct.Struct(f"{len(FIELDS) * task.steps}d").pack

    def read(self, partition: Partition) -> Iterator[ReadBatch]:
        """Batches in the order of (id, model)."""
        references = self._references(partition)
        outputs = self._outputs(partition)
        given = set[str]().union(*outputs.values())
        names = sorted(given if partition.limited else given | references.keys())
        step = max(1, self.batch_rows // max(1, len(partition.groups)))
        for start in range(0, len(names), step):
            yield self._columns(names[start : start + step], outputs, references, partition)

    def _outputs(self, partition: Partition) -> dict[str, dict[str, Given]]:
        """The outputs of every model, by sample."""
        by_model: dict[str, dict[str, Given]] = {model: {} for model in partition.groups}
        by_line = self.match == "line"
        stems = [Path(path).stem for path in partition.files]
        decode = _output.decode
        for file, line, text in partition.rows["outputs"]:
            try:
                output = decode(text)
            except msgspec.ValidationError as error:
                output = _loose_output(text, error, partition.files[file], line)
            sample = str(line) if by_line else str(output.id)
            model = output.model or stems[file]
            own = by_model[model]
            if sample in own:
                first = own[sample]
                raise InputError(
                    f"id {sample!r} of model {model!r} stands here a second time; first at "
                    f"{partition.files[first.file]}:{first.line}. Each model answers a sample once.",
                    file=partition.files[file],
                    line=line,
                )
            own[sample] = Given(output, file, line)
        return by_model

    def _references(self, partition: Partition) -> dict[str, Reference]:
        references: dict[str, Reference] = {}
        by_line = self.match == "line"
        decode, astuple = self._reference.decode, msgspec.structs.astuple
        pack_gold, pack_state = self._pack_gold(), self.pack_state
        for file, line, text in partition.rows.get("reference", ()):
            gold: bytes | None
            state: bytes | None
            try:
                typed = decode(text)
                gold = pack_gold(astuple(typed.gold))
                last = typed.current_state
                if isinstance(last, tuple):
                    last = last[-1]
                state = None if last is None else pack_state(*astuple(last))
                key, flight = (typed.sample_id if typed.id is None else typed.id), typed.flight_id
            except (msgspec.ValidationError, IndexError):
                key, flight, gold, state = self._loose_reference(msgspec.json.decode(text))
            sample = str(line) if by_line else str(key)
            if sample in references:
                first = references[sample]
                raise InputError(
                    f"id {sample!r} stands in the reference a second time; first at "
                    f"{partition.files[first.file]}:{first.line}",
                    file=partition.files[file],
                    line=line,
                )
            references[sample] = Reference(gold, state, None if flight is None else str(flight), file, line)
        return references

    def _pack_gold(self) -> Callable[[tuple[Any, ...]], bytes]:
        """How the typed values of a gold answer are packed."""
        pack = self.pack_cells
        if self.task.name == "S1":
            return lambda values: pack(*values)
        if self.task.name == "M1":
            return lambda values: pack(*[value[0] for value in values])
        return lambda values: pack(*itertools.chain.from_iterable(values))

    def _loose_reference(self, data: dict[str, Any]) -> tuple[Any, Any, bytes | None, bytes | None]:
        key = data.get("sample_id") if data.get("id") is None else data.get("id")
        gold = None
        if data.get("T+1") is not None or data.get("next_second") is not None:
            steps = gold_values(data, self.task)
            gold = self.pack_cells(*itertools.chain.from_iterable(zip(*steps, strict=True)))
        state = data.get("current_state")
        last = state[-1] if isinstance(state, list) and state else state
        return key, data.get("flight_id"), gold, None if last is None else self.pack_state(*state_values(last))

    def _columns(
        self,
        names: list[str],
        outputs: dict[str, dict[str, Given]],
        references: dict[str, Reference],
        partition: Partition,
    ) -> ReadBatch:
        groups = partition.groups
        known = [references.get(name, _NO_REFERENCE) for name in names]
        if len(groups) > 1:
            known = [reference for reference in known for _ in groups]
        models = [outputs[model] for model in groups]
        columns = _Columns(self, known)
        columns.fill([own.get(name) for name in names for own in models])
        return columns.finish(names, groups)

    def shown_state(self, raw: msgspec.Raw) -> bytes | None:
        """The last shown state of an output line."""
        try:
            typed = self._shown.decode(raw)
            return self.pack_state(*msgspec.structs.astuple(typed[-1] if isinstance(typed, tuple) else typed))
        except msgspec.ValidationError:
            state = msgspec.json.decode(raw)
            last = state[-1] if isinstance(state, list) and state else state
            return self.pack_state(*state_values(last)) if isinstance(last, dict) else None


class _Columns:
    """One batch while it is filled: every row's numbers as packed doubles, joined once at the end."""

    def __init__(self, reader: FlightReader, references: list[Reference]) -> None:
        n, cells = len(references), reader.task.steps * len(FIELDS)
        self.reader, self.n = reader, n
        blank, blank_state = reader.pack_cells(*[NAN] * cells), reader.pack_state(*[NAN] * len(FIELDS))
        self.answer = [blank] * n
        self.gold = [reference.gold or blank for reference in references]
        self.shown = [reference.shown or blank_state for reference in references]
        self.flights = [reference.flight for reference in references]
        self.has_reference = [reference.gold is not None for reference in references]
        self.status = [ANSWERED] * n
        self.completeness = [1.0] * n
        self.texts: list[str | None] = [None] * n
        self.methods: list[str | None] = [None] * n
        self.starts, self.ends, self.candidates = [-1] * n, [-1] * n, [0] * n
        self.odd: dict[int, tuple[str | None, int]] = {}
        self.validity: dict[int, list[list[int]]] = {}
        self.notes: dict[int, str] = {}
        self.details: dict[tuple[int, int], str] = {}
        self._pack, self._arrays, self._steps = reader.pack_cells, reader.task.arrays, reader.task.steps

    def refuse(self, index: int, status: int, note: str) -> None:
        self.status[index] = status
        self.notes[index] = note
        self.completeness[index] = 0.0

    def fill(self, given: list[Given | None]) -> None:
        """Read the answer of every row; None is no output."""
        extract, texts, candidates = self.reader.extractor.extract, self.texts, self.candidates
        methods, starts, ends = self.methods, self.starts, self.ends
        for index, place in enumerate(given):
            if place is None:
                self.refuse(index, MISSING, "this model has no output for the sample")
                continue
            output = place.output
            if output.current_state is not _ABSENT:
                # What this model was shown goes before what the reference says.
                self.shown[index] = self.reader.shown_state(output.current_state) or self.shown[index]
            text = output.response
            if text is None:
                if output.error:
                    self.refuse(index, ERRORED, shown(output.error, 200))
                else:
                    self.refuse(index, MISSING, "the output line has no response")
                continue
            texts[index] = text
            found = extract(text)
            candidates[index] = found.candidates
            if found.value is None:
                self._unread(index, text, found, output.error)
                continue
            methods[index], starts[index], ends[index] = found.method, found.start, found.end
            if found.typed:
                self._typed(index, msgspec.structs.astuple(found.value), found.repairs)
            else:
                self._loose(index, found.value, found.repairs)

    def _typed(self, index: int, values: tuple[Any, ...], repairs: tuple[str, ...]) -> None:
        if not self._arrays:
            self.answer[index] = self._pack(*values)
        elif all(len(value) == self._steps for value in values):
            self.answer[index] = self._pack(*itertools.chain.from_iterable(values))
        else:
            self._loose(index, dict(zip(FIELDS, values, strict=True)), repairs)

    def _loose(self, index: int, answer: dict[str, Any], repairs: tuple[str, ...]) -> None:
        numbers, codes, details = judge_values(answer, self.reader.task)
        self.answer[index] = self._pack(*itertools.chain.from_iterable(zip(*numbers, strict=True)))
        self.validity[index] = codes
        for (step, position), detail in details.items():
            self.details[step * len(FIELDS) + position, index] = detail
        present = sum(name in answer for name in FIELDS)
        self.completeness[index] = present / len(FIELDS)
        if repairs or len(answer) != present:
            self.odd[index] = (",".join(repairs) or None, len(answer) - present)

    def _unread(self, index: int, text: str, found: Extraction, error: str | None) -> None:
        named = _api_error(text)
        if not text.strip() and not error:
            self.refuse(index, ABSTAINED, "the response is empty")
        elif _ABSTAIN.search(text[:4000]):
            self.refuse(index, ABSTAINED, 'the response says {"abstain": true}')
        elif error:
            self.refuse(index, ERRORED, shown(error, 200))
        elif named is not None:
            self.refuse(index, ERRORED, f"the text names one: {shown(named)}")
        else:
            self.refuse(index, UNPARSED, found.error)

    def finish(self, names: list[str], groups: tuple[str, ...]) -> ReadBatch:
        task, n = self.reader.task, self.n
        validity = np.full((n, task.steps, len(FIELDS)), VALID, dtype=np.uint8)
        for index, codes in self.validity.items():
            validity[index] = codes
        answer, gold = self._rows(self.answer), self._rows(self.gold)
        last = np.frombuffer(b"".join(self.shown)).reshape(n, len(FIELDS))
        batch = FlightBatch(
            task=task,
            status=np.array(self.status, dtype=np.uint8),
            answer=_by_cell(answer).reshape(task.steps, len(FIELDS), n),
            validity=_by_cell(validity.reshape(n, -1)),
            shown=_by_cell(last),
            gold=_by_cell(gold).reshape(task.steps, len(FIELDS), n),
            notes=self.notes,
            details=self.details,
        )
        return ReadBatch(
            batch=batch,
            samples=names if len(groups) == 1 else [name for name in names for _ in groups],
            model_codes=np.tile(np.arange(len(groups), dtype=np.int32), len(names)),
            groups=groups,
            flights=self.flights,
            texts=self.texts,
            methods=self.methods,
            starts=self.starts,
            ends=self.ends,
            candidates=self.candidates,
            odd=self.odd,
            completeness=np.array(self.completeness),
            has_reference=np.array(self.has_reference),
            rows=(answer, last, gold),
        )

    def _rows(self, packed: list[bytes]) -> NDArray[np.float64]:
        """(n, cells) of packed rows, the cells by step and field."""
        cells = np.frombuffer(b"".join(packed)).reshape(self.n, len(FIELDS), self._steps)
        return np.ascontiguousarray(cells.transpose(0, 2, 1)).reshape(self.n, -1)


def _by_cell(rows: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(rows.T)


def _api_error(text: str) -> str | None:
    """The failure that a text without an answer names, if any."""
    low = text[:4000].lower()
    named = next((phrase for phrase in _API_ERRORS if phrase in low), None)
    match = _STATUS.search(low) if named is None else None
    return match[0] if match else named


def _loose_output(text: bytes, error: msgspec.ValidationError, path: str, line: int) -> _Output:
    """An output line whose response is an object instead of text, or whose error is one; anything else is refused."""
    data = msgspec.json.decode(text)
    response = data.get("response")
    if isinstance(response, dict | list):
        data["response"] = msgspec.json.encode(response).decode()
    if isinstance(data.get("error"), dict | list):
        data["error"] = shown(data["error"], 300)
    try:
        return _output.decode(msgspec.json.encode(data))
    except msgspec.ValidationError:
        raise InputError(f"{error}; `response` is the model's raw text", file=path, line=line) from None


def _shown_type(task: Task) -> Any:
    return State if task.shown == 1 else tuple[(msgspec.Raw,) * (task.shown - 1) + (State,)]  # type: ignore[misc]


def _reference_type(task: Task) -> Any:
    kind = {"S1": State, "M1": StateList, "M3": StateTriple}[task.name]
    return msgspec.defstruct(
        f"Reference{task.name}",
        [
            ("gold", kind),
            ("id", str | int | None, None),
            ("sample_id", str | int | None, None),
            ("flight_id", str | int | None, None),
            ("current_state", _shown_type(task) | None, None),
        ],
        rename={"gold": "next_second" if task.name == "S1" else "T+1"},
        gc=False,
    )
