"""Output lines of the flight protocol as columns: every answer read and judged for what it holds."""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.flight.batch import ABSTAINED, ANSWERED, ERRORED, MISSING, UNPARSED
from adjudge.protocols.flight.facts import FACTS, NO_METHOD, Rare, fixed, plain_facts
from adjudge.protocols.flight.fields import FIELDS, Task
from adjudge.protocols.flight.values import NAN, State, answer_decoder, judge_values, shown, state_values
from adjudge.readers.answers import METHODS, PlainAnswers
from adjudge.readers.blocks import Block
from adjudge.readers.extract import Extraction, Extractor
from adjudge.readers.scan import ABSENT, ESCAPED, INTEGER, NULL, TEXT, WRITTEN, Scanned, Wanted, scan

EXPECTED = "an output line is a JSON object with `id`, `response` and `model`"
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
_ABSENT = msgspec.Raw(b"")
_WANTED = Wanted([("id",), ("response",), ("model",), ("error",), ("current_state",)])


class _Output(msgspec.Struct, kw_only=True, gc=False):
    id: str | int | None = None
    response: str | None = None
    model: str | None = None
    error: str | None = None
    current_state: msgspec.Raw = _ABSENT


class _NamedOutput(_Output, kw_only=True, gc=False):
    id: str | int


class _Row(msgspec.Struct, gc=False):
    """One output, read."""

    key: str
    group: str
    line: int
    answer: bytes
    status: int = ANSWERED
    completeness: float = 1.0
    response: str | None = None
    characters: int = -1
    method: int = NO_METHOD
    start: int = -1
    end: int = -1
    candidates: int = 0
    extra_keys: int = 0
    rare: Rare = msgspec.field(default_factory=Rare)


def schema(task: Task) -> pa.Schema:
    """The columns of the table."""
    return pa.schema(
        [
            ("key", pa.string()),
            ("group", pa.string()),
            ("line", pa.int64()),
            ("answer", pa.binary(8 * task.steps * len(FIELDS))),
            ("facts", pa.binary(FACTS.itemsize)),
            ("response", pa.string()),
            ("rare", pa.binary()),
        ]
    )


class OutputReader:
    """Reads blocks of output lines; everything that does not change from block to block is made once."""

    def __init__(self, task: Task, *, repairs: bool, by_line: bool) -> None:
        self.task, self.by_line = task, by_line
        self.schema = schema(task)
        self._extract = Extractor(FIELDS, decoder=answer_decoder(task), repairs=repairs).extract
        self._plain = PlainAnswers(FIELDS, task.steps, lists=task.arrays)
        self._decode = msgspec.json.Decoder(_Output if by_line else _NamedOutput).decode
        self._shown = msgspec.json.Decoder(shown_type(task), strict=False)
        self._pack_state = struct.Struct(f"{len(FIELDS)}d").pack
        self._pack_cells = struct.Struct(f"{len(FIELDS) * task.steps}d").pack
        self._blank = self._pack_cells(*[NAN] * (len(FIELDS) * task.steps))

    def read(self, block: Block) -> pa.Table:
        """A row an output: plain answers at once, the others one by one."""
        rows: NDArray[Any] = np.arange(len(block))
        tables = []
        if block.fast and not self.by_line:
            plain, odd = self._at_once(block)
            tables.append(plain)
            rows = np.flatnonzero(odd)
        if rows.size or not tables:
            stem = Path(block.path).stem
            found = block.each_of(rows.tolist(), lambda line, text: self._one(line, text, stem, block.path), EXPECTED)
            tables.append(self._table(found, block.file))
        return pa.concat_tables(tables)

    def _at_once(self, block: Block) -> tuple[pa.Table, NDArray[np.bool_]]:
        """A row an output, without a key where the answer is not plain; and which are not."""
        found = scan(_WANTED, block.data, block.starts, block.ends, fast=True)
        found.expect("id", kinds=WRITTEN)
        found.expect("response", kinds=(TEXT, ESCAPED))
        found.expect("model", kinds=(TEXT, ESCAPED, ABSENT, NULL))
        found.expect("error", kinds=(ABSENT, NULL))
        found.expect("current_state", kinds=(ABSENT,))
        first, last = found.spans("response")
        found.odd |= last - first > TEXT_LIMIT
        negative_zero = (found.kinds("id") == INTEGER) & (found.numbers("id") == 0)
        found.odd |= negative_zero
        texts = found.texts("response")
        answers = self._plain.read(texts)
        found.odd |= ~answers.plain
        facts = plain_facts(len(block), block.file)
        facts["characters"] = np.diff(_offsets(texts))
        facts["method"], facts["start"], facts["end"] = answers.method, answers.start, answers.end
        arrays = [
            found.texts("id", kinds=WRITTEN),
            self._models(found, Path(block.path).stem),
            pa.array(block.lines),
            fixed(answers.numbers, 8 * self.task.steps * len(FIELDS)),
            fixed(facts, FACTS.itemsize),
            texts,
            pa.nulls(len(block), pa.binary()),
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema), found.odd

    def _table(self, rows: Sequence[_Row], file: int) -> pa.Table:
        """Outputs that were read one by one."""
        names = ("completeness", "characters", "start", "end", "candidates", "extra_keys", "status", "method")
        facts = np.zeros(len(rows), dtype=FACTS)
        for name in names:
            facts[name] = [getattr(row, name) for row in rows]
        facts["file"] = file
        arrays = [
            pa.array([row.key for row in rows], pa.string()),
            pa.array([row.group for row in rows], pa.string()),
            pa.array([row.line for row in rows], pa.int64()),
            pa.array([row.answer for row in rows], self.schema.field("answer").type),
            fixed(facts, FACTS.itemsize),
            pa.array([row.response for row in rows], pa.string()),
            pa.array([row.rare.packed() for row in rows], pa.binary()),
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _models(self, found: Scanned, stem: str) -> pa.StringArray:
        """The model of every plain row; one without a name is called as the file."""
        models = found.texts("model")
        if not ((np.diff(_offsets(models)) == 0) & ~found.odd).any():
            return models
        names = zip(models.to_pylist(), found.odd.tolist(), strict=True)
        return pa.array([None if odd else model or stem for model, odd in names], pa.string())

    def _one(self, line: int, text: bytes, stem: str, path: str) -> _Row:
        """One output line."""
        try:
            output = self._decode(text)
        except msgspec.ValidationError as error:
            output = self._loose_output(text, error, path, line)
        row = _Row(str(line) if self.by_line else str(output.id), output.model or stem, line, self._blank)
        if output.current_state is not _ABSENT:
            # What this model was shown goes before what the reference says.
            row.rare.shown = self._shown_state(output.current_state)
        response = output.response
        if response is None:
            if output.error:
                _refuse(row, ERRORED, shown(output.error, 200))
            else:
                _refuse(row, MISSING, "the output line has no response")
            return row
        row.response, row.characters = _storable(response), len(response)
        found = self._extract(response)
        row.candidates = found.candidates
        if found.value is None:
            _unread(row, response, found, output.error)
            return row
        row.method, row.start, row.end = METHODS.index(found.method), found.start, found.end
        if found.typed:
            self._typed(row, msgspec.structs.astuple(found.value), found.repairs)
        else:
            self._loose(row, found.value, found.repairs)
        return row

    def _typed(self, row: _Row, values: tuple[Any, ...], repairs: tuple[str, ...]) -> None:
        if not self.task.arrays:
            row.answer = self._pack_cells(*values)
        elif all(len(value) == self.task.steps for value in values):
            row.answer = self._pack_cells(*itertools.chain.from_iterable(zip(*values, strict=True)))
        else:
            self._loose(row, dict(zip(FIELDS, values, strict=True)), repairs)

    def _loose(self, row: _Row, answer: dict[str, Any], repairs: tuple[str, ...]) -> None:
        numbers, codes, details = judge_values(answer, self.task)
        row.answer = self._pack_cells(*itertools.chain.from_iterable(numbers))
        row.rare.validity = bytes(itertools.chain.from_iterable(codes))
        row.rare.details = [(*place, detail) for place, detail in details.items()]
        present = sum(name in answer for name in FIELDS)
        row.completeness = present / len(FIELDS)
        row.extra_keys = len(answer) - present
        row.rare.repairs = ",".join(repairs) or None

    def _shown_state(self, raw: msgspec.Raw) -> bytes | None:
        """The last shown state of an output line."""
        try:
            typed = self._shown.decode(raw)
            return self._pack_state(*msgspec.structs.astuple(typed[-1] if isinstance(typed, tuple) else typed))
        except msgspec.ValidationError:
            state = msgspec.json.decode(raw)
            last = state[-1] if isinstance(state, list) and state else state
            return self._pack_state(*state_values(last)) if isinstance(last, dict) else None

    def _loose_output(self, text: bytes, error: msgspec.ValidationError, path: str, line: int) -> Any:
        """An output line whose response is an object instead of text, or whose error is one; any other is refused."""
        data = msgspec.json.decode(text)
        if not isinstance(data, dict) or ("id" not in data and not self.by_line):
            raise error
        response = data.get("response")
        if isinstance(response, dict | list):
            data["response"] = msgspec.json.encode(response).decode()
        if isinstance(data.get("error"), dict | list):
            data["error"] = shown(data["error"], 300)
        try:
            return self._decode(msgspec.json.encode(data))
        except msgspec.ValidationError:
            raise InputError(f"{error}; `response` is the model's raw text", file=path, line=line) from None


def shown_type(task: Task) -> Any:
    """How the states that a model was shown are decoded: only the last one counts."""
    return State if task.shown == 1 else tuple[(msgspec.Raw,) * (task.shown - 1) + (State,)]  # type: ignore[misc]


def _offsets(texts: pa.StringArray) -> NDArray[np.int32]:
    return np.frombuffer(texts.buffers()[1], dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]


def _storable(text: str) -> str:
    """The kept part, as UTF-8 can carry it: a lone surrogate, which JSON can spell, becomes a replacement sign."""
    if len(text) <= TEXT_LIMIT and text.isascii():
        return text
    return text[:TEXT_LIMIT].encode("utf-8", "replace").decode()


def _refuse(row: _Row, status: int, note: str) -> None:
    row.status, row.rare.note, row.completeness = status, note, 0.0


def _unread(row: _Row, text: str, found: Extraction, error: str | None) -> None:
    """What became of a text without an answer."""
    named = _api_error(text)
    if not text.strip() and not error:
        _refuse(row, ABSTAINED, "the response is empty")
    elif _ABSTAIN.search(text[:4000]):
        _refuse(row, ABSTAINED, 'the response says {"abstain": true}')
    elif error:
        _refuse(row, ERRORED, shown(error, 200))
    elif named is not None:
        _refuse(row, ERRORED, f"the text names one: {shown(named)}")
    else:
        _refuse(row, UNPARSED, found.error)


def _api_error(text: str) -> str | None:
    """The failure that a text without an answer names, if any."""
    low = text[:4000].lower()
    for phrase in _API_ERRORS:
        if phrase in low:
            return phrase
    match = _STATUS.search(low)
    return match[0] if match else None
