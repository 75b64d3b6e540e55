"""From a block of records to the table of a role: typed rows, their codes and their texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.consistency import batch as b
from adjudge.protocols.consistency import rows as r
from adjudge.protocols.consistency import tables
from adjudge.protocols.consistency.policy import CITATIONS, LABELS
from adjudge.readers.blocks import Block

_NONE, _IN, _OUT, _UNVERIFIABLE = range(len(CITATIONS))
_CODE: dict[str | None, int] = {label: code for code, label in enumerate(LABELS)} | {None: b.ABSENT}
_TRUTH: dict[bool | None, int] = {None: b.ABSENT, False: 0, True: 1}
_NO_ANSWER = r.Answer()
_NO_FLAGS = r.Flags()


class BlockReader:
    """Reads the rows of one role. A row that cannot be used is an error, or, with `skip_bad`, a row with a note."""

    def __init__(self, role: str, *, skip_bad: bool) -> None:
        self.role, self.skip_bad = role, skip_bad
        self._decoder = r.decoder(role)

    def read(self, block: Block) -> pa.Table:
        """A row for every record, in order."""
        reasons: dict[int, str] = {}  # why a row cannot be read, by the identity of what stands for it

        def unreadable(text: bytes, error: Exception) -> Any:
            row = r.blank(self.role, text)
            reasons[id(row)] = r.what_is_wrong(text, self.role, error)
            return row

        rows = block.decode(self._decoder, r.EXPECTED[self.role], unreadable=unreadable)
        codes = tables.blank(len(rows))
        texts: dict[str, pa.Array] = {}
        notes: dict[int, str] = {}
        for name, agents in self._agents(rows).items():
            texts |= _agent_columns(name, agents, codes[name])
            for place in np.flatnonzero(codes[name]["label"] == b.ABSENT).tolist():
                notes.setdefault(place, f"{name} has no label; expected one of {', '.join(LABELS)} (or `votes`)")
        if self.role in {"pairs", "answers"}:
            texts["claim"] = _answer_columns(rows, codes["answer"])
        if reasons:
            unread = [place for place, row in enumerate(rows) if id(row) in reasons]
            codes["status"][unread] = b.BAD_ROW
            notes |= {place: reasons[id(rows[place])] for place in unread}
        if notes:
            if not self.skip_bad:
                first = min(notes)
                raise InputError(notes[first], file=block.path, line=int(block.lines[first]), hint=r.SKIP_HINT)
            texts["note"] = pa.array([notes.get(place) for place in range(len(rows))], pa.string())
        table = tables.table(pa.array([r.text_of(row.qid) for row in rows], pa.string()), codes, texts)
        table = table.append_column("file", pa.array(np.full(len(rows), block.file, dtype=np.int32)))
        return table.append_column("line", pa.array(block.lines))

    def _agents(self, rows: Sequence[Any]) -> dict[str, Sequence[r.Agent]]:
        """What each agent of the role says, row by row."""
        if self.role == "pairs":
            return {"scholar": [row.scholar for row in rows], "auditor": [row.auditor for row in rows]}
        return {} if self.role == "answers" else {self.role: rows}


def _agent_columns(name: str, agents: Sequence[r.Agent], codes: tables.Codes) -> dict[str, pa.Array]:
    """The texts of an agent; its label, how reproducible that is and whether votes were reduced to it go to the codes."""
    codes["label"] = [_CODE[agent.label] for agent in agents]
    codes["seeding"] = [
        b.NOT_A_MODEL
        if agent.model is None and agent.temperature is None and agent.seed is None
        else b.STABLE
        if agent.temperature == 0 or agent.seed is not None
        else b.UNSTABLE
        for agent in agents
    ]
    for place in [place for place, agent in enumerate(agents) if agent.votes]:
        label, reduced = agents[place].label, r.majority(agents[place].votes or ())
        contradicted = label is not None and label != reduced
        codes[place] = (_CODE[reduced], b.CONTRADICTED if contradicted else b.STABLE, 1)
    return {
        f"{name}_reason": pa.array([agent.reason for agent in agents], pa.string()),
        f"{name}_digest": pa.array([agent.evidence_digest for agent in agents], pa.string()),
    }


def _answer_columns(rows: Sequence[r.AnswerRow], codes: tables.Codes) -> pa.StringArray:
    """The claims; what else is known of the answers goes to the codes."""
    answers = [row.answer_json or _NO_ANSWER for row in rows]
    flags = [row.flags or _NO_FLAGS for row in rows]
    claims = [answer.claim for answer in answers]
    codes["answered"] = [row.answer_json is not None or row.flags is not None for row in rows]
    codes["provenance"] = [_TRUTH[flag.provenance_violation] for flag in flags]
    codes["constraints"] = [_TRUTH[flag.constraints_mismatch] for flag in flags]
    codes["claim"] = [
        b.NO_CLAIM if text is None else b.REFUSAL_CLAIM if text == b.REFUSAL else b.OTHER_CLAIM for text in claims
    ]
    codes["echoed"] = [
        b.ABSENT if row.constraints is None else answer.constraints_echo == row.constraints
        for row, answer in zip(rows, answers, strict=True)
    ]
    codes["citations"], codes["out_of_scope"] = _scopes(
        [answer.citations for answer in answers], [row.retrieved_ids for row in rows]
    )
    return pa.array(claims, pa.string())


def _scopes(
    cited: list[list[str | int] | None], retrieved: list[list[str | int] | None]
) -> tuple[b.Small, NDArray[np.int32]]:
    """Where the citations of each answer stand, and how many are not among the retrieved ids (1 and "1" are the same)."""
    states = np.array(
        [
            _NONE if not ids else _UNVERIFIABLE if known is None else _OUT if set(ids).difference(known) else _IN
            for ids, known in zip(cited, retrieved, strict=True)
        ],
        dtype=np.int8,
    )
    outside = np.zeros(states.size, dtype=np.int32)
    for place in np.flatnonzero(states >= _OUT).tolist():
        known = {str(name) for name in retrieved[place] or ()}
        outside[place] = sum(str(name) not in known for name in cited[place] or ())
        if not outside[place]:
            states[place] = _IN
    return states, outside
