"""What of a score run `adjudge compare` may pair, and which facts of the logs must be the same for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.readers.logs.record import Log

MUST = (
    "task_version",
    "scorers",
    "dataset",
    "metric",
    "prompt",
    "assertions",
    "n_shot",
    "chat_template",
    "system_instruction",
    "run_spec",
    "split",
    "threshold",
    "filter",
)
"""Facts that must be the same, whatever is compared."""
MAY = ("solver", "generation", "task_args", "seeds", "evaluation_model")
"""Facts of which one may be what is compared, where the model is the same."""


def comparable(*, has_threshold: bool, binary: bool) -> list[dict[str, Any]]:
    """The pass rate over all attempts where there is a threshold, and the mean score, 0 for what has none."""
    outcomes: list[dict[str, Any]] = []
    if has_threshold:
        outcomes.append(
            {
                "name": "pass_rate",
                "column": "bucket",
                "equals": "passed",
                "kind": "binary",
                "higher_is_better": True,
                "cluster": "cluster",
                "phrases": {"better": "passes more often", "worse": "passes less often"},
            }
        )
    if not (has_threshold and binary):
        outcomes.append(
            {
                "name": "mean_score",
                "column": "score",
                "kind": "mean",
                "null": 0.0,
                "higher_is_better": True,
                "cluster": "cluster",
                "phrases": {"better": "scores higher", "worse": "scores lower"},
            }
        )
    outcomes.append(
        {
            "name": "coverage",
            "column": "status",
            "equals": "scored",
            "kind": "binary",
            "higher_is_better": True,
            "cluster": "cluster",
            "on_request": True,
        }
    )
    return outcomes


def conditions(logs: Sequence[Log], thresholds: Mapping[str, float | None]) -> dict[str, dict[str, dict[str, Any]]]:
    """Under which conditions every model did every task, sorted into those that must and those that may be the same."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for log in logs:
        for model in log.models:
            for task, facts in log.conditions.items():
                own = found.setdefault(model, {}).setdefault(task, {"must": {}, "may": {}, "noted": {}})
                for name, value in facts.items():
                    kind = "must" if name in MUST else "may" if name in MAY else "noted"
                    own[kind][name] = value
    for tasks in found.values():
        for task, own in tasks.items():
            if thresholds.get(task) is not None:
                own["must"]["pass_at"] = thresholds[task]
    return {model: dict(sorted(tasks.items())) for model, tasks in sorted(found.items())}
