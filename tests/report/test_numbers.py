"""A number and its exact text."""

import pytest

from adjudge.report import numbers
from adjudge.stats.estimate import Estimate


def made(value, low=None, high=None):
    return Estimate(value=value, low=low, high=high)


@pytest.mark.parametrize(
    "value, low, high, unit, text",
    [
        (0.932, 0.901, 0.954, "%", "93.2 % [90.1, 95.4]"),
        (0.932, 0.901, 0.954, "", "0.932 [0.901, 0.954]"),
        (0.9017, 0.5213, 0.9872, "%", "90 % [52, 99]"),
        (96.52, 94.98, 97.51, "", "96.5 [95.0, 97.5]"),
        (95.93, 94.92, 96.90, "", "95.9 [94.9, 96.9]"),  # half width 0.99 counts as 1.0
        (98.262, 97.48, 98.77, "", "98.3 [97.5, 98.8]"),  # 0.645 keeps one digit
        (98.262, 98.002, 98.502, "", "98.26 [98.00, 98.50]"),  # 0.25 keeps two
        (3.6485, 2.6, 6.8, "kt", "3.6 kt [2.6, 6.8]"),
        (12345.6, 12000.0, 12700.0, "", "12,346 [12,000, 12,700]"),
        (1.0, 1.0, 1.0, "%", "100 % [100, 100]"),
        (1.0, 0.9838, 1.0, "%", "100.0 % [98.4, 100.0]"),
        (0.0, 0.0, 0.0162, "%", "0.0 % [0.0, 1.6]"),
        (-0.01, -0.5, 0.5, "", "0.0 [-0.5, 0.5]"),  # never minus zero
        (1.5e-9, 1.0e-9, 2.0e-9, "", "1.5e-09 [1e-09, 2e-09]"),
        (7.4034, 4.1, None, "", "7.4 [4.1, …]"),
        (0.5, None, None, "%", "50 %"),
        (0.1496, None, None, "%", "15.0 %"),
        (0.29, None, None, "%", "29 %"),
        (0.0085470085, None, None, "%", "0.855 %"),
        (3.64847, None, None, "deg", "3.648 deg"),
    ],
)
def test_estimate(value, low, high, unit, text):
    assert numbers.estimate(made(value, low, high), unit=unit) == text


def test_no_value_is_not_zero():
    assert numbers.estimate(Estimate.null("nothing was eligible")) == "n/a"
    assert numbers.point(Estimate.null("nothing was eligible"), unit="%") == "n/a"
    assert numbers.number(None) == "n/a"
    assert numbers.count(None) == "n/a"
    assert numbers.p_value(None) == "n/a"


def test_point_has_the_digits_of_its_interval():
    assert numbers.point(made(0.93217, 0.901, 0.954), unit="%") == "93.2 %"


@pytest.mark.parametrize(
    "value, text",
    [
        (0.0, "0"),
        (100.0, "100"),
        (0.90170940, "0.9017"),
        (0.9, "0.9"),
        (12.896276, "12.90"),
        (388.0499, "388.0"),
        (1234.56, "1235"),
        (1234567.8, "1,234,568"),
        (-0.00085, "-0.00085"),
        (0.0000012345, "1.23e-06"),
        (3e20, "3e+20"),
    ],
)
def test_number(value, text):
    assert numbers.number(value) == text


@pytest.mark.parametrize("value, text", [(0, "0"), (234, "234"), (1170, "1,170"), (200000, "200,000")])
def test_count(value, text):
    assert numbers.count(value) == text


def test_share():
    assert numbers.share(23, 234) == "23 of 234 (9.83 %)"
    assert numbers.share(0, 0) == "0 of 0"


@pytest.mark.parametrize(
    "p, log10_p, text",
    [
        (1.0, 0.0, "1.000"),
        (0.68749, None, "0.687"),
        (0.0123, None, "0.012"),
        (0.00099, None, "9.9e-04"),
        (4.626745764836559e-35, -34.33472436390232, "4.6e-35"),
        (9.99e-8, None, "1.0e-07"),
        (0.0, -512.3, "5.0e-513"),
        (0.0, None, "<1e-300"),
    ],
)
def test_p_value(p, log10_p, text):
    assert numbers.p_value(p, log10_p) == text


@pytest.mark.parametrize("value, text", [(0.35, "0.35 s"), (12.06, "12.1 s"), (200.4, "3 min 20 s")])
def test_seconds(value, text):
    assert numbers.seconds(value) == text


@pytest.mark.parametrize("value, text", [(12, "12 B"), (154159, "154.2 kB"), (5_000_000, "5.0 MB")])
def test_size(value, text):
    assert numbers.size(value) == text
