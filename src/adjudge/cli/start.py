"""The console script: every way in which a command ends becomes at most one message and one exit code."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
import traceback
from contextlib import suppress
from types import FrameType
from typing import TextIO

from adjudge.errors import AdjudgeError, ConfigError, InstrumentError

_SETTINGS = {"OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
"""For this process and its workers, unless the user says otherwise: each saves a tenth of an evaluation's CPU."""

_KEPT = {-1: 1 << 30, -3: 1 << 25}
"""Bytes, by setting of glibc (M_TRIM_THRESHOLD; M_MMAP_THRESHOLD, of which this is the most): memory that was given
back is kept for the next block; the system would have to clear it anew, which is a tenth of an evaluation's CPU."""

_COLLECT_AFTER = 200_000
"""Objects, more than all imports make: a block makes thousands of short-lived tuples, and looking for cycles costs a tenth."""

_CLOSED_PIPE = 128 + 13  # as if SIGPIPE had ended the process
_OF_THE_MACHINE = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
    errno.EFBIG,
    errno.ENOMEM,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENAMETOOLONG,
}
_NO_ROOM = "failed to map segment"
"""So the loader says that memory does not suffice for a library."""
_AGAIN_AFTER = 0.01
"""Seconds until an interruption that was lost is raised once more."""

_received: list[int] = []

JUDGED_LOGS: dict[str, str] = {}
"""The temporary run of every log that was judged first, and the log: whoever named a log is told of the log."""

LOGS: list[str] = []
"""The logs that the command was given where it takes runs: nothing is written over them."""


class _Interrupted(KeyboardInterrupt):
    """A signal. An interpreter that met a plain KeyboardInterrupt in code of `exec` ends as if by SIGINT, whatever it is told."""


def run() -> None:
    """Run the command of this process and leave with its exit code."""
    _open_closed_streams()
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    gc.set_threshold(_COLLECT_AFTER)
    _keep_memory()
    signal.signal(signal.SIGALRM, _again)
    sys.unraisablehook = _unraisable
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:  # a job in the background of a shell ignores Ctrl-C
                signal.signal(number, _interrupt)
        _import_undisturbed()
        code = _command()
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 -- nothing goes past the exit codes
        code = _told_somehow(error)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)  # what comes while the interpreter ends changes nothing
    for stream in (sys.stdout, sys.stderr):
        _let_go(stream)
    if "_duckdb" not in sys.modules:  # which takes what is left for leaks
        gc.freeze()  # or the interpreter looks for cycles among everything while it ends
    sys.exit(128 + _received[0] if _received else code)


def _import_undisturbed() -> None:
    """Most commands need `decimal`; where a signal cuts its import short, the next try prints a warning of its C library."""
    numbers = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    import decimal  # noqa: F401

    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)


def _open_closed_streams() -> None:
    """Where the caller closed a stream its number would be given to the next file, and what is printed would land in that.

    Standard input is empty then, standard output refuses to be written to, and messages are lost.
    """
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, mode), number)  # to itself: it is the lowest number that is free
    sys.stdin = sys.stdin or open(0)  # noqa: SIM115 -- for as long as the process
    sys.stdout = sys.stdout or open(1, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w")  # noqa: SIM115


def _keep_memory() -> None:
    """Tell the C library, where it is one that can be told, to keep the memory that is given back to it."""
    import ctypes

    with suppress(AttributeError, OSError):  # another C library than glibc
        adjust = ctypes.CDLL(None).mallopt
        for setting, size in _KEPT.items():
            adjust(setting, size)


def _command() -> int:
    import click

    from adjudge.cli.main import main

    if "_ADJUDGE_COMPLETE" in os.environ:  # the shell asks for completions
        main.main(prog_name="adjudge")
    for word in sys.argv[1:]:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise ConfigError(
                f"{word!a} is no text of UTF-8, as which a run keeps names; rename it, or set PYTHONUTF8=1"
            ) from None
    try:
        with main.make_context("adjudge", sys.argv[1:]) as context:
            code = main.invoke(context)
    except click.exceptions.Exit as end:
        code = end.exit_code
    return code if isinstance(code, int) else 0


def _told_somehow(error: BaseException) -> int:
    """The same, where memory may not even suffice for the modules that put an error into words."""
    try:
        return _told(error)
    except Exception:  # noqa: BLE001 -- nothing goes past the exit codes
        with suppress(OSError):
            os.write(2, b"adjudge: there is not enough memory\n")
        return InstrumentError.exit_code


def _told(error: BaseException) -> int:
    """Say what ended the command, and return the exit code that stands for it."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0
    if sys.argv[1:2] == ["--debug"]:
        from adjudge.provenance.redact import redacted

        sys.stderr.write(redacted("".join(traceback.format_exception(error))))
    notes: list[str] = getattr(error, "__notes__", [])
    if _received or isinstance(error, KeyboardInterrupt):
        _say("; ".join(["interrupted", *(notes or ["nothing was written"])]))
        return 130
    if isinstance(error, BrokenPipeError):
        return _CLOSED_PIPE
    code, message = _judged(error)
    _say("; ".join([f"adjudge: {message}", *notes]) if message else "")
    return code


def _judged(error: BaseException) -> tuple[int, str]:
    """Exit code and message of an error."""
    if isinstance(error, AdjudgeError):
        reason = error.__context__
        broken = isinstance(reason, OSError) and reason.errno in _OF_THE_MACHINE
        return InstrumentError.exit_code if broken else error.exit_code, str(error)
    import click

    if isinstance(error, click.exceptions.Abort):
        return 130, "interrupted"
    if isinstance(error, click.ClickException):
        error.show()
        return 2, ""
    if isinstance(error, MemoryError) or (isinstance(error, ImportError) and _NO_ROOM in str(error)):
        return InstrumentError.exit_code, "there is not enough memory"
    if isinstance(error, OSError) and error.strerror:
        return InstrumentError.exit_code, ": ".join(
            [*([str(error.filename)] if error.filename else []), error.strerror]
        )
    first = next(iter(str(error).splitlines()), "")
    kind = f"{type(error).__name__}: {first}" if first else type(error).__name__
    return InstrumentError.exit_code, f"an error of adjudge itself, {kind} (`adjudge --debug …` shows where)"


def _say(text: str) -> None:
    from adjudge.provenance.redact import redacted
    from adjudge.report.numbers import terminal

    if text:
        with suppress(OSError):  # nobody listens
            print(terminal(redacted(with_logs(text))), file=sys.stderr, flush=True)  # noqa: T201 -- click may not be loaded yet


def with_logs(text: str) -> str:
    """A text that names logs where it named their temporary runs."""
    for run in sorted(JUDGED_LOGS, key=len, reverse=True):  # the name of one may be how another begins
        text = text.replace(run, JUDGED_LOGS[run])
    return text


def _let_go(stream: TextIO | None) -> None:
    """Write what waits; where that is not possible, into nothing, or the interpreter would try again and complain."""
    try:
        if stream is not None:
            stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # type: ignore[union-attr]


def _interrupt(number: int, frame: FrameType | None) -> None:
    """End the command; a second signal does not disturb its clearing up, a third ends the process at once."""
    del frame
    _received.append(number)
    if len(_received) == 1:
        raise _Interrupted
    if len(_received) > 2:
        os._exit(128 + number)


def _again(number: int, frame: FrameType | None) -> None:
    """Raise an interruption that was lost once more."""
    del number, frame
    raise _Interrupted


def _unraisable(lost: sys.UnraisableHookArgs) -> None:
    """What Python cannot raise: a signal that came while it ran a destructor or the callback of a weak reference is not lost."""
    if lost.exc_type is _Interrupted:
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_AFTER)
    else:
        sys.__unraisablehook__(lost)
