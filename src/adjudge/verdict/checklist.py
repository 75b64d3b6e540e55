"""The checklist: one item for every rule the graph can check, bound to its atoms by rule code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.evidence.atoms import Atom


@dataclass(frozen=True)
class Item:
    """One line of the checklist; `unknown` means that no atom of the rule could be applied."""

    item_id: str
    constraint_id: str
    title: str
    status: str
    evidence_ids: tuple[str, ...]


def checklist(found: Sequence[Atom], rules: Sequence[dict[str, Any]]) -> list[Item]:
    """Items in the order of the rule table; codes that share their atoms have an item each."""
    codes = [entry for rule in rules for entry in (rule, *rule["variants"])]
    shared = {entry["code"]: rule["code"] for rule in rules for entry in (rule, *rule["variants"])}
    items = []
    for number, entry in enumerate(codes, 1):
        code = entry["code"]
        own = [atom for atom in found if atom.rule == code]
        # A code that shares its atoms has none of its own where another variant, or the pass, stands in its place.
        bound = own or [atom for atom in found if shared[atom.rule] == shared[code] and atom.outcome == "pass"]
        items.append(
            Item(
                item_id=f"CHECK_{number:03d}",
                constraint_id=code,
                title=entry["title"],
                status=_status(bound),
                evidence_ids=tuple(atom.id for atom in bound),
            )
        )
    return items


def _status(bound: Sequence[Atom]) -> str:
    if any(atom.failed for atom in bound):
        return "fail"
    return "pass" if any(atom.outcome == "pass" for atom in bound) else "unknown"
