r"""A run as LaTeX tables (booktabs): numbers are those of metrics.json to the digits shown.

Runs of the flight protocol get its tables for every task: main performance with the versions under it, the same without
intervals for a narrow column, constraint satisfaction and failure modes; several runs also get the table over tasks. Every
other protocol gets its headline estimates and buckets. The sections of a run follow, but for very long ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from adjudge.report import numbers, view
from adjudge.report.numbers import line
from adjudge.runs.run import Run

_SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "…": r"\dots{}",
    "–": "--",
}
_TEX = {ord(sign): text for sign, text in _SIGNS.items()}
_HASHES = ("config", "schema", "constraint_library", "rules")
MAIN = (
    ("availability_score", "Availability"),
    ("constraint_score", "Constraints"),
    ("error_score", "Cond. error"),
    ("mae", "MAE"),
    ("mae_p95", "MAE P95"),
    ("mae_p99", "MAE P99"),
    ("total_score", "Total"),
    ("total_score_all", "Total, all"),
    ("eligibility_rate", "Eligibility"),
)
COMPACT = (
    ("eligibility_rate", "Elig."),
    ("constraint_score", "Constr."),
    ("error_score", "Error"),
    ("mae_p95", "P95"),
    ("total_score", "Total"),
    ("total_score_all", "All"),
)
_LONGEST = 45  # rows of a table that fits a page
_TASKS = (
    ("eligibility_rate", "Elig."),
    ("total_score", "Total"),
    ("total_score_all", "Total, all"),
    ("mae_p95", "MAE P95"),
)


def latex(runs: Sequence[Run]) -> str:
    """All tables of one run, or of several with the comprehensive table over their tasks."""
    parts = ["% Tables by adjudge; they need the packages booktabs and graphicx."]
    for run in runs:
        parts += _flight(run) if "model_profiles" in run.metrics else _any(run)
        parts += _sections(run)
    if len(runs) > 1 and all("model_profiles" in run.metrics for run in runs):
        parts.append(comprehensive(runs))
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Text that TeX sets as it is."""
    return line(text).translate(_TEX)


def _escaped(row: Iterable[str]) -> list[str]:
    return [escape(text) for text in row]


def _any(run: Run) -> list[str]:
    headline = view.headline(run)
    parts = []
    if headline.names:
        head, body = headline.table()
        parts.append(
            _table(
                "estimates",
                f"{view.title(run)}: headline estimates with intervals.",
                _escaped(head),
                map(_escaped, body),
                run,
            )
        )
    return [*parts, _buckets(run)]


def _sections(run: Run) -> list[str]:
    parts = []
    for section in view.sections(run):
        if len(section.rows) > _LONGEST:
            parts.append(f"% {escape(section.title)}: {len(section.rows)} rows, left out here; metrics.json has them.")
        elif section.rows:
            caption = escape(f"{section.title}. {section.note}".strip())
            parts.append(_table(section.name, caption, _escaped(section.head), map(_escaped, section.rows)))
    return parts


def _buckets(run: Run) -> str:
    head, body = view.bucket_table(run)
    return _table("buckets", "Where every sample ended.", head, [[escape(name), *counts] for name, *counts in body])


def _flight(run: Run) -> list[str]:
    """The tables of every task of a flight run."""
    tasks = run.metrics.get("tasks")
    if tasks is None:
        return _flight_task(run, str(run.metrics.get("task", "")), run.metrics["model_profiles"], "")
    parts = []
    for task in tasks:
        profiles = [item["tasks"][task] for item in run.metrics["model_profiles"] if task in item["tasks"]]
        parts += _flight_task(run, task, profiles, f"/{task}")
    return parts


def _flight_task(run: Run, task: str, profiles: Sequence[Mapping[str, Any]], suffix: str) -> list[str]:
    families = [escape(view.words(family)) for family in profiles[0]["violations"]]
    modes = [escape(view.words(mode)) for mode in profiles[0]["failure_modes"]["share"]]

    def rows(cells: Callable[[str, Any], Iterable[str]]) -> list[list[str]]:
        return [
            [escape(profile["model_name"]), *cells(profile["model_name"] + suffix, profile)] for profile in profiles
        ]

    return [
        _table(
            f"main-{task}",
            f"Main performance on task {task}. Scores and mean absolute error (MAE) over eligible samples, `all' with "
            "ineligible ones as 0, MAE quantiles over samples with a reference; intervals at 95 \\%.",
            ["Model", *(label for _, label in MAIN)],
            rows(lambda model, _: [_estimate(run, model, name) for name in dict(MAIN)]),
            run,
        ),
        _table(
            f"compact-{task}",
            f"Main performance on task {task}, without intervals; the best in bold. `All' is the total with ineligible "
            "samples as 0, P95 that of the MAE.",
            ["Model", *(label for _, label in COMPACT)],
            _bold_best(run, [profile["model_name"] for profile in profiles], suffix),
            run,
        ),
        _table(
            f"constraints-{task}",
            f"Constraint satisfaction on task {task}: violations by family, and their share of the checks made.",
            ["Model", *families],
            rows(lambda _, profile: map(_violations, profile["violations"].values())),
        ),
        _table(
            f"failure-modes-{task}",
            f"Failure modes on task {task}: distribution of failed checks over the families.",
            ["Model", *modes],
            rows(lambda _, profile: map(_percent, profile["failure_modes"]["share"].values())),
        ),
    ]


def _bold_best(run: Run, models: Sequence[str], suffix: str) -> list[list[str]]:
    """A row a model: values alone, the best of a column in bold."""
    estimates = run.estimates
    rows = [[escape(model)] for model in models]
    for name, _ in COMPACT:
        declared = run.metric(name)
        cells = [estimates.get((name, f"model={model}{suffix}")) for model in models]
        values = [None if cell is None else cell.value for cell in cells]
        known = [value for value in values if value is not None]
        best = (max if declared.better == "higher" else min)(known, default=None)
        for row, value in zip(rows, values, strict=True):
            text = escape(numbers.number(value, unit=declared.unit))
            row.append(rf"\textbf{{{text}}}" if value is not None and value == best and len(models) > 1 else text)
    return rows


def _violations(family: Mapping[str, Any]) -> str:
    return f"{numbers.count(family['violations'])} ({_percent(family['rate'])})"


def comprehensive(runs: Sequence[Run]) -> str:
    """Models by tasks: one group of columns a run."""
    tasks = [str(run.metrics.get("task", "")) for run in runs]
    models = list(dict.fromkeys(str(p["model_name"]) for run in runs for p in run.metrics["model_profiles"]))
    head = ["Model", *(f"{escape(task)} {label}" for task in tasks for _, label in _TASKS)]
    body = [[escape(model), *(_estimate(run, model, name) for run in runs for name, _ in _TASKS)] for model in models]
    return _table("comprehensive", f"All models over the tasks {escape(', '.join(tasks))}.", head, body)


def _estimate(run: Run, model: str, name: str) -> str:
    estimate = run.estimates.get((name, f"model={model}"))
    if estimate is None:
        return "--"
    return escape(numbers.estimate(estimate, unit=run.metric(name).unit))


def _percent(share: float | None) -> str:
    return escape(numbers.number(share, unit="%"))


def _table(label: str, caption: str, head: Sequence[str], body: Iterable[Sequence[str]], run: Run | None = None) -> str:
    wide = len(head) > 6
    lines = [
        r"\begin{table}[t]",
        r"\centering\small",
        rf"\caption{{{caption}}}",
        rf"\label{{tab:adjudge-{label}}}",
        *([r"\resizebox{\linewidth}{!}{%"] if wide else []),
        rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
        r"\toprule",
        " & ".join(head) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in body),
        r"\bottomrule",
        r"\end{tabular}}" if wide else r"\end{tabular}",
    ]
    if run is not None:
        lines.append(rf"\par\smallskip{{\footnotesize {_hashes(run)}}}")
    return "\n".join([*lines, r"\end{table}"])


def _hashes(run: Run) -> str:
    digests: dict[str, Any] = run.manifest.digests
    versions = [rf"{escape(name)} \texttt{{{digests[name][:16]}}}" for name in _HASHES if name in digests]
    evaluator = f"adjudge {run.manifest.environment.get('adjudge', '')} ({run.manifest.protocol} {run.manifest.protocol_version})"
    return ", ".join([*versions, f"evaluator {escape(evaluator)}"])
