"""Record: one attempt at one sample, whatever log it came from; and the columns that many of them become."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import astuple

from adjudge.errors import InputError

STATUSES = ("scored", "abstained", "unparsed", "errored", "missing")
SCORED, ABSTAINED, UNPARSED, ERRORED, MISSING = range(5)

KINDS = ("letter", "boolean", "number")
LETTER, BOOLEAN, NUMBER = range(3)
NO_KIND = -1

CHUNK = 8192  # records that become a table together
TEXT_LIMIT = 2000
MOST_CHECKS = 30
MOST_ABSENT = 1_000_000
"""Attempts that a log plans and does not have; each is a row of the run."""
Trial = Annotated[int, msgspec.Meta(ge=0, lt=(1 << 31) - 1)]
Tokens = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
MOST_SCORE = 1e100
"""Beyond it a number is none, as infinity is: its square, or a sum of such, would be."""
NOT_REDUCED = ""
"""The reducer of a printed number that is about attempts, not items."""
NAN = math.nan

_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5}
_NO_ANSWER = "N"
_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}


class Score(NamedTuple):
    """What a log says of one attempt: the number (NaN for none), how it was written, and the status that follows.

    `as_reported` is the number in the log's own arithmetic, where no answer counts 0.
    """

    value: float
    kind: int
    status: int
    as_reported: float

    def fields(self, status: int | None = None) -> dict[str, Any]:
        """The fields of a record that has this score, with another status where something else is to be said of it."""
        status = self.status if status is None else status
        return {"status": status, "score": self.value, "kind": self.kind, "reported": self.as_reported}


NO_SCORE = Score(NAN, NO_KIND, ERRORED, NAN)


class Check(NamedTuple):
    """One check as the log reports it: its number, and whether it passed (None where it says nothing)."""

    value: float
    passed: bool | None


class Record(msgspec.Struct, gc=False, kw_only=True):
    """One attempt at one sample. `checks` are in the order of the log's check names; `line` is where it stands.

    `success`: what the log itself calls passed or not, where it does so beside its score.
    `cached`: the answer is one of an earlier run; `cache_read` and `cache_write` are tokens of the prompt that the provider
    took from its cache and put there.
    """

    id: str
    model: str
    task: str = ""
    trial: int = 1
    status: int = SCORED
    score: float = NAN
    kind: int = NO_KIND
    reported: float = NAN
    success: bool | None = None
    error: str | None = None
    answer: str | None = None
    target: str | None = None
    explanation: str | None = None
    confidence: float = NAN
    cluster: str | None = None
    input: str | None = None
    input_hash: str | None = None
    meta: str | None = None
    cached: bool | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    line: int = 0
    checks: Sequence[Check | None] = ()


FIELDS = Record.__struct_fields__
TYPES: Mapping[str, pa.DataType] = {
    **dict.fromkeys(FIELDS, pa.string()),
    "trial": pa.int32(),
    "status": pa.int8(),
    "kind": pa.int8(),
    "score": pa.float64(),
    "reported": pa.float64(),
    "confidence": pa.float64(),
    "success": pa.bool_(),
    "cached": pa.bool_(),
    "cache_read": pa.int64(),
    "cache_write": pa.int64(),
    "line": pa.int64(),
}


CLUSTERED = "clustered standard error"


class Printed(msgspec.Struct, kw_only=True):
    """A number that the log itself prints; `rule` says how it comes about where that can be recomputed.

    `reducer` is how several attempts at one sample become one value before the rule is applied.
    """

    name: str
    value: float
    model: str
    task: str = ""
    check: str = ""
    rule: str = ""
    reducer: str = "mean"


class Log(msgspec.Struct, kw_only=True):
    """What a log says of itself before its samples are read.

    `conditions` are the facts by task under which it was made; `checks` the names of its scores, the main one first;
    `files` all files that belong to it, the one with the samples first; `unread` what is in it and not read; `unscored`
    a log in which nothing was scored; `decides` one that says of every score whether it passed.
    """

    format: str = ""
    title: str
    files: list[str]
    models: list[str] = []
    tasks: list[str] = []
    checks: list[str] = []
    conditions: dict[str, dict[str, Any]] = {}
    printed: list[Printed] = []
    notes: list[str] = []
    unread: list[str] = []
    samples: int | None = None
    unscored: bool = False
    decides: bool = False

    @property
    def path(self) -> str:
        """The file that holds the samples."""
        return self.files[0]


def score_of(value: Any) -> Score | None:
    """A score as logs write them: a number, a boolean, C, I, P, N, or a word or number as text; None for any other value."""
    return None if isinstance(value, list | dict) else _score_of(value)


@functools.lru_cache(maxsize=4096, typed=True)
def _score_of(value: Any) -> Score | None:
    if isinstance(value, bool):
        return Score(float(value), BOOLEAN, SCORED, float(value))
    if isinstance(value, int | float):
        return Score(float(value), NUMBER, SCORED, float(value)) if abs(value) <= MOST_SCORE else NO_SCORE
    if value is None:
        return NO_SCORE
    if not isinstance(value, str):
        return None
    text = value.strip()
    if text in _LETTERS:
        return Score(_LETTERS[text], LETTER, SCORED, _LETTERS[text])
    if text == _NO_ANSWER:
        return Score(NAN, LETTER, ABSTAINED, 0.0)
    if text.lower() in _WORDS:
        return Score(_WORDS[text.lower()], BOOLEAN, SCORED, _WORDS[text.lower()])
    if not text or text.lower() in {"nan", "null", "none"}:
        return NO_SCORE
    try:
        return _score_of(float(text))
    except ValueError:
        return None


def verdict_of(score: Score) -> bool | None:
    """Whether a check passed, where its score alone says it: letters, booleans, 0 and 1."""
    if score.status != SCORED or (score.kind == NUMBER and score.value not in {0.0, 1.0}):
        return None
    return score.value == 1.0


def check_of(value: Any) -> Check | None:
    """A score as logs write them as one of their checks; None where it is none."""
    score = score_of(value)
    return None if score is None else Check(score.as_reported, verdict_of(score))


def text_of(value: Any, limit: int = TEXT_LIMIT) -> str | None:
    """A value as text of bounded length; None stays None."""
    if value is None:
        return None
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def content_hash(*values: Any) -> str:
    """A digest of JSON values, the same whatever the order of their keys."""
    return hashlib.sha256(msgspec.json.encode(values, order="deterministic")).hexdigest()[:32]


def chunks(records: Iterable[Record], checks: int, limit: int | None = None) -> Iterator[pa.Table]:
    """Tables of some thousand records each."""
    remaining = islice(records, limit)
    while rows := list(islice(remaining, CHUNK)):
        yield table_of(rows, checks)


def table_of(rows: Sequence[Record], checks: int) -> pa.Table:
    """Records as columns, with two columns a check."""
    columns = dict(zip(FIELDS, zip(*map(astuple, rows), strict=True), strict=True))
    checks_of_rows = columns.pop("checks")
    arrays = {name: _array(name, column) for name, column in columns.items()}
    for place in range(checks):
        cells = [row[place] if place < len(row) else None for row in checks_of_rows]
        value = np.array([NAN if cell is None else cell.value for cell in cells], dtype=np.float64)
        arrays[f"check_{place}"] = pa.array(value, from_pandas=True)
        arrays[f"check_{place}_passed"] = pa.array(
            [None if cell is None else cell.passed for cell in cells], pa.bool_()
        )
    return pa.table(arrays)


def _array(name: str, column: Sequence[Any]) -> pa.Array:
    kind = TYPES[name]
    if pa.types.is_floating(kind):
        return pa.array(np.array(column, dtype=np.float64), from_pandas=True)
    return pa.array(column, kind)


def missing(
    path: str, ids: Sequence[str | int], trials: int, seen: Collection[tuple[str, int]], like: Mapping[str, Any]
) -> Iterator[Record]:
    """A record for every attempt that was planned and has none."""
    planned = len(ids) * trials
    if planned - len(seen) > MOST_ABSENT:
        what = f"plans {planned:,} attempts and has {len(seen):,}: more than {MOST_ABSENT:,} would be absent."
        raise InputError(what, file=path, hint="Correct the number of samples or epochs that it plans.")
    for name in map(str, ids):
        for trial in range(1, trials + 1):
            if (name, trial) not in seen:
                yield Record(id=name, trial=trial, status=MISSING, error="the log has no such sample", **like)
