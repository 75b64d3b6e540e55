"""Evaluator agents by name: the rules, null agents, a language model, a replay of one, and those of installed packages."""

from __future__ import annotations

from adjudge.verdict.agent import RULES, EvaluatorAgent, RuleBasedAgent, plugin_agent


def agent_of(name: str) -> EvaluatorAgent:
    """The agent that `--agent NAME` means."""
    return RuleBasedAgent() if name == RULES else plugin_agent(name)
