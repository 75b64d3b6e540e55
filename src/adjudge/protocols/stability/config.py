"""Everything that changes a number of the stability protocol, typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from adjudge.errors import ConfigError
from adjudge.protocols.common.plan import check_resamples, configured

BOUNDS = {"acr": 0.95, "cghc": 0.95, "css": 0.70, "ned50": 0.20, "scu": 1.0, "rcr": 0.98}
"""The bounds that hold where the configuration gives none."""


class StabilityConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Everything that changes a number."""

    gold: list[str] = []
    runs: list[str] = []
    min_runs: int = 2
    bounds: dict[str, float] = {}
    rules: list[str] = []
    seed: int = 0
    resamples: int = 2000


def config_of(options: Mapping[str, Any]) -> StabilityConfig:
    """The checked configuration, with a bound for every measure."""
    config = configured("stability", options, StabilityConfig)
    for name in ("gold", "runs"):
        if not getattr(config, name):
            raise ConfigError(f"no {name} file was given (--{name} FILE)")
    unknown = set(config.bounds) - set(BOUNDS)
    if unknown:
        raise ConfigError(f"there is no measure {min(unknown)!r}; the measures are {', '.join(BOUNDS)}")
    if config.min_runs < 1:
        raise ConfigError(f"min_runs is {config.min_runs}, expected 1 or more")
    check_resamples(config.resamples)
    config.bounds = BOUNDS | config.bounds
    return config
