"""Agreement of two raters against published tables, scikit-learn and statsmodels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, confusion_matrix
from statsmodels.stats.inter_rater import cohens_kappa

from adjudge.errors import StatsError
from adjudge.stats.agreement import (
    cohen_kappa,
    cohen_kappa_bootstrap,
    constant_rater,
    gwet_ac1,
    label_agreement,
    pabak,
    pair_counts,
    percent_agreement,
)
from adjudge.stats.proportions import wilson

Z = 1.959963984540054
MATRICES = st.integers(2, 5).flatmap(
    lambda k: st.lists(st.integers(0, 30), min_size=k * k, max_size=k * k).map(lambda flat: np.reshape(flat, (k, k)))
)
SAME_NAMES = {"unweighted": None, "linear": "linear", "quadratic": "quadratic"}


def standard_error(estimate):
    return (estimate.high - estimate.low) / 2 / Z


def test_kappa_and_ac1_are_gwets(reference):
    case = reference("agreement")["gwet_abstractors"]
    kappa, ac1 = cohen_kappa(case["matrix"]), gwet_ac1(case["matrix"])
    assert kappa.value == pytest.approx(case["kappa"], abs=5e-8)
    assert standard_error(kappa) == pytest.approx(case["kappa_se"], abs=5e-9)
    assert ac1.value == pytest.approx(case["ac1"], abs=5e-8)
    assert standard_error(ac1) == pytest.approx(case["ac1_se"], abs=5e-9)
    assert pabak(case["matrix"]).value == pytest.approx(case["brennan_prediger"], abs=1e-15)
    assert percent_agreement(case["matrix"]).value == case["percent"]


def test_kappa_interval_is_sas(reference):
    case = reference("agreement")["sas_skin_condition"]
    kappa = cohen_kappa(case["matrix"])
    assert kappa.value == pytest.approx(case["kappa"], abs=5e-5)
    assert kappa.low == pytest.approx(case["kappa_low"], abs=5e-5)
    assert kappa.high == pytest.approx(case["kappa_high"], abs=5e-5)


def test_kappa_is_cohen_1968(reference):
    case = reference("agreement")["cohen_1968"]
    assert cohen_kappa(case["matrix"]).value == pytest.approx(case["kappa"], abs=5e-4)
    weighted = cohen_kappa(case["matrix"], weights=case["weights"])
    assert weighted.value == pytest.approx(case["weighted_kappa"], abs=5e-4)


def rows_of(matrix):
    first, second = np.indices(matrix.shape)
    return np.repeat(first.ravel(), matrix.ravel()), np.repeat(second.ravel(), matrix.ravel())


@given(MATRICES, st.sampled_from(["unweighted", "linear", "quadratic"]))
@settings(max_examples=60, deadline=None)
def test_kappa_equals_scikit_learn_and_statsmodels(matrix, weights):
    kappa = cohen_kappa(matrix, weights=weights)
    if kappa.value is None:
        assert np.count_nonzero(matrix.sum(axis=0) + matrix.sum(axis=1)) <= 1
        return
    first, second = rows_of(matrix)
    theirs = cohen_kappa_score(first, second, labels=range(len(matrix)), weights=SAME_NAMES[weights])
    assert kappa.value == pytest.approx(theirs, abs=1e-12)
    if kappa.method == "analytic" and kappa.low > -1 and kappa.high < 1:
        result = cohens_kappa(matrix, wt=SAME_NAMES[weights])
        assert standard_error(kappa) == pytest.approx(result.std_kappa, rel=1e-9, abs=1e-12)


@given(MATRICES, st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_renaming_labels_and_swapping_raters_changes_nothing(matrix, random):
    order = list(range(len(matrix)))
    random.shuffle(order)
    renamed = matrix[np.ix_(order, order)]
    for statistic in (cohen_kappa, gwet_ac1, pabak, percent_agreement):
        assert statistic(renamed).value == statistic(matrix).value
        assert statistic(matrix.T).value == statistic(matrix).value


@given(MATRICES)
@settings(max_examples=40, deadline=None)
def test_partitions_add_up_to_the_same_matrix(matrix):
    first, second = rows_of(matrix)
    cut = first.size // 3
    k = len(matrix)
    parts = pair_counts(first[:cut], second[:cut], k) + pair_counts(first[cut:], second[cut:], k)
    assert np.array_equal(parts, matrix)


def test_one_label_only_has_no_kappa_but_full_agreement():
    matrix = np.zeros((4, 4), dtype=int)
    matrix[0, 0] = 50
    kappa = cohen_kappa(matrix)
    assert kappa.value is None
    assert "1 − Pe = 0" in kappa.why
    assert cohen_kappa_bootstrap(matrix, seed=0).value is None
    assert percent_agreement(matrix).value == 1.0
    ac1 = gwet_ac1(matrix)
    assert ac1.value == 1.0
    assert ac1.low < 1.0


@pytest.mark.parametrize("statistic", [cohen_kappa, gwet_ac1, pabak, percent_agreement])
def test_no_items_is_null(statistic):
    assert statistic([[0, 0], [0, 0]]).value is None


def test_perfect_agreement_has_an_interval_with_width():
    for estimate in (cohen_kappa([[30, 0], [0, 20]]), cohen_kappa_bootstrap([[30, 0], [0, 20]], seed=1)):
        assert estimate.value == 1.0
        assert estimate.low < 0.9
        assert estimate.high == 1.0


def test_bootstrap_interval_is_close_to_the_analytic_one():
    matrix = np.array([[400, 40, 10], [30, 300, 20], [5, 25, 170]])
    analytic, bootstrap = cohen_kappa(matrix), cohen_kappa_bootstrap(matrix, seed=7, resamples=4000)
    assert bootstrap.value == analytic.value
    assert bootstrap.low == pytest.approx(analytic.low, abs=0.006)
    assert bootstrap.high == pytest.approx(analytic.high, abs=0.006)
    assert bootstrap.seed == 7


def test_prevalence_and_bias_of_byrt_1993():
    # a = 40, b = 9, c = 6, d = 45 of Byrt, Bishop, Carlin 1993, by hand: PI = (40 − 45)/100, BI = (9 − 6)/100.
    rows = label_agreement([[40, 9], [6, 45]])
    assert rows[0].prevalence_index == pytest.approx(-0.05)
    assert rows[0].bias_index == pytest.approx(0.03)
    assert rows[1].bias_index == pytest.approx(-0.03)
    assert rows[0].agreement.value == pytest.approx(80 / 95)
    # PABAK = 2·Po − 1
    assert pabak([[40, 9], [6, 45]]).value == pytest.approx(0.70)


def test_unused_label_has_no_agreement():
    unused = label_agreement([[5, 0, 0], [0, 5, 0], [0, 0, 0]])[2]
    assert unused.agreement.value is None


def test_constant_rater_scores_the_largest_margin():
    first, second = constant_rater([[90, 5], [2, 3]])
    assert first.value == 0.95
    assert second.value == 0.92


def test_confusion_of_labels():
    assert pair_counts([0, 1, 0, 2], np.array([0, 1, 1, 0]), 3).tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    "first, second", [([0, 2], [0, 1]), ([0, -1], [0, 1]), ([0.0, 1.0], [0.0, 1.0]), ([0], [0, 1])]
)
def test_bad_codes_are_refused(first, second):
    with pytest.raises(StatsError):
        pair_counts(first, second, 2)


@pytest.mark.parametrize("matrix", [[[1, 2]], [1, 2], [[1, -2], [3, 4]], [[0.5, 1], [1, 1]], []])
def test_bad_matrices_are_refused(matrix):
    with pytest.raises(StatsError):
        cohen_kappa(matrix)


def test_unknown_weights_are_refused():
    with pytest.raises(StatsError, match="cubic"):
        cohen_kappa([[1, 2], [3, 4]], weights="cubic")
    for own in ([[0, 1, 2], [1, 0, 1], [2, 1, 0]], [[1, 1], [1, 0]]):
        with pytest.raises(StatsError, match="2 by 2"):
            cohen_kappa([[1, 2], [3, 4]], weights=own)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, np.uint64])
def test_pairs_of_codes_of_any_width_are_counted(dtype):
    first, second = np.random.default_rng(0).integers(0, 6, (2, 5000)).astype(dtype)
    assert np.array_equal(pair_counts(first, second, 6), confusion_matrix(first, second))
    for codes, k in [(second, 5)] if np.dtype(dtype).kind == "u" else [(second, 5), (-second, 6)]:
        with pytest.raises(StatsError, match=f"outside the label space 0 … {k - 1}"):
            pair_counts(first, codes, k)
    assert pair_counts(first[:0], second[:0], 2).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("way", [cohen_kappa, gwet_ac1])
def test_of_perfect_agreement_the_interval_is_that_of_the_agreement_with_chance_held_fixed(way):
    estimate = way([[18, 0], [0, 7]])
    shares = np.array([18, 7]) / 25
    chance = float((shares**2).sum()) if way is cohen_kappa else float((shares * (1 - shares)).sum())
    low = wilson(25, 25).low
    assert (estimate.value, estimate.high) == (1.0, 1.0)
    assert estimate.low == pytest.approx((low - chance) / (1 - chance))
