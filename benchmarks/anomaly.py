"""Precomputed scores of 100 flights × 60,000 samples × 7 attacks, with 2,000 flight resamples: time and memory.

AUROC and average precision must be those of scikit-learn, whose AUROC alone, 2,000 times over, is the baseline: it is
timed once and scaled. Exits with 1 when the statistics take more than the one sort they rest on, or over 4 GiB.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import adjudge
from adjudge.protocols.anomaly.plan import AnomalyPlan
from adjudge.protocols.anomaly.sorted_rows import SortedRows

RESAMPLES, EQUAL = 2000, 1e-9


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks anomaly")
    parser.add_argument("--flights", type=int, default=100)
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--attacks", type=int, default=7)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    chosen = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _judge(folder / "small", 4, 200, 2)  # libraries are loaded and loops compiled before the clock runs
        found = _judge(folder / "large", chosen.flights, chosen.samples, chosen.attacks)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        once, equal = _scikit_learn(folder / "large")
    sort, finish = found["sort"], found["finish"]
    print(f"{found['rows']:,} rows: {found['all'].wall:.1f} s from file to run, of which {finish.wall:.1f} s measure")
    print(f"sort once                {sort.wall:6.1f} s, {sort.cpu:6.1f} s of processor time")
    rest = Took(finish.wall - sort.wall, finish.cpu - sort.cpu)
    print(f"statistics after sorting {rest.wall:6.1f} s, {rest.cpu:6.1f} s of processor time")
    print(f"peak memory {peak:.2f} GiB (limit 4)")
    ratio = once * RESAMPLES / finish.cpu
    print(
        f"{ratio:,.0f}× less CPU than {RESAMPLES:,} × scikit-learn's AUROC; figures {'equal' if equal else 'DIFFERENT'}"
    )
    met = rest.cpu < sort.cpu and peak < 4
    if chosen.json is not None:
        document = {
            "rows": found["rows"],
            "cpu_seconds": finish.cpu,
            "sort_seconds": sort.cpu,
            "rest_seconds": rest.cpu,
        }
        document |= {"peak_mb": peak * 1024, "ratio": ratio, "equal": equal, "met": met}
        chosen.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0 if met and equal else 1


def _scikit_learn(folder: Path) -> tuple[float, bool]:
    """CPU seconds of one AUROC over the rows of test, and whether it and the average precision are those of the run."""
    from sklearn import metrics

    table = pq.read_table(folder / "scores.parquet", columns=["flight", "score", "label"])
    test = np.char.startswith(np.array(table.column("flight").unique().to_pylist()), "f")
    codes = table.column("flight").combine_chunks()
    rows = test[codes.indices.to_numpy()]
    score, label = (table.column(name).to_numpy()[rows] for name in ("score", "label"))
    start = time.process_time()
    auroc = metrics.roc_auc_score(label, score)
    took = time.process_time() - start
    theirs = {"auroc": auroc, "average_precision": metrics.average_precision_score(label, score)}
    ours = adjudge.load_run(folder / "run").estimates()
    return took, all(abs((ours[name, ""].value or 0.0) - value) < EQUAL for name, value in theirs.items())


class Took(NamedTuple):
    """Seconds on the clock, and of the processor, which other work on the machine does not lengthen."""

    wall: float
    cpu: float


def _judge(folder: Path, flights: int, samples: int, attacks: int) -> dict[str, Any]:
    folder.mkdir()
    rows = _write(folder, flights, samples, attacks)
    config = {"scores": str(folder / "scores.parquet"), "splits": str(folder / "splits.json"), "resamples": RESAMPLES}
    found: dict[str, Any] = {"rows": rows}
    with _timed(SortedRows, "of", "sort", found), _timed(AnomalyPlan, "finish", "finish", found):
        start = time.perf_counter(), time.process_time()
        adjudge.evaluate("anomaly", config, out=folder / "run")
        found["all"] = Took(time.perf_counter() - start[0], time.process_time() - start[1])
    return found


@contextmanager
def _timed(owner: type, name: str, label: str, found: dict[str, Any]) -> Iterator[None]:
    """Note what one call of a method takes while the block runs; a second call is an error."""
    kept = owner.__dict__[name]
    call = kept.__func__ if isinstance(kept, classmethod) else kept

    def timed(*given: Any) -> Any:
        if label in found:
            raise RuntimeError(f"{label} ran twice")
        start = time.perf_counter(), time.process_time()
        result = call(*given)
        found[label] = Took(time.perf_counter() - start[0], time.process_time() - start[1])
        return result

    setattr(owner, name, classmethod(timed) if isinstance(kept, classmethod) else timed)
    try:
        yield
    finally:
        setattr(owner, name, kept)


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
