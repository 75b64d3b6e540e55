"""What of a score run `adjudge compare` may pair, and which facts of the logs must be the same for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from adjudge.readers.logs.record import Log

MUST = (
    "assertions",
    "chat_template",
    "dataset",
    "filter",
    "judged_score",
    "metric",
    "n_shot",
    "run_spec",
    "scorers",
    "split",
    "system_instruction",
    "task_version",
)
"""Facts that must be the same, whatever is compared."""
FACTORS = ("evaluation_model", "generation", "limits", "model_roles", "prompt", "seeds", "solver", "task_args")
"""Facts of which one may be what is compared; two at once are refused."""


def comparable(*, has_threshold: bool, binary: bool, span: float) -> list[dict[str, Any]]:
    """The pass rate over all attempts where there is a threshold, and the mean score, 0 for what has none."""
    pass_rate = {"name": "pass_rate", "column": "bucket", "equals": "passed", "kind": "binary", "cluster": "cluster"}
    mean_score = {
        "name": "mean_score",
        "column": "score",
        "kind": "mean",
        "null": 0.0,
        "cluster": "cluster",
        "span": span,
    }
    coverage = {"name": "coverage", "column": "status", "equals": "scored", "kind": "binary", "cluster": "cluster"}
    outcomes: list[dict[str, Any]] = []
    if has_threshold:
        outcomes.append({**pass_rate, "phrases": {"better": "passes more often", "worse": "passes less often"}})
    if not (has_threshold and binary):
        outcomes.append({**mean_score, "phrases": {"better": "scores higher", "worse": "scores lower"}})
    return [*outcomes, {**coverage, "on_request": True}]


Facts = dict[str, dict[str, dict[str, Any]]]
"""Facts by model and task."""


def facts_of(logs: Sequence[Log]) -> Facts:
    """Everything that the logs state of the conditions under which every model did every task."""
    facts: Facts = {}
    for log in logs:
        for model in log.models:
            for task, stated in log.conditions.items():
                judged = {"judged_score": log.checks[0]} if log.checks else {}
                facts.setdefault(model, {}).setdefault(task, {}).update(stated | judged)
    return {model: dict(sorted(tasks.items())) for model, tasks in sorted(facts.items())}


def conditions(facts: Facts, thresholds: Mapping[str, float | str | None]) -> Facts:
    """The facts that must be the same, with the threshold that scores are held to."""
    return {
        model: {
            task: {name: value for name, value in stated.items() if name in MUST} | {"pass_at": thresholds.get(task)}
            for task, stated in tasks.items()
        }
        for model, tasks in facts.items()
    }


def factors(facts: Facts, models: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Of every model the facts that may be what is compared, as text; of several tasks all together."""
    of_models: dict[str, dict[str, Any]] = {}
    for model in models:
        by_task = facts.get(model, {})
        conditions = of_models[model] = {"model": model}
        for name in FACTORS:
            values = {task: stated[name] for task, stated in by_task.items() if name in stated}
            if values:
                value = next(iter(values.values())) if len(values) == 1 else values
                in_json = msgspec.json.encode(value, order="deterministic").decode()
                conditions[name] = value if isinstance(value, str) else in_json
    return of_models
