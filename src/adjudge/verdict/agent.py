"""The evaluator agent: who makes the checklist, organises the evidence and decides; and the rule-based reference.

An agent never scores by feeling: what it answers is checked (`checks.py`), stored in the run and replayed from there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.errors import ConfigError
from adjudge.evidence.atoms import Atom
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import Severity
from adjudge.plugins import plugin, plugin_names
from adjudge.verdict.checklist import CheckedItems, Item, ItemStatus, atoms_of, checklist_of, status_of

ELIGIBLE, INELIGIBLE = "eligible", "ineligible"
DECISIONS = (ELIGIBLE, INELIGIBLE)
RULES = "rules"
GROUP = "adjudge.agents"


@dataclass(frozen=True)
class Attribution:
    """One reason of a verdict in the agent's words: the ids of the atoms it rests on, their severity, perhaps a quote."""

    reason: str
    cites: tuple[str, ...]
    severity: str
    quote: str | None = None


@dataclass(frozen=True)
class Judgement:
    """What an agent answers about one sample; `cites` are ids of atoms, the worst reason stands first."""

    decision: str
    cites: tuple[str, ...]
    attribution: tuple[Attribution, ...] = ()
    quotes: tuple[str, ...] = ()


@dataclass
class Verdicts:
    """The verdicts of a batch: `eligible` per sample, `cites` shaped (positions, samples)."""

    eligible: NDArray[np.bool_]
    cites: NDArray[np.bool_]


class EvaluatorAgent(ABC):
    """Who reads the evidence and decides. Only `adjudicate` must be written; a language model may stand behind it."""

    name: str
    model = RULES
    temperature = 0.0
    language_model = False
    """Whether a gate on its verdicts needs a validation."""

    def about(self) -> dict[str, Any]:
        """Who judges, for agent.json."""
        return {
            "agent": self.name,
            "model": self.model,
            "language_model": self.language_model,
            "temperature": self.temperature,
        }

    def begin(self, inputs: Sequence[str]) -> None:  # noqa: B027 -- most agents need none
        """Get to know the digests of the input, before anything is judged or replayed."""

    def attach(self, document: dict[str, Any]) -> None:  # noqa: B027 -- most agents need none
        """Get to know the agent.json of a run that is verified."""

    def check_budget(self, samples: int) -> None:  # noqa: B027 -- most agents cost nothing
        """Refuse to judge so many samples, where that would cost too much."""

    def checklist(self, rules: Sequence[dict[str, Any]], task: str) -> Sequence[Item]:
        """What will be looked at, once a run: items that together cover every rule of the rule table."""
        del task
        return checklist_of(rules)

    def organize(
        self, items: Sequence[Item], atoms: Sequence[Atom], rules: Sequence[dict[str, Any]]
    ) -> Sequence[ItemStatus]:
        """How every item came out on one sample, with the atoms it rests on."""
        atoms_of_items = [atoms_of(item, atoms, rules) for item in items]
        return [ItemStatus(status_of(bound), tuple(atom.id for atom in bound)) for bound in atoms_of_items]

    @abstractmethod
    def adjudicate(
        self, items: CheckedItems, atoms: Sequence[Atom], answer: str | None, refusal: str | None = None
    ) -> Judgement:
        """The verdict on one sample. It is asked a second time where its first answer was refused, with the reason."""


class RuleBasedAgent(EvaluatorAgent):
    """The reference: ineligible if any CRITICAL atom failed, citing all of those; otherwise eligible, citing all atoms."""

    name = RULES

    def adjudicate(
        self, items: CheckedItems, atoms: Sequence[Atom], answer: str | None, refusal: str | None = None
    ) -> Judgement:
        """The verdict on one sample."""
        del items, answer, refusal
        critical = tuple(atom.id for atom in atoms if atom.failed and atom.severity == "CRITICAL")
        return Judgement(INELIGIBLE, critical) if critical else Judgement(ELIGIBLE, tuple(atom.id for atom in atoms))


def rule_verdicts(evidence: Evidence) -> Verdicts:
    """The rules' own verdicts on a batch: what the reference agent says, over columns."""
    critical = evidence.failed(Severity.CRITICAL)
    eligible: NDArray[np.bool_] = np.logical_not(critical.any(axis=0))
    return Verdicts(eligible, critical | eligible)


def plugin_agent(name: str) -> EvaluatorAgent:
    """An agent that a package registers in the entry-point group `adjudge.agents`."""
    entry = plugin(GROUP, name)
    if entry is None:
        known = ", ".join(
            sorted({RULES, "llm:MODEL", "replay:RUN", "null:eligible", "null:random", *plugin_names(GROUP)})
        )
        raise ConfigError(f"there is no evaluator agent {name!r} (there are: {known})")
    value = entry.load()()
    if not isinstance(value, EvaluatorAgent):
        raise ConfigError(f"entry point {name!r} of {GROUP} makes a {type(value).__name__}, expected an EvaluatorAgent")
    return value
