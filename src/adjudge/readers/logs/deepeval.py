"""DeepEval: the JSON of a test run, with one score a metric in every test case.

A sample is a test case by its name, or by a digest of its input where names are not its own; the input of a conversation is
its scenario, or what the user says. The first metric is judged, and has passed where DeepEval says so (of some metrics the
low scores pass); a metric's error is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from adjudge.errors import InputError
from adjudge.readers.logs.documents import decoded_file, number_of
from adjudge.readers.logs.record import (
    ERRORED,
    NAN,
    NUMBER,
    SCORED,
    Check,
    Log,
    Printed,
    Record,
    Score,
    content_hash,
    text_of,
)

_NUMBERED = re.compile(r"(conversational_)?test_case_\d+")
"""What DeepEval calls a test case that has no name."""


class _Metric(msgspec.Struct, rename="camel"):
    name: str
    score: float | None = None
    success: bool | None = None
    threshold: float | None = None
    reason: str | None = None
    error: str | None = None
    evaluation_model: str | None = None


class _Turn(msgspec.Struct):
    role: str = ""
    content: str | None = None


class _Case(msgspec.Struct, rename="camel"):
    name: str | None = None
    input: Any = None
    actual_output: Any = None
    expected_output: Any = None
    scenario: str | None = None
    expected_outcome: str | None = None
    turns: list[_Turn] | None = None
    metrics_data: list[_Metric] | None = None

    def said(self, role: str) -> str | None:
        """What one side of a conversation says."""
        return "\n\n".join(turn.content or "" for turn in self.turns or () if turn.role == role) or None

    @property
    def asked(self) -> Any:
        return self.input if self.input is not None else self.scenario or self.said("user")

    @property
    def target(self) -> Any:
        return self.expected_output if self.expected_output is not None else self.expected_outcome


class _Scores(msgspec.Struct):
    metric: str
    scores: list[float] = []


class _Run(msgspec.Struct, rename="camel"):
    test_run_data: _Run | None = None
    test_cases: list[_Case] | None = None
    conversational_test_cases: list[_Case] = []
    metrics_scores: list[_Scores] = []
    hyperparameters: dict[str, Any] | None = None
    dataset_alias: str | None = None


def header(path: str) -> Log:
    """What the test run says of itself."""
    run, cases = _read(path)
    if not cases:
        raise InputError("has no test cases", file=path)
    metrics = [metric for case in cases for metric in case.metrics_data or ()]
    names = list(dict.fromkeys(metric.name for metric in metrics))
    settings = run.hyperparameters or {}
    named = settings.get("model") or settings.get("Model")
    model = str(named) if named else Path(path).name.lstrip(".").partition(".")[0] or "unnamed"
    judges = sorted({metric.evaluation_model or "" for metric in metrics} - {""})
    thresholds = {metric.name: metric.threshold for metric in metrics}
    task = run.dataset_alias or ""
    log = Log(
        title="DeepEval test run",
        files=[path],
        models=[model],
        tasks=[task] if task else [],
        checks=names,
        conditions={task: {"metric": thresholds, "evaluation_model": ", ".join(judges)}},
        printed=[
            Printed(
                name="mean of its scores",
                value=sum(scores.scores) / len(scores.scores),
                model=model,
                task=task,
                check=scores.metric,
                rule="mean",
            )
            for scores in run.metrics_scores
            if scores.metric in names and scores.scores
        ],
        unscored=not names,
        decides=True,
    )
    if not named:
        log.notes.append(
            f"the test run names no model (hyperparameters): the name of its file, {model}, is taken for it"
        )
    return log


def records(log: Log, scorer: str) -> Iterator[Record]:
    """Every test case; cases with the same name or input are trials of one."""
    _, cases = _read(log.path)
    names = [case.name for case in cases]
    by_name = len(set(names)) == len(names) and not all(_NUMBERED.fullmatch(str(name)) for name in names)
    trials: dict[str, int] = {}
    for line, case in enumerate(cases, 1):
        sample = str(case.name) if by_name else content_hash(case.asked, case.target)[:16]
        trials[sample] = trial = trials.get(sample, 0) + 1
        metrics = {metric.name: metric for metric in case.metrics_data or ()}
        main = metrics.get(scorer)
        value = None if main is None else number_of(main.score)
        error = None
        if main is None:
            error = "the case has no such metric"
        elif main.error is not None or value is None:
            error = main.error or "the metric has no score"
        number = NAN if value is None else value
        yield Record(
            id=sample,
            model=log.models[0],
            task=log.tasks[0] if log.tasks else "",
            trial=trial,
            error=error,
            answer=text_of(case.said("assistant") if case.actual_output is None else case.actual_output),
            target=text_of(case.target),
            explanation=None if main is None else text_of(main.reason),
            input=text_of(case.asked),
            input_hash=content_hash(case.asked, case.target),
            line=line,
            checks=[_check(metrics.get(name)) for name in log.checks],
            success=None if main is None else main.success,
            **Score(number, NUMBER, SCORED if error is None else ERRORED, number).fields(),
        )


def _read(path: str) -> tuple[_Run, list[_Case]]:
    run = decoded_file(path, _Run)
    run = run.test_run_data or run
    return run, [*(run.test_cases or ()), *run.conversational_test_cases]


def _check(metric: _Metric | None) -> Check | None:
    if metric is None or metric.error is not None:
        return None
    value = number_of(metric.score)
    return None if value is None else Check(value, metric.success)
