"""Keeps keys out of everything that is written or shown."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

MARK = "[redacted]"
_SECRET_NAME = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_LEAST = 8


def secrets_of_environment(named: Iterable[str] = ()) -> list[str]:
    """The values of the environment variables named, and of all whose names say that they are secret.

    A value of fewer than 8 characters, such as the EMPTY that local servers take for a key, is no secret: removing it
    would change answers.
    """
    wanted = set(named)
    return [
        value
        for name, value in os.environ.items()
        if len(value) >= _LEAST and (name in wanted or _SECRET_NAME.search(name))
    ]


def secrets_of_url(url: str | None) -> list[str]:
    """What an address carries that may be written nowhere: its password, as sent too, and the long values of its query."""
    if url is None:
        return []
    try:
        parts = urlsplit(url)
    except ValueError:
        return []
    found = [value for _, value in parse_qsl(parts.query) if len(value) >= 2 * _LEAST]
    if parts.password:
        sent = f"{unquote(parts.username or '')}:{unquote(parts.password)}"
        found = [parts.password, unquote(parts.password), base64.b64encode(sent.encode()).decode(), *found]
    return [text for text in dict.fromkeys(found) if len(text) >= _LEAST]


class Redactor:
    """Replaces every secret in a text or in a line of JSON."""

    def __init__(self, secrets: Iterable[str]) -> None:
        plain = sorted(set(secrets), key=len, reverse=True)
        self._texts = plain
        escaped = {msgspec.json.encode(secret)[1:-1] for secret in plain}
        self._bytes = sorted(escaped | {secret.encode() for secret in plain}, key=len, reverse=True)

    def text(self, text: str) -> str:
        """The text without secrets."""
        for secret in self._texts:
            if secret in text:
                text = text.replace(secret, MARK)
        return text

    def line(self, line: bytes) -> bytes:
        """The JSON without secrets."""
        for secret in self._bytes:
            if secret in line:
                line = line.replace(secret, MARK.encode())
        return line
