"""Policies: the decision tables that turn two labels, flags and citations into what ships."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from adjudge.errors import ConfigError
from adjudge.readers.settings import text_of, yaml_of
from adjudge.verdict.decision import DecisionTable, load_table

LABELS = ("VALID", "NOT_IN_CONTEXT", "REJECT", "ABSTAIN")
FINALS = ("VALID", "NOT_IN_CONTEXT", "REJECT")
REJECT = "REJECT"
RED_FLAGS = ("provenance_violation", "constraints_mismatch")
"""The flags that every run knows; a configuration may declare more."""
FLAG = ("none", "raised")
CITATIONS = ("none", "in_scope", "out_of_scope", "unverifiable")
CLAIM = ("other", "refusal_token")
INPUTS = {"hard_flag": FLAG, "citations": CITATIONS, "scholar": LABELS, "auditor": LABELS, "claim": CLAIM}
BUILT_IN = ("strict", "refusal-aware")
DEFAULT = "strict"


@dataclass(frozen=True)
class Policy:
    """A checked table and the plain data it was read from."""

    table: DecisionTable
    content: dict[str, Any]


def load(name: str) -> Policy:
    """A built-in policy by name, or a YAML file of one's own."""
    return check(yaml_of(policy_text(name), name), name)


def check(content: Any, where: str) -> Policy:
    """A policy from plain data."""
    return Policy(load_table(content, where, INPUTS, FINALS), content)


def policy_text(name: str) -> str:
    """The YAML of a policy, as written."""
    if name in BUILT_IN:
        return resources.files(__package__).joinpath(f"policies/{name}.yaml").read_text(encoding="utf-8")
    path = Path(name)
    if not path.is_file():
        raise ConfigError(f"policy {name!r} is neither a file nor one of {', '.join(BUILT_IN)}")
    return text_of(path)
