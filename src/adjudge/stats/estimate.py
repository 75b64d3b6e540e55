"""Estimate: a number with its interval, or null with the reason; what every measure returns."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec


class Estimate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """A value with its interval, or null with `why`. It has no arithmetic: sums of estimates are not estimates.

    `n` is the number of units the value rests on, `method` names the interval, `seed` the resampling behind it,
    `warnings` what a reader must know before trusting it (too few clusters, …).
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    n: int = 0
    method: str = ""
    seed: int | None = None
    why: str | None = None
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("value", "low", "high"):
            number = getattr(self, name)
            if number is not None and not math.isfinite(number):
                raise ValueError(f"Estimate.{name} is {number}; a number that does not exist is None with a reason")
        if self.value is None and not self.why:
            raise ValueError("an Estimate without a value must say why")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"Estimate interval is upside down: {self.low} > {self.high}")

    @classmethod
    def null(cls, why: str, *, n: int = 0, level: float = 0.95, method: str = "") -> Estimate:
        """An estimate that could not be made, and the reason."""
        return cls(value=None, why=why, n=n, level=level, method=method)

    def mapped(self, rising: Callable[[float], float]) -> Estimate:
        """The estimate of a rising function of the value: its interval has the function of both ends."""
        ends = {name: getattr(self, name) for name in ("value", "low", "high")}
        return msgspec.structs.replace(
            self, **{name: None if end is None else rising(end) for name, end in ends.items()}
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data, full precision."""
        return {**msgspec.structs.asdict(self), "warnings": list(self.warnings)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Estimate:
        """The estimate that `to_dict` wrote; unknown keys (name, slice) are left to the caller."""
        known = {key: data[key] for key in cls.__struct_fields__ if key in data}
        known["warnings"] = tuple(known.get("warnings") or ())
        return cls(**known)
