"""The samples that a page shows with their evidence: the worst, some of every model, and a few that passed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.report.chosen import BADNESS
from adjudge.report.samples import rendered
from adjudge.runs.pick import hold
from adjudge.runs.query import query
from adjudge.runs.run import Run

WORST, PASSED = 40, 3
Place = tuple[int, int]


def worst_places(run: Run) -> tuple[list[Place], list[Place], int]:
    """Partition and number of the worst rows and of a few that passed, and how many did not pass.

    Wrong answers come before none; among them those first that fail a rule which the protocol calls `gravest`.
    """
    gravest = [str(code).replace("'", "''") for code in run.metrics.get("gravest") or ()]
    cases = " ".join(f"when '{code}' then {place}" for place, code in enumerate(gravest))
    gravity = f"min(case rule {cases} else {len(gravest)} end)" if gravest else "0"
    # The first of every bucket of every model comes before the second of any, so that no kind of failure is missing.
    _, rows = query(
        run,
        "with failed as (select part, sample as row, count(*) filter (where severity = 'CRITICAL') as critical, "  # noqa: S608 -- codes are quoted
        f"count(*) as failed, {gravity} as gravity from atoms where outcome = 'fail' group by part, sample), "
        f"placed as materialized (select s.part, s.row, s.sample, s.model, s.bucket, {BADNESS} as badness, coalesce(critical, 0) as critical, "
        f"coalesce(failed, 0) as failed, coalesce(gravity, {len(gravest)}) as gravity "
        "from samples s left join failed using (part, row)), "
        "ranked as (select *, row_number() over (partition by model, bucket, gravity "
        "order by critical desc, failed desc, sample) as place, count(*) over () as total from placed where bucket <> 'passed'), "
        "worst as (select * from ranked order by place, badness desc, gravity, critical desc, failed desc, model, sample "
        f"limit {WORST}), "
        f"fine as (select * from placed where bucket = 'passed' order by md5(sample), model limit {PASSED}) "
        "select part, row, total, -badness, gravity, -critical, -failed, model, sample, '' as draw from worst "
        "union all select part, row, 0, 0, 0, 0, 0, model, sample, md5(sample) from fine",
        threads=1,
    )
    failing = sorted((row for row in rows if row[2]), key=lambda row: row[3:9])
    fine = sorted((row for row in rows if not row[2]), key=lambda row: (row[9], row[7]))
    return [row[:2] for row in failing], [row[:2] for row in fine], failing[0][2] if failing else 0


def worst(run: Run, places: tuple[Sequence[Place], Sequence[Place], int] | None = None) -> dict[str, Any]:
    """The worst samples, with their evidence, as plain data."""
    failing, fine, not_passed = places or worst_places(run)
    hold(run, [*failing, *fine])
    return {
        "rows": [rendered(run, run.held[place][0]) for place in (*failing, *fine)],
        "not_passed": not_passed,
        "shown": len(failing),
        "query": "select sample, model, bucket, verdict from samples where bucket <> 'passed'",
    }
