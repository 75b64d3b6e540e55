"""Several evaluation files as one: the plain mean of every metric, the mean weighted by what it is over, nulls counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.protocols.gui import schemas
from adjudge.protocols.gui.evalfile import deprecated, in_use, is_number, metrics_of
from adjudge.stats.exact import mean_of, rounded, total

_CLICKS = ("mean_coord_error", "click_distance_50th_percentile")
_EPISODES = (
    *("mean_episode_progress", "mean_episode_step_score", "mean_episode_full_score"),
    *("weak_episode_success_rate", "self_reported_success_rate"),
)
WEIGHT = {
    **schemas.OVER,
    **dict.fromkeys(_CLICKS, "coord_error_count"),
    **dict.fromkeys(_EPISODES, "num_episodes"),
    "bbox_hit_rate": "click_steps",
}
_SHORT = {
    "action_accuracy": "action_type_accuracy",
    "click_hit_rate": "click_hit_rate",
    "episode_success": "episode_success_rate",
}
"""The method's three aggregates: `mean_…` is the plain mean over files, `weighted_…` ours, weighted by n."""
_SUMMED = frozenset({*schemas.COUNTS, *schemas.LATER_COUNTS})


def aggregate(documents: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """The files, by label, as one object; a metric that cannot be averaged is kept by file."""
    tables = [(label, in_use(document)) for label, document in documents]
    names = [name for name in (*schemas.REQUIRED, *schemas.OPTIONAL) if any(name in table for _, table in tables)]
    names += sorted({name for _, table in tables for name in table} - set(names))
    averaged, by_file = {}, {}
    for name in names:
        values = [table.get(name) for _, table in tables]
        if all(value is None or is_number(value) for value in values):
            averaged[name] = _summed(values) if name in _SUMMED else _averaged(name, tables)
        else:
            by_file[name] = {label: table[name] for label, table in tables if name in table}
    short = {f"mean_{name}": averaged.get(metric, {}).get("mean") for name, metric in _SHORT.items()}
    short |= {f"weighted_{name}": averaged.get(metric, {}).get("weighted_mean") for name, metric in _SHORT.items()}
    return {
        "files": [label for label, _ in tables],
        **short,
        "notes": _notes(documents, averaged),
        "metrics": averaged,
        "not_averaged": by_file,
    }


def _notes(documents: Sequence[tuple[str, dict[str, Any]]], averaged: dict[str, Any]) -> list[str]:
    """What is in no mean: sentinels by file, nulls of the three aggregates, and files that do not say their n."""
    notes = [
        f"{label}: {name} is −1, which stands for no value; it is in no mean"
        for label, document in documents
        for name in deprecated(metrics_of(document))
    ]
    for metric in _SHORT.values():
        entry = averaged.get(metric, {"null_files": len(documents), "files": 0, "files_without_weight": 0})
        if entry["null_files"]:
            notes.append(f"{entry['null_files']} of {len(documents)} files have no {metric}; they are in no mean of it")
        if entry["files_without_weight"]:
            weight = WEIGHT[metric]
            notes.append(
                f"{entry['files_without_weight']} files with {metric} have no {weight}; the weighted mean is without them"
            )
    return notes


def _summed(values: Sequence[Any]) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    return {"sum": sum(known) if known else None, "files": len(known), "null_files": len(values) - len(known)}


def _averaged(name: str, tables: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    known = [table for _, table in tables if table.get(name) is not None]
    weight = WEIGHT.get(name)
    weighted = [table for table in known if weight is not None and is_number(table.get(weight)) and table[weight] > 0]
    weights = [int(table[weight]) for table in weighted] if weight is not None else []
    sums = sum(total([float(table[name])]) * n for table, n in zip(weighted, weights, strict=True))
    return {
        "mean": mean_of([float(table[name]) for table in known]) if known else None,
        "weighted_mean": rounded(sums, sum(weights)) if weighted else None,
        "weight": weight,
        "n": sum(weights) if weights else None,
        "files": len(known),
        "null_files": len(tables) - len(known),
        "files_without_weight": len(known) - len(weighted),
    }
