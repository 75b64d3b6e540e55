"""Layout: which position of a sample's evidence holds which rule's atom; read from the rule table alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Position:
    """One place in a sample's evidence: the rule it belongs to, and its field, step, unit and bounds."""

    rule: dict[str, Any]
    slot: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Layout:
    """Every sample of a run has the same positions, so rule, field and step are known from the position."""

    rules: tuple[dict[str, Any], ...]
    positions: tuple[Position, ...]
    codes: tuple[str, ...]
    fields: tuple[str, ...]
    slot_code: NDArray[np.int16]
    slot_field: NDArray[np.int16]
    slot_step: NDArray[np.uint8]

    @classmethod
    def of(cls, rules: Sequence[dict[str, Any]]) -> Layout:
        """The layout of a rule table (the entries of rules.json)."""
        codes: list[str] = []
        for rule in rules:
            codes += [rule["code"], *(variant["code"] for variant in rule["variants"])]
        positions = [Position(rule, slot) for rule in rules for slot in rule["slots"]]
        fields = list(dict.fromkeys(p.slot["field"] for p in positions if p.slot["field"] is not None))
        where = {name: index for index, name in enumerate(fields)}
        return cls(
            rules=tuple(rules),
            positions=tuple(positions),
            codes=tuple(codes),
            fields=tuple(fields),
            slot_code=np.array([codes.index(p.rule["code"]) for p in positions], dtype=np.int16),
            slot_field=np.array([where.get(p.slot["field"], -1) for p in positions], dtype=np.int16),
            slot_step=np.array([p.slot["step"] for p in positions], dtype=np.uint8),
        )

    @property
    def width(self) -> int:
        """Atoms a sample."""
        return len(self.positions)

    def families(self) -> tuple[str, ...]:
        """The verifiers, in the order of the rule table."""
        return tuple(dict.fromkeys(rule["family"] for rule in self.rules))

    def positions_of(self, *names: str) -> NDArray[np.intp]:
        """The positions whose rule code or family is one of `names`."""
        chosen = [
            index
            for index, position in enumerate(self.positions)
            if position.rule["family"] in names or position.rule["code"] in names
        ]
        return np.array(chosen, dtype=np.intp)

    def describe(self, position: int) -> str:
        """A position in words: the rule, and the field it is about."""
        place = self.positions[position]
        field = place.slot["field"]
        return str(place.rule["code"]) + ("" if field is None else f" on {field}")
