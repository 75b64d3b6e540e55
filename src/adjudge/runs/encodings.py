"""Encodings of Parquet for values whose runs are known before a value is looked at.

Format: https://parquet.apache.org/docs/file-format/data-pages/encodings/
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.runs.thrift import varint, zigzag

_GROUP = 8  # values that packed bits come in; fewer than that are no run
_BLOCK, _PARTS = 128, 4
_PART = _BLOCK // _PARTS


def bits_for(count: int) -> int:
    """The bits of a code below `count`, as `runs` takes them."""
    return next(bits for bits in (1, 2, 4, 8, 16, 32) if count <= 1 << bits)


def runs(values: NDArray[Any], edges: NDArray[np.intp], bits: int) -> bytes:
    """Unsigned values as runs and packed bits (the hybrid that Parquet calls RLE), each of 1, 2, 4, 8, 16 or 32 bits.

    The stretches from one edge to the next either hold one value, and are a run, or are packed.
    """
    out, at = bytearray(), 0
    for end, constant in _stretches(values, edges):
        if at >= end:
            continue  # packed together with the one before
        if constant and end - at >= _GROUP:
            out += varint((end - at) << 1) + int(values[at]).to_bytes(-(-bits // 8), "little")
            at = end
        else:
            groups = -(-(end - at) // _GROUP)
            out += varint(groups << 1 | 1) + _packed(values[at : at + groups * _GROUP], groups * _GROUP, bits)
            at += groups * _GROUP
    return bytes(out)


def repeated(values: NDArray[Any], times: int, bits: int) -> bytes:
    """As `runs`, of values that are each there so many times."""
    if times < _GROUP:
        return runs(np.repeat(values, times), np.arange(len(values) + 1) * times, bits)
    groups = ((value, len(list(alike)) * times) for value, alike in itertools.groupby(values.tolist()))
    return b"".join(varint(count << 1) + value.to_bytes(-(-bits // 8), "little") for value, count in groups)


def same_or_packed(values: NDArray[Any], bits: int) -> bytes:
    """Codes of a page behind the number of their bits: one run, or all packed."""
    if values.size and (values == values[0]).all():
        data = varint(values.size << 1) + int(values[0]).to_bytes(-(-bits // 8), "little")
    else:
        groups = -(-values.size // _GROUP)
        data = varint(groups << 1 | 1) + _packed(values, groups * _GROUP, bits)
    return bytes([bits]) + data


def _stretches(values: NDArray[Any], edges: NDArray[np.intp]) -> list[tuple[int, bool]]:
    """Where each stretch ends and whether it holds one value; neighbours that are alike are one."""
    found: list[tuple[int, bool]] = []
    before: Any = None
    for low, high in itertools.pairwise(edges.tolist()):
        if low == high:
            continue
        first = values[low]
        constant = bool(values[high - 1] == first) and bool((values[low:high] == first).all())
        if found and found[-1][1] == constant and (first == before or not constant):
            found[-1] = (high, constant)
        else:
            found.append((high, constant))
        before = first
    return found


def _packed(values: NDArray[Any], size: int, bits: int) -> bytes:
    """Each value in so many bits, the first lowest; as if zeros stood behind the last up to `size`."""
    if len(values) < size:
        values = np.concatenate([values, np.zeros(size - len(values), dtype=values.dtype)])
    if bits >= 8:
        return values.astype(f"<u{bits // 8}").tobytes()
    small = values.astype(np.uint8)
    if bits == 1:
        return np.packbits(small, bitorder="little").tobytes()
    # As many values as share a byte are one number here; each is moved down to its bits of the lowest byte.
    together = 8 // bits
    words = np.ascontiguousarray(small).view(f"<u{together}")
    packed = words.copy()
    for place in range(1, together):
        packed |= words >> words.dtype.type(place * (8 - bits))
    return packed.astype(np.uint8).tobytes()


def counted(first: int, count: int, times: int) -> bytes:
    """The numbers first, first + 1 … (`count` of them, below 2³¹), so many times over, as DELTA_BINARY_PACKED.

    A block holds the differences of 128 values. All are 1, and take no room, but where the numbers start anew.
    """
    size = count * times
    out = bytearray(varint(_BLOCK) + varint(_PARTS) + varint(size) + varint(zigzag(first)))
    differences = max(0, size - 1)
    blocks = -(-differences // _BLOCK)
    steady = varint(zigzag(1 if count > 1 else 0)) + bytes(_PARTS)
    if count < 2:
        return bytes(out + steady * blocks)
    back, bits = 1 - count, count.bit_length()
    least = varint(zigzag(back))
    onward = sum(count << (bits * k) for k in range(_PART))  # by how much each difference is more than the least
    anew: dict[int, list[int]] = {}
    for place in range(count - 1, differences, count):
        anew.setdefault(place // _BLOCK, []).append(place % _BLOCK)
    done = 0
    for block, places in anew.items():
        out += steady * (block - done)
        done = block + 1
        parts = min(_PARTS, -(-(differences - block * _BLOCK) // _PART))
        out += least + bytes([bits] * parts + [0] * (_PARTS - parts))
        packed = [onward] * parts
        for place in places:
            packed[place // _PART] -= count << (bits * (place % _PART))
        for part in packed:
            out += part.to_bytes(bits * _PART // 8, "little")
    return bytes(out + steady * (blocks - done))


def differing(values: NDArray[np.int32]) -> bytes:
    """Any numbers as DELTA_BINARY_PACKED, every difference in as many whole bytes as the largest takes."""
    out = varint(_BLOCK) + varint(_PARTS) + varint(values.size) + varint(zigzag(int(values[0]) if values.size else 0))
    if values.size < 2:
        return out
    differences = np.diff(values.astype(np.int64))
    least = int(differences.min())
    above = differences - least
    width = next(size for size in (0, 1, 2, 4) if int(above.max()) < 1 << (8 * size))
    head = varint(zigzag(least)) + bytes([8 * width] * _PARTS)
    blocks = -(-above.size // _BLOCK)
    table = np.empty((blocks, len(head) + width * _BLOCK), dtype=np.uint8)
    table[:, : len(head)] = np.frombuffer(head, dtype=np.uint8)
    if width:
        padded = np.zeros(blocks * _BLOCK, dtype=f"<u{width}")
        padded[: above.size] = above
        table[:, len(head) :] = padded.view(np.uint8).reshape(blocks, -1)
    parts = -(-(above.size - (blocks - 1) * _BLOCK) // _PART)  # of the last block: the others are not there
    return out + table.tobytes()[: table.size - (_PARTS - parts) * _PART * width]


def levels(there: NDArray[np.bool_]) -> bytes:
    """Definition levels of a column without lists: whether there is a value, of values shaped (positions, samples)."""
    width, n = there.shape
    return _sized(runs(there.ravel(), np.arange(width + 1, dtype=np.intp) * np.intp(n), 1))


def repeated_levels(there: NDArray[np.bool_], times: int) -> bytes:
    """As `levels`, of positions whose values are all there or all missing."""
    return _sized(repeated(there.astype(np.uint8), times, 1))


def of_those_there(values: NDArray[Any], there: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The values that are there, one position after another, and where each position begins and ends among them."""
    n = values.shape[1]
    counts = np.count_nonzero(there, axis=1).tolist()
    held = [row if k == n else row[own] for row, own, k in zip(values, there, counts, strict=True) if k]
    found = np.concatenate(held) if held else values[:0].ravel()
    return found, np.cumsum([0, *counts])


def level_bits(bitmap: NDArray[np.uint8], count: int) -> bytes:
    """As `levels`, of one position, from a bit a value; what stands behind the last bit does not count."""
    groups = -(-count // _GROUP)
    bits = bytearray(bitmap[:groups].tobytes())
    bits[-1] &= 0xFF >> -count % _GROUP
    return _sized(varint(groups << 1 | 1) + bytes(bits))


def same_level(level: int, count: int) -> bytes:
    """Repetition or definition levels that are all alike, below 256."""
    return _sized(varint(count << 1) + bytes([level]))


def list_starts(starts: NDArray[np.intp], count: int) -> bytes:
    """Repetition levels of lists that are not empty: where among `count` values each begins."""
    inside = np.ones(count, dtype=np.uint8)
    inside[starts] = 0
    groups = -(-count // _GROUP)
    return _sized(varint(groups << 1 | 1) + np.packbits(inside, bitorder="little").tobytes())


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "little") + data


def texts(words: Sequence[str]) -> bytes:
    """Plain texts, each behind its length."""
    encoded = [word.encode() for word in words]
    return b"".join(len(word).to_bytes(4, "little") + word for word in encoded)


def as_it_lies(values: NDArray[Any]) -> memoryview:
    """Numbers as plain values, without a copy where they lie together in memory."""
    return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data
