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
from adjudge.readers.scan import ARRAY, INTEGER, REAL, Wanted, scan

METHODS: Final = ("whole", "fenced", "embedded", "nested")
_WHOLE, _, _EMBEDDED, _ = range(4)


@dataclass(frozen=True)
class Plain:
    """Which texts are plain; of these the place of the object, how it was found (METHODS), and its numbers by cell."""

    plain: NDArray[np.bool_]
    start: NDArray[np.int32]
    end: NDArray[np.int32]
    method: NDArray[np.int8]
    numbers: NDArray[np.float64]


class PlainAnswers:
    """Finds plain answers with these fields; the cells of an answer stand by step, then field."""

    def __init__(self, fields: Sequence[str], steps: int, *, lists: bool) -> None:
        self._lists, self._fields, self._steps = lists, fields, steps
        cells = [(name, step) if lists else (name,) for step in range(steps) for name in fields]
        self._wanted = Wanted(cells)
        self._cells = [self._wanted.nodes[cell] for cell in cells]

    def read(self, texts: pa.StringArray) -> Plain:
        """The plain answers among texts that have no null."""
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
                found.odd |= (found.kinds(name) != ARRAY) | (found.numbers(name) != self._steps)
        kinds = found.kind[self._cells]
        found.odd |= ((kinds != INTEGER) & (kinds != REAL)).any(axis=0)
        method = np.where(how == _text_kernels.IN_PROSE, _EMBEDDED, _WHOLE).astype(np.int8)
        for row in np.flatnonzero(~found.odd & (how == _text_kernels.NEAR_FENCES)).tolist():
            before = bytes(data[offsets[row] : start[row]]).decode()
            after = bytes(data[end[row] : offsets[row + 1]]).decode()
            as_what = found_as(before, after)
            if as_what is None:
                found.odd[row] = True
            else:
                method[row] = METHODS.index(as_what)
        first = offsets[:-1]
        return Plain(~found.odd, start - first, end - first, method, found.number[self._cells])
