"""partials.parquet: what a run keeps of each sequence when its scores are not kept (`--no-scores`)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.protocols.anomaly.decide import Decisions
from adjudge.protocols.anomaly.judgement import Judgement

FILE = "partials.parquet"


def write(judgements: Sequence[Judgement], path: Path) -> None:
    """A row a sequence: what it is, its counts at the threshold, and the digest by which its scores can be told."""
    tables = []
    for item in judgements:
        table, sequences = item.table, item.table.sequences
        columns: dict[str, pa.Array] = {
            "model": pa.array([item.name] * len(sequences), pa.string()),
            **{name: pa.array([getattr(s, name) for s in sequences], pa.string()) for name in ("flight", "split")},
            "attack": pa.array([s.attack for s in sequences], pa.string()),
            "magnitude": pa.array([s.magnitude for s in sequences], pa.float64()),
            "seed": pa.array([s.seed for s in sequences], pa.int64()),
            "rows": pa.array(np.diff(table.edges), pa.int64()),
        }
        for part in fields(Decisions):
            columns[part.name] = pa.array(getattr(item.decisions, part.name), from_pandas=True)
        columns["scores_sha256"] = pa.array(
            [
                hashlib.sha256(np.ascontiguousarray(table.score[table.rows(i)], dtype="<f8").tobytes()).hexdigest()
                for i in range(len(sequences))
            ]
        )
        tables.append(pa.table(columns))
    pq.write_table(pa.concat_tables(tables), path, compression="zstd")
