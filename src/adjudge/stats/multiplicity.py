"""Many tests at once: p values adjusted by Holm (any false alarm) or Benjamini–Hochberg (share of false alarms)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from adjudge.errors import StatsError


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjusted p values, in the order given; a null stays null and is not counted as a test.

    adjusted₍ᵢ₎ = max over j ≤ i of min(1, (m−j+1)·p₍ⱼ₎) (Holm 1979, Scand J Statist 6:65-70). Rejecting where
    adjusted ≤ α keeps the chance of any false rejection at or below α, whatever the dependence between the tests.
    """
    tested, p, order = _sorted(p_values)
    scale = np.arange(p.size, 0, -1)
    adjusted = np.minimum(np.maximum.accumulate(p * scale), 1.0)
    return _restore(len(p_values), tested, order, adjusted)


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Benjamini–Hochberg step-up adjusted p values, in the order given; a null stays null and is not counted as a test.

    adjusted₍ᵢ₎ = min over j ≥ i of min(1, m·p₍ⱼ₎/j) (Benjamini & Hochberg 1995, J R Statist Soc B 57:289-300).
    Rejecting where adjusted ≤ α keeps the expected share of false rejections at or below α for independent tests.
    """
    tested, p, order = _sorted(p_values)
    # p / (rank/m), not p·m/rank: the last factor is then exactly 1, and the largest p stays itself.
    scale = np.arange(1, p.size + 1) / p.size
    adjusted = np.minimum(np.minimum.accumulate((p / scale)[::-1])[::-1], 1.0)
    return _restore(len(p_values), tested, order, adjusted)


def _sorted(
    p_values: Sequence[float | None],
) -> tuple[list[int], npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    tested = [i for i, p in enumerate(p_values) if p is not None]
    p = np.array([p for p in p_values if p is not None], dtype=np.float64)
    if not ((p >= 0.0) & (p <= 1.0)).all():
        raise StatsError(f"p values lie between 0 and 1, not {p[~((p >= 0.0) & (p <= 1.0))][0]}")
    order = np.argsort(p, kind="stable")
    return tested, p[order], order


def _restore(
    size: int, tested: list[int], order: npt.NDArray[np.intp], adjusted: npt.NDArray[np.float64]
) -> list[float | None]:
    result: list[float | None] = [None] * size
    for rank, position in enumerate(order.tolist()):
        result[tested[position]] = float(adjusted[rank])
    return result
