"""Runs damaged at random: `python tests/tampering/damage.py 5000` verifies that many, and counts what came of them.

Each is a small run of one of the protocols with one to three damages, digests made to fit or not. Every one must end in a list of
problems, a refusal, or a run that holds; in no other exception, in under 20 seconds of CPU and 2 GB.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import pyarrow as pa
import pyarrow.parquet as pq

import adjudge
from adjudge.engine.verify import verify
from adjudge.errors import AdjudgeError
from adjudge.protocols.base import names, protocol
from adjudge.runs.shapes import refuse_altered
from tampering.forge import fit

ODD = [
    *(
        "",
        "x",
        "a\x00b",
        "\u202e",
        "NaN",
        "../../etc/passwd",
        "0" * 64,
        "passed",
        "ÿ" * 300,
        "{}",
        "s3://x:y@z/",
        "1e9",
    ),
    *(
        0,
        1,
        -1,
        2**31,
        2**53,
        -(2**62),
        10**9,
        1e308,
        -1e308,
        0.5,
        True,
        False,
        None,
        [],
        {},
        [[]],
        [None],
        {"a": {}},
        [1] * 50,
    ),
]
SLOW, LARGE = 20.0, 2 << 20


def small_runs(folder: Path) -> list[Path]:
    """A run of every protocol, as small as its example allows."""
    runs = []
    for name in names():
        if not type(protocol(name)).__module__.startswith("adjudge."):
            continue
        config = dict(protocol(name).example(folder / name / "data", 3) or {})
        if not config or name == "anomaly":  # no example, or one that takes too long; both stand in the tampering table
            continue
        config["resamples"] = 100
        for role in ("outputs", "pairs", "gold", "runs", "episodes", "predictions", "outcomes", "scores", "records"):
            _shorten(config.get(role))
        runs.append(adjudge.evaluate(name, config, out=folder / name / "run", report=False).path)
    return runs


def _shorten(paths: Any) -> None:
    for path in paths if isinstance(paths, list) else ():
        if isinstance(path, str) and path.endswith(".jsonl"):
            lines = Path(path).read_text().splitlines()
            Path(path).write_text("\n".join(lines[:24]) + "\n")


def damage(run: Path, rng: random.Random) -> str:
    """One damage in place; what it was."""
    files = sorted(path for path in run.rglob("*") if path.is_file())
    path = rng.choice(files)
    data = path.read_bytes()
    kind = rng.randrange(10)
    if kind == 0 and data:
        place = rng.randrange(len(data))
        path.write_bytes(data[:place] + bytes([data[place] ^ (1 << rng.randrange(8))]) + data[place + 1 :])
        return f"bit of {path.name}"
    if kind == 1 and data:
        path.write_bytes(data[: rng.randrange(len(data))])
        return f"cut {path.name}"
    if kind == 2:
        path.unlink()
        return f"removed {path.name}"
    if kind == 3:
        path.write_bytes(
            rng.choice([b"", b"{}", b"[]", b"null", b"\x00" * 100, b"PAR1", b"[" * 5000, b'{"rules": []}', b"\xff\xfe"])
        )
        return f"replaced {path.name}"
    if kind == 4:
        other = rng.choice(files)
        path.write_bytes(other.read_bytes())
        return f"{other.name} in place of {path.name}"
    if path.suffix == ".json":
        return _damage_json(path, rng)
    return _damage_table(path, rng) if path.suffix == ".parquet" else "nothing"


def _damage_json(path: Path, rng: random.Random) -> str:
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return "nothing"
    value, steps = document, []
    while isinstance(value, dict | list) and value and (not steps or rng.random() < 0.75):
        step = rng.choice(sorted(value)) if isinstance(value, dict) else rng.randrange(len(value))
        steps.append((value, step))
        value = value[step]
    if not steps:
        return "nothing"
    holder, step = steps[-1]
    if rng.random() < 0.3:
        del holder[step]
    else:
        holder[step] = rng.choice(ODD)
    path.write_text(json.dumps(document, ensure_ascii=True))
    return f"{path.name} at {'.'.join(str(step) for _, step in steps)}"


def _damage_table(path: Path, rng: random.Random) -> str:
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError):
        return "nothing"
    if not table.num_columns:
        return "nothing"
    name = rng.choice(table.column_names)
    place = table.column_names.index(name)
    kind = rng.randrange(7)
    if kind == 0:
        table = table.drop_columns([name])
    elif kind == 1:
        table = table.set_column(place, name, pa.nulls(table.num_rows))
    elif kind == 2:
        table = table.set_column(
            place, name, pa.array([rng.choice(["x", "", "passed", None]) for _ in range(table.num_rows)], pa.string())
        )
    elif kind == 3:
        table = table.set_column(
            place, name, pa.array([rng.choice([0, -1, 2**40, None]) for _ in range(table.num_rows)], pa.int64())
        )
    elif kind == 4:
        table = (
            table.take(
                pa.array(
                    [rng.randrange(table.num_rows) for _ in range(rng.randrange(2 * table.num_rows + 1))], pa.int64()
                )
            )
            if table.num_rows
            else table
        )
    elif kind == 5:
        table = table.rename_columns([f"{column}?" if column == name else column for column in table.column_names])
    else:
        table = table.set_column(
            place,
            name,
            table.column(name).take(pa.array(rng.sample(range(table.num_rows), table.num_rows), pa.int64())),
        )
    pq.write_table(table, path, row_group_size=max(1, rng.choice([table.num_rows, 7])))
    return f"column {name} of {path.name}"


def verified(run: Path) -> str:
    """What `verify`, and the commands that refuse altered runs, make of a run."""
    try:
        loaded = adjudge.load_run(run)
    except AdjudgeError as error:
        return f"refused ({error.exit_code})"
    result = verify(loaded)
    try:
        refuse_altered(loaded)
        intact = True
    except AdjudgeError:
        intact = False
    if not intact and not result.problems:
        return "CONTRADICTION"
    return {0: "holds", 1: "problems", 3: "another version"}[result.exit_code]


def attempt(runs: list[Path], seed: int, folder: Path) -> tuple[str, str, float]:
    """(outcome, what was done, CPU seconds) of one damaged run."""
    rng = random.Random(f"damage {seed}")  # noqa: S311 -- no secret
    copy = shutil.copytree(rng.choice(runs), folder / "damaged")
    done = [damage(copy, rng) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    if rng.random() < 0.6:
        try:
            fit(copy)
            done.append("digests fit")
        except (ValueError, OSError, LookupError, TypeError, AttributeError, RecursionError, AdjudgeError):
            done.append("digests do not fit")
    began = time.process_time()
    try:
        word = verified(copy)
    except Exception as error:  # noqa: BLE001 -- this is what is looked for
        word = f"TRACEBACK {type(error).__name__}: {str(error)[:200]}"
    finally:
        seconds = time.process_time() - began
        shutil.rmtree(copy, ignore_errors=True)
    return word, "; ".join(done), seconds


def main() -> None:
    """Count outcomes; name every seed that ended in another way."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = small_runs(folder)
        for seed in range(first, first + count):
            word, done, seconds = attempt(runs, seed, folder)
            outcomes[word.partition(" ")[0]] += 1
            slowest = max(slowest, seconds)
            if word[0].isupper() or seconds > SLOW:
                print(f"seed {seed}: {word} after {seconds:.1f} s: {done}", flush=True)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(dict(outcomes), f"slowest {slowest:.1f} s, most memory {most / 1024:.0f} MB")


if __name__ == "__main__":
    main()
