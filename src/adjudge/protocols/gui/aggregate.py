"""Several evaluation files as one: every metric weighted by what it is over, the plain mean beside it, nulls counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.protocols.gui import schemas
from adjudge.protocols.gui.evalfile import metrics_of
from adjudge.stats.exact import mean_of, rounded, total

_STEPS = ("action_type_accuracy", "step_score", "fully_correct_rate")
_CLICKS = ("mean_coord_error", "click_hit_rate", "click_distance_50th_percentile")
_EPISODES = (
    "episode_success_rate",
    "mean_episode_progress",
    "mean_episode_step_score",
    "mean_episode_full_score",
    "success_by_types_only",
    "state_success_rate",
    "weak_episode_success_rate",
    "self_reported_success_rate",
)
WEIGHT = {
    **dict.fromkeys(_STEPS, "num_steps"),
    **dict.fromkeys(_CLICKS, "coord_error_count"),
    **dict.fromkeys(_EPISODES, "num_episodes"),
    "click_hit_rate_all": "click_steps",
    "bbox_hit_rate": "click_steps",
}
_SHORT = {
    "mean_action_accuracy": "action_type_accuracy",
    "mean_click_hit_rate": "click_hit_rate",
    "mean_episode_success": "episode_success_rate",
}
_SUMMED = frozenset({*schemas.COUNTS, *schemas.LATER_COUNTS})


def aggregate(documents: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """The files, by label, as one object; a metric that cannot be averaged is kept by file."""
    tables = [(label, metrics_of(document)) for label, document in documents]
    names = [name for name in (*schemas.REQUIRED, *schemas.OPTIONAL) if any(name in own for _, own in tables)]
    names += sorted({name for _, own in tables for name in own} - set(names))
    found: dict[str, Any] = {}
    kept: dict[str, dict[str, Any]] = {}
    for name in names:
        values = [own.get(name) for _, own in tables]
        if all(value is None or _number(value) for value in values):
            found[name] = _summed(values) if name in _SUMMED else _averaged(name, tables)
        else:
            kept[name] = {label: own[name] for label, own in tables if name in own}
    short = {}
    for name, metric in _SHORT.items():
        short[name] = found.get(metric, {}).get("weighted")
        short[f"{name}_unweighted"] = found.get(metric, {}).get("unweighted")
    return {"files": [label for label, _ in tables], **short, "metrics": found, "not_averaged": kept}


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _summed(values: Sequence[Any]) -> dict[str, Any]:
    told = [value for value in values if value is not None]
    return {"sum": sum(told) if told else None, "files": len(told), "null_files": len(values) - len(told)}


def _averaged(name: str, tables: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    told = [own for _, own in tables if own.get(name) is not None]
    weight = WEIGHT.get(name)
    heavy = [own for own in told if weight is not None and _number(own.get(weight)) and own[weight] > 0]
    weights = [int(own[weight]) for own in heavy] if weight is not None else []
    weighted = (
        rounded(sum(total([float(own[name])]) * w for own, w in zip(heavy, weights, strict=True)), sum(weights))
        if heavy
        else None
    )
    return {
        "weighted": weighted,
        "unweighted": mean_of([float(own[name]) for own in told]) if told else None,
        "weight": weight,
        "n": sum(weights) if weights else None,
        "files": len(told),
        "null_files": len(tables) - len(told),
        "files_without_weight": len(told) - len(heavy),
    }
