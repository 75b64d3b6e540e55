r"""A tolerant reader of one JSON object inside a longer text: keeps the span and the repairs of every object it closes.

The grammar is RFC 8259 plus four repairs, and nothing else:

trailing_comma   one comma after the last element of an object or a list
single_quotes    'text' for a key or a string, with the JSON escapes and \'
nan_literal      NaN, Infinity, -Infinity
python_literal   True, False, None

The grammar is unambiguous, so an object without repairs is exactly an object that strict JSON accepts, with one
exception: an escaped surrogate without its pair (which no UTF-8 text can hold) is refused. Of equal keys the last wins.
An integer of more than 308 characters is read as a float and so may be infinite, as 1e999 is.

The reader is a loop with its own stack and possessive patterns: it neither recurses nor backtracks.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, NamedTuple

import msgspec

REPAIRS: Final = ("trailing_comma", "single_quotes", "nan_literal", "python_literal")
_TRAILING_COMMA, _SINGLE_QUOTES, _NAN_LITERAL, _PYTHON_LITERAL = 1, 2, 4, 8

_ESCAPE = r'\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}'
_DOUBLE = rf'"(?:[^"\\\x00-\x1f]++|{_ESCAPE})*+'
_SINGLE = rf"'(?:[^'\\\x00-\x1f]++|\\'|{_ESCAPE})*+"
_NUMERAL = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_TOKEN = re.compile(
    r"[ \t\n\r]*+(?:"
    r"([{}\[\]:,])"
    rf'|({_DOUBLE}")'
    rf"|({_SINGLE}')"
    rf"|({_NUMERAL})"
    r"|(true|false|null)"
    r"|(True|False|None)"
    r"|(NaN|-?Infinity)"
    r")"
)
_PUNCTUATION, _STRING, _QUOTED, _NUMBER, _LITERAL, _PYTHON, _NAN = range(1, 8)
# What is left of a token when the text is cut inside it: an open string, or a word or number without its end.
_CUT = re.compile(rf"[ \t\n\r]*+(?:(?:{_DOUBLE}|{_SINGLE})(?:\\(?:u[0-9a-fA-F]{{0,3}})?)?|[-+.\w]*+)\Z")
_REQUOTE = re.compile(r"""\\'|\\.|\"""")
_WORDS: Final[dict[str, Any]] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}
_decode_string = msgspec.json.Decoder(str).decode

# What may come next. The order matters: up to _KEY the reader is in an object, from _VALUE to _ITEM it wants a value.
_FIRST_KEY, _KEY, _COLON, _VALUE, _FIRST_ITEM, _ITEM, _NEXT = range(7)
_WANTED = (
    "a key or '}'",
    "a key",
    "':'",
    "a value",
    "a value or ']'",
    "a value",
    "',' or the end of the object or list",
)


class Found(NamedTuple):
    """An object that was read whole: `text[start:end]` is its text, `repairs` a mask that `repair_names` spells out."""

    start: int
    end: int
    value: dict[str, Any]
    repairs: int


class Reading(NamedTuple):
    """What came of reading at one brace: the objects that closed, those left open, where and why it stopped."""

    found: list[Found]
    left_open: list[int]
    stop: str  # "" when the object at the brace closed, else "truncated", "deep" or "broken"
    at: int
    why: str


# Members of an object with plain keys and scalars, each with the comma behind it; nothing of them needs a repair.
_PLAIN = r'"[^"\\\x00-\x1f]*+"'
_MEMBERS = re.compile(
    rf"(?:[ \t\n\r]*+{_PLAIN}[ \t\n\r]*+:[ \t\n\r]*+(?:{_PLAIN}|{_NUMERAL}|true|false|null)[ \t\n\r]*+,)*+"
)


# Integers of 64 bits, scalars and lists of scalars: within these bounds the fast decoder reads what the grammar reads.
_Scalar = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | float | str | bool | None
_decode_flat = msgspec.json.Decoder(dict[str, _Scalar | list[_Scalar]]).decode
_FLAT_DEPTH: Final = 2


class _Frame(NamedTuple):
    start: int
    box: Any
    key: str
    repairs: int


def repair_names(mask: int) -> tuple[str, ...]:
    """The repairs in a mask, in the order of `REPAIRS`."""
    return tuple(name for bit, name in enumerate(REPAIRS) if mask >> bit & 1) if mask else ()


def read_flat(text: str, start: int, end: int) -> Found | None:
    """The object whose brace is at `start`, read the fast way: strict JSON without a brace or a deep list inside."""
    after = text.find("{", start + 1, end)
    stop = text.find("}", start, end if after < 0 else after) + 1
    if not stop:
        return None
    try:
        return Found(start, stop, _decode_flat(text[start:stop]), 0)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def read_object(text: str, start: int, end: int, *, max_depth: int = 64) -> Reading:
    """Read the object whose brace is at `start`, not looking past `end`."""
    token = _TOKEN.match
    objects: list[Found] = []
    stack: list[_Frame] = []
    box: Any = {}
    begun, key, mask = start, "", 0
    is_object, state, pos = True, _FIRST_KEY, start + 1
    if text.find("}", start, end) < 0:
        # It cannot close, so what its members hold does not matter.
        match = _MEMBERS.match(text, pos, end)
        if match is not None and match.end() > pos:
            state, pos = _KEY, match.end()

    def stopped(stop: str, why: str) -> Reading:
        opened = [frame.start for frame in stack if type(frame.box) is dict]
        if is_object:
            opened.append(begun)
        return Reading(objects, opened, stop, pos, why)

    while True:
        match = token(text, pos, end)
        if match is None:
            if _CUT.match(text, pos, end):
                return stopped("truncated", "the text ends inside it")
            return stopped("broken", _unexpected(text, pos, end, state))
        kind = match.lastindex
        lexeme = match[kind]  # type: ignore[index]  # every alternative of the pattern is a group
        fix = 0
        close = False
        value: Any = None

        if kind == _PUNCTUATION:
            if lexeme == "," and state == _NEXT:
                state = _KEY if is_object else _ITEM
                pos = match.end()
                continue
            if lexeme == ":" and state == _COLON:
                state = _VALUE
                pos = match.end()
                continue
            if lexeme in "{[" and _VALUE <= state <= _ITEM:
                if len(stack) + 2 > max_depth:
                    return stopped("deep", f"nested deeper than {max_depth}")
                opens = match.end() - 1
                flat = None
                if lexeme == "{" and len(stack) + 1 + _FLAT_DEPTH <= max_depth:
                    flat = read_flat(text, opens, end)
                if flat is not None:
                    objects.append(flat)
                    if is_object:
                        box[key] = flat.value
                    else:
                        box.append(flat.value)
                    state, pos = _NEXT, flat.end
                    continue
                stack.append(_Frame(begun, box, key, mask))
                is_object = lexeme == "{"
                begun, box, key, mask = match.end() - 1, ({} if is_object else []), "", 0
                state = _FIRST_KEY if is_object else _FIRST_ITEM
                pos = match.end()
                continue
            if lexeme == ("}" if is_object else "]") and state in {_FIRST_KEY, _KEY, _FIRST_ITEM, _ITEM, _NEXT}:
                close = True
                if state in {_KEY, _ITEM}:
                    fix = _TRAILING_COMMA
            else:
                return stopped("broken", _unexpected(text, pos, end, state))
        elif kind in {_STRING, _QUOTED}:
            if kind == _QUOTED:
                fix = _SINGLE_QUOTES
            string = _unquote(lexeme)
            if string is None:
                return stopped("broken", "a string with half of a surrogate pair")
            value = string
        elif state <= _COLON:
            return stopped("broken", _unexpected(text, pos, end, state))
        elif kind == _NUMBER:
            value = _number(lexeme)
        else:
            value = _WORDS[lexeme]
            fix = 0 if kind == _LITERAL else _PYTHON_LITERAL if kind == _PYTHON else _NAN_LITERAL

        mask |= fix
        if close:
            if is_object:
                objects.append(Found(begun, match.end(), box, mask))
            if not stack:
                return Reading(objects, [], "", match.end(), "")
            value, inner = box, mask
            begun, box, key, mask = stack.pop()
            mask |= inner
            is_object = type(box) is dict
        elif state <= _KEY:
            key, state, pos = value, _COLON, match.end()
            continue
        elif not _VALUE <= state <= _ITEM:
            return stopped("broken", _unexpected(text, pos, end, state))
        if is_object:
            box[key] = value
        else:
            box.append(value)
        state, pos = _NEXT, match.end()


def _unquote(lexeme: str) -> str | None:
    """The string that a token in single or double quotes stands for, or None if it is not valid Unicode."""
    if "\\" not in lexeme:
        return lexeme[1:-1]
    if lexeme[0] == "'":
        lexeme = '"' + _REQUOTE.sub(lambda m: {"\\'": "'", '"': '\\"'}.get(m[0], m[0]), lexeme[1:-1]) + '"'
    try:
        return _decode_string(lexeme)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def _number(lexeme: str) -> int | float:
    if len(lexeme) > 308 or not lexeme.lstrip("-").isdigit():
        return float(lexeme)
    return int(lexeme)


def _unexpected(text: str, pos: int, end: int, state: int) -> str:
    next_characters = text[pos : min(end, pos + 80)].lstrip(" \t\n\r")[:12]
    return f"expected {_WANTED[state]}, found {next_characters!r}"
