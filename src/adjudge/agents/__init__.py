"""Evaluator agents by name: the rules, null agents, a language model, a replay of one, and those of installed packages."""

from __future__ import annotations

from adjudge.agents.options import AgentOptions
from adjudge.verdict.agent import RULES, EvaluatorAgent, RuleBasedAgent, plugin_agent


def agent_of(name: str, options: AgentOptions | None = None, *, seed: int = 0) -> EvaluatorAgent:
    """The agent that `--agent NAME` means: `rules`, `llm:MODEL`, `replay:RUN`, `null:eligible`, `null:random`, a plugin's."""
    if name == RULES:
        return RuleBasedAgent()
    asked = options or AgentOptions()
    asked.check()
    kind, _, rest = name.partition(":")
    if kind in {"llm", "replay"}:
        from adjudge.agents.llm import LanguageModelAgent, RecordedAgent

        return (LanguageModelAgent if kind == "llm" else RecordedAgent)(rest, asked, seed=seed)
    if name == "invented":
        from adjudge.agents.invented import InventedJudge

        return InventedJudge(asked, seed=seed)
    if kind == "null":
        from adjudge.agents.null import AlwaysEligible, RandomCitations

        if rest == "eligible":
            return AlwaysEligible()
        if rest == "random":
            return RandomCitations(seed)
    return plugin_agent(name)


__all__ = ["AgentOptions", "agent_of"]
