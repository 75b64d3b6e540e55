"""What the log itself printed: recomputed by its own rule from the stored scores, beside ours, with what makes the difference."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from adjudge.protocols.score.attempts import Attempts, Ints
from adjudge.readers.logs.record import CLUSTERED, NOT_REDUCED, Printed
from adjudge.runs.section import Column, Section
from adjudge.stats.exact import mean_of

Values = list[float]
_AT = re.compile(r"(pass_at|at_least|pass_k)_(\d+)")
_REDUCERS: dict[str, Callable[[Values], float]] = {
    "mean": statistics.mean,
    "median": statistics.median,
    "max": max,
    "mode": statistics.mode,
}


def _deviation(values: Values) -> float:
    return float(np.std(np.array(values), ddof=1)) if len(values) > 1 else 0.0


RULES: dict[str, Callable[[Values], float]] = {
    "mean": statistics.fmean,
    "standard error": lambda values: _deviation(values) / math.sqrt(len(values)),
    "standard deviation": _deviation,
}
_NO_ANSWER = -math.inf
PASSED = "share passed"
"""The rule of a tool that counts what it calls passed, among all attempts."""


def reduced(values: Values, reducer: str) -> float | None:
    """Several attempts at one item as one value, as Inspect's reducers do; None where the reducer is not known here."""
    if reducer in _REDUCERS:
        return _REDUCERS[reducer](values)
    match = _AT.fullmatch(reducer)
    if match is None:
        return None
    k, right, total = int(match[2]), sum(value >= 1.0 for value in values), len(values)
    if match[1] == "at_least":
        return float(right >= k)
    if total < k:
        return None
    ways = math.comb(total, k)
    return math.comb(right, k) / ways if match[1] == "pass_k" else 1.0 - math.comb(total - right, k) / ways


def recomputed(attempts: Attempts, printed: Printed, rows: Ints, main: str = "") -> float | None:
    """The printed number by its own rule: attempts with a score of the log's, one value an item, no answer being 0.

    To the mode N is another word than I, though both count 0: of the judged score (`main`) the status tells them apart.
    """
    if printed.rule == PASSED and rows.size:
        return float((attempts.columns[f"check.{printed.check}.passed"][rows] == 1).mean())
    if printed.rule not in {*RULES, CLUSTERED}:
        return None
    column = f"check.{printed.check}"
    values = attempts.columns[column if column in attempts.columns else "reported"][rows]
    known = ~np.isnan(values)
    if printed.reducer == "mode" and printed.check == main:
        values = np.where(attempts.has_status("abstained")[rows] & known, _NO_ANSWER, values)
    items, numbers = attempts.columns["item"][rows][known], values[known].tolist()
    starts = np.flatnonzero(np.diff(items)) + 1 if printed.reducer != NOT_REDUCED else np.arange(1, len(numbers))
    edges = [0, *starts.tolist(), len(numbers)]  # attempts stand in the order of items
    patterns = [tuple(numbers[low:high]) for low, high in pairwise(edges) if high]  # few, which recur
    reduced_patterns = {pattern: reduced(list(pattern), printed.reducer or "mean") for pattern in set(patterns)}
    one_each = [reduced_patterns[pattern] for pattern in patterns]
    chosen = [0.0 if value == _NO_ANSWER else value for value in one_each if value is not None]
    if not chosen or len(chosen) < len(one_each):
        return None
    if printed.rule == CLUSTERED:
        return _clustered(chosen, attempts.columns["cluster"][rows][known][edges[: len(chosen)]])
    return RULES[printed.rule](chosen)


def _clustered(values: Values, clusters: Ints) -> float | None:
    """The standard error of a mean by cluster, with C / (C − 1); None where it is not defined."""
    sums = np.bincount(np.unique(clusters, return_inverse=True)[1], weights=np.array(values) - mean_of(values))
    if sums.size < 2 or (clusters < 0).any():
        return None
    return float(math.sqrt(sums.size / (sums.size - 1) * math.fsum(sums**2)) / len(values))


def section(attempts: Attempts, printed: Sequence[Printed], checks: Sequence[str]) -> Section | None:
    """A row for every printed number, those of the judged score first."""
    rows: list[Sequence[Any]] = []
    main = checks[0] if checks else ""
    for item in sorted(printed, key=lambda one: (one.check != main, one.model, one.task, one.check, one.name)):
        of_model = attempts.by_model.get(item.model)
        if of_model is None:
            continue
        chosen = of_model
        if item.task and item.task in attempts.words["task"]:
            chosen = of_model[attempts.columns["task"][of_model] == attempts.words["task"].index(item.task)]
        again = recomputed(attempts, item, chosen, main)
        over_all = _over_all(attempts, item, chosen, main) if item.rule in {"mean", PASSED} else None
        label = f"{item.check}: {item.name}" if item.check else item.name
        why = _why(attempts, item, chosen, again, over_all, judged=item.check in {main, ""})
        rows.append([item.model, item.task or "–", label, item.value, again, over_all, why])
    if not rows:
        return None
    return Section(
        name="printed",
        title="What the log itself printed, and why ours differs",
        columns=["model", "task", "number", "printed", "by its own rule", "ours, over all", Column("why")],
        rows=rows,
        note="Ours counts every attempt: one without a score counts 0.",
        terminal=8,
    )


def _over_all(attempts: Attempts, item: Printed, rows: Ints, main: str) -> float | None:
    """Ours over every attempt: the mean of the same score, 0 for what has none; or the share that reached a threshold."""
    if item.rule == PASSED:
        return None if attempts.undecided[rows].any() else float(attempts.passed[rows].mean())
    column = f"check.{item.check}"
    judged = item.check in {main, ""} or column not in attempts.columns
    values = attempts.value[rows] if judged else np.nan_to_num(attempts.columns[column][rows])
    return mean_of(values) if values.size else None


def _why(
    attempts: Attempts, item: Printed, rows: Ints, again: float | None, over_all: float | None, *, judged: bool
) -> str:
    if again is None:
        return "not recomputed here" if item.rule else "a rule of its own, not recomputed here"
    same = math.isclose(again, item.value, rel_tol=1e-9, abs_tol=1e-12)
    parts = [] if same else ["the stored scores do not give the printed number"]
    if over_all is not None and not math.isclose(over_all, item.value, rel_tol=1e-12, abs_tol=1e-15):
        column = attempts.columns.get(f"check.{item.check}", attempts.columns["reported"])[rows]
        left_out = int(np.isnan(column).sum())
        if item.rule == PASSED:
            parts.append("it counts what the log calls passed, ours what reaches the threshold")
        elif left_out:
            words = [
                f"{count} {status}"
                for status in ("errored", "unparsed", "missing", "abstained")
                if (count := int((attempts.has_status(status)[rows] & np.isnan(column)).sum()))
            ]
            # The statuses are those of the judged score; another may be absent for reasons of its own.
            parts.append(
                f"it leaves out {left_out:,} attempts" + (f" ({', '.join(words)})" if judged and words else "")
            )
        scored = int((attempts.has_status("errored")[rows] & ~np.isnan(column)).sum())
        if scored and item.rule != PASSED:
            parts.append(f"it counts {scored:,} errored attempts by the score that they have")
        if attempts.columns["trial"][rows].max(initial=1) > 1 and item.reducer != NOT_REDUCED:
            parts.append(f"it reduces the attempts at an item first ({item.reducer})")
        if not parts:
            parts.append("it is about other rows")
    return "; ".join(parts) or "the same"
