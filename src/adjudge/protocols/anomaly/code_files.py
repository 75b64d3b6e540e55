"""Source files and notebooks of a folder, scanned for leaks."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from adjudge.errors import InputError
from adjudge.protocols.anomaly.code_rules import CodeFinding
from adjudge.protocols.anomaly.code_scan import scan

_SKIPPED_FOLDERS = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", ".ipynb_checkpoints", "build"})


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
    """What a scan found, and what it could not read."""

    leaks: list[CodeLeak] = field(default_factory=list)
    files: int = 0
    unread: list[str] = field(default_factory=list)
    skipped: int = 0


def scan_paths(paths: list[Path]) -> CodeReport:
    """Scan files and folders; unit tests inside a folder are left out, since `test` means something else there."""
    report = CodeReport()
    for root in paths:
        if not root.exists():
            raise InputError("there is no such file or folder", file=str(root))
        for path in _files(root):
            if path != root and _is_unit_test(path.relative_to(root)):
                report.skipped += 1
                continue
            report.files += 1
            try:
                report.leaks += _scan_file(path)
            except (SyntaxError, ValueError, msgspec.DecodeError, RecursionError) as error:
                report.unread.append(f"{path}: not scanned: {type(error).__name__}: {str(error)[:120]}")
    return report


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
    return (
        path.name.startswith("test_")
        or path.name.endswith("_test.py")
        or path.name == "conftest.py"
        or bool({"tests", "testing"} & set(path.parts[:-1]))
    )


def _scan_file(path: Path) -> list[CodeLeak]:
    data = path.read_bytes()
    if path.suffix != ".ipynb":
        return [
            CodeLeak(str(path), None, item.line, item.code, item.why)
            for item in scan_text(data.decode("utf-8-sig", "replace"))
        ]
    text, places = _notebook(msgspec.json.decode(data))
    leaks = []
    for item in scan_text(text):
        cell, line = places[item.line - 1]
        leaks.append(CodeLeak(str(path), cell, line, item.code, item.why))
    return leaks


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
