"""Reading the items of one partition: rows matched by qid, batch by batch, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
_NO_ANSWER = r.Answer()
_NO_FLAGS = r.Flags()
_NAMES_LABEL = rf"\b(?:{'|'.join(LABELS)})\b"
_LOOK = f"{MAY_HOLD}|{_NAMES_LABEL}"


class Item(NamedTuple):
    """One item: its key, how it stands, and its row."""

    sample: str
    status: int
    row: r.PairRow
    note: str = ""


@dataclass
class ReadBatch:
    """A batch as columns, with its keys and its texts; reasons are masked."""

    batch: PairBatch
    samples: list[str]
    reasons: list[list[str | None]]
    claims: list[str | None]
    reducers: list[list[str | None]]


class PairReader:
    """Reads pairs, or two agents' files and their answers."""

    def __init__(self, *, paired: bool, skip_bad: bool) -> None:
        self.paired, self.skip_bad = paired, skip_bad

    def read(self, partition: Partition) -> Iterator[ReadBatch]:
        """Batches in the order of the keys."""
        items = self._pairs(partition) if self.paired else self._joined(partition)
        items.sort(key=lambda item: (item[0], item[1]))
        for start in range(0, len(items), BATCH_ROWS):
            yield columns(items[start : start + BATCH_ROWS])

    def _pairs(self, partition: Partition) -> list[Item]:
        found, items = self._rows(partition, "pairs")
        items += [Item(qid, b.PAIRED, row) for qid, row in found.items()]
        return items

    def _joined(self, partition: Partition) -> list[Item]:
        sides: dict[str, dict[str, Any]] = {}
        items: list[Item] = []
        for role in ("scholar", "auditor", "answers"):
            sides[role], bad = self._rows(partition, role) if role in partition.rows else ({}, [])
            items += bad
        scholar, auditor, answers = sides["scholar"], sides["auditor"], sides["answers"]
        for qid in scholar.keys() | auditor.keys() | answers.keys():
            one, two, answer = scholar.get(qid), auditor.get(qid), answers.get(qid)
            if one is not None and two is not None:
                status = b.PAIRED
            elif one is None and two is None:
                status = b.UNKNOWN_ANSWER
            else:
                status = b.ONLY_SCHOLAR if two is None else b.ONLY_AUDITOR
            row = r.PairRow(qid=qid, scholar=one or _NO_AGENT, auditor=two or _NO_AGENT)
            if answer is not None:
                row.answer_json, row.retrieved_ids = answer.answer_json, answer.retrieved_ids
                row.flags, row.constraints = answer.flags, answer.constraints
            items.append(Item(qid, status, row))
        return items

    def _rows(self, partition: Partition, role: str) -> tuple[dict[str, Any], list[Item]]:
        """The rows of a role by key, and those that cannot be used."""
        decode = r.decoder(role).decode
        found: dict[str, Any] = {}
        places: dict[str, tuple[int, int]] = {}
        bad: list[Item] = []
        twice: set[str] = set()
        rows: Iterable[tuple[int, int, bytes]] = partition.rows[role]
        for file, line, text in rows:
            try:
                row = decode(text)
            except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
                bad.append(self._bad(partition, file, line, r.what_is_wrong(text, role, error)))
                continue
            qid = row.qid if isinstance(row.qid, str) else str(row.qid)
            if qid in found or qid in twice:
                before = places[qid]
                name = Path(partition.files[before[0]]).name
                bad.append(self._bad(partition, file, line, f"qid {qid!r} stands already at {name}:{before[1]}"))
                if qid in found:
                    del found[qid]
                    twice.add(qid)
                    bad.append(self._bad(partition, *before, f"qid {qid!r} stands again at {line}"))
                continue
            missing = self._without_label(row, role)
            if missing is not None:
                bad.append(self._bad(partition, file, line, missing))
                continue
            found[qid] = row
            places[qid] = (file, line)
        return found, bad

    def _without_label(self, row: Any, role: str) -> str | None:
        if role == "answers":
            return None
        for name, agent in (("scholar", row.scholar), ("auditor", row.auditor)) if role == "pairs" else ((role, row),):
            if agent.label is None and not agent.votes:
                return f"{name} has no label; expected one of {', '.join(LABELS)} (or `votes`)"
        return None

    def _bad(self, partition: Partition, file: int, line: int, what: str) -> Item:
        if not self.skip_bad:
            raise r.refuse(what, partition.files, file, line)
        place = f"{Path(partition.files[file]).name}:{line}"
        return Item(place, b.BAD_ROW, r.PairRow(qid=place, scholar=_NO_AGENT, auditor=_NO_AGENT), what)


def columns(items: list[Item]) -> ReadBatch:
    """The columns of a batch."""
    rows = [item.row for item in items]
    answers = [row.answer_json or _NO_ANSWER for row in rows]
    flags = [row.flags or _NO_FLAGS for row in rows]
    agents = ([row.scholar for row in rows], [row.auditor for row in rows])
    labels, seeding, reducers = zip(*(_labels(side) for side in agents), strict=True)
    reasons: list[list[str | None]] = [[agent.reason for agent in side] for side in agents]
    lengths = np.array([[b.ABSENT if text is None else len(text) for text in side] for side in reasons], dtype=np.int32)
    personal, quotes = _look_into(reasons, labels)
    cited = [_scope(answer.citations, row.retrieved_ids) for answer, row in zip(answers, rows, strict=True)]
    claims = [answer.claim for answer in answers]
    columns = PairBatch(
        status=_small([item.status for item in items]),
        scholar=labels[0],
        auditor=labels[1],
        provenance=_small([_TRUTH[flag.provenance_violation] for flag in flags]),
        constraints=_small([_TRUTH[flag.constraints_mismatch] for flag in flags]),
        citations=_small([state for state, _ in cited]),
        out_of_scope=np.array([count for _, count in cited], dtype=np.int32),
        claim=_small(
            [b.NO_CLAIM if text is None else b.REFUSAL_CLAIM if text == b.REFUSAL else b.OTHER_CLAIM for text in claims]
        ),
        answered=_small([row.answer_json is not None or row.flags is not None for row in rows]),
        same_evidence=_small([_same(*pair) for pair in zip(*agents, strict=True)]),
        echoed=_small([_echoed(row.constraints, answer) for row, answer in zip(rows, answers, strict=True)]),
        reason_length=lengths,
        personal=personal,
        quotes=quotes,
        seeding=np.stack(seeding),
        notes={index: item.note for index, item in enumerate(items) if item.note},
    )
    return ReadBatch(columns, [item.sample for item in items], reasons, claims, list(reducers))


def _small(values: Iterable[int]) -> b.Small:
    return np.array(list(values), dtype=np.int8)


def _labels(side: list[r.Agent]) -> tuple[b.Small, b.Small, list[str | None]]:
    """Label codes, how reproducible each is, and the reducer where votes were reduced."""
    codes = _small([_CODE[agent.label] for agent in side])
    seeding = np.zeros(len(side), dtype=np.int8)
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


def _scope(citations: list[str | int] | None, retrieved: list[str | int] | None) -> tuple[int, int]:
    """Where the citations stand, and how many are not among the retrieved ids."""
    if not citations:
        return _NONE, 0
    if retrieved is None:
        return _UNVERIFIABLE, len(citations)
    if set(retrieved).issuperset(citations):
        return _IN, 0
    known = {str(name) for name in retrieved}
    outside = sum(str(name) not in known for name in citations)
    return (_OUT, outside) if outside else (_IN, 0)


def _same(one: r.Agent, two: r.Agent) -> int:
    if one.evidence_digest is None or two.evidence_digest is None:
        return b.ABSENT
    return int(one.evidence_digest == two.evidence_digest)


def _echoed(constraints: msgspec.Raw, answer: r.Answer) -> int:
    given = bytes(constraints)
    if not given or given == b"null":
        return b.ABSENT
    echo = bytes(answer.constraints_echo)
    return int(echo == given or (bool(echo) and msgspec.json.decode(echo) == msgspec.json.decode(given)))


def _look_into(reasons: list[list[str | None]], labels: tuple[NDArray[np.int8], ...]) -> tuple[b.Small, b.Small]:
    """Personal data, which is masked in place, and quotes of the other agent, for both agents' reasons."""
    n = len(reasons[0])
    personal, quotes = np.zeros((2, n), dtype=np.int8), np.zeros((2, n), dtype=np.int8)
    for index, (one, two) in enumerate(zip(*reasons, strict=True)):
        if one is not None and two is not None:
            if len(two) >= QUOTED and two in one:
                quotes[0, index] = 1
            if len(one) >= QUOTED and one in two:
                quotes[1, index] = 1
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
