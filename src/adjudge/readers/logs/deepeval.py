"""DeepEval: the JSON of a test run, with one score a metric in every test case.

A sample is a test case by its name, or by a digest of its input where names are not its own. The first metric is judged;
a metric's error is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from adjudge.errors import InputError
from adjudge.readers.logs.documents import decoded_file, number_of
from adjudge.readers.logs.record import ERRORED, NAN, NUMBER, SCORED, Check, Log, Printed, Record, content_hash, text_of


class _Metric(msgspec.Struct, rename="camel"):
    name: str
    score: float | None = None
    success: bool | None = None
    threshold: float | None = None
    reason: str | None = None
    error: str | None = None
    evaluation_model: str | None = None


class _Case(msgspec.Struct, rename="camel"):
    name: str | None = None
    input: Any = None
    actual_output: Any = None
    expected_output: Any = None
    metrics_data: list[_Metric] | None = None


class _Scores(msgspec.Struct):
    metric: str
    scores: list[float] = []
    passes: int | None = None
    fails: int | None = None
    errors: int | None = None


class _Run(msgspec.Struct, rename="camel"):
    test_cases: list[_Case] = []
    conversational_test_cases: list[_Case] = []
    metrics_scores: list[_Scores] = []
    hyperparameters: dict[str, Any] | None = None
    test_file: str | None = None
    dataset_alias: str | None = None


class _Wrapped(msgspec.Struct, rename="camel"):
    test_run_data: _Run | None = None
    test_cases: list[_Case] | None = None


def header(path: str) -> Log:
    """What the test run says of itself."""
    run = _read(path)
    cases = _cases(run)
    if not cases:
        raise InputError("has no test cases", file=path)
    names = list(dict.fromkeys(metric.name for case in cases for metric in case.metrics_data or ()))
    model, named = _model(run, path)
    judges = sorted({metric.evaluation_model or "" for case in cases for metric in case.metrics_data or ()} - {""})
    thresholds = {metric.name: metric.threshold for case in cases for metric in case.metrics_data or ()}
    task = run.dataset_alias or ""
    log = Log(
        format="deepeval",
        title="DeepEval test run",
        files=[path],
        models=[model],
        tasks=[task] if task else [],
        checks=names,
        conditions={task: {"metric": thresholds, "evaluation_model": ", ".join(judges)}},
        printed=list(_printed(run, model, task, names)),
        unscored=not names,
    )
    if not named:
        log.notes.append(
            f"the test run names no model (hyperparameters): the name of its file, {model}, is taken for it"
        )
    return log


def records(log: Log, scorer: str) -> Iterator[Record]:
    """Every test case; cases with the same name or input are trials of one."""
    run = _read(log.path)
    cases = _cases(run)
    names = [case.name for case in cases]
    by_name = len(set(names)) == len(names) and not all(str(name).startswith("test_case_") for name in names)
    trials: dict[str, int] = {}
    for line, case in enumerate(cases, 1):
        sample = str(case.name) if by_name else content_hash(case.input, case.expected_output)[:16]
        trials[sample] = trial = trials.get(sample, 0) + 1
        metrics = {metric.name: metric for metric in case.metrics_data or ()}
        main = metrics.get(scorer)
        value = number_of(main.score) if main is not None else None
        failed = main is None or main.error is not None or value is None
        yield Record(
            id=sample,
            model=log.models[0],
            task=log.tasks[0] if log.tasks else "",
            trial=trial,
            status=ERRORED if failed else SCORED,
            score=NAN if value is None else value,
            kind=NUMBER,
            reported=NAN if value is None else value,
            error=("the case has no such metric" if main is None else main.error or "the metric has no score")
            if failed
            else None,
            answer=text_of(case.actual_output),
            target=text_of(case.expected_output),
            explanation=None if main is None else text_of(main.reason),
            input=text_of(case.input),
            input_hash=content_hash(case.input, case.expected_output),
            line=line,
            checks=[_check(metrics.get(name)) for name in log.checks],
        )


def _read(path: str) -> _Run:
    wrapped = decoded_file(path, _Wrapped)
    return wrapped.test_run_data if wrapped.test_run_data is not None else decoded_file(path, _Run)


def _cases(run: _Run) -> list[_Case]:
    return [*run.test_cases, *run.conversational_test_cases]


def _check(metric: _Metric | None) -> Check | None:
    if metric is None or metric.error is not None:
        return None
    value = number_of(metric.score)
    return None if value is None else Check(value, metric.success)


def _model(run: _Run, path: str) -> tuple[str, bool]:
    known = run.hyperparameters or {}
    named = known.get("model") or known.get("Model")
    return (str(named), True) if named else (Path(path).name.partition(".")[0] or "unnamed", False)


def _printed(run: _Run, model: str, task: str, names: list[str]) -> Iterator[Printed]:
    for scores in run.metrics_scores:
        if scores.metric in names and scores.scores:
            value = sum(scores.scores) / len(scores.scores)
            yield Printed(
                name="mean of its scores", value=value, model=model, task=task, check=scores.metric, rule="mean"
            )
