"""Keeps credentials out of everything that is written or shown: one way to find them, in addresses, commands and headers."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec

MARK = "[redacted]"
_LEAST = 8
_MOST = 1000
"""Credentials in one text; one with more is nothing but credentials, and is redacted whole."""
_WORDS = r"(?:api[_-]?key|access[_-]?key|account[_-]?key|shared[_-]?key|private[_-]?key|secret[_-]?key|subscription[_-]?key|token|secret|passw(?:or)?d|passphrase|pwd|credentials?|signature|apikey|authorization|(?<![a-z])(?:auth|pass|pat)|(?<![a-z.])sig)"
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|PASSPHRASE|CREDENTIALS?|PAT|AUTH)$|APIKEY$|_PWD$", re.IGNORECASE
)
_ADDRESS_NAME = re.compile(r"(?:^|_)(?:URL|URI|DSN|CONNECTION_STRING|PROXY)$", re.IGNORECASE)
_STORES = r"x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)|googleaccessid|awsaccesskeyid"
_SCHEMES = r"(?:bearer|basic|token|digest|apikey|negotiate)"
_QUOTED = r"\"[^\"]*\"|'[^']*'"
# Every shape begins where a word begins, or with a mark that it cannot contain: a long text is gone through once.
_SHAPES = tuple(
    re.compile(pattern, flags)
    for pattern, flags in (
        # user:password@ of an address, also where the token is the user; the password may hold anything but a slash
        (r"[a-z0-9+.-]://[^\s/?#:@]*:(?P<secret>[^\s/?#]+)@", re.IGNORECASE),
        (r"[a-z0-9+.-]://(?P<secret>[^\s/?#:@]{16,})@", re.IGNORECASE),
        # ?token=… of an address, and the signatures of object stores
        (
            rf"[?&;](?:[\w.-]*{_WORDS}|key|code|{_STORES})=(?P<secret>[^&\s#;\"']+)",
            re.IGNORECASE,
        ),
        # --api-key VALUE, --token=VALUE
        (rf"(?<!\S)--?[\w-]*{_WORDS}(?:=|\s+)(?P<secret>{_QUOTED}|[^\s\"'-][^\s\"']*)", re.IGNORECASE),
        # Authorization: Bearer VALUE, X-Api-Key: VALUE, Cookie: VALUE
        (
            rf"\b(?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?(?:{_SCHEMES}\s+)?(?P<secret>[^\s\"',]{{4,}})",
            re.IGNORECASE,
        ),
        (r"\bbearer\s+(?P<secret>[\w.~+/=-]{8,})", re.IGNORECASE),
        (r"\b(?:set-)?cookie[\"']?\s*:\s*[\"']?(?P<secret>[^\s\"']{4,})", re.IGNORECASE),
        # password=VALUE, "api_key": "VALUE", OPENAI_API_KEY=VALUE
        (rf"(?<![\w.-])[\w.-]*{_WORDS}[\"']?\s*[:=]\s*(?P<secret>{_QUOTED}|[^\s\"',;&{{}}\[\]]{{6,}})", re.IGNORECASE),
        # what services give out
        (r"(?P<secret>\b(?:sk|rk|pk)[-_](?:ant-|proj-|live_|test_|or-)?[A-Za-z0-9_-]{16,})", 0),
        (
            r"(?P<secret>\b(?:gh[opsur]_|github_pat_|glpat-|hf_|npm_|pypi-|dop_v1_|xox[abprs]-|shpat_|SG\.)[\w.-]{16,})",
            0,
        ),
        (r"(?P<secret>\b(?:AKIA|ASIA)[0-9A-Z]{16}\b)", 0),
        (r"(?P<secret>\bAIza[\w-]{30,})", 0),
        (r"(?P<secret>\bya29\.[\w.-]{16,})", 0),
        (r"(?<![\w-])(?>[\w-]*?\b(?=eyJ))(?P<secret>eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)", 0),
        (r"(?P<secret>-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$))", 0),
    )
)

T = TypeVar("T")


def secrets_in(text: str) -> list[str]:
    """The credentials that a text carries, by their shape; a value that is a mark already is none."""
    secrets = []
    for shape in _SHAPES:
        for match in shape.finditer(text):
            value = match["secret"].strip("\"'")
            if value and MARK not in value and not value.startswith("$"):  # $NAME stands for a value, it is none
                secrets.append(value)
    return list(dict.fromkeys(secrets))


def secrets_of_environment(named: Iterable[str] = ()) -> list[str]:
    """The values of the environment variables named, and of all whose names say that they are secret.

    A value of fewer than 8 characters, such as the EMPTY that local servers take for a key, is no secret: removing it
    would change answers. Of an address only what is secret in it counts.
    """
    wanted = set(named)
    secrets = [
        value
        for name, value in os.environ.items()
        if len(value) >= _LEAST and (name in wanted or _SECRET_NAME.search(name))
    ]
    return secrets + [
        secret for name, value in os.environ.items() if _ADDRESS_NAME.search(name) for secret in secrets_of_url(value)
    ]


def secrets_of_url(url: str | None) -> list[str]:
    """What an address carries that may be written nowhere: its password, as sent too, and the long values of its query."""
    if url is None:
        return []
    try:
        parts = urlsplit(url)
    except ValueError:
        return []
    secrets = [value for _, _, value in (pair.partition("=") for pair in parts.query.split("&"))]
    secrets = [text for value in secrets if len(unquote(value)) >= 2 * _LEAST for text in (value, unquote(value))]
    if parts.password:
        sent = f"{unquote(parts.username or '')}:{unquote(parts.password)}"
        secrets = [parts.password, unquote(parts.password), base64.b64encode(sent.encode()).decode(), *secrets]
    return [text for text in dict.fromkeys([*secrets, *secrets_in(url)]) if len(text) >= _LEAST]


def redacted(text: str) -> str:
    """A text for people or for a file of a run, without the credentials in it and those of the environment."""
    return _without(text, secrets_of_environment())


def _without(text: str, known: Iterable[str]) -> str:
    """A text without the credentials in it and those that are known."""
    secrets = secrets_in(text)
    return MARK if len(secrets) > _MOST else Redactor([*secrets, *known]).text(text)


def redacted_value(value: T) -> T:
    """Plain data whose texts are redacted; of a list of words, the word after a flag that says so is a secret too."""
    return _redacted(value, secrets_of_environment())  # type: ignore[no-any-return]


def _redacted(value: Any, known: list[str]) -> Any:
    if isinstance(value, str):
        return _without(value, known)
    if isinstance(value, dict):
        return {key: _redacted(item, known) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_redacted_words(value, known))
    return value


def _redacted_words(words: Iterable[Any], known: list[str]) -> Iterator[Any]:
    before: Any = None
    for word in words:
        both = f"{before} {word}" if isinstance(before, str) and isinstance(word, str) else ""
        after_flag = before is not None and both and word in secrets_in(both) and word not in secrets_in(before)
        yield MARK if after_flag else _redacted(word, known)
        before = word if isinstance(word, str) and word.startswith("-") and "=" not in word else None


class Redactor:
    """Replaces every secret in a text or in a line of JSON."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._texts = sorted(set(secrets), key=len, reverse=True)
        as_json = {msgspec.json.encode(secret)[1:-1] for secret in self._texts}
        self._bytes = sorted(as_json | {secret.encode() for secret in self._texts}, key=len, reverse=True)

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
