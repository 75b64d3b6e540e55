"""The sum of digests against hashlib, one text after another."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa

from adjudge.readers.digests import MODULUS, digest_sum

ENDINGS = (b"\x00fake", b"\x00real", b"")


def test_the_sum_wraps_and_knows_no_order():
    texts = [f"sample-é{number}" for number in range(2000)]
    which = np.arange(2000, dtype=np.int8) % np.int8(3)
    expected = sum(
        int.from_bytes(hashlib.sha256(text.encode() + ENDINGS[code]).digest(), "little")
        for text, code in zip(texts, which.tolist(), strict=True)
    )
    assert expected > MODULUS
    assert digest_sum(pa.array(texts), ENDINGS, which) == expected % MODULUS
    assert digest_sum(pa.array(texts[::-1]), ENDINGS, which[::-1].copy()) == expected % MODULUS
    assert digest_sum(pa.array(texts)[1:2], ENDINGS, which[1:2]) == digest_sum(
        pa.array(texts[1:2]), ENDINGS, which[1:2]
    )
    assert digest_sum(pa.array([], pa.string()), ENDINGS, which[:0]) == 0
