"""A plan in another process: rebuilt there from its configuration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from adjudge.protocols.base import Plan, protocol
from adjudge.provenance.canonical import canonical


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
    import msgspec

    return protocol(recipe.protocol).plan(msgspec.json.decode(recipe.config))
