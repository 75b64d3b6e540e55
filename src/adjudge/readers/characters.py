"""Characters that no JSON text may hold, replaced so that they cost themselves and not the record."""

from __future__ import annotations

import re

_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
# A pair of surrogates, a surrogate alone, or any other escape, which is passed over as a whole.
_ESCAPES = re.compile(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
_REPLACED = rb"\ufffd"


def mended(record: bytes) -> tuple[bytes, str]:
    """The record with what is no character replaced by U+FFFD, raw control characters escaped; and what was done."""
    kinds = []
    try:
        record.decode()
    except UnicodeDecodeError:
        record = record.decode("utf-8", "replace").encode()
        kinds.append("bytes that are not UTF-8")
    again, controls = _CONTROLS.subn(lambda match: b"\\u%04x" % match[0][0], record)
    if controls:
        kinds.append("control characters")
    alone = 0

    def without_lone(match: re.Match[bytes]) -> bytes:
        nonlocal alone
        if match[2] is None:
            return match[0]
        alone += 1
        return _REPLACED

    again = _ESCAPES.sub(without_lone, again)
    if alone:
        kinds.append("lone surrogates")
    return again, " and ".join(kinds)
