"""The normal, the binomial and Student's distribution, against SciPy."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from adjudge.stats.proportions import binomial_cdf, normal_cdf, normal_quantile, student_quantile

SHARES = st.floats(1e-5, 1 - 1e-5)


@given(SHARES)
def test_normal_quantiles(share):
    assert math.isclose(normal_quantile(share), special.ndtri(share), rel_tol=1e-13, abs_tol=1e-15)


@given(st.floats(-30, 30))
def test_normal_probabilities(x):
    assert math.isclose(normal_cdf(x), special.ndtr(x), rel_tol=1e-12)


@given(st.floats(1, 1e12), SHARES)
def test_student_quantiles_on_both_sides_of_the_expansion(freedom, share):
    expected = float(special.stdtrit(freedom, share))
    assert math.isclose(
        student_quantile(freedom, share),
        expected,
        rel_tol=2e-10 if min(share, 1 - share) < 0.005 else 2e-12,
        abs_tol=1e-13,
    )


@given(st.integers(1, 1_000_000), st.floats(0.001, 0.999))
def test_binomial_probabilities(n, share):
    hits, found = binomial_cdf(n, share)
    assert np.abs(found - stats.binom.cdf(hits, n, share)).max() < 1e-12
    assert hits[0] == 0 or stats.binom.cdf(hits[0] - 1, n, share) < 1e-15
    assert hits[-1] == n or stats.binom.sf(hits[-1], n, share) < 1e-15


def test_a_published_value():
    # Abramowitz and Stegun, table 26.10: t at 0.975 with 120 degrees of freedom, and at infinity.
    assert round(student_quantile(120, 0.975), 3) == 1.980
    assert round(student_quantile(math.inf, 0.975), 3) == 1.960


@pytest.mark.parametrize("freedom, loaded", [(5000.0, False), (50.0, True)])
def test_scipy_is_loaded_where_the_expansion_would_not_do(freedom, loaded):
    program = f"import sys; from adjudge.stats.proportions import student_quantile as t; t({freedom}, 0.9); print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(loaded)
