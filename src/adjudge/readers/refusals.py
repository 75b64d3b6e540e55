"""What became of an output without an answer: the call failed, the model abstained, or nobody can read it.

A failed call is told by the shape of the text, never by a phrase inside prose: an HTTP status line, the name of an
exception, a JSON object with an error, or nothing but the sentence that clients leave in place of an answer.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from adjudge.readers.wording import shown

LOOKED_AT = 4000
"""Characters of a text that are looked at."""

_REASONS = (
    "bad request|unauthorized|forbidden|not found|request timeout|conflict|payload too large|unprocessable|too many requests|"
    "rate.?limit|internal (?:server )?error|server error|not implemented|bad gateway|service unavailable|gateway time-?out|"
    "overloaded|quota|client error"
)
_STATUS_LINE = re.compile(
    rf"\s*(?:HTTP/[0-9.]+ |(?:api |http |server )?(?:error|status)(?: code)?\s*[:\-]?\s*|http\s+)?[45][0-9][0-9]\s*"
    rf"(?:\Z|[:\-–{{(\n]|(?:{_REASONS})\b)",
    re.IGNORECASE,
)
_EXCEPTION = re.compile(
    r"\s*(?:Traceback \(most recent call last\)|(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Timeout)\b\s*(?:[:(]|\Z))"
)
_PREFIX = re.compile(r"\s*(?:api|http|server|request|connection) error\s*:", re.IGNORECASE)
_SENTENCE = re.compile(
    r"\s*(?:error: ?)?(?:the )?(?:request|connection|server|call|api)? ?(?:timed out|timeout|time-out|connection (?:error|reset|refused|aborted)"
    rf"(?: by peer)?|{_REASONS})(?: exceeded| error)?(?:,? please (?:try again|retry)(?: later)?)?[.!]?\s*",
    re.IGNORECASE,
)
_ABSTAINS = re.compile(r'"abstain"\s*:\s*true')
_MOST_OBJECTS = 20
_any = msgspec.json.Decoder(float_hook=float)


def without_answer(text: str | None, error: str | None, why: str) -> tuple[str, str]:
    """The bucket of an output without an answer, and why it is there; `why` says that nobody can read its text."""
    if text is None:
        return ("errored", shown(error, 200)) if error else ("missing", "the output line has no response")
    if not text.strip() and not error:
        return "abstained", "the response is empty"
    if abstains(text):
        return "abstained", 'the response says {"abstain": true}'
    if error:
        return "errored", shown(error, 200)
    call = failed_call(text)
    return ("unparsed", why) if call is None else ("errored", f"the text is that of a failed call: {shown(call)}")


def failed_call(text: str) -> str | None:
    """What a text without an answer shows of a call that failed, or None."""
    head = text[:LOOKED_AT]
    for pattern in (_STATUS_LINE, _EXCEPTION, _PREFIX):
        match = pattern.match(head)
        if match:
            return head.strip().partition("\n")[0]
    if len(head) < 200 and _SENTENCE.fullmatch(head):
        return head.strip()
    return _error_object(head.strip())


def _error_object(text: str) -> str | None:
    """The error in a text that is one JSON object with an `error`, as APIs answer."""
    if not text.startswith("{"):
        return None
    try:
        data: Any = _any.decode(text)
    except Exception:  # noqa: BLE001 -- whatever is wrong with it, it is no JSON object
        return None
    error = data.get("error", data.get("errors")) if isinstance(data, dict) else None
    return shown(error, 200) if error else None


def abstains(text: str) -> bool:
    """Whether a text holds a JSON object with `"abstain": true`, whatever else stands in it and in which order."""
    head = text[:LOOKED_AT]
    if not _ABSTAINS.search(head):
        return False
    decoder, start = json.JSONDecoder(), head.find("{")
    for _ in range(_MOST_OBJECTS):
        if start < 0:
            return False
        try:
            data, _ = decoder.raw_decode(head, start)
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, dict) and data.get("abstain") is True:
            return True
        start = head.find("{", start + 1)
    return False
