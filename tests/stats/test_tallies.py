"""Rows counted give what the rows give: the tally, runs cut into parts, and every measure that takes counts."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.errors import StatsError
from adjudge.stats import exact
from adjudge.stats.bootstrap import BLOCKS, mean
from adjudge.stats.calibration import Tally, assign, brier, brier_and_log_loss, ece_value, log_loss, reliability_table
from adjudge.stats.ranking import auroc
from adjudge.stats.resampling import cut
from adjudge.stats.selective import Blocks

PAIRS = st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=120).map(
    lambda rows: (np.array([c / 20 for c, _ in rows]), np.array([y for _, y in rows]))
)


@given(PAIRS)
def test_every_pair_is_counted_once_and_in_order(rows):
    tally = Tally.of(*rows)
    found = list(zip(tally.correct.tolist(), tally.confidence.tolist(), strict=True))
    assert found == sorted(found)
    assert dict(zip(found, tally.counts.tolist(), strict=True)) == Counter(
        (int(y), float(c)) for c, y in zip(*rows, strict=True)
    )
    assert tally.n == rows[0].size


def test_confidences_of_single_precision_meet_their_edges():
    confidence, correct = np.array([0.3, 0.25, 0.7], dtype=np.float32), [1, 0, 1]
    tally = Tally.of(confidence, correct)
    assert tally.confidence.dtype == np.float32
    # As a double 0.3 of single precision is past 3/10, and would be in the next bin of those closed on the right.
    value = ece_value(confidence, correct, closed="right")
    assert ece_value(confidence, correct, closed="right", tally=tally) == value
    assert value != ece_value(confidence.astype(np.float64), correct, closed="right")


@pytest.mark.parametrize("correct", [[1], [1, 2], [0.5, 1]])
def test_what_no_measure_takes_is_refused(correct):
    with pytest.raises(StatsError, match="correct"):
        Tally.of([0.5, 0.6], correct)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), st.data())
def test_cut_runs_are_the_rows_cut_one_by_one(counts, data):
    n = sum(counts)
    inner = data.draw(st.sets(st.integers(1, max(1, n - 1)), max_size=6))
    edges = np.array(sorted({0, n} | {edge for edge in inner if edge < n}))
    pieces = cut(np.array(counts), edges)
    run, part = np.repeat(np.arange(len(counts)), counts), np.repeat(np.arange(edges.size - 1), np.diff(edges))
    assert np.repeat(pieces.run, pieces.size).tolist() == run.tolist()
    assert np.repeat(pieces.part, pieces.size).tolist() == part.tolist()
    assert len(set(zip(pieces.run.tolist(), pieces.part.tolist(), strict=True))) == pieces.size.size


@given(st.lists(st.tuples(st.floats(-1e300, 1e300), st.integers(0, 3), st.integers(1, 50)), min_size=1, max_size=40))
def test_exact_sums_of_counted_values(rows):
    values, groups, counts = (np.array(column) for column in zip(*rows, strict=True))
    assert exact.total(values, counts) == exact.total(np.repeat(values, counts))
    assert exact.group_totals(values, groups, 4, counts) == exact.group_totals(
        np.repeat(values, counts), np.repeat(groups, counts), 4
    )


def test_exact_sums_of_more_rows_than_a_double_counts():
    # 2^35 rows of 0.1: the exact total is 2^35 times the double nearest to 0.1.
    assert exact.rounded(exact.total(np.array([0.1]), np.array([1 << 35]))) == 0.1 * (1 << 35)


@given(PAIRS, st.sampled_from(["equal_width", "equal_mass"]), st.sampled_from(["left", "right"]))
def test_bins_and_values_of_counted_rows(rows, scheme, closed):
    tally = Tally.of(*rows)
    by_row = dict(zip(rows[0].tolist(), assign(rows[0], 10, scheme, closed).tolist(), strict=True))
    where = assign(tally.confidence, 10, scheme, closed, tally.counts)
    assert where.tolist() == [by_row[c] for c in tally.confidence.tolist()]
    value = ece_value(*rows, scheme=scheme, closed=closed)
    assert ece_value(*rows, scheme=scheme, closed=closed, tally=tally) == value


@given(PAIRS)
def test_auroc_of_counted_rows_is_that_of_the_rows(rows):
    tally = Tally.of(*rows)
    assert auroc(tally.confidence, tally.correct, counts=tally.counts) == auroc(*rows)


def test_auroc_of_counted_rows_where_sums_pass_64_bits():
    random = np.random.default_rng(3)
    scores, positives = random.integers(0, 8, 40_000), random.random(40_000) < 0.4
    few = Tally.of(scores / 8, positives)
    many = few._replace(counts=few.counts * 1_000_000)
    once, often = (auroc(t.confidence, t.correct, counts=t.counts) for t in (few, many))
    assert often.value == once.value
    # A million times the rows: a thousandth of the width, on the scale of the logit.
    logit = [np.log(x / (1 - x)) for e in (once, often) for x in (e.low, e.high)]
    assert (logit[1] - logit[0]) / (logit[3] - logit[2]) == pytest.approx(1000, rel=1e-4)


@given(PAIRS)
def test_tie_blocks_of_counted_rows(rows):
    ours, theirs = Blocks.of(Tally.of(*rows)), Blocks.partial(*rows)
    for name in ("confidence", "size", "wrong"):
        assert getattr(ours, name).tolist() == getattr(theirs, name).tolist()


@given(PAIRS)
@settings(max_examples=30)
def test_the_reliability_table_of_counted_rows(rows):
    confidence, correct = rows
    for row, bin_ in zip(reliability_table(*rows), range(10), strict=True):
        inside = assign(confidence, 10, "equal_width", "left") == bin_
        assert row.n == inside.sum()
        assert row.accuracy.value == (correct[inside].mean() if inside.any() else None)


@pytest.mark.parametrize("n", [40, BLOCKS, BLOCKS + 1, 5000])
def test_the_mean_of_counted_values(n):
    random = np.random.default_rng(n)
    values = random.integers(0, 9, n) / 8
    distinct, counts = np.unique(values, return_counts=True)
    order = random.permutation(distinct.size)
    counted = mean(distinct[order], counts=counts[order], seed=1, stream="x", resamples=200)
    rows = mean(values, seed=1, stream="x", resamples=200)
    assert (counted.value, counted.n, counted.method) == (rows.value, rows.n, rows.method)
    assert (counted.low, counted.high) == pytest.approx((rows.low, rows.high), rel=1e-12)


@pytest.mark.parametrize("n", [9, 300, 4000])
def test_both_scores_at_once_are_each_alone(n):
    random = np.random.default_rng(n)
    confidence = np.round(random.uniform(0.01, 0.99, n), 2)
    correct = random.random(n) < confidence
    tally = Tally.of(confidence, correct)
    both = brier_and_log_loss(tally, seed=3, stream="x", resamples=200)
    assert both == (
        brier(confidence, correct, seed=3, stream="x", resamples=200),
        log_loss(confidence, correct, seed=3, stream="x", resamples=200),
    )


def test_both_scores_where_one_is_null():
    brier_score, loss = brier_and_log_loss(Tally.of([1.0, 1.0, 0.5], [1, 0, 1]), seed=3, stream="x")
    assert brier_score.value == pytest.approx(1.25 / 3)
    assert loss.why == "infinite: 1 rows were wrong at full confidence"
    assert [each.value for each in brier_and_log_loss(Tally.of([], []), seed=3, stream="x")] == [None, None]


def test_values_that_stand_for_no_row_do_not_count():
    values, counts = np.arange(1200.0), np.tile([0, 2], 600)
    found = mean(values, counts=counts, seed=1, stream="x", resamples=50)
    assert found == mean(values[1::2], counts=counts[1::2], seed=1, stream="x", resamples=50)
    with pytest.raises(StatsError, match="counts"):
        mean(values, counts=counts[:-1], seed=1, stream="x")
