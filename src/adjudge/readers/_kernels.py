# mypy: disable-error-code="untyped-decorator,assignment,call-arg,unreachable"
# ruff: noqa: PLR1714, SIM109 -- comparisons with numbers compile to better code than sets
"""The loops of `scan`, over bytes, compiled by Numba; only imported where it is installed and the input is large.

A row that is not certainly well-formed JSON, or holds a wanted number whose rounding is in doubt, is marked as odd and
left to the ordinary reader, which decides. So these loops never raise and never guess. Places are unsigned, so that no
index needs a look at its sign, and strings are passed eight bytes at a time.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
Place = Any  # np.uintp

# What stands at a path.
ABSENT, NULL, TRUE, FALSE, INTEGER, REAL, TEXT, ESCAPED, OBJECT, ARRAY = range(10)
BAD = 255

MAX_DEPTH = 64
MAX_DIGITS = 19  # what a 64-bit integer holds for certain
POWERS = np.array([float(10**k) for k in range(23)])  # all exact
_EXACT = np.uint64(1 << 53)

_ONE, _TWO, _FOUR, _FIVE, _SIX, _EIGHT = (np.uintp(k) for k in (1, 2, 4, 5, 6, 8))
_THREE, _SEVEN = np.uintp(3), np.uintp(7)
_ALL, _LOWS, _HIGHS = (np.uint64(byte * 0x0101010101010101) for byte in (0xFF, 0x01, 0x80))
_BITS, _HALF = np.uint64(64), np.uint64(32)
_MIXER = np.uint64(0x9E3779B97F4A7C15)  # odd, its bits in no order
_QUOTES, _SLASHES, _SPACES, _NEWLINES = (np.uint64(byte * 0x0101010101010101) for byte in b'"\\ \n')
_UNIT = np.uint64(1)

# The value of a hexadecimal digit, 255 for any other byte; and what a byte behind a backslash stands for, 0 for nothing.
_HEX = np.full(256, 255, dtype=np.uint8)
for _digit in b"0123456789abcdefABCDEF":
    _HEX[_digit] = int(chr(_digit), 16)
_ESCAPES = np.zeros(256, dtype=np.uint8)
for _name, _meant in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    _ESCAPES[_name] = _meant

_compiled: Any = numba.njit(cache=True)
_inlined: Any = numba.njit(inline="always")


@_compiled
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
    total = first + correction
    rest = correction - (total - first)
    mantissa, exponent = math.frexp(total)
    ulp = math.ldexp(1.0, exponent - 53)
    if mantissa == 0.5 or abs(abs(rest) - 0.5 * ulp) < ulp * 1e-9:
        return -1.0
    return total


@_inlined
def past_blank(data: Bytes, i: Place, end: Place) -> Place:
    while i < end and data[i] <= 32 and (data[i] == 32 or data[i] == 10 or data[i] == 13 or data[i] == 9):
        i += _ONE
    return i


@_inlined
def past_plain(words: Any, i: Place, end: Place) -> Place:
    """The place of the next quote, backslash or control character, or the end."""
    at = i >> _THREE
    kept = _ALL << ((i & _SEVEN) << _THREE)  # not the bytes before i
    while True:
        x = words[at]
        quote = x ^ _QUOTES
        slash = x ^ _SLASHES
        # The lowest high bit that is set marks the first such byte; those above it may be carried there.
        marks = (((quote - _LOWS) & ~quote) | ((slash - _LOWS) & ~slash) | ((x - _SPACES) & ~x)) & _HIGHS & kept
        if marks:
            found = (at << _THREE) + (np.uintp(trailing_zeros(marks)) >> _THREE)
            break
        at += _ONE
        if at << _THREE >= end:
            found = end
            break
        kept = _ALL
    return min(found, end)


@_inlined
def past_string(data: Bytes, words: Any, i: Place, end: Place) -> tuple[Place, int]:
    """From behind the opening quote: the place behind the closing one, and TEXT, ESCAPED or BAD."""
    kind = TEXT
    while True:
        i = past_plain(words, i, end)
        if i >= end or data[i] < 32:
            return i, BAD
        if data[i] == 34:
            return i + _ONE, kind
        kind = ESCAPED
        if i + _TWO > end:
            return i, BAD
        if _ESCAPES[data[i + _ONE]] != 0:
            i += _TWO
        elif data[i + _ONE] == 117 and i + _SIX <= end:
            if _HEX[data[i + _TWO]] == 13 and _HEX[data[i + _THREE]] > 7:
                return i, BAD  # half of a pair
            if max(_HEX[data[i + _TWO]], _HEX[data[i + _THREE]], _HEX[data[i + _FOUR]], _HEX[data[i + _FIVE]]) > 15:
                return i, BAD
            i += _SIX
        else:
            return i, BAD


@_inlined
def past_number(data: Bytes, i: Place, end: Place) -> tuple[Place, int, float]:
    """The place behind a number, INTEGER, REAL or BAD, and its value: NaN where that is in doubt."""
    negative = data[i] == 45
    if negative:
        i += _ONE
    kind = INTEGER
    digits = np.uint64(0)
    scale = 0
    begin = i
    while i < end and 48 <= data[i] <= 57:
        digits = digits * np.uint64(10) + np.uint64(data[i] - np.uint8(48))
        i += _ONE
    seen = np.int64(i - begin)
    if seen == 0 or (seen > 1 and data[begin] == 48):
        return i, BAD, 0.0
    if i < end and data[i] == 46:
        kind = REAL
        i += _ONE
        begin = i
        while i < end and 48 <= data[i] <= 57:
            digits = digits * np.uint64(10) + np.uint64(data[i] - np.uint8(48))
            i += _ONE
        scale = np.int64(i - begin)
        if scale == 0:
            return i, BAD, 0.0
        seen += scale
    if i < end and (data[i] == 101 or data[i] == 69):
        kind = REAL
        i += _ONE
        down = i < end and data[i] == 45
        if i < end and (data[i] == 43 or data[i] == 45):
            i += _ONE
        begin = i
        power = 0
        while i < end and 48 <= data[i] <= 57 and i - begin < _FOUR:
            power = power * 10 + np.int64(data[i]) - 48
            i += _ONE
        if i == begin or i - begin > _TWO:
            return i, BAD, 0.0
        scale += power if down else -power
    value = np.nan
    if seen <= MAX_DIGITS:
        if digits == np.uint64(0):
            value = 0.0
        elif digits <= _EXACT and -22 <= scale <= 22:
            value = float(digits) / POWERS[scale] if scale >= 0 else float(digits) * POWERS[-scale]
        elif scale == 0 and seen < MAX_DIGITS:
            value = float(np.int64(digits))
        elif 0 < scale <= 22:
            found = exact_quotient(digits, POWERS[scale])
            value = found if found > 0 else np.nan
    return i, kind, -value if negative else value


@_inlined
def same_bytes(data: Bytes, begin: Place, keys: Bytes, at: int, size: int) -> bool:
    for k in range(size):  # noqa: SIM110 -- as a loop for the compiler
        if keys[at + k] != data[begin + np.uintp(k)]:
            return False
    return True


@_inlined
def kid_of_key(
    data: Bytes,
    begin: Place,
    size: int,
    keys: Bytes,
    key_from: Ints,
    key_to: Ints,
    low: int,
    high: int,
    guess: int,
) -> int:
    """Which kid low..high has the key, tried from the one behind the last that was found; −1 for none."""
    for step in range(high - low):
        kid = low + guess + step
        if kid >= high:
            kid -= high - low
        at = key_from[kid]
        if key_to[kid] - at == size and same_bytes(data, begin, keys, at, size):
            return kid
    return -1


@_compiled
def scan_rows(
    data: Bytes,
    words: Any,
    starts: Ints,
    ends: Ints,
    keys: Bytes,
    key_from: Ints,
    key_to: Ints,
    kid_from: Ints,
    kid_to: Ints,
    kid_node: Ints,
    kid_index: Ints,
    kind: Bytes,
    first: Ints,
    last: Ints,
    number: Floats,
    odd: NDArray[np.bool_],
) -> None:
    """Read every row data[starts[r]:ends[r]], one JSON object, into the columns of the wanted nodes.

    Node 0 is the row itself. The kids of a node k stand at kid_from[k]..kid_to[k] of the kid arrays, by key or by index.
    """
    nodes = np.empty(MAX_DEPTH, dtype=np.int32)
    lists = np.empty(MAX_DEPTH, dtype=np.bool_)
    counts = np.empty(MAX_DEPTH, dtype=np.int64)
    guesses = np.empty(MAX_DEPTH, dtype=np.int64)
    for row in range(starts.shape[0]):
        odd[row] = True
        i, end = past_blank(data, np.uintp(starts[row]), np.uintp(ends[row])), np.uintp(ends[row])
        if i >= end or data[i] != 123:
            continue
        depth, node = -1, 0
        while True:
            # A value begins at i.
            begin = i
            c = data[i]
            value = 0.0
            empty = False
            if c == 34:
                i, sort = past_string(data, words, i + _ONE, end)
                begin += _ONE
            elif c == 45 or 48 <= c <= 57:
                i, sort, value = past_number(data, i, end)
                if node >= 0 and math.isnan(value):
                    break
            elif c == 123 or c == 91:
                sort = OBJECT if c == 123 else ARRAY
                depth += 1
                if depth == MAX_DEPTH:
                    break
                nodes[depth] = node
                lists[depth] = c == 91
                counts[depth] = 0
                guesses[depth] = 0
                i = past_blank(data, i + _ONE, end)
                empty = i < end and data[i] == (125 if c == 123 else 93)
            elif (
                c == 116
                and i + _FOUR <= end
                and data[i + _ONE] == 114
                and data[i + _TWO] == 117
                and data[i + _THREE] == 101
            ):
                i, sort = i + _FOUR, TRUE
            elif (
                c == 110
                and i + _FOUR <= end
                and data[i + _ONE] == 117
                and data[i + _TWO] == 108
                and data[i + _THREE] == 108
            ):
                i, sort = i + _FOUR, NULL
            elif (
                c == 102
                and i + _FIVE <= end
                and data[i + _ONE] == 97
                and data[i + _TWO] == 108
                and data[i + _THREE] == 115
                and data[i + _FOUR] == 101
            ):
                i, sort = i + _FIVE, FALSE
            else:
                break
            if sort == BAD:
                break
            if node >= 0:
                if kind[node, row] != ABSENT:
                    break  # the key stands twice
                kind[node, row] = sort
                number[node, row] = value
                first[node, row] = begin
                last[node, row] = i - _ONE if sort == TEXT or sort == ESCAPED else i
            if empty or (sort != OBJECT and sort != ARRAY):
                # The value is over, and with it perhaps the containers around it.
                if not empty:
                    counts[depth] += 1
                    i = past_blank(data, i, end)
                while depth >= 0 and i < end and data[i] == (93 if lists[depth] else 125):
                    i += _ONE
                    own = nodes[depth]
                    if own >= 0:
                        last[own, row] = i
                        number[own, row] = counts[depth]
                    depth -= 1
                    if depth >= 0:
                        counts[depth] += 1
                    i = past_blank(data, i, end)
                if depth < 0:
                    odd[row] = i != end
                    break
                if i >= end or data[i] != 44:
                    break
                i = past_blank(data, i + _ONE, end)
            # The next element begins at i: which node is it?
            if i >= end:
                break
            parent = nodes[depth]
            node = -1
            if lists[depth]:
                if parent >= 0:
                    for kid in range(kid_from[parent], kid_to[parent]):
                        if kid_index[kid] == counts[depth]:
                            node = kid_node[kid]
                continue
            if data[i] != 34:
                break
            begin = i + _ONE
            i = past_plain(words, begin, end)
            if i >= end or data[i] != 34:
                break
            if parent >= 0:
                kid = kid_of_key(
                    data,
                    begin,
                    np.int64(i - begin),
                    keys,
                    key_from,
                    key_to,
                    np.int64(kid_from[parent]),
                    np.int64(kid_to[parent]),
                    guesses[depth],
                )
                if kid >= 0:
                    node = kid_node[kid]
                    guesses[depth] = kid + 1 - kid_from[parent]
            i = past_blank(data, i + _ONE, end)
            if i >= end or data[i] != 58:
                break
            i = past_blank(data, i + _ONE, end)
            if i >= end:
                break


@_compiled
def count_newlines(words: Any, size: int) -> int:
    """How many of the first `size` bytes are newlines."""
    count = 0
    for at in range((size + 7) >> 3):
        x = words[at] ^ _NEWLINES
        # Exact for every byte: the high bit of each says that the byte has no other bit.
        marks = ~(((x & ~_HIGHS) + ~_HIGHS) | x) & _HIGHS
        if marks:
            for k in range(8):
                if (marks >> np.uint64(8 * k + 7)) & _UNIT and 8 * at + k < size:
                    count += 1
    return count


@_compiled
def find_newlines(words: Any, places: Ints) -> None:
    """The places of the first newlines, as many as there is room for."""
    found, at = 0, 0
    while found < places.shape[0]:
        x = words[at] ^ _NEWLINES
        marks = ~(((x & ~_HIGHS) + ~_HIGHS) | x) & _HIGHS
        while marks and found < places.shape[0]:
            places[found] = 8 * at + (trailing_zeros(marks) >> 3)
            found += 1
            marks &= marks - _UNIT
        at += 1


@_compiled
def split_lists(data: Bytes, words: Any, first: Ints, last: Ints, starts: Ints, ends: Ints, owner: Ints) -> None:
    """Where the elements of the lists data[first:last] stand, which are known to be well-formed; an empty span has none."""
    at = 0
    for row in range(first.shape[0]):
        if first[row] == last[row]:
            continue
        end = np.uintp(last[row]) - _ONE
        i = past_blank(data, np.uintp(first[row]) + _ONE, end)
        begin = i
        depth = 0
        while i < end:
            c = data[i]
            i += _ONE
            if c == 34:
                i, _ = past_string(data, words, i, end)
            elif c == 123 or c == 91:
                depth += 1
            elif c == 125 or c == 93:
                depth -= 1
            elif c == 44 and depth == 0:
                starts[at], ends[at], owner[at] = begin, i - _ONE, row
                at += 1
                i = past_blank(data, i, end)
                begin = i
        if begin < end:
            starts[at], ends[at], owner[at] = begin, end, row
            at += 1


@_compiled
def copy_texts(data: Bytes, first: Ints, last: Ints, escaped: NDArray[np.bool_], out: Bytes, offsets: Ints) -> None:
    """Copy the strings data[first:last] behind one another into `out`, escapes resolved; an empty span copies nothing."""
    at = np.uintp(0)
    for row in range(first.shape[0]):
        i, end = np.uintp(first[row]), np.uintp(last[row])
        if not escaped[row]:
            size = end - i  # a counted loop, which is copied many bytes at a time
            for k in range(size):
                out[at + k] = data[i + k]
            at += size
            i = end
        while i < end:
            b = data[i]
            i += _ONE
            if b == 92:
                b = _ESCAPES[data[i]]
                i += _ONE
                if b == 0:  # \uXXXX
                    unit = 0
                    for _ in range(4):
                        unit = unit * 16 + np.int64(_HEX[data[i]])
                        i += _ONE
                    if unit >= 0x800:
                        out[at] = 0xE0 | (unit >> 12)
                        out[at + _ONE] = 0x80 | ((unit >> 6) & 63)
                        at += _TWO
                        b = np.uint8(0x80 | (unit & 63))
                    elif unit >= 0x80:
                        out[at] = 0xC0 | (unit >> 6)
                        at += _ONE
                        b = np.uint8(0x80 | (unit & 63))
                    else:
                        b = np.uint8(unit)
            out[at] = b
            at += _ONE
        offsets[row + 1] = at


@_compiled
def expect_rows(kind: Bytes, allowed: NDArray[np.bool_], odd: NDArray[np.bool_]) -> None:
    """Rows with a kind that is not allowed at its node are odd."""
    for node in range(kind.shape[0]):
        own = allowed[node]
        for row in range(kind.shape[1]):
            odd[row] |= not own[kind[node, row]]


@_compiled
def word_rows(data: Bytes, first: Ints, last: Ints, words: Bytes, edges: Ints, out: NDArray[np.int8]) -> None:
    """Which word edges[k]..edges[k + 1] of `words` stands at data[first:last]; −1 for none."""
    for row in range(first.shape[0]):
        out[row] = -1
        size = last[row] - first[row]
        for word in range(edges.shape[0] - 1):
            at = edges[word]
            if edges[word + 1] - at == size and same_bytes(data, np.uintp(first[row]), words, at, size):
                out[row] = word
                break


@_compiled
def crc32_rows(data: Bytes, offsets: Ints, table: NDArray[np.uint32], out: NDArray[np.uint32]) -> None:
    """CRC-32 of every string of an Arrow buffer, the same as zlib's."""
    for row in range(out.shape[0]):
        crc = np.uint32(0xFFFFFFFF)
        for k in range(offsets[row], offsets[row + 1]):
            crc = table[(crc ^ np.uint32(data[k])) & np.uint32(255)] ^ (crc >> np.uint32(8))
        out[row] = crc ^ np.uint32(0xFFFFFFFF)


@_inlined
def last_word(words: Any, i: Place, size: Place) -> Any:
    """The bytes from place i on, fewer than eight, with zeros behind them."""
    at, shift = i >> _THREE, (i & _SEVEN) << _THREE
    found = words[at] >> shift
    if shift and at + _ONE < np.uintp(words.shape[0]):
        found |= words[at + _ONE] << (_BITS - shift)
    return found & ~(_ALL << (size << _THREE))


@_inlined
def head_of(kind: Bytes, first: Ints, last: Ints, node: int, row: int) -> Any:
    return np.uint64(kind[node, row]) | (np.uint64(last[node, row] - first[node, row]) << _EIGHT)


@_inlined
def is_entry(
    words: Any, kind: Bytes, first: Ints, last: Ints, nodes: Ints, row: int, store: NDArray[np.uint64], at: Place
) -> bool:
    """Whether a row holds at the nodes what was stored from `at` on."""
    for k in range(nodes.shape[0]):
        node = nodes[k]
        if store[at] != head_of(kind, first, last, node, row):
            return False
        at += _ONE
        i = np.uintp(first[node, row])
        size = np.uintp(last[node, row]) - i
        whole = size >> _THREE
        begin, shift = i >> _THREE, (i & _SEVEN) << _THREE
        differs = np.uint64(0)
        if shift:
            for j in range(whole):
                differs |= store[at + j] ^ ((words[begin + j] >> shift) | (words[begin + j + _ONE] << (_BITS - shift)))
        else:
            for j in range(whole):
                differs |= store[at + j] ^ words[begin + j]
        at += whole
        if size & _SEVEN:
            differs |= store[at] ^ last_word(words, i + (whole << _THREE), size & _SEVEN)
            at += _ONE
        if differs:
            return False
    return True


@_inlined
def put_entry(
    words: Any, kind: Bytes, first: Ints, last: Ints, nodes: Ints, row: int, store: NDArray[np.uint64], at: Place
) -> Place:
    """Store what a row holds at the nodes from `at` on; the place behind it."""
    for k in range(nodes.shape[0]):
        node = nodes[k]
        store[at] = head_of(kind, first, last, node, row)
        at += _ONE
        i, end = np.uintp(first[node, row]), np.uintp(last[node, row])
        while i < end:
            if end - i >= _EIGHT:
                shift = (i & _SEVEN) << _THREE
                store[at] = words[i >> _THREE] >> shift
                if shift:
                    store[at] |= words[(i >> _THREE) + _ONE] << (_BITS - shift)
            else:
                store[at] = last_word(words, i, end - i)
            at += _ONE
            i += _EIGHT
    return at


@_inlined
def mark_of(words: Any, kind: Bytes, first: Ints, last: Ints, nodes: Ints, row: int) -> Any:
    """A hash of what a row holds at the nodes."""
    mark = np.uint64(0)
    for k in range(nodes.shape[0]):
        node = nodes[k]
        mark = (mark ^ head_of(kind, first, last, node, row)) * _MIXER
        mark ^= mark >> _HALF
        i, end = np.uintp(first[node, row]), np.uintp(last[node, row])
        while i < end:
            size = min(end - i, _SEVEN)
            mark = (mark ^ last_word(words, i, size)) * _MIXER
            mark ^= mark >> _HALF
            i += size
    return mark


@_compiled
def number_rows(
    words: Any,
    kind: Bytes,
    first: Ints,
    last: Ints,
    odd: NDArray[np.bool_],
    nodes: Ints,
    slots: Ints,
    hashes: NDArray[np.uint64],
    places: NDArray[np.int64],
    store: NDArray[np.uint64],
    count: int,
    codes: Ints,
    fresh: Ints,
) -> int:
    """Number the rows by what stands at the nodes, rows with the same text alike; −1 for an odd row.

    `store` holds what each of `count` known numbers stands for, number c from places[c] on: for every node its kind and
    length, then its bytes. `slots` is a hash table of numbers, open addressing, −1 for empty. The row of each new number
    goes into `fresh`; returned is the new count.
    """
    known = count
    guess = np.int64(0)
    mask = np.uint64(slots.shape[0] - 1)
    for row in range(odd.shape[0]):
        if odd[row]:
            codes[row] = -1
            continue
        if guess < count and is_entry(words, kind, first, last, nodes, row, store, np.uintp(places[guess])):
            codes[row] = guess
            continue
        mark = mark_of(words, kind, first, last, nodes, row)
        slot = mark & mask
        while True:
            found = np.int64(slots[slot])
            if found < 0:
                break
            if hashes[found] == mark and is_entry(words, kind, first, last, nodes, row, store, np.uintp(places[found])):
                break
            slot = (slot + _ONE) & mask
        if found < 0:
            found = np.int64(count)
            slots[slot] = found
            hashes[found] = mark
            places[found + 1] = put_entry(words, kind, first, last, nodes, row, store, np.uintp(places[found]))
            count += 1
            fresh[found - known] = row
        codes[row] = found
        guess = found
    return count


# How an object stands in a text: not plainly, as all of it, alone but for white space, in prose, or beside fence marks.
NOT_PLAIN, ALL_OF_IT, ALONE, IN_PROSE, NEAR_FENCES = range(5)


@_compiled
def find_objects(data: Bytes, offsets: Ints, starts: Ints, ends: Ints, how: Bytes) -> None:
    """Where the one object of every text of an Arrow buffer must stand, if there is one; only texts in ASCII are plain."""
    for row in range(how.shape[0]):
        begin, end = offsets[row], offsets[row + 1]
        starts[row], ends[row], how[row] = begin, end, NOT_PLAIN
        braces, marks, bits = 0, 0, np.uint8(0)
        for k in range(begin, end):
            b = data[np.uintp(k)]
            braces += b == 123
            marks += b == 96 or b == 126
            bits |= b
        if braces == 0 or bits > 127:
            continue
        if data[np.uintp(begin)] == 123 and data[np.uintp(end - 1)] == 125:
            how[row] = ALL_OF_IT
            continue
        if braces > 1:
            continue
        blank = True
        i = begin
        while data[np.uintp(i)] != 123:
            b = data[np.uintp(i)]
            blank &= b == 32 or 9 <= b <= 13 or 28 <= b <= 31
            i += 1
        j = end - 1
        while j > i and data[np.uintp(j)] != 125:
            b = data[np.uintp(j)]
            blank &= b == 32 or 9 <= b <= 13 or 28 <= b <= 31
            j -= 1
        if j > i:
            starts[row], ends[row] = i, j + 1
            how[row] = NEAR_FENCES if marks >= 3 else ALONE if blank else IN_PROSE
