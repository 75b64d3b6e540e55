"""The parent's end of the process in which expressions run: started when needed, killed past its limits."""

from __future__ import annotations

import json
import os
import select
import struct
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import InstrumentError

MEMORY_MB, SECONDS = 600, 10
REQUEST_BYTES = 1 << 25
MOST_VALIDATED = 500_000
"""Assertions times answers of a schema in one request."""
ABSENT, OTHER, PASSED, FAILED, BROKEN = range(5)  # states of an assertion, as in child.py
LENGTHS = struct.Struct("<IQ")  # as in child.py, which imports nothing of ours
_CHILD = Path(__file__).with_name("child.py")
_ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # others reserve a gigabyte of addresses at once
    "MALLOC_ARENA_MAX": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
_RESULTS = {"BOOLEAN": pa.bool_(), "DOUBLE": pa.float64()}
_START = 120  # seconds of the clock until the process is ready
_WAIT = 10  # seconds of the clock for each second of computing, on a machine that has other things to do


Answer = TypeVar("Answer")


class OverLimit(Exception):
    """The process was over its memory or its time, and is gone."""


@dataclass
class Column:
    """What an expression gave: its values, and the rows on which it raised or was stopped, each set with its reason."""

    values: pa.ChunkedArray
    errors: list[tuple[NDArray[np.intp], str]] = field(default_factory=list)


@dataclass
class Validated:
    """What the assertions of a schema say: states (assertions, rows) as in child.py, and why by (assertion, row)."""

    states: NDArray[np.uint8]
    why: dict[tuple[int, int], str]


@dataclass
class Sandbox:
    """One process of limited memory (in MB) and time (in seconds of computing, for each request)."""

    memory_mb: int = MEMORY_MB
    seconds: int = SECONDS
    _process: subprocess.Popen[bytes] | None = None
    _owner: int = 0
    _heavy: set[str] = field(default_factory=set)

    @property
    def over(self) -> str:
        """What is said of atoms whose rule was stopped."""
        return f"the rule was stopped: it needs more than {self.memory_mb} MB or {self.seconds} s for one batch"

    def parse(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """The syntax tree of every text, or its error."""
        too_much = {"error": True, "error_message": "it is more than the parser can take"}
        trees = self._replies({"do": "parse"}, "texts", texts, "trees")
        return [too_much if tree is None else _tree(tree) for tree in trees]

    def render(self, trees: Sequence[dict[str, Any]]) -> list[str]:
        """The SQL of syntax trees, as select lists."""
        reply, _ = self._ask({"do": "render", "trees": [json.dumps(tree) for tree in trees]})
        return [sql.removeprefix("SELECT ") for sql in reply["sql"]]

    def bind(self, columns: Sequence[tuple[str, str]], expressions: Sequence[str]) -> list[dict[str, str]]:
        """The type of every expression, or its error."""
        heavy = {"error": f"Over limit: its constants alone need more than {self.memory_mb} MB or {self.seconds} s"}
        results = self._replies({"do": "bind", "columns": list(columns)}, "expressions", expressions, "results")
        return [result or heavy for result in results]

    def evaluate(
        self, batch: pa.Table, columns: Sequence[tuple[str, str]], expressions: Sequence[tuple[str, str]]
    ) -> list[Column]:
        """Every expression (SQL, type) over a batch; one that went over the limits is asked alone ever after."""
        results = [Column(pa.chunked_array([], _RESULTS[kind])) for _, kind in expressions]
        first = 0
        for piece in _pieces(batch):

            def ask(places: Sequence[int], piece: pa.Table = piece) -> list[Column]:
                asked = {"do": "evaluate", "columns": list(columns), "expressions": [expressions[p] for p in places]}
                reply, table = self._ask_over(piece, asked)
                return [
                    Column(table.column(f"e{index}"), _raised(table, index, reply["raised"].get(str(index), "")))
                    for index in range(len(places))
                ]

            parts = self._each([place for place, (sql, _) in enumerate(expressions) if sql not in self._heavy], ask)
            for place, (whole, (sql, kind)) in enumerate(zip(results, expressions, strict=True)):
                part = parts[place] if place in parts else self._each([place], ask)[place]
                if part is None:
                    self._heavy.add(sql)
                    nothing = pa.chunked_array([pa.nulls(piece.num_rows, _RESULTS[kind])])
                    part = Column(nothing, [(np.arange(piece.num_rows), self.over)])
                whole.values = pa.chunked_array([*whole.values.chunks, *part.values.chunks], whole.values.type)
                whole.errors += [(rows + first, text) for rows, text in part.errors]
            first += piece.num_rows
        return results

    def build(self, schemas: Sequence[dict[str, Any]]) -> list[str]:
        """Why each schema cannot be used; empty where it can."""
        try:
            reply, _ = self._ask({"do": "build", "schemas": list(schemas)})
        except OverLimit:
            return [self.over] * len(schemas)
        return list(reply["why"])

    def validate(self, answers: pa.ChunkedArray, assertions: Sequence[dict[str, Any]]) -> Validated:
        """Every assertion over the JSON texts of answers."""
        validated = Validated(np.zeros((len(assertions), len(answers)), dtype=np.uint8), {})
        table = pa.table({"answer": answers}).combine_chunks()
        step = max(1, MOST_VALIDATED // len(assertions))
        cuts = (table.slice(start, step).combine_chunks() for start in range(0, table.num_rows, step))
        first = 0
        for piece in (piece for cut in cuts for piece in _pieces(cut)):

            def ask(places: Sequence[int], piece: pa.Table = piece) -> list[tuple[pa.Array, pa.Array]]:
                asked = {"do": "validate", "assertions": [assertions[place] for place in places]}
                _, table = self._ask_over(piece, asked)
                return [(table.column(f"s{index}"), table.column(f"w{index}")) for index in range(len(places))]

            rows = slice(first, first + piece.num_rows)
            for place, answer in self._each(range(len(assertions)), ask).items():
                if answer is None:
                    validated.states[place, rows] = BROKEN
                    validated.why |= {(place, row): self.over for row in range(rows.start, rows.stop)}
                    continue
                states, words = answer
                validated.states[place, rows] = states.to_numpy()
                failed = np.flatnonzero(validated.states[place, rows] >= FAILED).tolist()
                validated.why |= {(place, first + row): words[row].as_py() for row in failed}
            first = rows.stop
        return validated

    def _replies(self, header: dict[str, Any], key: str, values: Sequence[str], reply_key: str) -> list[Any]:
        """What is replied about each value; None where it alone is over the limits."""

        def ask(places: Sequence[int]) -> list[Any]:
            return list(self._ask({**header, key: [values[place] for place in places]})[0][reply_key])

        return list(self._each(range(len(values)), ask).values())

    def _each(
        self, places: Iterable[int], ask: Callable[[Sequence[int]], Sequence[Answer]]
    ) -> dict[int, Answer | None]:
        """What is asked of all places at once; where that is over the limits, of each alone, None where it still is."""
        left = list(places)
        try:
            return dict(zip(left, ask(left), strict=True)) if left else {}
        except OverLimit:
            if len(left) == 1:
                return {left[0]: None}
            return {place: self._each([place], ask)[place] for place in left}

    def _ask_over(self, piece: pa.Table, header: dict[str, Any]) -> tuple[dict[str, Any], pa.Table]:
        """A request about rows, which gives rows."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, piece.schema) as writer:
            writer.write_table(piece)
        reply, data = self._ask(header, sink.getvalue())
        return reply, pa.ipc.open_stream(pa.py_buffer(data)).read_all()

    def _ask(self, header: dict[str, Any], data: Any = b"") -> tuple[dict[str, Any], bytes]:
        process = self._started()
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 -- both are pipes
        text = json.dumps(header).encode()
        until = time.monotonic() + _WAIT * self.seconds
        try:
            process.stdin.write(LENGTHS.pack(len(text), len(data)))
            process.stdin.write(text)
            process.stdin.write(data)
            process.stdin.flush()
            reply, columns = self._frame(process, until)
        except (BrokenPipeError, EOFError, TimeoutError):
            self.close()
            raise OverLimit from None
        except BaseException:
            self.close()
            raise
        if "failed" in reply:
            raise InstrumentError(f"the rules could not be evaluated: {reply['failed']}")
        return reply, columns

    def _frame(self, process: subprocess.Popen[bytes], until: float) -> tuple[dict[str, Any], bytes]:
        header, data = LENGTHS.unpack(self._receive(process, LENGTHS.size, until))
        return json.loads(self._receive(process, header, until)), self._receive(process, data, until)

    def _receive(self, process: subprocess.Popen[bytes], size: int, until: float) -> bytes:
        assert process.stdout is not None  # noqa: S101 -- it is a pipe
        descriptor = process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
        parts, left = [], size
        while left:
            if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
                raise TimeoutError
            part = os.read(descriptor, min(left, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._owner == os.getpid():
            return self._process
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", str(_CHILD), str(self.memory_mb), str(self.seconds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | _ENVIRONMENT,
                bufsize=0,
            )
        except OSError as error:
            raise InstrumentError(f"the process for rules cannot be started: {error.strerror}") from None
        self._process, self._owner = process, os.getpid()
        weakref.finalize(self, _end, process, self._owner)
        try:
            self._frame(process, time.monotonic() + _START)
        except (EOFError, TimeoutError):
            self.close()
            raise InstrumentError(
                "the process for rules does not start; does this Python have duckdb and pyarrow?"
            ) from None
        return process

    def close(self) -> None:
        """End the process; the next request starts another."""
        if self._process is not None and self._owner == os.getpid():
            _end(self._process, self._owner)
        self._process = None


def _tree(text: str) -> dict[str, Any]:
    try:
        tree: dict[str, Any] = json.loads(text)
    except RecursionError:
        return {"error": True, "error_message": "it is nested too deep"}
    return tree


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() != owner:
        return
    process.kill()
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):
            if pipe is not None:
                pipe.close()
    process.wait()


def _pieces(batch: pa.Table) -> list[pa.Table]:
    """A batch in pieces of at most REQUEST_BYTES or one row."""
    if batch.nbytes <= REQUEST_BYTES or batch.num_rows < 2:
        return [batch]
    half = batch.num_rows // 2
    return [*_pieces(batch.slice(0, half).combine_chunks()), *_pieces(batch.slice(half).combine_chunks())]


def _raised(table: pa.Table, index: int, error: str) -> list[tuple[NDArray[np.intp], str]]:
    """The rows on which an expression raised."""
    if f"r{index}" not in table.column_names:
        return []
    rows = np.flatnonzero(table.column(f"r{index}").to_numpy())
    return [(rows, f"the expression raises on this row: {_in_short(error)}")] if rows.size else []


def _in_short(error: str) -> str:
    """The kind of an error; its words may be about another row."""
    kind, _, rest = error.partition(":")
    known = {"Division by zero", "Overflow", "Could not convert", "Could not parse", "out of range"}
    word = next((word for word in sorted(known) if word.lower() in rest.lower()), None)
    return kind if word is None else f"{kind}, {word[0].lower()}{word[1:]}"
