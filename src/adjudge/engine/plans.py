"""A plan made again: in another process from its configuration, or later, by the versions at hand or others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from adjudge.errors import ConfigError
from adjudge.evidence.rule import rule_sets
from adjudge.protocols.base import Plan, Protocol, protocol
from adjudge.provenance.canonical import canonical
from adjudge.provenance.manifest import Manifest, environment

MOST_PARTIALS = 12
"""Of batches, at a time; a plan folds them then."""


@dataclass(frozen=True)
class Recipe:
    """What crosses to a worker instead of a plan."""

    protocol: str
    config: bytes


def recipe(name: str, plan: Plan) -> Recipe:
    """The recipe of a plan."""
    return Recipe(name, canonical(plan.config))


@lru_cache(maxsize=2)
def plan_of(recipe: Recipe) -> Plan:
    """The plan of a recipe, made once a process."""
    return protocol(recipe.protocol).plan(msgspec.json.decode(recipe.config))


def rule_versions(name: str, config: Mapping[str, Any]) -> dict[str, str]:
    """The versions of the rule sets of a run by name; none where a protocol has its rules elsewhere."""
    try:
        sets = rule_sets(name, tuple(config.get("rules") or ()))
    except ConfigError:
        return {}
    return {rules.name: rules.version for rules in sets}


def made_by_another(manifest: Manifest, chosen: Protocol) -> str | None:
    """What made a run, in words, where it is not what is installed here; None where it is."""
    parts = []
    if manifest.environment.get("adjudge") != (ours := environment()["adjudge"]):
        parts.append(f"adjudge {manifest.environment.get('adjudge', 'unknown')} (here {ours})")
    if manifest.protocol_version != chosen.version:
        parts.append(f"{chosen.name} {manifest.protocol_version} (here {chosen.version})")
    if manifest.rule_versions:
        ours_by_name = rule_versions(chosen.name, manifest.config)
        parts += [
            f"rules {name} {version} (here {ours_by_name.get(name, 'not installed')})"
            for name, version in manifest.rule_versions.items()
            if ours_by_name.get(name) != version
        ]
    return ", ".join(parts) or None
