"""Triage results and manifests: the types that records are decoded into, whether they came from DF3 JSONL, CSV or Parquet.

A record that does not fit its type (numbers as text, as CSV has them) is read by `loose_result`, field by field, into the
same columns; what cannot be read at all is an InputError.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

import msgspec

from adjudge.errors import InputError
from adjudge.readers.texts import NO_TEXT

LAST_TRIAL = (1 << 31) - 1
NO_RAW = msgspec.Raw(b"")
NOTHING = frozenset({b"", b"null", b'""', b"{}", b"[]"})
"""The JSON of an optional value that is not there, null or empty."""

LONG_TEXTS = ("rationale", "analysis", "response")
"""What a record says in words, beside its verdict."""

_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")
_YES, _NO = frozenset({"true", "1", "yes"}), frozenset({"false", "0", "no"})


class Timings(msgspec.Struct, frozen=True, gc=False):
    """Seconds by stage; `model_seconds` is all that a chat model took, as `adjudge collect` measures it."""

    vision_llm_seconds: float | None = None
    agent_graph_seconds: float | None = None
    total_seconds: float | None = None
    model_seconds: float | None = None


class Cache(msgspec.Struct, frozen=True, gc=False):
    """Whether the answer came out of a cache."""

    hit: bool | None = None


class Tool(msgspec.Struct, frozen=True, gc=False):
    """One call of a tool."""

    tool: str | None = None
    seconds: float | None = None
    status: str | None = None


class Result(msgspec.Struct, gc=False):
    """One result record."""

    id: str | int
    model: str | None = None
    use_tools: bool | None = None
    trial: Annotated[int, msgspec.Meta(ge=0, le=LAST_TRIAL)] | None = None
    label: str | None = None
    prediction: str | None = None
    confidence: float | None = None
    error: str | None = None
    error_type: str | None = None
    timings: Timings | None = None
    latency_seconds: float | None = None
    cache: Cache | None = None
    tool_usage: list[msgspec.Raw] | None = None
    tool_details: list[Tool] | None = None
    prompt_hashes: msgspec.Raw = NO_RAW
    models: msgspec.Raw = NO_RAW
    run_config: msgspec.Raw = NO_RAW
    timestamp: msgspec.Raw = NO_RAW
    meta: msgspec.Raw = NO_RAW
    image: str | None = None
    rationale: msgspec.Raw = NO_TEXT
    analysis: msgspec.Raw = NO_TEXT
    response: msgspec.Raw = NO_TEXT


class ManifestRow(msgspec.Struct, gc=False):
    """One record of the data set manifest."""

    id: str | int
    label: str | None = None
    meta: msgspec.Raw = NO_RAW
    image: msgspec.Raw = NO_RAW


class IdOnly(msgspec.Struct, gc=False):
    """What is read of a record where nothing else is asked."""

    id: str | int


RESULTS = msgspec.json.Decoder(Result)
MANIFEST = msgspec.json.Decoder(ManifestRow)
IDS = msgspec.json.Decoder(IdOnly)


def loose_result(text: bytes, *, percent: bool) -> tuple[Result, str | None]:
    """A record whose values are of other types than declared; where its confidence is no number, that is NaN, with its text.

    `percent` accepts confidences such as "87%".
    """
    sample = IDS.decode(text).id
    data = msgspec.json.decode(text)
    confidence, confidence_text = _confidence(data.get("confidence"), percent=percent)
    timings, cache = _object(data, "timings"), _object(data, "cache")
    tools = data.get("tool_details") or []
    usage = data.get("tool_usage") or []
    if not isinstance(tools, list) or not isinstance(usage, list):
        raise InputError("`tool_usage` and `tool_details` are lists")
    values: dict[str, Any] = {name: words(data.get(name)) for name in ("error", "error_type", "image")}
    values |= {name: _raw(data.get(name)) for name in ("prompt_hashes", "models", "timestamp", "meta")}
    values |= {name: msgspec.Raw(msgspec.json.encode(words(data.get(name)))) for name in LONG_TEXTS}
    result = Result(
        id=sample,
        model=_text(data, "model"),
        use_tools=flag(data.get("use_tools"), "use_tools"),
        trial=whole(data.get("trial"), "trial"),
        label=_text(data, "label"),
        prediction=_text(data, "prediction"),
        confidence=confidence,
        timings=Timings(*(_seconds(timings, name) for name in Timings.__struct_fields__)),
        latency_seconds=_seconds(data, "latency_seconds"),
        cache=Cache(flag(cache.get("hit"), "cache.hit")),
        tool_usage=[msgspec.Raw(msgspec.json.encode(item)) for item in usage],
        tool_details=[
            Tool(words(tool.get("tool")), _seconds(tool, "seconds"), words(tool.get("status")))
            for tool in tools
            if isinstance(tool, dict)
        ],
        run_config=_raw(_object(data, "run_config")),
        **values,
    )
    return result, confidence_text


def flag(value: Any, name: str) -> bool | None:
    """A yes or no, also as the text that CSV has for it; None where nothing is said."""
    if value is None or isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _YES or text in _NO:
        return text in _YES
    if not text:
        return None
    raise InputError(f"`{name}` is {value!r}, expected true or false")


def whole(value: Any, name: str) -> int:
    """A whole number that is not negative, also as text; nothing is 0."""
    if value is None or value == "":
        return 0
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = -1
    if number < 0 or isinstance(value, bool) or (isinstance(value, float) and value != number):
        raise InputError(f"`{name}` is {value!r}, expected a whole number from 0 on")
    if number > LAST_TRIAL:
        raise InputError(f"`{name}` is {number}, expected a whole number up to {LAST_TRIAL}")
    return number


def _confidence(value: Any, *, percent: bool) -> tuple[float | None, str | None]:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None, None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return math.nan, msgspec.json.encode(value).decode()[:80]
    try:
        number = float(value)
    except (ValueError, OverflowError):
        match = _PERCENT.fullmatch(str(value))
        return (float(match[1]) / 100.0, None) if match and percent else (math.nan, repr(value)[:80])
    return (number, None) if math.isfinite(number) else (math.nan, repr(value)[:80])


def _text(data: dict[str, Any], name: str) -> str | None:
    value = data.get(name)
    if value is None or isinstance(value, str):
        return value or None
    raise InputError(f"`{name}` is {_kind(value)}, expected text")


def words(value: Any) -> str | None:
    """A text, or the JSON of another value; None where nothing is said."""
    if value is None or value is False or value == "":
        return None
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _object(data: dict[str, Any], name: str) -> dict[str, Any]:
    value = data.get(name)
    if value is None or value == "":
        return {}
    if not isinstance(value, dict):
        raise InputError(f"`{name}` is {_kind(value)}, expected an object")
    return value


def temperature(run_config: Any) -> float | None:
    """The sampling temperature that the settings of a run state."""
    return _seconds(run_config, "temperature") if isinstance(run_config, dict) else None


def _seconds(data: dict[str, Any], name: str) -> float | None:
    value = data.get(name)
    if value is None or value == "":
        return None
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"`{name}` is {value!r}, expected a number")
    return number


def _raw(value: Any) -> msgspec.Raw:
    return NO_RAW if value is None or value == "" else msgspec.Raw(msgspec.json.encode(value))


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    return {dict: "an object", list: "a list", str: "text", bool: "true or false"}.get(type(value), "a number")
