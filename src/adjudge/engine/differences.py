"""Where two JSON documents differ, by path; estimates are matched by name and slice, notes as a set.

A list of which only some items stand in the other, in the same order, differs by an addition: one column more in a table is no
change of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

_ABSENT = object()


@dataclass(frozen=True)
class Difference:
    """One place; `added` says that only the second document has it."""

    path: str
    words: str
    added: bool


def differences(stored: Any, again: Any, most: int) -> list[Difference]:
    """The first differences, those that are additions after all others."""
    every: list[Difference] = []
    _walk("", stored, again, every)
    changed = [each for each in every if not each.added]
    return [*changed[:most], *(each for each in every if each.added)]


def _walk(path: str, a: Any, b: Any, places: list[Difference]) -> None:
    if a == b and type(a) is type(b):
        return
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            _walk(f"{path}.{key}", a.get(key, _ABSENT), b.get(key, _ABSENT), places)
    elif isinstance(a, list) and isinstance(b, list) and path == ".estimates":
        ours, theirs = _by_name(a), _by_name(b)
        for key in dict.fromkeys((*ours, *theirs)):
            _walk(f"{path}[{key}]", ours.get(key, _ABSENT), theirs.get(key, _ABSENT), places)
    elif isinstance(a, list) and isinstance(b, list) and path == ".notes":
        places += [_difference(f"{path}[{note}]", note, _ABSENT) for note in a if note not in b]
        places += [_difference(f"{path}[{note}]", _ABSENT, note) for note in b if note not in a]
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (x, y) in enumerate(zip(a, b, strict=True)):
            _walk(f"{path}[{index}]", x, y, places)
    elif isinstance(a, list) and _within(a, b):
        name = path.removeprefix(".")
        places.append(Difference(name, f"{name} has {len(a)} entries, recomputed {len(b)}", added=True))
    else:
        places.append(_difference(path, a, b))


def _within(a: Any, b: Any) -> bool:
    """Whether the second value is the first with more keys and items."""
    if isinstance(a, dict) and isinstance(b, dict):
        return all(key in b and _within(value, b[key]) for key, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        rest = iter(b)
        return all(any(_within(item, other) for other in rest) for item in a)
    return bool(a == b and type(a) is type(b))


def _by_name(estimates: list[Any]) -> dict[str, Any]:
    return {f"{item.get('name')}, {item.get('slice')}": item for item in estimates if isinstance(item, dict)}


def _difference(path: str, a: Any, b: Any) -> Difference:
    name = path.removeprefix(".")
    return Difference(name, f"{name} is {_short(a)}, recomputed {_short(b)}", a is _ABSENT)


def _short(value: Any) -> str:
    if value is _ABSENT:
        return "absent"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:59] + "…"
