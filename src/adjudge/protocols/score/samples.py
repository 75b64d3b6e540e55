"""samples.parquet of `score`: what is stored of an attempt, and the batch restored from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.evidence.table import without_nan
from adjudge.protocols.common.columns import WORD, coded, codes, floats, one_array
from adjudge.protocols.score.batch import Codes, Rows, ScoreBatch, column_of, sample_names
from adjudge.readers.logs.record import ERRORED, KINDS, NUMBER, SCORED, STATUSES, UNPARSED, content_hash

LONGEST_TARGET = 200
DATASET_COLUMNS = ("input_hash", "target")
_OBJECTS = msgspec.json.Decoder(dict[str, Any])
_OUTPUTS = ("response", "target", "explanation", "error", "meta", "file", "line")
"""What a run must have kept of an attempt beside its sample."""


def batch_of(rows: Rows, checks: int, *, decided: bool) -> ScoreBatch:
    """What the rules read of some rows; `decided`: with the verdicts of the log."""
    table = rows.table
    status = table.column("status").to_numpy().astype(np.int8)
    score = np.where(status == SCORED, _numbers(column_of(table, "score")), np.nan)
    success = _said(column_of(table, "success"))
    odd = np.flatnonzero((status == ERRORED) | (status == UNPARSED))
    errors = column_of(table, "error").take(pa.array(odd)).to_pylist()
    success = np.where(decided & (status == SCORED), success, np.int8(-1))
    return ScoreBatch(
        status=status,
        score=score,
        threshold=np.where(success < 0, rows.thresholds, np.nan),
        checks=_stacked([_numbers(column_of(table, f"check_{place}")) for place in range(checks)], status.size),
        passed=_flags([column_of(table, f"check_{place}_passed") for place in range(checks)], status.size),
        success=success,
        errors={
            row: (text or "the record has no score and says no reason")[:200]
            for row, text in zip(odd.tolist(), errors, strict=True)
        },
    )


def table_of(
    rows: Rows, batch: ScoreBatch, decided: Mapping[str, pa.Array], checks: Sequence[str], slices: Sequence[str]
) -> pa.Table:
    """The rows of one batch."""
    table = rows.table
    items, trials = table.column("key"), table.column("trial").to_numpy()
    kind = table.column("kind").to_numpy()
    return pa.table(
        {
            "sample": sample_names(items, trials),
            "model": sorted_words(table.column("model")),
            **decided,
            "item": one_array(items),
            "task": sorted_words(table.column("task")),
            "trial": pa.array(trials),
            "status": coded(batch.status, STATUSES),
            "score": without_nan(batch.score),
            "kind": coded(kind, KINDS),
            "reported": without_nan(_numbers(column_of(table, "reported"))),
            "threshold": without_nan(batch.threshold),
            "success": pa.array(batch.success == 1, mask=batch.success < 0),
            "confidence": column_of(table, "confidence"),
            "cluster": _clusters(rows),
            "input_hash": column_of(table, "input_hash"),
            "target": _targets(column_of(table, "target")),
            **{name: column_of(table, name) for name in ("cached", "named", "truth")},
            **{f"check.{name}": without_nan(batch.checks[place]) for place, name in enumerate(checks)},
            **{
                f"check.{name}.passed": pa.array(passed == 1, mask=passed < 0)
                for name, passed in zip(checks, batch.passed, strict=True)
            },
            **_slices(column_of(table, "meta"), slices),
        }
    )


def outputs_of(rows: Rows, files: tuple[str, ...]) -> pa.Table:
    """What the log says beside the number, for `explain`."""
    table = rows.table
    return pa.table(
        {
            "response": column_of(table, "answer"),
            **{name: column_of(table, name) for name in ("target", "input", "explanation", "error", "meta")},
            **{name: column_of(table, name) for name in ("cache_read", "cache_write")},
            "file": pa.DictionaryArray.from_arrays(column_of(table, "file"), pa.array(files, pa.string())),
            "line": column_of(table, "line"),
        }
    )


def reread(samples: pa.Table, outputs: pa.Table, slices: Sequence[str]) -> list[str]:
    """Where stored targets and slices are not those that stand beside the answers."""
    outputs = outputs.select(_OUTPUTS)
    again = {"target": _targets(outputs.column("target").combine_chunks())}
    again |= _slices(outputs.column("meta").combine_chunks(), slices)
    return [
        f"{name} in samples.parquet is not what stands beside the answers"
        for name, values in again.items()
        if samples.column(name).to_pylist() != values.to_pylist()
    ]


def threshold_problems(samples: pa.Table, pass_at: float | None, *, decided: bool) -> list[str]:
    """Where thresholds are not those of the configuration: the one it names, else 1 or, of graded scores, none.

    Verdicts of a log stand in their place only where it is `decided` that they count.
    """
    if not decided and (success_of(samples) >= 0).any():
        return ["samples.parquet: success holds verdicts of a log, of which the configuration knows nothing"]
    bound, score = floats(samples, "threshold"), floats(samples, "score")
    if pass_at is None:
        number = pc.equal(samples.column("kind").cast(pa.string()), KINDS[NUMBER]).fill_null(False).to_numpy()
        graded = number & ~np.isnan(score) & (score != 0.0) & (score != 1.0)
        right = np.isnan(bound) | ((bound == 1.0) & ~graded)
    else:
        right = bound == pass_at
    return [] if right.all() else ["samples.parquet: threshold is not what the configuration gives"]


def restore(samples: pa.Table, checks: Sequence[str]) -> ScoreBatch:
    """The batch as it was, from what is stored."""
    n = samples.num_rows
    return ScoreBatch(
        status=codes(samples, "status", STATUSES),
        score=floats(samples, "score"),
        threshold=floats(samples, "threshold"),
        checks=_stacked([floats(samples, f"check.{name}") for name in checks], n),
        passed=_flags([samples.column(f"check.{name}.passed").combine_chunks() for name in checks], n),
        success=success_of(samples),
    )


def success_of(samples: pa.Table) -> Codes:
    """The verdicts of the log that were taken, −1 for none; runs of earlier versions have none."""
    if "success" not in samples.column_names:
        return np.full(samples.num_rows, -1, dtype=np.int8)
    return _said(samples.column("success").combine_chunks())


def sorted_words(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """A dictionary column with the words that are used, sorted, so that equal values give equal bytes."""
    array = one_array(column).dictionary_encode()
    words = array.dictionary.to_pylist()
    used = sorted({words[place] for place in np.flatnonzero(np.bincount(array.indices.drop_null())).tolist()})
    where = {word: place for place, word in enumerate(used)}
    translate = np.array([where.get(word, -1) for word in words] + [-1], dtype=np.int32)
    rows = translate[array.indices.fill_null(len(words)).to_numpy()]
    return pa.DictionaryArray.from_arrays(pa.array(rows, mask=rows < 0), pa.array(used, pa.string()))


def _clusters(rows: Rows) -> pa.Array:
    """What attempts are clustered by: the log's own cluster, or the item where anything was tried several times."""
    clusters = column_of(rows.table, "cluster")
    if not rows.clustered:
        return clusters.cast(pa.string())
    return pc.coalesce(clusters.cast(pa.string()), rows.table.column("key").combine_chunks())


def _targets(column: pa.Array) -> pa.Array:
    """Targets as they are where they are short; a long one by its beginning and digest."""
    if column.null_count == len(column) or pc.max(pc.utf8_length(column)).as_py() <= LONGEST_TARGET:
        return column
    texts = (
        text if text is None or len(text) <= LONGEST_TARGET else f"{text[:80]}… {content_hash(text)}"
        for text in column.to_pylist()
    )
    return pa.array(texts, pa.string())


def _slices(meta: pa.Array, names: Sequence[str]) -> dict[str, pa.Array]:
    if not names:
        return {}
    values = [{} if text is None else _decoded(text) for text in meta.to_pylist()]
    columns = {}
    for name in names:
        key = name.removeprefix("meta.")
        words = [None if value.get(key) is None else str(value[key]) for value in values]
        columns[f"meta.{key}"] = sorted_words(pa.chunked_array([pa.array(words, pa.string())])).cast(WORD)
    return columns


def _decoded(text: str) -> dict[str, Any]:
    try:
        return _OBJECTS.decode(text)
    except msgspec.DecodeError:
        return {}


def _numbers(column: pa.Array) -> Any:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _flags(columns: Sequence[pa.Array], n: int) -> Any:
    return _stacked([_said(column) for column in columns], n).astype(np.int8)


def _said(column: pa.Array) -> Codes:
    """1 for yes, 0 for no, −1 for nothing."""
    codes: Codes = column.cast(pa.int8()).fill_null(-1).to_numpy(zero_copy_only=False)
    return codes


def _stacked(columns: Sequence[Any], n: int) -> Any:
    return np.stack(columns) if columns else np.zeros((0, n))
