"""Two runs of one configuration, headline metric by headline metric."""

from __future__ import annotations

from typing import Any, NamedTuple

from adjudge.protocols.anomaly.measure import PRIMARY


class Difference(NamedTuple):
    """One headline metric in both runs, and whether the second holds the first."""

    name: str
    first: float | None
    again: float | None
    holds: bool

    @property
    def text(self) -> str:
        """The difference in words."""
        if self.first is None or self.again is None:
            return f"{self.first} then {self.again}"
        return f"{self.first:.6g} then {self.again:.6g}, difference {self.again - self.first:.6g}"


def differences(first: dict[str, Any], again: dict[str, Any], tolerance: float) -> list[Difference]:
    """Every headline metric; both null holds, one null does not."""
    rows = [Difference("valid", float(first["valid"]), float(again["valid"]), first["valid"] == again["valid"])]
    for name in PRIMARY:
        a, b = first["metrics"].get(name), again["metrics"].get(name)
        if isinstance(a, dict) and isinstance(b, dict):
            rows += [_row(f"{name}.{key}", a.get(key), b.get(key), tolerance) for key in a]
        elif not isinstance(a, dict) and not isinstance(b, dict):
            rows.append(_row(name, a, b, tolerance))
        else:
            rows.append(Difference(name, None, None, holds=False))
    return rows


def _row(name: str, a: float | None, b: float | None, tolerance: float) -> Difference:
    if a is None or b is None:
        return Difference(name, a, b, a is None and b is None)
    return Difference(name, a, b, abs(b - a) <= tolerance * abs(a))
