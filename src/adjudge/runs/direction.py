"""Which way an estimate is better: what the run declares, otherwise what its name says."""

from __future__ import annotations

import re

from adjudge.runs.run import Run

_LOWER = frozenset(
    {
        "abstain",
        "abstained",
        "alarm",
        "alarms",
        "aurc",
        "bias",
        "brier",
        "delay",
        "distance",
        "ece",
        "error",
        "errored",
        "exceedance",
        "few",
        "flag",
        "flip",
        "fnr",
        "fpr",
        "latency",
        "loss",
        "mae",
        "missing",
        "ned50",
        "rmse",
        "slip",
        "under",
        "unparsed",
        "violations",
    }
)
_HIGHER = frozenset({"fraction", "score", "skill"})  # an error score is a grade, a detected fraction no latency


def lower_is_better(run: Run, name: str) -> bool:
    """Whether less is better: the run's own list (`lower_is_better` in metrics.json) decides where there is one."""
    declared = run.metrics.get("lower_is_better")
    if isinstance(declared, list):
        return name in declared
    words = set(re.split(r"[^a-z0-9]+", name.lower()))
    return bool(words & _LOWER) and not words & _HIGHER
