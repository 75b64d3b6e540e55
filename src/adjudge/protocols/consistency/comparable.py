"""What of a consistency run `adjudge compare` may pair, item by item."""

from __future__ import annotations

from typing import Any

# Both the answers and the validators may be what was changed; what stays is which questions were asked.
DATASET_COLUMNS: tuple[str, ...] = ()
_PAIRED = {"kind": "binary", "higher_is_better": True, "where": {"status": "paired"}}


COMPARABLE: list[dict[str, Any]] = [
    {
        **_PAIRED,
        "name": "ship_rate",
        "column": "bucket",
        "equals": "passed",
        "phrases": {"better": "ships more answers", "worse": "ships fewer answers"},
    },
    {
        **_PAIRED,
        "name": "percent_agreement",
        "column": "scholar",
        "same_as": "auditor",
        "title": "agreement of the two validators",
    },
]
"""Whether an answer ships, and whether the two validators agree."""
