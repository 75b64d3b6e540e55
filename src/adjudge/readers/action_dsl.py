r"""The action DSL that GUI agents speak, `CLICK(x=0.42, y=0.73)` or `TYPE([3], "it's")`, out of raw model text.

    action   = NAME "(" [ argument { "," argument } ] ")"
    argument = [ KEYWORD "=" ] value
    value    = NUMBER | STRING | "[" ( NUMBER | WORD | STRING ) "]"

A text is scanned from front to back; what stands inside the string of an action is text and never an action or a marker.
Only what comes after the last `Action:` marker counts, where there is one, and of that the last action.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

POINTING = ("click", "double_click", "right_click", "hover")
WITH_TEXT = ("type", "select", "open", "answer")
ALONE = ("wait", "done", "fail")

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?![\w.]))
    | (?P<word>[A-Za-z_][\w\-]*)
    | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<sign>[()\[\],=])
    )""",
    re.VERBOSE | re.DOTALL,
)
_START = re.compile(r"(?<!\w)(?:(?P<marker>action)\s*:|(?P<name>[A-Za-z_]\w*)\s*\()", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}
_COORDINATES = ("x", "y", "end_x", "end_y")
_KEYWORDS = frozenset({*_COORDINATES, "text", "key", "direction", "element"})
_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
_STATE = re.compile(r"^[ \t]*State[ \t]*:[ \t]*(?=\{)", re.IGNORECASE | re.MULTILINE)
_JSON = json.JSONDecoder()
_STRING = msgspec.json.Decoder(str)
_PLAIN = re.compile(
    rf"""(?:[^(]*[ \n]action:|\s*action\s*:)?\s*(?:
      ({"|".join(POINTING)})\s*\(\s*(?:x\s*=\s*{_NUMBER}\s*,\s*y\s*=\s*{_NUMBER}|\[\s*(\d+)\s*\])\s*\)
    | (type|select|open|answer|key|scroll)\s*\(\s*(?:\[\s*(\d+)\s*\]\s*,\s*)?(text\s*=\s*)?("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*\)
    | ({"|".join(ALONE)})\s*\(\s*\)
    )\s*""",
    re.VERBOSE | re.IGNORECASE | re.ASCII | re.DOTALL,
)


class Action(msgspec.Struct, frozen=True, gc=False):
    """One parsed action. `argument` is the text, key or direction; a coordinate that is not there is NaN."""

    type: str
    x: float = math.nan
    y: float = math.nan
    end_x: float = math.nan
    end_y: float = math.nan
    argument: str | None = None
    element: str | None = None


class Unparsed(NamedTuple):
    """Why a text holds no action, and the span (characters, end exclusive) that was looked at."""

    why: str
    start: int
    end: int


class _Failed(Exception):
    def __init__(self, why: str, at: int) -> None:
        super().__init__(why)
        self.why, self.at = why, at


def parse(text: str, known: Iterable[str] = ()) -> Action | Unparsed:
    """The action a text ends with. `known` are further names that count outside an `Action:` block."""
    return parse_plain(text) or tokenize(text, known)


def parse_plain(text: str) -> Action | None:
    """The same as `tokenize` for a text that is one plain action, alone or after `Action:`; None for any other text.

    What stands before the last `Action:` must hold no bracket, so that the marker cannot be part of a string.
    """
    match = _PLAIN.fullmatch(text)
    if match is None:
        return None
    pointing, x, y, mark, spoken, element, keyword, quoted, alone = match.groups()
    if x is not None:
        across, down = float(x), float(y)
        return Action(pointing.lower(), across, down) if math.isfinite(across) and math.isfinite(down) else None
    if spoken is None:
        return Action((pointing or alone).lower(), element=mark)
    name = spoken.lower()
    if name in {"key", "scroll"} and (element is not None or keyword is not None):
        return None
    return Action(name, argument=_unescaped(quoted), element=element)


def tokenize(text: str, known: Iterable[str] = ()) -> Action | Unparsed:
    """The whole grammar, token by token."""
    names = {*POINTING, *WITH_TEXT, *ALONE, "drag", "key", "scroll", *known}
    last: Action | None = None
    failed: Unparsed | None = None
    block, place = -1, 0
    while (start := _START.search(text, place)) is not None:
        if start["marker"] is not None:
            last, failed, block, place = None, None, start.end(), start.end()
            continue
        name = start["name"].lower()
        if block < 0 and name not in names:
            place = start.end()
            continue
        try:
            arguments = _Arguments(text, name, start.end())
            last, failed = arguments.action(), None
            place = arguments.place
        except _Failed as error:
            failed = Unparsed(f"{start['name']}: {error.why}", start.start(), error.at)
            place = max(error.at, start.end())
    if answer := last or failed:
        return answer
    where = max(block, 0)
    return Unparsed("there is no action after `Action:`" if block >= 0 else "there is no action", where, len(text))


def reported_success(text: str) -> bool | None:
    """The `success` of the last `State: {…}` that begins a line of a text; None where there is none."""
    for start in reversed([match.end() for match in _STATE.finditer(text)] if "tate" in text.lower() else ()):
        try:
            state, _ = _JSON.raw_decode(text, start)
        except ValueError:
            continue
        success = state.get("success")
        return success if isinstance(success, bool) else None
    return None


def render(action: Action) -> str:
    """An action as DSL text; `parse` gives it back."""
    parts = [] if action.element is None else [f"[{_quoted(action.element)}]"]
    points = {name: getattr(action, name) for name in _COORDINATES}
    parts += [f"{name}={value!r}" for name, value in points.items() if not math.isnan(value)]
    if action.argument is not None:
        parts.append(_quoted(action.argument))
    return f"{action.type.upper()}({', '.join(parts)})"


def _quoted(text: str) -> str:
    body = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f'"{body}"'


class _Arguments:
    """The arguments of an action, read from behind its bracket on; `place` is where the reading stands."""

    def __init__(self, text: str, name: str, place: int) -> None:
        self.text, self.name, self.place = text, name, place
        self.numbers: dict[str, float] = {}
        self.words: dict[str, str] = {}

    def action(self) -> Action:
        """The action up to the closing bracket."""
        kind, value, at = self._next()
        closed = (kind, value) == ("sign", ")")
        while not closed:
            keyword = None
            if kind == "word":
                keyword = value.lower()
                if keyword not in _KEYWORDS:
                    raise _Failed(f"{value!r} is no argument", at)
                self._sign("=", "expected = behind a keyword")
                kind, value, at = self._next()
            self._store(keyword, kind, value, at)
            closed = self._sign(",)", "expected , or )") == ")"
            if not closed:
                kind, value, at = self._next()
        return self._checked()

    def _store(self, keyword: str | None, kind: str, value: str, at: int) -> None:
        """Keep one argument, which begins with this token."""
        if (kind, value) == ("sign", "["):
            element = self._bracketed()
            misplaced = keyword is None and (self.numbers or self.words)
            if keyword not in {None, "element"} or "element" in self.words or misplaced:
                raise _Failed("an element stands once, before the other arguments", at)
            self.words["element"] = element
        elif kind == "string":
            slot = keyword or {"key": "key", "scroll": "direction"}.get(self.name, "text")
            if slot in _COORDINATES:
                raise _Failed(f"{slot} is no number", at)
            if slot in self.words:
                raise _Failed(f"{slot} stands twice", at)
            self.words[slot] = _unescaped(value)
        elif kind == "number" and keyword == "element":
            if "element" in self.words:
                raise _Failed("element stands twice", at)
            self.words["element"] = value
        elif kind == "number" and keyword is not None:
            number = float(value)
            if keyword not in _COORDINATES or keyword in self.numbers:
                raise _Failed(f"{keyword} is no number here", at)
            if not math.isfinite(number):
                raise _Failed(f"{keyword} is too large", at)
            self.numbers[keyword] = number
        else:
            raise _Failed("expected an argument", at)

    def _bracketed(self) -> str:
        """An element's id and the bracket behind it."""
        kind, value, at = self._next()
        if kind not in {"number", "word", "string"}:
            raise _Failed("expected the element's id between [ and ]", at)
        self._sign("]", "expected ]")
        return _unescaped(value) if kind == "string" else value

    def _checked(self) -> Action:
        """The action, when its arguments are those that its type has."""
        name, numbers, words, end = self.name, self.numbers, self.words, self.place
        for pair in (("x", "y"), ("end_x", "end_y")):
            if (pair[0] in numbers) != (pair[1] in numbers):
                raise _Failed(f"{pair[0]} and {pair[1]} stand together", end)
        if name in POINTING and (("x" in numbers) == ("element" in words) or len(words) > ("element" in words)):
            raise _Failed("expected x and y, or one [element]", end)
        if name == "drag" and len(numbers) != 4 and "element" not in words:
            raise _Failed("expected x, y, end_x and end_y", end)
        if "end_x" in numbers and name in POINTING:
            raise _Failed("end_x and end_y belong to DRAG", end)
        spoken = {"key": "key", "scroll": "direction", **dict.fromkeys(WITH_TEXT, "text")}.get(name)
        if spoken is not None and spoken not in words:
            raise _Failed(f"expected a {spoken}", end)
        if name in ALONE and (numbers or words):
            raise _Failed("takes no arguments", end)
        argument = words.get(spoken) if spoken is not None else words.get("text") or words.get("key")
        return Action(name, **numbers, argument=argument, element=words.get("element"))

    def _sign(self, expected: str, why: str) -> str:
        """The next token, which is one of these signs."""
        kind, value, at = self._next()
        if kind != "sign" or value not in expected:
            raise _Failed(why, at)
        return value

    def _next(self) -> tuple[str, str, int]:
        """(kind, text, start) of the next token."""
        text, token = self.text, _TOKEN.match(self.text, self.place)
        if token is None:
            at = len(text) - len(text[self.place :].lstrip())
            if at >= len(text):
                raise _Failed("the text ends inside the action", len(text))
            if text[at] in "\"'":
                # What follows an open quote is text up to the end of its line.
                line = text.find("\n", at)
                raise _Failed("a string is not closed", len(text) if line < 0 else line)
            raise _Failed(f"unexpected {text[at]!r}", at)
        kind = token.lastgroup or ""
        self.place = token.end()
        return kind, token[kind], token.start(kind)


def _unescaped(quoted: str) -> str:
    """The text between the quotes. Two escapes can spell one character; half of such a pair alone is none (U+FFFD)."""
    body = quoted[1:-1]
    if "\\" not in body:
        return body
    try:
        return _STRING.decode(quoted)
    except (msgspec.DecodeError, UnicodeError):  # single quotes, a bare line end, or escapes that JSON does not have
        text = _ESCAPE.sub(_character, body)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(match: re.Match[str]) -> str:
    wide, byte, plain = match.groups()
    if plain is not None:
        return _ESCAPES.get(plain, plain)
    return chr(int(wide or byte, 16))
