"""Evaluator agents whose answers must be refused, and one that is stricter than the rules."""

from __future__ import annotations

from adjudge.extend import Attribution, EvaluatorAgent, Judgement


class Uncited(EvaluatorAgent):
    """Decides without citing anything."""

    name = "uncited"

    def adjudicate(self, items, atoms, answer, refusal=None):
        return Judgement("eligible", ())


class WronglyCited(EvaluatorAgent):
    """Calls everything ineligible and cites an atom that passed."""

    name = "wrongly-cited"

    def adjudicate(self, items, atoms, answer, refusal=None):
        return Judgement("ineligible", (next(atom.id for atom in atoms if atom.outcome == "pass"),))


class Beyond(EvaluatorAgent):
    """Cites an atom that is not there, and tells a story."""

    name = "beyond"

    def adjudicate(self, items, atoms, answer, refusal=None):
        return Judgement("eligible", ("EVID_999",), (Attribution("the pilot was tired", ("EVID_999",), "CRITICAL"),))


class NoChecklist(Uncited):
    """Makes an empty checklist."""

    name = "no-checklist"

    def checklist(self, rules, task):
        return []


class Strict(EvaluatorAgent):
    """Calls a warning disqualifying, in its own words and with a quote; learns from a refusal."""

    name = "strict"

    def adjudicate(self, items, atoms, answer, refusal=None):
        failed = [atom for atom in atoms if atom.failed]
        if not failed:
            return Judgement("eligible", tuple(atom.id for atom in atoms))
        if refusal is None and len(failed) > 1:
            return Judgement("ineligible", ())  # refused once; the second answer counts
        worst = max(failed, key=lambda atom: atom.severity == "CRITICAL")
        reasons = (
            Attribution("this is not flown", (worst.id,), worst.severity, quote=answer[:12]),
            Attribution("the tower said so", (worst.id,), worst.severity, quote="cleared to land"),
        )
        return Judgement("ineligible", tuple(atom.id for atom in failed), reasons, quotes=(answer[-5:], "not there"))
