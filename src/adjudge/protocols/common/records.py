"""What the records of several protocols have in common: citations as ids, atoms as plain data, and the columns of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.evidence.atoms import Atom
from adjudge.evidence.citations import unpack_citations

OF_ATOM = ("id", "rule", "field", "outcome", "severity", "observed", "message")
"""What a record says of an atom, where its protocol asks for nothing else."""


def cited(row: Mapping[str, Any], atoms: Sequence[Atom]) -> list[str]:
    """The ids of the atoms that a row's verdict rests on."""
    positions = set(unpack_citations(row["cites"], len(atoms)).tolist())
    return [atom.id for atom in atoms if atom.position in positions]


def plain_atoms(atoms: Sequence[Atom], keys: Sequence[str] = OF_ATOM) -> list[dict[str, Any]]:
    """Atoms as plain data, with these keys."""
    return [{key: getattr(atom, key) for key in keys} for atom in atoms]


def picked(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Some columns of a row."""
    return {name: row[name] for name in names}


def other_columns(row: Mapping[str, Any], *shown: str) -> dict[str, Any]:
    """The columns of a row beside those `shown` elsewhere and its place in the run's tables."""
    return {name: value for name, value in row.items() if name not in {"part", "row", "cites", *shown}}
