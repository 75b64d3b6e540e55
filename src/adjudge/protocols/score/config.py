"""ScoreConfig: everything that changes a number of a score run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from adjudge.errors import ConfigError, InputError
from adjudge.protocols.common.plan import check_bins, check_resamples, configured
from adjudge.provenance.canonical import canonical
from adjudge.readers.logs.formats import find_logs
from adjudge.readers.logs.record import MOST_CHECKS, Log

_MOST_K = 1000


class ScoreConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The options of `adjudge score`. `sources` are found in the `logs`, not given."""

    logs: list[str] = []
    sources: list[Log] | None = None
    truth: list[str] = []
    scorer: str | None = None
    pass_at: float | None = None
    range: list[float] = msgspec.field(default_factory=lambda: [0.0, 1.0])
    wide: list[str] = []
    model: str | None = None
    task: str | None = None
    k: list[int] = []
    slices: list[str] = []
    bins: int = 10
    rules: list[str] = []
    seed: int = 0
    resamples: int = 2000

    @property
    def checks(self) -> list[str]:
        """The names of all scores that the sources report, each once."""
        names = dict.fromkeys(name for source in self.sources or () for name in source.checks)
        return list(names)[:MOST_CHECKS]

    @property
    def decided(self) -> bool:
        """Whether some log's own verdicts are taken: it has such, and the user gave no threshold."""
        return self.pass_at is None and any(source.decides for source in self.sources or ())


def config_of(options: Mapping[str, Any]) -> ScoreConfig:
    """The configuration, checked; a single name is a list of one, and the logs are looked at."""
    settings = dict(options)
    for key in ("logs", "truth", "wide", "slices"):
        if isinstance(settings.get(key), str):
            settings[key] = settings[key].split(",") if key == "wide" else [settings[key]]
    config = configured("score", settings, ScoreConfig)
    _check(config)
    if config.sources is None:
        config.sources = find_logs(config.logs, scorer=config.scorer)
        for source in config.sources:
            _check_conditions(source)
    return config


def _check_conditions(source: Log) -> None:
    """What stands under a log's settings may be anything; what a manifest cannot carry is refused with its file."""
    try:
        canonical(source.conditions)
    except ConfigError as error:
        raise InputError(f"cannot be kept as it is: among its settings {error}", file=source.path) from None
    except RecursionError:
        raise InputError("cannot be kept as it is: its settings are nested too deep", file=source.path) from None


def _check(config: ScoreConfig) -> None:
    if not config.logs:
        raise ConfigError("no log was given (adjudge score FILE …)")
    if len(config.range) != 2 or not config.range[0] < config.range[1] or not all(map(math.isfinite, config.range)):
        raise ConfigError(f"range is {config.range}, expected the least and the greatest score, such as 0 1")
    if config.pass_at is not None and not math.isfinite(config.pass_at):
        raise ConfigError(f"pass_at is {config.pass_at}, expected a number")
    check_bins(config.bins)
    if any(not 1 <= k <= _MOST_K for k in config.k):
        raise ConfigError(f"k is {config.k}, expected whole numbers from 1 to {_MOST_K}")
    if len(set(config.wide)) < len(config.wide) or not all(config.wide):
        raise ConfigError("--wide names columns, each a model and each once: --wide model_a,model_b")
    if any(not name.removeprefix("meta.") for name in config.slices):
        raise ConfigError("a slice names a key of `meta`, such as meta.source")
    check_resamples(config.resamples)
