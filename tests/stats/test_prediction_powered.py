"""PPI++ against least squares: θ is the labelled mean moved along the regression on the judge, to first order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.regression.linear_model import WLS
from statsmodels.tools import add_constant

from adjudge.stats.prevalence import power_tuning, ppi_mean
from adjudge.stats.resampling import generator


def draw(n, total, seed=3):
    random = generator(seed, "ppi test")
    truth = (random.random(n + total) < 0.6).astype(float)
    verdict = np.where(random.random(n + total) < 0.85, truth, 1.0 - truth)
    return truth[:n], verdict[:n], verdict[n:]


def test_against_the_formulas_by_statsmodels():
    truth, verdict, others = draw(80, 900)
    slope = WLS(truth, add_constant(verdict)).fit().params[1]
    pooled = np.var(np.concatenate([verdict, others]), ddof=1)
    tuning = slope * np.var(verdict, ddof=1) / ((1 + 80 / 900) * pooled)
    assert power_tuning(truth, verdict, others) == pytest.approx(tuning)
    estimate = ppi_mean(truth, verdict, others)
    assert estimate.value == pytest.approx(truth.mean() + tuning * (others.mean() - verdict.mean()))
    labelled_width = 2 * 1.99 * truth.std(ddof=1) / np.sqrt(80)
    assert estimate.high - estimate.low < 0.8 * labelled_width


def test_a_judge_that_says_nothing_leaves_the_labelled_mean():
    truth, _, _ = draw(50, 10)
    estimate = ppi_mean(truth, np.ones(50), np.ones(200))
    assert estimate.value == pytest.approx(truth.mean())
    assert "tuning 0" in estimate.method


def test_a_judge_that_is_always_right_is_worth_all_samples():
    truth, _, _ = draw(50, 10)
    others = draw(10, 1000)[2]
    estimate = ppi_mean(truth, truth, others)
    assert estimate.high - estimate.low < 0.09


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=40), st.lists(st.booleans(), min_size=1))
@settings(max_examples=60)
def test_a_share_stays_one(pairs, others):
    truth, verdict = np.array(pairs, dtype=float).T
    estimate = ppi_mean(truth, verdict, np.array(others, dtype=float))
    assert 0.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0


def test_nothing_to_work_with_is_null():
    assert ppi_mean([1.0], [1.0], [1.0]).why == "1 labelled samples; two or more are needed"
    assert "every sample is labelled" in ppi_mean([1.0, 0.0], [1.0, 0.0], []).why
    assert ppi_mean([1.0, 0.0], [1.0, 0.0], [1.0]).warnings
