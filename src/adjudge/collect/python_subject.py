"""Functions of the user's, plain or async: `python:module:callable` as the system under test, and tools of a chat model."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from adjudge.collect.subject import Reply, Request, Subject, ToolUse, Unanswered, reply_from
from adjudge.errors import ConfigError
from adjudge.provenance.canonical import file_digest


def load_callable(reference: str, *, what: str) -> Callable[..., Any]:
    """The callable that `module:name` refers to; modules of the working directory are found."""
    module_name, colon, name = reference.partition(":")
    if not (module_name and colon and name):
        raise ConfigError(f"{what} {reference!r} is not of the form module:callable")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        value: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = f"there is no module {error.name!r}; it must be installed or stand in {here}"
        raise ConfigError(f"{what} {reference!r}: {missing}") from None
    except Exception as error:
        failed = f"importing {module_name} failed: {type(error).__name__}: {error}"
        raise ConfigError(f"{what} {reference!r}: {failed}") from error
    for part in name.split("."):
        if not hasattr(value, part):
            raise ConfigError(f"{what} {reference!r}: module {module_name} has no {name!r}")
        value = getattr(value, part)
    if not callable(value):
        raise ConfigError(f"{what} {reference!r} is a {type(value).__name__}, expected a callable")
    return value  # type: ignore[no-any-return]


def source_digest(function: Callable[..., Any]) -> str | None:
    """SHA-256 of the file that defines a callable, or None where there is no file."""
    module = sys.modules.get(getattr(function, "__module__", "") or "")
    file = getattr(module, "__file__", None)
    return file_digest(Path(file)) if file and Path(file).is_file() else None


async def call(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a plain or async function; a plain one runs in a thread of its own, which is left behind when cancelled."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004 -- an object may have an async __call__
        return await function(*arguments, **named)
    outcome: Future[Any] = Future()
    outcome.set_running_or_notify_cancel()  # after a timeout the thread still sets it, though nobody waits

    def work() -> None:
        try:
            outcome.set_result(function(*arguments, **named))
        except StopIteration as error:  # a future cannot carry it
            outcome.set_exception(RuntimeError(f"StopIteration: {error}"))
        except BaseException as error:  # noqa: BLE001 -- whatever it is, it belongs to the caller
            outcome.set_exception(error)

    threading.Thread(target=work, daemon=True, name="subject").start()
    value = await asyncio.wrap_future(outcome)
    return await value if inspect.isawaitable(value) else value


class PythonSubject(Subject):
    """A callable that takes the request as a dict and returns a text or a dict."""

    def __init__(self, reference: str, model: str | None = None) -> None:
        self.reference = reference
        self.model = model or reference
        self._function = load_callable(reference, what="subject python:")

    def identity(self) -> dict[str, Any]:
        """The reference, and the digest of the file that it stands in."""
        return {"subject": f"python:{self.reference}", "subject_sha256": source_digest(self._function)}

    async def ask(self, request: Request) -> Reply:
        """Call it; an exception of its own is an `invalid` answer, a TimeoutError a `timeout`."""
        try:
            value = await call(self._function, request.plain())
        except (Unanswered, TimeoutError, asyncio.CancelledError):
            raise
        except (Exception, SystemExit) as error:
            raise Unanswered("invalid", f"{self.reference} raised {type(error).__name__}: {error}") from error
        return reply_from(value, request, self.reference)


class Tool:
    """A function that a chat model may call, described to it by its signature: its name, its JSON Schema, and how it is called with the arguments a model wrote."""

    def __init__(self, reference: str) -> None:
        self.reference = reference
        self._function: Callable[..., Any] = load_callable(reference, what="tool")
        self.name = reference.rpartition(":")[2].rpartition(".")[2]
        self._arguments = _arguments(self._function, reference)
        schema, components = msgspec.json.schema_components((self._arguments,), ref_template="#/$defs/{name}")
        shape = components.pop(self._arguments.__name__, schema[0])
        self.definition: dict[str, Any] = {
            "type": "function",
            "function": {
                "name": self.name,
                "description": inspect.getdoc(self._function) or "",
                "parameters": {**shape, **({"$defs": components} if components else {})},
            },
        }

    def identity(self) -> dict[str, Any]:
        """What an answer that used this tool depends on."""
        return {"tool": self.reference, "sha256": source_digest(self._function)}

    async def use(self, arguments: str) -> tuple[str, ToolUse]:
        """What the tool returned, as text for the model, and what the call took; a failure is told to the model."""
        start = time.perf_counter()
        try:
            parsed = msgspec.json.decode(arguments or "{}", type=self._arguments)
            value = await call(self._function, **{name: getattr(parsed, name) for name in parsed.__struct_fields__})
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            status = "ok"
        except Exception as error:  # noqa: BLE001 -- the model may go on after a failed tool; the record says so
            text, status = f"error: {type(error).__name__}: {error}", "error"
        return text, ToolUse(tool=self.name, seconds=time.perf_counter() - start, status=status)


def _arguments(function: Callable[..., Any], reference: str) -> type[msgspec.Struct]:
    try:
        hints = get_type_hints(function)
        parameters = list(inspect.signature(function).parameters.values())
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
        for parameter in parameters:
            if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY}:
                raise ConfigError(f"tool {reference!r}: {parameter} cannot be filled by name")
            hint = hints.get(parameter.name, str)
            has_default = parameter.default is not parameter.empty
            fields.append((parameter.name, hint, parameter.default) if has_default else (parameter.name, hint))
        return msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
    except (TypeError, ValueError, NameError) as error:
        raise ConfigError(f"tool {reference!r}: its signature cannot be described: {error}") from None
