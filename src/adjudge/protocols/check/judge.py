"""Verdict, bucket and scores of a batch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.evidence.atoms import pack_citations
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, ERROR, FAIL, NOT_APPLICABLE, OUTCOMES, PASS
from adjudge.protocols.check.batch import CheckBatch
from adjudge.protocols.check.compiled import Compiled
from adjudge.protocols.check.rows import STATUSES
from adjudge.protocols.common.columns import coded
from adjudge.verdict.agent import ELIGIBLE, INELIGIBLE, Verdicts

_OF_STATUS = np.array([0, *(BUCKETS.index(name) for name in STATUSES[1:])], dtype=np.int8)


def bucket_codes(batch: CheckBatch, evidence: Evidence, eligible: NDArray[np.bool_]) -> NDArray[np.int8]:
    """Where a sample ended. One that nothing speaks against, but of which a rule could not be evaluated, is errored."""
    broken = (evidence.outcome == ERROR).any(axis=0)
    judged = np.where(eligible, np.where(broken, BUCKETS.index("errored"), 0), BUCKETS.index("failed"))
    return np.where(batch.answered, judged, _OF_STATUS[batch.status]).astype(np.int8)


def scores(batch: CheckBatch, evidence: Evidence) -> dict[str, NDArray[np.float64]]:
    """Every score of every sample: the weight of the rules that pass over that of the rules that count.

    A rule counts where it passes or fails, and as failed where what it reads is missing or mistyped; not where its `when`
    does not hold or there is nothing to compare with. NaN where none counts.
    """
    outcomes = rule_outcomes(evidence, batch.compiled)
    blocked = _blocked(batch)
    values = {}
    for name, weights in batch.compiled.file.scores.items():
        won, counted = np.zeros(batch.n), np.zeros(batch.n)
        for code, weight in weights.items():
            outcome = outcomes[code]
            won += weight * (outcome == PASS)
            counted += weight * ((outcome == PASS) | (outcome == FAIL) | blocked.get(code, ~batch.answered))
        values[name] = np.where(counted > 0, won / np.maximum(counted, 1e-300), np.nan)
    return values


def rule_outcomes(evidence: Evidence, compiled: Compiled) -> dict[str, NDArray[np.uint8]]:
    """The outcome of every rule of the file and of its schema on every sample, where the evidence has that rule.

    One with an atom a path fails where one atom does, else could not be evaluated where one could not, else passes where
    one does.
    """
    outcomes = {}
    for code in compiled.file.rated:
        atoms = evidence.outcome[evidence.layout.positions_of(code)]
        if len(atoms) == 1:
            outcomes[code] = atoms[0]
        elif len(atoms):
            choices = [(atoms == outcome).any(axis=0) for outcome in (FAIL, ERROR, PASS)]
            outcomes[code] = np.select(choices, [FAIL, ERROR, PASS], NOT_APPLICABLE).astype(np.uint8)
    return outcomes


def _blocked(batch: CheckBatch) -> Mapping[str, NDArray[np.bool_]]:
    """Where a rule cannot be applied for a fault of the answer: there is none, or a field that it reads is not right."""
    blocked = {}
    for rule in batch.compiled.rules:
        mask = ~batch.answered
        for name in rule.uses:
            each = batch.compiled.file.fields.get(name[0]) if len(name) == 1 else None
            if each is None:
                continue
            mask |= batch.bad_type(each)
            if each.required and each.name not in rule.text.optional:
                mask |= ~batch.present(each)
        blocked[rule.text.code] = mask
    return blocked


def decided(batch: CheckBatch, evidence: Evidence, verdicts: Verdicts) -> dict[str, pa.Array]:
    """The columns of samples that follow from the batch and its evidence."""
    outcomes = rule_outcomes(evidence, batch.compiled)
    return {
        "bucket": coded(bucket_codes(batch, evidence, verdicts.eligible), BUCKETS),
        "verdict": coded((~verdicts.eligible).astype(np.int8), (ELIGIBLE, INELIGIBLE)),
        "cites": pack_citations(verdicts.cites),
        **{f"score.{name}": pa.array(values, from_pandas=True) for name, values in scores(batch, evidence).items()},
        **{f"rule.{code}": coded(outcome.astype(np.int8), OUTCOMES) for code, outcome in outcomes.items()},
    }
