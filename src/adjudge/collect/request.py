"""What a subject is asked and what it says: Request, Reply, and Unanswered with the kind of failure."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

ErrorType = Literal["timeout", "http", "refused", "invalid", "cancelled"]
"""timeout: no answer in time. http: a bad status or a broken connection. refused: the system declined to answer.
invalid: what came back, or what was to be sent, cannot be used. cancelled: the user stopped the run."""

MAX_ANSWER = 16 << 20
"""Bytes of one answer; a longer one is `invalid`, so that a subject cannot fill the memory."""


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """The rendered prompt. `tools` is what mode tools adds to the system prompt: part of the mode, and hashed apart."""

    user: str
    system: str | None = None
    tools: str | None = None

    @property
    def system_text(self) -> str | None:
        """The system message as it is sent."""
        return "\n\n".join(text for text in (self.system, self.tools) if text) or None


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """A picture: an address that the subject opens itself, or a local file with the digest of its bytes.

    `problem` says why there is no such file; only a subject that must send the bytes minds.
    """

    url: str | None = None
    path: str | None = None
    sha256: str
    problem: str | None = None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One question. `sample` is the record of the data set without `label` and `meta`, which a subject never sees."""

    id: str
    sample: dict[str, Any]
    use_tools: bool
    trial: int
    prompt: Prompt | None = None
    image: Image | None = None
    temperature: float | None = None
    seed: int | None = None

    def plain(self) -> dict[str, Any]:
        """The request as a `python:` or `cmd:` subject gets it."""
        return {
            "id": self.id,
            "sample": self.sample,
            "prompt": None if self.prompt is None else {"system": self.prompt.system_text, "user": self.prompt.user},
            "image_path": None if self.image is None else self.image.path,
            "mode": mode_name(use_tools=self.use_tools),
            "use_tools": self.use_tools,
            "trial": self.trial,
            "temperature": self.temperature,
            "seed": self.seed,
        }


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a tool and what it took."""

    tool: str
    seconds: float
    status: str = "ok"


class Reply(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a subject said. A `python:` or `cmd:` subject returns an object with any of these keys, or just a text."""

    response: str | None = None
    prediction: str | None = None
    confidence: float | str | None = None
    models: dict[str, str] = {}
    usage: dict[str, Any] | None = None
    timings: dict[str, float] = {}
    tool_details: list[ToolUse] = []
    finish_reason: str | None = None
    error: str | None = None
    error_type: ErrorType | None = None
    id: str | int | None = None


class Unanswered(Exception):
    """There is no answer, and why; `retry` says whether asking again may help, `wait` how long the server asked for."""

    def __init__(self, kind: ErrorType, what: str, *, retry: bool = False, wait: float | None = None) -> None:
        self.kind, self.what, self.retry, self.wait = kind, what, retry, wait
        super().__init__(what)


def mode_name(*, use_tools: bool) -> str:
    """The mode in words."""
    return "tools" if use_tools else "no-tools"


def reply_from(value: Any, request: Request, who: str) -> Reply:
    """The reply in what a `python:` or `cmd:` subject returned; Unanswered where it is none."""
    if isinstance(value, str):
        return Reply(response=value)
    try:
        reply = msgspec.convert(value, Reply)
    except msgspec.ValidationError as error:
        expected = "expected a text, or an object with some of " + ", ".join(Reply.__struct_fields__)
        raise Unanswered("invalid", f"{who} returned what is no answer: {error}; {expected}") from None
    if reply.id is not None and str(reply.id) != request.id:
        raise Unanswered("invalid", f"{who} was asked about id {request.id!r} and answered about {reply.id!r}")
    if reply.error is not None:
        raise Unanswered(reply.error_type or "invalid", reply.error)
    if reply.response is None and reply.prediction is None:
        raise Unanswered("invalid", f"{who} returned neither a response nor a prediction")
    return reply
