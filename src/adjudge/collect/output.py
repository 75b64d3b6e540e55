"""The results file: one record a line, appended and flushed as it comes, so that a crash costs no finished record."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import msgspec

from adjudge.collect.subject import mode_name
from adjudge.errors import ConfigError, InputError, OutputError
from adjudge.provenance.redact import Redactor

Key = tuple[str, str, bool, int]
"""(id, model, use_tools, trial): every record of a results file has another."""

# How fast and how patiently a run went on may change between its parts; what was asked of whom may not.
_MAY_DIFFER = frozenset({"workers", "timeout_seconds", "retries", "adjudge"})


class _Done(msgspec.Struct):
    id: str
    model: str
    use_tools: bool
    trial: int
    error: str | None = None
    error_type: str | None = None
    latency_seconds: float | None = None
    run_config: dict[str, Any] = {}


_done = msgspec.json.Decoder(_Done)


class Output:
    """A results file open for appending, held by this process alone.

    `done` are the keys that it already has, `latencies` the longest answer to each question by (id, model, use_tools).
    """

    def __init__(
        self,
        path: Path,
        redactor: Redactor,
        *,
        resume: bool,
        force: bool = False,
        retry_errors: bool = False,
        configs: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.path, self._redactor = path, redactor
        self.done: set[Key] = set()
        self.latencies: dict[tuple[str, str, bool], float] = {}
        self._broken: OutputError | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = path.open("ab", buffering=0)
        except OSError as error:
            raise OutputError(f"{path} cannot be written: {error.strerror}") from None
        try:
            _lock(self._stream, path)
            if path.stat().st_size:
                self._take_up(resume=resume, force=force, retry_errors=retry_errors, configs=configs or {})
        except BaseException:
            self._stream.close()
            raise

    def _take_up(
        self, *, resume: bool, force: bool, retry_errors: bool, configs: Mapping[str, Mapping[str, Any]]
    ) -> None:
        if not resume:
            if not force:
                raise OutputError(f"{self.path} exists already; --resume goes on with it, --force replaces it")
            self._stream.truncate(0)
            return
        asked_again: set[int] = set()
        end = 0
        for number, line in enumerate(_whole_lines(self.path), 1):
            end += len(line)
            try:
                record = _done.decode(line)
            except msgspec.DecodeError as error:
                text, hint = f"is no record of a collection: {error};", "choose another --output"
                raise InputError(text, file=str(self.path), line=number, hint=hint) from None
            if record.error_type == "cancelled" or (retry_errors and record.error is not None):
                asked_again.add(number)
                continue
            key = (record.id, record.model, record.use_tools, record.trial)
            if key in self.done:
                question = f"id {key[0]!r} of {key[1]}, {mode_name(use_tools=key[2])}, trial {key[3]},"
                raise InputError(f"{question} stands here a second time", file=str(self.path), line=number)
            if record.model in configs:
                _refuse_other(record.run_config, configs[record.model], f"{self.path}:{number}")
            self.done.add(key)
            self.latencies[key[:3]] = max(record.latency_seconds or 0.0, self.latencies.get(key[:3], 0.0))
        self._stream.truncate(end)  # a last line that was cut short by a crash
        if asked_again:
            self._rewrite(asked_again)

    def _rewrite(self, without: set[int]) -> None:
        """The file without some lines, whose questions are asked again; it is replaced whole."""
        waiting = self.path.with_name(f".{self.path.name}.part")
        with waiting.open("wb") as stream:
            stream.writelines(line for n, line in enumerate(_whole_lines(self.path), 1) if n not in without)
            stream.flush()
            os.fsync(stream.fileno())
        fresh = waiting.open("ab", buffering=0)
        _lock(fresh, self.path)
        waiting.replace(self.path)
        self._stream.close()
        self._stream = fresh

    def write(self, record: Mapping[str, Any]) -> None:
        """Append one record; when this returns, the system has it."""
        if self._broken is not None:
            raise self._broken  # after half a line, another would become part of it
        line = memoryview(self._redactor.line(msgspec.json.encode(record)) + b"\n")
        try:
            while line:
                line = line[self._stream.write(line) :]
        except OSError as error:
            self._broken = OutputError(f"{self.path} cannot be written: {error.strerror}")
            raise self._broken from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        with contextlib.suppress(OSError):  # a device or a pipe has nothing to sync
            os.fsync(self._stream.fileno())
        self._stream.close()


def _lock(stream: io.FileIO, path: Path) -> None:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise OutputError(f"{path} is being written by another collection; wait for it, or choose another") from None


def _whole_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        yield from (line for line in stream if line.endswith(b"\n"))


def _refuse_other(recorded: Mapping[str, Any], config: Mapping[str, Any], place: str) -> None:
    """A record that was made with other settings would stand beside new ones as if they were the same."""
    for name in sorted({*config, *recorded} - _MAY_DIFFER):
        if config.get(name) != recorded.get(name):
            raise ConfigError(
                f"{place}: was collected with another {name} ({recorded.get(name)!r}, now {config.get(name)!r}); "
                "resume with the same settings, or choose another --output"
            )
