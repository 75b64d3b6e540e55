import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.duration.survfunc import SurvfuncRight

from adjudge.errors import StatsError
from adjudge.stats import detection as latency

rows = st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=40)


def split(data):
    return np.array([time for time, _ in data], dtype=float), np.array([found for _, found in data], dtype=bool)


def area_by_definition(times, found, horizon):
    """The area under the Kaplan–Meier curve, one small step after the other."""
    area, share, last = 0.0, 1.0, 0.0
    for time in sorted({*times[times < horizon].tolist(), horizon}):
        area += share * (time - last)
        last = time
        at_risk = (times >= time).sum()
        share *= 1 - (found & (times == time)).sum() / at_risk if at_risk else 1
    return area


def test_published_curve(reference):
    published = reference("latency")["freireich_6mp"]
    times = np.array(published["times"], dtype=float)
    found = np.arange(times.size) < published["observed"]
    curve = latency.survival(times, found)
    for time, share in published["survival"].items():
        assert curve.share[curve.times == float(time)] == pytest.approx(share, abs=5e-4)
    assert curve.times[np.flatnonzero(curve.share <= 0.5)[0]] == published["median"]


@given(rows)
def test_curve_equals_statsmodels(data):
    times, found = split(data)
    curve = latency.survival(times, found)
    theirs = SurvfuncRight(times, found.astype(int))
    at = np.isin(curve.times, theirs.surv_times)
    assert curve.share[at] == pytest.approx(theirs.surv_prob, abs=1e-12)


@given(rows)
def test_restricted_mean_is_the_area_under_the_curve(data):
    times, found = split(data)
    estimate = latency.restricted_mean(times, found)
    assert estimate.value == pytest.approx(area_by_definition(times, found, times.max()), abs=1e-12)
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= times.max()
    clustered = latency.restricted_mean(times, found, clusters=np.arange(times.size) % 3, resamples=5, seed=0)
    assert clustered.value == estimate.value


def test_without_misses_it_is_the_mean_with_its_standard_error():
    times = np.random.default_rng(1).exponential(5, 500)
    estimate = latency.restricted_mean(times, np.ones(500, dtype=bool))
    assert estimate.value == pytest.approx(times.mean(), abs=1e-12)
    # Greenwood's variance is then the plain one, the last time apart.
    assert estimate.high - estimate.value == pytest.approx(1.959964 * times.std() / np.sqrt(500), rel=0.02)


def test_replicates_by_cluster_are_the_area_of_the_resampled_rows():
    random = np.random.default_rng(3)
    times, found, clusters = (
        np.minimum(random.integers(1, 20, 90) * 1.0, 15.0),
        random.random(90) < 0.7,
        np.repeat(np.arange(30), 3),
    )
    plain = latency.restricted_mean(times, found)
    clustered = latency.restricted_mean(times, found, clusters=clusters, seed=1, stream="l")
    replicates = []
    for _ in range(1500):
        drawn = random.integers(0, 30, 30)
        kept = (drawn[:, None] * 3 + np.arange(3)).ravel()
        replicates.append(area_by_definition(times[kept], found[kept], 15.0))
    low, high = np.quantile(replicates, [0.018, 0.982])
    assert clustered.value == plain.value
    assert (clustered.low, clustered.high) == pytest.approx((low, high), abs=0.3)


def test_misses_are_censored_not_averaged_in():
    times, found = np.array([1.0, 2.0, 10.0, 10.0]), np.array([True, True, False, False])
    assert latency.restricted_mean(times, found).value == pytest.approx(1 + 0.75 + 0.5 * 8)


def test_nothing_is_null():
    assert latency.restricted_mean([], []).why == "no times"


def test_bad_columns_are_refused():
    with pytest.raises(StatsError, match="not negative"):
        latency.restricted_mean([-1.0], [True])
    with pytest.raises(StatsError, match="0 and 1"):
        latency.restricted_mean([1.0], [2])
    with pytest.raises(StatsError, match="latest time is 0"):
        latency.restricted_mean([0.0], [True])
