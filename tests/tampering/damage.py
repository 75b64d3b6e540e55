"""Runs damaged at random: `python tests/tampering/damage.py 5000 [FIRST_SEED]` takes that many, and counts what came of them.

Each is a small run of one of the protocols with one to three damages, digests made to fit or not, that `verify` and one other
command take, in a forked process under limits. It must end in a list of problems, a refusal, or a run that holds; in no
other exception, in under 20 seconds of CPU and 2 GB.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import click
import pyarrow as pa
import pyarrow.parquet as pq

import adjudge
from adjudge.cli.main import main as adjudge_command
from adjudge.engine.verify import verify
from adjudge.errors import AdjudgeError
from adjudge.protocols.base import names, protocol
from adjudge.runs.shapes import refuse_altered
from fuzzing import bounded
from fuzzing.corpus import CASES
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


def small_runs(folder: Path) -> list[Path]:
    """A run of every protocol, as small as its example allows."""
    runs = []
    for name in names():
        if not type(protocol(name)).__module__.startswith("adjudge."):
            continue
        config = dict(protocol(name).example(folder / name / "data", 3) or {})
        if not config:
            continue
        if name == "anomaly":  # whose example takes seconds to verify
            config = scored(folder / name)
        config.setdefault("resamples", 100)
        for role in ("outputs", "pairs", "gold", "runs", "episodes", "predictions", "outcomes", "scores", "records"):
            _shorten(config.get(role))
        runs.append(adjudge.evaluate(name, config, out=folder / name / "run", report=False).path)
    return runs


def scored(folder: Path) -> dict[str, Any]:
    """A detector's scores of six short flights."""
    folder.mkdir(parents=True, exist_ok=True)
    words = CASES["anomaly-parquet"](folder)
    files = {"scores": str(folder / words[2]), "splits": str(folder / "splits.json")}
    return {**files, "target_fpr": 0.1, "resamples": 500}  # what the contract asks for


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


COMMANDS = (
    ("report", "{run}", "-o", "{folder}/report.md"),
    ("report", "{run}", "-o", "{folder}/report.tex"),
    ("gate", "{run}", "--gate", "matched >= 1"),
    ("compare", "{run}", "{whole}"),
    ("compare", "{whole}", "{run}", "-o", "{folder}/comparison.md"),
    ("export", "{run}", "--records", "jsonl", "-o", "{folder}/records.jsonl"),
    ("query", "{run}", "select bucket, count(*) from samples group by all"),
    ("query", "{run}", "select * from evidence limit 5"),
    ("explain", "{run}", "{sample}"),
)
"""What else is asked of a damaged run; those that refuse an altered one are also told to take it."""


def attempt_on(runs: list[Path], samples: dict[Path, str], scratch: Path) -> bounded.Attempt:
    """An attempt: a seed becomes a damaged run, verified and shown in a scratch folder."""

    def attempt(seed: int) -> tuple[str, str]:
        rng = random.Random(f"damage {seed}")  # noqa: S311 -- no secret
        folder = scratch / f"attempt-{os.getpid()}"
        shutil.rmtree(folder, ignore_errors=True)
        whole = rng.choice(runs)
        copy = shutil.copytree(whole, folder / "damaged")
        done = [whole.parent.name, *(damage(copy, rng) for _ in range(rng.choice([1, 1, 1, 2, 3])))]
        if rng.random() < 0.6:
            try:
                fit(copy)
                done.append("digests fit")
            except (ValueError, OSError, LookupError, TypeError, AttributeError, RecursionError, AdjudgeError):
                done.append("digests do not fit")
        places = {"run": copy, "whole": whole, "folder": folder, "sample": samples[whole]}
        words = [word.format(**places) for word in rng.choice(COMMANDS)]
        if words[0] in {"report", "gate", "compare", "export"} and rng.random() < 0.5:
            words.append("--unverified")
        try:
            word = verified(copy)
            shown = called(words)
        except bounded.TooSlow:
            return "HANG", "; ".join([*done, words[0]])
        except MemoryError:
            return "MEMORY", "; ".join([*done, words[0]])
        except Exception as error:  # noqa: BLE001 -- this is what is looked for
            where = traceback.extract_tb(error.__traceback__)[-1]
            word = f"TRACEBACK {type(error).__name__} at {Path(where.filename).name}:{where.lineno}: {str(error)[:200]}"
            shown = ""
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return (shown if shown[:1].isupper() else word), "; ".join([*done, " ".join(words)])

    return attempt


def called(words: list[str]) -> str:
    """What a command makes of a damaged run; its exit code in words, in capitals where it may not end so."""
    try:
        with (
            Path(os.devnull).open("w") as nowhere,
            redirect_stdout(nowhere),
            redirect_stderr(nowhere),
            adjudge_command.make_context("adjudge", words) as context,
        ):
            code = adjudge_command.invoke(context)
    except click.exceptions.Exit as end:
        code = end.exit_code
    except click.ClickException:
        code = 2
    except AdjudgeError as error:
        code = error.exit_code
    return f"exit {code}" if code in {None, 0, 1, 2, 3} else f"EXIT {code}"


def written_runs(folder: Path) -> tuple[list[Path], dict[Path, str]]:
    """The small runs with the id of a sample each, made by a process of its own: one that is forked later must have no threads."""
    words = [sys.executable, __file__, "--runs", str(folder)]
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    samples = {Path(path): sample for path, sample in map(json.loads, printed.splitlines())}
    return sorted(samples), samples


def main() -> int:
    """Count outcomes; name every seed that ended in another way."""
    if sys.argv[1] == "--runs":
        for path in small_runs(Path(sys.argv[2])):
            sample = adjudge.load_run(path).columns(["sample"]).column("sample")[0].as_py()
            print(json.dumps([str(path), sample]))
        return 0
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory() as name:
        runs, samples = written_runs(Path(name) / "runs")
        total = bounded.run(attempt_on(runs, samples, Path(name)), range(first, first + count))
    print(f"damaged runs from seed {first}: {total}")
    return int(bool(total.failures))


if __name__ == "__main__":
    sys.exit(main())
