"""The one renderer of numbers: how many digits, units, and what stands where there is no number.

A number whose unit is `%` is a share between 0 and 1; every other is shown as it is, with its unit behind it.

The width of the interval says how many digits mean something, by the rounding rule of the Particle Data Group (Review of
Particle Physics, Introduction, section 5.3): where the half width's first three digits are 100 to 354 it keeps two, from
355 to 949 one, from 950 it counts as 1000 and keeps two; value and ends share its last place (`93.2 % [90.1, 95.4]`).
Without an interval a number keeps four significant digits.

Text from outside is shown whole, but never able to move a cursor, hide itself or turn the reading direction; plain tables align
their columns and are split into blocks that fit the page.
"""

from __future__ import annotations

import json
import math
import shlex
import unicodedata
from collections.abc import Sequence

from adjudge.runs.names import short_names
from adjudge.stats.estimate import SHARE, Estimate

NOTHING = "n/a"


def estimate(value: Estimate, *, unit: str = "") -> str:
    """A value with its interval, as far as there is one: `93.2 % [90.1, 95.4]`."""
    ends = interval(value, unit=unit) if value.value is not None else ""
    return f"{point(value, unit=unit)} {ends}".rstrip()


def interval(value: Estimate, *, unit: str = "") -> str:
    """The interval alone, `[90.1, 95.4]`; an open end is an ellipsis, and without any end there is no text."""
    if value.low is None and value.high is None:
        return ""
    places = _places(value, unit)
    low, high = ("…" if end is None else _fixed(end, places, unit) for end in (value.low, value.high))
    return f"[{low}, {high}]"


def point(value: Estimate, *, unit: str = "") -> str:
    """The value alone, with as many digits as its interval carries."""
    if value.value is None:
        return NOTHING
    return _fixed(value.value, _places(value, unit), unit) + _sign(unit)


def number(value: float | None, *, unit: str = "") -> str:
    """A number without an interval, to four significant digits, a percentage to three; whole numbers as they are."""
    if value is None:
        return NOTHING
    return (_significant(value * 100, 3) if unit == SHARE else _significant(value)) + _sign(unit)


def count(value: int | None) -> str:
    """A count with separators: `1,170`."""
    return NOTHING if value is None else f"{value:,}"


def share(part: int, whole: int) -> str:
    """A part of a whole: `23 of 234 (9.83 %)`; a part of nothing has no percentage."""
    counted = f"{count(part)} of {count(whole)}"
    return f"{counted} ({number(part / whole, unit=SHARE)})" if whole else counted


def p_value(p: float | None, log10_p: float | None = None) -> str:
    """A p-value: three decimals, below 0.001 two digits and a power of ten, also where a double has underflown."""
    if p is None:
        return NOTHING
    if p >= 0.001:
        return f"{p:.3f}"
    if log10_p is None:
        if p <= 0.0:
            return "<1e-300"
        log10_p = math.log10(p)
    exponent = math.floor(log10_p)
    mantissa = round(10 ** (log10_p - exponent), 1)
    if mantissa >= 10.0:
        mantissa, exponent = 1.0, exponent + 1
    return f"{mantissa:.1f}e{exponent:+03d}"


def seconds(value: float) -> str:
    """A duration: `0.35 s`, `12.1 s`, `3 min 20 s`."""
    if value < 60:
        return f"{value:.2f} s" if value < 1 else f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s"


def size(value: int) -> str:
    """A size in bytes, decimal: `154.2 kB`."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= factor:
            return f"{value / factor:.1f} {unit}"
    return f"{value} B"


def _places(value: Estimate, unit: str) -> int | None:
    """Decimal places from the half width of the interval; None where there is no width to go by."""
    low, high = value.low, value.high
    if value.value is None or (low is None and high is None):
        return None
    known = [abs(end - value.value) for end in (low, high) if end is not None]
    scale = 100 if unit == SHARE else 1
    half = sum(known) / len(known) * scale
    largest = max(abs(number) for number in (low, high, value.value) if number is not None) * scale
    if half <= largest * 1e-9:
        return None
    exponent = math.floor(math.log10(half))
    leading = half / 10**exponent
    if leading >= 9.495:
        exponent += 1
    return max(0, -exponent if 3.545 <= leading < 9.495 else 1 - exponent)


def _fixed(value: float, places: int | None, unit: str) -> str:
    scaled = value * 100 if unit == SHARE else value
    if places is None:
        return _significant(scaled, 3 if unit == SHARE else 4)
    if places > 6:
        return f"{scaled:.3g}"
    text = f"{scaled:,.{places}f}" if abs(scaled) >= 10_000 else f"{scaled:.{places}f}"
    return text.removeprefix("-") if not text.strip("-0.,") else text


def _significant(value: float, digits: int = 4) -> str:
    if math.isclose(value, round(value), rel_tol=1e-12) and abs(value) < 1e15:
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.0f}"
    size_of = abs(value)
    if size_of >= 10_000 and size_of < 1e15:
        return f"{value:,.0f}"
    if size_of < 1e-4 or size_of >= 1e15:
        return f"{value:.3g}"
    text = f"{value:.{max(0, digits - 1 - math.floor(math.log10(size_of)))}f}"
    if "." in text and math.isclose(float(text), value, rel_tol=1e-12):
        return text.rstrip("0").rstrip(".")  # exact as shown: zeros at the end would promise nothing more
    return text


def _sign(unit: str) -> str:
    return f" {unit}" if unit else ""


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_KEPT = frozenset("\n\t")
_HIDING = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def terminal(text: str) -> str:
    r"""The text with control and formatting characters written out (`\x1b`), so that a terminal prints and obeys nothing."""
    if text.isprintable():
        return text
    return "".join(
        character
        if character in _KEPT or not _hides(character)
        else f"\\x{ord(character):02x}"
        if ord(character) < 0x100
        else f"\\u{ord(character):04x}"
        for character in text.replace("\r\n", "\n")
    )


def json_line(text: str) -> str:
    """JSON that means the same, with every such character as an escape."""
    if text.isprintable():
        return text
    return "".join(json.dumps(character)[1:-1] if _hides(character) else character for character in text)


def spreadsheet(value: object) -> str:
    """A cell of a CSV file that no spreadsheet takes for a formula; numbers stand as they are, None is empty."""
    if value is None:
        return ""
    text = repr(value) if isinstance(value, float) else str(value)
    return f"'{text}" if not isinstance(value, int | float) and text.startswith(_FORMULA) else text


def _hides(character: str) -> bool:
    """Whether it shows as nothing, or is no character at all (U+FFFE), which XML does not take."""
    number = ord(character)
    nothing = number & 0xFFFE == 0xFFFE or 0xFDD0 <= number <= 0xFDEF
    return nothing or unicodedata.category(character) in _HIDING


def line(text: str, limit: int | None = None) -> str:
    """The same on one line, cut with an ellipsis at `limit` characters."""
    flat = " ".join(terminal(text).split())
    return flat if limit is None or len(flat) <= limit else flat[: limit - 1] + "…"


def shell(word: str) -> str:
    """A word as a shell takes it, with nothing in it that a terminal would obey."""
    return shlex.quote(line(word))


def short_lines(texts: Sequence[str], limit: int) -> list[str]:
    """Texts on one line each, cut at `limit` characters; in the middle where different ones would look alike otherwise."""
    flat = [line(text) for text in texts]
    cut = [line(text, limit) for text in flat]
    if len(set(cut)) == len(set(flat)):
        return cut
    short = short_names(flat, limit)
    return [short[text] for text in flat]


WIDTH = 100
_GAP = "  "


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, width: int = WIDTH) -> str:
    """A table whose first `left` columns are words and the rest numbers, set to the right.

    Columns that do not fit the width go into further blocks below, each with the first column again.
    """
    widths = [max(len(line[index]) for line in (head, *rows)) for index in range(len(head))]
    blocks: list[list[int]] = []
    for index in range(1, len(head)):
        used = widths[0] + sum(len(_GAP) + widths[column] for column in (blocks[-1] if blocks else ()))
        if not blocks or used + len(_GAP) + widths[index] > width:
            blocks.append([])
        blocks[-1].append(index)
    lines = [
        [
            cell.ljust(room) if index < left else cell.rjust(room)
            for index, (cell, room) in enumerate(zip(row, widths, strict=False))
        ]
        for row in (head, ["─" * room for room in widths], *rows)
    ]
    return "\n\n".join(
        "\n".join(_GAP.join(cells[index] for index in (0, *block)).rstrip() for cells in lines)
        for block in blocks or [[]]
    )
