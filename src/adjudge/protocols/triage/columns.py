"""From the rows of a partition to a batch: labels settled, confidences checked, words as codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import ConfigError
from adjudge.protocols.triage.batch import (
    ERRORED,
    OUT_OF_RANGE,
    PROVENANCE,
    TIMES,
    UNKNOWN,
    UNPARSED,
    UNREADABLE,
    Codes,
    TriageBatch,
    confidence_states,
)
from adjudge.protocols.triage.config import TriageConfig
from adjudge.protocols.triage.facts import NO_LABEL, OTHER_LABEL, Group, Said
from adjudge.protocols.triage.read import Ints, Rows, same_as_before
from adjudge.protocols.triage.words import check_label

_CACHED, _TIME = (1 << PROVENANCE.index(name) for name in ("cache", "timestamp"))


@dataclass
class ReadBatch:
    """A batch as columns, with what stands beside the numbers."""

    batch: TriageBatch
    samples: pa.Array
    groups: tuple[Group, ...]
    group: NDArray[np.int32]
    prompts: pa.DictionaryArray
    models: pa.DictionaryArray
    slices: tuple[pa.DictionaryArray, ...]
    outputs: pa.Table


class Columns:
    """Makes batches of rows."""

    def __init__(self, config: TriageConfig) -> None:
        self.config, self.classes = config, config.classes()

    def read(self, rows: Rows, order: Ints) -> ReadBatch:
        """The columns of some rows, in this order."""
        numbers, fact = rows.numbers[order], rows.fact[order]
        answer = np.array([each.answer for each in rows.saids], dtype=np.int8)[fact]
        bits = [(_CACHED if each.cache != UNKNOWN else 0) | (_TIME if each.stamped else 0) for each in rows.saids]
        samples = rows.ids.take(pa.array(order))
        batch = TriageBatch(
            label=self._labels(rows, order),
            answer=answer,
            **self._confidences(rows, order),
            times=np.stack([numbers[name] for name in TIMES]),
            cache=np.array([each.cache for each in rows.saids], dtype=np.int8)[fact],
            tool_count=numbers["tool_count"].copy(),
            tool_seconds=numbers["tool_seconds"].copy(),
            temperature=np.array([each.temperature for each in rows.setups], dtype=np.float64)[fact],
            carries=np.array([own.bits | more for own, more in zip(rows.setups, bits, strict=True)], dtype=np.uint8)[
                fact
            ],
            notes=_notes(answer, rows, fact),
        )
        _refuse_two_labels(batch.label, samples, rows, order, self.classes)
        used, group = np.unique(rows.group[order], return_inverse=True)
        return ReadBatch(
            batch,
            samples,
            tuple(rows.groups[place] for place in used.tolist()),
            group.astype(np.int32),
            coded([each.prompts for each in rows.setups], fact),
            coded([each.models for each in rows.setups], fact),
            self._slices(rows, order),
            _outputs(rows, order, fact),
        )

    def _labels(self, rows: Rows, order: Ints) -> Codes:
        """The label of every record: its own, held against the manifest, or the manifest's where it has none."""
        label = np.array([each.label for each in rows.saids], dtype=np.int8)[rows.fact[order]]
        wrong = label == OTHER_LABEL
        if rows.manifest is not None:
            other = rows.manifest.label[rows.match[order]]
            wrong |= (label >= 0) & (other >= 0) & (label != other)
            label = np.where(label == NO_LABEL, other, label)
        wrong |= label == NO_LABEL
        if wrong.any():
            self._refuse_label(rows, int(order[np.argmax(wrong)]))
        return label

    def _refuse_label(self, rows: Rows, index: int) -> None:
        name, said = rows.id(index), rows.saids[rows.fact[index]]
        file, line = rows.place(index)
        if said.label_text is not None:
            check_label(said.label_text, self.classes, strip=False, file=str(file), line=line or 0)
        if rows.manifest is None:
            raise rows.error(index, f"id {name!r} has no `label`, and there is no manifest that has it")
        at = int(rows.match[index])
        there = f"{rows.files[rows.manifest.file[at]]}:{rows.manifest.line[at]}"
        if said.label == NO_LABEL:
            raise rows.error(index, f"id {name!r} has no `label`, and none in the manifest ({there})")
        own, other = (self.classes[code] for code in (said.label, int(rows.manifest.label[at])))
        raise rows.error(index, f"id {name!r} has label {own!r}, but {other!r} in the manifest ({there})")

    def _confidences(self, rows: Rows, order: Ints) -> dict[str, Any]:
        confidence = rows.numbers["confidence"][order]
        text = [each.confidence_text for each in rows.saids]
        unreadable = np.array([each is not None for each in text], dtype=bool)[rows.fact[order]]
        states = confidence_states(confidence, unreadable)
        bad = np.flatnonzero((states == OUT_OF_RANGE) | (states == UNREADABLE))
        if bad.size and self.config.bad_confidence == "refuse":
            index = rows.first(order[bad])
            shown = text[rows.fact[index]]
            hint = "(--bad-confidence count goes on without such confidences and counts them)"
            if shown is None:
                value = float(rows.numbers["confidence"][index])
                raise rows.error(index, f"confidence {value!r} is not between 0 and 1.", hint)
            more = " --percent reads percentages." if "%" in shown else ""
            raise rows.error(index, f"confidence {shown} is no number between 0 and 1.{more}", hint)
        return {"confidence": confidence, "confidence_state": states}

    def _slices(self, rows: Rows, order: Ints) -> tuple[pa.DictionaryArray, ...]:
        if rows.slices is None:
            return ()
        codes, texts = rows.slices.codes[order], rows.slices.texts
        known = [msgspec.json.decode(text) for text in texts]
        if rows.manifest is not None and rows.manifest.slices is not None:
            others = rows.manifest.slices
            pairs, codes = np.unique(codes * len(others.texts) + others.codes[rows.match[order]], return_inverse=True)
            of_manifest = [msgspec.json.decode(text) for text in others.texts]
            known = [
                [a or b for a, b in zip(known[own] or [[]] * len(self.config.slices), of_manifest[other], strict=True)]
                for own, other in (divmod(pair, len(others.texts)) for pair in pairs.tolist())
            ]
        return tuple(
            coded([_slice_value(values[place], name) for values in known], codes)
            for place, name in enumerate(self.config.slices)
        )


def coded(values: Sequence[str | None], codes: Ints) -> pa.DictionaryArray:
    """A dictionary column of values[codes] whose words stand in sorted order, so that equal values give equal bytes."""
    if all(value is None for value in values):
        return pa.DictionaryArray.from_arrays(pa.nulls(codes.size, pa.int32()), pa.array([], pa.string()))
    used = np.flatnonzero(np.bincount(codes, minlength=len(values))).tolist()
    words = sorted({value for value in (values[code] for code in used) if value is not None})
    where = {word: index for index, word in enumerate(words)}
    places = np.full(len(values), -1, dtype=np.int32)
    places[used] = [-1 if values[code] is None else where[str(values[code])] for code in used]
    found = places[codes]
    none = found < 0 if (places[used] < 0).any() else None
    return pa.DictionaryArray.from_arrays(pa.array(found, mask=none), pa.array(words, pa.string()))


def _refuse_two_labels(label: Codes, ids: pa.Array, rows: Rows, order: Ints, classes: Sequence[str]) -> None:
    """One sample has one label, whoever answers it and however often."""
    if len(rows.groups) == 1:
        return
    wrong = np.flatnonzero((label[1:] != label[:-1]) & same_as_before(ids))
    if wrong.size:
        at = int(wrong[0])
        there, line = rows.place(int(order[at]))
        raise rows.error(
            int(order[at + 1]),
            f"id {ids[at].as_py()!r} has label {classes[label[at + 1]]!r}, but {classes[label[at]]!r} at {there}:{line}",
        )


def _outputs(rows: Rows, order: Ints, said: Ints) -> pa.Table:
    """What the system said, and where it stands in the input."""
    missing = order >= rows.received
    mask = missing if missing.any() else None
    file = np.where(missing, len(rows.files), rows.numbers["file"][order])
    texts = {
        name: coded([getattr(each, name) for each in rows.saids], said)
        for name in ("response", "confidence_text", "error", "error_type")
    }
    return pa.table({"file": coded([*rows.files, None], file), "line": pa.array(rows.line[order], mask=mask), **texts})


def _notes(answer: Codes, rows: Rows, said: Ints) -> dict[int, str]:
    """What is said of records that are errors or whose verdict is no word."""
    odd = np.flatnonzero((answer == ERRORED) | (answer == UNPARSED)).tolist()
    known: dict[int, str] = {}
    notes = {}
    for index, code in zip(odd, said[odd].tolist(), strict=True):
        if code not in known:
            known[code] = _note(rows.saids[code])
        notes[index] = known[code]
    return notes


def _note(said: Said) -> str:
    if said.answer == ERRORED:
        return ": ".join(text for text in (said.error_type, said.error) if text)[:200]
    return "there is none" if said.response is None else repr(said.response)[:200]


def _slice_value(found: Sequence[str | None], name: str) -> str | None:
    if len(found) > 1:
        raise ConfigError(f"slice meta.{name.removeprefix('meta.')} is {found[1]}, not one value")
    return found[0] if found else None
