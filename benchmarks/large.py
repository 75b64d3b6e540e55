"""One large run on two cores: 10,000,000 pairs of consistency, or 5,000,000 flight samples, under 2 GB.

`python -m benchmarks large [consistency|flight] --records N --folder DIR`. The file is written first (4.9 GB of pairs,
14.5 GB of samples), in DIR or under TMPDIR, and removed afterwards. The evaluation is one command with `--workers`;
what is bounded is the memory of all its processes together; the column shows that of the largest. Pairs are then counted by the
standard-library scorer that streams, whose figures must be ours.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks._process import Cost, cost
from benchmarks._rows import Results, Row, markdown
from benchmarks.consistency import alike, write_pairs
from benchmarks.flight import command

RECORDS = {"consistency": 10_000_000, "flight": 5_000_000}
BYTES = {"consistency": 1200, "flight": 4600}
"""Disk that a record takes: the files, what waits between reading and judging, and the run."""
MOST_MB = 2000
_PROGRAM = "from adjudge.cli.main import run; run()"


def consistency(folder: Path, pairs: int, workers: int) -> Row:
    """Pairs, against a scorer that streams."""
    path = folder / "pairs.jsonl"
    write_pairs(path, pairs, 0)
    words = ["consistency", "--pairs", str(path), "--out", str(folder / "run"), "--workers", str(workers)]
    ours = cost([sys.executable, "-c", _PROGRAM, *words, "--no-report", "--json"], codes=(0, 1))
    plain = [sys.executable, "-m", "benchmarks", "consistency", "--file", str(path), "--scorer", "streaming"]
    theirs = cost(plain)
    found, figures = json.loads(ours.said), json.loads(theirs.said)
    equal = found["n"] == pairs and alike(found, figures)
    ratio = theirs.cpu / ours.cpu
    return row(
        f"consistency, large, --workers {workers}", pairs, "pairs", ours, ("a scorer that streams", ratio), equal
    )


def flight(folder: Path, samples: int, workers: int) -> Row:
    """Samples of S1; every one of them must be in the run."""
    import adjudge

    step = [sys.executable, "-m", "benchmarks.flight"]
    subprocess.run([*step, "data", "S1", str(samples), str(folder)], check=True)
    words = command("S1", folder / "outputs-S1.jsonl", folder / "reference-S1.jsonl", folder / "run")
    ours = cost([*words, "--workers", str(workers)])
    equal = adjudge.load_run(folder / "run").metrics["buckets"]["all"]["n"] == samples
    return row(f"flight S1, large, --workers {workers}", samples, "samples", ours, (None, None), equal)


def row(name: str, size: int, unit: str, ours: Cost, other: tuple[str | None, float | None], equal: bool) -> Row:
    """The row of a large run; that a smaller one stays under the bound proves nothing."""
    most = ours.peak_mb if ours.together_mb is None else ours.together_mb
    held = most < MOST_MB
    met = None if held and size < min(RECORDS.values()) else held
    target = f"< {MOST_MB:,} MB, all processes together ({most:,.0f}; {ours.wall:,.0f} s of wall time)"
    return Row(name, size, unit, ours.cpu, ours.peak_mb, *other, equal, target, met)


WHAT: dict[str, Callable[[Path, int, int], Row]] = {"consistency": consistency, "flight": flight}


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks large", description=__doc__)
    parser.add_argument("what", nargs="?", choices=WHAT, default="consistency")
    parser.add_argument("--records", type=int, help="how many (10,000,000 pairs, 5,000,000 samples)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where the files are written [TMPDIR]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    given = parser.parse_args(argv)
    records = given.records or RECORDS[given.what]
    with tempfile.TemporaryDirectory(prefix="adjudge-large-", dir=given.folder) as name:
        free, needed = shutil.disk_usage(name).free, records * BYTES[given.what]
        if free < needed:
            parser.error(
                f"{name} has {free / 1e9:.1f} GB free, {needed / 1e9:.1f} GB are needed: name another --folder"
            )
        results = Results((WHAT[given.what](Path(name), records, given.workers),))
    print(markdown(results.rows))
    if given.json is not None:
        given.json.write_text(json.dumps(results.document(), indent=2) + "\n", encoding="utf-8")
    return 0 if results.good else 1
