"""What is kept of a result until it is judged: its numbers, and the few words that it shares with other records.

Numbers travel as one column of fixed width. What a record says of its making (`Setup`) and of its answer (`Said`) is a
short text, the same for all records that hold the same; a record carries the code of its text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.protocols.triage.batch import MISSING, UNKNOWN

NO_LABEL, OTHER_LABEL = -1, -2

NUMBERS = np.dtype(
    [
        ("confidence", "f8"),
        ("total_seconds", "f8"),
        ("vision_llm_seconds", "f8"),
        ("agent_graph_seconds", "f8"),
        ("latency_seconds", "f8"),
        ("model_seconds", "f8"),
        ("tool_seconds", "f8"),
        ("tool_count", "i4"),
        ("file", "i4"),
        ("facts", "u8"),
    ]
)
"""The numbers of a result, NaN for none, its file, and the code of its facts."""

_PACKED = pa.binary(NUMBERS.itemsize)


class Group(NamedTuple):
    """What varies between the records of one sample: the configuration (run, model, mode) and the trial."""

    configuration: str
    trial: int

    @property
    def name(self) -> str:
        """The group as it stands in the column `model`."""
        return f"{self.configuration}|{self.trial}"


class Setup(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What a record says of its making; `bits` are those of the PROVENANCE items that are there."""

    configuration: str
    trial: int
    prompts: str | None = None
    models: str | None = None
    bits: int = 0
    temperature: float | None = None

    @property
    def group(self) -> Group:
        """The group of the record."""
        return Group(self.configuration, self.trial)


class Said(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What a record says: codes of label, answer and cache, whether it has a timestamp, and the texts behind them.

    The label is NO_LABEL where none is given, OTHER_LABEL where it is no class; then `label_text` is what stands there.
    """

    label: int = NO_LABEL
    answer: int = MISSING
    cache: int = UNKNOWN
    stamped: bool = False
    response: str | None = None
    error: str | None = None
    error_type: str | None = None
    label_text: str | None = None
    confidence_text: str | None = None


class Facts(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The words of a record. Without `said` it only tells of a group that there is."""

    setup: Setup
    said: Said | None = None

    def text(self) -> str:
        """The facts as they travel."""
        return msgspec.json.encode(self).decode()


_facts = msgspec.json.Decoder(Facts)


def code_of(text: str) -> int:
    """The code of a text, the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def facts_of(texts: Iterable[str]) -> list[Facts]:
    """What texts say."""
    return [_facts.decode(text) for text in texts]


def packed(numbers: NDArray[np.void]) -> pa.Array:
    """Numbers as a column."""
    return pa.Array.from_buffers(_PACKED, numbers.size, [None, pa.py_buffer(numbers.view(np.uint8))])


def unpacked(column: pa.ChunkedArray) -> NDArray[np.void]:
    """The numbers of a packed column."""
    array = column.combine_chunks()
    buffer = array.buffers()[1]
    return np.frombuffer(buffer, dtype=NUMBERS, count=len(array), offset=array.offset * NUMBERS.itemsize)
