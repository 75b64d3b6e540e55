"""FlightBatch: the columns of a batch of flight samples, as the rules read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from adjudge.protocols.flight.fields import ANGLES, FIELDS, INDEX, Task

Floats = NDArray[np.float64]

# How an output was received; the order is that of STATUSES.
ANSWERED, UNPARSED, ERRORED, ABSTAINED, MISSING = range(5)
STATUSES = ("answered", "unparsed", "errored", "abstained", "missing")

# Whether one value of the answer is usable.
VALID, MISSING_FIELD, ARRAY_SHAPE, INVALID_VALUE = range(4)

ANGLE_ROWS = np.array([INDEX[name] for name in FIELDS if name in ANGLES])
KNOTS = 1.943844


def arc(a: Floats, b: Floats) -> Floats:
    """The shortest way round between two directions, in degrees, 0..180."""
    with np.errstate(all="ignore"):
        apart = np.abs(a - b)
        huge = np.isinf(apart)
        if huge.any():
            apart = np.where(huge, np.abs(a % 360.0 - b % 360.0), apart)
        turned = apart % 360.0 if (apart >= 360.0).any() else apart
    return np.minimum(turned, 360.0 - turned)


@dataclass
class FlightBatch:
    """Samples as columns: answers and gold shaped (steps, 19, n), the last shown state (19, n); NaN is no value.

    The answers of all `models` to a sample stand together. `completeness` is the share of the fields that an answer has.
    """

    task: Task
    status: NDArray[np.uint8]
    answer: Floats
    validity: NDArray[np.uint8]
    shown: Floats
    gold: Floats
    completeness: Floats
    has_reference: NDArray[np.bool_]
    models: int = 1
    notes: Mapping[int, str] = field(default_factory=dict)
    details: Mapping[tuple[int, int], str] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Samples in the batch."""
        return int(self.status.shape[0])

    def value(self, name: str) -> Floats:
        """The answered values of one field, (steps, n)."""
        column: Floats = self.answer[:, INDEX[name]]
        return column

    def shown_value(self, name: str) -> Floats:
        """The last shown value of one field, (n,)."""
        column: Floats = self.shown[INDEX[name]]
        return column

    @cached_property
    def before(self) -> Floats:
        """For every step the state before it: the last shown one, then the answer's own."""
        return np.concatenate([self.shown[None], self.answer[:-1]])

    @cached_property
    def steps(self) -> Floats:
        """The absolute change of every value against the state before it; angles by shortest arc."""
        return difference(self.answer, self.before)

    @cached_property
    def vector_speed(self) -> Floats:
        """The speed of the E/N velocity in knots, (steps, n)."""
        east, north = self.value("GPS Velocity E (m/s)"), self.value("GPS Velocity N (m/s)")
        return np.asarray(KNOTS * np.sqrt(east * east + north * north))

    @cached_property
    def errors(self) -> Floats:
        """|answer − gold| where both exist, otherwise NaN; angles by shortest arc; (steps, 19, n)."""
        return difference(self.answer, self.gold)

    def gold_as_answer(self) -> tuple[NDArray[np.intp], FlightBatch]:
        """The samples with a reference, by a row of theirs, and a batch in which each answers with its gold.

        What a model was shown may stand in the output of another one alone, so the first row with a state is taken.
        """
        first = np.arange(0, self.n, self.models)
        if self.models > 1:
            has_state = ~np.isnan(self.shown).all(axis=0)
            first = first + has_state.reshape(-1, self.models).argmax(axis=1)
        rows = first[self.has_reference[first]]
        gold = self.gold[:, :, rows]
        absent = np.isnan(gold).reshape(gold.shape[0] * gold.shape[1], rows.size)
        batch = FlightBatch(
            task=self.task,
            status=np.full(rows.size, ANSWERED, dtype=np.uint8),
            answer=gold,
            validity=np.where(absent, np.uint8(INVALID_VALUE), np.uint8(VALID)),
            shown=self.shown[:, rows],
            gold=gold,
            completeness=np.ones(rows.size),
            has_reference=np.ones(rows.size, dtype=bool),
        )
        return rows, batch

    @cached_property
    def persistence_errors(self) -> Floats:
        """What repeating the last shown state would have cost, on the cells where the answer's error exists."""
        return np.where(np.isnan(self.errors), np.nan, difference(self.shown[None], self.gold))


def difference(values: Floats, gold: Floats) -> Floats:
    """Absolute differences, angles by shortest arc, fields along the second axis."""
    with np.errstate(over="ignore"):
        apart = values - gold
    np.abs(apart, out=apart)
    apart[:, ANGLE_ROWS] = arc(values[:, ANGLE_ROWS], gold[:, ANGLE_ROWS])
    return apart
