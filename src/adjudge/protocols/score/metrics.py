"""The numbers of a score run: a block a model, task, trial, slice and check; sections beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from adjudge.evidence.vocabulary import BUCKETS
from adjudge.protocols.base import Measured, Named
from adjudge.protocols.score import charts, printed, sections
from adjudge.protocols.score.attempts import Attempts, Ints, Partial, merged
from adjudge.protocols.score.comparable import Facts, comparable, conditions, factors, facts_of
from adjudge.protocols.score.config import ScoreConfig
from adjudge.protocols.score.judge import VERDICTS
from adjudge.protocols.score.measure import Block, macro, measure
from adjudge.protocols.score.samples import DATASET_COLUMNS
from adjudge.provenance.canonical import digest
from adjudge.readers.sources import file_name, refuse_many_slices
from adjudge.stats.estimate import Metric, share

_RATE = "Wilson; with the design effect of the clusters where an item was tried several times or the log names clusters"
_MEAN = f"bootstrap of attempts or clusters; where scores are 0 and 1 alone: {_RATE}"
_BY_ITEM = "Wilson by item"
_MOVER = "MOVER (Zou and Donner 2008)"
_FEW_ATTEMPTS = "an item has fewer than k attempts"


def _rate(name: str, formula: str, title: str = "", interval: str = _RATE, **more: Any) -> Metric:
    return share(name, title, formula=formula, interval=interval, **more)


_lower_rate = partial(_rate, better="lower")
_rate_by_threshold = partial(_rate, null="scores are graded and there is no threshold (--pass-at)")


def _mean(name: str, title: str, formula: str, interval: str, null: str = "", *, headline: bool = False) -> Metric:
    return Metric(name, title, better="higher", headline=headline, formula=formula, interval=interval, null=null)


_headline_mean = partial(_mean, interval=_MEAN, headline=True)
_bound = partial(_mean, interval="none: a bound", null="a score lies outside its range (--range)")


def _confidence(name: str, title: str, formula: str) -> Metric:
    return Metric(name, title, "", 0.0, 1.0, "lower", formula=formula, interval="bootstrap")


METRICS = (
    _headline_mean(
        "mean_score", "mean score", "sum of scores ÷ all attempts; what has none counts 0", null="no attempts"
    ),
    _rate_by_threshold("pass_rate", "attempts that reach the threshold ÷ all attempts", headline=True),
    _headline_mean(
        "mean_score_scored", "mean over scored", "sum of scores ÷ attempts with a score", null="no attempt has a score"
    ),
    _rate("coverage", "attempts with a score ÷ all attempts", headline=True),
    _lower_rate("error_rate", "attempts with an error, or without a score and a reason ÷ all attempts", headline=True),
    _lower_rate("abstain_rate", "attempts without an answer ÷ all attempts", headline=True),
    _lower_rate("unparsed_rate", "attempts whose answer could not be read ÷ all attempts"),
    _lower_rate("missing_rate", "attempts without a record ÷ all attempts"),
    _bound("mean_score_low", "mean score, at least", "the mean if everything without a score had the least"),
    _bound("mean_score_high", "mean score, at most", "the mean if everything without a score had the greatest"),
    _mean("mean_score_macro", "mean score, mean over tasks", "plain mean over tasks of the mean score", _MOVER),
    _rate_by_threshold(
        "pass_rate_macro", "plain mean over tasks of the pass rate", "pass rate, mean over tasks", _MOVER
    ),
    _lower_rate(
        "flip_rate",
        "items with both verdicts ÷ items tried several times",
        interval="Wilson",
        null="no item was tried several times",
    ),
    _rate("pass_at_*", "1 − C(n−c, k) / C(n, k), mean over items", "pass@{}", _BY_ITEM, null=_FEW_ATTEMPTS),
    _rate("pass_hat_*", "C(c, k) / C(n, k), mean over items", "pass^{}", _BY_ITEM, null=_FEW_ATTEMPTS),
    _rate(
        "constant_answer_rate",
        "items whose target is the most frequent of its task ÷ items: what always answering it reaches",
        "most frequent target",
        "Wilson",
        better=None,
    ),
    _lower_rate(
        "ece",
        "expected calibration error over the scored attempts with a confidence",
        "calibration error",
        "bootstrap",
    ),
    _confidence("brier", "Brier score", "mean (confidence − passed)²"),
    _confidence("aurc", "AURC", "area under the risk-coverage curve"),
    _rate("pass_rate_labelled", "labelled attempts that people call right ÷ labelled attempts", "pass rate by labels"),
    _rate_by_threshold(
        "pass_rate_ppi",
        "PPI++ with power tuning over people's labels and the log's verdicts",
        "pass rate, prediction-powered",
        "Student's t on the PPI++ variance, by cluster where there are such",
    ),
    _rate_by_threshold(
        "label_agreement",
        "labelled attempts on which the log agrees ÷ labelled attempts",
        "agreement with labels",
    ),
)
STATEMENT = "Scores are as reported: this run proves its arithmetic from the log's own verdicts, not that the harness judged rightly."
AS_THE_LOG_SAYS = "as the log says"
"""In the place of a threshold."""
SLICE_VALUES = 50
MOST_TRIALS = 100


def finish(partials: Sequence[Partial], config: ScoreConfig) -> Measured:
    """All numbers from the partials, in order."""
    attempts = merged(partials)
    thresholds = _thresholds(attempts)
    facts = facts_of(config.sources or ())
    fixed = conditions(facts, thresholds)
    measured = Measured(
        estimates=[],
        buckets={"all": {}},
        digests={"dataset": attempts.dataset, "conditions": digest(_without_models(fixed))},
    )
    for model, rows in attempts.by_model.items():
        measured.buckets[model] = _buckets(Block(attempts, rows, config, model))
        _measure_model(model, rows, attempts, config, measured)
    measured.buckets["all"] = _buckets(Block(attempts, np.arange(attempts.n), config, "all"))
    measured.put_first("model")
    measured.top = {
        "statement": STATEMENT,
        "items": attempts.items,
        "tasks": attempts.words["task"],
        "thresholds": thresholds,
        "conditions": fixed,
        "comparable": comparable(
            has_threshold=not attempts.undecided.any(),
            binary=_is_binary(attempts),
            span=config.range[1] - config.range[0],
        ),
        "dataset_columns": list(DATASET_COLUMNS),
        "factors": factors(facts, attempts.by_model),
    }
    ranking, why_not = sections.of_ranking(attempts, config, fixed)
    shown = (
        printed.section(attempts, [item for source in config.sources or () for item in source.printed], config.checks),
        ranking,
        sections.of_labels(measured, list(attempts.by_model)),
        sections.of_trials(measured, list(attempts.by_model)),
        sections.of_checks(measured, list(attempts.by_model), config.checks),
        sections.of_conditions(facts),
    )
    measured.sections = [section for section in shown if section is not None]
    measured.notes = [*_notes(attempts, config, thresholds), *why_not]
    measured.charts = charts.build(measured, list(attempts.by_model))
    return measured


def _measure_model(model: str, rows: Ints, attempts: Attempts, config: ScoreConfig, measured: Measured) -> None:
    estimates = measure(Block(attempts, rows, config, model))
    blocks = list(_blocks(model, rows, attempts, config))
    by_slice = {where: measure(block) for where, block in blocks}
    tasks = [estimates_of for where, estimates_of in by_slice.items() if where.startswith(f"slice={model},task=")]
    if len(tasks) > 1:
        for name in ("mean_score", "pass_rate"):
            estimates[f"{name}_macro"] = macro([of_task[name] for of_task in tasks])
    for where, numbers in ((f"model={model}", estimates), *by_slice.items()):
        measured.estimates += [Named(name, where, estimate) for name, estimate in numbers.items()]
    if len(config.checks) > 1:
        measured.estimates += _checks(model, rows, attempts, config)


def _blocks(model: str, rows: Ints, attempts: Attempts, config: ScoreConfig) -> Iterator[tuple[str, Block]]:
    """The rows of a model by task, trial and the values of every slice, where there are several."""
    if len(attempts.words["task"]) > 1:
        for task, of_task in attempts.split(rows, "task"):
            yield f"slice={model},task={task}", Block(attempts, of_task, config, f"{model}/task={task}")
    trials = np.unique(attempts.columns["trial"][rows])
    if trials.size > 1:
        for trial in trials[:MOST_TRIALS].tolist():
            of_trial = rows[attempts.columns["trial"][rows] == trial]
            yield f"trial={model}|{trial}", Block(attempts, of_trial, config, f"{model}|{trial}")
    for name in config.slices:
        key = f"meta.{name.removeprefix('meta.')}"
        refuse_many_slices(key, len(attempts.words[key]))
        parts = sorted(attempts.split(rows, key), key=lambda part: (-part[1].size, part[0]))
        for value, of_trial in parts[:SLICE_VALUES]:
            yield f"slice={model},{key}={value}", Block(attempts, of_trial, config, f"{model}/{key}={value}")


def _checks(model: str, rows: Ints, attempts: Attempts, config: ScoreConfig) -> Iterator[Named]:
    """Mean and pass rate of every check that the log reports; what has no such score counts 0."""
    block = Block(attempts, rows, config, model)
    for name in config.checks:
        value, passed = block.column(f"check.{name}"), block.column(f"check.{name}.passed")
        if np.isnan(value).all() and (passed < 0).all():
            continue
        where = f"slice={model},check={name}"
        yield Named("mean_score", where, block.mean(np.nan_to_num(value), None, f"check={name}", "no attempts"))
        yield Named("coverage", where, block.rate(~np.isnan(value)))
        if (passed[~np.isnan(value)] >= 0).all():
            yield Named("pass_rate", where, block.rate(passed == 1))


def _thresholds(attempts: Attempts) -> dict[str, float | str | None]:
    """The threshold of every task, None where it has none; or that the log itself says what passed."""
    bounds: dict[str, float | str | None] = {}
    for task, rows in attempts.split(np.arange(attempts.n), "task") if attempts.n else ():
        bound = float(attempts.columns["threshold"][rows[0]])
        bounds[task] = AS_THE_LOG_SAYS if attempts.decided[rows].any() else None if np.isnan(bound) else bound
    return bounds


def _is_binary(attempts: Attempts) -> bool:
    """Whether scores are 0 and 1 alone and say what passed, so that the mean is the pass rate."""
    score = attempts.columns["score"]
    if not attempts.n or not np.isin(score[attempts.scored], (0.0, 1.0)).all():
        return False
    return bool((attempts.passed == (score == 1.0))[attempts.decided].all())


def _buckets(block: Block) -> dict[str, int]:
    counts = dict.fromkeys(BUCKETS, 0)
    for word, count in zip(VERDICTS, np.bincount(block.column("verdict"), minlength=len(VERDICTS)), strict=True):
        counts["passed" if word == "scored" else word] += int(count)
    return {**counts, "n": block.n}


def _without_models(fixed: Facts) -> dict[str, list[Any]]:
    """The conditions of every task without the models judged under them: a baseline of one model may be held against another."""
    by_task: dict[str, list[Any]] = {}
    for tasks in fixed.values():
        for task, stated in tasks.items():
            if stated not in by_task.setdefault(task, []):
                by_task[task].append(stated)
    return by_task


def _notes(attempts: Attempts, config: ScoreConfig, thresholds: dict[str, float | str | None]) -> list[str]:
    notes = []
    if attempts.unnamed:
        notes.append(
            f"{attempts.unnamed:,} records name no model: the name of their file is taken for it (--column model=NAME)"
        )
    graded = [task for task, bound in thresholds.items() if bound is None]
    if graded:
        of = f" of {', '.join(graded[:5])}" if graded != [""] else ""
        notes.append(
            f"scores{of} are graded and no threshold was given (--pass-at): `passed` means scored, and there is no pass rate"
        )
    if attempts.decided.any():
        notes.append("what passed is what the log says, whatever the score (--pass-at holds scores to a threshold)")
        open_ones = int(attempts.undecided.sum())
        if open_ones:
            notes.append(f"of {open_ones:,} scores the log does not say whether they passed: there is no pass rate")
    if config.truth and np.isnan(attempts.columns["truth"]).all():
        notes.append(
            f"no label of {', '.join(file_name(path) for path in config.truth)} is of a sample here: an id is that of the record, with its "
            "`task` where records have one (--task NAME, where labels name none)"
        )
    absent = int(attempts.has_status("missing").sum()) if attempts.n else 0
    if absent:
        notes.append(f"{absent:,} of {attempts.n:,} attempts are missing: planned or made by others, without a record")
    for key in (f"meta.{name.removeprefix('meta.')}" for name in config.slices if attempts.n):
        values, without = len(attempts.words[key]), int((attempts.columns[key] < 0).sum())
        if values > SLICE_VALUES:
            notes.append(f"--slice {key}: of its {values:,} values the {SLICE_VALUES} most frequent are measured")
        if without:
            notes.append(f"--slice {key}: {without:,} of {attempts.n:,} attempts do not have it and are in no slice")
    trials = np.unique(attempts.columns["trial"]).size if attempts.n else 0
    if trials > MOST_TRIALS:
        notes.append(f"of {trials:,} trials the first {MOST_TRIALS} are measured one by one")
    notes += [note for source in config.sources or () for note in source.notes]
    return list(dict.fromkeys([*notes, STATEMENT]))
