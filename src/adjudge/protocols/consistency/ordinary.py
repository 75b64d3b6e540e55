"""Rows read one by one: the codes and texts of rows that typed decoding has made into objects."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.protocols.consistency import batch as b
from adjudge.protocols.consistency import rows as r
from adjudge.protocols.consistency import tables
from adjudge.protocols.consistency.policy import CITATIONS, LABELS

NONE, IN, OUT, UNVERIFIABLE = range(len(CITATIONS))
NO_AGENT = r.Agent()
NO_PAIR = r.PairRow(qid="", scholar=NO_AGENT, auditor=NO_AGENT)

_CODE: dict[str | None, int] = {label: code for code, label in enumerate(LABELS)} | {None: b.ABSENT}
_TRUTH: dict[bool | None, int] = {None: b.ABSENT, False: 0, True: 1}
_NO_ANSWER = r.Answer()
_NO_FLAGS = r.Flags()
_LABEL, _REASON, _DIGEST = attrgetter("label"), attrgetter("reason"), attrgetter("evidence_digest")
_ORIGIN = tuple(attrgetter(name) for name in ("votes", "model", "temperature", "seed"))
_CLAIM, _CITATIONS, _RETRIEVED = attrgetter("claim"), attrgetter("citations"), attrgetter("retrieved_ids")
_PROVENANCE, _MISMATCH = attrgetter("provenance_violation"), attrgetter("constraints_mismatch")


def as_pair(role: str, row: Any) -> r.PairRow:
    """A row of any role as a pair of which only some parts are said."""
    if role == "pairs":
        found: r.PairRow = row
        return found
    pair = r.PairRow(qid=row.qid, scholar=NO_AGENT, auditor=NO_AGENT)
    if role == "answers":
        pair.answer_json, pair.retrieved_ids = row.answer_json, row.retrieved_ids
        pair.flags, pair.constraints = row.flags, row.constraints
    elif role == "scholar":
        pair.scholar = row
    else:
        pair.auditor = row
    return pair


def columns(rows: list[r.PairRow]) -> tuple[tables.Codes, dict[str, pa.Array]]:
    """The codes and texts of some rows."""
    answers = [row.answer_json or _NO_ANSWER for row in rows]
    flags = [row.flags or _NO_FLAGS for row in rows]
    codes = tables.blank(len(rows))
    texts: dict[str, pa.Array] = {}
    for name, side in (("scholar", [row.scholar for row in rows]), ("auditor", [row.auditor for row in rows])):
        _agents(side, codes[name])
        texts[f"{name}_reason"] = pa.array(list(map(_REASON, side)), pa.string())
        texts[f"{name}_digest"] = pa.array(list(map(_DIGEST, side)), pa.string())
    claims = list(map(_CLAIM, answers))
    texts["claim"] = pa.array(claims, pa.string())
    answer = codes["answer"]
    answer["answered"] = [row.answer_json is not None or row.flags is not None for row in rows]
    answer["provenance"] = [_TRUTH[value] for value in map(_PROVENANCE, flags)]
    answer["constraints"] = [_TRUTH[value] for value in map(_MISMATCH, flags)]
    answer["claim"] = [
        b.NO_CLAIM if text is None else b.REFUSAL_CLAIM if text == b.REFUSAL else b.OTHER_CLAIM for text in claims
    ]
    answer["citations"], answer["out_of_scope"] = _scopes(list(map(_CITATIONS, answers)), list(map(_RETRIEVED, rows)))
    for index, row in enumerate(rows):
        if row.constraints is not NO_PAIR.constraints:
            answer["echoed"][index] = _echoed(row.constraints, answers[index])
    return codes, texts


def _agents(side: list[r.Agent], codes: tables.Codes) -> None:
    """Label, how reproducible it is, and whether votes were reduced to it."""
    codes["label"] = [_CODE[label] for label in map(_LABEL, side)]
    if not any(any(value is not None for value in map(get, side)) for get in _ORIGIN):
        return
    for index, agent in enumerate(side):
        if agent.votes:
            reduced = r.majority(agent.votes)
            contradicted = agent.label is not None and agent.label != reduced
            codes[index] = (_CODE[reduced], b.CONTRADICTED if contradicted else b.STABLE, 1)
        elif agent.model is not None or agent.temperature is not None or agent.seed is not None:
            stable = agent.temperature == 0 or agent.seed is not None
            codes["seeding"][index] = b.STABLE if stable else b.UNSTABLE


def _scopes(
    cited: list[list[str | int] | None], retrieved: list[list[str | int] | None]
) -> tuple[b.Small, NDArray[np.int32]]:
    """Where the citations of each answer stand, and how many are not among the retrieved ids."""
    states = np.array(
        [
            NONE if not own else UNVERIFIABLE if known is None else OUT if set(own).difference(known) else IN
            for own, known in zip(cited, retrieved, strict=True)
        ],
        dtype=np.int8,
    )
    outside = np.zeros(states.size, dtype=np.int32)
    for index in np.flatnonzero(states >= OUT).tolist():
        own, known = cited[index] or [], {str(name) for name in retrieved[index] or ()}
        outside[index] = sum(str(name) not in known for name in own)
        if not outside[index]:
            states[index] = IN
    return states, outside


def _echoed(constraints: msgspec.Raw, answer: r.Answer) -> int:
    given = bytes(constraints)
    if not given or given == b"null":
        return b.ABSENT
    echo = bytes(answer.constraints_echo)
    return int(echo == given or (bool(echo) and msgspec.json.decode(echo) == msgspec.json.decode(given)))
