"""Rows of the consistency inputs: typed decoding, and a clear message for every row that cannot be used."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from adjudge.errors import InputError
from adjudge.protocols.consistency.batch import AGENTS
from adjudge.protocols.consistency.policy import LABELS
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


ROLES: dict[str, Any] = {"pairs": PairRow, "scholar": AgentRow, "auditor": AgentRow, "answers": AnswerRow}
EXPECTED = {
    "pairs": "a pair has `qid`, `scholar` {label, reason} and `auditor` {label, reason}",
    "scholar": "a row has `qid`, `label` and `reason`",
    "auditor": "a row has `qid`, `label` and `reason`",
    "answers": "an answer has `qid`, `answer_json`, `retrieved_ids` and `flags`",
}
_DECODERS = {role: msgspec.json.Decoder(kind) for role, kind in ROLES.items()}
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
    return ROLES[role](qid=qid, **agents)


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
