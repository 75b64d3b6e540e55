# mypy: disable-error-code="untyped-decorator"
"""SHA-256 of many short texts, compiled; only imported where other compiled loops are loaded anyway."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.loops import Loop


def _fraction(root: int, prime: int) -> int:
    """The first 32 bits behind the point of a prime's square or cube root (FIPS 180-4, 4.2.2 and 5.3.3)."""
    wanted = prime << (32 * root)
    low, high = 0, 1 << 40
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**root <= wanted else (low, middle)
    return low & 0xFFFFFFFF


_PRIMES = [n for n in range(2, 312) if all(n % k for k in range(2, n))]
_START = np.array([_fraction(2, prime) for prime in _PRIMES[:8]], dtype=np.uint32)
_ROUNDS = np.array([_fraction(3, prime) for prime in _PRIMES], dtype=np.uint32)


def turned(x: Any, places: int) -> Any:
    return np.uint32((x >> np.uint32(places)) | np.uint32(x << np.uint32(32 - places)))


@Loop
def add_digests(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int32],
    endings: NDArray[np.uint8],
    ending_edges: NDArray[np.int32],
    which: NDArray[np.int8],
    limbs: NDArray[np.uint64],
    w: NDArray[np.uint32],
    state: NDArray[np.uint32],
) -> None:
    """Add the digest of every text of an Arrow buffer, its ending behind it, to the limbs: 32 bits each, the lowest first.

    `w` (64) and `state` (8) are room to work in.
    """
    for row in range(which.shape[0]):
        begin, size = np.int64(offsets[row]), np.int64(offsets[row + 1] - offsets[row])
        tail = np.int64(ending_edges[which[row]])
        total = int(size + np.int64(ending_edges[which[row] + 1]) - tail)
        for k in range(8):
            state[k] = _START[k]
        for block in range((total + 72) // 64):
            for k in range(16):
                w[k] = 0
            for at in range(64 * block, min(64 * block + 64, total + 1)):
                if at < size:
                    byte = data[begin + at]
                elif at < total:
                    byte = endings[tail + at - size]
                else:
                    byte = np.uint8(128)
                place = at - 64 * block
                w[place >> 2] |= np.uint32(byte) << np.uint32(24 - 8 * (place & 3))
            if 64 * block + 56 > total:
                w[14], w[15] = np.uint32((total * 8) >> 32), np.uint32(total * 8)
            for k in range(16, 64):
                x, y = w[k - 15], w[k - 2]
                low = turned(x, 7) ^ turned(x, 18) ^ (x >> np.uint32(3))
                high = turned(y, 17) ^ turned(y, 19) ^ (y >> np.uint32(10))
                w[k] = np.uint32(w[k - 16] + low + w[k - 7] + high)
            a, b, c, d, e, f, g, h = (
                state[0],
                state[1],
                state[2],
                state[3],
                state[4],
                state[5],
                state[6],
                state[7],
            )
            for k in range(64):
                mixed = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)
                one = np.uint32(h + mixed + ((e & f) ^ (~e & g)) + _ROUNDS[k] + w[k])
                mixed = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)
                two = np.uint32(mixed + ((a & b) ^ (a & c) ^ (b & c)))
                h, g, f, e, d, c, b, a = g, f, e, np.uint32(d + one), c, b, a, np.uint32(one + two)
            for k, value in enumerate((a, b, c, d, e, f, g, h)):
                state[k] += value
        for k in range(8):
            x = state[k]
            swapped = (x >> np.uint32(24)) | ((x >> np.uint32(8)) & np.uint32(0xFF00))
            swapped |= ((x & np.uint32(0xFF00)) << np.uint32(8)) | (x << np.uint32(24))
            limbs[k] += np.uint64(np.uint32(swapped))
