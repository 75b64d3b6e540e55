"""What is known of an output beside its answer and text: small numbers as one record, and what only few outputs have."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.protocols.flight.batch import ANSWERED, MISSING

NO_METHOD = -1
FACTS = np.dtype(
    [
        ("completeness", "<f8"),
        ("characters", "<i8"),  # of the text, −1 where there is none
        ("start", "<i4"),
        ("end", "<i4"),
        ("candidates", "<i4"),
        ("extra_keys", "<i4"),
        ("file", "<i4"),
        ("status", "u1"),
        ("method", "i1"),
    ],
    align=True,
)
_NO_OUTPUT = np.array((0.0, -1, -1, -1, 0, 0, -1, MISSING, NO_METHOD), dtype=FACTS)
Facts = NDArray[np.void]


class Rare(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    """What few outputs have.

    Repairs, a note on why there is no answer, the state that this model was shown, which values are not valid, and in
    what way: `details` are (step, field, text).
    """

    repairs: str | None = None
    note: str | None = None
    shown: bytes | None = None
    validity: bytes | None = None
    details: list[tuple[int, int, str]] = []

    def packed(self) -> bytes | None:
        """As bytes; None where there is nothing."""
        return None if self == _NOTHING else _ENCODER.encode(self)


_NOTHING = Rare()
_ENCODER, _DECODER = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Rare)


def plain_facts(n: int, file: int) -> Facts:
    """The facts of outputs with a plain answer, but for its place."""
    facts = np.zeros(n, dtype=FACTS)
    facts["completeness"], facts["candidates"], facts["file"], facts["status"] = 1.0, 1, file, ANSWERED
    return facts


def facts_of(column: pa.FixedSizeBinaryArray) -> Facts:
    """The facts of every row, not to be written to; a null is an output that is not there."""
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return np.full(len(column), _NO_OUTPUT)
    found = np.frombuffer(buffer, dtype=FACTS, count=len(column), offset=column.offset * FACTS.itemsize)
    if column.null_count:
        found = found.copy()
        found[column.is_null().to_numpy(zero_copy_only=False)] = _NO_OUTPUT
    return found


def rare_of(column: pa.BinaryArray) -> Iterator[tuple[int, Rare]]:
    """The rows that have something rare, and what."""
    if column.null_count == len(column):
        return
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    for row, found in zip(rows.tolist(), column.drop_null().to_pylist(), strict=True):
        yield row, _DECODER.decode(found)


def fixed(rows: NDArray[np.generic], size: int) -> pa.FixedSizeBinaryArray:
    """Rows of `size` bytes, each as one value."""
    packed = np.ascontiguousarray(rows)
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(size), len(packed), [None, pa.py_buffer(packed)])
