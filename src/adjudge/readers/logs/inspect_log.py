"""Inspect logs of version 2: `.eval` (a zip with summaries of all samples) and JSON.

A sample that was requeued counts once, the last. A log without its header is read from its journal. What the header
lists and has no sample is missing. Numbers come from the summaries; a sample's own member is read only where its
summary is cut, or where there is none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, TypeVar

import msgspec

from adjudge.errors import InputError
from adjudge.readers.logs.documents import decoded, decoded_file
from adjudge.readers.logs.inspect_header import Header, cluster_key, conditions, printed, status_notes
from adjudge.readers.logs.inspect_input import asked, in_words, is_cut, with_choices
from adjudge.readers.logs.record import (
    ABSTAINED,
    ERRORED,
    NO_SCORE,
    UNPARSED,
    Log,
    Record,
    Score,
    Tokens,
    Trial,
    check_of,
    content_hash,
    missing,
    score_of,
    text_of,
)
from adjudge.readers.logs.zipped import Archive

VERSION = 2
HEADER, START, SUMMARIES = "header.json", "_journal/start.json", "summaries.json"
_JOURNAL = re.compile(r"_journal/summaries/(\d+)\.json")
_SAMPLE = re.compile(r"samples/(.+)_epoch_(\d+)(?:\.json|/sample\.json)")
_LOOKED_AT = 200  # samples that name the scores where there is no summary
_LONGEST_META = 4000
_STATUS_OF = {"invalid_response_format": UNPARSED, "refusal": ABSTAINED}
"""What a score without a number means, by the reason that it gives."""


class _Score(msgspec.Struct, gc=False):
    value: Any = None
    answer: Any = None
    explanation: Any = None
    reason: str | None = None
    metadata: dict[str, Any] | None = None

    @property
    def why(self) -> str | None:
        return self.reason or (self.metadata or {}).get("unscored_reason")


class _Usage(msgspec.Struct, gc=False):
    """Tokens of one model."""

    input_tokens_cache_read: Tokens | None = None
    input_tokens_cache_write: Tokens | None = None


_NO_USAGE = _Usage()


class _Named(msgspec.Struct, gc=False):
    """Of a sample which it is, and what its scores are called: as much as the header needs."""

    id: str | int
    epoch: Trial = 1
    scores: dict[str, _Score] | None = None


class _Sample(_Named, gc=False):
    """A summary, or as much of a whole sample."""

    input: Any = None
    choices: list[str] | None = None
    target: Any = None
    error: Any = None
    metadata: dict[str, Any] | None = None
    attachments: dict[str, str] | None = None
    model_usage: dict[str, _Usage] | None = None


_SampleT = TypeVar("_SampleT", bound=_Named)
_Key = tuple[str, int]


class _Document(Header):
    """A whole log as JSON."""

    samples: list[_Sample] | None = None


class _Version(msgspec.Struct):
    version: int | str | float | None = None


def header(path: str) -> Log:
    """What a log says of itself."""
    if _is_zip(path):
        with Archive(path) as archive:
            head, notes = _zip_header(archive)
            samples: Sequence[_Named] = _summaries(archive, _Named)
            samples = samples or list(islice(_without_summary(archive, ()), _LOOKED_AT))
    else:
        document = _document(path)
        head, notes, samples = document, status_notes(document), document.samples or []
    names = _names(samples)
    evaluation = head.eval
    again = len(samples) - len({_key(sample) for sample in samples})
    if again:
        what = "attempts that were made again, of which the last counts"
        notes.append(f"{evaluation.task} of {evaluation.model}: {what}: {again:,}")
    return Log(
        title=f"Inspect log, version {head.version}, {'zip' if _is_zip(path) else 'JSON'}",
        files=[path],
        models=[evaluation.model],
        tasks=[evaluation.task],
        checks=names,
        conditions={evaluation.task: conditions(head)},
        printed=list(printed(head, names)),
        notes=notes,
        samples=None if evaluation.dataset.sample_ids is None else len(evaluation.dataset.sample_ids) * head.epochs,
        unread=["events and messages of the samples"],
        unscored=not names,
    )


def records(log: Log, scorer: str) -> Iterator[Record]:
    """Every attempt, the last of those that were requeued; then what the header lists and has no sample."""
    path = log.path
    if _is_zip(path):
        with Archive(path) as archive:
            head, _ = _zip_header(archive)
            samples = _last_of_each(_summaries(archive, _Sample))
            if SUMMARIES not in archive or not samples:
                samples |= _last_of_each(_without_summary(archive, samples.keys()))
            yield from _records(samples, archive, head, log, scorer)
    else:
        head = _document(path)
        yield from _records(_last_of_each(head.samples or []), None, head, log, scorer)


def _records(
    samples: Mapping[_Key, _Sample], archive: Archive | None, head: Header, log: Log, scorer: str
) -> Iterator[Record]:
    like: Mapping[str, Any] = {"model": head.eval.model, "task": head.eval.task}
    cluster = cluster_key(head)
    for place, sample in enumerate(samples.values(), 1):
        yield _record(_whole(sample, archive), log, scorer, place, {**like, "cluster": _cluster(sample, cluster)})
    yield from missing(log.path, head.eval.dataset.sample_ids or (), head.epochs, samples.keys(), like)


def _record(sample: _Sample, log: Log, scorer: str, place: int, like: Mapping[str, Any]) -> Record:
    scores = _flat(sample.scores)
    main = scores.get(scorer) or _of_all_keys(scores, scorer)
    score = NO_SCORE if main is None else _score(main, log, sample, scorer)
    error = sample.error.get("message") if isinstance(sample.error, dict) else sample.error
    meta = msgspec.json.encode(sample.metadata).decode() if sample.metadata else None
    question = asked(sample.input, sample.attachments or {})
    usage = (sample.model_usage or {}).get(like["model"], _NO_USAGE)
    return Record(
        id=str(sample.id),
        trial=sample.epoch,
        error=text_of(error) if error else _why_unscored(main, score),
        answer=None if main is None else text_of(main.answer),
        explanation=None if main is None else text_of(main.explanation),
        target=text_of(sample.target),
        input=text_of(with_choices(in_words(question), sample.choices)),
        input_hash=content_hash(question, sample.target),
        meta=meta if meta is not None and len(meta) <= _LONGEST_META else None,
        cache_read=usage.input_tokens_cache_read,
        cache_write=usage.input_tokens_cache_write,
        line=place,
        checks=[check_of(scores[name].value) if name in scores else None for name in log.checks],
        **score.fields(ERRORED if error else None),
        **like,
    )


def _cluster(sample: _Sample, key: str | None) -> str | None:
    return None if key is None else text_of((sample.metadata or {}).get(key))


def _score(score: _Score, log: Log, sample: _Sample, name: str) -> Score:
    """A score, and what an absent one means: the answer could not be read, was refused, or the instrument failed."""
    value = score.value
    number = score_of(value)
    if number is None:
        text = msgspec.json.encode(value).decode()[:60]
        what = (
            f"sample {sample.id!r}, epoch {sample.epoch}: score {name!r} is {text}, no number and none of C, I, P, N."
        )
        raise InputError(what, file=log.path, hint="--scorer names another one.")
    if not math.isnan(number.value) or number.status == ABSTAINED:
        return number
    return number._replace(status=_STATUS_OF.get(score.why or "", ERRORED))


def _why_unscored(score: _Score | None, read: Score) -> str | None:
    if read.status not in {ERRORED, UNPARSED}:
        return None
    if score is None:
        return "the sample has no such score"
    return score.why or "the score is no number, without a reason"


def _flat(scores: dict[str, _Score] | None) -> dict[str, _Score]:
    """Scores by name; one whose value is an object has a name for each of its keys, a list has none."""
    flat: dict[str, _Score] = {}
    for name, score in (scores or {}).items():
        if isinstance(score.value, dict):
            for key, value in score.value.items():
                flat[f"{name}/{key}"] = msgspec.structs.replace(score, value=value)
        elif not isinstance(score.value, list):
            flat[name] = score
    return flat


def _names(samples: Sequence[_Named]) -> list[str]:
    """The names of the scores, those with a number before those that are words alone, in whatever order the samples stand.

    A score whose value is an object has the names of its keys; where it could not be given at all, it is NaN under its own.
    """
    keyed = {name for one in samples for name, score in (one.scores or {}).items() if isinstance(score.value, dict)}
    places: dict[str, int] = {}
    numbers: set[str] = set()
    for sample in samples:
        for place, (name, score) in enumerate(_flat(sample.scores).items()):
            places[name] = max(place, places.get(name, 0))
            if name not in numbers and score_of(score.value) is not None:
                numbers.add(name)
    return sorted(places.keys() - keyed, key=lambda name: (name not in numbers, places[name], name))


def _of_all_keys(scores: dict[str, _Score], scorer: str) -> _Score | None:
    """The score that stands for all of its keys, where it could not be given."""
    named = (score for name, score in scores.items() if scorer.startswith(f"{name}/"))
    return next((score for score in named if score_of(score.value) is NO_SCORE), None)


def _key(sample: _Named) -> _Key:
    return str(sample.id), sample.epoch


def _last_of_each(samples: Iterable[_Sample]) -> dict[_Key, _Sample]:
    return {_key(sample): sample for sample in samples}


def _whole(sample: _Sample, archive: Archive | None) -> _Sample:
    """The sample with its whole input and target where the summary of an archive cut them."""
    if archive is None or not (is_cut(sample.input) or is_cut(sample.target)):
        return sample
    stem = f"samples/{sample.id}_epoch_{sample.epoch}"
    for name in (f"{stem}.json", f"{stem}/sample.json"):
        if name in archive:
            whole = decoded(archive.read(name), _Sample, archive.path, name)
            sample.input, sample.target, sample.attachments = whole.input, whole.target, whole.attachments
            sample.choices = whole.choices
    return sample


def _summaries(archive: Archive, kind: type[_SampleT]) -> list[_SampleT]:
    """The summaries from the one member, or from the journal in its order."""
    if SUMMARIES in archive:
        names = [SUMMARIES]
    else:
        numbered = [(int(match[1]), name) for name in archive.members if (match := _JOURNAL.fullmatch(name))]
        names = [name for _, name in sorted(numbered)]
    read: list[list[_SampleT]] = [decoded(archive.read(name), list[kind], archive.path, name) for name in names]  # type: ignore[valid-type]
    return list(chain.from_iterable(read))


def _without_summary(archive: Archive, known: Container[_Key]) -> Iterator[_Sample]:
    """Samples that were written before the log ended, and after its last summary."""
    for name in archive.members:
        match = _SAMPLE.fullmatch(name)
        if match and (match[1], int(match[2])) not in known:
            yield decoded(archive.read(name), _Sample, archive.path, name)


def _zip_header(archive: Archive) -> tuple[Header, list[str]]:
    name = HEADER if HEADER in archive else START
    if name not in archive:
        raise InputError(f"is a zip without {HEADER} and {START}: no Inspect log", file=archive.path)
    data = archive.read(name)
    _check_version(data, archive.path, name)
    head = decoded(data, Header, archive.path, name)
    if name == START:
        return head, [
            f"{head.eval.task} of {head.eval.model} is not finished: it has no header and is read from its journal"
        ]
    return head, status_notes(head)


def _document(path: str) -> _Document:
    return decoded_file(path, _Document, check=lambda data: _check_version(data, path, None))


def _check_version(data: bytes, path: str, member: str | None) -> None:
    version = decoded(data, _Version, path, member).version
    if version != VERSION:
        where = "" if member is None else f" (member {member})"
        raise InputError(
            f"is an Inspect log of version {version}{where}; this version of adjudge reads {VERSION}", file=path
        )


def _is_zip(path: str) -> bool:
    with open(path, "rb") as stream:  # noqa: PTH123 -- two bytes of a path that is text
        return stream.read(2) == b"PK"
