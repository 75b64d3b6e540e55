"""The digest of a set of texts: a sum of SHA-256 values, the same whatever the order and the cut."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

MODULUS = 1 << 256


def digest_sum(texts: pa.StringArray, endings: Sequence[bytes], which: NDArray[np.int8]) -> int:
    """Σ SHA-256(text + endings[which]) modulo 2^256, each digest read as a number with its lowest byte first."""
    pairs = zip(texts.cast(pa.binary()).to_pylist(), which.tolist(), strict=True)
    digests = b"".join([hashlib.sha256(text + endings[code]).digest() for text, code in pairs])
    # Eight columns of 32 bits are added up, each far from the edge of 64 bits.
    limbs = np.frombuffer(digests, dtype="<u4").reshape(-1, 8).sum(axis=0, dtype=np.uint64)
    return sum(int(limb) << (32 * place) for place, limb in enumerate(limbs)) % MODULUS
