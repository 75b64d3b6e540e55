"""The rules of the consistency protocol: what the decision rests on, and hygiene."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjudge.evidence.rule import Condition, Finding, Limits, Mask, Rule, RuleSet, Slot, Variant
from adjudge.evidence.vocabulary import Scope
from adjudge.protocols.consistency import encoding
from adjudge.protocols.consistency.batch import PairBatch
from adjudge.protocols.consistency.policy import CITATIONS, LABELS, RED_FLAGS
from adjudge.protocols.consistency.raters import RatersContext, rater_rules

_VALID, _NOT_IN_CONTEXT = LABELS.index("VALID"), LABELS.index("NOT_IN_CONTEXT")
_IN_SCOPE, _OUT, _UNVERIFIABLE = (CITATIONS.index(name) for name in ("in_scope", "out_of_scope", "unverifiable"))
_BOTH = tuple(Slot(name, 0) for name in encoding.AGENTS)
_PAIR = ("pair",)


@dataclass(frozen=True)
class PairContext:
    """What the rules are built from."""

    reason_limit: int
    flags: tuple[str, ...] = RED_FLAGS


def build(context: PairContext | RatersContext) -> list[Rule]:
    """All rules, in the order in which their atoms stand."""
    if isinstance(context, RatersContext):
        return rater_rules(context)
    has_reason = Condition(lambda batch: batch.reason_length != encoding.ABSENT, "the agent gave no reason")
    return [
        Rule(
            code="pair.only_scholar",
            title="both agents labelled the item",
            passed="both agents labelled the item",
            failed="only the scholar labelled the item",
            check=_complete,
            variants=(
                Variant("pair.only_auditor", "the scholar labelled the item", "only the auditor labelled the item"),
                Variant("pair.bad_row", "the row can be read", "the row cannot be used: {why}"),
                Variant(
                    "pair.unknown_answer",
                    "an answer belongs to a labelled item",
                    "the answer belongs to no labelled item",
                ),
            ),
        ),
        *(_red_flag(place, name) for place, name in enumerate(context.flags)),
        Rule(
            code="citation.out_of_scope",
            title="every citation is among the retrieved ids",
            scope=Scope.CROSS_FIELD,
            needs=_PAIR,
            passed="every citation is among the retrieved ids",
            failed="{observed} citations are not among the retrieved ids",
            check=_citations,
            nominal=Limits(high=0.0, critical_high=0.0),
            conditions=(
                Condition(lambda batch: (batch.answered == 1)[None], "there is no answer to check"),
                Condition(lambda batch: (batch.citations != 0)[None], "the answer cites nothing"),
            ),
            variants=(
                Variant(
                    "citation.unverifiable",
                    "the retrieved ids are given where there are citations",
                    "{observed} citations cannot be verified: retrieved_ids are absent",
                ),
            ),
        ),
        _simple(
            "label.scholar_acceptable",
            "the scholar says VALID or NOT_IN_CONTEXT",
            "the scholar says REJECT or ABSTAIN",
            lambda batch: batch.scholar > _NOT_IN_CONTEXT,
        ),
        _simple(
            "label.auditor_valid",
            "the auditor says VALID",
            "the auditor does not say VALID",
            lambda batch: batch.auditor != _VALID,
        ),
        _simple(
            "label.agreement",
            "both agents give the same label",
            "the labels differ",
            lambda batch: batch.scholar != batch.auditor,
            critical=False,
            scope=Scope.CROSS_FIELD,
        ),
        Rule(
            code="refusal.other_claim",
            title=f"a refusal is exactly the token '{encoding.REFUSAL}'",
            scope=Scope.CROSS_FIELD,
            needs=_PAIR,
            passed=f"the claim is '{encoding.REFUSAL}' byte for byte where it refuses, and only there",
            failed=f"an agent says NOT_IN_CONTEXT, but the claim is not '{encoding.REFUSAL}' byte for byte",
            check=_refusal,
            conditions=(
                Condition(lambda batch: (batch.claim != encoding.NO_CLAIM)[None], "there is no claim to check"),
            ),
            variants=(
                Variant(
                    "refusal.with_citations",
                    "a refusal cites nothing",
                    f"the claim is '{encoding.REFUSAL}', yet it cites",
                ),
            ),
        ),
        _simple(
            "evidence.same_digest",
            "both evidence digests are equal",
            "the agents' evidence digests differ",
            lambda batch: batch.same_evidence == 0,
            title="both agents saw the same evidence",
            conditions=(_says("same_evidence", "the agents give no evidence digests"),),
            critical=False,
            scope=Scope.CROSS_FIELD,
        ),
        Rule(
            code="reason.too_long",
            title="a reason is short",
            scope=Scope.FIELD,
            slots=_BOTH,
            needs=_PAIR,
            unit="characters",
            passed="the {field}'s reason has {observed} characters",
            failed="the {field}'s reason has {observed} characters, more than {high}",
            quantity=lambda batch: batch.reason_length.astype(np.float64),
            limits=Limits(high=float(context.reason_limit)),
            conditions=(has_reason,),
        ),
        Rule(
            code="reason.personal_data",
            title="a reason holds no personal data",
            scope=Scope.FIELD,
            slots=_BOTH,
            needs=_PAIR,
            passed="the {field}'s reason holds no e-mail, telephone or card number",
            failed="the {field}'s reason holds personal data in {observed} places (masked in the run)",
            quantity=lambda batch: batch.personal.astype(np.float64),
            limits=Limits(high=0.0),
            conditions=(has_reason,),
        ),
        _simple(
            "reason.not_blind",
            "the {field}'s reason quotes neither label nor reason of the other agent",
            "the {field}'s reason quotes the other agent's label or reason",
            lambda batch: batch.quotes == 1,
            title="a reason does not quote the other agent",
            conditions=(has_reason,),
            critical=False,
            scope=Scope.FIELD,
            slots=_BOTH,
        ),
        _simple(
            "constraints.not_echoed",
            "constraints_echo equals the constraints",
            "constraints_echo is not the constraints given",
            lambda batch: batch.echoed == 0,
            title="the answer echoes the constraints it was given",
            conditions=(_says("echoed", "no constraints are given"),),
            critical=False,
            scope=Scope.CROSS_FIELD,
        ),
        Rule(
            code="seed.unstable",
            title="a model's label can be reproduced: temperature 0, a seed, or votes",
            scope=Scope.FIELD,
            slots=_BOTH,
            needs=_PAIR,
            passed="the {field} gives temperature 0, a seed or votes",
            failed="the {field} is a model without temperature 0, seed or votes",
            check=_seeding,
            conditions=(
                Condition(
                    lambda batch: batch.seeding != encoding.NOT_A_MODEL, "nothing says that the agent is a model"
                ),
            ),
            variants=(
                Variant(
                    "seed.votes_contradict_label",
                    "the label is the strict majority of the votes",
                    "the {field}'s label is not the strict majority of its votes; the votes count",
                ),
            ),
        ),
    ]


RULES = RuleSet("consistency", "consistency", build)
DECIDING = {
    "hard_flag": ("red_flag",),
    "citations": ("citation.out_of_scope",),
    "scholar": ("label.scholar_acceptable",),
    "auditor": ("label.auditor_valid",),
    "claim": ("refusal.other_claim",),
}
"""The rules behind each input of a policy, by code or family: what a verdict that reads the input cites."""


def _simple(
    code: str, passed: str, failed: str, fails: Callable[[PairBatch], Mask], *, critical: bool = True, **more: Any
) -> Rule:
    """A rule that holds or not, without a measured quantity; its title is what it says when it passes, unless given."""

    def check(batch: PairBatch) -> Finding:
        failures = np.atleast_2d(fails(batch))
        return Finding(failures, failures if critical else np.zeros_like(failures))

    return Rule(code=code, passed=passed, failed=failed, check=check, needs=_PAIR, **{"title": passed, **more})


def _says(column: str, otherwise: str) -> Condition:
    """Where a column of the batch says anything."""
    return Condition(lambda batch: (getattr(batch, column) != encoding.ABSENT)[None], otherwise)


def _red_flag(place: int, name: str) -> Rule:
    return _simple(
        f"red_flag.{name}",
        f"{name} is not raised",
        f"{name} is raised",
        lambda batch: batch.flags[place] == 1,
        title=f"the flag {name} is not raised",
        conditions=(
            Condition(lambda batch: (batch.flags[place] != encoding.ABSENT)[None], "the row does not carry this flag"),
        ),
    )


def _complete(batch: PairBatch) -> Finding:
    failed = (batch.status != encoding.PAIRED)[None]
    details = {(0, row): text for row, text in batch.notes.items()}
    return Finding(failed, failed, variant=np.maximum(batch.status - 1, 0)[None], details=details)


def _citations(batch: PairBatch) -> Finding:
    failed = (batch.citations >= _OUT)[None]
    unverifiable = (batch.citations == _UNVERIFIABLE).astype(np.int8)[None]
    return Finding(failed, failed, observed=batch.out_of_scope[None].astype(np.float64), variant=unverifiable)


def _refusal(batch: PairBatch) -> Finding:
    refuses = (batch.scholar == _NOT_IN_CONTEXT) | (batch.auditor == _NOT_IN_CONTEXT)
    token = batch.claim == encoding.REFUSAL_CLAIM
    cited = token & (batch.citations != 0)
    failed = ((refuses & ~token) | cited)[None]
    return Finding(failed, np.zeros_like(failed), variant=cited.astype(np.int8)[None])


def _seeding(batch: PairBatch) -> Finding:
    failed = batch.seeding >= encoding.UNSTABLE
    return Finding(failed, np.zeros_like(failed), variant=(batch.seeding == encoding.CONTRADICTED).astype(np.int8))
