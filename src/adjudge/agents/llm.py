"""`llm:MODEL`: a language model as the evaluator, asked over the wire format of chat completions.

Answers are kept in a cache as they come, so that a run that was killed goes on where it was; every answer goes through
the same checks as a plugin's.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge.agents.options import AgentOptions
from adjudge.agents.prompt import PROMPT_SHA256, SCHEMA, read_answer, system_text, user_text
from adjudge.collect.asking import Asker
from adjudge.collect.cache import Cache, Entry
from adjudge.collect.chat import ChatSubject, public_url
from adjudge.collect.clock import Clock
from adjudge.collect.settings import Settings
from adjudge.collect.subject import Prompt, Reply, Request, Unanswered
from adjudge.errors import ConfigError
from adjudge.provenance.canonical import digest
from adjudge.provenance.redact import Redactor, secrets_of_environment
from adjudge.runs.run import Run
from adjudge.verdict.adjudicator import TRANSCRIPTS
from adjudge.verdict.agent import Judgement
from adjudge.verdict.deliberation import Case, Deliberation, Question, Refusal, deliberate
from adjudge.verdict.transcripts import Exchange, Heard, TranscribedAgent, exchanges_by_row

ANSWER_TOKENS = 1500
_CHARACTERS_A_TOKEN, _CHARACTERS_A_SAMPLE = 4, 4000
_REFUSING = frozenset({400, 401, 403, 404, 405, 410, 422})
"""Status codes with which a server refuses every request alike."""


@dataclass
class Spent:
    """How far the judge is, and what it has cost."""

    done: int = 0
    total: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def words(self, price: Sequence[float] | None) -> str:
        """For a progress bar."""
        tokens = f"{self.prompt_tokens + self.completion_tokens:,} tokens"
        if price is None:
            return tokens
        cost = (self.prompt_tokens * price[0] + self.completion_tokens * price[1]) / 1e6
        return f"{tokens}, {cost:.2f}"


class LanguageModelAgent(TranscribedAgent):
    """A language model behind the interface of every agent."""

    language_model = True
    temperature = 0.0

    def __init__(self, model: str, options: AgentOptions, *, seed: int) -> None:
        if not model:
            raise ConfigError("--agent llm: names no model (--agent llm:MODEL)")
        self.name, self.model, self.options, self.seed = f"llm:{model}", model, options, seed
        self.votes, self.nonce = options.votes, ""
        self._cache_folder = Path(options.cache or ".agent-cache")
        self.on_answer: Callable[[int, int, str], None] | None = None
        self._subject: ChatSubject | None = None
        self._spent = Spent()

    def about(self) -> dict[str, Any]:
        """Who judges, how often it is asked, what it is asked, and the nonce of its marks."""
        url = {} if self.options.url is None else {"url": public_url(self.options.url)}
        asked = {"votes": self.votes, "seed": self.seed, "nonce": self.nonce, "prompt_sha256": PROMPT_SHA256}
        return {**super().about(), **url, **asked}

    def begin(self, inputs: Sequence[str]) -> None:
        """Derive the nonce from the seed and the digests of the input, in any order."""
        self.nonce = hashlib.sha256("\n".join([str(self.seed), *sorted(inputs)]).encode()).hexdigest()[:12]

    def check_budget(self, samples: int) -> None:
        """Refuse before it starts what would go past the budget."""
        options = self.options
        self._spent.total = samples
        if options.max_samples is not None and samples > options.max_samples:
            raise ConfigError(
                f"--max-samples is {options.max_samples}, and the judge would be asked about up to {samples} samples; "
                "narrow it with --limit"
            )
        estimate = samples * self.votes * (_CHARACTERS_A_SAMPLE // _CHARACTERS_A_TOKEN + ANSWER_TOKENS // 4)
        if options.max_tokens is not None and estimate > options.max_tokens:
            raise ConfigError(
                f"--max-tokens is {options.max_tokens}, and {samples} samples with {self.votes} votes take about "
                f"{estimate} tokens; narrow it with --limit, or ask with fewer --votes"
            )

    def request_digest(self, case: Case, question: Question) -> str:
        """SHA-256 of everything that is asked."""
        asked = {"system": system_text(case), "user": user_text(case, question, self.nonce), "schema": SCHEMA}
        drawn_by = {"model": self.model, "temperature": self.temperature, "seed": self.seed + question.vote}
        return digest({**asked, **drawn_by})

    def read(self, case: Case, exchange: Exchange) -> Judgement | Refusal:
        """The judgement in what came back."""
        if exchange.answer is None:
            reason = "no_transcript" if exchange.error == NO_TRANSCRIPT else "no_answer"
            return Refusal(reason, exchange.error or "there was no answer")
        if exchange.cut_off:
            return Refusal("cut_off", "the answer was cut off; answer in fewer words")
        return read_answer(exchange.answer, case.atoms, self.nonce)

    def hear(self, cases: Sequence[Case]) -> Sequence[Heard]:
        """Ask about every case, so many at a time."""
        try:
            return asyncio.run(self._hear(cases))
        except (ConfigError, KeyboardInterrupt) as error:
            if self._spent.done:
                error.add_note(
                    f"the judge's answers about {self._spent.done} samples are kept in {self._cache_folder}, "
                    "and the same command goes on from there"
                )
            raise

    async def _hear(self, cases: Sequence[Case]) -> list[Heard]:
        await self.open()
        waiting = asyncio.Semaphore(self.options.concurrency)

        async def one(case: Case) -> Heard:
            async with waiting:
                heard = await self._deliberate(case)
            self._spent.done += 1
            if self.on_answer is not None:
                total = max(self._spent.total, len(cases))
                self.on_answer(self._spent.done, total, self._spent.words(self.options.price))
            return heard

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(case)) for case in cases]
        except* ConfigError as errors:
            raise errors.exceptions[0] from None
        finally:
            if self._subject is not None:
                await self._subject.close()
        return [task.result() for task in tasks]

    async def _deliberate(self, case: Case) -> Heard:
        steps = deliberate(case, self.votes)
        exchanges: list[Exchange] = []
        try:
            question = next(steps)
            while True:
                exchange = await self.ask(case, question)
                exchanges.append(exchange)
                question = steps.send(self.read(case, exchange))
        except StopIteration as end:
            deliberation: Deliberation = end.value
            return deliberation, exchanges

    async def open(self) -> None:
        """Connect."""
        options = self.options
        key = os.environ.get(options.key_env)
        if options.url is None:
            raise ConfigError(f"--agent {self.name} needs --agent-url, such as http://127.0.0.1:8000/v1")
        self._redactor = Redactor(secrets_of_environment([options.key_env]))
        self._cache = Cache(self._cache_folder, self._redactor)
        self._subject = ChatSubject(
            self.model, base_url=options.url, key=key, json_schema=SCHEMA, max_tokens=ANSWER_TOKENS
        )
        settings = Settings(seed=self.seed, timeout=options.timeout, retries=options.retries)
        self._asker = Asker(settings, Clock())
        await self._subject.open(options.concurrency)

    async def ask(self, case: Case, question: Question) -> Exchange:
        """One request, or its answer from the cache."""
        assert self._subject is not None  # noqa: S101 -- `open` comes first
        sha256 = self.request_digest(case, question)
        key = digest({"request": sha256, "subject": self._subject.identity(), "attempt": question.attempt})
        entry = self._cache.get(key)
        if entry is None:
            entry = await self._fetch(case, question)
            if entry.reply.response is not None:
                self._cache.put(key, entry)
        reply = entry.reply
        counts = [(reply.usage or {}).get(name) for name in ("prompt_tokens", "completion_tokens")]
        prompt_tokens, completion_tokens = (count if isinstance(count, int) else None for count in counts)
        self._spend(prompt_tokens, completion_tokens)
        tokens, seconds = (prompt_tokens, completion_tokens), entry.recorded.get("seconds")
        cut_off, model = reply.finish_reason == "length", reply.models.get("agent")
        return Exchange(
            question.vote, question.attempt, sha256, reply.response, reply.error, cut_off, model, *tokens, seconds
        )

    async def _fetch(self, case: Case, question: Question) -> Entry:
        assert self._subject is not None  # noqa: S101 -- `open` comes first
        request = Request(
            id=f"{case.model}/{case.sample}",
            sample={},
            use_tools=False,
            trial=question.vote,
            prompt=Prompt(system=system_text(case), user=user_text(case, question, self.nonce)),
            temperature=self.temperature,
            seed=self.seed + question.vote,
        )
        asked = await self._asker.ask(self._subject, request)
        if asked.failed is not None:
            self._refuse_unusable(asked.failed)
            reply = Reply(error=self._redactor.text(asked.failed.what)[:500])
        else:
            assert asked.reply is not None  # noqa: S101 -- an answer or a failure
            reply = asked.reply
            reply.response = self._redactor.text(reply.response or "")
        return Entry(reply=reply, recorded={"seconds": asked.seconds})

    def _refuse_unusable(self, failed: Unanswered) -> None:
        """End where every other request would fail alike; an interruption goes on its way."""
        if failed.kind == "cancelled":
            raise asyncio.CancelledError
        where = public_url(self.options.url or "")
        what = self._redactor.text(failed.what)
        if failed.status in _REFUSING:
            key = f" (the key comes from the environment variable {self.options.key_env})"
            hint = key if failed.status in {401, 403} else ""
            raise ConfigError(f"the judge {self.name} at {where} takes no requests: {what}{hint}")
        if failed.kind == "http" and failed.status is None:
            raise ConfigError(f"the judge {self.name} at {where} cannot be reached: {what}")

    def _spend(self, prompt_tokens: int | None, completion_tokens: int | None) -> None:
        spent, most = self._spent, self.options.max_tokens
        spent.prompt_tokens += prompt_tokens or 0
        spent.completion_tokens += completion_tokens or 0
        if most is not None and spent.prompt_tokens + spent.completion_tokens > most:
            raise ConfigError(
                f"--max-tokens {most} are used up after {spent.done} samples; the answers so far are kept"
            )


NO_TRANSCRIPT = "the recorded transcripts have no answer to this request"


class RecordedAgent(LanguageModelAgent):
    """`replay:RUN`: the judge of an earlier run, from its transcripts alone."""

    def __init__(self, place: str, options: AgentOptions, *, seed: int) -> None:
        super().__init__(place, options, seed=seed)
        self.name = f"replay:{Path(place).name}"
        self._place, self._recorded = place, dict[str, Exchange]()

    def about(self) -> dict[str, Any]:
        """As the recorded judge was, but for the address."""
        return {key: value for key, value in super().about().items() if key != "url"}

    def attach(self, document: dict[str, Any]) -> None:
        """The model and the votes of the judge that was recorded."""
        self.model, self.votes, self.seed = str(document["model"]), int(document["votes"]), int(document["seed"])

    def check_budget(self, samples: int) -> None:
        """It costs nothing; what is needed is the recorded run."""
        self._spent.total = samples
        run = Run(Path(self._place))
        tables = [run.side_table(TRANSCRIPTS, part) for part, _ in run.parts()]
        if run.agent is None or all(table is None for table in tables):
            raise ConfigError(f"--agent replay:{self._place}: the run has no transcripts of a judge")
        self.attach(run.agent)
        for table in tables:
            for exchanges in exchanges_by_row(table).values() if table is not None else ():
                self._recorded |= {exchange.request_sha256: exchange for exchange in exchanges}

    async def open(self) -> None:
        """There is nothing to connect to."""

    async def ask(self, case: Case, question: Question) -> Exchange:
        """The recorded answer to this very request."""
        sha256 = self.request_digest(case, question)
        recorded = self._recorded.get(sha256)
        if recorded is None:
            return Exchange(question.vote, question.attempt, sha256, None, NO_TRANSCRIPT)
        self._spend(recorded.prompt_tokens, recorded.completion_tokens)
        return recorded
