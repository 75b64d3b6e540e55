import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from adjudge.errors import StatsError
from adjudge.stats import bootstrap, resampling
from adjudge.stats.bootstrap import multinomial_cells
from adjudge.stats.proportions import effective_number
from adjudge.stats.resampling import weights

METHODS = ["expanded", "percentile", "bca"]


def variance(sums):
    return sums[:, 1] / sums[:, 2] - (sums[:, 0] / sums[:, 2]) ** 2


def f1(cells):
    return 2 * cells[:, 0] / (2 * cells[:, 0] + cells[:, 1] + cells[:, 2])


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_published_bca_example(reference, method):
    published = reference("bootstrap")["spatial_test"]
    values = np.array(published["values"], dtype=float)
    estimate = bootstrap.statistic_of_counts(
        np.column_stack([values, values**2, np.ones_like(values)]),
        variance,
        seed=0,
        stream="spatial",
        resamples=50_000,
        level=published["level"],
        method=method,
    )
    assert estimate.value == pytest.approx(published["statistic"], abs=0.05)
    # The published ends come from 2,000 resamples; their own simulation error is about 2.
    assert (estimate.low, estimate.high) == pytest.approx(published[method], abs=published["tolerance"])


def test_published_acceleration(reference):
    published = reference("bootstrap")["spatial_test"]
    values = np.array(published["values"], dtype=float)
    table = np.column_stack([values, values**2, np.ones_like(values)])
    acceleration = resampling._acceleration(variance(table.sum(axis=0) - table), None)
    assert acceleration == pytest.approx(published["acceleration"], abs=5e-4)


@pytest.mark.parametrize("method", ["percentile", "BCa"])
def test_agrees_with_scipy(method):
    values = np.random.default_rng(8).gamma(1.5, 2.0, 60)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=40_000, method=method, rng=np.random.default_rng(1)
    ).confidence_interval
    ours = bootstrap.mean(values, seed=1, stream="mean", resamples=40_000, method=method.lower())
    # Both are simulations: the ends' standard error at 40,000 resamples is near 0.01 of the interval's width.
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs), abs=0.04 * (theirs.high - theirs.low))


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_and_stream_give_the_same_bits(method):
    values, clusters = np.random.default_rng(2).normal(size=600), np.arange(600) % 30
    one = bootstrap.mean(values, clusters=clusters, seed=5, stream="a", method=method)
    again = bootstrap.mean(values, clusters=clusters, seed=5, stream="a", method=method)
    other = bootstrap.mean(values, clusters=clusters, seed=5, stream="b", method=method)
    assert one == again
    assert one.seed == 5
    assert one.value == other.value
    assert (one.low, one.high) != (other.low, other.high)


@pytest.mark.parametrize("n", [6, 300, 3000])
@pytest.mark.parametrize("clustered", [True, False])
def test_row_order_changes_no_bit(n, clustered):
    random = np.random.default_rng(n)
    values, clusters, order = random.lognormal(0, 2, n), random.integers(0, 20, n), random.permutation(n)
    one = bootstrap.mean(values, clusters=clusters if clustered else None, seed=1, stream="a")
    other = bootstrap.mean(values[order], clusters=clusters[order] if clustered else None, seed=1, stream="a")
    assert one == other


def test_mean_is_correctly_rounded():
    values = np.array([1e16, 1.0, -1e16] * 7)
    assert bootstrap.mean(values, seed=1, stream="a").value == math.fsum(values) / values.size


@pytest.mark.parametrize("method", METHODS)
def test_blocks_give_the_interval_of_the_rows(method):
    # The interval of a mean over many rows is close to mean ± 1.96 standard errors, however the rows are distributed.
    values = np.random.default_rng(3).lognormal(0, 1.5, 200_000)
    estimate = bootstrap.mean(values, seed=1, stream="a", resamples=20_000, method=method)
    half = 1.96 * values.std() / math.sqrt(values.size)
    assert "blocks" in estimate.method
    assert estimate.high - estimate.low == pytest.approx(2 * half, rel=0.04)
    assert (estimate.low + estimate.high) / 2 == pytest.approx(estimate.value, abs=0.1 * half)


def test_blocks_of_a_constant_column():
    estimate = bootstrap.mean(np.full(5000, 0.1), seed=1, stream="a")
    assert (estimate.low, estimate.value, estimate.high) == (0.1, 0.1, 0.1)
    assert "no width" in estimate.warnings[0]


@pytest.mark.parametrize("method", METHODS)
def test_blocks_give_the_interval_of_the_clusters(monkeypatch, method):
    random = np.random.default_rng(4)
    sizes = random.integers(1, 30, 9000)
    sums = random.lognormal(0, 1, 9000) * sizes
    options = {"seed": 1, "stream": "a", "resamples": 4000, "method": method, "unit": "episode"}
    blocks = bootstrap.ratio_of_sums(sums, sizes, **options)
    assert "episode bootstrap" in blocks.method
    assert "of 512 blocks" in blocks.method
    order = random.permutation(9000)
    assert bootstrap.ratio_of_sums(sums[order], sizes[order], **options) == blocks
    monkeypatch.setattr(bootstrap, "MANY_CLUSTERS", 9000)
    clusters = bootstrap.ratio_of_sums(sums, sizes, **options)
    assert "blocks" not in clusters.method
    assert (blocks.value, blocks.n) == (clusters.value, clusters.n)
    width = clusters.high - clusters.low
    assert blocks.low == pytest.approx(clusters.low, abs=0.06 * width)
    assert blocks.high == pytest.approx(clusters.high, abs=0.06 * width)


def test_blocks_of_clusters_with_one_ratio():
    sizes = np.arange(1, 9001)
    estimate = bootstrap.ratio_of_sums(0.5 * sizes, sizes, seed=1, stream="a")
    assert (estimate.low, estimate.value, estimate.high) == (0.5, 0.5, 0.5)
    assert "no width" in estimate.warnings[0]


def test_clusters_widen_the_interval_of_correlated_rows():
    random = np.random.default_rng(1)
    clusters = np.repeat(np.arange(30), 20)
    values = random.normal(size=30)[clusters] + 0.1 * random.normal(size=600)
    rows = bootstrap.mean(values, seed=1, stream="a")
    clustered = bootstrap.mean(values, clusters=clusters, seed=1, stream="a")
    assert clustered.high - clustered.low > 3 * (rows.high - rows.low)


def test_few_clusters_are_enumerated_and_say_so():
    numerators = np.array([3.0, 5.0, 4.0, 9.0, 1.0])
    estimate = bootstrap.ratio_of_sums(numerators, np.full(5, 10), seed=1, stream="a", method="percentile")
    assert estimate.method == "cluster bootstrap, percentile, all 126 distinct resamples"
    assert estimate.seed is None
    assert estimate.warnings == (
        "only 5 clusters, which have 126 distinct resamples: an interval over fewer than 10 is a rough guide",
    )
    # Independently: all 5^5 ordered resamples, each equally likely.
    grid = np.stack(np.meshgrid(*[numerators] * 5), axis=-1).reshape(-1, 5).mean(axis=1) / 10
    low, high = np.quantile(grid, [0.025, 0.975], method="inverted_cdf")
    assert (estimate.low, estimate.high) == (pytest.approx(low, abs=1e-12), pytest.approx(high, abs=1e-12))


@pytest.mark.parametrize("m, warns", [(9, True), (10, False)])
def test_fewer_than_ten_clusters_warn(m, warns):
    estimate = bootstrap.ratio_of_sums(np.arange(m), np.full(m, 9), seed=1, stream="a")
    assert bool(estimate.warnings) is warns
    assert estimate.seed == (None if m < 10 else 1)


def test_one_cluster_has_no_interval():
    estimate = bootstrap.ratio_of_sums([3], [4], seed=1, stream="a")
    assert (estimate.value, estimate.low, estimate.high) == (0.75, None, None)
    assert "one cluster only" in estimate.warnings[0]


def test_nothing_is_null_with_a_reason():
    assert bootstrap.mean([], seed=1, stream="a").why == "no values"
    assert "add up to 0" in bootstrap.ratio_of_sums([0, 0], [0, 0], seed=1, stream="a").why
    assert multinomial_cells([0, 0, 0], f1, seed=1, stream="a").why == "no rows"
    assert bootstrap.statistic_of_counts(np.zeros((0, 3)), f1, seed=1, stream="a").why == "no clusters"
    with np.errstate(invalid="ignore"):
        assert "undefined" in multinomial_cells([0, 0, 0, 9], f1, seed=1, stream="a").why


def test_not_a_number_is_refused():
    with pytest.raises(StatsError, match=r"values\[1\] is nan"):
        bootstrap.mean([1.0, math.nan], seed=1, stream="a")
    with pytest.raises(StatsError, match="rows"):
        bootstrap.mean([1.0, 2.0], clusters=[1], seed=1, stream="a")


def test_resamples_without_the_statistic_are_reported():
    # One cluster in twelve holds all trials: about a third of the resamples leave it out.
    trials = np.array([10] + [0] * 11)
    estimate = bootstrap.ratio_of_sums(trials // 2, trials, seed=1, stream="a")
    assert (estimate.low, estimate.high) == (0.5, 0.5)
    assert "undefined in" in estimate.warnings[0]


def test_statistic_undefined_in_most_resamples_has_no_interval():
    table = np.eye(12)
    with np.errstate(invalid="ignore", divide="ignore"):
        estimate = bootstrap.statistic_of_counts(
            table, lambda sums: np.where(sums.min(axis=1) > 0, 1.0, np.nan), seed=1, stream="a"
        )
    assert estimate.value == 1.0
    assert estimate.low is None
    assert "no interval" in estimate.warnings[-1]


@pytest.mark.parametrize("method", METHODS)
def test_cells_and_rows_give_the_same_interval(method):
    cells = np.array([60, 15, 25, 100])
    ours = multinomial_cells(cells, f1, seed=1, stream="a", resamples=40_000, method=method)
    rows = np.eye(4)[np.repeat(np.arange(4), cells)]
    plain = bootstrap.statistic_of_counts(rows, f1, seed=1, stream="b", resamples=40_000, method=method)
    assert ours.value == plain.value == 120 / 160
    assert (ours.low, ours.high) == pytest.approx((plain.low, plain.high), abs=0.004)


def test_strata_of_clusters():
    numerators, denominators = np.array([9.0] * 10 + [1.0] * 10), np.full(20, 10.0)
    strata = np.repeat([0, 1], 10)
    estimate = bootstrap.ratio_of_sums(numerators, denominators, seed=1, stream="a", strata=strata)
    assert (estimate.low, estimate.value, estimate.high) == (0.5, 0.5, 0.5)
    assert estimate.method.startswith("stratified cluster bootstrap")


def test_few_rows_in_cells_are_enumerated():
    estimate = multinomial_cells([4, 1, 1, 0], f1, seed=1, stream="a")
    assert estimate.method.endswith("all 462 distinct resamples")


def test_expanded_levels_follow_hesterberg():
    # Hesterberg 2015, section 4.3: Φ(-sqrt(n/(n-1)) · t quantile), here for n = 30.
    low, high = resampling._expanded_levels(30, 1, 0.95)
    assert low == pytest.approx(stats.norm.cdf(-math.sqrt(30 / 29) * stats.t.ppf(0.975, 29)), abs=1e-15)
    assert high == pytest.approx(1 - low, abs=1e-12)


def test_effective_number_of_clusters():
    assert effective_number([7, 7, 7, 7]) == pytest.approx(4.0)
    assert effective_number([1000, 1, 1]) == pytest.approx(1.0, abs=0.01)
    unequal = bootstrap.ratio_of_sums(np.arange(12), [100] + [12] * 11, seed=1, stream="a")
    percentile = bootstrap.ratio_of_sums(np.arange(12), [100] + [12] * 11, seed=1, stream="a", method="percentile")
    assert unequal.high - unequal.low > percentile.high - percentile.low


@settings(max_examples=40)
@given(st.lists(st.floats(-1e6, 1e6), min_size=9, max_size=40), st.integers(0, 2**31))
def test_products_with_draws_are_exact_on_the_grid(values, seed):
    table = np.array(values)[:, None]
    grid = bootstrap.on_grid(table, len(values))
    drawn = next(weights(len(values), 20, seed, "grid"))
    product = (drawn @ grid)[:, 0]
    assert product.tolist() == [math.fsum(np.repeat(grid[:, 0], row.astype(int))) for row in drawn]
    assert np.abs(grid - table).max() <= 2.0**-44 * np.abs(table).max()


def test_the_smallest_numbers_stay_on_the_grid():
    tiny = np.array([[6e-323], [5e-324]])
    assert (bootstrap.on_grid(tiny, 2) == tiny).all()


def test_whole_counts_stay_as_they_are_on_the_grid():
    counts = np.array([[3.0, 2.0**40], [1e9, 7.0]])
    assert (bootstrap.on_grid(counts, 1000) == counts).all()


def test_whole_numbers_stay_as_they_are_on_the_grid():
    whole = np.array([[2.0**39 + 1.0], [3.0]])  # so many draws that the grid is coarser than 1
    assert bootstrap.on_grid(whole, 2**12).tolist() == whole.tolist()
    assert bootstrap.on_grid(whole + 0.5, 2**14).tolist() != (whole + 0.5).tolist()


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**10])
def test_the_interval_of_many_values_scales_with_them(scale):
    values = np.random.default_rng(5).normal(3.0, 1.0, 20_000)
    plain, scaled = (bootstrap.mean(values * factor, seed=1, stream="s", resamples=400) for factor in (1.0, scale))
    assert (scaled.low, scaled.high) == pytest.approx((plain.low * scale, plain.high * scale), rel=1e-9)
