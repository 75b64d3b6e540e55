"""The slot of a record: the first byte of the CRC-32 of its key, by which the input is cut into partitions."""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

SLOTS = 256


def slots_of(keys: pa.ChunkedArray) -> NDArray[np.uint8]:
    """The slot of every key."""
    codes = np.fromiter(map(zlib.crc32, keys.cast(pa.binary()).to_numpy()), dtype=np.uint32, count=len(keys))
    return (codes >> np.uint32(24)).astype(np.uint8)
