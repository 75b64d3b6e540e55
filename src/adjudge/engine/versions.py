"""Which versions made a run, and whether they are those at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.errors import ConfigError
from adjudge.evidence.registry import rule_sets
from adjudge.protocols.base import Protocol
from adjudge.provenance.manifest import Manifest, environment


def rule_versions(protocol: str, config: Mapping[str, Any]) -> dict[str, str]:
    """The versions of the rule sets of a run by name; none where a protocol has its rules elsewhere."""
    try:
        sets = rule_sets(protocol, tuple(config.get("rules") or ()))
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
