"""The anytime-valid test against SciPy, exact fractions and an exact walk over all paths."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaln

from adjudge.errors import StatsError
from adjudge.stats.paired import ln_e_value, paired_test


@given(st.integers(0, 500), st.integers(0, 500), st.sampled_from([0.5, 1.0, 10.0, 37.5]))
def test_against_scipy(wins, losses, prior):
    expected = betaln(prior + wins, prior + losses) - betaln(prior, prior) + (wins + losses) * math.log(2)
    assert ln_e_value(wins, losses, prior=prior) == pytest.approx(float(expected), abs=1e-9)


def exact(wins, losses, prior=10):
    """B(a+b, a+c) / B(a, a) · 2^(b+c) in fractions."""
    value = Fraction(2) ** (wins + losses)
    for i in range(wins):
        value *= Fraction(prior + i, 2 * prior + i)
    for i in range(losses):
        value *= Fraction(prior + i, 2 * prior + wins + i)
    return value


@pytest.mark.parametrize("wins,losses", [(0, 0), (3, 1), (0, 12), (40, 60), (7, 7)])
def test_against_exact_fractions(wins, losses):
    assert math.exp(ln_e_value(wins, losses)) == pytest.approx(float(exact(wins, losses)), rel=1e-12)


def test_it_is_a_martingale():
    for wins, losses in [(0, 0), (2, 5), (9, 3)]:
        mean = (exact(wins + 1, losses) + exact(wins, losses + 1)) / 2
        assert mean == exact(wins, losses)


def test_false_alarms_over_all_looks_stay_under_alpha():
    """Every path of 300 fair pairs: the chance that E ever reaches 1/α, looked at after every pair."""
    alpha, ahead, alarms = 0.05, {0: 1.0}, 0.0
    for pairs in range(1, 301):
        moved: dict[int, float] = {}
        for wins, chance in ahead.items():
            moved[wins] = moved.get(wins, 0.0) + chance / 2
            moved[wins + 1] = moved.get(wins + 1, 0.0) + chance / 2
        stopped = [wins for wins in moved if ln_e_value(wins, pairs - wins) >= -math.log(alpha)]
        alarms += sum(moved.pop(wins) for wins in stopped)
        ahead = moved
    assert 0.0 < alarms <= alpha


def test_it_decides_for_who_lost_more_and_never_on_a_draw():
    assert paired_test(5, 60).outcome == "worse"
    assert paired_test(60, 5).outcome == "better"
    assert paired_test(6, 8).outcome == "undecided"
    assert paired_test(5, 60).p == pytest.approx(1 / paired_test(5, 60).e_value)
    assert paired_test(0, 100_000).e_value == math.inf
    with pytest.raises(StatsError, match="alpha"):
        paired_test(1, 1, alpha=1.0)
    with pytest.raises(StatsError, match="prior"):
        ln_e_value(1, 1, prior=0.0)
