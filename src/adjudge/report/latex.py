r"""A run as LaTeX tables (booktabs): numbers are those of metrics.json to the digits shown.

Runs of the flight protocol get its tables: main performance with the version hashes under it, constraint satisfaction,
failure modes, tail risk and rubric; several runs also get the table over tasks. Every other protocol gets its headline
estimates and buckets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from adjudge.report import numbers, view
from adjudge.report.sections import sections
from adjudge.report.untrusted import line
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
_ESCAPED = re.compile("|".join(re.escape(sign) for sign in _SIGNS))
_HASHES = ("config", "schema", "constraint_library", "rules")
MAIN = (
    ("availability_score", "Availability"),
    ("constraint_score", "Constraints"),
    ("error_score", "Cond. error"),
    ("mae", "MAE"),
    ("mae_p95", "MAE P95"),
    ("mae_p99", "MAE P99"),
    ("total_score", "Total"),
    ("eligibility_rate", "Eligibility"),
)
_TASKS = (("eligibility_rate", "Elig."), ("total_score", "Total"), ("rubric_score", "Rubric"), ("mae_p95", "MAE P95"))


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
    return _ESCAPED.sub(lambda found: _SIGNS[found[0]], line(text))


def _any(run: Run) -> list[str]:
    headline = view.headline(run)
    parts = []
    if headline.names:
        body = [
            [escape(view.label(slice_)), *(escape(headline.text(slice_, name)) for name in headline.names)]
            for slice_ in headline.slices
        ]
        head = [escape(headline.key), *(escape(headline.title(name)) for name in headline.names)]
        parts.append(_table("estimates", f"{view.title(run)}: headline estimates with intervals.", head, body, run))
    return [*parts, _buckets(run)]


def _sections(run: Run) -> list[str]:
    return [
        _table(
            section.name,
            escape(f"{section.title}. {section.note}".strip()),
            [escape(title) for title in section.head],
            [[escape(text) for text in row] for row in section.rows],
        )
        for section in sections(run)
        if section.rows
    ]


def _buckets(run: Run) -> str:
    head, body = view.bucket_table(run)
    return _table("buckets", "Where every sample ended.", head, [[escape(name), *counts] for name, *counts in body])


def _flight(run: Run) -> list[str]:
    task = str(run.metrics.get("task", ""))
    profiles = {str(profile["model_name"]): profile for profile in run.metrics["model_profiles"]}
    first = next(iter(profiles))
    families = [escape(view.words(family)) for family in profiles[first]["violations"]]
    modes = [escape(view.words(mode)) for mode in profiles[first]["failure_modes"]["share"]]
    tails = ("mae_p95", "mae_p99", "rmse_p95", "rmse_p99")
    dimensions = [name for name, where in run.estimates() if name.startswith("grade_a.") and where == f"model={first}"]

    def rows(cells: Callable[[str, Any], Iterable[str]]) -> list[list[str]]:
        return [[escape(model), *cells(model, profile)] for model, profile in profiles.items()]

    def estimates(model: str, names: Iterable[str]) -> list[str]:
        return [_estimate(run, model, name) for name in names]

    parts = [
        _table(
            f"main-{task}",
            f"Main performance on task {task}. Scores and mean absolute error (MAE) over eligible samples, MAE quantiles "
            "over samples with a reference; intervals at 95 \\%.",
            ["Model", *(label for _, label in MAIN)],
            rows(lambda model, _: estimates(model, dict(MAIN))),
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
        _table(
            f"tail-risk-{task}",
            f"Tail risk on task {task}: quantiles of the error per sample; high risk is an eligible answer whose error score is under 50.",
            ["Model", "MAE P95", "MAE P99", "RMSE P95", "RMSE P99", "High risk", "Rate"],
            rows(lambda model, profile: (*estimates(model, tails), *_high_risk(profile["tail_risk"]["high_risk"]))),
        ),
    ]
    if dimensions:
        head = ["Model", "Rubric", *(escape(view.words(name.partition(".")[2])) for name in dimensions)]
        body = rows(lambda model, _: estimates(model, ("rubric_score", *dimensions)))
        caption = f"Rubric on task {task}: overall, and the share of samples graded A."
        parts.append(_table(f"rubric-{task}", caption, head, body))
    return parts


def _violations(family: Mapping[str, Any]) -> str:
    return f"{numbers.count(family['violations'])} ({_percent(family['rate'])})"


def _high_risk(counted: Mapping[str, Any]) -> tuple[str, str]:
    return numbers.count(counted["count"]), _percent(counted["rate"])


def comprehensive(runs: Sequence[Run]) -> str:
    """Models by tasks: one group of columns a run."""
    tasks = [str(run.metrics.get("task", "")) for run in runs]
    models = list(dict.fromkeys(str(p["model_name"]) for run in runs for p in run.metrics["model_profiles"]))
    head = ["Model", *(f"{escape(task)} {label}" for task in tasks for _, label in _TASKS)]
    body = [[escape(model), *(_estimate(run, model, name) for run in runs for name, _ in _TASKS)] for model in models]
    return _table("comprehensive", f"All models over the tasks {escape(', '.join(tasks))}.", head, body)


def _estimate(run: Run, model: str, name: str) -> str:
    estimate = run.estimates().get((name, f"model={model}"))
    if estimate is None:
        return "--"
    return escape(numbers.estimate(estimate, unit=run.metric(name).unit))


def _percent(share: float | None) -> str:
    return escape(numbers.number(share, unit="%"))


def _table(label: str, caption: str, head: Sequence[str], body: Sequence[Sequence[str]], run: Run | None = None) -> str:
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
    return ", ".join(rf"{escape(name)} \texttt{{{digests[name][:16]}}}" for name in _HASHES if name in digests)
