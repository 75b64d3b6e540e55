import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from adjudge.errors import StatsError
from adjudge.stats import proportions
from adjudge.stats.proportions import (
    clopper_pearson,
    cluster_wilson,
    design_effect,
    jeffreys,
    newcombe_paired_difference,
    wilson,
)

counts = st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize("name", ["wilson", "clopper_pearson", "newcombe_paired_difference"])
def test_published_intervals(reference, name):
    published = reference("proportions")[name]
    for *arguments, low, high in published["cases"]:
        estimate = getattr(proportions, name)(*arguments)
        assert estimate.low == pytest.approx(low, abs=published["tolerance"]), (published["source"], arguments)
        assert estimate.high == pytest.approx(high, abs=published["tolerance"]), (published["source"], arguments)


@given(counts, st.sampled_from([0.8, 0.95, 0.99]))
def test_equals_statsmodels(case, level):
    hits, n = case
    for function, method in ((wilson, "wilson"), (clopper_pearson, "beta"), (jeffreys, "jeffreys")):
        estimate = function(hits, n, level=level)
        low, high = proportion_confint(hits, n, alpha=1 - level, method=method)
        # Jeffreys' interval reaches 0 at 0/n and 1 at n/n (Brown, Cai and DasGupta 2001); statsmodels leaves it short.
        if not (method == "jeffreys" and hits == 0):
            assert estimate.low == pytest.approx(low, abs=1e-12)
        if not (method == "jeffreys" and hits == n):
            assert estimate.high == pytest.approx(high, abs=1e-12)
        assert estimate.value == hits / n


@given(counts)
def test_turning_successes_into_failures_mirrors_the_interval(case):
    hits, n = case
    one, other = wilson(hits, n), wilson(n - hits, n)
    assert one.low == pytest.approx(1 - other.high, abs=1e-14)
    assert one.low <= one.value <= one.high
    assert one.high > one.low


@pytest.mark.parametrize("function", [wilson, clopper_pearson, jeffreys])
def test_nothing_tried_is_null_with_a_reason(function):
    estimate = function(0, 0)
    assert estimate.value is None
    assert estimate.low is None
    assert estimate.why == "no trials"


def test_ends_are_exact_at_none_and_all():
    for function in (wilson, clopper_pearson, jeffreys):
        assert function(0, 20).low == 0.0
        assert function(20, 20).high == 1.0


@pytest.mark.parametrize(
    "arguments, message",
    [((3, 2), "more than the 2 trials"), ((-1, 2), "not negative"), ((0.5, 2), "whole number"), ((1, 2.0), "whole")],
)
def test_impossible_counts_are_refused(arguments, message):
    with pytest.raises(StatsError, match=message):
        wilson(*arguments)


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_impossible_level_is_refused(level):
    with pytest.raises(StatsError, match="between 0 and 1"):
        wilson(1, 2, level=level)


def test_design_effect_divides_the_number_of_trials():
    plain, clustered = wilson(10, 50), wilson(40, 200, design_effect=4.0)
    assert (clustered.low, clustered.high) == (pytest.approx(plain.low), pytest.approx(plain.high))
    assert clustered.method == "wilson, design effect 4"
    with pytest.raises(StatsError, match="positive"):
        wilson(1, 2, design_effect=0.0)


def test_design_effect_of_clusters_that_agree_within_is_their_size():
    # Every cluster all right or all wrong: intra-class correlation 1, so the effect is the size, times m/(m-1).
    successes = np.array([10, 0] * 20)
    assert design_effect(successes, np.full(40, 10)) == pytest.approx(10 * 40 / 39)


def test_design_effect_of_independent_trials_is_about_one():
    random = np.random.default_rng(4)
    assert design_effect(random.binomial(20, 0.3, 4000), np.full(4000, 20)) == pytest.approx(1.0, abs=0.1)


def test_design_effect_that_data_cannot_show_is_the_largest():
    assert design_effect([0, 0, 0], [4, 6, 10]) == pytest.approx((16 + 36 + 100) / 20)
    assert design_effect([3], [9]) == 9.0
    with pytest.raises(StatsError, match="at least one"):
        design_effect([0], [0])
    with pytest.raises(StatsError, match="more successes"):
        design_effect([2], [1])


def test_cluster_wilson_is_wider_than_wilson_and_warns_of_few_clusters():
    plain, clustered = wilson(45, 90), cluster_wilson([30, 0, 15], [30, 30, 30])
    assert clustered.low < plain.low
    assert clustered.high > plain.high
    assert any("only 3 clusters" in warning for warning in clustered.warnings)
    assert cluster_wilson([1] * 10, [2] * 10).warnings == ()
    assert cluster_wilson([], []).why == "no trials"


def test_cluster_wilson_ignores_empty_clusters():
    one, other = cluster_wilson([3, 1, 2], [5, 5, 5]), cluster_wilson([3, 0, 1, 2], [5, 0, 5, 5])
    assert (one.low, one.high, one.warnings) == (other.low, other.high, other.warnings)


def test_differences_of_nothing_are_null():
    assert newcombe_paired_difference(0, 0, 0, 0).why == "no pairs"


@given(st.tuples(*[st.integers(0, 60)] * 4).filter(lambda t: sum(t) > 0))
def test_paired_difference_turns_sign_with_the_order(table):
    both, only_a, only_b, neither = table
    one = newcombe_paired_difference(both, only_a, only_b, neither)
    other = newcombe_paired_difference(both, only_b, only_a, neither)
    assert one.value == -other.value
    assert one.low == pytest.approx(-other.high, abs=1e-12)
    assert one.low <= one.value <= one.high
