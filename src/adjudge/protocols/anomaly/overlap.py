"""Rows that two flights share, found by their values: whatever the columns are called, however the clock runs.

Every cell becomes tokens: its value to six decimals, whatever its column, and pairs of neighbouring columns in steps of a
thousandth of their spread, which outlast noise. Two rows are one where a quarter of their tokens agree, and the rows
beside them agree too. Columns that only rise or only fall (clocks, counters) say nothing, nor do tokens that repeat within a flight.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.rule import Floats
from adjudge.protocols.anomaly.batch import changes
from adjudge.protocols.anomaly.rows import Flight

_DECIMALS = 6
_STEPS = 1000.0
_MOST_COLUMNS = 12
_MOST_FLIGHTS = 12
_MOST_ROWS = 1_000_000
_BLOCK = 64
_NEAR, _FAR = 64, 400
_TELLING = 0.1
_AGREEING = 0.25
Rows = NDArray[np.int64]


class Shared(NamedTuple):
    """How much of a flight's rows stand in another flight too."""

    flight: str
    other: str
    share: float


@dataclass(frozen=True)
class Overlap:
    """Every pair of flights that share rows, flights whose values are too coarse to tell, and ignored columns."""

    pairs: list[Shared]
    coarse: list[str]
    ignored: list[str]
    sampled: bool


class _Tokens(NamedTuple):
    """What cells say, each with its row, counted over all flights."""

    token: NDArray[np.uint64]
    row: NDArray[np.int64]


def overlap(flights: Sequence[Flight], ignored: Iterable[str] = ()) -> Overlap:
    """The shared rows of every pair of flights, by content; `ignored` columns (labels) are left out."""
    if len(flights) < 2:
        return Overlap([], [], [], sampled=False)
    left_out = set(ignored)
    names = sorted({name for flight in flights for name in flight.columns if name not in left_out})
    clocks = [name for name in names if all(_runs_one_way(flight.columns.get(name)) for flight in flights)]
    features = [name for name in names if name not in clocks]
    spread = {name: _spread(flights, name) for name in features}
    begin = np.cumsum([0, *(flight.n for flight in flights)])
    every = -(-int(begin[-1]) // _MOST_ROWS)
    used = [_rows_used(flight.n, every).size for flight in flights]
    parts, coarse = [], []
    for index, flight in enumerate(flights):
        tokens = _tokens(flight, features, spread, every)
        parts.append(tokens._replace(row=tokens.row + begin[index]))
        if np.unique(tokens.row).size / max(1, used[index]) < _TELLING:
            coarse.append(flight.id)
    pairs = []
    for a, b, rows_a, rows_b in _by_pair(*_matches(parts, int(begin[-1]), fewest=2 if len(features) > 1 else 1), begin):
        good = _supported(rows_a, rows_b)
        for one, other, rows in ((a, b, rows_a), (b, a, rows_b)):
            share = np.unique(rows[good]).size / used[one]
            if share > 0:
                pairs.append(Shared(flights[one].id, flights[other].id, share))
    return Overlap(pairs, coarse, clocks, every > 1)


def _runs_one_way(values: Floats | None) -> bool:
    """Whether a column only rises or only falls, as clocks and counters do; an absent one does not speak against it."""
    if values is None or np.isnan(values).all():
        return True
    steps = np.diff(values[~np.isnan(values)])
    return bool((steps >= 0).all() or (steps <= 0).all()) and bool(np.any(steps))


def _spread(flights: Sequence[Flight], name: str) -> float:
    values = np.concatenate([flight.columns[name] for flight in flights if name in flight.columns])
    with np.errstate(invalid="ignore"):
        spread = float(np.nanstd(values)) if np.isfinite(values).any() else 0.0
    return spread if np.isfinite(spread) else 0.0


def _rows_used(n: int, every: int) -> NDArray[np.int64]:
    """All rows, or of very long data every so many blocks of rows that stand together."""
    rows = np.arange(n)
    return rows if every == 1 else rows[(rows // _BLOCK) % every == 0]


def _tokens(flight: Flight, features: Sequence[str], spread: dict[str, float], every: int) -> _Tokens:
    """The tokens of a flight that stand in it once, each with its row in the flight."""
    rows = _rows_used(flight.n, every)
    present = [name for name in features if name in flight.columns and np.isfinite(flight.columns[name]).any()]
    present = sorted(present, key=lambda name: -np.unique(flight.columns[name][rows]).size)[:_MOST_COLUMNS]
    tokens, places = [], []
    steps = {}
    for name in present:
        values = flight.columns[name][rows]
        good = np.isfinite(values)
        exact = np.round(np.where(good, values, 0.0), _DECIMALS) + 0.0
        tokens.append(_mixed(exact.view(np.uint64), 0)[good])
        places.append(rows[good])
        scale = spread[name] / _STEPS
        whole = np.rint(np.where(good, values, 0.0) / scale) if scale > 0 else np.zeros(values.size)
        steps[name] = (whole.astype(np.int64).view(np.uint64), good)
    ordered = sorted(present)
    for one, other in zip(ordered, ordered[1:] + ordered[:1], strict=True) if len(ordered) > 1 else ():
        (a, good_a), (b, good_b) = steps[one], steps[other]
        good = good_a & good_b
        salt = zlib.crc32(f"{one}\0{other}".encode())
        tokens.append(_mixed(_mixed(a, salt) + b, 1)[good])
        places.append(rows[good])
    if not tokens:
        return _Tokens(np.zeros(0, np.uint64), np.zeros(0, np.int64))
    token, place = np.concatenate(tokens), np.concatenate(places)
    order = np.argsort(token)
    begins = np.append(changes(token[order]), True)
    single = order[begins[:-1] & begins[1:]]
    return _Tokens(token[single], place[single])


def _mixed(bits: NDArray[np.uint64], salt: int) -> NDArray[np.uint64]:
    """The bits of each value spread over 64 (the finaliser of splitmix64, Steele et al. 2014)."""
    x = bits + np.uint64((salt * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)), dtype=np.uint64)


def _matches(parts: Sequence[_Tokens], rows: int, *, fewest: int) -> tuple[Rows, Rows]:
    """Of `rows` in all the pairs of which enough tokens agree, in order; tokens of many flights say nothing."""
    token, row = (np.concatenate(column) for column in zip(*parts, strict=True))
    tokens_of_row = np.bincount(row, minlength=rows)
    order = np.lexsort((row, token))
    token, row = token[order], row[order]
    size = np.diff(np.append(np.flatnonzero(changes(token)), token.size))
    alive = np.repeat((size > 1) & (size <= _MOST_FLIGHTS), size)
    token, row = token[alive], row[alive]
    pairs = [np.zeros(0, np.int64)]
    for step in range(1, _MOST_FLIGHTS):
        equal = np.flatnonzero(token[step:] == token[:-step])
        pairs.append(row[equal] * rows + row[equal + step])
    pair, agreeing = np.unique(np.concatenate(pairs), return_counts=True)
    one, other = np.divmod(pair, rows)
    total = np.minimum(tokens_of_row[one], tokens_of_row[other])
    enough = agreeing >= np.maximum(fewest, _AGREEING * total)
    return one[enough], other[enough]


def _by_pair(one: Rows, other: Rows, begin: Rows) -> Iterator[tuple[int, int, Rows, Rows]]:
    """The matches of every two flights: which these are, and the rows of each."""
    a, b = (np.searchsorted(begin, rows, side="right") - 1 for rows in (one, other))
    key = a * begin.size + b
    order = np.argsort(key, kind="stable")
    keys, first = np.unique(key[order], return_index=True)
    for pair, places in zip(keys.tolist(), np.split(order, first)[1:], strict=True):
        yield *divmod(pair, begin.size), one[places], other[places]


def _supported(rows: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Matches beside which at least two further matches stand, near in one flight and not far off in the other."""
    support = np.zeros(rows.size, dtype=np.int64)
    for step in range(1, 5):
        if rows.size <= step:
            break
        gaps = np.sort([np.abs(each[step:] - each[:-step]) for each in (rows, others)], axis=0)
        good = (gaps[0] > 0) & (gaps[0] <= _NEAR) & (gaps[1] <= _FAR)
        support[step:] += good
        support[:-step] += good
    return support >= 2
