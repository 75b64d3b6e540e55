"""What the agents' reasons hold that they should not: personal data, which is masked, and quotes of the other agent."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.loops import available
from adjudge.protocols.consistency import batch as b
from adjudge.protocols.consistency.personal import DIGITS, MAY_HOLD, mask
from adjudge.protocols.consistency.policy import LABELS

QUOTED = 20
"""A reason of this many characters or more that stands in the other agent's reason was quoted."""

_LOOK = rf"{MAY_HOLD}|\b(?:{'|'.join(LABELS)})\b"


class Reasons(NamedTuple):
    """The masked reasons, and with a row an agent their lengths, the places that were masked and whether they quote."""

    texts: list[pa.StringArray]
    lengths: NDArray[np.int32]
    personal: b.Small
    quotes: b.Small


def look_into(texts: list[pa.StringArray], labels: tuple[b.Small, b.Small], *, fast: bool) -> Reasons:
    """Both agents' reasons, item by item."""
    fast = fast and available()
    n = len(texts[0])
    lengths = np.stack([pc.utf8_length(side).fill_null(b.ABSENT).to_numpy() for side in texts])
    personal = np.zeros((2, n), dtype=np.int8)
    quotes = np.stack([_holds_other(texts[side], texts[1 - side], lengths, side, fast=fast) for side in (0, 1)])
    masked = list(texts)
    for side in (0, 1):
        changed: dict[int, str] = {}
        for index in _worth_a_look(texts[side], fast=fast).tolist():
            text = texts[side][index].as_py()
            hidden, count = mask(text)
            if count:
                changed[index] = hidden
                personal[side, index] = min(count, 127)
            if _names_other(text, int(labels[side][index]), int(labels[1 - side][index]), b.AGENTS[1 - side]):
                quotes[side, index] = 1
        if changed:
            where = np.zeros(n, dtype=np.bool_)
            where[list(changed)] = True
            masked[side] = pc.replace_with_mask(
                texts[side], pa.array(where), pa.array(list(changed.values()), pa.string())
            )
    return Reasons(masked, lengths, personal, quotes.astype(np.int8))


def _holds_other(
    own: pa.StringArray, other: pa.StringArray, lengths: NDArray[np.int32], side: int, *, fast: bool
) -> NDArray[np.bool_]:
    """Whether a reason holds the whole of the other; only one that is as long can."""
    may: NDArray[np.bool_] = (lengths[side] >= lengths[1 - side]) & (lengths[1 - side] >= QUOTED)
    if fast:
        from adjudge.protocols.consistency import _kernels

        _kernels.quoted_rows(*_buffers(own), *_buffers(other), may)
        return may
    for index in np.flatnonzero(may).tolist():
        may[index] = other[index].as_py() in own[index].as_py()
    return may


def _worth_a_look(texts: pa.StringArray, *, fast: bool) -> NDArray[np.intp]:
    """The rows whose text may hold personal data or names a label; with compiled loops most are told apart cheaply."""
    if not fast:
        return np.flatnonzero(_matches(texts))
    from adjudge.protocols.consistency import _kernels

    signs = np.empty(len(texts), dtype=np.bool_)
    _kernels.sign_rows(*_buffers(texts), DIGITS, *_words_to_find(), signs)
    rows = np.flatnonzero(signs)
    return rows[_matches(texts.take(pa.array(rows)))] if rows.size else rows


@functools.cache
def _words_to_find() -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.uint8]]:
    """The labels, where each begins, and what each byte may be the beginning of (see `_kernels.sign_rows`)."""
    words = [label.encode() for label in LABELS]
    edges = np.cumsum([0, *(len(word) for word in words)]).astype(np.int32)
    kinds = np.zeros(256, dtype=np.uint8)
    kinds[[word[0] for word in words]] = 1
    kinds[ord("0") : ord("9") + 1] = 2
    kinds[ord("@")] = 3
    return np.frombuffer(b"".join(words), dtype=np.uint8), edges, kinds


def _matches(texts: pa.StringArray) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pc.match_substring_regex(texts, _LOOK).fill_null(False).to_numpy(zero_copy_only=False)
    return found


def _buffers(texts: pa.StringArray) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """The bytes of all texts, and where each begins."""
    _, places, data = texts.buffers()
    edges: Any = np.frombuffer(places, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data or b"\0", dtype=np.uint8), edges


def _names_other(text: str, own: int, other: int, role: str) -> bool:
    """Whether a reason names the other agent's label: one that is not its own, or any beside the other's role."""
    if b.ABSENT in (other, own):
        return False
    words = set(_words(text))
    return LABELS[other] in words and (own != other or role in {word.casefold() for word in words})


def _words(text: str) -> Iterator[str]:
    word = ""
    for sign in text:
        if sign.isalnum() or sign == "_":
            word += sign
        elif word:
            yield word
            word = ""
    if word:
        yield word
