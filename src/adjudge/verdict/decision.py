"""Decision tables: ordered rows over a few named inputs, checked to be whole, looked up by column.

A table is plain data. Its first row that fits decides. A combination of inputs that no row fits (a hole) and a row that
earlier rows leave nothing (unreachable) are refused when the table is loaded, each by name.
"""

from __future__ import annotations

import difflib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adjudge.errors import ConfigError

_SHOWN = 3


@dataclass(frozen=True)
class Row:
    """One row: for each input it names the words that fit; an input it does not name fits with any word."""

    when: Mapping[str, tuple[str, ...]]
    final: str
    why: str

    def fits(self, case: Mapping[str, str]) -> bool:
        """Whether one combination of inputs fits."""
        return all(case[name] in words for name, words in self.when.items())


class DecisionTable:
    """A checked table: every combination of the inputs has exactly one deciding row, and every row decides some."""

    def __init__(
        self, name: str, rows: Sequence[Row], inputs: Mapping[str, tuple[str, ...]], finals: Sequence[str]
    ) -> None:
        self.name, self.rows, self.inputs, self.finals = name, tuple(rows), dict(inputs), tuple(finals)
        self._shape = tuple(len(words) for words in self.inputs.values())
        self._deciding = self._decide_all()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Every `why`, in the order of the rows, each once."""
        return tuple(dict.fromkeys(row.why for row in self.rows))

    def decide(self, **case: str) -> Row:
        """The row that decides one combination."""
        place = tuple(words.index(case[name]) for name, words in self.inputs.items())
        return self.rows[int(self._deciding[int(np.ravel_multi_index(place, self._shape))])]

    def lookup(self, codes: Mapping[str, NDArray[Any]]) -> NDArray[np.int16]:
        """The index of the deciding row for columns of codes, each a position in its input's words."""
        rows: NDArray[np.int16] = self._deciding[
            np.ravel_multi_index([codes[name] for name in self.inputs], self._shape)
        ]
        return rows

    def combinations(self) -> int:
        """How many combinations of the inputs there are."""
        return math.prod(self._shape)

    def _decide_all(self) -> NDArray[np.int16]:
        cases = [dict(zip(self.inputs, words, strict=True)) for words in itertools.product(*self.inputs.values())]
        deciding = np.array(
            [next((index for index, row in enumerate(self.rows) if row.fits(case)), -1) for case in cases],
            dtype=np.int16,
        )
        holes = [case for case, index in zip(cases, deciding, strict=True) if index < 0]
        if holes:
            shown = "; ".join(_words(case) for case in holes[:_SHOWN])
            raise ConfigError(
                f"policy {self.name}: {len(holes)} of {len(cases)} combinations have no row, such as {shown}. "
                "Add a last row without `when` to catch them."
            )
        for index, row in enumerate(self.rows):
            if not (deciding == index).any():
                raise ConfigError(
                    f"policy {self.name}: row {index + 1} ({row.why}) is unreachable: earlier rows decide all it fits"
                )
        return deciding


def load_table(content: Any, where: str, inputs: Mapping[str, tuple[str, ...]], finals: Sequence[str]) -> DecisionTable:
    """A table from plain data {policy, rows: [{when, final, why}]}; anything else is a ConfigError that says where."""
    if not isinstance(content, dict) or not isinstance(content.get("rows"), list):
        raise ConfigError(f"{where}: a policy is a table with `policy` (its name) and `rows` (a list)")
    extra = set(content) - {"policy", "about", "rows"}
    if extra:
        raise ConfigError(f"{where}: {min(extra)!r} is not a key of a policy (policy, about, rows)")
    name = content.get("policy")
    if not isinstance(name, str) or not name:
        raise ConfigError(f"{where}: `policy` is missing; it is the policy's name")
    rows = [_row(item, f"{where}: row {number}", inputs, finals) for number, item in enumerate(content["rows"], 1)]
    return DecisionTable(name, rows, inputs, finals)


def _row(item: Any, where: str, inputs: Mapping[str, tuple[str, ...]], finals: Sequence[str]) -> Row:
    if not isinstance(item, dict) or set(item) - {"when", "final", "why"}:
        raise ConfigError(f"{where}: a row has `when`, `final` and `why`, found {item!r}")
    final, why, when = item.get("final"), item.get("why"), item.get("when") or {}
    if final not in finals:
        raise ConfigError(f"{where}: final is {final!r}, expected one of {', '.join(finals)}")
    if not isinstance(why, str) or not why:
        raise ConfigError(f"{where}: `why` is missing; it is the reason that the report counts")
    if not isinstance(when, dict):
        raise ConfigError(f"{where}: `when` is a table of inputs, found {when!r}")
    return Row({str(name): _fitting(name, words, where, inputs) for name, words in when.items()}, str(final), why)


def _fitting(name: Any, words: Any, where: str, inputs: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    if name not in inputs:
        raise ConfigError(
            f"{where}: there is no input {name!r}; the inputs are {', '.join(inputs)}{_near(name, inputs)}"
        )
    known = inputs[name]
    negated = isinstance(words, dict) and set(words) == {"not"}
    listed = words["not"] if negated else words
    items = listed if isinstance(listed, list) else [listed]
    for word in items:
        if word not in known:
            raise ConfigError(f"{where}: {name} is never {word!r}; it is one of {', '.join(known)}{_near(word, known)}")
    return tuple(word for word in known if (word in items) != negated)


def _near(word: Any, known: Any) -> str:
    close = difflib.get_close_matches(str(word), list(known), n=1)
    return f". Did you mean {close[0]!r}?" if close else ""


def _words(case: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {word}" for name, word in case.items())
