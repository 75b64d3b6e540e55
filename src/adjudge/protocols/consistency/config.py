"""Everything that changes a number of the consistency protocol, typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from adjudge.errors import ConfigError
from adjudge.protocols.common.plan import check_choices, check_resamples, configured
from adjudge.protocols.consistency.policy import DEFAULT

GATES = {"pa_gate": 0.90, "kappa_gate": 0.75, "abstain_gate": 0.02}
"""The bounds that hold where the configuration gives none."""
MOST_LABELS = 127
PATHS = ("pairs", "scholar", "auditor", "answers", "raters")


class ConsistencyConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Everything that changes a number."""

    pairs: list[str] = []
    scholar: list[str] = []
    auditor: list[str] = []
    answers: list[str] = []
    raters: list[str] = []
    labels: list[str] | None = None
    ordered: bool = False
    reference: str | None = None
    positive: str | None = None
    policy: Any = DEFAULT
    on_bad_row: str = "error"
    pa_gate: float | None = None
    kappa_gate: float | None = None
    abstain_gate: float | None = None
    kappa_undefined: str = "unknown"
    reason_limit: int = 280
    rules: list[str] = []
    seed: int = 0
    resamples: int = 2000


def config_of(options: Mapping[str, Any]) -> ConsistencyConfig:
    """The checked configuration."""
    config = configured("consistency", options, ConsistencyConfig)
    check_choices(config, {"on_bad_row": ("error", "skip"), "kappa_undefined": ("unknown", "pass")})
    check_resamples(config.resamples)
    if config.labels is not None and len(set(config.labels)) < max(2, len(config.labels)):
        raise ConfigError(f"labels are {', '.join(config.labels)}; a label space has two different labels or more")
    if config.labels is not None and len(config.labels) > MOST_LABELS:
        raise ConfigError(f"labels are {len(config.labels)}; a label space has at most {MOST_LABELS}")
    inputs = [name for name in ("pairs", "raters") if getattr(config, name)]
    inputs += ["scholar and auditor"] if config.scholar or config.auditor else []
    if len(inputs) != 1:
        named = " and ".join(inputs) or "none"
        raise ConfigError(f"expected one of --pairs, --scholar with --auditor, or --raters; found {named}")
    if bool(config.scholar) != bool(config.auditor):
        raise ConfigError("--scholar and --auditor come together: one file of each agent's labels")
    if config.answers and not config.scholar:
        raise ConfigError("--answers goes with --scholar and --auditor; a pairs file carries its own answers")
    return config
