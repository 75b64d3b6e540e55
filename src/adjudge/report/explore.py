"""The samples of a run for the explorer on its page: columns, packed with gzip, unpacked by the browser itself.

Messages of atoms are not stored: the page renders them from the rule table, as `explain` does.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from adjudge.evidence.atoms import NOT_ASKED
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import FAIL, NOT_APPLICABLE
from adjudge.report.opened import agent_columns, agent_of, panel_columns, panels_of
from adjudge.runs.run import Run

SAMPLES = 20_000
PAGE_BYTES = 20_000_000
_PACKED_BYTES = 13_000_000  # what fits into a page of PAGE_BYTES as base64, beside everything else
_CHARACTERS = 4000
_SLICES, _ITEMS = 40, 64
_OUTCOMES = np.frombuffer(b"pfne", dtype=np.uint8)
_UNSHOWN = frozenset({"part", "row", "cites", "file", "line"})
_RULE_KEYS = ("code", "family", "title", "passed", "failed", "variants", "cases", "slots")


@dataclass
class _Columns:
    """What the explorer shows of some samples, batch by batch."""

    width: int
    n: int = 0
    columns: dict[str, list[Any]] = field(default_factory=dict)
    outcomes: list[list[str]] = field(default_factory=list)
    failed: list[dict[str, list[Any]]] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    unchecked: list[dict[str, list[int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.outcomes = [[] for _ in range(self.width)]
        self.failed = [{"s": [], "c": [], "e": [], "o": [], "w": []} for _ in range(self.width)]
        self.unchecked = [{"s": [], "w": []} for _ in range(self.width)]

    def add(
        self, samples: pa.Table, outputs: pa.Table | None, evidence: Evidence, computed: Mapping[str, Sequence[Any]]
    ) -> None:
        """Append one batch, of the evidence as much as there are samples; `computed` columns are for the page alone."""
        tables = [samples] if outputs is None else [samples, outputs]
        for table in tables:
            for name in table.column_names:
                if name not in _UNSHOWN:
                    self.columns.setdefault(name, [None] * self.n).extend(_values(table.column(name)))
        for name, values in computed.items():
            self.columns.setdefault(name, [None] * self.n).extend(values)
        for position in range(self.width):
            row = evidence.outcome[position, : samples.num_rows]
            self.outcomes[position].append(_OUTCOMES[row].tobytes().decode())
            self._add_failed(position, np.flatnonzero(row == FAIL), evidence)
            self._add_unchecked(position, np.flatnonzero(row >= NOT_APPLICABLE), evidence)
        self.n += samples.num_rows
        for column in self.columns.values():
            column.extend([None] * (self.n - len(column)))

    def _add_failed(self, position: int, chosen: np.ndarray[Any, Any], evidence: Evidence) -> None:
        if not chosen.size:
            return
        atoms = self.failed[position]
        atoms["s"] += (chosen + self.n).tolist()
        atoms["c"] += evidence.code[position, chosen].tolist()
        atoms["e"] += evidence.severity[position, chosen].tolist()
        atoms["o"] += [None if np.isnan(value) else float(value) for value in evidence.observed[position, chosen]]
        atoms["w"] += [self._reason(evidence.reasons.at(position, int(index))) for index in chosen]

    def _add_unchecked(self, position: int, chosen: np.ndarray[Any, Any], evidence: Evidence) -> None:
        if chosen.size:
            self.unchecked[position]["s"] += (chosen + self.n).tolist()
            self.unchecked[position]["w"] += [
                self._reason(evidence.reasons.at(position, int(index))) for index in chosen
            ]

    def _reason(self, text: str | None) -> int:
        return -1 if text is None else self.reasons.setdefault(text, len(self.reasons))


def explorer(run: Run) -> dict[str, Any]:
    """The samples as plain data: all of them up to a bound, otherwise the part that the hash of their ids puts first."""
    most = SAMPLES
    while True:
        block = _block(run, most)
        if most <= 500 or len(packed(block)) <= _PACKED_BYTES:
            return block
        most //= 2


def packed(block: Mapping[str, Any]) -> bytes:
    """The block as it stands in the page."""
    return base64.b64encode(gzip.compress(msgspec.json.encode(block), 6, mtime=0))


def unpacked_digest(data: bytes) -> str:
    """SHA-256 of what a page has packed; an empty text where it cannot be unpacked."""
    try:
        return hashlib.sha256(gzip.decompress(base64.b64decode(data, validate=True))).hexdigest()
    except (ValueError, OSError, EOFError):
        return ""


def block_digest(block: Mapping[str, Any]) -> str:
    """SHA-256 of a block before it is packed."""
    return hashlib.sha256(msgspec.json.encode(block)).hexdigest()


def _block(run: Run, most: int) -> dict[str, Any]:
    layout, total = run.layout, run.samples_count
    columns, panels, agents = _Columns(layout.width), panels_of(run), _Agents(run)
    for part, samples, outputs, evidence in _batches(run, most):
        computed = panel_columns(run, panels, samples, outputs) | agent_columns(samples, agents.of(part))
        columns.add(samples, outputs, evidence, computed)
    shown = {name: _column(values) for name, values in columns.columns.items()}
    return {
        "n": columns.n,
        "total": total,
        "columns": shown,
        "slices": [name for name, column in shown.items() if _is_slice(name, column, columns.n)],
        "outcomes": ["".join(parts) for parts in columns.outcomes],
        "failed": columns.failed,
        "unchecked": columns.unchecked,
        "reasons": list(columns.reasons),
        "not_asked": NOT_ASKED,
        "codes": list(layout.codes),
        "rules": [{key: rule[key] for key in _RULE_KEYS if key in rule} for rule in layout.rules],
        "panels": [panel.to_dict() for panel in panels],
        "agent": agent_of(run),
    }


@dataclass
class _Agents:
    """How verdicts came about, a partition at a time."""

    run: Run
    part: int = -1
    table: pa.Table | None = None

    def of(self, part: int) -> pa.Table | None:
        """The table of a partition; None where the run has none."""
        if part != self.part:
            self.part, self.table = part, self.run.side_table("agent", part)
        return self.table


def _batches(run: Run, most: int) -> Iterator[tuple[int, pa.Table, pa.Table | None, Evidence]]:
    """Batches until there are as many samples as may be shown; a batch that goes beyond is cut."""
    part, group, left = -1, 0, most
    for number, samples, evidence in run.batches():
        group = group + 1 if number == part else 0
        part = number
        outputs = run.outputs(part, group)
        taken = min(left, samples.num_rows)
        yield (
            part,
            samples.slice(0, taken),
            None if outputs is None else outputs.slice(0, taken),
            evidence,
        )
        left -= taken
        if not left:
            return


def _values(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return [None] * len(column)
    return [_short(value) for value in column.to_pylist()]


def _short(value: Any) -> Any:
    """A value as the page shows it: long texts cut, numbers to nine digits, long lists not at all."""
    if isinstance(value, str):
        return value if len(value) <= _CHARACTERS else value[:_CHARACTERS] + " …"
    if isinstance(value, float):
        return float(f"{value:.9g}") if np.isfinite(value) else None
    if isinstance(value, list):
        return [_short(item) for item in value] if len(value) <= _ITEMS else f"{len(value)} values"
    return value if isinstance(value, int | bool | None) else str(value)


def _column(values: Sequence[Any]) -> dict[str, Any]:
    """Words as codes, anything else as it is."""
    if any(not isinstance(value, str | None) for value in values):
        return {"values": list(values)}
    words: dict[str, int] = {}
    codes = [-1 if value is None else words.setdefault(value, len(words)) for value in values]
    return {"words": list(words), "codes": codes}


def _is_slice(name: str, column: Mapping[str, Any], n: int) -> bool:
    known = {"sample", "model", "bucket", "verdict", "response"}
    return name not in known and name[0] != "@" and 2 <= len(column.get("words", ())) <= min(_SLICES, n // 2)
