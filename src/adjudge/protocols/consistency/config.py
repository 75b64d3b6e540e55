"""Everything that changes a number of the consistency protocol, typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from adjudge.errors import ConfigError
from adjudge.protocols.common.plan import check_choices, check_resamples, configured
from adjudge.protocols.consistency.encoding import MOST_FLAGS
from adjudge.protocols.consistency.policy import LABELS, RED_FLAGS

GATES = {"pa_gate": 0.90, "kappa_gate": 0.75, "abstain_gate": 0.02, "paired_gate": 0.99}
"""The bounds that hold where the configuration gives none."""
MOST_LABELS = 127
PATHS = ("pairs", "scholar", "auditor", "answers", "raters")


class ConsistencyConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Everything that changes a number. Of pairs: `policy` to `flag`; of raters: `labels` to `positive`."""

    pairs: list[str] = []
    scholar: list[str] = []
    auditor: list[str] = []
    answers: list[str] = []
    raters: list[str] = []
    policy: Any = None
    abstain_gate: float | None = None
    paired_gate: float | None = None
    reason_limit: int = 280
    map: dict[str, str] = {}
    flag: list[str] = []
    labels: list[str] | None = None
    ordered: bool = False
    reference: str | None = None
    positive: str | None = None
    on_bad_row: str = "error"
    pa_gate: float | None = None
    kappa_gate: float | None = None
    kappa_undefined: str = "unknown"
    rules: list[str] = []
    seed: int = 0
    resamples: int = 2000

    @property
    def flags(self) -> tuple[str, ...]:
        """Every flag that rejects an item, ours and the declared ones."""
        return (*RED_FLAGS, *self.flag)


_OF_PAIRS = ("policy", "abstain_gate", "paired_gate", "reason_limit", "map", "flag")
_OF_RATERS = ("labels", "ordered", "reference", "positive")
_DEFAULTS = ConsistencyConfig()


def config_of(options: Mapping[str, Any]) -> ConsistencyConfig:
    """The checked configuration; a setting that would have no effect is refused, never ignored."""
    config = configured("consistency", options, ConsistencyConfig)
    check_choices(config, {"on_bad_row": ("error", "skip"), "kappa_undefined": ("unknown", "pass")})
    check_resamples(config.resamples)
    _check_inputs(config)
    for name in _OF_PAIRS if config.raters else _OF_RATERS:
        if getattr(config, name) != getattr(_DEFAULTS, name):
            raise ConfigError(_without_effect(name, config))
    _check_words(config)
    return config


def _check_inputs(config: ConsistencyConfig) -> None:
    inputs = [name for name in ("pairs", "raters") if getattr(config, name)]
    inputs += ["scholar and auditor"] if config.scholar or config.auditor else []
    if len(inputs) != 1:
        named = " and ".join(inputs) or "none"
        raise ConfigError(f"expected one of --pairs, --scholar with --auditor, or --raters; found {named}")
    if bool(config.scholar) != bool(config.auditor):
        raise ConfigError("--scholar and --auditor come together: one file of each agent's labels")
    if config.answers and not config.scholar:
        raise ConfigError("--answers goes with --scholar and --auditor; a pairs file carries its own answers")


def _without_effect(name: str, config: ConsistencyConfig) -> str:
    flag = f"--{name.replace('_', '-')}"
    if config.raters:
        return f"{flag} is about pairs of a Scholar and an Auditor; with --raters only agreement is measured"
    if name == "labels":
        return (
            f"--labels goes with --raters; the labels of Scholar and Auditor are {', '.join(LABELS)}. "
            "--map OTHER=VALID counts another word as one of them"
        )
    return f"{flag} goes with --raters; pairs are decided by the policy"


def _check_words(config: ConsistencyConfig) -> None:
    if config.labels is not None and len(set(config.labels)) < max(2, len(config.labels)):
        raise ConfigError(f"labels are {', '.join(config.labels)}; a label space has two different labels or more")
    if config.labels is not None and len(config.labels) > MOST_LABELS:
        raise ConfigError(f"labels are {len(config.labels)}; a label space has at most {MOST_LABELS}")
    for word, label in config.map.items():
        if word in LABELS or label not in LABELS:
            what = f"{word} is a label of its own" if word in LABELS else f"{label} is not one of {', '.join(LABELS)}"
            raise ConfigError(f"--map {word}={label}: {what}")
    if len(set(config.flags)) < len(config.flags) or len(config.flags) > MOST_FLAGS or not all(config.flag):
        raise ConfigError(
            f"flags are {', '.join(config.flags)}; expected different names, at most {MOST_FLAGS} with our own two"
        )
