"""SHA-256 of many short texts, compiled; only imported where other compiled loops are loaded anyway.

Texts of one block are hashed LANES at a time, round by round, so that the compiler works on several with one instruction.
"""

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


LANES = 64
LONGEST = 55  # bytes of a text that is one block with its padding
_L = [np.uintp(k * LANES) for k in range(17)]
_L1, _L2, _L3, _L4, _L5, _L6, _L7, _L15, _L16 = (_L[k] for k in (1, 2, 3, 4, 5, 6, 7, 15, 16))


def first_term(e: Any, f: Any, g: Any, h: Any, constant: Any, word: Any) -> Any:
    mixed = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)
    return np.uint32(h + mixed + (g ^ (e & (f ^ g))) + constant + word)


def second_term(a: Any, b: Any, c: Any) -> Any:
    return np.uint32((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) | (c & (a | b))))


def next_word(w: Any, i: Any) -> Any:
    x, y = w[i - _L15], w[i - _L2]
    low = turned(x, 7) ^ turned(x, 18) ^ (x >> np.uint32(3))
    high = turned(y, 17) ^ turned(y, 19) ^ (y >> np.uint32(10))
    return np.uint32(w[i - _L16] + low + w[i - _L7] + high)


def eight_rounds(w: Any, s: Any, k: Any) -> None:
    """Rounds k to k + 7 of all lanes; after eight rounds every variable is in its place again."""
    k0, k1, k2, k3 = _ROUNDS[k], _ROUNDS[k + 1], _ROUNDS[k + 2], _ROUNDS[k + 3]
    k4, k5, k6, k7 = _ROUNDS[k + 4], _ROUNDS[k + 5], _ROUNDS[k + 6], _ROUNDS[k + 7]
    for lane in range(LANES):
        i = np.uintp(lane)
        m = np.uintp(k * LANES) + i
        a, b, c, d = s[i], s[i + _L1], s[i + _L2], s[i + _L3]
        e, f, g, h = s[i + _L4], s[i + _L5], s[i + _L6], s[i + _L7]
        t = first_term(e, f, g, h, k0, w[m])
        d, h = np.uint32(d + t), np.uint32(t + second_term(a, b, c))
        t = first_term(d, e, f, g, k1, w[m + _L1])
        c, g = np.uint32(c + t), np.uint32(t + second_term(h, a, b))
        t = first_term(c, d, e, f, k2, w[m + _L2])
        b, f = np.uint32(b + t), np.uint32(t + second_term(g, h, a))
        t = first_term(b, c, d, e, k3, w[m + _L3])
        a, e = np.uint32(a + t), np.uint32(t + second_term(f, g, h))
        t = first_term(a, b, c, d, k4, w[m + _L4])
        h, d = np.uint32(h + t), np.uint32(t + second_term(e, f, g))
        t = first_term(h, a, b, c, k5, w[m + _L5])
        g, c = np.uint32(g + t), np.uint32(t + second_term(d, e, f))
        t = first_term(g, h, a, b, k6, w[m + _L6])
        f, b = np.uint32(f + t), np.uint32(t + second_term(c, d, e))
        t = first_term(f, g, h, a, k7, w[m + _L7])
        e, a = np.uint32(e + t), np.uint32(t + second_term(b, c, d))
        s[i], s[i + _L1], s[i + _L2], s[i + _L3] = a, b, c, d
        s[i + _L4], s[i + _L5], s[i + _L6], s[i + _L7] = e, f, g, h


def swapped(x: Any) -> Any:
    found = (x >> np.uint32(24)) | ((x >> np.uint32(8)) & np.uint32(0xFF00))
    return np.uint32(found | ((x & np.uint32(0xFF00)) << np.uint32(8)) | (x << np.uint32(24)))


@Loop
def add_short_digests(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int32],
    endings: NDArray[np.uint8],
    ending_edges: NDArray[np.int32],
    which: NDArray[np.int8],
    w: NDArray[np.uint32],
    s: NDArray[np.uint32],
    limbs: NDArray[np.uint64],
) -> None:
    """As `add_digests`, of texts that have at most LONGEST bytes with their ending.

    `w` has room for 64 words and `s` for 8 of every lane, word k of all lanes from k · LANES on.
    """
    for start in range(0, which.shape[0], LANES):
        lanes = min(LANES, which.shape[0] - start)
        for k in range(16 * LANES):
            w[k] = 0
        for lane in range(lanes):
            row = start + lane
            begin, size = np.int64(offsets[row]), np.int64(offsets[row + 1] - offsets[row])
            tail = np.int64(ending_edges[which[row]])
            total = size + np.int64(ending_edges[which[row] + 1]) - tail
            for at in range(size):
                w[(at >> 2) * LANES + lane] |= np.uint32(data[begin + at]) << np.uint32(24 - 8 * (at & 3))
            for at in range(size, total):
                w[(at >> 2) * LANES + lane] |= np.uint32(endings[tail + at - size]) << np.uint32(24 - 8 * (at & 3))
            w[(total >> 2) * LANES + lane] |= np.uint32(128) << np.uint32(24 - 8 * (total & 3))
            w[15 * LANES + lane] = np.uint32(total * 8)
        for k in range(16, 64):
            for lane in range(LANES):
                i = np.uintp(k * LANES) + np.uintp(lane)
                w[i] = next_word(w, i)
        for k in range(8):
            for lane in range(LANES):
                s[k * LANES + lane] = _START[k]
        for k in range(0, 64, 8):
            eight_rounds(w, s, k)
        for k in range(8):
            for lane in range(lanes):
                limbs[k] += np.uint64(swapped(np.uint32(s[k * LANES + lane] + _START[k])))


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
            limbs[k] += np.uint64(swapped(state[k]))
