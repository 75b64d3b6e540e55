"""HELM: a run folder with per_instance_stats.json, run_spec.json, scenario_state.json and stats.json.

A sample is an instance, with its perturbation; a trial is a train trial. Splits are tasks of their own, as in HELM's
tables. Statistics that measure the run and not the answer (tokens, times) are no scores.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from adjudge.readers.logs.documents import beside, decoded_file, number_of
from adjudge.readers.logs.record import (
    ERRORED,
    MISSING,
    NO_SCORE,
    Log,
    Printed,
    Record,
    Trial,
    check_of,
    content_hash,
    score_of,
    text_of,
)

_SPEC, _STATE, _STATS = "run_spec.json", "scenario_state.json", "stats.json"
_NO_SCORE = re.compile(
    "num_|inference_|batch_size|finish_reason|training_|prompt_truncated|max_prob|logprob|perplexity|bits_per_byte"
)


class _Name(msgspec.Struct):
    name: str
    split: str | None = None
    sub_split: str | None = None
    perturbation: dict[str, Any] | None = None


class _Stat(msgspec.Struct):
    name: _Name
    count: int = 0
    mean: float | None = None


class _Instance(msgspec.Struct):
    instance_id: str
    train_trial_index: Trial = 0
    stats: list[_Stat] = []
    perturbation: dict[str, Any] | None = None


class _Spec(msgspec.Struct):
    name: str = ""
    scenario_spec: dict[str, Any] = {}
    adapter_spec: dict[str, Any] = {}
    metric_specs: list[dict[str, Any]] = []
    data_augmenter_spec: dict[str, Any] = {}


class _Text(msgspec.Struct):
    text: str | None = None


class _Reference(msgspec.Struct):
    output: _Text | None = None
    tags: list[str] = []


class _Asked(msgspec.Struct):
    id: str | None = None
    split: str | None = None
    input: _Text | None = None
    references: list[_Reference] = []
    perturbation: dict[str, Any] | None = None


class _Answer(msgspec.Struct):
    success: bool = True
    cached: bool | None = None
    error: str | None = None
    completions: list[dict[str, Any]] = []


class _Request(msgspec.Struct):
    instance: _Asked
    train_trial_index: Trial = 0
    output_mapping: dict[str, str] | None = None
    result: _Answer | None = None


class _State(msgspec.Struct):
    request_states: list[_Request] = []


def header(path: str) -> Log:
    """What the folder says of the run."""
    instances = _instances(path)
    spec = beside(path, _SPEC, _Spec) or _Spec(name=Path(path).parent.name)
    model = str(spec.adapter_spec.get("model") or "unnamed")
    names = _names(instances, spec)
    splits = {stat.name.split for instance in instances for stat in instance.stats}
    tasks = sorted({_task(spec, split) for split in splits})
    folder = Path(path).parent
    files = [path, *(str(folder / name) for name in (_SPEC, _STATE, _STATS) if (folder / name).is_file())]
    return Log(
        title="HELM run",
        files=files,
        models=[model],
        tasks=tasks,
        checks=names,
        conditions={task: _conditions(spec) for task in tasks},
        printed=list(_printed(path, spec, model, names)),
        unread=["statistics of tokens, times and log probabilities"],
        unscored=not names,
    )


def records(log: Log, scorer: str) -> Iterator[Record]:
    """Every instance; a request without statistics is missing."""
    spec = beside(log.path, _SPEC, _Spec) or _Spec(name=Path(log.path).parent.name)
    state = beside(log.path, _STATE, _State) or _State()
    asked = {
        _key(one.instance.id or "", one.instance.perturbation, one.train_trial_index): one
        for one in state.request_states
    }
    seen = set()
    for line, instance in enumerate(_instances(log.path), 1):
        key = _key(instance.instance_id, instance.perturbation, instance.train_trial_index)
        seen.add(key)
        values = {stat.name.name: stat.mean for stat in instance.stats if stat.count and _is_score(stat.name.name)}
        split = next((stat.name.split for stat in instance.stats if stat.name.split), None)
        yield _record(key, asked.get(key), values, scorer, line, log, _task(spec, split))
    for key, request in asked.items():
        if key not in seen:
            record = _record(key, request, {}, scorer, 0, log, _task(spec, request.instance.split))
            if record.status != ERRORED or not record.error:
                record.status, record.error = MISSING, "the run has no statistics of it"
            yield record


def _instances(path: str) -> list[_Instance]:
    """The instances with the statistics of all metrics: every metric that looks at instances has an entry of its own."""
    instances: dict[tuple[str, int], _Instance] = {}
    for one in decoded_file(path, list[_Instance]):
        first = instances.setdefault(_key(one.instance_id, one.perturbation, one.train_trial_index), one)
        if first is not one:
            first.stats += one.stats
    return list(instances.values())


def _record(
    key: tuple[str, int],
    request: _Request | None,
    values: dict[str, float | None],
    scorer: str,
    line: int,
    log: Log,
    task: str,
) -> Record:
    score = score_of(values.get(scorer)) or NO_SCORE
    answer = request.result if request is not None else None
    failed = answer is not None and not answer.success
    instance = None if request is None else request.instance
    references = [] if instance is None else instance.references
    correct = [one.output.text for one in references if one.output and "correct" in one.tags]
    return Record(
        id=key[0],
        model=log.models[0],
        task=task,
        trial=key[1],
        error=(answer.error or "the request failed") if failed and answer else None,
        answer=text_of(answer.completions[0].get("text")) if answer and answer.completions else None,
        target=text_of(correct[0]) if correct else None,
        input=text_of(_asked(request)),
        input_hash=None
        if instance is None or instance.input is None
        else content_hash(instance.input.text, sorted(map(str, correct))),
        cached=None if answer is None else answer.cached,
        line=line,
        checks=[check_of(values.get(name)) for name in log.checks],
        **score.fields(ERRORED if failed else None),
    )


def _asked(request: _Request | None) -> str | None:
    """The question and, of a multiple choice, what its letters stand for."""
    if request is None or request.instance.input is None or request.instance.input.text is None:
        return None
    choices = (request.output_mapping or {}).items()
    return request.instance.input.text + "".join(f"\n{letter}. {text}" for letter, text in choices)


def _key(instance: str, perturbation: dict[str, Any] | None, trial: int) -> tuple[str, int]:
    if not perturbation:
        return instance, trial + 1
    name = str(perturbation.get("name") or "perturbed")
    return f"{instance}/{name}-{content_hash(perturbation)[:6]}", trial + 1


def _is_score(name: str) -> bool:
    return _NO_SCORE.match(name) is None


def _names(instances: list[_Instance], spec: _Spec) -> list[str]:
    """The scores, those that the metrics of the run name first."""
    names = dict.fromkeys(
        stat.name.name for instance in instances for stat in instance.stats if stat.count and _is_score(stat.name.name)
    )
    named = [str(name) for metric in spec.metric_specs for name in (metric.get("args") or {}).get("names") or ()]
    return [name for name in dict.fromkeys((*named, *names)) if name in names]


def _task(spec: _Spec, split: str | None) -> str:
    """The run's name without its model, and the split."""
    scenario, _, arguments = spec.name.partition(":")
    kept = [part for part in arguments.split(",") if part and not part.startswith(("model=", "model_deployment="))]
    return scenario + (":" + ",".join(kept) if kept else "") + (f"/{split}" if split else "")


def _conditions(spec: _Spec) -> dict[str, Any]:
    adapter = {key: value for key, value in spec.adapter_spec.items() if key not in {"model", "model_deployment"}}
    generation = ("temperature", "max_tokens", "stop_sequences", "num_outputs")
    asked = {key: value for key, value in adapter.items() if key not in generation and not key.startswith("max_eval")}
    return {
        "run_spec": content_hash(spec.scenario_spec, spec.data_augmenter_spec),
        "metric": content_hash(spec.metric_specs),
        "n_shot": adapter.get("max_train_instances"),
        "prompt": content_hash(asked),
        "generation": {key: adapter.get(key) for key in generation},
        "limit": adapter.get("max_eval_instances"),
    }


def _printed(path: str, spec: _Spec, model: str, names: list[str]) -> Iterator[Printed]:
    for stat in beside(path, _STATS, list[_Stat]) or ():
        value = number_of(stat.mean)
        if stat.name.name in names and value is not None and not stat.name.perturbation and stat.count:
            task = _task(spec, stat.name.split)
            part = stat.name.sub_split
            yield Printed(
                name=f"mean of {part}" if part else "mean",
                value=value,
                model=model,
                task=task,
                check=stat.name.name,
                rule="" if part else "mean",
            )
