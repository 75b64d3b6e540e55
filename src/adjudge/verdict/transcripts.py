"""Transcripts: every request to an agent that is asked over a wire, with what came back; and the replay from them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass

import pyarrow as pa

from adjudge.verdict.agent import EvaluatorAgent, Judgement
from adjudge.verdict.deliberation import Case, Deliberation, Question, Refusal, deliberate

SCHEMA = pa.schema(
    [
        ("row", pa.uint32()),
        ("vote", pa.uint8()),
        ("attempt", pa.uint8()),
        ("request_sha256", pa.string()),
        ("answer", pa.string()),
        ("error", pa.string()),
        ("cut_off", pa.bool_()),
        ("model", pa.string()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("seconds", pa.float64()),
    ]
)
"""A row a request; `row` is the sample's place among its neighbours."""


@dataclass(frozen=True)
class Exchange:
    """One request and what came back: an answer, or the error that stands in its place."""

    vote: int
    attempt: int
    request_sha256: str
    answer: str | None
    error: str | None
    cut_off: bool = False
    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float | None = None


Heard = tuple[Deliberation, Sequence[Exchange]]
"""What came of one sample, and the exchanges it rests on."""


class TranscribedAgent(EvaluatorAgent):
    """An agent that is asked over a wire: what it answered is kept, and everything follows from that again."""

    votes = 1
    on_answer: Callable[[int, int, str], None] | None = None
    """Called with samples done, samples in all, and what was spent, in words."""

    @abstractmethod
    def request_digest(self, case: Case, question: Question) -> str:
        """SHA-256 of the request that a question becomes."""

    @abstractmethod
    def read(self, case: Case, exchange: Exchange) -> Judgement | Refusal:
        """The judgement in what came back."""

    @abstractmethod
    def hear(self, cases: Sequence[Case]) -> Sequence[Heard]:
        """Ask about every case, several at a time."""

    def replay(self, case: Case, exchanges: Sequence[Exchange]) -> tuple[Deliberation | None, list[str]]:
        """What stored exchanges come to; and where they are not those that this case leads to."""
        stored = {(exchange.vote, exchange.attempt): exchange for exchange in exchanges}
        problems = [] if len(stored) == len(exchanges) else ["the transcripts have a request twice"]
        steps = deliberate(case, self.votes)
        used = 0
        try:
            question = next(steps)
            while True:
                exchange = stored.get((question.vote, question.attempt))
                where = f"vote {question.vote + 1}, attempt {question.attempt + 1}"
                if exchange is None:
                    return None, [*problems, f"the transcripts have no {where}"]
                if exchange.request_sha256 != self.request_digest(case, question):
                    problems.append(f"the request of {where} is not the one that the evidence gives")
                used += 1
                question = steps.send(self.read(case, exchange))
        except StopIteration as end:
            if used < len(stored):
                problems.append("the transcripts have requests that nothing leads to")
            deliberation: Deliberation = end.value
            return deliberation, problems

    def adjudicate(self, *_: object) -> Judgement:
        """Cases are heard together, never one by one."""
        raise AssertionError(self.name)


def transcript_table(heard: Sequence[tuple[int, Sequence[Exchange]]]) -> pa.Table:
    """The exchanges of a batch, each with the row of its sample."""
    rows = [(row, *astuple(exchange)) for row, exchanges in heard for exchange in exchanges]
    columns = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


def exchanges_by_row(table: pa.Table) -> dict[int, list[Exchange]]:
    """The exchanges of a stored table, by the row of their sample."""
    exchanges: dict[int, list[Exchange]] = {}
    for stored in table.to_pylist():
        row = stored.pop("row")
        exchanges.setdefault(row, []).append(Exchange(**stored))
    return exchanges
