"""Holm and Benjamini–Hochberg against their papers' examples and statsmodels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from adjudge.errors import StatsError
from adjudge.stats.ties import benjamini_hochberg, holm

P_VALUES = st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.01, 0.05, 1.0]), min_size=1, max_size=30)


def test_rejections_are_benjamini_hochberg_1995(reference):
    case = reference("paired")["benjamini_hochberg_1995"]
    assert sum(p <= 0.05 for p in benjamini_hochberg(case["p"])) == case["rejected_bh"]
    assert sum(p <= 0.05 for p in holm(case["p"])) == case["rejected_holm"]


def test_holm_textbook_example(reference):
    case = reference("paired")["holm_1979"]
    assert holm(case["p"]) == pytest.approx(case["adjusted"], rel=1e-14)


@given(P_VALUES)
@settings(max_examples=40, deadline=None)
def test_adjusted_equal_statsmodels(p):
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1].tolist(), rel=1e-12, abs=0)
    assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1].tolist(), rel=1e-12, abs=0)


@given(P_VALUES, st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_order_moves_with_the_values(p, random):
    order = list(range(len(p)))
    random.shuffle(order)
    for adjust in (holm, benjamini_hochberg):
        adjusted = adjust(p)
        assert adjust([p[i] for i in order]) == [adjusted[i] for i in order]


def test_a_null_is_not_a_test():
    assert holm([0.01, None, 0.02]) == [0.02, None, 0.02]
    assert benjamini_hochberg([None]) == [None]
    assert holm([]) == []


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan])
def test_p_out_of_range_is_refused(bad):
    with pytest.raises(StatsError, match="between 0 and 1"):
        holm([0.5, bad])


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_untested_hypotheses_count_as_tests_that_found_nothing(adjust):
    p_values = [0.001, None, 0.004, 0.03, 0.0002]
    alone, among_others = adjust(p_values), adjust(p_values, untested=7)
    assert among_others == pytest.approx(adjust([*p_values, *[1.0] * 7])[:5])
    assert among_others[0] > alone[0]
