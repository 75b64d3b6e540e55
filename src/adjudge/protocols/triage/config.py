"""TriageConfig: everything that changes a number of a triage run."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, count
from pathlib import Path
from typing import Any

import msgspec

from adjudge.errors import ConfigError
from adjudge.protocols.common.plan import check_bins, check_choices, check_resamples, configured
from adjudge.protocols.triage.words import Classes, verdict_words

MODES = ("no-tools", "tools")
SOURCES = ("models", "run_config", "prompt_hashes")
"""Where a record tells facts of the system that made it."""


class Costs(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a slip, a false flag and a review by a person cost, in any one unit."""

    slip: float
    flag: float
    review: float


class TriageConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The options of `adjudge triage`. `results` has one list of files a run; `operating` is found, not given."""

    results: list[list[str]]
    manifest: list[str] = []
    calibration: list[str] = []
    target_risk: float | None = None
    risk: str = "error"
    costs: Costs | None = None
    slices: list[str] = []
    split_by: list[str] = []
    positive: str = "fake"
    negative: str = "real"
    words: dict[str, str] = {}
    model: str = "unnamed"
    mode: str = "no-tools"
    percent: bool = False
    strip_labels: bool = False
    bad_confidence: str = "refuse"
    unmatched: str = "refuse"
    prevalence: float | None = None
    bins: int = 10
    rules: list[str] = []
    seed: int = 0
    resamples: int = 2000
    operating: dict[str, Any] | None = None

    def classes(self) -> Classes:
        """The two class names."""
        return Classes(self.positive, self.negative)

    def run_names(self) -> list[str | None]:
        """The name of each run: none for the first, for further ones that of their first file, made different."""
        names: list[str | None] = [None]
        for files in self.results[1:]:
            stem = Path(files[0]).name.partition(".")[0] or "stdin"
            choices = chain([stem], (f"{stem}-{number}" for number in count(2)))
            names.append(next(name for name in choices if name not in names))
        return names


def config_of(options: Mapping[str, Any]) -> TriageConfig:
    """The configuration, checked; a flat list of results is one run, a single file name one file."""
    settings = dict(options)
    for key in ("manifest", "calibration", "slices", "split_by"):
        if isinstance(settings.get(key), str):
            settings[key] = [settings[key]]
    results = settings.get("results", [])
    if isinstance(results, str):
        results = [results]
    if isinstance(results, list) and all(isinstance(item, str) for item in results):
        results = [results] if results else []
    settings["results"] = results
    config = configured("triage", settings, TriageConfig)
    _check(config)
    return config


def _check(config: TriageConfig) -> None:
    if not config.results or not all(config.results):
        raise ConfigError("no results were given (--results FILE …)")
    check_choices(
        config,
        {
            "mode": MODES,
            "bad_confidence": ("refuse", "count"),
            "unmatched": ("refuse", "ignore"),
            "risk": ("error", "slip"),
        },
    )
    for name, share in (("target_risk", config.target_risk), ("prevalence", config.prevalence)):
        if share is not None and not 0.0 < share < 1.0:
            raise ConfigError(f"{name} is {share}, expected a share between 0 and 1, such as 0.05")
    check_bins(config.bins)
    check_resamples(config.resamples)
    chosen = config.target_risk is not None or config.costs is not None
    if bool(config.calibration) != chosen or (config.target_risk is not None and config.costs is not None):
        raise ConfigError(
            "an operating point needs a calibration file (--calibration) and either --target-risk or --costs"
        )
    if config.costs is not None and min(config.costs.slip, config.costs.flag, config.costs.review) < 0:
        raise ConfigError("costs are not negative")
    shared = set(config.calibration) & {file for files in config.results for file in files}
    if shared:
        raise ConfigError(f"{min(shared)} is both calibration and results; a threshold is never chosen on the test")
    if any(not name.removeprefix("meta.") for name in config.slices):
        raise ConfigError("a slice names a key of `meta`, such as meta.source")
    for fact in config.split_by:
        if fact.partition(".")[0] not in SOURCES or not fact.partition(".")[2]:
            raise ConfigError(
                f"split_by names {fact!r}, expected a fact of the records such as models.vision, run_config.temperature or "
                "prompt_hashes.system"
            )
    verdict_words(config.classes(), config.words)
