"""The comparison plot: one panel a metric, a bar a file; null is absent and says n/a, 0 is a bar of no height that says 0."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from adjudge.errors import ConfigError
from adjudge.protocols.common.plan import SCHEMA, filled
from adjudge.protocols.gui import schemas
from adjudge.protocols.gui.evalfile import in_use

PANELS = (
    "action_type_accuracy",
    *("click_hit_rate", "bbox_hit_rate", "element_accuracy", "mean_coord_error"),
    *("episode_success_rate", "mean_episode_progress", "mean_episode_step_score"),
    *("weak_episode_success_rate", "state_success_rate"),
)
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
_COLUMNS = 4
NO_VALUE = "n/a"


def comparison(files: Sequence[tuple[str, dict[str, Any]]], metrics: Sequence[str] = ()) -> dict[str, Any]:
    """A panel for each metric that a file has, or for those named; one that no file has is refused."""
    tables = [(label, in_use(document)) for label, document in files]
    known = sorted({name for _, table in tables for name, value in table.items() if not isinstance(value, dict | list)})
    for name in metrics:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"--metric {name}: no file has such a metric.{hint} They have {', '.join(known)}")
    chosen = list(metrics) or [name for name in PANELS if any(name in table for _, table in tables)]
    return {
        "$schema": SCHEMA,
        "title": {"text": "GUI evaluation", "anchor": "start", "fontSize": 16, "offset": 16},
        "concat": [_panel(name, tables) for name in chosen],
        "columns": _COLUMNS,
        "spacing": 28,
        # Labels are never cut: two that differ in their last signs would look the same.
        "config": {"view": {"stroke": None}, "axis": {"labelLimit": 0}},
    }


def _panel(name: str, tables: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    lower = name in schemas.LOWER_IS_BETTER
    rows = [_row(name, label, table) for label, table in tables]
    highest = max((max(row["value"], row["high"] or 0.0) for row in rows if row["value"] is not None), default=1.0)
    top = 1.0 if not lower else (highest * 1.25 or 1.0)
    # A bar of no height is drawn as its foot, so that 0 can be seen.
    return filled(
        __package__,
        "comparison_panel",
        rows=rows,
        name=name,
        labels=[label for label, _ in tables],
        colours=[_COLOURS[index % len(_COLOURS)] for index in range(len(tables))],
        width=max(110, 48 * len(tables)),
        top=top,
        nice=lower,
        colour="#D55E00" if lower else "#767676",
        better="↓ lower is better" if lower else "↑ higher is better",
    )


def _row(name: str, label: str, table: dict[str, Any]) -> dict[str, Any]:
    value = table.get(name)
    low, high = (None, None) if value is None else (table.get(f"{name}_ci") or (None, None))
    return {
        "file": label,
        "value": value,
        "low": low,
        "high": high,
        "above": None if value is None else max(value, high or 0.0),
        "label": NO_VALUE if value is None else f"{value:.3g}",
    }
