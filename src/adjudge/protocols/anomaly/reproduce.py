"""Two runs of one configuration, headline metric by headline metric, and the record of it in the run.

`reproduction.json` fills the line of the checklist that is unknown until a run was reproduced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from adjudge.errors import RunError
from adjudge.protocols.anomaly.measure import PRIMARY
from adjudge.provenance.canonical import file_digest, pretty
from adjudge.provenance.manifest import Manifest, RunFile
from adjudge.runs.writer import MANIFEST, METRICS

FILE = "reproduction.json"


class Difference(NamedTuple):
    """One headline metric in both runs, and whether the second holds the first."""

    name: str
    first: float | None
    again: float | None
    holds: bool

    @property
    def text(self) -> str:
        """The difference in words."""
        if self.first is None or self.again is None:
            return f"{self.first} then {self.again}"
        return f"{self.first:.6g} then {self.again:.6g}, difference {self.again - self.first:.6g}"


def differences(first: dict[str, Any], again: dict[str, Any], tolerance: float) -> list[Difference]:
    """Every headline metric of every detector; both null holds, one null does not."""
    rows = [Difference("valid", float(first["valid"]), float(again["valid"]), first["valid"] == again["valid"])]
    for prefix in [f"{name}/" for name in first["detectors"]] if "detectors" in first else [""]:
        for name in (prefix + metric for metric in PRIMARY):
            a, b = first["metrics"].get(name), again["metrics"].get(name)
            if isinstance(a, dict) and isinstance(b, dict):
                rows += [_row(f"{name}.{key}", a.get(key), b.get(key), tolerance) for key in a]
            elif not isinstance(a, dict) and not isinstance(b, dict):
                rows.append(_row(name, a, b, tolerance))
            else:
                rows.append(Difference(name, None, None, holds=False))
    return rows


def outcome(folder: Path) -> bool | None:
    """Whether the recorded reproduction held, by its own numbers; None where none was tried."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        kept = msgspec.json.decode(path.read_bytes())
        rows = [_row(str(row["name"]), row["first"], row["again"], kept["tolerance"]) for row in kept["differences"]]
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise RunError(f"{path} cannot be used: {type(error).__name__}: {error}") from None
    return bool(rows) and all(row.holds for row in rows)


def keep(folder: Path, rows: Sequence[Difference], tolerance: float) -> Manifest:
    """Write reproduction.json into the run, fill the checklist, and return the manifest that lists both."""
    content = {
        "tolerance": tolerance,
        "differences": [{"name": row.name, "first": row.first, "again": row.again} for row in rows],
    }
    (folder / FILE).write_bytes(pretty(content))
    document = msgspec.json.decode((folder / METRICS).read_bytes())
    for lines in _checklists(document):
        lines[-1]["outcome"] = "pass" if all(row.holds for row in rows) else "fail"
    (folder / METRICS).write_bytes(pretty(document))
    manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    listed(manifest, folder, FILE, METRICS)
    return manifest


def listed(manifest: Manifest, folder: Path, *names: str) -> None:
    """List files with the content they have now, and write the manifest."""
    others = [entry for entry in manifest.files if entry.path not in names]
    own = [
        RunFile(path=name, bytes=(folder / name).stat().st_size, sha256=file_digest(folder / name)) for name in names
    ]
    manifest.files = sorted([*others, *own], key=lambda entry: entry.path)
    (folder / MANIFEST).write_bytes(pretty(manifest))


def _checklists(document: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    if "checklist" in document:
        yield document["checklist"]
    for top in (document.get("detectors") or {}).values():
        yield top["checklist"]


def _row(name: str, a: float | None, b: float | None, tolerance: float) -> Difference:
    if a is None or b is None:
        return Difference(name, a, b, a is None and b is None)
    return Difference(name, a, b, abs(b - a) <= tolerance * abs(a))
