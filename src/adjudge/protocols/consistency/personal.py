"""Personal data in a text: e-mail addresses, telephone numbers and card numbers, found and masked."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Every match of the patterns below holds an @ sign or seven digits with at most two signs between them.
MAY_HOLD = "@|[0-9](?:[^0-9A-Za-z]{0,2}[0-9]){6}"

_EMAIL = re.compile(r"(?<![\w.+%-])[\w.+%-]+@(?:[\w-]+\.)+[^\W\d_]{2,}(?![\w@])")
_PHONE = re.compile(
    r"""(?<![\w.+/-])(?:
        \+\d{1,3}(?:[ ./-]?\(?\d{1,5}\)?){2,6}       # +44 20 7946 0958
      | (?:1[ .-])?\(\d{3}\)[ ]?\d{3}[ .-]\d{4}      # (212) 555-0142
      | (?:1[ .-])?\d{3}([.-]|[ ])\d{3}\1\d{4}       # 212-555-0142
      | 0\d{2,4}[ /-]\d{3,4}[ -]?\d{3,5}             # 0171 2345678
      | 0\d(?:[ .]\d{2}){4}                          # 01 23 45 67 89
    )(?![\w-]|[./]\d)""",
    re.VERBOSE,
)
_CARD = re.compile(r"(?<![\w.+-])[2-6]\d{3}(?:[ -]?\d){9,15}(?![\w-]|\.\d)")


def spans(text: str) -> Iterator[tuple[int, int, str]]:
    """(start, end, kind) of what looks like personal data, kinds being e-mail, card and phone; none overlap."""
    taken: list[tuple[int, int]] = []
    for pattern, kind in ((_EMAIL, "e-mail"), (_CARD, "card"), (_PHONE, "phone")):
        for match in pattern.finditer(text):
            start, end = match.span()
            digits = [int(sign) for sign in match[0] if sign.isdigit()]
            if kind == "card" and not (13 <= len(digits) <= 19 and _luhn(digits)):
                continue
            if kind == "phone" and not 7 <= len(digits) <= 15:
                continue
            if all(end <= a or start >= b for a, b in taken):
                taken.append((start, end))
                yield start, end, kind


def mask(text: str) -> tuple[str, int]:
    """The text with every span replaced by its kind in brackets, and how many there were."""
    found = sorted(spans(text), reverse=True)
    for start, end, kind in found:
        text = f"{text[:start]}[{kind}]{text[end:]}"
    return text, len(found)


def _luhn(digits: list[int]) -> bool:
    """The check digit of card numbers (ISO/IEC 7812-1, annex B)."""
    doubled = [digit if place % 2 == 0 else sum(divmod(2 * digit, 10)) for place, digit in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0
