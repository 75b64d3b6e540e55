"""The rules of `score`: there is a record, it has a score, in its range, at its threshold; and what the log's checks said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adjudge.evidence.rule import Condition, Finding, Limits, Rule, RuleSet, Slot, Variant
from adjudge.evidence.vocabulary import Scope
from adjudge.protocols.score.batch import ScoreBatch
from adjudge.readers.logs.record import ABSTAINED, ERRORED, MISSING, UNPARSED

CHAIN = ("record.present", "record.scored", "score.threshold", "score.verdict")
_VARIANT_OF = {ERRORED: 0, UNPARSED: 1, ABSTAINED: 2}


@dataclass(frozen=True)
class ScoreContext:
    """What the rules are built from: the range of a score, the names of the log's checks, and whether it has verdicts."""

    low: float
    high: float
    checks: Sequence[str]
    decided: bool = False


def build(context: ScoreContext) -> list[Rule]:
    """All rules; without checks in the log there is none about them."""
    own_verdict = Condition(lambda batch: (batch.success < 0)[None], "the log itself says what passed")
    rules = [
        Rule(
            code="record.present",
            title="the log has a record of the attempt",
            passed="there is a record",
            failed="the attempt was planned, or others have it, and the log has no record",
            check=_missing,
        ),
        Rule(
            code="record.scored",
            title="the record has a score",
            needs=("record.present",),
            passed="there is a score, as reported",
            failed="there is an error and no score: {why}",
            check=_scored,
            variants=(
                Variant("record.unparsed", "the answer could be read", "the answer could not be read: {why}"),
                Variant("record.abstained", "an answer was given", "no answer was given, as reported"),
            ),
        ),
        Rule(
            code="score.range",
            title="the score lies in its range",
            scope=Scope.FIELD,
            needs=("record.scored",),
            passed="score {observed} lies between {low} and {high}",
            failed="score {observed} does not lie between {low} and {high} (--range)",
            quantity=lambda batch: batch.score[None],
            limits=Limits(low=context.low, high=context.high),
        ),
        Rule(
            code="score.threshold",
            title="the score reaches the threshold",
            scope=Scope.FIELD,
            needs=("record.scored",),
            passed="score {observed} reaches the threshold, as reported",
            failed="score {observed} is under the threshold, as reported",
            quantity=lambda batch: batch.score[None],
            batch_limits=lambda batch: Limits(low=batch.threshold[None]),
            conditions=(
                *([own_verdict] if context.decided else []),
                Condition(
                    lambda batch: ~np.isnan(batch.threshold)[None],
                    "scores of this task are graded and no threshold was given (--pass-at)",
                ),
            ),
        ),
    ]
    if context.decided:
        rules.append(
            Rule(
                code="score.verdict",
                title="the log calls the score passed",
                scope=Scope.FIELD,
                needs=("record.scored",),
                passed="the log calls score {observed} passed, as reported",
                failed="the log calls score {observed} not passed, as reported",
                check=_verdict,
                conditions=(
                    Condition(lambda batch: (batch.success >= 0)[None], "the log does not say whether it passed"),
                ),
            )
        )
    if context.checks:
        rules.append(
            Rule(
                code="reported.check",
                title="a check of the log's own, as reported",
                scope=Scope.FIELD,
                slots=tuple(Slot(name, 0) for name in context.checks),
                needs=("record.present",),
                passed="{field} passed with {observed}, as reported",
                failed="{field} did not pass with {observed}, as reported",
                check=_reported,
                conditions=(Condition(lambda batch: batch.passed >= 0, "the log says nothing of it"),),
            )
        )
    return rules


def _missing(batch: ScoreBatch) -> Finding:
    failed = (batch.status == MISSING)[None]
    return Finding(failed, failed)


def _scored(batch: ScoreBatch) -> Finding:
    variant = np.zeros(batch.n, dtype=np.int8)
    failed = np.zeros(batch.n, dtype=bool)
    for status, place in _VARIANT_OF.items():
        variant[batch.status == status] = place
        failed |= batch.status == status
    details = {(0, row): text for row, text in batch.errors.items() if failed[row]}
    critical = failed & (batch.status != ABSTAINED)
    return Finding(failed[None], critical[None], variant=variant[None], details=details)


def _verdict(batch: ScoreBatch) -> Finding:
    failed = (batch.success == 0)[None]
    return Finding(failed, np.zeros_like(failed), batch.score[None])


def _reported(batch: ScoreBatch) -> Finding:
    failed = batch.passed == 0
    observed = np.where(np.isnan(batch.checks), np.where(batch.passed == 1, 1.0, 0.0), batch.checks)
    return Finding(failed, np.zeros_like(failed), observed)


RULES = RuleSet("score", "score", build)
