"""Everything that changes a number of a flight evaluation, typed and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from adjudge.errors import ConfigError
from adjudge.protocols.common.plan import check_choices, check_resamples, configured
from adjudge.protocols.flight.fields import TASKS
from adjudge.protocols.flight.library import DEFAULT


class FlightConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The settings of one evaluation."""

    task: str
    outputs: list[str]
    reference: list[str] = []
    confidence: dict[str, float] | None = None
    library: Any = DEFAULT
    scores: str = "both"
    match: str = "id"
    top_k: int = 5
    repairs: bool = True
    rules: list[str] = []
    agent: str = "rules"
    seed: int = 0
    resamples: int = 2000


def config_of(options: Mapping[str, Any]) -> FlightConfig:
    """The options as settings; what is wrong with them is a ConfigError."""
    config = configured("flight", options, FlightConfig)
    if config.task not in TASKS:
        raise ConfigError(f"task {config.task!r} is not one of {', '.join(TASKS)}")
    if not config.outputs:
        raise ConfigError("no outputs were given (--outputs FILE …)")
    check_choices(config, {"scores": ("fixed", "rubric", "both"), "match": ("id", "line")})
    if config.top_k < 1:
        raise ConfigError(f"top_k is {config.top_k}, expected 1 or more")
    check_resamples(config.resamples)
    return config
