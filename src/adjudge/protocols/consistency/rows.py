"""Rows of the consistency inputs: typed, as columns, with a clear message for every row that cannot be used."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.base import Role
from adjudge.protocols.common.constraints import comparable
from adjudge.protocols.consistency import encoding
from adjudge.protocols.consistency.encoding import AGENTS
from adjudge.protocols.consistency.policy import CITATIONS, LABELS, RED_FLAGS
from adjudge.readers.blocks import Block, what_is_wrong
from adjudge.readers.texts import NO_TEXT, texts_of

BAD_KEY = "\x00unreadable"
SKIP_HINT = "(--on-bad-row skip counts such rows instead)"
_NONE, _IN, _OUT, _UNVERIFIABLE = range(len(CITATIONS))
_SEPARATORS = re.compile(r"\s*[;|]\s*")


class Key(msgspec.Struct, gc=False):
    """What names a row."""

    qid: str | int


class Agent(msgspec.Struct, gc=False):
    """What one agent said of an item."""

    label: str | int | None = None
    reason: msgspec.Raw = NO_TEXT
    votes: list[str | int] | None = None
    temperature: float | None = None
    seed: int | None = None
    model: str | None = None
    evidence_digest: str | None = None


class AgentRow(Agent, gc=False, kw_only=True):
    """A row of one agent's own file."""

    qid: str | int


class Answer(msgspec.Struct, gc=False):
    """The answer that was judged."""

    claim: msgspec.Raw = NO_TEXT
    citations: list[str | int] | None = None
    constraints_echo: Any = None


class AnswerRow(msgspec.Struct, gc=False, kw_only=True):
    """A row of the answers file. What a table spreads over columns is put together by `from_columns`."""

    qid: str | int
    answer_json: Answer | None = None
    retrieved_ids: list[str | int] | None = None
    flags: dict[str, bool | None] | None = None
    constraints: Any = None
    claim: UnsetType = UNSET
    citations: UnsetType = UNSET
    constraints_echo: UnsetType = UNSET
    provenance_violation: UnsetType = UNSET
    constraints_mismatch: UnsetType = UNSET


class PairRow(AnswerRow, gc=False, kw_only=True):
    """A row of a pairs file."""

    scholar: Agent
    auditor: Agent
    scholar_reason: UnsetType = UNSET
    auditor_reason: UnsetType = UNSET


class Rating(msgspec.Struct, gc=False):
    """A row of a raters' file, named by the first of three keys that it has."""

    item: str | int | None = None
    qid: str | int | None = None
    id: str | int | None = None
    label: str | int | None = None
    rater: str | int | None = None


ROW_TYPES: dict[str, Any] = {"pairs": PairRow, "scholar": AgentRow, "auditor": AgentRow, "answers": AnswerRow}
EXPECTED = {
    "pairs": "a pair has `qid`, `scholar` {label, reason} and `auditor` {label, reason}",
    "scholar": "a row has `qid`, `label` and `reason`",
    "auditor": "a row has `qid`, `label` and `reason`",
    "answers": "an answer has `qid`, `answer_json`, `retrieved_ids` and `flags`",
}
ROLES = {
    "pairs": Role(PairRow, (("qid",), ("scholar",), ("auditor",)), "adjudge consistency --pairs FILE"),
    "scholar": Role(AgentRow, (("qid",), ("label", "votes")), "adjudge consistency --scholar FILE --auditor …"),
    "answers": Role(
        AnswerRow, (("qid",), ("answer_json", "flags")), "adjudge consistency --scholar … --auditor … --answers FILE"
    ),
    "raters": Role(Rating, (("item", "qid", "id"), ("label",)), "adjudge consistency --raters FILE …"),
}
_DECODERS = {role: msgspec.json.Decoder(kind) for role, kind in ROW_TYPES.items()}
_LOOSE_DECODERS = {role: msgspec.json.Decoder(kind, strict=False) for role, kind in ROW_TYPES.items()}
_LONG_IDS, _LONG_ID = 4000, 60
_SHORT = 2 * encoding.LISTED  # characters: a list of more ids than are kept is longer
_NO_ANSWER = Answer()
_UNDESCRIBED = (None, None, None)
_key = msgspec.json.Decoder(Key)
_text = msgspec.json.Decoder(str | None)
_lines = msgspec.json.Encoder()


def text_of(name: str | int) -> str:
    """An id as text: 7 and "7" are the same."""
    return name if name.__class__ is str else str(name)


def from_columns(record: dict[str, Any], flags: Sequence[str] = RED_FLAGS) -> dict[str, Any]:
    """A record whose values a table spreads over columns, as the nested record that we read.

    `scholar` may be the label alone with `scholar_reason` beside it; `claim`, `citations` and `constraints_echo` belong to
    the answer, a flag by its name to the flags. A list in a cell is JSON, or parts between `;` or `|`.
    """
    nested = dict(record)
    for agent in AGENTS:
        if isinstance(nested.get(agent), str):
            nested[agent] = {"label": nested[agent]}
        for name in Agent.__struct_fields__:
            if f"{agent}_{name}" in nested:
                nested[agent] = {**(nested.get(agent) or {}), name: nested.pop(f"{agent}_{name}")}
    for part, names in (("answer_json", Answer.__struct_fields__), ("flags", flags)):
        for name in [name for name in names if name in nested]:
            nested[part] = {**(nested.get(part) or {}), name: nested.pop(name)}
    parts = [nested, *(nested[name] for name in (*AGENTS, "answer_json") if isinstance(nested.get(name), dict))]
    for part in parts:
        for name in ("citations", "retrieved_ids", "votes", "constraints", "constraints_echo"):
            if isinstance(part.get(name), str):
                part[name] = _cell(part[name], is_list=not name.startswith("constraints"))
    return nested


def _cell(text: str, *, is_list: bool) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return [part for part in _SEPARATORS.split(text) if part] if is_list else text


def unknown_label(label: Any, labels: Sequence[str], what: str = "label", *, fixed: bool) -> str:
    """The message for a label outside the label space: the nearest one, and how to map or declare it."""
    text = label if isinstance(label, str) else str(label)
    folded = {known.casefold(): known for known in labels}
    near = folded.get(text.strip().casefold()) or next(iter(difflib.get_close_matches(text, labels, n=1)), None)
    shown = text if len(text) <= 40 else text[:39] + "…"
    hint = f" Did you mean {near!r}?" if near else ""
    plain = not any(sign in shown for sign in ",=\n")
    if fixed:
        do = f"--map {shown if plain else '…'}={near or '…'} counts it as one of them"
    else:
        do = f"--labels {','.join((*labels, shown)) if plain else '…'} declares it"
    return f"{what} {shown!r} is not one of {', '.join(labels)}.{hint} ({do})"


def refuse(what: str, files: Sequence[str], file: int, line: int) -> InputError:
    """The error for a row, with its place."""
    return InputError(what, file=files[file], line=line, hint=SKIP_HINT)


def place_of(files: Sequence[str], file: int, line: int) -> str:
    """A row by file and line; the whole path where two files have the same name."""
    name = Path(files[file]).name
    alone = [Path(path).name for path in files].count(name) == 1
    return f"{name if alone else files[file]}:{line}"


@dataclass(frozen=True)
class Meaning:
    """What words of the input stand for: further labels, by the label they count as, and the flags there are."""

    mapped: Mapping[str, str]
    flags: tuple[str, ...]

    def codes(self) -> dict[str | int | None, int]:
        """Every label by its code."""
        known: dict[str | int | None, int] = {label: code for code, label in enumerate(LABELS)} | {
            None: encoding.ABSENT
        }
        return known | {word: known[label] for word, label in self.mapped.items()}

    def unknown_flag(self, name: str) -> str:
        """The message for a flag that nobody declared."""
        near = difflib.get_close_matches(name, self.flags, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        return f"flag {name!r} is not one of {', '.join(self.flags)}.{hint} (--flag {name} declares it)"


class BlockReader:
    """Reads the rows of one role. A row that cannot be used is an error, or, with `skip_bad`, a row with a note."""

    def __init__(self, role: str, meaning: Meaning, *, skip_bad: bool) -> None:
        self.role, self.meaning, self.skip_bad = role, meaning, skip_bad
        self._code = meaning.codes()
        self._bit = {name: 1 << place for place, name in enumerate(meaning.flags)}

    def read(self, block: Block) -> pa.Table:
        """A row for every record, in order."""
        reasons: dict[int, str] = {}  # why a row cannot be read, by the identity of what stands for it

        def unreadable(text: bytes, error: Exception) -> Any:
            row = _blank(self.role, text)
            reasons[id(row)] = what_is_wrong(error, EXPECTED[self.role])
            return row

        rows = block.decode(_DECODERS[self.role], EXPECTED[self.role], self._loosely, unreadable)
        codes = encoding.blank(len(rows))
        texts: dict[str, pa.Array] = {}
        notes: dict[int, str] = {}
        unread = {place: reasons[id(row)] for place, row in enumerate(rows) if id(row) in reasons} if reasons else {}
        for name, agents in self._agents(rows).items():
            texts |= self._agent_columns(name, agents, codes[name], notes)
            path = f"{name}.reason" if self.role == "pairs" else "reason"
            texts[f"{name}_reason"] = self._texts(path, [agent.reason for agent in agents], unread)
        if self.role in {"pairs", "answers"}:
            answers = [row.answer_json or _NO_ANSWER for row in rows]
            texts |= self._answer_columns(rows, answers, codes["answer"], notes)
            claims = self._texts("answer_json.claim", [answer.claim for answer in answers], unread)
            texts["claim"], codes["answer"]["claim"] = claims, encoding.claim_codes(claims)
        if unread:
            codes["status"][list(unread)] = encoding.BAD_ROW
            notes |= unread
        if notes:
            if not self.skip_bad:
                first = min(notes)
                raise InputError(notes[first], file=block.path, line=int(block.lines[first]), hint=SKIP_HINT)
            texts["note"] = pa.array([notes.get(place) for place in range(len(rows))], pa.string())
        table = encoding.table(pa.array([text_of(row.qid) for row in rows], pa.string()), codes, texts)
        table = table.append_column("file", pa.array(np.full(len(rows), block.file, dtype=np.int32)))
        return table.append_column("line", pa.array(block.lines))

    def _loosely(self, _: int, text: bytes) -> Any:
        """A row of a table: values spread over columns, numbers and truths as text."""
        record = msgspec.json.decode(text)
        if isinstance(record, dict):
            try:
                nested = from_columns(record, self.meaning.flags)
                return _LOOSE_DECODERS[self.role].decode(msgspec.json.encode(nested))
            except msgspec.ValidationError:
                pass  # what is wrong is said of the record as it stands
        return _DECODERS[self.role].decode(text)

    def _agents(self, rows: Sequence[Any]) -> dict[str, Sequence[Agent]]:
        """What each agent of the role says, row by row."""
        if self.role == "pairs":
            return {"scholar": [row.scholar for row in rows], "auditor": [row.auditor for row in rows]}
        return {} if self.role == "answers" else {self.role: rows}

    def _texts(self, path: str, values: Sequence[msgspec.Raw], unread: dict[int, str]) -> pa.StringArray:
        """The texts at a path of the rows; a row with another value there cannot be read."""

        def no_text(place: int, value: msgspec.Raw) -> None:
            try:
                _text.decode(value)
            except msgspec.ValidationError as error:
                where = msgspec.ValidationError(f"{error} - at `$.{path}`")
                unread.setdefault(place, what_is_wrong(where, EXPECTED[self.role]))

        return texts_of(values, no_text)

    def _agent_columns(
        self, name: str, agents: Sequence[Agent], codes: encoding.Codes, notes: dict[int, str]
    ) -> dict[str, pa.Array]:
        """What evidence an agent saw; its label, how reproducible that is and whether votes were reduced go to the codes."""
        code = self._code
        codes["label"] = [code.get(agent.label, encoding.UNKNOWN) for agent in agents]
        described = [(agent.model, agent.temperature, agent.seed) for agent in agents]
        for place in [place for place, settings in enumerate(described) if settings != _UNDESCRIBED]:
            _, temperature, seed = described[place]
            stable = temperature == 0 or seed is not None
            codes["seeding"][place] = encoding.STABLE if stable else encoding.UNSTABLE
        for place in [place for place, agent in enumerate(agents) if agent.votes]:
            votes = [code.get(vote, code.get(str(vote), encoding.UNKNOWN)) for vote in agents[place].votes or ()]
            if encoding.UNKNOWN in votes:
                unknown = (agents[place].votes or ())[votes.index(encoding.UNKNOWN)]
                notes.setdefault(place, unknown_label(unknown, LABELS, f"{name} label", fixed=True))
                continue
            labelled, reduced = code.get(agents[place].label, encoding.UNKNOWN), _majority(votes)
            contradicted = labelled not in {encoding.ABSENT, reduced}
            codes[place] = (reduced, encoding.CONTRADICTED if contradicted else encoding.STABLE, 1)
        for place in np.flatnonzero(codes["label"] < 0).tolist():
            label = agents[place].label
            known = encoding.ABSENT if label is None else code.get(str(label), encoding.UNKNOWN)
            codes["label"][place] = max(known, encoding.ABSENT)
            if known == encoding.UNKNOWN:
                notes.setdefault(place, unknown_label(label, LABELS, f"{name} label", fixed=True))
            elif known == encoding.ABSENT:
                notes.setdefault(place, f"{name} has no label; expected one of {', '.join(LABELS)} (or `votes`)")
        return {f"{name}_digest": pa.array([agent.evidence_digest for agent in agents], pa.string())}

    def _answer_columns(
        self, rows: Sequence[AnswerRow], answers: Sequence[Answer], codes: encoding.Codes, notes: dict[int, str]
    ) -> dict[str, pa.Array]:
        """What the answers cite; what else is known of them goes to the codes."""
        codes["answered"] = [row.answer_json is not None or row.flags is not None for row in rows]
        for place in [place for place, row in enumerate(rows) if row.flags]:
            known = raised = 0
            for name, value in (rows[place].flags or {}).items():
                if name not in self._bit:
                    notes.setdefault(place, self.meaning.unknown_flag(name))
                elif value is not None:
                    known |= self._bit[name]
                    raised |= self._bit[name] if value else 0
            codes["flags_known"][place], codes["flags_raised"][place] = known, raised
        codes["echoed"] = [
            encoding.ABSENT
            if row.constraints is None
            else answer.constraints_echo == row.constraints
            or comparable(answer.constraints_echo) == comparable(row.constraints)
            for row, answer in zip(rows, answers, strict=True)
        ]
        cited = [answer.citations for answer in answers]
        codes["citations"], codes["out_of_scope"], outside = _scopes(cited, [row.retrieved_ids for row in rows])
        return {
            "cited": _listed_all(cited),
            "cited_outside": pa.array([listed(outside.get(place)) for place in range(len(rows))], pa.string())
            if outside
            else pa.nulls(len(rows), pa.string()),
        }


def _blank(role: str, text: bytes) -> Any:
    """A row that says nothing, in place of one that cannot be read: with its key, or with one for all without."""
    try:
        qid = _key.decode(text).qid
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        qid = BAD_KEY
    agents = {name: Agent() for name in AGENTS} if role == "pairs" else {}
    return ROW_TYPES[role](qid=qid, **agents)


def _majority(votes: Sequence[int]) -> int:
    """The label of more than half of the votes, otherwise ABSTAIN."""
    label, count = Counter(votes).most_common(1)[0]
    return label if 2 * count > len(votes) else LABELS.index("ABSTAIN")


def _scopes(
    cited: list[list[str | int] | None], retrieved: list[list[str | int] | None]
) -> tuple[encoding.Small, NDArray[np.int32], dict[int, list[str | int]]]:
    """Where the citations of each answer stand, and how many and which are not among the retrieved ids (1 is "1")."""
    states = np.array(
        [
            _NONE if not ids else _UNVERIFIABLE if known is None else _OUT if set(ids).difference(known) else _IN
            for ids, known in zip(cited, retrieved, strict=True)
        ],
        dtype=np.int8,
    )
    counts, outside = np.zeros(states.size, dtype=np.int32), {}
    for place in np.flatnonzero(states >= _OUT).tolist():
        known = {str(name) for name in retrieved[place] or ()}
        ids = [name for name in cited[place] or () if str(name) not in known]
        if ids:
            counts[place], outside[place] = len(ids), ids
        else:
            states[place] = _IN
    return states, counts, outside


def _listed_all(cited: Sequence[list[str | int] | None]) -> pa.StringArray:
    """The citations of each answer as `listed` has them, null where there are none."""
    none = np.array([not ids for ids in cited], dtype=np.bool_)
    texts = _lines.encode_lines(cited).decode().split("\n")[:-1]
    for place in [place for place, text in enumerate(texts) if len(text) > _SHORT]:
        texts[place] = listed(cited[place]) or ""
    return pa.array(texts, pa.string(), mask=none)


def listed(ids: list[str | int] | None) -> str | None:
    """The first of some ids as a JSON list; long ones are cut."""
    if ids is None:
        return None
    text = msgspec.json.encode(ids[: encoding.LISTED])
    if len(text) > _LONG_IDS:
        text = msgspec.json.encode([str(name)[:_LONG_ID] for name in ids[: encoding.LISTED]])
    return text.decode()
