"""Reading gold items and their runs, and the measures of each item as columns."""

from __future__ import annotations

from collections.abc import Iterator
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

BATCH_ROWS = 2048
COUNTS = ("runs", "acr_hits", "cghc_hits", "scu_hits", "refusals")
SHARES = ("css", "ned50", "iaa")
FLAGS = ("answerable", "has_substrings", "has_citations")
EXPECTED = {
    "gold": "a gold item has `qid`, `question`, `answerable`, `gold_claim_substr`, `gold_citations`, `constraints`",
    "runs": "a run has `qid`, `run_id`, `seed`, `jitter`, `answer_json` and `retrieved_ids`",
}


class _Key(msgspec.Struct, gc=False):
    qid: str | int


class Gold(msgspec.Struct, gc=False):
    """A question with what a right answer holds."""

    qid: str | int
    question: str = ""
    answerable: bool = True
    gold_claim_substr: list[str] | str | None = None
    gold_citations: list[str | int] | None = None
    constraints: msgspec.Raw = msgspec.Raw()


class _Answer(msgspec.Struct, gc=False):
    claim: str | None = None
    citations: list[str | int] | None = None
    constraints_echo: msgspec.Raw = msgspec.Raw()


class RunRow(msgspec.Struct, gc=False):
    """One answer to a gold question."""

    qid: str | int
    run_id: str | int
    seed: int | None = None
    jitter: str | None = None
    answer_json: _Answer | None = None


_key = msgspec.json.Decoder(_Key)
_gold = msgspec.json.Decoder(Gold)
_run = msgspec.json.Decoder(RunRow)


def key(path: str, line: int, row: bytes) -> tuple[str, None]:
    """The question a row belongs to."""
    del path, line
    return str(_key.decode(row).qid), None


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
        found: NDArray[np.float64] = np.where(runs > 0, hits / np.maximum(runs, 1), np.nan)
        return found

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
    golds: dict[str, Gold] = {}
    for file, line, row in partition.rows["gold"]:
        item = _decoded(_gold, "gold", row, partition, file, line)
        if str(item.qid) in golds:
            raise InputError(f"qid {item.qid!r} stands twice", file=partition.files[file], line=line)
        golds[str(item.qid)] = item
    runs: dict[str, dict[str, RunRow]] = {name: {} for name in golds}
    for file, line, row in partition.rows.get("runs", ()):
        found = _decoded(_run, "runs", row, partition, file, line)
        name, run_id = str(found.qid), str(found.run_id)
        if name not in runs:
            gold = Path(partition.files[0]).name
            raise InputError(f"run for qid {name!r}, which {gold} does not have", file=partition.files[file], line=line)
        if run_id in runs[name]:
            raise InputError(f"run_id {run_id!r} of qid {name!r} stands twice", file=partition.files[file], line=line)
        runs[name][run_id] = found
    names = sorted(golds)
    for start in range(0, len(names), BATCH_ROWS):
        chosen = names[start : start + BATCH_ROWS]
        rows = [_measures(golds[name], [runs[name][key] for key in sorted(runs[name])]) for name in chosen]
        batch = StabilityBatch(
            {name: np.array([row[name] for row in rows], dtype=np.int64) for name in COUNTS},
            {name: np.array([_nan(row[name]) for row in rows]) for name in SHARES},
            {name: np.array([row[name] for row in rows], dtype=bool) for name in FLAGS},
        )
        yield batch, chosen, [row["claims"] for row in rows]


def _measures(gold: Gold, runs: list[RunRow]) -> dict[str, Any]:
    """Every measure of one question over its runs."""
    answers = [run.answer_json or _Answer() for run in runs]
    claims = [answer.claim or "" for answer in answers]
    cited = [{str(name) for name in answer.citations or ()} for answer in answers]
    given = gold.gold_claim_substr
    wanted = [t.canonical(part) for part in ([given] if isinstance(given, str) else given or [])]
    wanted = [part for part in wanted if part]
    sources = {str(name) for name in gold.gold_citations or ()}
    folded = [t.canonical(claim) for claim in claims]
    return {
        "claims": claims,
        "runs": len(runs),
        "acr_hits": sum(any(part in claim for part in wanted) for claim in folded),
        "cghc_hits": sum(bool(sources & own) for own in cited),
        "scu_hits": _same_constraints(gold, answers),
        "refusals": sum(claim == t.REFUSAL for claim in claims),
        "css": t.jaccard_mean(cited),
        "ned50": t.edit_distance_median(claims),
        "iaa": t.exact_agreement(claims),
        "answerable": gold.answerable,
        "has_substrings": bool(wanted),
        "has_citations": bool(sources),
    }


def _same_constraints(gold: Gold, answers: list[_Answer]) -> int:
    """Runs that echo the gold's constraints, or, where it has none, the echo that most runs give."""
    echoes = [_plain(answer.constraints_echo) for answer in answers]
    wanted = _plain(gold.constraints)
    if wanted != b"null":
        return sum(echo == wanted for echo in echoes)
    return max((echoes.count(echo) for echo in echoes), default=0)


def _plain(raw: msgspec.Raw) -> bytes:
    return msgspec.json.encode(msgspec.json.decode(raw), order="sorted") if bytes(raw) else b"null"


def _nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _decoded(
    decoder: msgspec.json.Decoder[Any], role: str, row: bytes, partition: Partition, file: int, line: int
) -> Any:
    try:
        return decoder.decode(row)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InputError(f"{error}; {EXPECTED[role]}", file=partition.files[file], line=line) from None


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
