"""What every report reads out of a run: slices, headline estimates, buckets, gates and warnings, in one shape.

One sentence says what came out, for somebody who reads nothing else: who is best and worst, and what failed most often.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.evidence.vocabulary import BUCKETS
from adjudge.report import numbers
from adjudge.report.numbers import line
from adjudge.runs.run import Run
from adjudge.stats.estimate import Estimate, Metric, by_gate_name, in_words

_SIGNS = {">=": "≥", "<=": "≤", "==": "="}
HEADLINES = 8


@dataclass(frozen=True)
class Headline:
    """The table of headline estimates: a row a slice, a column a name."""

    key: str
    slices: tuple[str, ...]
    names: tuple[str, ...]
    cells: Mapping[tuple[str, str], Estimate]
    metrics: Mapping[str, Metric]

    def text(self, slice_: str, name: str) -> str:
        """One cell, rendered; a name that a slice does not have is a dash."""
        cell = self.cells.get((slice_, name))
        if cell is None:
            return "–"
        return numbers.estimate(cell, unit=self.metrics[name].unit)

    def title(self, name: str) -> str:
        """What a column is called."""
        return self.metrics[name].title


def headline(run: Run) -> Headline:
    """The estimates a reader wants first: those the protocol names, otherwise the first of the first kind of slice."""
    named = run.metrics.get("headline")
    estimates = run.estimates
    wanted = [str(name) for name in named] if isinstance(named, list) else []
    usable = {name for name, _ in estimates}
    wanted = [name for name in wanted if name in usable]
    keys = list(dict.fromkeys(where.partition("=")[0] for name, where in estimates if not wanted or name in wanted))
    key = "model" if "model" in keys else keys[0] if keys else ""
    chosen = [(name, where) for name, where in estimates if where.partition("=")[0] == key]
    names = wanted or list(dict.fromkeys(name for name, _ in chosen))[:HEADLINES]
    names = [name for name in names if any(name == other for other, _ in chosen)]
    slices = tuple(dict.fromkeys(where for name, where in chosen if name in names))
    return Headline(
        key=key or "run",
        slices=slices,
        names=tuple(names),
        cells={(where, name): estimates[name, where] for name, where in chosen if name in names},
        metrics={name: run.metric(name) for name in names},
    )


def label(slice_: str) -> str:
    """What a slice is called in a table: `model=falcon-a` is falcon-a, the whole run is `all`."""
    return slice_.partition("=")[2] or slice_ or "all"


def words(name: str) -> str:
    """A key for people: `mae_p95` is `mae p95`."""
    return in_words(name)


def gate_number(run: Run, gate: Mapping[str, Any], which: str) -> str:
    """What was observed at a gate, or its bound, in the unit of the metric it is about."""
    return numbers.number(gate[which], unit=gate_metric(run, gate).unit)


def gate_must(run: Run, gate: Mapping[str, Any]) -> str:
    """What must hold at a gate, in words: `falcon-a: eligibility rate, low end ≥ 50 %`."""
    metric = gate_metric(run, gate)
    where = str(gate["metric"]).removesuffix(metric.name).removesuffix("/")
    end = "" if gate["on"] == "value" else f", {gate['on']} end"
    about = f"{where}: {metric.title}{end}" if where else f"{metric.title}{end}"
    return f"{about} {_SIGNS.get(gate['op'], gate['op'])} {gate_number(run, gate, 'bound')}"


def failed_gates(run: Run) -> list[str]:
    """A line for every gate that did not pass: what must hold, and what was observed or why nobody knows."""
    return [
        f"gate {name}: {gate['outcome']}, {gate_must(run, gate)}, {gate_observed(run, gate)}"
        for name, gate in run.metrics["gates"].items()
        if gate["outcome"] != "pass"
    ]


def gate_observed(run: Run, gate: Mapping[str, Any]) -> str:
    """What was observed at a gate, or why nobody knows; for a name that nothing has, those that may have been meant."""
    if gate["observed"] is not None:
        return f"observed {gate_number(run, gate, 'observed')}"
    return f"{gate['why']}{_meant(str(gate['metric']), gate_names(run))}"


def _meant(name: str, known: Mapping[str, Estimate]) -> str:
    if name in known:
        return ""
    meant = [other for other in known if other.endswith(f"/{name}")] or difflib.get_close_matches(name, known)
    if meant:
        return f"; did you mean {' or '.join(map(repr, meant[:3]))}?"
    some = [other for other in known if "/" not in other] or list(known)
    return f"; there are {', '.join(some[:6])} …" if some else ""


def gate_names(run: Run) -> dict[str, Estimate]:
    """Estimates as gates name them."""
    return by_gate_name((name, where, estimate) for (name, where), estimate in run.estimates.items())


def gates_in_words(run: Run) -> str:
    """What the gates say together, and what none of them looked at."""
    outcome = {"pass": "every gate passed", "fail": "not every gate passed", "none": ""}[verdict(run)]
    unchecked = run.metrics.get("not_checked") or ()
    return outcome + "".join(f"; {name} not checked" for name in unchecked)


def gate_metric(run: Run, gate: Mapping[str, Any]) -> Metric:
    """The metric that a gate is about; a gate on one slice names it `slice/metric`."""
    named = str(gate["metric"])
    known = {name for name, _ in run.estimates}
    return run.metric(named if named in known else named.rpartition("/")[2])


def buckets(run: Run) -> dict[str, dict[str, int]]:
    """Counts per row (`all`, then every model), each with its n."""
    counted = run.metrics["buckets"]
    if not counted:
        return {}
    if all(isinstance(value, int) for value in counted.values()):
        counted = {"all": counted}
    rows = {}
    for name, counts in counted.items():
        kept = {bucket: int(counts[bucket]) for bucket in BUCKETS if isinstance(counts.get(bucket), int)}
        if kept:
            rows[str(name)] = {**dict.fromkeys(BUCKETS, 0), **kept, "n": int(counts.get("n", sum(kept.values())))}
    return rows


def used_buckets(rows: Mapping[str, Mapping[str, int]]) -> tuple[str, ...]:
    """The buckets to show: passed and failed always, the others where something is in them."""
    return tuple(
        name for name in BUCKETS if name in {"passed", "failed"} or any(counts[name] for counts in rows.values())
    )


def warnings(run: Run) -> list[str]:
    """Everything a reader must not miss: notes of the run, then warnings of estimates with how many carry each.

    Warnings that differ in their numbers alone are one warning, shown by its first.
    """
    texts_of: dict[str, list[str]] = {}
    for item in run.metrics["estimates"]:
        for text in item.get("warnings") or ():
            texts_of.setdefault(re.sub(r"\d+", "#", text), []).append(text)
    notes = [str(note) for note in run.manifest.notes]
    unmatched = run.metrics.get("unmatched") or {}
    if isinstance(unmatched, dict):
        for kind, names in unmatched.items():
            if isinstance(names, list) and names:
                shown = ", ".join(str(name) for name in names[:3]) + (", …" if len(names) > 3 else "")
                stand = "id stands" if len(names) == 1 else "ids stand"
                notes.append(f"{numbers.count(len(names))} {stand} only in the {kind}: {shown}")
    total = len(run.metrics["estimates"])
    return notes + [
        f"{texts[0]} ({numbers.count(len(texts))} of {numbers.count(total)} estimates"
        f"{', with other numbers' if len(set(texts)) > 1 else ''})"
        for texts in texts_of.values()
    ]


def system_column(run: Run) -> str:
    """The column that names the systems; a protocol with trials names them in `configuration`."""
    return "configuration" if "configuration" in run.column_names else "model"


def bucket_block(rows: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """Where the samples of each row ended, as the pages show it: counts, and their shares of n."""
    names = used_buckets(rows)
    return {
        "names": list(names),
        "rows": [
            {
                "label": label,
                "n": row["n"],
                "not_passed": row["n"] - row["passed"],
                "counts": {bucket: row[bucket] for bucket in names},
                "shares": {
                    bucket: numbers.number(row[bucket] / row["n"] if row["n"] else None, unit="%") for bucket in names
                },
            }
            for label, row in rows.items()
        ],
    }


def bucket_table(run: Run) -> tuple[list[str], list[list[str]]]:
    """Where every sample ended, as the head and the rows of a table."""
    rows = buckets(run)
    names = used_buckets(rows)
    body = [[label, *(numbers.count(row[bucket]) for bucket in (*names, "n"))] for label, row in rows.items()]
    return ["", *names, "n"], body


def task_name(run: Run) -> str:
    """The protocol, with its task where it has several."""
    task = run.metrics.get("task")
    return f"{run.manifest.protocol} {task}" if isinstance(task, str) else run.manifest.protocol


def title(run: Run) -> str:
    """The run in one line: protocol, task, how much was judged."""
    rows = buckets(run)
    models = [name for name in rows if name != "all"]
    total = rows.get("all", {}).get("n") or sum(rows[name]["n"] for name in models)
    parts = [task_name(run), _counted(total, "judgement" if len(models) > 1 else "sample")]
    judged = run.metrics.get("judged")
    if len(models) > 1 and isinstance(judged, str):
        parts.append(judged)
    elif len(models) > 1:
        parts.append(_counted(len(models), "model"))
    elif models:
        parts.append(line(models[0]))
    if isinstance(run.metrics.get("library"), str):
        parts.append(f"library {run.metrics['library']}")
    return " · ".join(parts)


def verdict(run: Run) -> str:
    """pass, fail or none: what the gates say."""
    return {True: "pass", False: "fail", None: "none"}[run.metrics["pass"]]


def letters(place: Mapping[str, Any]) -> str:
    """The letters of the tie groups that one place of a ranking is in."""
    return "".join(str(letter) for letter in place.get("tie_groups") or ())


def tie_groups(run: Run) -> dict[str, Any] | None:
    """The ranking with its metric, where the protocol compares what it judged."""
    comparison = run.metrics.get("comparison")
    if isinstance(comparison, dict) and isinstance(comparison.get("ranking"), list) and comparison["ranking"]:
        return comparison
    return None


def _counted(n: int, noun: str) -> str:
    return f"{numbers.count(n)} {noun}{'' if n == 1 else 's'}"


_TIES = 4


def answer(run: Run, modes: Sequence[Mapping[str, Any]]) -> str:
    """The sentence, from the headline estimates, the ranking and the failure `modes`; numbers stand below it, so it has few."""
    clauses = [_ends(run) or _passed(run), _most_failed(run, modes)]
    text = "; ".join(clause for clause in clauses if clause)
    return f"{text}." if text else ""


def _ends(run: Run) -> str:
    """The best and the worst of several by the metric that ranks them, else by the first shown."""
    shown, ranking = headline(run), tie_groups(run)
    name = str(ranking["metric"]) if ranking else next((each for each in shown.names), "")
    if name not in shown.names:
        return ""
    estimates = {where: shown.cells.get((where, name)) for where in shown.slices}
    known: dict[str, Estimate] = {where: cell for where, cell in estimates.items() if cell and cell.value is not None}
    if len(known) < 2 or shown.metrics[name].better is None:
        return ""
    order = sorted(known, key=lambda where: known[where].value or 0.0, reverse=shown.metrics[name].better == "higher")
    first, last = (line(label(where), 40) for where in (order[0], order[-1]))
    metric = shown.title(name)
    if known[order[0]].value == known[order[-1]].value:
        return f"All {len(order)} are equal by {metric}"
    tied = _tied(ranking) if ranking else []
    if len(tied) == len(order):
        return f"By {metric} no two of {len(order)} can be told apart"
    best, worst = ("highest", "lowest") if shown.metrics[name].better == "higher" else ("lowest", "highest")
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
    best = set(letters(places[0]))
    return [line(str(place["model"]), 40) for place in places if best & set(letters(place))]


def _passed(run: Run) -> str:
    rows = buckets(run)
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
