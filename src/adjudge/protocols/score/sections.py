"""Tables beside the estimates: several attempts at one item, every score of the log, and its conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.protocols.base import Measured
from adjudge.protocols.score.comparable import FACTORS, MUST, Facts
from adjudge.runs.section import Column, Section

_USE = {**dict.fromkeys(MUST, "must be equal"), **dict.fromkeys(FACTORS, "one may differ")}


def of_trials(measured: Measured, models: Sequence[str]) -> Section | None:
    """pass@k and pass^k side by side."""
    estimates = {(named.name, named.slice): named.estimate for named in measured.estimates}
    ks = sorted({int(name.rpartition("_")[2]) for name, _ in estimates if name.startswith("pass_hat_")})
    if not ks:
        return None
    return Section(
        name="attempts",
        title="Several attempts at one item",
        columns=["model", "k", Column("pass@k: one of k passes", "%"), Column("pass^k: all of k pass", "%")],
        rows=[
            [
                model,
                k,
                estimates.get((f"pass_at_{k}", f"model={model}")),
                estimates.get((f"pass_hat_{k}", f"model={model}")),
            ]
            for model in models
            for k in ks
        ],
        note="Averaged over items, intervals by item; an attempt without a score did not pass.",
        terminal=12,
    )


def of_checks(measured: Measured, models: Sequence[str], checks: Sequence[str]) -> Section | None:
    """Every score by name, where the log has several."""
    if len(checks) < 2:
        return None
    estimates = {(named.name, named.slice): named.estimate for named in measured.estimates}
    rows = [
        [
            model,
            name,
            *(
                estimates.get((metric, f"slice={model},check={name}"))
                for metric in ("mean_score", "pass_rate", "coverage")
            ),
        ]
        for model in models
        for name in checks
        if ("mean_score", f"slice={model},check={name}") in estimates
    ]
    return Section(
        name="checks",
        title="Every score of the log, as reported",
        columns=["model", "score", "mean over all", Column("passed", "%"), Column("coverage", "%")],
        rows=rows,
        note=f"{checks[0]} is the one that is judged (--scorer). What has no such score counts 0.",
        terminal=8,
    )


def of_conditions(facts: Facts) -> Section | None:
    """Under which conditions every model did every task."""
    rows = [
        [model, task or "–", name, _brief(value), _USE.get(name, "noted")]
        for model, tasks in facts.items()
        for task, stated in tasks.items()
        for name, value in sorted(stated.items())
    ]
    if not rows:
        return None
    return Section(
        name="conditions",
        title="Conditions, as the logs state them",
        columns=["model", "task", "fact", "value", "for a comparison"],
        rows=rows,
        place="more",
        terminal=0,
    )


def _brief(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 100 else text[:99] + "…"
