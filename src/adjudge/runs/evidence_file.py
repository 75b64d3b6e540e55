"""The evidence file of a partition: batches of atoms as row groups, from arrays to pages without a look at each value."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.layout import Layout
from adjudge.evidence.table import SCHEMA, Evidence
from adjudge.evidence.vocabulary import OUTCOMES, SEVERITIES
from adjudge.runs.columns import coded, maybe, none, repeated_words
from adjudge.runs.encodings import as_it_lies, bits_for, counted, levels, repeated
from adjudge.runs.parquet import Chunk, Encoding, FileWriter, Page, Physical, Sink, group_of

PAGE_VALUES = 1 << 18


class EvidenceFile:
    """Writes the evidence of one partition; the rows are those of `Evidence.to_arrow`."""

    def __init__(self, stream: Sink) -> None:
        self._file = FileWriter(stream, SCHEMA)

    def add(self, evidence: Evidence, first: int) -> None:
        """Append a batch; its first sample is row `first` of the partition."""
        layout, n = evidence.layout, evidence.n
        width = layout.width
        reasons = evidence.reasons
        places = Page(width * n, counted(first, n, width))
        chunks = [
            Chunk(("sample",), Physical.INT32, Encoding.DELTA_BINARY_PACKED, [places], bounds=_bounds(first, n)),
            coded("rule", evidence.code, layout.codes),
            *_constant(layout, n),
            coded("outcome", evidence.outcome, OUTCOMES),
            coded("severity", evidence.severity, SEVERITIES),
            _observed(evidence.observed),
            none("why", width * n) if reasons.codes is None else maybe("why", reasons.codes, reasons.texts),
        ]
        self._file.add(group_of(width * n, chunks))

    def close(self) -> None:
        """Finish the file, and leave the stream open."""
        self._file.close()


def _bounds(first: int, n: int) -> tuple[bytes, bytes] | None:
    return (first.to_bytes(4, "little"), (first + n - 1).to_bytes(4, "little")) if n else None


def _constant(layout: Layout, n: int) -> tuple[Chunk, Chunk]:
    """The columns field and step, which follow from the position."""
    steps = np.unique(layout.slot_step)
    bits = bits_for(len(steps))
    data = bytes([bits]) + repeated(np.searchsorted(steps, layout.slot_step), n, bits)
    words = Page(len(steps), steps.astype("<i4").tobytes())
    return (
        repeated_words("field", layout.slot_field, n, layout.fields),
        Chunk(("step",), Physical.INT32, Encoding.RLE_DICTIONARY, [Page(layout.width * n, data)], words),
    )


def _observed(values: NDArray[np.float64]) -> Chunk:
    """Numbers; none where one is NaN. Pages are whole positions."""
    width, n = values.shape
    together = max(1, PAGE_VALUES // max(1, n))
    pages = []
    for low in range(0, width, together):
        some = values[low : low + together]
        there = some == some  # noqa: PLR0124 -- all but NaN
        pages.append(Page(some.size, levels(there), as_it_lies(some[there])))
    return Chunk(("observed",), Physical.DOUBLE, Encoding.PLAIN, pages)
