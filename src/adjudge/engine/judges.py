"""What an agent other than the rules did: counted, held to its promises, and replayed by `verify` without asking anybody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adjudge.agents.validation import stored_again
from adjudge.evidence.atoms import pack_citations
from adjudge.evidence.table import Evidence
from adjudge.protocols.base import Named, Plan
from adjudge.provenance.canonical import pretty
from adjudge.runs.run import Run
from adjudge.runs.section import Column, Section
from adjudge.runs.writer import AGENT as AGENT_FILE
from adjudge.runs.writer import SAMPLES, VALIDATION
from adjudge.stats.agreement import cohen_kappa, percent_agreement
from adjudge.stats.estimate import Estimate, Metric, count, declaration, share
from adjudge.stats.proportions import wilson
from adjudge.verdict.adjudicator import AGENT_TABLE, TRANSCRIPTS, Adjudged, Adjudicator, Cases
from adjudge.verdict.agent import ELIGIBLE, INELIGIBLE, rule_verdicts
from adjudge.verdict.deliberation import AGENT, NOT_ASKED, REFUSALS, stands_in

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
    tokens: int = 0
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
                self.tokens += sum(transcripts.column(name).drop_null().to_pylist())

    def merge(self, other: JudgeTally) -> None:
        """Add the counts of a later partition."""
        for name in ("asked", "to_the_rules", "voted", "unanimous", "unverified", "answers", "tokens"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.verdicts.update(other.verdicts)
        self.refused.update(other.refused)
        self.stricter = (self.stricter + other.stricter)[:_EXAMPLES]

    @property
    def matrix(self) -> NDArray[np.int64]:
        """Verdicts counted: rows the rules', columns the agent's, eligible first."""
        return np.array([[self.verdicts[rules, agent] for agent in (True, False)] for rules in (True, False)])

    def estimates(self) -> list[Named]:
        """Agreement with the rules, and what was refused."""
        n = int(self.matrix.sum())
        no_verdicts = Estimate.null("the agent gave no verdict that passed the checks")
        counted = {
            "agent_refused": self.to_the_rules,
            **{f"agent_refused.{reason}": self.refused[reason] for reason in REFUSALS if self.refused[reason]},
            "agent_quotes_unverified": self.unverified,
        }
        estimates = {
            "agent_agreement": percent_agreement(self.matrix) if n else no_verdicts,
            "agent_kappa": cohen_kappa(self.matrix) if n else no_verdicts,
            "agent_stricter": wilson(int(self.verdicts[True, False]), n) if n else no_verdicts,
            **({"agent_unanimous": wilson(self.unanimous, self.voted)} if self.voted else {}),
            **{name: Estimate(value=float(value), n=self.asked, method=_METHOD) for name, value in counted.items()},
        }
        return [Named(name, "", estimate) for name, estimate in estimates.items()]

    def sections(self, document: Mapping[str, Any]) -> list[Section]:
        """The judge: who judged, agreement with the rules, refusals, votes, and what it was stricter about."""
        rows: list[list[Any]] = [["samples it was asked about", None, self.asked]]
        if self.answers:
            rows += [["answers", None, self.answers], ["tokens", None, self.tokens]]
        for name, _, estimate in self.estimates():
            metric = declaration(METRICS, name)
            if metric is not None and not name.startswith("agent_refused."):
                number = int(estimate.value or 0) if estimate.method == _METHOD else estimate
                rows.append([metric.title, *((estimate, None) if metric.unit else (None, number))])
        refused: list[list[Any]] = [
            [REFUSALS[reason], self.refused[reason]] for reason in REFUSALS if self.refused[reason]
        ]
        (both, stricter), (laxer, neither) = self.matrix.tolist()
        return [
            Section("judge", f"The judge: {document['agent']}", ["", Column("share", "%"), "number"], rows, note=_NOTE),
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


_SHOWN = 20


def replay(run: Run, plan: Plan, adjudicator: Adjudicator) -> tuple[list[str], JudgeTally, bool]:
    """Hold the stored checklist, statuses, reasons, votes and verdicts to the evidence and the transcripts.

    What is wrong with what an agent left, what it comes to in numbers, and whether its answers could be made again.
    """
    problems, judges, replayed = list[str](), JudgeTally(), True
    if run.agent is None:
        return [f"{AGENT_FILE}: is missing"], judges, False
    adjudicator.agent.attach(run.agent)
    adjudicator.agent.begin([file.sha256 for file in run.manifest.inputs])
    if msgspec.json.decode(pretty(adjudicator.document())) != run.agent:
        problems.append(f"{AGENT_FILE}: the agent or its checklist is not what the configuration gives")
    if (run.path / VALIDATION).is_file() and not stored_again(run):
        problems.append(f"{VALIDATION}: is not what the tables and the labels in it give")
    for part, samples, evidence in run.batches():
        where, first = f"agent/part-{part:05d}.parquet", samples.column("row")[0].as_py()
        sides = (run.side_table(kind, part) for kind in ("outputs", AGENT_TABLE, TRANSCRIPTS))
        outputs, table, transcripts = (_rows(side, first, evidence.n) for side in sides)
        assert outputs is not None  # noqa: S101 -- every run has outputs
        if table is None:
            return [*problems, f"{where}: is missing"], judges, replayed
        answers = outputs.column("response").to_pylist()
        names = [samples.column(name).to_pylist() for name in ("model", "sample")]
        cases = Cases(names[0], names[1], lambda answers=answers: answers, plan.asked(samples))  # type: ignore[misc]
        problems += [f"{where}: {text}" for text in agent_problems(samples, evidence, table, adjudicator, answers)]
        again, differences = adjudicator.again(evidence, cases, transcripts)
        problems += [f"transcripts/part-{part:05d}.parquet: {text}" for text in differences]
        if again is None:
            replayed = False
        else:
            problems += _differences(samples, table, again, where)
        if not adjudicator.by_rules and not problems:
            tables = {AGENT_TABLE: table} | ({} if transcripts is None else {TRANSCRIPTS: transcripts})
            judges.add(samples, evidence, tables)
        if len(problems) > _SHOWN:
            break
    return problems, judges, replayed


def _rows(table: pa.Table | None, first: int, n: int) -> pa.Table | None:
    """The rows of some samples, counted from the first of them."""
    if table is None:
        return None
    row = table.column("row")
    chosen = table.filter(pc.and_(pc.greater_equal(row, first), pc.less(row, first + n)))
    moved = pc.subtract(chosen.column("row"), pa.scalar(first, pa.uint32()))
    return chosen.set_column(chosen.column_names.index("row"), "row", moved)


def _differences(samples: pa.Table, table: pa.Table, again: Adjudged, where: str) -> Iterator[str]:
    """Where stored verdicts and reasons are not what the evidence and the transcripts come to."""
    verdicts, tables = again
    expected = tables[AGENT_TABLE]
    for name in expected.column_names:
        if name not in table.column_names:
            yield f"{where}: has no column {name!r}"
        elif (stored := table.column(name).to_pylist()) != (values := expected.column(name).to_pylist()):
            row = next(index for index, pair in enumerate(zip(stored, values, strict=True)) if pair[0] != pair[1])
            model, sample = (samples.column(key)[row].as_py() for key in ("model", "sample"))
            yield f"{where}: {name} of {model}/{sample} is not what the evidence and the transcripts give"
    eligible = [verdict == ELIGIBLE for verdict in samples.column("verdict").to_pylist()]
    if eligible != verdicts.eligible.tolist():
        yield f"{SAMPLES}: verdict is not what the agent's answers come to"
    if samples.column("cites").to_pylist() != pack_citations(verdicts.cites).to_pylist():
        yield f"{SAMPLES}: cites is not what the agent's answers come to"
