"""The configuration of an anomaly run: everything that changes a number, checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from adjudge.errors import ConfigError
from adjudge.protocols.anomaly.rows import UNITS, DataOptions
from adjudge.protocols.common.plan import MOST_RESAMPLES, check_choices, configured

PRIMARY = (
    "auroc",
    "recall_at_1pct_fpr",
    "recall_at_5pct_fpr",
    "recall",
    "precision",
    "f1",
    "fpr",
    "detection_latency_ms",
)
"""The metrics that the contract demands."""


class DetectorConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One of several detectors: its class, its options, and its name in the report."""

    detector: str
    options: dict[str, Any] = {}
    name: str | None = None
    causal: bool = True

    @property
    def label(self) -> str:
        """Its name in the run."""
        return self.name or self.detector


class AnomalyConfig(DataOptions, msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Everything that changes a number, and what the run keeps."""

    splits: Any
    scores: str | None = None
    data: str | None = None
    catalog: Any = None
    detector: str | None = None
    detector_options: dict[str, Any] = {}
    detectors: list[str | DetectorConfig] | None = None
    causal: bool = True
    name: str | None = None
    target_fpr: float = 0.01
    n_consecutive: Any = 5
    threshold: float | None = None
    metrics: list[str] | None = None
    resamples: int = 2000
    level: float = 0.95
    seed: int = 0
    code: list[str] = []
    show_invalid: bool = False
    leave_one_flight_out: bool = False
    refit_check: bool = True
    no_scores: bool = False

    @property
    def left_out(self) -> list[str]:
        """The primary metrics that `metrics` does not name."""
        return [] if self.metrics is None else [name for name in PRIMARY if name not in self.metrics]

    def judged(self) -> list[DetectorConfig]:
        """The detectors to judge; of a scores file, the one that made it."""
        if self.detectors is not None:
            return [DetectorConfig(detector=item) if isinstance(item, str) else item for item in self.detectors]
        chosen = self.detector or Path(self.scores or "scores").name.partition(".")[0]
        return [DetectorConfig(detector=chosen, options=self.detector_options, name=self.name, causal=self.causal)]


def parse(options: Mapping[str, Any]) -> AnomalyConfig:
    """A configuration from plain data; a wrong one is a ConfigError."""
    settings = configured("anomaly", options, AnomalyConfig)
    if (settings.scores is None) == (settings.data is None):
        raise ConfigError("give either --scores (the detector ran elsewhere) or data with a detector (--config)")
    if not 0 < settings.target_fpr < 1:
        raise ConfigError(f"target_fpr is {settings.target_fpr}, expected a share between 0 and 1 (0.01 is 1 %)")
    if not 0 <= settings.overlap_bound < 1:
        raise ConfigError(f"overlap_bound is {settings.overlap_bound}, expected a share from 0 below 1 (0.01 is 1 %)")
    allowed = {"fill": ("forward",), "time_unit": tuple(UNITS)}
    check_choices(settings, {name: words for name, words in allowed.items() if getattr(settings, name) is not None})
    if not 1 <= settings.resamples <= MOST_RESAMPLES:
        raise ConfigError(f"resamples is {settings.resamples}, expected 1 to {MOST_RESAMPLES:,}")
    if settings.metrics is not None and (unknown := set(settings.metrics) - set(PRIMARY)):
        raise ConfigError(f"metrics: {', '.join(sorted(unknown))} is none of {', '.join(PRIMARY)}")
    _check_detectors(settings)
    return settings


def _check_detectors(settings: AnomalyConfig) -> None:
    several = settings.detectors
    if settings.data is not None and settings.detector is None and several is None:
        raise ConfigError("data needs a detector (adjudge anomaly init writes a configuration)")
    if settings.data is None and (several is not None or settings.leave_one_flight_out):
        asked = "detectors" if several is not None else "leave_one_flight_out"
        raise ConfigError(f"{asked} needs data: a scores file holds what one detector gave")
    if several is None:
        return
    if settings.detector is not None or settings.detector_options or settings.name is not None:
        raise ConfigError("give detector or detectors, not both (each of detectors takes its own options and name)")
    names = [item.label for item in settings.judged()]
    if not names:
        raise ConfigError("detectors is empty")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"detectors: {', '.join(twice)} is there twice; give each its own name")
