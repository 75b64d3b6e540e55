import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from adjudge.stats import ranking
from adjudge.stats import ranking_bootstrap as rb
from adjudge.stats.resampling import weights

table = st.tuples(st.integers(2, 90), st.integers(1, 12), st.integers(1, 40), st.integers(0, 10**6))


def make(case):
    n, m, values, seed = case
    random = np.random.default_rng(seed)
    positive = random.random(n) < 0.4
    positive[:2] = True, False
    return random.integers(0, values, n).astype(float), positive, random.integers(0, m, n)


@given(table)
def test_matrix_counts_every_pair(case):
    scores, positive, place = make(case)
    m = case[1]
    up, down = scores[positive][:, None], scores[~positive][None, :]
    doubled = 2 * (up > down) + (up == down)
    expected = np.zeros((m, m), dtype=int)
    np.add.at(expected, (place[positive][:, None], place[~positive][None, :]), doubled)
    assert (rb.PairCounts(rb.RankedRows.of(scores, positive, place, m)).matrix == expected).all()


@pytest.mark.parametrize("decimals", [1, 3, 15])
def test_matrix_and_average_precision_of_many_rows_cross_the_edges_of_parts(monkeypatch, decimals):
    random = np.random.default_rng(0)
    positive, place = random.random(6000) < 0.3, random.integers(0, 7, 6000)
    scores = np.round(random.normal(size=6000) + positive, decimals)
    monkeypatch.setattr(rb, "_CELLS", 500)
    matrix = rb.PairCounts(rb.RankedRows.of(scores, positive, place, 7)).matrix
    for i in range(7):
        for j in range(7):
            above, below = scores[positive & (place == i)], scores[~positive & (place == j)]
            # Mann and Whitney's U counts a tie as a half.
            assert matrix[i, j] == 2 * stats.mannwhitneyu(above, below).statistic
    rows = rb.RankedRows.of(scores, positive, place, 7).falling[0]
    expected = metrics.average_precision_score(positive, scores)
    assert rows.average_precision() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("positive", [[True, True, True], [False, False, False], []])
def test_one_class_has_no_pairs(positive):
    scores, place = np.array([1.0, 2.0, 2.0]), np.array([0, 1, 1])
    table = rb.PairCounts(
        rb.RankedRows.of(scores[: len(positive)], np.array(positive, dtype=bool), place[: len(positive)], 2)
    )
    assert not table.matrix.any()
    assert np.isnan(table.replicate(np.ones((1, 2)))).all()


def test_average_precision_without_positives_is_undefined():
    found = rb.average_precisions(np.array([0, 2]), np.array([True, True]), np.array([[1.0, 1.0], [2.0, 0.0]]))
    assert np.isnan(found).all()


def test_block_counts_count_the_rows_before_each_block():
    random = np.random.default_rng(5)
    place, positive = random.integers(0, 7, 1003), random.random(1003) < 0.3
    expected = np.zeros((12, 2, 7))
    for row, (cluster, hit) in enumerate(zip(place, positive, strict=True)):
        expected[row // 100 + 1 :, int(hit), cluster] += 1
    assert (rb._block_counts(place, positive, 100, 7) == expected).all()
    turned = rb._block_counts(place.astype(np.int32)[::-1], positive[::-1], 1003, 7)
    assert (turned[1] == expected[-1]).all()


@pytest.mark.parametrize("levels", [5, 10_000])
def test_best_f1_is_that_of_its_threshold_and_of_no_other(levels):
    random = np.random.default_rng(6)
    scores, positive = random.integers(0, levels, 500).astype(float), random.random(500) < 0.4
    value, cut = ranking.best_f1(rb.RankedRows.of(scores, positive, np.zeros(500, dtype=np.int64), 1))
    assert value == metrics.f1_score(positive, scores >= cut)
    assert value == max(metrics.f1_score(positive, scores >= other) for other in np.unique(scores))


def resampled_rows(place, drawn):
    return np.concatenate([np.tile(np.flatnonzero(place == k), int(times)) for k, times in enumerate(drawn)])


@settings(max_examples=40)
@given(table, st.sampled_from([0.0, 0.05, 0.1, 0.3, 1.0]))
def test_every_replicate_is_the_measure_of_the_resampled_rows(case, target):
    scores, positive, place = make(case)
    m = case[1]
    drawn = next(weights(m, 6, 1, "w"))
    sorted_rows = rb.RankedRows.of(scores, positive, place, m)
    falling, place_of_row = sorted_rows.falling
    aurocs = rb.PairCounts(sorted_rows).replicate(drawn)
    recalls = rb.Curve.of(falling, place_of_row, m).recall_at(drawn, target)
    areas = rb.average_precisions(sorted_rows.code[::-1], falling.ends, drawn)
    for b, row in enumerate(drawn):
        rows = resampled_rows(place, row)
        y, s = positive[rows], scores[rows]
        if y.any():
            assert areas[b] == pytest.approx(metrics.average_precision_score(y, s), abs=1e-12)
        else:
            assert np.isnan(areas[b])
        if y.all() or not y.any():
            assert np.isnan(aurocs[b])
            assert np.isnan(recalls[b])
            continue
        assert aurocs[b] == pytest.approx(metrics.roc_auc_score(y, s), abs=1e-12)
        fpr, tpr, _ = metrics.roc_curve(y, s, drop_intermediate=False)
        assert recalls[b] == pytest.approx(tpr[fpr <= target].max(), abs=1e-12)


def test_replicates_of_many_rows_cross_block_edges():
    random = np.random.default_rng(4)
    n, m = 30_000, 12
    positive, place = random.random(n) < 0.3, random.integers(0, m, n)
    scores = np.round(random.normal(size=n) + positive, 2)
    scores[random.random(n) < 0.2] = 2.0
    curve = rb.Curve.of(*rb.RankedRows.of(scores, positive, place, m).falling, m)
    drawn = next(weights(m, 8, 1, "w"))
    for target in (0.01, 0.2, 0.4, 0.9):
        for b, row in enumerate(drawn):
            rows = resampled_rows(place, row)
            fpr, tpr, _ = metrics.roc_curve(positive[rows], scores[rows], drop_intermediate=False)
            assert curve.recall_at(drawn[b : b + 1], target)[0] == pytest.approx(tpr[fpr <= target].max(), abs=1e-12)


def test_many_clusters_go_without_the_matrix(monkeypatch):
    scores, positive, place = make((80, 12, 9, 1))
    with_matrix = rb.PairCounts(rb.RankedRows.of(scores, positive, place, 12))
    monkeypatch.setattr(rb, "MATRIX_UP_TO", 4)
    without = rb.PairCounts(rb.RankedRows.of(scores, positive, place, 12))
    assert without.matrix is None
    assert without.value == with_matrix.value
    drawn = next(weights(12, 50, 1, "w"))
    assert (without.replicate(drawn) == with_matrix.replicate(drawn)).all()
    assert without.leave_one_out() == pytest.approx(with_matrix.leave_one_out(), abs=1e-12)


@pytest.mark.parametrize("method", ["expanded", "percentile", "bca"])
@pytest.mark.parametrize("measure", ["cluster_auroc", "average_precision", "recall_at_fpr"])
def test_clusters_that_differ_widen_the_interval(measure, method):
    random = np.random.default_rng(7)
    place = np.repeat(np.arange(25), 40)
    positive = random.random(1000) < 0.5
    scores = random.normal(size=1000) + positive * (1 + random.normal(size=25)[place])

    def estimate(clusters, **asked):
        rows = rb.RankedRows.of(scores, positive, clusters, int(clusters.max()) + 1)
        if measure == "recall_at_fpr":
            return ranking.recall_at_fpr(rb.Curve.of(*rows.falling, rows.m), 0.1, seed=1, stream="m", **asked)
        return getattr(ranking, measure)(rows, seed=1, stream="m", **asked)

    plain, clustered = estimate(np.arange(1000), resamples=300), estimate(place, method=method)
    assert clustered.value == pytest.approx(plain.value, abs=1e-12)
    assert clustered.low < clustered.value < clustered.high
    assert clustered.high - clustered.low > 1.3 * (plain.high - plain.low)


def test_clusters_may_have_names():
    scores, positive, place = make((200, 12, 30, 5))
    names = np.array([f"flight {k}" for k in place])
    one, other = (ranking.auroc_by_cluster(scores, positive, clusters, seed=1) for clusters in (place, names))
    assert one.value == other.value


def test_few_clusters_are_enumerated():
    scores, positive, place = make((60, 5, 30, 3))
    estimate = ranking.auroc_by_cluster(scores, positive, place, seed=1, stream="m")
    assert estimate.method.endswith("all 126 distinct resamples")
    assert estimate.warnings
