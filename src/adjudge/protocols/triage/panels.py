"""What a page shows of an opened record: the image, what was said of it, the tools that were called, and how long it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from adjudge.protocols.triage.batch import TIMES
from adjudge.protocols.triage.record import tools_in_words
from adjudge.runs.run import Run
from adjudge.runs.section import Panel


def panels(run: Run) -> list[Panel]:
    """In the order in which they are read."""
    del run
    return [
        Panel("picture", "The image", columns={"image": "image"}, missing="No record names the image."),
        Panel(
            "pairs",
            "Label and answer",
            columns={
                "label": "label",
                "answer": "answer",
                "confidence": "confidence",
                "error": "error",
                "kind of error": "error_type",
            },
        ),
        Panel(
            "texts",
            "What was said",
            columns={"rationale": "rationale", "analysis": "analysis", "raw answer": "raw_response"},
            missing="The record has neither a rationale nor an analysis.",
        ),
        Panel(
            "pairs",
            "Tools and times",
            columns={
                "tools": "@tools",
                "tools called": "tool_count",
                "seconds in tools": "tool_seconds",
                **{name.replace("_seconds", "").replace("_", " ") + ", seconds": name for name in TIMES},
                "cache": "cache",
            },
            values=_tools,
        ),
    ]


def _tools(run: Run, samples: pa.Table, outputs: pa.Table | None) -> Mapping[str, Sequence[Any]]:
    """The tools that were called, in words."""
    del run, samples
    if outputs is None or "tools" not in outputs.column_names:
        return {}
    return {"tools": [tools_in_words(text) for text in outputs.column("tools").to_pylist()]}
