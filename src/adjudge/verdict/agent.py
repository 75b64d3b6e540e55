"""The evaluator agent: an interface, the rule-based reference behind it, and the citation check that binds every agent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adjudge.errors import CitationRefused, ConfigError
from adjudge.evidence.atoms import Atom, atoms
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import Severity
from adjudge.plugins import plugin, plugin_names
from adjudge.verdict.attribution import Reason, attribute
from adjudge.verdict.checklist import Item, checklist

ELIGIBLE, INELIGIBLE = "eligible", "ineligible"
GROUP = "adjudge.agents"


class Verdict(NamedTuple):
    """A decision about one sample and the positions of the atoms it rests on."""

    decision: str
    cites: tuple[int, ...]


@dataclass
class Verdicts:
    """The verdicts of a batch: `eligible` per sample, `cites` shaped (positions, samples)."""

    eligible: NDArray[np.bool_]
    cites: NDArray[np.bool_]


class EvaluatorAgent(ABC):
    """Who reads the evidence and decides. A language model may stand behind this; the citation check stays the same."""

    name: str
    model = "rules"
    temperature = 0.0

    def checklist(self, found: Sequence[Atom], rules: Sequence[dict[str, Any]]) -> list[Item]:
        """One item for every rule that can be checked, bound to its atoms."""
        return checklist(found, rules)

    def organize(self, found: Sequence[Atom], top: int) -> list[Reason]:
        """The failures, grouped and ranked."""
        return attribute(found, top)

    @abstractmethod
    def adjudicate(self, found: Sequence[Atom]) -> Verdict:
        """The verdict on one sample."""

    def adjudicate_batch(self, evidence: Evidence, models: Sequence[str], samples: Sequence[str]) -> Verdicts:
        """The verdicts of a batch; an agent that can decide over columns overrides this."""
        verdicts = Verdicts(np.zeros(evidence.n, dtype=bool), np.zeros(evidence.outcome.shape, dtype=bool))
        for index, (model, sample) in enumerate(zip(models, samples, strict=True)):
            found = list(atoms(evidence, index, model, sample))
            decision, cites = self.adjudicate(found)
            if decision not in {ELIGIBLE, INELIGIBLE}:
                raise CitationRefused(
                    f"agent {self.name!r} on {model}/{sample}: the verdict {decision!r} is no verdict"
                )
            unknown = [position for position in cites if not 0 <= position < len(found)]
            if unknown:
                raise CitationRefused(
                    f"agent {self.name!r} on {model}/{sample}: the verdict {decision} cites atom {unknown[0]}, "
                    f"which does not exist (the sample has {len(found)} atoms)"
                )
            verdicts.eligible[index] = decision == ELIGIBLE
            verdicts.cites[list(cites), index] = True
        return verdicts


class RuleBasedAgent(EvaluatorAgent):
    """The reference: ineligible if any CRITICAL atom failed, citing all of those; otherwise eligible, citing all atoms."""

    name = "rules"

    def adjudicate(self, found: Sequence[Atom]) -> Verdict:
        """The verdict on one sample."""
        critical = tuple(atom.position for atom in found if atom.failed and atom.severity == "CRITICAL")
        if critical:
            return Verdict(INELIGIBLE, critical)
        return Verdict(ELIGIBLE, tuple(atom.position for atom in found))

    def adjudicate_batch(
        self,
        evidence: Evidence,
        models: Sequence[str],  # noqa: ARG002 -- the interface
        samples: Sequence[str],  # noqa: ARG002 -- the interface
    ) -> Verdicts:
        """The same over columns."""
        critical = evidence.failed(Severity.CRITICAL)
        eligible: NDArray[np.bool_] = np.logical_not(critical.any(axis=0))
        return Verdicts(eligible, critical | eligible)


def check_citations(
    verdicts: Verdicts, evidence: Evidence, agent: EvaluatorAgent, models: Sequence[str], samples: Sequence[str]
) -> None:
    """Refuse, by name, a verdict that cites nothing or whose citations do not support it."""
    critical = evidence.failed(Severity.CRITICAL)
    cited = verdicts.cites
    problems = (
        (~cited.any(axis=0), "cites no evidence"),
        (
            ~verdicts.eligible & ~(cited & critical).any(axis=0),
            "is ineligible, but none of the atoms it cites is a failed CRITICAL one",
        ),
        (
            ~verdicts.eligible & (cited & (evidence.outcome != 1)).any(axis=0),
            "is ineligible, but cites an atom that did not fail",
        ),
        (verdicts.eligible & critical.any(axis=0), "is eligible against a failed CRITICAL atom"),
    )
    for wrong, what in problems:
        if wrong.any():
            index = int(np.flatnonzero(wrong)[0])
            raise CitationRefused(f"agent {agent.name!r} on {models[index]}/{samples[index]}: the verdict {what}")


def agent(name: str) -> EvaluatorAgent:
    """An agent by name: `rules`, or one that a package registers in the entry-point group `adjudge.agents`."""
    if name == RuleBasedAgent.name:
        return RuleBasedAgent()
    entry = plugin(GROUP, name)
    if entry is None:
        known = sorted({"rules", *plugin_names(GROUP)})
        raise ConfigError(f"there is no evaluator agent {name!r} (installed: {', '.join(known)})")
    value = entry.load()()
    if not isinstance(value, EvaluatorAgent):
        raise ConfigError(f"entry point {name!r} of {GROUP} makes a {type(value).__name__}, expected an EvaluatorAgent")
    return value
