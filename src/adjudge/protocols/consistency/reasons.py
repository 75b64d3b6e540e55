"""What the agents' reasons hold that they should not: personal data, which is masked, and quotes of the other agent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.protocols.consistency import encoding
from adjudge.protocols.consistency.policy import LABELS

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
    masked: list[tuple[int, int]] = []
    for pattern, kind in ((_EMAIL, "e-mail"), (_CARD, "card"), (_PHONE, "phone")):
        for match in pattern.finditer(text):
            start, end = match.span()
            digits = [int(sign) for sign in match[0] if sign.isdigit()]
            if kind == "card" and not (13 <= len(digits) <= 19 and _luhn(digits)):
                continue
            if kind == "phone" and not 7 <= len(digits) <= 15:
                continue
            if all(end <= a or start >= b for a, b in masked):
                masked.append((start, end))
                yield start, end, kind


def mask(text: str) -> tuple[str, int]:
    """The text with every span replaced by its kind in brackets, and how many there were."""
    places = sorted(spans(text), reverse=True)
    for start, end, kind in places:
        text = f"{text[:start]}[{kind}]{text[end:]}"
    return text, len(places)


def _luhn(digits: list[int]) -> bool:
    """The check digit of card numbers (ISO/IEC 7812-1, annex B)."""
    doubled = [digit if place % 2 == 0 else sum(divmod(2 * digit, 10)) for place, digit in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0


QUOTED = 20
"""A reason of this many characters or more that stands in the other agent's reason was quoted."""

_LOOK = f"{MAY_HOLD}|{'|'.join(LABELS)}"  # without \b, which makes RE2 slow on text that is not ASCII
_WORD = re.compile(r"\w+")


class Reasons(NamedTuple):
    """The masked reasons, and with a row an agent their lengths, the places that were masked and whether they quote."""

    texts: list[pa.StringArray]
    lengths: NDArray[np.int32]
    personal: encoding.Small
    quotes: encoding.Small


def look_into(texts: list[pa.StringArray], labels: tuple[encoding.Small, encoding.Small]) -> Reasons:
    """Both agents' reasons, item by item."""
    n = len(texts[0])
    lengths = np.stack([pc.utf8_length(side).fill_null(encoding.ABSENT).to_numpy() for side in texts])
    personal, quotes = np.zeros((2, 2, n), dtype=np.int8)
    masked = list(texts)
    for side in (0, 1):
        quotes[side] = _holds_other(texts[side], texts[1 - side], lengths[side], lengths[1 - side])
        # One quick pattern over all texts; the few that match are looked into word by word.
        rows = np.flatnonzero(pc.match_substring_regex(texts[side], _LOOK).fill_null(False))
        hidden, counts = [], []
        for row, text in zip(rows.tolist(), texts[side].take(pa.array(rows)).to_pylist(), strict=True):
            without, count = mask(text)
            hidden.append(without)
            counts.append(min(count, 127))
            if _names_other(text, int(labels[side][row]), int(labels[1 - side][row]), encoding.AGENTS[1 - side]):
                quotes[side, row] = 1
        if any(counts):
            personal[side, rows] = counts
            where = np.zeros(n, dtype=np.bool_)
            where[rows] = True
            masked[side] = pc.replace_with_mask(texts[side], pa.array(where), pa.array(hidden, pa.string()))
    return Reasons(masked, lengths, personal, quotes)


def _holds_other(
    texts: pa.StringArray, others: pa.StringArray, lengths: NDArray[np.int32], other_lengths: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Whether a reason holds the whole of the other; only one that is as long can."""
    holds: NDArray[np.bool_] = (lengths >= other_lengths) & (other_lengths >= QUOTED)
    rows = np.flatnonzero(holds)
    edges, letters = _buffers(texts)
    sought = others.take(pa.array(rows)).cast(pa.binary()).to_pylist()
    places = zip(sought, edges[rows].tolist(), edges[rows + 1].tolist(), strict=True)
    holds[rows] = [letters.find(other, start, end) >= 0 for other, start, end in places]
    return holds


def _buffers(texts: pa.StringArray) -> tuple[NDArray[np.int32], bytes]:
    """Where each text begins and ends in the bytes of all of them."""
    _, edges, letters = texts.buffers()
    return np.frombuffer(edges, dtype=np.int32)[texts.offset :], b"" if letters is None else letters.to_pybytes()


def _names_other(text: str, label: int, other: int, role: str) -> bool:
    """Whether a reason names the other agent's label: one that is not its own, or any beside the other's role."""
    if encoding.ABSENT in (label, other):
        return False
    words = set(_WORD.findall(text))
    return LABELS[other] in words and (label != other or role in {word.casefold() for word in words})
