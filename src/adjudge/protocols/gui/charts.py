"""Charts of a gui run: every rate with its interval, the strip of each episode, and the recorded types."""

from __future__ import annotations

from typing import Any

from adjudge.protocols.gui.partials import OUTCOMES, Partial
from adjudge.stats.estimate import Estimate

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
# Colour-blind safe (Okabe and Ito 2008), with greys for what was never said.
COLOURS = ("#009E73", "#E69F00", "#D55E00", "#CC79A7", "#7f7f7f", "#d9d9d9")
_RATES = (
    "action_type_accuracy",
    "click_hit_rate",
    "click_hit_rate_all",
    "bbox_hit_rate",
    "drag_hit_rate",
    "element_accuracy",
    "step_score",
    "fully_correct_rate",
    "mean_episode_progress",
    "mean_episode_step_score",
    "mean_episode_full_score",
    "episode_success_rate",
    "success_by_types_only",
    "weak_episode_success_rate",
    "state_success_rate",
)


def build(
    whole: Partial, estimates: dict[str, Estimate], slices: dict[str, dict[str, Estimate]], model: str
) -> list[dict[str, Any]]:
    """All charts, as plain data."""
    return [
        {"name": "rates", "spec": rates(estimates, model)},
        {"name": "episodes", "spec": strips(whole.strips, len(whole.episodes))},
        {"name": "action types", "spec": by_type(slices)},
    ]


def rates(estimates: dict[str, Estimate], model: str) -> dict[str, Any]:
    """Every rate as a point with its interval; one that does not exist says n/a in its place."""
    rows = [
        {
            "metric": name,
            "value": e.value,
            "low": e.low,
            "high": e.high,
            "n": e.n,
            "label": "n/a" if e.value is None else None,
        }
        for name in _RATES
        for e in (estimates[name],)
    ]
    y = {"field": "metric", "type": "nominal", "sort": list(_RATES), "title": None, "axis": {"labelLimit": 240}}
    x = {"field": "value", "type": "quantitative", "scale": {"domain": [0, 1]}, "title": "share (95 % interval)"}
    known = {"filter": "datum.value != null"}
    return {
        "$schema": SCHEMA,
        "title": f"Rates of {model}",
        "width": 420,
        "height": {"step": 22},
        "data": {"values": rows},
        "layer": [
            {
                "transform": [known],
                "mark": {"type": "rule", "color": "#0072B2"},
                "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
            },
            {
                "transform": [known],
                "mark": {"type": "point", "filled": True, "size": 60, "color": "#0072B2", "opacity": 1},
                "encoding": {
                    "y": y,
                    "x": x,
                    "tooltip": [{"field": f} for f in ("metric", "value", "low", "high", "n")],
                },
            },
            {
                "transform": [{"filter": "datum.value == null"}],
                "mark": {"type": "text", "align": "left", "dx": 3, "color": "#767676", "fontStyle": "italic"},
                "encoding": {"y": y, "x": {"datum": 0}, "text": {"field": "label"}},
            },
        ],
    }


def strips(found: list[tuple[str, str | None, list[int], list[int]]], episodes: int) -> dict[str, Any]:
    """Steps × outcome, a row an episode."""
    rows = [
        {"episode": name[:40], "scenario": scenario, "step": step, "outcome": OUTCOMES[outcome]}
        for name, scenario, steps, outcomes in found
        for step, outcome in zip(steps, outcomes, strict=True)
    ]
    shown = f"first {len(found)} of {episodes} episodes by name" if len(found) < episodes else f"{episodes} episodes"
    longest = max((max(steps) for _, _, steps, _ in found), default=0)
    return {
        "$schema": SCHEMA,
        "title": {"text": "What became of every step", "subtitle": shown},
        "width": max(240, min(900, 26 * (longest + 1))),
        "height": {"step": 18},
        "data": {"values": rows},
        "mark": {"type": "rect", "stroke": "white", "strokeWidth": 1.5},
        "encoding": {
            "y": {"field": "episode", "type": "nominal", "title": None, "axis": {"labelLimit": 220}},
            "x": {"field": "step", "type": "ordinal", "title": "step", "axis": {"labelAngle": 0, "labelOverlap": True}},
            "color": {
                "field": "outcome",
                "type": "nominal",
                "title": "outcome",
                "scale": {"domain": list(OUTCOMES), "range": list(COLOURS)},
                "legend": {"labelLimit": 220},
            },
            "tooltip": [{"field": name} for name in ("episode", "scenario", "step", "outcome")],
        },
    }


def by_type(slices: dict[str, dict[str, Estimate]]) -> dict[str, Any]:
    """Type accuracy and fully correct steps by recorded type."""
    rows = [
        {
            "type": f"{where.removeprefix('action_type=')} (n={found['action_type_accuracy'].n})",
            "measure": label,
            "value": found[name].value,
        }
        for where, found in slices.items()
        if where.startswith("action_type=")
        for name, label in (("action_type_accuracy", "right type"), ("fully_correct_rate", "fully correct"))
    ]
    return {
        "$schema": SCHEMA,
        "title": "By recorded action type",
        "width": 420,
        "data": {"values": rows},
        "mark": "bar",
        "encoding": {
            "y": {"field": "type", "type": "nominal", "title": None, "axis": {"labelLimit": 240}},
            "yOffset": {"field": "measure", "sort": ["right type", "fully correct"]},
            "x": {"field": "value", "type": "quantitative", "scale": {"domain": [0, 1]}, "title": "share of steps"},
            "color": {
                "field": "measure",
                "type": "nominal",
                "title": None,
                "sort": ["right type", "fully correct"],
                "scale": {"domain": ["right type", "fully correct"], "range": ["#56B4E9", "#009E73"]},
            },
        },
    }
