"""`cmd:PROGRAM …`: a pool of long-lived programs, each answering one JSON line with one JSON line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
from pathlib import Path
from typing import Any, cast

import msgspec

from adjudge.collect.subject import MAX_ANSWER, Reply, Request, Subject, Unanswered, reply_from
from adjudge.errors import ConfigError
from adjudge.provenance.canonical import file_digest

_TAIL = 2000
_GRACE = 2.0
_LATE = 0.5


class _Program(asyncio.SubprocessProtocol):
    """One running program; at most one request waits for its line."""

    transport: asyncio.SubprocessTransport  # set by the loop before the program is handed out

    def __init__(self) -> None:
        self.usable = True
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._out = bytearray()
        self._stderr = bytearray()
        self._waiting: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._stderr = (self._stderr + data)[-_TAIL:]
            return
        waiting = self._waiting
        if waiting is None or waiting.done():
            # More than one line for one request: every later answer would be taken for another question.
            self.usable = False
            return
        self._out += data
        end = self._out.find(b"\n", max(0, len(self._out) - len(data)))
        if end < 0:
            if len(self._out) > MAX_ANSWER:
                self._fail(f"answered with more than {MAX_ANSWER} bytes in one line")
            return
        self.usable = self.usable and end == len(self._out) - 1
        line = bytes(self._out[:end])
        self._out.clear()
        waiting.set_result(line)

    def process_exited(self) -> None:
        self.usable = False
        # `connection_lost` follows once the pipes are read out, unless a child of the program still holds them.
        asyncio.get_running_loop().call_later(_LATE, self._fail, self._ended())

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._fail(self._ended())
        if not self.ended.done():
            self.ended.set_result(None)

    def _ended(self) -> str:
        return f"ended with code {self.transport.get_returncode()} before it answered"

    def _fail(self, what: str) -> None:
        self.usable = False
        if self._waiting is not None and not self._waiting.done():
            stderr_tail = bytes(self._stderr).decode("utf-8", "replace").strip()
            told = f"; it said: {stderr_tail}" if stderr_tail else ""
            self._waiting.set_exception(Unanswered("invalid", what + told))

    async def ask(self, line: bytes) -> bytes:
        """Write one line and wait for one."""
        stdin = cast("asyncio.WriteTransport", self.transport.get_pipe_transport(0))
        self._waiting = asyncio.get_running_loop().create_future()
        if not self.usable or stdin.is_closing():
            self._fail("ended before it was asked")
        else:
            stdin.write(line)
        return await self._waiting

    def kill(self) -> None:
        """End this program and what it started; it stands in a session of its own."""
        self.usable = False
        if self.transport.get_returncode() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.transport.get_pid(), signal.SIGKILL)

    async def stop(self) -> None:
        """Close its input, give it a moment to end, then kill it."""
        stdin = self.transport.get_pipe_transport(0)
        if stdin is not None:
            stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self.ended), _GRACE)
        self.kill()
        self.transport.close()


class CommandSubject(Subject):
    """A program; as many copies run as requests are in flight, and a copy that fails is replaced."""

    def __init__(self, command: str, model: str | None = None) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise ConfigError(f"subject cmd:{command!r} cannot be read: {error}") from None
        if not self._words:
            raise ConfigError("subject cmd: names no program (cmd:PROGRAM …)")
        program = shutil.which(self._words[0])
        if program is None:
            raise ConfigError(f"subject cmd: there is no program {self._words[0]!r} that can be run")
        self._program = program
        self.model = model or Path(self._words[0]).name
        self._idle: list[_Program] = []
        self._running: set[_Program] = set()

    def identity(self) -> dict[str, Any]:
        """The command as it was given, and the digests of the files that it names."""
        files = [Path(word) for word in (self._program, *self._words[1:])]
        digests = [file_digest(file) for file in files if file.is_file()]
        return {"subject": "cmd:" + shlex.join(self._words), "subject_sha256": digests}

    async def ask(self, request: Request) -> Reply:
        """Ask an idle copy, or start one; a copy whose request was cut short is killed."""
        program = self._idle.pop() if self._idle else await self._start()
        whole = False
        try:
            line = await program.ask(msgspec.json.encode(request.plain()) + b"\n")
            whole = True
        except Unanswered as error:
            raise Unanswered(error.kind, f"{self._words[0]} {error.what}") from None
        finally:
            if whole and program.usable:
                self._idle.append(program)
            else:
                self._drop(program)
        try:
            value = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            shown = line[:200].decode("utf-8", "replace")
            raise Unanswered("invalid", f"{self._words[0]} answered no JSON: {error}: {shown!r}") from None
        return reply_from(value, request, self._words[0])

    async def _start(self) -> _Program:
        loop = asyncio.get_running_loop()
        try:
            _, program = await loop.subprocess_exec(
                _Program, self._program, *self._words[1:], start_new_session=True, close_fds=True
            )
        except OSError as error:
            raise Unanswered("invalid", f"{self._words[0]} cannot be started: {error.strerror}") from None
        self._running.add(program)
        return program

    def _drop(self, program: _Program) -> None:
        program.kill()
        program.transport.close()
        self._running.discard(program)

    async def close(self) -> None:
        """End every copy."""
        running, self._running, self._idle = list(self._running), set(), []
        await asyncio.gather(*(program.stop() for program in running))
