"""An anytime-valid test of paired yes-or-no outcomes: it may be looked at after every sample and still errs at most α.

With b pairs that only the candidate wins and c that only the baseline wins, a fair coin decides each pair where the two are
equally good. E = B(a+b, a+c) / B(a, a) · 2^(b+c) is the likelihood ratio of a coin whose bias has the prior Beta(a, a)
against the fair one: a martingale of mean 1, so that it ever reaches 1/α with a chance of at most α (Ville 1939; as an
e-value: Ramdas et al. 2023, Statistical Science 38:576-601). A large a looks for small differences.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from adjudge.errors import StatsError
from adjudge.stats import _checks

PRIOR = 10.0


class Sequential(msgspec.Struct, frozen=True, kw_only=True):
    """What the pairs seen so far say; `ln_e` is the natural logarithm of the e-value, which may be out of a float's range."""

    wins: int
    losses: int
    ln_e: float
    alpha: float
    outcome: Literal["worse", "better", "undecided"]

    @property
    def e_value(self) -> float:
        """How many times likelier the pairs are under a biased coin; infinite where no float holds it."""
        return math.exp(self.ln_e) if self.ln_e < 700.0 else math.inf

    @property
    def p(self) -> float:
        """A p value that is valid at every look: 1 / E, at most 1."""
        return math.exp(min(0.0, -self.ln_e))


def ln_e_value(wins: int, losses: int, *, prior: float = PRIOR) -> float:
    """The logarithm of E after so many wins and losses; ties tell nothing."""
    b, c = _checks.count(wins, "wins"), _checks.count(losses, "losses")
    if not (math.isfinite(prior) and prior > 0.0):
        raise StatsError(f"prior is {prior}, expected a number above 0")
    return _ln_beta(prior + b, prior + c) - _ln_beta(prior, prior) + (b + c) * math.log(2.0)


def paired_test(wins: int, losses: int, *, alpha: float = 0.05, prior: float = PRIOR) -> Sequential:
    """The candidate is worse where E ≥ 1/α and it lost more pairs than it won, better where it won more."""
    if not 0.0 < alpha < 1.0:
        raise StatsError(f"alpha is {alpha}, expected a number between 0 and 1")
    ln_e = ln_e_value(wins, losses, prior=prior)
    decided = ln_e >= -math.log(alpha) and wins != losses
    outcome: Literal["worse", "better", "undecided"] = (
        "undecided" if not decided else "worse" if losses > wins else "better"
    )
    return Sequential(wins=wins, losses=losses, ln_e=ln_e, alpha=alpha, outcome=outcome)


def _ln_beta(x: float, y: float) -> float:
    return math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)
