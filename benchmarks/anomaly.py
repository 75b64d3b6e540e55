"""Precomputed scores of 100 flights × 60,000 samples × 7 attacks, with 2,000 flight resamples: time and memory."""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import adjudge


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks anomaly")
    parser.add_argument("--flights", type=int, default=100)
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--attacks", type=int, default=7)
    chosen = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = _write(folder, chosen.flights, chosen.samples, chosen.attacks)
        config = {"scores": str(folder / "scores.parquet"), "splits": str(folder / "splits.json"), "resamples": 2000}
        start = time.perf_counter()
        run = adjudge.evaluate("anomaly", config, out=folder / "run")
        took = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        scores = pq.read_table(folder / "run" / "scores.parquet", columns=["score"]).column(0).to_numpy()
        start = time.perf_counter()
        np.argsort(scores)
        sort = time.perf_counter() - start
    print(f"{rows:,} rows: {took:.1f} s, peak {peak:.2f} GiB; one sort of the scores {sort:.1f} s")
    print(f"judge {run.manifest.timings['judge']:.1f} s, measure {run.manifest.timings['measure']:.1f} s")
    return 0


def _write(folder: Path, flights: int, samples: int, attacks: int) -> int:
    random = np.random.default_rng(0)
    words = pa.dictionary(pa.int32(), pa.string())
    kinds = [("flight", words), ("attack", words), ("t", pa.float64()), ("score", pa.float64()), ("label", pa.bool_())]
    schema = pa.schema(kinds)
    tests = [f"f{index:03d}" for index in range(flights)]
    sequences: list[tuple[str, str | None]] = [("v0", None), ("v1", None)]
    sequences += [(name, f"attack{k}" if k else None) for k in range(attacks) for name in tests]
    rows = 0
    with pq.ParquetWriter(folder / "scores.parquet", schema, compression="zstd") as writer:
        for name, attack in sequences:
            label = np.zeros(samples, dtype=bool)
            if attack is not None:
                label[samples // 2 : samples * 3 // 4] = True
            score = random.normal(size=samples) + random.normal(0, 0.3) + 1.5 * label
            columns = [
                pa.array([name] * samples).cast(words),
                pa.array([attack] * samples, pa.string()).cast(words),
                pa.array(np.arange(samples) / 100.0),
                pa.array(score),
                pa.array(label),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
            rows += samples
    splits = {"train_flights": ["t0"], "val_flights": ["v0", "v1"], "test_flights": tests}
    (folder / "splits.json").write_text(json.dumps(splits), encoding="utf-8")
    return rows
