"""Invented logs in the shape of Inspect's: for the demo, for tests, and for the speed table."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adjudge.errors import OutputError
from adjudge.stats.resampling import generator

TASK = "capitals"
_TIME = "2026-01-05T09:00:00+00:00"
_STAMP = (2026, 1, 5, 9, 0, 0)  # of zip members, so that the same log has the same bytes
_VALUES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_LETTERS = "ABCD"
_INSTRUCTION = (
    "Answer the following multiple choice question. The entire content of your response should be of the following format: "
    "'ANSWER: $LETTER' (without quotes) where LETTER is one of A, B, C, D. Please assume that the reader knows the subject."
)


class Attempt(NamedTuple):
    """One attempt at a sample: what its score is (a letter, a number, NaN, None for no score), and its error."""

    id: int | str
    epoch: int
    value: str | float | None
    error: str | None = None
    reason: str | None = None
    target: str = "A"
    answer: str = "A"
    input: str = ""


class Spec(NamedTuple):
    """What a log says of itself."""

    model: str
    task: str = TASK
    task_version: int = 1
    epochs: int = 1
    sample_ids: tuple[int | str, ...] = ()
    scorer: str = "match"
    temperature: float = 0.0
    status: str = "success"


def document(spec: Spec, attempts: Sequence[Attempt]) -> dict[str, Any]:
    """A whole log as Inspect writes it in JSON; its numbers are those of Inspect's own rule."""
    evaluation = {
        "task": spec.task,
        "task_id": f"{spec.task}-{spec.model}",
        "task_version": spec.task_version,
        "task_args": {},
        "run_id": "demo",
        "created": _TIME,
        "dataset": {
            "name": spec.task,
            "samples": len(spec.sample_ids),
            "sample_ids": list(spec.sample_ids),
            "shuffled": False,
        },
        "model": spec.model,
        "model_generate_config": {"temperature": spec.temperature},
        "model_args": {},
        "config": {"epochs": spec.epochs, "epochs_reducer": ["mean"]},
        "packages": {"inspect_ai": "0.3.140"},
        "scorers": [{"name": spec.scorer, "options": {}, "metrics": [{"name": "inspect_ai/accuracy", "options": {}}]}],
    }
    return {
        "version": 2,
        "status": spec.status,
        "eval": evaluation,
        "plan": {"name": "plan", "steps": [{"solver": "generate", "params": {}}], "config": {}},
        "results": _results(spec, attempts),
        "stats": {"started_at": _TIME, "completed_at": _TIME, "model_usage": {}},
        "samples": [_sample(spec, attempt) for attempt in attempts],
    }


def _sample(spec: Spec, attempt: Attempt) -> dict[str, Any]:
    score: dict[str, Any] = {
        "value": attempt.value,
        "answer": attempt.answer,
        "explanation": f"answered {attempt.answer}",
    }
    if attempt.reason is not None:
        score["reason"] = attempt.reason
    text = attempt.input or f"What is the capital of country {attempt.id}?"
    error = None if attempt.error is None else {"message": attempt.error, "traceback": "", "traceback_ansi": ""}
    return {
        "id": attempt.id,
        "epoch": attempt.epoch,
        "input": text,
        "target": attempt.target,
        "scores": {} if attempt.value is None else {spec.scorer: score},
        "metadata": {},
        "messages": [{"role": "user", "content": text}, {"role": "assistant", "content": attempt.answer}],
        "output": {"model": spec.model, "choices": [{"message": {"role": "assistant", "content": attempt.answer}}]},
        "events": _events(spec, attempt, text),
        "model_usage": {spec.model: {"input_tokens": 63, "output_tokens": 2, "total_tokens": 65}},
        "attachments": {},
        **({} if error is None else {"error": error}),
    }


def _events(spec: Spec, attempt: Attempt, text: str) -> list[dict[str, Any]]:
    """What happened in one attempt, as long as such transcripts are for one question and one answer."""
    messages = [
        {"role": "system", "content": _INSTRUCTION, "source": "input"},
        {"role": "user", "content": text, "source": "input"},
    ]
    answer = {"role": "assistant", "content": attempt.answer, "source": "generate", "model": spec.model}
    usage = {"input_tokens": 63, "output_tokens": 2, "total_tokens": 65, "reasoning_tokens": 0}
    output = {
        "model": spec.model,
        "choices": [{"message": answer, "stop_reason": "stop"}],
        "usage": usage,
        "time": 0.81,
    }
    request = {"model": spec.model, "messages": messages, "max_tokens": 16, "temperature": spec.temperature}
    steps: list[dict[str, Any]] = [
        {"event": "sample_init", "sample": {"input": text, "target": attempt.target, "id": attempt.id}, "state": {}},
        *(
            {"event": "step", "action": action, "type": "solver", "name": name, "parent_id": f"solvers-{attempt.id}"}
            for name in ("system_message", "multiple_choice", "generate")
            for action in ("begin", "end")
        ),
        {
            "event": "model",
            "model": spec.model,
            "input": messages,
            "tools": [],
            "tool_choice": "none",
            "config": {"temperature": spec.temperature, "max_tokens": 16},
            "output": output,
            "call": {"request": request, "response": {"id": f"call-{attempt.id}", **output}},
        },
        *(
            {"event": "state", "changes": [{"op": "add", "path": f"/messages/{place}", "value": message}]}
            for place, message in enumerate([*messages, answer])
        ),
        {"event": "span_begin", "id": f"scorers-{attempt.id}", "type": "scorers", "name": "scorers"},
        {"event": "score", "score": {"value": None, "answer": attempt.answer}, "target": attempt.target},
        {"event": "span_end", "id": f"scorers-{attempt.id}"},
    ]
    return [
        {"uuid": f"{attempt.id}-{attempt.epoch}-{place}", "timestamp": _TIME, "working_start": 3.5 + place, **step}
        for place, step in enumerate(steps)
    ]


def _results(spec: Spec, attempts: Iterable[Attempt]) -> dict[str, Any]:
    """Accuracy and standard error by Inspect's rule: the mean of the epochs first, no answer 0, what has no score left out."""
    by_sample: dict[int | str, list[float]] = {}
    planned = len(spec.sample_ids) * spec.epochs
    for attempt in attempts:
        value = _VALUES.get(attempt.value, math.nan) if isinstance(attempt.value, str) else attempt.value
        if value is not None and not math.isnan(value):
            by_sample.setdefault(attempt.id, []).append(value)
    means = [sum(values) / len(values) for values in by_sample.values()]
    if not means:
        return {"total_samples": planned, "completed_samples": 0, "scores": []}
    error = float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 1 else 0.0
    metrics = {"accuracy": float(np.mean(means)), "stderr": error}
    score = {
        "name": spec.scorer,
        "scorer": spec.scorer,
        "params": {},
        "metrics": {name: {"name": name, "value": value, "params": {}} for name, value in metrics.items()},
    }
    return {"total_samples": planned, "completed_samples": len(by_sample), "scores": [score]}


def members(log: dict[str, Any], *, finished: bool = True) -> dict[str, bytes]:
    """The members of the log as a zip; one that is not finished has no header and its summaries in the journal."""
    samples = log["samples"]
    head = {key: value for key, value in log.items() if key != "samples"}
    start = {key: head[key] for key in ("version", "eval", "plan")}
    files = {"_journal/start.json": encoded(start)}
    files |= {f"samples/{sample['id']}_epoch_{sample['epoch']}.json": encoded(sample, 2) for sample in samples}
    summaries = encoded([_summary(sample) for sample in samples])
    files["_journal/summaries/1.json"] = summaries
    return files | ({"summaries.json": summaries, "header.json": encoded(head)} if finished else {})


def _summary(sample: dict[str, Any]) -> dict[str, Any]:
    kept = {key: sample[key] for key in ("id", "epoch", "input", "target", "scores", "metadata", "model_usage")}
    text = kept["input"]
    kept["input"] = text if len(text) <= 5120 else text[:5120] + "...\n(content truncated)"
    return kept | ({"error": sample["error"]["message"]} if "error" in sample else {}) | {"completed": True}


def encoded(value: Any, indent: int | None = None) -> bytes:
    """JSON, with NaN as Inspect writes it; its samples are indented."""
    return json.dumps(value, ensure_ascii=False, indent=indent).encode()


def write_eval(path: Path, log: dict[str, Any], *, finished: bool = True) -> Path:
    """The log as an `.eval` file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members(log, finished=finished).items():
            archive.writestr(zipfile.ZipInfo(name, _STAMP), data, zipfile.ZIP_DEFLATED)
    return path


def attempts_of(seed: int, model: str, *, samples: int, epochs: int, skill: float) -> list[Attempt]:
    """A model of a given skill at questions of different difficulty, with some errors and some refusals."""
    questions = generator(seed, "score example, questions")
    difficulty = questions.normal(0.0, 1.5, samples)
    targets = questions.integers(0, len(_LETTERS), samples)
    random = generator(seed, f"score example, {model}")
    attempts = []
    for sample in range(samples):
        chance = 1.0 / (1.0 + math.exp(difficulty[sample] - skill))
        target = _LETTERS[targets[sample]]
        for epoch in range(1, epochs + 1):
            luck, odd = random.random(2)
            right = luck < chance
            answer = target if right else _LETTERS[(targets[sample] + 1) % len(_LETTERS)]
            error = "TimeoutError: no answer within 60 s" if odd < 0.02 else None
            value = None if error else "N" if odd > 0.97 else "C" if right else "I"
            attempts.append(Attempt(sample + 1, epoch, value, error, target=target, answer=answer))
    return attempts


def write_example(folder: Path, seed: int, *, samples: int = 150, epochs: int = 2, force: bool = False) -> list[Path]:
    """Logs of two models on the same task."""
    paths = []
    folder.mkdir(parents=True, exist_ok=True)
    for model, skill in (("acme/large", 1.4), ("acme/small", 0.6)):
        path = folder / f"{model.replace('/', '_')}.eval"
        if path.exists() and not force:
            raise OutputError(f"{path} exists already; --force replaces it")
        spec = Spec(model, epochs=epochs, sample_ids=tuple(range(1, samples + 1)))
        attempts = attempts_of(seed, model, samples=samples, epochs=epochs, skill=skill)
        paths.append(write_eval(path, document(spec, attempts)))
    return paths
