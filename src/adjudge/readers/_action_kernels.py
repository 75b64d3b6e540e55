# mypy: disable-error-code="untyped-decorator,assignment,call-arg,unreachable"
# ruff: noqa: PLR1714, SIM109 -- comparisons with numbers compile to better code than sets
"""The loop of `action_columns`, over bytes, compiled: one plain action a text, or none that is certain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adjudge.loops import Loop
from adjudge.readers._tokens import Bytes, Floats, Ints, Place, past_number

_ONE = np.uintp(1)
_SIX = np.uintp(6)
_SEVEN = np.uintp(7)
_POINTING, _SPOKEN, _COMMAND, _ALONE = range(4)
_ACTION = np.frombuffer(b"action", dtype=np.uint8)
_MARKER = np.frombuffer(b"Action:", dtype=np.uint8)
_TEXT = np.frombuffer(b"text", dtype=np.uint8)
# Letters in lower case, _ as it is; 0 for what stands in no name.
_LETTER = np.zeros(256, dtype=np.uint8)
for _byte in b"abcdefghijklmnopqrstuvwxyz_":
    _LETTER[_byte] = _byte
for _byte in b"ABCDEFGHIJKLMNOPQRSTUVWXYZ":
    _LETTER[_byte] = _byte + 32


def past_space(data: Bytes, i: Place, end: Place) -> Place:
    while i < end and (data[i] == 32 or 9 <= data[i] <= 13):
        i += _ONE
    return i


def past_sign(data: Bytes, i: Place, end: Place, sign: int) -> Place:
    """Behind the sign and the white space around it; 0 where it does not stand there."""
    i = past_space(data, i, end)
    if i >= end or data[i] != sign:
        return np.uintp(0)
    return past_space(data, i + _ONE, end)


def has_word(data: Bytes, i: Place, end: Place, word: Bytes) -> bool:
    size = np.uintp(word.shape[0])
    if i + size > end:
        return False
    for k in range(word.shape[0]):  # noqa: SIM110 -- as a loop for the compiler
        if _LETTER[data[i + np.uintp(k)]] != word[k]:
            return False
    return True


def past_digits(data: Bytes, i: Place, end: Place) -> Place:
    while i < end and 48 <= data[i] <= 57:
        i += _ONE
    return i


def past_coordinate(data: Bytes, i: Place, end: Place, letter: int) -> tuple[Place, float]:
    """Behind `x = 0.5` and white space; 0 where it does not stand there, or the number's rounding is in doubt."""
    if i >= end or _LETTER[data[i]] != letter:
        return np.uintp(0), 0.0
    i = past_sign(data, i + _ONE, end, 61)
    if i == 0 or i >= end or not (data[i] == 45 or 48 <= data[i] <= 57):
        return np.uintp(0), 0.0
    i, sort, value = past_number(data, i, end)
    if sort == 255 or value != value:  # noqa: PLR0124 -- NaN
        return np.uintp(0), 0.0
    return past_space(data, i, end), value


@Loop
def form_at(
    data: Bytes,
    i: Place,
    end: Place,
    names: Bytes,
    places: Ints,
    sorts: Ints,
    row: int,
    kind: NDArray[np.int8],
    x: Floats,
    y: Floats,
    spans: Ints,
) -> None:
    """Read data[i:end] as one plain action into the columns of a row; kind stays −1 where it is none."""
    i = past_space(data, i, end)
    if has_word(data, i, end, _ACTION):
        i = past_sign(data, i + _SIX, end, 58)
        if i == 0:
            return
    begin = i
    while i < end and _LETTER[data[i]] != 0:
        i += _ONE
    found = -1
    for name in range(sorts.shape[0]):
        size = places[name + 1] - places[name]
        if np.int64(i - begin) == size and has_word(data, begin, end, names[places[name] : places[name + 1]]):
            found = name
    if found < 0:
        return
    i = past_sign(data, i, end, 40)
    if i == 0 or i >= end:
        return
    sort = sorts[found]
    element_from, element_to, text_from, text_to = np.uintp(0), np.uintp(0), np.uintp(0), np.uintp(0)
    across, down = np.nan, np.nan
    if data[i] == 91:
        element_from = past_space(data, i + _ONE, end)
        element_to = past_digits(data, element_from, end)
        i = past_sign(data, element_to, end, 93)
        if i == 0 or element_to == element_from or sort == _COMMAND or sort == _ALONE:
            return
        if sort == _SPOKEN:
            i = past_sign(data, i, end, 44)
            if i == 0:
                return
    elif sort == _POINTING:
        i, across = past_coordinate(data, i, end, 120)
        if i == 0:
            return
        i = past_sign(data, i, end, 44)
        if i == 0:
            return
        i, down = past_coordinate(data, i, end, 121)
        if i == 0:
            return
    if sort == _SPOKEN or sort == _COMMAND:
        if has_word(data, i, end, _TEXT):
            i = past_sign(data, i + np.uintp(4), end, 61)
            if i == 0 or sort == _COMMAND:
                return
        if i >= end or data[i] != 34:
            return
        text_from = i + _ONE
        i = text_from
        while i < end and data[i] != 34 and data[i] != 92:
            i += _ONE
        if i >= end or data[i] == 92:
            return
        text_to = i
        i += _ONE
    i = past_sign(data, i, end, 41)
    if i == 0 or i != end:
        return
    kind[row] = found
    x[row], y[row] = across, down
    spans[0, row], spans[1, row] = element_from, element_to
    spans[2, row], spans[3, row] = text_from, text_to


@Loop
def read_plain(
    data: Bytes,
    offsets: Ints,
    names: Bytes,
    places: Ints,
    sorts: Ints,
    kind: NDArray[np.int8],
    x: Floats,
    y: Floats,
    spans: Ints,
) -> None:
    """Every text of an Arrow buffer that is one plain action, alone or behind the last `Action:`.

    `spans` are where the element and the argument stand, from and to. What stands before the marker must hold no
    bracket, so that the marker cannot be part of a string. Offsets count from 1, so that no place is 0.
    """
    for row in range(kind.shape[0]):
        start, end = np.uintp(offsets[row]), np.uintp(offsets[row + 1])
        form_at(data, start, end, names, places, sorts, row, kind, x, y, spans)
        if kind[row] >= 0 or end < start + _SEVEN:
            continue
        marker = end - _SEVEN
        while marker > start:
            same = data[marker] == _MARKER[0]
            for k in range(1, 7):
                same = same and data[marker + np.uintp(k)] == _MARKER[k]
            if same:
                break
            marker -= _ONE
        if marker == start or not (data[marker - _ONE] == 32 or data[marker - _ONE] == 10):
            continue
        bracket = False
        for i in range(start, marker):
            bracket = bracket or data[i] == 40
        if not bracket:
            form_at(data, marker, end, names, places, sorts, row, kind, x, y, spans)
