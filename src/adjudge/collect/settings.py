"""Settings: how a data set is run over subjects, and what of that stands on every record."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from adjudge.errors import ConfigError

_MODES = {"tools": (True,), "no-tools": (False,), "on": (True,), "off": (False,), "both": (True, False)}


@dataclass(frozen=True)
class Settings:
    """Everything about a collection that is not the data set or a subject. `modes` holds True for tools."""

    modes: tuple[bool, ...] = (False,)
    trials: int = 1
    temperature: float | None = 0.0
    seed: int | None = None
    workers: int = 6
    timeout: float = 60.0
    retries: int = 3
    backoff: float = 0.5
    longest_wait: float = 120.0
    settings: dict[str, Any] = field(default_factory=dict)
    """What subjects are told beside the question, such as `vision_model`; recorded with every answer."""

    def __post_init__(self) -> None:
        for name, least in (("trials", 1), ("workers", 1), ("retries", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"--{name} is {getattr(self, name)}, expected {least} or more")
        if not (self.timeout > 0 and math.isfinite(self.timeout)):
            raise ConfigError(f"--timeout is {self.timeout}, expected a number of seconds above 0")
        if self.temperature is not None and not (self.temperature >= 0 and math.isfinite(self.temperature)):
            raise ConfigError(f"--temperature is {self.temperature}, expected 0 or more")
        if not self.modes or len(set(self.modes)) != len(self.modes):
            raise ConfigError("--modes must name tools, no-tools or both, each once")

    def parameters(self, use_tools: bool, trial: int) -> dict[str, Any]:
        """What shapes an answer, for the cache key."""
        asked = {"temperature": self.temperature, "seed": self.request_seed(trial), "use_tools": use_tools}
        return asked | ({"settings": self.settings} if self.settings else {})

    def request_seed(self, trial: int) -> int | None:
        """The seed that a request carries: another one each trial."""
        return None if self.seed is None else self.seed + trial

    def record_config(self) -> dict[str, Any]:
        """What stands under `run_config`."""
        return {
            "temperature": self.temperature,
            "seed": self.seed,
            "workers": self.workers,
            "timeout_seconds": self.timeout,
            "retries": self.retries,
            **self.settings,
        }


def modes_of(text: str) -> tuple[bool, ...]:
    """The modes of `tools,no-tools`, or of the method's words `on`, `off`, `both`."""
    words = [word.strip() for word in text.split(",")]
    unknown = [word for word in words if word not in _MODES]
    if unknown:
        raise ConfigError(f"--modes {text!r}: {unknown[0]!r} is not one of {', '.join(_MODES)}")
    return tuple(mode for word in words for mode in _MODES[word])
