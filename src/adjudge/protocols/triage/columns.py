"""From rows to columns: words to codes, texts to numbers, what each record carries."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import ConfigError
from adjudge.protocols.triage.batch import (
    CONFIDENCE_STATES,
    ERRORED,
    HIT,
    MISS,
    MISSING,
    OUT_OF_RANGE,
    PROVENANCE,
    TIMES,
    UNKNOWN,
    UNPARSED,
    UNREADABLE,
    Codes,
    Floats,
    TriageBatch,
    confidence_states,
)
from adjudge.protocols.triage.config import TriageConfig
from adjudge.protocols.triage.read import Entry, Group, Lookup, Rows
from adjudge.protocols.triage.words import UNCERTAIN, check_label, normal, verdict_words
from adjudge.provenance.canonical import canonical
from adjudge.readers.triage_results import NO_RAW, is_given

TEXT_LIMIT = 2000
_EMPTY = hashlib.sha256(b"").hexdigest()
_CACHE = {True: HIT, False: MISS, None: UNKNOWN}
_FIELDS = attrgetter(
    "id",
    "label",
    "prediction",
    "confidence",
    "error",
    "error_type",
    "timings.total_seconds",
    "timings.vision_llm_seconds",
    "timings.agent_graph_seconds",
    "latency_seconds",
    "timings.model_seconds",
    "cache.hit",
    "tool_usage",
    "tool_details",
    "prompt_hashes",
    "models",
    "run_config.temperature",
    "timestamp",
    "meta",
)
_PROMPTS, _CACHED, _TIME, _TEMPERATURE = (
    1 << PROVENANCE.index(name) for name in ("prompt_hashes", "cache", "timestamp", "temperature")
)


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
    """Makes columns of rows; its tables hold every word it has met."""

    def __init__(self, config: TriageConfig) -> None:
        self.config, self.classes = config, config.classes()
        codes = {self.classes.positive: 0, self.classes.negative: 1, UNCERTAIN: 2}
        words = {word: codes[meaning] for word, meaning in verdict_words(self.classes, config.words).items()}
        self._answers = Lookup(lambda word: UNPARSED if word is None else words.get(normal(word), UNPARSED))
        self._labels = {self.classes.positive: 0, self.classes.negative: 1}
        self._prompts = Lookup(_prompt_names)
        self._models = Lookup(_model_names)
        self._keys = tuple(name.removeprefix("meta.") for name in config.slices)

    def read(self, rows: Rows, order: NDArray[np.int64]) -> ReadBatch:
        """The columns of some rows, in this order."""
        chosen = order.tolist()
        (
            ids,
            labels,
            predictions,
            confidences,
            errors,
            kinds,
            *times,
            hits,
            usage,
            details,
            prompts,
            models,
            temperatures,
            stamps,
            metas,
        ) = zip(*[_FIELDS(rows.results[index]) for index in chosen], strict=True)
        n = len(chosen)
        answer = np.fromiter(map(self._answers.__getitem__, predictions), dtype=np.int8, count=n)
        failed = np.fromiter(map(bool, errors), dtype=bool, count=n) | np.fromiter(
            map(bool, kinds), dtype=bool, count=n
        )
        answer[failed] = ERRORED
        answer[order >= rows.received] = MISSING
        cache = np.fromiter(map(_CACHE.__getitem__, hits), dtype=np.int8, count=n)
        temperature = _floats(temperatures)
        prompt = [self._prompts[bytes(raw)] for raw in prompts]
        model, carries = self._model_columns(models)
        carries |= np.where([text is not None for text in prompt], _PROMPTS, 0).astype(np.uint8)
        carries |= np.where(cache != UNKNOWN, _CACHED, 0).astype(np.uint8)
        carries |= np.where([raw is not NO_RAW and is_given(raw) for raw in stamps], _TIME, 0).astype(np.uint8)
        carries |= np.where(np.isnan(temperature), 0, _TEMPERATURE).astype(np.uint8)
        batch = TriageBatch(
            label=self._label_column(labels, rows, chosen),
            answer=answer,
            **self._confidence_columns(confidences, rows, order),
            times=np.stack([_floats(column) for column in times]),
            cache=cache,
            tool_count=np.fromiter((len(tools) if tools else 0 for tools in usage), dtype=np.int32, count=n),
            tool_seconds=np.fromiter(map(_seconds, details), dtype=np.float64, count=n),
            temperature=temperature,
            carries=carries,
            notes=_notes(answer, predictions, errors, kinds),
        )
        _refuse_two_labels(batch.label, ids, rows, chosen, self.classes)
        used = sorted({rows.groups[index] for index in chosen}, key=lambda group: group.name)
        places = {group: index for index, group in enumerate(used)}
        return ReadBatch(
            batch,
            pa.array(ids, pa.string()),
            tuple(used),
            np.fromiter((places[rows.groups[index]] for index in chosen), dtype=np.int32, count=n),
            _words(prompt),
            _words(model),
            self._slice_columns(metas, ids, rows),
            _outputs(rows, chosen, batch, predictions, errors, kinds),
        )

    def _label_column(self, labels: Sequence[str | None], rows: Rows, chosen: Sequence[int]) -> Codes:
        known = self._labels
        if rows.manifest is None:
            codes = [known.get(label, -1) for label in labels]  # type: ignore[arg-type]
            unknown = [at for at, code in enumerate(codes) if code < 0] if -1 in codes else []
        else:
            codes, unknown = [-1] * len(labels), list(range(len(labels)))
        for at in unknown:
            codes[at] = self._label(labels[at], rows, chosen[at])
        return np.array(codes, dtype=np.int8)

    def _label(self, label: str | None, rows: Rows, index: int) -> int:
        """The label of one record: its own, held against the manifest, or the manifest's where it has none."""
        name = rows.results[index].id
        file, line = rows.place(index)
        if label is not None and label not in self._labels:
            label = check_label(label, self.classes, strip=self.config.strip_labels, file=str(file), line=line or 0)
        if rows.manifest is None:
            if label is None:
                raise rows.error(index, f"id {name!r} has no `label`, and there is no manifest that has it")
            return self._labels[label]
        entry: Entry = rows.manifest[name]
        there, at = rows.files[entry.place[0]], entry.place[1]
        if label is None:
            if entry.label is None:
                raise rows.error(index, f"id {name!r} has no `label`, and none in the manifest ({there}:{at})")
            return self._labels[entry.label]
        if entry.label is not None and entry.label != label:
            raise rows.error(
                index, f"id {name!r} has label {label!r}, but {entry.label!r} in the manifest ({there}:{at})"
            )
        return self._labels[label]

    def _confidence_columns(
        self, values: Sequence[float | None], rows: Rows, order: NDArray[np.int64]
    ) -> dict[str, Any]:
        confidence = _floats(values)
        unreadable = np.isin(order, list(rows.unreadable)) if rows.unreadable else np.zeros(order.size, dtype=bool)
        states = confidence_states(confidence, unreadable)
        bad = np.flatnonzero((states == OUT_OF_RANGE) | (states == UNREADABLE))
        if bad.size and self.config.bad_confidence == "refuse":
            index = min((int(order[at]) for at in bad), key=lambda row: (rows.file[row], rows.line[row]))
            shown = rows.unreadable.get(index)
            hint = "(--bad-confidence count goes on without such confidences and counts them)"
            if shown is None:
                raise rows.error(index, f"confidence {rows.results[index].confidence!r} is not between 0 and 1.", hint)
            more = " --percent reads percentages." if "%" in shown else ""
            raise rows.error(index, f"confidence {shown} is no number between 0 and 1.{more}", hint)
        return {"confidence": confidence, "confidence_state": states}

    def _model_columns(self, models: Sequence[msgspec.Raw]) -> tuple[list[str | None], NDArray[np.uint8]]:
        if all(raw is NO_RAW for raw in models):
            return [None] * len(models), np.zeros(len(models), dtype=np.uint8)
        found = [self._models[bytes(raw)] for raw in models]
        return [name for name, _ in found], np.array([bits for _, bits in found], dtype=np.uint8)

    def _slice_columns(
        self, metas: Sequence[msgspec.Raw], ids: Sequence[str], rows: Rows
    ) -> tuple[pa.DictionaryArray, ...]:
        if not self._keys:
            return ()
        found: list[list[str | None]] = [[] for _ in self._keys]
        for raw, name in zip(metas, ids, strict=True):
            own = _meta(raw)
            if rows.manifest is not None:
                own = {**_meta(rows.manifest[name].meta), **own}
            for column, key in zip(found, self._keys, strict=True):
                column.append(_slice_value(own, key))
        return tuple(_words(column) for column in found)


def _refuse_two_labels(
    label: Codes, ids: Sequence[str], rows: Rows, chosen: Sequence[int], classes: Sequence[str]
) -> None:
    """One sample has one label, whoever answers it and however often."""
    for at in np.flatnonzero(label[1:] != label[:-1]).tolist():
        if ids[at] == ids[at + 1]:
            there, line = rows.place(chosen[at])
            raise rows.error(
                chosen[at + 1],
                f"id {ids[at]!r} has label {classes[label[at + 1]]!r}, but {classes[label[at]]!r} at {there}:{line}",
            )


def _outputs(
    rows: Rows,
    chosen: Sequence[int],
    batch: TriageBatch,
    predictions: Sequence[str | None],
    errors: Sequence[str | None],
    kinds: Sequence[str | None],
) -> pa.Table:
    """What the system said, and where it stands in the input."""
    index = np.array(chosen)
    missing = index >= rows.received
    index[missing] = 0
    files, lines = (np.array(column or [0])[index] for column in (rows.file, rows.line))
    names = pa.DictionaryArray.from_arrays(pa.array(files, mask=missing), pa.array(rows.files or ("",), pa.string()))
    odd = [rows.unreadable.get(place) for place in chosen] if rows.unreadable else [None] * batch.n
    return pa.table(
        {
            "file": names.cast(pa.string()),
            "line": pa.array(lines, pa.int64(), mask=missing),
            "response": _texts(predictions),
            "confidence_text": _texts(odd),
            "error": _texts(errors),
            "error_type": _texts(kinds),
        }
    )


def _texts(values: Sequence[str | None]) -> pa.Array:
    """Texts as they can be stored; most columns are short and plain."""
    if any(values):
        known = {value: _storable(value) for value in set(values)}
        values = [known[value] for value in values]
    return pa.array(values, pa.string())


def _notes(
    answer: Codes, predictions: Sequence[str | None], errors: Sequence[str | None], kinds: Sequence[str | None]
) -> dict[int, str]:
    """What is said of records that are errors or whose verdict is no word."""
    notes = {}
    for index in np.flatnonzero((answer == ERRORED) | (answer == UNPARSED)).tolist():
        if answer[index] == ERRORED:
            said = ": ".join(text for text in (kinds[index], errors[index]) if text)
        else:
            said = "there is none" if predictions[index] is None else repr(predictions[index])
        notes[index] = str(_storable(said))[:200]
    return notes


def _storable(text: str | None) -> str | None:
    """Text that UTF-8 can carry, cut at a bound."""
    if text is None or (text.isascii() and len(text) <= TEXT_LIMIT):
        return text
    return text[:TEXT_LIMIT].encode("utf-8", "replace").decode()


def _floats(values: Iterable[float | None]) -> Floats:
    return np.array(values, dtype=np.float64)


def _seconds(tools: Sequence[Any] | None) -> float:
    if not tools:
        return 0.0
    return math.fsum(tool.seconds for tool in tools if tool.seconds is not None)


def _prompt_names(raw: bytes) -> str | None:
    """The prompts by component, each by the first 16 digits of its hash; an empty prompt is none."""
    value = msgspec.json.decode(raw) if raw else None
    if not isinstance(value, dict):
        return hashlib.sha256(canonical(value)).hexdigest()[:16] if value else None
    found = {
        name: text[:16] if isinstance(text, str) else hashlib.sha256(canonical(text)).hexdigest()[:16]
        for name, text in value.items()
        if text and text != _EMPTY
    }
    return canonical(found).decode() if found else None


def _model_names(raw: bytes) -> tuple[str | None, int]:
    """The model identifiers as one text, and the provenance bits of those that are there."""
    value = msgspec.json.decode(raw) if raw else None
    if isinstance(value, dict):
        value = {name: said for name, said in value.items() if said is not None}
    if not value:
        return None, 0
    if not isinstance(value, dict):
        return canonical(value).decode(), 0
    bits = sum(1 << index for index, name in enumerate(PROVENANCE[:3]) if value.get(name.removeprefix("models.")))
    return canonical(value).decode(), bits


def _meta(raw: msgspec.Raw) -> dict[str, Any]:
    value = msgspec.json.decode(raw) if bytes(raw) else None
    return value if isinstance(value, dict) else {}


def _slice_value(meta: dict[str, Any], key: str) -> str | None:
    value: Any = meta
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return None
    if isinstance(value, dict | list):
        raise ConfigError(f"slice meta.{key} is {'an object' if isinstance(value, dict) else 'a list'}, not one value")
    return value if isinstance(value, str) else canonical(value).decode()


def _words(values: Sequence[str | None]) -> pa.DictionaryArray:
    """A dictionary column whose words stand in sorted order, so that equal values give equal bytes."""
    words = sorted({value for value in values if value is not None})
    where = {word: index for index, word in enumerate(words)}
    codes = pa.array([None if value is None else where[value] for value in values], pa.int32())
    return pa.DictionaryArray.from_arrays(codes, pa.array(words, pa.string()))


__all__ = ["CONFIDENCE_STATES", "TIMES", "Columns", "ReadBatch"]
