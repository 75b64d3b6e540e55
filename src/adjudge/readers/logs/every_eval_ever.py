"""Every-Eval-Ever 0.3: a file of instances, with the record of the evaluation beside it.

A sample is a sample_id under an evaluation's name; one that stands several times has as many trials.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from adjudge.errors import InputError
from adjudge.readers.logs.documents import decoded_file, decoded_lines, number_of
from adjudge.readers.logs.record import (
    ABSTAINED,
    ERRORED,
    MISSING,
    NO_SCORE,
    SCORED,
    UNPARSED,
    Log,
    Printed,
    Record,
    content_hash,
    score_of,
    text_of,
)

VERSION = "0.3"
_SAMPLES = "_samples.jsonl"
# What adjudge itself writes into the metadata of an instance.
_BUCKETS = {"abstained": ABSTAINED, "unparsed": UNPARSED, "errored": ERRORED, "missing": MISSING}


class _Input(msgspec.Struct):
    raw: str = ""
    reference: list[str] = []


class _Output(msgspec.Struct):
    raw: list[str] = []


class _Evaluation(msgspec.Struct):
    score: float | None = None
    is_correct: bool | None = None


class _Attribution(msgspec.Struct):
    extracted_value: str | None = None
    is_terminal: bool = False


class _Instance(msgspec.Struct):
    evaluation_id: str
    model_id: str
    sample_id: str
    evaluation: _Evaluation
    schema_version: str = ""
    evaluation_name: str = ""
    sample_hash: str | None = None
    input: _Input | None = None
    output: _Output | None = None
    answer_attribution: list[_Attribution] = []
    error: str | None = None
    metadata: dict[str, str] | None = None


class _Details(msgspec.Struct):
    score: float | None = None


class _Result(msgspec.Struct):
    evaluation_name: str = ""
    metric_config: dict[str, Any] = {}
    score_details: _Details | None = None


class _Aggregate(msgspec.Struct):
    schema_version: str = ""
    evaluation_results: list[_Result] = []


def header(path: str) -> Log | None:
    """What the instances and the record beside them say; a record alone is read with its instances, or refused."""
    if Path(path).suffix == ".json":
        if Path(path).with_name(Path(path).stem + _SAMPLES).is_file():
            return None
        raise InputError(f"is an Every-Eval-Ever record without its instances ({Path(path).stem}{_SAMPLES})", file=path)
    models: dict[str, None] = {}
    tasks: dict[str, None] = {}
    decides = False
    for line, instance in decoded_lines(path, _Instance):
        version = instance.schema_version.rpartition("_")[2]
        if version and not version.startswith(f"{VERSION}."):
            what = f"is of Every-Eval-Ever {version}; this version of adjudge reads {VERSION}"
            raise InputError(what, file=path, line=line)
        models[instance.model_id] = tasks[instance.evaluation_name] = None
        decides = decides or instance.evaluation.is_correct is not None
    name = Path(path).name
    record = Path(path).with_name(name.removesuffix(_SAMPLES) + ".json") if name.endswith(_SAMPLES) else None
    known = record is not None and record.is_file()
    aggregate = decoded_file(str(record), _Aggregate) if known else _Aggregate()
    configs = [content_hash(result.metric_config) for result in aggregate.evaluation_results]
    return Log(
        title=f"Every-Eval-Ever {VERSION} instances",
        files=[path, *([str(record)] if known else [])],
        models=list(models),
        tasks=list(tasks),
        checks=[],
        conditions={task: {"metric": content_hash(sorted(set(configs)))} if configs else {} for task in tasks},
        printed=list(_printed(aggregate, list(models))),
        decides=decides,
    )


def records(log: Log, scorer: str) -> Iterator[Record]:
    """Every instance."""
    del scorer
    trials: dict[tuple[str, str, str], int] = {}
    for line, instance in decoded_lines(log.path, _Instance):
        key = (instance.model_id, instance.evaluation_name, instance.sample_id)
        trials[key] = trials.get(key, 0) + 1
        value = instance.evaluation.score
        score = score_of(instance.evaluation.is_correct if value is None else value) or NO_SCORE
        metadata = instance.metadata or {}
        status = ERRORED if instance.error else _BUCKETS.get(metadata.get("bucket", ""), score.status)
        answer = next((one.extracted_value for one in instance.answer_attribution if one.is_terminal), None)
        raw = instance.output.raw[0] if instance.output and instance.output.raw else None
        reference = instance.input.reference if instance.input else []
        yield Record(
            id=instance.sample_id,
            model=instance.model_id,
            task=instance.evaluation_name,
            trial=trials[key],
            status=status,
            score=score.value if status == SCORED else NO_SCORE.value,
            kind=score.kind,
            reported=score.as_reported,
            error=instance.error,
            answer=text_of(answer if answer is not None else raw),
            target=text_of(reference[0]) if reference else None,
            input=text_of(instance.input.raw) if instance.input else None,
            input_hash=instance.sample_hash,
            line=line,
            success=instance.evaluation.is_correct,
        )


def _printed(aggregate: _Aggregate, models: list[str]) -> Iterator[Printed]:
    for result in aggregate.evaluation_results:
        value = number_of(result.score_details.score) if result.score_details else None
        metric = str(result.metric_config.get("metric_name") or result.metric_config.get("metric_id") or "score")
        if value is not None and len(models) == 1:
            yield Printed(name=metric, value=value, model=models[0], task=result.evaluation_name)
