"""Tables beside the estimates of a flight run: counts, tail risk, scores, fields, rubric, priors, and all tasks at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adjudge.evidence.rule import Layout
from adjudge.evidence.vocabulary import BUCKETS
from adjudge.protocols.flight.config import Library
from adjudge.protocols.flight.fields import FIELDS, TASKS
from adjudge.protocols.flight.judge import DIMENSIONS, GRADES, ceiling_section
from adjudge.protocols.flight.metrics import TAIL, ModelNumbers
from adjudge.protocols.flight.model_values import ATOM_KINDS
from adjudge.protocols.flight.partials import ATOM_FAMILIES, EXCEEDANCE, FIELD_SUMS
from adjudge.protocols.flight.rules import FAMILIES
from adjudge.runs.section import Cell, Column, Section
from adjudge.stats.proportions import quantile_values

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
    tables = [ceiling_section(task.whole.ceiling, task.ceiling, library, task.suffix.strip("/")), _tail_risk(task)]
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
    rows: list[list[Cell]] = []
    for model, of in scores.items():
        origin = (str(confidence[model][key]) for key in ("calculation_source", "version"))
        rows.append([model, *(of[f"{task}_score"] for task in tasks), *origin])
    return Section(
        "confidence_prior",
        "Confidence prior",
        ["model", *tasks, "source", "version"],
        rows,
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


PERCENTILES = (5, 10, 25, 75, 90, 95, 99)


def distribution(values: NDArray[np.float64]) -> dict[str, float | int | None]:
    """n, mean, median, sample standard deviation, extremes and percentiles (order statistics) of a column."""
    names = ("mean", "median", "std", "min", "max", *(f"p{percent}" for percent in PERCENTILES))
    n = int(values.size)
    if not n:
        return {"n": 0, **dict.fromkeys(names)}
    with np.errstate(over="ignore"):
        mean, spread = float(values.mean()), float(values.std(ddof=1)) if n > 1 else None
    spread = spread if spread is not None and math.isfinite(spread) else None
    percentiles = quantile_values(values, [percent / 100 for percent in PERCENTILES])
    statistics = (mean, float(np.median(values)), spread, float(values.min()), float(values.max()), *percentiles)
    return {"n": n, **dict(zip(names, statistics, strict=True))}


class Summary:
    """The plain numbers of one model, or of all models together."""

    def __init__(self, numbers: ModelNumbers, layout: Layout, library: Library) -> None:
        self.numbers, self.layout, self.library = numbers, layout, library

    def task_summary(self) -> dict[str, Any]:
        """What the method lists of a task."""
        total = self.numbers.total
        return {
            "counts": {
                **{name: total(f"bucket.{name}") for name in BUCKETS},
                "n": total("n"),
                "eligible": total("eligible"),
            },
            "eligibility_rate": _share(total("eligible"), total("n")),
            "with_reference": total("with_reference"),
            "repaired": total("repaired"),
            "extra_keys": total("extra_keys"),
            "availability": {
                "rate": self._completeness(),
                "answer_rate": _share(total("answered"), total("n")),
                "distribution": self.counted("completeness"),
            },
            "compliance": {family: _share(total(f"clean.{family}"), total(f"checked.{family}")) for family in FAMILIES},
            "constraint_profile": self.violations,
            "conditional_error": self.errors,
            "scores": self.scores,
            "tail_risk": self.tail_risk,
            "failure_modes": self.failure_modes,
            "grades": {
                dimension: {grade: total(f"grade.{dimension}.{grade}") for grade in GRADES} for dimension in DIMENSIONS
            },
        }

    def profile(self) -> dict[str, Any]:
        """The weight-free profile of a model."""
        values = {name: estimate.value for name, estimate in self.numbers.estimates.items()}
        return {
            "model_name": self.numbers.model,
            "task": self.numbers.whole.task,
            "n": self.numbers.total("n"),
            "eligibility_rate": values["eligibility_rate"],
            "scores": {name: values[name] for name in values if "_score" in name},
            "score_statistics": self.scores,
            "violations": self.violations,
            "failure_modes": self.failure_modes,
            "error_distribution": {
                "mae": values["mae"],
                "rmse": values["rmse"],
                "statistics": self.errors,
                "by_field": self.per_field(),
            },
            "tail_risk": self.tail_risk,
        }

    @cached_property
    def errors(self) -> dict[str, Any]:
        """The errors of eligible samples with a reference, in raw units, and their scores."""
        columns = {name: self.numbers.column(name, eligible=True) for name in ("mae", "rmse")}
        return {name: distribution(column) for name, column in columns.items()}

    @cached_property
    def scores(self) -> dict[str, Any]:
        """Every score of eligible samples, and the rubric of all."""
        distributions = {name: self.counted(name) for name in ("availability", "constraint")}
        distributions |= {name: distribution(self.numbers.scores(name)) for name in ("error", "total")}
        return {**distributions, "rubric": self.counted("rubric")}

    def counted(self, name: str) -> dict[str, Any]:
        """The distribution of a score that is counted by value."""
        counts = sorted(self.numbers.values.counted[name].items())
        values = np.array([value for value, _ in counts])
        return distribution(np.repeat(values, [count for _, count in counts]) if counts else values)

    @cached_property
    def tail_risk(self) -> dict[str, Any]:
        """High percentiles of the errors, and how often the error score is low; ineligible samples count as low."""
        total = self.numbers.total
        risks: dict[str, Any] = {}
        for name in ("mae", "rmse"):
            column = self.numbers.column(name)
            highest = (
                quantile_values(column, [percent / 100 for percent in TAIL]) if column.size else [None] * len(TAIL)
            )
            risks |= {f"{name}_p{percent}": value for percent, value in zip(TAIL, highest, strict=True)}
        left_out, scored = total("n") - total("eligible"), total("count.error")
        for limit in EXCEEDANCE:
            under = total(f"under.{limit}")
            risks[f"error_under_{limit}_rate"] = _share(under + left_out, scored + left_out)
            risks[f"error_under_{limit}_rate_eligible"] = _share(under, scored)
        risky = total(f"under.{EXCEEDANCE[0]}")
        risks["high_risk"] = {"count": risky, "rate": _share(risky, scored), "of": scored}
        return risks

    @cached_property
    def violations(self) -> dict[str, Any]:
        """Failed atoms by family and severity, with rates over the atoms that were checked."""
        atoms = self.numbers.whole.atoms[self.numbers.index]
        families = {}
        for family, row in zip(ATOM_FAMILIES, atoms, strict=True):
            kinds = dict(zip(ATOM_KINDS, row.tolist(), strict=True))
            failed = kinds["warning"] + kinds["critical"]
            families[family] = {**kinds, "violations": failed, "rate": _share(failed, kinds["pass"] + failed)}
        return families

    @cached_property
    def failure_modes(self) -> dict[str, Any]:
        """Failed atoms by rule code, and their distribution over the families."""
        by_code = dict(zip(self.layout.codes, self.numbers.whole.codes[self.numbers.index].tolist(), strict=True))
        families: dict[str, int] = dict.fromkeys(ATOM_FAMILIES, 0)
        for code, count in by_code.items():
            family = code.partition(".")[0]
            families[family] = families.get(family, 0) + count
        total = sum(families.values())
        return {
            "by_rule": {code: count for code, count in by_code.items() if count},
            "by_family": families,
            "share": {name: _share(count, total) for name, count in families.items()},
        }

    def per_field(self) -> dict[str, Any]:
        """MAE and RMSE of every field over eligible samples, and those of repeating the shown state."""
        errors = {}
        rows = self.numbers.whole.fields[self.numbers.index]
        for name, jump, row in zip(FIELDS, self.library.jumps().tolist(), rows, strict=True):
            sums = dict(zip(FIELD_SUMS, row.tolist(), strict=True))
            mae = _ratio(sums["absolute"], sums["count"])
            square = _ratio(sums["squared"], sums["count"])
            errors[name] = {
                "mae": mae,
                "rmse": None if square is None else math.sqrt(square),
                "normalised_mae": None if mae is None else mae / jump,
                "persistence_mae": _ratio(sums["persistence"], sums["persistence_count"]),
                "n": int(sums["count"]),
            }
        return errors

    def _completeness(self) -> float | None:
        rows = self.numbers.values.counted["completeness"]
        return _ratio(math.fsum(value * count for value, count in rows.items()), rows.total())


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _ratio(top: float, bottom: float) -> float | None:
    value = top / bottom if bottom else None
    return value if value is None or math.isfinite(value) else None
