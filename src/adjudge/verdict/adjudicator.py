"""The adjudicator: an agent over a whole run. Checklist first, then every batch organised, decided, checked and kept.

A table keeps how verdicts came about, a row a sample. Statuses of the checklist stand as one byte an item. Reasons are lists:
the position of each reason's worst atom, how many atoms it has, and the positions of all of them one after the other; the
agent's words and quotes beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.evidence.atoms import Atom, atoms
from adjudge.evidence.table import Evidence
from adjudge.verdict.agent import (
    ELIGIBLE,
    STATUSES,
    EvaluatorAgent,
    Item,
    Judgement,
    Organizer,
    Reasons,
    RuleBasedAgent,
    Verdicts,
    check_checklist,
    reasons_of,
    rule_verdicts,
)
from adjudge.verdict.deliberation import DECIDED_BY, NOT_ASKED, Case, Deliberation, Refusal, deliberate
from adjudge.verdict.transcripts import Exchange, TranscribedAgent, exchanges_by_row, transcript_table

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


AGENT_TABLE, TRANSCRIPTS = "agent", "transcripts"


@dataclass(frozen=True)
class Cases:
    """A batch as an agent gets it: who answered what, the raw answers when they are needed, and who is asked about."""

    models: Sequence[str]
    samples: Sequence[str]
    answers: Callable[[], list[str | None]]
    asked: NDArray[np.bool_]


class Adjudged(NamedTuple):
    """The verdicts of a batch, and the tables that keep how they came about."""

    verdicts: Verdicts
    tables: dict[str, pa.Table]


class Adjudicator:
    """One agent with its checklist, which is checked before any sample is judged."""

    def __init__(self, agent: EvaluatorAgent, rules: Sequence[dict[str, Any]], *, task: str, top: int) -> None:
        self.agent, self.rules, self.top = agent, rules, top
        self.items: tuple[Item, ...] = tuple(agent.checklist(rules, task))
        check_checklist(self.items, rules, agent.name)
        self._organizer = Organizer(self.items, rules)
        self._organizes = type(agent).organize is not EvaluatorAgent.organize

    @property
    def by_rules(self) -> bool:
        """Whether the reference agent judges, whose verdicts follow from the evidence alone."""
        return type(self.agent) is RuleBasedAgent

    def document(self) -> dict[str, Any]:
        """agent.json: who judged, and the checklist."""
        return {**self.agent.about(), "checklist": [item.to_dict() for item in self.items]}

    def judge(self, evidence: Evidence, cases: Cases) -> Adjudged:
        """Decide a batch, and keep how."""
        if self.by_rules:
            return self.judge_by_rules(evidence)
        asked = self._cases(evidence.as_stored(), cases)  # what it is asked can be read again from the run
        if isinstance(self.agent, TranscribedAgent):
            heard = list(self.agent.hear(list(asked.values())))
            transcripts = transcript_table([(row, log) for row, (_, log) in zip(asked, heard, strict=True)])
            deliberations = {row: one for row, (one, _) in zip(asked, heard, strict=True)}
            return self._adjudged(evidence, asked, deliberations, {TRANSCRIPTS: transcripts})
        return self._adjudged(evidence, asked, {row: self._ask(case) for row, case in asked.items()}, {})

    def judge_by_rules(self, evidence: Evidence) -> Adjudged:
        """Decide a batch as the reference agent does, over columns."""
        by_agent = np.zeros(evidence.n, dtype=np.int8)
        reasons = reason_lists(reasons_of(evidence, self.top), evidence.n)
        table = agent_table(by_agent, self._organizer.statuses(evidence), **reasons)
        return Adjudged(rule_verdicts(evidence), {AGENT_TABLE: table})

    def again(
        self, evidence: Evidence, cases: Cases, transcripts: pa.Table | None
    ) -> tuple[Adjudged | None, list[str]]:
        """What the evidence, or the stored transcripts, come to, without asking anybody; and what is wrong with them.

        None where the agent is code of its own that left no transcripts: its answers are checked, not made again.
        """
        if self.by_rules:
            return self.judge_by_rules(evidence), []
        if not isinstance(self.agent, TranscribedAgent):
            return None, []
        if transcripts is None:
            return None, ["the transcripts are missing"]
        exchanges, asked = exchanges_by_row(transcripts), self._cases(evidence, cases)
        deliberations: dict[int, Deliberation] = {}
        problems: list[str] = []
        for row, case in asked.items():
            kept: list[Exchange] = exchanges.pop(row, [])
            deliberation, wrong = self.agent.replay(case, kept)
            problems += [f"{case.model}/{case.sample}: {what}" for what in wrong]
            if deliberation is None:
                return None, problems
            deliberations[row] = deliberation
        problems += [f"there are transcripts of row {row}, about which nobody is asked" for row in exchanges]
        return self._adjudged(evidence, asked, deliberations, {}), problems

    def stored_verdicts(self, samples: pa.Table, evidence: Evidence) -> Verdicts:
        """The verdicts that a run's scores must follow from: the rules' own, or those an agent gave and the run keeps."""
        if self.by_rules:
            return rule_verdicts(evidence)
        width = evidence.layout.width
        packed = np.frombuffer(b"".join(samples.column("cites").to_pylist()), dtype=np.uint8)
        cites = np.unpackbits(packed.reshape(evidence.n, -1), axis=1, bitorder="little")[:, :width]
        eligible = np.array([verdict == ELIGIBLE for verdict in samples.column("verdict").to_pylist()], dtype=bool)
        return Verdicts(eligible, np.ascontiguousarray(cites.T).astype(bool))

    def _cases(self, evidence: Evidence, cases: Cases) -> dict[int, Case]:
        """The samples that the agent is asked about, by row."""
        answers = cases.answers()
        asked: dict[int, Case] = {}
        for row in np.flatnonzero(cases.asked).tolist():
            model, sample = cases.models[row], cases.samples[row]
            sample_atoms = list(atoms(evidence, row, model, sample))
            statuses = tuple(self.agent.organize(self.items, sample_atoms, self.rules))
            asked[row] = Case(model, sample, sample_atoms, answers[row], self.items, statuses)
        return asked

    def _ask(self, case: Case) -> Deliberation:
        """Ask an agent that answers at once."""
        steps = deliberate(case, 1)
        answer: Judgement | Refusal
        try:
            question = next(steps)
            while True:
                pairs = list(zip(case.items, case.statuses, strict=True))
                try:
                    answer = self.agent.adjudicate(pairs, case.atoms, case.answer, question.refusal)
                except Exception as error:  # noqa: BLE001 -- the agent failed; the rules decide and the run counts it
                    answer = Refusal("failed", f"{type(error).__name__}: {error}"[:200])
                question = steps.send(answer)
        except StopIteration as end:
            deliberation: Deliberation = end.value
            return deliberation

    def _adjudged(
        self,
        evidence: Evidence,
        asked: dict[int, Case],
        deliberations: dict[int, Deliberation],
        tables: dict[str, pa.Table],
    ) -> Adjudged:
        """The verdicts and tables of a batch of which some samples were deliberated; the rules decide the others."""
        verdicts, statuses = rule_verdicts(evidence), self._organizer.statuses(evidence)
        decided_by = np.full(evidence.n, DECIDED_BY.index(NOT_ASKED), dtype=np.int8)
        for row, deliberation in deliberations.items():
            decided_by[row] = DECIDED_BY.index(deliberation.decided_by)
            verdicts.eligible[row] = deliberation.eligible
            verdicts.cites[:, row] = False
            verdicts.cites[list(deliberation.cites), row] = True
        rows = [deliberations.get(row) for row in range(evidence.n)]
        lists = deliberation_lists(rows, reasons_of(evidence, self.top))
        if self._organizes:
            lists |= self._item_lists(asked, deliberations, statuses)
        return Adjudged(verdicts, {AGENT_TABLE: agent_table(decided_by, statuses, **lists), **tables})

    def _item_lists(
        self, asked: dict[int, Case], deliberations: dict[int, Deliberation], statuses: NDArray[np.uint8]
    ) -> dict[str, pa.Array]:
        """What an agent's own organising rests on; where it was refused, the statuses stay those of the rules."""
        sizes: list[list[int] | None] = [None] * statuses.shape[1]
        places: list[list[int] | None] = [None] * statuses.shape[1]
        for row, case in asked.items():
            if "organize" in deliberations[row].refused:
                continue
            position = {atom.id: atom.position for atom in case.atoms}
            statuses[:, row] = [STATUSES.index(status) for status, _ in case.statuses]
            sizes[row] = [len(names) for _, names in case.statuses]
            places[row] = [position[name] for _, names in case.statuses for name in names]
        kind = pa.list_(pa.int16())
        return {"item_sizes": pa.array(sizes, kind), "item_atoms": pa.array(places, kind)}
