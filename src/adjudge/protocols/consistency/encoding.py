"""What a row says as small integers, and how rows are kept between reading and judging.

The codes of a row stand in one column of fixed width, its texts beside them. Every role has the same columns; a row of
an agent's own file fills that agent's part alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

REFUSAL = "not in context"
AGENTS = ("scholar", "auditor")

PAIRED, ONLY_SCHOLAR, ONLY_AUDITOR, BAD_ROW, UNKNOWN_ANSWER = range(5)
STATUSES = ("paired", "only_scholar", "only_auditor", "bad_row", "unknown_answer")

ABSENT, UNKNOWN = -1, -2
"""In a column of small integers: the row does not say; it says a word that nobody knows."""
MOST_FLAGS = 16

NO_CLAIM, OTHER_CLAIM, REFUSAL_CLAIM = range(3)
CLAIMS = ("none", "other", "refusal_token")

NOT_A_MODEL, STABLE, UNSTABLE, CONTRADICTED = range(4)
SEEDING = ("not_a_model", "stable", "unstable", "votes_contradict_label")

Small = NDArray[np.int8]

AGENT = np.dtype([("label", "i1"), ("seeding", "i1"), ("reduced", "i1")])
ANSWER = np.dtype(
    [
        ("answered", "i1"),
        ("flags_known", "<u2"),
        ("flags_raised", "<u2"),
        ("citations", "i1"),
        ("claim", "i1"),
        ("echoed", "i1"),
        ("out_of_scope", "<i4"),
    ]
)
CODES = np.dtype([("status", "i1"), ("scholar", AGENT), ("auditor", AGENT), ("answer", ANSWER)])
LISTED = 64
"""So many of an answer's citations are kept by their ids."""
_OF_AGENTS = tuple(f"{agent}_{text}" for agent in AGENTS for text in ("reason", "digest"))
TEXTS = (*_OF_AGENTS, "claim", "cited", "cited_outside", "note")
"""`note` says why a row cannot be used; all may be null."""

_PACKED = pa.binary(CODES.itemsize)

Codes = NDArray[np.void]


def claim_codes(claims: pa.StringArray) -> Small:
    """Whether there is a claim, and whether it is the one that refuses."""
    codes: Small = pc.if_else(pc.equal(claims, REFUSAL), REFUSAL_CLAIM, OTHER_CLAIM).fill_null(NO_CLAIM).to_numpy()
    return codes


def blank(n: int) -> Codes:
    """The codes of rows that say nothing."""
    codes: Codes = np.zeros(n, dtype=CODES)
    for agent in AGENTS:
        codes[agent]["label"] = ABSENT
    codes["answer"]["echoed"] = ABSENT
    return codes


def table(keys: pa.Array, codes: Codes, texts: Mapping[str, pa.Array]) -> pa.Table:
    """Rows as a table; where no row has a text, its column is of nulls, which take no room."""
    n = len(keys)
    packed = pa.Array.from_buffers(_PACKED, n, [None, pa.py_buffer(np.ascontiguousarray(codes))])
    return pa.table(
        {"key": keys, "codes": packed}
        | {name: texts[name] if name in texts and texts[name].null_count < n else pa.nulls(n) for name in TEXTS}
    )


def together(one: pa.Table, two: pa.Table) -> pa.Table:
    """The rows of both, one after another."""
    return pa.concat_tables([one, two], promote_options="default").combine_chunks()


def codes_of(rows: pa.Table) -> Codes:
    """The codes of a table's rows."""
    packed = column(rows, "codes")
    codes: Codes = np.frombuffer(packed.buffers()[1] or b"", dtype=CODES)
    return codes[packed.offset : packed.offset + len(packed)]


def column(rows: pa.Table, name: str) -> pa.Array:
    """A column in one piece; a text that nobody gave is a null text."""
    stored = rows.column(name).combine_chunks()
    return pa.nulls(len(stored), pa.string()) if pa.types.is_null(stored.type) else stored


def flag_codes(known: NDArray[np.uint16], raised: NDArray[np.uint16], flags: int) -> Small:
    """(flags, rows): 1 raised, 0 not, ABSENT where a row does not say; from one bit a flag."""
    bits = (1 << np.arange(flags, dtype=np.uint16))[:, None]
    codes: Small = np.where(known & bits, (raised & bits) > 0, ABSENT).astype(np.int8)
    return codes
