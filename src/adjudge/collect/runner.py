"""The runner: every sample, subject, mode and trial once, so many at a time, each ending as one record.

Samples are taken from the data set as workers become free, so what is held is what is in flight. A record is made for
every question that was begun, whatever came of it; a question that was not begun leaves nothing, and `--resume` asks it.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from itertools import product
from typing import Any, NamedTuple

import msgspec

from adjudge.collect.asking import Asked, Asker
from adjudge.collect.cache import Cache, Entry, cache_key
from adjudge.collect.clock import Clock
from adjudge.collect.dataset import Dataset, Sample
from adjudge.collect.output import Output
from adjudge.collect.record import SUDDEN, answer_keys, answered_or_errored, cache_hit, with_the_rest
from adjudge.collect.replay import ReplaySubject
from adjudge.collect.settings import Settings
from adjudge.collect.subject import Image, Prompt, Request, Subject, Unanswered
from adjudge.collect.templates import Template, plain_prompt, prompt_hashes
from adjudge.errors import ConfigError
from adjudge.provenance.canonical import digest


@dataclass
class Tally:
    """How far a collection is. `done` counts what stands in the file, from earlier parts too.

    `buckets` are those of this part: how many were answered, abstained, unparsed, errored.
    """

    total: int
    done: int = 0
    buckets: Counter[str] = field(default_factory=Counter)
    hits: int = 0
    possibly_cached: int = 0
    earlier: int = 0
    in_flight: int = 0
    interrupted: int = 0
    """The number of the signal that ended it, 0 for none."""


class _Question:
    """One sample, and what its subjects and trials share: the picture and the prompts, each made once."""

    def __init__(self, sample: Sample, dataset: Dataset, template: Template | None) -> None:
        self.sample, self._dataset, self._template = sample, dataset, template
        self._prompts: dict[bool, Prompt | None] = {}

    @cached_property
    def image(self) -> Image | None:
        return self._dataset.image(self.sample)

    def prompt(self, *, use_tools: bool) -> Prompt | None:
        """The prompt of a mode; ConfigError where the template asks for what the sample has not."""
        if use_tools not in self._prompts:
            shown = self.sample.shown
            template = self._template
            self._prompts[use_tools] = template.render(shown, use_tools=use_tools) if template else plain_prompt(shown)
        return self._prompts[use_tools]


class _Job(NamedTuple):
    subject: Subject
    question: _Question
    use_tools: bool
    trial: int

    @property
    def sample(self) -> Sample:
        return self.question.sample


def run_configs(
    dataset: Dataset, subjects: Sequence[Subject], template: Template | None, settings: Settings
) -> dict[str, dict[str, Any]]:
    """What stands under `run_config`, by model."""
    models = [subject.model for subject in subjects]
    for model in models:
        if models.count(model) > 1:
            raise ConfigError(f"two subjects are called {model!r}; name one: --subject other={model}")
    return {
        subject.model: {
            **settings.record_config(),
            **subject.identity(),
            "prompt_sha256": None if template is None else template.sha256,
            "dataset_sha256": dataset.sha256,
            "adjudge": version("adjudge"),
        }
        for subject in subjects
    }


class Runner:
    """One collection."""

    def __init__(  # noqa: PLR0913 -- four parts, and what a test or the terminal sets by name
        self,
        dataset: Dataset,
        subjects: Sequence[Subject],
        settings: Settings,
        output: Output,
        *,
        template: Template | None = None,
        cache: Cache | None = None,
        configs: dict[str, dict[str, Any]] | None = None,
        on_progress: Callable[[Tally], None] | None = None,
        on_interrupt: Callable[[Tally], None] | None = None,
        clock: Clock | None = None,
        bucket: Callable[[Mapping[str, Any]], str] = answered_or_errored,
    ) -> None:
        self._dataset, self._subjects, self._settings, self._output = dataset, subjects, settings, output
        self._template, self._cache, self._clock = template, cache, clock or Clock()
        self._configs = configs or run_configs(dataset, subjects, template, settings)
        if self._clock.name is not None:
            self._configs = {model: {**config, "clock": self._clock.name} for model, config in self._configs.items()}
        self._encoded = {model: msgspec.Raw(msgspec.json.encode(config)) for model, config in self._configs.items()}
        self._identity = {subject.model: subject.identity() for subject in subjects}
        self._progress, self._on_interrupt, self._bucket = on_progress, on_interrupt, bucket
        self._slowest = dict(output.latencies)
        self._asker = Asker(settings, self._clock)
        self._stopping = False
        self._tally = Tally(total=dataset.count * len(subjects) * len(settings.modes) * settings.trials)
        for subject in subjects:
            subject.check_modes(settings.modes)
            subject.check_settings(settings.settings)
        self._try_prompt()

    def _try_prompt(self) -> None:
        """Render the first sample before anything is asked, so that a wrong template costs nothing."""
        first = _Question(next(iter(self._dataset)), self._dataset, self._template)
        needy = [subject.model for subject in self._subjects if subject.needs_prompt]
        for use_tools in self._settings.modes:
            if first.prompt(use_tools=use_tools) is None and needy:
                how = "give --prompt FILE.j2, or put `prompt`, `question` or `text` in the samples"
                raise ConfigError(f"{needy[0]} needs a prompt: {how}")

    def run(self) -> Tally:
        """Collect until all is done or the user interrupts; a first signal lets what is in flight finish."""
        with asyncio.Runner(loop_factory=self._clock.loop) as runner:
            return runner.run(self._run())

    async def _run(self) -> Tally:
        jobs = self._jobs()
        async with contextlib.AsyncExitStack() as stack:
            for subject in self._subjects:
                stack.push_async_callback(subject.close)
                await subject.open(self._settings.workers)
            workers = [asyncio.create_task(self._work(jobs)) for _ in range(self._settings.workers)]
            with _signals(lambda number: self._interrupt(workers, number)):
                try:
                    await _all(workers)
                finally:
                    for worker in workers:
                        worker.cancel()
                    await asyncio.gather(*workers, return_exceptions=True)
        return self._tally

    def _interrupt(self, workers: Sequence[asyncio.Task[None]], number: int) -> None:
        if self._stopping:
            for worker in workers:
                worker.cancel()
            return
        self._stopping, self._tally.interrupted = True, number
        if self._on_interrupt is not None:
            self._on_interrupt(self._tally)

    def _jobs(self) -> Iterator[_Job]:
        """Sample by sample, so that the data set is read once and an interrupted run has whole samples."""
        for sample in self._dataset:
            question = _Question(sample, self._dataset, self._template)
            asked = product(self._subjects, self._settings.modes, range(self._settings.trials))
            for subject, use_tools, trial in asked:
                if (sample.id, subject.model, use_tools, trial) in self._output.done:
                    self._tally.done += 1
                    self._tally.earlier += 1
                else:
                    yield _Job(subject, question, use_tools, trial)

    async def _work(self, jobs: Iterator[_Job]) -> None:
        tally = self._tally
        while not self._stopping:
            job = next(jobs, None)
            if job is None:
                return
            tally.in_flight += 1
            record = await self._record(job)
            self._output.write(record)
            tally.in_flight -= 1
            tally.done += 1
            tally.buckets[self._bucket(record)] += 1
            tally.hits += record["cache"]["hit"] is True
            tally.possibly_cached += "possibly" in record["cache"]
            if self._progress is not None:
                self._progress(tally)
            if record["error_type"] == "cancelled":
                return
            if job.subject.replays or record["cache"]["hit"]:
                await asyncio.sleep(0)  # nothing was waited for; let signals through

    async def _record(self, job: _Job) -> dict[str, Any]:
        """Ask, or find in the cache, and put down all that is known."""
        start = self._clock.seconds()
        stamp = self._clock.now().isoformat(timespec="milliseconds")
        prompt: Prompt | None = None
        key: str | None = None
        payload: str | None = None
        entry: Entry | None = None
        recorded: dict[str, Any] | None = None
        try:
            request = self._request(job)
            prompt = request.prompt
            payload = digest(job.subject.payload(request))
            if self._cache is not None and not job.subject.replays:
                key = cache_key(
                    subject=self._identity[job.subject.model],
                    prompt=prompt_hashes(prompt),
                    payload=payload,
                    parameters={**self._settings.parameters(job.use_tools, job.trial), "model": job.subject.model},
                    trial=job.trial,
                )
                entry = self._cache.get(key)
            if entry is None:
                asked = await self._asker.ask(job.subject, request)
            else:
                asked = Asked(entry.reply, None, 0, 0.0, 0.0)
            if isinstance(job.subject, ReplaySubject):
                recorded = job.subject.recorded(request)
        except Unanswered as error:
            asked = Asked(None, error, 0, 0.0, self._clock.seconds() - start)
        reply, total = asked.reply, self._clock.seconds() - start
        of_subject = {} if reply is None or entry or job.subject.replays else reply.timings
        # Its own total stands beside ours.
        times = {"subject_total_seconds" if name == "total_seconds" else name: s for name, s in of_subject.items()}
        timings: dict[str, float | None] = {**times, "total_seconds": total}
        latency = asked.seconds if reply is not None and not job.subject.replays else None
        if entry is not None:
            # What this run waited for is the look into the cache; what the answer once took stands apart.
            latency, recorded = total, entry.recorded
            timings = {"cache_seconds": total, "total_seconds": total}
        elif reply is not None and key is not None and self._cache is not None:
            measured = {"latency_seconds": latency, "timings": timings, "timestamp": stamp}
            self._cache.put(key, Entry(reply=reply, recorded=measured))
        hit = True if entry is not None or job.subject.replays else cache_hit(reply)
        record = {
            "id": job.sample.id,
            "model": job.subject.model,
            "use_tools": job.use_tools,
            "trial": job.trial,
            "label": job.sample.label,
            "meta": job.sample.meta,
            "image": job.sample.shown.get("image"),
            **answer_keys(reply, labelled=job.sample.labelled),
            "error": None if asked.failed is None else asked.failed.what,
            "error_type": None if asked.failed is None else asked.failed.kind,
            "attempts": asked.attempts,
            "latency_seconds": latency,
            "timings": timings,
            "cache": {"hit": hit, "key": key, **({} if recorded is None else {"recorded": recorded})},
            "prompt_hashes": prompt_hashes(prompt),
            "payload_sha256": payload,
            "seed": self._settings.request_seed(job.trial),
            "run_config": self._encoded[job.subject.model],
            "timestamp": stamp,
        }
        if hit is None and latency is not None and self._is_sudden(record):
            record["cache"]["possibly"] = True
        return with_the_rest(record, reply, asked.failed)

    def _is_sudden(self, record: Mapping[str, Any]) -> bool:
        """Whether the same question, in an earlier trial, took many times as long; the slowest is remembered."""
        question, seconds = (record["id"], record["model"], record["use_tools"]), float(record["latency_seconds"])
        slowest = self._slowest.get(question, 0.0)
        self._slowest[question] = max(slowest, seconds)
        return seconds * SUDDEN <= slowest and slowest > 0.0

    def _request(self, job: _Job) -> Request:
        try:
            prompt = job.question.prompt(use_tools=job.use_tools)
        except ConfigError as error:
            raise Unanswered("invalid", str(error)) from None
        if prompt is None and job.subject.needs_prompt:
            raise Unanswered("invalid", "the sample has no `prompt`, `question` or `text`")
        return Request(
            id=job.sample.id,
            sample=job.sample.shown,
            use_tools=job.use_tools,
            trial=job.trial,
            prompt=prompt,
            image=job.question.image,
            temperature=self._settings.temperature,
            seed=self._settings.request_seed(job.trial),
            model=job.subject.model,
            settings=self._settings.settings,
        )


async def _all(workers: Sequence[asyncio.Task[None]]) -> None:
    """Wait for every worker; the first failure that is not a cancellation ends the wait."""
    done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
    for worker in done:
        error = None if worker.cancelled() else worker.exception()
        if error is not None:
            raise error


@contextlib.contextmanager
def _signals(interrupt: Callable[[int], None]) -> Iterator[None]:
    """SIGINT and SIGTERM call `interrupt` with their number; afterwards they do what they did before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        loop.add_signal_handler(number, interrupt, int(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
