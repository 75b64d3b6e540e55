"""All numbers of a flight run from its partials: estimates, summaries by task, profiles by model, ranking, sections, charts.

Models are ranked on the same samples: paired differences, Holm-adjusted, with tie groups; by flight where flights are known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adjudge.errors import InputError
from adjudge.evidence.rule import Layout
from adjudge.protocols.base import Measured, Named
from adjudge.protocols.common.many import MANY_MODELS, MOST_DETAILED
from adjudge.protocols.common.many import note as many_note
from adjudge.protocols.flight import charts, sections
from adjudge.protocols.flight.config import Library
from adjudge.protocols.flight.fields import FIELDS, TASKS
from adjudge.protocols.flight.judge import ceiling_note
from adjudge.protocols.flight.metrics import DATASET_COLUMNS, ModelNumbers, comparable
from adjudge.protocols.flight.model_values import ATOM_KINDS, split_values
from adjudge.protocols.flight.partials import MOST_COMPARED, PAIR_SUMS, PLACE, Partial, compared_models, merge, pooled
from adjudge.protocols.flight.references import OTHER_TASK
from adjudge.protocols.flight.sections import Summary
from adjudge.stats import bootstrap
from adjudge.stats.estimate import Estimate
from adjudge.stats.paired import mcnemar_exact, sign_flip
from adjudge.stats.proportions import newcombe_paired_difference, student_quantile
from adjudge.stats.ties import holm, ranking

if TYPE_CHECKING:
    from adjudge.protocols.flight.config import FlightConfig


LEVEL = 0.95


def comparison(whole: Partial, config: FlightConfig, eligibility: dict[str, float | None]) -> dict[str, Any] | None:
    """Every pair of models, and the ranking by eligibility."""
    models = whole.models
    if compared_models(len(models)) < 2:
        return None
    pairs = [_pair(whole, config, a, b) for a in range(len(models)) for b in range(a + 1, len(models))]
    for pair, value in zip(pairs, holm([pair["p"] for pair in pairs]), strict=True):
        pair["p_holm"] = value
    matrix = {(pair["a"], pair["b"]): pair["p_holm"] for pair in pairs}
    ranked = ranking(list(models), [eligibility[model] or 0.0 for model in models], matrix)
    return {
        "metric": "eligibility_rate",
        "how": "rank: 1 + the models whose first tie group is better",
        "pairs": pairs,
        "ranking": [
            {"rank": item.rank, "model": item.name, "value": item.score, "tie_groups": list(item.letters)}
            for item in ranked
        ],
    }


def _pair(whole: Partial, config: FlightConfig, a: int, b: int) -> dict[str, Any]:
    sums = dict(zip(PAIR_SUMS, whole.pairs[a, b].T, strict=True))
    counts = whole.sums[a, :, PLACE["n"]]
    n = int(counts.sum())
    only_a, only_b, both = (int(sums[name].sum()) for name in ("only_first", "only_second", "both"))
    label = f"{whole.models[a]}~{whole.models[b]}"
    if whole.clustered:
        flips = sums["only_first"] - sums["only_second"]
        gap, total = (
            bootstrap.ratio_of_sums(column, counts, n=n, unit="flight", **config.drawing(f"{label}/{name}"))
            for name, column in (("eligible", flips), ("total", sums["total"]))
        )
        test = sign_flip(flips, seed=config.seed, stream=f"{label}/signs", clusters=np.arange(flips.size))
    else:
        gap = newcombe_paired_difference(both, only_a, only_b, n - both - only_a - only_b)
        total = _mean_difference(float(sums["total"].sum()), float(sums["total_squared"].sum()), n)
        test = mcnemar_exact(only_a, only_b)
    return {
        "a": whole.models[a],
        "b": whole.models[b],
        "n": n,
        "eligible_only_a": only_a,
        "eligible_only_b": only_b,
        "eligibility_difference": gap.to_dict(),
        "total_difference_all": total.to_dict(),
        "p": test.p,
        "log10_p": test.log10_p,
        "test": test.method,
    }


def _mean_difference(total: float, squares: float, n: int) -> Estimate:
    """The mean of paired differences with Student's interval, samples taken as independent."""
    method = "paired t, by sample"
    if n < 2:
        return Estimate(value=total / n, n=n, method=method) if n else Estimate.null("no samples", method=method)
    mean = total / n
    spread = max(0.0, squares - n * mean * mean) / (n - 1)
    half = student_quantile(n - 1, 0.5 + LEVEL / 2) * (spread / n) ** 0.5
    return Estimate(value=mean, low=mean - half, high=mean + half, level=LEVEL, n=n, method=method)


FEW_FLIGHTS = 10


@dataclass(frozen=True)
class TaskNumbers:
    """One task, measured. `suffix` tells its slices, sections and charts from those of the run's other tasks."""

    whole: Partial
    suffix: str
    models: tuple[ModelNumbers, ...]
    ceiling: Estimate
    summary: dict[str, Any]
    profiles: tuple[dict[str, Any], ...]
    ranking: dict[str, Any] | None

    @property
    def detailed(self) -> tuple[ModelNumbers, ...]:
        """The models that have a summary and a profile, and so stand in the sections and charts."""
        return self.models[: len(self.profiles)]

    @property
    def task(self) -> str:
        """The task's name."""
        return self.whole.task


def finish(
    partials: Sequence[Partial], config: FlightConfig, layouts: Mapping[str, Layout], library: Library
) -> Measured:
    """All numbers from the partials, in order."""
    several = len(config.tasks) > 1
    measured = Measured(estimates=[])
    tasks = [
        _task(whole, config, layouts[whole.task], library, f"/{whole.task}" if several else "")
        for whole in merged_by_task(partials)
    ]
    _refuse_no_match(tasks, config)
    _refuse_other_task(tasks, config)
    for task in tasks:
        for numbers in task.models:
            where = f"model={numbers.model}{task.suffix}"
            measured.estimates += [Named(name, where, estimate) for name, estimate in numbers.estimates.items()]
        where = f"task={task.task}" if several else ""
        measured.estimates.append(Named("data_eligibility_rate", where, task.ceiling))
        measured.sections += sections.of_task(task, config, library)
        measured.charts += charts.build(task)
        measured.notes += _notes(task, config, library, layouts[task.task])
    if config.match == "line":
        measured.notes.append("rows were matched by line number (--match line), not by id")
    if several:
        measured.sections.insert(0, sections.comprehensive(tasks, config))
    if config.confidence:
        measured.sections.append(sections.priors(config.confidence))
    measured.metrics = {
        (f"{named.slice.partition('=')[2]}/" if named.slice else "") + named.name: named.estimate.value
        for named in measured.estimates
    }
    digests = [hashlib.sha256(task.whole.samples_digests).digest() for task in tasks]
    measured.digests = {
        "dataset": (digests[0] if len(digests) == 1 else hashlib.sha256(b"".join(digests)).digest()).hex()
    }
    measured.top = _top(tasks, config, library)
    return measured


def merged_by_task(partials: Sequence[Partial]) -> list[Partial]:
    """One partial of every task that there is."""
    by_task = {task: [part for part in partials if part.task == task] for task in TASKS}
    return [merge(parts) for parts in by_task.values() if parts]


def _task(whole: Partial, config: FlightConfig, layout: Layout, library: Library, suffix: str) -> TaskNumbers:
    few = len(whole.models) <= MOST_DETAILED
    values = split_values(whole.values, len(whole.models))
    models = tuple(
        ModelNumbers(whole, index, values[index], config, f"{model if few else MANY_MODELS}{suffix}")
        for index, model in enumerate(whole.models)
    )
    for numbers in models:
        numbers.measure()
    summaries = [Summary(numbers, layout, library) for numbers in models[:MOST_DETAILED]]
    of_models = {summary.numbers.model: summary.task_summary() for summary in summaries}
    if len(models) == 1:
        of_all = next(iter(of_models.values()))
    else:
        together = pooled(whole)
        numbers = ModelNumbers(together, 0, split_values(together.values, 1)[0], config, "all")
        of_all = Summary(numbers, layout, library).task_summary()
    eligibility = {numbers.model: numbers.estimates["eligibility_rate"].value for numbers in models}
    return TaskNumbers(
        whole=whole,
        suffix=suffix,
        models=models,
        ceiling=whole.ceiling.rate(clustered=whole.clustered),
        summary={"task": whole.task, "all": of_all, "models": of_models},
        profiles=tuple(
            {**summary.profile(), "confidence_prior": config.prior(summary.numbers.model)} for summary in summaries
        ),
        ranking=comparison(whole, config, eligibility),
    )


def _top(tasks: Sequence[TaskNumbers], config: FlightConfig, library: Library) -> dict[str, Any]:
    """The documented keys at the top level of metrics.json."""
    first = tasks[0]
    unmatched = {task.task: task.whole.unmatched() for task in tasks}
    common = {
        "task": ", ".join(task.task for task in tasks),
        "library": library.name,
        "comparable": comparable(config.scores),
        "dataset_columns": list(DATASET_COLUMNS),
        "unmatched_ids": {task: kinds for task, kinds in unmatched.items() if kinds},
    }
    if len(config.tasks) == 1:
        profiles = list(first.profiles)
        return {**common, "task_summary": first.summary, "model_profiles": profiles, "comparison": first.ranking}
    of_model: dict[str, dict[str, Any]] = {}
    for task in tasks:
        for profile in task.profiles:
            of_model.setdefault(profile["model_name"], {})[profile["task"]] = profile
    return {
        **common,
        "tasks": [task.task for task in tasks],
        "task_summaries": {task.task: task.summary for task in tasks},
        "comparisons": {task.task: task.ranking for task in tasks},
        "model_profiles": [
            {"model_name": model, "tasks": profiles, "confidence_prior": config.prior(model)}
            for model, profiles in sorted(of_model.items())
        ],
    }


def _refuse_no_match(tasks: Sequence[TaskNumbers], config: FlightConfig) -> None:
    """Outputs and a reference that share no id are not an evaluation in which everything is missing."""
    if not config.reference or any(task.whole.matched or not task.whole.only_in["reference"] for task in tasks):
        return
    outputs, reference = (tasks[0].whole.named_ids[kind] for kind in ("outputs", "reference"))
    example = f" The outputs have {outputs[0]!r}, the reference {reference[0]!r}." if outputs else ""
    hint = "Rows are matched by id; --match line pairs old files by line number."
    raise InputError(f"no id of the outputs stands in the reference.{example}", file=config.reference[0], hint=hint)


def _refuse_other_task(tasks: Sequence[TaskNumbers], config: FlightConfig) -> None:
    """A reference none of whose rows is of the task is that of another one."""
    for task in tasks:
        whole, end = task.whole, f"{OTHER_TASK} {task.task}"
        usable = whole.sums[:, :, PLACE["with_reference"]].any()
        if whole.faults and not usable and all(text.endswith(end) for text in whole.faults):
            rows = whole.faulty // len(task.models)
            counted = f"{rows:,} {'row of the reference has' if rows == 1 else 'rows of the reference have'}"
            hint = "S1 is compared with `next_second`, M1 and M3 with `T+1`: is --task right?"
            raise InputError(f"{counted} the gold of {end}, and none has its own.", file=config.reference[0], hint=hint)


def _notes(task: TaskNumbers, config: FlightConfig, library: Library, layout: Layout) -> list[str]:
    whole = task.whole
    of_task = f"{task.task}: " if task.suffix else ""
    n = int(whole.sums[:, :, PLACE["n"]].sum())
    notes = ceiling_note(whole.ceiling, task.ceiling, library, task.task)
    without = n - int(whole.sums[:, :, PLACE["with_reference"]].sum())
    if without:
        notes.append(
            f"{of_task}{without:,} of {n:,} samples have no reference: they are judged, but have no error score"
        )
    if whole.faulty:
        places = "; ".join(whole.faults[:3]) + ("; …" if len(whole.faults) > 3 else "")
        notes.append(f"{of_task}of these, {whole.faulty:,} have a reference that cannot be used: {places}")
    failed = int(whole.atoms[:, :, ATOM_KINDS.index("error")].sum())
    if failed:
        notes.append(f"{of_task}{failed:,} atoms are instrument errors: a rule failed, not a model")
    for kind, count in whole.only_in.items():
        if count and config.reference:
            ids = ", ".join(whole.named_ids[kind][:3]) + (", …" if count > 3 else "")
            notes.append(f"{of_task}{count:,} {'id stands' if count == 1 else 'ids stand'} only in the {kind}: {ids}")
    from_question = whole.shown["question"]
    if from_question:
        notes.append(
            f"{of_task}the shown state of {from_question:,} of {n:,} samples was taken from the question: its last JSON object "
            "with flight fields"
        )
    if len(whole.models) > MOST_COMPARED:
        notes.append(f"{of_task}{len(whole.models):,} models are not compared in pairs; at most {MOST_COMPARED} are")
    if len(task.models) > len(task.profiles):
        notes.append(
            of_task + many_note(len(task.models), len(task.profiles), "summaries, profiles, sections and charts")
        )
    shaped = int(whole.codes[:, layout.codes.index("numeric_validity.array_shape")].sum())
    answers = int(whole.sums[:, :, PLACE["answered"]].sum())
    if answers > 1 and shaped == answers * len(FIELDS) * TASKS[task.task].steps:
        notes.append(
            f"{of_task}all {answers:,} answers have {'numbers where arrays' if TASKS[task.task].arrays else 'arrays where numbers'} are due: "
            f"are they answers to {task.task}?"
        )
    flights = sum(name is not None for name in whole.flights)
    if 0 < flights < FEW_FLIGHTS:
        notes.append(f"{of_task}intervals rest on {flights} flights; fewer than {FEW_FLIGHTS} make them rough")
    if not flights:
        notes.append(
            f"{of_task}the data names no flights (`flight_id` in the reference): intervals and tests take samples as independent"
        )
    return notes
