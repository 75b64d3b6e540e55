"""From `--subject` to a Subject."""

from __future__ import annotations

import re
from collections.abc import Sequence

from adjudge.collect.chat import ChatSubject
from adjudge.collect.command import CommandSubject
from adjudge.collect.python_subject import PythonSubject
from adjudge.collect.replay import ReplaySubject
from adjudge.collect.subject import Subject
from adjudge.collect.tools import Tool
from adjudge.errors import ConfigError

_NAMED = re.compile(r"([^:=]+)=(.+)", re.DOTALL)
_KINDS = "python:module:callable, cmd:PROGRAM …, openai:MODEL, file:old.jsonl"


def subject_of(
    text: str,
    *,
    base_url: str | None = None,
    key: str | None = None,
    tools: Sequence[str] = (),
    json_mode: bool = False,
    max_tokens: int | None = None,
) -> Subject:
    """The subject of `[NAME=]KIND:REST`; NAME is the model on its records."""
    named = _NAMED.fullmatch(text)
    name, rest = (named[1], named[2]) if named else (None, text)
    kind, colon, what = rest.partition(":")
    if colon and kind == "python":
        return PythonSubject(what, name)
    if colon and kind == "cmd":
        return CommandSubject(what, name)
    if colon and kind == "file":
        return ReplaySubject(what, name)
    if colon and kind == "openai":
        return ChatSubject(
            what,
            name,
            base_url=base_url,
            key=key,
            tools=[Tool(reference) for reference in tools],
            json_mode=json_mode,
            max_tokens=max_tokens,
        )
    raise ConfigError(f"--subject {text!r} is not one of {_KINDS}")
