"""What the records of several protocols have in common: citations as ids, atoms as plain data, and how a verdict came about.

Everything is read from what the run keeps; nobody is asked again. A run of a version that kept nothing is organised anew
from its evidence, by the rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.evidence.atoms import Atom, unpack_citations
from adjudge.runs.run import Run
from adjudge.verdict.adjudicator import (
    AGENT_TABLE,
    Adjudicator,
    StoredReason,
    stored_item_atoms,
    stored_reasons,
    stored_statuses,
)
from adjudge.verdict.agent import Item, RuleBasedAgent, atoms_of, checklist_of

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


def agent_output(run: Run, row: dict[str, Any], atoms: Sequence[Atom]) -> dict[str, Any]:
    """The part of a record that the agent is answerable for."""
    stored = run.agent_row(row) or _anew(run, row)
    items = _items(run)
    bound = stored_item_atoms(stored, atoms) or [atoms_of(item, atoms, run.layout.rules) for item in items]
    quotes = zip(stored["quotes"] or (), stored["quotes_verified"] or (), strict=True)
    return {
        "checklist": [
            {
                "item_id": item.item_id,
                "constraint_id": ", ".join(item.rules),
                "title": item.title,
                "status": status,
                "evidence_ids": [atom.id for atom in item_atoms],
            }
            for item, status, item_atoms in zip(items, stored_statuses(stored), bound, strict=True)
        ],
        "adjudication": row["verdict"],
        "decided_by": stored["decided_by"],
        "cites": cited(row, atoms),
        "attribution": [_reason(reason) for reason in stored_reasons(stored, atoms)],
        "quotes": [{"text": text, "verified": verified} for text, verified in quotes],
        "votes": list(stored["votes"] or ()),
        "refused": list(stored["refused"] or ()),
    }


def _items(run: Run) -> list[Item]:
    if run.agent is None:
        return checklist_of(run.layout.rules)
    return [Item(item["item_id"], item["title"], tuple(item["rules"])) for item in run.agent["checklist"]]


def _anew(run: Run, row: dict[str, Any]) -> dict[str, Any]:
    """How the rules organise a sample."""
    rules = Adjudicator(RuleBasedAgent(), run.layout.rules, task="", top=run.manifest.config.get("top_k", 5))
    tables = rules.judge_by_rules(run.evidence_of(row["part"], row["row"])).tables
    stored: dict[str, Any] = tables[AGENT_TABLE].to_pylist()[0]
    return stored


def _reason(reason: StoredReason) -> dict[str, Any]:
    words = {} if reason.words is None else {"words": reason.words}
    quote = {} if reason.quote is None else {"quote": reason.quote, "quote_verified": reason.verified}
    return {
        "rank": reason.rank,
        "reason": reason.worst.message,
        **words,
        **quote,
        "rule": reason.worst.rule,
        "field": reason.worst.field,
        "severity": reason.severity,
        "count": len(reason.atoms),
        "evidence_ids": [atom.id for atom in reason.atoms],
    }
