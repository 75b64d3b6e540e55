"""Clock: where the runner takes time from; as it passes, or simulated, so that waiting takes none.

Under the simulated clock an async subject that sleeps is measured as if it had slept: the event loop jumps to the moment at
which the next sleeper wakes. Everything that is measured is then the same each time. It suits only subjects that wait on the
event loop; a thread or a server does not know that time was jumped over.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from datetime import UTC, datetime, timedelta


class Clock:
    """Time as it passes. `name` stands on every record where it is another clock."""

    name: str | None = None

    def seconds(self) -> float:
        """For durations."""
        return time.perf_counter()

    def now(self) -> datetime:
        """For time stamps, in UTC."""
        return datetime.now(UTC)

    def loop(self) -> asyncio.AbstractEventLoop:
        """An event loop that waits by this clock."""
        return asyncio.new_event_loop()


class SimulatedClock(Clock):
    """Time that begins at `start` and passes only where somebody waits, and by `tick` whenever it is looked at."""

    name = "simulated"

    def __init__(self, start: datetime, tick: float = 1e-4) -> None:
        self._start, self._tick = start, tick
        self.passed = 0.0

    def seconds(self) -> float:
        """Seconds since the start."""
        self.passed += self._tick
        return self.passed

    def now(self) -> datetime:
        """The start and what has passed."""
        return self._start + timedelta(seconds=self.passed)

    def loop(self) -> asyncio.AbstractEventLoop:
        """A loop that jumps."""
        return _Loop(self)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: SimulatedClock) -> None:
        self._simulated = clock
        super().__init__(_Selector(clock))

    def time(self) -> float:
        return self._simulated.passed


class _Selector(selectors.DefaultSelector):
    """Lets time jump where the loop would wait for a timer."""

    def __init__(self, clock: SimulatedClock) -> None:
        super().__init__()
        self._simulated = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(None if timeout is None else 0)
        if timeout is not None and timeout > 0 and not ready:
            self._simulated.passed += timeout
        return ready
