"""What a second worker gains: flight S1 and consistency with one worker and with two, wall time.

`python -m benchmarks workers --records 2000000`: so many samples, and twice as many pairs, which are cheaper. The gain is held against that of two copies of a loop that does nothing
but compute, measured between: a machine whose cores share what they have gives no program twice the speed. The files of
both runs must be the same to the byte.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks._process import Cost, cost
from benchmarks._rows import Results, Row, markdown
from benchmarks.scaling import WHAT

RECORDS, LEAST = 2_000_000, 0.85
TIMES = {"flight S1": 1, "consistency": 2}
LOOP = "sum(i * i % 7 for i in range(40_000_000))"


def row(name: str, records: int, repeat: int) -> Row:
    """One worker, the loops, and two workers, by turns; the middle one of the turns counts."""
    unit, prepare = WHAT[name]
    ones: list[Cost] = []
    twos: list[Cost] = []
    loops: list[float] = []
    with tempfile.TemporaryDirectory(prefix="adjudge-workers-") as folder:
        command = prepare(Path(folder), records)
        for _ in range(repeat):
            ones.append(cost(command, codes=(0, 1)))
            first = _files(Path(folder) / "run")
            loops.append(min(2.0, 2 * _loop(1) / _loop(2)))  # more than twice is a neighbour's doing
            twos.append(cost([*command, "--workers", "2"], codes=(0, 1)))
            equal = _files(Path(folder) / "run") == first
    two = min(twos, key=lambda each: each.wall)
    gains = [one.wall / both.wall for one, both in zip(ones, twos, strict=True)]
    ratio = statistics.median(gain / loop for gain, loop in zip(gains, loops, strict=True))
    target = f"≥ {LEAST:g}× (ours {statistics.median(gains):.2f}, the loops {statistics.median(loops):.2f} times one)"
    return Row(
        f"{name}, a second worker",
        records,
        unit,
        two.cpu,
        two.peak_mb,
        "two loops",
        ratio,
        equal,
        target,
        ratio >= LEAST,
    )


def _files(run: Path) -> dict[str, str]:
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    return {file["path"]: file["sha256"] for file in manifest["files"]}


def _loop(copies: int) -> float:
    """Wall seconds of some loops at once."""
    start = time.perf_counter()
    for process in [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(copies)]:
        process.wait()
    return time.perf_counter() - start


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks workers", description=__doc__)
    parser.add_argument("what", nargs="*", metavar="WHAT", help="`flight S1`, `consistency`; both if none is named")
    parser.add_argument("--records", type=int, default=RECORDS, help="flight samples; there are twice as many pairs")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    given = parser.parse_args(argv)
    results = Results(tuple(row(name, TIMES[name] * given.records, given.repeat) for name in given.what or WHAT))
    print(markdown(results.rows))
    if given.json is not None:
        given.json.write_text(json.dumps(results.document(), indent=2) + "\n", encoding="utf-8")
    return 0 if results.good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
