"""Triage: rows like DF3's real records (about 1.3 KB) to a whole run, against a plain scorer; and AURC alone.

Every measurement is a process of its own, in seconds of CPU, user and system, imports included. Both are timed
by turns, `--repeat` times: the least of each is shown, and the ratio is the middle one of the turns. The figures of both must be equal. `python -m benchmarks triage` exits with 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROWS = 2_000_000
LEAST_RATIO, MOST_MEGABYTES, MOST_AURC_SECONDS = 5.0, 1000.0, 2.0
_WORDS = [
    "lighting",
    "shadows",
    "reflections",
    "texture",
    "edges",
    "background",
    "gradient",
    "skin",
    "hair",
    "fabric",
    "compression",
    "noise",
    "pattern",
    "symmetry",
    "consistent",
    "plausible",
    "natural",
    "warped",
    "smooth",
    "regular",
    "unusual",
    "subtle",
    "coherent",
    "physical",
    "camera",
    "lens",
    "depth",
    "blur",
    "artefact",
]


def write(path: Path, rows: int, seed: int = 0) -> None:
    """Records of one model without tools, one trial, ids in no order."""
    random = np.random.default_rng(seed)
    hashes = {
        name: f"{index:064x}"
        for index, name in enumerate(("vision_system", "vision_user", "agent_system", "agent_user"), 7)
    }
    # Three in five real rationales have a typographic quote or dash, written as such.
    endings = ["it can’t be confirmed", "“natural” at this size", "plausible — not certain", "no sign of it", "no more"]
    texts = [
        json.dumps(
            f"The image shows {', '.join(random.choice(_WORDS, 42).tolist())}; {endings[k % 5]}.", ensure_ascii=False
        )
        for k in range(2000)
    ]
    tail = json.dumps({"prompt_hashes": hashes, "tool_usage": [], "tool_details": [], "tool_results": []})[1:-1]
    order = random.permutation(rows)
    with path.open("w", encoding="utf-8") as stream:
        for start in range(0, rows, 100_000):
            n = min(100_000, rows - start)
            fake = random.random(n) < 0.5
            seen = np.where(fake, 1.0, -1.0) * random.gamma(2.0, 0.6, n) + random.normal(size=n)
            confidence = np.round(1.0 / (1.0 + np.exp(-1.8 * np.abs(seen))), 2)
            vision = random.gamma(4.0, 0.9, n)
            which, failed = random.integers(0, len(texts), n), random.random(n) < 0.002
            for i in range(n):
                name = f"sample-{order[start + i]:07d}"
                word = "uncertain" if abs(seen[i]) < 0.5 else "fake" if seen[i] > 0 else "real"
                said = (
                    '"error": "request timed out", "error_type": "TimeoutError"'
                    if failed[i]
                    else f'"prediction": "{word}", "analysis_verdict": "{word}", "parsed_verdict": "{word}", "confidence": {confidence[i]}'
                )
                stream.write(
                    f'{{"id": "{name}", "model": "bench-1", "use_tools": false, "trial": 0, "label": '
                    f'"{"fake" if fake[i] else "real"}", "image": "{name}.jpeg", "meta": {{}}, "run_config": '
                    f'{{"temperature": 0.0, "max_iterations": 15, "reasoning_effort": "high"}}, {said}, "rationale": '
                    f'{texts[which[i]]}, {tail}, "cache": {{"hit": {"true" if i % 4 == 0 else "false"}}}, "timings": '
                    f'{{"vision_llm_seconds": {vision[i]}, "total_seconds": {vision[i] + 0.00005}}}, "latency_seconds": '
                    f"{vision[i] + 0.012}}}\n"
                )
        stream.flush()
        os.fsync(stream.fileno())  # or the system would still be writing while we measure


def _adjudge(path: str, out: str) -> dict[str, Any]:
    from adjudge.engine.process import keep_memory

    from adjudge.engine.evaluate import Options, evaluate
    from adjudge.protocols.base import protocol
    from adjudge.runs.run import Run

    keep_memory()  # as the command does
    run = Run(evaluate(protocol("triage"), {"results": [path]}, Options(out=Path(out))))
    block: dict[str, Any] = run.metrics["configurations"]["bench-1|no-tools"]
    return block


def _plain(path: str, out: str) -> dict[str, Any]:
    from benchmarks.triage_stdlib import score

    del out
    return score(Path(path))["bench-1|no-tools|0"]


def _measured(work: Callable[[str, str], dict[str, Any]], path: Path, out: Path) -> tuple[dict[str, Any], float, float]:
    """The result, CPU seconds and peak megabytes of some work in a process of its own."""
    receive, send = multiprocessing.get_context("spawn").Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=_child, args=(work, str(path), str(out), send))
    process.start()
    result: tuple[dict[str, Any], float, float] = receive.recv()
    process.join()
    return result


def _child(work: Callable[[str, str], dict[str, Any]], path: str, out: str, send: Any) -> None:
    start = time.process_time()
    found = work(path, out)
    used = resource.getrusage(resource.RUSAGE_SELF)
    send.send((found, time.process_time() - start, used.ru_maxrss / 1024))


def _same(block: dict[str, Any], plain: dict[str, Any]) -> None:
    trial = block["per_trial"]["0"]
    for name, value in plain.items():
        if name == "latency":
            for place, times in value.items():
                state, _, stage = place.partition("/")
                ours = block["latency"]["by_cache"][state][stage]
                assert all(ours[key] == number for key, number in times.items() if key != "mean"), place
                assert math.isclose(ours["mean"], times["mean"], rel_tol=1e-14), place
        elif name == "carried":
            carried = block["provenance"]["carried"]
            assert carried == {key: value.get(key, 0) for key in carried}
        elif name == "possibly_cached":
            assert block["latency"][name] == value
        else:
            assert math.isclose(trial[name], value, rel_tol=1e-9), (name, trial[name], value)


def _turns(path: Path, out: Path, repeat: int) -> tuple[list[Any], list[Any]]:
    """What ours and the plain scorer found and took, by turns."""
    ours, theirs = [], []
    for _ in range(repeat):
        shutil.rmtree(out, ignore_errors=True)
        ours.append(_measured(_adjudge, path, out))
        theirs.append(_measured(_plain, path, out))
    return ours, theirs


def _aurc_seconds(rows: int, repeat: int) -> float:
    from adjudge.stats.selective import areas

    random = np.random.default_rng(1)
    confidence, right = random.random(rows), random.random(rows) < 0.8
    least = math.inf
    for _ in range(repeat):
        start = time.process_time()
        areas(confidence, right)
        least = min(least, time.process_time() - start)
    return least


def main(argv: list[str] | None = None) -> int:
    """Run, print the table and what each target reached."""
    parser = argparse.ArgumentParser(prog="benchmarks triage", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--folder", type=Path, help="keep the data here between runs")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    options = parser.parse_args(argv)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="adjudge-triage-"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"results-{options.rows}.jsonl"
    if not path.exists():
        write(path, options.rows)
    print(f"{options.rows:,} rows of {path.stat().st_size / options.rows:,.0f} bytes")
    ours, theirs = _turns(path, folder / "run", options.repeat)
    _same(ours[-1][0], theirs[-1][0])
    (cpu, memory), (plain_cpu, plain_memory) = (
        (min(cpu for _, cpu, _ in turns), max(memory for *_, memory in turns)) for turns in (ours, theirs)
    )
    ratio = statistics.median(other[1] / own[1] for own, other in zip(ours, theirs, strict=True))
    aurc = _aurc_seconds(options.rows, options.repeat)
    rows: list[dict[str, Any]] = []
    for name, seconds, peak, times, target in (
        ("adjudge triage", cpu, memory, ratio, LEAST_RATIO),
        ("plain scorer", plain_cpu, plain_memory, 1.0, None),
    ):
        print(f"{name:16} {seconds:8.2f} CPU s {seconds / options.rows * 1e6:8.2f} µs a row {peak:8,.0f} MB")
        row = {"name": name, "rows": options.rows, "cpu_seconds": seconds, "peak_mb": peak, "ratio": times}
        rows.append(row | {"target": target, "equal": True})
    print("the figures of both are equal")
    targets = [
        ("times less CPU than the plain scorer", ratio, LEAST_RATIO, ratio >= LEAST_RATIO),
        ("MB at its peak", memory, MOST_MEGABYTES, memory <= MOST_MEGABYTES),
        ("CPU seconds for the AURC of as many rows", aurc, MOST_AURC_SECONDS, aurc <= MOST_AURC_SECONDS),
    ]
    for what, reached, bound, met in targets:
        print(f"{'met   ' if met else 'MISSED'} {what}: {reached:,.2f} (target {bound:,.2f})")
    if options.json is not None:
        found = [{"what": what, "reached": r, "bound": bound, "met": met} for what, r, bound, met in targets]
        options.json.write_text(json.dumps({"rows": rows, "targets": found}, indent=2) + "\n", encoding="utf-8")
    if options.folder is None:
        shutil.rmtree(folder)
    return 0 if all(met for *_, met in targets) else 1


if __name__ == "__main__":
    raise SystemExit(main())
