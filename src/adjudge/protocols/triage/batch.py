"""The columns of a batch of triage records as rules and measures read them, and how matched rows become such a batch.

Labels are settled between record and manifest, confidences checked, words turned into codes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.common.columns import floats
from adjudge.protocols.triage.config import TriageConfig
from adjudge.protocols.triage.matching import Rows, same_as_before
from adjudge.protocols.triage.words import Classes, check_label

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
    meta_keys: frozenset[str] | None = None
    """Keys of `meta`, where records were read that lack one to slice by."""

    @property
    def n(self) -> int:
        """Records in the batch."""
        return int(self.label.shape[0])

    def rows(self, chosen: NDArray[np.int64]) -> TriageBatch:
        """Some of the records, without their notes."""
        return TriageBatch(**{name: getattr(self, name)[..., chosen] for name in _COLUMNS}, meta_keys=self.meta_keys)

    def cell(self) -> NDArray[np.int64]:
        """Label and answer as one number, label · ANSWERS + answer."""
        return self.label.astype(np.int64) * ANSWERS + self.answer


_COLUMNS = tuple(name for name in TriageBatch.__dataclass_fields__ if name not in {"notes", "meta_keys"})


def confidence_states(confidence: Floats, unreadable: NDArray[np.bool_]) -> Codes:
    """Which confidences can be used, and what is wrong with the others."""
    states = np.where(np.isnan(confidence), NOT_GIVEN, GIVEN)
    with np.errstate(invalid="ignore"):
        states[(confidence < 0.0) | (confidence > 1.0)] = OUT_OF_RANGE
    states[unreadable] = UNREADABLE
    return states.astype(np.int8)


META_KEYS = "keys"
"""Beside the values of slices in their column: the keys of `meta` where a slice has no value."""
_NO_LABEL, _OTHER_LABEL = -1, -2  # no label, and one that is no class
_BITS = {name: 1 << place for place, name in enumerate(PROVENANCE)}


class Texts(NamedTuple):
    """A column of texts: the different ones with None behind them, and the place of each row's text in them."""

    distinct: list[str | None]
    place: NDArray[np.int32]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> Texts:
        """From a dictionary column."""
        array = column.combine_chunks()
        distinct = [*array.dictionary.to_pylist(), None]
        return cls(distinct, array.indices.fill_null(len(distinct) - 1).to_numpy())

    def each(self, value: Callable[[Any], Any], kind: Any) -> NDArray[Any]:
        """A value for every row that follows from its text alone."""
        return np.array([value(text) for text in self.distinct], dtype=kind)[self.place]

    def rows(self, chosen: NDArray[np.int64]) -> Texts:
        """Those of some rows."""
        return Texts(self.distinct, self.place[chosen])

    def column(self) -> pa.DictionaryArray:
        """A dictionary column with the words that are used, sorted, so that equal values give equal bytes."""
        used = np.flatnonzero(np.bincount(self.place, minlength=len(self.distinct))).tolist()
        words = sorted({text for text in (self.distinct[place] for place in used) if text is not None})
        places = {word: place for place, word in enumerate(words)}
        codes = np.full(len(self.distinct), -1, dtype=np.int32)
        codes[used] = [places.get(self.distinct[place], -1) for place in used]  # type: ignore[arg-type]
        rows = codes[self.place]
        return pa.DictionaryArray.from_arrays(pa.array(rows, mask=rows < 0), pa.array(words, pa.string()))


@dataclass
class ReadBatch:
    """A batch as columns, with what stands beside the numbers. A group is a configuration and a trial."""

    batch: TriageBatch
    samples: pa.Array
    groups: Texts
    facts: dict[str, pa.DictionaryArray]
    slices: dict[str, pa.DictionaryArray]
    outputs: pa.Table

    def configurations(self) -> Texts:
        """The configuration of every row."""
        return Texts([name and name.rpartition("|")[0] for name in self.groups.distinct], self.groups.place)

    def trials(self) -> NDArray[np.int32]:
        """The trial of every row."""
        return self.groups.each(lambda name: int(name.rpartition("|")[2]) if name else -1, np.int32)


class Columns:
    """Makes batches of rows."""

    def __init__(self, config: TriageConfig) -> None:
        self.config, self.classes = config, config.classes()

    def read(self, rows: Rows) -> ReadBatch:
        """The columns of some rows."""
        table = rows.table
        facts = {name: Texts.of(table.column(name)) for name in ("prompts", "models", "run_config")}
        answer = table.column("answer").fill_null(MISSING).to_numpy()
        label = self._labels(rows)
        confidence, states = self._confidences(rows)
        batch = TriageBatch(
            label=label,
            answer=answer,
            confidence=confidence,
            confidence_state=states,
            times=np.stack([floats(table, name) for name in TIMES]),
            cache=pc.if_else(table.column("cache"), HIT, MISS).fill_null(UNKNOWN).to_numpy().astype(np.int8),
            tool_count=table.column("tool_count").fill_null(0).to_numpy(),
            tool_seconds=table.column("tool_seconds").fill_null(0.0).to_numpy(),
            temperature=floats(table, "temperature"),
            carries=_carries(table, facts["models"]),
            notes=_notes(table, answer),
        )
        _refuse_two_labels(label, rows, self.classes)
        return ReadBatch(
            batch,
            table.column("key").combine_chunks(),
            Texts.of(table.column("group")),
            {name: texts.column() for name, texts in facts.items()},
            self._slices(rows, batch),
            _outputs(rows),
        )

    def _labels(self, rows: Rows) -> Codes:
        """The label of every record: its own, held against the manifest, or the manifest's where it has none."""
        label = Texts.of(rows.table.column("label")).each(self._label, np.int8)
        wrong = label == _OTHER_LABEL
        if rows.manifest is not None:
            known = rows.manifest.column("label").fill_null(_NO_LABEL).to_numpy()
            in_manifest = known[rows.table.column("match").to_numpy()]
            wrong |= (label >= 0) & (in_manifest >= 0) & (label != in_manifest)
            label = np.where(label == _NO_LABEL, in_manifest, label)
        wrong |= label == _NO_LABEL
        if wrong.any():
            self._refuse_label(rows, int(np.argmax(wrong)))
        return label

    def _label(self, text: str | None) -> int:
        if text is None:
            return _NO_LABEL
        try:
            return self.classes.index(check_label(text, self.classes, strip=self.config.strip_labels, file="", line=0))
        except InputError:
            return _OTHER_LABEL

    def _refuse_label(self, rows: Rows, row: int) -> None:
        name, text = (rows.table.column(column)[row].as_py() for column in ("key", "label"))
        file, line = rows.place(row)
        if self._label(text) == _OTHER_LABEL:
            check_label(text, self.classes, strip=False, file=str(file), line=line or 0)
        if rows.manifest is None:
            raise rows.error(row, f"id {name!r} has no `label`, and there is no manifest that has it")
        place = "{}:{}".format(*rows.manifest_place(row))
        if text is None:
            raise rows.error(row, f"id {name!r} has no `label`, and none in the manifest ({place})")
        label, other = self.classes[self._label(text)], self.classes[1 - self._label(text)]
        raise rows.error(row, f"id {name!r} has label {label!r}, but {other!r} in the manifest ({place})")

    def _confidences(self, rows: Rows) -> tuple[Floats, Codes]:
        """The confidences, and which of them can be used; a bad one is refused unless it is to be counted."""
        texts = rows.table.column("confidence_text")
        confidence = floats(rows.table, "confidence")
        states = confidence_states(confidence, texts.is_valid().to_numpy())
        bad = np.flatnonzero((states == OUT_OF_RANGE) | (states == UNREADABLE))
        if bad.size and self.config.bad_confidence == "refuse":
            row = rows.first(bad)
            hint = "(--bad-confidence count goes on without such confidences and counts them)"
            text = texts[row].as_py()
            if text is None:
                raise rows.error(row, f"confidence {float(confidence[row])!r} is not between 0 and 1.", hint)
            more = " --percent reads percentages." if "%" in text else ""
            raise rows.error(row, f"confidence {text} is no number between 0 and 1.{more}", hint)
        return confidence, states

    def _slices(self, rows: Rows, batch: TriageBatch) -> dict[str, pa.DictionaryArray]:
        """The value of every slice: what the record's `meta` says, or else the manifest's."""
        if not self.config.slices:
            return {}
        texts = Texts.of(rows.table.column("slices"))
        values, place = [_decoded(text) for text in texts.distinct], texts.place
        keys = {key for value in values for key in value.pop(META_KEYS, ())}
        if rows.manifest is not None:
            match = rows.table.column("match").to_numpy()
            others = Texts.of(rows.manifest.column("slices"))
            both = place.astype(np.int64) * len(others.distinct) + others.place[match]
            pairs, inverse = np.unique(both, return_inverse=True)
            place = inverse.astype(np.int32)
            in_manifest = [_decoded(text) for text in others.distinct]
            keys |= {key for value in in_manifest for key in value.pop(META_KEYS, ())}
            values = [
                {**in_manifest[other], **values[of_record]}
                for of_record, other in (divmod(pair, len(others.distinct)) for pair in pairs.tolist())
            ]
        self._refuse_objects(rows, values, place)
        batch.meta_keys = frozenset(keys)
        return {
            name: Texts([value.get(str(number)) for value in values], place).column()
            for number, name in enumerate(self.config.slices)
        }

    def _refuse_objects(self, rows: Rows, values: Sequence[dict[str, Any]], place: NDArray[Any]) -> None:
        """A slice is cut by single values; an object or a list at its key is an InputError."""
        for number, value in enumerate(values):
            odd = [int(slice_) for slice_, single in value.items() if isinstance(single, list)]
            of_value = np.flatnonzero(place == number) if odd else np.zeros(0)
            if of_value.size:
                file, line = rows.place(int(of_value[0]))
                if file is None:
                    file, line = rows.manifest_place(int(of_value[0]))
                name, kind = self.config.slices[odd[0]].removeprefix("meta."), value[str(odd[0])][0]
                raise InputError(f"slice meta.{name} is {kind}, not one value", file=file, line=line)


def _decoded(text: str | None) -> dict[str, Any]:
    values: dict[str, Any] = {} if text is None else msgspec.json.decode(text)
    return values


def _carries(table: pa.Table, models: Texts) -> NDArray[np.uint8]:
    """A bit for every PROVENANCE item that the record has."""
    bits: NDArray[np.uint8] = models.each(_model_bits, np.uint8)
    for name, column in (
        ("prompt_hashes", table.column("prompts").is_valid()),
        ("cache", table.column("cache").is_valid()),
        ("timestamp", table.column("stamped").fill_null(False)),
        ("temperature", table.column("temperature").is_valid()),
    ):
        bits |= column.to_numpy().astype(np.uint8) * np.uint8(_BITS[name])
    return bits


def _model_bits(text: str | None) -> int:
    models = None if text is None else msgspec.json.decode(text)
    if not isinstance(models, dict):
        return 0
    return sum(_BITS[name] for name in PROVENANCE[:3] if models.get(name.removeprefix("models.")))


def _notes(table: pa.Table, answer: Codes) -> dict[int, str]:
    """What is told of records that are errors or whose verdict is no word."""
    odd = np.flatnonzero((answer == ERRORED) | (answer == UNPARSED))
    texts = table.select(["prediction", "error", "error_type"]).take(pa.array(odd)).to_pydict()
    return {
        row: ": ".join(text for text in (kind, error) if text)[:200]
        if code == ERRORED
        else "there is none"
        if word is None
        else repr(word)[:200]
        for row, code, word, error, kind in zip(odd.tolist(), answer[odd].tolist(), *texts.values(), strict=True)
    }


def _refuse_two_labels(label: Codes, rows: Rows, classes: Classes) -> None:
    """One sample has one label, whoever answers it and however often."""
    ids = rows.table.column("key").combine_chunks()
    wrong = np.flatnonzero((label[1:] != label[:-1]) & same_as_before(ids))
    if wrong.size:
        row = int(wrong[0])
        file, line = rows.place(row)
        raise rows.error(
            row + 1,
            f"id {ids[row].as_py()!r} has label {classes[label[row + 1]]!r}, but {classes[label[row]]!r} at {file}:{line}",
        )


def _outputs(rows: Rows) -> pa.Table:
    """What the system answered, and where it stands in the input; the picture is the record's or the manifest's."""
    table = rows.table
    words = {
        name: Texts.of(table.column(name)).column() for name in ("prediction", "confidence_text", "error", "error_type")
    }
    texts = {
        name: table.column(name).combine_chunks()
        for name in ("tools", "image", "rationale", "analysis", "raw_response")
    }
    if rows.manifest is not None:
        images = rows.manifest.column("image").take(table.column("match")).combine_chunks()
        texts["image"] = pc.coalesce(texts["image"], images)
    file = table.column("file").fill_null(len(rows.files)).to_numpy()
    return pa.table(
        {
            "file": Texts([*rows.files, None], file).column(),
            "line": table.column("line"),
            "response": words.pop("prediction"),
            **words,
            **texts,
        }
    )
