"""Tables beside the estimates of a flight run: tail risk, scores, fields, rubric, priors, and all tasks at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from adjudge.protocols.flight import ceiling
from adjudge.protocols.flight.fields import TASKS
from adjudge.protocols.flight.judge import DIMENSIONS, GRADES
from adjudge.protocols.flight.library import Library
from adjudge.runs.section import Cell, Column, Section

if TYPE_CHECKING:
    from adjudge.protocols.flight.config import FlightConfig
    from adjudge.protocols.flight.finish import TaskNumbers

STATISTICS = ("n", "mean", "median", "std", "min", "p5", "p25", "p75", "p95", "p99", "max")
COMPREHENSIVE = (
    ("eligibility_rate", "eligible", "%"),
    ("total_score", "total", ""),
    ("total_score_all", "all", ""),
)


def of_task(task: TaskNumbers, config: FlightConfig, library: Library) -> list[Section]:
    """The sections of one task, in the order of the report."""
    tables = [ceiling.section(task.whole.ceiling, task.ceiling, library, task.suffix.strip("/")), _tail_risk(task)]
    if task.suffix and task.ranking is not None:
        tables.append(_ranking(task))
    tables += [_scores(task), _fields(task)]
    if config.scores in {"rubric", "both"}:
        tables.append(_rubric(task))
    return tables


def _titled(task: TaskNumbers, name: str, title: str) -> tuple[str, str]:
    """The name and title of a section, with the task where the run has several."""
    return (f"{name}_{task.task}", f"{title}, task {task.task}") if task.suffix else (name, title)


def _tail_risk(task: TaskNumbers) -> Section:
    names = ("mae_p95", "mae_p99", "rmse_p95", "rmse_p99", "error_under_50_rate")
    rows: list[list[Cell]] = []
    for numbers, profile in zip(task.detailed, task.profiles, strict=True):
        risky = profile["tail_risk"]["high_risk"]
        rows.append([numbers.model, *(numbers.estimates.get(name) for name in names), risky["count"], risky["rate"]])
    return Section(
        *_titled(task, "tail_risk", "Tail risk"),
        [
            "model",
            "MAE P95",
            "MAE P99",
            "RMSE P95",
            "RMSE P99",
            Column("E under 50, of all", "%"),
            "high risk",
            Column("of eligible", "%"),
        ],
        rows,
        note="Percentiles of the samples' errors over all samples with a reference; high risk is an eligible answer with an "
        "error score E under 50, and of all samples ineligible ones count as under.",
        terminal=0,
    )


def _ranking(task: TaskNumbers) -> Section:
    ranked = task.ranking or {}
    return Section(
        *_titled(task, "ranking", "Ranking by eligibility"),
        ["rank", "model", Column("eligible", "%"), "tie group"],
        [[str(item["rank"]), item["model"], item["value"], "".join(item["tie_groups"])] for item in ranked["ranking"]],
        note=f"Paired tests, Holm-adjusted; who shares a letter cannot be told apart; {ranked['how']}.",
    )


def _scores(task: TaskNumbers) -> Section:
    rows: list[list[Cell]] = []
    for name, summary in (("all models", task.summary["all"]), *task.summary["models"].items()):
        if name == "all models" and len(task.models) == 1:
            continue
        columns = {f"{score} score": values for score, values in summary["scores"].items()}
        columns |= {f"{error} (raw units)": values for error, values in summary["conditional_error"].items()}
        columns["field completeness"] = summary["availability"]["distribution"]
        rows += [[name, what, *(values[key] for key in STATISTICS)] for what, values in columns.items()]
    return Section(
        *_titled(task, "score_statistics", "Scores and errors: their distributions"),
        ["model", "", *(key.upper() if key[0] == "p" else key for key in STATISTICS)],
        rows,
        note="Availability, constraint, error and total scores and errors over eligible samples; rubric and completeness over all.",
        place="more",
        terminal=0,
    )


def _fields(task: TaskNumbers) -> Section:
    keys = ("mae", "rmse", "normalised_mae", "persistence_mae", "n")
    rows: list[list[Cell]] = [
        [profile["model_name"], field, *(errors[key] for key in keys)]
        for profile in task.profiles
        for field, errors in profile["error_distribution"]["by_field"].items()
    ]
    return Section(
        *_titled(task, "field_errors", "Errors by field"),
        ["model", "field", "MAE", "RMSE", "MAE ÷ jump limit", "MAE of repeating the shown state", "n"],
        rows,
        note="Over eligible samples with a reference, in the field's own unit; angles by shortest arc.",
        place="more",
        terminal=0,
    )


def _rubric(task: TaskNumbers) -> Section:
    rows: list[list[Cell]] = []
    for numbers in task.detailed:
        for dimension in DIMENSIONS:
            grades = [numbers.total(f"grade.{dimension}.{grade}") for grade in GRADES]
            n = numbers.total("n")
            rows.append(
                [numbers.model, dimension.replace("_", " "), *(count / n for count in grades), (n - sum(grades)) / n]
            )
    return Section(
        *_titled(task, "rubric", "Rubric: grades by dimension"),
        ["model", "dimension", *(Column(grade, "%") for grade in GRADES), Column("not graded", "%")],
        rows,
        note="Shares of all samples; a dimension that nothing could check is not graded.",
        place="more",
        terminal=0,
    )


def priors(confidence: Mapping[str, Mapping[str, Any]]) -> Section:
    """The confidence prior of every model on the tasks that have one; no score reads it."""
    scores = {model: prior["confidence_m"] for model, prior in sorted(confidence.items())}
    tasks = [task for task in TASKS if any(of[f"{task}_score"] is not None for of in scores.values())]
    return Section(
        "confidence_prior",
        "Confidence prior",
        ["model", *tasks, "source", "version"],
        [
            [
                model,
                *(of[f"{task}_score"] for task in tasks),
                str(confidence[model]["calculation_source"]),
                str(confidence[model]["version"]),
            ]
            for model, of in scores.items()
        ],
        note="As given; no score reads it.",
    )


def comprehensive(tasks: Sequence[TaskNumbers], config: FlightConfig) -> Section:
    """Every model on every task, one row a model and task."""
    rows: list[list[Cell]] = []
    of_tasks = [{numbers.model: numbers for numbers in task.detailed} for task in tasks]
    for model in sorted(set().union(*of_tasks)):
        prior = config.prior(model)
        for task, of_task in zip(tasks, of_tasks, strict=True):
            numbers = of_task.get(model)
            if numbers is None:
                continue
            cells: list[Cell] = [numbers.estimates.get(name) for name, _, _ in COMPREHENSIVE]
            tail = numbers.estimates["mae_p95"].value
            rows.append(
                [model, task.task, *cells, tail, prior["confidence_m"][f"{task.task}_score"] if prior else None]
            )
    return Section(
        "comprehensive",
        "All models on all tasks",
        ["model", "task", *(Column(title, unit) for _, title, unit in COMPREHENSIVE), "MAE P95", "prior"],
        rows,
        note="Scores over eligible samples; `all` is the total with ineligible ones as 0; the prior is as given.",
        terminal=24,
    )
