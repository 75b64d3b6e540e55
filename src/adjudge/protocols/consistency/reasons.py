"""What the agents' reasons hold that they should not: personal data, which is masked, and quotes of the other agent."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.protocols.consistency import batch as b
from adjudge.protocols.consistency.personal import MAY_HOLD, mask
from adjudge.protocols.consistency.policy import LABELS

QUOTED = 20
"""A reason of this many characters or more that stands in the other agent's reason was quoted."""

_LOOK = f"{MAY_HOLD}|{'|'.join(LABELS)}"  # without \b, which makes RE2 slow on text that is not ASCII
_WORD = re.compile(r"\w+")


class Reasons(NamedTuple):
    """The masked reasons, and with a row an agent their lengths, the places that were masked and whether they quote."""

    texts: list[pa.StringArray]
    lengths: NDArray[np.int32]
    personal: b.Small
    quotes: b.Small


def look_into(texts: list[pa.StringArray], labels: tuple[b.Small, b.Small]) -> Reasons:
    """Both agents' reasons, item by item."""
    n = len(texts[0])
    lengths = np.stack([pc.utf8_length(side).fill_null(b.ABSENT).to_numpy() for side in texts])
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
            if _names_other(text, int(labels[side][row]), int(labels[1 - side][row]), b.AGENTS[1 - side]):
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
    rows = pa.array(np.flatnonzero(holds))
    pairs = zip(texts.take(rows).to_pylist(), others.take(rows).to_pylist(), strict=True)
    holds[holds] = [other in text for text, other in pairs]
    return holds


def _names_other(text: str, label: int, other: int, role: str) -> bool:
    """Whether a reason names the other agent's label: one that is not its own, or any beside the other's role."""
    if b.ABSENT in (label, other):
        return False
    words = set(_WORD.findall(text))
    return LABELS[other] in words and (label != other or role in {word.casefold() for word in words})
