"""What a run of very many models leaves out or shares, so that time and memory grow gently; its notes say so."""

from __future__ import annotations

MOST_DETAILED = 500
"""Models that stand in sections, charts and profiles, and have random numbers of their own; every model has its estimates."""

MANY_MODELS = "all models"
"""The name of the random numbers that more models share: each is then resampled in the same way."""


def note(models: int, shown: int, what: str) -> str:
    """What is said of a run with more models than have details."""
    return (
        f"{what} show the first {shown} of {models:,} models by name; every model has its estimates, all resampled with the same "
        "random numbers"
    )
