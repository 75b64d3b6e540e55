"""The manifest and the calibration files as columns: which samples they have, and where."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.protocols.triage.config import TriageConfig
from adjudge.protocols.triage.facts import NO_LABEL
from adjudge.protocols.triage.records import EXPECTED
from adjudge.protocols.triage.slices import SliceTexts
from adjudge.protocols.triage.words import check_label
from adjudge.readers.blocks import Block
from adjudge.readers.numbered import Numbered
from adjudge.readers.scan import ABSENT, ESCAPED, NULL, TEXT, Scanned, Wanted, scan
from adjudge.readers.triage_results import id_of, manifest_row

EXPECTED_IN_MANIFEST = "a manifest record is a JSON object with `id` and `label`"


class ManifestIntake:
    """Reads the manifest: id, label, place, and what its slices are cut by."""

    def __init__(self, config: TriageConfig) -> None:
        self.config, self.classes = config, config.classes()
        self._slices = SliceTexts(config.slices)
        self._wanted = Wanted([("id",), ("label",), *self._slices.paths])
        self._labels: Numbered[int] = Numbered(self._wanted, [("label",)])
        self._sliced: Numbered[str] = Numbered(self._wanted, self._slices.paths)

    def read(self, block: Block) -> pa.Table:
        """A row for every record."""
        scanned = scan(self._wanted, block.data, block.starts, block.ends, fast=block.fast)
        scanned.expect("id", kinds=(TEXT, ESCAPED))
        scanned.expect("label", kinds=(TEXT, ESCAPED, NULL, ABSENT))
        odd = np.flatnonzero(scanned.odd)

        def one(line: int, text: bytes) -> tuple[str, int, str]:
            name, label, meta = manifest_row(text)
            code = NO_LABEL
            if label is not None:
                strip = self.config.strip_labels
                code = self.classes.index(check_label(label, self.classes, strip=strip, file=block.path, line=line))
            return name, code, self._slices.text(meta) if self._slices.paths else ""

        def example(row: int) -> tuple[str, int, str]:
            return block.each_of([row], one, EXPECTED_IN_MANIFEST)[0]

        rows = block.each_of(odd.tolist(), one, EXPECTED_IN_MANIFEST)
        codes, labels = self._labels.of(scanned, lambda row: example(row)[1])
        label = np.array([*labels, 0], dtype=np.int8)[codes]
        label[odd] = [row[1] for row in rows]
        columns = {
            "key": ids(scanned, [row[0] for row in rows]),
            "line": pa.array(block.lines),
            "file": _files(block),
            "label": pa.array(label),
        }
        if self._slices.paths:
            codes, texts = self._sliced.of(scanned, lambda row: example(row)[2])
            columns["slices"] = chosen(codes, texts, odd, [row[2] for row in rows])
        return pa.table(columns)


_ID = Wanted([("id",)])


def read_ids(block: Block) -> pa.Table:
    """Which samples a calibration file has, and where."""
    scanned = scan(_ID, block.data, block.starts, block.ends, fast=block.fast)
    scanned.expect("id", kinds=(TEXT, ESCAPED))
    odd = block.each_of(np.flatnonzero(scanned.odd).tolist(), lambda _, text: id_of(text), EXPECTED)
    return pa.table({"key": ids(scanned, odd), "line": pa.array(block.lines), "file": _files(block)})


def ids(scanned: Scanned, odd: list[str]) -> pa.StringArray:
    """The id of every row, those of the odd rows given."""
    import pyarrow.compute as pc

    if len(odd) == scanned.odd.size:
        return pa.array(odd, pa.string())
    found = scanned.texts("id")
    return pc.replace_with_mask(found, scanned.odd, pa.array(odd, pa.string())) if odd else found


def chosen(codes: NDArray[np.int32], texts: list[str], odd: NDArray[np.intp], more: list[str]) -> pa.StringArray:
    """The text of every row: by its number, or its own where it is odd."""
    if odd.size:
        codes = codes.copy()
        codes[odd] = np.arange(len(texts), len(texts) + odd.size)
    return pa.array([*texts, *more], pa.string()).take(pa.array(codes))


def _files(block: Block) -> pa.Array:
    return pa.array(np.full(len(block), block.file, dtype=np.int32))
