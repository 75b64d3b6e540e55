"""The table that keeps how verdicts came about: a row a sample, written by the adjudicator, read by everything after it.

Statuses of the checklist stand as one byte an item. Reasons are lists: the position of each reason's worst atom, how
many atoms it has, and the positions of all of them one after the other; the agent's words and quotes beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.evidence.atoms import Atom
from adjudge.verdict.attribution import Reasons
from adjudge.verdict.checklist import STATUSES
from adjudge.verdict.deliberation import DECIDED_BY, Deliberation

_PLACES, _TEXTS, _FLAGS = pa.list_(pa.int16()), pa.list_(pa.string()), pa.list_(pa.bool_())
_LISTS = {
    "reason_worst": _PLACES,
    "reason_sizes": _PLACES,
    "reason_atoms": _PLACES,
    "reason_words": _TEXTS,
    "reason_quotes": _TEXTS,
    "reason_verified": _FLAGS,
    "item_sizes": _PLACES,
    "item_atoms": _PLACES,
    "quotes": _TEXTS,
    "quotes_verified": _FLAGS,
    "votes": _TEXTS,
    "refused": _TEXTS,
}


def agent_table(decided_by: NDArray[np.int8], statuses: NDArray[np.uint8], **lists: pa.Array) -> pa.Table:
    """The table of a batch; a list column that is not given is null. `statuses` is shaped (items, samples)."""
    width, n = statuses.shape
    packed = pa.py_buffer(np.ascontiguousarray(statuses.T))
    return pa.table(
        {
            "row": pa.array(np.arange(n, dtype=np.uint32)),
            "decided_by": pa.DictionaryArray.from_arrays(pa.array(decided_by), pa.array(DECIDED_BY)),
            "status": pa.Array.from_buffers(pa.binary(width), n, [None, packed]),
            **{name: lists.get(name, pa.nulls(n, kind)) for name, kind in _LISTS.items()},
        }
    )


def reason_lists(reasons: Reasons, n: int) -> dict[str, pa.Array]:
    """The groups of a batch as lists a sample."""
    groups = np.concatenate([[0], np.cumsum(np.bincount(reasons.sample, minlength=n))]).astype(np.int32)
    cells = np.concatenate([[0], np.cumsum(reasons.size)]).astype(np.int32)
    offsets = pa.array(groups)
    return {
        "reason_worst": pa.ListArray.from_arrays(offsets, pa.array(reasons.worst)),
        "reason_sizes": pa.ListArray.from_arrays(offsets, pa.array(reasons.size)),
        "reason_atoms": pa.ListArray.from_arrays(pa.array(cells[groups]), pa.array(reasons.atoms)),
    }


def deliberation_lists(rows: Sequence[Deliberation | None], reasons: Reasons) -> dict[str, pa.Array]:
    """What agents answered as lists a sample; a sample without reasons of an agent's own has those of the rules."""
    by_rules = {name: column.to_pylist() for name, column in reason_lists(reasons, len(rows)).items()}
    lists: dict[str, list[Any]] = {name: [] for name in _LISTS if not name.startswith("item_")}
    for place, row in enumerate(rows):
        stored = {name: column[place] for name, column in by_rules.items()} | (_lists_of(row) if row else {})
        for name, column in lists.items():
            column.append(stored.get(name))
    return {name: pa.array(column, _LISTS[name]) for name, column in lists.items()}


def _lists_of(row: Deliberation) -> dict[str, Any]:
    lists: dict[str, Any] = {
        "quotes": [quote.text for quote in row.quotes] or None,
        "quotes_verified": [quote.verified for quote in row.quotes] or None,
        "votes": list(row.votes) or None,
        "refused": list(row.refused) or None,
    }
    if row.reasons:
        lists |= {
            "reason_worst": [reason.atoms[0] for reason in row.reasons],
            "reason_sizes": [len(reason.atoms) for reason in row.reasons],
            "reason_atoms": [position for reason in row.reasons for position in reason.atoms],
            "reason_words": [reason.words for reason in row.reasons],
            "reason_quotes": [None if reason.quote is None else reason.quote.text for reason in row.reasons],
            "reason_verified": [None if reason.quote is None else reason.quote.verified for reason in row.reasons],
        }
    return lists


@dataclass(frozen=True)
class StoredReason:
    """One reason of a verdict as a run keeps it; `words` are the agent's own, beside the worst atom's message."""

    rank: int
    worst: Atom
    atoms: tuple[Atom, ...]
    words: str | None
    quote: str | None
    verified: bool | None

    @property
    def severity(self) -> str:
        """The worst among its atoms."""
        return "CRITICAL" if any(atom.severity == "CRITICAL" for atom in self.atoms) else self.worst.severity


def stored_reasons(row: dict[str, Any], atoms: Sequence[Atom]) -> list[StoredReason]:
    """The reasons in one row of the table."""
    sizes = row["reason_sizes"] or []
    nothing = [None] * len(sizes)
    edges = np.cumsum([0, *sizes]).tolist()
    at = {atom.position: atom for atom in atoms}
    return [
        StoredReason(
            rank=rank + 1,
            worst=at[row["reason_worst"][rank]],
            atoms=tuple(at[position] for position in row["reason_atoms"][low:high]),
            words=(row["reason_words"] or nothing)[rank],
            quote=(row["reason_quotes"] or nothing)[rank],
            verified=(row["reason_verified"] or nothing)[rank],
        )
        for rank, (low, high) in enumerate(pairwise(edges))
    ]


def stored_statuses(row: dict[str, Any]) -> list[str]:
    """The status of every item of the checklist in one row of the table."""
    return [STATUSES[code] for code in row["status"]]


def stored_item_atoms(row: dict[str, Any], atoms: Sequence[Atom]) -> list[list[Atom]] | None:
    """The atoms that every item rests on, where an agent organised them itself; None where the rules tell them."""
    if row["item_sizes"] is None:
        return None
    edges = np.cumsum([0, *row["item_sizes"]]).tolist()
    at = {atom.position: atom for atom in atoms}
    return [[at[position] for position in row["item_atoms"][low:high]] for low, high in pairwise(edges)]
