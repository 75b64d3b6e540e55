"""What one batch of triage records adds to the numbers: exact counts, exact sums, and the columns that ranks need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.protocols.triage.batch import (
    ABSTAINED,
    ANSWERS,
    CACHE_STATES,
    CONFIDENCE_STATES,
    ERRORED,
    GIVEN,
    LATENCY,
    MISSING,
    NEGATIVE,
    POSITIVE,
    PROVENANCE,
    TOTAL,
    UNKNOWN,
    VISION,
    Floats,
    Texts,
    TriageBatch,
)
from adjudge.protocols.triage.matching import same_as_before
from adjudge.protocols.triage.words import Classes
from adjudge.readers.digests import MODULUS, digest_sum
from adjudge.stats import exact, selective
from adjudge.stats.calibration import Tally

CELLS = 2 * ANSWERS
SCORE_BINS = 20
POSSIBLY_CACHED = 0.25
_FACTS = {"prompts": "prompts", "models": "models", "run_config": "run_configs"}
"""Columns of what the records say of the system, and where they are counted; runs of version 1 do not store the last."""
NO_VALUE = "(none)"
AVERAGED = ("confidence", "latency_seconds", "tool_count", "tool_seconds_total")
Ints = NDArray[np.int64]
Pattern = tuple[tuple[int, int], ...]
_HAVE = [np.flatnonzero(np.arange(256) >> place & 1) for place in range(len(PROVENANCE))]


@dataclass
class Scores:
    """Answered rows with a usable confidence: confidence, whether right, whether positive, which sample and trial."""

    confidence: Floats
    correct: NDArray[np.bool_]
    positive: NDArray[np.bool_]
    sample: Ints
    trial: NDArray[np.int32]

    @cached_property
    def tally(self) -> Tally:
        """The confidences counted, by right and wrong."""
        return Tally.of(self.confidence, self.correct)

    @cached_property
    def blocks(self) -> selective.Blocks:
        """The tie blocks of the confidences."""
        return selective.Blocks.of(self.tally)

    def rows(self, chosen: NDArray[np.bool_]) -> Scores:
        """Some of the rows."""
        return Scores(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


@dataclass
class Block:
    """Some records of one configuration: all of them, or those of a slice."""

    counts: dict[int, Ints] = field(default_factory=dict)
    patterns: Counter[Pattern] = field(default_factory=Counter)
    scores: list[Scores] = field(default_factory=list)

    def add(self, other: Block, first_sample: int) -> None:
        """Add the block of a later batch, whose samples are numbered from `first_sample` on."""
        for trial, counts in other.counts.items():
            self.counts[trial] = self.counts[trial] + counts if trial in self.counts else counts
        self.patterns.update(other.patterns)
        self.scores += [replace(scores, sample=scores.sample + first_sample) for scores in other.scores]

    def total(self) -> Ints:
        """The counts of all trials."""
        return sum(self.counts.values(), start=np.zeros(CELLS, dtype=np.int64))

    def joined(self) -> Scores:
        """All scores as one."""
        if len(self.scores) != 1:
            names = Scores.__dataclass_fields__
            self.scores = [Scores(*(np.concatenate([getattr(s, name) for s in self.scores]) for name in names))]
        return self.scores[0]


@dataclass
class Configuration:
    """Everything of one configuration that is no block: what is averaged by trial, times by cache state, provenance."""

    rows: Counter[tuple[int, str]] = field(default_factory=Counter)
    """By trial and what is averaged, how many values there are, and in `units` their exact sum."""
    units: Counter[tuple[int, str]] = field(default_factory=Counter)
    states: dict[int, Ints] = field(default_factory=dict)
    times: dict[tuple[int, int], list[Floats]] = field(default_factory=dict)
    waits: dict[int, list[tuple[Floats, Ints]]] = field(default_factory=dict)
    """By cache state: how long each answer took, `latency_seconds` or else the total, and the number of its sample."""
    cache: Ints = field(default_factory=lambda: np.zeros(len(CACHE_STATES), dtype=np.int64))
    answers_of_unknown_cache: int = 0
    possibly_cached: int = 0
    carries: Ints = field(default_factory=lambda: np.zeros(len(PROVENANCE), dtype=np.int64))
    received: int = 0
    histogram: Ints = field(default_factory=lambda: np.zeros((2, 3, SCORE_BINS), dtype=np.int64))
    prompts: Counter[str | None] = field(default_factory=Counter)
    models: Counter[str | None] = field(default_factory=Counter)
    run_configs: Counter[str | None] = field(default_factory=Counter)
    temperatures: Counter[float | None] = field(default_factory=Counter)

    def add(self, other: Configuration, first_sample: int) -> None:
        """Add what a later batch found, whose samples are numbered from `first_sample` on."""
        for state, waits in other.waits.items():
            self.waits.setdefault(state, []).extend((times, sample + first_sample) for times, sample in waits)
        for trial, states in other.states.items():
            self.states[trial] = self.states[trial] + states if trial in self.states else states
        for key, values in other.times.items():
            self.times.setdefault(key, []).extend(values)
        for name in ("cache", "answers_of_unknown_cache", "possibly_cached", "carries", "received", "histogram"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in (*_FACTS.values(), "temperatures", "rows", "units"):
            getattr(self, name).update(getattr(other, name))

    def mean(self, trial: int, name: str) -> float | None:
        """The mean of what is averaged over a trial, correctly rounded; None without values."""
        rows = self.rows[trial, name]
        return exact.rounded(self.units[trial, name], rows) if rows else None


@dataclass
class Partial:
    """One batch, or all of them. Blocks are by (configuration, slice key, slice value); the whole has "" for both."""

    blocks: dict[tuple[str, str, str], Block] = field(default_factory=dict)
    configurations: dict[str, Configuration] = field(default_factory=dict)
    samples: int = 0
    dataset: int = 0
    meta_keys: frozenset[str] | None = None


def partial(samples: pa.Table, batch: TriageBatch, classes: Classes, slices: Sequence[str]) -> Partial:
    """What one batch adds; the records of a sample stand together and are all there."""
    ids = samples.column("sample").combine_chunks()
    first = np.append(True, ~same_as_before(ids))
    sample = np.cumsum(first) - 1
    trial = samples.column("trial").to_numpy()
    added = Partial(samples=int(sample[-1]) + 1 if sample.size else 0, meta_keys=batch.meta_keys)
    # A sum over the samples, so that a data set has one digest whatever its order and its cut.
    endings = [b"\x00" + name.encode() for name in classes]
    alone = ids if first.all() else ids.filter(pa.array(first))
    added.dataset = digest_sum(alone, endings, batch.label[first])
    facts = {name: Texts.of(samples.column(name)) for name in _FACTS if name in samples.column_names}
    values = {key: Texts.of(samples.column(key)) for key in slices}
    for name, rows in _by_text(Texts.of(samples.column("configuration"))):
        part, trials, numbers = batch.rows(rows), trial[rows], sample[rows]
        of_rows = {fact: texts.rows(rows) for fact, texts in facts.items()}
        added.configurations[str(name)] = _configuration(part, trials, numbers, of_rows)
        added.blocks[str(name), "", ""] = _block(part, trials, numbers)
        for key, texts in values.items():
            for value, mine in _by_text(texts.rows(rows)):
                shown = NO_VALUE if value is None else value
                added.blocks[str(name), key, shown] = _block(part.rows(mine), trials[mine], numbers[mine])
    return added


def merge(partials: Sequence[Partial]) -> Partial:
    """The whole, from partials in order."""
    whole = Partial()
    for part in partials:
        for key, block in part.blocks.items():
            whole.blocks.setdefault(key, Block()).add(block, whole.samples)
        for name, configuration in part.configurations.items():
            whole.configurations.setdefault(name, Configuration()).add(configuration, whole.samples)
        whole.samples += part.samples
        if part.meta_keys is not None:
            whole.meta_keys = part.meta_keys | (whole.meta_keys or frozenset())
        whole.dataset = (whole.dataset + part.dataset) % MODULUS
    return whole


def _block(batch: TriageBatch, trial: NDArray[np.int32], sample: Ints) -> Block:
    cell = batch.cell()
    counts = {t: np.bincount(cell[trial == t], minlength=CELLS) for t, _ in _tally(trial)}
    use = np.flatnonzero((batch.answer <= NEGATIVE) & (batch.confidence_state == GIVEN))
    label = batch.label[use]
    scores = Scores(batch.confidence[use], label == batch.answer[use], label == POSITIVE, sample[use], trial[use])
    return Block(counts, _patterns(sample, trial, cell), [scores])


def _patterns(sample: Ints, trial: NDArray[np.int32], cell: Ints) -> Counter[Pattern]:
    """How many samples have which cells in which trials."""
    patterns: Counter[Pattern] = Counter()
    starts = np.flatnonzero(np.append(True, sample[1:] != sample[:-1]))
    sizes = np.diff(np.append(starts, sample.size))
    key = trial.astype(np.int64) * CELLS + cell
    if starts.size == sample.size:
        kinds, counts = np.unique(key, return_counts=True)
        return Counter(
            {(divmod(kind, CELLS),): count for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True)}
        )
    for size in np.unique(sizes).tolist():
        rows = starts[sizes == size][:, None] + np.arange(size)
        kinds, counts = np.unique(key[rows], axis=0, return_counts=True)
        for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
            patterns[tuple(divmod(value, CELLS) for value in kind)] += count
    return patterns


def _configuration(
    batch: TriageBatch, trial: NDArray[np.int32], sample: Ints, facts: Mapping[str, Texts]
) -> Configuration:
    received = batch.answer != MISSING
    rows = np.flatnonzero(received)
    answered = received & (batch.answer <= NEGATIVE)
    usable = batch.confidence_state == GIVEN
    counted = Configuration(received=rows.size)
    latency = np.where(np.isnan(batch.times[LATENCY]), batch.times[TOTAL], batch.times[LATENCY])
    confidence = np.where(usable, batch.confidence, np.nan)
    columns = (confidence, latency, batch.tool_count.astype(np.float64), batch.tool_seconds)
    for t, _ in _tally(trial):
        mine = answered & (trial == t)
        for name, column in zip(AVERAGED, columns, strict=True):
            values = column[mine & ~np.isnan(column)]
            counted.rows[t, name] = values.size
            counted.units[t, name] = exact.total(values) if values.any() else 0
        counted.states[t] = np.bincount(batch.confidence_state[mine], minlength=len(CONFIDENCE_STATES))
    counted.cache = np.bincount(batch.cache[rows], minlength=len(CACHE_STATES))
    answered_unknown = received & (batch.cache == UNKNOWN) & (batch.answer != ERRORED)
    counted.answers_of_unknown_cache = int(answered_unknown.sum())
    tools = np.where(batch.tool_count > 0, batch.tool_seconds, np.nan)
    timed = [(place, column, np.isnan(column)) for place, column in enumerate((*batch.times, tools))]
    for state in np.flatnonzero(counted.cache).tolist():
        here = received & (batch.cache == state)
        waited = np.flatnonzero(here & (batch.answer != ERRORED) & ~np.isnan(latency))
        if waited.size:
            counted.waits[state] = [(latency[waited], sample[waited])]
        for place, column, none in timed:
            values = column[here & ~none] if none.any() else column[here]
            if values.size:
                counted.times[state, place] = [values]
    with np.errstate(invalid="ignore"):
        counted.possibly_cached = int(
            (received & (batch.cache == UNKNOWN) & (batch.times[VISION] < POSSIBLY_CACHED)).sum()
        )
    carried = np.bincount(batch.carries[rows], minlength=256)
    counted.carries = np.array([carried[_HAVE[place]].sum() for place in range(len(PROVENANCE))], dtype=np.int64)
    scored = received & usable & (batch.answer <= ABSTAINED)
    place = np.minimum((batch.confidence[scored] * SCORE_BINS).astype(np.int64), SCORE_BINS - 1)
    where = (batch.label[scored].astype(np.int64) * 3 + batch.answer[scored]) * SCORE_BINS + place
    counted.histogram = np.bincount(where, minlength=6 * SCORE_BINS).reshape(2, 3, SCORE_BINS)
    for name, texts in facts.items():
        counter: Counter[str | None] = getattr(counted, _FACTS[name])
        counter.update({texts.distinct[place]: count for place, count in _tally(texts.place[rows])})
    for value, count in _tally(batch.temperature[rows]):
        counted.temperatures[None if np.isnan(value) else value] += count
    return counted


def _tally(values: NDArray[Any]) -> list[tuple[Any, int]]:
    """Every value and how often it stands there; often there is one alone."""
    if values.size and (values == values[0]).all():
        return [(values[0].item(), int(values.size))]
    distinct, counts = np.unique(values, return_counts=True)
    return list(zip(distinct.tolist(), counts.tolist(), strict=True))


def _by_text(texts: Texts) -> Iterator[tuple[str | None, Ints]]:
    """Every text that occurs in sorted order, nothing last, with the rows that have it."""
    order = np.argsort(texts.place, kind="stable")
    used, starts = np.unique(texts.place[order], return_index=True)
    rows = dict(zip(used.tolist(), np.split(order, starts[1:]), strict=True))
    for place in sorted(rows, key=lambda i: (texts.distinct[i] is None, texts.distinct[i] or "")):
        yield texts.distinct[place], rows[place]
