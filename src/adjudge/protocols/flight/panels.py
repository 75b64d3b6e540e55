"""What a page shows of an opened sample: its state, field by field."""

from __future__ import annotations

from adjudge.protocols.flight.fields import ANGLES, FIELDS
from adjudge.runs.run import Run
from adjudge.runs.section import Panel


def panels(run: Run) -> list[Panel]:
    """A row a field and second; the error of an angle goes around at 360 degrees."""
    del run
    return [
        Panel(
            "table",
            "The state, field by field",
            columns={"shown": "shown", "predicted": "answer", "true": "gold"},
            options={
                "rows": list(FIELDS),
                "head": "field",
                "error": ["predicted", "true"],
                "angles": sorted(ANGLES),
                "limit": "jump_dynamics",
                "limit_title": "jump limit",
            },
            note="What was shown, predicted and true, how far off the prediction is, and by how much a value may change in a second.",
        ),
        Panel("texts", "The question", columns={"question": "question"}),
    ]
