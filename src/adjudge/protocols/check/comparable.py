"""What of a check run `adjudge compare` may pair, sample by sample."""

from __future__ import annotations

from typing import Any

from adjudge.protocols.check.compiled import Compiled

_PHRASES = {"better": "breaks the rules less often", "worse": "breaks the rules more often"}


def comparable(compiled: Compiled) -> list[dict[str, Any]]:
    """Whether a sample passes, every score, and on request every rule where it applies in both runs."""
    file = compiled.file
    cluster = compiled.label(file.cluster).stored if file.cluster else "sample"
    common = {"higher_is_better": True, "cluster": cluster}
    outcomes: list[dict[str, Any]] = [
        {"name": "pass_rate", "column": "bucket", "equals": "passed", "kind": "binary", "phrases": _PHRASES}
    ]
    outcomes += [
        {"name": f"score.{name}", "title": f"score {name}", "column": f"score.{name}", "kind": "mean", "span": 1.0}
        for name in file.scores
    ]
    outcomes += [
        {
            "name": f"{code}.pass_rate",
            "title": (code in file.rules and file.rules[code].title) or code,
            "column": f"rule.{code}",
            "equals": "pass",
            "where": {f"rule.{code}": ["pass", "fail"]},
            "kind": "binary",
            "on_request": True,
        }
        for code in file.rated
    ]
    return [{**common, **outcome} for outcome in outcomes]
