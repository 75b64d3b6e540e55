"""What every report reads out of a run, in one shape: headline estimates, buckets, gates, warnings, and the protocol's sections."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.evidence.vocabulary import BUCKETS
from adjudge.report import numbers
from adjudge.report.numbers import line
from adjudge.runs.run import Run
from adjudge.runs.section import Column, Section
from adjudge.stats.estimate import SHARE, Estimate, Metric, by_gate_name, in_words

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

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Its head and its rows, as texts."""
        head = [self.key, *map(self.title, self.names)]
        return head, [[label(slice_), *(self.text(slice_, name) for name in self.names)] for slice_ in self.slices]


def headline(run: Run) -> Headline:
    """The estimates a reader wants first: those the protocol names, otherwise the first of the first kind of slice."""
    named, estimates = run.metrics.get("headline"), run.estimates
    usable = {name for name, _ in estimates}
    wanted = [str(name) for name in named if name in usable] if isinstance(named, list) else []
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
    """The estimates of a run by the names that gates have for them."""
    return by_gate_name((*key, item) for key, item in run.estimates.items())


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


def rule_titles(run: Run) -> dict[str, str]:
    """The title of every rule and variant by its code, in the order of the rule table."""
    return {entry["code"]: entry["title"] for rule in run.layout.rules for entry in (rule, *rule["variants"])}


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


def stamped(run: Run) -> Mapping[str, Mapping[str, Any]]:
    """The metrics under a contract, by detector (or "" for the whole run); none for a protocol that stamps nothing."""
    several = run.metrics.get("detectors")
    if isinstance(several, dict):
        return several
    return {"": run.metrics} if isinstance(run.metrics.get("stamp"), str) else {}


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


@dataclass(frozen=True)
class Shown:
    """One section, rendered: texts of its cells beside the values they sort by; `left` first columns are words."""

    name: str
    title: str
    note: str
    place: str
    terminal: int
    empty: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    values: tuple[tuple[float | None, ...], ...]
    numeric: tuple[bool, ...]

    @property
    def left(self) -> int:
        """How many columns come before the first of numbers."""
        return next((index for index, numeric in enumerate(self.numeric) if numeric), len(self.head))

    def block(self) -> dict[str, Any]:
        """The section as the page embeds it."""
        return {key: getattr(self, key) for key in ("name", "title", "note", "place", "empty")} | {
            "columns": [
                {"title": title, "numeric": numeric or {row[index] for row in self.rows} == {"–"}}
                for index, (title, numeric) in enumerate(zip(self.head, self.numeric, strict=True))
            ],
            "rows": [
                [{"text": text, "value": value} for text, value in zip(texts, values, strict=True)]
                for texts, values in zip(self.rows, self.values, strict=True)
            ],
        }


def sections(run: Run, place: str | None = None) -> list[Shown]:
    """The run's sections in the order the protocol gave them, all or those of one place."""
    stored = [*(run.metrics.get("sections") or ()), *(section.to_dict() for section in _validation(run))]
    return [_shown(section) for section in stored if place in {None, section["place"]}]


def _validation(run: Run) -> list[Section]:
    """How far the judge of the run agrees with rules and people, where it was validated."""
    validation = run.validation
    if validation is None:
        return []
    rows: list[list[Any]] = []
    for against in ("people", "rules"):
        counted = validation[against]
        if counted is not None:
            (both, stricter), (laxer, neither) = counted["confusion"]
            estimates = [Estimate.from_dict(counted[name]) for name in ("percent_agreement", "kappa")]
            rows.append([against, counted["n"], *estimates, both, stricter, laxer, neither])
    note = "Gates on its verdicts are held where κ has a low end of at least 0.6."
    if validation["flip_rate"] is not None:
        flips = numbers.estimate(Estimate.from_dict(validation["flip_rate"]), unit=SHARE)
        note += f" Votes differed on {flips} of the samples."
    confusion = ["both eligible", "only they", "only the judge", "both ineligible"]
    head: list[Column | str] = ["against", "n", Column("agreement", "%"), "κ", *confusion]
    title = f"Is the judge any good? {validation['agent']}, validated"
    return [Section("judge_validation", title, head, rows, note)]


def _shown(section: dict[str, Any]) -> Shown:
    units = [column["unit"] for column in section["columns"]]
    rows = section["rows"]
    numeric = tuple(
        any(row[index] is not None for row in rows) and not any(isinstance(row[index], str) for row in rows)
        for index in range(len(units))
    )
    return Shown(
        **{key: section[key] for key in ("name", "title", "note", "place", "terminal", "empty")},
        head=tuple(column["title"] for column in section["columns"]),
        rows=tuple(tuple(_cell_text(cell, unit) for cell, unit in zip(row, units, strict=True)) for row in rows),
        values=tuple(tuple(map(_value, row)) for row in rows),
        numeric=numeric,
    )


def _cell_text(cell: Any, unit: str) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, dict):
        return numbers.estimate(Estimate.from_dict(cell), unit=unit)
    if isinstance(cell, int) and unit != SHARE:
        return numbers.count(cell) + (f" {unit}" if unit else "")
    return numbers.number(cell, unit=unit)


def _value(cell: Any) -> float | None:
    value = cell.get("value") if isinstance(cell, dict) else cell
    return None if isinstance(value, str) else value
