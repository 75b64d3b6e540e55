"""lm-eval: `samples_TASK_TIME.jsonl`, with `results_TIME.json` beside it.

A sample is a document under one filter; where a task has several filters the first is judged and the others are checks of
their own, named METRIC,FILTER as in the results. `[invalid]` from a filter is an answer that could not be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from adjudge.errors import InputError
from adjudge.readers.logs.documents import decoded_file, decoded_lines, number_of
from adjudge.readers.logs.record import (
    NAN,
    NO_SCORE,
    TEXT_LIMIT,
    UNPARSED,
    Check,
    Log,
    Printed,
    Record,
    check_of,
    content_hash,
    missing,
    score_of,
    text_of,
)
from adjudge.readers.settings import in_words

INVALID = "[invalid]"
_SAMPLES = re.compile(r"samples_(.+)_(\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl(?:\.gz|\.zst)?")
_SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
_LOOKED_AT = 2001
"""Records that are looked at to learn which metrics a file has."""


class _Sample(msgspec.Struct, gc=False):
    doc_id: int | str
    filter: str = "none"
    target: Any = None
    arguments: Any = None
    resps: Any = None
    filtered_resps: Any = None
    metrics: list[str] | None = None
    doc_hash: str | None = None
    prompt_hash: str | None = None
    target_hash: str | None = None


_OWN = {"doc", *_Sample.__struct_fields__}


class _Results(msgspec.Struct):
    results: dict[str, dict[str, Any]] = {}
    configs: dict[str, dict[str, Any]] = {}
    versions: dict[str, Any] = {}
    n_shot: dict[str, Any] = msgspec.field(default_factory=dict, name="n-shot")
    n_samples: dict[str, Any] = msgspec.field(default_factory=dict, name="n-samples")
    config: dict[str, Any] = {}
    model_name: str | None = None
    task_hashes: dict[str, str] = {}
    chat_template_sha: str | None = None
    system_instruction_sha: str | None = None


def header(path: str) -> Log | None:
    """What samples and the results beside them say; results alone are read with their samples, or refused."""
    name = Path(path).name
    if name.endswith(".json"):
        if not any(Path(path).parent.glob("samples_*.jsonl*")):
            raise InputError("holds lm-eval results without their samples (--log_samples writes them)", file=path)
        return None
    matched = _SAMPLES.fullmatch(name)
    task = matched[1] if matched else name.partition(".")[0].removeprefix("samples_")
    results_file = _results_of(path, matched[2] if matched else None)
    results = _Results() if results_file is None else decoded_file(str(results_file), _Results)
    names, left_out = _names(path, _filters(results, task))
    model = _model(results) or Path(path).parent.name or "unnamed"
    log = Log(
        title="lm-eval samples",
        files=[path, *([] if results_file is None else [str(results_file)])],
        models=[model],
        tasks=[task],
        checks=names,
        conditions={task: _conditions(results, task)},
        printed=list(_printed(results, task, model, names)),
        samples=_planned(results, task),
        unscored=not names,
    )
    if results_file is None:
        log.notes.append(
            f"{task} has no results file beside it: nothing says how it was made, and the folder names the model"
        )
    if left_out:
        log.unread.append(f"metrics that are no number a sample: {', '.join(sorted(left_out))}")
        log.notes.append(f"{task}: metrics that are no number a sample are left out: {', '.join(sorted(left_out))}")
    return log


def records(log: Log, scorer: str) -> Iterator[Record]:
    """Every document; what the results count and has no sample is missing."""
    task, model = log.tasks[0], log.models[0]
    like: Mapping[str, Any] = {"model": model, "task": task}
    seen: set[tuple[str, int]] = set()
    main_filter = scorer.rpartition(",")[2]
    other_checks: dict[str, dict[str, Check]] = {}
    results = decoded_file(log.files[1], _Results) if len(log.files) > 1 else _Results()
    rows = list(_rows(log.path, _filters(results, task)))
    for _, row in rows:
        of_document = other_checks.setdefault(str(row.get("doc_id")), {})
        for name, value in _scores(row).items():
            if (check := check_of(value)) is not None:
                of_document[name] = check
    for line, row in rows:
        try:
            sample = msgspec.convert(row, _Sample, strict=False)
        except msgspec.ValidationError as error:
            raise InputError(f"is no sample of lm-eval: {in_words(error)}", file=log.path, line=line) from None
        if sample.filter != main_filter:
            continue
        if (str(sample.doc_id), 1) in seen:
            raise InputError(f"doc_id {sample.doc_id!r} stands here a second time", file=log.path, line=line)
        seen.add((str(sample.doc_id), 1))
        checks = other_checks[str(sample.doc_id)]
        yield _record(sample, row, scorer, line, [checks.get(name) for name in log.checks], like)
    if log.samples is not None and all(name.isdigit() and int(name) < log.samples for name, _ in seen):
        yield from missing(log.path, range(log.samples), 1, seen, like)


def _record(
    sample: _Sample, row: Mapping[str, Any], scorer: str, line: int, checks: list[Check | None], like: Mapping[str, Any]
) -> Record:
    score = score_of(row.get(scorer.rpartition(",")[0])) or NO_SCORE
    answer = _answer(sample.filtered_resps)
    unparsed = answer == INVALID
    return Record(
        id=str(sample.doc_id),
        error="the filter found no answer" if unparsed else None,
        answer=text_of(answer),
        target=text_of(sample.target),
        confidence=_confidence(sample.filtered_resps),
        input=_input(sample.arguments),
        input_hash=content_hash(sample.doc_hash, sample.target_hash, sample.prompt_hash),
        line=line,
        checks=checks,
        **score.fields(UNPARSED if unparsed else None),
        **like,
    )


def _input(arguments: Any) -> str | None:
    """What was asked: the prompt and, of a multiple choice, what could follow it, numbered as answers and targets are.

    Of a long prompt the end is kept, where the question stands after its examples.
    """
    requests = list(arguments.values()) if isinstance(arguments, dict) else arguments
    if not isinstance(requests, list):
        return None
    texts = [list(each.values()) if isinstance(each, dict) else each for each in requests]
    texts = [each for each in texts if isinstance(each, list) and each and isinstance(each[0], str)]
    if not texts:
        return None
    prompts = {each[0] for each in texts}
    choices = [each[1] for each in texts if len(each) > 1 and isinstance(each[1], str)]
    listed = (
        "".join(f"\n[{place}] {choice.strip()}" for place, choice in enumerate(choices)) if len(choices) > 1 else ""
    )
    asked = next(iter(prompts)) if len(prompts) == 1 else "\n".join(each[0] for each in texts)
    room = max(TEXT_LIMIT // 2, TEXT_LIMIT - len(listed))
    return text_of((asked if len(asked) <= room else "…" + asked[len(asked) - room + 1 :]) + listed)


def _answer(responses: Any) -> Any:
    """The filtered response; of several the first, of log likelihoods the place of the greatest."""
    likelihoods = _likelihoods(responses)
    if likelihoods is not None:
        return int(np.argmax(likelihoods))
    while isinstance(responses, list) and responses:
        responses = responses[0]
    return responses if responses != [] else None


def _likelihoods(responses: Any) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """The log likelihoods of a multiple choice: pairs (number, whether it is the greedy one), as numbers or as text."""
    if not isinstance(responses, list) or len(responses) < 2:
        return None
    values = []
    for response in responses:
        is_nested = isinstance(response, list) and len(response) == 1 and isinstance(response[0], list)
        pair = response[0] if is_nested else response
        if not isinstance(pair, list) or len(pair) != 2 or str(pair[1]) not in {"True", "False"}:
            return None
        try:
            values.append(float(pair[0]))
        except (TypeError, ValueError):
            return None
    return np.array(values)


def _confidence(responses: Any) -> float:
    likelihoods = _likelihoods(responses)
    if likelihoods is None or not np.isfinite(likelihoods).all():
        return NAN
    return float(1.0 / np.exp(likelihoods - likelihoods.max()).sum())  # the greatest of their softmax


def _scores(row: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics of a sample, named as the results name them."""
    names = row.get("metrics") or [name for name in row if name not in _OWN]
    return {f"{name},{row.get('filter', 'none')}": row.get(name) for name in names}


def _filters(results: _Results, task: str) -> list[str]:
    """The filters of a task, in the order in which they were applied."""
    keys = (key.partition(",") for key in results.results.get(task, {}))
    return list(dict.fromkeys(of_filter for _, comma, of_filter in keys if comma))


def _rows(path: str, filters: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, sample). Before 0.4.7 none names its filter: every document stands there once for each, in their order."""
    seen: dict[Any, int] = {}
    for line, row in decoded_lines(path, dict[str, Any]):
        if "filter" not in row:
            seen[row.get("doc_id")] = place = seen.get(row.get("doc_id"), -1) + 1
            row["filter"] = filters[place] if place < len(filters) else "none"
        yield line, row


def _names(path: str, filters: Sequence[str]) -> tuple[list[str], set[str]]:
    """The metrics that are a number a sample, and those that are none."""
    names: dict[str, None] = {}
    left_out: set[str] = set()
    for _, row in islice(_rows(path, filters), _LOOKED_AT):
        for name, value in _scores(row).items():
            if isinstance(value, bool | int | float):  # NaN too: a number that could not be computed
                names[name] = None
            elif value is not None:
                left_out.add(name)
    return [name for name in names if name not in left_out], left_out


def _results_of(path: str, time: str | None) -> Path | None:
    """The results file with the same time, whatever `--output_path` calls it, or the only one in the folder."""
    folder = Path(path).parent
    same = [] if time is None else sorted(folder.glob(f"*_{time}.json"))
    files = same or sorted(folder.glob("results_*.json"))
    return files[0] if len(files) == 1 else None


def _model(results: _Results) -> str | None:
    if results.model_name:
        return results.model_name
    arguments = results.config.get("model_args")
    named = arguments.get("pretrained") or arguments.get("model") if isinstance(arguments, dict) else None
    if isinstance(arguments, str):
        pairs = dict(part.split("=", 1) for part in arguments.split(",") if "=" in part)
        named = pairs.get("pretrained") or pairs.get("model")
    model = named or results.config.get("model")
    return None if model is None else str(model)


def _planned(results: _Results, task: str) -> int | None:
    counts = results.n_samples.get(task)
    return int(counts["effective"]) if isinstance(counts, dict) and isinstance(counts.get("effective"), int) else None


def _conditions(results: _Results, task: str) -> dict[str, Any]:
    config = results.configs.get(task, {})
    return {
        "task_version": results.versions.get(task),
        "dataset": [config.get("dataset_path"), config.get("dataset_name"), config.get("test_split")],
        "n_shot": results.n_shot.get(task),
        "chat_template": results.chat_template_sha,
        "system_instruction": results.system_instruction_sha,
        "metric": [entry.get("metric") for entry in _metrics(results, task)],
        "prompt": content_hash(config.get("doc_to_text"), config.get("description"), config.get("fewshot_delimiter")),
        "generation": config.get("generation_kwargs") or {},
        "seeds": [results.config.get(name) for name in _SEEDS],
        "task_hash": results.task_hashes.get(task),
        "limit": results.config.get("limit"),
    }


def _metrics(results: _Results, task: str) -> list[dict[str, Any]]:
    """What the task says of each of its metrics."""
    listed = results.configs.get(task, {}).get("metric_list") or ()
    return [entry for entry in listed if isinstance(entry, dict)]


def _printed(results: _Results, task: str, model: str, names: list[str]) -> Iterator[Printed]:
    aggregation = {entry.get("metric"): str(entry.get("aggregation") or "") for entry in _metrics(results, task)}
    for key, value in results.results.get(task, {}).items():
        number = number_of(value)
        metric, comma, of_filter = key.partition(",")
        if number is None or not comma:
            continue
        base = metric.removesuffix("_stderr")
        known = f"{base},{of_filter}" in names and aggregation.get(base, "mean") in {"mean", ""}
        rule = "" if not known else "standard error" if metric != base else "mean"
        yield Printed(name=metric, value=number, model=model, task=task, check=f"{base},{of_filter}", rule=rule)
