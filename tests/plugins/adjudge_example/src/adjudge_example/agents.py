"""Evaluator agents that must be refused."""

from __future__ import annotations

from adjudge.verdict.agent import EvaluatorAgent, Verdict


class Uncited(EvaluatorAgent):
    """Decides without citing anything."""

    name = "uncited"

    def adjudicate(self, found):
        del found
        return Verdict("eligible", ())


class WronglyCited(EvaluatorAgent):
    """Calls everything ineligible and cites an atom that passed."""

    name = "wrongly-cited"

    def adjudicate(self, found):
        return Verdict("ineligible", (next(atom.position for atom in found if not atom.failed),))


class Beyond(EvaluatorAgent):
    """Cites an atom that is not there."""

    name = "beyond"

    def adjudicate(self, found):
        return Verdict("eligible", (len(found),))
