"""Reading gold items and their runs, and the measures of each item as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.base import Partition
from adjudge.protocols.common.constraints import comparable
from adjudge.protocols.stability import text as t

Row = dict[str, Any]

BATCH_ROWS = 2048
NO_CONSTRAINTS = comparable(None)
COUNTS = ("runs", "acr_hits", "cghc_hits", "scu_hits", "refusals", "scoped", "out_of_scope")
"""Runs of an item: all, those that hit, refuse, say what was retrieved, and cite something else than that."""
SHARES = ("css", "ned50", "iaa")
FLAGS = ("answerable", "has_substrings", "has_citations")


@dataclass
class StabilityBatch:
    """Columns over n gold items; a share that does not exist is NaN."""

    counts: dict[str, NDArray[np.int64]]
    shares: dict[str, NDArray[np.float64]]
    flags: dict[str, NDArray[np.bool_]]

    @property
    def n(self) -> int:
        """Gold items in the batch."""
        return self.counts["runs"].size

    def share(self, name: str) -> NDArray[np.float64]:
        """A measure of every item, by its short name."""
        if name in SHARES:
            return self.shares[name]
        hits = self.counts["refusals" if name == "rcr" else f"{name}_hits"]
        runs = self.counts["runs"]
        shares: NDArray[np.float64] = np.where(runs > 0, hits / np.maximum(runs, 1), np.nan)
        return shares

    def applies(self, name: str) -> NDArray[np.bool_]:
        """Where a measure is about the item at all."""
        answerable, substrings, citations = (self.flags[flag] for flag in FLAGS)
        about = {"acr": answerable & substrings, "cghc": answerable & citations, "rcr": ~answerable}
        return about.get(name, np.ones(self.n, dtype=bool))


def read(partition: Partition) -> Iterator[tuple[StabilityBatch, list[str], list[list[str]]]]:
    """(columns, qids, claims) in the order of the qids."""
    golds: dict[str, Row] = {}
    for row in partition.tables["gold"].to_pylist():
        if row["key"] in golds:
            raise _refused(f"qid {row['key']!r} stands twice", row, partition)
        golds[row["key"]] = row
    runs: dict[str, dict[str, Row]] = {name: {} for name in golds}
    for row in partition.tables["runs"].to_pylist():
        name, run_id = row["key"], row["run_id"]
        if name not in runs:
            gold = Path(partition.files[0]).name
            raise _refused(f"run for qid {name!r}, which {gold} does not have", row, partition)
        if run_id in runs[name]:
            raise _refused(f"run_id {run_id!r} of qid {name!r} stands twice", row, partition)
        runs[name][run_id] = row
    names = sorted(golds)
    for start in range(0, len(names), BATCH_ROWS):
        chosen = names[start : start + BATCH_ROWS]
        rows = [_measures(golds[name], [runs[name][run_id] for run_id in sorted(runs[name])]) for name in chosen]
        batch = StabilityBatch(
            {name: np.array([row[name] for row in rows], dtype=np.int64) for name in COUNTS},
            {name: np.array([row[name] for row in rows], dtype=np.float64) for name in SHARES},
            {name: np.array([row[name] for row in rows], dtype=bool) for name in FLAGS},
        )
        yield batch, chosen, [row["claims"] for row in rows]


def _refused(what: str, row: Row, partition: Partition) -> InputError:
    return InputError(what, file=partition.files[row["file"]], line=row["line"])


def _measures(gold: Row, runs: list[Row]) -> Row:
    """Every measure of one question over its runs; one that does not exist is None."""
    claims = [run["claim"] for run in runs]
    cited = [set(run["citations"]) for run in runs]
    astray = [
        run["retrieved"] is not None and not ids <= set(run["retrieved"]) for run, ids in zip(runs, cited, strict=True)
    ]
    echoes = [run["echo"] for run in runs]
    sources = set(gold["citations"])
    folded = [t.canonical(claim) for claim in claims]
    # Without constraints in the gold, the echo that most runs give is the right one.
    most = max((echoes.count(echo) for echo in echoes), default=0)
    return {
        "claims": claims,
        "runs": len(runs),
        "acr_hits": sum(any(part in claim for part in gold["wanted"]) for claim in folded),
        "cghc_hits": sum(bool(sources & ids) and not outside for ids, outside in zip(cited, astray, strict=True)),
        "scu_hits": most if gold["constraints"] == NO_CONSTRAINTS else echoes.count(gold["constraints"]),
        "scoped": sum(run["retrieved"] is not None for run in runs),
        "out_of_scope": sum(astray),
        "refusals": sum(claim == t.REFUSAL for claim in claims),
        "css": t.jaccard_mean(cited),
        "ned50": t.edit_distance_median(claims),
        "iaa": t.exact_agreement(claims),
        "answerable": gold["answerable"],
        "has_substrings": bool(gold["wanted"]),
        "has_citations": bool(sources),
    }
