import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from adjudge.errors import StatsError
from adjudge.stats import ranking
from adjudge.stats.ranking import placements, variance_of_auroc
from adjudge.stats.ranking_bootstrap import Curve, RankedRows, largest_allowed

rows = st.lists(st.tuples(st.integers(-8, 8), st.booleans()), min_size=2, max_size=60).filter(
    lambda data: len({positive for _, positive in data}) == 2
)


def sorted_rows(scores, positive, clusters):
    return RankedRows.of(np.asarray(scores, dtype=float), np.asarray(positive), clusters, int(clusters.max()) + 1)


def recall_at_fpr(scores, positive, target, clusters, **asked):
    rows = sorted_rows(scores, positive, clusters)
    return ranking.recall_at_fpr(Curve.of(*rows.falling, rows.m), target, stream="r", seed=1, **asked)


def recall_by_definition(scores, positive, target):
    """The largest TPR over all thresholds with FPR at most the target, one threshold after the other."""
    best = 0.0
    for threshold in np.unique(scores):
        flagged = scores >= threshold
        if flagged[~positive].mean() <= target:
            best = max(best, flagged[positive].mean())
    return best


def delong_by_definition(a, b, positive):
    """DeLong's covariance of two AUROCs from the full table of pairs, O(n²)."""

    def pairs(scores):
        up, down = scores[positive][:, None], scores[~positive][None, :]
        return (up > down) + 0.5 * (up == down)

    one, other = pairs(a), pairs(b)
    m, n = one.shape
    across_ups = ((one.mean(axis=1) - one.mean()) * (other.mean(axis=1) - other.mean())).sum() / (m - 1)
    across_downs = ((one.mean(axis=0) - one.mean()) * (other.mean(axis=0) - other.mean())).sum() / (n - 1)
    return across_ups / m + across_downs / n


@given(rows)
def test_auroc_and_average_precision_equal_scikit_learn(data):
    scores, positive = np.array([score for score, _ in data], dtype=float), np.array([flag for _, flag in data])
    expected = pytest.approx(metrics.roc_auc_score(positive, scores), abs=1e-12)
    assert ranking.auroc(scores, positive).value == expected
    assert ranking.auroc_value(scores, positive) == expected
    assert ranking.auroc_by_cluster(scores, positive, np.arange(len(data)) % 3, seed=0, resamples=5).value == expected
    precision = pytest.approx(metrics.average_precision_score(positive, scores), abs=1e-12)
    rows_by_cluster = sorted_rows(scores, positive, np.arange(len(data)) % 3)
    assert ranking.average_precision(rows_by_cluster, seed=1, stream="ap", resamples=5).value == precision


@given(rows, st.sampled_from([0.0, 0.01, 0.05, 0.1, 0.25, 1 / 3, 0.5, 1.0]))
def test_recall_at_fpr_is_the_best_allowed_threshold(data, target):
    scores, positive = np.array([score for score, _ in data], dtype=float), np.array([flag for _, flag in data])
    expected = pytest.approx(recall_by_definition(scores, positive, target), abs=1e-12)
    fpr, tpr, _ = metrics.roc_curve(positive, scores, drop_intermediate=False)
    assert tpr[fpr <= target].max() == expected
    for clusters in (np.arange(len(data)), np.arange(len(data)) % 4):
        assert recall_at_fpr(scores, positive, target, clusters, resamples=5).value == expected


@settings(max_examples=50)
@given(rows.filter(lambda data: 2 <= sum(flag for _, flag in data) <= len(data) - 2))
def test_delong_equals_the_table_of_pairs(data):
    a, positive = np.array([score for score, _ in data], dtype=float), np.array([flag for _, flag in data])
    assert variance_of_auroc(*placements(a, positive, np.ones(a.size, dtype=int))) == pytest.approx(
        delong_by_definition(a, a, positive), abs=1e-12
    )


def test_delong_worked_by_hand(reference):
    worked = reference("delong")["by_hand"]
    scores = np.array(worked["positives"] + worked["negatives"], dtype=float)
    positive = np.arange(scores.size) < len(worked["positives"])
    assert ranking.auroc(scores, positive).value == pytest.approx(worked["auroc"], abs=1e-15)
    assert variance_of_auroc(*placements(scores, positive, np.ones(scores.size, dtype=int))) == pytest.approx(
        worked["variance"], abs=1e-15
    )


@settings(max_examples=40)
@given(rows, st.floats(0.1, 100), st.floats(-100, 100), st.randoms())
def test_affine_scores_and_row_order_change_nothing(data, scale, shift, random):
    scores, positive = np.array([score for score, _ in data], dtype=float), np.array([flag for _, flag in data])
    order = list(range(len(data)))
    random.shuffle(order)
    one = ranking.auroc(scores, positive)
    assert ranking.auroc(scores * scale + shift, positive) == one
    assert ranking.auroc(scores[order], positive[order]) == one
    clusters = np.arange(len(data)) % 12
    recall = recall_at_fpr(scores, positive, 0.2, clusters, resamples=50)
    assert recall_at_fpr(scores[order] * scale, positive[order], 0.2, clusters[order], resamples=50) == recall


def test_turned_scores_mirror_auroc():
    random = np.random.default_rng(1)
    positive = random.random(300) < 0.4
    scores = random.normal(size=300) + positive
    one, other = ranking.auroc(scores, positive), ranking.auroc(-scores, positive)
    assert one.value == pytest.approx(1 - other.value, abs=1e-15)
    assert one.low == pytest.approx(1 - other.high, abs=1e-12)


def test_perfect_ranking_has_an_interval_of_some_width():
    scores, positive = np.arange(20.0), np.arange(20) >= 10
    plain = ranking.auroc(scores, positive)
    assert (plain.value, plain.high, plain.method) == (1.0, 1.0, "newcombe")
    assert 0.6 < plain.low < 0.95
    clustered = ranking.auroc_by_cluster(scores, positive, np.arange(20) % 4, seed=0)
    assert clustered.low < plain.low
    assert ranking.auroc(-scores, positive).high == pytest.approx(1 - plain.low)
    recall = recall_at_fpr(scores, positive, 0.1, np.arange(20) % 4)
    assert recall.value == 1.0
    assert recall.low < 0.9


def test_newcombe_interval_solves_its_equation():
    low, high = ranking.newcombe_auroc(0.8, 30, 40)
    for end in (low, high):
        spread = 1 + 34 * ((1 - end) / (2 - end) + end / (1 + end))
        assert abs(0.8 - end) == pytest.approx(1.959963984540054 * np.sqrt(end * (1 - end) * spread / 1200), abs=1e-9)


@pytest.mark.parametrize("positive", [[True, True], [False, False], []])
def test_one_class_only_is_null_with_a_reason(positive):
    scores = np.arange(float(len(positive)))
    estimates = [
        ranking.auroc(scores, positive),
        ranking.auroc_by_cluster(scores, positive, scores, seed=0),
    ]
    if positive:
        estimates.append(recall_at_fpr(scores, positive, 0.1, np.arange(len(positive))))
    assert all(estimate.value is None and "one class" in estimate.why for estimate in estimates)
    assert ranking.auroc_value(scores, positive) is None


def test_average_precision_without_positives_is_null():
    rows_by_cluster = sorted_rows([1.0, 2.0], [False, False], np.arange(2))
    assert ranking.average_precision(rows_by_cluster, seed=1, stream="ap").why == "no positives"


def test_recall_never_goes_past_the_target():
    # Binary scores with 10 % false positives and 80 % true positives: the point at FPR 10 % is not allowed at 1 %.
    positive = np.repeat([True, False], 100)
    scores = np.concatenate([np.repeat([1.0, 0.0], [80, 20]), np.repeat([1.0, 0.0], [10, 90])])
    clusters = np.arange(200) % 20
    assert recall_at_fpr(scores, positive, 0.01, clusters).value == 0.0
    assert recall_at_fpr(scores, positive, 0.1, clusters).value == 0.8


@pytest.mark.parametrize(
    "n, target, allowed", [(100, 0.01, 1), (100, 0.07, 7), (1000, 0.057, 57), (99, 0.01, 0), (7, 1.0, 7)]
)
def test_largest_allowed_is_exact_for_decimal_targets(n, target, allowed):
    assert largest_allowed(np.array([n]), target).tolist() == [allowed]


def test_bad_columns_are_refused():
    with pytest.raises(StatsError, match="nan"):
        ranking.auroc([np.nan, 1.0], [True, False])
    with pytest.raises(StatsError, match="0 and 1"):
        ranking.auroc([1.0, 2.0], [0, 2])
    with pytest.raises(StatsError, match="rows"):
        ranking.auroc([1.0, 2.0], [True])


def test_positives_may_be_numbers_0_and_1_and_no_others():
    scores, flags = [0.9, 0.4, 0.7, 0.1], np.array([True, False, True, False])
    assert ranking.auroc(scores, flags.astype(int)) == ranking.auroc(scores, flags)
    with pytest.raises(StatsError, match="0 and 1"):
        ranking.auroc(scores, [1, 0, 2, 0])
