"""Reading gold items and their runs, and the measures of each item as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adjudge.errors import InputError
from adjudge.protocols.base import Partition
from adjudge.protocols.stability import text as t
from adjudge.readers.blocks import Block

Row = dict[str, Any]

BATCH_ROWS = 2048
COUNTS = ("runs", "acr_hits", "cghc_hits", "scu_hits", "refusals")
SHARES = ("css", "ned50", "iaa")
FLAGS = ("answerable", "has_substrings", "has_citations")
EXPECTED = {
    "gold": "a gold item has `qid`, `question`, `answerable`, `gold_claim_substr`, `gold_citations`, `constraints`",
    "runs": "a run has `qid`, `run_id`, `seed`, `jitter`, `answer_json` and `retrieved_ids`",
}


class Gold(msgspec.Struct, gc=False):
    """A question with what a right answer holds."""

    qid: str | int
    question: str = ""
    answerable: bool = True
    gold_claim_substr: list[str] | str | None = None
    gold_citations: list[str | int] | None = None
    constraints: Any = None


class Answer(msgspec.Struct, gc=False):
    """What one run answered."""

    claim: str | None = None
    citations: list[str | int] | None = None
    constraints_echo: Any = None


class RunRow(msgspec.Struct, gc=False):
    """One answer to a gold question."""

    qid: str | int
    run_id: str | int
    seed: int | None = None
    jitter: str | None = None
    answer_json: Answer | None = None


ROLES: dict[str, Any] = {"gold": Gold, "runs": RunRow}
_gold = msgspec.json.Decoder(Gold)
_run = msgspec.json.Decoder(RunRow)
_NAMES = pa.list_(pa.string())
_NO_ANSWER = Answer()


def read_gold(block: Block) -> pa.Table:
    """Gold items as columns; `wanted` are the substrings in the form in which claims are compared."""
    rows = block.decode(_gold, EXPECTED["gold"])
    wanted = [[value] if isinstance(value, str) else value or [] for value in (row.gold_claim_substr for row in rows)]
    return _table(
        block,
        rows,
        answerable=pa.array([row.answerable for row in rows], pa.bool_()),
        wanted=pa.array([[part for part in map(t.canonical, parts) if part] for parts in wanted], _NAMES),
        citations=pa.array([_ids(row.gold_citations) for row in rows], _NAMES),
        constraints=pa.array([_plain(row.constraints) for row in rows], pa.binary()),
    )


def read_runs(block: Block) -> pa.Table:
    """Runs as columns."""
    rows = block.decode(_run, EXPECTED["runs"])
    answers = [row.answer_json or _NO_ANSWER for row in rows]
    return _table(
        block,
        rows,
        run_id=pa.array([str(row.run_id) for row in rows], pa.string()),
        claim=pa.array([answer.claim or "" for answer in answers], pa.string()),
        citations=pa.array([_ids(answer.citations) for answer in answers], _NAMES),
        echo=pa.array([_plain(answer.constraints_echo) for answer in answers], pa.binary()),
    )


READ = {"gold": read_gold, "runs": read_runs}


def _table(block: Block, rows: Sequence[Gold | RunRow], **columns: pa.Array) -> pa.Table:
    keys = pa.array([str(row.qid) for row in rows], pa.string())
    files = pa.array([block.file] * len(rows), pa.int32())
    return pa.table({"key": keys, "file": files, "line": pa.array(block.lines), **columns})


def _ids(names: Sequence[str | int] | None) -> list[str]:
    """Ids as text: 7 and "7" are the same."""
    return [str(name) for name in names or ()]


def _plain(value: Any) -> bytes:
    """Constraints in one form, whatever the order of their keys."""
    return msgspec.json.encode(value, order="sorted")


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
        answerable = self.flags["answerable"]
        if name == "acr":
            return answerable & self.flags["has_substrings"]
        if name == "cghc":
            return answerable & self.flags["has_citations"]
        return ~answerable if name == "rcr" else np.ones(self.n, dtype=bool)


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
    echoes = [run["echo"] for run in runs]
    sources = set(gold["citations"])
    folded = [t.canonical(claim) for claim in claims]
    # Without constraints in the gold, the echo that most runs give is the right one.
    most = max((echoes.count(echo) for echo in echoes), default=0)
    return {
        "claims": claims,
        "runs": len(runs),
        "acr_hits": sum(any(part in claim for part in gold["wanted"]) for claim in folded),
        "cghc_hits": sum(bool(sources & ids) for ids in cited),
        "scu_hits": most if gold["constraints"] == b"null" else echoes.count(gold["constraints"]),
        "refusals": sum(claim == t.REFUSAL for claim in claims),
        "css": t.jaccard_mean(cited),
        "ned50": t.edit_distance_median(claims),
        "iaa": t.exact_agreement(claims),
        "answerable": gold["answerable"],
        "has_substrings": bool(gold["wanted"]),
        "has_citations": bool(sources),
    }


def columns(batch: StabilityBatch) -> dict[str, pa.Array]:
    """The stored columns."""
    return (
        {name: pa.array(values) for name, values in batch.flags.items()}
        | {name: pa.array(values) for name, values in batch.counts.items()}
        | {name: pa.array(values, from_pandas=True) for name, values in batch.shares.items()}
    )


def restore(samples: pa.Table) -> StabilityBatch:
    """The batch as it was, from what is stored."""
    return StabilityBatch(
        {name: samples.column(name).to_numpy() for name in COUNTS},
        {name: np.asarray(samples.column(name).to_numpy(), dtype=float) for name in SHARES},
        {name: samples.column(name).to_numpy() for name in FLAGS},
    )
