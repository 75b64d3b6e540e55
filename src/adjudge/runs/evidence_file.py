"""The evidence file of a partition: batches of atoms as row groups, from arrays to pages without a look at each value."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adjudge.evidence.layout import Layout
from adjudge.evidence.table import SCHEMA, Evidence
from adjudge.evidence.vocabulary import OUTCOMES, SEVERITIES
from adjudge.runs.encodings import bits_for, counted, doubles, runs, texts
from adjudge.runs.parquet import Chunk, Encoding, Field, FileWriter, Page, Physical

PAGE_VALUES = 1 << 18


class EvidenceFile:
    """Writes the evidence of one partition; the rows are those of `Evidence.to_arrow`."""

    def __init__(self, stream: BinaryIO) -> None:
        self._file = FileWriter(stream, _fields(), _metadata())

    def add(self, evidence: Evidence, first: int) -> None:
        """Append a batch; its first sample is row `first` of the partition."""
        layout, n = evidence.layout, evidence.n
        width = layout.width
        reasons = evidence.reasons
        chunks = [
            Chunk(Encoding.DELTA_BINARY_PACKED, [Page(width * n, counted(first, n, width))], None, _bounds(first, n)),
            _coded(evidence.code, layout.codes),
            *_constant(layout, n),
            _coded(evidence.outcome, OUTCOMES),
            _coded(evidence.severity, SEVERITIES),
            _observed(evidence.observed),
            _none(width * n) if reasons.codes is None else _maybe(reasons.codes, reasons.texts),
        ]
        self._file.add(width * n, chunks)

    def close(self) -> None:
        """Finish the file, and leave the stream open."""
        self._file.close()


@lru_cache(maxsize=1)
def _fields() -> tuple[Field, ...]:
    """The columns of SCHEMA as Parquet has them."""
    return tuple(_field(field) for field in SCHEMA)


def _field(field: pa.Field) -> Field:
    if pa.types.is_dictionary(field.type):
        return Field(field.name, Physical.BYTE_ARRAY, field.nullable)
    if pa.types.is_floating(field.type):
        return Field(field.name, Physical.DOUBLE, field.nullable)
    return Field(field.name, Physical.INT32, field.nullable, field.type.bit_width)


@lru_cache(maxsize=1)
def _metadata() -> dict[bytes, bytes]:
    """Where Arrow looks for its own types: what its own writer says of them."""
    out = pa.BufferOutputStream()
    pq.write_table(SCHEMA.empty_table(), out)
    return dict(pq.read_metadata(pa.BufferReader(out.getvalue())).metadata)


def _bounds(first: int, n: int) -> tuple[bytes, bytes] | None:
    return (first.to_bytes(4, "little"), (first + n - 1).to_bytes(4, "little")) if n else None


@lru_cache(maxsize=4)
def _constant(layout: Layout, n: int) -> tuple[Chunk, Chunk]:
    """The columns field and step, which follow from the position."""
    steps = np.unique(layout.slot_step)
    step = np.repeat(np.searchsorted(steps, layout.slot_step), n)
    edges = np.arange(layout.width + 1) * n
    bits = bits_for(len(steps))
    data = bytes([bits]) + runs(step, edges, bits)
    words = Page(len(steps), steps.astype("<i4").tobytes())
    return (
        _maybe(np.repeat(layout.slot_field[:, None], n, axis=1), layout.fields),
        Chunk(Encoding.RLE_DICTIONARY, [Page(len(step), data)], words),
    )


def _coded(codes: NDArray[Any], words: Sequence[str]) -> Chunk:
    """Words by their codes, shaped (positions, samples)."""
    bits = bits_for(len(words))
    data = bytes([bits]) + runs(codes.ravel(), _edges(codes), bits)
    return Chunk(Encoding.RLE_DICTIONARY, [Page(codes.size, data)], Page(len(words), texts(words)))


def _maybe(codes: NDArray[Any], words: Sequence[str]) -> Chunk:
    """Words by their codes; none where a code is negative."""
    there = codes >= 0
    counts = np.count_nonzero(there, axis=1)
    bits = bits_for(len(words))
    values = codes[there] if counts.any() else codes[:0].ravel()
    edges = np.concatenate([[0], np.cumsum(counts)])
    data = _levels(there) + bytes([bits]) + runs(values, edges, bits)
    return Chunk(Encoding.RLE_DICTIONARY, [Page(codes.size, data)], Page(len(words), texts(words)))


def _none(size: int) -> Chunk:
    """No word anywhere."""
    none = np.zeros((1, size), dtype=np.bool_)
    return Chunk(Encoding.RLE_DICTIONARY, [Page(size, _levels(none) + b"\1")], Page(0, b""))


def _observed(values: NDArray[np.float64]) -> Chunk:
    """Numbers; none where one is NaN. Pages are whole positions."""
    width, n = values.shape
    together = max(1, PAGE_VALUES // max(1, n))
    pages = []
    for low in range(0, width, together):
        some = values[low : low + together]
        there = some == some  # noqa: PLR0124 -- all but NaN
        counts = np.count_nonzero(there, axis=1)
        held = [
            row if count == n else row[own]
            for row, own, count in zip(some, there, counts.tolist(), strict=True)
            if count
        ]
        data = doubles(np.concatenate(held)) if held else b""
        pages.append(Page(some.size, _levels(there) + data))
    return Chunk(Encoding.PLAIN, pages)


def _levels(there: NDArray[np.bool_]) -> bytes:
    """Definition levels: whether there is a value."""
    data = runs(there.ravel(), _edges(there), 1)
    return len(data).to_bytes(4, "little") + data


def _edges(values: NDArray[Any]) -> NDArray[np.intp]:
    """Where each position begins and ends, flat."""
    width, n = values.shape
    return np.arange(width + 1, dtype=np.intp) * np.intp(n)
