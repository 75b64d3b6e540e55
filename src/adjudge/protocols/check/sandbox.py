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
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
        """The syntax tree of every text; an InstrumentError where one is more than the parser can take."""
        reply, _ = self._ask({"do": "parse", "texts": list(texts)})
        return [_tree(tree) for tree in reply["trees"]]

    def render(self, trees: Sequence[dict[str, Any]]) -> list[str]:
        """The SQL of syntax trees, as select lists."""
        reply, _ = self._ask({"do": "render", "trees": [json.dumps(tree) for tree in trees]})
        return [sql.removeprefix("SELECT ") for sql in reply["sql"]]

    def bind(self, columns: Sequence[tuple[str, str]], expressions: Sequence[str]) -> list[dict[str, str]]:
        """The type of every expression, or its error."""
        reply, _ = self._ask({"do": "bind", "columns": list(columns), "expressions": list(expressions)})
        results: list[dict[str, str]] = reply["results"]
        return results

    def evaluate(
        self, batch: pa.Table, columns: Sequence[tuple[str, str]], expressions: Sequence[tuple[str, str]]
    ) -> list[Column]:
        """Every expression (SQL, type) over a batch.

        All are asked at once. Where that goes over the limits each is asked alone, and one that did is ever after.
        """
        results = [Column(pa.chunked_array([], _RESULTS[kind])) for _, kind in expressions]
        first = 0
        for piece in _pieces(batch):
            for whole, part in zip(results, self._over_piece(piece, columns, expressions), strict=True):
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
        why: list[str] = reply["why"]
        return why

    def validate(self, answers: pa.ChunkedArray, assertions: Sequence[dict[str, Any]]) -> Validated:
        """Every assertion over the JSON texts of answers; where all at once are over the limits, each alone."""
        validated = Validated(np.zeros((len(assertions), len(answers)), dtype=np.uint8), {})
        table = pa.table({"answer": answers}).combine_chunks()
        step = max(1, MOST_VALIDATED // len(assertions))
        first = 0
        for start in range(0, table.num_rows, step):
            for piece in _pieces(table.slice(start, step).combine_chunks()):
                try:
                    self._validated(piece, assertions, range(len(assertions)), first, validated)
                except OverLimit:
                    for place in range(len(assertions)):
                        try:
                            self._validated(piece, assertions, [place], first, validated)
                        except OverLimit:
                            validated.states[place, first : first + piece.num_rows] = BROKEN
                            validated.why |= {(place, first + row): self.over for row in range(piece.num_rows)}
                first += piece.num_rows
        return validated

    def _validated(
        self,
        piece: pa.Table,
        assertions: Sequence[dict[str, Any]],
        places: Sequence[int],
        first: int,
        validated: Validated,
    ) -> None:
        asked = {"do": "validate", "assertions": [assertions[place] for place in places]}
        _, table = self._ask_over(piece, asked)
        for index, place in enumerate(places):
            states = table.column(f"s{index}").to_numpy()
            validated.states[place, first : first + piece.num_rows] = states
            words = table.column(f"w{index}")
            for row in np.flatnonzero(states >= FAILED).tolist():
                validated.why[place, first + row] = words[row].as_py()

    def _over_piece(
        self, piece: pa.Table, columns: Sequence[tuple[str, str]], expressions: Sequence[tuple[str, str]]
    ) -> list[Column]:
        together = [place for place, (sql, _) in enumerate(expressions) if sql not in self._heavy]
        results: dict[int, Column] = {}
        with suppress(OverLimit):
            results = self._some(piece, columns, expressions, together)
        for place in range(len(expressions)):
            if place in results:
                continue
            try:
                results |= self._some(piece, columns, expressions, [place])
            except OverLimit:
                self._heavy.add(expressions[place][0])
                nothing = pa.chunked_array([pa.nulls(piece.num_rows, _RESULTS[expressions[place][1]])])
                results[place] = Column(nothing, [(np.arange(piece.num_rows), self.over)])
        return [results[place] for place in range(len(expressions))]

    def _some(
        self,
        piece: pa.Table,
        columns: Sequence[tuple[str, str]],
        expressions: Sequence[tuple[str, str]],
        places: Sequence[int],
    ) -> dict[int, Column]:
        if not places:
            return {}
        asked = {"do": "evaluate", "columns": list(columns), "expressions": [expressions[place] for place in places]}
        reply, table = self._ask_over(piece, asked)
        return {
            place: Column(table.column(f"e{index}"), _raised(table, index, reply["raised"].get(str(index), "")))
            for index, place in enumerate(places)
        }

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
