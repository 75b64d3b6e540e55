"""Many models of few samples: `python -m benchmarks many_models [NAME …]` prints what a run of each protocol takes.

The example of each protocol that tells models apart, its answers under 10,000 names × 20 samples, on the default settings and without
a report: at most 30 s of CPU and 1.5 GB. gui, stability, anomaly and consistency's pairs judge one system a run.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from adjudge.protocols.base import protocol
from benchmarks.measure import ADJUDGE
from benchmarks.process import cost

MODELS, SAMPLES = 10_000, 20
MOST_CPU, MOST_MB = 30.0, 1500.0


def main(argv: Sequence[str]) -> int:
    """Print a row a protocol; 1 where one takes more than it may."""
    over = 0
    print(f"{MODELS:,} models × {SAMPLES} samples\n\n| protocol | CPU s | MB |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        for name in argv or list(FILES):
            folder = Path(place) / name
            folder.mkdir()
            words = FILES[name](folder, MODELS, SAMPLES)
            taken = cost([ADJUDGE, *words, "--out", str(folder / "run"), "--no-report", "--json"])
            over += taken.cpu > MOST_CPU or taken.peak_mb > MOST_MB
            print(f"| {name} | {taken.cpu:.1f} | {taken.peak_mb:,.0f} |", flush=True)
    return int(over > 0)


def _flight(folder: Path, models: int, samples: int) -> list[str]:
    config = _example("flight", folder)
    records = [record for path in config["outputs"] for record in _lines(path)[:samples]]
    reference = _lines(config["reference"][0])[:samples]
    outputs = _named(records, models, samples, "model")
    files = ("--outputs", _write(folder / "outputs.jsonl", outputs))
    return ["flight", "--task", "S1", *files, "--reference", _write(folder / "reference.jsonl", reference)]


def _triage(folder: Path, models: int, samples: int) -> list[str]:
    """The trials of one model are the pool: records of several systems are never one configuration."""
    config = _example("triage", folder)
    rows = [record for record in _lines(config["results"][0][0]) if not record["use_tools"]]
    ids = sorted({record["id"] for record in rows})[:samples]
    rows = sorted(
        (record for record in rows if record["id"] in ids), key=lambda record: (record["trial"], record["id"])
    )
    records = [{**record, "trial": 0} for record in rows]
    return ["triage", "--results", _write(folder / "r.jsonl", _named(records, models, samples, "model"))]


def _check(folder: Path, models: int, samples: int) -> list[str]:
    config = _example("check", folder)
    records = [record for path in config["outputs"] for record in _lines(path)[:samples]]
    reference = _lines(config["reference"][0])[:samples]
    files = ("--outputs", _write(folder / "outputs.jsonl", _named(records, models, samples, "model")))
    rules = ("--rules", config["rule_file"])
    return ["check", *files, "--reference", _write(folder / "reference.jsonl", reference), *rules]


def _score(folder: Path, models: int, samples: int) -> list[str]:
    records = [{"id": f"s{k % samples}", "score": (k * k // 7) % 2, "answer": f"a{k % 5}"} for k in range(5 * samples)]
    return ["score", _write(folder / "scores.jsonl", _named(records, models, samples, "model"))]


def _raters(folder: Path, models: int, samples: int) -> list[str]:
    records = [{"item": f"s{k % samples}", "label": "AB"[(k * k // 7) % 2]} for k in range(5 * samples)]
    files = ("--raters", _write(folder / "ratings.jsonl", _named(records, models, samples, "rater")))
    return ["consistency", *files, "--labels", "A,B"]


FILES: dict[str, Callable[[Path, int, int], list[str]]] = {
    "flight": _flight,
    "triage": _triage,
    "check": _check,
    "score": _score,
    "raters": _raters,
}
"""By protocol: writes its files and returns the command that judges them."""


def _example(name: str, folder: Path) -> dict[str, Any]:
    config = protocol(name).example(folder / "example", 3)
    assert config is not None
    return config


def _named(records: list[dict[str, Any]], models: int, samples: int, key: str) -> Iterator[dict[str, Any]]:
    """Every sample once under each name, each answer that of one of the example's models, so that no two names answer alike."""
    turns, rng = len(records) // samples, random.Random(1)  # noqa: S311 -- no secret
    for number in range(models):
        for sample in range(samples):
            yield {**records[rng.randrange(turns) * samples + sample], key: f"model-{number:05d}"}


def _lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def _write(path: Path, records: Iterable[dict[str, Any]]) -> str:
    """Line by line: what this process holds counts as memory of the commands that it starts."""
    with path.open("w") as stream:
        stream.writelines(json.dumps(record) + "\n" for record in records)
    return str(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
