"""Evaluator agents by name: a language model, a replay of one, null agents, and those of installed packages.

Null agents are judges that know nothing. A validation that finds them good is worth nothing itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from adjudge.agents.options import AgentOptions
from adjudge.evidence.atoms import Atom
from adjudge.verdict.agent import ELIGIBLE, INELIGIBLE, CheckedItems, EvaluatorAgent, Judgement, plugin_agent


def agent_of(name: str, options: AgentOptions | None = None, *, seed: int = 0) -> EvaluatorAgent:
    """The agent that `--agent NAME` means: `llm:MODEL`, `replay:RUN`, `null:eligible`, `null:random`, a plugin's."""
    asked = options or AgentOptions()
    asked.check()
    kind, _, rest = name.partition(":")
    if kind in {"llm", "replay"}:
        from adjudge.agents.llm import LanguageModelAgent, RecordedAgent

        return (LanguageModelAgent if kind == "llm" else RecordedAgent)(rest, asked, seed=seed)
    if name == "invented":
        from adjudge.agents.invented import InventedJudge

        return InventedJudge(asked, seed=seed)
    if name == AlwaysEligible.name:
        return AlwaysEligible()
    return RandomCitations(seed) if name == RandomCitations.name else plugin_agent(name)


class AlwaysEligible(EvaluatorAgent):
    """Calls everything eligible; it is refused wherever a critical atom failed."""

    name, model = "null:eligible", "null"

    def adjudicate(
        self, items: CheckedItems, atoms: Sequence[Atom], answer: str | None, refusal: str | None = None
    ) -> Judgement:
        """Eligible, citing all there is."""
        del items, answer, refusal
        return Judgement(ELIGIBLE, tuple(atom.id for atom in atoms))


class RandomCitations(EvaluatorAgent):
    """Decides and cites by a hash of the sample and the seed."""

    name, model = "null:random", "null"

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def adjudicate(
        self, items: CheckedItems, atoms: Sequence[Atom], answer: str | None, refusal: str | None = None
    ) -> Judgement:
        """One of both verdicts, citing one atom."""
        del items, answer
        drawn = hashlib.sha256(f"{self._seed}/{atoms[0].id}/{refusal is None}".encode()).digest()
        cited = atoms[int.from_bytes(drawn[1:4]) % len(atoms)]
        return Judgement(ELIGIBLE if drawn[0] % 2 else INELIGIBLE, (cited.id,))
