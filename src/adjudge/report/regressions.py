"""Estimates held against a baseline, in words: the difference, its interval, the margin and what follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from adjudge.report import numbers, view
from adjudge.report.markdown import escape, rows
from adjudge.runs.run import Run
from adjudge.stats.estimate import Estimate

_MARK = {"pass": "✅", "fail": "❌", "unknown": "⚠️"}


class Held(Protocol):
    """What a held estimate must tell."""

    @property
    def name(self) -> str:
        """The estimate."""

    @property
    def slice(self) -> str:
        """The slice it is about."""

    @property
    def margin(self) -> float:
        """How much worse is tolerated."""

    @property
    def before(self) -> Estimate:
        """In the baseline."""

    @property
    def now(self) -> Estimate:
        """In the run."""

    @property
    def difference(self) -> Estimate:
        """Now − before."""

    @property
    def outcome(self) -> str:
        """pass, fail or unknown."""

    @property
    def why(self) -> str:
        """The decision in words."""


def sentence(item: Held, run: Run) -> str:
    """One line: `worse beyond noise and margin: 90.2 % was 95.1 %, difference -4.9 % [-8.0, -1.8], margin 1 %`."""
    unit = run.metric(item.name).unit
    now, before = (numbers.point(each, unit=unit) for each in (item.now, item.before))
    return (
        f"{item.why}: {now}, was {before}, difference {numbers.estimate(item.difference, unit=unit)}, "
        f"margin {numbers.number(item.margin, unit=unit)}"
    )


def markdown(regressions: Sequence[Held], run: Run) -> str:
    """The table of a job summary."""
    body = []
    for item in regressions:
        unit = run.metric(item.name).unit
        body.append(
            [
                f"{_MARK[item.outcome]} {escape(item.why)}",
                escape(view.label(item.slice)),
                escape(run.metric(item.name).title),
                numbers.point(item.before, unit=unit),
                numbers.estimate(item.now, unit=unit),
                numbers.estimate(item.difference, unit=unit),
                numbers.number(item.margin, unit=unit),
            ]
        )
    head = ["against the baseline", "", "estimate", "was", "is", "difference", "margin"]
    return rows(head, body, left=3)
