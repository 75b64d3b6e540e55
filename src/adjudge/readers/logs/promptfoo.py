"""promptfoo: the JSON output of version 3, and its JSON Lines.

A sample is a test, told by its variables and assertions; the model is the provider, with the prompt where there are
several. Tests with the same content are repeats of one. A result with failureReason 2 is an error of the provider. Whether
a test passed is what promptfoo says: its assertions, their weights and its threshold decide that, not the score alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from adjudge.errors import InputError
from adjudge.readers.logs.documents import decoded_file, decoded_lines, lines_of, number_of
from adjudge.readers.logs.record import ERRORED, NO_SCORE, Check, Log, Printed, Record, content_hash, score_of, text_of

VERSION = 3
TASK = ""
_ERROR = 2  # of failureReason: 0 none, 1 an assertion failed, 2 an error
_MAIN = "score"


class _Grading(msgspec.Struct):
    score: float | None = None
    reason: str | None = None
    component_results: list[dict[str, Any] | None] | None = msgspec.field(default=None, name="componentResults")


class _Result(msgspec.Struct, rename="camel"):
    test_idx: int
    prompt_idx: int = 0
    success: bool | None = None
    score: float | None = None
    failure_reason: int | None = None
    error: str | None = None
    provider: Any = None
    prompt: dict[str, Any] | None = None
    prompt_id: str | None = None
    vars: dict[str, Any] = {}
    test_case: dict[str, Any] | None = None
    response: Any = None
    grading_result: _Grading | None = None


class _Results(msgspec.Struct):
    version: int | str | None = None
    results: list[_Result] = []
    prompts: list[dict[str, Any]] | None = None


class _Document(msgspec.Struct, rename="camel"):
    results: _Results


def header(path: str) -> Log:
    """What the output says of itself."""
    rows, document = _read(path)
    if not rows:
        raise InputError("has no results", file=path)
    models = _models(rows)
    checks = [_MAIN, *dict.fromkeys(name for _, row in rows for name, _ in _components(row))]
    asserted = content_hash(sorted({content_hash(_vars(row), _asserted(row)) for _, row in rows}))
    prompts = content_hash(sorted({str(row.prompt_id or (row.prompt or {}).get("label")) for _, row in rows}))
    graders = sorted({grader for _, row in rows if (grader := _grader(row)) is not None})
    return Log(
        title="promptfoo results, version 3" if document else "promptfoo results, JSON Lines",
        files=[path],
        models=sorted(set(models.values())),
        tasks=[],
        checks=checks,
        conditions={TASK: {"assertions": asserted, "prompt": prompts, "evaluation_model": graders}},
        printed=[] if document is None else list(_printed(document.results, models)),
        decides=True,
    )


def records(log: Log, scorer: str) -> Iterator[Record]:
    """Every result; tests with the same content are trials of one sample."""
    rows, _ = _read(log.path)
    models = _models(rows)
    trials: dict[tuple[str, str], int] = {}
    for line, row in rows:
        model, sample = models[_system(row)], _sample(row)
        trials[model, sample] = trial = trials.get((model, sample), 0) + 1
        grading = row.grading_result
        whole = score_of(row.success if row.score is None else row.score) or NO_SCORE
        components = {**dict(_components(row)), _MAIN: Check(whole.as_reported, row.success)}
        judged = components.get(scorer)
        score = whole if scorer == _MAIN else score_of(None if judged is None else judged.value) or NO_SCORE
        failed = row.failure_reason == _ERROR
        if row.failure_reason is None:  # in older files `error` is also the reason of an assertion that failed
            failed = row.error is not None and grading is None
        response = row.response if isinstance(row.response, dict) else {"output": row.response}
        yield Record(
            id=sample,
            model=model,
            trial=trial,
            error=text_of(row.error) if failed else None,
            answer=text_of(response.get("output")),
            explanation=None if grading is None else text_of(grading.reason),
            cached=bool(response["cached"]) if "cached" in response else None,
            input=text_of(_vars(row)),
            input_hash=content_hash(_vars(row), _asserted(row)),
            line=line,
            checks=[components.get(name) for name in log.checks],
            success=None if judged is None else judged.passed,
            **score.fields(ERRORED if failed else None),
        )


def _read(path: str) -> tuple[list[tuple[int, _Result]], _Document | None]:
    if _is_lines(path):
        return list(decoded_lines(path, _Result)), None
    document = decoded_file(path, _Document)
    if str(document.results.version) != str(VERSION):
        what = f"is a promptfoo output of version {document.results.version}; this version of adjudge reads {VERSION}"
        raise InputError(what, file=path)
    return list(enumerate(document.results.results, 1)), document


def _is_lines(path: str) -> bool:
    """Whether the first line is a result by itself."""
    with suppress(StopIteration, msgspec.DecodeError):
        _, text = next(lines_of(path))
        return "testIdx" in msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    return False


def _system(row: _Result) -> tuple[str, int]:
    provider = row.provider
    name = (provider.get("label") or provider.get("id")) if isinstance(provider, dict) else provider
    return str(name or "unnamed"), row.prompt_idx


def _models(rows: list[tuple[int, _Result]]) -> dict[tuple[str, int], str]:
    """The name of every provider, with the prompt where one provider has several."""
    systems = dict.fromkeys(_system(row) for _, row in rows)
    prompts = Counter(provider for provider, _ in systems)
    labels = {_system(row): str((row.prompt or {}).get("label") or row.prompt_idx) for _, row in rows}
    return {
        system: system[0] if prompts[system[0]] == 1 else f"{system[0]}, prompt {system[1] + 1}: {labels[system][:40]}"
        for system in systems
    }


def _sample(row: _Result) -> str:
    """The description of the test where it has one, with a digest of its variables and assertions."""
    described = (row.test_case or {}).get("description")
    digest = content_hash(_vars(row), _asserted(row))[:12]
    return f"{str(described)[:60]}-{digest}" if described else digest


def _vars(row: _Result) -> dict[str, Any]:
    """The variables of the test, without those that the run itself set: they differ from attempt to attempt."""
    return {name: value for name, value in row.vars.items() if name != "sessionId" and not name.startswith("_")}


def _asserted(row: _Result) -> Any:
    return (row.test_case or {}).get("assert") or []


def _grader(row: _Result) -> str | None:
    """Who grades the assertions that need a model, and how it is asked, where the test says it for all of them."""
    options = (row.test_case or {}).get("options") or {}
    provider, asked = options.get("provider"), options.get("rubricPrompt")
    if provider is None and asked is None:
        return None
    name = (provider.get("label") or provider.get("id")) if isinstance(provider, dict) else provider
    return f"{name or 'the usual one'}, {content_hash(provider, asked)[:8]}"


def _components(row: _Result) -> Iterator[tuple[str, Check]]:
    """What every assertion said, by its metric or type; of several alike the number is added."""
    seen: dict[str, int] = {}
    for component in (row.grading_result.component_results if row.grading_result else None) or ():
        if component is None:
            continue
        assertion = component.get("assertion") or (component.get("metadata") or {}).get("assertionSet") or {}
        name = str(assertion.get("metric") or assertion.get("type") or "assertion")[:60]
        seen[name] = seen.get(name, 0) + 1
        number, passed = number_of(component.get("score")), component.get("pass")
        value = number if number is not None else float(bool(passed))
        label = name if seen[name] == 1 else f"{name} {seen[name]}"
        yield label, Check(value, passed if isinstance(passed, bool) else None)


def _printed(results: _Results, models: dict[tuple[str, int], str]) -> Iterator[Printed]:
    """The pass counts that every prompt has in the table."""
    for place, prompt in enumerate(results.prompts or ()):
        metrics, provider = prompt.get("metrics") or {}, str(prompt.get("provider"))
        model = models.get((provider, place))
        passed, failed = metrics.get("testPassCount"), metrics.get("testFailCount")
        if model is not None and isinstance(passed, int) and isinstance(failed, int):
            errors = metrics.get("testErrorCount") or 0
            if passed + failed + errors:
                value = passed / (passed + failed + errors)
                yield Printed(name="passed ÷ all tests", value=value, model=model, check=_MAIN, rule="share passed")
