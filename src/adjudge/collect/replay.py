"""`file:old.jsonl`: the answers of an earlier collection, replayed; their latencies are not measurements of this run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from adjudge.collect.subject import Reply, Request, Subject, ToolUse, Unanswered, mode_name
from adjudge.errors import ConfigError, InputError
from adjudge.readers.records import records
from adjudge.readers.sources import open_source


class _Old(msgspec.Struct, kw_only=True):
    id: str | int
    model: str | None = None
    use_tools: bool | None = None
    trial: int = 0
    response: str | None = None
    prediction: str | None = None
    confidence: float | str | None = None
    models: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    tool_details: list[ToolUse] | None = None
    finish_reason: str | None = None
    rationale: str | None = None
    error: str | None = None
    error_type: str | None = None
    timings: dict[str, Any] | None = None
    latency_seconds: float | None = None
    timestamp: Any = None


# What a record of a collection has anyway; every other key is the subject's own.
_RECORDED = frozenset(_Old.__struct_fields__) | {
    *("label", "meta", "image", "parse", "tool_usage", "attempts", "cache", "prompt_hashes", "payload_sha256", "seed"),
    "run_config",
}
_Key = tuple[str, bool, int]


class ReplaySubject(Subject):
    """The records of a results file by (id, mode, trial); a record without a mode stands for no-tools."""

    replays = True

    def __init__(self, place: str, model: str | None = None) -> None:
        path, _, wanted = place.partition("#")
        self._name = Path(path).name
        self._rows: dict[_Key, bytes] = {}
        models: set[str] = set()
        with open_source(path) as source:
            for line, text in records(source):
                try:
                    old = msgspec.json.decode(text, type=_Old)
                except msgspec.DecodeError as error:
                    raise InputError(f"is no record of a collection: {error}", file=path, line=line) from None
                named = old.model or Path(path).stem
                if wanted and named != wanted:
                    continue
                models.add(named)
                key = (str(old.id), bool(old.use_tools), old.trial)
                if key in self._rows and len(models) == 1:
                    raise InputError(f"{_in_words(key)} stands here a second time", file=path, line=line)
                self._rows[key] = text
            self._sha256 = source.sha256
        if len(models) > 1:
            listed = ", ".join(sorted(models)[:10])
            raise ConfigError(
                f"subject file:{path} holds {len(models)} models; say which: file:{path}#MODEL, with one of {listed}"
            )
        if not models:
            raise ConfigError(f"subject file:{path} holds no record of model {wanted!r}")
        self.model = model or models.pop()

    def identity(self) -> dict[str, Any]:
        """The file's name and digest."""
        return {"subject": f"file:{self._name}", "subject_sha256": self._sha256}

    def recorded(self, request: Request) -> dict[str, Any]:
        """What the old record measured, which stands apart from what this run measures."""
        text = self._rows.get(_key(request))
        if text is None:
            return {}
        old = msgspec.json.decode(text, type=_Old)
        return {"latency_seconds": old.latency_seconds, "timings": old.timings, "timestamp": old.timestamp}

    async def ask(self, request: Request) -> Reply:
        """The old answer, or the old failure."""
        text = self._rows.get(_key(request))
        if text is None:
            raise Unanswered("invalid", f"{self._name} has no record of {_in_words(_key(request))}")
        old = msgspec.json.decode(text, type=_Old)
        if old.error is not None:
            kinds = ("timeout", "http", "refused", "invalid", "cancelled")
            raise Unanswered(old.error_type if old.error_type in kinds else "invalid", old.error)  # type: ignore[arg-type]
        same = ("response", "prediction", "confidence", "rationale", "usage", "finish_reason")
        return Reply(
            **{name: getattr(old, name) for name in same},
            models={name: None if value is None else str(value) for name, value in (old.models or {}).items()},
            tool_details=old.tool_details or [],
            more={key: value for key, value in msgspec.json.decode(text).items() if key not in _RECORDED},
        )


def _key(request: Request) -> _Key:
    return request.id, request.use_tools, request.trial


def _in_words(key: _Key) -> str:
    return f"id {key[0]!r}, {mode_name(use_tools=key[1])}, trial {key[2]}"
