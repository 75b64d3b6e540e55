"""The numbers of a score run: a block a model, task, trial, slice and check; sections beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from adjudge.evidence.vocabulary import BUCKETS
from adjudge.protocols.base import Measured, Named
from adjudge.protocols.score import charts, printed, ranked, sections
from adjudge.protocols.score.attempts import Attempts, Ints, Partial, merged
from adjudge.protocols.score.comparable import Facts, comparable, conditions, factors, facts_of
from adjudge.protocols.score.config import ScoreConfig
from adjudge.protocols.score.judge import VERDICTS
from adjudge.protocols.score.measure import Block, macro, measure
from adjudge.protocols.score.samples import DATASET_COLUMNS
from adjudge.provenance.canonical import digest
from adjudge.readers.bounds import refuse_many_slices
from adjudge.stats.metric import Metric, share

_RATE = "Wilson; with the design effect of the clusters where an item was tried several times or the log names clusters"
_MEAN = f"bootstrap of attempts or clusters; where scores are 0 and 1 alone: {_RATE}"
_NO_THRESHOLD = "scores are graded and there is no threshold (--pass-at)"
METRICS = (
    Metric(
        "mean_score",
        "mean score",
        better="higher",
        headline=True,
        formula="sum of scores ÷ all attempts; what has none counts 0",
        interval=_MEAN,
        null="no attempts",
    ),
    share(
        "pass_rate",
        headline=True,
        formula="attempts that reach the threshold ÷ all attempts",
        interval=_RATE,
        null=_NO_THRESHOLD,
    ),
    Metric(
        "mean_score_scored",
        "mean over scored",
        better="higher",
        headline=True,
        formula="sum of scores ÷ attempts with a score",
        interval=_MEAN,
        null="no attempt has a score",
    ),
    share("coverage", headline=True, formula="attempts with a score ÷ all attempts", interval=_RATE),
    share(
        "error_rate",
        better="lower",
        headline=True,
        formula="attempts with an error, or without a score and a reason ÷ all attempts",
        interval=_RATE,
    ),
    share(
        "abstain_rate",
        better="lower",
        headline=True,
        formula="attempts without an answer ÷ all attempts",
        interval=_RATE,
    ),
    share(
        "unparsed_rate",
        better="lower",
        formula="attempts whose answer could not be read ÷ all attempts",
        interval=_RATE,
    ),
    share("missing_rate", better="lower", formula="attempts without a record ÷ all attempts", interval=_RATE),
    Metric(
        "mean_score_low",
        "mean score, at least",
        better="higher",
        formula="the mean if everything without a score had the least",
        interval="none: a bound",
        null="a score lies outside its range (--range)",
    ),
    Metric(
        "mean_score_high",
        "mean score, at most",
        better="higher",
        formula="the mean if everything without a score had the greatest",
        interval="none: a bound",
        null="a score lies outside its range (--range)",
    ),
    Metric(
        "mean_score_macro",
        "mean score, mean over tasks",
        better="higher",
        formula="plain mean over tasks of the mean score",
        interval="MOVER (Zou and Donner 2008)",
    ),
    share(
        "pass_rate_macro",
        "pass rate, mean over tasks",
        formula="plain mean over tasks of the pass rate",
        interval="MOVER (Zou and Donner 2008)",
        null=_NO_THRESHOLD,
    ),
    share(
        "flip_rate",
        better="lower",
        formula="items with both verdicts ÷ items tried several times",
        interval="Wilson",
        null="no item was tried several times",
    ),
    share(
        "pass_at_*",
        "pass@{}",
        formula="1 − C(n−c, k) / C(n, k), mean over items",
        interval="Wilson by item",
        null="an item has fewer than k attempts",
    ),
    share(
        "pass_hat_*",
        "pass^{}",
        formula="C(c, k) / C(n, k), mean over items",
        interval="Wilson by item",
        null="an item has fewer than k attempts",
    ),
    share(
        "constant_answer_rate",
        "most frequent target",
        better=None,
        formula="items whose target is the most frequent of its task ÷ items: what always answering it reaches",
        interval="Wilson",
    ),
    share(
        "ece",
        "calibration error",
        better="lower",
        formula="expected calibration error over the scored attempts with a confidence",
        interval="bootstrap",
    ),
    Metric(
        "brier",
        "Brier score",
        low=0.0,
        high=1.0,
        better="lower",
        formula="mean (confidence − passed)²",
        interval="bootstrap",
    ),
    Metric(
        "aurc",
        "AURC",
        low=0.0,
        high=1.0,
        better="lower",
        formula="area under the risk-coverage curve",
        interval="bootstrap",
    ),
    share(
        "pass_rate_labelled",
        "pass rate by labels",
        formula="labelled attempts that people call right ÷ labelled attempts",
        interval=_RATE,
    ),
    share(
        "pass_rate_ppi",
        "pass rate, prediction-powered",
        formula="PPI++ with power tuning over people's labels and the log's verdicts",
        interval="Student's t on the PPI++ variance",
        null=_NO_THRESHOLD,
    ),
    share(
        "label_agreement",
        "agreement with labels",
        formula="labelled attempts on which the log agrees ÷ labelled attempts",
        interval="Wilson",
        null=_NO_THRESHOLD,
    ),
)
STATEMENT = "Scores are as reported: this run proves its arithmetic from the log's own verdicts, not that the harness judged rightly."
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
        buckets={"all": _buckets(attempts, np.arange(attempts.n))},
        digests={"dataset": attempts.dataset, "conditions": digest(_without_models(fixed))},
    )
    for model, rows in attempts.by_model.items():
        measured.buckets[model] = _buckets(attempts, rows)
        _measure_model(model, rows, attempts, config, measured)
    measured.estimates.sort(key=lambda named: not named.slice.startswith("model="))
    measured.metrics = {
        f"{named.slice.partition('=')[2]}/{named.name}": named.estimate.value
        for named in measured.estimates
        if named.slice.startswith("model=")
    }
    binary = bool(np.isin(attempts.columns["score"][attempts.scored], (0.0, 1.0)).all()) if attempts.n else False
    measured.top = {
        "statement": STATEMENT,
        "items": attempts.items,
        "tasks": attempts.words["task"],
        "thresholds": thresholds,
        "conditions": fixed,
        "comparable": comparable(has_threshold=None not in thresholds.values(), binary=binary),
        "dataset_columns": list(DATASET_COLUMNS),
        "factors": factors(facts, attempts.by_model),
    }
    ranking, why_not = ranked.section(attempts, config, fixed)
    shown = (
        printed.section(attempts, [item for source in config.sources or () for item in source.printed], config.checks),
        ranking,
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
    found = {where: measure(block) for where, block in blocks}
    tasks = [estimates_of for where, estimates_of in found.items() if where.startswith(f"slice={model},task=")]
    if len(tasks) > 1:
        for name in ("mean_score", "pass_rate"):
            estimates[f"{name}_macro"] = macro([of_task[name] for of_task in tasks])
    for where, numbers in ((f"model={model}", estimates), *found.items()):
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
            own = rows[attempts.columns["trial"][rows] == trial]
            yield f"trial={model}|{trial}", Block(attempts, own, config, f"{model}|{trial}")
    for name in config.slices:
        key = f"meta.{name.removeprefix('meta.')}"
        refuse_many_slices(key, len(attempts.words[key]))
        parts = sorted(attempts.split(rows, key), key=lambda part: (-part[1].size, part[0]))
        for value, own in parts[:SLICE_VALUES]:
            yield f"slice={model},{key}={value}", Block(attempts, own, config, f"{model}/{key}={value}")


def _checks(model: str, rows: Ints, attempts: Attempts, config: ScoreConfig) -> Iterator[Named]:
    """Mean and pass rate of every check that the log reports; what has no such score counts 0."""
    block = Block(attempts, rows, config, model)
    everything = np.ones(rows.size, dtype=bool)
    for name in config.checks:
        value, passed = block.column(f"check.{name}"), block.column(f"check.{name}.passed")
        if np.isnan(value).all() and (passed < 0).all():
            continue
        where = f"slice={model},check={name}"
        yield Named("mean_score", where, block.mean(np.nan_to_num(value), everything, f"check={name}", "no attempts"))
        yield Named("coverage", where, block.rate(~np.isnan(value)))
        if (passed[~np.isnan(value)] >= 0).all():
            yield Named("pass_rate", where, block.rate(passed == 1))


def _thresholds(attempts: Attempts) -> dict[str, float | None]:
    """The threshold of every task, None where it has none."""
    found: dict[str, float | None] = {}
    for task, rows in attempts.split(np.arange(attempts.n), "task") if attempts.n else ():
        bound = float(attempts.columns["threshold"][rows[0]])
        found[task] = None if np.isnan(bound) else bound
    return found


def _buckets(attempts: Attempts, rows: Ints) -> dict[str, int]:
    counts = dict.fromkeys(BUCKETS, 0)
    if rows.size:
        for word, count in zip(
            VERDICTS, np.bincount(attempts.columns["verdict"][rows], minlength=len(VERDICTS)), strict=True
        ):
            counts["passed" if word == "scored" else word] += int(count)
    return {**counts, "n": int(rows.size)}


def _without_models(fixed: Facts) -> dict[str, list[Any]]:
    """The conditions by task alone: a baseline holds whichever model was under them."""
    found: dict[str, list[Any]] = {}
    for tasks in fixed.values():
        for task, own in tasks.items():
            if own not in found.setdefault(task, []):
                found[task].append(own)
    return found


def _notes(attempts: Attempts, config: ScoreConfig, thresholds: dict[str, float | None]) -> list[str]:
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
    absent = int(attempts.has_status("missing").sum()) if attempts.n else 0
    if absent:
        notes.append(f"{absent:,} of {attempts.n:,} attempts are missing: planned or made by others, without a record")
    notes += [note for source in config.sources or () for note in source.notes]
    return list(dict.fromkeys([*notes, STATEMENT]))
