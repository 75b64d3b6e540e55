"""Reading the items of one partition: rows matched by qid, batch by batch, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.protocols.base import Partition
from adjudge.protocols.consistency import batch as b
from adjudge.protocols.consistency import rows as r
from adjudge.protocols.consistency.batch import PairBatch
from adjudge.protocols.consistency.personal import MAY_HOLD, mask
from adjudge.protocols.consistency.policy import CITATIONS, LABELS

BATCH_ROWS = 8192
TEXT_LIMIT = 2000
QUOTED = 20
"""A reason of this many characters or more that stands in the other agent's reason was quoted."""

_CODE: dict[str | None, int] = {label: code for code, label in enumerate(LABELS)} | {None: b.ABSENT}
_TRUTH: dict[bool | None, int] = {None: b.ABSENT, False: 0, True: 1}
_NONE, _IN, _OUT, _UNVERIFIABLE = range(len(CITATIONS))
_NO_AGENT = r.Agent()
_NO_PAIR = r.PairRow(qid="", scholar=_NO_AGENT, auditor=_NO_AGENT)
_NOTHING = _NO_PAIR.constraints
_LABEL, _REASON, _DIGEST = attrgetter("label"), attrgetter("reason"), attrgetter("evidence_digest")
_ORIGIN = tuple(attrgetter(name) for name in ("votes", "model", "temperature", "seed"))
_CLAIM, _CITATIONS, _RETRIEVED = attrgetter("claim"), attrgetter("citations"), attrgetter("retrieved_ids")
_PROVENANCE, _MISMATCH = attrgetter("provenance_violation"), attrgetter("constraints_mismatch")
_CONSTRAINTS = attrgetter("constraints")
_NO_ANSWER = r.Answer()
_NO_FLAGS = r.Flags()
_NAMES_LABEL = rf"\b(?:{'|'.join(LABELS)})\b"
_LOOK = f"{MAY_HOLD}|{_NAMES_LABEL}"


class Item(NamedTuple):
    """A row that cannot be used: where it stands, and why."""

    place: str
    what: str


@dataclass
class ReadBatch:
    """A batch as columns, with its keys and its texts; reasons are masked."""

    batch: PairBatch
    samples: list[str]
    reasons: list[list[str | None]]
    claims: list[str | None]
    reducers: list[list[str | None] | None]


_Found = tuple[dict[str, Any], dict[str, int], list[Item]]


class PairReader:
    """Reads pairs, or two agents' files and their answers."""

    def __init__(self, *, paired: bool, skip_bad: bool) -> None:
        self.paired, self.skip_bad = paired, skip_bad

    def read(self, partition: Partition) -> Iterator[ReadBatch]:
        """Batches in the order of the keys; rows that cannot be used stand among them by file and line."""
        found, status, bad = self._pairs(partition) if self.paired else self._joined(partition)
        notes = {place: what for place, what in bad if place not in found}
        names = sorted(found.keys() | notes.keys()) if notes else sorted(found)
        for start in range(0, len(names), BATCH_ROWS):
            chosen = names[start : start + BATCH_ROWS]
            rows = [found.get(name) or _NO_PAIR for name in chosen] if notes else [found[name] for name in chosen]
            standing = np.zeros(len(chosen), dtype=np.int8)
            if notes or status:
                standing[:] = [b.BAD_ROW if name in notes else status.get(name, b.PAIRED) for name in chosen]
            yield columns(chosen, rows, standing, {i: notes[name] for i, name in enumerate(chosen) if name in notes})

    def _pairs(self, partition: Partition) -> _Found:
        found, bad = self._rows(partition, "pairs")
        return found, {}, bad

    def _joined(self, partition: Partition) -> _Found:
        sides: dict[str, dict[str, Any]] = {}
        bad: list[Item] = []
        for role in ("scholar", "auditor", "answers"):
            sides[role], own = self._rows(partition, role) if role in partition.rows else ({}, [])
            bad += own
        scholar, auditor, answers = sides["scholar"], sides["auditor"], sides["answers"]
        found: dict[str, Any] = {}
        status: dict[str, int] = {}
        for qid in scholar.keys() | auditor.keys() | answers.keys():
            one, two, answer = scholar.get(qid), auditor.get(qid), answers.get(qid)
            if one is None or two is None:
                alone = b.UNKNOWN_ANSWER if one is two else b.ONLY_SCHOLAR if two is None else b.ONLY_AUDITOR
                status[qid] = alone
            row = r.PairRow(qid=qid, scholar=one or _NO_AGENT, auditor=two or _NO_AGENT)
            if answer is not None:
                row.answer_json, row.retrieved_ids = answer.answer_json, answer.retrieved_ids
                row.flags, row.constraints = answer.flags, answer.constraints
            found[qid] = row
        return found, status, bad

    def _rows(self, partition: Partition, role: str) -> tuple[dict[str, Any], list[Item]]:
        """The rows of a role by key, and those that cannot be used."""
        decode = r.decoder(role).decode
        found: dict[str, Any] = {}
        places: dict[str, tuple[int, int]] = {}
        bad: list[Item] = []
        twice: set[str] = set()
        for file, line, text in partition.rows[role]:
            try:
                row = decode(text)
            except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
                bad.append(self._bad(partition, file, line, r.what_is_wrong(text, role, error)))
                continue
            qid = row.qid
            if qid.__class__ is not str:
                qid = str(qid)
            if qid in places:
                before = places[qid]
                name = Path(partition.files[before[0]]).name
                bad.append(self._bad(partition, file, line, f"qid {qid!r} stands already at {name}:{before[1]}"))
                twice.add(qid)
                continue
            places[qid] = (file, line)
            found[qid] = row
        if role != "answers":
            self._without_label(found, role, partition, places, bad)
        for qid in twice & found.keys():
            del found[qid]
            bad.append(self._bad(partition, *places[qid], f"qid {qid!r} stands again"))
        return found, bad

    def _without_label(
        self,
        found: dict[str, Any],
        role: str,
        partition: Partition,
        places: dict[str, tuple[int, int]],
        bad: list[Item],
    ) -> None:
        """Set aside what has neither a label nor votes."""
        agents = ("scholar", "auditor") if role == "pairs" else ("",)
        for name in agents:
            said = [getattr(row, name) for row in found.values()] if name else list(found.values())
            if None not in map(_LABEL, said):
                continue
            for qid, agent in list(zip(list(found), said, strict=True)):
                if agent.label is None and not agent.votes:
                    what = f"{name or role} has no label; expected one of {', '.join(LABELS)} (or `votes`)"
                    bad.append(self._bad(partition, *places[qid], what))
                    del found[qid]

    def _bad(self, partition: Partition, file: int, line: int, what: str) -> Item:
        if not self.skip_bad:
            raise r.refuse(what, partition.files, file, line)
        return Item(f"{Path(partition.files[file]).name}:{line}", what)


def columns(names: list[str], rows: list[r.PairRow], status: b.Small, notes: dict[int, str]) -> ReadBatch:
    """The columns of a batch."""
    answers = [row.answer_json or _NO_ANSWER for row in rows]
    flags = [row.flags or _NO_FLAGS for row in rows]
    agents = ([row.scholar for row in rows], [row.auditor for row in rows])
    labels, seeding, reducers = zip(*(_labels(side) for side in agents), strict=True)
    reasons: list[list[str | None]] = [list(map(_REASON, side)) for side in agents]
    lengths = np.array([_lengths(side) for side in reasons], dtype=np.int32)
    personal, quotes = _look_into(reasons, lengths, labels)
    citations, outside = _scopes(list(map(_CITATIONS, answers)), list(map(_RETRIEVED, rows)))
    claims = list(map(_CLAIM, answers))
    batch = PairBatch(
        status=status,
        scholar=labels[0],
        auditor=labels[1],
        provenance=_small([_TRUTH[value] for value in map(_PROVENANCE, flags)]),
        constraints=_small([_TRUTH[value] for value in map(_MISMATCH, flags)]),
        citations=citations,
        out_of_scope=outside,
        claim=_small(
            [b.NO_CLAIM if text is None else b.REFUSAL_CLAIM if text == b.REFUSAL else b.OTHER_CLAIM for text in claims]
        ),
        answered=_small([row.answer_json is not None or row.flags is not None for row in rows]),
        same_evidence=_same(*agents),
        echoed=_echoes(list(map(_CONSTRAINTS, rows)), answers),
        reason_length=lengths,
        personal=personal,
        quotes=quotes,
        seeding=np.stack(seeding),
        notes=notes,
    )
    return ReadBatch(batch, names, reasons, claims, list(reducers))


def _small(values: Iterable[int]) -> b.Small:
    return np.array(list(values), dtype=np.int8)


def _labels(side: list[r.Agent]) -> tuple[b.Small, b.Small, list[str | None] | None]:
    """Label codes, how reproducible each is, and the reducers where votes were reduced."""
    codes = _small([_CODE[label] for label in map(_LABEL, side)])
    seeding = np.zeros(len(side), dtype=np.int8)
    if not any(any(value is not None for value in map(get, side)) for get in _ORIGIN):
        return codes, seeding, None
    reducers: list[str | None] = [None] * len(side)
    for index, agent in enumerate(side):
        if agent.votes:
            reduced = r.majority(agent.votes)
            contradicted = agent.label is not None and agent.label != reduced
            codes[index] = _CODE[reduced]
            seeding[index] = b.CONTRADICTED if contradicted else b.STABLE
            reducers[index] = "strict_majority"
        elif agent.model is not None or agent.temperature is not None or agent.seed is not None:
            stable = agent.temperature == 0 or agent.seed is not None
            seeding[index] = b.STABLE if stable else b.UNSTABLE
    return codes, seeding, reducers


def _lengths(texts: list[str | None]) -> list[int]:
    try:
        return list(map(len, texts))  # type: ignore[arg-type]
    except TypeError:
        return [b.ABSENT if text is None else len(text) for text in texts]


def _scopes(
    cited: list[list[str | int] | None], retrieved: list[list[str | int] | None]
) -> tuple[b.Small, NDArray[np.int32]]:
    """Where the citations of each answer stand, and how many are not among the retrieved ids."""
    states = _small(
        [
            _NONE if not own else _UNVERIFIABLE if known is None else _OUT if set(own).difference(known) else _IN
            for own, known in zip(cited, retrieved, strict=True)
        ]
    )
    outside = np.zeros(states.size, dtype=np.int32)
    for index in np.flatnonzero(states >= _OUT).tolist():
        own, known = cited[index] or [], {str(name) for name in retrieved[index] or ()}
        outside[index] = sum(str(name) not in known for name in own)
        if not outside[index]:
            states[index] = _IN
    return states, outside


def _same(one: list[r.Agent], two: list[r.Agent]) -> b.Small:
    first, second = list(map(_DIGEST, one)), list(map(_DIGEST, two))
    if not any(first) and not any(second):
        return np.full(len(first), b.ABSENT, dtype=np.int8)
    return _small([b.ABSENT if a is None or c is None else int(a == c) for a, c in zip(first, second, strict=True)])


def _echoes(constraints: list[msgspec.Raw], answers: list[r.Answer]) -> b.Small:
    found = np.full(len(answers), b.ABSENT, dtype=np.int8)
    for index, raw in enumerate(constraints):
        if raw is not _NOTHING:
            found[index] = _echoed(raw, answers[index])
    return found


def _echoed(constraints: msgspec.Raw, answer: r.Answer) -> int:
    given = bytes(constraints)
    if not given or given == b"null":
        return b.ABSENT
    echo = bytes(answer.constraints_echo)
    return int(echo == given or (bool(echo) and msgspec.json.decode(echo) == msgspec.json.decode(given)))


def _look_into(
    reasons: list[list[str | None]], lengths: NDArray[np.int32], labels: tuple[b.Small, ...]
) -> tuple[b.Small, b.Small]:
    """Personal data, which is masked in place, and quotes of the other agent, for both agents' reasons."""
    n = len(reasons[0])
    personal, quotes = np.zeros((2, n), dtype=np.int8), np.zeros((2, n), dtype=np.int8)
    for side in (0, 1):
        # Only a reason that is as long as the other can hold it.
        may = (lengths[side] >= lengths[1 - side]) & (lengths[1 - side] >= QUOTED)
        own, other = reasons[side], reasons[1 - side]
        for index in np.flatnonzero(may).tolist():
            if other[index] in own[index]:  # type: ignore[operator]
                quotes[side, index] = 1
    for side in (0, 1):
        texts = reasons[side]
        try:
            column = pa.array(texts, pa.string())
        except UnicodeEncodeError:
            texts[:] = [None if text is None else text.encode("utf-8", "replace").decode() for text in texts]
            column = pa.array(texts, pa.string())
        hits = pc.match_substring_regex(column, _LOOK).fill_null(False).to_numpy(zero_copy_only=False)
        for index in np.flatnonzero(hits).tolist():
            text = texts[index]
            assert text is not None  # noqa: S101 -- a null does not match
            texts[index], count = mask(text)
            personal[side, index] = min(count, 127)
            if _names_other(text, int(labels[side][index]), int(labels[1 - side][index]), b.AGENTS[1 - side]):
                quotes[side, index] = 1
    return personal, quotes


def _names_other(text: str, own: int, other: int, role: str) -> bool:
    """Whether a reason names the other agent's label: one that is not its own, or any beside the other's role."""
    if b.ABSENT in (other, own):
        return False
    words = set(_words(text))
    return LABELS[other] in words and (own != other or role in {word.casefold() for word in words})


def _words(text: str) -> Iterator[str]:
    word = ""
    for sign in text:
        if sign.isalnum() or sign == "_":
            word += sign
        elif word:
            yield word
            word = ""
    if word:
        yield word
