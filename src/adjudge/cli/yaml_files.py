"""YAML files of the user: configurations, gates, rules."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from adjudge.errors import ConfigError

_YAML_DEPTH, _YAML_ALIASES = 50, 50


def read_yaml(path: str | Path) -> Any:
    """What a YAML file holds; one that is endless when its aliases are followed is refused."""
    import yaml

    try:
        text = Path(path).read_text(encoding="utf-8")
        _refuse_deep(path, yaml.parse(text, Loader=yaml.SafeLoader))
        return yaml.safe_load(text)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise ConfigError(f"{path}: is not YAML: {error}") from None


def _refuse_deep(path: str | Path, events: Iterable[Any]) -> None:
    from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

    depth = aliases = 0
    for event in events:
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        aliases += isinstance(event, AliasEvent)
        if depth > _YAML_DEPTH or aliases > _YAML_ALIASES:
            what = (
                f"nested deeper than {_YAML_DEPTH} levels" if depth > _YAML_DEPTH else f"over {_YAML_ALIASES} aliases"
            )
            raise ConfigError(f"{path}: is refused: {what}")
