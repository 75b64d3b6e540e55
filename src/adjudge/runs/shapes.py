"""Whether the files of a run are those of its manifest, and its JSON has the shape that adjudge writes."""

from __future__ import annotations

from typing import Any

import msgspec

from adjudge.errors import RunError
from adjudge.provenance.canonical import file_digest
from adjudge.runs.run import Run
from adjudge.runs.signature import SIGNATURE
from adjudge.runs.writer import CHARTS, INTAKE, MANIFEST, METRICS, RULES

_NAMED = 3

_MOST_SLOTS = 100_000
_MOST_STEP = 255


class _Estimate(msgspec.Struct):
    name: str
    slice: str
    value: float | None
    low: float | None
    high: float | None
    level: float
    n: int
    method: str
    seed: int | None
    why: str | None
    warnings: list[str] = []


class _Gate(msgspec.Struct):
    metric: str
    op: str
    bound: float
    on: str
    observed: float | None
    outcome: str
    why: str | None


class _Metrics(msgspec.Struct, rename={"passed": "pass"}):
    schema_version: str
    protocol: str
    protocol_version: str
    digests: dict[str, str]
    passed: bool | None
    gates: dict[str, _Gate]
    buckets: dict[str, dict[str, int]]
    metrics: dict[str, Any]
    estimates: list[_Estimate]
    notes: list[str]


class _Variant(msgspec.Struct):
    code: str
    title: str


class _Slot(msgspec.Struct):
    field: str | None
    step: int


class _Rule(msgspec.Struct):
    code: str
    family: str
    title: str
    variants: list[_Variant]
    slots: list[_Slot]


class _Rules(msgspec.Struct):
    rules: list[_Rule]


class _Chart(msgspec.Struct):
    name: str
    spec: dict[str, Any]


class _Role(msgspec.Struct):
    ids: int
    only_in: int


class _Intake(msgspec.Struct):
    ids: int
    matched: int
    roles: dict[str, _Role]
    notes: list[str]


_SHAPES: dict[str, Any] = {METRICS: _Metrics, RULES: _Rules, CHARTS: list[_Chart], INTAKE: _Intake}


def file_problems(run: Run) -> dict[str, str]:
    """Every file that is missing, altered or foreign, and in which way; a signature beside the manifest is not listed."""
    problems = {}
    listed = {entry.path: entry for entry in run.manifest.files}
    present = {path.relative_to(run.path).as_posix() for path in run.path.rglob("*") if path.is_file()}
    for name, entry in listed.items():
        path = run.path / name
        try:
            if not path.resolve().is_relative_to(run.path.resolve()):
                problems[name] = "lies outside the run"
            elif name not in present:
                problems[name] = "is missing"
            elif path.stat().st_size != entry.bytes or file_digest(path) != entry.sha256:
                problems[name] = "its content is not the one in the manifest"
        except OSError as error:
            problems[name] = f"cannot be read: {error.strerror}"
        except ValueError as error:  # a name that no file system takes
            problems[name] = f"cannot be read: {error}"
    if len(listed) < len(run.manifest.files):
        problems[MANIFEST] = "it lists a file twice"
    foreign = sorted(present - listed.keys() - {MANIFEST, SIGNATURE})
    return problems | dict.fromkeys(foreign, "is not listed in the manifest")


def shape_problems(run: Run) -> dict[str, str]:
    """Which JSON files are missing or have another shape, and how; intake.json is not in runs of older versions."""
    problems = {}
    for name, shape in _SHAPES.items():
        path = run.path / name
        try:
            value = msgspec.json.decode(path.read_bytes(), type=shape)
        except FileNotFoundError:
            if name != INTAKE:
                problems[name] = "is missing"
        except OSError as error:
            problems[name] = f"cannot be read: {error.strerror}"
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            problems[name] = f"is not as adjudge writes it: {error}"
        else:
            if isinstance(value, _Rules) and (wrong := _wrong_rules(value.rules)):
                problems[name] = f"is not as adjudge writes it: {wrong}"
    return problems


def _wrong_rules(rules: list[_Rule]) -> str | None:
    slots = [slot for rule in rules for slot in rule.slots]
    if not 0 < len(slots) <= _MOST_SLOTS:
        return f"it has {len(slots)} places for atoms"
    steps = [slot.step for slot in slots if not 0 <= slot.step <= _MOST_STEP]
    return f"a step is {steps[0]}" if steps else None


def refuse_altered(run: Run, *, flag: str | None = "--unverified") -> None:
    """Raise a RunError for a run whose files are not those of its manifest; `flag` is the one that lets it pass."""
    problems = [
        f"{name}: {text}"
        for texts_by_file in (file_problems(run), shape_problems(run))
        for name, text in texts_by_file.items()
    ]
    if problems:
        more = f" and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
        otherwise = "" if flag is None else f"; {flag} takes it all the same"
        raise RunError(
            f"{run.path} is not as it was written: {'; '.join(problems[:_NAMED])}{more} "
            f"(adjudge verify {run.path} lists everything{otherwise})"
        )
