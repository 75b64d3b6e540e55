"""Calibration against scikit-learn, against definitions summed plainly, and against cases done by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss
from sklearn.metrics import log_loss as sklearn_log_loss

from adjudge.stats.calibration import (
    MAY_BE_CALIBRATED,
    brier,
    brier_value,
    ece,
    ece_value,
    equal_width,
    log_loss,
    reliability_table,
)

ROWS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=80).map(
    lambda rows: (np.array([c for c, _ in rows]), np.array([y for _, y in rows]))
)
DECIMALS = st.lists(st.tuples(st.integers(0, 100), st.booleans()), min_size=1, max_size=80).map(
    lambda rows: (np.array([c / 100 for c, _ in rows]), np.array([y for _, y in rows]))
)


def test_ece_by_hand():
    # Bin [.6, .7): two rows at .6, one right: |1 − 1.2| = .2. Bin [.9, 1]: .9 wrong, 1 right: |1 − 1.9| = .9.
    assert ece_value([0.6, 0.6, 0.9, 1.0], [1, 0, 0, 1]) == pytest.approx(1.1 / 4, abs=1e-15)


def test_edge_convention_matters_at_round_confidences():
    confidence, correct = [0.3, 0.35, 0.3, 0.25], [1, 1, 0, 0]
    # Left-closed: .3 .3 .35 together, .25 alone; right-closed: .25 .3 .3 together, .35 alone.
    assert ece_value(confidence, correct) == pytest.approx((abs(2 - 0.95) + 0.25) / 4, abs=1e-15)
    assert ece_value(confidence, correct, closed="right") == pytest.approx((abs(1 - 0.85) + 0.65) / 4, abs=1e-15)


@given(DECIMALS | ROWS)
@settings(max_examples=80, deadline=None)
def test_ece_equals_scikit_learn_calibration_curve(rows):
    confidence, correct = rows
    # Its bins are right-closed with edges from linspace; off the edges both conventions agree.
    confidence = np.where(np.isclose(confidence * 10, np.round(confidence * 10)), 0.05, confidence)
    share, promised = calibration_curve(correct, confidence, n_bins=10, strategy="uniform")
    counts = np.bincount(equal_width(confidence), minlength=10)
    theirs = np.sum(counts[counts > 0] * np.abs(share - promised)) / confidence.size
    assert ece_value(confidence, correct) == pytest.approx(theirs, abs=1e-12)


@given(ROWS)
@settings(max_examples=60, deadline=None)
def test_brier_and_log_loss_equal_scikit_learn(rows):
    confidence, correct = rows
    theirs = brier_score_loss(correct, confidence, pos_label=True)
    assert brier_value(confidence, correct) == pytest.approx(theirs, abs=1e-12)
    inner = np.clip(confidence, 1e-3, 1 - 1e-3)
    ours = log_loss(inner, correct, seed=0, resamples=50).value
    assert ours == pytest.approx(sklearn_log_loss(correct, inner, labels=[False, True]), abs=1e-12)


@given(DECIMALS | ROWS, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_row_order_changes_no_bit(rows, random):
    confidence, correct = rows
    order = random.sample(range(correct.size), correct.size)
    moved = (confidence[order], correct[order])
    assert ece(*moved, seed=1, resamples=60) == ece(*rows, seed=1, resamples=60)
    assert ece_value(*moved, scheme="equal_mass") == ece_value(*rows, scheme="equal_mass")
    assert brier(*moved, seed=1, resamples=60) == brier(*rows, seed=1, resamples=60)
    assert reliability_table(*moved) == reliability_table(*rows)


def test_brier_estimate_has_the_value():
    rng = np.random.default_rng(0)
    confidence = rng.random(3000)
    correct = rng.random(3000) < confidence
    estimate = brier(confidence, correct, seed=5)
    assert estimate.value == brier_value(confidence, correct)
    standard_error = np.std((confidence - correct) ** 2, ddof=1) / math.sqrt(3000)
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * standard_error, rel=0.08)


def naive_ece_bootstrap(confidence, correct, resamples, seed):
    rng = np.random.default_rng(seed)
    draws = rng.integers(0, confidence.size, (resamples, confidence.size))
    return np.array([ece_value(confidence[d], correct[d]) for d in draws])


def test_ece_interval_equals_resampling_the_rows():
    rng = np.random.default_rng(4)
    confidence = rng.beta(4, 1.5, 2500)
    correct = rng.random(2500) < confidence**2
    naive = np.quantile(naive_ece_bootstrap(confidence, correct, 1500, 1), [0.025, 0.975])
    estimate = ece(confidence, correct, seed=2, resamples=4000, method="percentile")
    by_row = ece(confidence, correct, clusters=np.arange(2500), seed=3, resamples=4000, method="percentile")
    for interval in (estimate, by_row):
        assert [interval.low, interval.high] == pytest.approx(naive.tolist(), abs=0.0025)
        assert interval.value == ece_value(confidence, correct)


def test_ece_by_cluster_is_wider():
    rng = np.random.default_rng(6)
    shift = np.repeat(rng.normal(0, 0.25, 40), 25)
    confidence = rng.uniform(0.5, 1.0, 1000)
    correct = rng.random(1000) < np.clip(confidence - 0.1 + shift, 0, 1)
    clusters = np.repeat(np.arange(40), 25)
    rows, by_cluster = ece(confidence, correct, seed=1), ece(confidence, correct, clusters=clusters, seed=1)
    assert by_cluster.high - by_cluster.low > 1.3 * (rows.high - rows.low)


def test_log_loss_of_a_wrong_certainty_is_null():
    estimate = log_loss([1.0, 0.5], [0, 1], seed=0)
    assert estimate.value is None
    assert "1 rows" in estimate.why
    assert log_loss([1.0, 0.0], [1, 0], seed=0).value == 0.0


def test_no_rows_is_null():
    assert ece([], [], seed=0).value is None
    assert brier([], [], seed=0).value is None
    assert log_loss([], [], seed=0).value is None
    assert ece_value([], []) is None
    assert brier_value([], []) is None


def test_reliability_table():
    rows = reliability_table([0.3, 0.35, 0.95, 1.0], [1, 0, 1, 1])
    assert [row.n for row in rows] == [0, 0, 0, 2, 0, 0, 0, 0, 0, 2]
    assert rows[0].mean_confidence is None
    assert rows[0].accuracy.value is None
    assert (rows[3].low, rows[3].high) == (0.3, 0.4)
    assert rows[3].mean_confidence == pytest.approx(0.325)
    assert rows[3].accuracy.value == 0.5
    assert rows[9].accuracy.low < rows[9].accuracy.value == 1.0


def test_reliability_table_by_cluster_is_wider():
    confidence, correct = [0.5] * 40, ([1] * 10 + [0] * 10) * 2
    plain = reliability_table(confidence, correct)[5].accuracy
    clustered = reliability_table(confidence, correct, clusters=np.repeat(np.arange(8), 5))[5].accuracy
    assert clustered.high - clustered.low > plain.high - plain.low


def test_ece_of_calibrated_answers_reaches_down_to_zero():
    rng = np.random.default_rng(12)
    reached = 0
    for seed in range(60):
        confidence = rng.uniform(0.5, 1.0, 400)
        estimate = ece(confidence, rng.random(400) < confidence, seed=seed, resamples=100)
        reached += estimate.low == 0.0
        assert (estimate.low == 0.0) == (MAY_BE_CALIBRATED in estimate.warnings)
    # 95 % of 60 are expected; 50 is five standard errors below.
    assert reached >= 50


def test_ece_of_overconfident_answers_stays_above_zero():
    rng = np.random.default_rng(13)
    confidence = rng.uniform(0.6, 1.0, 2000)
    correct = rng.random(2000) < confidence - 0.15
    for clusters in (None, np.repeat(np.arange(200), 10)):
        estimate = ece(confidence, correct, clusters=clusters, seed=1)
        assert 0.1 < estimate.low < 0.15 < estimate.high < 0.2
        assert estimate.warnings == ()
