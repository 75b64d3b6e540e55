"""Output lines of the flight protocol as columns: every answer read and judged for what it holds.

An answer is not what the model was shown: of several objects in a text, one equal to the shown state loses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.base import Role
from adjudge.protocols.common.columns import few
from adjudge.protocols.flight import references
from adjudge.protocols.flight.fields import (
    ABSTAINED,
    ANSWERED,
    ARRAY_SHAPE,
    ERRORED,
    FIELDS,
    MISSING,
    NO_STATE,
    NO_TRIPLE,
    UNPARSED,
    Floats,
    Task,
    answer_decoder,
    any_values,
    array_rows,
    as_lists,
    from_lists,
    judge_values,
    model_named_in,
    number,
    state_rows,
    valid,
)
from adjudge.protocols.flight.references import ABSENT, STATE_KEYS, Lines, raw_state, shown_decoder, state_lists
from adjudge.readers.blocks import Block
from adjudge.readers.extract import METHODS, Extraction, Extractor, without_answer
from adjudge.readers.settings import in_words, shown

EXPECTED = "an output line is a JSON object with `id`, `response` and `model`"
KEYS: dict[str, Any] = {
    **dict.fromkeys(("id", "sample_id", "response", "raw_response_text", "model", "model_name", "error", "task_id")),
    **dict.fromkeys(("question", "timestamp", "record_idx")),
    **STATE_KEYS,
}
TEXT_LIMIT = 65_536
NO_METHOD = -1
_METHOD_CODES = {"": NO_METHOD, **{method: code for code, method in enumerate(METHODS)}}
_OF_BUCKET = {"unparsed": UNPARSED, "abstained": ABSTAINED, "errored": ERRORED, "missing": MISSING}
_NO_TEXT = Extraction(None, False, "", -1, -1, (), 0, "")


class OutputRow(msgspec.Struct, kw_only=True, gc=False):
    """One output line, as this project and as the method name its keys."""

    id: str | int | None = None
    sample_id: str | int | None = None
    response: str | None = None
    raw_response_text: str | None = None
    model: str | None = None
    model_name: str | None = None
    error: str | None = None
    task_id: str | None = None
    question: str | None = None
    timestamp: str | int | float | None = None
    record_idx: int | None = None
    current_state: msgspec.Raw = ABSENT
    current: msgspec.Raw = ABSENT
    context: msgspec.Raw = ABSENT


class OutputReader(Lines):
    """Reads blocks of output lines into tables with a row an output.

    Some columns are null but for few outputs: `repairs` of the text, a `note` on why there is no answer, the state that
    this model was `shown`, the `validity` of every value where not all are usable, and `details` of those that are not.
    """

    def __init__(self, tasks: Sequence[Task], *, repairs: bool, offsets: dict[str, int] | None = None) -> None:
        super().__init__(tasks, offsets)
        self.extractors = {
            task.name: Extractor(FIELDS, decoder=answer_decoder(task), repairs=repairs) for task in tasks
        }
        self._cells = len(FIELDS) * max(task.steps for task in tasks)
        self._decoder = msgspec.json.Decoder(OutputRow)
        self._shown = {task.name: shown_decoder(task) for task in tasks}

    def read(self, block: Block) -> pa.Table:
        """A row an output."""

        def loose(line: int, record: bytes) -> OutputRow:
            return self._loose(record, block.path, line)

        outputs = block.decode(self._decoder, EXPECTED, loose)
        tasks = self.tasks_of(block, [output.task_id for output in outputs])
        ids: Sequence[str | int | None]
        if self.offsets is not None:
            ids = [number + self.offsets[task.name] for number, task in zip(self.numbers(block), tasks, strict=True)]
        else:
            ids = [output.sample_id if output.id is None else output.id for output in outputs]
            if None in ids:
                self._refuse_no_id(block, ids.index(None))
        if all(output.response is None and output.raw_response_text is None for output in outputs):
            _refuse_swapped(block, outputs)
        if not self.several:
            return self._table(block, outputs, ids, np.arange(len(block)), self.tasks[0])
        tables = []
        for task in self.tasks:
            rows = np.array([row for row, of in enumerate(tasks) if of is task], dtype=np.int64)
            if rows.size:
                tables.append(
                    self._table(block, [outputs[row] for row in rows], [ids[row] for row in rows], rows, task)
                )
        return pa.concat_tables(tables, promote_options="permissive")

    def _table(self, block: Block, outputs: Sequence[OutputRow], ids: Sequence[Any], rows: Any, task: Task) -> pa.Table:
        """The rows of one task."""
        texts = [output.raw_response_text if output.response is None else output.response for output in outputs]
        extract, model = self.extractors[task.name].extract, model_named_in(block.path)
        extractions = [_NO_TEXT if text is None else extract(text) for text in texts]
        groups = [output.model or output.model_name or model for output in outputs]
        responses = pa.array(texts, pa.string())
        characters = pc.utf8_length(responses)
        if (pc.max(characters).as_py() or 0) > TEXT_LIMIT:
            responses = pc.utf8_slice_codeunits(responses, 0, TEXT_LIMIT)
        stamps = [None if output.timestamp is None else str(output.timestamp) for output in outputs]
        return pa.table(
            {
                "key": self.keys(task, ids),
                "group": self.keys(task, groups),
                "file": np.full(len(outputs), block.file, dtype=np.int32),
                "line": block.lines[rows],
                "response": responses,
                "characters": characters.cast(pa.int64()),
                "question": pa.array([output.question for output in outputs], pa.string()),
                "timestamp": few(stamps, pa.string()),
                "record_idx": few([output.record_idx for output in outputs], pa.int64()),
                **self.judged(texts, [output.error for output in outputs], extractions, task),
                "shown": self._states(outputs, task),
            }
        )

    def _states(self, outputs: Sequence[OutputRow], task: Task) -> pa.Array:
        """What the model was shown, as its line says."""
        decode = self._shown[task.name]
        return state_lists([None if (raw := raw_state(output)) is ABSENT else decode(raw) for output in outputs])

    def judged(
        self, texts: Sequence[str | None], errors: Sequence[str | None], extractions: Sequence[Extraction], task: Task
    ) -> dict[str, Any]:
        """The columns on what the answers hold; those with exactly the expected numbers need no look at each value."""
        n, no_answer = len(texts), NO_TRIPLE if task.arrays else NO_STATE
        typed = [extraction.value if extraction.typed else no_answer for extraction in extractions]
        answers = array_rows(typed, task.steps) if task.arrays else state_rows(typed)
        status = np.full(n, ANSWERED, dtype=np.uint8)
        completeness, extra_keys = np.ones(n), np.zeros(n, dtype=np.int32)
        notes: list[str | None] = [None] * n
        validity: list[list[int] | None] = [None] * n
        details: list[list[str] | None] = [None] * n
        for row in [row for row, extraction in enumerate(extractions) if not extraction.typed]:
            answer = extractions[row].value
            if answer is None:
                bucket, notes[row] = without_answer(texts[row], errors[row], extractions[row].error)
                status[row] = _OF_BUCKET[bucket]
                completeness[row] = 0.0
            else:
                answers[row], validity[row], details[row] = judge_values(answer, task)
                present = sum(name in answer for name in FIELDS)
                completeness[row], extra_keys[row] = present / len(FIELDS), len(answer) - present
        spare = self._cells - answers.shape[1]
        if spare:
            answers = np.pad(answers, ((0, 0), (0, spare)), constant_values=np.nan)
            validity = [None if codes is None else codes + [0] * spare for codes in validity]
        return {
            **_extracted(extractions),
            "status": status,
            "completeness": completeness,
            "extra_keys": extra_keys,
            "answer": as_lists(answers),
            "note": few(notes, pa.string()),
            "validity": few(validity, pa.list_(pa.uint8(), self._cells)),
            "details": few(details, pa.list_(pa.string())),
        }

    def _loose(self, record: bytes, path: str, line: int) -> OutputRow:
        """An output line whose response is an object instead of text, or whose error is one; any other is refused."""
        data = any_values.decode(record)
        if isinstance(data, dict):
            for key in ("response", "raw_response_text"):
                if isinstance(data.get(key), dict | list):
                    data[key] = msgspec.json.encode(data[key]).decode()
            if isinstance(data.get("error"), dict | list):
                data["error"] = shown(data["error"], 300)
            for key in ("question", "timestamp", "record_idx"):
                if isinstance(data.get(key), dict | list | bool):
                    data.pop(key)  # kept for people to read; in another shape it is nothing to read
            record = msgspec.json.encode(data)
        try:
            return self._decoder.decode(record)
        except msgspec.ValidationError as error:
            if not isinstance(data, dict):
                raise
            what = f"{in_words(error)}; `response` is the model's raw text"
            raise InputError(what, file=path, line=line) from None

    def _refuse_no_id(self, block: Block, row: int) -> NoReturn:
        data = any_values.decode(block.some_records([row])[0])
        null = isinstance(data, dict) and "id" in data
        what = "`id` is null, expected a whole number or text; `response` is the model's raw text"
        what = what if null else f"the record has no `id`; {EXPECTED}"
        raise InputError(what, file=block.path, line=int(block.lines[row]))


def _extracted(extractions: Sequence[Extraction]) -> dict[str, pa.Array]:
    """The columns on where the answers stood in their texts."""
    return {
        "method": pa.array([_METHOD_CODES[extraction.method] for extraction in extractions], pa.int8()),
        "start": pa.array([extraction.start for extraction in extractions], pa.int32()),
        "end": pa.array([extraction.end for extraction in extractions], pa.int32()),
        "candidates": pa.array([extraction.candidates for extraction in extractions], pa.int32()),
        "repairs": few([",".join(extraction.repairs) or None for extraction in extractions], pa.string()),
    }


def _refuse_swapped(block: Block, outputs: Sequence[OutputRow]) -> None:
    """Lines without any response that hold gold are those of a reference."""
    if any(output.error for output in outputs) or not len(block):
        return
    data = any_values.decode(block.some_records([0])[0])
    gold = next((key for key in ("next_second", "T+1", "gold") if isinstance(data, dict) and key in data), None)
    if gold is not None:
        raise InputError(
            f"holds `{gold}` and no `response`: this looks like a reference, not like outputs.",
            file=block.path,
            line=int(block.lines[0]),
            hint="Were --outputs and --reference swapped?",
        )


_ANSWERED = (("id", "sample_id"), ("response", "raw_response_text"))
_KNOWN = (("id", "sample_id"), ("next_second", "T+1", "gold"))
ROLES = {
    "outputs": Role(KEYS, _ANSWERED, "adjudge flight --task S1 --outputs FILE --reference …"),
    "reference": Role(references.KEYS, _KNOWN, "adjudge flight --task S1 --outputs … --reference FILE"),
}


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
