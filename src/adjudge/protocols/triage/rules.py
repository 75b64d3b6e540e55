"""The rules of the triage protocol: a chain from "there is a record" to "the answer is right", and two beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adjudge.evidence.rule import Condition, Finding, Limits, Rule, RuleSet, Variant
from adjudge.evidence.vocabulary import Scope
from adjudge.protocols.triage.batch import (
    ABSTAINED,
    ERRORED,
    MISSING,
    NEGATIVE,
    NOT_GIVEN,
    POSITIVE,
    PROVENANCE,
    UNPARSED,
    UNREADABLE,
    TriageBatch,
)
from adjudge.protocols.triage.words import Classes

_SET = np.array([bits.bit_count() for bits in range(256)], dtype=np.float64)
CHAIN = ("triage.missing", "triage.error", "triage.verdict_word", "triage.answered", "triage.correct")


@dataclass(frozen=True)
class TriageContext:
    """What the rules are built from."""

    classes: Classes


def build(context: TriageContext) -> list[Rule]:
    """All rules; the first five are the chain that decides, each applying where the one before it passed."""
    positive, negative = context.classes
    return [
        Rule(
            code="triage.missing",
            title="the results have a record of the sample",
            passed="there is a record",
            failed="the manifest has this sample, the results do not",
            check=lambda batch: _is(batch, MISSING),
        ),
        Rule(
            code="triage.error",
            title="the system answered without an error of its own",
            needs=("triage.missing",),
            passed="no error was reported",
            failed="the record is an error: {why}",
            check=lambda batch: _is(batch, ERRORED),
        ),
        Rule(
            code="triage.verdict_word",
            title="the verdict is one of the declared words",
            scope=Scope.FIELD,
            needs=("triage.error",),
            passed="the verdict is a declared word",
            failed="the verdict is no declared word: {why}",
            check=lambda batch: _is(batch, UNPARSED),
        ),
        Rule(
            code="triage.answered",
            title="the verdict is a class and not uncertain",
            needs=("triage.verdict_word",),
            passed="the verdict is a class",
            failed="the verdict is uncertain: the sample goes to a person",
            check=lambda batch: _is(batch, ABSTAINED, critical=False),
        ),
        Rule(
            code="triage.correct",
            title="the answered class is that of the label",
            scope=Scope.CROSS_FIELD,
            needs=("triage.answered",),
            passed="the answer is the label",
            failed="the answer is not the label",
            check=_correct,
            variants=(
                Variant(
                    "triage.slip", f"a {positive} does not pass as {negative}", f"a {positive} passed as {negative}"
                ),
                Variant(
                    "triage.false_flag",
                    f"a {negative} is not flagged as {positive}",
                    f"a {negative} was flagged as {positive}",
                ),
            ),
        ),
        Rule(
            code="triage.confidence_range",
            title="the confidence lies between 0 and 1",
            scope=Scope.FIELD,
            needs=("triage.missing",),
            passed="confidence {observed} lies between 0 and 1",
            failed="confidence {observed} does not lie between 0 and 1 and is not used",
            quantity=lambda batch: batch.confidence[None],
            limits=Limits(low=0.0, high=1.0),
            conditions=(
                Condition(lambda batch: batch.confidence_state[None] != UNREADABLE, "the confidence is no number"),
                Condition(lambda batch: batch.confidence_state[None] != NOT_GIVEN, "no confidence was given"),
            ),
        ),
        Rule(
            code="provenance.recorded",
            title="the record says what made it: models, prompts, cache, time, temperature",
            needs=("triage.missing",),
            passed="all {observed} provenance items are there",
            failed="{observed} of {low} provenance items are there",
            quantity=lambda batch: _SET[batch.carries][None],
            limits=Limits(low=float(len(PROVENANCE))),
        ),
    ]


def _is(batch: TriageBatch, answer: int, *, critical: bool = True) -> Finding:
    failed = (batch.answer == answer)[None]
    details = {(0, index): text for index, text in batch.notes.items() if batch.answer[index] == answer}
    return Finding(failed, failed if critical else np.zeros_like(failed), details=details)


def _correct(batch: TriageBatch) -> Finding:
    slip = (batch.label == POSITIVE) & (batch.answer == NEGATIVE)
    flag = (batch.label == NEGATIVE) & (batch.answer == POSITIVE)
    failed = (slip | flag)[None]
    variant = np.where(slip, 1, np.where(flag, 2, 0)).astype(np.int8)[None]
    return Finding(failed, failed, variant=variant)


RULES = RuleSet("triage", "triage", build)
