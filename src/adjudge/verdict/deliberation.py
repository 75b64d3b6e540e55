"""One sample before an agent: asked, checked, asked again once, voted on; the same steps live and in a replay.

Every agent's answer is held to the same, ours or a plugin's, a language model's or a rule's. A refusal has a name, by which
the run counts it, and words, with which the agent is asked again.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from adjudge.evidence.atoms import Atom
from adjudge.verdict.agent import DECISIONS, ELIGIBLE, INELIGIBLE, STATUSES, Attribution, Item, ItemStatus, Judgement

REFUSALS = {
    "no_answer": "there was no answer",
    "cut_off": "the answer was cut off",
    "no_json": "the answer is no JSON object of the form that was asked for",
    "unknown_verdict": "the verdict is neither eligible nor ineligible",
    "no_citation": "the verdict cites no atom",
    "unknown_atom": "an atom is cited that the sample does not have",
    "unsupported": "ineligible without a cited atom that did not pass",
    "laxer": "eligible against a failed critical atom",
    "attribution": "a reason cites an atom that the sample does not have, or another severity than its atoms'",
    "organize": "a status of the checklist does not follow from the atoms it rests on",
    "no_majority": "no verdict has a strict majority of the votes",
    "no_transcript": "the recorded transcripts have no answer to this request",
    "failed": "the agent raised an error",
}
"""Every reason for which an answer is refused, in words."""


class Refusal(NamedTuple):
    """Why an answer is not taken: a name of REFUSALS, and a sentence for the agent."""

    reason: str
    words: str


@dataclass(frozen=True)
class Quote:
    """A quote, and whether it stands in the raw answer."""

    text: str
    verified: bool


@dataclass(frozen=True)
class CheckedReason:
    """One reason of a verdict that passed the checks: positions of atoms; `words` is None where its quote is not there."""

    atoms: tuple[int, ...]
    words: str | None
    quote: Quote | None


@dataclass(frozen=True)
class Checked:
    """A judgement that passed the checks, its citations as positions."""

    decision: str
    cites: tuple[int, ...]
    reasons: tuple[CheckedReason, ...]
    quotes: tuple[Quote, ...]


def check(judgement: object, atoms: Sequence[Atom], answer: str | None) -> Checked | Refusal:
    """What an agent answered, checked by name."""
    if not isinstance(judgement, Judgement):
        return Refusal("unknown_verdict", f"the answer is a {type(judgement).__name__}, expected a Judgement")
    if judgement.decision not in DECISIONS:
        return Refusal(
            "unknown_verdict", f"the verdict is {_short(judgement.decision)}, expected {ELIGIBLE} or {INELIGIBLE}"
        )
    by_id = {atom.id: atom for atom in atoms}
    unknown = [name for name in judgement.cites if name not in by_id]
    if unknown:
        return Refusal("unknown_atom", f"there is no atom {_short(unknown[0])}; cite ids from the evidence alone")
    if not judgement.cites:
        return Refusal("no_citation", "the verdict cites no atom; cite at least one")
    cited = [by_id[name] for name in dict.fromkeys(judgement.cites)]
    if judgement.decision == INELIGIBLE and all(atom.outcome == "pass" for atom in cited):
        return Refusal("unsupported", "ineligible must cite at least one atom that did not pass")
    critical = [atom for atom in atoms if atom.failed and atom.severity == "CRITICAL"]
    if judgement.decision == ELIGIBLE and critical:
        return Refusal("laxer", f"eligible is not open here: the critical atom {critical[0].id} failed")
    reasons = []
    for item in judgement.attribution:
        checked = _reason(item, by_id, answer)
        if isinstance(checked, Refusal):
            return checked
        reasons.append(checked)
    quotes = tuple(Quote(text, stands_in(text, answer)) for text in judgement.quotes)
    return Checked(judgement.decision, tuple(sorted(atom.position for atom in cited)), tuple(reasons), quotes)


def _reason(item: object, by_id: dict[str, Atom], answer: str | None) -> CheckedReason | Refusal:
    if not isinstance(item, Attribution) or not item.cites:
        return Refusal("attribution", "every reason cites at least one atom")
    unknown = [name for name in item.cites if name not in by_id]
    if unknown:
        return Refusal("attribution", f"a reason cites {_short(unknown[0])}, which is no atom of this sample")
    cited = [by_id[name] for name in dict.fromkeys(item.cites)]
    worst = max((atom.severity for atom in cited), key=("INFO", "WARNING", "CRITICAL").index)
    if item.severity != worst:
        return Refusal("attribution", f"a reason says severity {_short(item.severity)}, its atoms say {worst}")
    quote = None if item.quote is None else Quote(item.quote, stands_in(item.quote, answer))
    words = item.reason if quote is None or quote.verified else None
    return CheckedReason(tuple(sorted(atom.position for atom in cited)), words, quote)


def check_statuses(items: Sequence[Item], statuses: Sequence[ItemStatus], atoms: Sequence[Atom]) -> Refusal | None:
    """Hold the statuses of a checklist to the atoms they rest on: a fail to one that failed, a pass to none that did."""
    if len(statuses) != len(items):
        return Refusal("organize", f"there are {len(statuses)} statuses for {len(items)} items")
    by_id = {atom.id: atom for atom in atoms}
    for item, (status, names) in zip(items, statuses, strict=True):
        unknown = [name for name in names if name not in by_id]
        failed = any(by_id[name].failed for name in names if name in by_id)
        passed = any(by_id[name].outcome == "pass" for name in names if name in by_id)
        wrong = (
            status not in STATUSES or bool(unknown) or (status == "fail") != failed or (status == "pass" and not passed)
        )
        if wrong:
            return Refusal("organize", f"item {item.item_id} is {_short(status)}, which its atoms do not say")
    return None


def stands_in(quote: str, answer: str | None) -> bool:
    """Whether a quote stands in an answer, character for character after Unicode normalisation and folded white space."""
    return answer is not None and bool(quote.strip()) and _folded(quote) in _folded(answer)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).split())


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


ATTEMPTS = 2
AGENT, RULES, NOT_ASKED = "agent", "rules", "not asked"
DECIDED_BY = (AGENT, RULES, NOT_ASKED)
"""Whose verdict stands: the agent's, the rules' own after refusals or a tie, or the rules' because nobody was asked."""


@dataclass(frozen=True)
class Case:
    """What an agent gets to see of one sample; it never sees a prior opinion of the model."""

    model: str
    sample: str
    atoms: Sequence[Atom]
    answer: str | None
    items: Sequence[Item]
    statuses: Sequence[ItemStatus]


@dataclass(frozen=True)
class Question:
    """One request to an agent: which vote, the first or second attempt, and why the first answer was refused."""

    vote: int
    attempt: int
    refusal: str | None = None


@dataclass(frozen=True)
class Deliberation:
    """What came of one sample. `votes` are verdicts, or `refused: REASON`; `refused` names every refused answer."""

    decided_by: str
    eligible: bool
    cites: tuple[int, ...]
    reasons: tuple[CheckedReason, ...] = ()
    quotes: tuple[Quote, ...] = ()
    votes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def rules_decide(
    atoms: Sequence[Atom], decided_by: str, *, votes: tuple[str, ...] = (), refused: tuple[str, ...] = ()
) -> Deliberation:
    """The rules' own verdict."""
    critical = tuple(atom.position for atom in atoms if atom.failed and atom.severity == "CRITICAL")
    cites = critical or tuple(atom.position for atom in atoms)
    return Deliberation(decided_by, not critical, cites, votes=votes, refused=refused)


def deliberate(case: Case, votes: int) -> Generator[Question, Judgement | Refusal, Deliberation]:
    """Yields questions, takes answers, and returns what they come to.

    A refused answer is asked for again once, with the refusal in words. A verdict needs more than half of all votes;
    without it the verdict is the rules' own.
    """
    disorganized = check_statuses(case.items, case.statuses, case.atoms)
    if disorganized is not None:
        return rules_decide(case.atoms, RULES, refused=(disorganized.reason,))
    ballots: list[str] = []
    refused: list[str] = []
    accepted: dict[str, Checked] = {}
    for vote in range(votes):
        outcome: Checked | Refusal | None = None
        for attempt in range(ATTEMPTS):
            answer = yield Question(vote, attempt, outcome.words if isinstance(outcome, Refusal) else None)
            outcome = answer if isinstance(answer, Refusal) else check(answer, case.atoms, case.answer)
            if isinstance(outcome, Checked):
                break
            refused.append(outcome.reason)
        if isinstance(outcome, Checked):
            ballots.append(outcome.decision)
            accepted.setdefault(outcome.decision, outcome)
        else:
            ballots.append(f"refused: {outcome.reason}" if outcome is not None else "refused")
    counts = Counter(ballots)
    for decision in (ELIGIBLE, INELIGIBLE):
        if 2 * counts[decision] > votes:
            chosen = accepted[decision]
            return Deliberation(
                decided_by=AGENT,
                eligible=decision == ELIGIBLE,
                cites=chosen.cites,
                reasons=chosen.reasons,
                quotes=chosen.quotes,
                votes=tuple(ballots),
                refused=tuple(refused),
            )
    if accepted:
        refused.append("no_majority")
    return rules_decide(case.atoms, RULES, votes=tuple(ballots), refused=tuple(refused))
