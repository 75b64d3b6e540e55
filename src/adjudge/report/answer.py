"""What came out, in one sentence for somebody who reads nothing else: who is best and worst, and what failed most often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.report import numbers, view
from adjudge.report.untrusted import line
from adjudge.runs.run import Run
from adjudge.stats.estimate import Estimate

_TIES = 4


def answer(run: Run, modes: Sequence[Mapping[str, Any]]) -> str:
    """The sentence, from the headline estimates, the ranking and the failure `modes`; numbers stand below it, so it has few."""
    clauses = [_ends(run) or _passed(run), _most_failed(run, modes)]
    text = "; ".join(clause for clause in clauses if clause)
    return f"{text}." if text else ""


def _ends(run: Run) -> str:
    """The best and the worst of several by the metric that ranks them, else by the first headline."""
    headline, ranking = view.headline(run), view.tie_groups(run)
    name = str(ranking["metric"]) if ranking else next((each for each in headline.names), "")
    if name not in headline.names:
        return ""
    estimates = {where: headline.cells.get((where, name)) for where in headline.slices}
    known: dict[str, Estimate] = {where: cell for where, cell in estimates.items() if cell and cell.value is not None}
    if len(known) < 2 or headline.metrics[name].better is None:
        return ""
    order = sorted(
        known, key=lambda where: known[where].value or 0.0, reverse=headline.metrics[name].better == "higher"
    )
    first, last = (line(view.label(where), 40) for where in (order[0], order[-1]))
    metric = headline.title(name)
    if known[order[0]].value == known[order[-1]].value:
        return f"All {len(order)} are equal by {metric}"
    tied = _tied(ranking) if ranking else []
    if len(tied) == len(order):
        return f"By {metric} no two of {len(order)} can be told apart"
    best, worst = ("highest", "lowest") if headline.metrics[name].better == "higher" else ("lowest", "highest")
    shared = f" (not told apart from {', '.join(tied[1:])})" if 1 < len(tied) <= _TIES and tied[0] == first else ""
    open_ = ", but their intervals overlap" if not ranking and _overlap(known[order[0]], known[order[-1]]) else ""
    return f"{first} has the {best} {metric}{shared} and {last} the {worst}{open_}"


def _overlap(a: Estimate, b: Estimate) -> bool:
    """Whether intervals share a value; an absent one shares all."""
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return True
    return a.low <= b.high and b.low <= a.high


def _tied(ranking: Mapping[str, Any]) -> list[str]:
    """The first of a ranking with all that share a letter with it."""
    places = ranking["ranking"]
    letters = set(view.letters(places[0]))
    return [line(str(place["model"]), 40) for place in places if letters & set(view.letters(place))]


def _passed(run: Run) -> str:
    rows = view.buckets(run)
    row = rows.get("all") or next(iter(rows.values()), None)
    if row is None:
        return ""
    return f"{numbers.count(row['passed'])} of {numbers.count(row['n'])} samples passed"


def _most_failed(run: Run, modes: Sequence[Mapping[str, Any]]) -> str:
    """The rule that failed on most samples; of two, the one with more critical failures, then the first of the rule table."""
    counts: Counter[str] = Counter()
    critical: Counter[str] = Counter()
    for mode in modes:
        counts[mode["rule"]] += mode["samples"]
        critical[mode["rule"]] += mode["critical"]
    if not counts:
        return "no rule failed"
    order = [entry["code"] for rule in run.layout.rules for entry in (rule, *rule["variants"])]
    first = min(counts, key=lambda code: (-counts[code], -critical[code], order.index(code) if code in order else -1))
    title = next(str(mode["title"]) for mode in modes if mode["rule"] == first)
    times = "once" if counts[first] == 1 else f"{numbers.count(counts[first])} times"
    return f"what failed most often, {times}: “{line(title, 160)}”"
