"""Plain answers in many model texts at once: the extractor's ordinary case, without an object a text.

A text is plain when its one object has exactly the expected fields, all of them numbers (or lists of as many numbers as
there are steps). Every other text is left to `extract.Extractor`, which for the plain ones would give the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.readers.extract import found_as
from adjudge.readers.scan import ARRAY, INTEGER, REAL, Path, Wanted, scan

METHODS: Final = ("whole", "fenced", "embedded", "nested")
_WHOLE, _, _EMBEDDED, _ = range(4)


@dataclass(frozen=True)
class Plain:
    """Which texts are plain; of these the place of the object, how it was found (METHODS), and its numbers by row and cell."""

    plain: NDArray[np.bool_]
    start: NDArray[np.int32]
    end: NDArray[np.int32]
    method: NDArray[np.int8]
    numbers: NDArray[np.float64]


def _fenced(characters: pa.Buffer, edges: Sequence[NDArray[np.int32]]) -> NDArray[np.int8]:
    """How answers among fence marks were found; −1 where another was about to begin.

    `edges` are where each text begins, the answer in it begins and ends, and the text ends. Most answers stand among
    the same few words, so every pair of what stands before and behind is looked at once.
    """
    offsets = pa.py_buffer(np.stack(edges, axis=1))
    pieces = pa.StringArray.from_buffers(4 * len(edges[0]) - 1, offsets, characters)
    before, after = (pieces.take(np.arange(k, len(pieces), 4)).dictionary_encode() for k in (0, 2))
    kinds = len(after.dictionary)
    pairs, where = np.unique(
        before.indices.to_numpy().astype(np.int64) * kinds + after.indices.to_numpy(), return_inverse=True
    )
    found = [
        found_as(before.dictionary[k // kinds].as_py(), after.dictionary[k % kinds].as_py()) for k in pairs.tolist()
    ]
    methods = [-1 if method is None else METHODS.index(method) for method in found]
    return np.array(methods, dtype=np.int8)[where]


class PlainAnswers:
    """Finds plain answers with these fields; the cells of an answer stand by step, then field."""

    def __init__(self, fields: Sequence[str], steps: int, *, lists: bool) -> None:
        self._lists, self._fields, self._steps = lists, fields, steps
        cells = [(name, step) if lists else (name,) for step in range(steps) for name in fields]
        self._wanted = Wanted(cells)
        self._cells = self._wanted.cells(cells)
        kinds: dict[Path, tuple[int, ...]] = dict.fromkeys(cells, (INTEGER, REAL))
        self._allowed = self._wanted.allowed(kinds | {(name,): (ARRAY,) for name in fields} if lists else kinds)

    def read(self, texts: pa.StringArray) -> Plain:
        """The plain answers among texts; a null is none."""
        from adjudge.readers import _text_kernels

        _, buffer, characters = texts.buffers()
        data = np.frombuffer(characters, dtype=np.uint8)
        offsets = np.frombuffer(buffer, dtype=np.int32)[: len(texts) + 1]
        start, end = np.empty(len(texts), dtype=np.int32), np.empty(len(texts), dtype=np.int32)
        how = np.empty(len(texts), dtype=np.uint8)
        _text_kernels.find_objects(data, offsets, start, end, how)
        found = scan(self._wanted, data, start, end, fast=True)
        found.odd |= how == _text_kernels.NOT_PLAIN
        found.odd |= found.numbers() != len(self._fields)
        if self._lists:
            for name in self._fields:
                found.odd |= found.numbers(name) != self._steps
        found.expect_all(self._allowed)
        method = np.where(how == _text_kernels.IN_PROSE, _EMBEDDED, _WHOLE).astype(np.int8)
        fenced = np.flatnonzero(~found.odd & (how == _text_kernels.NEAR_FENCES))
        if fenced.size:
            method[fenced] = _fenced(characters, (offsets[fenced], start[fenced], end[fenced], offsets[fenced + 1]))
            found.odd |= method < 0
        first = offsets[:-1]
        return Plain(~found.odd, start - first, end - first, method, found.number[:, self._cells])
