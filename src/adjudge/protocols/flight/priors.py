"""The confidence prior: what is said of a model before its answers are judged. It is shown beside the scores; none reads it.

Three shapes are read: {"results": [{"model_name", "c_score"}]} of one task, and the method's own ModelConfidence
{model_name, confidence_m {S1_score, M1_score, M3_score}, calculation_source, version, metadata}, as a list or a map.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from adjudge.errors import ConfigError
from adjudge.protocols.flight.fields import TASKS, task_named_in

EXPECTED = 'expected {"results": [{"model_name": …, "c_score": …}]}, or the ModelConfidence of every model, in a list or by name'
_VERSION = "1"


def read_priors(files: Sequence[str], tasks: Sequence[str]) -> dict[str, Any]:
    """The priors of all files; one with plain scores is of the task that its name or folder names, or the only one asked for."""
    priors: dict[str, Any] = {}
    for name in files:
        told, _, path = name.partition("=") if name.partition("=")[0] in TASKS else ("", "", name)
        try:
            data = msgspec.json.decode(Path(path).read_bytes())
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ConfigError(f"{path}: is not JSON; {EXPECTED}") from None
        if isinstance(data, dict) and isinstance(data.get("results"), list):
            task = told or task_named_in(path) or (tasks[0] if len(tasks) == 1 else "")
            if not task:
                raise ConfigError(f"{path}: its scores are of one task, but which? Write --confidence S1={path}")
            data = [
                {"model_name": _name(item, path), "confidence_m": {f"{task}_score": item.get("c_score")}}
                for item in data["results"]
            ]
        for model, prior in _priors(data, path).items():
            priors[model] = _joined(priors[model], prior) if model in priors else prior
    return priors


def priors_of(confidence: Mapping[str, Any], tasks: Sequence[str]) -> dict[str, Any]:
    """Priors of a configuration in the method's shape; a plain number is that of the only task."""
    plain = {model: score for model, score in confidence.items() if isinstance(score, int | float)}
    if plain and len(tasks) != 1:
        raise ConfigError("confidence gives one number a model, but there are several tasks; give every task's score")
    shaped = [{"model_name": model, "confidence_m": {f"{tasks[0]}_score": score}} for model, score in plain.items()]
    others = {model: prior for model, prior in confidence.items() if model not in plain}
    return {**_priors(shaped, "confidence"), **_priors(others, "confidence")}


def _priors(data: Any, where: str) -> dict[str, Any]:
    if isinstance(data, dict) and "confidence_m" in data:
        data = [data]
    if isinstance(data, dict):
        data = [{"model_name": name, **prior} if isinstance(prior, dict) else prior for name, prior in data.items()]
    if not isinstance(data, list):
        raise ConfigError(f"{where}: {EXPECTED}")
    return {_name(item, where): _prior(item, where) for item in data}


def _name(item: Any, where: str) -> str:
    if not isinstance(item, dict) or not isinstance(item.get("model_name"), str):
        raise ConfigError(f"{where}: an entry has no `model_name`; {EXPECTED}")
    name: str = item["model_name"]
    return name


def _prior(item: dict[str, Any], where: str) -> dict[str, Any]:
    scores = item.get("confidence_m")
    if not isinstance(scores, dict):
        raise ConfigError(f"{where}: {item['model_name']!r} has no `confidence_m`; {EXPECTED}")
    known = {f"{task}_score" for task in TASKS}
    for name, value in scores.items():
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if name not in known or not (number or value is None):
            raise ConfigError(
                f"{where}: {item['model_name']!r}: confidence_m.{name} is {value!r}, expected numbers under "
                f"{', '.join(sorted(known))}"
            )
    return {
        "model_name": item["model_name"],
        "confidence_m": {f"{task}_score": scores.get(f"{task}_score") for task in TASKS},
        "calculation_source": str(item.get("calculation_source") or "confidence file"),
        "version": str(item.get("version") or _VERSION),
        "metadata": item.get("metadata") if isinstance(item.get("metadata"), dict) else {},
    }


def _joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Two priors of one model, of different tasks."""
    scores = {
        task: second["confidence_m"][task] if first["confidence_m"][task] is None else first["confidence_m"][task]
        for task in first["confidence_m"]
    }
    return {**first, "confidence_m": scores}
