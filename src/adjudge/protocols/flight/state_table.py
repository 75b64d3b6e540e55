"""A sample field by field: what was shown, predicted and true, how far off it is, the limit of a second, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.evidence.atoms import Atom
from adjudge.protocols.flight.fields import ANGLES, FIELDS

COLUMNS = ("field", "shown", "predicted", "true", "error", "jump limit", "outcome")


def state_tables(row: Mapping[str, Any], atoms: Sequence[Atom]) -> list[dict[str, Any]]:
    """One table a predicted second: a row a field."""
    steps = sorted({atom.step for atom in atoms if atom.family == "jump_dynamics"})
    jumps = {(atom.field, atom.step): atom for atom in atoms if atom.family == "jump_dynamics"}
    tables = []
    for step in steps:
        rows = []
        for place, field in enumerate(FIELDS):
            cell = step * len(FIELDS) + place
            answer, true = (_number(row[name], cell) for name in ("answer", "gold"))
            rows.append(
                [
                    field,
                    _number(row["shown"], place),
                    answer,
                    true,
                    _error(field, answer, true),
                    jumps[field, step].limits.get("high"),
                    _outcome(field, step, atoms),
                ]
            )
        second = f"t+{step + 1}" if len(steps) > 1 else "the next second"
        tables.append({"title": f"The state at {second}", "columns": list(COLUMNS), "rows": rows})
    return tables


def _number(values: Sequence[float] | None, place: int) -> float | None:
    value = None if values is None else values[place]
    return None if value is None or value != value else value  # noqa: PLR0124 -- NaN is no number


def _error(field: str, answer: float | None, true: float | None) -> float | None:
    if answer is None or true is None:
        return None
    apart = abs(answer - true)
    return min(apart % 360.0, 360.0 - apart % 360.0) if field in ANGLES else apart


def _outcome(field: str, step: int, atoms: Sequence[Atom]) -> str:
    """The worst that any atom about this field and second says."""
    about = [atom for atom in atoms if atom.field == field and atom.step == step]
    failed = [atom for atom in about if atom.failed]
    if failed:
        worst = "CRITICAL" if any(atom.severity == "CRITICAL" for atom in failed) else "WARNING"
        return f"{worst}: {', '.join(dict.fromkeys(atom.rule.partition('.')[2] for atom in failed))}"
    return "pass" if any(atom.outcome == "pass" for atom in about) else "not checked"
