"""Source files and notebooks of a folder, scanned for leaks; what is waived or cannot be read is counted and named."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from adjudge.errors import InputError
from adjudge.protocols.anomaly.checks import Check
from adjudge.protocols.anomaly.code_rules import CodeFinding
from adjudge.protocols.anomaly.code_scan import scan

_SKIPPED_FOLDERS = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", ".ipynb_checkpoints", "build"})
_WAIVER = re.compile(r"#\s*adjudge:\s*allow\s+(?P<rule>[a-z_.]+)(?:\s+(?P<reason>\S.*))?$")


class CodeLeak(NamedTuple):
    """A leak with its place: a file and line, or a notebook's cell and line."""

    file: str
    cell: int | None
    line: int
    code: str
    why: str

    @property
    def place(self) -> str:
        """Where, as people write it."""
        return f"{self.file}:{self.line}" if self.cell is None else f"{self.file} cell {self.cell}:{self.line}"


@dataclass
class CodeReport:
    """What a scan found, what the code itself allows, each leak with the reason on its line, and what could not be read."""

    leaks: list[CodeLeak] = field(default_factory=list)
    waived: list[tuple[CodeLeak, str]] = field(default_factory=list)
    files: int = 0
    unread: list[str] = field(default_factory=list)
    skipped: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data for leakage_report.json."""
        return {
            "files": self.files,
            "skipped_unit_tests": self.skipped,
            "unread": self.unread,
            "leaks": [leak._asdict() for leak in self.leaks],
            "waived": [{**leak._asdict(), "reason": reason} for leak, reason in self.waived],
        }


def scan_paths(paths: Sequence[Path]) -> CodeReport:
    """Scan files and folders; unit tests inside a folder are left out, since `test` means something else there."""
    report = CodeReport()
    for root in paths:
        if not root.exists():
            raise InputError("there is no such file or folder", file=str(root))
        for path in _files(root):
            if path != root and _is_unit_test(path.relative_to(root)):
                report.skipped += 1
                continue
            try:
                _scan_file(path, report)
                report.files += 1
            except (SyntaxError, ValueError, msgspec.DecodeError, RecursionError) as error:
                report.unread.append(f"{path}: cannot be parsed: {type(error).__name__}: {str(error)[:120]}")
    return report


def code_check(report: CodeReport) -> Check:
    """`code.clean`: some code was scanned, all of it, and none of it leaks."""
    check = Check("code.clean")
    skipped = f", {report.skipped} unit tests left out" if report.skipped else ""
    check.notes.append(f"{report.files} files scanned{skipped}")
    check.notes += [f"{leak.place}: {leak.code} is waived: {reason}" for leak, reason in report.waived]
    for leak in report.leaks:
        check.fail(f"{leak.place}: {leak.code}: {leak.why}")
    for text in report.unread:
        check.fail(text)
    if not report.files and not report.unread:
        return Check.unknown(check.code, "no Python file and no notebook was found to scan", check.notes)
    return check


def scan_text(text: str) -> list[CodeFinding]:
    """The leaks of one module's text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the scanned code's own doubtful literals are not our business
        return scan(ast.parse(text))


def _files(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if path.suffix in {".py", ".ipynb"} and path.is_file() and not _SKIPPED_FOLDERS & set(parts):
            yield path


def _is_unit_test(path: Path) -> bool:
    named = path.name.startswith("test_") or path.name.endswith("_test.py") or path.name == "conftest.py"
    return named or not {"tests", "testing"}.isdisjoint(path.parts[:-1])


def _scan_file(path: Path, report: CodeReport) -> None:
    data = path.read_bytes()
    places: list[tuple[int, int]] | None = None
    if path.suffix == ".ipynb":
        text, places = _notebook(msgspec.json.decode(data))
    else:
        text = data.decode("utf-8-sig", "replace")
    lines = text.splitlines()
    for finding in scan_text(text):
        cell, line = (None, finding.line) if places is None else places[finding.line - 1]
        leak = CodeLeak(str(path), cell, line, finding.code, finding.why)
        # A waiver stands on the line itself or alone on the line above; without a reason it waives nothing.
        above = lines[finding.line - 2].strip() if finding.line > 1 else ""
        waivers = [_WAIVER.search(lines[finding.line - 1]), _WAIVER.match(above)]
        reason = next((w["reason"] for w in waivers if w and w["rule"] == leak.code and w["reason"]), None)
        if reason is None:
            report.leaks.append(leak)
        else:
            report.waived.append((leak, reason))


def _notebook(document: Any) -> tuple[str, list[tuple[int, int]]]:
    """The code cells as one module, and the cell and line of each of its lines; magics become blank lines."""
    if not isinstance(document, dict) or not isinstance(document.get("cells"), list):
        raise ValueError("a notebook is a JSON object with `cells`")  # noqa: TRY004 -- content, not a type of ours
    lines: list[str] = []
    places: list[tuple[int, int]] = []
    for number, cell in enumerate(document["cells"], start=1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        text = "".join(source) if isinstance(source, list) else str(source)
        if text.lstrip().startswith("%%"):
            continue
        for line, content in enumerate(text.splitlines(), start=1):
            stripped = content.lstrip()
            magic = stripped.startswith(("%", "!", "?")) or stripped.endswith("?")
            indent = content[: len(content) - len(stripped)]
            lines.append(f"{indent}pass" if magic else content)
            places.append((number, line))
    return "\n".join(lines) + "\n", places
