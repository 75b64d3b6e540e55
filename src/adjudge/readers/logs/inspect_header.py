"""The header of an Inspect log: under which conditions it was made, what it printed, and by what it clusters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from adjudge.readers.logs.record import CLUSTERED, NOT_REDUCED, Printed

_RULES = {"accuracy": "mean", "mean": "mean", "stderr": "standard error", "std": "standard deviation"}
_BY_CLUSTER = ("standard error", {"cluster"})
_OPERATION = {"max_connections", "max_retries", "timeout", "attempt_timeout", "adaptive_connections", "batch", "cache"}
"""Settings of a generation that change how fast it is, not what is asked."""
_LIMITS = ("message_limit", "token_limit", "time_limit", "working_limit", "cost_limit")


class _Dataset(msgspec.Struct):
    name: str | None = None
    samples: int | None = None
    sample_ids: list[str | int] | None = None


class _Eval(msgspec.Struct):
    task: str
    model: str
    task_version: int | str | float = 0
    task_args: dict[str, Any] = {}
    dataset: _Dataset = msgspec.field(default_factory=_Dataset)
    solver: str | None = None
    solver_args: dict[str, Any] | None = None
    model_generate_config: dict[str, Any] = {}
    model_args: dict[str, Any] = {}
    model_roles: dict[str, Any] | None = None
    config: dict[str, Any] = {}
    scorers: list[dict[str, Any]] | None = None


class _Metric(msgspec.Struct):
    name: str
    value: Any = None
    params: dict[str, Any] | None = None


class _Printed(msgspec.Struct):
    name: str
    scorer: str = ""
    reducer: str | None = None
    metrics: dict[str, _Metric] = {}


class _Results(msgspec.Struct):
    scores: list[_Printed] = []


class Header(msgspec.Struct):
    """What the log says of itself; `status` other than success: it is not finished."""

    version: int
    eval: _Eval
    status: str = "started"
    plan: dict[str, Any] | None = None
    results: _Results | None = None
    invalidated: bool = False

    @property
    def epochs(self) -> int:
        """How often every sample was to be tried."""
        epochs = self.eval.config.get("epochs")
        return epochs if isinstance(epochs, int) and epochs > 0 else 1


def status_notes(head: Header) -> list[str]:
    """What is to be known of the log before its numbers."""
    notes = []
    if head.status != "success":
        notes.append(f"{head.eval.task} of {head.eval.model} is not finished: the log's status is {head.status!r}")
    if head.invalidated:
        notes.append(f"{head.eval.task} of {head.eval.model} has samples that were marked invalid; they are counted")
    return notes


def conditions(head: Header) -> dict[str, Any]:
    """Under which conditions the samples were made."""
    evaluation = head.eval
    plan = head.plan or {}
    settings = plan.get("config")
    generation = {**evaluation.model_generate_config, **(settings if isinstance(settings, dict) else {})}
    finish = plan.get("finish")
    return {
        "task_version": evaluation.task_version,
        "scorers": [
            {"name": scorer.get("name"), "options": scorer.get("options") or {}} for scorer in evaluation.scorers or ()
        ],
        "dataset": evaluation.dataset.name,
        "solver": [
            evaluation.solver,
            evaluation.solver_args or {},
            [*(plan.get("steps") or []), *([] if finish is None else [finish])],
        ],
        "generation": _asked(generation),
        "limits": {name: evaluation.config[name] for name in _LIMITS if evaluation.config.get(name) is not None},
        "model_roles": {role: _of_role(model) for role, model in sorted((evaluation.model_roles or {}).items())},
        "task_args": evaluation.task_args,
        "epochs": head.epochs,
        "limit": evaluation.config.get("limit"),
        "dataset_samples": evaluation.dataset.samples,
        "model_args": sorted(evaluation.model_args),
    }


def _of_role(model: Any) -> Any:
    """A model that has a part in the evaluation, such as its grader, with the settings that change what it says."""
    if isinstance(model, list):
        return [_of_role(one) for one in model]
    if not isinstance(model, dict):
        return model
    return {"model": model.get("model"), "generation": _asked(model.get("config") or {})}


def _asked(generation: Mapping[str, Any]) -> dict[str, Any]:
    """Of the settings of a generation those that change what comes out."""
    return {key: value for key, value in sorted(generation.items()) if key not in _OPERATION and value is not None}


def printed(head: Header, names: list[str]) -> Iterator[Printed]:
    """The numbers that the log prints of scores with these names."""
    reducers = head.eval.config.get("epochs_reducer", ["mean"])
    usual = "mean" if reducers is None else str(reducers[0]) if reducers else NOT_REDUCED
    for score in head.results.scores if head.results else ():
        keyed = f"{score.scorer}/{score.name}"
        check = keyed if keyed in names else score.name
        for key, metric in score.metrics.items():
            if isinstance(metric.value, int | float) and math.isfinite(metric.value):
                rule = _RULES.get(metric.name.rpartition("/")[2], "")
                params = {name for name, value in (metric.params or {}).items() if value is not None}
                yield Printed(
                    name=key,
                    value=float(metric.value),
                    model=head.eval.model,
                    task=head.eval.task,
                    check=check,
                    rule=rule if not params else CLUSTERED if (rule, params) == _BY_CLUSTER else "",
                    reducer=score.reducer or usual,
                )


def cluster_key(head: Header) -> str | None:
    """The key of the samples' metadata by which the log's own standard error is clustered."""
    listed = (scorer.get("metrics") for scorer in head.eval.scorers or ())
    options = [metric.get("options") for metrics in listed if isinstance(metrics, list) for metric in metrics]
    printed = head.results.scores if head.results else ()
    options += [metric.params for score in printed for metric in score.metrics.values()]
    keys = (option.get("cluster") for option in options if isinstance(option, dict))
    return next((str(key) for key in keys if key), None)
