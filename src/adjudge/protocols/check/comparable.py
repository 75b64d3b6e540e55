"""What of a check run `adjudge compare` may pair, sample by sample, and which columns are the data set's own."""

from __future__ import annotations

from typing import Any

from adjudge.protocols.check.compiled import Compiled


def comparable(compiled: Compiled) -> list[dict[str, Any]]:
    """Whether a sample passes, every score, and on request every rule where it applies in both runs."""
    cluster = compiled.file.cluster
    block = cluster.partition(".")[0] in {"meta", "input"} and cluster not in compiled.file.fields
    common = {
        "higher_is_better": True,
        "cluster": "sample" if not cluster or cluster == "id" else cluster if block else f"answer.{cluster}",
    }
    outcomes: list[dict[str, Any]] = [
        {
            **common,
            "name": "pass_rate",
            "column": "bucket",
            "equals": "passed",
            "kind": "binary",
            "phrases": {"better": "breaks the rules less often", "worse": "breaks the rules more often"},
        }
    ]
    outcomes += [
        {
            **common,
            "name": f"score.{name}",
            "title": f"score {name}",
            "column": f"score.{name}",
            "kind": "mean",
            "span": 1.0,
        }
        for name in compiled.file.scores
    ]
    outcomes += [
        {
            **common,
            "name": f"{code}.pass_rate",
            "title": (code in compiled.file.rules and compiled.file.rules[code].title) or code,
            "column": f"rule.{code}",
            "equals": "pass",
            "where": {f"rule.{code}": ["pass", "fail"]},
            "kind": "binary",
            "on_request": True,
        }
        for code in compiled.file.rated
    ]
    return outcomes


def dataset_columns(compiled: Compiled, *, gold: bool) -> list[str]:
    """The gold values, where there is a reference."""
    return [f"gold.{each.name}" for each in compiled.fields] if gold else []
