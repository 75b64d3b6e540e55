"""Samples whose outcome changed from one system to the other, with the evidence of the side that fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
import pyarrow as pa

from adjudge.comparisons.outcomes import Outcome, plain
from adjudge.comparisons.systems import System, sample_of, trial_of

_MESSAGES = 5
_WORST_FIRST = {"CRITICAL": 0, "WARNING": 1, "INFO": 2}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A failed atom of the side that fails."""

    id: str
    rule: str
    severity: str
    message: str


class Flip(msgspec.Struct, frozen=True, kw_only=True):
    """One sample that changed: `lost` where the second system fails, `gained` where the first did."""

    sample: str
    trial: str | None
    change: Literal["lost", "gained"]
    fails: str
    bucket_a: str | None
    bucket_b: str | None
    evidence: list[Finding] | None


class Flips(msgspec.Struct, frozen=True, kw_only=True):
    """All samples that changed on one yes-or-no outcome, the lost ones first; evidence stands with the first of each way."""

    name: str
    lost: int
    gained: int
    samples: list[Flip]


def flips(outcome: Outcome, first: System, second: System, keys: Sequence[str], *, evidence: int) -> Flips:
    """The samples on which exactly one of the two is right; `evidence` of them, of both ways, with their failed atoms."""
    names = sorted(outcome.columns() | {"bucket", "model", "part", "row", "sample"})
    tables = [system.table(names, keys) for system in (first, second)]
    a, b = (outcome.values(table) for table in tables)
    inside = outcome.inside(tables[0]) & outcome.inside(tables[1])
    up = 1.0 if outcome.higher_is_better else -1.0
    change = np.where(inside & ~np.isnan(a) & ~np.isnan(b), np.nan_to_num(b - a), 0.0) * up
    lost, gained = np.flatnonzero(change < 0), np.flatnonzero(change > 0)
    buckets = [plain(table.column("bucket")) for table in tables]
    places = [table.select(["part", "row", "model", "sample"]) for table in tables]
    first_lost = min(lost.size, max(-(-evidence // 2), evidence - gained.size))
    looked_at = {*lost[:first_lost].tolist(), *gained[: max(0, evidence - first_lost)].tolist()}
    samples: list[Flip] = []
    for index in (*lost.tolist(), *gained.tolist()):
        side = int(change[index] < 0)
        system = (first, second)[side]
        samples.append(
            Flip(
                sample=sample_of(keys[index]),
                trial=trial_of(keys[index]),
                change="lost" if side else "gained",
                fails=system.name,
                bucket_a=buckets[0][index].as_py(),
                bucket_b=buckets[1][index].as_py(),
                evidence=_evidence(system, places[side].slice(index, 1)) if index in looked_at else None,
            )
        )
    return Flips(name=outcome.name, lost=lost.size, gained=gained.size, samples=samples)


def _evidence(system: System, row: pa.Table) -> list[Finding]:
    failed = [atom for atom in system.run.atoms(row.to_pylist()[0]) if atom.failed]
    failed.sort(key=lambda atom: _WORST_FIRST[atom.severity])
    return [
        Finding(id=atom.id, rule=atom.rule, severity=atom.severity, message=atom.message) for atom in failed[:_MESSAGES]
    ]
