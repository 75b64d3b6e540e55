"""The kinds of records that the gui protocol reads."""

from __future__ import annotations

from adjudge.protocols.base import Role
from adjudge.readers.gui import formats
from adjudge.readers.gui.model import Outcome

_NAME = ("episode_id", "id", "annotation_id")
_SPACE = "--space … --bbox …"

ROLES = {
    "episodes": Role(
        formats.EPISODE_KEYS, (_NAME, ("steps", "bbox")), f"adjudge gui --episodes FILE --predictions … {_SPACE}"
    ),
    "predictions": Role(
        formats.PREDICTION_KEYS,
        (_NAME, ("step",), ("action", "raw", "gpt_action")),
        f"adjudge gui --episodes … --predictions FILE {_SPACE}",
    ),
    "outcomes": Role(
        Outcome, (("episode_id",), ("success",)), f"adjudge gui --episodes … --predictions … --outcomes FILE {_SPACE}"
    ),
}
