"""Attacked flights as one Parquet file, for detectors that run elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from adjudge.errors import InputError, OutputError
from adjudge.protocols.anomaly.attacks import inject
from adjudge.protocols.anomaly.catalog import Attack
from adjudge.protocols.anomaly.flights import Flight


def write_attacked(flights: Sequence[Flight], attacks: Sequence[Attack], path: Path, *, force: bool = False) -> int:
    """Every attack on every flight, one sequence after the other, with label, attack, magnitude and seed."""
    if path.exists() and not force:
        raise OutputError(f"{path} exists already; choose another --output, or --force to replace it")
    if not flights or not attacks:
        raise InputError("there is no flight to attack" if attacks else "the catalog holds no attack")
    names = list(flights[0].columns)
    kinds = {"flight": pa.string(), "t": pa.float64(), **dict.fromkeys(names, pa.float64())}
    kinds |= {"label": pa.int8(), "attack": pa.string(), "magnitude": pa.float64(), "seed": pa.int64()}
    schema = pa.schema(list(kinds.items()))
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for attack in attacks:
            for flight in flights:
                done = inject(flight, attack)
                n = flight.n
                columns = {
                    **{name: pa.array(done.flight.columns[name]) for name in names},
                    "flight": pa.array([flight.id] * n),
                    "t": pa.array(flight.time),
                    "label": pa.array(done.label.astype("int8")),
                    "attack": pa.array([attack.name] * n),
                    "magnitude": pa.array([attack.magnitude] * n, pa.float64()),
                    "seed": pa.array([attack.seed] * n, pa.int64()),
                }
                writer.write_table(pa.table({name: columns[name] for name in kinds}, schema=schema))
                count += 1
    return count
