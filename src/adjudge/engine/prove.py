"""What a run alone cannot prove: held against the input files, a published digest, or a key that signed it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adjudge.engine.evaluate import Options, evaluate
from adjudge.engine.verify import ENGINE_KEYS, FROM_INPUT, SETTINGS, PageCheck, Verification, verify
from adjudge.errors import ConfigError
from adjudge.protocols.base import Plan, protocol
from adjudge.provenance.canonical import file_digest
from adjudge.provenance.manifest import InputFile
from adjudge.readers.sources import file_name
from adjudge.runs.run import Run
from adjudge.runs.signature import SIGNATURE, signature_problem
from adjudge.runs.writer import CHARTS, MANIFEST, METRICS, REPORT
from adjudge.verdict.gates import Gate

_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


def prove(
    run: Run,
    *,
    inputs: Sequence[Path] = (),
    expect: str | None = None,
    key: Path | None = None,
    on_progress: Callable[[int], None] | None = None,
    check_report: PageCheck | None = None,
) -> Verification:
    """Verify a run, and hold it against what is given beside it; what that proves is no longer listed as not checked."""
    wanted = None if expect is None else _DIGEST.fullmatch(expect.strip().lower())
    if expect is not None and wanted is None:
        raise ConfigError(f"--expect {expect!r} is no SHA-256: 64 digits from 0 to f, as every evaluation prints them")
    result = verify(run, on_progress=on_progress, check_report=check_report)
    if wanted is not None:
        if run.digest == wanted[1]:
            _settle(result, SETTINGS, "that the run is the one whose digest was given, every file of it")
        else:
            result.add(f"{MANIFEST}: its digest is {run.digest}, expected {wanted[1]}")
    if key is not None:
        problem = signature_problem(run, key)
        if problem is None:
            _settle(result, SETTINGS, f"that {key} signed the run, every file of it")
            _settle(result, "whose signature")
        else:
            result.add(problem)
    if inputs:
        with result.part("the input files"):
            _judge_again(run, inputs, result)
    return result


def _settle(result: Verification, what: str, checked: str | None = None) -> None:
    """Take a statement off the list of what was not checked, and list what was checked instead."""
    result.not_checked = [text for text in result.not_checked if not text.startswith(what)]
    if checked is not None:
        result.checked.append(checked)


def _judge_again(run: Run, paths: Sequence[Path], result: Verification) -> None:
    """Hold the digests of the inputs against the files, and the run against a new one of the same files."""
    by_digest = {file_digest(path): path for path in paths if path.is_file()}
    result.add(*(f"{path}: there is no such file" for path in paths if not path.is_file()))
    listed = run.manifest.inputs
    absent = [entry for entry in listed if entry.sha256 not in by_digest]
    result.add(*(f"{entry.name} ({entry.role}): no given file has its digest" for entry in absent))
    foreign = by_digest.keys() - {entry.sha256 for entry in listed}
    result.not_checked += sorted(f"{by_digest[digest]}, which is not one of the run's inputs" for digest in foreign)
    if absent:
        return
    result.checked.append("the digest of every input against the given files")
    chosen = protocol(run.manifest.protocol)
    settings = {key: value for key, value in run.manifest.config.items() if key not in ENGINE_KEYS}
    plan = chosen.plan(settings)
    if result.made_by is not None or not plan.inputs():
        why = f"{run.manifest.protocol} reads tables of its own" if result.made_by is None else "another version"
        result.not_checked.append(f"that these files give this run: they are not judged again ({why})")
        return
    with tempfile.TemporaryDirectory() as folder:
        places = _linked(plan, listed, by_digest, Path(folder))
        config = run.manifest.config
        again = evaluate(
            chosen,
            {key: _replaced(value, places) for key, value in settings.items() if key not in plan.derived}
            | {key: config[key] for key in ("columns", "json_path") if config.get(key)},
            Options(
                out=Path(folder) / "run",
                limit=config.get("limit"),
                gates=tuple(Gate.parse(text) for text in config.get("gates") or ()),
            ),
        )
        # Where a new metric was added they lack it, and were held against the tables.
        known = {METRICS, CHARTS} if result.added else set()
        problems = list(_other_files(run.path, again, {MANIFEST, SIGNATURE, REPORT} | known))
    result.add(*problems)
    if not problems:
        more = " but for what this version adds" if result.added else ""
        _settle(result, FROM_INPUT, f"that judging the given files again gives this run, byte for byte{more}")
        _settle(result, "the raw texts in outputs/")


def _linked(plan: Plan, listed: Sequence[InputFile], by_digest: Mapping[str, Path], folder: Path) -> dict[str, str]:
    """Every path of the configuration, and a link to the file of its digest under the same name."""
    paths = [path for item in plan.inputs() for path in item.paths]
    places = {}
    for number, (path, entry) in enumerate(zip(paths, listed, strict=False)):
        home = folder / str(number)
        home.mkdir()
        link = home / file_name(path)
        link.symlink_to(by_digest[entry.sha256].resolve())
        places[path] = str(link)
    return places


def _replaced(value: Any, places: Mapping[str, str]) -> Any:
    """The configuration with other places of its files."""
    if isinstance(value, str):
        return places.get(value, value)
    if isinstance(value, dict):
        return {key: _replaced(item, places) for key, item in value.items()}
    return [_replaced(item, places) for item in value] if isinstance(value, list) else value


def _other_files(stored: Path, again: Path, but: set[str]) -> Iterator[str]:
    """Files that are not what the inputs give, some left aside."""
    names = {path.relative_to(again).as_posix() for path in again.rglob("*") if path.is_file()}
    names |= {path.relative_to(stored).as_posix() for path in stored.rglob("*") if path.is_file()}
    for name in sorted(names - but):
        ours, theirs = stored / name, again / name
        if not ours.is_file() or not theirs.is_file():
            yield f"{name}: is {'not' if theirs.is_file() else 'only'} in the run, and the inputs give otherwise"
        elif file_digest(ours) != file_digest(theirs) and not _same_but_for_places(ours, theirs):
            yield f"{name}: is not what the inputs give"


def _same_but_for_places(ours: Path, theirs: Path) -> bool:
    """Whether two tables differ only in the folders of the input files, which a table of outputs may name."""
    if ours.suffix != ".parquet":
        return False
    try:
        a, b = (_with_names(pq.read_table(path)) for path in (ours, theirs))
    except (pa.ArrowException, OSError):
        return False
    return bool(a.equals(b))


def _with_names(table: pa.Table) -> pa.Table:
    if "file" not in table.column_names:
        return table
    names = pc.replace_substring_regex(table.column("file").cast(pa.string()), r".*/", "")
    return table.set_column(table.column_names.index("file"), "file", names)
