"""The published JSON Schemas: the evaluation file v1.0, episodes, predictions and outcomes."""

from __future__ import annotations

from typing import Any

from adjudge.readers.gui.model import Episode, Outcome, Prediction
from adjudge.runs.schemas import DRAFT, of_struct

VERSION = "1.0"
EVALUATION = ("schema_version", "config_path", "backend", "dsl_mode", "metrics", "migration_notes")
COUNTS = ("num_episodes", "num_steps", "coord_error_count")
REQUIRED = (
    "num_episodes",
    "num_steps",
    "action_type_accuracy",
    "mean_coord_error",
    "coord_error_count",
    "episode_success_rate",
    "click_hit_rate",
)
OPTIONAL = (
    "bbox_hit_rate",
    "mean_episode_progress",
    "mean_episode_step_score",
    "weak_episode_success_rate",
    "state_success_rate",
    "element_accuracy",
)
NULLABLE = ("mean_coord_error", "click_hit_rate", *OPTIONAL)
SENTINEL = -1
"""What a metric that is no longer computed may say instead of null; it is in no plot and no mean."""
# Rates that came after v1.0; every one of them may be absent or null.
LATER_RATES = (
    "click_hit_rate_all",
    "drag_hit_rate",
    "success_by_types_only",
    "mean_episode_full_score",
    "self_reported_success_rate",
    "step_score",
    "fully_correct_rate",
)
LATER_COUNTS = (
    "missing_steps",
    "unparsed_steps",
    "out_of_space_steps",
    "click_steps",
    "click_steps_without_box",
    "unmatched_predictions",
    "missing_outcomes",
)
LOWER_IS_BETTER = ("mean_coord_error", "click_distance_50th_percentile", *LATER_COUNTS)


def schemas() -> dict[str, dict[str, Any]]:
    """By the name that `adjudge schema` knows."""
    return {
        "gui-eval": gui_eval(),
        "gui-episode": of_struct(Episode),
        "gui-prediction": of_struct(Prediction),
        "gui-outcome": of_struct(Outcome),
    }


def gui_eval() -> dict[str, Any]:
    """The evaluation file. Unknown keys are allowed everywhere: new metrics may be added, none is removed."""
    deprecated = {"const": SENTINEL}
    rate = {"type": "number", "anyOf": [{"minimum": 0, "maximum": 1}, deprecated]}
    error = {"type": "number", "anyOf": [{"minimum": 0}, deprecated]}
    count = {"type": "integer", "minimum": 0}
    kinds: dict[str, dict[str, Any]] = {
        name: count if name in COUNTS else error if name == "mean_coord_error" else rate
        for name in (*REQUIRED, *OPTIONAL)
    }
    later: dict[str, dict[str, Any]] = {
        **dict.fromkeys(LATER_RATES, _nullable(rate)),
        **dict.fromkeys(LATER_COUNTS, _nullable(count)),
        "click_distance_50th_percentile": _nullable(error),
        "metrics_by_action_type": {"type": ["object", "null"]},
        "metrics_by_scenario": {"type": ["object", "null"]},
        "metrics_by_platform": {"type": ["object", "null"]},
    }
    interval = {
        "oneOf": [{"type": "null"}, {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}]
    }
    metrics = {
        "type": "object",
        "required": list(REQUIRED),
        "properties": {
            **{name: _nullable(kind) if name in NULLABLE else kind for name, kind in kinds.items()},
            **later,
        },
        "patternProperties": {"_ci$": interval},
    }
    migrated = {**metrics, "properties": {**{name: _nullable(kind) for name, kind in kinds.items()}, **later}}
    return {
        "$schema": DRAFT,
        "title": "GUI evaluation v1.0",
        "type": "object",
        "required": ["config_path", "backend", "metrics"],
        "properties": {
            "schema_version": {"type": "string", "pattern": r"^1\."},
            "config_path": {"type": "string"},
            "backend": {"type": "string"},
            "dsl_mode": {"enum": ["coord", "som"], "default": "coord"},
            "migration_notes": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            **{name: {"type": ["string", "null"]} for name in ("eval_timestamp", "training_timestamp")},
            **{name: {"type": ["string", "null"]} for name in ("checkpoint_path", "device", "gpu_model")},
            "memory_gb": {"type": ["number", "null"], "minimum": 0},
        },
        "if": {"required": ["migration_notes"]},
        "then": {"properties": {"metrics": migrated}},
        "else": {"properties": {"metrics": metrics}},
    }


def _nullable(kind: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [{"type": "null"}, kind]}
