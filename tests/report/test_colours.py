"""Buckets are told apart by everybody: their colours differ for normal sight and for three kinds of colour blindness.

The matrices are those of Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB; differences are CIE 1976 ΔE.
"""

import itertools
import re
from importlib import resources

import numpy as np
import pytest

SIGHT = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])
BUCKETS = ("passed", "failed", "abstained", "unparsed", "errored", "missing")


def lab(colour, sight):
    code = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    linear = np.where(code <= 0.04045, code / 12.92, ((code + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(np.array(sight) @ linear, 0, 1) / WHITE
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def themes():
    style = (resources.files("adjudge.report") / "page" / "report.css").read_text(encoding="utf-8")
    return [
        dict(re.findall(rf"--({'|'.join(BUCKETS)}): (#\w{{6}})", part))
        for part in re.findall(r"--passed: #[^}]*", style)
    ]


@pytest.mark.parametrize("sight", SIGHT)
def test_every_pair_of_buckets_differs(sight):
    for colours in themes():
        assert set(colours) == set(BUCKETS)
        for a, b in itertools.combinations(BUCKETS, 2):
            difference = np.linalg.norm(lab(colours[a], SIGHT[sight]) - lab(colours[b], SIGHT[sight]))
            assert difference > 18, (sight, a, b, difference)


def test_light_and_dark_are_both_looked_at():
    assert len(themes()) == 3  # light, dark by choice, dark by the system
