"""Selective risk: definitions summed plainly, ties without order, areas against AUROC."""

import math
import time
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.errors import StatsError
from adjudge.stats.selective import Blocks, area_of_counts, areas, risk_coverage, selective_areas

ROWS = st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=40).map(
    lambda rows: (np.array([c / 8 for c, _ in rows]), np.array([y for _, y in rows]))
)


def selective_area(confidence, correct, area="aurc", *, stream="area", **options):
    return selective_areas(confidence, correct, [area], stream=stream, **options)[0]


def plain_aurc(correct_in_order):
    """Σ_k (errors among the first k)/k / n, as a fraction."""
    total, errors = Fraction(0), 0
    for k, right in enumerate(correct_in_order, start=1):
        errors += not right
        total += Fraction(errors, k)
    return total / len(correct_in_order)


def test_aurc_by_hand():
    # Errors at places 2 and 4 of 4: risks 0, 1/2, 1/3, 2/4.
    found = areas([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0])
    assert found.aurc == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4, abs=1e-15)
    assert found.e_aurc == pytest.approx(found.aurc - (1 / 3 + 2 / 4) / 4, abs=1e-15)


def test_a_tie_is_the_mean_over_all_orders():
    # Spreading a block's errors evenly is the expectation of every risk over the orders within the block.
    correct = [True, False, True, False, True]
    over_orders = [plain_aurc([True, *order]) for order in permutations(correct)]
    tied = areas([0.9, 0.5, 0.5, 0.5, 0.5, 0.5], [True, *correct])
    assert tied.aurc == pytest.approx(float(sum(over_orders) / len(over_orders)), abs=1e-14)


def test_equal_confidences_have_one_value():
    correct = np.array([1, 0, 0, 1, 1, 1, 0, 1])
    values = {areas(np.full(8, 0.7), np.roll(correct, shift)) for shift in range(8)}
    assert len(values) == 1
    assert values.pop().aurc == pytest.approx(3 / 8, abs=1e-15)


@given(st.lists(st.booleans(), min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_without_ties_it_is_the_plain_sum(correct):
    confidence = np.linspace(1, 0.1, len(correct))
    found = areas(confidence, correct)
    best = plain_aurc(sorted(correct, reverse=True))
    assert found.aurc == pytest.approx(float(plain_aurc(correct)), abs=1e-13)
    assert found.e_aurc == pytest.approx(float(plain_aurc(correct) - best), abs=1e-13)


@given(ROWS, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_row_order_partition_and_monotone_maps_change_no_bit(rows, random):
    confidence, correct = rows
    order = random.sample(range(correct.size), correct.size)
    assert areas(confidence[order], correct[order]) == areas(*rows)
    assert areas(3.0 * confidence - 7.0, correct) == areas(*rows)
    cut = random.randint(0, correct.size)
    first, rest = (Blocks.partial(confidence[part], correct[part]) for part in (slice(cut), slice(cut, None)))
    assert first.merge(rest).finish() == rest.merge(first).finish() == areas(*rows)
    for area in ("aurc", "e_aurc"):
        first = selective_area(*rows, area, seed=1, resamples=40)
        assert selective_area(confidence[order], correct[order], area, seed=1, resamples=40) == first


@pytest.mark.parametrize("area", ["aurc", "e_aurc"])
def test_interval_equals_resampling_the_rows(area):
    rng = np.random.default_rng(3)
    confidence = rng.random(1500)
    correct = rng.random(1500) < 0.4 + 0.5 * confidence
    draws = rng.integers(0, 1500, (1200, 1500))
    naive = [getattr(areas(confidence[d], correct[d]), area) for d in draws]
    low, high = np.quantile(naive, [0.025, 0.975])
    for clusters in (None, np.arange(1500)):
        estimate = selective_area(
            confidence, correct, area, clusters=clusters, seed=5, resamples=3000, method="percentile"
        )
        assert estimate.value == getattr(areas(confidence, correct), area)
        assert [estimate.low, estimate.high] == pytest.approx([low, high], abs=0.08 * (high - low))


def test_clusters_widen_the_interval():
    rng = np.random.default_rng(8)
    ease = np.repeat(rng.normal(0, 0.25, 50), 20)
    confidence = rng.random(1000)
    correct = rng.random(1000) < np.clip(0.5 + 0.3 * confidence + ease, 0, 1)
    rows = selective_area(confidence, correct, seed=1)
    clustered = selective_area(confidence, correct, clusters=np.repeat(np.arange(50), 20), seed=1)
    assert clustered.high - clustered.low > 1.4 * (rows.high - rows.low)


def test_risk_coverage_curve():
    curve = risk_coverage([0.9, 0.8, 0.8, 0.7], [1, 0, 1, 0])
    assert [(point.threshold, point.answered, point.risk.value) for point in curve] == [
        (0.9, 1, 0.0),
        (0.8, 3, pytest.approx(1 / 3)),
        (0.7, 4, 0.5),
    ]
    assert curve[0].risk.high > 0.5
    assert curve[-1].coverage == 1.0


def test_risk_coverage_of_many_rows_is_thinned():
    rng = np.random.default_rng(0)
    curve = risk_coverage(rng.random(5000), rng.integers(0, 2, 5000), points=50)
    assert len(curve) == 50
    assert [round(point.coverage, 2) for point in curve[:3]] == [0.02, 0.04, 0.06]


def test_two_million_rows_take_less_than_two_seconds():
    rng = np.random.default_rng(0)
    confidence = rng.random(2_000_000)
    correct = rng.random(2_000_000) < confidence
    start = time.process_time()
    areas(confidence, correct)
    assert time.process_time() - start < 2.0


def test_no_rows_is_null():
    assert areas([], []) is None
    assert selective_area([], [], seed=0).value is None
    assert risk_coverage([], []) == []
    assert Blocks.partial([], []).merge(Blocks.partial([], [])).finish() is None


def test_bad_input_is_refused():
    with pytest.raises(StatsError, match="0 and 1"):
        areas([0.5], [2])
    with pytest.raises(StatsError, match="rows"):
        areas([0.5], [1, 0])
    with pytest.raises(StatsError, match="auc"):
        selective_area([0.5], [1], "auc", seed=0)
    with pytest.raises(StatsError, match="points"):
        risk_coverage([0.5], [1], points=0)


@pytest.mark.parametrize("errors", [0, 900, 30_000, 50_000])
def test_large_tie_blocks_by_harmonic_numbers_are_those_by_row(errors):
    random = np.random.default_rng(errors)
    confidence = random.integers(0, 9, 50_000) / 10
    correct = np.ones(50_000, dtype=bool)
    correct[random.permutation(50_000)[:errors]] = False
    blocks = Blocks.partial(confidence, correct)
    found = blocks.finish()
    by_row = blocks._by_row()
    assert found.aurc == pytest.approx(by_row, rel=1e-12)
    k = np.arange(50_000 - errors + 1, 50_001)
    best = math.fsum((k - (50_000 - errors)) / k) / 50_000
    assert found.e_aurc == pytest.approx(by_row - best, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("area", ["aurc", "e_aurc"])
def test_the_area_of_counts_is_that_of_their_rows(area):
    rng = np.random.default_rng(11)
    confidence = rng.integers(0, 12, 200) / 12
    correct = rng.random(200) < confidence
    blocks = np.unique(confidence)[::-1]
    right, wrong = ([int(((confidence == c) & (correct == kind)).sum()) for c in blocks] for kind in (True, False))
    (value,) = area_of_counts(np.array([[*right, *wrong]], dtype=float), area)
    assert value == pytest.approx(getattr(areas(confidence, correct), area), rel=1e-12)
