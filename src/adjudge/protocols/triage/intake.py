"""From blocks of JSON to columns: what is kept of every result, manifest and calibration record until it is judged.

Numbers are packed side by side. Words are few: what a record says of its making (`setup`) and of its answer (`said`)
is a short JSON text each, made once for all records that hold the same.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.base import Block
from adjudge.protocols.triage.batch import ERRORED, HIT, MISS, MISSING, PROVENANCE, UNKNOWN, UNPARSED, Floats
from adjudge.protocols.triage.config import TriageConfig
from adjudge.protocols.triage.words import UNCERTAIN, check_label, normal, verdict_words
from adjudge.provenance.canonical import canonical
from adjudge.readers.numbered import Numbered
from adjudge.readers.scan import (
    ABSENT,
    ARRAY,
    ESCAPED,
    FALSE,
    INTEGER,
    NULL,
    OBJECT,
    REAL,
    TEXT,
    TRUE,
    Path,
    Scanned,
    Wanted,
    scan,
)
from adjudge.readers.triage_results import Result, id_of, is_given, manifest_row, result

EXPECTED = "a result is a JSON object with `id`, `label`, `prediction` and `confidence`"
EXPECTED_IN_MANIFEST = "a manifest record is a JSON object with `id` and `label`"
TEXT_LIMIT = 2000
NO_LABEL, OTHER_LABEL = -1, -2
MOST_TOOLS = 8  # calls of tools that the compiled loops look into; a record with more is read the ordinary way
LAST_TRIAL = (1 << 31) - 1

NUMBERS = np.dtype(
    [
        ("confidence", "f8"),
        ("total_seconds", "f8"),
        ("vision_llm_seconds", "f8"),
        ("agent_graph_seconds", "f8"),
        ("latency_seconds", "f8"),
        ("model_seconds", "f8"),
        ("tool_seconds", "f8"),
        ("tool_count", "i4"),
        ("file", "i4"),
    ]
)
"""The numbers of a result, NaN for none, and its file; they travel as one column of fixed width."""

_EMPTY = hashlib.sha256(b"").hexdigest()
_PACKED = pa.binary(NUMBERS.itemsize)
_CACHE = {True: HIT, False: MISS, None: UNKNOWN}
_PROMPTS = 1 << PROVENANCE.index("prompt_hashes")
_TEMPERATURE = 1 << PROVENANCE.index("temperature")
_TEXTS, _NUMBERS = (TEXT, ESCAPED, NULL, ABSENT), (INTEGER, REAL, NULL, ABSENT)
_FLAGS, _LISTS, _OBJECTS = (TRUE, FALSE, NULL, ABSENT), (ARRAY, NULL, ABSENT), (OBJECT, ABSENT)
_SETUP: tuple[Path, ...] = (
    ("model",),
    ("use_tools",),
    ("trial",),
    ("prompt_hashes",),
    ("models",),
    ("run_config", "temperature"),
)
_SAID: tuple[Path, ...] = (("label",), ("prediction",), ("error",), ("error_type",), ("cache", "hit"))
_TIMES: dict[str, Path] = {
    **{
        name: ("timings", name)
        for name in ("total_seconds", "vision_llm_seconds", "agent_graph_seconds", "model_seconds")
    },
    "latency_seconds": ("latency_seconds",),
}


class Group(NamedTuple):
    """What varies between the records of one sample: the configuration (run, model, mode) and the trial."""

    configuration: str
    trial: int

    @property
    def name(self) -> str:
        """The group as it stands in the column `model`."""
        return f"{self.configuration}|{self.trial}"

    @classmethod
    def parse(cls, name: str) -> Group:
        """The group of a name."""
        configuration, _, trial = name.rpartition("|")
        return cls(configuration, int(trial))


class Setup(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What a record says of its making; `bits` are those of the PROVENANCE items that are there."""

    configuration: str
    trial: int
    prompts: str | None = None
    models: str | None = None
    bits: int = 0
    temperature: float | None = None

    @property
    def group(self) -> Group:
        """The group of the record."""
        return Group(self.configuration, self.trial)


class Said(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What a record says: codes of label, answer and cache, whether it has a timestamp, and the texts behind them.

    The label is NO_LABEL where none is given, OTHER_LABEL where it is no class; then `label_text` is what stands there.
    """

    label: int = NO_LABEL
    answer: int = MISSING
    cache: int = UNKNOWN
    stamped: bool = False
    response: str | None = None
    error: str | None = None
    error_type: str | None = None
    label_text: str | None = None
    confidence_text: str | None = None


class _Row(NamedTuple):
    """One record, read the ordinary way."""

    id: str
    setup: Setup
    said: Said
    numbers: tuple[float | int, ...]
    slices: str


class ResultIntake:
    """Reads the results of one run."""

    def __init__(self, config: TriageConfig, run: str | None) -> None:
        self.config, self.run, self.classes = config, run, config.classes()
        codes = {self.classes.positive: 0, self.classes.negative: 1, UNCERTAIN: 2}
        self._words = {word: codes[meaning] for word, meaning in verdict_words(self.classes, config.words).items()}
        self._prompts: dict[bytes, str | None] = {}
        self._models: dict[bytes, tuple[str | None, int]] = {}
        self._slices = SliceTexts(config.slices)
        paths: list[Path] = [("id",), ("confidence",), ("timestamp",), ("tool_usage",), *_SETUP, *_SAID]
        paths += [("tool_details", place, "seconds") for place in range(MOST_TOOLS)]
        self._wanted = Wanted([*paths, *_TIMES.values(), *self._slices.paths])
        self._setups: Numbered[tuple[str, str]] = Numbered(self._wanted, _SETUP)
        self._saids: Numbered[tuple[str, str]] = Numbered(self._wanted, _SAID)
        self._sliced: Numbered[str] = Numbered(self._wanted, self._slices.paths)

    def read(self, block: Block) -> pa.Table:
        """A row for every record."""
        scanned = self._scan(block)
        odd = np.flatnonzero(scanned.odd)
        rows: list[_Row] = block.each(odd.tolist(), self._reader(block), EXPECTED)

        def example(row: int) -> _Row:
            return block.each([row], self._reader(block), EXPECTED)[0]

        def setup(row: int) -> tuple[str, str]:
            found = example(row).setup
            return _text(found), found.group.name

        def said(row: int) -> tuple[str, str]:
            found = msgspec.structs.replace(example(row).said, stamped=False)
            return _short(found), _short(msgspec.structs.replace(found, stamped=True))

        codes, setups = self._setups.of(scanned, setup)
        columns = {
            "key": _keys(scanned, odd, [row.id for row in rows]),
            "line": pa.array(block.lines),
            "numbers": _packed(self._numbers(scanned, odd, rows, block.file)),
            "setup": _chosen(codes, [text for text, _ in setups], odd, [_text(row.setup) for row in rows]),
        }
        if self.config.manifest:
            names = [row.setup.group.name for row in rows]
            columns["group"] = _chosen(codes, [name for _, name in setups], odd, names)
        codes, saids = self._saids.of(scanned, said)
        codes = np.where(codes < 0, -1, 2 * codes + _stamped(scanned))
        pairs = [text for pair in saids for text in pair]
        columns["said"] = _chosen(codes, pairs, odd, [_short(row.said) for row in rows])
        if self._slices.paths:
            codes, texts = self._sliced.of(scanned, lambda row: example(row).slices)
            columns["slices"] = _chosen(codes, texts, odd, [row.slices for row in rows])
        return pa.table(columns)

    def _scan(self, block: Block) -> Scanned:
        """The rows that the typed reader would read too, and in the same way; all others are odd."""
        scanned = scan(self._wanted, block.data, block.starts, block.ends, fast=block.fast)
        if scanned.odd.all():
            return scanned
        scanned.expect("id", kinds=(TEXT, ESCAPED))
        for name in ("model", "label", "prediction", "error", "error_type"):
            scanned.expect(name, kinds=_TEXTS)
        scanned.expect("use_tools", kinds=_FLAGS)
        scanned.expect("cache", "hit", kinds=_FLAGS)
        for path in (("confidence",), ("run_config", "temperature"), *_TIMES.values()):
            scanned.expect(*path, kinds=_NUMBERS)
        for name in ("timings", "cache", "run_config"):
            scanned.expect(name, kinds=_OBJECTS)
        for name in ("tool_usage", "tool_details"):
            scanned.expect(name, kinds=_LISTS)
        scanned.expect("trial", kinds=(INTEGER, ABSENT))
        scanned.expect("timestamp", kinds=(INTEGER, REAL, TEXT, NULL, ABSENT))
        trial, tools = scanned.numbers("trial"), scanned.numbers("tool_details")
        scanned.odd |= (trial < 0) | (trial > LAST_TRIAL) | (tools > MOST_TOOLS)
        for place in range(min(int(tools.max()), MOST_TOOLS)):
            scanned.expect("tool_details", place, kinds=_OBJECTS)
            scanned.expect("tool_details", place, "seconds", kinds=_NUMBERS)
        return scanned

    def _numbers(self, scanned: Scanned, odd: NDArray[np.intp], rows: Sequence[_Row], file: int) -> NDArray[np.void]:
        found = np.zeros(scanned.odd.size, dtype=NUMBERS)
        if odd.size < scanned.odd.size:
            found["confidence"] = _floats(scanned, ("confidence",))
            for name, path in _TIMES.items():
                found[name] = _floats(scanned, path)
            found["tool_seconds"] = _tool_seconds(scanned)
            found["tool_count"] = np.where(scanned.kinds("tool_usage") == ARRAY, scanned.numbers("tool_usage"), 0)
        if rows:
            found[odd] = np.array([row.numbers for row in rows], dtype=NUMBERS)
        found["file"] = file
        return found

    def _reader(self, block: Block) -> Callable[[int, bytes], _Row]:
        def read(line: int, text: bytes) -> _Row:
            try:
                found, unreadable = result(text, percent=self.config.percent)
                return self._row(found, unreadable)
            except InputError as error:
                raise InputError(error.what, file=block.path, line=line, hint=error.hint) from None

        return read

    def _row(self, row: Result, unreadable: str | None) -> _Row:
        timings = row.timings
        numbers = (
            row.confidence,
            timings.total_seconds,
            timings.vision_llm_seconds,
            timings.agent_graph_seconds,
            row.latency_seconds,
            timings.model_seconds,
        )
        tools = math.fsum(tool.seconds for tool in row.tool_details or () if tool.seconds is not None)
        return _Row(
            row.id,
            self._setup(row),
            self._said(row, unreadable),
            (
                *(math.nan if value is None else value for value in numbers),
                tools,
                len(row.tool_usage or ()),
                0,
            ),
            self._slices.text(row.meta) if self._slices.paths else "",
        )

    def _setup(self, row: Result) -> Setup:
        if row.trial > LAST_TRIAL:
            raise InputError(f"`trial` is {row.trial}, expected a whole number up to {LAST_TRIAL}")
        mode = self.config.mode if row.use_tools is None else "tools" if row.use_tools else "no-tools"
        parts = (row.model or self.config.model, mode)
        prompts, models = bytes(row.prompt_hashes), bytes(row.models)
        if prompts not in self._prompts:
            self._prompts[prompts] = _prompt_names(prompts)
        if models not in self._models:
            self._models[models] = _model_names(models)
        names, bits = self._models[models]
        temperature = row.run_config.temperature
        bits |= _PROMPTS if self._prompts[prompts] is not None else 0
        bits |= _TEMPERATURE if temperature is not None else 0
        configuration = "|".join(parts if self.run is None else (self.run, *parts))
        return Setup(configuration, row.trial, self._prompts[prompts], names, bits, temperature)

    def _said(self, row: Result, unreadable: str | None) -> Said:
        answer = UNPARSED if row.prediction is None else self._words.get(normal(row.prediction), UNPARSED)
        label, text = NO_LABEL, None
        if row.label is not None:
            label, text = self._label(row.label)
        return Said(
            label,
            ERRORED if row.error or row.error_type else answer,
            _CACHE[row.cache.hit],
            is_given(row.timestamp),
            _storable(row.prediction),
            _storable(row.error),
            _storable(row.error_type),
            text,
            _storable(unreadable),
        )

    def _label(self, label: str) -> tuple[int, str | None]:
        """The code of a label; one that is no class is told when its record is judged."""
        try:
            known = check_label(label, self.classes, strip=self.config.strip_labels, file="", line=0)
        except InputError:
            return OTHER_LABEL, label
        return self.classes.index(known), None


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
        scanned.expect("label", kinds=_TEXTS)
        odd = np.flatnonzero(scanned.odd)

        def one(line: int, text: bytes) -> tuple[str, int, str]:
            name, label, meta = manifest_row(text)
            code = NO_LABEL
            if label is not None:
                strip = self.config.strip_labels
                code = self.classes.index(check_label(label, self.classes, strip=strip, file=block.path, line=line))
            return name, code, self._slices.text(meta) if self._slices.paths else ""

        def example(row: int) -> tuple[str, int, str]:
            return block.each([row], one, EXPECTED_IN_MANIFEST)[0]

        rows = block.each(odd.tolist(), one, EXPECTED_IN_MANIFEST)
        codes, labels = self._labels.of(scanned, lambda row: example(row)[1])
        label = np.array([*labels, 0], dtype=np.int8)[codes]
        label[odd] = [row[1] for row in rows]
        columns = {
            "key": _keys(scanned, odd, [row[0] for row in rows]),
            "line": pa.array(block.lines),
            "file": pa.array(np.full(len(block), block.file, dtype=np.int32)),
            "label": pa.array(label),
        }
        if self._slices.paths:
            codes, texts = self._sliced.of(scanned, lambda row: example(row)[2])
            columns["slices"] = _chosen(codes, texts, odd, [row[2] for row in rows])
        return pa.table(columns)


_ID = Wanted([("id",)])


def read_ids(block: Block) -> pa.Table:
    """Which samples a calibration file has, and where."""
    scanned = scan(_ID, block.data, block.starts, block.ends, fast=block.fast)
    scanned.expect("id", kinds=(TEXT, ESCAPED))
    odd = np.flatnonzero(scanned.odd)
    ids = block.each(odd.tolist(), lambda _, text: id_of(text), EXPECTED)
    return pa.table(
        {
            "key": _keys(scanned, odd, ids),
            "line": pa.array(block.lines),
            "file": pa.array(np.full(len(block), block.file, dtype=np.int32)),
        }
    )


class SliceTexts:
    """What a `meta` object holds at the keys that slices are cut by, as a short text.

    For every slice a list: nothing where the first key is not there, so that the manifest may say it; otherwise the
    value, null for none; and where that is no single value, what it is instead.
    """

    def __init__(self, slices: Sequence[str]) -> None:
        self._keys = [name.removeprefix("meta.").split(".") for name in slices]
        self.paths: list[Path] = list(dict.fromkeys(("meta", key[0]) for key in self._keys))

    def text(self, meta: msgspec.Raw) -> str:
        """The text of a record's `meta`."""
        found = msgspec.json.decode(meta) if bytes(meta) else None
        return _text([_at(found, key) if isinstance(found, dict) else [] for key in self._keys])


def _at(meta: dict[str, Any], key: Sequence[str]) -> list[str | None]:
    if key[0] not in meta:
        return []
    value: Any = meta
    for part in key:
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, dict | list):
        return [None, "an object" if isinstance(value, dict) else "a list"]
    return [value if value is None or isinstance(value, str) else canonical(value).decode()]


def unpacked(column: pa.ChunkedArray) -> NDArray[np.void]:
    """The numbers of a packed column."""
    array = column.combine_chunks()
    buffer = array.buffers()[1]
    return np.frombuffer(buffer, dtype=NUMBERS, count=len(array), offset=array.offset * NUMBERS.itemsize)


def _packed(numbers: NDArray[np.void]) -> pa.Array:
    return pa.Array.from_buffers(_PACKED, numbers.size, [None, pa.py_buffer(numbers.view(np.uint8))])


def _keys(scanned: Scanned, odd: NDArray[np.intp], ids: list[str]) -> pa.StringArray:
    if len(ids) == scanned.odd.size:
        return pa.array(ids, pa.string())
    found = scanned.texts("id")
    return pc.replace_with_mask(found, scanned.odd, pa.array(ids, pa.string())) if odd.size else found


def _chosen(codes: NDArray[np.int32], texts: list[str], odd: NDArray[np.intp], more: list[str]) -> pa.StringArray:
    """The text of every row: by its number, or its own where it is odd."""
    if odd.size:
        codes = codes.copy()
        codes[odd] = np.arange(len(texts), len(texts) + odd.size)
    return pa.array([*texts, *more], pa.string()).take(pa.array(codes))


def _floats(scanned: Scanned, path: Path) -> Floats:
    kind = scanned.kinds(*path)
    return np.where((kind == INTEGER) | (kind == REAL), scanned.numbers(*path), np.nan)


def _tool_seconds(scanned: Scanned) -> Floats:
    """The seconds of all tool calls of a record, added up exactly and rounded once."""
    calls = scanned.numbers("tool_details") * (scanned.kinds("tool_details") == ARRAY)
    most = min(int(calls.max()), MOST_TOOLS)
    if most == 0:
        return np.zeros(calls.size)
    seconds = np.stack([scanned.numbers("tool_details", place, "seconds") for place in range(most)])
    found: Floats = seconds[:2].sum(axis=0) + 0.0  # no negative zero
    for row in np.flatnonzero(calls > 2).tolist():
        found[row] = math.fsum(seconds[:, row])
    return found


def _stamped(scanned: Scanned) -> NDArray[np.int32]:
    kind = scanned.kinds("timestamp")
    first, last = scanned.spans("timestamp")
    given = (kind == INTEGER) | (kind == REAL) | ((kind == TEXT) & (last > first))
    return np.asarray(given, dtype=np.int32)


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _short(said: Said) -> str:
    """The text without what follows from the defaults; most records have no error and nothing odd."""
    values = list(msgspec.structs.astuple(said))
    while values[-1] is None:
        values.pop()
    return _text(values)


def _storable(text: str | None) -> str | None:
    return text if text is None else text[:TEXT_LIMIT]


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
