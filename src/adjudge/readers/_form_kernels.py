# mypy: disable-error-code="assignment,call-arg,unreachable,no-any-return,arg-type"

"""The loop of `forms`: rows whose bytes are those of a known row but for some scalars are read by comparing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.loops import Loop
from adjudge.readers._number_kernels import number_of
from adjudge.readers._tokens import (
    BAD,
    FALSE,
    FIVE,
    FOUR,
    NULL,
    ONE,
    THREE,
    TRUE,
    TWO,
    Bytes,
    Floats,
    Ints,
    Place,
    is_literal,
    past_number,
    past_string,
)


def past_scalar(data: Bytes, words: Any, i: Place, end: Place) -> tuple[Place, int, float]:
    """The place behind a scalar, what it is, and its value if it is a number."""
    c = data[i]
    if c == 34:
        i, sort = past_string(data, words, i + ONE, end)
        return i, sort, 0.0
    if c == 45 or 48 <= c <= 57:
        return past_number(data, i, end)
    if i + FOUR <= end and data[i + ONE] == 114 and data[i + TWO] == 117 and data[i + THREE] == 101 and c == 116:
        return i + FOUR, TRUE, 0.0
    if i + FOUR <= end and data[i + ONE] == 117 and data[i + TWO] == 108 and data[i + THREE] == 108 and c == 110:
        return i + FOUR, NULL, 0.0
    if (
        i + FIVE <= end
        and c == 102
        and data[i + ONE] == 97
        and data[i + TWO] == 108
        and data[i + THREE] == 115
        and data[i + FOUR] == 101
    ):
        return i + FIVE, FALSE, 0.0
    return i, BAD, 0.0


@Loop
def read_forms(
    data: Bytes,
    words: Any,
    starts: Ints,
    ends: Ints,
    literals: NDArray[np.uint64],
    literal_at: Ints,
    literal_size: Ints,
    hole_from: Ints,
    slot: Ints,
    column: Ints,
    allowed: Ints,
    none: Floats,
    base: Floats,
    form: NDArray[np.int8],
    kind: Bytes,
    first: Ints,
    last: Ints,
    values: Floats,
    nodes: Ints,
    slots: Ints,
    hashes: NDArray[np.uint64],
    places: NDArray[np.int64],
    store: NDArray[np.uint64],
    count: int,
    codes: Ints,
    fresh: Ints,
) -> int:
    """Read every row data[starts[r]:ends[r]] that has one of the forms; form[r] is −1 for the others.

    A form is the literals and holes hole_from[f]..hole_from[f + 1], a literal before every hole and one, with no hole
    behind it, at the end. A scalar in a hole goes to the `slot` of kinds and places and to the `column` of values, −1
    for neither; `allowed` has a bit for every kind that may stand there, `none` is the value of null. What a row's form
    does not have is absent in the slots and as in `base` in the values. The rows read are numbered as `number_rows` does,
    while their bytes are near; kind[0] is the form.
    """
    forms = hole_from.shape[0] - 1
    guess, number, known = 0, np.int64(0), count
    for row in range(starts.shape[0]):
        end = np.uintp(ends[row])
        found = -1
        for step in range(forms):
            own = guess + step
            if own >= forms:
                own -= forms
            for k in range(kind.shape[0]):
                kind[k, row], first[k, row], last[k, row] = 0, 0, 0
            for k in range(values.shape[1]):
                values[row, k] = base[own, k]
            i = np.uintp(starts[row])
            stop = hole_from[own + 1] - 1
            good = True
            for hole in range(hole_from[own], stop):
                size = np.uintp(literal_size[hole])
                good = i + size < end and is_literal(words, i, literals, np.uintp(literal_at[hole]), size)
                if not good:
                    break
                begin = i + size
                i, sort, value = past_scalar(data, words, begin, end)
                good = sort != BAD and (allowed[hole] >> sort) & 1 != 0
                if not good:
                    break
                k = column[hole]
                if k >= 0:
                    if math.isnan(value):
                        good = False
                        break
                    values[row, k] = none[hole] if sort == NULL else value
                k = slot[hole]
                if k >= 0:
                    kind[k, row] = sort
                    inside = np.uintp(1 if data[begin] == 34 else 0)
                    first[k, row] = begin + inside
                    last[k, row] = i - inside
            if good:
                size = np.uintp(literal_size[stop])
                if i + size == end and is_literal(words, i, literals, np.uintp(literal_at[stop]), size):
                    found = own
                    break
        form[row] = found
        codes[row] = -1
        if found >= 0:
            guess = found
            kind[0, row] = found
            number = number_of(words, kind, first, last, nodes, row, slots, hashes, places, store, count, number)
            if number == count:
                fresh[number - known] = row
                count += 1
            codes[row] = number
    return count
