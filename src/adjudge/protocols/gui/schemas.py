"""The published JSON Schemas: the evaluation file v1.0, episodes, predictions and outcomes."""

from __future__ import annotations

from typing import Any

from adjudge.readers.gui.model import Episode, Outcome, Prediction
from adjudge.runs.section import of_struct, published

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
    *("click_hit_rate_all", "drag_hit_rate", "success_by_types_only", "mean_episode_full_score"),
    *("self_reported_success_rate", "step_score", "fully_correct_rate"),
)
LATER_COUNTS = (
    *("missing_steps", "unparsed_steps", "out_of_space_steps", "click_steps", "click_steps_without_box"),
    *("unmatched_predictions", "missing_outcomes"),
)
OVER = {
    **dict.fromkeys(("action_type_accuracy", "step_score", "fully_correct_rate"), "num_steps"),
    **dict.fromkeys(("episode_success_rate", "success_by_types_only", "state_success_rate"), "num_episodes"),
    "click_hit_rate": "coord_error_count",
    "click_hit_rate_all": "click_steps",
}
"""The count that a rate is over."""
LOWER_IS_BETTER = ("mean_coord_error", "click_distance_50th_percentile", *LATER_COUNTS)


def schemas() -> dict[str, dict[str, Any]]:
    """By the name that `adjudge schema` knows."""
    return {
        **published(__package__),
        "gui-episode": of_struct(Episode),
        "gui-prediction": of_struct(Prediction),
        "gui-outcome": of_struct(Outcome),
    }
