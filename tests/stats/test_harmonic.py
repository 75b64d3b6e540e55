"""Harmonic numbers against their definition in fractions and against SciPy's digamma function."""

from fractions import Fraction

import numpy as np
from scipy.special import digamma

from adjudge.stats.selective import harmonic


def test_the_first_thousand_are_correct_to_the_last_digit_but_one():
    exact, expected = Fraction(0), [0.0]
    for k in range(1, 1000):
        exact += Fraction(1, k)
        expected.append(float(exact))
    found = harmonic(np.arange(1000.0))
    assert found[:64].tolist() == expected[:64]
    np.testing.assert_allclose(found, expected, rtol=4e-16)


def test_large_numbers_against_digamma():
    k = np.random.default_rng(0).integers(64, 10**12, (50, 40)).astype(np.float64)
    np.testing.assert_allclose(harmonic(k), digamma(k + 1.0) + np.euler_gamma, rtol=1e-15)
