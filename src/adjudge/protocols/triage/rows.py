"""From blocks of records to columns: the results of a run, the manifest, and which samples the calibration has.

A column is empty where the record does not have the value. Texts that many records share are dictionaries.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from adjudge.errors import InputError
from adjudge.protocols.base import Role
from adjudge.protocols.common.columns import Fields, cut, fields_of
from adjudge.protocols.triage.batch import ABSTAINED, ERRORED, META_KEYS, NEGATIVE, POSITIVE, TIMES, UNPARSED
from adjudge.protocols.triage.config import SOURCES, TriageConfig
from adjudge.protocols.triage.words import UNCERTAIN, check_label, normal, verdict_words
from adjudge.provenance.canonical import canonical
from adjudge.readers.blocks import Block, what_is_wrong
from adjudge.readers.texts import texts_of
from adjudge.readers.triage_results import (
    IDS,
    LONG_TEXTS,
    MANIFEST,
    NO_RAW,
    NOTHING,
    RESULTS,
    ManifestRow,
    Result,
    Timings,
    Tool,
    loose_result,
    temperature,
    words,
)

K = TypeVar("K", bound=Hashable)

EXPECTED = "a result is a JSON object with `id`, `label`, `prediction` and `confidence`"
EXPECTED_IN_MANIFEST = "a manifest record is a JSON object with `id` and `label`"
TEXT_LIMIT = 2000
ROLES = {
    "results": Role(Result, (("id",), ("prediction",)), "adjudge triage --results FILE"),
    "manifest": Role(ManifestRow, (("id",), ("label",)), "adjudge triage --results … --manifest FILE"),
}
_NO_TIMINGS = Timings()
_EMPTY = hashlib.sha256(b"").hexdigest()


class ResultRows:
    """Reads the results of one run; further runs are named in the configurations of their records."""

    def __init__(self, config: TriageConfig, run: str | None) -> None:
        self.config, self._run = config, () if run is None else (run,)
        classes = config.classes()
        codes = {classes.positive: POSITIVE, classes.negative: NEGATIVE, UNCERTAIN: ABSTAINED}
        self._codes = {word: codes[meaning] for word, meaning in verdict_words(classes, config.words).items()}

    def read(self, block: Block) -> pa.Table:
        """A row for every record; `group` is its configuration and trial."""
        confidence_texts: dict[int, str | None] = {}

        def loose(line: int, record: bytes) -> Result:
            try:
                result, confidence_texts[line] = loose_result(record, percent=self.config.percent)
            except InputError as error:
                raise InputError(error.what, file=block.path, line=line, hint=error.hint) from None
            return result

        results = block.decode(RESULTS, EXPECTED, loose)
        column = fields_of(results, Result)
        timings = [timings or _NO_TIMINGS for timings in column["timings"]]
        seconds = {**fields_of(timings, Timings), "latency_seconds": column["latency_seconds"]}
        columns = {
            "key": _ids(column["id"]),
            "group": _words(zip(column["model"], column["use_tools"], column["trial"], strict=True), self._group),
            **_place(block),
            "label": _words(column["label"], lambda label: label),
            "answer": pa.array(self._answers(column), pa.int8()),
            **{name: _texts(column[name]) for name in ("prediction", "error", "error_type")},
            "confidence": pa.array(column["confidence"], pa.float64()),
            "confidence_text": _texts([confidence_texts.get(line) for line in block.lines.tolist()])
            if confidence_texts
            else pa.nulls(len(block), pa.string()),
            **{name: pa.array(seconds[name], pa.float64()) for name in TIMES},
            "cache": pa.array([cache and cache.hit for cache in column["cache"]], pa.bool_()),
            **_tool_columns(column["tool_details"], column["tool_usage"]),
            "stamped": pa.array(
                [stamp is not NO_RAW and bytes(stamp) not in NOTHING for stamp in column["timestamp"]], pa.bool_()
            ),
            "prompts": _json_words(block, column["prompt_hashes"], _prompts, EXPECTED),
            "models": _json_words(block, column["models"], _facts, EXPECTED),
            "run_config": _json_words(block, column["run_config"], _facts, EXPECTED),
            "image": _texts(column["image"]),
            **{f"raw_{name}" if name == "response" else name: _long_texts(column[name]) for name in LONG_TEXTS},
        }
        if self.config.split_by:
            columns["group"] = self._split(columns, column)
        columns["temperature"] = _temperatures(block, columns["run_config"])
        if self.config.slices:
            columns["slices"] = _slices(block, column["meta"], self.config.slices, EXPECTED)
        return pa.table(columns)

    def _group(self, setup: tuple[str | None, bool | None, int | None], facts: str = "") -> str:
        model, tools, trial = setup
        mode = self.config.mode if tools is None else "tools" if tools else "no-tools"
        return "|".join((*self._run, (model or self.config.model) + facts, mode, str(trial or 0)))

    def _split(self, columns: Mapping[str, pa.Array], column: Fields) -> pa.DictionaryArray:
        """The groups, with the facts that configurations are split by in the name of the model."""
        texts = zip(*(columns[name].to_pylist() for name in ("models", "run_config", "prompts")), strict=True)
        setups = zip(column["model"], column["use_tools"], column["trial"], strict=True)
        return _words(zip(setups, texts, strict=True), lambda key: self._group(key[0], self._facts(key[1])))

    def _facts(self, texts: tuple[str | None, str | None, str | None]) -> str:
        recorded = dict(zip(SOURCES, (_object(text) for text in texts), strict=True))
        values = []
        for fact in self.config.split_by:
            source, _, key = fact.partition(".")
            value = recorded[source].get(key)
            values.append(f"{key}={value if isinstance(value, str) else canonical(value).decode()}")
        return f" [{', '.join(values)}]"

    def answer(self, word: str | None) -> int:
        """Which class a word stands for, by code; one that is not declared is unparsed."""
        return UNPARSED if word is None else self._codes.get(normal(word), UNPARSED)

    def _answers(self, column: Fields) -> list[int]:
        """Which class was answered, or that nothing could be."""
        words = {word: self.answer(word) for word in set(column["prediction"])}
        return [
            ERRORED if error or kind else words[word]
            for word, error, kind in zip(column["prediction"], column["error"], column["error_type"], strict=True)
        ]


class ManifestRows:
    """Reads the manifest: id, label (by code, checked at once), place, and what its slices are cut by."""

    def __init__(self, config: TriageConfig) -> None:
        self.config, self._classes = config, config.classes()

    def read(self, block: Block) -> pa.Table:
        """A row for every record."""
        records = block.decode(MANIFEST, EXPECTED_IN_MANIFEST)
        labels = [self._label(record.label, block, row) for row, record in enumerate(records)]
        columns = {
            "key": _ids([record.id for record in records]),
            **_place(block),
            "label": pa.array(labels, pa.int8()),
            "image": _json_words(block, [record.image for record in records], _text, EXPECTED_IN_MANIFEST),
        }
        if self.config.slices:
            metas = [record.meta for record in records]
            columns["slices"] = _slices(block, metas, self.config.slices, EXPECTED_IN_MANIFEST)
        return pa.table(columns)

    def _label(self, label: str | None, block: Block, row: int) -> int | None:
        if not label:
            return None
        strip, line = self.config.strip_labels, int(block.lines[row])
        return self._classes.index(check_label(label, self._classes, strip=strip, file=block.path, line=line))


def read_ids(block: Block) -> pa.Table:
    """Which samples a calibration file has, and where."""
    return pa.table({"key": _ids([record.id for record in block.decode(IDS, EXPECTED)]), **_place(block)})


def _ids(values: Sequence[str | int]) -> pa.StringArray:
    return pa.array(list(map(str, values)), pa.string())


def _place(block: Block) -> dict[str, pa.Array]:
    return {"file": pa.array(np.full(len(block), block.file, dtype=np.int32)), "line": pa.array(block.lines)}


class _Places(dict[K, int | None], Generic[K]):
    """The place of each key's word in `words`, found when the key is first asked for; None where it has no word."""

    def __init__(self, word: Callable[[K], str | None]) -> None:
        super().__init__()
        self._word, self.words = word, dict[str, int]()

    def __missing__(self, key: K) -> int | None:
        word = self._word(key)
        place = self[key] = None if word is None else self.words.setdefault(word, len(self.words))
        return place


def _words(keys: Iterable[K], word: Callable[[K], str | None]) -> pa.DictionaryArray:
    """A column of texts of which there are few: what `word` makes of each key, asked once for equal keys."""
    places = _Places(word)
    places_of_rows = pa.array(list(map(places.__getitem__, keys)), pa.int32())
    return pa.DictionaryArray.from_arrays(places_of_rows, pa.array(list(places.words), pa.string()))


def _texts(values: Sequence[str | None]) -> pa.StringArray:
    """Texts that may be long and all different; they are stored up to a length."""
    return cut(pa.array(values, pa.string()), TEXT_LIMIT)


def _long_texts(values: Sequence[msgspec.Raw]) -> pa.StringArray:
    """Texts of which each is another, stored up to a length; a value that is no text stands as its JSON."""
    return cut(texts_of(values, lambda _, value: words(msgspec.json.decode(value))), TEXT_LIMIT)


def _json_words(
    block: Block, values: Sequence[msgspec.Raw], word: Callable[[Any], str | None], expected: str
) -> pa.DictionaryArray:
    """A column of what `word` makes of JSON values, None where there is none."""
    # A record is one line, so no value has a line end.
    texts = b"\n".join(values).split(b"\n") if values else []

    def decoded(text: bytes) -> str | None:
        try:
            return word(msgspec.json.decode(text) if text else None)
        except (msgspec.DecodeError, RecursionError) as error:
            line = int(block.lines[texts.index(text)])
            raise InputError(what_is_wrong(error, expected), file=block.path, line=line) from None

    return _words(texts, decoded)


def _object(text: str | None) -> dict[str, Any]:
    value = None if text is None or not text.startswith("{") else msgspec.json.decode(text)
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value[:TEXT_LIMIT] if isinstance(value, str) else None


def _prompts(hashes: Any) -> str | None:
    """The prompts by component, each by the first 16 digits of its hash; an empty prompt is none."""
    if not isinstance(hashes, dict):
        return hashlib.sha256(canonical(hashes)).hexdigest()[:16] if hashes else None
    names = {
        name: text[:16] if isinstance(text, str) else hashlib.sha256(canonical(text)).hexdigest()[:16]
        for name, text in hashes.items()
        if text and text != _EMPTY
    }
    return canonical(names).decode() if names else None


def _facts(recorded: Any) -> str | None:
    """What `models` or `run_config` record of the system, as one text; a null is nothing recorded."""
    if isinstance(recorded, dict):
        recorded = {name: value for name, value in recorded.items() if value is not None}
    return canonical(recorded).decode() if recorded else None


def _temperatures(block: Block, run_configs: pa.DictionaryArray) -> pa.Array:
    """The temperature that each record's `run_config` states; one that is no number is an InputError."""
    values: list[float | None] = []
    for place, text in enumerate(run_configs.dictionary.to_pylist()):
        try:
            values.append(temperature(msgspec.json.decode(text)))
        except InputError as error:
            line = int(block.lines[run_configs.indices.to_pylist().index(place)])
            raise InputError(error.what, file=block.path, line=line) from None
    return pa.array(values, pa.float64()).take(run_configs.indices)


def _tool_columns(
    details: Sequence[list[Tool] | None], usage: Sequence[list[msgspec.Raw] | None]
) -> dict[str, pa.Array]:
    """How many tools were called, for how long, and which, as JSON: with their seconds where the record has them."""
    n = len(usage)
    if not any(details) and not any(usage):
        nothing = np.zeros(n)
        return {
            "tool_count": pa.array(nothing, pa.int32()),
            "tool_seconds": pa.array(nothing),
            "tools": pa.nulls(n, pa.string()),
        }
    seconds = [math.fsum([call.seconds or 0.0 for call in calls]) if calls else 0.0 for calls in details]
    called: list[Sequence[Any] | None] = [calls or names for calls, names in zip(details, usage, strict=True)]
    return {
        "tool_count": pa.array([len(names) if names else 0 for names in usage], pa.int32()),
        "tool_seconds": pa.array(seconds, pa.float64()),
        "tools": _texts([msgspec.json.encode(calls).decode() if calls else None for calls in called]),
    }


def _slices(block: Block, metas: Sequence[msgspec.Raw], slices: Sequence[str], expected: str) -> pa.DictionaryArray:
    """What `meta` objects hold at the keys of slices: a JSON object from the place of a slice to its value.

    A slice whose first key is not there is left out, so that the manifest may say it; then META_KEYS has the keys that are
    there, for whoever mistyped one. What is no single value is a list with the word for it.
    """
    paths = {str(place): name.removeprefix("meta.").split(".") for place, name in enumerate(slices)}

    def values(meta: Any) -> str:
        keys = meta if isinstance(meta, dict) else {}
        content: dict[str, Any] = {place: _at(meta, path) for place, path in paths.items() if path[0] in keys}
        if any(content.get(place) is None for place in paths):
            content[META_KEYS] = sorted(keys)
        return canonical(content).decode()

    return _json_words(block, metas, values, expected)


def _at(value: Any, path: Sequence[str]) -> str | list[str] | None:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, dict | list):
        return ["an object" if isinstance(value, dict) else "a list"]
    return value if value is None or isinstance(value, str) else canonical(value).decode()
