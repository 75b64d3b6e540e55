"""What of a gui run `adjudge compare` may pair, step by step, and which columns are the recording's own."""

from __future__ import annotations

from typing import Any

DATASET_COLUMNS = (
    *("episode", "step", "scenario", "platform", "type", "x", "y", "end_x", "end_y"),
    *("boxes", "element", "argument", "milestones"),
)
_STEP = {"higher_is_better": True, "cluster": "episode", "where": {"verdict": ["correct", "incorrect"]}}


_OF_STEPS: list[dict[str, Any]] = [
    {
        **_STEP,
        "name": "fully_correct_rate",
        "column": "verdict",
        "equals": "correct",
        "kind": "binary",
        "phrases": {"better": "gets more steps right", "worse": "gets fewer steps right"},
    },
    {**_STEP, "name": "action_type_accuracy", "column": "type", "same_as": "said_type", "null": 0.0, "kind": "binary"},
]
_DISTANCE = {
    "name": "mean_coord_error",
    "title": "distance of clicks (where both click)",
    "column": "distance",
    "kind": "mean",
    "higher_is_better": False,
    "cluster": "episode",
    "where": {"type": "click", "said_type": "click"},
}


def comparable(*, som: bool) -> list[dict[str, Any]]:
    """Fully correct steps, right action types, and the distance of clicks where points are judged."""
    return _OF_STEPS if som else [*_OF_STEPS, _DISTANCE]
