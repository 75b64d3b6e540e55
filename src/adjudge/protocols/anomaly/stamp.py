"""The stamp on a result, the reviewer's checklist that it stands on, and the reproduction that its last line asks for.

Two runs of one configuration are held against each other, headline metric by headline metric; `reproduction.json` keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from adjudge.errors import ConfigError, RunError
from adjudge.protocols.anomaly.checks import FAIL, NOT_APPLICABLE, PASS
from adjudge.protocols.anomaly.config import PRIMARY
from adjudge.protocols.anomaly.judge import Judgement
from adjudge.provenance.canonical import file_digest, pretty
from adjudge.provenance.manifest import Manifest, RunFile
from adjudge.runs.writer import MANIFEST, METRICS, REPORT

VALID, OPEN, INVALID = "VALID", "VALID WITH OPEN ITEMS", "INVALID"
UNKNOWN = "unknown"
REPRODUCED = "one-command reproduction tested"
WORST = "worst-case attack disclosed"
FILE = "reproduction.json"
_PATHS = ("data", "scores")
_REPRODUCE = "adjudge anomaly reproduce RUN"
_LINES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("code leakage check passes", ("code.clean",), "adjudge anomaly … --check-code SRC"),
    (
        "splits leakage check passes",
        ("split.disjoint", "split.covers", "split.no_shuffle"),
        "adjudge leakage --splits SPLITS --data DATA",
    ),
    ("no banned sensors in the feature list", ("feature.banned",), "adjudge leakage --data DATA"),
    (
        "threshold calibrated on validation, not test",
        ("threshold.clean_val_only",),
        "adjudge anomaly … (no --threshold)",
    ),
    ("N-consecutive rule documented", ("decision.n_consecutive",), "adjudge anomaly … --n-consecutive N"),
    ("bootstrap CIs reported", ("ci.bootstrap",), "adjudge anomaly … --resamples 2000"),
    (WORST, ("metrics.complete",), "adjudge anomaly … --catalog CATALOG (or labelled test flights)"),
)

Line = dict[str, Any]


class Reproduction(NamedTuple):
    """How a reproduction ended, and whether it was of the evaluation alone because the scores came from elsewhere."""

    held: bool
    evaluation_only: bool


def checklist(judgement: Judgement, reproduced: Reproduction | None) -> list[Line]:
    """The reviewer's lines, each with the rules it rests on and the command that closes it while it is open."""
    lines = []
    attacked = bool(judgement.decisions.attacked[judgement.test].any())
    for text, codes, command in _LINES:
        checks = [judgement.checks[code] for code in codes]
        outcomes = {check.outcome for check in checks}
        outcome = FAIL if FAIL in outcomes else UNKNOWN if NOT_APPLICABLE in outcomes else PASS
        why = "; ".join(check.reasons[0] for check in checks if check.outcome == NOT_APPLICABLE and check.reasons)
        if text == WORST and not attacked and outcome == PASS:
            outcome, why = UNKNOWN, "no attack was judged"
        lines.append(_line(text, outcome, codes, command, why))
    lines.append(_reproduction_line(reproduced))
    return lines


def _line(text: str, outcome: str, codes: Sequence[str], command: str, why: str) -> Line:
    closed_by = command if outcome == UNKNOWN else ""
    return {"line": text, "outcome": outcome, "atoms": list(codes), "why": why, "closed_by": closed_by}


def _reproduction_line(reproduced: Reproduction | None) -> Line:
    if reproduced is None:
        return _line(REPRODUCED, UNKNOWN, (), _REPRODUCE, "it was not tried")
    why = "the evaluation alone: the scores were read again, not made again" if reproduced.evaluation_only else ""
    return _line(REPRODUCED, PASS if reproduced.held else FAIL, (), _REPRODUCE, why)


def open_items(judgement: Judgement, lines: Sequence[Line]) -> list[Line]:
    """What is not known: lines of the checklist, and further rules that could not be checked."""
    covered = {code for line in lines for code in line["atoms"]}
    return [
        *({"item": line["line"], "why": line["why"]} for line in lines if line["outcome"] == UNKNOWN),
        *(
            {"item": check.code, "why": "; ".join(check.reasons[:2])}
            for check in judgement.checks.values()
            if check.outcome == NOT_APPLICABLE and not check.moot and check.code not in covered
        ),
    ]


def stamp(*, valid: bool, left_open: bool) -> str:
    """The word that stands above all numbers."""
    return INVALID if not valid else OPEN if left_open else VALID


def fill_reproduction(top: Line, reproduced: Reproduction) -> None:
    """Say in the checklist of a detector, and on its stamp, how its reproduction ended."""
    top["checklist"][-1] = _reproduction_line(reproduced)
    top["open_items"] = [item for item in top["open_items"] if item["item"] != REPRODUCED]
    top["stamp"] = stamp(valid=top["valid"], left_open=bool(top["open_items"]))


def combined(tops: Sequence[Line]) -> Line:
    """The stamp over several detectors: the worst of theirs."""
    valid = all(top["valid"] for top in tops)
    return {"valid": valid, "stamp": stamp(valid=valid, left_open=any(top["open_items"] for top in tops))}


class Difference(NamedTuple):
    """One headline metric in both runs; `holds` is None where neither run has a number."""

    name: str
    first: float | None
    again: float | None
    holds: bool | None

    @property
    def text(self) -> str:
        """The difference in words."""
        if self.first is None or self.again is None:
            return "no number in either run" if self.holds is None else f"{self.first} then {self.again}"
        return f"{self.first:.6g} then {self.again:.6g}, difference {self.again - self.first:.6g}"


class Change(NamedTuple):
    """Something that a run rests on and that is not what it was; a package's version alone is no failure."""

    text: str
    fails: bool


def located(config: Mapping[str, Any], inputs: Sequence[Any], bases: Sequence[Path]) -> tuple[dict[str, Any], Path]:
    """The configuration with its input where it lies now, and the folder from which its path leads there.

    A path of another machine is looked for by its last parts in every base; a file with the recorded content wins.
    """
    key = next(name for name in _PATHS if config.get(name) is not None)
    path = Path(config[key])
    digests = {item.sha256 for item in inputs}
    tails = [Path(*path.parts[start:]) for start in range(len(path.parts))]
    places_below = {base: [base / tail for tail in tails if (base / tail).exists()] for base in bases}
    candidates = [(base, places[0]) for base, places in places_below.items() if places]
    if path.is_absolute() and path.exists():
        candidates.insert(0, (path.parent, path))
    if not candidates:
        looked = ", ".join(str(base) for base in bases[:3])
        raise ConfigError(f"{path} is not there (looked in {looked} …); --root FOLDER says where it lies now")
    same = [pair for pair in candidates if pair[1].is_file() and file_digest(pair[1]) in digests]
    base, chosen = (same or candidates)[0]
    moved = {**config, key: str(chosen)}
    moved["code"] = [str(base / item) if (base / item).exists() else item for item in config.get("code") or ()]
    return moved, base


def differences(first: dict[str, Any], again: dict[str, Any], tolerance: float) -> list[Difference]:
    """Every headline metric of every detector; one null and one number does not hold."""
    rows = [Difference("valid", float(first["valid"]), float(again["valid"]), first["valid"] == again["valid"])]
    for prefix in [f"{name}/" for name in first["detectors"]] if "detectors" in first else [""]:
        for name in (prefix + metric for metric in PRIMARY):
            a, b = first["metrics"].get(name), again["metrics"].get(name)
            if isinstance(a, dict) or isinstance(b, dict):
                rows += [_row(f"{name}.{key}", (a or {}).get(key), (b or {}).get(key), tolerance) for key in a or b]
            else:
                rows.append(_row(name, a, b, tolerance))
    return rows


def _row(name: str, a: float | None, b: float | None, tolerance: float) -> Difference:
    if a is None or b is None:
        return Difference(name, a, b, None if a is None and b is None else False)
    return Difference(name, a, b, abs(b - a) <= tolerance * abs(a))


def changes(first: Mapping[str, Any], again: Mapping[str, Any]) -> list[Change]:
    """What the records of two runs say of altered flights, detector sources, parameters and packages."""
    before, after = first.get("flights", {}), again.get("flights", {})
    changed = [
        Change(f"data: flight {name} is not the one that was judged", fails=True) for name in _differing(before, after)
    ]
    one, other = first.get("detector") or {}, again.get("detector") or {}
    for key, word in (("sources", "source"), ("packages", "package")):
        before, after = one.get(key, {}), other.get(key, {})
        for name in _differing(before, after):
            shown = f" ({before.get(name)} then {after.get(name)})" if key == "packages" else ""
            changed.append(Change(f"detector: {word} {name} is not what it was{shown}", fails=key == "sources"))
    if one.get("parameters") != other.get("parameters"):
        changed.append(Change("detector: its parameters are not what they were", fails=True))
    return changed


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in {**before, **after} if before.get(name) != after.get(name))


def records(folder: Path) -> list[dict[str, Any]]:
    """The record of each detector of a run."""
    report = msgspec.json.decode((folder / "leakage_report.json").read_bytes())
    return [each.get("record") or {} for each in report.get("detectors", {"": report}).values()]


def held(rows: Sequence[Difference], changed: Sequence[Change]) -> bool:
    """Whether a reproduction holds: some number is a number, all of them agree, and nothing it rests on was altered."""
    numbers = [row for row in rows if row.name != "valid" and row.holds is not None]
    return bool(numbers) and all(row.holds is not False for row in rows) and not any(item.fails for item in changed)


def recorded_reproduction(folder: Path) -> Reproduction | None:
    """How the recorded reproduction ended, by its own numbers; None where none was tried."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        kept = msgspec.json.decode(path.read_bytes())
        rows = [_row(str(row["name"]), row["first"], row["again"], kept["tolerance"]) for row in kept["differences"]]
        changed = [Change(item["text"], bool(item["fails"])) for item in kept["changes"]]
        return Reproduction(held(rows, changed), bool(kept["evaluation_only"]))
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise RunError(f"{path} cannot be used: {type(error).__name__}: {error}") from None


def keep(
    folder: Path,
    rows: Sequence[Difference],
    changed: Sequence[Change],
    tolerance: float,
    draw: Callable[[Path], tuple[bytes, str]],
    *,
    evaluation_only: bool,
) -> bool:
    """Write reproduction.json into the run, fill the checklist, `draw` the page anew; and whether the reproduction holds."""
    content = {
        "tolerance": tolerance,
        "evaluation_only": evaluation_only,
        "differences": [{"name": row.name, "first": row.first, "again": row.again} for row in rows],
        "changes": [item._asdict() for item in changed],
    }
    (folder / FILE).write_bytes(pretty(content))
    document = msgspec.json.decode((folder / METRICS).read_bytes())
    tops, holds = list(document.get("detectors", {"": document}).values()), held(rows, changed)
    for top in tops:
        fill_reproduction(top, Reproduction(holds, evaluation_only))
    if "detectors" in document:
        document |= combined(tops)
    (folder / METRICS).write_bytes(pretty(document))
    manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    _list(manifest, folder, FILE, METRICS)
    if (folder / REPORT).is_file():
        page, manifest.digests["report_data"] = draw(folder)
        (folder / REPORT).write_bytes(page)
        _list(manifest, folder, REPORT)
    return holds


def _list(manifest: Manifest, folder: Path, *names: str) -> None:
    """List files with the content they have now, and write the manifest."""
    entries = {entry.path: entry for entry in manifest.files}
    for path in (folder / name for name in names):
        entries[path.name] = RunFile(path=path.name, bytes=path.stat().st_size, sha256=file_digest(path))
    manifest.files = [entries[name] for name in sorted(entries)]
    (folder / MANIFEST).write_bytes(pretty(manifest))
