"""Everything that changes a number of a check evaluation, typed and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from adjudge.agents.options import AgentOptions
from adjudge.errors import ConfigError
from adjudge.protocols.check.document import Document, load, parse
from adjudge.protocols.check.sandbox import MEMORY_MB, SECONDS
from adjudge.protocols.common.plan import check_choices, check_resamples, configured

LEAST_MEMORY_MB, MOST_MEMORY_MB = 100, 8000


class CheckConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The settings of one evaluation; `rule_file` is a file, its text with a name, or its content."""

    outputs: list[str] = []
    reference: list[str] = []
    rule_file: Any = None
    match: str = "id"
    repairs: bool = True
    rules: list[str] = []
    agent: str = "rules"
    agent_options: AgentOptions | None = None
    seconds: int = SECONDS
    memory_mb: int = MEMORY_MB
    seed: int = 0
    resamples: int = 2000


def config_of(options: Mapping[str, Any]) -> CheckConfig:
    """The options as settings; what is wrong with them is a ConfigError."""
    config = configured("check", options, CheckConfig)
    if not config.outputs:
        raise ConfigError("no outputs were given (--outputs FILE …)")
    check_choices(config, {"match": ("id", "line")})
    check_resamples(config.resamples)
    if config.seconds < 1:
        raise ConfigError(f"seconds is {config.seconds}, expected 1 or more")
    if not LEAST_MEMORY_MB <= config.memory_mb <= MOST_MEMORY_MB:
        raise ConfigError(f"memory_mb is {config.memory_mb}, expected {LEAST_MEMORY_MB} to {MOST_MEMORY_MB}")
    return config


def document_of(rule_file: Any) -> Document:
    """The rule file as a document: from disk, from the text that a run keeps, or from plain data."""
    if isinstance(rule_file, str):
        return load(rule_file)
    if isinstance(rule_file, dict) and rule_file.keys() == {"name", "yaml"}:
        return parse(str(rule_file["yaml"]), str(rule_file["name"]))
    if isinstance(rule_file, dict):
        return parse(msgspec.json.encode(rule_file).decode(), "rule_file")
    raise ConfigError("no rule file was given (--rules FILE); `adjudge check init OUTPUTS` makes a first one")
