"""metrics.json: the flat metrics, every estimate, buckets and gates; no time in it.

What an agent did is counted beside them, and held to its rules when a run is written and when it is verified.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.engine import matching
from adjudge.engine.matching import IdDigest, Matching
from adjudge.engine.promises import Tally
from adjudge.evidence.rule import Layout
from adjudge.evidence.table import Evidence
from adjudge.protocols.base import Measured, Named, Plan, Protocol, protocol
from adjudge.provenance.manifest import SCHEMA_VERSION
from adjudge.runs.run import Run
from adjudge.runs.section import Column, Section
from adjudge.stats.agreement import cohen_kappa, percent_agreement
from adjudge.stats.estimate import Estimate, Metric, by_gate_name, count, declaration, headline, share, stored
from adjudge.stats.proportions import wilson
from adjudge.verdict.adjudicator import AGENT_TABLE, TRANSCRIPTS, Adjudicator
from adjudge.verdict.agent import ELIGIBLE, INELIGIBLE, rule_verdicts
from adjudge.verdict.deliberation import AGENT, NOT_ASKED, REFUSALS, stands_in
from adjudge.verdict.gates import Gate, judge

METRICS: tuple[Metric, ...] = (
    share(
        "agent_agreement",
        "agreement with the rules",
        better=None,
        formula="same verdict as the rules ÷ verdicts of the agent",
    ),
    Metric(
        "agent_kappa",
        "κ with the rules",
        low=-1.0,
        high=1.0,
        formula="(agreement − chance agreement) ÷ (1 − chance agreement) over eligible and ineligible",
        interval="by the delta method",
        null="where agent and rules give one and the same verdict throughout",
    ),
    share(
        "agent_stricter",
        "stricter than the rules",
        formula="ineligible where the rules say eligible ÷ verdicts of the agent",
    ),
    share("agent_unanimous", "unanimous votes", formula="samples with equal votes ÷ samples that were voted on"),
    count("agent_refused", "refused to the rules", formula="samples whose verdict is the rules' own after refusals"),
    count("agent_refused.*", "refused answers: {}", formula="answers of the agent that were refused for this reason"),
    count("agent_quotes_unverified", "quotes that are not there", formula="quotes that do not stand in the raw answer"),
)
"""What the engine measures of every agent but the rules."""

_METHOD = "counted"
_EXAMPLES = 12


@dataclass
class JudgeTally:
    """Counts over all samples that an agent was asked about."""

    asked: int = 0
    verdicts: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    """(rules say eligible, agent says eligible) → samples, of verdicts that are the agent's."""
    refused: Counter[str] = field(default_factory=Counter)
    to_the_rules: int = 0
    voted: int = 0
    unanimous: int = 0
    unverified: int = 0
    answers: int = 0
    tokens: Counter[str] = field(default_factory=Counter)
    stricter: list[tuple[str, str, str]] = field(default_factory=list)
    """Examples: sample, model, the agent's first reason."""

    def add(self, samples: pa.Table, evidence: Evidence, tables: Mapping[str, pa.Table]) -> None:
        """Count one batch."""
        rules = rule_verdicts(evidence).eligible.tolist()
        names = samples.select(["sample", "model", "verdict"]).to_pylist()
        for row, name, by_rules in zip(tables[AGENT_TABLE].to_pylist(), names, rules, strict=True):
            if row["decided_by"] == NOT_ASKED:
                continue
            self.asked += 1
            self.refused.update(row["refused"] or ())
            self.unverified += [*(row["quotes_verified"] or ()), *(row["reason_verified"] or ())].count(False)
            votes = row["votes"] or ()
            self.voted += len(votes) > 1
            self.unanimous += len(votes) > 1 and len(set(votes)) == 1
            if row["decided_by"] != AGENT:
                self.to_the_rules += 1
                continue
            eligible = name["verdict"] == ELIGIBLE
            self.verdicts[by_rules, eligible] += 1
            if by_rules and not eligible and len(self.stricter) < _EXAMPLES:
                words = next((text for text in row["reason_words"] or () if text), "")
                self.stricter.append((name["sample"], name["model"], words))
        if TRANSCRIPTS in tables:
            transcripts = tables[TRANSCRIPTS]
            self.answers += transcripts.num_rows
            for name in ("prompt_tokens", "completion_tokens"):
                self.tokens[name] += sum(transcripts.column(name).drop_null().to_pylist())

    def merge(self, other: JudgeTally) -> None:
        """Add the counts of a later partition."""
        for name in ("asked", "to_the_rules", "voted", "unanimous", "unverified", "answers"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.verdicts.update(other.verdicts)
        self.refused.update(other.refused)
        self.tokens.update(other.tokens)
        self.stricter = (self.stricter + other.stricter)[:_EXAMPLES]

    @property
    def matrix(self) -> NDArray[np.int64]:
        """Verdicts counted: rows the rules', columns the agent's, eligible first."""
        return np.array([[self.verdicts[rules, agent] for agent in (True, False)] for rules in (True, False)])

    def estimates(self) -> list[Named]:
        """Agreement with the rules, and what was refused; nothing where nobody was asked."""
        if not self.asked:
            return []
        n = int(self.matrix.sum())
        no_verdicts = "the agent gave no verdict that passed the checks"
        counted = {
            "agent_refused": self.to_the_rules,
            **{f"agent_refused.{reason}": self.refused[reason] for reason in REFUSALS if self.refused[reason]},
            "agent_quotes_unverified": self.unverified,
        }
        estimates = {
            "agent_agreement": percent_agreement(self.matrix) if n else Estimate.null(no_verdicts),
            "agent_kappa": cohen_kappa(self.matrix) if n else Estimate.null(no_verdicts),
            "agent_stricter": wilson(int(self.verdicts[True, False]), n) if n else Estimate.null(no_verdicts),
            **({"agent_unanimous": wilson(self.unanimous, self.voted)} if self.voted else {}),
            **{name: Estimate(value=float(value), n=self.asked, method=_METHOD) for name, value in counted.items()},
        }
        return [Named(name, "", estimate) for name, estimate in estimates.items()]

    def sections(self, document: Mapping[str, Any]) -> list[Section]:
        """The judge: who judged, agreement with the rules, refusals, votes, and what it was stricter about."""
        if not self.asked:
            return []
        rows: list[list[Any]] = [["samples it was asked about", None, self.asked]]
        if self.answers:
            rows += [["answers", None, self.answers], ["tokens", None, sum(self.tokens.values())]]
        for name, _, estimate in self.estimates():
            metric = declaration(METRICS, name)
            if metric is not None and not name.startswith("agent_refused."):
                shown = (estimate, None) if metric.unit else (None, _number(estimate))
                rows.append([metric.title, *shown])
        refused: list[list[Any]] = [
            [REFUSALS[reason], self.refused[reason]] for reason in REFUSALS if self.refused[reason]
        ]
        (both, stricter), (laxer, neither) = self.matrix.tolist()
        return [
            Section(
                "judge",
                f"The judge: {document['agent']}",
                ["", Column("share", "%"), "number"],
                rows,
                note=_NOTE,
            ),
            Section(
                "judge_confusion",
                "Verdicts of rules and judge",
                ["rules say", f"judge: {ELIGIBLE}", f"judge: {INELIGIBLE}"],
                [[ELIGIBLE, both, stricter], [INELIGIBLE, laxer, neither]],
            ),
            Section(
                "judge_refused",
                "Answers of the judge that were refused",
                ["why", "answers"],
                refused,
                empty="No answer was refused.",
            ),
            Section(
                "judge_stricter",
                "Where the judge was stricter than the rules",
                ["sample", "model", "the judge's words"],
                [list(row) for row in self.stricter],
                terminal=3,
                empty="Nowhere.",
            ),
        ]


def _number(estimate: Estimate) -> Estimate | int | None:
    """A count as a count, anything else with its interval."""
    return int(estimate.value or 0) if estimate.method == _METHOD else estimate


_NOTE = (
    "Its answers were checked: citations that exist, quotes that stand in the answer, never laxer than a failed critical "
    "rule. What it thinks is its own; its agreement with people is told by `adjudge agent validate`."
)


def agent_problems(
    samples: pa.Table, evidence: Evidence, table: pa.Table, adjudicator: Adjudicator, answers: Sequence[str | None]
) -> Iterator[str]:
    """Which promises about an agent one batch breaks, each with the sample that does."""
    by_rules = rule_verdicts(evidence).eligible.tolist()
    width, items = evidence.layout.width, len(adjudicator.items)
    names = samples.select(["sample", "model", "verdict"]).to_pylist()
    if table.num_rows != len(names):
        yield f"the agent's table has {table.num_rows} rows for {len(names)} samples"
        return
    for index, (row, name) in enumerate(zip(table.to_pylist(), names, strict=True)):
        positions = [*(row["reason_atoms"] or ()), *(row["reason_worst"] or ()), *(row["item_atoms"] or ())]
        quotes = zip(
            [*(row["quotes"] or ()), *(row["reason_quotes"] or ())],
            [*(row["quotes_verified"] or ()), *(row["reason_verified"] or ())],
            strict=True,
        )
        wrong = {
            "is eligible against a failed critical atom": name["verdict"] == ELIGIBLE and not by_rules[index],
            f"has statuses of {len(row['status'])} items, the checklist has {items}": len(row["status"]) != items,
            "has reasons that cite atoms which do not exist": not all(0 <= place < width for place in positions),
            "counts atoms of its reasons that it does not name": sum(row["reason_sizes"] or ())
            != len(row["reason_atoms"] or ()),
            "marks a quote otherwise than the raw answer says": any(
                quote is not None and verified != stands_in(quote, answers[index]) for quote, verified in quotes
            ),
            "gives words to a reason whose quote is not there": any(
                verified is False and words is not None
                for verified, words in zip(row["reason_verified"] or (), row["reason_words"] or (), strict=False)
            ),
        }
        yield from (f"{name['model']}/{name['sample']} {what}" for what, broken in wrong.items() if broken)


@dataclass
class Counted:
    """What the engine counts itself, for every protocol alike."""

    tally: Tally = field(default_factory=Tally)
    matching: Matching = field(default_factory=Matching)
    ids: IdDigest = field(default_factory=IdDigest)
    """Of the records that the samples are about; `read_ids` of all that were read."""
    read_ids: IdDigest = field(default_factory=IdDigest)
    judges: JudgeTally = field(default_factory=JudgeTally)

    def merge(self, other: Counted) -> None:
        """Add what was counted of other partitions."""
        self.tally.merge(other.tally)
        self.matching.merge(other.matching)
        self.ids.merge(other.ids)
        self.read_ids.merge(other.read_ids)
        self.judges.merge(other.judges)

    def intake(self, notes: Sequence[str]) -> dict[str, Any]:
        """What intake.json says of the input, which nothing in the run repeats."""
        digests = {"ids_sha256": self.ids.hexdigest(), "read_ids_sha256": self.read_ids.hexdigest()}
        return {**self.matching.to_dict(), **digests, "notes": list(notes)}


def verdict_word(passed: bool | None) -> str | None:
    """Whether all gates pass, as the manifest says it."""
    return {True: "pass", False: "fail", None: None}[passed]


def metrics_of(chosen: Protocol) -> Sequence[Metric]:
    """The metrics of a protocol, and those that the engine adds to every run."""
    return (*chosen.metrics(), *matching.METRICS, *METRICS)


def introduce(run: Run) -> None:
    """Tell an opened run what its installed protocol says of it: the record view, the metrics, what a page shows of a sample."""
    chosen = protocol(run.manifest.protocol)
    run.recorder, run.declarations, run.panels = chosen.record, partial(metrics_of, chosen), chosen.panels


def metrics_document(
    chosen: Protocol, plan: Plan, measured: Measured, counted: Counted, gates: Sequence[Gate]
) -> tuple[dict[str, Any], list[str]]:
    """The document, from the numbers alone, so that `verify` can make it again; and the promises that it breaks."""
    by_name = by_gate_name(measured.estimates)
    protocol_names = {name for name, _, _ in measured.estimates}
    counted_here = (*counted.matching.estimates(), *counted.judges.estimates())
    counts = [named for named in counted_here if named.name not in protocol_names]
    by_name |= {name: estimate for name, _, estimate in counts}
    metrics = metrics_of(chosen)
    names = [named.name for named in (*measured.estimates, *counts)]
    outcomes, passed = judge(gates, by_name) if gates else ({}, None)
    tally = counted.tally
    buckets, problems = tally.closed(measured.buckets) if measured.buckets else (tally.of_models(), [])
    tables = [*measured.sections]
    if plan.adjudicator is not None:
        tables += counted.judges.sections(plan.adjudicator.document())
    sections = {"sections": [section.to_dict() for section in tables]} if tables else {}
    document = {
        "schema_version": SCHEMA_VERSION,
        "protocol": chosen.name,
        "protocol_version": chosen.version,
        "digests": {**plan.digests, **measured.digests},
        "pass": passed,
        "gates": outcomes,
        "buckets": buckets,
        "headline": headline(metrics, names),
        "declared": stored(metrics, names),
        **_top(measured.top, metrics),
        **sections,
        "metrics": measured.metrics,
        "estimates": [
            {"name": name, "slice": where, **estimate.to_dict()}
            for name, where, estimate in (*measured.estimates, *counts)
        ],
        "notes": [*counted.matching.notes(), *counted.tally.notes(Layout.of(plan.rules)), *measured.notes],
    }
    return document, problems


def _top(top: dict[str, Any], metrics: Sequence[Metric]) -> dict[str, Any]:
    """The protocol's keys; what can be compared takes its direction, unit and range from the metric of the same name."""
    outcomes = top.get("comparable")
    if not isinstance(outcomes, list):
        return top
    return {**top, "comparable": [{**_declared(outcome, metrics), **outcome} for outcome in outcomes]}


def _declared(outcome: dict[str, Any], metrics: Sequence[Metric]) -> dict[str, Any]:
    metric = declaration(metrics, outcome["name"])
    if metric is None:
        return {}
    declared: dict[str, Any] = {}
    if metric.better is not None:
        declared["higher_is_better"] = metric.better == "higher"
    if outcome["kind"] == "mean":
        declared |= {"unit": metric.unit} if metric.unit else {}
        declared |= {"span": metric.high - metric.low} if metric.low is not None and metric.high is not None else {}
    return declared
