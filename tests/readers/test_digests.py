"""The sum of digests: the compiled loop against hashlib, over every length around a block's edge."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa

from adjudge.readers.digests import MODULUS, digest_sum

ENDINGS = (b"\x00fake", b"\x00real", b"")


def test_every_length_up_to_three_blocks():
    for size in [*range(140), 183, 184, 185, 250]:
        texts = pa.array(["?", "é" * (size // 2) + "x" * (size % 2)], pa.string())[1:]
        for which, ending in enumerate(ENDINGS):
            digest = hashlib.sha256(texts[0].as_py().encode() + ending).digest()
            found = [digest_sum(texts, ENDINGS, np.array([which], dtype=np.int8), fast=fast) for fast in (True, False)]
            assert found == [int.from_bytes(digest, "little")] * 2


def test_the_sum_wraps_and_knows_no_order():
    texts = [f"sample-{number}" for number in range(2000)]
    which = np.arange(2000, dtype=np.int8) % np.int8(3)
    expected = sum(
        int.from_bytes(hashlib.sha256(text.encode() + ENDINGS[code]).digest(), "little")
        for text, code in zip(texts, which.tolist(), strict=True)
    )
    assert expected > MODULUS
    for fast in (True, False):
        assert digest_sum(pa.array(texts), ENDINGS, which, fast=fast) == expected % MODULUS
        assert digest_sum(pa.array(texts[::-1]), ENDINGS, which[::-1].copy(), fast=fast) == expected % MODULUS
    assert digest_sum(pa.array([], pa.string()), ENDINGS, which[:0], fast=True) == 0
