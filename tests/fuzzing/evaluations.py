"""Evaluations of damaged files: `python tests/fuzzing/evaluations.py 50000 [FIRST_SEED]` judges that many, and counts what came of them.

Each takes a case of the corpus, damages one to three of its files and judges it whole, by the command line, in a forked process
under limits. It must end in a run (of which every twentieth is verified) or in a message; in no other exception, in under 20 seconds of
CPU and 2 GB.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import traceback
import zipfile
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import click

import adjudge
from adjudge.cli.main import main as adjudge_command
from adjudge.errors import AdjudgeError
from engine.test_fuzz import ODD, damaged
from fuzzing import bounded
from fuzzing.corpus import Words

TOKENS = (
    *(
        b"null",
        b"{}",
        b"[]",
        b"-1",
        b"1e999",
        b"NaN",
        b"true",
        b'""',
        b"\x00",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\r",
        b"\n\n",
        b",",
    ),
    *(
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b"\\",
        b"\\ud800",
        b"\xe2\x80\xa8",
        b"*a",
        b"&a",
        b"!!python/object:x",
        b"- ",
        b"  ",
    ),
    *(
        b"0x7fffffffffffffff",
        b"99999999999999999999999",
        b"id",
        b"model",
        b"2026-01-01",
        b"../x",
        b"'",
        b"((((",
        b"?",
        b"|",
    ),
)


DEAR = ("anomaly-detector", "check-calls", "check-invoices", "check-schema")
"""Cases that start processes or fit detectors: taken a quarter as often as the others."""


def damage(path: Path, others: list[Path], rng: random.Random) -> str:
    """One damage of a file in place; what it was."""
    data = path.read_bytes()
    ways = [_bits, _cut, _token, _splice, _lines]
    if path.suffix == ".jsonl":
        ways = [_value] * 8 + [_record] * 3 + ways
    elif path.suffix == ".json":
        ways = [_document] * 6 + ways
    elif path.suffix == ".eval":
        ways = [_member] * 4 + ways
    elif path.suffix in {".yaml", ".csv"}:
        ways = [_token] * 4 + ways
    way = rng.choice([*ways, _replaced, _packed])
    path.write_bytes(way(data, others, rng))
    return f"{way.__name__[1:]} of {path.name}"


def _bits(data: bytes, others: list[Path], rng: random.Random) -> bytes:
    changed = bytearray(data or b"x")
    for _ in range(rng.randint(1, 6)):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(data: bytes, others: list[Path], rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _token(data: bytes, others: list[Path], rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + rng.choice(TOKENS) * rng.choice([1, 1, 1, 40]) + data[start + rng.choice([0, 1, 4, 20]) :]


def _splice(data: bytes, others: list[Path], rng: random.Random) -> bytes:
    other = rng.choice(others).read_bytes()
    start, end = sorted(rng.randrange(len(other) + 1) for _ in range(2))
    place = rng.randrange(len(data) + 1)
    return data[:place] + other[start:end] + data[place:]


def _lines(data: bytes, others: list[Path], rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if not lines:
        return b"\n"
    kind, place = rng.randrange(5), rng.randrange(len(lines))
    if kind == 0:
        lines.insert(rng.randrange(len(lines) + 1), lines[place])
    elif kind == 1:
        del lines[place]
    elif kind == 2:
        rng.shuffle(lines)
    elif kind == 3:
        lines = lines * rng.choice([2, 5])
    else:
        lines.insert(place, b"\n" * rng.choice([1, 100]))
    return b"".join(lines)


def _record(data: bytes, others: list[Path], rng: random.Random) -> bytes:
    lines = data.splitlines()
    try:
        place = rng.randrange(len(lines))
        record = json.loads(lines[place])
        lines[place] = damaged(rng, record) if isinstance(record, dict) and record else b"{}"
    except (ValueError, RecursionError):  # damaged before
        return data
    return b"\n".join(lines) + b"\n"


def _value(data: bytes, others: list[Path], rng: random.Random) -> bytes:
    """One value of one record exchanged, all else as it was."""
    lines = data.splitlines()
    place = rng.randrange(len(lines) or 1)
    changed = _document(lines[place] if lines else b"{}", others, rng)
    return b"\n".join([*lines[:place], changed, *lines[place + 1 :]]) + b"\n"


def _document(data: bytes, others: list[Path], rng: random.Random) -> bytes:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return data
    if isinstance(document, list) and document:
        place = rng.randrange(len(document))
        holder, step = document, place
    elif isinstance(document, dict) and document:
        holder, step = document, rng.choice(sorted(document))
    else:
        return data
    while isinstance(holder[step], dict | list) and holder[step] and rng.random() < 0.75:
        holder = holder[step]
        step = rng.choice(sorted(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
    if rng.random() < 0.3:
        del holder[step]
    else:
        holder[step] = rng.choice(ODD)
    return json.dumps(document).encode()


def _member(data: bytes, others: list[Path], rng: random.Random) -> bytes:
    """A zip with one member damaged."""
    out = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as log, zipfile.ZipFile(out, "w") as changed:
            chosen = rng.choice(log.namelist())
            for name in log.namelist():
                content = log.read(name)
                way = rng.choice([_document, _document, _document, _bits, _cut, _token])
                changed.writestr(name, way(content, others, rng) if name == chosen else content)
    except (zipfile.BadZipFile, zlib.error, ValueError, LookupError, OSError, NotImplementedError, RuntimeError):
        return data
    return out.getvalue()


def _replaced(data: bytes, others: list[Path], rng: random.Random) -> bytes:
    nothing = (b"", b"{}", b"[]", b"null", b"\x00" * 100, b"PAR1", b"PK\x03\x04", b"[" * 5000, b"\xff\xfe{\x00}\x00")
    return rng.choice([*nothing, rng.choice(others).read_bytes()])


def _packed(data: bytes, others: list[Path], rng: random.Random) -> bytes:
    packed = gzip.compress(data)
    return packed if rng.random() < 0.5 else packed[: rng.randrange(len(packed))]


def judged(words: Words, folder: Path, *, verify: bool) -> str:
    """What the command line makes of some words in a folder: a word, in capitals where it must not be."""
    run = folder / "run"
    os.chdir(folder)
    try:
        with (
            Path(os.devnull).open("w") as nowhere,
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
        ):
            arguments = [*words, "--out", str(run), "--no-report", "--quiet"]
            with adjudge_command.make_context("adjudge", arguments) as context:
                adjudge_command.invoke(context)
        word = "judged"
    except click.exceptions.Exit as end:
        word = {0: "judged", 1: "judged", 2: "refused", 3: "judged"}.get(end.exit_code, f"EXIT {end.exit_code}")
    except click.ClickException:
        word = "refused"
    except AdjudgeError as error:
        word = {2: "refused", 3: "violation"}.get(error.exit_code, f"EXIT {error.exit_code} {str(error)[:300]}")
    except MemoryError:
        word = "MEMORY"
    except Exception as error:  # noqa: BLE001 -- this is what is looked for
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        word = f"TRACEBACK {type(error).__name__} at {place}: {str(error)[:200]}"
    if word == "refused" and run.exists():
        return "LEFT a run"
    if verify and run.exists():
        problems = adjudge.verify(run).problems
        return f"UNVERIFIED {problems[:2]}" if problems else "verified"
    return word


def attempt_on(commands: dict[str, Words], corpus_folder: Path, scratch: Path) -> bounded.Attempt:
    """An attempt: a seed becomes a damaged case, judged in a scratch folder."""

    def attempt(seed: int) -> tuple[str, str]:
        rng = random.Random(f"evaluation {seed}")  # noqa: S311 -- no secret
        name = rng.choice([case for case in sorted(commands) for _ in range(1 if case in DEAR else 4)])
        folder = scratch / f"attempt-{os.getpid()}"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(corpus_folder / name, folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        done = [damage(rng.choice(files), files, rng) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
        try:
            return judged(commands[name], folder, verify=rng.random() < 0.05), f"{name}: {'; '.join(done)}"
        except bounded.TooSlow:
            return "HANG", f"{name}: {'; '.join(done)}"
        finally:
            os.chdir(scratch)
            shutil.rmtree(folder, ignore_errors=True)

    return attempt


def written_corpus(folder: Path) -> dict[str, Words]:
    """The corpus, written by a process of its own, since one that is forked later must have no threads."""
    script = str(Path(__file__).parent / "corpus.py")
    printed = subprocess.run([sys.executable, script, str(folder)], check=True, capture_output=True, text=True).stdout
    return dict(map(json.loads, printed.splitlines()))


def main() -> int:
    """Count outcomes; name every seed that ended in another way."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        commands = written_corpus(folder / "corpus")
        total = bounded.run(attempt_on(commands, folder / "corpus", folder), range(first, first + count))
    print(f"evaluations from seed {first}: {total}")
    return int(bool(total.failures))


if __name__ == "__main__":
    sys.exit(main())
