"""Rows of the consistency inputs: typed, as columns, with a clear message for every row that cannot be used."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.base import Role
from adjudge.protocols.consistency import encoding
from adjudge.protocols.consistency.encoding import AGENTS
from adjudge.protocols.consistency.policy import CITATIONS, LABELS
from adjudge.readers.blocks import Block
from adjudge.readers.blocks import what_is_wrong as why

Label = Literal["VALID", "NOT_IN_CONTEXT", "REJECT", "ABSTAIN"]
BAD_KEY = "\x00unreadable"
SKIP_HINT = "(--on-bad-row skip counts such rows instead)"


class Key(msgspec.Struct, gc=False):
    """What names a row."""

    qid: str | int


class Agent(msgspec.Struct, gc=False):
    """What one agent said of an item."""

    label: Label | None = None
    reason: str | None = None
    votes: list[Label] | None = None
    temperature: float | None = None
    seed: int | None = None
    model: str | None = None
    evidence_digest: str | None = None


class AgentRow(Agent, gc=False, kw_only=True):
    """A row of one agent's own file."""

    qid: str | int


class Answer(msgspec.Struct, gc=False):
    """The answer that was judged."""

    claim: str | None = None
    citations: list[str | int] | None = None
    constraints_echo: Any = None


class Flags(msgspec.Struct, gc=False):
    """Hard red flags; absent is not raised."""

    provenance_violation: bool | None = None
    constraints_mismatch: bool | None = None


class AnswerRow(msgspec.Struct, gc=False, kw_only=True):
    """A row of the answers file."""

    qid: str | int
    answer_json: Answer | None = None
    retrieved_ids: list[str | int] | None = None
    flags: Flags | None = None
    constraints: Any = None


class PairRow(AnswerRow, gc=False, kw_only=True):
    """A row of a pairs file."""

    scholar: Agent
    auditor: Agent


class Item(msgspec.Struct, gc=False):
    """What names a row: the first of three keys that it has."""

    item: str | int | None = None
    qid: str | int | None = None
    id: str | int | None = None


class AgentRating(Item, gc=False):
    """A row of a file whose role is the rater."""

    label: str | int | None = None


class Rating(AgentRating, gc=False):
    """A row of a raters' file."""

    rater: str | int | None = None


class RatedLabel(msgspec.Struct, gc=False):
    """What one agent of a pair says."""

    label: str | int | None = None


class PairRating(Item, gc=False):
    """A row of a pairs file."""

    scholar: RatedLabel | None = None
    auditor: RatedLabel | None = None


RATING_TYPES: dict[str, Any] = {"raters": Rating, "pairs": PairRating, "scholar": AgentRating, "auditor": AgentRating}
ROW_TYPES: dict[str, Any] = {"pairs": PairRow, "scholar": AgentRow, "auditor": AgentRow, "answers": AnswerRow}
EXPECTED = {
    "pairs": "a pair has `qid`, `scholar` {label, reason} and `auditor` {label, reason}",
    "scholar": "a row has `qid`, `label` and `reason`",
    "auditor": "a row has `qid`, `label` and `reason`",
    "answers": "an answer has `qid`, `answer_json`, `retrieved_ids` and `flags`",
}
_DECODERS = {role: msgspec.json.Decoder(kind) for role, kind in ROW_TYPES.items()}
_key = msgspec.json.Decoder(Key)


def decoder(role: str) -> msgspec.json.Decoder[Any]:
    """The typed decoder of a role."""
    return _DECODERS[role]


def text_of(name: str | int) -> str:
    """An id as text: 7 and "7" are the same."""
    return name if name.__class__ is str else str(name)


def blank(role: str, text: bytes) -> Any:
    """A row that says nothing, in place of one that cannot be read: with its key, or with one for all without."""
    try:
        qid = _key.decode(text).qid
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        qid = BAD_KEY
    agents = {name: Agent() for name in AGENTS} if role == "pairs" else {}
    return ROW_TYPES[role](qid=qid, **agents)


def what_is_wrong(text: bytes, role: str, error: Exception) -> str:
    """Why a row cannot be read, in words: the label first, since that is what people get wrong."""
    if isinstance(error, msgspec.ValidationError):
        for name, label in _labels(text, role):
            if label is not None and label not in LABELS:
                return unknown_label(label, LABELS, f"{name} label")
    return why(error, EXPECTED[role])


def _labels(text: bytes, role: str) -> Iterator[tuple[str, Any]]:
    """(agent, label or vote) of a row of any shape."""
    try:
        row = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return
    if not isinstance(row, dict) or role == "answers":
        return
    for name, agent in [(name, row.get(name)) for name in AGENTS] if role == "pairs" else [(role, row)]:
        if isinstance(agent, dict):
            yield name, agent.get("label")
            votes = agent.get("votes")
            yield from ((name, vote) for vote in (votes if isinstance(votes, list) else ()))


def unknown_label(label: Any, labels: Sequence[str], what: str = "label") -> str:
    """The message for a label outside the label space: the nearest one, and how to declare it."""
    text = label if isinstance(label, str) else str(label)
    folded = {known.casefold(): known for known in labels}
    near = folded.get(text.strip().casefold()) or next(iter(difflib.get_close_matches(text, labels, n=1)), None)
    shown = text if len(text) <= 40 else text[:39] + "…"
    hint = f" Did you mean {near!r}?" if near else ""
    declare = ",".join((*labels, shown)) if "," not in shown and "\n" not in shown else "…"
    return f"{what} {shown!r} is not one of {', '.join(labels)}.{hint} (--labels {declare} declares it)"


def majority(votes: Sequence[str]) -> str:
    """The label of more than half of the votes, otherwise ABSTAIN."""
    label, count = Counter(votes).most_common(1)[0]
    return label if 2 * count > len(votes) else "ABSTAIN"


def refuse(what: str, files: Sequence[str], file: int, line: int) -> InputError:
    """The error for a row, with its place."""
    return InputError(what, file=files[file], line=line, hint=SKIP_HINT)


def place_of(files: Sequence[str], file: int, line: int) -> str:
    """A row by file and line; the whole path where two files have the same name."""
    name = Path(files[file]).name
    alone = [Path(path).name for path in files].count(name) == 1
    return f"{name if alone else files[file]}:{line}"


_NONE, _IN, _OUT, _UNVERIFIABLE = range(len(CITATIONS))
_CODE: dict[str | None, int] = {label: code for code, label in enumerate(LABELS)} | {None: encoding.ABSENT}
_TRUTH: dict[bool | None, int] = {None: encoding.ABSENT, False: 0, True: 1}
_NO_ANSWER = Answer()
_NO_FLAGS = Flags()


class BlockReader:
    """Reads the rows of one role. A row that cannot be used is an error, or, with `skip_bad`, a row with a note."""

    def __init__(self, role: str, *, skip_bad: bool) -> None:
        self.role, self.skip_bad = role, skip_bad
        self._decoder = decoder(role)

    def read(self, block: Block) -> pa.Table:
        """A row for every record, in order."""
        reasons: dict[int, str] = {}  # why a row cannot be read, by the identity of what stands for it

        def unreadable(text: bytes, error: Exception) -> Any:
            row = blank(self.role, text)
            reasons[id(row)] = what_is_wrong(text, self.role, error)
            return row

        rows = block.decode(self._decoder, EXPECTED[self.role], unreadable=unreadable)
        codes = encoding.blank(len(rows))
        texts: dict[str, pa.Array] = {}
        notes: dict[int, str] = {}
        for name, agents in self._agents(rows).items():
            texts |= _agent_columns(name, agents, codes[name])
            for place in np.flatnonzero(codes[name]["label"] == encoding.ABSENT).tolist():
                notes.setdefault(place, f"{name} has no label; expected one of {', '.join(LABELS)} (or `votes`)")
        if self.role in {"pairs", "answers"}:
            texts["claim"] = _answer_columns(rows, codes["answer"])
        if reasons:
            unread = [place for place, row in enumerate(rows) if id(row) in reasons]
            codes["status"][unread] = encoding.BAD_ROW
            notes |= {place: reasons[id(rows[place])] for place in unread}
        if notes:
            if not self.skip_bad:
                first = min(notes)
                raise InputError(notes[first], file=block.path, line=int(block.lines[first]), hint=SKIP_HINT)
            texts["note"] = pa.array([notes.get(place) for place in range(len(rows))], pa.string())
        table = encoding.table(pa.array([text_of(row.qid) for row in rows], pa.string()), codes, texts)
        table = table.append_column("file", pa.array(np.full(len(rows), block.file, dtype=np.int32)))
        return table.append_column("line", pa.array(block.lines))

    def _agents(self, rows: Sequence[Any]) -> dict[str, Sequence[Agent]]:
        """What each agent of the role says, row by row."""
        if self.role == "pairs":
            return {"scholar": [row.scholar for row in rows], "auditor": [row.auditor for row in rows]}
        return {} if self.role == "answers" else {self.role: rows}


def _agent_columns(name: str, agents: Sequence[Agent], codes: encoding.Codes) -> dict[str, pa.Array]:
    """The texts of an agent; its label, how reproducible that is and whether votes were reduced to it go to the codes."""
    codes["label"] = [_CODE[agent.label] for agent in agents]
    codes["seeding"] = [
        encoding.NOT_A_MODEL
        if agent.model is None and agent.temperature is None and agent.seed is None
        else encoding.STABLE
        if agent.temperature == 0 or agent.seed is not None
        else encoding.UNSTABLE
        for agent in agents
    ]
    for place in [place for place, agent in enumerate(agents) if agent.votes]:
        label, reduced = agents[place].label, majority(agents[place].votes or ())
        contradicted = label is not None and label != reduced
        codes[place] = (_CODE[reduced], encoding.CONTRADICTED if contradicted else encoding.STABLE, 1)
    return {
        f"{name}_reason": pa.array([agent.reason for agent in agents], pa.string()),
        f"{name}_digest": pa.array([agent.evidence_digest for agent in agents], pa.string()),
    }


def _answer_columns(rows: Sequence[AnswerRow], codes: encoding.Codes) -> pa.StringArray:
    """The claims; what else is known of the answers goes to the codes."""
    answers = [row.answer_json or _NO_ANSWER for row in rows]
    flags = [row.flags or _NO_FLAGS for row in rows]
    claims = [answer.claim for answer in answers]
    codes["answered"] = [row.answer_json is not None or row.flags is not None for row in rows]
    codes["provenance"] = [_TRUTH[flag.provenance_violation] for flag in flags]
    codes["constraints"] = [_TRUTH[flag.constraints_mismatch] for flag in flags]
    codes["claim"] = [
        encoding.NO_CLAIM
        if text is None
        else encoding.REFUSAL_CLAIM
        if text == encoding.REFUSAL
        else encoding.OTHER_CLAIM
        for text in claims
    ]
    codes["echoed"] = [
        encoding.ABSENT if row.constraints is None else answer.constraints_echo == row.constraints
        for row, answer in zip(rows, answers, strict=True)
    ]
    codes["citations"], codes["out_of_scope"] = _scopes(
        [answer.citations for answer in answers], [row.retrieved_ids for row in rows]
    )
    return pa.array(claims, pa.string())


def _scopes(
    cited: list[list[str | int] | None], retrieved: list[list[str | int] | None]
) -> tuple[encoding.Small, NDArray[np.int32]]:
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


ROLES = {
    "pairs": Role(PairRow, (("qid",), ("scholar",), ("auditor",)), "adjudge consistency --pairs FILE"),
    "scholar": Role(AgentRow, (("qid",), ("label", "votes")), "adjudge consistency --scholar FILE --auditor …"),
    "answers": Role(
        AnswerRow, (("qid",), ("answer_json", "flags")), "adjudge consistency --scholar … --auditor … --answers FILE"
    ),
    "raters": Role(Rating, (("item", "qid", "id"), ("label",)), "adjudge consistency --raters FILE …"),
}
