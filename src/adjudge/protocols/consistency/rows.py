"""Rows of the consistency inputs: typed decoding, and a clear message for every row that cannot be used."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from adjudge.errors import InputError
from adjudge.protocols.consistency.policy import LABELS

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
    constraints_echo: msgspec.Raw = msgspec.Raw()


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
    constraints: msgspec.Raw = msgspec.Raw()


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


def key_or_bad(text: bytes) -> str:
    """The key of a row that cannot be used, or one key for all rows without."""
    try:
        qid = _key.decode(text).qid
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return BAD_KEY
    return qid if isinstance(qid, str) else str(qid)


def what_is_wrong(text: bytes, role: str, error: Exception) -> str:
    """Why a row cannot be used, in words: the label first, since that is what people get wrong."""
    if isinstance(error, RecursionError):
        return "is nested too deep to be read"
    if not isinstance(error, msgspec.ValidationError):
        return f"is not JSON: {error}; {EXPECTED[role]}"
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as broken:
        return f"is not JSON: {broken}; {EXPECTED[role]}"
    if not isinstance(data, dict):
        return f"is a {type(data).__name__}; {EXPECTED[role]}"
    holders = [(name, data.get(name)) for name in ("scholar", "auditor")] if role == "pairs" else [(role, data)]
    for name, held in holders if role != "answers" else ():
        if not isinstance(held, dict):
            continue
        for found in (held.get("label"), *(held["votes"] if isinstance(held.get("votes"), list) else ())):
            if found is not None and found not in LABELS:
                return unknown_label(found, LABELS, f"{name} label")
    return f"{error}; {EXPECTED[role]}"


def unknown_label(found: Any, labels: Sequence[str], what: str = "label") -> str:
    """The message for a label outside the label space: the nearest one, and how to declare it."""
    text = found if isinstance(found, str) else str(found)
    folded = {label.casefold(): label for label in labels}
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
