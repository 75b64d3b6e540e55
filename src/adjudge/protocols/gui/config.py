"""Everything that changes a number of the gui protocol, typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from adjudge.errors import ConfigError
from adjudge.protocols.common.plan import check_choices, check_resamples, configured
from adjudge.readers.gui.model import BOXES, SPACES

MODES = ("coord", "som")
# What the exported evaluation JSON says about the run, and no number depends on.
ABOUT = ("eval_timestamp", "training_timestamp", "checkpoint_path", "device", "gpu_model", "memory_gb")


class GuiConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Everything that changes a number."""

    episodes: list[str]
    predictions: list[str]
    space: str
    bbox: str
    outcomes: list[str] = []
    dsl_mode: str = "coord"
    click_radius: float = 0.05
    text: str = "exact"
    types: list[str] = []
    unmatched: str = "refuse"
    config_path: str = "unknown"
    backend: str = "unknown"
    model: str = ""
    about: dict[str, str | float] = {}
    rules: list[str] = []
    seed: int = 0
    resamples: int = 2000


def config_of(options: Mapping[str, Any]) -> GuiConfig:
    """The checked configuration."""
    config = configured("gui", options, GuiConfig)
    for role in ("episodes", "predictions"):
        if not getattr(config, role):
            raise ConfigError(f"no {role} were given (--{role} FILE …)")
    check_choices(
        config,
        {
            "space": SPACES,
            "bbox": BOXES,
            "dsl_mode": MODES,
            "text": ("exact", "normalized"),
            "unmatched": ("refuse", "report"),
        },
    )
    if not 0 < config.click_radius <= 1:
        raise ConfigError(f"click_radius is {config.click_radius:g}, expected a share of the screen in (0, 1]")
    unknown = sorted(config.about.keys() - set(ABOUT))
    if unknown:
        raise ConfigError(f"about has {unknown[0]!r}, expected some of {', '.join(ABOUT)}")
    check_resamples(config.resamples)
    config.model = config.model or config.backend
    config.types = sorted({name.strip().lower() for name in config.types if name.strip()})
    return config


class GroundingConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Everything that changes a number of a grounding run."""

    records: list[str]
    space: str
    bbox: str
    k: list[int] = msgspec.field(default_factory=lambda: [1, 3, 5])
    slices: list[str] = msgspec.field(default_factory=lambda: ["platform", "ui_type"])
    model: str = "model"
    rules: list[str] = []
    seed: int = 0
    resamples: int = 2000


def grounding_config_of(options: Mapping[str, Any]) -> GroundingConfig:
    """The checked configuration."""
    config = configured("gui", options, GroundingConfig)
    if not config.records:
        raise ConfigError("no records were given (--records FILE …)")
    check_choices(config, {"space": SPACES, "bbox": BOXES})
    check_resamples(config.resamples)
    config.k, config.slices = sorted(set(config.k)), list(dict.fromkeys(config.slices))
    if not config.k or config.k[0] < 1:
        raise ConfigError("k is 1 or more")
    return config
