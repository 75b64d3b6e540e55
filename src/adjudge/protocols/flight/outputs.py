"""Output lines of the flight protocol as columns: every answer read and judged for what it holds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.errors import InputError
from adjudge.protocols.flight.batch import ABSTAINED, ANSWERED, ERRORED, MISSING, UNPARSED
from adjudge.protocols.flight.cells import array_rows, as_lists, finite, state_rows
from adjudge.protocols.flight.fields import FIELDS, Task
from adjudge.protocols.flight.values import (
    NO_STATE,
    NO_TRIPLE,
    answer_decoder,
    any_values,
    judge_values,
    last_state,
    shown,
    shown_type,
    state_of,
)
from adjudge.readers.blocks import Block
from adjudge.readers.extract import METHODS, Extraction, Extractor
from adjudge.readers.wording import in_words

EXPECTED = "an output line is a JSON object with `id`, `response` and `model`"
KEYS = {**dict.fromkeys(("id", "response", "model", "error")), "current_state": dict.fromkeys(FIELDS)}
TEXT_LIMIT = 65_536
NO_METHOD = -1
# What a text says when the call failed and there is no answer; compared in lower case.
_API_ERRORS = (
    *("rate limit", "rate_limit", "ratelimit", "too many requests", "timeout", "timed out", "time-out", "bad request"),
    *("service unavailable", "internal server error", "bad gateway", "gateway error", "overloaded", "api error"),
    *("connection error", "connection reset", "connection refused", "connection aborted", "apiconnectionerror"),
    *("quota exceeded", "insufficient_quota", "unauthorized", "invalid api key", "permission denied", "server error"),
)
_STATUS = re.compile(r"(?:http|status|error)(?: code)?:? ?[45][0-9][0-9]\b")
_ABSTAIN = re.compile(r'\{\s*"abstain"\s*:\s*true\s*[,}]')
_METHOD_CODES = {"": NO_METHOD, **{method: code for code, method in enumerate(METHODS)}}
_ABSENT = msgspec.Raw()
_NO_TEXT = Extraction(None, False, "", -1, -1, (), 0, "")


class _Output(msgspec.Struct, kw_only=True, gc=False):
    id: str | int | None = None
    response: str | None = None
    model: str | None = None
    error: str | None = None
    current_state: msgspec.Raw = _ABSENT


class _NamedOutput(_Output, kw_only=True, gc=False):
    id: str | int


class _Shown(msgspec.Struct, gc=False):
    current_state: Any


class OutputReader:
    """Reads blocks of output lines into tables with a row an output.

    Some columns are null but for few outputs: `repairs` of the text, a `note` on why there is no answer, the state that
    this model was `shown`, the `validity` of every value where not all are usable, and `details` of those that are not.
    """

    def __init__(self, task: Task, *, repairs: bool, by_line: bool) -> None:
        self.task, self.by_line = task, by_line
        self._extract = Extractor(FIELDS, decoder=answer_decoder(task), repairs=repairs).extract
        self._decoder = msgspec.json.Decoder(_Output if by_line else _NamedOutput)
        self._no_answer = NO_TRIPLE if task.arrays else NO_STATE
        shown_states = msgspec.defstruct("Shown", [("current_state", shown_type(task) | None, None)], gc=False)
        self._shown_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(shown_states, strict=False)

    def read(self, block: Block) -> pa.Table:
        """A row an output."""

        def loose(line: int, record: bytes) -> _Output:
            return self._loose(record, block.path, line)

        outputs = block.decode(self._decoder, EXPECTED, loose)
        extract, stem = self._extract, Path(block.path).stem
        texts = [output.response for output in outputs]
        extractions = [_NO_TEXT if text is None else extract(text) for text in texts]
        keys = block.lines.tolist() if self.by_line else [output.id for output in outputs]
        responses = pa.array(texts, pa.string())
        characters = pc.utf8_length(responses)
        if (pc.max(characters).as_py() or 0) > TEXT_LIMIT:
            responses = pc.utf8_slice_codeunits(responses, 0, TEXT_LIMIT)
        return pa.table(
            {
                "key": pa.array([str(key) for key in keys], pa.string()),
                "group": pa.array([output.model or stem for output in outputs], pa.string()),
                "file": np.full(len(block), block.file, dtype=np.int32),
                "line": block.lines,
                "response": responses,
                "characters": characters.cast(pa.int64()),
                "method": pa.array([_METHOD_CODES[extraction.method] for extraction in extractions], pa.int8()),
                "start": pa.array([extraction.start for extraction in extractions], pa.int32()),
                "end": pa.array([extraction.end for extraction in extractions], pa.int32()),
                "candidates": pa.array([extraction.candidates for extraction in extractions], pa.int32()),
                "repairs": _few([",".join(extraction.repairs) or None for extraction in extractions], pa.string()),
                **self._judged(outputs, extractions),
                "shown": self._shown_states(block, outputs),
            }
        )

    def _judged(self, outputs: Sequence[_Output], extractions: Sequence[Extraction]) -> dict[str, Any]:
        """The columns on what the answers hold; those with exactly the expected numbers need no look at each value."""
        n, no_answer = len(outputs), self._no_answer
        typed = [extraction.value if extraction.typed else no_answer for extraction in extractions]
        answers = array_rows(typed, self.task.steps) if self.task.arrays else state_rows(typed)
        status = np.full(n, ANSWERED, dtype=np.uint8)
        completeness, extra_keys = np.ones(n), np.zeros(n, dtype=np.int32)
        notes: list[str | None] = [None] * n
        validity: list[list[int] | None] = [None] * n
        details: list[list[str] | None] = [None] * n
        for row in [row for row, extraction in enumerate(extractions) if not extraction.typed]:
            answer = extractions[row].value
            if answer is None:
                status[row], notes[row] = _refused(outputs[row], extractions[row])
                completeness[row] = 0.0
            else:
                answers[row], validity[row], details[row] = judge_values(answer, self.task)
                present = sum(name in answer for name in FIELDS)
                completeness[row], extra_keys[row] = present / len(FIELDS), len(answer) - present
        return {
            "status": status,
            "completeness": completeness,
            "extra_keys": extra_keys,
            "answer": as_lists(answers),
            "note": _few(notes, pa.string()),
            "validity": _few(validity, pa.list_(pa.uint8(), answers.shape[1])),
            "details": _few(details, pa.list_(pa.string())),
        }

    def _shown_states(self, block: Block, outputs: Sequence[_Output]) -> pa.Array:
        """The last state that each line says its model was shown; it goes before what the reference says."""
        if all(output.current_state is _ABSENT for output in outputs):
            return pa.nulls(len(outputs))

        def loose(_: int, record: bytes) -> Any:
            last = last_state(any_values.decode(record).get("current_state"))
            return _Shown(state_of(last) if isinstance(last, dict) else None)

        records = block.decode(self._shown_decoder, EXPECTED, loose)
        states = [last_state(record.current_state) for record in records]
        rows = finite(state_rows([NO_STATE if state is None else state for state in states]))
        return as_lists(rows, np.array([state is None for state in states]))

    def _loose(self, record: bytes, path: str, line: int) -> _Output:
        """An output line whose response is an object instead of text, or whose error is one; any other is refused."""
        data = any_values.decode(record)
        if isinstance(data, dict):
            if isinstance(data.get("response"), dict | list):
                data["response"] = msgspec.json.encode(data["response"]).decode()
            if isinstance(data.get("error"), dict | list):
                data["error"] = shown(data["error"], 300)
            record = msgspec.json.encode(data)
        try:
            return self._decoder.decode(record)
        except msgspec.ValidationError as error:
            if not isinstance(data, dict) or ("id" not in data and not self.by_line):
                raise
            what = f"{in_words(error)}; `response` is the model's raw text"
            raise InputError(what, file=path, line=line) from None


def _few(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A column of what few rows have; one of nulls alone takes no room."""
    return pa.nulls(len(values)) if values.count(None) == len(values) else pa.array(values, kind)


def _refused(output: _Output, extraction: Extraction) -> tuple[int, str]:
    """What became of an output without an answer, and why."""
    text, error = output.response, output.error
    if text is None:
        return (ERRORED, shown(error, 200)) if error else (MISSING, "the output line has no response")
    if not text.strip() and not error:
        return ABSTAINED, "the response is empty"
    if _ABSTAIN.search(text[:4000]):
        return ABSTAINED, 'the response says {"abstain": true}'
    if error:
        return ERRORED, shown(error, 200)
    named = _api_error(text)
    if named is not None:
        return ERRORED, f"the text names one: {shown(named)}"
    return UNPARSED, extraction.error


def _api_error(text: str) -> str | None:
    """The failure that a text without an answer names, if any."""
    low = text[:4000].lower()
    for phrase in _API_ERRORS:
        if phrase in low:
            return phrase
    match = _STATUS.search(low)
    return match[0] if match else None
