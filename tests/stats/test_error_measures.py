import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from adjudge.errors import StatsError
from adjudge.stats import proportions as em

finite = st.floats(-1e6, 1e6)


def test_no_errors_are_null():
    assert em.quantile([], 0.5).why == "no values"
    assert em.exceedance([], 1.0).why == "no trials"


@pytest.mark.parametrize(
    "n, q, rank", [(20, 0.95, 19), (100, 0.99, 99), (10, 0.5, 5), (11, 0.5, 6), (3, 0.99, 3), (7, 0.01, 1)]
)
def test_quantile_is_the_inverse_of_the_distribution(n, q, rank):
    values = np.arange(1.0, n + 1)[::-1]
    assert em.quantile(values, q).value == rank


@given(st.lists(finite, min_size=1, max_size=50), st.sampled_from([0.05, 0.25, 0.5, 0.9, 0.95]))
def test_quantile_equals_numpy(values, q):
    expected = np.quantile(values, q, method="inverted_cdf")
    assert em.quantile(values, q).value == expected


@pytest.mark.parametrize("n, q, level", [(50, 0.5, 0.95), (100, 0.9, 0.95), (400, 0.95, 0.9), (2000, 0.99, 0.99)])
def test_interval_of_a_quantile_covers_by_the_binomial(n, q, level):
    estimate = em.quantile(np.arange(1.0, n + 1), q, level=level)
    low, high = int(estimate.low), int(estimate.high)
    binomial = stats.binom(n, q)
    # The true quantile lies in [x_low, x_high) exactly when low to high - 1 values are below it.
    assert binomial.cdf(high - 1) - binomial.cdf(low - 1) >= level
    assert binomial.cdf(low) > (1 - level) / 2
    assert binomial.sf(high - 2) > (1 - level) / 2


def test_quantile_of_too_few_values_has_no_upper_end():
    estimate = em.quantile(np.arange(20.0), 0.95)
    assert estimate.value == 18.0
    assert estimate.high is None
    assert estimate.low is not None
    assert "too few for an upper end" in estimate.warnings[0]
    with pytest.raises(StatsError, match="quantile"):
        em.quantile([1.0], 1.0)


def test_exceedance_is_strict():
    estimate = em.exceedance([1.0, 2.0, 3.0, 4.0], 3.0)
    assert (estimate.value, estimate.n, estimate.method) == (0.25, 4, "wilson")


@given(st.lists(finite, min_size=1, max_size=50), st.sampled_from([0.05, 0.5, 0.95]))
def test_values_of_quantiles_alone_are_those_of_quantile(values, q):
    assert em.quantile_values(values, [q, 0.5]) == [em.quantile(values, q).value, em.quantile(values, 0.5).value]


def test_a_quantile_of_clusters_of_one_has_about_the_interval_of_independent_values():
    values = np.random.default_rng(3).normal(size=400)
    alone, clustered = em.quantile(values, 0.9), em.quantile(values, 0.9, clusters=np.arange(400))
    assert clustered.value == alone.value
    places = [np.searchsorted(np.sort(values), end) for end in (alone.low, alone.high)]
    assert [np.searchsorted(np.sort(values), end) for end in (clustered.low, clustered.high)] == pytest.approx(
        places, abs=3
    )


def test_a_quantile_of_repeated_clusters_knows_no_more_than_one_of_each():
    """Every value ten times, each ten a cluster: as wide as the values once, not as ten times as many."""
    values = np.random.default_rng(4).normal(size=100)
    once = em.quantile(values, 0.5, clusters=np.arange(100))
    often = em.quantile(np.repeat(values, 10), 0.5, clusters=np.repeat(np.arange(100), 10))
    naive = em.quantile(np.repeat(values, 10), 0.5)
    assert often.value == once.value
    assert (often.low, often.high) == pytest.approx((once.low, once.high), abs=0.12)
    assert often.high - often.low > 2 * (naive.high - naive.low)


def test_a_quantile_of_clusters_at_the_edge_has_no_upper_end():
    found = em.quantile([1.0, 2.0, 3.0], 0.99, clusters=["a", "a", "b"])
    assert (found.value, found.high) == (3.0, None)
    assert any("too few for an upper end" in text for text in found.warnings)
    assert em.quantile([], 0.5, clusters=[]).value is None
