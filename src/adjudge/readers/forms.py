"""Rows written alike: a form is a row's bytes with holes for the scalars that differ from row to row.

Most files are written by one program, with the same keys in the same order. A row that has a known form is read by
comparing bytes, holes alone are looked at; that it is well-formed JSON follows. Forms are learnt from rows that were read
otherwise.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from adjudge.readers.numbered import Numbered
from adjudge.readers.scan import ARRAY, Path, Scanned, Wanted

T = TypeVar("T")
MOST_FORMS = 8
_EXAMPLES = 64  # rows that are looked at to learn from
_LESSONS = 16
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[-+.0-9eE]+|true|false|null|[{}\[\]:,]|\s+', re.DOTALL)
_ANY = (1 << (ARRAY + 1)) - 1


@dataclass(frozen=True)
class Holes:
    """What is taken from the holes.

    `texts` are paths whose kind and place are wanted, of a container those of every hole in it; `values` gives numbers
    their column, with the value that stands for null; `kinds` says what may stand at a path; at `always` is a hole even
    where all rows agree.
    """

    texts: Sequence[Path]
    values: Mapping[Path, tuple[int, float]]
    kinds: Mapping[Path, Sequence[int]]
    always: Sequence[Path]


@dataclass
class Form:
    """One way rows are written: an example, its scalars (path, start, end), and which of them are holes."""

    text: bytes
    scalars: list[tuple[Path, int, int]]
    base: NDArray[np.float64]
    holes: set[int] = field(default_factory=set)

    def meet(self, text: bytes, scalars: list[tuple[Path, int, int]]) -> bool:
        """Make holes where another row of the same form differs; whether there are new ones."""
        before = len(self.holes)
        for place, ((_, a, b), (_, c, d)) in enumerate(zip(self.scalars, scalars, strict=True)):
            if self.text[a:b] != text[c:d]:
                self.holes.add(place)
        return len(self.holes) > before


class Slots(Wanted):
    """Nodes as they are needed; node 0 is the row itself, and its kind the number of its form."""

    def __init__(self) -> None:
        self.nodes = {(): 0}


class Formed(NamedTuple, Generic[T]):
    """Rows that were read: their slots, forms, values (rows, columns), and numbers with what each stands for.

    Rows without a known form are odd, their form and number −1.
    """

    slots: Scanned
    form: NDArray[np.int8]
    values: NDArray[np.float64]
    number: NDArray[np.int32]
    known: list[T]


class Forms:
    """The forms of the rows of an input, learnt block by block. There are `width` columns of values, or more if needed."""

    def __init__(self, holes: Holes, width: int) -> None:
        self._holes, self._least = holes, width
        self._forms: dict[bytes, Form] = {}
        self._lessons, self._given_up = _LESSONS, False
        self.slots = Slots()
        self.version = 0

    def read(
        self,
        data: NDArray[np.uint8],
        starts: NDArray[np.int32],
        ends: NDArray[np.int32],
        numbered: Numbered[T],
        make: Callable[[int], T],
    ) -> Formed[T]:
        """Read the rows of a known form, and number them by slots of `numbered`."""
        from adjudge.readers import _form_kernels

        n, width = len(starts), len(self.slots)
        kind = np.empty((width, n), dtype=np.uint8)
        first, last = np.empty((width, n), dtype=np.int32), np.empty((width, n), dtype=np.int32)
        form, values = np.empty(n, dtype=np.int8), np.empty((n, self._base.shape[1]))
        columns = (data, data.view(np.uint64), starts, ends, *self._tables, self._base, form, kind, first, last, values)
        codes, known = numbered.by(n, data.size, lambda *tables: _form_kernels.read_forms(*columns, *tables), make)
        odd = form < 0
        if not self._lessons and 2 * np.count_nonzero(odd) > n:
            self._given_up = True
        return Formed(Scanned(self.slots, data, kind, _NO_NUMBERS, odd, first, last), form, values, codes, known)

    @property
    def known(self) -> bool:
        """Whether there is any form, and forms are of use here."""
        return bool(self._forms) and not self._given_up

    def learn(self, rows: Sequence[bytes], base: Callable[[int], NDArray[np.float64]]) -> None:
        """Learn from rows that are certainly well-formed; `base(k)` gives the values of row k."""
        if not rows or not self._lessons:
            return
        self._lessons -= 1
        met = [(text, *_cut(text)) for text in rows]
        counts = Counter(skeleton for _, skeleton, _ in met)
        changed = False
        for skeleton, _ in counts.most_common():
            mine = [index for index, each in enumerate(met) if each[1] == skeleton]
            if skeleton not in self._forms:
                if len(self._forms) == MOST_FORMS:
                    continue
                text, _, scalars = met[mine[0]]
                always = {place for place, (path, _, _) in enumerate(scalars) if path in self._holes.always}
                self._forms[skeleton] = Form(text, scalars, base(mine[0]), always)
                changed = True
            form = self._forms[skeleton]
            for index in mine:
                changed |= form.meet(met[index][0], met[index][2])
        if changed:
            self._compile()

    def examples(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Which rows to learn from, spread over all."""
        if not self._lessons:
            return rows[:0]
        return rows[np.unique(np.linspace(0, rows.size - 1, _EXAMPLES).astype(np.intp))]

    def all(self) -> list[Form]:
        """The forms by number."""
        return list(self._forms.values())

    def below(self, paths: Sequence[Path]) -> list[Path]:
        """The slots at or below some paths."""
        return [own for own in self.slots.nodes if own and any(own[: len(path)] == path for path in paths)]

    def _compile(self) -> None:
        texts = self._holes.texts
        literals: list[bytes] = []
        edges, slot, column, allowed, none = [0], [], [], [], []
        for form in self._forms.values():
            at = 0
            for place in sorted(form.holes):
                path, begin, end = form.scalars[place]
                literals.append(form.text[at:begin])
                at = end
                if any(path[: len(wanted)] == wanted for wanted in texts):
                    slot.append(self.slots.nodes.setdefault(path, len(self.slots)))
                else:
                    slot.append(-1)
                where, instead = self._holes.values.get(path, (-1, 0.0))
                column.append(where)
                none.append(instead)
                kinds = self._holes.kinds.get(path)
                allowed.append(_ANY if kinds is None else sum(1 << kind for kind in kinds))
            literals.append(form.text[at:])
            edges.append(len(literals))
            slot, column, allowed, none = [*slot, -1], [*column, -1], [*allowed, 0], [*none, 0.0]
        sizes = [len(text) for text in literals]
        padded = [text + bytes(-len(text) % 8) for text in literals]
        places = np.cumsum([0, *(len(text) // 8 for text in padded)])[:-1]
        self._tables = (
            np.frombuffer(b"".join(padded), dtype=np.uint64),
            *(np.array(numbers, dtype=np.int32) for numbers in (places, sizes, edges, slot, column, allowed)),
            np.array(none),
        )
        width = max([self._least - 1, *column]) + 1
        self._base = np.zeros((len(self._forms), width))
        for own, form in zip(self._base, self._forms.values(), strict=True):
            own[: form.base.size] = form.base[:width]
        self.version += 1


_NO_NUMBERS = np.zeros((0, 0))


def _cut(text: bytes) -> tuple[bytes, list[tuple[Path, int, int]]]:
    """A row without its scalars, and the scalars: path, start and end."""
    scalars: list[tuple[Path, int, int]] = []
    path: list[str | int] = []
    key = False
    pieces, at = [], 0
    for token in _TOKEN.finditer(text):
        word = token.group()
        c = word[:1]
        if c in b"{[":
            path.append("" if c == b"{" else 0)
            key = c == b"{"
        elif c in b"}]":
            path.pop()
        elif c == b",":
            if isinstance(path[-1], int):
                path[-1] += 1
            else:
                key = True
        elif c in b": \t\r\n":
            continue
        elif key:
            path[-1], key = msgspec.json.decode(word, type=str), False
        else:
            scalars.append((tuple(path), token.start(), token.end()))
            pieces.append(text[at : token.start()])
            at = token.end()
    return b"\0".join([*pieces, text[at:]]), scalars
