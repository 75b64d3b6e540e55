"""Lint: a rule file's mistakes, its self-tests, and which rules were never shown to fail or to pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from adjudge.errors import ConfigError
from adjudge.evidence.graph import VerifierGraph
from adjudge.evidence.vocabulary import ERROR, FAIL, NOT_APPLICABLE, OUTCOMES, PASS
from adjudge.protocols.check.batch import CheckBatch
from adjudge.protocols.check.compiled import Compiled, compiled_or_wrong
from adjudge.protocols.check.counts import measures
from adjudge.protocols.check.declarations import ABSENT, EVERY, Path
from adjudge.protocols.check.document import Document, near
from adjudge.protocols.check.names import KEYWORDS, quoted
from adjudge.protocols.check.reading import rule_file
from adjudge.protocols.check.rows import ANSWERED, Reading, block_columns
from adjudge.protocols.check.rulefile import RuleFile, SelfTest
from adjudge.protocols.check.rules import build
from adjudge.protocols.check.sandbox import Sandbox
from adjudge.protocols.check.values import Answers

Counts = Mapping[str, Mapping[str, int]]


@dataclass
class Findings:
    """What lint has to say: errors refuse the file, warnings do not."""

    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    tests: int = 0
    rules: int = 0
    fields: int = 0


def lint(document: Document, sandbox: Sandbox, seen: Counts | None = None) -> Findings:
    """Check a rule file; `seen` are the outcomes of its rules over data, by code."""
    findings = Findings()
    try:
        file = rule_file(document)
    except ConfigError as error:
        findings.errors.append(str(error))
        return findings
    compiled, wrong = compiled_or_wrong(file, sandbox)
    findings.errors += [str(error) for error in (*wrong, *_gate_errors(file))]
    findings.tests, findings.rules, findings.fields = len(file.tests), len(file.rules), len(file.fields)
    unshown: Iterable[ConfigError] = ()
    if not wrong:
        shown = _run_tests(compiled, sandbox, findings) if file.tests else {}
        unshown = _unshown(compiled, shown, seen or {})
    findings.warnings += [str(warning) for warning in (*unshown, *_odd_fields(compiled))]
    return findings


def _gate_errors(file: RuleFile) -> Iterator[ConfigError]:
    """Gates on numbers that no run of this file has."""
    names = [*measures(file), *(f"score.{name}" for name in file.scores)]
    names += ["matched", "only_in_outputs", "only_in_reference"]
    for place, gate in enumerate(file.gates):
        metric = gate.metric.rpartition("/")[2]
        known = near(metric, names) or f"; there are {', '.join(names[:4])} …"
        why = f"there is no number {metric!r}{known}"
        if metric.startswith(("field.", "place.", "answer.")):
            why = f"{metric!r} is no number: checks of fields have none of their own; gate a rule, or pass_rate"
        if metric not in names:
            yield file.document.error(("gates", place), why)


def _run_tests(compiled: Compiled, sandbox: Sandbox, findings: Findings) -> dict[str, set[int]]:
    """Run the self-tests; the outcomes that they show of every rule."""
    file = compiled.file
    evidence = VerifierGraph(build(compiled)).evaluate(batch_of_tests(file.tests, compiled, sandbox))
    positions: dict[str, list[int]] = {}
    for position, place in enumerate(evidence.layout.positions):
        positions.setdefault(str(place.rule["code"]), []).append(position)
    for row, test in enumerate(file.tests):
        outcomes = {code: evidence.outcome[of_code, row].tolist() for code, of_code in positions.items()}
        why = {code: evidence.reasons.at(of_code[0], row) or "" for code, of_code in positions.items()}
        findings.errors += _wrong_test(test, outcomes, why, file)
    return {code: set(evidence.outcome[of_code].ravel().tolist()) for code, of_code in positions.items()}


def _wrong_test(
    test: SelfTest, outcomes: Mapping[str, Sequence[int]], why: Mapping[str, str], file: RuleFile
) -> list[str]:
    """Where a self-test is not as it says: these rules fail and no others."""
    way = ("tests", test.number - 1)
    label = f" ({test.name})" if test.name else ""
    failed = {code for code, of_rows in outcomes.items() if FAIL in of_rows}
    passed = [code for code in test.fails if code not in failed]
    wrong = [f"{code} should fail and {_in_words(outcomes.get(code, []), why.get(code, ''))}" for code in passed]
    wrong += [f"{code} fails and is not in `fails`" for code in sorted(failed - set(test.fails))]
    applied = [code for code in test.not_applicable if set(outcomes.get(code, [])) - {NOT_APPLICABLE}]
    wrong += [f"{code} should not be applicable and {_in_words(outcomes[code], '')}" for code in applied]
    wrong += [f"{code} raises: {why[code]}" for code, of_rows in outcomes.items() if ERROR in of_rows]
    return [str(file.document.error(way, f"{text}{label}")) for text in wrong]


def _in_words(of_rows: Sequence[int], why: str) -> str:
    if PASS in of_rows:
        return "passes"
    if FAIL in of_rows:
        return "fails"
    return f"is not applicable{f' ({why})' if why else ''}" if of_rows else "leaves no atom"


def batch_of_tests(tests: Sequence[SelfTest], compiled: Compiled, sandbox: Sandbox) -> CheckBatch:
    """The rows of self-tests as a batch."""
    answers = Answers(compiled.fields, whole=bool(compiled.file.schema))
    reading = Reading(answers, [0] * len(tests))
    for row, test in enumerate(tests):
        reading.answer(row, answers.convert(_answer(test.row, compiled)))
    columns: dict[str, Any] = reading.columns(compiled.answer_columns)
    plain = Answers(compiled.fields)
    for block in ("gold", "previous"):
        values = [plain.convert(_answer(getattr(test, block), compiled)).values for test in tests]
        columns |= zip(compiled.field_columns(block[0]), plain.columns(values), strict=True)
    columns |= dict.fromkeys(("id", "model"), pa.array([f"test {test.number}" for test in tests], pa.string()))
    columns |= block_columns(compiled.block_keys, tests)
    status = np.full(len(tests), ANSWERED, dtype=np.uint8)
    chunked = {name: pa.chunked_array([values]) for name, values in columns.items()}
    return CheckBatch(compiled, sandbox, status, chunked, pa.table(chunked))


def _answer(row: Mapping[str, Any], compiled: Compiled) -> dict[str, Any]:
    """The answer that has the values of a self-test at the paths of their fields."""
    answer: dict[str, Any] = {}
    for name, value in row.items():
        path = compiled.file.fields[name].path if name in compiled.file.fields else Path((name,))
        cut = path.steps.index(EVERY) if path.many else len(path.steps)
        if not path.many or not isinstance(value, list):
            _put(answer, path.steps[:cut], value)
            continue
        if path.holder(answer) is ABSENT:
            _put(answer, path.steps[:cut], [])
        for place, item in enumerate(value):
            _put(answer, (*path.steps[:cut], place, *path.steps[cut + 1 :]), item)
    return answer


def _put(holder: Any, steps: Sequence[str | int | None], value: Any) -> None:
    """Put a value at the end of steps, with the objects and lists on the way."""
    for step, following in zip(steps, [*steps[1:], EVERY], strict=True):
        last = following is EVERY
        inner: Any = value if last else [] if isinstance(following, int) else {}
        if isinstance(holder, list) and isinstance(step, int):
            holder += [None] * (step + 1 - len(holder))
            if last or holder[step] is None:
                holder[step] = inner
        elif isinstance(holder, dict) and (last or step not in holder):
            holder[step] = inner
        holder = holder[step]


def _unshown(compiled: Compiled, shown: Mapping[str, set[int]], seen: Counts) -> Iterator[ConfigError]:
    """Rules of which neither data nor self-tests show both outcomes."""
    for rule in compiled.rules:
        code = rule.text.code
        in_data = {OUTCOMES.index(word) for word, count in seen.get(code, {}).items() if count}
        outcomes = shown.get(code, set()) | in_data
        lacking = [word for outcome, word in ((FAIL, "failing"), (PASS, "passing")) if outcome not in outcomes]
        if lacking:
            what = "neither failing nor passing" if len(lacking) == 2 else f"never {lacking[0]}"
            data = " and no row of the data" if seen else "; --outputs FILE looks at data too"
            text = f"shown to be {what} (in no self-test{data})"
            yield compiled.file.document.error(("rules", code), text, key=True)


def _odd_fields(compiled: Compiled) -> Iterator[ConfigError]:
    """Fields that no rule reads, and fields that expressions must quote."""
    file = compiled.file
    used = {name[-1] for rule in compiled.rules for name in rule.uses} | set(file.slices) | {file.cluster}
    for name, each in file.fields.items():
        checked = each.one_of or each.range is not None or each.pattern or file.schema
        if name not in used and not checked and file.rules:
            text = "no rule reads this field; that it is there and of its type is checked all the same"
            yield file.document.error(("fields", name), text, key=True)
        if quoted(name) != name:
            why = "a word of SQL" if name.lower() in KEYWORDS else "no plain word"
            text = f"is {why}: in expressions it is written {quoted(name)}, in double quotes"
            yield file.document.error(("fields", name), text, key=True)
