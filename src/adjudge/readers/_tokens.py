# mypy: disable-error-code="untyped-decorator,assignment,call-arg,unreachable"

"""How the compiled loops pass over the tokens of JSON; only imported where Numba is installed and the input is large.

Places are unsigned, so that no index needs a look at its sign. Many bytes are looked at together, so `SLACK` of them must
lie behind the last one that counts, whatever they are. Nothing here raises and nothing guesses: what is not certainly
well-formed is BAD, and a number whose rounding is in doubt is NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.instructions import bits_below, bits_equal, eight_bytes, few_bits_below, trailing_zeros
from adjudge.loops import Loop

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
Place = Any  # np.uintp

# What stands at a path.
ABSENT, NULL, TRUE, FALSE, INTEGER, REAL, TEXT, ESCAPED, OBJECT, ARRAY = range(10)
BAD = 255

MAX_DIGITS = 19  # what a 64-bit integer holds for certain
POWERS = np.array([float(10**k) for k in range(23)])  # all exact
EXACT = np.uint64(1 << 53)
DOUBT = 2.0**-82  # of a quotient: a billionth of its last bit, far more than the error of its correction

ONE, TWO, FOUR, FIVE, SIX, EIGHT = (np.uintp(k) for k in (1, 2, 4, 5, 6, 8))
THREE, SEVEN = np.uintp(3), np.uintp(7)
ALL, LOWS, HIGHS = (np.uint64(byte * 0x0101010101010101) for byte in (0xFF, 0x01, 0x80))
HALF = np.uint64(32)
MIXER = np.uint64(0x9E3779B97F4A7C15)  # odd, its bits in no order
QUOTES, SLASHES, SPACES, NEWLINES = (np.uint64(byte * 0x0101010101010101) for byte in b'"\\ \n')
UNIT, NONE = np.uint64(1), np.uint64(0)
EVEN_BITS, ODD_BITS = np.uint64(0x5555555555555555), np.uint64(0xAAAAAAAAAAAAAAAA)
LOW_FOURS = np.uint64(0x0F0F0F0F0F0F0F0F)
EVERY_SECOND, EVERY_FOURTH, LOW_HALF = (np.uint64(b) for b in (0x00FF00FF00FF00FF, 0x0000FFFF0000FFFF, 0xFFFFFFFF))
TEN, HUNDRED, MYRIAD = (np.uint64(10**k) for k in (1, 2, 4))
TENS = np.array([10**k for k in range(9)], dtype=np.uint64)
WIDE = np.uintp(64)  # bytes that are looked at together
QUOTE, SLASH, BLANK, UPRIGHT, SMALL_N, SMALL_R, SMALL_T = (np.uint8(byte) for byte in b'"\\ /nrt')
POINT, NOUGHT, BEHIND_NINE = (np.uint8(byte) for byte in b".0:")
NOTHING = np.uintp(0)

# The value of a hexadecimal digit, 255 for any other byte; and what a byte behind a backslash stands for, 0 for nothing.
HEX = np.full(256, 255, dtype=np.uint8)
for _digit in b"0123456789abcdefABCDEF":
    HEX[_digit] = int(chr(_digit), 16)
ESCAPES = np.zeros(256, dtype=np.uint8)
for _name, _meant in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    ESCAPES[_name] = _meant


@Loop
def exact_quotient(digits: Any, divisor: float) -> float:
    """Digits / divisor, correctly rounded; −1 where double the precision does not settle the rounding.

    The quotient of the rounded dividend is corrected by its exact remainder and by what rounding the dividend lost
    (T. J. Dekker, A floating-point technique for extending the available precision, Numerische Mathematik 18, 1971).
    """
    high = float(digits)
    rounded = np.uint64(high)
    low = float(digits - rounded) if digits >= rounded else -float(rounded - digits)
    first = high / divisor
    a = first * 134217729.0
    a1 = a - (a - first)
    a2 = first - a1
    b = divisor * 134217729.0
    b1 = b - (b - divisor)
    b2 = divisor - b1
    product = first * divisor
    lost = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    correction = (((high - product) - lost) + low) / divisor
    total = first + (correction - first * DOUBT)
    return total if total == first + (correction + first * DOUBT) else -1.0


def past_blank(data: Bytes, i: Place, end: Place) -> Place:
    while i < end and data[i] <= 32 and (data[i] == 32 or data[i] == 10 or data[i] == 13 or data[i] == 9):
        i += ONE
    return i


def past_plain(words: Any, i: Place, end: Place) -> Place:
    """The place of the next quote, backslash or control character, or the end."""
    while i < end:
        x = eight_bytes(words, i)
        quote = x ^ QUOTES
        slash = x ^ SLASHES
        # The lowest high bit that is set marks the first such byte; those above it may be carried there.
        marks = (((quote - LOWS) & ~quote) | ((slash - LOWS) & ~slash) | ((x - SPACES) & ~x)) & HIGHS
        if marks:
            return min(i + (np.uintp(trailing_zeros(marks)) >> THREE), end)
        i += EIGHT
    return end


def past_string(data: Bytes, words: Any, i: Place, end: Place) -> tuple[Place, int]:
    """From behind the opening quote: the place behind the closing one, and TEXT, ESCAPED or BAD.

    64 bytes at a time, a bit each. A backslash is escaped where an odd number of them stands before it; which ones are
    is told by an addition, whose carry runs along them (G. Langdale and D. Lemire, Parsing gigabytes of JSON per second,
    VLDB Journal 28, 2019).
    """
    begin, kind, carried = i, TEXT, NONE
    while i < end:
        slashes = bits_equal(words, i, SLASH)
        escaped, carry = carried, NONE
        if slashes | carried:
            slashes &= ~carried
            behind = (slashes << UNIT) | carried
            odd = slashes & ODD_BITS & ~behind
            ends = odd + slashes
            carry = np.uint64(ends < odd)
            escaped = (EVEN_BITS ^ (ends << UNIT)) & behind
        quotes = bits_equal(words, i, QUOTE) & ~escaped
        inside = (quotes & -quotes) - UNIT  # all bits where there is no quote
        escaped &= inside
        if bits_below(words, i, BLANK) & inside:
            return i, BAD
        if escaped:
            kind = ESCAPED
            known = bits_equal(words, i, QUOTE) | bits_equal(words, i, SLASH) | bits_equal(words, i, SMALL_N)
            if escaped & ~known:
                known |= bits_equal(words, i, SMALL_T) | bits_equal(words, i, SMALL_R) | bits_equal(words, i, UPRIGHT)
            if escaped & ~known:
                return past_escapes(data, words, begin, end)
        if quotes:
            i += np.uintp(trailing_zeros(quotes))
            return (i + ONE, kind) if i < end else (end, BAD)
        i += WIDE
        carried = carry
    return end, BAD


def past_escapes(data: Bytes, words: Any, i: Place, end: Place) -> tuple[Place, int]:
    """As `past_string`, one escape after another, whatever it is."""
    kind = TEXT
    while True:
        i = past_plain(words, i, end)
        if i >= end or data[i] < 32:
            return i, BAD
        if data[i] == 34:
            return i + ONE, kind
        kind = ESCAPED
        if i + TWO > end:
            return i, BAD
        if ESCAPES[data[i + ONE]] != 0:
            i += TWO
        elif data[i + ONE] == 117 and i + SIX <= end:
            if HEX[data[i + TWO]] == 13 and HEX[data[i + THREE]] > 7:
                return i, BAD  # half of a pair
            if max(HEX[data[i + TWO]], HEX[data[i + THREE]], HEX[data[i + FOUR]], HEX[data[i + FIVE]]) > 15:
                return i, BAD
            i += SIX
        else:
            return i, BAD


def past_number(data: Bytes, i: Place, end: Place) -> tuple[Place, int, float]:
    """The place behind a number, INTEGER, REAL or BAD, and its value: NaN where that is in doubt."""
    negative = data[i] == 45
    if negative:
        i += ONE
    kind = INTEGER
    digits = np.uint64(0)
    scale = 0
    begin = i
    while i < end and 48 <= data[i] <= 57:
        digits = digits * np.uint64(10) + np.uint64(data[i] - np.uint8(48))
        i += ONE
    seen = np.int64(i - begin)
    if seen == 0 or (seen > 1 and data[begin] == 48):
        return i, BAD, 0.0
    if i < end and data[i] == 46:
        kind = REAL
        i += ONE
        begin = i
        while i < end and 48 <= data[i] <= 57:
            digits = digits * np.uint64(10) + np.uint64(data[i] - np.uint8(48))
            i += ONE
        scale = np.int64(i - begin)
        if scale == 0:
            return i, BAD, 0.0
        seen += scale
    if i < end and (data[i] == 101 or data[i] == 69):
        kind = REAL
        i += ONE
        down = i < end and data[i] == 45
        if i < end and (data[i] == 43 or data[i] == 45):
            i += ONE
        begin = i
        power = 0
        while i < end and 48 <= data[i] <= 57 and i - begin < FOUR:
            power = power * 10 + np.int64(data[i]) - 48
            i += ONE
        if i == begin or i - begin > TWO:
            return i, BAD, 0.0
        scale += power if down else -power
    value = np.nan
    if seen <= MAX_DIGITS:
        if digits == np.uint64(0):
            value = 0.0
        elif digits <= EXACT and -22 <= scale <= 22:
            value = float(digits) / POWERS[scale] if scale >= 0 else float(digits) * POWERS[-scale]
        elif scale == 0 and seen < MAX_DIGITS:
            value = float(np.int64(digits))
        elif 0 < scale <= 22:
            found = exact_quotient(digits, POWERS[scale])
            value = found if found > 0 else np.nan
    return i, kind, -value if negative else value


def short_number(data: Bytes, i: Place) -> tuple[Place, int, float]:
    """As `past_number`, of a number with at most eight digits before the point and behind it; any other is BAD.

    Of one longer than 16 bytes, or with an exponent, only the beginning is taken: what stands behind is the caller's to
    look at.
    Without a branch for every digit: most numbers of a record differ in length from those in the same place before.
    """
    negative = data[i] == 45
    i += np.uintp(negative)
    others = ~(few_bits_below(data, i, BEHIND_NINE) & ~few_bits_below(data, i, NOUGHT))
    size = np.uintp(trailing_zeros(others))
    kind, scale = INTEGER, np.uintp(0)
    if size == NOTHING or size > EIGHT or (size > ONE and data[i] == NOUGHT):
        return i, BAD, 0.0
    digits = few_digits(data, i, size)
    i += size
    if data[i] == POINT:
        kind = REAL
        others &= others - UNIT
        scale = np.uintp(trailing_zeros(others)) - size - ONE
        if scale == NOTHING or scale > EIGHT:
            return i, BAD, 0.0
        digits = digits * TENS[scale] + few_digits(data, i + ONE, scale)
        i += scale + ONE
    value = float(digits) / POWERS[scale]  # both exact: 16 bytes hold no more than 15 digits and the point
    return i, kind, -value if negative else value


def few_digits(data: Bytes, i: Place, size: Place) -> Any:
    """The number that one to eight digits make: they become pairs, fours and one, all at the same time."""
    x = (eight_bytes(data, i) & LOW_FOURS) << np.uint64((EIGHT - size) << THREE)  # as if zeros stood before them
    x = (x * TEN + (x >> np.uint64(8))) & EVERY_SECOND
    x = (x * HUNDRED + (x >> np.uint64(16))) & EVERY_FOURTH
    return (x * MYRIAD + (x >> HALF)) & LOW_HALF


def last_word(words: Any, i: Place, size: Place) -> Any:
    """The bytes from place i on, fewer than eight, with zeros behind them."""
    return eight_bytes(words, i) & ~(ALL << (size << THREE))


def is_literal(words: Any, i: Place, literals: NDArray[np.uint64], at: Place, size: Place) -> Any:
    """Whether the bytes from place i on are the literal that stands from `at` on."""
    whole = size >> THREE
    differs = np.uint64(0)
    for j in range(whole):
        differs |= literals[at + j] ^ eight_bytes(words, i + (j << THREE))
    if size & SEVEN:
        differs |= literals[at + whole] ^ last_word(words, i + (whole << THREE), size & SEVEN)
    return differs == np.uint64(0)


def same_bytes(data: Bytes, begin: Place, keys: Bytes, at: int, size: int) -> bool:
    for k in range(size):  # noqa: SIM110 -- as a loop for the compiler
        if keys[at + k] != data[begin + np.uintp(k)]:
            return False
    return True
