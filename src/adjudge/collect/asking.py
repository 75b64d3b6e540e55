"""Asking a subject until there is an answer, asking again would not help, or the retries are used up."""

from __future__ import annotations

import asyncio
import random
from typing import NamedTuple

from adjudge.collect.clock import Clock
from adjudge.collect.settings import Settings
from adjudge.collect.subject import Reply, Request, Subject, Unanswered


class Asked(NamedTuple):
    """How a question ended, after all attempts."""

    reply: Reply | None
    failed: Unanswered | None
    attempts: int
    seconds: float
    """Of the last attempt alone: the wait for a rate limit is no latency of the system."""
    total: float


class Asker:
    """Asks with a time limit and retries, by some clock; the jitter of its waits follows from the seed."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._random = random.Random(settings.seed)  # noqa: S311 -- jitter

    async def ask(self, subject: Subject, request: Request) -> Asked:
        """The answer, or what stands in its place."""
        start = self._clock.seconds()
        attempts = 0
        while True:
            attempts += 1
            began = self._clock.seconds()
            reply: Reply | None = None
            failed: Unanswered | None = None
            try:
                async with asyncio.timeout(self._settings.timeout):
                    reply = await subject.ask(request)
            except TimeoutError:
                failed = Unanswered("timeout", f"no answer within {self._settings.timeout:g} s")
            except Unanswered as error:
                failed = error
            except asyncio.CancelledError:
                failed = _cancelled()
            seconds = self._clock.seconds() - began
            if failed is not None and failed.retry and attempts <= self._settings.retries:
                try:
                    failed = await self._wait(failed, attempts)
                except asyncio.CancelledError:
                    failed = _cancelled()
                if failed is None:
                    continue
            return Asked(reply, failed, attempts, seconds, self._clock.seconds() - start)

    async def _wait(self, failed: Unanswered, attempts: int) -> Unanswered | None:
        """Back off: doubling, with jitter, and never less than the server asked for; a longer wait gives up."""
        longest = self._settings.longest_wait
        wait = min(self._settings.backoff * 2.0 ** (attempts - 1), longest) * self._random.uniform(0.5, 1.0)
        if failed.wait is not None:
            if failed.wait > longest:
                what = f"{failed.what} (it asked to wait {failed.wait:g} s; the longest wait is {longest:g} s)"
                return Unanswered(failed.kind, what)
            wait = failed.wait + wait * 0.1
        await asyncio.sleep(wait)
        return None


def _cancelled() -> Unanswered:
    return Unanswered("cancelled", "the collection was interrupted before there was an answer")
