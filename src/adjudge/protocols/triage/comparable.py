"""What of a triage run `adjudge compare` may pair, which columns are the data set's own, and what varied."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from adjudge.protocols.triage.words import Classes

DATASET_COLUMNS = ("label",)


def comparable(classes: Classes) -> list[dict[str, Any]]:
    """Catching, passing, coverage and accuracy over all records: an abstention, an error, a missing answer is no success."""
    positive, negative = classes
    passed = {"column": "bucket", "equals": "passed", "kind": "binary", "higher_is_better": True, "cluster": "sample"}
    return [
        {
            **passed,
            "name": f"{positive}_catch_rate",
            "where": {"label": positive},
            "phrases": {"better": f"catches more {positive}s", "worse": f"catches fewer {positive}s"},
        },
        {
            **passed,
            "name": f"{negative}_pass_rate",
            "where": {"label": negative},
            "phrases": {"better": f"passes more {negative} samples", "worse": f"passes fewer {negative} samples"},
        },
        {**passed, "name": "coverage", "equals": ["passed", "failed"]},
        {**passed, "name": "accuracy", "phrases": {"better": "is right more often", "worse": "is right less often"}},
    ]


def factors(configurations: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Model and tools of every configuration, which is named `<model>|tools` or `<model>|no-tools`."""
    found = {}
    for name in configurations:
        model, _, mode = name.rpartition("|")
        found[name] = {"model": model, "tools": mode == "tools"}
    return found
