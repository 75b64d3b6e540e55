"""TriageBatch: the columns of a batch of triage records, as rules and measures read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int8]

# What was received for a sample; the first two are the classes.
POSITIVE, NEGATIVE, ABSTAINED, ERRORED, UNPARSED, MISSING = range(6)
ANSWERS = 6

# Whether there is a confidence to work with.
GIVEN, NOT_GIVEN, OUT_OF_RANGE, UNREADABLE = range(4)
CONFIDENCE_STATES = ("given", "not given", "out of range", "unreadable")

HIT, MISS, UNKNOWN = range(3)
CACHE_STATES = ("hit", "miss", "unknown")

TIMES = ("total_seconds", "vision_llm_seconds", "agent_graph_seconds", "latency_seconds", "model_seconds")
TOTAL, VISION, AGENT, LATENCY, MODEL = range(5)
COMPONENTS = (*TIMES, "tool_seconds")
"""What latency is reported of; the seconds of tools are those of the records that called any."""

PROVENANCE = (
    "models.agent",
    "models.vision",
    "models.structuring",
    "prompt_hashes",
    "cache",
    "timestamp",
    "temperature",
)


@dataclass
class TriageBatch:
    """Records as columns; NaN is no value. `times` is shaped (len(TIMES), n), `carries` has a bit a PROVENANCE item."""

    label: Codes
    answer: Codes
    confidence: Floats
    confidence_state: Codes
    times: Floats
    cache: Codes
    tool_count: NDArray[np.int32]
    tool_seconds: Floats
    temperature: Floats
    carries: NDArray[np.uint8]
    notes: Mapping[int, str] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Records in the batch."""
        return int(self.label.shape[0])

    def cell(self) -> NDArray[np.int64]:
        """Label and answer as one number, label · ANSWERS + answer."""
        return self.label.astype(np.int64) * ANSWERS + self.answer


def confidence_states(confidence: Floats, unreadable: NDArray[np.bool_]) -> Codes:
    """Which confidences can be used, and what is wrong with the others."""
    states = np.where(np.isnan(confidence), NOT_GIVEN, GIVEN)
    with np.errstate(invalid="ignore"):
        states[(confidence < 0.0) | (confidence > 1.0)] = OUT_OF_RANGE
    states[unreadable] = UNREADABLE
    return states.astype(np.int8)
