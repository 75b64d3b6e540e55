"""Where a field stands in an answer: `$.customer.name`, `$["a key"]`, `$.lines[0].sku`, `$.lines[*].qty`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

EVERY: Final = None
"""The step of a path that goes into every item of a list."""
ABSENT: Final = object()
MOST_STEPS = 20
_STEP = re.compile(r"""\.([^.\[\]"'\s]+)|\[\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|(\d+)|(\*))\s*\]""")


@dataclass(frozen=True)
class Path:
    """Steps from the answer to a value: keys, numbers of items, and at most one EVERY."""

    steps: tuple[str | int | None, ...]

    @property
    def many(self) -> bool:
        """Whether it leads to many places."""
        return EVERY in self.steps

    @property
    def first(self) -> str | int | None:
        """The key of the answer that it begins with."""
        return self.steps[0]

    def __str__(self) -> str:
        return "$" + "".join(_written(step) for step in self.steps)

    def value(self, answer: Any) -> Any:
        """The value at the end of a path to one place, or ABSENT."""
        return _walk(answer, self.steps)

    def holder(self, answer: Any) -> Any:
        """What should be the list that a path goes into, or ABSENT."""
        return _walk(answer, self.steps[: self.steps.index(EVERY)])

    def values(self, answer: Any) -> Any:
        """The values at every place of a path into a list, in order; ABSENT where there is no list."""
        items, after = self.holder(answer), self.steps[self.steps.index(EVERY) + 1 :]
        return [_walk(item, after) for item in items] if isinstance(items, list) else ABSENT


def parse_path(text: str) -> Path:
    """A path from its text; a ValueError says what is wrong."""
    if not text.startswith("$"):
        raise ValueError(f"is {text!r}; a path begins with $, such as $.{text.strip('./') or 'total'}")
    steps: list[str | int | None] = []
    position = 1
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise ValueError(
                f'cannot be read from {text[position:]!r} on; write $.key, $["a key"], $.list[0] or $.list[*]'
            )
        name, double, single, number, _ = match.groups()
        quoted = double if double is not None else single
        if name is not None:
            steps.append(name)
        elif quoted is not None:
            steps.append(re.sub(r"\\(.)", r"\1", quoted))
        else:
            steps.append(int(number) if number is not None else EVERY)
        position = match.end()
    if not steps:
        raise ValueError("is the whole answer; a field is one part of it, such as $.total")
    if steps.count(EVERY) > 1:
        raise ValueError("goes into lists twice; a path has one [*], and a field of type list(…) holds the rest")
    if len(steps) > MOST_STEPS:
        raise ValueError(f"has more than {MOST_STEPS} steps")
    return Path(tuple(steps))


def _walk(value: Any, steps: tuple[str | int | None, ...]) -> Any:
    for step in steps:
        if isinstance(step, str):
            value = value.get(step, ABSENT) if isinstance(value, dict) else ABSENT
        else:
            value = value[step] if isinstance(value, list) and step is not None and step < len(value) else ABSENT
    return value


def _written(step: str | int | None) -> str:
    if step is EVERY:
        return "[*]"
    if isinstance(step, int):
        return f"[{step}]"
    plain = re.fullmatch(r"[^.\[\]\"'\s]+", step)
    return f".{step}" if plain else '["' + re.sub(r'(["\\])', r"\\\1", step) + '"]'
