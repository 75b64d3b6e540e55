"""The rows of gold questions and of runs, typed and as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from adjudge.protocols.base import Role
from adjudge.protocols.common.constraints import comparable
from adjudge.protocols.stability import text as t
from adjudge.readers.blocks import Block

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
    retrieved_ids: list[str | int] | None = None


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
        constraints=pa.array([comparable(row.constraints) for row in rows], pa.binary()),
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
        retrieved=pa.array([None if row.retrieved_ids is None else _ids(row.retrieved_ids) for row in rows], _NAMES),
        echo=pa.array([comparable(answer.constraints_echo) for answer in answers], pa.binary()),
    )


READ = {"gold": read_gold, "runs": read_runs}


def _table(block: Block, rows: Sequence[Gold | RunRow], **columns: pa.Array) -> pa.Table:
    keys = pa.array([str(row.qid) for row in rows], pa.string())
    files = pa.array([block.file] * len(rows), pa.int32())
    return pa.table({"key": keys, "file": files, "line": pa.array(block.lines), **columns})


def _ids(names: Sequence[str | int] | None) -> list[str]:
    """Ids as text: 7 and "7" are the same."""
    return [str(name) for name in names or ()]


ROLES = {
    "gold": Role(Gold, (("qid",), ("question",)), "adjudge consistency stability --gold FILE --runs …"),
    "runs": Role(RunRow, (("qid",), ("run_id",)), "adjudge consistency stability --gold … --runs FILE"),
}
