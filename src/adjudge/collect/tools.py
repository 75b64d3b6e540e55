"""Tools that a chat model may call: Python functions, described to the model by their signatures."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from adjudge.collect.python_subject import call, load_callable, source_digest
from adjudge.collect.subject import ToolUse
from adjudge.errors import ConfigError


class Tool:
    """One function: its name, its JSON Schema, and how it is called with the arguments a model wrote."""

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
