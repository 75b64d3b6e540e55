"""One sample before an agent: asked, checked, asked again once, voted on; the same steps live and in a replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from adjudge.evidence.atoms import Atom
from adjudge.verdict.agent import ELIGIBLE, INELIGIBLE, Judgement
from adjudge.verdict.checklist import Item, ItemStatus
from adjudge.verdict.checks import Checked, CheckedReason, Quote, Refusal, check, check_statuses

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
