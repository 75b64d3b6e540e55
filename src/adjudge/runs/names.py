"""Long names of systems made short so that they stay different: what all share goes, the end, such as the mode, stays."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

PARTS = "|"
"""Between the parts of a system's name: `model|tools`."""
_CUT = "…"


def short_names(names: Sequence[str], limit: int) -> dict[str, str]:
    """Each name with one of at most `limit` characters; names that are short enough stay as they are."""
    names = list(dict.fromkeys(names))
    if all(len(name) <= limit for name in names):
        return {name: name for name in names}
    shared = os.path.commonprefix(names) if len(names) > 1 else ""  # noqa: RUF071 -- characters, not folders
    shared = re.sub(r"[^|/: ]*$", "", shared)  # no word is cut in two
    left = {name: _CUT + name[len(shared) :] if len(shared) > 1 else name for name in names}
    short = {name: _middle_out(text, limit) for name, text in left.items()}
    if len(set(short.values())) == len(names):
        return short
    digits = len(str(len(names)))
    return {name: f"{_middle_out(left[name], limit - digits - 1)}#{place}" for place, name in enumerate(names, 1)}


def pair_name(first: str, second: str) -> str:
    """The second against the first in few words: `hawk: tools − no-tools`, `tools: wren − hawk`, else both whole."""
    a, b = first.split(PARTS), second.split(PARTS)
    if len(a) != len(b):
        return f"{second} − {first}"
    same = [one for one, other in zip(a, b, strict=True) if one == other]
    differ = [(one, other) for one, other in zip(a, b, strict=True) if one != other]
    what = f"{PARTS.join(other for _, other in differ)} − {PARTS.join(one for one, _ in differ)}"
    return f"{PARTS.join(same)}: {what}" if same and differ else what if differ else f"{second} − {first}"


def _middle_out(text: str, limit: int) -> str:
    """The text without its middle; what stands behind the last part's mark stays whole where it fits."""
    if len(text) <= limit:
        return text
    end = len(text) - text.rfind(PARTS) if PARTS in text else 0
    tail = min(max(end, limit // 2), limit - 2)
    return text[: limit - tail - 1] + _CUT + text[-tail:]
