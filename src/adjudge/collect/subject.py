"""Subject: any system under test, as the runner sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from adjudge.collect.request import Reply, Request


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
