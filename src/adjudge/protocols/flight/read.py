"""Reading flight inputs: outputs and reference of one partition, matched by id, into batches of columns."""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

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


class Reference(NamedTuple):
    """What is known of one sample besides the outputs: gold and last shown state as packed doubles, flight, place."""

    gold: bytes | None
    shown: bytes | None
    flight: str | None
    file: int
    line: int


@dataclass
class ReadBatch:
    """A batch as columns, with what stands beside the numbers. `odd` holds (repairs, extra keys) where there are any."""

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

    @property
    def models(self) -> list[str]:
        """The model of every row."""
        return [self.groups[code] for code in self.model_codes]


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
        names = sorted(outputs if partition.limited else outputs.keys() | references.keys())
        step = max(1, self.batch_rows // max(1, len(partition.groups)))
        for start in range(0, len(names), step):
            yield self._columns(names[start : start + step], outputs, references, partition)

    def _outputs(self, partition: Partition) -> dict[str, dict[str, tuple[_Output, int, int]]]:
        by_sample: dict[str, dict[str, tuple[_Output, int, int]]] = {}
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
            own = by_sample.setdefault(sample, {})
            if model in own:
                _, first_file, first_line = own[model]
                raise InputError(
                    f"id {sample!r} of model {model!r} stands here a second time; first at "
                    f"{partition.files[first_file]}:{first_line}. Each model answers a sample once.",
                    file=partition.files[file],
                    line=line,
                )
            own[model] = (output, file, line)
        return by_sample

    def _references(self, partition: Partition) -> dict[str, Reference]:
        references: dict[str, Reference] = {}
        by_line = self.match == "line"
        decode, astuple = self._reference.decode, msgspec.structs.astuple
        for file, line, text in partition.rows.get("reference", ()):
            gold: bytes | None
            state: bytes | None
            try:
                typed = decode(text)
                gold = self._pack_gold(astuple(typed.gold))
                last = typed.current_state
                if isinstance(last, tuple):
                    last = last[-1]
                state = None if last is None else self.pack_state(*astuple(last))
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

    def _pack_gold(self, values: tuple[Any, ...]) -> bytes:
        if self.task.name == "S1":
            return self.pack_cells(*values)
        if self.task.name == "M1":
            return self.pack_cells(*[value[0] for value in values])
        return self.pack_cells(*itertools.chain.from_iterable(values))

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
        outputs: dict[str, dict[str, tuple[_Output, int, int]]],
        references: dict[str, Reference],
        partition: Partition,
    ) -> ReadBatch:
        columns = _Columns(self, len(names) * len(partition.groups))
        index = 0
        for sample in names:
            reference = references.get(sample)
            found = outputs.get(sample)
            for model in partition.groups:
                if reference is not None:
                    columns.gold[index] = reference.gold or columns.blank
                    columns.shown[index] = reference.shown or columns.blank_state
                    columns.flights[index] = reference.flight
                    columns.has_reference[index] = reference.gold is not None
                output = None if found is None else found.get(model)
                if output is None:
                    columns.refuse(index, MISSING, "this model has no output for the sample")
                else:
                    columns.add(index, output[0])
                index += 1
        return columns.finish(names, partition.groups)

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

    def __init__(self, reader: FlightReader, n: int) -> None:
        cells = reader.task.steps * len(FIELDS)
        self.reader, self.n = reader, n
        self.blank = reader.pack_cells(*[NAN] * cells)
        self.blank_state = reader.pack_state(*[NAN] * len(FIELDS))
        self.answer = [self.blank] * n
        self.gold = [self.blank] * n
        self.shown = [self.blank_state] * n
        self.flights: list[str | None] = [None] * n
        self.has_reference = [False] * n
        self.status = [ANSWERED] * n
        self.completeness = [1.0] * n
        self.texts: list[str | None] = [None] * n
        self.methods: list[str | None] = [None] * n
        self.starts, self.ends, self.candidates = [-1] * n, [-1] * n, [0] * n
        self.odd: dict[int, tuple[str | None, int]] = {}
        self.validity: dict[int, list[list[int]]] = {}
        self.notes: dict[int, str] = {}
        self.details: dict[tuple[int, int], str] = {}
        self._pack, self._extract = reader.pack_cells, reader.extractor.extract
        self._arrays, self._steps = reader.task.arrays, reader.task.steps

    def refuse(self, index: int, status: int, note: str) -> None:
        self.status[index] = status
        self.notes[index] = note
        self.completeness[index] = 0.0

    def add(self, index: int, output: _Output) -> None:
        if output.current_state is not _ABSENT:
            # What this model was shown goes before what the reference says.
            self.shown[index] = self.reader.shown_state(output.current_state) or self.shown[index]
        text = output.response
        if text is None:
            if output.error:
                self.refuse(index, ERRORED, shown(output.error, 200))
            else:
                self.refuse(index, MISSING, "the output line has no response")
            return
        self.texts[index] = text
        found = self._extract(text)
        self.candidates[index] = found.candidates
        if found.value is None:
            self._unread(index, text, found, output.error)
            return
        self.methods[index], self.starts[index], self.ends[index] = found.method, found.start, found.end
        if not found.typed:
            self._loose(index, found.value, found.repairs)
            return
        values = msgspec.structs.astuple(found.value)
        if not self._arrays:
            self.answer[index] = self._pack(*values)
        elif all(len(value) == self._steps for value in values):
            self.answer[index] = self._pack(*itertools.chain.from_iterable(values))
        else:
            self._loose(index, dict(zip(FIELDS, values, strict=True)), found.repairs)

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
        batch = FlightBatch(
            task=task,
            status=np.array(self.status, dtype=np.uint8),
            answer=self._unpacked(self.answer),
            validity=np.ascontiguousarray(validity.reshape(n, -1).T),
            shown=np.ascontiguousarray(np.frombuffer(b"".join(self.shown)).reshape(n, -1).T),
            gold=self._unpacked(self.gold),
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
        )

    def _unpacked(self, rows: list[bytes]) -> NDArray[np.float64]:
        """(steps, 19, n) of packed rows; what is not finite is no number."""
        cells = np.frombuffer(b"".join(rows)).reshape(self.n, len(FIELDS), self.reader.task.steps)
        return np.ascontiguousarray(cells.transpose(2, 1, 0))


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
