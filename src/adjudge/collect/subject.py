"""Subject: any system under test, as the runner sees it; what it is asked (Request), and what it says (Reply, Unanswered)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
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
    model: str | None = None
    settings: dict[str, Any] = {}

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
            "model": self.model,
            "settings": self.settings,
        }


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a tool and what it took."""

    tool: str
    seconds: float
    status: str = "ok"


class Reply(msgspec.Struct, kw_only=True):
    """What a subject said. A `python:` or `cmd:` subject returns an object with any of these keys, or just a text.

    Every other key it returns, and one of these with a value of another kind, is kept in `more`.
    """

    response: str | None = None
    prediction: str | None = None
    confidence: float | str | None = None
    rationale: str | None = None
    models: dict[str, str | None] = {}
    usage: dict[str, Any] | None = None
    timings: dict[str, float | None] = {}
    tool_details: list[ToolUse] = []
    finish_reason: str | None = None
    cache: dict[str, Any] | None = None
    prompt_hashes: dict[str, Any] = {}
    error: str | None = None
    error_type: ErrorType | None = None
    id: str | int | None = None
    more: dict[str, Any] = {}


_KINDS = {field.name: field.type for field in msgspec.structs.fields(Reply) if field.name != "more"}


class Unanswered(Exception):
    """There is no answer, and why; `retry` says whether asking again may help, `wait` how long the server asked for.

    `returned` is what came back instead of an answer, so that the record keeps it; `status` is a server's status code.
    """

    def __init__(
        self,
        kind: ErrorType,
        what: str,
        *,
        retry: bool = False,
        wait: float | None = None,
        returned: Any = None,
        status: int | None = None,
    ) -> None:
        self.kind, self.what, self.retry, self.wait, self.returned = kind, what, retry, wait, returned
        self.status = status
        super().__init__(what)


class Subject(ABC):
    """One system under test. `model` names it on every record; `needs_prompt` says that it reads only the prompt."""

    model: str
    needs_prompt = False
    replays = False

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What the answers depend on besides the request, for the cache key and the records: names and digests."""

    def payload(self, request: Request) -> dict[str, Any]:
        """What of the sample reaches the subject besides the prompt."""
        return {"sample": request.sample, "image": None if request.image is None else request.image.sha256}

    def check_modes(self, modes: tuple[bool, ...]) -> None:  # noqa: B027 -- most subjects need none
        """Refuse modes that this subject cannot run, before anything is asked."""

    def check_settings(self, settings: Mapping[str, Any]) -> None:  # noqa: B027 -- most subjects take any
        """Refuse settings that would reach nobody."""

    async def open(self, workers: int) -> None:  # noqa: B027 -- most subjects need none
        """Get ready for so many requests at a time."""

    @abstractmethod
    async def ask(self, request: Request) -> Reply:
        """The answer, or Unanswered. The runner cancels this call when the time is up."""

    async def close(self) -> None:  # noqa: B027 -- most subjects need none
        """Let go of everything that `open` and `ask` began."""


def mode_name(*, use_tools: bool) -> str:
    """The mode in words."""
    return "tools" if use_tools else "no-tools"


def reply_from(value: Any, request: Request, who: str) -> Reply:
    """The reply in what a `python:` or `cmd:` subject returned; Unanswered where it holds no answer."""
    if isinstance(value, str):
        return Reply(response=value)
    if not isinstance(value, Mapping):
        expected = "expected a text, or an object with a `response` or a `prediction`"
        raise Unanswered("invalid", f"{who} returned a {type(value).__name__}; {expected}", returned=plain(value))
    reply = reply_of(value)
    returned = plain(value)
    if reply.id is not None and str(reply.id) != request.id:
        what = f"{who} was asked about id {request.id!r} and answered about {reply.id!r}"
        raise Unanswered("invalid", what, returned=returned)
    if reply.error is not None or reply.error_type is not None:
        raise Unanswered(reply.error_type or "invalid", reply.error or "it did not say why", returned=returned)
    if reply.response is None and reply.prediction is None and reply.more:
        reply.response = msgspec.json.encode(returned).decode()  # an answer under names of its own is an answer too
    if reply.response is None and reply.prediction is None:
        raise Unanswered("invalid", f"{who} returned neither a response nor a prediction", returned=returned)
    return reply


def reply_of(value: Mapping[Any, Any]) -> Reply:
    """A reply from an object: what has the declared kind in its place, everything else in `more`."""
    known: dict[str, Any] = {}
    more: dict[str, Any] = {}
    for key, content in value.items():
        if content is None and key in _KINDS:
            continue
        try:
            known[key] = msgspec.convert(content, _KINDS[key])
        except (KeyError, msgspec.ValidationError):
            more[str(key)] = plain(content)
    return Reply(**known, more=more)


def plain(value: Any) -> Any:
    """A value as JSON can hold it; what it cannot hold becomes its text."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=repr))
