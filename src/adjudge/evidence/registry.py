"""Finding rule sets: ours and a user's enter by the same door, the entry-point group `adjudge.rules`."""

from __future__ import annotations

from adjudge.errors import ConfigError
from adjudge.evidence.rule import RuleSet
from adjudge.plugins import plugin, plugin_names

GROUP = "adjudge.rules"


def rule_sets(protocol: str, names: tuple[str, ...]) -> list[RuleSet]:
    """The named rule sets of a protocol, its own first, then the added ones by name, each once."""
    chosen: list[RuleSet] = []
    for name in dict.fromkeys((protocol, *sorted(names))):
        entry = plugin(GROUP, name)
        if entry is None:
            known = ", ".join(plugin_names(GROUP)) or "none"
            raise ConfigError(
                f"there is no rule set {name!r} (installed: {known}); rule sets are entry points of {GROUP}"
            )
        rules = entry.load()
        if not isinstance(rules, RuleSet):
            raise ConfigError(f"entry point {name!r} of {GROUP} is a {type(rules).__name__}, expected a RuleSet")
        if rules.protocol != protocol:
            raise ConfigError(f"rule set {name!r} is for protocol {rules.protocol!r}, not {protocol!r}")
        chosen.append(rules)
    return chosen
