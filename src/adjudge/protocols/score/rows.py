"""The generic record of `score` and how a block of them becomes columns: JSON Lines, JSON, CSV and Parquet, long or wide."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.base import Role
from adjudge.protocols.score.config import ScoreConfig
from adjudge.protocols.score.groups import id_name, keyed
from adjudge.protocols.score.truth import Label, number_of, trial_of
from adjudge.provenance.canonical import bytes_of
from adjudge.readers.blocks import Block
from adjudge.readers.columns import ColumnReader
from adjudge.readers.logs.formats import read_log
from adjudge.readers.logs.record import (
    ABSTAINED,
    BOOLEAN,
    ERRORED,
    MOST_SCORE,
    NAN,
    NO_KIND,
    NO_SCORE,
    NUMBER,
    SCORED,
    STATUSES,
    TEXT_LIMIT,
    Log,
    Record,
    chunks,
    table_of,
    text_of,
    verdict_of,
)

EXPECTED = "a record is a JSON object with `id` and `score` (true, false, a number, or C, I, P, N)"
_NO_ERROR = {"", "0", "false", "nan", "none", "null"}
"""What tables write in a cell of `error` where there was none."""
_KNOWN_STATUS = {word: code for code, word in enumerate(STATUSES)}
Word = str | int | float | bool | None


class Row(msgspec.Struct, gc=False):
    """One attempt at one sample, in a file of the user's own."""

    id: str | int | float
    model: str | int | None = None
    task: str | None = None
    trial: int | str | None = None
    score: bool | int | float | str | None = None
    scores: dict[str, Word] | None = None
    status: str | None = None
    error: Any = None
    answer: Any = None
    target: Any = None
    explanation: str | None = None
    confidence: float | str | None = None
    cluster: str | int | None = None
    input: Any = None
    input_hash: str | None = None
    meta: msgspec.Raw = msgspec.Raw(b"null")


_LIKELY = {
    "id": frozenset({"example", "item", "key", "name", "prompt", "qid", "question", "uuid"}),
    "score": frozenset({"acc", "accuracy", "correct", "exact_match", "grade", "is_correct"})
    | {"pass", "passed", "rating", "result", "reward", "success", "value"},
}
ROLES = {
    "scores": Role(Row, (("id",), ("score", "scores")), "adjudge score FILE", _LIKELY),
    "truth": Role(Label, (("id",), ("label",)), "adjudge score LOG --truth FILE", _LIKELY),
}
_ID, _OUTCOMES = frozenset({"id"}), frozenset({"score", "scores", "status", "error"})
_OBJECTS = msgspec.json.Decoder(dict[str, Any])
_WORDS = {"model": (), "task": (), "score": ("C", "I", "P", "N")}
_TEXTS = ("error", "answer", "target", "explanation", "cluster", "input", "input_hash")


class ScoreRows:
    """Reads the sources of one configuration into the columns that batches are made of."""

    def __init__(self, config: ScoreConfig) -> None:
        self.config = config
        self.checks = config.checks
        self._records = ColumnReader(Row, EXPECTED, _WORDS)
        self._logs = {source.path: source for source in config.sources or ()}

    def generic(self, block: Block) -> pa.Table:
        """The records of a block of the user's own file."""
        if self.config.wide:
            self._refuse_unknown_models(block)
            records = [record for line in block.each(self._wide(block), EXPECTED) for record in line]
            return keyed(table_of(records, 0), block.file, fill=True)
        try:
            columns = self._records.read(block)
        except InputError:
            _refuse_without(_ID, "an `id`", block)
            raise
        if columns.keys().isdisjoint(_OUTCOMES):
            _refuse_without(_OUTCOMES, "a `score` (nor `scores`, `status` or `error`)", block)
        return keyed(self._columns(columns, block), block.file, fill=True)

    def log(self, path: str, file: int, limit: int | None) -> Iterator[pa.Table]:
        """The records of another tool's log."""
        source = self._logs[path]
        for table in chunks(read_log(source, self.config.scorer), len(source.checks), limit):
            yield keyed(self._in_order(table, source), file, fill=False)

    def _columns(self, columns: Mapping[str, Sequence[Any]], block: Block) -> pa.Table:
        n = len(block)
        score, kind, status = self._scores(columns, block)
        reported = np.where(status == ABSTAINED, 0.0, score)
        self._statuses(columns, status, block)
        models = columns.get("model", (None,) * n)
        named = np.array([model is not None for model in models]) if None in models else np.ones(n, dtype=bool)
        stem = self.config.model or Path(block.path).name.partition(".")[0] or "stdin"
        trials = np.ones(n, dtype=np.int32)
        if "trial" in columns and columns["trial"].count(1) < n:
            numbered = zip(columns["trial"], block.lines.tolist(), strict=True)
            trials = np.array([trial_of(trial, block, line, 1) for trial, line in numbered], dtype=np.int32)
        return pa.table(
            {
                "id": _names(columns["id"]),
                "model": _words(models, stem, (None,)),
                "task": _words(columns.get("task", (None,) * n), self.config.task or "", (None, "")),
                "trial": pa.array(trials),
                "status": pa.array(status),
                "score": pa.array(score),
                "kind": pa.array(kind),
                "reported": pa.array(reported),
                **{name: _texts(columns[name], block.longest) for name in _TEXTS if name in columns},
                **({"meta": _json_texts(columns["meta"])} if "meta" in columns else {}),
                **self._confidences(columns.get("confidence", ()), block),
                "line": pa.array(block.lines),
                "named": pa.array(named),
                **self._generic_checks(columns.get("scores", ()), block),
            }
        )

    def _scores(
        self, columns: Mapping[str, Sequence[Any]], block: Block
    ) -> tuple[NDArray[np.float64], NDArray[np.int8], NDArray[np.int8]]:
        """The judged score of every record: its number, how it was written, and the status that follows."""
        values = columns.get("score", (None,) * len(block))
        several = columns.get("scores", ())
        wanted = self.config.scorer
        if several:
            main = wanted or (self.checks[0] if self.checks else None)
            if main is None:
                what = "`scores` holds several by name; --scorer says which one is judged"
                raise InputError(what, file=block.path, line=int(block.lines[0]))
            values = [
                value if scores is None or (value is not None and wanted is None) else scores.get(main)
                for value, scores in zip(values, several, strict=True)
            ]
        if type(values[0]) is str:
            with suppress(pa.ArrowTypeError, pa.ArrowInvalid):  # not all of them are texts
                coded = pa.array(values, pa.string()).dictionary_encode("encode")
                return _scores_of(coded.dictionary.to_pylist(), coded.indices.to_numpy(), block)
        kinds = set(map(type, values))
        if kinds <= {int, float}:
            with suppress(OverflowError):  # a whole number that no float holds: each is looked at below
                numbers = np.array(values, dtype=np.float64)
                usable = np.abs(numbers) <= MOST_SCORE
                status = np.where(usable, SCORED, ERRORED).astype(np.int8)
                return np.where(usable, numbers, NAN), np.where(usable, NUMBER, NO_KIND).astype(np.int8), status
        if kinds == {bool}:
            n = len(values)
            return np.array(values, dtype=np.float64), np.full(n, BOOLEAN, np.int8), np.full(n, SCORED, np.int8)
        # 1 and True are equal, and differ.
        distinct, place = _coded([(value.__class__, value) for value in values])
        return _scores_of([value for _, value in distinct], place, block)

    def _statuses(self, columns: Mapping[str, Sequence[Any]], status: NDArray[np.int8], block: Block) -> None:
        """What `status` and `error` of the records say goes before what follows from the score."""
        words = columns.get("status", (None,) * len(block))
        for row, word in enumerate(words if "status" in columns else ()):
            if word is not None and word != "":
                if word not in _KNOWN_STATUS:
                    what = f"status {word!r} is not one of {', '.join(STATUSES)}"
                    raise InputError(what, file=block.path, line=int(block.lines[row]))
                if word == "scored" and status[row] != SCORED:
                    raise InputError(
                        "status is 'scored', but there is no score", file=block.path, line=int(block.lines[row])
                    )
                status[row] = _KNOWN_STATUS[word]
        for row, error in enumerate(columns.get("error", ())):
            if error and words[row] in (None, "") and str(error).strip().lower() not in _NO_ERROR:
                status[row] = ERRORED

    def _confidences(self, values: Sequence[Any], block: Block) -> dict[str, pa.Array]:
        if not values:
            return {}
        try:
            numbers = np.array([None if value == "" else value for value in values], dtype=np.float64)
        except ValueError:
            row = next(row for row, value in enumerate(values) if not _is_number(value))
            what = f"confidence {values[row]!r} is no number"
            raise InputError(what, file=block.path, line=int(block.lines[row])) from None
        outside = np.flatnonzero((numbers < 0.0) | (numbers > 1.0))
        if outside.size:
            what = f"confidence {numbers[outside[0]]} is not between 0 and 1"
            raise InputError(what, file=block.path, line=int(block.lines[outside[0]]))
        return {"confidence": pa.array(numbers, from_pandas=True)}

    def _generic_checks(self, several: Sequence[dict[str, Word] | None], block: Block) -> dict[str, pa.Array]:
        """Two columns for every score by name."""
        if not several:
            return {}
        arrays = {}
        known = set(self.checks)
        for scores, line in zip(several, block.lines.tolist(), strict=True):
            unknown = scores.keys() - known if scores and known else ()
            if unknown:
                what = f"`scores` has {min(unknown)!r}, which the first records do not have ({', '.join(self.checks)})"
                raise InputError(what, file=block.path, line=line)
        for place, name in enumerate(self.checks):
            scores_by_row = [
                None if scores is None or name not in scores else number_of(scores[name], block, line, name)
                for scores, line in zip(several, block.lines.tolist(), strict=True)
            ]
            values = np.array([NAN if score is None else score.as_reported for score in scores_by_row])
            arrays[f"check_{place}"] = pa.array(values, from_pandas=True)
            passed = [None if score is None else verdict_of(score) for score in scores_by_row]
            arrays[f"check_{place}_passed"] = pa.array(passed, pa.bool_())
        return arrays

    def _refuse_unknown_models(self, block: Block) -> None:
        """A column that none of a file's first rows has is a mistake of the command."""
        names = _first_keys(block)
        for model in self.config.wide if names else ():
            if model not in names:
                what = f"has no column {model!r} (--wide); it has {', '.join(names[:12])}"
                raise InputError(what, file=block.path, line=int(block.lines[0]))

    def _wide(self, block: Block) -> Callable[[int, bytes], list[Record]]:
        """Reads a row with a column a model: a record for each of them, missing where the cell is empty."""

        def read(line: int, text: bytes) -> list[Record]:
            row = _OBJECTS.decode(text)
            if "id" not in row:
                raise InputError("has no `id` (--column id=NAME says what it is called)", file=block.path, line=line)
            records = []
            for model in self.config.wide:
                empty = row.get(model) is None or row[model] == ""
                score = NO_SCORE if empty else number_of(row[model], block, line, model)
                records.append(
                    Record(
                        id=id_name(row["id"]),
                        model=model,
                        task=str(row.get("task") or self.config.task or ""),
                        trial=trial_of(row.get("trial"), block, line, 1) or 1,
                        status=_KNOWN_STATUS["missing"] if empty else score.status,
                        score=score.value,
                        kind=score.kind,
                        reported=score.as_reported,
                        target=text_of(row.get("target")),
                        cluster=text_of(row.get("cluster")),
                        line=line,
                    )
                )
            return records

        return read

    def _in_order(self, table: pa.Table, source: Log) -> pa.Table:
        """The check columns of a log at the places that the configuration gives their names."""
        kept = [name for name in table.column_names if not name.startswith("check_")]
        ordered = table.select(kept).append_column("named", pa.array(np.ones(table.num_rows, dtype=bool)))
        for place, name in enumerate(self.checks):
            if name in source.checks:
                column = source.checks.index(name)
                ordered = ordered.append_column(f"check_{place}", table.column(f"check_{column}"))
                ordered = ordered.append_column(f"check_{place}_passed", table.column(f"check_{column}_passed"))
        return ordered


def _refuse_without(keys: frozenset[str], words: str, block: Block) -> None:
    """A file none of whose first records has one of these keys is another kind of file, or names them otherwise."""
    names = _first_keys(block)
    if not names or not keys.isdisjoint(names):
        return
    flags = [
        f"--column {ours}={ROLES['scores'].meant(ours, names) or 'NAME'}"
        for ours, known in (("id", _ID), ("score", _OUTCOMES))
        if known.isdisjoint(names)
    ]
    raise InputError(
        f"none of the first {len(block):,} records has {words}; they have {', '.join(names[:12])}.",
        file=block.path,
        line=int(block.lines[0]),
        hint=f"{' '.join(flags)} {'says which key that is' if len(flags) == 1 else 'say which keys these are'}.",
    )


def _first_keys(block: Block) -> list[str]:
    """The keys of a file's first records, sorted; none where the block is a later one."""
    if int(block.lines[0]) > 2:  # a header may stand before the first record
        return []
    return sorted({name for row in block.each(lambda _, text: _OBJECTS.decode(text), EXPECTED) for name in row})


def _scores_of(
    words: Sequence[Word], place: NDArray[np.int32], block: Block
) -> tuple[NDArray[np.float64], NDArray[np.int8], NDArray[np.int8]]:
    """Number, kind and status of scores that are few different words, each of which is read once."""
    first = np.zeros(len(words), dtype=np.intp)
    first[place[::-1]] = np.arange(len(place))[::-1]
    lines = block.lines[first].tolist()
    scores = [number_of(word, block, line, "score") for word, line in zip(words, lines, strict=True)]
    return (
        np.array([score.value for score in scores])[place],
        np.array([score.kind for score in scores], dtype=np.int8)[place],
        np.array([score.status for score in scores], dtype=np.int8)[place],
    )


def _words(values: Sequence[Any], absent: str, nothing: tuple[str | None, ...]) -> pa.DictionaryArray:
    """A column of few different words, one of them for what is absent, which is written in one of these ways."""
    distinct, place = _coded(values)
    names = [absent if value in nothing else str(value) for value in distinct]
    words, again = _coded(names)
    return pa.DictionaryArray.from_arrays(pa.array(again[place]), pa.array(words, pa.string()))


def _coded(values: Sequence[Any]) -> tuple[list[Any], NDArray[np.int32]]:
    """The different values in the order in which they come, and which of them each value is."""
    if values.count(values[0]) == len(values):
        return [values[0]], np.zeros(len(values), dtype=np.int32)
    codes = {value: code for code, value in enumerate(dict.fromkeys(values))}
    return [*codes], np.fromiter(map(codes.__getitem__, values), dtype=np.int32, count=len(values))


def _json_texts(values: Sequence[msgspec.Raw]) -> pa.Array:
    """A column of JSON as it stands."""
    data = b"".join(values)
    edges = np.zeros(len(values) + 1, dtype=np.int32)
    np.cumsum(np.fromiter(map(len, values), dtype=np.int32, count=len(values)), out=edges[1:])
    texts = pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(edges), pa.py_buffer(data)])
    return pc.if_else(pc.equal(texts, "null"), None, texts) if (np.diff(edges) == len("null")).any() else texts


def _names(values: Sequence[Any]) -> pa.Array:
    """Ids as text."""
    try:
        return pa.array(values, pa.string())
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return pa.array([id_name(value) for value in values], pa.string())


def _texts(values: Sequence[Any], longest: int) -> pa.Array:
    """A column of texts of bounded length, from records of which the longest has so many bytes."""
    with suppress(pa.ArrowTypeError, pa.ArrowInvalid):
        texts = pa.array(values, pa.string())
        if longest <= TEXT_LIMIT or bytes_of(texts)[0].max() <= TEXT_LIMIT:
            return texts
    return pa.array([text_of(value) for value in values], pa.string())


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None or value == ""
    return True
