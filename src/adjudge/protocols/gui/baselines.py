"""Two agents that know nothing: one that never acts, one that always says the most frequent type."""

from __future__ import annotations

from collections import Counter
from itertools import compress
from typing import Any

import numpy as np

from adjudge.protocols.gui.counts import PLACE, Ints, Partial
from adjudge.protocols.gui.spaces import Mask
from adjudge.readers.gui.model import DRAG, NOTHING, POINTING, WITH_KEY, WITH_OPTIONAL_TEXT, WITH_TEXT
from adjudge.stats.exact import mean_of

_WITH_ARGUMENT = (*POINTING, *DRAG, *WITH_KEY, *WITH_TEXT, *WITH_OPTIONAL_TEXT)


def baselines(whole: Partial, types: tuple[str, ...]) -> dict[str, Any]:
    """What the null agent and the majority-type agent reach on the same steps.

    The null agent touches nothing, so it is right where the recording waits or is done. The majority agent says the
    type and no argument, so it is fully correct only where the type has none.
    """
    counts = np.bincount(whole.cell_kind, weights=whole.cells[:, PLACE["n"]], minlength=len(types)).astype(np.int64)
    majority = int(counts.argmax())
    null_right = _steps(whole, [types.index(name) for name in NOTHING])
    said_right = _steps(whole, [majority])
    weak = _weak(whole)[whole.milestones > 0]
    free = types[majority] not in _WITH_ARGUMENT
    return {
        "null_agent": {
            **_numbers(whole, null_right, null_right),
            "weak_episode_success_rate": float(weak.mean()) if weak.size else None,
        },
        "majority_type_agent": {
            "type": types[majority],
            **_numbers(whole, said_right, said_right if free else np.zeros_like(said_right)),
        },
    }


def broken_scenarios(whole: Partial, types: tuple[str, ...]) -> list[dict[str, Any]]:
    """Scenarios with an episode that an agent passes by never acting: all steps, or all milestones, ask for nothing."""
    passed = (_steps(whole, [types.index(name) for name in NOTHING]) == whole.steps) | _weak(whole)
    names = [name or "" for name in whole.scenarios]
    episodes, episodes_passed = Counter(names), Counter(compress(names, passed))
    return [
        {"scenario": name, "episodes": episodes[name], "episodes_passed": count}
        for name, count in sorted(episodes_passed.items())
    ]


def _weak(whole: Partial) -> Mask:
    passed: Mask = (whole.milestones > 0) & (whole.free_milestones == whole.milestones)
    return passed


def _steps(whole: Partial, kinds: list[int]) -> Ints:
    """Steps of some recorded types, by episode."""
    use = np.isin(whole.cell_kind, kinds)
    sums = np.bincount(whole.cell_episode[use], weights=whole.cells[use, PLACE["n"]], minlength=len(whole.episodes))
    return sums.astype(np.int64)


def _numbers(whole: Partial, right: Ints, full: Ints) -> dict[str, Any]:
    return {
        "action_type_accuracy": int(right.sum()) / int(whole.steps.sum()),
        "mean_episode_progress": mean_of(right / whole.steps),
        "episode_success_rate": float((full == whole.steps).mean()),
        "success_by_types_only": float((right == whole.steps).mean()),
    }
