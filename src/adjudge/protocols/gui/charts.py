"""Charts of a gui run: every rate with its interval, the strip of each episode, and the recorded types."""

from __future__ import annotations

import numpy as np

from adjudge.protocols.common.plan import Spec, chart
from adjudge.protocols.gui.config import GuiConfig
from adjudge.protocols.gui.counts import OUTCOMES, Partial
from adjudge.protocols.gui.spaces import EDGE, Floats
from adjudge.stats.estimate import Estimate

BINS_A_RADIUS, MOST_BINS = 4, 60

_RATES = (
    "action_type_accuracy",
    *("click_hit_rate", "click_hit_rate_all", "bbox_hit_rate", "drag_hit_rate", "element_accuracy"),
    *("step_score", "fully_correct_rate"),
    *("mean_episode_progress", "mean_episode_step_score", "mean_episode_full_score"),
    *("episode_success_rate", "success_by_types_only", "weak_episode_success_rate", "state_success_rate"),
)


def build(
    whole: Partial, estimates: dict[str, Estimate], types: dict[str, dict[str, Estimate]], config: GuiConfig
) -> list[Spec]:
    """All charts, as plain data."""
    drawn = [rates(estimates, config.model), strips(whole.strips, len(whole.episodes)), by_type(types)]
    return [*drawn, distances(whole.distances, config.click_radius)] if whole.distances.size else drawn


def distances(values: Floats, radius: float) -> Spec:
    """How far clicks are from their targets, in bins that end at the radius or not, so that a bar is a hit or a miss."""
    bins = min(int(np.ceil(values.max() / radius * BINS_A_RADIUS)) or 1, MOST_BINS)
    edges = np.arange(bins + 1) * radius / BINS_A_RADIUS
    # A distance on an edge is inclusive below, as a hit is; all beyond the last edge are in the last bin.
    place = np.clip(np.ceil((values - EDGE) / radius * BINS_A_RADIUS).astype(np.int64) - 1, 0, bins - 1)
    counts = np.bincount(place, minlength=bins)
    bars = zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
    rows = [
        {"from": low, "to": high, "clicks": clicks, "result": "hit" if bar < BINS_A_RADIUS else "missed"}
        for bar, (low, high, clicks) in enumerate(bars)
    ]
    beyond = int((values > edges[-1] + EDGE).sum())
    shown = f"{values.size:,} clicks with coordinates on both sides; the radius is {radius:g}"
    shown += f"; {beyond:,} farther are in the last bar" if beyond else ""
    return chart(__package__, "click_distances", "click distances", rows=rows, shown=shown)


def rates(estimates: dict[str, Estimate], model: str) -> Spec:
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
    return chart(__package__, "rates", rows=rows, model=model, metrics=list(_RATES))


def strips(episode_strips: list[tuple[str, str | None, list[int], list[int]]], episodes: int) -> Spec:
    """Steps × outcome, a row an episode."""
    rows = [
        {"episode": name[:40], "scenario": scenario, "step": step, "outcome": OUTCOMES[outcome]}
        for name, scenario, steps, outcomes in episode_strips
        for step, outcome in zip(steps, outcomes, strict=True)
    ]
    drawn = len(episode_strips)
    shown = f"first {drawn} of {episodes} episodes by name" if drawn < episodes else f"{episodes} episodes"
    longest = max((max(steps) for _, _, steps, _ in episode_strips), default=0)
    width = max(240, min(900, 26 * (longest + 1)))
    return chart(__package__, "episodes", rows=rows, shown=shown, width=width, outcomes=list(OUTCOMES))


def by_type(types: dict[str, dict[str, Estimate]]) -> Spec:
    """Type accuracy and fully correct steps by recorded type."""
    labels = {"action_type_accuracy": "right type", "fully_correct_rate": "fully correct"}
    rows = [
        {"type": f"{kind} (n={estimates['action_type_accuracy'].n})", "measure": label, "value": estimates[name].value}
        for kind, estimates in types.items()
        for name, label in labels.items()
    ]
    return chart(__package__, "action_types", "action types", rows=rows)
