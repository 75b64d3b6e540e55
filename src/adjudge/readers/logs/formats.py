"""Which tool left a file or folder, told by its content; and the one way to its header and records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from adjudge.errors import InputError
from adjudge.readers.blocks import blocks
from adjudge.readers.characters import mended
from adjudge.readers.logs.record import MOST_CHECKS, Log, Record
from adjudge.readers.records import AS_IT_IS
from adjudge.readers.sources import bound, format_of, is_url, open_source, whole

RECORDS = "records"
"""The format of files that no tool of the table left: records of the user's own."""

MOST_FILES = 5000
_HEAD = 1 << 16
_ENDINGS = (".eval", ".jsonl", ".json", ".csv", ".tsv", ".parquet", ".jsonl.gz", ".jsonl.zst")
_ZIP = b"PK\x03\x04"
_EMPTY_ZIP = b"PK\x05\x06"
_MANIFEST, _SAMPLES = "manifest.json", "samples.parquet"
"""What shows that a folder is a run of adjudge, and holds no log."""


class Head(NamedTuple):
    """What a format is told by: whether it is a zip, and the keys of the first JSON object."""

    is_zip: bool = False
    first: Mapping[str, Any] = {}

    def has(self, *keys: str) -> bool:
        """Whether the first object has all these keys."""
        return all(key in self.first for key in keys)


class Format(NamedTuple):
    """One tool's logs: how they are told, and the module that reads them."""

    name: str
    title: str
    told: Callable[[Head], bool]


FORMATS = (
    Format("inspect_log", "Inspect log", lambda head: head.is_zip or head.has("version", "status", "eval")),
    Format("lm_eval", "lm-eval samples", lambda head: head.has("doc_id", "filtered_resps")),
    Format("lm_eval", "lm-eval results", lambda head: head.has("results", "configs", "versions")),
    Format("promptfoo", "promptfoo results", lambda head: head.has("promptIdx", "testIdx") or _is_promptfoo(head)),
    Format("deepeval", "DeepEval test run", lambda head: head.has("testCases") or head.has("testRunData")),
    Format("helm", "HELM run", lambda head: head.has("instance_id", "train_trial_index", "stats")),
    Format("openai_evals", "OpenAI evals log", lambda head: head.has("spec") and isinstance(head.first["spec"], dict)),
    Format(
        "every_eval_ever",
        "Every-Eval-Ever instances",
        lambda head: head.has("evaluation_id", "sample_id", "evaluation"),
    ),
    Format("every_eval_ever", "Every-Eval-Ever record", lambda head: head.has("evaluation_id", "evaluation_results")),
)


def find_logs(paths: Sequence[str], *, scorer: str | None = None) -> list[Log]:
    """The logs behind files and folders, each with what it says of itself; in an order that is not that of the arguments."""
    logs = list_logs(paths, scorer=scorer)
    if not logs:
        raise InputError(
            "holds no log that is known.", file=paths[0], hint="adjudge score --list says what is looked for."
        )
    sorted_logs = [logs[name] for name in sorted(logs)]
    if all(log.unscored for log in sorted_logs):
        count = "" if sorted_logs[0].samples is None else f" (it plans {sorted_logs[0].samples:,} samples)"
        raise InputError(f"has no scores at all{count}: {sorted_logs[0].title}", file=sorted_logs[0].path)
    for log in sorted_logs:
        if log.unscored:
            log.notes.append(
                f"{', '.join(log.tasks)} of {', '.join(log.models)} has no scores: every sample is errored"
            )
    return sorted_logs


def list_logs(paths: Sequence[str], *, scorer: str | None = None) -> dict[str, Log]:
    """The logs by the file that holds their samples, with scores or without."""
    logs: dict[str, Log] = {}
    for path in paths:
        candidates = [log for log in map(header_of, _files(path)) if log is not None]
        known = [log for log in candidates if log.format != RECORDS]
        if known and len(candidates) > 1:  # in a folder with logs, other files are no records of the user's
            known[0].unread += [
                f"{log.path}, which no tool of the table left" for log in candidates if log.format == RECORDS
            ]
            candidates = known
        logs |= {log.path: _with_main(log, scorer) for log in candidates}
    return logs


def header_of(path: str) -> Log | None:
    """What one file says of itself; None for a file that belongs to another one, such as results beside their samples."""
    head = _head(path)
    for form in FORMATS:
        if form.told(head):
            if is_url(path):
                raise InputError(f"is {form.title} behind a URL: copy it to a local file first", file=path)
            with _known_shape(path, form.title):
                log: Log | None = _module(form.name).header(path)
            return log and msgspec.structs.replace(log, format=form.name)
    if head.is_zip:
        raise InputError("is a zip, but no log that is known", file=path)
    return _records_header(path, head)


def read_log(log: Log, scorer: str | None = None) -> Iterator[Record]:
    """The records of a log; `scorer` names the score that is judged, otherwise the first is."""
    with _known_shape(log.path, log.title):
        yield from _module(log.format).records(log, scorer or (log.checks[0] if log.checks else ""))


@contextmanager
def _known_shape(path: str, title: str) -> Iterator[None]:
    """What a tool leaves open in its logs may hold anything: a value of a kind that its reader does not know is the log's."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        what = f"looks like {title}, but a part of it is of an unknown shape: {type(error).__name__}, {error}"
        raise InputError(what, file=path) from error


def _module(name: str) -> Any:
    return import_module(f"adjudge.readers.logs.{name}")


def _with_main(log: Log, scorer: str | None) -> Log:
    if scorer is not None and log.checks:
        if scorer not in log.checks:
            known = ", ".join(log.checks[:MOST_CHECKS])
            raise InputError(f"has no score {scorer!r} (--scorer); it has {known}", file=log.path)
        log.checks = [scorer, *(name for name in log.checks if name != scorer)]
    elif len(log.checks) > 1:
        others = ", ".join(log.checks[1:6]) + (" …" if len(log.checks) > 6 else "")
        log.notes.append(
            f"of {len(log.checks)} scores {log.checks[0]} is judged (--scorer chooses); also reported: {others}"
        )
    if len(log.checks) > MOST_CHECKS:
        log.unread.append(f"{len(log.checks) - MOST_CHECKS} more scores by name")
        log.checks = log.checks[:MOST_CHECKS]
    return log


def _files(path: str) -> list[str]:
    """The files of a folder that may hold samples, without those of runs that lie in it; or the file itself."""
    folder = Path(path)
    if path == "-" or not folder.is_dir():
        return [path]
    files = []
    runs = {file.parent for file in folder.rglob(_MANIFEST) if file.with_name(_SAMPLES).is_file()}
    for file in sorted(folder.rglob("*")):
        name = file.name.lower()
        hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if name.endswith(_ENDINGS) and not hidden and runs.isdisjoint(file.parents) and file.is_file():
            files.append(str(file))
        if len(files) > MOST_FILES:
            raise InputError(f"holds more than {MOST_FILES:,} files: name a smaller folder", file=path)
    if not files:
        raise InputError("is a folder without any file that could be a log", file=path)
    helm = [file for file in files if Path(file).name == "per_instance_stats.json"]
    beside = {str(Path(file).parent) for file in helm}
    return [file for file in files if str(Path(file).parent) not in beside] + helm


def _head(path: str) -> Head:
    if path == "-" or Path(path).is_fifo():  # what is looked at there is gone
        return Head()
    with open_source(path) as source:
        start = source.stream.peek(_HEAD)[:_HEAD]
        if start.startswith((_ZIP, _EMPTY_ZIP)):
            return Head(is_zip=True)
        if start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] not in (b"{", b"["):
            return Head()
        data = source.stream.readline(bound("document_mb") << 20) if format_of(source) == "JSON Lines" else b""
        first = _object(data)
        if first is None:
            first = _object(data + whole(source))
        return Head(first=first or {})


def _object(data: bytes) -> dict[str, Any] | None:
    """The first object of a document, its values not looked into further than one level."""
    text = data.removeprefix(b"\xef\xbb\xbf").strip()
    try:
        return _first_of(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        text, what = mended(text)
        if not (what or b"NaN" in text or b"Infinity" in text):
            return None
    try:  # NaN, Infinity and halves of a surrogate pair, as Python writes them
        return _first_of(msgspec.json.encode(json.loads(text)))
    except (ValueError, RecursionError):
        return None


def _first_of(text: bytes) -> dict[str, Any]:
    if text.startswith(b"["):
        items = msgspec.json.decode(text, type=list[msgspec.Raw])
        text = bytes(items[0]) if items else b"{}"
    raw = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    return {key: {} if bytes(memoryview(value)[:1]) == b"{" else None for key, value in raw.items()}


def _names_of_scores(record: bytes) -> list[str]:
    """The names of a record's scores; what cannot be read here is refused with its line when it is judged."""
    try:
        value = msgspec.json.decode(record)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return []
    scores = value.get("scores") if isinstance(value, dict) else None
    return list(scores) if isinstance(scores, dict) else []


def _is_promptfoo(head: Head) -> bool:
    return (
        head.has("results") and isinstance(head.first["results"], dict) and (head.has("evalId") or head.has("config"))
    )


def _records_header(path: str, head: Head) -> Log:
    """A file of the user's own records; the names of its scores are those of its first records."""
    names: set[str] = set()
    if "scores" in head.first:
        with open_source(path) as source:
            for block in blocks(source, 0, AS_IT_IS, limit=10_000):
                for text in block.records():
                    names.update(_names_of_scores(text))
    return Log(format=RECORDS, title="records", files=[path], checks=sorted(names))
