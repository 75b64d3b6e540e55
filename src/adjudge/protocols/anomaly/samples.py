"""What a run keeps: scores.parquet (or partials in its place), and a row of samples.parquet for every sequence of test."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import fields
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adjudge.evidence.atoms import pack_citations
from adjudge.evidence.graph import VerifierGraph
from adjudge.evidence.vocabulary import FAIL, NOT_APPLICABLE
from adjudge.protocols.anomaly import batch
from adjudge.protocols.anomaly.batch import ContractBatch, ScoreTable
from adjudge.protocols.anomaly.judge import Decisions, Judgement, Scoring
from adjudge.protocols.base import Judged
from adjudge.protocols.common.columns import WORD

SCORES, PARTIALS = "scores.parquet", "partials.parquet"
_ROWS = 1 << 20
_ITEM = {
    **dict.fromkeys(("flight", "split", "attack", "condition"), WORD),
    "magnitude": pa.float64(),
    **dict.fromkeys(("seed", "variant"), pa.int64()),
}
_SCHEMA = pa.schema(
    [
        *dict.fromkeys(("model", "fold"), WORD).items(),
        *_ITEM.items(),
        *(("t", pa.float64()), ("score", pa.float64()), ("label", pa.int8())),
    ]
)
_COUNTED = ("tp", "fp", "fn", "tn", "attacked", "detected")
_ALARMS = ("windows", "windows_detected", "events", "true_events", "hours")


def write_scores(judgements: Iterable[Scoring], path: Path) -> None:
    """scores.parquet: every row with its detector, fold and sequence."""
    parts = ((each.name, *part) for each in judgements for part in ((None, each.table), *each.folds))
    with pq.ParquetWriter(path, _SCHEMA, compression="zstd", compression_level=1) as writer:
        for model, fold, table in parts:
            items = table.sequences
            columns = {
                name: pa.array([word] * len(items), pa.string()) for name, word in (("model", model), ("fold", fold))
            }
            columns |= _columns(items)
            code = np.repeat(np.arange(len(items), dtype=np.int32), np.diff(table.edges))
            for start in range(0, code.size, _ROWS):
                rows = slice(start, min(start + _ROWS, code.size))
                places = pa.array(code[rows])
                arrays = [values.take(places).cast(_SCHEMA.field(name).type) for name, values in columns.items()]
                arrays += [pa.array(values[rows]) for values in (table.time, table.score, table.label)]
                writer.write_table(pa.Table.from_arrays(arrays, schema=_SCHEMA))


def load_scores(path: Path) -> dict[str, dict[str | None, ScoreTable]]:
    """The tables that a run holds of each detector in their order: by fold, that over the splits under None."""
    table = pq.read_table(path)
    time, score, label = (np.asarray(table.column(name).to_numpy()) for name in ("t", "score", "label"))
    changed = np.zeros(table.num_rows, dtype=bool)
    for name in ("model", "fold", *_ITEM):
        changed |= _changes(table.column(name))
    begin = np.flatnonzero(changed)
    first = table.drop_columns(["t", "score", "label"]).take(pa.array(begin)).to_pylist()
    tables: dict[str, dict[str | None, ScoreTable]] = {}
    edges, end = np.append(begin, time.size), 0
    for (model, fold), sequences in groupby(first, key=itemgetter("model", "fold")):
        items = [batch.Sequence(**{name: row[name] for name in _ITEM}) for row in sequences]
        start, end = end, end + len(items)
        rows, own_edges = slice(int(edges[start]), int(edges[end])), edges[start : end + 1] - edges[start]
        part = ScoreTable(items, own_edges, time[rows], score[rows], label[rows], [])
        tables.setdefault(model, {})[fold] = part
    return tables


def write_partials(judgements: Sequence[Judgement], path: Path) -> None:
    """A row a sequence: what it is, its counts at the threshold, and the digest by which its scores can be told."""
    tables = []
    for judged in judgements:
        table, items = judged.table, judged.table.sequences
        columns = {"model": pa.array([judged.name] * len(items), pa.string()), **_columns(items)}
        columns["rows"] = pa.array(np.diff(table.edges), pa.int64())
        for part in fields(Decisions):
            if part.name != "stretches":
                columns[part.name] = pa.array(getattr(judged.decisions, part.name), from_pandas=True)
        scores = (np.ascontiguousarray(table.score[table.rows(i)], dtype="<f8") for i in range(len(items)))
        columns["scores_sha256"] = pa.array([hashlib.sha256(values.tobytes()).hexdigest() for values in scores])
        tables.append(pa.table(columns))
    pq.write_table(pa.concat_tables(tables), path, compression="zstd")


def judged_samples(judgements: Sequence[Judgement], graph: VerifierGraph) -> Judged:
    """All sequences of test with their evidence, those of one sequence side by side by detector."""
    sizes = [judged.test.size for judged in judgements]
    # Detectors run over the same sequences, so the place in the run's order is the place in each table.
    place = np.concatenate([np.arange(size) for size in sizes])
    every_model = np.repeat(np.arange(len(judgements)), sizes)
    order = np.lexsort((every_model, place))
    model = every_model[order]
    parts = [judged.decisions.take(judged.test) for judged in judgements]

    def column(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])[order]

    def words(values: Iterable[Any]) -> pa.Array:
        return pa.array(values, pa.string()).cast(WORD)

    contract = ContractBatch(
        n=int(order.size),
        checks=[judged.checks for judged in judgements],
        model=model,
        broken=np.array([judged.broken for judged in judgements])[model],
        attacked=column("attacked"),
        detected=column("detected"),
        latency=column("latency_ms"),
        events=column("events").astype(np.float64),
    )
    evidence = graph.evaluate(contract)
    detections = evidence.layout.positions_of("detection")
    cites = evidence.outcome == FAIL
    cites[detections] = evidence.outcome[detections] != NOT_APPLICABLE
    items = [judgements[m].table.sequences[judgements[m].test[k]] for m, k in zip(model, place[order], strict=True)]
    described = _columns(items)
    buckets = [name for judged in judgements for name in judged.bucket_names()]
    verdicts = [name for judged in judgements for name in judged.verdicts()]
    samples = pa.table(
        {
            "sample": pa.array([item.id for item in items], pa.string()),
            "model": words([judgements[m].name for m in model]),
            "bucket": words([buckets[k] for k in order]),
            "verdict": words([verdicts[k] for k in order]),
            "cites": pack_citations(cites),
            **{name: described[name].cast(_ITEM[name]) for name in ("flight", "attack", "magnitude", "seed")},
            **{name: pa.array(column(name)) for name in _COUNTED},
            "latency_ms": pa.array(contract.latency, from_pandas=True),
            **{name: pa.array(column(name)) for name in _ALARMS},
        }
    )
    return Judged(samples, evidence, pa.table({"response": alarms_in_words(samples)}), contract)


def alarms_in_words(samples: pa.Table) -> pa.StringArray:
    """How many alarms each sequence has, as a run stores it for those who open a sample."""
    return pa.array([f"{count:g} alarms" for count in samples.column("events").to_pylist()], pa.string())


def _columns(items: Sequence[batch.Sequence]) -> dict[str, pa.Array]:
    """What the sequences are, a column an attribute, words as plain text."""
    plain = {name: pa.string() if kind == WORD else kind for name, kind in _ITEM.items()}
    return {name: pa.array([getattr(item, name) for item in items], kind) for name, kind in plain.items()}


def _changes(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Where a value is not that of the row before."""
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries().combine_chunks().indices
    return batch.changes(column.cast(pa.float64()).fill_null(-1.0).to_numpy())
