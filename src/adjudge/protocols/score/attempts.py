"""Attempts: all rows of a run as columns of codes and numbers, added up from batches; what the measures cut blocks from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.protocols.common.columns import floats, one_array
from adjudge.protocols.score.judge import VERDICTS
from adjudge.protocols.score.samples import success_of
from adjudge.provenance.canonical import bytes_of, slots_of
from adjudge.readers.logs.record import STATUSES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_WORDS = ("model", "task", "status", "verdict", "cluster", "target")
_NUMBERS = ("score", "reported", "threshold", "confidence", "truth")


class Partial(NamedTuple):
    """What one batch adds: columns of numbers and codes with their words, and a digest of its part of the data set."""

    words: dict[str, list[str]]
    columns: dict[str, NDArray[Any]]
    items: int
    dataset: dict[int, bytes]
    unnamed: int
    unlike: int


def partial_of(
    samples: pa.Table, checks: Sequence[str], slices: Sequence[str], slots: NDArray[np.uint8] | None = None
) -> Partial:
    """The columns that the measures read, from the stored samples of a partition and the slots of their items."""
    items = one_array(samples.column("item"))
    changes = pc.not_equal(items.slice(1), items.slice(0, max(len(items) - 1, 0))).to_numpy(zero_copy_only=False)
    first = np.append(np.ones(min(len(items), 1), dtype=bool), changes)
    words: dict[str, list[str]] = {}
    columns: dict[str, NDArray[Any]] = {"item": np.cumsum(first) - 1, "trial": samples.column("trial").to_numpy()}
    for name in (*_WORDS, *(f"meta.{key.removeprefix('meta.')}" for key in slices)):
        column = one_array(samples.column(name))
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        words[name] = coded.dictionary.to_pylist()
        columns[name] = coded.indices.fill_null(-1).to_numpy().astype(np.int32)
    for name in (*_NUMBERS, *(f"check.{check}" for check in checks)):
        columns[name] = floats(samples, name)
    for check in checks:
        passed = samples.column(f"check.{check}.passed").combine_chunks()
        columns[f"check.{check}.passed"] = passed.cast(pa.int8()).fill_null(-1).to_numpy()
    columns["success"] = success_of(samples)
    return Partial(
        words,
        {name: _slim(column) for name, column in columns.items()},
        int(first.sum()),
        _dataset(samples, first, slots),
        int(samples.num_rows - (pc.sum(samples.column("named")).as_py() or 0)),
        _unlike(samples, columns["item"]),
    )


def _slim(column: NDArray[Any]) -> NDArray[Any]:
    """A column; one of a single value takes no room, as most have where there is one model, task and trial."""
    single = column.size > 0 and ((column == column[0]).all() or (column.dtype.kind == "f" and np.isnan(column).all()))
    return np.broadcast_to(column[:1], column.shape) if single else column


def _dataset(samples: pa.Table, first: NDArray[np.bool_], slots: NDArray[np.uint8] | None) -> dict[int, bytes]:
    """A digest a slot of its items with input and target, in the order of their names.

    A partition has whole slots, so that the digests of all are the same however the attempts were cut, and by whomever.
    """
    rows = samples.select(["item", "input_hash", "target"])
    rows = rows if first.all() else rows.filter(pa.array(first))
    slot = slots_of(rows.column("item")) if slots is None else slots[first]
    order = np.argsort(slot, kind="stable")
    rows = rows.take(pa.array(order))
    present, starts = np.unique(slot[order], return_index=True)
    digests = [hashlib.sha256() for _ in present]
    for column in map(one_array, rows.columns):
        lengths, texts = bytes_of(column)
        edges = np.concatenate([[0], np.cumsum(np.maximum(lengths, 0))])
        for digest, low, high in zip(digests, starts, [*starts[1:], order.size], strict=True):
            digest.update(lengths[low:high].tobytes())
            digest.update(texts[edges[low] : edges[high]])
    return {int(place): digest.digest() for place, digest in zip(present, digests, strict=True)}


def _unlike(samples: pa.Table, items: NDArray[Any]) -> int:
    """How many attempts were asked something else, or have another target, than another model's at the same item."""
    if len(samples.column("model").unique()) < 2:
        return 0
    order = np.lexsort((samples.column("trial").to_numpy(), items))
    unlike = np.zeros(order.size, dtype=bool)
    for name in ("input_hash", "target"):
        column = one_array(samples.column(name))
        known = order[column.is_valid().to_numpy(zero_copy_only=False)[order]]
        place = column.dictionary_encode().indices.fill_null(-1).to_numpy()[known]
        same = np.all([np.diff(key[known]) == 0 for key in (items, samples.column("trial").to_numpy())], axis=0)
        unlike[known[1:][same & (np.diff(place) != 0)]] = True
    return int(unlike.sum())


@dataclass
class Attempts:
    """All attempts. `words` are the sorted names behind the codes; −1 is none."""

    words: dict[str, list[str]]
    columns: dict[str, NDArray[Any]]
    items: int
    dataset: str
    unnamed: int
    unlike: int = 0

    @property
    def n(self) -> int:
        """How many there are."""
        return int(self.columns["item"].size)

    @cached_property
    def scored(self) -> NDArray[np.bool_]:
        """Which have a score."""
        flags: NDArray[np.bool_] = self.columns["status"] == self.words["status"].index("scored")
        return flags

    @cached_property
    def passed(self) -> NDArray[np.bool_]:
        """Which reached a threshold, or have passed as the log says."""
        flags: NDArray[np.bool_] = self.columns["verdict"] == self.words["verdict"].index("passed")
        return flags

    @cached_property
    def decided(self) -> NDArray[np.bool_]:
        """Which have passed or not as their log says."""
        flags: NDArray[np.bool_] = self.columns["success"] >= 0
        return flags

    @cached_property
    def undecided(self) -> NDArray[np.bool_]:
        """Which have neither a threshold nor a verdict of the log; where some have that, only those with a score."""
        flags: NDArray[np.bool_] = np.isnan(self.columns["threshold"]) & ~self.decided
        return flags & self.scored if self.decided.any() else flags

    @cached_property
    def value(self) -> Floats:
        """The score, 0 where there is none."""
        return np.where(self.scored, self.columns["score"], 0.0)

    def has_status(self, status: str) -> NDArray[np.bool_]:
        """Which have a status."""
        flags: NDArray[np.bool_] = self.columns["status"] == self.words["status"].index(status)
        return flags

    @cached_property
    def by_model(self) -> dict[str, Ints]:
        """The rows of every model."""
        return dict(self.split(np.arange(self.n), "model"))

    def split(self, rows: Ints, name: str) -> Iterator[tuple[str, Ints]]:
        """Some rows by the words of a column, in the order of the words."""
        if len(self.words[name]) == 1 and rows.size == self.n and (self.columns[name] == 0).all():
            yield self.words[name][0], rows
            return
        codes = self.columns[name][rows]
        order = np.argsort(codes, kind="stable")
        edges = np.searchsorted(codes[order], np.arange(len(self.words[name]) + 1))
        for code, word in enumerate(self.words[name]):
            if edges[code + 1] > edges[code]:
                yield word, rows[order[edges[code] : edges[code + 1]]]

    def clusters(self, rows: Ints) -> Ints | None:
        """The clusters of some rows, None where they are independent."""
        if not self.words["cluster"]:
            return None
        codes = self.columns["cluster"][rows]
        if not (codes >= 0).any():
            return None
        # A row without a cluster beside rows with one stands alone.
        clusters: Ints = np.where(codes >= 0, codes, len(self.words["cluster"]) + self.columns["item"][rows])
        return clusters if np.unique(clusters).size < rows.size else None


def merged(partials: Sequence[Partial]) -> Attempts:
    """The attempts of all batches, in their order."""
    names = list(partials[0].words) if partials else list(_WORDS)
    words = {name: sorted({word for partial in partials for word in partial.words[name]}) for name in names} | {
        "status": list(STATUSES),
        "verdict": list(VERDICTS),
    }
    columns: dict[str, NDArray[Any]] = {}
    offsets = np.cumsum([0, *(partial.items for partial in partials)])
    for name in partials[0].columns if partials else ():
        parts = []
        where = {word: code for code, word in enumerate(words.get(name, ()))}
        for place, partial in enumerate(partials):
            column = partial.columns[name]
            if name in words:
                translate = np.array([*(where[word] for word in partial.words[name]), -1], dtype=np.int32)
                column = _slim(translate[column])
            elif name == "item":
                column = column + offsets[place]
            parts.append(column)
        columns[name] = _together(parts)
    return Attempts(
        words,
        columns,
        int(offsets[-1]),
        _digest_of({slot: digest for partial in partials for slot, digest in partial.dataset.items()}),
        sum(partial.unnamed for partial in partials),
        sum(partial.unlike for partial in partials),
    )


def _together(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The parts of a column one after another; one of a single value takes no room here either."""
    values = np.concatenate([part[:1] for part in parts])
    slim = all(part.strides == (0,) for part in parts) and _slim(values).strides == (0,)
    return np.broadcast_to(values[:1], sum(map(len, parts))) if slim else np.concatenate(parts)


def _digest_of(slots: Mapping[int, bytes]) -> str:
    """One digest of the data set, from those of its slots."""
    return hashlib.sha256(b"".join(bytes([slot]) + slots[slot] for slot in sorted(slots))).hexdigest()
