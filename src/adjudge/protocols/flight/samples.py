"""samples.parquet of the flight protocol: what is stored of a sample, and how a batch is restored from it.

The raw texts are read again to show that the stored answers are what they say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.evidence.atoms import pack_citations
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, FAIL
from adjudge.protocols.common.columns import WORD, coded, codes, floats
from adjudge.protocols.flight.batch import FlightBatch, ReadBatch
from adjudge.protocols.flight.fields import (
    ANSWERED,
    ARRAY_SHAPE,
    FIELDS,
    INVALID_VALUE,
    MISSING_FIELD,
    STATUSES,
    VALID,
    Task,
    as_lists,
    from_lists,
)
from adjudge.protocols.flight.judge import DIMENSIONS, GRADES, Scores
from adjudge.protocols.flight.references import SOURCES
from adjudge.protocols.flight.rows import NO_METHOD, TEXT_LIMIT, OutputReader, without_echoes
from adjudge.readers.blocks import block_of
from adjudge.readers.extract import METHODS
from adjudge.verdict.agent import ELIGIBLE, INELIGIBLE, Verdicts

_SCORES = tuple(field.name for field in fields(Scores) if field.name != "grades")

QUESTION_LIMIT = 400  # characters
_OUTPUTS = {
    "response": pa.string(),
    "characters": pa.int64(),
    "question": pa.string(),
    "timestamp": pa.string(),
    "record_idx": pa.int64(),
}


def schema(tasks: Sequence[Task]) -> pa.Schema:
    """The columns, without the partition and row that the writer adds; numbers for the task with the most steps."""
    cells = max(task.steps for task in tasks) * len(FIELDS)
    return pa.schema(
        [
            ("sample", pa.string()),
            ("task", WORD),
            ("model", WORD),
            ("flight", WORD),
            ("status", WORD),
            ("bucket", WORD),
            ("verdict", WORD),
            ("cites", pa.binary()),
            ("method", WORD),
            ("start", pa.int32()),
            ("end", pa.int32()),
            ("repairs", WORD),
            ("candidates", pa.int32()),
            ("extra_keys", pa.int32()),
            ("completeness", pa.float64()),
            ("has_reference", pa.bool_()),
            ("reference_fault", WORD),
            ("shown_from", WORD),
            *((name, pa.float64()) for name in _SCORES),
            *((name, WORD) for name in DIMENSIONS),
            ("answer", pa.list_(pa.float64(), cells)),
            ("shown", pa.list_(pa.float64(), len(FIELDS))),
            ("gold", pa.list_(pa.float64(), cells)),
        ]
    )


def table(read: ReadBatch, verdicts: Verdicts, scores: Scores, tasks: Sequence[Task]) -> pa.Table:
    """The rows of one batch."""
    batch, outputs = read.batch, read.outputs
    kinds = schema(tasks)
    models = np.tile(np.arange(len(read.groups), dtype=np.int32), batch.n // len(read.groups))
    columns = {
        "sample": read.samples,
        "task": _words(np.zeros(batch.n, dtype=np.int8), (batch.task.name,)),
        "model": pa.DictionaryArray.from_arrays(pa.array(models), pa.array(read.groups, pa.string())),
        "flight": read.flights.combine_chunks().dictionary_encode(),
        "status": _words(batch.status, STATUSES),
        "method": _words(np.asarray(outputs.column("method")), METHODS),
        "repairs": outputs.column("repairs").cast(pa.string()).combine_chunks().dictionary_encode(),
        **{name: outputs.column(name) for name in ("start", "end", "candidates", "extra_keys", "completeness")},
        "has_reference": pa.array(batch.has_reference),
        "reference_fault": read.faults.cast(pa.string()).combine_chunks().dictionary_encode(),
        "shown_from": coded(read.shown_from, SOURCES, np.int32),
        **_decided(batch, verdicts, scores),
    }
    for name, rows in zip(("answer", "shown", "gold"), read.rows, strict=True):
        columns[name] = as_lists(_widened(rows, kinds.field(name).type.list_size))
    return pa.table(columns).select(kinds.names).cast(kinds)


def _decided(batch: FlightBatch, verdicts: Verdicts, scores: Scores) -> dict[str, pa.Array]:
    """The columns that follow from a batch, its evidence and its verdicts."""
    return {
        "bucket": _words(bucket_codes(batch.status, verdicts.eligible), BUCKETS),
        "verdict": _words((~verdicts.eligible).astype(np.int8), (ELIGIBLE, INELIGIBLE)),
        "cites": pack_citations(verdicts.cites),
        **{name: pa.array(getattr(scores, name), from_pandas=True) for name in _SCORES},
        **{name: _words(row, GRADES) for name, row in zip(DIMENSIONS, scores.grades, strict=True)},
    }


def _widened(rows: NDArray[np.float64], cells: int) -> NDArray[np.float64]:
    """Rows of so many cells, NaN in those that the task does not ask for."""
    spare = cells - rows.shape[1]
    return np.pad(rows, ((0, 0), (0, spare)), constant_values=np.nan) if spare else rows


def outputs(read: ReadBatch) -> pa.Table:
    """The raw responses, each cut at a bound; how long it was stands beside it, and what else the line says."""
    table = read.outputs.select(list(_OUTPUTS)).cast(pa.schema(list(_OUTPUTS.items())))
    at = table.column_names.index("question")
    return table.set_column(at, "question", pc.utf8_slice_codeunits(table.column(at), 0, QUESTION_LIMIT))


def bucket_codes(status: NDArray[np.uint8], eligible: NDArray[np.bool_]) -> NDArray[np.int8]:
    """Where a sample ended: passed, failed, or what kept it from being answered."""
    other = np.array([0, *(BUCKETS.index(name) for name in STATUSES[1:])], dtype=np.int8)
    return np.where(status == ANSWERED, (~eligible).astype(np.int8), other[status])


def restore(samples: pa.Table, evidence: Evidence, task: Task) -> FlightBatch:
    """The batch as it was, from what is stored; which values are invalid in what way, the evidence says."""
    n = samples.num_rows
    status = codes(samples, "status", STATUSES).astype(np.uint8)
    cells = task.steps * len(FIELDS)
    answer = _cells(samples, "answer", cells).reshape(task.steps, len(FIELDS), n)
    numeric = evidence.layout.positions_of("numeric_validity")
    kinds = {"missing_field": MISSING_FIELD, "array_shape": ARRAY_SHAPE, "invalid_value": INVALID_VALUE}
    validity = np.full((numeric.size, n), VALID, dtype=np.uint8)
    failed = evidence.outcome[numeric] == FAIL
    for name, kind in kinds.items():
        code = evidence.layout.codes.index(f"numeric_validity.{name}")
        validity[failed & (evidence.code[numeric] == code)] = kind
    return FlightBatch(
        task=task,
        status=status,
        answer=answer,
        validity=validity,
        shown=_cells(samples, "shown", len(FIELDS)),
        gold=_cells(samples, "gold", cells).reshape(task.steps, len(FIELDS), n),
        completeness=floats(samples, "completeness"),
        has_reference=np.asarray(samples.column("has_reference").to_numpy()),
        models=len(samples.column("model").unique()),
    )


def contradictions(batch: FlightBatch) -> list[str]:
    """Where the stored columns of a batch contradict each other."""
    problems = []
    answered = batch.status == ANSWERED
    if (np.isnan(batch.answer.reshape(-1, batch.n))[:, answered] != (batch.validity != VALID)[:, answered]).any():
        problems.append("evidence: numeric_validity contradicts the stored answers")
    missing = (batch.validity == MISSING_FIELD).reshape(batch.task.steps, len(FIELDS), batch.n)[0].sum(axis=0)
    if (batch.completeness != np.where(answered, (len(FIELDS) - missing) / len(FIELDS), 0.0)).any():
        problems.append("samples.parquet: completeness contradicts the evidence")
    if (np.isnan(batch.gold).all(axis=(0, 1)) == batch.has_reference).any():
        problems.append("samples.parquet: has_reference contradicts the stored gold")
    return problems


def differences(samples: pa.Table, batch: FlightBatch, verdicts: Verdicts, scores: Scores) -> list[str]:
    """Where stored verdicts, citations, buckets or scores are not what follows from the stored values."""
    return [
        f"samples.parquet: {name} is not what the evidence gives"
        for name, values in _decided(batch, verdicts, scores).items()
        if samples.column(name).to_pylist() != values.to_pylist()
    ]


def _words(values: NDArray[Any], words: Sequence[str]) -> pa.Array:
    return coded(values.view(np.int8), words, np.int32)


def _cells(samples: pa.Table, name: str, cells: int) -> NDArray[np.float64]:
    return np.ascontiguousarray(from_lists(samples.column(name))[:, :cells].T)


_COMPARED = ("start", "end", "candidates", "extra_keys", "completeness")


def reread(task: Task, samples: pa.Table, outputs: pa.Table, *, repairs: bool) -> list[str]:
    """Stored columns that are not what the texts give. A text that was cut at the bound cannot be read again."""
    whole = pc.less_equal(outputs.column("characters").fill_null(0), TEXT_LIMIT)
    lengths = pc.utf8_length(outputs.column("response"))
    if pc.any(pc.not_equal(lengths, outputs.column("characters")).filter(whole)).as_py():
        return ["characters are not those of the texts"]
    has_text = pc.and_(whole, outputs.column("response").is_valid())
    problems = _without_text(samples.filter(pc.and_(whole, outputs.column("response").is_null())))
    samples, texts = samples.filter(has_text), outputs.column("response").filter(has_text).to_pylist()
    if not texts:
        return problems
    lines = ((row, msgspec.json.encode({"id": row, "response": text})) for row, text in enumerate(texts, 1))
    reader = OutputReader([task], repairs=repairs)
    read = without_echoes(reader.read(block_of(lines)), from_lists(samples.column("shown")), task, reader)
    expected = {name: read.column(name).to_pylist() for name in _COMPARED}
    words = {**dict(enumerate(METHODS)), NO_METHOD: None}
    expected["method"] = [words[code] for code in read.column("method").to_pylist()]
    expected["repairs"] = read.column("repairs").cast(pa.string()).to_pylist()
    problems += [
        f"{name} in samples.parquet is not what the texts give"
        for name, values in expected.items()
        if samples.column(name).to_pylist() != values
    ]
    stored, again = (from_lists(table.column("answer"))[:, : task.steps * len(FIELDS)] for table in (samples, read))
    if not np.array_equal(stored, again, equal_nan=True):
        problems.append("answer in samples.parquet is not what the texts give")
    status = [STATUSES[code] for code in read.column("status").to_pylist()]
    # An error beside the text is not kept with it: it may have made an errored one of any text without an answer.
    kept = [
        stored == given or (stored == "errored" and given != STATUSES[ANSWERED])
        for stored, given in zip(samples.column("status").to_pylist(), status, strict=True)
    ]
    return problems if all(kept) else [*problems, "status in samples.parquet is not what the texts give"]


def _without_text(samples: pa.Table) -> list[str]:
    """A sample without a text has no answer."""
    words = set(samples.column("status").to_pylist())
    return ["a sample without a text has an answer"] if words - {"errored", "missing"} else []
