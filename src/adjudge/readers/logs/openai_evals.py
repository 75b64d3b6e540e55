"""OpenAI evals: a JSON Lines file with the specification first, then events, then the final report.

A sample's score is what its `match` events say, or a number of its `metrics` events; one with an `error` event is errored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from adjudge.errors import InputError
from adjudge.readers.logs.documents import decoded_lines, number_of
from adjudge.readers.logs.record import (
    ERRORED,
    NO_SCORE,
    Log,
    Printed,
    Record,
    check_of,
    content_hash,
    score_of,
    text_of,
)

_MATCH = "match"
_REASONS = ("message", "msg", "error", "type")
_CHOICE = "choice"
"""Of `metrics`, where a model graded: it was asked after the answer, with the answer in its prompt."""


class _Event(msgspec.Struct, gc=False):
    spec: dict[str, Any] | None = None
    final_report: dict[str, Any] | None = None
    sample_id: str | None = None
    type: str | None = None
    data: Any = None


class _Sample(msgspec.Struct):
    line: int
    matches: list[bool] = []
    metrics: dict[str, Any] = {}
    error: str | None = None
    prompt: Any = None
    sampled: Any = None
    first_sampled: Any = None
    expected: Any = None


def header(path: str) -> Log:
    """What the first and the last line say, and which scores the events have."""
    spec, report, samples = _read(path)
    names = list(dict.fromkeys(name for sample in samples.values() for name in _scores(sample)))
    functions = spec.get("completion_fns") or [spec.get("model_name") or "unnamed"]
    model = ", ".join(map(str, functions)) if isinstance(functions, list) else str(functions)
    task = str(spec.get("base_eval") or spec.get("eval_name") or "")
    log = Log(
        title="OpenAI evals log",
        files=[path],
        models=[model],
        tasks=[task],
        checks=names,
        conditions={task: _conditions(spec)},
        unscored=not names,
    )
    if report is None:
        log.notes.append(f"{task} of {model} is not finished: it has no final report")
    for name, value in (report or {}).items():
        number = number_of(value)
        if number is not None:
            check = _MATCH if name == "accuracy" else name
            rule = "mean" if check in names else ""
            log.printed.append(Printed(name=name, value=number, model=model, task=task, check=check, rule=rule))
    return log


def records(log: Log, scorer: str) -> Iterator[Record]:
    """Every sample that has an event."""
    _, _, samples = _read(log.path)
    for name, sample in samples.items():
        scores = _scores(sample)
        score = score_of(scores.get(scorer)) or NO_SCORE
        yield Record(
            id=name,
            model=log.models[0],
            task=log.tasks[0],
            error=sample.error or ("no event scores it" if score is NO_SCORE else None),
            answer=text_of(sample.first_sampled if _CHOICE in sample.metrics else sample.sampled),
            target=text_of(sample.expected),
            input=text_of(sample.prompt),
            input_hash=content_hash(sample.prompt, sample.expected),
            line=sample.line,
            checks=[check_of(scores.get(name)) for name in log.checks],
            **score.fields(None if sample.error is None else ERRORED),
        )


def _read(path: str) -> tuple[dict[str, Any], dict[str, Any] | None, dict[str, _Sample]]:
    spec: dict[str, Any] = {}
    report: dict[str, Any] | None = None
    samples: dict[str, _Sample] = {}
    for line, event in decoded_lines(path, _Event):
        if event.spec is not None:
            spec = event.spec
        elif event.final_report is not None:
            report = event.final_report
        elif event.sample_id is not None:
            sample = samples.setdefault(event.sample_id, _Sample(line=line))
            _add(sample, event, path, line)
    return spec, report, samples


def _add(sample: _Sample, event: _Event, path: str, line: int) -> None:
    data = event.data if isinstance(event.data, dict) else {}
    if event.type == _MATCH:
        if not isinstance(data.get("correct"), bool):
            raise InputError("a `match` event has no `correct` that is true or false", file=path, line=line)
        sample.matches.append(data["correct"])
        sample.expected = data.get("expected", sample.expected)
        sample.sampled = data.get("sampled", data.get("picked", sample.sampled))
    elif event.type == "metrics":
        sample.metrics |= data
    elif event.type == "error":
        sample.error = str(next(filter(None, map(data.get, _REASONS)), "an error event"))
    elif event.type == "sampling":
        if sample.prompt is None:
            sample.prompt, sample.first_sampled = data.get("prompt"), data.get("sampled")
        sample.sampled = data.get("sampled", sample.sampled)


def _scores(sample: _Sample) -> dict[str, Any]:
    """By name; several matches of one sample are their share."""
    matches = sample.matches
    shares = {_MATCH: matches[0] if len(matches) == 1 else sum(matches) / len(matches)} if matches else {}
    return shares | {name: value for name, value in sample.metrics.items() if not isinstance(value, str | list | dict)}


def _conditions(spec: dict[str, Any]) -> dict[str, Any]:
    config = spec.get("run_config") or {}
    return {
        "task_version": spec.get("eval_name"),
        "split": spec.get("split"),
        "run_spec": content_hash(config.get("eval_spec")),
        "seeds": [config.get("seed")],
        "limit": config.get("max_samples"),
    }
