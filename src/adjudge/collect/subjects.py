"""From `--subject` to a Subject."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from adjudge.collect.chat import ChatSubject
from adjudge.collect.command import CommandSubject
from adjudge.collect.python_subject import PythonSubject
from adjudge.collect.replay import ReplaySubject
from adjudge.collect.subject import Subject
from adjudge.errors import ConfigError

_NAMED = re.compile(r"([^:=]+)=(.+)", re.DOTALL)
_KINDS = "python:module:callable, cmd:PROGRAM …, openai:MODEL, file:old.jsonl"


def subject_of(text: str, *, base_url: str | None = None, **of_chat: Any) -> Subject:
    """The subject of `[NAME=]KIND:REST`; NAME is the model on its records. `of_chat` is what a chat model takes beside."""
    named = _NAMED.fullmatch(text)
    name, rest = (named[1], named[2]) if named else (None, text)
    kinds: dict[str, Callable[..., Subject]] = {
        "python": PythonSubject,
        "cmd": CommandSubject,
        "openai": partial(ChatSubject, base_url=base_url, **of_chat),
        "file": ReplaySubject,
    }
    kind, colon, what = rest.partition(":")
    if colon and kind in kinds:
        return kinds[kind](what, name)
    raise ConfigError(f"--subject {text!r} is not one of {_KINDS}")
