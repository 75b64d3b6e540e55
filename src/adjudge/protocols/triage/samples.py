"""samples.parquet of the triage protocol: what is stored of a record, the verdict on it, and the batch restored from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import RunError
from adjudge.evidence.table import Evidence
from adjudge.protocols.common.columns import WORD, coded, floats
from adjudge.protocols.common.columns import codes as codes_of_words
from adjudge.protocols.triage.batch import (
    CACHE_STATES,
    CONFIDENCE_STATES,
    ERRORED,
    MISSING,
    TIMES,
    UNREADABLE,
    Codes,
    ReadBatch,
    TriageBatch,
    confidence_states,
)
from adjudge.protocols.triage.judge import adjudicate
from adjudge.protocols.triage.words import UNCERTAIN, Classes

_OUTPUTS = ("file", "line", "response", "confidence_text", "error", "error_type")
"""What a run must have kept of a record beside its sample."""


def answers(classes: Classes) -> tuple[str, ...]:
    """What can have been received, in the order of the codes of `batch`."""
    return (*classes, UNCERTAIN, "error", "unparsed", "missing")


def schema(slices: Sequence[str]) -> pa.Schema:
    """The columns, without the partition and row that the writer adds."""
    return pa.schema(
        [
            ("sample", pa.string()),
            *((name, WORD) for name in ("model", "configuration")),
            ("trial", pa.int32()),
            *((name, WORD) for name in ("label", "answer", "bucket", "verdict")),
            ("cites", pa.binary()),
            ("confidence", pa.float64()),
            ("confidence_state", WORD),
            *((name, pa.float64()) for name in TIMES),
            ("cache", WORD),
            ("tool_count", pa.int32()),
            ("tool_seconds", pa.float64()),
            ("temperature", pa.float64()),
            ("carries", pa.uint8()),
            *((name, WORD) for name in ("prompts", "models", "run_config", *slices)),
        ]
    )


def table(read: ReadBatch, evidence: Evidence, classes: Classes) -> pa.Table:
    """The rows of one batch."""
    batch = read.batch
    columns = {
        "sample": read.samples,
        "model": read.groups.column(),
        "configuration": read.configurations().column(),
        "trial": pa.array(read.trials()),
        "label": _coded(batch.label, classes),
        "answer": _coded(batch.answer, answers(classes)),
        **decided(batch, evidence),
        "confidence": pa.array(batch.confidence, from_pandas=True),
        **{name: pa.array(column, from_pandas=True) for name, column in zip(TIMES, batch.times, strict=True)},
        "cache": _coded(batch.cache, CACHE_STATES),
        "tool_count": pa.array(batch.tool_count),
        "tool_seconds": pa.array(batch.tool_seconds),
        "temperature": pa.array(batch.temperature, from_pandas=True),
        "carries": pa.array(batch.carries),
        **read.facts,
        **read.slices,
    }
    return pa.table(columns, schema=schema(tuple(read.slices)))


def decided(batch: TriageBatch, evidence: Evidence) -> dict[str, pa.Array]:
    """What follows from the stored values: verdict, bucket, citations, and whether the confidence can be used."""
    states = confidence_states(batch.confidence, batch.confidence_state == UNREADABLE)
    return {**adjudicate(evidence), "confidence_state": _coded(states, CONFIDENCE_STATES)}


def reread(samples: pa.Table, outputs: pa.Table, classes: Classes, answer: Callable[[str | None], int]) -> list[str]:
    """Where stored answers are not those of the stored words; a record that is not there has neither line nor words."""
    outputs = outputs.select(_OUTPUTS)
    words, lines = outputs.column("response").to_pylist(), outputs.column("line").to_pylist()
    errors = zip(outputs.column("error").to_pylist(), outputs.column("error_type").to_pylist(), strict=True)
    code_of = {word: answer(word) for word in set(words)}
    again = [
        MISSING if line is None else ERRORED if error or kind else code_of[word]
        for word, line, (error, kind) in zip(words, lines, errors, strict=True)
    ]
    problems = []
    if samples.column("answer").to_pylist() != [answers(classes)[code] for code in again]:
        problems.append("answer in samples.parquet is not what the words of the verdicts say")
    unreadable = [state == CONFIDENCE_STATES[UNREADABLE] for state in samples.column("confidence_state").to_pylist()]
    if outputs.column("confidence_text").is_valid().to_pylist() != unreadable:
        problems.append("confidence_state in samples.parquet is not what the texts of the confidences say")
    return problems


def restore(samples: pa.Table, classes: Classes) -> TriageBatch:
    """The batch as it was, from what is stored."""
    return TriageBatch(
        label=_codes(samples, "label", classes),
        answer=_codes(samples, "answer", answers(classes)),
        confidence=floats(samples, "confidence"),
        confidence_state=_codes(samples, "confidence_state", CONFIDENCE_STATES),
        times=np.stack([floats(samples, name) for name in TIMES]),
        cache=_codes(samples, "cache", CACHE_STATES),
        tool_count=samples.column("tool_count").to_numpy(),
        tool_seconds=floats(samples, "tool_seconds"),
        temperature=floats(samples, "temperature"),
        carries=samples.column("carries").to_numpy(),
    )


def _codes(samples: pa.Table, name: str, words: Sequence[str]) -> Codes:
    """A column of words as codes; a row without one of the declared words is a RunError."""
    codes = codes_of_words(samples, name, words)
    if (codes < 0).any():
        word = samples.column(name)[int(np.argmax(codes < 0))].as_py()
        raise RunError(f"samples.parquet: {name} holds {word!r}, expected one of {', '.join(words)}")
    return codes


def _coded(values: NDArray[Any], words: Sequence[str]) -> pa.DictionaryArray:
    return coded(values, words, np.int32)
