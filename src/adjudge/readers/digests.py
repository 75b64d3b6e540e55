"""The digest of a set of texts: a sum of SHA-256 values, the same whatever the order and the cut."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

MODULUS = 1 << 256


def digest_sum(texts: pa.StringArray, endings: Sequence[bytes], which: NDArray[np.int8], *, fast: bool) -> int:
    """Σ SHA-256(text + endings[which]) modulo 2^256, each digest read as a number with its lowest byte first."""
    if not fast:
        sha256 = hashlib.sha256
        digests = (
            sha256(text.encode() + endings[code]).digest()
            for text, code in zip(texts.to_pylist(), which.tolist(), strict=True)
        )
        return sum(int.from_bytes(digest, "little") for digest in digests) % MODULUS
    from adjudge.readers import _sha256

    _, offsets, data = texts.buffers()
    places = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    edges = np.cumsum([0, *(len(ending) for ending in endings)]).astype(np.int32)
    limbs = np.zeros(8, dtype=np.uint64)
    columns = (
        np.frombuffer(data or b"\0", dtype=np.uint8),
        places,
        np.frombuffer(b"".join(endings) or b"\0", dtype=np.uint8),
        edges,
        which,
    )
    longest = int(np.diff(places).max(initial=0)) + max(len(ending) for ending in endings)
    if longest <= _sha256.LONGEST:
        words, state = (np.empty(count * _sha256.LANES, dtype=np.uint32) for count in (64, 8))
        _sha256.add_short_digests(*columns, words, state, limbs)
    else:
        _sha256.add_digests(*columns, limbs, np.empty(64, dtype=np.uint32), np.empty(8, dtype=np.uint32))
    return sum(limb << (32 * place) for place, limb in enumerate(limbs.tolist())) % MODULUS


def loops_are_loaded() -> bool:
    """Whether this process has read with compiled loops, so that further ones cost little to load."""
    return "adjudge.readers._kernels" in sys.modules
