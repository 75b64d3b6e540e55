"""Fleiss' κ and Krippendorff's α against their papers, statsmodels and the krippendorff package."""

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss

from adjudge.errors import StatsError
from adjudge.stats.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha


def rating_counts(ratings, labels):
    """How many raters gave each item each label."""
    return np.array([[sum(rating == label for rating in row) for label in labels] for row in ratings])


def test_kappa_is_fleiss_1971(reference):
    case = reference("agreement")["fleiss_1971"]
    kappa = fleiss_kappa(case["counts"], seed=1)
    assert kappa.value == pytest.approx(case["kappa"], abs=5e-9)
    assert round(kappa.value, 3) == 0.430
    assert kappa.low < kappa.value < kappa.high


@pytest.mark.parametrize("metric", ["nominal", "ordinal"])
def test_alpha_is_krippendorff_2011(reference, metric):
    case = reference("agreement")["krippendorff_2011"]
    alpha = krippendorff_alpha(rating_counts(case["ratings"], [1, 2, 3, 4, 5]), metric=metric, seed=1)
    assert alpha.value == pytest.approx(case[metric], abs=5e-4)
    assert alpha.n == 11  # the unit with one rating pairs with nothing


def test_alpha_of_two_raters_is_gwets(reference):
    case = reference("agreement")["gwet_abstractors"]
    ratings = [(i, j) for i, row in enumerate(case["matrix"]) for j, times in enumerate(row) for _ in range(times)]
    alpha = krippendorff_alpha(rating_counts(ratings, [0, 1, 2]), seed=1)
    assert alpha.value == pytest.approx(case["alpha_nominal"], abs=5e-8)


@st.composite
def ratings(draw, missing=True):
    raters, k = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    values = st.integers(0, k - 1) | st.none() if missing else st.integers(0, k - 1)
    return draw(st.lists(st.lists(values, min_size=raters, max_size=raters), min_size=2, max_size=25)), k


@given(ratings(), st.sampled_from(["nominal", "ordinal"]))
@settings(max_examples=60, deadline=None)
def test_alpha_equals_the_krippendorff_package(case, metric):
    rows, k = case
    alpha = krippendorff_alpha(rating_counts(rows, range(k)), metric=metric, seed=0, resamples=50)
    data = np.array(rows, dtype=float).T
    pairable = data[:, (~np.isnan(data)).sum(axis=0) >= 2]
    if np.unique(pairable[~np.isnan(pairable)]).size < 2:
        assert alpha.value is None
        return
    theirs = krippendorff.alpha(reliability_data=data, value_domain=list(range(k)), level_of_measurement=metric)
    assert alpha.value == pytest.approx(theirs, abs=1e-12)


@given(ratings(missing=False))
@settings(max_examples=40, deadline=None)
def test_fleiss_equals_statsmodels(case):
    rows, k = case
    counts = rating_counts(rows, range(k))
    kappa = fleiss_kappa(counts, seed=0, resamples=50)
    if np.count_nonzero(counts.sum(axis=0)) < 2:
        assert kappa.value is None
        return
    assert kappa.value == pytest.approx(statsmodels_fleiss(counts), abs=1e-12)


@given(ratings(), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_row_order_and_renaming_change_nothing(case, random):
    rows, k = case
    counts = rating_counts(rows, range(k))
    shuffled = counts[random.sample(range(len(rows)), len(rows))]
    for metric in ("nominal", "ordinal"):
        alpha = krippendorff_alpha(counts, metric=metric, seed=3, resamples=50)
        assert krippendorff_alpha(shuffled, metric=metric, seed=3, resamples=50) == alpha
    alpha = krippendorff_alpha(counts, seed=3, resamples=50)
    renamed = krippendorff_alpha(counts[:, ::-1], seed=3, resamples=50)
    assume(alpha.value is not None)
    assert renamed.value == pytest.approx(alpha.value, abs=1e-12)


def test_fleiss_of_two_raters_stands_by_cohen():
    # Equal margins: Fleiss' κ (Scott's π for two raters) and Cohen's κ agree.
    matrix = [[20, 5], [5, 10]]
    rows = [(i, j) for i, row in enumerate(matrix) for j, times in enumerate(row) for _ in range(times)]
    assert fleiss_kappa(rating_counts(rows, [0, 1]), seed=0).value == pytest.approx(
        cohen_kappa(matrix).value, abs=1e-12
    )


def test_unanimous_items_have_an_interval_with_width():
    counts = [[4, 0], [0, 4], [4, 0], [0, 4]] * 5
    for estimate in (fleiss_kappa(counts, seed=1), krippendorff_alpha(counts, seed=1)):
        assert estimate.value == pytest.approx(1.0)
        assert estimate.low < 0.9


def test_undefined_cases_are_null():
    assert fleiss_kappa([[3, 0], [3, 0]], seed=0).value is None
    assert fleiss_kappa(np.zeros((0, 2), dtype=int), seed=0).value is None
    assert krippendorff_alpha([[3, 0], [2, 0]], seed=0).value is None
    assert krippendorff_alpha([[1, 0], [0, 1]], seed=0).why == "no item has two ratings"


def test_bad_tables_are_refused():
    with pytest.raises(StatsError, match="same number"):
        fleiss_kappa([[2, 1], [1, 1]], seed=0)
    with pytest.raises(StatsError, match="ratio"):
        krippendorff_alpha([[1, 1]], metric="ratio", seed=0)
    with pytest.raises(StatsError, match="shape"):
        krippendorff_alpha([1, 1], seed=0)
