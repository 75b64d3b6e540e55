"""Verify's look at what an agent left: agent.json, its table and its transcripts, replayed without asking anybody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from adjudge.agents.validation import stored_again
from adjudge.engine.metrics import JudgeTally, agent_problems
from adjudge.evidence.atoms import pack_citations
from adjudge.evidence.table import Evidence
from adjudge.protocols.base import Plan
from adjudge.provenance.canonical import pretty
from adjudge.runs.run import Run
from adjudge.runs.writer import AGENT, SAMPLES, VALIDATION
from adjudge.verdict.adjudicator import AGENT_TABLE, TRANSCRIPTS, Adjudged, Adjudicator, Cases
from adjudge.verdict.agent import ELIGIBLE

_SHOWN = 20


class Replayed(NamedTuple):
    """What is wrong with what an agent left, what it comes to in numbers, and whether its answers could be made again."""

    problems: list[str]
    judges: JudgeTally
    replayed: bool


def replay(run: Run, plan: Plan, adjudicator: Adjudicator) -> Replayed:
    """Hold the stored checklist, statuses, reasons, votes and verdicts to the evidence and the transcripts."""
    result = Replayed([], JudgeTally(), replayed=True)
    if run.agent is None:
        return Replayed([f"{AGENT}: is missing"], result.judges, replayed=False)
    adjudicator.agent.attach(run.agent)
    adjudicator.agent.begin([file.sha256 for file in run.manifest.inputs])
    if msgspec.json.decode(pretty(adjudicator.document())) != run.agent:
        result.problems.append(f"{AGENT}: the agent or its checklist is not what the configuration gives")
    if (run.path / VALIDATION).is_file() and not stored_again(run):
        result.problems.append(f"{VALIDATION}: is not what the tables and the labels in it give")
    for part, samples, evidence, outputs, table, transcripts in _batches(run):
        where = f"agent/part-{part:05d}.parquet"
        if table is None:
            result.problems.append(f"{where}: is missing")
            return result
        answers = outputs.column("response").to_pylist()
        names = [samples.column(name).to_pylist() for name in ("model", "sample")]
        cases = Cases(names[0], names[1], lambda answers=answers: answers, plan.asked(samples))  # type: ignore[misc]
        result.problems.extend(
            f"{where}: {text}" for text in agent_problems(samples, evidence, table, adjudicator, answers)
        )
        again, problems = adjudicator.again(evidence, cases, transcripts)
        result.problems.extend(f"transcripts/part-{part:05d}.parquet: {text}" for text in problems)
        if again is None:
            result = result._replace(replayed=False)
        else:
            result.problems.extend(_differences(samples, table, again, where))
        if not adjudicator.by_rules and not result.problems:
            tables = {AGENT_TABLE: table} | ({} if transcripts is None else {TRANSCRIPTS: transcripts})
            result.judges.add(samples, evidence, tables)
        if len(result.problems) > _SHOWN:
            return result
    return result


def _batches(
    run: Run,
) -> Iterator[tuple[int, pa.Table, Evidence, pa.Table, pa.Table | None, pa.Table | None]]:
    """(partition, samples, evidence, outputs, agent's table, transcripts) of every batch, rows counted from its first."""
    current, sides = -1, dict[str, pa.Table | None]()
    for part, samples, evidence in run.batches():
        if part != current:
            current = part
            sides = {kind: run.side_table(kind, part) for kind in ("outputs", AGENT_TABLE, TRANSCRIPTS)}
        first = samples.column("row")[0].as_py()
        outputs, table, transcripts = (_rows(side, first, evidence.n) for side in sides.values())
        assert outputs is not None  # noqa: S101 -- every run has outputs
        yield part, samples, evidence, outputs, table, transcripts


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
