"""samples.parquet of the triage protocol: what is stored of a record, the verdict on it, and the batch restored from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import RunError
from adjudge.evidence.citations import citation_column
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, FAIL, PASS
from adjudge.protocols.triage.batch import (
    CACHE_STATES,
    CONFIDENCE_STATES,
    TIMES,
    Codes,
    Floats,
    TriageBatch,
    confidence_states,
)
from adjudge.protocols.triage.columns import ReadBatch
from adjudge.protocols.triage.rules import CHAIN
from adjudge.protocols.triage.words import UNCERTAIN, Classes

VERDICTS = ("right", "missing", "errored", "unparsed", "abstained", "wrong")
_WORD = pa.dictionary(pa.int32(), pa.string())
_BUCKET = np.array(
    [BUCKETS.index(name) for name in ("passed", "missing", "errored", "unparsed", "abstained", "failed")]
)


def answers(classes: Classes) -> tuple[str, ...]:
    """What can have been received, in the order of the codes of `batch`."""
    return (*classes, UNCERTAIN, "error", "unparsed", "missing")


def schema(slices: Sequence[str]) -> pa.Schema:
    """The columns, without the partition and row that the writer adds."""
    return pa.schema(
        [
            ("sample", pa.string()),
            ("model", _WORD),
            ("configuration", _WORD),
            ("trial", pa.int32()),
            ("label", _WORD),
            ("answer", _WORD),
            ("bucket", _WORD),
            ("verdict", _WORD),
            ("cites", pa.binary()),
            ("confidence", pa.float64()),
            ("confidence_state", _WORD),
            *((name, pa.float64()) for name in TIMES),
            ("cache", _WORD),
            ("tool_count", pa.int32()),
            ("tool_seconds", pa.float64()),
            ("temperature", pa.float64()),
            ("carries", pa.uint8()),
            ("prompts", _WORD),
            ("models", _WORD),
            *((name, _WORD) for name in slices),
        ]
    )


@dataclass
class Verdicts:
    """The verdict on every record, as an index into VERDICTS, and the atoms it cites."""

    verdict: Codes
    cites: pa.Array


def adjudicate(evidence: Evidence) -> Verdicts:
    """The first link of the chain that failed decides and is cited; where none did, the record is right and cites all."""
    chain = evidence.layout.positions_of(*CHAIN)
    outcome = evidence.outcome[chain]
    failed = outcome == FAIL
    right = (outcome == PASS).all(axis=0)
    undecided = ~(right | failed.any(axis=0))
    if undecided.any():
        raise RunError(f"{int(undecided.sum())} records have no verdict: a rule of the chain could not be applied")
    verdict = np.where(right, 0, failed.argmax(axis=0) + 1).astype(np.int8)
    cites = np.zeros((evidence.layout.width, len(VERDICTS)), dtype=bool)
    cites[chain, 0] = True
    cites[chain, np.arange(1, len(VERDICTS))] = True
    return Verdicts(verdict, citation_column(np.packbits(cites, axis=0, bitorder="little")[:, verdict]))


def table(read: ReadBatch, verdicts: Verdicts, classes: Classes, slices: Sequence[str]) -> pa.Table:
    """The rows of one batch."""
    batch = read.batch
    return pa.Table.from_arrays(
        [
            read.samples,
            read.groups.column(),
            read.configurations().column(),
            pa.array(read.trials()),
            _coded(batch.label, classes),
            _coded(batch.answer, answers(classes)),
            _coded(_BUCKET[verdicts.verdict], BUCKETS),
            _coded(verdicts.verdict, VERDICTS),
            verdicts.cites,
            pa.array(batch.confidence, from_pandas=True),
            _coded(batch.confidence_state, CONFIDENCE_STATES),
            *(pa.array(column, from_pandas=True) for column in batch.times),
            _coded(batch.cache, CACHE_STATES),
            pa.array(batch.tool_count),
            pa.array(batch.tool_seconds),
            pa.array(batch.temperature, from_pandas=True),
            pa.array(batch.carries),
            read.prompts,
            read.models,
            *read.slices,
        ],
        schema=schema(slices),
    )


def restore(samples: pa.Table, classes: Classes) -> TriageBatch:
    """The batch as it was, from what is stored."""
    state = codes(samples, "confidence_state", CONFIDENCE_STATES)
    return TriageBatch(
        label=codes(samples, "label", classes),
        answer=codes(samples, "answer", answers(classes)),
        confidence=floats(samples, "confidence"),
        confidence_state=state,
        times=np.stack([floats(samples, name) for name in TIMES]),
        cache=codes(samples, "cache", CACHE_STATES),
        tool_count=samples.column("tool_count").to_numpy(),
        tool_seconds=floats(samples, "tool_seconds"),
        temperature=floats(samples, "temperature"),
        carries=samples.column("carries").to_numpy(),
    )


def differences(samples: pa.Table, batch: TriageBatch, verdicts: Verdicts) -> list[str]:
    """Where stored verdicts, citations, buckets or states are not what follows from the stored values."""
    unreadable = batch.confidence_state == CONFIDENCE_STATES.index("unreadable")
    groups = [
        f"{configuration}|{trial}"
        for configuration, trial in zip(
            samples.column("configuration").to_pylist(), samples.column("trial").to_pylist(), strict=True
        )
    ]
    expected: dict[str, Any] = {
        "model": pa.array(groups),
        "bucket": _coded(_BUCKET[verdicts.verdict], BUCKETS),
        "verdict": _coded(verdicts.verdict, VERDICTS),
        "cites": verdicts.cites,
        "confidence_state": _coded(confidence_states(batch.confidence, unreadable), CONFIDENCE_STATES),
    }
    return [
        f"samples.parquet: {name} is not what the evidence gives"
        for name, values in expected.items()
        if samples.column(name).to_pylist() != values.to_pylist()
    ]


def codes(samples: pa.Table, name: str, words: Sequence[str]) -> Codes:
    """A dictionary column as codes of the declared words; another word is a RunError."""
    column = samples.column(name).combine_chunks()
    where = {word: index for index, word in enumerate(words)}
    try:
        translate = np.array([where[word] for word in column.dictionary.to_pylist()], dtype=np.int8)
    except KeyError as error:
        raise RunError(f"samples.parquet: {name} holds {error.args[0]!r}, expected one of {', '.join(words)}") from None
    if column.null_count:
        raise RunError(f"samples.parquet: {name} has rows without a value")
    found: Codes = translate[column.indices.to_numpy()]
    return found


def floats(samples: pa.Table, name: str) -> Floats:
    """A column of numbers, NaN where there is none."""
    return np.asarray(samples.column(name).to_numpy(), dtype=np.float64)


def _coded(values: NDArray[Any], words: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(values.astype(np.int32)), pa.array(list(words), pa.string()))
