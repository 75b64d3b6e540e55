"""An invented judge for the demo: what a language model might answer, made by a seeded script.

With it anybody can look at refusals, votes, a replay and a validation without a network.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from adjudge.agents.llm import LanguageModelAgent
from adjudge.agents.options import AgentOptions
from adjudge.agents.prompt import mark
from adjudge.verdict.agent import ELIGIBLE, INELIGIBLE, Attribution
from adjudge.verdict.deliberation import Case, Question
from adjudge.verdict.transcripts import Exchange

_LAX, _GHOST, _PROSE = 0.05, 0.10, 0.13
"""Below which number, drawn for an answer, it is too lax, cites what is not there, or is prose."""
_STRICT_SAMPLES, _STRICT_ANSWERS = 0.7, 0.75
"""The share of samples with a failed warning with which the judge is strict, and of its answers to them."""


class InventedJudge(LanguageModelAgent):
    """Mostly faithful; now and then strict, lax, sloppy or chatty. Each answer follows from the request alone."""

    def __init__(self, options: AgentOptions, *, seed: int) -> None:
        super().__init__("invented-judge", options, seed=seed)

    async def open(self) -> None:
        """There is nobody to connect to."""

    async def ask(self, case: Case, question: Question) -> Exchange:
        """The answer that the script gives to this request."""
        sha256 = self.request_digest(case, question)
        drawn = _drawn(sha256)
        text = "The prediction looks plausible to me." if _GHOST <= drawn < _PROSE else self._answer(case, drawn)
        sizes = (900 + len(case.answer or "") // 4, len(text) // 4)
        self._spend(*sizes)
        return Exchange(question.vote, question.attempt, sha256, text, None, False, self.model, *sizes, seconds=0.0)

    def _answer(self, case: Case, drawn: float) -> str:
        critical = [atom for atom in case.atoms if atom.failed and atom.severity == "CRITICAL"]
        passed = [atom for atom in case.atoms if atom.outcome == "pass"]
        warned = [atom for atom in case.atoms if atom.failed]
        strict = _drawn(f"{self.seed}/{case.model}/{case.sample}") < _STRICT_SAMPLES and drawn > 1 - _STRICT_ANSWERS
        worst = critical or (warned if strict else [])
        cites: Sequence[str] = [mark(atom, self.nonce) for atom in (worst or passed[:5])]
        if drawn < _LAX:
            worst, cites = [], [mark(atom, self.nonce) for atom in passed[:1]]
        elif drawn < _GHOST:
            cites = ["A999-000000000000"]
        reasons = [
            Attribution("no pilot would fly on this", (mark(atom, self.nonce),), atom.severity) for atom in worst[:1]
        ]
        verdict = INELIGIBLE if worst else ELIGIBLE
        answer = {"verdict": verdict, "cites": cites, "attribution": reasons, "quotes": []}
        return msgspec.json.encode(answer).decode()


def _drawn(text: str) -> float:
    """A number between 0 and 1 that follows from a text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) / 2**32
