"""Takes the answer object out of raw model text, or says why there is none.

Candidates are all complete objects in the text, wherever they stand: as the whole text, in fenced blocks, in prose, and
inside other objects. A brace that cannot be read is prose. The candidate with the most expected fields wins; at equal
fit the one that begins last, so of an object and one inside it the inner. A candidate without any expected field is no
answer. Whether a candidate needed repairs plays no part in the choice: a repaired answer after an echoed input is the
answer. Objects in a list stand for themselves, and a string that contains JSON is a string.

An earlier object never stands in for an answer that cannot be read. The text is unparsed when
- it ends inside an object, whatever that object holds, or where a fenced block such as ```json opens;
- after the end of the winner and outside every complete object an expected field is named as a key, and before it
  stands something that begins as an object but cannot be read, or (if the key is in quotes) any brace after the winner;
- a string in a complete object after the winner holds an object with an expected field: an answer encoded twice;
- an object is nested deeper than `max_depth`, or the text asks for more reading than the bounds below allow.

What became of an output without an answer is told by the shape of its text, never by a phrase inside prose: a failed call is an HTTP
status line, the name of an exception, a JSON object with an error, or nothing but the sentence that clients leave in its place.
"""

from __future__ import annotations

import bisect
import functools
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, get_args, get_origin

import msgspec

from adjudge.errors import ConfigError
from adjudge.readers.repair import Found, read_flat, read_object, repair_names
from adjudge.readers.settings import shown

METHODS: Final = ("whole", "fenced", "embedded", "nested")
"""How an object was found; nested is one inside another object."""

MAX_OBJECTS: Final = 10_000
MAX_PASSES: Final = 4  # the tolerant reader may read this many times the length of the text
_SHORT: Final = 256
_NO_KEY: Final = "it does not begin with a key in quotes"
_MAY_OPEN, _MEANT_AS_OBJECT = 1, 2  # groups of Extractor._brace


class Extraction(msgspec.Struct, frozen=True, gc=False):
    """What was found: the object, how and where it was found, and what had to be repaired; or why there is none."""

    value: Any  # the dict, or the Struct of the typed decoder; None when unparsed
    typed: bool  # True when `value` came from the typed decoder
    method: str  # one of METHODS; "" when unparsed
    start: int  # text[start:end] is the object; -1, -1 when unparsed
    end: int
    repairs: tuple[str, ...]  # names from adjudge.readers.repair.REPAIRS
    candidates: int  # how many complete objects were considered
    error: str  # "" when parsed


class Extractor:
    """Finds the answer with the expected `fields` in texts of one task.

    `decoder` decodes a Struct of exactly these fields, each a required float or list or tuple of floats, that forbids
    unknown fields. A text whose only brace opens such an object is decoded with it directly, which finds the same object.
    """

    def __init__(
        self,
        fields: Sequence[str],
        *,
        decoder: msgspec.json.Decoder[Any] | None = None,
        repairs: bool = True,
        max_chars: int = 1_000_000,
        max_depth: int = 64,
    ) -> None:
        if not fields or isinstance(fields, str):
            raise ConfigError(f"the extractor needs the names of the expected fields, not {fields!r}")
        if max_depth < 2:
            raise ConfigError(f"max_depth is {max_depth}; an object with a list in it needs at least 2")
        self._fields = frozenset(fields)
        self._repairs = repairs
        self._max_chars = max_chars
        self._max_depth = max_depth
        if decoder is not None:
            _check_decoder(decoder, self._fields)
        self._decode = None if decoder is None else decoder.decode
        names = "|".join(re.escape(name) for name in sorted(self._fields, key=lambda name: (-len(name), name)))
        # An opening brace and what follows it: _MAY_OPEN JSON, _MEANT_AS_OBJECT but unreadable, or prose.
        self._brace = re.compile(rf"\{{[ \t\n\r]*+(?:([\"'}}]|\Z)|([“”‘’`/#]|{names}))?")
        self._named = re.compile(rf"(?:{names})(\\)?(?:([\"'])|[“”‘’`])?\s*+:")

    def extract(self, text: str, unlike: Callable[[dict[str, Any]], bool] | None = None) -> Extraction:
        """The answer in `text`; never raises, whatever the text holds.

        An object of which `unlike` holds, such as an echo of what was asked, loses against every other candidate.
        """
        length = len(text)
        if length > self._max_chars:
            return _unparsed(f"text of {length} characters is over the limit of {self._max_chars}")
        decode = self._decode
        if decode is not None and unlike is None:
            try:
                if text[:1] == "{" and text[-1:] == "}":
                    return Extraction(decode(text), True, "whole", 0, length, (), 1, "")
                start = text.find("{")
                if start >= 0 and text.find("{", start + 1) < 0:
                    end = text.rfind("}") + 1
                    value = decode(text[start:end])
                    method = found_as(text[:start], text[end:])
                    if method is not None:
                        return Extraction(value, True, method, start, end, (), 1, "")
            except (msgspec.DecodeError, UnicodeEncodeError):
                pass
        return self._search(text, unlike)

    def _search(self, text: str, unlike: Callable[[dict[str, Any]], bool] | None = None) -> Extraction:
        """Every object of the text, in order; the best, unless something after it could be the answer instead."""
        bare = text.rstrip()
        if bare.endswith(("```", "~~~")):
            bare = bare.rstrip("`~").rstrip()
        limit = len(bare)
        best: Found | None = None
        best_rank = (False, 0, limit)
        seen = spent = pos = 0
        ends: dict[int, int] = {}  # complete objects, start to end
        dead: set[int] = set()  # braces that were read but do not open a candidate
        broken: list[tuple[int, str]] = []  # where something meant as an object cannot be read, and why
        prose: list[int] = []  # braces that open nothing
        while (start := text.find("{", pos, limit)) >= 0:
            pos = start + 1
            if start in ends:
                pos = ends[start]
                continue
            if start in dead:
                continue
            brace = self._brace.match(text, start, limit)
            kind = brace and brace.lastindex
            if kind != _MAY_OPEN:
                if kind == _MEANT_AS_OBJECT:
                    broken.append((start, _NO_KEY))
                else:
                    prose.append(start)
                continue
            flat = read_flat(text, start, limit)
            if flat is None:
                if spent > MAX_PASSES * limit:
                    return _unparsed(f"more than {MAX_PASSES} readings of the text needed", len(ends))
                reading = read_object(text, start, limit, max_depth=self._max_depth)
                spent += reading.at - start
                if reading.stop == "deep":
                    return _unparsed(reading.why, len(ends))
                if reading.stop == "truncated":
                    return _unparsed("truncated object", len(ends))
                if reading.stop:
                    broken.append((start, reading.why))
                    dead.update(reading.left_open)
                else:
                    pos = reading.at
                objects = reading.found
            else:
                objects = [flat]
                pos = flat.end
            for candidate in objects:
                if candidate.repairs and not self._repairs:
                    needed = " and ".join(repair_names(candidate.repairs))
                    broken.append((candidate.start, f"it needs {needed}, and repairs are off"))
                    dead.add(candidate.start)
                    continue
                ends[candidate.start] = candidate.end
                fit = len(self._fields.intersection(candidate.value))
                rank = (fit > 0 and not (unlike is not None and unlike(candidate.value)), fit, candidate.start)
                if rank > best_rank:
                    best, best_rank = candidate, rank
            seen += max(len(objects), 1)
            if seen > MAX_OBJECTS:
                return _unparsed(f"more than {MAX_OBJECTS} objects", len(ends))
        return self._settle(text, limit, best, ends, broken, prose)

    def _settle(
        self,
        text: str,
        limit: int,
        best: Found | None,
        ends: dict[int, int],
        broken: list[tuple[int, str]],
        prose: list[int],
    ) -> Extraction:
        """The best candidate, unless the text shows that the answer is something else."""
        count = len(ends)
        if _opens_fence(text if best is None else text[best.end :]):
            return _unparsed("truncated: the text ends where a fenced block opens", count)
        if count > 1 or broken or prose:
            reason = self._named_elsewhere(text, limit, 0 if best is None else best.end, ends, broken, prose)
            if reason:
                return _unparsed(reason, count)
        if best is None:
            if not count:
                return _unparsed("no JSON object found")
            return _unparsed(f"no expected field in {count} object{'s' if count > 1 else ''}", count)
        start, end = best.start, best.end
        nested = count > 1 and any(s < start and e >= end for s, e in ends.items())
        method = "nested" if nested else _method(text[:start], text[end:])
        return Extraction(best.value, False, method, start, end, repair_names(best.repairs), count, "")

    def _named_elsewhere(
        self,
        text: str,
        limit: int,
        after: int,
        ends: dict[int, int],
        broken: list[tuple[int, str]],
        prose: list[int],
    ) -> str:
        """Why the answer may be something unreadable that names an expected field behind `after`, or ""."""
        spans: list[tuple[int, int]] = []
        for start, end in sorted(ends.items()):
            if end > after and (not spans or start >= spans[-1][1]):
                spans.append((start, end))
        broken.sort()
        later = [start for start, _ in spans if start >= after][:1]
        later += prose[bisect.bisect_left(prose, after) :][:1]
        brace = min(later, default=limit)
        braces: dict[int, int] = {}  # the first brace inside a complete object
        for name in self._named.finditer(text, after, limit):
            at = name.start()
            place = bisect.bisect(spans, (at, limit)) - 1
            if place >= 0 and at < spans[place][1]:
                begins, closes = spans[place]
                if begins not in braces:
                    braces[begins] = text.find("{", begins + 1, closes)
                if name[1] and begins >= after and 0 <= braces[begins] < at:
                    return f"the object at character {begins} holds an answer encoded as a string"
                continue
            place = bisect.bisect(broken, (at, "")) - 1
            if place >= 0:
                return f"unreadable object at character {broken[place][0]}: {broken[place][1]}"
            if brace < at and name[2] == text[at - 1]:
                return f"a field at character {at} stands in no object that can be read"
        return ""


def found_as(before: str, after: str) -> str | None:
    """How the only object of a text was found, by the text around it; None where another was about to begin."""
    short = len(before) + len(after) <= _SHORT
    return _found_as_seen(before, after) if short else _found_as(before, after)


def _found_as(before: str, after: str) -> str | None:
    if ("```" in after or "~~~" in after) and _opens_fence(after):
        return None
    return _method(before, after)


_found_as_seen = functools.lru_cache(maxsize=1024)(_found_as)  # most answers stand between the same few words


def _unparsed(error: str, candidates: int = 0) -> Extraction:
    return Extraction(None, False, "", -1, -1, (), candidates, error)


def _method(before: str, after: str) -> str:
    """How an object that stands in no other was found, by the text before and after it."""
    if "```" in before or "~~~" in before:
        return "fenced" if _in_fence(before) else "embedded"
    alone = (not before or before.isspace()) and (not after or after.isspace())
    return "whole" if alone else "embedded"


def _in_fence(before: str) -> bool:
    """Whether a fenced block is open at the end of `before`, which holds at least one row of three marks."""
    ticks, tildes = before.find("```"), before.find("~~~")
    first = max(ticks, tildes) if min(ticks, tildes) < 0 else min(ticks, tildes)
    opened = ""
    for line in before[before.rfind("\n", 0, first) + 1 :].split("\n")[:-1]:
        mark = line.lstrip(" \t>")
        if not mark.startswith(("```", "~~~")):
            continue
        info = mark.lstrip(mark[0])
        if not opened:
            if mark[0] == "~" or "`" not in info:
                opened = mark[: len(mark) - len(info)]
        elif mark.startswith(opened) and not info.strip():
            opened = ""
    return bool(opened)


def _opens_fence(after: str) -> bool:
    """Whether `after`, what follows an object, ends where a fenced block opens: ```json."""
    if not after.strip("`~ \t\r\n"):
        return False
    last = after.rstrip()
    last = last[last.rfind("\n") + 1 :].lstrip(" \t>")
    if not last.startswith(("```", "~~~")):
        return False
    return last.lstrip(last[0]).isalnum()


def _check_decoder(decoder: msgspec.json.Decoder[Any], fields: frozenset[str]) -> None:
    struct = decoder.type
    if not (isinstance(struct, type) and issubclass(struct, msgspec.Struct)):
        raise ConfigError(f"the decoder of an extractor must decode a Struct, not {struct!r}")
    known = msgspec.structs.fields(struct)
    if {field.encode_name for field in known} != fields or not all(field.required for field in known):
        raise ConfigError(f"{struct.__name__} must have exactly the expected fields, all required")
    if any(
        field.type not in {float, list[float]}
        and not (get_origin(field.type) is tuple and set(get_args(field.type)) == {float})
        for field in known
    ):
        raise ConfigError(f"the fields of {struct.__name__} must be float, or a list or tuple of floats")
    if not struct.__struct_config__.forbid_unknown_fields or not decoder.strict:
        raise ConfigError(f"{struct.__name__} must forbid unknown fields, and its decoder must be strict")


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
