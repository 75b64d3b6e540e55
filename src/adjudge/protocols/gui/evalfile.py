"""Evaluation files of every shape ever written: read, migrate to v1.0, validate, average, and write from a run."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from adjudge.errors import InputError
from adjudge.protocols.gui import schemas
from adjudge.provenance.canonical import pretty
from adjudge.runs.run import Run
from adjudge.stats.exact import mean_of, rounded, total

# |rate − k/n| may be this large: files round to three digits, or to two where they show no more.
ROUNDING, COARSE = 0.0005, 0.005
UNKNOWN = "unknown"
_BOM = b"\xef\xbb\xbf"
_NO_NUMBER = re.compile(rb"(?<![\w\"])-?(?:NaN|Infinity)(?![\w\"])")
_KNOWN = frozenset({*schemas.REQUIRED, *schemas.OPTIONAL})
_MEASURED = frozenset({*_KNOWN, *schemas.LATER_RATES, "click_distance_50th_percentile"} - {*schemas.COUNTS})
_TOP = ("schema_version", "config_path", "backend", "dsl_mode", "migration_notes", "metrics_source")


def load(path: str) -> dict[str, Any]:
    """A JSON object from a file, or from a run directory the evaluation that `export --eval-json` writes."""
    if Path(path).is_dir():
        evaluation: dict[str, Any] = msgspec.json.decode(eval_json(Run(Path(path))))
        return evaluation
    data = b""
    try:
        data = Path(path).read_bytes().removeprefix(_BOM)
        document = msgspec.json.decode(data)
    except FileNotFoundError:
        raise InputError("there is no such file", file=path) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        literal = _NO_NUMBER.search(data)
        what = f"{literal[0].decode()} is no JSON number; a metric without a value is null" if literal else str(error)
        raise InputError(f"is not JSON: {what}", file=path) from None
    if not isinstance(document, dict):
        raise InputError(f"is a JSON {type(document).__name__}, expected an evaluation (an object)", file=path)
    shape(document, path)
    return document


def shape(document: dict[str, Any], path: str = "file") -> str:
    """`v1.0`, `nested` (older: a metric that v1.0 requires is absent) or `bare` (the metrics alone)."""
    metrics = document.get("metrics")
    if isinstance(metrics, dict):
        complete = all(name in metrics for name in schemas.REQUIRED)
        return "v1.0" if complete and "config_path" in document and "backend" in document else "nested"
    if metrics is None and _KNOWN & document.keys():
        return "bare"
    raise InputError(
        "is no evaluation: it has neither a `metrics` object nor any of " + ", ".join(schemas.REQUIRED), file=path
    )


def metrics_of(document: dict[str, Any]) -> dict[str, Any]:
    """The metrics of a file of any shape."""
    if shape(document) == "bare":
        return {name: value for name, value in document.items() if name not in _TOP}
    metrics: dict[str, Any] = document["metrics"]
    return metrics


def in_use(document: dict[str, Any]) -> dict[str, Any]:
    """The metrics of a file with null in the place of every sentinel."""
    metrics = metrics_of(document)
    return metrics | dict.fromkeys(deprecated(metrics))


def deprecated(metrics: dict[str, Any]) -> list[str]:
    """The metrics that say −1 where they cannot be negative: kept by name, no longer computed."""
    return [
        name for name, value in metrics.items() if name in _MEASURED and is_number(value) and value == schemas.SENTINEL
    ]


def is_number(value: Any) -> bool:
    """Whether a value is a number; JSON's true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def migrate(document: dict[str, Any]) -> dict[str, Any]:
    """The same evaluation as v1.0: every key kept, what v1.0 requires and the file lacks null with a note."""
    kind = shape(document)
    metrics = metrics_of(document)
    rest = {name: value for name, value in document.items() if name != "metrics" and (kind != "bare" or name in _TOP)}
    notes = [str(note) for note in rest.pop("migration_notes", ())]
    top: dict[str, Any] = {"schema_version": rest.pop("schema_version", schemas.VERSION)}
    for name in ("config_path", "backend"):
        value = rest.pop(name, None)
        if not isinstance(value, str):
            notes.append(f"{name} is not in the file")
        top[name] = value if isinstance(value, str) else UNKNOWN
    top["dsl_mode"] = rest.pop("dsl_mode", "coord")
    notes += [f"metrics.{name} is not in the file" for name in schemas.REQUIRED if name not in metrics]
    # A note that an earlier migration left is not written twice.
    kept = {"migration_notes": list(dict.fromkeys(notes))} if notes else {}
    return {**top, "metrics": {**dict.fromkeys(schemas.REQUIRED), **metrics}, **rest, **kept}


def problems(document: dict[str, Any], *, strict: bool = False) -> list[str]:
    """What keeps a file of any shape from being a possible evaluation; empty when nothing does.

    `strict` asks for all that v1.0 requires: the seven primary metrics, `config_path` and `backend`.
    """
    legacy = shape(document) != "v1.0" and not strict
    metrics = metrics_of(document)
    if not _KNOWN & metrics.keys():
        return [f"metrics has none of {', '.join(schemas.REQUIRED)}"]
    unset = legacy or (bool(document.get("migration_notes")) and not strict)
    absent = [f"{name} is missing" for name in schemas.REQUIRED if strict and name not in metrics]
    listed = _top_problems(document, legacy=legacy) + absent
    for name in (*schemas.REQUIRED, *schemas.OPTIONAL, *schemas.LATER_RATES, *schemas.LATER_COUNTS):
        if name not in metrics:
            continue
        whole = name in schemas.COUNTS or name in schemas.LATER_COUNTS
        bound = None if whole or name in schemas.LOWER_IS_BETTER else 1.0
        allowed = unset or name not in schemas.REQUIRED or name in schemas.NULLABLE
        listed += _value_problems(name, metrics[name], whole=whole, high=bound, nullable=allowed)
    if not listed:
        mode = str(document.get("dsl_mode", "coord"))
        listed = _contradictions(in_use(document), mode, unset=unset) + _impossible_rates(in_use(document))
    return listed


def _top_problems(document: dict[str, Any], *, legacy: bool) -> list[str]:
    listed = []
    for name in ("config_path", "backend"):
        value = document.get(name)
        if not isinstance(value, str) and not (legacy and value is None):
            listed.append(f"{name} is {_shown(value)}, expected a string")
    mode = document.get("dsl_mode", "coord")
    if not isinstance(mode, str) or mode not in {"coord", "som"}:
        listed.append(f"dsl_mode is {_shown(mode)}, expected coord or som")
    version = document.get("schema_version", schemas.VERSION)
    if not (isinstance(version, str) and version.startswith("1.")):
        listed.append(f"schema_version is {_shown(version)}, expected 1.x")
    return listed


def _value_problems(name: str, value: Any, *, whole: bool, high: float | None, nullable: bool) -> list[str]:
    if value is None:
        return [] if nullable else [f"{name} is null, which v1.0 does not allow"]
    if not (is_number(value) and math.isfinite(value)) or (whole and value != int(value)):
        return [f"{name} is {_shown(value)}, expected {'a whole number' if whole else 'a number'}"]
    if not whole and value == schemas.SENTINEL:
        return []
    if value < 0 or (high is not None and value > high):
        return [f"{name} is {value:g}, expected {'0 or more' if high is None else f'0 to {high:g}'}"]
    return []


def _contradictions(metrics: dict[str, Any], mode: str, *, unset: bool) -> list[str]:
    """Metrics that cannot stand together."""
    pairs = metrics.get("coord_error_count")
    listed = []
    for name in ("mean_coord_error", "click_hit_rate"):
        if pairs == 0 and metrics.get(name) is not None:
            listed.append(f"{name} is {metrics[name]:g} although coord_error_count is 0; over nothing it is null")
        if pairs and metrics.get(name) is None and not unset:
            listed.append(f"{name} is null although coord_error_count is {pairs}")
    if mode == "som":
        listed += [
            f"{name} is {metrics[name]:g}, expected null in SoM mode"
            for name in ("mean_coord_error", "click_hit_rate", "bbox_hit_rate")
            if metrics.get(name) is not None
        ]
    elif metrics.get("element_accuracy") is not None:
        listed.append(f"element_accuracy is {metrics['element_accuracy']:g}, expected null in coordinate mode")
    if metrics.get("num_steps") == 0:
        listed.append("num_steps is 0; an evaluation of no steps is none")
    return listed


def denominator(name: str, metrics: dict[str, Any]) -> int | None:
    """The number a rate is over, where a file says it."""
    of = schemas.OVER.get(name)
    n = None if of is None else metrics.get(of)
    if name == "bbox_hit_rate" and {"click_steps", "click_steps_without_box"} <= metrics.keys():
        n = metrics["click_steps"] - metrics["click_steps_without_box"]
    return int(n) if n is not None and is_number(n) and n > 0 else None


def numerator(rate: float, n: int) -> int | None:
    """The integer k with |rate − k/n| ≤ 0.0005 (0.005 where the rate shows two digits), or None when there is none."""
    k = round(rate * n)
    bound = COARSE if rate == round(rate, 2) else ROUNDING
    # A hair more than the bound, for rates whose own rounding sits on it.
    return k if abs(rate - k / n) <= bound + 1e-12 else None


def _impossible_rates(metrics: dict[str, Any]) -> list[str]:
    """Rates that no whole number of steps, clicks or episodes can give."""
    listed = []
    for name, value in metrics.items():
        n = denominator(name, metrics)
        if n is not None and is_number(value) and numerator(float(value), n) is None:
            below = math.floor(value * n)
            listed.append(
                f"{name} is {value:g} over {n}, which no whole number gives "
                f"({below}/{n} = {below / n:.4f}, {below + 1}/{n} = {(below + 1) / n:.4f})"
            )
    return listed


_CLICKS = ("mean_coord_error", "click_distance_50th_percentile")
_EPISODES = (
    *("mean_episode_progress", "mean_episode_step_score", "mean_episode_full_score"),
    *("weak_episode_success_rate", "self_reported_success_rate"),
)
WEIGHT = {
    **schemas.OVER,
    **dict.fromkeys(_CLICKS, "coord_error_count"),
    **dict.fromkeys(_EPISODES, "num_episodes"),
    "bbox_hit_rate": "click_steps",
}
_SHORT = {
    "action_accuracy": "action_type_accuracy",
    "click_hit_rate": "click_hit_rate",
    "episode_success": "episode_success_rate",
}
"""The method's three aggregates: `mean_…` is the plain mean over files, `weighted_…` ours, weighted by n."""
_SUMMED = frozenset({*schemas.COUNTS, *schemas.LATER_COUNTS})


def aggregate(documents: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """The files, by label, as one object; a metric that cannot be averaged is kept by file."""
    tables = [(label, in_use(document)) for label, document in documents]
    names = [name for name in (*schemas.REQUIRED, *schemas.OPTIONAL) if any(name in table for _, table in tables)]
    names += sorted({name for _, table in tables for name in table} - set(names))
    averaged, by_file = {}, {}
    for name in names:
        values = [table.get(name) for _, table in tables]
        if all(value is None or is_number(value) for value in values):
            averaged[name] = _summed(values) if name in _SUMMED else _averaged(name, tables)
        else:
            by_file[name] = {label: table[name] for label, table in tables if name in table}
    short = {f"mean_{name}": averaged.get(metric, {}).get("mean") for name, metric in _SHORT.items()}
    short |= {f"weighted_{name}": averaged.get(metric, {}).get("weighted_mean") for name, metric in _SHORT.items()}
    return {
        "files": [label for label, _ in tables],
        **short,
        "notes": _notes(documents, averaged),
        "metrics": averaged,
        "not_averaged": by_file,
    }


def _notes(documents: Sequence[tuple[str, dict[str, Any]]], averaged: dict[str, Any]) -> list[str]:
    """What is in no mean: sentinels by file, nulls of the three aggregates, and files that do not say their n."""
    notes = [
        f"{label}: {name} is −1, which stands for no value; it is in no mean"
        for label, document in documents
        for name in deprecated(metrics_of(document))
    ]
    for metric in _SHORT.values():
        entry = averaged.get(metric, {"null_files": len(documents), "files": 0, "files_without_weight": 0})
        if entry["null_files"]:
            notes.append(f"{entry['null_files']} of {len(documents)} files have no {metric}; they are in no mean of it")
        if entry["files_without_weight"]:
            weight = WEIGHT[metric]
            notes.append(
                f"{entry['files_without_weight']} files with {metric} have no {weight}; the weighted mean is without them"
            )
    return notes


def _summed(values: Sequence[Any]) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    return {"sum": sum(known) if known else None, "files": len(known), "null_files": len(values) - len(known)}


def _averaged(name: str, tables: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    known = [table for _, table in tables if table.get(name) is not None]
    weight = WEIGHT.get(name)
    counts: list[Any] = [None if weight is None else table.get(weight) for table in known]
    weighted = [
        (float(table[name]), int(count))
        for table, count in zip(known, counts, strict=True)
        if is_number(count) and count > 0
    ]
    n = sum(count for _, count in weighted)
    return {
        "mean": mean_of([float(table[name]) for table in known]) if known else None,
        "weighted_mean": rounded(sum(total([value]) * count for value, count in weighted), n) if weighted else None,
        "weight": weight,
        "n": n if weighted else None,
        "files": len(known),
        "null_files": len(tables) - len(known),
        "files_without_weight": len(known) - len(weighted),
    }


def eval_json(run: Run, about: dict[str, Any] | None = None) -> bytes:
    """The evaluation JSON of a run. `about` is added to what the run's configuration says of itself."""
    if run.manifest.protocol != "gui":
        raise InputError(
            f"is a run of protocol {run.manifest.protocol}; an evaluation JSON comes from gui", file=str(run.path)
        )
    metrics = run.metrics
    if "dsl_mode" not in metrics:
        raise InputError("is a grounding run; an evaluation JSON comes from episodes", file=str(run.path))
    nested = ("metrics_by_action_type", "metrics_by_scenario", "metrics_by_platform")
    return pretty(
        {
            "schema_version": schemas.VERSION,
            **{name: metrics[name] for name in ("config_path", "backend", "dsl_mode")},
            "metrics": {**metrics["metrics"], **{name: metrics[name] for name in nested}},
            **{name: metrics[name] for name in ("click_radius", "space", "baselines", "broken_scenarios")},
            "eval_timestamp": run.manifest.timestamp,
            **(run.manifest.config.get("about") or {}),
            **(about or {}),
        }
    )


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 40 else text[:39] + "…"
