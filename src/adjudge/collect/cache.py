"""The answer cache: one file an answer, named by the digest of everything that the answer depends on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from adjudge.collect.subject import Reply
from adjudge.errors import OutputError
from adjudge.provenance.canonical import digest
from adjudge.provenance.redact import Redactor


class Entry(msgspec.Struct, kw_only=True):
    """An answer as it was given, with what was measured then."""

    reply: Reply
    recorded: dict[str, Any]


_entry = msgspec.json.Decoder(Entry)


def cache_key(
    *, subject: dict[str, Any], prompt: dict[str, Any], payload: str, parameters: dict[str, Any], trial: int
) -> str:
    """The digest of what an answer depends on; the trial is part of it, so that trials are not copies of each other."""
    return digest({"subject": subject, "prompt": prompt, "payload": payload, "parameters": parameters, "trial": trial})


class Cache:
    """Answers under a folder; failures are not kept. Several runs may share it."""

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        self._folder, self._redactor = folder, redactor
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"the cache {folder} cannot be made: {error.strerror}") from None

    def get(self, key: str) -> Entry | None:
        """The answer, or None; a file that is not whole is no answer."""
        try:
            return _entry.decode(self._place(key).read_bytes())
        except (OSError, msgspec.DecodeError):
            return None

    def put(self, key: str, entry: Entry) -> None:
        """Keep an answer; it appears whole or not at all."""
        place = self._place(key)
        waiting = place.with_suffix(f".{os.getpid()}.part")
        try:
            place.parent.mkdir(exist_ok=True)
            waiting.write_bytes(self._redactor.line(msgspec.json.encode(entry)))
            waiting.replace(place)
        except OSError as error:
            waiting.unlink(missing_ok=True)
            raise OutputError(f"the cache {self._folder} cannot be written: {error.strerror}") from None

    def _place(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key[2:]}.json"
