"""The rows of the speed table, whatever benchmark they come from, and how they are shown."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

HEAD = ("job", "size", "per CPU s", "CPU s", "peak MB", "against", "ratio", "equal", "target", "")
SIGNS = {True: "met", False: "MISSED", None: ""}
LEAST_SECONDS = 1.0
WHOLE = "read to written"
"""How the names of whole evaluations end; with small sizes these mostly import modules and load compiled loops."""
EQUAL = {True: "yes", False: "NO", None: "–"}


@dataclass(frozen=True)
class Row:
    """What one job took, beside a baseline that was timed in the same run.

    `ratio` is the CPU of the baseline over ours for equally much work, so more is better everywhere. `equal` says whether
    both found the same and is None where there is nothing to compare; `met` is None where the row has no target.
    """

    name: str
    size: int
    unit: str
    cpu_seconds: float
    peak_mb: float | None = None
    against: str | None = None
    ratio: float | None = None
    equal: bool | None = None
    target: str | None = None
    met: bool | None = None
    pieces: int | None = None
    """What the rate counts, where that is not the size."""

    @property
    def key(self) -> tuple[str, str | None]:
        """By what a row is found in an earlier table."""
        return self.name, self.against

    @property
    def share(self) -> float:
        """How far the ratio may fall in the quick table: to half, and to a third where start-up is most of the time."""
        return 1 / 3 if self.name.endswith(WHOLE) or self.unit == "start" else 1 / 2

    @property
    def rate(self) -> float:
        """Pieces a second of CPU."""
        return (self.size if self.pieces is None else self.pieces) / self.cpu_seconds

    @property
    def good(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.met is not False and self.equal is not False

    def cells(self) -> list[str]:
        """The columns of `HEAD`."""
        return [
            self.name,
            f"{self.size:,} {self.unit}",
            f"{self.rate:,.0f}" if self.rate >= 100 else f"{self.rate:.3g}",
            f"{self.cpu_seconds:.3g}" if self.cpu_seconds < 100 else f"{self.cpu_seconds:,.0f}",
            "–" if self.peak_mb is None else f"{self.peak_mb:,.0f}",
            self.against or "–",
            "–" if self.ratio is None else times(self.ratio),
            EQUAL[self.equal],
            self.target or "–",
            SIGNS[self.met],
        ]


@dataclass(frozen=True)
class Bound:
    """A target that is no ratio of two times: memory, bytes an atom, the gain of a second worker."""

    what: str
    reached: float
    target: str
    met: bool

    def __str__(self) -> str:
        return f"{SIGNS[self.met]}: {self.what} {self.reached:,.2f} ({self.target})"


@dataclass(frozen=True)
class Results:
    """The rows and other bounds of some jobs, and the jobs that broke off."""

    rows: tuple[Row, ...] = ()
    bounds: tuple[Bound, ...] = ()
    failed: tuple[str, ...] = ()

    def __add__(self, other: Results) -> Results:
        return Results(self.rows + other.rows, self.bounds + other.bounds, self.failed + other.failed)

    @property
    def good(self) -> bool:
        """Whether every job ended, every target is met and every comparison equal."""
        return not self.failed and all(row.good for row in self.rows) and all(bound.met for bound in self.bounds)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def of(cls, document: dict[str, Any]) -> Results:
        """From JSON."""
        return cls(
            tuple(Row(**row) for row in document["rows"]),
            tuple(Bound(**bound) for bound in document.get("bounds", ())),
            tuple(document.get("failed", ())),
        )


def times(ratio: float) -> str:
    """A ratio with three figures at most."""
    return f"{ratio:,.0f}×" if ratio >= 100 else f"{ratio:.1f}×" if ratio >= 10 else f"{ratio:.2f}×"


def markdown(rows: Sequence[Row]) -> str:
    """The table; its cells are padded, so that it reads as well in a terminal."""
    table = [list(HEAD), *(row.cells() for row in rows)]
    widths = [max(3, *(len(line[k]) for line in table)) for k in range(len(HEAD))]
    right = {1, 2, 3, 4, 6}

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if k in right else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

    rule = "|".join("-" * (width + 1) + (":" if k in right else "-") for k, width in enumerate(widths))
    return "\n".join([line(table[0]), f"|{rule}|", *map(line, table[1:])])


def fallen(recorded: Sequence[Row], new: Sequence[Row]) -> list[str]:
    """Every recorded ratio that fell under its share or was not measured at its size; and unequal figures."""
    now = {row.key: row for row in new}
    found = [f"{row.name}: the figures are no longer equal" for row in new if row.equal is False]
    for row in recorded:
        if row.ratio is None:
            continue
        measured = now.get(row.key)
        ratio = None if measured is None else measured.ratio
        what = f"{row.name}, against {row.against}"
        if measured is not None and measured.size != row.size:
            found.append(f"{what}: recorded with {row.size:,} {row.unit}, measured with {measured.size:,}")
        elif ratio is None:
            found.append(f"{what}: {times(row.ratio)} was recorded, nothing was measured")
        elif ratio < row.share * row.ratio:
            found.append(f"{what}: {times(ratio)} is under {row.share:.2g} of the recorded {times(row.ratio)}")
    return found


def timed(call: Callable[[], Any], repeat: int, clock: Callable[[], float]) -> tuple[float, Any]:
    """The least time of some calls, and the last result."""
    best, result = float("inf"), None
    for _ in range(repeat):
        start = clock()
        result = call()
        best = min(best, clock() - start)
    return best, result


class Turns(NamedTuple):
    """The least CPU seconds of ours, the ratio of the least, theirs over ours, and what each way found."""

    seconds: float
    ratio: float
    found: tuple[Any, Any]


def by_turns(ours: Callable[[], Any], theirs: Callable[[], Any], repeat: int) -> Turns:
    """Both ways one after the other, at least `repeat` times: what slows the machine down slows both."""
    ways = (ours, theirs)
    found: list[Any] = [way() for way in ways]
    least = [float("inf"), float("inf")]
    turns = 0
    until = time.monotonic() + LEAST_SECONDS
    gc.collect()
    gc.disable()  # as while an evaluation runs; else one way pays for looking at the objects of the other
    try:
        while turns < repeat or time.monotonic() < until:
            turns += 1
            for k, way in enumerate(ways):
                found[k] = None
                start = time.process_time()
                found[k] = way()
                least[k] = min(least[k], time.process_time() - start)
    finally:
        gc.enable()
    return Turns(least[0], least[1] / least[0], (found[0], found[1]))
