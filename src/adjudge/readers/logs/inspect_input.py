"""What an Inspect sample asked, in a form that is the same in every log of the same question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_CUT = "...\n(content truncated)"
_ATTACHMENT = "attachment://"


def asked(value: Any, attachments: Mapping[str, str]) -> Any:
    """The text, or role and content of every message, without the ids that differ from run to run.

    A summary shows pictures and documents as their kind alone; so does this.
    """
    if isinstance(value, str):
        return _resolved(value, attachments)
    if not isinstance(value, list):
        return value
    messages = [message for message in value if isinstance(message, dict)]
    return [[message.get("role"), _content(message.get("content"), attachments)] for message in messages]


def in_words(question: Any) -> Any:
    """What was asked, for people: of several messages a paragraph each, with its role."""
    if not isinstance(question, list):
        return question
    texts = (
        (role, content if isinstance(content, str) else "\n".join(map(str, content or ())))
        for role, content in question
    )
    return "\n\n".join(f"{role}: {text}" for role, text in texts)


def with_choices(question: Any, choices: Sequence[str] | None) -> Any:
    """A question with what could be chosen below it, by the letters that answers and targets name."""
    if not choices or not isinstance(question, str):
        return question
    return question + "".join(f"\n{chr(ord('A') + place)}) {text}" for place, text in enumerate(choices[:26]))


def is_cut(value: Any) -> bool:
    """Whether a summary holds the beginning alone."""
    if isinstance(value, str):
        return value.endswith(_CUT)
    if isinstance(value, list):
        return any(is_cut(part) for part in value)
    return isinstance(value, dict) and any(is_cut(value.get(key)) for key in ("content", "text"))


def _content(content: Any, attachments: Mapping[str, str]) -> Any:
    if isinstance(content, str):
        return _resolved(content, attachments)
    if not isinstance(content, list):
        return content
    return [
        _resolved(str(part.get("text")), attachments)
        if part.get("type") == "text"
        else f"({str(part.get('type')).capitalize()})"
        for part in content
        if isinstance(part, dict)
    ]


def _resolved(text: str, attachments: Mapping[str, str]) -> str:
    return attachments.get(text.removeprefix(_ATTACHMENT), text) if text.startswith(_ATTACHMENT) else text
