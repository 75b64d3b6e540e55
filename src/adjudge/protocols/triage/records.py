"""Results read the ordinary way, one record after another: what the compiled loops must agree with."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from adjudge.errors import InputError
from adjudge.protocols.triage.batch import ERRORED, HIT, MISS, PROVENANCE, UNKNOWN, UNPARSED
from adjudge.protocols.triage.config import TriageConfig
from adjudge.protocols.triage.facts import NO_LABEL, OTHER_LABEL, Facts, Said, Setup
from adjudge.protocols.triage.slices import SliceTexts
from adjudge.protocols.triage.words import UNCERTAIN, check_label, normal, verdict_words
from adjudge.provenance.canonical import canonical
from adjudge.readers.blocks import Block
from adjudge.readers.triage_results import Result, is_given, result

EXPECTED = "a result is a JSON object with `id`, `label`, `prediction` and `confidence`"
TEXT_LIMIT = 2000
LAST_TRIAL = (1 << 31) - 1

_EMPTY = hashlib.sha256(b"").hexdigest()
_CACHE = {True: HIT, False: MISS, None: UNKNOWN}
_PROMPTS = 1 << PROVENANCE.index("prompt_hashes")
_TEMPERATURE = 1 << PROVENANCE.index("temperature")


class Row(NamedTuple):
    """One record; `numbers` are those of NUMBERS, `tools` the seconds of every call of a tool."""

    id: str
    facts: Facts
    numbers: tuple[float | int, ...]
    tools: tuple[float, ...]
    slices: str


class Records:
    """Reads the records of one run."""

    def __init__(self, config: TriageConfig, run: str | None) -> None:
        self.config, self.run, self.classes = config, run, config.classes()
        codes = {self.classes.positive: 0, self.classes.negative: 1, UNCERTAIN: 2}
        self._words = {word: codes[meaning] for word, meaning in verdict_words(self.classes, config.words).items()}
        self._prompts: dict[bytes, str | None] = {}
        self._models: dict[bytes, tuple[str | None, int]] = {}
        self._slices = SliceTexts(config.slices)

    def reader(self, block: Block) -> Callable[[int, bytes], Row]:
        """From a line and its JSON to the record."""

        def read(line: int, text: bytes) -> Row:
            try:
                found, unreadable = result(text, percent=self.config.percent)
                return self._row(found, unreadable)
            except InputError as error:
                raise InputError(error.what, file=block.path, line=line, hint=error.hint) from None

        return read

    def _row(self, row: Result, unreadable: str | None) -> Row:
        timings = row.timings
        numbers = (
            row.confidence,
            timings.total_seconds,
            timings.vision_llm_seconds,
            timings.agent_graph_seconds,
            row.latency_seconds,
            timings.model_seconds,
        )
        tools = tuple(0.0 if tool.seconds is None else tool.seconds for tool in row.tool_details or ())
        return Row(
            row.id,
            Facts(self._setup(row), self._said(row, unreadable)),
            (
                *(math.nan if value is None else value for value in numbers),
                math.fsum(tools),
                len(row.tool_usage or ()),
                0,
                0,
            ),
            tools,
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


def stamped(facts: Facts, *, given: bool) -> Facts:
    """The facts of a record that has, or has not, a timestamp."""
    assert facts.said is not None  # noqa: S101 -- every record says something
    return Facts(facts.setup, msgspec.structs.replace(facts.said, stamped=given))


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
