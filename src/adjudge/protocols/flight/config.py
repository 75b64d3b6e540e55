"""Everything that changes a number of a flight evaluation, typed and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from adjudge.agents.options import AgentOptions
from adjudge.errors import ConfigError
from adjudge.protocols.common.plan import check_choices, check_resamples, configured
from adjudge.protocols.flight.fields import TASKS
from adjudge.protocols.flight.library import DEFAULT
from adjudge.protocols.flight.priors import priors_of


class FlightConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The settings of one evaluation; `task` may name several, as in S1,M1,M3."""

    task: str
    outputs: list[str]
    reference: list[str] = []
    confidence: dict[str, Any] | None = None
    library: Any = DEFAULT
    scores: str = "both"
    match: str = "id"
    offset: dict[str, int] | int = 0
    top_k: int = 5
    repairs: bool = True
    rules: list[str] = []
    agent: str = "rules"
    agent_options: AgentOptions | None = None
    seed: int = 0
    resamples: int = 2000

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that are judged, in the order of the method."""
        asked = [name.strip() for name in self.task.split(",")]
        return tuple(name for name in TASKS if name in asked)

    def offset_of(self, task: str) -> int:
        """How many reference lines come before the one that belongs to the first output, with --match line."""
        return self.offset if isinstance(self.offset, int) else self.offset.get(task, 0)

    def prior(self, model: str) -> dict[str, Any] | None:
        """The confidence prior of a model, in the method's own shape; no score reads it."""
        prior: dict[str, Any] | None = (self.confidence or {}).get(model)
        return prior


def config_of(options: Mapping[str, Any]) -> FlightConfig:
    """The options as settings; what is wrong with them is a ConfigError."""
    config = configured("flight", options, FlightConfig)
    unknown = [name for name in config.task.split(",") if name.strip() not in TASKS]
    if unknown:
        raise ConfigError(f"task {unknown[0].strip()!r} is not one of {', '.join(TASKS)}; several are joined by commas")
    config.task = ",".join(config.tasks)
    if config.confidence is not None:
        config.confidence = priors_of(config.confidence, config.tasks)
    if not config.outputs:
        raise ConfigError("no outputs were given (--outputs FILE …)")
    check_choices(config, {"scores": ("fixed", "rubric", "both"), "match": ("id", "line")})
    if config.top_k < 1:
        raise ConfigError(f"top_k is {config.top_k}, expected 1 or more")
    if config.offset and config.match != "line":
        raise ConfigError("offset counts lines of the reference, so it needs --match line")
    if any(config.offset_of(task) < 0 for task in TASKS):
        raise ConfigError(f"offset is {config.offset}, expected 0 or more")
    check_resamples(config.resamples)
    return config
